"""What the page says of the network: who was forecast from when, how many will need something done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from rekka.report.document import Document
from rekka.report.forecast_parts import NetworkPart, NetworkYear
from rekka.report.numbers import show_count, show_level, show_range
from rekka.report.teller import Teller

SECTION = "section.network"
COMMAND = Markup("<code>rekka forecast RUN INVENTORY</code>")
TOLD = (10, 30)  # years that are told in sentences


@dataclass(frozen=True)
class NetworkTold:
    """What the page says of the network; ``warnings`` stand before all else."""

    warnings: tuple[Markup, ...]
    lines: tuple[Markup, ...]
    notes: tuple[str, ...]


def tell_network(document: Document, tell: Teller) -> NetworkTold:
    """How the network goes on; or the command that forecasts one."""
    network = document.network
    if network is None:
        why = () if document.no_network is None else (document.no_network,)
        return NetworkTold((), (tell.say(f"{SECTION}.none", command=COMMAND),), why)
    return NetworkTold(tuple(_warn(network, tell)), tuple(_tell(network, tell)), network.notes)


def _warn(network: NetworkPart, tell: Teller) -> Iterator[Markup]:
    if not network.certified:
        yield tell.say(f"{SECTION}.uncertified")
    if network.unchosen:
        yield tell.say(f"{SECTION}.unchosen", names=tell.join(map(tell.name, network.unchosen)))
    if network.left_out:
        yield tell.say(f"{SECTION}.left_out", names=tell.join(map(tell.name, network.left_out)))


def _tell(network: NetworkPart, tell: Teller) -> Iterator[Markup]:
    members = tell.count("members", network.members)
    if network.kind == "study":
        yield tell.say(f"{SECTION}.study", members=members, command=COMMAND)
    else:
        yield tell.say(f"{SECTION}.inventory", members=members, name=tell.name(network.name))
    yield tell.say(f"{SECTION}.undated") if network.base is None else tell.say(f"{SECTION}.base", day=network.base)
    years = network.of(None)
    for year in years:
        if year.year in (0, *TOLD, network.horizon):
            yield _tell_year(network, year, tell)
    yield tell.say(f"{SECTION}.repairs")
    if network.outside:
        yield tell.say(f"{SECTION}.outside", members=tell.count("members", network.outside))
    aside = sum(one.count for one in network.aside if one.kind == "set aside" and one.what == "members")
    if aside:
        yield tell.say(f"{SECTION}.aside", members=tell.count("members", aside))


def _tell_year(network: NetworkPart, one: NetworkYear, tell: Teller) -> Markup:
    """How many are in the threshold or worse: expected, and between which numbers."""
    state = tell.words(f"{SECTION}.thresholds") if one.threshold is None else show_count(one.threshold)
    places = {"state": state, "number": show_count(one.reached), "years": show_count(one.year)}
    if one.year == 0:
        return tell.say(f"{SECTION}.now", **places)
    if one.low is None:
        return tell.say(f"{SECTION}.then_alone", **places)
    return tell.say(
        f"{SECTION}.then",
        level=show_level(network.level),
        expected=show_range(one.low, one.high, show_count, tell.words),
        range=show_range(one.predicted_low, one.predicted_high, show_count, tell.words),
        **places,
    )
