"""Forecasts of Ontario's bridges that come true? ``python -m benchmarks.ontario``.

The model is chosen and fitted on the visits of 2000 to 2008 (``rekka.backtest(models="auto", until=2008)``) and
forecasts every visit of 2009 to 2013 that no recorded repair precedes. Nothing is chosen on those years; every look
at them is written into the log of ``results/ontario.json``, with what was looked at. ``--inner`` compares the models
within 2000 to 2008 alone and looks at nothing later. Covariates: age and the logarithm of the length.

Two sets of visits are scored: all, and those before an unrecorded improvement by two ratings or more. Totals of
ratings 4 or worse are judged by whether the number found lies in the 95 % interval, year by year, and by the
interval score (Gneiting and Raftery 2007, lower is better), without and with the band of shared shocks.

R's msm fits the errors alone once beside it (``ontario_msm.R``), for the time. ``--page`` writes the section of
docs/forecasting.md from the stored run. Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console

import rekka
from benchmarks import configuration, rival_msm
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import BANDS, CONDITIONS_FILE, ONTARIO_FOLDER
from benchmarks.reproduction_words import put_section, table, wrap
from rekka.data.transitions import Transitions
from rekka.evaluation.scores import mean_interval

RESULT = Path(__file__).with_name("results") / "ontario.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "forecasting.md"
SCRIPT = Path(__file__).with_name("ontario_msm.R")
CUT = Path(__file__).resolve().parents[2] / "shared" / "reference" / "ontario_cut.csv"
SECTION = "ontario"
UNTIL = 2008
THRESHOLD = 4
COVARIATES = ("age_at_inspection_1", "log_length")
BEFORE, EVERY = "before an unrecorded improvement by two ratings or more", "all"
AIMS = {BEFORE: 0.20, EVERY: 0.23}  # of the ranked probability score
Stored = Mapping[str, Any]


def read_records() -> Transitions | None:
    """Ontario's transitions with improvements of any size; None if the data are absent."""
    if not (ONTARIO_FOLDER / CONDITIONS_FILE).exists():
        return None
    panel = rekka.read_panel(
        ONTARIO_FOLDER / CONDITIONS_FILE,
        columns={
            "bridge": "ID",
            "completed": "YEAR BUILT",
            "length": "DECK LENGTH",
            "repairs": ["LAST MAJOR REHAB", "LAST MINOR REHAB"],
        },
        state={"bands": list(BANDS), "missing": [0]},
    )
    found = rekka.pair_visits(panel, upward="keep_all")
    frame = found.frame.with_columns(log_length=pl.col("bridge_length").log())
    return Transitions(frame, COVARIATES, found.audit, found.scale, found.notes, found.reading)


def forecast(records: Transitions, models: str, until: int, **more: Any) -> tuple[rekka.Backtest, float]:
    """Backtest, and the processor seconds it took."""
    clock = process_time()
    found = rekka.backtest(records, models=models, until=until, threshold=THRESHOLD, test_fit=False, **more)
    return found, process_time() - clock


def split_visits(forecasts: pl.DataFrame) -> dict[str, np.ndarray]:
    """Mask of the visits of each set, in the order of the table."""
    keys = ["bridge_id", "origin_date"]
    before = pl.col("observed").shift().over(keys, order_by="date").fill_null(pl.col("state"))
    far = forecasts.select((pl.col("observed") < before - 1).cum_max().over(keys, order_by="date")).to_series()
    return {EVERY: np.ones(len(far), dtype=bool), BEFORE: ~far.to_numpy()}


def score_visits(forecasts: pl.DataFrame) -> pl.DataFrame:
    """Ranked probability scores of the model and of no change, visit by visit."""
    p = forecasts.select(pl.col("^p_\\d+$")).to_numpy()
    end, start = (forecasts[name].to_numpy()[:, None] for name in ("observed", "state"))
    states = np.arange(1, p.shape[1] + 1)
    scores = {"model": p.cumsum(axis=1), "no change": (start <= states).astype(float)}
    return forecasts.select("bridge_id").with_columns(
        pl.Series(name, np.square(below - (end <= states)).sum(axis=1)) for name, below in scores.items()
    )


def describe_scores(forecasts: pl.DataFrame) -> dict[str, Any]:
    """Means of both sets, with the interval of the difference by bridge."""
    scores, found = score_visits(forecasts), {}
    for name, mask in split_visits(forecasts).items():
        some = scores.filter(pl.Series(mask))
        less = mean_interval((some["model"] - some["no change"]).to_numpy(), some["bridge_id"].to_numpy())
        found[name] = {
            "visits": len(some),
            "model": some["model"].mean(),
            "no change": some["no change"].mean(),
            "difference": [less.mean, less.low, less.high],
        }
    return found


def score_interval(low: float, high: float, observed: float, level: float = 0.95) -> float:
    """Interval score: the width, and 2 / (1 - level) for each unit by which the number lies outside."""
    miss = max(low - observed, observed - high, 0.0)
    return high - low + 2.0 / (1.0 - level) * miss


def describe_totals(totals: pl.DataFrame) -> list[dict[str, Any]]:
    """Found and expected at the threshold or worse, year by year, with the bands."""
    years = totals.filter(pl.col("by") == "year", "or_worse")
    bands = [("predicted_low", "predicted_high"), ("shock_low", "shock_high")]
    names = [name for band in bands for name in band if name in years.columns]
    return years.select("group", "visits", "observed", "expected", *names).rename({"group": "year"}).to_dicts()


def measure(records: Transitions, console: Console) -> dict[str, Any]:
    """Choose, forecast, look once; the plain model beside it."""
    shown: dict[str, Any] = {}
    for models in ("auto", "plain"):
        found, seconds = forecast(records, models, UNTIL)
        case = found.cases.row(0, named=True)
        console.print(f"{models}: {seconds:.0f} s of the processor")
        console.print(found.cases["summary"].item())
        shown[models] = {
            "model": case["model"],
            "certified": case["certified"],
            "seconds": seconds,
            "summary": case["summary"],
            "scores": describe_scores(found.forecasts),
            "log_loss": found.scores.filter(by="all", score="log_loss_exact", forecaster="model")["mean"].item(),
            "totals": describe_totals(found.totals),
            "tried": found.models.drop("case").to_dicts(),
        }
    return shown
