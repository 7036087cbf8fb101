"""The server: an application for one workspace, on this machine alone."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module, resources
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from rekka.app import plan, start
from rekka.app.access import HOST, Access
from rekka.app.jobs import JobQueue
from rekka.app.pages import NotThere, choose_language, show_error
from rekka.app.security import AccessGuard
from rekka.app.workspace import Workspace
from rekka.core.errors import BadOption, RekkaError
from rekka.core.folders import hold
from rekka.report.colours import STYLE, write_style

MOST_UPLOAD = 1_000_000_000  # bytes
PATIENCE = 5  # seconds that answers have to end when the server is stopped
LATER = ("rekka.app.reading", "rekka.app.results", "rekka.app.comparison", "rekka.app.assets")
STATIC = {"app.css": "text/css", "app.js": "text/javascript", "htmx.js": "text/javascript"}


async def send_static(request: Request) -> Response:
    """A style or script of the page."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise NotThere(f"There is no {name}.")
    text = (resources.files("rekka.app") / "static" / name).read_bytes()
    return Response(text, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


async def send_style(_: Request) -> Response:
    """The style of the report, which our pages have too."""
    return Response(write_style(), media_type="text/css", headers={"Cache-Control": "no-cache"})


ROUTES = [
    Route("/assets/app/{name}", send_static),
    Route(f"/assets/report/{STYLE}", send_style),
    Route("/language", choose_language, methods=["POST"]),
]


class LaterPages:
    """Pages with heavy modules: each is loaded when an address is asked for that none before it has."""

    def __init__(self, app: Starlette) -> None:
        self._router, self._waiting, self._lock = app.router, list(LATER), asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that no page was found for yet."""
        async with self._lock:
            while self._waiting and not self._finds(scope):
                module = await run_in_threadpool(import_module, self._waiting[0])
                self._router.routes.extend(module.ROUTES)
                self._waiting.pop(0)
        await (self._router if self._finds(scope) else self._router.not_found)(scope, receive, send)

    def _finds(self, scope: Scope) -> bool:
        return any(route.matches(scope)[0] is not Match.NONE for route in self._router.routes)


def create_app(workspace: Workspace, access: Access, *, most_upload: int = MOST_UPLOAD) -> Starlette:
    """The application of a workspace; ``access`` says who may ask, and under which port."""
    queue = JobQueue(workspace)

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(queue.start)
        yield
        await run_in_threadpool(queue.close)

    app = Starlette(
        lifespan=live,
        routes=[*ROUTES, *start.ROUTES, *plan.ROUTES],
        exception_handlers=dict.fromkeys((HTTPException, RekkaError, Exception), show_error),
    )
    app.router.default = LaterPages(app)
    app.state.workspace, app.state.access, app.state.queue = workspace, access, queue
    app.state.most_upload = most_upload
    app.middleware_stack = AccessGuard(app.build_middleware_stack(), access)  # around the pages of errors, too
    return app


def serve(folder: Path, *, port: int = 0, on_ready: Callable[[str], None], open_browser: bool = True) -> None:
    """Serve a workspace until it is stopped; ``on_ready`` is told the address."""
    workspace = Workspace(folder)
    with listen(port) as listening, hold(workspace.folder):
        access = Access(listening.getsockname()[1])
        app = create_app(workspace, access)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=PATIENCE,
        )
        on_ready(access.address)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=[access.address], daemon=True).start()
        uvicorn.Server(config).run(sockets=[listening])


def listen(port: int) -> socket.socket:
    """A socket of this machine alone; 0 takes a free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let another program take the port over
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen()  # who comes before the server is ready waits
    except OSError as error:
        found.close()
        raise BadOption(
            f"Port {port} cannot be used: {error.strerror}. Leave --port out, or give another.", option="port"
        ) from None
    return found
