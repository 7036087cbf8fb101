"""Explanations of a study's results: why a method was kept, dropped or chosen, and how stable that is.

An explanation of a choice is a key of the language files with the figures that decided (``Said``), so that any
language can show it; ``in_english`` gives the sentence. Those of stability are English sentences, which a page
finds again by their form (``core/sentences.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from rekka.core.errors import count_of, name_some
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.core.ratings import Ratings
from rekka.evaluation.selection import EARLIER, Guard, Point, Share, Step, ties
from rekka.study.case_rows import FOLDS
from rekka.study.choice import COSTS, Choice, MethodVerdict
from rekka.study.plan import BARE, BOUND, GUARDED, PRESETS, SHRINKING, StudyPlan, model_of
from rekka.study.trial import AT_MAXIMUM, HOPELESS, Status, Trial

MOST_NAMES = 6


def list_names(names: Iterable[str]) -> str:
    """'a, b, c', or the first of very many and how many more there are."""
    some = list(names)
    return name_some(some, MOST_NAMES) if some else ""


def name_trials(trials: Sequence[tuple[str, str]]) -> str:
    """'max, minmax in Pier, Abutment; zscore in Pier': methods that share their cases together."""
    by_method: dict[str, list[str]] = {}
    for case, method in trials:
        by_method.setdefault(method, []).append(case)
    by_cases: dict[tuple[str, ...], list[str]] = {}
    for method, cases in by_method.items():
        by_cases.setdefault(tuple(cases), []).append(method)
    return "; ".join(f"{', '.join(methods)} in {list_names(cases)}" for cases, methods in by_cases.items())


def in_english(said: Said) -> str:
    """The sentence of an explanation, in English."""
    return load_words(ENGLISH).format(said)


Row = dict[str, Any]


def comparable(rows: Sequence[Row], cost: str) -> dict[str, Point]:
    """The trials that can be compared: eligible, with accuracy and cost."""
    return {
        row["method"]: Point(row["accuracy"], row[cost])
        for row in rows
        if row["eligible"] and row["accuracy"] is not None and row[cost] is not None
    }


def explain_selection(rows: Sequence[Row]) -> Said:
    """Explain why these methods of a case were selected and no others."""
    cost = rows[0]["cost"]
    points = comparable(rows, cost)
    selected = [row["method"] for row in rows if row["selected"]]
    if not selected:
        return say("why.pareto.none", why=say(f"why.pareto.{_why_none(rows)}"))
    groups: list[list[str]] = []
    for method in sorted(selected, key=lambda m: points[m].cost):
        tied = groups and ties(points[groups[-1][0]], points[method], COSTS[cost])
        groups = [*groups[:-1], [*groups[-1], method]] if tied else [*groups, [method]]
    if len(groups) > 1:
        return _explain_trade(groups, points, cost)
    figures = _list_figures(points[selected[0]], cost)
    if len(selected) > 1:
        shared = _list_shared(selected)
        one = len({model_of(method) for method in selected}) == 1
        key = "tie_one_model" if one else "tie_some" if shared else "tie"
        return say(f"why.pareto.{key}", names=join_names(selected), shared=shared, **figures)
    return say(f"why.pareto.{_why_single(rows, points, selected[0])}", method=selected[0], **figures)


def _why_none(rows: Sequence[Row]) -> str:
    if not any(row["converged"] for row in rows):
        return "not_converged"
    if any(row["eligible"] for row in rows):
        return "not_scored"
    exists = {row["maximum_exists"] for row in rows}
    if False in exists and True not in exists:
        return "no_maximum"
    if all(row["status"] == Status.NOT_DETERMINED for row in rows if row["converged"]):
        return "not_determined"
    return "not_eligible"


def _why_single(rows: Sequence[Row], points: Mapping[str, Point], method: str) -> str:
    """Name the reason why one method alone is selected."""
    mine = points[method]
    others = [Point(point.accuracy, 0.0) for name, point in points.items() if name != method]
    level = [ties(other, Point(mine.accuracy, 0.0)) for other in others]
    if not others:
        return "only_converged" if sum(row["converged"] for row in rows) == 1 else "only_eligible"
    if all(level):
        return "as_accurate"
    return "none_better" if any(level) else "most_accurate"


def _explain_trade(groups: Sequence[Sequence[str]], points: Mapping[str, Point], cost: str) -> Said:
    """Explain a trade of accuracy against cost, from the cheapest to the most accurate."""
    names = [
        say("why.pareto.one_model", names=join_names(group))
        if len(group) > 1 and len(set(map(model_of, group))) == 1
        else join_names(group)
        for group in groups
    ]
    figures = [_list_figures(points[group[0]], cost) for group in groups]
    if len(groups) == 2:
        price, accuracy = figures[0]["price"], figures[1]["accuracy"]
        own = {"cheaper": names[0], "better": names[1], "price": price, "accuracy": accuracy}
        return say("why.pareto.pair", n=len(groups[0]), **own)
    steps = [say("why.pareto.step", names=name, **own) for name, own in zip(names, figures, strict=True)]
    return say("why.pareto.trade", steps=steps)


def _list_shared(methods: Sequence[str]) -> list[Said]:
    """List the methods that are one model, where some are."""
    models: dict[str, list[str]] = {}
    for method in methods:
        models.setdefault(model_of(method), []).append(method)
    return [say("why.pareto.shared", names=join_names(one)) for one in models.values() if len(one) > 1]


def join_names(names: Sequence[str]) -> str | Said:
    """'a', 'a and b', 'a, b and c'."""
    return names[0] if len(names) == 1 else say("names.several", first=list(names[:-1]), last=names[-1])


def _list_figures(point: Point, cost: str) -> dict[str, Any]:
    return {"accuracy": point.accuracy, "price": name_cost(point.cost, cost)}


def name_cost(value: float, cost: str) -> Said:
    """'0.421 s', '7 evaluations'."""
    if cost == "seconds":
        return say("price.seconds" if value >= 0.1 else "price.short", seconds=value)
    return say(f"price.{cost.removesuffix('s')}", n=int(value))


SAME_LOSS = 1e-6  # of a log loss, relatively: fits of one model at one maximum differ by far less


def explain_method(choice: Choice, verdict: MethodVerdict, guard: Guard, trial: Trial) -> Said:
    """Explain why one method was kept or dropped."""
    if verdict.kept:
        return _explain_kept(choice, verdict)
    step = verdict.step or Step.CERTIFIED
    if step is Step.BETTER:
        return _explain_not_better(choice, verdict)
    why = _explain_drop(choice, verdict, guard, trial, step)
    if choice.rule != GUARDED:
        return say("why.method.dropped", method=verdict.method, why=why)
    return say("why.method.dropped_at", method=verdict.method, why=why, step=name_step(step))


def name_step(step: Step) -> Said:
    """Name what a step of the guarded rule asks for."""
    return say(f"step.{step.value.replace(' ', '_')}")


def explain_case(
    choice: Choice, guard: Guard, trials: Mapping[str, Trial], ratings: Ratings | None = None
) -> Said:
    """Explain what was chosen for a case, and why."""
    if choice.chosen is None:
        return _explain_none(choice, guard, trials)
    if choice.chosen in choice.rungs:
        return _explain_rung(choice, ratings)
    same = list_same(choice)
    name: str | Said = choice.chosen
    if same:
        name = say("why.case.same", method=choice.chosen, same=join_names(same))
    chosen = _find(choice, choice.chosen)
    if choice.default is None:
        price = name_cost(chosen.cost or 0.0, choice.cost)
        return say("why.case.most_accurate", name=name, accuracy=chosen.accuracy, price=price)
    if choice.chosen != choice.default:
        return say("why.case.replaces", name=name, default=choice.default, gain=_gain(choice, chosen))
    beside = [m for m in choice.kept if m != choice.chosen and m not in same]
    joined = join_names(beside) if beside else None
    if choice.default == guard.default:
        if beside or any(verdict.step in EARLIER for verdict in choice.verdicts):
            return say("why.case.stays" if beside else "why.case.alone", name=name, beside=joined)
        return _explain_stay(choice, guard, name)
    missing = guard.default not in (verdict.method for verdict in choice.verdicts)
    key = f"{'missing' if missing else 'failing'}{'_beside' if beside else ''}"
    return say(f"why.case.{key}", name=name, default=guard.default, beside=joined)


def _explain_stay(choice: Choice, guard: Guard, name: str | Said) -> Said:
    """Explain why the default was not replaced, by the rival with the lowest log loss."""
    default = _find(choice, choice.default)
    rivals = [v for v in choice.verdicts if not v.kept and v.step is not Step.CERTIFIED]
    compared = [v for v in rivals if v.difference is not None]
    if default.log_loss is None:
        return say("why.case.unscored", name=name, rows=say(f"rows_of.{choice.judged_on}", folds=FOLDS))
    if not compared:
        tried = any(v.step is Step.CERTIFIED for v in choice.verdicts)
        return say("why.case.only_certified" if tried else "why.case.only_tried", name=name)
    closest = min(compared, key=lambda v: (v.step is Step.BETTER, v.difference))
    own: dict[str, Any] = {"name": name, "rival": closest.method, "difference": _against(closest)}
    if closest.step is Step.ACCURACY:
        figures = {"accuracy": closest.accuracy, "theirs": default.accuracy, "margin": guard.accuracy_margin}
        return say("why.case.less_accurate", **own, **figures)
    if closest.step is Step.STABLE:
        return say("why.case.rival_unstable", **own, share=_name_share(closest, guard))
    return say(f"why.case.{_name_way(closest)}", **own)


def _name_way(verdict: MethodVerdict) -> str:
    """Name the way in which a log loss is not shown to be lower: it is lower on these rows, or it is higher."""
    return "not_shown" if (verdict.difference or 0.0) < 0 else "higher"


def _explain_not_better(choice: Choice, verdict: MethodVerdict) -> Said:
    own: dict[str, Any] = {"method": verdict.method, "default": choice.default}
    if verdict.difference is None:
        return say("why.method.not_compared", **own)
    return say(f"why.method.{_name_way(verdict)}", **own, difference=_against(verdict))


def find_reason(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    """Reason for the choice, or for none, in a word; ``explain_case`` gives the figures too."""
    if choice.chosen in choice.rungs:
        return "rung"
    if choice.chosen is None:
        if choice.bounds:
            return "no departure"
        if any(verdict.drawn for verdict in choice.verdicts):
            return "unstable"
        return "not scored" if any(trial.certified for trial in trials.values()) else "not certified"
    if choice.default is None:
        return "pareto"
    if choice.chosen == choice.default:
        return "stays" if choice.default == guard.default else "stands in"
    replaced = _find(choice, choice.default).step is Step.REPLACED
    return "lower log loss" if replaced else "accuracy and cost"


def list_same(choice: Choice) -> list[str]:
    """The methods kept beside what was chosen that are one model with it, and forecast the same.

    Under the paper's conditions equals may stop at different points: then they are listed apart.
    """
    mine = _find(choice, choice.chosen)
    return [
        other.method
        for other in choice.verdicts
        if other.kept
        and other.method != mine.method
        and model_of(other.method) == model_of(mine.method)
        and math.isclose(other.log_loss or 0.0, mine.log_loss or 0.0, rel_tol=SAME_LOSS)
    ]


def _explain_rung(choice: Choice, ratings: Ratings | None) -> Said:
    """Explain what serves where no method of the plan does, and why none does."""
    planned = [verdict for verdict in choice.verdicts if verdict.method not in choice.rungs]
    stable = any(verdict.step is Step.STABLE for verdict in planned)
    plain = all(verdict.method in BARE for verdict in planned)
    why = say(
        f"why.rung.{'plain_' if plain else ''}{'unstable' if stable else 'not_certified'}",
        rows=choice.rows,
        departures=choice.departures,
    )
    bounds = [
        say("why.rung.bound_of", rating=_name_state(one.state, ratings), rate=one.rate, years=one.years)
        for one in choice.bounds
    ]
    if choice.chosen == BOUND and not bounds:
        return say("why.rung.held", why=why)
    return say(f"why.rung.{choice.chosen}", why=why, others=choice.others, bounds=bounds)


def _name_state(state: int | None, ratings: Ratings | None) -> Said | str:
    return f"state {state}" if ratings is None or state is None else ratings.said([state])


def _explain_none(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> Said:
    if choice.bounds:
        return say("why.rung.none", years=choice.bounds[0].years, rate=choice.bounds[0].rate)
    tried = [verdict for verdict in choice.verdicts if verdict.drawn]
    if tried:
        best = max(tried, key=lambda one: ((one.certified or 0) / (one.drawn or 1), one.method == guard.default))
        share = _name_share(best, guard)
        return say("why.case.luck", method=best.method, share=share, remedy=_remedy(choice))
    if any(trial.certified for trial in trials.values()):
        return say("why.case.not_scored", rows=say(f"rows_of.{choice.judged_on}", folds=FOLDS))
    reasons = {str(why): why for why in map(_why_not, trials.values())}
    return say("why.case.not_certified", reasons=list(reasons.values()), remedy=_remedy(choice))


def _remedy(choice: Choice) -> Said:
    tried = {verdict.method for verdict in choice.verdicts}
    if choice.preset == "paper":
        return say("why.remedy.paper")
    return say("why.remedy.fewer" if tried & set(SHRINKING) else "why.remedy.exact")


def _explain_kept(choice: Choice, verdict: MethodVerdict) -> Said:
    scores = say("why.method.scores", accuracy=verdict.accuracy, log_loss=verdict.log_loss)
    if verdict.log_loss is None:
        scores = say("why.method.no_scores")
    if verdict.method in choice.rungs:
        return say("why.method.rung", method=verdict.method, scores=scores)
    own = {"method": verdict.method, "default": choice.default, "chosen": choice.chosen, "scores": scores}
    if verdict.method == choice.default:
        return say("why.method.stays", **own)
    if choice.default is not None and model_of(verdict.method) == model_of(choice.default):
        return say("why.method.one_model", **own)
    if choice.rule != GUARDED or choice.default is None:
        return say("why.method.kept", **own)
    if verdict.method != choice.chosen and choice.default not in choice.kept:
        return say("why.method.beside", **own)
    key = "why.method.replaces" if verdict.method == choice.chosen else "why.method.joins"
    return say(key, **own, gain=_gain(choice, verdict))


def _gain(choice: Choice, verdict: MethodVerdict) -> Said:
    """Describe what the method has over the default: what decided first, then the rest."""
    theirs = _find(choice, choice.default)
    mine, other = (name_cost(one.cost or 0.0, choice.cost) for one in (verdict, theirs))
    own: dict[str, Any] = {"accuracy": verdict.accuracy, "theirs": theirs.accuracy}
    own |= {"price": mine, "their_price": other}
    own |= {"rival": theirs.rival, "difference": _against(verdict)}
    if theirs.step is Step.REPLACED or verdict.difference is None:
        return say("why.gain.loss_first", **own)
    if theirs.rival not in (None, verdict.method):
        return say("why.gain.lowest", **own)
    shown = verdict.high is not None and verdict.high < 0
    return say("why.gain.shown" if shown else "why.gain.not_shown", **own)


def _why_not(trial: Trial) -> str | Said:
    """Reason why a trial is not certified, without what to do about it."""
    why = (trial.reason or "").split("; remedies: ")[0].rstrip(".")
    return why if trial.reason else say("why.case.no_row")


def _explain_drop(choice: Choice, verdict: MethodVerdict, guard: Guard, trial: Trial, step: Step) -> str | Said:
    """Explain why a method was dropped at a step."""
    if step is Step.CERTIFIED:
        return _with_loss(_why_not(trial), choice, verdict, guard)
    if step is Step.STABLE:
        share = Share(verdict.certified or 0, verdict.drawn or 0)
        shown = guard.is_decided(share) and not guard.is_stable(share)  # runs before 0.10.0 asked for the share
        key = "why.method.unstable" if shown else "why.method.seldom"
        return say(key, share=_name_share(verdict, guard), asked=guard.stable_share, level=guard.confidence)
    if step is Step.ACCURACY:
        key = "why.method.below_margin" if guard.accuracy_margin else "why.method.below"
        own = {"default": choice.default, "theirs": _find(choice, choice.default).accuracy}
        below = say(key, accuracy=verdict.accuracy, margin=guard.accuracy_margin, **own)
        return _with_loss(below, choice, verdict, guard)
    if step is Step.LOG_LOSS:
        worse = verdict.low is not None and verdict.low > guard.log_loss_margin
        key = "why.method.beyond" if worse else "why.method.not_within"
        far = say(key, difference=_against(verdict), margin=guard.log_loss_margin)
        return _with_loss(far, choice, verdict, guard)
    if step is Step.NOT_WORSE:
        return say("why.method.worse", difference=_against(verdict))
    if step is Step.REPLACED:
        difference = _against(_find(choice, verdict.rival))
        return say("why.method.rival_lower", rival=verdict.rival, difference=difference)
    return _explain_dominated(choice, verdict)


def _with_loss(why: str | Said, choice: Choice, verdict: MethodVerdict, guard: Guard) -> str | Said:
    """A reason with the log loss beside that of the method to match, and the rows on the floor."""
    if verdict.log_loss is None:
        return why
    other = choice.default or guard.default
    theirs = next((v.log_loss for v in choice.verdicts if v.method == other != verdict.method), None)
    parts = [name for name, holds in (("other", theirs is not None), ("floor", verdict.at_floor)) if holds]
    figures = {"log_loss": verdict.log_loss, "other": other, "theirs": theirs, "at_floor": verdict.at_floor}
    return say("why.method.with_loss", why=why, loss=say(f"why.loss.{'_'.join(parts) or 'alone'}", **figures))


def _name_share(verdict: MethodVerdict, guard: Guard) -> Said:
    """'18 of 20 resamples', or 'the first 3' where that was enough to know."""
    key = "why.share.all" if verdict.drawn == guard.resamples else "why.share.first"
    return say(key, certified=verdict.certified, drawn=verdict.drawn or 0)


def _explain_dominated(choice: Choice, verdict: MethodVerdict) -> Said:
    own: dict[str, Any] = {"accuracy": verdict.accuracy, "price": name_cost(verdict.cost or 0.0, choice.cost)}
    if verdict.rival is None:
        return say("why.method.another", **own)
    rival = _find(choice, verdict.rival)
    price = name_cost(rival.cost or 0.0, choice.cost)
    theirs = {"rival": verdict.rival, "their_accuracy": rival.accuracy, "their_price": price}
    return say("why.method.dominated", **theirs, **own)


def _find(choice: Choice, method: str | None) -> MethodVerdict:
    return next(verdict for verdict in choice.verdicts if verdict.method == method)


def _against(verdict: MethodVerdict) -> Said:
    """'lower by 0.0210 (interval -0.0340 to -0.0080, 112 bridges)'; where there is no interval, without it."""
    if verdict.difference is None:
        return say("why.difference.none")
    way = say(f"why.difference.{'lower' if verdict.difference < 0 else 'higher'}", by=abs(verdict.difference))
    if verdict.low is None or verdict.high is None or verdict.low == verdict.high:
        return way
    finite = math.isfinite(verdict.low) and math.isfinite(verdict.high)
    figures = {"low": verdict.low, "high": verdict.high, "bridges": verdict.bridges or 0}
    return say("why.difference.interval" if finite else "why.difference.no_interval", way=way, **figures)


SELDOM = 0.5  # a choice that most draws do not make is no better than another


def explain_stability(
    plan: StudyPlan, chosen: Sequence[Choice], refits: pl.DataFrame, cases: pl.DataFrame
) -> tuple[str, ...]:
    """Sentences on the draws, the gravest first: by preset, then on the components, then what is well."""
    presets = refits["preset"].unique(maintain_order=True)
    concerns: list[str] = []
    well: list[str] = []
    least = plan.guard.stable_share
    for preset in presets:
        named = f"{preset}: " if len(presets) > 1 else ""
        choices = {choice.case: choice for choice in chosen if choice.preset == preset}
        here = refits.filter(preset=preset)
        for (kind,), drawn in here.group_by("kind", maintain_order=True):
            found = _explain_starts(drawn, preset) if kind == "seeds" else _explain_choices(drawn, choices)
            for line, is_well in found:
                (well if is_well else concerns).append(f"{named}{kind}: {line}")
            concerns += [f"{named}{kind}: {line}" for line in _explain_certified(drawn, least)]
        if plan.study.costs()[preset] == "seconds":
            well.append(
                f"{named}the study weighs accuracy against seconds, the draws against evaluations, which are the "
                "same whatever else the machine does"
            )
    return (*concerns, *_explain_cases(refits, cases), *well)


def _explain_choices(drawn: pl.DataFrame, choices: dict[str, Choice]) -> Iterator[tuple[str, bool]]:
    """Compare what the draws choose with the study's choice; methods that are one model count as one."""
    shares, seldom = {}, []
    for case, counts in _count_choices(drawn):
        choice = choices[case]
        chosen = _identify_model(choice.chosen, choice.preset)
        same = counts[chosen] / counts.total()
        shares[case] = same
        if same < SELDOM:
            rival, most = next(pair for pair in counts.most_common() if pair[0] != chosen)
            mine, theirs = choice.chosen or "nothing", _name_model(rival, drawn)
            seldom.append(f"{case} ({mine} {same:.0%}, {theirs} {most / counts.total():.0%})")
    if seldom:
        yield f"what the study chose is chosen in fewer than half of the draws: {_join(seldom)}", False
    elif shares:
        least = min(shares, key=lambda case: shares[case])
        yield f"what the study chose is chosen in at least {shares[least]:.0%} of the draws ({least})", True


def _explain_starts(drawn: pl.DataFrame, preset: str) -> Iterator[tuple[str, bool]]:
    """Describe whether the start alone decides where a fit ends, and what is chosen."""
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
        shares = (f"{_name_model(model, drawn)} {n / counts.total():.0%}" for model, n in counts.most_common())
        changed += [f"{case} ({', '.join(shares)})"] if len(counts) > 1 else []
    if changed:
        how = "" if apart else ", by the evaluations it takes"
        yield f"the start alone changes what is chosen{how}: {_join(changed)}", False


def find_levels(values: Sequence[float]) -> tuple[int, float]:
    """Number of distinct values, those within AT_MAXIMUM of the next taken as one, and their range."""
    ordered = np.sort(values)
    return 1 + int((np.diff(ordered) > AT_MAXIMUM).sum()), float(ordered[-1] - ordered[0])


def _explain_certified(drawn: pl.DataFrame, least: float) -> Iterator[str]:
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


def _explain_cases(refits: pl.DataFrame, cases: pl.DataFrame) -> Iterator[str]:
    """Describe what holds whatever the preset."""
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
        counts = Counter(_identify_model(method, str(preset)) for method in chosen)
        nothing = fits["draw"].n_unique() - len(chosen)
        if nothing:
            counts[None] = nothing
        yield str(case), counts


def _identify_model(method: str | None, preset: str) -> str | None:
    """Name the model that is chosen: under Newton on the exact likelihood, equal methods are one."""
    return method if method is None or preset != "exact" else model_of(method)


def _name_model(model: str | None, drawn: pl.DataFrame) -> str:
    """The method under which a model is chosen."""
    if model is None:
        return "nothing"
    preset = str(drawn["preset"][0])
    return next(str(m) for m in drawn.filter("chosen")["method"] if _identify_model(m, preset) == model)


def _join(entries: Sequence[str]) -> str:
    """The first of many, and how many more there are."""
    more = len(entries) - MOST_NAMES
    return "; ".join(entries[:MOST_NAMES]) + (f"; and {count_of(more, 'other')}" if more > 0 else "")
