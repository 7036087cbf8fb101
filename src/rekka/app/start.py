"""The start page: drop a table, open what lies in the workspace, look at the last runs."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app.pages import redirect, render, words_of
from rekka.app.plan import describe_run
from rekka.app.uploads import receive_tables
from rekka.app.workspace import SUFFIXES, TABLES, Workspace

LAST = 5  # runs on the start page


async def show_start(request: Request) -> Response:
    """All tables, the last runs, and what lies in the workspace besides."""
    workspace: Workspace = request.app.state.workspace
    tables, runs, found = await run_in_threadpool(
        lambda: (workspace.tables(), workspace.runs(), workspace.found())
    )
    opened = {one.draft.place for one in tables} | {one.job.place for one in runs}
    return render(
        request,
        "start.html",
        tables=tables,
        runs=runs[:LAST],
        describe=lambda run: describe_run(run, words_of(request)),
        more_runs=len(runs) > LAST,
        found=[one for one in found if one.place not in opened],
        folder=str(workspace.folder),
        suffixes=",".join(SUFFIXES),
        most=request.app.state.most_upload,
    )


async def upload(request: Request) -> Response:
    """Keep uploaded tables, and go to the first, or to the list of several."""
    tables = await receive_tables(request, request.app.state.most_upload)
    if not tables:
        return redirect(request, "/", "app.start.no_file", "bad")
    if len(tables) > 1:
        return redirect(request, "/", "app.start.uploaded", "good", n=len(tables))
    return redirect(request, f"/tables/{tables[0].id}")


async def open_found(request: Request) -> Response:
    """Open a table or run folder that lies in the workspace: only what the start page lists."""
    workspace: Workspace = request.app.state.workspace
    form = await request.form()
    found = await run_in_threadpool(workspace.find, str(form.get("place")), str(form.get("kind")))
    if found.kind == "run":
        run = await run_in_threadpool(workspace.open_run, found.place)
        return redirect(request, f"/runs/{run.id}")
    return redirect(request, f"/tables/{workspace.open_table(found.place).id}")


async def delete_table(request: Request) -> Response:
    """Delete a table; one that the user put into the workspace is only taken off the list."""
    workspace: Workspace = request.app.state.workspace
    table = workspace.table(request.path_params["table"])
    users = [run.job.name for run in await run_in_threadpool(workspace.runs) if run.job.table == table.id]
    if users and table.draft.place is None:
        return redirect(request, "/", "app.start.in_use", "bad", name=table.draft.name, n=len(users))
    workspace.remove(TABLES, table.id)
    said = "app.removed" if table.draft.place else "app.deleted"
    return redirect(request, "/", said, name=table.draft.name)


ROUTES = [
    Route("/", show_start),
    Route("/tables", upload, methods=["POST"]),
    Route("/open", open_found, methods=["POST"]),
    Route("/tables/{table}/delete", delete_table, methods=["POST"]),
]
