"""Fit a model to histories: starts, climb, curvature, boundaries, certificate.

The steps are those of ``fit.fit_observations``, with these differences. The likelihood has parameters behind the
coefficients. Its gradient is exact. On the way the sum of squares of the bridges' scores stands for its Hessian
(BHHH), updated near the top (BFGS); at the maximum it comes from central differences. Probabilities and the
variance of the frailty may be 0 at the maximum: a boundary, which is said, and not a likelihood without a maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rekka.core.errors import BadOption, BadStates, InputError
from rekka.model.certificate import (
    DECREMENT_LIMIT,
    RUNAWAY,
    SINGULAR_CONDITION,
    WEAK_CONDITION,
    Certificate,
    Verdict,
    describe_condition,
)
from rekka.model.coordinates import Coordinates, Layout, in_orthonormal
from rekka.model.elements import Elements, count_nodes
from rekka.model.family import find_family
from rekka.model.fit import Fit, Options, lay_out, one_blas_thread
from rekka.model.history_passes import (
    HistoryObservations,
    SummedHistories,
)
from rekka.model.history_starts import find_starts, find_warm_starts
from rekka.model.inference import Inference, native_units
from rekka.model.likelihood import Evaluation
from rekka.model.records import Records
from rekka.model.solvers import Outcome, Stop, solve_newton, step_within, timed
from rekka.model.survey import PERCENTILES, Survey
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

START_NODES, START_SPAN = 12, 10.0  # while starts are compared: good to a hundredth or so
MOST_NODES = 512
NODE_ERROR = 1e-5  # log-likelihood units by which doubling the nodes may change the maximum
ROUGH = 1e-2  # log-likelihood units, left to the maximum or gained by STEADY steps, at which BHHH hands over
STEADY = 8
CLOSE = 1.0  # log-likelihood units below the highest point within which another start continues to its maximum ...
APART = 0.1  # ... if a parameter differs by so much, and that maximum's curvature does not explain the lower value
HILLSIDE = 3.0  # log-likelihood units below a maximum down to which its curvature is asked
DONE = 1e-12  # the same at which Newton ends
MOST_CLIMBS = 80
MOST_CURVES = 8  # Hessians computed on the way
MOST_CHORDS = 24  # steps with one Hessian, updated ...
MOST_SLOW = 0.75  # ... of which so many a parameter may leave more than a quarter of the gradient
FAR = 8.0  # longest step of a climb
RARE = -5.0  # logit below which a probability that falls is tried at 0 ...
AGAIN = 1.0  # ... and again where it has fallen by so much more
FREED = -7.0  # logit from which a probability climbs that was held at 0 and rises from there
TINY = (
    -14.0
)  # logit at which a likelihood that rises from 0 is seen to; below it a probability cannot be told from 0
MOST_FREED = 3  # times that probabilities are let go again
SMALL = 2_000  # rows up to which higher points are looked for around a maximum of a model with errors ...
LOOKS = (3.0, 6.0)  # ... at so many standard errors from it ...
UNEXPLAINED = 0.5  # ... where log L falls by less than this share of what the curvature says ...
MOST_LOOKS = 12  # ... from so many points at most ...
MOST_ROUNDS = 6  # ... and again around the higher point
REMOTE = 30.0  # standard units over which a log L that does not fall is one that never does ...
MOST_REMOTE = 3  # ... along one of so many directions of the least curvature
CLEAR = 1.0  # log-likelihood units that it must be higher far out for a maximum not to be certified
ENDLESS = "there is no finite maximum; leave an element or a covariate out, or merge states"
VALUE_NOISE = 1e-12  # relative rounding error of a log-likelihood
DIFFERENCE = 2e-3  # step of a central difference, in standard errors


class Curvature(NamedTuple):
    """Hessian of minus log L in the parameters that are free."""

    free: Mask
    hessian: Array

    def restrict(self, free: Mask) -> Curvature | None:
        """Curvature in fewer parameters; None where it is not known in all of them."""
        if (free & ~self.free).any():
            return None
        own = free[self.free]
        return Curvature(free, self.hessian[np.ix_(own, own)])


class HistoryPoint(NamedTuple):
    """Parameters (P + Q,) with value, gradient, and the sum of the outer products of the bridges' scores there."""

    q: Array
    value: float
    gradient: Array
    squares: Array


@dataclass(eq=False)
class Climber:
    """The objective of a fit: free parameters, the number of evaluations, and where ``phi`` stands."""

    likelihood: SummedHistories
    basis: Array  # (F + Q, P + Q)
    phi: int | None
    rare: Mask  # parameters that are logits of a probability, which may be 0
    floor: Array  # logit of each parameter below which it is tried at 0
    tried: Array  # logit at which it was last tried, and lower at 0
    evaluations: int = 0
    iterations: int = 0

    def at(self, q: Array) -> HistoryPoint:
        """Evaluate value, gradient and the squares of scores."""
        self.evaluations += 1
        return HistoryPoint(q, *self.likelihood.sum(self.expand(q), self.basis))

    def expand(self, q: Array) -> Array:
        """Parameters of the likelihood; a logit of minus infinity stays one."""
        known = np.where(np.isfinite(q), q, 0.0)
        full = self.basis @ known
        extra = self.likelihood.elements.size
        if extra:
            full[-extra:] = q[-extra:]
        return np.asarray(full)

    def keep(self, q: Array) -> Array:
        """The nearest point with a variance of at least 0."""
        if self.phi is not None and q[self.phi] < 0.0:
            q = q.copy()
            q[self.phi] = 0.0
        return q

    def active(self, point: HistoryPoint, free: Mask) -> Mask:
        """Parameters that may move: not a variance of 0 that a step would make negative."""
        if self.phi is None or point.q[self.phi] > 0.0 or point.gradient[self.phi] > 0.0:
            return free
        held = free.copy()
        held[self.phi] = False
        return held

    def vanish(self, here: HistoryPoint, free: Mask) -> tuple[HistoryPoint, Mask]:
        """Set probabilities that are small and falling to 0, one by one, and hold them where that is higher.

        Scores cannot: those of a logit vanish with its probability, and each step goes as far as the last.
        """
        for place in np.flatnonzero(self.is_vanishing(here, free)):
            q = here.q.copy()
            q[place] = -np.inf
            there = self.at(q)
            lost = VALUE_NOISE * abs(here.value) if here.q[place] < TINY else 0.0
            if _is_finite(there) and there.value >= here.value - lost:
                here, free = there, free.copy()
                free[place] = False
            else:
                self.tried[place] = here.q[place]
        return here, free

    def is_vanishing(self, here: HistoryPoint, free: Mask) -> Mask:
        """Mask of probabilities that are small and falling, or too small for the likelihood to notice."""
        small = (here.q < self.floor) & (here.gradient < 0.0)
        return np.asarray(free & self.rare & (small | (here.q < TINY)) & (here.q < self.tried - AGAIN))

    def climb(
        self, q: Array, free: Mask, tolerance: float, tops: Sequence[Ascent] = ()
    ) -> tuple[HistoryPoint, Mask, bool]:
        """Go up with the bridges' scores for curvature, within a trust region, unless it is to one of ``tops``.

        Return the point, what is free there, and whether the top is near.
        """
        here = self.at(q)
        self.tried[:] = np.inf
        if not _is_finite(here):
            return here, free, False
        radius, values = 1.0, [-np.inf] * STEADY
        for _ in range(MOST_CLIMBS):
            self.iterations += 1
            values.append(here.value)
            if any(top.explains(here, free) for top in tops):
                return here, free, True
            here, free = self.vanish(here, free)
            move = self.active(here, free)
            model = _model(here, move, here.squares[np.ix_(move, move)])
            step, decrement = solve_newton(model)
            if decrement < tolerance or values[-1] - values[-1 - STEADY] < tolerance:
                return here, free, True
            while True:
                if not np.isfinite(decrement) or np.linalg.norm(step) > radius:
                    step = step_within(model, radius)
                there = self.at(self.keep(_moved(here.q, move, step)))
                promised = -float(model.gradient @ step + 0.5 * step @ model.hessian @ step)
                gain = there.value - here.value if _is_finite(there) else -np.inf
                if gain > 1e-4 * promised:
                    break
                radius = 0.25 * min(radius, float(np.linalg.norm(step)))
                if radius < 1e-9:
                    return here, free, False
            radius = min(FAR, 2.0 * radius) if gain > 0.5 * promised else radius
            here = there
        return here, free, False

    def curve(self, here: HistoryPoint, free: Mask, *, central: bool = True) -> tuple[Array, float]:
        """Hessian of minus log L in the free parameters, and its asymmetry relative to the diagonal.

        Differences that are not central are good to three digits: enough for Newton's way, at half the price.
        """
        places = np.flatnonzero(free)
        spread = np.sqrt(np.maximum(np.diag(here.squares)[places], 1e-12))
        hessian = np.empty((places.size, places.size))
        for i, place in enumerate(places):
            step = float(np.clip(DIFFERENCE / spread[i], 1e-6, 1e-2))
            if place == self.phi:
                step = min(step, 0.25 * max(here.q[place], 4e-6))
            up, down = here.q.copy(), here.q.copy()
            up[place] += step
            below = here
            if central:
                down[place] -= step
                below = self.at(down)
            length = up[place] - down[place]
            hessian[i] = (below.gradient[places] - self.at(up).gradient[places]) / length
        root = np.sqrt(np.abs(np.diag(hessian)) + 1e-300)
        asymmetry = float((np.abs(hessian - hessian.T) / np.outer(root, root)).max(initial=0.0))
        return 0.5 * (hessian + hessian.T), asymmetry

    def polish(
        self, here: HistoryPoint, free: Mask, known: Curvature | None = None
    ) -> tuple[HistoryPoint, Mask, bool, Curvature | None]:
        """Quasi-Newton steps to the top; probabilities that vanish are held at 0.

        ``known`` is the Hessian to begin with, else one from differences, as where steps are slow; the last one is
        returned. It decides how fast the top is reached, not where it is.
        Return the point, what is free there, and whether it is the top.
        """
        self.tried[:] = np.inf
        for _ in range(MOST_CURVES):
            here, free = self.vanish(here, free)
            move = self.active(here, free)
            known = None if known is None else known.restrict(move)
            if known is None:
                known = Curvature(move, self.curve(here, move, central=False)[0])
            hessian, before, worn, slow = known.hessian, here, known, 0
            known = None
            for _ in range(MOST_CHORDS):
                self.iterations += 1
                model = _model(here, move, hessian)
                step, decrement = solve_newton(model)
                if decrement < max(DONE, 1e-16 * abs(here.value)):
                    last = self.at(self.keep(_moved(here.q, move, step)))
                    better = _is_finite(last) and np.linalg.norm(last.gradient[move]) <= np.linalg.norm(
                        here.gradient[move]
                    )
                    here = last if better else here
                    if np.array_equal(self.active(here, free), move):
                        return here, free, True, worn
                    break
                if not np.isfinite(decrement) or np.linalg.norm(step) > FAR:
                    step = step_within(model, 0.5)
                there = self.at(self.keep(_moved(here.q, move, step)))
                if not _is_finite(there) or there.value < here.value - 1e-9 * (1.0 + abs(here.value)):
                    break
                slow += bool(np.linalg.norm(there.gradient[move]) > 0.25 * np.linalg.norm(here.gradient[move]))
                hessian = _update(
                    hessian, there.q[move] - here.q[move], here.gradient[move] - there.gradient[move]
                )
                here, worn = there, Curvature(move, hessian)
                if self.is_vanishing(here, free).any():
                    known = worn
                    break
                if slow > MOST_SLOW * move.sum():
                    break  # another Hessian is worth its price
            if here is before:  # no step of Newton's goes up
                here, free, _ = self.climb(here.q, free, 1e-6)
                if here.value <= before.value:
                    return before, free, False, None
        return here, free, False, None


def _update(hessian: Array, step: Array, change: Array) -> Array:
    """The Hessian with what a step has shown of it, by the change of the gradient (BFGS)."""
    along, bent = float(step @ change), hessian @ step
    if not along > 0.0:
        return hessian
    return hessian + np.outer(change, change) / along - np.outer(bent, bent) / float(step @ bent)


def _model(here: HistoryPoint, free: Mask, hessian: Array) -> Evaluation:
    """Minus log L near a point, in its free parameters."""
    return Evaluation(-here.value, -here.gradient[free], hessian)


def _moved(q: Array, free: Mask, step: Array) -> Array:
    moved = q.copy()
    moved[free] += step
    return moved


def _is_finite(point: HistoryPoint) -> bool:
    return bool(np.isfinite(point.value) and np.isfinite(point.gradient).all())


class Ascent(NamedTuple):
    """A point near a maximum that a start has come to, what is free there, and its curvature if that is known."""

    point: HistoryPoint
    free: Mask
    near: bool
    curvature: Curvature | None = None

    def explains(self, other: HistoryPoint, free: Mask) -> bool:
        """Whether another start is on its way to the same maximum."""
        both = self.free & free
        apart = other.q[both] - self.point.q[both]
        if np.abs(apart).max(initial=0.0) < APART:
            return True
        known = None if self.curvature is None else self.curvature.restrict(self.free)
        far = other.value < self.point.value - HILLSIDE
        if known is None or far or not np.array_equal(self.free, free):
            return False
        drop = 0.5 * float(apart @ known.hessian @ apart)
        return abs(self.point.value - other.value - drop) < 0.5 * drop + ROUGH


@dataclass(frozen=True, eq=False)
class Summit:
    """The highest point of several starts, and a higher one from which the likelihood rises on, if there is."""

    point: HistoryPoint
    free: Mask
    success: bool
    starts: int
    curvature: Curvature | None = None
    elsewhere: HistoryPoint | None = None

    @property
    def boundaries(self) -> list[int]:
        """Places of the parameters that are at a boundary."""
        return [int(place) for place in np.flatnonzero(~self.free)]


def fit_observed_histories(
    observed: HistoryObservations,
    options: Options,
    elements: Elements,
    *,
    clustered: bool = False,
    date: str | None = None,
    warm: Sequence[Fit] = (),
) -> Fit:
    """Fit rows in blocks of whole bridges, wherever they are; ``warm`` are earlier fits to start from."""
    check_history_options(options)
    overview = observed.overview.with_states(elements.n_states)
    observed = replace(observed, overview=overview, clock=observed.clock.measured(*overview.pairs))
    if elements.frailty and overview.bridges < 2:
        raise InputError(
            "All rows belong to one bridge, and a frailty is what bridges differ by. Give the bridge of each row "
            "as groups, or fit without frailty."
        )
    with one_blas_thread():
        layout = lay_out(observed.covariates, elements.n_states, options)
        scaling = observed.fit_scaling(options.scaling, options.coding.terms)
        climber, coordinates = _pose(observed, elements, scaling, layout, options)
        usual = find_starts(coordinates, observed, elements)
        near = find_warm_starts(warm, coordinates, observed, elements, scaling.transform)
        climber.at(usual[0])  # compiled, or loaded, before the clock starts
        about = elements.pattern is not None and not elements.frailty and overview.rows <= SMALL and not near

        def solve() -> tuple[Summit, float | None]:
            found, doubled = _finish(climber, _search(climber, near, usual))
            return _look_about(climber, coordinates, found) if about else found, doubled

        (found, doubled), seconds = timed(solve)
        point, free = found.point, found.free
        stop = Stop.CONVERGED if found.success else Stop.STALLED
        counts = climber.iterations, climber.evaluations
        outcome = Outcome(found.success, stop.value, *counts, seconds, -point.value)
        hessian, asymmetry = climber.curve(point, free)
        here = _model(point, free, hessian)
        certificate = _certify(climber, coordinates, layout, found, here, asymmetry, doubled)
        return _collect(
            climber, coordinates, layout, scaling, found, here, certificate, observed, outcome, clustered, date,
            options,
        )  # fmt: skip


def check_history_options(options: Options) -> None:
    """Refuse options that a fit of histories does not have."""
    for option, usual in (("solver", "newton"), ("likelihood", "exact"), ("ridge", 0.0), ("prior", None)):
        if getattr(options, option) != usual:
            raise BadOption(
                f"{option} is {getattr(options, option)!r}, which a fit of histories does not take: leave it out, "
                "or leave errors, frailty, improvements, trend, first and the running clock out.",
                option=option,
            )


def _pose(
    observed: HistoryObservations, elements: Elements, scaling: FittedScaling, layout: Layout, options: Options
) -> tuple[Climber, Coordinates[Any]]:
    """The likelihood in orthonormal columns of the steps."""
    likelihood, axes = observed.pose(scaling, elements, find_family(options.family), options.half_life)
    likelihood = likelihood.with_nodes(START_NODES if elements.frailty else 1, START_SPAN)
    posed: Any = likelihood  # of which coordinates ask nothing here
    coordinates = in_orthonormal(posed, axes, layout, 0.0, None)
    basis = linalg.block_diag(coordinates.basis, np.eye(elements.size))
    phi = layout.n_parameters + elements.parts["frailty"].start if elements.frailty else None
    rare = np.concatenate([np.zeros(layout.n_parameters, dtype=bool), elements.logits])
    return Climber(likelihood, basis, phi, rare, np.full(rare.size, RARE), np.full(rare.size, np.inf)), coordinates


def _search(climber: Climber, *several: list[Array]) -> Summit:
    """Climb from every start of the first list that comes anywhere, and return the highest point.

    Probabilities that are 0 there are held at it.
    """
    free, count = np.ones(climber.rare.size, dtype=bool), 0
    tops: list[Ascent] = []
    for start in (start for starts in several if not tops for start in starts):
        point, own, near = climber.climb(start, free, ROUGH, tops)
        if _is_finite(point):
            count += 1
            if not any(top.explains(point, own) for top in tops):
                tops.append(Ascent(point, own, near, Curvature(own, point.squares[np.ix_(own, own)])))
    if not tops:
        raise BadStates(
            "The likelihood is 0 at every start: some rating is all but impossible under these options."
        )
    highest = max(top.point.value for top in tops)
    first, *close = sorted(
        (top for top in tops if top.point.value > highest - CLOSE), key=lambda one: -one.point.value
    )
    best = first = Ascent(*climber.polish(first.point, first.free)) if close else first
    for top in close:
        if not first.explains(top.point, top.free):
            best = max(best, Ascent(*climber.polish(top.point, top.free)), key=lambda one: one.point.value)
    return Summit(best.point, best.free, best.near, count, best.curvature)


def _finish(climber: Climber, found: Summit) -> tuple[Summit, float | None]:
    """Newton to the end; probabilities held at 0 that would rise from there are freed, and Newton continues."""
    found, doubled = _refine(climber, found)
    for _ in range(MOST_FREED):
        rising = []
        for place in np.flatnonzero(climber.rare & ~found.free):
            q = found.point.q.copy()
            q[place] = TINY
            if climber.at(q).value > found.point.value + VALUE_NOISE * abs(found.point.value):
                rising.append(place)
        if not rising:
            break
        q, free = found.point.q.copy(), found.free.copy()
        q[rising], free[rising], climber.floor[rising] = FREED, True, TINY
        found, doubled = _refine(climber, replace(found, point=climber.at(q), free=free))
    return found, doubled


def _look_about(climber: Climber, coordinates: Coordinates[Any], found: Summit) -> Summit:
    """The highest of the maxima around a maximum, and around those that are found."""
    for _ in range(MOST_ROUNDS):
        here = found.point
        found = _find_higher(climber, coordinates, found)
        if found.point is here:
            break
    return found


def _find_higher(climber: Climber, coordinates: Coordinates[Any], found: Summit) -> Summit:
    """Climb from some standard errors aside in each parameter, the others following; the first higher maximum.

    Where log L falls as the curvature says there is but the maximum that is known, and nothing is climbed.
    Errors of inspection explain some rows or others: in few rows each choice may have a maximum of its own.
    A higher point that runs away is none: it is kept as what the likelihood is elsewhere.
    """
    here, free = found.point, found.free
    known = _measure_maximum(climber, coordinates, found)
    if known is None:
        return found
    curvature, inverse = known
    sides = _standardise(climber, coordinates)[np.ix_(free, free)] @ (inverse / np.sqrt(np.diag(inverse)))
    aside = []
    for length in LOOKS:
        for step in (*sides.T, *-sides.T):
            there = climber.at(_moved(here.q, free, length * step))
            share = (here.value - there.value) / (0.5 * length**2)
            if share < UNEXPLAINED:
                aside.append((share, there.q))
    top = Ascent(here, free, True, curvature)
    for _, q in sorted(aside, key=lambda one: one[0])[:MOST_LOOKS]:
        found = replace(found, starts=found.starts + 1)
        point, own, near = climber.climb(q, free, ROUGH, [top])
        higher = _is_finite(point) and point.value > here.value + ROUGH
        if not higher or not (near or found.elsewhere is None):
            continue
        squares = Curvature(own, point.squares[np.ix_(own, own)])
        other, _ = _finish(climber, Summit(point, own, near, found.starts, squares, found.elsewhere))
        if other.point.value <= here.value + ROUGH:
            continue
        if other.success and _measure_maximum(climber, coordinates, other) is not None:
            return other
        if found.elsewhere is None or other.point.value > found.elsewhere.value:
            found = replace(found, elsewhere=other.point)
    return found


def _measure_maximum(
    climber: Climber, coordinates: Coordinates[Any], found: Summit
) -> tuple[Curvature, Array] | None:
    """Curvature, and covariance in standardised coefficients; None at what is no maximum, or has run away."""
    free = found.free
    standard = _standardise(climber, coordinates)[np.ix_(free, free)]
    hessian, _ = climber.curve(found.point, free, central=False)
    try:
        root = np.linalg.inv(np.linalg.cholesky(standard.T @ hessian @ standard))
    except np.linalg.LinAlgError:
        return None
    inverse = root.T @ root
    return (Curvature(free, hessian), inverse) if np.diag(inverse).max() <= RUNAWAY**2 else None


def _standardise(climber: Climber, coordinates: Coordinates[Any]) -> Array:
    """The map (P + Q, P + Q) from coefficients of standardised covariates to parameters."""
    return np.asarray(linalg.block_diag(coordinates.standard, np.eye(climber.likelihood.elements.size)))


def _refine(climber: Climber, found: Summit) -> tuple[Summit, float | None]:
    """Newton to the end, with as many frailty nodes as it takes; the change when they are doubled."""
    elements = climber.likelihood.elements
    if not elements.frailty or climber.phi is None:
        point, free, success, _ = climber.polish(found.point, found.free, found.curvature)
        return replace(found, point=point, free=free, success=success), None
    nodes = count_nodes(float(found.point.q[climber.phi]))
    known = found.curvature
    if climber.likelihood.nodes < nodes:  # most of the way with the few nodes of the starts
        point, free, _, known = climber.polish(found.point, found.free, known)
        found = replace(found, point=point, free=free)
    while True:
        climber.likelihood = climber.likelihood.with_nodes(nodes)
        point, free, success, known = climber.polish(climber.at(found.point.q), found.free, known)
        found = replace(found, point=point, free=free, success=success)
        if point.q[climber.phi] <= 0.0:
            return _drop_frailty(climber, found), 0.0
        climber.likelihood = climber.likelihood.with_nodes(2 * nodes)
        doubled = abs(climber.at(point.q).value - point.value)
        climber.likelihood = climber.likelihood.with_nodes(nodes)
        if doubled <= NODE_ERROR or 2 * nodes > MOST_NODES:
            return found, doubled
        nodes *= 2


def _drop_frailty(climber: Climber, found: Summit) -> Summit:
    """The fit without frailty, whose variance is 0 at the maximum."""
    assert climber.phi is not None
    q, free = found.point.q.copy(), found.free.copy()
    q[climber.phi], free[climber.phi] = 0.0, False
    climber.likelihood = climber.likelihood.with_nodes(1)
    point, free, success, _ = climber.polish(climber.at(q), free)
    return replace(found, point=point, success=success, free=free)


def _certify(
    climber: Climber,
    coordinates: Coordinates[Any],
    layout: Layout,
    found: Summit,
    here: Evaluation,
    asymmetry: float,
    doubled: float | None,
) -> Certificate:
    """Judge the point: curvature, what is left to gain, boundaries, nodes."""
    elements, P = climber.likelihood.elements, layout.n_parameters
    names = [layout.name(q) for q in range(P)] + list(elements.names)
    own = [name for name, one in zip(names, found.free, strict=True) if one]
    standard = _standardise(climber, coordinates)[np.ix_(found.free, found.free)]
    _, decrement = solve_newton(here)
    hessian = standard.T @ here.hessian @ standard
    condition, weakest = describe_condition(hessian, own)
    definite = bool(np.isfinite(decrement)) and condition <= SINGULAR_CONDITION
    wide = _find_wide(hessian, own) if definite else []
    remarks = [
        f"{_say_boundary(names[place])}: a boundary of the model, not a failed fit" for place in found.boundaries
    ]
    remarks.append(f"curvature from differences of the exact gradient, symmetric to {max(asymmetry, 1e-16):.1g}")
    if climber.likelihood.nodes > 1 and doubled is not None:
        count = climber.likelihood.place(found.point.q[P:]).log_eps.size
        remarks.append(
            f"frailty integrated with {count} nodes; with twice as many the log-likelihood "
            f"changes by {doubled:.1g}"
        )
    plateau = climber.likelihood.plateau(climber.expand(found.point.q))
    verdict, reasons = Verdict.CERTIFIED, list[str]()
    if not np.isfinite(decrement):
        verdict = Verdict.NOT_A_MAXIMUM
        reasons = [f"the curvature is not that of a maximum along {weakest}"]
    elif condition > SINGULAR_CONDITION:
        verdict = Verdict.NOT_IDENTIFIED
        reasons = [f"the likelihood does not change along {weakest}; leave an element or a term out"]
    elif wide:
        verdict = Verdict.NO_FINITE_MAXIMUM
        reasons = [
            f"the standard error of {', '.join(wide[:3])} is above {RUNAWAY:g}: there is no finite maximum in "
            "it, or the rows do not determine it; leave an element or a covariate out, or merge states"
        ]
    elif decrement > DECREMENT_LIMIT:
        verdict = Verdict.SHORT_OF_MAXIMUM
        reasons = [f"about {decrement:.2g} log-likelihood units remain (limit {DECREMENT_LIMIT:g})"]
    elif doubled is not None and doubled > NODE_ERROR:
        verdict = Verdict.SHORT_OF_MAXIMUM
        reasons = [
            f"{climber.likelihood.nodes} frailty nodes do not suffice: twice as many change the log-likelihood by "
            f"{doubled:.2g} (limit {NODE_ERROR:g})"
        ]
    if verdict not in (Verdict.CERTIFIED, Verdict.NO_FINITE_MAXIMUM):
        rising = _find_rising(climber, found, here, standard, P)
        if rising is not None:
            verdict = Verdict.NO_FINITE_MAXIMUM
            reasons = [
                f"the likelihood does not fall towards ever larger {_name_largest(names, rising)}: {ENDLESS}"
            ]
    rise = 0.0 if found.elsewhere is None else max(0.0, found.elsewhere.value - found.point.value)
    if verdict is Verdict.CERTIFIED and found.elsewhere is not None and rise > ROUGH:
        apart = np.linalg.solve(coordinates.standard, found.elsewhere.q[:P] - found.point.q[:P])
        words = f"the likelihood is {rise:.2g} units higher towards ever larger {_name_largest(names, apart)}"
        if rise > CLEAR:
            verdict, reasons = Verdict.NO_FINITE_MAXIMUM, [f"a maximum, but {words}: {ENDLESS}"]
        else:
            remarks.append(f"{words}, where it has no maximum: the rows do not tell which holds")
    if verdict is Verdict.CERTIFIED and condition > WEAK_CONDITION:
        remarks.insert(0, f"weakly determined along {weakest}: expect wide intervals there")
    return Certificate(
        verdict=verdict,
        reasons=tuple(reasons),
        remarks=tuple(remarks),
        maximum_exists=verdict is not Verdict.NO_FINITE_MAXIMUM,
        decrement=decrement,
        shortfall=rise,
        starts=found.starts - 1,
        positive_definite=definite,
        condition_number=condition,
        weakest_direction=weakest,
        plateau_train=plateau,
    )


def _name_largest(names: Sequence[str], direction: NDArray[np.floating[Any]]) -> str:
    return ", ".join(names[q] for q in np.argsort(-np.abs(direction))[:3])


def _find_rising(climber: Climber, found: Summit, here: Evaluation, standard: Array, P: int) -> Array | None:
    """A direction (P,) in standardised coefficients, of little curvature, along which log L falls one way only.

    Errors may hide a separation of pairs, or make one, so that the likelihood itself is asked, by a far step.
    """
    hessian = (standard.T @ here.hessian @ standard)[:P, :P]
    if not np.isfinite(hessian).all():
        return None
    for direction in np.linalg.eigh(hessian)[1].T[:MOST_REMOTE]:
        step = standard[:, :P] @ (REMOTE * direction)
        there = (climber.at(_moved(found.point.q, found.free, side * step)).value for side in (1.0, -1.0))
        level = [value >= found.point.value - DECREMENT_LIMIT for value in there]
        if any(level) and not all(level):
            return np.asarray(direction)
    return None


def _find_wide(hessian: Array, names: Sequence[str]) -> list[str]:
    error = np.sqrt(np.diag(np.linalg.inv(hessian)))
    return [names[q] for q in np.argsort(-error) if error[q] > RUNAWAY]


def _say_boundary(name: str) -> str:
    return f"{name} is 0 at the maximum"


def _collect(
    climber: Climber,
    coordinates: Coordinates[Any],
    layout: Layout,
    scaling: FittedScaling,
    found: Summit,
    here: Evaluation,
    certificate: Certificate,
    observed: HistoryObservations,
    outcome: Outcome,
    clustered: bool,
    date: str | None,
    options: Options,
) -> Fit:
    """The fit as the rest of rekka knows it, with its records."""
    likelihood, elements, overview = climber.likelihood, climber.likelihood.elements, observed.overview
    P, F = layout.n_parameters, layout.parameter.size
    point, free = found.point, found.free
    covariance = np.full((free.size, free.size), np.nan)
    at = np.ix_(free, free)
    try:
        inverse = linalg.cho_solve(linalg.cho_factor(here.hessian), np.eye(len(here.hessian)))
    except linalg.LinAlgError:
        inverse = np.full_like(here.hessian, np.nan)
    kind = "observed information"
    if options.half_life is not None or (clustered and not elements.frailty):
        G = overview.bridges
        inverse = inverse @ (point.squares[at] * (G / max(G - 1, 1))) @ inverse
        kind = f"sandwich, clustered by {G} groups" if clustered else "sandwich, robust by history"
    covariance[at] = inverse
    jacobian = (
        np.kron(np.eye(elements.n_states - 1), native_units(scaling, len(layout.terms) - 1)) @ coordinates.back
    )
    psi = point.q[:P]
    n = overview.n_pairs
    df = float(free.sum())
    inference = Inference(
        coefficients=jacobian @ psi,
        covariance=jacobian @ covariance[:P, :P] @ jacobian.T,
        kind=kind,
        log_likelihood=point.value,
        degrees_of_freedom=df,
        aic=-2.0 * point.value + 2.0 * df,
        bic=-2.0 * point.value + float(np.log(n)) * df,
    )
    records = Records(
        elements=elements,
        extra=point.q[P:],
        covariance=covariance[P:, P:],
        nodes=likelihood.nodes,
        age_units=overview.age_units,
        last=overview.dates[1] if np.isfinite(overview.dates[1]) else 0.0,
        earliest=overview.dates[0] if np.isfinite(overview.dates[0]) else None,
        date=date,
        boundaries=tuple(elements.names[place - P] for place in found.boundaries),
        frailties=likelihood.frailties(climber.expand(point.q)) if elements.frailty else None,
        cross=jacobian @ covariance[:P, P:],
    )
    return Fit(
        n_states=elements.n_states,
        covariates=layout.terms[1:],
        scaling=scaling,
        beta=(coordinates.back @ psi).reshape(elements.n_states - 1, F // (elements.n_states - 1)),
        clock=observed.clock,
        family=likelihood.family,
        records=records,
        layout=layout,
        inference=inference.weighted(options.half_life),
        outcome=outcome,
        certificate=certificate,
        n_rows=n,
        coding=options.coding,
        survey=Survey(layout.terms[1:], observed.quantiles(PERCENTILES).T),
    )
