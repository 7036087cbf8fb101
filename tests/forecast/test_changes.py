"""Changes of covariates: read, chosen, put into words."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rekka
from rekka.data.categories import NO_CODING
from rekka.forecast.effects import Change, plan_changes, read_change, round_step
from rekka.model.survey import survey_covariates


def fake_fit(**columns):
    """All that the choice of a change looks at."""
    names = tuple(columns)
    x = np.column_stack([np.asarray(values, dtype=float) for values in columns.values()])
    return SimpleNamespace(covariates=names, columns=names, coding=NO_CODING, survey=survey_covariates(x, names))


@pytest.mark.parametrize(
    ("written", "amount", "times", "after"),
    [
        ("+10", 10.0, False, 50.0),
        ("-10", -10.0, False, 30.0),
        ("\u22122.5", -2.5, False, 37.5),
        ("x2", 2.0, True, 80.0),
        ("X 0.5", 0.5, True, 20.0),
        ("\u00d73", 3.0, True, 120.0),
        ("*1.5", 1.5, True, 60.0),
        (5, 5.0, False, 45.0),
        (-5.0, -5.0, False, 35.0),
    ],
)
def test_a_change_is_read_as_it_is_written(written, amount, times, after):
    change = read_change("age", written)
    assert (change.amount, change.times) == (amount, times)
    assert change.apply(40.0) == after
    assert read_change("age", change.written) == change


@pytest.mark.parametrize(
    "written", ["10", "ten", "+ten", "", "+", "x", "+0", "x0", "x-2", "+nan", "+inf", "2x", float("nan")]
)
def test_what_is_no_change_is_refused(written):
    with pytest.raises(rekka.InputError, match=r"for load; \+10 or -10 is needed to add, x2 to multiply"):
        read_change("load", written)


@pytest.mark.parametrize(
    ("change", "words", "plural"),
    [
        (Change("age_at_inspection_1", 10.0), "Ten more years of age", True),
        (Change("age", 1.0), "One more year of age", False),
        (Change("age_years", -25.0), "25 fewer years of age", True),
        (Change("traffic_mean", 2.0, times=True), "Twice the traffic", False),
        (Change("traffic_mean", 0.5, times=True), "Half the traffic", False),
        (Change("traffic_mean", 3.0, times=True), "Three times the traffic", False),
        (Change("traffic_mean", 1.5, times=True), "1.5 times the traffic", False),
        (Change("traffic_mean", -1000.0), "1,000 fewer vehicles a day", True),
        (Change("bridge_length", 0.5), "0.5 more metres of length", True),
        (Change("bridge_area", 200.0), "200 more square metres of area", True),
        (Change("salt", 5.0), "An increase of salt by 5", False),
        (Change("salt", -5.0), "A decrease of salt by 5", False),
        (Change("salt", 2.0, times=True), "Twice the salt", False),
    ],
)
def test_words(change, words, plural):
    assert change.words == words
    assert change.plural is plural


def test_a_cell_is_no_formula():
    cells = [one.spelled for one in (Change("a", 10.0), Change("a", -2.5), Change("a", 2.0, times=True))]
    assert cells == ["plus 10", "minus 2.5", "times 2"]


@given(st.floats(1e-9, 1e9))
def test_a_step_is_round_and_within_the_width(width):
    step = round_step(width)
    assert step <= width * (1 + 1e-6) < step * 2.6
    assert f"{step:e}"[0] in "125"


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf")])
def test_no_width_means_one(width):
    assert round_step(width) == 1.0


def test_the_usual_changes():
    fit = fake_fit(
        age_at_inspection_1=np.arange(60), traffic_mean=np.arange(60) * 100, bridge_length=np.linspace(10, 90, 60)
    )
    found = plan_changes(fit, fit.survey.median)
    assert [one.written for one in found] == ["+10", "x2", "+20"]


def test_a_step_goes_down_where_up_would_leave_the_training_rows():
    mostly = [0.0] * 10 + [1.0] * 90
    fit = fake_fit(steel=mostly, wood=[1 - value for value in mostly])
    assert [one.written for one in plan_changes(fit, fit.survey.median)] == ["-1", "+1"]
    assert plan_changes(fit, np.array([5.0, 0.0]))[0].written == "-1"  # outside either way, but nearer


def test_no_traffic_cannot_be_doubled():
    fit = fake_fit(traffic_mean=[0.0] * 60 + [100.0] * 40)
    assert plan_changes(fit, np.array([0.0]))[0].written == "+100"
    with pytest.raises(rekka.InputError, match="x2 leaves traffic_mean at 0, where it is"):
        plan_changes(fit, np.array([0.0]), {"traffic_mean": "x2"})


def test_given_changes_stand_and_unknown_ones_are_refused():
    fit = fake_fit(age=np.arange(60), salt=np.arange(60))
    assert [one.written for one in plan_changes(fit, fit.survey.median, {"salt": "x3"})] == ["+10", "x3"]
    with pytest.raises(rekka.InputError, match=r"changes names sald, which is not a covariate.*Did you mean salt"):
        plan_changes(fit, fit.survey.median, {"sald": "x3"})


def test_an_old_model_knows_no_step():
    names = ("age", "salt")
    fit = SimpleNamespace(covariates=names, columns=names, coding=NO_CODING, survey=None)
    with pytest.raises(rekka.InputError, match="no usual change of salt: this model file, of an earlier version"):
        plan_changes(fit, np.array([40.0, 3.0]))
    assert [one.written for one in plan_changes(fit, np.array([40.0, 3.0]), {"salt": 1})] == ["+10", "+1"]


def test_a_step_goes_up_where_either_way_leaves_the_training_rows():
    fit = fake_fit(share=[0.0] * 50 + [1.0] * 50)
    assert plan_changes(fit, np.array([0.5]))[0].written == "+1"
    assert plan_changes(fit, np.array([1.0]))[0].written == "-1"
