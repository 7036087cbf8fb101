"""Charts of forecasts: a typical member over the years, years until the threshold, the network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rekka.report.charts.base import (
    CASE_WIDTH,
    HEIGHT,
    INNER_WIDTH,
    ROW,
    Band,
    Chart,
    Rows,
    Spec,
    Theme,
    case_axis,
    category,
    datum,
    dim,
    draw_bands,
    draw_hover,
    draw_line,
    isolate_name,
    layer,
    legend,
    list_caveats,
    make_figure,
    number_axis,
    place_model,
    quantity,
    shade,
    shorten,
    shorten_ends,
    tips,
    year_axis,
)
from rekka.report.document import CaseForecast, Document, ModelPart, NetworkPart, NetworkYear, PassagePart
from rekka.report.text import (
    Words,
    join_names,
    join_sentences,
    show_count,
    show_level,
    show_number,
    show_range,
    show_share,
    show_years,
)
from rekka.report.views import FigureView

HALF = 0.5
MOST = 0.999999  # of what is not all, in the data of a chart
FARTHEST = 100.0  # years: what is beyond them ends in an arrow
NARROWEST = 20.0  # years of an axis at least
BAR, INTERVAL = 11, 5  # pixels of the bars of what will be and of the parameters
SHARE = (  # as show_share does it, in the words of Vega
    "datum['{0}'] > 0 && datum['{0}'] < 0.0005 ? '<0.1%' : "
    "datum['{0}'] < 1 && datum['{0}'] >= 0.9995 ? '>99.9%' : format(datum['{0}'], '.1%')"
)
# 8,000 as 8k: there is no room for more
THOUSANDS = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + 'k' : format(datum.value, ',')"

LEGEND_LETTERS = 48  # in a line of a legend
NEAR = 0.05  # a mean that is so near to a rating is called by it
Passages = dict[str | int, PassagePart]  # years until the threshold by state now, or by case

show_mean = partial(show_number, digits=2)
show_tenth = partial(show_share, digits=1)


# A typical member


def draw_curve(model: ModelPart, number: str, theme: Theme) -> FigureView | None:
    """The mean state beside the probability of each state; ``number`` is the case's."""
    found, words = model.forecast, theme.words
    if found is None:
        return None
    place = place_model(model, words) | {"first": theme.ratings.phrase(1, words)}
    message = _describe_mean(found, theme)
    shares = _describe_shares(found, theme)
    panels = (
        ("mean", words("figure.curve.panel_mean"), message, _mean_states(found, theme)),
        ("shares", words("figure.curve.panel_shares"), shares, _state_shares(found, theme)),
    )
    caption = (
        words("figure.curve.caption", **place),
        _describe_ageing(found, words),
        words("figure.curve.bands", level=show_level(found.level)) if found.has_band else "",
        list_caveats(model, words),
        message,
    )
    return make_figure("curve", panels, caption, theme, place, name=f"curve-{number}", model=model)


def draw_reach(model: ModelPart, number: str, theme: Theme) -> FigureView | None:
    """The probability of the threshold or worse by year, beside the years until it from each state."""
    found, words = model.forecast, theme.words
    if found is None:
        return None
    ratings = theme.ratings
    worse = ratings.phrase_or_worse(found.threshold, words)
    place = place_model(model, words) | {"rating": worse, "first": ratings.phrase(1, words)}
    passages: Passages = {one.start: one for one in found.passages}
    message = words(
        "figure.reach.alt_chance",
        years=f"{found.years[-1]:g}",
        share=show_share(found.reached[-1]),
        rating=worse,
    )
    named = {ratings.phrase(one.start, words): one for one in found.passages}
    until = _describe_passages(named, "figure.reach.from_state", worse, words)
    bars = _years_until(passages, "state", HEIGHT, found.level, theme)
    panels = (
        ("chance", words("figure.reach.panel_chance", **place), message, _reach(found, theme)),
        ("until", words("figure.reach.panel_until", **place), until, bars),
    )
    caption = (
        words("figure.reach.caption", **place),
        _describe_ageing(found, words),
        words("figure.reach.bands", level=show_level(found.level)) if found.has_band else "",
        _explain_arrows(passages, words),
        list_caveats(model, words),
        message,
    )
    return make_figure("reach", panels, caption, theme, place, name=f"reach-{number}", model=model)


def draw_reaching(document: Document, theme: Theme) -> FigureView | None:
    """Years until the threshold from state 1, case beside case: of the models that were chosen."""
    words, level = theme.words, document.study.confidence
    models = [(one, one.forecast) for one in document.models if one.chosen and one.forecast is not None]
    if not models:
        return None
    passages: Passages = {one.case: found.passages[0] for one, found in models}
    certified = all(one.certified for one, _ in models)
    chart = _years_until(passages, "case", len(passages) * ROW, level, theme)
    thresholds = sorted({found.threshold for _, found in models})
    worse = words.join((theme.ratings.phrase_or_worse(one, words) for one in thresholds), "comma")
    message = _describe_passages(passages, "figure.reach.of_case", worse, words)
    panels = [("reaching", words("figure.reaching.title"), message, chart)]
    caption = (
        words("figure.reaching.caption", ratings=worse),
        words("figure.reaching.bands", level=show_level(level))
        if certified
        else words("figure.curve.uncertified"),
        _explain_arrows(passages, words),
    )
    return make_figure("reaching", panels, caption, theme, certified=certified)


def _mean_states(found: CaseForecast, theme: Theme) -> Chart:
    """The mean state, the best at the top, within what is known of it, within the states of one member.

    A state is a strip as high as the distance between two, so that one who is surely in it has a place there.
    """
    words, ratings, states = theme.words, theme.ratings, len(found.probability[0])
    axis: Spec = {"values": list(range(1, states + 1)), "format": "d"} | theme.name_states()
    y = {
        "scale": {"domain": [0.5, states + 0.5], "reverse": True, "nice": False},
        "axis": number_axis(words("figure.axis.mean_state"), theme.letters, **axis),
    }
    mean, member = (words(f"figure.band.{name}", level=show_level(found.level)) for name in ("mean", "member"))
    bands = (
        Band("low", "high", mean, {"opacity": 0.9}),
        Band("best", "worst", member, {"interpolate": "step-after", "opacity": 0.75}),
    )
    rows = []
    ends = (found.expected_low, found.expected_high, found.predicted_low, found.predicted_high)
    for year, middle, low, high, best, worst in zip(found.years, found.expected, *ends, strict=True):
        row: dict[str, Any] = {"year": shorten(year), "mean": shorten(middle)}
        row["mean_text"] = show_mean(ratings.mean(middle))
        if low is not None and high is not None and best is not None and worst is not None:
            row |= shorten_ends(low, high) | {"best": best - HALF, "worst": worst + HALF}
            row["interval"] = show_range(ratings.mean(low), ratings.mean(high), show_mean, words)
            row["member"] = _name_span(best, worst, theme)
        rows.append(row)
    return draw_line(
        "mean",
        bands if found.has_band else (),
        rows,
        y,
        ("year", "mean_text", "interval", "member") if found.has_band else ("year", "mean_text"),
        theme,
        beyond=found.extrapolated_from,
        columns=2,
    )


def _name_span(best: int, worst: int, theme: Theme) -> str:
    """'rating b to d'."""
    ratings, words = theme.ratings, theme.words
    first, last = ratings.phrase(best, words), ratings.name(worst, words)
    return first if best == worst else words("number.range", low=first, high=last)


def _reach(found: CaseForecast, theme: Theme) -> Chart:
    """The probability of the threshold or worse, with the band of the parameters' uncertainty."""
    words = theme.words
    title = words("figure.axis.reached", rating=theme.ratings.phrase_or_worse(found.threshold, words))
    y = {"scale": {"domain": [0, 1], "nice": False}, "axis": number_axis(title, tickCount=5, format=".1f")}
    name = words("figure.band.chance", level=show_level(found.level))
    rows = []
    for year, share, low, high in zip(
        found.years, found.reached, found.reached_low, found.reached_high, strict=True
    ):
        row = {"year": shorten(year), "share": shorten(share), "probability": show_tenth(share)}
        if low is not None and high is not None:
            row |= shorten_ends(low, high) | {"interval": show_range(low, high, show_tenth, words)}
        rows.append(row)
    return draw_line(
        "share",
        [Band("low", "high", name, {"opacity": 0.9})] if found.has_band else (),
        rows,
        y,
        ("year", "probability", "interval") if found.has_band else ("year", "probability"),
        theme,
        beyond=found.extrapolated_from,
        side="bottom",
    )


def _state_shares(found: CaseForecast, theme: Theme) -> Chart:
    """The probability of each state over the years."""
    years = dict(zip(map(shorten, found.years), found.probability, strict=True))
    titles = (theme.words("figure.axis.probability"), theme.words("figure.axis.years"))
    return _stack_states(years, *titles, theme, beyond=found.extrapolated_from)


def _stack_states(
    years: Mapping[float, Sequence[float]], title: str, year: str, theme: Theme, *, beyond: float | None = None
) -> Chart:
    """Shares of the states by year, stacked to 1, the best at the top and brightest; a line at ``beyond``."""
    words, palette = theme.words, theme.palette
    rows: Rows = [
        {"year": one} | {str(k): _keep_apart(share) for k, share in enumerate(shares, start=1)}
        for one, shares in years.items()
    ]
    last = float(rows[-1]["year"])
    states = [name for name in rows[0] if name != "year"]
    base = {"x": quantity("year", **year_axis(words, last))}
    colours = [shade(1 - place / max(len(states) - 1, 1)) for place in range(len(states))]
    more: Spec = {"titleOrient": "left", **theme.name_states()}
    key = legend(_count_columns(len(states), theme), words("figure.axis.state"), "bottom", **more)
    areas = {
        "y": quantity(
            "share", stack="zero", scale={"domain": [0, 1]}, axis=number_axis(title, tickCount=5, format=".1f")
        ),
        "color": category("state", scale={"domain": states, "range": colours}, legend=key),
        "order": quantity("place", sort="descending"),
    }
    fold: list[Spec] = [
        {"fold": states, "as": ["state", "share"]},
        {"calculate": "toNumber(datum.state)", "as": "place"},
    ]
    layers = [layer("area", base | areas, transform=fold, stroke=palette.surface, strokeWidth=0.7)]
    if beyond is not None and beyond < last:  # areas leave no room for a shade
        dashed: Spec = {"color": palette.ink, "strokeWidth": 1.2, "strokeDash": [4, 3]}
        layers.append(layer("rule", base, rows=[{"year": shorten(beyond)}], **dashed))
    tooltip = [quantity("year", title=year, format=".0f")]
    tooltip += [category(f"text_{one}", title=theme.ratings.phrase(int(one), words)) for one in states]
    texts = [{"calculate": SHARE.format(one), "as": f"text_{one}"} for one in states]
    layers.append(draw_hover(base, tooltip, palette, texts))
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _count_columns(states: int, theme: Theme) -> int:
    """Ratings in a line of a legend: all, or fewer where their names are long."""
    names = (theme.ratings.name(state, theme.words) for state in range(1, states + 1))
    return max(1, min(states, LEGEND_LETTERS // max(map(len, names))))


def _keep_apart(share: float) -> float:
    """Shortened, but what is not all stays less than 1."""
    return shorten(share) if share >= 1 else min(shorten(max(share, 0.0)), MOST)


def _describe_ageing(found: CaseForecast, words: Words) -> str:
    """Covariates that advance with the years, and the year in which they leave the training rows."""
    if not found.advancing:
        return words("figure.course.fixed")
    first = found.extrapolated_from
    return join_sentences(
        (
            words("figure.course.advances", names=join_names(map(isolate_name, found.advancing), words)),
            "" if first is None else words("figure.course.beyond", year=show_count(first)),
        ),
        words,
    )


def _describe_mean(found: CaseForecast, theme: Theme) -> str:
    words, ratings = theme.words, theme.ratings
    pairs = zip(found.years, found.probability, strict=True)
    half = next((year for year, row in pairs if row[-1] >= HALF), None)
    years, last = f"{found.years[-1]:g}", _name_mean(found.expected[-1], theme)
    worst = ratings.phrase(len(found.probability[0]), words)
    return join_sentences(
        (
            words("figure.curve.alt_mean", years=years, last=last),
            "" if half is None else words("figure.curve.alt_half", years=show_count(half), worst=worst),
        ),
        words,
    )


def _name_mean(mean: float, theme: Theme) -> str:
    """A mean rating: a number where ratings are, else the two that it is between, or the one that it is near."""
    ratings, words = theme.ratings, theme.words
    if ratings.numbered or ratings.has_numbers:
        return show_number(ratings.mean(mean), 1)
    nearest = round(mean)
    if abs(mean - nearest) < NEAR:
        return ratings.name(nearest, words)
    names = (ratings.name(state, words) for state in (math.floor(mean), math.ceil(mean)))
    return words("figure.curve.between", first=next(names), second=next(names))


def _describe_shares(found: CaseForecast, theme: Theme) -> str:
    words = theme.words
    items = (
        words("figure.curve.share", rating=theme.ratings.phrase(state, words), share=show_share(share))
        for state, share in enumerate(found.probability[-1], start=1)
    )
    return words("figure.curve.alt_shares", years=f"{found.years[-1]:g}", items=join_names(items, words))


# Years until the threshold


def _years_until(passages: Passages, field: str, height: float, level: float, theme: Theme) -> Chart:
    """A row for each start: the median, what is known of it, and how long one member may take."""
    words, palette = theme.words, theme.palette
    farthest = _find_farthest(passages)
    rows = [
        _passage_row(one, farthest, words)
        | {field: name, f"{field}_text": theme.ratings.name(name, words) if isinstance(name, int) else name}
        for name, one in passages.items()
    ]
    of_cases = field == "case"
    banded = any("high" in row for row in rows)
    fields = ("median_text", "interval_text", "member_text", "mean_years_text")
    base: Spec = {"tooltip": tips(words, f"{field}_text", *(fields if banded else fields[::3]))}
    if of_cases:
        base |= {"y": case_axis([str(name) for name in passages]), "opacity": dim()}
    else:
        plain: Spec = {"ticks": False, "domain": False, "grid": False, **theme.name_states()}
        axis = number_axis(words("figure.axis.state_now"), theme.letters, **plain)
        base |= {"y": category("state", scale={"domain": list(passages)}, sort=None, axis=axis)}
    axis = {"title": words("figure.axis.until"), "tickCount": 6, "gridDash": [2, 3]}
    x = {"scale": {"domain": [0, farthest], "nice": False}, "axis": axis}
    point: Spec = {"filled": True, "opacity": 1}
    layers = [*_draw_intervals(rows, base, x, level, theme)]
    if any(row["far"] for row in rows):
        arrow: Spec = {"size": 50, "shape": "triangle-right", "color": palette.muted}
        layers.append(layer("point", base | {"x": datum(farthest, **x)}, where="datum.far", **point, **arrow))
    median = base | {"x": quantity("median", **x)}
    layers.append(layer("point", median, where="isValid(datum.median)", size=60, color=palette.accent, **point))
    return Chart(layers, rows, width=CASE_WIDTH if of_cases else INNER_WIDTH, height=height)


def _draw_intervals(rows: Rows, base: Spec, x: Spec, level: float, theme: Theme) -> Iterator[Spec]:
    """Bars of both intervals, as far as there are any; the legend has both."""
    names = (theme.words(f"figure.band.{name}", level=show_level(level)) for name in ("median", "member"))
    ends = (("low", "high", INTERVAL), ("first", "last", BAR))
    bands = [
        Band(low, high, name, {"size": size}, f"isValid(datum.{low})")
        for name, (low, high, size) in zip(names, ends, strict=True)
    ]
    for one, bar in zip(reversed(bands), draw_bands("bar", bands, "x", base, x, theme, 2), strict=True):
        if any(one.low in row for row in rows):
            yield bar


def _passage_row(one: PassagePart, farthest: float, words: Words) -> dict[str, Any]:
    row: dict[str, Any] = {
        "median_text": show_years(one.median),
        "mean_years_text": show_years(one.mean),
        "interval_text": show_range(one.median_low, one.median_high, show_years, words),
        "member_text": show_range(one.predicted_low, one.predicted_high, show_years, words),
        "far": any(end > farthest for end in _list_ends([one])),
    }
    if one.median is not None and one.median <= farthest:
        row["median"] = shorten(one.median)
    for low, high, names in (
        (one.median_low, one.median_high, ("low", "high")),
        (one.predicted_low, one.predicted_high, ("first", "last")),
    ):
        if low is not None and high is not None and low < farthest:
            row |= shorten_ends(low, min(high, farthest), names)
    return row


def _list_ends(passages: Iterable[PassagePart]) -> list[float]:
    """Years that are shown: medians and upper ends of intervals."""
    ends = (end for one in passages for end in (one.median, one.median_high, one.predicted_high))
    return [end for end in ends if end is not None]


def _find_farthest(passages: Passages) -> float:
    """The last year of the axis: all that is shown, within reason."""
    ends = _list_ends(passages.values())
    if any(end > FARTHEST for end in ends):
        return FARTHEST
    return max(NARROWEST, 10.0 * -(-max(ends, default=NARROWEST) // 10))


def _explain_arrows(passages: Passages, words: Words) -> str:
    """The meaning of an arrow, where there is one."""
    farthest = _find_farthest(passages)
    far = any(end > farthest for end in _list_ends(passages.values()))
    return words("figure.reach.far", years=f"{farthest:g}") if far else ""


def _describe_passages(passages: Mapping[Any, PassagePart], key: str, worse: str, words: Words) -> str:
    items = (
        words(key, name=isolate_name(str(name)), years=show_years(one.median)) for name, one in passages.items()
    )
    return words("figure.reach.alt_until", rating=worse, items=join_names(items, words))


# The network


def draw_network(network: NetworkPart, theme: Theme, case: str | None = None) -> FigureView | None:
    """Shares of states beside the number in the threshold or worse: of all cases, or of one."""
    words, years = theme.words, network.of(case)
    if not years:
        return None
    theme = replace(theme, ratings=network.ratings)
    certified = all(one.certified for one in years)
    banded = any(one.low is not None for one in years)
    place = {
        "case": words("figure.network.all") if case is None else isolate_name(case),
        "base": words("figure.network.seen") if network.base is None else network.base,
    }
    threshold = years[-1].threshold
    reached = "figure.network.panel_thresholds" if threshold is None else "figure.network.panel_reached"
    message = _describe_reached(years, theme)
    worse = None if threshold is None else theme.ratings.phrase_or_worse(threshold, words)
    last, numbers = _describe_last(years, theme), _reached(years, network.level, banded, theme)
    panels = (
        ("network-shares", words("figure.network.panel_shares"), last, _shares(years, theme)),
        ("network-reached", words(reached, rating=worse), message, numbers),
    )
    caption = (
        words("figure.network.caption", **place),
        words("figure.network.bands", level=show_level(network.level)) if banded else "",
        "" if certified else words("figure.curve.uncertified"),
        message,
    )
    return make_figure("network", panels, caption, theme, place, certified=certified)


def _shares(years: Sequence[NetworkYear], theme: Theme) -> Chart:
    """The share of members in each state over the years."""
    found: dict[float, list[float]] = {
        one.year: [number / max(one.members, 1) for number in one.expected] for one in years
    }
    words = theme.words
    return _stack_states(found, words("figure.axis.members_share"), words("figure.tip.year"), theme)


def _reached(years: Sequence[NetworkYear], level: float, banded: bool, theme: Theme) -> Chart:
    """The number in the threshold or worse: expected, with its interval, within that of the number itself."""
    words = theme.words
    highest = max(one.reached if one.predicted_high is None else one.predicted_high for one in years)
    y = {
        "scale": {"domain": [0, min(years[0].members, max(1.1 * highest, 1.0))], "nice": False},
        "axis": number_axis(words("figure.axis.members"), tickCount=5, labelExpr=THOUSANDS),
    }
    expected, itself = (words(f"figure.band.{name}", level=show_level(level)) for name in ("expected", "number"))
    bands = (Band("low", "high", expected, {"opacity": 0.95}), Band("first", "last", itself, {"opacity": 0.95}))
    rows = []
    for one in years:
        row: dict[str, Any] = {
            "year": one.year,
            "expected": shorten(one.reached),
            "expected_number": show_count(one.reached),
        }
        for low, high, names, text in (
            (one.low, one.high, ("low", "high"), "interval"),
            (one.predicted_low, one.predicted_high, ("first", "last"), "number"),
        ):
            ends = shorten_ends(low, high, names)
            row |= ends | ({text: show_range(low, high, show_count, words)} if ends else {})
        rows.append(row)
    fields = ("year", "expected_number", "interval", "number") if banded else ("year", "expected_number")
    return draw_line("expected", bands if banded else (), rows, y, fields, theme)


def _describe_reached(years: Sequence[NetworkYear], theme: Theme) -> str:
    """Members in the threshold or worse, now and at the end."""
    first, last, words = years[0], years[-1], theme.words
    return words(
        "figure.network.alt_thresholds" if last.threshold is None else "figure.network.alt_reached",
        rating="" if last.threshold is None else theme.ratings.phrase_or_worse(last.threshold, words),
        now=show_count(first.reached),
        then=show_count(last.reached),
        members=show_count(last.members),
        years=show_count(last.year),
    )


def _describe_last(years: Sequence[NetworkYear], theme: Theme) -> str:
    last, words = years[-1], theme.words
    items = (
        words("figure.network.count", rating=theme.ratings.phrase(state, words), count=show_count(number))
        for state, number in enumerate(last.expected, start=1)
    )
    return words("figure.network.alt_shares", years=show_count(last.year), items=join_names(items, words))
