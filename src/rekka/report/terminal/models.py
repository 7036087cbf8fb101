"""Fitted models in a terminal: coefficients, matrices, and what each covariate does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from rekka.checks.assumptions import describe_untouched, list_contradicted
from rekka.core.errors import count_of, name_some
from rekka.core.ratings import Ratings
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.evaluation.calibration import explain_untested
from rekka.evaluation.violations import Violation
from rekka.fleet.models import CaseModel, describe_misfit, split_notes
from rekka.forecast.effects import Effects, show_years
from rekka.forecast.matrices import LONG, MEDIAN, PERCENT, Matrix, describe_intervals, lay_out, round_together
from rekka.model.survey import Resampled
from rekka.report.terminal.parts import print_line, print_list, print_warning
from rekka.report.terminal.tables import NOTHING, print_texts, show, show_range

NAMES_SHOWN, LONGEST_NAME = 3, 40  # in a summary of many components
NOT_FITTED = "not fitted"
CELL = 8  # letters for a probability, and the blank before it
PROBABLE_REPAIR = "probable repair"  # a verdict of ``find_repairs``
LEAST = 5e-5  # a probability below it would be shown as 0.0000


def print_model(
    console: Console,
    case: str,
    rows: int,
    model: ExponentialHazardMarkovModel,
    labels: Sequence[str] | None,
    coefficients: Sequence[Mapping[str, Any]],
    elements: Sequence[str] = (),
    violations: Sequence[Violation] = (),
) -> None:
    """Coefficients, elements of histories, certificate and tests; a misfit stands above all."""
    test, ratings = model.fit_test_, Ratings.of(labels, model.n_states_)
    misfit = describe_misfit(case, test, labels)
    if misfit is not None:
        print_warning(console, misfit)
    references = {term: one.reference for one in model.coding_.categories for term in one.terms}
    scale = "native units" if model.coefficient_scale_ == "native" else f"units of {model.coefficient_scale_}"
    print_texts(
        console,
        f"{case}: {count_of(rows, 'row')}, {model.n_states_} ratings, log-likelihood {model.log_likelihood_:.4f}; "
        f"{scale}",
        ("rating", "term", "estimate", "std.err.", "ratio", "95 % interval", "per"),
        (
            (ratings.name(row["state"]), row["term"], show(row["estimate"], "four_digits"),
             show(row["se"], "two_digits"), *_show_ratio(row, references.get(row["term"])))
            for row in coefficients
            if row["state"] is not None  # the sentences have the rest
        ),
        "ratio: hazard ratio of leaving the rating, for a change of the covariate by the number under per"
        + ("; of a level, relative to the level under per." if references else "."),
        left=2,
    )  # fmt: skip
    for line in (*elements, *_list_tests(model), *model.coding_.notes):
        console.print(escape(line), highlight=False)
    if model.clock_.words:
        console.print(escape(model.clock_.words), style="dim", highlight=False)
    console.print(escape(ratings.reword(str(model.certificate_))), highlight=False)
    if test is not None:
        told = map(ratings.reword, test.causes) if test.rejected else (f"{test.describe()}.",)
        console.print(escape(" ".join(["test of fit:", *told])), highlight=False)
    _print_assumptions(console, case, violations)
    if model.resampled_ is not None:
        console.print(_describe_bootstrap(model.resampled_), highlight=False)
    console.print()


def _print_assumptions(console: Console, case: str, tests: Sequence[Violation]) -> None:
    """Assumptions that the rows contradict, each with what to try, then what was and was not tested."""
    found = list_contradicted(case, tests)
    if found:
        console.print(f"[bold red]assumptions: {count_of(len(found), 'finding')}[/]", highlight=False)
        print_list(console, [f"{one.code} {one.title}. {one.message} {one.remedy}" for one in found])
        several = "One cause can have several signs: begin with the first. " if len(found) > 1 else ""
        chance = f"At {tests[0].level:.0%}, one in {1 / tests[0].level:.0f} right models has a finding by chance."
        console.print(f"  {several}{chance}", highlight=False)
    for line in describe_untouched(tests):
        console.print(escape(f"assumptions: {line}"), style="dim", highlight=False)


def print_bridges(console: Console, table: pl.DataFrame, rows: int) -> None:
    """Fastest bridges: a sentence on the first, a table of ``rows`` of them, and how many there are."""
    shown = table.head(rows)
    kinds = dict.fromkeys(table["by"])
    surely = table.filter(pl.col("low") > 1).height
    headline = "None is shown to deteriorate faster than others of its kind: no interval lies above 1."
    if surely:
        first = table.filter(pl.col("low") > 1).row(0, named=True)
        headline = f"{first['case']}: {first['sentence']}."
    print_list(console, [headline], indent=0, mark="")
    print_texts(
        console,
        f"{len(shown):,} of {len(table):,}, the fastest first; the intervals of {surely:,} of all lie above 1",
        ("component", " or ".join(kinds), "times as fast", "95 % interval"),
        (
            (row["case"], row["bridge"], show(row["factor"], "two_digits"),
             show_range(row["low"], row["high"], "two_digits"))
            for row in shown.iter_rows(named=True)
        ),
        "times as fast as others with the same covariates. An interval that includes 1 is no evidence of a "
        "difference.",
        left=2,
    )  # fmt: skip


def print_repairs(console: Console, headlines: Sequence[str], table: pl.DataFrame, rows: int) -> None:
    """Counts of each component, and the ``rows`` most probable repairs without a record of all of them."""
    for line in headlines:
        print_line(console, line)
    found = table.filter(pl.col("verdict") == PROBABLE_REPAIR).sort("repair", descending=True, maintain_order=True)
    shown = found.head(rows)
    if shown.is_empty():
        return
    heads = {"case": "component", "bridge_id": "bridge", "member": "member", "date_1": "after", "date_2": "by"}
    named = [name for name in heads if name in shown.columns and (name != "case" or len(headlines) > 1)]
    print_texts(
        console,
        f"{len(shown):,} of {count_of(len(found), 'probable repair')} without a record, the surest first",
        (*(heads[name] for name in named), "rating", "then", "repair", "small", "error"),
        (
            (*(str(row[name] or "") for name in named), row["rating_1"], row["rating_2"],
             *(f"{row[name]:.0%}" for name in ("repair", "small_improvement", "error")))
            for row in shown.iter_rows(named=True)
        ),
        "repair, small, error: probability, given all visits, of a repair, of a small improvement, and that one "
        "of the two ratings is wrong.",
        left=sum(not name.startswith("date") for name in named),
    )  # fmt: skip


def _list_tests(model: ExponentialHazardMarkovModel) -> list[str]:
    """The joint test of each category's levels; a penalised fit has none."""
    if not model.coding_.terms or model.ridge or model.prior is not None:
        return []
    tests = {row["covariate"]: row for row in model.wald_tests().to_dicts()}
    return [
        f"{name}, all levels together: chi-squared {tests[name]['chi_squared']:.4g}, "
        f"{count_of(tests[name]['df'], 'degree')} of freedom, p = {tests[name]['p']:.2g}"
        for name in model.coding_.names
        if name in tests and tests[name]["p"] == tests[name]["p"]  # none where the fit has no standard errors
    ]


def _show_ratio(row: Mapping[str, Any], reference: str | None) -> tuple[str, str, str]:
    """A hazard ratio, its interval and its unit or reference level; an intercept has none."""
    if row["hazard_ratio"] is None:
        return "", "", ""
    interval = show_range(row["hr_low"], row["hr_high"], "four_digits")
    return show(row["hazard_ratio"], "four_digits"), interval, reference or f"{row['unit']:g}"


def _describe_bootstrap(drawn: Resampled) -> str:
    """Number of refits that reached a maximum, in words."""
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
    signs = Counter(
        finding["code"] + " " + finding["title"] for one in described for finding in one.get("findings", ())
    )
    for sign, components in signs.most_common():
        console.print(escape(f"{sign}: {count_of(components, 'component')}."), highlight=False)
    console.print("--all prints every model in full, --json all of them for machines.\n", highlight=False)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def describe_tests(described: Sequence[dict[str, Any]], untested: int | None) -> list[str]:
    """Summarize several tests, or say that none was made because there are too many components."""
    if untested is not None:
        return [explain_untested(untested)]
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
    where = [_describe_covariates(model, first.covariates, given)]
    if layout != MEDIAN:
        where.append(f"Over the years: {first.course}.")
    _print_head(console, model.name, _list_warnings(model, head), where)
    if layout == MEDIAN:
        _print_medians(console, first)
    elif layout == PERCENT:
        for one in made:
            _print_percent(console, one, decimals)
    else:
        wide = any(_measure(one) > console.width for one in made)
        for one in made:
            (_print_long if layout == LONG or wide else _print_square)(console, one)
    print_notes(console, notes)


def _measure(one: Matrix) -> int:
    """Letters that a square matrix takes: a column of ratings, and one for each."""
    names = [cell_len(_name_rating(one, state)) for state in range(one.n_states)]
    return max(names) + sum(max(CELL, 1 + name) for name in names)


def _print_square(console: Console, one: Matrix) -> None:
    lines = (
        (_name_rating(one, state), *("" if to < state else _show_probability(p) for to, p in enumerate(row)))
        for state, row in enumerate(one.probability)
    )
    title = f"Probability of each rating after {_format_years(one.years)}"
    print_texts(console, title, ("from / to", *(_name_rating(one, to) for to in range(one.n_states))), lines)


def _print_long(console: Console, one: Matrix) -> None:
    lines = (
        (
            *(_name_rating(one, state) for state in (first, last)),
            *(_show_probability(some[first, last]) for some in (one.probability, one.low, one.high)),
        )
        for first in range(one.n_states)
        for last in range(first, one.n_states)
    )
    intervals = describe_intervals(one.level, one.intervals)
    title = f"Probability of each rating after {_format_years(one.years)}; {intervals}"
    print_texts(console, title, ("from", "to", "probability", "low", "high"), lines)


def _print_percent(console: Console, one: Matrix, decimals: int) -> None:
    lines = []
    for state, row in enumerate(one.probability):
        shares = [f"{share:.{decimals}f}" for share in round_together(row[state:], decimals)]
        lines.append((_name_rating(one, state), *shares, *[""] * state))
    title = f"Percent that stay, and that are so many ratings worse, after {_format_years(one.years)}"
    heads = ("rating", "stays", *(f"{number} worse" for number in range(1, one.n_states)))
    print_texts(console, title, heads, lines)


def _print_medians(console: Console, one: Matrix) -> None:
    found = lay_out(one, MEDIAN).row(0, named=True)
    aged = f"; at {' and '.join(one.advancing)} as given, as if it stayed" if one.advancing else ""
    told = describe_intervals(one.level, one.intervals)
    lines = (
        (
            _name_rating(one, state - 1),
            *(show(found[f"t{state}{end}_years"], "four_digits") for end in ("", "_low", "_high")),
        )
        for state in range(1, one.n_states)
    )
    title = f"Median years in each rating before it is left, shape 1{aged}; {told}"
    print_texts(console, title, ("rating", "median years", "low", "high"), lines)


def _name_rating(one: Matrix, place: int) -> str:
    """Name of a rating by its place from 0."""
    return Ratings(one.labels).name(place + 1)


def _format_years(years: float) -> str:
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
        _describe_covariates(model, found.covariates, given),
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
    lines = []
    for one in found.effects:
        by = one.mean_difference
        ends = NOTHING if by.low != by.low else f"{_show_years(by.low, '+')} to {_show_years(by.high, '+')}"
        means, medians = (
            [_show_years(some.value) for some in pair]
            for pair in ((one.mean_before, one.mean_after), (one.median_before, one.median_after))
        )
        change = (one.change.covariate, one.change.written)
        lines.append((*change, *means, _show_years(by.value, "+"), ends, *medians))
    told = describe_intervals(found.level, found.intervals)
    heads = ("covariate", "change", "mean", "after", "difference", "interval", "median", "after")
    print_texts(console, f"Years {found.journey}, before and after each change; {told}", heads, lines)


def _print_ratios(console: Console, found: Effects) -> None:
    """A row for each covariate and rating, which fits any number of ratings."""
    lines = []
    ratings = Ratings.of(found.labels, max((len(one.hazard_ratios) + 1 for one in found.effects), default=1))
    for one in found.effects:
        for state, ratio in enumerate(one.hazard_ratios, start=1):
            change = (one.change.covariate, one.change.written) if state == 1 else ("", "")
            ends = show_range(ratio.low, ratio.high, "figure")
            lines.append((*change, ratings.name(state), show(ratio.value, "figure"), ends))
    title = "Hazard ratio of leaving each rating for the same change (above 1: left sooner)"
    print_texts(console, title, ("covariate", "change", "rating", "ratio", "interval"), lines, left=3)


def _show_years(value: float, sign: str = "") -> str:
    """As in sentences, but short enough for a table."""
    return show_years(value, sign=sign).replace("more than ", ">").replace("less than ", "<")


def _print_head(console: Console, title: str, head: Sequence[str], lines: Sequence[str]) -> None:
    """A case: its name, what must be known first, at which covariates."""
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for line in head:
        print_warning(console, line)
    for line in lines:
        console.print(escape(line), highlight=False)
    console.print()


def _list_warnings(model: CaseModel, head: Sequence[str]) -> list[str]:
    """Warnings: not a certified maximum, not chosen, not a model that describes its data."""
    return [*dict.fromkeys(head), *(line for line in (model.unchosen, model.misfit) if line is not None)]


def _describe_covariates(model: CaseModel, values: Mapping[str, float | str], given: Mapping[str, Any]) -> str:
    """'At age_at_inspection_1 = 40 (given), traffic_mean = 5,200 (typical).'."""
    if not values:
        return "The model has no covariates."
    source = "typical" if model.fit.survey is not None else "given"
    shown = {name: value if isinstance(value, str) else f"{value:,.6g}" for name, value in values.items()}
    some = (f"{name} = {value} ({'given' if name in given else source})" for name, value in shown.items())
    return f"At {', '.join(some)}."


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """Print notes, each once."""
    if notes:
        console.print("[bold]What to know[/]")
        print_list(console, list(dict.fromkeys(notes)))
        console.print()
