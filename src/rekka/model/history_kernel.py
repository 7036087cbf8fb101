"""Compiled: the likelihood of whole histories of visits, and its exact gradient. No covariate comes here.

A bridge is a run of visits; a visit that begins a history redraws the state from ``pi``, every other follows from
the one before by steps of constant hazards. With alpha[s, n] the joint probability of state s and frailty node n,

    alpha_v = (alpha_{v-1} P_v) E[:, o_v] / c_v,    log L = sum_v log c_v,    P_v a product of steps,

one step being p exp(Q h) and then, where silent improvements are modelled, state k -> k - 1 with probability
1 - (1 - rho_k)^h. The backward pass carries the adjoint B (sum of alpha B = 1) from the last visit to the first;
all derivatives of log L come from it. Where visits have weights, log L = sum_v w_v log c_v: the sum of alpha B is
w_v at visit v, so that B grows by w_v - w_{v+1} on the way there.

Nodes are 2^(1/stride) apart, so that the matrix exp(Q eps h) of a node is the square of the one ``stride`` nodes
before. Only the first ``stride`` matrices, where Q eps h is small, are series without a negative term
(uniformization):

    exp(X) = e^(-c) sum_m (c I + X)^m / m!,    c the largest hazard, times eps h.

Where the first nodes are not small, further ones are put below them, in whole octaves. No entry loses digits: all
are sums of positive terms, and the diagonal e^(-x) is carried as 1 - e^(-x) until x is above log 2. A fast hazard
costs a few octaves, whatever its size.

Matrices do not depend on the visits: they are made for all steps of a few bridges at once, steps contiguous, and
turned so that nodes are contiguous in the pass over visits. The adjoints of the matrices go back the same way.

States are 0-based. Every output belongs to one bridge, so that any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rekka.core.compiling import njit

NEGLIGIBLE = 1e-17  # of the first term of an entry
SMALL = 0.125  # largest c of a series
LOSS_TERMS = 11  # of 1 - e^(-x) where x is at most SMALL: the next is below 1e-19 of the first
BATCH_STEPS = 64  # steps, about, whose matrices are made at once: they stay in the cache
BATCH_ALONE = 128  # where there is one node

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def _count_terms(c: float, free: int) -> int:
    """Terms after which every entry's rest is negligible."""
    m, term = 1, c
    while term > NEGLIGIBLE:
        m += 1
        term *= c / m
    return m + free


@_compile
def _entry(i: int, j: int, states: int) -> int:
    """Place of entry (i, j), i <= j, of an upper triangular matrix."""
    return i * states - i * (i + 1) // 2 + j


@_compile
def _count_states(entries: int) -> int:
    """K of a matrix with K (K + 1) / 2 entries."""
    return round(math.sqrt(2.0 * entries + 0.25) - 0.5)


@_compile
def _count_octaves(x: Any) -> int:
    """Halvings that make all hazards x (K-1, S) small."""
    largest = SMALL
    for k in range(x.shape[0]):
        for s in range(x.shape[1]):
            if x[k, s] > largest:  # and is a number
                largest = x[k, s]
    return math.ceil(math.log2(largest / SMALL))


@_compile
def _make_terms(x: Any, c: Any, terms: Any) -> int:
    """terms[m] (E, S) <- (c I + X)^m / m! for hazards x (K-1, S); c (S,) <- the largest; the number of terms."""
    free, steps = x.shape
    states = free + 1
    top = 0.0
    for s in range(steps):
        c[s] = 0.0
    for k in range(free):
        for s in range(steps):
            c[s] = max(c[s], x[k, s])
    for s in range(steps):
        if c[s] > top:
            top = c[s]
    count: int = _count_terms(top, free)
    for i in range(states):
        for j in range(i, states):
            for s in range(steps):
                terms[0, _entry(i, j, states), s] = 1.0 if i == j else 0.0
    for m in range(1, count + 1):
        inverse = 1.0 / m
        for i in range(free):
            for j in range(i, states):
                e = _entry(i, j, states)
                new, old = terms[m, e], terms[m - 1, e]
                if j == i:
                    for s in range(steps):
                        new[s] = inverse * old[s] * (c[s] - x[j, s])
                elif j < free:
                    before = terms[m - 1, e - 1]
                    for s in range(steps):
                        new[s] = inverse * (old[s] * (c[s] - x[j, s]) + before[s] * x[j - 1, s])
                else:
                    before = terms[m - 1, e - 1]
                    for s in range(steps):
                        new[s] = inverse * (old[s] * c[s] + before[s] * x[j - 1, s])
    return count


@_compile
def _add_terms(
    terms: Any, count: int, ratio: float, x: Any, c: Any, left: Any, scale: Any, n: int, out: Any
) -> None:
    """Out[:, n] (E, S) <- exp(X ratio); left (K-1, S) <- 1 - its diagonal; scale (S,) <- e^(-c ratio)."""
    free, steps = x.shape
    states = free + 1
    _lose(c, ratio, scale)
    for s in range(steps):
        scale[s] = 1.0 - scale[s]
        out[out.shape[0] - 1, n, s] = 1.0
    for k in range(free):
        total = out[_entry(k, k, states), n]
        _lose(x[k], ratio, left[k])
        for s in range(steps):
            total[s] = 1.0 - left[k, s]
    for i in range(free):
        for j in range(i + 1, states):
            e = _entry(i, j, states)
            total = out[e, n]
            for s in range(steps):
                total[s] = 0.0
            for m in range(count, j - i - 1, -1):
                own = terms[m, e]
                for s in range(steps):
                    total[s] = total[s] * ratio + own[s]
            power = 1.0
            for _ in range(j - i):
                power *= ratio
            for s in range(steps):
                total[s] *= scale[s] * power


@_compile
def _lose(x: Any, ratio: float, lost: Any) -> None:
    """Lost (S,) <- 1 - e^(-x ratio) of numbers x (S,) that are small: the series of exp, which alternates."""
    for s in range(x.size):
        lost[s] = 1.0
    for m in range(LOSS_TERMS, 1, -1):
        share = ratio / m
        for s in range(x.size):
            lost[s] = 1.0 - share * x[s] * lost[s]
    for s in range(x.size):
        lost[s] *= ratio * x[s]


@_compile
def _unadd_terms(count: int, ratio: float, c: Any, scale: Any, n: int, bars: Any, own: Any) -> None:
    """Adjoints own[m] (E, S) of terms[m] += those of a sum with adjoint bars[:, n], which is written over."""
    states, steps = _count_states(bars.shape[0]), bars.shape[2]
    _lose(c, ratio, scale)
    for s in range(steps):
        scale[s] = 1.0 - scale[s]
    for i in range(states - 1):
        for j in range(i + 1, states):
            e = _entry(i, j, states)
            given, power = bars[e, n], 1.0
            for s in range(steps):
                given[s] *= scale[s]
            for m in range(count + 1):
                if m >= j - i:
                    to = own[m, e]
                    for s in range(steps):
                        to[s] += power * given[s]
                power *= ratio


@_compile
def _unmake_terms(x: Any, c: Any, terms: Any, count: int, bars: Any, slope: Any) -> None:
    """Slope (K-1, S) += d / d log theta of terms[m] with adjoints bars[m], which are written over.

    c is a constant: the sum is the same with any.
    """
    free, steps = x.shape
    states = free + 1
    for m in range(count, 0, -1):
        inverse = 1.0 / m
        for i in range(free):
            for j in range(i, free):
                e = _entry(i, j, states)
                here, above, own, below = bars[m, e], bars[m, e + 1], terms[m - 1, e], bars[m - 1, e]
                for s in range(steps):
                    rise = inverse * x[j, s] * (above[s] - here[s])
                    slope[j, s] += own[s] * rise
                    below[s] += inverse * c[s] * here[s] + rise
            e = _entry(i, free, states)
            here, below = bars[m, e], bars[m - 1, e]
            for s in range(steps):
                below[s] += inverse * c[s] * here[s]


@_compile
def _unmake_sum(x: Any, c: Any, terms: Any, count: int, given: Any, bars: Any, slope: Any) -> None:
    """Do as ``_unmake_terms`` where each term is added once, with adjoints given[:, 0] (E, S), 0 on the diagonal.

    ``bars`` (2, E, S) are written over: the adjoints of a term need those of the next one alone. Where a term is 0
    its adjoint is of no consequence.
    """
    free, steps = x.shape
    states = free + 1
    for e in range(given.shape[0]):
        for s in range(steps):
            bars[count % 2, e, s] = given[e, 0, s]
    for m in range(count, 0, -1):
        inverse, now, to = 1.0 / m, bars[m % 2], bars[(m - 1) % 2]
        for i in range(free):
            for j in range(i, free):
                e = _entry(i, j, states)
                here, above, own, below, start = now[e], now[e + 1], terms[m - 1, e], to[e], given[e, 0]
                for s in range(steps):
                    rise = inverse * x[j, s] * (above[s] - here[s])
                    slope[j, s] += own[s] * rise
                    below[s] = start[s] + (inverse * c[s] * here[s] + rise)
            e = _entry(i, free, states)
            here, below, start = now[e], to[e], given[e, 0]
            for s in range(steps):
                below[s] = start[s] + inverse * c[s] * here[s]


@_compile
def _square(a: Any, n: int, to: int, left: Any) -> None:
    """a[:, to] (E, S) <- the square of a[:, n]; left (K-1, S), 1 - the diagonal, goes along."""
    free, steps = left.shape
    states = free + 1
    for k in range(free):
        e = _entry(k, k, states)
        old, new = a[e, n], a[e, to]
        for s in range(steps):
            m = left[k, s]
            left[k, s] = m * (2.0 - m)
            new[s] = 1.0 - left[k, s] if m < 0.5 else old[s] * old[s]
    for s in range(steps):
        a[a.shape[0] - 1, to, s] = 1.0
    for i in range(free):
        for j in range(i + 1, states):
            e = _entry(i, j, states)
            row, total, first, last = a[e, n], a[e, to], a[_entry(i, i, states), n], a[_entry(j, j, states), n]
            for s in range(steps):
                total[s] = row[s] * (first[s] + last[s])
            for m in range(i + 1, j):
                one, two = a[_entry(i, m, states), n], a[_entry(m, j, states), n]
                for s in range(steps):
                    total[s] += one[s] * two[s]


@_compile
def _unsquare(a: Any, n: int, to: int, bars: Any) -> None:
    """Adjoint bars[:, n] (E, S) of a[:, n] += that of its square a[:, to] above the diagonal."""
    states, steps = _count_states(a.shape[0]), a.shape[2]
    for i in range(states - 1):
        for j in range(i + 1, states):
            e, at, end = _entry(i, j, states), _entry(i, i, states), _entry(j, j, states)
            given, row, first, last = bars[e, to], a[e, n], a[at, n], a[end, n]
            own, b_first, b_last = bars[e, n], bars[at, n], bars[end, n]
            for s in range(steps):
                own[s] += given[s] * (first[s] + last[s])
                change = given[s] * row[s]
                b_first[s] += change
                b_last[s] += change
            for m in range(i + 1, j):
                left, right = _entry(i, m, states), _entry(m, j, states)
                one, two, b_one, b_two = a[left, n], a[right, n], bars[left, n], bars[right, n]
                for s in range(steps):
                    b_one[s] += given[s] * two[s]
                    b_two[s] += given[s] * one[s]


@_compile
def _unroll_diagonal(x: Any, ratio: float, n: int, a: Any, bars: Any, slope: Any) -> None:
    """Slope (K-1, S) += d / d log theta of the diagonal, which is known: its adjoint goes no further."""
    free, steps = x.shape
    for k in range(free):
        e = _entry(k, k, free + 1)
        own, bar = a[e, n], bars[e, n]
        for s in range(steps):
            slope[k, s] -= ratio * x[k, s] * own[s] * bar[s]


@_compile
def _turn(a: Any, lo: int, out: Any, to: int) -> None:
    """Out[:, to + i, s] <- a[:, lo + s, i], of each entry as many as fit."""
    rows, columns = a.shape[1] - lo, out.shape[1] - to
    for e in range(a.shape[0]):
        for i in range(columns):
            for s in range(rows):
                out[e, to + i, s] = a[e, lo + s, i]


@_compile
def _keep(p: Any, kept: Any, place: int) -> None:
    """kept[place] (K, N) <- p; assigned at once, numpy's messages would be compiled too, for seconds."""
    for k in range(p.shape[0]):
        for n in range(p.shape[1]):
            kept[place, k, n] = p[k, n]


@_compile
def _step(p: Any, a: Any, s: int, out: Any) -> None:
    """Out (K, N) <- p (K, N) times the matrices a[:, s] (E, N)."""
    states, lanes = p.shape
    for j in range(states):
        row = a[_entry(j, j, states), s]
        for n in range(lanes):
            out[j, n] = p[j, n] * row[n]
        for i in range(j):
            row = a[_entry(i, j, states), s]
            for n in range(lanes):
                out[j, n] += p[i, n] * row[n]


@_compile
def _unstep(p: Any, a: Any, s: int, adjoint: Any) -> None:
    """Adjoint (K, N) <- that before a step from p with matrices a[:, s], which become the matrices' adjoint."""
    states, lanes = p.shape
    for i in range(states):
        row = a[_entry(i, i, states), s]
        for n in range(lanes):
            own = adjoint[i, n]
            adjoint[i, n] = own * row[n]
            row[n] = p[i, n] * own
        for j in range(i + 1, states):
            row = a[_entry(i, j, states), s]
            for n in range(lanes):
                own = adjoint[j, n]
                adjoint[i, n] += own * row[n]
                row[n] = p[i, n] * own


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
def _end_batch(b: int, hi: int, bridges: Any, steps: Any, most: int) -> int:
    """The bridge after the last whose steps are taken together with those of bridge b."""
    end = b + 1
    while end < hi and steps[bridges[end + 1]] - steps[bridges[b]] <= most:
        end += 1
    return end


@_compile
def _fill(ratios: Any, x: Any, c: Any, terms: Any, matrices: Any) -> int:
    """Matrices (E, ., S) of hazards x (K-1, S) times ratios (stride,), then 2, 4, .. of them; number of terms."""
    stride = ratios.size
    count: int = _make_terms(x, c, terms)
    left, scale = np.empty((stride, x.shape[0], x.shape[1])), np.empty(x.shape[1])
    for n in range(matrices.shape[1]):
        if n < stride:
            _add_terms(terms, count, ratios[n], x, c, left[n], scale, n, matrices)
        else:
            _square(matrices, n - stride, n, left[n % stride])
    return count


@_compile
def _unfill(
    ratios: Any, x: Any, c: Any, terms: Any, count: int, matrices: Any, bars: Any, own: Any, slope: Any
) -> None:
    """Slope (K-1, S) <- d log L / d log theta from the adjoints of the matrices, which are written over."""
    stride, scale = ratios.size, np.empty(x.shape[1])
    for m in range(count + 1 if stride > 1 else 0):
        for e in range(own.shape[1]):
            for s in range(own.shape[2]):
                own[m, e, s] = 0.0
    for n in range(matrices.shape[1] - 1, -1, -1):
        ratio = math.ldexp(ratios[n % stride], n // stride)
        _unroll_diagonal(x, ratio, n, matrices, bars, slope)
        if n >= stride:
            _unsquare(matrices, n - stride, n, bars)
        elif stride > 1:
            _unadd_terms(count, ratio, c, scale, n, bars, own)
    if stride > 1:
        _unmake_terms(x, c, terms, count, own, slope)
        return
    _lose(c, 1.0, scale)
    states = x.shape[0] + 1
    for i in range(states):
        for j in range(i, states):
            given = bars[_entry(i, j, states), 0]
            for s in range(scale.size):
                given[s] *= 1.0 - scale[s] if j > i else 0.0
    _unmake_sum(x, c, terms, count, bars, own, slope)


@_compile
def _pass_bridge(
    b: int,
    bridges: Any,
    observed: Any,
    begins: Any,
    steps: Any,
    h: Any,
    pi: Any,
    errors: Any,
    log_stay: Any,
    weight: Any,
    differentiate: bool,
    matrices: Any,
    first: int,
    log_scale: Any,
    d_pi: Any,
    d_errors: Any,
    d_stay: Any,
    posterior: Any,
    share: Any,
) -> None:
    """Pass over one bridge; matrices (E, S, N) of the steps from ``first`` on become their adjoints."""
    states, lanes = errors.shape[0], weight.size
    start = steps[bridges[b]]
    kept = steps[bridges[b + 1]] - start + 1 if differentiate else 1
    before, after = np.empty((kept, states, lanes)), np.empty((kept, states, lanes))
    seen = np.empty((bridges[b + 1] - bridges[b] if differentiate else 1, states, lanes))
    p, adjoint, mass = np.zeros((states, lanes)), np.empty((states, lanes)), np.empty(lanes)
    for n in range(lanes):
        mass[n] = weight[n]
    for v in range(bridges[b], bridges[b + 1]):
        if begins[v] >= 0:
            for k in range(states):
                for n in range(lanes):
                    p[k, n] = mass[n] * pi[begins[v], k]
        for s in range(steps[v], steps[v + 1]):
            place = s - start if differentiate else 0
            _keep(p, before, place)
            _step(before[place], matrices, s - first, p)
            if log_stay.size:
                _keep(p, after, place)
                _improve(p, h[s], log_stay)
        place = v - bridges[b] if differentiate else 0
        _keep(p, seen, place)
        total = 0.0
        for k in range(states):
            for n in range(lanes):
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
        return
    for k in range(states):
        d_stay[b, k] = 0.0
        for j in range(states):
            d_errors[b, k, j] = 0.0
        for n in range(lanes):
            adjoint[k, n] = share[bridges[b + 1] - 1] if share.size else 1.0
    for v in range(bridges[b + 1] - 1, bridges[b] - 1, -1):
        if share.size and v < bridges[b + 1] - 1:
            for k in range(states):
                for n in range(lanes):
                    adjoint[k, n] += share[v] - share[v + 1]
        x, o, scale = seen[v - bridges[b]], observed[v], math.exp(log_scale[v])
        for k in range(states):
            total = 0.0
            for n in range(lanes):
                total += x[k, n] * adjoint[k, n]
                adjoint[k, n] *= errors[k, o] / scale
            d_errors[b, k, o] += total / scale
        for s in range(steps[v + 1] - 1, steps[v] - 1, -1):
            if log_stay.size:
                _unimprove(after[s - start], h[s], log_stay, adjoint, d_stay[b])
            _unstep(before[s - start], matrices, s - first, adjoint)
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


@_compile
def _pass_alone(
    b: int,
    bridges: Any,
    observed: Any,
    begins: Any,
    steps: Any,
    h: Any,
    pi: Any,
    errors: Any,
    log_stay: Any,
    differentiate: bool,
    matrices: Any,
    bars: Any,
    first: int,
    log_scale: Any,
    d_pi: Any,
    d_errors: Any,
    d_stay: Any,
    posterior: Any,
    share: Any,
    room: Any,
) -> None:
    """Do as ``_pass_bridge`` for one node of 1, without loops over nodes.

    Adjoints of the matrices (E, S) of the steps from ``first`` on go to ``bars``; ``room`` (5, ., K) is scratch.
    """
    states = errors.shape[0]
    before, after, seen, p, adjoint, new = room[0], room[1], room[2], room[3, 0], room[4, 0], room[4, 1]
    start, origin = bridges[b], steps[bridges[b]]
    for v in range(start, bridges[b + 1]):
        if begins[v] >= 0:
            for k in range(states):
                p[k] = pi[begins[v], k]
        for s in range(steps[v], steps[v + 1]):
            e = 0
            for k in range(states):
                before[s - origin, k] = p[k]
                p[k] = 0.0
            for i in range(states):
                own = before[s - origin, i]
                for j in range(i, states):
                    p[j] += own * matrices[e, s - first]
                    e += 1
            if log_stay.size:
                for k in range(states):
                    after[s - origin, k] = p[k]
                for k in range(1, states):
                    r = -math.expm1(h[s] * log_stay[k])
                    p[k - 1] += r * p[k]
                    p[k] -= r * p[k]
        o, total = observed[v], 0.0
        for k in range(states):
            seen[v - start, k] = p[k]
            p[k] *= errors[k, o]
            total += p[k]
        log_scale[v] = math.log(total)
        for k in range(states):
            p[k] /= total
    if not differentiate:
        return
    for v in range(bridges[b + 1] - 1, start - 1, -1):
        o, scale = observed[v], math.exp(log_scale[v])
        if v == bridges[b + 1] - 1 or begins[v + 1] >= 0:  # histories are independent
            for k in range(states):
                adjoint[k] = share[v] if share.size else 1.0
        elif share.size:
            for k in range(states):
                adjoint[k] += share[v] - share[v + 1]
        for k in range(states):
            d_errors[b, k, o] += seen[v - start, k] * adjoint[k] / scale
            adjoint[k] *= errors[k, o] / scale
        for s in range(steps[v + 1] - 1, steps[v] - 1, -1):
            if log_stay.size:
                for k in range(states - 1, 0, -1):
                    r = -math.expm1(h[s] * log_stay[k])
                    rise = adjoint[k - 1] - adjoint[k]
                    d_stay[b, k] -= h[s] * (1.0 - r) * after[s - origin, k] * rise
                    adjoint[k] += r * rise
            e = 0
            for i in range(states):
                own, total = before[s - origin, i], 0.0
                for j in range(i, states):
                    total += adjoint[j] * matrices[e, s - first]
                    bars[e, s - first] = own * adjoint[j]
                    e += 1
                new[i] = total
            for k in range(states):
                adjoint[k] = new[k]
        if begins[v] >= 0:
            for k in range(states):
                d_pi[begins[v], k] = adjoint[k]
    posterior[b, 0] = 1.0


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
    stride: int,
    weight: Any,
    differentiate: bool,
    log_scale: Any,
    d_theta: Any,
    d_pi: Any,
    d_errors: Any,
    d_stay: Any,
    posterior: Any,
    share: Any,
) -> None:
    """Pass over bridges lo..hi-1, forward and, with ``differentiate``, back.

    Bridge b has the visits bridges[b]..bridges[b+1]-1. Visit v has rating observed[v] and the steps
    steps[v]..steps[v+1]-1 before it; begins[v] is the row of ``pi`` (., K) that a history begins with, or -1.
    A step has years h and hazards theta (., K-1). ``errors`` (K, K), ``log_stay`` (K,) or (0,), nodes ``eps`` (N,)
    with weights (N,), eps[n + stride] twice eps[n].

    log_scale (V,) is the log-probability of each visit given all before it, and ``share`` (V,) its weight in
    log L, or (0,) where all are 1. With ``differentiate`` the others are filled for these bridges: derivatives of
    log L by step and state in log theta (S, K-1), by history in pi, by bridge in errors (B, K, K) and log_stay
    (B, K); and ``posterior`` (B, N), the nodes' weights given all visits of the bridge.
    """
    free, lanes = theta.shape[1], eps.size
    stride = min(stride, lanes)
    entries, most_terms = (free + 1) * (free + 2) // 2, _count_terms(SMALL, free) + 2
    ratios = np.empty(stride)
    for n in range(stride):
        ratios[n] = eps[n] / eps[stride - 1]
    room, spare = np.empty((5, 0)), np.empty((5, 0, free + 1))
    b = lo
    while b < hi:
        end = _end_batch(b, hi, bridges, steps, BATCH_ALONE if lanes == 1 else BATCH_STEPS)
        first = steps[bridges[b]]
        count = steps[bridges[end]] - first
        x = np.empty((free, count))
        for s in range(count):
            for k in range(free):
                x[k, s] = theta[first + s, k] * h[first + s] * eps[stride - 1]
        octaves = _count_octaves(x)
        for k in range(free):
            for s in range(count):
                x[k, s] = math.ldexp(x[k, s], -octaves)
        extra = octaves * stride
        size = entries * (extra + lanes) * count
        series = most_terms * entries * count
        if room.shape[1] < max(size, series):
            room = np.empty((5, max(size, series)))
        shape, c = (entries, extra + lanes, count), np.empty(count)
        matrices = room[0, :size].reshape(shape)
        terms = room[1, :series].reshape((most_terms, entries, count))
        turned = room[2, : entries * lanes * count].reshape((entries, count, lanes))
        used = _fill(ratios, x, c, terms, matrices)
        bars, slope = room[3, :size].reshape(shape), np.zeros((free, count))
        if lanes == 1:
            longest = max(count, bridges[end] - bridges[b]) + 2
            if spare.shape[1] < longest:
                spare = np.empty((5, longest, free + 1))
            for one in range(b, end):
                _pass_alone(
                    one, bridges, observed, begins, steps, h, pi, errors, log_stay, differentiate,
                    matrices[:, extra], bars[:, extra], first, log_scale, d_pi, d_errors, d_stay, posterior, share,
                    spare,
                )  # fmt: skip
        else:
            _turn(matrices, extra, turned, 0)
            for one in range(b, end):
                _pass_bridge(
                    one, bridges, observed, begins, steps, h, pi, errors, log_stay, weight, differentiate, turned,
                    first, log_scale, d_pi, d_errors, d_stay, posterior, share,
                )  # fmt: skip
            _turn(turned, 0, bars, extra)
        if differentiate:
            for e in range(entries):
                for n in range(extra):
                    for s in range(count):
                        bars[e, n, s] = 0.0
            own = room[4, :series].reshape((most_terms, entries, count))
            _unfill(ratios, x, c, terms, used, matrices, bars, own, slope)
            for s in range(count):
                for k in range(free):
                    d_theta[first + s, k] = slope[k, s]
        b = end
