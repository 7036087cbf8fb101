"""A study's figures as Altair charts, for notebooks and for changing them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import altair as alt
from altair.utils.schemapi import debug_mode

from rekka.core.errors import BadOption, bad_option, no_such_case
from rekka.report.charts.base import PRINT, Theme
from rekka.report.charts.drawing import combine
from rekka.report.charts.forecast import draw_curve, draw_network, draw_reach
from rekka.report.charts.models import draw_calibration, draw_profiles, draw_ratios
from rekka.report.charts.study import draw_heatmaps, draw_stability, draw_tradeoff
from rekka.report.document import Document, ModelPart, NetworkPart, PresetPart
from rekka.report.networks import find_network
from rekka.report.summarize import describe_calibration, describe_stability, summarize
from rekka.report.text import load_words
from rekka.report.views import FigureView
from rekka.study.stability import Stability, load_stability
from rekka.study.study import Study

ONE = "001"  # a figure by itself needs no number
NO_NUMBER = "a hazard is no finite number"


class Plots:
    """The figures of a report, one by one: ``study.plot``. Colours are those of print, words are English.

    Examples
    --------
    >>> import rekka
    >>> chart = rekka.load_study("run").plot.tradeoff()  # of Altair
    >>> chart.save("tradeoff.json")

    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._theme = Theme(load_words("en"), PRINT, study.ratings)

    def tradeoff(self, preset: str | None = None) -> alt.ConcatChart:
        """Accuracy against cost, the Pareto set outlined; beside it how often each method converged."""
        figure = draw_tradeoff(self._document, self._find_preset(preset), self._theme)
        return _show(figure, "no trial has a score")

    def heatmap(self, preset: str | None = None) -> alt.ConcatChart:
        """Accuracy and milliseconds, case by method; failed ones gray, selected ones outlined."""
        figure = draw_heatmaps(self._document, self._find_preset(preset), self._theme)
        return _show(figure, "no trial is done")

    def calibration(self, case: str | None = None, preset: str | None = None) -> alt.ConcatChart:
        """Forecasts and outcomes of the chosen models on their training rows: of one case, or of each."""
        name = self._find_preset(preset).name
        if case is None:
            chosen = [choice.case for choice in self._study.choices if choice.preset == name and choice.chosen]
            figures = (self._calibrate(one, name) for one in chosen)
            return _show(_join(figures, by_case=True), "nothing was chosen")
        self._refuse_unknown(case)
        return _show(self._calibrate(case, name), "no row can change its state")

    def _calibrate(self, case: str, preset: str) -> FigureView | None:
        found = describe_calibration(self._study, preset, case, self._study.calibration(case, preset))
        return draw_calibration(found, ONE, self._theme)

    def stability(self, found: Stability | None = None) -> alt.ConcatChart:
        """Shares of refits that choose each method: of those given, or of those in the run folder."""
        drawn = found or load_stability(self._study)
        if drawn is None:
            raise BadOption(
                "There are no draws to show. Make them with rekka.stability(study), and give them: "
                "study.plot.stability(found)."
            )
        document = self._document.model_copy(update={"stability": describe_stability(drawn)})
        return _show(draw_stability(document, self._theme), "no draw has rows to score")

    def curve(self, case: str) -> alt.ConcatChart:
        """The deterioration curve of a typical member, and the probability of each state by year."""
        model = self._find_model(case)
        return _show(draw_curve(model, ONE, self._theme), model.reason or NO_NUMBER)

    def forecast(self, case: str) -> alt.ConcatChart:
        """The curve, the probability of the threshold by year, and the years until it."""
        model = self._find_model(case)
        figures = [draw(model, ONE, self._theme) for draw in (draw_curve, draw_reach)]
        return _show(_join(figures), model.reason or NO_NUMBER)

    def profiles(self, case: str) -> alt.ConcatChart:
        """The hazard of leaving each state, over the values of each covariate."""
        model = self._find_model(case)
        figure = draw_profiles(model, self._document.study.covariates, ONE, self._theme)
        return _show(figure, model.reason or "the model has no covariates that vary")

    def network(self, case: str | None = None) -> alt.ConcatChart:
        """Members by state over the years, and how many need something done: of all cases, or of one.

        Of the inventory that was forecast into the run folder, else of the study's members as last seen.
        """
        if case is not None:
            self._refuse_unknown(case)
        found = self._network
        figure = None if found is None else draw_network(found, self._theme, case)
        return _show(figure, "no model was chosen, or the rows do not say how members are now")

    def ratios(self, case: str) -> alt.ConcatChart:
        """Hazard ratios of each covariate, for leaving each state."""
        model = self._find_model(case)
        figure = draw_ratios(model, self._document.study.covariates, ONE, self._theme)
        return _show(figure, model.reason or "the model has no covariates")

    @cached_property
    def _network(self) -> NetworkPart | None:
        return find_network(self._study).network

    @cached_property
    def _document(self) -> Document:
        return summarize(self._study)

    def _find_preset(self, name: str | None) -> PresetPart:
        wanted = name or self._study.main_preset
        there = {preset.name: preset for preset in self._document.study.presets}
        if wanted not in there:
            raise bad_option("preset", wanted, list(there))
        return there[wanted]

    def _find_model(self, case: str) -> ModelPart:
        self._refuse_unknown(case)
        return next(model for model in self._document.models if model.case == case)

    def _refuse_unknown(self, case: str) -> None:
        there = [one.name for one in self._study.described]
        if case not in there:
            raise no_such_case(case, there)


def _join(figures: Iterable[FigureView | None], *, by_case: bool = False) -> FigureView | None:
    """The panels of several figures as one; of several cases, each under the name of its case."""
    there = [figure for figure in figures if figure is not None]
    panels = tuple(
        replace(panel, title=f"{figure.case}: {panel.title}") if by_case else panel
        for figure in there
        for panel in figure.panels
    )
    return replace(there[0], panels=panels) if there else None


def _show(figure: FigureView | None, why_not: str) -> alt.ConcatChart:
    if figure is None:
        raise BadOption(f"There is nothing to draw: {why_not}.")
    spec = combine(figure)
    with debug_mode(False):  # the whole is checked once; to check each part again takes half as long
        return alt.ConcatChart.from_dict(spec)
