"""Backtests of a run: what ``rekka backtest TABLE --out RUN/backtest`` or a choice of models left there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rekka.core.errors import DamagedFile
from rekka.fleet.backtest_scores import ALL, MODEL, PAIRS, SAME
from rekka.fleet.rolling import PLAIN
from rekka.report.document import BacktestPart, BacktestYear
from rekka.study.elements import FOLDER

FILE = "backtest.json"
SCORE = "rps"
Rows = Sequence[Mapping[str, Any]]


def load_backtests(run: Path | None, used: Mapping[str, str] | None = None) -> tuple[BacktestPart, ...]:
    """Backtests of each component in a run folder; none where nobody made any.

    ``used`` are the elements of histories of the models that forecast, by component; others have the plain model.
    """
    file = None if run is None else run / FOLDER / FILE
    if file is None or not file.is_file():
        return ()
    try:
        found = json.loads(file.read_bytes())
        return tuple(_describe(case, found, (used or {}).get(case["case"], PLAIN)) for case in found["cases"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"{FOLDER}/{FILE} is no backtest of rekka ({error}). Make it again with rekka backtest, or delete it.",
            file=str(file),
        ) from None


def _describe(case: Mapping[str, Any], found: Mapping[str, Any], used: str) -> BacktestPart:
    name = case["case"]
    scores = [row for row in found["scores"] if row["case"] == name and row["by"] == ALL and row["score"] == SCORE]
    ours, theirs = _find(scores, MODEL, None), _find(scores, SAME, None)
    less = _find(scores, MODEL, SAME)
    of_this = (case.get("model") or PLAIN) == used
    plain = {} if of_this or used != PLAIN else _find(scores, PAIRS, SAME)
    horizons = [row["group"] for row in found["scores"] if row["case"] == name and row["by"] == "horizon"]
    return BacktestPart(
        case=name,
        until=found["until"],
        model=case.get("model"),
        of_this=of_this,
        certified=bool(case["certified"]),
        visits=case["visits"],
        bridges=ours.get("bridges") or 0,
        horizon=max(horizons, default=None),
        score=ours.get("mean"),
        no_change_score=theirs.get("mean"),
        difference=less.get("mean"),
        low=less.get("low"),
        high=less.get("high"),
        threshold=case["threshold"] or 1,
        years=tuple(_list_years(name, case["threshold"], found["totals"])),
        reason=case["reason"],
        used_score=_find(scores, PAIRS, None).get("mean") if plain else None,
        used_low=plain.get("low"),
        used_high=plain.get("high"),
    )


def _find(rows: Rows, forecaster: str, less: str | None) -> Mapping[str, Any]:
    """The row of a score, or of a difference; empty where there is none."""
    return next((row for row in rows if (row["forecaster"], row["less"]) == (forecaster, less)), {})


def _list_years(case: str, threshold: int | None, totals: Rows) -> Iterator[BacktestYear]:
    """Found and expected at the threshold or worse, by year."""
    for row in totals:
        own = row["case"] == case and row["by"] == "year" and row["or_worse"] and row["state"] == threshold
        if own:
            yield BacktestYear(
                year=row["group"],
                **{name: row[name] for name in BacktestYear.model_fields if name != "year"},
            )
