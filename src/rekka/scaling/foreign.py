"""Transformers from elsewhere, scikit-learn's above all, as a fitted scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rekka.core.errors import BadOption, ScalingError
from rekka.scaling.operators import Array


@dataclass(frozen=True)
class ForeignScaling:
    """A fitted transformer from elsewhere, anything with fit and transform on an (n, p) array."""

    transformer: Any

    @property
    def method(self) -> str:
        """The transformer's class."""
        return type(self.transformer).__name__

    def transform(self, x: Array) -> Array:
        """Apply the transformer as fitted."""
        z = np.asarray(self.transformer.transform(x), dtype=np.float64)
        if z.shape != x.shape:
            raise ScalingError(
                f"{self.method} turned {x.shape[1]} covariates into shape {z.shape}. "
                "A scaling keeps one column per covariate; do feature engineering before the model."
            )
        return z

    def inverse(self, z: Array) -> Array:
        """The transformer's own ``inverse_transform``, where it has one."""
        if not hasattr(self.transformer, "inverse_transform"):
            raise BadOption(f"{self.method} has no inverse_transform: its covariates cannot be had back.")
        return np.asarray(self.transformer.inverse_transform(z), dtype=np.float64)

    def affine(self) -> tuple[Array, Array] | None:
        """Known for scikit-learn's own affine scalers, from their fitted attributes."""
        t = self.transformer
        zero = np.zeros(getattr(t, "n_features_in_", 0))
        match self.method:
            case "StandardScaler":
                return (t.mean_ if t.with_mean else zero), 1.0 / (t.scale_ if t.with_std else zero + 1.0)
            case "RobustScaler":
                return (t.center_ if t.with_centering else zero), 1.0 / (
                    t.scale_ if t.with_scaling else zero + 1.0
                )
            case "MaxAbsScaler":
                return zero, 1.0 / t.scale_
            case "MinMaxScaler" if not t.clip:
                return -t.min_ / t.scale_, t.scale_
        return None

    def to_dict(self) -> dict[str, Any]:
        """Refused: a foreign object has no exact text form."""
        raise BadOption(
            f"A model scaled by {self.method} cannot be written as JSON: only rekka's own operators "
            "(zscore, boxcox+zscore, ..., None) have an exact text form. Use one of them, or pickle the model."
        )


def fit_foreign(transformer: Any, x: Array) -> ForeignScaling:
    """Fit a copy of a transformer on training rows x (n, p); the one given stays as it is."""
    from sklearn.base import clone  # a second of imports; whoever hands a transformer in has them already

    return ForeignScaling(clone(transformer, safe=False).fit(x))
