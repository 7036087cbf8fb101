"""Text in files that a spreadsheet opens: it must never be taken for a formula.

A text that begins with = + - or @ (or their full-width kin) after any blanks, or with a tab or a line break, may
be run as a formula by a spreadsheet. An apostrophe before it makes it text. Numbers need no guard: -0.5 stays so.
A program that reads such a file takes the apostrophe off again with ``unguard_text``.
"""

from __future__ import annotations

import re

GUARD = "'"
# \s covers tabs, line breaks and every blank of Unicode (\x1c to \x1f in Python, but not in polars, which takes
# the pattern too); then come characters that take no room on the screen. A text with apostrophes before all this
# is guarded too, so that every text can be read back.
_BLANK = r"[\s\x1c-\x1f\x00\u200b-\u200f\u2060\ufeff]"
ACTIVE = rf"'*(?:[\t\r\n]|{_BLANK}*[=+\-@\uff1d\uff0b\uff0d\uff20])"
_ACTIVE = re.compile(ACTIVE)


def guard_text(text: str) -> str:
    """The text as a spreadsheet may have it: with an apostrophe before it where it would be a formula."""
    return GUARD + text if _ACTIVE.match(text) else text


def unguard_text(text: str) -> str:
    """What ``guard_text`` was given: ``unguard_text(guard_text(text)) == text`` for every text."""
    return text[1:] if text.startswith(GUARD) and _ACTIVE.match(text[1:]) else text
