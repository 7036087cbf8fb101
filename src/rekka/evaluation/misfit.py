"""Causes of a misfit, in sentences with figures; nothing is recalibrated.

A recalibrated forecast fits the rows at hand and hides what was wrong, so the cause is named instead. A cause is
looked for only where the test of ``goodness`` rejects at the level, or a row is at the probability floor. p(...)
is a p-value by the same simulated sets, of a measure of ``goodness.measure``.

1. floor       a row had probability 1e-12 or less for what happened to it
2. unfinished  the certificate says that the fit is no certified maximum

Where rows the model was fitted to are at the floor, or the fit is not certified, a misfit says nothing about the
model, and no more is looked for. Otherwise, where the test rejects:

3. outside     held-out rows with a covariate outside the training range: p(outside) <= level < p(outside aside);
               the other rows fit, and no more is looked for
4. form        held-out: the training rows do not fit either, p(training) <= level
5. drift       held-out: not 4, p(moves) <= level, and too many, or too few, left every start state in which at
               least one was expected to
6. jumps       not 5: p(jumps) <= level: too many rows went two states or more in one interval. The model passes
               through every state between, so that such rows make hazards too high there
7. interval    p(bands) <= level, with two bands or more: time does not act through the interval as it should
8. state       not 5, not 6: p(start k) <= level, and two thirds or more of what T has above the simulated median
               lie in start state k, where rows start in several; the fit shares some of it out to other states
9. spread      none of 3 to 8: a covariate acts in another form, or one is missing

What to do depends on the model: a model without covariates has no scaling to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import count_of
from rekka.evaluation.goodness import Bands, Cells, Reference, residual
from rekka.evaluation.scores import PROBABILITY_FLOOR
from rekka.model.certificate import Certificate
from rekka.model.survey import Contrast, describe_years

Array = NDArray[np.float64]

CONCENTRATED = 2 / 3  # of the misfit beyond chance
LARGE = 2.0  # standard deviations, from which on a single difference is worth naming
SMALLEST_MOVES = 1.0  # rows expected to leave a start state for its direction to count in a drift

PLATEAU = (
    "A maximum of the likelihood does not rule out the rows it was fitted to: the solver stopped on a plateau. "
    "Fit with solver='newton' and look at the certificate."
)
EXTREME = (
    "The maximum is certified, so that it is an extreme covariate, taken to the exponential, that rules them out: "
    "try a scaling that draws long tails in, such as log."
)
BEYOND_RATES = "The maximum is certified: what happened in these rows did not happen in the training rows."
FORM = (
    "A covariate acts in another form than the model has it, or one is missing: try another scaling, such as log, "
    "or another covariate."
)
NO_FORM = (
    "The model has no covariates: it treats all members alike. Give it a covariate that distinguishes "
    "members that deteriorate fast, such as age, or fit these as components of their own."
)
RAN_AWAY = "Its coefficients grew without limit (separation), or these rows lie far from the training rows."


@dataclass(frozen=True, eq=False)
class Outside:
    """Rows (n,) with a covariate outside the training range, these covariates in words, and the rows' counts."""

    rows: NDArray[np.bool_]
    words: str
    cells: Cells


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a cause is named from.

    ``training_at_floor`` is None where the judged rows are the fitted ones; ``covariates`` are the model's.
    """

    cells: Cells
    bands: Bands
    level: float
    at_floor: int
    training_at_floor: int | None
    reference: Reference | None
    certificate: Certificate | None
    outside: Outside | None
    covariates: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Judged rows."""
        return int(self.cells.observed.sum())

    @property
    def held_out(self) -> bool:
        """Whether other rows were fitted than are judged."""
        return self.training_at_floor is not None

    @property
    def on_plateau(self) -> bool:
        """Whether rows that the model was fitted to are at the floor."""
        return bool(self.training_at_floor if self.held_out else self.at_floor)

    def rejects(self, name: str = "all") -> bool:
        """Whether a measure is larger than simulated sets have it."""
        return self.reference is not None and self.reference.p_value(name) <= self.level

    def p(self, name: str = "all") -> str:
        """A p-value in words."""
        return f"p = {self.reference.p_value(name):.2g}" if self.reference is not None else "not tested"


def name_causes(evidence: Evidence) -> tuple[str, ...]:
    """Sentences, the gravest first; none where nothing is wrong."""
    if not (evidence.at_floor or evidence.rejects()):
        return ()
    unfinished = [*_unfinished(evidence)]
    first = [*_floor(evidence), *unfinished]
    if evidence.on_plateau or unfinished or not evidence.rejects():
        return tuple(first)
    outside = [*_outside(evidence)]
    if outside:
        return (*first, *outside)
    drift = [*_drift(evidence)]
    jumps = [] if drift else [*_jumps(evidence)]
    others = [*_form(evidence), *drift, *jumps, *_interval(evidence)]
    others += [] if drift or jumps else [*_state(evidence)]
    return (*first, *(others or _spread(evidence)))


def _floor(evidence: Evidence) -> Iterator[str]:
    if not (evidence.at_floor or evidence.on_plateau):
        return
    share = evidence.at_floor / evidence.rows
    words = (
        f"{evidence.at_floor:,} of {count_of(evidence.rows, 'judged row')} ({share:.1%}) had a probability of "
        f"{PROBABILITY_FLOOR:g} or less for what happened"
    )
    if evidence.on_plateau:
        training = evidence.training_at_floor
        also = f", and so had {count_of(training, 'training row')}" if training else ""
        yield f"{words}{also}. {PLATEAU}"
        return
    yield (
        f"{words}, and none of the training rows: the fit is surer than its rows can make it. "
        f"{_explain_beyond(evidence)} A ridge penalty or a prior holds the coefficients."
    )


def _explain_beyond(evidence: Evidence) -> str:
    """Reason why held-out rows are at the floor where no training row is."""
    if evidence.certificate is None or not evidence.certificate.certified:
        return RAN_AWAY
    return EXTREME if evidence.covariates else BEYOND_RATES


def _unfinished(evidence: Evidence) -> Iterator[str]:
    certificate = evidence.certificate
    if certificate is not None and not certificate.certified:
        yield (
            f"The fit is {certificate.verdict} ({'; '.join(certificate.reasons)}). Its misfit says nothing about "
            "the model: fit again first."
        )


def _outside(evidence: Evidence) -> Iterator[str]:
    if evidence.outside is None or not evidence.rejects("outside") or evidence.rejects("outside aside"):
        return
    moved, expected = (float(table.sum()) for table in evidence.outside.cells.moves)
    others = "" if evidence.outside.rows.all() else f" The other rows fit ({evidence.p('outside aside')})."
    yield (
        f"The misfit lies in {count_of(int(evidence.outside.rows.sum()), 'judged row')} outside the training "
        f"range ({evidence.outside.words}): {moved:.0f} left their state, {expected:.1f} expected.{others} "
        "Predictions there are extrapolations: train on such bridges."
    )


def _form(evidence: Evidence) -> Iterator[str]:
    if evidence.held_out and evidence.rejects("training"):
        yield (
            f"The training rows do not fit either ({evidence.p('training')}): it is the model that does not hold, "
            "not the later period. Judge the training rows by themselves first."
        )


def _drift(evidence: Evidence) -> Iterator[str]:
    if not evidence.held_out or evidence.rejects("training") or not evidence.rejects("moves"):
        return
    moved, expected = (table.sum(axis=1) for table in evidence.cells.moves)
    counted = expected >= SMALLEST_MOVES
    direction = np.sign(moved - expected)[counted]
    if not direction.size or (direction != direction[0]).any() or direction[0] == 0:
        return
    many = direction[0] > 0
    each = _list(np.flatnonzero(counted), lambda k: f"state {k + 1}: {moved[k]:.0f} against {expected[k]:.1f}")
    yield (
        f"Of {count_of(evidence.rows, 'judged row')} {moved.sum():.0f} left their state, {expected.sum():.1f} "
        f"expected: too {'many' if many else 'few'} in every start state ({each}), while the training rows fit "
        f"({evidence.p('training')}). Deterioration, or how it is rated, went {'faster' if many else 'slower'} "
        "than in the training rows: train on later rows, or find what changed."
    )


def _jumps(evidence: Evidence) -> Iterator[str]:
    if not evidence.rejects("jumps"):
        return
    found = find_contrasts(evidence.cells, evidence.bands)
    jump = next((one for one in found if one.end > one.start + 1), None)
    if jump is None:
        return
    instead = next((f" ({one.describe()})" for one in found if one.end == one.start), "")
    yield (
        f"Jumps over states: {jump.describe()}. The model passes through every state between, so that such rows "
        f"make its hazards there too high{instead}. Look at them for errors of inspection or of typing, visits "
        "that were not recorded, and members that were replaced. If they are right, merge states that are passed "
        "within one interval, or use shorter intervals."
    )


def find_contrasts(cells: Cells, bands: Bands) -> tuple[Contrast, ...]:
    """The largest differences between rows and model: one or two, the one that a matrix shows first.

    The start state whose rows left it far too often or too seldom; a jump over states that is far too frequent. If
    no such number is far off by itself, the farthest start, end and band.
    """

    def contrast(i: int, j: int, among: slice = slice(None)) -> Contrast:
        here, hoped = cells.observed[i, among], cells.expected[i, among]
        years = float(bands.low[among].min()), float(bands.high[among].max())
        return Contrast(i + 1, j + 1, *years, int(here.sum()), int(here[:, j].sum()), float(hoped[:, j].sum()))

    found = []
    left = np.abs(residual(*(table.sum(axis=1) for table in cells.moves)))
    k = int(left.argmax())
    if left[k] >= LARGE:
        found.append(contrast(k, k))
    jumps = residual(*cells.jumps)
    i, j = (int(state) for state in np.unravel_index(int(jumps.argmax()), jumps.shape))
    if jumps[i, j] >= LARGE:
        found.append(contrast(i, j))
    if not found:
        size = np.abs(cells.residual)
        i, b, j = (int(place) for place in np.unravel_index(int(size.argmax()), size.shape))
        found.append(contrast(i, j, slice(b, b + 1)))
    return tuple(found)


def _interval(evidence: Evidence) -> Iterator[str]:
    if len(evidence.bands) < 2 or not evidence.rejects("bands"):
        return
    moved, expected = (table.sum(axis=0) for table in evidence.cells.moves)
    each = _list(
        range(len(evidence.bands)),
        lambda b: f"{_years(evidence.bands, b)}: {moved[b]:.0f} against {expected[b]:.1f}",
    )
    yield (
        f"Rows that left their state do not grow with the interval as they should ({evidence.p('bands')}; "
        f"observed against expected, {each}). Hazards change within an interval, as age advances, or bad members "
        "are inspected sooner: look at who sets the intervals, and whether age is among the covariates."
    )


def _state(evidence: Evidence) -> Iterator[str]:
    reference, rows = evidence.reference, evidence.cells.observed.sum(axis=(1, 2))
    states = [k for k in range(rows.size - 1) if rows[k] > 0]
    if reference is None or len(states) < 2:
        return
    excess = {k: reference.excess(f"start {k + 1}") for k in states}
    k = max(states, key=excess.__getitem__)
    share = min(excess[k] / reference.excess(), 1.0)
    if share < CONCENTRATED or not evidence.rejects(f"start {k + 1}"):
        return
    moved, expected = (float(table[k].sum()) for table in evidence.cells.moves)
    yield (
        f"The misfit lies in start state {k + 1}, {share:.0%} of what is beyond chance: {moved:.0f} of "
        f"{count_of(int(rows[k]), 'row')} left it, {expected:.1f} expected; farthest off, "
        f"{_farthest(evidence, k)}. Look at how this state is rated and left, or merge it with the next."
    )


def _spread(evidence: Evidence) -> tuple[str, ...]:
    return (
        f"The misfit ({evidence.p()}) lies in no one start state or interval; farthest off, "
        f"{_farthest(evidence)}. {FORM if evidence.covariates else NO_FORM}",
    )


def _farthest(evidence: Evidence, start: int | None = None) -> str:
    """The cell with the largest residual, of all or of one start state."""
    size = np.abs(evidence.cells.residual)
    if start is not None:
        size = size * (np.arange(len(size)) == start)[:, None, None]
    i, b, j = np.unravel_index(int(size.argmax()), size.shape)
    counts = f"{evidence.cells.observed[i, b, j]:.0f} rows against {evidence.cells.expected[i, b, j]:.1f}"
    return f"from state {i + 1} to state {j + 1} in {_years(evidence.bands, int(b))}, {counts}"


def _years(bands: Bands, b: int) -> str:
    return describe_years(bands.low[b], bands.high[b])


def _list(numbers: NDArray[np.intp] | range, words: Callable[[int], str]) -> str:
    return ", ".join(words(int(number)) for number in numbers)
