"""What a fitted model says of the future, as methods: the estimator's face over the functions of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rekka.core.errors import BadOption, InputError
from rekka.forecast.ageing import ADVANCES, FIXED
from rekka.forecast.effects import Effects, marginal_effects
from rekka.forecast.forecast import (
    Doubt,
    Forecast,
    Journey,
    forecast_rows,
    read_start,
    set_out,
    typical_covariates,
    years_in_states,
    years_until,
)
from rekka.forecast.matrices import Matrix, transition_matrix
from rekka.forecast.uncertainty import DRAWS, NORMAL
from rekka.model import inputs
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable

Array = NDArray[np.float64]


class Forecasts:
    """Forecasts of a fitted model.

    All take ``X``: None for a typical member (medians of the training rows), a dict of some covariates (the others
    typical), or a dataframe with a row for each member. ``age`` says whether age "advances" by the year, is "held"
    at the oldest of the training rows, or stays "fixed"; ``advance`` names the covariates that do, in place of the
    model's own. ``intervals`` are "normal" (draws from the coefficients' normal distribution), "delta",
    "bootstrap" (refits that ``bootstrap`` made) or "none".
    """

    _fit: Fit
    start: str
    covariates_: tuple[str, ...]
    case_: str | None
    labels_: tuple[str, ...] | None

    def forecast(
        self,
        X: Any = None,
        years: int | Sequence[float] = 30,
        *,
        start: Any = None,
        threshold: int | None = None,
        age: str = ADVANCES,
        advance: Sequence[str] | None = None,
        intervals: str = NORMAL,
        level: float = 0.95,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> Forecast:
        """States over the years: probabilities, mean state, probability of ``threshold`` or worse.

        ``years`` is a number of years or a list of times; ``start`` a state, or one a row; None takes the column
        of start states of a dataframe, and state 1 without one.
        """
        journey = self._set_out(X, start, age, advance, Doubt(intervals, level, draws, seed))
        return forecast_rows(journey, years, threshold)

    def years_to_reach(
        self,
        state: int,
        X: Any = None,
        *,
        start: Any = None,
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
        age: str = ADVANCES,
        advance: Sequence[str] | None = None,
        intervals: str = NORMAL,
        level: float = 0.95,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> TitledTable:
        """Years until a state or worse: mean, median, quantiles, with intervals of both kinds."""
        journey = self._set_out(X, start, age, advance, Doubt(intervals, level, draws, seed))
        return years_until(journey, state, quantiles)

    def sojourn(
        self,
        X: Any = None,
        *,
        age: str = FIXED,
        advance: Sequence[str] | None = None,
        intervals: str = NORMAL,
        level: float = 0.95,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> TitledTable:
        """Years in each state, for members that come into it with these covariates.

        Age stays fixed unless told otherwise: 1 / hazard, as in every table of sojourn times.
        """
        journey = self._set_out(X, 1, age, advance, Doubt(intervals, level, draws, seed))
        return years_in_states(journey)

    def transition_matrix(
        self,
        years: float = 1.0,
        X: Any = None,
        *,
        age: str = FIXED,
        advance: Sequence[str] | None = None,
        intervals: str = NORMAL,
        level: float = 0.95,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> Matrix:
        """Probabilities from every state to every state in so many years, for one member."""
        check_is_fitted(self)
        x = self._read_covariates(X)
        if len(x) != 1:
            raise InputError(f"X has {len(x)} rows; a matrix is for one member's covariates. Give one row.")
        doubt = Doubt(intervals, level, draws, seed)
        return transition_matrix(
            self._fit, x[0], years, age=age, advance=advance, doubt=doubt, labels=self.labels_, case=self.case_
        )

    def marginal_effects(
        self,
        changes: Mapping[str, str | float] | None = None,
        X: Mapping[str, float] | None = None,
        *,
        start: int = 1,
        threshold: int | None = None,
        age: str = FIXED,
        advance: Sequence[str] | None = None,
        intervals: str = NORMAL,
        level: float = 0.95,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> Effects:
        """What a change of each covariate does to the years from ``start`` until ``threshold``: words and figures.

        ``changes`` are written "+10" or "x2", by covariate; without them age has ten years more, traffic is
        doubled and the others have a round step.
        """
        check_is_fitted(self)
        doubt = Doubt(intervals, level, draws, seed)
        return marginal_effects(
            self._fit,
            start=start,
            threshold=threshold,
            changes=changes,
            at=X,
            age=age,
            advance=advance,
            doubt=doubt,
            labels=self.labels_,
        )

    def _set_out(self, X: Any, start: Any, age: str, advance: Sequence[str] | None, doubt: Doubt) -> Journey:
        check_is_fitted(self)
        x = self._read_covariates(X)
        states = self._read_start(X, start, len(x))
        return set_out(self._fit, states, x, age=age, advance=advance, doubt=doubt)

    def _read_covariates(self, X: Any) -> Array:
        if X is None or isinstance(X, Mapping):
            return typical_covariates(self._fit, X)
        frame = inputs.as_frame(X)
        if len(frame) == 0:
            raise InputError("X has no rows. At least one is needed, or None for a typical member.")
        return inputs.read_covariates(frame, self.covariates_)

    def _read_start(self, X: Any, start: Any, n: int) -> NDArray[np.int64]:
        if start is not None or X is None or isinstance(X, Mapping):
            return read_start(1 if start is None else start, n)
        frame = inputs.as_frame(X)
        if self.start not in frame.columns:
            raise BadOption(
                f"X has no column {self.start}, and start is not given; the state of each member is needed."
            )
        return read_start(inputs.read_covariates(frame, (self.start,))[:, 0], n)
