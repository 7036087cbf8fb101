"""docs/figures/report.png, the README's picture: ``python tests/report_picture.py RUN`` draws it with Chromium.

RUN is the folder of a demo's study, such as rekka-demo/study.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import rekka

PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "report.png"
WIDTH, HEIGHT = 1280, 1000


def draw(run: str) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file, _ = rekka.make_report(run).write(Path(folder) / "report.html")
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_load_state("load")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    draw(sys.argv[1])
