"""One trial, a component by a method under a preset: fit on its training rows, score the rows it is judged on.

A trial that fails is a value with a status and a reason. Nothing here looks at another trial.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from rekka.core.errors import BadOption, InputError, OutsideTrainingRange, ScalingError, count_of
from rekka.core.numerics import quiet
from rekka.data.categories import NO_CODING
from rekka.evaluation.bounds import describe_bound, find_bounds, mark_bounds
from rekka.evaluation.resampling import Sample, draw_bootstrap
from rekka.evaluation.scores import Scores
from rekka.model import inputs
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS, Certificate, Verdict
from rekka.model.clock import make_clock
from rekka.model.fit import Fit, Options, Predictor, Refit, fit_rows, refit_rows
from rekka.model.serial import ModelFile, choose_version, dump_model
from rekka.model.solvers import Outcome
from rekka.model.survey import FitTest
from rekka.scaling.serial import scaling_to_json
from rekka.streaming.clustered_errors import leave_for_scores
from rekka.streaming.fit import fit_source, refit_source
from rekka.study.case_rows import GOLDEN, IDENTITY, IN_FOLDS, WORDS, CaseRows
from rekka.study.plan import (
    BARE,
    BASE,
    BOUND,
    PLAIN,
    POOLED,
    PRESETS,
    RIDGE,
    SHRINKING,
    choose_options,
    leave_out,
    list_options,
)
from rekka.study.scores import BridgeScores

# Log-likelihood units. Two fits this close differ by a hundredth of what separates a coefficient from one a
# standard error away (half a unit), and in no printed score.
AT_MAXIMUM = 0.01
HOPELESS = 1e6  # log-likelihood units; beyond it a fit is nowhere


class Status(enum.StrEnum):
    """Result of a trial. The value is what a person reads."""

    CERTIFIED = "certified"
    AT_MAXIMUM = "reached a maximum"  # of a resample: other starts are not tried
    UNCERTIFIED = "success without certificate"  # the solver's own word, not ours
    NO_MAXIMUM = "no finite maximum"
    NOT_DETERMINED = "not determined"
    SOLVER_FAILED = "solver failed"
    TRANSFORM_FAILED = "transform failed"
    NOT_FITTED = "not fitted"


class Key(BaseModel):
    """Key of a trial."""

    model_config = ConfigDict(frozen=True)

    case: str
    preset: str
    method: str

    def __str__(self) -> str:
        return f"{self.case}, {self.method} ({self.preset})"


class Value(BaseModel):
    """A value that a run folder keeps as JSON: frozen, checked when it is read, infinite figures as words."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Trial(Value):
    """Result of a trial without its model. ``seconds`` holds the serial timings, none if not timed yet."""

    key: Key
    status: Status
    reason: str | None
    converged: bool  # the paper's sense: success, everything finite, and the judged rows could be scored
    outcome: Outcome | None = None
    seconds: tuple[float, ...] = ()
    log_likelihood: float | None = None
    certificate: Certificate | None = None
    scores: Scores | None = None

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum whose judged rows could be scored."""
        return self.status is Status.CERTIFIED

    @property
    def eligible(self) -> bool:
        """Whether the trial can be selected: converged by the paper's preset, certified by the exact one."""
        return self.certified if PRESETS[self.key.preset].eligible == "certified" else self.converged

    @property
    def timed(self) -> bool:
        """Whether there is nothing left to time."""
        return bool(self.seconds) or self.outcome is None


class Case(Value):
    """Description of a case: its rows in each part, its K, its covariates, and its baselines.

    ``judged_on`` names the rows that methods and baselines are scored on; ``bridges`` and ``moves`` are those of
    the training rows.
    """

    name: str
    train: int
    validation: int
    golden: int
    judged_on: str
    bridges: int
    moves: int
    n_states: int
    covariates: tuple[str, ...]
    constant: tuple[str, ...]  # covariates that do not vary in the training rows: zero under every method
    persistence: Scores
    no_covariates: Scores

    @property
    def events_per_parameter(self) -> float:
        """Departures from a state in the training rows, for each coefficient to estimate."""
        parameters = (self.n_states - 1) * (len(self.covariates) + 1)
        return self.moves / parameters if parameters > 0 else math.nan

    @property
    def exploratory(self) -> str | None:
        """Reason why the case is too small to conclude from, in words; None where it is not."""
        reasons = []
        if self.train < FEW_ROWS:
            reasons.append(f"{count_of(self.train, 'training row')}, fewer than {FEW_ROWS}")
        if self.events_per_parameter < FEW_EVENTS:
            reasons.append(f"{self.events_per_parameter:.1f} events per parameter, fewer than {FEW_EVENTS}")
        return "; ".join(reasons) or None


@dataclass(frozen=True)
class Fitted:
    """A trial and its fitted model and operator as JSON texts; None where there is none."""

    trial: Trial
    model: str | None = None
    scaling: str | None = None

    def with_seconds(self, seconds: Sequence[float]) -> Fitted:
        """Replace the timings; the first is the model's own. None were taken where fits ran side by side."""
        if self.trial.outcome is None or self.model is None:
            return self
        outcome = dataclasses.replace(self.trial.outcome, seconds=seconds[0] if seconds else math.nan)
        trial = self.trial.model_copy(update={"outcome": outcome, "seconds": tuple(seconds)})
        return Fitted(trial, _change(self.model, outcome=outcome), self.scaling)

    def with_test(self, test: FitTest) -> Fitted:
        """Put a test of fit into the model."""
        return self if self.model is None else Fitted(self.trial, _change(self.model, fit_test=test), self.scaling)


def _change(model: str, **parts: Any) -> str:
    """A model, as JSON, with other parts."""
    file = ModelFile.model_validate_json(model)
    file = file.model_copy(update={"version": choose_version(file.coding), **parts})
    return file.to_text()


def run_trial(rows: CaseRows, key: Key, seed: int, *, threads: int | None = None) -> Fitted:
    """Algorithm 1, lines 7 to 15: fit the operator and the model, then score the judged rows with the same."""
    if not rows.counts["train"]:
        return _give_up(
            key,
            Status.NOT_FITTED,
            f"no training row of this component; {rows.counts['golden']:,} confirmation rows",
        )
    try:
        with quiet():
            return _fit_and_score(rows, key, seed, threads)
    except ScalingError as error:
        return _give_up(key, Status.TRANSFORM_FAILED, str(error))
    except InputError as error:
        return _give_up(key, Status.NOT_FITTED, str(error))
    except (ArithmeticError, ValueError) as error:  # linear algebra on numbers that left their range
        return _give_up(key, Status.SOLVER_FAILED, f"the fit could not be computed: {error}")


def _give_up(key: Key, status: Status, reason: str) -> Fitted:
    return Fitted(Trial(key=key, status=status, reason=reason, converged=False))


def _fit_and_score(rows: CaseRows, key: Key, seed: int, threads: int | None) -> Fitted:
    rows = choose_columns(rows, key)
    fit, options = _fit(rows, key, seed, threads)
    converged, scores, certificate = fit.converged, None, fit.certificate
    status, reason = _judge(fit.outcome, certificate, converged)
    if key.method == BOUND and status is Status.CERTIFIED:
        reason = "; ".join(map(describe_bound, find_bounds(rows.training.rows))) or None
    if converged:
        try:
            scores = judge(rows, fit, key, seed).scores
            certificate = _add_golden(certificate, rows, scores)
        except ScalingError as error:
            status, reason, converged = Status.TRANSFORM_FAILED, _blame(error, rows), False
    trial = Trial(
        key=key,
        status=status,
        reason=reason,
        converged=converged,
        outcome=fit.outcome,
        seconds=(fit.outcome.seconds,),
        log_likelihood=fit.inference.log_likelihood,
        certificate=certificate,
        scores=scores,
    )
    used = {"scaling": options.scaling, "ridge": options.ridge, "prior": options.prior}
    parameters = {name: value for name, value in used.items() if value} | {"seed": seed}
    named = list(rows.coding.columns(rows.covariates))
    parameters |= {"covariates": named} | list_options(key.preset, rows.clock)
    model = dump_model(fit, parameters, [*IDENTITY, *named], case=key.case)
    return Fitted(trial, model, scaling_to_json(fit.scaling))


def choose_columns(rows: CaseRows, key: Key) -> CaseRows:
    """The rows with the covariates that a method takes: all, or none."""
    return rows.without_covariates() if key.method in BARE else rows


def judge(rows: CaseRows, fitted: Predictor, key: Key, seed: int) -> BridgeScores:
    """Score the judged rows as the trial's model forecasts them; in folds, as fits by its method do."""
    return rows.judge(fitted, refitting(rows, key, seed), seed)


def refitting(rows: CaseRows, key: Key, seed: int, fixed: Options | None = None) -> Callable[[Sample], Refit]:
    """A function that fits some of a case's rows as the trial fits its training rows.

    A penalty or a prior is estimated from these rows alone; or it is the ``fixed`` one.
    """
    given = list_options(key.preset, rows.clock) | {"threads": 1, "coding": choose_columns(rows, key).coding}

    def refit(sample: Sample) -> Refit:
        sample = sample.only(() if key.method in BARE else sample.covariates)
        if fixed is None:
            start = rows.pooling if key.method == POOLED else None
            others = leave_out(rows.others, np.setdiff1d(rows.all_bridges, sample.bridge)) if start else {}
            options = choose_options(key.method, sample, others, seed, given, start)
        elif key.method == RIDGE and fixed.ridge:  # an intercept may need holding among these rows
            options = choose_options(key.method, sample, {}, seed, given, ridge=fixed.ridge)
        else:
            options = fixed
        return refit_rows(sample.rows, sample.x, sample.covariates, options)

    return refit


def redrawing(
    rows: CaseRows, key: Key, seed: int, fixed: Options | None, fitted: Predictor
) -> Callable[[np.random.Generator], Refit]:
    """A function that draws the bridges of a case's training rows again and fits what was drawn.

    Where there are very many rows, Newton starts from what the trial has fitted.
    """
    rows = choose_columns(rows, key)
    if rows.streamed:
        options = _choose_streamed(rows, key, seed, None)
        return lambda rng: refit_source(rows.redraw(rng), options, n_states=rows.n_states, start=fitted.beta)
    sample, refit = rows.training, refitting(rows, key, seed, fixed)
    return lambda rng: refit(sample.take(draw_bootstrap(sample.bridge, rng)[0]))


def time_trial(rows: CaseRows, key: Key, seed: int, repeats: int) -> tuple[float, ...]:
    """Seconds of the solver call alone, of so many fits one after the other."""
    with quiet():
        rows = choose_columns(rows, key)
        return tuple(_fit(rows, key, seed, None)[0].outcome.seconds for _ in range(repeats))


def describe_case(rows: CaseRows, seed: int = 0) -> Case:
    """Counts and baselines: that nothing changes, and the model without covariates."""
    return Case(
        name=rows.name,
        **rows.counts,
        judged_on=rows.judged_on,
        bridges=rows.trained,
        moves=rows.moves,
        n_states=rows.n_states,
        covariates=rows.covariates,
        constant=rows.constant,
        persistence=rows.persist(rows.judged_on).scores,
        no_covariates=judge_plain(rows, seed).scores,
    )


def judge_plain(rows: CaseRows, seed: int, judged_on: str | None = None) -> BridgeScores:
    """Score the judged rows as the model without covariates forecasts them; none where it cannot be fitted."""
    part = judged_on or rows.judged_on
    bare = replace(rows, covariates=(), judged_on=part, coding=NO_CODING)

    def fit(sample: Sample) -> Refit:
        return refit_rows(sample.rows, sample.x, (), Options(scaling=None, threads=1))

    try:
        with quiet():
            if rows.streamed:
                plain = refit_source(rows.source("train", ()), Options(scaling=None), n_states=rows.n_states)
            else:
                plain = fit(bare.training)
            return bare.judge(plain, fit, seed)
    except (ArithmeticError, ValueError):  # the trials of this case give the reason
        counted = ("train", "validation") if part == IN_FOLDS else (part,)
        return BridgeScores.of_nothing(sum(rows.counts[one] for one in counted))


def _fit(rows: CaseRows, key: Key, seed: int, threads: int | None) -> tuple[Fit, Options]:
    """Fit as the estimator does, without scikit-learn, whose import takes longer than all fits of a study."""
    if rows.streamed:
        options = _choose_streamed(rows, key, seed, threads)
        source = rows.source("train", threads=threads)
        room = leave_for_scores(rows.memory)
        return fit_source(source, options, n_states=rows.n_states, clustered=True, score_bytes=room), options
    columns = inputs.Columns("state_1", "interval_years", rows.covariates)
    train = rows.frame("train")
    groups = train["bridge_id"].to_numpy()
    clock = make_clock(rows.covariates, rows.clock)
    training = inputs.read_training(inputs.as_frame(train), train["state_2"], columns, groups=groups, clock=clock)
    given = list_options(key.preset, rows.clock) | {"threads": threads, "coding": rows.coding}
    start = rows.pooling if key.method == POOLED else None
    options = choose_options(key.method, rows.training, rows.others, seed, given, start)
    fit = fit_rows(training.rows, training.x, rows.covariates, options, training.groups)
    return mark_bounds(fit, training.rows) if key.method == BOUND else fit, options


def _choose_streamed(rows: CaseRows, key: Key, seed: int, threads: int | None) -> Options:
    """Choose how to fit rows that stream in blocks; refuse what needs all of them in memory."""
    given = list_options(key.preset, rows.clock)
    held = key.method in (*SHRINKING, BOUND)
    if held or given.get("likelihood") == "paper":
        what = key.method if held else "the paper's floored likelihood"
        raise BadOption(
            f"{what} needs all rows in memory, and the {rows.counts['train']:,} training rows of {rows.name} are "
            "more than the limit has room for; raise --memory, or leave it out"
        )
    method = BASE if key.method == PLAIN else key.method
    return Options(scaling=method, seed=seed, threads=threads, coding=rows.coding, **given)


def find_status(certificate: Certificate, converged: bool) -> Status:
    """Status of a fit."""
    match certificate.verdict:
        case Verdict.CERTIFIED if converged:
            return Status.CERTIFIED
        case Verdict.LOCAL_MAXIMUM if converged:
            return Status.AT_MAXIMUM
        case Verdict.NO_FINITE_MAXIMUM:
            return Status.NO_MAXIMUM
        case Verdict.NOT_IDENTIFIED:
            return Status.NOT_DETERMINED
    return Status.UNCERTIFIED if converged else Status.SOLVER_FAILED


def _judge(outcome: Outcome, certificate: Certificate, converged: bool) -> tuple[Status, str | None]:
    """The status and the reason in words."""
    reasons = "; ".join(certificate.reasons)
    match find_status(certificate, converged):
        case Status.CERTIFIED:
            return Status.CERTIFIED, None
        case Status.UNCERTIFIED:
            plateau = certificate.plateau_train
            level = f"{plateau:.0%} of the training rows are at the probability floor; " if plateau > 0 else ""
            return Status.UNCERTIFIED, f"{level}{reasons}"
        case Status.SOLVER_FAILED:
            impossible = f"it reports success at a log-likelihood of {-outcome.objective}, which no rows have"
            said = impossible if outcome.success else outcome.message
            rest = reasons or "where it stopped is a maximum all the same"
            return Status.SOLVER_FAILED, f"{said}; {rest}"
        case status:
            return status, reasons


def _add_golden(certificate: Certificate, rows: CaseRows, scores: Scores) -> Certificate:
    """The certificate with the share of golden rows at the probability floor, where these were scored."""
    if rows.judged_on != GOLDEN or not scores.rows:
        return certificate
    return replace(certificate, plateau_golden=scores.at_floor / scores.rows)


def _blame(error: ScalingError, rows: CaseRows) -> str:
    """Name what the operator could not take, with the bridge in place of a row that only we can count."""
    where = WORDS[rows.judged_on]
    if not isinstance(error, OutsideTrainingRange) or rows.judged_on == IN_FOLDS:
        return f"{where}: {error}"
    row, bridge = error.values["row"], error.values["bridge"]
    return f"{where}: {str(error).replace(f'row {row}', f'bridge {bridge}', 1)}"


def spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    """Median, least and most of the timings; not numbers where there are none."""
    return (float(np.median(seconds)), min(seconds), max(seconds)) if seconds else (math.nan,) * 3
