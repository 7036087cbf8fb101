"""One trial, one case by one method under one preset: fit on its training rows, score on its golden rows.

A trial that fails is a value with a status and a reason. Nothing here looks at another trial.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from rekka.errors import InputError, OutsideTrainingRange, ScalingError
from rekka.model import inputs
from rekka.model.certificate import Certificate, Verdict
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.likelihood import Rows
from rekka.model.serial import ModelFile, dump_model
from rekka.model.solvers import Outcome
from rekka.scaling.serial import scaling_to_json
from rekka.scores import Scores, score, score_persistence, split_supported
from rekka.study.plan import PRESETS


class Status(enum.StrEnum):
    """What became of a trial. The value is what a person reads."""

    CERTIFIED = "certified"
    UNCERTIFIED = "success without certificate"  # the solver's own word, not ours
    NO_MAXIMUM = "no finite maximum"
    NOT_DETERMINED = "not determined"
    SOLVER_FAILED = "solver failed"
    TRANSFORM_FAILED = "transform failed"
    NOT_FITTED = "not fitted"


class Key(BaseModel):
    """Which trial."""

    model_config = ConfigDict(frozen=True)

    case: str
    preset: str
    method: str

    def __str__(self) -> str:
        return f"{self.case}, {self.method} ({self.preset})"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Trial(_Value):
    """All that is known of a trial but its model. ``seconds`` holds the serial timings, none if not timed yet."""

    key: Key
    status: Status
    reason: str | None
    converged: bool  # the paper's sense: success, everything finite, and the golden rows could be scored
    outcome: Outcome | None = None
    seconds: tuple[float, ...] = ()
    log_likelihood: float | None = None
    certificate: Certificate | None = None
    scores: Scores | None = None

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum whose golden rows could be scored."""
        return self.status is Status.CERTIFIED

    @property
    def eligible(self) -> bool:
        """Whether it can be selected: converged in the paper's sense, or certified, as its preset has it."""
        return self.certified if PRESETS[self.key.preset].eligible == "certified" else self.converged

    @property
    def timed(self) -> bool:
        """Whether there is nothing left to time."""
        return bool(self.seconds) or self.outcome is None


class Case(_Value):
    """What is known of a case: its rows in each part, its K, what can be used, and its baselines."""

    name: str
    train: int
    validation: int
    golden: int
    n_states: int
    covariates: tuple[str, ...]
    constant: tuple[str, ...]  # covariates that do not vary in the training rows: zero under every method
    persistence: Scores
    no_covariates: Scores


@dataclass(frozen=True)
class CaseRows:
    """Training and golden rows of a case, and the covariates that vary in the training rows."""

    name: str
    train: pl.DataFrame
    golden: pl.DataFrame
    validation: int  # how many; no trial looks at them
    covariates: tuple[str, ...]
    constant: tuple[str, ...]

    @classmethod
    def build(
        cls, name: str, train: pl.DataFrame, validation: int, golden: pl.DataFrame, covariates: Sequence[str]
    ) -> CaseRows:
        """Tell the covariates that vary from those that do not."""
        constant = tuple(c for c in covariates if train[c].n_unique() == 1) if len(train) else ()
        varying = tuple(c for c in covariates if c not in constant)
        needed = ["bridge_id", "state_1", "state_2", "interval_years", *varying]
        return cls(name, train.select(needed), golden.select(needed), validation, varying, constant)


@dataclass(frozen=True)
class Fitted:
    """A trial and its fitted model and operator as JSON texts; None where there is none."""

    trial: Trial
    model: str | None = None
    scaling: str | None = None

    def with_seconds(self, seconds: Sequence[float]) -> Fitted:
        """The same with these timings; the first is the model's own. None: nobody looked at a clock."""
        if self.trial.outcome is None or self.model is None:
            return self
        outcome = dataclasses.replace(self.trial.outcome, seconds=seconds[0] if seconds else math.nan)
        trial = self.trial.model_copy(update={"outcome": outcome, "seconds": tuple(seconds)})
        file = ModelFile.model_validate_json(self.model).model_copy(update={"outcome": outcome})
        return Fitted(trial, file.model_dump_json(indent=1), self.scaling)


def run_trial(rows: CaseRows, key: Key, seed: int, *, threads: int | None = None) -> Fitted:
    """Algorithm 1, lines 7 to 15: fit the operator and the model, then score the golden rows with the same."""
    if rows.train.is_empty():
        return _give_up(key, Status.NOT_FITTED, f"no row of this case trains; {len(rows.golden):,} are golden")
    try:
        with _quiet():
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
    fit = _fit(rows, key, seed, threads)
    converged, scores, certificate = fit.converged, None, fit.certificate
    status, reason = _judge(fit.outcome, certificate, converged)
    if converged:
        try:
            scores, certificate = _score(fit, rows.golden)
        except OutsideTrainingRange as error:
            status, reason, converged = Status.TRANSFORM_FAILED, _blame(error, fit, rows.golden), False
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
    parameters = {"scaling": key.method, "seed": seed, "covariates": list(rows.covariates)}
    model = dump_model(fit, parameters | PRESETS[key.preset].options, rows.train.columns)
    return Fitted(trial, model, scaling_to_json(fit.scaling))


def time_trial(rows: CaseRows, key: Key, seed: int, repeats: int) -> tuple[float, ...]:
    """Seconds of the solver call alone, of so many fits one after the other."""
    with _quiet():
        return tuple(_fit(rows, key, seed, None).outcome.seconds for _ in range(repeats))


@contextmanager
def _quiet() -> Iterator[None]:
    """No warning leaves a trial: what came of an overflow or a bad condition is judged by its certificate."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def describe_case(rows: CaseRows) -> Case:
    """Counts and baselines: that nothing changes, and the model without covariates."""
    n_states = 0 if rows.train.is_empty() else int(rows.train["state_2"].to_numpy().max())
    known = _supported(rows.golden, n_states)
    lost = len(rows.golden) - len(known)
    try:
        with _quiet():
            plain = _fit_options(rows.train, (), Options(scaling=None))
            no_covariates = _score(plain, rows.golden)[0]
    except (ArithmeticError, ValueError):  # the trials of this case give the reason
        no_covariates = Scores.empty(lost)
    return Case(
        name=rows.name,
        train=len(rows.train),
        validation=rows.validation,
        golden=len(rows.golden),
        n_states=n_states,
        covariates=rows.covariates,
        constant=rows.constant,
        persistence=score_persistence(*_states(known), max(n_states, 1), lost),
        no_covariates=no_covariates,
    )


def _fit(rows: CaseRows, key: Key, seed: int, threads: int | None) -> Fit:
    options = Options(scaling=key.method, seed=seed, threads=threads, **PRESETS[key.preset].options)
    return _fit_options(rows.train, rows.covariates, options)


def _fit_options(train: pl.DataFrame, covariates: tuple[str, ...], options: Options) -> Fit:
    """What the estimator does, without scikit-learn, whose imports take longer than all the fits of a study."""
    columns = inputs.Columns("state_1", "interval_years", covariates)
    groups = train["bridge_id"].to_numpy()
    training = inputs.read_training(inputs.as_frame(train), train["state_2"], columns, groups=groups)
    return fit_rows(training.rows, training.x, covariates, options, training.groups)


def _judge(outcome: Outcome, certificate: Certificate, converged: bool) -> tuple[Status, str | None]:
    """The status and the reason in words."""
    reasons = "; ".join(certificate.reasons)
    match certificate.verdict:
        case Verdict.CERTIFIED if converged:
            return Status.CERTIFIED, None
        case Verdict.NO_FINITE_MAXIMUM:
            return Status.NO_MAXIMUM, reasons
        case Verdict.NOT_IDENTIFIED:
            return Status.NOT_DETERMINED, reasons
    if converged:
        plateau = certificate.plateau_train
        level = f"{plateau:.0%} of the training rows are at the probability floor; " if plateau > 0 else ""
        return Status.UNCERTIFIED, f"{level}{reasons}"
    impossible = f"it reports success at a log-likelihood of {-outcome.objective}, which no rows have"
    said = impossible if outcome.success else outcome.message
    return Status.SOLVER_FAILED, f"{said}; {reasons or 'where it stopped is a maximum all the same'}"


def _score(fit: Fit, golden: pl.DataFrame) -> tuple[Scores, Certificate]:
    """Scores of the golden rows within the training K, and the certificate with their share on the plateau."""
    known = _supported(golden, fit.n_states)
    lost = len(golden) - len(known)
    if known.is_empty():
        return Scores.empty(lost), fit.certificate
    start, end = _states(known)
    dt, x = known["interval_years"].to_numpy(), inputs.read_covariates(inputs.as_frame(known), fit.covariates)
    log_p = fit.log_probabilities(Rows(start, end, dt, np.ones(len(known)), fit.n_states), x)
    scores = score(fit.probabilities(start, dt, x), log_p, start, end, lost)
    return scores, fit.certificate.with_golden(log_p)


def _blame(error: OutsideTrainingRange, fit: Fit, golden: pl.DataFrame) -> str:
    """What the operator could not take, with the bridge in place of a row that only we can count."""
    row = error.values["row"]
    bridge = _supported(golden, fit.n_states)["bridge_id"][row]
    return f"golden rows: {str(error).replace(f'row {row}', f'bridge {bridge}', 1)}"


def _supported(golden: pl.DataFrame, n_states: int) -> pl.DataFrame:
    """The rows whose states the training rows know."""
    return golden.filter(pl.Series(split_supported(*_states(golden), n_states)))


def _states(frame: pl.DataFrame) -> tuple[Any, Any]:
    """Start and end, 0-based."""
    start, end = (frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
    return start, end


def spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    """Median, least and most of the timings; not numbers where there are none."""
    return (float(np.median(seconds)), min(seconds), max(seconds)) if seconds else (math.nan,) * 3
