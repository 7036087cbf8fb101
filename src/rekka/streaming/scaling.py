"""Scaling operators fitted on rows that come in blocks: the questions of ``scaling.registry``, answered by passes.

Ranges follow from the first pass, because every operator keeps the order of values. Means and deviations take one
pass, quartiles two or three. The exponent of Box-Cox is searched as in memory, by Brent's method on the profile
likelihood; every step of the search is a pass, which serves all covariates at once.
"""

from __future__ import annotations

import math
import queue
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rekka.model.moments import Moments
from rekka.scaling.operators import BRACKET, ColumnScaling, PowerScaling, positivity_shift
from rekka.scaling.registry import NO_EXPONENT, TrainingRows
from rekka.streaming.blocks import Array, Block
from rekka.streaming.passes import (
    Link,
    PickedColumns,
    Watched,
    add_moments,
    apply_links,
    find_quantiles,
    measure_values,
)

QUARTERS = np.array([0.25, 0.5, 0.75])


@dataclass(frozen=True, eq=False)
class StreamedTraining(TrainingRows):
    """Training rows of a source, as the ``links`` applied so far transform them."""

    source: Watched
    rows: int
    links: tuple[Link, ...] = ()

    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation, ddof 0, of each covariate."""
        return self._moments

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        unit = self.units
        found = add_moments(self.source.at("means and deviations").map(partial(_measure_block, self.links, unit)))
        return np.ldexp(found.mean, unit), np.ldexp(found.sd, unit)

    def quartiles(self) -> Array:
        """The quarter points and the median between them, (3, p)."""
        return find_quantiles(self.source.at("quartiles"), QUARTERS, self.rows, self.links)

    def exponents(self, curve: type[PowerScaling]) -> Array:
        """The profile-likelihood exponent of each covariate that varies; 1 for others, NaN where there is none."""
        found = np.ones(len(self.names))
        columns = np.flatnonzero(~self.constant).tolist()
        source = self.source.at(f"{curve.kind}'s exponents")
        shift = positivity_shift(self.low)
        logarithms = add_moments(source.map(partial(_measure_logarithms, self.links, curve, shift))).mean

        def profile(exponents: Mapping[int, float]) -> dict[int, float]:
            bent = partial(_measure_curves, self.links, curve, shift, logarithms, dict(exponents))
            moments = add_moments(source.map(bent))
            with np.errstate(all="ignore"):
                value = np.log(moments.squares / moments.weight)
            value -= curve.slopes(np.array(list(exponents.values())), logarithms[list(exponents)])
            return dict(zip(exponents, value.tolist(), strict=True))

        for column, exponent in search_together(profile, columns).items():
            found[column] = exponent
        return found

    def pick(self, columns: NDArray[np.intp]) -> StreamedTraining:
        """Some of the covariates."""
        names = tuple(self.names[c] for c in columns)
        low, high, links = self.low[columns], self.high[columns], (*self.links, PickedColumns(columns))
        return replace(self, names=names, low=low, high=high, links=links)

    def after(self, fitted: ColumnScaling) -> StreamedTraining:
        """The rows as an operator transforms them."""
        low, high = fitted.transform(np.stack([self.low, self.high]))
        return replace(self, low=low, high=high, links=(*self.links, fitted))


def _measure_block(links: tuple[Link, ...], units: NDArray[np.int32], block: Block) -> Moments:
    return measure_values(np.ldexp(apply_links(links, block), -units))


def _measure_logarithms(links: tuple[Link, ...], curve: type[PowerScaling], shift: Array, block: Block) -> Moments:
    return measure_values(curve.logarithms(apply_links(links, block), shift))


def _measure_curves(
    links: tuple[Link, ...], curve: type[PowerScaling], shift: Array, logarithms: Array,
    exponents: dict[int, float], block: Block,
) -> Moments:  # fmt: skip
    """The moments of some covariates, each transformed with the exponent that is asked about."""
    x = apply_links(links, block)
    parts = []
    with np.errstate(all="ignore"):  # overflow on the way of a search
        for c, exponent in exponents.items():
            prepared = curve.prepare(x[:, [c]], shift[c], logarithms[c])
            parts.append(measure_values(curve.bend(prepared, exponent)))
    return Moments(parts[0].weight, *(np.concatenate([getattr(one, name) for one in parts]) for name in FIELDS))


FIELDS = ("mean", "squares")


def search_together(
    profile: Callable[[Mapping[int, float]], Mapping[int, float]], columns: list[int]
) -> dict[int, float]:
    """The exponent with the least profile value for each column, by Brent's method; NaN where there is none.

    Each search runs in a thread of its own and waits for its value until all have asked: ``profile`` answers
    them together.
    """
    asked: queue.Queue[tuple[int, float | None, float]] = queue.Queue()  # column, exponent to try, or the result
    answers: dict[int, queue.Queue[float | None]] = {column: queue.Queue() for column in columns}

    def search(column: int) -> None:
        def value(exponent: float) -> float:
            asked.put((column, float(exponent), math.nan))
            answer = answers[column].get()
            if answer is None:
                raise RuntimeError("nobody answers any more")
            return answer

        try:
            asked.put((column, None, float(optimize.brent(value, brack=BRACKET))))
        except NO_EXPONENT:
            asked.put((column, None, math.nan))

    found: dict[int, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow on the way
        for column in columns:
            threading.Thread(target=search, args=(column,), daemon=True).start()
        try:
            while len(found) < len(columns):
                questions: dict[int, float] = {}
                while len(questions) + len(found) < len(columns):
                    column, exponent, result = asked.get()
                    if exponent is None:
                        found[column] = result
                    else:
                        questions[column] = exponent
                if questions:
                    for column, answer in profile(dict(sorted(questions.items()))).items():
                        answers[column].put(answer)
        finally:
            for waiting in answers.values():  # a search that still waits would do so for ever
                waiting.put(None)
    return {column: found[column] for column in columns}
