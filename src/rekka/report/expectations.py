"""What is to be expected of a typical member: a fit as the forecast part of a document.

    fit, medians of its training rows, state 1 -> HORIZON years, age advancing by the year

Bands come from draws of the coefficients; effects, which compare two medians at the same coefficients, from the
delta method. A fit that is no certified maximum has neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.forecast.ageing import ADVANCES
from rekka.forecast.effects import Effect, marginal_effects
from rekka.forecast.forecast import Doubt, Forecast, Journey, check_threshold, forecast_rows, set_out, years_until
from rekka.forecast.matrices import Matrix, transition_matrices
from rekka.forecast.profiles import Profile, profile_covariate
from rekka.forecast.uncertainty import DELTA, NONE, NORMAL
from rekka.model.fit import Fit
from rekka.model.tables import LARGEST, hazard_table
from rekka.report.forecast_parts import (
    CaseForecast,
    EffectPart,
    MatrixPart,
    Number,
    PassagePart,
    ProfilePart,
)

Array = NDArray[np.float64]

HORIZON = 30  # years: what a plan of maintenance looks ahead, and the same for every case
MATRIX_YEARS = (1.0, 5.0)  # what management systems take, and the common time between inspections
DRAWS = 500  # of the coefficients, for bands
PASSAGE_DRAWS = 200  # for years until a state, which take most of the time
EVERY = 6  # of the points of a profile: a picture needs no more
PERCENT = 5  # of the training rows between two values of a rug


def expect(fit: Fit, typical: Array, *, level: float, seed: int, certified: bool) -> CaseForecast | None:
    """All that is forecast for raw covariates ``typical`` (p,); None where a hazard at them is no number."""
    eta = fit.log_hazards(typical[None])
    if not np.isfinite(eta).all() or (np.abs(eta) > LARGEST).any():
        return None
    kind = NORMAL if certified else NONE
    threshold = check_threshold(None, fit.n_states)
    journey = _set_out(fit, typical, 1, Doubt(kind, level, DRAWS, seed))
    found = forecast_rows(journey, HORIZON, threshold)
    passages = Doubt(kind, level, PASSAGE_DRAWS, seed)
    matrices = transition_matrices(fit, typical, MATRIX_YEARS, age=ADVANCES, doubt=Doubt(kind, level, DRAWS, seed))
    return CaseForecast(
        threshold=threshold,
        level=level,
        advancing=journey.course.names,
        seen=_list_seen(journey),
        **_list_years(found, certified=certified),
        passages=_list_passages(_set_out(fit, typical, threshold - 1, passages), threshold),
        matrices=tuple(_describe_matrix(one) for one in matrices),
        effects=_list_effects(fit, typical, threshold, Doubt(DELTA if certified else NONE, level)),
        profiles=_list_profiles(fit, typical, threshold, Doubt(DELTA if certified else NONE, level)),
        clock=fit.clock.kind if journey.course.names else None,
        lag=None if fit.clock.mean_years is None else float(journey.course.lag.max(initial=0.0)),
    )


def _set_out(fit: Fit, typical: Array, starts: int, doubt: Doubt) -> Journey:
    """A typical member in each of the first states."""
    return set_out(
        fit, np.arange(starts, dtype=np.int64), np.tile(typical, (starts, 1)), age=ADVANCES, doubt=doubt
    )


def _list_seen(journey: Journey) -> dict[str, float]:
    """The largest of the training rows, of the covariates that advance."""
    course = journey.course
    if journey.fit.survey is None:
        return {}
    return {name: float(course.high[place]) for name, place in zip(course.names, course.columns, strict=True)}


def _list_years(found: Forecast, *, certified: bool) -> dict[str, Any]:
    """The columns of the one member, by year."""
    bands = {
        f"{name}_{end}": _numbers(getattr(found, f"{name}_{end}")[0])
        for name in ("expected", "reached")
        for end in ("low", "high")
    }
    predicted = {
        name: tuple(getattr(found, name)[0].tolist()) if certified else (None,) * found.years.size
        for name in ("predicted_low", "predicted_high")
    }
    return (
        {
            "years": tuple(found.years.tolist()),
            "probability": tuple(map(tuple, found.probability[0].tolist())),
            "expected": tuple(found.expected[0].tolist()),
            "reached": tuple(np.minimum(found.reached[0], 1.0).tolist()),
            "outside": tuple(found.outside[0].tolist()),
        }
        | bands
        | predicted
    )


def _list_passages(journey: Journey, threshold: int) -> tuple[PassagePart, ...]:
    rows = years_until(journey, threshold, ()).iter_rows(named=True)
    names = [name for name in PassagePart.model_fields if name != "start"]
    certain = () if journey.spread.kind != NONE else ("predicted_low", "predicted_high")
    return tuple(
        PassagePart(start=row["start"], **{name: None if name in certain else _known(row[name]) for name in names})
        for row in rows
    )


def _describe_matrix(found: Matrix) -> MatrixPart:
    return MatrixPart(
        years=found.years,
        probability=tuple(map(tuple, found.probability.tolist())),
        low=tuple(map(_numbers, found.low)),
        high=tuple(map(_numbers, found.high)),
    )


def _list_effects(fit: Fit, typical: Array, threshold: int, doubt: Doubt) -> tuple[EffectPart, ...]:
    if not fit.covariates:
        return ()
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    found = marginal_effects(fit, threshold=threshold, at=at, age=ADVANCES, doubt=doubt)
    return tuple(_describe_effect(one) for one in found.effects)


def _describe_effect(one: Effect) -> EffectPart:
    figures: dict[str, Number] = {}
    for name, figure in (
        ("years_before", one.median_before),
        ("years_after", one.median_after),
        ("difference", one.median_difference),
    ):
        figures |= {
            name: _known(figure.value),
            f"{name}_low": _known(figure.low),
            f"{name}_high": _known(figure.high),
        }
    return EffectPart(
        covariate=one.change.covariate,
        amount=one.change.amount,
        times=one.change.times,
        before=one.before,
        after=one.after,
        **figures,
    )


def _list_profiles(fit: Fit, typical: Array, threshold: int, doubt: Doubt) -> tuple[ProfilePart, ...]:
    at = dict(zip(fit.covariates, typical.tolist(), strict=True))
    alone = Doubt(NONE, doubt.level)  # intervals of the years along a profile are not shown, and take their time
    grids = (profile_covariate(fit, name, threshold=threshold, at=at, doubt=alone) for name in fit.covariates)
    return tuple(_describe_profile(fit, typical, one, doubt) for one in grids)


def _describe_profile(fit: Fit, typical: Array, found: Profile, doubt: Doubt) -> ProfilePart:
    """Some points of the profile, and more where the training rows lie close together."""
    low, high = found.rug[0], found.rug[-1]
    values = np.unique([*found.values[::EVERY], found.values[-1], *found.rug[:: 2 * PERCENT]])
    x = np.tile(typical, (values.size, 1))
    x[:, fit.covariates.index(found.covariate)] = values
    with np.errstate(all="ignore"):
        hazards = hazard_table(fit, x, doubt.level)
    shape = (values.size, fit.n_states - 1)
    blank = np.full(shape, np.nan)
    known, names = doubt.intervals != NONE, ("hazard_low", "hazard_high")
    ends = {name: hazards[name].to_numpy().reshape(shape) if known else blank for name in names}
    return ProfilePart(
        covariate=found.covariate,
        values=tuple(values.tolist()),
        outside=tuple(((values < low) | (values > high)).tolist()),
        rug=tuple(found.rug[::PERCENT].tolist()),
        typical=found.typical,
        hazard=tuple(map(_numbers, hazards["hazard"].to_numpy().reshape(shape))),
        **{name: tuple(map(_numbers, values)) for name, values in ends.items()},
    )


def _numbers(values: Iterable[float]) -> tuple[Number, ...]:
    return tuple(_known(float(value)) for value in values)


def _known(value: float | None) -> Number:
    """A number, infinite or not; None for what is none."""
    return None if value is None or math.isnan(value) else float(value)
