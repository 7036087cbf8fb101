import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming_cases import source_of

from rekka.streaming import passes as quantiles
from rekka.streaming.blocks import Reading
from rekka.streaming.passes import find_quantiles


def source(values, block_rows):
    frame = pl.DataFrame({"s": 1, "e": 2, "d": 1.0, "x": values}, schema_overrides={"x": pl.Float64})
    return source_of(frame, Reading("s", "e", "d", ("x",)), block_rows)


numbers = st.one_of(st.floats(-1e12, 1e12), st.integers(-3, 3).map(float), st.sampled_from([0.0, -0.0, 1e-300]))


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=300), st.integers(1, 64), st.sampled_from([2, 7, 2048]))
def test_quantiles_are_those_of_numpy(values, block_rows, edges):
    probabilities = np.linspace(0, 1, 101)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "EDGES", edges)
        patch.setattr(quantiles, "SAMPLE", 10)
        ours = find_quantiles(source(values, block_rows), probabilities, len(values))
    np.testing.assert_array_equal(ours[:, 0], np.quantile(np.array(values), probabilities))


def test_few_values_need_no_third_pass(monkeypatch):
    values = np.random.default_rng(0).integers(0, 50, 5000).astype(float)
    passes = []
    one = source(values, 500)
    monkeypatch.setattr(quantiles, "_collect_block", lambda *given: pytest.fail("collected"))
    real = type(one).map
    monkeypatch.setattr(type(one), "map", lambda self, function: passes.append(1) or real(self, function))
    ours = find_quantiles(one, np.array([0.5]), 5000)
    assert ours[0, 0] == np.median(values)
    assert len(passes) == 2


def test_values_below_all_that_were_sampled(monkeypatch):
    """Of these six values the sample has 3 and 4."""
    monkeypatch.setattr(quantiles, "SAMPLE", 2)
    ours = find_quantiles(source([3.0, 0.0, 2.0, 4.0, 5.0, 1.0], 6), np.linspace(0, 1, 6), 6)
    np.testing.assert_allclose(ours[:, 0], np.arange(6.0), rtol=1e-12)
