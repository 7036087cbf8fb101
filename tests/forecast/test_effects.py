"""Effects against closed forms: sums of exponentials, Erlang's distribution, gradients by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import rekka
from rekka.forecast.effects import Change, Effect, Estimate, describe_effect, marginal_effects, show_years
from rekka.forecast.forecast import AT_REST, NOT_CERTIFIED

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]
DELTA = replace(AT_REST, intervals="delta")
Z = 1.959963984540054


def fit_rows(rows, scaling="zscore", names=NAMES, **options):
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=names, **options)
    return model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())


@pytest.fixture(scope="module", params=["zscore", "boxcox"])
def model(request):
    return fit_rows(rekka.simulate_transitions(900, n_states=5, seed=3), request.param)


@pytest.fixture(scope="module")
def fit(model):
    return model._fit


def hazards_at(fit, x):
    return np.exp(fit.log_hazards(x[None])[0])


def both(fit, place, change):
    """Covariates before and after."""
    before = fit.survey.median
    after = before.copy()
    after[place] = change(before[place])
    return before, after


@pytest.mark.parametrize(("start", "threshold"), [(1, 4), (2, 5), (3, 4)])
def test_mean_years_are_sums_of_exponential_means(fit, start, threshold):
    found = marginal_effects(fit, start=start, threshold=threshold, options=DELTA)
    before, after = both(fit, 0, lambda age: age + 10)
    way = slice(start - 1, threshold - 1)
    years = [(1 / hazards_at(fit, x)[way]).sum() for x in (before, after)]
    first = found.effects[0]
    assert (first.mean_before.value, first.mean_after.value) == pytest.approx(years, rel=1e-9)
    assert first.mean_difference.value == pytest.approx(years[1] - years[0], rel=1e-9)
    assert first.mean_ratio.value == pytest.approx(years[1] / years[0], rel=1e-9)
    assert (first.before, first.after) == (before[0], after[0])
    assert found.covariates == dict(zip(NAMES, before.tolist(), strict=True))


def test_intervals_of_difference_and_ratio_are_those_of_the_gradient(fit):
    """g(b) = sum_k exp(-w.b_k), dg / db_k = -w exp(-w.b_k); the covariance of both ends is one."""
    found = marginal_effects(fit, threshold=4, options=DELTA).effects[3]
    before, after = both(fit, 3, lambda traffic: traffic * 2)
    gradients = []
    for x in (before, after):
        gradient = np.zeros(fit.beta.shape)
        gradient[:3] = -(1 / hazards_at(fit, x)[:3])[:, None] * fit.design(x[None])
        gradients.append(gradient.ravel())
    years = found.mean_before.value, found.mean_after.value
    covariance = fit.inference.covariance
    by = gradients[1] - gradients[0]
    width = Z * np.sqrt(by @ covariance @ by)
    assert found.mean_difference.low == pytest.approx(years[1] - years[0] - width, rel=1e-4)
    assert found.mean_difference.high == pytest.approx(years[1] - years[0] + width, rel=1e-4, abs=1e-4)
    by = gradients[1] / years[1] - gradients[0] / years[0]
    width = Z * np.sqrt(by @ covariance @ by)
    assert found.mean_ratio.low == pytest.approx(years[1] / years[0] * np.exp(-width), rel=1e-6)
    width = Z * np.sqrt(gradients[0] @ covariance @ gradients[0]) / years[0]
    assert found.mean_before.high == pytest.approx(years[0] * np.exp(width), rel=1e-6)


def test_draws_agree_with_the_gradient_and_with_their_seed(fit):
    delta = marginal_effects(fit, options=DELTA)
    drawn, again = (marginal_effects(fit, options=replace(AT_REST, seed=2)) for _ in range(2))
    for one, other, same in zip(drawn.effects, delta.effects, again.effects, strict=True):
        assert one.mean_difference == same.mean_difference
        uncertainty = other.mean_difference.high - other.mean_difference.low
        assert one.mean_difference.low == pytest.approx(other.mean_difference.low, abs=0.35 * uncertainty)
        # a difference below 0 is a ratio below 1, draw by draw
        assert one.mean_difference.clear == (one.mean_ratio.low > 1 or one.mean_ratio.high < 1)


def test_hazard_ratios_are_those_of_the_model(model, fit):
    found = marginal_effects(fit, options=DELTA, changes={"bridge_length": "+20"}).effects[1]
    before, after = both(fit, 1, lambda length: length + 20)
    ratios = [one.value for one in found.hazard_ratios]
    np.testing.assert_allclose(ratios, hazards_at(fit, after) / hazards_at(fit, before), rtol=1e-9)
    if fit.native:
        table = model.set_params(units={"bridge_length": 20.0}).summary().filter(term="bridge_length")
        np.testing.assert_allclose([one.low for one in found.hazard_ratios], table["hr_low"], rtol=1e-6)
        np.testing.assert_allclose([one.high for one in found.hazard_ratios], table["hr_high"], rtol=1e-6)


def test_equal_hazards_give_erlangs_median():
    fit = fit_rows(rekka.simulate_transitions(900, n_states=5, seed=3), names=NAMES[:1])._fit
    rows = np.tile(fit.coefficients[:1], (4, 1))
    equal = replace(fit, inference=replace(fit.inference, coefficients=rows.ravel()))
    found = marginal_effects(equal, threshold=4, options=replace(AT_REST, intervals="none")).effects[0]
    for x, years in ((found.before, found.median_before), (found.after, found.median_after)):
        theta = np.exp(rows[0] @ [1.0, x])
        assert years.value == pytest.approx(stats.gamma.ppf(0.5, 3, scale=1 / theta), rel=1e-9)
        assert np.isnan(years.low)


def test_advancing_age_is_told_year_by_year():
    """Two states: the mean is the sum over years of S(y) (1 - exp(-theta_y)) / theta_y."""
    fit = fit_rows(rekka.simulate_transitions(600, n_states=2, seed=1), names=NAMES[:1])._fit
    found = marginal_effects(fit, threshold=2, options=replace(DELTA, age="advances"))
    theta = np.exp(fit.log_hazards(fit.survey.median + 0.5 + np.arange(200.0)[:, None])[:, 0])
    alive = np.exp(-np.concatenate([[0.0], np.cumsum(theta)[:-1]]))
    assert found.effects[0].mean_before.value == pytest.approx((alive * -np.expm1(-theta) / theta).sum(), rel=1e-9)
    assert found.course == "age_at_inspection_1 advancing by the year (fitted at the middle of each interval)"


def test_where_the_model_extrapolates_is_told(fit):
    found = marginal_effects(fit, options=DELTA, at={"bridge_length": 1e4}, changes={"age_at_inspection_1": 100})
    assert found.notes[0].startswith("bridge_length = 10,000 lies outside the training rows")
    assert sum("bridge_length = 10,000 lies" in note for note in found.notes) == 1
    assert any(note.startswith("After the change age_at_inspection_1 = ") for note in found.notes)
    older = marginal_effects(
        fit, options=replace(DELTA, age="advances"), at={"age_at_inspection_1": fit.survey.high[0]}
    )
    assert any("passes the largest of the training rows" in note for note in older.notes)


def test_an_effect_on_another_state_is_none_here():
    rows = rekka.simulate_transitions(900, n_states=5, seed=3)
    fit = fit_rows(rows, names=NAMES[:2], effects={"bridge_length": [4]})._fit
    found = marginal_effects(fit, threshold=3, options=DELTA)
    assert found.effects[1].mean_difference.value == 0.0
    assert found.sentences()[1].startswith(
        "20 more metres of length have no effect on the mean time from rating 1 to 3 or worse in this model, which is "
    )
    assert marginal_effects(fit, threshold=5, options=DELTA).effects[1].mean_difference.value != 0.0


def test_the_table_has_every_figure(fit):
    found = marginal_effects(fit, options=DELTA)
    table = found.table()
    assert table["covariate"].to_list() == NAMES
    assert table["change"].to_list()[::3] == ["plus 10", "times 2"]
    for name, figure in (
        ("mean_years_before", found.effects[0].mean_before),
        ("median_years_difference", found.effects[0].median_difference),
        ("mean_ratio", found.effects[0].mean_ratio),
        ("hazard_ratio_4", found.effects[0].hazard_ratios[3]),
    ):
        assert table.row(0, named=True)[name] == figure.value
        assert table.row(0, named=True)[f"{name}_low"] == figure.low
    assert table["certified"].all()
    assert "mean_years_difference_low" in str(table)
    assert "hazard_ratio_1" not in str(table)
    told = found.to_dict()
    assert [one["told"] for one in told["effects"]] == list(found.sentences())


def test_an_uncertified_model_says_so():
    fit = fit_rows(rekka.simulate_transitions(24, n_states=5))._fit
    found = marginal_effects(fit)
    assert not found.certified
    assert found.notes[0].startswith(NOT_CERTIFIED)
    assert found.table().title.startswith(NOT_CERTIFIED)
    assert found.to_dict()["effects"][0]["mean_years_before_low"] is None
    assert all("(95 %" not in told for told in found.sentences())


def test_a_model_without_covariates_has_no_effects():
    found = marginal_effects(fit_rows(rekka.simulate_transitions(300, n_states=3), names=[])._fit)
    assert found.effects == ()
    assert found.sentences() == ()
    assert found.table().is_empty()


@pytest.mark.parametrize(("start", "threshold"), [(4, 4), (0, 4), (True, 4), (1.5, 4)])
def test_a_start_that_is_there_already_is_refused(fit, start, threshold):
    with pytest.raises(rekka.InputError, match="a state from 1 to 3 is needed, better than 4"):
        marginal_effects(fit, start=start, threshold=threshold)


def estimate(value, low=np.nan, high=np.nan):
    return Estimate(value, low, high)


def effect(change, before, after, low=np.nan, high=np.nan):
    difference = estimate(after - before, low, high)
    years = {f"{kind}_{what}": estimate(1.0) for kind in ("mean", "median") for what in ("ratio", "difference")}
    years |= {"mean_before": estimate(before), "mean_after": estimate(after), "mean_difference": difference}
    years |= {"median_before": estimate(before), "median_after": estimate(after)}
    return Effect(change=change, before=0.0, after=0.0, **years, hazard_ratios=())


TEN, TWICE = Change("age", 10.0), Change("traffic_mean", 2.0, times=True)
WAY = "from rating 1 to 4 or worse"


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (
            effect(TEN, 31.2, 24.5, -11.0, -2.1),
            f"Ten more years of age shorten the mean time {WAY} from 31.2 to 24.5 years, by 6.7 years "
            "(95 %: 2.1 to 11.0).",
        ),
        (
            effect(TWICE, 24.5, 31.2, 2.1, 11.0),
            f"Twice the traffic lengthens the mean time {WAY} from 24.5 to 31.2 years, by 6.7 years "
            "(95 %: 2.1 to 11.0).",
        ),
        (
            effect(TEN, 31.2, 30.0, -3.0, 0.5),
            f"Ten more years of age have no clear effect on the mean time {WAY}: 31.2 years before, 30.0 after, a "
            "difference of -1.2 years (95 %: -3.0 to +0.5).",
        ),
        (
            effect(TWICE, 30.0, 30.5, -0.02, 1.0),
            f"Twice the traffic has no clear effect on the mean time {WAY}: 30.00 years before, 30.50 after, a "
            "difference of +0.50 years (95 %: -0.02 to +1.00).",
        ),
        (effect(TEN, 31.2, 24.5), f"Ten more years of age shorten the mean time {WAY} from 31.2 to 24.5 years, by 6.7 years."),
        (effect(TWICE, 5.0, 5.0), f"Twice the traffic has no effect on the mean time {WAY} in this model, which is 5.0 years."),
        (
            effect(TEN, np.inf, 24.5),
            f"Ten more years of age: the mean time {WAY} is more than 10,000 years before and 24.5 after, so that "
            "no difference can be given.",
        ),
        (
            effect(TWICE, 100.0, 400.0, 20.0, 1e9),
            f"Twice the traffic lengthens the mean time {WAY} from 100.0 to 400.0 years, by 300.0 years "
            "(95 %: 20.0 to more than 10,000).",
        ),
    ],
)  # fmt: skip
def test_sentences(one, told):
    assert describe_effect(one, WAY, 0.95) == told


def test_names_of_states_are_told_where_there_are_any(fit):
    found = marginal_effects(fit, options=DELTA, labels=["a", "b", "c", "d", "e", "f"])
    assert found.journey == "from rating a to d or worse"
    assert found.labels == tuple("abcde")
    assert marginal_effects(fit, options=DELTA, labels=list("12345")).journey == WAY


def test_years_that_nobody_means():
    assert show_years(-1e12) == "less than -10,000"
    assert show_years(1234.56) == "1,234.6"
