"""``backtest``: a model fitted to what was known at some moment, its forecasts held against what was found later.

Forecasts start from each member's last visit by the moment, with the state and the covariates it had then, and go
to every later visit of its chain, however far off. They are scored beside saying that nothing changes and beside
the model without covariates; and the numbers in each state are held against those expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekka.core.errors import BadOption, bad_option, missing_columns
from rekka.core.files import has_columns, make_folder, write_text, write_whole
from rekka.core.folders import check_folder
from rekka.core.seals import plain
from rekka.core.sheets import to_parquet, write_csv
from rekka.data.direction import refuse_upside_down
from rekka.data.options import ReadingOptions
from rekka.data.transitions import refuse_text
from rekka.evaluation.calibration import MOST_TESTED, tell_untested
from rekka.fleet import backtest_losses, backtest_scores, backtest_totals
from rekka.fleet.backtest_case import CaseResult, Settings, run_case
from rekka.fleet.backtest_rows import link_chains, prepare, read_cut, read_records
from rekka.fleet.backtest_words import tell_case, tell_traffic
from rekka.fleet.models import tell_misfit
from rekka.forecast.ageing import ADVANCES, AGES
from rekka.forecast.uncertainty import FEWEST
from rekka.model.clock import MIDDLE, make_clock
from rekka.model.fit import Options, check_options
from rekka.model.tables import check_level

DRAWS = 500
CASES: dict[str, Any] = {
    "case": pl.String, "certified": pl.Boolean, "reason": pl.String, "covariates": pl.List(pl.String),
    "constant": pl.List(pl.String), "states": pl.Int64, "threshold": pl.Int64, "training_rows": pl.Int64,
    "training_bridges": pl.Int64, "members": pl.Int64, "visits": pl.Int64, "beyond_states": pl.Int64,
    "outside_range": pl.Int64, "lost_members": pl.Int64, "lost_visits": pl.Int64,
    "fit_p_value": pl.Float64, "misfit": pl.String, "summary": pl.String,
}  # fmt: skip
HEAD: dict[str, Any] = {"case": pl.String, "certified": pl.Boolean}
SCHEMAS = {"scores": backtest_scores.SCHEMA, "totals": backtest_totals.SCHEMA}
TABLES = ("cases", "scores", "totals", "lost")
FILES = ("scores.csv", "totals.csv", "lost.csv", "cases.csv", "forecasts.parquet", "backtest.json")


@dataclass(frozen=True, eq=False)
class Backtest:
    """What a model fitted to the rows up to ``until`` forecast, and what came of it.

    ``cases``      what became of each case, in figures and, in ``summary``, in words
    ``scores``     by (all, horizon in years, year or visit of the later visit), group, score, forecaster; ``less``
                   names the forecaster that is taken off, for a difference; mean, low, high; visits, bridges
    ``totals``     by (all, year or visit, all up to it, start: the state at the origin), group, state or, where
                   ``or_worse``, it and all worse: visits, observed, expected, predicted_low, predicted_high,
                   inside; what the model without covariates expected, and what there would be if nothing changed
    ``lost``       visits that no forecast is held against: case, reason, members, visits
    ``forecasts``  a row for each visit that was forecast: origin, horizon, state, observed, p_1 to p_K

    Lines of a model that is no certified maximum have ``certified`` false, and no prediction intervals.
    """

    until: str
    since: str | None
    age: str
    level: float
    draws: int
    seed: int
    scaling: str
    ridge: float
    clock: str
    cases: pl.DataFrame
    scores: pl.DataFrame
    totals: pl.DataFrame
    lost: pl.DataFrame
    forecasts: pl.DataFrame
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All but the single forecasts as plain data."""
        names = ("until", "since", "age", "level", "draws", "seed", "scaling", "ridge", "clock")
        out: dict[str, Any] = {name: getattr(self, name) for name in names} | {"notes": list(self.notes)}
        return out | {name: getattr(self, name).to_dicts() for name in TABLES}

    def write(self, folder: Path) -> None:
        """Write the tables, as CSV for a spreadsheet and as Parquet and JSON for programs."""
        make_folder(folder)
        for name in ("scores", "totals", "lost", "cases"):
            write_csv(folder / f"{name}.csv", getattr(self, name))
        write_whole(folder / "forecasts.parquet", to_parquet(self.forecasts))
        text = json.dumps(plain(self.to_dict()), ensure_ascii=False, indent=1, default=str, allow_nan=False)
        write_text(folder / "backtest.json", text + "\n")

    def __str__(self) -> str:
        return "\n\n".join([f"Backtest of a model fitted up to {self.until}", *self.notes, *self.cases["summary"]])


def backtest(
    data: Any,
    *,
    until: Any = None,
    until_visit: int | None = None,
    since: Any = None,
    cases: Sequence[str] | None = None,
    covariates: Sequence[str] | None = None,
    scaling: Any = "zscore",
    ridge: float = 0.0,
    age: str = ADVANCES,
    advance: Sequence[str] | None = None,
    clock: str = MIDDLE,
    threshold: int | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    test_fit: bool | None = None,
    allow: Sequence[str] = (),
    reading: ReadingOptions | None = None,
    out: str | Path | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Backtest:
    """Fit each case to the transitions that end by a moment, forecast its later visits, and score the forecasts.

    Parameters
    ----------
    data : Transitions, Panel, path or dataframe
        Transitions, or inspections as ``read_panel`` reads them. Only a panel knows all visits that were set
        aside, so that only with one all lost visits can be counted.
    until : date, str or int
        The last day that the model may know of: 2008-12-31, or 2008 for the last day of that year.
    until_visit : int
        Instead of it, the last round of inspections.
    since : date, str or int, optional
        Only transitions that begin on this day or later train: where rates have changed, old ones mislead.
    cases, covariates : list of str, optional
        Only these.
    scaling, ridge
        As for ``ExponentialHazardMarkovModel``.
    age : "advances", "held" or "fixed"
        Whether ages go on with the years of a forecast, do so up to the oldest of the training rows, or stay.
    advance : list of str, optional
        Covariates that are ages; by default those that are called so.
    clock : "middle" or "start"
        Where in an interval ages are taken by the fit, as for ``ExponentialHazardMarkovModel``.
    threshold : int, optional
        The state at or beyond which visits are counted; 4, or K where there are fewer.
    level : float
        Of all intervals.
    draws : int
        Sets of coefficients for the prediction intervals of totals; at least 100.
    seed : int
        The same seed gives the same result.
    test_fit : bool, optional
        Whether to test each model on its training rows. Default: for up to 50 components.
    allow : list of str
        Codes of checks that do not stop the work: "R109", more moves go up than down.
    reading : ReadingOptions, optional
        How tables are read; with it, inspections in files are read as a panel.
    out : path, optional
        A folder for the tables, as CSV, Parquet and JSON; only an earlier backtest is written over.
    on_progress : callable, optional
        Called with the case, how many networks have been drawn for it, and of how many.

    """
    cut, folder = read_cut(until, until_visit, since), None if out is None else Path(out)
    if folder is not None:
        _refuse_place(folder, (reading or ReadingOptions()).inputs(data))
    records = read_records(data, reading)
    refuse_upside_down(records.found.moves, allow)
    frame, notes = prepare(records, cut, cases)
    used = tuple(records.found.covariates if covariates is None else covariates)
    names = frame["case"].unique().sort().to_list()
    settings = Settings(
        cut=cut,
        covariates=used,
        options=Options(scaling=scaling, ridge=ridge, seed=seed, clock=clock),
        age=age,
        advance=None if advance is None else tuple(advance),
        threshold=threshold,
        level=level,
        draws=draws,
        seed=seed,
        test_fit=len(names) <= MOST_TESTED if test_fit is None else test_fit,
    )
    _check(settings, frame)
    results, lost = [], []
    for name in names:
        rows = frame.filter(case=name)
        chains = link_chains(rows, cut)
        lost.append(backtest_losses.count_losses(records, rows, chains, cut))
        results.append(run_case(name, rows, chains, settings, partial(on_progress or _say_nothing, name)))
    losses = pl.concat(lost) if lost else pl.DataFrame(schema=backtest_losses.SCHEMA)
    untested = [tell_untested(len(names))] if test_fit is None and not settings.test_fit else []
    notes = (*notes, *tell_traffic(used, cut), *untested)
    labels = None if records.found.scale is None else records.found.scale.names
    found = _conclude(results, losses, settings, notes, labels, whole=records.panel is not None)
    if folder is not None:
        found.write(folder)
    return found


def _refuse_place(folder: Path, inputs: Sequence[Path]) -> None:
    """Refuse a folder with files of the same names, unless they are of an earlier backtest, by its scores."""
    scores = folder / FILES[0]
    ours = scores.is_file() and has_columns("case", "forecaster", "score", "less")(scores)
    check_folder(folder, [folder / name for name in FILES], inputs, lambda _: ours)


def _say_nothing(case: str, done: int, total: int) -> None:
    """Nobody looks on."""


def _check(settings: Settings, frame: pl.DataFrame) -> None:
    """Refuse what would be wrong for every case."""
    check_options(settings.options)
    check_level(settings.level)
    missing = [name for name in settings.covariates if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    refuse_text(frame.lazy(), settings.covariates, "the table")
    if settings.age not in AGES:
        raise bad_option("age", settings.age, AGES)
    make_clock(settings.covariates, settings.options.clock, settings.advance)
    for option, least in (("draws", FEWEST), ("threshold", 2)):
        value = getattr(settings, option)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise BadOption(
                f"{option} is {value!r}; a whole number of at least {least} is needed.", option=option, value=value
            )


def _conclude(
    results: Sequence[CaseResult],
    lost: pl.DataFrame,
    settings: Settings,
    notes: tuple[str, ...],
    labels: Sequence[str] | None,
    *,
    whole: bool,
) -> Backtest:
    """The results of all cases in one value."""
    told = [
        tell_case(one, lost.filter(case=one.name), settings.cut, settings.level, settings.threshold, whole)
        for one in results
    ]
    options = settings.options
    return Backtest(
        until=settings.cut.words,
        since=None if settings.cut.since is None else str(settings.cut.since),
        age=settings.age,
        level=settings.level,
        draws=settings.draws,
        seed=settings.seed,
        scaling=str(options.scaling),
        ridge=float(options.ridge),
        clock=options.clock,
        cases=_tabulate_cases(results, lost, told, labels),
        scores=_join(results, "scores"),
        totals=_join(results, "totals"),
        lost=lost,
        forecasts=_join(results, "forecasts"),
        notes=notes,
    )


def _join(results: Sequence[CaseResult], table: str) -> pl.DataFrame:
    """A table of all cases, under the case's name; it has its columns even where it has no rows."""
    frames = [pl.DataFrame(schema=HEAD | SCHEMAS.get(table, {}))]
    for one in results:
        found: pl.DataFrame | None = getattr(one, table)
        if found is not None:
            head = (pl.lit(one.name).alias("case"), pl.lit(one.certified, pl.Boolean).alias("certified"))
            frames.append(found.select(*head, pl.all()))
    return pl.concat(frames, how="diagonal")


def _tabulate_cases(
    results: Sequence[CaseResult], lost: pl.DataFrame, told: Sequence[str], labels: Sequence[str] | None
) -> pl.DataFrame:
    rows = []
    for one, summary in zip(results, told, strict=True):
        gone = lost.filter(case=one.name)
        rows.append({
            "case": one.name, "certified": one.certified, "reason": one.reason or "; ".join(one.flaws) or None,
            "covariates": list(one.covariates), "constant": list(one.constant), "states": one.n_states,
            "threshold": one.threshold, "training_rows": one.rows, "training_bridges": one.bridges,
            "members": one.members, "visits": one.visits, "beyond_states": one.beyond,
            "outside_range": one.outside, "lost_members": int(gone["members"].sum()),
            "lost_visits": int(gone["visits"].sum()), "misfit": tell_misfit(one.name, one.fit_test, labels),
            "fit_p_value": None if one.fit_test is None else one.fit_test.p_value, "summary": summary,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=CASES)
