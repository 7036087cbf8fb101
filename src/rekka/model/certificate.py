"""Certificate of a fit: is it the maximum of the likelihood? A verdict with reasons, for every fit.

1. Does a finite maximum exist?   separation, by linear programs
2. Is this point it?              Newton decrement 1/2 g' H^-1 g, in log-likelihood units per unit of mean weight;
                                  H positive definite; no higher point from other starts. Where none were tried it
                                  is a local maximum, which is not certified
3. Is it well determined?         condition number of H scaled to unit diagonal, and the weakest direction;
                                  standard errors of standardised effects; departures from each state
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

from rekka.model.coordinates import Coordinates, Layout
from rekka.model.likelihood import Evaluation, Likelihood
from rekka.model.restarts import Restarts
from rekka.model.separation import Separation, advise, describe_separations
from rekka.model.solvers import DECREMENT_TOLERANCE, solve_newton

Array = NDArray[np.float64]

DECREMENT_LIMIT = 1e-6  # log-likelihood units per unit of mean weight
PLATEAU = np.log(1e-12)  # the paper's probability floor, here only counted
WEAK_CONDITION = 1e4
SINGULAR_CONDITION = 1e12
RUNAWAY = 300.0  # standard error of a coefficient of standardised covariates, in the log hazard
AGREEMENT = 1e-6  # log-likelihood units
HARDLY = 3.0  # standard error of an effect per standard deviation: a 95 % interval is a factor of 130,000 wide
FEW_ROWS = 100  # training rows; paper, Threats to validity
FEW_EVENTS = 5  # per parameter; below it slopes are biased and intervals too narrow (Vittinghoff, McCulloch 2007)
HELD = 0.01  # coefficients; fewer are held by a prior, and no row decides on them
MOST_NAMED = 3  # effects or terms in one remark
MAIN_WEIGHT = 0.3  # of a term in a direction of length 1; where all are smaller, the largest are named
HARDLY_DETERMINED = ", but hardly determined"


class Verdict(enum.StrEnum):
    """Verdicts of a certificate, in one line each."""

    CERTIFIED = "certified: a maximum of the likelihood"
    LOCAL_MAXIMUM = "not certified: a local maximum; other starts were not tried"
    NO_FINITE_MAXIMUM = "not certified: the likelihood has no finite maximum"
    NOT_IDENTIFIED = "not certified: the rows do not determine all coefficients"
    NOT_A_MAXIMUM = "not certified: this point is not a maximum"
    SHORT_OF_MAXIMUM = "not certified: the solver stopped short of the maximum"
    NONFINITE = "not certified: a coefficient or the likelihood is infinite or undefined"


@dataclass(frozen=True)
class Certificate:
    """Verdict, reasons in words, and the figures behind them.

    ``decrement`` is the estimated distance to the maximum in log-likelihood units per unit of mean weight,
    ``shortfall`` the measured distance to the best point found from ``starts`` starts. ``determined`` is False
    where few rows decide a coefficient; the remarks say which. ``plateau_golden`` is filled by ``with_golden``.
    Every figure is the same under max, min-max and z-score scaling, and whatever all weights are multiplied by.
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
    determined: bool = True

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum."""
        return self.verdict is Verdict.CERTIFIED

    @property
    def at_maximum(self) -> bool:
        """Whether the fit is a maximum: certified, or a local one because other starts were not tried."""
        return self.certified or self.verdict is Verdict.LOCAL_MAXIMUM

    @property
    def headline(self) -> str:
        """The verdict as it should be read: a maximum that few rows decide is not called certified alone."""
        return f"{self.verdict}{HARDLY_DETERMINED if self.certified and not self.determined else ''}"

    @property
    def figures(self) -> dict[str, Any]:
        """The numbers alone."""
        words = ("verdict", "reasons", "remarks", "determined")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in words}

    def with_golden(self, log_probability: Array) -> Certificate:
        """The certificate with the share of held-out rows on the plateau, from their log-probabilities (n,)."""
        return replace(self, plateau_golden=plateau_share(log_probability))

    def __str__(self) -> str:
        exists = {True: "yes", False: "no", None: "not decided"}[self.maximum_exists]
        higher = "none higher" if self.shortfall <= DECREMENT_LIMIT else f"best {self.shortfall:.2g} higher"
        starts = f"{self.starts} tried, {higher}" if self.starts else "none tried"
        golden = "" if self.plateau_golden is None else f", {_say_share(self.plateau_golden)} of confirmation rows"
        lines = [
            self.headline,
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
    frequency: Array,
) -> Certificate:
    """Judge the point psi, with the objective's derivatives there and the share of rows on the plateau.

    ``frequency`` (K, K) is the number of rows of each start and end (``count_pairs``).
    """
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
    unit = coordinates.unit
    here = here.per(unit)
    _, decrement = solve_newton(here)
    condition, weakest = _conditioning(coordinates, layout, here)
    best = here if restarts.outcome is None else coordinates.objective(restarts.psi).per(unit)
    rising = [s.certain or _ran_away(coordinates, best, s) for s in separations]
    escapes = [s for s, rises in zip(separations, rising, strict=True) if rises]
    held = describe_separations([s for s, rises in zip(separations, rising, strict=True) if not rises])
    verdict, reasons = _judge(escapes, condition, decrement, restarts, weakest)
    remarks, thin = [], list[str]()
    if verdict in (Verdict.CERTIFIED, Verdict.LOCAL_MAXIMUM):
        thin = describe_errors(coordinates, layout, psi, here) + describe_departures(
            coordinates, layout, here, frequency
        )
        remarks += [f"{fact}, but the likelihood falls that way: this maximum stands" for fact in held]
        if condition > WEAK_CONDITION:
            remarks.append(f"weakly determined along {weakest}: expect wide intervals there")
        if restarts.sampled:
            remarks.append(
                f"other starts were tried on a sample of {restarts.sampled:,} rows, which has all extreme ones; "
                "the other maxima found there were tried on all rows"
            )
    return Certificate(
        verdict=verdict,
        reasons=tuple(reasons),
        remarks=tuple(thin + remarks + level_rows),
        maximum_exists=not escapes,
        decrement=decrement,
        shortfall=restarts.shortfall,
        starts=restarts.tried,
        positive_definite=condition <= SINGULAR_CONDITION and bool(np.isfinite(decrement)),
        condition_number=condition,
        weakest_direction=weakest,
        plateau_train=plateau,
        determined=not thin,
    )


def _judge(
    escapes: Sequence[Separation], condition: float, decrement: float, restarts: Restarts, weakest: str
) -> tuple[Verdict, list[str]]:
    """The gravest finding and what to do about it."""
    if escapes:
        facts = [f"{fact}, so there is no finite maximum (separation)" for fact in describe_separations(escapes)]
        return Verdict.NO_FINITE_MAXIMUM, [*facts, *advise(escapes)]
    if not np.isfinite(decrement):
        reason = f"the curvature is not that of a maximum along {weakest}; fit with solver='newton'"
        return Verdict.NOT_A_MAXIMUM, [reason]
    left = max(decrement, restarts.shortfall)
    if left > DECREMENT_LIMIT:
        words = f"about {left:.2g} log-likelihood units remain (limit {DECREMENT_LIMIT:g})"
        return Verdict.SHORT_OF_MAXIMUM, [f"{words}; raise max_iter or fit with solver='newton'"]
    if condition > SINGULAR_CONDITION:
        reason = f"the likelihood does not change along {weakest}; leave a term out or merge states"
        return Verdict.NOT_IDENTIFIED, [reason]
    if not restarts.tried:
        return Verdict.LOCAL_MAXIMUM, ["a higher maximum may exist; a fit that tries other starts can certify it"]
    return Verdict.CERTIFIED, []


def count_pairs(weight: Array, informative: int) -> Array:
    """Number of rows of each start and end (K, K), from sums of the weights given for them.

    A row of weight 2 is two rows. Weights that average less than 1 are no such numbers, and are made to average 1.
    """
    able = float(weight[:-1].sum())
    return weight * (informative / able) if 0 < able < informative else weight


def describe_errors(coordinates: Coordinates[Any], layout: Layout, psi: Array, here: Evaluation) -> list[str]:
    """Name effects whose standard error, per standard deviation of the covariate, is beyond what rows can mean.

    ``here`` is per unit of mean weight. A mean weight above 1 counts as so many rows, one below 1 as one row. An
    error that is large because covariates repeat each other (by its variance inflation factor) is said to be so.
    """
    inverse, rows = np.linalg.inv(coordinates.standard), max(coordinates.unit, 1.0)
    errors = np.sqrt(np.diag(inverse @ np.linalg.inv(here.hessian) @ inverse.T) / rows)
    estimates = inverse @ psi
    inflation = np.square(inverse).sum(axis=1) * [len(layout.states_of(q)) for q in range(psi.size)]
    wide = [int(q) for q in np.argsort(-errors, kind="stable") if errors[q] > HARDLY]
    slopes = [q for q in wide if layout.term_of[q]]
    known = {k for q in slopes for k in layout.states_of(q)}
    named = slopes + [q for q in wide if not layout.term_of[q] and not known & set(layout.states_of(q))]
    causes: dict[str, list[str]] = {}
    for q in named:
        alone = errors[q] > HARDLY * np.sqrt(inflation[q])
        unit = " per standard deviation" if layout.term_of[q] else " in the log hazard"
        figures = f"estimate {estimates[q]:,.3g}, standard error {errors[q]:,.4g}{unit}"
        cause = "a few rows decide it" if alone else "its covariate nearly repeats the others"
        causes.setdefault(cause, []).append(f"{_name_effect(layout, q)} ({figures})")
    return [
        f"hardly determined: {'; '.join(found[:MOST_NAMED])}"
        f"{f'; and {len(found) - MOST_NAMED} more' if len(found) > MOST_NAMED else ''}: {cause}"
        for cause, found in causes.items()
    ]


def _name_effect(layout: Layout, parameter: int) -> str:
    states = layout.states_of(parameter)
    where = f"leaving state{'s' if len(states) > 1 else ''} {', '.join(map(str, states))}"
    term = layout.term_of[parameter]
    return f"the effect of {layout.terms[term]} on {where}" if term else f"the rate of {where}"


def describe_departures(
    coordinates: Coordinates[Any], layout: Layout, here: Evaluation, frequency: Array
) -> list[str]:
    """Name states that fewer than FEW_EVENTS rows leave for each coefficient that only they determine.

    Coefficients that states share are judged by the rows that leave any of them. A coefficient that a penalty or a
    prior holds counts as far as the rows determine it, tr(H^-1 (H - penalty)).
    """
    free = layout.n_states - 1
    leave = np.array([frequency[: k + 1, k + 1 :].sum() for k in range(free)])
    held = np.linalg.inv(coordinates.standard) @ np.linalg.solve(
        here.hessian, coordinates.penalty / coordinates.unit @ coordinates.standard
    )
    by_rows = 1.0 - np.diag(held)
    states = [tuple(layout.states_of(q)) for q in range(layout.n_parameters)]
    found = []
    for group in sorted(set(states)):
        count = sum(share for share, own in zip(by_rows, states, strict=True) if set(own) <= set(group))
        rows = sum(leave[k - 1] for k in group)
        if count >= HELD and rows < FEW_EVENTS * count:
            plural = "s" if len(group) > 1 else ""
            found.append(
                f"{_say_count(rows, 'row')} leave{'s' if rows == 1 else ''} state{plural} "
                f"{', '.join(map(str, group))}, for {_say_count(count, 'coefficient')}"
            )
    few = f"fewer than {FEW_EVENTS} for each: expect estimates and intervals to be unreliable there"
    return [f"{'; '.join(found)}: {few}"] if found else []


def _say_count(number: float, noun: str) -> str:
    return f"{number:,.4g} {noun}{'' if number == 1 else 's'}"


def is_settled(coordinates: Coordinates[Likelihood], here: Evaluation) -> bool:
    """Whether this is so plainly a maximum that the likelihood cannot rise for ever whatever the coefficients.

    Say it did, along d, scaled so that the largest |x.d| is 1 among the rows that were in these states. No row
    loses along d, and a row's curvature is below 50 times its slope, unless both are nothing. So d'Hd <= 50 g'd,
    and 2 decrement >= (g'd)^2 / d'Hd >= d'Hd / 50^2 >= 1 / (50 se)^2, with se the largest standard error of a
    row's log hazard. Newton stops at 1e-12, so that an se below 300 rules such a d out; L-BFGS-B stops too early.
    """
    here = here.per(coordinates.unit)
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
    return describe_condition(hessian, [layout.name(q) for q in range(layout.n_parameters)])


def describe_condition(hessian: Array, names: Sequence[str]) -> tuple[float, str]:
    """Condition number of H scaled to unit diagonal, and its weakest direction in the parameters' names."""
    diagonal = np.diag(hessian)
    largest = float(np.max(diagonal, initial=0.0))
    if largest <= 0:
        return np.inf, names[0]
    dead = diagonal <= largest / SINGULAR_CONDITION
    if dead.any():
        return np.inf, ", ".join(names[q] for q in np.flatnonzero(dead)[:3])
    scale = 1.0 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    weights = vectors[:, 0]
    largest_first = [int(q) for q in np.argsort(-np.abs(weights))[:MOST_NAMED]]
    main = [q for q in largest_first if abs(weights[q]) > MAIN_WEIGHT] or largest_first
    words = names[main[0]]
    for q in main[1:]:
        joined = "with" if weights[q] * weights[main[0]] > 0 else "against"
        words += f" {joined} {names[q]}"
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

    Parameters
    ----------
    log_likelihoods : mapping or pairs
        The log-likelihood of each fit, by the name of its scaling.

    Returns
    -------
    Agreement
        Whether all are within 1e-6 log-likelihood units of the best, the best, and the gap of those that are not.

    Examples
    --------
    >>> import rekka
    >>> rekka.affine_agreement({"max": -521.0, "minmax": -520.5, "zscore": -520.5})
    Agreement(agree=False, best=-520.5, short={'max': 0.5})

    """
    table = dict(log_likelihoods)
    best = max(table.values())
    short = {name: best - value for name, value in table.items() if not best - value <= AGREEMENT}
    return Agreement(not short, best, short)
