"""Charts of forecasts: the network, years until the threshold, a typical member over the years, backtests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from rekka.core.language import NO_COMPONENTS
from rekka.report.charts.base import (
    ABOVE,
    CASE_LABELS,
    HEAD,
    HEIGHT,
    LESS,
    MOST_LETTERS,
    NAME_WIDTH,
    PRINTED,
    RIGHT,
    ROW,
    SMALL,
    SPACING,
    WIDTH,
    Band,
    Chart,
    End,
    Entry,
    Rows,
    Spec,
    Theme,
    break_text,
    case_axis,
    category,
    colour_state,
    datum,
    dim,
    draw_bands,
    draw_differences,
    draw_edges,
    draw_ground,
    draw_hover,
    find_end_room,
    find_room,
    find_ticks,
    isolate_name,
    label_ends,
    layer,
    list_bands,
    list_caveats,
    make_figure,
    measure,
    number_axis,
    place_model,
    quantity,
    shorten,
    shorten_ends,
    span,
    stamp,
    tips,
    year_axis,
)
from rekka.report.document import (
    BacktestPart,
    BacktestYear,
    CaseForecast,
    Document,
    HistoryYear,
    ModelPart,
    NetworkPart,
    NetworkYear,
    NewPart,
    PassagePart,
)
from rekka.report.text import (
    Words,
    join_names,
    join_sentences,
    show_count,
    show_estimate,
    show_level,
    show_loss_difference,
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
BAR, INTERVAL = 13, 6  # pixels of the bars of what will be and of the parameters
SHARE = (  # as show_share does it, in the words of Vega
    "datum['{0}'] > 0 && datum['{0}'] < 0.0005 ? '<0.1%' : "
    "datum['{0}'] < 1 && datum['{0}'] >= 0.9995 ? '>99.9%' : format(datum['{0}'], '.1%')"
)
NEAR = 0.05  # a mean that is so near to a rating is called by it
INSPECTED = 0.9  # of the members of the last year: years with fewer have hollow points
MOST_MULTIPLES = 24  # small panels; later components have their own pages
SMALL_PLOT, SMALL_HEIGHT = 150, 120  # pixels of the plot of one of them, at most as wide
SMALL_PANEL = (PRINTED - 2 * SPACING) / 3  # pixels of one of them, all in all
SMALL_LETTERS = 12  # of a rating there
MANY, SQUEEZED = 7, 9  # ratings on a low axis, and pixels of their letters
DASHED = (4, 3)
WIDER: Spec = {"strokeWidth": 1.4, "strokeDash": list(DASHED)}
END_ROOM = 60  # pixels for words at the end of a line
BAND_WIDTH = 0.7  # of a year, for a bar of a backtest
NO_CHANGE = 0.002  # least width of an axis of differences of scores, of which a thousandth is no difference
Passages = dict[str | int, PassagePart]  # years until the threshold by state now, or by case

show_mean = partial(show_number, digits=2)
show_tenth = partial(show_share, digits=1)


# The network


def draw_network(
    network: NetworkPart, theme: Theme, case: str | None = None, name: str = "network"
) -> FigureView | None:
    """Members in the threshold or worse, found and expected, beside shares of ratings: of all cases, or of one."""
    words, years = theme.words, network.of(case)
    if not years:
        return None
    theme = replace(theme, ratings=network.ratings)
    certified = all(one.certified for one in years)
    history = [one for one in network.history if one.case == case] if _find_base(network) else []
    cases = {one.case for one in network.years if one.case is not None} if case is None else {case}
    named = len(cases) == 1 and cases != {NO_COMPONENTS}
    place = {
        "case": isolate_name(*cases) if named else words("figure.network.all"),
        "base": words("figure.network.seen") if network.base is None else network.base,
        "repairs": words(f"repairs.{network.repairs}"),
    }
    message = _describe_reached(network, years, theme)
    shares = (words("figure.network.panel_shares"), _describe_last(network, years, theme))
    panels = (
        (
            "network-reached",
            _name_threshold(years, theme),
            message,
            _count_reached(network, years, history, theme),
        ),
        ("network-shares", *shares, _draw_shares(network, years, theme)),
    )
    banded = any(one.low is not None for one in years)
    struck = any(one.predicted_shock_low is not None for one in years)
    caption = (
        words("figure.network.caption", **place),
        words("figure.network.found") if history else "",
        words("figure.network.hollow", share=show_share(INSPECTED)) if _has_early(history) else "",
        words("figure.network.bands", level=show_level(network.level)) if banded else "",
        words("figure.network.shock") if struck else "",
        "" if certified else words("figure.curve.uncertified"),
    )
    title = message if case is None else words("figure.of_case", case=place["case"], text=message)
    return make_figure(name, title, panels, caption, theme, case=case, certified=certified, live=True)


def draw_networks(document: Document, theme: Theme) -> Iterator[FigureView]:
    """The two panels of the network of all cases as figures of their own: numbers, then shares of ratings."""
    both = None if document.network is None else draw_network(document.network, theme)
    if both is None:
        return
    reached, shares = both.panels
    yield replace(both, panels=(reached,))
    title = shares.alt.rstrip(".")
    caption = theme.words("figure.network.panel_shares")
    yield replace(both, name="ratings", panels=(shares,), title=title, caption=caption)


def draw_for_case_network(document: Document, case: str, theme: Theme) -> FigureView | None:
    """The network figure of one case: how many of its members are in the threshold or worse."""
    number = next((n for n, one in enumerate(document.cases, start=1) if one.case == case), None)
    if document.network is None or number is None:
        return None
    figure = draw_network(document.network, theme, case, f"network-{number:03d}")
    return None if figure is None else replace(figure, panels=figure.panels[:1])


def _find_base(network: NetworkPart) -> int:
    """The year of the calendar that is year 0; 0 where each member is forecast from when it was seen."""
    return 0 if network.base is None else date.fromisoformat(network.base[:10]).year


def _name_years(network: NetworkPart, words: Words) -> str:
    return words("figure.axis.calendar" if _find_base(network) else "figure.axis.years")


def _name_threshold(years: Sequence[NetworkYear], theme: Theme) -> str:
    threshold = years[-1].threshold
    if threshold is None:
        return theme.words("figure.network.panel_thresholds")
    return theme.words(
        "figure.network.panel_reached", rating=theme.ratings.phrase_or_worse(threshold, theme.words)
    )


def _count_reached(
    network: NetworkPart, years: Sequence[NetworkYear], history: Sequence[HistoryYear], theme: Theme
) -> Chart:
    """The number in the threshold or worse: found, then expected, with its interval, within that of the number."""
    words, palette, base = theme.words, theme.palette, _find_base(network)
    found, rows = _list_found(history, words), [_network_row(one, base, words) for one in years]
    first, last = min([base, *(row["year"] for row in found)]), rows[-1]["year"]
    numbers = [row[name] for row in rows for name in ("expected", "high", "last", "widest") if name in row]
    y = find_ticks(0.0, max([1.0, *numbers, *(row["found"] for row in found)]), most=6).beside(
        words("figure.axis.members")
    )
    x = year_axis(_name_years(network, words), first, last)
    bands = _list_number_bands(rows, network.level, theme)
    along = {"x": quantity("year", **x)}
    text = break_text(words("figure.network.end", count=rows[-1]["count"]), END_ROOM, SMALL)
    ends = [End(text, _place(rows[-1]["expected"], y), palette.accent)]
    left, right = find_room(y["axis"]), find_end_room(one.text for one in ends)
    layers = [
        *draw_bands("area", bands[:2], "y", along, y),
        *(line for one in bands[1:2] for line in draw_edges(one, along, y, palette.accent, strokeWidth=0.8)),
        *(line for one in bands[2:] for line in draw_edges(one, along, y, palette.accent, **WIDER)),
        *(_mark_today(network, x, found, theme) if base else ()),
        *_draw_found(found, along, y, (found[-1]["year"] - first) / (last - first) if found else 0.0, theme),
        layer("line", along | {"y": quantity("expected", **y)}, strokeWidth=2.4, color=palette.accent),
        *label_ends(ends, x, last, HEIGHT, palette.ink),
    ]
    fields = (
        "year",
        "expected_number",
        *(("interval", "number") if bands else ()),
        *(("shock",) if bands[2:] else ()),
    )
    layers.append(draw_hover(along, tips(words, *fields), palette))
    key = list_bands(bands[:1]) + [Entry(one.name, palette.accent, filled=False) for one in bands[1:2]]
    key += [Entry(one.name, one.colour, dash=DASHED) for one in bands[2:]]
    return Chart(layers, rows, width=WIDTH - left - right, height=HEIGHT, left=left, key=key)


def _list_number_bands(rows: Rows, level: float, theme: Theme) -> list[Band]:
    """Intervals of the expected number and of the number itself, and the wider one; as far as there are any."""
    palette = theme.palette
    every = (
        ("low", "high", "expected", palette.band),
        ("first", "last", "number", palette.haze),
        ("widest_low", "widest", "shock", palette.accent),
    )
    return [
        Band(low, high, theme.words(f"figure.band.{name}", level=show_level(level)), colour)
        for low, high, name, colour in every
        if any(low in row for row in rows)
    ]


def _network_row(one: NetworkYear, base: int, words: Words) -> dict[str, Any]:
    row: dict[str, Any] = {
        "year": base + one.year,
        "expected": shorten(one.reached),
        "count": show_count(one.reached),
        "expected_number": show_count(one.reached),
    }
    for low, high, names, text in (
        (one.low, one.high, ("low", "high"), "interval"),
        (one.predicted_low, one.predicted_high, ("first", "last"), "number"),
        (one.predicted_shock_low, one.predicted_shock_high, ("widest_low", "widest"), "shock"),
    ):
        ends = shorten_ends(low, high, names)
        row |= ends | ({text: show_range(low, high, show_count, words)} if ends else {})
    return row


def _list_found(history: Sequence[HistoryYear], words: Words) -> Rows:
    """Members at the threshold that inspectors had found by the end of each year."""
    every = max((one.members for one in history), default=0)
    return [
        {
            "year": one.year,
            "found": one.reached,
            "early": one.members < INSPECTED * every,
            "found_text": words("figure.of", count=show_count(one.reached), trials=show_count(one.members)),
        }
        for one in history
    ]


def _has_early(history: Sequence[HistoryYear]) -> bool:
    return len({one.members for one in history}) > 1 and history[0].members < INSPECTED * history[-1].members


def _draw_found(found: Rows, along: Spec, y: Spec, share: float, theme: Theme) -> Iterator[Spec]:
    """Points and a thin line, over a ``share`` of the years; hollow where many had not been inspected yet."""
    if not found:
        return
    ink, height = theme.palette.ink, quantity("found", **y)
    base = along | {"y": height}
    yield layer("line", base, rows=found, color=ink, strokeWidth=1)
    point = base | {"tooltip": tips(theme.words, "year", "found_text")}
    look: Spec = {"color": ink, "size": 34, "opacity": 1, "strokeWidth": 1.2}
    yield layer("point", point, rows=[row for row in found if not row["early"]], filled=True, **look)
    early = [row for row in found if row["early"]]
    if early:
        yield layer("point", point, rows=early, filled=False, fill=theme.palette.surface, **look)
    last = found[-1] | {"text": theme.words("figure.network.last_found", count=show_count(found[-1]["found"]))}
    text, room = base | {"text": category("text")}, share * (WIDTH - LESS) / 2
    place: Spec = {"align": "right", "dx": -5, "dy": -10}
    if room < measure(last["text"], SMALL):  # a short history: below the line of the years to come
        place = {"align": "left", "dx": 8, "dy": 12}
    yield layer("text", text, rows=[last], fontSize=SMALL, **place)


def _mark_today(network: NetworkPart, x: Spec, found: Rows, theme: Theme) -> Iterator[Spec]:
    """A line at the base date with its words at the top."""
    rows: Rows = [{"year": _find_base(network)}]
    place = {"x": quantity("year", **x)}
    yield layer("rule", place, rows=rows, color=theme.palette.muted, strokeWidth=1.2, strokeDash=[2, 2])
    text = [theme.words("figure.network.today"), str(network.base)[:10]]
    look: Spec = {"align": "left", "baseline": "top", "dx": 5, "fontSize": SMALL, "color": theme.palette.muted}
    yield layer("text", place | {"y": {"value": 0}}, rows=rows, text=text, **look)


def _place(value: float, y: Spec) -> float:
    """Pixels from the top of a plot."""
    low, high = y["scale"]["domain"]
    share = (value - float(low)) / (float(high) - float(low))
    return HEIGHT * (1 - share)


def _draw_shares(network: NetworkPart, years: Sequence[NetworkYear], theme: Theme) -> Chart:
    """The share of members in each rating over the years."""
    base, words = _find_base(network), theme.words
    found = {float(base + one.year): [number / max(one.members, 1) for number in one.expected] for one in years}
    return _stack_states(found, words("figure.axis.members_share"), _name_years(network, words), theme)


def _describe_reached(network: NetworkPart, years: Sequence[NetworkYear], theme: Theme) -> str:
    """Members in the threshold or worse, now and at the end."""
    first, last, words, base = years[0], years[-1], theme.words, _find_base(network)
    when = (
        words("figure.network.in_year", year=str(base + last.year))
        if base
        else words("figure.network.after", years=show_count(last.year))
    )
    return words(
        "figure.network.alt_thresholds" if last.threshold is None else "figure.network.alt_reached",
        rating="" if last.threshold is None else theme.ratings.phrase_or_worse(last.threshold, words),
        now=show_count(first.reached),
        then=show_count(last.reached),
        members=show_count(last.members),
        when=when,
        repairs=words(f"repairs.{network.repairs}"),
    )


def _describe_last(network: NetworkPart, years: Sequence[NetworkYear], theme: Theme) -> str:
    last, words = years[-1], theme.words
    items = (
        words("figure.network.count", rating=theme.ratings.phrase(state, words), count=show_count(number))
        for state, number in enumerate(last.expected, start=1)
    )
    return words("figure.network.alt_shares", years=show_count(last.year), items=join_names(items, words))


# Years until the threshold, by component


def draw_reaching(document: Document, theme: Theme) -> FigureView | None:
    """Years of new members until the threshold, case beside case: of the models that were chosen."""
    words, level = theme.words, document.study.confidence
    models = [
        (one, one.forecast, passage)
        for one in document.models
        if one.chosen and one.forecast is not None and (passage := one.forecast.passage_of_new) is not None
    ]
    if not models:
        return None
    passages: Passages = {one.case: passage for one, _, passage in models}
    certified = all(one.certified for one, _, _ in models)
    chart = _years_until(passages, "case", len(passages) * ROW, level, theme)
    worse = _name_worse([found for _, found, _ in models], theme)
    message = _describe_passages(passages, "figure.reach.of_case", worse, words)
    first = theme.ratings.phrase(1, words)
    panels = [("reaching", words("figure.reaching.panel", ratings=worse), message, chart)]
    caption = (
        words("figure.reaching.caption", ratings=worse, first=first),
        words("figure.reaching.bands", level=show_level(level))
        if certified
        else words("figure.curve.uncertified"),
        _explain_arrows(passages, words),
    )
    title = _say_medians(passages, worse, theme)
    return make_figure("reaching", title, panels, caption, theme, certified=certified, live=False)


def _name_worse(forecasts: Iterable[CaseForecast], theme: Theme) -> str:
    """The thresholds of several cases, and worse."""
    thresholds = sorted({found.threshold for found in forecasts})
    return theme.words.join((theme.ratings.phrase_or_worse(one, theme.words) for one in thresholds), "comma")


def _say_medians(passages: Passages, worse: str, theme: Theme) -> str:
    """The median years of the only case, or of the first and the last."""
    words, places = theme.words, {"ratings": worse}
    known = sorted((one.median, str(case)) for case, one in passages.items() if one.median is not None)
    if not known:
        return words("figure.reaching.unknown", **places)
    (low, soonest), (high, latest) = known[0], known[-1]
    places |= {"soonest": isolate_name(soonest), "latest": isolate_name(latest)}
    key = "figure.reaching.title_one" if len(known) == 1 else "figure.reaching.title"
    return words(key, low=show_years(low), high=show_years(high), **places)


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
    )
    title = words(
        "figure.curve.title", years=f"{found.years[-1]:g}", last=_name_mean(found.expected[-1], theme), **place
    )
    return make_figure(f"curve-{number}", title, panels, caption, theme, model=model, live=True)


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
    )
    title = words("figure.reach.title", years=show_years(found.passages[0].median), **place)
    return make_figure(f"reach-{number}", title, panels, caption, theme, model=model)


def draw_multiples(document: Document, theme: Theme) -> FigureView | None:
    """A small panel for each component: a new member by its age, on shared axes."""
    words = theme.words
    models = [(one, one.forecast) for one in document.models if one.forecast is not None]
    shown = models[:MOST_MULTIPLES]
    if not shown:
        return None
    last = max((found.new or found).years[-1] for _, found in shown)
    states = max(len(found.probability[0]) for _, found in shown)
    panels = []
    for n, (model, found) in enumerate(shown, start=1):
        drawn = _draw_small(found, last, states, theme, alone=len(shown) == 1)
        chart = stamp(drawn, theme, certified=model.certified, chosen=model.chosen)
        text = words("figure.of_case", case=isolate_name(model.case), text=_describe_new(found, theme))
        panels.append((f"multiple-{n}", isolate_name(model.case), text, chart))
    places = {
        "ratings": _name_worse([found for _, found in shown], theme),
        "first": theme.ratings.phrase(1, words),
    }
    medians = [passage.median for _, found in models if (passage := found.passage_of_new) is not None]
    within = sum(median is not None and median <= last for median in medians)
    kinds = {"new" if found.new else "old" if found.advancing else "ageless" for _, found in shown}
    beyond = any(any((found.new or found).outside) for _, found in shown)
    counts = {"within": show_count(within), "cases": show_count(len(models)), "years": f"{last:g}"}
    caption = (
        words("figure.multiples.caption", **places),
        *(words(f"figure.multiples.{kind}") for kind in ("new", "old", "ageless") if kind in kinds),
        words("figure.multiples.bands", level=show_level(shown[0][1].level))
        if any(found.has_band for _, found in shown)
        else "",
        words("figure.multiples.shaded") if beyond else "",
        words("figure.multiples.left", count=show_count(len(models) - len(shown)))
        if len(models) > len(shown)
        else "",
    )
    key = "title" if len(document.cases) > 1 else "title_likely" if within else "title_unlikely"
    return make_figure("multiples", words(f"figure.multiples.{key}", **places, **counts), panels, caption, theme)


def _draw_small(found: CaseForecast, last: float, states: int, theme: Theme, *, alone: bool) -> Chart:
    """The mean rating of one component in its bands, and its threshold as a line; large where it is alone."""
    palette, curve = theme.palette, found.new or found
    x = year_axis(theme.words("figure.axis." + ("age" if found.new else "years_short")), 0.0, last)
    x["axis"] |= {"values": [value for value in x["axis"]["values"] if value % 10 == 0] or x["axis"]["values"]}
    y = _rate(states, theme, None, math.inf, SMALL_LETTERS)
    if states > MANY:
        y["axis"] |= {"labelFontSize": SQUEEZED}
    along = {"x": quantity("year", **x)}
    bands = _list_mean_bands(found, theme) if found.has_band else []
    rows = _mean_rows(curve, theme)
    end = curve.years[-1]
    seen = [year for year, beyond in zip(curve.years, curve.outside, strict=True) if not beyond] or [end]
    old = None if seen[-1] >= end else seen[-1]
    edge = found.threshold - HALF  # the threshold is reached where its strip begins
    layers = [
        *draw_bands("area", bands, "y", along, y),
        *(draw_ground(0.0, x, seen[0], theme, named=False) if seen[0] > curve.years[0] else ()),
        *draw_ground(old, x, end, theme, named=False),
        layer(
            "rule", {"y": datum(edge, **y)}, rows=[{}], color=palette.bad, strokeDash=list(DASHED), strokeWidth=1.2
        ),
        layer("line", along | {"y": quantity("mean", **y)}, strokeWidth=2, color=palette.accent),
    ]
    left = find_room(y["axis"])
    if alone:
        return Chart(layers, rows, width=WIDTH - left - RIGHT, height=HEIGHT, left=left, key=list_bands(bands))
    width = min(SMALL_PLOT, SMALL_PANEL - left - RIGHT)
    return Chart(layers, rows, width=width, height=SMALL_HEIGHT, left=left, across=left + width + RIGHT)


def _rate(
    states: int, theme: Theme, title: str | None, width: float = NAME_WIDTH, most: int = MOST_LETTERS
) -> Spec:
    """Scale and axis of ratings, the best at the top; each is a strip, so that who is surely in it has a place."""
    values, names = list(range(1, states + 1)), theme.list_names(states, width, most)
    axis = number_axis(title, names, values=values, format="d", **theme.name_states(width, most))
    return {"scale": {"domain": [0.5, states + 0.5], "reverse": True, "nice": False, "zero": False}, "axis": axis}


def _list_mean_bands(found: CaseForecast, theme: Theme) -> list[Band]:
    level = show_level(found.level)
    mean, member = (theme.words(f"figure.band.{name}", level=level) for name in ("mean", "member"))
    return [
        Band("low", "high", mean, theme.palette.band),
        Band("best", "worst", member, theme.palette.haze, {"interpolate": "step-after", "opacity": 0.75}),
    ]


def _mean_rows(found: CaseForecast | NewPart, theme: Theme) -> Rows:
    ratings, words, rows = theme.ratings, theme.words, []
    ends = (found.expected_low, found.expected_high, found.predicted_low, found.predicted_high)
    for year, middle, low, high, best, worst in zip(found.years, found.expected, *ends, strict=True):
        row: dict[str, Any] = {"year": shorten(year), "mean": shorten(middle)}
        row["mean_text"] = show_mean(ratings.mean(middle))
        if low is not None and high is not None and best is not None and worst is not None:
            row |= shorten_ends(low, high) | {"best": best - HALF, "worst": worst + HALF}
            row["interval"] = show_range(ratings.mean(low), ratings.mean(high), show_mean, words)
            row["member"] = _name_span(best, worst, theme)
        rows.append(row)
    return rows


def _mean_states(found: CaseForecast, theme: Theme) -> Chart:
    """The mean state, the best at the top, within what is known of it, within the states of one member."""
    words = theme.words
    y = _rate(len(found.probability[0]), theme, words("figure.axis.mean_state"))
    bands = _list_mean_bands(found, theme) if found.has_band else []
    fields = ("year", "mean_text", "interval", "member") if bands else ("year", "mean_text")
    return _draw_line("mean", bands, _mean_rows(found, theme), y, fields, theme, beyond=found.extrapolated_from)


def _name_span(best: int, worst: int, theme: Theme) -> str:
    """'rating b to d'."""
    ratings, words = theme.ratings, theme.words
    first, last = ratings.phrase(best, words), ratings.name(worst, words)
    return first if best == worst else words("number.range", low=first, high=last)


def _reach(found: CaseForecast, theme: Theme) -> Chart:
    """The probability of the threshold or worse, with the band of the parameters' uncertainty."""
    words = theme.words
    y = find_ticks(0.0, 1.0, most=5).beside(words("figure.axis.probability"))
    bands = [Band("low", "high", words("figure.band.chance", level=show_level(found.level)), theme.palette.band)]
    rows = []
    for year, share, low, high in zip(
        found.years, found.reached, found.reached_low, found.reached_high, strict=True
    ):
        row = {"year": shorten(year), "share": shorten(share), "probability": show_tenth(share)}
        if low is not None and high is not None:
            row |= shorten_ends(low, high) | {"interval": show_range(low, high, show_tenth, words)}
        rows.append(row)
    fields = ("year", "probability", "interval") if found.has_band else ("year", "probability")
    end = show_share(found.reached[-1])
    beyond = found.extrapolated_from
    return _draw_line("share", bands if found.has_band else [], rows, y, fields, theme, beyond=beyond, end=end)


def _draw_line(
    middle: str,
    bands: Sequence[Band],
    rows: Rows,
    y: Spec,
    fields: Sequence[str],
    theme: Theme,
    *,
    beyond: float | None,
    end: str = "",
) -> Chart:
    """A line over the years within its bands, with the words ``end`` at its end, and tooltips by year.

    From ``beyond`` on, where covariates leave the training rows, the ground is shaded and says so.
    """
    words, palette, last = theme.words, theme.palette, rows[-1]["year"]
    x = year_axis(words("figure.axis.years"), 0.0, last)
    along = {"x": quantity("year", **x)}
    ends = [End(end, _place(rows[-1][middle], y), palette.accent)] if end else []
    layers = [
        *draw_bands("area", bands, "y", along, y),
        *draw_ground(beyond, x, last, theme),
        layer("line", along | {"y": quantity(middle, **y)}, strokeWidth=2.2, color=palette.accent),
        *(label_ends(ends, x, last, HEIGHT, palette.ink) if ends else ()),
        draw_hover(along, tips(words, *fields), palette),
    ]
    left, right = find_room(y["axis"]), find_end_room([end]) if end else RIGHT
    above = ABOVE if beyond is None else HEAD
    return Chart(
        layers, rows, width=WIDTH - left - right, height=HEIGHT, left=left, key=list_bands(bands), above=above
    )


def _state_shares(found: CaseForecast, theme: Theme) -> Chart:
    """The probability of each state over the years."""
    years = dict(zip(map(shorten, found.years), found.probability, strict=True))
    titles = (theme.words("figure.axis.probability"), theme.words("figure.axis.years"))
    return _stack_states(years, *titles, theme, beyond=found.extrapolated_from)


def _stack_states(
    years: Mapping[float, Sequence[float]], title: str, year: str, theme: Theme, *, beyond: float | None = None
) -> Chart:
    """Shares of the states by year, stacked to 1, the best at the top; a line at ``beyond``."""
    words, palette = theme.words, theme.palette
    rows: Rows = [
        {"year": one} | {str(k): _keep_apart(share) for k, share in enumerate(shares, start=1)}
        for one, shares in years.items()
    ]
    first, last = float(rows[0]["year"]), float(rows[-1]["year"])
    states = [name for name in rows[0] if name != "year"]
    x = year_axis(year, first, last)
    y = find_ticks(0.0, 1.0, most=5).beside(title)
    base = {"x": quantity("year", **x)}
    colours = [colour_state(int(name), len(states), palette) for name in states]
    areas = {
        "y": quantity("share", stack="zero", **y),
        "color": category("state", scale={"domain": states, "range": colours}, legend=None),
        "order": quantity("place", sort="descending"),
    }
    fold: list[Spec] = [
        {"fold": states, "as": ["state", "share"]},
        {"calculate": "toNumber(datum.state)", "as": "place"},
    ]
    layers = [layer("area", base | areas, transform=fold, stroke=palette.surface, strokeWidth=1)]
    if beyond is not None and beyond < last:  # areas leave no room for a shade
        dashed: Spec = {"color": palette.ink, "strokeWidth": 1.4, "strokeDash": list(DASHED)}
        layers.append(layer("rule", base, rows=[{"year": shorten(beyond)}], **dashed))
    names = theme.list_names(len(states))
    layers += label_ends(_find_middles(rows[-1], names, colours), x, last, HEIGHT, palette.ink)
    tooltip = [quantity("year", title=year, format=".0f")]
    tooltip += [category(f"text_{one}", title=theme.ratings.phrase(int(one), words)) for one in states]
    texts = [{"calculate": SHARE.format(one), "as": f"text_{one}"} for one in states]
    layers.append(draw_hover(base, tooltip, palette, texts))
    left = find_room(y["axis"])
    return Chart(layers, rows, width=WIDTH - left - find_end_room(names), height=HEIGHT, left=left)


def _find_middles(row: Mapping[str, Any], names: Sequence[str], colours: Sequence[str]) -> list[End]:
    """Labels of stacked areas at the middle of each in the last year, from the top."""
    top, ends = 0.0, []
    for place, (name, colour) in enumerate(zip(names, colours, strict=True), start=1):
        share = row[str(place)]
        ends.append(End(name, HEIGHT * (top + share / 2), colour))
        top += share
    return ends


def _keep_apart(share: float) -> float:
    """Shortened, but what is not all stays less than 1."""
    return shorten(share) if share >= 1 else min(shorten(max(share, 0.0)), MOST)


def _describe_ageing(found: CaseForecast, words: Words, *, beyond: bool = True) -> str:
    """Covariates that advance with the years, and the year in which they leave the training rows."""
    if not found.advancing:
        return words("figure.course.fixed")
    first = found.extrapolated_from if beyond else None
    return join_sentences(
        (
            words(
                "figure.course.advances",
                names=join_names((isolate_name(words.covariate(one)) for one in found.advancing), words),
            ),
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


def _describe_new(found: CaseForecast, theme: Theme) -> str:
    """The mean rating of a new member at the end of its curve."""
    if found.new is None:
        return _describe_mean(found, theme)
    last = _name_mean(found.new.expected[-1], theme)
    return theme.words("figure.multiples.alt", age=f"{found.new.years[-1]:g}", last=last)


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


def _years_until(passages: Passages, kind: str, height: float, level: float, theme: Theme) -> Chart:
    """A row for each start: the median in figures too, what is known of it, and how long one member may take."""
    words, palette = theme.words, theme.palette
    farthest = _find_farthest(passages)
    rows = [
        _passage_row(one, farthest, words)
        | {kind: name, f"{kind}_text": theme.ratings.name(name, words) if isinstance(name, int) else name}
        for name, one in passages.items()
    ]
    of_cases = kind == "case"
    banded = any("high" in row for row in rows)
    fields = ("median_text", "interval_text", "member_text", "mean_years_text")
    base: Spec = {"tooltip": tips(words, f"{kind}_text", *(fields if banded else fields[::3]))}
    if of_cases:
        base |= {"y": case_axis([str(name) for name in passages]), "opacity": dim()}
        left = float(CASE_LABELS)
    else:
        names = theme.list_names(len(rows))
        plain: Spec = {"ticks": False, "domain": False, "grid": False, **theme.name_states()}
        axis = number_axis(words("figure.axis.state_now"), names, **plain)
        base |= {"y": category("state", scale={"domain": list(passages)}, sort=None, axis=axis)}
        left = find_room(axis)
    ticks = find_ticks(0.0, farthest)
    x = ticks.under(words("figure.axis.until_new" if of_cases else "figure.axis.until"), gridDash=[2, 3])
    point: Spec = {"filled": True, "opacity": 1}
    bands = _list_year_bands(rows, level, theme)
    layers = draw_bands("bar", bands, "x", base, x)
    if any(row["far"] for row in rows):
        arrow: Spec = {"size": 50, "shape": "triangle-right", "color": palette.muted}
        layers.append(layer("point", base | {"x": datum(farthest, **x)}, where="datum.far", **point, **arrow))
    median = base | {"x": quantity("median", **x)}
    layers.append(layer("point", median, where="isValid(datum.median)", size=60, color=palette.accent, **point))
    label: Spec = {name: base[name] for name in ("y", "opacity") if name in base}
    label |= {"x": datum(ticks.high, **x), "text": category("label")}
    layers.append(layer("text", label, align="left", dx=10, fontSize=SMALL, color=palette.ink))
    right = 12 + max(measure(row["label"], SMALL) for row in rows)
    return Chart(layers, rows, width=WIDTH - left - right, height=height, left=left, key=list_bands(bands))


def _list_year_bands(rows: Rows, level: float, theme: Theme) -> list[Band]:
    """Both intervals, as far as there are any."""
    palette = theme.palette
    ends = (("low", "high", "median", palette.band, INTERVAL), ("first", "last", "member", palette.haze, BAR))
    return [
        Band(
            low,
            high,
            theme.words(f"figure.band.{name}", level=show_level(level)),
            colour,
            {"size": size},
            f"isValid(datum.{low})",
        )
        for low, high, name, colour, size in ends
        if any(low in row for row in rows)
    ]


def _passage_row(one: PassagePart, farthest: float, words: Words) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": show_estimate(one.median, one.median_low, one.median_high, show_years, words),
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


# Backtests


def draw_backtest(part: BacktestPart, number: str, theme: Theme, level: float) -> FigureView | None:
    """Visits in the threshold or worse by year, found and expected, after the last that the model knew."""
    if not part.years:
        return None
    words = theme.words
    places = {
        "case": isolate_name(part.case),
        "rating": theme.ratings.phrase_or_worse(part.threshold, words),
        "until": part.until,
        "found": show_count(sum(one.observed for one in part.years)),
        "expected": show_count(sum(one.expected for one in part.years)),
        "visits": show_count(sum(one.visits for one in part.years)),
        "bridges": show_count(part.bridges),
    }
    inside = _count_inside(part, words)
    message = join_sentences((words("figure.backtest.alt", **places), inside), words)
    caption = (
        words("figure.backtest.caption", **places),
        words("figure.backtest.bands", level=show_level(level)) if inside else "",
        inside,
        "" if part.certified else words("figure.curve.uncertified"),
    )
    panels = [("backtest", words("figure.backtest.panel", **places), message, _backtest(part, theme, level))]
    name, title = f"backtest-{number}", words("figure.backtest.title", **places)
    return make_figure(name, title, panels, caption, theme, case=part.case, certified=part.certified)


def _count_inside(part: BacktestPart, words: Words) -> str:
    """The years in which the number found is within its interval, of those that have one."""
    held = [
        one.predicted_low <= one.observed <= one.predicted_high
        for one in part.years
        if one.predicted_low is not None and one.predicted_high is not None
    ]
    counts = {"held": show_count(sum(held)), "years": show_count(len(held))}
    return words("figure.backtest.inside", **counts) if held else ""


def _backtest(part: BacktestPart, theme: Theme, level: float) -> Chart:
    """Points found, dashes expected, bars of the prediction intervals, by year."""
    words, palette = theme.words, theme.palette
    rows = [_backtest_year(one, words) for one in part.years]
    highest = max(row[name] for row in rows for name in ("found", "expected", "high") if name in row)
    y = find_ticks(0.0, max(highest, 1.0)).beside(words("figure.axis.visits"))
    axis = {"title": words("figure.axis.visit_year"), "labelAngle": 0}
    base = {
        "x": {"field": "year", "type": "ordinal", "axis": axis},
        "tooltip": tips(words, "year", "visits", "found_text", "expected_text", "number"),
    }
    dash: Spec = {"thickness": 3, "width": {"band": BAND_WIDTH}, "orient": "horizontal", "opacity": 1}
    layers = [
        layer("tick", base | {"y": quantity("expected", **y)}, color=palette.accent, **dash),
        layer("point", base | {"y": quantity("found", **y)}, color=palette.ink, filled=True, size=50, opacity=1),
    ]
    key = [
        Entry(words("figure.backtest.found"), palette.ink, "circle"),
        Entry(words("figure.backtest.expected"), palette.accent, dash=(1, 0)),
    ]
    if any("low" in row for row in rows):
        ends = base | span("y", "low", "high", **y)
        look: Spec = {"color": palette.haze, "width": {"band": BAND_WIDTH}}
        layers.insert(0, layer("bar", ends, where="isValid(datum.low)", **look))
        key.append(Entry(words("figure.band.number", level=show_level(level)), palette.haze))
    left = find_room(y["axis"])
    return Chart(layers, rows, width=WIDTH - left - RIGHT, height=HEIGHT, left=left, key=key)


def _backtest_year(one: BacktestYear, words: Words) -> dict[str, Any]:
    return {
        "year": str(one.year),
        "found": one.observed,
        "expected": shorten(one.expected),
        "visits": show_count(one.visits),
        "found_text": show_count(one.observed),
        "expected_text": show_number(one.expected, 1),
        "number": show_range(one.predicted_low, one.predicted_high, show_count, words),
        **shorten_ends(one.predicted_low, one.predicted_high),
    }


def draw_backtests(document: Document, theme: Theme) -> FigureView | None:
    """The difference of scores between the model and "no change", by component, with its interval."""
    words = theme.words
    scored = [one for one in document.backtests if one.difference is not None]
    if not scored:
        return None
    rows = [_backtest_row(one, words) for one in scored]
    better, worse = ([row["verdict"] for row in rows].count(name) for name in ("better", "worse"))
    sides = (words("figure.backtests.better"), words("figure.backtests.worse"))
    title, fields = words("figure.axis.score_difference"), ("case", "difference_text", "interval", "visits")
    chart = draw_differences(rows, [one.case for one in scored], title, sides, NO_CHANGE, fields, theme)
    counts = {
        "better": show_count(better),
        "worse": show_count(worse),
        "cases": show_count(len(scored)),
        "unclear": show_count(len(scored) - better - worse),
    }
    message = words("figure.backtests.alt", **counts)
    left_out = [isolate_name(one.case) for one in document.backtests if one.difference is None]
    caption = (
        words("figure.backtests.caption"),
        words("figure.heldout.bars", level=show_level(document.study.confidence)),
        words("figure.backtests.without", names=join_names(left_out, words)) if left_out else "",
    )
    panels = [("backtests", words("figure.backtests.panel"), message, chart)]
    title = words("figure.backtests.title", **counts)
    if len(document.backtests) == 1:
        title = words("figure.backtests.title_one", verdict=words(f"figure.verdict.{rows[0]['verdict']}"))
    return make_figure("backtests", title, panels, caption, theme)


def judge(low: float | None, high: float | None) -> str:
    """Meaning of the interval of a difference of a score that is better the lower it is."""
    return "better" if high is not None and high < 0 else "worse" if low is not None and low > 0 else "unclear"


def _backtest_row(one: BacktestPart, words: Words) -> dict[str, Any]:
    assert one.difference is not None
    interval = show_range(one.low, one.high, show_loss_difference, words)
    return {
        "case": one.case,
        "difference": shorten(one.difference),
        "difference_text": show_loss_difference(one.difference),
        "label": show_loss_difference(one.difference),
        "interval": interval,
        "verdict": judge(one.low, one.high),
        "visits": show_count(one.visits),
        **shorten_ends(one.low, one.high),
    }
