import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

from rekka.core.errors import BadValues
from rekka.core.numerics import generator
from rekka.evaluation import goodness
from rekka.evaluation.goodness import (
    Bands,
    LinkedRows,
    Reference,
    Refitter,
    count_cells,
    cut_bands,
    find_links,
    link_rows,
    measure,
    simulate,
)
from rekka.evaluation.resampling import Sample
from rekka.model.coordinates import Prior
from rekka.model.fit import Options, Predictor, refit_rows
from rekka.model.likelihood import Rows
from rekka.scaling.registry import fit_scaling
from rekka.simulation.rows import COVARIATES, simulate_transitions


def sample_of(start, end, dt, n_states, x=None):
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    rows = Rows(
        start, end, np.broadcast_to(np.asarray(dt, float), start.shape).copy(), np.ones(start.size), n_states
    )
    x = np.zeros((start.size, 0)) if x is None else np.asarray(x, float)
    names = tuple(f"x{c}" for c in range(x.shape[1]))
    return Sample(rows, x, np.array([f"B{i}" for i in range(start.size)]), names)


def constant(*theta):
    """A model of hazards that no covariate changes."""
    return Predictor(
        len(theta) + 1, (), fit_scaling("none", np.zeros((2, 0)), ()), np.log(np.array(theta))[:, None]
    )


def expm_row(theta, dt, start):
    Q = np.diag([*-np.asarray(theta), 0.0]) + np.diag(theta, 1)
    return linalg.expm(Q * dt)[start]


@pytest.fixture(scope="module")
def simulated():
    sample = Sample.of(simulate_transitions(400, seed=5), COVARIATES, 5)
    return sample, refit_rows(sample.rows, sample.x, COVARIATES, Options())


def test_bands_hold_about_as_many_rows_each():
    dt = np.random.default_rng(0).uniform(2, 8, 300)
    bands = cut_bands(dt)
    assert np.bincount(bands.of_row).tolist() == [100, 100, 100]
    for b in range(3):
        assert (bands.low[b], bands.high[b]) == (dt[bands.of_row == b].min(), dt[bands.of_row == b].max())
    assert (bands.high[:-1] < bands.low[1:]).all()


@pytest.mark.parametrize(
    ("dt", "expected"),
    [
        ([], 0),
        ([5.0], 1),
        (np.full(300, 5.0), 1),
        (np.linspace(5.0, 5.4, 300), 1),  # hardly varies
        (np.linspace(2, 8, 89), 2),  # three would have fewer than 30 rows
        (np.linspace(2, 8, 59), 1),
        (np.repeat([2.0, 5.0], [40, 260]), 1),  # equal intervals stay together: 40 against 260 is no third
        (np.repeat([2.0, 5.0], [150, 150]), 2),
        (np.repeat([2.0, 5.0, 9.0], 100), 3),
    ],
)
def test_few_rows_or_equal_intervals_have_fewer_bands(dt, expected):
    bands = cut_bands(np.asarray(dt, float))
    assert len(bands) == expected == len(np.unique(bands.of_row))


def test_expected_counts_are_sums_of_the_matrix_exponential():
    theta, rng = (0.3, 0.2, 0.1), np.random.default_rng(1)
    start, dt = rng.integers(0, 4, 120), rng.uniform(1, 9, 120)
    end = np.minimum(start + rng.integers(0, 2, 120), 3)
    bands = cut_bands(dt)
    p = constant(*theta).probabilities(start, dt, np.zeros((120, 0)))
    ours = count_cells(start, end, p, bands)
    observed, expected = np.zeros((2, 4, 3, 4))
    for i, j, years, b in zip(start, end, dt, bands.of_row, strict=True):
        observed[i, b, j] += 1
        expected[i, b] += expm_row(theta, years, i)
    np.testing.assert_array_equal(ours.observed, observed)
    np.testing.assert_allclose(ours.expected, expected, rtol=1e-10, atol=1e-12)
    plain = sum((o - e) ** 2 / max(e, 1) for o, e in zip(observed.ravel(), expected.ravel(), strict=True))
    assert ours.statistic == pytest.approx(plain, rel=1e-9)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(ours.moves[0], [[observed[i, b][off[i]].sum() for b in range(3)] for i in range(4)])


def test_a_forecaster_who_is_sure_and_wrong_is_not_pooled_away():
    start, end = np.zeros(60, np.int64), np.repeat([0, 1], 30)
    p = np.tile([1.0 - 1e-13, 1e-13, 0.0], (60, 1))
    assert count_cells(start, end, p, cut_bands(np.full(60, 5.0))).statistic == pytest.approx(30**2 / 60 + 30**2)


def test_measures_by_hand():
    start, end = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 2, 2])
    p = np.array([[0.5, 0.5, 0]] * 3 + [[0, 0.2, 0.8]] * 2 + [[0, 0, 1]])
    bands = Bands(np.array([0, 0, 1, 0, 1, 1]), np.array([1.0, 5.0]), np.array([4.0, 9.0]))
    outside = np.array([True, False, False, False, False, True])
    ours = measure(start, end, p, bands, outside)
    first = 2 * 0.0 + 2 * 0.5**2  # band 1: 1 and 1 against 1 and 1; band 2: 0 and 1 against 0.5 and 0.5
    second = 2 * 0.8**2 + 2 * 0.2**2
    assert ours["start 1"] == pytest.approx(first)
    assert ours["start 2"] == pytest.approx(second)
    assert ours["start 3"] == 0
    assert ours["all"] == pytest.approx(first + second)
    assert ours["moves"] == pytest.approx(abs(3 - 3.1) / math.sqrt(3.1))
    scaled = np.array([1.8, 1.3]) * 3 / 3.1
    assert ours["bands"] == pytest.approx((1 - scaled[0]) ** 2 / scaled[0] + (2 - scaled[1]) ** 2 / scaled[1])
    assert ours["outside"] == pytest.approx(2 * 0.5**2)
    assert "outside" not in measure(start, end, p, bands, np.zeros(6, bool))


def test_nothing_can_move_and_nothing_does():
    worst = np.full(3, 1)
    ours = measure(worst, worst, np.tile([0.0, 1.0], (3, 1)), cut_bands(np.ones(3)), np.zeros(3, bool))
    assert set(ours.values()) == {0.0}


def test_rows_are_linked_where_a_visit_ends_one_and_starts_another():
    np.testing.assert_array_equal(link_rows(np.array([1, 2, 7, 4]), np.array([2, 3, 8, 1])), [3, 0, -1, -1])
    assert link_rows(np.zeros(0, int), np.zeros(0, int)).shape == (0,)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), unique_by=lambda pair: pair[1], max_size=30))
def test_links_are_those_of_a_dictionary(pairs):
    ends = {b: place for place, (_, b) in enumerate(pairs)}
    visits = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    assert link_rows(visits[:, 0], visits[:, 1]).tolist() == [ends.get(a, -1) for a, _ in pairs]


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        ([-1, 0], r"shape \(2,\).*each of 3 rows, training rows first"),
        ([-1.0, 0.0, 1.0], "type float64; a whole number is needed"),
        ([-1, 0, 3], "points outside the 3 rows at row 2. Set it to -1"),
        ([-2, 0, 1], "points outside the 3 rows at row 0"),
        ([-1, 0, 0], "links row 2 to a row that does not end in the state this one starts in. Set it to -1"),
        ([2, 0, 1], "goes in a circle at rows 0, 1, 2"),
    ],
)
def test_links_that_are_none_are_refused(follows, message):
    with pytest.raises(BadValues, match=message):
        LinkedRows.join((sample_of([2, 0, 1], [0, 1, 2], 5.0, 4),), np.array(follows))


def test_a_member_goes_on_where_it_was_drawn_to_be():
    """Two parts: the end of a training row is the start of a held-out one, and that of the next."""
    n = 20_000
    theta, dt = (0.3, 0.2), (2.0, 3.0, 4.0)
    first = sample_of(np.zeros(n), np.zeros(n), dt[0], 3)
    later = sample_of(np.zeros(2 * n), np.zeros(2 * n), np.repeat(dt[1:], n), 3)
    follows = np.arange(3 * n) - n
    follows[:n] = -1
    rows = LinkedRows.join((first, later), follows)
    start, end = rows.draw(constant(*theta), generator(1, "draw"))
    np.testing.assert_array_equal(start[n:], end[:-n])
    assert (end[start == 2] == 2).all()
    assert (end >= start).all()
    for number in range(3):
        share = np.bincount(end[number * n : (number + 1) * n], minlength=3) / n
        truth = expm_row(theta, sum(dt[: number + 1]), 0)
        assert (np.abs(share - truth) < 4 * np.sqrt(truth * (1 - truth) / n)).all()
    again, _ = LinkedRows.join((first, later), None).draw(constant(*theta), generator(1, "draw"))
    assert (again == 0).all()  # without links every start is as given


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(ridge=3.0),
        Options(scaling="boxcox"),
        Options(effects={"traffic_mean": [2, 3]}, shared={"bridge_area": [[1, 2, 3, 4]]}),
        Options(prior=Prior(np.zeros(20), np.eye(20) * 0.5)),
    ],
    ids=["plain", "ridge", "boxcox", "layout", "prior"],
)
def test_the_fast_refit_is_refit_rows(simulated, options):
    sample, _ = simulated
    fit = refit_rows(sample.rows, sample.x, COVARIATES, options)
    start, end = LinkedRows.join((sample,), None).draw(fit, generator(2, "refit"))
    ours = Refitter.build(fit, sample, options).refit(start, end)
    rows = Rows(start, end, sample.rows.dt, sample.rows.weight, 5)
    theirs = refit_rows(rows, sample.x, COVARIATES, options)
    assert ours.finished
    assert ours.maximum
    assert theirs.at_maximum
    np.testing.assert_allclose(ours.beta, theirs.beta, rtol=1e-6, atol=1e-8)
    assert np.abs(ours.beta - fit.beta).max() > 0.05  # it is another fit


def test_a_set_without_a_maximum_has_predictions_all_the_same():
    sample = sample_of(np.zeros(40), np.zeros(40), 5.0, 2)
    ours = Refitter.build(constant(0.1), sample, Options()).refit(sample.rows.start, sample.rows.end)
    assert ours.finished
    assert not ours.maximum
    assert math.exp(ours.beta[0, 0]) * 5 < 1e-9  # nobody leaves


@pytest.mark.parametrize("x", [np.ones((30, 1)), np.column_stack([np.arange(30)] * 2), np.zeros((0, 1))])
def test_covariates_that_do_not_vary_cannot_be_refitted(x):
    sample = sample_of(np.zeros(len(x)), np.zeros(len(x)), 5.0, 2, x)
    scaling = fit_scaling("none", np.arange(2.0 * x.shape[1]).reshape(2, -1), sample.covariates)
    predictor = Predictor(2, sample.covariates, scaling, np.zeros((1, 1 + x.shape[1])))
    assert Refitter.build(predictor, sample, Options()) is None


def test_a_p_value_by_hand():
    ours = Reference({"all": 3.0}, {"all": np.array([1.0, 2.0, 3.0, 4.0])}, 4, 0, 0)
    assert ours.p_value() == 3 / 5  # 3 and 4 are as large
    assert Reference({"all": 3 + 1e-9}, ours.simulated, 4, 0, 0).p_value() == 3 / 5  # a tie up to rounding
    assert Reference({"all": 3.1}, ours.simulated, 4, 0, 0).p_value() == 2 / 5
    assert Reference({"all": 9.0}, ours.simulated, 4, 0, 0).p_value() == 1 / 5
    assert ours.quantile(0.5) == 3
    assert ours.excess() == 3 - 2.5


def test_the_reference_of_one_hazard_is_what_can_be_computed_by_hand():
    """K = 2, no covariates: the fitted probability of staying is the share that stayed."""
    n, m, predictor = 30, 12, constant(0.08)
    training = sample_of(np.zeros(n), [0] * 20 + [1] * 10, 5.0, 2)
    later = sample_of(np.zeros(m), [0] * 3 + [1] * 9, 5.0, 2)
    rows, bands = LinkedRows.join((training, later), None), cut_bands(later.rows.dt)

    def judge(model, start, end):
        p = model.probabilities(start[n:], rows.dt[n:], rows.x[n:])
        return measure(start[n:], end[n:], p, bands, np.zeros(m, bool))

    refitter = Refitter.build(predictor, training, Options())
    ours = simulate(predictor, rows, refitter, judge, replicates=99, seed=7)

    def plain(stay, ends):
        stayed, left = np.sum(ends == 0), np.sum(ends == 1)
        return (stayed - m * stay) ** 2 / max(m * stay, 1) + (left - m * (1 - stay)) ** 2 / max(m * (1 - stay), 1)

    theirs = []
    for number in range(99):
        _, end = rows.draw(predictor, generator(7, "calibration", number))
        theirs.append(plain(np.mean(end[:n] == 0), end[n:]))
    observed = plain(math.exp(-0.4), later.rows.end)
    assert ours.observed["all"] == pytest.approx(observed)
    np.testing.assert_allclose(ours.simulated["all"], theirs, rtol=1e-6, atol=1e-9)
    assert ours.p_value() == (1 + np.sum(np.array(theirs) >= observed)) / 100
    assert 0 < ours.p_value() < 0.05


def test_refits_that_do_not_finish_count_as_larger(simulated, monkeypatch):
    sample, fit = simulated
    rows = LinkedRows.join((sample,), None)
    refitter = Refitter.build(fit, sample, Options())
    real, calls = goodness.newton, []

    def unlucky(objective, start, max_iter, unit):
        calls.append(start)
        return real(
            objective, start, 1 if len(calls) <= 4 else max_iter, unit
        )  # the first two sets, from both starts

    def judge(model, start, end):
        return {"all": -1.0}  # every finished set is smaller than the 0 of the rows

    monkeypatch.setattr(goodness, "newton", unlucky)
    ours = simulate(fit, rows, refitter, judge, replicates=19, seed=1)
    assert ours.unfinished == 2
    assert len(calls) == 2 * 2 + 17
    assert np.isinf(ours.simulated["all"]).sum() == 2
    assert Reference({"all": 0.0}, ours.simulated, 19, 2, 0).p_value() == 3 / 20


def test_two_rows_that_start_with_one_visit_follow_none():
    """Members that are not told apart: the second row may go on from the first, or from another's."""
    frame = pl.DataFrame(
        {"bridge_id": ["A"] * 3, "visit_1": [1, 2, 2], "visit_2": [2, 3, 4], "state_1": 1, "state_2": 1}
    )
    assert find_links(frame).tolist() == [-1, -1, -1]
    assert find_links(frame.head(2)).tolist() == [-1, 0]
