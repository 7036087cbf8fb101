"""Small models and inventories that the tests of fleets share."""

from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import rekka
from rekka.fleet.eligibility import Eligible, InventoryOptions, find_eligible
from rekka.fleet.inventory import Fleet, forecast_fleet
from rekka.fleet.members import Members, read_members
from rekka.fleet.models import CaseModel, Models, match_models
from rekka.model.fit import Fit

COVARIATES = ("age_at_inspection_1", "bridge_length", "traffic_mean")


@lru_cache
def fit_model(n_states: int = 4, scaling: str = "zscore", seed: int = 3, rows: int = 400) -> Fit:
    """A certified fit to simulated rows."""
    frame = rekka.simulate_transitions(rows, n_states=n_states, seed=seed)
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=list(COVARIATES), n_states=n_states)
    fit: Fit = model.fit(frame, frame["state_2"], groups=frame["bridge_id"].to_numpy())._fit
    assert fit.certificate.certified
    return fit


@lru_cache
def fit_short() -> Fit:
    """A fit whose optimizer stopped short of the maximum."""
    frame = rekka.simulate_transitions(300, n_states=4, seed=3)
    model = rekka.ExponentialHazardMarkovModel(covariates=list(COVARIATES), solver="lbfgs", max_iter=1)
    fit: Fit = model.fit(frame, frame["state_2"])._fit
    assert not fit.certificate.certified
    return fit


def make_model(case: str | None = "Deck", fit: Fit | None = None, **more: Any) -> CaseModel:
    """A model of a case."""
    return CaseModel(case, fit or fit_model(), f"{case}.json", "0" * 64, **more)


def draw_members(n: int = 40, seed: int = 1, states: int = 4, case: str = "Deck") -> pl.DataFrame:
    """Members with the covariates of a model, seen on some day within three years."""
    rng = np.random.default_rng(seed)
    drawn = rekka.simulate_transitions(n, n_states=states, seed=seed)
    days = (
        pl.Series([date(2020, 1, 1)] * n)
        + pl.Series(rng.integers(0, 1000, n)).cast(pl.Duration("ms")) * 86_400_000
    )
    return pl.DataFrame(
        {
            "bridge_id": [f"B-{place:05d}" for place in rng.permutation(n)],
            "case": [case] * n,
            "state": rng.integers(1, states + 1, n),
            "date": days,
            **{name: drawn[name] for name in COVARIATES},
        }
    )


def read(frame: pl.DataFrame, **changes: Any) -> Members:
    """The members of a list."""
    return read_members(frame, **changes)


def eligible_of(
    frame: pl.DataFrame, *models: CaseModel, ask: InventoryOptions | None = None, only: Any = None
) -> Eligible:
    """The eligible members of a list."""
    members = read(frame)
    found = Models("models", models or (make_model(),))
    cases = members.frame["case"].unique().sort().to_list()
    return find_eligible(members, match_models(found, cases, only), ask or InventoryOptions(years=8))


def forecast(eligible: Eligible, **options: Any) -> tuple[Fleet, pl.DataFrame]:
    """The fleet, and all its years."""
    years: list[pl.DataFrame] = []
    fleet = forecast_fleet(eligible, on_years=years.append, **options)
    return fleet, pl.concat(years)
