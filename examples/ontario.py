# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Ontario's bridges, from the table to a forecast that was tested
#
# The public table "Bridge conditions" of Ontario (data.ontario.ca) has an index from 0 to 100 for 2,781 bridges
# and the years 2000 to 2013. Contains information licensed under the Open Government Licence – Ontario. Save its
# file `bridge_data.csv` in a folder and run `ONTARIO=FOLDER python ontario.py`. Without it the script simulates
# bridges with one component, five rounds of visits, small repairs that nobody recorded and rates that fall with
# the years, as Ontario's do. The steps are the same.

# %%
import os
from pathlib import Path

import polars as pl

import rekka

TABLE = Path(os.environ.get("ONTARIO", "ontario")) / "bridge_data.csv"
SMALL = os.environ.get("REKKA_EXAMPLES") == "small"  # fewer bridges and draws, as in the tests
REAL = TABLE.exists()

# %% [markdown]
# ## The table
#
# The index becomes ratings by bands: 85 and above is the best, below 60 the worst. 0 means that there was no
# inspection. The years of rehabilitation are known, so that improvements after them are not taken for errors.

# %%
if REAL:
    print(f"Ontario's bridges, from {TABLE.name}")
    source = TABLE
    mapping = {
        "columns": {
            "bridge": "ID",
            "completed": "YEAR BUILT",
            "length": "DECK LENGTH",
            "repairs": ["LAST MAJOR REHAB", "LAST MINOR REHAB"],
        },
        "state": {"bands": [85, 75, 70, 60], "missing": [0]},
    }
    until = "2008-12-31"
else:
    print("Ontario's table is not there: simulated bridges")
    drawn = rekka.simulate_inventory(
        250 if SMALL else 1000, preset="plain", improvements=0.04, trend=-0.08, seed=4
    )
    source = drawn.inspections.filter(case="Deck slab")
    mapping = {"join": [{"file": drawn.inventory}]}
    until = "2019-12-31"

# %% [markdown]
# Each pair of visits becomes a row; what cannot be used has a reason. Read the notes: they say what each column
# was taken for.

# %%
found = rekka.read_transitions(source, mapping)
for note in found.notes[:6]:
    print("-", note)
print(found.audit.table.select("outcome", "reason", "count"))

# %% [markdown]
# ## A first model, and what it is worth
#
# The plain model takes each pair of visits by itself and leaves improvements out.

# %%
covariates = ["age_at_inspection_1", "bridge_length"]
fits = rekka.fit_components(source, mapping, covariates=covariates, units={"age_at_inspection_1": 10})
(plain,) = fits.components
print(plain.model.certificate_.headline)
print(plain.model.summary())

# %% [markdown]
# A certified maximum is the best fit of its kind, which is not enough. Does it forecast? Fit it to the visits up
# to a day and compare its forecasts of the later ones with those of "no change": each rating stays what it was.
# `models="auto"` does the same for errors of inspection, small improvements, a trend, ageing within intervals and
# differences between bridges, adds what helps *before* that day, and tests the choice once on the years after it.

# %%
tested = rekka.backtest(
    source,
    until=until,
    covariates=covariates,
    models=["improvements"] if SMALL else "auto",
    threshold=4,
    draws=100 if SMALL else 500,
    test_fit=False,
    reading=rekka.ReadingOptions(mapping=mapping),
)
print(tested.models.select("model", "than", "rps", "difference", "low", "high", "kept"))
print(tested.cases["summary"][0])

# %% [markdown]
# Ranked probability scores on the visits that no choice has seen, lower is better. `less` names the forecaster
# whose score is subtracted: an interval below 0 says that the model is better than that one.

# %%
scores = tested.scores.filter(score="rps", by="all")
print(scores.select("forecaster", "less", "mean", "low", "high", "visits"))

# %% [markdown]
# Visits that found the fourth rating or worse, and how many were expected before any of these years began:

# %%
totals = tested.totals.filter(by="year", or_worse=True)
print(totals.select("group", "visits", "observed", "expected", "predicted_low", "predicted_high", "inside"))

# %% [markdown]
# ## The forecast
#
# The elements that were kept are fitted to all visits. Each member is then forecast from all of its visits, not
# only from the last one.

# %%
options = {
    "errors": {"errors": "adjacent"},
    "improvements": {"improvements": "common"},
    "trend": {"trend": "common"},
    "frailty": {"frailty": "gamma"},
    "running": {"clock": "running"},
    "plain": {},
}
kept = tested.models.filter("kept")["model"][-1]
elements = {name: value for part in kept.split("+") for name, value in options[part].items()}
print(f"kept: {kept}")
fits = rekka.fit_components(source, mapping, covariates=covariates, test_fit=False, **elements)
print(fits.components[0].model.certificate_.headline)

forecast = rekka.forecast_inventory(fits, source, mapping, years=20, threshold=4, out="forecast")
worse = forecast.network.filter(pl.col("year").is_in([0, 5, 10, 20]), what="in this state or worse")
print(worse.select("year", "label", "members", "expected", "low", "high", "predicted_low", "predicted_high"))
print(forecast.members.select("bridge_id", "label", "median_years").head(5))

# %% [markdown]
# ## The page to hand over
#
# A study compares scalings of the covariates with the plain model and writes a report; the command `rekka compare
# TABLE --models auto --out run` does this, the choice above and its test in one.

# %%
study = rekka.compare(
    source,
    mapping,
    covariates=covariates,
    methods=["zscore", "boxcox"],
    guard={"resamples": 5 if SMALL else 20},
    out="run",
)
print(study.selection.select("case", "chosen", "why"))
files = rekka.write_report("run", calibrate=not SMALL)
print(files["page"][0].name)
# prints: report.html
