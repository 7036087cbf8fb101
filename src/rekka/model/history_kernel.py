"""Compiled: the likelihood of whole histories of visits, and its exact gradient. No covariate comes here.

A bridge is a run of visits; a visit that begins a history redraws the state from ``pi``, every other follows from
the one before by steps of constant hazards. With alpha[s, n] the joint probability of state s and frailty node n,

    alpha_v = (alpha_{v-1} P_v) E[:, o_v] / c_v,    log L = sum_v log c_v,    P_v a product of steps,

one step being p exp(Q h) and then, where silent improvements are modelled, state k -> k - 1 with probability
1 - (1 - rho_k)^h. The backward pass carries the adjoint B (sum of alpha B = 1) from the last visit to the first;
all derivatives of log L come from it.

A step is a series without a negative term (uniformization):

    p exp(Q h) = sum_m w_m p A^m,   w_m = e^(-ch) (ch)^m / m!,   A = I + Q / c,   c the largest hazard.

A is the same for all nodes of a step, because their hazards are multiples eps_n of one another: one lane a node,
eps rising, so that lanes with few terms drop out from the front. Lanes with ch above STIFF, at the back, go by
their matrix: the series over h / 2^s, then s doublings, with the diagonal set to e^(-theta h) after each.

States are 0-based. Every output belongs to one bridge, so that any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rekka.core.compiling import njit

NEGLIGIBLE = 1e-17  # of the first term of a state
STIFF = 16.0  # ch above which a lane goes by its matrix
MOST_TERMS = 96  # of a series with ch up to STIFF, K up to 20; more states have as many more

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def _count_terms(ch: float, free: int) -> int:
    """Terms after which every state's rest is negligible."""
    m, term = 1, ch
    while term > NEGLIGIBLE:
        m += 1
        term *= ch / m
    return m + free


@_compile
def _find_first(p: Any) -> int:
    """The best state that any lane of p (K, N) can be in; the worst if none can be in another."""
    for k in range(p.shape[0] - 1):
        for n in range(p.shape[1]):
            if p[k, n] != 0.0:
                return k
    return int(p.shape[0] - 1)


@_compile
def _prepare(p: Any, theta: Any, h: float, eps: Any, move: Any, ch: Any) -> int:
    """A's diagonal ``move`` (K-1,), ch of each lane; the first lane that is stiff.

    States better than any that a lane can be in have no part in it: a fast hazard costs its one step.
    """
    free, lanes = int(theta.size), int(eps.size)
    first = _find_first(p)
    c = 0.0
    for k in range(first, free):
        c = max(c, theta[k])
    for k in range(free):
        move[k] = theta[k] / c if k >= first and c > 0.0 else 0.0
    stiff = lanes
    for n in range(lanes - 1, -1, -1):
        ch[n] = c * h * eps[n]
        if ch[n] > STIFF:
            stiff = n
    return stiff


@_compile
def _series(p: Any, move: Any, ch: Any, stiff: int, terms: Any, w: Any, begin: Any, out: Any, keep: bool) -> int:
    """Out <- p exp(Q h) in the lanes before ``stiff``; the number of terms.

    With ``keep`` terms[m] (K, N) has p A^m and w[m] (N,) its weight, in lanes from begin[m] on; else terms[0] and
    w[0] are written over.
    """
    free = move.size
    for n in range(stiff):
        w[0, n] = math.exp(-ch[n])
    for k in range(free + 1):
        for n in range(stiff):
            terms[0, k, n] = p[k, n]
            out[k, n] = w[0, n] * p[k, n]
    begin[0] = 0
    lo, m = 0, 0
    needed = _count_terms(ch[0], free) if stiff else 0
    while True:
        m += 1
        while lo < stiff and needed < m:
            lo += 1
            if lo < stiff:
                needed = _count_terms(ch[lo], free)
        if lo == stiff:
            return m - 1
        old, new = (m - 1, m) if keep else (0, 0)
        begin[new] = lo
        for n in range(lo, stiff):
            w[new, n] = w[old, n] * ch[n] / m
        a = move[free - 1]
        for n in range(lo, stiff):
            terms[new, free, n] = terms[old, free, n] + terms[old, free - 1, n] * a
            out[free, n] += w[new, n] * terms[new, free, n]
        for j in range(free - 1, 0, -1):
            a, b = move[j - 1], 1.0 - move[j]
            for n in range(lo, stiff):
                terms[new, j, n] = terms[old, j, n] * b + terms[old, j - 1, n] * a
                out[j, n] += w[new, n] * terms[new, j, n]
        b = 1.0 - move[0]
        for n in range(lo, stiff):
            terms[new, 0, n] = terms[old, 0, n] * b
            out[0, n] += w[new, n] * terms[new, 0, n]


@_compile
def _unroll(
    count: int, move: Any, stiff: int, terms: Any, w: Any, begin: Any, adjoint: Any, back: Any, slope: Any
) -> None:
    """Adjoint (K, N) <- exp(Q h) adjoint, slope (K-1, N) = d log L / d log theta_k, in the lanes before ``stiff``.

    ``back`` (K, N) is the adjoint of p A^m, from the last term to the first.
    """
    free = move.size
    for k in range(free + 1):
        for n in range(stiff):
            back[k, n] = 0.0
    for k in range(free):
        for n in range(stiff):
            slope[k, n] = 0.0
    for m in range(count, -1, -1):
        lo = begin[m]
        for k in range(free):  # the adjoint of the term after this one
            a = move[k]
            if a != 0.0:
                for n in range(lo, stiff):
                    rise = a * (back[k + 1, n] - back[k, n])
                    slope[k, n] += terms[m, k, n] * rise
                    back[k, n] += rise
        for k in range(free + 1):
            for n in range(lo, stiff):
                back[k, n] += w[m, n] * adjoint[k, n]
    for k in range(free + 1):
        for n in range(stiff):
            adjoint[k, n] = back[k, n]


@_compile
def _square(a: Any, out: Any) -> None:
    """Out <- a a, upper triangular."""
    size = a.shape[0]
    for i in range(size):
        for j in range(i, size):
            total = 0.0
            for m in range(i, j + 1):
                total += a[i, m] * a[m, j]
            out[i, j] = total


@_compile
def _exponentials(theta: Any, eps: float, h: float, first: int, levels: Any) -> int:
    """levels[i] (K, K) = exp(Q eps h / 2^(s-i)), i = 0..s; s. Rows better than ``first`` are the identity's."""
    free = theta.size
    c = 0.0
    for k in range(first, free):
        c = max(c, theta[k])
    doublings = max(0, math.ceil(math.log2(c * h * eps)))
    ch = math.ldexp(c * h * eps, -doublings)
    count = _count_terms(ch, free)
    term = np.empty(free + 1)
    for i in range(free + 1):
        for j in range(free + 1):
            levels[0, i, j] = 0.0
            term[j] = 0.0
        term[i] = 1.0
        w = math.exp(-ch)
        for m in range(count + 1):
            for j in range(i, free + 1):
                levels[0, i, j] += w * term[j]
            for j in range(free, -1, -1):
                stay = 1.0 - (theta[j] / c if first <= j < free else 0.0)
                come = theta[j - 1] / c if j > first else 0.0
                term[j] = term[j] * stay + (term[j - 1] * come if j > 0 else 0.0)
            w *= ch / (m + 1)
    for i in range(doublings + 1):
        if i:
            _square(levels[i - 1], levels[i])
        length = math.ldexp(h * eps, i - doublings)
        for k in range(free):  # the diagonal is known: else 2^s roundings of it would add up
            levels[i, k, k] = math.exp(-theta[k] * length) if k >= first else 1.0
        levels[i, free, free] = 1.0
    return doublings


@_compile
def _step_lane(p: Any, n: int, theta: Any, h: float, eps: float, levels: Any, out: Any) -> None:
    """Out[:, n] <- p[:, n] exp(Q eps h) by the matrix."""
    last = _exponentials(theta, eps, h, _find_first(p), levels)
    for j in range(p.shape[0]):
        total = 0.0
        for i in range(j + 1):
            total += p[i, n] * levels[last, i, j]
        out[j, n] = total


@_compile
def _unroll_lane(
    p: Any, n: int, theta: Any, h: float, eps: float, levels: Any, adjoint: Any, slope: Any, bars: Any
) -> None:
    """Do as ``_unroll`` does, for one lane, by the matrix: bars (2, K, K) is the adjoint of a level and the next.

    The diagonal is known, so its adjoint goes to its own hazard at each level and no further; what is left at
    the first level, whose ch is at most 1, goes through the series' integral form, twice differentiable in theta.
    """
    states = p.shape[0]
    free, first = states - 1, _find_first(p)
    last = _exponentials(theta, eps, h, first, levels)
    for i in range(states):
        for j in range(states):
            bars[0, i, j] = p[i, n] * adjoint[j, n] if j >= i else 0.0
    for i in range(states):
        total = 0.0
        for j in range(i, states):
            total += levels[last, i, j] * adjoint[j, n]
        levels[last + 1, i, 0] = total
    for i in range(states):
        adjoint[i, n] = levels[last + 1, i, 0]
    for k in range(free):
        slope[k, n] = 0.0
    for level in range(last, -1, -1):
        length = math.ldexp(h * eps, level - last)
        for k in range(states):
            if first <= k < free:
                slope[k, n] -= theta[k] * length * levels[level, k, k] * bars[0, k, k]
            bars[0, k, k] = 0.0
        if level == 0:
            break
        below = levels[level - 1]
        for i in range(states):
            for j in range(i, states):
                total = 0.0
                for m in range(j, states):
                    total += bars[0, i, m] * below[j, m]
                for m in range(i + 1):
                    total += below[m, i] * bars[0, m, j]
                bars[1, i, j] = total
        for i in range(states):
            for j in range(i, states):
                bars[0, i, j] = bars[1, i, j]
    _unroll_first(theta, eps, math.ldexp(h, -last), first, bars[0], n, slope)


@_compile
def _unroll_first(theta: Any, eps: float, h: float, first: int, bar: Any, n: int, slope: Any) -> None:
    """Slope[k, n] += sum over i < j of bar[i, j] d exp(Q eps h)[i, j] / d log theta_k; ch is at most 1."""
    free = theta.size
    states = free + 1
    c = 0.0
    for k in range(first, free):
        c = max(c, theta[k])
    ch = c * h * eps
    count = _count_terms(ch, free)
    terms = np.zeros((count + 1, states))
    weights = np.empty(count + 1)
    weights[0] = math.exp(-ch)
    for m in range(1, count + 1):
        weights[m] = weights[m - 1] * ch / m
    back = np.zeros(states)
    for i in range(first, free):
        for j in range(states):
            terms[0, j] = 1.0 if j == i else 0.0
            back[j] = 0.0
        for m in range(1, count + 1):
            for j in range(free, -1, -1):
                stay = 1.0 - (theta[j] / c if first <= j < free else 0.0)
                come = theta[j - 1] / c if j > first else 0.0
                terms[m, j] = terms[m - 1, j] * stay + (terms[m - 1, j - 1] * come if j > 0 else 0.0)
        for m in range(count, -1, -1):
            for k in range(first, free):
                rise = theta[k] / c * (back[k + 1] - back[k])
                slope[k, n] += terms[m, k] * rise
                back[k] += rise
            for j in range(i, states):
                back[j] += weights[m] * bar[i, j]


@_compile
def _step(
    p: Any,
    theta: Any,
    h: float,
    eps: Any,
    move: Any,
    ch: Any,
    terms: Any,
    w: Any,
    begin: Any,
    levels: Any,
    out: Any,
) -> None:
    """Out (K, N) <- p (K, N) exp(Q eps h)."""
    stiff = _prepare(p, theta, h, eps, move, ch)
    _series(p, move, ch, stiff, terms, w, begin, out, False)
    for n in range(stiff, eps.size):
        _step_lane(p, n, theta, h, eps[n], levels, out)


@_compile
def _improve(p: Any, h: float, log_stay: Any) -> None:
    """State k moves to k - 1 with probability 1 - e^(h log_stay[k]), in place, from the best state on."""
    for k in range(1, p.shape[0]):
        r = -math.expm1(h * log_stay[k])
        for n in range(p.shape[1]):
            p[k - 1, n] += r * p[k, n]
            p[k, n] -= r * p[k, n]


@_compile
def _unimprove(p: Any, h: float, log_stay: Any, adjoint: Any, slope: Any) -> None:
    """Adjoint before ``_improve`` from that after it, p being as it was before; slope (K,) += d / d log_stay."""
    for k in range(p.shape[0] - 1, 0, -1):
        r = -math.expm1(h * log_stay[k])
        total = 0.0
        for n in range(p.shape[1]):
            rise = adjoint[k - 1, n] - adjoint[k, n]
            total += p[k, n] * rise
            adjoint[k, n] += r * rise
        slope[k] -= h * (1.0 - r) * total


@_compile
def pass_bridges(
    lo: int,
    hi: int,
    bridges: Any,
    observed: Any,
    begins: Any,
    steps: Any,
    h: Any,
    theta: Any,
    pi: Any,
    errors: Any,
    log_stay: Any,
    eps: Any,
    weight: Any,
    differentiate: bool,
    log_scale: Any,
    d_theta: Any,
    d_pi: Any,
    d_errors: Any,
    d_stay: Any,
    d_eps: Any,
    posterior: Any,
) -> None:
    """Pass over bridges lo..hi-1, forward and, with ``differentiate``, back.

    Bridge b has the visits bridges[b]..bridges[b+1]-1. Visit v has rating observed[v] and the steps
    steps[v]..steps[v+1]-1 before it; begins[v] is the row of ``pi`` (., K) that a history begins with, or -1.
    A step has years h and hazards theta (., K-1). ``errors`` (K, K), ``log_stay`` (K,) or (0,), nodes ``eps`` (N,)
    rising with weights (N,).

    log_scale (V,) is the log-probability of each visit given all before it. With ``differentiate`` the others are
    filled for these bridges: derivatives of log L by step and state in log theta (S, K-1), by history in pi, by
    bridge in errors (B, K, K), log_stay (B, K), log eps (B, N); and ``posterior`` (B, N), the nodes' weights given
    all visits of the bridge.
    """
    states, lanes = errors.shape[0], eps.size
    free = states - 1
    most_visits, most_steps = 0, 0
    for b in range(lo, hi):
        most_visits = max(most_visits, bridges[b + 1] - bridges[b])
        most_steps = max(most_steps, steps[bridges[b + 1]] - steps[bridges[b]])
    count = MOST_TERMS + states if differentiate else 1
    terms, w = np.zeros((count, states, lanes)), np.zeros((count, lanes))
    begin = np.zeros(count, np.int64)
    levels, bars = np.zeros((64, states, states)), np.zeros((2, states, states))
    move, ch = np.zeros(free), np.zeros(lanes)
    p, out, adjoint, back = np.zeros((4, states, lanes))
    slope = np.zeros((free, lanes))
    mass = np.zeros(lanes)
    kept = most_steps + 1 if differentiate else 1
    before, after = np.zeros((kept, states, lanes)), np.zeros((kept, states, lanes))
    seen = np.zeros((most_visits + 1 if differentiate else 1, states, lanes))
    for b in range(lo, hi):
        for n in range(lanes):
            mass[n] = weight[n]
        for v in range(bridges[b], bridges[b + 1]):
            if begins[v] >= 0:
                for k in range(states):
                    for n in range(lanes):
                        p[k, n] = mass[n] * pi[begins[v], k]
            for s in range(steps[v], steps[v + 1]):
                place = s - steps[bridges[b]] if differentiate else 0
                for k in range(states):
                    for n in range(lanes):
                        before[place, k, n] = p[k, n]
                _step(before[place], theta[s], h[s], eps, move, ch, terms, w, begin, levels, p)
                if log_stay.size:
                    for k in range(states):
                        for n in range(lanes):
                            after[place, k, n] = p[k, n]
                    _improve(p, h[s], log_stay)
            place = v - bridges[b] if differentiate else 0
            total = 0.0
            for k in range(states):
                for n in range(lanes):
                    seen[place, k, n] = p[k, n]
                    p[k, n] *= errors[k, observed[v]]
                    total += p[k, n]
            log_scale[v] = math.log(total)
            for n in range(lanes):
                mass[n] = 0.0
            for k in range(states):
                for n in range(lanes):
                    p[k, n] /= total
                    mass[n] += p[k, n]
        if not differentiate:
            continue
        for k in range(states):
            for n in range(lanes):
                adjoint[k, n] = 1.0
        for k in range(states):
            d_stay[b, k] = 0.0
            for j in range(states):
                d_errors[b, k, j] = 0.0
        for n in range(lanes):
            d_eps[b, n] = 0.0
        for v in range(bridges[b + 1] - 1, bridges[b] - 1, -1):
            x, o, scale = seen[v - bridges[b]], observed[v], math.exp(log_scale[v])
            for k in range(states):
                total = 0.0
                for n in range(lanes):
                    total += x[k, n] * adjoint[k, n]
                    adjoint[k, n] *= errors[k, o] / scale
                d_errors[b, k, o] += total / scale
            for s in range(steps[v + 1] - 1, steps[v] - 1, -1):
                place = s - steps[bridges[b]]
                if log_stay.size:
                    _unimprove(after[place], h[s], log_stay, adjoint, d_stay[b])
                stiff = _prepare(before[place], theta[s], h[s], eps, move, ch)
                used = _series(before[place], move, ch, stiff, terms, w, begin, out, True)
                _unroll(used, move, stiff, terms, w, begin, adjoint, back, slope)
                for n in range(stiff, lanes):
                    _unroll_lane(before[place], n, theta[s], h[s], eps[n], levels, adjoint, slope, bars)
                for k in range(free):
                    total = 0.0
                    for n in range(lanes):
                        total += slope[k, n]
                        d_eps[b, n] += slope[k, n]
                    d_theta[s, k] = total
            if begins[v] < 0:
                continue
            f = begins[v]
            for n in range(lanes):
                mass[n] = weight[n]
            if v > bridges[b]:
                here, scale = seen[v - 1 - bridges[b]], math.exp(log_scale[v - 1])
                for n in range(lanes):
                    mass[n] = 0.0
                    for k in range(states):
                        mass[n] += here[k, n] * errors[k, observed[v - 1]] / scale
            for k in range(states):
                total = 0.0
                for n in range(lanes):
                    total += mass[n] * adjoint[k, n]
                d_pi[f, k] = total
            for n in range(lanes):
                total = 0.0
                for k in range(states):
                    total += pi[f, k] * adjoint[k, n]
                for k in range(states):
                    adjoint[k, n] = total
                if v == bridges[b]:
                    posterior[b, n] = weight[n] * total
