"""An operator that one file registers is fitted, compared and reported under its own name, in every language."""

import re

import numpy as np
import pytest
from study_cases import draw_rows

import rekka
from rekka.report.charts.base import FIXED, PRINT, place_of
from rekka.report.text import LANGUAGES, load_words
from rekka.scaling.operators import AffineScaling
from rekka.scaling.registry import REGISTRY, TrainingRows, register

METHODS = ("zscore", "halves", "halves+zscore")


def fit_halves(rows: TrainingRows) -> AffineScaling:
    """Twice each covariate, as far as it varies."""
    return AffineScaling(
        "halves", rows.names, rows.low, rows.high, np.zeros_like(rows.low), np.full_like(rows.low, 0.5)
    )


@pytest.fixture(scope="module")
def study():
    register("halves", fit_halves, AffineScaling)
    yield rekka.compare(draw_rows(n=60), methods=METHODS, guard={"resamples": 2})
    del REGISTRY["halves"]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_report_names_the_operator_as_it_was_registered(study, lang, tmp_path):
    files = rekka.write_report(
        study,
        tmp_path / "report.html",
        lang=lang,
        tables=tmp_path / "tables",
        markdown=tmp_path / "report.md",
        calibrate=False,
    )
    page = files["page"][0].read_text(encoding="utf-8")
    what = load_words(lang)("note.methods.registered")
    assert re.search(rf"<li>halves\W+{re.escape(what)}", page)
    assert f"halves+{load_words(lang)('method.zscore')}" in page
    assert "halves" in files["markdown"][0].read_text(encoding="utf-8")


def test_the_operator_has_the_next_colour(study):
    assert place_of("halves", METHODS) == len(FIXED)
    colours = [
        encoding["scale"]["range"]
        for panel in study.plot.tradeoff().to_dict()["concat"]
        for layer in panel["layer"]
        if (encoding := layer["encoding"].get("color", {})).get("field") == "method"
    ]
    assert any(PRINT.methods[len(FIXED)] in found for found in colours)
