"""Bad input gets a clear error and nothing is lost."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rekka
from rekka.core import errors
from rekka.model.inputs import MOST_STATES, check_supported, count_states, refuse_codes

GOOD = rekka.simulate_transitions(120, n_states=4, seed=5).drop("bridge_id")
X, Y = GOOD.drop("state_2"), GOOD["state_2"]


def put(column, value, *rows):
    """X with a value in some rows of a column; text turns the column into text."""
    values = X[column].to_list()
    for row in rows:
        values[row] = value
    return X.with_columns(pl.Series(column, values, strict=False))


def fit(frame=X, y=Y, weights=None, groups=None, **options):
    model = rekka.ExponentialHazardMarkovModel(**options)
    return model.fit(frame, y, sample_weight=weights, groups=groups)


def ends(row, value):
    values = Y.to_list()
    values[row] = value
    return values


CASES = {
    "missing column": (
        lambda: fit(X.rename({"interval_years": "interval_year"})),
        errors.MissingColumns,
        "interval_years is not in the table. Columns there: state_1, interval_year, age_at_inspection_1, "
        "bridge_length, bridge_area, traffic_mean. Did you mean interval_year?",
    ),
    "a code among the states": (
        lambda: fit(y=ends(7, 99)),
        errors.BadStates,
        "row 7: state 99. Above 50 it is taken for a code, such as one for not inspected.",
    ),
    "missing covariates": (
        lambda: fit(covariates=["bridge_len", "foo"]),
        errors.MissingColumns,
        "bridge_len, foo are not in the table.",
    ),
    "text in a number": (
        lambda: fit(X.with_columns(bridge_length=pl.lit("12 m"))),
        errors.BadCovariates,
        "bridge_length is '12 m' in all",
    ),
    "text in pandas objects": (
        lambda: fit(X.to_pandas().astype({"bridge_length": object}).replace({"bridge_length": {X["bridge_length"][3]: "x"}})),
        errors.BadValues,
        "the table: bridge_length holds 'x' in 1 row, and numbers in others; numbers are needed.",
    ),
    "missing values": (
        lambda: fit(put("traffic_mean", None, 4, 9)),
        errors.BadValues,
        "traffic_mean is missing in 2 of 120 rows (rows 4, 9). Exclude such rows or fill them in; rekka does "
        "neither silently.",
    ),
    "many missing values": (
        lambda: fit(put("traffic_mean", float("nan"), *range(10, 20))),
        errors.BadValues,
        "traffic_mean is missing in 10 of 120 rows (rows 10, 11, 12, 13, 14, ...).",
    ),
    "infinite values": (
        lambda: fit(put("bridge_area", float("inf"), 7)),
        errors.BadValues,
        "bridge_area is missing or infinite in 1 of 120 rows (row 7).",
    ),
    "missing start": (
        lambda: fit(put("state_1", None, 2)),
        errors.BadValues,
        "state_1 is missing in 1 of 120 rows (row 2).",
    ),
    "zero interval": (
        lambda: fit(put("interval_years", 0.0, 3)),
        errors.BadValues,
        "interval_years is 0 in row 3 (1 of 120 not above 0). Years between the two inspections must be above 0; "
        "exclude such rows.",
    ),
    "negative interval": (
        lambda: fit(put("interval_years", -2.5, 3, 5)),
        errors.BadValues,
        "interval_years is -2.5 in rows 3, 5 (2 of 120 not above 0).",
    ),
    "state zero": (
        lambda: fit(put("state_1", 0, 6)),
        errors.BadStates,
        "state_1 is 0 in row 6 (1 of 120); states are whole numbers from 1, the best, upwards.",
    ),
    "half a state": (lambda: fit(y=ends(1, 2.5)), errors.BadStates, "y is 2.5 in row 1 (1 of 120)"),
    "end below start": (
        lambda: fit(put("state_1", 4, 8), ends(8, 2)),
        errors.BadStates,
        "row 8 (1 of 120): end state 2 is below start state 4. Condition may only worsen in this model. Exclude "
        "repairs, or split the history at the repair.",
    ),
    "one state": (
        lambda: fit(X.with_columns(state_1=pl.lit(1)), np.ones(120, int)),
        errors.BadStates,
        "Every row stays in state 1, so there is only one state and nothing to model. Give n_states if worse states "
        "exist but were not reached.",
    ),
    "too few states asked for": (
        lambda: fit(n_states=3),
        errors.BadStates,
        "state 4 is above n_states = 3. Raise n_states, or merge states.",
    ),
    "n_states no number": (
        lambda: fit(n_states="5"),
        errors.BadOption,
        "n_states is '5'; a whole number of at least 2 is needed, or None to infer it.",
    ),
    "empty frame": (lambda: fit(X.head(0), Y.head(0)), errors.InputError, "The table has no rows."),
    "numpy array": (
        lambda: fit(X.to_numpy()),
        errors.MissingColumns,
        "state_1, interval_years are not in the table. Columns there: x0, x1, x2, x3, x4, x5.",
    ),
    "flat array": (
        lambda: fit(X.to_numpy()[:, 0]),
        errors.InputError,
        "X is a ndarray; a dataframe with named columns is needed (pandas, polars or pyarrow)",
    ),
    "lazy frame": (lambda: fit(X.lazy()), errors.InputError, "it is the name of their column"),
    "no y": (lambda: fit(y=None), errors.InputError, "y is missing: the end states (state_2) are needed to fit."),
    "short y": (lambda: fit(y=Y.head(100)), errors.InputError, "X has 120 rows and y has 100; one end state per row"),
    "matrix y": (lambda: fit(y=np.ones((120, 2))), errors.InputError, "y has shape (120, 2); one end state per row"),
    "text y": (lambda: fit(y=["a"] * 120), errors.BadValues, "y holds 'a' in row 0; a number is needed."),
    "constant covariate": (
        lambda: fit(X.with_columns(bridge_length=pl.lit(12.0))),
        errors.BadCovariates,
        "bridge_length is 12 in all 120 training rows: its effect cannot be separated from the intercept. Leave it out of "
        "covariates.",
    ),
    "duplicate covariate": (
        lambda: fit(X.with_columns(feet=pl.col("bridge_length") * 3.28084)),
        errors.BadCovariates,
        "feet duplicates bridge_length in the 120 training rows: their effects cannot be separated. Leave one of them "
        "out of covariates.",
    ),
    "covariate whose square overflows": (
        lambda: fit(put("traffic_mean", -1e160, 3)),
        errors.BadCovariates,
        "traffic_mean reaches -1e+160 in the 120 training rows; numbers beyond 1e+100 cannot be used. Correct the "
        "value, or leave the row or the covariate out.",
    ),
    "collinear covariates": (
        lambda: fit(X.with_columns(total=pl.col("bridge_length") + pl.col("traffic_mean"))),
        errors.BadCovariates,
        "total is a linear combination of bridge_length, traffic_mean in the 120 training rows",
    ),
    "more covariates than rows": (
        lambda: fit(X.head(4), Y.head(4)),
        errors.BadCovariates,
        "traffic_mean is a linear combination of age_at_inspection_1, bridge_length, bridge_area in the 4",
    ),
    "negative weight": (
        lambda: fit(weights=np.r_[-1.0, np.ones(119)]),
        errors.BadWeights,
        "sample_weight is -1 in row 0; weights are finite and not negative.",
    ),
    "missing weight": (lambda: fit(weights=np.r_[np.nan, np.ones(119)]), errors.BadWeights, "sample_weight is nan"),
    "no weight": (
        lambda: fit(weights=np.zeros(120)),
        errors.BadWeights,
        "sample_weight is 0 in every row: nothing is left to fit.",
    ),
    "short weights": (lambda: fit(weights=[1.0]), errors.BadWeights, "sample_weight has 1 values for 120 rows."),
    "text weights": (lambda: fit(weights=["a"] * 120), errors.BadWeights, "sample_weight must be numbers."),
    "short groups": (lambda: fit(groups=[1, 2]), errors.InputError, "groups has shape (2,); one group per row"),
    "missing groups": (
        lambda: fit(groups=[None] + ["B-1"] * 119),
        errors.InputError,
        "groups is missing in 1 of 120 rows (row 0)",
    ),
    "unknown solver": (
        lambda: fit(solver="newtn"),
        errors.BadOption,
        "solver is 'newtn'; it can be newton, lbfgs. Did you mean newton?",
    ),
    "unknown gradient": (lambda: fit(gradient="auto"), errors.BadOption, "it can be exact, numeric."),
    "unknown likelihood": (lambda: fit(likelihood=3), errors.BadOption, "likelihood is 3; it can be exact, paper."),
    "unknown class weight": (
        lambda: fit(class_weight="balanced"),
        errors.BadOption,
        "class_weight is 'balanced'; it can be None, inverse_frequency.",
    ),
    "newton on the paper's likelihood": (
        lambda: fit(likelihood="paper", gradient="numeric"),
        errors.BadOption,
        "Use solver='lbfgs' with gradient='numeric' or likelihood='paper'.",
    ),
    "exact gradient of the paper's likelihood": (
        lambda: fit(solver="lbfgs", likelihood="paper"),
        errors.BadOption,
        "likelihood='paper' is floored and has no exact gradient",
    ),
    "no iterations": (lambda: fit(max_iter=0), errors.BadOption, "max_iter is 0; a whole number of at least 1"),
    "negative ridge": (lambda: fit(ridge=-1.0), errors.BadOption, "ridge is -1.0; a finite number of at least 0"),
    "text ridge": (lambda: fit(ridge="much"), errors.BadOption, "ridge is 'much'; a finite number of at least 0"),
    "no threads": (lambda: fit(threads=0), errors.BadOption, "threads is 0; a whole number of at least 1"),
    "seed": (lambda: fit(seed=-1), errors.BadOption, "seed is -1; a whole number of at least 0 is needed."),
    "effects of an unknown covariate": (
        lambda: fit(effects={"trafic_mean": [1]}),
        errors.BadOption,
        "effects names trafic_mean, which is not a covariate of this model.",
    ),
    "effects on the last state": (
        lambda: fit(effects={"traffic_mean": [4]}),
        errors.BadOption,
        "effects names state 4 for traffic_mean; covariates can act on states 1 to 3 (K = 4, and state 4 is never "
        "left).",
    ),
    "effects that are no dict": (lambda: fit(effects=[1]), errors.BadOption, "effects is [1]; a dict by covariate name"),
    "effects that are no list": (
        lambda: fit(effects={"traffic_mean": 2}),
        errors.BadOption,
        "effects gives 2 for traffic_mean; a list of states is needed, e.g. [1, 2].",
    ),
    "shared that is no list of lists": (
        lambda: fit(shared={"traffic_mean": [1, 2]}),
        errors.BadOption,
        "shared gives [1, 2] for traffic_mean; a list of groups of states is needed, e.g. [[1, 2]].",
    ),
    "shared state without effect": (
        lambda: fit(effects={"traffic_mean": [1]}, shared={"traffic_mean": [[1, 2]]}),
        errors.BadOption,
        "shared names state 2 for traffic_mean, but effects leaves it out there.",
    ),
    "shared twice": (
        lambda: fit(shared={"traffic_mean": [[1, 2], [2, 3]]}),
        errors.BadOption,
        "shared names state 2 twice for traffic_mean.",
    ),
    "units of an unknown covariate": (lambda: fit(units={"x": 1}), errors.BadOption, "units names x, which is not"),
    "unit of zero": (lambda: fit(units={"traffic_mean": 0}), errors.BadOption, "units gives 0 for traffic_mean"),
    "units that are no dict": (lambda: fit(units=10), errors.BadOption, "units is 10; a dict by covariate name"),
    "covariates as text": (lambda: fit(covariates="traffic_mean"), errors.BadOption, "covariates is the text"),
    "covariate twice": (lambda: fit(covariates=["traffic_mean"] * 2), errors.BadOption, "names traffic_mean twice"),
    "start as covariate": (lambda: fit(covariates=["state_1"]), errors.BadOption, "covariates names state_1 twice"),
    "level": (lambda: fit().summary(level=95), errors.BadOption, "level is 95; a number between 0 and 1 is needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_its_message(name):
    call, kind, message = CASES[name]
    with pytest.raises(errors.InputError) as caught:
        call()
    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert isinstance(caught.value, ValueError)


MODEL = fit()
PREDICTIONS = {
    "start above K": (
        lambda: MODEL.predict(put("state_1", 5, 7)),
        "row 7 (1 of 120): start state 5 is above K = 4, the worst state of the training rows.",
    ),
    "end above K": (lambda: MODEL.log_loss(X, ends(1, 9)), "end state 9 is above K = 4"),
    "column gone": (
        lambda: MODEL.predict_proba(X.drop("bridge_area")),
        "bridge_area is not in the table. Columns there: state_1, interval_years, age_at_inspection_1, "
        "bridge_length, traffic_mean.",
    ),
    "column gone for hazards": (lambda: MODEL.hazards(X.drop("bridge_area")), "bridge_area is not in the table."),
    "missing value": (
        lambda: MODEL.predict(put("bridge_area", None, 3)),
        "bridge_area is missing in 1 of 120 rows",
    ),
    "empty": (lambda: MODEL.predict(X.head(0)), "The table has no rows."),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_bad_prediction_input_gets_its_message(name):
    call, message = PREDICTIONS[name]
    with pytest.raises(errors.InputError) as caught:
        call()
    assert message in str(caught.value)


def test_values_sit_on_the_exception():
    with pytest.raises(errors.BadValues) as caught:
        fit(put("traffic_mean", None, 4, 9))
    assert caught.value.column == "traffic_mean"
    assert caught.value.rows == [4, 9]
    with pytest.raises(AttributeError, match="BadValues has no attribute 'colour'"):
        _ = caught.value.colour


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, lambda f: f], ids=["pandas", "pyarrow", "polars"])  # fmt: skip
def test_every_frame_gives_the_same_fit(convert):
    frame = convert(GOOD)
    y = frame["state_2"]
    x = frame.drop(columns="state_2") if isinstance(frame, pd.DataFrame) else convert(X)
    assert isinstance(frame, pd.DataFrame | pa.Table | pl.DataFrame)
    np.testing.assert_array_equal(fit(x, y).coef_, MODEL.coef_)


def test_integers_booleans_decimals_and_nullable_columns_are_numbers():
    frame = X.with_columns(
        pl.col("state_1").cast(pl.Int8), big=pl.col("traffic_mean") > 3000, bridge_area=pl.col("bridge_area").cast(pl.Decimal(12, 1))
    )  # fmt: skip
    pandas = frame.to_pandas().astype({"state_1": "Int64", "big": "boolean"})
    np.testing.assert_allclose(fit(frame).coef_, fit(pandas).coef_, rtol=1e-12)


def test_y_may_be_list_array_or_series():
    for y in (Y.to_list(), Y.to_numpy(), Y.to_pandas(), Y.to_arrow()):
        np.testing.assert_array_equal(fit(y=y).coef_, MODEL.coef_)


def test_the_last_state_that_is_one():
    assert count_states(np.array([0, 3]), 4) == count_states(np.array([0, 3]), None) == 4
    refuse_codes(np.array([MOST_STATES - 1]))
    check_supported(np.array([2]), 3, "start")
    for call, words in (
        (lambda: count_states(np.array([0, 3]), 3), "state 4 is above n_states = 3"),
        (lambda: count_states(np.array([0, 0]), None), "there is only one state"),
        (lambda: refuse_codes(np.array([MOST_STATES])), "Above 50 it is taken for a code"),
        (lambda: check_supported(np.array([3]), 3, "start"), "start state 4 is above K = 3"),
    ):
        with pytest.raises(errors.BadStates, match=words):
            call()
