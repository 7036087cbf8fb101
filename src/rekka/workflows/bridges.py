"""``rank_bridges``: bridges ranked by how fast they deteriorate, others of their kind being 1."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, InputError, bad_option
from rekka.core.files import refuse_inputs, write_whole
from rekka.core.sheets import render_sheet, to_parquet, write_csv
from rekka.data.tables import is_folder
from rekka.fleet.elements import describe_factor, name_groups
from rekka.fleet.models import CaseModel, Models, choose_names
from rekka.workflows.models import list_files, open_models

CSV, EXCEL, PARQUET = ".csv", ".xlsx", ".parquet"
SCHEMA = {
    "case": pl.String,
    "by": pl.String,
    "bridge": pl.String,
    "factor": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "sentence": pl.String,
}
NO_FRAILTY = "it has no frailty, which ranks bridges; fit it with --frailty gamma"
NO_VARIANCE = "bridges do not differ beyond their covariates (the variance of the frailty is 0): there is no rank"
NO_MAXIMUM = "the fit is no certified maximum, so that its factors are not to be relied on"

_log = logging.getLogger("rekka")


def rank_bridges(models: Any, *, only: Sequence[str] | None = None, out: str | Path | None = None) -> pl.DataFrame:
    """Rank bridges by their frailty: the factor by which one deteriorates faster than others of its kind.

    Parameters
    ----------
    models : path, ComponentFits, or a list of them
        Model files of ``rekka fit --frailty gamma``, folders of them; or what ``fit_components`` returned.
    only : list of str, optional
        Only these components; all by default.
    out : path, optional
        A .csv, .xlsx or .parquet file for the table.

    Returns
    -------
    polars.DataFrame
        A row for each component and bridge, the fastest first: case, by (what the frailty belongs to), bridge,
        factor, the ends of its 95 % interval, and a sentence. Components without a frailty, and those whose
        frailty has variance 0, have no rows; the log says so. Where no model has a frailty, that is an error.

    Examples
    --------
    >>> import rekka
    >>> inventory = rekka.simulate_inventory(60, preset="plain", seed=3)
    >>> fits = rekka.fit_components(inventory.inspections, only=["Pier"], frailty="gamma")
    >>> rekka.rank_bridges(fits).columns
    ['case', 'by', 'bridge', 'factor', 'low', 'high', 'sentence']

    """
    sources = list(models) if isinstance(models, list | tuple) else [models]
    place = None if out is None else Path(out)
    if place is not None:
        refuse_place(place, [file for source in sources for file in list_files(source)])
    found = _choose([open_models(source) for source in sources], only)
    lacking = {model.name: NO_FRAILTY for model in found if _frailties(model) is None}
    if len(lacking) == len(found):
        raise InputError(f"{', '.join(lacking)}: {NO_FRAILTY}.")
    alike = {model.name: NO_VARIANCE for model in found if _variance(model) == 0}
    doubtful = {model.name: NO_MAXIMUM for model in found if not model.certified}
    for name, why in (doubtful | lacking | alike).items():
        _log.warning(f"{name}: {why}.")
    rows = [row for model in found if model.name not in alike for row in _list_rows(model)]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("factor", descending=True, maintain_order=True)
    if place is not None:
        write_place(place, table, "bridges")
    return table


def _choose(found: Sequence[Models], only: Sequence[str] | None) -> list[CaseModel]:
    """Models of these components; two of one component are refused."""
    models = [model for some in found for model in some.models]
    names = [model.name for model in models]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        files = [model.file for model in models if model.name == twice]
        raise BadOption(f"{' and '.join(files)} are models of {twice}. Give one of them.", files=files)
    chosen = choose_names(names, only)
    return [model for model in models if model.name in chosen]


def _frailties(model: CaseModel) -> Any:
    return None if model.fit.records is None else model.fit.records.frailties


def _variance(model: CaseModel) -> float | None:
    return None if model.fit.records is None else model.fit.records.frailty_variance


def _list_rows(model: CaseModel) -> list[tuple[Any, ...]]:
    known, records = _frailties(model), model.fit.records
    if known is None or records is None:
        return []
    _, by = name_groups(records.by)
    figures = zip(known.groups, known.mean.tolist(), known.low.tolist(), known.high.tolist(), strict=True)
    return [
        (model.name, by, name, factor, low, high, f"{name} {describe_factor(factor, low, high)}")
        for name, factor, low, high in figures
    ]


def refuse_place(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse a file whose ending is that of no table, whose folder is not there, or that is read."""
    if out.suffix.lower() not in (CSV, EXCEL, PARQUET):
        raise bad_option("the output's ending", out.suffix, [CSV, EXCEL, PARQUET])
    if not is_folder(out.parent):
        raise BadOption(f"There is no folder {out.parent.name} for {out.name}. Make it first.", file=str(out))
    refuse_inputs([out], inputs)


def write_place(out: Path, table: pl.DataFrame, name: str) -> None:
    """Write a table as the file's ending says; ``name`` is that of the sheet."""
    kind = out.suffix.lower()
    if kind == CSV:
        write_csv(out, table)
    else:
        write_whole(out, render_sheet(table, name) if kind == EXCEL else to_parquet(table))
