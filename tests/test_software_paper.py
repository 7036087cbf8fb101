"""paper/paper.md: its form, its references, and that its numbers are those of the pages they are taken from."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
_, HEAD, BODY = PAPER.split("---\n", 2)
# <!-- docs/PAGE.md (the command that printed them): number | number -->
SOURCES = re.findall(r"<!-- (docs/\S+\.md) \((.*?)\): (.*?) -->", BODY, flags=re.DOTALL)
TEXT = re.sub(r"<!--.*?-->", "", BODY, flags=re.DOTALL)

PLAIN = {"95", "1e-4", "1", "2"}  # of intervals; the largest difference in the page's table; Table 1; -2 log L


def find_numbers(text: str) -> set[str]:
    """Numbers of a text, without those of names and references."""
    text = re.sub(r"@\w+|\[.*?\]\(.*?\)|`.*?`|\w+-B\b", "", text)
    return {found.rstrip(".,") for found in re.findall(r"(?<![\w.])\d[\d.,]*(?:e-\d+)?", text)}


def test_it_has_the_form_of_the_journal():
    heads = re.findall(r"^# (.*)$", BODY, flags=re.MULTILINE)
    asked = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]
    assert [head for head in heads if head in asked] == asked
    assert heads[:3] == asked[:3]
    assert "AI usage disclosure" in heads
    assert heads[-1] == "References"
    for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{field}:", HEAD, flags=re.MULTILINE), field
    assert "name: The rekka developers" in HEAD
    assert 750 <= len(TEXT.split()) <= 1750  # as the journal asks


def test_references_and_citations_are_the_same():
    cited = set(re.findall(r"(?<![\w\\])@(\w+)", BODY))
    entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", BIBLIOGRAPHY, flags=re.MULTILINE | re.DOTALL))
    assert cited == set(entries)
    without = {key for key, text in entries.items() if not re.search(r"doi\s*= \{10\.\d{4,5}/\S+\}", text)}
    assert without == {"yasuno"}  # a manuscript


@pytest.mark.parametrize(("page", "command", "numbers"), SOURCES)
def test_numbers_are_those_of_the_page(page, command, numbers):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for number in numbers.split("|"):
        assert re.search(rf"(?<![\d.]){re.escape(number.strip())}(?!\d)", text), number
        assert number.strip() in " ".join(TEXT.split()), number
    module = re.match(r"python -m (benchmarks[.\w]*)", command)
    assert module is None or importlib.util.find_spec(module[1])
    file = re.match(r"python -m pytest (\S+)", command)
    assert file is None or (ROOT / file[1]).exists()
    assert module or file


def test_every_number_has_its_source():
    known = {part for *_, numbers in SOURCES for part in find_numbers(" ".join(numbers.split()))}
    assert find_numbers(TEXT) - known - PLAIN == set()


def test_pictures_are_there():
    for place in re.findall(r"!\[.*?\]\((.*?)\)", BODY, flags=re.DOTALL):
        assert (ROOT / "paper" / place).is_file()
