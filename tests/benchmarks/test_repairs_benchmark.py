"""The benchmark of repairs: which rehabilitations lie in an interval, and its page is that of its stored run."""

import json
import sys
from datetime import date
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.reproduction_words import find_marks

from benchmarks import repairs as benchmark
from rekka.workflows.repairs import REPAIR


def interval(bridge: str, first: int, second: int, improved: int, major=None, minor=None) -> dict:
    years = {"date_1": date(first, 1, 1), "date_2": date(second, 1, 1)}
    states = {"state_1": 5, "state_2": 5 - improved}
    return {"bridge_id": bridge, **years, **states, "LAST MAJOR REHAB": major, "LAST MINOR REHAB": minor}


def make_intervals() -> pl.DataFrame:
    rows = [
        interval("A", 2000, 2002, 0, "2002"),
        interval("A", 2002, 2004, 4, "2002"),  # found in the interval that begins in its year
        interval("B", 2000, 2002, 2, "2010", "2001"),
        interval("B", 2002, 2004, 0, "2010", "2001"),
        interval("C", 2000, 2002, 1),
    ]
    found = benchmark.read_rehabilitations(pl.DataFrame(rows))
    verdict = pl.Series("verdict", [None, REPAIR, REPAIR, None, "probable error of inspection"])
    return found.with_columns(verdict, repair=pl.Series([None, 0.9, 0.95, None, 0.05]))


def test_rehabilitations_lie_in_intervals_by_their_years():
    found = make_intervals()
    assert found["in_major"].to_list() == [True, True, False, False, False]
    assert found["in_minor"].to_list() == [False, False, True, False, False]
    assert found["recorded"].to_list() == [True, True, True, False, False]
    assert found["current"].to_list() == [True, True, False, False, True]
    assert found["size"].to_list() == [0, 3, 2, 0, 1]


def test_verdicts_are_counted_beside_the_record():
    found = benchmark.judge_intervals(make_intervals())
    assert found["of_verdicts"][0] | {"current_recorded": 1.0} == {
        "verdict": REPAIR, "intervals": 2, "repair": 0.925, "major": 0.5, "minor": 0.5, "recorded": 1.0,
        "current": 1, "current_recorded": 1.0,
    }  # fmt: skip
    assert found["no_improvement"]["recorded"] == 0.5
    assert found["rehabilitations"]["major: probable repair"] == {"recorded": 1, "found": 1}
    assert found["rehabilitations"]["minor: better rating"] == {"recorded": 1, "found": 1}
    assert [one["intervals"] for one in found["by_probability"]] == [1, 0, 0, 2]
    years = [(one["year"], one["all"], one["improved"], one["intervals"]) for one in found["by_year"]]
    assert years == [(2002, 3, 2, 1), (2004, 2, 1, 1)]


def test_the_page_has_the_stored_figures():
    stored = json.loads(benchmark.RESULT.read_text())
    begin, end = find_marks(benchmark.SECTION)
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert page.split(begin)[1].split(end)[0].strip() == benchmark.describe(stored)
    assert all(aim.met for aim in benchmark.judge(stored))
