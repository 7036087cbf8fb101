"""The choice of what is to be done with a table; its progress; the list of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app.command_line import spell_commands, write_commands
from rekka.app.jobs import LOG, RESUMABLE, JobQueue
from rekka.app.memory import Memory
from rekka.app.pages import (
    explain_error,
    find_language,
    is_partial,
    redirect,
    render,
    show_moment,
    words_of,
)
from rekka.app.progress import Progress, read_progress
from rekka.app.workspace import Ask, Job, Run, StoredTable, Workspace
from rekka.core.errors import BadOption, RekkaError
from rekka.core.folders import digest, last_line
from rekka.core.language import LANGUAGES, Words, say
from rekka.core.ratings import Ratings

QUICK, THOROUGH = "quick", "thorough"
YEARS, MOST_YEARS = 30, 200
USUAL = ""  # the threshold that the scale makes usual
_RATINGS = Memory(16)


@dataclass(frozen=True)
class Choices:
    """Choices for a table: ``how`` is quick or thorough, ``threshold`` the label of a rating or USUAL."""

    how: str = QUICK
    threshold: str = USUAL
    years: int = YEARS
    lang: str = "en"

    @classmethod
    def read(cls, given: Mapping[str, object], lang: str, ratings: Ratings) -> Choices:
        """Choices of a form; what it does not have is the default."""
        text = {name: str(given.get(name, "")) for name in ("how", "threshold", "years", "lang")}
        years = text["years"].strip() or str(YEARS)
        whole = years.isascii() and years.isdecimal() and len(years) <= len(str(MOST_YEARS))
        if not (whole and 1 <= int(years) <= MOST_YEARS):
            raise BadOption(
                f"years is {years[:20]!r}; a whole number from 1 to {MOST_YEARS} is needed.", option="years"
            )
        if text["threshold"] != USUAL:
            ratings.choose_threshold(text["threshold"])
        return cls(
            how=THOROUGH if text["how"] == THOROUGH else QUICK,
            threshold=text["threshold"],
            years=int(years),
            lang=text["lang"] if text["lang"] in LANGUAGES else lang,
        )

    def ask(self, workspace: Workspace, table: StoredTable) -> Ask:
        """Options of a job with these choices."""
        thorough = self.how == THOROUGH
        return Ask(
            table=table.file.relative_to(workspace.folder).as_posix(),
            mapping=table.mapping,
            allow=table.draft.allow,
            nbi=table.draft.nbi,
            models="auto" if thorough else None,
            stability=thorough,
            threshold=self.threshold or None,
            years=None if self.years == YEARS else self.years,
            lang=self.lang,
        )


def find_ratings(table: StoredTable) -> Ratings:
    """Ratings of a table as it is read now; they are kept until its files or its draft change."""
    found: Ratings = _RATINGS.find(table.signature, lambda: _read_ratings(table))
    return found


def _read_ratings(table: StoredTable) -> Ratings:
    found = table.options.transitions(table.file)
    labels = () if found.reading is None else found.reading.labels or ()
    worst = found.frame.select(pl.max_horizontal("state_1", "state_2").max()).item()
    return Ratings.of(labels, max(worst or 1, len(labels)))


def list_thresholds(ratings: Ratings, words: Words) -> list[tuple[str, str]]:
    """Thresholds to choose from: label and name, the usual one first."""
    usual = ratings.or_worse(ratings.default_threshold, words)
    states = range(2, len(ratings.labels) + 1)
    return [(USUAL, words("app.plan.usual", rating=usual))] + [
        (ratings.labels[state - 1], ratings.or_worse(state, words)) for state in states
    ]


async def show_plan(request: Request) -> Response:
    """The page of choices; the command line follows them."""
    return await _render_plan(request, request.query_params)


async def _render_plan(
    request: Request, given: QueryParams | FormData, error: RekkaError | None = None
) -> Response:
    workspace, words = _workspace(request), words_of(request)
    table = workspace.table(request.path_params["table"])
    try:
        ratings = await run_in_threadpool(find_ratings, table)
    except RekkaError as cause:
        return render(request, "plan_error.html", 400, table=table, sentence=explain_error(cause, words))
    try:
        choices = Choices.read(given, find_language(request), ratings)
    except RekkaError as cause:
        error, choices = cause, Choices(lang=find_language(request))
    return render(
        request,
        "plan.html",
        200 if error is None else 400,
        block="command",
        table=table,
        choices=choices,
        thresholds=list_thresholds(ratings, words),
        years=YEARS,
        most_years=MOST_YEARS,
        command=write_commands(spell_commands(choices.ask(workspace, table), table.file, table.mapping_file)),
        notices=[] if error is None else [("bad", explain_error(error, words))],
    )


async def start_run(request: Request) -> Response:
    """Queue a run of a table."""
    workspace, form = _workspace(request), await request.form()
    if "show" in form:  # without a script the command line is asked for by a button
        return await _render_plan(request, form)
    table = workspace.table(request.path_params["table"])
    try:
        ratings = await run_in_threadpool(find_ratings, table)
        choices = Choices.read(form, find_language(request), ratings)
    except RekkaError as error:
        return await _render_plan(request, form, error)
    job = Job(name=table.draft.name, ask=choices.ask(workspace, table), table=table.id)
    run = await run_in_threadpool(_queue(request).add, job)
    return redirect(request, f"/runs/{run.id}")


async def start_demo(request: Request) -> Response:
    """Queue the demo, in the reader's language."""
    words = words_of(request)
    job = Job(name=words("app.plan.demo"), ask=Ask(lang=words.lang))
    run = await run_in_threadpool(_queue(request).add, job)
    return redirect(request, f"/runs/{run.id}")


# Progress


async def show_run(request: Request) -> Response:
    """The progress of a run, or its results."""
    run = _workspace(request).run(request.path_params["run"])
    if run.state == "done":
        return redirect(request, f"/runs/{run.id}/results")
    words, progress = words_of(request), read_progress(run.folder)
    seen = _mark(run, progress, words.lang)
    if is_partial(request) and request.query_params.get("seen") == seen:
        return Response(status_code=204)  # so that the page stays as it is where nothing has changed
    stage = describe_stage(progress, words) if run.state == "working" else None
    return render(
        request,
        "progress.html",
        block="progress",
        run=run,
        live=run.state in ("working", "waiting"),
        progress=progress,
        seen=seen,
        item=describe_item(progress, words),
        stage=stage,
        left=describe_left(progress, words) if stage else None,
        ahead=_queue(request).ahead(run) if run.state == "waiting" else 0,
        resumable=run.state in RESUMABLE and run.job.ask is not None,
        message=None if run.job.message is None else words.format(run.job.message),
        log=_read_log(run) if run.state == "failed" else None,
        command=spell_run(_workspace(request), run),
    )


def _mark(run: Run, progress: Progress | None, lang: str) -> str:
    """Digest of what a page shows of a run."""
    shown = (run.job.model_dump_json(), None if progress is None else progress.model_dump_json(), lang)
    return digest(repr(shown).encode())[:16]


def describe_stage(progress: Progress | None, words: Words) -> str:
    """The stage at hand and how much of it is done, in words."""
    if progress is None or not progress.stage:
        return words("app.progress.begins")
    name = words.get(f"app.stage.{progress.stage.replace(' ', '_').lower()}", progress.stage)
    if progress.total:
        done, total = f"{progress.done:,.0f}", f"{progress.total:,.0f}"
        return words("app.progress.of", stage=name, done=done, total=total)
    return words("app.progress.so_far", stage=name, done=f"{progress.done:,.0f}") if progress.done else name


def describe_item(progress: Progress | None, words: Words) -> list[str]:
    """Component at hand and its method or kind of resample, or a sentence, in words."""
    item = () if progress is None else progress.item
    first = [words.get(one, one) for one in item[:1]]
    return first + [words.get(f"figure.stability.way_{one}", words.method(one)) for one in item[1:]]


def describe_left(progress: Progress | None, words: Words) -> str | None:
    """The time that is left of a stage, in words; None where it cannot be told yet."""
    left = None if progress is None else progress.seconds_left
    if left is None:
        return None
    if left < 60:
        return words("app.progress.left_seconds", n=max(5 * round(left / 5), 5))
    if left < 5400:
        return words("app.progress.left_minutes", n=round(left / 60))
    return words("app.progress.left_hours", n=f"{left / 3600:.1f}")


def spell_run(workspace: Workspace, run: Run) -> str | None:
    """Commands that a run amounts to; None for a run folder that was opened."""
    if run.job.ask is None:
        return None
    ask = run.job.ask
    table = workspace.folder / (ask.table or "")
    return write_commands(spell_commands(ask, table, run.mapping_file))


def _read_log(run: Run) -> str | None:
    return last_line(run.folder / LOG)


async def cancel_run(request: Request) -> Response:
    """Cancel a run."""
    run = _workspace(request).run(request.path_params["run"])
    await run_in_threadpool(_queue(request).cancel, run.id)
    return redirect(request, f"/runs/{run.id}")


async def resume_run(request: Request) -> Response:
    """Queue a run again that was cancelled, stopped or failed."""
    run = _workspace(request).run(request.path_params["run"])
    await run_in_threadpool(_queue(request).resume, run.id)
    return redirect(request, f"/runs/{run.id}")


async def delete_run(request: Request) -> Response:
    """Delete a run; a run folder that the user put into the workspace is only taken off the list."""
    run = _workspace(request).run(request.path_params["run"])
    await run_in_threadpool(_queue(request).delete, run.id)
    said = "app.removed" if run.job.place else "app.deleted"
    return redirect(request, "/runs", said, name=run.job.name)


# Runs


async def show_runs(request: Request) -> Response:
    """All runs; two can be chosen to be compared."""
    runs, words = await run_in_threadpool(_workspace(request).runs), words_of(request)
    seen = digest(repr([(run.id, run.job.model_dump_json()) for run in runs]).encode())[:16]
    if is_partial(request) and request.query_params.get("seen") == seen:
        return Response(status_code=204)  # so that the keyboard stays where it is
    return render(
        request,
        "runs.html",
        block="list",
        runs=runs,
        seen=seen,
        describe=lambda run: describe_run(run, words),
        live=any(run.state in ("working", "waiting") for run in runs),
        resumable=[run.id for run in runs if run.state in RESUMABLE and run.job.ask is not None],
        comparable=[run for run in runs if run.state == "done"],
    )


def describe_run(run: Run, words: Words) -> str:
    """Describe what a run was asked for, and when, which other runs of the same table were not."""
    ask, parts = run.job.ask, []
    if ask is not None and ask.table is not None:
        parts.append(words("app.plan.thorough" if ask.models else "app.plan.quick"))
        parts += [words("app.runs.threshold", rating=ask.threshold)] if ask.threshold else []
        parts += [words.format(say("app.runs.years", n=ask.years))] if ask.years else []
    return " · ".join([*parts, show_moment(run.job.made)])


def _workspace(request: Request) -> Workspace:
    found: Workspace = request.app.state.workspace
    return found


def _queue(request: Request) -> JobQueue:
    found: JobQueue = request.app.state.queue
    return found


ROUTES = [
    Route("/tables/{table}/plan", show_plan),
    Route("/tables/{table}/plan", start_run, methods=["POST"]),
    Route("/demo", start_demo, methods=["POST"]),
    Route("/runs", show_runs),
    Route("/runs/{run}", show_run),
    Route("/runs/{run}/cancel", cancel_run, methods=["POST"]),
    Route("/runs/{run}/resume", resume_run, methods=["POST"]),
    Route("/runs/{run}/delete", delete_run, methods=["POST"]),
]
