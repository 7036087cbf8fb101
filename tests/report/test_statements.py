"""What is said of an answer and of a case is true: unfinished, unconfirmed, uncertified, penalised, without covariates."""

import re

import pytest
from page_cases import CHOSEN, NONE, SHOWN
from table_cases import failed_document, plain_document

from rekka.report.outline import list_cases
from rekka.report.statements import (
    Wording,
    explain_case,
    explain_headline,
    explain_no_calibration,
    explain_run,
    explain_scores,
    explain_use,
    list_alerts,
    list_doubts,
    list_headlines,
    list_methods,
)
from rekka.report.tables.catalog import list_tables
from rekka.report.text import LANGUAGES, load_words

TELL = Wording(load_words("en"))
LOOKED = "golden rows looked at with another model (run-1, 2026-11-16)"
GOLDEN_CHOSE = "the golden rows chose it, and cannot confirm it"
SAME_LOOK = "in this look, under another preset"
UNSEEN = {"confirmed": False, "seen": None, "scored_on": "folds", "rows": None, "bridges": None}


def change(document, name, case=None, **values):
    """The document with other values in a part; of one case, where it is named."""
    parts = getattr(document, name)
    if not isinstance(parts, tuple):
        return document.model_copy(update={name: parts.model_copy(update=values)})
    return document.model_copy(
        update={
            name: tuple(
                one.model_copy(update=values) if case is None or one.case == case else one for one in parts
            )
        }
    )


def plain(sentences):
    return [str(one.striptags()) for one in sentences]


def told_of(document, name):
    case = next(one for one in document.cases if one.case == name)
    return explain_case(document, case, TELL)


def answer_of(document, name):
    return next(one for one in document.answers if one.case == name)


# Unfinished


def pending(document):
    """All trials are done; the run was killed before its last choice."""
    found = change(document, "answers", NONE, reason="not chosen yet", why="not chosen yet: go on with the run")
    return change(found, "study", choices_done=5, choices_planned=6, done=12, planned=12)


def test_a_run_without_its_last_choices_is_not_finished(document):
    first = plain(list_alerts(pending(document), TELL))[0]
    assert first.startswith("This study is not finished: 12 of 12 trials and 5 of 6 choices are done.")
    assert not any("not finished" in one for one in plain(list_alerts(document, TELL)))


def test_a_case_that_is_not_chosen_yet_is_no_case_without_a_model(document):
    unfinished = pending(document)
    assert plain([explain_headline(unfinished, TELL)]) == ["So far there is a model to use in 1 of 3 components."]
    without, later = plain(list_headlines(unfinished, TELL))[1:]
    assert SHOWN in without
    assert NONE not in without
    assert later == f"Not chosen yet: {NONE}. Continue the run: rekka compare --resume RUN."
    table = next(one for one in list_tables(unfinished, TELL.words) if one.name == "answer")
    assert [row.cells[1].text for row in table.rows] == ["z-score", "none", "not chosen yet"]


def test_a_fit_that_is_not_judged_yet_was_not_turned_down(document):
    later = change(document, "answers", SHOWN, reason="not chosen yet")
    told = told_of(later, SHOWN)
    assert (told.state, str(told.label)) == ("later", "Not chosen yet")
    assert "the rule has not been applied yet" in told.warning
    assert "turned down" not in "".join([*told.lines, *told.certificate, told.warning])
    assert "not to be used" not in told.warning
    never_run = change(pending(document), "models", NONE, reason=None)
    assert "the trial with z-score has not been run yet" in "".join(told_of(never_run, NONE).lines)


def test_a_study_that_is_partly_run_tells_planned_and_done(document):
    part = change(document, "study", planned=20, done=5)
    assert plain(explain_run(part, TELL))[0].endswith("20 trials planned, 5 done, in 3 components so far.")
    grid = next(
        one
        for one in list_tables(part.model_copy(update={"trials": part.trials[:1]}), TELL.words)
        if one.name.startswith("trials-")
    )
    assert [cell.text for row in grid.rows for cell in row.cells[1:]].count("not run yet") == 5


# Confirmed, or why not


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"remark": GOLDEN_CHOSE, "scored_on": "golden"}, "the choice was made on the confirmation rows"),
        ({"remark": LOOKED}, "had been used before, with another model"),
        ({"remark": "golden rows that chose before cannot confirm (paper, 2026-11-16)"}, "or for a choice"),
        (
            {"seen": "run-1, 2026-11-16", "scored_on": "golden", "rows": 9, "bridges": 2},
            "used before, with another model",
        ),
        ({"seen": SAME_LOOK, "scored_on": "golden", "rows": 9, "bridges": 2}, "with two models in one look"),
        ({"remark": "none of its 3 golden rows can be scored"}, "the confirmation rows could not be scored"),
        ({}, "the confirmation rows were not looked at"),
    ],
)
def test_each_reason_not_to_be_confirmed_has_its_sentence(document, values, why):
    changed = change(document, "answers", CHOSEN, **UNSEEN | values)
    if values.get("remark") == GOLDEN_CHOSE:
        changed = change(changed, "cases", judged_on="golden")
    banners = plain(list_doubts(changed, TELL))
    assert [one for one in banners if one.startswith("Nothing here is confirmed: ")] == banners
    assert why in banners[0]
    assert ("were not looked at" in banners[0]) == (not values)


def test_reasons_are_counted_and_no_sentence_comes_twice():
    document = change(plain_document(), "models", fit_test=None)
    first, second = (one.case for one in document.answers)
    changed = change(document, "answers", **UNSEEN)
    changed = change(change(changed, "answers", first, remark=LOOKED), "answers", second, remark=None)
    banners = plain(list_doubts(changed, TELL))
    assert [one.split(":")[0] for one in banners] == ["Not confirmed, 1 of the 2 choices"] * 2
    assert len(set(banners)) == 2


def test_small_print_says_of_which_rows_the_scores_are(document):
    answer = answer_of(document, CHOSEN)
    assert "scores of" not in "".join(explain_use(answer, TELL))
    looked = answer.model_copy(update=UNSEEN | {"remark": LOOKED})
    assert plain(explain_use(looked, TELL))[:2] == [
        f"not confirmed: {LOOKED}",
        "scored on the folds by bridge it was chosen on",
    ]
    alone = answer.model_copy(update=UNSEEN)
    assert plain(explain_use(alone, TELL))[0] == ("not confirmed: scored on the folds by bridge it was chosen on")


def test_the_note_of_a_mixed_table_says_which_scores_flatter():
    document = plain_document()
    mixed = change(document, "answers", document.answers[0].case, **UNSEEN | {"accuracy_low": None})
    note = next(one.note for one in list_tables(mixed, TELL.words) if one.name == "answer")
    assert "In brackets: 95% intervals" in note
    assert "Other scores are of the rows the choice was made on" in note
    assert "are of the rows that chose" not in list_tables(document, TELL.words)[0].note


# Certificates


def uncertified(document):
    """As summarize tells a chosen fit that is no maximum."""
    model = next(one for one in document.models if one.case == CHOSEN)
    blank = {"se": None, "p": None, "low": None, "high": None}
    ends = ("hazard_low", "hazard_high", "years_low", "years_high")
    return change(
        document,
        "models",
        CHOSEN,
        certified=False,
        errors=None,
        coefficients=tuple(one.model_copy(update=blank) for one in model.coefficients),
        ratios=tuple(one.model_copy(update={"low": None, "high": None}) for one in model.ratios),
        years=tuple(one.model_copy(update=dict.fromkeys(ends)) for one in model.years),
        forecast=None,
    )


def test_a_fit_that_is_not_certified_has_figures_and_no_intervals(document):
    found = uncertified(document)
    lines = "\n".join(told_of(found, CHOSEN).lines)
    assert "This fit is not a certified maximum: the figures are where the optimizer stopped" in lines
    assert "Standard errors" not in lines
    own, other = list_cases(list_tables(found, TELL.words), (), [CHOSEN, SHOWN])
    assert not any("In brackets" in one.view.note for one in own.tables)
    assert all("In brackets: 95% intervals" in one.view.note for one in other.tables)
    assert not {"se", "p"} & {column.key for one in own.tables for column in one.view.columns}
    alone = found.model_copy(update={"models": found.models[:1]})
    notes = [one.note for one in list_tables(alone, TELL.words) if one.name in ("coefficients", "ratios", "years")]
    assert len(notes) == 3
    assert not any("brackets" in note for note in notes)


@pytest.mark.parametrize(("method", "what"), [("ridge", "penalty"), ("pooled", "prior")])
def test_a_penalised_fit_is_the_maximum_of_what_was_maximised(document, method, what):
    renamed = change(change(document, "models", method=method), "trials", CHOSEN, method=method)
    certificate = plain(told_of(renamed, CHOSEN).certificate)
    assert certificate[0] == f"Yes: it is a certified maximum of the likelihood with its {what}."
    assert f"the likelihood with its {what} has a finite maximum" in certificate[1]
    assert f"remain to the maximum of the likelihood with its {what}" in certificate[2]
    assert plain(told_of(document, CHOSEN).certificate)[0] == "Yes: it is a certified maximum of the likelihood."
    notes = {one.name: one.note for one in list_tables(renamed, TELL.words)}
    assert "with its penalty or prior" in notes["certificates"]


def test_a_maximum_that_few_rows_decide_is_said_to_be_one(document):
    verdict = "certified: a maximum of the likelihood"
    hardly = change(document, "trials", CHOSEN, verdict=f"{verdict}, but hardly determined")
    assert any("hardly determined: few rows" in line for line in plain(told_of(hardly, CHOSEN).certificate))
    firm = change(document, "trials", CHOSEN, verdict=verdict)
    assert not any("hardly determined" in line for line in plain(told_of(firm, CHOSEN).certificate))
    table = {one.name: one for one in list_tables(hardly, TELL.words)}["certificates"]
    assert "but hardly determined" in str(table)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_methods_of_the_study_are_explained(document, lang):
    methods = (
        "max",
        "minmax",
        "zscore",
        "boxcox",
        "robust",
        "log+zscore",
        "yeojohnson",
        "ridge",
        "pooled",
        "none",
    )
    found = list_methods(change(document, "study", methods=methods), Wording(load_words(lang)))
    assert len(set(found)) == len(methods)
    if lang == "en":
        assert "; then each covariate less its training mean" in found[5]
    assert len(list_methods(document, Wording(load_words(lang)))) == 2


def test_a_fit_that_is_shown_though_not_chosen_says_why_not_to_use_it(document):
    told = told_of(document, SHOWN)
    reason = answer_of(document, SHOWN).reason
    why = TELL.words(f"choice.{reason.replace(' ', '_')}")
    assert plain(told.certificate)[-1] == f"It is still not to be used: {why}."
    assert "still not" not in "".join(told_of(document, CHOSEN).certificate)
    assert TELL.words("section.models.certificate.heading") == "Is this fit the maximum?"


# Nothing there


def test_a_model_without_covariates_is_not_compared_with_itself(document):
    bare = change(change(document, "models", typical={}), "cases", covariates=(), constant=())
    bare = change(bare, "study", covariates=())
    lines = plain(told_of(bare, CHOSEN).lines)
    assert "The model has no covariates: one hazard for each rating, the same for every member." in lines
    assert not any(one.startswith("Typical member") for one in lines)
    shown = plain(explain_scores(bare, TELL).lines)
    assert shown[0].startswith("In 1 component no covariate is left in the model")
    assert not any("Against the no-covariate baseline" in one for one in shown)
    table = list_tables(bare, TELL.words)[0]
    assert not {"no_covariates_log_loss", "no_covariates_difference"} & {one.key for one in table.columns}
    assert "without covariates" not in table.note


def test_nothing_chosen_is_told_where_scores_would_be():
    document = failed_document()
    table = list_tables(document, TELL.words)[0]
    assert table.note == TELL.words("table.answer.nothing")
    assert explain_no_calibration(document, TELL) == TELL.words("section.calibration.none")
    assert "--quick" in explain_no_calibration(plain_document(), TELL)


def test_notes_speak_of_no_column_that_is_left_out():
    document = plain_document()
    notes = {one.name: one.note for one in list_tables(document, TELL.words)}
    assert "Difference: its log loss" in notes["verdicts"]
    bare = change(document, "verdicts", difference=None, low=None, high=None, certified=None, drawn=None)
    note = next(one.note for one in list_tables(bare, TELL.words) if one.name == "verdicts")
    assert note == "Dropped at: the first step of the rule that a method does not pass."


def test_a_covariate_without_a_unit_leaves_no_blank(document):
    units = tuple(one.model_copy(update={"unit": None}) for one in document.study.covariates)
    lines = plain(told_of(change(document, "study", covariates=units), CHOSEN).lines)
    typical = next(one for one in lines if one.startswith("Typical member"))
    assert re.search(r"\s[.,]", typical) is None
