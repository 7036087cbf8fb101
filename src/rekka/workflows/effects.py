"""``measure_effects``: effects of covariates on the years until a rating, in sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.files import has_columns, has_mark, make_folder, name_apart, write_whole
from rekka.core.folders import check_folder
from rekka.core.sheets import write_csv
from rekka.core.terminal import OnProgress, say_nothing
from rekka.fleet.models import CaseModel
from rekka.forecast.ageing import FIXED
from rekka.forecast.effects import Effects, marginal_effects
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.profiles import Profile, profile_covariate
from rekka.forecast.uncertainty import DELTA, DRAWS, NORMAL
from rekka.report.charts.drawing import PICTURE_MARK
from rekka.report.charts.models import draw_profile_picture
from rekka.workflows.models import choose_cases, choose_own, list_files, list_notes, open_models

VERSION = 1  # of the plain data
EFFECTS, PROFILES = "effects.csv", "profiles.csv"


@dataclass(frozen=True, eq=False)
class ComponentEffects:
    """Effects of one model's covariates; profiles where they are written and the model knows its ranges."""

    model: CaseModel
    given: dict[str, Any]  # covariates that are not typical
    effects: Effects
    profiles: tuple[Profile, ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of a table that stands by itself."""
        found = self.effects
        known = {
            "start_state": found.start,
            "start_label": found.ratings.labels[found.start - 1],
            "threshold_state": found.threshold,
            "threshold_label": found.ratings.labels[found.threshold - 1],
            "level": found.level,
            "intervals": found.intervals,
            "course": found.course,
        }
        told = zip(found.table().to_dicts(), found.sentences(), strict=True)
        return [{"case": self.model.name} | row | known | {"sentence": sentence} for row, sentence in told]


@dataclass(frozen=True, eq=False)
class MeasuredEffects:
    """Effects of several models' covariates. ``notes``: warnings, and why components have no effects."""

    source: str
    components: tuple[ComponentEffects, ...]
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """Table by component and covariate: years before and after, hazard ratios, intervals, a sentence."""
        return pl.DataFrame([row for one in self.components for row in one.rows], infer_schema_length=None)

    @property
    def sentences(self) -> list[str]:
        """Sentences, one for each component and covariate."""
        return [f"{one.model.name}: {told}" for one in self.components for told in one.effects.sentences()]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        cases = [one.model.to_dict() | one.effects.to_dict() for one in self.components]
        head = {"format": "rekka-effects", "version": VERSION, "source": self.source}
        return head | {"cases": cases, "files": [str(file) for file in self.files]}


def measure_effects(
    models: Any,
    *,
    start: int | str = 1,
    threshold: int | str | None = None,
    changes: Mapping[str, str | float] | None = None,
    at: Mapping[str, float] | None = None,
    age: str = FIXED,
    advance: Sequence[str] | None = None,
    intervals: str = NORMAL,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
    only: Sequence[str] | None = None,
    out: str | Path | None = None,
    on_progress: OnProgress = say_nothing,
) -> MeasuredEffects:
    """Measure what each covariate, changed by itself, does to the mean years from one rating to another.

    Parameters
    ----------
    models : path, Study or ComponentFits
        A model file of ``rekka fit``, a folder of them, a run folder; or what ``fit_components`` returned.
    start, threshold : int or str
        The rating to start from and the rating to be reached: a number from 1, the best, or a label as text. By
        default the best, and what the scale makes usual: 4 (Poor) of 9 to 0, III of I to IV, else the fourth, or
        the worst of fewer.
    changes : dict, optional
        Changes by covariate, such as {"age_at_inspection_1": "+10", "traffic_mean": "x2"}. Default: ten years,
        twice the traffic, a round step of others.
    at, age, advance, intervals, draws, level, seed, only
        As for ``tabulate_matrices``.
    out : path, optional
        A folder for effects.csv, profiles.csv (hazards and years along each covariate) and a picture of each.
    on_progress : callable, optional
        Called with a stage, the component, how many are done, and of how many.

    Examples
    --------
    >>> import rekka
    >>> fits = rekka.fit_components(rekka.simulate_transitions(300, n_states=3, seed=1))
    >>> rekka.measure_effects(fits, intervals="delta").table["covariate"].to_list()[0]
    'age_at_inspection_1'

    """
    place = None if out is None else Path(out)
    found = open_models(models)
    chosen = choose_cases(found, only)
    if place is not None:
        _refuse_place(place, chosen, list_files(models))
    options = ForecastOptions(intervals, level, draws, seed, age, advance)
    ends: dict[str, Any] = {"start": start, "threshold": threshold}
    own_at, own_changes = choose_own("at", at, chosen), choose_own("change", changes, chosen)
    made = []
    for number, (model, given, some) in enumerate(zip(chosen, own_at, own_changes, strict=True)):
        on_progress("Models", model.name, number, len(chosen))
        effects = marginal_effects(model.fit, options, at=given, changes=some, labels=model.labels, **ends)
        known = place is not None and model.fit.survey is not None
        profiles = _list_profiles(model, options, at=given, **ends) if known else ()
        made.append(ComponentEffects(model, given, effects, profiles))
    measured = MeasuredEffects(found.name, tuple(made), tuple(list_notes(found)))
    if place is None:
        return measured
    on_progress("Drawing", place.name, 0, None)
    return replace(measured, files=tuple(_write(measured, place)))


def _list_profiles(model: CaseModel, options: ForecastOptions, **ends: Any) -> tuple[Profile, ...]:
    """Profiles of all covariates; on their many points the delta method takes the place of draws."""
    quick = replace(options, intervals=DELTA) if options.intervals == NORMAL else options
    return tuple(
        profile_covariate(model.fit, name, quick, labels=model.labels, **ends) for name in _list_numbers(model)
    )


def _list_numbers(model: CaseModel) -> list[str]:
    """Covariates with a profile: all but the terms of categories."""
    return [name for name in model.fit.covariates if name not in model.fit.coding.terms]


def _refuse_place(out: Path, models: Sequence[CaseModel], inputs: Sequence[Path]) -> None:
    """Refuse a folder with files of the same names that no earlier call has written."""
    is_table, is_picture = has_columns("case", "covariate"), has_mark(PICTURE_MARK)
    pictures = [out / name for names in _name_pictures(models) for name in names]
    check_folder(
        out,
        [out / EFFECTS, out / PROFILES, *pictures],
        inputs,
        lambda file: is_picture(file) if file in pictures else is_table(file),
    )


def _name_pictures(models: Sequence[CaseModel]) -> list[list[str]]:
    """File names of the pictures of each model, one for each covariate."""
    names = [model.name for model in models]
    places = [""] if len(names) == 1 else [f"{name}-" for name in name_apart(names)]
    return [
        [f"profiles-{place}{slug}.svg" for slug in name_apart(_list_numbers(model))]
        for place, model in zip(places, models, strict=True)
    ]


def _write(measured: MeasuredEffects, out: Path) -> list[Path]:
    """Write tables of all models together, and a picture for each covariate of each."""
    make_folder(out)
    grids = [
        profile.table().insert_column(0, pl.lit(one.model.name).alias("case"))
        for one in measured.components
        for profile in one.profiles
    ]
    files = []
    if not measured.table.is_empty():
        files.append(out / EFFECTS)
        write_csv(files[-1], measured.table)
    if grids:
        files.append(out / PROFILES)
        write_csv(files[-1], pl.concat([pl.DataFrame(grid) for grid in grids]))
    for one, names in zip(
        measured.components, _name_pictures([c.model for c in measured.components]), strict=True
    ):
        for profile, name in zip(one.profiles, names, strict=False):  # an old model has no profiles
            picture = draw_profile_picture(one.model, profile, Path(name).stem)
            if picture is not None:
                files.append(out / name)
                write_whole(files[-1], picture)
    return files
