"""Answers of the local page with a table of 50,000 rows, beside rendering alone: ``python -m benchmarks.app``.

A table is simulated, uploaded, read and compared; then each page is asked for again and again, as a browser does
that has been there before. Beside the time of an answer stand the time that its templates take in it, and the time
of the first answer, for which something may have to be read. The memory is that of a server that nothing was asked
of yet. Stored in ``results/app.json``. Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import polars as pl
from jinja2 import Template
from rich.console import Console
from rich.table import Table
from starlette.testclient import TestClient

import rekka
from benchmarks import configuration
from rekka.app.access import Access
from rekka.app.forecasts import find_view
from rekka.app.server import create_app
from rekka.app.workspace import Workspace

ROWS, BRIDGES, REPEATS, PORT = 50_000, 3_500, 15, 8765
MOST_MS, MOST_MB = 200.0, 300.0
RESULT = Path(__file__).with_name("results") / "app.json"


class Rendering:
    """Seconds that templates took."""

    seconds = 0.0


@contextmanager
def watch_templates() -> Iterator[type[Rendering]]:
    """Add up the time of every template that is rendered."""
    before = Template.render

    def render(self: Template, *given: object, **values: object) -> str:
        begin = perf_counter()
        try:
            return before(self, *given, **values)
        finally:
            Rendering.seconds += perf_counter() - begin

    Template.render = render  # type: ignore[method-assign]
    try:
        yield Rendering
    finally:
        Template.render = before  # type: ignore[method-assign]


def simulate(folder: Path) -> Path:
    """A table of inspections with as many rows as asked for."""
    inventory = rekka.simulate_inventory(BRIDGES, preset="plain")
    file = folder / "inspections.csv"
    frame = inventory.inspections.join(inventory.inventory, on="bridge_id")
    assert len(frame) >= ROWS, len(frame)
    frame.head(ROWS).with_columns(pl.col("date").cast(pl.String)).write_csv(file)
    return file


def measure_pages(folder: Path) -> list[dict[str, object]]:
    """Milliseconds of each page, and of its templates: medians."""
    workspace, access = Workspace(folder / "workspace"), Access(PORT)
    table = simulate(workspace.folder)
    run = workspace.folder / "run"
    study = rekka.compare(table, out=run, guard={"resamples": 2})
    rekka.forecast_inventory(run, table, out=run / "forecast")
    rekka.write_report(study, run / "report.html", calibrate=False)
    opened, listed = workspace.open_run("run"), workspace.open_table("inspections.csv")
    ours = f"http://127.0.0.1:{PORT}"
    client = TestClient(create_app(workspace, access), base_url=ours)
    client.get("/", params={"token": access.token})
    results = f"/runs/{opened.id}"
    marks = {"form_token": access.form, "action": "worst", "number": "10"}
    marked = client.post(f"{results}/what-if", data=marks, headers={"Origin": ours}, follow_redirects=False)
    assert marked.status_code == 303, marked.status_code
    bridge = find_view(opened.study).details["bridge_id"][0]
    pages = {
        "start": "/",
        "how the table was read": f"/tables/{listed.id}",
        "what to compute": f"/tables/{listed.id}/plan",
        "runs": "/runs",
        "results": f"{results}/results",
        "results, another threshold": f"{results}/results?threshold=3&years=20",
        "search": f"{results}/results?query={bridge}",
        "member": f"{results}/member?bridge={bridge}",
        "what if, ten repaired": f"{results}/what-if",
    }
    found = []
    with watch_templates() as rendering:
        for name, address in pages.items():
            begin = perf_counter()
            answer = client.get(address)  # what is read once is kept
            first = perf_counter() - begin
            assert answer.status_code == 200, (name, answer.status_code)
            client.get(address)
            answers, templates = [], []
            for _ in range(REPEATS):
                rendering.seconds, begin = 0.0, perf_counter()
                client.get(address)
                answers.append(perf_counter() - begin)
                templates.append(rendering.seconds)
            found.append(
                {"page": name, "ms": 1000 * median(answers), "templates_ms": 1000 * median(templates),
                 "first_ms": 1000 * first, "bytes": len(answer.content)}
            )  # fmt: skip
    return found


def measure_memory(folder: Path) -> float:
    """Megabytes of a server of its own that waits."""
    command = [sys.executable, "-u", "-c", "from rekka.cli import main; main()", "app", "--no-open"]
    with subprocess.Popen(
        [*command, "--workspace", str(folder / "idle")], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        sleep(3)
        status = Path(f"/proc/{server.pid}/status").read_text()
        server.terminate()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    return int(resident[1]) / 1000


def main() -> int:
    """Measure, store and print."""
    described = configuration.describe(with_msm=False)
    with tempfile.TemporaryDirectory() as folder:
        memory = measure_memory(Path(folder))
        pages = measure_pages(Path(folder))
    stored = {"configuration": described, "rows": ROWS, "idle_megabytes": memory, "pages": pages}
    RESULT.write_text(json.dumps(stored, indent=1) + "\n")
    shown = Table("page", "answer, ms", "templates, ms", "answer / templates", "first, ms", "kB")
    for one in pages:
        ms, own = float(str(one["ms"])), float(str(one["templates_ms"]))
        shown.add_row(
            str(one["page"]),
            f"{ms:.0f}",
            f"{own:.0f}",
            f"{ms / own:.1f}",
            f"{float(str(one['first_ms'])):.0f}",
            f"{int(str(one['bytes'])) / 1000:.0f}",
        )
    console = Console()
    console.print(shown)
    console.print(f"memory of a server that waits: {memory:.0f} MB (aim: below {MOST_MB:.0f})")
    slow = [one["page"] for one in pages if float(str(one["ms"])) >= MOST_MS]
    for page in slow:
        console.print(f"NOT MET: {page} takes {MOST_MS:.0f} ms or more")
    return int(bool(slow) or memory >= MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
