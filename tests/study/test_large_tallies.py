"""Sums by bridge are the scores, intervals and folds of the rows they were made of; digests and draws by block."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.core.errors import ScalingError
from rekka.data.partition import order_bridges, place_bridges
from rekka.data.transitions import scan_transitions
from rekka.evaluation.resampling import draw_times
from rekka.evaluation.scores import mean_interval, sums_interval
from rekka.model.fit import Options, refit_rows
from rekka.streaming import blocks
from rekka.streaming.fit import refit_source
from rekka.study import large as large_digests
from rekka.study.confirmation import identify_golden
from rekka.study.large import LargeCase, LargeRows, open_rows
from rekka.study.plan import make_plan
from rekka.study.rows import CaseRows, Judged, StudyRows, digest_values, split_rows
from rekka.study.tallies import Tally

CONFIDENCE = 0.9


def draw_rows(n: int = 1500) -> pl.DataFrame:
    """Transitions of 4 states whose worst state only some golden rows know."""
    parts = pl.Series((["train"] * 6 + ["validation"] * 2 + ["golden"] * 2) * (n // 10))
    frame = rekka.simulate_transitions(n, n_states=4, seed=5).drop("bridge_area").with_columns(part=parts)
    return frame.filter((pl.col("part") == "golden") | (pl.col("state_2") < 4))


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> tuple[LargeCase, CaseRows]:
    """The same case, gone through in blocks of 100 rows and held whole."""
    monkeypatch.setattr(blocks, "WHOLE", 100)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 100)
    plan = make_plan(data={"kind": "given"})
    large = open_rows(plan, draw_rows().lazy(), Path(), 10**9)
    whole = split_rows(draw_rows(), plan.partition, plan.study)
    assert isinstance(large, LargeRows)
    one, other = large.case("all", "auto"), whole.case("all", "auto")
    assert isinstance(one, LargeCase)
    return one, other


def judge_both(cases: tuple[LargeCase, CaseRows], part: str) -> tuple[Tally, Judged, Tally, Judged]:
    """The rows of a part as a model forecasts them, and persistence, both ways."""
    large, whole = cases
    sample = whole.training
    fitted = refit_rows(sample.rows, sample.x, sample.covariates, Options(threads=1))
    return large.forecast(fitted, part), whole.forecast(fitted, part), large.persist(part), whole.persist(part)


class TestTally:
    @pytest.mark.parametrize("part", ["validation", "golden"])
    def test_scores_and_intervals(self, cases: tuple[LargeCase, CaseRows], part: str) -> None:
        ours, theirs, same, plainly = judge_both(cases, part)
        for one, other in ((ours, theirs), (same, plainly)):
            np.testing.assert_allclose(list(one.scores.to_dict().values()), list(other.scores.to_dict().values()))
        assert (theirs.unsupported > 0) == (part == "golden")
        assert ours.bridges == theirs.bridges
        for one, other in (
            (ours.accuracy(CONFIDENCE), theirs.accuracy(CONFIDENCE)),
            (ours.log_loss(CONFIDENCE), theirs.log_loss(CONFIDENCE)),
            (ours.accuracy_above(same, CONFIDENCE), theirs.accuracy_above(plainly, CONFIDENCE)),
            (ours.log_loss_above(same, CONFIDENCE), theirs.log_loss_above(plainly, CONFIDENCE)),
        ):
            np.testing.assert_allclose(one, other, rtol=1e-10)

    def test_folds_are_of_the_same_bridges(self, cases: tuple[LargeCase, CaseRows]) -> None:
        ours, theirs, *_ = judge_both(cases, "golden")
        parts = []
        for (outside, inside), (rest, here) in zip(ours.folds(5, "x"), theirs.folds(5, "x"), strict=True):
            assert set(ours.names.gather(inside)) == set(theirs.bridge[here])
            one, other = ours.take(outside).scores, theirs.take(rest).scores
            assert one.rows == other.rows
            np.testing.assert_allclose((one.accuracy, one.log_loss), (other.accuracy, other.log_loss), rtol=1e-12)
            parts.append(ours.take(inside))
        again = Tally.join(parts)
        assert again.scores.rows == ours.scores.rows
        np.testing.assert_allclose(again.scores.log_loss, ours.scores.log_loss, rtol=1e-12)

    def test_of_nothing(self) -> None:
        nothing = Tally.of_nothing(7)
        assert (nothing.bridges, nothing.scores.rows, nothing.scores.unsupported) == (0, 0, 7)
        assert nothing.log_loss(CONFIDENCE).rows == 0

    def test_a_value_that_an_operator_cannot_take_names_its_bridge(
        self, cases: tuple[LargeCase, CaseRows], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        large, whole = cases
        sample = whole.training
        fitted = refit_rows(sample.rows, sample.x, sample.covariates, Options(scaling="boxcox", threads=1))
        worst = pl.col("bridge_length") == pl.col("bridge_length").max()
        changed = pl.when(worst & (pl.col("part") == "golden")).then(-1e6).otherwise("bridge_length")
        frame = pl.read_parquet(large.file).with_columns(bridge_length=changed)
        if frame["bridge_length"].min() != -1e6:  # the longest of the golden rows
            longest = pl.col("bridge_length") == frame.filter(part="golden")["bridge_length"].max()
            frame = frame.with_columns(bridge_length=pl.when(longest).then(-1e6).otherwise("bridge_length"))
        frame.write_parquet(large.file)
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
    def test_answers_what_the_whole_case_answers(self, cases: tuple[LargeCase, CaseRows]) -> None:
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
            assert large.find_range(part, "bridge_length") == whole.find_range(part, "bridge_length")
            assert large.column(part, "bridge_length").equals(whole.column(part, "bridge_length"))
        assert identify_golden(large) == identify_golden(whole)

    def test_draws_whole_bridges(self, cases: tuple[LargeCase, CaseRows]) -> None:
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
    def test_a_query_has_the_digest_of_its_frame(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(large_digests, "ROWS_AT_ONCE", 64)
        frame = draw_rows().with_columns(
            bridge_id=pl.when(pl.int_range(pl.len()) % 9 > 0).then("bridge_id"),
            date_1=pl.date(2010, 1, 1) + pl.duration(days=pl.int_range(pl.len())),
        )
        assert large_digests.digest_query(frame.lazy(), len(frame)) == digest_values(frame)

    def test_rows_are_put_in_order_range_by_range(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(large_digests, "ROWS_AT_ONCE", 64)
        frame = draw_rows().select("bridge_id", "state_1", "state_2", "interval_years")
        names = frame["bridge_id"].unique().sort()
        ours = large_digests.digest_sorted(
            frame.sample(fraction=1.0, shuffle=True, seed=1).lazy(), names, len(frame)
        )
        assert ours == digest_values(frame.sort(frame.columns))


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
