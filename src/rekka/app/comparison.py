"""Two runs side by side."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
