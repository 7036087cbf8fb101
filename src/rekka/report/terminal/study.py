"""A study in the terminal: its tables, what was selected and why, what to look at; its refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from rekka.core.columns import rows_of
from rekka.core.errors import count_of
from rekka.report.document import Answer, CalibrationPart, CasePart, FloorPart, MethodPart
from rekka.report.summarize import describe_calibration, describe_case, list_methods
from rekka.report.tables.cells import Spec, counted, estimate, span
from rekka.report.terminal.parts import explain, print_list, print_plain
from rekka.report.terminal.tables import NOTHING, SELECTED, WORDS, print_rows, print_texts, print_view, show, texts
from rekka.report.views import Cell, Column, Row, TableView
from rekka.study.explanations import list_names, name_trials
from rekka.study.plan import PLAIN, PRESETS
from rekka.study.stability import Stability
from rekka.study.study import Study
from rekka.study.tables import TrialRow

CERTIFIED, AT_FLOOR, EXPLORATORY = "°", "_", "†"
JUDGED = {"validation": "validation rows", "folds": "in folds", "golden": "confirmation rows"}
TITLES = {
    "guarded": "Chosen, preset {}: the default, unless another has a log loss shown to be lower",
    "pareto": "Selected, preset {}: methods that no other beats in accuracy and cost together",
}
KINDS = {
    "bootstrap": "bridges drawn with replacement, scored on the others",
    "splits": "80 % of the bridges, scored on the others",
    "seeds": "the training rows from random starts, scored on the validation rows",
}


def print_cases(console: Console, study: Study) -> None:
    """Rows of each case, and its baselines (paper, Table cases)."""
    print_rows(
        console,
        "Components: rows in each part; scores of the two baselines on the judged rows",
        CasePart,
        "case train validation golden n_states persistence_accuracy no_covariates_accuracy no_covariates_log_loss",
        rows=map(describe_case, study.described),
        note="no change: accuracy of the baseline that every member keeps its rating. "
        "no cov.: accuracy, and log loss, of the model without covariates.",
    )


def print_methods(console: Console, study: Study) -> None:
    """One line a method (paper, Table method-summary)."""
    of_all = (counted(name, "trials", alone=True) for name in ("converged", "certified", "selected"))
    columns: tuple[Spec, ...] = (
        texts("method", _name_equals, right=False),
        *of_all,
        "mean_accuracy median_seconds median_iterations at_floor_share",
    )
    found = list_methods(study)
    for preset, words in _presets(study):
        rows = (one for one in found if one.preset == preset and one.same_as is None)
        print_rows(console, f"Methods, preset {preset}: {words}", MethodPart, *columns, rows=rows)
    explain(
        console,
        "converged: the solver says so and everything is finite, the paper's sense. certified: it is a maximum of "
        "the likelihood. Of those that can be selected (paper: converged; exact: certified): mean accuracy, "
        "median seconds and steps (iterations), and the share of judged rows whose outcome was given a "
        "probability of 1e-12 or less." + _explain_equals(study),
    )


def _name_equals(one: MethodPart) -> str:
    """'zscore, max, minmax': methods that are one model are shown in one row."""
    return ", ".join((one.method, *one.also))


def _explain_equals(study: Study) -> str:
    """Sentence on the methods that are shown as one."""
    return "".join(
        f" {one.method} (also {list_names(one.also)}): the same model, log-likelihoods agree to {one.spread:.0e}."
        for one in study.equals
    )


def print_selection(console: Console, study: Study) -> None:
    """The choice in each case and its reason, and its log loss beside others (paper, Table selection)."""
    columns = (Column("case", WORDS("column.case")), Column("why", WORDS("short.chosen_why")))
    for preset, _ in _presets(study):
        rungs = study.ladder.rename({"chosen": "selected"})
        trials = pl.concat([study.trials, rungs], how="diagonal").filter(preset=preset)
        rows = []
        for case, why in study.selection.filter(preset=preset).select("case", "why").rows():
            rows.append(Row((Cell(case, case), Cell(why, why))))
            if losses := describe_losses(trials.filter(case=case)):
                rows.append(Row((Cell(None, ""), Cell(None, losses, faint=True))))
        title = TITLES[study.plan.study.rule].format(preset)
        print_view(console, TableView("selection", title, columns, tuple(rows), _describe_optimism(study, preset)))


def _describe_optimism(study: Study, preset: str) -> str:
    """Optimism of scores on golden rows that chose; nothing where these were kept out of the choice."""
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
    """Verdicts of the rule on every method, those with the same verdict together."""
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
    """Scores of the choices on the golden rows, beside two baselines."""
    case = "case preset" if len(study.plan.study.presets) > 1 else "case"
    method = texts("method", lambda row: row.method + ("!" if row.seen else ""))
    less = estimate("no_covariates_difference", ends="no_covariates")
    for number, look in enumerate(study.looks, start=1):
        rows = [SimpleNamespace(**row) for row in study.confirmation.filter(look=number).iter_rows(named=True)]
        first = "Confirmed on the confirmation rows, which no choice has used"
        title = first if number == 1 else f"Look {number} at the confirmation rows: no confirmation"
        note = (
            "no change: accuracy of the baseline that every member keeps its rating. minus no cov.: log loss "
            "minus that of the model without covariates, with its interval by bridge; below 0 is better."
            + (" !: looked at before, with another model." if any(row.seen is not None for row in rows) else "")
        )
        if rows:
            columns = (case, method, "rows accuracy persistence_accuracy log_loss", less)
            print_rows(console, title, (Answer, MethodPart), *columns, rows=rows, note=note)
        reasons: dict[str, list[str]] = {}
        for case, why in look.refused.items():
            reasons.setdefault(why, []).append(case)
        for why, cases in reasons.items():
            print_plain(console, f"Not confirmed: {list_names(cases)}: {why}.\n")


def print_elements(console: Console, study: Study) -> None:
    """Elements of histories that were chosen, and their test on the last years."""
    for one in study.elements:
        print_plain(console, f"{one.summary}\n")


def print_calibration(console: Console, study: Study) -> None:
    """Whether the forecasts of what was chosen come true on its training rows; the test takes seconds a case."""
    chosen = [choice for choice in study.choices if choice.chosen is not None]
    found = [
        describe_calibration(study, one.preset, one.case, study.calibration(one.case, one.preset))
        for one in chosen
    ]
    print_rows(
        console,
        "Model check: the chosen models on their training rows",
        CalibrationPart,
        "case preset method rows moves_observed moves_expected p_value at_floor_share",
        rows=found,
        note="moves: rows that left their rating, and how many were expected to. p: of counts by start rating, "
        "end rating and interval like these or farther off, were the model right (by simulation).",
    )
    print_remarks(
        console, [f"{one.case} ({one.preset}): {cause}".rstrip(".") for one in found for cause in one.causes]
    )


def describe_losses(trials: pl.DataFrame) -> str:
    """'validation rows: log loss .8; lowest .7 (boxcox); without covariates .8. No change: accuracy .6'."""
    scored = trials.filter(trials["eligible"] & trials["log_loss"].is_not_null())
    chosen = scored.filter(scored["selected"]).sort("log_loss", maintain_order=True)
    if chosen.is_empty():
        return ""
    by_loss: dict[str, list[str]] = {}
    for method, loss in chosen.select("method", "log_loss").rows():
        by_loss.setdefault(f"{loss:.3f}", []).append(method)
    own = ", ".join(
        loss if len(by_loss) == 1 else f"{loss} ({list_names(names)})" for loss, names in by_loss.items()
    )
    best = scored.sort("log_loss").row(0, named=True)
    lowest = "" if f"{best['log_loss']:.3f}" in by_loss else f"; lowest {best['log_loss']:.3f} ({best['method']})"
    plain, same = show(best["no_covariates_log_loss"], "loss"), show(best["persistence_accuracy"], "accuracy")
    where = JUDGED[best["judged_on"]]
    return f"{where}: log loss {own}{lowest}; without covariates {plain}. No change: accuracy {same}"


def print_trials(console: Console, study: Study) -> None:
    """Accuracy and seconds of every trial (paper, Table appendix-full), and log losses beside them."""
    figures: dict[str, Callable[[TrialRow], str]] = {
        "accuracy / seconds": lambda one: f"{show(one.accuracy, 'accuracy')} / {show(one.seconds, 'seconds')}",
        "log loss / iterations": lambda one: f"{show(one.log_loss, 'loss')} / {one.iterations}",
    }
    for preset, _ in _presets(study):
        trials = rows_of(TrialRow, study.trials.filter(preset=preset))
        for title, tell in figures.items():
            cells = {(one.case, one.method): _mark_trial(one, tell) for one in trials}
            print_view(console, _make_grid(f"Every trial, preset {preset}: {title}", cells), split=True)
    explain(
        console,
        f"{SELECTED} selected, {CERTIFIED} certified, {AT_FLOOR} rows at the probability floor, "
        f"{NOTHING} did not converge or could not be scored.",
    )


def _mark_trial(trial: TrialRow, tell: Callable[[TrialRow], str]) -> Cell:
    if not trial.converged or trial.accuracy is None:
        return Cell(None, NOTHING)
    facts = ((AT_FLOOR, trial.at_floor), (CERTIFIED, trial.certified), (SELECTED, trial.selected))
    marks = "".join(mark if holds else " " for mark, holds in facts)
    return Cell(None, f"{tell(trial)}{marks}", strong=trial.selected)


def _make_grid(title: str, cells: dict[tuple[str, str], Cell]) -> TableView:
    """Cases by methods."""
    cases, methods = (list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    columns = (Column("case", WORDS("column.case")), *(Column(one, one, "number") for one in methods))
    blank = Cell(None, "")
    rows = (Row((Cell(case, case), *(cells.get((case, one), blank) for one in methods))) for case in cases)
    return TableView("grid", title, columns, tuple(rows))


def print_floor(console: Console, study: Study) -> None:
    """Selected methods with a far worse log loss than others (paper, Table boxcox-logloss)."""
    if not study.floor.is_empty():
        print_rows(
            console,
            "What the paper's rule selects in spite of a far worse log loss: it does not see it",
            FloorPart,
            "case preset method accuracy log_loss",
            span("alternatives"),
            span("ratio"),
            "at_floor_share",
            rows=rows_of(FloorPart, study.floor),
        )


def print_presets(console: Console, study: Study) -> None:
    """The paper's conditions beside the exact ones: is it the data or the optimizer."""
    groups = study.presets.sort("cause", maintain_order=True).group_by("cause", maintain_order=True)
    found = [(str(cause), rows.select("case", "method").rows()) for (cause,), rows in groups]
    if found:
        lines = ((cause, str(len(rows)), name_trials(rows)) for cause, rows in found)
        title = "The same rows under both presets: is it the data or the optimizer?"
        print_texts(console, title, ("cause", "trials", "which"), lines, left=3)


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
    """Print remarks."""
    if remarks:
        console.print("[bold]What to look at[/]")
    print_list(console, [f"{line}." for line in remarks])


def print_reading(console: Console, study: Study) -> None:
    """How the tables were read, then data, plan and statuses in a few sentences."""
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
    cases, methods = len(study.cases), len(study.plan.study.methods)
    presets = _presets(study)
    if not study.trials.is_empty() and study.plan.study.methods == (PLAIN,):
        console.print(
            "There are no covariates, so that there is nothing to scale: one model is fitted for each component.",
            highlight=False,
        )
    console.print(
        f"[bold]{count_of(cases, 'component')} by {count_of(methods, 'method')}"
        f"{'' if len(presets) == 1 else f' under {len(presets)} presets'}: "
        f"{count_of(study.planned, 'trial')}{done}.[/] {escape(study.scheme)}.",
        highlight=False,
    )
    for preset, words in presets:
        here = trials.filter(preset=preset)
        found = ", ".join(
            f"{count} {status}" for status, count in here.group_by("status", maintain_order=True).len().rows()
        )
        console.print(f"  {preset} ({words}): {found}", highlight=False)
    if study.clock.taken:
        console.print(f"  {escape(study.clock.taken)}", highlight=False)
    console.print()


def print_all(console: Console, study: Study) -> None:
    """Every table."""
    print_reading(console, study)
    for section in (print_cases, print_methods, print_selection, print_verdicts, print_confirmation,
                    print_elements, print_trials, print_floor, print_presets, print_hypotheses):  # fmt: skip
        section(console, study)


def _presets(study: Study) -> list[tuple[str, str]]:
    """The presets that were run, and what they mean."""
    return [(name, PRESETS[name].words) for name in study.trials["preset"].unique(maintain_order=True)]


def print_stability(console: Console, found: Stability, run: Path) -> None:
    """Resamples; shares in which each method was chosen and reached a maximum; remarks; files."""
    cases = count_of(len(found.cases), "component")
    methods = count_of(len(found.study.plan.study.methods), "method")
    draws, refits = count_of(found.resamples, "resample"), count_of(len(found.refits), "refit")
    drawn = f"[bold]{cases} by {methods}, {draws} of each kind: {refits}[/], seed {found.seed}"
    console.print(f"{drawn}. No confirmation row was used.\n", highlight=False)
    small = {
        case: f"{case} {EXPLORATORY}" for case, why in found.cases.select("case", "exploratory").rows() if why
    }
    for preset in found.study.plan.study.presets:
        for kind in found.kinds:
            cells = dict(_list_shares(found, preset, kind, small))
            print_view(
                console, _make_grid(f"{kind}, preset {preset}: chosen / maximum reached, %", cells), split=True
            )
    kinds = "; ".join(f"{kind}: {KINDS[kind]}" for kind in found.kinds)
    explain(
        console,
        f"{kinds}. {SELECTED} what the study chose. none: nothing was chosen. {EXPLORATORY} exploratory: "
        "fewer than 100 training rows, or than 5 events per parameter.",
    )
    print_remarks(console, found.remarks())
    print_plain(
        console,
        f"\nThe resamples are in {run / 'stability'}: selection.csv, methods.csv (distribution of accuracy, log "
        "loss and cost), statuses.csv, cases.csv, refits.csv.",
    )


def _list_shares(
    found: Stability, preset: str, kind: str, names: dict[str, str]
) -> Iterator[tuple[tuple[str, str], Cell]]:
    """'62 / 98*' for each case and method, and how often nothing was chosen."""
    tables = (table.filter(preset=preset, kind=kind) for table in (found.selection, found.methods))
    chosen, fitted = (table.rows_by_key(["case", "method"], named=True, unique=True) for table in tables)
    for case in found.cases["case"]:
        name = names.get(case, case)
        for method in found.study.plan.study.methods:
            own, strong = chosen[case, method], chosen[case, method]["in_study"]
            text = f"{_percent(own['chosen'])} / {_percent(fitted[case, method]['certified'])}"
            yield (name, method), Cell(None, f"{text}{SELECTED if strong else ' '}", strong=strong)
        yield (name, "none"), Cell(None, _percent(own["none"]))


def _percent(share: float | None) -> str:
    """A share in whole percent; only none and all are 0 and 100."""
    if share is None:
        return NOTHING
    return str(min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share))
