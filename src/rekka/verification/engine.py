"""Checks of an installation: what is registered, the numbers they expect, and how two numbers are compared.

    @verifies("erlang", "probabilities", source="formula")
    def erlang(numbers):
        yield compare(probability(...), expected, got, relative=1e-12)

A check is a function of the stored numbers that yields comparisons. Stored numbers are in ``numbers.json``, which
``python tests/verification_numbers.py`` writes, and in ``paper_trials.json``, typed from the paper. The title of a
check and its source are in the language files: ``verify.check.NAME``, ``verify.source.NAME`` (short) and
``verify.reference.NAME`` (in full).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

from rekka.core.language import Said

KINDS = ("probabilities", "maxima", "certificate", "histories", "published", "paper", "simulation")  # as shown
MODULES = ("probabilities", "maxima", "histories", "published", "simulations")
Value = float | str  # a number, or a key of ``verify.value``

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """One number: what it is, what it should be, what this installation computes, and how far they may be apart.

    ``relative`` says that difference and tolerance are shares of the expected number. A text must be the same.
    """

    item: Said
    expected: Value
    got: Value
    tolerance: float
    relative: bool = False

    @property
    def difference(self) -> float:
        """Distance, as a share of the expected number where it is relative; infinite between different texts."""
        if isinstance(self.expected, str) or isinstance(self.got, str):
            return 0.0 if self.expected == self.got else math.inf
        if self.expected == self.got:
            return 0.0
        apart = abs(self.got - self.expected)
        return apart / abs(self.expected) if self.relative and self.expected else apart

    @property
    def ok(self) -> bool:
        """Whether they agree. What is no number agrees with nothing."""
        return self.difference <= self.tolerance

    @property
    def severity(self) -> float:
        """Difference in units of the tolerance; infinite for what is no number."""
        if self.difference == 0.0:
            return 0.0
        found = self.difference / self.tolerance if self.tolerance else math.inf
        return math.inf if math.isnan(found) else found


@dataclass(frozen=True)
class RegisteredCheck:
    """A registered check. ``source`` names where its expected numbers come from."""

    name: str
    kind: str
    source: str
    run: Callable[[Numbers], Iterator[Comparison]]


REGISTERED: dict[str, RegisteredCheck] = {}


def verifies(
    name: str, kind: str, *, source: str
) -> Callable[[Callable[[Numbers], Iterator[Comparison]]], Callable[[Numbers], Iterator[Comparison]]]:
    """Register a check under a name; its kind is one of ``KINDS``."""
    assert kind in KINDS, f"{kind} is no kind of check"
    assert name not in REGISTERED, f"there is a check {name} already"

    def register(run: Callable[[Numbers], Iterator[Comparison]]) -> Callable[[Numbers], Iterator[Comparison]]:
        REGISTERED[name] = RegisteredCheck(name, kind, source, run)
        return run

    return register


def compare(
    item: Said, expected: Any, got: Any, *, within: float = 0.0, relative: float | None = None
) -> Comparison:
    """Compare two numbers, with an absolute tolerance or a relative one; or two texts."""
    values: list[Value] = [one if isinstance(one, str) else float(one) for one in (expected, got)]
    tolerance = within if relative is None else relative
    return Comparison(item, values[0], values[1], tolerance, relative is not None)


def list_checks() -> list[RegisteredCheck]:
    """All checks, kind by kind."""
    for module in MODULES:
        import_module(f"rekka.verification.{module}")
    return sorted(REGISTERED.values(), key=lambda one: KINDS.index(one.kind))


@cache
def load_numbers() -> Numbers:
    """Stored numbers by the name of what uses them; the paper's tables are under ``paper``."""
    stored = {name: json.loads(_read(f"{name}.json")) for name in ("numbers", "paper_trials")}
    return {**stored["numbers"], "paper": stored["paper_trials"]}


def _read(name: str) -> str:
    return (resources.files("rekka.verification") / name).read_text(encoding="utf-8")
