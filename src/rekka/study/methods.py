"""What a method's name asks for: a scaling operator, or z-score with something that holds the coefficients.

    max, minmax, zscore, boxcox, ...   maximum likelihood in the covariates as the operator gives them
    ridge                              z-score with a ridge penalty chosen by cross-validation, by bridge
    pooled                             z-score with a prior that all cases of the study share: partial pooling

Whatever a method estimates besides its coefficients, a penalty or a prior, is estimated from the rows it is fitted
on: a fold that is held out is held out of that too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rekka.core.errors import BadOption
from rekka.evaluation.pooling import Pooling, pool_cases
from rekka.evaluation.resampling import Sample
from rekka.evaluation.ridge import choose_ridge
from rekka.model.family import find_family
from rekka.model.fit import Options
from rekka.model.prior import Prior
from rekka.scaling import fitting

RIDGE, POOLED = "ridge", "pooled"
SHRINKING = (RIDGE, POOLED)
BASE = "zscore"  # the operator under both
OWN = ""  # the case itself, among the others


def check_method(method: str) -> None:
    """Refuse a name that is neither a scaling nor a way to shrink."""
    if method not in SHRINKING:
        fitting.check_method(method)


def model_of(method: str) -> str:
    """Which model a method leads to; those that shrink lead each to its own."""
    return method if method in SHRINKING else fitting.model_of(method)


def is_affine(method: str) -> bool:
    """Whether a method is an affine operator and nothing else."""
    return method not in SHRINKING and fitting.is_affine(method)


def choose_options(
    method: str,
    sample: Sample,
    others: Mapping[str, Sample],
    seed: int,
    given: Mapping[str, Any],
    start: Pooling | None = None,
    ridge: float | None = None,
) -> Options:
    """How to fit these rows of a case; ``others`` are the rows of the other cases, for pooling.

    ``given`` are the preset's options and the study's clock, ``start`` an earlier pooling of nearly the same rows
    to start from, ``ridge`` a penalty that was chosen already.
    """
    options = Options(scaling=BASE if method in SHRINKING else method, seed=seed, **given)
    if method == RIDGE:
        grid = None if ridge is None else (ridge,)
        plain = Options(scaling=BASE, threads=options.threads, clock=options.clock, family=options.family)
        chosen = choose_ridge(sample, plain, seed=seed, grid=grid).options
        return replace(options, ridge=chosen.ridge, prior=_plain(chosen.prior))
    if method == POOLED and not others:
        raise BadOption("pooled borrows from the other cases of a study, and here there is none with rows.")
    if method == POOLED:
        family = find_family(options.family)
        pooling = pool_cases(
            {OWN: sample, **others}, start=start, threads=options.threads, clock=options.clock, family=family
        )
        return replace(options, prior=_plain(pooling.prior(OWN)))
    return options


def _plain(prior: Any) -> Any:
    """A prior as plain data, which a model file keeps."""
    return prior.to_dict() if isinstance(prior, Prior) else prior


def leave_out(others: Mapping[str, Sample], bridges: Any) -> dict[str, Sample]:
    """The other cases without the rows of some bridges: those that a fit is judged on."""
    return {name: one.take(~np.isin(one.bridge, bridges)) for name, one in others.items()}
