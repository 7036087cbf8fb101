"""``rekka fit``: the model fitted to all rows of each case, shown and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import rekka
from rekka.cluster.failures import ClusterError
from rekka.commands import telling
from rekka.commands.asking import name_apart
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson, Tables, echo_json
from rekka.commands.reading import Only, Reader, Units, Use, read_units, reads_tables, split_list
from rekka.commands.study import Cluster, Memory
from rekka.errors import BadOption, MissingColumns, count_of, no_such_case

OF_A_MAXIMUM = ("se", "z", "p", "ci_low", "ci_high", "hr_low", "hr_high")  # what a fit elsewhere does not have


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
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Refits to bridges drawn with replacement, for intervals of forecasts; 200 is usual.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap's draws.")] = 0,
    memory: Memory = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads over rows. Default: one a core.")] = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the models go: a .json file for one case, a folder for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the model to all rows of each case: coefficients in native units, hazard ratios, certificate.

    Standard errors are clustered by bridge. Beside the models stand their coefficients as CSV. A model's file has
    all that rekka forecast needs: the case, the names of its states, the ranges of its covariates, and the refits
    of --bootstrap. A table of transitions in Parquet, a file or a folder, may be larger than memory.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models

      rekka fit inspections.xlsx --bootstrap 200 --out models

      rekka fit nation/ --memory 1GB --out models
    """
    from rekka.transitions import refuse_text

    units = read_units(unit)
    errors, console = Console(stderr=True), Console()
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        found = _read(reader, tables, cluster)
    if found is None:
        told = f"No two visits make a transition. rekka check {telling.quote(tables[0])} says why."
        errors.print(told, markup=False)
        raise typer.Exit(1)
    names = split_list(use) or found.covariates
    refuse_text(found.query, names, tables[0].name)
    cases = _choose(sorted(found.cases), only)
    files = _place_models(cases, out)
    options = {"scaling": scaling, "ridge": ridge, "units": units or None, "memory": memory, "threads": threads}
    described, coefficients, failed = [], [], 0
    for case in cases:
        rows = found.rows(case)
        model, reason = _fit_case(errors, case, rows, names, options, cluster)
        if model is None:
            failed += 1
            described.append({"case": case, "reason": reason})
            continue
        if bootstrap:
            drawn = _draw_again(errors, case, model, found.collect(case), bootstrap, seed)
            failed += drawn is None
            model = model if drawn is None else drawn
        if case in files:
            _write_model(files[case], model, case, found)
        coefficients += [{"case": case} | row for row in _list_coefficients(model)]
        described.append(_describe_model(case, model, files.get(case)))
        if not as_json:
            _print_model(console, case, found.cases[case], model)
    written = _write_coefficients(coefficients, out)
    if as_json:
        echo_json(described)
    else:
        for line in _tell_files(out, written, len(files), tables):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Found:
    """Transitions, in memory or where they are: the number of rows of each case, and a query for them."""

    query: Any  # a polars LazyFrame
    cases: dict[str, int]
    covariates: Sequence[str]
    labels: tuple[str, ...] | None
    reading: Any  # how the table was read

    def rows(self, case: str) -> Any:
        """The rows of a case, as a query."""
        return self.query.filter(case=case) if len(self.cases) > 1 else self.query

    def collect(self, case: str) -> Any:
        """The rows of a case in memory; None where they are too many to be refitted again and again."""
        from rekka.streaming.blocks import WHOLE

        return self.rows(case).collect() if self.cases[case] <= WHOLE else None


def _read(reader: Reader, tables: list[Path], cluster: str | None) -> _Found | None:
    """The transitions, which stay where they are if there are many; None where there are none."""
    from rekka.streaming.blocks import WHOLE
    from rekka.transitions import LazyTransitions

    found = reader.sound(tables)
    if isinstance(found, LazyTransitions):
        counts = _count_cases(found.query)
        if cluster is not None or sum(counts.values()) > WHOLE:
            return _Found(found.query, counts, found.covariates, None, found.reading)
        found = found.collect()
    query = found.frame.lazy()
    labels = None if found.scale is None else found.scale.names
    if found.frame.is_empty():
        return None
    return _Found(query, _count_cases(query), found.covariates, labels, found.reading)


def _count_cases(query: Any) -> dict[str, int]:
    import polars as pl

    return dict(query.group_by("case").agg(pl.len()).collect(engine="streaming").iter_rows())


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
    return {case: out / f"{name}.json" for case, name in zip(cases, name_apart(cases), strict=True)}


def _fit_case(
    errors: Console, case: str, rows: Any, names: Sequence[str], options: dict[str, Any], cluster: str | None
) -> tuple[Any, str | None]:
    """The case's model, or why there is none: the other cases go on."""
    model = rekka.ExponentialHazardMarkovModel(covariates=_find_varying(rows, names), **options)
    passes = count(1)
    try:
        with errors.status(f"Fitting {escape(case)} ...") as status:

            def tell(stage: str) -> None:
                status.update(f"Fitting {escape(case)}: {stage} (pass {next(passes)} over the rows) ...")

            return model.fit(rows, groups="bridge_id", cluster=cluster, on_pass=tell), None
    except (MissingColumns, BadOption, ClusterError):  # wrong for every case
        raise
    except rekka.InputError as error:
        errors.print(f"{case} cannot be fitted: {error}\n", highlight=False, markup=False)
        return None, str(error)


def _find_varying(rows: Any, names: Sequence[str]) -> list[str]:
    """The covariates that do not have one value in all rows of the case; those that are not there too."""
    import polars as pl

    schema = rows.collect_schema()
    there = [name for name in names if name in schema and schema[name].is_numeric()]
    same = rows.select((pl.col(name).min() == pl.col(name).max()) for name in there).collect(engine="streaming")
    constant = [name for name in there if same[name].item()]
    return [name for name in names if name not in constant]


def _draw_again(errors: Console, case: str, model: Any, rows: Any, draws: int, seed: int) -> Any:
    """The model with its bootstrap; None, and a sentence, where it can have none."""
    from rekka.streaming.blocks import WHOLE

    if rows is None:
        errors.print(
            f"{case} has no bootstrap: more than {count_of(WHOLE, 'row')} are not refitted.\n", markup=False
        )
        return None
    with new_bar(errors) as progress:
        task = progress.add_task(case, total=draws, what="Refits")
        try:
            return model.bootstrap(
                rows,
                rows["state_2"],
                groups=rows["bridge_id"].to_numpy(),
                draws=draws,
                seed=seed,
                on_progress=lambda done, _: progress.update(task, completed=done),
            )
        except rekka.InputError as error:
            errors.print(f"{case} has no bootstrap: {error}\n", highlight=False, markup=False)
            return None


def _write_model(file: Path, model: Any, case: str, found: _Found) -> None:
    """A model with what it is of, and how its table was read; joined files count from where the model is."""
    from rekka.study.rows import relate

    file.parent.mkdir(parents=True, exist_ok=True)
    reading = found.reading and found.reading.move(lambda name: relate(name, file.parent))
    text = model.to_json(case=case, labels=found.labels, reading=reading)
    file.write_text(text + "\n", encoding="utf-8")


def _tell_files(out: Path | None, written: Path | None, models: int, tables: list[Path]) -> list[str]:
    """What was written, and what can be done with it."""
    if out is None:
        return ["Nothing was written; --out says where."]
    if written is None:
        return ["Nothing was written: no case could be fitted."]
    command = " ".join(["rekka forecast", *map(telling.quote, [out, *tables])])
    return [f"written: {out} (the model{'s' if models > 1 else ''}), {written}", f"next: {command}"]


def _list_coefficients(model: Any) -> list[dict[str, Any]]:
    """The coefficients, without errors and intervals where the fit is no maximum: there they mean nothing."""
    blank = {} if model.certificate_.certified else dict.fromkeys(OF_A_MAXIMUM)
    return [row | blank for row in model.summary().to_dicts()]


def _describe_model(case: str, model: Any, file: Path | None) -> dict[str, Any]:
    """A fitted model as plain data."""
    return {
        "case": case,
        "states": model.n_states_,
        "log_likelihood": model.log_likelihood_,
        "certificate": str(model.certificate_.verdict),
        "reasons": model.certificate_.reasons,
        "coefficients": _list_coefficients(model),
        "bootstrap": _describe_bootstrap(model.resampled_),
        "file": None if file is None else str(file),
    }


def _describe_bootstrap(drawn: Any) -> dict[str, int] | None:
    """How many refits were asked for, and how many reached a certified maximum."""
    if drawn is None:
        return None
    return {"asked": drawn.asked, "certified": len(drawn.beta), "bridges": drawn.groups, "seed": drawn.seed}


def _tell_bootstrap(drawn: Any) -> str:
    """The same in words."""
    told = (
        f"bootstrap: {len(drawn.beta):,} of {count_of(drawn.asked, 'refit')} to {drawn.groups:,} bridges drawn "
        f"with replacement reached a certified maximum (seed {drawn.seed})."
    )
    if 2 * len(drawn.beta) >= drawn.asked:
        return told
    return f"{told} Fewer than half: intervals from them leave out what most draws say."


def _write_coefficients(coefficients: list[dict[str, Any]], out: Path | None) -> Path | None:
    """All coefficients as a table that Excel opens, if there are any and a place for them."""
    import polars as pl

    from rekka.study.sheets import write_csv

    if out is None or not coefficients:
        return None
    path = out.with_suffix(".csv") if out.suffix.lower() == ".json" else out / "coefficients.csv"
    write_csv(path, pl.DataFrame(coefficients, infer_schema_length=None))
    return path


def _show_ratio(row: dict[str, Any]) -> tuple[str, str, str]:
    """A hazard ratio, its interval and its unit; an intercept has none."""
    if row["hazard_ratio"] is None:
        return "", "", ""
    interval = telling.NOTHING if row["hr_low"] is None else f"{row['hr_low']:.4g} to {row['hr_high']:.4g}"
    return f"{row['hazard_ratio']:.4g}", interval, f"{row['unit']:g}"


def _print_model(console: Console, case: str, rows: int, model: Any) -> None:
    """Coefficients and certificate."""
    scale = "native units" if model.coefficient_scale_ == "native" else f"units of {model.coefficient_scale_}"
    table = telling.new_table(
        f"{escape(case)}: {count_of(rows, 'row')}, {model.n_states_} states, log-likelihood "
        f"{model.log_likelihood_:.4f}; {scale}"
    )
    telling.add_columns(table, "state", "term", "estimate", "std.err.", "ratio", "95 % interval", "per")
    table.columns[1].justify = "left"
    for row in _list_coefficients(model):
        error = telling.NOTHING if row["se"] is None else f"{row['se']:.2g}"
        table.add_row(str(row["state"]), escape(row["term"]), f"{row['estimate']:.4g}", error, *_show_ratio(row))
    console.print(table)
    console.print("ratio: of the hazard of leaving the state, for so many units more (per).", style="dim")
    console.print(escape(str(model.certificate_)), highlight=False)
    if model.resampled_ is not None:
        console.print(_tell_bootstrap(model.resampled_), highlight=False)
    console.print()
