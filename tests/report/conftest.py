"""A small study with everything in it, as documents and as pages; one browser for all tests of the page."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rekka
from rekka.report.document import Document
from rekka.report.page import render_page
from rekka.report.summary import summarize

CHOSEN, SHOWN, NONE = "Cross girder", "Longitudinal girder", "Slope protection"
HOSTILE = {
    CHOSEN: '<script>window.harmed = 1; alert(1)</script>"><img src=x onerror="window.harmed = 1">',
    SHOWN: "{{ 7 * 7 }} </script> ]]> <!-- \u05d2\u05e9\u05e8 \u05e8\u05d0\u05e9\u05d9 \u202e\nsecond line & '\u2028",
    NONE: "n" * 300,
}


@pytest.fixture(scope="session")
def document() -> Document:
    """Three cases under both presets: a choice, a default that is turned down, a case that no fit suits."""
    study = rekka.compare(
        cases=[CHOSEN, SHOWN, NONE], preset="both", methods=["zscore", "boxcox"], guard={"resamples": 4}
    )
    refits = rekka.stability(study, resamples=2, kinds=["bootstrap"])
    return summarize(study, calibrations=study.calibrations(), stability=refits, title="a district's bridges")


@pytest.fixture(scope="session")
def hostile(document: Document) -> Document:
    return rename_cases(document, HOSTILE)


@pytest.fixture(scope="session")
def page(document: Document) -> str:
    return render_page(document)


@pytest.fixture(scope="session")
def page_file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the page go."""
    folder = Path(os.environ.get("REKKA_ARTIFACTS") or tmp_path_factory.mktemp("artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, started once."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


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
