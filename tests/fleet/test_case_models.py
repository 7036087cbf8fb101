"""Which model forecasts which case."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_cases import COVARIATES, make_model
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption, InputError, ModelFileError, RunFolderError
from rekka.fleet.models import Models, match_models
from rekka.study.models import choose_models, load_models
from rekka.study.trial import Fitted, Status


def write_model(path: Path, case: str | None = None, **options) -> Path:
    rows = rekka.simulate_transitions(150, n_states=3, seed=2)
    model = rekka.ExponentialHazardMarkovModel(covariates=list(COVARIATES))
    path.parent.mkdir(exist_ok=True)
    path.write_text(model.fit(rows, rows["state_2"]).to_json(case=case, **options), encoding="utf-8")
    return path


def test_a_model_file(tmp_path):
    found = load_models(write_model(tmp_path / "deck.json", "Deck", labels=["a", "b", "c"]))
    assert [model.case for model in found.models] == ["Deck"]
    assert found.labels == ("a", "b", "c")
    assert (found.run, found.name, found.models[0].file) == (None, "deck.json", "deck.json")


def test_a_folder_of_model_files(tmp_path):
    for case in ("Deck", "Pier"):
        write_model(tmp_path / "models" / f"{case}.json", case)
    (tmp_path / "models" / "other.json").write_text(json.dumps({"format": "something"}))
    found = load_models(tmp_path / "models")
    assert [model.case for model in found.models] == ["Deck", "Pier"]
    write_model(tmp_path / "models" / "again.json", "Pier")
    with pytest.raises(
        BadOption, match=r"Pier.json and again.json in models both are models of Pier\. Give the one"
    ):
        load_models(tmp_path / "models")


def test_what_is_no_model(tmp_path):
    with pytest.raises(RunFolderError, match="There is no run folder or model file nowhere"):
        load_models(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"is neither a run folder .* nor a folder of model files"):
        load_models(tmp_path)
    (tmp_path / "text.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"^text.json: This is not a rekka model file"):
        load_models(tmp_path / "text.json")
    (tmp_path / "picture.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match=r"picture\.json is not a model file: it is not text"):
        load_models(tmp_path / "picture.json")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    options = {"guard": {"resamples": 0, "ladder": False}, "select_on": "validation", "confirm": False}
    rekka.compare(draw_rows(), methods=["zscore"], out=out, **options)
    return out


def test_a_run_gives_what_was_chosen(run):
    found = load_models(run)
    assert found.run == run
    assert [model.case for model in found.models] == ["Deck slab", "Pier"]
    assert found.missing == {}
    assert "fitted to its training rows" in found.notes[0]
    chosen = rekka.load_study(run).model("Pier")
    assert found.models[1].fit.beta.tolist() == chosen._fit.beta.tolist()
    assert all(model.certified for model in found.models)


def test_cases_without_a_usable_model_have_a_reason(run):
    study = rekka.load_study(run)
    undone = replace(study, choices=(), results=tuple(r for r in study.results if r.key.case == "Pier"))
    found = choose_models(undone, include_unchosen=True)
    assert [model.case for model in found.models] == ["Pier"]  # the default's, which is certified
    assert found.missing == {"Deck slab": "the trial of zscore has not been run yet"}
    with pytest.raises(RunFolderError, match=r"has no model to forecast with \(Deck slab: the trial of zscore"):
        choose_models(replace(study, choices=(), results=()))


def models_of(*cases: str | None) -> Models:
    return Models("models", tuple(make_model(case) for case in cases), {"Pier": "no finite maximum"})


def test_cases_find_their_models():
    found = match_models(models_of("Deck", "Girder"), ["Deck", "Girders", "Pier"])
    assert {case: model.case for case, model in found.found.items()} == {"Deck": "Deck"}
    assert found.missing == {
        "Girders": "no model in models",
        "Pier": "no finite maximum",
    }
    assert list(match_models(models_of("Deck", "Girder"), ["Deck", "Girder"], ["Girder"]).found) == ["Girder"]


def test_a_table_without_cases_takes_the_only_model():
    assert match_models(models_of("Deck"), ["all"]).found["all"].case == "Deck"
    assert match_models(models_of("Deck", "Pier"), ["all"], ["Pier"]).found["all"].case == "Pier"
    with pytest.raises(BadOption, match=r"has no column for the component, and models has 2 models: Deck, Pier"):
        match_models(models_of("Deck", "Pier"), ["all"])
    with pytest.raises(
        BadOption, match=r"There is no component 'Pir'\. Components there: Deck, Pier\. Did you mean Pier"
    ):
        match_models(models_of("Deck", "Pier"), ["all"], ["Pir"])


@pytest.mark.parametrize("case", [None, "all"])
def test_a_model_without_a_case_takes_the_only_case(case):
    assert match_models(models_of(case), ["Deck"]).found["Deck"].case == case
    assert match_models(models_of(case), ["all"]).found["all"].case == case
    assert list(match_models(models_of(case), ["Deck", "Pier"], ["Pier"]).found) == ["Pier"]
    with pytest.raises(
        BadOption, match="does not say which component it is a model of, and the inventory has Deck, Pier"
    ):
        match_models(models_of(case), ["Deck", "Pier"])


def test_no_case_in_both():
    with pytest.raises(
        InputError, match="models has models of Deck, and the inventory has Arch, Cable: no component is in"
    ):
        match_models(models_of("Deck"), ["Arch", "Cable"])
    with pytest.raises(BadOption, match="There is no component 'Decks'"):
        match_models(models_of("Deck"), ["Deck", "Pier"], ["Decks"])


def test_a_default_that_is_not_certified_is_no_model(run):
    study = rekka.load_study(run)
    pier = next(trial for trial in study.results if trial.key.case == "Pier")
    deck = next(trial for trial in study.results if trial.key.case == "Deck slab")
    failed = pier.model_copy(update={"status": Status.UNCERTIFIED, "reason": "it stopped short"})
    found = choose_models(replace(study, choices=(), results=(failed, deck)), include_unchosen=True)
    assert found.missing == {"Pier": "nothing was chosen, and zscore is not certified: it stopped short"}
    rising = dataclasses.replace(pier.certificate, maximum_exists=False)
    endless = pier.model_copy(update={"certificate": rising, "reason": None})
    found = choose_models(replace(study, results=(endless, deck)))
    assert found.missing == {"Pier": "zscore has no finite maximum"}
    gone = replace(study, read_fitted=lambda key: Fitted(pier) if key.case == "Pier" else study.read_fitted(key))
    assert choose_models(gone).missing == {"Pier": "zscore has no model"}


def test_models_of_the_papers_preset_are_said_to_be(run):
    study = rekka.load_study(run)
    plan = study.plan.model_copy(update={"study": study.plan.study.model_copy(update={"presets": ("paper",)})})
    trials = [t.model_copy(update={"key": t.key.model_copy(update={"preset": "paper"})}) for t in study.results]
    exact = {trial.key: old.key for trial, old in zip(trials, study.results, strict=True)}
    paper = replace(
        study, plan=plan, choices=(), results=tuple(trials), read_fitted=lambda key: study.read_fitted(exact[key])
    )
    assert choose_models(paper, include_unchosen=True).notes[1:] == (
        "no model was chosen for Deck slab, Pier; the certified fit of zscore forecasts, marked as not chosen",
        "the study has models of the preset paper alone",
    )


def test_a_case_for_which_nothing_was_chosen_is_left_out_unless_it_is_asked_for(run):
    study = rekka.load_study(run)
    pier = study.choice("Pier")
    none = pier.model_copy(update={"chosen": None})
    deck = study.choice("Deck slab")
    some = replace(study, choices=(none, deck))
    found = choose_models(some)
    assert [model.case for model in found.models] == ["Deck slab"]
    assert found.missing["Pier"].startswith("no model was chosen: ")
    assert "no model was chosen for Pier; left out, also of the totals (--include-unchosen" in found.notes[1]
    asked = choose_models(some, include_unchosen=True)
    assert {model.case: model.chosen for model in asked.models} == {"Deck slab": True, "Pier": False}
    with pytest.raises(RunFolderError, match=r"has no model to forecast with .*--include-unchosen takes"):
        choose_models(replace(study, choices=()))
