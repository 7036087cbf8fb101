"""Sentences of files, found again by their form: each comes back as it was written, and in Japanese without English."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

import rekka
from rekka.core.language import find_said, load_words
from rekka.core.sentences import GROUP, PART

EN, JA = load_words("en"), load_words("ja")
SENTENCES = [key for key in EN.texts if key.startswith(GROUP)]
PARTS = [key for key in EN.texts if key.startswith(PART)]
# What stands in a place, so that no other form has it: a name, a figure, a rating.
SAMPLES = {
    "": "X7", "number": "3", "rating": "rating c", "label": "c or worse", "covariate": "slope", "method": "mine",
    "said": "no row leaves it", "comma": "P1, Q2", "labels": "P1, Q2", "semicolon": "P1; Q2", "and": "P1 and Q2",
    "or": "P1 or Q2", "bands": "75 to 85; below 75", "bare": "85 and above", "each": "mine 40%, other 60%",
}  # fmt: skip
ENGLISH = re.compile(r"[a-z]+ [a-z]+")
FROM_ELSEWHERE = ("sentence.fit.lbfgsb",)  # messages of SciPy's solver
MOST_PIECES = 4  # of a text that the program puts together: 'too ' and 'many' and ' in every start state'
SOURCES = Path(rekka.__file__).parent


def fill(key):
    """The English text of a key with samples in its places."""
    written = ""
    for fixed, name, kind, _ in Formatter().parse(EN.texts[key]):
        written += fixed
        if name is not None:
            what, _, noun = (kind or "").partition(" ")
            written += EN.texts[f"count.{noun}.other"].format(n=12) if what == "count" else SAMPLES[what]
    return written


@pytest.mark.parametrize("key", SENTENCES)
def test_a_sentence_is_found_again(key):
    text = fill(key)
    found = find_said(text)
    assert EN.format(found).lower() == text.lower()
    assert found["say"] != "said.plain"
    said = JA.reword(text)
    assert not ENGLISH.search(re.sub(r"rekka [a-z]+|part", "", said)), said


def list_texts():
    """Texts of the program, constant or with places; those that follow each other as one."""
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def plain(text):
    """Words alone."""
    return re.sub(r"[^\w'-]+", " ", text.lower())


def count_pieces(text, written):
    """Number of the fewest texts of the program, one after the other, that make up a text."""
    words = text.split(" ")
    fewest = [0, *[len(words)] * len(words)]
    for end in range(1, len(words) + 1):
        for start in range(end):
            if fewest[start] + 1 < fewest[end] and " ".join(words[start:end]) in written:
                fewest[end] = fewest[start] + 1
    return fewest[-1]


def test_sentences_are_those_that_the_program_writes():
    """A text that is changed in the program alone would stay English on a Japanese page."""
    written = "\0".join(
        map(plain, (*list_texts(), *(EN.texts[key] for key in EN.texts if key.startswith("why."))))
    )
    missing = {}
    for key in SENTENCES + PARTS:
        if not key.startswith(FROM_ELSEWHERE):
            fixed = (plain(part).strip() for part, *_ in Formatter().parse(EN.texts[key]))
            lost = [part for part in fixed if part and count_pieces(part, written) > MOST_PIECES]
            missing |= {key: lost} if lost else {}
    assert missing == {}
