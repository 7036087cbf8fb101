"""Data doctor: what is in a table of transitions, what is wrong with it, and what to do, before any fit.

    transitions -> check_transitions -> Diagnosis (findings R001..., facts, notes)

A wrong table (a column missing, text for states, no rows) is an exception. Rows that no fit can take are findings
that stop the work; the other checks then go on with the rows that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from rekka.checks.engine import Finding, Severity, Subject, load_checks, run_checks, sort_findings
from rekka.checks.table import (
    Array,
    CheckedTable,
    Component,
    Components,
    any_of,
    code_categories,
    count_records,
    find_covariates,
    find_unusable,
    read_part,
    read_rows,
    split_cases,
)
from rekka.core.errors import InputError, count_of, missing_columns
from rekka.data.direction import Moves, count_moves
from rekka.data.partition import PARTS, Partition
from rekka.data.values import Scale
from rekka.model import inputs
from rekka.model.fit import one_blas_thread

VERSION = 1  # of the plain data that ``Diagnosis.to_dict`` gives
AUDIT = ("outcome", "reason", "count", "rows")
TURN = "Turn the scale round: --worst-first, or --best and --worst for numbers, or --labels, best first."


@dataclass(frozen=True)
class Diagnosis:
    """Findings about a table of transitions, the worst first, then by case.

    ``facts`` describes the table in figures, ``notes`` how it was read.

    Examples
    --------
    >>> import rekka, polars as pl
    >>> rows = rekka.simulate_transitions(900).with_columns(case=pl.lit("Deck"))
    >>> diagnosis = rekka.check_transitions(rows)
    >>> diagnosis.stops, diagnosis.facts["rows"]
    (False, 900)

    """

    findings: tuple[Finding, ...]
    facts: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether something has to be put right before a fit."""
        return self.count(Severity.STOP) > 0

    def count(self, severity: Severity) -> int:
        """Number of findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def headline(self) -> str:
        """Diagnosis in one sentence."""
        stops, warnings, notes = map(self.count, (Severity.STOP, Severity.WARNING, Severity.NOTE))
        if not stops and not warnings:
            facts = self.facts
            sizes = [count_of(facts["rows"], "transition"), count_of(facts["bridges"], "bridge")]
            return f"Fine: {' of '.join(sizes)} in {count_of(len(facts['cases']), 'component')}, no warnings."
        parts = [f"{count_of(stops, 'finding')} stop{'s' if stops == 1 else ''} the work"] if stops else []
        parts += [count_of(number, word) for number, word in ((warnings, "warning"), (notes, "note")) if number]
        return f"{', '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and for a report: numbers as they are, no markup."""
        return {
            "version": VERSION,
            "headline": self.headline(),
            "stops": self.stops,
            "findings": [finding.to_dict() for finding in self.findings],
            "facts": self.facts,
            "notes": list(self.notes),
        }

    def table(self) -> pl.DataFrame:
        """One line for each finding."""
        schema = pl.Schema(dict.fromkeys(("code", "severity", "case", "title", "message", "remedy"), pl.String()))
        schema |= {"count": pl.Int64(), "rows": pl.List(pl.Int64)}
        lines = (finding.to_dict() for finding in self.findings)
        return pl.DataFrame([{name: line[name] for name in schema} for line in lines], schema=schema)


def check_transitions(
    transitions: Any,
    *,
    covariates: Sequence[str] | None = None,
    audit: Any = None,
    notes: Sequence[str] = (),
    partition: Partition | None = None,
    scale: Scale | None = None,
    moves: Moves | None = None,
) -> Diagnosis:
    """Examine transitions before a fit.

    Parameters
    ----------
    transitions : dataframe
        bridge_id, case, state_1, state_2 (1 is the best), interval_years and covariates. Findings name rows by
        row_1, or by their place in the frame, from 0, if there is no such column.
    covariates : list of names, optional
        Default: every numeric column without another role.
    audit : dataframe, optional
        outcome, reason, count and rows: what became of the records of the table, one line for each reason.
    notes : sentences, optional
        How the table was read.
    partition : Partition, optional
        What the model can learn is then checked on the training rows, and held-out rows against them.
    scale : Scale, optional
        What the states are, as they were read: ``Transitions.scale``.
    moves : Moves, optional
        Pairs that improved and worsened, as ``Transitions.moves`` has them; by default counted in the rows and the
        audit.

    Examples
    --------
    >>> import rekka, polars as pl
    >>> rows = rekka.simulate_transitions(900).with_columns(case=pl.lit("Deck"), state_2=pl.col("state_1"))
    >>> [finding.code for finding in rekka.check_transitions(rows).findings if finding.severity == "stop"]
    ['R108']

    """
    load_checks("rekka.checks")
    frame: pl.DataFrame = inputs.as_frame(transitions).to_polars()
    names = find_covariates(frame, covariates)
    coding = code_categories(frame, names)
    frame, names = coding.code(frame.lazy()).collect() if coding else frame, coding.expand(names)
    rows = read_rows(frame, names)
    if rows.is_empty():
        raise InputError("The table has no rows. At least one transition is needed.")
    bad = find_unusable(rows, names)
    usable = rows.filter(~any_of(bad))
    labels = None if scale is None else scale.names
    cases = split_cases(usable, names, coding.terms, labels)
    held = () if partition is None else PARTS
    parts = {part: read_part(getattr(partition, part), names, coding, labels) for part in held}
    lines = _read_audit(audit)
    moves = moves or _find_moves(lines, rows)
    table = CheckedTable(rows, names, bad, cases, parts, partition, moves, lines, tuple(notes), scale)
    with one_blas_thread():
        found = [*run_checks(Subject.TABLE, table)]
        for case in cases.values():
            found += run_checks(Subject.RECORDED, case)
        for case in parts.get("train", cases).values():
            found += run_checks(Subject.TRAINING, case)
    return Diagnosis(sort_findings(found), describe(rows.height, usable, cases, partition), tuple(notes))


def _read_audit(audit: Any) -> pl.DataFrame | None:
    if audit is None:
        return None
    lines: pl.DataFrame = inputs.as_frame(audit).to_polars()
    missing = [name for name in AUDIT if name not in lines.columns]
    if missing:
        raise missing_columns(missing, lines.columns)
    return lines


def _find_moves(audit: pl.DataFrame | None, rows: pl.DataFrame) -> Moves:
    """Count the moves in the rows, and the upward ones that the audit has excluded."""
    own = count_moves(rows.lazy(), "the table")
    if audit is None:
        return own
    aside = count_records(audit, pl.col("reason").fill_null("").str.contains("(?i)upward"))
    return Moves(own.upward + aside, own.downward, TURN)


def describe(n_rows: int, usable: pl.DataFrame, cases: Components, partition: Partition | None) -> dict[str, Any]:
    """Facts: the table's rows, and its usable rows in figures, together and case by case."""
    bridges = usable.group_by("case").agg(pl.col("bridge_id").n_unique())
    of_case = dict(zip(bridges["case"], bridges["bridge_id"], strict=True))
    facts: dict[str, Any] = {
        "rows": n_rows,
        "usable_rows": usable.height,
        "bridges": usable["bridge_id"].n_unique(),
        "cases": {
            name: {"rows": len(case.row), "bridges": of_case[name], **describe_case(case)}
            for name, case in cases.items()
        },
        "partition": None,
    }
    if partition is not None:
        counts = partition.counts().with_columns(pl.col("case").cast(pl.String))
        facts["partition"] = {"scheme": partition.scheme, "rows": counts.to_dicts()}
    return facts


def describe_case(case: Component) -> dict[str, Any]:
    """States, transitions, intervals and covariates of one case in figures."""
    pairs, counts = np.unique(case.start * inputs.MOST_STATES + case.end, return_counts=True)
    return {
        "states": case.n_states,
        "transitions": [
            {
                "start": int(pair) // inputs.MOST_STATES + 1,
                "end": int(pair) % inputs.MOST_STATES + 1,
                "rows": int(count),
            }
            for pair, count in zip(pairs, counts, strict=True)
        ],
        "interval_years": summarize(case.dt),
        "covariates": {name: summarize(x) for name, x in zip(case.covariates, case.x.T, strict=True)},
    }


def summarize(values: Array) -> dict[str, float]:
    """Minimum, quartiles, maximum and mean."""
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    figures = dict(zip(("min", "q25", "median", "q75", "max"), map(float, quantiles), strict=True))
    return figures | {"mean": float(values.mean())}
