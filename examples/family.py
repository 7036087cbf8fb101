# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A new hazard family
#
# The model's hazard is exponential in the covariates: ten more years multiply it by the same factor at every age.
# Another *link* between the linear predictor and the hazard is one class with three methods. Fits, certificates,
# standard errors, scores, forecasts and transition matrices then work with it as they are.
#
# Here hazards have an upper limit: however bad the covariates, no member leaves a rating faster than that.

# %%
import os

import numpy as np
import polars as pl

import rekka
from rekka.model.family import Family, register

SMALL = os.environ.get("REKKA_EXAMPLES") == "small"
LIMIT = 0.5  # per year

# %% [markdown]
# ## The link
#
# `log_hazards` maps the predictor to the logarithm of the hazard, `predictors` is the way back, and `bend` gives
# the first two derivatives of the first. Here theta = LIMIT / (1 + exp(-eta)), so that theta is between 0 and
# LIMIT.


# %%
class Limited(Family):
    """theta = LIMIT / (1 + exp(-eta)): exponential where it is small, and never above LIMIT."""

    def log_hazards(self, eta):
        return np.log(LIMIT) - np.logaddexp(0.0, -eta)

    def predictors(self, log_hazards):
        ratio = np.exp(np.minimum(log_hazards - np.log(LIMIT), -1e-9))
        return np.log(ratio) - np.log1p(-ratio)

    def bend(self, eta):
        rest = 1 / (1 + np.exp(eta))
        return rest, -rest * (1 - rest)


register(Limited("limited"))


class LimitedModel(rekka.ExponentialHazardMarkovModel):
    """The estimator, with the other link."""

    _family = "limited"


# %% [markdown]
# ## Check it before you use it
#
# The way back must lead back, and the derivatives must be those of the function.

# %%
family, eta, step = Limited("limited"), np.linspace(-8, 8, 33), 1e-5
first, second = family.bend(eta)
slope = (family.log_hazards(eta + step) - family.log_hazards(eta - step)) / (2 * step)
curve = (family.bend(eta + step)[0] - family.bend(eta - step)[0]) / (2 * step)
print(bool(np.allclose(family.predictors(family.log_hazards(eta)), eta)))  # prints: True
print(bool(np.allclose(first, slope) and np.allclose(second, curve)))  # prints: True

# %% [markdown]
# ## Fit both links to the same rows
#
# Bridges of the held-out part are in no training row.

# %%
rows = rekka.simulate_transitions(1200 if SMALL else 6000, n_states=4, seed=2)
parts = rekka.partition_by_bridge(rows.with_columns(case=pl.lit("Deck")))
train, later = parts.train, pl.concat([parts.validation, parts.golden])
covariates = ["age_at_inspection_1", "bridge_length", "traffic_mean"]


def fit(kind):
    """A model of one kind, fitted to the training rows."""
    return kind(covariates=covariates).fit(train, train["state_2"], groups=train["bridge_id"])


models = {"exponential": fit(rekka.ExponentialHazardMarkovModel), "limited": fit(LimitedModel)}
for name, model in models.items():
    print(name, model.certificate_.headline, round(model.log_likelihood_, 2))
    print("  held out:", round(model.log_loss(later, later["state_2"]), 4))
# prints: exponential certified: a maximum of the likelihood
# prints: limited certified: a maximum of the likelihood

# %% [markdown]
# The rows were drawn from exponential hazards, so the limit cannot help here. On your records compare the two on
# held-out rows as above: a difference in training log-likelihood is no evidence.
#
# ## What follows needs no more code

# %%
member = {"age_at_inspection_1": 40.0, "bridge_length": 60.0, "traffic_mean": 8000.0}
for name, model in models.items():
    hazards = model.hazards(pl.DataFrame([member]))
    forecast = model.forecast(member, years=[10, 20], intervals="delta")
    print(name, forecast.reached.round(3).tolist())
print(bool((np.asarray(family.hazards(np.array([30.0]))) <= LIMIT).all()))  # prints: True

# %% [markdown]
# A model file names the family, and a rekka in which it is not registered refuses the file. How a family with a
# step of its own is written, and what each method is used for: `docs/model.md`, "Adding a hazard family".
