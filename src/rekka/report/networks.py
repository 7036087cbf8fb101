"""The network of a report: the forecast of an inventory in the run folder, or one of the study's own members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from rekka.core.columns import make_row
from rekka.core.errors import InputError, RunFolderError
from rekka.fleet.document import FORECAST, ForecastFile, MemberRisk, TotalPart, describe_fleet, load_forecast
from rekka.fleet.eligibility import InventoryOptions, find_eligible
from rekka.fleet.inventory import forecast_fleet
from rekka.fleet.members import read_members
from rekka.fleet.models import Models, match_models
from rekka.fleet.tables import NETWORK, REACHED
from rekka.report.document import AsidePart, NetworkPart, NetworkYear, RiskPart
from rekka.report.summarize import HORIZON
from rekka.study.models import choose_models
from rekka.study.study import Study

FOLDER = "forecast"  # in the run folder, where rekka forecast RUN INVENTORY writes
Kind = Literal["inventory", "study"]
INVENTORY: Kind = "inventory"
STUDY: Kind = "study"
TOP = 20  # members by risk
OTHER_MODELS = "the forecast in the run folder was made with other models than the study has now, and is left out"
WHY_NOT = "The members of this study cannot be forecast"


@dataclass(frozen=True)
class Found:
    """The network of a study, or None; ``why`` says what stood against it, where something did."""

    network: NetworkPart | None
    why: str | None = None


def find_network(study: Study, *, make: bool = True) -> Found:
    """The forecast in the run folder; else, if it is to be made, that of the study's members."""
    models = _choose(study, include_unchosen=True)  # a forecast may have been asked for with them
    file = None if study.folder is None else study.folder / FOLDER / FORECAST
    stale = False
    if models is not None and file is not None and file.is_file():
        found = load_forecast(file)
        if _is_of(found, models):
            return Found(describe_network(found, INVENTORY, models))
        stale = True
    try:
        made = forecast_study(study) if make else None
    except InputError as error:
        return Found(None, f"{WHY_NOT}: {error}")
    if made is None:
        return Found(None, OTHER_MODELS if stale else None)
    network = describe_network(made, STUDY, models)
    return Found(network.model_copy(update={"notes": (*network.notes, OTHER_MODELS)}) if stale else network)


def forecast_study(study: Study) -> ForecastFile | None:
    """The study's members, each as its last transition ended, with the models that were chosen.

    None where nothing was chosen; rows that do not say which transition of a member is the last are an error.
    """
    models = _choose(study)
    if models is None:
        return None
    options = InventoryOptions(years=HORIZON, level=study.plan.guard.confidence, member_intervals=False)
    rows = study.read_rows()
    members = read_members(rows.frame, columns={"categories": list(rows.levels)})
    eligible = find_eligible(
        members, match_models(models, members.frame["case"].unique().sort().to_list()), options
    )
    return describe_fleet(forecast_fleet(eligible), models.name, top=TOP)


def _is_of(found: ForecastFile, models: Models) -> bool:
    """True if a forecast was made with these models."""
    ours = {one.case: one.sha256 for one in models.models}
    return all(ours.get(one.case) == one.sha256 for one in found.models)


def describe_network(found: ForecastFile, kind: Kind, models: Models | None) -> NetworkPart:
    """A forecast as the part of a document; the study's models say which were chosen: older files do not."""
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
        labels=max((one.labels or () for one in found.models), key=len, default=()) or None,
        **_copy(found, "horizon", "members", "there", "unseen", "outside", "notes"),
    )


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
