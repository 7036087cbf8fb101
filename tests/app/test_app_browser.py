"""From a table to a run in Chromium, with and without scripts; progress, two tabs, keyboard, screen readers."""

import re
import sys

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

import rekka
from rekka.app import jobs
from rekka.app.progress import read_progress
from rekka.app.workspace import Workspace

OF_TABLE = re.compile(r"/tables/\w+$")
PHONE = 390  # pixels
PATIENCE = 120_000  # milliseconds
# A worker that is at its tenth trial of forty until it is told to end.
AT_WORK = """
import sys, time
from datetime import timedelta
from pathlib import Path
from rekka.app.progress import Progress, now, write_progress
begun = now() - timedelta(seconds=20)
progress = Progress(steps=("study", "forecast", "report"), stage="Trials", item=("Deck", "zscore"), done=10, total=40,
                    since=begun, at=now())
write_progress(Path(sys.argv[1]), progress)
try:
    time.sleep(600)
except KeyboardInterrupt:
    write_progress(Path(sys.argv[1]), progress.model_copy(update={"outcome": "stopped"}))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory, serve):
    """A server whose workers do nothing: its workspace and its access."""
    workspace = Workspace(tmp_path_factory.mktemp("served") / "workspace")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jobs, "WORKER", [sys.executable, "-c", AT_WORK])
        with serve(workspace) as access:
            yield workspace, access


@pytest.fixture
def visit(chromium, served):
    """Open the page in a browser of its own, which reaches nothing else; its console is to be silent.

    The page of a table, to which an upload leads, has tests of its own.
    """
    _, access = served
    base, opened, said = f"http://127.0.0.1:{access.port}", [], []

    def follow(page):
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda line: OF_TABLE.search(line.location["url"]) or said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.route(
            "**/*", lambda route: route.continue_() if route.request.url.startswith(base) else route.abort()
        )
        return page

    def go(**options):
        context = chromium.new_context(**{"viewport": {"width": 1000, "height": 900}} | options)
        opened.append(context)
        page = follow(context.new_page())
        page.goto(access.address)
        return page

    go.base, go.follow, go.said = base, follow, said
    yield go
    for context in opened:
        context.close()
    assert said == []


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    found = tmp_path_factory.mktemp("file") / "inspections.csv"
    rekka.simulate_inventory(20, preset="plain").inspections.filter(case="Main girder").write_csv(found)
    return found


@pytest.fixture
def table(served, file):
    """A table of the workspace."""
    workspace, _ = served
    (workspace.folder / "inspections.csv").write_bytes(file.read_bytes())
    return workspace.open_table("inspections.csv")


@pytest.fixture(autouse=True)
def _clear(served):
    """Each test begins without runs."""
    workspace, _ = served
    yield
    assert workspace.runs() == []


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_from_a_table_to_a_run_that_is_cancelled_resumed_and_deleted(visit, served, table, scripts):
    workspace, _ = served
    page = visit(java_script_enabled=scripts)
    page.goto(f"{visit.base}/tables/{table.id}/plan")
    page.get_by_text("Thorough", exact=True).click()
    page.select_option("#threshold", "c")
    page.fill("#years", "45")
    if not scripts:
        page.get_by_role("button", name="Show the command line").click()
    page.locator("#command-text", has_text="--years 45 --threshold c").wait_for()
    assert "--models auto" in page.inner_text("#command-text")
    page.get_by_role("button", name="Start the computation").click()
    page.get_by_text("Fitting and scoring, trials: 10 of 40").wait_for()
    page.get_by_text("About 1 min left").wait_for()
    assert "z-score" in page.inner_text("#progress")
    [run] = workspace.runs()
    assert (run.job.ask.threshold, run.job.ask.years, run.job.ask.models) == ("c", 45, "auto")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("10 of 40").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("inspections.csv was deleted").wait_for()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_table_is_uploaded(visit, served, file, scripts):
    workspace, _ = served
    page = visit(java_script_enabled=scripts)
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/tables")):
        page.set_input_files("#table", file)
        if not scripts:
            page.get_by_role("button", name="Open the table").click()
    page.wait_for_url("**/tables/*")
    table = workspace.table(page.url.rpartition("/")[2])
    assert table.file.read_bytes() == file.read_bytes()
    assert table.draft.name == "inspections.csv"


def test_a_table_is_dropped(visit, served, file):
    workspace, _ = served
    before = {one.id for one in workspace.tables()}
    page = visit()
    given = page.evaluate_handle(
        """(text) => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.csv"));
            return data;
        }""",
        file.read_text(),
    )
    page.dispatch_event("[data-drop]", "dragover", {"dataTransfer": given})
    assert "over" in page.locator("[data-drop]").get_attribute("class").split()
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": given})
    page.wait_for_url("**/tables/*")
    [new] = [one for one in workspace.tables() if one.id not in before]
    assert new.draft.name == "dropped.csv"


def test_what_is_too_large_is_said_before_it_is_sent(visit):
    page = visit()
    page.evaluate("document.querySelector('[data-drop]').dataset.most = '3'")
    page.set_input_files("#table", {"name": "a.csv", "mimeType": "text/csv", "buffer": b"1,2,3"})
    page.get_by_text("too large for this page").wait_for()
    assert page.url == f"{visit.base}/"


def start(page, base, table):
    page.goto(f"{base}/tables/{table.id}/plan")
    page.get_by_role("button", name="Start the computation").click()
    page.get_by_text("10 of 40").wait_for()


def delete(page):
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/runs")


def test_two_tabs_show_the_same_run_and_closing_one_stops_nothing(visit, served, table):
    workspace, _ = served
    page = visit()
    start(page, visit.base, table)
    other = visit.follow(page.context.new_page())
    other.goto(page.url)
    other.get_by_text("10 of 40").wait_for()
    page.close()
    [run] = workspace.runs()
    assert (run.state, read_progress(run.folder).outcome) == ("working", "")
    delete(other)


def test_a_run_that_waits_says_so_and_the_keyboard_stays_in_the_list(visit, table):
    page = visit()
    start(page, visit.base, table)
    page.get_by_role("link", name="2. What to compute").click()
    page.get_by_role("button", name="Start the computation").click()
    page.get_by_text("Runs before this one: 1").wait_for()
    assert page.locator(".chip", has_text="waiting").is_visible()
    page.goto(f"{visit.base}/runs")
    assert page.locator(".chip").all_inner_texts() == ["waiting", "working"]
    assert all(chip.is_visible() for chip in page.locator(".chip").all())
    page.locator("button").last.focus()
    with page.expect_response(lambda answer: "seen=" in answer.url and answer.status == 204):
        pass  # nothing new
    assert page.evaluate("document.activeElement === [...document.querySelectorAll('button')].at(-1)")
    page.on("dialog", lambda dialog: dialog.accept())
    for _ in range(2):
        page.get_by_role("button", name="Delete").first.click()
        page.get_by_text("inspections.csv was deleted").wait_for()


def test_a_server_that_is_gone_is_said_until_it_answers_again(visit, table):
    page = visit()
    start(page, visit.base, table)
    page.route("**/*seen=*", lambda route: route.abort())
    page.get_by_text("does not answer").wait_for()
    page.unroute("**/*seen=*")
    page.get_by_text("does not answer").wait_for(state="detached")
    delete(page)
    assert visit.said
    visit.said.clear()  # the browser complains, too


def test_the_keyboard_stays_where_it_is_while_progress_is_shown(visit, table):
    page = visit()
    start(page, visit.base, table)
    page.focus("#cancel")
    with page.expect_response(lambda answer: "seen=" in answer.url and answer.status == 204):
        pass  # nothing new
    assert page.evaluate("document.activeElement.id") == "cancel"
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Resume").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/runs")


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_page_is_for_all_readers_and_fits_a_phone(visit, served, table, lang, colours):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    workspace, _ = served
    page = visit(locale=lang, color_scheme=colours)
    page.goto(f"{visit.base}/tables/{table.id}/plan")
    page.locator("button.primary").click()
    page.locator("#cancel").wait_for()
    [run] = workspace.runs()
    for path in ("/", f"/tables/{table.id}/plan", f"/runs/{run.id}", "/runs"):
        page.goto(f"{visit.base}{path}")
        for width in (1000, PHONE):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            found = axe.run(page).response["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], path
        assert page.evaluate("document.documentElement.lang") == lang
    page.goto(f"{visit.base}/runs/{run.id}")
    page.locator("#cancel").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#progress .danger").click()
    page.wait_for_url("**/runs")
