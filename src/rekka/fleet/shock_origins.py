"""Forecasts made inside the records, at earlier days: what they missed by tells how large shared errors are.

In each of the last ``ORIGINS`` years before the last day that may be known, the model is fitted to the visits up
to the same day of that year and forecasts the later ones up to the last day. A fit without a certificate, or to
fewer than 100 rows, is left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl

from rekka.core.errors import BadOption
from rekka.fleet.backtest_rows import Cut, link_chains, take_training
from rekka.fleet.backtest_scores import Settings, run_case
from rekka.fleet.rolling import years_before
from rekka.fleet.shocks import RESIDUALS_SCHEMA, Shocks, estimate_shocks, explain_few
from rekka.forecast.uncertainty import FEWEST
from rekka.model.certificate import FEW_ROWS

ORIGINS = 6  # years before the last day at which forecasts are made
NETWORKS = 400  # drawn of each: their variance is then known to within 7 %


def refuse_undated(columns: Sequence[str], cut: Cut | None = None) -> None:
    """Refuse rounds of inspections and tables without dates: shared errors are by calendar year."""
    dated = {"date_1", "date_2"} <= set(columns)
    if dated and (cut is None or isinstance(cut.moment, dt.date)):
        return
    found = "the moment is a round of inspections" if dated else "the table has no dates of inspection"
    raise BadOption(
        f"shocks compares forecasts made in earlier years with what was found later, and {found}. Give "
        "inspections with dates (and --until, a date, to backtest), or leave shocks out.",
        option="shocks",
    )


def tabulate_origins(
    case: str,
    frame: pl.DataFrame,
    last: dt.date,
    settings: Settings,
    on_origin: Callable[[int, int], None] = lambda done, total: None,
) -> pl.DataFrame:
    """Table of what forecasts of a case from earlier origins missed by, of visits up to ``last``.

    ``frame`` has its transitions, with dates; see ``RESIDUALS_SCHEMA`` for the columns, after ``case``.
    """
    known = frame.filter(pl.col("date_2") <= last)
    found = [pl.DataFrame(schema=RESIDUALS_SCHEMA)]
    for place, years in enumerate(range(ORIGINS, 0, -1)):
        on_origin(place, ORIGINS)
        day = years_before(last, years)
        since = settings.cut.since if settings.window is None else years_before(day, int(settings.window))
        cut = Cut(day, since)
        if len(take_training(known, cut)) < FEW_ROWS:
            continue
        own = replace(settings, cut=cut, plain=False, residuals=True, test_fit=False, threshold=None)
        own = replace(own, networks=NETWORKS, forecast=replace(own.forecast, draws=FEWEST))
        result = run_case(case, known, link_chains(known, cut), own)
        if result.residuals is not None:
            found.append(result.residuals)
    return pl.concat(found).select(pl.lit(case).alias("case"), pl.all())


def find_shocks(
    case: str,
    frame: pl.DataFrame,
    last: dt.date,
    settings: Settings,
    on_origin: Callable[[int, int], None] = lambda done, total: None,
) -> Shocks:
    """Estimate the shared errors of a case from forecasts inside its records up to ``last``."""
    found = estimate_shocks(tabulate_origins(case, frame, last, settings, on_origin))
    return found.get(case) or explain_few(
        0, f" (up to {last}, of certified fits to at least {FEW_ROWS} transitions)"
    )
