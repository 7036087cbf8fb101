"""Fitted models in a terminal, the answer first: years until the threshold, and what changes them most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape

from rekka.checks.engine import Finding
from rekka.core.language import say
from rekka.core.numerics import quiet
from rekka.fleet.models import CaseModel
from rekka.forecast.forecast import ForecastOptions, make_cohort, typical_covariates
from rekka.forecast.uncertainty import DELTA, NONE
from rekka.model.certificate import HARDLY_DETERMINED
from rekka.model.tables import LARGEST
from rekka.report.document import CaseForecast, EffectPart, PassagePart
from rekka.report.statements import Wording, explain_effect, name_change
from rekka.report.summarize import list_effects, list_passages
from rekka.report.terminal.parts import print_plain, print_warning
from rekka.report.terminal.tables import NOTHING, PLAIN, WORDS, print_texts, show
from rekka.report.text import show_level, show_range, show_years

LEVEL = 0.95
FULLY = 1  # components that are told in sentences, not in a table


class FittedComponent(NamedTuple):
    """A model, the assumptions that its rows contradict, the elements that were chosen, and sentences on these."""

    model: CaseModel
    findings: Sequence[Finding] = ()
    elements: str = ""
    sentences: Sequence[str] = ()


class Sketch(NamedTuple):
    """Years of a typical member, and the covariate that changes them most."""

    threshold: int
    passage: PassagePart | None = None
    effect: EffectPart | None = None


def sketch_model(model: CaseModel) -> Sketch:
    """Years from the best rating until the threshold, and the covariate with the largest clear effect on them."""
    fit, threshold = model.fit, model.ratings.default_threshold
    if fit.survey is None and fit.covariates:  # of an earlier version: nobody knows what is typical
        return Sketch(threshold)
    x = typical_covariates(fit)
    eta = fit.log_hazards(x)
    if not np.isfinite(eta).all() or (np.abs(eta) > LARGEST).any():
        return Sketch(threshold)
    options = ForecastOptions(DELTA if model.certified else NONE, LEVEL)
    with quiet():
        cohort = make_cohort(fit, np.zeros(1, dtype=np.int64), x, options)
        passage = next(iter(list_passages(cohort, threshold)))
        clear = [one for one in list_effects(fit, x[0], threshold, options) if _is_clear(one)]
    return Sketch(threshold, passage, max(clear, key=lambda one: abs(one.difference or 0.0), default=None))


def _is_clear(one: EffectPart) -> bool:
    """Whether the interval of a finite difference excludes 0."""
    low, high = one.difference_low, one.difference_high
    ends = (one.years_before, one.years_after, one.difference)
    known = all(value is not None and math.isfinite(value) for value in ends)
    return known and low is not None and high is not None and (low > 0 or high < 0)


def print_fits(console: Console, components: Sequence[FittedComponent]) -> None:
    """Print what the models say, a line for each: years, the strongest effect, and what speaks against them."""
    console.print(f"[bold]{escape(_count_certified(components))}[/]", highlight=False)
    models = [one.model for one in components]
    alone = len(components) <= FULLY
    for kind, names in (
        ("uncertified", [one.name for one in models if not one.certified]),
        ("misfit", [one.name for one in models if one.misfit is not None]),
    ):
        if names:
            print_warning(
                console, WORDS.format(say(f"terminal.fit.{kind}{'_alone' if alone else ''}", names=names))
            )
    sketches = [sketch_model(one) for one in models]
    if alone:
        for one, sketch in zip(components, sketches, strict=True):
            for line in _describe(one, sketch):
                print_plain(console, line)
    else:
        _print_table(console, components, sketches)
    _print_bootstrap(console, models)
    contradicted = list(_list_contradicted(components))
    for line in contradicted:
        print_plain(console, line)
    if contradicted and not any(one.elements for one in components):
        print_plain(console, WORDS("terminal.fit.do_models"))


def _count_certified(components: Sequence[FittedComponent]) -> str:
    """'10 components fitted to 30,726 transitions: 6 certified, 4 certified but hardly determined.'."""
    certified = sum(one.model.certified for one in components)
    hardly = sum(_is_hardly(one.model) for one in components)
    counts = {"certified": certified - hardly, "hardly": hardly, "not_certified": len(components) - certified}
    alone = "_alone" if len(components) <= FULLY else ""
    told = [say(f"terminal.fit.{name}{alone}", n=count) for name, count in counts.items() if count]
    rows = sum(one.model.fit.n_rows for one in components)
    return WORDS.format(say("terminal.fit.head", cases=len(components), rows=rows, counts=told))


def _is_hardly(model: CaseModel) -> bool:
    return model.certified and model.fit.certificate.headline.endswith(HARDLY_DETERMINED)


def _describe(one: FittedComponent, sketch: Sketch) -> Iterator[str]:
    """Sentences on one component."""
    yield from _describe_years(one.model, sketch)
    yield from one.sentences


def _describe_years(model: CaseModel, sketch: Sketch) -> Iterator[str]:
    """Years of a typical member until the threshold, and what changes them most."""
    passage = sketch.passage
    if passage is None or passage.median is None:
        yield WORDS("terminal.fit.no_years")
        return
    places = {
        "rating": model.ratings.phrase_or_worse(sketch.threshold),
        "first": model.ratings.phrase(1),
        "years": _plain(show_years(passage.median)),
        "level": show_level(LEVEL),
    }
    if passage.median_low is None:
        yield WORDS("terminal.fit.years_alone", **places)
    else:
        ends = show_range(passage.median_low, passage.median_high, show_years, WORDS)
        yield WORDS("terminal.fit.years", range=_plain(ends), **places)
    yield _describe_strongest(model, sketch)


def _describe_strongest(model: CaseModel, sketch: Sketch) -> str:
    """The strongest effect as a sentence."""
    if sketch.effect is None:
        return WORDS(f"terminal.fit.{'no_effect' if model.fit.covariates else 'no_covariates'}")
    found = CaseForecast.model_construct(threshold=sketch.threshold, level=LEVEL)
    told = explain_effect(sketch.effect, found, model.ratings, Wording(WORDS))
    return WORDS("terminal.fit.strongest", effect=_plain(told.striptags()))


def _print_table(console: Console, components: Sequence[FittedComponent], sketches: Sequence[Sketch]) -> None:
    """A line for each component."""
    chosen = any(one.elements for one in components)
    codes = any(one.findings for one in components)
    lines = []
    for one, sketch in zip(components, sketches, strict=True):
        passage, effect = sketch.passage, sketch.effect
        lines.append((
            one.model.name,
            *([one.elements or NOTHING] if chosen else []),
            f"{one.model.fit.n_rows:,}",
            WORDS(f"terminal.fit.mark.{_name_verdict(one.model)}"),
            NOTHING if passage is None else _plain(show(passage.median, "years")),
            NOTHING if effect is None else _plain(name_change(effect, Wording(WORDS)).striptags()),
            NOTHING if effect is None else _plain(show(effect.years_after, "years")),
            *([" ".join(finding.code for finding in one.findings) or NOTHING] if codes else []),
        ))  # fmt: skip
    heads = [WORDS("column.case"), *([WORDS("terminal.fit.column.model")] if chosen else [])]
    heads += [WORDS(f"terminal.fit.column.{name}") for name in ("rows", "certified", "years", "effect", "then")]
    heads += [WORDS("terminal.fit.column.findings")] if codes else []
    goals = {(one.model.ratings.name(1), one.model.ratings.or_worse(sketch.threshold))
             for one, sketch in zip(components, sketches, strict=True)}  # fmt: skip
    key = "note" if len(goals) == 1 else "note_several"
    first, goal = min(goals)
    console.print()
    left = (0, 2 + chosen, 4 + chosen, *([1] if chosen else []), *([6 + chosen] if codes else []))
    print_texts(console, "", heads, lines, WORDS(f"terminal.fit.{key}", first=first, goal=goal), left=left)


def _name_verdict(model: CaseModel) -> str:
    return "hardly" if _is_hardly(model) else "certified" if model.certified else "not_certified"


def _list_contradicted(components: Sequence[FittedComponent]) -> Iterator[str]:
    """'R614 Bridges that differ: Bearing, Pier.': a line for each assumption that rows contradict."""
    by_code: dict[tuple[str, str], list[str]] = {}
    for one in components:
        for finding in one.findings:
            by_code.setdefault((finding.code, finding.title), []).append(one.model.name)
    alone = len(components) <= FULLY
    for (code, title), names in sorted(by_code.items()):
        said: dict[str, Any] = {"code": code, "title": title.rstrip("."), "names": names}
        yield WORDS.format(say(f"terminal.fit.contradicted{'_alone' if alone else ''}", **said))


def _print_bootstrap(console: Console, models: Sequence[CaseModel]) -> None:
    """How many refits reached a maximum, where any were asked for."""
    drawn = {one.name: one.fit.resampled for one in models if one.fit.resampled is not None}
    few = [name for name, one in drawn.items() if 2 * len(one.beta) < one.asked]
    if few:
        print_warning(console, WORDS.format(say("terminal.fit.bootstrap_few", names=few)))
    elif drawn:
        certified, asked = (
            sum(counts) for counts in zip(*((len(one.beta), one.asked) for one in drawn.values()), strict=True)
        )
        print_plain(console, WORDS("terminal.fit.bootstrap", certified=certified, asked=asked))


def _plain(text: str) -> str:
    """A text with signs that any terminal can show."""
    return text.translate(PLAIN)
