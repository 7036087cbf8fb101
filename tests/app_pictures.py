"""Pictures of the page in docs/figures: ``python tests/app_pictures.py TABLE`` clicks through it with Chromium.

TABLE is Ontario's bridge_data.csv (docs/data.md): an index, cut into ratings on the page.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
WIDTH, HEIGHT = 1280, 900
LONG = 120_000  # milliseconds


def click_through(page: Any, address: str, table: str) -> None:
    page.goto(address)
    page.wait_for_load_state("load")
    folder = page.locator("code").filter(has_text="workspace")
    folder.evaluate("node => { node.textContent = 'rekka-workspace' }")  # not the folder of this machine
    page.screenshot(path=FIGURES / "app-start.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": 600})
    page.set_input_files("input[type=file]", table)  # a chosen file is opened at once
    page.get_by_label("Limits of the bands").fill("85, 75, 70, 60")
    page.get_by_label("Values that mean").fill("0")
    page.get_by_role("button", name="Use these limits").click()
    page.get_by_text("Ready").wait_for()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=FIGURES / "app-reading.png")
    page.get_by_role("link", name=re.compile("Next")).click()
    page.get_by_role("button", name="Start the computation").click()
    page.get_by_role("link", name="What if").click()
    page.get_by_role("button", name="Mark").first.click()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2000)
    page.screenshot(
        path=FIGURES / "app-what-if.png", full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": 1600}
    )


def draw(table: str) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        command = [sys.executable, "-u", "-c", "from rekka.cli import main; main()"]
        where = ["app", "--workspace", str(Path(folder) / "workspace"), "--no-open"]
        with subprocess.Popen([*command, *where], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            said = server.stdout.readline()
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.set_default_timeout(LONG)
            try:
                click_through(page, re.search(r"http://\S+", said)[0], table)
            finally:
                browser.close()
                server.terminate()


if __name__ == "__main__":
    draw(*sys.argv[1:])
