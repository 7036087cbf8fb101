"""The page of a verification, in the style of the report: one HTML file without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rekka.core.language import ENGLISH, MISSING, Words, load_words, say
from rekka.report.colours import write_style
from rekka.report.page import name_digest
from rekka.verification.engine import KINDS, Comparison, Value
from rekka.verification.results import CheckResult, count_numbers, count_wrong

DIGITS = 8  # significant, of a number that is shown


class NumberLine(NamedTuple):
    """One number in words: what it is, expected, got, tolerance, and whether both agree."""

    item: str
    expected: str
    got: str
    tolerance: str
    ok: bool


class ShownCheck(NamedTuple):
    """A check in words. ``line`` is the number furthest from what is expected; ``lines`` are all."""

    name: str
    title: str
    source: str
    reference: str
    numbers: int
    ok: bool
    line: NumberLine
    lines: tuple[NumberLine, ...]
    error: str


def show_value(value: Value, words: Words) -> str:
    """A number with eight digits, a verdict in words, methods by their names."""
    if not isinstance(value, str):
        return f"{value:.{DIGITS}g}"
    key = f"verify.value.{value}"
    return (
        words(key) if key in words.texts else words.join([words.method(one) for one in value.split(",")], "comma")
    )


def show_line(one: Comparison, words: Words) -> NumberLine:
    """One comparison in words; the same texts have no tolerance."""
    tolerance = MISSING if isinstance(one.expected, str) else f"{one.tolerance:.2g}"
    if one.relative:
        tolerance = words("verify.relative", tolerance=tolerance)
    return NumberLine(
        words.format(one.item), show_value(one.expected, words), show_value(one.got, words), tolerance, one.ok
    )


def show_check(result: CheckResult, words: Words) -> ShownCheck:
    """A check in words."""
    check, furthest = result.check, result.furthest
    error = "" if result.error is None else words("verify.failed", error=result.error)
    line = NumberLine("", MISSING, MISSING, MISSING, False) if furthest is None else show_line(furthest, words)
    return ShownCheck(
        check.name,
        words(f"verify.check.{check.name}"),
        words(f"verify.source.{check.source}"),
        words(f"verify.reference.{check.source}"),
        len(result.comparisons),
        result.ok,
        line,
        tuple(show_line(one, words) for one in result.comparisons),
        error,
    )


def say_verdict(ok: bool, words: Words) -> str:
    """Say whether numbers agree."""
    return words(f"verify.verdict.{'agrees' if ok else 'differs'}")


def say_answer(results: Sequence[CheckResult], words: Words) -> str:
    """The answer in one sentence."""
    counts = {"checks": len(results), "numbers": count_numbers(results)}
    names = [words(f"verify.check.{one.check.name}") for one in results if not one.ok]
    if not names:
        return words.format(say("verify.agree", **counts))
    return words.format(say("verify.differ", **counts, wrong=count_wrong(results), names=names))


def group_checks(results: Sequence[CheckResult], words: Words) -> dict[str, list[ShownCheck]]:
    """Checks in words by kind, in the order of the page."""
    groups = {kind: [show_check(one, words) for one in results if one.check.kind == kind] for kind in KINDS}
    return {kind: shown for kind, shown in groups.items() if shown}


def render_verification(
    results: Sequence[CheckResult],
    versions: Mapping[str, str],
    machine: Mapping[str, Any],
    date: str,
    lang: str = ENGLISH,
) -> str:
    """The page in a language."""
    words = load_words(lang)
    style = write_style()
    groups = group_checks(results, words)
    every = [one for group in groups.values() for one in group]
    shown: dict[str, Any] = {
        "words": words,
        "version": versions["rekka"],
        "seconds": sum(one.seconds for one in results),
        "answer": say_answer(results, words),
        "groups": groups,
        "references": {one.reference: one.source for one in every},
        "facts": {**versions, **{name: f"{value}" for name, value in machine.items()}},
        "date": date[:16].replace("T", " "),
        "verdict": lambda ok: say_verdict(ok, words),
        "style": Markup(style),
        "policy": f"style-src {name_digest(style)}",
    }
    return _environment().get_template("verification.html").render(**shown) + "\n"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rekka.verification", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
