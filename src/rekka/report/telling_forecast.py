"""What the page says of the future of each case: how long it takes, what advances, what changes would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from rekka.model.clock import AGE_NAMES, START
from rekka.report.document import CasePart, Document, ModelPart
from rekka.report.forecast_parts import CaseForecast, EffectPart, PassagePart
from rekka.report.numbers import show_count, show_figure, show_level, show_range, show_years, show_years_difference
from rekka.report.table_forecast import show_change
from rekka.report.teller import Teller

SECTION = "section.forecast"
NOUNS = dict.fromkeys(AGE_NAMES, "age") | {
    "traffic_mean": "traffic",
    "bridge_length": "length",
    "bridge_width": "width",
    "bridge_area": "area",
}
TWICE = 2.0


@dataclass(frozen=True)
class FutureTold:
    """What the page says of a case's future; ``state`` is chosen, other or nothing; ``label`` goes with it."""

    state: str
    label: Markup
    warning: Markup | None
    lines: tuple[Markup, ...]
    effects: tuple[Markup, ...]


def tell_future(document: Document, case: CasePart, tell: Teller) -> FutureTold:
    """How long a typical member of a case takes, and what changes that; or why nothing is forecast."""
    model = next((one for one in document.models if one.case == case.case), None)
    if model is None or model.forecast is None:
        key = "no_number" if model is not None and model.coefficients else "no_model"
        line = tell.say(f"{SECTION}.{key}")
        return FutureTold("nothing", tell.say(f"{SECTION}.nothing"), None, (line,), ())
    found = model.forecast
    first = next((one for one in found.passages if one.start == 1), None)
    lines = (*_tell_passage(found, first, tell), *_tell_course(document, found, tell))
    return FutureTold(
        "chosen" if model.chosen and model.certified else "other",
        _label(model, found, first, tell),
        _warn(model, tell),
        lines,
        tuple(tell_effect(one, found, tell) for one in found.effects),
    )


def list_warnings(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What a reader must know before any figure of the section."""
    models = [one for one in document.models if one.forecast is not None and not one.certified]
    if not models:
        return ()
    return (tell.say(f"{SECTION}.uncertified", names=tell.join(tell.name(one.case) for one in models)),)


def _label(model: ModelPart, found: CaseForecast, first: PassagePart | None, tell: Teller) -> Markup:
    if not model.certified:
        return tell.say(f"{SECTION}.not_certified")
    if not model.chosen:
        return tell.say(f"{SECTION}.not_chosen")
    years = show_years(None if first is None else first.median)
    return tell.say(f"{SECTION}.label", years=years, state=found.threshold)


def _warn(model: ModelPart, tell: Teller) -> Markup | None:
    method = tell.method(model.method)
    if not model.chosen:
        return tell.say(f"{SECTION}.warning_unchosen", method=method)
    return None if model.certified else tell.say(f"{SECTION}.warning_uncertified", method=method)


def _tell_passage(found: CaseForecast, first: PassagePart | None, tell: Teller) -> Iterator[Markup]:
    """Years from state 1 until the threshold: the median with both intervals, and the mean."""
    if first is None:
        return
    places = {"state": found.threshold, "level": show_level(found.level), "years": show_years(first.median)}
    if first.median_low is None:
        yield tell.say(f"{SECTION}.median_alone", **places)
        return
    yield tell.say(
        f"{SECTION}.median",
        range=show_range(first.median_low, first.median_high, show_years, tell.words),
        **places,
    )
    yield tell.say(
        f"{SECTION}.member",
        range=show_range(first.predicted_low, first.predicted_high, show_years, tell.words),
        **places,
    )


def _tell_course(document: Document, found: CaseForecast, tell: Teller) -> Iterator[Markup]:
    """What advances with the years, and when it leaves the training rows."""
    if not found.advancing:
        yield tell.say(f"{SECTION}.fixed")
        return
    names = tell.join(tell.name(name) for name in found.advancing)
    yield tell.say(f"{SECTION}.advances", names=names)
    yield from _tell_clock(found, tell)
    first = found.extrapolated_from
    if first is not None:
        units = {one.name: one.unit for one in document.study.covariates}
        largest = (_tell_largest(name, value, units.get(name), tell) for name, value in found.seen.items())
        yield tell.say(f"{SECTION}.beyond", year=show_count(first), largest=tell.join(largest))


def _tell_clock(found: CaseForecast, tell: Teller) -> Iterator[Markup]:
    """Where in an interval the fit took the age, and how far behind that leaves it."""
    if found.clock == START:
        known = found.lag is not None
        yield tell.say(
            f"{SECTION}.clock_start" if known else f"{SECTION}.clock_unknown", lag=show_years(found.lag)
        )
    elif found.clock is not None:
        yield tell.say(f"{SECTION}.clock_middle")


def _tell_largest(name: str, value: float, unit: str | None, tell: Teller) -> Markup:
    shown = tell.words.get(f"unit.{unit}", "") if unit else ""
    key = "value" if shown else "value_alone"
    places = {"name": tell.name(name), "value": show_figure(value)} | ({"unit": shown} if shown else {})
    return tell.say(f"section.models.{key}", **places)


def tell_effect(one: EffectPart, found: CaseForecast, tell: Teller) -> Markup:
    """What a change does to the median years, as a sentence: shorter, longer, or no clear effect."""
    change = _name_change(one, tell)
    places = {
        "change": change,
        "state": found.threshold,
        "before": show_years(one.years_before),
        "after": show_years(one.years_after),
        "level": show_level(found.level),
    }
    by, low, high = one.difference, one.difference_low, one.difference_high
    if by is None or one.years_before in (None, float("inf")) or one.years_after in (None, float("inf")):
        return tell.say("effect.unknown", **places)
    if low is None or high is None:
        return tell.say("effect.alone", **places)
    if low <= 0 <= high:
        ends = show_range(low, high, show_years_difference, tell.words)
        return tell.say("effect.unclear", by=show_years_difference(by), range=ends, **places)
    near, far = sorted((abs(low), abs(high)))
    ends = show_range(near, far, show_years, tell.words)
    key = "shorter" if by < 0 else "longer"
    return tell.say(f"effect.{key}", by=show_years(abs(by)), range=ends, **places)


def _name_change(one: EffectPart, tell: Teller) -> Markup:
    """'10 more years of age', 'twice the traffic', 'load +5'."""
    noun = NOUNS.get(one.covariate)
    if noun is None or (one.times and one.amount != TWICE):
        change = show_change(one.amount, times=one.times)
        return tell.say("effect.change.other", name=tell.name(one.covariate), change=change)
    if one.times:
        return tell.say(f"effect.change.twice_{noun}")
    way = "more" if one.amount > 0 else "fewer"
    return tell.say(f"effect.change.{way}_{noun}", n=f"{abs(one.amount):,.10g}")
