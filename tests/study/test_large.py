"""A study whose rows are gone through block by block is the study of the same rows held whole."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from study_cases import log_of

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues, DamagedFile, RunFolderError
from rekka.data import partition as partition_module
from rekka.streaming import blocks
from rekka.study import digests
from rekka.study import rows as module
from rekka.study.plan import make_plan
from rekka.study.rows import Room, StudyRows, open_rows, split_rows
from rekka.study.run_folder import load_plan, open_kept_rows, read_provenance
from rekka.study.study import TIMES

GB = 1_000_000_000
METHODS = ("zscore", "boxcox")
OPTIONS: dict[str, Any] = {"methods": METHODS, "guard": {"resamples": 2}}
COSTS = ("iterations", "evaluations", "decrement", "shortfall", "condition_number")  # of the way, not of the fit


def draw_rows() -> pl.DataFrame:
    """Two cases, of 3,000 and of 1,500 rows, with a covariate that does not vary in one of them."""
    deck, pier = (rekka.simulate_transitions(n, n_states=4, seed=n).drop("bridge_area") for n in (3000, 1500))
    return pl.concat(
        [
            deck.with_columns(case=pl.lit("Deck"), width=pl.lit(7.5)),
            pier.with_columns(case=pl.lit("Pier"), width=pl.col("bridge_length") / 3 + pl.col("traffic_mean") % 7),
        ]
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("table") / "rows.parquet"
    draw_rows().write_parquet(file)
    return file


@pytest.fixture(scope="module")
def ordinary(table: Path, tmp_path_factory: pytest.TempPathFactory) -> rekka.Study:
    return rekka.compare(table, out=tmp_path_factory.mktemp("ordinary") / "run", **OPTIONS)


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Cases of more than 2,000 rows are large, blocks have 512 rows, and 1,500 rows are sorted at once."""
    patch.setattr(blocks, "WHOLE", 2000)
    patch.setattr(blocks, "BLOCK_ROWS", 512)
    patch.setattr(digests, "ROWS_AT_ONCE", 1500)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


@pytest.fixture(scope="module", params=["held", "streamed"])
def study(request: pytest.FixtureRequest, table: Path, tmp_path_factory: pytest.TempPathFactory) -> rekka.Study:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        patch.setattr(module, "HELD_BYTES", 24 if request.param == "held" else GB)
        return rekka.compare(table, out=tmp_path_factory.mktemp(request.param) / "run", memory="1GB", **OPTIONS)


def open_large(table: Any, memory: int = GB, **study: Any) -> StudyRows:
    plan = make_plan(data={"kind": "given"}, study=study)
    data = pl.scan_parquet(table) if isinstance(table, Path) else table
    rows = open_rows(plan, data, Path(), memory)
    assert rows.streamed
    return rows


def assert_close(one: pl.DataFrame, other: pl.DataFrame, tolerance: float) -> None:
    assert one.columns == other.columns
    for name in one.columns:
        if one[name].dtype == pl.Float64:
            ours, theirs = (frame[name].fill_null(np.nan).to_numpy() for frame in (one, other))
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            assert one[name].equals(other[name]), name


@pytest.mark.usefixtures("few")
class TestSameStudy:
    def test_trials_choices_and_confirmation(self, study: rekka.Study, ordinary: rekka.Study) -> None:
        # the exponent of Box-Cox is found by Brent's method, as exactly as it needs to be
        for method, tolerance in (("zscore", 1e-10), ("boxcox", 1e-7)):
            ours, theirs = (one.trials.filter(method=method).drop(TIMES, COSTS) for one in (study, ordinary))
            assert_close(ours, theirs, tolerance)
        for ours, theirs in zip(study.choices, ordinary.choices, strict=True):
            assert (ours.case, ours.chosen, ours.kept) == (theirs.case, theirs.chosen, theirs.kept)
        assert_close(study.baselines, ordinary.baselines, 1e-10)
        assert_close(study.cases, ordinary.cases, 0.0)
        assert_close(study.optimism, ordinary.optimism, 1e-8)
        assert_close(*(one.confirmation.drop("made", "model_sha256") for one in (study, ordinary)), 1e-8)
        drawn = study.verdicts.select("certified", "drawn").drop_nulls().unique().rows()
        assert drawn == [(1, 1)]  # of 2 resamples: the other decides nothing

    def test_the_run_folder_holds_the_same_rows(self, study: rekka.Study, ordinary: rekka.Study) -> None:
        assert study.folder
        assert ordinary.folder
        ours, theirs = (pl.read_parquet(run / "partition.parquet") for run in (study.folder, ordinary.folder))
        assert ours.equals(theirs)
        assert study.read_rows().digest() == ordinary.read_rows().digest()
        assert rekka.load_study(study.folder).read_rows().frame.equals(theirs)

    def test_the_log_says_how_rows_are_gone_through(self, study: rekka.Study) -> None:
        assert study.folder
        assert "4,500 rows, memory limit 1 GB: 1 case read whole, 1 case " in log_of(study.folder)

    def test_its_draws_are_the_same(self, study: rekka.Study, ordinary: rekka.Study) -> None:
        """Rows are read into memory for them, however many they are."""
        options: dict[str, Any] = {"kinds": ["splits"], "resamples": 1, "cases": ["Deck"], "workers": 1}
        ours, theirs = (rekka.stability(one, **options).refits for one in (study, ordinary))
        assert ours.equals(theirs)

    def test_its_checks_find_the_same(self, study: rekka.Study, ordinary: rekka.Study) -> None:
        ours, theirs = (
            {one.code: one.verdict for one in rekka.check_study(found)}
            for found in (rekka.load_study(study.folder or ""), ordinary)
        )
        assert ours.pop("R611") == "not applicable"  # rows that are streamed are not tested, and it says so
        assert theirs.pop("R611") == "passed"
        assert ours == theirs


@pytest.mark.usefixtures("few")
class TestRows:
    def test_small_cases_are_what_they_always_were(self, table: Path) -> None:
        rows = open_large(table)
        whole = split_rows(pl.read_parquet(table), make_plan().partition, make_plan().study)
        pier, same = rows.case("Pier", "auto"), whole.case("Pier", "auto")
        assert not pier.streamed
        assert pier.frame("train").equals(same.frame("train"))
        assert pier.frame("golden").equals(same.frame("golden"))
        assert rows.case("Deck").streamed
        assert rows.digest() == whole.digest()
        assert rows.counts().equals(whole.counts())

    def test_of_many_cases_only_the_smallest_are_kept_whole(self, table: Path) -> None:
        frame = pl.read_parquet(table).filter(case="Deck")
        number = pl.int_range(pl.len()) % 10
        rows = open_large(frame.with_columns(case=pl.format("{}", pl.min_horizontal(number, 6))).lazy())
        assert rows.large == ()
        tight = replace(rows, room=Room.choose(make_plan().study, rows.survey, 2 * 700 * module.KEPT_BYTES))
        assert (tight.room.whole, tight.large) == (300, ("6",))
        assert Room.choose(make_plan().study, rows.survey, 100).whole == 0

    @pytest.mark.parametrize("many", [False, True])
    @pytest.mark.parametrize("scheme", ["paper", "date", "bridge", "auto"])
    def test_every_split(self, scheme: str, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = pl.concat([draw_rows().with_columns(visit_1=visit, visit_2=visit + 1) for visit in (3, 4)])
        day = pl.date(2010, 1, 1) + pl.duration(days=pl.int_range(pl.len()))
        frame = frame.with_columns(date_1=day, date_2=day + pl.duration(days=400))
        until = {"until": frame["date_2"][5000]} if scheme == "date" else {}
        plan = make_plan(data={"kind": "given"}, partition={"scheme": scheme, **until})
        theirs = split_rows(frame, plan.partition, plan.study)
        if many:
            monkeypatch.setattr(partition_module, "ROWS_AT_ONCE", 2000)
            monkeypatch.setattr(partition_module, "MANY_BRIDGES", 100)
        ours = open_rows(plan, frame.lazy(), Path(), GB)
        assert ours.streamed
        assert ours.scheme == theirs.scheme
        assert ours.digest() == theirs.digest()

    def test_a_folder_of_files_is_one_table(self, tmp_path: Path, table: Path) -> None:
        frame = pl.read_parquet(table)
        for number, first in enumerate(range(0, len(frame), 1000)):
            frame[first : first + 1000].write_parquet(tmp_path / f"part-{number}.parquet")
        plan = make_plan(data={"kind": "tables", "source": [str(tmp_path)]})
        rows = open_rows(plan, None, Path(), GB)
        assert rows.digest() == open_large(table).digest()

    def test_its_own_file_goes_with_the_rows(self, table: Path) -> None:
        rows = open_large(table)
        file = rows.table
        assert file.exists()
        del rows
        assert not file.exists()

    def test_only_some_cases_and_covariates(self, table: Path) -> None:
        rows = open_large(table, cases=("Deck",), covariates=("bridge_length",))
        assert rows.cases == ("Deck",)
        assert rows.covariates == ("bridge_length",)
        with pytest.raises(BadOption, match=r"There is no component 'Dek'\. .* Did you mean Deck"):
            open_large(table, cases=("Dek",))

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            ({"state_2": 1}, BadStates, "row 2345 "),
            ({"bridge_length": None}, BadValues, r"bridge_length .*\(row 2345\)"),
            ({"interval_years": -1.0}, BadValues, "row 2345"),
        ],
    )
    def test_bad_rows_are_named(self, table: Path, change: dict[str, Any], error: Any, words: str) -> None:
        here = pl.int_range(pl.len()) == 2345
        frame = pl.read_parquet(table).with_columns(state_1=pl.when(here).then(2).otherwise("state_1"))
        name, value = next(iter(change.items()))
        frame = frame.with_columns(pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name))
        with pytest.raises(error, match=words):
            open_large(frame.lazy())

    def test_rows_without_a_case_are_left_out_and_named(self, table: Path) -> None:
        frame = pl.read_parquet(table)
        blank = pl.when(pl.int_range(pl.len()) == 2345).then(None).otherwise("case")
        rows = open_large(frame.with_columns(case=blank).lazy())
        assert len(rows) == len(frame) - 1
        assert any("the case is blank in 1 row (row 2345); excluded" in note for note in rows.notes)

    def test_a_table_without_bridges_has_one_a_row(self, table: Path) -> None:
        frame = pl.read_parquet(table).drop("bridge_id", "case")
        rows = open_large(frame.lazy())
        assert rows.cases == ("all",)
        case = rows.case("all")
        assert case.streamed
        assert case.trained == case.counts["train"]
        assert rows.digest() == split_rows(frame, make_plan().partition, make_plan().study).digest()


@pytest.mark.usefixtures("few")
class TestRefused:
    def test_what_needs_all_rows_in_memory_fails_with_a_sentence(self, table: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(module, "WHOLE_BYTES", GB)
        study = rekka.compare(
            table, cases=["Deck"], methods=["zscore", "ridge"], memory="1GB", guard={"resamples": 2}
        )
        failed = study.trials.filter(method="ridge")
        assert failed["status"].to_list() == ["not fitted"]
        assert "ridge needs all rows in memory, and the 1," in failed["reason"][0]

    def test_where_there_is_room_they_are_read_whole(self, table: Path) -> None:
        rows = open_large(table, methods=("zscore", "ridge"))
        assert not rows.case("Deck").streamed

    @pytest.mark.parametrize(
        ("study", "words"),
        [
            ({"select_on": "folds"}, "select_on = 'folds' refits .* Deck has 3,000 rows, more than .* in 1 GB"),
            ({"methods": ("zscore", "pooled")}, "pooled fits all components together, and Deck has 3,000 rows"),
        ],
    )
    def test_before_anything_is_fitted(
        self, table: Path, study: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "WHOLE_BYTES", GB)
        with pytest.raises(BadOption, match=words):
            open_large(table, **study)

    def test_no_rows_to_judge_on(self, table: Path) -> None:
        frame = pl.read_parquet(table).with_columns(part=pl.lit("train"))
        with pytest.raises(BadOption, match="Deck has no validation rows to judge methods on"):
            open_large(frame.lazy())

    @pytest.mark.parametrize("memory", ["a lot", "1XB", "10MB", True, -5])
    def test_a_silly_limit(self, table: Path, tmp_path: Path, memory: Any) -> None:
        with pytest.raises(BadOption, match="memory is "):
            rekka.compare(table, memory=memory, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("few")
class TestResume:
    @pytest.fixture
    def stopped(self, table: Path, tmp_path: Path) -> Path:
        """A run that was stopped after its first trial."""
        seen: list[str] = []

        def stop(trial: Any, _done: int, _planned: int) -> None:
            seen.append(str(trial.key))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rekka.compare(table, cases=["Deck"], out=tmp_path / "run", on_trial=stop, **OPTIONS)
        assert len(seen) == 1
        return tmp_path / "run"

    def test_goes_on(self, stopped: Path, ordinary: rekka.Study) -> None:
        told: list[str] = []
        study = rekka.resume_study(stopped, memory="2GB", on_rows=lambda rows: told.append(rows.tell_memory()))
        assert len(study.trials) == 2
        assert told == ["3,000 rows, memory limit 2 GB: 1 case with its training rows held in memory"]
        theirs = ordinary.confirmation.filter(case="Deck")
        assert_close(*(one.drop("made", "model_sha256") for one in (study.confirmation, theirs)), 1e-8)

    def test_a_damaged_copy_is_made_again(self, stopped: Path) -> None:
        (stopped / "partition.parquet").write_bytes(b"PAR1")
        rekka.resume_study(stopped)
        assert "rows kept again: partition.parquet is not whole" in log_of(stopped)

    def test_a_copy_that_was_altered_is_not_trusted(self, stopped: Path) -> None:
        """Read again from the source; where that is gone, refused. A look at the study takes it as it is."""
        file = stopped / "partition.parquet"
        pl.read_parquet(file).with_columns(pl.col("bridge_length") + 1.0).write_parquet(file)
        begun, plan = read_provenance(stopped), load_plan(stopped)
        with pytest.raises(DamagedFile, match="has been changed since the run began"):
            open_kept_rows(stopped, begun, plan, GB)
        looked_at = open_kept_rows(stopped, begun, plan, GB, trusted=True)
        assert looked_at.streamed
        with pytest.raises(DamagedFile, match="has been changed since the run began"):
            _ = looked_at.frame

    def test_another_table_is_refused(self, stopped: Path, table: Path) -> None:
        frame = pl.read_parquet(table)
        other = frame.with_columns(bridge_length=pl.col("bridge_length") + 1.0)
        with pytest.raises(RunFolderError, match="other values are there"):
            rekka.resume_study(stopped, other.lazy())
        with pytest.raises(RunFolderError, match=r"Deck had \d+ golden rows and has \d+\."):
            rekka.resume_study(stopped, frame[:-1].filter(pl.int_range(pl.len()) > 50).lazy())

    def test_one_that_was_killed_while_its_rows_were_split(
        self, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Room, "choose", killed)
        with pytest.raises(KeyboardInterrupt):
            rekka.compare(table, cases=["Deck"], out=tmp_path / "run", **OPTIONS)
        monkeypatch.undo()
        assert not list((tmp_path / "run").glob("*.unfinished"))
        assert len(rekka.resume_study(tmp_path / "run").trials) == 2


def test_a_lazy_frame_of_few_rows_is_an_ordinary_study(table: Path, ordinary: rekka.Study) -> None:
    study = rekka.compare(pl.scan_parquet(table), **OPTIONS)
    assert study.trials.drop(TIMES).equals(ordinary.trials.drop(TIMES))


@pytest.mark.usefixtures("few")
def test_a_case_on_its_way_to_another_process(table: Path) -> None:
    """A case goes to another process without its rows."""
    case = open_large(table).case("Deck", "auto")
    assert case.streamed
    case.source("train")
    assert len(pickle.dumps(case)) < 5000
    again = pickle.loads(pickle.dumps(case))
    assert again.persist("validation").scores == case.persist("validation").scores
