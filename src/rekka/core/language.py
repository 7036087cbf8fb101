"""Words of the report, the checks and the command line, in each language.

They stand in ``languages/LANG/*.toml``. A key is 'section.name'; a text may have places for values, as in
``str.format``. Every language has the same keys and the same places: a test holds it.

A sentence that is said later, perhaps in another language, is a key with values (``say``): plain data that JSON
keeps. Its places can ask for more than ``str.format`` knows:

    {rows:count row}     1 row, 2,000 rows: the text count.row.one or count.row.other
    {names:comma 6}      a list, at most six of it, and how many more; also semicolon, space, and, or
    {name:covariate}     a covariate as people call it; also a method, or a chain of them

A text within a sentence that is itself a sentence of ours, such as the reason of a trial, is said in the language
of the whole (``reword``): files keep such texts in English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any

from rekka.core.errors import bad_option
from rekka.core.sentences import MARKED, Sentences
from rekka.core.sentences import Said as Said

# Codes of findings that were merged into others: they stay listed, and are never used again.
RETIRED = {
    "R604": "R402", "R607": "R502", "R609": "R404", "R610": "R302", "R801": "R501", "R802": "R503",
}  # fmt: skip


def current(code: str) -> str:
    """Return a code, or the one that it was merged into."""
    return RETIRED.get(code, code)


ENGLISH = "en"  # the default
LANGUAGES = (ENGLISH, "ja")
ALSO_LEVELS = ("none", "nothing")  # words that a table may have as its own
NO_COMPONENTS = "all"  # the component of a table that has no column of components
MISSING = "\N{EN DASH}"  # a figure that is not known, or not finite
FOLDER = resources.files("rekka.core") / "languages"


def say(key: str, /, **values: Any) -> Said:
    """Name a text and its values, to be formatted later; of the forms 'one' and 'other' ``n`` decides."""
    return {"say": key, **values}


def find_said(text: str) -> Said:
    """The key and values of an English sentence; of one that is none of ours, the text itself."""
    return _load_sentences().find(text) or say("said.plain", text=text)


@dataclass(frozen=True)
class Words:
    """Texts of one language: ``words("answer.title")``, ``words("answer.count", cases=10)``."""

    lang: str
    texts: Mapping[str, str]
    spoken: bool = False  # names of methods as people call them, in English sentences too; files keep zscore

    def __call__(self, key: str, /, **values: Any) -> str:
        """Text with its values in their places."""
        return self.texts[key].format(**values) if values else self.texts[key]

    def get(self, key: str, other: str) -> str:
        """A text as it stands, or another where this language has none: a name that data gave us."""
        return self.texts.get(key, other)

    def method(self, name: str) -> str:
        """A method as people call it; a chain of them by its links."""
        return "+".join(self.get(f"method.{link}", link) for link in name.split("+"))

    def format(self, said: Said) -> str:
        """Sentence of a key with values, as ``say`` makes it, in this language."""
        key: str = said["say"]
        if key not in self.texts:
            key += ".one" if said.get("n") == 1 else ".other"
        return _Formatter(self).vformat(self.texts[key], (), said)

    def reword(self, text: str) -> str | None:
        """An English sentence of a file in this language; None where it is none of the language files."""
        found = _load_sentences().find(text)
        return None if found is None else self.format(found)

    def covariate(self, name: str) -> str:
        """A covariate as people call it; one that only the data know, as it is."""
        return self.texts.get(f"covariate.{name}", name)

    def component(self, name: str) -> str:
        """A component as people call it: that of a table without components has no name of its own."""
        return name if name != NO_COMPONENTS or self.lang == ENGLISH else self.texts["component.all"]

    def say_text(self, text: str) -> str:
        """A text in a place of a sentence: what is ours in this language, all else as it is."""
        if self.lang == ENGLISH and not self.spoken:
            return text
        if " " not in text:
            known = text if text in ALSO_LEVELS else self.covariate(self.method(text))
            return self.component(self.get(f"preset.{known}", known))
        return self.reword(text) or text

    def join(self, items: Iterable[Any], by: str = "space", most: int | None = None) -> str:
        """Texts one after the other; of many the first, and how many more there are."""
        texts = [self.format(one) if isinstance(one, dict) else self.say_text(str(one)) for one in items]
        some = self.texts[f"number.{by}"].join(texts[:most])
        if most is None or len(texts) <= most:
            return some
        return self(f"number.more_{by}", some=some, n=len(texts) - most)


class _Formatter(Formatter):
    """Formatter of places: counts, lists and texts within texts; else as ``str.format``."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def format_field(self, value: Any, spec: str) -> str:
        """Format the value of one place."""
        form, _, rest = spec.partition(" ")
        if isinstance(value, list | tuple):
            by = MARKED.get(form, form) or "comma"
            return self.words.join(value, by, int(rest) if rest else None)
        if form == "count":
            return self.words.format(say(f"count.{rest}", n=value))
        if isinstance(value, dict):
            return self.words.format(value)
        if value is None:
            return MISSING
        if isinstance(value, str):
            if form == "covariate":
                return self.words.covariate(value)
            return (
                self.words.component(self.words.method(value)) if form == "method" else self.words.say_text(value)
            )
        return format(value, spec)


@cache
def load_words(lang: str) -> Words:
    """Words of a language."""
    if lang not in LANGUAGES:
        raise bad_option("lang", lang, LANGUAGES)
    texts: dict[str, str] = {}
    for file in sorted((FOLDER / lang).iterdir(), key=lambda one: one.name):
        if file.name.endswith(".toml"):
            texts |= dict(flatten(tomllib.loads(file.read_text(encoding="utf-8"))))
    return Words(lang, texts)


@cache
def _load_sentences() -> Sentences:
    return Sentences(load_words(ENGLISH).texts)


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a file with their keys."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
