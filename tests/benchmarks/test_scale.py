"""The benchmark of a nation's inventory on few rows: that it measures what it says, and judges it fairly."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.drawn_rows import write_transitions

from rekka.model.likelihood import Rows
from rekka.streaming.blocks import FrameSource

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.runs import Run
from benchmarks.scale_fits import HELD, HELD_ONE, STREAMED, Whole

from benchmarks import scale, scale_costs, scale_fits, scale_machine, scale_passes, scale_rivals

FITTED = Whole(
    HELD, 2, rows=1000, seconds=2.0, optimizer_seconds=1.0, evaluations=10, megabytes=300.0, log_likelihood=-5.0,
    coefficients=(1.0, -2.0), standard_errors=(0.1, 0.2), certified=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("nation")
    write_transitions(path, 4_000, rows_a_file=1_500)
    return path


class TestFits:
    def test_every_way_on_one_machine_finds_the_same(self, folder):
        wholes = [scale_fits.fit(way, folder, folder) for way in (HELD, HELD_ONE, STREAMED)]
        assert [one.rows for one in wholes] == [4_000] * 3
        assert all(one.certified and len(one.coefficients) == 20 for one in wholes)
        assert all(one.largest <= scale_fits.EQUAL for one in scale_fits.compare(wholes))

    def test_rates_are_of_rows_seconds_and_evaluations(self):
        assert FITTED.rows_a_second == 500.0
        assert FITTED.ns_per_row == pytest.approx(1e9 * 1.0 / 10 / 1000)

    def test_differences_are_relative_and_the_largest_counts(self):
        other = replace(FITTED, way=STREAMED, log_likelihood=-5.0 * (1 + 1e-12), coefficients=(1.0, -2.0 - 2e-9))
        (found,) = scale_fits.compare([FITTED, other])
        assert found.log_likelihood == pytest.approx(1e-12, rel=1e-2)
        assert found.largest == found.coefficients == pytest.approx(1e-9)
        assert found.standard_errors == 0.0

    @pytest.mark.slow
    def test_a_fit_that_was_not_made_is_a_value_and_is_not_compared(self, tmp_path):
        missing = scale_fits.call(HELD, tmp_path / "nowhere", tmp_path / "nowhere")
        assert missing.seconds is None
        assert missing.note.startswith("not made: ")
        assert scale_fits.compare([FITTED, missing]) == []


class TestPasses:
    @pytest.mark.parametrize("way", scale_passes.WAYS)
    def test_stages_add_up_to_the_fit(self, folder, way):
        found = scale_passes.measure(way, folder)
        assert found.rows == 4_000
        assert {"checking", "likelihood"} <= {one.stage for one in found.passes}
        assert 0 <= found.between < found.seconds

    def test_the_clock_changes_no_result(self, folder):
        source = scale_fits.open_source(HELD, folder)
        assert isinstance(source, FrameSource)
        timed = scale_passes.Timed(source)
        timed.begin("counting")
        assert list(timed.map(scale_passes._do_nothing)) == list(source.map(scale_passes._do_nothing)) == [4_000]
        (one,) = timed.passes
        assert (one.stage, one.passes) == ("counting", 1)


class TestCosts:
    def test_what_a_row_needs_is_counted_from_its_chain(self):
        """K = 3, one covariate: 1 -> 1 visits one state, 1 -> 2 two, 1 -> 3 two and ends in the absorbing one."""
        rows = Rows(np.zeros(3, np.int64), np.arange(3), np.ones(3), np.ones(3), 3)
        drawn = scale_costs.Drawn(rows, np.ones((3, 2)), np.log(np.array([[0.1, 1.0], [0.1, 1.0]])))
        found = scale_costs.count_needs(drawn)
        assert found.bytes_read == 8 * (2 + 2 + 1 + 2)  # states, years and their logarithm, weight, two of design
        assert found.exponentials == pytest.approx((1 + 2 + 2) / 3)
        assert found.logarithms == pytest.approx(1 / 3)
        # gradient 2 a state; Hessian 3 on the diagonal and 4 off it; 2 for each block to weigh the design
        assert found.multiply_adds == pytest.approx(((2 + 3 + 2) + 2 * (4 + 6 + 4 + 6)) / 3)

    def test_hazards_far_apart_take_another_exponential(self):
        rows = Rows(np.zeros(1, np.int64), np.ones(1, np.int64), np.ones(1), np.ones(1), 3)
        drawn = scale_costs.Drawn(rows, np.ones((1, 1)), np.log(np.array([[3.0], [0.1]])))
        found = scale_costs.count_needs(drawn)
        assert (found.exponentials, found.logarithms) == (3.0, 2.0)

    def test_shares_of_jumps_are_of_all_rows(self, monkeypatch):
        monkeypatch.setattr(scale_costs, "ENOUGH_SECONDS", 0.0)
        monkeypatch.setattr(scale_costs.Drawn, "time", lambda self, order=2: float(np.unique(self.jumps).item()))
        found = scale_costs.by_jumps(2_000)
        assert sum(one.share for one in found) == pytest.approx(1.0)
        assert [one.ns_per_row for one in found] == [one.jumps for one in found]  # each by itself

    def test_the_machine_is_measured(self):
        found = scale_machine.measure(2, numbers=10_000, rounds=10, repeats=1)
        rates = (found.bytes_read, found.bytes_triad, found.exponentials, found.multiply_adds)
        assert all(np.isfinite(rates))
        assert min(rates) > 0


class TestRivals:
    @staticmethod
    def fit(problem, seconds_a_row=0.0, converges_to=1 << 30):
        call = problem.n_rows * seconds_a_row
        if problem.n_rows > converges_to:
            return Run("msm", "nlm", False, note="gave up")
        return Run("msm", "nlm", True, log_likelihood=-1.0, seconds=call / 2, call_seconds=call)

    def test_rows_double_until_twice_as_many_would_take_too_long(self):
        problem, run, ended = scale_rivals.grow("msm", partial(self.fit, seconds_a_row=0.01), 100, limit=5.0)
        assert (problem.n_rows, run.call_seconds) == (400, 4.0)
        assert ended == "800 rows would take more than 5 s"

    def test_rows_double_until_it_fails(self):
        problem, _, ended = scale_rivals.grow("msm", partial(self.fit, converges_to=250), 100)
        assert problem.n_rows == 200
        assert ended == "400 rows: gave up"

    def test_a_rival_that_gets_nowhere_has_no_largest(self):
        assert scale_rivals.grow("msm", partial(self.fit, converges_to=0), 100) is None

    def test_refits_of_msm_are_extrapolated_from_their_mean(self):
        ours = scale_rivals.Timing("zscore", 1, 1000, 1.0, 4.0, 4.0)
        found = scale_rivals.Refits(1600, 1000, (ours,), "nlm", 5, 8.0, 10.0)
        assert found.extrapolated == 2000.0
        assert found.times == [500.0]
        assert replace(found, msm_refits=0, msm_call_seconds=None).times == [None]


class TestAims:
    def stored(self, **changes):
        fits = [replace(FITTED, **changes), replace(FITTED, way=STREAMED, **changes)]
        more = {"seconds": None}
        return {
            "fits": [more | vars(one) for one in fits],
            "agreement": [{"way": STREAMED, "largest": 0.0}],
        }

    def test_met(self):
        met = [aim.met for aim in scale.judge(self.stored())]
        assert met == [True, True, True, True, None]  # there is no cluster

    @pytest.mark.parametrize(
        ("changes", "missed"),
        [({"seconds": 31.0}, [0]), ({"megabytes": 1_500.0}, [2]), ({"certified": False}, [0, 1, 2])],
    )
    def test_missed(self, changes, missed):
        met = [aim.met for aim in scale.judge(self.stored(**changes))]
        assert [number for number, one in enumerate(met) if one is False] == missed

    def test_another_result_is_not_equal(self):
        stored = self.stored() | {"agreement": [{"way": STREAMED, "largest": 1e-9}]}
        assert scale.judge(stored)[3].met is False

    def test_nothing_measured_is_not_judged(self):
        assert {aim.met for aim in scale.judge({})} == {None}


def test_a_quick_run_stores_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(scale, "RESULT", tmp_path / "scale.json")
    monkeypatch.setattr(scale, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(scale_costs, "ENOUGH_SECONDS", 0.0)
    monkeypatch.setattr(scale.rival_msm, "ensure_installed", lambda: "msm is not installed.")
    scale.main(["--quick", "--only", "costs"])
    assert '"needs"' in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_part_measured_anew_leaves_the_others(monkeypatch, tmp_path):
    monkeypatch.setattr(scale, "RESULT", tmp_path / "scale.json")
    before = {
        "load": {"curve": 0.1, "start": 0.2},
        "configurations": {"curve": {"date": "a"}},
        "curve": [1],
        "start": 3,
    }
    scale.RESULT.write_text(json.dumps(before))
    scale._store({"load": {"start": 0.5}, "start": 4}, {"date": "b", "source": "x"}, whole=False)
    stored = json.loads(scale.RESULT.read_text())
    assert (stored["curve"], stored["start"]) == ([1], 4)
    assert stored["load"] == {"curve": 0.1, "start": 0.5}
    assert [stored["configurations"][part]["date"] for part in ("curve", "start")] == ["a", "b"]


def test_there_is_no_page_until_every_part_is_measured(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(scale, "RESULT", tmp_path / "scale.json")
    monkeypatch.setattr(scale, "PAGE", tmp_path / "performance.md")
    scale._store({"load": {"start": 0.5}, "start": 4}, {"date": "b", "source": "x"}, whole=False)
    scale.main(["--page"])
    assert "fits, curve, costs, rivals, refits not measured" in " ".join(capsys.readouterr().out.split())
    assert not scale.PAGE.exists()
