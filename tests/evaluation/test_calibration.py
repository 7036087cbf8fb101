import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import linalg

from rekka.core.errors import BadOption, BadStates, BadValues
from rekka.evaluation.calibration import MOVES, _find_outside, calibrate
from rekka.evaluation.goodness import Bands, link_rows
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Options, Predictor, refit_rows
from rekka.model.likelihood import Rows
from rekka.scaling.registry import fit_scaling
from rekka.simulation.rows import draw_ends

OPTIONS = Options(threads=1, clock="start")  # covariates are standard normal numbers, not years
NAMES = ("age", "traffic")
RATES, EFFECTS = np.log([0.12, 0.10, 0.08]), np.array([[0.4, 0.2], [0.3, 0.3], [0.4, 0.1]])


def hazards(x):
    return np.exp(RATES + x @ EFFECTS.T)


def draw(n, seed, theta=hazards, exposure=lambda dt: dt, spoil=lambda start, end: end, x=None):
    """Rows of K = 4 from hazards, with exposure(dt) years and ends as they are or spoilt."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) if x is None else x
    start, dt = rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.uniform(2, 8, n)
    end = spoil(start, draw_ends(theta(x), exposure(dt), start, rng))
    bridge = np.array([f"B-{row // 3:04d}" for row in range(n)])
    return Sample(Rows(start.astype(np.int64), end, dt, np.ones(n), 4), x, bridge, NAMES)


def fit(sample, options=OPTIONS):
    return refit_rows(sample.rows, sample.x, sample.covariates, options)


@pytest.fixture(scope="module")
def good():
    sample = draw(500, 1)
    return sample, fit(sample)


@pytest.fixture(scope="module")
def judged(good):
    sample, model = good
    return calibrate(model, sample, options=OPTIONS)


def test_counts_are_those_of_the_rows_and_the_matrix_exponential(good, judged):
    sample, model = good
    expected = {}
    for i, years, theta in zip(
        sample.rows.start, sample.rows.dt, np.exp(model.log_hazards(sample.x)), strict=True
    ):
        row = linalg.expm(years * (np.diag([*-theta, 0.0]) + np.diag(theta, 1)))[i]
        for j in range(i, 4):
            expected[i + 1, j + 1] = expected.get((i + 1, j + 1), 0.0) + row[j]
    by_cell = judged.counts.group_by("start", "end").agg(pl.col("observed", "expected").sum())
    assert {(a, b) for a, b, _, _ in by_cell.iter_rows()} == set(expected)
    for a, b, observed, ours in by_cell.iter_rows():
        assert ours == pytest.approx(expected[a, b], rel=1e-9)
        assert observed == np.sum((sample.rows.start + 1 == a) & (sample.rows.end + 1 == b))


def test_tables_add_up(good, judged):
    sample, _ = good
    counts, rows = judged.counts, len(sample)
    assert counts["observed"].sum() == rows == judged.rows
    assert counts["expected"].sum() == pytest.approx(rows)
    assert (counts["residual"] ** 2).sum() == pytest.approx(judged.goodness.statistic)
    each = counts.group_by("start", "band").agg(pl.col("rows").unique(), pl.col("observed", "expected").sum())
    assert all(ours == [seen] for ours, seen in zip(each["rows"].to_list(), each["observed"], strict=True))
    moves = counts.filter(pl.col("start") != pl.col("end"))
    for table, name, part in (
        (judged.by_start, "start", moves),
        (judged.by_band, "band", moves),
        (judged.by_end, "end", counts),
    ):
        theirs = part.group_by(name).agg(pl.col("observed", "expected").sum()).sort(name)
        assert table["observed"].to_list() == theirs["observed"].to_list()
        np.testing.assert_allclose(table["expected"], theirs["expected"])
    assert judged.by_start["rows"].sum() == judged.by_band["rows"].sum() == rows
    assert judged.by_band.height == 3
    assert (judged.by_band["years_low"][0], judged.by_band["years_high"][-1]) == (
        sample.rows.dt.min(),
        sample.rows.dt.max(),
    )
    curve = judged.reliability.filter(event=MOVES)
    assert curve["rows"].sum() == rows
    assert (curve["forecast"] * curve["rows"]).sum() == pytest.approx(judged.by_start["expected"].sum())
    assert (curve["observed"] * curve["rows"]).sum() == pytest.approx(judged.by_start["observed"].sum())


def test_a_good_model_has_no_cause(judged):
    assert judged.goodness.p_value > 0.05
    assert judged.goodness.statistic < judged.goodness.critical
    assert (judged.goodness.replicates, judged.goodness.unfinished, judged.goodness.without_maximum) == (199, 0, 0)
    assert "the rows drawn and fitted anew" in judged.goodness.kind
    assert judged.causes == ()
    assert (judged.at_floor, judged.at_floor_share) == (0, 0)


def test_the_seed_decides_and_the_training_rows_themselves_are_in_sample(good):
    sample, model = good
    first, second = (calibrate(model, sample, options=OPTIONS, training=t, replicates=39) for t in (None, sample))
    other = calibrate(model, sample, options=OPTIONS, replicates=39, seed=4)
    assert first.to_dict() == second.to_dict()
    assert first.goodness.critical != other.goodness.critical
    assert first.goodness.statistic == other.goodness.statistic


def test_it_is_plain_data(judged):
    ours = json.loads(json.dumps(judged.to_dict(), allow_nan=False))
    assert ours["rows"] == 500
    assert ours["goodness"]["p_value"] == judged.goodness.p_value
    assert ours["counts"] == judged.counts.to_dicts()
    assert ours["causes"] == []


def members(n, seed):
    """Members with four intervals each: two train, two are held out; the links of the rows, training first."""
    rng = np.random.default_rng(seed)
    x, dt = rng.normal(size=(n, 2)), rng.uniform(2, 8, (4, n))
    state = np.empty((5, n), np.int64)
    state[0] = rng.choice(3, n)
    for visit in range(4):
        state[visit + 1] = draw_ends(hazards(x), dt[visit], state[visit], rng)
    bridge = np.array([f"B-{member // 2}" for member in range(n)] * 2)

    def part(visits):
        states = [np.concatenate([state[v + shift] for v in visits]) for shift in (0, 1)]
        rows = Rows(*states, np.concatenate([dt[v] for v in visits]), np.ones(2 * n), 4)
        return Sample(rows, np.tile(x, (2, 1)), bridge, NAMES)

    visit = np.arange(5 * n).reshape(5, n)
    return part((0, 1)), part((2, 3)), link_rows(visit[:-1].ravel(), visit[1:].ravel())


def test_linked_rows_held_out_and_not():
    training, later, follows = members(150, 3)
    model = fit(training)
    inside = calibrate(model, training, options=OPTIONS, follows=follows[:300], replicates=99)
    assert inside.causes == ()
    outside = calibrate(model, later, options=OPTIONS, training=training, follows=follows, replicates=99)
    assert outside.causes == ()
    assert "the held-out rows drawn and predicted" in outside.goodness.kind
    assert (later.rows.start == 3).any()  # rows in the worst state are counted and stay
    worst = outside.counts.filter(start=4)
    assert worst["end"].unique().to_list() == [4]
    assert worst["observed"].to_list() == worst["expected"].to_list()
    alone = calibrate(model, later, options=OPTIONS, training=training, replicates=99)
    assert alone.goodness.critical != outside.goodness.critical


def test_faster_deterioration_of_later_rows_is_named_as_drift():
    training, later = draw(500, 5), draw(400, 6, theta=lambda x: 1.7 * hazards(x))
    ours = calibrate(fit(training), later, options=OPTIONS, training=training)
    assert ours.goodness.p_value <= 0.05
    assert any("too many in every start state" in cause and "went faster" in cause for cause in ours.causes)
    assert not any("start state 1:" in cause and "misfit lies" in cause for cause in ours.causes)


def test_hazards_that_grow_with_the_interval_are_named_as_time():
    sample = draw(900, 7, exposure=lambda dt: 5 * (dt / 5) ** 2)
    ours = calibrate(fit(sample), sample, options=OPTIONS)
    assert ours.goodness.p_value <= 0.05
    assert any(
        cause.startswith("Rows that left their state do not grow with the interval") for cause in ours.causes
    )


def test_a_state_that_is_left_in_leaps_is_named():
    def leap(start, end):
        return np.where((start == 0) & (end == 1), 2, end)

    sample = draw(900, 8, spoil=leap)
    ours = calibrate(fit(sample), sample, options=OPTIONS)
    assert ours.goodness.p_value <= 0.05
    assert any("Jumps over states" in cause and "from state 1 to 3" in cause for cause in ours.causes), ours.causes


def test_rows_outside_the_training_range_are_named():
    rng = np.random.default_rng(9)
    near, far = rng.uniform(-1, 1, (500, 2)), rng.uniform(-1, 1, (400, 2))
    far[:60, 0] = rng.uniform(1.5, 2.5, 60)

    def kept_up(x):
        return hazards(x) * np.where(x[:, :1] > 1, 0.1, 1.0)

    training, later = draw(500, 10, x=near), draw(400, 11, theta=kept_up, x=far)
    ours = calibrate(fit(training), later, options=OPTIONS, training=training)
    beyond = (far < near.min(axis=0)) | (far > near.max(axis=0))
    count = int(beyond.any(axis=1).sum())
    assert len(ours.causes) == 1
    assert f"The misfit lies in {count} judged rows outside the training range (age" in ours.causes[0]
    inside = calibrate(fit(training), later.take(np.arange(60, 400)), options=OPTIONS, training=training)
    assert inside.causes == ()


def test_a_forecaster_of_zeros_and_ones_is_on_the_floor(good):
    sample, model = good
    sure = Predictor(4, NAMES, model.scaling, model.beta * np.array([200.0, 0, 0]))
    ours = calibrate(sure, sample, options=OPTIONS, replicates=19)
    moved = int(np.sum(sample.rows.start != sample.rows.end))
    assert (ours.at_floor, ours.at_floor_share) == (moved, moved / 500)
    assert ours.goodness.p_value == 1 / 20
    assert len(ours.causes) == 1
    assert "the solver stopped on a plateau" in ours.causes[0]


def test_a_fit_that_stopped_short_is_named_by_its_certificate(good):
    sample, _ = good
    short = fit(sample, Options(scaling="none", solver="lbfgs", max_iter=1, threads=1))
    ours = calibrate(short, sample, options=OPTIONS, certificate=short.certificate, replicates=19)
    assert any(cause.startswith("The fit is not certified: ") for cause in ours.causes)


NO_TEST = "no test: no judged row can change its state"


def test_no_rows(good):
    sample, model = good
    none = sample.take(np.arange(0))
    for training in (None, sample):
        ours = calibrate(model, none, options=OPTIONS, training=training)
        assert (ours.rows, ours.at_floor, ours.causes, ours.goodness.kind) == (0, 0, (), NO_TEST)
        assert math.isnan(ours.at_floor_share)
        assert math.isnan(ours.goodness.p_value)
        assert ours.counts.height == ours.by_start.height == ours.by_band.height == ours.reliability.height == 0
        assert ours.to_dict()["goodness"]["p_value"] is None


def test_one_row(good):
    sample, model = good
    one = sample.take(np.array([3]))
    held_out = calibrate(model, one, options=OPTIONS, training=sample, replicates=19)
    assert 0 < held_out.goodness.p_value <= 1
    inside = calibrate(model, one, options=OPTIONS, replicates=19)
    assert inside.goodness.kind.startswith("no test: the covariates of the rows do not vary")
    assert inside.counts["observed"].sum() == 1


def test_all_rows_in_the_worst_state(good):
    sample, model = good
    worst = np.full(500, 3, np.int64)
    ours = calibrate(model, replace(sample, rows=replace(sample.rows, start=worst, end=worst)), options=OPTIONS)
    assert (ours.goodness.statistic, ours.goodness.kind, ours.causes) == (0, NO_TEST, ())
    assert ours.reliability.height == 0
    assert ours.by_start.to_dicts() == [{"start": 4, "rows": 500, "observed": 0, "expected": 0.0, "residual": 0.0}]


def test_all_rows_in_one_state_and_none_leaves(good):
    sample, _ = good
    still = np.zeros(500, np.int64)
    quiet = replace(sample, rows=replace(sample.rows, start=still, end=still))
    model = fit(quiet)
    ours = calibrate(model, quiet, options=OPTIONS, replicates=19)
    assert ours.goodness.p_value == 1
    assert ours.goodness.without_maximum == 19
    assert ours.causes == ()


@pytest.mark.parametrize("n", [1, 40])
def test_two_states_without_covariates(n):
    """The one hazard is fitted to the one share: a test in the same rows finds nothing."""
    end = (np.arange(n) % 4 == 0).astype(np.int64)
    rows = Rows(np.zeros(n, np.int64), end, np.full(n, 5.0), np.ones(n), 2)
    sample = Sample(rows, np.zeros((n, 0)), np.array([f"B{i}" for i in range(n)]), ())
    ours = calibrate(fit(sample), sample, options=OPTIONS, replicates=19)
    assert ours.goodness.statistic == pytest.approx(0, abs=1e-9)
    assert (ours.goodness.p_value, ours.causes) == (1, ())


def test_forecasts_that_are_no_numbers(good):
    sample, model = good
    ours = calibrate(replace(model, beta=np.full((3, 3), np.nan)), sample, options=OPTIONS)
    assert ours.goodness.kind == "no test: a hazard is no finite number"
    assert (ours.at_floor, ours.at_floor_share) == (500, 1)
    assert len(ours.causes) == 1
    json.dumps(ours.to_dict(), allow_nan=False)


def test_no_test_where_none_is_asked_for(judged, good):
    sample, model = good
    ours = calibrate(model, sample, options=OPTIONS, replicates=0)
    assert ours.goodness.kind == "no test was asked for"
    assert ours.goodness.statistic == judged.goodness.statistic
    assert ours.counts.equals(judged.counts)


def test_what_does_not_belong_together_is_refused(good):
    sample, model = good
    other = replace(sample, covariates=("age", "length"))
    with pytest.raises(BadValues, match=r"K = 4 and covariates age, length, the model has K = 4 and age, traffic"):
        calibrate(model, other, options=OPTIONS)
    with pytest.raises(BadValues, match=r"The rows have K = 5"):
        calibrate(model, sample, options=OPTIONS, training=replace(sample, rows=replace(sample.rows, n_states=5)))
    beyond = replace(sample, rows=replace(sample.rows, end=sample.rows.end + 4))
    with pytest.raises(BadStates, match=r"beyond K = 4. Judge only the rows of split_supported"):
        calibrate(model, beyond, options=OPTIONS)
    with pytest.raises(BadOption, match=r"replicates is 18; a test at 0.05 needs 19 or more, and 0 is no test"):
        calibrate(model, sample, options=OPTIONS, replicates=18)
    with pytest.raises(BadOption, match=r"confidence is 95"):
        calibrate(model, sample, options=OPTIONS, confidence=95)
    with pytest.raises(BadValues, match=r"each of 1,000 rows, training rows first"):
        calibrate(model, sample, options=OPTIONS, training=draw(500, 2), follows=np.full(500, -1))


def test_the_operator_is_the_predictors_own():
    """Another affine operator of the same model gives the same test."""
    sample = draw(200, 12)
    ours = [
        calibrate(fit(sample, o), sample, options=o, replicates=39).goodness
        for o in (Options(scaling="zscore", threads=1), Options(scaling="minmax", threads=1))
    ]
    assert ours[0].p_value == ours[1].p_value
    assert ours[0].critical == pytest.approx(ours[1].critical, rel=1e-6)
    assert fit_scaling("zscore", sample.x, NAMES).method == "zscore"


def test_the_ends_of_the_training_range_are_inside_it():
    def rows(*values: float) -> Sample:
        x, none = np.array(values)[:, None], np.zeros(len(values), np.int64)
        return Sample(
            Rows(none, none, np.ones(len(values)), np.ones(len(values)), 2), x, none.astype(str), ("age",)
        )

    p, bands = np.full((3, 2), 0.5), Bands(np.zeros(3, np.int64), np.ones(1), np.ones(1))
    assert _find_outside(rows(0.0, 1.0), rows(0.0, 0.5, 1.0), p, bands) is None
    found = _find_outside(rows(0.0, 1.0), rows(-0.1, 0.5, 1.1), p, bands)
    assert found.rows.tolist() == [True, False, True]
