"""``rekka docs``: the documentation of this version, without a network."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from rekka.core.terminal import echo


def docs(
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it in the browser; else print where it is.")
    ] = True,
    lang: Annotated[str, typer.Option(help="Language of the first page: en or ja.", metavar="LANG")] = "en",
) -> None:
    """Open the documentation of this version in the browser; it is installed with rekka and needs no network.

    For example:

      rekka docs

      rekka docs --lang ja --no-open
    """
    from rekka.core.documentation import FIRST_PAGES, find_documentation
    from rekka.core.errors import InputError, bad_option

    if lang not in FIRST_PAGES:
        raise bad_option("--lang", lang, list(FIRST_PAGES))
    found = find_documentation(lang)
    if found.page is not None:
        echo(str(found.page))
        if show:
            webbrowser.open(found.page.as_uri())
        return
    of = f" for this version; there is one of version {found.built}" if found.built else ""
    if found.markdown is None:
        raise InputError(
            f"The documentation is not installed with this copy of rekka{of}. Install a released wheel."
        )
    where = f"The same pages as Markdown: {found.markdown}"
    raise InputError(f"The documentation is not built{of}. Build it with: make docs. {where}")
