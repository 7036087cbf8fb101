import logging

import numpy as np
import polars as pl
import pytest
from streaming_cases import drawn

import rekka
from rekka import ExponentialHazardMarkovModel as Model
from rekka.streaming import any_size as large
from rekka.streaming import tables

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]


@pytest.fixture
def in_blocks(monkeypatch):
    """Every table counts as large."""
    for room in (large, tables):
        monkeypatch.setattr(room, "WHOLE", 100)


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
        monkeypatch.setattr(tables, "ROOM", 1e6)
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
