"""Document of an inventory's forecast: forecast.json, checked plain data that needs no other file to be shown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer

from rekka.core.columns import make_row, rows_of
from rekka.core.errors import DamagedFile, name_some
from rekka.core.machine import describe_versions
from rekka.core.ratings import Ratings
from rekka.core.validation import choose_remedy, find_invalid
from rekka.fleet.eligibility import LONG_UNSEEN, REASON, EligibleGroup
from rekka.fleet.inventory import Fleet
from rekka.fleet.models import ElementsFit, describe_misfit
from rekka.fleet.shocks import Shocks
from rekka.fleet.tables import SHOCKED, choose_years
from rekka.forecast.forecast import NOT_CERTIFIED
from rekka.model.survey import FitTest

FORECAST = "forecast.json"
VERSION: Final = 1
TOP = 20  # members that are listed
FIRST_ROWS = 10  # row numbers named for each reason
CASES_NAMED = 5  # cases named for each reason why there is no model
MEMBERS = "members"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AskPart(_Part):
    """Options of the forecast."""

    years: int
    threshold: int | str | None
    since: datetime.date | None
    age: str
    advance: tuple[str, ...] | None
    intervals: str
    level: float
    draws: int
    seed: int
    member_intervals: bool
    only: tuple[str, ...] | None
    unseen: str | None = None  # written where it was given: earlier versions do not know it

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = write(self)
        return {name: value for name, value in plain.items() if name != "unseen" or value is not None}


class UsedModel(_Part):
    """Model, and the members that were forecast with it.

    ``refit`` is there where a study chose elements of histories: the model then stands in for that of the study.
    """

    case: str
    file: str
    sha256: str
    scaling: str
    n_states: int
    labels: tuple[str, ...] | None
    covariates: tuple[str, ...]
    advancing: tuple[str, ...]
    training_rows: int
    certified: bool
    chosen: bool = True  # False for the default's fit, where the study chose nothing
    verdict: str
    reasons: tuple[str, ...]
    intervals: str
    why: str | None  # why there are no intervals
    threshold: int
    threshold_label: str | None = None
    members: int
    there: int  # of them at the threshold or worse when last seen
    unseen: int = 0  # of them last inspected long ago
    interval: float | None = None  # usual years between two visits, by which that is judged
    clock: str | None = None  # where in an interval the fit took what advances: middle or start
    lag_years: float | None = None  # that it is behind; None where the mean interval is not known
    fit_test: FitTest | None = None  # None where it was not made
    refit: ElementsFit | None = None

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = write(self)
        return {name: value for name, value in plain.items() if name != "refit" or value is not None}

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.n_states)

    @property
    def misfit(self) -> str | None:
        """Sentence that the model does not describe its data, where its test of fit rejects."""
        return describe_misfit(self.case, self.fit_test, self.labels)


class ExcludedPart(_Part):
    """Members, or records of none, that were not forecast for one reason; the first rows of them."""

    reason: str
    count: int
    what: str
    rows: tuple[int, ...]


class RemarkPart(_Part):
    """Remark, and the number of members of a case that it applies to."""

    case: str
    remark: str
    count: int


class TotalPart(_Part):
    """Members in a state, or in a state or worse, after so many years: a row of network.csv."""

    scope: str
    case: str
    year: int
    date: datetime.date | None
    what: str
    state: int | None
    label: str | None
    members: int
    expected: float
    share: float
    low: float | None
    high: float | None
    predicted_low: float | None
    predicted_high: float | None
    certified: bool
    chosen: bool = True
    predicted_shock_low: float | None = None  # both are written where shocks were asked for
    predicted_shock_high: float | None = None
    unimproved: float | None = None  # expected without small repairs, where a model has such

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain, optional = write(self), (*SHOCKED, "unimproved")
        return {name: value for name, value in plain.items() if name not in optional or value is not None}


class ShockPart(_Part):
    """Errors that all members of a case share, and what their size rests on: ``Shocks``."""

    case: str
    sigma: float | None
    origins: tuple[int, ...] = ()
    years: tuple[int, ...] = ()
    rows: int = 0
    why: str | None = None

    @property
    def shocks(self) -> Shocks:
        """Value that these are the fields of."""
        return Shocks(**self.model_dump(exclude={"case"}))


class MemberRisk(_Part):
    """Member among the soonest to be at the threshold or worse, or last inspected long ago."""

    rank: int | None  # None for those that were last inspected long ago
    bridge_id: str
    case: str
    member: str | None = None
    row: int
    last_seen: datetime.date | None = None
    state: int
    label: str | None = None
    threshold: int
    threshold_label: str | None = None
    reached: tuple[float, ...]  # in the years of ``ForecastFile.shown``
    reached_low: float | None = None  # at the end
    reached_high: float | None = None
    mean_years: float | None
    mean_years_low: float | None = None
    mean_years_high: float | None = None
    median_years: float | None
    years_10: float | None
    years_90: float | None
    median_calendar_year: int | None = None
    remark: str | None
    certified: bool
    chosen: bool = True


class LeftOutPart(_Part):
    """Case of the inventory without a model: its members are in no total."""

    case: str
    reason: str
    members: int


class ForecastFile(_Part):
    """Whole forecast. ``base`` is the day of year 0; ``watermark`` a warning over every figure."""

    format: Literal["rekka-forecast"] = "rekka-forecast"
    version: Literal[1] = VERSION
    watermark: str | None
    source: str  # the run, model file or folder of models
    inventory: str
    base: datetime.date | None
    dated: bool
    shown: tuple[int, ...]  # the years of ``MemberRisk.reached``
    asked: AskPart
    members: int
    there: int
    unseen: int = 0  # members last inspected long ago; in the totals, but not among the risks
    outside: int  # members whose covariates leave the range of the training rows
    aside: tuple[ExcludedPart, ...]
    left_out: tuple[LeftOutPart, ...] = ()
    remarks: tuple[RemarkPart, ...]
    understood: tuple[str, ...]  # how the inventory was read
    notes: tuple[str, ...]
    models: tuple[UsedModel, ...]
    network: tuple[TotalPart, ...]
    risks: tuple[MemberRisk, ...]
    long_unseen: tuple[MemberRisk, ...] = ()  # the first of those last inspected long ago
    shocks: tuple[ShockPart, ...] = ()  # where a wider band was asked for
    files: tuple[str, ...] = ()
    sources: dict[str, str] = {}  # SHA-256 of the inventory's files
    versions: dict[str, str] = {}

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = write(self)
        return {name: value for name, value in plain.items() if name != "shocks" or value}

    @property
    def horizon(self) -> int:
        """Last year of the forecast."""
        return self.asked.years


def describe_fleet(
    fleet: Fleet,
    source: str,
    *,
    notes: Sequence[str] = (),
    only: Sequence[str] | None = None,
    top: int = TOP,
    files: Sequence[str] = (),
    sources: Mapping[str, str] | None = None,
) -> ForecastFile:
    """Describe a forecast as plain data; ``source`` says where the models come from."""
    members, eligible, options = fleet.members, fleet.eligible, fleet.options
    return ForecastFile(
        watermark=describe_watermark(fleet),
        source=source,
        inventory=eligible.members.name,
        base=eligible.base,
        dated=eligible.members.dated,
        shown=tuple(choose_years(options.years)),
        asked=AskPart(
            **asdict(replace(options, member_intervals=fleet.member_intervals)), only=tuple(only) if only else None
        ),
        members=len(members),
        there=int(members["there"].sum()),
        unseen=int(_select_unseen(members).height),
        outside=int(members["outside"].sum()),
        aside=list_aside(fleet),
        left_out=tuple(
            LeftOutPart(case=case, reason=reason, members=len(eligible.aside.filter(case=case)))
            for case, reason in eligible.missing.items()
        ),
        remarks=tuple(
            RemarkPart(case=case, remark=remark, count=count)
            for case, counts in fleet.remarks.items()
            for remark, count in counts.items()
        ),
        understood=eligible.members.notes,
        notes=(*notes, *fleet.notes),
        models=tuple(_describe_model(group) for group in eligible.groups),
        network=rows_of(TotalPart, fleet.network),
        risks=_list_risks(members.filter(pl.col("rank").is_not_null()), options.years, top),
        long_unseen=_list_risks(_select_unseen(members), options.years, top),
        shocks=tuple(
            ShockPart(case=group.case, **asdict(group.shocks)) for group in eligible.groups if group.shocks
        ),
        files=tuple(files),
        sources=dict(sources or {}),
        versions=describe_versions(),
    )


def describe_watermark(fleet: Fleet) -> str | None:
    """Warning over every figure where a model is not certified."""
    cases = [group.case for group in fleet.eligible.groups if not group.model.certified]
    return f"{NOT_CERTIFIED} ({', '.join(cases)})." if cases else None


def list_aside(fleet: Fleet) -> tuple[ExcludedPart, ...]:
    """Reasons why members or records were excluded: of reading, then of eligibility, the most frequent first."""
    eligible = fleet.eligible
    cases: dict[str, list[str]] = {}
    for case, reason in eligible.missing.items():
        cases.setdefault(reason, []).append(case)
    named = {reason: f"{name_some(some, CASES_NAMED)}: {reason}" for reason, some in cases.items()}
    read = eligible.members.aside.sort("count", "reason", descending=[True, False])
    own = (
        eligible.aside.with_columns(pl.col(REASON).replace(named))
        .group_by(REASON)
        .agg(pl.len().alias("count"), pl.col("row").sort().head(FIRST_ROWS).alias("rows"))
        .sort("count", REASON, descending=[True, False])
        .with_columns(what=pl.lit(MEMBERS))
    )
    return (*rows_of(ExcludedPart, read), *rows_of(ExcludedPart, own))


def _describe_model(group: EligibleGroup) -> UsedModel:
    fit = group.fit
    own = {
        "labels": None if group.ratings.numbered and not group.model.labels else group.ratings.labels,
        "scaling": fit.scaling.method,
        "advancing": group.ageing.names,
        "training_rows": fit.n_rows,
        "verdict": fit.certificate.headline,
        "reasons": fit.certificate.reasons,
        "intervals": group.uncertainty.kind,
        "why": group.uncertainty.why,
        "members": len(group.rows),
        "there": int(group.there.sum()),
        "unseen": int(group.unseen.sum()),
        "clock": fit.clock.kind if group.ageing.names else None,
        "lag_years": None if fit.clock.mean_years is None else float(group.ageing.lag.max(initial=0.0)),
    }
    return make_row(UsedModel, own, group, group.model, fit)


def _select_unseen(members: pl.DataFrame) -> pl.DataFrame:
    """Members that were last inspected long ago, in the order of the table."""
    return members.filter(LONG_UNSEEN) if LONG_UNSEEN in members.columns else members.clear()


def _list_risks(members: pl.DataFrame, years: int, top: int) -> tuple[MemberRisk, ...]:
    """First members of a table."""
    reached = [f"reached_{year}" for year in choose_years(years)]
    names = {f"reached_{years}_{side}": f"reached_{side}" for side in ("low", "high")}
    table = members.head(top).with_columns(pl.concat_list(reached).alias("reached")).rename(names, strict=False)
    return rows_of(MemberRisk, table)


def load_forecast(path: str | Path) -> ForecastFile:
    """Load the forecast of a folder, or of its forecast.json."""
    file = Path(path)
    file = file / FORECAST if file.is_dir() else file
    try:
        return ForecastFile.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise DamagedFile(
            f"There is no forecast {file.parent.name}/{file.name}. Make one with rekka forecast.", file=str(file)
        ) from None
    except ValidationError as error:
        where, message = find_invalid(error)
        raise DamagedFile(
            f"{file.name} is not a forecast of version {VERSION}: {where}: {message}. "
            f"{choose_remedy(error, VERSION, 'Make it again with rekka forecast.')}",
            file=str(file),
        ) from None
