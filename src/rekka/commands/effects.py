"""``rekka effects``: what each covariate does to the years until a state, in sentences, tables and pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from rekka.commands import asking, telling
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson
from rekka.commands.outputs import check_folder
from rekka.commands.reading import Only
from rekka.core.files import has_columns, has_mark, make_folder, write_whole
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    from rekka.fleet.models import CaseModel
    from rekka.forecast.effects import Effects
    from rekka.forecast.profiles import Profile
    from rekka.report.chart_profiles import ProfilePart, ProfileWords
    from rekka.report.views import FigureView

VERSION = 1  # of the plain data that --json gives
EFFECTS, PROFILES = "effects.csv", "profiles.csv"
LINE = 112  # letters over a picture


@dataclass(frozen=True, eq=False)
class Found:
    """What was found of one model: ``given`` of its covariates, and profiles where they are written."""

    model: CaseModel
    given: dict[str, float]
    effects: Effects
    profiles: tuple[Profile, ...] = ()

    @property
    def name(self) -> str:
        """Of the case."""
        return asking.name_model(self.model)


def effects(
    model: asking.ModelPath,
    start: Annotated[int, typer.Option(metavar="STATE", help="The state to start from.")] = 1,
    threshold: Annotated[
        int | None,
        typer.Option(metavar="STATE", help="The state to be reached. Default: 4, or the worst of fewer."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=CHANGE",
            help="A change, such as age_at_inspection_1=+10 or traffic_mean=x2. Default: ten years, twice the "
            "traffic, a round step of others. Repeatable.",
        ),
    ] = None,
    at: asking.At = None,
    age: asking.Age = "fixed",
    advance: asking.Advance = None,
    intervals: asking.Intervals = "normal",
    draws: asking.Draws = 1000,
    level: asking.Level = 0.95,
    seed: asking.DrawSeed = 0,
    only: Only = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER", help=f"Where {EFFECTS}, {PROFILES} and a picture for each covariate go."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what each covariate does to the years until a state: as sentences, with intervals.

    Each covariate is changed by itself, the others stay typical, and the mean years from --start to --threshold
    are compared before and after. With --out, hazards and years along the range of each covariate are written too,
    as a table and as pictures.

    For example:

      rekka effects girder.json

      rekka effects models --threshold 3 --change age_at_inspection_1=+20 --out effects

      rekka effects run --only "Main girder" --at traffic_mean=20000 --age advances
    """
    errors, console = new_console(stderr=True), new_console()
    changes = asking.read_pairs(change, "--change", "age_at_inspection_1=+10")
    given = asking.read_at(at)
    found, models = asking.load_cases(errors, model, only)
    if out is not None:
        _check_place(out, models, model)
    options = {"start": start, "threshold": threshold, "age": age, "advance": advance}
    doubt = asking.make_doubt(intervals, level, draws, seed)
    own_at, own_changes = asking.choose_own("at", given, models), asking.choose_own("change", changes, models)
    everything: list[Found] = []
    with new_bar(errors) as progress:
        task = progress.add_task("", total=len(models), what="Models")
        for one, values, some in zip(models, own_at, own_changes, strict=True):
            progress.update(task, description=asking.name_model(one))
            everything.append(_look(one, values, some, {**options, "doubt": doubt}, profiles=out is not None))
            progress.advance(task)
    files = [] if out is None else _write(errors, everything, out)
    if as_json:
        echo_json(_describe(found.name, everything, files))
        return
    for case in everything:
        _print_case(console, case)
    asking.print_notes(console, [*found.notes, *(f"{name}: {why}." for name, why in found.missing.items())])
    console.print(_tell_files(files, out), highlight=False, markup=False, soft_wrap=True)


def _look(
    model: CaseModel, at: dict[str, float], changes: dict[str, str], options: dict[str, Any], *, profiles: bool
) -> Found:
    """Effects of a model's covariates, and their profiles if they are wanted and the model knows their ranges."""
    from rekka.forecast.effects import marginal_effects

    found = marginal_effects(model.fit, at=at, changes=changes, labels=model.labels, **options)
    if not profiles or model.fit.survey is None:
        return Found(model, at, found)
    return Found(model, at, found, _list_profiles(model, at, options))


def _list_profiles(model: CaseModel, at: dict[str, float], options: dict[str, Any]) -> tuple[Profile, ...]:
    """Of each covariate. A grid has many points: draws, which take longest, give way to the delta method."""
    from rekka.forecast.profiles import profile_covariate

    doubt = options["doubt"]
    quick = replace(doubt, intervals="delta") if doubt.intervals == "normal" else doubt
    told = options | {"doubt": quick}
    return tuple(profile_covariate(model.fit, name, at=at, **told) for name in model.fit.covariates)


def _check_place(out: Path, models: Sequence[CaseModel], source: Path) -> None:
    """Refuse a folder with files of the same names that no earlier call has written."""
    from rekka.report.drawing import PICTURE_MARK
    from rekka.study.models import list_model_files

    is_table, is_picture = has_columns("case", "covariate"), has_mark(PICTURE_MARK)
    pictures = [out / name for names in _name_pictures(models).values() for name in names]
    check_folder(
        out,
        [out / EFFECTS, out / PROFILES, *pictures],
        list_model_files(source),
        lambda file: is_picture(file) if file in pictures else is_table(file),
    )


def _name_pictures(models: Sequence[CaseModel]) -> dict[str, list[str]]:
    """The files of the pictures, one for each covariate of each model."""
    names = [asking.name_model(model) for model in models]
    places = [""] if len(names) == 1 else [f"{name}-" for name in asking.name_apart(names)]
    return {
        name: [f"profiles-{place}{slug}.svg" for slug in asking.name_apart(model.fit.covariates)]
        for name, place, model in zip(names, places, models, strict=True)
    }


def _write(errors: Console, everything: Sequence[Found], out: Path) -> list[Path]:
    """Tables of all models together, and a picture for each covariate of each."""
    import polars as pl

    from rekka.core.sheets import write_csv

    make_folder(out)
    rows = [{"case": one.name} | row for one in everything for row in _list_rows(one.effects)]
    grids = [
        profile.table().insert_column(0, pl.lit(one.name).alias("case"))
        for one in everything
        for profile in one.profiles
    ]
    files = []
    if rows:
        files.append(out / EFFECTS)
        write_csv(files[-1], pl.DataFrame(rows, infer_schema_length=None))
    if grids:
        files.append(out / PROFILES)
        write_csv(files[-1], pl.concat([pl.DataFrame(grid) for grid in grids]))
    with errors.status("Drawing ..."):
        return files + _draw_all(everything, out)


def _tell_files(files: Sequence[Path], out: Path | None) -> str:
    if files:
        return f"written: {', '.join(map(str, files))}"
    if out is None:
        return "Nothing was written; --out FOLDER says where."
    return "Nothing was written: no model has covariates."


def _list_rows(found: Effects) -> list[dict[str, Any]]:
    """Effects as rows of a table that stands by itself."""
    known = {
        "start_state": found.start,
        "threshold_state": found.threshold,
        "level": found.level,
        "intervals": found.intervals,
        "course": found.course,
    }
    rows = found.table().to_dicts()
    return [row | known | {"sentence": told} for row, told in zip(rows, found.sentences(), strict=True)]


def _draw_all(everything: Sequence[Found], out: Path) -> list[Path]:
    from rekka.report.chart_profiles import draw_profile
    from rekka.report.drawing import draw_svg_file, mark_picture
    from rekka.report.palette import PRINT

    names = _name_pictures([one.model for one in everything])
    files = []
    for one in everything:
        for profile, name in zip(one.profiles, names[one.name], strict=False):  # an old model has no profiles
            stem = Path(name).stem
            figure = draw_profile(_plain_profile(profile), stem, words=_word_profile(profile), palette=PRINT)
            if figure is not None:
                files.append(out / name)
                head = [line for told in _head_lines(one, profile) for line in textwrap.wrap(told, LINE)]
                picture = draw_svg_file(_head_picture(figure, head, PRINT.ink)).encode()
                write_whole(files[-1], mark_picture(picture, "svg"))
    return files


def _head_picture(figure: FigureView, head: Sequence[str], ink: str) -> dict[str, Any]:
    """A figure as one picture, with lines of text over it: what a picture must say by itself."""
    from rekka.report.charts import combine

    text = {"text": list(head), "anchor": "start", "fontSize": 11, "color": ink, "offset": 10}
    return combine(figure) | {"title": text}


def _plain_profile(profile: Profile) -> ProfilePart:
    """A profile as the chart takes it."""
    from rekka.report.chart_profiles import ProfilePart

    return ProfilePart(**{name: _plain(getattr(profile, name)) for name in ProfilePart.__dataclass_fields__})


def _plain(values: Any) -> tuple[Any, ...]:
    """Nested tuples, None for what is no number."""
    import numpy as np

    if values.ndim > 1:
        return tuple(_plain(row) for row in values)
    return tuple(value if np.isfinite(value) else None for value in values.tolist())


def _word_profile(profile: Profile) -> ProfileWords:
    from rekka.report.chart_profiles import ProfileWords
    from rekka.report.summary import UNITS
    from rekka.report.words import load_words

    key = UNITS.get(profile.covariate)
    unit = "" if key is None else f" ({load_words('en')(f'unit.{key}')})"
    way = f"from state {profile.start} to state {profile.threshold}"
    return ProfileWords(
        covariate=f"{profile.covariate}{unit}",
        hazard="hazard of leaving the state (per year)",
        years=f"mean years {way}",
        state="state",
        value=f"{profile.covariate}{unit}",
        interval=f"{100 * profile.level:.6g} % interval",
        hazard_title="Hazard of leaving each state",
        years_title=f"Mean years {way}",
        hazard_alt=f"Hazards of leaving each state along {profile.covariate}.",
        years_alt=f"Mean years {way} along {profile.covariate}.",
    )


def _head_lines(one: Found, profile: Profile) -> list[str]:
    """What stands over a picture."""
    from rekka.forecast.matrices import tell_intervals

    head, rest = asking.split_notes(profile.notes)
    others = ", ".join(f"{name} = {value:,.6g}" for name, value in profile.others.items())
    told = tell_intervals(profile.level, profile.intervals)
    bands = "" if profile.intervals == "none" else f"Bands: {told}. "
    return [
        *head,
        *asking.tell_unchosen(one.model),
        f"{one.name}: along {profile.covariate}; {profile.course}" + (f"; {others}" if others else ""),
        f"{bands}Ticks: training rows, one for each percent. Shaded: beyond them, extrapolated.",
        *rest,
    ]


def _describe(source: str, everything: Sequence[Found], files: Sequence[Path]) -> dict[str, Any]:
    """Plain data."""
    cases = [
        {
            "case": one.name,
            "file": one.model.file,
            "certified": one.model.certified,
            "chosen": one.model.chosen,
            "reasons": list(one.model.fit.certificate.reasons),
            "fit_test": asking.describe_test(one.model),
        }
        | one.effects.to_dict()
        for one in everything
    ]
    head = {"format": "rekka-effects", "version": VERSION, "source": source}
    return head | {"cases": cases, "files": [str(file) for file in files]}


def _print_case(console: Console, one: Found) -> None:
    """Sentences, then their figures, then what to know."""
    found = one.effects
    head, notes = asking.split_notes(found.notes)
    where = [
        asking.tell_covariates(one.model.fit, found.covariates, one.given),
        f"Over the years: {found.course}.",
    ]
    asking.print_head(console, f"{one.name}: years {found.journey}", asking.tell_first(one.model, head), where)
    if not found.effects:
        console.print("The model has no covariates, so that there is nothing to change.\n")
        return
    for told in found.sentences():
        console.print(escape(told), highlight=False)
    console.print()
    _print_years(console, found)
    _print_ratios(console, found)
    if one.model.fit.survey is None:
        notes = [
            *notes,
            "No profiles: this model file, of an earlier version, does not know the covariates' ranges.",
        ]
    asking.print_notes(console, notes)


def _print_years(console: Console, found: Effects) -> None:
    from rekka.forecast.matrices import tell_intervals

    table = asking.new_table()
    names = ("covariate", "change", "mean", "after", "difference", "interval", "median", "after")
    telling.add_columns(table, *names)
    for one in found.effects:
        by = one.mean_difference
        table.add_row(
            escape(one.change.covariate), one.change.written, _years(one.mean_before.value),
            _years(one.mean_after.value), _years(by.value, "+"),
            _range(by.low, by.high, partial(_years, sign="+")),
            _years(one.median_before.value), _years(one.median_after.value),
        )  # fmt: skip
    told = tell_intervals(found.level, found.intervals)
    asking.print_table(console, f"Years {found.journey}, before and after each change; {told}", table)


def _print_ratios(console: Console, found: Effects) -> None:
    """A row for each covariate and state, which fits any number of states."""
    table = asking.new_table()
    telling.add_columns(table, "covariate", "change", "state", "ratio", "interval")
    for one in found.effects:
        for state, ratio in enumerate(one.hazard_ratios, start=1):
            name, change = (escape(one.change.covariate), one.change.written) if state == 1 else ("", "")
            ends = _range(ratio.low, ratio.high, _ratio)
            table.add_row(name, change, str(state), _ratio(ratio.value), ends)
    asking.print_table(console, "Hazard ratio of each state for the same change (above 1: left sooner)", table)


def _ratio(value: float) -> str:
    return f"{value:.3g}"


def _years(value: float, sign: str = "") -> str:
    """As in sentences, but short enough for a table."""
    from rekka.forecast.effects import show_years

    return show_years(value, sign=sign).replace("more than ", ">").replace("less than ", "<")


def _range(low: float, high: float, show: Callable[[float], str]) -> str:
    return telling.NOTHING if low != low else f"{show(low)} to {show(high)}"
