"""The page in a browser: what answers, what filters, what prints, and that it asks the network for nothing."""

import re
from contextlib import contextmanager

import pytest
from page_cases import CHOSEN, HOSTILE, MANY, MOST_DRAWN, NONE, SHOWN, repeat_case, repeat_figures

from rekka.report import outline
from rekka.report import page as page_module
from rekka.report.charts.base import CSS_VARIABLES, PAGE
from rekka.report.charts.figures import list_figures
from rekka.report.outline import SECTIONS
from rekka.report.page import render_page
from rekka.report.text import LANGUAGES, load_words

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
A4_WIDTH = 680  # pixels between the margins of 15 mm
LIVE = ".live svg"
MOST_NODES = 2_000  # elements of the page for one case more
OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter((one) =>
  !one.closest("svg, math, .unseen, .widest") && one.getBoundingClientRect().right > innerWidth + 1
).map((one) => `${one.tagName} ${one.className} in ${one.closest("[id]")?.id}`)"""
FEWER = """() => document.querySelectorAll("tbody tr:nth-child(n+4), #case-2 svg *, #future-2 svg *")
  .forEach((one) => one.remove())"""
SMALL_TARGETS = """() => [...document.querySelectorAll("main button, main summary, main input, .controls *, nav a")]
  .filter((one) => one.matches("button, summary, input, select, a") && one.checkVisibility())
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().height])
  .filter(([, height]) => height < 23.5)"""


@contextmanager
def opened(browser, file, viewport=DESKTOP, **options):
    """The page in a window of its own; afterwards nothing has gone wrong in it and nothing was asked for."""
    context = browser.new_context(viewport=viewport, **options)
    wrong, asked = [], []
    context.set_default_timeout(120_000)  # a busy machine is slow, not wrong
    context.route("**/*", lambda route: (asked.append(route.request.url), route.continue_()))
    window = context.new_page()
    window.on(
        "console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None
    )
    window.on("pageerror", lambda error: wrong.append(str(error)))
    window.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    window.goto(file.as_uri())
    try:
        yield window
    finally:
        context.close()
    assert wrong == []
    assert asked == [file.as_uri()]


@pytest.fixture(scope="module")
def shared(browser, page_file):
    with opened(browser, page_file) as found:
        yield found


@pytest.fixture
def window(shared):
    """One window for all tests that leave the page as they found it: to open it takes longer than to look at it."""
    yield shared
    shared.mouse.move(0, 0)
    shared.keyboard.press("Escape")  # no case is picked
    shared.evaluate("scrollTo(0, 0)")


@pytest.fixture
def fresh(browser, page_file):
    """A window in which nothing was done yet, and which may be left in any state."""
    with opened(browser, page_file) as found:
        yield found


@pytest.fixture(scope="module")
def drawn(browser, hostile_page, tmp_path_factory):
    """Names that would do harm on a phone, scrolled through; and the number of charts drawn before that."""
    file = tmp_path_factory.mktemp("hostile") / "hostile.html"
    file.write_text(hostile_page, encoding="utf-8")
    with opened(browser, file, PHONE) as found:
        before = found.locator(LIVE).count()
        found.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for panel in found.locator(".panel").all():
            panel.scroll_into_view_if_needed()
            panel.locator(LIVE).wait_for()
        yield found, before


def draw(window, figure):
    """Scroll to a figure and wait until its charts answer."""
    window.locator(figure).scroll_into_view_if_needed()
    window.locator(f"{figure} {LIVE}").first.wait_for()
    return window.locator(f"{figure} {LIVE}").first


def shown_rows(window, table):
    return window.locator(f"{table} tbody tr:visible").count()


def column(window, table, number):
    return window.eval_on_selector_all(
        f"{table} tbody tr", f"rows => rows.map((row) => row.cells[{number}].innerText)"
    )


def test_every_section_is_there_and_can_be_seen(window, artifacts):
    for name in SECTIONS:
        assert window.locator(f"#{name} > h2").is_visible()
    assert window.locator("nav a").count() == len(SECTIONS)
    window.screenshot(path=artifacts / "page-desktop.png")


def test_every_chart_is_drawn_when_it_comes_near(drawn):
    window, before = drawn
    assert before < window.locator(".panel").count() == window.locator(LIVE).count()
    assert window.locator(".static").count() == 0
    assert window.locator(".undrawn").count() == 0


def test_a_mark_tells_its_trial(window, document):
    chart = draw(window, "#figure-tradeoff-exact")
    chart.locator(".mark-symbol.role-mark path").last.hover(force=True)
    tip = window.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    text = tip.inner_text()
    assert any(case.case in text for case in document.cases)
    assert re.search(r"0\.\d{3}", text)


def test_a_header_sorts_up_down_and_back(window):
    table = "#table-cases"
    header = window.locator(f"{table} thead th", has_text="train").first
    number = header.evaluate("(head) => head.cellIndex")
    before = column(window, table, number)
    values = sorted(int(text.replace(",", "")) for text in before)
    orders = []
    for _ in range(3):
        header.locator("button").click()
        orders.append((header.get_attribute("aria-sort"), column(window, table, number)))
    shown = [f"{value:,}" for value in values]
    assert orders == [("ascending", shown), ("descending", shown[::-1]), (None, before)]


def test_missing_numbers_stay_last(window):
    table = "#table-answer"
    header = window.locator(f"{table} thead th").nth(2)
    for _ in range(2):
        header.locator("button").click()
        assert [text.startswith("–") for text in column(window, table, 2)] == [False, True, True]
    header.locator("button").click()  # as it was


def test_a_filter_keeps_rows_with_the_text_and_tells_how_many(window):
    box = window.locator("#table-trials")
    box.locator("xpath=ancestor::details").evaluate("(one) => { one.open = true; }")
    assert shown_rows(window, "#table-trials") == 12
    box.locator("input").fill("longitudinal")
    assert shown_rows(window, "#table-trials") == 4
    assert box.locator(".tools").inner_text() == "4 of 12 rows"
    assert window.locator("#status").inner_text() == "4 of 12 rows"
    box.locator("input").fill("")
    assert shown_rows(window, "#table-trials") == 12


def test_a_picked_case_is_followed_everywhere(fresh):
    chart = draw(fresh, "#figure-tradeoff-exact")
    faint = "(svg) => [...svg.querySelectorAll('.mark-symbol.role-mark path')].filter((one) => one.getAttribute('opacity') < 0.5).length"
    assert chart.evaluate(faint) == 0
    fresh.locator("#case").select_option(label=CHOSEN)
    fresh.wait_for_function(f"({faint})(document.querySelector('#figure-tradeoff-exact {LIVE}')) > 0")
    assert shown_rows(fresh, "#table-cases") == 1
    assert fresh.locator("#table-cases .tools").inner_text() == "1 of 3 rows"
    assert fresh.locator("#models details.case:visible").count() == 1
    assert fresh.locator("#forecast details.case:visible").count() == 1
    assert CHOSEN in fresh.locator("#status").inner_text()
    later = draw(fresh, "#figure-heatmap-exact")  # drawn after the picking
    assert (
        later.evaluate(faint.replace(".mark-symbol.role-mark", ".mark-text.role-mark").replace("path", "text")) > 0
    )
    fresh.keyboard.press("Escape")
    fresh.wait_for_function(f"({faint})(document.querySelector('#figure-tradeoff-exact {LIVE}')) === 0")
    assert shown_rows(fresh, "#table-cases") == 3
    assert fresh.locator("#case").input_value() == ""


def test_a_click_on_a_mark_picks_its_case_and_a_button_lets_go(window, document):
    chart = draw(window, "#figure-tradeoff-exact")
    chart.locator(".mark-symbol.role-mark path").last.click(force=True)
    window.wait_for_function("document.querySelector('#case').value !== ''")
    assert shown_rows(window, "#table-cases") == 1
    window.locator("#clear").click()
    assert shown_rows(window, "#table-cases") == len(document.cases)
    assert not window.locator("#clear").is_visible()


def test_light_and_dark_as_the_system_or_the_reader_has_it(window, artifacts):
    def colours():
        seen = window.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        return ["#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)) for colour in seen]

    light, dark = ([CSS_VARIABLES[name][n] for name in ("--surface", "--ink")] for n in (0, 1))
    assert colours() == light
    window.locator("#theme").select_option("dark")
    assert colours() == dark
    window.screenshot(path=artifacts / "page-dark.png")
    window.emulate_media(color_scheme="dark")
    window.locator("#theme").select_option("light")
    assert colours() == light
    window.locator("#theme").select_option("auto")
    assert colours() == dark
    chart = draw(window, "#figure-answer")
    assert dark[1] in chart.evaluate(
        """(svg) => [...svg.querySelectorAll("text")].map((one) => getComputedStyle(one).fill).map((colour) =>
        "#" + colour.match(/\\d+/g).map((part) => Number(part).toString(16).padStart(2, "0")).join(""))"""
    )
    window.emulate_media(media="print", color_scheme="dark")
    assert window.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    window.emulate_media(media="screen", color_scheme="light")


def test_it_prints_on_a4_with_nothing_cut_off(fresh, artifacts):
    draw(fresh, "#figure-answer")
    printed = fresh.pdf(prefer_css_page_size=True)
    (artifacts / "page.pdf").write_bytes(printed)
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^\]]+)\]", printed)}
    assert {tuple(sorted(map(round, box[2:]))) for box in boxes} == {(595, 842)}
    assert len(re.findall(rb"/Type /Page\b", printed)) > 5
    fresh.set_viewport_size({"width": A4_WIDTH, "height": 1000})
    fresh.emulate_media(media="print")
    fresh.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert fresh.evaluate(OVERFLOWING) == []
    assert fresh.locator("details:not([open])").count() == 0
    assert not fresh.locator("#controls").is_visible()
    assert not fresh.locator("nav").is_visible()
    fresh.evaluate("dispatchEvent(new Event('afterprint'))")
    assert fresh.locator("details.case[open]").count() == 2  # the first of each section


def test_the_future_is_followed_by_year_and_by_case(window, document, artifacts):
    chart = draw(window, "#figure-network")
    chart.locator(".mark-rule path, .mark-rule line").last.hover(force=True)
    window.locator("#vg-tooltip-element.visible").wait_for()
    assert "rating a" in window.locator("#vg-tooltip-element").inner_text()
    window.locator("#case").select_option(label=CHOSEN)
    assert window.locator("#future-1").get_attribute("open") == ""
    assert not window.locator("#future-2").is_visible()
    assert shown_rows(window, "#table-passages") == len(document.models[0].forecast.passages)
    for figure in range(1, 4):
        draw(window, f"#future-1-figure-{figure}")
    window.locator("#forecast").screenshot(path=artifacts / "forecast.png")


def test_it_can_be_read_without_scripts(browser, page_file):
    with opened(browser, page_file, java_script_enabled=False) as window:
        assert window.locator("#table-answer tbody tr").count() == 3
        assert window.locator("#table-answer").is_visible()
        assert window.locator("#figure-answer .static svg").first.is_visible()
        assert not window.locator("#controls").is_visible()
        window.locator("#models details.case summary").nth(1).click()
        assert window.locator("#case-2 .static svg").first.is_visible()
        assert window.locator("#future-1 .static svg").first.is_visible()


def test_a_link_into_something_folded_unfolds_it(window):
    window.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = false; })")
    window.evaluate("location.hash = '#table-trials'")
    window.locator("#table-trials").wait_for()
    assert window.locator("#table-trials tbody tr").first.is_visible()
    window.locator("#table-answer th a").nth(2).click()
    window.locator("#case-3[open]").wait_for()


def test_the_keyboard_reaches_the_answer_and_the_tables(fresh):
    fresh.keyboard.press("Tab")
    assert fresh.evaluate("document.activeElement.className") == "skip"
    fresh.keyboard.press("Enter")
    assert fresh.evaluate("location.hash") == "#answer"
    fresh.locator("#table-cases thead button").first.focus()
    fresh.keyboard.press("Enter")
    assert fresh.locator("#table-cases th[aria-sort]").count() == 1


def test_a_phone_scrolls_in_one_direction(browser, page_file, artifacts):
    with opened(browser, page_file, PHONE, device_scale_factor=2) as window:
        window.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        for name in SECTIONS:
            window.locator(f"#{name}").scroll_into_view_if_needed()
        assert window.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert not window.locator("nav ol").is_visible()
        assert window.evaluate(SMALL_TARGETS) == []
        window.evaluate("scrollTo(0, 0)")
        window.screenshot(path=artifacts / "page-phone.png")


@pytest.mark.parametrize(
    ("viewport", "scheme", "lang"),
    [(DESKTOP, "light", "en"), pytest.param(PHONE, "dark", "ja", marks=pytest.mark.slow)],
)  # each of the two widths, schemes and languages once
def test_axe_finds_nothing(browser, document, page, tmp_path, viewport, scheme, lang):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    if lang not in LANGUAGES:
        pytest.skip(f"there are no words in {lang}")
    file = tmp_path / "report.html"
    file.write_text(page if lang == "en" else render_page(document, lang), encoding="utf-8")
    with opened(browser, file, viewport, color_scheme=scheme) as window:
        draw(window, "#figure-answer")
        if viewport == DESKTOP:  # else as it is opened: with the first case of each section
            window.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        window.evaluate(FEWER)  # more rows and charts of another component are more of the same
        found = axe.Axe().run(window, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


def test_names_that_would_do_harm_do_none(drawn, artifacts):
    window, _ = drawn
    mark = window.locator(f"#figure-tradeoff-exact {LIVE} .mark-symbol.role-mark path").last
    mark.hover(force=True)
    window.locator("#vg-tooltip-element.visible").wait_for()
    for number in range(len(HOSTILE)):
        window.locator("#case").select_option(str(number))
        assert shown_rows(window, "#table-cases") == 1
    assert window.evaluate("window.harmed") is None
    assert window.locator("img").count() == 0
    assert window.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    window.screenshot(path=artifacts / "page-hostile.png")
    window.set_viewport_size({"width": A4_WIDTH, "height": 1000})
    window.emulate_media(media="print")
    assert window.evaluate(OVERFLOWING) == []


def test_of_very_many_cases_only_what_is_near_is_drawn(browser, document, tmp_path, monkeypatch):
    monkeypatch.setattr(outline, "MOST_DRAWN", MOST_DRAWN)
    monkeypatch.setattr(page_module, "draw_svg", lambda spec, prefix: "<svg></svg>")
    figures = repeat_figures(list_figures(document, load_words("en"), PAGE), CHOSEN, MANY)
    monkeypatch.setattr(page_module, "list_figures", lambda *_: figures)
    file = tmp_path / "many.html"
    file.write_text(render_page(repeat_case(document, CHOSEN, MANY)), encoding="utf-8")
    with opened(browser, file) as window:
        panels = window.locator(".panel").count()
        window.locator("#case").select_option(label=f"{CHOSEN} 15")
        assert shown_rows(window, "#table-cases") == 1
        assert window.locator("#case-15").get_attribute("open") == ""
        draw(window, "#case-15-figure-1")
        assert window.locator("details.case[open]:visible").count() == 2  # in models and in the future
        assert panels > 100
        assert window.locator(LIVE).count() < 40
        assert window.locator("#models details.case:visible").count() == 1
        nodes = window.evaluate("document.querySelectorAll('*').length")
        assert nodes < MOST_NODES * MANY


def test_the_page_names_its_cases_as_the_study_does(window):
    assert window.locator("#case option").all_inner_texts() == ["All components", CHOSEN, SHOWN, NONE]
