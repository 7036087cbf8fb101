"""A study, summarized: every number that a report shows, gathered once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

import rekka
from rekka.evaluation.calibration import Calibration
from rekka.forecast.changes import round_step
from rekka.model.tables import check_units
from rekka.report.document import (
    NOT_YET,
    Answer,
    BothPart,
    CasePart,
    Covariate,
    Document,
    FindingPart,
    FloorPart,
    HypothesisPart,
    MethodPart,
    PresetPart,
    SelectionPart,
    StudyPart,
    TrialPart,
    VerdictPart,
)
from rekka.report.forecast_parts import NetworkPart
from rekka.report.parts import (
    HERE,
    clean,
    describe_audit,
    describe_calibration,
    describe_finding,
    describe_model,
    describe_provenance,
    describe_stability,
    leave_folders_out,
    plain,
    rows_of,
)
from rekka.study.checks.registry import check_study
from rekka.study.choosing import Choice
from rekka.study.confirming import Confirmed, name_choice
from rekka.study.plan import PRESETS
from rekka.study.rows import StudyRows
from rekka.study.rulings import find_reason, list_same
from rekka.study.stability import Stability
from rekka.study.study import NOT_CHOSEN, Study
from rekka.study.trial import Case

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
