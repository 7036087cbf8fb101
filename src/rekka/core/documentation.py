"""Where the documentation is: beside an installed package, or in the source tree it runs from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import rekka
from rekka.core.language import ENGLISH

PACKAGE = Path(rekka.__file__).parent
INVENTORY = "objects.inv"  # Sphinx's list of all names; its third line is the version of the site
FIRST_PAGES = {ENGLISH: "index.html", "ja": "ja/index.html"}


@dataclass(frozen=True)
class Documentation:
    """Page to open, or the folder of the Markdown it is built from; either may be absent.

    ``built`` is the version of a site that is not of this version, and is not opened.
    """

    page: Path | None
    markdown: Path | None
    built: str | None = None


def find_documentation(lang: str = ENGLISH, package: Path | None = None) -> Documentation:
    """Find the documentation of this version: in the package, else in the source tree around it."""
    package = package or PACKAGE
    source = package.parent.parent / "docs"
    markdown = source if (source / "conf.py").is_file() else None
    stale = None
    for site in [package / "site", *([markdown.parent / "build" / "site"] if markdown else [])]:
        built = _read_version(site)
        if built == rekka.__version__:
            return Documentation(site / FIRST_PAGES[lang], markdown)
        stale = stale or built
    return Documentation(None, markdown, stale)


def _read_version(site: Path) -> str | None:
    """Version that a site describes; None if there is no site."""
    inventory = site / INVENTORY
    if not inventory.is_file():
        return None
    with inventory.open("rb") as stream:
        lines = [stream.readline().decode("utf-8").strip() for _ in range(3)]
    return lines[2].removeprefix("# Version: ")
