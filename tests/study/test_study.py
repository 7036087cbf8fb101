"""A study: frozen, its tables in the order of the plan, its models when asked for."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption
from rekka.study.study import TIMES
from rekka.study.tables import TrialRow


@pytest.fixture(scope="module")
def study() -> rekka.Study:
    """Three cases: one that cannot be fitted, two that can."""
    rows = draw_rows(("Pier", "Deck slab", "Bearing"), n=80).with_columns(
        double=pl.when(pl.col("case") == "Bearing").then("traffic_mean").otherwise(pl.col("bridge_length") ** 2)
    )
    cases = ["Pier", "Bearing", "Deck slab"]
    options = {"select_on": "validation", "guard": {"resamples": 2}}
    return rekka.compare(rows, methods=["zscore", "max"], preset="both", cases=cases, **options)


def test_trials_stand_in_the_order_of_the_plan(study):
    keys = study.trials.select("case", "preset", "method").rows()
    assert keys == [
        (case, preset, method)
        for case in ("Pier", "Bearing", "Deck slab")
        for preset in ("paper", "exact")
        for method in ("zscore", "max")
    ]
    assert study.cases["case"].to_list() == ["Pier", "Bearing", "Deck slab"]


def test_columns(study):
    assert study.trials.columns == list(TrialRow.model_fields)
    assert set(TIMES) < set(TrialRow.model_fields)


def test_the_page_on_studies_describes_every_column(study):
    page = Path(__file__).parents[2].joinpath("docs", "study.md").read_text(encoding="utf-8")
    table = page.split("## The table of trials")[1].split("```")[0]
    assert [name for name in study.trials.columns if f"`{name}`" not in table] == []


def test_failed_trials_stay_with_their_reason(study):
    failed = study.trials.filter(case="Bearing")
    assert len(failed) == 4
    assert failed["status"].unique().to_list() == ["not fitted"]
    assert failed["reason"].str.contains("Leave one of them out").all()
    assert failed["seconds"].null_count() == 4
    assert failed["timings"].to_list() == [0] * 4
    assert not failed["selected"].any()
    assert failed["persistence_accuracy"].is_not_null().all()


def test_the_tables_are_all_there(study):
    tables = study.tables()
    assert list(tables) == [
        "trials",
        "cases",
        "baselines",
        "selection",
        "verdicts",
        "optimism",
        "confirmation",
        "methods",
        "agreement",
        "presets",
        "floor",
        "ladder",
    ]
    assert all(isinstance(table, pl.DataFrame) for table in tables.values())
    assert study.baselines["baseline"].to_list() == ["persistence", "no_covariates"] * 3
    assert len(study.documents()["hypotheses"]) == 10  # five under each preset
    assert len(study.documents()["trials"]["trials"]) == 12


def test_scores_of_no_rows_are_missing():
    rows = draw_rows().filter((pl.col("case") == "Pier") | (pl.col("part") != "golden"))
    study = rekka.compare(rows, methods=["zscore"], select_on="golden", guard={"resamples": 2})
    empty = study.trials.filter(case="Deck slab").row(0, named=True)
    assert empty["certified"]
    assert empty["selected"]  # nothing can be shown to be better
    assert empty["scored"] == 0
    assert study.baselines.filter(case="Deck slab")["accuracy"].to_list() == [None, None]


def test_models(study):
    model = study.model("Pier", "max", "paper")
    assert model.scaling == "max"
    assert model.solver == "lbfgs"
    assert study.model("Pier", "max", "exact").solver == "newton"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("Peer", "max", "exact"),
            "There is no case 'Peer' in this study; there are Pier, Bearing, Deck slab. Did you mean Pier",
        ),
        (
            ("Pier", "maxi", "exact"),
            "There is no method 'maxi' in this study; there are zscore, max. Did you mean max",
        ),
        (("Pier", "max", "exakt"), "There is no preset 'exakt' .* Did you mean exact"),
        (("Bearing", "max", "paper"), "The trial Bearing, max .paper. has no model: .*Leave one"),
    ],
)
def test_models_that_are_not_there(study, names, message):
    with pytest.raises(BadOption, match=message):
        study.model(*names)


def test_a_trial_that_has_not_been_run(study):
    part = dataclasses.replace(study, results=study.results[:3])
    with pytest.raises(BadOption, match=r"The trial Deck slab, max \(exact\) has not been run yet"):
        part.model("Deck slab", "max", "exact")
    assert repr(part) == "<Study: 3 of 12 trials, 3 cases>"
    assert len(part.trials) == 3


def test_it_is_frozen(study):
    with pytest.raises(dataclasses.FrozenInstanceError):
        study.planned = 3


def test_the_page_names_every_column_of_the_trials():
    page = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    study = rekka.compare(draw_rows(("Pier",)), methods=["zscore"])
    assert [name for name in study.trials.columns if f"`{name}`" not in page] == []
