"""The calibration of a study's model: on its training rows, its validation rows, or its golden rows."""

from __future__ import annotations

import polars as pl

from rekka.calibration import REPLICATES, Calibration, calibrate
from rekka.goodness import find_links
from rekka.model.fit import Options
from rekka.model.serial import load_model
from rekka.resampling import Sample
from rekka.study.cases import keep_supported
from rekka.study.rows import StudyRows
from rekka.study.trial import quiet

TRAIN = "train"


def calibrate_model(
    rows: StudyRows, case: str, model: str, part: str, *, replicates: int = REPLICATES, seed: int
) -> Calibration:
    """Judge the rows of a part by a fitted model, given as JSON; a member's visits are linked where known.

    Rows whose states the training rows do not know are left out, as they are from every score.
    """
    fit, parameters, _ = load_model(model)
    wanted = (TRAIN,) if part == TRAIN else (TRAIN, part)
    frames = [
        keep_supported(rows.frame.filter(pl.col("case") == case, pl.col("part") == name), fit.n_states)
        for name in wanted
    ]
    samples = [Sample.of(frame, fit.covariates, fit.n_states) for frame in frames]
    options = Options(
        scaling=parameters["scaling"], ridge=parameters.get("ridge", 0.0), prior=parameters.get("prior"), threads=1
    )
    with quiet():
        return calibrate(
            fit,
            samples[-1],
            training=samples[0],
            options=options,
            follows=find_links(pl.concat(frames)),
            replicates=replicates,
            seed=seed,
            certificate=fit.certificate,
        )
