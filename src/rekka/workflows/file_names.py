"""Names of components and covariates as names of files."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from itertools import count

LONGEST_SLUG = 100  # bytes: a file system allows 255 in a name, Windows 260 in a whole path
DIGEST = 12  # characters of a SHA-256
RESERVED = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"))


def name_slug(name: str) -> str:
    """A name as part of a file's name; of a long one the beginning and a digest of the whole."""
    slug = re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", name.lower())).strip("-") or "case"
    if len(slug.encode()) <= LONGEST_SLUG:
        return slug
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST]
    beginning = slug.encode()[: LONGEST_SLUG - DIGEST - 1].decode(errors="ignore")
    return f"{beginning}-{digest}"


def name_apart(names: Sequence[str]) -> list[str]:
    """Such names, no two alike for a file system that takes capitals for small letters, none reserved."""
    taken, found = set(RESERVED), []
    for name in names:
        slug = name_slug(name)
        choices = (f"{slug}{f'-{number}' if number else ''}" for number in count())
        found.append(next(choice for choice in choices if choice.casefold() not in taken))
        taken.add(found[-1].casefold())
    return found
