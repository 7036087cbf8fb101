"""``tabulate_matrices``: transition matrices of fitted models, in the layouts of management systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadOption
from rekka.core.files import has_columns, make_folder, name_apart, refuse_inputs
from rekka.core.folders import check_folder
from rekka.core.sheets import write_csv
from rekka.fleet.models import CaseModel
from rekka.forecast.ageing import FIXED
from rekka.forecast.forecast import ForecastOptions, typical_covariates
from rekka.forecast.matrices import Matrix, lay_out, transition_matrices
from rekka.forecast.uncertainty import DELTA, DRAWS
from rekka.workflows.models import choose_cases, choose_own, list_files, list_notes, open_models

VERSION = 1  # of the plain data
OTHER_KINDS = (".json", ".md", ".parquet", ".tsv", ".txt", ".xls", ".xlsx")  # that a matrix is not written as


@dataclass(frozen=True, eq=False)
class ComponentMatrices:
    """Matrices of one model, one for each period: ``probability`` (K, K), rows the state now."""

    model: CaseModel
    given: dict[str, Any]  # covariates that are not typical
    matrices: tuple[Matrix, ...]
    table: pl.DataFrame  # as laid out


@dataclass(frozen=True, eq=False)
class Matrices:
    """Transition matrices of several models. ``notes``: warnings, and why components have no matrix."""

    source: str
    layout: str
    decimals: int
    components: tuple[ComponentMatrices, ...]
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """All matrices in one table, as laid out."""
        return lay_out(
            [one for some in self.components for one in some.matrices], self.layout, decimals=self.decimals
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        cases = [
            one.model.to_dict()
            | {"matrices": [matrix.to_dict() for matrix in one.matrices], "rows": one.table.to_dicts()}
            for one in self.components
        ]
        head = {"format": "rekka-matrix", "version": VERSION, "source": self.source, "layout": self.layout}
        return head | {"cases": cases, "files": [str(file) for file in self.files]}


def tabulate_matrices(
    models: Any,
    *,
    years: Sequence[float] = (1.0,),
    layout: str = "square",
    at: Mapping[str, float] | None = None,
    age: str = FIXED,
    advance: Sequence[str] | None = None,
    intervals: str = DELTA,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
    decimals: int = 1,
    only: Sequence[str] | None = None,
    out: str | Path | None = None,
) -> Matrices:
    """Tabulate the transition matrices of models for a member with given covariates.

    Parameters
    ----------
    models : path, Study or ComponentFits
        A model file of ``rekka fit``, a folder of them, a run folder; or what ``fit_components`` returned.
    years : list of float
        Periods in years: a matrix for each.
    layout : "square", "long", "percent" or "median"
        A row for each state; a row for each pair of states, with intervals; percentages that stay and go on; or
        median years in each state.
    at : dict, optional
        Covariates by name; those that are not given are typical, the medians of the training rows.
    age, advance
        Whether ages go on over a period: "fixed", "advances" or "held"; and which covariates are ages.
    intervals, draws, level, seed
        Uncertainty of the parameters: "delta", "normal" (draws), "bootstrap" or "none", at this level.
    decimals : int
        Of percentages, which sum to 100 as rounded.
    only : list of str, optional
        Only these components.
    out : path, optional
        A .csv file for all, or a folder with a file for each component.

    Examples
    --------
    >>> import rekka
    >>> fits = rekka.fit_components(rekka.simulate_transitions(300, n_states=3, seed=1))
    >>> rekka.tabulate_matrices(fits, years=[1, 5]).components[0].matrices[1].probability.shape
    (3, 3)

    """
    place = None if out is None else Path(out)
    _refuse_kind(place)
    found = open_models(models)
    chosen = choose_cases(found, only)
    files = _place(chosen, layout, place, list_files(models))
    own = choose_own("at", at, chosen)
    times = sorted({float(one) for one in years})
    options = ForecastOptions(intervals, level, draws, seed, age, advance)
    made = []
    for model, given in zip(chosen, own, strict=True):
        x = typical_covariates(model.fit, given)[0]
        some = transition_matrices(model.fit, x, times, options, labels=model.labels, case=model.name)
        made.append(ComponentMatrices(model, given, some, lay_out(some, layout, decimals=decimals)))
    all_of_them = Matrices(found.name, layout, decimals, tuple(made), tuple(list_notes(found)), tuple(files))
    tables = [all_of_them.table] if len(files) == 1 else [one.table for one in made]
    for file, table in zip(files, tables, strict=False):  # none where nothing is written
        make_folder(file.parent)
        write_csv(file, table)
    return all_of_them


def _refuse_kind(out: Path | None) -> None:
    """Refuse, before the work, what is neither CSV nor a folder."""
    if out is not None and out.suffix.lower() in OTHER_KINDS:
        raise BadOption(
            f"{out.name} is not a .csv file; a matrix is written as CSV, or into a folder.", option="out"
        )


def _place(models: Sequence[CaseModel], layout: str, out: Path | None, inputs: Sequence[Path]) -> list[Path]:
    """File of all, or one for each case; refuse to write over files of others."""
    if out is None:
        return []
    if out.suffix.lower() == ".csv":
        refuse_inputs([out], inputs)
        return [out]
    files = [out / f"{name}-{layout}.csv" for name in name_apart([model.name for model in models])]
    check_folder(out, files, inputs, has_columns("case", "certified", "covariates"))
    return files
