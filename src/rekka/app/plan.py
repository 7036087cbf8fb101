"""The choice of what is to be done with a table; its progress; the list of runs."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
