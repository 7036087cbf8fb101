"""The workbook for people: the overview in the words of the page, members, components and matrices in their figures."""

import io
import re
import zipfile

import polars as pl
import pytest
from table_cases import HOSTILE, WORDS, failed_document, hostile_document, plain_document, tables_of

import rekka
from rekka.core.errors import BadOption
from rekka.report.networks import find_network
from rekka.report.overview import list_components, make_overview, name_level
from rekka.report.report import Report, refuse_workbook
from rekka.report.summarize import summarize
from rekka.report.tables.catalog import list_tables
from rekka.report.text import load_words
from rekka.report.workbook import is_workbook, render_report


def render(document, lang="en"):
    words = load_words(lang)
    return render_report(document, list_tables(document, words), words)


def read(content, sheet, *, head=True):
    options = {"has_header": head, "infer_schema_length": None, "raise_if_empty": False}
    return pl.read_excel(io.BytesIO(content), sheet_name=sheet, **options)


def lines_of(content, sheet):
    return [[cell for cell in row if cell is not None] for row in read(content, sheet, head=False).rows()]


@pytest.fixture(scope="module")
def content():
    return render(plain_document())


@pytest.fixture(scope="module")
def dated():
    """A study of inspections with dates: each member is known."""
    inspections = rekka.simulate_inventory(60, preset="plain", seed=4).inspections
    some = inspections.filter(pl.col("case").is_in(["Deck slab", "Pier"]))
    study = rekka.compare(some, methods=["zscore"], guard={"resamples": 0}, select_on="validation", confirm=False)
    return summarize(study, network=find_network(study).network)


def test_people_come_first_and_the_record_last(content):
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        names = re.findall(r'<sheet name="([^"]+)"', book.read("xl/workbook.xml").decode())
    assert names[:5] == ["overview", "all members", "components", "transition matrices", "contents"]
    assert names[-2:] == ["versions", "run record"]
    assert set(tables_of(plain_document())) <= set(names)


def test_the_overview_has_the_words_of_the_page(content):
    made = make_overview(plain_document(), WORDS)
    lines = lines_of(content, "overview")
    assert lines[0][0].startswith("Condition forecast: ")
    texts = {line[0] for line in lines if line}
    assert {made.headline, made.trust, *made.missing} <= texts
    assert {f"{number} {text}" for number, text in enumerate(made.actions, start=1)} <= texts
    for name in ("label", "value", "detail"):
        assert [getattr(card, name) for card in made.cards] in lines
    for row in list_components(plain_document(), WORDS):
        (line,) = (line for line in lines if line[0] == row.case)
        assert line[2] == f"{row.members}"
        assert line[-2] == name_level(row.trust.level, WORDS)
    named = [(one.bridge, one.member) for one in made.first]
    assert [tuple(line[:2]) for line in lines if tuple(line[:2]) in named] == named


def test_members_are_those_of_the_network(dated):
    every = dated.network.every
    found = read(render(dated), "all members")
    assert found["bridge"].to_list() == list(every.bridge)
    assert found["last seen"].to_list() == list(every.seen)
    assert found["expected year"].to_list() == list(every.calendar)
    assert found["list"].to_list() == [
        ("next", "at the threshold", "outside the data, or last seen long ago")[tab] for tab in every.tab
    ]
    assert found["component"].to_list() == [every.cases[case] for case in every.case]
    assert found["median years until the threshold"].to_list() == pytest.approx(list(every.median))
    for name, values in zip(every.covariates, every.values, strict=True):
        assert found[name].to_list() == pytest.approx(list(values))
    ratings = dated.network.ratings
    assert found["rating now"].to_list() == [ratings.name(state) for state in every.state]
    assert found["threshold"].to_list() == [ratings.rated(every.threshold[case]) for case in every.case]


def test_without_dates_there_are_the_first_members(content):
    risks = plain_document().network.risks
    found = read(content, "all members")
    assert found["bridge"].cast(pl.String).to_list() == [one.bridge for one in risks]
    assert found["reached in 5 years"].to_list() == pytest.approx([one.reached for one in risks])


def test_components_have_counts_years_and_trust(content):
    found = read(content, "components").to_dicts()
    rows = list_components(plain_document(), WORDS)
    assert [row["component"] for row in found] == [one.case for one in rows]
    for row, one in zip(found, rows, strict=True):
        assert row["members"] == one.members
        assert row["years from new until the threshold, median"] == pytest.approx(one.passage.median)
        assert row["trust"] == name_level(one.trust.level, WORDS)
        (title,) = (name for name in row if name.startswith("at the threshold, "))
        assert row[title] == pytest.approx(one.soon.reached)


def test_there_is_a_block_for_each_matrix(content):
    lines = lines_of(content, "transition matrices")
    starts = [place for place, line in enumerate(lines) if len(line) == 1]
    matrices = [one for model in plain_document().models for one in model.forecast.matrices]
    assert len(starts) == len(matrices)
    for start, one in zip(starts, matrices, strict=True):
        rows = lines[start + 2 : start + 2 + len(one.probability)]
        assert [[float(cell) for cell in row[1:]] for row in rows] == [
            pytest.approx(list(row), abs=1e-8) for row in one.probability
        ]


def test_the_record_repeats_the_study(content):
    lines = read(content, "run record", head=False).rows()
    plan = "\n".join(value or "" for _, value in lines[-len(plain_document().provenance.plan.splitlines()) :])
    assert plan == plain_document().provenance.plan.rstrip("\n")


def test_no_cell_is_a_formula_or_a_link_and_names_stay():
    content = render(hostile_document())
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheets = [book.read(name).decode() for name in book.namelist() if name.startswith("xl/worksheets/")]
        assert "x.example" not in "".join(sheets)
    assert not any(re.search(r"<f[ >]", sheet) for sheet in sheets)
    assert sorted(read(content, "components")["component"]) == sorted(HOSTILE)


def test_it_is_in_the_language_of_the_report(dated):
    content = render(dated, "ja")
    made = make_overview(dated, load_words("ja"))
    assert [made.headline] in lines_of(content, "概要")
    assert read(content, "全部材").columns[:2] == ["橋梁", "部材"]
    assert lines_of(content, "実行記録")[0] == ["rekka", rekka.__version__]


def test_a_study_of_which_nothing_can_be_fitted_has_a_workbook_too():
    lines = lines_of(render(failed_document()), "overview")
    assert [make_overview(failed_document(), WORDS).headline] in lines


def test_only_a_workbook_of_ours_is_written_over(tmp_path, content):
    file = tmp_path / "report.xlsx"
    report = Report(plain_document())
    assert report.write_workbook(file) == file
    assert file.read_bytes() == content
    assert is_workbook(file)
    report.write_workbook(file)
    pl.DataFrame({"a": [1]}).write_excel(file)
    with pytest.raises(BadOption, match=r"report\.xlsx is there already, and is no workbook of a report"):
        report.write_workbook(file)
    with pytest.raises(BadOption, match=r"needs a name that ends in \.xlsx"):
        refuse_workbook(tmp_path / "report.xls")
