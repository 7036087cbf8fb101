"""The benchmark of the tests of assumptions: its records, counts, table and aims."""

import sys
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.simulated_histories import Setting

from benchmarks import violations as bench

CASES = {case.name: case for case in bench.list_cases()}
QUIET = Console(quiet=True)


def test_settings_have_names_and_digests_of_their_own():
    assert len(CASES) == 23
    assert len({case.digest for case in CASES.values()}) == 23


def test_an_inventory_is_measured_and_not_measured_again(tmp_path, monkeypatch):
    case = bench.Case(Setting("errors 10 %, gap 2", 2.0, 8, error=0.1), bench.ERRORS)
    monkeypatch.setattr(bench, "list_cases", lambda: iter([case]))
    file = tmp_path / "violations.jsonl"
    bench.run([case], 1, QUIET, file)
    first = file.read_text()
    file.write_text(first + '{"case": "half')
    bench.run([case], 1, QUIET, file)
    (record,) = bench.read_stored(file)[case.name].values()
    assert record["certified"]
    assert record["adjusted"]["errors"] < 0.05
    bench.run([case], 2, QUIET, file)
    assert list(bench.read_stored(file)[case.name]) == [0, 1]


def test_without_a_covariate_in_the_fit_it_does_not_act():
    case = CASES["plain, gap 5, no covariates"]
    record = bench.measure(case, 0)
    assert record["digest"] == case.digest
    assert set(record["adjusted"]) == {"frailty", "trend", "past"}
    assert bench.simulated_histories.EFFECT == 0.3


def records(n, **adjusted):
    return [{"adjusted": adjusted, "untested": {"clock": "same_intervals"}} for _ in range(n)]


def test_false_alarms_and_power_are_counted():
    plain = CASES["plain, gap 2"]
    fine = bench.Counted(plain, records(95, trend=0.5, past=0.2) + records(5, trend=0.01, past=0.2))
    assert (fine.any, fine.found("trend"), fine.share("trend"), fine.share("clock")) == (5, 5, "5.0%", "–")
    assert list(fine.fails()) == []
    alarms = bench.Counted(plain, records(80, trend=0.5) + records(20, trend=0.01))
    assert list(alarms.fails()) == ["plain, gap 2: false alarms in 20.0%"]
    trend = CASES["trend -0.05, gap 2"]
    missed = bench.Counted(trend, records(50, trend=0.01, past=0.001) + records(50, trend=0.3, past=0.4))
    assert list(missed.fails()) == ["trend -0.05, gap 2: found in 50%"]
    assert missed.first == 0
    assert list(bench.Counted(CASES["ageing 0.03, gap 5"], records(3)).fails()) == []


def test_the_section_has_the_table_and_what_is_not_met():
    found = [
        bench.Counted(CASES["plain, gap 2"], records(100, trend=0.5)),
        bench.Counted(CASES["trend -0.05, gap 2"], records(100, trend=0.01)),
        bench.Counted(CASES["ageing 0.03, gap 5"], records(100, trend=0.5)),
    ]
    text = bench.describe(found)
    assert "| trend -0.05, gap 2 | 100 | 100.0% |" in text
    assert "**100.0%**" in text
    assert "All are met." in text
    assert "100% (gap 5)" in text
    failing = bench.describe([bench.Counted(CASES["trend -0.05, gap 2"], records(10, trend=0.5))])
    assert "Not met: trend -0.05, gap 2: found in 0%." in failing


def test_what_is_stored_can_be_printed(monkeypatch, capsys):
    monkeypatch.setattr(bench, "read_stored", lambda *_: {name: {} for name in CASES})
    assert bench.main(["--sets", "0"]) == 0
    assert "right one first" in capsys.readouterr().out
