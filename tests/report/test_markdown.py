"""The Markdown report says what the page says, and no name breaks it or becomes markup."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_cases import (
    HOSTILE,
    WORDS,
    failed_document,
    hostile_document,
    plain_document,
    tables_of,
    without_cases,
)

from rekka.report.markdown import escape_markdown, markdown_table, render_markdown, render_tables
from rekka.report.overview import make_overview
from rekka.report.statements import (
    QUESTIONS,
    Wording,
    explain_case,
    explain_stability,
    list_causes,
    list_methods,
    split_findings,
)
from rekka.report.views import Cell, Column, FigureView, PanelView, Row, TableView

FIGURE = FigureView(
    "tradeoff-exact",
    "Accuracy against cost",
    "Each mark is a trial.",
    (PanelView("one", "One", "z-score is [cheapest]", {}), PanelView("two", "Two", "in 2 of 2 cases", {})),
)


def render(document, figures=(), pictures=None):
    return render_markdown(document, list(tables_of(document).values()), figures, WORDS, pictures)


@given(st.text())
@example("| a || b \\| c \\")
@example("<script>alert(1)</script> &lt; &amp;")
@example("*a* _b_ `c` [d](e) ![f](g) ~~h~~ $i$ #j")
@example("1. a")
@example("- a")
@example("---")
@example("https://x.example www.x.example me@x.example")
def test_any_text_is_one_line_without_markup(text):
    escaped = escape_markdown(text)
    assert "\n" not in escaped
    assert "\r" not in escaped
    left = re.sub(r"\\[\\`*_{}\[\]|~$#:.@\-+=)]", "", escaped)
    assert not re.search(r"[`*_\[\]|~$#<>@]|://|(?i:www\.)", left)
    assert not re.search(r"&(?!amp;|lt;|gt;)", left)
    assert not re.match(r"([-+]|\d{1,9}[.)])(\s|$)|[-=]+$", escaped)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_table_keeps_its_columns(texts):
    columns = tuple(Column(str(n), text) for n, text in enumerate(texts))
    table = TableView("t", "T", columns, (Row(tuple(Cell(text, text) for text in texts)),))
    lines = markdown_table(table).splitlines()
    assert len(lines) == 3
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines} == {len(texts) + 1}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("0.6895 (0.6403 to 0.7387)", "0.6895 (0.6403 to 0.7387)"),
        ("+0.047", "+0.047"),
        ("bridge_length", r"bridge\_length"),
        ("a | b\nc", r"a \| b c"),
        ("<b>", "&lt;b&gt;"),
        ("2. Pier", r"2\. Pier"),
    ],
)
def test_texts_stay_readable(text, escaped):
    assert escape_markdown(text) == escaped


def test_the_overview_comes_first_then_bridges_and_components():
    text = render(plain_document())
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert text.startswith("# Condition forecast: Bridges of a district\n")
    first = ("network", "bridges", "forecast", "models", "answer")
    assert headings[:5] == [WORDS(f"section.{name}.title") for name in first]
    assert headings[-1] == WORDS("section.provenance.title")
    assert escape_markdown(make_overview(plain_document(), WORDS).headline) in text.partition("## ")[0]
    assert "There is a model" in text.partition(f"## {WORDS('section.answer.title')}")[2]


def test_it_has_every_table_finding_and_hypothesis():
    document = plain_document()
    text = render(document)
    for name, table in tables_of(document).items():
        if name not in ("findings", "hypotheses"):
            assert f"### {escape_markdown(table.title)}\n" in text
            assert markdown_table(table) in text
    for one in document.findings:
        assert (escape_markdown(one.explanation) in text) == (one.verdict in ("issue", "tip"))
    for one in document.hypotheses:
        assert escape_markdown(one.evidence) in text
    for remark in document.stability.remarks:
        assert escape_markdown(remark) in text
    assert "confirm = true" in text
    assert "\\theta_k" in text


def test_it_is_whole():
    """Each case with its sentences and certificate; what a certificate asks; what passed; the two presets."""
    document = plain_document()
    text, tell = render(document), Wording(WORDS)
    for case in document.cases:
        told = explain_case(document, case, tell)
        assert told.certificate
        for line in (told.label, *told.lines, *told.certificate):
            assert escape_markdown(line.striptags()) in text
    for question in QUESTIONS:
        assert escape_markdown(WORDS(f"section.certificates.{question}")) in text
    for one in (*list_causes(document, tell), *list_methods(document, tell), explain_stability(document, tell)):
        assert escape_markdown(one.striptags()) in text
    for finding in split_findings(document.findings)[1]:
        assert f"- {finding.code} " in text


def test_figures_have_their_captions_and_where_drawn_their_pictures():
    without = render(plain_document(), [FIGURE])
    assert (
        "### Accuracy against cost\n\nz-score is \\[cheapest\\] in 2 of 2 cases\n\nEach mark is a trial."
        in without
    )
    drawn = render(plain_document(), [FIGURE], {"tradeoff-exact": "figures/my plot.svg"})
    assert "![z-score is \\[cheapest\\] in 2 of 2 cases](<figures/my%20plot.svg>)" in drawn


def test_hostile_names_stay_names():
    text = render(hostile_document())
    outside = re.sub(r"(`{3,})toml\n.*?\n\1", "", text, flags=re.DOTALL)
    assert "<script>" not in outside
    assert "&lt;script&gt;" in outside
    assert not re.search(r"(?<!\\)\]\(|(?<!\\)://", outside)
    for name in HOSTILE:
        assert escape_markdown(name) in outside
    assert text == render(hostile_document())


@pytest.mark.parametrize("make", [failed_document, lambda: without_cases(plain_document())])
def test_a_study_without_results_is_told_in_sentences(make):
    document = make()
    text = render(document)
    assert WORDS("section.answer.title") in text
    assert not re.search(r"\| (None|nan) \|", text)


def test_all_tables_stand_under_their_titles():
    tables = list(tables_of(plain_document()).values())
    text = render_tables(tables)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [escape_markdown(one.title) for one in tables]


def test_a_plan_with_a_fence_in_it_stays_in_its_own():
    document = plain_document()
    plan = document.provenance.model_copy(update={"plan": "a = 1\n````\n# no heading\n", "again": "rekka compare"})
    text = render(document.model_copy(update={"provenance": plan}))
    assert "`````toml\na = 1\n````\n# no heading\n`````\n" in text
    assert "```\nrekka compare\n```" in text
