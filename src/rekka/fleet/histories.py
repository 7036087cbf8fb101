"""Options of a fit of histories, and the rows that it takes: visits paired with improvements, in histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rekka.core.errors import BadOption, BadValues, MissingColumns, count_of, missing_columns, name_some
from rekka.data.mapping import load_mapping
from rekka.data.transitions import ReadingOptions
from rekka.model.clock import MIDDLE
from rekka.model.elements import ADJACENT, ADJACENT_COMMON, GAMMA, GIVEN, NEW, read_elements
from rekka.model.fit import Fit, Options, check_options
from rekka.model.history_inputs import ELEMENTS, uses_histories
from rekka.model.inputs import HALF_LIFE_NEEDS

BRIDGE, MEMBER = "bridge", "member"  # what a frailty belongs to, unless it is a column of the table
IDENTITY = ("bridge_id", "member", "history")  # columns that identify a history together
TIMES = ("date_1", "visit_1")  # columns by which the rows of a history are in order
REPAIRED = "improves without explanation"
MANY = 5  # groups and bridges named in a message
NO_TEST = "The test of fit is not made for models of histories; rekka backtest judges them by later visits."
NO_WEIGHTED_TEST = (
    "The test of fit is not made with a half-life: weighted rows do not have the frequencies of the model."
)


class CutRows(NamedTuple):
    """Rows of a component in order of time, with what identifies histories and groups.

    ``excluded`` counts improvements that the elements do not explain, which are left out as repairs.
    """

    rows: pl.DataFrame
    histories: pl.DataFrame
    groups: pl.Series
    excluded: int


@dataclass(frozen=True)
class HistoryOptions:
    """Elements of a model of histories, as ``ExponentialHazardMarkovModel`` has them, and what a frailty is of.

    ``frailty_by`` is bridge, member (each member of a bridge by itself), or a column of the table. ``half_life``
    weights the visits of histories or, without any element, pairs.
    """

    errors: Any = None
    frailty: str | None = None
    frailty_by: str | None = None
    improvements: str | None = None
    trend: str | None = None
    clock: str = MIDDLE
    first: Any = GIVEN
    half_life: float | None = None

    def __post_init__(self) -> None:
        """Read probabilities of the first state that are given as text, as on the command line."""
        if isinstance(self.first, str) and "," in self.first:
            try:
                object.__setattr__(self, "first", [float(one) for one in self.first.split(",")])
            except ValueError:
                raise BadOption(
                    f"first is {self.first!r}; given, new, or a probability for each rating such as 0.6,0.3,0.1 "
                    "is needed.",
                    option="first",
                    value=self.first,
                ) from None

    @classmethod
    def of(cls, fit: Fit) -> HistoryOptions:
        """Elements that a model was fitted with, for another fit of other rows."""
        if fit.records is None:
            return cls()
        elements = fit.records.elements
        errors: Any = elements.pattern
        near = read_elements(fit.n_states, errors=ADJACENT).pattern
        if errors is not None and near is not None and np.array_equal(errors, near):
            errors = ADJACENT_COMMON if elements.common_errors else ADJACENT
        return cls(
            errors,
            GAMMA if elements.frailty else None,
            fit.records.by if elements.frailty else None,
            elements.improvements,
            elements.trend,
            fit.clock.kind,
            elements.first if elements.probabilities is None else elements.probabilities.tolist(),
        )

    @property
    def estimator(self) -> dict[str, Any]:
        """Options of the estimator."""
        return {name: getattr(self, name) for name in (*ELEMENTS, "clock", "half_life")}

    @property
    def words(self) -> str:
        """The elements that are on, as options: "errors adjacent, trend common"."""
        usual = NO_HISTORIES.estimator
        return ", ".join(f"{name} {value}" for name, value in self.estimator.items() if value != usual[name])

    @property
    def on(self) -> bool:
        """Whether the fit is one of histories; values that an option does not have are refused."""
        return uses_histories(self.estimator)

    @property
    def refits(self) -> bool:
        """Whether models are to be fitted with these options: of histories, or of pairs with weights."""
        return self.on or self.half_life is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on weights, and on why there is no test of fit."""
        years = self.half_life
        said = () if years is None else (f"A visit {years:g} years before the last one has half its weight.",)
        return (*said, *((NO_TEST,) if self.on else (NO_WEIGHTED_TEST,) if years is not None else ()))

    @property
    def explains_improvements(self) -> bool:
        """Whether a rating can become better under these elements."""
        return self.errors is not None or self.improvements is not None

    @property
    def column(self) -> str:
        """Column of transitions that a frailty belongs to; of a member, ``bridge_id`` is part of its name."""
        by = self.frailty_by or BRIDGE
        return "bridge_id" if by == BRIDGE else by

    def refuse(self, given: Mapping[str, Any]) -> None:
        """Refuse what fits of histories do not have, before any work; ``given`` has the other options."""
        if self.frailty_by is not None and self.frailty is None:
            raise BadOption(
                f"frailty_by is {self.frailty_by!r}, and no frailty is asked for. Add --frailty gamma "
                '(frailty="gamma"), or leave it out.',
                option="frailty_by",
                value=self.frailty_by,
            )
        if self.half_life is not None:
            check_options(Options(half_life=self.half_life))
            if given.get("cluster"):
                raise BadOption(
                    "cluster is given, and weights by date (half_life) need the rows in memory. Leave one out.",
                    option="cluster",
                )
        if not self.on:
            return
        unknown = {
            "bootstrap": "intervals come from the standard errors of the fit",
            "ridge": "it has no penalty",
            "cluster": "its rows are held in memory here",
        }
        for option, why in unknown.items():
            if given.get(option):
                raise BadOption(
                    f"{option} is {given[option]!r}, which a fit of histories (errors, frailty, improvements, "
                    f"trend, first, running clock) does not take: {why}. Leave it out, or fit pairs.",
                    option=option,
                    value=given[option],
                )

    def reader(self, reader: ReadingOptions, upward: str = "keep") -> ReadingOptions:
        """Reading options that keep improvements, by one or all, and the column that a frailty belongs to."""
        plan = load_mapping(None, reader.changes) if reader.nbi else load_mapping(reader.mapping, reader.changes)
        rule = plan.rules.upward
        if "upward" in plan.rules.model_fields_set and rule not in ("keep", upward):
            raise BadOption(
                f"upward is {rule!r}, and a fit of histories takes improvements by one rating and starts another "
                "history after larger ones (keep). Leave --upward out, or fit pairs.",
                option="upward",
                value=rule,
            )
        changes = dict(reader.changes)
        changes["rules"] = dict(changes.get("rules", {})) | {"upward": upward}
        if self.column not in ("bridge_id", MEMBER):
            if reader.nbi:
                raise BadOption(
                    f"frailty_by is {self.frailty_by!r}; of National Bridge Inventory files a frailty belongs to "
                    "the bridge. Leave it out.",
                    option="frailty_by",
                    value=self.frailty_by,
                )
            kept = [*plan.columns.keep, *([] if self.column in plan.columns.asked else [self.column])]
            changes["columns"] = dict(changes.get("columns", {})) | {"keep": list(dict.fromkeys(kept))}
        return replace(reader, changes=changes)

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a table of transitions that lacks dates, or what says which rows belong together."""
        if self.half_life is not None and "date_1" not in columns:
            raise missing_columns(["date_1"], columns, f"the table, and {HALF_LIFE_NEEDS}")
        if not self.on:
            return
        if "history" not in columns:
            raise MissingColumns(
                "The transitions have no column history, which says which rows of a member follow each other "
                "without a repair or a gap. Give the inspections instead, or make the transitions with rekka "
                'transitions TABLE --upward keep --out FILE (in Python pair_visits(panel, upward="keep")). Where '
                "each row is to be by itself, add a column history that numbers the rows.",
                missing=["history"],
                present=list(columns),
            )
        if self.trend is not None and "date_1" not in columns:
            raise missing_columns(["date_1"], columns, "the table, and a trend needs the date of each first visit")
        if self.column not in columns:
            if self.column == MEMBER:
                raise MissingColumns(
                    "frailty_by is 'member', and the table does not name members of one bridge: its component is "
                    "one. Leave it out, or say which column it is with --member COLUMN.",
                    missing=[MEMBER],
                )
            raise missing_columns([self.column], columns, "the table, and the frailty is to be by it")

    def cut(self, rows: pl.DataFrame) -> CutRows:
        """Put the rows of a component in order, and say which belong together."""
        names = [name for name in IDENTITY if name in rows.columns]
        times = [name for name in TIMES if name in rows.columns][:1]
        rows = rows.sort(*names, *times, maintain_order=True) if times else rows
        if isinstance(self.first, str) and self.first == NEW:
            self._refuse_later(rows, names)
        repaired = self._find_repaired(rows, names)
        excluded = int(repaired.sum())
        if excluded:  # another history begins after each, as after any repair
            rows = _begin_after(rows, repaired, names)
        return CutRows(rows, rows.select(names), self._group(rows), excluded)

    def _find_repaired(self, rows: pl.DataFrame, names: Sequence[str]) -> pl.Series:
        """Rows that improve as the elements cannot explain.

        Without errors and improvements these are all improvements. With errors by one rating alone, a rating more
        than two better than the worst one before: the true state was at least the worst less one.
        """
        if not self.explains_improvements:
            return rows.select(pl.col("state_2") < pl.col("state_1")).to_series()
        found = pl.repeat(False, len(rows), eager=True, dtype=pl.Boolean)
        if not isinstance(self.errors, str) or self.improvements is not None:
            return found
        while True:  # the first of each history; what follows it is judged by itself
            own = rows.select(*names, "state_1", "state_2", found.alias(REPAIRED))
            own = own.with_columns(past=_count_past(own, names))
            worst = pl.when(~pl.col(REPAIRED)).then("state_1").cum_max().over(*names, "past")
            own = own.with_columns(
                odd=((pl.col("state_2") < worst - 2) & ~pl.col(REPAIRED)).fill_null(value=False)
            )
            first = pl.col("odd").cast(pl.Int64).cum_sum().over(*names, "past") == 1
            more = own.select(pl.col("odd") & first).to_series()
            if not more.any():
                return found
            found |= more

    def explain_excluded(self, excluded: int) -> str:
        """Sentence on improvements that are left out as repairs."""
        if not self.explains_improvements:
            return (
                f"{count_of(excluded, 'improvement')} by one rating left out as repairs: without errors of "
                "inspection or small repairs (--errors, --improvements) the model has none."
            )
        return (
            f"{count_of(excluded, 'improvement')} left out as repairs: the rating is more than two better than "
            "the worst one before, which errors by one rating do not explain (--improvements common can)."
        )

    def _refuse_later(self, rows: pl.DataFrame, names: Sequence[str]) -> None:
        """Refuse histories that begin after a repair or a gap, where members are to be followed from new."""
        member = [name for name in names if name != "history"]
        own = pl.lit(1) if rows["history"].dtype.is_integer() else pl.col("history").first().over(member)
        later = pl.col("history") != own
        if not self.explains_improvements:
            later |= (pl.col("state_2") < pl.col("state_1")).any().over(member)
        bridges = rows.filter(later)["bridge_id"].unique().sort().cast(pl.String).to_list()
        if bridges:
            raise BadOption(
                "first is 'new', which takes members for new at age 0, and histories of "
                f"{count_of(len(bridges), 'bridge')} ({name_some(bridges, MANY)}) begin after a repair, an "
                "improvement or a gap. Use first 'given', or leave such histories out: rekka transitions TABLE "
                "--upward keep writes them with a column history, of which 1 is a member's first.",
                option="first",
                value=NEW,
            )

    def _group(self, rows: pl.DataFrame) -> pl.Series:
        """Group of each row under the name of its column, the same within a history."""
        if self.column == MEMBER:
            return rows.select(pl.format("{} / {}", "bridge_id", MEMBER).alias(MEMBER)).to_series()
        group = rows[self.column]
        if group.null_count():
            bridges = name_some(rows.filter(group.is_null())["bridge_id"].unique().sort().to_list(), MANY)
            raise BadValues(
                f"{self.column} is missing in {count_of(group.null_count(), 'row')} (bridges {bridges}), and the "
                "frailty is to be by it. Fill it in, or leave these bridges out.",
                column=self.column,
            )
        names = [name for name in IDENTITY if name in rows.columns]
        several = rows.group_by(names).agg(pl.col(self.column).unique()) if self.column not in names else None
        mixed = None if several is None else several.filter(pl.col(self.column).list.len() > 1)
        if mixed is not None and not mixed.is_empty():
            one = mixed.sort(names).row(0, named=True)
            values = name_some(sorted(map(str, one[self.column])), MANY)
            raise BadValues(
                f"{self.column} changes within {len(mixed):,} {'history' if len(mixed) == 1 else 'histories'} "
                f"(first at bridge {one['bridge_id']}: {values}), and a frailty belongs to one value of it. Use a "
                "column that stays, such as a district or a type.",
                column=self.column,
            )
        return group


def leave_out_far(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without improvements by two ratings or more, which ``upward="keep_all"`` leaves in.

    Those count as unrecorded repairs: another history begins after each.
    """
    names = [name for name in IDENTITY if name in rows.columns]
    order = [name for name in TIMES if name in rows.columns][:1]
    rows = rows.sort(*names, *order, maintain_order=True)
    far = rows.select(pl.col("state_2").cast(pl.Int64) < pl.col("state_1").cast(pl.Int64) - 1).to_series()
    return _begin_after(rows, far, names)


def _begin_after(rows: pl.DataFrame, repaired: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Rows without the repaired ones; another history begins after each of these, as after any repair.

    Rows are in order of history and time; histories are numbered from 1 within each member.
    """
    member = [name for name in names if name != "history"]
    past = _count_past(rows.with_columns(repaired.alias(REPAIRED)), names)
    rows = rows.with_columns(past.alias(REPAIRED))
    begins = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift().over(member)) for name in ("history", REPAIRED)
    )
    return rows.with_columns(history=begins.cast(pl.Int64).cum_sum().over(member)).drop(REPAIRED).filter(~repaired)


def _count_past(rows: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Number of repaired rows of its history up to each row."""
    return rows.select(pl.col(REPAIRED).cast(pl.Int64).cum_sum().over(names)).to_series()


NO_HISTORIES = HistoryOptions()
ANY_ELEMENT = HistoryOptions(errors=ADJACENT)  # what rows need for some model of histories
