import json
from dataclasses import asdict

import polars as pl
import pytest

from rekka.core.errors import MissingColumns
from rekka.study.hypotheses import CLAIMS, Support, judge_hypotheses


def study(table, preset="paper", train=None, **columns):
    """Trials of {case: {method: accuracy, or None where it did not converge}}."""
    rows = [
        {"preset": preset, "case": case, "method": method, "converged": value is not None, "accuracy": value}
        | ({"train": train[case]} if train else {})
        | {name: values.get((case, method)) for name, values in columns.items()}
        for case, trials in table.items()
        for method, value in trials.items()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def judge(code, trials):
    return next(h for h in judge_hypotheses(trials) if h.code == code)


def test_five_for_each_preset_as_plain_data():
    paper = study({"pier": {"zscore": 0.5, "max": None}})
    judged = judge_hypotheses(pl.concat([paper, paper.with_columns(preset=pl.lit("exact"))]))
    assert [(h.preset, h.code) for h in judged] == [(p, c) for p in ("paper", "exact") for c in CLAIMS]
    assert [h.claim for h in judged[:5]] == list(CLAIMS.values())
    assert json.loads(json.dumps([asdict(h) for h in judged]))
    assert judge_hypotheses(paper.clear()) == ()


def test_what_every_study_must_have():
    with pytest.raises(MissingColumns, match="converged is not in the table of trials"):
        judge_hypotheses(study({"pier": {"zscore": 0.5}}).drop("converged", "eligible", strict=False))


def test_a_trial_without_a_maximum_has_not_converged():
    """Under the exact preset Newton's own word does not count: the certificate does."""
    trials = study({"pier": {"zscore": 0.5, "max": 0.5}}).with_columns(eligible=pl.col("method") == "max")
    first = judge_hypotheses(trials)[0]
    assert "zscore converges in 0 of 1 case" in first.evidence


@pytest.mark.parametrize(
    ("zscore", "max_", "boxcox", "verdict"),
    [
        (0.5, None, None, Support.SUPPORTED),
        (0.5, None, 0.5, Support.PARTLY),
        (0.5, 0.5, 0.5, Support.NOT),
        (None, None, None, Support.NOT),
    ],
)
def test_h1(zscore, max_, boxcox, verdict):
    trials = study({"pier": dict.fromkeys(("zscore", "max", "boxcox"), 0.5),
                    "deck": {"zscore": zscore, "max": max_, "boxcox": boxcox}})  # fmt: skip
    assert judge("H1", trials).verdict is verdict


def test_h1_in_words():
    judged = judge("H1", study({"pier": {"zscore": 0.5, "max": None}, "deck": {"zscore": 0.5, "max": 0.5}}))
    assert judged.evidence == "zscore converges in 2 of 2 cases. Failures of the others: max in 1 case (pier)."
    assert judged.figures == {"cases": 2, "failed": {"zscore": [], "max": ["pier"]}}
    for methods in ({"max": 0.5}, {"zscore": 0.5}):
        judged = judge("H1", study({"pier": methods}))
        assert judged.verdict is Support.OPEN
        assert judged.evidence.startswith(f"The methods tried are {next(iter(methods))}: needed are")


@pytest.mark.parametrize(
    ("zscore", "boxcox", "verdict"),
    [(0.49, 0.5, Support.SUPPORTED), (0.50, 0.52, Support.PARTLY), (0.48, None, Support.NOT)],
)
def test_h2(zscore, boxcox, verdict):
    trials = study(
        {"pier": {"max": 0.5, "zscore": zscore, "boxcox": boxcox}, "deck": {"max": 0.9, "zscore": None}}
    )
    assert judge("H2", trials).verdict is verdict


def test_h2_in_words():
    judged = judge("H2", study({"pier": {"max": 0.5, "zscore": 0.495, "boxcox": 0.53}}))
    assert judged.evidence == (
        "Within a case, accuracies of methods that converged differ by at most 0.0350 (pier), those of the affine "
        "methods alone by at most 0.0050 (pier); small is 0.01."
    )
    others = study({"pier": {"log": 0.5, "boxcox": 0.53}})
    assert judge("H2", others).verdict is Support.NOT
    assert "affine" not in judge("H2", others).figures
    for few in (study({"pier": {"max": 0.5, "zscore": None}}), study({"pier": {"max": 0.5}}).drop("accuracy")):
        assert judge("H2", few).verdict is Support.OPEN


def timed(fastest, worse):
    """Two cases with Box-Cox; in the first it is fast and on the floor."""
    table = {case: {"zscore": 0.5, "max": 0.5, "boxcox": 0.5} for case in ("pier", "deck")}
    table["road"] = {"zscore": 0.5, "boxcox": None}
    seconds = {(case, method): 1.0 for case in table for method in ("zscore", "max")}
    loss = {(case, "zscore"): 2.0 for case in table} | {(case, "max"): 2.5 for case in table}
    seconds |= {("pier", "boxcox"): 0.1, ("deck", "boxcox"): 0.1 if fastest else 3.0}
    loss |= {("pier", "boxcox"): 14.0, ("deck", "boxcox"): worse}
    return study(table, seconds=seconds, log_loss=loss)


@pytest.mark.parametrize(
    ("fastest", "worse", "verdict"),
    [
        (True, 3.0, Support.SUPPORTED),
        (True, 2.9, Support.PARTLY),
        (False, 14.0, Support.PARTLY),
        (False, None, Support.PARTLY),
        (True, None, Support.SUPPORTED),  # of the one case that can be judged
    ],
)
def test_h3(fastest, worse, verdict):
    assert judge("H3", timed(fastest, worse)).verdict is verdict


def test_h3_in_words():
    judged = judge("H3", timed(False, None))
    assert judged.evidence == (
        "boxcox converged beside another method in 2 cases (pier, deck): it is the fastest in 1 case (pier), its log "
        "loss at least 1.5 times the best alternative in 1 case (pier), both in 1. Log losses are missing in 1 case "
        "(deck)."
    )
    assert judge("H3", timed(False, 2.0).filter(case="deck")).verdict is Support.NOT
    assert judge("H3", timed(True, None).filter(case="deck")).verdict is Support.OPEN
    assert judge("H3", timed(True, 3.0).filter(case="road")).verdict is Support.OPEN
    assert judge("H3", timed(True, 3.0).drop("seconds")).verdict is Support.OPEN
    assert judge("H3", timed(True, 3.0).drop("log_loss")).verdict is Support.OPEN


@pytest.mark.parametrize(("count", "verdict"), [(3, Support.SUPPORTED), (2, Support.NOT), (0, Support.NOT)])
def test_h4(count, verdict):
    cases = {name: {"zscore": 0.5, "max": 0.5} for name in "abcd"}
    selected = {(name, m): m == "zscore" and i < count for i, name in enumerate(cases) for m in ("zscore", "max")}
    judged = judge("H4", study(cases, selected=selected))
    assert judged.verdict is verdict
    assert judged.evidence == f"zscore is selected in {count} of 4 cases."


def test_h4_needs_zscore_and_a_selection():
    assert judge("H4", study({"pier": {"max": 0.5}})).evidence == "zscore was not tried."
    judged = judge("H4", study({"pier": {"zscore": 0.5}}))
    assert judged.verdict is Support.OPEN
    assert "mark_selected" in judged.evidence


SIZES = {"slope": 27, "long": 86, "edge": 100, "deck": 1491}


@pytest.mark.parametrize(
    ("slope", "long", "deck", "verdict"),
    [
        (None, None, 0.5, Support.SUPPORTED),
        (0.5, None, 0.5, Support.PARTLY),
        (None, None, None, Support.NOT),
        (0.5, 0.5, 0.5, Support.NOT),
    ],
)
def test_h5(slope, long, deck, verdict):
    table = {"slope": {"zscore": 0.5, "max": slope}, "long": {"zscore": 0.5, "max": long},
             "edge": {"zscore": None, "max": None}, "deck": {"zscore": 0.5, "max": deck}}  # fmt: skip
    judged = judge("H5", study(table, train=SIZES))
    assert judged.verdict is verdict
    assert judged.figures["small_cases"] == ["slope", "long"]


def test_h5_in_words():
    table = {"slope": {"zscore": 0.5, "max": 0.5}, "long": {"zscore": 0.5, "max": None}, "deck": {"zscore": 0.5}}
    judged = judge("H5", study(table, train=SIZES))
    assert judged.evidence == (
        "1 of 4 trials (25%) failed in 2 cases under 100 training rows, 0 of 1 trial (0%) in 1 case over 500. No trial "
        "failed in slope (27 rows): small as it is, such a case does not show it."
    )
    for trials in (study({"slope": {"zscore": 0.5}}, train=SIZES), study({"slope": {"zscore": 0.5}})):
        assert judge("H5", trials).verdict is Support.OPEN
    assert judge("H5", study({"slope": {"zscore": 0.5}}, train=SIZES)).evidence == (
        "There is 1 case under 100 training rows and 0 over 500: both kinds are needed."
    )


@pytest.mark.parametrize(("rows", "open_"), [((99, 501), False), ((100, 501), True), ((99, 500), True)])
def test_h5_counts_cases_beyond_both_limits(rows, open_):
    small, large = rows
    trials = study({"a": {"zscore": None}, "b": {"zscore": 0.5}}, train={"a": small, "b": large})
    assert (judge("H5", trials).verdict is Support.OPEN) is open_


def test_h3_a_tie_is_not_the_fastest():
    table = {"pier": {"boxcox": 0.5, "zscore": 0.5}}
    times = {("pier", "boxcox"): 1.0, ("pier", "zscore"): 1.0}
    found = judge("H3", study(table, seconds=times, log_loss=dict.fromkeys(times, 1.0)))
    assert found.figures["fastest"] == []


def test_h2_a_difference_of_the_limit_is_small():
    limit = judge("H2", study({"pier": {"max": 0.5, "zscore": 0.5}})).figures["limit"]
    for more, verdict in ((limit, Support.SUPPORTED), (limit + 1e-6, Support.NOT)):
        assert judge("H2", study({"pier": {"max": 0.5, "boxcox": 0.5 + more}})).verdict is verdict
