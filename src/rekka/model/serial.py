"""A fitted model as JSON text: complete, versioned, exact to the last bit, no pickle."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rekka.core.errors import BadOption, ModelFileError, count_of
from rekka.core.validation import choose_remedy, find_invalid
from rekka.data.categories import NO_CODING, UNSEEN, Coding
from rekka.data.reading import TableReading
from rekka.model.certificate import Certificate
from rekka.model.clock import START, Clock, make_clock
from rekka.model.coordinates import Layout
from rekka.model.family import EXPONENTIAL, FAMILIES, Family
from rekka.model.fit import Fit
from rekka.model.history_serial import RecordsPart
from rekka.model.inference import Inference, native_units
from rekka.model.solvers import Outcome
from rekka.model.survey import PERCENT, FitTest, Resampled, Survey
from rekka.scaling.serial import ScalingPart

# 2: scalings carry their range, and may be chains. 3: survey, bootstrap, case and labels. 4: clock,
# test of fit and how the table was read. 5: categories; models without them are written as version 4
VERSION: Final = 5
PLAIN_VERSION: Final = 4  # of models without categories and histories
LONGEST_NUMBER = 12  # characters of a number that a message shows
ROUNDING = 1e-6  # of a coefficient in native units, relative to the terms it is made of

Array = NDArray[np.float64]


class Saved(NamedTuple):
    """Content of a model file: a fit, its estimator's parameters, the columns it saw, and its component."""

    fit: Fit
    parameters: dict[str, Any]
    features: list[str]
    case: str | None = None
    labels: tuple[str, ...] | None = None
    reading: TableReading | None = None  # how the table was read that it was fitted to


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class _Inference(_Part):
    coefficients: list[float]
    covariance: list[list[float]]
    kind: str
    log_likelihood: float
    degrees_of_freedom: float
    aic: float
    bic: float


class _Bootstrap(_Part):
    beta: list[list[list[float]]]
    asked: int = Field(ge=1)
    seed: int = Field(ge=0)
    groups: int = Field(ge=2)


class _Clock(_Part):
    kind: Literal["middle", "start", "running"]
    advance: list[str]
    mean_years: float | None = Field(gt=0)


class ModelFile(_Part):
    """Schema of the file; None is what its version did not have yet."""

    format: Literal["rekka-model"]
    version: Literal[2, 3, 4, 5]
    parameters: dict[str, Any]
    features: list[str]
    n_states: int = Field(ge=2)
    covariates: list[str]
    layout: list[int]
    scaling: ScalingPart
    beta: list[list[float]]
    inference: _Inference
    outcome: Outcome
    certificate: Certificate
    n_rows: int
    case: str | None = None
    labels: list[str] | None = None
    survey: list[list[float]] | None = None
    bootstrap: _Bootstrap | None = None
    clock: _Clock | None = None
    fit_test: FitTest | None = None
    reading: TableReading | None = None
    family: str = EXPONENTIAL.name
    coding: Coding = NO_CODING
    records: RecordsPart | None = None

    def to_text(self) -> str:
        """The text of the file, without what earlier versions do not know where it is as they have it."""
        usual = {"family": EXPONENTIAL.name, "coding": NO_CODING, "records": None}
        return self.model_dump_json(
            indent=1, exclude={name for name in usual if getattr(self, name) == usual[name]}
        )


def choose_version(coding: Coding, *, histories: bool = False) -> int:
    """Version of the file of a model: earlier versions read models without categories and histories."""
    return VERSION if coding or histories else PLAIN_VERSION


def dump_model(
    fit: Fit,
    parameters: dict[str, Any],
    features: list[str],
    *,
    case: str | None = None,
    labels: Sequence[str] | None = None,
    reading: TableReading | None = None,
) -> str:
    """Write a fit and its estimator's parameters as JSON; ``labels`` are the states' names, best first."""
    _check_names(case, labels, fit.n_states)
    clock = {"kind": fit.clock.kind, "advance": list(fit.clock.names), "mean_years": fit.clock.mean_years}
    parts = {
        "format": "rekka-model",
        "version": choose_version(fit.coding, histories=fit.records is not None),
        "parameters": {name: value for name, value in parameters.items() if name != "family"},  # has its own place
        "features": features,
        "n_states": fit.n_states,
        "covariates": list(fit.covariates),
        "layout": fit.layout.parameter.tolist(),
        "scaling": fit.scaling.to_dict(),
        "beta": fit.beta.tolist(),
        "inference": _plain(fit.inference),
        "outcome": fit.outcome,
        "certificate": fit.certificate,
        "n_rows": fit.n_rows,
        "case": case,
        "labels": None if labels is None else list(labels),
        "survey": None if fit.survey is None else fit.survey.quantiles.tolist(),
        "bootstrap": None if fit.resampled is None else _plain(fit.resampled),
        "clock": clock,
        "fit_test": fit.fit_test,
        "reading": reading,
        "family": fit.family.name,
        "coding": fit.coding,
        "records": None if fit.records is None else RecordsPart.of(fit.records),
    }
    return ModelFile.model_validate(parts).to_text()


def _plain(value: Inference | Resampled) -> dict[str, Any]:
    """The fields of a value, arrays as lists."""
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(value).items()}


def _check_names(case: object, labels: object, n_states: int) -> None:
    if not isinstance(case, str | None):
        raise BadOption(f"case is {case!r}; a text is needed, or None.")
    known = labels if isinstance(labels, list | tuple) else ()
    if labels is not None and (len(known) < n_states or not all(isinstance(label, str) for label in known)):
        raise BadOption(f"labels is {labels!r}; a list with a text for each of {n_states} states is needed.")


def load_model(text: str) -> tuple[Fit, dict[str, Any], list[str]]:
    """Read a fit, its estimator's parameters and the names of the columns it saw."""
    saved = load_saved(text)
    return saved.fit, saved.parameters, saved.features


def load_saved(text: str) -> Saved:
    """Read all of a model file, of this version or one before."""
    _check_numbers(text)
    try:
        file = ModelFile.model_validate_json(text)
        labels = None if file.labels is None else tuple(file.labels)
        if labels is not None and len(labels) < file.n_states:
            raise ValueError(f"labels names {count_of(len(labels), 'state')}, and there are {file.n_states}")
        fit = _read_fit(file)
        _check_coefficients(fit)
        return Saved(fit, file.parameters, file.features, file.case, labels, file.reading)
    except ModelFileError:
        raise
    except ValidationError as error:
        where, message = find_invalid(error)
        raise ModelFileError(
            f"This is not a rekka model file of version 2 to {VERSION}: {where}: {message}. "
            f"{choose_remedy(error, VERSION, 'Write one with rekka fit --out, or model.to_json().')}",
            where=where,
        ) from None
    except (KeyError, ValueError, OverflowError, MemoryError) as error:
        raise ModelFileError(f"This rekka model file is damaged: {error}.") from None


def _check_numbers(text: str) -> None:
    """Refuse numbers without a finite value as a float; files hold what is infinite or undefined as texts."""
    try:
        json.loads(text, parse_int=_check_number, parse_float=_check_number, parse_constant=_check_number)
    except (json.JSONDecodeError, RecursionError):
        return  # no JSON, or too deep: the validation says so, and where


def _check_number(literal: str) -> None:
    if not math.isfinite(float(literal)):
        shown = literal if len(literal) <= LONGEST_NUMBER else f"{literal[:LONGEST_NUMBER]}..."
        raise ModelFileError(f"This rekka model file is damaged: the number {shown} is beyond any that is used.")


def _check_coefficients(fit: Fit) -> None:
    """Refuse a maximum whose coefficients are not those of its scaled covariates, or that has no variances."""
    if not fit.certificate.at_maximum:
        return
    back = native_units(fit.scaling, len(fit.covariates))
    size = np.abs(fit.beta) @ np.abs(back).T  # what rounding is measured by: terms of either sign may cancel
    if not (np.abs(fit.beta @ back.T - fit.coefficients) <= ROUNDING * size).all():
        raise ValueError("inference.coefficients are not beta in the covariates' own units")
    if (np.diag(fit.inference.covariance) < 0).any():
        raise ValueError("inference.covariance has a variance below 0")


def _read_fit(file: ModelFile) -> Fit:
    covariates = tuple(file.covariates)
    return Fit(
        n_states=file.n_states,
        covariates=covariates,
        layout=Layout(("intercept", *covariates), file.n_states, np.asarray(file.layout, dtype=np.int64)),
        scaling=file.scaling,
        beta=np.asarray(file.beta, dtype=np.float64).reshape(file.n_states - 1, len(covariates) + 1),
        inference=Inference(**_read_arrays(file.inference)),
        outcome=file.outcome,
        certificate=file.certificate,
        n_rows=file.n_rows,
        survey=_read_survey(file),
        resampled=_read_bootstrap(file),
        clock=_read_clock(file),
        fit_test=file.fit_test,
        family=_read_family(file),
        coding=_read_coding(file),
        records=None if file.records is None else file.records.read(file.n_states),
    )


def _read_coding(file: ModelFile) -> Coding:
    """The coding of categories, whose terms are all among the covariates."""
    lacking = [term for term in file.coding.terms if term not in file.covariates]
    if lacking or file.coding.unseen not in UNSEEN:
        raise ValueError(f"coding has {lacking[0] if lacking else file.coding.unseen!r}, which is not known")
    return file.coding


def _read_arrays(part: _Part) -> dict[str, Any]:
    """The fields of a part, lists as arrays."""
    return {name: np.asarray(v, np.float64) if isinstance(v, list) else v for name, v in part}


def _read_family(file: ModelFile) -> Family:
    if file.family not in FAMILIES:
        raise ModelFileError(
            f"This rekka model file has hazards of the family {file.family!r}, which is not known here; "
            f"{', '.join(FAMILIES)} can be read. Use the version of rekka, or the package, that wrote it.",
            where="family",
        )
    return FAMILIES[file.family]


def _read_clock(file: ModelFile) -> Clock:
    """The clock; files before version 4 took ages at the start of intervals, and had no mean of these."""
    if file.clock is None:
        return make_clock(file.covariates, START)
    clock = make_clock(file.covariates, file.clock.kind, file.clock.advance)
    return dataclasses.replace(clock, mean_years=file.clock.mean_years)


def _read_survey(file: ModelFile) -> Survey | None:
    if file.survey is None:
        return None
    shape = (len(file.covariates), PERCENT)
    return Survey(tuple(file.covariates), _read_block("survey", file.survey, shape))


def _read_bootstrap(file: ModelFile) -> Resampled | None:
    part = file.bootstrap
    if part is None:
        return None
    shape = (len(part.beta), file.n_states - 1, len(file.covariates) + 1)
    if len(part.beta) > part.asked:
        raise ValueError(f"bootstrap has {len(part.beta)} draws, more than the {part.asked} that were asked for")
    return Resampled(_read_block("bootstrap.beta", part.beta, shape), part.asked, part.seed, part.groups)


def _read_block(name: str, values: list[Any], shape: tuple[int, ...]) -> Array:
    """Nested lists of this shape as an array; NumPy alone would take as many numbers in another shape."""
    needed = " by ".join(map(str, shape))
    if not _has_shape(values, shape):
        raise ValueError(f"{name} is not {needed} numbers, as this model's states and covariates need")
    block = np.asarray(values, dtype=np.float64).reshape(shape)
    if not np.isfinite(block).all():
        raise ValueError(f"{name} has numbers that are infinite or undefined")
    return block


def _has_shape(values: Any, shape: tuple[int, ...]) -> bool:
    if not shape:
        return not isinstance(values, list)
    return len(values) == shape[0] and all(_has_shape(value, shape[1:]) for value in values)
