"""Files of a run that know whether they are as they were written."""

import math

import pytest

from rekka.core.errors import DamagedFile
from rekka.core.folders import digest, digest_file, plain, read_sealed, seal, write_sealed


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


def test_a_seal_does_not_depend_on_the_order_of_keys():
    assert seal({"a": 1, "b": [2]}) == seal({"b": [2], "a": 1}) != seal({"a": 1, "b": [3]})
