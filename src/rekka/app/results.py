"""The report, live: search, threshold and horizon, what if, downloads."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
