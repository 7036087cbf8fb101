"""What the page says in whole sentences: counted and worded here, so that the template only sets them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from rekka.model.certificate import DECREMENT_LIMIT
from rekka.report.document import (
    Answer,
    CasePart,
    DoctorPart,
    Document,
    FindingPart,
    HypothesisPart,
    ModelPart,
    TrialPart,
)
from rekka.report.numbers import show_count, show_figure, show_level, show_share
from rekka.report.table_cells import slug
from rekka.report.table_data import fixed_cell
from rekka.report.words import ENGLISH, Words, name_method

NOTHING_FOUND = ("passed", "not applicable")


@dataclass(frozen=True)
class Teller:
    """Sentences with their values in place: escaped, English ones marked as English, names kept apart."""

    words: Words

    def say(self, key: str, **values: Any) -> Markup:
        """A sentence; what is filled in is escaped."""
        return escape(self.words(key)).format(**values)

    def count(self, key: str, n: int) -> Markup:
        """So many of something: '1 case', '10 cases'."""
        return self.say(f"page.count.{key}.{'one' if n == 1 else 'other'}", n=show_count(n))

    def english(self, text: str) -> Markup:
        """A sentence of the study, which is English on every page."""
        return escape(text) if self.words.lang == ENGLISH else Markup('<span lang="en">{}</span>').format(text)

    def name(self, text: str) -> Markup:
        """A name that data gave: its direction is its own."""
        return Markup("<bdi>{}</bdi>").format(text)

    def term(self, group: str, text: str) -> Markup:
        """A term or fixed sentence of rekka's, by its words in this language; one without them stays English."""
        key = f"{group}.{slug(text)}"
        return escape(self.words(key)) if key in self.words.texts else self.english(text)

    def fixed(self, group: str, part: str, finding: FindingPart | DoctorPart) -> Markup:
        """The title or the remedy of a check."""
        cell = fixed_cell(finding, group, part, self.words)
        return self.english(cell.text) if cell.english else escape(cell.text)

    def claim(self, one: HypothesisPart) -> Markup:
        """What a hypothesis says."""
        key = f"claim.{slug(one.code)}"
        return escape(self.words(key)) if key in self.words.texts else self.english(one.claim)

    def method(self, method: str) -> str:
        """A method, also a chain of them such as log+zscore."""
        return name_method(method, self.words)

    def preset(self, preset: str) -> str:
        """The name of a preset."""
        return self.words.get(f"preset.{preset}", preset)

    def join(self, parts: Iterable[object]) -> Markup:
        """A list of things in one line."""
        return escape(self.words("number.comma")).join(escape(part) for part in parts)


def name_study(document: Document, words: Words) -> str:
    """What the study is of: its title, or what its rows are."""
    return document.title or words(f"page.untitled_{document.study.kind}")


@dataclass(frozen=True)
class Group:
    """Findings of the data doctor with one code; ``first`` has what they share."""

    first: DoctorPart
    count: Markup
    findings: tuple[DoctorPart, ...]


@dataclass(frozen=True)
class CaseTold:
    """What the page says of a case: ``label`` beside its name, ``state`` is chosen, other or nothing."""

    state: str
    label: Markup
    warning: Markup | None
    lines: tuple[Markup, ...]
    certificate: tuple[Markup, ...]
    certified: bool


def tell_run(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What was run: trials, split, what chose, what confirmed, which preset answers, by which rule."""
    study = document.study
    first = tell.say(
        "page.run.trials",
        cases=tell.count("cases", len(document.cases)),
        methods=tell.count("methods", len(study.methods)),
        names=tell.join(tell.method(one) for one in study.methods),
        presets=tell.count("presets", len(study.presets)),
        trials=tell.count("trials", study.planned),
    )
    answering = next(one for one in study.presets if one.name == study.preset)
    rule = tell.say(f"page.run.rule_{study.rule}", default=tell.method(study.default))
    return (
        first,
        tell.say("page.run.split", scheme=tell.english(study.scheme)),
        _tell_judges(document, tell),
        _tell_confirmed(document.answers, tell),
        tell.say("page.run.answer", preset=tell.preset(answering.name), words=tell.english(answering.words)),
        rule,
    )


def _tell_judges(document: Document, tell: Teller) -> Markup:
    counted = Counter(case.judged_on for case in document.cases)
    rows = {name: tell.words.get(f"rows.{name}", name) for name in counted}
    if len(rows) == 1:
        return tell.say("page.run.chose", rows=next(iter(rows.values())))
    each = (
        tell.say("page.run.chose_in", rows=rows[name], n=tell.count("cases", n)) for name, n in counted.items()
    )
    return tell.say("page.run.chose", rows=tell.join(each))


def _tell_confirmed(answers: Sequence[Answer], tell: Teller) -> Markup:
    chosen = [answer for answer in answers if answer.method]
    confirmed = sum(answer.confirmed for answer in chosen)
    if not confirmed:
        return tell.say("page.run.confirmed_none")
    if confirmed == len(chosen):
        return tell.say("page.run.confirmed")
    return tell.say("page.run.confirmed_part", n=confirmed, chosen=len(chosen))


def list_banners(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What a reader must know before the answer."""
    study = document.study
    found = []
    if study.done < study.planned:
        counts = {"done": show_count(study.done), "planned": show_count(study.planned)}
        found.append(tell.say("page.banner.unfinished", **counts))
    if study.kind == "inventory":
        found.append(tell.say("page.banner.simulated"))
    chosen = [answer for answer in document.answers if answer.method]
    if chosen and not any(answer.confirmed for answer in chosen):
        found.append(_tell_unconfirmed(document, chosen, tell))
    return tuple(found)


def _tell_unconfirmed(document: Document, chosen: Sequence[Answer], tell: Teller) -> Markup:
    """Why nothing is: golden rows chose, or had been looked at before, or were not looked at."""
    if document.study.select_on == "golden":
        return tell.say("page.banner.unconfirmed")
    if seen := sum(answer.seen is not None for answer in chosen):
        return tell.say("page.shown.seen", n=seen)
    return tell.say("page.banner.not_looked")


def tell_headline(document: Document, tell: Teller) -> Markup:
    """In how many cases there is a model to use."""
    answers = document.answers
    chosen = sum(answer.method is not None for answer in answers)
    cases = tell.count("cases", len(answers))
    if chosen and not any(answer.confirmed for answer in answers) and document.study.rule == "pareto":
        return tell.say("page.head.picked", n=chosen, cases=cases)
    if len(answers) == 1:
        return tell.say("page.head.only" if chosen else "page.head.only_none")
    kind = "none" if not chosen else "all" if chosen == len(answers) else "some"
    return tell.say(f"page.head.{kind}", n=chosen, cases=cases)


def list_headlines(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """By which methods, where not, and whether it is shown better than the two simple forecasts."""
    answers = document.answers
    found = []
    methods = Counter(answer.method for answer in answers if answer.method)
    if methods:
        each = (tell.say("page.head.method_in", method=tell.method(one), n=n) for one, n in methods.most_common())
        found.append(tell.say("page.head.methods", methods=tell.join(each)))
    without = [tell.name(answer.case) for answer in answers if answer.method is None]
    if without and len(answers) > 1:
        found.append(tell.say("page.head.without", names=tell.join(without)))
    return tuple(found)


@dataclass(frozen=True)
class Shown:
    """Whether the chosen models are shown to beat the two simple forecasts, and what that means."""

    lead: Markup
    lines: tuple[Markup, ...]
    meaning: Markup


def tell_shown(document: Document, tell: Teller) -> Shown | None:
    """How the chosen models did on golden rows, counted; None where no look was taken."""
    looked = [answer for answer in document.answers if answer.beats_no_covariates or answer.beats_persistence]
    if not looked:
        return None
    lines = [
        _tell_beaten("page.shown.covariates", [answer.beats_no_covariates for answer in looked], tell),
        _tell_beaten("page.shown.persistence", [answer.beats_persistence for answer in looked], tell),
    ]
    if seen := sum(answer.seen is not None for answer in looked):
        lines.append(tell.say("page.shown.seen", n=seen))
    return Shown(
        tell.say("page.shown.lead", rows=show_count(sum(answer.rows or 0 for answer in looked))),
        tuple(lines),
        tell.say("page.shown.meaning", confidence=show_level(document.study.confidence)),
    )


def _tell_beaten(key: str, verdicts: Sequence[str | None], tell: Teller) -> Markup:
    counted = Counter(verdicts)
    better, worse = counted["better"], counted["worse"]
    return tell.say(key, n=len(verdicts), better=better, worse=worse, unknown=len(verdicts) - better - worse)


def tell_use(answer: Answer, tell: Teller) -> tuple[Markup, ...]:
    """Under the method to use: if it is confirmed, and why it was chosen."""
    why = tell.english(answer.why)
    if answer.method is None:
        return (why,)
    if answer.confirmed:
        rows, bridges = show_count(answer.rows), show_count(answer.bridges)
        return (tell.say("page.use.confirmed", rows=rows, bridges=bridges), why)
    if answer.seen or answer.remark:
        return (tell.say("page.use.seen", seen=tell.english(answer.seen or answer.remark or "")), why)
    return (tell.say("page.use.judged", rows=tell.term("rows", answer.scored_on or "")), why)


def split_findings(findings: Sequence[FindingPart]) -> tuple[list[FindingPart], list[FindingPart]]:
    """What needs a look, and the rest."""
    look = [finding for finding in findings if finding.verdict not in NOTHING_FOUND]
    return look, [finding for finding in findings if finding.verdict in NOTHING_FOUND]


def list_causes(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """Whether it was the data or the optimizer, counted."""
    counted = Counter(pair.cause for pair in document.presets).most_common()
    return tuple(
        tell.say("section.presets.cause", n=Markup("<b>{}</b>").format(n), cause=tell.term("cause", cause))
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
    return tell.say("section.stability.lead", n=found.resamples, kinds=kinds)


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
        resamples=guard["resamples"],
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


def tell_case(document: Document, case: CasePart, tell: Teller) -> CaseTold:
    """What there is to say of a case: what was chosen and why, of what, for whom, and if it can be trusted."""
    answer = next((one for one in document.answers if one.case == case.case), None)
    model = next((one for one in document.models if one.case == case.case), None)
    lines = []
    if answer is not None:
        lines.append(tell.english(answer.why))
    if case.exploratory:
        lines.append(tell.say("section.models.exploratory", why=tell.english(case.exploratory)))
    if case.constant:
        lines.append(tell.say("section.models.constant", names=tell.join(map(tell.name, case.constant))))
    if model is None:
        return CaseTold("nothing", tell.say("section.models.nothing"), None, tuple(lines), (), certified=False)
    state = "chosen" if model.chosen else "nothing" if model.reason else "other"
    method = tell.method(model.method)
    trial = next((one for one in document.trials if _key(one) == _key(model)), None)
    return CaseTold(
        state,
        tell.say(f"section.models.{state}", method=method),
        tell.say("section.models.warning", method=method) if state == "other" else None,
        (*lines, *_tell_model(document, case, model, tell)),
        () if trial is None else _tell_certificate(trial, tell),
        certified=trial is not None and trial.certified,
    )


def _key(part: TrialPart | ModelPart) -> tuple[str, str, str]:
    return part.case, part.preset, part.method


def _tell_model(document: Document, case: CasePart, model: ModelPart, tell: Teller) -> Iterable[Markup]:
    if model.reason:
        yield tell.say("section.models.no_figures", reason=tell.english(model.reason.rstrip(".")))
        return
    yield tell.say(
        "section.models.rows",
        rows=show_count(model.rows),
        bridges=show_count(case.bridges),
        states=model.n_states or case.n_states,
        errors=tell.english(model.errors or ""),
    )
    units = {one.name: one.unit for one in document.study.covariates}
    values = (_tell_value(name, value, units.get(name), tell) for name, value in model.typical.items())
    yield tell.say("section.models.typical", values=tell.join(values))
    if model.scale == "native":
        yield tell.say("section.models.native")
    else:
        yield tell.say("section.models.transformed", method=tell.method(model.scale or model.method))


def _tell_value(name: str, value: float, unit: str | None, tell: Teller) -> Markup:
    shown = tell.words.get(f"unit.{unit}", "") if unit else ""
    return tell.say("section.models.value", name=tell.name(name), value=show_figure(value), unit=shown)


def _tell_certificate(trial: TrialPart, tell: Teller) -> tuple[Markup, ...]:
    """The certificate's answers; a question that was not asked has none."""
    base = "section.models.certificate"
    if trial.certified:
        found = [tell.say(f"{base}.certified")]
    elif trial.verdict:
        found = [tell.say(f"{base}.not_certified", verdict=tell.english(trial.verdict))]
    else:
        found = [tell.say(f"{base}.unknown", status=tell.english(trial.status))]
    if trial.maximum_exists:
        found.append(tell.say(f"{base}.exists"))
    elif trial.maximum_exists is not None:
        reason = (trial.reason or trial.verdict or trial.status).rstrip(".")
        return (*found, tell.say(f"{base}.exists_not", reason=tell.english(reason)))
    if trial.decrement is not None:
        left = max(trial.decrement, trial.shortfall or 0.0)  # as the certificate judges
        reached = "reached" if left <= DECREMENT_LIMIT else "reached_not"
        found.append(tell.say(f"{base}.{reached}", decrement=show_figure(left, 2)))
    if trial.certified and trial.starts:
        found.append(tell.say(f"{base}.starts", starts=trial.starts))
    if trial.condition_number is not None and trial.weakest_direction:
        number, direction = show_figure(trial.condition_number), tell.english(trial.weakest_direction)
        found.append(tell.say(f"{base}.condition", number=number, direction=direction))
    if trial.plateau_train is not None:
        plateau = "plateau" if trial.plateau_train > 0 else "plateau_none"
        found.append(tell.say(f"{base}.{plateau}", share=show_share(trial.plateau_train, 1)))
    return tuple(found)
