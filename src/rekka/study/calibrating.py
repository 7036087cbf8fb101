"""The calibration of a study's model: on its training rows, its validation rows, or its golden rows."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.calibration import REPLICATES, Calibration, calibrate
from rekka.goodness import link_rows
from rekka.model.fit import Options
from rekka.model.serial import load_model
from rekka.resampling import Sample
from rekka.study.cases import keep_supported
from rekka.study.rows import StudyRows
from rekka.study.trial import quiet

TRAIN = "train"
MEMBER = ("bridge_id", "case", "member", "history")  # what a chain of visits is of, as far as the table tells


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


def find_links(frame: pl.DataFrame) -> NDArray[np.int64] | None:
    """For each row the row of the same member that ends where it starts; None where the table knows no visits.

    A visit that two rows end with, as where members have no names of their own, links nothing, and nor do two rows
    of which one does not start in the state the other ends in.
    """
    if not {"visit_1", "visit_2"} <= set(frame.columns):
        return None
    member = [pl.col(name).cast(pl.String).fill_null("") for name in MEMBER if name in frame.columns]
    first, second = (
        frame.select(pl.concat_str([*member, pl.col(name).cast(pl.String)], separator="\x1f")).to_series()
        for name in ("visit_1", "visit_2")
    )
    if first.null_count() or second.null_count():
        return None
    follows = link_rows(first.to_numpy().astype(np.str_), second.to_numpy().astype(np.str_))
    start, end = (frame[name].to_numpy() for name in ("state_1", "state_2"))
    sure = ~(second.is_duplicated() | first.is_duplicated()).to_numpy()
    linked = (follows >= 0) & sure & sure[follows] & (end[follows] == start)
    return np.where(linked, follows, -1)
