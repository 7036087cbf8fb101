"""Files that are whole or not there, and what may be written over."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from xlsxwriter.exceptions import FileCreateError

from rekka.core import files
from rekka.core.errors import BadOption, WriteError
from rekka.core.files import (
    append_line,
    has_columns,
    has_mark,
    is_full_disk,
    is_stream,
    name_unfinished,
    naming,
    refuse_foreign,
    refuse_inputs,
    remove_unfinished,
    scratch_folder,
    write_text,
    write_whole,
    writing,
    writing_together,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="of POSIX")


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path):
    write_whole(tmp_path / "a.bin", b"one")
    write_text(tmp_path / "a.bin", "zwei — 二\n")
    assert (tmp_path / "a.bin").read_bytes() == "zwei — 二\n".encode()
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_a_file_is_readable_as_the_users_mask_says(tmp_path):
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    write_text(tmp_path / "a", "old")
    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(WriteError, match=r"a cannot be written: No space left on device\. Make room") as caught:
        write_text(tmp_path / "a", "new")
    assert (caught.value.file, caught.value.errno) == (str(tmp_path / "a"), errno.ENOSPC)
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_filled_in_part_is_not_moved(tmp_path):
    write_text(tmp_path / "a", "old")

    def write() -> None:
        with writing(tmp_path / "a") as file:
            file.write_text("ne")
            full()

    with pytest.raises(WriteError, match="a cannot be written: No space left on device"):
        write()
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_disk_that_is_gone_tells_its_first_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "replace", full)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError("gone")))
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "a", "x")


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    write_text(tmp_path / "a", "old")
    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_disk_is_waited_for_only_where_asked(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(files.os, "fsync", waited.append)
    write_text(tmp_path / "a", "x", flush=False)
    assert waited == []
    write_text(tmp_path / "a", "x")
    assert len(waited) == (2 if os.name == "posix" else 1)


def test_systems_that_open_no_folders_are_not_asked_to(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "name", "nt")
    monkeypatch.setattr(files.os, "open", full)
    files._flush_folder(tmp_path)


def test_what_a_crash_left_is_removed_and_foreign_files_are_not(tmp_path):
    inside, foreign = tmp_path / "trials", tmp_path / "mine"
    inside.mkdir()
    foreign.mkdir()
    kept = [
        tmp_path / "notes.unfinished",
        foreign / "a.json.12.unfinished",
        inside / "b.json",
        inside / "x.12.part",
    ]
    left = [tmp_path / "study.toml.1.unfinished", inside / "0001-a.json.99999.unfinished"]
    for file in (*kept, *left):
        file.write_text("x")
    remove_unfinished([tmp_path, inside, tmp_path / "not there"])
    assert all(file.exists() for file in kept)
    assert not any(file.exists() for file in left)


def test_several_files_are_all_filled_before_one_is_moved(tmp_path):
    for name in "ab":
        write_text(tmp_path / name, "old")

    def write() -> None:
        with writing_together() as batch:
            with batch.fill(tmp_path / "a") as file:
                file.write_text("new")
            with batch.fill(tmp_path / "b"):
                full()

    with pytest.raises(WriteError, match="b cannot be written"):
        write()
    assert [(tmp_path / name).read_text() for name in "ab"] == ["old", "old"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "far" / "new")
    for name in ("link", "dangling"):
        write_text(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink()
    assert {file.name: file.read_text() for file in (tmp_path / "far").iterdir()} == {
        "target": "new",
        "new": "new",
    }


@posix
def test_links_in_a_circle_are_told(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(WriteError, match="a cannot be written: "):
        write_text(tmp_path / "a", "x")


@posix
def test_permissions_of_the_old_file_stay(tmp_path):
    write_text(tmp_path / "a", "old")
    (tmp_path / "a").chmod(0o604)
    write_text(tmp_path / "a", "new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


def test_a_file_that_is_write_protected_is_not_replaced(tmp_path, monkeypatch):
    """Its folder may be written to, so that moving another file over it would be possible."""
    write_text(tmp_path / "a", "old")

    def refuse(path: object, flags: int, *_: object) -> None:  # root may write to any
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(WriteError, match=r"a cannot be written: Permission denied\. Choose a place that you may"):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"


def test_a_folder_or_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match=r"folder cannot be written: Is a directory\."):
        write_text(tmp_path / "folder", "x")
    write_text(tmp_path / "file", "x")
    with pytest.raises(WriteError, match=r"file.a cannot be written: Not a directory\."):
        write_text(tmp_path / "file" / "a", "x")
    with pytest.raises(WriteError, match=r"none.a cannot be written: No such file or directory\."):
        write_text(tmp_path / "none" / "a", "x")


@pytest.mark.parametrize(("number", "moving"), [(32, True), (32, False), (5, True)])
def test_a_file_that_another_program_has_open_is_a_sentence(tmp_path, monkeypatch, number, moving):
    """Windows refuses to replace what Excel holds open."""
    write_text(tmp_path / "a", "old")

    def refuse(source: object, target: object) -> None:
        error = PermissionError(errno.EACCES, "in use", str(source), None, str(target) if moving else None)
        error.winerror = number
        raise error

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(
        WriteError, match=r"a cannot be written: it is open in another program\. Close it there and try again\."
    ):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"


def test_a_very_long_name_can_be_written(tmp_path):
    name = "名" * 80 + ".csv"  # 244 bytes
    write_text(tmp_path / name, "x")
    assert os.listdir(tmp_path) == [name]


@posix
def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"a,b\n" * 50_000)
    reader.join()
    assert found == [b"a,b\n" * 50_000]
    assert is_stream(pipe)
    assert os.listdir(tmp_path) == ["pipe.csv"]


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_standard_output_is_written_through_and_not_cut(tmp_path, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = (
        "import os, sys; from pathlib import Path; from rekka.core.files import write_text; os.write(1, b'before\\n'); "
        "write_text(Path(sys.argv[1]), 'table\\n'); os.write(1, b'after\\n')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code, tmp_path / name], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\ntable\nafter\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_device_that_is_full(tmp_path):
    with pytest.raises(WriteError, match=r"^/dev/full cannot be written: No space left on device\."):
        write_whole(Path("/dev/full"), b"x")


@pytest.mark.parametrize(
    "error",
    [
        OSError("No space left on device (os error 28)"),  # polars, CSV
        RuntimeError("parquet: underlying IO error: No space left on device (os error 28)"),  # polars, Parquet
        FileCreateError(OSError(errno.ENOSPC, "No space left on device")),  # xlsxwriter
    ],
)
def test_errors_of_libraries_name_the_file_and_the_cause(tmp_path, error):
    told = r"a\.csv cannot be written: No space left on device\. Make room there"
    with pytest.raises(WriteError, match=told), naming(tmp_path / "a.csv"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/elsewhere/table.csv"),
        FileNotFoundError("No such file or directory (os error 2): /elsewhere/table.csv"),
        ValueError("no error of the disk"),
        BadOption("wrong"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
    ],
)
def test_errors_of_other_things_stay(tmp_path, error):
    with pytest.raises(type(error)) as caught, naming(tmp_path / "a.csv"):
        raise error
    assert caught.value is error


def test_a_file_inside_an_unfinished_folder_is_told_by_its_own_name(tmp_path):
    inside = name_unfinished(tmp_path / "folder") / "final.csv"
    told = r"[/\\]final\.csv cannot be written: No such file or directory"
    with pytest.raises(WriteError, match=told) as caught, naming(tmp_path / "final.csv"):
        write_text(inside, "x")
    assert caught.value.file == str(tmp_path / "final.csv")


def test_a_full_temporary_folder_is_told(tmp_path):
    told = r"The temporary folder .* cannot be written to: No space left .* TMPDIR"
    with pytest.raises(WriteError, match=told), scratch_folder() as folder:
        full()
    assert not folder.exists()


def test_an_input_is_not_written_over(tmp_path):
    write_text(tmp_path / "in.csv", "x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    (tmp_path / "sub").mkdir()
    for output in ("in.csv", "link.csv", "sub/../in.csv"):
        with pytest.raises(BadOption, match="is one of the files that are read, and would be written over"):
            refuse_inputs([tmp_path / output], [tmp_path / "in.csv"])
    refuse_inputs(
        [tmp_path / "out.csv"], [tmp_path / "in.csv", tmp_path / "out.csv"]
    )  # not there: it was not read


def test_two_results_do_not_go_to_one_file(tmp_path):
    with pytest.raises(BadOption, match=r"Two results would be written to a\.csv"):
        refuse_inputs([tmp_path / "a.csv", tmp_path / "x" / ".." / "a.csv"], [])


def test_only_files_of_ours_are_written_over(tmp_path):
    write_text(tmp_path / "a.csv", "\ufeffcase,state,term\n")
    write_text(tmp_path / "b.csv", "case,remark\n")
    (tmp_path / "gone.csv").symlink_to("nowhere")
    refuse_foreign([tmp_path / "a.csv", tmp_path / "none.csv"], has_columns("case", "term"))
    with pytest.raises(BadOption, match=r"b\.csv is there already, and is no file that rekka wrote"):
        refuse_foreign([tmp_path / "b.csv"], has_columns("case", "term"))
    with pytest.raises(BadOption, match="is a folder; a file is needed"):
        refuse_foreign([tmp_path], has_columns())


def test_marks_are_found_at_both_ends(tmp_path):
    for content, known in ((b"mark" + b"x" * 9000, True), (b"x" * 9000 + b"mark", True), (b"x" * 9000, False)):
        write_whole(tmp_path / "a", content)
        assert has_mark(b"mark", b"other")(tmp_path / "a") is known


def test_a_parquet_file_whose_end_the_disk_does_not_take(tmp_path, monkeypatch):
    """polars does not say why: the disk is asked."""
    torn = RuntimeError("parquet: File out of specification: Invalid thrift: transport error")
    with pytest.raises(WriteError, match="the disk did not take all of it"), naming(tmp_path / "a.parquet"):
        raise torn
    assert not files.is_full_disk(torn, tmp_path)
    monkeypatch.setattr(files.tempfile, "TemporaryFile", full)
    with pytest.raises(WriteError, match="No space left on device"), naming(tmp_path / "a.parquet"):
        raise torn
    assert files.is_full_disk(torn, tmp_path)


@pytest.mark.parametrize(
    ("number", "is_full"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EROFS, True),
        (errno.EACCES, False),
        (errno.ENOENT, False),
    ],
)
def test_which_errors_are_of_a_full_disk(tmp_path, number, is_full):
    assert is_full_disk(OSError(number, os.strerror(number)), tmp_path) is is_full


def test_a_line_that_was_cut_short_stays_by_itself(tmp_path):
    log = tmp_path / "log.txt"
    for line in (b"one\n", b"tw", b"three\n", b"four\n"):
        append_line(log, line)
    assert log.read_bytes() == b"one\ntw\nthree\nfour\n"


@posix
def test_a_link_that_leads_nowhere_is_not_written_over(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(BadOption, match="link is there already, and is no file that rekka wrote"):
        refuse_foreign([tmp_path / "link"], lambda file: False)
