"""The page as PDF, printed by a browser that is installed here: Chromium, Chrome or Edge."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from rekka.core.errors import BadOption
from rekka.core.files import write_text, write_whole
from rekka.report.charts.drawing import PICTURE_MARK, mark_picture

BROWSER = "REKKA_BROWSER"  # names one, where it is not found
BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\Microsoft\Edge\Application\msedge.exe",
)  # fmt: skip
PDF_MARK = PICTURE_MARK
LONGEST = 300  # seconds
BY_HAND = "or open the page in any browser and print it from there, to a file (Ctrl+P)"


def find_browser() -> str:
    """The program that prints: the one that REKKA_BROWSER names, else the first that is installed."""
    named = os.environ.get(BROWSER)
    if named and shutil.which(named) is None:
        raise BadOption(
            f"{BROWSER} is {named!r}, and no program has that name. Correct it, {BY_HAND}.", option="pdf"
        )
    found = named or next((one for one in BROWSERS if shutil.which(one)), None)
    if found is None:
        raise BadOption(
            f"No browser was found that can write a PDF: Chromium, Google Chrome or Microsoft Edge. Install one, "
            f"name its program in {BROWSER}, {BY_HAND}.",
            option="pdf",
        )
    return found


def print_page(html: str, file: Path) -> None:
    """Print a page as PDF."""
    browser = find_browser()
    with TemporaryDirectory(prefix="rekka-", ignore_cleanup_errors=True) as scratch:
        page, printed = Path(scratch) / "report.html", Path(scratch) / "report.pdf"
        write_text(page, html)
        asked = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
            f"--user-data-dir={Path(scratch) / 'profile'}", "--no-pdf-header-footer", "--print-to-pdf-no-header",
            f"--print-to-pdf={printed}", page.as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # Chromium's sandbox refuses to run as root
            asked.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(asked, capture_output=True, timeout=LONGEST, check=False)
            told = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        except (OSError, subprocess.TimeoutExpired) as error:
            told = [str(error)]
        if not printed.is_file():
            why = f": {told[0]}" if told else ""
            raise BadOption(f"{Path(browser).name} wrote no PDF{why}. Try again, {BY_HAND}.", option="pdf")
        write_whole(file, mark_picture(printed.read_bytes(), "pdf"))
