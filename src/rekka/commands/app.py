"""``rekka app``: the local page, in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rekka.core.documentation import find_documentation
from rekka.core.errors import BadOption
from rekka.core.terminal import new_console
from rekka.report.terminal.parts import print_line

WORKSPACE = Path("rekka-workspace")
NEEDED = ("starlette", "uvicorn", "python_multipart")  # of the extra app


def app(
    workspace: Annotated[
        Path, typer.Option("--workspace", metavar="FOLDER", help="Where tables and runs are kept.")
    ] = WORKSPACE,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the browser, or only print the address.")
    ] = True,
) -> None:
    """Open a page in the browser: drop a table, see how it was read, get the report, ask what if.

    The page is served by this machine to this machine alone, and sends nothing anywhere. Tables and runs are kept
    in the workspace; tables and run folders that are put into it can be opened, too. Ctrl-C stops the page; a
    computation that is stopped with it can be resumed.

    For example:

      rekka app

      rekka app --workspace bridges --no-open
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        names, them = ", ".join(missing).replace("_", "-"), "is" if len(missing) == 1 else "are"
        source = "" if find_documentation().markdown is None else ", or in the folder of the source: make app"
        raise BadOption(
            f"rekka app needs {names}, which {them} not installed. Install with: pip install 'rekka[app]'{source}",
            missing=missing,
        )
    from rekka.app.server import serve

    def on_ready(address: str) -> None:
        console = new_console()
        print_line(console, f"The page is at {address}")
        print_line(console, f"Tables and runs are kept in {workspace}. Ctrl-C stops the page.")

    serve(workspace, port=port, on_ready=on_ready, open_browser=open_browser)
