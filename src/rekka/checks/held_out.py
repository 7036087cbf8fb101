"""Checks on a partition: held-out rows against the training rows of their case, and bridges in two parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rekka.checks.covariates import fit_boxcox
from rekka.checks.findings import CaseRows, Finding, Mask, Severity, first_rows
from rekka.core.errors import ScalingError, count_of
from rekka.data.partition import Partition

HELD_OUT = ("validation", "golden")
FAR_OUTSIDE = 0.10  # of the training range
MANY_OUTSIDE = 0.05  # share of the held-out rows

Cases = dict[str, CaseRows]


def check_partition(cases: Cases, parts: Mapping[str, Cases]) -> Iterator[Finding]:
    """R501 to R505: held-out rows against training rows."""
    train = parts["train"]
    for name in sorted(set(cases).union(*parts.values())):
        held = {part: parts[part][name] for part in HELD_OUT if name in parts[part]}
        if name not in train:
            yield Finding(
                "R504",
                Severity.STOP,
                "No usable row of this case is in the training part: "
                + (", ".join(f"{len(rows.row):,} {part}" for part, rows in held.items()) or "none in the others")
                + ".",
                "Leave the case out, split in another way, or join it with a similar case.",
                name,
                count=sum(len(rows.row) for rows in held.values()),
            )
            continue
        empty = [part for part in HELD_OUT if part not in held]
        if empty:
            yield Finding(
                "R505",
                Severity.WARNING,
                f"No usable row of this case is in the {' or '.join(empty)} part; "
                f"{count_of(len(train[name].row), 'row')} train.",
                "The case can be fitted, but not judged. Hold out a larger share, or split in another way.",
                name,
                count=len(empty),
                values={"parts": empty},
            )
        for part, rows in held.items():
            yield from check_unsupported(train[name], rows, part)
            yield from check_outside(train[name], rows, part)


def check_unsupported(train: CaseRows, rows: CaseRows, part: str) -> Iterator[Finding]:
    """R503: states beyond the training K."""
    here = (rows.end >= train.n_states) | (rows.start >= train.n_states)
    count = int(here.sum())
    if count:
        yield Finding(
            "R503",
            Severity.WARNING,
            f"Beyond state {train.n_states}, the worst of the training rows: {count:,} of "
            f"{count_of(len(rows.row), f'{part} row')}.",
            "The model cannot predict such states: the rows are left out of the scores and counted. Split so that "
            "the state trains too, or merge it with the one before.",
            train.name,
            first_rows(rows.row[here]),
            count,
            {"part": part, "training_states": train.n_states, "states": rows.n_states},
        )


def check_outside(train: CaseRows, rows: CaseRows, part: str) -> Iterator[Finding]:
    """R501: covariates outside the training range; those below it may be R502 too."""
    low, high = train.x.min(axis=0), train.x.max(axis=0)
    distance = np.maximum(np.maximum(low - rows.x, rows.x - high), 0.0)
    here = (distance > 0).any(axis=1)
    if not here.any():
        return
    values = {
        name: {
            "rows": int((distance[:, c] > 0).sum()),
            "training_min": float(low[c]),
            "training_max": float(high[c]),
            "min": float(rows.x[:, c].min()),
            "max": float(rows.x[:, c].max()),
            "share_of_range": float(distance[:, c].max() / (high[c] - low[c])) if high[c] > low[c] else None,
        }
        for c, name in enumerate(train.covariates)
        if distance[:, c].any()
    }
    count, far = int(here.sum()), max(v["share_of_range"] or 0.0 for v in values.values())
    each = "; ".join(
        f"{name} in {count_of(int(v['rows'] or 0), 'row')}, {v['min']:g} to {v['max']:g} against "
        f"{v['training_min']:g} to {v['training_max']:g}"
        for name, v in values.items()
    )
    farthest = np.argsort(-(distance / np.where(high > low, high - low, 1.0)).max(axis=1), kind="stable")[:count]
    yield Finding(
        "R501",
        Severity.WARNING if far > FAR_OUTSIDE or count > MANY_OUTSIDE * len(rows.row) else Severity.NOTE,
        f"{count_of(count, f'{part} row')} of {len(rows.row):,} outside the training range: {each}.",
        "Predictions there are extrapolations of an exponential. Look at these rows first when scores disappoint.",
        train.name,
        first_rows(rows.row[farthest]),
        count,
        {"part": part, "covariates": values},
    )
    yield from check_boxcox_range(train, rows, part, rows.x < low)


def check_boxcox_range(train: CaseRows, rows: CaseRows, part: str, below: Mask) -> Iterator[Finding]:
    """R502: values at or below 0 after the shift of the operator fitted on the training rows."""
    for c in np.flatnonzero(below.any(axis=0)):
        name = train.covariates[c]
        try:
            shift = float(fit_boxcox(train.with_covariates((name,))).shift[0])
        except ScalingError:
            continue  # R309 says so
        here = rows.x[:, c] + shift <= 0
        count = int(here.sum())
        if count:
            lowest = float(rows.x[:, c].min())
            yield Finding(
                "R502",
                Severity.WARNING,
                f"{name} is at or below {0 - shift:g} in {count_of(count, f'{part} row')}, at lowest {lowest:g}: "
                "Box-Cox, as fitted on the training rows, cannot take it.",
                "Box-Cox trials of this case will fail on these rows; nothing is clipped. Use z-scores, or split "
                "in another way.",
                train.name,
                first_rows(rows.row[here]),
                count,
                {"part": part, "covariate": name, "shift": shift, "lowest": lowest},
            )


def check_bridges(partition: Partition) -> Iterator[Finding]:
    """R506: bridges in two parts. Earlier rows may train; validation and golden must not meet."""
    names = {part: set(getattr(partition, part)["bridge_id"].drop_nulls()) for part in ("train", *HELD_OUT)}
    both = names["validation"] & names["golden"]
    if both:
        yield Finding(
            "R506",
            Severity.WARNING,
            f"{count_of(len(both), 'bridge')} of {len(names['golden']):,} in the golden part also validate.",
            "What is chosen on the validation rows is then not confirmed on untouched bridges. Split by bridge.",
            count=len(both),
            values={"parts": list(HELD_OUT), "share": len(both) / len(names["golden"])},
        )
    trained = names["train"] & (names["validation"] | names["golden"])
    if trained:
        held = len(names["validation"] | names["golden"])
        yield Finding(
            "R506",
            Severity.NOTE,
            f"{count_of(len(trained), 'bridge')} of {held:,} held out also train, with other rows.",
            "Scores then tell how the model does on later inspections of known bridges, not on new bridges. Keep "
            "training bridges out of the other parts if new bridges are meant.",
            count=len(trained),
            values={"parts": ["train", *HELD_OUT], "share": len(trained) / held},
        )
