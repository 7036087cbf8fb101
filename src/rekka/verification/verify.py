"""``verify``: compute known numbers with this installation and compare; as table, JSON and page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadOption
from rekka.core.files import has_mark, make_folder, refuse_foreign, write_text
from rekka.core.folders import plain
from rekka.core.language import ENGLISH, LANGUAGES, load_words
from rekka.core.machine import describe_machine, describe_versions
from rekka.verification.engine import KINDS, RegisteredCheck, list_checks, load_numbers
from rekka.verification.page import render_verification
from rekka.verification.results import CheckResult, count_numbers, count_wrong, run_check

FORMAT, VERSION = "rekka-verification", 1  # of the plain data
JSON, HTML = ".json", ".html"
MARKS = (f'"format": "{FORMAT}"'.encode(), f'data-format="{FORMAT}"'.encode())  # of an earlier file
SCHEMA = {
    "kind": pl.String, "check": pl.String, "item": pl.String, "source": pl.String, "expected": pl.Float64,
    "got": pl.Float64, "expected_words": pl.String, "got_words": pl.String, "difference": pl.Float64,
    "tolerance": pl.Float64, "relative": pl.Boolean, "ok": pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Verification:
    """Results of the checks, with versions and machine.

    Examples
    --------
    >>> import rekka
    >>> found = rekka.verify(only="equal hazards")
    >>> found.ok, found.frame["ok"].all()
    (True, True)

    """

    results: tuple[CheckResult, ...]
    versions: dict[str, str]
    machine: dict[str, Any]
    date: str

    @property
    def ok(self) -> bool:
        """Whether every number agrees."""
        return all(one.ok for one in self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Checks with a number that differs, or that could not be computed."""
        return tuple(one for one in self.results if not one.ok)

    @property
    def n_numbers(self) -> int:
        """How many numbers were compared."""
        return count_numbers(self.results)

    @property
    def n_wrong(self) -> int:
        """How many of them differ."""
        return count_wrong(self.results)

    @property
    def seconds(self) -> float:
        """How long the checks took."""
        return sum(one.seconds for one in self.results)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each number; verdicts, which are no numbers, are in the columns of words."""
        words, rows = load_words(ENGLISH), []
        for result in self.results:
            check = result.check
            for one in result.comparisons:
                texts = isinstance(one.expected, str), isinstance(one.got, str)
                rows.append((
                    check.kind, check.name, words.format(one.item), check.source,
                    None if texts[0] else one.expected, None if texts[1] else one.got,
                    one.expected if texts[0] else None, one.got if texts[1] else None,
                    one.difference, one.tolerance, one.relative, one.ok,
                ))  # fmt: skip
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Plain data: each number with source, expected, got and verdict."""
        head = {"format": FORMAT, "version": VERSION, "ok": self.ok, "date": self.date, "seconds": self.seconds}
        counts = {"checks": len(self.results), "numbers": self.n_numbers, "wrong": self.n_wrong}
        checks = [one.to_dict() for one in self.results]
        return {**head, "counts": counts, "versions": self.versions, "machine": self.machine, "checks": checks}

    def to_html(self, lang: str = ENGLISH) -> str:
        """The page: one HTML file that needs nothing else."""
        return render_verification(self.results, self.versions, self.machine, self.date, lang)

    def write(self, path: str | Path, lang: str = ENGLISH) -> Path:
        """Write the page (.html) or the numbers (.json). Only an earlier verification is written over."""
        file = Path(path)
        check_place(file)
        make_folder(file.parent)
        if file.suffix.lower() == JSON:
            text = json.dumps(plain(self.to_dict()), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        else:
            text = self.to_html(lang)
        write_text(file, text)
        return file


def check_place(file: Path) -> None:
    """Refuse, before the work, a file of another kind or of another program."""
    if file.suffix.lower() not in (JSON, HTML):
        raise BadOption(
            f"{file.name} is neither .html nor .json; a verification is written as one of them.", option="out"
        )
    refuse_foreign([file], has_mark(*MARKS))


def verify(
    *, only: str | Sequence[str] | None = None, on_progress: Callable[[str, int, int], None] | None = None
) -> Verification:
    """Compute known numbers with this installation, and compare.

    Parameters
    ----------
    only : str or list of str, optional
        Only checks with one of these texts in their name, kind or title, in upper or lower case.
    on_progress : callable, optional
        Called before each check with its title, how many are done, and of how many.

    Examples
    --------
    >>> import rekka
    >>> rekka.verify(only=["equal hazards", "proposition"]).ok
    True

    """
    chosen = choose_checks(only)
    numbers, results = load_numbers(), []
    for done, check in enumerate(chosen):
        if on_progress is not None:
            on_progress(load_words(ENGLISH)(f"verify.check.{check.name}"), done, len(chosen))
        results.append(run_check(check, numbers))
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Verification(tuple(results), describe_versions(), describe_machine(), date)


def choose_checks(only: str | Sequence[str] | None) -> list[RegisteredCheck]:
    """Checks that were asked for, in the order of the page."""
    every = list_checks()
    if only is None:
        return every
    wanted = [one.strip().lower() for one in ([only] if isinstance(only, str) else only)]
    found = [check for check in every if any(one and one in text for one in wanted for text in _list_names(check))]
    if not found:
        names = ", ".join(check.name for check in every)
        raise BadOption(
            f"only is {', '.join(wanted)!r}: no check and no kind has this in its name. "
            f"Kinds: {', '.join(KINDS)}. Checks: {names}.",
            option="only",
        )
    return found


def _list_names(check: RegisteredCheck) -> list[str]:
    keys = (f"verify.check.{check.name}", f"verify.kind.{check.kind}")
    titles = [load_words(lang)(key).lower() for lang in LANGUAGES for key in keys]
    return [check.name, check.name.replace("_", " "), check.kind, *titles]
