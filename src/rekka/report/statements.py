"""Sentences of the catalog with their values in place: escaped, English ones marked, names kept apart.

What the page says in whole sentences beside the answer and the cases: counted and worded here.

What stands before and in the answer: what was run, warnings, what to use where, and if it is confirmed.

What the page says of each case: what was chosen and why, of what it was fitted, if it is the maximum.

What the page says of the future of each case: how long it takes, what advances, what changes would do.

What the page says of the network: who was forecast from when, how many will need something done.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from markupsafe import Markup, escape

from rekka.model.certificate import DECREMENT_LIMIT, HARDLY_DETERMINED
from rekka.model.clock import AGE_NAMES, START
from rekka.model.survey import Contrast
from rekka.report.document import (
    NOT_YET,
    Answer,
    CaseForecast,
    CasePart,
    DoctorPart,
    Document,
    EffectPart,
    FindingPart,
    HypothesisPart,
    ModelPart,
    NetworkPart,
    NetworkYear,
    PassagePart,
    Told,
    TrialPart,
)
from rekka.report.tables.models import show_change
from rekka.report.tables.study import GOLDEN, finding_cell, is_judged
from rekka.report.text import (
    ENGLISH,
    Words,
    name_method,
    show_count,
    show_figure,
    show_level,
    show_number,
    show_p,
    show_range,
    show_share,
    show_years,
    show_years_difference,
    slug,
)
from rekka.study.confirmation import CHOSE, LOOKED, OTHER_PRESET
from rekka.study.plan import SHRINKING


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

    def why(self, one: Answer) -> Markup:
        """Why a method was chosen, or none."""
        return self.english(one.why) if one.said is None else escape(self.words.tell(one.said))

    def finding(self, part: str, finding: Told) -> Markup:
        """The title of a finding, what was found, or what to do."""
        cell = finding_cell(finding, part, self.words)
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


MOST_MISFITS = 3  # models that are told one by one before the answer


def tell_run(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What was run: trials, split, what chose, what confirmed, which preset answers, by which rule."""
    study = document.study
    answering = next(one for one in study.presets if one.name == study.preset)
    return (
        _tell_trials(document, tell),
        tell.say("page.run.split", scheme=tell.english(study.scheme)),
        *_tell_judges(document, tell),
        _tell_confirmed(document.answers, tell),
        tell.say("page.run.answer", preset=tell.preset(answering.name), words=tell.english(answering.words)),
        tell.say(f"page.run.rule_{study.rule}", default=tell.method(study.default)),
        *_tell_clock(document, tell),
    )


def _tell_clock(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """Where in an interval ages are taken, if there are any."""
    clock, names = document.study.clock, [one.name for one in document.study.covariates if one.name in AGE_NAMES]
    if clock is None or not names:
        return ()
    return (tell.say(f"page.run.clock_{clock}", names=tell.join(map(tell.name, names))),)


def _tell_trials(document: Document, tell: Teller) -> Markup:
    """How many trials; of an unfinished study how many are done, since not every case may have come up."""
    study = document.study
    whole = study.done >= study.planned
    return tell.say(
        "page.run.trials" if whole else "page.run.trials_so_far",
        cases=tell.count("cases", len(document.cases)),
        methods=tell.count("methods", len(study.methods)),
        names=tell.join(tell.method(one) for one in study.methods),
        presets=tell.count("presets", len(study.presets)),
        trials=tell.count("trials", study.planned),
        done=show_count(study.done),
    )


def _tell_judges(document: Document, tell: Teller) -> tuple[Markup, ...]:
    counted = Counter(case.judged_on for case in document.cases)
    rows = {name: tell.words.get(f"rows.{name}", name) for name in counted}
    if not rows:
        return ()
    if len(rows) == 1:
        return (tell.say("page.run.chose", rows=next(iter(rows.values()))),)
    each = (
        tell.say("page.run.chose_in", rows=rows[name], n=tell.count("cases", n)) for name, n in counted.items()
    )
    return (tell.say("page.run.chose", rows=tell.join(each)),)


def _tell_confirmed(answers: Sequence[Answer], tell: Teller) -> Markup:
    chosen = [answer for answer in answers if answer.method]
    confirmed = sum(answer.confirmed for answer in chosen)
    if not confirmed:
        return tell.say("page.run.confirmed_none")
    if confirmed == len(chosen):
        return tell.say("page.run.confirmed")
    return tell.say("page.run.confirmed_part", n=show_count(confirmed), chosen=show_count(len(chosen)))


def list_banners(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What a reader must know before the answer."""
    study = document.study
    found = []
    if study.done < study.planned or study.choices_done < study.choices_planned:
        names = ("done", "planned", "choices_done", "choices_planned")
        counts = {name: show_count(getattr(study, name)) for name in names}
        found.append(tell.say("page.banner.unfinished", **counts))
    if study.kind == "inventory":
        found.append(tell.say("page.banner.simulated"))
    return (*found, *_tell_misfits(document, tell), *_tell_unconfirmed(document, tell))


def _tell_misfits(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """A line for each model whose test of fit rejects, the worst first; of many, the first few."""
    rejected = [
        (one.case, one.fit_test) for one in document.models if one.fit_test is not None and one.fit_test.rejected
    ]
    rejected.sort(key=lambda one: (one[1].p_value, -one[1].statistic))
    found = [
        tell.say(
            "page.misfit.line",
            case=tell.name(case),
            p=show_p(test.p_value),
            facts=tell.join(_tell_contrast(one, tell) for one in test.contrasts),
        )
        for case, test in rejected[:MOST_MISFITS]
    ]
    more = rejected[MOST_MISFITS:]
    if more:
        cases = tell.join(tell.name(case) for case, _ in more)
        found.append(tell.say("page.misfit.more", n=show_count(len(more)), cases=cases))
    return tuple(found)


def _tell_contrast(one: Contrast, tell: Teller) -> Markup:
    """What the rows did, and what the model expects of them."""
    return tell.say(
        "page.misfit.stayed" if one.start == one.end else "page.misfit.went",
        observed=show_count(one.observed),
        rows=show_count(one.rows),
        start=one.start,
        end=one.end,
        years=show_range(one.years_low, one.years_high, show_years, tell.words),
        expected=show_number(one.expected, 1),
    )


def _tell_unconfirmed(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """One sentence for each reason why choices are not confirmed, with their number."""
    chosen = [answer for answer in document.answers if answer.method]
    counted = Counter(_find_obstacle(document, answer) for answer in chosen if not answer.confirmed)
    found = []
    for obstacle, n in counted.most_common():
        why = tell.say(f"page.unconfirmed.{obstacle}")
        if n == len(chosen):
            found.append(tell.say("page.banner.nothing", why=why))
        else:
            values = {"n": show_count(n), "chosen": show_count(len(chosen)), "why": why}
            found.append(tell.say("page.banner.some", **values))
    return tuple(found)


def _find_obstacle(document: Document, answer: Answer) -> str:
    """Why a choice is not confirmed, in a word of the catalog."""
    judged = {case.case: case.judged_on for case in document.cases}
    if judged.get(answer.case, document.study.select_on) == GOLDEN:
        return "chose"
    if answer.seen:
        return "preset" if answer.seen == OTHER_PRESET else "before"
    if answer.remark:
        return "before" if answer.remark.startswith((CHOSE, LOOKED)) else "unscored"
    return "not_looked"


def tell_headline(document: Document, tell: Teller) -> Markup:
    """In how many cases there is a model to use."""
    answers = document.answers
    chosen = sum(answer.method is not None for answer in answers)
    counts = {"n": show_count(chosen), "cases": tell.count("cases", len(answers))}
    if any(answer.reason == NOT_YET for answer in answers) or not answers:
        return tell.say("page.head.so_far", **counts)
    if chosen and not any(answer.confirmed for answer in answers) and document.study.rule == "pareto":
        return tell.say("page.head.picked", **counts)
    if len(answers) == 1:
        return tell.say("page.head.only" if chosen else "page.head.only_none")
    kind = "none" if not chosen else "all" if chosen == len(answers) else "some"
    return tell.say(f"page.head.{kind}", **counts)


def list_headlines(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """By which methods, where not, and where not yet."""
    answers = document.answers
    found = []
    methods = Counter(answer.method for answer in answers if answer.method)
    if methods:
        each = (
            tell.say("page.head.method_in", method=tell.method(one), n=show_count(n))
            for one, n in methods.most_common()
        )
        found.append(tell.say("page.head.methods", methods=tell.join(each)))
    without = [answer for answer in answers if answer.method is None]
    later = [tell.name(answer.case) for answer in without if answer.reason == NOT_YET]
    never = [tell.name(answer.case) for answer in without if answer.reason != NOT_YET]
    if never and len(answers) > 1:
        found.append(tell.say("page.head.without", names=tell.join(never)))
    if later:
        found.append(tell.say("page.head.later", names=tell.join(later)))
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
    plain = {case.case for case in document.cases if not set(case.covariates) - set(case.constant)}
    others = [answer for answer in looked if answer.case not in plain]
    lines = []
    if others:
        verdicts = [answer.beats_no_covariates for answer in others]
        lines.append(_tell_beaten("page.shown.covariates", verdicts, tell))
    if len(others) < len(looked):
        lines.append(tell.say("page.shown.no_covariates", cases=tell.count("cases", len(looked) - len(others))))
    verdicts = [answer.beats_persistence for answer in looked]
    lines.append(_tell_beaten("page.shown.persistence", verdicts, tell))
    return Shown(
        tell.say("page.shown.lead", rows=tell.count("golden", sum(answer.rows or 0 for answer in looked))),
        tuple(lines),
        tell.say("page.shown.meaning", confidence=show_level(document.study.confidence)),
    )


def _tell_beaten(key: str, verdicts: Sequence[str | None], tell: Teller) -> Markup:
    counted = Counter(verdicts)
    better, worse = counted["better"], counted["worse"]
    counts = {"n": len(verdicts), "better": better, "worse": worse, "unknown": len(verdicts) - better - worse}
    return tell.say(key, **{name: show_count(n) for name, n in counts.items()})


def tell_use(answer: Answer, tell: Teller) -> tuple[Markup, ...]:
    """Under the method to use: if it is confirmed, what its scores are of, and why it was chosen."""
    if answer.method is None:
        later = tell.say("page.use.later")
        return (later if answer.reason == NOT_YET else tell.why(answer),)
    return (*_tell_standing(answer, tell), tell.why(answer))


def _tell_standing(answer: Answer, tell: Teller) -> tuple[Markup, ...]:
    if answer.confirmed:
        rows, bridges = tell.count("golden", answer.rows or 0), tell.count("bridges", answer.bridges or 0)
        return (tell.say("page.use.confirmed", rows=rows, bridges=bridges),)
    told = answer.seen or answer.remark
    rows = tell.term("rows", answer.scored_on or "")
    if told is None:
        return (tell.say("page.use.judged", rows=rows),)
    seen = tell.term("page.seen", told)
    found = tell.say("page.use.seen", seen=seen)
    return (found, tell.say("page.use.scores", rows=rows)) if is_judged(answer) else (found,)


PLAIN = "plain"  # in the catalog: methods that have neither a penalty nor a prior
CERTIFICATE = "section.models.certificate"


@dataclass(frozen=True)
class CaseTold:
    """What the page says of a case: ``label`` beside its name, ``state`` is chosen, other, nothing or later."""

    state: str
    label: Markup
    warning: Markup | None
    lines: tuple[Markup, ...]
    certificate: tuple[Markup, ...]
    certified: bool


def tell_case(document: Document, case: CasePart, tell: Teller) -> CaseTold:
    """What there is to say of a case: what was chosen and why, of what, for whom, and if it is the maximum."""
    answer = next((one for one in document.answers if one.case == case.case), None)
    model = next((one for one in document.models if one.case == case.case), None)
    state = _find_state(answer, model)
    lines = [*_tell_choice(case, answer, state, tell)]
    if model is None:
        return CaseTold(state, tell.say(f"section.models.{state}"), None, tuple(lines), (), certified=False)
    method = tell.method(model.method)
    trial = next((one for one in document.trials if _key(one) == _key(model)), None)
    unused = () if model.chosen or trial is None or answer is None else _tell_unused(answer, model, tell)
    return CaseTold(
        state,
        tell.say(f"section.models.{state}", method=method),
        _warn(state, model, tell),
        (*lines, *_tell_model(document, case, model, tell)),
        () if trial is None else (*_tell_certificate(trial, tell), *unused),
        certified=trial is not None and trial.certified,
    )


def _find_state(answer: Answer | None, model: ModelPart | None) -> str:
    if answer is not None and answer.reason == NOT_YET:
        return "later"
    if model is None:
        return "nothing"
    return "chosen" if model.chosen else "other" if model.coefficients else "nothing"


def _warn(state: str, model: ModelPart, tell: Teller) -> Markup | None:
    """That what is shown is not to be used: turned down, or not judged yet."""
    if not model.coefficients or state not in ("other", "later"):
        return None
    key = "section.models.warning" if state == "other" else "section.models.warning_later"
    return tell.say(key, method=tell.method(model.method))


def _tell_choice(case: CasePart, answer: Answer | None, state: str, tell: Teller) -> Iterable[Markup]:
    if state == "later":
        yield tell.say("section.models.go_on")
    elif answer is not None:
        yield tell.why(answer)
    if case.exploratory:
        yield tell.say("section.models.exploratory", why=tell.english(case.exploratory))
    if case.constant:
        yield tell.say("section.models.constant", names=tell.join(map(tell.name, case.constant)))


def _tell_unused(answer: Answer, model: ModelPart, tell: Teller) -> tuple[Markup, ...]:
    """Why a fit that is shown is not to be used, be it the maximum."""
    if not model.coefficients:
        return ()
    return (tell.say(f"{CERTIFICATE}.unused", why=tell.words(f"choice.{slug(answer.reason)}")),)


def _key(part: TrialPart | ModelPart) -> tuple[str, str, str]:
    return part.case, part.preset, part.method


def _tell_model(document: Document, case: CasePart, model: ModelPart, tell: Teller) -> Iterable[Markup]:
    if not model.coefficients:
        if model.reason is None:
            yield tell.say("section.models.not_run", method=tell.method(model.method))
        else:
            yield tell.say("section.models.no_figures", reason=tell.english(model.reason.rstrip(".")))
        return
    yield tell.say(
        "section.models.rows",
        rows=tell.count("training", model.rows or 0),
        bridges=tell.count("bridges", case.bridges),
        states=show_count(model.n_states or case.n_states),
    )
    if not model.certified:
        yield tell.say("section.models.uncertified")
    elif model.errors:
        yield tell.say("section.models.errors", errors=tell.english(model.errors))
    if model.typical:
        yield from _tell_typical(document, model, tell)
    else:
        yield tell.say("section.models.no_covariates")


def _tell_typical(document: Document, model: ModelPart, tell: Teller) -> Iterable[Markup]:
    units = {one.name: one.unit for one in document.study.covariates}
    values = (_tell_value(name, value, units.get(name), tell) for name, value in model.typical.items())
    yield tell.say("section.models.typical", values=tell.join(values))
    if model.scale == "native":
        yield tell.say("section.models.native")
    else:
        yield tell.say("section.models.transformed", method=tell.method(model.scale or model.method))


def _tell_value(name: str, value: float, unit: str | None, tell: Teller) -> Markup:
    shown = tell.words.get(f"unit.{unit}", "") if unit else ""
    if not shown:
        return tell.say("section.models.value_alone", name=tell.name(name), value=show_figure(value))
    return tell.say("section.models.value", name=tell.name(name), value=show_figure(value), unit=shown)


def _tell_certificate(trial: TrialPart, tell: Teller) -> tuple[Markup, ...]:
    """The certificate's answers; a question that was not asked has none."""
    what = tell.say(f"{CERTIFICATE}.of.{trial.method if trial.method in SHRINKING else PLAIN}")
    found = [_tell_verdict(trial, what, tell)]
    if trial.maximum_exists:
        found.append(tell.say(f"{CERTIFICATE}.exists", what=what))
    elif trial.maximum_exists is not None:
        reason = (trial.reason or trial.verdict or trial.status).rstrip(".")
        return (*found, tell.say(f"{CERTIFICATE}.exists_not", reason=tell.english(reason)))
    if trial.decrement is not None:
        left = max(trial.decrement, trial.shortfall or 0.0)  # as the certificate judges
        reached = "reached" if left <= DECREMENT_LIMIT else "reached_not"
        found.append(tell.say(f"{CERTIFICATE}.{reached}", decrement=show_figure(left, 2), what=what))
    if trial.certified and trial.starts:
        found.append(tell.say(f"{CERTIFICATE}.starts", starts=show_count(trial.starts)))
    if trial.condition_number is not None and trial.weakest_direction:
        number, direction = show_figure(trial.condition_number), tell.english(trial.weakest_direction)
        found.append(tell.say(f"{CERTIFICATE}.condition", number=number, direction=direction))
    if trial.verdict and trial.verdict.endswith(HARDLY_DETERMINED):
        found.append(tell.say(f"{CERTIFICATE}.hardly"))
    if trial.plateau_train is not None:
        plateau = "plateau" if trial.plateau_train > 0 else "plateau_none"
        found.append(tell.say(f"{CERTIFICATE}.{plateau}", share=show_share(trial.plateau_train, 1)))
    return tuple(found)


def _tell_verdict(trial: TrialPart, what: Markup, tell: Teller) -> Markup:
    if trial.certified:
        return tell.say(f"{CERTIFICATE}.certified", what=what)
    if trial.verdict:
        return tell.say(f"{CERTIFICATE}.not_certified", verdict=tell.term("certificate", trial.verdict))
    return tell.say(f"{CERTIFICATE}.unknown", status=tell.term("status", trial.status))


SECTION = "section.forecast"
NOUNS = dict.fromkeys(AGE_NAMES, "age") | {
    "traffic_mean": "traffic",
    "bridge_length": "length",
    "bridge_width": "width",
    "bridge_area": "area",
}
TWICE = 2.0


@dataclass(frozen=True)
class FutureTold:
    """What the page says of a case's future; ``state`` is chosen, other or nothing; ``label`` goes with it."""

    state: str
    label: Markup
    warning: Markup | None
    lines: tuple[Markup, ...]
    effects: tuple[Markup, ...]


def tell_future(document: Document, case: CasePart, tell: Teller) -> FutureTold:
    """How long a typical member of a case takes, and what changes that; or why nothing is forecast."""
    model = next((one for one in document.models if one.case == case.case), None)
    if model is None or model.forecast is None:
        key = "no_number" if model is not None and model.coefficients else "no_model"
        line = tell.say(f"{SECTION}.{key}")
        return FutureTold("nothing", tell.say(f"{SECTION}.nothing"), None, (line,), ())
    found = model.forecast
    first = next((one for one in found.passages if one.start == 1), None)
    lines = (*_tell_passage(found, first, tell), *_tell_course(document, found, tell))
    return FutureTold(
        "chosen" if model.chosen and model.certified else "other",
        _label(model, found, first, tell),
        _warn_forecast(model, tell),
        lines,
        tuple(tell_effect(one, found, tell) for one in found.effects),
    )


def list_warnings(document: Document, tell: Teller) -> tuple[Markup, ...]:
    """What a reader must know before any figure of the section."""
    models = [one for one in document.models if one.forecast is not None and not one.certified]
    if not models:
        return ()
    return (tell.say(f"{SECTION}.uncertified", names=tell.join(tell.name(one.case) for one in models)),)


def _label(model: ModelPart, found: CaseForecast, first: PassagePart | None, tell: Teller) -> Markup:
    if not model.certified:
        return tell.say(f"{SECTION}.not_certified")
    if not model.chosen:
        return tell.say(f"{SECTION}.not_chosen")
    years = show_years(None if first is None else first.median)
    return tell.say(f"{SECTION}.label", years=years, state=found.threshold)


def _warn_forecast(model: ModelPart, tell: Teller) -> Markup | None:
    method = tell.method(model.method)
    if not model.chosen:
        return tell.say(f"{SECTION}.warning_unchosen", method=method)
    return None if model.certified else tell.say(f"{SECTION}.warning_uncertified", method=method)


def _tell_passage(found: CaseForecast, first: PassagePart | None, tell: Teller) -> Iterator[Markup]:
    """Years from state 1 until the threshold: the median with both intervals, and the mean."""
    if first is None:
        return
    places = {"state": found.threshold, "level": show_level(found.level), "years": show_years(first.median)}
    if first.median_low is None:
        yield tell.say(f"{SECTION}.median_alone", **places)
        return
    yield tell.say(
        f"{SECTION}.median",
        range=show_range(first.median_low, first.median_high, show_years, tell.words),
        **places,
    )
    yield tell.say(
        f"{SECTION}.member",
        range=show_range(first.predicted_low, first.predicted_high, show_years, tell.words),
        **places,
    )


def _tell_course(document: Document, found: CaseForecast, tell: Teller) -> Iterator[Markup]:
    """What advances with the years, and when it leaves the training rows."""
    if not found.advancing:
        yield tell.say(f"{SECTION}.fixed")
        return
    names = tell.join(tell.name(name) for name in found.advancing)
    yield tell.say(f"{SECTION}.advances", names=names)
    yield from _tell_forecast_clock(found, tell)
    first = found.extrapolated_from
    if first is not None:
        units = {one.name: one.unit for one in document.study.covariates}
        largest = (_tell_largest(name, value, units.get(name), tell) for name, value in found.seen.items())
        yield tell.say(f"{SECTION}.beyond", year=show_count(first), largest=tell.join(largest))


def _tell_forecast_clock(found: CaseForecast, tell: Teller) -> Iterator[Markup]:
    """Where in an interval the fit took the age, and how far behind that leaves it."""
    if found.clock == START:
        known = found.lag is not None
        yield tell.say(
            f"{SECTION}.clock_start" if known else f"{SECTION}.clock_unknown", lag=show_years(found.lag)
        )
    elif found.clock is not None:
        yield tell.say(f"{SECTION}.clock_middle")


def _tell_largest(name: str, value: float, unit: str | None, tell: Teller) -> Markup:
    shown = tell.words.get(f"unit.{unit}", "") if unit else ""
    key = "value" if shown else "value_alone"
    places = {"name": tell.name(name), "value": show_figure(value)} | ({"unit": shown} if shown else {})
    return tell.say(f"section.models.{key}", **places)


def tell_effect(one: EffectPart, found: CaseForecast, tell: Teller) -> Markup:
    """What a change does to the median years, as a sentence: shorter, longer, or no clear effect."""
    change = _name_change(one, tell)
    places = {
        "change": change,
        "state": found.threshold,
        "before": show_years(one.years_before),
        "after": show_years(one.years_after),
        "level": show_level(found.level),
    }
    by, low, high = one.difference, one.difference_low, one.difference_high
    if by is None or one.years_before in (None, float("inf")) or one.years_after in (None, float("inf")):
        return tell.say("effect.unknown", **places)
    if low is None or high is None:
        return tell.say("effect.alone", **places)
    if low <= 0 <= high:
        ends = show_range(low, high, show_years_difference, tell.words)
        return tell.say("effect.unclear", by=show_years_difference(by), range=ends, **places)
    near, far = sorted((abs(low), abs(high)))
    ends = show_range(near, far, show_years, tell.words)
    key = "shorter" if by < 0 else "longer"
    return tell.say(f"effect.{key}", by=show_years(abs(by)), range=ends, **places)


def _name_change(one: EffectPart, tell: Teller) -> Markup:
    """'10 more years of age', 'twice the traffic', 'load +5'."""
    noun = NOUNS.get(one.covariate)
    if noun is None or (one.times and one.amount != TWICE):
        change = show_change(one.amount, times=one.times)
        return tell.say("effect.change.other", name=tell.name(one.covariate), change=change)
    if one.times:
        return tell.say(f"effect.change.twice_{noun}")
    way = "more" if one.amount > 0 else "fewer"
    return tell.say(f"effect.change.{way}_{noun}", n=f"{abs(one.amount):,.10g}")


NETWORK_SECTION = "section.network"
COMMAND = Markup("<code>rekka forecast RUN INVENTORY</code>")
TOLD = (10, 30)  # years that are told in sentences


@dataclass(frozen=True)
class NetworkTold:
    """What the page says of the network; ``warnings`` stand before all else."""

    warnings: tuple[Markup, ...]
    lines: tuple[Markup, ...]
    notes: tuple[str, ...]


def tell_network(document: Document, tell: Teller) -> NetworkTold:
    """How the network goes on; or the command that forecasts one."""
    network = document.network
    if network is None:
        why = () if document.no_network is None else (document.no_network,)
        return NetworkTold((), (tell.say(f"{NETWORK_SECTION}.none", command=COMMAND),), why)
    return NetworkTold(tuple(_warn_network(network, tell)), tuple(_tell(network, tell)), network.notes)


def _warn_network(network: NetworkPart, tell: Teller) -> Iterator[Markup]:
    if not network.certified:
        yield tell.say(f"{NETWORK_SECTION}.uncertified")
    if network.unchosen:
        yield tell.say(f"{NETWORK_SECTION}.unchosen", names=tell.join(map(tell.name, network.unchosen)))
    if network.left_out:
        yield tell.say(f"{NETWORK_SECTION}.left_out", names=tell.join(map(tell.name, network.left_out)))


def _tell(network: NetworkPart, tell: Teller) -> Iterator[Markup]:
    members = tell.count("members", network.members)
    if network.kind == "study":
        yield tell.say(f"{NETWORK_SECTION}.study", members=members, command=COMMAND)
    else:
        yield tell.say(f"{NETWORK_SECTION}.inventory", members=members, name=tell.name(network.name))
    if network.base is None:
        yield tell.say(f"{NETWORK_SECTION}.undated")
    else:
        yield tell.say(f"{NETWORK_SECTION}.base", day=network.base)
    years = network.of(None)
    for year in years:
        if year.year in (0, *TOLD, network.horizon):
            yield _tell_year(network, year, tell)
    yield tell.say(f"{NETWORK_SECTION}.repairs")
    if network.outside:
        yield tell.say(f"{NETWORK_SECTION}.outside", members=tell.count("members", network.outside))
    aside = sum(one.count for one in network.aside if one.kind == "set aside" and one.what == "members")
    if aside:
        yield tell.say(f"{NETWORK_SECTION}.aside", members=tell.count("members", aside))


def _tell_year(network: NetworkPart, one: NetworkYear, tell: Teller) -> Markup:
    """How many are in the threshold or worse: expected, and between which numbers."""
    state = tell.words(f"{NETWORK_SECTION}.thresholds") if one.threshold is None else show_count(one.threshold)
    places = {"state": state, "number": show_count(one.reached), "years": show_count(one.year)}
    if one.year == 0:
        return tell.say(f"{NETWORK_SECTION}.now", **places)
    if one.low is None:
        return tell.say(f"{NETWORK_SECTION}.then_alone", **places)
    return tell.say(
        f"{NETWORK_SECTION}.then",
        level=show_level(network.level),
        expected=show_range(one.low, one.high, show_count, tell.words),
        range=show_range(one.predicted_low, one.predicted_high, show_count, tell.words),
        **places,
    )
