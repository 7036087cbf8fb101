import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler
from streaming_cases import READING, assert_same_fit, drawn, fit_in_memory, source_of

from rekka.core.errors import BadCovariates, BadOption, BadStates, BadValues, BadWeights, InputError, ScalingError
from rekka.model.certificate import Verdict
from rekka.model.fit import Options
from rekka.model.likelihood import Likelihood, Rows
from rekka.streaming.blocks import Reading, ScanSource, read_block
from rekka.streaming.fit import fit_source, refit_source


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "max", "robust", "log+zscore", None])
def test_a_fit_in_blocks_is_the_fit_in_memory(scaling):
    options = Options(scaling=scaling)
    ours = fit_source(source_of(drawn()), options, clustered=True)
    assert_same_fit(ours, fit_in_memory(drawn(), options))


@pytest.mark.parametrize("scaling", ["boxcox", "boxcox+zscore", "yeojohnson+zscore"])
def test_exponents_agree_to_what_their_search_tells_apart(scaling):
    """Brent's search knows a minimum to the root of the rounding errors of its function."""
    options = Options(scaling=scaling)
    ours, theirs = fit_source(source_of(drawn()), options), fit_in_memory(drawn(), options)
    first = [fit.scaling.links[0] if hasattr(fit.scaling, "links") else fit.scaling for fit in (ours, theirs)]
    np.testing.assert_allclose(first[0].exponent, first[1].exponent, atol=3e-7)
    np.testing.assert_allclose(ours.inference.log_likelihood, theirs.inference.log_likelihood, rtol=1e-9)


@pytest.mark.parametrize("scaling", ["boxcox", "robust", "zscore"])
def test_memory_files_and_threads_give_the_same_bits(tmp_path, scaling):
    drawn().write_parquet(tmp_path / "rows.parquet", row_group_size=311)
    query = pl.scan_parquet(tmp_path / "rows.parquet")
    sources = [
        source_of(drawn()),
        source_of(drawn(), threads=2),
        ScanSource(query, READING, threads=1, block_rows=256),
        ScanSource(query, READING, threads=2, block_rows=256),
    ]
    fits = [fit_source(one, Options(scaling=scaling), clustered=True) for one in sources]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.beta, fits[0].beta)
        np.testing.assert_array_equal(fit.inference.covariance, fits[0].inference.covariance)
        assert fit.inference.log_likelihood == fits[0].inference.log_likelihood
        assert fit.certificate == fits[0].certificate


def test_weights_and_weight_zero():
    rng = np.random.default_rng(1)
    frame = drawn().with_columns(w=pl.Series(rng.integers(0, 4, len(drawn())).astype(float)))
    reading = Reading(*READING.columns[:3], READING.covariates, weight="w", group="bridge_id")
    ours = fit_source(source_of(frame, reading), Options(), clustered=True)
    assert_same_fit(ours, fit_in_memory(frame, Options(), reading))
    frame = frame.with_columns(w=pl.when(pl.int_range(pl.len()) < 300).then(0.0).otherwise(pl.col("w")))
    ours = fit_source(source_of(frame, reading), Options(), clustered=True)  # a whole block is not there
    assert_same_fit(ours, fit_in_memory(frame, Options(), reading))


def test_class_weights():
    ours = fit_source(source_of(drawn()), Options(), clustered=True, class_weight="inverse_frequency")
    assert_same_fit(ours, fit_in_memory(drawn(), Options(), class_weight="inverse_frequency"))
    with pytest.raises(BadOption, match="class_weight"):
        fit_source(source_of(drawn()), Options(), class_weight="balanced")


@pytest.mark.parametrize(
    "options",
    [
        Options(ridge=3.0),
        Options(effects={"traffic_mean": [2]}, shared={"bridge_length": [[1, 2, 3]]}),
        Options(prior={"mean": np.full(15, -1.0), "precision": 5.0 * np.eye(15)}),
    ],
    ids=["ridge", "layout", "prior"],
)
def test_penalties_and_layouts(options):
    assert_same_fit(fit_source(source_of(drawn()), options, clustered=True), fit_in_memory(drawn(), options))


def test_without_covariates():
    reading = Reading(*READING.columns[:3], (), group="bridge_id")
    ours = fit_source(source_of(drawn(), reading), Options(scaling=None), clustered=True)
    assert_same_fit(ours, fit_in_memory(drawn(), Options(scaling=None), reading))


@pytest.mark.parametrize("gradient", ["exact", "numeric"])
def test_lbfgs_takes_the_same_way(gradient):
    options = Options(solver="lbfgs", gradient=gradient, seed=3, max_iter=5 if gradient == "numeric" else 500)
    ours, theirs = fit_source(source_of(drawn()), options), fit_in_memory(drawn(), options)
    np.testing.assert_allclose(ours.beta, theirs.beta, atol=1e-3)
    assert ours.outcome.success == theirs.outcome.success


def test_a_refit_is_the_same_maximum():
    whole = fit_source(source_of(drawn()), Options())
    again = refit_source(source_of(drawn()), Options(), start=whole.beta)
    assert again.certificate.verdict is Verdict.LOCAL_MAXIMUM
    assert again.at_maximum
    np.testing.assert_allclose(again.beta, whole.beta, rtol=1e-10)
    assert again.log_likelihood == pytest.approx(whole.inference.log_likelihood, rel=1e-13)


def test_groups_in_several_passes_are_those_in_one():
    one = fit_source(source_of(drawn()), Options(), clustered=True)
    stages = []
    few = fit_source(source_of(drawn()), Options(), clustered=True, score_bytes=20_000, on_pass=stages.append)
    assert stages.count("scores by bridge") > 5
    np.testing.assert_allclose(few.inference.covariance, one.inference.covariance, rtol=1e-9, atol=1e-18)
    assert (
        few.inference.kind
        == one.inference.kind
        == f"sandwich, clustered by {drawn()['bridge_id'].n_unique()} groups"
    )


def test_groups_that_do_not_fit_are_gone_through_in_more_passes(monkeypatch):
    one = fit_source(source_of(drawn()), Options(), clustered=True)
    monkeypatch.setattr("rekka.streaming.clustered_errors.MARKED", 0)  # as if nobody knew how many there are
    few = fit_source(source_of(drawn()), Options(), clustered=True, score_bytes=20_000)
    np.testing.assert_allclose(few.inference.covariance, one.inference.covariance, rtol=1e-9, atol=1e-18)
    assert few.inference.kind == one.inference.kind


def evaluate_inside(block):
    rows = Rows(block.start, block.end, block.dt, block.weight, 4)
    X = np.ones((block.dt.size, 1))
    return Likelihood.build(rows.take(rows.grouping), X, threads=2).evaluate(np.full((3, 1), -2.0)).value


def test_what_is_done_with_a_block_may_use_threads_of_its_own():
    """Both sets of threads at work; if they were one, each would wait for the other for ever."""
    frame, rows = drawn(40_000), 10_000
    ours = list(source_of(frame, block_rows=rows, threads=2).map(evaluate_inside))
    theirs = [
        evaluate_inside(read_block(frame[first : first + rows], READING)) for first in range(0, 40_000, rows)
    ]
    assert ours == theirs


def test_the_sample_on_which_starts_were_tried_is_named(monkeypatch):
    whole = fit_source(source_of(drawn()), Options()).certificate
    assert whole.starts == 4
    assert "on a sample" not in str(whole)
    monkeypatch.setattr("rekka.streaming.likelihood.SAMPLE", 500)
    some = fit_source(source_of(drawn()), Options()).certificate
    assert some.certified
    assert "other starts were tried on a sample of" in str(some)


@pytest.mark.parametrize(
    ("column", "row", "value", "error", "words"),
    [
        ("interval_years", 700, 0.0, BadValues, "interval_years is 0 in row 700"),
        ("state_2", 1999, 0, BadStates, "row 1999"),
        ("state_1", 2999, 4, BadStates, "end state"),
        ("traffic_mean", 513, None, BadValues, "traffic_mean is missing in 1 of"),
        ("traffic_mean", 514, np.inf, BadValues, "row 514"),
        ("bridge_id", 300, None, InputError, "bridge_id is missing"),
    ],
)
def test_a_bad_value_is_named_with_its_row_in_the_table(column, row, value, error, words):
    frame = drawn().with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )
    if column == "state_1":
        frame = frame.with_columns(state_2=pl.when(pl.int_range(pl.len()) == row).then(3).otherwise("state_2"))
    with pytest.raises(error, match=words) as found:
        fit_source(source_of(frame), Options(), clustered=True)
    assert found.value.values["rows"] == [row]


def test_what_cannot_be_fitted_is_refused():
    frame = drawn()
    twin = frame.with_columns(bridge_area=2.0 * pl.col("bridge_length") + 1.0)
    with pytest.raises(BadCovariates, match="bridge_area duplicates bridge_length"):
        fit_source(source_of(twin), Options())
    flat = frame.with_columns(bridge_area=pl.lit(3.0))
    with pytest.raises(BadCovariates, match="bridge_area is 3 in all 3000 training rows"):
        fit_source(source_of(flat), Options())
    with pytest.raises(BadOption, match="all rows in memory"):
        fit_source(source_of(frame), Options(scaling=StandardScaler()))
    with pytest.raises(BadOption, match="all rows in memory"):
        fit_source(source_of(frame), Options(solver="lbfgs", gradient="numeric", likelihood="paper"))
    with pytest.raises(ScalingError, match="max scaling"):
        fit_source(source_of(frame.with_columns(pl.col("bridge_length") * -1.0)), Options(scaling="max"))
    with pytest.raises(BadStates, match="n_states = 3"):
        fit_source(source_of(frame), Options(), n_states=3)
    with pytest.raises(BadStates, match="There is a state 70000; so many rows can have 256 at most"):
        fit_source(source_of(frame.with_columns(state_2=pl.lit(70_000))), Options())
    with pytest.raises(InputError, match="no rows"):
        fit_source(source_of(frame.clear()), Options())
    weightless = Reading(*READING.columns[:3], READING.covariates, weight="w")
    with pytest.raises(BadWeights, match="0 in every row"):
        fit_source(source_of(frame.with_columns(w=0.0), weightless), Options())


def test_columns_of_other_kinds_are_read_as_numbers():
    frame = drawn().with_columns(
        pl.col("state_1").cast(pl.Int8),
        pl.col("state_2").cast(pl.Float64),
        pl.col("bridge_length").cast(pl.Float32),
    )
    theirs = fit_in_memory(frame, Options())
    assert_same_fit(fit_source(source_of(frame), Options(), clustered=True), theirs)
