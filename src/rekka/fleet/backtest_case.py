"""One case of a backtest: fitted to what was known, forecast from there, held against what was found.

A case that cannot be fitted, or has nothing to forecast, is a value with a reason. The other cases go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.core.numerics import quiet
from rekka.evaluation.calibration import check_fit
from rekka.evaluation.goodness import find_links
from rekka.evaluation.resampling import Sample
from rekka.evaluation.scores import split_supported
from rekka.fleet.backtest_rows import Chains, Cut, take_training
from rekka.fleet.backtest_scores import HORIZON, MODEL, PLAIN, Judged, tabulate_scores
from rekka.fleet.backtest_totals import Network, Tally, count_states, draw_networks, tabulate_totals
from rekka.forecast.ageing import ADVANCES, FIXED, Course, plan_course
from rekka.forecast.forecast import WORST_ASKED
from rekka.forecast.propagation import Walkers, catch_up
from rekka.forecast.uncertainty import NORMAL, Spread, spread_out
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.survey import FitTest
from rekka.streaming.blocks import WHOLE

Array = NDArray[np.float64]
States = NDArray[np.int64]
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
