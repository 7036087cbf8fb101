"""Compare methods (Algorithm 1): make a plan of what is asked for, carry it out, resume it, confirm its choices.

For every component and method: fit, time, score. Every trial is kept as soon as it is done, so that a run can be
stopped at any moment and resumed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from rekka.core.errors import BadOption, InputError, RunFolderError, count_of
from rekka.core.folders import LOG, hold
from rekka.core.machine import describe_command
from rekka.data.direction import read_allowed
from rekka.data.partition import PAPER_SEED, Partition
from rekka.data.tables import is_folder
from rekka.data.transitions import ReadingOptions, read_options
from rekka.evaluation.calibration import MOST_TESTED
from rekka.model.serial import load_model
from rekka.scaling.registry import BEYOND, METHODS
from rekka.streaming.blocks import read_memory
from rekka.study.case_rows import CaseRows
from rekka.study.choice import Choice
from rekka.study.confirmation import Candidate, list_seen, look
from rekka.study.elements import OnModel, Source, check_source, choose_elements, open_source, refuse_split
from rekka.study.ladder import list_rung_keys
from rekka.study.plan import (
    GUARDED,
    PLAIN,
    SHRINKING,
    StudyPlan,
    TrialPlan,
    default_clock,
    fit_once,
    make_plan,
    read_plan,
)
from rekka.study.provenance import (
    describe_data,
    describe_run,
    describe_tables,
    differ_from,
    read_reading,
    refuse_other_plan,
    take_up,
)
from rekka.study.rows import PARTITION, StudyRows, open_rows
from rekka.study.run_folder import (
    PROVENANCE,
    Files,
    RunRecords,
    add_line,
    begin_run,
    keep_rows,
    load_plan,
    make_folders,
    mark_run,
    open_kept_rows,
    read_elements,
    read_provenance,
    refuse_occupied,
    tidy,
    withdraw_run,
    write_elements,
    write_tables,
)
from rekka.study.runner import (
    Crew,
    OnChoice,
    OnRows,
    OnTrial,
    RunOptions,
    carry_out,
    choose,
    engage,
    list_keys,
    open_cases,
)
from rekka.study.study import Study, check_model
from rekka.study.trial import Key

BOTH = ("paper", "exact")
DEFAULT = RunOptions()


def compare(
    data: Any = None,
    mapping: Any = None,
    *,
    methods: Sequence[str] = METHODS,
    preset: str | Sequence[str] = "exact",
    clock: str | None = None,
    cases: Sequence[str] | None = None,
    covariates: Sequence[str] | None = None,
    models: str | Sequence[str] | None = None,
    partition: str = "auto",
    until: Any = None,
    partition_seed: int = PAPER_SEED,
    rule: str = GUARDED,
    select_on: str = "auto",
    guard: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    confirm: bool = True,
    cost: str = "auto",
    seed: int = PAPER_SEED,
    repeats: int = 1,
    workers: int = 1,
    cluster: Any = None,
    memory: Any = None,
    out: str | Path | None = None,
    on_trial: OnTrial | None = None,
    on_choice: OnChoice | None = None,
    on_rows: OnRows | None = None,
    on_model: OnModel | None = None,
) -> Study:
    """Compare methods: every case by every method, fitted, timed, scored; one chosen, and confirmed once.

    Parameters
    ----------
    data : path, dataframe, Transitions, Partition or None
        Inspections or transitions; None draws the built-in inventory. Transitions in Parquet, a file or a folder,
        or in a polars LazyFrame may be more than memory holds.
    mapping : path, dict or ReadingOptions, optional
        How to read a table that needs it; see ``read_panel``.
    methods : sequence of str
        Scaling operators, such as "zscore" or "boxcox+zscore"; "ridge" and "pooled" for small cases.
    preset : "exact", "paper", "both", or a sequence of the first two
        Newton on the exact likelihood, or the paper's conditions.
    clock : "middle" or "start", optional
        Where in an interval ages are taken; by default at the middle for "exact" alone, and at the start, as in
        the paper, for all presets of a study that has "paper".
    cases, covariates : sequence of str, optional
        Only these; all by default.
    models : "auto" or list of str, optional
        After the study, choose the elements of histories (errors of inspection, small repairs, trend, ...) of each
        component by forecasts from days inside the records, and test the choice once on the last years, as
        ``backtest`` does: ``study.elements``. ``forecast_inventory`` of the run then uses them.
    partition : "auto", "paper", "bridge" or "date"
        Which rows train and which are golden; a ``Partition`` as ``data`` is split already.
    until : date, optional
        Last day of training, for "date".
    partition_seed, seed : int
        Of the split, and of the start of L-BFGS-B, which is the same in every fit.
    rule : "guarded" or "pareto"
        How to choose: the default method unless another, certified and stable, is shown to have a lower log loss;
        or the paper's rule over accuracy and cost.
    select_on : "auto", "validation", "folds" or "golden"
        What methods are judged on. Auto: validation rows, folds by bridge where they are few; golden rows for
        "pareto", as in the paper, which then cannot confirm the choice.
    guard : dict, optional
        Margins of the guarded rule: default, certified, accuracy_margin, confidence, resamples, stable_share; and
        ladder, whether simpler models are tried where it ends in nothing.
    allow : sequence of str
        Codes of checks that do not stop the work: "R109", more moves go up than down.
    confirm : bool
        Whether to look at the golden rows, once, with what was chosen.
    cost : "auto", "seconds" or "evaluations"
        What the selection weighs against accuracy; auto takes seconds for "paper", evaluations for "exact".
    repeats : int
        Timings of each trial, one after the other; ``seconds`` is their median.
    workers : int
        Processes that fit side by side. Timings are then taken afterwards, one trial at a time.
    cluster : str or distributed.Client, optional
        Where to fit instead: the address of a Dask scheduler, such as "tcp://host:8786"; "local" or "local:4" for
        processes of a cluster on this machine. Timings are taken here afterwards.
    memory : str or int, optional
        How much memory may be used, such as "1GB"; half of what is free by default. Cases of very many rows
        stream in blocks, from memory where they fit well within it, otherwise from the disk.
    out : path, optional
        A run folder: every trial is kept there as soon as it is done.
    on_trial : callable, optional
        Called with each trial that is done, the number done and the number there are.
    on_choice : callable, optional
        The same for each case's choice.
    on_model : callable, optional
        With ``models``, called with the model that is fitted, how many were, and 0.
    on_rows : callable, optional
        Called with the rows where they are too many to be held whole; ``tell_memory()`` says how they are read.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(400, n_states=3, seed=1)
    >>> study = rekka.compare(rows, methods=["zscore", "minmax"], guard={"resamples": 0}, confirm=False)
    >>> study.selection.select("case", "chosen").rows()
    [('all', 'zscore')]

    """
    asked = locals()
    if "log_loss_margin" in (guard or {}):  # plans of earlier versions have it
        raise BadOption(
            "guard.log_loss_margin is not an option any more: since 0.10.0 a method replaces the default only "
            "where its log loss is shown to be lower. Leave it out.",
            option="log_loss_margin",
        )
    if models is not None:
        refuse_split(data)
    presets = BOTH if preset == "both" else (preset,) if isinstance(preset, str) else preset
    described, given = describe_data(data, mapping, None if out is None else Path(out))
    study = {name: asked[name] for name in TrialPlan.model_fields if name in asked} | {"presets": presets}
    for name, option in (("methods", "methods"), ("presets", "preset"), ("cases", "cases"), ("covariates",) * 2):
        study[name] = _list_names(option, study[name])
    plan = make_plan(
        data=described | {"allow": tuple(dict.fromkeys((*described.get("allow", ()), *read_allowed(allow))))},
        partition={
            "scheme": "given" if isinstance(data, Partition) else partition,
            "until": until,
            "seed": partition_seed,
        },
        study=study,
        guard=dict(guard or {}),
    )
    how = RunOptions(**{one.name: asked[one.name] for one in fields(RunOptions)})
    every = None if plan.data.kind == "tables" or data is None else (data, read_options(mapping))
    return run_plan(plan, given, how, out=out, every=every)


def run_plan(
    plan: StudyPlan,
    data: Any = None,
    how: RunOptions = DEFAULT,
    *,
    base: Path | None = None,
    out: str | Path | None = None,
    every: Source | None = None,
) -> Study:
    """Carry out a plan in a new run folder or in memory; relative paths start at the folder, or at ``base``.

    ``every`` are all visits, for the choice of elements, where a program has given them.
    """
    limit = read_memory(how.memory)
    if out is None:
        with engage(how.workers, how.cluster) as crew:
            rows = open_rows(plan, data, base or Path(), limit, workers=how.workers)
            _check_elements(plan, every, base or Path())
            study = _finish(fit_once(plan, rows.covariates), rows, RunRecords(), crew, how)
            return add_elements(study, every, base or Path(), how)
    folder = Path(out).absolute()
    refuse_occupied(folder)
    made = not folder.exists()
    with engage(how.workers, how.cluster) as crew, hold(folder):
        refuse_occupied(folder)  # again, now that nobody else can begin
        begin_run(folder, plan)
        try:
            rows = open_rows(plan, data, folder, limit, file=folder / PARTITION, workers=how.workers)
            _check_elements(plan, every, folder)
        except InputError:
            withdraw_run(folder, made=made)
            raise
        keep_rows(folder, rows, describe_run(plan, rows, folder))
        used = _read_methods(folder, plan)
        files = _open_files(folder, plan, used, rows.cases, rows.digest())
        files.note(f"begun: {describe_command()}; {count_of(len(rows), 'row')}: {rows.scheme}")
        return add_elements(_finish(used, rows, files, crew, how), every, folder, how)


def resume_study(out: str | Path, data: Any = None, *, expected: StudyPlan | None = None, **options: Any) -> Study:
    """Resume a run that was stopped or killed.

    The plan and the rows are those in the folder. Where the source is still there, or ``data`` is given, it must
    give the same rows; ``expected``, a plan, must be the folder's. ``options`` are workers, cluster, memory,
    on_trial, on_choice and on_rows, as for ``compare``.

    Examples
    --------
    >>> import rekka
    >>> rekka.resume_study("run")  # nothing is missing: nothing is fitted
    <Study: 2 of 2 trials, 1 cases>

    """
    folder, how = Path(out).absolute(), RunOptions(**options)
    limit = read_memory(how.memory)
    with engage(how.workers, how.cluster) as crew, _hold_run(folder) as plan:
        if expected is not None:
            refuse_other_plan(folder, plan, expected)
        tidy(folder)
        rows = take_up(folder, plan, data, memory=limit, workers=how.workers)
        make_folders(folder)
        used = _read_methods(folder, plan)
        files = _open_files(folder, plan, used, rows.cases, rows.digest())
        files.note(f"resumed: {describe_command()}; {count_of(len(files.trials), 'trial')} kept")
        again = (f"recomputed: {name} is not whole, or not of this run" for name in files.damaged)
        for line in (*again, *differ_from(read_provenance(folder) or {})):
            files.note(line)
        every = None if data is None else (data, None)
        return add_elements(_finish(used, rows, files, crew, how), every, folder, how)


def _check_elements(plan: StudyPlan, every: Source | None, base: Path) -> None:
    if plan.study.models is not None:
        check_source(open_source(plan, every, base))


def add_elements(study: Study, every: Source | None, base: Path, how: RunOptions) -> Study:
    """Add the elements of histories to a study that asks for them; a run folder keeps what was chosen."""
    if study.plan.study.models is None or study.elements:
        return study
    source = open_source(study.plan, every, base)
    found = choose_elements(study.plan, source, study.folder, how.on_model)
    if study.folder is not None:
        write_elements(study.folder, found)
        add_line(study.folder / LOG, f"elements chosen for {count_of(len(found), 'component')}")
    return replace(study, elements=found)


@contextmanager
def _hold_run(folder: Path) -> Iterator[StudyPlan]:
    """The plan of a run folder, from which other processes are kept out."""
    plan = load_plan(folder)
    with hold(folder):
        yield plan


def load_study(out: str | Path) -> Study:
    """Read the study in a run folder, as far as it has got; nothing is written.

    Examples
    --------
    >>> import rekka
    >>> rekka.load_study("run").selection.select("case", "chosen").rows()
    [('all', 'zscore')]

    """
    folder = Path(out).absolute()
    plan = load_plan(folder)
    begun = read_provenance(folder)
    if begun is None:
        raise RunFolderError(
            f"{folder.name} was stopped before its first trial. Continue with "
            f"rekka compare --resume {folder.name}."
        )
    refuse_other_plan(folder, make_plan(PROVENANCE, **begun["plan"]), plan)
    data = begun["data"]
    cases = list(dict.fromkeys(case for case, *_ in data["rows"]))
    used = _read_methods(folder, plan)
    files = _open_files(folder, plan, used, cases, data["rows_sha256"])

    def read_rows() -> StudyRows:
        return open_kept_rows(folder, begun, plan, read_memory(None), trusted=True)

    return _gather(used, files, list_keys(used.study, cases), read_rows, begun)


def _list_names(option: str, names: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(names, str):
        raise BadOption(f"{option} is the text {names!r}; a list of names is needed, such as [{names!r}].")
    return None if names is None else tuple(names)


def _read_methods(folder: Path, plan: StudyPlan) -> StudyPlan:
    """The plan with the methods that the run is carried out with: one alone, where there are no covariates."""
    begun = read_provenance(folder) or {}
    return fit_once(plan, ()) if begun.get("methods") == [PLAIN] else plan


def _open_files(folder: Path, plan: StudyPlan, used: StudyPlan, cases: Sequence[str], rows_sha256: str) -> Files:
    keys, rungs = list_keys(used.study, cases), list_rung_keys(used, cases)
    files = Files(folder, keys, mark_run(plan, rows_sha256), rungs)
    files.load()
    return files


def _finish(plan: StudyPlan, rows: StudyRows, records: RunRecords, crew: Crew | None, how: RunOptions) -> Study:
    """Carry out what is missing; choose; confirm; gather all; write the tables where there is a folder."""
    if rows.streamed:
        records.note(rows.tell_memory())
        if how.on_rows:
            how.on_rows(rows)
    keys = list_keys(plan.study, rows.cases)
    case = open_cases(plan.study, rows)
    pooled = cache(partial(open_cases, plan.study, rows, pool=True))
    try:
        carry_out(plan.study, case, keys, records, crew, how.on_trial)
        test = partial(_test_choice, plan, rows, records)
        choose(plan, case, keys, records, crew, how.on_choice, test, lambda name: pooled()(name))
        _restore_tests(records)
        if not records.looks and (plan.study.confirm or plan.study.judges_on == "golden"):
            confirm_choices(plan, case, records)
        study = _gather(plan, records, keys, rows)
        _write(study, records)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the disk may be full
            records.note(f"stopped: {type(error).__name__} {error}".rstrip())
        raise
    records.note(f"done: {count_of(len(keys), 'trial')}; tables written")
    return study


def _test_choice(plan: StudyPlan, rows: StudyRows, records: RunRecords, choice: Choice) -> Choice:
    """Test the chosen model on its training rows; its file and the choice keep the result.

    Not where there are more than 50 components, nor where rows are too many to be held: ``rekka checks`` says so.
    """
    if choice.chosen is None or rows.streamed or len(plan.study.cases or rows.cases) > MOST_TESTED:
        return choice
    fitted = records.fitted(choice.key)
    test = check_model(rows, choice.case, fitted.model or "", seed=plan.study.seed)
    if test is None:
        return choice
    records.add_trial(fitted.with_test(test))
    return choice.model_copy(update={"fit_test": test})


def _restore_tests(records: RunRecords) -> None:
    """Put tests of fit back into chosen models that were fitted again after their choice was made."""
    for choice in records.choices.values():
        if choice.fit_test is not None:
            fitted = records.fitted(choice.key)
            tested = fitted.with_test(choice.fit_test)
            if tested.model != fitted.model:
                records.add_trial(tested)


def _write(study: Study, records: RunRecords) -> None:
    if isinstance(records, Files):
        write_tables(records.path, study.tables(), study.documents())


def confirm_choices(
    plan: StudyPlan, case: Callable[[str], CaseRows], records: RunRecords, *, force: bool = False
) -> None:
    """Look at the golden rows, with what was chosen."""
    candidates = [
        Candidate(choice, case(choice.case), load_model(records.fitted(choice.key).model or "")[0])
        for choice in records.choices.values()
        if choice.chosen is not None
    ]
    seen = list_seen(records.earlier_looks())
    taken = look(candidates, seen, plan.guard.confidence, plan.study.seed, force=force)
    records.add_look(taken)
    refused = f"; {len(taken.refused)} refused" if taken.refused else ""
    forced = ", forced" if force else ""
    records.note(f"looked at the confirmation rows{forced}: {count_of(len(taken.results), 'choice')}{refused}")


def confirm(out: str | Path, *, force: bool = False) -> Study:
    """Look at the golden rows of a run with what was chosen: once.

    A run that has looked already is refused, unless ``force``: then it looks again, and the result is marked.

    Examples
    --------
    >>> import rekka
    >>> rekka.confirm("run").confirmation.select("case", "method", "rows").rows()
    [('all', 'zscore', 84)]

    """
    folder = Path(out).absolute()
    with _hold_run(folder) as plan:
        rows = take_up(folder, plan, memory=read_memory(None))
        plan, asked = _read_methods(folder, plan), plan
        files = _open_files(folder, asked, plan, rows.cases, rows.digest())
        keys = list_keys(plan.study, rows.cases)
        missing = {(key.preset, key.case) for key in keys} - files.choices.keys()
        if missing:
            raise RunFolderError(
                f"{folder.name} is not finished: {count_of(len(missing), 'choice')} not made yet. "
                f"Continue with rekka compare --resume {folder.name}.",
                folder=str(folder),
            )
        if any(one.counts for one in files.looks) and not force:
            raise RunFolderError(
                f"{folder.name} has looked at its confirmation rows already, on {files.looks[0].made[:10]}. A "
                "second look is no confirmation. With --force it is taken nevertheless, and marked.",
                folder=str(folder),
            )
        confirm_choices(plan, open_cases(plan.study, rows), files, force=force)
        study = _gather(plan, files, keys, rows)
        _write(study, files)
        return study


def _gather(
    plan: StudyPlan,
    records: RunRecords,
    keys: Sequence[Key],
    rows: StudyRows | Callable[[], StudyRows],
    begun: Mapping[str, Any] | None = None,
) -> Study:
    """Gather the study in the order of its plan, whatever order the trials came in.

    A choice among trials of which one is gone, its file damaged since, is left out until the run is resumed.
    """
    folder = records.path if isinstance(records, Files) else None
    begun = read_provenance(folder) if begun is None and folder is not None else begun
    if isinstance(rows, StudyRows):
        scheme, notes, reading, read_rows = rows.scheme, rows.notes, rows.reading, lambda: rows
    else:
        assert begun is not None  # rows that are yet to be read lie in a run folder
        scheme, notes, reading, read_rows = begun["data"]["scheme"], begun["data"]["notes"], None, rows
    names = [name for name in dict.fromkeys(key.case for key in keys) if name in records.cases]
    pairs = dict.fromkeys((key.preset, key.case) for key in keys)
    rungs = [key for choice in records.choices.values() for key in choice.rung_keys]
    lacking = {(key.preset, key.case) for key in (*keys, *rungs) if key not in records.trials}
    return Study(
        plan=plan,
        scheme=scheme,
        planned=len(keys),
        results=tuple(records.trials[key] for key in keys if key in records.trials and key.case in records.cases),
        described=tuple(records.cases[name] for name in names),
        choices=tuple(records.choices[pair] for pair in pairs if pair in records.choices and pair not in lacking),
        looks=tuple(records.looks),
        read_fitted=records.fitted,
        read_rows=read_rows,
        notes=tuple(notes),
        folder=folder,
        rungs=tuple(records.trials[key] for key in rungs if key in records.trials),
        reading=reading if begun is None or folder is None else read_reading(begun, folder),
        elements=() if folder is None else read_elements(folder),
    )


GROUPS = {"paper": METHODS, "beyond": BEYOND, "small": SHRINKING, "all": (*METHODS, *BEYOND, *SHRINKING)}


class Request(NamedTuple):
    """``tables``: files, one study file, or none for the built-in inventory. ``options``: what was given of
    [partition] and [study]; what was not is the plan's own, or the default.
    """  # noqa: D205

    tables: Sequence[Path] = ()
    reading: ReadingOptions = ReadingOptions()
    options: Mapping[str, Mapping[str, Any]] = {}


def begin_study(request: Request, out: Path, how: RunOptions = DEFAULT) -> Study:
    """Run a new study in a new run folder."""
    base, read = _study_file(request), request.reading
    if base is None:
        plan = make_plan(data=_describe(request, out), **_translate(request.options))
        return run_plan(plan, how=how, out=out)
    if read.mapping or read.changes or read.nbi:
        raise BadOption(
            f"{base.name} says itself how its tables are read; options that say it again are not applied. "
            "Change its [data], or give the tables instead of it."
        )
    plan = move_plan(read_plan(base), base.parent, out)
    return run_plan(_change(plan, request), how=how, out=out)


def continue_study(request: Request, out: Path, how: RunOptions = DEFAULT) -> Study:
    """Go on with a run; what is asked for besides must be what the run already does."""
    expected = _change(load_plan(out), request)
    if request.tables:
        expected = make_plan(**expected.model_dump() | {"data": _describe(request, out)})
    return resume_study(out, expected=expected, **vars(how))


def move_plan(plan: StudyPlan, before: Path, after: Path) -> StudyPlan:
    """Return the plan with its paths counted from another folder."""
    if plan.data.kind != "tables":
        return plan
    joins = [dict(join) | {"file": str(before / join["file"])} for join in plan.data.mapping.get("join", [])]
    mapping = plan.data.mapping | ({"join": joins} if joins else {})
    how = ReadingOptions(mapping, nbi=plan.data.nbi, allow=plan.data.allow)
    data = describe_tables([before / one for one in plan.data.source], how, after)
    return make_plan(**plan.model_dump() | {"data": data})


def _study_file(request: Request) -> Path | None:
    if len(request.tables) != 1 or is_folder(request.tables[0]):
        return None
    return request.tables[0] if request.tables[0].suffix.lower() == ".toml" else None


def _describe(request: Request, out: Path) -> dict[str, Any]:
    if not request.tables:
        return {"kind": "inventory", "seed": PAPER_SEED}
    return describe_tables(request.tables, request.reading, out)


def _change(plan: StudyPlan, request: Request) -> StudyPlan:
    changed = plan.model_dump()
    changed["data"]["allow"] = tuple(dict.fromkeys((*plan.data.allow, *request.reading.allow)))
    for section, values in _translate(request.options).items():
        if "paper" in values.get("presets", ()) and "paper" not in plan.study.presets:
            changed["study"]["clock"] = default_clock(values["presets"])  # the paper's; otherwise the plan's own
        changed[section] = changed[section] | values
    return make_plan(**changed)


def _translate(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options with groups of methods and presets spelled out."""
    found = {section: dict(values) for section, values in options.items() if values}
    study = found.get("study", {})
    if "methods" in study:
        study["methods"] = tuple(dict.fromkeys(m for name in study["methods"] for m in GROUPS.get(name, (name,))))
    if "presets" in study:
        study["presets"] = tuple(p for name in study["presets"] for p in (BOTH if name == "both" else (name,)))
    return found
