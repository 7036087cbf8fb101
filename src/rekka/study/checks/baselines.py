"""Checks of what was chosen beside two forecasters to beat (R703, R704): nothing changes, and no covariates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from rekka.core.errors import count_of
from rekka.evaluation.selection import ACCURACY_TOLERANCE, LOSS_TOLERANCE
from rekka.study.cases import GOLDEN, WORDS
from rekka.study.checks.evidence import NOTHING_DONE, Evidence, Pick, name_case
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_some
from rekka.study.tables import MATERIALLY_WORSE, is_materially_worse
from rekka.study.trial import Case, Trial
from rekka.study.words import list_names


@dataclass(frozen=True)
class Rival:
    """A forecaster to beat: how the study calls it, by which score, and which way is better."""

    name: str
    score: str
    better: float  # 1 if more is better, -1 if less is


PERSISTENCE = Rival("persistence", "accuracy", 1.0)
PLAIN = Rival("no_covariates", "log_loss", -1.0)


@dataclass(frozen=True)
class Gain:
    """A method beside a rival, on some rows; ``gain`` is above 0 where it is better, with its interval or none."""

    label: str
    case: str
    method: str
    chosen: bool
    rows: str
    own: float
    theirs: float
    gain: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def words(self) -> str:
        """'Pier (0.6910 against 0.6971 on golden rows)'."""
        return f"{self.label} ({self.own:.4f} against {self.theirs:.4f} on {self.rows})"


def _list_gains(evidence: Evidence, rival: Rival) -> list[Gain]:
    """Of what was chosen; and where nothing was, of the best certified fit."""
    gains = [_of_pick(pick, rival) for pick in evidence.chosen]
    gains += [_of_best(evidence.cases[name], trials, rival) for name, trials in evidence.without_choice.items()]
    return [gain for gain in gains if not math.isnan(gain.gain)]


def _of_pick(pick: Pick, rival: Rival) -> Gain:
    golden = pick.confirmed
    if golden is None:
        own = getattr(pick.verdict, rival.score)
        return _judge(pick.label, pick.case, pick.method, math.nan if own is None else own, rival, chosen=True)
    difference, low, high = (getattr(golden, f"{rival.name}_{part}") for part in ("difference", "low", "high"))
    low, high = sorted((rival.better * low, rival.better * high))
    own, theirs = getattr(golden, rival.score), getattr(golden, f"{rival.name}_{rival.score}")
    gain = rival.better * difference
    return Gain(pick.label, pick.case.name, pick.method, True, WORDS[GOLDEN], own, theirs, gain, low, high)


def _of_best(case: Case, trials: list[Trial], rival: Rival) -> Gain:
    def score(trial: Trial) -> float:
        return float(getattr(trial.scores, rival.score))

    best = max(trials, key=lambda trial: rival.better * score(trial))
    return _judge(name_case(case.name), case, best.key.method, score(best), rival, chosen=False)


def _judge(label: str, case: Case, method: str, own: float, rival: Rival, *, chosen: bool) -> Gain:
    """On the judged rows, where there is no interval."""
    theirs = float(getattr(getattr(case, rival.name), rival.score))
    gain = rival.better * (own - theirs)
    return Gain(label, case.name, method, chosen, WORDS[case.judged_on], own, theirs, gain)


@check(
    "R703",
    "Accuracy no better than saying that nothing changes",
    looks_at="The accuracy of what was chosen beside persistence, on golden rows where they were looked at, else "
    "on the judged ones; where nothing was chosen, that of the most accurate certified fit.",
    matters="Most members keep their state between two visits, so that a sound model often forecasts just that, "
    "row by row. Its worth is then in its probabilities, and accuracy cannot tell methods apart.",
    issue="Shown to be less accurate: the interval of the difference, clustered by bridge, lies below 0.",
    tip="Not more accurate.",
    remedy="Judge such a case by log loss and calibration, not by accuracy. Where it is shown to be less "
    "accurate, do not plan by its most probable states, but by its probabilities.",
)
def persistence(evidence: Evidence) -> Seen:
    """Paired, row by row, where the golden rows were looked at."""
    gains = _list_gains(evidence, PERSISTENCE)
    if not gains:
        return absent(_say_unscored(evidence))
    idle = [gain for gain in gains if gain.gain <= ACCURACY_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and gain.high < -ACCURACY_TOLERANCE]
    if not idle:
        return passed(f"More accurate {_in_all(gains)}.", _plain(gains, [])["values"])
    words = f"Not more accurate than saying that nothing changes: {_tell(idle)}."
    return found(bool(worse), words + _tell_shown("lower", worse), **_plain(gains, worse or idle))


@check(
    "R704",
    "Log loss no better than without covariates",
    looks_at="The log loss of what was chosen beside the model without covariates, on golden rows where they were "
    "looked at, else on the judged ones; where nothing was chosen, that of the certified fit with the lowest.",
    matters="Covariates that do not lower the log loss of held-out rows are noise that was fitted. One hazard a "
    "state for all bridges then forecasts as well, and is easier to defend.",
    issue="Shown to be worse: the interval of the difference, clustered by bridge, lies above 0; or, where golden "
    f"rows were not looked at and there is no interval, {MATERIALLY_WORSE:g} times the other's or more.",
    tip="Not lower.",
    remedy="Use fewer covariates or none, or have ridge or pooled hold them. Look first at the rows outside the "
    "training range (R801): a few of them can spoil a mean.",
)
def no_covariates(evidence: Evidence) -> Seen:
    """Paired, row by row, where the golden rows were looked at."""
    gains = [gain for gain in _list_gains(evidence, PLAIN) if evidence.cases[gain.case].covariates]
    if not gains:
        bare = evidence.cases and not any(case.covariates for case in evidence.cases.values())
        return absent("The study has no covariates." if bare else _say_unscored(evidence))
    shown = [gain.low > 0 for gain in gains if math.isfinite(gain.low)]
    better = f", shown to be so in {sum(shown)}" if shown else ""
    idle = [gain for gain in gains if gain.gain <= LOSS_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and _is_worse(gain)]
    if not idle:
        return passed(f"Lower {_in_all(gains)}{better}.", _plain(gains, [])["values"])
    words = f"Not lower than without covariates: {_tell(idle)}.{_tell_shown('higher', worse)}"
    rest = f" Lower in {len(gains) - len(idle)} of {len(gains)}{better}."
    return found(bool(worse), words + rest, **_plain(gains, worse or idle))


def _is_worse(gain: Gain) -> bool:
    """By its interval; without one, by a factor."""
    if math.isfinite(gain.high):
        return gain.high < -LOSS_TOLERANCE
    return bool(is_materially_worse(gain.own, gain.theirs))


def _tell(gains: list[Gain]) -> str:
    return tell_some([gain.words for gain in sorted(gains, key=lambda gain: gain.gain)])


def _tell_shown(way: str, worse: list[Gain]) -> str:
    """' Shown to be lower: Pier.', or nothing; without an interval it is far, not shown."""
    groups = (("Shown to be", math.isfinite), ("Far", math.isinf))
    told = [(word, [gain.label for gain in worse if holds(gain.high)]) for word, holds in groups]
    return "".join(f" {word} {way}: {list_names(labels)}." for word, labels in told if labels)


def _in_all(gains: list[Gain]) -> str:
    if len(gains) == 1:
        return f"in {gains[0].words}"
    return f"in all of {count_of(len(gains), 'choice')}"


def _plain(gains: list[Gain], concerned: list[Gain]) -> dict[str, Any]:
    """Cases, methods and values of a finding."""
    cases, methods = ([getattr(gain, name) for gain in concerned] for name in ("case", "method"))
    return {"cases": cases, "methods": methods, "values": {"cases": [asdict(gain) for gain in gains]}}


def _say_unscored(evidence: Evidence) -> str:
    return "No fit could be scored." if evidence.study.results else NOTHING_DONE


CHECKS = (persistence, no_covariates)
