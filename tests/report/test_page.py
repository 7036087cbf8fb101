"""The page as text: sections in order, the same bytes, nothing from the network, no text from data as markup."""

import base64
import gzip
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from network_cases import fill_document
from page_cases import CHOSEN, HOSTILE, MANY, MOST_DRAWN, NONE, SHOWN, repeat_case, repeat_figures
from table_cases import tables_of

from rekka.core.errors import BadOption
from rekka.report import outline
from rekka.report import page as page_module
from rekka.report.charts.base import PAGE
from rekka.report.charts.figures import list_figures
from rekka.report.outline import (
    CUT,
    IN_SENTENCES,
    READERS,
    SECTIONS,
    UNDER,
    leave_figures,
    list_cases,
    list_parts,
    list_sections,
    list_variants,
)
from rekka.report.overview import make_overview
from rekka.report.page import Links, list_assets, render_page
from rekka.report.tables.catalog import list_tables
from rekka.report.tables.study import select_as_paper
from rekka.report.text import load_words
from rekka.report.views import Cell, Column, Row, TableView

MOST_BYTES = 3_000_000
MOST_OF_MANY = 5_000_000  # of a page with 12,000 members of one component
TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # letters that turn the direction of a line
VOID = {"meta", "link", "br", "hr", "img", "input"}
WORDS = load_words("en")
BY_CASE = [name for names in CUT.values() for name in names]


class Reader(HTMLParser):
    """Elements as they open and close, their attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.attributes, self.texts, self.unclosed = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.unclosed.append((tag, self.open[-3:], self.getpos()))
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def section_ids(self):
        return [value for tag, name, value in self.attributes if tag == "section" and name == "id"]


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def texts_of(page):
    return " ".join(" ".join(Reader(page).texts).split())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.usefixtures("no_pictures")
def test_the_parts_are_there_in_order(document, reader):
    read = Reader(render_page(document, reader=reader))
    parts = list_parts(reader)
    assert [name for name in read.section_ids() if name in parts] == list(parts)
    assert next(iter(parts)) == ("choice" if reader == "paper" else "overview")
    for own in parts.values():
        shown = [name for name in read.section_ids() if name in own]
        assert shown == [name for name in own if name in shown]
    assert sorted(name for own in parts.values() for name in own) == sorted(SECTIONS)


def test_a_reader_that_is_none_is_refused(document):
    with pytest.raises(BadOption, match="reader is 'nobody'"):
        render_page(document, reader="nobody")


def test_under_the_papers_conditions_the_papers_rule_selects(document):
    page = Reader(render_page(document, reader="paper"))
    paper = [one for one in document.methods if one.preset == "paper" and one.same_as is None]
    rows = tables_of(select_as_paper(document))["methods"]
    places = {column.key: n for n, column in enumerate(rows.columns)}
    shown = [row.cells for row in rows.rows if row.cells[0].value == "paper"]
    assert (
        [cells[places["selected"]].value for cells in shown] == [one.pareto for one in paper] != [0] * len(paper)
    )
    assert [cells[places["guarded"]].value for cells in shown] == [one.selected for one in paper]
    assert WORDS("column.guarded") in page.texts
    assert WORDS("column.guarded") not in Reader(render_page(document)).texts


def test_where_there_are_few_components_the_papers_figures_are_left_out(document):
    kept = {one.case for one in document.cases[:2]}
    parts = ("cases", "answers", "models", "trials", "selection", "verdicts", "calibration", "presets", "floor")
    few = document.model_copy(
        update={name: tuple(one for one in getattr(document, name) if one.case in kept) for name in parts}
    )
    names = [one.name for one in list_figures(document, WORDS, PAGE)]
    figures = list_figures(few, WORDS, PAGE)
    left = {one.name for one in figures} - {one.name for one in leave_figures(figures, 2, "director")}
    assert left == {name for name in names if name.startswith(("tradeoff", "heatmap"))} != set()
    assert leave_figures(figures, 2, "paper") == leave_figures(figures, 3, "director") == figures
    assert "it compares components, and this study has 2 components" in texts_of(render_page(few))


def test_the_first_screen_says_what_the_overview_says(document, page):
    text = texts_of(page)
    for case in (None, *(one.case for one in document.cases)):
        found = make_overview(document, WORDS, case)
        cards = (part for card in found.cards for part in (card.label, card.value, card.detail))
        for line in (found.headline, *cards, *found.missing, *found.actions, *found.facts):
            assert line in text.replace("\u2002", " ") or " ".join(line.split()) in text


def test_scripts_and_styles_run_by_their_digests_alone(page, read):
    policy = next(value for tag, name, value in read.attributes if name == "content" and "default-src" in value)
    assert "unsafe" not in policy
    asked = dict(part.split(" ", 1) for part in policy.split("; "))
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found)
        assert {f"'sha256-{one}'" for one in digests} == set(asked[kind].split())
    assert not [
        value for tag, name, value in read.attributes if name == "style" and tag not in ("svg", "g", "path")
    ]


@pytest.mark.usefixtures("no_pictures")
def test_scripts_and_styles_can_be_files_beside_it(document):
    page = render_page(document, assets="/static")
    assert "<style" not in page
    assert "<script>" not in page
    assert (
        set(re.findall(r'"/static/([^"]+)"', page)) == set(list_assets()) == {"rekka.css", "rekka.js", "vega.js"}
    )
    assert "script-src 'self'; style-src 'self'" in html.unescape(page)
    whole = render_page(document)
    assert all(text in whole for text in list_assets().values())


@pytest.mark.usefixtures("no_pictures")
def test_a_printed_page_is_unfolded_and_has_no_script(document):
    page = render_page(document, printed=True)
    assert "<script" not in page
    assert set(re.findall(r"<details[^>]*>", page.partition("<main>")[2])) <= {
        one for one in re.findall(r"<details[^>]*>", page) if one.endswith(" open>")
    }


@pytest.mark.usefixtures("no_pictures")
def test_the_page_leads_to_what_is_beside_it(document):
    page = render_page(document, links=Links({"ja": "report-ja.html"}, "report.xlsx"))
    assert '<a href="report-ja.html" lang="ja" hreflang="ja">日本語</a>' in page
    assert '<a href="report.xlsx" download>' in page
    assert "report.xlsx" not in render_page(document)


def test_the_page_has_every_member_by_columns(document, page):
    packed = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="members-data">(.*?)</script>', page)[1])))
    every = document.network.every
    assert packed["bridge"] == list(every.bridge)
    assert packed["past"] == list(every.past)
    assert packed["soon"] == pytest.approx(every.soon, rel=1e-3)
    assert packed["ratings"] == ["a", "b", "c", "d", "e"]
    assert [packed["places"][case] for case in packed["case"]] == [
        [one.case for one in document.cases].index(every.cases[case]) for case in every.case
    ]


@pytest.mark.usefixtures("no_pictures")
def test_twelve_thousand_members_stay_below_five_megabytes(document):
    page = render_page(fill_document(document, 12_000, alone=True))
    assert len(page.encode()) < MOST_OF_MANY


def test_the_same_document_gives_the_same_bytes(document, page):
    assert render_page(document) == page


def test_every_element_is_closed_and_no_anchor_is_twice(read):
    assert read.unclosed == []
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))


def test_what_refers_to_an_anchor_finds_it(read):
    links = [value[1:] for tag, name, value in read.attributes if name == "href"]
    labels = [one for _, name, value in read.attributes if name == "aria-labelledby" for one in value.split()]
    assert links
    assert set(links + labels) <= set(read.ids)


def test_nothing_is_asked_of_the_network(page, read):
    asked = [(tag, name, value) for tag, name, value in read.attributes if name in ("src", "href", "action")]
    assert {value[0] for _, _, value in asked} == {"#"}
    assert "@import" not in page
    assert re.search(r"url\((?!#)", re.sub(r"<script>.*?</script>", "", page, flags=re.S)) is None
    policy = next(value for tag, name, value in read.attributes if name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_no_number_is_shown_that_is_none(page):
    assert re.search(r"\b(nan|None|inf|NaN|True|False)\b", texts_of(page)) is None


def test_there_is_no_date_but_those_of_the_document(page, document):
    assert document.provenance.begun is None
    days = {document.network.base, *document.network.every.seen}
    assert set(re.findall(r"\b20\d\d-\d\d-\d\d\b", texts_of(page))) <= days


def test_headings_leave_no_level_out(page):
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page.split("<script>")[0])]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_and_figure_has_one_place(document):
    tables, figures = list_tables(document, WORDS), list_figures(document, WORDS, PAGE)
    names = [case.case for case in document.cases]
    sections = list_sections(tables, figures, names, WORDS)
    cases = [case for section in CUT for case in list_cases(tables, figures, names, section)]
    shown = [one.view.name for section in sections for one in section.tables]
    assert sorted(shown) == sorted(one.name for one in tables if one.name not in (*IN_SENTENCES, *BY_CASE))
    assert {one.view.name for case in cases for one in case.tables} == set(BY_CASE)
    places = [
        *(one for place in (*sections, *cases) for one in place.figures),
        *list_variants(figures, names).values(),
    ]
    drawn = [one.view.name for one in places]
    assert sorted(drawn) == sorted(one.name for one in figures)


def test_a_table_that_no_section_names_is_shown_all_the_same(document):
    view = TableView("weather", "Weather", (Column("day", "day"),), (Row((Cell("Monday", "Monday"),)),))
    sections = list_sections([view], [], [], WORDS)
    assert [section.id for section in sections if section.tables] == ["tables"]


def test_every_row_and_cell_of_a_table_is_on_the_page(document, page):
    body = page.split("<main>")[1]
    for view in list_tables(document, WORDS):
        if view.name in IN_SENTENCES or view.name in BY_CASE:
            continue
        own = re.search(rf'<div class="table [^"]*" id="table-{view.name}">(.*?)</table>', body, re.S)
        assert own, view.name
        under = {"answer": UNDER, "risks": ("remark", "threshold")}.get(view.name, ())
        columns = [column for column in view.columns if column.key not in under]
        assert own[1].count("<tr") == len(view.rows) + 1
        assert own[1].count('scope="col"') == len(columns)
        assert own[1].count('scope="row"') == len(view.rows)


def test_figures_can_be_read_without_a_script(page, document):
    figures = list_figures(document, WORDS, PAGE)
    panels, live = (sum(len(one.panels) for one in figures if one.live or not asked) for asked in (False, True))
    assert page.count('<div class="static" role="img"') == panels
    assert page.split("<script>")[0].count("<svg ") == panels
    assert page.count('<script type="application/json">') == live > 0
    assert "var(--ink)" in page


def test_specs_can_be_read_back_and_have_no_markup(page):
    specs = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    for text in specs:
        assert "<" not in text
        json.loads(text)


def test_the_headline_counts(document, page):
    text = texts_of(page)
    assert "There is a model to use in 1 of 3 components." in text
    assert "Chosen: z-score in 1." in text
    assert f"Without a model: {SHOWN} , {NONE} ." in text
    assert "The bridges are simulated" in text
    assert "Confirmed: once, on the confirmation rows" in text


def test_a_default_that_was_turned_down_is_marked(page):
    assert "Not chosen: not to be used. This is the fit of the default method, z-score" in page
    assert "There are no fitted hazards to show: ratings a, c" in page


@pytest.mark.usefixtures("no_pictures")
def test_trust_in_the_only_component_is_said_once(document):
    full, alone = (fill_document(one, 10) for one in (document, repeat_case(document, CHOSEN, 1)))
    levels = [
        re.search(r'<dl class="levels">(.*?)</dl>', render_page(one), re.S)[1].count("<dt>")
        for one in (full, alone)
    ]
    assert levels == [len(full.cases) + 1, 1]


@pytest.mark.usefixtures("no_pictures")
def test_an_unfinished_study_says_so(document):
    study = document.study.model_copy(update={"done": 5})
    page = render_page(document.model_copy(update={"study": study}))
    assert "This study is not finished: 5 of 12 trials and 6 of 6 choices are done." in texts_of(page)


@pytest.mark.usefixtures("no_pictures")
def test_a_study_that_golden_rows_chose_says_that_nothing_is_confirmed(document):
    unknown = dict.fromkeys(
        f"{name}_{end}"
        for name in ("accuracy", "log_loss", "persistence", "no_covariates")
        for end in ("low", "high")
    )
    unknown |= {"confirmed": False, "beats_persistence": None, "beats_no_covariates": None}
    answers = tuple(one.model_copy(update=unknown) for one in document.answers)
    study = document.study.model_copy(update={"rule": "pareto", "select_on": "golden", "kind": "tables"})
    cases = tuple(case.model_copy(update={"judged_on": "golden"}) for case in document.cases)
    text = texts_of(render_page(document.model_copy(update={"answers": answers, "study": study, "cases": cases})))
    assert "Nothing here is confirmed: the choice was made on the confirmation rows" in text
    assert "The paper's rule selects a model in 1 of 3 components; nothing confirms it." in text
    assert "The bridges are simulated" not in text
    assert "The choice was made on: confirmation rows. Confirmed: nothing." in text


@pytest.mark.usefixtures("no_pictures")
def test_golden_rows_that_were_seen_before_do_not_confirm(document):
    seen = {"confirmed": False, "seen": "looked at in run-1"}
    answers = tuple(one.model_copy(update=seen) if one.method else one for one in document.answers)
    text = texts_of(render_page(document.model_copy(update={"answers": answers})))
    assert "not confirmed: looked at in run-1" in text
    assert text.count("the confirmation rows had been used before, with another model") == 1
    assert "the choice was made on the confirmation rows" not in text


@pytest.mark.usefixtures("no_pictures")
def test_golden_rows_that_were_not_looked_at_confirm_nothing(document):
    unseen = {
        "confirmed": False,
        "scored_on": "validation",
        "beats_persistence": None,
        "beats_no_covariates": None,
    }
    answers = tuple(one.model_copy(update=unseen) if one.method else one for one in document.answers)
    text = texts_of(render_page(document.model_copy(update={"answers": answers})))
    assert "the confirmation rows were not looked at" in text
    assert "not confirmed: scored on the validation rows it was chosen on" in text


@pytest.mark.usefixtures("no_pictures")
def test_a_higher_point_from_another_start_is_told(document):
    short = {
        "certified": False,
        "decrement": 1e-12,
        "shortfall": 0.5,
        "verdict": "not certified: it stopped short",
    }
    trials = tuple(one.model_copy(update=short) for one in document.trials)
    text = texts_of(render_page(document.model_copy(update={"trials": trials})))
    assert "This is not it: about 0.50 log-likelihood units remain to the maximum" in text
    assert "This is it:" not in text


@pytest.mark.usefixtures("no_pictures")
def test_one_preset_and_no_refits_are_told_with_the_commands(document):
    study = document.study.model_copy(update={"presets": document.study.presets[1:]})
    gone = {"study": study, "presets": (), "stability": None, "calibration": (), "hypotheses": ()}
    text = texts_of(render_page(document.model_copy(update=gone)))
    assert "rekka compare --preset both runs both." in text
    assert "rekka stability RUN" in text
    assert "The calibration was left out of this report" in text


def test_a_study_in_which_everything_failed(document):
    failed = {
        "status": "solver failed",
        "certified": False,
        "converged": False,
        "eligible": False,
        "selected": False,
    }
    numbers = (
        "log_likelihood decrement shortfall condition_number accuracy log_loss brier rps macro_recall verdict"
    )
    none = dict.fromkeys(
        [*numbers.split(), "maximum_exists", "plateau_train", "seconds", "iterations", "evaluations"]
    )
    trials = tuple(trial.model_copy(update=failed | none | {"pareto": False}) for trial in document.trials)
    answer = dict.fromkeys(type(document.answers[0]).model_fields)
    answers = tuple(
        type(one)(
            **answer
            | {"case": one.case, "why": "none", "reason": "not certified", "confirmed": False, "same_model": ()}
        )
        for one in document.answers
    )
    models = tuple(
        one.model_copy(
            update={
                "chosen": False,
                "reason": "it failed",
                "coefficients": (),
                "ratios": (),
                "years": (),
                "forecast": None,
            }
        )
        for one in document.models
    )
    parts = {"trials": trials, "answers": answers, "models": models, "calibration": (), "stability": None}
    page = render_page(document.model_copy(update=parts))
    assert Reader(page).unclosed == []
    text = texts_of(page)
    assert "There is no model to use in any of 3 components." in text
    assert "It has no certificate: solver failed." in text
    assert re.search(r"\b(nan|None|inf)\b", text) is None


@pytest.mark.usefixtures("no_pictures")
def test_one_case_with_one_trial(document):
    study = document.study.model_copy(update={"methods": ("zscore",), "planned": 1, "done": 1})
    parts = {
        name: tuple(part for part in getattr(document, name) if part.case == NONE)
        for name in ("cases", "answers", "models", "verdicts", "selection")
    }
    parts |= {"trials": document.trials[-1:], "study": study, "presets": (), "floor": (), "calibration": ()}
    text = texts_of(render_page(document.model_copy(update=parts | {"stability": None})))
    assert "There is no model to use in the one component." in text
    assert "1 component by 1 method (z-score)" in text


def test_a_study_stopped_before_its_first_trial(document):
    names = "cases answers findings trials methods selection verdicts floor presets hypotheses calibration models"
    study = document.study.model_copy(update={"done": 0})
    page = render_page(
        document.model_copy(update=dict.fromkeys(names.split(), ()) | {"study": study, "stability": None})
    )
    assert Reader(page).unclosed == []
    assert "No check found anything." in page
    assert "No component has a fitted model." in page


@pytest.mark.usefixtures("no_pictures")
def test_a_plan_that_cannot_be_read_leaves_the_margins_out(document):
    for plan in ("", "[guard"):
        own = document.provenance.model_copy(update={"plan": plan})
        assert "log-loss margin" not in render_page(document.model_copy(update={"provenance": own}))


def test_text_from_data_never_becomes_markup(hostile_page):
    page, read = hostile_page, Reader(hostile_page)
    assert read.unclosed == []
    assert len(read.ids) == len(set(read.ids))
    assert not any(name.startswith("on") for _, name, _ in read.attributes)
    assert "<img" not in page.split("<script>")[0]
    assert "49 </script>" not in page
    text = "".join(read.texts)
    for name in HOSTILE.values():
        assert name.translate(dict.fromkeys(TURNING)) in text
    assert not set(map(chr, TURNING)) & set(page)
    assert "n" * 300 not in " ".join(read.ids)
    assert "\\u2028" in page


def test_names_from_data_keep_their_direction(page, hostile_page):
    assert f"<bdi>{CHOSEN}</bdi>" in page
    assert f'<option value="2" dir="auto">{HOSTILE[NONE]}</option>' in hostile_page


def test_it_stays_below_three_megabytes(page):
    assert len(page.encode()) < MOST_BYTES


def test_very_many_cases(document, monkeypatch):
    drawn = []
    monkeypatch.setattr(outline, "MOST_DRAWN", MOST_DRAWN)
    monkeypatch.setattr(page_module, "draw_svg", lambda spec, prefix: drawn.append(prefix) or "<svg></svg>")
    figures = repeat_figures(list_figures(document, WORDS, PAGE), CHOSEN, MANY)
    monkeypatch.setattr(page_module, "list_figures", lambda *_: figures)
    page = render_page(repeat_case(document, CHOSEN, MANY))
    assert Reader(page).unclosed == []
    assert page.count('<details class="case"') == MANY
    own = {name.split("-figure")[0] for name in drawn if name.startswith(("case-", "future-"))}
    assert own == {f"{kind}-{number}" for kind in ("case", "future") for number in range(1, MOST_DRAWN + 1)}
    assert page.count("Without its script the tables have its numbers") > MANY


def test_a_language_that_is_none_is_refused(document):
    with pytest.raises(BadOption, match="lang"):
        render_page(document, "xx")
