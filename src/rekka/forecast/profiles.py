"""Profiles: hazards and mean years along the range of one covariate, all others typical.

    theta_k(x) = exp(w . b_k),   log theta_k +- z sqrt(w' C_k w)

w is a row of the design, C_k the covariance of b_k, z the normal quantile of the level.

The grid covers the training rows and a fifth of their range beyond each end, where the model extrapolates and its
intervals do not know that. It does not go below 0 where no training row does, nor where the covariates' operator
has no value. It is finer over the central 95 % of the training rows, which a picture shows: few rows lie beyond,
and often far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, OutsideTrainingRange, did_you_mean
from rekka.core.ratings import Ratings
from rekka.forecast.effects import check_start, name_journey
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.forecast import (
    AT_REST,
    Cohort,
    ForecastOptions,
    check_threshold,
    make_cohort,
    typical_covariates,
)
from rekka.forecast.matrices import describe_intervals, list_outside
from rekka.forecast.uncertainty import BOOTSTRAP, DELTA, LOG, NONE
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable, hazard_interval, table

Array = NDArray[np.float64]

AT_REST_BY_DELTA = replace(AT_REST, intervals=DELTA)
INSIDE = 40  # steps from the least to the largest training value
BEYOND = 8  # further steps at each end: a fifth of the range
CENTRAL = (0.025, 0.975)  # of the training rows
CLOSER = 24  # steps over their central part


@dataclass(frozen=True, eq=False)
class Profile:
    """Hazards (G, K-1) a year, and mean years (G,) from ``start`` to ``threshold``, at G values of a covariate.

    ``outside`` (G,) marks values beyond the training rows, ``rug`` (101,) holds the quantiles of these. Without
    intervals the ends are NaN; an infinite number of years means that the state may never be reached.
    """

    covariate: str
    values: Array
    outside: NDArray[np.bool_]
    hazard: Array
    hazard_low: Array
    hazard_high: Array
    years: Array
    years_low: Array
    years_high: Array
    rug: Array
    typical: float
    others: dict[str, float | str]
    start: int
    threshold: int
    level: float
    intervals: str
    course: str
    certified: bool
    notes: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.hazard.shape[1] + 1)

    @property
    def journey(self) -> str:
        """'from rating 1 to 4 or worse'."""
        return name_journey(self.ratings, self.start, self.threshold)

    def table(self) -> TitledTable:
        """Table with a row for each value and state; the mean years are repeated in every row of a value."""
        points, states = self.hazard.shape
        by_point: dict[str, Any] = {
            "covariate": np.full(points, self.covariate, dtype=object),
            "value": self.values,
            "outside": self.outside,
        }
        years = {"mean_years": self.years, "mean_years_low": self.years_low, "mean_years_high": self.years_high}
        by_state = {
            "hazard_per_year": self.hazard,
            "hazard_per_year_low": self.hazard_low,
            "hazard_per_year_high": self.hazard_high,
        }
        columns = {name: np.repeat(values, states) for name, values in by_point.items()}
        columns |= {"state": np.tile(np.arange(1, states + 1), points)}
        columns |= {"label": np.tile(np.array(self.ratings.labels[:states], dtype=object), points)}
        columns |= {name: values.ravel() for name, values in by_state.items()}
        columns |= {name: np.repeat(values, states) for name, values in years.items()}
        columns |= {"certified": np.full(points * states, self.certified)}
        frame = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
        what = (
            f"hazards a year of leaving each rating, and mean years {self.journey}, along {self.covariate}; "
            f"{self.course}; "
            f"{describe_intervals(self.level, self.intervals)}"
        )
        return table("\n".join([*self.notes, what]), frame.to_dict(), hidden=("certified",))


def profile_covariate(
    fit: Fit,
    covariate: str,
    options: ForecastOptions = AT_REST_BY_DELTA,
    *,
    start: int | str = 1,
    threshold: int | str | None = None,
    at: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
) -> Profile:
    """Compute hazards and mean years along one covariate; ``at`` has values of others that are not typical."""
    if fit.coding.find(covariate) is not None:
        raise BadOption(
            f"{covariate} is a category, which has levels and no profile; effects() compares its levels.",
            option="covariate",
            value=covariate,
        )
    if covariate not in fit.covariates:
        raise BadOption(
            f"{covariate} is not a covariate of this model; {', '.join(fit.covariates) or 'none'} are."
            f"{did_you_mean(covariate, fit.covariates)}",
            option="covariate",
            value=covariate,
        )
    worst = check_threshold(threshold, fit.n_states, labels)
    first = check_start(start, worst, fit.n_states, labels)
    typical = typical_covariates(fit, at)[0]
    place = fit.covariates.index(covariate)
    values = _make_grid(fit, place, typical)
    x = np.tile(typical, (values.size, 1))
    x[:, place] = values
    states = np.full(values.size, first - 1, dtype=np.int64)
    cohort = make_cohort(fit, states, x, options, labels)
    with np.errstate(over="ignore"):  # years may be without end
        years = find_first_passage(cohort.propagator, states, worst - 1, []).mean
    hazard, low, high = _find_hazards(cohort)
    years_low, years_high = cohort.uncertainty.interval(years, LOG)
    assert fit.survey is not None  # or there would be no grid
    others = {name: value for name, value in fit.describe(typical).items() if name != covariate}
    told = [told for told in list_outside(fit, cohort.ageing, typical) if not told.startswith(f"{covariate} = ")]
    return Profile(
        covariate=covariate,
        values=values,
        outside=cohort.outside()[:, place],
        hazard=hazard,
        hazard_low=low,
        hazard_high=high,
        years=years[0],
        years_low=years_low,
        years_high=years_high,
        rug=fit.survey.quantiles[place],
        typical=float(typical[place]),
        others=others,
        start=first,
        threshold=worst,
        labels=Ratings.of(labels, fit.n_states).labels,
        **cohort.conditions,
        notes=(*cohort.notes, *told),
    )


def _find_hazards(cohort: Cohort) -> tuple[Array, Array, Array]:
    """Hazards (n, K-1) with low and high: from the refits where there are any, else in closed form."""
    uncertainty = cohort.uncertainty
    if uncertainty.kind in (BOOTSTRAP, NONE):
        hazards = cohort.propagator.hazards(0.0)
        return (hazards[0], *uncertainty.interval(hazards, LOG))
    return hazard_interval(cohort.fit, cohort.propagator.design(0.0), uncertainty.level)


def _make_grid(fit: Fit, place: int, typical: Array) -> Array:
    """Grid of values from below the training rows to above them, as far as the operator takes them."""
    name = fit.covariates[place]
    if fit.survey is None:
        raise BadOption(
            f"The range of {name} is not known: this model file, of an earlier version, does not have it. Fit the "
            "model again.",
            option="covariate",
            value=name,
        )
    low, high = float(fit.survey.low[place]), float(fit.survey.high[place])
    if low == high:
        return np.array([low])
    step = (high - low) / INSIDE
    inside = np.linspace(low, high, INSIDE + 1)
    further: Array = step * np.arange(1.0, BEYOND + 1)
    above, below = high + further, low - further
    if low >= 0:
        below = np.unique(np.maximum(below, 0.0))[::-1]
        below = below[below < low]
    taken = [list(_take_while(fit, place, typical, side)) for side in (below, above)]
    closer = np.linspace(*find_central(fit.survey.quantiles[place]), CLOSER + 1)
    return np.array([*taken[0][::-1], *np.union1d(inside, closer), *taken[1]])


def find_central(quantiles: Sequence[float] | Array) -> tuple[float, float]:
    """Ends of the central part of the training rows, from their quantiles at even steps."""
    low, high = np.quantile(np.asarray(quantiles, dtype=float), CENTRAL).tolist()
    return float(low), float(high)


def _take_while(fit: Fit, place: int, typical: Array, values: Array) -> Iterator[float]:
    """Yield values until the first that the operator refuses."""
    for value in values:
        x = typical.copy()
        x[place] = value
        try:
            fit.design(x[None])
        except OutsideTrainingRange:
            return
        yield float(value)
