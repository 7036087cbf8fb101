"""Two runs side by side: their numbers, what only one of them has, and what makes them hard to compare."""

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from results_cases import CASES, put_run

from rekka.app.comparison import (
    list_cases,
    list_warnings,
    pair_matrices,
    tabulate_choices,
    tabulate_data,
    tabulate_totals,
)
from rekka.app.forecasts import find_view
from rekka.core.language import LANGUAGES, load_words
from rekka.report.text import show_count

EN = load_words("en")


@pytest.fixture
def runs(workspace):
    return put_run(workspace, "one"), put_run(workspace, "two")


@pytest.fixture
def both(runs):
    """The report, and one of half the members in which one component has another name."""
    first = find_view(runs[0].study).document
    network = first.network
    years = [
        one.model_copy(update={"reached": one.reached / 2, "case": None if one.case is None else rename(one.case)})
        for one in network.years
    ]
    there = {rename(case): count for case, count in network.there_by_case.items()}
    second = first.model_copy(
        update={
            "network": network.model_copy(update={"years": tuple(years), "there_by_case": there}),
            "cases": tuple(one.model_copy(update={"case": rename(one.case)}) for one in first.cases),
            "models": tuple(one.model_copy(update={"case": rename(one.case)}) for one in first.models),
            "answers": tuple(one.model_copy(update={"case": rename(one.case)}) for one in first.answers),
        }
    )
    return first, second


def rename(case):
    return "Beam" if case == CASES[1] else case


def cells(table, case):
    row = next(row for row in table.rows if row.case == case)
    return {column.key: cell for column, cell in zip(table.columns, row.cells, strict=True)}


def test_components_of_one_run_alone_are_named(both):
    assert list_cases(both) == ([CASES[0]], [[CASES[1]], ["Beam"]])
    told = list_warnings(both, EN)
    assert any("run A" in line and CASES[1] in line for line in told)
    assert any("run B" in line and "Beam" in line for line in told)


def test_totals_are_those_of_the_reports(both):
    table = tabulate_totals(both, EN)
    assert [row.case for row in table.rows] == [None, CASES[0], CASES[1], "Beam"]
    for case in (None, CASES[0]):
        found = cells(table, case)
        for letter, document in zip("AB", both, strict=True):
            for year in (5, 10):
                own = next(one for one in document.network.of(case) if one.year == year)
                assert found[f"year_{year}_{letter}"].value == own.reached
                assert show_count(own.predicted_low) in found[f"year_{year}_{letter}"].text
    alone = cells(table, "Beam")
    assert alone["year_5_A"].value is None
    assert alone["year_5_B"].value > 0


def test_choices_trust_and_data(both):
    found = cells(tabulate_choices(both, EN), CASES[0])
    assert found["method_A"].text == found["method_B"].text == "z-score"
    assert found["trust_A"].value in ("good", "caution", "do_not_use")
    rows = cells(tabulate_data(both, EN), CASES[0])
    assert rows["train_A"].value == next(one.train for one in both[0].cases if one.case == CASES[0])


def test_elements_of_histories_stand_beside_the_method(both):
    first = both[0]
    models = tuple(one.model_copy(update={"elements": "errors+frailty"}) for one in first.models)
    found = cells(tabulate_choices((first, first.model_copy(update={"models": models})), EN), CASES[0])
    assert found["method_A"].text == "z-score"
    assert "frailty" in found["method_B"].text


def test_matrices_of_a_year_side_by_side(both):
    pairs = list(pair_matrices(both, EN))
    assert [one.case for one in pairs] == [CASES[0]]
    model = next(one for one in both[0].models if one.case == CASES[0])
    stay = model.forecast.matrices[0].probability[0][0]
    assert all(f'data-value="{stay}"' in str(matrix) for matrix in pairs[0].both)


def test_other_thresholds_and_days_are_said(both):
    first, second = both
    years = tuple(one.model_copy(update={"threshold": 2}) for one in second.network.years)
    network = second.network.model_copy(update={"years": years, "base": "1999-01-01"})
    told = list_warnings((first, second.model_copy(update={"network": network})), EN)
    assert any("b or worse" in line for line in told)
    assert any("1999-01-01" in line for line in told)
    assert list_warnings((first, first), EN) == []
    assert any(
        "no forecast" in line for line in list_warnings((first, first.model_copy(update={"network": None})), EN)
    )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_page(browser, runs, lang):
    browser.cookies.set("rekka-language", lang)
    found = browser.get("/comparison", params={"first": runs[0].id, "second": runs[1].id})
    words = load_words(lang)
    assert found.status_code == 200
    for key in ("totals", "choices", "data", "matrices"):
        assert words(f"app.comparison.{key}") in found.text
    chosen = browser.get("/comparison", params={"first": runs[0].id})
    assert f'value="{runs[0].id}" selected' in chosen.text
    assert words("app.comparison.totals") not in chosen.text


def test_unknown_runs_are_not_there(browser, runs):
    assert browser.get("/comparison", params={"first": runs[0].id, "second": "0" * 16}).status_code == 404
    runs[1].save(runs[1].job.model_copy(update={"state": "failed"}))
    assert browser.get("/comparison", params={"first": runs[0].id, "second": runs[1].id}).status_code == 404
