"""Later visits that no forecast is held against, because a pair was set aside on the way: how many, and why.

What is scored are members that were not repaired and whose rating did not improve. That is a choice by what
happened later, which nobody could have made with the forecast: the reader is told how large it is.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from rekka.data.audit import PAIR, VISIT
from rekka.data.queries import collect
from rekka.fleet import backtest_rows
from rekka.fleet.backtest_rows import MEMBER, Chains, Cut, Records

UNKNOWN = "no transition leads on"
SCHEMA: dict[str, Any] = {"case": pl.String, "reason": pl.String, "members": pl.Int64, "visits": pl.Int64}


def count_losses(records: Records, frame: pl.DataFrame, chains: Chains, cut: Cut) -> pl.DataFrame:
    """Members seen by the moment and after it that have visits outside their chain: case, reason, members, visits.

    With a panel all visits are known. Without one only those of transitions are: visits after a member's last
    transition are not counted.
    """
    frame = frame if "member" in frame.columns else frame.with_columns(member=pl.lit(""))
    keys = [*MEMBER, *_tell_apart(frame)]
    linked = _ends(frame[chains.place], keys).with_columns(linked=pl.lit(value=True)).unique()
    visits = _list_visits(records, frame, keys, cut).join(linked, on=keys, how="left")
    known = pl.col("moment") <= cut.moment
    visits = visits.filter(known.any().over(MEMBER))
    lost = visits.filter(~known & pl.col("linked").is_null()).group_by(MEMBER).agg(visits=pl.len())
    ends = visits.filter(known | pl.col("linked")).sort("moment").group_by(MEMBER, maintain_order=True).last()
    told = lost.join(_add_reasons(ends, records, keys).select(*MEMBER, "reason"), on=MEMBER, how="left")
    counted = told.group_by("case", "reason").agg(pl.col("visits").sum(), members=pl.len())
    counted = counted.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    return counted.sort("case", "visits", "reason", descending=[False, True, False])


def _tell_apart(frame: pl.DataFrame) -> list[str]:
    """The columns that tell visits of a member apart; no number, which a restart begins anew, where others do."""
    there = backtest_rows.visit_keys(frame)
    return [key for key in there if key != backtest_rows.VISIT] or there


def _ends(frame: pl.DataFrame, keys: list[str], end: int = 2) -> pl.DataFrame:
    """The visits at which transitions end, or start."""
    return frame.select(pl.col(key if key in MEMBER else f"{key}_{end}").alias(key) for key in keys)


def _list_visits(records: Records, frame: pl.DataFrame, keys: list[str], cut: Cut) -> pl.DataFrame:
    """Every visit that pairing looked at, with its ``moment``."""
    panel, audit = records.panel, records.found.audit
    if panel is None or audit is None or audit.set_aside is None or cut.kind not in panel.columns:
        ends = [
            _ends(frame, keys, end).with_columns(moment=frame[column])
            for end, column in enumerate(cut.columns, start=1)
        ]
        return pl.concat(ends).unique()
    usable = panel.visits.filter(pl.col("problem") == 0).select(*keys, moment=pl.col(cut.kind))
    visits = collect(usable, panel.name).with_columns(pl.col(name).cast(pl.String) for name in MEMBER)
    visits = visits.filter(pl.col("case").is_in(frame["case"].unique().to_list()))
    return visits.join(audit.set_aside.filter(pl.col("outcome") == VISIT).select(keys), on=keys, how="anti")


def _add_reasons(ends: pl.DataFrame, records: Records, keys: list[str]) -> pl.DataFrame:
    """Why the last visit of each chain was not paired with the next one, where that is known."""
    audit = records.found.audit
    if audit is None or audit.set_aside is None or not set(keys) <= set(audit.set_aside.columns):
        return ends.with_columns(reason=pl.lit(UNKNOWN))
    reasons = audit.set_aside.filter(pl.col("outcome") == PAIR).select(*keys, "reason")
    return ends.join(reasons, on=keys, how="left").with_columns(pl.col("reason").fill_null(UNKNOWN))
