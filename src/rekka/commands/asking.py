"""The options that say which model is asked, at which covariates, and how sure it is; what is said of these."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from rekka.commands import telling
from rekka.core.errors import BadOption, did_you_mean, name_some, no_such_case

if TYPE_CHECKING:
    from rekka.fleet.models import CaseModel, Models
    from rekka.forecast.forecast import Doubt
    from rekka.model.fit import Fit

LONGEST_SLUG = 100  # bytes: a file system allows 255 in a name, Windows 260 in a whole path
DIGEST = 12  # characters of a SHA-256
RESERVED = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"))

ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model file of rekka fit, a folder of them, or a run folder.", show_default=False
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="LIST",
        help="Covariates, such as age_at_inspection_1=40,traffic_mean=8000. Default: typical, the medians of the "
        "training rows.",
    ),
]
Age = Annotated[
    str,
    typer.Option(
        "--age",
        metavar="HOW",
        help="Age over the years: fixed, advances, or held (not beyond the oldest of the training rows).",
    ),
]
Advance = Annotated[
    list[str] | None,
    typer.Option(
        "--advance", metavar="NAME", help="A covariate that advances by the year, if not called age. Repeatable."
    ),
]
Clock = Annotated[
    str,
    typer.Option(
        "--clock",
        metavar="WHERE",
        help="Where ages are taken in the fit: at the middle of each interval, or at its start, as in the paper.",
    ),
]
Intervals = Annotated[
    str,
    typer.Option(
        "--intervals",
        metavar="HOW",
        help="Uncertainty of the parameters: delta, normal (draws), bootstrap (refits of rekka fit --bootstrap) "
        "or none.",
    ),
]
Draws = Annotated[int, typer.Option("--draws", help="Draws for --intervals normal.")]
Level = Annotated[float, typer.Option("--level", help="Level of the intervals.")]
DrawSeed = Annotated[int, typer.Option("--seed", min=0, help="Of the draws.")]


def load_cases(errors: Console, path: Path, only: Sequence[str] | None) -> tuple[Models, tuple[CaseModel, ...]]:
    """The models under a path, and those of them that are asked."""
    from rekka.study.models import load_models

    with errors.status(f"Reading {escape(path.name)} ..."):
        found = load_models(path, include_unchosen=True)
    there = [name_model(model) for model in found.models]
    for name in only or ():
        if name not in there:
            raise no_such_case(name, there)
    return found, tuple(model for model in found.models if not only or name_model(model) in only)


def name_model(model: CaseModel) -> str:
    """The case, or the file where a model does not say what it is of."""
    return model.name


def read_pairs(texts: Sequence[str] | None, hint: str, example: str) -> dict[str, str]:
    """NAME=VALUE of an option, several with commas between them, or the option several times."""
    found: dict[str, str] = {}
    for part in (part for text in texts or () for part in text.split(",")):
        name, sign, value = (side.strip() for side in part.partition("="))
        if not (name and sign and value):
            raise typer.BadParameter(f"{part.strip()!r} is not like {example}", param_hint=hint)
        found[name] = value
    return found


def read_at(texts: Sequence[str] | None) -> dict[str, float]:
    """Values of covariates as given on the command line."""
    example = "age_at_inspection_1=40"
    found = {}
    for name, text in read_pairs(texts, "--at", example).items():
        try:
            found[name] = float(text)
        except ValueError:
            raise typer.BadParameter(f"{f'{name}={text}'!r} is not like {example}", param_hint="--at") from None
    return found


def choose_own(option: str, given: Mapping[str, Any], models: Sequence[CaseModel]) -> list[dict[str, Any]]:
    """What is given of each model's own covariates; a name that no model knows is refused."""
    known = list(dict.fromkeys(name for model in models for name in model.fit.covariates))
    for name in given:
        if name not in known:
            raise BadOption(
                f"{option} names {name}, which is not a covariate here; {name_some(known)} are."
                f"{did_you_mean(name, known)}",
                option=option,
                value=name,
            )
    return [{name: given[name] for name in given if name in model.fit.covariates} for model in models]


def make_doubt(intervals: str, level: float, draws: int, seed: int) -> Doubt:
    """How uncertainty is reckoned."""
    from rekka.forecast.forecast import Doubt

    return Doubt(intervals=intervals, level=level, draws=draws, seed=seed)


def split_notes(notes: Iterable[str]) -> tuple[list[str], list[str]]:
    """What must stand at the head of everything, and what else there is to know."""
    from rekka.forecast.forecast import NOT_CERTIFIED

    head: list[str] = []
    rest: list[str] = []
    for note in notes:
        (head if note.startswith(NOT_CERTIFIED) else rest).append(note)
    return head, rest


def tell_covariates(fit: Fit, values: Mapping[str, float], given: Mapping[str, Any]) -> str:
    """'At age_at_inspection_1 = 40 (given), traffic_mean = 5,200 (typical).'."""
    if not values:
        return "The model has no covariates."
    source = "typical" if fit.survey is not None else "given"
    some = (f"{name} = {value:,.6g} ({'given' if name in given else source})" for name, value in values.items())
    return f"At {', '.join(some)}."


def print_head(console: Console, title: str, head: Sequence[str], lines: Sequence[str]) -> None:
    """A case: its name, what must be known first, at which covariates."""
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for line in head:
        console.print(f"[bold red]{escape(line)}[/]", highlight=False)
    for line in lines:
        console.print(escape(line), highlight=False)
    console.print()


def tell_first(model: CaseModel, head: Iterable[str]) -> list[str]:
    """What must be known first: not a certified maximum, not chosen, not a model that describes its data."""
    return [*dict.fromkeys(head), *tell_unchosen(model), *([] if model.misfit is None else [model.misfit])]


def tell_unchosen(model: CaseModel) -> list[str]:
    """A line that says that the study did not choose this model, where it did not."""
    if model.chosen:
        return []
    return [f"NOT CHOSEN: the study chose no model for {model.name}; this is the fit of its default method."]


def describe_test(model: CaseModel) -> dict[str, Any] | None:
    """The test of fit of a model as plain data; None where it was not made."""
    test = model.fit.fit_test
    return None if test is None else test.to_dict(model.labels)


def new_table() -> Table:
    """A table in the house's style, whose title stands over it in full width."""
    table = telling.new_table("")
    table.title = None
    return table


def print_table(console: Console, title: str, table: Table) -> None:
    """A table under its title."""
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    console.print(table)
    console.print()


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """What to know, each once."""
    if notes:
        console.print("[bold]What to know[/]")
    for note in dict.fromkeys(notes):
        console.print(Padding(f"- {escape(note)}", (0, 0, 0, 2)), highlight=False)
    if notes:
        console.print()


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


def show_number(value: float | None, digits: int = 4) -> str:
    """So many significant digits; a dash where there is no number."""
    return "-" if value is None else f"{value:,.{digits}g}"
