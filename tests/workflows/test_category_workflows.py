"""Categories from a table to models, studies, forecasts, effects and pages."""

import json

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.data.transitions import write_transitions

RATES = {"Concrete": 1.0, "Steel": 1.7, "Timber": 3.0}


def make(bridges: int = 200) -> pl.DataFrame:
    """Inspections of two components; one level in a hundred is blank."""
    rng, rows = np.random.default_rng(4), []
    for number in range(bridges):
        kind = str(rng.choice(list(RATES), p=[0.5, 0.3, 0.2]))
        interstate, built = str(rng.choice(["Y", "N"])), int(rng.integers(1950, 1995))
        for component in ("Deck", "Pier"):
            state = 1
            for year in range(2000, 2022, 3):
                named = kind if rng.random() > 0.01 else " "
                rows.append(
                    (f"B{number}", component, year, "abc"[state - 1], built, named, interstate, number % 2 + 1)
                )
                state = min(3, state + int(rng.random() < 0.12 * RATES[kind]))
    names = ["bridge", "component", "year", "state", "year built", "Material", "Interstate", "class"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return make()


def columns(**more):
    return {"columns": {"covariates": ["Material,Interstate"], "categories": ["class"]}, **more}


@pytest.fixture(scope="module")
def fits(table):
    return rekka.fit_components(table, mapping=columns(), test_fit=False)


def test_reading_keeps_levels_and_counts_what_is_missing(table, tmp_path):
    found = rekka.read_transitions(table, columns())
    assert found.covariates == ("age_at_inspection_1", "Material", "Interstate", "class")
    assert found.frame.schema["Material"] == found.frame.schema["class"] == pl.String
    missing = found.audit.count("Material is missing")
    assert missing > 5
    assert found.frame["Material"].null_count() == 0
    level = rekka.read_transitions(table, columns(rules={"missing": "level"}))
    assert level.audit.count("Material is missing") == 0
    assert level.frame["Material"].eq("missing").sum() == missing
    write_transitions(rekka.read_panel(table, columns()), tmp_path / "t.csv")
    again = rekka.read_transitions(tmp_path / "t.csv", columns())
    assert set(again.covariates) == {"age_at_inspection_1", "Material", "Interstate", "class"}
    assert again.frame["class"].to_list() == found.frame["class"].to_list()


def test_texts_that_are_mostly_numbers_stay_numbers(table):
    mixed = table.with_columns(load=pl.Series(["12.5", "heavy", "14", "13"] * (len(table) // 4)))
    found = rekka.read_transitions(mixed, {"columns": {"covariates": ["load"]}})
    assert found.frame.schema["load"].is_numeric()
    assert any("values of load taken as missing" in note for note in found.notes)


def test_fits_forecasts_effects_and_matrices_speak_of_levels(table, fits, tmp_path):
    model = fits.models["Deck"]
    assert model.covariates_[1:4] == ("Material: Steel", "Material: Timber", "Interstate: yes")
    assert model.certificate_.certified
    effects = rekka.measure_effects(fits, intervals="delta", only=["Deck"], out=tmp_path / "effects")
    said = effects.components[0].effects.sentences()
    assert any(one.startswith("Material Timber instead of Concrete shortens") for one in said)
    given = rekka.measure_effects(
        fits, intervals="delta", changes={"Material": "Steel"}, at={"Material": "Timber"}
    )
    assert "Material Steel instead of Timber" in given.components[0].effects.sentences()[1]
    with pytest.raises(rekka.InputError, match="Material is 'Glass'; it can be Concrete, Steel, Timber"):
        rekka.tabulate_matrices(fits, at={"Material": "Glass"})
    matrix = rekka.tabulate_matrices(fits, at={"Material": "Timber"}, only=["Deck"]).components[0].matrices[0]
    assert matrix.covariates["Material"] == "Timber"
    plain = rekka.tabulate_matrices(fits, only=["Deck"]).components[0].matrices[0]
    assert matrix.probability[0, 0] < plain.probability[0, 0]


def test_members_with_a_level_that_no_training_row_has(table, fits):
    strange = table.with_columns(
        Material=pl.when(pl.col("bridge") == "B7").then(pl.lit("Glass")).otherwise("Material")
    )
    marked = rekka.forecast_inventory(fits, strange, columns(), years=5)
    glass = marked.members.filter(bridge_id="B7")
    assert glass["outside"].all()
    assert glass["remark"].str.contains("Material Glass: no training row has it, taken as Concrete").all()
    refused = rekka.forecast_inventory(fits, strange, columns(), years=5, unseen="refuse")
    assert refused.members.filter(bridge_id="B7").is_empty()
    assert "no training row has this Material" in [one.reason for one in refused.document.aside]


def test_a_study_codes_each_component_and_its_page_names_levels(table, tmp_path):
    rare = table.with_columns(
        Material=pl.when(pl.col("bridge") == "B3").then(pl.lit("Brick")).otherwise("Material")
    )
    study = rekka.compare(
        rekka.read_transitions(rare, columns()), methods=["zscore", "pooled"], out=tmp_path / "run"
    )
    rows = study.read_rows()
    assert {"Material: Steel", "Material: Timber", "Interstate: yes"} < set(rows.code("Deck").terms)
    assert rows.code("Pier").categories[0].reference == rows.code("Deck").categories[0].reference == "Concrete"
    assert any("Brick" in note for note in rows.notes)
    assert {trial.status.value for trial in study.results} == {"certified"}
    model = rekka.load_study(tmp_path / "run").model("Deck")
    assert model.predict_proba(rows.frame.filter(case="Deck").head(5)).shape == (5, 3)
    made = rekka.make_report(study, calibrate=False, lang="ja")
    part = made.document.models[0]
    assert part.levels["Material"] == "Concrete"
    assert part.references["Material: Steel"] == "Concrete"
    assert "Material: Steel" not in part.typical
    assert "Concreteに対して" in made.html
    (effects,) = (one for one in made.tables if one.name == "effects")
    shown = [[cell.text for cell in row.cells] for row in effects.rows]
    assert any("Concrete" in row and "Steel" in row for row in shown)  # values before and after, not 0 and 1
    assert json.loads(made.document.model_dump_json())["models"][0]["levels"]["Interstate"] in ("yes", "no")


def test_checks_do_not_take_levels_for_numbers(table):
    found = rekka.read_transitions(table, columns())
    diagnosis = rekka.check_transitions(found.frame, covariates=found.covariates)
    about = {code: finding for finding in diagnosis.findings for code in [finding.code]}
    assert not {"R302", "R305", "R306", "R307", "R309"} & set(about)


def test_a_backtest_codes_its_training_rows(table):
    found = rekka.backtest(rekka.read_transitions(table, columns()), until="2012-12-31", test_fit=False, draws=100)
    assert set(found.scores["case"].unique()) == {"Deck", "Pier"}
