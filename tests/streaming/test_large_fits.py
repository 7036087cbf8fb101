import logging

import numpy as np
import polars as pl
import pytest
from streaming_cases import drawn, source_of

import rekka
from rekka import ExponentialHazardMarkovModel as Model
from rekka.core.errors import BadStates
from rekka.model import inputs
from rekka.model.fit import Options
from rekka.streaming import any_size as large
from rekka.streaming.blocks import ArraySource, Reading, ScanSource
from rekka.streaming.fit import fit_source
from rekka.streaming.passes import MOST_STATES, look_over

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]


@pytest.fixture
def in_blocks(monkeypatch):
    """Every table counts as large."""
    monkeypatch.setattr(large, "WHOLE", 100)


@pytest.fixture
def folder(tmp_path):
    for number, frame in enumerate(drawn().iter_slices(1100)):
        frame.write_parquet(tmp_path / f"part-{number}.parquet")
    return tmp_path


def in_memory():
    return Model(covariates=NAMES).fit(drawn(), drawn()["state_2"], groups=drawn()["bridge_id"].to_numpy())


@pytest.mark.parametrize("kind", ["folder", "file", "query"])
def test_a_path_or_a_query_is_fitted_like_a_frame(folder, kind, in_blocks):
    drawn().write_parquet(folder / "all.parquet.tmp")
    (folder / "all.parquet.tmp").rename(folder.parent / "all.parquet")
    X = {
        "folder": str(folder),
        "file": folder.parent / "all.parquet",
        "query": pl.scan_parquet(folder / "*.parquet"),
    }
    ours, theirs = Model(covariates=NAMES).fit(X[kind], groups="bridge_id"), in_memory()
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-9, atol=1e-18)
    assert ours.summary().columns == theirs.summary().columns
    np.testing.assert_array_equal(ours.predict(drawn()), theirs.predict(drawn()))


def test_small_tables_are_read_whole_and_give_the_same_bits(folder):
    ours, theirs = Model(covariates=NAMES).fit(folder, groups="bridge_id"), in_memory()
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.covariance_, theirs.covariance_)


def test_blocks_and_whole_agree(monkeypatch):
    whole = in_memory()
    monkeypatch.setattr(large, "WHOLE", 100)
    blocks = in_memory()
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-10)
    assert blocks.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-13)


def test_the_limit_decides_and_the_log_says_so(folder, in_blocks, monkeypatch, caplog):
    with caplog.at_level(logging.INFO, logger="rekka"):
        held = Model(covariates=NAMES, memory="2GB").fit(folder)
        monkeypatch.setattr(large, "ROOM", 1e6)
        streamed = Model(covariates=NAMES, memory="2GB").fit(folder)
    words = [record.getMessage() for record in caplog.records]
    assert "3,000 rows" in words[0]
    assert "held in memory (limit 2 GB)" in words[0]
    assert "streamed in blocks of 16,384 rows (limit 2 GB)" in words[1]
    np.testing.assert_array_equal(held.coef_, streamed.coef_)


def test_the_model_of_a_path_is_saved_and_read(folder):
    model = Model(covariates=NAMES, memory="1GB").fit(folder)
    again = Model.from_json(model.to_json())
    assert again.memory is None  # of the machine, not of the model
    np.testing.assert_array_equal(again.predict_proba(drawn()), model.predict_proba(drawn()))


def test_all_columns_but_the_roles_are_covariates_by_default(folder):
    model = Model().fit(pl.scan_parquet(folder / "*.parquet").drop("bridge_id"))
    assert model.covariates_ == tuple(NAMES)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": np.ones(3)}, "y is a ndarray; for rows in files or of a query it is the name of their column"),
        ({"groups": "bridge"}, "bridge is not in"),
        ({"sample_weight": [1.0]}, "sample_weight is a list"),
        ({"y": "state_3"}, "state_3 is not in"),
    ],
)
def test_columns_are_named(folder, given, words):
    with pytest.raises(rekka.InputError, match=words):
        Model(covariates=NAMES).fit(folder, **given)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(rekka.InputError, match="There is no file"):
        Model().fit(tmp_path / "none.parquet")
    drawn().clear().write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(rekka.InputError, match="has no rows"):
        Model().fit(tmp_path / "empty.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(rekka.InputError, match="damaged"):
        Model().fit(tmp_path / "damaged.parquet")
    drawn().write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(rekka.InputError, match="memory is 'lots'"):
        Model(covariates=NAMES, memory="lots").fit(tmp_path / "rows.parquet")


def test_rows_in_memory_do_not_go_to_a_cluster():
    with pytest.raises(rekka.InputError, match="give the path"):
        Model(covariates=NAMES).fit(drawn(), drawn()["state_2"], cluster="local")


def transitions_to(*ends):
    """Rows from the best state, in blocks of two."""
    frame = pl.DataFrame({"s": 1, "e": list(ends), "d": 1.0})
    return source_of(frame, Reading("s", "e", "d", ()), 2)


@pytest.mark.parametrize("ends", [(1, 4, 1, 2), (1, 2, 4, 1)])
def test_blocks_may_know_fewer_states_than_others(ends):
    found = look_over(transitions_to(*ends))
    np.testing.assert_array_equal(found.counts, [[2, 1, 0, 1], [0] * 4, [0] * 4, [0] * 4])


def test_so_many_states_and_no_more():
    assert len(look_over(transitions_to(1, MOST_STATES)).counts) == MOST_STATES
    with pytest.raises(
        BadStates, match=f"There is a state {MOST_STATES + 1}; so many rows can have {MOST_STATES}"
    ):
        look_over(transitions_to(1, MOST_STATES + 1))


@pytest.mark.parametrize("rows", [15, 16, 17, 32, 33])
def test_the_last_row_of_a_file_is_read(rows):
    """Frames hold eight blocks of two rows."""
    frame = pl.DataFrame({"s": 1, "e": 2, "d": np.arange(1.0, rows + 1)})
    blocks = ScanSource(frame.lazy(), Reading("s", "e", "d", ()), block_rows=2).map(
        lambda block: block.dt.tolist()
    )
    assert [year for block in blocks for year in block] == frame["d"].to_list()


def test_the_last_hash_of_a_range_is_in_it(monkeypatch):
    """Two groups whose hashes, 0 and 1, are all that there are."""
    monkeypatch.setattr("rekka.streaming.blocks.SCATTER", np.uint64(1))
    monkeypatch.setattr("rekka.streaming.clustered_errors.ALL", 2)
    frame = drawn(300)
    columns = inputs.Columns("state_1", "interval_years", ())
    training = inputs.read_training(
        inputs.as_frame(frame), frame["state_2"], columns, groups=np.arange(len(frame)) % 2
    )
    fit = fit_source(ArraySource(training, ()), Options(), clustered=True)
    assert fit.inference.kind == "sandwich, clustered by 2 groups"
