"""``find_repairs``: what stands behind ratings that improved without a recorded repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekka.core.errors import InputError, MissingColumns, count_of
from rekka.core.ratings import Ratings
from rekka.core.terminal import OnProgress, say_nothing
from rekka.data.transitions import LazyTransitions, ReadingOptions, Transitions, name_table, read_options
from rekka.fleet.models import CaseModel, choose_names
from rekka.fleet.repairs import (
    LARGE,
    BetterYear,
    Explained,
    RepairModel,
    cut_large,
    explain_visits,
    find_better_years,
    fit_repairs,
    order_rows,
    take_steps,
)
from rekka.model import inputs
from rekka.model.history_inputs import read_past_rows
from rekka.report.terminal.models import PROBABLE_REPAIR
from rekka.workflows.bridges import refuse_place, write_place
from rekka.workflows.fit import fit_components

REPAIR, SMALL, ERROR = PROBABLE_REPAIR, "probable small improvement", "probable error of inspection"
VERDICTS = (REPAIR, SMALL, ERROR)
PROBABILITIES = ("repair", "small_improvement", "error")  # columns, in the order of the verdicts
MODELS: Sequence[Mapping[str, Any]] = (  # of histories, tried in this order until one is certified
    {"errors": "adjacent", "improvements": "common", "trend": "common"},
    {"errors": "adjacent-common", "improvements": "common", "trend": "common"},
    {"errors": "adjacent-common", "improvements": "common"},
)
NONE = 1e-5  # repairs a year: fewer are none
NOTHING = "no rating is better than the one before, so there is nothing to explain"
PAIRED = (
    "The table has transitions already, and no improvement by two ratings or more: rekka transitions leaves them "
    "out unless --upward is join. Give the inspections."
)


@dataclass(frozen=True, eq=False)
class ComponentRepairs:
    """Improvements of one component, and how many of them each verdict has; or the reason why none is judged.

    ``model`` has the repairs a year and the ratings found after them, ``elements`` the options of the model of
    histories.
    """

    case: str
    pairs: int
    improvements: int
    verdicts: Mapping[str, int]
    model: RepairModel | None = None
    ratings: Ratings | None = None
    elements: str | None = None
    reason: str | None = None

    @property
    def headline(self) -> str:
        """'Main girder: 41 improvements without a record: 12 probable repairs, ...'."""
        told = f"{self.case}: {count_of(self.improvements, 'improvement')} without a record"
        if not self.improvements:
            return f"{self.case}: {NOTHING}."
        if self.reason is not None:
            return f"{told}, not judged: {self.reason}"
        parts = (
            f"{self.verdicts[REPAIR]:,} probable repair{'s' * (self.verdicts[REPAIR] != 1)}",
            f"{self.verdicts[SMALL]:,} small improvement{'s' * (self.verdicts[SMALL] != 1)}",
            f"{self.verdicts[ERROR]:,} probable error{'s' * (self.verdicts[ERROR] != 1)} of inspection",
        )
        return f"{told}: {', '.join(parts)}"

    @property
    def rates(self) -> str | None:
        """Sentence on how frequent repairs are and what they lead to; None without a model."""
        if self.model is None or self.ratings is None:
            return None
        if self.model.rate < NONE:
            return f"{self.case}: errors and small improvements explain all ratings; no repair is needed."
        known = zip(self.ratings.labels, self.model.after, strict=True)
        found = ", ".join(f"{label} ({100 * share:.0f} %)" for label, share in known if share >= 0.005)
        best, worst = self.ratings.labels[0], self.ratings.labels[-1]
        share = f"{100 * self.model.rate:.2g} % of members that are not in rating {best}"
        return f"{self.case}: {share} are repaired in a year; from rating {worst} repairs lead to {found}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        model = self.model
        return {
            "case": self.case,
            "pairs": self.pairs,
            "improvements": self.improvements,
            "verdicts": dict(self.verdicts),
            "rate": None if model is None else model.rate,
            "after": None if model is None else model.after.tolist(),
            "elements": self.elements,
            "reason": self.reason,
        }


@dataclass(frozen=True, eq=False)
class FoundRepairs:
    """Improvements without a record, the most probable repairs of each component first.

    ``table`` has a row for each: case, bridge_id, member (where members are named), date_1 and date_2 (where there
    are dates), row_1 and row_2 (rows of the table that was read, and column_1, column_2 of a wide one), rating_1
    and rating_2, improved_by (ratings), the probabilities repair, small_improvement and error, which add up to 1,
    and verdict, the largest of them. ``file`` is where it was written.
    """

    table: pl.DataFrame
    components: tuple[ComponentRepairs, ...]
    notes: tuple[str, ...] = ()
    file: Path | None = None

    @cached_property
    def counts(self) -> pl.DataFrame:
        """Number of improvements of each component by verdict."""
        rows = [
            {"case": one.case, "improvements": one.improvements}
            | {name: one.verdicts.get(name) for name in VERDICTS}
            for one in self.components
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def reasons(self) -> dict[str, str]:
        """Reasons why components with improvements are not judged."""
        return {one.case: one.reason for one in self.components if one.reason is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "components": [one.to_dict() for one in self.components],
            "table": self.table.to_dicts(),
            "notes": list(self.notes),
            "file": None if self.file is None else str(self.file),
        }


def find_repairs(
    data: Any,
    mapping: Any = None,
    *,
    only: Sequence[str] | None = None,
    covariates: Sequence[str] | None = None,
    out: str | Path | None = None,
    on_progress: OnProgress = say_nothing,
) -> FoundRepairs:
    """Find improvements of ratings that no recorded repair explains, and say what each of them probably is.

    Parameters
    ----------
    data : path, dataframe or Transitions
        Inspections; or transitions made with ``upward="keep_all"``, which have improvements of any size.
    mapping : path, dict or ReadingOptions, optional
        How to read a table that needs it; see ``read_panel``. Its rule for upward moves does not count here.
    only, covariates : list of str, optional
        Only these components, and covariates of the hazards; all by default.
    out : path, optional
        A .csv, .xlsx or .parquet file for the table.
    on_progress : callable, optional
        Called with a stage, the component, how much of it is done, and of how much.

    Returns
    -------
    FoundRepairs
        A component whose model of histories is not certified has a reason, and the others go on.

    Examples
    --------
    >>> import rekka
    >>> inventory = rekka.simulate_inventory(80, preset="plain", seed=3, error=0.12)  # no repairs
    >>> found = rekka.find_repairs(inventory.inspections, only=["Pier"])
    >>> found.counts.rows()
    [('Pier', 33, 0, 0, 33)]

    """
    reader, place = read_options(mapping), None if out is None else Path(out)
    reader = replace(reader, changes=_join_improvements(reader))
    if place is not None:
        refuse_place(place, reader.inputs(data))
    on_progress("Reading", name_table(data), 0, None)
    read = reader.sound(data)
    found = read.collect() if isinstance(read, LazyTransitions) else read
    if found.frame.is_empty():
        raise InputError("No two visits make a transition. rekka check, on the same table, says why.")
    if "history" not in found.frame.columns:
        raise MissingColumns(
            "The transitions have no column history, which says which rows of a member follow each other without "
            "a recorded repair or a gap. Give the inspections instead, or make the transitions with rekka "
            'transitions TABLE --upward keep_all --out FILE (in Python pair_visits(panel, upward="keep_all")).',
            missing=["history"],
            present=found.frame.columns,
        )
    cases = choose_names(found.frame["case"].unique().sort().to_list(), only)
    frame = order_rows(found.frame.filter(pl.col("case").is_in(cases)))
    improving = frame.filter(pl.col("state_2") < pl.col("state_1"))["case"].unique().sort().to_list()
    work = _Work(replace(found, frame=frame), covariates, reader, on_progress)
    done = [work.judge(case, case in improving) for case in cases]
    tables = [table for _, table in done if table is not None]
    result = FoundRepairs(
        pl.concat(tables) if tables else _list_nothing(frame),
        tuple(one for one, _ in done),
        work.list_notes(),
        place,
    )
    if place is not None:
        write_place(place, result.table, "repairs")
    return result


def _join_improvements(reader: ReadingOptions) -> dict[str, Any]:
    """Sections that overrule the mapping, with improvements of any size kept."""
    return dict(reader.changes) | {"rules": dict(reader.changes.get("rules", {})) | {"upward": "keep_all"}}


@dataclass(frozen=True)
class _Work:
    """Work on every component: the model of histories, the repairs, the improvements."""

    found: Transitions
    covariates: Sequence[str] | None
    reader: ReadingOptions
    on_progress: OnProgress

    def judge(self, case: str, improves: bool) -> tuple[ComponentRepairs, pl.DataFrame | None]:
        """Judge the improvements of a component; without a certified model there is no table."""
        rows = self._take(case)
        better = int((rows["state_2"] < rows["state_1"]).sum())
        one = ComponentRepairs(case, len(rows), better, dict.fromkeys(VERDICTS, 0))
        if not improves:
            return one, None
        model, elements, reason = self._fit(case, rows)
        if model is None:
            return replace(one, reason=reason, verdicts={}), None
        ratings = Ratings.of(model.labels, model.fit.n_states)
        self.on_progress("Explaining improvements", case, 0, None)
        try:
            repairs, table = _explain(model, rows)
        except InputError as error:
            return replace(one, reason=ratings.reword(str(error)), verdicts={}), None
        counts = {name: int((table["verdict"] == name).sum()) for name in VERDICTS}
        return replace(one, verdicts=counts, model=repairs, ratings=ratings, elements=elements), table

    def _fit(self, case: str, rows: pl.DataFrame) -> tuple[CaseModel | None, str | None, str | None]:
        """The first model of histories that is certified, with its elements; or why the last one is not."""
        reason, cut = None, replace(self.found, frame=cut_large(rows))
        if cut.frame.is_empty():
            return None, None, f"every pair of visits improves by {LARGE} ratings or more."
        reader = ReadingOptions(allow=self.reader.allow)
        for elements in MODELS:
            if "trend" in elements and "date_1" not in rows.columns:
                continue
            fits = fit_components(
                cut, reader, covariates=self.covariates, on_progress=self.on_progress, **elements
            )
            reason = fits.reasons.get(case)
            if reason is not None:
                continue
            model = fits.to_models().models[0]
            if model.certified:
                return model, ", ".join(f"{name} {value}" for name, value in elements.items()), None
            told = Ratings.of(model.labels, model.fit.n_states).reword_all(model.fit.certificate.reasons)
            reason = f"the model of histories has no certified maximum: {'; '.join(told)}"
        return None, None, reason

    def list_notes(self) -> tuple[str, ...]:
        """Ratings that were merged, years that are odd, and what the table does not have."""
        found = self.found
        large = found.frame.select((pl.col("state_2") <= pl.col("state_1") - LARGE).any()).item()
        cases = found.frame["case"].unique().sort().to_list()
        years = [_say_year(case, one) for case in cases for one in find_better_years(self._take(case))]
        merged = [] if found.reading is None else found.reading.explain_merges()
        return (*merged, *years, *(() if found.audit is not None or large else (PAIRED,)))

    def _take(self, case: str) -> pl.DataFrame:
        return self.found.frame.filter(pl.col("case") == case)


def _say_year(case: str, one: BetterYear) -> str:
    """Sentence on a year with many improvements."""
    return (
        f"{case}: {one.improved:,} of {one.pairs:,} ratings of {one.year} are better than the ones before "
        f"({100 * one.improved / one.pairs:.0f} %; {100 * one.elsewhere:.0f} % in other years). So many at once "
        "point to a changed manual, index or inspector rather than to repairs."
    )


def _explain(model: CaseModel, rows: pl.DataFrame) -> tuple[RepairModel, pl.DataFrame]:
    """Repairs of a component, and the table of its improvements."""
    fit = model.fit
    columns = inputs.Columns("state_1", "interval_years", fit.covariates, fit.coding)
    names = [name for name in ("bridge_id", "member", "history") if name in rows.columns]
    chain = read_past_rows(fit, inputs.as_frame(rows), rows["state_2"], columns, rows.select(names), None)
    steps = take_steps(fit, chain)
    repairs = fit_repairs(fit, steps)
    explained = explain_visits(steps, repairs)
    place = np.argsort(steps.row)  # rows in their order
    ratings = Ratings.of(model.labels, fit.n_states)
    return repairs, _list_rows(rows, Explained(*(part[place] for part in explained)), ratings)


def _list_rows(rows: pl.DataFrame, explained: Explained, ratings: Ratings) -> pl.DataFrame:
    """Improvements, the most probable repairs first."""
    largest = np.argmax(np.stack(explained), axis=0)
    found = rows.with_columns(
        *(pl.Series(name, part) for name, part in zip(PROBABILITIES, explained, strict=True)),
        pl.Series("verdict", [VERDICTS[place] for place in largest.tolist()]),
        *(
            pl.Series(f"rating_{end}", [ratings.labels[state - 1] for state in rows[f"state_{end}"].to_list()])
            for end in (1, 2)
        ),
        improved_by=pl.col("state_1").cast(pl.Int64) - pl.col("state_2").cast(pl.Int64),
    )
    found = found.filter(pl.col("improved_by") > 0)
    return found.select(_name_columns(found)).sort("repair", descending=True, maintain_order=True)


WHERE = ("case", "bridge_id", "member", "date_1", "date_2", "row_1", "row_2", "column_1", "column_2")
WHAT = {"rating_1": pl.String, "rating_2": pl.String, "improved_by": pl.Int64}


def _name_columns(frame: pl.DataFrame) -> list[str]:
    return [*(name for name in WHERE if name in frame.columns), *WHAT, *PROBABILITIES, "verdict"]


def _list_nothing(frame: pl.DataFrame) -> pl.DataFrame:
    """The table without rows."""
    known = {name: frame.schema[name] for name in WHERE if name in frame.columns}
    return pl.DataFrame(schema=known | WHAT | dict.fromkeys(PROBABILITIES, pl.Float64) | {"verdict": pl.String})
