"""What stands before and in the answer: what was run, warnings, what to use where, and if it is confirmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rekka.model.clock import AGE_NAMES
from rekka.model.survey import Contrast
from rekka.report.document import NOT_YET, Answer, Document
from rekka.report.numbers import show_count, show_level, show_number, show_p, show_range, show_years
from rekka.report.tables import GOLDEN, is_judged
from rekka.report.teller import Teller
from rekka.study.confirming import CHOSE, LOOKED, OTHER_PRESET

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
