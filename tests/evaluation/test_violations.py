"""Tests of assumptions: each finds what breaks it, their score is Rao's, and none is made of too little."""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import linalg, special

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.simulated_histories import NEW, Setting, draw_inventory

import rekka
from rekka.checks.assumptions import CODES, describe_untouched, list_contradicted
from rekka.checks.engine import Severity
from rekka.core.errors import BadOption, MissingColumns
from rekka.core.language import LANGUAGES, load_words, say
from rekka.evaluation.violations import (
    CLOCK,
    ERRORS,
    FRAILTY,
    IMPROVEMENTS,
    PAST,
    TREND,
    PairedRows,
    Violation,
    adjust,
    find_violations,
)
from rekka.model.certificate import Verdict
from rekka.model.likelihood import Likelihood

NAMES = [ERRORS, IMPROVEMENTS, FRAILTY, TREND, CLOCK, PAST]


@cache
def draw(setting, bridges=500):
    """Rows with improvements by one rating kept, with the columns of ``pair_visits``."""
    visit = pl.int_range(pl.len()).over("bridge")
    rows = draw_inventory(setting, 1, bridges).rows
    return rows.with_columns(bridge_id="bridge", history=1, visit_1=visit, visit_2=visit + 1)


def fit(rows, **options):
    fitted = rows.filter(pl.col("state_2") >= pl.col("state_1"))
    options = {"covariates": ["x"], "threads": 1} | options
    return rekka.ExponentialHazardMarkovModel(**options).fit(
        fitted, fitted["state_2"], groups=fitted["bridge_id"].to_numpy()
    )


def test(rows, **options):
    return {one.name: one for one in fit(rows, **options).find_violations(rows)}


test.__test__ = False
PLAIN = Setting("plain", 2.0, 8)


@pytest.fixture(scope="module")
def plain():
    return draw(PLAIN), fit(draw(PLAIN))


def test_nothing_is_found_where_nothing_is_wrong(plain):
    found = plain[1].find_violations(plain[0])
    assert {one.name for one in found} == {FRAILTY, TREND, PAST}  # no rating improves, and no covariate advances
    assert not any(one.found for one in found)
    assert list_contradicted("Pier", found) == []
    (line,) = describe_untouched(found)
    assert line.startswith("No sign of: ")


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [
        (ERRORS, replace(PLAIN, name="errors", error=0.05)),
        (IMPROVEMENTS, replace(PLAIN, name="improvements", improvements=0.03)),
        (FRAILTY, Setting("frailty", 5.0, 7, frailty=0.5, start=NEW)),
        (TREND, replace(PLAIN, name="trend", trend=-0.05)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_found(wrong, setting):
    found = test(draw(setting))
    assert found[wrong].found, found[wrong]
    if wrong != FRAILTY:  # which looks like a trend where all bridges are followed over the same years
        assert next(iter(found)) == wrong
    assert {ERRORS, IMPROVEMENTS} <= set(found) if wrong in (ERRORS, IMPROVEMENTS) else ERRORS not in found
    figures = found[wrong].figures
    if wrong == ERRORS:
        assert not found[IMPROVEMENTS].found  # errors go back
        assert figures["back"] > 1.5 * figures["back_expected"]
        assert figures["again"] > 1.5 * figures["again_expected"]
    elif wrong == IMPROVEMENTS:
        assert not found[ERRORS].found
        assert figures["stay"] / figures["judged"] == pytest.approx(figures["staying"])
        assert figures["staying"] > 0.01
    elif wrong == FRAILTY:
        assert figures["fast"] / figures["fast_expected"] > figures["slow"] / figures["slow_expected"]
    else:
        years = figures["last"] - figures["first"]
        assert figures["low"] < np.exp(-0.05 * years) < figures["high"] < 1


def test_an_age_at_the_start_of_uneven_intervals_is_found():
    """Every third visit is left out, so that intervals of 6 and of 12 years take turns."""
    rows = draw(Setting("ageing", 6.0, 6, ageing=0.08), 1500)
    first = pl.col("state_1").shift(1).over("bridge")
    long = rows.with_columns(
        state_1=first,
        interval_years=pl.col("interval_years") + pl.col("interval_years").shift(1).over("bridge"),
        age=pl.col("age").shift(1).over("bridge"),
        visit_1=pl.col("visit_1") - 1,
    )
    place = pl.int_range(pl.len()).over("bridge")
    rows = pl.concat([rows.filter(place % 3 == 0), long.filter(place % 3 == 2)]).sort("bridge", "visit_1")
    covariates = {"covariates": ["x", "age"]}
    started = test(rows, clock="start", **covariates)[CLOCK]
    assert started.found
    assert started.figures["within"] > started.figures["missed"] > 0.2
    middle = test(rows, **covariates)[CLOCK]
    assert middle.p_value is None or not middle.found


def test_the_score_is_that_of_the_larger_model(plain):
    """Against the gradient and Hessian of a design that has the term as a column of its own."""
    rows, model = plain
    paired = PairedRows.of(model._fit, rows)
    pairs, term = paired.pairs, paired.seen
    score = pairs.test(term)
    order = pairs.rows.grouping
    wide = np.column_stack([pairs.W, term])[order]
    larger = Likelihood.build(pairs.rows.take(order), wide, 1)
    free, p1 = pairs.beta.shape
    beta = np.column_stack([pairs.beta, np.zeros(free)]).ravel()
    _, gradient, hessian = larger.evaluate(beta, 2)
    common = np.zeros((beta.size, free * p1 + 1))  # the model's own coefficients, then one for all states
    own = [f for f in range(beta.size) if f % (p1 + 1) < p1]
    common[own, np.arange(free * p1)] = 1.0
    common[p1 :: p1 + 1, -1] = 1.0
    U, information = common.T @ gradient, -common.T @ hessian @ common
    weights = np.linalg.solve(information[:-1, :-1], information[:-1, -1])
    left = information[-1, -1] - information[-1, :-1] @ weights
    assert score.information == pytest.approx(left, rel=1e-6)
    assert abs(score.z) <= abs(U[-1] / np.sqrt(left)) * (1 + 1e-6)  # the variance is the larger of two
    assert abs(score.z) > 0.8 * abs(U[-1] / np.sqrt(left))


def test_the_frailty_is_scored_by_the_part_of_its_likelihood_between_rows():
    """Against the slope in phi, at 0, of quadratures over a gamma frailty of bridges, less those of their rows."""
    rows = draw(Setting("frailty 0.5, from new", 5.0, 7, frailty=0.5, start=NEW), 30)
    model = fit(rows)
    pairs = PairedRows.of(model._fit, rows).pairs
    term, _ = PairedRows.of(model._fit, rows).ahead
    start, end, dt = pairs.rows.start, pairs.rows.end, pairs.rows.dt

    def gain(phi, nodes=12):
        """Log-likelihood of shared factors less that of a factor of its own for each row."""
        eps, weight = special.roots_genlaguerre(nodes, 1 / phi - 1)
        theta = np.append(np.exp(pairs.eta), np.zeros((start.size, 1)), axis=1)
        Q = theta[:, :, None] * (np.eye(theta.shape[1], k=1) - np.eye(theta.shape[1])) * dt[:, None, None]
        p = np.stack([linalg.expm(Q * factor)[np.arange(start.size), start, end] for factor in eps * phi])
        weight = (weight / weight.sum())[:, None]
        alone = np.log((weight * p).sum(axis=0)).sum()
        shared = np.stack([p[:, pairs.group == g].prod(axis=1) for g in np.unique(pairs.group)], axis=1)
        return np.log((weight * shared).sum(axis=0)).sum() - alone

    slope = 2 * gain(0.01) / 0.01 - gain(0.02) / 0.02  # to the second order in phi
    assert float(pairs.residual @ term) == pytest.approx(slope, rel=0.02)


def test_the_factor_is_that_of_a_fit_with_the_covariate(plain):
    rows, model = plain
    paired = PairedRows.of(model._fit, rows)
    year = paired.year - paired.year.mean()
    larger = rows.with_columns(year=pl.Series(year))
    shared = fit(larger, covariates=["x", "year"], shared={"year": [[1, 2, 3, 4]]})
    row = shared.summary().filter(pl.col("term") == "year").row(0, named=True)
    value, error = paired.pairs.fit_term(year, model._fit.layout)
    assert value == pytest.approx(row["estimate"], rel=1e-6)
    assert error == pytest.approx(row["se"], rel=1e-6)


def test_expected_moves_add_up(plain):
    """At the maximum, with an intercept in each state, as many rows leave as are expected to, nearly."""
    pairs = PairedRows.of(plain[1]._fit, plain[0]).pairs
    observed, expected = pairs.count(np.ones(pairs.rows.dt.size, dtype=bool))
    assert observed == pytest.approx(expected, rel=0.02)
    assert pairs.residual.sum() == pytest.approx(0.0, abs=1e-6)


def test_the_order_of_rows_does_not_matter(plain):
    rows, model = plain
    again = model.find_violations(rows.sample(fraction=1.0, shuffle=True, seed=3))
    assert [one.p_value for one in again] == pytest.approx([one.p_value for one in model.find_violations(rows)])


def test_time_seen_in_a_rating_runs_until_it_changes():
    rows = pl.DataFrame(
        {
            "bridge_id": ["A"] * 5,
            "state_1": [1, 1, 1, 2, 1],
            "state_2": [1, 1, 2, 1, 1],
            "interval_years": [2.0, 3.0, 1.0, 2.0, 4.0],
            "x": [0.5] * 5,
            "visit_1": [1, 2, 3, 4, 5],
            "visit_2": [2, 3, 4, 5, 6],
        }
    )
    paired = PairedRows.of(fit(draw(PLAIN))._fit, rows)
    assert paired.seen.tolist() == [0.0, 2.0, 5.0, 0.0, 0.0]
    assert paired.was(paired.improved).tolist() == [False] * 4 + [True]
    assert paired.after.tolist() == [1, 2, 3, 4, -1]
    assert paired.kept.tolist() == [0, 1, 2, 4]
    assert paired.year is None


class TestTooLittle:
    def reason(self, name, rows, model=None, **options):
        found = {one.name: one for one in (model or fit(rows, **options)).find_violations(rows)}
        assert found[name].p_value is None
        assert not found[name].found
        return found[name].reason["say"].rpartition(".")[2]

    def test_few_moves(self, plain):
        rows = plain[0].filter((pl.col("state_1") == pl.col("state_2")) | (pl.col("bridge") < 10))
        assert {self.reason(name, rows, plain[1]) for name in (FRAILTY, TREND, PAST)} == {"few_moves"}

    def test_bridges_seen_once(self, plain):
        rows = plain[0].with_columns(bridge_id=pl.int_range(pl.len()))
        assert self.reason(FRAILTY, rows) == "few_bridges"

    def test_few_years(self, plain):
        assert self.reason(TREND, plain[0].filter(pl.col("date_1") < 2002.0)) == "few_years"

    def test_a_date_that_is_a_covariate(self, plain):
        rows = plain[0].with_columns(year=pl.col("date_1") + pl.col("interval_years") / 2)
        assert self.reason(TREND, rows, covariates=["x", "year"]) == "no_information"

    def test_no_dates_and_no_visits(self, plain):
        rows = plain[0].drop("date_1", "visit_1")
        assert {one.name for one in plain[1].find_violations(rows)} == {FRAILTY}

    def test_few_improvements(self):
        rows = draw(replace(PLAIN, name="errors", error=0.05), 60)
        assert self.reason(ERRORS, rows) == "few_improvements"

    def test_short_histories(self):
        rows = draw(replace(PLAIN, name="errors", error=0.05)).filter(pl.col("visit_1") < 2)
        assert self.reason(IMPROVEMENTS, rows) == "few_judged"
        assert self.reason(PAST, rows.filter(pl.col("visit_1") < 1)) == "few_seen"

    def test_equal_intervals(self):
        rows = draw(Setting("ageing 5", 5.0, 8, ageing=0.03))
        assert self.reason(CLOCK, rows, covariates=["x", "age"], clock="start") == "same_intervals"
        assert self.reason(CLOCK, rows, covariates=["x", "age"]) == "small_change"

    def test_a_fit_that_is_not_certified(self, plain):
        rows, model = plain
        bad = replace(model._fit, certificate=replace(model._fit.certificate, verdict=Verdict.NOT_A_MAXIMUM))
        assert {one.reason["say"] for one in find_violations(bad, rows)} == {"check.untested.uncertified"}


def test_holm():
    tests = [Violation(name, 1.0, p) for name, p in (("a", 0.03), ("b", 0.01), ("c", 0.04))]
    found = adjust([*tests, Violation("d", reason=say("check.untested.few_years"))], 0.05)
    assert [one.name for one in found] == ["b", "a", "c", "d"]
    assert [one.adjusted for one in found] == pytest.approx([0.03, 0.06, 0.06, None])
    assert [one.found for one in found] == [True, False, False, False]
    assert found[0].to_dict()["found"]


def test_a_column_that_is_missing_is_named(plain):
    with pytest.raises(MissingColumns, match="interval_years"):
        plain[1].find_violations(plain[0].drop("interval_years"))


def test_a_blank_name_is_a_bridge_too(plain):
    rows = plain[0].with_columns(bridge_id=pl.when(pl.col("bridge") > 0).then(pl.col("bridge")))
    assert [one.p_value for one in plain[1].find_violations(rows)] == pytest.approx(
        [one.p_value for one in plain[1].find_violations(plain[0])]
    )


def test_class_weights_are_refused(plain):
    rows = plain[0]
    weighted = rekka.ExponentialHazardMarkovModel(covariates=["x"], class_weight="inverse_frequency")
    with pytest.raises(BadOption, match="class weights"):
        weighted.fit(rows, rows["state_2"]).find_violations(rows)


def test_a_level_that_improvements_alone_have_is_left_out():
    rows = draw(replace(PLAIN, name="improvements", improvements=0.03))
    kind = pl.when(pl.col("state_2") < pl.col("state_1")).then(pl.lit("odd"))
    kind = kind.otherwise(pl.when(pl.col("bridge") % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    rows = rows.with_columns(kind=kind)
    found = fit(rows, covariates=["x", "kind"], categories=["kind"]).find_violations(rows)
    assert {one.name for one in found} == {FRAILTY, TREND, PAST}


FIGURES = {
    ERRORS: {"back": 75.0, "back_expected": 21.4, "again": 47.0, "again_expected": 22.9, "share": 0.035},
    IMPROVEMENTS: {"stay": 63.0, "judged": 2500.0, "staying": 0.025},
    FRAILTY: {"fast": 206.0, "fast_expected": 180.0, "slow": 100.0, "slow_expected": 130.0},
    TREND: {"factor": 1 / 6, "low": 1 / 7.3, "high": 1 / 5, "first": 2000.1, "last": 2008.2},
    CLOCK: {"within": 0.2, "missed": 0.1},
    PAST: {"factor": 1.2, "low": 1.1, "high": 1.4, "years": 5.0},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_finding_in_words(name, lang):
    bare = {key: value for key, value in FIGURES[name].items() if key not in ("factor", "low", "high")}
    for figures in (FIGURES[name], bare) if name in (TREND, PAST) else (FIGURES[name],):
        test = Violation(name, 5.0, 1e-6, 1e-6, figures)
        (finding,) = list_contradicted("Pier", [test])
        assert (finding.code, finding.severity, finding.case) == (CODES[name], Severity.WARNING, "Pier")
        texts = finding.describe(load_words(lang))
        assert all(text.endswith((".", "。")) for text in texts[1:])


def test_a_trend_is_told_as_a_factor():
    (finding,) = list_contradicted("Pier", [Violation(TREND, -9.0, 1e-9, 1e-9, FIGURES[TREND])])
    told = "Rates of deterioration fell by a factor of 6 between 2000 and 2008 (95 %: 5 to 7.3)."
    assert finding.message == told
    assert "--trend common" in finding.remedy
    risen = FIGURES[TREND] | {"factor": 2.0, "low": 1.5, "high": 2.5}
    (finding,) = list_contradicted("Pier", [Violation(TREND, 9.0, 1e-9, 1e-9, risen)])
    assert "rose by a factor of 2 between 2000 and 2008 (95 %: 1.5 to 2.5)" in finding.message


def test_every_reason_has_words():
    values = {"least": 20, "least_years": 5.0, "least_judged": 100, "moved": 3, "bridges": 4, "years": 2.0}
    values |= {"rows": 3, "missed": 0.1, "improved": 12, "judged": 40, "share": 0.05}
    for lang in LANGUAGES:
        words = load_words(lang)
        keys = [key for key in words.texts if key.startswith("check.untested.")]
        assert len(keys) == 10
        for key in keys:
            assert words.format(say(key, **values))
