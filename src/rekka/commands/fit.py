"""``rekka fit``: the model fitted to all rows of each case, shown and saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

import rekka
from rekka.commands import asking, telling
from rekka.commands.asking import name_apart
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson, Tables
from rekka.commands.outputs import check_folder
from rekka.commands.reading import Only, Reader, TestFit, Units, Use, read_units, reads_tables, split_list
from rekka.commands.study import Cluster, Memory
from rekka.core.errors import BadOption, MissingColumns, count_of, name_some, no_such_case
from rekka.core.files import has_columns, has_mark, make_folder, refuse_foreign, refuse_inputs, write_text
from rekka.core.terminal import echo_json, new_console
from rekka.streaming.cluster.failures import ClusterError

OF_A_MAXIMUM = ("se", "z", "p", "ci_low", "ci_high", "hr_low", "hr_high")  # what a fit elsewhere does not have
MANY_CASES = 20  # of more, a summary is printed
NAMES_SHOWN, LONGEST_NAME = 3, 40  # in that summary
NOT_FITTED = "not fitted"


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
    advance: asking.Advance = None,
    clock: asking.Clock = "middle",
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
    test_fit: TestFit = None,
    memory: Memory = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads over rows. Default: one a core.")] = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the models go: a .json file for one case, a folder for several."),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print every model in full, however many components there are.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit the model to all rows of each case: coefficients in native units, hazard ratios, certificate.

    Standard errors are clustered by bridge. Beside the models stand their coefficients as CSV. A model's file has
    all that rekka forecast needs: the case, the names of its states, the ranges of its covariates, and the refits
    of --bootstrap. A table of transitions in Parquet, a file or a folder, may be larger than memory. Above 20
    components, a count of the verdicts is printed instead of every model.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models

      rekka fit inspections.xlsx --bootstrap 200 --out models

      rekka fit nation/ --memory 1GB --out models
    """
    from rekka.data.transitions import refuse_text

    units = read_units(unit)
    errors, console = new_console(stderr=True), new_console()
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
    table = _place_coefficients(files, out, reader.inputs(tables))
    options = {"scaling": scaling, "ridge": ridge, "units": units or None, "memory": memory, "threads": threads}
    options |= {"advance": advance or None, "clock": clock}
    described, coefficients, failed = [], [], 0
    tests = _asks_for_tests(len(cases), test_fit)
    brief = len(cases) > MANY_CASES and not show_all
    for case, rows in found.split(cases):
        model, reason = _fit_case(errors, case, rows, names, options, cluster)
        if model is not None and bootstrap:
            model, reason = _draw_again(errors, case, model, found.hold(case, rows), bootstrap, seed)
        if reason is not None:
            failed += 1
            if not brief:  # else the summary says it
                lacks = "cannot be fitted" if model is None else "has no bootstrap"
                errors.print(f"{case} {lacks}: {reason}\n", highlight=False, markup=False)
        if model is None:
            described.append({"case": case, "reason": reason})
            continue
        if tests:
            model = _test_fit(errors, case, model, found.hold(case, rows))
        if case in files:
            _write_model(files[case], model, case, found)
        coefficients += [{"case": case} | row for row in _list_coefficients(model)]
        described.append(_describe_model(case, model, found.labels, files.get(case)))
        if not (as_json or brief):
            _print_model(console, case, found.cases[case], model, found.labels)
    if brief and not as_json:
        _print_summary(console, described, bootstrap)
    written = _write_coefficients(coefficients, table)
    if as_json:
        echo_json(described)
    else:
        last = _tell_tests(described, None if tests or test_fit is not None else len(cases))
        for line in (*last, *_tell_files(out, written, len(files), tables)):
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

    def split(self, cases: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Each case and its rows, as a query.

        The table is scanned once for all cases that can be held together, not once for each: of many small cases
        that takes a time which grows with their number, not with its square.
        """
        from rekka.data.queries import collect

        for together in self._hold_together(cases):
            rows = self.query if len(self.cases) == 1 else self.query.filter(_is_one_of(together))
            if len(together) == 1:
                yield together[0], rows
                continue
            parts = collect(rows, "The table").partition_by("case", as_dict=True)
            yield from ((case, parts[case,].lazy()) for case in together)

    def _hold_together(self, cases: Sequence[str]) -> Iterator[list[str]]:
        """Cases in their order, as many at a time as have few enough rows to be held."""
        from rekka.streaming.blocks import WHOLE

        together: list[str] = []
        held = 0
        for case in cases:
            if together and held + self.cases[case] > WHOLE:
                yield together
                together, held = [], 0
            together.append(case)
            held += self.cases[case]
        yield together

    def hold(self, case: str, rows: Any) -> Any:
        """The rows of a case in memory; None where they are too many to be refitted again and again."""
        from rekka.streaming.blocks import WHOLE

        return rows.collect() if self.cases[case] <= WHOLE else None


def _is_one_of(cases: Sequence[str]) -> Any:
    import polars as pl

    return pl.col("case").is_in(list(cases))


def _read(reader: Reader, tables: list[Path], cluster: str | None) -> _Found | None:
    """The transitions, which stay where they are if there are many; None where there are none."""
    from rekka.data.transitions import LazyTransitions
    from rekka.streaming.blocks import WHOLE

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
    varying = _find_varying(rows, names)
    dropped = set(names) - set(varying)
    advance = options["advance"] and [name for name in options["advance"] if name not in dropped]
    model = rekka.ExponentialHazardMarkovModel(covariates=varying, **options | {"advance": advance})
    passes = count(1)
    try:
        with errors.status(f"Fitting {escape(case)} ...") as status:

            def tell(stage: str) -> None:
                status.update(f"Fitting {escape(case)}: {stage} (pass {next(passes)} over the rows) ...")

            return model.fit(rows, groups="bridge_id", cluster=cluster, on_pass=tell), None
    except (MissingColumns, BadOption, ClusterError):  # wrong for every case
        raise
    except rekka.InputError as error:
        return None, str(error)


def _find_varying(rows: Any, names: Sequence[str]) -> list[str]:
    """The covariates that do not have one value in all rows of the case; those that are not there too."""
    import polars as pl

    schema = rows.collect_schema()
    there = [name for name in names if name in schema and schema[name].is_numeric()]
    same = rows.select((pl.col(name).min() == pl.col(name).max()) for name in there).collect(engine="streaming")
    constant = [name for name in there if same[name].item()]
    return [name for name in names if name not in constant]


def _draw_again(
    errors: Console, case: str, model: Any, rows: Any, draws: int, seed: int
) -> tuple[Any, str | None]:
    """The model with its bootstrap; as it is, and why, where it can have none."""
    from rekka.streaming.blocks import WHOLE

    if rows is None:
        return model, f"more than {count_of(WHOLE, 'row')} are not refitted."
    with new_bar(errors) as progress:
        task = progress.add_task(case, total=draws, what="Refits")
        try:
            drawn = model.bootstrap(
                rows,
                rows["state_2"],
                groups=rows["bridge_id"].to_numpy(),
                draws=draws,
                seed=seed,
                on_progress=lambda done, _: progress.update(task, completed=done),
            )
        except rekka.InputError as error:
            return model, str(error)
    return drawn, None


def _asks_for_tests(components: int, asked: bool | None) -> bool:
    from rekka.evaluation.calibration import MOST_TESTED

    return components <= MOST_TESTED if asked is None else asked


def _test_fit(errors: Console, case: str, model: Any, rows: Any) -> Any:
    """The model with its test of fit; the model as it is, and a sentence, where there are too many rows."""
    from rekka.evaluation.goodness import find_links
    from rekka.streaming.blocks import WHOLE

    if rows is None:
        told = f"{case} has no test of fit: more than {count_of(WHOLE, 'row')} are not refitted.\n"
        errors.print(told, highlight=False, markup=False)
        return model
    with errors.status(f"Testing the fit of {escape(case)} ..."):
        return model.check_fit(rows, rows["state_2"], follows=find_links(rows))


def _tell_tests(described: Sequence[dict[str, Any]], untested: int | None) -> list[str]:
    """What several tests come to, or that none was made because there are too many components."""
    from rekka.evaluation.calibration import tell_untested

    if untested is not None:
        return [tell_untested(untested)]
    tests = [one["fit_test"] for one in described if one.get("fit_test") is not None]
    rejected = sum(test["rejected"] for test in tests)
    if not rejected or len(tests) < 2:
        return []
    level = tests[0]["level"]
    return [
        f"{rejected} of {count_of(len(tests), 'model')} do not describe their data; at {100 * level:g} %, chance "
        f"alone would reject {level * len(tests):.2g} of as many right ones."
    ]


def _write_model(file: Path, model: Any, case: str, found: _Found) -> None:
    """A model with what it is of, and how its table was read; joined files count from where the model is."""
    from rekka.core.folders import relate

    make_folder(file.parent)
    reading = found.reading and found.reading.relocate(lambda name: relate(name, file.parent))
    text = model.to_json(case=case, labels=found.labels, reading=reading)
    write_text(file, text + "\n")


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


def _describe_model(case: str, model: Any, labels: Sequence[str] | None, file: Path | None) -> dict[str, Any]:
    """A fitted model as plain data."""
    return {
        "case": case,
        "states": model.n_states_,
        "log_likelihood": model.log_likelihood_,
        "clock": _describe_clock(model.clock_),
        "certificate": model.certificate_.headline,
        "reasons": model.certificate_.reasons,
        "remarks": model.certificate_.remarks,
        "coefficients": _list_coefficients(model),
        "bootstrap": _describe_bootstrap(model.resampled_),
        "fit_test": None if model.fit_test_ is None else model.fit_test_.to_dict(labels),
        "file": None if file is None else str(file),
    }


def _describe_clock(clock: Any) -> dict[str, Any]:
    """Which covariates advance, and where in an interval they are taken."""
    return {"kind": clock.kind, "advance": clock.names, "mean_years": clock.mean_years, "words": clock.words}


def _describe_bootstrap(drawn: Any) -> dict[str, int] | None:
    """How many refits were asked for, and how many reached a maximum."""
    if drawn is None:
        return None
    return {"asked": drawn.asked, "certified": len(drawn.beta), "bridges": drawn.groups, "seed": drawn.seed}


def _tell_bootstrap(drawn: Any) -> str:
    """The same in words."""
    told = (
        f"bootstrap: {len(drawn.beta):,} of {count_of(drawn.asked, 'refit')} to {drawn.groups:,} bridges drawn "
        f"with replacement reached a maximum (seed {drawn.seed})."
    )
    if 2 * len(drawn.beta) >= drawn.asked:
        return told
    return f"{told} Fewer than half: intervals from them leave out what most draws say."


def _place_coefficients(models: dict[str, Path], out: Path | None, inputs: Sequence[Path]) -> Path | None:
    """The file of the coefficients, if there is a place for them; refuse to write over what is not ours."""
    from rekka.fleet.models import MARK

    if out is None:
        return None
    is_table = has_columns("case", "state", "term", "estimate", "hazard_ratio")
    if out.suffix.lower() == ".json":
        table = out.with_suffix(".coefficients.csv")
        refuse_inputs([out, table], inputs)
        refuse_foreign([table], is_table)
        return table
    table, is_model = out / "coefficients.csv", has_mark(MARK)
    files = [*models.values(), table]
    check_folder(out, files, inputs, lambda file: is_table(file) if file == table else is_model(file))
    return table


def _write_coefficients(coefficients: list[dict[str, Any]], table: Path | None) -> Path | None:
    """All coefficients as a table that Excel opens, if there are any and a place for them."""
    import polars as pl

    from rekka.core.sheets import write_csv

    if table is None or not coefficients:
        return None
    write_csv(table, pl.DataFrame(coefficients, infer_schema_length=None))
    return table


def _show_ratio(row: dict[str, Any]) -> tuple[str, str, str]:
    """A hazard ratio, its interval and its unit; an intercept has none."""
    if row["hazard_ratio"] is None:
        return "", "", ""
    interval = telling.NOTHING if row["hr_low"] is None else f"{row['hr_low']:.4g} to {row['hr_high']:.4g}"
    return f"{row['hazard_ratio']:.4g}", interval, f"{row['unit']:g}"


def _print_summary(console: Console, described: Sequence[dict[str, Any]], draws: int) -> None:
    """Count the components of each verdict, the most frequent first, and name some of them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in described:
        groups.setdefault(one.get("certificate", NOT_FITTED), []).append(one)
    certified = sum(len(some) for verdict, some in groups.items() if verdict.startswith("certified"))
    console.print(
        f"[bold]{count_of(len(described), 'component')}: {certified:,} with a certified maximum.[/]",
        highlight=False,
    )
    for verdict, some in sorted(groups.items(), key=lambda group: -len(group[1])):
        names = name_some([_shorten(one["case"]) for one in some], NAMES_SHOWN)
        lines = [names] if verdict != NOT_FITTED else [names, f"{_shorten(some[0]['case'])}: {some[0]['reason']}"]
        console.print(f"{len(some):>9,}  {verdict}", highlight=False)
        for line in lines:
            console.print(Padding(escape(line), (0, 0, 0, 11)), style="dim", highlight=False)
    drawn = [one["bootstrap"] for one in described if draws and "bootstrap" in one]
    few = sum(one is None or 2 * one["certified"] < one["asked"] for one in drawn)
    if few:
        console.print(
            f"bootstrap: {count_of(few, 'component')} with none, or with fewer than half of the refits at a "
            "maximum."
        )
    misfits = [_shorten(one["case"]) for one in described if (one.get("fit_test") or {}).get("rejected")]
    if misfits:
        told = f"Rejected by the test of fit: {name_some(misfits)}."
        console.print(escape(told), style="bold red", highlight=False)
    console.print("--all prints every model in full, --json all of them for machines.\n", highlight=False)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def _print_model(console: Console, case: str, rows: int, model: Any, labels: Sequence[str] | None) -> None:
    """Coefficients, certificate and test of fit; a misfit stands above all."""
    from rekka.fleet.models import tell_misfit

    test = model.fit_test_
    misfit = tell_misfit(case, test, labels)
    if misfit is not None:
        console.print(f"[bold red]{escape(misfit)}[/]", highlight=False)
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
    if model.clock_.words:
        console.print(escape(model.clock_.words), style="dim", highlight=False)
    console.print(escape(str(model.certificate_)), highlight=False)
    if test is not None:
        told = test.causes if test.rejected else (f"{test.describe()}.",)
        console.print(escape(" ".join(["test of fit:", *told])), highlight=False)
    if model.resampled_ is not None:
        console.print(_tell_bootstrap(model.resampled_), highlight=False)
    console.print()
