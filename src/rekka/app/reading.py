"""How a table is read: columns, ratings, dates and joins, with what follows from them and what stops the work.

Every change goes into the table's draft and is shown at once. What was read is kept in memory for as long as
neither the files nor the draft change.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app import changes
from rekka.app.changes import FormFields, Plain
from rekka.app.description import TableDescription, describe_reading
from rekka.app.memory import Memory
from rekka.app.pages import is_partial, redirect, render, words_of
from rekka.app.problems import (
    Checked,
    Remedy,
    check_reading,
    explain_refusal,
    find_remedy,
    turn_scale,
)
from rekka.app.views import KEYS, describe_page
from rekka.app.workspace import Draft, StoredTable, Workspace
from rekka.core.errors import InputError
from rekka.core.folders import relate
from rekka.core.language import Said, say
from rekka.data.mapping import format_mapping, load_mapping

MOST_KEPT = 16  # readings in memory: descriptions, no rows of tables


_described, _checked = Memory(MOST_KEPT, math.inf), Memory(MOST_KEPT, math.inf)


def describe_table(table: StoredTable, names: dict[str, str] | None = None) -> TableDescription:
    """Describe how a table is read; ``names`` are those that joined files are shown under, by their paths."""
    return _described.find(
        table.signature,
        lambda: describe_reading(table.file, table.options, table.draft.name, names or {}),
    )


def check_table(table: StoredTable) -> Checked:
    """Check a table as it is read."""
    return _checked.find(
        table.signature,
        lambda: check_reading(table.file, table.options, describe_table(table), table.draft.mapping),
    )


def _find(request: Request) -> StoredTable:
    workspace: Workspace = request.app.state.workspace
    return workspace.table(request.path_params["table"])


async def show_reading(request: Request) -> Response:
    """The page of a table; its checks follow by themselves, or by a link where there is no JavaScript."""
    return await _show(request, _find(request), check="check" in request.query_params)


async def show_checks(request: Request) -> Response:
    """The part of the page that says what stops the work and what became of the records."""
    table = _find(request)
    if not is_partial(request):
        return redirect(request, f"/tables/{table.id}?check=1")
    return await _show(request, table, check=True, block="checks")


async def _show(
    request: Request, table: StoredTable, *, check: bool, block: str = "reading", fault: Said | None = None
) -> Response:
    described, checked, others = await run_in_threadpool(_gather, request.app.state.workspace, table, check)
    words = words_of(request)
    return render(
        request,
        "reading.html",
        block=block,
        table=table,
        seen=table.signature,
        checked=checked,
        others=others,
        fault=None if fault is None else words.format(fault),
        partial=is_partial(request),
        turn=next(turn_scale(described, table.draft.mapping), None),
        **describe_page(described, words),
    )


def _gather(
    workspace: Workspace, table: StoredTable, check: bool
) -> tuple[TableDescription, Checked | None, list[StoredTable]]:
    """Everything that a page shows; its checks only where they were asked for, are known, or are quick."""
    tables = workspace.tables()
    described = describe_table(table, {str(one.file): one.draft.name for one in tables})
    known: Checked | None = _checked.get(table.signature)
    if known is None and (check or described.refusal is not None):
        known = check_table(table)
    joined = {join.file for join in described.joins}
    return described, known, [one for one in tables if one.id != table.id and str(one.file) not in joined]


async def change_reading(request: Request) -> Response:
    """Take a remedy, or change a section, and show the page as it is then."""
    table = _find(request)
    form = await request.form()
    table, fault = await run_in_threadpool(_change, request.app.state.workspace, table, cast(FormFields, form))
    if is_partial(request):
        return await _show(request, table, check=fault is not None, fault=fault)
    address = f"/tables/{table.id}?check=1"
    if fault is None:
        return redirect(request, address)
    values = {name: value for name, value in fault.items() if name != "say"}
    return redirect(request, address, fault["say"], "bad", **values)


def _change(workspace: Workspace, table: StoredTable, form: FormFields) -> tuple[StoredTable, Said | None]:
    """The table with another draft, or as it was and the reason."""
    if str(form.get("seen", "")) != table.signature:
        return table, say(f"{KEYS}elsewhere")
    described, draft = describe_table(table), table.draft
    try:
        if "remedy" in form:
            changed = _take_remedy(form, table, described)
            if isinstance(changed, dict):
                return table, changed
            return _save(table, changed), None
        return _save(table, draft.model_copy(update={"mapping": _change_section(workspace, form, table)})), None
    except InputError as error:
        problem = explain_refusal(error, described, draft.mapping)
        if problem.kind in ("option", "other"):
            return table, say(f"{KEYS}refused", message=str(error))
        return table, say(f"{KEYS}problem.{problem.kind}.found", **problem.places)


def _save(table: StoredTable, draft: Draft) -> StoredTable:
    """Keep a draft whose mapping can be read."""
    load_mapping(draft.mapping)
    return table.save(draft)


def _change_section(workspace: Workspace, form: FormFields, table: StoredTable) -> Plain:
    """Mapping after the form of a section; a table to be joined is one of the workspace."""
    mapping, section = table.draft.mapping, str(form.get("section", ""))
    if section == "join":
        other = workspace.table(str(form.get("join")))
        return changes.add_join(mapping, relate(other.file, table.folder))
    if section == "unjoin":
        text = str(form.get("place", ""))
        return changes.drop_join(mapping, int(text)) if text.isdecimal() else mapping
    if section not in changes.SECTIONS:
        return mapping
    return changes.SECTIONS[section](form, mapping, describe_table(table))


def _take_remedy(form: FormFields, table: StoredTable, described: TableDescription) -> Draft | Said:
    """The draft after a remedy that the page offers, or a sentence on why it was not taken."""
    name, draft = str(form.get("remedy")), table.draft
    if name == "reset":
        return draft.model_copy(update={"mapping": {}, "allow": (), "nbi": False})
    if name == "forbid":
        return draft.model_copy(update={"allow": ()})
    remedy = find_remedy(check_table(table).problems, name)
    if remedy is None and name == "turn":
        remedy = next(turn_scale(described, draft.mapping), None)
    if remedy is None:
        return say(f"{KEYS}gone")
    if remedy.allow:
        if "confirmed" not in form:
            return say(f"{KEYS}confirm_first")
        return draft.model_copy(update={"allow": tuple(dict.fromkeys([*draft.allow, remedy.allow]))})
    return draft.model_copy(update={"mapping": _apply(remedy, form, draft.mapping, described), "nbi": remedy.nbi})


def _apply(remedy: Remedy, form: FormFields, mapping: Plain, described: TableDescription) -> Plain:
    """Mapping after a remedy; one that asks for a column takes it from the form."""
    if not remedy.role:
        return remedy.mapping or {}
    text = str(form.get("column", ""))
    return changes.set_roles(mapping, described, {int(text): remedy.role}) if text.isdecimal() else mapping


async def send_mapping(request: Request) -> Response:
    """The mapping as a file; joined tables are expected beside it, under the names that they came with."""
    table = _find(request)
    text = await run_in_threadpool(_write_mapping, request.app.state.workspace, table)
    headers = {"Content-Disposition": 'attachment; filename="mapping.toml"', "Cache-Control": "no-store"}
    return Response(text, media_type="application/toml", headers=headers)


def _write_mapping(workspace: Workspace, table: StoredTable) -> str:
    names = {str(one.file): one.draft.name for one in workspace.tables()}
    mapping = dict(table.options.mapping or {})
    if "join" in mapping:
        mapping["join"] = [
            join | {"file": names.get(join["file"], Path(join["file"]).name)} for join in mapping["join"]
        ]
    return format_mapping(mapping)


ROUTES: list[Route] = [
    Route("/tables/{table}", show_reading),
    Route("/tables/{table}", change_reading, methods=["POST"]),
    Route("/tables/{table}/checks", show_checks),
    Route("/tables/{table}/mapping.toml", send_mapping),
]
