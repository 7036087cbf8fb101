"""A run folder: begun once, held by one process, refused where it is something else."""

import errno
import os
import subprocess
import sys
import threading

import polars as pl
import pytest
from study_cases import draw_rows

from rekka.core import folders
from rekka.core.errors import BadOption, DamagedFile, RunFolderError
from rekka.core.folders import hold, read_sealed, write_sealed
from rekka.study.plan import PartitionPlan, TrialPlan, make_plan
from rekka.study.provenance import describe_run
from rekka.study.rows import split_rows
from rekka.study.run_folder import (
    add_line,
    begin_run,
    clear_run,
    keep_rows,
    load_plan,
    mark_run,
    read_provenance,
    read_rows,
    refuse_occupied,
    withdraw_run,
    write_tables,
)


@pytest.fixture
def rows():
    return split_rows(draw_rows(), PartitionPlan(), TrialPlan())


@pytest.fixture
def begun(tmp_path, rows):
    plan = make_plan(data={"kind": "given"})
    begin_run(tmp_path, plan)
    keep_rows(tmp_path, rows, describe_run(plan, rows, tmp_path))
    return tmp_path


class TestHold:
    def test_it_makes_the_folder(self, tmp_path):
        with hold(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b").is_dir()

    def test_nobody_else_comes_in(self, tmp_path):
        with (
            hold(tmp_path),
            pytest.raises(RunFolderError, match="Another process is working on") as caught,
            hold(tmp_path),
        ):
            pass
        assert str(caught.value).endswith(f"working on {tmp_path.name}. Wait until it has ended, or stop it.")

    def test_the_message_shows_how_far_the_other_is(self, tmp_path):
        for number in (4, 5):
            add_line(tmp_path / "log.txt", f"{number} of 40: Pier, max (exact): certified")
        with (
            hold(tmp_path),
            pytest.raises(RunFolderError, match=r"its log ends: .* 5 of 40: Pier, max"),
            hold(tmp_path),
        ):
            pass

    def test_other_threads_stay_out_too(self, tmp_path):
        refused = []

        def enter():
            try:
                with hold(tmp_path):
                    pass
            except RunFolderError as error:
                refused.append(error)

        with hold(tmp_path):
            thread = threading.Thread(target=enter)
            thread.start()
            thread.join()
        assert len(refused) == 1

    def test_it_is_free_again_afterwards(self, tmp_path):
        for _ in range(2):
            with hold(tmp_path):
                pass
        with pytest.raises(KeyError), hold(tmp_path):
            raise KeyError
        with hold(tmp_path):
            pass

    def test_a_killed_process_holds_nothing(self, tmp_path):
        code = "import sys, time; from pathlib import Path; from filelock import FileLock\n"
        code += "lock = FileLock(Path(sys.argv[1]) / '.lock'); lock.acquire(); print('held', flush=True); time.sleep(60)"
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout.readline() == "held\n"
            with pytest.raises(RunFolderError, match="Another process"), hold(tmp_path):
                pass
            child.kill()
        with hold(tmp_path):
            pass

    def test_a_path_through_a_file(self, tmp_path):
        (tmp_path / "file").write_text("x")
        for path in (tmp_path / "file", tmp_path / "file" / "run"):
            with (
                pytest.raises(RunFolderError, match=r"cannot be used as a run folder: .*Choose a folder"),
                hold(path),
            ):
                pass

    def test_a_folder_that_cannot_be_written(self, tmp_path, monkeypatch):
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(folders.FileLock, "acquire", refuse)
        with (
            pytest.raises(RunFolderError, match="cannot be used as a run folder: Permission denied"),
            hold(tmp_path),
        ):
            pass

    def test_a_full_disk_is_no_wrong_folder(self, tmp_path, monkeypatch):
        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(folders.FileLock, "acquire", full)
        with pytest.raises(OSError, match="No space left"), hold(tmp_path):
            pass


class TestOccupied:
    def test_new_and_empty_folders_will_do(self, tmp_path):
        refuse_occupied(tmp_path / "new")
        refuse_occupied(tmp_path)
        for name in (".lock", ".DS_Store", "study.toml.123.unfinished"):
            (tmp_path / name).write_text("")
        refuse_occupied(tmp_path)

    def test_a_file(self, tmp_path):
        (tmp_path / "run").write_text("x")
        with pytest.raises(RunFolderError, match="run is a file; a folder is needed"):
            refuse_occupied(tmp_path / "run")

    def test_other_files(self, tmp_path):
        for name in ("b", "a", "d", "c"):
            (tmp_path / name).mkdir()
        with pytest.raises(RunFolderError, match=r"holds other files \(a, b, c, ...\) and no study"):
            refuse_occupied(tmp_path)

    def test_a_study(self, begun):
        (begun / "trials" / "0001-a.json").write_text("x")
        with pytest.raises(RunFolderError, match=r"holds a study already, with 1 trial done.*--resume"):
            refuse_occupied(begun)


class TestBegin:
    def test_the_plan_comes_first(self, tmp_path):
        begin_run(tmp_path, make_plan())
        assert os.listdir(tmp_path) == ["study.toml"]
        assert load_plan(tmp_path) == make_plan()
        assert read_provenance(tmp_path) is None

    def test_rows_and_provenance_come_back(self, begun, rows):
        provenance = read_provenance(begun)
        again = read_rows(begun, provenance)
        assert again.frame.equals(rows.frame)
        assert (again.covariates, again.scheme, again.notes) == (rows.covariates, rows.scheme, rows.notes)

    def test_a_path_that_is_no_text_is_refused(self, tmp_path):
        plan = make_plan(data={"source": "b\udcff.csv"})
        with pytest.raises(BadOption, match=r"is not text: 'b\\udcff.csv'. Rename the file"):
            begin_run(tmp_path, plan)
        assert os.listdir(tmp_path) == []

    def test_taking_it_back(self, tmp_path):
        for made in (False, True):
            folder = tmp_path / "run"
            with hold(folder):
                begin_run(folder, make_plan())
                withdraw_run(folder, made=made)
            assert folder.exists() != made

    def test_a_folder_that_something_else_came_into_stays(self, tmp_path):
        folder = tmp_path / "run"
        with hold(folder):
            begin_run(folder, make_plan())
            (folder / "mine.txt").write_text("x")
            withdraw_run(folder, made=True)
        assert (folder / "mine.txt").exists()


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"PAR1", b"\0" * 2000])
    def test_rows_that_are_not_whole(self, begun, content):
        (begun / "partition.parquet").write_bytes(content)
        with pytest.raises(DamagedFile, match=r"partition.parquet is not whole"):
            read_rows(begun, read_provenance(begun))

    def test_rows_cut_short(self, begun):
        file = begun / "partition.parquet"
        file.write_bytes(file.read_bytes()[:-100])
        with pytest.raises(DamagedFile, match="not whole"):
            read_rows(begun, read_provenance(begun))

    def test_rows_that_are_gone(self, begun):
        (begun / "partition.parquet").unlink()
        with pytest.raises(DamagedFile, match=r"partition.parquet is gone"):
            read_rows(begun, read_provenance(begun))

    def test_other_rows(self, begun, rows):
        rows.frame.head(100).write_parquet(begun / "partition.parquet")
        with pytest.raises(DamagedFile, match="has been changed since the run began"):
            read_rows(begun, read_provenance(begun))

    def test_no_folder_and_no_run(self, tmp_path):
        with pytest.raises(RunFolderError, match="There is no run folder none"):
            load_plan(tmp_path / "none")
        with pytest.raises(RunFolderError, match=r"there is no study.toml in it. Start one with rekka compare"):
            load_plan(tmp_path)


def test_the_mark_is_of_rows_and_trials():
    plan = make_plan()
    marks = {
        mark_run(plan, "a"),
        mark_run(plan, "b"),
        mark_run(make_plan(study={"seed": 5}), "a"),
        mark_run(make_plan(study={"repeats": 2}), "a"),
    }
    assert len(marks) == 4
    assert mark_run(make_plan(data={"source": "moved.csv"}), "a") == mark_run(plan, "a")


def test_tables_have_lists_as_text(tmp_path):
    tables = {
        "trials": pl.DataFrame({"a": [[{"x": 1, "y": "b"}], None], "b": [["p", "q"], []], "c": ["主桁", "x,y"]})
    }
    write_tables(tmp_path, tables, {"doc": {"a": float("inf"), "b": "主桁"}})
    text = (tmp_path / "trials.csv").read_text(encoding="utf-8-sig")
    assert text == 'a,b,c\n1 b,p; q,主桁\n,"","x,y"\n'
    assert pl.read_parquet(tmp_path / "trials.parquet").equals(tables["trials"])
    assert (tmp_path / "doc.json").read_text(encoding="utf-8") == '{\n "a": "inf",\n "b": "主桁"\n}\n'


def test_the_mark_is_of_the_guard_too():
    assert mark_run(make_plan(guard={"resamples": 5}), "a") != mark_run(make_plan(), "a")


@pytest.mark.parametrize(("version", "read"), [(1, False), (2, True), (3, True), (4, False), (None, False)])
def test_a_run_of_another_version_is_refused(begun, version, read):
    file = begun / "provenance.json"
    body = read_sealed(file, "rekka-run")
    body["plan"]["version"] = version
    write_sealed(file, "rekka-run", body)
    if read:
        assert read_provenance(begun)["plan"]["version"] == version
    else:
        with pytest.raises(RunFolderError, match=r"whose trials this one does not read. Run its plan again"):
            read_provenance(begun)


class TestClear:
    OURS = ("stability/refits.csv", "forecast/forecast.json", "forecast/members.csv", "forecast/.lock")
    STRANGERS = ("stability/mine.csv", "forecast/mine.csv", "forecast/members.txt", "forecast/network.json")

    def fill(self, run):
        for name in (*self.OURS, *self.STRANGERS):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text("x")

    def left(self, run):
        return {file.relative_to(run).as_posix() for file in run.rglob("*") if file.is_file()} - {".lock"}

    def test_files_of_others_stay(self, begun):
        self.fill(begun)
        (begun / "forecast" / "forecast.json").write_text('{"format": "rekka-forecast"}')
        clear_run(begun)
        assert self.left(begun) == set(self.STRANGERS)

    def test_a_folder_that_is_no_forecast_stays_whole(self, begun):
        """Tables with the names of ours, beside a forecast.json that rekka did not write."""
        self.fill(begun)
        clear_run(begun)
        assert self.left(begun) == {*self.STRANGERS, "forecast/forecast.json", "forecast/members.csv"}
