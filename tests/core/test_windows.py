"""What Windows does differently, simulated: files held open, its own numbers of errors, long paths, code pages."""

import ast
import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rekka import cli
from rekka.core import files, terminal
from rekka.core.errors import WriteError
from rekka.core.files import is_full_disk, move_file, name_apart, naming, remove_file, scratch_folder, write_text
from rekka.report.terminal import parts

SOURCE = Path(files.__file__).parents[1]
NO_TEXT = ("book.open", "os.open", "webbrowser.open")  # bytes or an address, whatever is asked


@pytest.fixture
def windows(monkeypatch):
    """Windows as far as the code of files goes; pauses are counted and not waited for."""
    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setattr(parts, "WINDOWS", True)
    waited = []
    monkeypatch.setattr(files.time, "sleep", waited.append)
    return waited


def refuse(times, monkeypatch, step="replace"):
    """Have the system refuse a step so many times, as where another program holds a file."""
    done, left = getattr(files.os, step), [times]

    def held(source, target, *more):
        if left[0]:
            left[0] -= 1
            error = PermissionError(errno.EACCES, "Access is denied", str(source), None, str(target))
            error.winerror = 5
            raise error
        return done(source, target, *more)

    monkeypatch.setattr(files.os, step, held)


@pytest.mark.parametrize("times", [1, 5])
def test_a_file_that_is_looked_at_for_a_moment_is_waited_for(tmp_path, windows, monkeypatch, times):
    write_text(tmp_path / "a", "old")
    refuse(times, monkeypatch)
    write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert len(windows) == times
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_stays_open_elsewhere_is_a_sentence(tmp_path, windows, monkeypatch):
    write_text(tmp_path / "a", "old")
    refuse(99, monkeypatch)
    with pytest.raises(WriteError, match=r"a cannot be written: it is open in another program\. Close it there"):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert sum(windows) < 2  # seconds


def test_elsewhere_nothing_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WINDOWS", False)
    (tmp_path / "a").write_text("x")
    refuse(1, monkeypatch)
    with pytest.raises(PermissionError):
        move_file(tmp_path / "a", tmp_path / "b")


def test_a_file_that_python_only_calls_denied_may_be_open(tmp_path, windows, monkeypatch):
    """Opening what Excel holds: the C library under Python keeps the number that Windows gave to itself."""
    write_text(tmp_path / "a.csv", "old")

    def denied(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(files.os, "open", denied)
    with pytest.raises(WriteError, match=r"a\.csv cannot be written: another program may have it open\. Close it"):
        write_text(tmp_path / "a.csv", "new")
    monkeypatch.setattr(files.os, "access", lambda *_: False)  # write-protected
    with pytest.raises(WriteError, match=r"Permission denied\. Choose a place that you may write to"):
        write_text(tmp_path / "a.csv", "new")


def test_a_file_that_cannot_be_removed_is_named(tmp_path, windows, monkeypatch):
    def held(self, **_):
        error = PermissionError(errno.EACCES, "in use", str(self))
        error.winerror = 32
        raise error

    (tmp_path / "a.csv").write_text("x")
    monkeypatch.setattr(Path, "unlink", held)
    with pytest.raises(WriteError, match=r"a\.csv cannot be written: it is open in another program"):
        remove_file(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (32, "it is open in another program. Close it there"),
        (33, "it is open in another program. Close it there"),
        (112, "No space left on device. Make room there"),
        (39, "No space left on device. Make room there"),
        (3, "No such file or directory. Choose another place"),
        (5, "Permission denied. Choose a place that you may write to"),
        (9999, "Input/output error. Choose another place"),
    ],
)
def test_numbers_in_the_texts_of_polars_are_those_of_windows(tmp_path, windows, number, told):
    with pytest.raises(WriteError) as caught, naming(tmp_path / "a.csv"):
        raise OSError(f"it did not work (os error {number})")
    assert told in str(caught.value)
    assert is_full_disk(OSError(f"(os error {number})"), tmp_path) is (number in (39, 112))


def test_the_same_numbers_mean_something_else_on_other_systems(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WINDOWS", False)
    assert is_full_disk(OSError(f"(os error {errno.ENOSPC})"), tmp_path)
    assert not is_full_disk(OSError("(os error 39)"), tmp_path)


def test_a_path_that_is_too_long_is_told(tmp_path, windows):
    far = tmp_path / ("a" * 120) / ("b" * 120) / "c.csv"
    told = r"Windows takes 259 characters in a path, and this one has \d+ while it is written\. Choose a shorter folder"
    with pytest.raises(WriteError, match=told):
        write_text(far, "x")
    with pytest.raises(WriteError, match=r"No such file or directory\. Choose another place"):
        write_text(tmp_path / "b" / "c.csv", "x")


def test_a_temporary_folder_with_an_open_file_stays(monkeypatch):
    """Windows removes no file that a table is read from: that is no error of the work that is done."""
    asked = []

    class Folder(tempfile.TemporaryDirectory):
        def __init__(self, *args, **options):
            asked.append(options)
            super().__init__(*args, **options)

    monkeypatch.setattr(files.tempfile, "TemporaryDirectory", Folder)
    with scratch_folder():
        pass
    assert asked[0]["ignore_cleanup_errors"] is True


def test_names_that_windows_keeps_for_devices_are_not_names_of_files():
    found = name_apart(["CON", "nul", "Com1", "LPT9", "Deck", "deck"])
    assert found == ["con-1", "nul-1", "com1-1", "lpt9-1", "deck", "deck-1"]


@pytest.mark.parametrize("name", ["CON", "nul", "com1.csv", "Aux.tar.gz"])
def test_a_file_with_such_a_name_is_refused(tmp_path, windows, monkeypatch, name):
    with pytest.raises(
        WriteError, match=r"cannot be written: Windows keeps the name \w+ for a device\. Choose another"
    ):
        write_text(tmp_path / name, "x")
    assert os.listdir(tmp_path) == []
    write_text(tmp_path / "console.csv", "x")
    monkeypatch.setattr(files, "WINDOWS", False)
    write_text(tmp_path / name, "x")
    assert (tmp_path / name).read_text() == "x"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (r"C:\runs\one", r"C:\runs\one"),
        ("run", "run"),
        (r"C:\My runs\one", r'"C:\My runs\one"'),
        ("Main girder", '"Main girder"'),
        ("a&b", '"a&b"'),
    ],
)
def test_words_of_commands_are_quoted_as_windows_reads_them(windows, word, shown):
    assert parts.quote(word) == shown


def test_words_of_commands_elsewhere(monkeypatch):
    monkeypatch.setattr(parts, "WINDOWS", False)
    assert parts.quote(Path("my run")) == "'my run'"


class TestCodePages:
    """What a Windows without UTF-8 writes to a file or a pipe."""

    def test_letters_that_are_not_in_it_are_shown_by_their_numbers(self, monkeypatch):
        out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
        monkeypatch.setattr(sys, "stdout", out)
        terminal.take_every_letter()
        terminal.echo("判定区分 Ⅳ, 50 % – so")
        out.flush()
        assert out.buffer.getvalue() == b"\\u5224\\u5b9a\\u533a\\u5206 \\u2163, 50 % \x96 so\n"

    def test_json_has_the_same_values_in_every_code_page(self, monkeypatch):
        texts = {}
        for encoding in ("cp1252", "cp932", "utf-8"):
            out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
            monkeypatch.setattr(sys, "stdout", out)
            terminal.take_every_letter()
            terminal.echo_json({"name": "橋 – é"})
            out.flush()
            texts[encoding] = out.buffer.getvalue().decode(encoding)
            assert json.loads(texts[encoding]) == {"name": "橋 – é"}
        assert "橋" in texts["utf-8"]

    @pytest.mark.parametrize("encoding", ["cp1252", "cp932", "ascii"])
    def test_help_and_messages_are_printed(self, encoding, tmp_path):
        code = "import sys; from rekka.cli import main; sys.argv = ['rekka', *sys.argv[1:]]; main()"
        table = tmp_path / "橋梁.csv"
        environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        for asked, exits in ((["--help"], 0), (["check", table], 1)):
            done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, env=environment)
            assert done.returncode == exits, done.stderr.decode(encoding)
            assert b"Traceback" not in done.stderr


def test_texts_are_read_in_utf_8_whatever_the_system_prefers():
    """No file is opened as text without its encoding: Windows would take its code page."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            words = [
                one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            binary = any("b" in word for word in words) or ast.unparse(call.func) in NO_TEXT
            named = any(word.startswith("utf") for word in words)
            plain = (name == "read_text" and not named) or (name == "open" and not binary)
            if plain and "encoding" not in {one.arg for one in call.keywords}:
                found.append(f"{file.name}: {ast.unparse(call)}")
    assert found == []


def test_a_table_that_cannot_be_read_may_be_open(monkeypatch):
    denied = PermissionError(errno.EACCES, "Permission denied", "folder/table.xlsx")
    monkeypatch.setattr(cli, "WINDOWS", True)
    told = "table.xlsx: Permission denied. If another program has it open, close it there."
    assert cli._describe_system(denied) == told
    assert cli._describe_system(OSError(errno.EIO, "Input/output error", "a.csv")) == "a.csv: Input/output error."
    monkeypatch.setattr(cli, "WINDOWS", False)
    assert cli._describe_system(denied) == "table.xlsx: Permission denied."
