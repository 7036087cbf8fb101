"""Parts of a document that stand by themselves: calibration, stability, fitted models, audit, provenance."""

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

from rekka.checks.doctor import check_transitions
from rekka.checks.engine import Finding, leave_said
from rekka.core.numerics import quiet
from rekka.data.partition import PARTS, Partition
from rekka.evaluation.calibration import Calibration
from rekka.model.fit import Fit
from rekka.model.serial import load_model
from rekka.model.survey import survey_covariates
from rekka.report.document import (
    AuditPart,
    BinPart,
    CalibrationPart,
    CountPart,
    Covariate,
    DoctorPart,
    ModelPart,
    OutcomePart,
    ProvenancePart,
    SharePart,
    StabilityPart,
)
from rekka.report.expectations import expect
from rekka.report.forecast_parts import CaseForecast
from rekka.report.hazards import list_coefficients, list_ratios, list_years
from rekka.study.models import offer_model
from rekka.study.plan import StudyPlan
from rekka.study.rows import StudyRows
from rekka.study.stability import Stability
from rekka.study.study import Study
from rekka.study.trial import Case, Key, Trial, Value

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
