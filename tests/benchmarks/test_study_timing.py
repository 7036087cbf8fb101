"""The study's benchmark: its figures follow from its trials, and its stopwatch still finds every function."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import rekka

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import runs, stages, study

TRIAL = study.Trial(
    case="Pier", method="max", rows=100, rekka=0.001, rival=0.5, compiled=0.05,
    rekka_log_likelihood=-10.0, rival_log_likelihood=-10.005, certified=True, rival_success=True, rival_note="",
)  # fmt: skip
COMMAND = study.Command((4.0, 6.0, 4.5), {"imports": 1.0, "scoring": 3.0})


@pytest.mark.slow
def test_trials_are_those_of_rekka_compare_on_the_same_rows(monkeypatch):
    seen = []

    def rival(problem, scaling, repeats):
        seen.append((problem.n_rows, problem.n_states, scaling, repeats))
        return runs.Run("paper", scaling, True, log_likelihood=float("-inf"), seconds=1.0, repeats=repeats)

    monkeypatch.setattr(study.rival_paper, "run", rival)
    found = study.measure(repeats=2, rival_repeats=3, most_cases=1)
    theirs = rekka.compare(cases=[found[0].case])
    assert [t.rekka_log_likelihood for t in found] == theirs.trials["log_likelihood"].to_list()
    case = theirs.cases.row(0, named=True)
    assert seen == [(case["train"], case["n_states"], method, 3) for method in study.METHODS]
    assert all(t.rival == 1.0 and t.rival_log_likelihood is None and t.rekka > 0 and t.compiled > 0 for t in found)


def test_ratio_is_of_sums_over_the_trials_that_both_ran():
    slow = replace(TRIAL, rekka=0.003, rival=0.1)
    assert study.ratio([TRIAL, slow]) == pytest.approx(0.6 / 0.004)
    assert study.ratio([TRIAL, replace(TRIAL, rival=None)]) == pytest.approx(500)
    assert study.ratio([replace(TRIAL, rival=None)]) is None


@pytest.mark.parametrize(
    ("changes", "same", "elsewhere"),
    [
        ({}, True, False),
        ({"rival_log_likelihood": -10.02}, False, True),
        ({"rival_log_likelihood": None}, False, True),
        ({"rival_log_likelihood": -12.0, "rival_success": False}, False, False),
        ({"certified": False}, False, False),
    ],
)
def test_who_reached_the_maximum(changes, same, elsewhere):
    trial = replace(TRIAL, **changes)
    assert (trial.same, trial.false_success) == (same, elsewhere)
    counts = study.summarize([trial])
    assert (counts["rival_at_same_maximum"], counts["rival_success_elsewhere"]) == (same, elsewhere)


def test_aims_are_met_by_the_whole_study_only():
    speed, command = study.judge([TRIAL], COMMAND)
    assert speed.met
    assert speed.figure.startswith("500 times, 1 of 1 trials")
    assert command.met
    assert command.figure == "median 4.50 s, least 4.00 s, 3 runs"
    assert study.judge([TRIAL, replace(TRIAL, rival=None)], None)[0].met is False
    assert study.judge([replace(TRIAL, rival=0.1)], None)[0].met is False
    assert [aim.met for aim in study.judge([], None)] == [None, None]
    assert study.judge([TRIAL], replace(COMMAND, seconds=(6.0,)))[1].met is False


def test_tables_tell_the_rival_from_the_compiled_preset():
    console = Console(width=200, record=True)
    study.print_trials([TRIAL, replace(TRIAL, method="boxcox", rival_log_likelihood=None)], console)
    study.print_stages(COMMAND, console)
    study.print_aims(study.judge([TRIAL], COMMAND), console)
    said = console.export_text()
    assert "paper preset, compiled" in said
    assert "success, not at the maximum" in said
    assert "75%" in said
    assert "met" in said


def test_the_stopwatch_finds_every_function():
    for places in stages.PLACES.values():
        for place in places:
            stages.find(place)
    with pytest.raises(AttributeError, match="correct benchmarks"):
        stages.find("rekka.cli:gone")


def test_seconds_of_a_stage_are_its_own(monkeypatch):
    clock = [0.0]

    def work(seconds):
        clock[0] += seconds

    monkeypatch.setattr(stages, "perf_counter", lambda: clock[0])
    watch = stages.Stopwatch()
    work(1.0)
    watch.run("outer", lambda: (work(2.0), watch.run("inner", work, 5.0), work(3.0)))
    assert watch.seconds == {stages.REST: 1.0, "outer": 5.0, "inner": 5.0}
