import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

import rekka
from rekka.core.errors import BadOption, ModelFileError
from rekka.model.serial import load_model, load_saved
from rekka.study.trial import Fitted, Key, Status, Trial

DATA = rekka.simulate_transitions(300, n_states=4, seed=2)
X, Y = DATA.drop("state_2", "bridge_id"), DATA["state_2"]
OPTIONS = [
    {"scaling": "zscore"},
    {"scaling": "boxcox", "ridge": 0.5},
    {"scaling": None, "effects": {"bridge_area": [1, 2]}, "shared": {"traffic_mean": [[1, 2, 3]]}},
    {"scaling": "max", "solver": "lbfgs", "gradient": "numeric", "units": {"traffic_mean": 1000}, "max_iter": 3},
    {"scaling": "minmax", "covariates": ("traffic_mean",), "n_states": 5},
]
GROUPS = DATA["bridge_id"].to_numpy()
LABELS = ["sound", "worn", "poor", "urgent", "closed"]
VERSION_2 = Path(__file__).parent.parent / "reference" / "model_file_version_2.json"


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: str(o["scaling"]))
def test_round_trip_is_exact(options):
    model = rekka.ExponentialHazardMarkovModel(**options).fit(X, Y, groups=GROUPS)
    text = model.to_json()
    again = rekka.ExponentialHazardMarkovModel.from_json(text)
    assert again.to_json() == text
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.covariance_, model.covariance_)
    assert again.summary().equals(model.summary(), null_equal=True)
    assert again.summary().title == model.summary().title
    assert again.outcome_ == model.outcome_
    assert str(again.certificate_) == str(model.certificate_)
    assert again.certificate_.verdict is model.certificate_.verdict
    assert again.converged_ == model.converged_
    assert again.get_params()["ridge"] == model.get_params()["ridge"]
    assert list(again.feature_names_in_) == list(X.columns)
    assert again.survey_.names == model.survey_.names
    np.testing.assert_array_equal(again.survey_.quantiles, model.survey_.quantiles)
    assert (again.resampled_, again.case_, again.labels_) == (None, None, None)


@pytest.mark.parametrize("options", [{"scaling": "boxcox"}, {"covariates": []}, {"n_states": 6}], ids=str)
def test_draws_and_names_are_in_the_file(options):
    """The last has a state nobody was in: every draw is left out, and the file says so."""
    model = rekka.ExponentialHazardMarkovModel(**options).fit(X, Y)
    model = model.bootstrap(X, Y, groups=GROUPS, draws=np.int64(3), seed=np.int64(8))
    text = model.to_json(case="Main girder, 主桁", labels=[*LABELS, "gone"])
    again = rekka.ExponentialHazardMarkovModel.from_json(text)
    assert again.to_json() == text
    assert (again.case_, again.labels_) == ("Main girder, 主桁", (*LABELS, "gone"))
    assert again.resampled_.beta.shape == (0 if "n_states" in options else 3, *again._fit.beta.shape)
    np.testing.assert_array_equal(again.resampled_.beta, model.resampled_.beta)
    ours, theirs = again.resampled_, model.resampled_
    assert (
        (ours.asked, ours.seed, ours.groups)
        == (theirs.asked, theirs.seed, theirs.groups)
        == (3, 8, len(set(GROUPS)))
    )
    np.testing.assert_array_equal(again.survey_.quantiles, model.survey_.quantiles)


def test_names_given_anew_stand_in_place_of_those_in_the_file():
    model = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(X, Y)
    again = rekka.ExponentialHazardMarkovModel.from_json(model.to_json(case="Pier", labels=LABELS))
    saved = load_saved(again.to_json(case="Deck"))
    assert (saved.case, saved.labels) == ("Deck", tuple(LABELS))
    assert load_model(again.to_json())[1:] == (saved.parameters, saved.features)
    assert again.fit(X, Y).case_ is None  # another fit is of no case that we know


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"case": 3}, "case is 3; a text is needed, or None."),
        ({"labels": LABELS[:3]}, "a list with a text for each of 4 states is needed."),
        ({"labels": [1, 2, 3, 4]}, "a list with a text for each of 4 states is needed."),
        ({"labels": "abcd"}, "labels is 'abcd'; a list with a text for each of 4 states is needed."),
    ],
)
def test_names_that_are_none_are_refused(given, message):
    model = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(X, Y)
    with pytest.raises(BadOption) as caught:
        model.to_json(**given)
    assert message in str(caught.value)


def test_a_file_of_version_2_is_read():
    stored = json.loads(VERSION_2.read_text())
    model = rekka.ExponentialHazardMarkovModel.from_json(json.dumps(stored["model"]))
    found = model.predict_proba(pl.DataFrame(stored["rows"]))
    np.testing.assert_allclose(found, stored["probabilities"], rtol=1e-12)
    assert (model.survey_, model.resampled_, model.case_, model.labels_, model.fit_test_) == (None,) * 5
    assert model.certificate_.certified
    again = json.loads(model.to_json())
    nothing = {"case": None, "labels": None, "survey": None, "bootstrap": None, "fit_test": None, "reading": None}
    clock = {"kind": "start", "advance": ["age_at_inspection_1"], "mean_years": None}
    parameters = stored["model"]["parameters"] | {"advance": None, "clock": "start"}
    certificate = stored["model"]["certificate"] | {"determined": True}
    new = {"version": 4, "clock": clock, "parameters": parameters, "certificate": certificate}
    assert again == stored["model"] | nothing | new


def test_the_clock_is_in_the_file_and_an_older_file_has_ages_at_the_start():
    model = rekka.ExponentialHazardMarkovModel(advance=["age_at_inspection_1"]).fit(X, Y)
    stored = json.loads(model.to_json())
    mean = pytest.approx(X["interval_years"].mean())
    assert stored["clock"] == {"kind": "middle", "advance": ["age_at_inspection_1"], "mean_years": mean}
    again = rekka.ExponentialHazardMarkovModel.from_json(json.dumps(stored))
    assert again.clock_ == model.clock_
    assert (again.clock, again.advance) == ("middle", ["age_at_inspection_1"])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    parameters = {name: value for name, value in stored["parameters"].items() if name not in ("clock", "advance")}
    older = {**stored, "version": 3, "parameters": parameters}
    del older["clock"]
    old = rekka.ExponentialHazardMarkovModel.from_json(json.dumps(older))
    assert (old.clock, old.clock_.names, old.clock_.mean_years) == ("start", ("age_at_inspection_1",), None)
    later = X.with_columns(pl.col("age_at_inspection_1") + pl.col("interval_years") / 2)
    np.testing.assert_allclose(old.predict_proba(later), model.predict_proba(X), rtol=1e-12)
    assert "no lag, because the mean interval is not known" in str(old.forecast())
    assert old.clock_.words.endswith("of an earlier version, does not know its mean interval.")


def test_a_trial_of_a_run_begun_before_is_timed_and_can_be_read():
    """Its file then has the fields of this version, so that it must say so: nobody else could tell what they are."""
    text = json.dumps(json.loads(VERSION_2.read_text())["model"])
    fit = load_model(text)[0]
    key = Key(case="Pier", preset="exact", method="boxcox+zscore")
    trial = Trial(key=key, status=Status.CERTIFIED, reason=None, converged=True, outcome=fit.outcome)
    timed = Fitted(trial, text).with_seconds([0.25, 0.5]).model
    assert json.loads(timed)["version"] == 4
    again = load_model(timed)[0]
    assert again.outcome.seconds == 0.25
    np.testing.assert_array_equal(again.beta, fit.beta)


def test_infinite_and_undefined_numbers_survive():
    """A state nobody leaves: the covariance is undefined, and JSON has no NaN."""
    model = rekka.ExponentialHazardMarkovModel(covariates=[], n_states=6).fit(X, Y)
    text = model.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = rekka.ExponentialHazardMarkovModel.from_json(text)
    np.testing.assert_array_equal(again.covariance_, model.covariance_)
    assert again.certificate_.condition_number == model.certificate_.condition_number


ONE = rekka.ExponentialHazardMarkovModel(covariates=["traffic_mean"]).fit(X, Y)
CLOCK = {"kind": "middle", "advance": [], "mean_years": 5.0}
DRAWN = {"beta": [[[0.0, 1.0]] * 3] * 2, "asked": 2, "seed": 0, "groups": 9}


def damaged(**changes):
    return json.dumps(json.loads(ONE.to_json()) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is not a rekka model file of version 2 to 5: the text itself: Invalid JSON"),
        ('{"a": 1', "Invalid JSON"),
        ('{"format": "other"}', "format: Input should be 'rekka-model'"),
        (damaged(version=1), "version: Input should be 2, 3, 4 or 5"),
        (damaged(surprise=1), "surprise: Extra inputs are not permitted"),
        (damaged(beta=[[1.0]]), "This rekka model file is damaged: cannot reshape array"),
        (
            damaged(scaling={"kind": "affine"}),
            "This is not a rekka model file of version 2 to 5: scaling.affine.method: Field required",
        ),
        (damaged(parameters={"speed": 3}), "This rekka model file is damaged: it names an option 'speed'"),
        (
            damaged(survey=[[1.0, 2.0]]),
            "damaged: survey is not 1 by 101 numbers, as this model's states and covariates need.",
        ),
        (damaged(clock=CLOCK | {"advance": ["age"]}), "damaged: advance names age, which is not a covariate"),
        (damaged(clock=CLOCK | {"kind": "late"}), "clock.kind: Input should be 'middle', 'start' or 'running'"),
        (damaged(clock=CLOCK | {"mean_years": 0}), "clock.mean_years: Input should be greater than 0"),
        (damaged(survey=[]), "damaged: survey is not 1 by 101 numbers"),
        (damaged(survey=[[0.0]] * 101), "damaged: survey is not 1 by 101 numbers"),
        (damaged(survey=[["NaN"] * 101]), "damaged: survey has numbers that are infinite or undefined."),
        (damaged(survey=3), "survey: Input should be a valid array"),
        (
            damaged(bootstrap=DRAWN | {"beta": [[[0.0, 1.0, 2.0]] * 2]}),
            "damaged: bootstrap.beta is not 1 by 3 by 2 numbers, as this model's states and covariates need.",
        ),
        (damaged(bootstrap=DRAWN | {"beta": [[[0.0, 1.0]] * 3, []]}), "bootstrap.beta is not 2 by 3 by 2 numbers"),
        (
            damaged(bootstrap=DRAWN | {"beta": [[[0.0, "Infinity"]] * 3]}),
            "damaged: bootstrap.beta has numbers that are infinite or undefined.",
        ),
        (
            damaged(bootstrap=DRAWN | {"asked": 1}),
            "damaged: bootstrap has 2 draws, more than the 1 that were asked for.",
        ),
        (damaged(bootstrap={"beta": []}), "bootstrap.asked: Field required"),
        (damaged(labels=["good", "poor"]), "damaged: labels names 2 states, and there are 4."),
        (damaged(case=7), "case: Input should be a valid string"),
    ],
)
def test_foreign_or_damaged_text_is_refused(text, message):
    with pytest.raises(ModelFileError) as caught:
        rekka.ExponentialHazardMarkovModel.from_json(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("literal", ["1.8e308", "-1e400", "1" + "0" * 5000, "NaN", "-Infinity"])
def test_a_number_that_is_not_finite_is_refused(literal):
    text = ONE.to_json().replace('"ridge": 0.0', f'"ridge": {literal}')
    assert literal in text
    with pytest.raises(ModelFileError, match=r"damaged: the number \S+ is beyond any that is used\."):
        load_model(text)


@pytest.mark.parametrize("case", ["Span, 3E5000 type", "[1e999", "Span: 1" + "0" * 400])
def test_digits_in_a_name_are_no_number(case):
    assert rekka.ExponentialHazardMarkovModel.from_json(ONE.to_json(case=case)).case_ == case


def test_text_that_is_nested_too_deeply_is_no_model():
    with pytest.raises(ModelFileError, match="the text itself: Invalid JSON: recursion limit exceeded"):
        load_model("[" * 200_000)


def test_a_model_scaled_by_a_foreign_object_has_no_json():
    model = rekka.ExponentialHazardMarkovModel(StandardScaler()).fit(X, Y)
    with pytest.raises(BadOption, match="Use one of them, or pickle the model"):
        model.to_json()


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("beta", "NaN", "inference.coefficients are not beta in the covariates' own units"),
        ("beta", -9.0, "inference.coefficients are not beta in the covariates' own units"),
        ("covariance", -1.0, "inference.covariance has a variance below 0"),
    ],
)
def test_a_maximum_whose_numbers_do_not_belong_together_is_damaged(part, value, message):
    file = json.loads(rekka.ExponentialHazardMarkovModel().fit(X, Y).to_json())
    (file["beta"] if part == "beta" else file["inference"]["covariance"])[0][0] = value
    with pytest.raises(ModelFileError, match=message):
        load_model(json.dumps(file))
