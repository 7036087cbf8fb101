"""One case of a backtest: fitted to what was known, forecast from there, scored against what was found.

Forecasts of later visits are scored beside two baselines, with intervals clustered by bridge:

    model          the fitted model
    plain          the model of pairs, where another was chosen by ``models``
    no_covariates  the same without covariates, fitted to the same rows; of histories, to their pairs that did
                   not improve
    persistence    no change: probability 1 on the state at the origin

A difference is that of the model less the other's, visit by visit, and its interval that of paired values.

The numbers of visits found in each state stand beside those expected, with prediction intervals. For these a
network is drawn many times: coefficients from their distribution, then every member from its origin through the
moments of its later visits. So a total holds the uncertainty of the parameters and the chance of the process,
and a member that is visited twice is the same in both totals. Members are independent of each other but for the
coefficients: what strikes a network at once, a hard winter or a new manual, is not in the intervals. Where
``Shocks`` are known a second, wider interval adds it: the drawn numbers are moved by what the expected one changes
as all hazards rise or fall together.

A model of histories (``HistoryOptions``) forecasts from all visits up to the moment, and what is scored and
counted are the ratings that inspectors will record: the true condition seen through their errors. Improvements by
one rating are then scored like any other visit.

A case that cannot be fitted, or has nothing to forecast, is a value with a reason. The other cases go on.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.core.numerics import generator, quiet
from rekka.core.ratings import Ratings
from rekka.data.attributes import is_text
from rekka.data.categories import NO_CODING, Coding, fit_coding
from rekka.evaluation.calibration import check_fit
from rekka.evaluation.goodness import find_links
from rekka.evaluation.resampling import Sample
from rekka.evaluation.scores import (
    RowScores,
    mean_interval,
    score_interval,
    score_persistence_rows,
    score_rows,
    split_supported,
)
from rekka.fleet.backtest_rows import MEMBER, Chains, Cut, take_training
from rekka.fleet.elements import describe_elements
from rekka.fleet.histories import NO_HISTORIES, HistoryOptions, leave_out_far
from rekka.fleet.network import GRID, GRID_WEIGHT
from rekka.fleet.shocks import RESIDUALS_SCHEMA, STEP, Shocks
from rekka.fleet.visits import chain_visits, find_past
from rekka.forecast.ageing import FIXED, Ageing, plan_ageing
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.history_propagation import HistoryPropagator, Past, make_propagator
from rekka.forecast.propagation import YEAR, Propagator, cross_gaps
from rekka.forecast.uncertainty import NONE, Uncertainty, find_uncertainty
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.elements import NEW
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.history_inputs import ELEMENTS
from rekka.model.survey import FitTest
from rekka.streaming.blocks import WHOLE
from rekka.streaming.histories import fit_history_table

Array = NDArray[np.float64]
States = NDArray[np.int64]
Counts = NDArray[np.int64]
Progress = Callable[[int, int], None]

MODEL, PAIRS, PLAIN, SAME = "model", "plain", "no_covariates", "persistence"
SCORES = ("rps", "brier", "log_loss_exact", "log_loss", "accuracy")
ALL, HORIZON = "all", "horizon"
SCORES_SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "score": pl.String, "forecaster": pl.String, "less": pl.String,
    "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "visits": pl.Int64, "bridges": pl.Int64,
}  # fmt: skip
TOTALS_SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "state": pl.Int64, "label": pl.String, "or_worse": pl.Boolean,
    "visits": pl.Int64,
    "observed": pl.Int64, "expected": pl.Float64, "predicted_low": pl.Int64, "predicted_high": pl.Int64,
    "inside": pl.Boolean, "expected_no_covariates": pl.Float64, "unchanged": pl.Int64,
}  # fmt: skip
SHOCKED_SCHEMA: dict[str, Any] = {
    "predicted_shock_low": pl.Int64, "predicted_shock_high": pl.Int64, "inside_shock": pl.Boolean,
    "interval_score": pl.Float64, "interval_score_shock": pl.Float64,
}  # fmt: skip
NETWORKS = 2000  # drawn: an end of a 95 % interval is then known to within 0.06 standard deviations
MOST_VISITS = 50_000_000  # drawn, beyond one network for each set of coefficients: with so many, chance is small
ROWS_AT_ONCE = 200_000  # members times networks
NAMES = ("bridge_id", "member", "history")  # that a forecast carries along, where they are known


@dataclass(frozen=True)
class Settings:
    """Options of a backtest; ``backtest`` documents each."""

    cut: Cut
    covariates: tuple[str, ...]
    options: Options  # of the fit
    forecast: ForecastOptions
    threshold: int | None = None
    test_fit: bool = False
    labels: tuple[str, ...] | None = None  # of the states
    histories: HistoryOptions = NO_HISTORIES
    far: bool = False  # the transitions hold improvements of any size: all are scored, those by one rating train
    plain: bool = True  # whether the model without covariates is fitted too
    residuals: bool = False  # whether what the forecasts missed by is tabulated, for ``estimate_shocks``
    networks: int | None = None  # drawn at least; None: NETWORKS
    rival: Settings | None = None  # of the plain model, where another was chosen
    window: float | None = None  # years before the moment of which rows train, where they were chosen

    def take_training(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Transitions that train."""
        known = take_training(frame, self.cut)
        return leave_out_far(known) if self.far else known


@dataclass(frozen=True, eq=False)
class CaseResult:
    """Result of a case. ``reason`` says why there are no scores, ``flaws`` why the fit is not certified.

    ``beyond_states`` visits were left out because the training rows do not know their states; in ``outside_range``
    of the forecast visits a covariate is outside the range of the training rows.
    """

    case: str
    reason: str | None = None
    certified: bool | None = None
    flaws: tuple[str, ...] = ()
    fit_test: FitTest | None = None  # None where it was not made
    covariates: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    ageing: str = ""
    states: int | None = None
    threshold: int | None = None
    training_rows: int = 0
    training_bridges: int = 0
    labels: tuple[str, ...] | None = None  # of the states
    moves: int = 0  # states left in the training rows
    members: int = 0
    visits: int = 0
    beyond_states: int = 0
    outside_range: int = 0
    torn: int = 0
    why: str | None = None  # there are no prediction intervals
    scores: pl.DataFrame | None = None
    totals: pl.DataFrame | None = None
    forecasts: pl.DataFrame | None = None
    model: str | None = None  # name of the model that was chosen ...
    chosen: str = ""  # ... and why, in words
    span: str = ""  # of the training rows
    elements: tuple[str, ...] = ()  # sentences on what a fit of histories found
    residuals: pl.DataFrame | None = None  # by year, see ``RESIDUALS_SCHEMA``; where asked for
    shocks: Shocks | None = None  # of the wider intervals; where asked for

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.states or len(self.labels or ()))

    @property
    def events_per_parameter(self) -> float:
        """Departures from a state in the training rows, for each coefficient."""
        parameters = ((self.states or 1) - 1) * (len(self.covariates) + 1)
        return self.moves / parameters if parameters else math.nan


def run_case(
    name: str,
    frame: pl.DataFrame,
    chains: Chains,
    settings: Settings,
    on_drawn: Progress = lambda done, total: None,
    shocks: Shocks | None = None,
) -> CaseResult:
    """Fit, forecast and score a case; ``chains`` are those of the frame, the case's transitions.

    With ``shocks`` totals have wider intervals, too.
    """
    train = settings.take_training(frame)
    coding = code_training(train, settings.covariates, judge=False)
    frame, train = (coding.code(one.lazy()).collect() if coding else one for one in (frame, train))
    settings = replace(settings, options=replace(settings.options, coding=coding))
    given = coding.expand(settings.covariates)
    constant = tuple(one for one in given if not train.is_empty() and train[one].n_unique() == 1)
    result = CaseResult(
        name,
        covariates=tuple(one for one in given if one not in constant),
        constant=(*constant, *(one.name for one in coding.categories if not one.kept)),
        training_rows=len(train),
        training_bridges=train["bridge_id"].n_unique(),
        torn=chains.torn,
        span=settings.cut.span,
        shocks=shocks,
    )
    if train.is_empty():
        return replace(result, reason=_explain_empty(frame, settings.cut))
    try:
        with quiet():
            return _run(result, frame, train, chains, settings, on_drawn)
    except (MissingColumns, BadOption):  # wrong for every case
        raise
    except InputError as error:
        return replace(result, reason=str(error))
    except (ArithmeticError, ValueError) as error:  # linear algebra on numbers that left their range
        return replace(result, reason=f"the fit could not be computed: {error}")


def _explain_empty(frame: pl.DataFrame, cut: Cut) -> str:
    """Why no transition trains, and what to give instead."""
    none = f"no transition ends by {cut.words}, so that there is nothing to fit"
    if not take_training(frame, replace(cut, since=None)).is_empty():
        return f"{none} of those that begin on {cut.since} or later. Give an earlier since" if cut.since else none
    first = frame.select(pl.min(cut.columns[1])).item()
    return f"{none}; the first ends at {Cut(first).words}. Give a later {cut.option}"


def _explain_nothing_later(frame: pl.DataFrame, cut: Cut) -> str:
    """Why there is nothing to forecast, and what to give instead."""
    none, last = f"no visit after {cut.words} follows one by then", frame.select(pl.max(cut.columns[1])).item()
    if not frame.filter(pl.col(cut.columns[1]) > cut.moment).is_empty():
        return none
    return f"{none}; the last transition ends at {Cut(last).words}. Give an earlier {cut.option}"


def code_training(train: pl.DataFrame, covariates: Sequence[str], *, judge: bool = True) -> Coding:
    """The coding of the categories among the covariates, fitted on the training rows.

    With ``judge`` a column with too many levels is refused: asked of the rows of all components, not of each.
    """
    named = [name for name in covariates if is_text(train.schema[name])]
    if train.is_empty() or not named:
        return NO_CODING
    return fit_coding(train.lazy(), named, pl.col("state_2") > pl.col("state_1"), judge=judge)


def _run(
    result: CaseResult,
    frame: pl.DataFrame,
    train: pl.DataFrame,
    chains: Chains,
    settings: Settings,
    on_drawn: Progress,
) -> CaseResult:
    cut, advance = settings.cut, settings.forecast.advance
    advance = advance and tuple(name for name in advance if name in result.covariates)
    options = replace(settings.options, advance=advance)
    fit = fit_training(train, result.covariates, options, settings.histories, far=settings.far)
    plain = _fit_plain(train, options, settings) if settings.plain else None
    ageing = plan_ageing(fit, settings.forecast.age)
    visits = Visits.read(frame, chains, fit, cut, improvements=settings.far)
    weighted = settings.histories.refits or settings.options.half_life is not None
    result = replace(
        result,
        certified=fit.certificate.certified,
        flaws=fit.certificate.reasons,
        fit_test=_test(fit, train, settings) if settings.test_fit and not weighted else None,
        states=fit.n_states,
        threshold=_find_threshold(settings.threshold, Ratings.of(settings.labels, fit.n_states)),
        labels=settings.labels,
        elements=() if fit.records is None else tuple(_describe_elements(fit, settings)),
        ageing=ageing.words,
        moves=int((train["state_2"] - train["state_1"]).clip(0).sum()),
        members=visits.chains.origin.size,
        visits=len(visits.chains),
        beyond_states=visits.beyond,
    )
    if not result.visits:
        return replace(result, reason=_explain_nothing_later(frame, cut))
    if not np.isfinite(fit.coefficients).all():
        return replace(result, reason=f"the fit came to nothing: {'; '.join(fit.certificate.reasons)}")
    horizon = visits.chains.horizon
    seen = replace(settings, cut=replace(cut, since=None)).take_training(frame)  # all that is known of a member
    own = visits.find_past(frame, seen, fit)
    forecast = partial(forecast_visits, fit, ageing, visits.x, visits.start, horizon, own)
    p = {MODEL: forecast()}
    pairs = _fit_pairs(frame, result.covariates, options, settings)
    if pairs is not None and int(visits.start.max()) < pairs.n_states:
        known = plan_ageing(pairs, settings.forecast.age)
        p[PAIRS] = fold_states(forecast_visits(pairs, known, visits.x, visits.start, horizon), fit.n_states)
    if plain is not None and np.isfinite(plain.coefficients).all():
        bare, known = replace(visits, x=visits.x[:, :0]), plan_ageing(plain, FIXED)
        past = bare.find_past(frame, seen, plain)
        p[PLAIN] = forecast_visits(plain, known, bare.x, visits.start, horizon, past)
    uncertainty = settings.forecast.find_uncertainty(fit)
    first = np.unique(visits.chains.member, return_index=True)[1]  # a visit of each member, for its start
    of_members = None if own is None else own.take(first)
    propagator = make_propagator(fit, visits.x[first], uncertainty, ageing, of_members)
    network = Network(propagator, visits.start[first], visits.chains)
    cells = _Cells.of(visits, fit.n_states)
    drawn = draw_networks(
        network,
        uncertainty,
        cells.cell,
        cells.size,
        seed=settings.forecast.seed,
        case=result.case,
        fewest=settings.networks,
        on_drawn=on_drawn,
    )
    outside = ageing.outside(visits.x, horizon).any(axis=1)
    level = settings.forecast.level
    struck = result.shocks is not None and result.shocks.sigma is not None
    moved = None
    if (struck or settings.residuals) and drawn is not None:
        moved = _Moved.of(cells, result.shocks or Shocks(None), forecast)
    return replace(
        result,
        outside_range=int(outside.sum()),
        why=uncertainty.why,
        scores=tabulate_scores(p, visits, cut.period, level),
        totals=tabulate_totals(
            cells,
            p,
            visits,
            drawn,
            cut.period,
            result.threshold,
            level,
            result.ratings,
            shock=moved.half * result.shocks.stretch(level) if moved and struck and result.shocks else None,
            improves=fit.records is not None,
        ),
        residuals=tabulate_residuals(cells, p[MODEL], visits, drawn, moved, cut) if settings.residuals else None,
        forecasts=_list_forecasts(frame, visits, p[MODEL], np.asarray(outside), result.ratings),
    )


def _describe_elements(fit: Fit, settings: Settings) -> list[str]:
    assert fit.records is not None  # a fit of histories
    ratings = Ratings.of(settings.labels, fit.n_states)
    return describe_elements(fit.records, ratings, certified=fit.certificate.certified)


def _fit(train: pl.DataFrame, covariates: Sequence[str], options: Options) -> Fit:
    """Fit as the estimator does, clustered by bridge, without the imports that it brings."""
    columns = inputs.Columns("state_1", "interval_years", tuple(covariates))
    groups = train["bridge_id"].to_numpy()
    clock = make_clock(columns.covariates, options.clock, options.advance)
    training = inputs.read_training(
        inputs.as_frame(train),
        train["state_2"],
        columns,
        groups=groups,
        clock=clock,
        half_life=options.half_life,
    )
    return fit_rows(training.rows, training.x, columns.covariates, options, training.groups)


def fit_training(
    train: pl.DataFrame,
    covariates: Sequence[str],
    options: Options,
    histories: HistoryOptions,
    warm: Sequence[Fit] = (),
    *,
    far: bool = False,
) -> Fit:
    """Fit histories where any element is asked for, from earlier fits if there are any, else pairs.

    Where all improvements are in the rows (``far``), pairs that improve are left out as repairs.
    """
    if not histories.on:
        rows = train.filter(pl.col("state_2") >= pl.col("state_1")) if far else train
        return _fit(rows, covariates, options)
    cut = histories.cut(train)
    fit = fit_history_table(
        inputs.as_frame(cut.rows),
        cut.rows["state_2"],
        inputs.Columns("state_1", "interval_years", tuple(covariates)),
        options,
        {name: getattr(histories, name) for name in ELEMENTS},
        histories=cut.histories,
        groups=cut.groups,
        warm=warm,
    )
    assert fit.records is not None  # a fit of histories
    return replace(fit, records=replace(fit.records, by=cut.groups.name))


def _fit_plain(train: pl.DataFrame, options: Options, settings: Settings) -> Fit | None:
    """Fit without covariates, with the same elements of histories; None where these need an age."""
    histories = settings.histories
    if isinstance(histories.first, str) and histories.first == NEW:
        return None
    known = Options(scaling=None, clock=options.clock, half_life=options.half_life)
    return fit_training(train, (), known, histories, far=settings.far)


def _fit_pairs(frame: pl.DataFrame, covariates: Sequence[str], options: Options, settings: Settings) -> Fit | None:
    """Fit the plain model beside another that was chosen, as the choice did; None where it cannot be compared."""
    rival = settings.rival
    if rival is None:
        return None
    options = replace(options, clock=rival.options.clock, half_life=rival.options.half_life)
    pairs = fit_training(rival.take_training(frame), covariates, options, NO_HISTORIES, far=True)
    return pairs if np.isfinite(pairs.coefficients).all() else None


def fold_states(p: Array, n_states: int) -> Array:
    """Probabilities (v, n_states): what is worse than so many states counts as the worst of them."""
    if p.shape[1] <= n_states:
        return np.pad(p, ((0, 0), (0, n_states - p.shape[1])))
    return np.column_stack([p[:, : n_states - 1], p[:, n_states - 1 :].sum(axis=1)])


def _test(fit: Fit, train: pl.DataFrame, settings: Settings) -> FitTest | None:
    """Test whether the model describes the rows it was fitted to; None for very many rows."""
    if len(train) > WHOLE:
        return None
    train = train.filter(pl.col("state_2") >= pl.col("state_1"))  # as the fit takes them
    sample = Sample.of(train, fit.covariates, fit.n_states, fit.coding)
    return check_fit(fit, sample, options=settings.options, follows=find_links(train))


def _find_threshold(asked: int | None, ratings: Ratings) -> int | None:
    """State at or beyond which visits are counted; None where the training rows do not know the one asked for."""
    if asked is None:
        return ratings.default_threshold
    return asked if asked <= len(ratings.labels) else None


@dataclass(frozen=True, eq=False)
class Visits:
    """Later visits (v,) to score: states 0-based, x (v, p) as at the origin, years or rounds, bridges."""

    chains: Chains
    start: States
    end: States
    x: Array
    period: NDArray[np.int64]
    bridge: NDArray[np.int64]
    beyond: int  # visits left out

    @classmethod
    def read(
        cls, frame: pl.DataFrame, chains: Chains, fit: Fit, cut: Cut, *, improvements: bool = False
    ) -> Visits:
        """Read the visits of chains from the transitions that they link."""
        columns = inputs.Columns("state_1", "interval_years", fit.covariates)
        rows = inputs.read_predictors(inputs.as_frame(frame), columns)
        end = inputs.read_ends(frame["state_2"], rows.start, improvements=improvements or fit.records is not None)
        known = split_supported(rows.start[chains.origin[chains.member]], end[chains.place], fit.n_states)
        kept = chains.keep(known)
        origin = kept.origin[kept.member]
        period = cut.periods(frame[cut.columns[1]])[kept.place]
        bridge = np.unique(frame["bridge_id"].to_numpy()[kept.place], return_inverse=True)[1]
        return cls(kept, rows.start[origin], end[kept.place], rows.x[origin], period, bridge, int((~known).sum()))

    def find_past(self, frame: pl.DataFrame, train: pl.DataFrame, fit: Fit) -> Past | None:
        """Visits of each scored visit's bridge that were known at the moment, for a model of histories."""
        if fit.records is None:
            return None
        names = [name for name in (*MEMBER, "history", fit.records.by or "bridge_id") if name in frame.columns]
        at = {
            "state": pl.col("state_1").cast(pl.Int64),
            "date": pl.col("date_1") if "date_1" in frame.columns else None,
        }
        origins = frame[self.chains.origin].select(*dict.fromkeys(names), **at)
        seen = chain_visits(train, fit)
        x = seen.select(fit.covariates).to_numpy().astype(np.float64).reshape(len(seen), len(fit.covariates))
        once = np.unique(self.chains.member, return_index=True)[1]
        return find_past(origins, seen, fit, self.x[once], x).take(self.chains.member)


def forecast_visits(
    fit: Fit,
    ageing: Ageing,
    x: Array,
    start: States,
    horizon: Array,
    past: Past | None = None,
    *,
    tempo: float = 1.0,
) -> Array:
    """Probabilities (v, K) of ratings ``horizon`` years after origins with covariates x (v, p) in ``start``.

    Hazards are ``tempo`` times those of the fit.
    """
    propagator = replace(make_propagator(fit, x, find_uncertainty(fit, NONE), ageing, past), tempo=tempo)
    p = propagator.start_in(start)
    cross_gaps(propagator, p, horizon)
    return np.asarray(propagator.record(propagator.gather(p))[0])


def tabulate_scores(p: Mapping[str, Array], visits: Visits, period: str, level: float) -> pl.DataFrame:
    """Table of scores by group, score and forecaster, and of differences, ``forecaster`` less ``less``.

    ``low`` and ``high`` are null where there is no interval: of an infinite mean, and of fewer than two bridges.
    """
    scored = _score(p, visits)
    groups = {
        ALL: np.zeros(len(visits.end), np.int64),
        HORIZON: np.rint(visits.chains.horizon).astype(np.int64),
        period: visits.period,
    }
    lines = [
        (by, None if by == ALL else value, score, *line)
        for by, group in groups.items()
        for value in np.unique(group).tolist()
        for score in SCORES
        for line in _compare(scored, score, group == value, visits.bridge, level)
    ]
    return pl.DataFrame(lines, schema=SCORES_SCHEMA, orient="row")


def _score(p: Mapping[str, Array], visits: Visits) -> dict[str, dict[str, Array]]:
    """Scores (v,) of every visit, by forecaster and score."""
    start, end, places = visits.start, visits.end, np.arange(len(visits.end))
    with np.errstate(divide="ignore"):
        rows = {name: score_rows(some, np.log(some[places, end]), start, end) for name, some in p.items()}
    rows[SAME] = score_persistence_rows(start, end, p[MODEL].shape[1])
    return {name: _name_scores(some) for name, some in rows.items()}


def _name_scores(rows: RowScores) -> dict[str, Array]:
    """Scores by name; the exact log loss is infinite where something happened that had probability 0."""
    return {
        "rps": rows.rps,
        "brier": rows.brier,
        "log_loss_exact": -rows.log_p,
        "log_loss": rows.loss,
        "accuracy": rows.right.astype(np.float64),
    }


def _compare(
    scored: Mapping[str, Mapping[str, Array]],
    score: str,
    here: NDArray[np.bool_],
    bridge: NDArray[np.int64],
    level: float,
) -> list[tuple[Any, ...]]:
    """Mean of each forecaster, and differences of the model, and of the plain one beside it, from the others."""
    values: dict[tuple[str, str | None], Array] = {(name, None): one[score][here] for name, one in scored.items()}
    with np.errstate(invalid="ignore"):
        pairs = [(MODEL, name) for name in scored if name != MODEL] + [(PAIRS, SAME)] * (PAIRS in scored)
        for one, other in pairs:
            values[one, other] = values[one, None] - values[other, None]
    lines = []
    for names, some in values.items():
        mean, low, high, visits, bridges = mean_interval(some, bridge[here], level)
        ends = (end if math.isfinite(end) else None for end in (low, high))
        lines.append((*names, None if math.isnan(mean) else mean, *ends, visits, bridges))
    return lines


@dataclass(frozen=True, eq=False)
class Network:
    """Members that start together, in states (m,) 0-based, and the visits that they come to."""

    propagator: Propagator  # of the members, with any coefficients
    start: States
    chains: Chains

    def draw_histories(
        self, sets: slice, repeats: int, rng: np.random.Generator
    ) -> Iterator[tuple[slice, States]]:
        """Draw ratings (R, B, visits) of R networks with each of some sets of parameters, step by step.

        Members start from a true state and a frailty given their visits, and inspectors record what they become.
        """
        propagator = self.propagator.take_sets(sets)
        assert isinstance(propagator, HistoryPropagator)
        eps, state = propagator.draw_start(repeats, rng)
        for here in self._steps():
            member = self.chains.member[here]
            some = propagator.take_members(member)
            now, factor = state[..., member], eps[..., member]
            since, until = self.chains.since[here], self.chains.horizon[here]
            while (since < until).any():
                stop = np.minimum(until, np.floor(since) + YEAR) if some.yearly else until
                theta = factor[..., None] * some.typical_hazards(since, stop - since)
                theta = np.concatenate([theta, np.zeros((*theta.shape[:3], 1))], axis=3)
                budget = rng.standard_exponential(theta.shape)  # hazards have no memory: each step has its own
                left = np.take_along_axis(budget, now[..., None], axis=3)[..., 0]
                some.family.live_through(theta, now, left, budget, stop - since)
                some.draw_improvements(now, stop - since, rng)
                since = stop
            state[..., member] = now
            yield here, some.draw_ratings(now, rng)

    def _steps(self) -> Iterator[slice]:
        """First visits of all members, then second ones, and so on."""
        steps = np.searchsorted(self.chains.step, np.arange(int(self.chains.step.max(initial=-1)) + 2))
        return (slice(int(first), int(last)) for first, last in pairwise(steps))

    def draw(self, coefficients: Array, budget: Array) -> Iterator[tuple[slice, States]]:
        """Draw states (R, B, visits) of R networks with each of the coefficients (B, K-1, p+1), step by step.

        ``budget`` (R, B, m, K) is what a member can bear in each state: it leaves when the hazard, added up since
        it came, is as much. With exponential budgets of mean 1 that is the process itself; nobody can leave K.
        """
        state = np.broadcast_to(self.start, budget.shape[:3]).copy()
        left = np.take_along_axis(budget, state[..., None], axis=3)[..., 0]
        for here in self._steps():
            member = self.chains.member[here]
            some = replace(self.propagator, x=self.propagator.x[member], coefficients=coefficients)
            now = state[..., member], left[..., member]
            _live_on(some, *now, budget[..., member, :], self.chains.since[here], self.chains.horizon[here])
            state[..., member], left[..., member] = now
            yield here, now[0]


def _live_on(some: Propagator, state: States, left: Array, budget: Array, since: Array, until: Array) -> None:
    """Carry states and what is left of budgets (R, B, n), in place, from ``since`` to ``until`` (n,) years.

    Hazards are constant from visit or whole year after the origin to the next of either.
    """
    now = since
    while (now < until).any():
        begun = np.floor(now)
        stop = np.minimum(until, begun + YEAR) if some.ageing.moves else until
        theta = some.hazards(now, stop - now)
        theta = np.concatenate([theta, np.zeros((*theta.shape[:2], 1))], axis=2)
        some.family.live_through(np.broadcast_to(theta, budget.shape), state, left, budget, stop - now)
        now = stop


def draw_networks(
    network: Network,
    uncertainty: Uncertainty,
    cell: States,
    n_cells: int,
    *,
    seed: int,
    case: str,
    fewest: int | None = None,
    on_drawn: Progress = lambda done, total: None,
) -> Counts | None:
    """Numbers of visits of each cell in each state, (networks, cells, K), in drawn networks; None without draws.

    At least ``fewest`` networks are drawn, unless there are very many visits.

    ``on_drawn`` is called with the number of networks that are drawn, and of how many.
    """
    if uncertainty.kind == NONE:
        return None
    n_states, drawn = network.propagator.fit.n_states, uncertainty.coefficients[1:]
    wanted = NETWORKS if fewest is None else fewest
    repeats = max(1, min(-(-wanted // len(drawn)), MOST_VISITS // (len(drawn) * max(1, cell.size))))
    counts = np.zeros((repeats, len(drawn), n_cells, n_states), np.int64)
    at_once = max(1, ROWS_AT_ONCE // (repeats * max(1, network.start.size)))
    for first in range(0, len(drawn), at_once):
        some = slice(first, min(first + at_once, len(drawn)))
        shape = counts[:, some].shape
        place = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1) * n_cells
        if isinstance(network.propagator, HistoryPropagator):
            rng = generator(seed, "backtest", case, first)
            networks = network.draw_histories(slice(1 + some.start, 1 + some.stop), repeats, rng)
        else:
            networks = network.draw(drawn[some], _draw_budgets(network, repeats, some, seed, case))
        for here, state in networks:
            where = ((place + cell[here]) * n_states + state).ravel()
            counts[:, some] += np.bincount(where, minlength=counts[:, some].size).reshape(shape)
        on_drawn(repeats * some.stop, repeats * len(drawn))
    return counts.reshape(-1, n_cells, n_states)


def _draw_budgets(network: Network, repeats: int, some: slice, seed: int, case: str) -> Array:
    """Exponential budgets (R, B, m, K); each network has a generator of its own, whatever is drawn with it."""
    size = (network.start.size, network.propagator.fit.n_states)
    numbers = [[(repeat, number) for number in range(some.start, some.stop)] for repeat in range(repeats)]
    return np.array(
        [[generator(seed, "backtest", case, *pair).standard_exponential(size) for pair in row] for row in numbers]
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of visits, by period and state at the origin: the number (v,) of each visit's cell."""

    periods: list[int]
    n_states: int
    cell: NDArray[np.int64]

    @classmethod
    def of(cls, visits: Visits, n_states: int) -> _Cells:
        periods, at = np.unique(visits.period, return_inverse=True)
        return cls(periods.tolist(), n_states, at * n_states + visits.start)

    @property
    def size(self) -> int:
        return len(self.periods) * self.n_states

    def fold(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts (..., cells, K) as (..., periods, K, K), by state at the origin and state of the visit."""
        return counts.reshape(*counts.shape[:-2], len(self.periods), self.n_states, self.n_states)

    def count(self, p: Array) -> Array:
        """Probabilities p (v, K) added up by cell, (periods, K, K)."""
        sums = [np.bincount(self.cell, weights=column, minlength=self.size) for column in p.T]
        return self.fold(np.column_stack(sums))

    def groups(self, kind: str) -> Iterator[tuple[str, int | None, slice, slice]]:
        """Groups of visits: all, each year or round, all up to it, each state at the origin."""
        everything = slice(None)
        yield ALL, None, everything, everything
        for at, value in enumerate(self.periods):
            yield kind, value, slice(at, at + 1), everything
        for at, value in enumerate(self.periods):
            yield f"up to {kind}", value, slice(0, at + 1), everything
        for k in range(self.n_states):
            yield "start", k + 1, everything, slice(k, k + 1)


@dataclass(frozen=True, eq=False)
class _Moved:
    """Half the difference of expected numbers (periods, K, K) between two tempos of the hazards, and ``step``.

    The tempos are ``step`` below and above those of the model, on the log scale.
    """

    half: Array
    step: float

    @classmethod
    def of(cls, cells: _Cells, shocks: Shocks, forecast: Callable[..., Array]) -> _Moved:
        slow, fast = (cells.count(forecast(tempo=tempo)) for tempo in shocks.tempos)
        return cls(0.5 * (fast - slow), STEP if shocks.sigma is None else shocks.sigma)


def tabulate_residuals(
    cells: _Cells, p: Array, visits: Visits, drawn: Counts | None, moved: _Moved | None, cut: Cut
) -> pl.DataFrame | None:
    """Table of the sums of ratings that were found and expected, by year; None without drawn networks.

    ``variance`` is that of the drawn networks: chance and the uncertainty of the parameters.
    """
    if drawn is None or moved is None or moved.step == 0.0 or not isinstance(cut.moment, dt.date):
        return None
    rating = np.arange(1.0, cells.n_states + 1.0)

    def add(counts: NDArray[Any]) -> Array:
        return np.asarray(counts.sum(axis=-2) @ rating)

    visited = np.bincount(visits.period - min(cells.periods))
    far = np.bincount(visits.period - min(cells.periods), weights=visits.chains.horizon)
    at = np.array(cells.periods) - min(cells.periods)
    columns = {
        "origin": np.full(at.size, cut.moment.year),
        "year": cells.periods,
        "horizon": far[at] / visited[at],
        "visits": visited[at],
        "observed": add(cells.count(np.eye(cells.n_states)[visits.end])),
        "expected": add(cells.count(p)),
        "variance": add(cells.fold(drawn)).var(axis=0, ddof=1),
        "slope": add(moved.half) / moved.step,
    }
    return pl.DataFrame(columns, schema=RESIDUALS_SCHEMA)


def tabulate_totals(
    cells: _Cells,
    p: Mapping[str, Array],
    visits: Visits,
    drawn: Counts | None,
    kind: str,
    threshold: int | None,
    level: float,
    ratings: Ratings,
    *,
    shock: Array | None = None,
    improves: bool = False,
) -> pl.DataFrame:
    """Table of totals by group of visits and state, and for the threshold or worse.

    ``inside`` says whether the observed number lies in the prediction interval. With ``shock`` (periods, K, K),
    what expected numbers change by with the hazards, there is a wider one, and both have their interval score.
    """
    one_hot, k = np.eye(cells.n_states), cells.n_states
    counts = {name: cells.count(some) for name, some in p.items()}
    counts |= {"observed": cells.count(one_hot[visits.end]), SAME: cells.count(one_hot[visits.start])}
    counts |= {} if drawn is None else {"drawn": cells.fold(drawn)}
    counts |= {} if shock is None else {"shock": shock}
    asked = [(state, state + 1) for state in range(k)] + ([] if threshold is None else [(threshold - 1, k)])
    lines: list[tuple[Any, ...]] = []
    for by, group, among, start in cells.groups(kind):
        here = {name: some[..., among, start, :].sum(axis=(-3, -2)) for name, some in counts.items()}
        number = int(here["observed"].sum())
        for place, (low, high) in enumerate(asked if number else ()):
            n = {name: some[..., low:high].sum(axis=-1) for name, some in here.items()}
            observed, plain = int(n["observed"]), float(n[PLAIN]) if PLAIN in n else None
            ends = _predict(n.get("drawn"), observed, level)
            head = (by, group, low + 1, ratings.labels[low], place == k, number)
            wider: tuple[Any, ...] = ()
            if "shock" in n and "drawn" in n:
                least = 0 if improves or place < k else int(n[SAME])  # who is there stays there
                wider = _widen(n["drawn"], float(n["shock"]), (least, number), observed, level)
            lines.append((*head, observed, float(n[MODEL]), *ends, plain, int(n[SAME]), *wider))
    schema = TOTALS_SCHEMA | ({} if shock is None else SHOCKED_SCHEMA)
    return pl.DataFrame(lines, schema=schema, orient="row")


def _widen(
    drawn: Counts, shock: float, bounds: tuple[int, int], observed: int, level: float
) -> tuple[int, int, bool, float, float]:
    """Wider interval of a number: drawn ones (networks,) moved as shared errors move its mean; and both scores."""
    values, count = np.unique(drawn, return_counts=True)
    moved = np.clip(values + (GRID * shock)[:, None], *bounds)
    share = (GRID_WEIGHT[:, None] * (count / drawn.size)).ravel()
    order = np.argsort(moved, axis=None)
    place = np.searchsorted(share[order].cumsum(), [(1.0 - level) / 2, (1.0 + level) / 2])
    ends = moved.ravel()[order][np.minimum(place, order.size - 1)]
    inner_low, inner_high, _ = _predict(drawn, observed, level)
    assert inner_low is not None  # there are drawn numbers
    assert inner_high is not None
    outer = min(math.floor(ends[0]), inner_low), max(math.ceil(ends[1]), inner_high)
    narrow = float(score_interval(inner_low, inner_high, observed, level))
    wide = float(score_interval(outer[0], outer[1], observed, level))
    return *outer, outer[0] <= observed <= outer[1], narrow, wide


def _predict(drawn: Counts | None, observed: int, level: float) -> tuple[int | None, int | None, bool | None]:
    """Prediction interval of a number from drawn ones (networks,), and whether it holds the observed one."""
    if drawn is None:
        return None, None, None
    tail = (1.0 - level) / 2
    low, high = np.quantile(drawn, [tail, 1.0 - tail], method="inverted_cdf").astype(int).tolist()
    return low, high, low <= observed <= high


def _list_forecasts(
    frame: pl.DataFrame, visits: Visits, p: Array, outside: NDArray[np.bool_], ratings: Ratings
) -> pl.DataFrame:
    """Table of the visits that were forecast, in the order of members and time."""
    chains = visits.chains
    origin, found = frame[chains.origin[chains.member]], frame[chains.place]
    columns: dict[str, Any] = {name: origin[name] for name in NAMES if name in frame.columns}
    for kind in ("date", "visit", "row"):
        if {f"{kind}_1", f"{kind}_2"} <= set(frame.columns):
            columns |= {f"origin_{kind}": origin[f"{kind}_1"], kind: found[f"{kind}_2"]}
    columns["horizon_years"] = chains.horizon
    for name, label, states in (("state", "label", visits.start), ("observed", "observed_label", visits.end)):
        columns |= {name: states + 1, label: [ratings.labels[state] for state in states.tolist()]}
    columns |= {f"p_{k + 1}": p[:, k] for k in range(p.shape[1])}
    listed = pl.DataFrame(columns | {"outside": outside})
    return listed[np.lexsort((chains.step, chains.origin[chains.member]))]
