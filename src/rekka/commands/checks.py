"""``rekka checks``: a study looked over, with numbered findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

import rekka
from rekka.commands.bars import count_progress
from rekka.commands.options import AsJson, Run
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import quote

if TYPE_CHECKING:
    from rekka.checks.engine import Finding
    from rekka.evaluation.calibration import Calibration
    from rekka.study.study import Study

VERSION = 1  # of the plain data that --json gives
STYLES = {"issue": "bold red", "tip": "yellow", "passed": "green", "not applicable": "dim"}
INDENT = 6


def checks(
    run: Run,
    as_json: AsJson = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print the checks that passed, and those not applicable, in full too.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Make no test of fit (R611) that was not made with the choice: it takes some seconds each.",
        ),
    ] = False,
    test_fit: Annotated[
        bool, typer.Option("--test-fit", help="Make the test of fit for more than 50 components too.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there is an issue.")] = False,
) -> None:
    """Check a study after it was run: numbered findings, with figures and remedies.

    An issue makes a selected result wrong or unusable, a tip is useful to know. The exit code is 0 unless --strict
    is given. (rekka check, without the s, checks a table before anything is fitted.)

    For example:

      rekka checks run

      rekka checks run --quick --all

      rekka checks run --json --strict
    """
    from rekka.study.checks.registry import check_study

    study = rekka.load_study(run)
    calibrations = (
        calibrate_choices(new_console(stderr=True), study, test_fit=test_fit) if test_fit or not quick else None
    )
    findings = check_study(study, calibrations=calibrations)
    if as_json:
        echo_json(_plain(run, findings))
    else:
        print_findings(new_console(), findings, run, show_all=show_all)
    if strict and any(finding.verdict == "issue" for finding in findings):
        raise typer.Exit(1)


def calibrate_choices(
    errors: Console, study: Study, *, test_fit: bool = False
) -> dict[tuple[str, str], Calibration] | None:
    """Calibrate chosen models, with a bar, where a test of fit was not made with the choice.

    None where all have theirs, or where there are more than 50 components and nobody asked.
    """
    from rekka.evaluation.calibration import MOST_TESTED

    untested = [one for one in study.choices if one.chosen is not None and one.fit_test is None]
    if not untested or (len(study.described) > MOST_TESTED and not test_fit):
        return None
    with count_progress(errors, "Test of fit") as on_case:
        return study.calibrations(on_case, test=True)


def print_findings(console: Console, findings: Sequence[Finding], run: Path, *, show_all: bool = False) -> None:
    """Print issues and tips with remedies; the others in a line each verdict, unless all are wanted."""
    from rekka.study.checks.registry import headline

    console.print(f"[bold]What to look at: {headline(findings)}.[/]", highlight=False)
    for finding in findings:
        if finding.found or show_all:
            _print_finding(console, finding)
    if show_all:
        return
    console.print()
    for verdict in STYLES:
        codes = [finding.code for finding in findings if finding.verdict == verdict and not finding.found]
        if codes:
            console.print(f"[{STYLES[verdict]}]{verdict}[/]: {', '.join(codes)}", highlight=False)
    console.print(f"rekka checks {quote(run)} --all shows these in full.", highlight=False, markup=False)


def print_brief(console: Console, findings: Sequence[Finding], run: Path) -> None:
    """Print issues in full, tips by their titles: the end of a study's summary."""
    from rekka.study.checks.registry import headline
    from rekka.study.explanations import list_names

    console.print(f"[bold]What to look at: {headline(findings)}.[/]", highlight=False)
    tips = [finding for finding in findings if finding.verdict == "tip"]
    for finding in findings:
        if finding.verdict == "issue":
            _print_finding(console, finding)
    if tips:
        console.print()
    for tip in tips:
        of = f": {list_names(tip.cases)}" if tip.cases else ""
        console.print(f"[{STYLES['tip']}]{tip.code} tip[/]  {escape(tip.title)}{escape(of)}", highlight=False)
    if any(finding.found for finding in findings):
        console.print(f"Figures and remedies: rekka checks {quote(run)}", highlight=False, markup=False)


def _print_finding(console: Console, finding: Finding) -> None:
    style = STYLES[finding.verdict]
    console.print(
        f"\n[{style}]{finding.code} {finding.verdict}[/]  [bold]{escape(finding.title)}[/]", highlight=False
    )
    console.print(Padding(escape(finding.explanation), (0, 0, 0, INDENT)), highlight=False)
    if finding.remedy:
        console.print(Padding(f"[green]->[/] {escape(finding.remedy)}", (0, 0, 0, INDENT)), highlight=False)


def _plain(run: Path, findings: Sequence[Finding]) -> dict[str, Any]:
    """Plain data."""
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in STYLES}
    head = {"format": "rekka-checks", "version": VERSION, "run": str(run), "counts": counts}
    return head | {"findings": [finding.to_dict() for finding in findings]}
