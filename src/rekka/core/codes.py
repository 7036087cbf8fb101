"""Codes of findings that were merged into others: they stay listed, and are never used again."""

from __future__ import annotations

RETIRED = {
    "R604": "R402",
    "R607": "R502",
    "R609": "R404",
    "R610": "R302",
    "R801": "R501",
    "R802": "R503",
}


def current(code: str) -> str:
    """A code, or the one that it was merged into."""
    return RETIRED.get(code, code)
