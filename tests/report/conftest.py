"""A small study with everything in it, as documents and as pages; one browser for all tests of the page."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_cases import CHOSEN, HOSTILE, NONE, SHOWN, rename_cases, share_document

import rekka
from rekka.report.document import Document
from rekka.report.networks import find_network
from rekka.report.page import render_page
from rekka.report.summarize import summarize
from sharing import share

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
)


@pytest.fixture(scope="session")
def document() -> Document:
    """Three cases under both presets: a choice, a default that is turned down, a case that no fit suits."""
    return share_document("district", _summarize_district)


def _summarize_district() -> Document:
    plan = {"cases": [CHOSEN, SHOWN, NONE], "methods": ["zscore", "boxcox"], "select_on": "validation"}
    study = rekka.compare(**plan, preset="both", guard={"resamples": 2, "stable_share": 1.0, "ladder": False})
    alone = rekka.compare(
        **plan, guard={"resamples": 0, "ladder": False}
    )  # the paper's conditions take seconds to draw again
    refits = rekka.stability(alone, resamples=2, kinds=["bootstrap"], workers=1)
    return summarize(
        study,
        calibrations=study.calibrations(),
        stability=refits,
        network=find_network(study).network,
        title="a district's bridges",
    )


@pytest.fixture(scope="session")
def hostile(document: Document) -> Document:
    return rename_cases(document, HOSTILE)


@pytest.fixture(scope="session")
def hostile_page(hostile: Document) -> str:
    return share("hostile.html", lambda: render_page(hostile))


@pytest.fixture(scope="session")
def page(document: Document) -> str:
    return share("district.html", lambda: render_page(document))


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
        launched = started.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield launched
        launched.close()
