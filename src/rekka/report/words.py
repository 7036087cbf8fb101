"""The words of a report in one language: headings, captions, names of columns, fixed sentences.

They stand in ``languages/LANG/*.toml``. A key is 'section.name'; a text may have places for values, as in
``str.format``. Every language has the same keys and the same places: a test holds it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from rekka.core.errors import bad_option

ENGLISH = "en"  # in which sentences about a study are
LANGUAGES = (ENGLISH, "ja")


@dataclass(frozen=True)
class Words:
    """``words("answer.title")``, ``words("answer.count", cases=10)``."""

    lang: str
    texts: Mapping[str, str]

    def __call__(self, key: str, /, **values: Any) -> str:
        """A text with its values in their places."""
        return self.texts[key].format(**values) if values else self.texts[key]

    def get(self, key: str, other: str) -> str:
        """A text as it stands, or another where this language has none: a name that data gave us."""
        return self.texts.get(key, other)


@cache
def load_words(lang: str) -> Words:
    """The words of a language."""
    if lang not in LANGUAGES:
        raise bad_option("lang", lang, LANGUAGES)
    texts: dict[str, str] = {}
    folder = resources.files("rekka.report") / "languages" / lang
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".toml"):
            texts |= dict(_flatten(tomllib.loads(file.read_text(encoding="utf-8"))))
    return Words(lang, texts)


def name_method(method: str, words: Words) -> str:
    """A method as the page calls it; a chain by its links: 'boxcox+zscore' is 'Box-Cox+z-score'."""
    return "+".join(words.get(f"method.{link}", link) for link in method.split("+"))


def join_names(names: Iterable[str], words: Words) -> str:
    """Names one after the other, as this language separates them."""
    return words("number.comma").join(names)


def join_sentences(sentences: Iterable[str], words: Words) -> str:
    """Sentences one after the other; empty ones are left out."""
    return words("number.space").join(sentence for sentence in sentences if sentence)


def slug(text: str) -> str:
    """The key of a term: 'no finite maximum' is no_finite_maximum."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
