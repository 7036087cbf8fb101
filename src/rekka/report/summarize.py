"""A fitted model as an engineer reads it: coefficients, ratios per step, years in each state.

    ratio_k = theta_k(x + step e_c) / theta_k(x)         at typical covariates x, for any operator

Typical is the median of the training rows, and here nothing advances with the years: ``expectations`` has that.
Intervals come from the covariance of the coefficients, by the delta method in the log hazard.

What is to be expected of a typical member: a fit as the forecast part of a document.

    fit, medians of its training rows, state 1 -> HORIZON years, age advancing by the year

Bands come from draws of the coefficients; effects, which compare two medians at the same coefficients, from the
delta method. A fit that is no certified maximum has neither.

Parts of a document that stand by themselves: calibration, stability, fitted models, audit, provenance.

A study, summarized: every number that a report shows, gathered once.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PureWindowsPath
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

import rekka
from rekka.checks.doctor import check_transitions
from rekka.checks.engine import Finding, leave_said
from rekka.core.numerics import quiet
from rekka.data.partition import PARTS, Partition
from rekka.evaluation.calibration import Calibration
from rekka.forecast.ageing import ADVANCES
from rekka.forecast.effects import Effect, marginal_effects, round_step
from rekka.forecast.forecast import Doubt, Forecast, Journey, check_threshold, forecast_rows, set_out, years_until
from rekka.forecast.matrices import Matrix, transition_matrices
from rekka.forecast.profiles import Profile, profile_covariate
from rekka.forecast.uncertainty import DELTA, NONE, NORMAL
from rekka.model.fit import Fit
from rekka.model.serial import load_model
from rekka.model.survey import survey_covariates
from rekka.model.tables import LARGEST, check_units, coefficient_table, hazard_table, ratio_interval
from rekka.report.document import (
    NOT_YET,
    Answer,
    AuditPart,
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
    HypothesisPart,
    MatrixPart,
    MethodPart,
    ModelPart,
    NetworkPart,
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
    TrialPart,
    VerdictPart,
    YearsPart,
)
from rekka.study.checks.registry import check_study
from rekka.study.choice import Choice
from rekka.study.confirmation import Confirmed, name_choice
from rekka.study.explanations import find_reason, list_same
from rekka.study.models import offer_model
from rekka.study.plan import PRESETS, StudyPlan
from rekka.study.rows import StudyRows
from rekka.study.stability import Stability
from rekka.study.study import NOT_CHOSEN, Study
from rekka.study.trial import Case, Key, Trial, Value

Array = NDArray[np.float64]


def list_coefficients(fit: Fit, level: float) -> tuple[CoefficientPart, ...]:
    """Every coefficient with its interval."""
    rows = coefficient_table(fit, None, level).iter_rows(named=True)
    return tuple(
        CoefficientPart(
            state=row["state"],
            term=row["term"],
            estimate=_finite(row["estimate"]),
            se=_finite(row["se"]),
            low=_finite(row["ci_low"]),
            high=_finite(row["ci_high"]),
            p=_finite(row["p"]),
        )
        for row in rows
    )


def list_ratios(fit: Fit, typical: Array, steps: Mapping[str, float], level: float) -> tuple[RatioPart, ...]:
    """The hazard with one step more of each covariate, relative to that at typical values."""
    found = []
    for place, name in enumerate(fit.covariates):
        more = typical.copy()
        more[place] += steps[name]
        for state, figures in enumerate(zip(*ratio_interval(fit, typical, more, level), strict=True), start=1):
            ratio, low, high = map(_finite, figures)
            found.append(RatioPart(state=state, covariate=name, step=steps[name], ratio=ratio, low=low, high=high))
    return tuple(found)


def list_years(fit: Fit, typical: Array, level: float) -> tuple[YearsPart, ...]:
    """Hazard and mean years in each state at typical covariates."""
    names = tuple(name for name in YearsPart.model_fields if name != "state")
    with np.errstate(all="ignore"):
        rows = hazard_table(fit, typical[None], level).to_dicts()
    return tuple(YearsPart(state=row["state"], **{name: _finite(row[name]) for name in names}) for row in rows)


def _finite(value: float | None) -> Number:
    return None if value is None or not math.isfinite(value) else float(value)


HORIZON = 30  # years: what a plan of maintenance looks ahead, and the same for every case
MATRIX_YEARS = (1.0, 5.0)  # what management systems take, and the common time between inspections
DRAWS = 500  # of the coefficients, for bands
PASSAGE_DRAWS = 200  # for years until a state, which take most of the time
EVERY = 6  # of the points of a profile: a picture needs no more
PERCENT = 5  # of the training rows between two values of a rug


def expect(fit: Fit, typical: Array, *, level: float, seed: int, certified: bool) -> CaseForecast | None:
    """All that is forecast for raw covariates ``typical`` (p,); None where a hazard at them is no number."""
    eta = fit.log_hazards(typical[None])
    if not np.isfinite(eta).all() or (np.abs(eta) > LARGEST).any():
        return None
    kind = NORMAL if certified else NONE
    threshold = check_threshold(None, fit.n_states)
    journey = _set_out(fit, typical, 1, Doubt(kind, level, DRAWS, seed))
    found = forecast_rows(journey, HORIZON, threshold)
    passages = Doubt(kind, level, PASSAGE_DRAWS, seed)
    matrices = transition_matrices(fit, typical, MATRIX_YEARS, age=ADVANCES, doubt=Doubt(kind, level, DRAWS, seed))
    return CaseForecast(
        threshold=threshold,
        level=level,
        advancing=journey.course.names,
        seen=_list_seen(journey),
        **_list_years(found, certified=certified),
        passages=_list_passages(_set_out(fit, typical, threshold - 1, passages), threshold),
        matrices=tuple(_describe_matrix(one) for one in matrices),
        effects=_list_effects(fit, typical, threshold, Doubt(DELTA if certified else NONE, level)),
        profiles=_list_profiles(fit, typical, threshold, Doubt(DELTA if certified else NONE, level)),
        clock=fit.clock.kind if journey.course.names else None,
        lag=None if fit.clock.mean_years is None else float(journey.course.lag.max(initial=0.0)),
    )


def _set_out(fit: Fit, typical: Array, starts: int, doubt: Doubt) -> Journey:
    """A typical member in each of the first states."""
    return set_out(
        fit, np.arange(starts, dtype=np.int64), np.tile(typical, (starts, 1)), age=ADVANCES, doubt=doubt
    )


def _list_seen(journey: Journey) -> dict[str, float]:
    """The largest of the training rows, of the covariates that advance."""
    course = journey.course
    if journey.fit.survey is None:
        return {}
    return {name: float(course.high[place]) for name, place in zip(course.names, course.columns, strict=True)}


def _list_years(found: Forecast, *, certified: bool) -> dict[str, Any]:
    """The columns of the one member, by year."""
    bands = {
        f"{name}_{end}": _numbers(getattr(found, f"{name}_{end}")[0])
        for name in ("expected", "reached")
        for end in ("low", "high")
    }
    predicted = {
        name: tuple(getattr(found, name)[0].tolist()) if certified else (None,) * found.years.size
        for name in ("predicted_low", "predicted_high")
    }
    return (
        {
            "years": tuple(found.years.tolist()),
            "probability": tuple(map(tuple, found.probability[0].tolist())),
            "expected": tuple(found.expected[0].tolist()),
            "reached": tuple(np.minimum(found.reached[0], 1.0).tolist()),
            "outside": tuple(found.outside[0].tolist()),
        }
        | bands
        | predicted
    )


def _list_passages(journey: Journey, threshold: int) -> tuple[PassagePart, ...]:
    rows = years_until(journey, threshold, ()).iter_rows(named=True)
    names = [name for name in PassagePart.model_fields if name != "start"]
    certain = () if journey.spread.kind != NONE else ("predicted_low", "predicted_high")
    return tuple(
        PassagePart(start=row["start"], **{name: None if name in certain else _known(row[name]) for name in names})
        for row in rows
    )


def _describe_matrix(found: Matrix) -> MatrixPart:
    return MatrixPart(
        years=found.years,
        probability=tuple(map(tuple, found.probability.tolist())),
        low=tuple(map(_numbers, found.low)),
        high=tuple(map(_numbers, found.high)),
    )


def _list_effects(fit: Fit, typical: Array, threshold: int, doubt: Doubt) -> tuple[EffectPart, ...]:
    if not fit.covariates:
        return ()
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    found = marginal_effects(fit, threshold=threshold, at=at, age=ADVANCES, doubt=doubt)
    return tuple(_describe_effect(one) for one in found.effects)


def _describe_effect(one: Effect) -> EffectPart:
    figures: dict[str, Number] = {}
    for name, figure in (
        ("years_before", one.median_before),
        ("years_after", one.median_after),
        ("difference", one.median_difference),
    ):
        figures |= {
            name: _known(figure.value),
            f"{name}_low": _known(figure.low),
            f"{name}_high": _known(figure.high),
        }
    return EffectPart(
        covariate=one.change.covariate,
        amount=one.change.amount,
        times=one.change.times,
        before=one.before,
        after=one.after,
        **figures,
    )


def _list_profiles(fit: Fit, typical: Array, threshold: int, doubt: Doubt) -> tuple[ProfilePart, ...]:
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    alone = Doubt(NONE, doubt.level)  # intervals of the years along a profile are not shown, and take their time
    grids = (profile_covariate(fit, name, threshold=threshold, at=at, doubt=alone) for name in fit.covariates)
    return tuple(_describe_profile(fit, typical, one, doubt) for one in grids)


def _describe_profile(fit: Fit, typical: Array, found: Profile, doubt: Doubt) -> ProfilePart:
    """Some points of the profile, and more where the training rows lie close together."""
    low, high = found.rug[0], found.rug[-1]
    values = np.unique([*found.values[::EVERY], found.values[-1], *found.rug[:: 2 * PERCENT]])
    x = np.tile(typical, (values.size, 1))
    x[:, fit.covariates.index(found.covariate)] = values
    with np.errstate(all="ignore"):
        hazards = hazard_table(fit, x, doubt.level)
    shape = (values.size, fit.n_states - 1)
    blank = np.full(shape, np.nan)
    known, names = doubt.intervals != NONE, ("hazard_low", "hazard_high")
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
    return tuple(_known(float(value)) for value in values)


def _known(value: float | None) -> Number:
    """A number, infinite or not; None for what is none."""
    return None if value is None or math.isnan(value) else float(value)


HERE = "."  # the folder that a study file is in
Part = TypeVar("Part", bound=Value)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # all but tabs and ends of lines


def rows_of(kind: type[Part], frame: pl.DataFrame) -> tuple[Part, ...]:
    """The rows of a frame as values, of the columns that these have."""
    names = [name for name in kind.model_fields if name in frame.columns]
    return tuple(kind(**plain(row)) for row in frame.select(names).iter_rows(named=True))


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """No number that is none, at any depth: JSON has no word for it."""
    return {name: _plain_value(value) for name, value in values.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return plain({str(name): inner for name, inner in value.items()})
    if isinstance(value, list | tuple):
        return [_plain_value(inner) for inner in value]
    return str(value) if isinstance(value, str) else value


def clean(value: Any) -> Any:
    """The same without control characters, which no page, table or picture may hold."""
    if isinstance(value, str):
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {clean(name): clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    return value


def describe_calibration(study: Study, preset: str, case: str, found: Calibration) -> CalibrationPart:
    """Whether the forecasts of what was chosen for a case come true."""
    choice = study.choice(case, preset)
    told = found.to_dict()
    goodness = told["goodness"]
    return CalibrationPart(
        preset=preset,
        case=case,
        method=(choice.chosen if choice else None) or "",
        rows=found.rows,
        by_start=_list_counts(told["by_start"], "start"),
        by_end=_list_counts(told["by_end"], "end"),
        reliability=tuple(
            BinPart(**{name: row[name] for name in BinPart.model_fields}) for row in told["reliability"]
        ),
        **{name: goodness[name] for name in ("statistic", "critical", "p_value", "replicates", "kind")},
        at_floor=found.at_floor,
        at_floor_share=told["at_floor_share"],
        causes=found.causes,
    )


def _list_counts(rows: Iterable[Mapping[str, Any]], state: str) -> tuple[CountPart, ...]:
    names = ("observed", "expected", "residual")
    return tuple(
        CountPart(state=row[state], rows=row.get("rows"), **{name: row[name] for name in names}) for row in rows
    )


def describe_stability(found: Stability) -> StabilityPart:
    """How often each method is chosen and certified over the draws."""
    keys = ["preset", "case", "kind", "method"]
    shares = found.selection.join(found.methods, on=keys, maintain_order="left")
    return StabilityPart(
        kinds=found.kinds,
        resamples=found.resamples,
        seed=found.seed,
        shares=rows_of(SharePart, shares),
        remarks=found.remarks(),
    )


def describe_model(
    study: Study, case: Case, preset: str, rows: StudyRows, covariates: Sequence[Covariate]
) -> ModelPart:
    """The chosen model's hazards, or the default's where nothing was chosen and its fit is certified."""
    offer = offer_model(study, case.name, preset)
    key, trial, text = offer.key, offer.trial, offer.text
    if trial is None or text is None:
        return _without_figures(key, trial, chosen=offer.chosen)
    fit, _, _ = load_model(text)
    train = rows.frame.filter(case=case.name, part="train")
    x = train.select(fit.covariates).to_numpy().astype(np.float64).reshape(len(train), len(fit.covariates))
    if fit.survey is None:  # a run folder of an earlier version
        fit = replace(fit, survey=survey_covariates(x, fit.covariates))
    typical = np.median(x, axis=0)
    steps = {one.name: one.step for one in covariates}
    level, seed = study.plan.guard.confidence, study.plan.study.seed
    with quiet():
        future = expect(fit, typical, level=level, seed=seed, certified=trial.certified)
        found = _with_figures(key, fit, typical, steps, level, future, chosen=offer.chosen)
    return found if trial.certified else _without_intervals(found)


def _without_figures(key: Key, trial: Trial | None, *, chosen: bool) -> ModelPart:
    own: dict[str, Any] = dict.fromkeys(ModelPart.model_fields)
    nothing: dict[str, Any] = {"typical": {}, "coefficients": (), "ratios": (), "years": ()}
    reason = None if trial is None else trial.reason
    told = {"chosen": chosen, "certified": False, "reason": reason}
    return ModelPart(**own | key.model_dump() | nothing | told)


def _without_intervals(found: ModelPart) -> ModelPart:
    """Where the optimizer stopped, and no more: away from a maximum the curvature measures no uncertainty."""
    blank = {"se": None, "p": None, "low": None, "high": None}
    missing: dict[str, Any] = {
        "coefficients": tuple(one.model_copy(update=blank) for one in found.coefficients),
        "ratios": tuple(one.model_copy(update={"low": None, "high": None}) for one in found.ratios),
        "years": tuple(
            one.model_copy(update=dict.fromkeys(("hazard_low", "hazard_high", "years_low", "years_high")))
            for one in found.years
        ),
    }
    return found.model_copy(update={"certified": False, "errors": None, **missing})


def _with_figures(
    key: Key,
    fit: Fit,
    typical: NDArray[np.float64],
    steps: Mapping[str, float],
    level: float,
    future: CaseForecast | None,
    *,
    chosen: bool,
) -> ModelPart:
    return ModelPart(
        **key.model_dump(),
        chosen=chosen,
        certified=True,
        reason=None,
        rows=fit.n_rows,
        n_states=fit.n_states,
        log_likelihood=_plain_value(float(fit.inference.log_likelihood)),
        aic=_plain_value(float(fit.inference.aic)),
        bic=_plain_value(float(fit.inference.bic)),
        errors=fit.inference.kind,
        scale="native" if fit.native else fit.scaling.method,
        typical=dict(zip(fit.covariates, typical.tolist(), strict=True)),
        coefficients=list_coefficients(fit, level),
        ratios=list_ratios(fit, typical, steps, level),
        years=list_years(fit, typical, level),
        forecast=future,
        fit_test=fit.fit_test,
    )


def describe_finding(finding: Finding) -> dict[str, Any]:
    """A finding with its English, and as the language files tell it."""
    return plain(finding.to_dict() | {"say": finding.say, "do": finding.do, "told": finding.told})


def describe_audit(study: Study, rows: StudyRows, said: Sequence[Finding]) -> AuditPart:
    """What came in, what became of it, and what the data doctor says of the study's rows.

    What the findings of the study have ``said`` of a component is not said twice.
    """
    parts = {part: rows.frame.filter(part=part) for part in PARTS}
    held = Partition(**parts, scheme=rows.scheme)
    found = check_transitions(rows.frame, covariates=rows.covariates, partition=held).findings
    parts_of = (describe_finding(one) for one in leave_said(found, said))
    return AuditPart(
        records=sum(count for _, _, count in rows.audit) or None,
        outcomes=tuple(OutcomePart(outcome=o, reason=r, count=n) for o, r, n in rows.audit),
        notes=study.notes,
        findings=tuple(DoctorPart(**{name: one[name] for name in DoctorPart.model_fields}) for one in parts_of),
    )


def describe_provenance(study: Study, begun: Mapping[str, Any] | None, again: str | None) -> ProvenancePart:
    """What the study was run on and with, without the folders of whoever ran it: a report is handed over."""
    known: Mapping[str, Any] = begun or {}
    data: Mapping[str, Any] = known.get("data", {})
    plan = study.plan
    seeds = {"partition": plan.partition.seed, "start": plan.study.seed, "inventory": plan.data.seed}
    command = known.get("command")
    return ProvenancePart(
        begun=known.get("begun"),
        command=None if command is None else shlex.join(map(leave_folders_out, shlex.split(command))),
        again=again,
        plan=_bring_together(plan).to_toml(),
        files={leave_folders_out(name): digest for name, digest in data.get("files", {}).items()},
        rows_sha256=data.get("rows_sha256"),
        seeds=known.get("seeds", seeds),
        versions=known.get("versions", {}),
        machine=known.get("machine", {}),
    )


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


UNITS = {  # of the columns that rekka makes itself: docs/data.md says what they are measured in
    "age_at_inspection_1": "years",
    "bridge_length": "metres",
    "bridge_width": "metres",
    "bridge_area": "square_metres",
    "traffic_mean": "vehicles_a_day",
}
STEPS = {"age_at_inspection_1": 10.0, "traffic_mean": 1000.0}  # what engineers speak of
BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"

Calibrations = Mapping[tuple[str, str], Calibration]  # by preset and case


def summarize(
    study: Study,
    *,
    calibrations: Calibrations | None = None,
    stability: Stability | None = None,
    network: NetworkPart | None = None,
    no_network: str | None = None,
    provenance: Mapping[str, Any] | None = None,
    units: Mapping[str, float] | None = None,
    title: str | None = None,
    again: str | None = None,
) -> Document:
    """All that the report of a study says.

    ``provenance`` is the run folder's; ``calibrations`` are those of chosen models on training rows; ``units`` are
    the steps of hazard ratios, by covariate; ``again`` is the command that repeats the study; ``network`` is the
    forecast of an inventory, ``no_network`` what stood against one.
    """
    preset = study.main_preset
    rows = study.read_rows()
    covariates = _list_covariates(rows, units)
    findings = check_study(study, calibrations=_leave_tested(study, calibrations))
    document = Document(
        rekka=rekka.__version__,
        title=title or _name_study(study, provenance),
        study=_describe_study(study, preset, covariates, _name_sources(study, provenance)),
        cases=tuple(_describe_case(case) for case in study.described),
        answers=tuple(_answer(study, case, preset) for case in study.described),
        findings=tuple(FindingPart(**describe_finding(finding)) for finding in findings),
        trials=rows_of(TrialPart, study.trials),
        methods=_list_methods(study),
        selection=_list_selection(study),
        verdicts=_list_verdicts(study),
        floor=rows_of(FloorPart, study.floor),
        presets=rows_of(BothPart, study.presets),
        hypotheses=tuple(HypothesisPart(**plain(vars(one))) for one in study.hypotheses),
        calibration=tuple(
            describe_calibration(study, preset, case, one) for (preset, case), one in (calibrations or {}).items()
        ),
        stability=None if stability is None else describe_stability(stability),
        models=tuple(describe_model(study, case, preset, rows, covariates) for case in study.described),
        network=network,
        no_network=no_network,
        audit=describe_audit(study, rows, findings),
        provenance=describe_provenance(study, provenance, again),
    )
    return Document.model_validate(clean(document.model_dump()))


def _leave_tested(study: Study, calibrations: Calibrations | None) -> Calibrations | None:
    """The calibrations of models that were not tested with the choice: the others have their test already."""
    tested = {(one.preset, one.case) for one in study.choices if one.fit_test is not None}
    return {key: one for key, one in (calibrations or {}).items() if key not in tested} or None


def _name_study(study: Study, begun: Mapping[str, Any] | None) -> str | None:
    return next(iter(_name_sources(study, begun)), None)


def _name_sources(study: Study, begun: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The files by their names, without their folders: a report is handed over."""
    files = begun["data"]["files"] if begun else study.plan.data.source
    names = (leave_folders_out(name) for name in files)
    return tuple(dict.fromkeys(name for name in names if name != HERE))


def _list_covariates(rows: StudyRows, units: Mapping[str, float] | None) -> tuple[Covariate, ...]:
    given = check_units(units, rows.covariates) if units else {}
    train = rows.frame.filter(part="train")
    found = []
    for name in rows.covariates:
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
    presets = tuple(
        PresetPart(name=name, words=PRESETS[name].words, cost=costs[name], eligible=PRESETS[name].eligible)
        for name in plan.presets
    )
    return StudyPart(
        kind=study.plan.data.kind,
        sources=sources,
        scheme=study.scheme,
        rule=plan.rule,
        default=study.plan.guard.default,
        select_on=plan.judges_on,
        methods=plan.methods,
        presets=presets,
        preset=preset,
        covariates=covariates,
        planned=study.planned,
        done=len(study.results),
        choices_planned=study.planned // len(plan.methods),
        choices_done=len(study.choices),
        confidence=study.plan.guard.confidence,
        seed=plan.seed,
        clock=plan.clock if study.clock.names else None,
    )


def _describe_case(case: Case) -> CasePart:
    own = {name: getattr(case, name) for name in CasePart.model_fields if hasattr(case, name)}
    own |= {
        "case": case.name,
        "persistence_accuracy": case.persistence.accuracy,
        "no_covariates_accuracy": case.no_covariates.accuracy,
        "no_covariates_log_loss": case.no_covariates.log_loss,
    }
    return CasePart(**plain(own))


def _answer(study: Study, case: Case, preset: str) -> Answer:
    """What to use in a case: confirmed where it was, else as it was judged."""
    why = next((r["why"] for r in study.selection.filter(preset=preset, case=case.name).to_dicts()), NOT_CHOSEN)
    choice = study.choice(case.name, preset)
    own: dict[str, Any] = dict.fromkeys(Answer.model_fields)
    own |= {"case": case.name, "why": why, "confirmed": False, "same_model": ()}
    own["reason"] = NOT_YET if choice is None else find_reason(choice, study.plan.guard, study.trials_of(choice))
    own["said"] = None if choice is None else study.explain(choice)
    if choice is None or choice.chosen is None:
        return Answer(**plain(own))
    own |= {"method": choice.chosen, "same_model": tuple(list_same(choice))}
    result, remark = _find_look(study, choice)
    own["remark"] = remark
    if result is None:
        verdict = next(one for one in choice.verdicts if one.method == choice.chosen)
        own |= {"scored_on": choice.judged_on, "accuracy": verdict.accuracy, "log_loss": verdict.log_loss}
        own |= {"persistence_accuracy": case.persistence.accuracy}
        return Answer(**plain(own | {"no_covariates_log_loss": case.no_covariates.log_loss}))
    own |= {name: value for name, value in result.model_dump().items() if name in Answer.model_fields}
    own |= {
        "confirmed": result.seen is None,
        "scored_on": "golden",
        "beats_persistence": _judge_difference(result.persistence_low, result.persistence_high, higher=True),
        "beats_no_covariates": _judge_difference(
            result.no_covariates_low, result.no_covariates_high, higher=False
        ),
    }
    return Answer(**plain(own))


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


def _list_methods(study: Study) -> tuple[MethodPart, ...]:
    pareto = study.trials.group_by("preset", "method", maintain_order=True).agg(pl.col("pareto").sum())
    counted = study.methods.join(pareto, on=["preset", "method"], maintain_order="left")
    return rows_of(MethodPart, counted)


def _list_selection(study: Study) -> tuple[SelectionPart, ...]:
    found = []
    for row in study.selection.iter_rows(named=True):
        trials = study.trials.filter(pl.col("eligible"), preset=row["preset"], case=row["case"])
        scored = trials.filter(pl.col("log_loss").is_finite()).sort("log_loss", maintain_order=True)
        own = scored.filter(method=row["chosen"])["log_loss"].to_list() if row["chosen"] else []
        best = scored.row(0, named=True) if len(scored) else {}
        losses = {
            "log_loss": own[0] if own else None,
            "lowest_log_loss": best.get("log_loss"),
            "lowest_method": best.get("method"),
        }
        choice = study.choice(row["case"], row["preset"])
        said = None if choice is None else study.explain(choice)
        found.append(SelectionPart(**plain(row | losses | {"said": said})))
    return tuple(found)


def _list_verdicts(study: Study) -> tuple[VerdictPart, ...]:
    said = [study.explain(choice, verdict) for choice in study.choices for verdict in choice.verdicts]
    parts = rows_of(VerdictPart, study.verdicts)
    return tuple(part.model_copy(update={"said": plain(one)}) for part, one in zip(parts, said, strict=True))
