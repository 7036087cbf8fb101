"""Forecasts as methods of a fitted model: the estimator's face over the functions of this package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar, Unpack, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rekka.core.errors import BadOption, InputError
from rekka.core.ratings import Ratings
from rekka.forecast.effects import Effects, marginal_effects
from rekka.forecast.forecast import (
    AT_REST,
    DEFAULT,
    Cohort,
    Forecast,
    ForecastOptions,
    forecast_rows,
    make_cohort,
    read_start,
    typical_covariates,
    years_in_states,
    years_until,
)
from rekka.forecast.history_propagation import chain_past, find_ends, see_once
from rekka.forecast.matrices import Matrix, transition_matrices
from rekka.model import inputs
from rekka.model.fit import Fit
from rekka.model.history_inputs import read_past_rows
from rekka.model.tables import TitledTable

Array = NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")


class PastRows(NamedTuple):
    """Visits of the members up to now, as for ``fit``: y (n,), history and bridge of each row of X."""

    y: Any = None
    histories: Any = None
    groups: Any = None


class Given(TypedDict, total=False):
    """Options that every method takes; see ``Forecasts``."""

    age: str
    advance: Sequence[str] | None
    intervals: str
    level: float
    draws: int
    seed: int


def _show_options(defaults: ForecastOptions) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Show the options with their defaults in the signature of a method, in place of ``**given``."""

    def show(method: Callable[P, R]) -> Callable[P, R]:
        known = inspect.signature(method)
        own = [one for one in known.parameters.values() if one.kind is not one.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=getattr(defaults, name), annotation=kind
            )
            for name, kind in get_type_hints(Given).items()
        ]
        method.__signature__ = known.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return method

    return show


class Forecasts:
    """Forecasts of a fitted model.

    All methods take ``X``: None for a typical member (medians of the training rows), a dict of some covariates
    (the others typical), or a dataframe with a row for each member. They share these options:

    age : "advances", "held" or "fixed"
        Whether age advances by the year, does so up to the oldest of the training rows, or stays.
    advance : list of str, optional
        Covariates that advance, in place of the model's own.
    intervals : "normal", "delta", "bootstrap" or "none"
        Draws from the coefficients' normal distribution, the delta method, refits that ``bootstrap`` made, or
        none.
    level : float
        Level of the intervals, 0.95 by default.
    draws, seed : int
        Number of draws for "normal", at least 100, and their seed.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1).drop("bridge_id")
    >>> model = rekka.ExponentialHazardMarkovModel().fit(rows.drop("state_2"), rows["state_2"])
    >>> model.forecast({"age_at_inspection_1": 40}, years=20, intervals="delta").probability.shape
    (1, 21, 3)
    >>> model.years_to_reach(3, intervals="delta").columns[:4]
    ['row', 'start', 'state', 'mean']
    >>> model.transition_matrix(5, intervals="none").probability.sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]

    """

    _fit: Fit
    start: str
    dt: str
    covariates_: tuple[str, ...]
    case_: str | None
    labels_: tuple[str, ...] | None

    @_show_options(DEFAULT)
    def forecast(
        self,
        X: Any = None,
        years: int | Sequence[float] = 30,
        *,
        start: Any = None,
        threshold: int | str | None = None,
        y: Any = None,
        histories: Any = None,
        groups: Any = None,
        **given: Unpack[Given],
    ) -> Forecast:
        """Forecast states over the years: probabilities, mean state, probability of ``threshold`` or worse.

        ``years`` is a number of years or a list of times; ``start`` a state, or one a row; None takes the column
        of start states of a dataframe, and state 1 without one. States are numbers from 1, or labels as texts.

        A model of histories takes a start for the rating of one visit, and forecasts the true state. With ``y``,
        ``histories`` and ``groups``, as for ``fit``, it forecasts each history of X from all of its visits: from
        the last of them on, in the order in which histories first appear.
        """
        cohort = self._make_cohort(X, start, replace(DEFAULT, **given), PastRows(y, histories, groups))
        return forecast_rows(cohort, years, threshold)

    @_show_options(DEFAULT)
    def years_to_reach(
        self,
        state: int | str,
        X: Any = None,
        *,
        start: Any = None,
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
        y: Any = None,
        histories: Any = None,
        groups: Any = None,
        **given: Unpack[Given],
    ) -> TitledTable:
        """Table of years until a state or worse: mean, median, quantiles, with intervals of both kinds.

        ``y``, ``histories`` and ``groups`` are those of ``forecast``.
        """
        cohort = self._make_cohort(X, start, replace(DEFAULT, **given), PastRows(y, histories, groups))
        return years_until(cohort, state, quantiles)

    @_show_options(AT_REST)
    def sojourn(self, X: Any = None, **given: Unpack[Given]) -> TitledTable:
        """Table of years in each state, for members that enter it with these covariates.

        Age stays fixed unless told otherwise: 1 / hazard, as in every table of sojourn times.
        """
        return years_in_states(self._make_cohort(X, 1, replace(AT_REST, **given), None))

    @_show_options(AT_REST)
    def transition_matrix(self, years: float = 1.0, X: Any = None, **given: Unpack[Given]) -> Matrix:
        """Transition probabilities (K, K) over so many years, for one member."""
        check_is_fitted(self)
        x = self._read_covariates(X)
        if len(x) != 1:
            raise InputError(f"X has {len(x)} rows; a matrix is for one member's covariates. Give one row.")
        options = replace(AT_REST, **given)
        return transition_matrices(self._fit, x[0], [years], options, labels=self.labels_, case=self.case_)[0]

    @_show_options(AT_REST)
    def marginal_effects(
        self,
        changes: Mapping[str, str | float] | None = None,
        X: Mapping[str, float] | None = None,
        *,
        start: int | str = 1,
        threshold: int | str | None = None,
        **given: Unpack[Given],
    ) -> Effects:
        """Effects of changing each covariate on the years from ``start`` until ``threshold``: words and figures.

        ``changes`` are written "+10" or "x2", by covariate; without them age has ten years more, traffic is
        doubled and the others have a round step.
        """
        check_is_fitted(self)
        options, labels = replace(AT_REST, **given), self.labels_
        return marginal_effects(
            self._fit, options, start=start, threshold=threshold, changes=changes, at=X, labels=labels
        )

    def _make_cohort(self, X: Any, start: Any, options: ForecastOptions, visits: PastRows | None) -> Cohort:
        """Cohort of the rows of X; for a model of histories and visits, given what these say."""
        check_is_fitted(self)
        if visits is not None and visits.histories is not None:
            return self._follow(X, start, options, visits)
        if visits is not None and (visits.y is not None or visits.groups is not None):
            raise InputError(
                "y and groups belong to histories. Give histories too, the history of each row of X, or neither."
            )
        x = self._read_covariates(X)
        states = self._read_start(X, start, len(x))
        past = None
        if self._fit.records is not None and visits is not None and (states < self._fit.n_states).all():
            past = see_once(self._fit, states, x)
        return make_cohort(self._fit, states, x, options, self.labels_, past)

    def _follow(self, X: Any, start: Any, options: ForecastOptions, visits: PastRows) -> Cohort:
        """Cohort of the histories of X, each at its last visit."""
        if self._fit.records is None:
            raise BadOption(
                "histories are for models with errors, frailty, improvements, trend or a running clock; this one "
                "takes the last rating alone. Give X a row for each member, and leave histories out.",
                option="histories",
            )
        if start is not None:
            raise BadOption(
                "start and histories are both given; members with a history start from its last visit. Leave one "
                "of them out.",
                option="start",
            )
        columns = inputs.Columns(self.start, self.dt, self.covariates_, self._fit.coding)
        rows = read_past_rows(self._fit, inputs.as_frame(X), visits.y, columns, visits.histories, visits.groups)
        last = find_ends(rows, self._fit.clock)
        past = chain_past(self._fit, rows, last.history)
        return make_cohort(self._fit, last.state, last.x, options, self.labels_, past)

    def _read_covariates(self, X: Any) -> Array:
        if X is None or isinstance(X, Mapping):
            return typical_covariates(self._fit, X)
        frame = inputs.as_frame(X)
        if len(frame) == 0:
            raise InputError("X has no rows. At least one is needed, or None for a typical member.")
        return inputs.read_covariates(frame, self.covariates_, coding=self._fit.coding)

    def _read_start(self, X: Any, start: Any, n: int) -> NDArray[np.int64]:
        if start is not None or X is None or isinstance(X, Mapping):
            ratings = Ratings.of(self.labels_, max(self._fit.n_states, len(self.labels_ or ())))
            return read_start(1 if start is None else start, n, ratings)
        frame = inputs.as_frame(X)
        if self.start not in frame.columns:
            raise BadOption(
                f"X has no column {self.start}, and start is not given; the state of each member is needed."
            )
        return read_start(inputs.read_covariates(frame, (self.start,))[:, 0], n)
