"""Scripts of the report's page, served beside it."""

from __future__ import annotations

from functools import cache

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app.workspace import NotThere
from rekka.report.page import list_assets

_list_assets = cache(list_assets)  # bundling takes a second


async def send_script(request: Request) -> Response:
    """A script of the report."""
    name = request.path_params["name"]
    code = (await run_in_threadpool(_list_assets)).get(name)
    if code is None or not name.endswith(".js"):
        raise NotThere(f"There is no {name}.")
    return Response(code, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


ROUTES = [Route("/assets/report/{name}", send_script)]
