"""Profiles of covariates as pictures that stand by themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from rekka.fleet.models import CaseModel, split_notes
from rekka.forecast.matrices import tell_intervals
from rekka.forecast.profiles import Profile
from rekka.report.chart_profiles import ProfilePart, ProfileWords, draw_profile
from rekka.report.charts import combine
from rekka.report.drawing import draw_svg_file, mark_picture
from rekka.report.palette import PRINT
from rekka.report.summary import UNITS
from rekka.report.views import FigureView
from rekka.report.words import load_words

LINE = 112  # letters over a picture


def draw_profile_picture(model: CaseModel, profile: Profile, name: str) -> bytes | None:
    """A profile as SVG with what must be known of it in lines over it; None where there is nothing to draw."""
    figure = draw_profile(_plain_profile(profile), name, words=_word_profile(profile), palette=PRINT)
    if figure is None:
        return None
    head = [line for told in _head_lines(model, profile) for line in textwrap.wrap(told, LINE)]
    return mark_picture(draw_svg_file(_head_picture(figure, head, PRINT.ink)).encode(), "svg")


def _head_picture(figure: FigureView, head: Sequence[str], ink: str) -> dict[str, Any]:
    """A figure as one picture, with lines of text over it: what a picture must say by itself."""
    text = {"text": list(head), "anchor": "start", "fontSize": 11, "color": ink, "offset": 10}
    return combine(figure) | {"title": text}


def _plain_profile(profile: Profile) -> ProfilePart:
    """A profile as the chart takes it."""
    return ProfilePart(**{name: _plain(getattr(profile, name)) for name in ProfilePart.__dataclass_fields__})


def _plain(values: Any) -> tuple[Any, ...]:
    """Nested tuples, None for what is no number."""
    if values.ndim > 1:
        return tuple(_plain(row) for row in values)
    return tuple(value if np.isfinite(value) else None for value in values.tolist())


def _word_profile(profile: Profile) -> ProfileWords:
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


def _head_lines(model: CaseModel, profile: Profile) -> list[str]:
    """What stands over a picture."""
    head, rest = split_notes(profile.notes)
    others = ", ".join(f"{name} = {value:,.6g}" for name, value in profile.others.items())
    told = tell_intervals(profile.level, profile.intervals)
    bands = "" if profile.intervals == "none" else f"Bands: {told}. "
    return [
        *head,
        *([] if model.unchosen is None else [model.unchosen]),
        f"{model.name}: along {profile.covariate}; {profile.course}" + (f"; {others}" if others else ""),
        f"{bands}Ticks: training rows, one for each percent. Shaded: beyond them, extrapolated.",
        *rest,
    ]
