"""Elements of histories that a study chooses for each component (``compare(models=)``), and their test.

The choice is made by rolling origins inside the training years (``fleet/rolling.py``) and scored once on the
visits after them, as ``backtest`` does. A model that is shown to be worse there is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadOption
from rekka.core.folders import locate
from rekka.data.panel import read_panel
from rekka.data.partition import Partition
from rekka.data.transitions import ReadingOptions
from rekka.fleet.backtest import Backtest, backtest, refuse_dateless
from rekka.fleet.backtest_rows import read_records
from rekka.fleet.histories import ANY_ELEMENT, NO_HISTORIES
from rekka.fleet.rolling import PLAIN
from rekka.simulation.inventory import simulate_inventory
from rekka.study.plan import StudyPlan
from rekka.study.rows import read_how
from rekka.study.trial import Value

FOLDER = "backtest"  # of a run folder
OnModel = Callable[[str, int, int], None]


class ElementChoice(Value):
    """Model of histories chosen for a component, or the plain one.

    ``gain`` is the share by which it lowers the ranked probability score of forecasts up to ``years`` years ahead
    against the plain model, with its 95 % interval, on the visits that the choice was made on. ``confirmed`` says
    whether it is shown to be better on later visits; None where these cannot tell, False where it is shown to be
    worse. ``reason`` says why nothing could be compared.
    """

    case: str
    model: str
    confirmed: bool | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    years: float | None = None
    visits: int = 0
    origins: int = 0
    reason: str | None = None
    summary: str = ""

    @property
    def used(self) -> bool:
        """Whether forecasts use it in place of the plain model."""
        return self.model != PLAIN and self.confirmed is not False


def refuse_split(data: Any) -> None:
    """Refuse rows that are split already: a choice needs all visits."""
    if isinstance(data, Partition):
        raise BadOption(
            "models needs all visits of each member, and a Partition has lost the improvements. Give the "
            "inspections instead.",
            option="models",
        )


Source = tuple[Any, ReadingOptions | None]  # a table, and how it is read


def open_source(plan: StudyPlan, given: Source | None, base: Path) -> Source:
    """Table of all visits, of a program or as the plan names it, and how it is read."""
    if given is not None:
        return given
    if plan.data.kind == "inventory":
        drawn = simulate_inventory() if plan.data.seed is None else simulate_inventory(seed=plan.data.seed)
        return read_panel(drawn.inspections, join=[{"file": drawn.inventory}, {"file": drawn.traffic}]), None
    if plan.data.kind == "given":
        raise BadOption(
            "models needs all visits of each member, and those of this study came from a program. Give them "
            "again: rekka.resume_study(RUN, data).",
            option="models",
        )
    return [locate(base, source) for source in plan.data.source], read_how(plan.data, base)


def check_source(source: Source) -> None:
    """Refuse, before the study, a table whose models cannot be compared: without histories or dates."""
    frame = read_records(*source, NO_HISTORIES, "keep_all").found.frame
    ANY_ELEMENT.check_columns(frame.columns)
    refuse_dateless(frame)


def choose_elements(
    plan: StudyPlan, source: Source, folder: Path | None, on_model: OnModel | None
) -> tuple[ElementChoice, ...]:
    """Choose and test the elements of each component."""
    found = backtest(
        source[0],
        models=plan.study.models,
        until=plan.partition.until,
        cases=plan.study.cases,
        covariates=plan.study.covariates,
        seed=plan.study.seed,
        allow=plan.data.allow,
        reading=source[1],
        test_fit=False,
        out=None if folder is None else folder / FOLDER,
        on_progress=on_model,
    )
    return tuple(_describe(found, place) for place in range(len(found.choices)))


def _describe(found: Backtest, place: int) -> ElementChoice:
    """Choice of a component, with what its backtest says of it."""
    choice = found.choices[place]
    result = found.cases.row(by_predicate=pl.col("case") == choice.case, named=True)
    counts = choice.tried.select(pl.max("visits"), pl.max("origins")).row(0)
    gains = dict.fromkeys(("gain", "low", "high"))
    if choice.difference is not None:
        ends = choice.difference.mean, choice.difference.high, choice.difference.low
        gains = dict(zip(gains, (-one / choice.plain_rps for one in ends), strict=True))
    return ElementChoice(
        case=choice.case,
        model=choice.name,
        confirmed=result["confirmed"],
        years=choice.years if choice.reason is None else None,
        visits=counts[0] or 0,
        origins=counts[1] or 0,
        reason=choice.reason,
        summary=result["summary"],
        **gains,
    )
