"""The page in a browser: what answers, what filters, what is saved and printed, and that it asks for nothing."""

import csv
import io
import re
import struct
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
from network_cases import BASE_YEAR, NEXT, OUTSIDE, THERE, fill_document
from page_cases import (
    CHOSEN,
    HOSTILE,
    MANY,
    MOST_DRAWN,
    NONE,
    SHOWN,
    rename_cases,
    repeat_case,
    repeat_figures,
    share_document,
)

from rekka.report import outline
from rekka.report import page as page_module
from rekka.report.charts.base import CSS_VARIABLES, PAGE
from rekka.report.charts.figures import list_figures
from rekka.report.outline import DIRECTOR, ENGINEER, FULL, PAPER, PARTS, list_parts
from rekka.report.overview import make_overview
from rekka.report.page import render_page
from rekka.report.text import load_words
from sharing import share

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SHEET = {"width": 680, "height": 1000}  # pixels between the margins of A4, of 15 mm
LIVE = ".live svg"
MEMBERS = 360  # of the page, with two to a bridge
FEW_MEMBERS = 24
MOST_MEMBERS, MOST_BYTES = 12_000, 5_000_000
MOST_NODES = 2_000  # elements of the page for one component more
MOST_OF_MEMBERS = 12_000  # elements of a page with very many members, and of three components
MOST_STOPS = 50  # of the tab key
PAGED = 50  # members in sight
POLLS, PAUSE = 600, 50  # times, milliseconds
WORDS = load_words("en")
TEXTS = {key.removeprefix("page.script."): text for key, text in WORDS.texts.items()}
BAD_BRIDGE = '<img src=x onerror="window.harmed = 1">'
PICK = {"all": "", CHOSEN: "0", SHOWN: "1", NONE: "2"}

OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter((one) =>
  !one.closest("svg, math, .unseen, .widest") && one.getBoundingClientRect().right > innerWidth + 1
).map((one) => `${one.tagName} ${one.className} in ${one.closest("[id]")?.id}`)"""
FEWER = """() => document.querySelectorAll("tbody tr:nth-child(n+4), #case-2 svg *, #backtests figure ~ figure svg *")
  .forEach((one) => one.remove())"""
UNFOLD = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
SMALL_TARGETS = """() => [...document.querySelectorAll("main button, main summary, main input, .controls *, nav a")]
  .filter((one) => one.matches("button:not(.link), summary, input, select, a") && one.checkVisibility())
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().height])
  .filter(([, height]) => height < 23.5)"""
FAINT = """(svg) => [...svg.querySelectorAll(".mark-symbol.role-mark path")]
  .filter((one) => one.getAttribute("opacity") < 0.5).length"""
ALL_DRAWN = """[...document.querySelectorAll(".panel:not(.still)")].every((one) =>
  !one.checkVisibility() || one.querySelector(".live:not(.waiting)"))"""
CARDS = """() => [...document.querySelectorAll(".table.cards tbody tr")].filter((one) => one.checkVisibility())
  .filter((one) => getComputedStyle(one).display !== "block" || one.getBoundingClientRect().right > innerWidth).length"""


@contextmanager
def opened(browser, file, viewport=DESKTOP, **options):
    """The page in a window of its own; afterwards nothing has gone wrong in it and nothing was asked for."""
    context = browser.new_context(viewport=viewport, **options)
    wrong, asked = [], []
    context.set_default_timeout(60_000)  # a busy machine is slow, not wrong
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
def full(document):
    """The district with all that a page can show: every member with coordinates, history, trust, backtests."""
    return share_document("district-full", lambda: fill_document(document, MEMBERS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def write_page(folder, name, document, lang="en", **options):
    file = folder / f"{name}.html"
    file.write_text(share(file.name, lambda: render_page(document, lang, **options)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def file(full, folder):
    return write_page(folder, "full", full)


@pytest.fixture(scope="module")
def shared(browser, file):
    with opened(browser, file, permissions=["clipboard-read", "clipboard-write"]) as found:
        yield found


@pytest.fixture
def window(shared):
    """One window for all tests that leave the page as they found it: to open it takes longer than to look at it."""
    yield shared
    shared.mouse.move(0, 0)
    shared.evaluate("document.activeElement.blur()")
    shared.keyboard.press("Escape")  # no card is open
    shared.keyboard.press("Escape")  # no component is picked
    shared.locator("#search").fill("")
    shared.locator("#tab-next").click()  # which has all orders
    shared.locator("#sort").select_option("median")
    shared.locator("#tab-there").click()
    shared.evaluate("scrollTo(0, 0)")


@pytest.fixture
def fresh(browser, file):
    """A window in which nothing was done yet, and which may be left in any state."""
    with opened(browser, file) as found:
        yield found


@pytest.fixture(scope="module")
def drawn(browser, document, folder):
    """Names that would do harm on a phone, scrolled through; and the number of charts drawn before that."""
    names = HOSTILE | {"B-00000": BAD_BRIDGE}
    file = write_page(folder, "hostile-full", rename_cases(fill_document(document, FEW_MEMBERS), names))
    with opened(browser, file, PHONE) as found:
        before = found.locator(LIVE).count()
        found.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        scroll_through(found)
        until(found, ALL_DRAWN)
        yield found, before


@pytest.fixture(scope="module")
def many(browser, document, folder):
    """Very many components, with pictures left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outline, "MOST_DRAWN", MOST_DRAWN)
        patch.setattr(page_module, "draw_svg", lambda spec, prefix: "<svg></svg>")
        figures = repeat_figures(list_figures(document, WORDS, PAGE), CHOSEN, MANY)
        patch.setattr(page_module, "list_figures", lambda *_: figures)
        file = write_page(folder, "many", repeat_case(document, CHOSEN, MANY))
    with opened(browser, file) as found:
        yield found


def until(window, script):
    """Wait until an expression holds. The page's policy forbids Playwright to do so within the page."""
    for _ in range(POLLS):
        if window.evaluate(script):
            return
        window.wait_for_timeout(PAUSE)
    pytest.fail(f"it never held: {script}")


def scroll_through(window):
    """From the top to the end, a screen at a time."""
    step = window.viewport_size["height"]
    top = 0
    while top < window.evaluate("document.documentElement.scrollHeight"):
        window.evaluate(f"scrollTo(0, {top})")
        window.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        top += step


def draw(window, figure):
    """Scroll to a figure and wait until its charts answer."""
    window.locator(figure).scroll_into_view_if_needed()
    window.locator(f"{figure} {LIVE}").first.wait_for()
    return window.locator(f"{figure} {LIVE}").first


def reach(window, box):
    """Unfold and scroll to a table or a figure, and wait until it has its buttons."""
    found = window.locator(box)
    found.evaluate(
        "(one) => { for (let up = one; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true; }"
    )
    found.scroll_into_view_if_needed()
    found.locator(".tools").wait_for()
    return found


def save(window, button):
    """The content of the file that a button saves, and its name."""
    with window.expect_download() as waiting:
        button.click()
    return Path(waiting.value.path()).read_bytes(), waiting.value.suggested_filename


def read_csv(content):
    assert content.startswith(b"\xef\xbb\xbf")  # so that a spreadsheet reads it as UTF-8
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def shown_rows(window, table):
    return window.locator(f"{table} tbody tr:visible").count()


def column(window, table, number):
    return window.eval_on_selector_all(
        f"{table} tbody tr", f"rows => rows.map((row) => row.cells[{number}].innerText)"
    )


def list_bridges(window):
    return window.locator("#member-panel tbody th").all_inner_texts()


def find_headline(window):
    return window.locator("#overview .headline:visible").inner_text()


# Order, charts, tables


def test_every_part_is_there_in_order(window, artifacts):
    assert window.eval_on_selector_all("main > section", "(all) => all.map((one) => one.id)") == list(PARTS)
    assert window.locator("main > section > h2").all_inner_texts() == [
        f"{number} {WORDS(f'part.{name}.title')}" for number, name in enumerate(PARTS, 1)
    ]
    for name in PARTS:
        assert window.locator(f"#{name}").is_visible()
    links = window.locator("nav a")
    assert links.evaluate_all("(all) => all.map((one) => one.hash.slice(1))") == list(PARTS)
    window.screenshot(path=artifacts / "page-desktop.png")


def test_every_chart_is_drawn_when_it_comes_near(drawn):
    window, before = drawn
    panels = window.locator(".panel:not(.still):visible").count()
    assert before < window.locator(f"{LIVE}:visible").count() == panels > 4
    assert window.locator(".undrawn").count() == 0


def test_a_mark_tells_its_trial(window, full):
    chart = draw(window, "#figure-tradeoff-exact")
    chart.locator(".mark-symbol.role-mark path").first.hover(force=True)
    tip = window.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    text = tip.inner_text()
    assert any(case.case in text for case in full.cases)
    assert re.search(r"0\.\d{3}", text)


def test_the_future_is_told_by_year(window):
    chart = draw(window, "#figure-network")
    chart.locator(".mark-rule path, .mark-rule line").last.hover(force=True)
    window.locator("#vg-tooltip-element.visible").wait_for()
    assert re.search(r"20\d\d", window.locator("#vg-tooltip-element").inner_text())


def test_a_header_sorts_up_down_and_back(window, full):
    table = "#table-cases"
    reach(window, table)
    header = window.locator(f"{table} thead th", has_text="train").first
    number = header.evaluate("(head) => head.cellIndex")
    before = column(window, table, number)
    values = sorted(int(text.replace(",", "")) for text in before)
    orders = []
    for _ in range(3):
        header.locator("button").click()
        orders.append((header.get_attribute("aria-sort"), column(window, table, number)))
    shown = [f"{value:,}" for value in values]
    assert len(set(shown)) == len(full.cases)
    assert orders == [("ascending", shown), ("descending", shown[::-1]), (None, before)]


def test_missing_numbers_stay_last(window):
    table = "#table-answer"
    reach(window, table)
    header = window.locator(f"{table} thead th").nth(2)
    for _ in range(2):
        header.locator("button").click()
        assert [text.startswith("–") for text in column(window, table, 2)] == [False, True, True]
    header.locator("button").click()  # as it was


def test_a_filter_keeps_rows_with_the_text_and_tells_how_many(many):
    box = reach(many, "#table-trials")
    every, own = (
        shown_rows(many, "#table-trials"),
        sum(f"{CHOSEN} 15".lower() in text.lower() for text in box.locator("tbody tr").all_inner_texts()),
    )
    assert 0 < own < every
    box.locator("input").fill(f"{CHOSEN} 15".upper())
    assert shown_rows(many, "#table-trials") == own
    told = f"{own} of {every} rows"
    assert told in box.locator(".tools").inner_text()
    assert many.locator("#status").inner_text() == told
    box.locator("input").fill("")
    assert shown_rows(many, "#table-trials") == every


# Members


def test_a_bridge_is_found_from_the_first_screen(window, full):
    every = full.network.every
    name = every.bridge[every.tab.index(NEXT)]
    own = [n for n, one in enumerate(every.bridge) if one == name]
    window.locator("#find").fill(name.lower())
    window.keyboard.press("Enter")
    assert window.evaluate("document.activeElement.id") == "search"
    assert window.locator("#search").input_value() == name.lower()
    assert window.locator("#status").inner_text() == f"{len(own)} of {MEMBERS} members"
    counts = [every.tab[n] for n in own]
    for tab, code in (("there", THERE), ("next", NEXT), ("outside", OUTSIDE)):
        window.locator(f"#tab-{tab}").click()
        assert list_bridges(window) == [name] * counts.count(code)
    window.locator("#find").fill("")


def test_a_search_does_without_case_and_width_and_finds_the_right_list(window, full):
    every = full.network.every
    place = next(n for n, one in enumerate(every.bridge) if one.endswith("00077"))
    tab = {THERE: "there", NEXT: "next", OUTSIDE: "outside"}[every.tab[place]]
    window.locator(f"#tab-{'next' if tab == 'there' else 'there'}").click()
    window.locator("#search").fill("ｂ－０００７７ ".replace("－", "-") + every.member[place])
    own = {every.bridge[place]}
    assert set(list_bridges(window)) == own
    window.locator("#search").fill(f"{every.cases[every.case[place]]} b-00077")
    assert set(list_bridges(window)) == own
    window.locator("#search").fill("no such bridge")
    assert window.locator("#member-panel tbody").inner_text() == TEXTS["no_member"]


def test_members_stand_in_three_lists(window, full):
    every = full.network.every
    lists = (("there", THERE), ("next", NEXT), ("outside", OUTSIDE))
    for tab, code in lists:
        one = window.locator(f"#tab-{tab}")
        one.click()
        assert one.get_attribute("aria-selected") == "true"
        assert window.locator("[role=tab][aria-selected=true]").count() == 1
        count = every.tab.count(code)
        assert one.inner_text() == f"{TEXTS[f'tab_{tab}']} {count}"
        assert len(list_bridges(window)) == min(count, PAGED)
        places = [n for n, own in enumerate(every.tab) if own == code]
        first = max(places, key=lambda n: (every.state[n], -n)) if tab == "there" else places[0]
        assert list_bridges(window)[0] == every.bridge[first]
    heads = {}
    for tab, _ in lists:
        window.locator(f"#tab-{tab}").click()
        heads[tab] = window.locator("#member-panel thead th").all_inner_texts()
    assert WORDS("column.expected_year") in heads["next"]
    assert WORDS("column.expected_year") not in heads["there"]
    assert WORDS("column.remark") in heads["outside"]
    window.locator("#tab-there").focus()
    window.keyboard.press("ArrowRight")
    assert window.evaluate("document.activeElement.id") == "tab-next"


def test_members_are_paged_and_sorted(window, full):
    every = full.network.every
    window.locator("#tab-next").click()
    places = [n for n, tab in enumerate(every.tab) if tab == NEXT]
    pager = window.locator(".pager")
    back, forth = pager.locator("button").nth(0), pager.locator("button").nth(1)
    assert back.is_disabled()
    forth.click()
    assert f"51 to 100 of {len(places)}" in pager.inner_text()
    assert list_bridges(window) == [every.bridge[n] for n in places[PAGED : 2 * PAGED]]
    while not forth.is_disabled():
        forth.click()
    assert list_bridges(window) == [every.bridge[n] for n in places[len(places) // PAGED * PAGED :]]
    assert window.evaluate("document.activeElement.textContent") == TEXTS["previous"]  # the other is disabled now
    expected = {
        "state": lambda n: (-every.state[n], n),
        "soon": lambda n: (-every.soon[n], n),
        "seen": lambda n: (every.seen[n], n),
        "bridge": lambda n: (every.bridge[n], n),
    }
    for order, key in expected.items():
        window.locator("#sort").select_option(order)
        assert list_bridges(window) == [every.bridge[n] for n in sorted(places, key=key)[:PAGED]]


def test_members_at_the_threshold_are_sorted_by_rating(window, full):
    """They have no year and no probability to be sorted by; a choice made in another list comes back with it."""
    every, sorter = full.network.every, window.locator("#sort")
    window.locator("#tab-next").click()
    assert sorter.locator("option:checked").inner_text() == TEXTS["by_median"]
    sorter.select_option("soon")
    window.locator("#tab-there").click()
    places = [n for n, tab in enumerate(every.tab) if tab == THERE]
    assert len({every.state[n] for n in places}) > 1
    worst = sorted(places, key=lambda n: (-every.state[n], n))
    assert list_bridges(window) == [every.bridge[n] for n in worst[:PAGED]]
    assert sorter.locator("option:checked").inner_text() == TEXTS["by_state"]
    offered = sorter.locator("option").evaluate_all("options => options.map((one) => one.value)")
    assert offered == ["state", "seen", "bridge"]
    window.locator("#tab-next").click()
    assert sorter.input_value() == "soon"


def open_card(window, full, place):
    """The card of a member, opened from the list."""
    every = full.network.every
    tab = {THERE: "there", NEXT: "next", OUTSIDE: "outside"}[every.tab[place]]
    window.locator("#search").fill(f"{every.bridge[place]} {every.member[place]}")
    window.locator(f"#tab-{tab}").click()
    window.locator("#member-panel tbody .link").click()
    card = window.locator("#card")
    card.wait_for()
    return card


def test_a_bridge_opens_its_card(window, full, artifacts):
    every, ratings = full.network.every, full.network.ratings
    place = next(
        n
        for n, (tab, past) in enumerate(zip(every.tab, every.past, strict=True))
        if tab == NEXT and past.count(",") > 1
    )
    card = open_card(window, full, place)
    text = card.inner_text()
    assert card.locator("h2").inner_text() == every.bridge[place]
    assert card.get_attribute("aria-labelledby") == "card-name"
    rating = ratings.phrase(every.state[place], WORDS)
    worse = ratings.phrase_or_worse(every.threshold[every.case[place]], WORDS)
    assert TEXTS["card_now"].format(rating=rating, seen=every.seen[place]) in text
    assert TEXTS["card_year"].format(worse=worse, year=every.calendar[place]) in text
    assert every.cases[every.case[place]] in text
    # its history: a point for each visit; its forecast: a band, a median, and the threshold
    visits = every.past[place].split(",")
    points = card.locator("svg circle title").all_text_contents()
    assert points == [f"{visit[:4]}: {ratings.name(int(visit.partition(':')[2]), WORDS)}" for visit in visits]
    assert card.locator("svg path").count() == 3
    assert card.locator("svg rect").count() == 1
    years = card.locator("svg text[text-anchor=middle]").all_text_contents()
    assert years[-1] == TEXTS["card_year_axis"]
    assert BASE_YEAR - 5 < int(years[-2]) <= BASE_YEAR + 30
    # what drives it, the strongest first; its own frailty
    drivers = card.locator("ul").first.locator("li").all_inner_texts()
    speed = "faster" if every.ratios[0][place] > 1.005 else "slower"
    assert WORDS.covariate("age_at_inspection_1") in drivers[0]
    assert f": {speed}, {every.ratios[0][place]:.3g} times" in drivers[0]
    assert f"{every.frailty[place]:.3g} times as fast" in drivers[1]
    card.screenshot(path=artifacts / "card.png")
    # the other member of the bridge
    other = next(n for n, name in enumerate(every.bridge) if name == every.bridge[place] and n != place)
    rows = card.locator("tbody tr")
    assert rows.count() == 2
    card.locator("tbody .link").click()
    assert every.member[other] in card.locator(".top").inner_text()
    window.keyboard.press("Escape")
    assert not card.is_visible()
    assert window.locator("#case").input_value() == ""


def test_a_card_opens_from_those_to_inspect_first(window, full):
    first = make_overview(full, WORDS).first[1]
    button = reach(window, "#first-all").locator("tbody .link").nth(1)
    button.click()
    card = window.locator("#card")
    assert card.locator("h2").inner_text() == first.bridge
    assert first.member in card.locator(".top").inner_text()
    card.get_by_role("button", name=TEXTS["close"]).click()
    assert not card.is_visible()
    assert button.evaluate("(one) => one === document.activeElement")


def test_members_stand_on_a_map(window, full, artifacts):
    window.locator("#member-list").scroll_into_view_if_needed()
    toggle = window.get_by_role("button", name=TEXTS["map"], exact=True)
    toggle.click()
    canvas = window.locator(".map canvas")
    assert canvas.get_attribute("aria-label") == TEXTS["map_label"].format(n=MEMBERS)
    assert not window.locator("#member-panel").is_visible()
    assert window.locator(".map .key li").all_inner_texts() == ["a", "b", "c", "d", "e"]
    window.locator("#map-by").select_option("year")
    assert window.locator(".map .key li").all_inner_texts() == [TEXTS["map_soon"], TEXTS["map_late"].format(n=40)]
    # where a bridge stands, by the projection: a degree of longitude is shorter than one of latitude
    window.locator("#search").fill("B-00033 M-1")
    until(window, "document.querySelector('.map canvas').ariaLabel.includes(' 1 ')")
    box = canvas.bounding_box()
    middle = {"x": box["width"] / 2, "y": (box["height"] - 20) / 2}
    canvas.hover(position=middle)
    assert "B-00033" in window.locator(".map .tip").inner_text()
    canvas.click(position=middle)
    assert window.locator("#card h2").inner_text() == "B-00033"
    window.keyboard.press("Escape")
    window.locator("#search").fill("")
    window.locator(".map").screenshot(path=artifacts / "map.png")
    window.get_by_role("button", name=TEXTS["list"], exact=True).click()
    assert window.locator("#member-panel").is_visible()


# A component, everywhere


def test_a_picked_component_is_followed_everywhere(fresh, full):
    every = full.network.every
    chart = draw(fresh, "#figure-tradeoff-exact")
    assert chart.evaluate(FAINT) == 0
    reach(fresh, "#table-cases")
    fresh.evaluate("scrollTo(0, 0)")
    fresh.locator("#case").select_option(label=CHOSEN)
    until(fresh, f"({FAINT})(document.querySelector('#figure-tradeoff-exact {LIVE}')) > 0")
    found = make_overview(full, WORDS, CHOSEN)
    assert find_headline(fresh) == found.headline != make_overview(full, WORDS).headline
    cards = fresh.locator("#overview .number-card:visible .value").all_inner_texts()
    assert len(cards) == len(found.cards)
    assert all(card.value in text for card, text in zip(found.cards, cards, strict=True))
    assert fresh.locator("header .facts-line:visible").count() == 1
    assert fresh.locator("#network-1").is_visible()
    assert not fresh.locator("#figure-network").is_visible()
    assert not fresh.locator("#first-all").is_visible()
    assert set(column(fresh, "#first-0", 0)) == {one.bridge for one in found.first}
    own = [n for n, case in enumerate(every.case) if every.cases[case] == CHOSEN]
    assert fresh.locator("#tab-next small").inner_text() == str(sum(every.tab[n] == NEXT for n in own))
    assert shown_rows(fresh, "#table-cases") == 1
    assert fresh.locator("#table-cases .tools").inner_text().endswith("1 of 3 rows")
    assert fresh.locator("#components details.case:visible").count() == 1
    assert fresh.locator("#belief .levels > div:visible").count() == 2  # its own, and that of all
    assert CHOSEN in fresh.locator("#status").inner_text()
    later = draw(fresh, "#figure-tradeoff-paper")  # drawn after the picking
    assert later.evaluate(FAINT) > 0
    fresh.locator("#case").select_option(label=NONE)
    assert fresh.locator("#case-3").get_attribute("open") == ""
    assert find_headline(fresh) == make_overview(full, WORDS, NONE).headline
    fresh.locator("#case").evaluate("(one) => one.blur()")
    fresh.keyboard.press("Escape")
    until(fresh, f"({FAINT})(document.querySelector('#figure-tradeoff-exact {LIVE}')) === 0")
    assert find_headline(fresh) == make_overview(full, WORDS).headline
    assert fresh.locator("#figure-network").is_visible()
    assert shown_rows(fresh, "#table-cases") == 3
    assert fresh.locator("#case").input_value() == ""


def test_a_click_on_a_mark_picks_its_component_and_a_button_lets_go(window, full):
    reach(window, "#table-cases")
    chart = draw(window, "#figure-tradeoff-exact")
    chart.locator(".mark-symbol.role-mark path").first.click(force=True)
    until(window, "document.querySelector('#case').value !== ''")
    assert shown_rows(window, "#table-cases") == 1
    window.locator("#clear").click()
    assert shown_rows(window, "#table-cases") == len(full.cases)
    assert not window.locator("#clear").is_visible()
    assert window.evaluate("document.activeElement.id") == "case"


def test_the_tab_key_still_reaches_what_a_picked_component_leaves(window):
    summaries = window.locator("details.case > summary")
    summaries.nth(0).focus()
    window.locator("#case").select_option(label=SHOWN)
    stops = window.locator("#components > details > summary[tabindex='0']")
    assert stops.count() == 1
    assert stops.is_visible()
    window.locator("#clear").click()
    summaries.nth(1).focus()
    window.keyboard.press("ArrowDown")
    assert summaries.nth(2).evaluate("(one) => one === document.activeElement")


def test_the_page_names_its_components_as_the_study_does(window):
    assert window.locator("#case option").all_inner_texts() == ["All components", CHOSEN, SHOWN, NONE]


# Files


def test_a_figure_is_saved_as_svg_and_png(window, full):
    box = reach(window, "#figure-reaching")
    content, name = save(window, box.get_by_role("button", name="SVG"))
    assert name == "reaching.svg"
    assert b"var(" not in content
    root = ElementTree.fromstring(content.decode())
    texts = "".join(root.itertext())
    assert CHOSEN in texts
    assert box.locator("figcaption strong").inner_text() in texts
    wide, high = (float(root.get(name)) for name in ("width", "height"))
    content, name = save(window, box.get_by_role("button", name="PNG"))
    assert name == "reaching.png"
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (int(wide * 3), int(high * 3))


def test_a_table_is_saved_as_it_is_shown_with_all_digits(window, full):
    box = reach(window, "#table-cases")
    rows = read_csv(save(window, box.get_by_role("button", name="CSV"))[0])
    assert [row[0] for row in rows[1:]] == [one.case for one in full.cases]
    assert len({len(row) for row in rows}) == 1
    window.locator("#case").select_option(label=SHOWN)
    rows = read_csv(save(window, box.get_by_role("button", name="CSV"))[0])
    assert [row[0] for row in rows[1:]] == [SHOWN]
    window.locator("#clear").click()
    methods = read_csv(save(window, reach(window, "#table-methods").get_by_role("button", name="CSV"))[0])
    number = next(n for n, head in enumerate(methods[0]) if WORDS("column.mean_accuracy") in head)
    assert [float(row[number]) for row in methods[1:]] == [one.mean_accuracy for one in full.methods]


def test_members_are_saved_list_by_list(window, full):
    every = full.network.every
    window.locator("#tab-next").click()
    content, name = save(
        window, window.locator(".pager").get_by_role("button", name=TEXTS["tools"].partition(":")[0])
    )
    assert name == "members-next.csv"
    rows = read_csv(content)
    places = [n for n, tab in enumerate(every.tab) if tab == NEXT]
    heads = {WORDS(f"column.{key}"): n for n, key in enumerate(("bridge", "case", "member"))}
    assert rows[0][:3] == list(heads)
    assert [row[:3] for row in rows[1:]] == [
        [every.bridge[n], every.cases[every.case[n]], every.member[n]] for n in places
    ]
    soon = rows[0].index(WORDS("column.chance_in", years=full.network.soon))
    assert [float(row[soon]) for row in rows[1:]] == pytest.approx([every.soon[n] for n in places], rel=1e-3)


def test_a_matrix_is_copied_and_saved_with_all_digits(window, full):
    model = next(one for one in full.models if one.case == CHOSEN)
    part = model.forecast.matrices[0]
    box = reach(window, "#future-1-matrix-1")
    rows = read_csv(save(window, box.get_by_role("button", name="CSV"))[0])
    assert rows[0] == [WORDS("page.matrix.corner"), "a", "b", "c", "d", "e"]
    assert [row[0] for row in rows[1:]] == ["a", "b", "c", "d", "e"]
    assert [[float(one) for one in row[1:]] for row in rows[1:]] == [list(row) for row in part.probability]
    copy = box.get_by_role("button", name=TEXTS["copy"])
    copy.click()
    until(window, f"document.querySelector('#status').textContent === '{TEXTS['copied']}'")
    assert copy.inner_text() == TEXTS["copied"]
    pasted = window.evaluate("navigator.clipboard.readText()")
    assert [line.split("\t") for line in pasted.splitlines()] == rows
    assert box.locator("tbody td").first.inner_text().endswith("%")


# Paper


@pytest.fixture(scope="module")
def sheet(browser, file):
    """The page on A4, for the readers whose pages differ in nothing but what is printed."""
    with opened(browser, file, SHEET) as found:
        yield found


def print_for(window, reader, artifacts):
    """The PDF for a reader; the window shows the printed page afterwards, unfolded as for printing."""
    window.emulate_media(media="null")  # that of the screen, and for a PDF that of paper
    window.evaluate("(reader) => { document.documentElement.dataset.for = reader; }", reader)
    printed = window.pdf(prefer_css_page_size=True)
    (artifacts / f"{reader}.pdf").write_bytes(printed)
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^\]]+)\]", printed)}
    assert {tuple(sorted(map(round, box[2:]))) for box in boxes} == {(595, 842)}
    window.emulate_media(media="print")
    window.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert window.evaluate(OVERFLOWING) == []
    assert window.locator("details:not([open])").count() == 0
    for unseen in ("#controls", "nav", "#member-list", ".tools"):
        assert window.locator(f"{unseen}:visible").count() == 0
    shown = [one.get_attribute("id") for one in window.locator("main > section").all() if one.is_visible()]
    window.evaluate("dispatchEvent(new Event('afterprint'))")
    assert window.locator("details.case[open]").count() == 1  # the first
    return len(re.findall(rb"/Type /Page\b", printed)), shown


@pytest.mark.parametrize(
    ("reader", "least", "most", "parts"),
    [
        (DIRECTOR, 1, 2, ["overview"]),
        (ENGINEER, 3, 2 + 2 * 3, ["overview", "components"]),
        (FULL, 20, 60, list(list_parts(FULL))),
    ],
)
def test_each_reader_has_pages_of_a4_with_nothing_cut_off(sheet, artifacts, reader, least, most, parts):
    pages, shown = print_for(sheet, reader, artifacts)
    assert least <= pages <= most
    assert shown == parts


def test_the_page_of_the_paper_prints_the_study_first_and_everything(browser, full, folder, artifacts):
    with opened(browser, write_page(folder, "paper", full, reader=PAPER), SHEET) as window:
        pages, shown = print_for(window, PAPER, artifacts)
        assert 20 <= pages <= 60
        assert shown == list(list_parts(PAPER))


# Light, phone, keyboard, no scripts


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
    chart = draw(window, "#figure-network")
    assert dark[1] in chart.evaluate(
        """(svg) => [...svg.querySelectorAll("text")].map((one) => getComputedStyle(one).fill).map((colour) =>
        "#" + colour.match(/\\d+/g).map((part) => Number(part).toString(16).padStart(2, "0")).join(""))"""
    )
    window.emulate_media(media="print", color_scheme="dark")
    assert window.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    window.emulate_media(media="screen", color_scheme="light")


def test_the_tab_key_goes_through_the_page_in_few_stops(fresh):
    scroll_through(fresh)  # so that every table and figure has its buttons
    until(fresh, ALL_DRAWN)
    fresh.evaluate("scrollTo(0, 0)")
    stops = []
    while len(stops) <= 2 * MOST_STOPS:
        fresh.keyboard.press("Tab")
        stops.append(
            fresh.evaluate(
                "(({ tagName, className, textContent }) => [tagName, className, textContent.slice(0, 40)].join(' '))(document.activeElement)"
            )
        )
        if stops[-1].startswith("BODY"):
            break
    assert len(stops) <= MOST_STOPS, "\n".join(stops)


def test_the_keyboard_skips_to_the_overview_and_sorts(fresh):
    fresh.keyboard.press("Tab")
    assert fresh.evaluate("document.activeElement.className") == "skip"
    fresh.keyboard.press("Enter")
    assert fresh.evaluate("location.hash") == "#overview"
    table = "#table-answer"
    reach(fresh, table).locator("thead button").first.focus()
    fresh.keyboard.press("ArrowRight")
    fresh.keyboard.press("Enter")
    assert fresh.locator(f"{table} th").nth(1).get_attribute("aria-sort") == "ascending"


def test_a_link_into_something_folded_unfolds_it(window):
    window.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = false; })")
    window.evaluate("location.hash = '#table-trials'")
    window.locator("#table-trials").wait_for()
    assert window.locator("#table-trials tbody tr").first.is_visible()
    reach(window, "#table-answer").locator("th a").nth(2).click()
    window.locator("#case-3[open]").wait_for()
    window.locator("#table-components th a").first.click()
    window.locator("#case-1[open]").wait_for()


def test_a_phone_scrolls_in_one_direction(browser, file, artifacts):
    with opened(browser, file, PHONE) as window:
        window.evaluate(UNFOLD)
        scroll_through(window)
        assert window.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert not window.locator("nav ol").is_visible()
        assert window.evaluate(SMALL_TARGETS) == []
        assert window.evaluate(CARDS) == 0
        for table in ("#table-components", "#first-all", "#member-panel", "#table-answer"):
            row = window.locator(f"{table} tbody tr").first
            assert row.locator("td").first.evaluate("(one) => getComputedStyle(one, '::before').content") != "none"
        window.evaluate("scrollTo(0, 0)")
        window.screenshot(path=artifacts / "page-phone.png")
        window.locator("#member-panel .link").first.click()
        card = window.locator("#card").bounding_box()
        assert 0 <= card["x"] <= card["x"] + card["width"] <= PHONE["width"]
        assert window.evaluate(
            "document.querySelector('#card').scrollWidth <= document.querySelector('#card').clientWidth"
        )


def test_it_can_be_read_without_scripts(browser, file, full):
    with opened(browser, file, java_script_enabled=False) as window:
        assert find_headline(window) == make_overview(full, WORDS).headline
        assert window.locator("#table-answer tbody tr").count() == 3
        assert window.locator("#table-answer").is_visible()
        for tab in ("there", "next", "outside"):
            assert shown_rows(window, f"#members-{tab}") == 20
        assert window.locator("#figure-network .static svg").first.is_visible()
        for unseen in ("#controls", "#member-list", ".find", "#card"):
            assert window.locator(f"{unseen}:visible").count() == 0
        window.locator("#components details.case > summary").nth(1).click()
        assert window.locator("#case-2 .static svg").first.is_visible()
        window.locator("#provenance-title").click()
        assert window.locator("#provenance dl").is_visible()


def test_the_japanese_page_answers_in_japanese(browser, full, folder, artifacts):
    words = load_words("ja")
    file = write_page(folder, "full-ja", full, "ja")
    with opened(browser, file) as window:
        assert find_headline(window) == make_overview(full, words).headline
        assert window.locator("#tab-next").inner_text().startswith(words("page.script.tab_next"))
        window.locator("#search").fill("b-00033")
        assert window.locator("#status").inner_text() == words("page.script.found", n=2, total=MEMBERS)
        window.locator("#member-panel .link").first.click()
        card = window.locator("#card")
        names = re.compile("|".join((CHOSEN, SHOWN, NONE, r"[BM]-\d+")))
        assert re.findall("[A-Za-z]{2,}", names.sub("", card.inner_text())) == []
        window.screenshot(path=artifacts / "page-ja.png")
        window.keyboard.press("Escape")
        window.locator("#case").select_option(label=CHOSEN)
        assert find_headline(window) == make_overview(full, words, CHOSEN).headline
        window.locator("#clear").click()
        window.set_viewport_size(SHEET)
        window.emulate_media(media="print")
        window.evaluate(
            f"document.documentElement.dataset.for = '{FULL}'; dispatchEvent(new Event('beforeprint'))"
        )
        assert window.evaluate(OVERFLOWING) == []


# Names, numbers


def test_names_that_would_do_harm_do_none(drawn, artifacts):
    window, _ = drawn
    mark = window.locator(f"#figure-tradeoff-exact {LIVE} .mark-symbol.role-mark path").first
    mark.hover(force=True)
    window.locator("#vg-tooltip-element.visible").wait_for()
    for number in range(len(HOSTILE)):
        window.locator("#case").select_option(str(number))
        assert shown_rows(window, "#table-cases") == 1
    window.locator("#case").select_option("")
    window.locator("#search").fill(BAD_BRIDGE)
    window.locator("#member-panel .link", has_text=BAD_BRIDGE).first.click()
    assert window.locator("#card h2").inner_text() == BAD_BRIDGE
    window.keyboard.press("Escape")
    assert window.evaluate("window.harmed") is None
    assert window.locator("img").count() == 0
    assert window.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    window.screenshot(path=artifacts / "page-hostile.png")
    window.set_viewport_size(SHEET)
    window.emulate_media(media="print")
    assert window.evaluate(OVERFLOWING) == []


def test_of_very_many_components_only_what_is_near_is_drawn(many):
    assert many.locator(".panel").count() > 100
    many.locator("#case").select_option(label=f"{CHOSEN} 15")
    assert many.locator("#case-15").get_attribute("open") == ""
    draw(many, "#future-15-figure-1")
    assert many.locator("details.case:visible").count() == 1
    assert many.locator(LIVE).count() < 40
    assert many.evaluate("document.querySelectorAll('*').length") < MOST_NODES * MANY
    many.keyboard.press("Escape")


def test_very_many_members_stay_small_and_answer(browser, document, folder):
    full = fill_document(document, MOST_MEMBERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_module, "draw_svg", lambda spec, prefix: "<svg></svg>")
        file = write_page(folder, "members", full)
    assert file.stat().st_size < MOST_BYTES
    with opened(browser, file) as window:
        window.locator("#tab-next").wait_for()
        assert window.evaluate("document.querySelectorAll('*').length") < MOST_OF_MEMBERS
        window.locator("#search").fill("B-05999")
        assert window.locator("#status").inner_text() == "2 of 12,000 members"
        window.locator("#member-panel .link").first.click()
        assert window.locator("#card h2").inner_text() == "B-05999"


# Accessibility


@pytest.mark.parametrize(
    ("viewport", "scheme", "lang", "media"),
    [
        (DESKTOP, "light", "en", "screen"),
        (SHEET, "light", "en", "print"),
        (PHONE, "dark", "ja", "screen"),
    ],
)  # each of the two widths, schemes and languages once, and paper
def test_axe_finds_nothing(browser, full, folder, viewport, scheme, lang, media):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    file = write_page(folder, "full" if lang == "en" else f"full-{lang}", full, lang)
    with opened(browser, file, viewport, color_scheme=scheme) as window:
        draw(window, "#figure-network")
        if viewport == DESKTOP:  # else as it is opened: with the first component
            window.evaluate(UNFOLD)
        window.emulate_media(media=media, color_scheme=scheme)
        window.evaluate(FEWER)  # more rows and charts of another component are more of the same
        found = axe.Axe().run(window, options={"resultTypes": ["violations"]}).response["violations"]
        if media == "screen":  # a card, too
            window.locator("#member-panel .link").first.click()
            found += axe.Axe().run(window, "#card", options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []
