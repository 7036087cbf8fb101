"""Stability of a study's choices under other rows, other splits and other starts of the solver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from joblib import cpu_count

from rekka.core.errors import BadOption, RunFolderError, bad_option, count_of, no_such_case
from rekka.core.folders import hold
from rekka.evaluation.scores import find_wilson
from rekka.study.case_rows import CaseRows
from rekka.study.compare import load_study
from rekka.study.draws import (
    KINDS,
    DrawBlock,
    DrawFiles,
    DrawStore,
    Unit,
    find_seeds,
    read_draws,
    refit_draws,
)
from rekka.study.explanations import explain_stability
from rekka.study.plan import StudyPlan
from rekka.study.run_folder import STABILITY_TABLES, load_plan, mark_run, read_provenance
from rekka.study.runner import Crew, engage, open_cases
from rekka.study.study import Study

LOW, HIGH = 0.05, 0.95  # quantiles: of 200 draws ten lie beyond each
HERE = ("preset", "case", "kind")


def _average(score: str) -> list[pl.Expr]:
    column = pl.col(score)
    return [column.mean().alias(f"{score}_mean"), column.std().alias(f"{score}_sd"), *_quantiles(score)]


def _quantiles(name: str) -> list[pl.Expr]:
    column = pl.col(name)
    ends = ((LOW, "low"), (HIGH, "high"))
    return [column.quantile(q, interpolation="linear").alias(f"{name}_{end}") for q, end in ends]


RESAMPLES = 200  # a share has a standard error of at most 3.5 % there
BLOCK = 25  # draws: seconds of work, so that little is lost by a stop, and no process waits long for the last

OnUnit = Callable[[Unit, int, int], None]  # what was done, how many draws are done, how many there are to be


@dataclass(frozen=True, eq=False)
class Stability:
    """Refits of a study's cases to other rows and from other starts, and what they say of its choices.

    ``refits`` has a row for each draw and method. Made by ``stability``.

    Examples
    --------
    >>> import rekka
    >>> found = rekka.stability("run", kinds=["bootstrap"], resamples=3, workers=1)
    >>> found.methods.select("method", "refits").rows()
    [('zscore', 3), ('minmax', 3)]

    """

    study: Study
    kinds: tuple[str, ...]
    resamples: int
    seed: int
    refits: pl.DataFrame

    @cached_property
    def methods(self) -> pl.DataFrame:
        """For each method in each case the share of certified refits, and means and quantiles of scores and cost.

        Scores are of the refits that could be scored, evaluations of those that ended. Low and high are 5 % and
        95 % quantiles; of ``certified`` the ends of its 95 % interval (Wilson).
        """
        found = self.refits.group_by(*HERE, "method", maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias("refits"),
            pl.col("certified").mean(),
            (pl.col("scored") > 0).sum().cast(pl.Int64).alias("scored"),
            *(part for score in ("accuracy", "log_loss") for part in _average(score)),
            pl.col("evaluations").median().alias("evaluations_median"),
            *_quantiles("evaluations"),
        )
        ends = [find_wilson(share, n) for share, n in found.select("certified", "refits").rows()]
        place = found.columns.index("certified") + 1
        for number, name in enumerate(("certified_low", "certified_high")):
            found.insert_column(place + number, pl.Series(name, [pair[number] for pair in ends]))
        return found

    @cached_property
    def statuses(self) -> pl.DataFrame:
        """Number of refits of each method in each case by what became of them."""
        counted = pl.len().cast(pl.Int64).alias("refits")
        return self.refits.group_by(*HERE, "method", "status", maintain_order=True).agg(counted)

    @cached_property
    def selection(self) -> pl.DataFrame:
        """Shares of the draws in which each method is chosen, and kept, of those that had rows to score.

        ``none`` is the share in which nothing is chosen; ``in_study`` marks what the study itself chose. Where no
        draw had rows to score, shares are missing.
        """
        scorable = pl.col("held_out") > 0
        found = self.refits.group_by(*HERE, "method", maintain_order=True).agg(
            *(pl.col(name).filter(scorable).mean() for name in ("chosen", "kept")),
            pl.col("chosen").filter(scorable).sum().alias("times"),
            scorable.sum().cast(pl.Int64).alias("draws"),
        )
        none = (pl.col("draws") - pl.col("times").sum().over(HERE)) / pl.col("draws")
        chosen = {(choice.preset, choice.case, choice.chosen) for choice in self.study.choices}
        in_study = [key in chosen for key in found.select("preset", "case", "method").rows()]
        return found.with_columns(
            pl.when(pl.col("draws") > 0).then(none).alias("none"),
            pl.Series("in_study", in_study, dtype=pl.Boolean),
        ).select(*HERE, "method", "chosen", "kept", "none", "draws", "in_study")

    @cached_property
    def cases(self) -> pl.DataFrame:
        """Size of each case; ``exploratory`` says why it is too small to conclude from, where it is."""
        here = [case for case in self.study.described if case.name in self.refits["case"]]
        lines = [(one.name, one.train, one.bridges, one.events_per_parameter, one.exploratory) for one in here]
        counts = dict.fromkeys(("train", "bridges"), pl.Int64)
        types: dict[str, Any] = {"case": pl.String, **counts, "events_per_parameter": pl.Float64}
        found = pl.DataFrame(lines, schema=types | {"exploratory": pl.String}, orient="row")
        return found.with_columns(pl.col("events_per_parameter").fill_nan(None))

    def remarks(self) -> tuple[str, ...]:
        """Sentences on what to look at, the gravest first."""
        return explain_stability(self.study.plan, self.study.choices, self.refits, self.cases)

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables, by name."""
        return {name: getattr(self, name) for name in STABILITY_TABLES}

    def __repr__(self) -> str:
        refits, cases = count_of(len(self.refits), "refit"), count_of(self.refits["case"].n_unique(), "case")
        return f"<Stability: {refits} of {cases}: {', '.join(self.kinds)}>"


class _Wanted(NamedTuple):
    """Checked options of a call."""

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

    Golden rows are not used. In a run folder every draw is kept: a call that was stopped continues, and one with
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

    Examples
    --------
    >>> import rekka
    >>> found = rekka.stability("run", kinds=["seeds"], resamples=2, workers=1)
    >>> found.selection.select("case", "method", "chosen").rows()[0]
    ('all', 'zscore', 1.0)

    """
    alone = cpu_count() if cluster is None else 1
    engaged = engage(alone if workers is None else workers, cluster)
    _check(kinds, resamples, seed, cases)
    if isinstance(study, Study):
        _refuse_unfinished(study, "RUN")
        wanted = _settle(study, kinds, resamples, seed, cases)
        with engaged as crew:
            return _carry_out(study, wanted, DrawStore(), crew, on_unit)
    folder = Path(study).absolute()
    load_plan(folder)  # refuses what is no run folder, before it is held
    with engaged as crew, hold(folder):
        found = load_study(folder)
        _refuse_unfinished(found, folder.name)
        wanted = _settle(found, kinds, resamples, seed, cases)
        names = tuple(case.name for case in found.described)
        drawn = DrawFiles(folder, _mark(folder, found), wanted.seed, names)
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


def _mark(folder: Path, study: Study) -> str:
    begun = read_provenance(folder)
    assert begun is not None  # the study was read with it
    return mark_run(study.plan, begun["data"]["rows_sha256"])


def _carry_out(
    study: Study, wanted: _Wanted, drawn: DrawStore, crew: Crew | None, on_unit: OnUnit | None
) -> Stability:
    """Take up the draws that are there, make those that are missing, put all in order."""
    blocks = {block: drawn.take(block) for block in _list_blocks(study.plan, wanted)}
    missing = {
        unit: block for block, there in blocks.items() if (unit := _find_missing(block, there, wanted)).draws
    }
    planned = len(study.plan.study.presets) * len(wanted.cases) * len(wanted.kinds) * wanted.resamples
    done = planned - sum(len(unit.draws) for unit in missing)
    drawn.note(f"{count_of(planned, 'draw')} with seed {wanted.seed}, {done:,} kept")
    with closing(_refit(study, list(missing), wanted.seed, crew)) as results:
        for unit, found in results:
            block = missing[unit]
            blocks[block] = pl.concat([blocks[block], found]).sort("draw", maintain_order=True)
            drawn.keep(block, blocks[block])
            done += len(unit.draws)
            if on_unit:
                on_unit(unit, done, planned)
    refits = pl.concat(list(blocks.values())).filter(pl.col("draw") < wanted.resamples)
    return Stability(study, wanted.kinds, wanted.resamples, wanted.seed, refits)


def _list_blocks(plan: StudyPlan, wanted: _Wanted) -> list[DrawBlock]:
    return [
        DrawBlock(preset, case, kind, first)
        for preset in plan.study.presets
        for case in wanted.cases
        for kind in wanted.kinds
        for first in range(0, wanted.resamples, BLOCK)
    ]


def _find_missing(block: DrawBlock, there: pl.DataFrame, wanted: _Wanted) -> Unit:
    """The draws of a block that are to be made."""
    numbers = range(block.first, min(block.first + BLOCK, wanted.resamples))
    made = set(there["draw"])
    return Unit(block.preset, block.case, block.kind, tuple(n for n in numbers if n not in made))


def _refit(
    study: Study, units: Sequence[Unit], seed: int, crew: Crew | None
) -> Generator[tuple[Unit, pl.DataFrame]]:
    """The draws of the units, side by side or one after the other; rows are read only if something is missing."""
    if not units:
        return
    plan = study.plan
    case = open_cases(plan.study, study.read_rows().in_memory())
    rows = {name: case(name).without_golden() for name in dict.fromkeys(unit.case for unit in units)}
    tasks = [(rows[unit.case], plan, unit, seed) for unit in units]
    if crew is not None:
        with closing(crew.carry_out(_refit_unit, tasks)) as results:
            yield from results
    else:
        for task in tasks:
            yield _refit_unit(*task)


def _refit_unit(rows: CaseRows, plan: StudyPlan, unit: Unit, seed: int) -> tuple[Unit, pl.DataFrame]:
    return unit, refit_draws(rows, plan, unit, seed)
