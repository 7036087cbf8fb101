"""What forecasts of later visits were worth, beside two forecasters to beat, with intervals clustered by bridge.

    model          the fitted model
    no_covariates  the same without covariates, fitted to the same rows
    persistence    nothing changes: probability 1 on the state at the origin

A difference is that of the model less the other's, visit by visit, and its interval that of paired values.

How many visits were found in each state, beside how many were to be expected, with prediction intervals.

A network is drawn many times: coefficients from their distribution, then every member's way from its origin
through the moments of its later visits. So a total holds the doubt of the parameters and the chance of the
process, and a member that is visited twice is in both totals what it is. Members are independent of each other but
for the coefficients: what strikes a network at once, a hard winter or a new manual, is not in the intervals.

One case of a backtest: fitted to what was known, forecast from there, held against what was found.

A case that cannot be fitted, or has nothing to forecast, is a value with a reason. The other cases go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.core.numerics import generator, quiet
from rekka.evaluation.calibration import check_fit
from rekka.evaluation.goodness import find_links
from rekka.evaluation.resampling import Sample
from rekka.evaluation.scores import (
    Interval,
    RowScores,
    mean_interval,
    score_persistence_rows,
    score_rows,
    split_supported,
)
from rekka.fleet.backtest_rows import Chains, Cut, take_training
from rekka.forecast.ageing import ADVANCES, FIXED, Course, plan_course
from rekka.forecast.forecast import WORST_ASKED
from rekka.forecast.propagation import YEAR, Walkers, catch_up
from rekka.forecast.uncertainty import NONE, NORMAL, Spread, spread_out
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.survey import FitTest
from rekka.streaming.blocks import WHOLE

Array = NDArray[np.float64]
States = NDArray[np.int64]

MODEL, PLAIN, SAME = "model", "no_covariates", "persistence"
SCORES = ("rps", "brier", "log_loss_exact", "log_loss", "accuracy")
ALL, HORIZON = "all", "horizon"
SCORES_SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "score": pl.String, "forecaster": pl.String, "less": pl.String,
    "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "visits": pl.Int64, "bridges": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judged:
    """Visits (v,): forecasts p (v, K) of each forecaster, the states at the origin and found, 0-based; bridges.

    ``groups`` has the group of each visit by horizon, and by year or round.
    """

    p: Mapping[str, Array]
    start: States
    end: States
    bridge: NDArray[np.int64]
    groups: Mapping[str, NDArray[np.int64]]

    def score(self) -> dict[str, dict[str, Array]]:
        """The scores of every visit, by forecaster and score."""
        n_states = self.p[MODEL].shape[1]
        found = {name: _spell(_score(p, self.start, self.end)) for name, p in self.p.items()}
        return found | {SAME: _spell(score_persistence_rows(self.start, self.end, n_states))}


def _score(p: Array, start: States, end: States) -> RowScores:
    with np.errstate(divide="ignore"):
        return score_rows(p, np.log(p[np.arange(len(p)), end]), start, end)


def _spell(rows: RowScores) -> dict[str, Array]:
    """The scores by name; the exact log loss is infinite where something happened that had probability 0."""
    return {
        "rps": rows.rps,
        "brier": rows.brier,
        "log_loss_exact": -rows.log_p,
        "log_loss": rows.loss,
        "accuracy": rows.right.astype(np.float64),
    }


def tabulate_scores(judged: Judged, level: float) -> pl.DataFrame:
    """A line for each group, score and forecaster, and for each difference, ``forecaster`` less ``less``.

    ``low`` and ``high`` are null where there is no interval: of an infinite mean, and of fewer than two bridges.
    """
    scored = judged.score()
    everything = {ALL: np.zeros(len(judged.end), np.int64)}
    lines: list[tuple[Any, ...]] = []
    for by, group in (everything | dict(judged.groups)).items():
        for value in np.unique(group).tolist():
            here = group == value
            place = (by, None if by == ALL else value)
            for score in SCORES:
                lines += [(*place, score, *line) for line in _compare(scored, score, here, judged.bridge, level)]
    return pl.DataFrame(lines, schema=SCORES_SCHEMA, orient="row")


def _compare(
    scored: Mapping[str, Mapping[str, Array]],
    score: str,
    here: NDArray[np.bool_],
    bridge: NDArray[np.int64],
    level: float,
) -> list[tuple[Any, ...]]:
    """Each forecaster's mean, and what the model has less than the others."""
    values = {name: found[score][here] for name, found in scored.items()}
    lines: list[tuple[Any, ...]] = [
        (name, None, *_lay_out(mean_interval(each, bridge[here], level))) for name, each in values.items()
    ]
    for other in (name for name in values if name != MODEL):
        with np.errstate(invalid="ignore"):
            less = values[MODEL] - values[other]
        lines.append((MODEL, other, *_lay_out(mean_interval(less, bridge[here], level))))
    return lines


def _lay_out(found: Interval) -> tuple[float | None, float | None, float | None, int, int]:
    mean, *ends = (None if math.isnan(value) else value for value in found[:3])
    low, high = (None if end is None or math.isinf(end) else end for end in ends)
    return mean, low, high, found.rows, found.bridges


Counts = NDArray[np.int64]

NETWORKS = 2000  # drawn: an end of a 95 % interval is then known to within 0.06 standard deviations
MOST_VISITS = 50_000_000  # drawn, beyond one network for each set of coefficients: with so many, chance is small
ROWS_AT_ONCE = 200_000  # members times networks
TOTALS_SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "state": pl.Int64, "or_worse": pl.Boolean, "visits": pl.Int64,
    "observed": pl.Int64, "expected": pl.Float64, "predicted_low": pl.Int64, "predicted_high": pl.Int64,
    "inside": pl.Boolean, "expected_no_covariates": pl.Float64, "unchanged": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Network:
    """Members that set out together: x (m, p), states (m,) 0-based, and the visits that they come to."""

    walkers: Walkers  # of the members, with any coefficients
    start: States
    chains: Chains

    def draw(self, coefficients: Array, budget: Array) -> Iterator[tuple[slice, States]]:
        """States (R, B, visits) of R networks with each of the coefficients (B, K-1, p+1), by step of the chains.

        ``budget`` (R, B, m, K) is what a member can bear in each state: it leaves when the hazard, added up since
        it came, is as much. With exponential budgets of mean 1 that is the process itself; nobody can leave K.
        """
        state = np.broadcast_to(self.start, budget.shape[:3]).copy()
        left = np.take_along_axis(budget, state[..., None], axis=3)[..., 0]
        steps = np.searchsorted(self.chains.step, np.arange(int(self.chains.step.max(initial=-1)) + 2))
        for here in (slice(int(first), int(last)) for first, last in pairwise(steps)):
            member = self.chains.member[here]
            walkers = replace(self.walkers, x=self.walkers.x[member], coefficients=coefficients)
            now = state[..., member], left[..., member]
            _live_on(walkers, *now, budget[..., member, :], self.chains.since[here], self.chains.horizon[here])
            state[..., member], left[..., member] = now
            yield here, now[0]


def _live_on(walkers: Walkers, state: States, left: Array, budget: Array, since: Array, until: Array) -> None:
    """Carry states and what is left of budgets (R, B, n), in place, from ``since`` to ``until`` (n,) years.

    Hazards are those of ``walkers``, constant from visit or whole year after the origin to the next of either.
    """
    now = since
    while (now < until).any():
        begun = np.floor(now)
        stop = np.minimum(until, begun + YEAR) if walkers.course.moves else until
        theta = walkers.hazards(now, stop - now)
        theta = np.concatenate([theta, np.zeros((*theta.shape[:2], 1))], axis=2)
        walkers.family.live_through(np.broadcast_to(theta, budget.shape), state, left, budget, stop - now)
        now = stop


def draw_networks(
    network: Network,
    spread: Spread,
    cell: States,
    n_cells: int,
    *,
    seed: int,
    case: str,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Counts | None:
    """How many visits of each cell are in each state, (networks, cells, K), in networks drawn; None of no draws.

    ``on_progress`` is called with the number of networks that are drawn, and of how many.
    """
    if spread.kind == NONE:
        return None
    n_states, drawn = network.walkers.fit.n_states, spread.coefficients[1:]
    repeats = max(1, min(-(-NETWORKS // len(drawn)), MOST_VISITS // (len(drawn) * max(1, cell.size))))
    counts = np.zeros((repeats, len(drawn), n_cells, n_states), np.int64)
    at_once = max(1, ROWS_AT_ONCE // (repeats * max(1, network.start.size)))
    for first in range(0, len(drawn), at_once):
        some = slice(first, min(first + at_once, len(drawn)))
        shape = counts[:, some].shape
        place = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1) * n_cells
        for here, state in network.draw(drawn[some], _draw_budgets(network, repeats, some, seed, case)):
            where = ((place + cell[here]) * n_states + state).ravel()
            counts[:, some] += np.bincount(where, minlength=counts[:, some].size).reshape(shape)
        on_progress(repeats * some.stop, repeats * len(drawn))
    return counts.reshape(-1, n_cells, n_states)


def _draw_budgets(network: Network, repeats: int, some: slice, seed: int, case: str) -> Array:
    """Exponential budgets (R, B, m, K); each network has a generator of its own, whatever is drawn with it."""
    size = (network.start.size, network.walkers.fit.n_states)
    numbers = [[(repeat, number) for number in range(some.start, some.stop)] for repeat in range(repeats)]
    return np.array(
        [[generator(seed, "backtest", case, *pair).standard_exponential(size) for pair in row] for row in numbers]
    )


@dataclass(frozen=True, eq=False)
class Tally:
    """Visits by period and state at the origin: counts that the totals are made of, each (..., periods, K, K).

    The last axis is the state found, forecast or drawn.
    """

    observed: Array
    expected: Array
    plain: Array | None  # expected without covariates
    drawn: Counts | None  # (networks, ...)

    @property
    def unchanged(self) -> Array:
        """The same if nothing changes."""
        return np.asarray(np.eye(self.observed.shape[1]) * self.observed.sum(axis=2)[..., None])


def count_states(cell: States, n_cells: int, p: Array) -> Array:
    """Probabilities p (v, K) added up by cell, (cells, K)."""
    return np.column_stack([np.bincount(cell, weights=column, minlength=n_cells) for column in p.T])


def tabulate_totals(
    tally: Tally, periods: list[int], kind: str, threshold: int | None, level: float
) -> pl.DataFrame:
    """A line for each group of visits and state, and for the threshold or worse.

    Groups: all; each year or round; all up to it; each state at the origin. ``inside`` says whether what was
    observed lies in the prediction interval.
    """
    n_states = tally.observed.shape[-1]
    lines: list[tuple[Any, ...]] = []
    groups: list[tuple[str, int | None, slice, slice]] = [("all", None, slice(None), slice(None))]
    groups += [(kind, value, slice(at, at + 1), slice(None)) for at, value in enumerate(periods)]
    groups += [(f"up to {kind}", value, slice(0, at + 1), slice(None)) for at, value in enumerate(periods)]
    groups += [("start", k + 1, slice(None), slice(k, k + 1)) for k in range(n_states)]
    for by, group, among, start in groups:
        totals = _Totals.of(tally, among, start)
        if not totals.visits:
            continue
        wanted = [(k, k + 1) for k in range(n_states)]
        asked = [] if threshold is None else [(threshold - 1, n_states)]
        for place, (low, high) in enumerate([*wanted, *asked]):
            worse = place == len(wanted)
            lines.append((by, group, low + 1, worse, totals.visits, *totals.describe(low, high, level)))
    return pl.DataFrame(lines, schema=TOTALS_SCHEMA, orient="row")


@dataclass(frozen=True, eq=False)
class _Totals:
    """The counts of one group of visits, by state found (K,)."""

    observed: Array
    expected: Array
    plain: Array | None
    unchanged: Array
    drawn: Counts | None

    @classmethod
    def of(cls, tally: Tally, periods: slice, starts: slice) -> _Totals:
        here = (..., periods, starts, slice(None))

        def add(counts: NDArray[Any] | None) -> Any:
            return None if counts is None else counts[here].sum(axis=(-3, -2))

        return cls(*map(add, (tally.observed, tally.expected, tally.plain, tally.unchanged, tally.drawn)))

    @property
    def visits(self) -> int:
        return int(self.observed.sum())

    def describe(self, low: int, high: int, level: float) -> tuple[Any, ...]:
        """Of the states low to high - 1, 0-based: the columns from ``observed`` on."""
        observed = int(self.observed[low:high].sum())
        ends: tuple[int | None, int | None, bool | None] = (None, None, None)
        if self.drawn is not None:
            tail = (1.0 - level) / 2
            drawn = self.drawn[:, low:high].sum(axis=1)
            least, most = np.quantile(drawn, [tail, 1.0 - tail], method="inverted_cdf").astype(int).tolist()
            ends = (least, most, least <= observed <= most)
        plain = None if self.plain is None else float(self.plain[low:high].sum())
        expected = float(self.expected[low:high].sum())
        return observed, expected, *ends, plain, int(self.unchanged[low:high].sum())


Progress = Callable[[int, int], None]

NAMES = ("bridge_id", "member", "history")  # that a forecast carries along, where they are known


@dataclass(frozen=True)
class Settings:
    """How a backtest is made; ``backtest`` documents each."""

    cut: Cut
    covariates: tuple[str, ...]
    options: Options
    age: str = ADVANCES
    advance: tuple[str, ...] | None = None
    threshold: int | None = None
    level: float = 0.95
    draws: int = 500
    seed: int = 0
    test_fit: bool = False


@dataclass(frozen=True, eq=False)
class CaseResult:
    """What became of a case. ``reason`` says why there are no scores, ``flaws`` why the fit is not certified.

    ``beyond`` visits were left out because the training rows do not know their states; in ``outside`` of the
    forecast visits a covariate is outside the range of the training rows.
    """

    name: str
    reason: str | None = None
    certified: bool | None = None
    flaws: tuple[str, ...] = ()
    fit_test: FitTest | None = None  # None where it was not made
    covariates: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    course: str = ""
    n_states: int | None = None
    threshold: int | None = None
    rows: int = 0
    bridges: int = 0
    moves: int = 0  # states left in the training rows
    members: int = 0
    visits: int = 0
    beyond: int = 0
    outside: int = 0
    torn: int = 0
    why: str | None = None  # there are no prediction intervals
    scores: pl.DataFrame | None = None
    totals: pl.DataFrame | None = None
    forecasts: pl.DataFrame | None = None

    @property
    def events_per_parameter(self) -> float:
        """Departures from a state in the training rows, for each coefficient."""
        parameters = ((self.n_states or 1) - 1) * (len(self.covariates) + 1)
        return self.moves / parameters if parameters else math.nan


def run_case(name: str, frame: pl.DataFrame, chains: Chains, settings: Settings, on_drawn: Progress) -> CaseResult:
    """Fit, forecast, score; ``chains`` are those of the frame, the case's transitions."""
    train = take_training(frame, settings.cut)
    constant = tuple(one for one in settings.covariates if not train.is_empty() and train[one].n_unique() == 1)
    result = CaseResult(
        name,
        covariates=tuple(one for one in settings.covariates if one not in constant),
        constant=constant,
        rows=len(train),
        bridges=train["bridge_id"].n_unique(),
        torn=chains.torn,
    )
    if train.is_empty():
        return replace(
            result, reason=f"no transition ends by {settings.cut.words}, so that there is nothing to fit"
        )
    try:
        with quiet():
            return _run(result, frame, train, chains, settings, on_drawn)
    except (MissingColumns, BadOption):  # wrong for every case
        raise
    except InputError as error:
        return replace(result, reason=str(error))
    except (ArithmeticError, ValueError) as error:  # linear algebra on numbers that left their range
        return replace(result, reason=f"the fit could not be computed: {error}")


def _run(
    result: CaseResult,
    frame: pl.DataFrame,
    train: pl.DataFrame,
    chains: Chains,
    settings: Settings,
    on_drawn: Progress,
) -> CaseResult:
    advance = settings.advance and tuple(name for name in settings.advance if name in result.covariates)
    fit = _fit(train, result.covariates, replace(settings.options, advance=advance))
    plain = _fit(train, (), Options(scaling=None))
    course = plan_course(fit, settings.age)
    visits = _Visits.read(frame, chains, fit, settings.cut)
    result = replace(
        result,
        certified=fit.certificate.certified,
        flaws=fit.certificate.reasons,
        fit_test=_test(fit, train, settings) if settings.test_fit else None,
        n_states=fit.n_states,
        threshold=_find_threshold(settings.threshold, fit.n_states),
        course=course.words,
        moves=int((train["state_2"] - train["state_1"]).sum()),
        members=visits.chains.origin.size,
        visits=len(visits.chains),
        beyond=visits.beyond,
    )
    if not result.visits:
        return replace(result, reason=f"no visit after {settings.cut.words} follows one by then")
    if not np.isfinite(fit.coefficients).all():
        return replace(result, reason=f"the fit came to nothing: {'; '.join(fit.certificate.reasons)}")
    return _Forecasters(fit, plain, course, visits, settings).judge(result, frame, on_drawn)


def _fit(train: pl.DataFrame, covariates: Sequence[str], options: Options) -> Fit:
    """What the estimator does, clustered by bridge, without the imports that it brings."""
    columns = inputs.Columns("state_1", "interval_years", tuple(covariates))
    groups = train["bridge_id"].to_numpy()
    clock = make_clock(columns.covariates, options.clock, options.advance)
    training = inputs.read_training(inputs.as_frame(train), train["state_2"], columns, groups=groups, clock=clock)
    return fit_rows(training.rows, training.x, columns.covariates, options, training.groups)


def _test(fit: Fit, train: pl.DataFrame, settings: Settings) -> FitTest | None:
    """Test whether the model describes the rows it was fitted to; None for very many rows."""
    if len(train) > WHOLE:
        return None
    sample = Sample.of(train, fit.covariates, fit.n_states)
    return check_fit(fit, sample, options=settings.options, follows=find_links(train))


@dataclass(frozen=True, eq=False)
class _Visits:
    """The later visits that can be judged: states (v,) 0-based, x (v, p) as at the origin, years or rounds."""

    chains: Chains
    start: States
    end: States
    x: Array
    period: NDArray[np.int64]
    beyond: int

    @classmethod
    def read(cls, frame: pl.DataFrame, chains: Chains, fit: Fit, cut: Cut) -> _Visits:
        columns = inputs.Columns("state_1", "interval_years", fit.covariates)
        rows = inputs.read_predictors(inputs.as_frame(frame), columns)
        end = inputs.read_ends(frame["state_2"], rows.start)
        known = split_supported(rows.start[chains.origin[chains.member]], end[chains.place], fit.n_states)
        kept = chains.keep(known)
        origin = kept.origin[kept.member]
        period = cut.periods(frame[cut.columns[1]])[kept.place]
        return cls(kept, rows.start[origin], end[kept.place], rows.x[origin], period, int((~known).sum()))

    @property
    def first(self) -> NDArray[np.intp]:
        """A visit of each member: where its covariates and its state at the origin are."""
        return np.unique(self.chains.member, return_index=True)[1]


@dataclass(frozen=True, eq=False)
class _Forecasters:
    """A case's model, the one without covariates, and the visits that they forecast."""

    fit: Fit
    plain: Fit
    course: Course
    visits: _Visits
    settings: Settings

    def judge(self, result: CaseResult, frame: pl.DataFrame, on_drawn: Progress) -> CaseResult:
        """The case with its forecasts, scores and totals."""
        settings, visits = self.settings, self.visits
        bridge = np.unique(frame["bridge_id"].to_numpy()[visits.chains.place], return_inverse=True)[1]
        horizon = np.rint(visits.chains.horizon).astype(np.int64)
        groups = {HORIZON: horizon, settings.cut.period: visits.period}
        judged = Judged(self.forecast(), visits.start, visits.end, bridge, groups)
        spread = spread_out(self.fit, NORMAL, level=settings.level, draws=settings.draws, seed=settings.seed)
        outside = self.find_outside()
        return replace(
            result,
            outside=int(outside.sum()),
            why=spread.why,
            scores=tabulate_scores(judged, settings.level),
            totals=self.total(result, judged, spread, on_drawn),
            forecasts=_list_forecasts(frame, visits, judged.p[MODEL], outside),
        )

    def forecast(self) -> dict[str, Array]:
        """P (v, K) of every visit by both models; by the plain one only where it came to anything."""
        visits, horizon = self.visits, self.visits.chains.horizon
        p = {MODEL: forecast_visits(self.fit, self.course, visits.x, visits.start, horizon)}
        if np.isfinite(self.plain.coefficients).all():
            still = plan_course(self.plain, FIXED)
            p[PLAIN] = forecast_visits(self.plain, still, visits.x[:, :0], visits.start, horizon)
        return p

    def find_outside(self) -> NDArray[np.bool_]:
        """Which visits (v,) have a covariate outside the range of the training rows by then."""
        return np.asarray(self.course.outside(self.visits.x, self.visits.chains.horizon).any(axis=1))

    def total(self, result: CaseResult, judged: Judged, spread: Spread, on_drawn: Progress) -> pl.DataFrame:
        """The table of totals."""
        fit, visits, settings = self.fit, self.visits, self.settings
        periods, at = np.unique(visits.period, return_inverse=True)
        n_states, n_cells = fit.n_states, periods.size * fit.n_states
        cell, shape = at * n_states + judged.start, (periods.size, n_states, n_states)
        walkers = Walkers(fit, visits.x[visits.first], fit.coefficients[None], self.course)
        network = Network(walkers, visits.start[visits.first], visits.chains)
        drawn = draw_networks(
            network, spread, cell, n_cells, seed=settings.seed, case=result.name, on_progress=on_drawn
        )
        counts = {name: count_states(cell, n_cells, p).reshape(shape) for name, p in judged.p.items()}
        tally = Tally(
            observed=count_states(cell, n_cells, np.eye(n_states)[judged.end]).reshape(shape),
            expected=counts[MODEL],
            plain=counts.get(PLAIN),
            drawn=None if drawn is None else drawn.reshape(-1, *shape),
        )
        return tabulate_totals(tally, periods.tolist(), settings.cut.period, result.threshold, settings.level)


def forecast_visits(fit: Fit, course: Course, x: Array, start: States, horizon: Array) -> Array:
    """P (v, K) of each visit's state, ``horizon`` years after an origin with these covariates and states."""
    walkers = Walkers(fit, x, fit.coefficients[None], course)
    p = walkers.set_out(start)
    catch_up(walkers, p, horizon)
    return np.asarray(p[0])


def _find_threshold(asked: int | None, n_states: int) -> int | None:
    """The state whose reaching is counted; none where the training rows do not know the one that was asked for."""
    if asked is None:
        return min(WORST_ASKED, n_states)
    return asked if asked <= n_states else None


def _list_forecasts(frame: pl.DataFrame, visits: _Visits, p: Array, outside: NDArray[np.bool_]) -> pl.DataFrame:
    """A row for each visit that was forecast, in the order of members and time."""
    chains = visits.chains
    origin, found = frame[chains.origin[chains.member]], frame[chains.place]
    columns: dict[str, Any] = {name: origin[name] for name in NAMES if name in frame.columns}
    for kind in ("date", "visit", "row"):
        if {f"{kind}_1", f"{kind}_2"} <= set(frame.columns):
            columns |= {f"origin_{kind}": origin[f"{kind}_1"], kind: found[f"{kind}_2"]}
    columns |= {"horizon_years": chains.horizon, "state": visits.start + 1, "observed": visits.end + 1}
    columns |= {f"p_{k + 1}": p[:, k] for k in range(p.shape[1])}
    listed = pl.DataFrame(columns | {"outside": outside})
    return listed[np.lexsort((chains.step, chains.origin[chains.member]))]
