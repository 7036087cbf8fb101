"""``rekka verify``: this installation beside numbers that its models are known to give."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import rekka
from rekka.commands.bars import count_progress
from rekka.commands.options import AsJson
from rekka.core.language import ENGLISH
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rekka.core.language import Words
    from rekka.verification.page import ShownCheck
    from rekka.verification.verify import Verification


def verify(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the result here: .html (a page) or .json (numbers)."),
    ] = None,
    lang: Annotated[str, typer.Option(metavar="LANG", help="Language of the page: en or ja.")] = ENGLISH,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS", help="Only checks with these words in their name, kind or title. Repeatable."
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every number, not the furthest of each check.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute known numbers with this installation, and compare: needs no network, takes up to two minutes.

    Closed forms, probabilities with 50 digits, maxima that a second optimizer and R's msm find too, the paper's
    tables and where they do not hold, coverage of intervals: each with its source, what is expected, what this
    installation computes, and whether both agree. The exit code is 1 if one number differs. Run it after
    installing a new version, before using its results.

    For example:

      rekka verify

      rekka verify --out verification.html

      rekka verify --only histories --only "50 digits" --verbose
    """
    from rekka.core.errors import bad_option
    from rekka.core.language import LANGUAGES, load_words
    from rekka.verification.verify import check_place, choose_checks

    if lang not in LANGUAGES:
        raise bad_option("--lang", lang, LANGUAGES)
    if out is not None:
        check_place(out)
    choose_checks(only or None)
    words = load_words(ENGLISH)
    with count_progress(new_console(stderr=True), words("verify.progress")) as on_progress:
        found = rekka.verify(only=only or None, on_progress=on_progress)
    written = None if out is None else found.write(out, lang)
    if as_json:
        echo_json(found.to_dict())
    else:
        _print_found(new_console(), found, written, verbose=verbose)
    if not found.ok:
        raise typer.Exit(1)


def _print_found(console: Console, found: Verification, written: Path | None, *, verbose: bool) -> None:
    """Print the answer, a line for each check or for each number, and where the file is."""
    from rekka.core.language import load_words
    from rekka.report.terminal.parts import print_line, print_plain, print_warning
    from rekka.verification.page import group_checks, say_answer

    words = load_words(ENGLISH)
    if found.ok:
        print_plain(console, say_answer(found.results, words))
    else:
        print_warning(console, say_answer(found.results, words))
    if not verbose:
        print_plain(console, words("verify.furthest_terminal"))
    console.print()
    for kind, checks in group_checks(found.results, words).items():
        if verbose:
            _print_numbers(console, checks, words)
        else:
            _print_checks(console, words(f"verify.kind.{kind}"), checks, words)
        for one in checks:
            if one.error:
                print_warning(console, f"{one.title} {one.error}", end="\n")
    if written is not None:
        key = "numbers_written" if written.suffix.lower() == ".json" else "page_written"
        print_line(console, words(f"verify.{key}", file=str(written)))


def _print_checks(console: Console, title: str, checks: Sequence[ShownCheck], words: Words) -> None:
    """Print a line for each check of a kind: the number that is furthest from what is expected."""
    from rekka.report.terminal.tables import print_texts
    from rekka.verification.page import say_verdict

    columns = ("check", "count", "expected", "got", "source", "verdict")
    lines = [
        (one.title, f"{one.numbers}", one.line.expected, one.line.got, one.source, say_verdict(one.ok, words))
        for one in checks
    ]
    print_texts(console, title, [words(f"verify.column.{name}") for name in columns], lines, left=(0, 4, 5))


def _print_numbers(console: Console, checks: Sequence[ShownCheck], words: Words) -> None:
    """Print all numbers of each check, under its title and source."""
    from rekka.report.terminal.tables import print_texts
    from rekka.verification.page import say_verdict

    heads = [words(f"verify.column.{name}") for name in ("item", "expected", "got", "verdict")]
    for one in checks:
        lines = [(line.item, line.expected, line.got, say_verdict(line.ok, words)) for line in one.lines]
        print_texts(console, f"{one.title} ({one.source})", heads, lines, left=(0, 3))
