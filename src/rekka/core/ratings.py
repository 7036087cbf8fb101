"""Ratings: the user's own labels for states 1..K, the only place that turns a state into words and back.

Inside rekka a state is a number from 1, the best. Whoever reads an output sees the label: 4 of the NBI, Ⅲ, c,
70 to 75, or the name of a group ("4 or below"). A table of transitions has no labels: there it is the number.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any

from rekka.core.errors import BadOption, did_you_mean, name_some
from rekka.core.language import ENGLISH, Said, Words, load_words, say

START = "start"  # the option of a rating to start from
USUAL_THRESHOLD = 4  # of a scale that is none of those below, or the worst of fewer ratings
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
LETTERS = tuple("abcdefghij")
ROMAN_THRESHOLD, ROMAN_RATINGS = 3, 4  # Japan's four judgements: from the third on early action is needed
NBI_BEST = (7, 8, 9)  # the best number, or lowest of the best group, of a scale of the National Bridge Inventory
NBI_CLASSES = {"Good": math.inf, "Fair": 6.0, "Poor": 4.0}  # highest number of each: FHWA, 23 CFR 490.409
_N = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_FORMS = {  # of the labels that rekka makes, for groups of numbers and for bands of an index
    "number": re.compile(rf"{_N}"),
    "or_below": re.compile(rf"{_N} or below"),
    "or_above": re.compile(rf"{_N} or above"),
    "from_to": re.compile(rf"{_N} to {_N}"),
    "below": re.compile(rf"below {_N}"),
    "and_above": re.compile(rf"{_N} and above"),
}
_STATES = re.compile(r"\b(start |end )?([Ss])tates? (\d+)((?:(?:, | and | or | to | rated )\d+)*)\b(?!\.\d)")

Form = tuple[str, tuple[float, ...], tuple[str, ...]]  # kind, its numbers, and how they are written


def name_groups(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of ratings that consist of one or several labels, best first.

    Examples
    --------
    >>> name_groups([["9", "8"], ["7"], ["6", "5"], ["4", "3", "2", "1", "0"]])
    ('8 or above', '7', '5 to 6', '4 or below')
    >>> name_groups([["A1", "A2"], ["B"]])
    ('A1/A2', 'B')

    """
    numbers = [[int(one) for one in group] if all(map(_is_whole, group)) else None for group in groups]
    flat = [number for group in numbers if group is not None for number in group]
    steps = {second > first for first, second in pairwise(flat)}
    if None in numbers or len(steps) != 1:
        return tuple("/".join(group) for group in groups)
    ends = ("or above", "or below") if steps == {False} else ("or below", "or above")
    names = []
    for place, (group, written) in enumerate(zip(numbers, groups, strict=True)):
        low, high = min(group or ()), max(group or ())
        if len(written) == 1 or high - low != len(written) - 1:
            names.append("/".join(written))
        elif place in (0, len(groups) - 1):
            end = ends[place > 0]
            names.append(f"{low if end == 'or above' else high} {end}")
        else:
            names.append(f"{low} to {high}")
    return tuple(names)


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


def plain_label(label: str) -> str:
    """A label as labels are compared: without capitals, full width and blanks around; 3 for 03 and 3.0."""
    text = unicodedata.normalize("NFKC", str(label)).strip().lower()
    return re.sub(r"^0*(\d+)(?:\.0+)?$", r"\1", text)


def plain_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels as they are compared; a group of an earlier version, 4/3/2/1/0, is what it is called now.

    Examples
    --------
    >>> plain_labels(["9/8", "7", "6/5", "4/3/2/1/0"])
    ('8 or above', '7', '5 to 6', '4 or below')

    """
    return tuple(plain_label(name) for name in name_groups([label.split("/") for label in labels]))


@dataclass(frozen=True)
class Ratings:
    """Labels of states 1, 2, ..., K, best first.

    Examples
    --------
    >>> nbi = Ratings(("9", "8", "7", "6", "5", "4 or below"))
    >>> nbi.name(6), nbi.or_worse(4), nbi.find("Poor"), nbi.find("5"), nbi.find("below 5")
    ('Poor (4 or below)', 'Fair or Poor (6 or below)', 6, 5, 6)
    >>> nbi.explain_threshold(nbi.default_threshold)
    'threshold: rating Poor (4 or below), the 6th of 6 ratings; the default where ratings run from 9 to 0'
    >>> Ratings(("85 and above", "75 to 85", "70 to 75", "60 to 70", "below 60")).or_worse(4)
    'below 70'
    >>> Ratings.of(None, 5).or_worse(4)
    '4 or worse'

    """

    labels: tuple[str, ...]

    @classmethod
    def of(cls, labels: Sequence[str] | None, n_states: int) -> Ratings:
        """Ratings of a model with K states: its labels, as far as it has any, else numbers from 1."""
        known = tuple(labels or ())[:n_states]
        return cls(known + tuple(str(state) for state in range(len(known) + 1, n_states + 1)))

    @property
    def numbered(self) -> bool:
        """Whether the labels are the numbers of the states."""
        return self.labels == tuple(str(state) for state in range(1, len(self.labels) + 1))

    @cached_property
    def _forms(self) -> tuple[Form | None, ...]:
        groups = [label.split("/") for label in self.labels]  # as model files of earlier versions name them
        return tuple(_parse(label) for label in name_groups(groups))

    @cached_property
    def _bands(self) -> bool:
        """Whether the ratings are bands of an index."""
        return bool(self.labels) and self._forms[0] is not None and self._forms[0][0] in ("below", "and_above")

    @cached_property
    def _spans(self) -> tuple[tuple[float, float], ...] | None:
        """Lowest and highest number of each rating; None where some rating is no number or group of numbers."""
        if self._bands or any(form is None or form[0] in ("below", "and_above") for form in self._forms):
            return None
        spans = []
        for kind, ends, _ in filter(None, self._forms):
            low = -math.inf if kind == "or_below" else ends[0]
            spans.append((low, math.inf if kind == "or_above" else ends[-1]))
        return tuple(spans)

    @cached_property
    def falling(self) -> bool:
        """Whether ratings are numbers, or bands of an index, of which lower is worse."""
        if self._bands:
            return self._forms[0] is not None and self._forms[0][0] == "and_above"
        spans = self._spans
        return (
            spans is not None and len(spans) > 1 and all(second[1] < first[0] for first, second in pairwise(spans))
        )

    @cached_property
    def nbi(self) -> bool:
        """Whether ratings are those of the National Bridge Inventory, 9 to 0, a part of them or groups of them."""
        if not self.falling or self._spans is None:
            return False
        (low, high), last = self._spans[0], self._spans[-1]
        return low in NBI_BEST[high != math.inf :] and high in (8, 9, math.inf) and (last[0] >= 0 or last[1] >= 0)

    @cached_property
    def roman(self) -> bool:
        """Whether ratings are Roman numerals."""
        return tuple(map(plain_label, self.labels)) == ROMAN[: len(self.labels)]

    def name(self, state: int, words: Words | None = None) -> str:
        """Name of a rating as people read it: its label, and that of its class where it is all of one."""
        told = self.say_name(state)
        return told if isinstance(told, str) else _words(words).format(told)

    def _find_own_class(self, state: int) -> str | None:
        """Class of the National Bridge Inventory that a rating is all of."""
        low, high = self._spans[state - 1] if self.nbi and self._spans is not None else (0.0, 0.0)
        for name, highest in NBI_CLASSES.items():
            below = [other for other in NBI_CLASSES.values() if other < highest]
            if self.nbi and high == highest and low == (max(below) + 1 if below else -math.inf):
                return name
        return None

    def or_worse(self, state: int, words: Words | None = None) -> str:
        """Name of a rating and all worse ones: '4 or below', 'c or worse', 'below 70', 'Poor (4 or below)'."""
        if state > len(self.labels):
            return Ratings.of(self.labels, state).or_worse(state, words)
        tell, form = _words(words), self._forms[state - 1]
        if self._bands and form is not None:
            kind, _, written = form
            if kind == "from_to":
                key, limit = ("below", written[1]) if self.falling else ("and_above", written[0])
                return tell(f"rating.{key}", limit=limit)
            return self._say(state, words)
        if self.falling and self._spans is not None and form is not None:
            high = self._spans[state - 1][1]
            if high == math.inf:
                return self.name(state, words)
            told = tell("rating.or_below", number=form[2][-1])
            names = [name for name, highest in NBI_CLASSES.items() if highest <= high]
            whole = self.nbi and high in NBI_CLASSES.values()
            return tell("rating.class", name=tell.join(names, "or"), label=told) if whole else told
        if form is not None and form[0] == "or_above":
            return self._say(state, words)
        return self._say_to_worst(state, form, words)

    def _say_to_worst(self, state: int, form: Form | None, words: Words | None) -> str:
        """'c or worse', or in a language whose 'or worse' can be taken for the better side, the ratings meant."""
        label, end = form[2][0] if form is not None else self._say(state, words), self._forms[-1]
        kind = {len(self.labels): "one", len(self.labels) - 1: "two"}.get(state, "many")
        if end is not None and end[0] != "number":
            kind = "open"
        return _words(words)(f"rating.to_worst.{kind}", label=label, worst=self.labels[-1])

    def phrase(self, state: int, words: Words | None = None) -> str:
        """'rating c', or what ratings are called in the language."""
        return _words(words)(self._noun, label=self.name(state, words))

    def phrase_or_worse(self, state: int, words: Words | None = None) -> str:
        """'rating c or worse', or what ratings are called in the language."""
        return _words(words)(self._noun, label=self.or_worse(state, words))

    def rated(self, state: int, words: Words | None = None) -> str:
        """Rating of a member: 'c or worse', with the noun where the language has one there."""
        return _words(words)(f"rating.rated{self._kind}", label=self.or_worse(state, words))

    @property
    def _noun(self) -> str:
        return f"rating.one{self._kind}"

    @property
    def _kind(self) -> str:
        """Ending of the keys of the language files, for ratings that have a noun of their own."""
        return "_roman" if self.roman and len(self.labels) <= ROMAN_RATINGS else ""

    def said(self, states: Sequence[int], *, first: bool = False) -> Said:
        """'rating c', 'ratings b, c' for a sentence that is put into words later; ``first`` at its beginning."""
        key = f"rating.{'these' if first else 'some'}{self._kind}"
        return say(key, n=len(states), labels=[self.say_name(state) for state in states])

    def say_name(self, state: int) -> Said | str:
        """Name of a rating for a sentence that is put into words later."""
        if state > len(self.labels):
            return str(state)
        label, form = self.labels[state - 1], self._forms[state - 1]
        if form is None or form[0] == "number":
            return label
        told = say(f"rating.{form[0]}", **_places(form))
        name = self._find_own_class(state)
        return told if name is None else say("rating.class", name=name, label=told)

    def _say(self, state: int, words: Words | None) -> str:
        """A label; one that rekka made, of a group or band, in the language."""
        form = self._forms[state - 1]
        if form is None or form[0] == "number":
            return self.labels[state - 1]
        return _words(words)(f"rating.{form[0]}", **_places(form))

    def mean(self, position: float) -> float:
        """A mean of states in the users' own numbers, where ratings are whole numbers one apart; else as it is."""
        spans = self._spans
        if spans is None or any(low != high for low, high in spans) or len(spans) < 2:
            return position
        steps = {second[0] - first[0] for first, second in pairwise(spans)}
        return position if steps not in ({1.0}, {-1.0}) else spans[0][0] + steps.pop() * (position - 1)

    @property
    def has_numbers(self) -> bool:
        """Whether ``mean`` speaks in the users' own numbers."""
        return self.mean(1.5) != 1.5 or self.numbered

    def find(self, asked: int | str, option: str = "threshold") -> int:
        """State that was asked for: a whole number is a state from 1, a text a label or what labels say.

        A text that is a number is the label, or a number within it; it is the place on the scale, as an int is,
        only where labels are no numbers.
        """
        worst = len(self.labels)
        if isinstance(asked, str):
            found = self._find_text(plain_label(asked))
            if found is None and option == START:  # a member that is rated 9 is in the group of 9 and 8
                found = self._find_group(asked)
            if found is not None:
                return found
        elif not isinstance(asked, bool) and isinstance(asked, Integral) and 1 <= asked <= worst:
            return int(asked)
        needed = "" if isinstance(asked, str) else f"; a state from 1 to {worst}, or its label, is needed"
        raise BadOption(
            f"{option} is {asked!r}{needed}. {self._explain_choices(asked)}",
            option=option,
            value=asked,
            choices=list(self.labels),
        )

    def _find_text(self, asked: str) -> int | None:
        states = range(1, len(self.labels) + 1)
        bare = asked.removeprefix("rating ").removesuffix(" or below" if self.falling else " or worse")
        bare = bare.removesuffix(" or worse")
        for name in (lambda one: self.labels[one - 1], self.name, self.or_worse):
            for text in (asked, bare):
                found = [state for state in states if plain_label(name(state)) == text]
                if found:
                    return found[0]
        classes = {name.lower(): highest for name, highest in NBI_CLASSES.items()} if self.nbi else {}
        spans = self._spans or ()
        if bare in classes:
            return self._find_class(classes[bare])
        below = _FORMS["below"].fullmatch(bare)
        if below and self.falling and self._spans is not None:
            limit = float(below[1])
            first = next((state for state, (_, high) in enumerate(self._spans, start=1) if high < limit), None)
            whole = first is not None and (first == 1 or self._spans[first - 2][0] >= limit)
            return first if whole else None
        if not _FORMS["number"].fullmatch(bare):
            return None
        number = float(bare)
        if self._spans is not None:
            ends = [high if self.falling else low for low, high in spans]
            return ends.index(number) + 1 if number in ends else None
        if self._bands:
            limits = [plain_label(self.or_worse(state)) for state in states]
            for text in (f"below {bare}", f"{bare} and above"):
                if text in limits[1:]:
                    return limits.index(text, 1) + 1
        return int(number) if number in states else None

    def _find_group(self, asked: str) -> int | None:
        """Rating that a number is within."""
        text = plain_label(asked)
        if self._spans is None or not _FORMS["number"].fullmatch(text):
            return None
        within = (state for state, (low, high) in enumerate(self._spans, 1) if low <= float(text) <= high)
        return next(within, None)

    def _find_class(self, highest: float) -> int | None:
        """First rating of a class by the highest number of it; None where a rating is partly of the class."""
        spans = self._spans or ()
        found = next((state for state, (_, high) in enumerate(spans, start=1) if high <= highest), None)
        whole = found is not None and (found == 1 or spans[found - 2][0] > highest)
        return found if whole else None

    def _explain_choices(self, asked: object) -> str:
        """Sentence on which ratings there are, and what may have been meant."""
        names = [*self.labels, *(NBI_CLASSES if self.nbi else ())]
        told = f"The ratings are {name_some(self.labels)}, best first"
        if self.nbi:
            told += f"; {', '.join(NBI_CLASSES)} are known too"
        place = self._find_group(asked) if isinstance(asked, str) else None
        if place is not None:
            return f"{told}: {asked} is within {self.labels[place - 1]!r}, which is one rating here."
        return f"{told}.{did_you_mean(asked, names) if isinstance(asked, str) else ''}"

    @cached_property
    def _default(self) -> tuple[int, str]:
        """Threshold where none is given, and why."""
        worst = len(self.labels)
        usual = min(USUAL_THRESHOLD, worst)
        if self.nbi:
            poor = self._find_class(NBI_CLASSES["Poor"])
            if poor is not None:
                return poor, "the default where ratings run from 9 to 0"
            return worst, "the default, the worst rating"
        if self.roman and worst <= ROMAN_RATINGS:
            return min(ROMAN_THRESHOLD, worst), f"the default of {self.labels[0]} to {self.labels[-1]}"
        if worst >= USUAL_THRESHOLD:
            return usual, f"the default, the {_ordinal(usual)} rating"
        return usual, "the default, the worst rating"

    @property
    def default_threshold(self) -> int:
        """State that is asked for unless told: Poor of 9 to 0, III of I to IV, else the 4th, or the worst."""
        return self._default[0]

    def choose_threshold(self, asked: int | str | None, option: str = "threshold") -> int:
        """State of a threshold as given, or the default of the scale; the best rating is none."""
        if asked is None:
            return self.default_threshold
        found = self.find(asked, option)
        if found < 2:
            raise BadOption(
                f"{option} is {asked!r}, the best rating, which every member has reached. "
                f"{self._explain_choices(None)}",
                option=option,
                value=asked,
                choices=list(self.labels[1:]),
            )
        return found

    def explain_threshold(self, state: int, *, given: bool = False) -> str:
        """'threshold: rating d or worse, the 4th of 5 ratings'; nothing where labels are the states' numbers."""
        if self.numbered:
            return ""
        told = f"threshold: {self.phrase_or_worse(state)}, the {_ordinal(state)} of {len(self.labels)} ratings"
        return told if given else f"{told}; {self._default[1]}"

    def reword(self, text: str) -> str:
        """A sentence with 'state 3' or 'states 1, 2' in it, with ratings in their place.

        Sentences of a fit are made, and stored, before anybody knows what its states are called.

        Examples
        --------
        >>> Ratings(("a", "b", "c")).reword("states 1, 2: no row leaves")
        'ratings a, b: no row leaves'

        """
        return _STATES.sub(self._reword, text)

    def reword_all(self, value: Any) -> Any:
        """Plain data with every sentence in it reworded; keys stay."""
        if isinstance(value, str):
            return self.reword(value)
        if isinstance(value, dict):
            return {name: one if name == "say" else self.reword_all(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self.reword_all, value))
        return value

    def _reword(self, found: re.Match[str]) -> str:
        where, capital, first, others = found[1] or "", found[2], found[3], found[4]
        several = ", " in others or " and " in others or " or " in others
        noun = ("R" if capital == "S" else "r") + ("atings" if several else "ating")
        rest = re.sub(r"\d+", lambda one: self._take(int(one[0])), others)
        return f"{where}{noun} {self._take(int(first))}{rest}"

    def _take(self, state: int) -> str:
        return self.name(state) if state else str(state)


def _words(words: Words | None) -> Words:
    return load_words(ENGLISH) if words is None else words


def _parse(label: str) -> Form | None:
    for kind, pattern in _FORMS.items():
        found = pattern.fullmatch(label.strip())
        if found is not None:
            return kind, tuple(map(float, found.groups())), found.groups()
    return None


def _places(form: Form) -> dict[str, str]:
    """Values of the places in the text of a label that rekka made."""
    kind, _, written = form
    names = {"from_to": ("low", "high"), "below": ("limit",), "and_above": ("limit",)}.get(kind, ("number",))
    return dict(zip(names, written, strict=True))


def _ordinal(number: int) -> str:
    """'1st', '2nd', '3rd', '4th', '11th'."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
