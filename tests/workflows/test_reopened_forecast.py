"""A forecast of a run in memory again: the stored one, without a fit; and with another threshold or horizon."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import rekka
from histories_table import make_inspections
from rekka.core.errors import InputError
from rekka.fleet.document import load_forecast
from rekka.workflows import forecast as module
from rekka.workflows.forecast import forecast_own_tables, reopen_basis

GUARD = {"resamples": 0, "ladder": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that chose a model of histories, with its forecast."""
    place = tmp_path_factory.mktemp("reopened")
    make_inspections(150, errors=0.12).write_csv(place / "t.csv")
    study = rekka.compare(place / "t.csv", models=["errors"], methods=["zscore"], guard=GUARD, out=place / "run")
    assert forecast_own_tables(study, place / "run", years=12) is None
    return place / "run"


@pytest.fixture
def unfitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted while a test runs."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(module, "fit_components", refuse)


@pytest.mark.usefixtures("unfitted")
def test_the_stored_forecast_with_its_models_of_histories(run: Path) -> None:
    found, stored = reopen_basis(run).forecast(), load_forecast(run / "forecast")
    assert stored.models[0].refit is not None
    assert found.fleet.eligible.groups[0].fit.records is not None
    worded = ("files", "notes", "understood")  # how the table was read is said in other words
    again = {name: value for name, value in found.document.model_dump().items() if name not in worded}
    written = {name: value for name, value in stored.model_dump().items() if name in again}
    again["asked"]["member_intervals"] = written["asked"]["member_intervals"]
    for name in ("mean_years_low", "mean_years_high", "reached_low", "reached_high"):
        for one in written["risks"]:
            one[name] = None
    assert again == written
    assert sorted(found.document.notes) == sorted(stored.notes)
    own = pl.read_parquet(run / "forecast" / "members.parquet")
    assert found.members["median_years"].equals(own["median_years"])


@pytest.mark.usefixtures("unfitted")
def test_another_threshold_and_horizon(run: Path) -> None:
    found = reopen_basis(run).forecast().change(threshold=2, years=6)
    assert found.document.asked.threshold == 2
    assert found.network["year"].max() == 6
    assert found.network.filter(pl.col("what") != "in this state")["state"].unique().to_list() == [2]
    assert found.change(years=4).document.models[0].threshold == 2
    assert found.repair(3).members.height == 3
    assert "recorded_6" in found.members.columns
    compared = [note for note in found.document.notes if "inspectors are expected to record" in note]
    assert len(compared) == 1
    assert "after 6 years" in compared[0]


def test_it_is_the_forecast_that_was_asked_for_at_once(run: Path) -> None:
    plain = rekka.forecast_inventory(run, run.parent / "t.csv", years=6, threshold=2, member_intervals=False)
    assert reopen_basis(run).forecast().change(threshold=2, years=6).network.equals(plain.network)


def test_shared_errors_stay() -> None:
    rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    members = rows.unique("bridge_id", maintain_order=True)
    fits = rekka.fit_components(rows)
    found = rekka.forecast_inventory(fits, members, years=8, shocks=0.2).change(years=5, threshold=2)
    plain = rekka.forecast_inventory(fits, members, years=5, threshold=2, shocks=0.2)
    assert found.network.equals(plain.network)
    assert found.document.shocks == plain.document.shocks != ()


def test_a_forecast_of_another_table_is_not_reopened(run: Path, tmp_path: Path) -> None:
    rows = make_inspections(150, errors=0.12)
    rows.head(200).write_csv(tmp_path / "other.csv")
    rekka.forecast_inventory(run, tmp_path / "other.csv", years=4, intervals="none", out=run / "forecast")
    with pytest.raises(InputError, match=r"is of other\.csv, which is not there any more or is not the table"):
        reopen_basis(run).forecast()
    (run / "forecast" / "forecast.json").unlink()
    assert reopen_basis(run).forecast().document.horizon == 30  # made anew, and written nowhere
    assert not (run / "forecast" / "forecast.json").exists()


def test_members_of_a_study_of_rows(tmp_path: Path) -> None:
    rows = rekka.simulate_transitions(300, n_states=4, seed=2)
    ordered = rows.with_columns(visit_2=pl.int_range(1, pl.len() + 1).over("bridge_id"))
    rekka.compare(ordered, methods=["zscore"], guard=GUARD, out=tmp_path / "run")
    found = reopen_basis(tmp_path / "run").forecast()
    assert found.document.members == ordered["bridge_id"].n_unique()
    assert found.change(years=5).network["year"].max() == 5
