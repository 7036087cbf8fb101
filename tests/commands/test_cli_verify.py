"""``rekka verify`` as a person meets it."""

import json
from dataclasses import replace

import pytest
from test_cli import call

from rekka.verification import engine

SOME = ("--only", "equal hazards", "--only", "separated")


def test_a_line_for_each_check():
    done = call("verify", *SOME)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "All 30 numbers of 2 checks agree."
    assert "Probabilities and years" in lines
    assert "Certificate and scalings" in lines
    assert any(line.startswith("Equal hazards") and "closed form" in line and "agrees" in line for line in lines)
    assert len(lines) < 15


def test_every_number_where_it_is_asked_for():
    done = call("verify", *SOME, "--verbose")
    assert done.exit_code == 0
    assert done.stdout.count(" agrees") == 30
    assert "Equal hazards (closed form)" in done.stdout
    assert "verdict: records apart, with a penalty" in " ".join(done.stdout.split())


def test_plain_data_with_versions_and_machine():
    done = call("verify", *SOME, "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert data["format"] == "rekka-verification"
    assert {"rekka", "python", "numpy", "numba"} <= set(data["versions"])
    assert {"system", "processor", "cores"} == set(data["machine"])
    assert [check["name"] for check in data["checks"]] == ["equal_hazards", "separation"]


@pytest.mark.parametrize(("name", "begins"), [("v.html", "<!DOCTYPE html>"), ("v.json", "{")])
def test_a_file(tmp_path, name, begins):
    file = tmp_path / name
    done = call("verify", *SOME, "--out", file, "--lang", "ja")
    assert done.exit_code == 0
    assert str(file) in done.stdout.replace("\n", "")
    assert file.read_text("utf-8").startswith(begins)


def test_a_number_that_differs_is_exit_code_1(monkeypatch, tmp_path):
    check = engine.REGISTERED["equal_hazards"]

    def wrong(numbers):
        for one in check.run(numbers):
            yield replace(one, got=one.got * 1.01)

    monkeypatch.setitem(engine.REGISTERED, "equal_hazards", replace(check, run=wrong))
    done = call("verify", *SOME, "--out", tmp_path / "v.html")
    assert done.exit_code == 1
    assert "24 numbers of 30 DIFFER, in Equal hazards." in " ".join(done.stdout.split())
    assert any(
        line.startswith("Equal hazards") and line.rstrip().endswith("DIFFERS") for line in done.stdout.splitlines()
    )
    assert "DIFFERS" in (tmp_path / "v.html").read_text("utf-8")


def test_a_check_that_breaks_is_exit_code_1(monkeypatch):
    def broken(numbers):
        raise FloatingPointError("overflow")
        yield

    check = engine.REGISTERED["equal_hazards"]
    monkeypatch.setitem(engine.REGISTERED, "equal_hazards", replace(check, run=broken))
    done = call("verify", *SOME)
    assert done.exit_code == 1
    assert "Equal hazards could not be computed: FloatingPointError: overflow" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--only", "nonsense"], "no check and no kind has this in its name"),
        (["--out", "v.txt"], "v.txt is neither .html nor .json"),
        (["--lang", "fr"], "BadOption: --lang is 'fr'; it can be en, ja"),
    ],
)
def test_wrong_options_are_refused_before_the_work(given, words):
    done = call("verify", *given)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_foreign_file_is_not_written_over(tmp_path):
    file = tmp_path / "v.html"
    file.write_text("<html>mine</html>", encoding="utf-8")
    done = call("verify", *SOME, "--out", file)
    assert done.exit_code == 2
    assert "v.html" in done.stderr
    assert file.read_text("utf-8") == "<html>mine</html>"
