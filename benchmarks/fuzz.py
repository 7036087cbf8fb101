"""Damaged tables through the commands: ``python -m benchmarks.fuzz``.

Every table (``fuzz_tables.py``) goes through check, transitions, fit and forecast in this process, one in ten
through compare too, with options that are sometimes odd and with model files that are sometimes damaged. A command
fails if it raises, does not end within a minute, ends with another exit code than 0, 1 or 2, shows a traceback or
an escape sequence of the table, or prints JSON that is none. A failure is stored with its table; seed and number
repeat it:

    python -m benchmarks.fuzz --seed 1 --only 217
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

import rekka
from benchmarks import configuration
from benchmarks.fuzz_tables import TEXTS, Rng, Sample, damage_bytes, make_sample, pick
from rekka.cli import app

RESULT = Path(__file__).with_name("results") / "fuzz.json"
TABLES, SEED = 5000, 20260924
COMPARED = 10  # one table in so many
SECONDS = 60  # a command may take
GOOD = (0, 1, 2)
REACHED = 0.5  # the share of the tables that must reach a fit


def split_options(text: str) -> tuple[tuple[str, ...], ...]:
    """Options as a shell takes them, with slashes between."""
    return tuple(tuple(shlex.split(part)) for part in text.split(" / "))


READING = split_options(
    "--bands 60,75,85 / --bands 85,75,60 / --bands 85,85 / --bands nan,1 / --bands '' / --labels a,b,c"
    " / --labels a,a / --labels , / --labels 4,3,2,1 / --best 1 / --best 9 --worst 0 / --best 3 --worst 3"
    " / --best -5 --worst 99999 / --worst-first / --not-inspected 0,N / --not-inspected 1"
    " / --dates dmy / --dates %Q / --dates year / --dates era / --dates ''"
    " / --upward restart / --upward error / --same-day error / --max-gap 0"
    " / --max-gap nan / --max-gap -3 / --missing error / --outside error / --separator ';' / --separator tab"
    " / --separator ab / --decimal , / --decimal x / --sheet nobody / --header-row 0 / --header-row 3"
    " / --header-row 999 / --encoding cp932 / --encoding latin-1 / --encoding klingon / --bridge nobody"
    " / --covariate traffic / --covariate rating / --keep rating / --repair year_built / --wide {year} / --wide {"
    " / --wide {visit} / --completed date / --case bridge_id / --state date / --nbi / --join missing.csv"
)
OWN = {
    "check": split_options(
        "--all / --json / --partition paper / --partition none / --partition bridge / --partition odd"
        " / --partition date --until 2005-01-01 / --partition date / --seed -1"
        " / --partition date --until 0000-00-00"
    ),
    "transitions": split_options(
        "--json / --partition bridge / --partition paper / --out out.parquet / --out out.xlsx / --out out.txt"
        " / --out out"
    ),
    "fit": split_options(
        "--json / --all / --only nobody / --use nobody / --use age_at_inspection_1 / --use '' / --use state_1"
        " / --scaling boxcox / --scaling boxcox+zscore / --scaling robust / --scaling log / --scaling nonsense"
        " / --scaling '' / --ridge 1 / --ridge nan / --ridge inf / --ridge 1e300 / --unit traffic_mean=0"
        " / --unit traffic_mean=nan / --unit nobody=2 / --unit = / --bootstrap 3 / --memory 1KB / --memory -1"
        " / --threads 1 / --out one.json"
    ),
    "forecast": split_options(
        "--json / --years 1 / --years 200 / --years 0 / --years -3 / --years 100000 / --threshold 2"
        " / --threshold 99 / --threshold 0 / --from 2030-01-01 / --from 0001-01-01"
        " / --from 9999-12-31 / --from yesterday"
        " / --age fixed / --age held / --age odd / --advance nobody / --intervals none / --top 0"
        " / --intervals normal --draws 20 / --intervals bootstrap / --intervals odd / --level 0 / --level 1"
        " / --level nan / --only Deck / --only nobody / --format xlsx / --format parquet / --format odd"
        " / --member-intervals"
    ),
    "compare": split_options(
        "--json / --methods zscore,boxcox / --methods ridge,pooled / --preset both / --partition paper"
        " / --partition bridge / --rule pareto / --select-on folds / --only Deck / --use ''"
    ),
}


class Hang(BaseException):
    """A command that does not end. No ``except Exception`` of the code under test may take it."""


@dataclass(frozen=True)
class Failure:
    """What went wrong, where, and how to see it again."""

    seed: int
    number: int
    command: str
    arguments: tuple[str, ...]
    made: tuple[str, ...]
    what: str
    where: str


@dataclass
class Tally:
    """What became of all tables."""

    tables: int = 0
    reached: int = 0  # tables of which rows came to a fit
    codes: dict[str, Counter[int]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    warned: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """The share of the tables that reached a fit."""
        return self.reached / max(self.tables, 1)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what is wrong with that."""

    code: int
    what: str = ""
    where: str = ""


def call(arguments: Sequence[str], tally: Tally) -> Ended:
    """A command in this process, judged."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with watchdog():
                done = CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments))
        except Hang:
            return Ended(-1, f"no end within {SECONDS} s", traceback.format_exc())
    tally.warned.update(f"{Path(one.filename).name}:{one.lineno} {one.message}" for one in warned)
    shown = done.stdout + done.stderr
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return Ended(done.exit_code, describe(done.exception), "".join(traceback.format_exception(done.exception)))
    if done.exit_code not in GOOD:
        return Ended(done.exit_code, f"exit code {done.exit_code}", shown)
    if "Traceback (most recent call last)" in shown:
        return Ended(done.exit_code, "a traceback is shown", shown)
    if "\x1b" in shown:
        return Ended(done.exit_code, "an escape sequence of the table is shown", shown)
    if "--json" in arguments and done.exit_code == 0 and not is_json(done.stdout):
        return Ended(done.exit_code, "the JSON cannot be read", done.stdout)
    return Ended(done.exit_code)


def describe(error: BaseException) -> str:
    """The kind of an exception and the last place of ours that it passed."""
    own = Path(rekka.__file__).parent
    places = [one for one in traceback.extract_tb(error.__traceback__) if own in Path(one.filename).parents]
    where = f" at {Path(places[-1].filename).name}:{places[-1].lineno}" if places else ""
    return f"{type(error).__name__}{where}: {str(error)[:160]}"


def is_json(text: str) -> bool:
    """Whether it is JSON, without NaN and infinities, which are none."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


@contextmanager
def watchdog() -> Iterator[None]:
    """Raise in a command that does not end; end the process if compiled code does not let that through."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(3 * SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


@contextmanager
def counted_fits() -> Iterator[list[int]]:
    """While this lasts, the fits that are begun are counted."""
    model, begun = rekka.ExponentialHazardMarkovModel, [0]
    plain = model.fit

    def fit(self: Any, *given: Any, **options: Any) -> Any:
        begun[0] += 1
        return plain(self, *given, **options)

    model.fit = fit
    try:
        yield begun
    finally:
        model.fit = plain


def run_table(seed: int, number: int, folder: Path, models: Path, tally: Tally, *, compared: bool) -> None:
    """One table through the commands; ``models`` is a folder of models for tables that give none."""
    sample = make_sample(seed, number, folder)
    rng = np.random.default_rng([seed, number, 1])
    reading = [*sample.options, *(pick(rng, READING) if rng.random() < 0.15 else ())]
    table, own = str(sample.path), folder / "models"
    tally.tables += 1
    with counted_fits() as begun:
        for command, given in (
            ("check", [table]),
            ("transitions", [table, "--out", str(folder / "out.csv")]),
            ("fit", [table, "--out", str(own)]),
        ):
            judge(seed, sample, number, command, [*given, *reading, *choose_own(rng, command, folder)], tally)
    tally.reached += begun[0] > 0
    chosen = damage_models(rng, own if own.is_dir() and rng.random() < 0.8 else models, folder)
    given = [str(chosen), table, "--years", "5", "--out", str(folder / "forecast"), *reading]
    judge(seed, sample, number, "forecast", [*given, *choose_own(rng, "forecast", folder)], tally)
    if compared:
        given = [
            table,
            "--resamples",
            "2",
            "--methods",
            "zscore",
            "--no-report",
            "--out",
            str(folder / "run"),
            *reading,
        ]
        judge(seed, sample, number, "compare", [*given, *choose_own(rng, "compare", folder)], tally)


def choose_own(rng: Rng, command: str, folder: Path) -> list[str]:
    """An option of the command, or none; files go to the folder."""
    if rng.random() > 0.35:
        return []
    chosen = pick(rng, OWN[command])
    return [
        str(folder / word) if before == "--out" else word
        for before, word in zip(("", *chosen), chosen, strict=False)
    ]


def damage_models(rng: Rng, models: Path, folder: Path) -> Path:
    """The models as they are, one of them, or one of them damaged."""
    files = sorted(models.glob("*.json"))
    if not files or rng.random() < 0.7:
        return models
    text = pick(rng, files).read_bytes()
    damaged = folder / "model.json"
    if rng.random() < 0.5:
        text, _ = damage_bytes(rng, text)
    elif rng.random() < 0.8:
        text = json.dumps(damage_value(rng, json.loads(text)), ensure_ascii=False).encode()
    damaged.write_bytes(text)
    return damaged


def damage_value(rng: Rng, value: Any) -> Any:
    """JSON with one value deep inside replaced, or gone."""
    if isinstance(value, dict) and value:
        key = pick(rng, sorted(value))
        if rng.random() < 0.1:
            return {name: kept for name, kept in value.items() if name != key}
        return value | {key: damage_value(rng, value[key])}
    if isinstance(value, list) and value:
        place = int(rng.integers(len(value)))
        kept = value[:place] + value[place + 1 :]
        return (
            kept if rng.random() < 0.1 else [*value[:place], damage_value(rng, value[place]), *value[place + 1 :]]
        )
    return pick(rng, (None, 0, -1, 1e308, -1e308, 2**70, float("inf"), float("nan"), True, "", [], {}, *TEXTS))


def judge(seed: int, sample: Sample, number: int, command: str, arguments: Sequence[str], tally: Tally) -> None:
    """Run a command and count how it ended."""
    ended = call([command, *arguments], tally)
    tally.codes.setdefault(command, Counter())[ended.code] += 1
    if ended.what:
        failure = Failure(seed, number, command, tuple(arguments), sample.made, ended.what, ended.where)
        tally.failures.append(failure)


def store(failure: Failure, table: Path, kept: Path) -> None:
    """The table of a failure, and what is known of it."""
    kept.mkdir(parents=True, exist_ok=True)
    name = f"{failure.seed}-{failure.number}-{failure.command}"
    shutil.copy(table, kept / f"{name}{table.suffix}")
    (kept / f"{name}.txt").write_text(
        f"{failure.what}\n{' '.join(failure.made)}\n{failure.arguments}\n\n{failure.where}", encoding="utf-8"
    )


def fit_models(folder: Path) -> Path:
    """Models to forecast with where a table gives none."""
    table = rekka.simulate_transitions(200, n_states=4, seed=SEED).drop("bridge_length", "bridge_area")
    path = folder / "plain.csv"
    table.with_columns(
        case=rekka.simulate_transitions(200)["state_1"].replace_strict({1: "Deck"}, default="Pier")
    ).write_csv(path)
    done = CliRunner().invoke(app, ["fit", str(path), "--bootstrap", "2", "--out", str(folder / "models")])
    assert done.exit_code in GOOD, done.output
    return folder / "models"


def run(
    numbers: Sequence[int], seed: int, *, compared: int = COMPARED, kept: Path | None = None,
    console: Console | None = None,
) -> Tally:  # fmt: skip
    """The tables of these numbers; one in ``compared`` goes through compare, 0 for none."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as place:
        models = fit_models(Path(place))
        for number in numbers:
            folder = Path(place) / str(number)
            folder.mkdir()
            known = len(tally.failures)
            run_table(seed, number, folder, models, tally, compared=compared > 0 and number % compared == 0)
            for failure in tally.failures[known:]:
                if kept is not None:
                    store(failure, next(folder.glob("table-*")), kept)
                if console is not None:
                    console.print(f"{number} {failure.command}: {failure.what}", highlight=False, markup=False)
            shutil.rmtree(folder)
    return tally


def run_side_by_side(tables: int, seed: int, workers: int, kept: Path) -> Tally:
    """All tables, dealt out to so many processes."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # tables are small: more threads only wait for each other
    dealt = [range(first, tables, workers) for first in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(run, seed=seed, kept=kept), dealt))
    whole = Tally()
    for tally in found:
        whole.tables += tally.tables
        whole.reached += tally.reached
        whole.failures += tally.failures
        whole.warned += tally.warned
        for command, codes in tally.codes.items():
            whole.codes[command] = whole.codes.get(command, Counter()) + codes
    return whole


def print_tally(tally: Tally, console: Console) -> None:
    """How each command ended."""
    codes = sorted({code for counter in tally.codes.values() for code in counter})
    table = Table("command", title=f"{tally.tables:,} damaged tables, {tally.share:.0%} of which reached a fit")
    for code in codes:
        table.add_column(f"exit code {code}", justify="right")
    for command, counter in tally.codes.items():
        table.add_row(command, *(f"{counter[code]:,}" for code in codes))
    console.print(table)
    for words, count in Counter(failure.what.partition(": ")[0] for failure in tally.failures).most_common():
        console.print(f"{count:>6,}  {words}", highlight=False, markup=False)
    for words, count in tally.warned.most_common(10):
        console.print(f"{count:>6,}  warning: {words}", highlight=False, markup=False, style="dim")
    console.print(f"{len(tally.failures):,} failures", highlight=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, store; exit with 1 if a command failed or too few tables reached a fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="the table of this number alone; nothing is stored in results")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--failures", type=Path, default=Path(tempfile.gettempdir()) / "rekka-fuzz")
    options = parser.parse_args(arguments)
    console, setting = Console(), configuration.describe(with_msm=False)
    if options.only is None:
        tally = run_side_by_side(options.tables, options.seed, options.workers, options.failures)
    else:
        tally = run([options.only], options.seed, kept=options.failures, console=console)
    print_tally(tally, console)
    if tally.failures:
        console.print(f"tables and tracebacks: {options.failures}", highlight=False)
    if options.only is None and options.tables >= TABLES:
        result = {
            "configuration": setting | {"seed": options.seed},
            "tables": tally.tables,
            "reached_a_fit": tally.share,
            "exit_codes": {
                command: {str(code): n for code, n in sorted(c.items())} for command, c in tally.codes.items()
            },
            "failures": [asdict(failure) | {"where": ""} for failure in tally.failures],
        }
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if tally.failures or (options.only is None and tally.share < REACHED):
        sys.exit(1)


if __name__ == "__main__":
    main()
