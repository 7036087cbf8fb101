"""Is this fit the maximum of the likelihood? A verdict with reasons, for every fit.

1. Does a finite maximum exist?   separation, by linear programs
2. Is this point it?              Newton decrement 1/2 g' H^-1 g, in log-likelihood units, H positive definite;
                                  no higher point from other starts
3. Is it well determined?         condition number of H scaled to unit diagonal, and the weakest direction
4. Was it on a plateau?           share of rows at or under the 1e-12 probability level
5. Do equals agree?               max, min-max and z-score are one model; ``affine_agreement`` compares fits
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates
from rekka.model.layout import Layout
from rekka.model.likelihood import Evaluation, Likelihood
from rekka.model.restarts import Restarts
from rekka.model.separation import Separation, describe_separations
from rekka.model.solvers import DECREMENT_TOLERANCE, solve_newton

Array = NDArray[np.float64]

DECREMENT_LIMIT = 1e-6  # log-likelihood units
PLATEAU = np.log(1e-12)  # the paper's probability floor, here only counted
WEAK_CONDITION = 1e4
SINGULAR_CONDITION = 1e12
RUNAWAY = 300.0  # standard error of a coefficient of standardised covariates, in the log hazard
AGREEMENT = 1e-6  # log-likelihood units


class Verdict(enum.StrEnum):
    """What the certificate says, in one line."""

    CERTIFIED = "certified: a maximum of the likelihood"
    NO_FINITE_MAXIMUM = "not certified: the likelihood has no finite maximum"
    NOT_IDENTIFIED = "not certified: the rows do not determine all coefficients"
    NOT_A_MAXIMUM = "not certified: this point is not a maximum"
    SHORT_OF_MAXIMUM = "not certified: the solver stopped short of the maximum"
    NONFINITE = "not certified: a coefficient or the likelihood is infinite or undefined"


@dataclass(frozen=True)
class Certificate:
    """Verdict, reasons in words, and the figures behind them.

    ``decrement`` is the estimated distance to the maximum in log-likelihood units, ``shortfall`` the measured
    distance to the best point found from ``starts`` starts. ``plateau_golden`` is filled by ``with_golden``.
    Every figure is the same under max, min-max and z-score scaling.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]
    maximum_exists: bool | None
    decrement: float
    shortfall: float
    starts: int
    positive_definite: bool
    condition_number: float
    weakest_direction: str
    plateau_train: float
    plateau_golden: float | None = None

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum."""
        return self.verdict is Verdict.CERTIFIED

    @property
    def figures(self) -> dict[str, Any]:
        """The numbers alone."""
        words = ("verdict", "reasons", "remarks")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in words}

    def with_golden(self, log_probability: Array) -> Certificate:
        """The same with the share of held-out rows on the plateau."""
        return replace(self, plateau_golden=plateau_share(log_probability))

    def __str__(self) -> str:
        exists = {True: "yes", False: "no", None: "not decided"}[self.maximum_exists]
        higher = "none higher" if self.shortfall <= DECREMENT_LIMIT else f"best {self.shortfall:.2g} higher"
        starts = f"{self.starts} tried, {higher}" if self.starts else "none tried on all rows: they are many"
        golden = "" if self.plateau_golden is None else f", {_say_share(self.plateau_golden)} of golden rows"
        lines = [
            str(self.verdict),
            f"  finite maximum exists    {exists}",
            f"  distance to the maximum  {self.decrement:.2g} log-likelihood units (limit {DECREMENT_LIMIT:g})",
            f"  other starts             {starts}",
            f"  curvature                {'positive definite' if self.positive_definite else 'not definite'}",
            f"  conditioning             {self.condition_number:.3g}; weakest: {self.weakest_direction}",
            f"  at probability 1e-12     {_say_share(self.plateau_train)} of training rows{golden}",
        ]
        lines += [f"  because: {reason}" for reason in self.reasons]
        lines += [f"  note: {remark}" for remark in self.remarks]
        return "\n".join(lines)


def certify(
    coordinates: Coordinates[Any],
    layout: Layout,
    psi: Array,
    here: Evaluation,
    plateau: float,
    separations: Sequence[Separation],
    restarts: Restarts,
) -> Certificate:
    """Judge the point psi, with the objective's derivatives there and the share of rows on the plateau."""
    level_rows = (
        [f"{_say_share(plateau)} of the training rows are at or under probability 1e-12"] if plateau > 0 else []
    )
    if not (np.isfinite(psi).all() and np.isfinite(here.value) and np.isfinite(here.hessian).all()):
        return Certificate(
            verdict=Verdict.NONFINITE,
            reasons=("no standard error or prediction can be trusted here; fit with solver='newton'",),
            remarks=tuple(level_rows),
            maximum_exists=None,
            decrement=np.inf,
            shortfall=np.inf,
            starts=restarts.tried,
            positive_definite=False,
            condition_number=np.inf,
            weakest_direction="undefined",
            plateau_train=plateau,
        )
    _, decrement = solve_newton(here)
    condition, weakest = _conditioning(coordinates, layout, here)
    best = here if restarts.outcome is None else coordinates.objective(restarts.psi)
    rising = [s.certain or _ran_away(coordinates, best, s) for s in separations]
    escapes = describe_separations([s for s, rises in zip(separations, rising, strict=True) if rises])
    held = describe_separations([s for s, rises in zip(separations, rising, strict=True) if not rises])
    verdict, reasons = _judge(escapes, condition, decrement, restarts.shortfall, weakest)
    remarks = []
    if verdict is Verdict.CERTIFIED:
        remarks += [f"{fact}, but the likelihood falls that way: this maximum stands" for fact in held]
        if condition > WEAK_CONDITION:
            remarks.append(f"weakly determined along {weakest}: expect wide intervals there")
    return Certificate(
        verdict=verdict,
        reasons=tuple(reasons),
        remarks=tuple(remarks + level_rows),
        maximum_exists=not escapes,
        decrement=decrement,
        shortfall=restarts.shortfall,
        starts=restarts.tried,
        positive_definite=condition <= SINGULAR_CONDITION and bool(np.isfinite(decrement)),
        condition_number=condition,
        weakest_direction=weakest,
        plateau_train=plateau,
    )


def _judge(
    escapes: Sequence[str], condition: float, decrement: float, shortfall: float, weakest: str
) -> tuple[Verdict, list[str]]:
    """The gravest finding and what to do about it."""
    if escapes:
        facts = [f"{fact}, so the likelihood rises for ever" for fact in escapes]
        return Verdict.NO_FINITE_MAXIMUM, [*facts, "remedies: a ridge penalty, fewer covariates, or merged states"]
    if not np.isfinite(decrement):
        reason = f"the curvature is not that of a maximum along {weakest}; fit with solver='newton'"
        return Verdict.NOT_A_MAXIMUM, [reason]
    left = max(decrement, shortfall)
    if left > DECREMENT_LIMIT:
        words = f"about {left:.2g} log-likelihood units remain (limit {DECREMENT_LIMIT:g})"
        return Verdict.SHORT_OF_MAXIMUM, [f"{words}; raise max_iter or fit with solver='newton'"]
    if condition > SINGULAR_CONDITION:
        reason = f"the likelihood does not change along {weakest}; leave a term out or merge states"
        return Verdict.NOT_IDENTIFIED, [reason]
    return Verdict.CERTIFIED, []


def is_settled(coordinates: Coordinates[Likelihood], here: Evaluation) -> bool:
    """Whether this is so plainly a maximum that the likelihood cannot rise for ever whatever the coefficients.

    Say it did, along d, scaled so that the largest |x.d| is 1 among the rows that were in these states. No row
    loses along d, and a row's curvature is below 50 times its slope, unless both are nothing. So d'Hd <= 50 g'd,
    and 2 decrement >= (g'd)^2 / d'Hd >= d'Hd / 50^2 >= 1 / (50 se)^2, with se the largest standard error of a
    row's log hazard. Newton stops at 1e-12, so that an se below 300 rules such a d out; L-BFGS-B stops too early.
    """
    if not (np.isfinite(here.value) and np.isfinite(here.hessian).all()):
        return False
    hessian = coordinates.standard.T @ here.hessian @ coordinates.standard
    if np.linalg.eigvalsh(hessian)[0] <= RUNAWAY**-2:  # as ``_ran_away`` asks, of all states
        return False
    return solve_newton(here)[1] <= DECREMENT_TOLERANCE and _widest(coordinates, here) < RUNAWAY


def _widest(coordinates: Coordinates[Likelihood], here: Evaluation) -> float:
    """The largest standard error of a row's log hazard of a state it was in, the same in any coordinates."""
    rows, W = coordinates.likelihood.rows, coordinates.likelihood.X
    values, vectors = np.linalg.eigh(here.hessian)
    if values[0] <= values[-1] / SINGULAR_CONDITION:
        return np.inf
    roots = (coordinates.basis @ (vectors / np.sqrt(values))).reshape(rows.n_states - 1, len(W), -1)
    widest = 0.0
    for k, root in enumerate(roots):
        x = W[:, (rows.start <= k) & (k <= rows.end)]
        widest = max(widest, float((x * (root @ root.T @ x)).sum(axis=0).max(initial=0.0)))
    return float(np.sqrt(widest))


def _ran_away(coordinates: Coordinates[Any], best: Evaluation, separation: Separation) -> bool:
    """Whether the best point is where a solver tires, not where the likelihood peaks.

    Along a direction in which the likelihood rises for ever it has become level: the standard error of some
    coefficient of these states, for standardised covariates, is beyond anything that data can mean.
    """
    hessian = coordinates.standard.T @ best.hessian @ coordinates.standard
    block = hessian[np.ix_(separation.parameters, separation.parameters)]
    return bool(np.linalg.eigvalsh(block)[0] < RUNAWAY**-2)


def _conditioning(coordinates: Coordinates[Any], layout: Layout, here: Evaluation) -> tuple[float, str]:
    """Condition number of H for standardised covariates, scaled to unit diagonal; weakest direction."""
    hessian = coordinates.standard.T @ here.hessian @ coordinates.standard
    diagonal = np.diag(hessian)
    largest = float(np.max(diagonal, initial=0.0))
    if largest <= 0:
        return np.inf, layout.name(0)
    dead = diagonal <= largest / SINGULAR_CONDITION
    if dead.any():
        return np.inf, ", ".join(layout.name(q) for q in np.flatnonzero(dead)[:3])
    scale = 1.0 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    weights = vectors[:, 0]
    main = [q for q in np.argsort(-np.abs(weights)) if abs(weights[q]) > 0.3][:3]
    words = layout.name(main[0])
    for q in main[1:]:
        joined = "with" if weights[q] * weights[main[0]] > 0 else "against"
        words += f" {joined} {layout.name(q)}"
    return float(values[-1] / values[0]) if values[0] > 0 else np.inf, words


def _say_share(share: float) -> str:
    return "less than 0.01%" if 0 < share < 1e-4 else f"{share:.2%}"


def plateau_share(log_probability: Array) -> float:
    """The share of rows at or under the probability that counts as a plateau."""
    return float(np.mean(~(log_probability > PLATEAU)))


class Agreement(NamedTuple):
    """Whether fits that are one model agree; ``short`` names those below the best, with the gap."""

    agree: bool
    best: float
    short: dict[str, float]


def affine_agreement(log_likelihoods: Mapping[str, float] | Sequence[tuple[str, float]]) -> Agreement:
    """Compare the log-likelihoods of max, min-max and z-score fits to the same rows: they are one model.

    Every state has an intercept, so an affine change of a covariate changes no prediction: at the maximum
    the three coincide, and a lower one stopped short.
    """
    table = dict(log_likelihoods)
    best = max(table.values())
    short = {name: best - value for name, value in table.items() if not best - value <= AGREEMENT}
    return Agreement(not short, best, short)
