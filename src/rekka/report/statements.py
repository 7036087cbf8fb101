"""Whole sentences of the page and the Markdown: about the run, the answer, each component, forecasts, the network.

A sentence is a key of the language files with values in its places. ``Wording`` fills them in as HTML; the
functions here decide which sentences hold for a document, and count what they need.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

from markupsafe import Markup, escape

from rekka.core.ratings import Ratings
from rekka.fleet.rolling import AT, JOIN, PLAIN
from rekka.model.certificate import DECREMENT_LIMIT, HARDLY_DETERMINED
from rekka.model.clock import AGE_NAMES, START
from rekka.report.document import (
    NOT_YET,
    Answer,
    BacktestPart,
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
from rekka.report.outline import FEW, Section
from rekka.report.tables.models import show_change
from rekka.report.tables.study import GOLDEN, finding_cell, is_judged
from rekka.report.text import (
    ENGLISH,
    Real,
    Show,
    Words,
    name_method,
    show_count,
    show_figure,
    show_level,
    show_loss_difference,
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

NOTHING_FOUND = ("passed", "not applicable")
STEPS = ("certified", "better", "accuracy", "stable", "replaced")  # of the guarded rule
SCORES = ("accuracy", "log_loss", "recall", "brier", "persistence", "baseline", "interval")
QUESTIONS = ("exists", "reached", "determined", "plateau", "agree")  # of a certificate
GUARD = ("stable_share", "resamples", "accuracy_margin", "confidence")  # margins in a study file
MOST_MISFITS = 3  # models with a line of their own before the answer
CERTIFICATE = "section.models.certificate"
FORECAST = "section.forecast"
NETWORK = "section.network"
STABILITY_COMMAND = Markup("<code>rekka stability RUN</code>")
FORECAST_COMMAND = Markup("<code>rekka forecast RUN INVENTORY</code>")
BACKTEST_COMMAND = Markup("<code>rekka backtest TABLE --models auto --out RUN/backtest</code>")
DECADES = (10, 30)  # years of the network that have a sentence
TWICE = 2.0
# Covariates whose changes have words of their own in every language.
NOUNS = dict.fromkeys(AGE_NAMES, "age") | {
    "traffic_mean": "traffic",
    "bridge_length": "length",
    "bridge_width": "width",
    "bridge_area": "area",
}


class _OfCase(Protocol):
    @property
    def case(self) -> str: ...


Part = TypeVar("Part", bound=_OfCase)


@dataclass(frozen=True)
class Wording:
    """Sentences with their values in place: escaped, names kept apart; what nobody can reword is marked.

    >>> from rekka.report.text import load_words
    >>> say = Wording(load_words("en"))
    >>> say("page.run.chose", rows="<validation>")
    Markup('What chose: &lt;validation&gt;.')
    """

    words: Words

    def __call__(self, key: str, **values: Any) -> Markup:
        """A sentence; what is filled in is escaped, whole numbers have commas between thousands."""
        shown = {name: show_count(one) if isinstance(one, int) else one for name, one in values.items()}
        return escape(self.words(key)).format(**shown)

    def count(self, key: str, n: int) -> Markup:
        """A number of things: '1 case', '10 cases'."""
        return self(f"page.count.{key}.{'one' if n == 1 else 'other'}", n=n)

    def sentence(self, text: str) -> Markup:
        """An English sentence of a file in this language; one that nobody knows, of other data, stays as it is."""
        found = self.words.reword(text)
        if found is not None or self.words.lang == ENGLISH:
            return escape(found or text)
        return Markup('<span lang="en">{}</span>').format(text)

    def name(self, text: str) -> Markup:
        """A name that data gave: its direction is its own."""
        return Markup("<bdi>{}</bdi>").format(text)

    def names(self, texts: Iterable[str]) -> Markup:
        """Names that data gave, in one line."""
        return self.join(map(self.name, texts))

    def term(self, group: str, text: str, key: str | None = None) -> Markup:
        """A term or fixed sentence of rekka's, by its words in this language; one without them stays English."""
        place = f"{group}.{slug(key or text)}"
        return escape(self.words(place)) if place in self.words.texts else self.sentence(text)

    def why(self, one: Answer) -> Markup:
        """Why a method was chosen, or none."""
        spoken = replace(self.words, spoken=True)
        return self.sentence(one.why) if one.said is None else escape(spoken.format(one.said))

    def finding(self, part: str, finding: Told) -> Markup:
        """The title of a finding, what was found, or what to do."""
        cell = finding_cell(finding, part, self.words)
        return self.sentence(cell.text) if cell.english else escape(cell.text)

    def claim(self, one: HypothesisPart) -> Markup:
        """The claim of a hypothesis."""
        return self.term("claim", one.claim, one.code)

    def method(self, method: str) -> str:
        """A method, also a chain of them such as log+zscore."""
        return name_method(method, self.words)

    def preset(self, preset: str) -> str:
        """The name of a preset."""
        return self.words.get(f"preset.{preset}", preset)

    def value(self, name: str, value: float, units: Mapping[str, str | None]) -> Markup:
        """A covariate with a value and its unit: 'age 45.4 years'."""
        unit = self.words.get(f"unit.{units.get(name)}", "")
        places = {"name": self.name(self.words.covariate(name)), "value": show_figure(value)}
        return (
            self("section.models.value", unit=unit, **places)
            if unit
            else self("section.models.value_alone", **places)
        )

    def range(self, low: Real, high: Real, show: Show) -> str:
        """Both ends of an interval."""
        return show_range(low, high, show, self.words)

    def join(self, parts: Iterable[object]) -> Markup:
        """A list of things in one line."""
        return escape(self.words("number.comma")).join(escape(part) for part in parts)


@dataclass(frozen=True)
class DoctorGroup:
    """Findings of the data doctor with one code; ``first`` has what they share."""

    first: DoctorPart
    count: Markup
    findings: tuple[DoctorPart, ...]


@dataclass(frozen=True)
class ScoreStatements:
    """Comparisons of the chosen models with the two baselines, and their meaning."""

    lead: Markup
    lines: tuple[Markup, ...]
    meaning: Markup


@dataclass(frozen=True)
class CaseStatements:
    """Sentences about a case, or about its forecast.

    ``state`` is chosen, other, nothing or later, and ``label`` its words beside the name; ``certificate`` belongs
    to the fit, ``effects`` to the forecast.
    """

    state: str
    label: Markup
    warning: Markup | None
    lines: tuple[Markup, ...]
    certificate: tuple[Markup, ...] = ()
    certified: bool = False
    effects: tuple[Markup, ...] = ()
    lead: Markup | None = None  # before all lines: which model this is, where it is not the one that was compared


@dataclass(frozen=True)
class NetworkStatements:
    """Sentences about the network; ``warnings`` stand before all else."""

    warnings: tuple[Markup, ...]
    lines: tuple[Markup, ...]
    notes: tuple[str, ...]


# The run


def name_study(document: Document, words: Words) -> str:
    """The subject of the study: its title, or the kind of its rows."""
    return document.title or words(f"page.untitled_{document.study.kind}")


def explain_run(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Describe the run: trials, split, rows that chose and confirmed, answering preset, rule, clock."""
    study = document.study
    answering = next(one for one in study.presets if one.name == study.preset)
    ages = [one.name for one in study.covariates if one.name in AGE_NAMES]
    return (
        _explain_trials(document, say),
        say("page.run.split", scheme=say.sentence(study.scheme)),
        *_explain_judges(document, say),
        _explain_confirmed(document.answers, say),
        say("page.run.answer", preset=say.preset(answering.name), words=say.sentence(answering.words)),
        say(f"page.run.rule_{study.rule}", default=say.method(study.default)),
        *(
            [say(f"page.run.clock_{study.clock}", names=say.names(map(say.words.covariate, ages)))]
            if study.clock and ages
            else []
        ),
    )


def _explain_trials(document: Document, say: Wording) -> Markup:
    """Trials planned; of an unfinished study those done, since not every case may have come up."""
    study = document.study
    return say(
        "page.run.trials" if study.done >= study.planned else "page.run.trials_so_far",
        cases=say.count("cases", len(document.cases)),
        methods=say.count("methods", len(study.methods)),
        names=say.join(map(say.method, study.methods)),
        presets=say.count("presets", len(study.presets)),
        trials=say.count("trials", study.planned),
        done=study.done,
    )


def _explain_judges(document: Document, say: Wording) -> Iterator[Markup]:
    counted = Counter(case.judged_on for case in document.cases)
    rows = {name: say.words.get(f"rows.{name}", name) for name in counted}
    if len(rows) == 1:
        yield say("page.run.chose", rows=next(iter(rows.values())))
    elif rows:
        each = (say("page.run.chose_in", rows=rows[name], n=say.count("cases", n)) for name, n in counted.items())
        yield say("page.run.chose", rows=say.join(each))


def _explain_confirmed(answers: Sequence[Answer], say: Wording) -> Markup:
    chosen = [answer for answer in answers if answer.method]
    confirmed = sum(answer.confirmed for answer in chosen)
    kind = "_none" if not confirmed else "" if confirmed == len(chosen) else "_part"
    return say(f"page.run.confirmed{kind}", n=confirmed, chosen=len(chosen))


# Before the answer


def list_doubts(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Sentences against the answer: models that do not describe their data, choices that are not confirmed."""
    return (*_list_misfits(document, say), *_list_unconfirmed(document, say))


def list_alerts(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Facts on the whole that come first: it is not finished, or its bridges are simulated."""
    study = document.study
    found = []
    if study.done < study.planned or study.choices_done < study.choices_planned:
        names = ("done", "planned", "choices_done", "choices_planned")
        found.append(say("page.banner.unfinished", **{one: getattr(study, one) for one in names}))
    if study.kind == "inventory":
        found.append(say("page.banner.simulated"))
    return tuple(found)


def _list_misfits(document: Document, say: Wording) -> Iterator[Markup]:
    """A line for each model whose test of fit rejects, the worst first; of many, the first few."""
    tested = ((one.case, one.fit_test) for one in document.models)
    rejected = [(case, test) for case, test in tested if test is not None and test.rejected]
    rejected.sort(key=lambda one: (one[1].p_value, -one[1].statistic))
    for case, test in rejected[:MOST_MISFITS]:
        facts = (
            say(
                "page.misfit.stayed" if one.start == one.end else "page.misfit.went",
                observed=show_count(one.observed),
                rows=show_count(one.rows),
                start=document.ratings.phrase(one.start, say.words),
                end=document.ratings.phrase(one.end, say.words),
                years=say.range(one.years_low, one.years_high, show_years),
                expected=show_number(one.expected, 1),
            )
            for one in test.contrasts
        )
        yield say("page.misfit.line", case=say.name(case), p=show_p(test.p_value), facts=say.join(facts))
    more = [case for case, _ in rejected[MOST_MISFITS:]]
    if more:
        yield say("page.misfit.more", n=len(more), cases=say.names(more))


def _list_unconfirmed(document: Document, say: Wording) -> Iterator[Markup]:
    """One sentence for each reason why choices are not confirmed, with their number."""
    chosen = [answer for answer in document.answers if answer.method]
    counted = Counter(_find_obstacle(document, answer) for answer in chosen if not answer.confirmed)
    for obstacle, n in counted.most_common():
        key = "page.banner.nothing" if n == len(chosen) else "page.banner.some"
        counts = {"n": n, "chosen": len(chosen)}
        yield say(key, why=say(f"page.unconfirmed.{obstacle}"), **counts)


def _find_obstacle(document: Document, answer: Answer) -> str:
    """Why a choice is not confirmed, in a word of the language files."""
    judged = {case.case: case.judged_on for case in document.cases}
    if judged.get(answer.case, document.study.select_on) == GOLDEN:
        return "chose"
    if answer.seen:
        return "preset" if answer.seen == OTHER_PRESET else "before"
    if answer.remark:
        return "before" if answer.remark.startswith((CHOSE, LOOKED)) else "unscored"
    return "not_looked"


# The answer


def explain_headline(document: Document, say: Wording) -> Markup:
    """The number of cases with a model to use."""
    answers = document.answers
    chosen = sum(answer.method is not None for answer in answers)
    if any(answer.reason == NOT_YET for answer in answers) or not answers:
        kind = "so_far"
    elif chosen and not any(answer.confirmed for answer in answers) and document.study.rule == "pareto":
        kind = "picked"
    elif len(answers) == 1:
        kind = "only" if chosen else "only_none"
    else:
        kind = "none" if not chosen else "all" if chosen == len(answers) else "some"
    return say(f"page.head.{kind}", n=chosen, cases=say.count("cases", len(answers)))


def list_headlines(document: Document, say: Wording) -> tuple[Markup, ...]:
    """By which methods, where not, and where not yet."""
    answers = document.answers
    found = []
    methods = Counter(answer.method for answer in answers if answer.method).most_common()
    if methods:
        each: list[str] = [say("page.head.method_in", method=say.method(one), n=n) for one, n in methods]
        if len(answers) == 1:
            each = [say.method(methods[0][0])]
        found.append(say("page.head.methods", methods=say.join(each)))
    without = [answer for answer in answers if answer.method is None]
    later = [answer.case for answer in without if answer.reason == NOT_YET]
    never = [answer.case for answer in without if answer.reason != NOT_YET]
    if never and len(answers) > 1:
        found.append(say("page.head.without", names=say.names(never)))
    if later:
        found.append(say("page.head.later", names=say.names(later)))
    return tuple(found)


def explain_scores(document: Document, say: Wording) -> ScoreStatements | None:
    """Verdicts of the chosen models on confirmation rows, counted; None where no look was taken."""
    looked = [answer for answer in document.answers if answer.beats_no_covariates or answer.beats_persistence]
    if not looked:
        return None
    plain = {case.case for case in document.cases if not set(case.covariates) - set(case.constant)}
    others = [answer for answer in looked if answer.case not in plain]
    lines = []
    if others:
        lines.append(_count_verdicts("covariates", [one.beats_no_covariates for one in others], say))
    if len(others) < len(looked):
        lines.append(say("page.shown.no_covariates", cases=say.count("cases", len(looked) - len(others))))
    lines.append(_count_verdicts("persistence", [one.beats_persistence for one in looked], say))
    return ScoreStatements(
        say("page.shown.lead", rows=say.count("golden", sum(answer.rows or 0 for answer in looked))),
        tuple(lines),
        say("page.shown.meaning", confidence=show_level(document.study.confidence)),
    )


def _count_verdicts(baseline: str, verdicts: Sequence[str | None], say: Wording) -> Markup:
    better, worse = verdicts.count("better"), verdicts.count("worse")
    if len(verdicts) == 1:
        verdict = "better" if better else "worse" if worse else "unclear"
        return say(f"page.shown.{baseline}_one", verdict=say(f"figure.verdict.{verdict}"))
    counts = {"n": len(verdicts), "better": better, "worse": worse, "unknown": len(verdicts) - better - worse}
    return say(f"page.shown.{baseline}", **counts)


def explain_use(answer: Answer, say: Wording) -> tuple[Markup, ...]:
    """Under the method to use: if it is confirmed, what its scores are of, and why it was chosen."""
    if answer.method is None:
        return (say("page.use.later") if answer.reason == NOT_YET else say.why(answer),)
    if answer.confirmed:
        rows, bridges = say.count("golden", answer.rows or 0), say.count("bridges", answer.bridges or 0)
        return say("page.use.confirmed", rows=rows, bridges=bridges), say.why(answer)
    obstacle = answer.seen or answer.remark
    rows = say.term("rows", answer.scored_on or "")
    if obstacle is None:
        return say("page.use.judged", rows=rows), say.why(answer)
    scores = [say("page.use.scores", rows=rows)] if is_judged(answer) else []
    return say("page.use.seen", seen=say.term("page.seen", obstacle)), *scores, say.why(answer)


# Sections of the study


def split_findings(findings: Sequence[FindingPart]) -> tuple[list[FindingPart], list[FindingPart]]:
    """Findings that need a look, and the rest."""
    look = [finding for finding in findings if finding.verdict not in NOTHING_FOUND]
    return look, [finding for finding in findings if finding.verdict in NOTHING_FOUND]


def list_causes(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Causes of differences between presets, data or optimizer, counted."""
    counted = Counter(pair.cause for pair in document.presets).most_common()
    bold = Markup("<b>{}</b>")
    return tuple(
        say("section.presets.cause", n=bold.format(show_count(n)), cause=say.term("cause", cause))
        for cause, n in counted
    )


def explain_backtest(one: BacktestPart, say: Wording) -> Markup:
    """The score of forecasts of later visits beside that of no change; the model, if not the plain one."""
    told = _explain_score(one, say)
    if one.of_this and one.model is None:
        return told
    key = f"section.backtests.{'with' if one.of_this else 'other'}"
    return told + say.words("number.space") + say(key, elements=name_elements(one.model, say))


def name_elements(model: str | None, say: Wording) -> Markup:
    """Elements of histories of a model, for people."""
    names = (model or PLAIN).partition(AT)[0].split(JOIN)
    return say.join(say("section.backtests.plain" if name == PLAIN else f"element.{name}") for name in names)


def _explain_score(one: BacktestPart, say: Wording) -> Markup:
    places: dict[str, Any] = {"case": say.name(one.case), "until": one.until}
    if one.reason is not None or one.score is None:
        return say("section.backtests.line_none", reason=say.sentence(one.reason or ""), **places)
    places |= {
        "visits": say.count("visits", one.visits),
        "bridges": say.count("bridges", one.bridges),
        "years": show_years(one.horizon),
        "score": show_number(one.score),
        "no_change": show_number(one.no_change_score),
    }
    if one.low is None or one.high is None:
        return say("section.backtests.line_alone", **places)
    verdict = "better" if one.high < 0 else "worse" if one.low > 0 else "unknown"
    return say(
        "section.backtests.line",
        difference=show_loss_difference(one.difference),
        range=say.range(one.low, one.high, show_loss_difference),
        verdict=say.words(f"section.backtests.{verdict}"),
        **places,
    )


def find_few(document: Document, section: Section, say: Wording) -> Markup | None:
    """Why a figure of the paper is left out: there are too few components to compare."""
    if section.id not in ("tradeoff", "heat") or section.figures or not 0 < len(document.cases) < FEW:
        return None
    return say("section.few.text", cases=say.count("cases", len(document.cases)))


def explain_no_calibration(document: Document, say: Wording) -> Markup:
    """Why there is no calibration: nothing was chosen, or it was left out."""
    chosen = any(answer.method for answer in document.answers)
    return say("section.calibration.left_out" if chosen else "section.calibration.none")


def explain_stability(document: Document, say: Wording) -> Markup:
    """The number of refits and their kinds, or the command that makes them."""
    found = document.stability
    if found is None:
        return say("section.stability.none", command=STABILITY_COMMAND)
    kinds = say.join(say.term("kind", kind) for kind in found.kinds)
    draws = [share.draws for share in found.shares]
    n = say.range(min(draws, default=0), max(draws, default=0), show_count)
    return say("section.stability.lead", n=n, kinds=kinds)


def split_remarks(document: Document) -> tuple[list[str], list[str]]:
    """Remarks on the refits: of the preset that answers, and of others."""
    if document.stability is None:
        return [], []
    others = tuple(f"{one.name}: " for one in document.study.presets if one.name != document.study.preset)
    remarks = document.stability.remarks
    rest = [remark for remark in remarks if remark.startswith(others)]
    return [remark for remark in remarks if not remark.startswith(others)], rest


def explain_records(document: Document, say: Wording) -> Markup:
    """The number of records that came in."""
    return say("section.audit.records", records=say.count("records", document.audit.records or 0))


def group_doctor(findings: Sequence[DoctorPart], say: Wording) -> tuple[DoctorGroup, ...]:
    """The data doctor's findings by code, as they come: worst first."""
    codes: dict[str, list[DoctorPart]] = {}
    for finding in findings:
        codes.setdefault(finding.code, []).append(finding)
    return tuple(DoctorGroup(own[0], say.count("findings", len(own)), tuple(own)) for own in codes.values())


# Method notes


def explain_guard(document: Document, say: Wording) -> Markup | None:
    """The margins of the guarded rule in this study, from its plan."""
    try:
        guard: Mapping[str, Any] = tomllib.loads(document.provenance.plan).get("guard", {})
    except tomllib.TOMLDecodeError:
        return None
    if document.study.rule != "guarded" or any(name not in guard for name in GUARD):
        return None
    return say(
        "note.rule.values",
        default=say.method(document.study.default),
        stable=show_level(guard["stable_share"]),
        resamples=guard["resamples"],
        accuracy=f"{guard['accuracy_margin']:g}",
        confidence=show_level(guard["confidence"]),
    )


def explain_eligible(document: Document, say: Wording) -> Markup:
    """Trials that can be selected, by preset."""
    each = (
        say(
            "note.converged.eligible_in",
            preset=say.preset(one.name),
            eligible=say.words.get(f"note.eligible.{one.eligible}", one.eligible),
        )
        for one in document.study.presets
    )
    return say("note.converged.eligible", list=say.join(each))


def list_methods(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Each method of the study: its effect on the covariates, or on the likelihood."""
    return tuple(
        say("note.methods.line", method=say.method(one), what=_explain_links(one, say))
        for one in document.study.methods
    )


def _explain_links(method: str, say: Wording) -> Markup:
    """A method's operators, one after the other; one that a program registered has no words but these."""
    known = say.words.texts
    keys = (f"note.methods.{link}" for link in method.split("+"))
    each = (say(key if key in known else "note.methods.registered") for key in keys)
    return reduce(lambda first, second: say("note.methods.then", first=first, second=second), each)


def list_presets(document: Document, say: Wording) -> tuple[Markup, ...]:
    """The conditions of fits, and the cost that each weighs."""
    return tuple(
        say(
            "note.presets.text",
            preset=say.preset(one.name),
            words=say.sentence(one.words),
            cost=say.term("cost", one.cost),
        )
        for one in document.study.presets
    )


def list_limits(words: Words) -> tuple[str, ...]:
    """Limits of the report."""
    return tuple(text for key, text in words.texts.items() if key.startswith("note.limits.list_"))


# Each case: its fit


def explain_case(document: Document, case: CasePart, say: Wording) -> CaseStatements:
    """Explain the choice: the method and why, its rows, its typical member, its certificate."""
    answer, model = _find(document.answers, case), _find(document.models, case)
    state = _find_state(answer, model)
    lines = [*_explain_choice(case, answer, state, say)]
    if model is None:
        return CaseStatements(state, say(f"section.models.{state}"), None, tuple(lines))
    place = {"method": say.method(model.method)}
    warnings = {"other": "section.models.warning", "later": "section.models.warning_later"}
    warned = state in warnings and model.coefficients
    trial = next((one for one in document.trials if _key(one) == _key(model)), None)
    certificate = [] if trial is None else [*_explain_certificate(trial, say)]
    if trial is not None and answer is not None and not model.chosen and model.coefficients:
        why = say.words(f"choice.{slug(answer.reason)}")
        certificate.append(say("section.models.certificate.unused", why=why))
    return CaseStatements(
        state,
        say(f"section.models.{state}", **place),
        say(warnings[state], **place) if warned else None,
        (*lines, *_explain_model(document, case, model, say)),
        tuple(certificate),
        certified=trial is not None and trial.certified,
    )


def _find(parts: Iterable[Part], case: CasePart) -> Part | None:
    return next((one for one in parts if one.case == case.case), None)


def _key(part: TrialPart | ModelPart) -> tuple[str, str, str]:
    return part.case, part.preset, part.method


def _find_state(answer: Answer | None, model: ModelPart | None) -> str:
    if answer is not None and answer.reason == NOT_YET:
        return "later"
    if model is None:
        return "nothing"
    return "chosen" if model.chosen else "other" if model.coefficients else "nothing"


def _explain_choice(case: CasePart, answer: Answer | None, state: str, say: Wording) -> Iterator[Markup]:
    if state == "later":
        yield say("section.models.go_on")
    elif answer is not None:
        yield say.why(answer)
    if case.exploratory:
        yield say("section.models.exploratory", why=say.sentence(case.exploratory))
    if case.constant:
        yield say("section.models.constant", names=say.names(map(say.words.covariate, case.constant)))


def _explain_model(document: Document, case: CasePart, model: ModelPart, say: Wording) -> Iterator[Markup]:
    if not model.coefficients:
        if model.reason is None:
            yield say("section.models.not_run", method=say.method(model.method))
        else:
            yield say("section.models.no_figures", reason=say.sentence(model.reason.rstrip(".")))
        return
    yield say(
        "section.models.rows",
        rows=say.count("training", model.rows or 0),
        bridges=say.count("bridges", case.bridges),
        states=model.n_states or case.n_states,
    )
    if not model.certified:
        yield say("section.models.uncertified")
    elif model.errors:
        yield say("section.models.errors", errors=say.sentence(model.errors))
    if not (model.typical or model.levels):
        yield say("section.models.no_covariates")
        return
    units = _find_units(document)
    values = [say.value(name, value, units) for name, value in model.typical.items()]
    values += [
        say("section.models.level", name=say.name(say.words.covariate(n)), level=say.name(v))
        for n, v in model.levels.items()
    ]
    yield say("section.models.typical", values=say.join(values))
    key = "section.models.native" if model.scale == "native" else "section.models.transformed"
    yield say(key, method=say.method(model.scale or model.method))


def _find_units(document: Document) -> dict[str, str | None]:
    return {one.name: one.unit for one in document.study.covariates}


def _explain_certificate(trial: TrialPart, say: Wording) -> Iterator[Markup]:
    """The certificate's answers; a question that was not asked has none."""
    what = say(f"{CERTIFICATE}.of.{trial.method if trial.method in SHRINKING else 'plain'}")
    if trial.certified:
        yield say(f"{CERTIFICATE}.certified", what=what)
    elif trial.verdict:
        yield say(f"{CERTIFICATE}.not_certified", verdict=say.term("certificate", trial.verdict))
    else:
        yield say(f"{CERTIFICATE}.unknown", status=say.term("status", trial.status))
    if trial.maximum_exists:
        yield say(f"{CERTIFICATE}.exists", what=what)
    elif trial.maximum_exists is not None:
        reason = (trial.reason or trial.verdict or trial.status).rstrip(".")
        yield say(f"{CERTIFICATE}.exists_not", reason=say.sentence(reason))
        return
    if trial.decrement is not None:
        left = max(trial.decrement, trial.shortfall or 0.0)  # as the certificate judges
        reached = "reached" if left <= DECREMENT_LIMIT else "reached_not"
        yield say(f"{CERTIFICATE}.{reached}", decrement=show_figure(left, 2), what=what)
    if trial.certified and trial.starts:
        yield say(f"{CERTIFICATE}.starts", starts=trial.starts)
    if trial.condition_number is not None and trial.weakest_direction:
        number, direction = show_figure(trial.condition_number), say.sentence(trial.weakest_direction)
        yield say(f"{CERTIFICATE}.condition", number=number, direction=direction)
    if trial.verdict and trial.verdict.endswith(HARDLY_DETERMINED):
        yield say(f"{CERTIFICATE}.hardly")
    if trial.plateau_train is not None:
        plateau = "plateau" if trial.plateau_train > 0 else "plateau_none"
        yield say(f"{CERTIFICATE}.{plateau}", share=show_share(trial.plateau_train, 1))


# Each case: its forecast


def explain_forecast(document: Document, case: CasePart, say: Wording) -> CaseStatements:
    """Years that a typical member takes, and what changes them; or why nothing is forecast."""
    model = _find(document.models, case)
    if model is None or model.forecast is None:
        key = "no_number" if model is not None and model.coefficients else "no_model"
        return CaseStatements("nothing", say(f"{FORECAST}.nothing"), None, (say(f"{FORECAST}.{key}"),))
    found, ratings = model.forecast, document.ratings
    first = next((one for one in found.passages if one.start == 1), None)
    new = found.passage_of_new
    name = "label" if new is None else "label_new"
    label = "not_certified" if not model.certified else name if model.chosen else "not_chosen"
    shown = new or first
    years = show_years(None if shown is None else shown.median)
    warning = "warning_uncertified" if model.chosen else "warning_unchosen"
    usable = model.chosen and model.certified
    return CaseStatements(
        "chosen" if usable else "other",
        say(f"{FORECAST}.{label}", years=years, rating=ratings.phrase_or_worse(found.threshold, say.words)),
        None if usable else say(f"{FORECAST}.{warning}", method=say.method(model.method)),
        (*_explain_passage(document, model, found, ratings, say), *_explain_ageing(document, found, say)),
        effects=tuple(explain_effect(one, found, ratings, say) for one in sort_effects(found.effects)),
        lead=None
        if model.elements is None
        else say(f"{FORECAST}.elements", elements=name_elements(model.elements, say)),
    )


def list_warnings(document: Document, say: Wording) -> tuple[Markup, ...]:
    """Warnings before any figure of the section."""
    names = [one.case for one in document.models if one.forecast is not None and not one.certified]
    return (say(f"{FORECAST}.uncertified", names=say.names(names)),) if names else ()


def _explain_passage(
    document: Document, model: ModelPart, found: CaseForecast, ratings: Ratings, say: Wording
) -> Iterator[Markup]:
    """Years until the threshold, of a new member and of a typical one in the best rating: median and intervals."""
    places = {
        "rating": ratings.phrase_or_worse(found.threshold, say.words),
        "first": ratings.phrase(1, say.words),
        "level": show_level(found.level),
    }
    if found.new is not None:
        yield _say_median("new", found.new.passage, places, say)
    first = next((one for one in found.passages if one.start == 1), None)
    if first is None:
        return
    ages = {name: model.typical[name] for name in found.advancing if name in model.typical}
    units = _find_units(document)
    places |= {"age": say.join(say.value(name, value, units) for name, value in ages.items())}
    yield _say_median("median_aged" if ages else "median", first, places, say)
    if first.median_low is None:
        return
    yield say(
        f"{FORECAST}.member", range=say.range(first.predicted_low, first.predicted_high, show_years), **places
    )


def _say_median(key: str, passage: PassagePart, places: Mapping[str, Any], say: Wording) -> Markup:
    """The median years with their interval, if there is one."""
    years = show_years(passage.median)
    if passage.median_low is None:
        return say(f"{FORECAST}.{key}_alone", years=years, **places)
    ends = say.range(passage.median_low, passage.median_high, show_years)
    return say(f"{FORECAST}.{key}", years=years, range=ends, **places)


def _explain_ageing(document: Document, found: CaseForecast, say: Wording) -> Iterator[Markup]:
    """Covariates that advance, where in an interval the fit took them, and when they leave the training rows."""
    if not found.advancing:
        yield say(f"{FORECAST}.fixed")
        return
    yield say(f"{FORECAST}.advances", names=say.names(map(say.words.covariate, found.advancing)))
    if found.clock is not None:
        kind = "middle" if found.clock != START else "unknown" if found.lag is None else "start"
        yield say(f"{FORECAST}.clock_{kind}", lag=show_years(found.lag))
    if found.extrapolated_from is not None:
        units = _find_units(document)
        largest = say.join(say.value(name, value, units) for name, value in found.seen.items())
        yield say(f"{FORECAST}.beyond", year=show_count(found.extrapolated_from), largest=largest)


def sort_effects(effects: Sequence[EffectPart]) -> list[EffectPart]:
    """Effects by size; those that are not clear come after those that are."""

    def rank(one: EffectPart) -> tuple[bool, float]:
        low, high = one.difference_low, one.difference_high
        clear = low is not None and high is not None and not low <= 0 <= high
        return not clear, -abs(one.difference or 0.0)

    return sorted(effects, key=rank)


def explain_effect(one: EffectPart, found: CaseForecast, ratings: Ratings, say: Wording) -> Markup:
    """The effect of a change on the median years, as a sentence: shorter, longer, or no clear effect."""
    places = {
        "change": name_change(one, say),
        "rating": ratings.phrase_or_worse(found.threshold, say.words),
        "before": show_years(one.years_before),
        "after": show_years(one.years_after),
        "level": show_level(found.level),
    }
    by, low, high = one.difference, one.difference_low, one.difference_high
    if by is None or one.years_before in (None, float("inf")) or one.years_after in (None, float("inf")):
        return say("effect.unknown", **places)
    if low is None or high is None:
        return say("effect.alone", **places)
    if low <= 0 <= high:
        ends = say.range(low, high, show_years_difference)
        return say("effect.unclear", by=show_years_difference(by), range=ends, **places)
    near, far = sorted((abs(low), abs(high)))
    key = "effect.shorter" if by < 0 else "effect.longer"
    return say(key, by=show_years(abs(by)), range=say.range(near, far, show_years), **places)


def name_change(one: EffectPart, say: Wording) -> Markup:
    """'10 more years of age', 'twice the traffic', 'load +5'."""
    if one.level is not None:
        names = {"name": say.words.covariate(one.covariate), "level": one.level, "instead": one.instead or ""}
        return say("effect.change.level", **{key: say.name(name) for key, name in names.items()})
    noun = NOUNS.get(one.covariate)
    if noun is None or (one.times and one.amount != TWICE):
        change = show_change(one.amount, times=one.times)
        return say("effect.change.other", name=say.name(say.words.covariate(one.covariate)), change=change)
    way = "twice" if one.times else "more" if one.amount > 0 else "fewer"
    return say(f"effect.change.{way}_{noun}", n=f"{abs(one.amount):,.10g}")


# The network


def explain_network(document: Document, say: Wording) -> NetworkStatements:
    """The network over the years; or the command that forecasts one."""
    network = document.network
    if network is None:
        why = () if document.no_network is None else (document.no_network,)
        return NetworkStatements((), (say(f"{NETWORK}.none", command=FORECAST_COMMAND),), why)
    warnings = [] if network.certified else [say(f"{NETWORK}.uncertified")]
    for name in ("unchosen", "left_out"):
        cases = getattr(network, name)
        warnings += [say(f"{NETWORK}.{name}", names=say.names(cases))] if cases else []
    return NetworkStatements(tuple(warnings), tuple(_list_lines(network, say)), network.notes)


def explain_no_members(document: Document, say: Wording) -> Markup:
    """The command that makes a list of members."""
    return say("page.members.none", command=FORECAST_COMMAND)


def _list_lines(network: NetworkPart, say: Wording) -> Iterator[Markup]:
    members = say.count("members", network.members)
    yield say(f"{NETWORK}.{network.kind}", members=members, command=FORECAST_COMMAND, name=say.name(network.name))
    yield say(f"{NETWORK}.undated" if network.base is None else f"{NETWORK}.base", day=network.base)
    for year in network.of(None):
        if year.year in (0, *DECADES, network.horizon):
            yield _explain_year(network, year, say)
    yield say(f"{NETWORK}.repairs_{network.repairs}")
    aside = sum(one.count for one in network.aside if one.kind == "set aside" and one.what == "members")
    for name, count in (("outside", network.outside), ("unseen", network.unseen), ("aside", aside)):
        if count:
            yield say(f"{NETWORK}.{name}", members=say.count("members", count))


def _name_threshold(network: NetworkPart, one: NetworkYear, say: Wording) -> str:
    """'rating d or worse'; where components have several thresholds, all of them."""
    name = partial(network.ratings.phrase_or_worse, words=say.words)
    if one.threshold is not None:
        return name(one.threshold)
    known = sorted({year.threshold for year in network.years if year.threshold is not None})
    return say.words(f"{NETWORK}.thresholds", ratings=say.words.join(map(name, known), "comma"))


def _explain_year(network: NetworkPart, one: NetworkYear, say: Wording) -> Markup:
    """Members in the threshold or worse: expected, and between which numbers."""
    return say(
        f"{NETWORK}.{'now' if one.year == 0 else 'then_alone' if one.low is None else 'then'}",
        rating=_name_threshold(network, one, say),
        number=show_count(one.reached),
        years=one.year,
        level=show_level(network.level),
        expected=say.range(one.low, one.high, show_count),
        range=say.range(one.predicted_low, one.predicted_high, show_count),
    )
