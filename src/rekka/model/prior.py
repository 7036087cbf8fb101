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

from rekka.core.errors import BadOption

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prior:
    """Mean (F,) and precision (F, F) of the coefficients.

    ``uncertainty`` (F, F) is the covariance of the mean, where that was estimated: it moves no coefficient and
    widens their intervals.
    """

    mean: Array
    precision: Array
    uncertainty: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which ``read_prior`` takes."""
        known = {} if self.uncertainty is None else {"uncertainty": self.uncertainty.tolist()}
        return {"mean": self.mean.tolist(), "precision": self.precision.tolist()} | known


def read_prior(given: Prior | Mapping[str, Any] | None, size: int) -> Prior | None:
    """A checked prior of ``size`` coefficients."""
    if given is None:
        return None
    parts = given.to_dict() if isinstance(given, Prior) else given
    if not isinstance(parts, Mapping) or set(parts) - {"uncertainty"} != {"mean", "precision"}:
        raise BadOption(f"prior is a {type(given).__name__}; mean and precision are needed, or None.")
    mean, precision = (np.asarray(parts[name], dtype=np.float64) for name in ("mean", "precision"))
    uncertainty = np.asarray(parts.get("uncertainty", np.zeros((size, size))), dtype=np.float64)
    if mean.shape != (size,) or precision.shape != (size, size) or uncertainty.shape != (size, size):
        raise BadOption(
            f"prior has mean {mean.shape} and precision {precision.shape}; this model has {size} coefficients, "
            f"so that ({size},) and ({size}, {size}) are needed.",
            size=size,
        )
    finite = all(np.isfinite(part).all() for part in (mean, precision, uncertainty))
    if not finite or not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0:
        raise BadOption("prior: the precision must be symmetric and positive definite, and everything finite.")
    return Prior(mean, precision, uncertainty if "uncertainty" in parts else None)
