"""``rekka transitions``, ``rekka check``, ``rekka simulate``: from inspection records to checked transitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.errors import BadOption, InputError, count_of
from rekka.core.files import is_stream
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_plain

ROWS_SHOWN = 5
CASES_SHOWN = 3
STYLES = {"stop": "bold red", "warning": "yellow", "note": "cyan"}

PARTITION = Flag(
    "--partition", str, "partition", "SCHEME",
    "Training, validation, confirmation rows: paper (visits 3 to 4; 4 to 5), bridge, date, auto or none.",
    "none",
)  # fmt: skip
UNTIL = Flag("--until", options.Text, "until", "DATE", "Last day of training, or a year, for --partition date.")
SEED = Flag("--seed", int, "seed", None, "The same seed gives the same result.", 20260924)


@reads_tables
@asks(
    Flag("--out", Path, "out", None, "Where to write: .csv, .parquet or .xlsx.", Path("transitions.csv")),
    PARTITION, UNTIL, SEED,
)  # fmt: skip
def transitions(
    tables: options.Tables, reader: options.Reader, asked: options.Asked, as_json: options.AsJson = False
) -> None:
    """Turn inspection records into transitions, and account for every record.

    Two more files are written: the audit (a count for each reason) and the list of excluded records.

    For example:

      rekka transitions inspections.xlsx --out transitions.csv

      rekka transitions bridges.csv --mapping bridges.toml --out bridges.parquet

      rekka transitions MD16.txt MD17.txt MD18.txt --nbi --out maryland.parquet
    """
    from rekka.workflows.tables import pair_table

    out, errors = asked["out"], new_console(stderr=True)
    if as_json and is_stream(out):
        raise BadOption(f"--json prints to where --out {out} goes, too. Leave one of them out, or name a file.")
    with show_progress(errors) as on_progress:
        found = pair_table(tables, reader, **asked, on_progress=on_progress)
    if as_json:
        echo_json(found.to_dict())
    else:
        console = new_console(stderr=is_stream(out))  # nothing but the table goes there
        _print_list(console, "How the table was understood", found.panel.notes)
        _print_audit(console, found.audit)
        _print_moves(console, found.audit.moves, found.panel.scale.names)
        total = count_of(found.audit.transitions, "transition")
        console.print(f"[bold]{total}[/] in {escape(str(out))}", highlight=False)
        if found.files[1:]:
            print_plain(console, f"what became of each record: {', '.join(one.name for one in found.files[1:])}")
        if found.partition is not None:
            _print_partition(console, found.partition)
    if not found.audit.transitions:
        errors.print("No two visits make a transition; the audit says why.")
        raise typer.Exit(1)
    if found.partition is not None and found.partition.train.is_empty():
        errors.print(f"No row trains: {found.partition.scheme}. Choose another --partition.")
        raise typer.Exit(1)


@reads_tables
@asks(
    PARTITION._replace(default="auto"), UNTIL, SEED,
    Flag("--out", options.Place, "out", None, "Write the findings as JSON too."),
)  # fmt: skip
def check(
    tables: options.Tables,
    reader: options.Reader,
    asked: options.Asked,
    show_all: Annotated[bool, typer.Option("--all", help="Print every finding in full.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check a table before fitting: numbered findings, with rows and remedies.

    The table is one of inspection records, or of transitions already paired. Exit code 1 means that a
    finding stops the work. (rekka checks, with an s, checks a study after it was run.)

    For example:

      rekka check inspections.csv

      rekka check bridges.csv --mapping bridges.toml --json

      rekka check transitions.parquet --partition paper
    """
    from rekka.workflows.tables import check_table

    errors, out = new_console(stderr=True), asked.get("out")
    try:
        with errors.status(f"Looking over {escape(tables[0].name)} ..."):
            diagnosis = check_table(tables, reader, **asked)
    except InputError as error:
        if "audit" in error.values:
            _print_audit(errors, error.values["audit"])
        raise
    if as_json:
        echo_json(diagnosis.to_dict())
    else:
        _print_diagnosis(new_console(stderr=out is not None and is_stream(out)), diagnosis, show_all)
    if any(finding.severity == "stop" and finding.code not in reader.allow for finding in diagnosis.findings):
        raise typer.Exit(1)


@asks(
    Flag("--bridges", options.Number, "bridges", None,
         "Number of bridges; without it, ten components of the paper's exact sizes.", least=1),
    SEED,
    Flag("--dirt", float, "dirt", None,
         "Share of repairs, blanks, duplicates, mixed date formats, such as 0.02.", 0.0, 0, most=1),
    Flag("--error", float, "error", None,
         "Probability that an inspector rates one better or one worse at a visit, such as 0.05.", 0.0, 0, most=1),
    Flag("--frailty", float, "frailty", None,
         "Variance of a factor by which bridges deteriorate faster or slower, such as 0.5.", 0.0, 0, most=10),
    Flag("--improvements", float, "improvements", None,
         "Probability a year of an unrecorded improvement by one rating, such as 0.03.", 0.0, 0, most=1),
    Flag("--trend", float, "trend", None,
         "Slope of all log hazards per calendar year, such as -0.02.", 0.0, -1, most=1),
    Flag("--format", str, "format", None, "csv or parquet.", "csv"),
    Flag("--force", bool, "force", None, "Write over tables that are there."),
)  # fmt: skip
def simulate(
    folder: Annotated[
        Path, typer.Argument(help="Folder for the tables; made if it is not there.", show_default=False)
    ],
    asked: options.Asked,
    as_json: options.AsJson = False,
) -> None:
    """Simulate a bridge inventory from known hazards: inventory, inspections, traffic, and the true hazards.

    For example:

      rekka simulate inventory

      rekka simulate national --bridges 1000000 --format parquet

      rekka simulate messy --dirt 0.02 && rekka check messy

      rekka simulate erring --bridges 500 --error 0.05 --improvements 0.03
    """
    preset = "plain" if "bridges" in asked else "paper"
    with show_progress(new_console(stderr=True)) as show:
        files = rekka.write_inventory(
            folder,
            **asked,
            preset=preset,
            on_progress=lambda done, total: show("Drawing bridges", "", done, total),
        )
    if as_json:
        echo_json({"files": [str(file) for file in files]})
        return
    console = new_console()
    for file in files:
        print_plain(console, f"{file}  {file.stat().st_size / 1e6:,.1f} MB")
    print_plain(console, f"next: rekka check {folder}")


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    console.print(f"[bold]{title}[/]")
    for line in lines:
        console.print(f"  {escape(line)}", highlight=False)
    console.print()


def _print_audit(console: Console, audit: Any) -> None:
    table = Table("outcome", "reason", title=f"What became of {audit.records:,} records", title_justify="left")
    table.add_column("records", justify="right")
    table.add_column("first rows")
    for outcome, reason, count, rows in audit.table.rows():
        table.add_row(outcome, escape(reason), f"{count:,}", ", ".join(map(str, (rows or [])[:ROWS_SHOWN])))
    console.print(table)


def _print_moves(console: Console, moves: Any, labels: Sequence[str]) -> None:
    """Transitions from each rating to each other: by component where these are few, else of all together."""
    cases = moves["case"].unique().sort().to_list()
    each = [(escape(case), moves.filter(case=case)) for case in cases]
    for name, own in each if len(cases) <= CASES_SHOWN else [(f"all {len(cases)} components", moves)]:
        console.print(f"[bold]Moves from rating to rating: {name}[/]", highlight=False)
        table = Table("from / to")
        for label in labels:
            table.add_column(escape(label), justify="right")
        counts = Counter[tuple[int, int]]()
        for first, second, count in own.select("state_1", "state_2", "transitions").rows():
            counts[first, second] += count
        for first, label in enumerate(labels, 1):
            cells = (counts[first, second] for second in range(1, len(labels) + 1))
            table.add_row(escape(label), *(f"{count:,}" if count else "" for count in cells))
        console.print(table)


def _print_partition(console: Console, partition: Any) -> None:
    console.print(f"\n{escape(partition.scheme)}:", highlight=False)
    table = Table("case", box=None, pad_edge=False)
    for part in ("train", "validation", "golden"):
        table.add_column(part, justify="right")
    for case, *counts in partition.counts().rows():
        table.add_row(escape(case), *(f"{count:,}" for count in counts))
    console.print(table)


def _print_diagnosis(console: Console, diagnosis: Any, show_all: bool) -> None:
    """Findings of one code together; notes in a line each, and of many cases the first, unless all are wanted."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for finding in diagnosis.findings:
        groups.setdefault((finding.code, finding.severity), []).append(finding)
    _print_list(console, "How the table was understood", diagnosis.notes)
    groups.pop(("R001", "note"), None)  # that is what the list above says
    for finding in groups.pop(("R002", "note"), []):
        console.print(escape(finding.message), highlight=False)
    split = diagnosis.facts["partition"]
    if split is not None:
        console.print(
            f"Looked at as split for a study: {split['scheme']} (--partition none: as a whole).\n", highlight=False
        )
    console.print(f"[bold]{escape(diagnosis.headline())}[/]", highlight=False)
    hidden = False
    for (code, severity), findings in groups.items():
        brief = severity == "note" and not show_all
        cases = [finding.case for finding in findings if finding.case]
        where = f" [dim]{escape(_name_some(cases))}[/]" if cases and brief else ""
        gap = "" if brief else "\n"
        title = f"[bold]{escape(findings[0].title)}[/]{where}"
        console.print(f"{gap}[{STYLES[severity]}]{code} {severity}[/]  {title}", highlight=False)
        if brief:
            hidden = True
            continue
        shown = findings if show_all else findings[:CASES_SHOWN]
        for finding in shown:
            _print_finding(console, finding)
        if len(shown) < len(findings):
            hidden = True
            console.print(f"      ... and {len(findings) - len(shown)} more findings like this", highlight=False)
        for remedy in dict.fromkeys(finding.remedy for finding in shown):
            console.print(Padding(f"[green]->[/] {escape(remedy)}", (0, 0, 0, 6)), highlight=False)
    if hidden:
        console.print("\n--all shows every finding in full.", highlight=False)


def _print_finding(console: Console, finding: Any) -> None:
    case = f"[dim]{escape(finding.case)}:[/] " if finding.case else ""
    rows = ", ".join(map(str, finding.rows[:ROWS_SHOWN]))
    more = ", ..." if finding.count > ROWS_SHOWN else ""
    tail = f" [dim](rows {rows}{more})[/]" if rows else ""
    console.print(Padding(f"{case}{escape(finding.message)}{tail}", (0, 0, 0, 6)), highlight=False)


def _name_some(cases: Sequence[str]) -> str:
    unique = list(dict.fromkeys(cases))
    return ", ".join(unique) if len(unique) <= CASES_SHOWN else f"{len(unique)} components"
