"""What several files of commands share."""

from typing import Any

import pytest

from rekka.report import report as report_module


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the test of fit out, which takes most of a command's time, and draw few networks of a backtest.

    ``test_fit_test.py`` and ``test_backtest.py`` are about them.
    """
    monkeypatch.setattr("rekka.fleet.backtest_scores.NETWORKS", 200)
    for module in ("estimator", "fleet.backtest_scores", "study.study"):
        monkeypatch.setattr(f"rekka.{module}.check_fit", lambda *_, **__: None)


@pytest.fixture(scope="module")
def made_reports() -> dict[str | None, Any]:
    """Reports by their title."""
    return {}


@pytest.fixture
def cheap_reports(made_reports: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no pictures, and make the report of a run once: for tests of which files are written, and how."""
    for place in ("page.draw_svg", "report.draw_svg_file", "charts.models.draw_svg_file"):
        monkeypatch.setattr(f"rekka.report.{place}", lambda *_: "<svg></svg>")
    monkeypatch.setattr("rekka.report.page.bundle_script", lambda: "")
    monkeypatch.setattr("rekka.report.report.draw_png", lambda spec: b"\x89PNG" + b"x" * 40)
    monkeypatch.setattr("rekka.report.report.draw_pdf", lambda spec: b"%PDF ")
    make = report_module.make_report

    def make_once(study: Any, **options: Any) -> Any:
        title = options.get("title")
        if title not in made_reports:
            made_reports[title] = make(study, **options)
        return made_reports[title]

    monkeypatch.setattr(report_module, "make_report", make_once)
