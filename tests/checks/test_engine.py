"""The engine of checks: a new check is a module and its texts; codes are used once; severities are one list."""

import importlib
import shutil
import sys

import polars as pl
import pytest

import rekka
import rekka.checks
import rekka.study.checks
from rekka.checks import engine
from rekka.checks.engine import Finding, Severity, Subject, check, find, leave_said, sort_findings
from rekka.core import language as words
from rekka.core.errors import BadOption
from rekka.core.language import RETIRED, current, load_words, say
from rekka.data.direction import read_allowed

ON_DATA = """
from rekka.checks.engine import Severity, Subject, check

@check(Subject.TRAINING, limits={"most": 3}, R998=Severity.NOTE)
def toy(case):
    if case.n_states > 3:
        yield case.find(Severity.NOTE, count=case.n_states)
"""
ON_A_STUDY = """
from rekka.checks.engine import Severity, Subject, check
from rekka.study.checks.evidence import found

@check(Subject.STUDY, R999=Severity.WARNING)
def toy(evidence):
    names = [case.name for case in evidence.study.described]
    return found(False, cases=names, values={"cases": names}, names=names)
"""
TEXTS = {
    "en": """
[check.R998]
title = "Many states"
found = "{count} states, more than {most}, in {total:count row}."
remedy = "Merge some."
[check.R999]
title = "Components"
found = "There is {names:comma}."
remedy = "Nothing to do."
""",
    "ja": """
[check.R998]
title = "多い健全度"
found = "健全度が{count}段階で、{most}段階を超える（{total:count row}）。"
remedy = "統合する。"
[check.R999]
title = "部材種別"
found = "{names:comma}がある。"
remedy = "対処は不要。"
""",
}


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Two modules and their texts beside those of the package; nothing of the package is changed."""
    shutil.copytree(words.FOLDER, tmp_path / "languages")
    for lang, text in TEXTS.items():
        (tmp_path / "languages" / lang / "toy.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(words, "FOLDER", tmp_path / "languages")
    monkeypatch.setattr(engine, "CHECKS", list(engine.CHECKS))
    for package, code in ((rekka.checks, ON_DATA), (rekka.study.checks, ON_A_STUDY)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "toy_check.py").write_text(code, encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    load_words.cache_clear()
    engine.load_checks.cache_clear()
    importlib.invalidate_caches()
    yield
    for package in (rekka.checks, rekka.study.checks):
        del sys.modules[f"{package.__name__}.toy_check"]
        del package.toy_check
    load_words.cache_clear()
    engine.load_checks.cache_clear()


def test_a_new_check_is_a_module_and_its_texts(toys):
    rows = rekka.simulate_transitions(300, n_states=4, seed=1).with_columns(case=pl.lit("Pier"))
    on_data = next(one for one in rekka.check_transitions(rows).findings if one.code == "R998")
    assert (on_data.message, on_data.case) == ("4 states, more than 3, in 300 rows.", "Pier")
    assert on_data.describe(load_words("ja")) == (
        "多い健全度",
        "健全度が4段階で、3段階を超える（300行）。",
        "統合する。",
    )
    study = rekka.compare(rows, methods=["zscore"], guard={"resamples": 0})
    on_study = next(one for one in rekka.check_study(study) if one.code == "R999")
    assert (on_study.verdict, on_study.explanation, on_study.cases) == ("tip", "There is Pier.", ("Pier",))
    assert on_study.describe(load_words("ja")).message == "Pierがある。"


@pytest.fixture
def register(monkeypatch):
    monkeypatch.setattr(engine, "CHECKS", [])
    return lambda look, **worst: check(Subject.TABLE, **worst)(look)


@pytest.mark.parametrize("code", RETIRED)
def test_a_merged_code_is_not_used_again(register, code):
    with pytest.raises(ValueError, match=f"{code} is retired"):
        register(lambda table: (), **{code: Severity.NOTE})


def test_a_code_is_registered_once_for_a_subject(register):
    register(lambda table: (), R998=Severity.NOTE)
    with pytest.raises(ValueError, match="R998 is registered already"):
        register(lambda table: (), R998=Severity.STOP)
    check(Subject.STUDY, R998=Severity.NOTE)(lambda evidence: ())
    assert list(engine.list_codes()) == ["R998"]


def test_no_finding_is_graver_than_its_check_was_registered(register):
    register(lambda table: [find(Severity.STOP)], R998=Severity.WARNING)
    with pytest.raises(AssertionError, match="R998 is stop, and registered as warning at worst"):
        list(engine.run_checks(Subject.TABLE, None))


def test_severities_have_the_words_of_a_study():
    assert [one.verdict for one in Severity] == ["issue", "tip", "tip", "passed", "not applicable"]
    findings = [find(one, code="R998") for one in reversed(Severity)]
    assert [one.severity for one in sort_findings(findings)] == list(Severity)
    assert [one.found for one in sort_findings(findings)] == [True, True, True, False, False]


def test_what_a_study_has_said_of_a_component_is_said_once():
    doctor = [find(Severity.STOP, code=code, case=case) for code in ("R402", "R404") for case in ("Deck", "Pier")]
    doctor.append(find(Severity.NOTE, code="R402"))

    def of_study(code, severity, *cases):
        return Finding(code=code, severity=severity, cases=cases, study=True)

    said = [of_study("R402", Severity.WARNING, "Pier"), of_study("R404", Severity.PASSED, "Pier")]
    left = [(one.code, one.case) for one in leave_said(doctor, said)]
    assert left == [("R402", "Deck"), ("R404", "Deck"), ("R404", "Pier"), ("R402", None)]


def test_a_merged_code_says_its_successor():
    assert (current("R604"), current("R402")) == ("R402", "R402")
    assert set(RETIRED.values()).isdisjoint(RETIRED)
    with pytest.raises(BadOption, match="allow is 'R604', which is now R402; it can be R109"):
        read_allowed("r604")


def test_places_of_a_text():
    told = words.Words(
        "en", load_words("en").texts | {"x": "{n:count row}; {names:comma 2}; {p:.1f}; {of}; {none:.2f}"}
    )
    text = told.format(say("x", n=1, names=["a", say("component.all"), "c"], p=0.25, of="z", none=None))
    assert text == "1 row; a, all rows and 1 more; 0.2; z; \N{EN DASH}"
    assert told.format(say("count.row", n=2000)) == "2,000 rows"
    with pytest.raises(KeyError, match=r"nothing\.other"):
        told.format(say("nothing"))
