"""Wording that the sentences about trials share; light enough for the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rekka.core.errors import name_some

MOST_NAMES = 6


def list_names(names: Iterable[str]) -> str:
    """'a, b, c', or the first of very many and how many more there are."""
    some = list(names)
    return name_some(some, MOST_NAMES) if some else ""


def name_trials(trials: Sequence[tuple[str, str]]) -> str:
    """'max, minmax in Pier, Abutment; zscore in Pier': methods that share their cases together."""
    by_method: dict[str, list[str]] = {}
    for case, method in trials:
        by_method.setdefault(method, []).append(case)
    by_cases: dict[tuple[str, ...], list[str]] = {}
    for method, cases in by_method.items():
        by_cases.setdefault(tuple(cases), []).append(method)
    return "; ".join(f"{', '.join(methods)} in {list_names(cases)}" for cases, methods in by_cases.items())
