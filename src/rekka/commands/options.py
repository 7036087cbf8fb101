"""Options of the commands as tables of flags, and those that several share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rekka.core.errors import BadOption

if TYPE_CHECKING:
    from rekka.data.transitions import ReadingOptions

    Reader = ReadingOptions
else:
    Reader = Any  # what is heavy waits until a command runs

Tables = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE",
        help="CSV, Excel or Parquet; or a folder of inspections, inventory and traffic.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines, and nothing else.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print everything: how it was read, all tables, findings."),
]
VerboseAll = Annotated[
    bool,
    typer.Option("--verbose", "-v", "--all", help="Print every component in full, however many there are."),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)]
ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model file of rekka fit, a folder of them, or a run folder.", show_default=False
    ),
]
Asked = dict[str, Any]  # what was given of a table of flags, by place
Text, Many, Number, Real, Place = str | None, list[str] | None, int | None, float | None, Path | None


class Flag(NamedTuple):
    """Option of a command: its type, where its value goes, and its help.

    ``place`` is a parameter of the function that the command calls, or section.key of a mapping or plan.
    """

    name: str
    kind: Any
    place: str
    metavar: str | None
    words: str
    default: Any = None
    least: float | None = None
    read: Callable[[Any], Any] | None = None  # the value from what was typed
    most: float | None = None

    @property
    def parameter(self) -> str:
        """Name of the parameter in Python, apart from the commands' own."""
        return "flag_" + self.name.split("/")[0].removeprefix("--").replace("-", "_")

    def declare(self) -> inspect.Parameter:
        """Parameter as Typer takes it."""
        panel = _PANELS.get(self.place.split(".")[0])
        option = typer.Option(
            self.name,
            help=self.words,
            rich_help_panel=panel,
            metavar=self.metavar,
            min=self.least,
            max=self.most,
        )
        default = False if self.kind is bool else self.default
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.parameter, kind, default=default, annotation=Annotated[self.kind, option])


def split_list(names: str) -> tuple[str, ...]:
    """Split a list with commas."""
    return tuple(name.strip() for name in names.split(","))


def read_years(text: str) -> float | str:
    """Read a number of years; auto, which is to be chosen, stays."""
    try:
        return float(text)
    except ValueError:
        if text != "auto":
            raise typer.BadParameter(f"{text!r} is not a number of years", param_hint="--half-life") from None
        return text


def read_labels(text: str) -> list[str | list[str]]:
    """Read labels with commas between them; those with a slash between them are one rating."""
    from rekka.data.mapping import read_label

    return [read_label(part) for part in text.split(",")]


def read_pairs(texts: Sequence[str], hint: str, example: str) -> dict[str, str]:
    """Read NAME=VALUE of an option, several with commas between them, or the option several times."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, sign, value = (side.strip() for side in part.partition("="))
        if not (name and sign and value):
            raise typer.BadParameter(f"{part.strip()!r} is not like {example}", param_hint=hint)
        found[name] = value
    return found


def read_numbers(texts: Sequence[str], hint: str, example: str, *, levels: bool = False) -> dict[str, Any]:
    """Read NAME=NUMBER of an option; with ``levels`` also NAME=TEXT, the level of a category."""
    found: dict[str, Any] = {}
    for name, text in read_pairs(texts, hint, example).items():
        try:
            found[name] = float(text)
        except ValueError:
            if levels:
                found[name] = text
                continue
            raise typer.BadParameter(f"{f'{name}={text}'!r} is not like {example}", param_hint=hint) from None
    return found


def read_list(text: str, hint: str, example: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list such as {example}", param_hint=hint) from None


ONLY = Flag("--only", Many, "only", "CASE", "Only this component. Repeatable.")
THRESHOLD = Flag(
    "--threshold", Text, "threshold", "RATING",
    "The rating whose reaching is asked for, by its label: 4, Poor, d, III, 'below 70'. Default: 4 (Poor) of "
    "ratings 9 to 0, III of I to IV, else the fourth, or the worst of fewer.",
)  # fmt: skip
USE = Flag(
    "--use", Text, "covariates", "LIST", "Only these covariates, such as age_at_inspection_1,traffic_mean.",
    read=split_list,
)  # fmt: skip
TEST_FIT = Flag(
    "--test-fit/--no-test-fit", bool | None, "test_fit", None,
    "Test whether each model describes the rows it was fitted to: about a second each. Default: for up to 50 "
    "components.",
)  # fmt: skip
UNITS = Flag(
    "--unit", Many, "units", "NAME=NUMBER", "Unit of a hazard ratio, such as traffic_mean=1000. Repeatable.",
    read=partial(read_numbers, hint="--unit", example="traffic_mean=1000"),
)  # fmt: skip
RIDGE = Flag("--ridge", float, "ridge", None, "Penalty on slopes, in z-scored units.", 0.0, 0)
ADVANCE = Flag(
    "--advance", Many, "advance", "NAME",
    "A covariate that advances by the year, if not called age. Repeatable.",
)  # fmt: skip
GOES_ON = ADVANCE._replace(words="A covariate that advances by the year, if not called age. Repeatable.")
CLOCK = Flag(
    "--clock", str, "clock", "WHERE",
    "Where ages are taken in the fit: at the middle of each interval, or at its start, as in the paper.", "middle",
)  # fmt: skip
HISTORIES = (
    Flag(
        "--errors",
        Text,
        "errors",
        "WHICH",
        "Errors of inspection by one rating: adjacent (probabilities for each rating) or adjacent-common (one "
        "better, one worse, the same for all).",
    ),
    Flag(
        "--frailty",
        Text,
        "frailty",
        "LAW",
        "gamma: bridges with the same covariates deteriorate at different rates; rekka bridges ranks them.",
    ),
    Flag(
        "--frailty-by",
        Text,
        "frailty_by",
        "COLUMN",
        "What shares one rate: bridge (the default), member, or a column such as a district.",
    ),
    Flag(
        "--improvements",
        Text,
        "improvements",
        "WHICH",
        "Small repairs without a record, by one rating: common (one share a year) or each (one for each rating).",
    ),
    Flag(
        "--trend",
        Text,
        "trend",
        "WHICH",
        "Change of the hazards over calendar years: common (the same for all ratings) or each.",
    ),
    CLOCK._replace(
        words="Where ages are taken in the fit: at the middle of each interval, at its start, as in the "
        "paper, or running: they advance within the interval by the year."
    ),
    Flag(
        "--first",
        Text,
        "first",
        "WHICH",
        "The true condition at the first visit: given (as rated, the default; estimated where there are errors), "
        "new (the best rating at age 0), or a probability for each rating, such as 0.6,0.3,0.1.",
    ),
    Flag(
        "--half-life",
        Text,
        "half_life",
        "YEARS",
        "A visit so many years before the last one has half its weight in the fit, with histories or pairs; with "
        "--models also auto. Default: all have the same weight.",
        read=read_years,
    ),
)  # of models of histories
MODELS = Flag(
    "--models", Text, "models", "WHICH",
    "Choose the elements of histories by forecasts from days inside the records: auto (added one at a time as "
    "long as they forecast better), or a list such as plain,errors,errors+trend. Elements: errors, improvements, "
    "trend, running (clock), frailty.",
)  # fmt: skip
SINCE = Flag(
    "--since",
    Text,
    "since",
    "DATE",
    "Only transitions that begin on this day or later train; with --models also auto.",
)
INTERVALS = Flag(
    "--intervals", str, "intervals", "HOW",
    "Uncertainty of the parameters: delta, normal (draws), bootstrap (refits of rekka fit --bootstrap) or none.",
    "delta",
)  # fmt: skip
SHOCKS = Flag(
    "--shocks", bool, "shocks", None,
    "A second, wider prediction interval of totals, for errors that all members share: as large as forecasts from "
    "up to six earlier years missed by, each a fit of its own. Needs dates.",
)  # fmt: skip
DRAWS = (
    Flag("--draws", int, "draws", None, "Draws for --intervals normal.", 1000),
    Flag("--level", float, "level", None, "Level of the intervals.", 0.95),
    Flag("--seed", int, "seed", None, "Of the draws.", 0, 0),
)
AT = (
    Flag("--at", Many, "at", "LIST",
         "Covariates, such as age_at_inspection_1=40,material=steel. Default: typical, the medians and most "
         "frequent levels of the training rows.",
         read=partial(read_numbers, hint="--at", example="age_at_inspection_1=40", levels=True)),
    Flag("--age", str, "age", "HOW",
         "Age over the years: fixed, advances, or held (not beyond the oldest of the training rows).", "fixed"),
    ADVANCE,
)  # fmt: skip
MEMORY = Flag(
    "--memory", Text, "memory", "SIZE",
    "How much memory may be used, such as 1GB: a table of transitions in Parquet may be larger. Default: half of "
    "what is free.",
)  # fmt: skip
CLUSTER = Flag(
    "--cluster", Text, "cluster", "ADDRESS",
    "Fit on a Dask cluster: its scheduler's address, such as tcp://host:8786, or local or local:4 for worker "
    "processes on this machine.",
)  # fmt: skip

_PANELS = {
    "file": "How to read the file",
    "table": "How to read the file",
    "columns": "Which column is what (obvious names need no option)",
    "wide": "Which column is what (obvious names need no option)",
    "state": "What the values mean",
    "dates": "What the values mean",
    "rules": "What becomes of doubtful visits and pairs",
}
_PANELS |= dict.fromkeys(
    ({one.place for one in (*HISTORIES, MODELS)} - {CLOCK.place, "half_life"}),
    "Histories: all visits between two repairs together",
)
READING = (
    Flag("--mapping", Path | None, "file.mapping", "TOML", "All of this in a TOML file; options overrule it."),
    Flag("--join", list[Path] | None, "file.join", "FILE", "Another table by bridge, as traffic. Repeatable."),
    Flag("--nbi", bool, "file.nbi", None, "The files are yearly National Bridge Inventory files."),
    Flag("--allow", Many, "file.allow", "CODE", "Continue although this check stops the work: R109. Repeatable."),
    Flag("--encoding", Text, "table.encoding", "NAME", "Text encoding: utf-8, cp932, latin-1, ..."),
    Flag("--separator", Text, "table.separator", "CHAR", "What stands between fields; tab for a tab."),
    Flag("--decimal", Text, "table.decimal", "CHAR", "The decimal mark: . or ,"),
    Flag("--sheet", Text, "table.sheet", "NAME", "The sheet of an Excel workbook."),
    Flag("--header-row", Number, "table.header_row", "ROW", "Row of the header, from 1; 0 for none."),
    Flag("--bridge", Text, "columns.bridge", "COLUMN", "Bridge or other asset."),
    Flag("--component", Many, "columns.component", "COLUMN",
         "Component: girder, deck, ... Or NAME=COLUMN, a column of ratings for each, such as Deck=DECK_COND; "
         "repeatable."),
    Flag("--case", Text, "columns.case", "COLUMN", "The same as --component COLUMN."),
    Flag("--member", Text, "columns.member", "COLUMN", "Which of several such members."),
    Flag("--visit", Text, "columns.visit", "COLUMN", "Number of the inspection."),
    Flag("--date", Text, "columns.date", "COLUMN", "Date of the inspection."),
    Flag("--state", Text, "columns.state", "COLUMN", "Condition found."),
    Flag("--completed", Text, "columns.completed", "COLUMN", "Year or date of completion; gives the age."),
    Flag("--length", Text, "columns.length", "COLUMN", "Length in metres."),
    Flag("--width", Text, "columns.width", "COLUMN", "Width in metres; gives the area."),
    Flag("--area", Text, "columns.area", "COLUMN", "Area in square metres."),
    Flag("--traffic", Text, "columns.traffic", "COLUMN", "Vehicles a day."),
    Flag("--repair", Many, "columns.repairs", "COLUMN", "Year or date of a repair. Repeatable."),
    Flag("--covariate", Many, "columns.covariates", "COLUMN",
         "A further column to use: numbers, or a category (text, yes and no). Repeatable, or a list."),
    Flag("--category", Many, "columns.categories", "COLUMN",
         "A further column to use whose numbers are names, such as a route class. Repeatable."),
    Flag("--keep", Many, "columns.keep", "COLUMN", "A column to carry along. Repeatable."),
    Flag("--wide", Text, "wide.state", "PATTERN", "Ratings in columns: '{year}', 'BCI {year}', 'rank_{visit}'."),
    Flag("--wide-date", Text, "wide.date", "PATTERN", "Their dates, for columns by visit: 'date_{visit}'."),
    Flag("--labels", Text, "state.labels", "LIST",
         "Ratings, best first, such as good,fair,poor; several that are one with a slash: 9/8,7,6,5,4/3/2/1/0.",
         read=read_labels),
    Flag("--best", Number, "state.best", "NUMBER", "The best rating, where they are numbers; with --worst."),
    Flag("--worst", Number, "state.worst", "NUMBER", "The worst rating."),
    Flag("--worst-first", bool, "state.worst_first", None, "1, a or I is the worst."),
    Flag("--bands", Text, "state.bands", "LIST", "Limits in an index: 85,75,60 (more is better) or 5,10,20.",
         read=partial(read_list, hint="--bands", example="85,75,70,60")),
    Flag("--keep-ratings", bool, "state.merge", None,
         "Keep ratings apart that few records leave, on a scale of more than 5.", read=lambda kept: not kept),
    Flag("--not-inspected", Text, "state.missing", "LIST", "Ratings that mean 'not inspected', such as 0,N."),
    Flag("--dates", Many, "dates.inspection", "FORMAT",
         "iso, year, fiscal_year, month, mmyy, dmy, mdy, era, or a pattern such as %d.%m.%Y. Repeatable."),
    Flag("--upward", Text, "rules.upward", "RULE",
         "Upward moves: set_aside (default), restart, keep, keep_all or error."),
    Flag("--repairs", Text, "rules.repairs", "RULE", "A repair between: set_aside (default), restart or ignore."),
    Flag("--same-day", Text, "rules.same_day", "RULE",
         "Several records of one day: worst (default), first, last, set_aside or error."),
    Flag("--interval", Text, "rules.interval", "RULE", "Dates out of order: set_aside (default) or error."),
    Flag("--max-gap", float | None, "rules.max_gap", "YEARS", "Exclude pairs further apart."),
    Flag("--missing", Text, "rules.missing", "RULE",
         "Missing covariates: set_aside (default), error, or level: a level of its own, in categories."),
    Flag("--outside", Text, "rules.outside", "RULE", "Ratings outside the scale: set_aside (default) or error."),
)  # fmt: skip
PLAN = (
    Flag("--methods", Text, "study.methods", "LIST",
         "Scalings, such as zscore,boxcox+zscore; paper (max,minmax,zscore,boxcox; the default), beyond "
         "(boxcox+zscore,yeojohnson+zscore,log+zscore,robust), small (ridge,pooled) or all."),
    Flag("--preset", Text, "study.presets", "NAME",
         "exact (Newton, exact likelihood; the default), paper (its conditions) or both.", read=split_list),
    Flag("--clock", Text, "study.clock", "WHERE",
         "Where ages are taken: at the middle of each interval (the default of exact), or at its start (as in the "
         "paper; of paper and both)."),
    ONLY._replace(place="study.cases"),
    USE._replace(place="study.covariates"),
    MODELS._replace(
        place="study.models",
        words="After the study, choose the elements of histories by forecasts from days inside the records, and "
        "test the choice once on the last years: auto, or a list (see rekka backtest). rekka forecast RUN then "
        "uses them.",
    ),
    Flag("--partition", Text, "partition.scheme", "SCHEME",
         "auto (the default), paper (visits 3 to 4; 4 to 5), bridge or date."),
    Flag("--until", Text, "partition.until", "DATE", "Last day of training, or a year, for --partition date."),
    Flag("--rule", Text, "study.rule", "NAME",
         "How to choose: guarded (the default method, unless another is shown to have a lower log loss; the "
         "default) or pareto (the paper's, over accuracy and cost)."),
    Flag("--select-on", Text, "study.select_on", "ROWS",
         "Rows the choice is made on: validation, folds, golden (optimistic), or auto: validation, folds where it "
         "is small, golden for --rule pareto."),
    Flag("--default", Text, "guard.default", "METHOD",
         "The method that the others are compared with. Default: zscore."),
    Flag("--accuracy-margin", Real, "guard.accuracy_margin", "SHARE",
         "Loss of accuracy that is tolerated where log loss is lower. Default: 0.01."),
    Flag("--resamples", Number, "guard.resamples", None,
         "Resamples, at most, in nearly all of which a method must reach a maximum. Default: 20.", least=0),
    Flag("--ladder/--no-ladder", bool | None, "guard.ladder", None,
         "Where no method is certified and stable, try simpler models: pooled, ridge, no covariates, bounds (the "
         "default)."),
    Flag("--confirm/--no-confirm", bool | None, "study.confirm", None,
         "Score the choice on the confirmation rows, once (the default)."),
    Flag("--cost", Text, "study.cost", "NAME",
         "The cost that is weighed against accuracy: seconds, evaluations or auto (the preset's; default)."),
    Flag("--seed", Number, "study.seed", None, "Of the split and of the start. Default: 20260924.", least=0),
    Flag("--repeats", Number, "study.repeats", None, "Timings of each trial. Default: 1.", least=1),
)  # fmt: skip


def asks(*flags: Flag) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these flags; it takes those that were given as ``asked``."""
    return lambda command: _declare(command, "asked", flags, _gather)


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it takes them together as ``reader``."""
    return _declare(command, "reader", READING, _collect_reading, last=True)


def plans_study(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a study's plan; it takes their sections as ``plan``."""
    return _declare(command, "plan", PLAN, _collect_plan)


def _declare(
    command: Callable[..., None],
    name: str,
    flags: Sequence[Flag],
    collect: Callable[[dict[Flag, Any]], Any],
    *,
    last: bool = False,
) -> Callable[..., None]:
    """Put flags in the place of one parameter of a command, or at the end, and collect their values for it."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        typed = {flag: given.pop(flag.parameter) for flag in flags}
        value = collect(typed)
        try:
            command(**given, **{name: value})
        except BadOption as error:
            _name_flag(error, typed)
            raise

    own = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in inspect.signature(command, eval_str=True).parameters.values()
    ]
    place = next(number for number, one in enumerate(own) if one.name == name)
    declared = [flag.declare() for flag in flags]
    rest = own[place + 1 :]
    parameters = [*own[:place], *rest, *declared] if last else [*own[:place], *declared, *rest]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _name_flag(error: BadOption, typed: Mapping[Flag, Any]) -> None:
    """Name the option that was typed where a message begins with its name in Python: 'reader is'."""
    message = str(error)
    for flag, value in typed.items():
        names = {flag.place.split(".")[-1], flag.name.removeprefix("--").replace("-", "_")}
        if value not in (None, []) and message.startswith(tuple(f"{name} is " for name in names)):
            error.args = (f"{flag.name} is {message.split(' is ', 1)[1]}",)


def _gather(given: Mapping[Flag, Any]) -> Asked:
    """Options that were given, by place."""
    return {
        flag.place: _translate(flag, value)
        for flag, value in given.items()
        if value is not None and value != [] and (value is not False or flag.kind is not bool)
    }


def _collect(given: Mapping[Flag, Any]) -> dict[str, dict[str, Any]]:
    """Options that were given, by section and key."""
    sections: dict[str, dict[str, Any]] = {}
    for place, value in _gather(given).items():
        section, key = place.split(".")
        sections.setdefault(section, {})[key] = value
    return sections


def _collect_reading(given: Mapping[Flag, Any]) -> Reader:
    """Reading options from the sections of a mapping."""
    from rekka.data.direction import read_allowed
    from rekka.data.transitions import ReadingOptions

    sections = _collect(given)
    if "component" in sections.get("columns", {}):
        sections["columns"] |= _read_components(sections["columns"].pop("component"))
    file = sections.pop("file", {})
    joined = {"join": [{"file": str(path)} for path in file["join"]]} if "join" in file else {}
    allow = read_allowed(file.get("allow", ()))
    return ReadingOptions(file.get("mapping"), {**sections, **joined}, file.get("nbi", False), allow)


def _read_components(texts: Sequence[str]) -> dict[str, Any]:
    """Column that holds the component, or columns of ratings by component."""
    if len(texts) == 1 and "=" not in texts[0]:
        return {"case": texts[0]}
    return {"components": read_pairs(texts, "--component", "Deck=DECK_COND")}


def _collect_plan(given: Mapping[Flag, Any]) -> dict[str, dict[str, Any]]:
    """Sections of a plan; the seed is of the split, too."""
    sections = _collect(given)
    split, study = sections.setdefault("partition", {}), sections.get("study", {})
    if "until" in split:
        split.setdefault("scheme", "date")
    if "seed" in study:
        split["seed"] = study["seed"]
    return sections


def _translate(flag: Flag, value: Any) -> Any:
    if flag.read is not None:
        return flag.read(value)
    if flag.metavar == "LIST":
        return [part.strip() for part in value.split(",")]
    if flag.name == "--separator" and value in ("tab", r"\t"):
        return "\t"
    return value
