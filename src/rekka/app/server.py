"""The server: an application for one workspace, on this machine alone."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app import comparison, plan, reading, results, start
from rekka.app.access import HOST, Access
from rekka.app.jobs import JobQueue
from rekka.app.pages import NotThere, choose_language, show_error
from rekka.app.security import AccessGuard
from rekka.app.workspace import Workspace
from rekka.core.errors import BadOption
from rekka.core.folders import hold
from rekka.report.page import list_assets

MOST_UPLOAD = 1_000_000_000  # bytes
STATIC = {"app.css": "text/css", "app.js": "text/javascript", "htmx.js": "text/javascript"}
KINDS = {".css": "text/css", ".js": "text/javascript"}


async def send_static(request: Request) -> Response:
    """A style or script of the page."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise NotThere(f"There is no {name}.")
    text = (resources.files("rekka.app") / "static" / name).read_bytes()
    return Response(text, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


async def send_report_asset(request: Request) -> Response:
    """A style or script of the report."""
    name = request.path_params["name"]
    code = (await run_in_threadpool(_load_assets)).get(name)
    if code is None:
        raise NotThere(f"There is no {name}.")
    return Response(code, media_type=KINDS[Path(name).suffix], headers={"Cache-Control": "no-cache"})


@cache
def _load_assets() -> dict[str, str]:
    return list_assets()


ROUTES = [
    Route("/assets/app/{name}", send_static),
    Route("/assets/report/{name}", send_report_asset),
    Route("/language", choose_language, methods=["POST"]),
]


def create_app(workspace: Workspace, access: Access, *, most_upload: int = MOST_UPLOAD) -> Starlette:
    """The application of a workspace; ``access`` says who may ask, and under which port."""
    modules = (start, reading, plan, results, comparison)
    queue = JobQueue(workspace)

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(queue.start)
        yield
        await run_in_threadpool(queue.close)

    app = Starlette(
        lifespan=live,
        routes=[*ROUTES, *(route for module in modules for route in module.ROUTES)],
        middleware=[Middleware(AccessGuard, access=access)],
        exception_handlers={Exception: show_error, NotThere: show_error, 404: show_error},
    )
    app.state.workspace, app.state.access, app.state.queue = workspace, access, queue
    app.state.most_upload = most_upload
    return app


def serve(folder: Path, *, port: int = 0, on_ready: Callable[[str], None], open_browser: bool = True) -> None:
    """Serve a workspace until it is stopped; ``on_ready`` is told the address."""
    with listen(port) as listening, hold(folder):
        access = Access(listening.getsockname()[1])
        app = create_app(Workspace(folder), access)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="on")
        on_ready(access.address)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=[access.address], daemon=True).start()
        uvicorn.Server(config).run(sockets=[listening])


def listen(port: int) -> socket.socket:
    """A socket of this machine alone; 0 takes a free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise BadOption(
            f"Port {port} cannot be used: {error.strerror}. Leave --port out, or give another.", option="port"
        ) from None
    return found
