"""The benchmark of models of histories: its rows, what it reads of msm, its aims and its section of the page."""

import copy
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.reproduction_words import find_marks, put_section

from benchmarks import histories, history_timing

STORED = json.loads(histories.RESULT.read_text())


def rival(method="bfgs", minus2=100.0, seconds=9.0, converged=True):
    return {
        "method": method, "minus2": minus2, "seconds": seconds, "call_seconds": 2 * seconds, "converged": converged,
    }  # fmt: skip


def run(seconds=0.05, minus2=100.0, certified=True):
    """A whole run in few figures."""
    fit = {
        "table": "Ontario", "visits": 10, "elements": "errors", "call_seconds": 8.0, "evaluations": 3, "nodes": 1,
        "minus2": 5.0, "certified": certified, "reasons": ["flat"],
    }  # fmt: skip
    cell = {"elements": "errors", "n_states": 3, "nodes": 1, "visits": 1000, "seconds": 0.002}
    first = {"first": {"processor": 30.0}, "later": {"processor": 2.0}}
    ours = {"minus2": minus2, "seconds": seconds, "call_seconds": 2 * seconds, "repeats": 3}
    return {
        "examples": [{"model": "errors", "visits": 10, "rekka": ours, "msm": [rival()]}],
        "ontario": [fit | {"frailty": False}, fit | {"frailty": True, "call_seconds": 20.0}],
        "evaluations": [cell, cell | {"visits": 10_000, "seconds": 0.02}],
        "compilation": {"pairs": first, "histories": first | {"first": {"processor": 50.0}}},
        "configurations": {"evaluations": {"versions": {"rekka": "1.0"}, "load": 1.0, "cores": 2}},
    }


def test_visits_become_rows_and_a_single_visit_stays():
    visits = pl.DataFrame({"id": [1, 1, 1, 2], "time": [0.0, 2.0, 5.0, 1.0], "state": [1, 2, 1, 3]})
    rows = history_timing.pair(visits)
    assert rows.select("history", "state_1", "state_2", "interval_years", "date_1").rows() == [
        (1, 1, 2, 2.0, 0.0),
        (1, 2, 1, 3.0, 2.0),
        (2, 3, None, None, 1.0),
    ]


def test_absent_tables_are_left_out_and_said(tmp_path, monkeypatch):
    assert history_timing.read_examples(tmp_path) is None
    assert history_timing.read_cut(tmp_path) is None
    assert history_timing.read_ontario(tmp_path) is None
    said = []
    for name in ("read_examples", "read_cut", "read_ontario"):
        monkeypatch.setattr(history_timing, name, lambda: None)
    assert histories.measure_examples(True, said.append) == []
    assert histories.measure_ontario(True, said.append) == []
    assert len(said) == 3
    assert all("absent" in line and "left out" in line for line in said)


def test_a_fit_is_described():
    rows = history_timing.pair(
        pl.DataFrame(
            {
                "id": np.repeat(np.arange(30), 3),
                "time": np.tile([0.0, 1.0, 2.0], 30),
                "state": [1, 1, 2, 1, 2, 3, 1, 2, 1] * 10,
            }
        )
    )
    table = history_timing.Table("small", rows, 90, 3)
    model = history_timing.make_model(table, errors="adjacent-common", first=[1, 0, 0])
    found = history_timing.fit_table(model, table)
    assert found["minus2"] == pytest.approx(-2 * model.log_likelihood_)
    assert found["call_seconds"] >= found["seconds"] > 0
    assert (found["evaluations"], found["nodes"]) == (model.outcome_.evaluations, 1)
    assert json.dumps(found, allow_nan=False)


def test_the_rival_that_counts_is_the_fastest_at_the_lowest():
    short, failed = rival("short", 100.1, 1.0), {"method": "failed", "converged": False, "note": "stopped"}
    lost = rival("lost", 100.0, 2.0, converged=False)
    assert history_timing.choose_msm([short, failed, lost, rival("good"), rival("slow", 99.9999, 20.0)])[
        "method"
    ] == ("good")
    assert history_timing.choose_msm([failed]) is None


def test_figures_of_the_script_are_read():
    lines = ["minus2 6294.1", "seconds 5.5", "call_seconds 5.8", "elapsed 6", "call_elapsed 6.5", "converged 1"]
    found = history_timing.read_msm("\n".join([*lines, "repeats 3", "hazard_1 0.59", "error_12 0.003"]) + "\n")
    assert (found["minus2"], found["converged"], found["repeats"]) == (6294.1, True, 3)
    assert found["estimates"] == {"hazard_1": 0.59, "error_12": 0.003}


@pytest.mark.parametrize("name", history_timing.CELLS)
def test_an_evaluation_is_measured(name):
    found = history_timing.measure_evaluation(50, 3, 8, name)
    assert (found["visits"], found["n_states"]) == (50, 3)
    assert found["steps"] == (90 if name == history_timing.ALL_ELEMENTS else 45)
    assert found["nodes"] >= 8
    assert found["seconds"] >= 0


def test_aims_are_judged():
    aims = histories.judge(run())
    assert [aim.met for aim in aims] == [True, True, True, True, True]
    assert aims[0].figure == "180 times by our median, 180 the whole call; msm by bfgs"
    assert [aim.met for aim in histories.judge(run(1.0, 101.0, certified=False))][:4] == [False] * 4
    slow = run()
    slow["ontario"][1]["call_seconds"] = 31.0
    slow["compilation"]["histories"]["first"]["processor"] = 59.0
    assert [aim.met for aim in histories.judge(slow)] == [True, True, True, False, False]
    nothing = run() | {"examples": [], "ontario": [], "compilation": {}}
    assert {aim.met for aim in histories.judge(nothing)} == {None}


def test_the_section_has_every_figure():
    text = histories.describe(run())
    for words in ("| errors | msm, bfgs (counts) |", "| 20.0 | 3 | 1 |", "| errors | 3 | 1 | 2 | 20 |", "28.0"):
        assert words in text
    assert "All 5 aims are met." in text
    assert "Aims not met: errors: 100 times as fast as msm (9 times" in histories.describe(run(1.0))
    refused = run()
    refused["ontario"][0] = {k: refused["ontario"][0][k] for k in ("table", "visits", "elements", "frailty")}
    refused["ontario"][0]["refused"] = "row 7: rating 2 cannot follow"
    assert "refused: row 7: rating 2 cannot follow |" in histories.describe(refused)
    assert [aim.met for aim in histories.judge(refused)][2:4] == [None, True]
    empty = histories.describe(run() | {"examples": [], "ontario": []})
    assert "was not there to be fitted" in empty
    assert "were not there to be fitted" in empty


def test_a_part_is_stored_beside_the_others(tmp_path):
    file, source = tmp_path / "stored.json", {"source": "", "versions": {}}
    whole = run()
    histories.store({part: whole[part] for part in histories.PARTS}, source, file)
    changed = copy.deepcopy(whole["evaluations"])[:1]
    stored = histories.store({"evaluations": changed}, source, file)
    assert json.loads(file.read_text()) == json.loads(json.dumps(stored))
    assert stored["evaluations"] == changed
    assert stored["examples"] == whole["examples"]
    assert not stored["configurations"]["ontario"]["source_unchanged"]


def test_a_section_is_put_between_its_marks(tmp_path):
    begin, end = find_marks("some")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nOUTDATED\n{end}\nafter\n")
    put_section(page, "some", "NEW")
    assert page.read_text() == f"before\n{begin}\n\nNEW\n\n{end}\nafter\n"


def test_the_page_is_what_the_stored_run_gives():
    assert histories.describe(STORED) in histories.PAGE.read_text()
    assert [(aim.aim, aim.figure, aim.met) for aim in histories.judge(STORED)] == [
        (one["aim"], one["figure"], one["met"]) for one in STORED["aims"]
    ]
