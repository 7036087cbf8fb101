"""The calibration of a study's model: on its training rows, its validation rows, or its golden rows.

What is chosen is tested on its training rows once, with the choice; the model's file and the choice keep the
result.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from rekka.core.numerics import quiet
from rekka.evaluation.calibration import REPLICATES, Calibration, calibrate, check_fit
from rekka.evaluation.goodness import find_links
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Fit, Options
from rekka.model.serial import load_model
from rekka.model.survey import FitTest
from rekka.study.cases import keep_supported
from rekka.study.rows import StudyRows

TRAIN = "train"


def calibrate_model(
    rows: StudyRows, case: str, model: str, part: str, *, replicates: int | None = None, seed: int
) -> Calibration:
    """Judge the rows of a part by a fitted model, given as JSON; a member's visits are linked where known.

    Rows whose states the training rows do not know are left out, as they are from every score. Without a number of
    ``replicates`` the test of the training rows is the model's own, where it has one.
    """
    fit, parameters, _ = load_model(model)
    wanted = (TRAIN,) if part == TRAIN else (TRAIN, part)
    frames = [_take_part(rows, case, name, fit.n_states) for name in wanted]
    samples = [Sample.of(frame, fit.covariates, fit.n_states) for frame in frames]
    known = fit.fit_test if part == TRAIN and replicates is None else None
    if replicates is None:
        replicates = REPLICATES if known is None else 0
    with quiet():
        found = calibrate(
            fit,
            samples[-1],
            training=samples[0],
            options=_read_options(fit, parameters),
            follows=find_links(pl.concat(frames)),
            replicates=replicates,
            seed=seed,
            certificate=fit.certificate,
        )
    return found if known is None else found.with_test(known)


def check_model(rows: StudyRows, case: str, model: str, *, seed: int) -> FitTest | None:
    """Test a fitted model, given as JSON, on its training rows; None where no test can be made."""
    fit, parameters, _ = load_model(model)
    frame = _take_part(rows, case, TRAIN, fit.n_states)
    sample = Sample.of(frame, fit.covariates, fit.n_states)
    with quiet():
        return check_fit(fit, sample, options=_read_options(fit, parameters), follows=find_links(frame), seed=seed)


def _take_part(rows: StudyRows, case: str, part: str, n_states: int) -> pl.DataFrame:
    return keep_supported(rows.frame.filter(pl.col("case") == case, pl.col("part") == part), n_states)


def _read_options(fit: Fit, parameters: dict[str, Any]) -> Options:
    own = {"ridge": parameters.get("ridge", 0.0), "prior": parameters.get("prior")}
    return Options(scaling=parameters["scaling"], threads=1, **own, family=fit.family.name)
