"""Uncertainty of the parameters: sets of coefficients to forecast with, and the intervals that follow.

    delta      at the estimate and a little to both sides along each direction of the covariance, C = L L':
               variance = sum_j (dg / d(L_j))^2, on a scale on which g is free (logit, log)
    normal     at draws from N(estimate, C)
    bootstrap  at the refits to resampled bridges, which the model carries

The uncertainty of the process, which would remain if the parameters were known, is in the probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rekka.core.errors import BadOption, bad_option
from rekka.model.fit import Fit
from rekka.model.inference import Inference, native_units, normal_quantile
from rekka.model.records import Records
from rekka.model.tables import check_level

Array = NDArray[np.float64]

DELTA, NORMAL, BOOTSTRAP, NONE = "delta", "normal", "bootstrap", "none"
INTERVALS = (DELTA, NORMAL, BOOTSTRAP, NONE)
DRAWS, FEWEST = 1000, 100  # draws; fewer say nothing of a 95 % interval's ends
STEP = 1e-3  # of a standard error: the error of a central difference is its square, that of rounding 1e-13 of it
LOGIT, LOG = "logit", "log"  # scales on which a quantity is free


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Sets of coefficients (B, K-1, p+1) in units of ``inference``, the estimate first.

    Where there are no others, ``kind`` is "none" and ``why`` says why, unless none were asked for. A fit of
    histories has parameters ``extra`` (B, Q) of its elements beside the coefficients.
    """

    kind: str
    level: float
    coefficients: Array
    why: str | None = None
    extra: Array | None = None

    @property
    def drawn(self) -> bool:
        """Whether the coefficients after the first are draws, so that forecasts can be mixed over them."""
        return self.kind in (NORMAL, BOOTSTRAP)

    @property
    def estimate(self) -> Uncertainty:
        """The estimate alone."""
        extra = None if self.extra is None else self.extra[:1]
        return Uncertainty(NONE, self.level, self.coefficients[:1], self.why, extra)

    def interval(self, values: Array, scale: str, least: float = 0.0, most: float = 1.0) -> tuple[Array, Array]:
        """Interval of a quantity (B, ...) computed at every set of coefficients; NaN where there is none.

        On the scale logit it lies between ``least`` and ``most``.
        """
        if self.kind == NONE:
            nothing = np.full(values.shape[1:], np.nan)
            return nothing, nothing.copy()
        if self.kind != DELTA:
            return draw_interval(values[1:], self.level)
        free, back = (_logit(least, most), _expit(least, most)) if scale == LOGIT else (np.log, np.exp)
        with np.errstate(all="ignore"):
            moved = free(values)
            width = normal_quantile(self.level) * self.deviation(moved)
            low, high = back(moved[0] - width), back(moved[0] + width)
        edge = ~np.isfinite(moved[0])  # certain, or infinite: nothing moves it
        if scale == LOGIT:
            edge |= ~np.isfinite(moved).all(axis=0)  # or so nearly certain that rounding makes it so at one side
        return np.where(edge, values[0], low), np.where(edge, values[0], high)

    def deviation(self, values: Array) -> Array:
        """Standard error of a quantity (B, ...): by the delta method, or over the draws."""
        if self.kind == NONE:
            return np.full(values.shape[1:], np.nan)
        if self.kind == DELTA:
            pairs = values[1:].reshape(-1, 2, *values.shape[1:])
            return np.asarray(np.sqrt((((pairs[:, 0] - pairs[:, 1]) / (2 * STEP)) ** 2).sum(axis=0)))
        return np.asarray(values[1:].std(axis=0, ddof=1))


def draw_interval(values: Array, level: float) -> tuple[Array, Array]:
    """Central interval that holds a share ``level`` of draws (B, ...)."""
    tail = (1.0 - level) / 2
    # between infinite years nothing can be interpolated
    smooth = bool(np.isfinite(values).all())
    method: Literal["median_unbiased", "inverted_cdf"] = "median_unbiased" if smooth else "inverted_cdf"
    low, high = np.quantile(values, [tail, 1.0 - tail], axis=0, method=method)
    return low, high


def find_uncertainty(
    fit: Fit, intervals: str = NORMAL, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Uncertainty:
    """Find the sets of coefficients for one kind of intervals; the estimate alone where the fit allows none."""
    check_intervals(intervals, level, draws)
    middle, records = fit.coefficients[None], fit.records
    extra = None if records is None else records.extra[None]
    why = None if intervals == NONE else _find_obstacle(fit, intervals)
    if intervals == NONE or why is not None:
        return Uncertainty(NONE, level, middle, why, extra)
    if intervals == BOOTSTRAP:
        return Uncertainty(BOOTSTRAP, level, np.concatenate([middle, _resampled(fit)]))
    root = root_of(fit.inference.covariance if records is None else _join_covariance(fit.inference, records))
    if intervals == DELTA:
        sides = np.stack([root.T, -root.T], axis=1).reshape(-1, root.shape[0]) * STEP
    else:
        sides = np.random.default_rng(seed).standard_normal((draws, root.shape[1])) @ root.T
    own = middle.size
    coefficients = np.concatenate([middle, middle + sides[:, :own].reshape(-1, *middle.shape[1:])])
    if records is not None:
        extra = np.concatenate([records.extra[None], _move_extra(records, sides[:, own:])])
    return Uncertainty(intervals, level, coefficients, None, extra)


def _join_covariance(inference: Inference, records: Records) -> Array:
    """Covariance (F + Q, F + Q) of coefficients and elements' parameters, the frailty's variance as its logarithm.

    Parameters at a boundary do not move.
    """
    assert records.cross is not None  # else there are no intervals
    whole = np.block([[inference.covariance, records.cross], [records.cross.T, records.covariance]])
    held = ~np.isfinite(np.diag(whole))
    whole[held], whole[:, held] = 0.0, 0.0
    place = _find_variance(records)
    if place is not None:
        at = place + len(inference.covariance)
        whole[at] /= records.extra[place]
        whole[:, at] /= records.extra[place]
    return whole


def _move_extra(records: Records, sides: Array) -> Array:
    """Parameters (B, Q) of the elements, moved by ``sides`` (B, Q)."""
    moved = records.extra + sides
    place = _find_variance(records)
    if place is not None:
        moved[:, place] = records.extra[place] * np.exp(sides[:, place])
    return np.asarray(moved)


def _find_variance(records: Records) -> int | None:
    """Place of the variance of the frailty among the parameters; None where there is none, or it is 0."""
    variance = records.frailty_variance
    return None if not variance else records.elements.parts["frailty"].start


def check_intervals(intervals: str, level: float, draws: int) -> None:
    """Refuse an unknown kind of intervals, a level outside 0 to 1, and too few draws."""
    if intervals not in INTERVALS:
        raise bad_option("intervals", intervals, INTERVALS)
    check_level(level)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < FEWEST:
        raise BadOption(
            f"draws is {draws!r}; a whole number of at least {FEWEST} is needed.", option="draws", value=draws
        )


def root_of(covariance: Array) -> Array:
    """Root L (F, r) of a covariance, L L' = C.

    In units of standard errors, because covariates can be a million times apart.
    """
    scale = np.sqrt(np.diag(covariance))
    unit = np.where(scale > 0, scale, 1.0)
    value, vector = np.linalg.eigh(covariance / np.outer(unit, unit))
    keep = value > value.max() * len(value) * np.finfo(float).eps  # shared and absent coefficients lose rank
    return np.asarray(unit[:, None] * vector[:, keep] * np.sqrt(value[keep]))


def _find_obstacle(fit: Fit, intervals: str) -> str | None:
    """Reason why a fit has no intervals, if it has none."""
    if not fit.certificate.certified:
        return "the fit is not a certified maximum, so that its curvature says nothing of uncertainty"
    if fit.records is not None and fit.records.cross is None:
        return "this model file, of version 0.10, lacks a part of the covariance; fit the model again"
    if intervals == BOOTSTRAP:
        if fit.records is not None:
            raise BadOption(
                "intervals is 'bootstrap', which models of histories do not have. Use 'normal' or 'delta'.",
                option="intervals",
            )
        if fit.resampled is None:
            raise BadOption(
                "intervals='bootstrap' needs a model that carries refits to resampled bridges. Make one with "
                "rekka fit --bootstrap 200 or model.bootstrap(...), or use 'normal' or 'delta'."
            )
        left = len(fit.resampled.beta)
        few = f"only {left} of {fit.resampled.asked} refits reached a maximum"
        return None if left >= FEWEST else few
    if not np.isfinite(fit.inference.covariance).all():
        return "the fit has no covariance of its coefficients"
    return None


def _resampled(fit: Fit) -> Array:
    """Coefficients of the refits (B, K-1, p+1) in the units of ``inference``."""
    assert fit.resampled is not None
    if not fit.native:
        return fit.resampled.beta
    return np.asarray(fit.resampled.beta @ native_units(fit.scaling, len(fit.covariates)).T)


def _logit(low: float, high: float) -> Callable[[Array], Array]:
    return lambda value: special.logit((value - low) / (high - low))


def _expit(low: float, high: float) -> Callable[[Array], Array]:
    return lambda value: low + (high - low) * special.expit(value)
