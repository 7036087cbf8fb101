"""Where the seconds of a large fit go: each pass through the rows by what it is for, held in memory and streamed.

A fit of many rows goes through them again and again, and says what for. A source that does nothing but look at the
clock stands between the rows and the fit. One more pass, of a function that does nothing, says what reading and
checking the rows costs each of the others.

``python -m benchmarks.scale_passes WAY FOLDER WARM`` measures one way in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.scale_fits import HELD, N_STATES, ROOT, STREAMED, THREADS, open_source
from benchmarks.scaling import own_peak_megabytes
from rekka.model.fit import Options
from rekka.streaming.blocks import Block, Reading, Source
from rekka.streaming.fit import fit_source

WAYS = (HELD, STREAMED)


@dataclass(frozen=True)
class Pass:
    """All passes for one purpose: how many, their seconds, and those of all processors together."""

    stage: str
    passes: int
    seconds: float
    processor_seconds: float


@dataclass(frozen=True)
class Profile:
    """One fit by its passes; ``between`` is what is done between them, ``loading`` what comes before the first.

    ``optimizer`` is the solver's own seconds, part of those of the likelihood; ``nothing`` those of an idle pass;
    ``megabytes`` the peak of the process.
    """

    way: str
    rows: int
    seconds: float
    loading: float
    optimizer: float
    nothing: float
    megabytes: float
    passes: tuple[Pass, ...]

    @property
    def between(self) -> float:
        """Seconds outside loading and passes."""
        return self.seconds - self.loading - sum(one.seconds for one in self.passes)


class Timed:
    """A source with a clock on each pass. It changes as it is used: the fit names the stage before a pass."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.stage = ""
        self.passes: list[Pass] = []

    @property
    def reading(self) -> Reading:
        """Which columns are what."""
        return self.source.reading

    def begin(self, stage: str) -> None:
        """Remember what the next pass is for."""
        self.stage = stage

    def without_groups(self) -> Timed:
        """The same: no groups are read here."""
        return self

    def map(self, function: Callable[[Block], Any]) -> Iterator[Any]:
        """The results of the source, and the seconds until the last of them."""
        clock, processor = perf_counter(), process_time()
        stage = self.stage
        yield from self.source.map(function)
        self.passes.append(Pass(stage, 1, perf_counter() - clock, process_time() - processor))


def measure(way: str, folder: Path) -> Profile:
    """Fit the files in the folder, held or streamed."""
    clock = perf_counter()
    source = open_source(way, folder)
    loading = perf_counter() - clock
    timed = Timed(source)
    fitted = fit_source(
        timed, Options(threads=THREADS[way], clock="start"), n_states=N_STATES, on_pass=timed.begin
    )
    seconds = perf_counter() - clock
    clock = perf_counter()
    for _ in source.map(_do_nothing):
        pass
    nothing = perf_counter() - clock
    return Profile(
        way,
        fitted.n_rows,
        seconds,
        loading,
        fitted.outcome.seconds,
        nothing,
        own_peak_megabytes(),
        _add_up(timed.passes),
    )


def _do_nothing(block: Block) -> int:
    return len(block.dt)


def _add_up(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """By stage, in the order in which they began."""
    found: dict[str, Pass] = {}
    for one in passes:
        so_far = found.get(one.stage, Pass(one.stage, 0, 0.0, 0.0))
        found[one.stage] = Pass(
            one.stage,
            so_far.passes + 1,
            so_far.seconds + one.seconds,
            so_far.processor_seconds + one.processor_seconds,
        )
    return tuple(found.values())


def call(way: str, folder: Path, warm: Path) -> Profile:
    """The profile of one way, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale_passes", way, str(folder), str(warm)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    return Profile(**found | {"passes": tuple(Pass(**one) for one in found["passes"])})


def main() -> None:
    """The child."""
    way, folder, warm = sys.argv[1:]
    measure(way, Path(warm))  # loads what is compiled
    print(json.dumps(asdict(measure(way, Path(folder)))))


if __name__ == "__main__":
    main()
