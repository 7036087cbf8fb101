"""The whole way by clicks alone, with workers that really work and a network that is blocked."""

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from rekka.app.repairs import read_marks
from rekka.app.workspace import Workspace

LONG = 600_000  # milliseconds: a busy machine is slow, not wrong

pytestmark = pytest.mark.slow


@pytest.fixture
def page(chromium, serve, tmp_path):
    """The start page of an empty workspace, in a browser that reaches nothing else."""
    workspace, said = Workspace(tmp_path / "workspace"), []
    with serve(workspace) as access:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en")
        found = context.new_page()
        found.set_default_timeout(LONG)
        found.on("console", lambda line: said.append(line.text))
        found.on("pageerror", lambda error: said.append(str(error)))
        found.route(
            "**/*",
            lambda route: route.continue_() if f"127.0.0.1:{access.port}" in route.request.url else route.abort(),
        )
        found.workspace = workspace
        found.goto(access.address)
        yield found
        context.close()
    assert said == []


def test_from_ontarios_file_to_a_what_if(page, ontario):
    page.set_input_files("#table", ontario / "bridge_data.csv")
    page.get_by_role("button", name="Higher is better").click()
    page.locator("#problem-R111-warning > summary").click()
    page.get_by_role("button", name="0: not inspected", exact=True).click()
    page.get_by_text("Ready").wait_for()
    page.get_by_role("link", name="Next").click()
    page.get_by_role("button", name="Start the computation").click()
    page.wait_for_url("**/results")
    [run] = page.workspace.runs()
    before = page.locator(".headline").inner_text()
    page.select_option("#threshold", "5")
    page.locator(".headline", has_text="rated below 68").wait_for()
    assert page.locator(".headline").inner_text() != before
    page.get_by_role("link", name="What if").click()
    page.locator("button[value=worst]").click()
    page.get_by_role("heading", name="10 marked members").wait_for()
    assert "Repairing 10 members lowers the number rated below 68" in page.locator(".headline").inner_text()
    assert len(read_marks(run.folder)) == 10
    today = page.locator("#answer table tbody tr").first.inner_text().split()
    assert float(today[3]) == 10  # the ten worst are there, and then are not
    page.get_by_role("link", name="Full report").click()
    page.locator(".live svg").first.wait_for()


def test_the_demo_is_one_click(page):
    page.get_by_role("button", name="Run the demo").click()
    page.wait_for_url("**/results")
    assert "members will be rated" in page.locator(".headline").inner_text()
    [run] = page.workspace.runs()
    assert (run.state, run.study.joinpath("report.html").is_file()) == ("done", True)
