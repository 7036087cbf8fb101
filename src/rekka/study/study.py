"""The result of a study: its trials as one frame, the tables that follow from them, its models and calibrations.

What is chosen is tested on its training rows once, with the choice; the model's file and the choice keep the
result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

import rekka
from rekka.core.columns import read_row, schema_of
from rekka.core.errors import BadOption, bad_option, did_you_mean
from rekka.core.language import Said
from rekka.core.numerics import quiet
from rekka.core.ratings import Ratings
from rekka.data.partition import PARTS
from rekka.data.reading import TableReading
from rekka.evaluation.calibration import MOST_TESTED, REPLICATES, Calibration, calibrate, check_fit
from rekka.evaluation.goodness import find_links
from rekka.evaluation.resampling import Sample
from rekka.model.clock import Clock, make_clock
from rekka.model.fit import Fit, Options
from rekka.model.serial import load_model
from rekka.model.survey import FitTest
from rekka.study.case_rows import keep_supported
from rekka.study.choice import Choice, MethodVerdict, Optimism
from rekka.study.confirmation import Confirmed, Look
from rekka.study.elements import ElementChoice
from rekka.study.explanations import explain_case, explain_method, explain_selection, in_english
from rekka.study.hypotheses import Hypothesis, judge_hypotheses
from rekka.study.plan import PARETO, StudyPlan
from rekka.study.rows import StudyRows
from rekka.study.tables import (
    EXACT,
    MARKS,
    SCHEMA,
    Equals,
    TrialRow,
    find_equals,
    mark_selected,
    tabulate_agreement,
    tabulate_floor,
    tabulate_methods,
    tabulate_presets,
    tabulate_selection,
)
from rekka.study.trial import Case, Fitted, Key, Trial, spread

TRAIN = "train"


def calibrate_model(
    rows: StudyRows, case: str, model: str, part: str, *, replicates: int | None = None, seed: int
) -> Calibration:
    """Judge the rows of a part by a fitted model, given as JSON; a member's visits are linked where known.

    Rows whose states the training rows do not know are left out, as they are from every score. Without a number of
    ``replicates`` the test of the training rows is the model's own, where it has one.
    """
    fit, parameters, _ = load_model(model)
    wanted = (TRAIN,) if part == TRAIN else (TRAIN, part)
    frames = [_take_part(rows, case, name, fit) for name in wanted]
    samples = [Sample.of(frame, fit.covariates, fit.n_states, fit.coding) for frame in frames]
    known = fit.fit_test if part == TRAIN and replicates is None else None
    if replicates is None:
        replicates = REPLICATES if known is None else 0
    with quiet():
        found = calibrate(
            fit,
            samples[-1],
            training=samples[0],
            options=_read_options(fit, parameters),
            follows=find_links(pl.concat(frames)),
            replicates=replicates,
            seed=seed,
            certificate=fit.certificate,
        )
    return found if known is None else found.with_test(known)


def check_model(rows: StudyRows, case: str, model: str, *, seed: int) -> FitTest | None:
    """Test a fitted model, given as JSON, on its training rows; None where no test can be made."""
    fit, parameters, _ = load_model(model)
    frame = _take_part(rows, case, TRAIN, fit)
    sample = Sample.of(frame, fit.covariates, fit.n_states, fit.coding)
    with quiet():
        return check_fit(fit, sample, options=_read_options(fit, parameters), follows=find_links(frame), seed=seed)


def _take_part(rows: StudyRows, case: str, part: str, fit: Fit) -> pl.DataFrame:
    found = rows.frame.filter(pl.col("case") == case, pl.col("part") == part)
    return keep_supported(fit.coding.code(found.lazy()).collect() if fit.coding else found, fit.n_states)


def _read_options(fit: Fit, parameters: dict[str, Any]) -> Options:
    own = {"ridge": parameters.get("ridge", 0.0), "prior": parameters.get("prior")}
    return Options(scaling=parameters["scaling"], threads=1, **own, family=fit.family.name, coding=fit.coding)


NOT_CHOSEN = "not chosen yet: go on with the run"
COUNTS = ("train", "validation", "golden", "bridges", "moves", "n_states")
TIMES = ("seconds", "seconds_low", "seconds_high")  # the columns that a rerun does not repeat
SCORES = ("accuracy", "log_loss", "log_loss_exact", "macro_recall", "brier", "rps", "at_floor")


@dataclass(frozen=True, eq=False)
class Study:
    """Trials and what follows from them. Made by ``compare`` and ``load_study``.

    ``planned`` is the number of trials there are to be; a run that was stopped has fewer ``results``. Models are
    read when they are asked for.

    Examples
    --------
    >>> import rekka
    >>> study = rekka.load_study("run")
    >>> study.trials.select("method", "certified").rows()
    [('zscore', True), ('minmax', True)]
    >>> study.model("all").certificate_.certified
    True

    """

    plan: StudyPlan
    scheme: str
    planned: int
    results: tuple[Trial, ...]
    described: tuple[Case, ...]
    choices: tuple[Choice, ...]
    looks: tuple[Look, ...]
    read_fitted: Callable[[Key], Fitted]
    read_rows: Callable[[], StudyRows]
    notes: tuple[str, ...] = ()  # how the tables were understood, and what became of their records
    folder: Path | None = None  # the run folder, where there is one
    reading: TableReading | None = None  # how the tables were read: forecasts read theirs in the same way
    rungs: tuple[Trial, ...] = ()  # trials beyond the plan's, where none of these served
    elements: tuple[ElementChoice, ...] = ()  # of histories, chosen for each component where that was asked for

    @property
    def every_trial(self) -> tuple[Trial, ...]:
        """The trials of the plan, and those that the ladder added."""
        return (*self.results, *self.rungs)

    @cached_property
    def ratings(self) -> Ratings:
        """Ratings that the states are, as the tables call them."""
        labels = None if self.reading is None else self.reading.labels
        worst = max((case.n_states for case in self.described), default=0)
        return Ratings.of(labels, max(worst, len(labels or ())))

    @cached_property
    def trials(self) -> pl.DataFrame:
        """A row for each trial: what became of it, its costs, certificate, scores and counts; if the study's rule
        selects it, and if the paper's would, on the same scores.
        """  # noqa: D205
        cases = {case.name: case for case in self.described}
        lines = [self.ratings.reword_all(_lay_out(trial, cases[trial.key.case])) for trial in self.results]
        own = {name: kind for name, kind in SCHEMA.items() if name not in MARKS}
        table = mark_selected(pl.DataFrame(lines, schema=own), self.plan.study.costs())
        kept = {(choice.case, choice.preset, method) for choice in self.choices for method in choice.kept}
        selected = [key in kept for key in table.select("case", "preset", "method").rows()]
        return table.rename({"selected": "pareto"}).with_columns(pl.Series("selected", selected, dtype=pl.Boolean))

    @cached_property
    def ladder(self) -> pl.DataFrame:
        """The trials that were added where no method of the plan served, as ``trials`` are; which was chosen."""
        cases = {case.name: case for case in self.described}
        chosen = {choice.key for choice in self.choices}
        lines = [_lay_out(one, cases[one.key.case]) | {"chosen": one.key in chosen} for one in self.rungs]
        own = {name: kind for name, kind in SCHEMA.items() if name not in MARKS}
        return pl.DataFrame(lines, schema={**own, "chosen": pl.Boolean})

    @cached_property
    def by_pareto(self) -> pl.DataFrame:
        """The trials with what the paper's rule selects, whatever the study's own is: what the paper speaks of."""
        return self.trials.with_columns(selected="pareto")

    @cached_property
    def selection(self) -> pl.DataFrame:
        """For each preset and case what was chosen, what else the rule keeps, and why; and the Pareto set."""
        pareto = tabulate_selection(self.by_pareto).rename({"selected": "pareto"})
        lines = []
        for row in pareto.iter_rows(named=True):
            choice = self.choice(row["case"], row["preset"])
            why = NOT_CHOSEN if choice is None else in_english(self.explain(choice))
            lines.append(
                {
                    "chosen": None if choice is None else choice.chosen,
                    "selected": [] if choice is None else list(choice.kept),
                    "judged_on": None if choice is None else choice.judged_on,
                    "why": why,
                }
            )
        schema: dict[str, Any] = {"chosen": pl.String, "selected": pl.List(pl.String), "judged_on": pl.String}
        chosen = pl.DataFrame(lines, schema=schema | {"why": pl.String})
        order = ("preset", "case", "chosen", "selected", "pareto", "eligible", "trials", "judged_on", "why")
        return pl.concat([pareto.drop("why"), chosen], how="horizontal").select(order)

    def explain(self, choice: Choice, verdict: MethodVerdict | None = None) -> Said:
        """Explain a choice, or why one of its methods was kept or dropped: a key with values, for any language."""
        said = self._explain(choice, verdict)
        reworded: Said = self.ratings.reword_all(said)
        return reworded

    def _explain(self, choice: Choice, verdict: MethodVerdict | None) -> Said:
        if verdict is not None:
            return explain_method(choice, verdict, self.plan.guard, self.trials_of(choice)[verdict.method])
        if self.plan.study.rule == PARETO:
            rows = self.by_pareto.filter(preset=choice.preset, case=choice.case).to_dicts()
            return explain_selection(rows)
        return explain_case(choice, self.plan.guard, self.trials_of(choice), self.ratings)

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """Every method in every case: kept or dropped, at which step, with which figures, in a sentence."""
        lines = [
            {"preset": choice.preset, "case": choice.case, "rule": choice.rule}
            | verdict.model_dump(mode="json")
            | {"why": in_english(self.explain(choice, verdict))}
            for choice in self.choices
            for verdict in choice.verdicts
        ]
        texts = dict.fromkeys(("preset", "case", "rule"), pl.String)
        return pl.DataFrame(lines, schema={**texts, **schema_of(MethodVerdict), "why": pl.String})

    @cached_property
    def optimism(self) -> pl.DataFrame:
        """Scores of what was chosen on the rows it was chosen by, beside nested ones."""
        lines = [
            {"preset": choice.preset, "case": choice.case, "judged_on": choice.judged_on, "chosen": choice.chosen}
            | choice.optimism.model_dump()
            for choice in self.choices
            if choice.optimism is not None
        ]
        texts = dict.fromkeys(("preset", "case", "judged_on", "chosen"), pl.String)
        return pl.DataFrame(lines, schema={**texts, **schema_of(Optimism)})

    @cached_property
    def confirmation(self) -> pl.DataFrame:
        """The looks at the golden rows: scores of what was chosen, with intervals, beside the two baselines."""
        lines = [
            {"look": number, "made": look.made, "forced": look.forced} | result.model_dump()
            for number, look in enumerate(self.looks, start=1)
            for result in look.results
        ]
        own = {"look": pl.Int64, "made": pl.String, "forced": pl.Boolean}
        return pl.DataFrame(lines, schema={**own, **schema_of(Confirmed)})

    @property
    def clock(self) -> Clock:
        """Clock of the fits: which covariates advance, and where in an interval they are taken."""
        names = dict.fromkeys(name for case in self.described for name in case.covariates)
        return make_clock(tuple(names), self.plan.study.clock)

    @property
    def main_preset(self) -> str:
        """The preset whose choices are the answer: the exact one, if it was run."""
        presets = self.plan.study.presets
        return EXACT if EXACT in presets else presets[0]

    def choice(self, case: str, preset: str | None = None) -> Choice | None:
        """Choice for a case; None where that is not done yet."""
        wanted = preset or self._only_preset()
        return next((one for one in self.choices if (one.case, one.preset) == (case, wanted)), None)

    def trials_of(self, choice: Choice) -> dict[str, Trial]:
        """The trials that a choice was made among, by method."""
        mine = (
            trial
            for trial in self.every_trial
            if (trial.key.case, trial.key.preset) == (choice.case, choice.preset)
        )
        return {trial.key.method: trial for trial in mine}

    @cached_property
    def methods(self) -> pl.DataFrame:
        """For each preset and method how often it converged and was selected, its mean accuracy and medians."""
        return tabulate_methods(self.trials)

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The paper's five hypotheses, judged on these trials."""
        return judge_hypotheses(self.by_pareto)

    @cached_property
    def agreement(self) -> pl.DataFrame:
        """Whether the methods that are one model, as all affine ones are, agree; and which stopped short."""
        return tabulate_agreement(self.trials)

    @cached_property
    def equals(self) -> tuple[Equals, ...]:
        """Methods that are one model and agree under the exact preset: tables for people show them in one row."""
        return find_equals(self.trials, self.agreement, self.plan.guard.default)

    @cached_property
    def presets(self) -> pl.DataFrame:
        """The paper's conditions beside the exact ones, and the cause of each difference; empty if one ran."""
        return tabulate_presets(self.trials)

    @cached_property
    def floor(self) -> pl.DataFrame:
        """Trials that the paper's rule selects with a log loss far worse than that of the alternatives."""
        return tabulate_floor(self.by_pareto)

    @cached_property
    def cases(self) -> pl.DataFrame:
        """Each case: rows in each part, states, covariates."""
        lines = [
            (
                *(getattr(c, name) for name in ("name", *COUNTS, "judged_on")),
                list(c.covariates), list(c.constant),
            )
            for c in self.described
        ]  # fmt: skip
        counts = dict.fromkeys(COUNTS, pl.Int64)
        lists = dict.fromkeys(("covariates", "constant"), pl.List(pl.String))
        schema: dict[str, Any] = {"case": pl.String, **counts, "judged_on": pl.String, **lists}
        return pl.DataFrame(lines, schema=schema, orient="row")

    @cached_property
    def baselines(self) -> pl.DataFrame:
        """Scores of saying that nothing changes, and of the model without covariates, on the same judged rows."""
        lines = [
            {"case": case.name, "baseline": name} | _finite(getattr(case, name).to_dict())
            for case in self.described
            for name in ("persistence", "no_covariates")
        ]
        whole = dict.fromkeys(("rows", "unsupported", "at_floor"), pl.Int64)
        shares = dict.fromkeys((name for name in SCORES if name != "at_floor"), pl.Float64)
        return pl.DataFrame(lines, schema={"case": pl.String, "baseline": pl.String, **whole, **shares})

    def model(
        self, case: str, method: str | None = None, preset: str | None = None
    ) -> rekka.ExponentialHazardMarkovModel:
        """The fitted model of a trial: what was chosen, unless a method is named; one preset needs no name."""
        key = self._find_key(case, method, preset or self._only_preset())
        return rekka.ExponentialHazardMarkovModel.from_json(self._read_model(key))

    def _find_key(self, case: str, method: str | None, preset: str) -> Key:
        """Find the key of a trial: the chosen one, unless a method is named."""
        if method is None:
            choice = self.choice(case, preset)
            method = None if choice is None else choice.chosen
            if choice is not None and method is None:
                raise BadOption(f"Nothing was chosen for {case}: name a method. {self._why(choice)}")
        return Key(case=case, preset=preset, method=method or self.plan.guard.default)

    def _read_model(self, key: Key) -> str:
        """The model as JSON."""
        trial = next((trial for trial in self.every_trial if trial.key == key), None)
        if trial is None:
            raise self._no_trial(key)
        text = self.read_fitted(key).model
        if text is None:
            raise BadOption(f"The trial {key} has no model: {self.ratings.reword(trial.reason or '')}")
        return text

    def calibration(
        self,
        case: str,
        preset: str | None = None,
        method: str | None = None,
        *,
        rows: str = "train",
        replicates: int | None = None,
    ) -> Calibration:
        """Observed against expected counts, reliability, a test of fit and the causes, for one model.

        What was chosen, unless a method is named. ``rows`` is "train", "validation" or "golden"; golden rows only
        of a model that was confirmed, or of a study that was judged on them. Without a number of ``replicates``
        the test of the training rows is the one that was made with the choice; any other takes some seconds.
        """
        preset = preset or self._only_preset()
        if rows not in PARTS:
            raise bad_option("rows", rows, PARTS)
        key = self._find_key(case, method, preset)
        if rows == "golden" and not self._has_looked(key):
            raise BadOption(
                f"The confirmation rows of {case} have not been looked at with {key.method}. A look is for "
                "confirming a choice: rekka.confirm."
            )
        text = self._read_model(key)
        return calibrate_model(
            self.read_rows(), case, text, rows, replicates=replicates, seed=self.plan.study.seed
        )

    def calibrations(
        self, on_case: Callable[[str, int, int], None] | None = None, *, test: bool | None = None
    ) -> dict[tuple[str, str], Calibration]:
        """The calibration of each chosen model on its training rows, by preset and case.

        ``on_case`` is called with each case that is done, the number done and the number there are. A test of fit
        that was not made with the choice is made if ``test``; by default, for up to 50 components.
        """
        wanted = len(self.described) <= MOST_TESTED if test is None else test
        chosen = [(choice.preset, choice.case) for choice in self.choices if choice.chosen is not None]
        found = {}
        for number, (preset, case) in enumerate(chosen, start=1):
            known = (choice := self.choice(case, preset)) is not None and choice.fit_test is not None
            found[preset, case] = self.calibration(case, preset, replicates=None if known or wanted else 0)
            if on_case:
                on_case(case, number, len(chosen))
        return found

    @cached_property
    def plot(self) -> rekka.Plots:
        """Charts: ``tradeoff()``, ``heatmap()``, ``calibration(case)``, ``forecast(case)``, ``network()`` ..."""
        return rekka.Plots(self)

    def report(self, **options: Any) -> rekka.Report:
        """The study as one page, which a notebook shows; see ``make_report`` for the options."""
        return rekka.make_report(self, **options)

    def _has_looked(self, key: Key) -> bool:
        """Whether golden rows were scored with this trial's model."""
        judged = next((one.judged_on for one in self.described if one.name == key.case), None)
        looked = {Key(case=r.case, preset=r.preset, method=r.method) for look in self.looks for r in look.results}
        return judged == "golden" or key in looked

    def _only_preset(self) -> str:
        presets = self.plan.study.presets
        if len(presets) > 1:
            raise BadOption(
                f"This study has more than one preset; say which: {', '.join(presets)}.", option="preset"
            )
        return presets[0]

    def _why(self, choice: Choice) -> str:
        return in_english(explain_case(choice, self.plan.guard, self.trials_of(choice), self.ratings))

    def _no_trial(self, key: Key) -> BadOption:
        plan = self.plan.study
        cases = plan.cases or tuple(case.name for case in self.described)
        for word, there in (("case", cases), ("method", plan.methods), ("preset", plan.presets)):
            name = getattr(key, word)
            if name not in there:
                hint = did_you_mean(name, there)
                return BadOption(f"There is no {word} {name!r} in this study; there are {', '.join(there)}.{hint}")
        return BadOption(f"The trial {key} has not been run yet. Continue the run first.")

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables, by name."""
        names = ("trials", "cases", "baselines", "selection", "verdicts", "optimism", "confirmation", "methods",
                 "agreement", "presets", "floor", "ladder")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def documents(self) -> dict[str, Any]:
        """Trials and hypotheses as plain data."""
        return {
            "trials": {"format": "rekka-trials", "version": 1, "trials": self.trials.to_dicts()},
            "hypotheses": [asdict(hypothesis) for hypothesis in self.hypotheses],
        }

    def __repr__(self) -> str:
        return f"<Study: {len(self.results)} of {self.planned} trials, {len(self.described)} cases>"


def _lay_out(trial: Trial, case: Case) -> dict[str, Any]:
    """A trial as a row of the frame."""
    median, low, high = spread(trial.seconds)
    own: dict[str, Any] = {
        "status": trial.status.value,
        "seconds": median,
        "seconds_low": low,
        "seconds_high": high,
        "timings": len(trial.seconds),
        "verdict": trial.certificate and trial.certificate.headline,
        "scored": trial.scores and trial.scores.rows,
        "unsupported": case.persistence.unsupported,
    }
    own |= {f"persistence_{name}": getattr(case.persistence, name) for name in ("accuracy", "log_loss")}
    own |= {f"no_covariates_{name}": getattr(case.no_covariates, name) for name in ("accuracy", "log_loss")}
    row = read_row(TrialRow, own, trial.key, trial, trial.outcome, trial.certificate, trial.scores, case)
    return {name: value for name, value in row.items() if name not in MARKS}


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace NaN, a score of no rows, by None."""
    return {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in values.items()}
