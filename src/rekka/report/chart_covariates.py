"""How the hazards of a case go with each covariate: a panel for each, the others typical."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from rekka.report import chart_profiles
from rekka.report.chart_parts import Chart, make_panel, tell_name
from rekka.report.chart_years import stamp_model
from rekka.report.document import Covariate, ModelPart
from rekka.report.forecast_parts import ProfilePart
from rekka.report.numbers import show_figure, show_level
from rekka.report.palette import Palette
from rekka.report.views import FigureView, Panel
from rekka.report.words import Words, join_names, join_sentences, name_method

KEPT = ("value", "middle", "low", "high", "state")  # of a row: a page has thousands of them, without words
TIPS = (
    ("state", "N", "state", ""),
    ("value", "Q", "value", ",.4~r"),
    ("middle", "Q", "hazard", ".3~r"),
    ("low", "Q", "low", ".3~r"),
    ("high", "Q", "high", ".3~r"),
)


def draw_profiles(
    model: ModelPart, covariates: Sequence[Covariate], number: str, *, words: Words, palette: Palette
) -> FigureView | None:
    """A panel for each covariate of a case that varies; ``number`` is the case's."""
    found = model.forecast
    profiles = [] if found is None else [one for one in found.profiles if len(one.values) > 1]
    if found is None or not profiles:
        return None
    place = {"case": tell_name(model.case), "method": name_method(model.method, words)}
    units = {one.name: one.unit for one in covariates}
    banded = any(low is not None for one in profiles for row in one.hazard_low for low in row)
    caption = (
        words("figure.profiles.caption", **place),
        words("figure.profiles.bands", level=show_level(found.level)) if banded else "",
        "" if model.certified else words("figure.curve.uncertified"),
        "" if model.chosen else words("figure.curve.not_chosen", method=place["method"]),
    )
    return FigureView(
        name=f"profiles-{number}",
        title=words("figure.profiles.title", **place),
        caption=join_sentences(caption, words),
        panels=tuple(
            _make_panel(one, n, units.get(one.covariate), model, words=words, palette=palette)
            for n, one in enumerate(profiles, start=1)
        ),
        case=model.case,
    )


def _make_panel(
    one: ProfilePart, number: int, unit: str | None, model: ModelPart, *, words: Words, palette: Palette
) -> Panel:
    look: dict[str, Any] = {"words": words, "palette": palette}
    chart = stamp_model(profile(one, unit, **look), model, **look)
    return make_panel(f"profile-{number}", tell_name(one.covariate), _tell_profile(one, words), chart, palette)


def profile(one: ProfilePart, unit: str | None, *, words: Words, palette: Palette) -> Chart:
    """A line and a band for each state, over the values of one covariate."""
    names = ("values", "outside", "rug", "hazard", "hazard_low", "hazard_high")
    part = chart_profiles.ProfilePart(
        **{name: getattr(one, name) for name in names}, years=(), years_low=(), years_high=()
    )
    found = chart_profiles.hazard_profile(part, words=_find_words(one, unit, words), palette=palette)
    tip = [
        alt.Tooltip(f"{field}:{kind}", title=words(f"figure.tip.{name}"), format=form)
        for field, kind, name, form in TIPS
    ]
    rows = [{name: row[name] for name in KEPT if name in row} for row in found.rows]
    return replace(found, layers=(*found.layers[:-1], found.layers[-1].encode(tooltip=tip)), rows=rows)


def _find_words(one: ProfilePart, unit: str | None, words: Words) -> chart_profiles.ProfileWords:
    name, shown = tell_name(one.covariate), words.get(f"unit.{unit}", "") if unit else ""
    nothing = dict.fromkeys(("years", "hazard_title", "years_title", "hazard_alt", "years_alt"), "")
    return chart_profiles.ProfileWords(
        covariate=words("figure.profiles.unit", name=name, unit=shown) if shown else name,
        hazard=words("figure.axis.hazard"),
        state=words("figure.axis.state"),
        value=words("figure.tip.value"),
        interval=words("figure.tip.interval"),
        **nothing,
    )


def _tell_profile(one: ProfilePart, words: Words) -> str:
    """From the least to the largest of the training rows: how the hazard of leaving each state changes."""
    inside = [place for place, beyond in enumerate(one.outside) if not beyond]
    first, last = one.hazard[inside[0]], one.hazard[inside[-1]]
    items = (
        words("figure.profiles.item", state=state, first=show_figure(low), last=show_figure(high))
        for state, (low, high) in enumerate(zip(first, last, strict=True), start=1)
    )
    ends = {"low": show_figure(one.values[inside[0]]), "high": show_figure(one.values[inside[-1]])}
    return words("figure.profiles.alt", name=tell_name(one.covariate), items=join_names(items, words), **ends)
