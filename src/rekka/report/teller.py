"""Sentences of the catalog with their values in place: escaped, English ones marked, names kept apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from rekka.report.document import Answer, HypothesisPart, Told
from rekka.report.numbers import show_count
from rekka.report.table_data import finding_cell
from rekka.report.words import ENGLISH, Words, name_method, slug


@dataclass(frozen=True)
class Teller:
    """Sentences with their values in place: escaped, English ones marked as English, names kept apart."""

    words: Words

    def say(self, key: str, **values: Any) -> Markup:
        """A sentence; what is filled in is escaped."""
        return escape(self.words(key)).format(**values)

    def count(self, key: str, n: int) -> Markup:
        """So many of something: '1 case', '10 cases'."""
        return self.say(f"page.count.{key}.{'one' if n == 1 else 'other'}", n=show_count(n))

    def english(self, text: str) -> Markup:
        """A sentence of the study, which is English on every page."""
        return escape(text) if self.words.lang == ENGLISH else Markup('<span lang="en">{}</span>').format(text)

    def name(self, text: str) -> Markup:
        """A name that data gave: its direction is its own."""
        return Markup("<bdi>{}</bdi>").format(text)

    def term(self, group: str, text: str) -> Markup:
        """A term or fixed sentence of rekka's, by its words in this language; one without them stays English."""
        key = f"{group}.{slug(text)}"
        return escape(self.words(key)) if key in self.words.texts else self.english(text)

    def why(self, one: Answer) -> Markup:
        """Why a method was chosen, or none."""
        return self.english(one.why) if one.said is None else escape(self.words.tell(one.said))

    def finding(self, part: str, finding: Told) -> Markup:
        """The title of a finding, what was found, or what to do."""
        cell = finding_cell(finding, part, self.words)
        return self.english(cell.text) if cell.english else escape(cell.text)

    def claim(self, one: HypothesisPart) -> Markup:
        """What a hypothesis says."""
        key = f"claim.{slug(one.code)}"
        return escape(self.words(key)) if key in self.words.texts else self.english(one.claim)

    def method(self, method: str) -> str:
        """A method, also a chain of them such as log+zscore."""
        return name_method(method, self.words)

    def preset(self, preset: str) -> str:
        """The name of a preset."""
        return self.words.get(f"preset.{preset}", preset)

    def join(self, parts: Iterable[object]) -> Markup:
        """A list of things in one line."""
        return escape(self.words("number.comma")).join(escape(part) for part in parts)
