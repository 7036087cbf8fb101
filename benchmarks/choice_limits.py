"""What can no rule, or not this one, tell apart? ``python -m benchmarks.choice_limits``.

Tables of 1,000 bridges that ``choices.py`` does not use. Followed from new: how often the true model, with a
frailty, fits all records of a table better than one with a trend, which has as many parameters; no rule that asks
for better forecasts as well can find the frailty more often. First seen at ages of 0 to 30 years: the frailty of
members followed from age 0 (``first="new"``), beside the plain model with an effect of age; log-likelihoods of all
visits but the first, given the first, and the forecast of P(4 or worse 30 years later) for a bridge that was rated
1 until year 20, beside those of other models and the truth. Prints lines; nothing is stored.

``--shared N`` instead chooses the models of N inventories of each setting of ``shocks.py``, in which the hazards
of all bridges differ from year to year together and nothing else is wrong, and tests them for a trend (R615):
bridges are no independent witnesses of a year.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from benchmarks import shocks
from benchmarks.choices import MANY, choose
from benchmarks.simulated_histories import NEW, OLD, STATES, Setting, World, draw_inventory, forecast_poor
from rekka import ExponentialHazardMarkovModel
from rekka.evaluation.violations import TREND

FIRST_NUMBER, TABLES = 100, 40
GAP, VISITS = 5.0, 7
VARIANCE = 0.5
AGED: dict[str, dict[str, Any]] = {
    "plain": {},
    "plain, with age": {"covariates": ["x", "age"]},
    "trend": {"trend": "common"},
    "frailty": {"frailty": "gamma"},
    "frailty from age 0": {
        "covariates": ["x", "age"],
        "frailty": "gamma",
        "first": "new",
        "effects": {"age": []},
    },
}


def fit(rows: pl.DataFrame, **options: Any) -> ExponentialHazardMarkovModel:
    """Fit of a table, of pairs without an element."""
    model = ExponentialHazardMarkovModel(**({"covariates": ["x"], "n_states": STATES, "threads": 1} | options))
    alike = {"histories": rows["bridge"]} if {"trend", "frailty"} & set(options) else {}
    return model.fit(rows, rows["state_2"], groups=rows["bridge"], **alike)


def support_later(model: ExponentialHazardMarkovModel, rows: pl.DataFrame) -> float:
    """Log-likelihood of the visits after the first of each bridge, given the first."""
    p = model.predict_proba(rows, histories=rows["bridge"], groups=rows["bridge"])
    return float(np.log(np.asarray(p)[np.arange(len(rows)), rows["state_2"].to_numpy() - 1]).sum())


def compare_new(numbers: Sequence[int]) -> None:
    """Print how often a frailty fits better than a trend where bridges are followed from new."""
    setting = Setting("frailty 0.5, from new, visits every 5 years", GAP, VISITS, frailty=VARIANCE, start=NEW)
    gains = []
    for number in numbers:
        rows = draw_inventory(setting, number, MANY).rows
        trend, frailty = fit(rows, trend="common"), fit(rows, frailty="gamma")
        gains.append(frailty.log_likelihood_ - trend.log_likelihood_)
    better = sum(gain > 0 for gain in gains)
    print(f"from new: frailty fits better than trend in {better} of {len(gains)} tables, "
          f"by {np.mean(gains):.1f} log-likelihood units on average")  # fmt: skip


def compare_old(numbers: Sequence[int]) -> None:
    """Print what distinguishes models where bridges are first seen at ages of 0 to 30 years."""
    setting = Setting("frailty 0.5, from age 0-30, visits every 5 years", GAP, VISITS, frailty=VARIANCE, start=OLD)
    gains, lags, poor = [], [], []
    for number in numbers:
        drawn = draw_inventory(setting, number, MANY)
        models = {name: fit(drawn.rows, **options) for name, options in AGED.items()}
        later = support_later(models["frailty from age 0"], drawn.rows)
        gains.append(later - models["plain, with age"].log_likelihood_)
        lags.append(models["trend"].log_likelihood_ - models["frailty"].log_likelihood_)
        poor.append([forecast_poor(World.of(model), GAP) for model in models.values()])
    print(f"from age 0-30: trend less frailty, without age: {min(lags):+.1f} to {max(lags):+.1f} units")
    print(f"from age 0-30: frailty from age 0 less plain with age, visits after the first: {np.mean(gains):+.1f} "
          f"log-likelihood units on average ({min(gains):+.1f} to {max(gains):+.1f})")  # fmt: skip
    means = (f"{name} {mean:.3f}" for name, mean in zip(AGED, np.mean(poor, axis=0), strict=True))
    print(f"P(4 or worse): truth {forecast_poor(setting.world(drawn.last), GAP):.3f}, {', '.join(means)}")


def compare_shared(numbers: Sequence[int]) -> None:
    """Print what is chosen, and how often a trend is found, where all bridges are struck together."""
    for setting in shocks.SETTINGS:
        chosen, trends = Counter[str](), 0
        for number in numbers:
            rows = shocks.draw_rows(setting, number)
            chosen[choose(rows, ["x"]).name] += 1
            model = ExponentialHazardMarkovModel(covariates=["x"], threads=1)
            found = model.fit(rows, rows["state_2"], groups=rows["bridge_id"]).find_violations(rows)
            trends += any(one.name == TREND and one.found for one in found)
        told = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
        print(
            f"{setting.name}: of {len(numbers)} tables {told}; a trend found by the test in {trends}", flush=True
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choice_limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tables", type=int, default=TABLES, help="of each setting")
    parser.add_argument("--shared", type=int, metavar="N", help="tables in which bridges are struck together")
    options = parser.parse_args(arguments)
    if options.shared:
        return compare_shared(range(options.shared))
    numbers = range(FIRST_NUMBER, FIRST_NUMBER + options.tables)
    compare_new(numbers)
    compare_old(numbers)
    return None


if __name__ == "__main__":
    main()
