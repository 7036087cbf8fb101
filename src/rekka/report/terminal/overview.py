"""The overview in a terminal: how many, when, how far to trust it, what to do; in the words of the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from rekka.core.language import say
from rekka.report.document import Document, FindingPart, NetworkPart
from rekka.report.overview import (
    LATER,
    SOON,
    Card,
    FirstMember,
    find_trust,
    list_components,
    make_overview,
    name_level,
    name_year,
)
from rekka.report.terminal.parts import print_line, print_numbered, print_plain, print_warning, quote
from rekka.report.terminal.tables import NOTHING, PLAIN, WORDS, print_texts, show
from rekka.report.text import show_count, show_range
from rekka.report.trust import CAUTION, DO_NOT_USE, GOOD

STYLES = {GOOD: "green", CAUTION: "yellow", DO_NOT_USE: "bold red"}
HEAD = 9  # characters of a line of a heading
MEMBERS = 5  # of those to inspect first; the page has ten, and members.csv all
RUN = " RUN"  # in the commands of a sentence
CARDS = {"now": 0, "soon": SOON, "later": LATER, "new": None}  # that are figures, and their years


def print_overview(
    console: Console,
    document: Document,
    page: Path | None = None,
    run: Path | None = None,
    *,
    members: bool = False,
    warnings: Sequence[str] = (),
) -> None:
    """Print headline, trust, counts, warnings, page, components, members to inspect first, and what to do.

    The members are in a table if that is asked for, else the first of them in a line.
    """
    made = make_overview(document, WORDS)
    console.print(f"[bold]{escape(_plain(made.headline))}[/]", highlight=False)
    for line in made.notes:
        print_plain(console, _plain(line))
    trust = find_trust(document, None)
    if trust is not None:
        console.print(f"[{STYLES[trust.level]}]{escape(_plain(made.trust))}[/]", highlight=False)
    _print_cards(console, document.network, made.cards)
    for line in _list_wider(document.network):
        print_plain(console, _plain(line))
    for line in (*made.missing, *_list_unconfirmed(document), *warnings):
        print_warning(console, _plain(line if run is None else line.replace(RUN, f" {quote(run)}")))
    if page is not None:
        print_line(console, WORDS("terminal.page", page=page))
    console.print()
    _print_components(console, document)
    if members:
        _print_members(console, made.first, document)
    print_numbered(console, WORDS("terminal.what_to_do"), [_plain(line) for line in made.actions])


def _print_cards(console: Console, network: NetworkPart | None, cards: Sequence[Card]) -> None:
    """Counts today and later with their intervals, and the years of a new member, each under its heading."""
    shown = [card for card in cards if card.key in CARDS]
    if shown:
        # the headline says until which rating: here the place is for figures
        heads = [WORDS("terminal.from_new") if card.key == "new" else card.label for card in shown]
        line = [_plain(card.value + _show_interval(network, CARDS[card.key])) for card in shown]
        print_texts(console, "", heads, [line], left=len(heads), close=True)


def _show_interval(network: NetworkPart | None, year: int | None) -> str:
    """The interval of the number itself after so many years."""
    years = () if network is None or not year else network.of(None)
    found = next((one for one in years if one.year == year), None)
    if found is None or found.predicted_low is None:
        return ""
    return f" ({show_range(found.predicted_low, found.predicted_high, show_count, WORDS)})"


def _list_wider(network: NetworkPart | None) -> Iterator[str]:
    """The wider intervals, where they were asked for."""
    if network is None:
        return
    years = {name_year(network, one.year, WORDS): one for one in network.of(None) if one.year in (SOON, LATER)}
    told = [
        f"{year}: {show_range(one.predicted_shock_low, one.predicted_shock_high, show_count, WORDS)}"
        for year, one in years.items()
        if one.predicted_shock_low is not None
    ]
    if told:
        yield WORDS.format(say("terminal.study.wider", years=told))


def _list_unconfirmed(document: Document) -> Iterator[str]:
    """Which choices were not confirmed: of a forecast with fitted models there are none."""
    if not document.study.planned or document.study.done < document.study.planned:
        return
    names = [one.case for one in document.answers if one.method is not None and not one.confirmed]
    if names:
        yield WORDS.format(say("terminal.study.unconfirmed", names=names))


def _print_components(console: Console, document: Document) -> None:
    """A line for each component."""
    used = {one.case: one.method for one in document.answers}
    rows, network = list_components(document, WORDS), document.network
    goals = {one.threshold for one in rows if one.threshold}
    goal = goals.pop() if len(goals) == 1 else WORDS("terminal.study.column.threshold")
    counted = any(one.members is not None for one in rows)
    heads = [WORDS("column.case"), WORDS("terminal.study.column.use")]
    if counted and network is not None:
        later = next((one.soon.year for one in rows if one.soon is not None), LATER)
        when = name_year(network, later, WORDS)
        heads += [WORDS("terminal.study.column.members"), WORDS("terminal.study.column.now", rating=goal)]
        heads += [WORDS("terminal.study.column.then", year=when) if network.base else when]
    heads += [WORDS("terminal.study.column.years"), WORDS("terminal.study.column.trust")]
    lines = []
    for one in rows:
        method = used.get(one.case)
        there = NOTHING if one.there is None else show_count(one.there)
        soon = NOTHING if one.soon is None else show_count(one.soon.reached)
        members = NOTHING if one.members is None else show_count(one.members)
        figures = [members, there, soon] if counted else []
        years = show(None if one.passage is None else one.passage.median, "years")
        trust = NOTHING if one.trust is None else name_level(one.trust.level, WORDS)
        use = method or WORDS("terminal.study.no_model")
        lines.append([one.case, use, *figures, _plain(years), trust])
    heads = [_wrap(head) for head in heads]
    print_texts(console, "", heads, lines, left=(0, 1, len(heads) - 1))


def _wrap(head: str) -> str:
    """A heading in lines that are no wider than its figures."""
    return "\n".join(textwrap.wrap(head, HEAD, break_long_words=False, break_on_hyphens=False))


def _print_members(console: Console, first: Sequence[FirstMember], document: Document) -> None:
    """Members to inspect first."""
    network = document.network
    if not first or network is None:
        return
    first = first[:MEMBERS]
    several = len(document.cases) > 1
    parts = any(one.member for one in first)
    named = [*(["member"] if parts else []), *(["case"] if several else [])]
    heads = [WORDS("column.bridge"), *(WORDS(f"column.{name}") for name in named), WORDS("column.state_now")]
    heads += [
        WORDS("column.seen"),
        WORDS("column.reached_in", years=network.soon),
        WORDS("terminal.study.column.year"),
    ]
    lines = []
    for one in first:
        texts = [one.bridge, *(str(getattr(one, name) or "") for name in named), one.rating]
        year = show(one.calendar, "year") if one.calendar is not None else show(one.median, "years")
        lines.append([*texts, one.seen or NOTHING, show(one.reached, "share"), _plain(year)])
    title = WORDS.format(say("terminal.study.first_title", n=len(first)))
    print_texts(console, title, heads, lines, left=len(named) + 3)


def count_findings(findings: Sequence[FindingPart]) -> str:
    """'1 issue (R611), 13 tips'."""
    issues = [one.code for one in findings if one.verdict == "issue"]
    tips = [one.code for one in findings if one.verdict == "tip"]
    told = [say("terminal.study.issues", n=len(issues), codes=issues)] if issues else []
    told += [say("terminal.study.tips", n=len(tips))] if tips else []
    return WORDS.join(told or [say("terminal.study.no_findings")], "comma")


def _plain(text: str) -> str:
    """A text with signs that any terminal can show."""
    return text.translate(PLAIN)
