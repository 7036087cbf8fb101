"""The part of a model file that a fit of histories has: elements, their parameters, and the frailty of groups."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rekka.model.elements import Elements
from rekka.model.records import Frailties, Records


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class FrailtiesPart(_Part):
    """Frailty of each group: mean and interval."""

    groups: list[str]
    mean: list[float]
    low: list[float]
    high: list[float]


class RecordsPart(_Part):
    """Records as plain data; ``errors`` is the pattern, ``parameters`` are those of ``elements``, in its order."""

    errors: list[list[Literal[0, 1]]] | None
    common_errors: bool
    frailty: bool
    improvements: Literal["common", "each"] | None
    trend: Literal["common", "each"] | None
    first: Literal["given", "new"]
    probabilities: list[float] | None
    aged: bool
    parameters: list[float]
    covariance: list[list[float]]
    nodes: int = Field(ge=1)
    age_units: tuple[float, float]
    last: float
    date: str | None
    boundaries: list[str]
    frailties: FrailtiesPart | None
    cross: list[list[float]] | None = None
    by: str | None = None
    earliest: float | None = None

    @classmethod
    def of(cls, records: Records) -> RecordsPart:
        """The part of these records."""
        elements, known = records.elements, records.frailties
        parts = {
            "errors": None if elements.pattern is None else elements.pattern.astype(int).tolist(),
            "common_errors": elements.common_errors,
            "frailty": elements.frailty,
            "improvements": elements.improvements,
            "trend": elements.trend,
            "first": elements.first,
            "probabilities": None if elements.probabilities is None else elements.probabilities.tolist(),
            "aged": elements.aged,
            "parameters": records.extra.tolist(),
            "covariance": records.covariance.tolist(),
            "nodes": records.nodes,
            "age_units": records.age_units,
            "last": records.last,
            "date": records.date,
            "boundaries": list(records.boundaries),
            "cross": None if records.cross is None else records.cross.tolist(),
            "frailties": None
            if known is None
            else {
                "groups": list(known.groups),
                "mean": known.mean.tolist(),
                "low": known.low.tolist(),
                "high": known.high.tolist(),
            },
            "by": records.by,
            "earliest": records.earliest,
        }
        return cls.model_validate(parts)

    def read(self, n_states: int) -> Records:
        """Build the records; shapes that are not those of K states are refused."""
        pattern = None if self.errors is None else np.asarray(self.errors, dtype=bool)
        given = None if self.probabilities is None else np.asarray(self.probabilities, dtype=np.float64)
        elements = Elements(
            n_states, pattern, self.common_errors, self.frailty, self.improvements, self.trend, self.first, given,
            self.aged,
        )  # fmt: skip
        extra = np.asarray(self.parameters, dtype=np.float64)
        covariance = np.asarray(self.covariance, dtype=np.float64).reshape(len(self.covariance), -1)
        if (pattern is not None and pattern.shape != (n_states, n_states)) or (
            given is not None and given.shape != (n_states,)
        ):
            raise ValueError(f"records are not those of {n_states} states")
        if extra.shape != (elements.size,) or (extra.size and covariance.shape != (extra.size, extra.size)):
            raise ValueError(f"records have {extra.size} parameters, and their elements {elements.size}")
        cross = None if self.cross is None else np.asarray(self.cross, dtype=np.float64)
        if cross is not None and (cross.ndim != 2 or cross.shape[1] != extra.size):
            raise ValueError("cross is not a covariance of coefficients and parameters")
        part, frailties = self.frailties, None
        if part is not None:
            figures = (np.asarray(one, dtype=np.float64) for one in (part.mean, part.low, part.high))
            frailties = Frailties(tuple(part.groups), *figures)
        return Records(
            elements, extra, covariance.reshape(extra.size, extra.size), self.nodes, self.age_units, self.last,
            self.date, tuple(self.boundaries), frailties, cross, self.by, self.earliest,
        )  # fmt: skip
