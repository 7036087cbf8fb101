"""Score what was chosen on rows that no choice has seen: the golden rows, once.

A second look at the same golden rows is no confirmation: whoever looks twice can choose the better of two. So
every look is recorded with what it looked at, and another model of a case whose golden rows have been looked at,
here or in a run folder beside this one, is refused; forced, it is marked. The same model again is the same look.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from rekka.core.errors import ScalingError, count_of
from rekka.core.numerics import quiet
from rekka.model.fit import Predictor
from rekka.study.case_rows import GOLDEN, CaseRows
from rekka.study.choice import Choice
from rekka.study.trial import Key, Value, judge_plain

EVERY = "every model"  # in the place of one's SHA-256
CHOSE = "golden rows that chose before cannot confirm"
LOOKED = "golden rows looked at with another model"
OTHER_PRESET = "in this look, under another preset"
DIGITS = 9  # of a coefficient, by which two fits are the same model


class Confirmed(Value):
    """A chosen model on the golden rows, beside two forecasters to beat; differences are paired, row by row."""

    case: str
    preset: str
    method: str
    rows: int
    unsupported: int
    bridges: int
    at_floor: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    log_loss: float
    log_loss_low: float
    log_loss_high: float
    judged_accuracy: float | None  # on the rows it was chosen by
    judged_log_loss: float | None
    persistence_accuracy: float
    persistence_difference: float  # of its accuracy from that of saying that nothing changes
    persistence_low: float
    persistence_high: float
    no_covariates_log_loss: float
    no_covariates_difference: float  # of its log loss from that of the model without covariates
    no_covariates_low: float
    no_covariates_high: float
    golden_sha256: str
    model_sha256: str
    seen: str | None = None  # where these golden rows were looked at before, with another model

    @property
    def key(self) -> Key:
        """Key of the model's trial."""
        return Key(case=self.case, preset=self.preset, method=self.method)


class Look(Value):
    """One look at the golden rows, and what was refused in it.

    ``spent`` are the golden rows, by case and SHA-256, that chose instead of confirming. A record that cannot be
    read any more stands for a look that nobody knows.
    """

    made: str
    forced: bool
    results: tuple[Confirmed, ...]
    refused: dict[str, str]  # case and preset, and why
    spent: dict[str, str] = Field(default_factory=dict)
    unreadable: bool = False

    @property
    def counts(self) -> bool:
        """Whether golden rows were looked at, as far as one can know."""
        return bool(self.results or self.spent or self.unreadable)


@dataclass(frozen=True)
class Seen:
    """A look that was taken before: where, when, at which rows, with which model."""

    where: str
    made: str
    case: str
    golden_sha256: str
    model_sha256: str


@dataclass(frozen=True, eq=False)
class Candidate:
    """A choice that is to be confirmed, its rows and its fitted model."""

    choice: Choice
    rows: CaseRows
    fitted: Predictor


def look(
    candidates: Sequence[Candidate], seen: Iterable[Seen], confidence: float, seed: int, *, force: bool = False
) -> Look:
    """Score each candidate on its golden rows, where nobody has looked yet; or all the same, marked."""
    results, refused, spent = [], {}, {}
    earlier = list(seen)
    models = [(one.rows.digest_golden(), identify_model(one.fitted)) for one in candidates]
    for one, (golden, model) in zip(candidates, models, strict=True):
        name = name_choice(one.choice)
        if reason := _refuse(one):
            refused[name] = reason
            if one.rows.judged_on == GOLDEN:
                spent[one.choice.case] = golden
            continue
        before = [s for s in earlier if s.golden_sha256 == golden]
        again = any(s.model_sha256 == model for s in before)  # the same look
        other = [s for s in before if s.model_sha256 != model]
        if other and not again and not force:
            refused[name] = f"{CHOSE if other[0].model_sha256 == EVERY else LOOKED} ({_when(other[0])})"
            continue
        places = list(dict.fromkeys(map(_when, other))) if not again or force else []
        if len({theirs for rows, theirs in models if rows == golden}) > 1:
            places.append(OTHER_PRESET)
        marked = "; ".join(places) or None
        try:
            results.append(_confirm(one, confidence, seed, golden, model, marked))
        except ScalingError as error:  # nothing is clipped: such a golden row has no forecast
            refused[name] = f"a golden row cannot be forecast: {str(error).rstrip('.')}"
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Look(made=moment, forced=force, results=tuple(results), refused=refused, spent=spent)


def name_choice(choice: Choice) -> str:
    """Name a choice, as a look names those it refused."""
    return f"{choice.case} ({choice.preset})"


def _refuse(one: Candidate) -> str | None:
    if one.rows.judged_on == GOLDEN:
        return "the golden rows chose it, and cannot confirm it"
    if not one.rows.persist(GOLDEN).scores.rows:
        return f"none of its {count_of(one.rows.counts[GOLDEN], 'golden row')} can be scored"
    return None


def _when(seen: Seen) -> str:
    return f"{seen.where}, {seen.made[:10]}"


def _confirm(
    one: Candidate, confidence: float, seed: int, golden: str, model: str, marked: str | None
) -> Confirmed:
    with quiet():
        own = one.rows.forecast(one.fitted, GOLDEN)
        same = one.rows.persist(GOLDEN)
        plain = judge_plain(one.rows, seed, GOLDEN)
    accuracy, loss = own.accuracy(confidence), own.log_loss(confidence)
    gain, saving = own.accuracy_above(same, confidence), own.log_loss_above(plain, confidence)
    verdict = next(v for v in one.choice.verdicts if v.method == one.choice.chosen)
    return Confirmed(
        case=one.choice.case,
        preset=one.choice.preset,
        method=verdict.method,
        rows=own.scores.rows,
        unsupported=own.unsupported,
        bridges=accuracy.bridges,
        at_floor=own.scores.at_floor,
        accuracy=accuracy.mean,
        accuracy_low=accuracy.low,
        accuracy_high=accuracy.high,
        log_loss=loss.mean,
        log_loss_low=loss.low,
        log_loss_high=loss.high,
        judged_accuracy=verdict.accuracy,
        judged_log_loss=verdict.log_loss,
        persistence_accuracy=same.scores.accuracy,
        persistence_difference=gain.mean,
        persistence_low=gain.low,
        persistence_high=gain.high,
        no_covariates_log_loss=plain.scores.log_loss,
        no_covariates_difference=saving.mean,
        no_covariates_low=saving.low,
        no_covariates_high=saving.high,
        golden_sha256=golden,
        model_sha256=model,
        seen=marked,
    )


def identify_model(fitted: Predictor) -> str:
    """SHA-256 of what a model forecasts from: covariates, operator and coefficients."""
    parts: dict[str, Any] = {
        "covariates": fitted.covariates,
        "scaling": fitted.scaling.method,
        "beta": [[f"{value:.{DIGITS}g}" for value in row] for row in fitted.beta.tolist()],
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def list_seen(looks: Mapping[str, Sequence[Look]]) -> list[Seen]:
    """List what earlier looks, by the name of their run, have looked at; rows that chose have seen every model."""
    confirmed = [
        Seen(where, one.made, result.case, result.golden_sha256, result.model_sha256)
        for where, several in looks.items()
        for one in several
        for result in one.results
    ]
    spent = [
        Seen(where, one.made, case, golden, EVERY)
        for where, several in looks.items()
        for one in several
        for case, golden in one.spent.items()
    ]
    return confirmed + spent
