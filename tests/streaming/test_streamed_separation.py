import numpy as np
import polars as pl
import pytest
from streaming_cases import fit_in_memory, source_of

from rekka.model.certificate import Verdict
from rekka.model.fit import Options
from rekka.streaming import likelihood as sample
from rekka.streaming import separation
from rekka.streaming.blocks import Reading
from rekka.streaming.fit import fit_source

READING = Reading("start", "end", "dt", ("a", "b"))


def rows(n, seed, *, separated):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    start = rng.integers(1, 3, n)
    left = rng.random(n) < 0.3
    if separated:  # those that left state 2 have a large a; those that came to it, or stayed, do not
        left = np.where(start == 2, a > 0.4, left & (a < 0.4))
    return pl.DataFrame(
        {"start": start, "end": start + left, "dt": rng.uniform(1, 5, n), "a": a, "b": b}
    ).with_columns(pl.col("end").clip(upper_bound=3))


@pytest.fixture(params=["whole", "sampled"])
def sampling(request, monkeypatch):
    """A sample of a few rows, so that passes have to look for those that rule a direction out."""
    if request.param == "sampled":
        monkeypatch.setattr(sample, "SAMPLE", 40)
        monkeypatch.setattr(separation, "ENOUGH", 20)
    return request.param


@pytest.mark.parametrize("seed", range(3))
def test_separated_rows_have_no_finite_maximum(seed, sampling):
    frame = rows(900, seed, separated=True)
    ours = fit_source(source_of(frame, READING, 128), Options())
    theirs = fit_in_memory(frame, Options(), READING)
    assert ours.certificate.verdict is theirs.certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert ours.certificate.reasons == theirs.certificate.reasons
    assert "state 2" in ours.certificate.reasons[0]


@pytest.mark.parametrize("seed", range(3))
def test_one_row_on_the_other_side_makes_a_maximum(seed, sampling):
    frame = rows(900, seed, separated=True)
    place = int(np.flatnonzero((frame["start"] == 2) & (frame["end"] == 2) & (frame["a"] < -1))[0])
    frame = frame.with_columns(end=pl.when(pl.int_range(pl.len()) == place).then(3).otherwise("end"))
    ours = fit_source(source_of(frame, READING, 128), Options())
    theirs = fit_in_memory(frame, Options(), READING)
    assert ours.certificate.maximum_exists
    assert theirs.certificate.maximum_exists


def test_a_state_that_nobody_leaves_is_named(sampling):
    frame = rows(600, 3, separated=False).with_columns(end=pl.when(pl.col("start") == 2).then(2).otherwise("end"))
    ours = fit_source(source_of(frame, READING, 128), Options(), n_states=3)
    assert ours.certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert "state 2: no row leaves it" in ours.certificate.reasons[0]


def test_a_clear_case_needs_no_further_pass(sampling):
    stages = []
    fit = fit_source(source_of(rows(900, 1, separated=False), READING, 128), Options(), on_pass=stages.append)
    assert fit.certificate.certified
    assert "separation" not in stages or sampling == "sampled"
