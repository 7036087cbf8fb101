"""Histories in blocks of whole bridges: the same fit in memory, from files and on a cluster, and the same refusals."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rekka import ExponentialHazardMarkovModel as Model
from rekka.core.errors import BadStates, InputError
from rekka.model import history_starts
from rekka.streaming import histories as module
from rekka.streaming.histories import ROW, cut_chain, place_bridges

KEYS = {"histories": "history", "groups": "bridge"}


def make_rows(members: int = 60, seed: int = 1) -> pl.DataFrame:
    """Rows of members with four visits, those of a bridge scattered over the table; some histories have one visit."""
    rng = np.random.default_rng(seed)
    pace = rng.exponential(size=20)
    rows: list[dict[str, Any]] = []
    for b in range(members):
        state, age, year = int(rng.integers(1, 3)), float(rng.integers(1, 30)), float(rng.integers(2000, 2003))
        known = {"bridge": f"B{b % 20}", "history": b, "material": ("steel", "oak", "iron")[b % 3]}
        rating, load = state, float(rng.normal())
        for visit in range(3):
            years = float(rng.integers(1, 4))
            state = min(state + int(rng.random() < 0.15 * pace[b % 20] * years), 3)
            seen = int(np.clip(state + rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1]), 1, 3))
            times = {"visit": visit, "interval_years": years, "age": age, "load": load, "date_1": year}
            rows.append(known | {"state_1": rating, "state_2": seen} | times)
            rating, age, year = seen, age + years, year + years
    single = {"visit": 0, "state_1": 1, "state_2": None, "interval_years": None, "load": 0.5}
    rows += [single | {"bridge": f"S{b}", "history": 1000 + b, "material": "oak", "age": 9.0 + b, "date_1": 2001.0}
             for b in range(4)]  # fmt: skip
    return pl.DataFrame(rows).sort("visit", maintain_order=True).drop("visit")


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return make_rows()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of about 30 rows, few parts on a cluster, and one start: a pass over a cluster takes a tenth of a second."""
    monkeypatch.setattr(module, "WHOLE", 50)
    monkeypatch.setattr(module, "ROWS", 30)
    monkeypatch.setattr(module, "PARTS", 2)
    monkeypatch.setattr(history_starts, "STARTS", history_starts.STARTS[:1])


@pytest.fixture
def stored(small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Blocks in a temporary folder, which is in this one."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(module, "HELD", 1e12)
    monkeypatch.setattr(module, "SCANNED", 9_000 / 500e6)  # two blocks by a scan
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A worker that is a thread of this process."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install 'rekka[cluster]')")
    options = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    options["scheduler_kwargs"] = {
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
    }  # else it takes port 8787
    workers = {"n_workers": 1, "threads_per_worker": 1}
    with distributed.LocalCluster(**workers, **options) as made, distributed.Client(made) as client:
        yield client


def write(rows: pl.DataFrame, folder: Path) -> Path:
    """The rows in two files of a folder."""
    (folder / "rows").mkdir()
    rows[:70].write_parquet(folder / "rows" / "1.parquet")
    rows[70:].write_parquet(folder / "rows" / "2.parquet")
    return folder / "rows"


def fit_held(rows: pl.DataFrame, **options: Any) -> Model:
    given = {name: rows[column] for name, column in KEYS.items()}
    return Model(**{"covariates": ["age", "load"], "threads": 2} | options).fit(rows, rows["state_2"], **given)


def fit_lazy(X: Any, cluster: Any = None, on_pass: Any = None, **options: Any) -> Model:
    options = {"covariates": ["age", "load"], "threads": 2, "memory": "500MB"} | options
    return Model(**options).fit(X, y="state_2", **KEYS, cluster=cluster, on_pass=on_pass)


def assert_same_bits(ours: Model, theirs: Model) -> None:
    assert ours.log_likelihood_ == theirs.log_likelihood_
    assert ours.coef_.tobytes() == theirs.coef_.tobytes()
    assert ours.covariance_.tobytes() == theirs.covariance_.tobytes()
    assert ours.certificate_ == theirs.certificate_
    assert ours.records_ is not None
    assert theirs.records_ is not None
    assert ours.records_.extra.tobytes() == theirs.records_.extra.tobytes()
    assert np.array_equal(ours.survey_.quantiles, theirs.survey_.quantiles)
    assert (ours.frailty_ is None) == (theirs.frailty_ is None)
    assert ours.frailty_ is None or ours.frailty_.equals(theirs.frailty_)


ELEMENTS: list[dict[str, Any]] = [
    {"errors": "adjacent-common", "trend": "common", "clock": "running", "covariates": ["age"]},
    {"errors": "adjacent-common", "frailty": "gamma", "scaling": "minmax", "covariates": ["load"]},
    {"improvements": "common", "scaling": "robust", "covariates": ["age", "material"]},
]


@pytest.mark.parametrize("options", ELEMENTS, ids=["errors and trend", "frailty", "improvements and categories"])
def test_the_same_bits_from_memory_files_and_a_cluster(
    rows: pl.DataFrame, options: Any, stored: Path, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    held = fit_held(rows, **options)
    files = fit_lazy(write(rows, tmp_path), on_pass=passes.append, **options)
    assert_same_bits(held, files)
    assert {"reading", "checking", "coordinates", "likelihood", "quantiles"} < set(passes)
    assert passes.count("reading") > 2
    assert list(stored.iterdir()) == []
    assert_same_bits(held, fit_lazy(tmp_path / "rows", cluster, **options))
    monkeypatch.setattr(module, "HELD", 1.0)
    assert_same_bits(held, fit_lazy(rows.lazy(), **options | {"threads": 1, "memory": "1GB"}))


@pytest.mark.parametrize("options", ELEMENTS, ids=["errors and trend", "frailty", "improvements and categories"])
def test_many_blocks_agree_with_one(
    rows: pl.DataFrame, options: Any, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fit_lazy(write(rows, tmp_path), **options)
    monkeypatch.setattr(module, "WHOLE", 1000)
    whole = fit_held(rows, **options)
    assert whole.log_likelihood_ == pytest.approx(files.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(files.coef_, whole.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(files.covariance_, whole.covariance_, rtol=1e-4, atol=1e-8)
    assert files.covariates_ == whole.covariates_
    if whole.frailty_ is not None and files.frailty_ is not None:
        assert files.frailty_variance_ > 0.1
        assert set(whole.frailty_["group"]) == set(files.frailty_["group"]) == set(rows["bridge"])
    assert_same_bits(whole, fit_lazy(tmp_path / "rows", **options))


def test_each_row_by_itself(rows: pl.DataFrame, stored: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"covariates": ["age"], "errors": "adjacent-common", "memory": "500MB"}
    folder = write(rows, tmp_path)
    assert_same_bits(Model(**options).fit(rows, rows["state_2"]), Model(**options).fit(folder))
    both = Model(**options).fit(rows, rows["state_2"], histories=rows["bridge", "history"])
    assert_same_bits(both, Model(**options).fit(folder, histories=["bridge", "history"]))


def test_blocks_hold_whole_bridges_in_the_order_of_the_table(rows: pl.DataFrame, small: None) -> None:
    from rekka.model.history_inputs import read_history_rows
    from rekka.model.inputs import Columns, as_frame

    chain = read_history_rows(
        as_frame(rows), rows["state_2"], Columns("state_1", "interval_years", ("age",)),
        histories=rows["history"], groups=rows["bridge"],
    )  # fmt: skip
    blocks = cut_chain(chain, 7, alone=False)
    assert len(blocks) == 7
    assert sorted(np.concatenate([block.row for block in blocks])) == list(range(len(rows)))
    names = [name for block in blocks for name in block.names or ()]
    assert sorted(names) == sorted(set(rows["bridge"]))
    placed = rows.with_row_index(ROW).select(place_bridges(["bridge"], 7)).to_series().to_numpy()
    for block in blocks:
        assert block.row is not None
        assert (np.diff(block.row) > 0).all()
        assert np.unique(placed[block.row]).size == 1
        assert rows["bridge"][block.row].to_list() == [(block.names or ())[b] for b in block.bridge]
        assert np.array_equal(block.x[:, 0], rows["age"].to_numpy()[block.row])


@pytest.mark.parametrize("place", ["files", "cluster", "memory"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": None}, r"age is missing in 1 of \d+ rows \(row 101\)"),
        ({"state_1": 9}, "row 101: the history's row before ends in state"),
        ({"state_2": 60}, "row 101: state 60"),
        ({"bridge": pl.lit("elsewhere")}, "row 101: the group differs from that of the first row"),
        ({"bridge": None}, r"groups.* is missing in 1 .*\(row 101\)"),
        ({"age": 1.0}, "row 101: the age is below that of the history's row before"),
        ({"date_1": pl.col("date_1") + 0.5}, "rows 101, 161: the date of the first visit"),
    ],
)
def test_a_wrong_row_is_named_by_its_number_in_the_table(
    rows: pl.DataFrame, change: Any, words: str, place: str, stored: Path, cluster: Any, tmp_path: Path
) -> None:
    here = pl.int_range(pl.len()) == 101
    column, value = next(iter(change.items()))
    wrong = rows.with_columns(pl.when(here).then(value).otherwise(pl.col(column)).alias(column))
    lazy = partial(fit_lazy, write(wrong, tmp_path), cluster if place == "cluster" else None)
    fit = partial(fit_held, wrong) if place == "memory" else lazy
    with pytest.raises(InputError, match=words):
        fit(errors="adjacent")
    assert list(stored.iterdir()) == []


def test_one_bridge_alone_has_no_frailty(rows: pl.DataFrame, stored: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="All rows belong to one bridge"):
        fit_lazy(write(rows.with_columns(bridge=pl.lit("B")), tmp_path), errors="adjacent", frailty="gamma")


def test_ratings_that_cannot_follow_are_named(rows: pl.DataFrame, stored: Path, tmp_path: Path) -> None:
    with pytest.raises(BadStates, match="cannot follow the visits before it") as held:
        fit_held(rows, errors=np.eye(3))
    with pytest.raises(BadStates, match="cannot follow the visits before it") as files:
        fit_lazy(write(rows, tmp_path), errors=np.eye(3))
    assert held.value.rows == files.value.rows
    row = rows[files.value.rows[0]]
    assert f"(the row starts in {row['state_1'][0]})" in str(files.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_temporary_folder_is_removed_after_an_error(
    rows: pl.DataFrame, stored: Path, tmp_path: Path, error: type[BaseException]
) -> None:
    found = []

    def stop(stage: str) -> None:
        if stage == "likelihood":
            found.extend(stored.rglob("*.block"))
            raise error

    with pytest.raises(error):
        fit_lazy(write(rows, tmp_path), on_pass=stop, errors="adjacent-common")
    assert len(found) == 7
    assert list(stored.iterdir()) == []


class Halving:
    """A transformer from elsewhere."""

    def fit(self, x: Any) -> Halving:
        return self

    def transform(self, x: Any) -> Any:
        return x / 2


def test_what_needs_all_rows_is_refused_or_held(rows: pl.DataFrame, stored: Path, tmp_path: Path) -> None:
    folder = write(rows, tmp_path)
    with pytest.raises(InputError, match="scaling is a Halving, which needs all rows in memory"):
        fit_lazy(folder, errors="adjacent", scaling=Halving())
    assert fit_held(rows, errors="adjacent-common", scaling=Halving()).certificate_.certified
    with pytest.raises(InputError, match="histories is a Series; for rows in files"):
        Model(covariates=["age"], errors="adjacent").fit(folder, histories=rows["history"])
    with pytest.raises(InputError, match="groups is a Series; for rows in files"):
        Model(covariates=["age"], errors="adjacent").fit(folder, groups=rows["bridge"])
    with pytest.raises(InputError, match="episode is not in the table"):
        Model(covariates=["age"], errors="adjacent").fit(folder, histories=["episode"])
    with pytest.raises(InputError, match=r"fitted as pairs\. Leave histories out"):
        Model(covariates=["age"]).fit(folder, histories="history")
    with pytest.raises(InputError, match="takes no weights"):
        Model(covariates=["age"], errors="adjacent").fit(folder, sample_weight="load")
    with pytest.raises(InputError, match="a trend needs the date"):
        fit_lazy(folder, trend="common", date="when")
    with pytest.raises(InputError, match="The rows are in memory here"):
        Model(covariates=["age"], errors="adjacent").fit(rows, rows["state_2"], cluster="local")
    constant = rows.with_columns(load=pl.lit(1.0)).lazy()
    with pytest.raises(InputError, match="load is 1 in all"):
        fit_lazy(constant, errors="adjacent")


def test_all_columns_but_the_roles_are_covariates(rows: pl.DataFrame, stored: Path, tmp_path: Path) -> None:
    model = fit_lazy(write(rows.drop("material"), tmp_path), covariates=None, errors="adjacent-common")
    assert model.covariates_ == ("age", "load")
    assert model.records_ is not None
    assert model.records_.by == "bridge"
    again = Model.from_json(model.to_json())
    some = rows.head(5)
    assert np.array_equal(model.predict_proba(some), again.predict_proba(some))
