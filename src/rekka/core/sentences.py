"""Keys and values of English sentences, found again by their form in the language files.

Trials, models, forecasts and run folders keep their reasons, notes and remarks as English text. A page of another
language finds the key of such a text again among those of ``sentence``, whose places say what stands in them:

    {n:number}           a figure
    {rows:count row}     1 row, 2,000 rows
    {where:rating}       rating c, ratings a, b (or states, in a model without labels)
    {name:covariate}     a covariate; the language files have names of the usual ones
    {name:method}        a method, also a chain such as log+zscore
    {why:said}           another sentence
    {names:comma 6}      a list; also semicolon, and, or; ``each`` is a list of the forms of ``part_of_list``,
                         ``labels`` one without colons, and ``bands`` labels of ratings
    {label:label}        the label of a rating, with the noun where the language has one there
    {label:bare}         the label alone
    {name}               anything else: a name, a file, a level

A text that is none of these, of a data set or of an earlier version, is not found, and stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from string import Formatter
from typing import Any

Said = dict[str, Any]  # a text by its key, and its values: figures, names, other texts, lists of these

GROUP, JOINED, PART = "sentence.", "joined.", "part_of_list."
LONG = 12  # letters: a form with so many is looked for before a text is taken apart
MARKS = {"; ": "semicolon", ". ": "full_stop"}  # what stands between sentences of one text
LISTS = ("comma", "labels", "each", "semicolon", "bands", "and", "or")
MARKED = {"each": "comma", "labels": "comma", "bands": "semicolon"}  # lists with the marks of another
COUNTED = tuple(PART + name for name in ("of_members", "of_records", "reason"))  # "not inspected: ...: 3"
ROMAN = frozenset({"I", "II", "III", "IV"})  # judgements of Japan, which have a noun of their own
_COVARIATE = r"[^\s,;:()]+(?: [^\s,;:()]+){0,3}"  # a name of a few words; a text of more is a sentence
NUMBER = r"[-+\u2212]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|inf|\u221e) ?%?"
_RATING = r"(?:start |end )?(?:[Rr]ating|[Ss]tate)s? (?:[\d.]+ to [\d.]+(?= to )|[^:;]+?)"  # a band to another
_METHOD = r"[\w+]+"
_LABELS = r"(?:(?!: ).)+?"
_PLAIN = r"(?:(?!; |\. ).)+?"  # within a sentence
_ROMAN_OR_WORSE = re.compile("(I{1,3}|IV|[\u2160-\u2163]) or worse")
_RATED = re.compile(r"(?:start |end )?(?:rating|state)s? (?P<labels>.+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Form:
    """A sentence of the language files: its key, its pattern, and what its places hold."""

    key: str
    pattern: re.Pattern[str]
    places: tuple[tuple[str, str], ...]
    size: int  # letters that are fixed


class Sentences:
    """English sentences of the language files, to be found again in a text.

    Examples
    --------
    >>> from rekka.core.language import load_words
    >>> Sentences(load_words("en").texts).find("no row leaves it")
    {'say': 'sentence.fit.nobody_left'}

    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        whole = {key: text for key, text in texts.items() if key.startswith(GROUP)}
        self._fixed = {text: key for key, text in whole.items() if "{" not in text}
        self._labels = [self._compile(key, texts[key]) for key in texts if _names_group(key)]
        placed = [self._compile(key, text) for key, text in whole.items() if "{" in text]
        parts = [self._compile(key, text) for key, text in texts.items() if key.startswith(PART)]
        self._forms, self._parts = (sorted(some, key=lambda one: -one.size) for some in (placed, parts))
        self._counted = [form for form in self._parts if form.key in COUNTED]
        self._long = sum(one.size >= LONG for one in placed)
        self._known: dict[str, Said | None] = {}

    def find(self, text: str) -> Said | None:
        """Key and values of a sentence, or of several in one text; None where it is none of ours."""
        if text not in self._known:
            self._known[text] = None  # while it is looked for: no sentence has itself in a place
            self._known[text] = self._find(text)
        return self._known[text]

    def _find(self, text: str) -> Said | None:
        return (
            self._find_fixed(text)
            or self._find_stop(text)
            or self._find_form(text, self._forms[: self._long])
            or self._find_several(text)
            or self._find_form(text, self._forms[self._long :])
        )

    def _find_fixed(self, text: str) -> Said | None:
        text = text.strip()
        begun = text[:1].swapcase() + text[1:]  # at the beginning of a line, or within one
        key = self._fixed.get(text) or self._fixed.get(begun)
        return None if key is None else {"say": key}

    def _find_form(self, text: str, forms: Sequence[_Form]) -> Said | None:
        for form in forms:
            match = form.pattern.fullmatch(text)
            values = None if match is None else self._read(form, match)
            if values is not None:
                return {"say": form.key, **values}
        return None

    def _find_stop(self, text: str) -> Said | None:
        if not text.endswith("."):
            return None
        found = self.find(text[:-1])
        return None if found is None else {"say": f"{JOINED}stop", "text": found}

    def _find_several(self, text: str) -> Said | None:
        """The first sentence of a text, and what the rest says."""
        for mark, name in MARKS.items():
            for place in _find_all(text, mark):
                head = text[:place]
                first = self._find_fixed(head) or self._find_form(head, self._forms)
                rest = None if first is None else self.find(text[place + len(mark) :])
                if rest is not None:
                    return {"say": f"{JOINED}{name}", "first": first, "rest": rest}
        return None

    def _read(self, form: _Form, match: re.Match[str]) -> Said | None:
        values = {}
        for name, kind in form.places:
            found = self._read_place(kind, match[name])
            if found is None:
                return None
            values[name] = found
        return values

    def _read_place(self, kind: str, text: str) -> Any:
        what, _, _ = kind.partition(" ")
        if what == "count":
            return int("".join(re.findall(r"\d", text)))
        if what == "rating":
            return self._read_rating(text)
        if what == "label":
            found = self._read_rating(f"rating {text}")
            roman = found is not None and found["say"].endswith("_roman")
            return {"say": "rating.rated_roman" if roman else "rating.rated", "label": self._read_label(text)}
        if what == "bare":
            return self._read_label(text)
        if what == "said":
            return self.find(text)
        return self._read_list(what, text) if what in LISTS else text

    def _read_list(self, kind: str, text: str) -> Any:
        """A list, each part found or as it is; one of which only the first are there says how many more are."""
        by = MARKED.get(kind, kind)
        more = (
            re.fullmatch(r"(.+?);? and ([\d,]+) (?:more|others?)", text) if by in ("comma", "semicolon") else None
        )
        texts = _split(more[1] if more else text, self._texts[f"number.{by}"])
        own = {"each": partial(self._find_form, forms=self._parts)}
        read = own | dict.fromkeys(("labels", "bands"), self._read_label)
        parts = [read.get(kind, self._read_part)(part) for part in texts]
        if None in parts:
            return None
        if more is None:
            return parts
        some = {"say": f"{JOINED}list.{by}", "items": parts}
        return {"say": f"number.more_{by}", "some": some, "n": int(more[2].replace(",", ""))}

    def _read_part(self, text: str) -> Said | str:
        known = f"covariate.{text}"
        if known in self._texts:
            return {"say": known}
        counted = self._find_form(text, self._counted)
        return counted or self.find(text) or self._find_form(text, self._parts) or text

    def _read_rating(self, text: str) -> Said | None:
        match = _RATED.fullmatch(text)
        if match is None:
            return None
        one = any(form.pattern.fullmatch(match["labels"]) for form in self._labels)
        labels = [match["labels"]] if one else re.split(r", | and | or ", match["labels"])
        roman = all(unicodedata.normalize("NFKC", one.split(" ")[0]) in ROMAN for one in labels)
        key = "rating.some_roman" if roman else "rating.some"
        return {"say": key, "n": len(labels), "labels": [self._read_label(one) for one in labels]}

    def _read_label(self, label: str) -> Said | str:
        """A label; that of a group or a band, which rekka made, by its key."""
        worst = _ROMAN_OR_WORSE.fullmatch(label)
        if worst is not None:
            return _say_judgements(worst[1])
        for form in self._labels:
            match = form.pattern.fullmatch(label)
            if match is not None:
                return {"say": form.key} | {name: self._read_label(match[name]) for name, _ in form.places}
        names = label.split(" or ")  # of classes: Fair or Poor
        return label if len(names) == 1 else {"say": f"{JOINED}list.or", "items": names}

    def _compile(self, key: str, text: str) -> _Form:
        pattern, places, size = "", [], 0
        for fixed, name, kind, _ in Formatter().parse(text):
            pattern += re.escape(fixed)
            size += len(fixed)
            if name is not None:
                places.append((name, kind or ""))
                pattern += f"(?P<{name}>{self._match_place(kind or '')})"
        return _Form(key, re.compile(pattern, re.DOTALL), tuple(places), size)

    def _match_place(self, kind: str) -> str:
        what, _, noun = kind.partition(" ")
        if what == "count":
            texts = (self._texts[f"count.{noun}.{form}"] for form in ("one", "other"))
            return "|".join(r"[\d,]+".join(map(re.escape, text.split("{n:,}"))) for text in texts)
        return {
            "number": NUMBER,
            "rating": _RATING,
            "covariate": _COVARIATE,
            "method": _METHOD,
            "labels": _LABELS,
        }.get(what, ".+?" if what else _PLAIN)


def _names_group(key: str) -> bool:
    """Whether a key is of a label that rekka makes for several ratings or a band."""
    names = ("class", "or_worse", "or_below", "or_above", "from_to", "below", "and_above")
    return key.removeprefix("rating.") in names


def _say_judgements(label: str) -> Said:
    """A judgement of Japan and all worse ones."""
    judgements = ("I", "II", "III", "IV")
    place = judgements.index(unicodedata.normalize("NFKC", label))
    worst = "IV" if label in judgements else "\u2163"
    kind = {3: "one", 2: "two"}.get(place, "many")
    return {"say": f"rating.to_worst.{kind}", "label": label, "worst": worst}


def _find_all(text: str, mark: str) -> Iterator[int]:
    place = text.find(mark)
    while place >= 0:
        yield place
        place = text.find(mark, place + 1)


def _split(text: str, by: str) -> list[str]:
    """Parts of a list; what is in brackets is not split."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth <= 0 and place >= start and text.startswith(by, place):
            parts.append(text[start:place])
            start = place + len(by)
    return [*parts, text[start:]]
