"""Elements of a model of histories in words: errors of inspection, bridges that differ, small repairs, a trend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rekka.core.ratings import Ratings
from rekka.model.elements import COMMON, NEW
from rekka.model.history_inputs import DAY
from rekka.model.records import ElementEstimate, Records

LEVEL = 0.95
MOST_VARIANCE = 10.0  # of a frailty; an interval that goes beyond says that the rows do not determine it
Estimates = Mapping[str, ElementEstimate]


def describe_elements(records: Records, ratings: Ratings, *, certified: bool = True) -> list[str]:
    """Sentences on what a fit found, in the user's own ratings; without intervals where it is no maximum."""
    found = {one.name: one if certified else one._replace(low=math.nan, high=math.nan)
             for one in records.estimates(LEVEL)}  # fmt: skip
    parts = (_say_errors, _say_frailty, _say_improvements, _say_trend, _say_first)
    return [f"{told}." for say in parts for told in say(records, ratings, found)]


class Trend(NamedTuple):
    """Change of all hazards a year, as a share, until the year of the last training visit."""

    change: float
    low: float
    high: float
    until: int


def find_trend(records: Records, level: float) -> Trend | None:
    """The trend that all hazards share, where the model has one."""
    own = next((one for one in records.estimates(level) if one.name == "trend"), None)
    if own is None:
        return None
    change, low, high = (math.expm1(value) for value in (own.value, own.low, own.high))
    return Trend(change, low, high, _find_last_year(records))


def describe_factor(factor: float, low: float, high: float) -> str:
    """'deteriorates 1.8 times as fast as others of its kind (95 %: 1.3 to 2.6)'."""
    return (
        f"deteriorates {_show(factor)} times as fast as others of its kind (95 %: {_show(low)} to {_show(high)})"
    )


def name_groups(by: str | None) -> tuple[str, str]:
    """Name the groups that share a frailty: their plural, and how a column is named after them."""
    if by in (None, "bridge_id"):
        return "Bridges", "bridge"
    return ("Members", "member") if by == "member" else (f"Groups by {by}", str(by))


def _say_errors(records: Records, ratings: Ratings, found: Estimates) -> Iterator[str]:
    elements = records.elements
    if elements.pattern is None:
        return
    if elements.common_errors:
        better, worse = (found[f"errors: rated one {way}"] for way in ("better", "worse"))
        yield f"Inspectors rate one better in {_share(better)} of visits and one worse in {_share(worse)}"
        return
    for state in range(elements.n_states):
        own = [o for s, o in elements.errors_at if s == state]
        shares = [
            f"{ratings.name(o + 1)} in {_share(found[f'errors: state {state + 1} rated {o + 1}'])}" for o in own
        ]
        if shares:
            yield f"True condition {ratings.name(state + 1)}: inspectors rate {', '.join(shares)} of visits"


def _say_frailty(records: Records, _: Ratings, found: Estimates) -> Iterator[str]:
    if not records.elements.frailty:
        return
    one, (who, _column) = found["frailty: variance"], name_groups(records.by)
    if one.value == 0:
        yield f"{who} do not differ beyond their covariates: the variance of the frailty is 0"
    else:
        told = f"variance of the frailty {_show(one.value)}{_interval(one.low, one.high)}"
        open_ended = one.high > MOST_VARIANCE
        yield f"{who} {'may differ: the rows hardly determine it, ' if open_ended else 'differ: '}{told}"


def _say_improvements(records: Records, ratings: Ratings, found: Estimates) -> Iterator[str]:
    elements = records.elements
    if elements.improvements is None:
        return
    head = "Small repairs without a record, by one rating"
    if elements.improvements == COMMON:
        yield f"{head}: {_share(found['improvements'])} of members a year"
        return
    shares = [
        f"{ratings.name(state)}: {_share(found[f'improvements: state {state}'])}"
        for state in range(2, elements.n_states + 1)
    ]
    yield f"{head}, members a year of rating {'; '.join(shares)}"


def _say_trend(records: Records, ratings: Ratings, found: Estimates) -> Iterator[str]:
    elements = records.elements
    if elements.trend is None:
        return
    until = f"until {_find_last_year(records)}"
    if elements.trend == COMMON:
        yield f"Hazards {_change(found['trend'])} {until}; forecasts keep those of then"
        return
    for state in range(1, elements.n_states):
        yield f"Hazards of leaving rating {ratings.name(state)} {_change(found[f'trend: state {state}'])} {until}"


def _say_first(records: Records, ratings: Ratings, _: Estimates) -> Iterator[str]:
    if records.elements.first == NEW:
        yield f"Members are followed from rating {ratings.name(1)} at age 0"


def _find_last_year(records: Records) -> int:
    return math.floor(records.last + DAY)


def _change(one: ElementEstimate) -> str:
    """'fell by 8 % a year (95 %: 6 to 10)'; a change whose interval includes 0 is said to be open."""
    value, low, high = (100 * math.expm1(part) for part in (one.value, one.low, one.high))
    if low <= 0 <= high:
        ends = f"{_show(low)} to {_show(high)}"
        return f"changed by {_show(value)} % a year (95 %: {ends}, so that none is possible)"
    span = sorted(map(abs, (low, high))) if low == low else [low, high]
    return f"{'fell' if value < 0 else 'rose'} by {_show(abs(value))} % a year{_interval(*span)}"


def _share(one: ElementEstimate) -> str:
    """'4.1 % (95 %: 3.2 to 5.2)'; a probability that is 0 at the maximum has no interval."""
    return f"{_show(100 * one.value)} %{_interval(100 * one.low, 100 * one.high)}"


def _interval(low: float, high: float) -> str:
    return "" if low != low or high != high else f" (95 %: {_show(low)} to {_show(high)})"


def _show(value: float) -> str:
    """A number with two digits, 4.0 and 25 and 0.42; below 0.01 with one, and never with a power of ten."""
    if value == 0 or abs(value) < 1e-3:
        return f"{value:.0f}" if value == 0 else "less than 0.001"
    if abs(value) > 1000:
        return "more than 1,000"
    places = 1 - math.floor(math.log10(abs(float(f"{value:.1e}"))))
    return f"{value:.{min(max(places, 0), 3)}f}"
