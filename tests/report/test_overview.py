"""The overview, and what a page knows of each member: every number is recomputed from the tables."""

import json
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from histories_table import make_inspections
from rekka.core.errors import DamagedFile
from rekka.core.language import say
from rekka.fleet.store import DETAILS
from rekka.report.backtests import load_backtests
from rekka.report.document import AsidePart, BacktestPart, BacktestYear, Document, TrendPart, TrustPart
from rekka.report.networks import MOST_KNOWN, NEXT, THERE, count_bridges
from rekka.report.overview import find_trust, list_components, make_overview, name_level
from rekka.report.report import Report, make_report
from rekka.report.statements import Wording, explain_backtest
from rekka.report.summarize import describe_trend
from rekka.report.text import load_words
from rekka.report.trust import CAUTION, DO_NOT_USE, FEW_EVENTS, GOOD, _judge_together, judge_all
from rekka.workflows.forecast import forecast_own_tables

CASES = ["Deck slab", "Pier"]
EN, JA = load_words("en"), load_words("ja")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    rekka.write_inventory(folder / "all", bridges=60, preset="plain", seed=4)
    table = pl.read_csv(folder / "all" / "inspections.csv").filter(pl.col("case").is_in(CASES))
    places = pl.read_csv(folder / "all" / "inventory.csv")["bridge_id"].unique().sort()
    located = pl.DataFrame({"bridge_id": places}).with_columns(
        Latitude=pl.lit(43.0) + pl.int_range(pl.len()) * 0.01, Longitude=pl.lit(-79.0)
    )
    table.join(located, on="bridge_id").write_csv(folder / "inspections.csv")
    return folder / "inspections.csv"


@pytest.fixture(scope="module")
def run(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("overview") / "run"
    study = rekka.compare(tables, methods=["zscore"], guard={"resamples": 2}, out=folder)
    assert forecast_own_tables(study, folder) is None
    return folder


@pytest.fixture(scope="module")
def document(run) -> Document:
    return make_report(run, calibrate=False).document


@pytest.fixture(scope="module")
def visits(tables):
    named = pl.read_csv(tables, try_parse_dates=True)
    return named.with_columns(state=pl.col("state").replace_strict({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})).sort(
        "date", maintain_order=True
    )


def test_each_member_has_the_ratings_that_were_found(document, visits):
    every = document.network.every
    found = {
        (case, bridge, member): own
        for (case, bridge, member), own in visits.group_by("case", "bridge_id", "member", maintain_order=True)
    }
    members = zip(every.case, every.bridge, every.member, every.past, every.state, every.seen, strict=True)
    for case, bridge, member, past, state, seen in members:
        own = found[every.cases[case], bridge, member]
        pairs = [one.split(":") for one in past.split(",")]
        assert [int(rating) for _, rating in pairs] == own["state"].to_list()
        years = [day.year + (day - date(day.year, 1, 1)).days / 365.25 for day in own["date"]]
        assert [float(year) for year, _ in pairs] == pytest.approx(years, abs=0.006)
        assert state == own["state"][-1]
        assert seen == own["date"][-1].isoformat()


def test_fans_are_quantiles_of_the_forecast(document, run):
    every = document.network.every
    years = pl.read_parquet(run / "forecast" / "years.parquet")
    rows = dict(years.group_by("case", "bridge_id", "member", maintain_order=True))
    for place in range(0, len(every.bridge), 7):
        own = rows[every.cases[every.case[place]], every.bridge[place], every.member[place]]
        for number, year in enumerate(every.fan_years):
            p = own.row(year)[own.columns.index("p_1") : own.columns.index("p_1") + 5]
            below = np.cumsum([value or 0.0 for value in p])
            states = [int(np.searchsorted(below, level - 1e-9) + 1) for level in (0.1, 0.5, 0.9)]
            assert every.fan[place][3 * number : 3 * number + 3] == "".join(map(str, states))


def test_ratios_compare_with_a_typical_member(document):
    every = document.network.every
    for case, name in enumerate(every.cases):
        model = next(one for one in document.models if one.case == name)
        slopes = {(one.state, one.term): one.estimate for one in model.coefficients}
        for number, covariate in enumerate(every.covariates):
            for place in [place for place, own in enumerate(every.case) if own == case][::9]:
                state, ratio = every.state[place], every.ratios[number][place]
                if state == 5:
                    continue
                away = every.values[number][place] - model.typical[covariate]
                expected = np.exp(slopes[state, covariate] * away)
                assert ratio == pytest.approx(expected, rel=2e-2)


def test_history_counts_what_had_been_found_by_each_year(document, visits):
    network = document.network
    keys = ["case", "bridge_id", "member"]
    for year in (one for one in network.history if one.case is None):
        last = visits.filter(pl.col("date").dt.year() <= year.year).group_by(keys, maintain_order=True).last()
        assert (year.members, year.reached) == (len(last), int((last["state"] >= 4).sum()))
        assert year.members >= MOST_KNOWN * network.members
    assert network.first_seen == str(visits["date"].min())
    assert network.last_seen == str(visits["date"].max())
    assert {one.case for one in network.history} == {None, *CASES}


def test_members_stand_in_the_tab_they_belong_to(document):
    every = document.network.every
    assert len(every.bridge) == document.network.members
    assert sum(tab == THERE for tab in every.tab) == document.network.there
    assert all((state >= 4) == (tab == THERE) for state, tab in zip(every.state, every.tab, strict=True))
    years = [
        median for median, tab in zip(every.median, every.tab, strict=True) if tab == NEXT and median is not None
    ]
    assert years == sorted(years)


def test_coordinates_of_the_table_are_kept(document):
    every = document.network.every
    assert set(every.longitude) == {-79.0}
    assert min(every.latitude) == 43.0
    assert len(set(every.latitude)) > 10


def test_bridges_are_counted_as_independent_members_of_each(document, run):
    details = pl.read_parquet(run / "forecast" / DETAILS)
    members = pl.read_parquet(run / "forecast" / "members.parquet")
    assert details["later"].to_list() == members["reached_10"].to_list()
    chance = 0.0
    for _, own in members.group_by("bridge_id"):
        chance += 1 - np.prod(1 - own["reached_10"].to_numpy())
    assert document.network.bridges_later == pytest.approx(chance)
    assert document.network.bridges == members["bridge_id"].n_unique()
    assert document.network.bridges_there == members.filter("there")["bridge_id"].n_unique()


def test_expected_bridges_are_the_same_to_the_last_bit_each_time():
    rng = np.random.default_rng(1)
    bridge = pl.Series("bridge_id", rng.integers(0, 1000, 9000)).cast(pl.String)
    details = pl.DataFrame({"there": rng.random(9000) < 0.1, "later": 0.3 * rng.random(9000)}).with_columns(bridge)
    assert len({count_bridges(details)["bridges_later"] for _ in range(40)}) == 1


@pytest.mark.parametrize("words", [EN, JA], ids=["en", "ja"])
@pytest.mark.parametrize("case", [None, "Pier"])
def test_the_first_screen_says_how_many_when_and_which(document, words, case):
    network, found = document.network, make_overview(document, words, case)
    years = network.of(case)
    there = network.there if case is None else network.there_by_case[case]
    assert [card.key for card in found.cards] == ["now", "soon", "later", "new", "trust"]
    start = "expected at the start of the forecast" if words is EN else "予測の起点での期待値"
    assert start in found.cards[0].detail
    now, soon, later, _, trust = found.cards
    assert now.value == f"{there:,}"
    assert soon.value == f"{years[5].reached:,.0f}"
    assert later.value == f"{years[10].reached:,.0f}"
    assert f"{years[10].predicted_low:,.0f}" in later.detail
    assert f"{years[10].predicted_high:,.0f}" in later.detail
    base = date.fromisoformat(network.base).year
    assert (soon.label, later.label) == (str(base + 5), str(base + 10))
    for number in (later.value, now.value, f"{years[0].members:,}", str(base + 10)):
        assert number in found.headline
    assert trust.level == find_trust(document, case).level
    assert trust.value == name_level(trust.level, words)
    assert found.trust
    assert found.actions
    assert len(found.first) == 10
    assert all(one.case == case for one in found.first if case is not None)
    risks = [one.median for one in found.first]
    assert risks == sorted(risks)


def test_components_have_their_counts(document):
    for row in list_components(document, EN):
        years = document.network.of(row.case)
        assert (row.members, row.soon) == (years[0].members, years[10])
        assert row.there == document.network.there_by_case[row.case]
        assert row.threshold == "d or worse"
        assert row.passage.start == 1


def test_without_a_forecast_the_page_says_what_is_missing(document):
    bare = document.model_copy(update={"network": None, "no_network": "there is no date"})
    found = make_overview(bare, EN)
    assert "rekka forecast" in " ".join(found.missing)
    assert "there is no date" in found.missing
    assert found.headline.startswith("There is a model for 2 of 2 components")
    assert [card.key for card in found.cards] == ["new", "trust"]
    assert found.cards[0].label == "from new until rated d or worse"
    assert list_components(bare, EN)[0].members is None


def test_tables_that_cannot_be_forecast_leave_a_reason(tmp_path):
    rows = draw_rows()
    table = tmp_path / "rows.csv"
    rows.with_columns(bridge_id=pl.format("B{}", pl.int_range(pl.len()) // 2 % 60)).write_csv(table)
    study = rekka.compare(table, methods=["zscore"], guard={"resamples": 2}, out=tmp_path / "run")
    why = forecast_own_tables(study, tmp_path / "run")
    assert why is not None
    assert "last" in why
    assert rekka.compare(rows, methods=["zscore"], guard={"resamples": 2}).plan.data.kind == "given"


# Trust


def change(document: Document, **updates) -> Document:
    """The document with some fields of its first answer, model and case changed."""
    answers, models, cases = list(document.answers), list(document.models), list(document.cases)
    for name, value in updates.items():
        kind, field = name.split("__")
        some = {"answer": answers, "model": models, "case": cases}[kind]
        some[0] = some[0].model_copy(update={field: value})
    return document.model_copy(update={"answers": tuple(answers), "models": tuple(models), "cases": tuple(cases)})


SOUND = {
    "answer__beats_persistence": "better",
    "answer__beats_no_covariates": "better",
    "answer__confirmed": True,
    "answer__accuracy": 0.7,
    "answer__persistence_accuracy": 0.6,
    "answer__log_loss": 0.5,
    "answer__no_covariates_log_loss": 0.6,
    "model__certified": True,
    "model__fit_test": None,
    "case__events_per_parameter": 20.0,
}


def with_backtests(document: Document, **more) -> Document:
    """A document without a network, each of whose components passed a backtest, or one with other figures."""
    parts = tuple(backtest_of(one.case, **{"found": (30, 30, 30, 30)} | more) for one in document.answers)
    return document.model_copy(update={"network": None, "backtests": parts})


@pytest.mark.parametrize(
    ("flaw", "level", "reason"),
    [
        ({}, GOOD, "good"),
        ({"answer__method": None}, DO_NOT_USE, "no_model"),
        ({"model__certified": False}, DO_NOT_USE, "not_certified"),
        ({"answer__beats_persistence": "worse"}, CAUTION, "less_accurate"),
        ({"answer__beats_no_covariates": "worse"}, DO_NOT_USE, "worse_no_covariates"),
        ({"answer__confirmed": False}, CAUTION, "not_confirmed"),
        ({"answer__accuracy": 0.58}, CAUTION, "no_change"),
        ({"answer__accuracy": 0.595}, GOOD, "good"),
        ({"answer__log_loss": 0.62}, CAUTION, "no_covariates"),
        ({"answer__log_loss": 0.605}, GOOD, "good"),
        ({"case__events_per_parameter": FEW_EVENTS - 0.1}, CAUTION, "few_events"),
    ],
)
def test_one_flaw_decides_the_trust_in_a_component(document, flaw, level, reason):
    sound = change(with_backtests(document), **{**SOUND, **flaw})
    found = judge_all(sound)[1]
    assert (found.level, found.reason["say"]) == (level, f"trust.reason.{reason}")
    for words in (EN, JA):
        assert words.format(found.reason)
        told = make_overview(sound.model_copy(update={"trust": (found.model_copy(update={"case": None}),)}), words)
        assert told.trust
        assert (level == GOOD) == (not told.actions)


def test_the_gravest_reason_decides_and_the_others_are_listed(document):
    flaws = {"answer__confirmed": False, "model__certified": False, "case__events_per_parameter": 1.0}
    found = judge_all(change(with_backtests(document), **{**SOUND, **flaws}))[1]
    assert found.reason["say"] == "trust.reason.not_certified"
    assert [one["say"] for one in found.others] == ["trust.reason.not_confirmed", "trust.reason.few_events"]


def test_all_together_are_as_good_as_the_worst_that_holds_many_members(document):
    trust = judge_all(document)
    assert trust[0].case is None
    assert [one.case for one in trust[1:]] == [one.case for one in document.answers]
    levels = [one.level for one in trust[1:]]
    worst = next(level for level in (DO_NOT_USE, CAUTION, GOOD) if level in levels)
    assert trust[0].level == worst


@pytest.mark.parametrize(
    ("members", "level", "sentence"),
    [
        (
            {"a": 90, "b": 6, "c": 4},
            CAUTION,
            "Caution applies to 1 of 3 components. The largest of them, b: why b",
        ),
        ({"a": 90, "b": 10}, CAUTION, "Caution applies to 1 of 2 components. The largest of them, b: why b"),
        (
            {"a": 90, "c": 10},
            DO_NOT_USE,
            "There is no forecast to use for 1 of 2 components. The largest of them, c: why c",
        ),
        ({"b": 10}, CAUTION, "Only b has a forecast: why b"),
        ({}, DO_NOT_USE, "There is no forecast to use for 1 of 3 components. The largest of them, c: why c"),
    ],
)
def test_all_together_are_judged_by_the_components_in_the_totals(members, level, sentence):
    levels = {"a": GOOD, "b": CAUTION, "c": DO_NOT_USE}
    each = [
        TrustPart(case=name, level=own, reason=say("said.plain", text=f"why {name}"))
        for name, own in levels.items()
    ]
    year = [SimpleNamespace(case=name, members=number) for name, number in members.items()]
    found = _judge_together(each, SimpleNamespace(of_each=lambda first: year))
    assert found.level == level
    assert EN.format(found.reason) == sentence


def backtest_of(case: str, found=(20, 22, 30, 18), **more) -> BacktestPart:
    years = tuple(
        BacktestYear(year=2009 + n, visits=100, observed=seen, expected=30.0, predicted_low=25, predicted_high=35)
        for n, seen in enumerate(found)
    )
    known = {
        "model": None,
        "score": 0.2,
        "no_change_score": 0.25,
        "difference": -0.05,
        "low": -0.06,
        "high": -0.04,
    } | more
    return BacktestPart(
        case=case, until="2008-12-31", certified=True, visits=400, bridges=90, horizon=4.0, threshold=4,
        years=years, **known,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "level", "reason", "said"),
    [
        ({}, CAUTION, "missed_high", "Forecasts of 2009 to 2012 were too high in 3 of 4 years"),
        ({"found": (20, 30, 30)}, GOOD, "good", "The fit is a certified maximum"),  # one year of three is chance
        ({"found": (20, 30, 30, 22)}, CAUTION, "missed_high", "Forecasts of 2009 to 2012 were too high in 2 of 4"),
        ({"found": (20, 40)}, CAUTION, "missed_low", "Forecasts of 2009 to 2010 were too low in 1 of 2"),
        ({"found": (20, 22, *[30] * 6)}, GOOD, "good", "The fit is a certified maximum"),
        ({"low": 0.01, "high": 0.03}, DO_NOT_USE, "worse_backtest", "Fitted up to 2008-12-31"),
    ],
)
def test_a_backtest_counts(document, scores, level, reason, said):
    sound = change(document.model_copy(update={"network": None}), **SOUND)
    part = backtest_of(sound.answers[0].case, **scores)
    found = judge_all(sound.model_copy(update={"backtests": (part,)}))[1]
    assert (found.level, found.reason["say"]) == (level, f"trust.reason.{reason}")
    assert EN.format(found.reason).startswith(said)


@pytest.mark.parametrize(
    ("high", "level", "reasons"),
    [(-0.04, CAUTION, ["less_accurate"]), (0.01, DO_NOT_USE, ["worse_no_change", "backtest_not_better"])],
)
def test_a_lower_accuracy_counts_less_than_a_backtest_that_was_passed(document, high, level, reasons):
    """What to do about a lower accuracy is a backtest, which has to count once it is there; nothing is said twice."""
    flaws = {"answer__beats_persistence": "worse", "answer__accuracy": 0.5}
    sound = change(document.model_copy(update={"network": None}), **{**SOUND, **flaws})
    part = backtest_of(sound.answers[0].case, found=(30, 30, 30, 30), high=high)
    found = judge_all(sound.model_copy(update={"backtests": (part,)}))[1]
    assert found.level == level
    assert [one["say"] for one in (found.reason, *found.others)] == [f"trust.reason.{name}" for name in reasons]
    assert all(words.format(found.reason) for words in (EN, JA))


def test_what_is_shown_to_be_worse_is_not_said_to_be_chance_too(document):
    flaws = {"answer__beats_no_covariates": "worse", "answer__log_loss": 0.9}
    found = judge_all(change(with_backtests(document), **{**SOUND, **flaws}))[1]
    assert [one["say"] for one in (found.reason, *found.others)] == ["trust.reason.worse_no_covariates"]


def test_without_a_backtest_nothing_is_good(document):
    sound = change(document.model_copy(update={"network": None}), **SOUND)
    found = judge_all(sound)[1]
    assert (found.level, found.reason["say"], found.others) == (CAUTION, "trust.reason.not_tested", ())
    bare = judge_all(change(sound, answer__confirmed=False, answer__scored_on=None))[1]
    assert (bare.reason["say"], bare.others) == ("trust.reason.untested", ())  # and not twice
    told = make_overview(sound.model_copy(update={"trust": (found.model_copy(update={"case": None}),)}), EN)
    assert any("rekka backtest TABLE --models auto --out RUN/backtest" in action for action in told.actions)


@pytest.mark.parametrize(
    ("scores", "level", "reasons"),
    [
        ({"high": -0.01}, CAUTION, ["other_model", "not_tested"]),
        ({"high": 0.01}, CAUTION, ["not_tested"]),
        ({"used_score": 0.24, "used_low": -0.02, "used_high": -0.01}, CAUTION, ["better_model"]),
        ({"used_score": 0.24, "used_low": -0.02, "used_high": 0.01}, CAUTION, ["better_model", "backtest_not_better"]),
        ({"used_score": 0.28, "used_low": 0.01, "used_high": 0.05}, DO_NOT_USE,
         ["worse_backtest", "better_model"]),
        ({"used_score": 0.19, "used_low": -0.07, "used_high": -0.05}, GOOD, ["good"]),
    ],
)  # fmt: skip
def test_a_backtest_of_another_model_counts_by_the_scores_of_the_one_used(document, scores, level, reasons):
    sound = change(document.model_copy(update={"network": None}), **SOUND)
    part = backtest_of(sound.answers[0].case, model="improvements+trend", of_this=False, **scores)
    found = judge_all(sound.model_copy(update={"backtests": (part,)}))[1]
    assert found.level == level
    assert [one["say"] for one in (found.reason, *found.others)] == [f"trust.reason.{name}" for name in reasons]
    assert all(words.format(found.reason) for words in (EN, JA))
    told = str(explain_backtest(part, Wording(EN)))
    assert told.endswith(
        "This tested another model (small repairs, a trend) than the one that forecasts in this report."
    )


def test_a_backtest_in_the_run_folder_is_read(tables, run):
    found = rekka.backtest(
        tables, until="2018-12-31", draws=100, test_fit=False, reading=rekka.ReadingOptions(), out=run / "backtest"
    )
    parts = {one.case: one for one in load_backtests(run)}
    assert all(one.of_this for one in parts.values())
    others = load_backtests(run, dict.fromkeys(CASES, "errors"))
    assert not any(one.of_this for one in others)
    assert set(parts) == set(CASES)
    for case, one in parts.items():
        scores = found.scores.filter(case=case, by="all", score="rps")
        row = scores.filter(forecaster="model", less="persistence").row(0, named=True)
        assert (one.difference, one.low, one.high) == (row["mean"], row["low"], row["high"])
        years = found.totals.filter(pl.col("or_worse"), case=case, by="year", state=4)
        assert [year.observed for year in one.years] == years["observed"].to_list()
        assert one.visits == years["visits"].sum()
    (run / "backtest" / "backtest.json").write_text(json.dumps({"cases": [{}]}))
    with pytest.raises(DamagedFile, match="is no backtest of rekka"):
        load_backtests(run)


def test_a_verdict_is_plain_data():
    part = TrustPart(case="Pier", level="caution", reason={"say": "trust.reason.apart", "share": "30"})
    assert TrustPart.model_validate_json(part.model_dump_json()) == part


def test_members_that_are_not_forecast_are_counted_under_the_title(document):
    known = document.network
    assert not any("not forecast" in one for one in make_overview(document, EN).facts)
    given = (("set aside", 1_200, "members"), ("set aside", 34, "members"), ("set aside", 7, "records"))
    aside = tuple(
        AsidePart(kind=kind, case=None, reason=f"reason {count}", count=count, what=what)
        for kind, count, what in (*given, ("remark", 900, "members"))
    )
    changed = document.model_copy(update={"network": known.model_copy(update={"aside": aside})})
    assert make_overview(changed, EN).facts[1] == "1,234 not forecast"
    assert make_overview(changed, JA).facts[1] == "予測していない部材：1,234"
    assert not any("not forecast" in one for one in make_overview(changed, EN, CASES[0]).facts)


def test_a_trend_of_the_model_is_under_the_headline(document):
    assert make_overview(document, EN).notes == ()
    falling = TrendPart(change=-0.2, low=-0.25, high=-0.15, until=2013)
    rising = TrendPart(change=0.034, low=-0.01, high=0.08, until=2012)
    trends = dict(zip(CASES, (falling, rising), strict=True))
    models = tuple(one.model_copy(update={"trend": trends[one.case]}) for one in document.models)
    changed = Document.from_json(document.model_copy(update={"models": models}).to_json(), "report.json")
    own = "Hazards fell by 20% a year until 2013; the forecast keeps those of the last year."
    assert make_overview(changed, EN, CASES[0]).notes == (own,)
    assert make_overview(changed, EN).notes == (
        "Hazards of Deck slab fell by 20% a year until 2013, of Pier rose by 3.4% a year until 2012 (perhaps not at "
        "all); the forecast keeps those of the last year.",
    )
    assert "年20%の割合で低下" in make_overview(changed, JA, CASES[0]).notes[0]
    alone = changed.model_copy(update={"cases": changed.cases[:1], "models": changed.models[:1]})
    assert make_overview(alone, EN).notes == (own,)
    assert f'<p class="prose">{own}</p>' in Report(changed, "en").html
    assert own in Report(alone, "en").to_markdown()


def test_the_trend_of_a_report_is_that_of_the_model():
    rows = rekka.read_transitions(make_inspections(errors=0.0), rules={"upward": "keep"}).frame
    found = rekka.fit_components(rows, covariates=[], trend="common")
    (model,) = found.models.values()
    estimate = {one.name: one for one in model.records_.estimates(0.95)}["trend"]
    trend = describe_trend(model.records_, 0.95)
    assert trend.until == 2014
    assert trend.change == pytest.approx(np.exp(estimate.value) - 1)
    assert trend.low < trend.change < trend.high
    (plain,) = rekka.fit_components(rows, covariates=[], errors="adjacent-common").models.values()
    assert describe_trend(plain.records_, 0.95) is None


def test_a_model_with_elements_is_not_advised_to_add_them(document):
    reason = {"say": "trust.reason.missed_high", "missed": 3, "years": 5, "first": 2009, "last": 2013}
    trust = tuple(TrustPart(case=case, level=CAUTION, reason=reason, others=()) for case in (None, *CASES))
    backtests = with_backtests(document).backtests
    plain = document.model_copy(update={"trust": trust, "backtests": backtests})
    assert "--models auto" in make_overview(plain, EN).actions[-1]
    models = tuple(one.model_copy(update={"elements": "trend"}) for one in document.models)
    extended = plain.model_copy(update={"models": models})
    for case in (None, CASES[0]):
        assert make_overview(extended, EN, case).actions[-1].startswith("The forecasts were too high: take their")
        assert "--models" not in make_overview(extended, JA, case).actions[-1]


def test_a_page_without_a_backtest_says_how_to_make_one(document):
    def advises(found: Document) -> bool:
        trust = judge_all(found)
        return "then rekka report RUN" in " ".join(
            make_overview(found.model_copy(update={"trust": trust}), EN).actions
        )

    assert document.network is not None
    assert document.network.base is not None
    assert advises(document.model_copy(update={"backtests": ()}))
    assert not advises(with_backtests(document).model_copy(update={"network": document.network}))
