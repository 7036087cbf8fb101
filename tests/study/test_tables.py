import math

import polars as pl
import pytest

from rekka.core.errors import BadOption, BadValues, MissingColumns
from rekka.study.tables import (
    MATERIALLY_WORSE,
    Cause,
    mark_selected,
    tabulate_agreement,
    tabulate_floor,
    tabulate_methods,
    tabulate_presets,
    tabulate_selection,
)
from rekka.study.trial import AT_MAXIMUM, Status


def trial(case, method, accuracy=None, seconds=None, preset="paper", **values):
    """A trial as the study writes it; one without an accuracy did not converge."""
    ran = accuracy is not None
    basic = {
        "preset": preset, "case": case, "method": method, "status": "converged" if ran else "stopped", "reason": None,
        "converged": ran, "certified": None, "eligible": ran, "accuracy": accuracy, "log_loss": None,
        "macro_recall": None, "seconds": seconds, "iterations": None, "evaluations": None, "log_likelihood": None,
        "train": 500, "maximum_exists": None, "shortfall": None, "at_floor": None, "scored": None,
    }  # fmt: skip
    assert values.keys() <= basic.keys()
    return basic | values


def frame(*trials):
    return pl.DataFrame(trials, infer_schema_length=None)


def why(*trials, cost="seconds"):
    table = tabulate_selection(mark_selected(frame(*trials), cost))
    assert len(table) == 1
    return table["why"].item()


class TestMarkSelected:
    def test_each_preset_and_case_by_itself(self):
        trials = frame(
            trial("pier", "max", 0.5, 2.0, evaluations=10),
            trial("deck", "max", 0.5, 1.0, evaluations=10),
            trial("pier", "zscore", 0.5, 1.0, evaluations=10),
            trial("pier", "max", 0.5, 1.0, preset="exact", evaluations=6),
            trial("pier", "zscore", 0.5, 2.0, preset="exact", evaluations=6),
        )
        marked = mark_selected(trials, "seconds")
        assert marked["selected"].to_list() == [False, True, True, True, False]
        assert marked.drop("selected", "cost").equals(trials)
        marked = mark_selected(trials, {"paper": "seconds", "exact": "evaluations"})
        assert marked["selected"].to_list() == [False, True, True, True, True]
        assert marked["cost"].to_list() == ["seconds"] * 3 + ["evaluations"] * 2

    def test_only_what_is_eligible_and_can_be_compared(self):
        trials = frame(
            trial("pier", "max", 0.9, 0.1, eligible=False),
            trial("pier", "minmax", math.nan, 0.1),
            trial("pier", "zscore", 0.5, 1.0),
            trial("pier", "boxcox"),
        )
        assert mark_selected(trials, "seconds")["selected"].to_list() == [False, False, True, False]

    def test_what_is_missing_is_named(self):
        trials = frame(trial("pier", "max", 0.5, 2.0))
        with pytest.raises(MissingColumns, match="eligible is not in the table of trials"):
            mark_selected(trials.drop("eligible"), "seconds")
        with pytest.raises(MissingColumns, match="preset is not in"):
            mark_selected(trials.drop("preset"), "seconds")
        with pytest.raises(BadOption, match="cost of the preset paper is 'time'; it can be seconds, evaluations"):
            mark_selected(trials, "time")
        with pytest.raises(BadOption, match="cost of the preset paper is 'none'"):
            mark_selected(trials, {"exact": "evaluations"})
        with pytest.raises(BadValues, match="paper, pier, max is in the table of trials more than once"):
            mark_selected(pl.concat([trials, trials]), "seconds")

    def test_an_empty_table_stays_empty(self):
        trials = mark_selected(frame(trial("pier", "max", 0.5, 2.0)).clear(), "seconds")
        assert trials["selected"].dtype == pl.Boolean
        for table in (tabulate_selection, tabulate_methods, tabulate_agreement, tabulate_presets, tabulate_floor):
            assert table(trials).is_empty()


class TestWhy:
    def test_nothing_converged(self):
        assert why(trial("pier", "max"), trial("pier", "zscore")) == "none: no method converged"

    def test_nothing_eligible(self):
        rows = [trial("pier", m, 0.5, 1.0, eligible=False) for m in ("max", "zscore")]
        assert why(*rows) == "none: no fit that converged is eligible"
        rows = [row | {"maximum_exists": False} for row in rows]
        assert why(*rows) == "none: the likelihood has no finite maximum"

    def test_nothing_scored(self):
        row = trial("pier", "max", math.nan, 1.0)
        assert why(row) == "none: no confirmation row could be scored"

    def test_one_alone(self):
        rows = [trial("pier", "max"), trial("pier", "zscore", 0.6069, 0.126)]
        assert why(*rows) == "zscore: the only method that converged (0.6069, 0.126 s)"
        rows[0] = trial("pier", "max", 0.7, 0.1, eligible=False)
        assert why(*rows) == "zscore: the only method that is eligible (0.6069, 0.126 s)"

    @pytest.mark.parametrize(
        ("max_", "minmax", "sentence"),
        [
            (0.6665, 0.6665, "as accurate as every other (0.6665) at the lowest cost, 0.26"),
            (0.6665, 0.6000, "none is more accurate (0.6665), at the lowest cost, 0.26"),
            (0.5000, 0.6000, "the most accurate (0.6665) at the lowest cost, 0.26"),
        ],
    )
    def test_one_that_beats_the_others(self, max_, minmax, sentence):
        others = [trial("pier", "max", max_, 0.408), trial("pier", "minmax", minmax, 0.498)]
        assert why(*others, trial("pier", "zscore", 0.6665, 0.26)) == f"zscore: {sentence}0 s"

    def test_a_trade(self):
        rows = [trial("pier", "boxcox", 0.3964, 0.110), trial("pier", "zscore", 0.3927, 0.105)]
        assert why(*rows) == "zscore is cheaper (0.105 s), boxcox more accurate (0.3964)"
        assert (
            why(*rows, trial("pier", "log", 0.5, 0.0007))
            == "log: the most accurate (0.5000) at the lowest cost, 0.0007 s"
        )
        assert why(*rows, trial("pier", "log", 0.39, 0.01)) == (
            "from the cheapest to the most accurate: log (0.01 s, 0.3900), zscore (0.105 s, 0.3927), "
            "boxcox (0.110 s, 0.3964)"
        )

    def test_rows_that_do_not_determine_the_coefficients(self):
        row = trial("pier", "zscore", 0.5, status=Status.NOT_DETERMINED, maximum_exists=True) | {"eligible": False}
        assert why(row) == "none: the rows do not determine all coefficients"

    def test_affine_methods_that_tie_are_one_model(self):
        rows = [trial("pier", m, 0.6665, 1.0, evaluations=6) for m in ("max", "minmax", "zscore")]
        one = "max, minmax and zscore tie at 0.6665 and 6 evaluations"
        assert why(*rows, cost="evaluations") == f"{one}: they are one model"
        rows.append(trial("pier", "boxcox", 0.67, 1.0, evaluations=7))
        assert why(*rows, cost="evaluations") == (
            "max, minmax and zscore (one model) are cheaper (6 evaluations), boxcox more accurate (0.6700)"
        )
        rows[-1] = rows[-1] | {"accuracy": 0.6665, "evaluations": 6}
        assert why(*rows, cost="evaluations") == (
            "max, minmax, zscore and boxcox tie at 0.6665 and 6 evaluations: of these max, minmax and zscore are one model"
        )


def test_selection_table_counts():
    trials = frame(trial("pier", "zscore", 0.5, 1.0), trial("pier", "max", 0.5, 1.0), trial("pier", "boxcox"),
                   trial("deck", "zscore"))  # fmt: skip
    table = tabulate_selection(mark_selected(trials, "seconds"))
    assert table["case"].to_list() == ["pier", "deck"]
    assert table["selected"].to_list() == [["zscore", "max"], []]
    assert table.select("eligible", "trials").rows() == [(2, 3), (0, 1)]
    with pytest.raises(MissingColumns, match="selected, cost are not in the table of trials"):
        tabulate_selection(trials)


def test_method_table():
    trials = frame(
        trial("a", "zscore", 0.5, 1.0, iterations=10, at_floor=1, scored=100, certified=True),
        trial("b", "zscore", 0.7, 2.0, iterations=13, at_floor=0, scored=300, certified=False),
        trial("c", "zscore", seconds=99.0, iterations=500, at_floor=50, scored=50),
        trial("c", "boxcox"),
        trial("d", "zscore", math.nan, 4.0, scored=0, at_floor=0),
        trial("d", "zscore", 0.1, 9.0, preset="exact"),
    )
    table = tabulate_methods(mark_selected(trials, "seconds"))
    assert table.select("preset", "method").rows() == [
        ("paper", "zscore"),
        ("paper", "boxcox"),
        ("exact", "zscore"),
    ]
    first, failed, bare = table.drop("preset", "method").rows(named=True)
    assert first == {
        "trials": 4, "converged": 3, "certified": 1, "selected": 2, "mean_accuracy": 0.6, "median_seconds_low": 2.0,
        "median_seconds": 2.0, "median_iterations": 11.5, "at_floor_share": 1 / 400,
    }  # fmt: skip
    assert failed == dict.fromkeys(first) | {"trials": 1, "converged": 0, "selected": 0}
    assert (bare["median_seconds"], bare["at_floor_share"], bare["certified"]) == (9.0, None, None)
    short = mark_selected(trials, "seconds").drop("certified", "iterations", "at_floor", "scored")
    assert tabulate_methods(short).columns == table.columns


@pytest.mark.parametrize(("seconds", "low", "usual"), [([3.0, 1.0], 1.0, 2.0), ([5.0, 1.0, 3.0], 3.0, 3.0)])
def test_low_and_usual_medians(seconds, low, usual):
    trials = frame(*(trial(str(i), "zscore", 0.5, s) for i, s in enumerate(seconds)))
    table = tabulate_methods(mark_selected(trials, "seconds"))
    assert table.select("median_seconds_low", "median_seconds").row(0) == (low, usual)


def test_agreement_names_who_stopped_short():
    def fit(case, method, value, **values):
        return trial(case, method, log_likelihood=value, **values)

    trials = frame(
        fit("a", "max", -100.96, maximum_exists=True), fit("a", "minmax", -100.4, maximum_exists=True),
        fit("a", "zscore", -100.0), fit("a", "boxcox", -90.0),
        fit("b", "max", -50.0), fit("b", "zscore", -50.0 - 1e-8), fit("b", "minmax", math.nan),
        fit("c", "max", None), fit("c", "zscore", -10.0, maximum_exists=False), fit("c", "boxcox", -9.0),
        fit("c", "minmax", -10.0),
    )  # fmt: skip
    a, b, c = tabulate_agreement(trials).rows(named=True)  # one fit alone has nothing to agree with
    assert a["methods"] == ["max", "minmax", "zscore"]
    assert a["spread"] == pytest.approx(0.96)
    assert (a["agree"], a["maximum_exists"]) == (False, True)
    assert [(s["method"], round(s["gap"], 2)) for s in a["short"]] == [("max", 0.96), ("minmax", 0.4)]
    assert (b["methods"], b["agree"], b["short"], b["maximum_exists"]) == (["max", "zscore"], True, [], None)
    assert (c["methods"], c["agree"], c["maximum_exists"]) == (["zscore", "minmax"], True, False)


CERTIFIED = {"accuracy": 0.5, "certified": True, "maximum_exists": True, "log_likelihood": -100.0, "at_floor": 0}
AT_THE_TOP = {"accuracy": 0.5, "log_likelihood": -100.0, "at_floor": 0}


@pytest.mark.parametrize(
    ("paper", "exact", "cause"),
    [
        ({}, {}, Cause.NONE),
        ({"log_likelihood": -100 - 0.9 * AT_MAXIMUM}, {}, Cause.NONE),
        ({"log_likelihood": -100 - 1.1 * AT_MAXIMUM}, {}, Cause.SHORT),
        ({"log_likelihood": -100.5, "at_floor": 3}, {"at_floor": 3}, Cause.SHORT),  # so it is at the maximum
        ({"log_likelihood": -900.0, "at_floor": 40}, {}, Cause.FLOOR),
        ({"log_likelihood": -math.inf, "at_floor": 40}, {}, Cause.FLOOR),  # below any number
        ({"accuracy": None, "converged": False}, {}, Cause.FAILURE),
        ({"accuracy": None, "log_likelihood": None}, {}, Cause.FAILURE),
        ({}, {"certified": False, "maximum_exists": False}, Cause.NO_MAXIMUM),
        ({"accuracy": None}, {"certified": False, "maximum_exists": False}, Cause.NO_MAXIMUM),
        ({}, {"certified": False, "status": Status.NOT_DETERMINED}, Cause.NOT_DETERMINED),
        ({}, {"certified": False}, Cause.UNKNOWN),
        ({"log_likelihood": -99.0}, {}, Cause.UNKNOWN),  # then that was not the maximum
        ({}, {"accuracy": None, "log_likelihood": None, "certified": None}, Cause.NOT_FITTED),
        ({}, {"log_likelihood": -math.inf, "certified": False}, Cause.NOT_FITTED),
        ({"status": Status.TRANSFORM_FAILED}, {}, Cause.TRANSFORM),
        ({}, {"status": Status.TRANSFORM_FAILED, "log_likelihood": None}, Cause.TRANSFORM),
    ],
)
def test_causes(paper, exact, cause):
    rows = frame(trial("a", "max", **AT_THE_TOP | paper), trial("a", "max", preset="exact", **CERTIFIED | exact))
    assert tabulate_presets(rows)["cause"].item() == cause.value


def test_presets_side_by_side():
    trials = frame(
        trial("a", "max", preset="exact", iterations=5, log_loss=1.2, **CERTIFIED),
        trial("a", "boxcox", 0.4, log_likelihood=-900.0, iterations=0, log_loss=14.0, at_floor=40),
        trial("a", "max", 0.5, log_likelihood=-101.5, iterations=88, log_loss=1.3),
        trial("a", "boxcox", preset="exact", iterations=4, log_loss=1.1, **CERTIFIED),
        trial("b", "max", 0.5),
    )
    table = tabulate_presets(trials)
    assert table.columns == [
        "case", "method", "paper_status", "exact_status", "paper_log_likelihood", "exact_log_likelihood", "short_by",
        "paper_iterations", "exact_iterations", "paper_log_loss", "exact_log_loss", "cause",
    ]  # fmt: skip
    assert table["method"].to_list() == ["boxcox", "max"]
    assert table["short_by"].to_list() == [800.0, 1.5]
    assert table["cause"].to_list() == [Cause.FLOOR.value, Cause.SHORT.value]
    assert table["exact_iterations"].to_list() == [4, 5]
    alone = tabulate_presets(trials.filter(preset="paper"))
    assert alone.is_empty()
    assert alone.schema == table.schema


def test_floor_table_lists_selected_methods_that_are_materially_worse():
    trials = frame(
        trial("a", "max", 0.45, 5.0, log_loss=2.0),
        trial("a", "zscore", 0.45, 2.0, log_loss=2.5),
        trial("a", "boxcox", 0.48, 0.4, log_loss=14.0, at_floor=100, scored=400),
        trial("b", "boxcox", 0.48, 3.0, log_loss=14.0),  # not selected
        trial("b", "zscore", 0.48, 1.0, log_loss=2.0),
        trial("c", "zscore", 0.48, 1.0, log_loss=9.0),  # nothing to compare with
        trial("d", "zscore", 0.48, 1.0, log_loss=2.9),  # worse, not materially
        trial("d", "max", 0.48, 2.0, log_loss=2.0),
        trial("e", "boxcox", 0.48, 1.0, log_loss=14.0),  # beside another one on the floor
        trial("e", "yeojohnson", 0.47, 2.0, log_loss=15.0),
        trial("e", "zscore", 0.47, 3.0, log_loss=2.0),
        trial("e", "max", log_loss=1.0),  # did not converge
    )
    table = tabulate_floor(mark_selected(trials, "seconds"))
    assert table.select("case", "method").rows() == [("a", "boxcox"), ("e", "boxcox")]
    first, second = table.rows(named=True)
    assert (first["alternatives_low"], first["alternatives_high"]) == (2.0, 2.5)
    assert (first["ratio_low"], first["ratio_high"]) == (14 / 2.5, 7.0)
    assert (first["accuracy"], first["log_loss"], first["at_floor_share"]) == (0.48, 14.0, 0.25)
    assert (second["alternatives_high"], second["at_floor_share"]) == (15.0, None)
    assert MATERIALLY_WORSE > 2.9 / 2.0
