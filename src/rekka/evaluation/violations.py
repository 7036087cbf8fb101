"""Tests of what the pair model assumes, each aimed at one way in which records break it.

    log hazards of a row + gamma c,   H0: gamma = 0
    U = sum of u_g over bridges g,   u_g = sum over the rows of g of (c . slope - A score),   z = U / sqrt(V)

A test adds one term c to the log hazards of the fitted model and asks for the score of its coefficient, so that
nothing is fitted again. ``slope`` is that of a row's log-probability in its predictors, ``score`` the row's score
in the model's own parameters, and A takes out what their estimation explains. c is known when the row begins. If
the model holds, the slope then has mean 0 whatever c is, and U is a sum of martingale differences, although a row
starts where the one before it ended. V is the larger of the sum of u_g^2 and of the information about gamma that
is left beside the model's parameters, which errs on the safe side where few rows have a c.

    frailty       c = what the bridge has moved more than expected before, over all of its members; one-sided.
                  The score of the variance phi at phi = 0, less its part within single rows
    trend         c = the calendar year at the middle of the interval
    past          c = years for which the rating has been seen already
    clock         c = log of the mean hazard over the interval, by that at the age which the fit takes; one-sided
    errors        two patterns, the larger of two one-sided p-values: c = whether the pair before improved (a worse
                  rating follows: 2-1-2), and in a model of improvements, hazard by rating and covariates,
                  c = whether the pair before worsened (1-2-1)
    improvements  share of pairs that improve between two pairs that do not worsen, tested against 1 %: an error of
                  inspection reverts, work on the bridge stays

The tests that could be made are judged together at 5 % (Holm, Scandinavian Journal of Statistics 6, 1979). A test
that has too little to say gives its reason. States are 0-based here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import linalg, special

from rekka.core.errors import missing_columns
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.data.panel import PAIRED
from rekka.evaluation.goodness import MEMBER, States, find_links, varies
from rekka.model import inputs
from rekka.model.certificate import RUNAWAY
from rekka.model.coordinates import Coordinates, Layout, build_layout, orthonormal_coordinates
from rekka.model.family import Family
from rekka.model.fit import Fit, one_blas_thread
from rekka.model.inference import add_scores, normal_quantile, two_sided_p
from rekka.model.inputs import read_dates
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.restarts import MOST_ITERATIONS, crude_start
from rekka.model.solvers import newton

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ERRORS, IMPROVEMENTS, FRAILTY, TREND, CLOCK, PAST = "errors", "improvements", "frailty", "trend", "clock", "past"
LEVEL, CONFIDENCE = 0.05, 0.95
LEAST = 20  # rows, moves or bridges; with fewer, normal quantiles are not to be trusted
LEAST_JUDGED = 100  # pairs between two others, of which a share of 1 % means something
STAYING = 0.01  # share of pairs that improve for good and can be ignored: about half of the 1 to 2 % that improve
LEAST_YEARS = 5.0  # from the first to the last year, of a trend
OWN_INFORMATION = 1e-3  # share of a term's information that the model's parameters must leave to it
STEP = 1e-4  # in log hazards, of central differences of exact slopes
SMALL_CHANGE = 0.05  # of a hazard within an interval, which no plan depends on
MOST_ROWS = 0.95  # of the rows, whose hazards change by less than is said
MOMENTS = 8  # of an interval, at which the hazard is averaged
LARGEST = 10.0  # log of a factor that is worth printing
PAST_YEARS = 5.0  # in a rating, that the factor of ``past`` is for
TIMES = ("date_1", "visit_1")


@dataclass(frozen=True)
class Violation:
    """Result of one test: statistic and p-value with figures, or the reason why it was not made.

    ``adjusted`` is the p-value that allows for the other tests of the component (Holm).
    """

    name: str
    statistic: float | None = None  # a standard normal, if the assumption holds
    p_value: float | None = None
    adjusted: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    reason: Said | None = None
    level: float = LEVEL

    @property
    def found(self) -> bool:
        """Whether the records contradict the assumption."""
        return self.adjusted is not None and self.adjusted <= self.level

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the reason in English."""
        reason = None if self.reason is None else load_words(ENGLISH).format(self.reason)
        values = {name: getattr(self, name) for name in ("name", "statistic", "p_value", "adjusted", "level")}
        return values | {"found": self.found, "figures": dict(self.figures), "reason": reason}


class Score(NamedTuple):
    """z of a term, and the information about its coefficient that is left beside the model's own parameters."""

    z: float
    information: float


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows at a fitted model: design W (n, p+1), coefficients beta (K-1, p+1), their map (F, P) from free ones."""

    rows: Rows
    W: Array
    beta: Array
    select: Array
    group: States  # (n,), from 0
    family: Family

    @cached_property
    def eta(self) -> Array:
        """Predictors (n, K-1)."""
        return np.asarray(self.W @ self.beta.T)

    @cached_property
    def slope(self) -> Array:
        """Slope (n, K-1) of each row's log-probability in its predictors."""
        return self.slope_at(self.eta)

    @cached_property
    def residual(self) -> Array:
        """Slope (n,) in a shift of all log hazards: moves less expected moves, with one state to leave."""
        return np.asarray(self.slope.sum(axis=1))

    @cached_property
    def leaving(self) -> Array:
        """Expected probability (n,) that a row ends in another state than it starts in."""
        order = self.rows.grouping
        start = self.rows.start[order]
        p = self.family.end_probabilities(self.eta[order], self.rows.dt[order], start)
        found = np.empty(start.size)
        found[order] = 1.0 - p[np.arange(start.size), start]
        return found

    def slope_at(self, eta: Array) -> Array:
        """Slope (n, K-1) at other predictors: the design is eta itself, its coefficients are 1."""
        order = self.rows.grouping
        likelihood = Likelihood.build(self.rows.take(order), eta[order], 1, self.family)
        found = np.empty_like(eta)
        found[order] = likelihood.by_row(np.eye(eta.shape[1]))[1]
        return found

    @cached_property
    def _information(self) -> Array:
        order = self.rows.grouping
        likelihood = Likelihood.build(self.rows.take(order), self.W[order], 1, self.family)
        return np.asarray(-self.select.T @ likelihood.evaluate(self.beta.ravel(), 2).hessian @ self.select)

    @cached_property
    def _scores(self) -> Array:
        """Score (n, P) of each row in the free parameters."""
        each = self.slope[:, :, None] * self.W[:, None, :]
        return np.asarray(each.reshape(len(each), -1) @ self.select)

    def test(self, term: Array) -> Score:
        """Score test of a term (n,) or (n, K-1) of the log hazards."""
        term = np.broadcast_to(term if term.ndim > 1 else term[:, None], self.slope.shape)
        step = STEP / max(float(np.abs(term).max(initial=0.0)), STEP)
        curve = (self.slope_at(self.eta + step * term) - self.slope_at(self.eta - step * term)) / (2 * step)
        cross = -(curve.transpose() @ self.W).ravel() @ self.select
        own = float(-np.sum(curve * term))
        weights = linalg.lstsq(self._information, cross)[0]
        left = own - float(cross @ weights)
        if not left > OWN_INFORMATION * own:
            return Score(np.nan, 0.0)
        each = (self.slope * term).sum(axis=1) - self._scores @ weights
        by_group = np.bincount(self.group, each)
        return Score(float(each.sum() / np.sqrt(max(left, np.square(by_group).sum()))), left)

    def count(self, among: Mask) -> tuple[float, float]:
        """Rows that left their state, and how many were expected to."""
        return float((self.rows.end != self.rows.start)[among].sum()), float(self.leaving[among].sum())

    def fit_term(self, term: Array, layout: Layout) -> tuple[float, float] | None:
        """Coefficient of a term (n,), the same in all states, and its standard error by group; None if none."""
        free, p1 = self.beta.shape
        parameter = np.column_stack([layout.parameter.reshape(free, p1), np.full(free, layout.n_parameters)])
        larger = Layout((*layout.terms, "term"), layout.n_states, parameter.ravel())
        order = self.rows.grouping
        z = np.column_stack([self.W[:, 1:], term])[order]
        coordinates = orthonormal_coordinates(self.rows.take(order), z, larger, 0.0, 1, family=self.family)
        start = coordinates.forward @ np.column_stack([self.beta, np.zeros(free)]).ravel()
        psi = _climb(coordinates, start)
        if psi is None:
            return None
        slope = coordinates.likelihood.by_row(coordinates.gamma(psi))[1]
        meat = add_scores(coordinates.likelihood, coordinates.basis, slope, self.group[order])
        hessian = coordinates.objective(psi).hessian
        direction = linalg.solve(hessian, coordinates.back[p1], assume_a="pos")
        variance = direction @ meat.squares @ direction * meat.groups / max(meat.groups - 1, 1)
        return float(coordinates.back[p1] @ psi), float(np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows of a component in order of bridge, member and time, and what came before each.

    ``follows`` is the row before it of the same member, -1 where there is none; None of a table without visits.
    ``year`` is that of the middle of the interval; None without dates. Improvements are among the rows.
    """

    fit: Fit
    start: States
    end: States
    dt: Array
    x: Array
    group: States
    follows: States | None
    year: Array | None

    @classmethod
    def of(cls, fit: Fit, frame: pl.DataFrame) -> PairedRows:
        """Read transitions of one component, without rows of a category's level that no fitted row has."""
        absent = [name for name in PAIRED if name not in frame.columns]
        if absent:
            raise missing_columns(absent, frame.columns)
        fitted = frame.filter(pl.col("state_2") >= pl.col("state_1"))
        for name in fit.coding.names:
            frame = frame.filter(pl.col(name).is_in(fitted[name].implode()))
        times = [name for name in TIMES if name in frame.columns][:1]
        names = [name for name in MEMBER if name in frame.columns]
        frame = frame.sort(*names, *times, maintain_order=True, nulls_last=True)
        start, end = (frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
        dt, table = frame["interval_years"].to_numpy().astype(np.float64), inputs.as_frame(frame)
        x = inputs.read_covariates(table, fit.covariates, coding=fit.coding)
        group = np.arange(start.size)
        if "bridge_id" in frame.columns:
            names_of = frame["bridge_id"].cast(pl.String).fill_null("")
            group = names_of.rank("dense").to_numpy().astype(np.int64) - 1
        dated = "date_1" in frame.columns and not frame["date_1"].null_count()
        year = read_dates(table["date_1"], "date_1") + dt / 2 if dated else None
        return cls(fit, start, end, dt, x, group, find_links(frame), year)

    @property
    def improved(self) -> Mask:
        """Rows that end in a better rating."""
        return np.asarray(self.end < self.start)

    @property
    def worsened(self) -> Mask:
        """Rows that end in a worse rating."""
        return np.asarray(self.end > self.start)

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Rows that the model was fitted to: those without an improvement."""
        return np.flatnonzero(~self.improved)

    @cached_property
    def pairs(self) -> ScoredRows:
        """The fitted rows at the fitted model."""
        fit, kept = self.fit, self.kept
        rows = Rows(self.start[kept], self.end[kept], self.dt[kept], np.ones(kept.size), fit.n_states)
        W = np.column_stack([np.ones(kept.size), fit.scale(self.x[kept], rows.dt)])
        return ScoredRows(rows, W, fit.beta, fit.layout.select, self.group[kept], fit.family)

    @cached_property
    def before(self) -> Mask:
        """Rows that follow another of their member."""
        return np.zeros(self.start.size, bool) if self.follows is None else np.asarray(self.follows >= 0)

    @cached_property
    def after(self) -> States:
        """The row that follows each, -1 where there is none."""
        found = np.full(self.start.size, -1)
        if self.follows is not None:
            found[self.follows[self.before]] = np.flatnonzero(self.before)
        return found

    def was(self, mask: Mask) -> Mask:
        """Whether the row before each is in a mask."""
        return np.zeros_like(mask) if self.follows is None else self.before & mask[self.follows]

    @cached_property
    def seen(self) -> Array:
        """Years for which the start rating has been seen without a change."""
        years = np.zeros(self.start.size)
        follows = np.full(self.start.size, -1) if self.follows is None else self.follows
        stayed = self.was(self.start == self.end)
        for row in np.flatnonzero(stayed):  # rows are in order of time
            years[row] = years[follows[row]] + self.dt[follows[row]]
        return years

    @cached_property
    def ahead(self) -> tuple[Array, Mask]:
        """Sum of the residuals of a bridge's rows before each fitted row (n,), and which have such rows."""
        residual, group = self.pairs.residual, self.pairs.group
        first = np.flatnonzero(np.diff(group, prepend=-1))
        earlier = np.cumsum(residual) - residual
        place = np.arange(group.size) - np.repeat(first, np.diff(np.append(first, group.size)))
        return earlier - earlier[np.arange(group.size) - place], place > 0


def find_violations(fit: Fit, frame: pl.DataFrame, *, level: float = LEVEL) -> tuple[Violation, ...]:
    """Test what the pair model assumes on the rows that it was fitted to.

    Parameters
    ----------
    fit : Fit
        A model of pairs.
    frame : dataframe
        Transitions of the component, as paired with ``upward="keep"``: improvements by one rating among them. Of a
        table without any nothing is said about improvements.
    level : float
        Of all tests together.

    Returns
    -------
    tuple of Violation
        One for each assumption that the columns of the table allow to test; those that contradict the model first,
        the smallest p-value before the others.

    """
    rows = PairedRows.of(fit, frame)
    tests: Mapping[str, Callable[[PairedRows], Violation]] = {
        **({ERRORS: _test_errors, IMPROVEMENTS: _test_improvements} if rows.improved.any() else {}),
        **({FRAILTY: _test_frailty} if "bridge_id" in frame.columns else {}),
        **({} if rows.year is None else {TREND: _test_trend}),
        **({CLOCK: _test_clock} if fit.clock.columns else {}),
        **({} if rows.follows is None else {PAST: _test_past}),
    }
    if not fit.certificate.certified:
        return tuple(_untested(name, "uncertified") for name in tests)
    moved = int(np.sum(rows.worsened))
    if moved < LEAST:
        return tuple(_untested(name, "few_moves", moved=moved) for name in tests)
    with one_blas_thread():
        return adjust([test(rows) for test in tests.values()], level)


def adjust(tests: list[Violation], level: float) -> tuple[Violation, ...]:
    """Tests with p-values that allow for their number (Holm), the smallest first; then those not made."""
    made = sorted((one for one in tests if one.p_value is not None), key=lambda one: one.p_value or 0.0)
    found, least = [], 0.0
    for place, one in enumerate(made):
        least = max(least, min(1.0, (len(made) - place) * (one.p_value or 0.0)))
        found.append(replace(one, adjusted=least, level=level))
    return (*found, *(one for one in tests if one.p_value is None))


def _untested(name: str, reason: str, figures: Mapping[str, float] | None = None, **values: Any) -> Violation:
    return Violation(name, reason=say(f"check.untested.{reason}", least=LEAST, **values), figures=figures or {})


def _upper(z: float) -> float:
    """One-sided p-value."""
    return float(special.ndtr(-z))


def _test_frailty(rows: PairedRows) -> Violation:
    term, later = rows.ahead
    bridges = np.unique(rows.pairs.group[later]).size
    if bridges < LEAST:
        return _untested(FRAILTY, "few_bridges", bridges=bridges)
    score = rows.pairs.test(term)
    if np.isnan(score.z):
        return _untested(FRAILTY, "no_information")
    low, high = np.quantile(term[later], (1 / 3, 2 / 3))
    fast, fast_expected = rows.pairs.count(later & (term > high))
    slow, slow_expected = rows.pairs.count(later & (term <= low))
    figures = {"fast": fast, "fast_expected": fast_expected, "slow": slow, "slow_expected": slow_expected}
    return Violation(FRAILTY, score.z, _upper(score.z), figures=figures)


def _test_trend(rows: PairedRows) -> Violation:
    assert rows.year is not None
    year, half = rows.year[rows.kept], rows.dt[rows.kept] / 2
    first, last = float((year - half).min()), float((year + half).max())
    if last - first < LEAST_YEARS:
        return _untested(TREND, "few_years", years=last - first, least_years=LEAST_YEARS)
    return _test_two_sided(rows, TREND, year - year.mean(), last - first, {"first": first, "last": last})


def _test_past(rows: PairedRows) -> Violation:
    seen = rows.seen[rows.kept]
    if int((seen > 0).sum()) < LEAST:
        return _untested(PAST, "few_seen", rows=int((seen > 0).sum()))
    return _test_two_sided(rows, PAST, seen, PAST_YEARS, {"years": PAST_YEARS})


def _test_two_sided(
    rows: PairedRows, name: str, term: Array, years: float, figures: Mapping[str, float]
) -> Violation:
    """Test a term in years; the factor by which hazards change in so many, where the records show one."""
    score = rows.pairs.test(term)
    if np.isnan(score.z):
        return _untested(name, "no_information")
    p = float(two_sided_p(np.array(score.z)))
    if p > LEVEL:
        return Violation(name, score.z, p, figures=figures)
    fitted = rows.pairs.fit_term(term, rows.fit.layout)
    if fitted is None:
        return Violation(name, score.z, p, figures=figures)
    value, reach = years * fitted[0], years * normal_quantile(CONFIDENCE) * fitted[1]
    if abs(value) + reach > LARGEST:
        return Violation(name, score.z, p, figures=figures)
    factors = {"factor": value, "low": value - reach, "high": value + reach}
    return Violation(name, score.z, p, figures={**figures, **{n: float(np.exp(v)) for n, v in factors.items()}})


def _test_clock(rows: PairedRows) -> Violation:
    """Whether hazards that go on growing within an interval fit better than those at the age the fit takes."""
    fit, kept = rows.fit, rows.kept
    x, dt = rows.x[kept], rows.dt[kept]
    moments = []
    for share in (np.arange(MOMENTS) + 0.5) / MOMENTS:
        later = x.copy()
        later[:, list(fit.clock.columns)] += share * dt[:, None]
        moments.append(fit.log_hazards(later))
    each = np.stack(moments)
    change = np.abs(each[-1] - each[0]).max(axis=1)
    mean, taken = special.logsumexp(each, axis=0) - np.log(MOMENTS), fit.clock.take(x, dt)
    off = np.abs(mean - fit.log_hazards(taken)).max(axis=1)
    within, missed = (float(np.expm1(np.quantile(size, MOST_ROWS))) for size in (change, off))
    figures = {"within": within, "missed": missed}
    if missed < SMALL_CHANGE:
        return _untested(CLOCK, "small_change", figures, missed=missed)
    score = rows.pairs.test(fit.family.predictors(mean) - fit.predictors(taken))
    if not np.sqrt(score.information) >= normal_quantile(CONFIDENCE):  # the full effect would not show
        return _untested(CLOCK, "same_intervals", figures, missed=missed)
    return Violation(CLOCK, score.z, _upper(score.z), figures=figures)


def _test_errors(rows: PairedRows) -> Violation:
    """Moves there and back within three visits: more than of repairs that do not depend on the move before."""
    share = float(rows.improved.mean())
    figures = {"share": share, "improved": float(rows.improved.sum())}
    again = rows.was(rows.improved)[rows.kept]
    model = _model_improvements(rows)
    if model is None or int(again.sum()) < LEAST:
        return _untested(ERRORS, "few_improvements", figures, improved=int(rows.improved.sum()))
    back, worsened = model
    scores = rows.pairs.test(again.astype(np.float64)), back.test(worsened.astype(np.float64))
    z = min(score.z for score in scores)
    if np.isnan(z) or any(np.isnan(score.z) for score in scores):
        return _untested(ERRORS, "no_information", figures)
    for name, counted in (("again", rows.pairs.count(again)), ("back", back.count(worsened))):
        figures |= dict(zip((name, f"{name}_expected"), counted, strict=True))
    return Violation(ERRORS, z, _upper(z), figures=figures)


def _model_improvements(rows: PairedRows) -> tuple[ScoredRows, Mask] | None:
    """A model of improvements of rows that follow others, and which of these follow a pair that worsened.

    Whether a row improves is a chain of two states, with a hazard by rating and covariates; without covariates
    where they leave it no maximum. None where too few rows improve, or follow a move.
    """
    able = rows.before & (rows.start > 0)
    many = np.bincount(rows.start[able & rows.improved], minlength=rows.fit.n_states) >= LEAST / 2
    able &= many[rows.start]
    worsened = rows.was(rows.worsened)[able]
    if min(int(rows.improved[able].sum()), int(worsened.sum())) < LEAST:
        return None
    start, dt = rows.start[able], rows.dt[able]
    two = Rows(np.zeros(start.size, np.int64), rows.improved[able].astype(np.int64), dt, np.ones(start.size), 2)
    states = np.column_stack([start == k for k in np.unique(start)[1:]] or [np.empty((start.size, 0))])
    scaled = rows.fit.scale(rows.x[able], dt)
    for z in (np.column_stack([states, scaled]), states.astype(np.float64)):
        beta = _fit_two(two, z, rows.fit.family) if varies(z) else None
        if beta is not None:
            W = np.column_stack([np.ones(start.size), z])
            _, group = np.unique(rows.group[able], return_inverse=True)
            return ScoredRows(two, W, beta, np.eye(beta.size), group.astype(np.int64), rows.fit.family), worsened
    return None


def _fit_two(rows: Rows, z: Array, family: Family) -> Array | None:
    """Coefficients (1, p+1) of a model of two states; None where there is no maximum."""
    layout = build_layout([str(column) for column in range(z.shape[1])], 2, None, None)
    order = rows.grouping
    coordinates = orthonormal_coordinates(rows.take(order), z[order], layout, 0.0, 1, family=family)
    psi = _climb(coordinates, crude_start(coordinates))
    return None if psi is None else coordinates.beta(psi)


def _climb(coordinates: Coordinates[Likelihood], start: Array) -> Array | None:
    """Newton from a start; None where it does not end, or where some combination of coefficients runs away."""
    psi, outcome = newton(coordinates.objective, start, MOST_ITERATIONS, coordinates.unit)
    if not outcome.success:
        return None
    hessian = coordinates.standard.T @ coordinates.objective(psi).hessian @ coordinates.standard
    return psi if np.linalg.eigvalsh(hessian)[0] > RUNAWAY**-2 else None


def _test_improvements(rows: PairedRows) -> Violation:
    """Improvements that stay: between two pairs, neither of which worsens."""
    improved = int(rows.improved.sum())
    share = float(rows.improved.mean())
    between = rows.before & (rows.after >= 0)
    judged = int(between.sum())
    figures = {"share": share, "improved": float(improved), "judged": float(judged)}
    if judged < LEAST_JUDGED:
        return _untested(
            IMPROVEMENTS, "few_judged", figures, judged=judged, share=share, least_judged=LEAST_JUDGED
        )
    stays = between & rows.improved & ~rows.was(rows.worsened) & ~rows.worsened[rows.after]
    each = stays[between] - STAYING
    by_group = np.bincount(rows.group[between], each)
    z = float(each.sum() / np.sqrt(max(np.square(by_group).sum(), STAYING * (1 - STAYING) * judged)))
    figures |= {"stay": float(stays.sum()), "staying": float(stays.sum() / judged)}
    return Violation(IMPROVEMENTS, z, _upper(z), figures=figures)
