"""Documents that the tests of the page share: names that would do harm, and very many cases."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rekka.report.document import Document
from rekka.report.views import FigureView
from sharing import share

MANY, MOST_DRAWN = 16, 12  # cases, and how many have their pictures on the page; more of them is more of the same
CHOSEN, SHOWN, NONE = "Cross girder", "Longitudinal girder", "Slope protection"
HOSTILE = {
    CHOSEN: '<script>window.harmed = 1; alert(1)</script>"><img src=x onerror="window.harmed = 1">',
    SHOWN: "{{ 7 * 7 }} </script> ]]> <!-- \u05d2\u05e9\u05e8 \u05e8\u05d0\u05e9\u05d9 \u202e\nsecond line & '\u2028",
    NONE: "n" * 300,
}


def share_document(name: str, make: Callable[[], Document]) -> Document:
    """A document that one worker makes for all."""
    return Document.from_json(share(f"{name}.json", lambda: make().to_json()))


def rename_cases(document: Document, names: dict[str, str]) -> Document:
    """The same document with other names, in every part and sentence."""
    text = document.to_json()
    for old, new in names.items():
        text = text.replace(old, json.dumps(new)[1:-1])
    return Document.from_json(text)


def repeat_case(document: Document, case: str, times: int) -> Document:
    """A document with one case, so many times."""
    parts = json.loads(document.to_json())
    for name, value in parts.items():
        if isinstance(value, list) and value and "case" in value[0]:
            parts[name] = _repeat(value, case, times)
    parts["stability"]["shares"] = _repeat(parts["stability"]["shares"], case, times)
    parts["audit"]["findings"] = _repeat(parts["audit"]["findings"], case, times)
    return Document.from_json(json.dumps(parts))


def _repeat(rows: list[dict[str, Any]], case: str, times: int) -> list[dict[str, Any]]:
    own = [row for row in rows if row["case"] == case]
    return [row | {"case": f"{case} {number}"} for number in range(1, times + 1) for row in own]


def repeat_figures(figures: tuple[FigureView, ...], case: str, times: int) -> tuple[FigureView, ...]:
    """The figures of one case, so many times: to draw them anew takes long."""
    general = tuple(figure for figure in figures if figure.case is None)
    own = [figure for figure in figures if figure.case == case]
    return general + tuple(
        replace(figure, name=f"{figure.name}-{number}", case=f"{case} {number}")
        for number in range(1, times + 1)
        for figure in own
        if number <= MOST_DRAWN or not figure.name.startswith("profiles")
    )


def uncertify(document: Document) -> Document:
    """The same document as if every fit were where its optimizer stopped: marked so, and without intervals."""
    parts = json.loads(document.to_json())
    parts["models"] = [_leave_ends(model) for model in parts["models"]]
    parts["network"] = _leave_ends(parts["network"]) | {"certified": False, "intervals": False}
    return Document.from_json(json.dumps(parts))


def _leave_ends(value: Any) -> Any:
    """No number under a name that ends in low or high, nothing certified, no test of fit."""
    if isinstance(value, dict):
        found = {name: None if name == "fit_test" else _leave_ends(inner) for name, inner in value.items()}
        ends = {name: _blank(inner) for name, inner in value.items() if name.endswith(("low", "high"))}
        return found | ends | ({"certified": False} if "certified" in value else {})
    return [_leave_ends(inner) for inner in value] if isinstance(value, list) else value


def _blank(value: Any) -> Any:
    return [_blank(inner) for inner in value] if isinstance(value, list) else None
