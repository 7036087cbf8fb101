"""Files that are whole or not there."""

import errno
import math
import os
import stat
import sys
from pathlib import Path

import pytest

from rekka.errors import DamagedFile
from rekka import files
from rekka.study.files import (
    digest,
    digest_file,
    plain,
    read_sealed,
    remove_unfinished,
    write_sealed,
    write_text,
    write_whole,
)


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


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    write_text(tmp_path / "a", "old")
    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    class Full(type(Path())):
        def open(self, *given, **more):
            file = super().open(*given, **more)
            file.raw.truncate(2)  # what was written before it was full
            monkeypatch.setattr(files.os, "fsync", full)
            return file

    write_text(tmp_path / "a", "old")
    with pytest.raises(OSError, match="No space left"):
        write_text(Full(tmp_path / "a"), "new")
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


def test_a_sealed_file_comes_back(tmp_path):
    body = {"a": [1, 0.1, None, "ü 二 🌉"], "b": {"c": True}}
    write_sealed(tmp_path / "a.json", "kind", body)
    assert read_sealed(tmp_path / "a.json", "kind") == body


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: "", "a.json is not whole"),
        (lambda text: text[: len(text) // 2], "a.json is not whole"),
        (lambda text: text[:-3], "a.json is not whole"),
        (lambda text: "\0" * len(text), "a.json is not whole"),
        (lambda text: "[" * 100_000, "a.json is not whole"),
        (lambda text: "[1, 2]", "not a file of the kind kind"),
        (lambda text: "null", "not a file of the kind kind"),
        (lambda text: "{}", "not a file of the kind kind"),
        (lambda text: text.replace('"kind"', '"other"'), "not a file of the kind kind"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 1"),
        (lambda text: text.replace("0.25", "0.26"), "has been changed since it was written"),
        (lambda text: text.replace('"body"', '"corpse"'), "has been changed since it was written"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, spoil, message):
    file = tmp_path / "a.json"
    write_sealed(file, "kind", {"a": 0.25})
    file.write_text(spoil(file.read_text()))
    with pytest.raises(DamagedFile, match=message) as caught:
        read_sealed(file, "kind")
    assert caught.value.file == str(file)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(DamagedFile, match="not whole"):
        read_sealed(tmp_path / "a.json", "kind")


def test_numbers_that_json_lacks_are_words():
    assert plain({"a": [math.inf, (math.nan, 1.5)], "b": None}) == {"a": ["inf", ["nan", 1.5]], "b": None}


def test_digests_agree(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert digest_file(tmp_path / "a") == digest(b"abc") == digest(b"abc")
    assert digest(b"abc").startswith("ba7816bf")  # FIPS 180-2, appendix B.1
