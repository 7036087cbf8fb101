"""Checks of what was chosen beside two forecasters to beat (R703, R704): nothing changes, and no covariates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.core.words import ENGLISH, Said, load_words, say
from rekka.evaluation.selection import ACCURACY_TOLERANCE, LOSS_TOLERANCE
from rekka.study.cases import GOLDEN, WORDS
from rekka.study.checks.evidence import (
    NO_COVARIATES,
    NOTHING_DONE,
    Evidence,
    Name,
    Pick,
    absent,
    found,
    name_case,
    name_rows,
    passed,
)
from rekka.study.tables import MATERIALLY_WORSE, is_materially_worse
from rekka.study.trial import Case, Trial


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

    label: Name
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
    def said(self) -> Said:
        """'Pier (0.6910 against 0.6971 on golden rows)'."""
        rows = name_rows(self.rows)
        return say("check.gain", case=self.label, own=self.own, theirs=self.theirs, rows=rows)


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
    return Gain(pick.label, pick.case.name, pick.method, True, GOLDEN, own, theirs, gain, low, high)


def _of_best(case: Case, trials: list[Trial], rival: Rival) -> Gain:
    def score(trial: Trial) -> float:
        return float(getattr(trial.scores, rival.score))

    best = max(trials, key=lambda trial: rival.better * score(trial))
    return _judge(name_case(case.name), case, best.key.method, score(best), rival, chosen=False)


def _judge(label: Name, case: Case, method: str, own: float, rival: Rival, *, chosen: bool) -> Gain:
    """On the judged rows, where there is no interval."""
    theirs = float(getattr(getattr(case, rival.name), rival.score))
    gain = rival.better * (own - theirs)
    return Gain(label, case.name, method, chosen, case.judged_on, own, theirs, gain)


@check(Subject.STUDY, R703=Severity.STOP)
def persistence(evidence: Evidence) -> Finding:
    """Accuracy beside that of no change: paired, row by row, where the golden rows were looked at."""
    gains = _list_gains(evidence, PERSISTENCE)
    if not gains:
        return absent(_name_unscored(evidence))
    idle = [gain for gain in gains if gain.gain <= ACCURACY_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and gain.high < -ACCURACY_TOLERANCE]
    if not idle:
        return _pass(gains)
    return _find(gains, idle, worse)


@check(Subject.STUDY, R704=Severity.STOP, limits={"worse": MATERIALLY_WORSE})
def no_covariates(evidence: Evidence) -> Finding:
    """Log loss beside that without covariates: paired, row by row, where the golden rows were looked at."""
    gains = [gain for gain in _list_gains(evidence, PLAIN) if evidence.cases[gain.case].covariates]
    if not gains:
        bare = evidence.cases and not any(case.covariates for case in evidence.cases.values())
        return absent(NO_COVARIATES if bare else _name_unscored(evidence))
    shown = [gain.low > 0 for gain in gains if math.isfinite(gain.low)]
    also = "_shown" if shown else ""
    idle = [gain for gain in gains if gain.gain <= LOSS_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and _is_worse(gain)]
    if not idle:
        return _pass(gains, also, better=sum(shown))
    return _find(gains, idle, worse, f"rest{also}", lower=len(gains) - len(idle), better=sum(shown))


def _is_worse(gain: Gain) -> bool:
    """By its interval; without one, by a factor."""
    if math.isfinite(gain.high):
        return gain.high < -LOSS_TOLERANCE
    return bool(is_materially_worse(gain.own, gain.theirs))


def _pass(gains: list[Gain], also: str = "", **told: Any) -> Finding:
    name = "passed_one" if len(gains) == 1 else "passed"
    return passed(name + also, values=_plain(gains), gains=len(gains), gain=gains[0].said, **told)


def _find(gains: list[Gain], idle: list[Gain], worse: list[Gain], *rest: str, **told: Any) -> Finding:
    """Those that are not better; without an interval a worse one is far, not shown."""
    shown = [gain.label for gain in worse if math.isfinite(gain.high)]
    far = [gain.label for gain in worse if math.isinf(gain.high)]
    return found(
        bool(worse),
        "found",
        *(name for name, labels in (("shown", shown), ("far", far)) if labels),
        *rest,
        cases=(gain.case for gain in worse or idle),
        methods=(gain.method for gain in worse or idle),
        values=_plain(gains),
        facts=[gain.said for gain in sorted(idle, key=lambda gain: gain.gain)],
        shown=shown,
        far=far,
        gains=len(gains),
        **told,
    )


def _plain(gains: list[Gain]) -> dict[str, Any]:
    words = load_words(ENGLISH)
    return {
        "cases": [asdict(gain) | {"label": words.join([gain.label]), "rows": WORDS[gain.rows]} for gain in gains]
    }


def _name_unscored(evidence: Evidence) -> str:
    return "check.absent.unscored" if evidence.study.results else NOTHING_DONE
