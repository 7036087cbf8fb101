"""What the page says in whole sentences beside the answer and the cases: counted and worded here."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from markupsafe import Markup

from rekka.report.document import DoctorPart, Document, FindingPart
from rekka.report.numbers import show_count, show_level, show_range
from rekka.report.teller import Teller
from rekka.report.words import Words

NOTHING_FOUND = ("passed", "not applicable")
STEPS = ("certified", "stable", "accuracy", "log_loss", "replaced", "cost")  # of the guarded rule
SCORES = ("accuracy", "log_loss", "recall", "brier", "persistence", "baseline", "interval")
QUESTIONS = ("exists", "reached", "determined", "plateau", "agree")  # of a certificate


def name_study(document: Document, words: Words) -> str:
    """What the study is of: its title, or what its rows are."""
    return document.title or words(f"page.untitled_{document.study.kind}")


@dataclass(frozen=True)
class Group:
    """Findings of the data doctor with one code; ``first`` has what they share."""

    first: DoctorPart
    count: Markup
    findings: tuple[DoctorPart, ...]


def split_findings(findings: Sequence[FindingPart]) -> tuple[list[FindingPart], list[FindingPart]]:
    """What needs a look, and the rest."""
    look = [finding for finding in findings if finding.verdict not in NOTHING_FOUND]
    return look, [finding for finding in findings if finding.verdict in NOTHING_FOUND]


def list_causes(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """Whether it was the data or the optimizer, counted."""
    counted = Counter(pair.cause for pair in document.presets).most_common()
    return tuple(
        tell.say(
            "section.presets.cause", n=Markup("<b>{}</b>").format(show_count(n)), cause=tell.term("cause", cause)
        )
        for cause, n in counted
    )


def split_remarks(document: Document) -> tuple[list[str], list[str]]:
    """What stands out in the refits: of the preset that answers, and of others."""
    if document.stability is None:
        return [], []
    others = tuple(f"{one.name}: " for one in document.study.presets if one.name != document.study.preset)
    own: list[str] = []
    rest: list[str] = []
    for remark in document.stability.remarks:
        (rest if remark.startswith(others) else own).append(remark)
    return own, rest


def tell_stability(document: Document, tell: Teller) -> Markup:
    """How often it was fitted again, or the command that does it."""
    found = document.stability
    if found is None:
        return tell.say("section.stability.none", command=Markup("<code>rekka stability RUN</code>"))
    kinds = tell.join(tell.term("kind", kind) for kind in found.kinds)
    draws = [share.draws for share in found.shares]
    n = show_range(min(draws, default=0), max(draws, default=0), show_count, tell.words)
    return tell.say("section.stability.lead", n=n, kinds=kinds)


def tell_records(document: Document, tell: Teller) -> Markup:
    """How many records came in."""
    return tell.say("section.audit.records", records=tell.count("records", document.audit.records or 0))


def group_doctor(findings: Sequence[DoctorPart], tell: Teller) -> tuple[Group, ...]:
    """The data doctor's findings by code, as they come: worst first."""
    codes: dict[str, list[DoctorPart]] = {}
    for finding in findings:
        codes.setdefault(finding.code, []).append(finding)
    return tuple(Group(own[0], tell.count("findings", len(own)), tuple(own)) for own in codes.values())


def tell_guard(document: Document, tell: Teller) -> Markup | None:
    """The margins of the guarded rule in this study, from its plan."""
    try:
        guard: Mapping[str, Any] = tomllib.loads(document.provenance.plan).get("guard", {})
    except tomllib.TOMLDecodeError:
        return None
    needed = ("stable_share", "resamples", "accuracy_margin", "log_loss_margin", "confidence")
    if document.study.rule != "guarded" or any(name not in guard for name in needed):
        return None
    return tell.say(
        "note.rule.values",
        default=tell.method(document.study.default),
        stable=show_level(guard["stable_share"]),
        resamples=show_count(guard["resamples"]),
        accuracy=f"{guard['accuracy_margin']:g}",
        log_loss=f"{guard['log_loss_margin']:g}",
        confidence=show_level(guard["confidence"]),
    )


def tell_eligible(document: Document, tell: Teller) -> Markup:
    """Who can be selected, by preset."""
    each = (
        tell.say(
            "note.converged.eligible_in",
            preset=tell.preset(one.name),
            eligible=tell.words.get(f"note.eligible.{one.eligible}", one.eligible),
        )
        for one in document.study.presets
    )
    return tell.say("note.converged.eligible", list=tell.join(each))


def list_methods(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What each method of the study does to the covariates, or to the likelihood."""
    return tuple(
        tell.say("note.methods.line", method=tell.method(one), what=_tell_links(one, tell))
        for one in document.study.methods
    )


def _tell_links(method: str, tell: Teller) -> Markup:
    each = (tell.say(f"note.methods.{one}") for one in method.split("+"))
    return reduce(lambda first, second: tell.say("note.methods.then", first=first, second=second), each)


def list_presets(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """The conditions of fits, and the cost that each weighs."""
    return tuple(
        tell.say(
            "note.presets.text",
            preset=tell.preset(one.name),
            words=tell.english(one.words),
            cost=tell.term("cost", one.cost),
        )
        for one in document.study.presets
    )


def list_limits(words: Words) -> tuple[str, ...]:
    """What the report cannot say."""
    return tuple(text for key, text in words.texts.items() if key.startswith("note.limits.list_"))


def tell_no_calibration(document: Document, tell: Teller) -> Markup:
    """Why there is no calibration: nothing was chosen, or it was left out."""
    chosen = any(answer.method for answer in document.answers)
    return tell.say("section.calibration.left_out" if chosen else "section.calibration.none")
