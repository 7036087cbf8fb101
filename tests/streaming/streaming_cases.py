"""Rows for the tests of streaming: in memory, and as a source of small blocks."""

from functools import cache

import numpy as np
import polars as pl

from rekka.model import inputs
from rekka.model.fit import fit_rows
from rekka.simulation.rows import COVARIATES, simulate_transitions
from rekka.streaming.blocks import FrameSource, Reading

READING = Reading("state_1", "state_2", "interval_years", COVARIATES, group="bridge_id")


@cache
def drawn(rows: int = 3000, seed: int = 7) -> pl.DataFrame:
    return simulate_transitions(rows, n_states=4, seed=seed)


def source_of(frame: pl.DataFrame, reading: Reading = READING, block_rows: int = 256, threads: int = 1):
    return FrameSource(frame, reading, threads, block_rows)


def fit_in_memory(frame, options, reading: Reading = READING, *, class_weight=None):
    training = inputs.read_training(
        inputs.as_frame(frame),
        frame[reading.end],
        inputs.Columns(reading.start, reading.dt, reading.covariates),
        sample_weight=None if reading.weight is None else frame[reading.weight].to_numpy(),
        groups=None if reading.group is None else frame[reading.group].to_numpy(),
        class_weight=class_weight,
    )
    return fit_rows(training.rows, training.x, reading.covariates, options, training.groups)


def assert_same_fit(ours, theirs, rtol=1e-10):
    """Equal in all that a fit says, up to rounding."""
    assert ours.certificate.verdict == theirs.certificate.verdict
    assert ours.inference.kind == theirs.inference.kind
    assert ours.n_rows == theirs.n_rows
    sd = np.sqrt(np.diag(theirs.inference.covariance))
    scale = np.where(np.outer(sd, sd) > 0, np.outer(sd, sd), 1.0)  # some coefficients are fixed at zero
    np.testing.assert_allclose(ours.inference.coefficients, theirs.inference.coefficients, rtol=rtol, atol=1e-13)
    np.testing.assert_allclose(ours.inference.covariance / scale, theirs.inference.covariance / scale, atol=1e-9)
    np.testing.assert_allclose(ours.inference.log_likelihood, theirs.inference.log_likelihood, rtol=1e-13)
    for figure in ("condition_number", "plateau_train", "maximum_exists"):
        np.testing.assert_allclose(
            getattr(ours.certificate, figure), getattr(theirs.certificate, figure), rtol=1e-8
        )
    np.testing.assert_array_equal(ours.survey.quantiles, theirs.survey.quantiles)
