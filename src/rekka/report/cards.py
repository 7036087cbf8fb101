"""The card of a member in words: its rating, when it is expected at the threshold, what drives it, remarks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from rekka.data.panel import ALL_CASES
from rekka.report.document import Document, MembersPart, NetworkPart
from rekka.report.text import Words, show_figure, show_share

SAME = 0.005  # of a speed: less is the same as a typical member's
DECIMAL, NEARLY = 0.1, 0.9  # below and above these shares a decimal is shown
SCRIPT = "page.script"


class MemberCard(NamedTuple):
    """Texts of the card of a member."""

    bridge: str
    case: str
    member: str
    lines: tuple[str, ...]
    drivers: tuple[str, ...]
    remarks: tuple[str, ...]


def make_card(document: Document, members: MembersPart, place: int, words: Words) -> MemberCard:
    """Make the card of the member at a place of the list."""
    network = document.network
    assert network is not None
    case = members.cases[members.case[place]]
    remarks = members.remark[place] if members.remark else ()
    return MemberCard(
        members.bridge[place],
        "" if case == ALL_CASES else case,
        (members.member[place] or "") if members.member else "",
        tuple(_describe(network, members, place, words)),
        tuple(_list_drivers(document, members, place, words)),
        tuple(words.format(members.remarks[number]) for number in remarks),
    )


def _describe(network: NetworkPart, members: MembersPart, place: int, words: Words) -> Iterator[str]:
    """Its rating, and when it is expected at the threshold."""
    threshold = members.threshold[members.case[place]]
    worse = network.ratings.phrase_or_worse(threshold, words)
    rating = network.ratings.phrase(members.state[place], words)
    tell, seen = partial(_tell, words), members.seen[place]
    yield tell("card_now", rating=rating, seen=seen) if seen else tell("card_now_alone", rating=rating)
    if members.state[place] >= threshold:
        yield tell("card_there", worse=worse)
        return
    soon, calendar, median = members.soon[place], members.calendar[place], members.median[place]
    if soon is not None:
        digits = 1 if not DECIMAL <= soon <= NEARLY else 0
        yield tell("card_soon", share=show_share(soon, digits), worse=worse, years=network.soon)
    if calendar is not None:
        yield tell("card_year", worse=worse, year=calendar)
    elif median is None:
        yield tell("card_never", worse=worse)
    else:
        yield tell("card_years", worse=worse, years=show_figure(median))


def _list_drivers(document: Document, members: MembersPart, place: int, words: Words) -> Iterator[str]:
    """Sentences on what makes it faster or slower than a typical member, the strongest first."""
    units = {one.name: one.unit for one in document.study.covariates}
    found = []
    for name, values, ratios in zip(members.covariates, members.values, members.ratios, strict=True):
        value, ratio = values[place], ratios[place]
        if value is None or not ratio:
            continue
        key = "card_same" if abs(ratio - 1) <= SAME else "card_faster" if ratio > 1 else "card_slower"
        unit = words.get(f"unit.{units.get(name)}", "")
        shown = value if isinstance(value, str) else f"{show_figure(value)} {unit}".strip()
        text = _tell(words, key, name=words.covariate(name), value=shown, ratio=show_figure(ratio))
        found.append((-abs(math.log(ratio)), text))
    yield from (text for _, text in sorted(found))
    frailty = members.frailty[place] if members.frailty else None
    if frailty:
        key = "card_frailty_more" if frailty >= 1 else "card_frailty_less"
        yield _tell(words, key, ratio=show_figure(frailty))


def _tell(words: Words, key: str, **values: object) -> str:
    return words(f"{SCRIPT}.{key}", **values)
