"""Pictures of the report in docs/figures: ``python tests/report_pictures.py DEMO ONTARIO`` draws them.

DEMO is the run folder of a demo, such as rekka-demo/study; ONTARIO that of the bridges of docs/forecasting.md, made
with ``rekka compare ... --models auto --until 2008``. A small inventory with ratings from \u2160 to \u2163 is simulated here.
Needs Chromium.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from playwright.sync_api import sync_playwright

import rekka

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
DESKTOP, PHONE, SHEET = (1280, 1000), (390, 844), (680, 1000)  # a sheet: between the margins of A4
ROMAN = {"a": "\u2160", "b": "\u2161", "c": "\u2161", "d": "\u2162", "e": "\u2163"}
COMPONENTS = {"Main girder": "主桁", "Deck slab": "床版", "Pier": "橋脚", "Bearing": "支承"}
SEED = 20260924


def simulate_roman(folder: Path) -> Path:
    """A run of an inventory rated from \u2160 to \u2163, with components as a prefecture names them."""
    tables, run = folder / "橋梁点検", folder / "run"
    rekka.write_inventory(tables, seed=SEED)
    file = tables / "inspections.csv"
    frame = pl.read_csv(file).filter(pl.col("case").is_in(list(COMPONENTS)))
    frame.with_columns(pl.col("case").replace(COMPONENTS), pl.col("state").replace(ROMAN)).write_csv(file)
    rekka.compare(tables, out=run)
    rekka.forecast_inventory(run, tables, out=run / "forecast")
    return run


def shoot(
    browser: Any,
    page_file: Path,
    name: str,
    size: tuple[int, int],
    *,
    media: str = "screen",
    full_page: bool = False,
    **options: Any,
) -> None:
    """Write a picture of the first screen, or of the full page."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.emulate_media(media=media)
    page.goto(page_file.as_uri())
    page.wait_for_load_state("load")
    page.wait_for_timeout(1000)  # until the charts of the first screen answer
    page.screenshot(path=FIGURES / f"{name}.png", full_page=full_page)
    context.close()


def draw(demo: str, ontario: str) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        place = Path(folder)
        runs = {"demo": (demo, "en"), "ontario": (ontario, "en"), "roman": (simulate_roman(place), "ja")}
        pages = {
            name: rekka.make_report(run, lang=lang).write(place / f"{name}.html")[0]
            for name, (run, lang) in runs.items()
        }
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shoot(browser, pages["demo"], "report", DESKTOP, color_scheme="light")
        shoot(browser, pages["demo"], "report-phone", PHONE, color_scheme="light")
        shoot(browser, pages["demo"], "report-print", SHEET, media="print", full_page=True)
        shoot(browser, pages["ontario"], "report-dark", DESKTOP, color_scheme="dark")
        shoot(browser, pages["roman"], "report-ja", DESKTOP, color_scheme="light", locale="ja-JP")
        browser.close()


if __name__ == "__main__":
    draw(*sys.argv[1:])
