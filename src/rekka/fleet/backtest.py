"""``backtest``: fit a model to what was known at some moment, and score its forecasts on what was found later.

Forecasts start from each member's last visit by the moment, with the state and the covariates it had then, and
go to every later visit of its chain, however far off. They are scored beside the baselines "no change" and "no
covariates", and the numbers in each state stand beside those expected. A summary says of each case, in
sentences, whether the model is better, whether as many were found as expected, and what is lost; a difference is
called one only where its interval excludes 0.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekka.core.errors import BadOption, DamagedFile, InputError, bad_option, count_of, missing_columns
from rekka.core.files import has_columns, make_folder, remove_file, write_text, write_whole
from rekka.core.folders import check_folder, plain
from rekka.core.ratings import Ratings
from rekka.core.sheets import to_parquet, write_csv
from rekka.data.direction import refuse_upside_down
from rekka.data.transitions import ReadingOptions
from rekka.evaluation.calibration import MOST_TESTED, explain_untested
from rekka.fleet.backtest_rows import (
    DATE,
    LOSSES_SCHEMA,
    Cut,
    PairedRecords,
    count_losses,
    find_last_day,
    link_chains,
    prepare,
    read_cut,
    read_records,
    split_end,
)
from rekka.fleet.backtest_scores import (
    ALL,
    MODEL,
    PAIRS,
    PLAIN,
    SAME,
    SCORES_SCHEMA,
    TOTALS_SCHEMA,
    CaseResult,
    Settings,
    code_training,
    run_case,
)
from rekka.fleet.histories import ANY_ELEMENT, HistoryOptions
from rekka.fleet.models import describe_misfit
from rekka.fleet.rolling import (
    HALF_LIFE,
    MODELS_SCHEMA,
    ORIGINS_SCHEMA,
    ModelChoice,
    Store,
    Window,
    choose_model,
    drop_auto,
    list_origins,
    open_origins,
    read_models,
    read_windows,
)
from rekka.fleet.rolling import PLAIN as PLAIN_MODEL
from rekka.fleet.shock_origins import find_shocks, refuse_undated
from rekka.fleet.shocks import Shocks, describe_shocks, read_shocks
from rekka.forecast.ageing import ADVANCES, AGES
from rekka.forecast.forecast import NOT_CERTIFIED, ForecastOptions
from rekka.forecast.uncertainty import NORMAL, check_intervals
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS
from rekka.model.clock import MIDDLE, RUNNING, make_clock
from rekka.model.elements import GIVEN
from rekka.model.fit import Options, check_options

TRAFFIC = "traffic_mean"
FEW_BRIDGES = 10  # fewer make no interval to rely on: ``intervals``
SAYING_SAME, WITHOUT = "the no-change baseline", "the model without covariates"
SAYING_PAIRS = "the plain model"
STORE = "models"  # folder of the forecasts by model and origin, from which a run that was stopped continues
WORDS = {"rps": "ranked probability score", "log_loss_exact": "log loss"}


DRAWS = 500
CASES: dict[str, Any] = {
    "case": pl.String, "model": pl.String, "confirmed": pl.Boolean, "certified": pl.Boolean, "reason": pl.String,
    "covariates": pl.List(pl.String),
    "constant": pl.List(pl.String), "states": pl.Int64, "threshold": pl.Int64,
    "threshold_label": pl.String, "training_rows": pl.Int64,
    "training_bridges": pl.Int64, "members": pl.Int64, "visits": pl.Int64, "beyond_states": pl.Int64,
    "outside_range": pl.Int64, "lost_members": pl.Int64, "lost_visits": pl.Int64,
    "fit_p_value": pl.Float64, "misfit": pl.String, "summary": pl.String,
}  # fmt: skip
SHOCK_CASES: dict[str, Any] = {"shock": pl.Float64, "shock_source": pl.String}  # where shocks are asked for
HEAD: dict[str, Any] = {"case": pl.String, "certified": pl.Boolean}
PERIODS = {"year": "year", "visit": "round"}
SCHEMAS = {"scores": SCORES_SCHEMA, "totals": TOTALS_SCHEMA}
OPTIONS = ("until", "since", "age", "level", "draws", "seed", "scaling", "ridge", "clock")
TABLES = ("cases", "scores", "totals", "lost", "models", "origins")
SHEETS = tuple(f"{name}.csv" for name in TABLES)
FILES = ("scores.csv", "totals.csv", "lost.csv", "cases.csv", "forecasts.parquet", "backtest.json")


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts of a model fitted to the rows up to ``until``, and their scores.

    ``cases``      result of each case, in figures and, in ``summary``, in words
    ``scores``     a row for each score and forecaster in each group of visits. The column ``by`` says how visits
                   are grouped: all of them, by horizon in years, or by year or visit; ``less`` names the
                   forecaster whose score is subtracted, in a difference; mean, low, high; visits, bridges
    ``totals``     a row for each state, or with ``or_worse`` for the state and all worse ones, in each group
                   (``by``: all, year or visit, all up to it, or the state at the origin): visits, observed,
                   expected, predicted_low, predicted_high, inside, and the figures of both baselines; with
                   ``shocks`` also predicted_shock_low, predicted_shock_high, inside_shock, and interval_score and
                   interval_score_shock, lower is better
    ``lost``       visits that no forecast is scored on: case, reason, members, visits
    ``forecasts``  a row for each visit that was forecast: origin, horizon, state, observed, p_1 to p_K
    ``models``     a row for each model that was compared to choose one (``models=``), over all origins: its
                   ranked probability score, that less the score of the model it would replace (``than``), and
                   whether it was kept; ``origins`` has each model at each origin. Empty without a choice.

    Lines of a model that is no certified maximum have ``certified`` false, and no prediction intervals.

    Examples
    --------
    >>> import rekka
    >>> inspections = rekka.simulate_inventory(60, preset="plain", seed=1).inspections
    >>> found = rekka.backtest(inspections, until_visit=3, cases=["Pier"], draws=100, test_fit=False)
    >>> found.cases.select("case", "states").rows(), found.scores["score"].unique(maintain_order=True).to_list()[0]
    ([('Pier', 5)], 'rps')

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
    models: pl.DataFrame
    origins: pl.DataFrame
    notes: tuple[str, ...]
    labels: tuple[str, ...] | None = None  # of the states, where the table has any
    choices: tuple[ModelChoice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data of all but the single forecasts."""
        out: dict[str, Any] = {name: getattr(self, name) for name in OPTIONS} | {"notes": list(self.notes)}
        return out | {name: getattr(self, name).to_dicts() for name in TABLES}

    def write(self, folder: Path) -> None:
        """Write the tables, as CSV for a spreadsheet and as Parquet and JSON for programs."""
        make_folder(folder)
        chosen = ("models", "origins") if self.choices else ()
        for name in () if self.choices else ("models", "origins"):  # of an earlier backtest in this folder
            remove_file(folder / f"{name}.csv")
        for name in ("scores", "totals", "lost", "cases", *chosen):
            write_csv(folder / f"{name}.csv", getattr(self, name))
        write_whole(folder / "forecasts.parquet", to_parquet(self.forecasts))
        text = json.dumps(plain(self.to_dict()), ensure_ascii=False, indent=1, default=str, allow_nan=False)
        write_text(folder / "backtest.json", text + "\n")

    def name_states(self, case: str, text: str) -> str:
        """Text on the states of a component with their labels."""
        states = self.cases.filter(case=case)["states"].item()
        return Ratings.of(self.labels, states or len(self.labels or ())).reword(text)

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
    errors: Any = None,
    frailty: str | None = None,
    frailty_by: str | None = None,
    improvements: str | None = None,
    trend: str | None = None,
    first: Any = GIVEN,
    models: str | Sequence[str] | None = None,
    half_life: float | str | None = None,
    threshold: int | str | None = None,
    shocks: Any = False,
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
        Only transitions that begin on this day or later train: where rates have changed, old ones mislead. "auto"
        with ``models``: the last 10, 5 or 3 years, if shown to forecast better than all.
    cases, covariates : list of str, optional
        Only these cases and covariates; all by default.
    scaling, ridge
        As for ``ExponentialHazardMarkovModel``.
    age : "advances", "held" or "fixed"
        Whether ages go on with the years of a forecast, do so up to the oldest of the training rows, or stay.
    advance : list of str, optional
        Covariates that are ages; by default those that are called so.
    clock : "middle", "start" or "running"
        Where in an interval ages are taken by the fit, as for ``ExponentialHazardMarkovModel``.
    errors, frailty, frailty_by, improvements, trend, first
        Elements of a model of histories, as for ``fit_components``. With any of them, or clock="running", members
        are forecast from all visits up to the moment, and improvements by one rating are scored too.
    models : "auto" or list of str, optional
        Choose the model of each component by forecasts from days inside the training years (``fleet/rolling.py``):
        "auto" adds elements to the plain model of pairs one at a time as long as they forecast better; a list
        names models to compare, such as ["errors", "errors+improvements+trend"]. What was chosen is then
        scored on the visits after ``until``, which no choice has seen; without ``until`` the last 30 % of the
        years are kept for that. Every visit is scored, improvements included, but for those after a recorded
        repair.
    half_life : float, optional
        Years after which a training visit has half the weight, as for ``fit_components``. "auto" with ``models``:
        8, 4 or 2 years, if shown to forecast better than equal weights.
    threshold : int or str, optional
        The rating at or beyond which visits are counted: a number from 1, the best, or a label as text. By
        default 4 (Poor) of ratings 9 to 0, III of I to IV, else the fourth, or the worst of fewer.
    shocks : bool, float or Shocks
        Whether totals have a second, wider prediction interval, for errors that all members share: True estimates
        these from forecasts at up to six earlier years, each a fit of its own, and looks at nothing after
        ``until``; a number is their standard deviation on the scale of log hazards.
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
        A folder for the tables, as CSV, Parquet and JSON; only an earlier backtest is written over. With
        ``models`` it keeps the forecasts of each model and origin, and the same call continues from them.
    on_progress : callable, optional
        Called with the case (or the model and the origin at which it is fitted), how many networks have been
        drawn (or models fitted) for it, and of how many, 0 where that is not known.

    Returns
    -------
    Backtest
        A case that cannot be fitted, or has nothing to forecast, has a reason in ``cases``; the others go on.
        Where no case has a transition that ends later, and no model is to be chosen, InputError: nothing is
        fitted or written.

    Examples
    --------
    >>> import rekka
    >>> inspections = rekka.simulate_inventory(60, preset="plain", seed=1).inspections
    >>> found = rekka.backtest(inspections, until_visit=3, cases=["Pier"], draws=100, test_fit=False)
    >>> found.until, "mean" in found.scores.columns
    ('visit 3', True)

    """
    asked = None if models is None else read_models(models)
    windows = read_windows(half_life, since, models)
    years, since = drop_auto(half_life), drop_auto(since)
    folder, struck = None if out is None else Path(out), read_shocks(shocks)
    cut = None if models is not None and until is until_visit is None else read_cut(until, until_visit, since)
    if folder is not None:
        _refuse_place(folder, (reading or ReadingOptions()).inputs(data))
    histories = HistoryOptions(errors, frailty, frailty_by, improvements, trend, clock, first, years)
    histories.refuse({"ridge": ridge})
    if models is not None:
        refuse_elements(histories, ridge, cut)
    upward = None if models is None else "keep_all"
    reading = reading if models is None else reading or ReadingOptions()
    records = read_records(data, reading, histories, upward, partial(find_last_day, cut=cut))
    (histories if models is None else ANY_ELEMENT).check_columns(records.found.frame.columns)
    refuse_upside_down(records.found.moves, allow)
    if cut is None:
        cut = read_cut(_find_end(records), None, since)
    unusable = _find_unusable(records, cases)
    frame, notes = prepare(records, cut, None if cases is None else [one for one in cases if one not in unusable])
    used = tuple(records.found.covariates if covariates is None else covariates)
    names = sorted({*frame["case"], *unusable})
    labels = None if records.found.scale is None else records.found.scale.names
    if isinstance(threshold, str):
        worst = frame.select(pl.max_horizontal("state_1", "state_2").cast(pl.Int64).max()).item() or 2
        threshold = Ratings.of(labels, max(worst, len(labels or ()))).choose_threshold(threshold)
    settings = Settings(
        cut=cut,
        covariates=used,
        options=Options(scaling=scaling, ridge=ridge, seed=seed, clock=clock, half_life=years),
        forecast=ForecastOptions(NORMAL, level, draws, seed, age, None if advance is None else tuple(advance)),
        threshold=threshold,
        test_fit=len(names) <= MOST_TESTED if test_fit is None else test_fit,
        labels=labels,
        histories=histories,
        far=models is not None,
    )
    _check(settings, frame)
    if models is None:  # else the models are chosen, though they cannot be tested
        _refuse_idle(frame, cut)
    if struck is True:
        refuse_undated(frame.columns, cut)
    results, lost, choices = [], [pl.DataFrame(schema=LOSSES_SCHEMA)], list[ModelChoice]()
    tell = on_progress or _say_nothing
    for name in names:
        if name in unusable:
            results.append(CaseResult(name, reason=unusable[name]))
            continue
        rows = frame.filter(case=name)
        chains = link_chains(rows, cut)
        lost.append(count_losses(records, rows, chains, cut))
        own = settings
        if models is not None:
            store = None if folder is None else Store(folder / STORE)
            choices.append(choose_case(name, rows, settings, asked, store, tell, windows))
            own = apply_choice(settings, choices[-1])
        shared = struck if isinstance(struck, Shocks) else None
        if struck is True and isinstance(cut.moment, dt.date):
            shared = find_shocks(name, rows, cut.moment, own)
        one = run_case(name, rows, chains, own, partial(tell, name), shared)
        results.append(replace(one, model=choices[-1].name, chosen=choices[-1].summary) if choices else one)
    merged = [] if records.found.reading is None else records.found.reading.explain_merges()
    big = test_fit is None and not settings.test_fit and not histories.refits
    untested = [explain_untested(len(names))] if big else []
    found = Backtest(
        until=cut.words,
        since=None if cut.since is None else str(cut.since),
        age=age,
        level=level,
        draws=draws,
        seed=seed,
        scaling=str(scaling),
        ridge=float(ridge),
        clock=clock,
        cases=_tabulate_cases(results, pl.concat(lost), settings, labels, whole=records.panel is not None),
        scores=_join(results, "scores"),
        totals=_join(results, "totals"),
        lost=pl.concat(lost),
        forecasts=_join(results, "forecasts"),
        models=pl.concat([pl.DataFrame(schema=MODELS_SCHEMA), *(one.tried for one in choices)]),
        origins=pl.concat([pl.DataFrame(schema=ORIGINS_SCHEMA), *(one.origins for one in choices)]),
        notes=(*notes, *merged, *_describe_traffic(used, cut), *untested, *histories.notes),
        labels=labels,
        choices=tuple(choices),
    )
    if folder is not None:
        found.write(folder)
    return found


def _refuse_idle(frame: pl.DataFrame, cut: Cut) -> None:
    """Refuse a moment after which no transition of any case ends: there is nothing to forecast."""
    last = frame.select(pl.max(cut.columns[1])).item()
    if last is not None and last <= cut.moment:
        raise InputError(
            f"No forecast can be tested: no transition ends after {cut.words}, the last one ends at "
            f"{Cut(last).words}. Let the model know less, up to an earlier date or visit."
        )


def confirm_choice(result: CaseResult) -> bool | None:
    """Whether a chosen model is shown to be better than the plain one on visits that no choice has seen.

    False where it is shown to be worse; None where the visits cannot tell, and where the plain model was chosen.
    """
    if result.scores is None or result.model is None:
        return None
    line = result.scores.filter(by=ALL, score="rps", forecaster=MODEL, less=PAIRS)
    low, high = next(line.select("low", "high").iter_rows(), (None, None))
    if high is not None and high < 0:
        return True
    return False if low is not None and low > 0 else None


def choose_case(
    name: str,
    rows: pl.DataFrame,
    settings: Settings,
    models: Sequence[str] | None,
    store: Store | None,
    on_progress: Callable[[str, int, int], None],
    windows: Sequence[Window] = (),
) -> ModelChoice:
    """Choose the model of a component by origins inside its training years; nothing later is read.

    ``rows`` are its transitions, improvements of any size kept; ``models`` as ``read_models`` gives them.
    """
    end = settings.cut.moment
    assert isinstance(end, dt.date)
    coding = code_training(settings.take_training(rows), settings.covariates, judge=False)
    rows = coding.code(rows.lazy()).collect() if coding else rows
    settings = replace(settings, options=replace(settings.options, coding=coding))
    count = 0

    def on_fit(model: str, origin: str) -> None:
        nonlocal count
        on_progress(f"{name}: {model}, up to {origin}", count, 0)
        count += 1

    cuts = list_origins(rows, end)
    covariates = coding.expand(settings.covariates)
    rolling = open_origins(name, rows, cuts, end, covariates, settings, on_fit, store)
    try:
        return choose_model(rolling, models, windows)
    except InputError as error:  # of this component; what is wrong with the call is refused before
        none = pl.DataFrame(schema=MODELS_SCHEMA), pl.DataFrame(schema=ORIGINS_SCHEMA)
        return ModelChoice(name, PLAIN_MODEL, *none, reason=str(error).rstrip("."))


def apply_choice(settings: Settings, choice: ModelChoice) -> Settings:
    """Settings of a fit with the chosen elements and window."""
    chosen, window, cut = choice.histories, choice.window, settings.cut
    options = replace(settings.options, clock=chosen.clock)
    if window is not None and window.kind == HALF_LIFE:
        options = replace(options, half_life=window.years)
    elif window is not None:
        assert isinstance(cut.moment, dt.date)
        cut = replace(cut, since=window.begin(cut.moment))
    return replace(
        settings,
        histories=chosen,
        options=options,
        cut=cut,
        rival=None if choice.name == PLAIN_MODEL else settings,
        window=None if window is None or window.kind == HALF_LIFE else window.years,
    )


def refuse_elements(histories: HistoryOptions, ridge: float, cut: Cut | None = None) -> None:
    """Refuse elements beside a choice among them, and moments that are not days."""
    if histories.on or histories.clock != MIDDLE:
        raise BadOption(
            f"{histories.words} is given, and models chooses the elements itself. Leave one of the two out.",
            option="models",
        )
    if ridge:
        raise BadOption(
            f"ridge is {ridge:g}, and models of histories have no penalty. Leave it out, or models.",
            option="ridge",
        )
    if cut is not None and cut.kind != DATE:
        raise BadOption(
            "models compares forecasts from days inside the records, and until_visit is the number of a round. "
            "Give until, a date or a year.",
            option="until_visit",
        )


def _find_unusable(records: PairedRecords, cases: Sequence[str] | None) -> dict[str, str]:
    """Components, of those asked for, of which every pair was excluded, and why."""
    audit = records.found.audit
    found = {} if audit is None else audit.explain_unusable(records.found.frame["case"].unique().to_list())
    return {case: why for case, why in found.items() if cases is None or case in cases}


def _find_end(records: PairedRecords) -> dt.date:
    """Day that leaves the last years for the test."""
    dated = refuse_dateless(records.found.frame)
    known = None if records.panel is None else find_last_day(records.panel, None)
    begin, end = dated.select(pl.col("date_1").min(), pl.col("date_2").max()).row(0)
    return known or split_end(begin, end)


def refuse_dateless(frame: pl.DataFrame) -> pl.DataFrame:
    """Transitions with dates, from which the day of a choice can be found."""
    if not {"date_1", "date_2"} <= set(frame.columns):
        raise missing_columns(
            ["date_1", "date_2"], frame.columns, "the table, and models are compared from days inside the records"
        )
    dated = frame.drop_nulls(["date_1", "date_2"])
    if dated.is_empty():
        raise BadOption("No two visits with dates make a transition. Models are compared from days.")
    return dated.with_columns(pl.col("date_1", "date_2").cast(pl.Date))


def list_files(folder: Path) -> list[Path]:
    """Files of a backtest in a folder: none where it holds none."""
    if not is_backtest(folder):
        return list(folder.glob(f"{STORE}/*.parquet"))
    return [*(folder / name for name in dict.fromkeys((*FILES, *SHEETS))), *folder.glob(f"{STORE}/*.parquet")]


def load_backtest(folder: str | Path) -> Backtest:
    """Load a backtest from its folder; the sentences on choices are in those of the cases.

    >>> found = rekka.fleet.backtest.load_backtest("backtest")  # doctest: +SKIP
    """
    home = Path(folder)
    file = home / FILES[-1]
    try:
        known = json.loads(file.read_bytes())
        frames = {name: _read_table(known[name], name) for name in TABLES}
        forecasts = pl.read_parquet(home / "forecasts.parquet")
        whole: dict[str, Any] = frames | {name: known[name] for name in OPTIONS}
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise DamagedFile(
            f"{home.name}/{file.name} is no whole backtest: {error}. Make it again with rekka backtest.",
            file=str(file),
        ) from None
    named = frames["totals"].filter(by=ALL, or_worse=False).unique("state", keep="first").sort("state")
    return Backtest(
        **whole,
        forecasts=forecasts,
        notes=tuple(known["notes"]),
        labels=tuple(named["label"].drop_nulls().to_list()) or None,
    )


def _read_table(rows: Sequence[dict[str, Any]], name: str) -> pl.DataFrame:
    """A table of backtest.json, in which infinite and undefined numbers are words."""
    schemas: dict[str, dict[str, Any]] = {
        "cases": CASES,
        "scores": HEAD | SCORES_SCHEMA,
        "totals": HEAD | TOTALS_SCHEMA,
        "lost": LOSSES_SCHEMA,
        "models": MODELS_SCHEMA,
        "origins": ORIGINS_SCHEMA,
    }
    schema = schemas[name]
    more = {key: None for row in rows[:1] for key in row if key not in schema}
    numbers = {key for key, kind in (schema | more).items() if kind in (None, pl.Float64)}
    known = [{key: _read_number(row[key]) if key in numbers else row[key] for key in row} for row in rows]
    days = {key: pl.String for key, kind in schema.items() if kind == pl.Date}
    frame = pl.DataFrame(known, schema=schema | days | more, infer_schema_length=None)
    return frame.with_columns(pl.col(list(days)).str.to_date())


def _read_number(value: Any) -> Any:
    """The number that a word stands for."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def is_backtest(folder: Path) -> bool:
    """Whether a folder holds a backtest, by the columns of its scores."""
    scores = folder / FILES[0]
    return scores.is_file() and has_columns("case", "forecaster", "score", "less")(scores)


def _refuse_place(folder: Path, inputs: Sequence[Path]) -> None:
    """Refuse a folder with files of the same names, unless they are of an earlier backtest, by its scores."""
    ours = is_backtest(folder)
    files = [folder / name for name in dict.fromkeys((*FILES, *SHEETS))]
    check_folder(folder, files, inputs, lambda _: ours)


def _say_nothing(case: str, done: int, total: int) -> None:
    """Show no progress."""


def _check(settings: Settings, frame: pl.DataFrame) -> None:
    """Refuse options that are wrong for every case."""
    forecast, threshold = settings.forecast, settings.threshold
    clock = settings.options.clock
    check_options(replace(settings.options, clock=MIDDLE if clock == RUNNING else clock))
    missing = [name for name in settings.covariates if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    code_training(frame, settings.covariates)  # refuses names in the place of categories
    if forecast.age not in AGES:
        raise bad_option("age", forecast.age, AGES)
    make_clock(settings.covariates, settings.options.clock, forecast.advance)
    check_intervals(forecast.intervals, forecast.level, forecast.draws)
    whole = isinstance(threshold, int | np.integer) and not isinstance(threshold, bool)
    if threshold is not None and not (whole and threshold >= 2):
        raise BadOption(
            f"threshold is {threshold!r}; a whole number of at least 2 is needed.",
            option="threshold",
            value=threshold,
        )


def _join(results: Sequence[CaseResult], table: str) -> pl.DataFrame:
    """Join a table of all cases, under the case's name; it has its columns even where it has no rows."""
    frames = [pl.DataFrame(schema=HEAD | SCHEMAS.get(table, {}))]
    for one in results:
        found: pl.DataFrame | None = getattr(one, table)
        if found is not None:
            head = (pl.lit(one.case).alias("case"), pl.lit(one.certified, pl.Boolean).alias("certified"))
            frames.append(found.select(*head, pl.all()))
    return pl.concat(frames, how="diagonal")


def _tabulate_cases(
    results: Sequence[CaseResult],
    lost: pl.DataFrame,
    settings: Settings,
    labels: Sequence[str] | None,
    *,
    whole: bool,
) -> pl.DataFrame:
    """Table of the cases: the fields of their results that are columns, and what follows from them."""
    rows = []
    for one in results:
        gone = lost.filter(case=one.case)
        rows.append(
            {name: getattr(one, name, None) for name in CASES}
            | {
                "threshold_label": None if one.threshold is None else one.ratings.labels[one.threshold - 1],
                "reason": one.ratings.reword(one.reason or "; ".join(one.flaws)) or None,
                "confirmed": confirm_choice(one),
                "lost_members": int(gone["members"].sum()),
                "lost_visits": int(gone["visits"].sum()),
                "fit_p_value": None if one.fit_test is None else one.fit_test.p_value,
                "misfit": describe_misfit(one.case, one.fit_test, labels),
                "summary": summarize_case(one, gone, settings, whole),
            }
            | ({} if one.shocks is None else {"shock": one.shocks.sigma, "shock_source": one.shocks.source})
        )
    shocked = any(one.shocks is not None for one in results)
    return pl.DataFrame(rows, schema=CASES | (SHOCK_CASES if shocked else {}))


def _describe_traffic(covariates: tuple[str, ...], cut: Cut) -> tuple[str, ...]:
    """Note that a mean of two traffic counts knows the later one."""
    if TRAFFIC not in covariates:
        return ()
    return (
        f"{TRAFFIC} of the interval that leads over {cut.words} is the mean of two counts, and the second was "
        "made later: a forecast made then could not have used it. Name the other covariates (--use) to see what "
        "that is worth.",
    )


def summarize_case(result: CaseResult, lost: pl.DataFrame, settings: Settings, whole: bool) -> str:
    """Summarize a case in sentences; ``whole`` says whether all lost visits are known."""
    chosen = [result.chosen] if result.chosen else []
    missed = _describe_lost(lost, whole, histories=settings.histories.on, far=settings.far)
    if result.scores is None or result.totals is None or result.forecasts is None:
        return " ".join(
            [
                *chosen,
                f"{result.case}: not forecast: {result.ratings.reword(str(result.reason)).rstrip('.')}.",
                *missed,
            ]
        )
    horizon = result.forecasts["horizon_years"].to_numpy()
    far = f"{horizon.min():.3g} to {horizon.max():.3g} years ahead"
    rows, bridges = count_of(result.training_rows, "transition"), count_of(result.training_bridges, "bridge")
    trained = f"{rows} of {bridges} {result.span}"
    forecast = f"{count_of(result.visits, 'later visit')} of {count_of(result.members, 'member')} forecast, {far}"
    fitted = f"{result.case}: fitted to {trained}; {forecast}, {result.ageing}."
    flaws = result.ratings.reword("; ".join(result.flaws))
    doubts = [] if result.certified else [f"{NOT_CERTIFIED} ({flaws})."]
    sentences = [*chosen, *result.elements, *doubts, fitted]
    if result.fit_test is not None and result.fit_test.rejected:
        sentences.append(result.ratings.reword(" ".join(result.fit_test.causes)))
    sentences += _describe_scores(result.scores)
    sentences += _describe_totals(result, result.totals, settings)
    sentences += [*_describe_limits(result), *missed]
    return " ".join(sentences)


def _describe_scores(scores: pl.DataFrame) -> list[str]:
    """Compare the scores with those of both baselines."""
    everything = scores.filter(by=ALL)
    told = [_compare(everything, SAME, SAYING_SAME, "rps")]
    if PAIRS in everything["forecaster"]:
        told.insert(0, f"On visits that no choice has seen: {_compare(everything, PAIRS, SAYING_PAIRS, 'rps')}")
    exact = everything.filter(pl.col("less").is_null(), score="log_loss_exact")
    losses = dict(exact.select("forecaster", "mean").rows())
    if PLAIN in losses:
        finite = math.isfinite(losses[MODEL]) and math.isfinite(losses[PLAIN])
        told.append(_compare(everything, PLAIN, WITHOUT, "log_loss_exact" if finite else "rps"))
    if not math.isfinite(losses[MODEL]):
        told.append("Its log loss is infinite: something was found that it held to be impossible.")
    return told


def _compare(scores: pl.DataFrame, other: str, name: str, score: str) -> str:
    """Say whether the model is better or worse, or that these visits cannot tell; less is better."""
    here = scores.filter(score=score)
    ours, theirs = (here.filter(pl.col("less").is_null(), forecaster=one)["mean"].item() for one in (MODEL, other))
    less = here.filter(forecaster=MODEL, less=other).row(0, named=True)
    verdict = "forecasts neither better nor worse, as far as these visits can tell, than"
    if less["high"] is not None and less["high"] < 0:
        verdict = "forecasts better than"
    elif less["low"] is not None and less["low"] > 0:
        verdict = "forecasts worse than"
    figures = f"{WORDS[score]} {ours:.4f} against {theirs:.4f}, {_describe_difference(less)}"
    return f"The model {verdict} {name}: {figures}."


def _describe_difference(less: dict[str, Any]) -> str:
    if less["low"] is None:
        return f"difference {less['mean']:+.4f} (no interval: {count_of(less['bridges'], 'bridge')})"
    return f"difference {less['mean']:+.4f} ({less['low']:+.4f} to {less['high']:+.4f})"


def _describe_totals(result: CaseResult, totals: pl.DataFrame, settings: Settings) -> list[str]:
    """Compare the numbers found at the threshold or worse with those expected."""
    if result.threshold is None:
        return [
            f"{_name_asked(result, settings)} is worse than {result.ratings.name(result.states or 1)}, the worst "
            "of the training rows, and not forecast."
        ]
    worse = totals.filter(pl.col("or_worse"))
    line = worse.filter(by=ALL).row(0, named=True)
    where = result.ratings.phrase_or_worse(result.threshold)
    found = f"Of {count_of(line['visits'], 'visit')}, {line['observed']:,} found {where}; expected were"
    if line["inside"] is None:
        return [f"{found} {line['expected']:,.0f}, without a prediction interval: {result.why}."]
    ends = f"{line['expected']:,.0f} ({line['predicted_low']:,} to {line['predicted_high']:,})"
    more = "more" if line["observed"] > line["expected"] else "fewer"
    verdict = "inside" if line["inside"] else f"{more} than"
    told = [
        f"{found} {ends}: {verdict} the {100 * settings.forecast.level:g} % prediction interval"
        f"{'' if line['inside'] else ' has'}."
    ]
    return [*told, *_describe_periods(worse), *_describe_shocks(result, worse, settings)]


def _name_asked(result: CaseResult, settings: Settings) -> str:
    """'Rating e': the threshold that was asked for."""
    asked = settings.threshold or 0
    return f"Rating {Ratings.of(result.labels, max(asked, len(result.labels or ()))).name(asked)}"


def _describe_periods(worse: pl.DataFrame) -> list[str]:
    """Count the years, or rounds, in which the number lies in its interval."""
    for period in ("year", "visit"):
        here = worse.filter(by=period)
        if len(here) > 1:
            return [f"It is inside in {here['inside'].sum()} of {len(here)} {PERIODS[period]}s."]
    return []


def _describe_shocks(result: CaseResult, worse: pl.DataFrame, settings: Settings) -> list[str]:
    """Compare the wider interval with the other one, year by year, and say where it comes from."""
    if result.shocks is None:
        return []
    told = describe_shocks({result.case: result.shocks})
    if "inside_shock" not in worse.columns:
        return told
    here = worse.filter(by=settings.cut.period)
    inside, held, score, wider = here.select(
        pl.col("inside").sum(), pl.col("inside_shock").sum(), pl.mean("interval_score", "interval_score_shock")
    ).row(0)
    periods = count_of(len(here), PERIODS[settings.cut.period])
    told.append(
        f"In {inside} of {periods} the number is inside the interval, in {held} inside the wider one; mean "
        f"interval score (width, and a penalty for misses; lower is better) {score:,.4g} and {wider:,.4g}."
    )
    return told


def _describe_limits(result: CaseResult) -> list[str]:
    """Name the limits of these figures."""
    told = []
    if small := _find_small(result):
        told.append(f"Exploratory, too small to conclude from: {'; '.join(small)}.")
    if result.outside_range:
        told.append(
            f"In {result.outside_range:,} of {count_of(result.visits, 'visit')} a covariate is outside the range "
            "of the training rows, where the model extrapolates."
        )
    if result.beyond_states:
        told.append(
            f"{count_of(result.beyond_states, 'later visit')} with a rating worse than "
            f"{result.ratings.name(result.states or 1)}, the worst that any training row ends in, left out."
        )
    if result.torn:
        told.append(
            f"{count_of(result.torn, 'chain')} ended early, because several transitions start at one visit: a "
            "column that identifies members (member) would show how they continue."
        )
    return told


def _find_small(result: CaseResult) -> list[str]:
    """Reasons why a case is too small to conclude from."""
    found = []
    if result.training_rows < FEW_ROWS:
        found.append(f"{count_of(result.training_rows, 'training row')}, fewer than {FEW_ROWS}")
    if result.events_per_parameter < FEW_EVENTS:
        found.append(f"{result.events_per_parameter:.1f} events per parameter, fewer than {FEW_EVENTS}")
    assert result.scores is not None
    bridges = result.scores.filter(by=ALL)["bridges"].max()
    if isinstance(bridges, int) and bridges < FEW_BRIDGES:
        found.append(f"intervals from {count_of(bridges, 'bridge')}, fewer than {FEW_BRIDGES}")
    return found


def _describe_lost(lost: pl.DataFrame, whole: bool, *, histories: bool, far: bool) -> list[str]:
    """Name the visits that the scores leave out."""
    much = " by two or more" if histories else ""
    improved = "" if far else f" and whose rating did not improve{much}"
    limit = f"What is scored are members that were not repaired{improved}."
    unknown = "Pairs that were excluded before are not in a table of transitions and are not counted."
    if lost.is_empty():
        return [] if whole else [limit, unknown]
    reasons = "; ".join(f"{reason}: {visits:,}" for reason, visits in lost.select("reason", "visits").rows())
    members, visits = int(lost["members"].sum()), int(lost["visits"].sum())
    count = f"{'' if whole else 'At least '}{count_of(visits, 'later visit')} of {count_of(members, 'member')}"
    return [f"{count} not scored, because a pair on the way was excluded ({reasons}). {limit}"]
