"""Fitted models in a terminal: coefficients, matrices, and what each covariate does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable

from rekka.core.errors import count_of, name_some
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.evaluation.calibration import tell_untested
from rekka.fleet.models import CaseModel, split_notes, tell_misfit
from rekka.forecast.effects import Effects, show_years
from rekka.forecast.matrices import LONG, MEDIAN, PERCENT, Matrix, lay_out, round_together, tell_intervals
from rekka.model.survey import Resampled
from rekka.report.terminal.parts import NOTHING, add_columns, new_table, print_list, print_table, print_warning

NAMES_SHOWN, LONGEST_NAME = 3, 40  # in a summary of many components
NOT_FITTED = "not fitted"
CELL = 8  # letters for a probability, and the blank before it
LEAST = 5e-5  # a probability below it would be shown as 0.0000


def print_model(
    console: Console,
    case: str,
    rows: int,
    model: ExponentialHazardMarkovModel,
    labels: Sequence[str] | None,
    coefficients: Sequence[Mapping[str, Any]],
) -> None:
    """Coefficients, certificate and test of fit; a misfit stands above all."""
    test = model.fit_test_
    misfit = tell_misfit(case, test, labels)
    if misfit is not None:
        print_warning(console, misfit)
    scale = "native units" if model.coefficient_scale_ == "native" else f"units of {model.coefficient_scale_}"
    table = new_table(
        f"{escape(case)}: {count_of(rows, 'row')}, {model.n_states_} states, log-likelihood "
        f"{model.log_likelihood_:.4f}; {scale}"
    )
    add_columns(table, "state", "term", "estimate", "std.err.", "ratio", "95 % interval", "per")
    table.columns[1].justify = "left"
    for row in coefficients:
        error = NOTHING if row["se"] is None else f"{row['se']:.2g}"
        table.add_row(str(row["state"]), escape(row["term"]), f"{row['estimate']:.4g}", error, *_show_ratio(row))
    console.print(table)
    note = "ratio: hazard ratio of leaving the state, for a change of the covariate by the number under per."
    console.print(note, style="dim")
    if model.clock_.words:
        console.print(escape(model.clock_.words), style="dim", highlight=False)
    console.print(escape(str(model.certificate_)), highlight=False)
    if test is not None:
        told = test.causes if test.rejected else (f"{test.describe()}.",)
        console.print(escape(" ".join(["test of fit:", *told])), highlight=False)
    if model.resampled_ is not None:
        console.print(_tell_bootstrap(model.resampled_), highlight=False)
    console.print()


def _show_ratio(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """A hazard ratio, its interval and its unit; an intercept has none."""
    if row["hazard_ratio"] is None:
        return "", "", ""
    interval = NOTHING if row["hr_low"] is None else f"{row['hr_low']:.4g} to {row['hr_high']:.4g}"
    return f"{row['hazard_ratio']:.4g}", interval, f"{row['unit']:g}"


def _tell_bootstrap(drawn: Resampled) -> str:
    """How many refits reached a maximum, in words."""
    told = (
        f"bootstrap: {len(drawn.beta):,} of {count_of(drawn.asked, 'refit')} to {drawn.groups:,} bridges drawn "
        f"with replacement reached a maximum (seed {drawn.seed})."
    )
    if 2 * len(drawn.beta) >= drawn.asked:
        return told
    return f"{told} Fewer than half: intervals from them ignore most resamples."


def print_summary(console: Console, described: Sequence[dict[str, Any]], draws: int) -> None:
    """Count the components of each verdict, the most frequent first, and name some of them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in described:
        groups.setdefault(one.get("certificate", NOT_FITTED), []).append(one)
    certified = sum(len(some) for verdict, some in groups.items() if verdict.startswith("certified"))
    console.print(
        f"[bold]{count_of(len(described), 'component')}: {certified:,} with a certified maximum.[/]",
        highlight=False,
    )
    for verdict, some in sorted(groups.items(), key=lambda group: -len(group[1])):
        names = name_some([_shorten(one["case"]) for one in some], NAMES_SHOWN)
        lines = [names] if verdict != NOT_FITTED else [names, f"{_shorten(some[0]['case'])}: {some[0]['reason']}"]
        console.print(f"{len(some):>9,}  {verdict}", highlight=False)
        for line in lines:
            console.print(Padding(escape(line), (0, 0, 0, 11)), style="dim", highlight=False)
    drawn = [one["bootstrap"] for one in described if draws and "bootstrap" in one]
    few = sum(one is None or 2 * one["certified"] < one["asked"] for one in drawn)
    if few:
        console.print(
            f"bootstrap: {count_of(few, 'component')} with none, or with fewer than half of the refits at a "
            "maximum."
        )
    misfits = [_shorten(one["case"]) for one in described if (one.get("fit_test") or {}).get("rejected")]
    if misfits:
        told = f"Rejected by the test of fit: {name_some(misfits)}."
        console.print(escape(told), style="bold red", highlight=False)
    console.print("--all prints every model in full, --json all of them for machines.\n", highlight=False)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def tell_tests(described: Sequence[dict[str, Any]], untested: int | None) -> list[str]:
    """What several tests come to, or that none was made because there are too many components."""
    if untested is not None:
        return [tell_untested(untested)]
    tests = [one["fit_test"] for one in described if one.get("fit_test") is not None]
    rejected = sum(test["rejected"] for test in tests)
    if not rejected or len(tests) < 2:
        return []
    level = tests[0]["level"]
    return [
        f"{rejected} of {count_of(len(tests), 'model')} do not describe their data; at {100 * level:g} %, chance "
        f"alone would reject {level * len(tests):.2g} of as many right ones."
    ]


def print_matrices(
    console: Console,
    model: CaseModel,
    given: Mapping[str, float],
    made: Sequence[Matrix],
    layout: str,
    decimals: int,
) -> None:
    """The matrices of a model: a table for each, and what to know of them."""
    first = made[0]
    head, notes = split_notes(note for one in made for note in one.notes)
    where = [_tell_covariates(model, first.covariates, given)]
    if layout != MEDIAN:
        where.append(f"Over the years: {first.course}.")
    _print_head(console, model.name, _list_warnings(model, head), where)
    for title, table in _draw_tables(made, layout, decimals, console.width):
        print_table(console, table, title)
    print_notes(console, notes)


def _draw_tables(made: Sequence[Matrix], layout: str, decimals: int, width: int) -> list[tuple[str, RichTable]]:
    """Tables with their titles; a square that is wider than the terminal is drawn as a long one."""
    if layout == MEDIAN:
        return [_draw_medians(made[0])]
    if layout == PERCENT:
        return [_draw_percent(one, decimals) for one in made]
    room = width - max(len(_name_state(one, state)) for one in made for state in range(one.n_states))
    wide = any(one.n_states * CELL > room for one in made)
    return [_draw_long(one) if layout == LONG or wide else _draw_square(one) for one in made]


def _draw_square(one: Matrix) -> tuple[str, RichTable]:
    table = new_table()
    names = [_name_state(one, state) for state in range(one.n_states)]
    add_columns(table, "from / to", *(str(state + 1) for state in range(one.n_states)))
    for state, row in enumerate(one.probability):
        cells = ["" if to < state else _show_probability(p) for to, p in enumerate(row)]
        table.add_row(names[state], *cells)
    return f"Probability of each state after {_tell_years(one.years)}", table


def _draw_long(one: Matrix) -> tuple[str, RichTable]:
    table = new_table()
    add_columns(table, "from", "to", "probability", "low", "high")
    for first in range(one.n_states):
        for last in range(first, one.n_states):
            figures = (some[first, last] for some in (one.probability, one.low, one.high))
            table.add_row(_name_state(one, first), _name_state(one, last), *map(_show_probability, figures))
    told = tell_intervals(one.level, one.intervals)
    return f"Probability of each state after {_tell_years(one.years)}; {told}", table


def _draw_percent(one: Matrix, decimals: int) -> tuple[str, RichTable]:
    table = new_table()
    add_columns(table, "state", "stays", *(f"{number} worse" for number in range(1, one.n_states)))
    for state in range(one.n_states):
        shares = round_together(one.probability[state, state:], decimals)
        table.add_row(_name_state(one, state), *(f"{share:.{decimals}f}" for share in shares))
    return f"Percent that stay, and that are so many states worse, after {_tell_years(one.years)}", table


def _draw_medians(one: Matrix) -> tuple[str, RichTable]:
    table = new_table()
    add_columns(table, "state", "median years", "low", "high")
    row = lay_out(one, "median").row(0, named=True)
    for state in range(1, one.n_states):
        figures = (row[f"t{state}{end}_years"] for end in ("", "_low", "_high"))
        table.add_row(_name_state(one, state - 1), *map(_show_number, figures))
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
        return NOTHING
    if 0 < value < LEAST:
        return "<0.0001"
    return ">0.9999" if 1 - LEAST < value < 1 else f"{value:.4f}"


def print_effects(console: Console, model: CaseModel, given: Mapping[str, float], found: Effects) -> None:
    """Sentences, then their figures, then what to know."""
    head, notes = split_notes(found.notes)
    where = [
        _tell_covariates(model, found.covariates, given),
        f"Over the years: {found.course}.",
    ]
    _print_head(console, f"{model.name}: years {found.journey}", _list_warnings(model, head), where)
    if not found.effects:
        console.print("The model has no covariates, so there is nothing to change.\n")
        return
    for told in found.sentences():
        console.print(escape(told), highlight=False)
    console.print()
    _print_years(console, found)
    _print_ratios(console, found)
    if model.fit.survey is None:
        notes = [
            *notes,
            "No profiles: this model file, of an earlier version, does not know the covariates' ranges.",
        ]
    print_notes(console, notes)


def _print_years(console: Console, found: Effects) -> None:
    table = new_table()
    names = ("covariate", "change", "mean", "after", "difference", "interval", "median", "after")
    add_columns(table, *names)
    for one in found.effects:
        by = one.mean_difference
        table.add_row(
            escape(one.change.covariate), one.change.written, _years(one.mean_before.value),
            _years(one.mean_after.value), _years(by.value, "+"),
            _range(by.low, by.high, partial(_years, sign="+")),
            _years(one.median_before.value), _years(one.median_after.value),
        )  # fmt: skip
    told = tell_intervals(found.level, found.intervals)
    print_table(console, table, f"Years {found.journey}, before and after each change; {told}")


def _print_ratios(console: Console, found: Effects) -> None:
    """A row for each covariate and state, which fits any number of states."""
    table = new_table()
    add_columns(table, "covariate", "change", "state", "ratio", "interval")
    for one in found.effects:
        for state, ratio in enumerate(one.hazard_ratios, start=1):
            name, change = (escape(one.change.covariate), one.change.written) if state == 1 else ("", "")
            ends = _range(ratio.low, ratio.high, _ratio)
            table.add_row(name, change, str(state), _ratio(ratio.value), ends)
    print_table(console, table, "Hazard ratio of each state for the same change (above 1: left sooner)")


def _ratio(value: float) -> str:
    return f"{value:.3g}"


def _years(value: float, sign: str = "") -> str:
    """As in sentences, but short enough for a table."""
    return show_years(value, sign=sign).replace("more than ", ">").replace("less than ", "<")


def _range(low: float, high: float, show: Callable[[float], str]) -> str:
    return NOTHING if low != low else f"{show(low)} to {show(high)}"


def _print_head(console: Console, title: str, head: Sequence[str], lines: Sequence[str]) -> None:
    """A case: its name, what must be known first, at which covariates."""
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for line in head:
        print_warning(console, line)
    for line in lines:
        console.print(escape(line), highlight=False)
    console.print()


def _list_warnings(model: CaseModel, head: Sequence[str]) -> list[str]:
    """What must be known first: not a certified maximum, not chosen, not a model that describes its data."""
    return [*dict.fromkeys(head), *(line for line in (model.unchosen, model.misfit) if line is not None)]


def _tell_covariates(model: CaseModel, values: Mapping[str, float], given: Mapping[str, Any]) -> str:
    """'At age_at_inspection_1 = 40 (given), traffic_mean = 5,200 (typical).'."""
    if not values:
        return "The model has no covariates."
    source = "typical" if model.fit.survey is not None else "given"
    some = (f"{name} = {value:,.6g} ({'given' if name in given else source})" for name, value in values.items())
    return f"At {', '.join(some)}."


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """What to know, each once."""
    if notes:
        console.print("[bold]What to know[/]")
        print_list(console, list(dict.fromkeys(notes)))
        console.print()


def _show_number(value: float | None, digits: int = 4) -> str:
    """So many significant digits; a dash where there is no number."""
    return "-" if value is None else f"{value:,.{digits}g}"
