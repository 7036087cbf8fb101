"""``rekka fit``: the model fitted to all rows of each case, shown and saved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import rekka
from rekka.commands import telling
from rekka.commands.data import AsJson, Tables, echo_json
from rekka.commands.reading import Only, Reader, Units, Use, read_units, reads_tables, split_list
from rekka.errors import BadOption, MissingColumns, count_of, no_such_case


@reads_tables
def fit(
    tables: Tables,
    reader: Reader,
    scaling: Annotated[
        str, typer.Option(help="Scaling of the covariates, such as zscore or boxcox+zscore.")
    ] = "zscore",
    only: Only = None,
    use: Use = None,
    ridge: Annotated[float, typer.Option(min=0, help="Penalty on slopes, in z-scored units.")] = 0.0,
    unit: Units = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the models go: a .json file for one case, a folder for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the model to all rows of each case: coefficients in native units, hazard ratios, certificate.

    Standard errors are clustered by bridge. Beside the models stand their coefficients as CSV.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models
    """
    units = read_units(unit)
    errors, console = Console(stderr=True), Console()
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        found = reader.transitions(tables)
    if found.frame.is_empty():
        told = f"No two visits make a transition. rekka check {telling.quote(tables[0])} says why."
        errors.print(told, markup=False)
        raise typer.Exit(1)
    cases = _choose(found.frame["case"].unique().sort().to_list(), only)
    files = _place_models(cases, out)
    described, coefficients, failed = [], [], 0
    for case in cases:
        rows = found.frame.filter(case=case)
        names = [n for n in split_list(use) or found.covariates if n not in rows or rows[n].n_unique() > 1]
        model = rekka.ExponentialHazardMarkovModel(scaling, ridge=ridge, covariates=names, units=units or None)
        try:
            with errors.status(f"Fitting {escape(case)} ..."):
                model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
        except (MissingColumns, BadOption):
            raise
        except rekka.InputError as error:  # of this case; the others go on
            failed += 1
            errors.print(f"{case} cannot be fitted: {error}\n", highlight=False, markup=False)
            described.append({"case": case, "reason": str(error)})
            continue
        _write_model(model, files.get(case))
        coefficients += [{"case": case} | row for row in model.summary().to_dicts()]
        described.append(_describe_model(case, model, files.get(case)))
        if not as_json:
            _print_model(console, case, len(rows), model)
    written = _write_coefficients(coefficients, out)
    if as_json:
        echo_json(described)
    elif written is None:
        console.print("Nothing was written; --out says where.", highlight=False)
    else:
        models = f"{out} (the model{'s' if len(files) > 1 else ''})"
        console.print(f"written: {models}, {written}", highlight=False, markup=False)
    if failed:
        raise typer.Exit(1)


def _choose(there: list[str], only: list[str] | None) -> list[str]:
    for name in only or ():
        if name not in there:
            raise no_such_case(name, there)
    return list(dict.fromkeys(only or there))


def _place_models(cases: list[str], out: Path | None) -> dict[str, Path]:
    """The file of each case's model."""
    if out is None:
        return {}
    if out.suffix.lower() == ".json":
        if len(cases) > 1:
            raise BadOption(
                f"{out.name} is one file, and there are {count_of(len(cases), 'case')}. Give a folder, or --only."
            )
        return {cases[0]: out}
    taken: dict[str, Path] = {}
    for case in cases:
        slug = re.sub(r"[^\w]+", "-", case.lower()).strip("-") or "case"
        names = (f"{slug}{f'-{number}' if number else ''}.json" for number in range(len(cases) + 1))
        taken[case] = next(out / name for name in names if out / name not in taken.values())
    return taken


def _write_model(model: Any, file: Path | None) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(model.to_json() + "\n", encoding="utf-8")


def _describe_model(case: str, model: Any, file: Path | None) -> dict[str, Any]:
    """A fitted model as plain data."""
    return {
        "case": case,
        "states": model.n_states_,
        "log_likelihood": model.log_likelihood_,
        "certificate": str(model.certificate_.verdict),
        "reasons": model.certificate_.reasons,
        "coefficients": model.summary().to_dicts(),
        "file": None if file is None else str(file),
    }


def _write_coefficients(coefficients: list[dict[str, Any]], out: Path | None) -> Path | None:
    """All coefficients as a table that Excel opens, if there are any and a place for them."""
    import polars as pl

    from rekka.study.sheets import write_csv

    if out is None or not coefficients:
        return None
    path = out.with_suffix(".csv") if out.suffix.lower() == ".json" else out / "coefficients.csv"
    write_csv(path, pl.DataFrame(coefficients, infer_schema_length=None))
    return path


def _print_model(console: Console, case: str, rows: int, model: Any) -> None:
    """Coefficients and certificate."""
    scale = "native units" if model.coefficient_scale_ == "native" else f"units of {model.coefficient_scale_}"
    table = telling.new_table(
        f"{escape(case)}: {count_of(rows, 'row')}, {model.n_states_} states, log-likelihood "
        f"{model.log_likelihood_:.4f}; {scale}"
    )
    telling.add_columns(table, "state", "term", "estimate", "std.err.", "ratio", "95 % interval", "per")
    table.columns[1].justify = "left"
    for row in model.summary().to_dicts():
        ratio = (row["hazard_ratio"], row["hr_low"], row["hr_high"])
        shown = "", "", ""
        if row["hazard_ratio"] is not None:
            middle, low, high = (f"{value:.4g}" for value in ratio)
            shown = middle, f"{low} to {high}", f"{row['unit']:g}"
        table.add_row(str(row["state"]), escape(row["term"]), f"{row['estimate']:.4g}", f"{row['se']:.2g}", *shown)
    console.print(table)
    console.print("ratio: of the hazard of leaving the state, for so many units more (per).", style="dim")
    console.print(escape(str(model.certificate_)), highlight=False)
    console.print()
