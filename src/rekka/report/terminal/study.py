"""A study in the terminal: its tables, what was selected and why, what to look at.

A study's refits in a terminal: how often each method was chosen and reached a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from rekka.core.errors import count_of
from rekka.report.terminal.parts import (
    NOTHING,
    SELECTED,
    add_columns,
    explain,
    group_columns,
    new_table,
    print_list,
    print_plain,
    print_table,
)
from rekka.study.explanations import list_names, name_trials
from rekka.study.plan import PRESETS
from rekka.study.stability import Stability
from rekka.study.study import Study

CERTIFIED, AT_FLOOR = "°", "_"
JUDGED = {"validation": "validation rows", "folds": "in folds", "golden": "confirmation rows"}


def print_cases(console: Console, study: Study) -> None:
    """Rows of each case, and its baselines (paper, Table cases)."""
    table = new_table("Components: rows in each part; scores of the two baselines on the judged rows")
    add_columns(table, "case", "train", "valid.", "golden", "states", "no change", "no covariates", "log loss")
    baselines = {(row["case"], row["baseline"]): row for row in study.baselines.iter_rows(named=True)}
    for row in study.cases.iter_rows(named=True):
        same, plain = (baselines[row["case"], name] for name in ("persistence", "no_covariates"))
        counts = (f"{row[name]:,}" for name in ("train", "validation", "golden", "n_states"))
        accuracies = (_figure(score["accuracy"], ".4f") for score in (same, plain))
        table.add_row(escape(row["case"]), *counts, *accuracies, _figure(plain["log_loss"], ".3f"))
    console.print(table)
    explain(
        console,
        "golden: confirmation rows. no change: accuracy of the baseline that every member keeps its state. no "
        "covariates: accuracy, and log loss, of the model without covariates.",
    )


def print_methods(console: Console, study: Study) -> None:
    """One line a method (paper, Table method-summary)."""
    for preset, words in _presets(study):
        table = new_table(f"Methods, preset {preset}: {words}")
        counts = ("converged", "certified", "selected")
        add_columns(table, "method", *counts, "accuracy", "seconds", "steps", "at floor")
        for row in study.methods.filter(preset=preset).iter_rows(named=True):
            table.add_row(
                row["method"],
                *(f"{row[name]}/{row['trials']}" for name in counts),
                _figure(row["mean_accuracy"], ".4f"),
                _seconds(row["median_seconds"]),
                _figure(row["median_iterations"], "g"),
                _figure(row["at_floor_share"], ".1%"),
            )
        console.print(table)
    explain(
        console,
        "converged: the solver says so and everything is finite, the paper's sense. certified: it is a maximum of "
        "the likelihood. Of those that can be selected (paper: converged; exact: certified): mean accuracy, "
        "median seconds and steps (iterations), and the share of judged rows whose outcome was given a "
        "probability of 1e-12 or less.",
    )


def print_selection(console: Console, study: Study) -> None:
    """What was chosen for each case and why, and its log loss beside others (paper, Table selection)."""
    titles = {
        "guarded": "Chosen, preset {}: certified, stable across resamples, no less accurate, log loss not worse",
        "pareto": "Selected, preset {}: methods that no other beats in accuracy and cost together",
    }
    for preset, _ in _presets(study):
        table = new_table(titles[study.plan.study.rule].format(preset))
        add_columns(table, "case", "chosen, and why")
        table.columns[1].justify, table.columns[1].no_wrap = "left", False
        trials = study.trials.filter(preset=preset)
        for row in study.selection.filter(preset=preset).iter_rows(named=True):
            losses = describe_losses(trials.filter(case=row["case"]))
            table.add_row(escape(row["case"]), f"{escape(row['why'])}" + (f"\n[dim]{losses}[/]" if losses else ""))
        console.print(table)
        if told := _tell_optimism(study, preset):
            explain(console, told)
        else:
            console.print()


def _tell_optimism(study: Study, preset: str) -> str:
    """How much selecting on golden rows flatters what was selected; nothing where they were kept out of it."""
    judged = study.optimism.filter(preset=preset, judged_on="golden")
    if judged.is_empty():
        return ""
    accuracy, nested_accuracy, loss, nested_loss = (
        f"{fmean(judged[name]):.4f}"
        for name in ("naive_accuracy", "nested_accuracy", "naive_log_loss", "nested_log_loss")
    )
    return (
        f"Optimistic: the choice was made on the confirmation rows, which cannot confirm it. Mean accuracy "
        f"{accuracy} on the rows of the choice, {nested_accuracy} where the choice was made on other bridges; log "
        f"loss {loss} and {nested_loss}."
    )


def print_verdicts(console: Console, study: Study) -> None:
    """What the rule says of every method, methods of which it says the same together."""
    for preset, _ in _presets(study):
        console.print(f"[bold]What the {study.plan.study.rule} rule says of every method, preset {preset}[/]")
        for (case,), rows in study.verdicts.filter(preset=preset).group_by("case", maintain_order=True):
            console.print(f"  {escape(str(case))}", highlight=False)
            for line in _merge_verdicts(rows.select("method", "why").rows()):
                console.print(Padding(escape(line), (0, 0, 0, 4)), highlight=False)
        console.print()


def _merge_verdicts(verdicts: Sequence[tuple[str, str]]) -> list[str]:
    """'max, minmax are dropped at step 4, ...' for methods whose sentences differ in the name alone."""
    merged: dict[str, list[str]] = {}
    for method, why in verdicts:
        merged.setdefault(why.removeprefix(f"{method} "), []).append(method)
    return [
        f"{', '.join(names)} {rest if len(names) == 1 else rest.replace('is ', 'are ', 1)}"
        for rest, names in merged.items()
    ]


def print_confirmation(console: Console, study: Study) -> None:
    """What was chosen, on the golden rows, beside two forecasters to beat."""
    for number, look in enumerate(study.looks, start=1):
        first = "Confirmed on the confirmation rows, which no choice has used"
        title = first if number == 1 else f"Look {number} at the confirmation rows: no confirmation"
        table = new_table(title)
        several = len(study.plan.study.presets) > 1
        add_columns(
            table,
            "case",
            *["preset"] * several,
            "method",
            "rows",
            "accuracy",
            "no change",
            "log loss",
            "minus no cov.",
        )
        rows = study.confirmation.filter(look=number)
        for row in rows.iter_rows(named=True):
            ends = _range(row["no_covariates_low"], row["no_covariates_high"], "+.3f")
            table.add_row(
                escape(row["case"]), *[row["preset"]] * several, row["method"] + ("!" if row["seen"] else ""),
                f"{row['rows']:,}", f"{row['accuracy']:.4f}", f"{row['persistence_accuracy']:.4f}",
                f"{row['log_loss']:.3f}", f"{_figure(row['no_covariates_difference'], '+.3f')} ({ends})",
            )  # fmt: skip
        if look.results:
            console.print(table)
        reasons: dict[str, list[str]] = {}
        for case, why in look.refused.items():
            reasons.setdefault(why, []).append(case)
        for why, cases in reasons.items():
            console.print(f"Not confirmed: {escape(list_names(cases))}: {escape(why)}.", highlight=False)
        if look.results:
            explain(
                console,
                "no change: accuracy of the baseline that every member keeps its state. minus no cov.: log loss "
                "minus that of the model without covariates, with its interval by bridge; below 0 is better."
                + (" !: looked at before, with another model." if rows["seen"].is_not_null().any() else ""),
            )
        elif look.refused:
            console.print()


def print_calibration(console: Console, study: Study) -> None:
    """Whether the forecasts of what was chosen come true on its training rows; the test takes seconds a case."""
    table = new_table("Model check: the chosen models on their training rows")
    add_columns(table, "case", "preset", "method", "rows", "moves", "expected", "p", "at floor")
    causes = []
    for choice in study.choices:
        if choice.chosen is None:
            continue
        found = study.calibration(choice.case, choice.preset)
        moved = (int(found.by_start["observed"].sum()), float(found.by_start["expected"].sum()))
        table.add_row(
            escape(choice.case), choice.preset, choice.chosen, f"{found.rows:,}", f"{moved[0]:,}",
            f"{moved[1]:,.1f}", _figure(found.goodness.p_value, ".3f"), _figure(found.at_floor_share, ".1%"),
        )  # fmt: skip
        causes += [f"{choice.case} ({choice.preset}): {cause}" for cause in found.causes]
    console.print(table)
    explain(
        console,
        "moves: rows that left their state, and how many were expected to. p: of counts by start state, end state "
        "and interval like these or farther off, were the model right (by simulation).",
    )
    print_remarks(console, [cause.rstrip(".") for cause in causes])


def describe_losses(trials: Any) -> str:
    """'validation rows: log loss .8; lowest .7 (boxcox); without covariates .8. No change: accuracy .6'."""
    scored = trials.filter(trials["eligible"] & trials["log_loss"].is_not_null())
    chosen = scored.filter(scored["selected"])
    if chosen.is_empty():
        return ""
    by_loss: dict[str, list[str]] = {}
    for method, loss in chosen.select("method", "log_loss").rows():
        by_loss.setdefault(f"{loss:.3f}", []).append(method)
    by_loss = {loss: by_loss[loss] for loss in sorted(by_loss, key=float)}
    own = ", ".join(
        loss if len(by_loss) == 1 else f"{loss} ({list_names(names)})" for loss, names in by_loss.items()
    )
    best = scored.sort("log_loss").row(0, named=True)
    lowest = "" if f"{best['log_loss']:.3f}" in by_loss else f"; lowest {best['log_loss']:.3f} ({best['method']})"
    plain, same = _figure(best["no_covariates_log_loss"], ".3f"), _figure(best["persistence_accuracy"], ".4f")
    where = JUDGED[best["judged_on"]]
    return f"{where}: log loss {own}{lowest}; without covariates {plain}. No change: accuracy {same}"


def print_trials(console: Console, study: Study) -> None:
    """Accuracy and seconds of every trial (paper, Table appendix-full), and log losses beside them."""
    figures: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("accuracy / seconds", lambda row: f"{row['accuracy']:.4f} / {_seconds(row['seconds'])}"),
        ("log loss / iterations", lambda row: f"{row['log_loss']:.3f} / {row['iterations']}"),
    ]
    for preset, _ in _presets(study):
        rows = {(r["case"], r["method"]): r for r in study.trials.filter(preset=preset).iter_rows(named=True)}
        for title, show in figures:
            _print_grid(console, f"Every trial, preset {preset}: {title}", rows, show)
    explain(
        console,
        f"{SELECTED} selected, {CERTIFIED} certified, {AT_FLOOR} rows at the probability floor, "
        f"{NOTHING} did not converge or could not be scored.",
    )


def _print_grid(
    console: Console,
    title: str,
    rows: dict[tuple[str, str], dict[str, Any]],
    show: Callable[[dict[str, Any]], str],
) -> None:
    """Cases by methods; as many tables as the terminal's width asks for."""
    cases, methods = (list(dict.fromkeys(key[place] for key in rows)) for place in (0, 1))
    lines = [
        [escape(case), *(_cell(rows[case, m], show) if (case, m) in rows else "" for m in methods)]
        for case in cases
    ]
    for group in group_columns(console, methods, lines):
        table = new_table(title)
        add_columns(table, "case", *(name for _, name in group))
        for line in lines:
            table.add_row(line[0], *(line[place] for place, _ in group))
        console.print(table)


def print_floor(console: Console, study: Study) -> None:
    """Selected methods with a far worse log loss than others (paper, Table boxcox-logloss)."""
    if study.floor.is_empty():
        return
    table = new_table("What the paper's rule selects in spite of a far worse log loss: it does not see it")
    add_columns(table, "case", "preset", "method", "accuracy", "log loss", "alternatives", "times", "at floor")
    for row in study.floor.iter_rows(named=True):
        table.add_row(
            escape(row["case"]), row["preset"], row["method"], f"{row['accuracy']:.4f}", f"{row['log_loss']:.3f}",
            _range(row["alternatives_low"], row["alternatives_high"], ".3f"),
            _range(row["ratio_low"], row["ratio_high"], ".1f"), _figure(row["at_floor_share"], ".0%"),
        )  # fmt: skip
    print_table(console, table)


def print_presets(console: Console, study: Study) -> None:
    """The paper's conditions beside the exact ones: is it the data or the optimizer."""
    if study.presets.is_empty():
        return
    table = new_table("The same rows under both presets: is it the data or the optimizer?")
    add_columns(table, "cause", "trials", "which")
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for (cause,), rows in study.presets.sort("cause", maintain_order=True).group_by("cause", maintain_order=True):
        table.add_row(str(cause), str(len(rows)), escape(name_trials(rows.select("case", "method").rows())))
    print_table(console, table)


def print_hypotheses(console: Console, study: Study) -> None:
    """The paper's five hypotheses, judged on these trials."""
    for preset, _ in _presets(study):
        console.print(f"[bold]The paper's hypotheses, preset {preset}[/]")
        for one in study.hypotheses:
            if one.preset == preset:
                console.print(f"  {one.code} [bold]{one.verdict}[/]: {escape(one.claim)}", highlight=False)
                console.print(Padding(escape(one.evidence), (0, 0, 0, 5)), style="dim", highlight=False)
        console.print()


def print_remarks(console: Console, remarks: Sequence[str]) -> None:
    """What to look at."""
    if remarks:
        console.print("[bold]What to look at[/]")
    print_list(console, [f"{line}." for line in remarks])


def print_headline(console: Console, study: Study) -> None:
    """What was run, in a sentence or two."""
    trials = study.trials
    if study.plan.data.kind == "tables":
        console.print("[bold]How the tables were understood[/]")
        print_list(console, study.notes, mark="")
        console.print()
    if study.plan.data.kind == "inventory":
        console.print(
            "No table was given: these are simulated bridges, the built-in inventory.\n", highlight=False
        )
    done = "" if len(trials) == study.planned else f" ({len(trials)} of {study.planned} done so far)"
    plan = study.plan.study
    cases, methods = len(study.cases), len(plan.methods)
    console.print(
        f"[bold]{count_of(cases, 'component')} by {count_of(methods, 'method')}"
        f"{'' if len(_presets(study)) == 1 else f' under {len(_presets(study))} presets'}: "
        f"{count_of(study.planned, 'trial')}{done}.[/] {escape(study.scheme)}.",
        highlight=False,
    )
    for preset, words in _presets(study):
        here = trials.filter(preset=preset)
        counted = ", ".join(
            f"{count} {status}" for status, count in here.group_by("status", maintain_order=True).len().rows()
        )
        console.print(f"  {preset} ({words}): {counted}", highlight=False)
    if study.clock.taken:
        console.print(f"  {escape(study.clock.taken)}", highlight=False)
    console.print()


def print_all(console: Console, study: Study) -> None:
    """Every table."""
    print_headline(console, study)
    for section in (print_cases, print_methods, print_selection, print_verdicts, print_confirmation, print_trials,
                    print_floor, print_presets, print_hypotheses):  # fmt: skip
        section(console, study)


def _presets(study: Study) -> list[tuple[str, str]]:
    """The presets that were run, and what they mean."""
    return [(name, PRESETS[name].words) for name in study.trials["preset"].unique(maintain_order=True)]


def _cell(row: dict[str, Any], show: Callable[[dict[str, Any]], str]) -> str:
    if not row["converged"] or row["accuracy"] is None:
        return NOTHING
    facts = ((AT_FLOOR, row["at_floor"]), (CERTIFIED, row["certified"]), (SELECTED, row["selected"]))
    marks = "".join(mark if holds else " " for mark, holds in facts)
    return f"[bold]{show(row)}{marks}[/]" if row["selected"] else f"{show(row)}{marks}"


def _figure(value: float | None, form: str) -> str:
    return NOTHING if value is None or math.isnan(value) else format(value, form)


def _seconds(value: float | None) -> str:
    """Three digits, however short."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def _range(low: float, high: float, form: str) -> str:
    one, other = format(low, form), format(high, form)
    return one if one == other else f"{one} to {other}"


EXPLORATORY = "†"
MEANING = {
    "bootstrap": "bridges drawn with replacement, scored on the others",
    "splits": "80 % of the bridges, scored on the others",
    "seeds": "the training rows from random starts, scored on the validation rows",
}


def print_stability(console: Console, found: Stability, run: Path) -> None:
    """What was drawn; how often what was chosen and reached a maximum; what to look at; where the files are."""
    cases, methods = (
        count_of(len(found.cases), "component"),
        count_of(len(found.study.plan.study.methods), "method"),
    )
    draws, refits = count_of(found.resamples, "resample"), count_of(len(found.refits), "refit")
    drawn = f"[bold]{cases} by {methods}, {draws} of each kind: {refits}[/], seed {found.seed}"
    console.print(f"{drawn}. No confirmation row was used.\n", highlight=False)
    for preset in found.study.plan.study.presets:
        for kind in found.kinds:
            _print_kind(console, found, preset, kind)
    kinds = "; ".join(f"{kind}: {MEANING[kind]}" for kind in found.kinds)
    console.print(
        f"{kinds}. {SELECTED} what the study chose. none: nothing was chosen. {EXPLORATORY} exploratory: "
        "fewer than 100 training rows, or than 5 events per parameter.\n",
        style="dim",
        highlight=False,
    )
    print_remarks(console, found.remarks())
    print_plain(
        console,
        f"\nThe resamples are in {run / 'stability'}: selection.csv, methods.csv (distribution of accuracy, log "
        "loss and cost), statuses.csv, cases.csv, refits.csv.",
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
        cells = [_stability_cell(chosen[case, method], fitted[case, method]["certified"]) for method in methods]
        lines.append([escape(case) + (f" {EXPLORATORY}" if case in small else ""), *cells])
        lines[-1].append(_percent(chosen[case, methods[0]]["none"]))
    for group in group_columns(console, [*methods, "none"], lines):
        table = new_table(f"{kind}, preset {preset}: chosen / maximum reached, %")
        add_columns(table, "case", *(name for _, name in group))
        for line in lines:
            table.add_row(line[0], *(line[place] for place, _ in group))
        console.print(table)
    console.print()


def _stability_cell(chosen: dict[str, Any], certified: float) -> str:
    """'62 / 98*'."""
    text = f"{_percent(chosen['chosen'])} / {_percent(certified)}"
    return f"[bold]{text}{SELECTED}[/]" if chosen["in_study"] else f"{text} "


def _percent(share: float | None) -> str:
    """A share in whole percent; only none and all are 0 and 100."""
    if share is None:
        return NOTHING
    return str(min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share))
