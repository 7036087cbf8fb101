"""Checks on a partition: held-out rows against the training rows of their component, and bridges in two parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rekka.checks.components import fit_boxcox
from rekka.checks.engine import Finding, Severity, Subject, check, find
from rekka.checks.table import CheckedTable, Component, Mask
from rekka.core.errors import ScalingError
from rekka.core.language import say

HELD_OUT = ("validation", "golden")
FAR_OUTSIDE = 0.10  # of the training range
MANY_OUTSIDE = 0.05  # share of the held-out rows


@check(Subject.TABLE, R504=Severity.STOP, R505=Severity.WARNING)
def check_parts(table: CheckedTable) -> Iterator[Finding]:
    """Components without rows in a part."""
    if table.partition is None:
        return
    train = table.parts["train"]
    for name in sorted(set(table.cases).union(*table.parts.values())):
        held = {part: table.parts[part][name] for part in HELD_OUT if name in table.parts[part]}
        if name not in train:
            yield find(
                Severity.STOP,
                "found" if held else "nowhere",
                code="R504",
                case=name,
                count=sum(len(rows.row) for rows in held.values()),
                each=[say(f"check.R504.{part}", n=len(rows.row)) for part, rows in held.items()],
            )
            continue
        empty = [part for part in HELD_OUT if part not in held]
        if empty:
            parts = [say(f"check.R505.{part}") for part in empty]
            values = {"parts": empty}
            yield train[name].find(Severity.WARNING, code="R505", count=len(empty), values=values, empty=parts)


@check(Subject.TABLE, R501=Severity.WARNING, R502=Severity.WARNING, R503=Severity.WARNING)
def check_held_out(table: CheckedTable) -> Iterator[Finding]:
    """Held-out rows against the training rows of their component."""
    for name, train in table.parts.get("train", {}).items():
        for part in HELD_OUT:
            rows = table.parts[part].get(name)
            if rows is not None:
                yield from _find_unsupported(train, rows, part)
                yield from _find_outside(train, rows, part)


def _find_unsupported(train: Component, rows: Component, part: str) -> Iterator[Finding]:
    """R503: states beyond the training K."""
    here = (rows.end >= train.n_states) | (rows.start >= train.n_states)
    count = int(here.sum())
    if count:
        yield train.find(
            Severity.WARNING,
            code="R503",
            rows=rows.row[here],
            count=count,
            values={"part": part, "training_states": train.n_states, "states": rows.n_states},
            training_states=train.name_ratings(train.n_states - 1),
            of=say(f"count.{part}_row", n=len(rows.row)),
        )


def _find_outside(train: Component, rows: Component, part: str) -> Iterator[Finding]:
    """R501: covariates outside the training range; those below it may be R502 too."""
    train, rows = train.numbers, rows.numbers
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
    farthest = np.argsort(-(distance / np.where(high > low, high - low, 1.0)).max(axis=1), kind="stable")[:count]
    yield train.find(
        Severity.WARNING if far > FAR_OUTSIDE or count > MANY_OUTSIDE * len(rows.row) else Severity.NOTE,
        code="R501",
        rows=rows.row[farthest],
        count=count,
        values={"part": part, "covariates": values},
        here=say(f"count.{part}_row", n=count),
        of=len(rows.row),
        each=[say("check.R501.covariate", name=name, **figures) for name, figures in values.items()],
    )
    yield from _find_untransformed(train, rows, part, rows.x < low)


def _find_untransformed(train: Component, rows: Component, part: str, below: Mask) -> Iterator[Finding]:
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
            yield train.find(
                Severity.WARNING,
                code="R502",
                rows=rows.row[here],
                count=count,
                values={"part": part, "covariate": name, "shift": shift, "lowest": lowest},
                limit=0 - shift,
                here=say(f"count.{part}_row", n=count),
            )


@check(Subject.TABLE, R506=Severity.WARNING)
def check_bridges(table: CheckedTable) -> Iterator[Finding]:
    """Bridges in two parts. Earlier rows may train; validation and golden must not meet."""
    if table.partition is None:
        return
    parts = ("train", *HELD_OUT)
    names = {part: set(getattr(table.partition, part)["bridge_id"].drop_nulls()) for part in parts}
    both, held = names["validation"] & names["golden"], names["validation"] | names["golden"]
    if both:
        values = {"parts": list(HELD_OUT), "share": len(both) / len(names["golden"])}
        yield find(Severity.WARNING, count=len(both), values=values, of=len(names["golden"]))
    trained = names["train"] & held
    if trained:
        values = {"parts": list(parts), "share": len(trained) / len(held)}
        yield find(Severity.NOTE, "trained", do="known", count=len(trained), values=values, of=len(held))
