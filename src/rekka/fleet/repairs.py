"""Repairs without a record: what stands behind each rating that is better than the one before.

A rating improves because the member was repaired, because of small work by one rating that the model of
histories knows, or because one of the two ratings is wrong. Added to the model of histories is a repair: at the
end of a step of h <= 1 years a member whose true state x is not the best is repaired with probability
1 - exp(-rate h), and is then in state j < x with probability after_j / (after_1 + ... + after_{x-1}).
``fit_repairs`` estimates rate and after, and again the errors of inspection and the small improvements, which a
fit without repairs overstates; hazards, trend and first states stay those of the model of histories. Then the
true states of each history follow from all of its visits, later ones included (``explain_visits``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize, special

from rekka.core.errors import InputError
from rekka.fleet.histories import IDENTITY, TIMES
from rekka.model.fit import Fit
from rekka.model.histories import Chain, chain_rows
from rekka.model.records import Records

Array = NDArray[np.float64]
Places = NDArray[np.intp]

LARGE = 2  # ratings from which an improvement ends a history in the fit of the model of histories
TIMES_OTHERS, SURE = 1.5, 4.0  # share of improvements over that of other years, and standard errors it is above
FIRST_RATE = 0.01  # of repairs a year, at which the estimation starts
LOWEST, HIGHEST = -15.0, 2.0  # of the log of the rate a year; logits are at most -LOWEST
MOST_ITERATIONS = 500
ADDED = 1.0  # repairs, shared by all better states alike, that keep the states after few repairs from the boundary
SLOPE = 0.01  # of the log-likelihood in any parameter: an estimate with a larger one is no maximum


def order_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of each component and history in order of time; without dates or numbers of visits as they are."""
    names = _identify(frame)
    times = [name for name in TIMES if name in frame.columns][:1]
    return frame.sort(*names, *times, maintain_order=True) if times else frame


def cut_large(frame: pl.DataFrame) -> pl.DataFrame:
    """Ordered rows without large improvements; another history begins after each, as the fit takes them."""
    large = pl.col("state_2") <= pl.col("state_1") - LARGE
    past = large.cast(pl.Int64).cum_sum().over(_identify(frame))
    return frame.with_columns(history=pl.format("{}.{}", "history", past)).filter(~large)


def _identify(frame: pl.DataFrame) -> list[str]:
    return [name for name in ("case", *IDENTITY) if name in frame.columns]


class BetterYear(NamedTuple):
    """A year in which more ratings improved than chance explains: so many of all, and the share in other years."""

    year: int
    improved: int
    pairs: int
    elsewhere: float


def find_better_years(frame: pl.DataFrame) -> list[BetterYear]:
    """Years of second visits in which far more ratings improved than in the others: not repairs, but a rule."""
    if "date_2" not in frame.columns:
        return []
    years = frame.group_by(year=pl.col("date_2").dt.year()).agg(
        improved=(pl.col("state_2") < pl.col("state_1")).sum(), pairs=pl.len()
    )
    all_improved, found = frame.filter(pl.col("state_2") < pl.col("state_1")).height, []
    for year, improved, pairs in years.sort("year").rows():
        others, share = len(frame) - pairs, all_improved / len(frame)
        if not others:
            continue
        elsewhere = (all_improved - improved) / others
        error = float(np.sqrt(share * (1.0 - share) * (1.0 / pairs + 1.0 / others)))
        if improved / pairs > max(TIMES_OTHERS * elsewhere, elsewhere + SURE * error):
            found.append(BetterYear(year, improved, pairs, elsewhere))
    return found


class RepairModel(NamedTuple):
    """A model of histories with repairs.

    ``rate`` is of repairs a year of members that are not in the best state, ``after`` (K,) the state then.
    ``records`` has the errors and small improvements beside them.
    """

    records: Records
    rate: float
    after: Array
    log_likelihood: float


class Explained(NamedTuple):
    """Probabilities (n,) of what happened in each row's interval, given all visits; they add up to 1."""

    repair: Array
    improvement: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of histories, one history after the other: its first visit, then steps, of which some end at a visit.

    ``decay`` (n, K, K) is the matrix of a step, the identity at first visits, ``h`` (n,) its years. ``rating``
    (n,) is what was seen at its end, -1 where nothing was. ``starts`` (H,) are the places of first visits,
    ``length`` (H,) the number of places, ``first`` (H, K) the probability of each first state. ``begins`` and
    ``ends`` (m,) are the places of the two visits of each interval, ``row`` (m,) is its row in the table.
    """

    decay: Array
    h: Array
    rating: NDArray[np.int64]
    starts: Places
    length: Places
    first: Array
    begins: Places
    ends: Places
    row: NDArray[np.int64]


def take_steps(fit: Fit, rows: Chain) -> Steps:
    """Steps of rows whose histories go on over improvements of any size."""
    records, K = fit.records, fit.n_states
    assert records is not None  # a fit of histories
    seen = chain_rows(rows, records.elements, fit.clock, (records.earliest, records.last))
    count = np.diff(seen.steps)
    new = seen.begins >= 0
    place = np.cumsum(np.where(new, 1, count)) - 1  # of each visit
    n = int(place[-1]) + 1
    moving = np.ones(n, dtype=bool)
    moving[place[new]] = False
    eta = fit.predictors(seen.x)
    if records.trend is not None:
        eta = eta + seen.time[:, None] * records.trend
    decay, h, rating = np.tile(np.eye(K), (n, 1, 1)), np.zeros(n), np.full(n, -1, dtype=np.int64)
    h[moving], decay[moving] = seen.h, fit.family.matrices(fit.family.step_hazards(eta), seen.h)
    rating[place] = seen.observed
    starts, ends = place[new], np.flatnonzero(~new)
    length = np.diff(starts, append=n)
    return Steps(
        decay, h, rating, starts, length, records.first(seen.age), place[ends - 1], place[ends], seen.row[ends]
    )


class _Chances(NamedTuple):
    """Probabilities of an improvement (n, K) and a repair (n, K) in a step, and (K, K) of the state after it."""

    improve: Array
    repair: Array
    leap: Array


def _take_chances(steps: Steps, records: Records, rate: float, after: Array) -> _Chances:
    K = after.size
    rho = np.zeros(K) if records.improvements is None else records.improvements
    repair = np.repeat(-np.expm1(-rate * steps.h)[:, None], K, axis=1)
    repair[:, 0] = 0.0
    better = np.tril(np.broadcast_to(after, (K, K)), -1)
    total = better.sum(axis=1, keepdims=True)
    leap = np.divide(better, total, out=np.zeros_like(better), where=total > 0)
    return _Chances(-np.expm1(steps.h[:, None] * np.log1p(-rho)), repair, leap)


class _Smoothed(NamedTuple):
    """Histories followed forward and back, by place.

    ``state`` (n, K) is the distribution given what was seen up to the place, ``decayed`` and ``improved`` that
    before its rating, and before the step's improvement or repair. ``ahead`` (n, K) weighs the states by what was
    seen from the place on, over its probability, ``kept`` those before the step's repair.
    """

    state: Array
    decayed: Array
    improved: Array
    kept: Array
    ahead: Array
    log_likelihood: float


def _smooth(steps: Steps, errors: Array, chance: _Chances) -> _Smoothed:
    n, K = steps.h.size, errors.shape[0]
    seen = np.where(steps.rating[:, None] >= 0, errors.T[steps.rating], 1.0)
    state, decayed, improved, kept, scale = (*(np.empty((n, K)) for _ in range(4)), np.empty(n))
    ahead = np.ones((n, K))
    for k in range(int(steps.length.max())):
        v = steps.starts[steps.length > k] + k
        decayed[v] = steps.first if k == 0 else np.einsum("vi,vij->vj", state[v - 1], steps.decay[v])
        improved[v] = _push(decayed[v], chance.improve[v])
        p = improved[v] * (1.0 - chance.repair[v]) + (improved[v] * chance.repair[v]) @ chance.leap
        joint = p * seen[v]
        scale[v] = joint.sum(axis=1)
        state[v] = joint / scale[v][:, None]
    for k in range(int(steps.length.max()) - 1, -1, -1):
        v = steps.starts[steps.length > k] + k
        ahead[v] *= seen[v] / scale[v][:, None]
        kept[v] = ahead[v] * (1.0 - chance.repair[v]) + chance.repair[v] * (ahead[v] @ chance.leap.T)
        if k:
            ahead[v - 1] = np.einsum("vij,vj->vi", steps.decay[v], _pull(kept[v], chance.improve[v]))
    return _Smoothed(state, decayed, improved, kept, ahead, float(np.log(scale).sum()))


def _push(p: Array, chance: Array) -> Array:
    """Distribution (..., K) after improvements by one state."""
    moved = p * chance
    found = p - moved
    found[..., :-1] += moved[..., 1:]
    return found


def _pull(weight: Array, chance: Array) -> Array:
    """Weights (..., K) of the states before improvements from those after them."""
    found = weight * (1.0 - chance)
    found[..., 1:] += weight[..., :-1] * chance[..., 1:]
    return found


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Log-likelihood of repairs, errors and small improvements, with its gradient.

    Parameters: the logits of ``records`` that are ``free`` (q,), the log of the rate, log(after_j / after_1).
    """

    steps: Steps
    records: Records
    free: Places

    @property
    def start(self) -> Array:
        """Errors and improvements as they were fitted, and few repairs to any state."""
        K = self.records.elements.n_states
        return np.concatenate([self.records.extra[self.free], [np.log(FIRST_RATE)], np.zeros(K - 2)])

    def read(self, parameters: Array) -> tuple[Records, float, Array]:
        """Records, rate and states after repairs of these parameters."""
        q = self.free.size
        extra = self.records.extra.copy()
        extra[self.free] = parameters[:q]
        after = np.append(special.softmax(np.append(0.0, parameters[q + 1 :])), 0.0)
        return replace(self.records, extra=extra), float(np.exp(parameters[q])), after

    def evaluate(self, parameters: Array) -> tuple[float, Array]:
        """Value and gradient, by the expected number of errors, improvements and repairs (Fisher's identity)."""
        records, rate, after = self.read(parameters)
        steps, elements = self.steps, records.elements
        errors, slopes = elements.error_matrix(records.extra)
        chance = _take_chances(steps, records, rate, after)
        found = _smooth(steps, errors, chance)
        gradient = np.zeros(records.extra.size)
        seen = steps.rating >= 0
        # ahead holds the probability of the place's own rating, which the expected counts below divide out
        before = found.improved * (1.0 - chance.repair) + (found.improved * chance.repair) @ chance.leap
        weight = before * found.ahead
        counts = np.zeros(errors.shape)
        np.add.at(counts.T, steps.rating[seen], weight[seen])
        share = np.divide(counts, errors, out=np.zeros_like(errors), where=errors > 0)
        gradient[elements.parts["errors"]] = np.einsum("so,qso->q", share, slopes)
        if records.improvements is not None:
            rho = records.improvements
            rise = steps.h[:, None] * (1.0 - chance.improve) * rho  # of the chance, by the logit
            gain = np.zeros_like(found.kept)
            gain[:, 1:] = found.kept[:, :-1] - found.kept[:, 1:]
            by_state = (found.decayed * gain * rise).sum(axis=0)[1:]
            part = elements.parts["improvements"]
            gradient[part] = by_state if part.stop - part.start == by_state.size else by_state.sum()
        turned = found.ahead @ chance.leap.T
        rise = (rate * steps.h)[:, None] * (1.0 - chance.repair)
        of_rate = (found.improved * (turned - found.ahead) * rise)[:, 1:].sum()
        moves = (found.improved * chance.repair).T @ found.ahead * chance.leap
        of_after = (moves - chance.leap * moves.sum(axis=1, keepdims=True)).sum(axis=0)[1:-1]
        return found.log_likelihood, np.concatenate([gradient[self.free], [of_rate], of_after])


def fit_repairs(fit: Fit, steps: Steps) -> RepairModel:
    """Estimate repairs, and errors and small improvements beside them, by maximum likelihood.

    A logit that is minus infinity in the model of histories stays so. An estimate that is no maximum is an error.
    """
    records = fit.records
    assert records is not None  # a fit of histories
    parts = records.elements.parts
    own = np.r_[parts["errors"], parts["improvements"]]
    work = _Likelihood(steps, records, own[np.isfinite(records.extra[own])])

    def fall(parameters: Array) -> tuple[float, Array]:
        value, gradient = work.evaluate(parameters)
        _, _, after = work.read(parameters)
        gradient[work.free.size + 1 :] += ADDED * (1.0 / (after.size - 1) - after[1:-1])
        return -value - ADDED * float(np.log(after[:-1]).mean()), -gradient

    start = np.clip(work.start, LOWEST, -LOWEST)
    bounds = [(LOWEST, -LOWEST)] * start.size
    bounds[work.free.size] = (LOWEST, HIGHEST)
    stop = {"maxiter": MOST_ITERATIONS, "ftol": 0.0, "gtol": SLOPE / 10}
    found = optimize.minimize(fall, start, jac=True, method="L-BFGS-B", bounds=bounds, options=stop)
    slope, inside = fall(found.x)[1], found.x > LOWEST
    if not np.isfinite(found.fun) or np.abs(slope[inside]).max(initial=0.0) > SLOPE:
        raise InputError("the estimation of repairs beside errors and small improvements reached no maximum.")
    return RepairModel(*work.read(found.x), work.evaluate(found.x)[0])


def explain_visits(steps: Steps, model: RepairModel) -> Explained:
    """Explain each interval, in the order of its ``row``s: a repair, a small improvement, or no true one.

    Without a repair the true state improved if it is better at the end of the interval than at its start.
    """
    chance = _take_chances(steps, model.records, model.rate, model.after)
    found = _smooth(steps, model.records.errors, chance)
    K = model.after.size
    still = found.state[steps.begins][:, :, None] * np.eye(K)  # by the state at the start of the interval
    # what was seen is counted once, at the end: steps in between see nothing, and repairs are left out
    for k in range(int((steps.ends - steps.begins).max())):
        v = np.flatnonzero(steps.ends - steps.begins > k)
        place = steps.begins[v] + k + 1
        p = _push(still[v] @ steps.decay[place], chance.improve[place][:, None])
        still[v] = p * (1.0 - chance.repair[place])[:, None]
    still = still * found.ahead[steps.ends][:, None]
    better = np.tril(still, -1).sum(axis=(1, 2))
    kept = np.triu(still).sum(axis=(1, 2))
    return Explained(np.maximum(1.0 - better - kept, 0.0), better, kept)
