"""Fixtures that several rooms share, and the rule that in CI nothing skips."""

import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import settings

import sharing

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
)
FEW_DRAWS = 40  # of coefficients, for the bands of a report
FEW_SETS = 19  # simulated to test a fit: 5 % is a multiple of 1/20

# An example that takes long says that the machine is busy, not that something is wrong.
settings.register_profile("rekka", deadline=None)
settings.load_profile("rekka")


# The files that take longest, which go first, so that at the end no worker has a long one to itself.
LONGEST = (
    "report/test_browser", "study/test_resume", "commands/test_cli_study", "commands/test_write_faults",
    "study/test_compare", "study/test_stability", "commands/test_cli_report", "commands/test_cli",
    "report/test_summary", "report/test_plots", "test_repository", "study/test_checks",
    "streaming/cluster/test_cluster_study", "evaluation/test_fit_test", "data/test_reading",
    "commands/test_cli_forecast", "study/test_large", "data/test_malformed", "model/test_family",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"tests/{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: some wait for a browser, or for a process that they have killed."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """What is imported by now stays: going through it again and again for garbage takes a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("REKKA_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped although REKKA_NO_SKIP is set: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """Count what is skipped while tests are collected too: a file or a folder whose module is not installed."""
    report = yield
    if report.skipped and os.environ.get("REKKA_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped although REKKA_NO_SKIP is set: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where workers of one run find what another of them has made."""
    own = tmp_path_factory.getbasetemp()
    sharing.FOLDER.append(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture(scope="session", autouse=True)
def _reports_made_quickly(_shared_folder: None) -> Iterator[None]:
    """Draw the same chart once in a run, and find the bands of a report's forecasts from few draws.

    ``test_drawing.py`` draws anew, and ``test_expectations.py`` has all draws.
    """
    import vl_convert

    from rekka.report import summarize

    make_cohort = summarize.make_cohort

    def make_small_cohort(*given: Any) -> Any:
        cohort = make_cohort(*given)
        every, kept = cohort.uncertainty, slice(1 + FEW_DRAWS)
        extra = None if every.extra is None else every.extra[kept]
        few = replace(every, coefficients=every.coefficients[kept], extra=extra)
        return replace(cohort, uncertainty=few)

    with pytest.MonkeyPatch.context() as patch:
        for name in sharing.PICTURES:
            patch.setattr(vl_convert, name, sharing.share_picture(getattr(vl_convert, name)))
        patch.setattr(summarize, "make_cohort", make_small_cohort)
        yield


@pytest.fixture(scope="session", autouse=True)
def _fits_tested_quickly() -> Iterator[None]:
    """Simulate few sets where a fit is tested for misfit; ``test_fit_test.py`` has them all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rekka.evaluation.calibration.TEST_SETS", FEW_SETS)
        yield


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of a page out, which take most of its time, where a test does not look at them."""
    monkeypatch.setattr("rekka.report.page.draw_svg", lambda spec, prefix: "<svg></svg>")


@lru_cache
def msm_is_here() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(msm)"], capture_output=True).returncode == 0


@pytest.fixture
def msm() -> str:
    if not msm_is_here():
        pytest.skip("R's package msm is not installed (Debian: r-cran-msm)")
    return "Rscript"


@pytest.fixture(scope="session")
def psor() -> pl.DataFrame:
    """Psoriatic arthritis pairs: covariates from the first visit, time in months."""
    file = SHARED / "reference" / "psor.csv"
    if not file.exists():
        pytest.skip("the shared reference data set psor.csv is not beside the repository")
    visits = pl.read_csv(file, null_values="NA").sort("ptnum", "months")
    following = {"state_2": pl.col("state").shift(-1), "next": pl.col("months").shift(-1)}
    pairs = visits.with_columns(**{name: column.over("ptnum") for name, column in following.items()})
    return pairs.drop_nulls("state_2").select(
        "ptnum",
        "ollwsdrt",
        "hieffusn",
        "state_2",
        state_1="state",
        months=pl.col("next") - pl.col("months"),
    )


@pytest.fixture(scope="session")
def ontario() -> Path:
    folder = SHARED / "data" / "ontario"
    if not folder.exists():
        pytest.skip("Ontario's bridge data is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def decks() -> pl.DataFrame:
    """Decks seen twice, a year apart. Direct moves from 1 to 5 force a high hazard of leaving 4, where all 51 stay."""
    counts = {
        (1, 1): 364, (1, 2): 36, (1, 5): 36, (2, 2): 145, (2, 3): 5, (3, 3): 77, (3, 4): 3, (4, 4): 51,
    }  # fmt: skip
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    states = pl.DataFrame(pairs, schema=["state_1", "state_2"], orient="row")
    names = pl.format("D{}", pl.int_range(pl.len()))
    return states.with_columns(bridge_id=names, case=pl.lit("Deck"), interval_years=pl.lit(1.0))


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the page go."""
    folder = Path(os.environ.get("REKKA_ARTIFACTS") or tmp_path_factory.mktemp("artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Headless Chromium; it has the event loop of its thread, so that it is closed with its file."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=program, args=list(QUIET))
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Any:
    """The browser of tests of finished pages; tests of the local page call their client so."""
    return chromium
