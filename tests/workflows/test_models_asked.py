"""tabulate_matrices, measure_effects and forecast_inventory: what fitted models say, in one call each."""

import json
import os

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption, RunFolderError
from rekka.core.validation import read_day
from rekka.fleet.document import load_forecast

CASES = ("Deck slab", "Pier")


def members(*cases):
    """An inventory: one transition of each member."""
    return draw_rows(cases or CASES).unique(["case", "bridge_id"], keep="first", maintain_order=True)


@pytest.fixture(scope="module")
def fits():
    return rekka.fit_components(draw_rows(n=200), test_fit=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "models"
    rekka.fit_components(draw_rows(n=200), test_fit=False, out=folder)
    return folder


# Matrices


def test_matrices_of_fits_and_of_their_files_are_the_same(fits, models):
    ours, theirs = (rekka.tabulate_matrices(one, years=[5, 1]) for one in (fits.to_models(), models))
    assert [one.model.name for one in ours.components] == list(CASES)
    assert [matrix.years for matrix in ours.components[0].matrices] == [1, 5]
    for one, other in zip(ours.components, theirs.components, strict=True):
        for a, b in zip(one.matrices, other.matrices, strict=True):
            assert a.probability.shape == (4, 4)
            np.testing.assert_allclose(a.probability.sum(axis=1), 1, atol=1e-12)
            np.testing.assert_array_equal(a.probability, b.probability)
    assert ours.table.height == sum(one.table.height for one in ours.components)
    assert json.loads(json.dumps(ours.to_dict()))["cases"][1]["case"] == "Pier"


def test_matrices_are_written_together_or_each_by_itself(models, tmp_path):
    together = rekka.tabulate_matrices(models, layout="long", out=tmp_path / "all.csv")
    assert pl.read_csv(tmp_path / "all.csv").height == together.table.height
    apart = rekka.tabulate_matrices(models, layout="percent", only=["Pier"], out=tmp_path / "each")
    assert apart.files == (tmp_path / "each" / "pier-percent.csv",)
    assert apart.files[0].exists()


def test_covariates_are_typical_unless_given(fits):
    typical, given = (
        rekka.tabulate_matrices(fits, only=["Pier"], at=at, intervals="none").components[0]
        for at in (None, {"traffic_mean": 50_000.0})
    )
    assert given.given == {"traffic_mean": 50_000.0}
    assert given.matrices[0].covariates["traffic_mean"] == 50_000
    assert typical.matrices[0].covariates["traffic_mean"] != 50_000
    with pytest.raises(BadOption, match="at names nonsense, which is not a covariate here"):
        rekka.tabulate_matrices(fits, at={"nonsense": 1.0})


# Effects


def test_effects_have_a_row_and_a_sentence_for_each_covariate(fits):
    found = rekka.measure_effects(fits, intervals="delta", changes={"age_at_inspection_1": "+20"})
    covariates = [name for one in found.components for name in one.model.fit.covariates]
    assert found.table["covariate"].to_list() == covariates
    assert len(found.sentences) == len(covariates)
    assert found.sentences[0].startswith("Deck slab: ")
    assert found.files == ()
    assert all(not one.profiles for one in found.components)


def test_effects_are_written_with_profiles_and_pictures(models, tmp_path):
    told = []
    found = rekka.measure_effects(
        models,
        only=["Pier"],
        intervals="none",
        out=tmp_path / "effects",
        on_progress=lambda *one: told.append(one),
    )
    names = [file.name for file in found.files]
    assert names[:2] == ["effects.csv", "profiles.csv"]
    assert names[2:] == [f"profiles-{name}.svg" for name in found.components[0].model.fit.covariates]
    assert all(file.exists() for file in found.files)
    assert told == [("Models", "Pier", 0, 1), ("Drawing", "effects", 0, None)]
    rekka.measure_effects(models, only=["Pier"], intervals="none", out=tmp_path / "effects")  # its own files


@pytest.mark.parametrize("verb", [rekka.tabulate_matrices, rekka.measure_effects])
def test_nothing_of_others_is_written_over(verb, models, tmp_path):
    for name in ("pier-square.csv", "effects.csv"):
        (tmp_path / name).write_text("my own table\n")
    with pytest.raises(BadOption, match="is there already"):
        verb(models, only=["Pier"], intervals="none", out=tmp_path)
    with pytest.raises(rekka.InputError, match="no component 'Peer'"):
        verb(models, only=["Peer"])
    with pytest.raises(RunFolderError, match="There is no run folder or model file nowhere"):
        verb(tmp_path / "nowhere")


def test_a_component_without_a_model_is_a_note(fits):
    rows = draw_rows(n=200).with_columns(
        [pl.when(pl.col("case") == "Pier").then(1).otherwise(name).alias(name) for name in ("state_1", "state_2")]
    )
    some = rekka.fit_components(rows, test_fit=False)
    for verb in (rekka.tabulate_matrices, rekka.measure_effects):
        found = verb(some, intervals="none")
        assert [one.model.name for one in found.components] == ["Deck slab"]
        assert [note for note in found.notes if note.startswith("Pier: Every row stays in rating 1")]


# Forecasts


def test_a_forecast_of_a_dataframe_writes_nothing(fits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = rekka.forecast_inventory(fits, members(), years=8, threshold=3, intervals="none")
    assert os.listdir(tmp_path) == []
    assert (found.files, found.document.files) == ((), ())
    assert found.members.height + found.fleet.eligible.aside.height == members().height
    assert found.network["year"].max() == 8
    assert {one.threshold for one in found.document.models} == {3}


def test_a_forecast_is_written_and_tells_how_far_it_is(models, tmp_path):
    told = []
    members("Pier").write_csv(tmp_path / "rows.csv")
    found = rekka.forecast_inventory(
        models, tmp_path / "rows.csv", years=3, out=tmp_path / "plan", on_progress=lambda *one: told.append(one)
    )
    assert sorted(file.name for file in found.files) == [
        "forecast.json", "members.csv", "network.csv", "set_aside.csv", "years.csv",
    ]  # fmt: skip
    assert load_forecast(tmp_path / "plan") == found.document
    assert pl.read_csv(tmp_path / "plan" / "members.csv").height == found.members.height
    assert list(found.document.sources) == ["rows.csv"]
    counted = [one for one in told if one[0] == "Members"]
    assert counted[-1][2:] == (pytest.approx(found.members.height), found.members.height)
    assert told[0] == ("Reading", "models", 0, None)
    assert told[-1] == ("Writing", "plan", 0, None)


def test_members_without_a_model_are_counted_with_a_reason(models):
    inventory = members("Pier", "Joint")
    found = rekka.forecast_inventory(models, inventory, years=2, intervals="none")
    (left,) = found.document.left_out
    assert (left.case, left.reason, left.members) == (
        "Joint",
        "no model in models",
        inventory.filter(case="Joint").height,
    )


def test_a_forecast_is_not_written_over_its_inputs(models, tmp_path):
    rows = members("Pier")
    rows.write_csv(tmp_path / "network.csv")
    with pytest.raises(BadOption, match=r"network\.csv that is no forecast of rekka's"):
        rekka.forecast_inventory(models, tmp_path / "network.csv", out=tmp_path)
    with pytest.raises(BadOption, match="where the models or the tables are"):
        rekka.forecast_inventory(models, rows, out=models)


@pytest.mark.parametrize("options", [{"years": 0}, {"age": "young"}, {"since": "soon"}, {"format": "pdf"}])
def test_wrong_options_of_a_forecast_raise(fits, options):
    with pytest.raises(BadOption):
        rekka.forecast_inventory(fits, members("Pier"), **options)


def test_a_year_is_its_first_or_last_day():
    assert str(read_day("--from", "2030", "-01-01")) == "2030-01-01"
    assert str(read_day("--until", "2030", "-12-31")) == "2030-12-31"
    assert str(read_day("--from", "2030-03-31", "-01-01")) == "2030-03-31"
    with pytest.raises(BadOption, match="--from is 'soon'; a date such as 2008-12-31 or a year"):
        read_day("--from", "soon", "-01-01")


def test_models_of_a_study_are_those_it_chose():
    study = rekka.compare(draw_rows(("Pier",)), methods=["zscore"], guard={"resamples": 0}, confirm=False)
    found = rekka.tabulate_matrices(study, intervals="none")
    assert [one.model.name for one in found.components] == ["Pier"]
    assert found.source == "the study"
    with pytest.raises(BadOption, match="The study has no run folder; out says where its page goes"):
        rekka.write_report(study)
