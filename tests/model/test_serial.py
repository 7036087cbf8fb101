import json

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import rekka
from rekka.errors import BadOption, ModelFileError

DATA = rekka.simulate_transitions(300, n_states=4, seed=2)
X, Y = DATA.drop("state_2", "bridge_id"), DATA["state_2"]
OPTIONS = [
    {"scaling": "zscore"},
    {"scaling": "boxcox", "ridge": 0.5},
    {"scaling": None, "effects": {"bridge_area": [1, 2]}, "shared": {"traffic_mean": [[1, 2, 3]]}},
    {"scaling": "max", "solver": "lbfgs", "gradient": "numeric", "units": {"traffic_mean": 1000}, "max_iter": 3},
    {"scaling": "minmax", "covariates": ("traffic_mean",), "n_states": 5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: str(o["scaling"]))
def test_round_trip_is_exact(options):
    model = rekka.ExponentialHazardMarkovModel(**options).fit(X, Y, groups=DATA["bridge_id"].to_numpy())
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


def test_infinite_and_undefined_numbers_survive():
    """A state nobody leaves: the covariance is undefined, and JSON has no NaN."""
    model = rekka.ExponentialHazardMarkovModel(covariates=[], n_states=6).fit(X, Y)
    text = model.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = rekka.ExponentialHazardMarkovModel.from_json(text)
    np.testing.assert_array_equal(again.covariance_, model.covariance_)
    assert again.certificate_.condition_number == model.certificate_.condition_number


def damaged(**changes):
    model = rekka.ExponentialHazardMarkovModel(covariates=["traffic_mean"]).fit(X, Y)
    return json.dumps(json.loads(model.to_json()) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is not a rekka model file of version 2: the text itself: Invalid JSON"),
        ('{"a": 1', "Invalid JSON"),
        ('{"format": "other"}', "format: Input should be 'rekka-model'"),
        (damaged(version=1), "version: Input should be 2"),
        (damaged(surprise=1), "surprise: Extra inputs are not permitted"),
        (damaged(beta=[[1.0]]), "This rekka model file is damaged: cannot reshape array"),
        (
            damaged(scaling={"kind": "affine"}),
            "This is not a rekka model file of version 2: scaling.affine.method: Field required",
        ),
        (damaged(parameters={"speed": 3}), "This rekka model file is damaged: it names an option 'speed'"),
    ],
)
def test_foreign_or_damaged_text_is_refused(text, message):
    with pytest.raises(ModelFileError) as caught:
        rekka.ExponentialHazardMarkovModel.from_json(text)
    assert message in str(caught.value)


def test_a_model_scaled_by_a_foreign_object_has_no_json():
    model = rekka.ExponentialHazardMarkovModel(StandardScaler()).fit(X, Y)
    with pytest.raises(BadOption, match="Use one of them, or pickle the model"):
        model.to_json()
