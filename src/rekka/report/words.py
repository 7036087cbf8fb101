"""The words of a report, and names put together from them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rekka.core.words import ENGLISH as ENGLISH
from rekka.core.words import LANGUAGES as LANGUAGES
from rekka.core.words import Words as Words
from rekka.core.words import load_words as load_words


def name_method(method: str, words: Words) -> str:
    """A method as the page calls it; a chain by its links: 'boxcox+zscore' is 'Box-Cox+z-score'."""
    return "+".join(words.get(f"method.{link}", link) for link in method.split("+"))


def join_names(names: Iterable[str], words: Words) -> str:
    """Names one after the other, as this language separates them."""
    return words.join(names, "comma")


def join_sentences(sentences: Iterable[str], words: Words) -> str:
    """Sentences one after the other; empty ones are left out."""
    return words.join(sentence for sentence in sentences if sentence)


def slug(text: str) -> str:
    """The key of a term: 'no finite maximum' is no_finite_maximum."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
