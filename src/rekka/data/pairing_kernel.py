"""Compiled part of pairing: one pass over the ordered visits gives each its verdict, follower and number."""

from __future__ import annotations

from typing import Any

from numba import types

from rekka.core.compiling import njit

KEEP, NOTHING_FOLLOWS, ONLY_VISIT, REPAIR, INTERVAL, UPWARD, GAP, BEFORE_COMPLETION, FIRST_MISSING = range(9)
NEVER = -(2**31)  # the day of a repair or a completion that is not known


def _given(kind: Any, dimensions: int = 1) -> Any:
    """An array that is only read: one signature for arrays that may be written and for those of polars."""
    return types.Array(kind, dimensions, "C", readonly=True)


_flags, _bytes, _days, _months = map(_given, (types.boolean, types.uint8, types.int32, types.float64))
_out = types.int32[::1]
_SIGNATURE = types.void(
    _given(types.uint32), _flags, _given(types.int16), _days, _days, _given(types.int32, 2), _bytes, _flags,
    types.int64, _months, types.int64, types.float64, _flags, types.int64, types.uint8[::1], _out, _out, _out,
)  # fmt: skip


@njit(_SIGNATURE, cache=True, nogil=True)
def judge_visits(
    order: Any,  # (n,) places of the visits, by member and moment
    starts: Any,  # (n,) whether a member starts there
    state: Any,
    day: Any,
    completed: Any,
    repairs: Any,  # (r, n) days
    missing: Any,  # code of the first covariate that is missing at a visit, 0 for none
    uncounted: Any,  # whether a visit lacks the traffic
    traffic: int,  # code of missing traffic
    months: Any,  # months at each day since ``day_0``
    day_0: int,
    max_gap: float,  # months
    restarts: Any,  # (3,) whether a history starts at an upward move, at a repair, at every pair that is not kept
    least: int,  # states by which a pair may improve and is kept
    code: Any,  # out: what becomes of each visit
    follower: Any,  # out: the member's next visit, -1 for none
    number: Any,  # out: from 1 in each history
    history: Any,  # out: from 1 in each member
) -> None:
    """First reason not to keep each pair of consecutive visits, in the order of the codes.

    Where a history ends at every pair that is not kept, improvements by ``least`` states are kept.
    """
    count = past = 0
    for place in range(order.size):
        i = order[place]
        if starts[place]:
            count, past = 0, 1
        count += 1
        number[i], history[i] = count, past
        if place + 1 == order.size or starts[place + 1]:
            code[i] = ONLY_VISIT if starts[place] else NOTHING_FOLLOWS
            follower[i] = -1
            continue
        j = order[place + 1]
        follower[i] = j
        verdict = KEEP
        for r in range(repairs.shape[0]):
            if day[i] < repairs[r, i] <= day[j] or day[i] < repairs[r, j] <= day[j]:
                verdict = REPAIR
        if verdict == KEEP:
            if day[j] <= day[i]:
                verdict = INTERVAL
            elif state[j] < state[i] - least:
                verdict = UPWARD
            elif months[day[j] - day_0] - months[day[i] - day_0] > max_gap:
                verdict = GAP
            elif completed[i] > day[i]:
                verdict = BEFORE_COMPLETION
            else:
                verdict = missing[i]
                if uncounted[j] and (verdict == KEEP or verdict > traffic):
                    verdict = traffic
        code[i] = verdict
        if (
            (verdict == UPWARD and restarts[0])
            or (verdict == REPAIR and restarts[1])
            or (verdict != KEEP and restarts[2])
        ):
            count, past = 0, past + 1
