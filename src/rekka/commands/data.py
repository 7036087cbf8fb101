"""``rekka transitions``, ``rekka check``, ``rekka simulate``: from inspection records to checked transitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import Progress
from rich.table import Table

import rekka
from rekka.commands.options import AsJson, Reader, Seed, Tables, reads_tables
from rekka.core.errors import BadOption, count_of
from rekka.core.files import is_stream, refuse_inputs, write_text
from rekka.core.terminal import echo_json, new_console

PARTITIONS = ("auto", "paper", "bridge", "date", "none")
ROWS_SHOWN = 5
CASES_SHOWN = 3
STYLES = {"stop": "bold red", "warning": "yellow", "note": "cyan"}

Scheme = Annotated[
    str,
    typer.Option(
        "--partition",
        metavar="SCHEME",
        help="Training, validation, confirmation rows: paper (visits 3 to 4; 4 to 5), bridge, date, auto or none.",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="DATE", help="Last day of training, for --partition date.")
]


@reads_tables
def transitions(
    tables: Tables,
    reader: Reader,
    out: Annotated[Path, typer.Option("--out", help="Where to write: .csv, .parquet or .xlsx.")] = Path(
        "transitions.csv"
    ),
    partition: Scheme = "none",
    until: Until = None,
    seed: Seed = 20260924,
    as_json: AsJson = False,
) -> None:
    """Turn inspection records into transitions, and account for every record.

    Two more files are written: the audit (a count for each reason) and the list of excluded records.

    For example:

      rekka transitions inspections.xlsx --out transitions.csv

      rekka transitions bridges.csv --mapping bridges.toml --out bridges.parquet

      rekka transitions MD16.txt MD17.txt MD18.txt --nbi --out maryland.parquet
    """
    chosen = _splitter(partition, until, seed)
    parts: list[Any] = []  # the partition, once it is made

    def split(frame: Any) -> Any:
        parts.append(chosen(frame) if chosen else None)
        return parts[0]

    from rekka.data.transitions import list_outputs

    errors = new_console(stderr=True)
    files = list_outputs(out)
    if as_json and is_stream(out):
        raise BadOption(f"--json prints to where --out {out} goes, too. Leave one of them out, or name a file.")
    refuse_inputs(files, reader.inputs(tables))
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        panel = reader.panel(tables)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("Pairing visits", total=panel.records)
        audit = rekka.write_transitions(
            panel,
            out,
            split=split if chosen else None,
            on_progress=lambda done: progress.advance(task, done),
            allow=reader.allow,
            **reader.rules,
        )
    if as_json:
        found = {"transitions": audit.transitions, "records": audit.records, "audit": audit.table.to_dicts()}
        split_up = {"scheme": parts[0].scheme, "rows": parts[0].counts().to_dicts()} if parts else None
        echo_json(found | {"partition": split_up, "notes": panel.notes, "files": [str(file) for file in files]})
    else:
        console = new_console(stderr=is_stream(out))  # nothing but the table goes there
        _print_list(console, "How the table was understood", panel.notes)
        _print_audit(console, audit)
        console.print(
            f"[bold]{count_of(audit.transitions, 'transition')}[/] in {escape(str(out))}", highlight=False
        )
        if files[1:]:
            beside = ", ".join(file.name for file in files[1:])
            console.print(f"what became of each record: {beside}", highlight=False, markup=False)
        if parts:
            _print_partition(console, parts[0])
    if not audit.transitions:
        errors.print("No two visits make a transition; the audit says why.")
        raise typer.Exit(1)
    if parts and parts[0].train.is_empty():
        errors.print(f"No row trains: {parts[0].scheme}. Choose another --partition.")
        raise typer.Exit(1)


@reads_tables
def check(
    tables: Tables,
    reader: Reader,
    partition: Scheme = "auto",
    until: Until = None,
    seed: Seed = 20260924,
    out: Annotated[Path | None, typer.Option("--out", help="Write the findings as JSON too.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Print every finding in full.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a table before fitting: numbered findings, with rows and remedies.

    The table is one of inspection records, or of transitions already paired. Exit code 1 means that a
    finding stops the work. (rekka checks, with an s, checks a study after it was run.)

    For example:

      rekka check inspections.csv

      rekka check bridges.csv --mapping bridges.toml --json

      rekka check transitions.parquet --partition paper
    """
    if (tables[0] / "study.toml").exists():
        raise BadOption(
            f"{tables[0].name} is a run folder, not a table. To look it over: rekka checks {tables[0]}"
        )
    split = _splitter(partition, until, seed)
    if out is not None:
        refuse_inputs([out], reader.inputs(tables))
    errors = new_console(stderr=True)
    with errors.status(f"Looking over {escape(tables[0].name)} ..."):
        found = reader.transitions(tables)
        if found.audit is not None and not found.audit.transitions:
            _print_audit(errors, found.audit)
            errors.print("No two visits make a transition, so that there is nothing to look over.")
            raise typer.Exit(1)
        diagnosis = rekka.check_transitions(
            found.frame,
            covariates=found.covariates,
            audit=None if found.audit is None else found.audit.table,
            notes=found.notes,
            scale=found.scale,
            partition=None if split is None else split(found.frame),
            moves=found.moves,
        )
    if out is not None:
        write_text(out, json.dumps(diagnosis.to_dict(), ensure_ascii=False, indent=1) + "\n")
    if as_json:
        echo_json(diagnosis.to_dict())
    else:
        _print_diagnosis(new_console(stderr=out is not None and is_stream(out)), diagnosis, show_all)
    if any(finding.severity == "stop" and finding.code not in reader.allow for finding in diagnosis.findings):
        raise typer.Exit(1)


def simulate(
    folder: Annotated[
        Path, typer.Argument(help="Folder for the tables; made if it is not there.", show_default=False)
    ],
    bridges: Annotated[
        int | None,
        typer.Option(min=1, help="Number of bridges; without it, ten components of the paper's exact sizes."),
    ] = None,
    seed: Seed = 20260924,
    dirt: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of repairs, blanks, duplicates, mixed date formats, such as 0.02."),
    ] = 0.0,
    table_format: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    force: Annotated[bool, typer.Option("--force", help="Write over tables that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a bridge inventory from known hazards: inventory, inspections, traffic, and the true hazards.

    For example:

      rekka simulate inventory

      rekka simulate national --bridges 1000000 --format parquet

      rekka simulate messy --dirt 0.02 && rekka check messy
    """
    preset = "paper" if bridges is None else "plain"
    errors = new_console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("Drawing bridges", total=bridges)
        files = rekka.write_inventory(
            folder, bridges, preset=preset, seed=seed, dirt=dirt, format=table_format, force=force,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )  # fmt: skip
    if as_json:
        echo_json({"files": [str(file) for file in files]})
        return
    console = new_console()
    for file in files:
        console.print(f"{file}  {file.stat().st_size / 1e6:,.1f} MB", highlight=False, markup=False)
    console.print(f"next: rekka check {folder}", highlight=False, markup=False)


def _splitter(name: str, until: str | None, seed: int) -> Callable[[Any], Any] | None:
    """The function that partitions transitions, or None."""
    if name not in PARTITIONS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(PARTITIONS)}", param_hint="--partition")
    if (name == "date") != (until is not None):
        raise typer.BadParameter("--partition date and --until belong together", param_hint="--until")
    if name == "none":
        return None
    from rekka.data.partition import choose_split

    try:
        return choose_split(name, until=until and date.fromisoformat(until), seed=seed)
    except ValueError:
        raise typer.BadParameter(f"{until!r} is not a date such as 2015-03-31", param_hint="--until") from None


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
