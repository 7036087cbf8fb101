"""Killed, full, interrupted, moved, damaged, changed: a run goes on to the same table, or says why not."""

import errno
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from study_cases import draw_rows, file_names, log_of, model_texts, read_json, untimed, write_json, write_rows

import rekka
from rekka.core import files
from rekka.core.errors import BadOption, DamagedFile, RunFolderError, WriteError
from rekka.core.folders import write_sealed
from rekka.core.machine import describe_machine
from rekka.evaluation import calibration
from rekka.study import compare as compare_module
from rekka.study import runner
from rekka.study.choice import choose_case
from rekka.study.plan import make_plan
from rekka.study.provenance import describe_difference
from rekka.study.rows import StudyRows
from rekka.study.study import check_model
from rekka.study.trial import Key, describe_case, run_trial

METHODS = ["zscore", "boxcox"]
# few resamples and no folds: what is tested is the folder, not the choice
OPTIONS: dict[str, Any] = {
    "methods": METHODS,
    "cost": "evaluations",
    "select_on": "validation",
    "guard": {"resamples": 2},
}
FAULTS = "REKKA_FAULTS" in os.environ  # at many more moments and steps
KILLS, SEED = 8 if FAULTS else 1, 20260924

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Path:
    """A run of two cases by two methods that is done, beside its data: to compare with."""
    folder = tmp_path_factory.mktemp("expected")
    rekka.compare(write_rows(folder), out=folder / "run", **OPTIONS)
    return folder / "run"


@pytest.fixture
def run(expected, tmp_path) -> Path:
    """The same, to do something to."""
    shutil.copytree(expected.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def assert_same(run: Path, expected: Path) -> None:
    """The same files, the same trials, the same models, the same selection; seconds aside."""
    assert file_names(run) == file_names(expected)
    assert untimed(rekka.load_study(run)).equals(untimed(rekka.load_study(expected)))
    written, theirs = (pl.read_csv(folder / "trials.csv") for folder in (run, expected))
    times = ("seconds", "seconds_low", "seconds_high")
    assert written.drop(times).equals(theirs.drop(times))
    assert pl.read_parquet(run / "trials.parquet").equals(rekka.load_study(run).trials)
    assert model_texts(run) == model_texts(expected)
    for name in ("selection.csv", "cases.csv", "baselines.csv", "agreement.csv", "study.toml"):
        assert (run / name).read_bytes() == (expected / name).read_bytes(), name


class Zygote:
    """The process that forks those to be killed."""

    def __init__(self, log: Path) -> None:
        self.log = log
        measured = ("COV_", "COVERAGE_")  # a killed process leaves its measurements half written
        calm = {name: value for name, value in os.environ.items() if not name.startswith(measured)}
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "zygote.py"), str(calibration.TEST_SETS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                env=calm,
            )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n", self.said

    @property
    def said(self) -> str:
        return self.log.read_text()

    def __call__(self, out: Path, data: Path, options: dict[str, Any], **more: Any) -> int:
        request = {"out": str(out), "data": str(data), "options": options, **more}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def workers(self) -> int:
        """How many processes its children have left."""
        listed = subprocess.run(["ps", "-eo", "sess=,stat=,command="], capture_output=True, text=True).stdout
        lines = (line.split(maxsplit=2) for line in listed.splitlines())
        mine = (words for words in lines if words[0] == str(self.process.pid) and not words[1].startswith("Z"))
        return sum("popen_loky" in words[2] for words in mine)

    def has_no_workers(self, within: float = 30.0) -> bool:
        until = time.monotonic() + within
        while self.workers() and time.monotonic() < until:
            time.sleep(0.2)
        return self.workers() == 0


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    started = Zygote(tmp_path_factory.mktemp("zygote") / "stderr.txt")
    with started.process:
        yield started


@needs_fork
class TestKilled:
    def test_at_random_moments_and_finished(self, zygote, expected, tmp_path):
        """SIGKILL at moments spread over a whole run, again and again until it is done; then the next run."""
        data = write_rows(tmp_path)
        began = time.monotonic()
        assert zygote(tmp_path / "whole", data, OPTIONS) == 0
        whole = time.monotonic() - began
        moments, kills = random.Random(SEED), 0
        for number in itertools.count():
            out = tmp_path / f"run {number}"
            for _ in range(50):
                code = zygote(out, data, OPTIONS, after=moments.uniform(0.0, 0.8 * whole))
                assert code in (0, -signal.SIGKILL), zygote.said
                kills += code != 0
                if code == 0:
                    break
            else:
                assert zygote(out, data, OPTIONS) == 0, zygote.said
            assert_same(out, expected)
            if kills >= KILLS:
                break

    @pytest.mark.slow
    def test_with_workers(self, zygote, expected, tmp_path):
        """While they start, while they fit, while their fits are timed; they end by themselves, and hold nothing."""
        data, out = write_rows(tmp_path), tmp_path / "run"
        moments = ((0, 0.7), (1, 0.01), (4, 0.05)) if FAULTS else ((1, 0.01),)
        for trials, jitter in moments:
            code = zygote(out, data, OPTIONS, workers=2, trials=trials, after=jitter)
            assert code in (0, -signal.SIGKILL), zygote.said
            assert zygote.has_no_workers()
        assert zygote(out, data, OPTIONS, workers=2 if FAULTS else 1) == 0, zygote.said
        assert_same(out, expected)

    def test_by_ctrl_c_while_workers_fit(self, zygote, expected, tmp_path):
        """In a terminal the workers get it too."""
        data, out = write_rows(tmp_path), tmp_path / "run"
        code = zygote(out, data, OPTIONS, workers=2, trials=1, after=0.0, signal="SIGINT", group=True)
        assert code in (0, 1), zygote.said  # any other line would be a worker's, that says where it was
        assert zygote.has_no_workers()
        if code:  # it may have been done by then
            assert log_of(out).endswith("stopped: KeyboardInterrupt\n")
        rekka.resume_study(out)
        assert_same(out, expected)

    def test_a_file_that_cannot_grow(self, zygote, expected, tmp_path):
        """The kernel refuses to write on, at a size that each kind of file passes in turn."""
        data, out = write_rows(tmp_path), tmp_path / "run"
        for limit in (500, 1500, 6000, 14000):
            if zygote(out, data, OPTIONS, limit=limit) == 0:
                break
            assert not [name for name in file_names(out) if "unfinished" in name]
        assert "cannot be written: File too large." in zygote.said
        assert zygote(out, data, OPTIONS) == 0
        assert_same(out, expected)

    def test_two_processes(self, zygote, expected, tmp_path):
        data, out = write_rows(tmp_path), tmp_path / "run"
        thread = threading.Thread(target=zygote, args=(out, data, OPTIONS))
        thread.start()
        log = out / "log.txt"
        while thread.is_alive() and not (log.exists() and log.read_text(encoding="utf-8").endswith("\n")):
            time.sleep(0.001)
        with pytest.raises(
            RunFolderError, match=r"Another process is working on run; its log ends: .* \[\d+\] .*Wait"
        ):
            rekka.resume_study(out)
        thread.join()
        assert_same(out, expected)


class Died(BaseException):
    """Stands for a kill: nothing is cleaned up after it."""


class Bomb:
    """Lets so many steps of writing pass, then strikes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        self.left, self.error = 10**9, error
        for name in ("fsync", "replace"):
            monkeypatch.setattr(files.os, name, self._wrap(getattr(os, name)))
        if isinstance(error, Died):
            unlink = Path.unlink
            monkeypatch.setattr(Path, "unlink", lambda *a, **k: None if self.left < 0 else unlink(*a, **k))

    def _wrap(self, act: Any) -> Any:
        def step(*given: Any) -> None:
            self.left -= 1
            if self.left < 0:
                raise self.error
            act(*given)

        return step


@pytest.mark.parametrize(
    "error",
    [Died(), OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()],
    ids=["kill", "full", "Ctrl-C"],
)
def test_at_every_step_of_every_write(error, expected, tmp_path, monkeypatch):
    """Each of the steps of a run, flushing a file, moving it, flushing its folder, is the last; then it goes on."""
    cache: dict[Any, Any] = {}

    def once(act: Any) -> Any:  # the fits themselves are not what is tested
        def acted(rows: Any, *given: Any, **more: Any) -> Any:
            key = (act.__name__, rows.name, *given)
            return cache[key] if key in cache else cache.setdefault(key, act(rows, *given, **more))

        return acted

    def choose_once(contest: Any) -> Any:
        key = (contest.preset, contest.rows.name)
        return cache[key] if key in cache else cache.setdefault(key, choose_case(contest))

    def check_once(rows: Any, case: str, model: str, *, seed: int) -> Any:
        key = ("check_model", case)
        return cache[key] if key in cache else cache.setdefault(key, check_model(rows, case, model, seed=seed))

    monkeypatch.setattr("rekka.study.compare.check_model", check_once)
    monkeypatch.setattr(runner, "run_trial", once(run_trial))
    monkeypatch.setattr(runner, "describe_case", once(describe_case))
    monkeypatch.setattr(runner, "choose_case", choose_once)
    monkeypatch.setattr(rekka.Study, "tables", lambda study: {"trials": study.trials})  # one table for all of them
    monkeypatch.setattr(rekka.Study, "documents", lambda study: {})
    kept = [n for n in file_names(expected) if "/" in n or not n.endswith((".csv", ".json"))]
    data, bomb = write_rows(tmp_path), Bomb(monkeypatch, error)
    # each seventh or eleventh step is the last, so that every kind of step is, and all of them with REKKA_FAULTS
    stride = 1 if FAULTS else 7 if isinstance(error, Died) else 11
    theirs = untimed(rekka.load_study(expected))
    for steps in itertools.count(step=stride):
        out = tmp_path / "runs" / f"{steps}"
        bomb.left = steps
        try:
            rekka.compare(data, out=out, **OPTIONS)
        except BaseException as caught:
            told = isinstance(caught, WriteError) and caught.cause == "No space left on device"
            assert caught is error or (isinstance(error, OSError) and told)  # noqa: PT017 (any of three)
        else:
            break
        bomb.left = 10**9
        if (out / "study.toml").exists():
            study = rekka.resume_study(out)
        else:
            study = rekka.compare(data, out=out, **OPTIONS)
        assert untimed(study).equals(theirs)
        assert file_names(out) == sorted([*kept, "provenance.json", "confirmation.json", "trials.csv"])
        shutil.rmtree(out)
    # 3 files of the run, 2 of cases, 4 of trials, 2 choices, 1 look and 2 tables at 3 steps each; 8 models and
    # operators at 1; 2 trials again at 3, with their models at 1, for the test of fit
    last = 58 if os.name == "posix" else 42
    assert steps - stride < last <= steps


class TestStoppedByHand:
    def test_in_the_middle_of_a_fit(self, expected, tmp_path, monkeypatch):
        seen = []

        def interrupted(rows: Any, key: Key, *given: Any, **more: Any) -> Any:
            seen.append(key)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return run_trial(rows, key, *given, **more)

        monkeypatch.setattr(runner, "run_trial", interrupted)
        out = tmp_path / "run"
        with pytest.raises(KeyboardInterrupt):
            rekka.compare(write_rows(tmp_path), out=out, **OPTIONS)
        assert log_of(out).endswith("stopped: KeyboardInterrupt\n")
        assert len(rekka.load_study(out).trials) == 2
        rekka.resume_study(out)
        assert [str(key) for key in seen[3:]] == [str(key) for key in seen[2:3]] + ["Pier, boxcox (exact)"]
        assert "resumed: rekka.compare(...); 2 trials kept" in log_of(out)
        assert_same(out, expected)

    def test_before_the_first_trial(self, expected, tmp_path, monkeypatch):
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(compare_module, "open_rows", interrupted)
        out = tmp_path / "run"
        with pytest.raises(KeyboardInterrupt):
            rekka.compare(write_rows(tmp_path), out=out, **OPTIONS)
        assert sorted(os.listdir(out)) == [".lock", "study.toml"]
        monkeypatch.undo()
        rekka.resume_study(out)
        assert_same(out, expected)


class TestGoesOn:
    def test_a_run_that_is_done(self, run, monkeypatch):
        before = {name: (run / name).stat().st_mtime_ns for name in file_names(run)}
        first = rekka.load_study(run).trials
        (run / "trials.csv").write_text("spoiled")
        (run / "methods.csv").unlink()
        monkeypatch.setattr(runner, "run_trial", None)  # nothing is fitted
        monkeypatch.setattr(runner, "describe_case", None)
        study = rekka.resume_study(run)
        assert study.trials.equals(first)
        assert pl.read_csv(run / "trials.csv")["accuracy"].to_list() == first["accuracy"].to_list()
        after = {name: (run / name).stat().st_mtime_ns for name in file_names(run)}
        touched = {name for name in before if before[name] != after[name]}
        assert touched == {name for name in before if "/" not in name and name.endswith((".csv", ".json"))} - {
            "provenance.json",
            "confirmation.json",
        } | {"trials.parquet", "log.txt", *({".lock"} & touched)}
        assert "resumed: rekka.compare(...); 4 trials kept" in log_of(run)

    def test_moved_together_with_its_data(self, run, expected, tmp_path):
        new = tmp_path / "elsewhere" / "deep"
        new.mkdir(parents=True)
        shutil.move(run, new / "run")
        shutil.move(tmp_path / "rows.csv", new / "rows.csv")
        (new / "run" / "trials" / "0002-deck-slab-exact-boxcox.json").unlink()
        rekka.resume_study(new / "run")
        assert "no longer there" not in log_of(new / "run")
        assert_same(new / "run", expected)

    def test_without_its_data(self, run, expected, tmp_path):
        (tmp_path / "rows.csv").unlink()
        (run / "trials" / "0002-deck-slab-exact-boxcox.json").unlink()
        rekka.resume_study(run)
        assert "no longer there: ../rows.csv; going on with the folder's copy of the rows" in log_of(run)
        assert_same(run, expected)

    def test_with_data_written_anew_that_hold_the_same(self, run, expected, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        rekka.resume_study(run)
        assert "read again: ../rows.csv, which has changed" in log_of(run)
        assert_same(run, expected)

    def test_with_the_rows_given_again(self, run):
        assert len(rekka.resume_study(run, draw_rows()).trials) == 4

    def test_with_the_plan_that_it_has(self, run):
        assert len(rekka.resume_study(run, expected=rekka.load_study(run).plan).trials) == 4

    def test_begun_with_a_plan_of_version_2(self, run, monkeypatch):
        provenance = read_json(run / "provenance.json")["body"]
        assert provenance["plan"]["version"] == 3
        provenance["plan"]["version"] = 2
        write_sealed(run / "provenance.json", "rekka-run", provenance)
        plan = run / "study.toml"
        plan.write_text(plan.read_text().replace("version = 3\n", "version = 2\n"))
        monkeypatch.setattr(runner, "run_trial", None)  # nothing is fitted
        assert len(rekka.resume_study(run).trials) == 4

    def test_under_another_version(self, run):
        provenance = read_json(run / "provenance.json")["body"]
        provenance["versions"]["numpy"] = "1.0"
        write_sealed(run / "provenance.json", "rekka-run", provenance)
        rekka.resume_study(run)
        assert "numpy was 1.0 when the run began" in log_of(run)
        assert f"cores was {describe_machine()['cores']}" not in log_of(run)

    def test_with_foreign_files_left_alone(self, run, expected):
        foreign = [
            "notes.txt",
            "trials/mine.json",
            "models/0001.json.bak",
            "mine/0001-x.json.7.unfinished",
            "a.unfinished",
        ]
        (run / "mine").mkdir()
        for name in foreign:
            (run / name).write_text("mine")
        ours = ["trials/0001-deck-slab-exact-zscore.json.77.unfinished", "study.toml.3.unfinished"]
        for name in ours:
            (run / name).write_text('{"format": "rek')
        rekka.resume_study(run)
        assert all((run / name).read_text() == "mine" for name in foreign)
        assert not any((run / name).exists() for name in ours)
        for name in foreign:
            (run / name).unlink()
        assert_same(run, expected)

    @pytest.mark.parametrize("folder", ["cases", "trials", "models", "scalings"])
    @pytest.mark.parametrize("gone", [True, False], ids=["gone", "damaged"])
    def test_with_every_record_damaged(self, run, expected, folder, gone):
        contents = itertools.cycle([b"\0\0\0\0", b"{", b""])
        for file in (run / folder).iterdir():
            if gone:
                file.unlink()
            else:
                file.write_bytes(next(contents))
        rekka.resume_study(run)
        again = 0 if gone and folder in ("cases", "trials") else len(list((run / folder).iterdir()))
        assert log_of(run).count("recomputed: ") == again
        assert_same(run, expected)

    @pytest.mark.parametrize("name", ["partition.parquet", "provenance.json"])
    @pytest.mark.parametrize("content", [None, b"", b"PAR1"], ids=["gone", "empty", "half"])
    def test_with_its_rows_or_provenance_made_again(self, run, expected, name, content, monkeypatch):
        if content is None:
            (run / name).unlink()
        else:
            (run / name).write_bytes(content)
        monkeypatch.setattr(runner, "run_trial", None)  # the trials are still good
        rekka.resume_study(run)
        assert "rows kept again: " in log_of(run)
        assert_same(run, expected)

    def test_from_a_program(self, tmp_path):
        rekka.compare(draw_rows(), out=tmp_path / "run", **OPTIONS)
        first = rekka.load_study(tmp_path / "run").trials
        assert rekka.resume_study(tmp_path / "run").trials.equals(first)

    def test_fits_that_were_not_timed(self, run, expected):
        """As workers leave them, and then with other workers, or none."""
        study = rekka.load_study(run)
        store = study.read_fitted.__self__
        for trial in study.results[1:3]:
            store.add_trial(store.fitted(trial.key).with_seconds(()))
        half = rekka.load_study(run)
        assert half.trials["timings"].to_list() == [1, 0, 0, 1]
        assert half.trials["seconds"].null_count() == 2
        assert rekka.resume_study(run).trials["timings"].to_list() == [1] * 4
        assert_same(run, expected)


class TestDifferences:
    def rows(self, **columns: Any) -> StudyRows:
        checked = {"bridge_id": ["B", "C"], "case": "Pier", "part": "train", "state_1": 1, "state_2": 1}
        frame = pl.DataFrame(checked | columns)
        return StudyRows(frame, (), "")

    def test_columns_in_another_order(self):
        one, other = self.rows(a=1, b=2), self.rows(b=2, a=1)
        assert describe_difference(one, other) == "columns differ: they are in another order"

    def test_another_kind(self):
        assert describe_difference(self.rows(a=1), self.rows(a="1")) == "a was Int32 and is String"

    def test_missing_now(self):
        words = "a of bridge C (Pier) was 2 and is None; 1 such difference in all"
        assert describe_difference(self.rows(a=[1, 2]), self.rows(a=[1, None])) == words

    def test_what_equality_does_not_tell(self):
        assert describe_difference(self.rows(a=0.0), self.rows(a=-0.0)) == "a zero has another sign"


class TestIsRefused:
    def test_a_plan_edited_by_hand(self, run):
        plan = run / "study.toml"
        plan.write_text(plan.read_text().replace("seed = 20260924", "seed = 5"))
        for act in (rekka.resume_study, rekka.load_study):
            with pytest.raises(
                RunFolderError, match=r"partition.seed was 20260924, is 5; study.seed was 20260924, is 5"
            ):
                act(run)

    def test_other_options(self, run):
        plan = rekka.load_study(run).plan
        other = make_plan(**plan.model_dump() | {"study": plan.study.model_dump() | {"methods": ["max"]}})
        with pytest.raises(
            RunFolderError, match=r"run is of another study: study.methods was zscore, boxcox, is max"
        ) as caught:
            rekka.resume_study(run, expected=other)
        assert caught.value.differences == ["study.methods was zscore, boxcox, is max"]

    @pytest.mark.parametrize("content", ["", "half = ", "[columns]\n"])
    def test_a_plan_that_is_none(self, run, content):
        (run / "study.toml").write_text(content)
        with pytest.raises(BadOption, match=r"study.toml is not"):
            rekka.resume_study(run)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda rows: rows.drop("traffic_mean"), "columns differ: traffic_mean"),
            (lambda rows: rows.head(239), "Deck slab had 36 golden rows and has 35"),
            (lambda rows: rows.with_columns(case=pl.lit("Arch")), "Arch had 0 golden rows and has 72"),
            (
                lambda rows: rows.with_columns(pl.col("bridge_id").str.replace("B-000003", "C-3")),
                "bridge_id of bridge B-000003",
            ),
            (
                lambda rows: rows.with_columns(pl.col("bridge_length") + 1),
                "bridge_length of bridge .* was .* and is .*; 240 such differences in all",
            ),
            (lambda rows: rows.reverse(), "the rows are in another order"),
        ],
    )
    def test_other_data(self, run, tmp_path, change, words):
        write_rows(tmp_path, change(draw_rows()))
        with pytest.raises(
            RunFolderError,
            match=f"The data of run have changed since it began on 20.*: .*({words}).*put the data back",
        ):
            rekka.resume_study(run)
        with pytest.raises(RunFolderError, match="have changed"):
            rekka.resume_study(run, change(draw_rows()))

    def test_data_that_cannot_be_read_any_more(self, run, tmp_path):
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        with pytest.raises(
            RunFolderError, match=r"The data of run have changed.*\.\./rows.csv is another file, which is refused"
        ):
            rekka.resume_study(run)

    def test_one_table_changed_and_the_other_gone(self, tmp_path):
        drawn = rekka.simulate_inventory(120, preset="plain")
        for name in ("inspections", "inventory", "traffic"):
            getattr(drawn, name).write_csv(tmp_path / f"{name}.csv")
        joins = [{"file": tmp_path / "inventory.csv"}, {"file": tmp_path / "traffic.csv"}]
        rekka.compare(
            tmp_path / "inspections.csv", {"join": joins}, out=tmp_path / "run", methods=["zscore"], cases=["Pier"]
        )
        (tmp_path / "traffic.csv").unlink()
        assert len(rekka.resume_study(tmp_path / "run").trials) == 1
        assert "no longer there: ../traffic.csv" in log_of(tmp_path / "run")
        (tmp_path / "inventory.csv").write_text("x")
        with pytest.raises(
            RunFolderError, match=r"\.\./inventory.csv is another file, and \.\./traffic.csv is gone"
        ):
            rekka.resume_study(tmp_path / "run")

    @pytest.mark.parametrize("name", ["partition.parquet", "provenance.json"])
    def test_a_run_without_its_copy_and_its_source(self, run, tmp_path, name):
        (tmp_path / "rows.csv").unlink()
        (run / name).write_bytes(b"")
        with pytest.raises(
            RunFolderError, match=rf"run cannot continue: {name} is not whole.*, and \.\./rows.csv is gone"
        ):
            rekka.resume_study(run)
        rekka.resume_study(run, draw_rows())  # unless they are given

    def test_a_copy_lost_and_other_data(self, run, tmp_path):
        (run / "partition.parquet").unlink()
        write_rows(tmp_path, draw_rows().head(239))
        with pytest.raises(
            RunFolderError, match=r"partition.parquet is gone, and Deck slab had 36 golden rows and has 35"
        ):
            rekka.resume_study(run)
        write_rows(tmp_path, draw_rows().with_columns(pl.col("bridge_length") * 2))
        with pytest.raises(RunFolderError, match=r"partition.parquet is gone, and other values are there"):
            rekka.resume_study(run)

    def test_rows_of_a_program_that_were_not_kept(self, tmp_path):
        study = {"methods": METHODS, "select_on": "validation"}
        plan = make_plan(data={"kind": "given"}, study=study, guard={"resamples": 2})
        (tmp_path / "study.toml").write_text(plan.to_toml())
        with pytest.raises(
            RunFolderError, match=r"stopped before its rows were kept, and its rows came from a program"
        ):
            rekka.resume_study(tmp_path)
        assert len(rekka.resume_study(tmp_path, draw_rows()).trials) == 4

    def test_loading_without_provenance(self, run):
        file = run / "provenance.json"
        write_json(file, read_json(file) | {"sha256": "x"})
        with pytest.raises(DamagedFile, match=r"provenance.json has been changed since it was written"):
            rekka.load_study(run)

    def test_no_run(self, tmp_path):
        with pytest.raises(RunFolderError, match="There is no run folder none"):
            rekka.resume_study(tmp_path / "none")
        with pytest.raises(RunFolderError, match="is not a run folder"):
            rekka.resume_study(tmp_path)
        with pytest.raises(BadOption, match="workers is 0"):
            rekka.resume_study(tmp_path, workers=0)
