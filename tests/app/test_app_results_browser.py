"""Results, what if and two runs in Chromium: by clicks alone, with and without scripts, for every reader."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from results_cases import put_run

from rekka.app.forecasts import find_view
from rekka.app.repairs import read_marks
from rekka.app.workspace import Workspace

PHONE = 390  # pixels
PATIENCE = 120_000  # milliseconds


@pytest.fixture(scope="module")
def served(tmp_path_factory, serve):
    """A server with two runs: its workspace, its access, the runs."""
    workspace = Workspace(tmp_path_factory.mktemp("live") / "workspace")
    runs = [put_run(workspace, name) for name in ("one", "two")]
    with serve(workspace) as access:
        yield access, runs


@pytest.fixture
def visit(chromium, served):
    """Open a page of the first run in a browser of its own; what its console says is collected."""
    access, runs = served
    opened, said = [], []

    def go(page="results", **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        opened.append(context)
        view = context.new_page()
        view.set_default_timeout(PATIENCE)
        view.on("console", lambda line: said.append(line.text))
        view.on("pageerror", lambda error: said.append(str(error)))
        base = f"http://127.0.0.1:{access.port}"
        view.route(
            "**/*", lambda route: route.continue_() if route.request.url.startswith(base) else route.abort()
        )
        view.goto(access.address)
        view.goto(f"{base}/runs/{runs[0].id}/{page}" if not page.startswith("/") else f"{base}{page}")
        return view

    yield go
    for context in opened:
        context.close()
    assert said == []


@pytest.fixture
def first(served):
    run = served[1][0]
    (run.folder / "repairs.csv").unlink(missing_ok=True)
    return run


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_from_results_to_repairs_by_clicks(visit, first, scripts):
    page = visit(java_script_enabled=scripts)
    page.select_option("#threshold", "5")
    page.fill("#years", "15")
    if not scripts:
        page.get_by_role("button", name="Show").click()
    page.locator(".headline", has_text="rated e").wait_for()
    row = find_view(first.study, 5, 15).details.filter(tab=1).row(0, named=True)
    page.fill("#query", f"{row['bridge_id']} {row['case']}")
    if not scripts:
        page.get_by_role("button", name="Search").click()
    page.locator("#members tbody tr", has_text=row["bridge_id"]).first.wait_for()
    page.locator(f"#members a[href*='member={row['member']}']").first.click()
    page.get_by_role("button", name="Mark as repaired").click()
    page.get_by_role("heading", name="1 marked member").wait_for()
    assert [mark.names for mark in read_marks(first.folder)] == [(row["bridge_id"], row["case"], row["member"])]
    assert "rated e" in page.locator(".headline").inner_text()
    page.fill("#number", "4")
    page.locator("button[value=worst]").click()
    page.get_by_role("heading", name="marked members").wait_for()
    page.locator("select[name=rating-0]").select_option("b")
    page.locator("input[name=age-0]").fill("2")
    page.locator("input[name=drop]").nth(1).check()
    page.get_by_role("button", name="Apply these changes").click()
    page.wait_for_load_state()
    marks = read_marks(first.folder)
    assert (marks[0].rating, marks[0].age) == ("b", "2")
    assert page.get_by_role("heading", name=f"{len(marks)} marked members").is_visible()
    with page.expect_download() as found:
        page.get_by_role("link", name="repairs.csv").click()
    assert Path(found.value.path()).read_bytes() == (first.folder / "repairs.csv").read_bytes()
    page.get_by_role("button", name="Remove all marks").click()
    page.get_by_text("No member is marked yet.").wait_for()


def test_a_forecast_that_takes_long_is_said_to_be_computed(visit, first):
    page = visit()
    note = page.get_by_text("is being computed")
    assert not note.is_visible()
    waiting = []
    page.route("**/results?threshold=3*", lambda route: waiting.append(route))
    page.select_option("#threshold", "3")
    note.wait_for()
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    page.locator(".headline", has_text="rated c").wait_for()
    assert not note.is_visible()


def test_the_back_button_leads_to_what_was_seen(visit, first):
    page = visit()
    before = page.locator(".headline").inner_text()
    page.select_option("#threshold", "2")
    page.locator(".headline", has_text="rated b").wait_for()
    page.go_back()
    page.locator(".headline", has_text=before).wait_for()


def test_the_report_answers_under_the_policy_of_the_page(visit, first):
    page = visit("report")
    page.locator(".live svg").first.wait_for()
    page.get_by_role("button", name="At the threshold").or_(
        page.get_by_role("tab", name="At the threshold")
    ).wait_for()
    page.select_option("#case", index=1)
    page.locator("#member-list tbody button").first.click()
    page.locator("#card").wait_for()


def test_two_runs_are_chosen_and_compared(visit, served):
    page = visit("/comparison")
    page.select_option("#first", index=1)
    page.select_option("#second", index=2)
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="From rating to rating").wait_for()


def list_pages(runs):
    bridge = find_view(runs[0].study).details["bridge_id"][0]
    return (
        "results",
        f"member?bridge={bridge}",
        f"what-if?query={bridge}",
        f"/comparison?first={runs[0].id}&second={runs[1].id}",
    )


@pytest.mark.parametrize("look", ["light", "dark", "phone", "ja"])
def test_pages_are_accessible_and_narrow_enough(visit, served, first, look, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    options = {
        "dark": {"color_scheme": "dark"},
        "ja": {"locale": "ja-JP"},
        "phone": {"viewport": {"width": PHONE, "height": 844}},
    }
    for address in list_pages(served[1]):
        page = visit(address, **options.get(look, {}))
        if address.startswith("what-if"):
            page.locator("button[value=worst]").click()
            page.locator("#marks-title").wait_for()
            page.wait_for_load_state()  # with its style sheet
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= page.viewport_size["width"], address
        assert page.locator("html").get_attribute("lang") == ("ja" if look == "ja" else "en")
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
