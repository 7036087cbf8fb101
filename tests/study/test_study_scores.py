"""Sums by bridge are the scores, intervals and folds of the rows they were made of; digests and draws by block."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.core.errors import ScalingError
from rekka.data.partition import order_bridges, place_bridges
from rekka.data.transitions import scan_transitions
from rekka.evaluation.resampling import draw_times, folds
from rekka.evaluation.scores import RowScores, mean_interval, score_persistence_rows, sums_interval
from rekka.model.fit import Options, refit_rows
from rekka.streaming import blocks
from rekka.streaming.fit import refit_source
from rekka.study import digests
from rekka.study.case_rows import CaseRows
from rekka.study.digests import digest_rows, digest_sorted
from rekka.study.plan import make_plan
from rekka.study.rows import StudyRows, open_rows, split_rows
from rekka.study.scores import BridgeScores, score_sample

CONFIDENCE = 0.9


def draw_rows(n: int = 1500) -> pl.DataFrame:
    """Transitions of 4 states whose worst state only some golden rows know."""
    parts = pl.Series((["train"] * 6 + ["validation"] * 2 + ["golden"] * 2) * (n // 10))
    frame = rekka.simulate_transitions(n, n_states=4, seed=5).drop("bridge_area").with_columns(part=parts)
    return frame.filter((pl.col("part") == "golden") | (pl.col("state_2") < 4))


Cases = tuple[CaseRows, CaseRows]


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> Cases:
    """The same case, streamed in blocks of 100 rows and held whole."""
    monkeypatch.setattr(blocks, "WHOLE", 100)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 100)
    plan = make_plan(data={"kind": "given"})
    large = open_rows(plan, draw_rows().lazy(), Path(), 10**9)
    whole = split_rows(draw_rows(), plan.partition, plan.study)
    one, other = large.case("all", "auto"), whole.case("all", "auto")
    assert (one.streamed, other.streamed) == (True, False)
    return one, other


def score_row_by_row(whole: CaseRows, part: str) -> tuple[Any, RowScores, RowScores, Any, int]:
    """A model; the rows of a part as it forecasts them, and as persistence does, one by one; their bridges."""
    sample = whole.training
    fitted = refit_rows(sample.rows, sample.x, sample.covariates, Options(threads=1))
    rows, unsupported = whole.sample(part)
    same = score_persistence_rows(rows.rows.start, rows.rows.end, whole.n_states)
    return fitted, score_sample(fitted, rows), same, rows.bridge, unsupported


@pytest.mark.parametrize("part", ["validation", "golden"])
class TestSumsAreTheirRows:
    def test_scores_and_intervals(self, cases: Cases, part: str) -> None:
        fitted, own, same, bridge, unsupported = score_row_by_row(cases[1], part)
        assert (unsupported > 0) == (part == "golden")
        for case in cases:
            ours, plain = case.forecast(fitted, part), case.persist(part)
            for sums, rows in ((ours, own), (plain, same)):
                theirs = rows.mean(unsupported).to_dict()
                np.testing.assert_allclose(list(sums.scores.to_dict().values()), list(theirs.values()), rtol=1e-12)
            assert ours.bridges == np.unique(bridge).size
            for found, values in (
                (ours.accuracy(CONFIDENCE), own.right.astype(float)),
                (ours.log_loss(CONFIDENCE), own.loss),
                (ours.accuracy_above(plain, CONFIDENCE), own.right.astype(float) - same.right),
                (ours.log_loss_above(plain, CONFIDENCE), own.loss - same.loss),
            ):
                theirs = mean_interval(values, bridge, CONFIDENCE)
                np.testing.assert_allclose(found, theirs, rtol=1e-12, atol=1e-12)

    def test_folds_are_of_the_same_bridges(self, cases: Cases, part: str) -> None:
        """The nested score adds up folds that were each scored apart."""
        fitted, own, _, bridge, _ = score_row_by_row(cases[1], part)
        for case in cases:
            ours, parts = case.forecast(fitted, part), []
            for (outside, inside), (rest, here) in zip(ours.folds(5, "x"), folds(bridge, 5, "x"), strict=True):
                assert set(ours.names.gather(inside)) == set(bridge[here])
                one, other = ours.take(outside).scores, own.take(rest).mean()
                assert (one.rows, one.at_floor) == (other.rows, other.at_floor)
                figures = (other.accuracy, other.log_loss)
                np.testing.assert_allclose((one.accuracy, one.log_loss), figures, rtol=1e-12)
                parts.append(ours.take(inside))
            again = BridgeScores.join(parts)
            assert again.scores.rows == ours.scores.rows
            np.testing.assert_allclose(again.scores.log_loss, own.mean().log_loss, rtol=1e-12)

    def test_rows_in_memory_are_added_up_alike(self, cases: Cases, part: str) -> None:
        fitted, own, _, bridge, unsupported = score_row_by_row(cases[1], part)
        ours = BridgeScores.of(own, bridge, cases[1].n_states, unsupported)
        theirs = cases[1].forecast(fitted, part)
        assert ours.names.equals(theirs.names)
        for name in ("size", "right", "at_floor", "loss", "rest", "unsupported"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12)


class TestNothing:
    def test_of_nothing(self) -> None:
        nothing = BridgeScores.of_nothing(7)
        assert (nothing.bridges, nothing.scores.rows, nothing.scores.unsupported) == (0, 0, 7)
        assert nothing.log_loss(CONFIDENCE).rows == 0

    def test_a_value_that_an_operator_cannot_take_names_its_bridge(
        self, cases: Cases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        large, whole = cases
        sample = whole.training
        fitted = refit_rows(sample.rows, sample.x, sample.covariates, Options(scaling="boxcox", threads=1))
        worst = pl.col("bridge_length") == pl.col("bridge_length").max()
        changed = pl.when(worst & (pl.col("part") == "golden")).then(-1e6).otherwise("bridge_length")
        frame = pl.read_parquet(large.table).with_columns(bridge_length=changed)
        if frame["bridge_length"].min() != -1e6:  # the longest of the golden rows
            longest = pl.col("bridge_length") == frame.filter(part="golden")["bridge_length"].max()
            frame = frame.with_columns(bridge_length=pl.when(longest).then(-1e6).otherwise("bridge_length"))
        frame.write_parquet(large.table)
        with pytest.raises(ScalingError) as raised:
            large.forecast(fitted, "golden")
        assert raised.value.values["bridge"] in set(frame.filter(bridge_length=-1e6)["bridge_id"])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.floats(-5, 5)), min_size=1, max_size=40))
def test_an_interval_of_sums_is_that_of_the_rows(rows: list[tuple[int, float]]) -> None:
    bridge, values = np.array([b for b, _ in rows]), np.array([v for _, v in rows])
    _, group, size = np.unique(bridge, return_inverse=True, return_counts=True)
    ours = sums_interval(np.bincount(group, weights=values), size.astype(np.int32))
    np.testing.assert_allclose(ours, mean_interval(values, bridge), rtol=1e-9, atol=1e-9)


def test_places_of_bridges_are_their_order() -> None:
    names = pl.Series([f"B-{number}" for number in range(500)])
    assert names.gather(place_bridges(names, 3)).to_list() == order_bridges(names, 3)
    assert not place_bridges(names[:0], 3).size


class TestCase:
    def test_answers_what_the_whole_case_answers(self, cases: Cases) -> None:
        large, whole = cases
        for name in (
            "name",
            "counts",
            "covariates",
            "constant",
            "n_states",
            "trained",
            "moves",
            "columns",
            "judged_on",
        ):
            assert getattr(large, name) == getattr(whole, name), name
        for part in ("train", "golden"):
            assert large.states(part) == whole.states(part)
            assert large.count_unsupported(part) == whole.count_unsupported(part)
            assert large.find_ranges(part) == whole.find_ranges(part)
            assert large.column(part, "bridge_length").equals(whole.column(part, "bridge_length"))
        assert large.digest_golden() == whole.digest_golden()

    def test_draws_whole_bridges(self, cases: Cases) -> None:
        """The refit of a draw is that of rows repeated as often as their bridge was drawn."""
        large, whole = cases
        drawn = large.redraw(np.random.default_rng(4))
        key = pl.Series(whole.training.bridge).hash(0).hash(0).to_numpy()
        times = draw_times(key, drawn.seed)
        again = whole.training.take(np.repeat(np.arange(times.size), times))
        ours = refit_source(drawn, Options(scaling="minmax"), n_states=large.n_states)
        theirs = refit_rows(again.rows, again.x, again.covariates, Options(scaling="minmax", threads=1))
        np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-10)
        assert ours.at_maximum


def test_draws_are_poisson_numbers() -> None:
    key = pl.Series(range(100_000)).hash(0).to_numpy()
    one, other = draw_times(key, 1), draw_times(key, 2**64 - 1)
    for times in (one, other):
        assert abs(times.mean() - 1) < 0.02
        assert abs(times.var() - 1) < 0.04
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert (draw_times(key, 1) == one).all()


class TestDigests:
    @pytest.fixture
    def piecewise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(blocks, "WHOLE", 0)
        monkeypatch.setattr(digests, "ROWS_AT_ONCE", 64)

    def test_of_pieces(self, request: pytest.FixtureRequest) -> None:
        frame = draw_rows().with_columns(
            bridge_id=pl.when(pl.int_range(pl.len()) % 9 > 0).then("bridge_id"),
            date_1=pl.date(2010, 1, 1) + pl.duration(days=pl.int_range(pl.len())),
        )
        at_once = digest_rows(frame.lazy(), len(frame))
        request.getfixturevalue("piecewise")
        assert digest_rows(frame.lazy(), len(frame)) == at_once

    def test_rows_are_put_in_order_range_by_range(self, request: pytest.FixtureRequest) -> None:
        frame = draw_rows().select("bridge_id", "state_1", "state_2", "interval_years")
        names = frame["bridge_id"].unique().sort()
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1).lazy()
        at_once = digest_rows(frame.sort(frame.columns).lazy(), len(frame))
        assert digest_sorted(shuffled, len(frame), lambda: names) == at_once
        request.getfixturevalue("piecewise")
        assert digest_sorted(shuffled, len(frame), lambda: names) == at_once


def test_what_is_scanned(tmp_path: Path) -> None:
    frame = draw_rows()
    assert scan_transitions(frame) is None
    frame.write_csv(tmp_path / "rows.csv")
    assert scan_transitions(tmp_path / "rows.csv") is None
    found = scan_transitions(frame.with_columns(pl.col("traffic_mean").cast(pl.String)).lazy())
    assert found is not None
    assert found.covariates == ("age_at_inspection_1", "bridge_length", "traffic_mean")
    assert found.collect().frame["traffic_mean"].equals(frame["traffic_mean"])
    visits = pl.DataFrame({"bridge": ["a"], "date": ["2010-01-01"], "state": [1]})
    visits.write_parquet(tmp_path / "inspections.parquet")
    assert scan_transitions(tmp_path) is None


def test_ordinary_rows_count_themselves() -> None:
    rows = split_rows(draw_rows(), make_plan().partition, make_plan().study)
    assert isinstance(rows, StudyRows)
    assert len(rows) == rows.counts()["len"].sum()
