"""What is believed of the coefficients before a case's rows are seen: a normal distribution.

    log prior = -(b - mean)' precision (b - mean) / 2,   b (F,) the coefficients of the scaled covariates

Coefficients are flattened state by state, intercept first. Every one of them is held: the precision is positive
definite, so that a maximum always exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.errors import BadOption

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prior:
    """Mean (F,) and precision (F, F) of the coefficients."""

    mean: Array
    precision: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which ``read_prior`` takes."""
        return {"mean": self.mean.tolist(), "precision": self.precision.tolist()}


def read_prior(given: Prior | Mapping[str, Any] | None, size: int) -> Prior | None:
    """A checked prior of ``size`` coefficients."""
    if given is None:
        return None
    if not isinstance(given, Prior) and not (isinstance(given, Mapping) and set(given) == {"mean", "precision"}):
        raise BadOption(f"prior is a {type(given).__name__}; mean and precision are needed, or None.")
    parts = (given.mean, given.precision) if isinstance(given, Prior) else (given["mean"], given["precision"])
    mean, precision = (np.asarray(part, dtype=np.float64) for part in parts)
    if mean.shape != (size,) or precision.shape != (size, size):
        raise BadOption(
            f"prior has mean {mean.shape} and precision {precision.shape}; this model has {size} coefficients, "
            f"so that ({size},) and ({size}, {size}) are needed.",
            size=size,
        )
    finite = np.isfinite(mean).all() and np.isfinite(precision).all()
    if not finite or not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0:
        raise BadOption("prior: the precision must be symmetric and positive definite, and everything finite.")
    return Prior(mean, precision)
