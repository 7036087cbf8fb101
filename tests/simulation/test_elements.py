"""Errors, frailty, improvements and a trend of simulated inventories: their frequencies, and that they move no other draw."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rekka
from rekka.core.errors import BadOption
from rekka.simulation.elements import DrawnElements, error_matrix
from rekka.simulation.inventory import TABLES, simulate_inventory, write_inventory
from rekka.simulation.stock import FIRST_ROUND, LETTERS, advance

MEMBER = ["bridge_id", "case", "member"]
PLAIN = {"bridges": 1500, "preset": "plain", "seed": 5}
NUMBERS = dict(zip(LETTERS, range(len(LETTERS)), strict=True))


@pytest.fixture(scope="module")
def clean():
    return simulate_inventory(**PLAIN)


def states(tables):
    return tables.inspections["state"].replace_strict(NUMBERS, return_dtype=pl.Int64).to_numpy()


@pytest.mark.parametrize("value", [0, 0.0])
def test_values_of_0_draw_nothing(clean, value):
    same = simulate_inventory(**PLAIN, error=value, frailty=value, improvements=value, trend=value)
    assert same.truth == clean.truth
    assert "elements" not in same.truth
    assert all(getattr(same, name).equals(getattr(clean, name)) for name in TABLES)


@pytest.mark.parametrize("element", ["error", "frailty", "improvements", "trend"])
def test_an_element_moves_no_other_draw(clean, element):
    tables = simulate_inventory(**PLAIN, **{element: 0.1})
    assert tables.inventory.equals(clean.inventory)
    assert tables.traffic.equals(clean.traffic)
    assert tables.inspections.drop("state").equals(clean.inspections.drop("state"))
    assert (states(tables) != states(clean)).mean() > 0.02
    assert tables.truth["elements"] == {element: 0.1}
    assert tables.truth["hazards"] == clean.truth["hazards"]
    assert tables.truth["formula"].startswith(clean.truth["formula"])
    assert element in tables.truth["formula"].removeprefix(clean.truth["formula"])


def test_the_matrix_of_errors():
    matrix = error_matrix(4, 0.1)
    expected = [[0.9, 0.1, 0, 0], [0.05, 0.9, 0.05, 0], [0, 0.05, 0.9, 0.05], [0, 0, 0.1, 0.9]]
    np.testing.assert_allclose(matrix, expected)


def test_inspectors_err_as_often_as_said(clean):
    """Errors have a generator of their own: the states without them are the true ones."""
    true, rated = states(clean), states(simulate_inventory(**PLAIN, error=0.1))
    for s, expected in enumerate(error_matrix(5, 0.1)):
        seen = np.bincount(rated[true == s], minlength=5)
        possible = expected > 0
        assert seen[~possible].sum() == 0
        assert stats.chisquare(seen[possible], expected[possible] * seen.sum()).pvalue > 1e-3


def test_frailties_are_gamma_and_shared_by_a_bridge_within_a_case():
    elements, rng = DrawnElements(frailty=0.5), np.random.default_rng(0)
    assert stats.kstest(elements.frailties(2000, 5, rng).ravel(), stats.gamma(2, scale=0.5).cdf).pvalue > 1e-3
    rows = pair(simulate_inventory(4000, preset="plain", seed=2, frailty=2.0))
    first = rows.filter(state_1=1, case="Main girder").sort("bridge_id", "member", "visit")
    left = first.with_columns(left=pl.col("state_2") > 1).group_by("bridge_id", "member").agg(pl.col("left").max())
    two = left.group_by("bridge_id").agg(pl.col("left")).filter(pl.col("left").list.len() >= 2)["left"].to_list()
    one, other = (np.array([pair[i] for pair in two]) for i in (0, 1))
    assert np.corrcoef(one, other)[0, 1] > 0.2  # of members on one bridge


def pair(tables):
    """Consecutive visits, with the dates as years."""
    seen = ["date", "state", "visit"]
    numbers = {letter: number + 1 for letter, number in NUMBERS.items()}
    return (
        tables.inspections.with_columns(pl.col("state").replace_strict(numbers, return_dtype=pl.Int64))
        .with_columns(pl.col("date").dt.year() + (pl.col("date").dt.ordinal_day() - 1) / 365.25)
        .with_columns(pl.col(*seen).shift(-1).over(MEMBER).name.suffix("_2"))
        .drop_nulls("visit_2")
        .rename({"state": "state_1", "date": "date_1"})
    )


def test_improvements_follow_the_models_steps():
    """States after 2.5 years, in three steps, against products of matrices."""
    theta, n, rho = np.array([0.3, 0.1, 0.5]), 60_000, 0.1
    elements = DrawnElements(improvements=rho)
    dt, start = np.full(n, 2.5), np.ones(n, np.int64)
    end = elements.advance(start, np.tile(theta, (n, 1)), dt, advance, np.random.default_rng(1))
    h = 2.5 / 3
    better = 1 - (1 - rho) ** h
    lift = np.diag([1.0, *[1 - better] * 3]) + np.diag([better] * 3, -1)
    exact = np.linalg.matrix_power(rekka.transition_probabilities(theta, h) @ lift, 3)[1]
    assert stats.chisquare(np.bincount(end, minlength=4), exact * n).pvalue > 1e-3


def test_improvements_end_each_members_steps_with_its_years():
    theta, elements = np.zeros((4000, 3)), DrawnElements(improvements=0.5)
    dt = np.repeat([1.0, 3.0], 2000)
    with np.errstate(divide="ignore"):  # nothing leaves a state
        end = elements.advance(np.full(4000, 3), theta, dt, advance, np.random.default_rng(2))
    for years, some in ((1, end[:2000]), (3, end[2000:])):
        expected = stats.binom.pmf(np.arange(years + 1), years, 0.5) * 2000
        assert stats.chisquare(np.bincount(3 - some), expected).pvalue > 1e-3


def test_a_fit_finds_the_trend():
    """The hazards of one case rise by the trend, whatever else acts on them: its estimate is within 4 errors."""
    tables = simulate_inventory(1500, preset="plain", seed=4, trend=0.06)
    found = rekka.read_transitions(tables.inspections, join=[{"file": tables.inventory}, {"file": tables.traffic}])
    logs = {name: pl.col(name).log() for name in ("bridge_length", "bridge_area", "traffic_mean")}
    rows = found.frame.filter(case="Main girder").with_columns(**logs, since=pl.col("date_1").dt.year() - 2004.0)
    names = ["age_at_inspection_1", *logs, "since"]
    model = rekka.ExponentialHazardMarkovModel(covariates=names, clock="start", shared={"since": [[1, 2, 3, 4]]})
    table = model.fit(rows, rows["state_2"]).summary().filter(pl.col("term") == "since")
    assert FIRST_ROUND == 12 * 2004
    assert abs(table["estimate"][0] - 0.06) < 4 * table["se"][0] < 0.06


def test_elements_are_written_with_the_truth(tmp_path):
    options = {"preset": "plain", "error": 0.05, "frailty": 0.5, "improvements": 0.03, "trend": -0.02}
    files = write_inventory(tmp_path, 20, **options)
    truth = json.loads(files[-1].read_text(encoding="utf-8"))
    assert truth == simulate_inventory(20, **options).truth
    assert truth["elements"] == {option: value for option, value in options.items() if option != "preset"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": 1.5}, "error is 1.5; a probability from 0 to 1 is needed, e.g. 0.05."),
        ({"error": True}, "error is True; a probability from 0 to 1 is needed, e.g. 0.05."),
        ({"frailty": -0.1}, "frailty is -0.1; a variance from 0 to 10 is needed, e.g. 0.5."),
        ({"frailty": "gamma"}, "frailty is 'gamma'; a variance from 0 to 10 is needed, e.g. 0.5."),
        (
            {"improvements": float("nan")},
            "improvements is nan; a probability a year from 0 to 1 is needed, e.g. 0.03.",
        ),
        (
            {"trend": 3},
            "trend is 3; a slope of the log hazards a year, from -1 to 1, is needed, e.g. -0.02.",
        ),
    ],
)
def test_wrong_values_are_refused(options, message, tmp_path):
    for call in (simulate_inventory, lambda **o: write_inventory(tmp_path / "out", **o)):
        with pytest.raises(BadOption) as caught:
            call(**options)
        assert str(caught.value) == message
    assert not (tmp_path / "out").exists()
