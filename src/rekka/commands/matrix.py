"""``rekka matrix``: transition matrices of fitted models, in the layouts of management systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from rekka.commands import asking, telling
from rekka.commands.data import AsJson
from rekka.commands.outputs import check_folder
from rekka.commands.reading import Only
from rekka.core.errors import BadOption
from rekka.core.files import has_columns, make_folder, refuse_inputs
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    from rekka.fleet.models import CaseModel
    from rekka.forecast.matrices import Matrix

VERSION = 1  # of the plain data that --json gives
OTHER_KINDS = (
    ".json",
    ".md",
    ".parquet",
    ".tsv",
    ".txt",
    ".xls",
    ".xlsx",
)  # files that a matrix is not written as
CELL = 8  # letters for a probability, and the blank before it
LEAST = 5e-5  # a probability below it would be shown as 0.0000


def matrix(
    model: asking.ModelPath,
    years: Annotated[
        str, typer.Option(metavar="LIST", help="Periods in years, such as 1,2,5: a matrix for each.")
    ] = "1",
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="square; long (with intervals); percent (that stay and go on, as in element tables); median "
            "(years in each state).",
        ),
    ] = "square",
    at: asking.At = None,
    age: asking.Age = "fixed",
    advance: asking.Advance = None,
    intervals: asking.Intervals = "delta",
    draws: asking.Draws = 1000,
    level: asking.Level = 0.95,
    seed: asking.DrawSeed = 0,
    decimals: Annotated[int, typer.Option(help="Of percentages, which sum to 100 as rounded.")] = 1,
    only: Only = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="Where it goes: a .csv file, or a folder with a file a case."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the transition matrix of a model for a member with given covariates: for a management system.

    Covariates that are not given are typical: the medians of the training rows. They stay as they are over the
    period unless --age says otherwise, so that a matrix of two years is that of one year twice.

    For example:

      rekka matrix girder.json

      rekka matrix models --years 1,2,5 --layout long --out matrices.csv

      rekka matrix run --layout median --at age_at_inspection_1=40,traffic_mean=8000 --out brm
    """
    from rekka.forecast.layouts import lay_out

    errors, console = new_console(stderr=True), new_console()
    times, given = _read_times(years), asking.read_at(at)
    _check_place(out)
    found, models = asking.load_cases(errors, model, only)
    files = _place(models, layout, out, model)
    options = {"age": age, "advance": advance, "doubt": asking.make_doubt(intervals, level, draws, seed)}
    own = asking.choose_own("at", given, models)
    made = [_make(one, values, times, options) for one, values in zip(models, own, strict=True)]
    tables = [lay_out(some, layout, decimals=decimals) for some in made]
    _write(files, tables, made, layout, decimals)
    if as_json:
        echo_json(_describe(found.name, layout, models, made, tables, files))
        return
    for one, values, some in zip(models, own, made, strict=True):
        _print_case(console, one, values, some, layout, decimals)
    asking.print_notes(console, [*found.notes, *(f"{case}: {why}." for case, why in found.missing.items())])
    where = f"written: {', '.join(map(str, files))}" if files else "Nothing was written; --out says where."
    console.print(where, highlight=False, markup=False, soft_wrap=True)


def _read_times(text: str) -> list[float]:
    try:
        return sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list such as 1,2,5", param_hint="--years") from None


def _check_place(out: Path | None) -> None:
    """Refuse, before the work, what is neither CSV nor a folder."""
    if out is not None and out.suffix.lower() in OTHER_KINDS:
        raise BadOption(
            f"{out.name} is not a .csv file; a matrix is written as CSV, or into a folder.", option="out"
        )


def _make(
    model: CaseModel, given: dict[str, float], times: Sequence[float], options: dict[str, Any]
) -> tuple[Matrix, ...]:
    from rekka.forecast.forecast import typical_covariates
    from rekka.forecast.matrices import transition_matrices

    x = typical_covariates(model.fit, given)[0]
    return transition_matrices(model.fit, x, times, labels=model.labels, case=asking.name_model(model), **options)


def _place(models: Sequence[CaseModel], layout: str, out: Path | None, source: Path) -> list[Path]:
    """The file of all, or one for each case; refuse to write over what is not ours."""
    from rekka.study.models import list_model_files

    if out is None:
        return []
    if out.suffix.lower() == ".csv":
        refuse_inputs([out], list_model_files(source))
        return [out]
    names = asking.name_apart([asking.name_model(model) for model in models])
    files = [out / f"{name}-{layout}.csv" for name in names]
    check_folder(out, files, list_model_files(source), has_columns("case", "certified", "covariates"))
    return files


def _write(
    files: Sequence[Path], tables: Sequence[Any], made: Sequence[tuple[Matrix, ...]], layout: str, decimals: int
) -> None:
    """All in one file, or a file for each case."""
    from rekka.core.sheets import write_csv
    from rekka.forecast.layouts import lay_out

    if len(files) == 1:
        tables = [lay_out([matrix for some in made for matrix in some], layout, decimals=decimals)]
    for file, table in zip(files, tables, strict=False):  # none where nothing is written
        make_folder(file.parent)
        write_csv(file, table)


def _describe(
    source: str,
    layout: str,
    models: Sequence[CaseModel],
    made: Sequence[tuple[Matrix, ...]],
    tables: Sequence[Any],
    files: Sequence[Path],
) -> dict[str, Any]:
    """Plain data."""
    cases = [
        {
            "case": asking.name_model(model),
            "file": model.file,
            "certified": model.certified,
            "chosen": model.chosen,
            "reasons": list(model.fit.certificate.reasons),
            "fit_test": asking.describe_test(model),
            "matrices": [one.to_dict() for one in some],
            "rows": table.to_dicts(),
        }
        for model, some, table in zip(models, made, tables, strict=True)
    ]
    head = {"format": "rekka-matrix", "version": VERSION, "source": source, "layout": layout}
    return head | {"cases": cases, "files": [str(file) for file in files]}


def _print_case(
    console: Console,
    model: CaseModel,
    given: dict[str, float],
    made: Sequence[Matrix],
    layout: str,
    decimals: int,
) -> None:
    from rekka.forecast.layouts import MEDIAN

    first = made[0]
    head, notes = asking.split_notes(note for one in made for note in one.notes)
    where = [asking.tell_covariates(model.fit, first.covariates, given)]
    if layout != MEDIAN:
        where.append(f"Over the years: {first.course}.")
    asking.print_head(console, asking.name_model(model), asking.tell_first(model, head), where)
    for title, table in _draw_tables(made, layout, decimals, console.width):
        asking.print_table(console, title, table)
    asking.print_notes(console, notes)


def _draw_tables(made: Sequence[Matrix], layout: str, decimals: int, width: int) -> list[tuple[str, RichTable]]:
    """Tables with their titles; a square that is wider than the terminal is drawn as a long one."""
    from rekka.forecast.layouts import LONG, MEDIAN, PERCENT

    if layout == MEDIAN:
        return [_draw_medians(made[0])]
    if layout == PERCENT:
        return [_draw_percent(one, decimals) for one in made]
    room = width - max(len(_name_state(one, state)) for one in made for state in range(one.n_states))
    wide = any(one.n_states * CELL > room for one in made)
    return [_draw_long(one) if layout == LONG or wide else _draw_square(one) for one in made]


def _draw_square(one: Matrix) -> tuple[str, RichTable]:
    table = asking.new_table()
    names = [_name_state(one, state) for state in range(one.n_states)]
    telling.add_columns(table, "from / to", *(str(state + 1) for state in range(one.n_states)))
    for state, row in enumerate(one.probability):
        cells = ["" if to < state else _show_probability(p) for to, p in enumerate(row)]
        table.add_row(names[state], *cells)
    return f"Probability of each state after {_tell_years(one.years)}", table


def _draw_long(one: Matrix) -> tuple[str, RichTable]:
    from rekka.forecast.matrices import tell_intervals

    table = asking.new_table()
    telling.add_columns(table, "from", "to", "probability", "low", "high")
    for first in range(one.n_states):
        for last in range(first, one.n_states):
            figures = (some[first, last] for some in (one.probability, one.low, one.high))
            table.add_row(_name_state(one, first), _name_state(one, last), *map(_show_probability, figures))
    told = tell_intervals(one.level, one.intervals)
    return f"Probability of each state after {_tell_years(one.years)}; {told}", table


def _draw_percent(one: Matrix, decimals: int) -> tuple[str, RichTable]:
    from rekka.forecast.layouts import round_together

    table = asking.new_table()
    telling.add_columns(table, "state", "stays", *(f"{number} worse" for number in range(1, one.n_states)))
    for state in range(one.n_states):
        shares = round_together(one.probability[state, state:], decimals)
        table.add_row(_name_state(one, state), *(f"{share:.{decimals}f}" for share in shares))
    return f"Percent that stay, and that are so many states worse, after {_tell_years(one.years)}", table


def _draw_medians(one: Matrix) -> tuple[str, RichTable]:
    from rekka.forecast.layouts import lay_out
    from rekka.forecast.matrices import tell_intervals

    table = asking.new_table()
    telling.add_columns(table, "state", "median years", "low", "high")
    row = lay_out(one, "median").row(0, named=True)
    for state in range(1, one.n_states):
        figures = (row[f"t{state}{end}_years"] for end in ("", "_low", "_high"))
        table.add_row(_name_state(one, state - 1), *map(asking.show_number, figures))
    aged = f"; at {' and '.join(one.advancing)} as given, as if it stayed" if one.advancing else ""
    told = tell_intervals(one.level, one.intervals)
    return f"Median years in each state before it is left, shape 1{aged}; {told}", table


def _name_state(one: Matrix, state: int) -> str:
    label = one.labels[state]
    return str(state + 1) if label == str(state + 1) else f"{state + 1} ({escape(label)})"


def _tell_years(years: float) -> str:
    return f"{years:g} year{'' if years == 1 else 's'}"


def _show_probability(value: float) -> str:
    """Four decimals; what is neither 0 nor 1 is not shown as such, what is none is a dash."""
    if value != value:
        return telling.NOTHING
    if 0 < value < LEAST:
        return "<0.0001"
    return ">0.9999" if 1 - LEAST < value < 1 else f"{value:.4f}"
