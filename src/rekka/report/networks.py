"""The network of a report: the forecast of an inventory in the run folder, or one of the study's own members."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import polars as pl

from rekka.core.columns import make_row
from rekka.core.errors import InputError, RunFolderError
from rekka.core.language import Said, find_said
from rekka.fleet.details import RATIO, VALUE, choose_fan_years
from rekka.fleet.document import FORECAST, ForecastFile, MemberRisk, TotalPart, describe_fleet, load_forecast
from rekka.fleet.eligibility import LONG_UNSEEN, InventoryOptions, find_eligible
from rekka.fleet.found import COORDINATES, FOUND, FOUND_ON, FoundVisits
from rekka.fleet.inventory import forecast_fleet
from rekka.fleet.members import Members, read_members
from rekka.fleet.models import ElementsFit, Matched, Models, match_models
from rekka.fleet.store import DETAILS
from rekka.fleet.tables import NETWORK, REACHED
from rekka.report.document import AsidePart, HistoryYear, MembersPart, NetworkPart, NetworkYear, RiskPart
from rekka.report.summarize import HORIZON
from rekka.study.models import choose_models
from rekka.study.study import Study

FOLDER = "forecast"  # in the run folder, where rekka forecast RUN INVENTORY writes
Kind = Literal["inventory", "study"]
INVENTORY: Kind = "inventory"
STUDY: Kind = "study"
TOP = 20  # members by risk
FAR = 10.0  # times the hazard of a typical member, by the value of one covariate
MOST_KNOWN = 0.7  # share of the members that had been inspected in the first year of a history
MOST_SHOWN = 30_000  # members on a page
NEXT, THERE, APART = 0, 1, 2  # tabs of members
DIGITS, FEW_DIGITS, PLACES = 4, 3, 7  # of a member's figures, its ratios, its coordinates
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of states
OTHER_MODELS = "the forecast in the run folder was made with other models than the study has now, and is left out"
WHY_NOT = "The members of this study cannot be forecast"


@dataclass(frozen=True)
class Found:
    """The network of a study, or None; ``why`` says what stood against it, where something did."""

    network: NetworkPart | None
    why: str | None = None
    refits: Mapping[str, ElementsFit] = field(default_factory=dict)  # in place of the study's models, by case


def find_network(study: Study, *, make: bool = True) -> Found:
    """The forecast in the run folder; else, if it is to be made, that of the study's members."""
    models = _choose(study, include_unchosen=True)  # a forecast may have been asked for with them
    file = None if study.folder is None else study.folder / FOLDER / FORECAST
    stale = False
    if models is not None and file is not None and file.is_file():
        found = load_forecast(file)
        if is_forecast_of(found, models):
            network = describe_network(found, INVENTORY, models, load_details(file.parent))
            return Found(network, refits={one.case: one.refit for one in found.models if one.refit is not None})
        stale = True
    try:
        made = forecast_study(study) if make else None
    except InputError as error:
        return Found(None, f"{WHY_NOT}: {error}")
    if made is None:
        return Found(None, OTHER_MODELS if stale else None)
    document, details = made
    network = describe_network(document, STUDY, models, details)
    return Found(network.model_copy(update={"notes": (*network.notes, OTHER_MODELS)}) if stale else network)


def forecast_study(study: Study) -> tuple[ForecastFile, pl.DataFrame | None] | None:
    """The study's members, each as its last transition ended, with the models that were chosen, and their details.

    None where nothing was chosen; rows that do not say which transition of a member is the last are an error.
    """
    models = _choose(study)
    if models is None:
        return None
    members, matched, options = find_study_members(study, models)
    fleet = forecast_fleet(find_eligible(members, matched, options))
    return describe_fleet(fleet, models.name, top=TOP), fleet.details


def find_study_members(study: Study, models: Models) -> tuple[Members, Matched, InventoryOptions]:
    """The study's members, the models of their components, and how they are forecast."""
    options = InventoryOptions(years=HORIZON, level=study.plan.guard.confidence, member_intervals=False)
    rows = study.read_rows()
    members = read_members(rows.frame, columns={"categories": list(rows.levels)}, past=True)
    return members, match_models(models, members.frame["case"].unique().sort().to_list()), options


def is_forecast_of(found: ForecastFile, models: Models) -> bool:
    """True if a forecast was made with these models, or with those of the chosen elements in their place."""
    ours = {one.case: one.sha256 for one in models.models}
    return all(
        ours.get(one.case) == one.sha256
        if one.refit is None
        else (ours.get(one.case), models.elements.get(one.case)) == (one.refit.instead_of, one.refit.elements)
        for one in found.models
    )


def describe_network(
    found: ForecastFile, kind: Kind, models: Models | None, details: pl.DataFrame | None = None
) -> NetworkPart:
    """A forecast as the part of a document; the study's models say which were chosen: older files do not."""
    visits = None if details is None else FoundVisits(details)
    span = None if visits is None else visits.span
    unchosen = {one.case for one in models.models if not one.chosen} if models else set()
    return NetworkPart(
        kind=kind,
        name=Path(found.inventory).name,
        base=None if found.base is None else found.base.isoformat(),
        soon=found.shown[_find_soon(found)],
        level=found.asked.level,
        certified=found.watermark is None,
        intervals=any(one.low is not None for one in found.network),
        age=found.asked.age,
        advancing=tuple(dict.fromkeys(name for one in found.models for name in one.advancing)),
        unchosen=tuple(one.case for one in found.models if one.case in unchosen),
        left_out=tuple(one.case for one in found.left_out),
        years=tuple(_list_years(found)),
        risks=tuple(_list_risks(found, found.risks)),
        long_unseen=tuple(_list_risks(found, found.long_unseen)),
        aside=tuple(_list_aside(found)),
        there_by_case={one.case: one.there for one in found.models},
        labels=max((one.labels or () for one in found.models), key=len, default=()) or None,
        history=() if visits is None or span is None else tuple(_list_history(visits, span, found)),
        first_seen=None if span is None else span[0].isoformat(),
        last_seen=None if span is None else span[1].isoformat(),
        every=None if details is None or details.is_empty() else describe_members(details, found),
        **({} if details is None else count_bridges(details)),
        **_copy(found, "horizon", "members", "there", "unseen", "outside", "notes"),
    )


def load_details(folder: Path) -> pl.DataFrame | None:
    """Details of each member of a forecast in a folder; None of one by an earlier version."""
    file = folder / DETAILS
    return pl.read_parquet(file) if file.is_file() else None


def _list_history(visits: FoundVisits, span: tuple[date, date], found: ForecastFile) -> Iterator[HistoryYear]:
    """Counts by the end of each year, from the first one in which most members had been inspected."""
    members = {one.case: one.members for one in found.models}
    for year in range(span[0].year, span[1].year + 1):
        counts = visits.count(year)
        if counts["members"].sum() < MOST_KNOWN * sum(members.values()):
            continue
        whole = counts.select(pl.col("members", "reached").sum()).row(0)
        yield HistoryYear(case=None, year=year, members=whole[0], reached=whole[1])
        for case, known, reached in counts.rows():
            if known >= MOST_KNOWN * members.get(case, 0):
                yield HistoryYear(case=case, year=year, members=known, reached=reached)


def count_bridges(details: pl.DataFrame) -> dict[str, Any]:
    """Bridges with a member that is forecast, with one at the threshold, and with one then, as is expected."""
    none = (1 - pl.col("later").clip(0.0, 1.0)).product()
    found = details.group_by("bridge_id", maintain_order=True).agg(pl.col("there").any(), later=1 - none)
    names = {"bridges": len(found), "bridges_there": int(found["there"].sum())}
    return names | {"bridges_later": float(found["later"].sum())}


def order_members(details: pl.DataFrame) -> pl.DataFrame:
    """Details of all members with their ``tab``: those at the threshold, the worst first, then the soonest.

    A number may be within the training rows only because one of these is as far from the others: it is apart too.
    A category is not, however fast: others have it, too.
    """
    late = pl.col(LONG_UNSEEN) if LONG_UNSEEN in details.columns else pl.lit(value=False)
    far = map(_is_far, _list_numbers(details))
    apart = pl.any_horizontal(late, "outside", *far)
    tab = pl.when("there").then(THERE).when(apart).then(APART).otherwise(NEXT)
    worse = pl.when("there").then(-pl.col("state").cast(pl.Int64)).otherwise(0)
    rows = details.with_columns(tab.cast(pl.Int64).alias("tab"))
    order = [worse, "median_years", -pl.col("soon"), "bridge_id"]
    return rows.sort(order, nulls_last=True, maintain_order=True)


def describe_members(details: pl.DataFrame, found: ForecastFile) -> MembersPart:
    """All members by columns; of very many the first of each tab."""
    rows = order_members(details)
    shown = rows.filter(pl.int_range(pl.len()).over("tab") < MOST_SHOWN // 3) if len(rows) > MOST_SHOWN else rows
    cases = tuple(dict.fromkeys(one.case for one in found.models))
    thresholds = {one.case: one.threshold for one in found.models}
    covariates = tuple(name.removeprefix(VALUE) for name in shown.columns if name.startswith(VALUE))
    said, places = _list_remarks(_remark_far(shown))
    columns: dict[str, Any] = {
        "case": [cases.index(case) for case in shown["case"]],
        "bridge": shown["bridge_id"].cast(pl.String).fill_null(""),
        "seen": shown["last_seen"].cast(pl.String) if "last_seen" in shown.columns else [None] * len(shown),
        "median": shown["median_years"],
        "calendar": _take(shown, "median_calendar_year"),
        "past": [_write_past(*row) for row in shown.select(FOUND_ON, FOUND).iter_rows()],
        "fan": ["".join(_DIGITS[min(state, len(_DIGITS) - 1)] for state in one) for one in shown["fan"]],
        **{name: shown[name] for name in ("tab", "state", "soon")},
        **{name: shown[name] for name in ("member", "frailty") if name in shown.columns},
    }
    return MembersPart(
        cases=cases,
        threshold=tuple(thresholds[case] for case in cases),
        fan_years=tuple(choose_fan_years(found.asked.years)),
        covariates=covariates,
        values=tuple(_round(shown[f"{VALUE}{name}"]) for name in covariates),
        ratios=tuple(_round(_take(shown, f"{RATIO}{name}"), FEW_DIGITS) for name in covariates),
        remarks=said,
        remark=places,
        left_out=len(rows) - len(shown),
        **{name: _round(values) for name, values in columns.items()},
        **{name: _round(shown[name], PLACES) for name in COORDINATES if name in shown.columns},
    )


def _list_numbers(rows: pl.DataFrame) -> list[str]:
    """Covariates that are numbers, of those whose effect on each member is known."""
    names = [name.removeprefix(RATIO) for name in rows.columns if name.startswith(RATIO)]
    return [name for name in names if rows[f"{VALUE}{name}"].dtype.is_numeric()]


def _is_far(covariate: str) -> pl.Expr:
    """Whether a value makes a member so much faster than a typical one that it is far from those of others."""
    return (pl.col(f"{RATIO}{covariate}") > FAR).fill_null(value=False)


def _remark_far(rows: pl.DataFrame) -> pl.DataFrame:
    """Members with one more remark for each covariate whose value is far from those of other members."""
    for name in _list_numbers(rows):
        far = rows.select(_is_far(name)).to_series()
        values, ratios = rows[f"{VALUE}{name}"], rows[f"{RATIO}{name}"]
        told = [
            [*(own or ()), _describe_far(name, x, times)] if apart else own
            for own, apart, x, times in zip(rows["remarks"].to_list(), far, values, ratios, strict=True)
        ]
        rows = rows.with_columns(pl.Series("remarks", told, dtype=pl.List(pl.String)))
    return rows


def _describe_far(name: str, value: float, ratio: float) -> str:
    times = f"{float(f'{ratio:.2g}'):,.15g}"
    return f"{name} {value:,.6g} alone makes it {times} times as fast as a typical member: check it"


def _take(rows: pl.DataFrame, name: str) -> pl.Series:
    """A column, or nulls where there is none."""
    return rows[name] if name in rows.columns else pl.Series(name, [None] * len(rows), dtype=pl.Float64)


def _round(values: pl.Series | Sequence[Any], digits: int = DIGITS) -> tuple[Any, ...]:
    """Values of a column; what a person reads needs no more than so many digits."""
    if isinstance(values, pl.Series) and values.dtype.is_float():
        values = values.fill_nan(None).round_sig_figs(digits)
    return tuple(values)


def _write_past(days: Sequence[date] | None, states: Sequence[int] | None) -> str:
    """'2001.50:2,2003.42:3': the years and states of visits."""
    pairs = zip(days or (), states or (), strict=True)
    return ",".join(f"{day.year + (day.timetuple().tm_yday - 1) / 365.25:.2f}:{state}" for day, state in pairs)


def _list_remarks(rows: pl.DataFrame) -> tuple[tuple[Said, ...], tuple[tuple[int, ...], ...]]:
    """Different remarks, and the places of each member's own among them."""
    own = rows["remarks"].to_list()
    places = {text: n for n, text in enumerate(dict.fromkeys(text for some in own for text in some or ()))}
    said = tuple(json.loads(text) if text.startswith("{") else find_said(text) for text in places)
    return said, tuple(tuple(places[text] for text in some or ()) for some in own)


def _choose(study: Study, *, include_unchosen: bool = False) -> Models | None:
    """The models of a study; None where it has none."""
    try:
        return choose_models(study, study.folder, include_unchosen=include_unchosen)
    except RunFolderError:
        return None


def _list_years(found: ForecastFile) -> Iterator[NetworkYear]:
    """All cases first; where there is one case, it is all."""
    alone = not any(one.scope == NETWORK for one in found.network)
    rows = sorted(found.network, key=lambda one: one.scope != NETWORK)
    for (scope, case, year), parts in groupby(rows, key=lambda one: (one.scope, one.case, one.year)):
        own = list(parts)
        if alone:
            yield _describe_year(None, year, own)
        yield _describe_year(None if scope == NETWORK else case, year, own)


def _describe_year(case: str | None, year: int, rows: Sequence[TotalPart]) -> NetworkYear:
    reached = next(one for one in rows if one.what == REACHED)
    expected = [one.expected for one in rows if one.what != REACHED]
    own = {"case": case, "expected": expected, "reached": reached.expected, "threshold": reached.state}
    return make_row(NetworkYear, own, reached)


def _copy(part: object, *names: str) -> dict[str, Any]:
    """Fields of the same name in a forecast and in a report."""
    return {name: getattr(part, name) for name in names}


def _find_soon(found: ForecastFile) -> int:
    """The place of the first year after the beginning for which a forecast has each member."""
    return next(place for place, year in enumerate(found.shown) if year > 0)


def _list_risks(found: ForecastFile, members: Sequence[MemberRisk]) -> Iterator[RiskPart]:
    for one in members[:TOP]:
        own = {
            "bridge": one.bridge_id,
            "seen": None if one.last_seen is None else one.last_seen.isoformat(),
            "reached": one.reached[_find_soon(found)],
            "median": one.median_years,
            "calendar": one.median_calendar_year,
        }
        own |= {f"mean{end}": getattr(one, f"mean_years{end}") for end in ("", "_low", "_high")}
        yield make_row(RiskPart, own, one)


def _list_aside(found: ForecastFile) -> Iterator[AsidePart]:
    for one in found.aside:
        yield AsidePart(kind="set aside", case=None, reason=one.reason, count=one.count, what=one.what)
    for remark in found.remarks:
        yield AsidePart(kind="remark", case=remark.case, reason=remark.remark, count=remark.count, what="members")
