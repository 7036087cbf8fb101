"""Tables show the document's numbers, in words that the catalog has, and none that is no number."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_cases import (
    HOSTILE,
    WORDS,
    column,
    failed_document,
    hostile_document,
    plain_document,
    tables_of,
    texts,
    without_cases,
)

from rekka.checks.engine import Severity
from rekka.data import audit, nbi, pairing, panel
from rekka.evaluation.selection import Step
from rekka.model.certificate import Verdict as Certificate
from rekka.report import text as numbers
from rekka.report.document import OutcomePart
from rekka.report.tables.catalog import list_tables
from rekka.report.tables.cells import expand
from rekka.report.tables.models import show_step
from rekka.report.tables.study import AUDIT
from rekka.report.text import name_method, slug
from rekka.study import hypotheses
from rekka.study.draws import KINDS
from rekka.study.tables import Cause
from rekka.study.trial import Status

REALS = st.none() | st.floats() | st.integers(-(2**53), 2**53)
SHOWN = (
    numbers.show_number,
    numbers.show_figure,
    numbers.show_count,
    numbers.show_accuracy,
    numbers.show_loss,
    numbers.show_accuracy_difference,
    numbers.show_loss_difference,
    numbers.show_seconds,
    numbers.show_p,
    numbers.show_share,
)


@pytest.mark.parametrize("show", SHOWN)
@given(value=REALS)
@example(value=-0.0)
@example(value=-1e-9)
@example(value=5e-324)
@example(value=math.nan)
@example(value=-math.inf)
def test_no_number_is_shown_as_a_program_has_it(show, value):
    text = show(value)
    assert not re.search(r"nan|None|inf|e[+-]?\d|-", text)
    assert not re.fullmatch(r"[+\u2212][0.,]+%?", text)
    assert text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (numbers.show_accuracy(0.66646), "0.6665"),
        (numbers.show_loss(14.2609), "14.261"),
        (numbers.show_loss_difference(0.0469), "+0.047"),
        (numbers.show_loss_difference(-2.5e-17), "0.000"),
        (numbers.show_count(42248), "42,248"),
        (numbers.show_seconds(0.408), "0.408"),
        (numbers.show_seconds(0.0007), "0.0007"),
        (numbers.show_p(0.0209), "0.021"),
        (numbers.show_p(2e-7), "<0.001"),
        (numbers.show_share(0.25), "25%"),
        (numbers.show_share(0.0001, 1), "<0.1%"),
        (numbers.show_share(0.9999, 1), ">99.9%"),
        (numbers.show_share(1.0, 1), "100%"),
        (numbers.show_figure(1.29e-5), "1.29×10⁻⁵"),
        (numbers.show_figure(-4.54e85), "−4.54×10⁸⁵"),
        (numbers.show_figure(999999.0), "1.00×10⁶"),
        (numbers.show_figure(3849.0, 4), "3,849"),
        (numbers.show_figure(math.inf), "∞"),
        (numbers.show_number(-1.2e7), "−1.20×10⁷"),
        (numbers.show_number(None), "–"),
        (numbers.show_level(0.95), "95%"),
        (numbers.show_level(0.975), "97.5%"),
        (numbers.show_range(0.64, 0.739, numbers.show_loss, WORDS), "0.640 to 0.739"),
        (numbers.show_range(1.3981, 1.3983, numbers.show_loss, WORDS), "1.398"),
        (numbers.show_range(None, None, numbers.show_loss, WORDS), "–"),
        (numbers.show_estimate(0.69, 0.64, 0.739, numbers.show_loss, WORDS), "0.690 (0.640 to 0.739)"),
        (numbers.show_estimate(0.69, None, None, numbers.show_loss, WORDS), "0.690"),
        (numbers.show_estimate(None, 0.1, 0.2, numbers.show_loss, WORDS), "–"),
        (show_step(1000.0, "vehicles/day", WORDS), "1,000 vehicles/day"),
        (show_step(0.05, "", WORDS), "0.05"),
        (name_method("boxcox+zscore", WORDS), "Box-Cox+z-score"),
        (name_method("their own", WORDS), "their own"),
    ],
)
def test_numbers_are_shown_as_people_write_them(text, shown):
    assert text == shown


REASONS = [
    "kept", "the member's last visit", "the member's only visit", pairing.REPAIR, pairing.INTERVAL, pairing.UPWARD,
    pairing.BEFORE_COMPLETION, *panel.PROBLEMS.values(), *nbi.NBI_PROBLEMS.values(),
    *(f"a second record of one {what}, with the same state" for what in ("visit number", "day")),
    *(f"another record of one {what}, with another state" for what in ("visit number", "day")),
]  # fmt: skip


def in_user_words(text: str) -> str:
    """The text of a file as a reader has it: files keep the words of their first version."""
    return text.replace("set aside", "excluded").replace(" cases", " components").replace(" case", " component")


@pytest.mark.parametrize(
    ("group", "terms"),
    [
        ("status", Status),
        ("certificate", Certificate),
        ("verdict", {one.verdict for one in Severity}),
        ("hypothesis", hypotheses.Support),
        ("cause", Cause),
        ("step", Step),
        ("severity", list(Severity)[:3]),
        ("outcome", (audit.TRANSITION, audit.LAST, audit.PAIR, audit.VISIT)),
        ("reason", REASONS),
    ],
)
def test_the_catalog_has_every_term_in_its_own_words(group, terms):
    assert {str(term): WORDS.get(f"{group}.{slug(str(term))}", "") for term in terms} == {
        str(term): in_user_words(str(term)) for term in terms
    }


def test_the_catalog_has_claims_kinds_and_presets():
    assert {code: WORDS(f"claim.{code.lower()}") for code in hypotheses.CLAIMS} == {
        code: in_user_words(claim) for code, claim in hypotheses.CLAIMS.items()
    }
    assert all(f"kind.{kind}" in WORDS.texts for kind in KINDS)


def test_tables_come_in_the_order_of_the_page():
    names = list(tables_of(plain_document()))
    assert names[:5] == ["answer", "findings", "cases", "methods", "selection"]
    assert names[names.index("verdicts") + 1 :][:5] == [
        "trials-paper",
        "trials-exact",
        "trials",
        "presets",
        "hypotheses",
    ]
    assert {"calibration", "calibration_counts", "stability", "certificates", "ratios", "years"} <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("make", [plain_document, hostile_document, failed_document])
def test_every_table_is_whole(make):
    for table in tables_of(make()).values():
        titles = [f"{one.title} {one.unit}" for one in expand(table).columns]
        assert len(set(titles)) == len(titles), table.name
        assert table.title
        assert table.note
        for row in table.rows:
            assert len(row.cells) == len(table.columns)
            for cell in row.cells:
                assert cell.text != ""
                assert cell.value is None or not isinstance(cell.value, float) or math.isfinite(cell.value)


def test_trials_have_the_numbers_of_the_document():
    document = plain_document()
    table = tables_of(document)["trials"]
    for key in ("case", "method", "accuracy", "log_loss", "seconds", "iterations", "decrement", "selected"):
        assert column(table, key) == [getattr(one, key) for one in document.trials]
    first = document.trials[0]
    assert texts(table, "accuracy")[0] == f"{first.accuracy:.4f}"


def test_the_appendix_has_a_cell_for_each_trial():
    document = plain_document()
    table = tables_of(document)["trials-exact"]
    assert [one.title for one in table.columns] == ["component", "max", "min-max", "z-score", "Box-Cox"]
    trials = {(one.case, one.method): one for one in document.trials if one.preset == "exact"}
    for row in table.rows:
        for place, method in enumerate(("max", "minmax", "zscore", "boxcox"), start=1):
            trial, cell = trials[row.case, method], row.cells[place]
            assert cell.parts == (trial.accuracy, trial.seconds)
            assert cell.strong == trial.selected
            assert cell.text == f"{trial.accuracy:.4f} / {numbers.show_seconds(trial.seconds)}"


def test_a_failed_trial_is_a_faint_dash_in_the_appendix():
    document = failed_document()
    failed = document.trials[0].model_copy(update={"converged": False, "accuracy": None, "selected": False})
    table = tables_of(document.model_copy(update={"trials": (failed,)}))["trials-exact"]
    cell = table.rows[0].cells[1]
    assert (cell.text, cell.faint, cell.strong, cell.value) == ("–", True, False, None)
    assert [one.value for one in expand(table).rows[0].cells] == ["Pier", None, None]


def test_the_answer_shows_intervals_and_what_they_show():
    document = plain_document()
    same = document.answers[0].model_copy(update={"method": "zscore", "same_model": ("max", "minmax")})
    document = document.model_copy(update={"answers": (same, *document.answers[1:])})
    table = tables_of(document)["answer"]
    assert texts(table, "method")[0] == "z-score (one model with max, min-max)"
    place = [one.key for one in table.columns].index("no_covariates_difference")
    for answer, row in zip(document.answers, table.rows, strict=True):
        cell = row.cells[place]
        assert cell.parts == (
            answer.no_covariates_difference,
            answer.no_covariates_low,
            answer.no_covariates_high,
        )
        said = {"better": ": better", "worse": ": worse", "not shown": ": no difference shown"}
        assert cell.text.endswith(said[answer.beats_no_covariates])
    assert [row.case for row in table.rows] == [one.case for one in document.answers]
    assert column(table, "method") == [one.method for one in document.answers]


def test_an_answer_without_a_look_says_so():
    table = tables_of(hostile_document())["answer"]
    keys = [one.key for one in table.columns]
    assert "persistence_difference" not in keys
    assert "remark" in keys
    assert "optimistic" in table.note


def test_nothing_chosen_is_said_with_the_reason():
    table = tables_of(failed_document())["answer"]
    assert texts(table, "method") == ["none"]
    assert column(table, "method") == [None]
    assert texts(table, "why")[0].startswith("none")
    assert not table.rows[0].cells[-1].english  # in the words of the page


def test_empty_tables_are_left_out_but_for_three_that_say_so():
    tables = tables_of(without_cases(plain_document()))
    assert set(tables) <= {"answer", "cases", "trials", "audit", "doctor", "files", "versions"}
    for name in ("answer", "cases", "trials"):
        assert not tables[name].rows
        assert tables[name].note == WORDS(f"table.{name}.empty")


def test_findings_are_issues_and_tips_alone():
    document = plain_document()
    table = tables_of(document)["findings"]
    assert column(table, "code") == [one.code for one in document.findings if one.verdict in ("issue", "tip")]


def test_calibration_adds_up_what_left_each_state():
    document = plain_document()
    tables = tables_of(document)
    for one, observed in zip(document.calibration, column(tables["calibration"], "moves_observed"), strict=True):
        assert observed == sum(part.observed for part in one.by_start)
    counts = tables["calibration_counts"]
    assert sum(column(counts, "observed")) == sum(
        part.observed for one in document.calibration for part in (*one.by_start, *one.by_end)
    )


def test_ratios_say_their_step_and_unit():
    document = plain_document()
    flat = expand(tables_of(document)["ratios"])
    assert column(flat, "step") == [part.step for model in document.models for part in model.ratios]
    assert {"years", "m", "vehicles/day"} == set(column(flat, "unit"))
    assert "10 years" in texts(tables_of(document)["ratios"], "step")
    assert column(flat, "hazard_ratio_low") == [part.low for model in document.models for part in model.ratios]


def test_coefficients_say_what_one_more_is():
    document = plain_document()
    native = document.models[0].model_copy(update={"scale": "native"})
    table = tables_of(document.model_copy(update={"models": (native,)}))["coefficients"]
    assert dict(zip(column(table, "term"), texts(table, "per"), strict=True)) == {
        "intercept": "–",
        "age_at_inspection_1": "years",
        "bridge_length": "m",
        "traffic_mean": "vehicles/day",
    }
    model = document.models[0].model_copy(update={"scale": "boxcox"})
    bent = tables_of(document.model_copy(update={"models": (model,)}))["coefficients"]
    assert texts(bent, "per")[1] == "as Box-Cox transforms it"


def test_typical_covariates_stand_under_their_units():
    document = plain_document()
    table = tables_of(document)["typical"]
    assert [(one.title, one.unit) for one in table.columns[1:]] == [
        ("age", "years"),
        ("bridge length", "m"),
        ("traffic", "vehicles/day"),
    ]
    assert [row.cells[1].value for row in table.rows] == [
        one.typical["age_at_inspection_1"] for one in document.models
    ]


def test_certificates_are_those_of_the_models():
    document = plain_document()
    table = tables_of(document)["certificates"]
    trials = {(one.case, one.preset, one.method): one for one in document.trials}
    own = [trials[one.case, one.preset, one.method] for one in document.models]
    assert column(table, "condition_number") == [one.condition_number for one in own]


def test_reasons_with_a_name_or_a_figure_are_told_in_the_reports_language():
    document = plain_document()
    outcomes = (
        OutcomePart(outcome="pair set aside", reason="bridge_length is missing", count=3),
        OutcomePart(outcome="pair set aside", reason="more than 12.5 years apart", count=2),
        OutcomePart(outcome="visit set aside", reason="something of tomorrow", count=1),
    )
    parts = document.audit.model_copy(update={"outcomes": outcomes})
    table = AUDIT.view(document.model_copy(update={"audit": parts}), WORDS)
    assert texts(table, "reason") == [one.reason.replace("_", " ") for one in outcomes]
    assert [row.cells[1].english for row in table.rows] == [False, False, True]


def test_a_fixed_text_of_a_check_is_taken_from_the_catalog_by_its_code():
    words = WORDS.__class__("en", {**WORDS.texts, "check.R701.title": "別の題"})
    document = failed_document()
    table = next(one for one in list_tables(document, words) if one.name == "findings")
    cells = {row.cells[0].value: row.cells[2] for row in table.rows}
    assert (cells["R701"].text, cells["R701"].english) == ("別の題", False)
    english = {one.code: one.title for one in document.findings}
    assert all(cell.text == english[code] for code, cell in cells.items() if code != "R701")


def test_files_rows_versions_machine_and_seeds_are_told():
    document = plain_document()
    known = document.provenance.model_copy(
        update={
            "files": {"inspections.csv": "ab12"},
            "rows_sha256": "cd34",
            "versions": {"rekka": "0.4.0"},
            "machine": {"system": "Linux", "cores": 2},
            "seeds": {"partition": 7, "inventory": None},
        }
    )
    tables = tables_of(document.model_copy(update={"provenance": known}))
    assert column(tables["files"], "file") == ["inspections.csv", "the rows of the study"]
    assert column(tables["files"], "sha256") == ["ab12", "cd34"]
    assert list(zip(column(tables["versions"], "item"), column(tables["versions"], "version"), strict=True)) == [
        ("rekka", "0.4.0"),
        ("system", "Linux"),
        ("cores", "2"),
        ("seed of the partition", "7"),
    ]


def test_what_a_person_reads_as_one_is_several_columns_in_a_file():
    table = tables_of(plain_document())["answer"]
    flat = expand(table)
    assert not any(one.parts for one in flat.columns)
    assert not any(cell.parts for row in flat.rows for cell in row.cells)
    assert [one.title for one in flat.columns if one.key.startswith("accuracy")] == [
        "accuracy",
        "accuracy, low end",
        "accuracy, high end",
    ]


def test_hostile_names_pass_as_they_are():
    assert column(tables_of(hostile_document())["cases"], "case") == sorted(HOSTILE)


def test_where_numbers_change_their_form():
    assert (numbers.show_number(9_999_999, 0), numbers.show_number(1e7, 0)) == ("9,999,999", "1.00\u00d710\u2077")
    assert (numbers.show_p(0.0009), numbers.show_p(0.001)) == ("<0.001", "0.001")
    assert (numbers.show_years(200.0), numbers.show_years(200.1)) == ("200.0", ">200")
    assert (numbers.show_share(0.005), numbers.show_share(0.006), numbers.show_share(0.0)) == ("<1%", "1%", "0%")
