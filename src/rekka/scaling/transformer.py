"""``CovariateScaler``: the scaling operators as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rekka.core.errors import InputError
from rekka.scaling.operators import Array
from rekka.scaling.registry import NamedScaler, fit_scaling
from rekka.scaling.serial import read_scaling, scaling_to_json

SKLEARN_FRAMES = ("pandas", "polars")  # which scikit-learn takes by itself, with their names


class CovariateScaler(OneToOneFeatureMixin, TransformerMixin, NamedScaler, BaseEstimator):  # type: ignore[misc]
    """Scale covariates (n, p) by an operator fitted on training rows, in pipelines, with frames or arrays.

    Parameters
    ----------
    method : str, list of str, or None
        "max", "minmax", "zscore", "boxcox", "yeojohnson", "log", "robust", or several of them applied in turn:
        "boxcox+zscore" or ["boxcox", "zscore"]. None leaves the covariates as they are.

    Attributes
    ----------
    scaling_
        The fitted operator, a frozen value.
    n_features_in_, feature_names_in_
        As in scikit-learn; names where the training rows had them.

    Examples
    --------
    >>> import rekka
    >>> rekka.CovariateScaler("minmax").fit_transform([[10.0], [20.0], [30.0]]).ravel().tolist()
    [0.0, 0.5, 1.0]

    """

    def __init__(self, method: Any = "zscore") -> None:
        self.method = method

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scaling_")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on training rows X (n, p); y is not looked at."""
        x = validate_data(self, _as_known_frame(X), dtype=np.float64)
        self.scaling_ = fit_scaling(self, x, self.get_feature_names_out())
        return self

    def transform(self, X: Any) -> Array:
        """Covariates scaled as fitted; a value the operator cannot take is refused, never clipped."""
        check_is_fitted(self)
        return self.scaling_.transform(validate_data(self, _as_known_frame(X), dtype=np.float64, reset=False))

    def inverse_transform(self, X: Any) -> Array:
        """Raw covariates again; constant columns get their training value."""
        check_is_fitted(self)
        # scikit-learn's check of names would warn of the plain array that ``transform`` itself returns.
        z = check_array(_as_known_frame(X), dtype=np.float64)
        if z.shape[1] != self.n_features_in_:
            raise InputError(f"X has {z.shape[1]} columns; the scaler was fitted on {self.n_features_in_}.")
        return self.scaling_.inverse(z)

    def to_json(self) -> str:
        """Fitted scaler as text, complete and exact; read it with ``from_json``."""
        check_is_fitted(self)
        return scaling_to_json(self.scaling_, named=hasattr(self, "feature_names_in_"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A fitted scaler from ``to_json``: the same transform, bit for bit."""
        scaling, named = read_scaling(text)
        scaler = cls(scaling.method)
        scaler.scaling_ = scaling
        scaler.n_features_in_ = len(scaling.names)
        if named:
            scaler.feature_names_in_ = np.asarray(scaling.names, dtype=object)
        return scaler


def _as_known_frame(X: Any) -> Any:
    """pyarrow and other frames as polars; all else as it is, for scikit-learn to judge."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    kinds = frame.schema.items() if isinstance(frame, nw.DataFrame) else ()
    texts = [name for name, kind in kinds if kind in (nw.String, nw.Categorical, nw.Enum)]
    if texts:
        raise InputError(
            f"{texts[0]} holds text, which is not scaled. Scale the numbers alone, or give all to the model: "
            "its scaling= leaves categories as they are.",
            column=texts[0],
        )
    if isinstance(frame, nw.DataFrame) and frame.implementation.value not in SKLEARN_FRAMES:
        return frame.to_polars()
    return X
