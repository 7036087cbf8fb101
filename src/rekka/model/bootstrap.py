"""Bootstrap of a fit: whole bridges resampled with replacement, and the model refitted to them.

A bridge drawn twice counts twice: its rows' weights are multiplied by how often it was drawn, which is the same as
its rows that often. Every resample has a generator of its own, so that any of them can be rebuilt by itself.

The scaling is held as it was fitted. The coefficients of all draws then belong to the same covariates, those of
the fit, and any row that the fit can forecast every draw can forecast: the shift of a Box-Cox fitted to a draw
without the smallest bridge may not take that bridge. For an affine scaling this changes no forecast.

A ridge is, as in any fit, in z-scored units of the rows that are fitted; a prior is that of the fit, and class
weights are those of all rows. The draws show how an estimate varies, not how far a penalty has moved it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, count_of
from rekka.core.numerics import generator
from rekka.model.fit import Fit, Options, check_options, refit_rows
from rekka.model.likelihood import Rows
from rekka.model.survey import Resampled

Array = NDArray[np.float64]

SAME = 1e-6  # relative difference in log-likelihood up to which rows are those of the fit


def bootstrap_rows(
    fit: Fit,
    rows: Rows,
    x: Array,
    groups: NDArray[np.int64],
    options: Options,
    *,
    draws: int = 200,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Resampled:
    """Refit a model to as many groups as there are, drawn with replacement, so many times.

    Parameters
    ----------
    fit, rows, x, options
        A fit, its training rows, raw covariates (n, p) and how it was fitted. Refits are Newton's, whatever solver
        the fit had, from its own coefficients where they are a maximum.
    groups : (n,)
        The bridge of each row.
    draws, seed : int
        How many refits, and of which draws; the first of many are the same as few.
    on_progress : function of two numbers
        Called after each refit with how many are done, and of how many.

    """
    check_options(options)
    check_draws(draws, seed)
    check_rows(fit, rows, x)
    names, member = np.unique(groups, return_inverse=True)
    if names.size < 2:
        raise InputError(
            f"All {count_of(member.size, 'row')} are of one group; at least 2 are needed, to draw from them with "
            "replacement."
        )
    model = ("ridge", "prior", "effects", "shared", "threads", "family")  # what is fitted, not how it is reached
    held = {name: getattr(options, name) for name in model}
    options = Options(scaling=None, advance=(), **held)  # z below are taken at the fit's own moment already
    z = fit.scale(x, rows.dt)
    found = []
    for number in range(draws):
        times = draw_times(names.size, generator(seed, "bootstrap", number))
        beta = _refit(fit, rows, z, times[member], options)
        found += [] if beta is None else [beta]
        if on_progress:
            on_progress(number + 1, draws)
    return Resampled(np.array(found).reshape(-1, *fit.beta.shape), int(draws), int(seed), names.size)


def check_draws(draws: int, seed: int) -> None:
    """Refuse a number of draws or a seed that is none."""
    for option, value, least in (("draws", draws, 1), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise BadOption(f"{option} is {value!r}; a whole number of at least {least} is needed.")


def check_rows(fit: Fit, rows: Rows, x: Array) -> None:
    """Refuse rows that the model was not fitted on: another number of them, or another likelihood."""
    if rows.dt.size != fit.n_rows:
        raise InputError(
            f"There are {count_of(rows.dt.size, 'row')}, and the model was fitted on {fit.n_rows:,}. "
            "Give the rows that it was fitted on, with their weights.",
            rows=rows.dt.size,
            fitted=fit.n_rows,
        )
    known = fit.inference.log_likelihood
    value = float(fit.log_probabilities(rows, x) @ rows.weight)
    if np.isfinite(known) and not abs(value - known) <= SAME * max(1.0, abs(known)):
        raise InputError(
            f"The log-likelihood of these rows is {value:.6g}, and the model's is {known:.6g}: they are other "
            "rows, or have other weights. Give the rows that it was fitted on.",
            log_likelihood=value,
            fitted=known,
        )


def draw_times(groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Times (G,) that each group is drawn when as many are drawn, with replacement, as there are."""
    return np.bincount(rng.integers(0, groups, groups), minlength=groups)


def _refit(fit: Fit, rows: Rows, z: Array, times: NDArray[np.int64], options: Options) -> Array | None:
    """The coefficients at a maximum for rows that count so many times, or None if none is reached."""
    drawn = np.flatnonzero(times)
    some = rows.take(drawn)
    some, z = replace(some, weight=some.weight * times[drawn]), z[drawn]
    if (z == z[0]).all(axis=0).any():  # a covariate that all drawn rows agree in has no effect to estimate
        return None
    start = fit.beta if fit.certificate.at_maximum else None
    try:
        with np.errstate(all="ignore"):  # what comes of it is judged by its certificate
            refit = refit_rows(some, z, fit.covariates, options, start)
    except InputError:
        raise
    except (ArithmeticError, ValueError):  # linear algebra on rows that do not determine the coefficients
        return None
    return refit.beta if refit.at_maximum else None
