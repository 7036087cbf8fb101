"""The overview of a report: how many, when, which members first, how far to trust it, what to do.

Page, terminal and workbook show the same sentences. With a case, all of it is of that component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import islice
from typing import NamedTuple

from rekka.core.language import say
from rekka.data.panel import ALL_CASES
from rekka.forecast.first_passage import LONGEST
from rekka.report.document import (
    Document,
    MembersPart,
    NetworkPart,
    NetworkYear,
    PassagePart,
    RiskPart,
    TrendPart,
    TrustPart,
)
from rekka.report.text import Words, show_count, show_range, show_share, show_years
from rekka.report.trust import DO_NOT_USE, GOOD

SOON, LATER = 5, 10  # years of the cards
FIRST = 10  # members to inspect first
FEW_YEARS = 10.0  # below which a decimal of years is shown
FEW_PERCENT = 0.1  # a year, below which a decimal of percent is shown
NAMED = 3  # components named in a sentence
NEXT, THERE, APART = 0, 1, 2  # tabs of members


class Card(NamedTuple):
    """A figure of the first screen: now, soon, later, new (years of a new member) or trust."""

    key: str
    label: str
    value: str
    detail: str
    level: str = ""  # of the card on trust


class ComponentRow(NamedTuple):
    """A component in the overview; None where it is not in the network, or has no forecast."""

    case: str
    members: int | None
    there: int | None
    soon: NetworkYear | None  # ten years on, or at the end of a shorter forecast
    passage: PassagePart | None  # of a new member
    threshold: str
    trust: TrustPart | None


class FirstMember(NamedTuple):
    """A member to inspect first; ``reached`` is the probability after ``NetworkPart.soon`` years."""

    bridge: str
    case: str
    member: str | None
    rating: str
    seen: str | None
    reached: float | None
    median: float | None
    calendar: int | None
    remark: str


class Overview(NamedTuple):
    """Texts of the first screen, complete and in one language."""

    facts: tuple[str, ...]
    headline: str
    notes: tuple[str, ...]  # on the forecast, under the headline
    cards: tuple[Card, ...]
    trust: str
    missing: tuple[str, ...]
    actions: tuple[str, ...]
    first: tuple[FirstMember, ...]


def make_overview(document: Document, words: Words, case: str | None = None) -> Overview:
    """Make the overview of all components, or of one."""
    network, trust = document.network, find_trust(document, case)
    years = () if network is None else network.of(case)
    told = "" if trust is None else describe_trust(trust, words)
    missing = tuple(_list_missing(document, case, words))
    if network is None or not years:
        facts = (words.format(say("overview.fact.components", n=len(document.cases))),)
        cards = _list_new_card(document, case, words) + _list_trust_card(trust, words)
        actions = tuple(_advise_trust(document, trust, words))
        return Overview(facts, _say_without(document, case, words), (), cards, told, missing, actions, ())
    first = tuple(_list_first(network, case, words))
    return Overview(
        tuple(_list_facts(network, case, years[0], words)),
        _say_headline(network, years, words),
        tuple(_list_trends(document, case, words)),
        (
            *_list_year_cards(network, years, words),
            *_list_new_card(document, case, words),
            *_list_trust_card(trust, words),
        ),
        told,
        missing,
        tuple(_list_actions(document, network, case, years[0], trust, words)),
        first,
    )


def list_components(document: Document, words: Words) -> tuple[ComponentRow, ...]:
    """Each component with its members, counts, years and trust."""
    rows = []
    for one in document.cases:
        years = () if document.network is None else document.network.of(one.case)
        later = _find_year(years, LATER)
        state = years[0].threshold if years else None
        passage = find_passage(document, one.case)
        model = next((model for model in document.models if model.case == one.case), None)
        if state is None and model is not None and model.forecast is not None:
            state = model.forecast.threshold
        rows.append(
            ComponentRow(
                one.case,
                years[0].members if years else None,
                count_there(document.network, years[0]) if document.network and years else None,
                later,
                passage,
                "" if state is None else document.ratings.rated(state, words),
                find_trust(document, one.case),
            )
        )
    return tuple(rows)


def find_trust(document: Document, case: str | None) -> TrustPart | None:
    """The verdict on a component, or on all together."""
    return next((one for one in document.trust if one.case == case), None)


def describe_trust(part: TrustPart, words: Words) -> str:
    """'Caution: the test of fit rejects the model.'."""
    return words("trust.sentence", level=words(f"trust.word.{part.level}"), reason=words.format(part.reason))


def describe_reasons(part: TrustPart, words: Words) -> tuple[str, ...]:
    """All reasons, the one that decided first, each a sentence."""
    return tuple(words("trust.alone", reason=words.format(one)) for one in (part.reason, *part.others))


def name_level(level: str, words: Words) -> str:
    """'GOOD', 'CAUTION', 'DO NOT USE'."""
    return words(f"trust.level.{level}")


def find_passage(document: Document, case: str | None) -> PassagePart | None:
    """Years of a new member of a component until the threshold."""
    model = next((one for one in document.models if one.case == case), None)
    return None if model is None or model.forecast is None or not model.chosen else model.forecast.passage_of_new


def name_year(network: NetworkPart, years: int, words: Words) -> str:
    """The calendar year so many years on: '2031'; without dates 'in 5 years'."""
    if network.base is None:
        return words("overview.in_years", years=years) if years else words("overview.now")
    return str(date.fromisoformat(network.base).year + years)


def count_there(network: NetworkPart, now: NetworkYear) -> int:
    """Members in the threshold or worse when last seen."""
    return network.there if now.case is None else network.there_by_case.get(now.case, round(now.reached))


def name_threshold(network: NetworkPart, year: NetworkYear, words: Words) -> str:
    """'d or worse', 'below 70'; where components have several thresholds, all of them."""
    name = partial(network.ratings.rated, words=words)
    if year.threshold is not None:
        return name(year.threshold)
    known = sorted({one.threshold for one in network.years if one.threshold is not None})
    return words("overview.thresholds", ratings=words.join(map(name, known), "comma"))


def show_whole_years(value: float | None) -> str:
    """Years without a decimal, but for a few."""
    return show_years(value) if value is None or not FEW_YEARS <= value <= LONGEST else show_count(value)


def _find_year(years: Sequence[NetworkYear], number: int) -> NetworkYear | None:
    """The year so many years on, or the last of a shorter forecast."""
    return next((one for one in years if one.year == number), years[-1] if years else None)


def _say_headline(network: NetworkPart, years: Sequence[NetworkYear], words: Words) -> str:
    now, later = years[0], _find_year(years, LATER)
    assert later is not None
    told = words(
        "overview.headline" if network.base else "overview.headline_undated",
        repairs=words(f"repairs.{network.repairs}_first"),
        number=show_count(later.reached),
        members=show_count(now.members),
        rating=name_threshold(network, now, words),
        year=name_year(network, later.year, words),
        years=later.year,
        now=show_count(count_there(network, now)),
    )
    if later.unimproved is not None:
        without = words("overview.unimproved", number=show_count(later.unimproved))
        told = words.join((told, without))
    if now.case is not None or network.bridges_later is None or network.bridges == now.members:
        return told
    bridges = words(
        "overview.bridges",
        number=show_count(network.bridges_later),
        now=show_count(network.bridges_there),
        bridges=show_count(network.bridges),
    )
    return words.join((told, bridges))


def _list_trends(document: Document, case: str | None, words: Words) -> Iterator[str]:
    """The trend of the hazards until the forecast begins, of a component or of all that have one."""
    found = {one.case: _say_trend(one.trend, words) for one in document.models if one.trend is not None}
    if len(document.cases) == 1 or case is not None:
        yield from (words("overview.trend.one", what=what) for name, what in found.items() if case in (None, name))
    elif found:
        parts = (words("overview.trend.part", name=name, what=what) for name, what in found.items())
        yield words("overview.trend.each", parts=words.join(parts, "comma", NAMED))


def _say_trend(trend: TrendPart, words: Words) -> str:
    """'fell by 20% a year until 2013'; of an interval that includes 0, that there may be none."""
    change = trend.change or 0.0
    told = words(
        f"overview.trend.{'fell' if change < 0 else 'rose'}",
        change=show_share(abs(change), 0 if abs(change) >= FEW_PERCENT else 1),
        until=trend.until,
    )
    if trend.low is None or trend.high is None or not trend.low <= 0 <= trend.high:
        return told
    return words("overview.trend.open", told=told)


def _say_without(document: Document, case: str | None, words: Words) -> str:
    """The headline where nothing is forecast: how many components have a model."""
    answers = [one for one in document.answers if case in (None, one.case)]
    chosen = sum(one.method is not None for one in answers)
    return words("overview.headline_without", n=chosen, components=len(answers))


def _list_facts(network: NetworkPart, case: str | None, now: NetworkYear, words: Words) -> Iterator[str]:
    bridges = network.bridges if case is None and network.bridges != now.members else None
    key = "overview.fact.members" if bridges is None else "overview.fact.members_of_bridges"
    yield words(key, members=show_count(now.members), bridges=show_count(bridges))
    excluded = sum(one.count for one in network.aside if one.kind == "set aside" and one.what == "members")
    if excluded and case is None:
        yield words("overview.fact.excluded", members=show_count(excluded))
    if network.first_seen and network.last_seen:
        yield words("overview.fact.inspected", first=network.first_seen[:4], last=network.last_seen[:4])
    names = [network.ratings.name(state, words) for state in (1, len(now.expected))]
    yield words("overview.fact.ratings", first=names[0], last=names[1])


def _list_year_cards(network: NetworkPart, years: Sequence[NetworkYear], words: Words) -> Iterator[Card]:
    now = years[0]
    place = {"members": show_count(now.members), "rating": name_threshold(network, now, words)}
    there = count_there(network, now)
    share = show_share(there / now.members if now.members else None)
    kind = "share" if network.base is None else "share_today"
    detail = words(f"overview.card.{kind}", share=share, today=show_count(now.reached), **place)
    yield Card("now", words("overview.card.now"), show_count(there), detail)
    for key, number in (("soon", SOON), ("later", LATER)):
        found = next((one for one in years if one.year == number), None)
        if found is None:
            continue
        interval = show_range(found.predicted_low, found.predicted_high, show_count, words)
        kind = "alone" if found.predicted_low is None else "interval"
        share = show_share(found.reached / now.members if now.members else None)
        detail = words(f"overview.card.{kind}", interval=interval, share=share, **place)
        yield Card(key, name_year(network, number, words), show_count(found.reached), detail)


def _list_new_card(document: Document, case: str | None, words: Words) -> tuple[Card, ...]:
    """Years of a new member until the threshold; of several components the span of their medians."""
    names = [one.case for one in document.cases if case in (None, one.case)]
    found = {name: one for name in names if (one := find_passage(document, name)) and one.median is not None}
    if not found:
        return ()
    ordered = sorted(found, key=lambda name: found[name].median or 0.0)
    first, last = found[ordered[0]], found[ordered[-1]]
    goals = {one.forecast.threshold for one in document.models if one.forecast is not None and one.case in found}
    rating = document.ratings.rated(goals.pop(), words) if len(goals) == 1 else None
    label = words("overview.card.new_to_threshold" if rating is None else "overview.card.new", rating=rating)
    if len(found) == 1:
        value = words("overview.card.years", years=show_whole_years(first.median))
        ends = show_range(first.median_low, first.median_high, show_whole_years, words)
        kind = "median_alone" if first.median_low is None else "median"
        return (Card("new", label, value, words(f"overview.card.{kind}", interval=ends)),)
    value = words("overview.card.years", years=show_range(first.median, last.median, show_whole_years, words))
    return (Card("new", label, value, words("overview.card.medians", first=ordered[0], last=ordered[-1])),)


def _list_trust_card(trust: TrustPart | None, words: Words) -> tuple[Card, ...]:
    if trust is None:
        return ()
    why = words("trust.alone", reason=words.format(trust.reason))
    return (Card("trust", words("overview.card.trust"), name_level(trust.level, words), why, trust.level),)


def _list_missing(document: Document, case: str | None, words: Words) -> Iterator[str]:
    """Things that the first screen lacks, and what adds them."""
    network, study = document.network, document.study
    if study.done < study.planned or study.choices_done < study.choices_planned:
        yield words("overview.missing.unfinished", done=study.done, planned=study.planned)
    if network is None:
        yield words("overview.missing.network")
        if document.no_network is not None:
            yield (
                words.format(document.no_network) if isinstance(document.no_network, dict) else document.no_network
            )
        return
    if not network.certified:
        yield words("overview.missing.certified")
    if network.base is None:
        yield words("overview.missing.dates")
    without = [name for name in network.left_out if case in (None, name)]
    if without:
        names = words.join(without, "comma", NAMED)
        yield words("overview.missing.left_out", names=names)
    if network.unchosen and case is None:
        yield words("overview.missing.unchosen", names=words.join(network.unchosen, "comma", NAMED))
    if network.kind == "study":
        yield words("overview.missing.inventory")
        if document.no_network is not None:
            yield document.no_network


def _list_first(network: NetworkPart, case: str | None, words: Words) -> Iterator[FirstMember]:
    """Members that will be at the threshold next, by the year expected: one of each component of a bridge."""
    if network.every is None:
        risks = {(one.bridge, one.case): one for one in reversed(network.risks) if case in (None, one.case)}
        yield from (_describe_risk(one, network, words) for one in islice(reversed(risks.values()), FIRST))
        return
    every = network.every
    wanted = None if case is None else every.cases.index(case) if case in every.cases else -1
    found: dict[tuple[str, int], int] = {}
    for place, (tab, own) in enumerate(zip(every.tab, every.case, strict=True)):
        if tab == NEXT and wanted in (None, own):
            found.setdefault((every.bridge[place], own), place)
        if len(found) == FIRST:
            break
    yield from (_describe_member(every, place, network, words) for place in found.values())


def _describe_risk(one: RiskPart, network: NetworkPart, words: Words) -> FirstMember:
    rating = network.ratings.name(one.state, words)
    return FirstMember(
        one.bridge,
        one.case,
        one.member,
        rating,
        one.seen,
        one.reached,
        one.median,
        one.calendar,
        words.reword(one.remark or "") or one.remark or "",
    )


def _describe_member(every: MembersPart, place: int, network: NetworkPart, words: Words) -> FirstMember:
    remarks = (every.remarks[number] for number in (every.remark[place] if every.remark else ()))
    return FirstMember(
        every.bridge[place],
        every.cases[every.case[place]],
        every.member[place] if every.member else None,
        network.ratings.name(every.state[place], words),
        every.seen[place],
        every.soon[place],
        every.median[place],
        every.calendar[place],
        words.join(map(words.format, remarks), "semicolon"),
    )


def _list_actions(
    document: Document,
    network: NetworkPart,
    case: str | None,
    now: NetworkYear,
    trust: TrustPart | None,
    words: Words,
) -> Iterator[str]:
    """Next steps, the most urgent first."""
    rating, there = name_threshold(network, now, words), count_there(network, now)
    if there:
        yield words.format(say("overview.do.there", n=there, rating=rating))
    first = list(_list_first(network, case, words))
    if first:
        kind = "first" if first[0].calendar is not None else "first_undated"
        named = dict.fromkeys(_name_first(one, words) for one in first)  # each component of a bridge once
        yield words(f"overview.do.{kind}", members=words.join(islice(named, NAMED), "comma"), rating=rating)
    unseen = network.unseen if case is None else 0
    if unseen:
        yield words.format(say("overview.do.unseen", n=unseen))
    yield from _advise_trust(document, trust, words)
    advised = trust is not None and trust.reason.get("why", trust.reason)["say"] == "trust.reason.not_tested"
    if document.study.planned and network.base is not None and not document.backtests and not advised:
        yield words("overview.do.test")


def _name_first(one: FirstMember, words: Words) -> str:
    """'B-00378 Pier PI-01 (2025)'."""
    when = str(one.calendar) if one.calendar is not None else show_years(one.median)
    names = (one.bridge, None if one.case == ALL_CASES else one.case, one.member)
    return words("overview.who", name=" ".join(filter(None, names)), when=when)


def _advise_trust(document: Document, trust: TrustPart | None, words: Words) -> Iterator[str]:
    """Advice on the reason that decided; where the model has elements of histories, they need not be tried."""
    if trust is None or trust.level == GOOD:
        return
    said = trust.reason.get("why", trust.reason)
    key = str(said["say"]).rpartition(".")[2]
    name = trust.reason.get("name")
    case = trust.case if name is None else name
    extended = any(one.elements for one in document.models if case in (None, one.case))
    names = [f"trust.do.{key}{end}" for end in (("_extended", "") if extended else ("",))]
    told = next((words(one) for one in names if one in words.texts), "")
    if told:
        yield f"{told[0].upper()}{told[1:]}" if name is None else words("trust.do_in", name=name, what=told)
    elif trust.level == DO_NOT_USE:
        yield words("trust.do.anything")
