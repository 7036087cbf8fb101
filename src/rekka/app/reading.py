"""How a table is read: columns, ratings, dates, with what follows from them."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: list[Route] = []
