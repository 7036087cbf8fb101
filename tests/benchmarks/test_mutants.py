"""Every mutant still applies, and the stored run has killed as many as it should; benchmarks/mutants.py runs them."""

import json
from pathlib import Path

import pytest
from benchmarks.mutant_table import MUTANTS, Mutant
from benchmarks.mutants import AIM, ENDLESS, FILE, KILLED, ROOT, SURVIVED, Found, count, mutate, run_mutant, store

from benchmarks import mutants

ONE = Mutant("core/numerics.py", "[:16]", "[:8]", "tests/core/test_seals.py")


@pytest.mark.parametrize("file", dict.fromkeys(one.file for one in MUTANTS))
def test_every_mutant_applies_and_is_python(file):
    for one in MUTANTS:
        if one.file == file:
            assert one.text != one.replacement
            compile(mutate(one, ROOT / "src"), file, "exec")


def test_every_test_that_is_named_is_there():
    for test in {test for one in MUTANTS for test in one.tests.split()}:
        path, *names = test.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), test


def test_no_mutant_is_there_twice():
    assert len({(one.file, one.text, one.replacement) for one in MUTANTS}) == len(MUTANTS) >= 120


@pytest.mark.parametrize(("text", "times"), [("no such text", 0), ("import", 3)])
def test_a_text_that_is_not_there_once_is_named(tmp_path, text, times):
    (tmp_path / "rekka").mkdir()
    (tmp_path / "rekka" / "a.py").write_text("import x\nimport y, z  # an important line\n")
    with pytest.raises(
        SystemExit, match=f"a.py: '{text}' is there {times} times; a mutant needs a text of its own"
    ):
        mutate(Mutant("a.py", text, "", ""), tmp_path)


@pytest.mark.parametrize(("code", "outcome"), [(0, SURVIVED), (1, KILLED), (2, KILLED), (None, ENDLESS)])
def test_what_becomes_of_a_mutant(monkeypatch, code, outcome):
    seen = []

    def run(src: Path, tests: list[str], seconds: float) -> int | None:
        seen.append(((src / "rekka" / ONE.file).read_text(encoding="utf-8").count("[:8]"), tests))
        return code

    monkeypatch.setattr(mutants, "run_tests", run)
    found = run_mutant(ONE)
    assert (found.outcome, found.killed) == (outcome, outcome == KILLED)
    assert seen == [(1, [ONE.tests])]
    assert "[:16]" in (ROOT / "src" / "rekka" / ONE.file).read_text(encoding="utf-8")


def test_tests_that_cannot_be_run_are_no_kill(monkeypatch):
    monkeypatch.setattr(mutants, "run_tests", lambda *_: 4)
    with pytest.raises(SystemExit, match="ended with 4"):
        run_mutant(ONE)
    with pytest.raises(SystemExit, match="Without a mutant the tests end with 4"):
        mutants.check_unchanged([ONE])


def test_shares_are_by_package():
    found = [Found(ONE, KILLED), Found(ONE, SURVIVED), Found(ONE._replace(file="data/text.py"), ENDLESS)]
    assert count(found) == {"core": (1, 2), "data": (0, 1)}
    assert [one["text"] for one in store(found)["survived"]] == ["[:16]", "[:16]"]


def test_the_stored_run_killed_enough():
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert stored["killed"] + len(stored["survived"]) == stored["mutants"] >= 120
    assert stored["killed"] >= AIM * stored["mutants"]
