"""What to look at in draws, in sentences: choices that change, fits that fail, starts that matter.

Would other rows, another split or another start have led to the same choice? ``stability``.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from joblib import cpu_count

from rekka.core.errors import BadOption, RunFolderError, bad_option, count_of, no_such_case
from rekka.core.folders import hold
from rekka.study.checks.fits import HOPELESS
from rekka.study.choice import Choice
from rekka.study.compare import load_study
from rekka.study.explanations import MOST_NAMES, list_names
from rekka.study.plan import PRESETS, StudyPlan, model_of
from rekka.study.rows import CaseRows
from rekka.study.run_folder import load_plan, mark_run, read_provenance
from rekka.study.runner import Crew, engage, open_cases
from rekka.study.stability_draws import (
    KINDS,
    SEEDS,
    Block,
    Drawn,
    DrawnInFiles,
    DrawnInMemory,
    Unit,
    find_seeds,
    read_draws,
    refit_draws,
)
from rekka.study.stability_tables import (
    STABILITY_TABLES,
    tabulate_cases,
    tabulate_methods,
    tabulate_selection,
    tabulate_statuses,
)
from rekka.study.study import Study
from rekka.study.tables import AT_MAXIMUM

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


RESAMPLES = 200  # a share has a standard error of at most 3.5 % there
BLOCK = 25  # draws: seconds of work, so that little is lost by a stop, and no process waits long for the last

OnUnit = Callable[[Unit, int, int], None]  # what was done, how many draws are done, how many there are to be


@dataclass(frozen=True, eq=False)
class Stability:
    """Refits of a study's cases to other rows and from other starts, and what they say of its choices.

    ``refits`` has a row for each draw and method. Made by ``stability``.
    """

    study: Study
    kinds: tuple[str, ...]
    resamples: int
    seed: int
    refits: pl.DataFrame

    @cached_property
    def methods(self) -> pl.DataFrame:
        """For each method in each case the share of certified refits, and the spread of scores and cost.

        Scores are spread over the refits that could be scored, evaluations over those that ended. Low and high are
        5 % and 95 % quantiles; of ``certified`` the ends of its 95 % interval (Wilson).
        """
        return tabulate_methods(self.refits)

    @cached_property
    def statuses(self) -> pl.DataFrame:
        """What became of the refits of each method in each case, counted."""
        return tabulate_statuses(self.refits)

    @cached_property
    def selection(self) -> pl.DataFrame:
        """How often each method is chosen, and kept, in each case: shares of the draws that had rows to score.

        ``none`` is the share in which nothing is chosen; ``in_study`` marks what the study itself chose.
        """
        return tabulate_selection(self.refits, self.study.choices)

    @cached_property
    def cases(self) -> pl.DataFrame:
        """Each case with its size, and why it is exploratory where it is."""
        names = self.refits["case"].unique()
        return tabulate_cases([case for case in self.study.described if case.name in names])

    def remarks(self) -> tuple[str, ...]:
        """What to look at, in sentences."""
        return remark_stability(self.study, self.refits, self.cases)

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables, by name."""
        return {name: getattr(self, name) for name in STABILITY_TABLES}

    def __repr__(self) -> str:
        refits, cases = count_of(len(self.refits), "refit"), count_of(self.refits["case"].n_unique(), "case")
        return f"<Stability: {refits} of {cases}: {', '.join(self.kinds)}>"


class _Wanted(NamedTuple):
    """What was asked for, checked."""

    kinds: tuple[str, ...]
    resamples: int
    seed: int
    cases: tuple[str, ...]


def stability(
    study: Study | str | Path,
    *,
    kinds: Sequence[str] = KINDS,
    resamples: int = RESAMPLES,
    seed: int | None = None,
    cases: Sequence[str] | None = None,
    workers: int | None = None,
    cluster: Any = None,
    on_unit: OnUnit | None = None,
) -> Stability:
    """Refit a study's cases to other rows and from other starts, and see what is certified and what is chosen.

    Golden rows are not used. In a run folder every draw is kept: a call that was stopped goes on, and one with
    more resamples makes only the new ones. The same seed gives the same draws, whatever the workers.

    Parameters
    ----------
    study : Study or path
        A study, or the run folder of one that is finished.
    kinds : sequence of str
        "bootstrap": bridges of the training and validation rows drawn with replacement, scored on the rows of
        the bridges not drawn. "splits": a random 80 % of these bridges fitted, the others scored. "seeds": the
        training rows from random starts of the solver, scored on the validation rows.
    resamples : int
        Draws of each kind, for each case and preset.
    seed : int, optional
        Of the draws; the study's own by default.
    cases : sequence of str, optional
        Only these; all by default.
    workers : int, optional
        Processes that fit side by side; by default as many as there are cores.
    cluster : str or distributed.Client, optional
        Where to fit instead: the address of a Dask scheduler, such as "tcp://host:8786"; "local" or "local:4" for
        processes of a cluster on this machine.
    on_unit : callable, optional
        Called with each ``Unit`` of draws that is done, the number of draws done and the number there are to be.

    """
    alone = cpu_count() if cluster is None else 1
    engaged = engage(alone if workers is None else workers, cluster)
    _check(kinds, resamples, seed, cases)
    if isinstance(study, Study):
        _refuse_unfinished(study, "RUN")
        wanted = _settle(study, kinds, resamples, seed, cases)
        with engaged as crew:
            return _carry_out(study, wanted, DrawnInMemory(), crew, on_unit)
    folder = Path(study).absolute()
    load_plan(folder)  # refuses what is no run folder, before it is held
    with engaged as crew, hold(folder):
        found = load_study(folder)
        _refuse_unfinished(found, folder.name)
        wanted = _settle(found, kinds, resamples, seed, cases)
        drawn = _open_files(folder, found, wanted.seed)
        try:
            result = _carry_out(found, wanted, drawn, crew, on_unit)
            drawn.write_tables(result.tables())
        except BaseException as error:
            with contextlib.suppress(OSError):  # the disk may be full
                drawn.note(f"stopped: {type(error).__name__} {error}".rstrip())
            raise
        drawn.note(f"done: {count_of(len(result.refits), 'refit')}; tables written")
        return result


def load_stability(study: Study | str | Path) -> Stability | None:
    """The draws in the run folder of a study, as many as there are; None where there are none. Nothing is written.

    Where there are draws of several seeds, those of the study's own; else of the smallest.
    """
    study = study if isinstance(study, Study) else load_study(study)
    folder = study.folder
    if folder is None:
        return None
    seeds = find_seeds(folder)
    seed = study.plan.study.seed if study.plan.study.seed in seeds else next(iter(seeds), None)
    if seed is None:
        return None
    there = dict(read_draws(folder, _mark(folder, study), seed))
    cases = [case.name for case in study.described]
    order = {(p, c, k): n for n, (p, c, k) in enumerate(product(study.plan.study.presets, cases, KINDS))}
    known = sorted((block for block in there if block[:3] in order), key=lambda one: (order[one[:3]], one.first))
    if not known:
        return None
    refits = pl.concat([there[block] for block in known])
    kinds = tuple(kind for kind in KINDS if kind in refits["kind"])
    return Stability(study, kinds, int(refits["draw"].to_numpy().max()) + 1, seed, refits)


def _check(kinds: Sequence[str], resamples: int, seed: int | None, cases: Sequence[str] | None) -> None:
    """Refuse options that mean nothing, whatever the study."""
    for option, names in (("kinds", kinds), ("cases", cases)):
        if isinstance(names, str):
            raise BadOption(f"{option} is the text {names!r}; a list of names is needed, such as [{names!r}].")
        if names is not None and not names:
            raise BadOption(f"{option} is empty; name at least one, or leave it out.", option=option)
    for kind in kinds:
        if kind not in KINDS:
            raise bad_option("kinds", kind, KINDS)
    for option, value, least in (("resamples", resamples, 1), ("seed", 0 if seed is None else seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            message = f"{option} is {value!r}; a whole number of at least {least} is needed."
            raise BadOption(message, option=option, value=value)


def _settle(
    study: Study, kinds: Sequence[str], resamples: int, seed: int | None, cases: Sequence[str] | None
) -> _Wanted:
    """Fill in what was not given; kinds and cases go in the study's order, whatever order they were named in."""
    there = tuple(case.name for case in study.described)
    for name in cases or ():
        if name not in there:
            raise no_such_case(name, there)
    return _Wanted(
        tuple(kind for kind in KINDS if kind in kinds),
        resamples,
        study.plan.study.seed if seed is None else seed,
        tuple(name for name in there if cases is None or name in cases),
    )


def _refuse_unfinished(study: Study, name: str) -> None:
    """A study whose choices are not all made has nothing to be compared with yet."""
    choices = study.planned // len(study.plan.study.methods)
    if len(study.results) == study.planned and len(study.choices) == choices:
        return
    trials = f"{len(study.results)} of {count_of(study.planned, 'trial')}"
    raise RunFolderError(
        f"{name} is not finished: it has {trials} and {len(study.choices)} of {count_of(choices, 'choice')}. "
        f"Continue with rekka compare --resume {name} first.",
        run=name,
    )


def _open_files(folder: Path, study: Study, seed: int) -> DrawnInFiles:
    return DrawnInFiles(folder, _mark(folder, study), seed, tuple(case.name for case in study.described))


def _mark(folder: Path, study: Study) -> str:
    begun = read_provenance(folder)
    assert begun is not None  # the study was read with it
    return mark_run(study.plan, begun["data"]["rows_sha256"])


def _carry_out(
    study: Study, wanted: _Wanted, drawn: Drawn, crew: Crew | None, on_unit: OnUnit | None
) -> Stability:
    """Take up the draws that are there, make those that are missing, put all in order."""
    blocks = {block: drawn.take(block) for block in _list_blocks(study.plan, wanted)}
    units = [unit for block, there in blocks.items() if (unit := _find_missing(block, there, wanted)).draws]
    planned = len(study.plan.study.presets) * len(wanted.cases) * len(wanted.kinds) * wanted.resamples
    done = planned - sum(len(unit.draws) for unit in units)
    drawn.note(f"{count_of(planned, 'draw')} with seed {wanted.seed}, {done:,} kept")
    with closing(_refit(study, units, wanted.seed, crew)) as results:
        for unit, found in results:
            block = _block_of(unit)
            blocks[block] = pl.concat([blocks[block], found]).sort("draw", maintain_order=True)
            drawn.keep(block, blocks[block])
            done += len(unit.draws)
            if on_unit:
                on_unit(unit, done, planned)
    refits = pl.concat(list(blocks.values())).filter(pl.col("draw") < wanted.resamples)
    return Stability(study, wanted.kinds, wanted.resamples, wanted.seed, refits)


def _list_blocks(plan: StudyPlan, wanted: _Wanted) -> list[Block]:
    return [
        Block(preset, case, kind, first)
        for preset in plan.study.presets
        for case in wanted.cases
        for kind in wanted.kinds
        for first in range(0, wanted.resamples, BLOCK)
    ]


def _find_missing(block: Block, there: pl.DataFrame, wanted: _Wanted) -> Unit:
    """The draws of a block that are to be made."""
    numbers = range(block.first, min(block.first + BLOCK, wanted.resamples))
    made = set(there["draw"])
    return Unit(block.preset, block.case, block.kind, tuple(n for n in numbers if n not in made))


def _block_of(unit: Unit) -> Block:
    return Block(unit.preset, unit.case, unit.kind, unit.draws[0] // BLOCK * BLOCK)


def _refit(
    study: Study, units: Sequence[Unit], seed: int, crew: Crew | None
) -> Generator[tuple[Unit, pl.DataFrame]]:
    """The draws of the units, side by side or one after the other; rows are read only if something is missing."""
    if not units:
        return
    plan = study.plan
    case = open_cases(plan.study, study.read_rows())
    rows = {name: _without_golden(case(name)) for name in dict.fromkeys(unit.case for unit in units)}
    tasks = [(rows[unit.case], plan, unit, seed) for unit in units]
    if crew is not None:
        with closing(crew.carry_out(_refit_unit, tasks)) as results:
            yield from results
    else:
        for task in tasks:
            yield _refit_unit(*task)


def _without_golden(rows: CaseRows) -> CaseRows:
    """What is not there cannot be looked at."""
    return replace(rows, golden=rows.golden.clear())


def _refit_unit(rows: CaseRows, plan: StudyPlan, unit: Unit, seed: int) -> tuple[Unit, pl.DataFrame]:
    return unit, refit_draws(rows, plan, unit, seed)
