"""Carry a plan out: fit what is missing, alone or side by side; time, one trial after the other; choose."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Event, Thread, current_thread, main_thread
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from rekka.core.errors import BadOption
from rekka.evaluation.pooling import pool_cases
from rekka.streaming.cluster.clients import connect
from rekka.streaming.cluster.source import CarryOut, recruit
from rekka.study.case_rows import CaseRows
from rekka.study.choice import Choice, Contest, choose_case
from rekka.study.elements import OnModel
from rekka.study.ladder import LADDER, climb, needs_ladder
from rekka.study.plan import POOLED, StudyPlan, TrialPlan
from rekka.study.rows import StudyRows
from rekka.study.run_folder import RunRecords
from rekka.study.trial import Fitted, Key, Trial, describe_case, run_trial, time_trial

Result = TypeVar("Result")
OnChoice = Callable[[Choice, int, int], None]
OnTrial = Callable[[Trial, int, int], None]  # the trial, how many are done, how many there are
OnRows = Callable[[StudyRows], None]  # of rows that are too many to be held whole, when they are split and checked
LOOK_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class RunOptions:
    """Options of how a study is carried out; ``compare`` documents each."""

    workers: int = 1
    cluster: Any = None
    memory: Any = None
    on_trial: OnTrial | None = None
    on_choice: OnChoice | None = None
    on_rows: OnRows | None = None
    on_model: OnModel | None = None


@dataclass(frozen=True)
class Crew:
    """Whoever carries tasks out side by side: processes here, or a cluster, which is ``far``."""

    carry_out: CarryOut
    far: bool = False

    def takes(self, rows: CaseRows) -> bool:
        """Whether rows can be sent: a cluster need not see the run folder, in which rows that stream lie."""
        return not (self.far and rows.streamed)


@contextmanager
def engage(workers: int = 1, cluster: Any = None) -> Iterator[Crew | None]:
    """A crew of so many processes, or a cluster; None where one task follows the other."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise BadOption(f"workers is {workers!r}; a whole number of at least 1 is needed.", workers=workers)
    if cluster is None:
        yield Crew(partial(side_by_side, workers=workers)) if workers > 1 else None
        return
    if workers > 1:
        raise BadOption(
            f"workers is {workers} and cluster is {cluster!r}; give one of them: processes here, or a cluster.",
            workers=workers,
        )
    with connect(cluster) as session:
        yield Crew(recruit(session), far=True)


def list_keys(plan: TrialPlan, cases: Sequence[str]) -> list[Key]:
    """The trials there are to be, in order: case by case, preset by preset, method by method."""
    return [
        Key(case=case, preset=preset, method=method)
        for case in plan.cases or cases
        for preset in plan.presets
        for method in plan.methods
    ]


def open_cases(plan: TrialPlan, rows: StudyRows, *, pool: bool = False) -> Callable[[str], CaseRows]:
    """The rows of each case, read once, with the study's clock; those of the others too, where a method pools.

    ``pool`` asks for these whatever the methods are, if they can be held.
    """
    case = cache(lambda name: replace(rows.case(name, plan.judges_on), clock=plan.clock))
    if POOLED not in plan.methods and (not pool or rows.streamed):
        return case
    trained = (name for name in rows.cases if rows.count(name)["train"])
    samples = {name: case(name).training for name in trained if case(name).n_states > 1}
    pooling = pool_cases(samples, clock=plan.clock) if len(samples) > 1 else None

    def with_others(name: str) -> CaseRows:
        return replace(case(name), others={n: s for n, s in samples.items() if n != name}, pooling=pooling)

    return cache(with_others)


def carry_out(
    plan: TrialPlan,
    case: Callable[[str], CaseRows],
    keys: Sequence[Key],
    records: RunRecords,
    crew: Crew | None = None,
    on_trial: OnTrial | None = None,
) -> None:
    """Do what is not done yet; keep each trial as soon as it is. Trials are timed only while nothing else runs."""
    for name in dict.fromkeys(key.case for key in keys):
        if name not in records.cases:
            records.add_case(describe_case(case(name), plan.seed))

    def keep(fitted: Fitted) -> None:
        records.add_trial(fitted)
        if fitted.trial.timed:
            done = sum(key in records.trials and records.trials[key].timed for key in keys)
            records.note(f"{done} of {len(keys)}: {fitted.trial.key}: {fitted.trial.status}")
            if on_trial:
                on_trial(fitted.trial, done, len(keys))

    missing = [key for key in keys if key not in records.trials]
    away = [key for key in missing if crew is not None and crew.takes(case(key.case))]
    if crew is not None and away:
        with closing(crew.carry_out(_fit_untimed, [(case(key.case), key, plan.seed) for key in away])) as fits:
            for fitted in fits:
                keep(fitted)
    for key in missing:
        if key not in records.trials:
            keep(_fit_and_time(case(key.case), key, plan))
    for key in keys:
        if not records.trials[key].timed:
            seconds = time_trial(case(key.case), key, plan.seed, plan.repeats)
            keep(records.fitted(key).with_seconds(seconds))


def choose(
    plan: StudyPlan,
    case: Callable[[str], CaseRows],
    keys: Sequence[Key],
    records: RunRecords,
    crew: Crew | None = None,
    on_choice: OnChoice | None = None,
    test: Callable[[Choice], Choice] = lambda choice: choice,
    pooled: Callable[[str], CaseRows] | None = None,
) -> None:
    """Apply the rule to each case under each preset, where that is not done yet; ``test`` what is chosen.

    Where the rule ends in nothing the ladder is tried, with rows from ``pooled``, which have the other cases' too.
    """
    pairs = list(dict.fromkeys((key.preset, key.case) for key in keys))
    missing = [pair for pair in pairs if pair not in records.choices]
    tasks = [_contest(plan, case(name), preset, records) for preset, name in missing]

    def keep(choice: Choice) -> None:
        records.add_choice(test(choice))
        records.note(f"chosen: {choice.case} ({choice.preset}): {choice.chosen or 'none'}")
        if on_choice:
            on_choice(choice, len(records.choices), len(pairs))

    without = []
    with closing(_side_by_side_or_here(_choose, tasks, crew)) as choices:
        for choice in choices:
            if pooled is not None and needs_ladder(plan, choice):
                without.append(choice)
            else:
                keep(choice)
    if pooled is not None:
        _climb_all(plan, pooled, without, records, crew, keep)
        rungs = [key for choice in records.choices.values() for key in choice.rung_keys]
        carry_out(plan.study, pooled, rungs, records, crew)  # damaged ones again; untimed ones are timed
    for pair in pairs:  # in the order of the plan, in which they are confirmed, whatever order they came in
        records.choices[pair] = records.choices.pop(pair)


def _climb_all(
    plan: StudyPlan,
    pooled: Callable[[str], CaseRows],
    choices: Sequence[Choice],
    records: RunRecords,
    crew: Crew | None,
    keep: Callable[[Choice], None],
) -> None:
    """Try the ladder for the choices that came to nothing; its trials are kept before the choice is."""
    tasks: list[tuple[Any, ...]] = []
    for choice in choices:
        keys = {one: Key(case=choice.case, preset=choice.preset, method=one) for one in LADDER}
        there = {one: records.fitted(key) for one, key in keys.items() if key in records.trials}
        tasks.append((pooled(choice.case), plan, choice, there, crew is None))
    with closing(_side_by_side_or_here(climb, tasks, crew)) as found:
        for choice, made in found:
            for fitted in made:
                records.add_trial(fitted)
            keep(choice)


def _contest(plan: StudyPlan, rows: CaseRows, preset: str, records: RunRecords) -> tuple[Any, ...]:
    """The rows of a case, and what else there is to know for a contest under a preset."""
    keys = {method: Key(case=rows.name, preset=preset, method=method) for method in plan.study.methods}
    trials = {method: records.trials[key] for method, key in keys.items()}
    models = {method: records.fitted(keys[method]).model for method, trial in trials.items() if trial.converged}
    return rows, preset, plan.study, plan.guard, trials, models


def _side_by_side_or_here(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], crew: Crew | None
) -> Generator[Result]:
    """The results of tasks whose rows, their first part, the crew takes, as they come; then the others, here."""
    away = [task for task in tasks if crew is not None and crew.takes(task[0])]
    if crew is not None and away:
        with closing(crew.carry_out(function, away)) as results:
            yield from results
    for task in tasks:
        if crew is None or not crew.takes(task[0]):
            yield function(*task)


def _choose(rows: CaseRows, *more: Any) -> Choice:
    return choose_case(Contest(rows, *more))


def _fit_and_time(rows: CaseRows, key: Key, plan: TrialPlan) -> Fitted:
    """A trial by itself: its fit is the first timing."""
    fitted = run_trial(rows, key, plan.seed)
    if fitted.trial.outcome is None or plan.repeats == 1:
        return fitted
    again = time_trial(rows, key, plan.seed, plan.repeats - 1)
    return fitted.with_seconds((*fitted.trial.seconds, *again))


def side_by_side(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Generator[Result]:
    """Results as they come out of so many processes, in any order; no process is left when this ends."""
    mine = {"initializer": _end_with, "initargs": (os.getpid(),), "max_nbytes": None}
    workers = min(workers, len(tasks)) or 1
    parallel = Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered", batch_size=1, **mine)
    with _ignore_interrupts():
        results = parallel(delayed(function)(*task) for task in tasks)
    try:
        for result in results:  # noqa: UP028 (yield from would close it, warnings and all, before we can)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that some were not waited for
            results.close()
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C while processes are started, for some hundredths of a second.

    They then ignore it for good, and do not print where it met them; this process ends them. Only a main thread
    can do so.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _fit_untimed(rows: CaseRows, key: Key, seed: int) -> Fitted:
    """A trial on one thread whose clock is not read: others run beside it."""
    return run_trial(rows, key, seed, threads=1).with_seconds(())


def _end_with(parent: int) -> None:
    """Have this process end when its parent has: one that was killed cannot see to it."""

    def watch() -> None:
        while os.getppid() == parent:
            Event().wait(LOOK_EVERY)
        os._exit(1)

    if os.name == "posix":  # elsewhere a process keeps the number of a parent that is gone
        Thread(target=watch, daemon=True).start()
