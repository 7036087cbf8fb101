"""Log hazards, years and states in; log-probability, slope and curvature out.

With a_m = theta_m dt and D the divided difference of exp on the nodes -a_i, ..., -a_j (a_K = 0),

    log pi_ij = sum_{m=i}^{j-1} log a_m + log D,

and the derivatives with respect to eta_m = log theta_m need only D with a node doubled (D_m) and with two
nodes added (D_ml). All of these are positive. Three exact forms cover every input: short closed forms for
no jump and one jump, a series of positive terms where the nodes lie close together, and a table of divided
differences kept as logarithms where they lie far apart. No probability is floored and equal hazards are not
a special case. A hazard beyond e^HUGE per interval is an instant: it is taken as that, which changes no digit of
the others, and what it does to log pi itself is added back.

States are 0-based here. The kernel works on a chunk of rows that all make the same number of jumps, one lane a
row, so that the processor takes four rows at a time. ``vec[A, m, lane]`` and ``vec[LOG_A, m, lane]`` hold a chain
from its start state (m = 0) to its end state; log pi comes back in ``vec[VALUE, 0]``, the slope in
``vec[SLOPE, m]`` and the curvature, m <= l, in ``sq[CURVE, m, l]``. ``order`` is 0 for the value alone, 1 with the
slope, 2 with both. Nothing here holds the GIL, and nothing but ``new_work`` allocates.

The last part of the file meets the covariates: eta = X beta', and the chain rule. It is in this file because the
disk cache of numba does not notice a change in a callee that lives in another file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rekka.core.compiling import njit

# Nodes closer together than this use the series, the others the table. A wide entry of the table loses
# about width / (width - order) in accuracy, a series costs about width + 40 terms: 32 is far on the safe
# side of both up to ten states, and SERIES_WIDTH_PER_NODE keeps it so for longer chains.
SERIES_WIDTH = 32.0
SERIES_WIDTH_PER_NODE = 3.0
# In a chunk the widest row sets the number of terms for all, so rows wider than this go by themselves.
CHUNK_WIDTH = 4.0
# One term of the series relative to the first; all terms are positive, so this bounds the relative error.
SERIES_TOLERANCE = 1e-18
# Above this log-probability a jump is nearly certain, and is computed from all the other outcomes.
NEARLY_CERTAIN = -0.1
# log(theta dt) above which leaving a state takes no time that a double could tell; its square is finite.
HUGE = 345.0
_HUGE_A = np.exp(HUGE)
# Rows in a chunk: what the series keeps for each row then fits the first-level cache.
LANES = 64

# The first index of ``vec``: what the caller sets and gets ...
A, LOG_A, SLOPE, VALUE = 0, 1, 2, 3
# ... the nodes, the largest and smallest of them, the series' y, y / (k + n), h_k, D, D_m, h_k with m added ...
_NODES, _TOP, _LOW, _Y, _Y_R, _H, _D, _D_M, _H_M = 4, 5, 6, 7, 8, 9, 10, 11, 12
# ... the slope summed up over the other outcomes, and by how much log a of the end state is above HUGE.
_KEPT_SLOPE, _EXCESS = 13, 14
_VECTORS, _SQUARES = 15, 4
# The first index of ``sq``: curvature, D_ml, h_k with m and l added, curvature summed over other outcomes.
CURVE, _D_ML, _H_ML, _KEPT_CURVE = 0, 1, 2, 3

# log((1 - e^-g) / g) + g/2 = g^2 F(g^2), F_k = B_2k / (2k (2k)!), k = 1..11; radius of convergence 2 pi.
_BERNOULLI = np.array(
    [
        1 / 12,
        -1 / 720,
        1 / 30240,
        -1 / 1209600,
        1 / 47900160,
        -691 / 1307674368000,
        1 / 74724249600,
        -3617 / 10670622842880000,
        43867 / 5109094217170944000,
        -174611 / 802857662698291200000,
        77683 / 14101100039391805440000,
    ]
)
_F = _BERNOULLI / np.arange(2, 24, 2)
_F1 = _BERNOULLI
_F2 = _BERNOULLI * np.arange(1, 23, 2)

_compile = njit(cache=True, nogil=True, error_model="numpy")
# Only the order of a sum of products may change here: it lets the processor add four rows at a time.
_compile_sums = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
# A call that is not inlined counts references of its arrays up and down, atomically: 10 ns apiece.
_inline = njit(cache=True, nogil=True, error_model="numpy", inline="always")


@_compile
def new_work(n_states: int) -> Any:
    """Make the working memory of one thread: ``vec`` and ``sq`` for a chunk, for one row, and the table."""
    size = n_states + 1
    return (
        np.empty((_VECTORS, size, LANES)),
        np.empty((_SQUARES, size, size, LANES)),
        np.empty((_VECTORS, size, 1)),
        np.empty((_SQUARES, size, size, 1)),
        np.empty((size + 2, size, size)),
    )


@_inline
def _one_jump(vec: Any, sq: Any, r: int, absorbing: bool, order: int) -> None:
    """One jump, i -> i + 1: closed form, with a Taylor series where the two hazards are close."""
    a_i = vec[A, 0, r]
    a_j = 0.0 if absorbing else vec[A, 1, r]
    gap = a_i - a_j
    if abs(gap) <= 1.0:
        square = gap * gap
        f = 0.0
        f1 = 0.0
        f2 = 0.0
        for k in range(_F.size - 1, -1, -1):
            f = f * square + _F[k]
            f1 = f1 * square + _F1[k]
            f2 = f2 * square + _F2[k]
        f1 = f1 * gap - 0.5
        value = vec[LOG_A, 0, r] - a_j - 0.5 * gap + f * square
        slope_i = 1.0 + a_i * f1
        slope_j = -a_j * (1.0 + f1)
        curve_ii = a_i * f1 + a_i * a_i * f2
        curve_ij = -a_i * a_j * f2
        curve_jj = slope_j + a_j * a_j * f2
    else:
        e = math.exp(-abs(gap))
        if gap > 0.0:
            value = -math.log1p(-a_j / a_i) - a_j + math.log1p(-e)
            x = e / (1.0 - e)  # 1 / (e^gap - 1)
            x1 = 1.0 / (1.0 - e)  # 1 + x
        else:
            value = vec[LOG_A, 0, r] - a_i + math.log1p(-e) - math.log(-gap)
            x = -1.0 / (1.0 - e)
            x1 = -e / (1.0 - e)
        cross = (a_i / gap) * (a_j / gap)
        slope_i = a_i * x - a_j / gap
        slope_j = -a_j * (x1 - 1.0 / gap)
        curve_ii = cross + a_i * x - (a_i * x) * (a_i * x1)
        curve_ij = (a_i * x) * (a_j * x1) - cross
        curve_jj = cross - a_j * x1 - (a_j * x) * (a_j * x1)
    vec[VALUE, 0, r] = value
    if order > 0:
        vec[SLOPE, 0, r] = slope_i
        vec[SLOPE, 1, r] = slope_j
    if order > 1:
        sq[CURVE, 0, 0, r] = curve_ii
        sq[CURVE, 0, 1, r] = curve_ij
        sq[CURVE, 1, 1, r] = curve_jj


@_compile
def _series(vec: Any, sq: Any, lanes: int, lo: int, hi: int, order: int) -> None:
    """n! e^c D on nodes lo..hi, into _D, with D_m and D_ml scaled alike.

    D = e^-c sum_k h_k(y) / (k + n)!, y = c - a >= 0, c = max a, h_k the complete homogeneous polynomial.
    Each recurrence carries h_k n! / (k + n)!, so that no power overflows.
    """
    size = hi - lo + 1
    n = size - 1
    width = 0.0
    for r in range(lanes):
        top = vec[_NODES, lo, r]
        low = top
        for q in range(lo + 1, hi + 1):
            top = max(top, vec[_NODES, q, r])
            low = min(low, vec[_NODES, q, r])
        width = max(width, top - low)
        vec[_D, 0, r] = 1.0
        for q in range(size):
            vec[_Y, q, r] = top - vec[_NODES, lo + q, r]
            vec[_H, q, r] = 1.0
    if order > 0:
        for q in range(size):
            for r in range(lanes):
                vec[_H_M, q, r] = 1.0
                vec[_D_M, q, r] = 1.0 / (n + 1.0)
            for s in range(q, size if order > 1 else q):
                for r in range(lanes):
                    sq[_H_ML, q, s, r] = 1.0
                    sq[_D_ML, q, s, r] = 1.0 / ((n + 1.0) * (n + 2.0))
    bound = 1.0
    k = 0
    while bound > SERIES_TOLERANCE:
        k += 1
        bound *= width / k
        step = 1.0 / (k + n)
        for r in range(lanes):
            vec[_Y_R, 0, r] = vec[_Y, 0, r] * step
            vec[_H, 0, r] *= vec[_Y_R, 0, r]
        for q in range(1, size):
            for r in range(lanes):
                vec[_Y_R, q, r] = vec[_Y, q, r] * step
                vec[_H, q, r] = vec[_H, q - 1, r] + vec[_Y_R, q, r] * vec[_H, q, r]
        for r in range(lanes):
            vec[_D, 0, r] += vec[_H, n, r]
        if order == 0:
            continue
        w_m = 1.0 / (k + n + 1.0)
        w_ml = w_m / (k + n + 2.0)
        for q in range(size):
            for r in range(lanes):
                h_m = vec[_H, n, r] + vec[_Y_R, q, r] * vec[_H_M, q, r]
                vec[_H_M, q, r] = h_m
                vec[_D_M, q, r] += h_m * w_m
            for s in range(q, size if order > 1 else q):
                for r in range(lanes):
                    h_ml = vec[_H_M, q, r] + vec[_Y_R, s, r] * sq[_H_ML, q, s, r]
                    sq[_H_ML, q, s, r] = h_ml
                    sq[_D_ML, q, s, r] += h_ml * w_ml


@_compile
def _log_minus(u: float, v: float) -> float:
    """log(e^u - e^v) for u > v."""
    return u + math.log1p(-math.exp(v - u))


@_compile
def _table(vec: Any, sq: Any, table: Any, size: int, limit: float, order: int) -> None:
    """Logarithms of D, D_m, D_ml, each times e^(smallest node), on one row's nodes, largest first.

    Interval [p..q] comes from [p+1..q] and [p..q-1] by the recursion of divided differences, one diagonal
    after the other in place; an added node that is itself the outermost one is taken away in its stead.
    Narrow intervals come from the series. log D of [p..q] is in table[size, 0, p], D_m in
    table[size + 1, p, m], D_ml in table[p, m, l]: at the end the whole row stands at p = 0.
    """
    log_d, log_d_m = table[-2, 0], table[-1]
    nodes = vec[_NODES, :, 0]
    for d in range(size):
        for p in range(size - d):
            q = p + d
            width = nodes[p] - nodes[q]
            if width <= limit:
                used = (p > 0 and nodes[p - 1] - nodes[q] > limit) or (
                    q + 1 < size and nodes[p] - nodes[q + 1] > limit
                )
                if used:
                    shift = -width - math.lgamma(d + 1.0)
                    _series(vec, sq, 1, p, q, order)
                    log_d[p] = math.log(vec[_D, 0, 0]) + shift
                    if order > 0:
                        for m in range(d + 1):
                            log_d_m[p, p + m] = math.log(vec[_D_M, m, 0]) + shift
                            for s in range(m, d + 1 if order > 1 else m):
                                table[p, p + m, p + s] = math.log(sq[_D_ML, m, s, 0]) + shift
                continue
            gap = nodes[q - 1] - nodes[q]
            log_width = math.log(width)
            log_d[p] = _log_minus(log_d[p + 1], log_d[p] - gap) - log_width
            if order == 0:
                continue
            for m in range(p, q + 1):
                u = log_d[p] if m == p else log_d_m[p + 1, m]
                v = log_d[p] if m == q else log_d_m[p, m] - gap
                log_d_m[p, m] = _log_minus(u, v) - log_width
            if order == 1:
                continue
            for m in range(p, q + 1):
                for s in range(m, q + 1):
                    u = log_d_m[p, s] if m == p else table[p + 1, m, s]
                    v = log_d_m[p, m] if s == q else table[p, m, s] - gap
                    table[p, m, s] = _log_minus(u, v) - log_width


@_compile
def _sort_nodes(nodes: Any, origin: Any, size: int) -> None:
    """Sort the nodes, largest first, remembering where each came from."""
    for q in range(size):
        origin[q] = q
    for q in range(1, size):
        node, place = nodes[q], origin[q]
        s = q - 1
        while s >= 0 and nodes[s] < node:
            nodes[s + 1] = nodes[s]
            origin[s + 1] = origin[s]
            s -= 1
        nodes[s + 1] = node
        origin[s + 1] = place


@_compile
def _set_nodes(vec: Any, lanes: int, n: int, free: int) -> float:
    """The chain's a as nodes, 0 for an absorbing end; sets _TOP and _LOW, returns the largest spread."""
    for m in range(n + 1):
        for r in range(lanes):
            vec[_NODES, m, r] = vec[A, m, r] if m < free else 0.0
    spread = 0.0
    for r in range(lanes):
        top = vec[_NODES, 0, r]
        low = top
        for m in range(1, n + 1):
            top = max(top, vec[_NODES, m, r])
            low = min(low, vec[_NODES, m, r])
        vec[_TOP, 0, r] = top
        vec[_LOW, 0, r] = low
        spread = max(spread, top - low)
    return spread


@_compile
def _close_nodes(vec: Any, sq: Any, lanes: int, n: int, free: int, order: int) -> None:
    """log D by the series; u_m = a_m D_m / D and v_ml = a_m a_l D_ml / D go to SLOPE and CURVE."""
    _series(vec, sq, lanes, 0, n, order)
    log_factorial = math.lgamma(n + 1.0)
    for r in range(lanes):
        vec[VALUE, 0, r] = math.log(vec[_D, 0, r]) - log_factorial - vec[_TOP, 0, r]
    if order > 0:
        for m in range(free):
            for r in range(lanes):
                vec[SLOPE, m, r] = vec[A, m, r] * (vec[_D_M, m, r] / vec[_D, 0, r])
            for s in range(m, free if order > 1 else m):
                for r in range(lanes):
                    v = vec[A, m, r] * vec[A, s, r] * (sq[_D_ML, m, s, r] / vec[_D, 0, r])
                    sq[CURVE, m, s, r] = v


@_compile
def _distant_nodes(vec: Any, sq: Any, table: Any, n: int, free: int, limit: float, order: int) -> None:
    """Like _close_nodes, for one row, by the table of divided differences."""
    size = n + 1
    origin = table[-2, 1]
    _sort_nodes(vec[_NODES, :, 0], origin, size)
    _table(vec, sq, table, size, limit, order)
    log_d = table[-2, 0, 0]
    vec[VALUE, 0, 0] = log_d - vec[_LOW, 0, 0]
    if order > 0:
        for q in range(size):
            m = int(origin[q])
            if m >= free:
                continue
            vec[SLOPE, m, 0] = math.exp(vec[LOG_A, m, 0] + table[-1, 0, q] - log_d)
            for t in range(q, size if order > 1 else q):
                s = int(origin[t])
                if s < free:
                    v = math.exp(vec[LOG_A, m, 0] + vec[LOG_A, s, 0] + table[0, q, t] - log_d)
                    sq[CURVE, min(m, s), max(m, s), 0] = v


@_compile
def _derive(vec: Any, sq: Any, lanes: int, n: int, free: int, order: int) -> None:
    """From log D, u and v to log pi, its slope and curvature.

    d log pi / d eta_m = [m < j] - u_m,
    d2 log pi / d eta_m d eta_l = (1 + [m=l]) v_ml - u_m u_l - [m=l] u_m.
    """
    for m in range(n):
        for r in range(lanes):
            vec[VALUE, 0, r] += vec[LOG_A, m, r]
    if order == 0:
        return
    for m in range(free if order > 1 else 0):
        for s in range(m, free):
            for r in range(lanes):
                sq[CURVE, m, s, r] -= vec[SLOPE, m, r] * vec[SLOPE, s, r]
        for r in range(lanes):
            u = vec[SLOPE, m, r]
            sq[CURVE, m, m, r] += sq[CURVE, m, m, r] + u * u - u
    for m in range(free):
        left = 1.0 if m < n else 0.0
        for r in range(lanes):
            vec[SLOPE, m, r] = left - vec[SLOPE, m, r]


@_compile
def _jump_one_row(vec: Any, sq: Any, table: Any, n: int, absorbing: bool, order: int) -> None:
    """Any number of jumps, one row; loses relative accuracy in log pi where pi is close to 1."""
    if n == 0:
        vec[VALUE, 0, 0] = -vec[A, 0, 0]
        vec[SLOPE, 0, 0] = -vec[A, 0, 0]
        sq[CURVE, 0, 0, 0] = -vec[A, 0, 0]
        return
    if n == 1:
        _one_jump(vec, sq, 0, absorbing, order)
        return
    free = n if absorbing else n + 1
    limit = max(SERIES_WIDTH, SERIES_WIDTH_PER_NODE * (n + 1))
    if _set_nodes(vec, 1, n, free) <= limit:
        _close_nodes(vec, sq, 1, n, free, order)
    else:
        _distant_nodes(vec, sq, table, n, free, limit, order)
    _derive(vec, sq, 1, n, free, order)


@_compile
def _nearly_certain(vec: Any, sq: Any, table: Any, n: int, absorbing: bool, order: int) -> None:
    """One row with pi close to 1, from the probabilities of ending anywhere else.

    The states beyond j count as one absorbing state, so the chain i..j is all that is needed, and every
    sum has terms of one sign: log pi = log1p(-sum pi') is accurate however small it is, and never above 0.
    """
    free = n if absorbing else n + 1
    vec[_KEPT_SLOPE] = 0.0
    sq[_KEPT_CURVE] = 0.0
    missing = 0.0
    for end in range(n + 2):
        if end == n or (end == n + 1 and absorbing):
            continue
        _jump_one_row(vec, sq, table, end, end == n + 1, order)
        p = math.exp(vec[VALUE, 0, 0])
        missing += p
        if order > 0 and p > 0.0:
            touched = min(end + 1, free)
            for m in range(touched):
                vec[_KEPT_SLOPE, m, 0] -= p * vec[SLOPE, m, 0]
                for s in range(m, touched if order > 1 else m):
                    second = sq[CURVE, m, s, 0] + vec[SLOPE, m, 0] * vec[SLOPE, s, 0]
                    sq[_KEPT_CURVE, m, s, 0] -= p * second
    vec[VALUE, 0, 0] = math.log1p(-missing)
    if order > 0:
        for m in range(free):
            vec[SLOPE, m, 0] = vec[_KEPT_SLOPE, m, 0] / (1.0 - missing)
        for m in range(free if order > 1 else 0):
            for s in range(m, free):
                second = sq[_KEPT_CURVE, m, s, 0] / (1.0 - missing)
                sq[CURVE, m, s, 0] = second - vec[SLOPE, m, 0] * vec[SLOPE, s, 0]


@_compile
def _one_row(work: Any, r: int, n: int, absorbing: bool, order: int) -> None:
    """Lane ``r`` of the chunk by itself, in whatever form it needs."""
    vec, sq, vec1, sq1, table = work
    free = n if absorbing else n + 1
    for m in range(free):
        vec1[A, m, 0] = vec[A, m, r]
        vec1[LOG_A, m, 0] = vec[LOG_A, m, r]
    _jump_one_row(vec1, sq1, table, n, absorbing, order)
    if vec1[VALUE, 0, 0] > NEARLY_CERTAIN:
        _nearly_certain(vec1, sq1, table, n, absorbing, order)
    vec[VALUE, 0, r] = vec1[VALUE, 0, 0]
    if order > 0:
        for m in range(free):
            vec[SLOPE, m, r] = vec1[SLOPE, m, 0]
            for s in range(m, free if order > 1 else m):
                sq[CURVE, m, s, r] = sq1[CURVE, m, s, 0]


@_compile
def _all_lanes(work: Any, lanes: int, n: int, absorbing: bool, order: int) -> None:
    """log pi of ``n`` jumps in each of the first lanes, by the form that fits."""
    vec, sq, _, _, _ = work
    if n == 0 and absorbing:  # a row that starts in the last state stays there
        for r in range(lanes):
            vec[VALUE, 0, r] = 0.0
    elif n == 0:
        for r in range(lanes):
            vec[VALUE, 0, r] = -vec[A, 0, r]
            vec[SLOPE, 0, r] = -vec[A, 0, r]
            sq[CURVE, 0, 0, r] = -vec[A, 0, r]
    elif n == 1:
        for r in range(lanes):
            _one_jump(vec, sq, r, absorbing, order)
    else:
        free = n if absorbing else n + 1
        if _set_nodes(vec, lanes, n, free) > CHUNK_WIDTH:
            for r in range(lanes):
                if vec[_TOP, 0, r] - vec[_LOW, 0, r] > CHUNK_WIDTH:
                    for m in range(n + 1):
                        vec[_NODES, m, r] = 0.0
        _close_nodes(vec, sq, lanes, n, free, order)
        _derive(vec, sq, lanes, n, free, order)
        for r in range(lanes):
            if vec[VALUE, 0, r] > NEARLY_CERTAIN or vec[_TOP, 0, r] - vec[_LOW, 0, r] > CHUNK_WIDTH:
                _one_row(work, r, n, absorbing, order)


@_compile
def log_probability(work: Any, lanes: int, n: int, absorbing: bool, order: int) -> None:
    """log pi of ``n`` jumps in each of the first lanes, with slope (order 1) and curvature (order 2).

    Slope and curvature are filled for positions 0..n, or 0..n-1 if the end is absorbing; of the curvature,
    m <= l. Hazards above HUGE are left there in the chain.
    """
    vec = work[0]
    free = n if absorbing else n + 1
    top = 0.0
    for m in range(free):
        for r in range(lanes):
            top = max(top, vec[A, m, r])
    if top <= _HUGE_A or n == 0:
        _all_lanes(work, lanes, n, absorbing, order)
        return
    for r in range(lanes):
        # log pi falls by log a of an end state that is left in an instant
        vec[_EXCESS, 0, r] = 0.0 if absorbing else max(0.0, vec[LOG_A, n, r] - HUGE)
        for m in range(free):
            vec[LOG_A, m, r] = min(vec[LOG_A, m, r], HUGE)
            vec[A, m, r] = min(vec[A, m, r], _HUGE_A)
    _all_lanes(work, lanes, n, absorbing, order)
    for r in range(lanes):
        vec[VALUE, 0, r] -= vec[_EXCESS, 0, r]


# The functions below take ``order`` from their caller even where it is always the same: a constant here makes the
# compiler specialise everything above for it, which takes a quarter of a minute for each.


@_compile
def log_probability_rows(eta: Any, dt: Any, start: Any, end: Any, order: int, slope: Any, curve: Any) -> Any:
    """log pi of each row (n,), its slope (n, K-1) and curvature (n, K-1, K-1) in eta (n, K-1); order 2."""
    n_rows, free = eta.shape
    work = new_work(free + 1)
    vec, sq, _, _, _ = work
    value = np.empty(n_rows)
    slope[:] = 0.0
    curve[:] = 0.0
    for row in range(n_rows):
        i, j = start[row], end[row]
        last = min(j, free - 1)
        for m in range(i, last + 1):
            vec[A, m - i, 0] = np.exp(eta[row, m]) * dt[row]
            vec[LOG_A, m - i, 0] = eta[row, m] + math.log(dt[row])
        log_probability(work, min(1, n_rows), j - i, j == free, order)
        value[row] = vec[VALUE, 0, 0]
        for m in range(i, last + 1):
            slope[row, m] = vec[SLOPE, m - i, 0]
            for s in range(m, last + 1):
                curve[row, m, s] = sq[CURVE, m - i, s - i, 0]
                curve[row, s, m] = curve[row, m, s]
    return value


@_compile
def probability_rows(a: Any, log_a: Any, start: Any, order: int, out: Any) -> None:
    """pi (n, K) of each row from its start state to every state; a = theta dt, its log (n, K-1); order 0."""
    n_rows, free = a.shape
    work = new_work(free + 1)
    vec = work[0]
    lo = 0
    while lo < n_rows:
        i = start[lo]
        hi = lo + 1
        while hi < min(n_rows, lo + LANES) and start[hi] == i:
            hi += 1
        for j in range(free + 1):
            for m in range(i, min(j, free - 1) + 1):
                for r in range(hi - lo):
                    vec[A, m - i, r] = a[lo + r, m]
                    vec[LOG_A, m - i, r] = log_a[lo + r, m]
            if j >= i:
                log_probability(work, hi - lo, j - i, j == free, order)
            for r in range(hi - lo):
                out[lo + r, j] = math.exp(vec[VALUE, 0, r]) if j >= i else 0.0
        lo = hi


# From here on rows have covariates: X is (p+1, n), one row a column of the design; beta is (K-1, p+1).


@_compile
def _set_chains(X: Any, beta: Any, dt: Any, log_dt: Any, i: int, last: int, lo: int, hi: int, vec: Any) -> None:
    """a = theta dt and its logarithm for states i..last of rows lo..hi-1."""
    for m in range(i, last + 1):
        for r in range(hi - lo):
            vec[LOG_A, m - i, r] = beta[m, 0] * X[0, lo + r]
        for u in range(1, X.shape[0]):
            b = beta[m, u]
            for r in range(hi - lo):
                vec[LOG_A, m - i, r] += b * X[u, lo + r]
        for r in range(hi - lo):
            vec[A, m - i, r] = np.exp(vec[LOG_A, m - i, r]) * dt[lo + r]
            vec[LOG_A, m - i, r] += log_dt[lo + r]


@_compile_sums
def _add_chunk(
    X: Any, weight: Any, i: int, last: int, lo: int, hi: int, order: int, vec: Any, sq: Any, gradient: Any,
    hessian: Any, wx: Any,
) -> None:  # fmt: skip
    """Chain rule: gradient += slope' X, and the upper triangle of the Hessian += X' diag(curve) X."""
    p1 = X.shape[0]
    lanes = hi - lo
    for u in range(p1):
        for r in range(lanes):
            wx[r] = weight[lo + r] * X[u, lo + r]
        for m in range(last - i + 1):
            total = 0.0
            for r in range(lanes):
                total += vec[SLOPE, m, r] * wx[r]
            gradient[m + i, u] += total
    for m in range(last - i + 1 if order > 1 else 0):
        for s in range(m, last - i + 1):
            for u in range(p1):
                for r in range(lanes):
                    wx[r] = weight[lo + r] * X[u, lo + r] * sq[CURVE, m, s, r]
                for v in range(u if s == m else 0, p1):
                    total = 0.0
                    for r in range(lanes):
                        total += wx[r] * X[v, lo + r]
                    hessian[(m + i) * p1 + u, (s + i) * p1 + v] += total


@_compile
def _chunk_end(start: Any, end: Any, lo: int, hi: int) -> int:
    """Where the chunk that begins at row lo ends: rows of one start and end, at most as many as lanes."""
    stop = lo + 1
    while stop < min(hi, lo + LANES) and start[stop] == start[lo] and end[stop] == end[lo]:
        stop += 1
    return stop


@_compile
def sum_block(
    X: Any, dt: Any, log_dt: Any, start: Any, end: Any, weight: Any, beta: Any, lo: int, hi: int, order: int,
    gradient: Any, hessian: Any,
) -> float:  # fmt: skip
    """Weighted sum over rows lo..hi-1; gradient (K-1, p+1) and the Hessian's upper triangle are added to."""
    free = beta.shape[0]
    work = new_work(free + 1)
    vec, sq, _, _, _ = work
    wx = np.empty(LANES)
    total = 0.0
    while lo < hi:
        i, j = start[lo], end[lo]
        last = min(j, free - 1)
        stop = _chunk_end(start, end, lo, hi)
        _set_chains(X, beta, dt, log_dt, i, last, lo, stop, vec)
        log_probability(work, stop - lo, j - i, j == free, order)
        for r in range(stop - lo):
            total += weight[lo + r] * vec[VALUE, 0, r]
        if order > 0:
            _add_chunk(X, weight, i, last, lo, stop, order, vec, sq, gradient, hessian, wx)
        lo = stop
    return total


@_compile
def rows_block(
    X: Any, dt: Any, log_dt: Any, start: Any, end: Any, beta: Any, lo: int, hi: int, order: int, value: Any,
    slope: Any,
) -> None:  # fmt: skip
    """Log-probability (n,) of rows lo..hi-1 and its slope (K-1, n) in the log hazards; order 1."""
    free = beta.shape[0]
    work = new_work(free + 1)
    vec = work[0]
    while lo < hi:
        i, j = start[lo], end[lo]
        last = min(j, free - 1)
        stop = _chunk_end(start, end, lo, hi)
        _set_chains(X, beta, dt, log_dt, i, last, lo, stop, vec)
        log_probability(work, stop - lo, j - i, j == free, order)
        for r in range(stop - lo):
            value[lo + r] = vec[VALUE, 0, r]
            for m in range(i, last + 1):
                slope[m, lo + r] = vec[SLOPE, m - i, r]
        lo = stop
