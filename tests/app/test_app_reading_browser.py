"""The page of a table in Chromium: by clicks alone, with and without scripts, by keyboard, for every reader."""

import polars as pl
import pytest

import rekka

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from rekka.app.workspace import Workspace

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 120_000  # milliseconds: a busy machine is slow, not wrong
WORSE = dict(zip("abcde", "edcba", strict=True))
WORDS = dict(zip("abcde", ("Very good", "Good", "Fair", "Poor", "Bad"), strict=True))
HOSTILE = '"><img src=x onerror=alert(1)>'
OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, .skip") &&
  one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def served(tmp_path_factory, serve):
    """A server with an empty workspace."""
    workspace = Workspace(tmp_path_factory.mktemp("live") / "workspace")
    with serve(workspace) as access:
        yield access


@pytest.fixture
def upload(chromium, served, tmp_path):
    """Open a table by the form of the start page, in a browser of its own; its console stays silent."""
    contexts, said = [], []

    def go(table, name="table.csv", **options):
        context = chromium.new_context(**{"viewport": DESKTOP, "locale": "en"} | options)
        contexts.append(context)
        window = context.new_page()
        window.set_default_timeout(PATIENCE)
        window.on("console", lambda line: said.append(line.text))
        window.on("pageerror", lambda error: said.append(str(error)))
        window.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        window.goto(served.address)
        if isinstance(table, pl.DataFrame):
            table.write_csv(tmp_path / name)
            table = tmp_path / name
        window.set_input_files("#table", table)
        if options.get("java_script_enabled", True):
            window.wait_for_url("**/tables/*")
            window.wait_for_selector(".readiness")
        else:
            window.click("button.primary")
            assert not window.get_by_text("is being checked").is_visible()  # nothing is, until it is asked for
            window.get_by_role("link", name="Check the table now").click()
        return window

    yield go
    for context in contexts:
        context.close()
    assert said == []


def settle(window):
    """Wait until what was asked for is there."""
    window.wait_for_timeout(100)
    window.locator("#reading.htmx-request").wait_for(state="detached")
    window.wait_for_selector(".readiness")


def press(window, name):
    window.get_by_role("button", name=name).first.click()
    settle(window)


@pytest.fixture(scope="module")
def piers():
    drawn = rekka.simulate_inventory(60, preset="plain", seed=3).inspections
    return drawn.filter(pl.col("case").is_in(["Pier", "Bearing"]))


@pytest.fixture(scope="module")
def upside(piers):
    return piers.with_columns(state=pl.col("state").replace_strict(WORSE))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_an_upside_down_scale_is_corrected_by_a_click(upload, upside, scripts):
    window = upload(upside, java_script_enabled=scripts)
    assert "stops the work" in window.inner_text(".readiness")
    assert window.get_by_role("link", name="Next").count() == 0
    press(window, "Turn the scale round")
    assert "Ready" in window.inner_text(".readiness")
    assert window.get_by_role("link", name="Next").get_attribute("href").endswith("/plan")


def test_a_stop_is_allowed_only_with_the_tick(upload, upside):
    window = upload(upside)
    window.get_by_role("button", name="Continue although R109").click()
    assert "stops the work" in window.inner_text(".readiness")  # the browser asks for the tick
    window.get_by_label("I have checked the direction").check()
    press(window, "Continue although R109")
    assert "Ready" in window.inner_text(".readiness")
    assert "R109 is allowed" in window.inner_text("#checks")


def test_ratings_in_words_are_put_in_order(upload, piers):
    window = upload(piers.with_columns(state=pl.col("state").replace_strict(WORDS)))
    window.get_by_role("link", name="Give each rating its place").click()
    order = list(WORDS.values())
    for place, name in enumerate(sorted(order)):
        window.select_option(f"#place-{place}", str(order.index(name) + 1))
    press(window, "Use these places")
    assert window.locator(".ratings li").all_inner_texts() == order
    assert "Ready" in window.inner_text(".readiness")


def test_a_change_keeps_the_focus_and_the_folds(upload, piers):
    window = upload(piers.with_columns(salt=pl.lit(1.5)))
    window.locator("#fold-rules summary").click()
    window.focus("#role-6")
    window.keyboard.press("End")
    settle(window)
    assert window.input_value("#role-6") == "keep"
    assert window.evaluate("document.activeElement.id") == "role-6"
    assert window.locator("#rule-upward").is_visible()


def test_two_windows(upload, upside):
    window = upload(upside)
    other = window.context.new_page()
    other.goto(window.url)
    other.wait_for_selector(".readiness")
    press(window, "Turn the scale round")
    press(other, "Turn the scale round")
    assert "changed in another window" in other.inner_text("[role=alert]")
    assert "Ready" in other.inner_text(".readiness")


def test_hostile_names_do_nothing(upload, piers):
    window = upload(piers.rename({"bridge_id": HOSTILE, "state": "\u202egnitar"}), name="a'\"<b>.csv")
    press(window, "Use as bridge")
    assert HOSTILE in window.inner_text("#part-columns + p + form")


@pytest.mark.parametrize(
    ("viewport", "scheme", "lang"), [(DESKTOP, "light", "en"), (PHONE, "dark", "ja"), (PHONE, "light", "en")]
)
@pytest.mark.parametrize("kind", ["upside", "hostile", "index"])
def test_axe_finds_nothing(upload, piers, upside, kind, viewport, scheme, lang):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    index = piers.with_columns(state=pl.int_range(pl.len()) % 70 + 20.5)
    hostile = piers.rename({"bridge_id": HOSTILE * 3}).with_columns(pl.lit("long " * 30).alias("long" * 30))
    table = {"upside": upside, "hostile": hostile, "index": index}[kind]
    window = upload(table, viewport=viewport, color_scheme=scheme, locale=lang, bypass_csp=True)
    for summary in window.locator("details > summary").all():
        if summary.is_visible():
            summary.click()
    found = axe.Axe().run(window, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []
    assert window.evaluate(OVERFLOWING) == []


def test_from_ontarios_file_to_the_plan_by_clicks(upload, ontario):
    window = upload(ontario / "bridge_data.csv")
    press(window, "Higher is better")
    window.locator("#problem-R111-warning > summary").click()
    press(window, "0: not inspected")
    window.locator("#folded > summary").click()
    for column in ("LAST MAJOR REHAB", "LAST MINOR REHAB"):
        window.get_by_label(f"Role of {column}").select_option("repairs")
        settle(window)
    assert "Ready" in window.inner_text(".readiness")
    window.get_by_role("link", name="Next").click()
    window.wait_for_url("**/plan")
