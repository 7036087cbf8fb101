"""A fitted model as JSON text: complete, versioned, exact to the last bit, no pickle."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rekka.errors import ModelFileError
from rekka.model.certificate import Certificate
from rekka.model.fit import Fit
from rekka.model.inference import Inference
from rekka.model.layout import Layout
from rekka.model.solvers import Outcome
from rekka.scaling.serial import ScalingPart, as_part

VERSION = 2  # 2: scalings carry their training range, and may be chains


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


class ModelFile(_Part):
    """What is in the file."""

    format: Literal["rekka-model"]
    version: Literal[2]
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


def dump_model(fit: Fit, parameters: dict[str, Any], features: list[str]) -> str:
    """Write a fit and its estimator's parameters as JSON."""
    inference = dataclasses.asdict(fit.inference)
    return ModelFile(
        format="rekka-model",
        version=2,
        parameters=parameters,
        features=features,
        n_states=fit.n_states,
        covariates=list(fit.covariates),
        layout=fit.layout.parameter.tolist(),
        scaling=as_part(fit.scaling),
        beta=fit.beta.tolist(),
        inference=_Inference(
            **inference
            | {
                "coefficients": fit.inference.coefficients.tolist(),
                "covariance": fit.inference.covariance.tolist(),
            }
        ),
        outcome=fit.outcome,
        certificate=fit.certificate,
        n_rows=fit.n_rows,
    ).model_dump_json(indent=1)


def load_model(text: str) -> tuple[Fit, dict[str, Any], list[str]]:
    """Read a fit, its estimator's parameters and the names of the columns it saw."""
    try:
        file = ModelFile.model_validate_json(text)
        covariates = tuple(file.covariates)
        fit = Fit(
            n_states=file.n_states,
            covariates=covariates,
            layout=Layout(("intercept", *covariates), file.n_states, np.asarray(file.layout, dtype=np.int64)),
            scaling=file.scaling.build(),
            beta=np.asarray(file.beta, dtype=np.float64).reshape(file.n_states - 1, len(covariates) + 1),
            inference=Inference(
                **file.inference.model_dump()
                | {
                    "coefficients": np.asarray(file.inference.coefficients, dtype=np.float64),
                    "covariance": np.asarray(file.inference.covariance, dtype=np.float64),
                }
            ),
            outcome=file.outcome,
            certificate=file.certificate,
            n_rows=file.n_rows,
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the text itself"
        raise ModelFileError(
            f"This is not a rekka model file of version {VERSION}: {where}: {first['msg']}. "
            "Write one with model.to_json().",
            where=where,
        ) from None
    except (KeyError, ValueError) as error:
        raise ModelFileError(f"This rekka model file is damaged: {error}.") from None
    return fit, file.parameters, file.features
