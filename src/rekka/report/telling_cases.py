"""What the page says of each case: what was chosen and why, of what it was fitted, if it is the maximum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from rekka.model.certificate import DECREMENT_LIMIT, HARDLY_DETERMINED
from rekka.report.document import NOT_YET, Answer, CasePart, Document, ModelPart, TrialPart
from rekka.report.numbers import show_count, show_figure, show_share
from rekka.report.teller import Teller
from rekka.report.words import slug
from rekka.study.methods import SHRINKING

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
