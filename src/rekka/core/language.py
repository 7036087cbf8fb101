"""Words of the report, the checks and the command line, in each language.

They stand in ``languages/LANG/*.toml``. A key is 'section.name'; a text may have places for values, as in
``str.format``. Every language has the same keys and the same places: a test holds it.

A sentence that is said later, perhaps in another language, is a key with values (``say``): plain data that JSON
keeps. Its places can ask for more than ``str.format`` knows:

    {rows:count row}     1 row, 2,000 rows: the text count.row.one or count.row.other
    {names:comma 6}      a list, at most six of it, and how many more; also semicolon, space, and, or
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

# Codes of findings that were merged into others: they stay listed, and are never used again.
RETIRED = {
    "R604": "R402", "R607": "R502", "R609": "R404", "R610": "R302", "R801": "R501", "R802": "R503",
}  # fmt: skip


def current(code: str) -> str:
    """Return a code, or the one that it was merged into."""
    return RETIRED.get(code, code)


ENGLISH = "en"  # the default
LANGUAGES = (ENGLISH, "ja")
MISSING = "\N{EN DASH}"  # a figure that is not known, or not finite
FOLDER = resources.files("rekka.core") / "languages"

Said = dict[str, Any]  # a text by its key, and its values: figures, names, other texts, lists of these


def say(key: str, /, **values: Any) -> Said:
    """Name a text and its values, to be formatted later; of the forms 'one' and 'other' ``n`` decides."""
    return {"say": key, **values}


@dataclass(frozen=True)
class Words:
    """Texts of one language: ``words("answer.title")``, ``words("answer.count", cases=10)``."""

    lang: str
    texts: Mapping[str, str]

    def __call__(self, key: str, /, **values: Any) -> str:
        """Text with its values in their places."""
        return self.texts[key].format(**values) if values else self.texts[key]

    def get(self, key: str, other: str) -> str:
        """A text as it stands, or another where this language has none: a name that data gave us."""
        return self.texts.get(key, other)

    def format(self, said: Said) -> str:
        """Sentence of a key with values, as ``say`` makes it, in this language."""
        key: str = said["say"]
        if key not in self.texts:
            key += ".one" if said.get("n") == 1 else ".other"
        return _Formatter(self).vformat(self.texts[key], (), said)

    def join(self, items: Iterable[Any], by: str = "space", most: int | None = None) -> str:
        """Texts one after the other; of many the first, and how many more there are."""
        texts = [self.format(one) if isinstance(one, dict) else str(one) for one in items]
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
            return self.words.join(value, form, int(rest) if rest else None)
        if form == "count":
            return self.words.format(say(f"count.{rest}", n=value))
        if isinstance(value, dict):
            return self.words.format(value)
        if value is None:
            return MISSING
        return value if isinstance(value, str) else format(value, spec)


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


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a file with their keys."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
