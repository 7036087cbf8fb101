"""Every check of a study: what makes it an issue, what a tip, and a study in which it is neither."""

import json
import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer
from study_cases import draw_rows

import checks_page
import rekka
from rekka.checks.engine import Severity, Subject, list_codes, load_checks
from rekka.cli import app
from rekka.core.folders import plain
from rekka.core.language import ENGLISH, LANGUAGES, RETIRED, load_words
from rekka.evaluation.selection import Step
from rekka.model.certificate import Verdict as Certified
from rekka.study.checks.registry import check_study, headline
from rekka.study.elements import ElementChoice
from rekka.study.trial import Status

ISSUE, TIP, PASSED, ABSENT = VERDICTS = ("issue", "tip", "passed", "not applicable")
load_checks("rekka.checks")
load_checks("rekka.study.checks")
TEXTS = load_words(ENGLISH).texts
CODES = [code for code, own in list_codes().items() if own[-1].subject is Subject.STUDY]


@dataclass
class Made:
    """Studies that the cases below start from."""

    sound: rekka.Study  # large, certified, confirmed: nothing to say against it
    floored: rekka.Study  # the paper's rule and conditions on two small cases, beside the exact ones
    refused: rekka.Study  # the guarded rule where there is no finite maximum
    unselected: rekka.Study  # the paper's conditions under the guarded rule
    rows: rekka.Partition


@pytest.fixture(scope="module")
def made() -> Made:
    inventory = rekka.simulate_inventory()
    joins = [{"file": inventory.inventory}, {"file": inventory.traffic}]
    rows = rekka.partition_paper(rekka.read_transitions(inventory.inspections, join=joins).frame)
    small = ["Longitudinal girder", "Slope protection"]
    return Made(
        sound=rekka.compare(draw_rows(n=3000), methods=["max", "zscore"], guard={"resamples": 5}),
        floored=rekka.compare(rows, preset="both", rule="pareto", cases=small),
        refused=rekka.compare(
            rows, cases=small[1:], select_on="validation", guard={"resamples": 1, "ladder": False}
        ),
        unselected=rekka.compare(
            rows,
            preset="paper",
            methods=["zscore", "boxcox"],
            cases=small[:1],
            select_on="validation",
            guard={"resamples": 1},
        ),
        rows=rows,
    )


def with_trials(study, method=None, **update):
    """The same study, but this is what became of its trials; a certificate's figures go by their own names."""

    def change(trial):
        if method not in (None, trial.key.method):
            return trial
        own = {name: value for name, value in update.items() if name in type(trial).model_fields}
        figures = {name: value for name, value in update.items() if name not in own}
        certificate = None if trial.certificate is None else replace(trial.certificate, **figures)
        return trial.model_copy(update={"certificate": certificate} | own)

    return replace(study, results=tuple(change(trial) for trial in study.results))


def with_verdicts(study, method=None, choice=None, **update):
    """The same study, but this is what the rule said of its methods."""

    def change(one):
        verdicts = tuple(v.model_copy(update=update) if method in (None, v.method) else v for v in one.verdicts)
        return one.model_copy(update={"verdicts": verdicts} | (choice or {}))

    return replace(study, choices=tuple(change(one) for one in study.choices))


def with_confirmed(study, **update):
    """The same study, but this is what the golden rows said."""
    looks = [
        look.model_copy(update={"results": tuple(one.model_copy(update=update) for one in look.results)})
        for look in study.looks
    ]
    return replace(study, looks=tuple(looks))


def with_golden(study, **columns):
    """The same study, but these are the golden rows' values; a function of the row's number among them."""
    rows = study.read_rows()
    golden = rows.frame["part"] == "golden"
    number = golden.cast(pl.Int64).cum_sum().to_numpy() - 1
    new = {
        name: np.where(golden.to_numpy(), change(number, rows.frame[name].to_numpy()), rows.frame[name].to_numpy())
        for name, change in columns.items()
    }
    frame = rows.frame.with_columns(**{name: pl.Series(values) for name, values in new.items()})
    return replace(study, read_rows=lambda: replace(rows, table=frame))


def fitted(p_value, *causes):
    """Calibrations of the sound study's two cases."""
    one = SimpleNamespace(goodness=SimpleNamespace(p_value=p_value), causes=causes)
    return {("exact", "Pier"): one, ("exact", "Deck slab"): one}


def fails(study, status, reason):
    return with_trials(study, "max", status=status, reason=reason, converged=False, log_likelihood=None)


def weighs_seconds(study, *, apart):
    """Two methods, equally accurate, of which the faster one is kept."""
    timed = with_trials(study, "max", seconds=(2.0, 2.1))
    timed = with_trials(timed, "zscore", seconds=(1.0, 1.1) if apart else (1.0, 2.05))
    dropped = with_verdicts(timed, "max", {"cost": "seconds"}, kept=False, step=Step.PARETO, cost=2.05)
    return with_verdicts(dropped, "zscore", cost=1.05)


def broken_transform(made):
    """One golden row that Box-Cox, as fitted, cannot take."""
    one = made.rows.golden.filter(case="Abutment")
    low = np.where(np.arange(len(one)) == 3, -5.0, one["bridge_length"].to_numpy())
    golden = one.with_columns(bridge_length=pl.Series(low))
    parts = rekka.Partition(made.rows.train.filter(case="Abutment"), one.head(0), golden, "given")
    return rekka.compare(parts, methods=["boxcox"], preset="both", rule="pareto")


def no_training_rows(made):
    rows = draw_rows(n=120)
    here = pl.col("case") == "Pier"
    held = rows.with_columns(part=pl.when(here).then(pl.lit("golden")).otherwise(pl.col("part")))
    return rekka.compare(held, methods=["zscore"], guard={"resamples": 2})


def constant_covariate(made):
    rows = draw_rows(n=300).with_columns(bridge_length=pl.lit(7.0))
    return rekka.compare(rows, methods=["zscore"], guard={"resamples": 2})


SHORT = {"status": Status.UNCERTIFIED, "verdict": Certified.SHORT_OF_MAXIMUM, "reason": "stopped short"}
GOLDEN_LOSS = {"log_loss": 0.9, "log_loss_low": 0.85, "log_loss_high": 0.95}

# For each check and each of its verdicts a study that has it: a study, or one and its calibrations.
TRIGGERS: dict[str, dict[str, Any]] = {
    "R601": {
        ISSUE: lambda made: made.floored,
        TIP: lambda made: with_confirmed(made.sound, at_floor=1),
    },
    "R602": {
        ISSUE: lambda made: made.floored,
        TIP: lambda made: with_trials(made.sound, "max", decrement=1e-4, shortfall=1e-4, **SHORT),
    },
    "R603": {
        ISSUE: lambda made: with_trials(made.sound, "max", log_likelihood=-1e5),
        TIP: lambda made: made.floored,
    },
    "R402": {ISSUE: lambda made: made.floored, TIP: lambda made: made.refused},
    "R605": {
        ISSUE: lambda made: with_trials(made.sound, "max", status=Status.NOT_DETERMINED, reason="level along age"),
        TIP: lambda made: with_trials(made.sound, "max", condition_number=1e5),
    },
    "R606": {TIP: lambda made: fails(made.sound, Status.SOLVER_FAILED, "ABNORMAL: ; 3 units remain")},
    "R502": {TIP: broken_transform},
    "R608": {TIP: no_training_rows},
    "R404": {TIP: lambda made: made.floored},
    "R302": {TIP: constant_covariate},
    "R611": {ISSUE: lambda made: (made.sound, fitted(0.005, "too few left state 2"))},
    "R701": {ISSUE: lambda made: made.refused, TIP: lambda made: made.floored},
    "R702": {
        ISSUE: lambda made: with_verdicts(made.sound, "zscore", certified=10, drawn=20),
        TIP: lambda made: with_verdicts(made.sound, "zscore", certified=19, drawn=20),
    },
    "R703": {
        ISSUE: lambda made: with_confirmed(
            made.sound, persistence_difference=-0.05, persistence_low=-0.08, persistence_high=-0.02
        ),
        TIP: lambda made: with_confirmed(
            made.sound, persistence_difference=0.0, persistence_low=-0.02, persistence_high=0.02
        ),
    },
    "R704": {
        ISSUE: lambda made: with_confirmed(
            made.sound, no_covariates_difference=0.05, no_covariates_low=0.01, no_covariates_high=0.09
        ),
        TIP: lambda made: with_confirmed(
            made.sound, no_covariates_difference=0.001, no_covariates_low=-0.01, no_covariates_high=0.01
        ),
    },
    "R705": {TIP: lambda made: weighs_seconds(made.sound, apart=False)},
    "R706": {TIP: lambda made: made.floored},
    "R707": {ISSUE: lambda made: made.floored, TIP: lambda made: made.unselected},
    "R708": {TIP: lambda made: replace(made.sound, planned=6)},
    "R709": {
        ISSUE: lambda made: with_elements(made.sound, confirmed=False),
        TIP: lambda made: with_elements(made.sound, confirmed=True),
    },
    "R501": {
        ISSUE: lambda made: with_golden(
            made.sound, age_at_inspection_1=lambda n, x: np.where(n % 10 == 0, 99.0, x)
        ),
        TIP: lambda made: with_golden(made.sound, age_at_inspection_1=lambda n, x: np.where(n == 0, 99.0, x)),
    },
    "R503": {TIP: lambda made: with_golden(made.sound, state_2=lambda n, state: np.where(n == 0, 5, state))},
    "R803": {
        ISSUE: lambda made: with_golden(made.sound, state_2=lambda n, state: np.where(n % 10 == 0, 5, state)),
        TIP: lambda made: with_golden(made.sound, state_2=lambda n, state: np.where(n == 0, 5, state)),
    },
    "R804": {TIP: lambda made: made.floored},
    "R805": {TIP: lambda made: replace(made.sound, looks=())},
    "R806": {ISSUE: lambda made: with_confirmed(made.sound, seen="run, 2026-01-31")},
    "R807": {
        ISSUE: lambda made: with_confirmed(made.sound, judged_log_loss=0.3, **GOLDEN_LOSS),
        TIP: lambda made: with_confirmed(made.sound, judged_log_loss=0.8, **GOLDEN_LOSS),
    },
}
# A study that a check finds well, where it is not the sound one as it is.
WELL: dict[str, Any] = {
    "R709": lambda made: with_elements(made.sound, model="plain"),
    "R705": lambda made: weighs_seconds(made.sound, apart=True),
}
PARTS = ("looks_at", "matters", "issue", "tip", "remedy")


def with_elements(study, **changes):
    """The study with elements of histories chosen for its first case."""
    found = {"model": "errors+trend", "gain": 0.15, "low": 0.1, "high": 0.2, "years": 5.0, "origins": 3}
    return replace(study, elements=(ElementChoice(case=study.described[0].name, **found | changes),))


def look(made, build, code):
    """The finding of one check in the study that ``build`` makes."""
    built = build(made)
    study, calibrations = built if isinstance(built, tuple) else (built, None)
    return next(one for one in check_study(study, calibrations=calibrations) if one.code == code)


def explain(study, code, **options):
    return next(one for one in check_study(study, **options) if one.code == code).explanation


def test_every_check_has_a_study_for_each_of_its_verdicts():
    told = {code: {verdict for verdict in (ISSUE, TIP) if f"check.{code}.{verdict}" in TEXTS} for code in CODES}
    assert {code: set(verdicts) for code, verdicts in TRIGGERS.items()} == told
    assert WELL.keys() <= TRIGGERS.keys()


@pytest.mark.parametrize(
    ("code", "verdict"), [(code, verdict) for code, verdicts in TRIGGERS.items() for verdict in verdicts]
)
def test_what_triggers_it(made, code, verdict):
    finding = look(made, TRIGGERS[code][verdict], code)
    assert finding.verdict == verdict, finding.explanation
    assert finding.explanation.endswith(".")
    assert finding.remedy.endswith(".")
    assert finding.values
    assert finding.cases or code == "R708"
    json.dumps(plain(finding.to_dict()), allow_nan=False)
    for lang in LANGUAGES:
        assert all(text.endswith((".", "。")) for text in finding.describe(load_words(lang))[1:])


@pytest.mark.parametrize("code", CODES)
def test_what_does_not(made, code):
    finding = look(made, WELL.get(code, lambda made: made.sound), code)
    assert finding.verdict == PASSED, finding.explanation
    assert (finding.remedy, finding.cases, finding.methods) == ("", (), ())
    assert all(finding.describe(load_words(lang)).message.endswith((".", "。")) for lang in LANGUAGES)


class TestTheList:
    def test_a_code_has_one_title_and_a_merged_one_is_not_used_again(self):
        codes = list(list_codes())
        assert codes == sorted(set(codes))
        assert not set(codes) & set(RETIRED)
        assert set(RETIRED.values()) <= set(codes)
        titles = [TEXTS[f"check.{code}.title"] for code in codes]
        assert len(titles) == len(set(titles))

    def test_no_code_is_lost(self):
        """Every code that a version had is in use or listed with its successor."""
        had = "R001-R003 R101-R111 R201-R205 R301-R309 R401-R404 R501-R506 R601-R611 R701-R709 R801-R807"
        ends = [[int(end[1:]) for end in ends.split("-")] for ends in had.split()]
        assert {f"R{code:03}" for low, high in ends for code in range(low, high + 1)} <= {*list_codes(), *RETIRED}
        merged = {"R604": "R402", "R607": "R502", "R609": "R404", "R610": "R302", "R801": "R501", "R802": "R503"}
        assert merged.items() <= RETIRED.items()

    def test_every_part_is_a_sentence(self):
        for code in CODES:
            assert {f"check.{code}.{part}" for part in ("looks_at", "matters", "remedy")} <= TEXTS.keys()
            for words in filter(None, (checks_page.tell(code, part) for part in PARTS)):
                assert words[0].isupper() or words[0].isdigit() or words.startswith("rekka")
                assert words.endswith(".")
            assert not checks_page.tell(code, "title").endswith(".")

    def test_a_check_is_registered_as_grave_as_its_texts_say(self):
        for code, own in list_codes().items():
            for one in own:
                if one.subject is Subject.STUDY:
                    assert (one.worst[code] is Severity.STOP) == (f"check.{code}.issue" in TEXTS), code

    def test_remedies_name_commands_and_options_that_exist(self):
        commands = typer.main.get_command(app).commands
        options = {name for command in commands.values() for option in command.params for name in option.opts}
        for key, text in TEXTS.items():
            if key.startswith("check."):
                assert set(re.findall(r"--[\w-]+", text)) <= options, key
                assert set(re.findall(r"rekka (\w+)", text)) - {"does"} <= set(commands), key

    def test_the_page_is_current(self):
        page = checks_page.describe()
        assert checks_page.PAGE.read_text(encoding="utf-8") == page
        for code in (*list_codes(), *RETIRED):
            assert f"| {code} |" in page

    def test_issues_first(self, made):
        findings = check_study(made.floored)
        assert [one.code for one in sorted(findings, key=lambda one: one.code)] == CODES
        ranks = [(VERDICTS.index(one.verdict), one.code) for one in findings]
        assert ranks == sorted(ranks)
        count = [sum(one.verdict == verdict for one in findings) for verdict in VERDICTS]
        assert headline(findings) == (
            f"{count[0]} issues, {count[1]} tips; {count[2]} checks passed, {count[3]} not applicable"
        )

    def test_the_sound_study(self, made):
        assert headline(check_study(made.sound)) == "0 issues, 0 tips; 25 checks passed, 2 not applicable"


class TestFits:
    def test_the_paper_on_two_small_cases(self, made):
        assert "boxcox in Longitudinal girder (paper): 53 of 145 confirmation rows" in explain(
            made.floored, "R601"
        )
        said = explain(made.floored, "R602")
        paper = made.floored.trials.filter(preset="paper")
        wrong, success = int((paper["success"] & ~paper["certified"]).sum()), int(paper["success"].sum())
        assert f"paper: {wrong} of {success} trials that reported success are not at a certified maximum: " in said
        assert "on the probability floor (boxcox in Longitudinal girder)" in said
        assert "where there is no finite maximum (" in said
        assert "Selected nevertheless: boxcox in Longitudinal girder (paper), Slope protection (paper)." in said
        said = explain(made.floored, "R402")
        assert (
            said.count("Slope protection (max, minmax, zscore, boxcox): ratings 1, 3: the rows that left it") == 1
        )
        assert "remedies" not in said

    def test_where_success_is(self, made):
        words = {
            "at an infinite likelihood": {"status": Status.SOLVER_FAILED},
            "where the rows do not determine all coefficients": {"status": Status.NOT_DETERMINED},
            "more than 0.01 log-likelihood units short": {"status": Status.UNCERTIFIED, "decrement": 0.5},
            "on the probability floor": {"status": Status.UNCERTIFIED, "decrement": np.inf, "plateau_train": 0.2},
        }
        one = made.unselected  # its methods are not selected
        for place, update in words.items():
            assert f" {place} (" in explain(with_trials(one, "zscore", reason="", **update), "R602")

    def test_equals_that_agree_and_that_do_not(self, made):
        agree = "max, zscore are one model, and agree wherever there is a maximum (2 components, log-likelihoods "
        assert explain(made.sound, "R603").startswith(agree)
        apart = with_trials(made.sound, "max", log_likelihood=-np.inf)
        assert "max in Deck slab by more than can be measured" in explain(apart, "R603")
        short = with_trials(made.sound, "max", log_likelihood=-1e5)
        assert "disagree in 2 of 2 components" in explain(short, "R603")
        assert "Selected nevertheless: max in Deck slab, Pier." in explain(short, "R603")

    def test_presets_that_agree_are_told_beside_those_that_do_not(self, made):
        said = explain(made.floored, "R603")
        assert "paper: max, minmax, zscore are one model, and disagree in 1 of 1 component: " in said
        assert (
            "exact: max, minmax, zscore are one model, and agree wherever there is a maximum (1 component" in said
        )

    def test_failures_by_their_reason(self, made):
        failed = fails(made.sound, Status.SOLVER_FAILED, "ABNORMAL: ; 3 units remain")
        assert explain(failed, "R606") == "The solver failed in 2 of 4 trials: max in Deck slab, Pier: ABNORMAL: ."
        said = explain(broken_transform(made), "R502")
        assert "Abutment (boxcox): confirmation rows: boxcox cannot transform bridge_length = -5.0" in said
        assert "Pier (zscore): no training row of this component" in explain(no_training_rows(made), "R608")

    def test_the_weakest_direction_is_named(self, made):
        weak = with_trials(made.sound, "max", condition_number=1e5, weakest_direction="age with length, state 2")
        assert "max in Pier: age with length, rating 2, condition number 1e+05" in explain(weak, "R605")

    def test_goodness_says_how_to_run_it_and_what_chance_does(self, made):
        untested = replace(
            made.sound, choices=tuple(one.model_copy(update={"fit_test": None}) for one in made.sound.choices)
        )
        assert "rekka checks makes it" in explain(untested, "R611")
        said = explain(made.sound, "R611", calibrations=fitted(0.005, "too few left state 2"))
        assert "Deck slab (p 0.005): too few left rating 2" in said
        assert said.endswith(". Of 2 tests at 0.05, chance alone rejects 0.1.")
        assert look(made, lambda made: (untested, fitted(np.nan)), "R611").verdict == ABSENT


class TestChoices:
    def test_nothing_chosen_names_the_step(self, made):
        said = explain(made.refused, "R701")
        assert said == (
            'Nothing was chosen for Slope protection (max, minmax, zscore, boxcox dropped at "a certified '
            'maximum").'
        )

    def test_a_case_without_a_choice_under_either_preset(self, made):
        none = with_verdicts(made.floored, None, {"chosen": None}, kept=False)
        finding = look(made, lambda _: none, "R701")
        assert finding.verdict == ISSUE
        assert set(finding.cases) == {"Longitudinal girder", "Slope protection"}
        assert look(made, lambda _: none, "R706").verdict == ABSENT

    def test_a_method_that_was_dropped_for_its_resamples(self, made):
        dropped = with_verdicts(made.sound, "zscore", kept=False, step=Step.STABLE, certified=1, drawn=3)
        finding = look(made, lambda _: dropped, "R702")
        assert finding.verdict == TIP
        assert "zscore in Pier: 1 of 3, dropped for it" in finding.explanation

    def test_without_a_confirmation_the_judged_rows_speak(self, made):
        said = explain(made.floored, "R704")
        assert "Longitudinal girder (paper) (10." in said
        assert "on confirmation rows" in said
        assert "Far higher: Longitudinal girder (paper)" in said
        assert "Shown to be higher" not in said
        unconfirmed = replace(made.sound, looks=())
        assert {one["rows"] for one in look(made, lambda _: unconfirmed, "R704").values["cases"]} == {
            "validation rows"
        }

    def test_where_nothing_is_chosen_the_best_certified_fit_speaks(self, made):
        none = with_verdicts(made.sound, None, {"chosen": None}, kept=False, step=Step.STABLE)
        values = look(made, lambda _: none, "R703").values["cases"]
        assert [(one["case"], one["chosen"]) for one in values] == [("Deck slab", False), ("Pier", False)]

    def test_times_of_trials_that_were_timed_once(self, made):
        said = explain(made.floored, "R705")
        assert "each was timed once" in said
        assert "their times overlap" in explain(weighs_seconds(made.sound, apart=False), "R705")
        assert "in 2 of these all are one model" in explain(weighs_seconds(made.sound, apart=False), "R705")
        assert explain(made.sound, "R705") == "Evaluations are weighed, which every run repeats."

    def test_a_less_accurate_method_that_is_kept_for_noise(self, made):
        kept = with_verdicts(weighs_seconds(made.sound, apart=False), "max", kept=True, step=None, accuracy=0.9)
        noise = look(made, lambda _: with_verdicts(kept, "zscore", accuracy=0.5), "R705")
        assert noise.values["choices"][0]["methods"] == ["zscore"]

    def test_optimism_in_figures(self, made):
        said = explain(made.floored, "R706")
        assert "looks at confirmation rows" in said
        assert "(nested " in said
        figures = {"naive_accuracy": 0.6, "nested_accuracy": 0.5, "naive_log_loss": 0.8, "nested_log_loss": 0.9}
        changed = made.sound.choices[0].optimism.model_copy(update=figures | {"folds": 5, "changed": 3})
        said = explain(with_verdicts(made.sound, None, {"optimism": changed}), "R706")
        assert (
            "Pier, log loss 0.8000 (nested 0.9000), accuracy 0.6000 (nested 0.5000), another model in 3 of 5"
            in said
        )
        few = with_verdicts(made.sound, None, {"optimism": None})
        assert explain(few, "R706") == "Too few bridges to measure it."
        few = with_verdicts(made.floored, None, {"optimism": None})
        assert explain(few, "R706").endswith("too few bridges to measure it.")

    def test_what_the_paper_would_have_selected(self, made):
        assert "boxcox is selected in Longitudinal girder (paper) with a log loss of 10." in explain(
            made.floored, "R707"
        )
        assert "boxcox would be selected by accuracy and cost alone in Longitudinal girder" in explain(
            made.unselected, "R707"
        )


class TestGolden:
    def test_how_far_outside(self, made):
        far = with_golden(made.sound, age_at_inspection_1=lambda n, x: np.where(n == 0, 99.0, x))
        finding = look(made, lambda _: far, "R501")
        worst = max(finding.values["covariates"], key=lambda one: one["farthest"])
        low, high = worst["training"]
        assert worst["farthest"] == pytest.approx((99.0 - high) / (high - low))
        assert f"age_at_inspection_1 in {worst['outside']:.1%} of the rows" in finding.explanation

    def test_states_by_name(self, made):
        new = with_golden(made.sound, state_2=lambda n, state: np.where(n == 0, 6, state))
        assert "(rating 6; training rows have 1, 2, 3, 4)" in explain(new, "R503")
        assert "1 of 900 confirmation rows" in explain(new, "R803")

    def test_judged_rows_that_were_left_out(self, made):
        cases = [
            one.model_copy(update={"persistence": replace(one.persistence, unsupported=7)})
            for one in made.sound.described
        ]
        said = explain(replace(made.sound, described=tuple(cases)), "R803")
        assert "Pier: 0 of 900 confirmation rows and 7 of the rows of the choice" in said

    def test_why_a_choice_is_not_confirmed(self, made):
        assert "the golden rows chose it, and cannot confirm it" in explain(made.floored, "R805")
        assert "the confirmation rows were not looked at" in explain(replace(made.sound, looks=()), "R805")

    def test_a_second_look_says_where_the_first_was(self, made):
        seen = with_confirmed(made.sound, seen="other, 2026-01-31")
        assert "zscore in Pier: before: other, 2026-01-31" in explain(seen, "R806")


class TestUnusual:
    def test_a_study_of_which_nothing_is_done(self, made):
        empty = replace(made.sound, results=(), described=(), choices=(), looks=())
        findings = {one.code: one for one in check_study(empty)}
        assert findings.pop("R708").explanation == "0 of 4 trials and 0 of 2 choices are done."
        assert {one.verdict for one in findings.values()} == {ABSENT}

    def test_one_trial_and_no_choice(self, made):
        begun = replace(made.sound, results=made.sound.results[:1], choices=(), looks=())
        verdicts = {one.code: one.verdict for one in check_study(begun)}
        assert verdicts["R708"] == TIP
        assert verdicts["R701"] == ABSENT
        assert ISSUE not in verdicts.values()

    def test_everything_failed(self, made):
        why = {"scores": None, "certificate": None, "outcome": None, "log_likelihood": None}
        failed = with_trials(made.sound, status=Status.NOT_FITTED, reason="no.", converged=False, **why)
        none = with_verdicts(failed, None, {"chosen": None}, kept=False, step=Step.CERTIFIED, accuracy=None)
        verdicts = {one.code: one.verdict for one in check_study(replace(none, looks=()))}
        assert (verdicts["R701"], verdicts["R608"], verdicts["R602"]) == (ISSUE, TIP, ABSENT)
        assert verdicts["R703"] == ABSENT

    def test_nothing_is_said_of_what_was_not_scored(self, made):
        train = made.rows.train.filter(case="Abutment")
        parts = rekka.Partition(train, train.head(0), train.head(0), "given")
        study = rekka.compare(parts, methods=["zscore"], rule="pareto")
        findings = {one.code: one for one in check_study(study)}
        assert study.trials["accuracy"].null_count() == 1
        assert {findings[code].verdict for code in ("R703", "R704", "R501", "R503")} == {ABSENT}
        assert (
            findings["R804"].explanation
            == "Fewer than 50 confirmation rows, so that one row decides: Abutment (0)."
        )

    def test_no_covariates(self, made):
        rows = draw_rows(n=600).drop("age_at_inspection_1", "bridge_length", "traffic_mean")
        study = rekka.compare(rows, covariates=[], methods=["zscore"], guard={"resamples": 2})
        assert explain(study, "R704") == "The study has no covariates."
        assert explain(study, "R302") == "The study has no covariates."

    def test_very_many_cases(self, made):
        """Names at most a handful and counts the rest; the values have them all."""
        study = replicate(made.floored, 60)
        findings = {one.code: one for one in check_study(study)}
        assert all(len(one.explanation) < 3000 for one in findings.values())
        assert len(findings["R404"].cases) == len(findings["R404"].values["cases"]) == 60
        assert findings["R404"].explanation.endswith("; and 56 more.")
        assert " more" in findings["R602"].explanation

    def test_facts_are_told_in_part(self):
        words = load_words(ENGLISH)
        assert words.join(["a", "b"], "semicolon", 2) == "a; b"
        assert words.join(["a", "b", "c"], "semicolon", 2) == "a; b; and 1 more"


def replicate(study, copies):
    """The study with its cases many times over, under other names."""

    def rename(one, number, **fields):
        return one.model_copy(update={name: f"{value} {number}" for name, value in fields.items()})

    def again(ones, change):
        return tuple(change(one, number) for number in range(copies // 2) for one in ones)

    rows = study.read_rows()
    frame = pl.concat(rows.frame.with_columns(case=pl.col("case") + f" {number}") for number in range(copies // 2))
    return replace(
        study,
        planned=study.planned * (copies // 2),
        results=again(study.results, lambda t, n: t.model_copy(update={"key": rename(t.key, n, case=t.key.case)})),
        described=again(study.described, lambda c, n: rename(c, n, name=c.name)),
        choices=again(study.choices, lambda c, n: rename(c, n, case=c.case)),
        read_rows=lambda: replace(rows, table=frame),
    )


ONTARIO = {
    "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
    "state": {"bands": [85, 75, 70, 60], "missing": [0]},
}


def test_ontario_under_the_guarded_rule(ontario):
    widths = {
        "file": ontario / "bridge_condition_open_data_2017_update_final.csv",
        "names": ["id", "name", "latitude", "longitude", "built", "length", "width"],
        "columns": {"bridge": "id", "width": "width"},
        "agree": {"column": "length", "relative": 0.1, "absolute": 2},
    }
    study = rekka.compare(ontario / "bridge_data.csv", ONTARIO | {"join": [widths]}, guard={"resamples": 2})
    calibration = study.calibration("all", rows="train", replicates=39)
    findings = {one.code: one for one in check_study(study, calibrations={("exact", "all"): calibration})}
    assert [one.code for one in findings.values() if one.verdict == ISSUE] == ["R611"]
    # Ratings hardly move in a year or two, so that "as it was" is right four times in five; the probabilities are
    # better than one rate a state for all that; the longest bridge of the table is golden; and more bridges fall
    # from state 1 by three states within two years than one step after the other explains.
    assert "went from rating 85 and above to" in findings["R611"].explanation
    assert findings["R703"].verdict == TIP
    assert "0.8068 on confirmation rows" in findings["R703"].explanation
    assert findings["R704"].verdict == PASSED
    assert findings["R501"].explanation.startswith("Outside the training range: all rows: bridge_length in 0.1%")
    assert findings["R501"].verdict == TIP
    for code in ("R601", "R602", "R603", "R402", "R605", "R701", "R705", "R805", "R806", "R807"):
        assert findings[code].verdict in (PASSED, ABSENT), findings[code].explanation
