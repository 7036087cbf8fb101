"""Do the bands of forecasts hold the truth as often as they say? ``python -m benchmarks.bands [--sets 200]``.

Each set is a plain simulated inventory of its own seed. One case is fitted as in ``benchmarks.coverage``; three
members are forecast with age advancing: the mean state and the probability of state 4 or worse after 5, 15 and 30
years, and the mean and median years until state 4. The truth is the same forecast with the coefficients that the
states were drawn from. For prediction intervals a history of each member is drawn from the true coefficients: the
years it takes, and its state after 15 years. There hazards are constant over an interval, with the age at its
start, and so is the clock of the fit.

Real ages run on within intervals: ``benchmarks.ageing`` draws such bridges, with visits about every 1, 2 and 5
years, and here the intervals of their forecasts are counted together at each gap, for either clock, and for ages
at the start without the lag. Exits with 1 if a share is outside its limits. A full run of that part is stored in
``results/bands.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import configuration
from benchmarks.ageing import AGED_LIMITS, AGED_SETS, AgedBands, measure_ageing, true_years
from benchmarks.coverage import BRIDGES, CASE, LEVEL, LIMITS, pair
from benchmarks.problems import SEED
from rekka import ExponentialHazardMarkovModel
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.forecast import Cohort, ForecastOptions, forecast_rows, make_cohort, years_until
from rekka.forecast.uncertainty import BOOTSTRAP, DELTA, NONE, NORMAL, Uncertainty
from rekka.model.fit import Fit
from rekka.simulation.inventory import simulate_inventory
from rekka.simulation.stock import CASES, LETTERS, TERMS, true_coefficients

Array = NDArray[np.float64]

SETS, DRAWS, REFITS = 200, 400, 200
TIMES, STATE, LATER = (5.0, 15.0, 30.0), 4, 1  # LATER: the place of the 15 years
AGES = (20.0, 40.0, 55.0)  # of the members that are forecast; their other covariates are typical
PREDICTED = (0.92, 1.0)  # states are whole: an interval of them holds more than it says
KINDS = (DELTA, NORMAL, BOOTSTRAP)
PARTS = ("members", "ageing")
RESULT = Path(__file__).with_name("results") / "bands.json"


@dataclass(frozen=True)
class Bands:
    """For each way of reckoning and each quantity, whether each interval held the truth (sets x members)."""

    held: dict[tuple[str, str], NDArray[np.bool_]]
    uncertified: int

    def share(self, kind: str, quantity: str) -> float:
        """Of the intervals of one quantity."""
        return float(np.mean(self.held[kind, quantity]))

    def together(self, kind: str, *, predicted: bool) -> float:
        """Of all intervals of parameters, or of all prediction intervals."""
        chosen = [held for (k, name), held in self.held.items() if k == kind and ("will" in name) == predicted]
        return float(np.mean(np.concatenate([one.ravel() for one in chosen])))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The ways that were tried."""
        return tuple(dict.fromkeys(kind for kind, _ in self.held))

    @property
    def passes(self) -> bool:
        """Whether every way's shares are within their limits."""
        limits = ((False, LIMITS), (True, PREDICTED))
        return all(
            low <= self.together(kind, predicted=predicted) <= high
            for kind in self.kinds
            for predicted, (low, high) in limits
        )


def measure(
    sets: int = SETS, bridges: int = BRIDGES, case: str = CASE, seed: int = SEED, kinds: Sequence[str] = KINDS
) -> Bands:
    """Draw, fit, forecast and compare so many sets."""
    truth = true_coefficients()[CASES.index(case)]
    held: dict[tuple[str, str], list[NDArray[np.bool_]]] = {}
    uncertified = 0
    for number in np.random.SeedSequence(seed).generate_state(sets):
        frame = pair(simulate_inventory(bridges, preset="plain", seed=int(number)), case)
        model = ExponentialHazardMarkovModel(covariates=TERMS[1:], n_states=len(LETTERS), clock="start")
        model.fit(frame, frame["state_2"])
        if not model.certificate_.certified:
            uncertified += 1
            continue
        if BOOTSTRAP in kinds:
            rows, groups = frame["state_2"], frame["bridge_id"].to_numpy()
            model = model.bootstrap(frame, rows, groups=groups, draws=REFITS, seed=int(number))
        for kind in kinds:
            for name, hits in _compare(model._fit, truth, kind, int(number)).items():
                held.setdefault((kind, name), []).append(hits)
    return Bands({key: np.array(hits) for key, hits in held.items()}, uncertified)


def _compare(fit: Fit, truth: Array, kind: str, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Whether the intervals of one set hold the truth, by quantity."""
    assert fit.survey is not None
    x = np.tile(fit.survey.median, (len(AGES), 1))
    x[:, 0] = AGES
    cohort = make_cohort(fit, np.zeros(len(AGES), np.int64), x, ForecastOptions(kind, LEVEL, DRAWS, seed))
    real = replace(cohort, uncertainty=Uncertainty(NONE, LEVEL, truth[None]))
    ours, theirs = forecast_rows(cohort, TIMES, STATE), forecast_rows(real, TIMES, STATE)
    years, true_years = years_until(cohort, STATE), years_until(real, STATE)
    found = {
        f"{name} after {time:g} years": _inside(
            getattr(theirs, field)[:, t], getattr(ours, f"{field}_low")[:, t], getattr(ours, f"{field}_high")[:, t]
        )
        for field, name in (("expected", "mean state"), ("reached", f"state {STATE} or worse"))
        for t, time in enumerate(TIMES)
    }
    found |= {
        f"{name} years until state {STATE}": _inside(
            *(
                table[column].to_numpy()
                for table, column in ((true_years, name), (years, f"{name}_low"), (years, f"{name}_high"))
            )
        )
        for name in ("mean", "median")
    }
    rng = np.random.default_rng(seed)
    took, was = _draw_years(real, rng), _draw_state(theirs.probability[:, LATER], rng)
    found["years that one will take"] = _inside(
        took, *(years[f"predicted_{end}"].to_numpy() for end in ("low", "high"))
    )
    found["state that one will have"] = _inside(was, ours.predicted_low[:, LATER], ours.predicted_high[:, LATER])
    return found


def _inside(value: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    return np.asarray((low <= value) & (value <= high))


def _draw_years(real: Cohort, rng: np.random.Generator) -> Array:
    """What one history of each member takes to the state: the quantile at a uniform number."""
    u = rng.uniform(size=len(real.start))
    quantile = find_first_passage(real.propagator, real.start, STATE - 1, u.tolist()).quantile[0]
    return np.diagonal(quantile)


def _draw_state(p: Array, rng: np.random.Generator) -> Array:
    """A state, 1-based, of each member."""
    return np.asarray((np.cumsum(p, axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1) + 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, store; 1 if a share is outside its limits."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bands",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", type=int, default=SETS)
    parser.add_argument("--bridges", type=int, default=BRIDGES)
    parser.add_argument("--case", choices=CASES, default=CASE)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--aged-sets", type=int, default=AGED_SETS, help="of each gap; only a full run is stored")
    parser.add_argument("--only", choices=PARTS, help="one of the two parts")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    found = []
    if options.only != "ageing":
        how = {name: getattr(options, name) for name in ("sets", "bridges", "case", "seed", "kinds")}
        found.append(_run_members(console, **how))
    if options.only != "members":
        found.append(_run_ageing(console, options.aged_sets, options.seed))
    console.print("within the aims" if all(found) else "OUTSIDE the aims")
    return 0 if all(found) else 1


def _run_members(console: Console, sets: int, bridges: int, case: str, seed: int, kinds: Sequence[str]) -> bool:
    """Measure and print; whether all shares are within their limits."""
    clock = perf_counter()
    found = measure(sets, bridges, case, seed, kinds)
    console.print(
        f"{case}: {sets} sets, {found.uncertified} without a certificate, seed {seed}, "
        f"{perf_counter() - clock:.0f} s; share of {LEVEL:.0%} intervals that hold the truth"
    )
    for name in dict.fromkeys(name for _, name in found.held):
        shares = "  ".join(f"{kind} {found.share(kind, name):.1%}" for kind in found.kinds)
        console.print(f"  {name:<32} {shares}")
    for predicted, what, limits in ((False, "parameters", LIMITS), (True, "prediction", PREDICTED)):
        shares = "  ".join(f"{kind} {found.together(kind, predicted=predicted):.2%}" for kind in found.kinds)
        console.print(f"{what}: {shares} (aim {limits[0]:.0%} to {limits[1]:.0%})")
    return found.passes


def _run_ageing(console: Console, sets: int, seed: int) -> bool:
    """Measure, print, store a full run; whether the default clock's shares are within their limits."""
    setting, clock = configuration.describe(with_msm=False), perf_counter()
    setting["repeats"] = {"sets": sets, "seed": seed}
    found = measure_ageing(sets, seed=seed)
    _print_ageing(console, found, f"{sets} sets of each gap, seed {seed}, {perf_counter() - clock:.0f} s")
    if sets >= AGED_SETS:
        unchanged = configuration.source_digest() == setting["source"]
        result = {"configuration": setting | {"source_unchanged": unchanged}, "ageing": found.to_dict()}
        RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        console.print(f"Stored in benchmarks/results/{RESULT.name}.")
    return found.passes


def _print_ageing(console: Console, found: AgedBands, how: str) -> None:
    console.print(f"ages that run on within intervals: {how}, {found.uncertified} fits without a certificate")
    for gap, way in found.held:
        console.print(
            f"  {gap:g} years between visits, {way:<14} {found.share(gap, way):.2%} of intervals hold the truth; "
            f"{found.mean_years(gap, way):.2f} years until the state (truth {true_years():.2f})"
        )
    console.print(f"with the age at the middle: aim {AGED_LIMITS[0]:.0%} to {AGED_LIMITS[1]:.0%} at each gap")


if __name__ == "__main__":
    sys.exit(main())
