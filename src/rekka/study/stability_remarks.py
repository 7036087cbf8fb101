"""What to look at in draws, in sentences: choices that change, fits that fail, starts that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from rekka.core.errors import count_of
from rekka.study.checks.fits import HOPELESS
from rekka.study.choosing import Choice
from rekka.study.methods import model_of
from rekka.study.plan import PRESETS
from rekka.study.stability_draws import SEEDS
from rekka.study.study import Study
from rekka.study.tables import AT_MAXIMUM
from rekka.study.words import MOST_NAMES, list_names

SELDOM = 0.5  # a choice that most draws do not make is no better than another


def remark_stability(study: Study, refits: pl.DataFrame, cases: pl.DataFrame) -> tuple[str, ...]:
    """Sentences, the gravest first: preset by preset, then what holds of the cases, then what is well."""
    presets = refits["preset"].unique(maintain_order=True)
    doubts: list[str] = []
    well: list[str] = []
    least = study.plan.guard.stable_share
    for preset in presets:
        named = f"{preset}: " if len(presets) > 1 else ""
        choices = {choice.case: choice for choice in study.choices if choice.preset == preset}
        here = refits.filter(preset=preset)
        for (kind,), drawn in here.group_by("kind", maintain_order=True):
            found = _remark_starts(drawn, preset) if kind == SEEDS else _remark_choices(drawn, choices)
            for line, is_well in found:
                (well if is_well else doubts).append(f"{named}{kind}: {line}")
            doubts += [f"{named}{kind}: {line}" for line in _remark_certified(drawn, least)]
        if study.plan.study.costs()[preset] == "seconds":
            well.append(
                f"{named}the study weighs accuracy against seconds, the draws against evaluations, which are the "
                "same whatever else the machine does"
            )
    return (*doubts, *_remark_cases(refits, cases), *well)


def _remark_choices(drawn: pl.DataFrame, choices: dict[str, Choice]) -> Iterator[tuple[str, bool]]:
    """Whether the draws choose what the study chose; methods that are one model count as one."""
    shares, seldom = {}, []
    for case, counts in _count_choices(drawn):
        choice = choices[case]
        chosen = _identify(choice.chosen, choice.preset)
        same = counts[chosen] / counts.total()
        shares[case] = same
        if same < SELDOM:
            rival, most = next(pair for pair in counts.most_common() if pair[0] != chosen)
            mine, theirs = choice.chosen or "nothing", _name(rival, drawn)
            seldom.append(f"{case} ({mine} {same:.0%}, {theirs} {most / counts.total():.0%})")
    if seldom:
        yield f"what the study chose is chosen in fewer than half of the draws: {_join(seldom)}", False
    elif shares:
        least = min(shares, key=lambda case: shares[case])
        yield f"what the study chose is chosen in at least {shares[least]:.0%} of the draws ({least})", True


def _remark_starts(drawn: pl.DataFrame, preset: str) -> Iterator[tuple[str, bool]]:
    """Whether the start alone decides where a fit ends, and what is chosen."""
    apart = []
    ended = drawn.filter(pl.col(PRESETS[preset].eligible) & pl.col("log_likelihood").is_not_null())
    for (case, method), fits in ended.group_by("case", "method", maintain_order=True):
        levels, gap = find_levels(fits["log_likelihood"].to_list())
        if levels > 1:
            far = f"{gap:,.2f}" if gap < HOPELESS else "more than a million"
            apart.append(f"{method} in {case} ({levels}, up to {far} apart)")
    if apart:
        yield f"the start alone decides where a fit ends, in log-likelihoods: {_join(apart)}", False
    elif len(ended):
        yield f"every start leads to the same log-likelihood, within {AT_MAXIMUM:g}", True
    changed = []
    for case, counts in _count_choices(drawn):
        shares = (f"{_name(model, drawn)} {n / counts.total():.0%}" for model, n in counts.most_common())
        changed += [f"{case} ({', '.join(shares)})"] if len(counts) > 1 else []
    if changed:
        how = "" if apart else ", by the evaluations it takes"
        yield f"the start alone changes what is chosen{how}: {_join(changed)}", False


def find_levels(values: Sequence[float]) -> tuple[int, float]:
    """How many values there are, those within AT_MAXIMUM of the next taken as one, and how far apart they are."""
    ordered = np.sort(values)
    return 1 + int((np.diff(ordered) > AT_MAXIMUM).sum()), float(ordered[-1] - ordered[0])


def _remark_certified(drawn: pl.DataFrame, least: float) -> Iterator[str]:
    """Methods that reach a maximum in fewer draws than the guarded rule asks for."""
    found: dict[str, dict[str, list[str]]] = {}
    statuses: Counter[str] = Counter()
    for (case, method), fits in drawn.group_by("case", "method", maintain_order=True):
        failed = fits.filter(~pl.col("certified"))
        share = 1 - len(failed) / len(fits)
        if share < least:
            found.setdefault(str(case), {}).setdefault(f"{share:.0%}", []).append(str(method))
            statuses.update(failed["status"].to_list())
    if found:
        few = [
            f"{case} ({', '.join(f'{list_names(names)} {share}' for share, names in shares.items())})"
            for case, shares in found.items()
        ]
        why = statuses.most_common(1)[0][0]
        yield f"a maximum reached in fewer than {least:.0%} of the draws: {_join(few)}; most of the others: {why}"


def _remark_cases(refits: pl.DataFrame, cases: pl.DataFrame) -> Iterator[str]:
    """What holds whatever the preset."""
    small = cases.filter(pl.col("exploratory").is_not_null())
    if len(small):
        each = [f"{case} ({why})" for case, why in small.select("case", "exploratory").rows()]
        yield f"exploratory, too small to conclude from: {_join(each)}"
    scorable = refits.group_by("kind", "case", maintain_order=True).agg((pl.col("held_out") > 0).mean())
    for (kind,), rows in scorable.filter(pl.col("held_out") < 1).group_by("kind", maintain_order=True):
        each = [f"{case} ({share:.0%})" for case, share in rows.select("case", "held_out").rows()]
        yield f"{kind}: not every draw leaves rows to score, and only the fits of the others count: {_join(each)}"


def _count_choices(drawn: pl.DataFrame) -> Iterator[tuple[str, Counter[str | None]]]:
    """For each case that has rows to score how often each model is chosen; None where nothing is."""
    for (case, preset), fits in drawn.filter(pl.col("held_out") > 0).group_by(
        "case", "preset", maintain_order=True
    ):
        chosen = fits.filter("chosen")["method"].to_list()
        counts = Counter(_identify(method, str(preset)) for method in chosen)
        nothing = fits["draw"].n_unique() - len(chosen)
        if nothing:
            counts[None] = nothing
        yield str(case), counts


def _identify(method: str | None, preset: str) -> str | None:
    """What is chosen: under Newton on the exact likelihood, methods that are one model are one."""
    return method if method is None or preset != "exact" else model_of(method)


def _name(model: str | None, drawn: pl.DataFrame) -> str:
    """The method under which a model is chosen."""
    if model is None:
        return "nothing"
    preset = str(drawn["preset"][0])
    return next(str(m) for m in drawn.filter("chosen")["method"] if _identify(m, preset) == model)


def _join(entries: Sequence[str]) -> str:
    """The first of many, and how many more there are."""
    more = len(entries) - MOST_NAMES
    return "; ".join(entries[:MOST_NAMES]) + (f"; and {count_of(more, 'other')}" if more > 0 else "")
