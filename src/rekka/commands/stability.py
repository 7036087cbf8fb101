"""``rekka stability``: whether other rows, another split or another start lead to the same choice."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from rekka.commands import telling
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson
from rekka.commands.reading import Only, split_list
from rekka.commands.study import BEFORE_FIRST, STOPPED, Cluster
from rekka.core.errors import count_of
from rekka.core.terminal import echo_json, new_console
from rekka.streaming.cluster.failures import ClusterError

if TYPE_CHECKING:
    from rekka.study.stability import Stability
    from rekka.study.stability_draws import Unit

RESAMPLES = 200
EXPLORATORY = "†"
MEANING = {
    "bootstrap": "bridges drawn with replacement, scored on the others",
    "splits": "80 % of the bridges, scored on the others",
    "seeds": "the training rows from random starts, scored on the validation rows",
}

Resamples = Annotated[int, typer.Option(min=1, help="Draws of each kind, for each case and preset.")]


def stability(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    resamples: Resamples = RESAMPLES,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="bootstrap (bridges with replacement), splits (80 % of the bridges), seeds (solver starts); "
            "all three by default.",
        ),
    ] = None,
    only: Only = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that fit side by side. Default: all cores.")
    ] = None,
    cluster: Cluster = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the draws. Default: the study's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Refit a study's cases to other rows and from other starts, to see which choices hold.

    For each case, how often each method reaches a maximum and is chosen. Golden rows are not used. Every draw is
    kept in the run folder: a stopped call can be continued, and one with more --resamples makes only the new ones.

    For example:

      rekka stability run

      rekka stability run --kinds bootstrap --resamples 1000 --only Pier

      rekka stability run --cluster tcp://host:8786
    """
    from rekka.study.stability import stability as make_draws
    from rekka.study.stability_draws import KINDS

    again = _spell(run, resamples, kinds, only, seed)
    with _watch(new_console(stderr=True), again) as on_unit:
        found = make_draws(
            run,
            kinds=split_list(kinds) or KINDS,
            resamples=resamples,
            seed=seed,
            cases=only or None,
            workers=workers,
            cluster=cluster,
            on_unit=on_unit,
        )
    if as_json:
        echo_json(_plain(found, run))
    else:
        print_stability(new_console(), found, run)


def print_stability(console: Console, found: Stability, run: Path) -> None:
    """What was drawn; how often what was chosen and reached a maximum; what to look at; where the files are."""
    cases, methods = count_of(len(found.cases), "case"), count_of(len(found.study.plan.study.methods), "method")
    draws, refits = count_of(found.resamples, "draw"), count_of(len(found.refits), "refit")
    drawn = f"[bold]{cases} by {methods}, {draws} of each kind: {refits}[/], seed {found.seed}"
    console.print(f"{drawn}. No golden row was used.\n", highlight=False)
    for preset in found.study.plan.study.presets:
        for kind in found.kinds:
            _print_kind(console, found, preset, kind)
    kinds = "; ".join(f"{kind}: {MEANING[kind]}" for kind in found.kinds)
    console.print(
        f"{kinds}. {telling.SELECTED} what the study chose. none: nothing was chosen. {EXPLORATORY} exploratory: "
        "fewer than 100 training rows, or than 5 events per parameter.\n",
        style="dim",
        highlight=False,
    )
    telling.print_remarks(console, found.remarks())
    console.print(
        f"\nThe draws are in {run / 'stability'}: selection.csv, methods.csv (spread of accuracy, log loss and "
        "cost), statuses.csv, cases.csv, refits.csv.",
        highlight=False,
        markup=False,
    )


def _print_kind(console: Console, found: Stability, preset: str, kind: str) -> None:
    """Cases by methods; as many tables as the terminal's width asks for."""
    tables = (found.selection, found.methods)
    here = (table.filter(preset=preset, kind=kind) for table in tables)
    chosen, fitted = (table.rows_by_key(["case", "method"], named=True, unique=True) for table in here)
    methods = found.study.plan.study.methods
    small = {case for case, why in found.cases.select("case", "exploratory").rows() if why}
    lines = []
    for case in found.cases["case"]:
        cells = [_cell(chosen[case, method], fitted[case, method]["certified"]) for method in methods]
        lines.append([escape(case) + (f" {EXPLORATORY}" if case in small else ""), *cells])
        lines[-1].append(_percent(chosen[case, methods[0]]["none"]))
    for group in _fit_width(console, [*methods, "none"], lines):
        table = telling.new_table(f"{kind}, preset {preset}: chosen / maximum reached, %")
        telling.add_columns(table, "case", *(name for _, name in group))
        for line in lines:
            table.add_row(line[0], *(line[place] for place, _ in group))
        console.print(table)
    console.print()


def _cell(chosen: dict[str, Any], certified: float) -> str:
    """'62 / 98*'."""
    text = f"{_percent(chosen['chosen'])} / {_percent(certified)}"
    return f"[bold]{text}{telling.SELECTED}[/]" if chosen["in_study"] else f"{text} "


def _percent(share: float | None) -> str:
    """A share in whole percent; only none and all are 0 and 100."""
    if share is None:
        return telling.NOTHING
    return str(min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share))


def _fit_width(
    console: Console, names: Sequence[str], lines: Sequence[Sequence[str]]
) -> list[list[tuple[int, str]]]:
    """The columns after the first, with their places, in groups that fit the terminal."""
    wide = [max(Text.from_markup(cell).cell_len for cell in column) for column in zip(*lines, strict=True)]
    room = console.width - min(wide[0], telling.LONGEST_NAME) - 1
    groups: list[list[tuple[int, str]]] = [[]]
    used = 0
    for place, name in enumerate(names, start=1):
        width = max(wide[place], len(name)) + 2
        if groups[-1] and used + width > room:
            groups.append([])
            used = 0
        groups[-1].append((place, name))
        used += width
    return groups


@contextmanager
def _watch(errors: Console, again: str) -> Iterator[Callable[[Unit, int, int], None]]:
    """A bar of draws; what is interrupted ends with the way to go on."""
    finished = total = 0
    try:
        with new_bar(errors) as progress:
            task = progress.add_task(BEFORE_FIRST, total=None, what="Draws")

            def on_unit(unit: Unit, done: int, planned: int) -> None:
                nonlocal finished, total
                finished, total = done, planned
                told = f"{unit.case}, {unit.kind} ({unit.preset})"
                progress.update(task, completed=done, total=planned, description=told)

            yield on_unit
    except KeyboardInterrupt:
        told = f"Stopped{f' after {finished:,} of {total:,} draws' if total else ''}. Go on with: {again}"
        errors.print(told, highlight=False, markup=False)
        raise typer.Exit(STOPPED) from None
    except (OSError, ClusterError):
        errors.print(f"What is done is kept. Go on with: {again}", highlight=False, markup=False)
        raise


def _spell(run: Path, resamples: int, kinds: str | None, only: Sequence[str] | None, seed: int | None) -> str:
    """The command that goes on with these draws."""
    words = ["rekka stability", telling.quote(run)]
    words += [] if resamples == RESAMPLES else [f"--resamples {resamples}"]
    words += [] if kinds is None else [f"--kinds {shlex.quote(kinds)}"]
    words += [f"--only {shlex.quote(case)}" for case in only or ()]
    words += [] if seed is None else [f"--seed {seed}"]
    return " ".join(words)


def _plain(found: Stability, run: Path) -> dict[str, Any]:
    """The tables as plain data, refits aside."""
    asked = {"run": str(run), "kinds": found.kinds, "resamples": found.resamples, "seed": found.seed}
    tables = {name: table.to_dicts() for name, table in found.tables().items() if name != "refits"}
    return asked | tables | {"remarks": found.remarks()}
