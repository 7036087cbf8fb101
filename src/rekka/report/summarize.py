"""A study summarized: every number that its report shows, gathered once in a document.

    ratio_k = theta_k(x + step e_c) / theta_k(x)         at typical covariates x, for any operator

Typical is the median of the training rows. Intervals of hazards and ratios come from the covariance of the
coefficients, by the delta method in the log hazard. A typical member is forecast from state 1 for ``HORIZON``
years, its age advancing by the year: bands come from draws of the coefficients, intervals of effects from the
delta method. A new member is one of age 0, otherwise typical. A fit that is no certified maximum has neither bands
nor intervals.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PureWindowsPath
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel

import rekka
from rekka.checks.doctor import check_transitions
from rekka.checks.engine import Finding, leave_said
from rekka.core.columns import finite, make_row, missing, rows_of
from rekka.core.errors import OutsideTrainingRange
from rekka.core.numerics import quiet
from rekka.data.partition import PARTS, Partition
from rekka.data.values import Scale
from rekka.evaluation.calibration import Calibration
from rekka.fleet.elements import find_trend
from rekka.fleet.models import ElementsFit
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.effects import Effect, marginal_effects, round_step
from rekka.forecast.forecast import (
    AT_REST,
    Cohort,
    Forecast,
    ForecastOptions,
    check_threshold,
    forecast_rows,
    make_cohort,
    years_until,
)
from rekka.forecast.matrices import Matrix, transition_matrices
from rekka.forecast.profiles import Profile, find_central, profile_covariate
from rekka.forecast.uncertainty import DELTA, NONE, NORMAL
from rekka.model.fit import Fit
from rekka.model.records import Records
from rekka.model.serial import load_model
from rekka.model.survey import survey_covariates
from rekka.model.tables import LARGEST, check_units, coefficient_table, hazard_table, ratio_interval
from rekka.report.document import (
    NOT_YET,
    Answer,
    AuditPart,
    BacktestPart,
    BinPart,
    BothPart,
    CalibrationPart,
    CaseForecast,
    CasePart,
    CoefficientPart,
    CountPart,
    Covariate,
    DoctorPart,
    Document,
    EffectPart,
    FindingPart,
    FloorPart,
    MatrixPart,
    MethodPart,
    ModelPart,
    NetworkPart,
    NewPart,
    Number,
    OutcomePart,
    PassagePart,
    PresetPart,
    ProfilePart,
    ProvenancePart,
    RatioPart,
    SelectionPart,
    SharePart,
    StabilityPart,
    StudyPart,
    TrendPart,
    VerdictPart,
    YearsPart,
)
from rekka.report.trust import judge_all
from rekka.study.checks.registry import check_study
from rekka.study.choice import Choice
from rekka.study.confirmation import Confirmed, name_choice
from rekka.study.explanations import find_reason, list_same
from rekka.study.models import offer_model
from rekka.study.plan import PRESETS, StudyPlan
from rekka.study.rows import StudyRows
from rekka.study.stability import Stability
from rekka.study.study import NOT_CHOSEN, Study
from rekka.study.tables import EXACT, TrialRow
from rekka.study.trial import Case, Key, Trial

Array = NDArray[np.float64]
HORIZON = 30  # years: what a plan of maintenance looks ahead, and the same for every case
FIRST_STEP = 0.1  # years of the life of a new member
OLDEST = 100  # years: no curve of a new member goes on beyond this age
MATRIX_YEARS = (1.0, 5.0)  # what management systems take, and the common time between inspections
DRAWS = 500  # of the coefficients, for bands
PASSAGE_DRAWS = 200  # for years until a state, which take most of the time
POINTS = 13  # of a profile: a picture needs no more
PERCENT = 5  # of the training rows between two values of a rug
HERE = "."  # the folder that a study file is in
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # all but tabs and ends of lines
UNITS = {  # of the columns that rekka makes itself: docs/data.md says what they are measured in
    "age_at_inspection_1": "years",
    "bridge_length": "metres",
    "bridge_width": "metres",
    "bridge_area": "square_metres",
    "traffic_mean": "vehicles_a_day",
}
STEPS = {"age_at_inspection_1": 10.0, "traffic_mean": 1000.0}  # what engineers speak of
PLAIN_LOSS = "no_covariates_log_loss"
BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"

Calibrations = Mapping[tuple[str, str], Calibration]  # by preset and case


def list_coefficients(fit: Fit, level: float) -> tuple[CoefficientPart, ...]:
    """Every coefficient with its interval."""
    found = coefficient_table(fit, None, level).rename({"ci_low": "low", "ci_high": "high"})
    return rows_of(CoefficientPart, found.filter(pl.col("state").is_not_null()))  # those of the hazards


def list_ratios(fit: Fit, typical: Array, steps: Mapping[str, float], level: float) -> tuple[RatioPart, ...]:
    """The hazard with one step more of each covariate, relative to that at typical values."""
    found: list[RatioPart] = []
    for place, name in enumerate(fit.covariates):
        before, step = typical.copy(), steps.get(name, 1.0)
        category = fit.coding.find(name)
        if category is not None:  # a level against the reference
            before[[fit.covariates.index(term) for term in category.terms]] = 0.0
        more = before.copy()
        more[place] += step
        ends = zip(("ratio", "low", "high"), ratio_interval(fit, before, more, level), strict=True)
        frame = pl.DataFrame({"state": range(1, fit.n_states), **dict(ends)})
        found += rows_of(RatioPart, frame.with_columns(covariate=pl.lit(name), step=step))
    return tuple(found)


def list_years(fit: Fit, typical: Array, level: float) -> tuple[YearsPart, ...]:
    """Hazard and mean years in each state at typical covariates."""
    with np.errstate(all="ignore"):
        return rows_of(YearsPart, hazard_table(fit, typical[None], level))


def expect(
    fit: Fit,
    typical: Array,
    *,
    level: float,
    seed: int,
    certified: bool,
    labels: Sequence[str] | None = None,
    threshold: int | None = None,
) -> CaseForecast | None:
    """All that is forecast for raw covariates ``typical`` (p,); None where a hazard at them is no number."""
    if not _has_hazards(fit, typical):
        return None
    options = _choose_draws(level, seed, certified=certified)
    known = threshold is not None and 1 < threshold <= fit.n_states
    threshold = check_threshold(threshold if known else None, fit.n_states, labels)
    cohort = _make_cohort(fit, typical, 1, options)
    found = forecast_rows(cohort, HORIZON, threshold)
    matrices = transition_matrices(fit, typical, MATRIX_YEARS, options=options)
    return CaseForecast(
        threshold=threshold,
        level=level,
        advancing=cohort.ageing.names,
        seen=_list_seen(cohort),
        **_list_years(found, certified=certified),
        passages=expect_years(fit, typical, threshold, level=level, seed=seed, certified=certified),
        matrices=tuple(_describe_matrix(one) for one in matrices),
        effects=list_effects(fit, typical, threshold, ForecastOptions(DELTA if certified else NONE, level)),
        profiles=_list_profiles(fit, typical, threshold, ForecastOptions(DELTA if certified else NONE, level)),
        clock=fit.clock.kind if cohort.ageing.names else None,
        lag=None if fit.clock.mean_years is None else float(cohort.ageing.lag.max(initial=0.0)),
        new=expect_new(fit, typical, threshold, level=level, seed=seed, certified=certified),
    )


def expect_new(
    fit: Fit, typical: Array, threshold: int, *, level: float, seed: int, certified: bool
) -> NewPart | None:
    """Forecast a member of age 0 with otherwise typical covariates (p,), up to the oldest of the training rows.

    None where the model has no age, or where its hazards at age 0 are no numbers.
    """
    new = _make_new(fit, typical)
    if new is None:
        return None
    cohort = _make_cohort(fit, new, 1, _choose_draws(level, seed, certified=certified))
    oldest = max(_list_seen(cohort).values(), default=0.0)
    found = forecast_rows(cohort, min(max(HORIZON, math.ceil(oldest)), OLDEST), threshold)
    (passage,) = expect_years(fit, new, threshold, level=level, seed=seed, certified=certified, starts=1)
    columns = _list_years(found, certified=certified)
    own = {name: columns[name] for name in NewPart.model_fields if name != "passage"}
    return NewPart(**own, passage=passage)


def expect_years_of_new(
    fit: Fit, typical: Array, threshold: int, *, level: float, seed: int, certified: bool
) -> PassagePart | None:
    """Years of a new member until a threshold, for covariates (p,) but the age; None where they are no numbers."""
    new = _make_new(fit, typical) if plan_ageing(fit).moves else typical
    if new is None or (new is typical and not _has_hazards(fit, new)):
        return None
    return expect_years(fit, new, threshold, level=level, seed=seed, certified=certified, starts=1)[0]


def _make_new(fit: Fit, typical: Array) -> Array | None:
    """Covariates (p,) of a member of age 0; None where the model has no age, or no hazards at it."""
    ageing = plan_ageing(fit)
    new = typical.copy()
    new[ageing.columns] = 0.0
    if not ageing.moves:
        return None
    try:  # the first step, whose age is in its middle: Box-Cox takes no age of 0
        known = _has_hazards(fit, ageing.model_input(new[None], 0.0, FIRST_STEP)[0])
    except OutsideTrainingRange:
        return None
    return new if known else None


def _has_hazards(fit: Fit, x: Array) -> bool:
    """Whether the hazards at covariates (p,) are numbers."""
    with np.errstate(all="ignore"):
        eta = fit.log_hazards(x[None])
    return bool(np.isfinite(eta).all() and (np.abs(eta) <= LARGEST).all())


def expect_years(
    fit: Fit,
    typical: Array,
    threshold: int,
    *,
    level: float,
    seed: int,
    certified: bool,
    starts: int | None = None,
) -> tuple[PassagePart, ...]:
    """Years until a threshold for covariates (p,), from each better rating or the first ``starts``."""
    options = _choose_draws(level, seed, PASSAGE_DRAWS, certified=certified)
    return tuple(list_passages(_make_cohort(fit, typical, starts or threshold - 1, options), threshold))


def _choose_draws(level: float, seed: int, draws: int = DRAWS, *, certified: bool) -> ForecastOptions:
    """Options with draws of the coefficients; with none where they are no maximum."""
    return ForecastOptions(NORMAL if certified else NONE, level, draws, seed)


def _make_cohort(fit: Fit, typical: Array, starts: int, options: ForecastOptions) -> Cohort:
    """A typical member in each of the first states."""
    return make_cohort(fit, np.arange(starts, dtype=np.int64), np.tile(typical, (starts, 1)), options)


def _list_seen(cohort: Cohort) -> dict[str, float]:
    """The largest of the training rows, of the covariates that advance."""
    course = cohort.ageing
    if cohort.fit.survey is None:
        return {}
    return {name: float(course.high[place]) for name, place in zip(course.names, course.columns, strict=True)}


def _list_years(found: Forecast, *, certified: bool) -> dict[str, Any]:
    """The columns of the one member, by year."""
    bands = [f"{name}_{end}" for name in ("expected", "reached") for end in ("low", "high")]
    ends = {name: getattr(found, name)[0].tolist() for name in ("predicted_low", "predicted_high")}
    return {
        "years": found.years.tolist(),
        "reached": np.minimum(found.reached[0], 1.0).tolist(),
        **{name: getattr(found, name)[0].tolist() for name in ("probability", "expected", "outside")},
        **{name: _numbers(getattr(found, name)[0]) for name in bands},
        **{name: tuple(some) if certified else (None,) * found.years.size for name, some in ends.items()},
    }


def list_passages(cohort: Cohort, threshold: int) -> Iterator[PassagePart]:
    """Years until the threshold, of each member of a cohort."""
    unknown = {} if cohort.uncertainty.kind != NONE else dict.fromkeys(("predicted_low", "predicted_high"))
    for row in years_until(cohort, threshold, ()).iter_rows(named=True):
        own = {name: missing((row | unknown)[name]) for name in PassagePart.model_fields}
        yield PassagePart(**own)


def _describe_matrix(found: Matrix) -> MatrixPart:
    arrays = {name: tuple(map(_numbers, getattr(found, name))) for name in ("probability", "low", "high")}
    return MatrixPart.model_validate({"years": found.years, **arrays})


def list_effects(fit: Fit, typical: Array, threshold: int, options: ForecastOptions) -> tuple[EffectPart, ...]:
    """Effects of each covariate on the median years from the best rating."""
    if not fit.covariates:
        return ()
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    found = marginal_effects(fit, options, threshold=threshold, at=at)
    return tuple(_describe_effect(one) for one in found.effects)


def _describe_effect(one: Effect) -> EffectPart:
    figures = {
        "years_before": one.median_before,
        "years_after": one.median_after,
        "difference": one.median_difference,
    }
    ends = (("", "value"), ("_low", "low"), ("_high", "high"))
    known = {f"{name}{end}": missing(getattr(some, of)) for name, some in figures.items() for end, of in ends}
    own = {name: getattr(one.change, name) for name in ("covariate", "amount", "times", "level", "instead")}
    own |= {"before": one.before, "after": one.after}
    if one.change.level is not None:
        own |= {"amount": 1.0, "before": 0.0, "after": 1.0}
    return EffectPart(**own, **known)


def _list_profiles(fit: Fit, typical: Array, threshold: int, options: ForecastOptions) -> tuple[ProfilePart, ...]:
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    # intervals of the years along a profile are not shown, and take their time
    alone = replace(AT_REST, intervals=NONE, level=options.level)
    numbers = (name for name in fit.covariates if name not in fit.coding.terms)
    grids = (profile_covariate(fit, name, alone, threshold=threshold, at=at) for name in numbers)
    return tuple(_describe_profile(fit, typical, one, options) for one in grids)


def _describe_profile(fit: Fit, typical: Array, found: Profile, options: ForecastOptions) -> ProfilePart:
    """Some points of the profile over the central training rows, or over all where these have one value."""
    low, high = found.rug[0], found.rug[-1]
    first, last = find_central(found.rug)
    values = np.linspace(first, last, POINTS) if first < last else np.linspace(low, high, POINTS)
    x = np.tile(typical, (values.size, 1))
    x[:, fit.covariates.index(found.covariate)] = values
    with np.errstate(all="ignore"):
        hazards = hazard_table(fit, x, options.level)
    shape = (values.size, fit.n_states - 1)
    blank = np.full(shape, np.nan)
    known, names = options.intervals != NONE, ("hazard_low", "hazard_high")
    ends = {name: hazards[name].to_numpy().reshape(shape) if known else blank for name in names}
    return ProfilePart(
        covariate=found.covariate,
        values=tuple(values.tolist()),
        outside=tuple(((values < low) | (values > high)).tolist()),
        rug=tuple(found.rug[::PERCENT].tolist()),
        typical=found.typical,
        hazard=tuple(map(_numbers, hazards["hazard"].to_numpy().reshape(shape))),
        **{name: tuple(map(_numbers, values)) for name, values in ends.items()},
    )


def _numbers(values: Iterable[float]) -> tuple[Number, ...]:
    return tuple(missing(float(value)) for value in values)


def clean(value: Any) -> Any:
    """A value without control characters, which no page, table or picture may hold."""
    if isinstance(value, str):
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {clean(name): clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    return value


def describe_calibration(study: Study, preset: str, case: str, found: Calibration) -> CalibrationPart:
    """Observed and expected rows of what was chosen for a case, and the test of fit."""
    choice = study.choice(case, preset)
    told = found.to_dict()
    own = {
        "preset": preset,
        "case": case,
        "method": (choice.chosen if choice else None) or "",
        "by_start": [make_row(CountPart, {"state": row["start"]}, row) for row in told["by_start"]],
        "by_end": [make_row(CountPart, {"state": row["end"]}, row) for row in told["by_end"]],
        "reliability": [make_row(BinPart, row) for row in told["reliability"]],
        "causes": study.ratings.reword_all(tuple(found.causes)),
    }
    return make_row(CalibrationPart, own, told["goodness"], told, found)


def describe_stability(found: Stability) -> StabilityPart:
    """Shares of the draws in which each method is chosen and certified."""
    keys = ["preset", "case", "kind", "method"]
    shares = found.selection.join(found.methods, on=keys, maintain_order="left")
    own = {"shares": rows_of(SharePart, shares), "remarks": found.remarks()}
    return make_row(StabilityPart, own, found)


def describe_model(
    study: Study,
    case: Case,
    preset: str,
    rows: StudyRows,
    covariates: Sequence[Covariate],
    refit: ElementsFit | None = None,
    threshold: int | None = None,
) -> ModelPart:
    """The chosen model's hazards, or the default's where nothing was chosen and its fit is certified.

    ``refit`` is the model with the chosen elements of histories, which forecasts in place of it; ``threshold`` is
    that of the network's forecast, if there is one.
    """
    offer = offer_model(study, case.name, preset)
    key, trial, text = offer.key, offer.trial, offer.text
    if trial is None or text is None:
        return _without_figures(key, trial, study, chosen=offer.chosen)
    fit, _, _ = load_model(text if refit is None else refit.model)
    train = rows.frame.filter(case=case.name, part="train")
    train = fit.coding.code(train.lazy()).collect() if fit.coding else train
    x = train.select(fit.covariates).to_numpy().astype(np.float64).reshape(len(train), len(fit.covariates))
    if fit.survey is None:  # a run folder of an earlier version
        fit = replace(fit, survey=survey_covariates(x, fit.covariates))
    typical = np.median(x, axis=0)
    for category in fit.coding.categories:
        for term, value in category.place(category.typical).items():
            typical[fit.covariates.index(term)] = value
    described = fit.describe(typical)
    level, seed = study.plan.guard.confidence, study.plan.study.seed
    with quiet():
        own = {
            "chosen": offer.chosen,
            "certified": True,
            "reason": None,
            "rows": fit.n_rows,
            "elements": None if refit is None else refit.elements,
            "trend": describe_trend(fit.records, level),
            "errors": fit.inference.kind,
            "scale": "native" if fit.native else fit.scaling.method,
            "typical": {name: value for name, value in described.items() if not isinstance(value, str)},
            "levels": {name: value for name, value in described.items() if isinstance(value, str)},
            "references": {term: one.reference for one in fit.coding.categories for term in one.terms},
            "coefficients": list_coefficients(fit, level),
            "ratios": list_ratios(fit, typical, {one.name: one.step for one in covariates}, level),
            "years": list_years(fit, typical, level),
            "forecast": expect(
                fit,
                typical,
                level=level,
                seed=seed,
                certified=trial.certified,
                labels=study.ratings.labels,
                threshold=threshold,
            ),
        }
        found = make_row(ModelPart, own, key, fit.inference, fit)
    return found if trial.certified else _without_intervals(found)


def _without_figures(key: Key, trial: Trial | None, study: Study, *, chosen: bool) -> ModelPart:
    nothing: dict[str, Any] = {"typical": {}, "coefficients": (), "ratios": (), "years": ()}
    reason = None if trial is None or trial.reason is None else study.ratings.reword(trial.reason)
    return make_row(ModelPart, nothing | {"chosen": chosen, "certified": False, "reason": reason}, key)


def _without_intervals(found: ModelPart) -> ModelPart:
    """Where the optimizer stopped, and no more: away from a maximum the curvature measures no uncertainty."""
    blank: dict[str, Any] = {"certified": False, "errors": None}
    for name in ("coefficients", "ratios", "years"):
        blank[name] = tuple(one.model_copy(update=_blank_ends(one)) for one in getattr(found, name))
    return found.model_copy(update=blank)


def _blank_ends(part: BaseModel) -> dict[str, None]:
    names = type(part).model_fields
    return dict.fromkeys(name for name in names if name.endswith(("low", "high")) or name in ("se", "p"))


def describe_trend(records: Records | None, level: float) -> TrendPart | None:
    """The trend that all hazards share, where the model has one."""
    found = None if records is None else find_trend(records, level)
    return None if found is None else TrendPart(**found._asdict())


def describe_finding(finding: Finding) -> dict[str, Any]:
    """A finding with its English, and as the language files tell it."""
    found: dict[str, Any] = finite(
        finding.to_dict() | {"say": finding.say, "do": finding.do, "told": finding.places}
    )
    return found


def describe_audit(study: Study, rows: StudyRows, said: Sequence[Finding]) -> AuditPart:
    """Records of the input, their outcomes, and findings of the data doctor on the study's rows.

    What the findings of the study have ``said`` of a component is not said twice.
    """
    parts = {part: rows.frame.filter(part=part) for part in PARTS}
    held = Partition(**parts, scheme=rows.scheme)
    scale = None if study.reading is None or not study.reading.labels else Scale(study.reading.labels, "")
    found = check_transitions(rows.frame, covariates=rows.covariates, partition=held, scale=scale).findings
    parts_of = (describe_finding(one) for one in leave_said(found, said))
    return AuditPart(
        records=sum(count for _, _, count in rows.audit) or None,
        outcomes=tuple(OutcomePart(outcome=o, reason=r, count=n) for o, r, n in rows.audit),
        notes=study.notes,
        findings=tuple(make_row(DoctorPart, one) for one in parts_of),
    )


def describe_provenance(study: Study, begun: Mapping[str, Any] | None, again: str | None) -> ProvenancePart:
    """Files, versions and seeds of a study, without the folders of whoever ran it: a report is handed over."""
    known: Mapping[str, Any] = begun or {}
    data: Mapping[str, Any] = known.get("data", {})
    plan = study.plan
    command = known.get("command")
    own = {
        "command": None if command is None else shlex.join(map(leave_folders_out, shlex.split(command))),
        "again": again,
        "plan": _bring_together(plan).to_toml(),
        "files": {leave_folders_out(name): digest for name, digest in data.get("files", {}).items()},
    }
    seeds = {"partition": plan.partition.seed, "start": plan.study.seed, "inventory": plan.data.seed}
    return make_row(ProvenancePart, own, known, data, {"seeds": seeds, "versions": {}, "machine": {}})


def _bring_together(plan: StudyPlan) -> StudyPlan:
    """The plan as a file that lies beside the tables."""
    joins = [join | {"file": leave_folders_out(join["file"])} for join in plan.data.mapping.get("join", [])]
    data = {
        "source": tuple(leave_folders_out(source) for source in plan.data.source),
        "mapping": plan.data.mapping | ({"join": joins} if joins else {}),
    }
    return plan.model_copy(update={"data": plan.data.model_copy(update=data)})


def leave_folders_out(path: str) -> str:
    """The last part of a path, whatever system it is of; '..', the folder that the run is in, becomes '.'."""
    name = PureWindowsPath(path).name
    return HERE if name in ("", "..") else name


def summarize(
    study: Study,
    *,
    calibrations: Calibrations | None = None,
    stability: Stability | None = None,
    network: NetworkPart | None = None,
    no_network: str | None = None,
    backtests: Sequence[BacktestPart] = (),
    refits: Mapping[str, ElementsFit] | None = None,
    provenance: Mapping[str, Any] | None = None,
    units: Mapping[str, float] | None = None,
    title: str | None = None,
    again: str | None = None,
) -> Document:
    """All that the report of a study says.

    ``provenance`` is the run folder's; ``calibrations`` are those of chosen models on training rows; ``units`` are
    the steps of hazard ratios, by covariate; ``again`` is the command that repeats the study; ``network`` is the
    forecast of an inventory, ``no_network`` what stood against one, ``backtests`` the tests of earlier forecasts,
    ``refits`` the models that forecast in place of those of the study, by case.
    """
    preset = study.main_preset
    rows = study.read_rows()
    covariates = _list_covariates(rows, units)
    findings = check_study(study, calibrations=_leave_tested(study, calibrations))
    goals = {} if network is None else {one.case: one.threshold for one in network.years}
    document = Document(
        rekka=rekka.__version__,
        title=title or next(iter(_name_sources(study, provenance)), None),
        labels=None if study.reading is None else study.reading.labels,
        study=_describe_study(study, preset, covariates, _name_sources(study, provenance)),
        cases=tuple(map(describe_case, study.described)),
        answers=tuple(_answer(study, case, preset) for case in study.described),
        findings=tuple(FindingPart(**describe_finding(finding)) for finding in findings),
        trials=rows_of(TrialRow, study.trials),
        methods=list_methods(study),
        selection=tuple(_list_selection(study)),
        verdicts=tuple(_list_verdicts(study)),
        floor=rows_of(FloorPart, study.floor),
        presets=rows_of(BothPart, study.presets),
        hypotheses=tuple(replace(one, figures=finite(one.figures)) for one in study.hypotheses),
        calibration=tuple(
            describe_calibration(study, preset, case, one) for (preset, case), one in (calibrations or {}).items()
        ),
        stability=None if stability is None else describe_stability(stability),
        models=tuple(
            describe_model(
                study, case, preset, rows, covariates, (refits or {}).get(case.name), goals.get(case.name)
            )
            for case in study.described
        ),
        network=network,
        no_network=no_network,
        backtests=tuple(backtests),
        audit=describe_audit(study, rows, findings),
        provenance=describe_provenance(study, provenance, again),
    )
    judged = document.model_copy(update={"trust": judge_all(document)})
    return Document.model_validate(clean(judged.model_dump()))


def outline(study: Study) -> Document:
    """The answers of a study, and nothing for which its rows are needed: for rows that memory does not hold."""
    preset = study.main_preset
    given = study.plan.study
    return Document.model_construct(
        labels=None if study.reading is None else study.reading.labels,
        study=StudyPart.model_construct(
            planned=study.planned,
            done=len(study.results),
            choices_planned=study.planned // len(given.methods),
            choices_done=len(study.choices),
        ),
        cases=tuple(map(describe_case, study.described)),
        answers=tuple(_answer(study, case, preset) for case in study.described),
        findings=tuple(FindingPart(**describe_finding(finding)) for finding in check_study(study)),
        models=(),
        network=None,
        no_network=None,
        trust=(),
    )


def _leave_tested(study: Study, calibrations: Calibrations | None) -> Calibrations | None:
    """The calibrations of models that were not tested with the choice: the others have their test already."""
    tested = {(one.preset, one.case) for one in study.choices if one.fit_test is not None}
    return {key: one for key, one in (calibrations or {}).items() if key not in tested} or None


def _name_sources(study: Study, begun: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The files by their names, without their folders: a report is handed over."""
    files = begun["data"]["files"] if begun else study.plan.data.source
    names = (leave_folders_out(name) for name in files)
    return tuple(dict.fromkeys(name for name in names if name != HERE))


def _list_covariates(rows: StudyRows, units: Mapping[str, float] | None) -> tuple[Covariate, ...]:
    numbers = [name for name in rows.covariates if name not in rows.levels]
    given = check_units(units, numbers) if units else {}
    train = rows.frame.filter(part="train")
    found = []
    for name in rows.covariates:
        if name in rows.levels:
            found.append(Covariate(name=name, unit=None, step=1.0))
            continue
        step = given[name] if units and name in units else STEPS.get(name) or _find_step(train[name])
        found.append(Covariate(name=name, unit=UNITS.get(name), step=step))
    return tuple(found)


def _find_step(values: pl.Series) -> float:
    """A round number within the middle half of the values."""
    quarter, half = (values.quantile(q, interpolation="linear") for q in (0.25, 0.75))
    return round_step(float((half or 0.0) - (quarter or 0.0)))


def _describe_study(
    study: Study, preset: str, covariates: tuple[Covariate, ...], sources: tuple[str, ...]
) -> StudyPart:
    plan = study.plan.study
    costs = plan.costs()
    presets = [make_row(PresetPart, {"name": name, "cost": costs[name]}, PRESETS[name]) for name in plan.presets]
    own = {
        "kind": study.plan.data.kind,
        "sources": sources,
        "default": study.plan.guard.default,
        "select_on": plan.judges_on,
        "presets": presets,
        "preset": preset,
        "covariates": covariates,
        "done": len(study.results),
        "choices_planned": study.planned // len(plan.methods),
        "choices_done": len(study.choices),
        "confidence": study.plan.guard.confidence,
        "clock": plan.clock if study.clock.names else None,
    }
    return make_row(StudyPart, own, plan, study)


def describe_case(case: Case) -> CasePart:
    """Rows, size and baselines of a case."""
    own = {
        "case": case.name,
        "persistence_accuracy": case.persistence.accuracy,
        "no_covariates_accuracy": case.no_covariates.accuracy,
        "no_covariates_log_loss": case.no_covariates.log_loss,
    }
    return make_row(CasePart, own, case)


def _answer(study: Study, case: Case, preset: str) -> Answer:
    """The method to use in a case, with its confirmed scores, else with those it was chosen by."""
    why = next((r["why"] for r in study.selection.filter(preset=preset, case=case.name).to_dicts()), NOT_CHOSEN)
    choice = study.choice(case.name, preset)
    own: dict[str, Any] = {"case": case.name, "why": why, "confirmed": False, "same_model": ()}
    own["reason"] = NOT_YET if choice is None else find_reason(choice, study.plan.guard, study.trials_of(choice))
    own["said"] = None if choice is None else study.explain(choice)
    if choice is None or choice.chosen is None:
        return make_row(Answer, own)
    result, remark = _find_look(study, choice)
    own |= {"method": choice.chosen, "same_model": list_same(choice), "remark": remark}
    if result is None:
        verdict = next(one for one in choice.verdicts if one.method == choice.chosen)
        own |= {"scored_on": choice.judged_on, "accuracy": verdict.accuracy, "log_loss": verdict.log_loss}
        return make_row(Answer, own, describe_case(case).model_dump(include={"persistence_accuracy", PLAIN_LOSS}))
    low, high = result.no_covariates_low, result.no_covariates_high
    own |= {
        "confirmed": result.seen is None,
        "scored_on": "golden",
        "beats_persistence": _judge_difference(result.persistence_low, result.persistence_high, higher=True),
        "beats_no_covariates": _judge_difference(low, high, higher=False),
    }
    return make_row(Answer, own, result)


def _find_look(study: Study, choice: Choice) -> tuple[Confirmed | None, str | None]:
    """The last look at the golden rows with what was chosen, or why there is none."""
    for look in reversed(study.looks):
        for result in look.results:
            if (result.case, result.preset, result.method) == (choice.case, choice.preset, choice.chosen):
                return result, None
    refused = [look.refused.get(name_choice(choice)) for look in reversed(study.looks)]
    return None, next((why for why in refused if why), None)


def _judge_difference(low: float, high: float, *, higher: bool) -> str | None:
    """Better or worse where the interval leaves 0 out."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if low <= 0 <= high:
        return NOT_SHOWN
    return BETTER if (low > 0) == higher else WORSE


def list_methods(study: Study) -> tuple[MethodPart, ...]:
    """Each preset and method over all cases."""
    pareto = study.trials.group_by("preset", "method", maintain_order=True).agg(pl.col("pareto").sum())
    parts = rows_of(MethodPart, study.methods.join(pareto, on=["preset", "method"], maintain_order="left"))
    shown = {one.method: {"also": one.also, "spread": one.spread} for one in study.equals}
    shown |= {name: {"same_as": one.method} for one in study.equals for name in one.also}
    return tuple(
        part.model_copy(update=shown.get(part.method, {})) if part.preset == EXACT else part for part in parts
    )


def _list_selection(study: Study) -> Iterator[SelectionPart]:
    for row in study.selection.iter_rows(named=True):
        trials = study.trials.filter(pl.col("eligible"), preset=row["preset"], case=row["case"])
        scored = trials.filter(pl.col("log_loss").is_finite()).sort("log_loss", maintain_order=True)
        losses = dict(scored.select("method", "log_loss").rows())  # the lowest first
        choice = study.choice(row["case"], row["preset"])
        own = {
            "log_loss": losses.get(row["chosen"]),
            "lowest_log_loss": next(iter(losses.values()), None),
            "lowest_method": next(iter(losses), None),
            "said": None if choice is None else study.explain(choice),
        }
        yield make_row(SelectionPart, own, row)


def _list_verdicts(study: Study) -> Iterator[VerdictPart]:
    said = (study.explain(choice, verdict) for choice in study.choices for verdict in choice.verdicts)
    for row, one in zip(study.verdicts.iter_rows(named=True), said, strict=True):
        yield make_row(VerdictPart, {"said": one}, row)
