"""LaTeX gets every table in the paper's manner, and no character that it would act on."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_cases import HOSTILE, hostile_document, plain_document, tables_of

from rekka.report.export import LONGEST_FLOAT, OTHER_SCRIPTS, escape_latex, latex_table, render_latex
from rekka.report.views import Cell, Column, Row, TableView

# what escaping may leave: escaped signs, commands closed by {} or a space, short mathematics, empty groups, quotes
ALLOWED = re.compile(
    r"\\[{}$&#%_,]|\\text[a-z]+\{\}|\\dots\{\}|\$(?:-|\^\{[-0-9]+\}|\\[a-z]+)\$|\{[][*]\}|[-',`]\{\}|~|``"
)
SPECIAL = re.compile(r"[\\{}$&#%_^~\[\]*|<>\"\n\r\t]")


@given(st.text())
@example("\\input{/etc/passwd} $x$ 50% a_b #1 & {x} ~ ^ <b> | \" ` ' -- ,, ''")
@example("10⁻⁵ m² 3×4 ∞ − – — … ° ≤ →")
@example("two\nlines\tand\r\x00controls \u202e \u200b")
@example("".join(HOSTILE))
def test_no_special_character_is_left(text):
    escaped = escape_latex(text)
    assert not SPECIAL.search(ALLOWED.sub("", escaped)), escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("age_at_inspection_1", r"age\_at\_inspection\_1"),
        ("50%", r"50\%"),
        ("−0.018", "$-$0.018"),
        ("1.29×10⁻⁵", r"1.29$\times$10$^{-5}$"),
        ("m²", "m$^{2}$"),
        ("–", "--"),
        ("--preset exact", "-{}-preset exact"),
        ("<0.001", r"\textless{}0.001"),
        ("[x] * ]", "{[}x{]} {*} {]}"),
        ("a\nb", "a b"),
        ("橋脚 Brücke", "橋脚 Brücke"),
        ("Bru\u0308cke", "Brücke"),
        ("zscore's, max", "zscore's, max"),
        ("90\u00b0", r"90\textdegree{}"),
    ],
)
def test_signs_become_what_pdflatex_has(text, escaped):
    assert escape_latex(text) == escaped


def test_signs_of_the_tables_themselves_all_have_a_command():
    text = render_latex(tables_of(plain_document()).values())
    assert not re.search("[^\x00-\x7f]", text)
    assert OTHER_SCRIPTS not in text
    assert r"\usepackage{array,booktabs,longtable}" in text.split(r"\begin")[0]


def test_names_in_other_scripts_are_told_of():
    assert OTHER_SCRIPTS in render_latex(tables_of(hostile_document()).values())


def test_a_table_is_laid_out_as_in_the_paper():
    text = latex_table(tables_of(plain_document())["trials-exact"])
    assert text.startswith(
        "\\begin{table}[htbp]\n\\centering\n\\caption{Every trial, preset exact: accuracy / seconds}"
    )
    assert r"\label{tab:trials-exact}" in text
    assert r"\begin{tabular}{lrrrr}" in text
    order = [text.index(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}")]
    assert order == sorted(order)
    assert r"\textbf{component} & \textbf{max} & \textbf{min-max} & \textbf{z-score} & \textbf{Box-Cox} \\" in text
    assert re.search(r"\\textbf\{0\.\d{4} / 0\.\d+\}", text)


@pytest.mark.parametrize("document", [plain_document, hostile_document])
def test_every_row_has_every_column(document):
    for table in tables_of(document()).values():
        text = latex_table(table)
        body = text.split("\\endhead" if "longtable" in text else "\\midrule")[1].split("\\bottomrule")[0]
        lines = [line for line in body.splitlines() if line]
        assert len(lines) == len(table.rows)
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1
            assert line.endswith(r" \\")


def test_groups_are_closed():
    for table in tables_of(hostile_document()).values():
        text = re.sub(r"\\\\|\\[{}]", "", latex_table(table))
        depth = 0
        for sign in re.findall(r"[{}]", text):
            depth += 1 if sign == "{" else -1
            assert depth >= 0
        assert depth == 0
        assert text.count(r"\begin{") == text.count(r"\end{")


def test_a_long_table_goes_over_pages_and_repeats_its_head():
    rows = tuple(Row((Cell(n, str(n)), Cell("x", "x" * 50))) for n in range(LONGEST_FLOAT + 1))
    table = TableView("long_one", "Long", (Column("n", "n", "number", "s"), Column("x", "x")), rows, "A note.")
    text = latex_table(table)
    assert r"\begin{longtable}{r>{\raggedright\arraybackslash}p{0.60\linewidth}}" in text
    assert text.count(r"\textbf{n (s)}") == 2
    assert r"\endhead" in text
    assert r"\label{tab:long-one}" in text
    assert "A note." in text
