"""Progress of a run, in a file beside its run folder: written by the worker, read by the server."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rekka.core.files import write_text

PROGRESS = "progress.json"
EVERY = 0.3  # seconds between two writings; a new stage is written at once
LEAST = 0.02  # share of a stage that must be done before the time left is estimated

Step = Literal["draw", "study", "stability", "forecast", "report"]
Outcome = Literal["", "done", "stopped", "failed"]


def now() -> datetime:
    """The present moment, with the offset of this machine's clock."""
    return datetime.now().astimezone()


class Progress(BaseModel):
    """Step and stage at hand, and how much of the stage is done; ``outcome`` is how the worker ended.

    ``item`` is a component with the method, or the kind of resample, or the key of a sentence.

    ``since`` is when the stage began, with ``base`` done already, such as the trials that a stopped run had kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: tuple[Step, ...] = ()
    step: Step = "study"
    stage: str = ""
    item: tuple[str, ...] = ()
    done: float = 0
    total: float | None = None
    since: datetime
    base: float = 0
    at: datetime
    outcome: Outcome = ""
    message: str = ""
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """Share of the stage that is done; None where its size is not known."""
        return min(self.done / self.total, 1.0) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end of the stage at the rate so far; None where it cannot be told yet."""
        if not self.total or self.done - self.base < LEAST * self.total:
            return None
        spent = (self.at - self.since).total_seconds()
        return spent * (self.total - self.done) / (self.done - self.base)


def write_progress(folder: Path, progress: Progress) -> None:
    """Keep the progress of a run; it need not outlive a power cut."""
    write_text(folder / PROGRESS, progress.model_dump_json() + "\n", flush=False)


def read_progress(folder: Path) -> Progress | None:
    """The progress of a run; None where there is none, or none that can be read."""
    try:
        return Progress.model_validate_json((folder / PROGRESS).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
