"""The words of a report: the same keys and places in every language, and no key in the program that has no words."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest
from jinja2 import Environment, nodes

import rekka.report
from rekka.checks.engine import list_codes, load_checks
from rekka.core.errors import BadOption
from rekka.core.language import FOLDER, LANGUAGES, flatten, load_words

ENGLISH = "en"
OTHERS = [lang for lang in LANGUAGES if lang != ENGLISH]
# a space, or nothing where none is written
SEPARATORS = {f"number.{name}" for name in ("space", "comma", "semicolon", "and", "or", "of_preset")}
NO_UNIT = {"unit.nats"}  # of a log loss, which has none
# What is written alike everywhere: symbols, units, names of people and of criteria.
ALIKE = {
    "cell.pair",
    "cell.step",
    "check.R001.found",
    "check.R602.found",
    "check.R603.found",
    "check.R701.fall",
    "column.aic",
    "column.bic",
    "column.members_in_state",
    "column.sha256",
    "column.share_of_state",
    "figure.ratios.step",
    "figure.reach.of_case",
    "figure.ratios.step_unit",
    "method.boxcox",
    "method.yeojohnson",
    "joined.list.comma",
    "joined.list.or",
    "joined.list.semicolon",
    "part_of_list.name",
    "part_of_list.share",
    "said.plain",
    "section.models.value",
    "section.models.value_alone",
    "sentence.cause.figure",
    "sentence.cause.p",
    "unit.metres",
    "unit.square_metres",
}
TYPED = r"rekka [a-z]+(?: --[a-z-]+ [\w,]+)?|--[a-z-]+(?: [\w,]+)?|R\d{3}"  # what a user types or looks up
REPORT = Path(rekka.report.__file__).parent
SPEAKING = (REPORT, REPORT.parent / "checks", REPORT.parent / "study" / "checks", REPORT.parent / "data")
SAYS = {"words", "say", "get", "_say"}  # names of what takes a key first
ANY = object()  # a part of a key that the program fills in


def list_files(lang):
    return {
        file.name: file.read_text("utf-8") for file in (FOLDER / lang).iterdir() if file.name.endswith(".toml")
    }


# English says "or worse" where Japanese lists the ratings: its "or more" may be taken for the better side.
LISTED = {f"rating.to_worst.{one}": {("label", ""), ("worst", "")} for one in ("two", "many")}


def list_places(text):
    return {(name, form) for _, name, form, _ in Formatter().parse(text) if name is not None}


# Catalogs


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_key_stands_in_one_file_and_holds_a_text(lang):
    texts = [item for text in list_files(lang).values() for item in flatten(tomllib.loads(text))]
    counted = Counter(key for key, _ in texts)
    assert {key for key, n in counted.items() if n > 1} == set()
    assert {key for key, text in texts if not isinstance(text, str)} == set()
    assert dict(texts) == load_words(lang).texts


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_text_is_empty_or_has_space_around_it(lang):
    texts = load_words(lang).texts
    assert {key for key, text in texts.items() if not text} <= SEPARATORS | NO_UNIT
    assert {key for key, text in texts.items() if text != text.strip()} <= SEPARATORS


@pytest.mark.parametrize("lang", OTHERS)
def test_every_language_has_the_same_keys(lang):
    assert set(load_words(lang).texts) == set(load_words(ENGLISH).texts)


@pytest.mark.parametrize("lang", OTHERS)
def test_every_text_has_the_same_places(lang):
    ours, theirs = load_words(lang).texts, load_words(ENGLISH).texts
    assert {
        key: ours[key]
        for key in ours.keys() & theirs
        if list_places(ours[key]) != LISTED.get(key, list_places(theirs[key]))
    } == {}


@pytest.mark.parametrize("lang", OTHERS)
def test_every_text_is_translated(lang):
    ours, theirs = load_words(lang).texts, load_words(ENGLISH).texts
    alike = {key for key, text in ours.items() if text and text == theirs.get(key)}
    assert alike <= ALIKE


def test_japanese_is_in_one_style():
    """Sentences end in the plain form; brackets and stops are full-width ones."""
    texts = load_words("ja").texts
    assert {key for key, text in texts.items() if re.search(r"です|ます。|ません|ください", text)} == set()
    assert {key for key, text in texts.items() if re.search(r"[ぁ-ヿ一-鿿]([,(:;]|[.](?!\d))", text)} == set()


# Fixed texts of the checks


def test_every_check_has_a_title_and_a_remedy_and_no_other_has():
    load_checks("rekka.checks")
    load_checks("rekka.study.checks")
    known = load_words(ENGLISH).texts
    assert {f"check.{code}.{part}" for code in list_codes() for part in ("title", "remedy")} <= known.keys()
    assert {key.split(".")[1] for key in known if re.match(r"check\.R\d", key)} == set(list_codes())


@pytest.mark.parametrize("lang", OTHERS)
def test_what_a_user_types_is_kept(lang):
    words = load_words(lang)
    for key, text in load_words(ENGLISH).texts.items():
        if key.startswith("check."):
            typed = set(re.findall(TYPED, text)) - {"rekka does", "--quick is"}
            assert {name for name in typed if name not in words.texts[key]} == set(), key


# Words


def test_a_text_takes_its_values():
    words = load_words(ENGLISH)
    assert words("page.count.cases.other", n=10) == "10 components"
    assert words("number.comma") == ", "
    assert words.get("method.zscore", "zscore") == "z-score"
    assert words.get("method.mine", "mine") == "mine"
    assert load_words("ja")("page.count.cases.other", n=10) == "10部材種別"
    assert load_words("ja").lang == "ja"


def test_a_language_that_is_none_is_refused_with_the_choices():
    with pytest.raises(BadOption, match="lang is 'fr'; it can be en, ja") as caught:
        load_words("fr")
    assert caught.value.choices == list(LANGUAGES)


# Keys that the program asks for


def list_keys_of_program():
    """(file, line, key): a key is a tuple of its parts, ANY where it is filled in."""
    for file in sorted(file for folder in SPEAKING for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args and name_of_call(node.func) in SAYS:
                for key in read_python(node.args[0]):
                    yield file.name, node.lineno, key


def name_of_call(node):
    if isinstance(node, ast.Attribute):
        whose = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        return node.attr if node.attr != "get" or whose == "words" else ""
    return getattr(node, "id", "")


def read_python(node):
    if isinstance(node, ast.IfExp):
        return [*read_python(node.body), *read_python(node.orelse)]
    if isinstance(node, ast.Constant):
        return [(node.value,)]
    if isinstance(node, ast.JoinedStr):
        return [tuple(part.value if isinstance(part, ast.Constant) else ANY for part in node.values)]
    return []


def list_keys_of_templates():
    for file in sorted(REPORT.rglob("*.html")):
        for node in Environment().parse(file.read_text("utf-8")).find_all(nodes.Call):
            called = node.node.attr if isinstance(node.node, nodes.Getattr) else getattr(node.node, "name", "")
            whose = getattr(getattr(node.node, "node", None), "name", "")
            if node.args and called in SAYS and (called != "get" or whose == "words"):
                for key in read_template(node.args[0]):
                    yield file.name, node.lineno, key


def read_template(node):
    if isinstance(node, nodes.CondExpr):
        return [*read_template(node.expr1), *read_template(node.expr2)]
    if isinstance(node, nodes.Const):
        return [(node.value,)]
    if isinstance(node, nodes.Concat):
        return [tuple(part.value if isinstance(part, nodes.Const) else ANY for part in node.nodes)]
    return []


def find_unknown(asked):
    """Those that no text of the English catalog answers."""
    known = load_words(ENGLISH).texts
    for file, line, parts in asked:
        pattern = "".join(".+" if part is ANY else re.escape(part) for part in parts) + r"(\.one)?"
        if not any(re.fullmatch(pattern, key) for key in known):
            yield f"{file}:{line}: {pattern}"


@pytest.mark.parametrize("asked", [list_keys_of_program, list_keys_of_templates])
def test_every_key_that_is_asked_for_has_words(asked):
    found = list(asked())
    assert len(found) > 10  # the program says something, and this test hears it
    assert list(find_unknown(found)) == []


def test_the_script_of_the_page_has_its_words_and_no_others():
    script = "".join((REPORT / "templates" / name).read_text("utf-8") for name in ("page.js", "members.js"))
    asked = set(re.findall(r"\btexts\.(\w+)", script)) | set(re.findall(r"\bsay\(\"(\w+)\"", script))
    named = set(re.findall(r"\"(\w+)\"", script)) | asked
    begun = tuple(re.findall(r"`(\w+_)\$\{", script))  # keys that the script fills in
    given = {
        key.removeprefix("page.script.") for key in load_words(ENGLISH).texts if key.startswith("page.script.")
    }
    template = {"".join(parts) for _, _, parts in list_keys_of_templates() if ANY not in parts}
    assert asked <= given
    unasked = {name for name in given - named if not name.startswith(begun)}
    assert {f"page.script.{name}" for name in unasked} <= template


def test_every_key_that_is_named_has_words():
    """Keys that go through a variable first: any text that looks like a key, or like the beginning of some."""
    known = load_words(ENGLISH).texts
    begins = {key[: end.start()] for key in known for end in re.finditer(r"\.", key)}
    tops = {key.split(".")[0] for key in known}
    unknown = []
    for file in sorted(REPORT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if not re.fullmatch(r"[a-z_]+(\.\w*[a-z0-9])+", text) or text.split(".")[0] not in tops:
                continue
            if text not in known and text not in begins and not text.endswith((".html", ".css", ".js")):
                unknown.append(f"{file.name}:{node.lineno}: {text}")
    assert unknown == []
