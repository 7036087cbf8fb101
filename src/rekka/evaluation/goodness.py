"""Test of fit: observed and expected counts by cell, and a reference that is valid for linked rows.

    T = sum over cells (O - E)^2 / max(E, 1),   p = (1 + #{T* >= T}) / (B + 1)

A cell is a start state, an end state and a band of interval lengths; O rows ended there, E is the sum of their
probabilities: the Pearson-type test of Aguirre-Hernandez and Farewell (Statistics in Medicine 21, 2002) for chains
seen at intervals, with a floor under E. The usual remedy for cells where little is expected, to pool them until
something is, hides just the forecaster that is sure and wrong: his E is 0 where all the rows are. With the floor
such a cell counts in full, and a chance row where 0.01 was expected counts as 1, not as 98.

T has no chi-square distribution: coefficients were estimated, and the end of a member's interval is the start of
its next one (Titman and Sharples, Statistics in Medicine 27, 2008). So the fitted model draws B sets of states for
the same rows, each member from its first state on; each set is fitted anew, and T* is the same function of that
set and that fit as T is of the rows and their fit. A held-out test draws the training rows and the judged rows,
fits the one and predicts the other, so that the uncertainty of the coefficients is in T* there too.

A drawn set may have no finite maximum: nobody leaves a state, and its hazard goes to 0. Its predictions have a
limit all the same, and Newton stops there; it is used like any other, and counted. A set whose fit Newton could
not finish counts as T* above T: p can only become too large by it. States are 0-based here.

A test at a level may stop early: once so many T* are above T that it can no longer reject, whatever the sets still
to come (Besag and Clifford, Biometrika 78, 1991). The decision is that of all B sets, and p, of the sets drawn, is
above the level; a model that fits is known to fit after some 20 sets instead of 199.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadValues, count_of, name_rows
from rekka.core.numerics import generator
from rekka.evaluation.resampling import Sample
from rekka.model.certificate import is_settled
from rekka.model.coordinates import Coordinates, orthonormal_coordinates, read_prior
from rekka.model.fit import Options, Predictor, lay_out, one_blas_thread
from rekka.model.likelihood import Likelihood, compile_kernels
from rekka.model.restarts import MOST_ITERATIONS, crude_start
from rekka.model.solvers import newton

Array = NDArray[np.float64]
States = NDArray[np.int64]
Mask = NDArray[np.bool_]
Measures = dict[str, float]

SMALLEST_EXPECTED = 1.0  # rows; the least that Cochran (Biometrics 10, 1954) allows in a cell
MOST_BANDS = 3
BAND_ROWS = 30  # a band of fewer rows tells nothing by itself
HARDLY_VARIES = 1.1  # the 90 % quantile of the intervals over the 10 % one
MEMBER = ("bridge_id", "case", "member", "history")  # what a chain of visits is of, as far as the table tells
TIE = 1e-6  # two fits of the same rows agree far better than this; simulated sets of few rows often are the same


@dataclass(frozen=True, eq=False)
class Bands:
    """The band of each row (n,), and the shortest and longest interval of each band, in years."""

    of_row: States
    low: Array
    high: Array

    def __len__(self) -> int:
        return self.low.size


def cut_bands(dt: Array) -> Bands:
    """Bands of about as many rows each: at most 3, each of at least 30 rows, one where intervals hardly vary."""
    if not dt.size:
        return Bands(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    shortest, longest = np.quantile(dt, (0.1, 0.9))
    most = MOST_BANDS if longest >= HARDLY_VARIES * shortest else 1
    label = np.zeros(dt.size, np.int64)
    for count in range(most, 1, -1):
        cuts = np.unique(np.quantile(dt, np.arange(1, count) / count))
        found = np.searchsorted(cuts, dt)  # equal intervals stay together
        if np.bincount(found, minlength=count).min() >= BAND_ROWS:
            label = found.astype(np.int64)
            break
    inside = [dt[label == b] for b in range(int(label.max()) + 1)]
    return Bands(label, np.array([i.min() for i in inside]), np.array([i.max() for i in inside]))


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows observed and expected by start state, band and end state, (K, B, K)."""

    observed: Array
    expected: Array

    @property
    def residual(self) -> Array:
        """(O - E) / sqrt(max(E, 1)): T is the sum of their squares."""
        return residual(self.observed, self.expected)

    @property
    def statistic(self) -> float:
        """T."""
        return float(np.square(self.residual).sum())

    @property
    def moves(self) -> tuple[Array, Array]:
        """Observed and expected rows that left their start state, by start state and band, (K, B) each."""
        other = ~np.eye(len(self.observed), dtype=bool)[:, None, :]
        return (self.observed * other).sum(axis=2), (self.expected * other).sum(axis=2)

    @property
    def jumps(self) -> tuple[Array, Array]:
        """Observed and expected rows that went two states or more, by start and end state, (K, K) each."""
        return np.triu(self.observed.sum(axis=1), 2), np.triu(self.expected.sum(axis=1), 2)


def residual(observed: Array, expected: Array) -> Array:
    """Difference of observed from expected counts, (O - E) / sqrt(max(E, 1)): about standard deviations."""
    return np.asarray((observed - expected) / np.sqrt(np.maximum(expected, SMALLEST_EXPECTED)))


def count_cells(start: States, end: States, p: Array, bands: Bands, among: Mask | slice = slice(None)) -> Cells:
    """Count rows with forecasts p (n, K), all or some of them."""
    n_states, n_bands = p.shape[1], len(bands)
    row = (start * n_bands + bands.of_row)[among]
    size = n_states * n_bands
    observed = np.bincount(row * n_states + end[among], minlength=size * n_states)
    by_end = [np.bincount(row, weights=column, minlength=size) for column in p[among].T]
    expected = np.column_stack(by_end).astype(np.float64)
    shape = (n_states, n_bands, n_states)
    return Cells(observed.reshape(shape).astype(np.float64), expected.reshape(shape))


def measure(start: States, end: States, p: Array, bands: Bands, outside: Mask) -> Measures:
    """T over all cells, and the measures that locate a misfit.

    ``all``        T
    ``start k``    the part of T in start state k (1-based)
    ``moves``      how far the number of rows that left their state is from the expected one, too many or too few
    ``bands``      the same by band, expected numbers scaled to the observed total: does time act as it should?
    ``jumps``      the part of T in moves over two states or more that were more frequent than expected
    ``outside``    T of the rows marked so alone; ``outside aside`` is T of the others
    """
    cells = count_cells(start, end, p, bands)
    by_start = np.square(cells.residual).sum(axis=(1, 2))
    found = {"all": float(by_start.sum())} | {f"start {k + 1}": float(part) for k, part in enumerate(by_start)}
    observed, expected = (table.sum(axis=0) for table in cells.moves)
    found["moves"] = abs(float(residual(observed.sum(), expected.sum())))
    scale = observed.sum() / expected.sum() if expected.sum() > 0 else 0.0
    found["bands"] = float(np.square(residual(observed, scale * expected)).sum())
    found["jumps"] = float(np.square(np.maximum(residual(*cells.jumps), 0.0)).sum())
    for name, among in (("outside", outside), ("outside aside", ~outside)) if outside.any() else ():
        found[name] = count_cells(start, end, p, bands, among).statistic
    return found


def link_rows(visit_1: NDArray[Any], visit_2: NDArray[Any]) -> States:
    """For each row the row that ends with the visit this one starts with, -1 where there is none.

    A visit is identified by anything that is its own, such as ``row_1`` and ``row_2`` of a table of transitions.
    """
    ends, place = np.unique(visit_2, return_index=True)
    if not ends.size:
        return np.zeros(0, np.int64)
    near = np.minimum(np.searchsorted(ends, visit_1), ends.size - 1)
    return np.where(ends[near] == visit_1, place[near], -1).astype(np.int64)


def find_links(frame: pl.DataFrame) -> States | None:
    """For each row the row of the same member that ends where it starts; None where the table knows no visits.

    A visit that two rows end with, as where members have no names of their own, links nothing, and nor do two rows
    of which one does not start in the state the other ends in.
    """
    if not {"visit_1", "visit_2"} <= set(frame.columns):
        return None
    member = [pl.col(name).cast(pl.String).fill_null("") for name in MEMBER if name in frame.columns]
    first, second = (
        frame.select(pl.concat_str([*member, pl.col(name).cast(pl.String)], separator="\x1f")).to_series()
        for name in ("visit_1", "visit_2")
    )
    if first.null_count() or second.null_count():
        return None
    follows = link_rows(first.to_numpy().astype(np.str_), second.to_numpy().astype(np.str_))
    start, end = (frame[name].to_numpy() for name in ("state_1", "state_2"))
    sure = ~(second.is_duplicated() | first.is_duplicated()).to_numpy()
    linked = (follows >= 0) & sure & sure[follows] & (end[follows] == start)
    return np.where(linked, follows, -1)


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """Rows whose states can be drawn anew: ``levels`` are those to draw first, second, and so on.

    Each row comes after the one it ``follows``; what it starts in is what that one was drawn to end in.
    """

    start: States
    end: States
    dt: Array
    x: Array
    follows: States
    levels: tuple[NDArray[np.intp], ...]

    @classmethod
    def join(cls, parts: tuple[Sample, ...], follows: States | None) -> LinkedRows:
        """The parts one after the other; ``follows`` (n,) counts rows through all of them."""
        start, end, dt = (
            np.concatenate([getattr(s.rows, name) for s in parts]) for name in ("start", "end", "dt")
        )
        links = np.full(start.size, -1) if follows is None else np.asarray(follows)
        _check_links(links, start, end)
        known = links < 0
        levels = [np.flatnonzero(known)]
        while not known.all():
            following = ~known & known[links]
            if not following.any():
                raise BadValues(f"follows goes in a circle at {name_rows(np.flatnonzero(~known))}.")
            levels.append(np.flatnonzero(following))
            known |= following
        x = np.concatenate([s.x for s in parts])
        return cls(start, end, dt, x, links.astype(np.int64), tuple(levels))

    def draw(self, predictor: Predictor, rng: np.random.Generator) -> tuple[States, States]:
        """Start and end states (n,): a linked row starts where the row before it was drawn to end."""
        start, end = self.start.copy(), np.empty_like(self.start)
        u = rng.random(start.size)
        for number, level in enumerate(self.levels):
            if number:
                start[level] = end[self.follows[level]]
            end[level] = predictor.draw_ends(start[level], self.dt[level], self.x[level], u[level])
        return start, end


def _check_links(follows: NDArray[Any], start: States, end: States) -> None:
    """Refuse links that are not links."""
    if follows.shape != start.shape or not np.issubdtype(follows.dtype, np.integer):
        raise BadValues(
            f"follows has shape {follows.shape} and type {follows.dtype}; a whole number is needed for each of "
            f"{count_of(start.size, 'row')}, training rows first where there are any.",
            shape=follows.shape,
        )
    outside = np.flatnonzero((follows < -1) | (follows >= start.size))
    if outside.size:
        raise BadValues(
            f"follows points outside the {count_of(start.size, 'row')} at {name_rows(outside)}. Set it to -1 "
            "where a row follows none."
        )
    torn = np.flatnonzero((follows >= 0) & (end[follows] != start))
    if torn.size:
        raise BadValues(
            f"follows links {name_rows(torn)} to a row that does not end in the state this one starts in. "
            "Set it to -1 there: a repair or a new rating came between."
        )


class Refitted(NamedTuple):
    """beta (K-1, p+1) where Newton stopped, whether it finished, and whether that is a finite maximum."""

    beta: Array
    finished: bool
    maximum: bool


@dataclass(frozen=True, eq=False)
class Refitter:
    """Fits the same rows again and again, with other states each time; what states do not change is made once."""

    coordinates: Coordinates[Likelihood]  # rows in the order given
    beta: Array  # where Newton starts

    @classmethod
    def build(cls, predictor: Predictor, sample: Sample, options: Options) -> Refitter | None:
        """The predictor's operator stays, for the covariates do; None if they do not determine coefficients."""
        z = predictor.scale(sample.x, sample.rows.dt)
        if not varies(z):
            return None
        layout = lay_out(predictor.covariates, predictor.n_states, options)
        prior = read_prior(options.prior, layout.parameter.size)
        family = predictor.family
        compile_kernels(family)
        coordinates = orthonormal_coordinates(
            sample.rows, z, layout, options.ridge, options.threads, prior, family
        )
        return cls(coordinates, predictor.beta)

    def refit(self, start: States, end: States) -> Refitted:
        """Newton on the exact likelihood from the fitted beta, or from crude rates where that fails."""
        given = self.coordinates.likelihood
        drawn = replace(given.rows, start=start, end=end)
        order = drawn.grouping
        likelihood = replace(
            given, rows=drawn.take(order), X=np.ascontiguousarray(given.X[:, order]), log_dt=given.log_dt[order]
        )
        coordinates = replace(self.coordinates, likelihood=likelihood)
        unit = coordinates.unit
        psi, outcome = newton(
            coordinates.objective, coordinates.forward @ self.beta.ravel(), MOST_ITERATIONS, unit
        )
        if not outcome.success:
            psi, outcome = newton(coordinates.objective, crude_start(coordinates), MOST_ITERATIONS, unit)
        maximum = outcome.success and is_settled(coordinates, coordinates.objective(psi))
        return Refitted(coordinates.beta(psi), outcome.success, maximum)


def varies(z: Array) -> bool:
    """Whether there are rows, and no column of z is constant or collinear."""
    if not len(z):
        return False
    spread = z.std(axis=0)
    if not (spread > 0).all():
        return False
    return not z.shape[1] or bool(np.linalg.matrix_rank((z - z.mean(axis=0)) / spread) == z.shape[1])


@dataclass(frozen=True, eq=False)
class Reference:
    """Measures of the rows beside those of the simulated sets (B,), infinite where Newton did not finish."""

    observed: Mapping[str, float]
    simulated: Mapping[str, Array]
    replicates: int
    unfinished: int
    without_maximum: int

    def p_value(self, name: str = "all") -> float:
        """(1 + #{T* >= T}) / (B + 1)."""
        least = least_above(self.observed[name])
        return float(1 + np.sum(self.simulated[name] >= least)) / (self.replicates + 1)

    def excess(self, name: str = "all") -> float:
        """Excess of the rows' measure over the median of the simulated sets."""
        return self.observed[name] - float(np.median(self.simulated[name]))

    def quantile(self, share: float, name: str = "all") -> float:
        """The value that this share of the simulated sets stays below or at."""
        return float(np.quantile(self.simulated[name], share, method="higher"))


def simulate(
    predictor: Predictor,
    rows: LinkedRows,
    refitter: Refitter,
    judge: Callable[[Predictor, States, States], Measures],
    *,
    replicates: int,
    seed: int,
    level: float = 0.0,
) -> Reference:
    """Judge the rows, then draw, refit and judge so many sets.

    The refitted rows are the first of ``rows``. ``judge`` gets a model and the start and end states of all rows.
    With a ``level`` above 0 it stops as soon as the test can no longer reject at that level.
    """
    observed = judge(predictor, rows.start, rows.end)
    enough = math.floor(level * (replicates + 1)) if level else replicates
    fitted = slice(refitter.coordinates.likelihood.rows.dt.size)
    simulated = {name: np.full(replicates, np.inf) for name in observed}
    unfinished = without_maximum = above = made = 0
    with one_blas_thread():
        for number in range(replicates):
            start, end = rows.draw(predictor, generator(seed, "calibration", number))
            fit = refitter.refit(start[fitted], end[fitted])
            unfinished += not fit.finished
            without_maximum += fit.finished and not fit.maximum
            if fit.finished:
                again = Predictor(
                    predictor.n_states,
                    predictor.covariates,
                    predictor.scaling,
                    fit.beta,
                    clock=predictor.clock,
                    family=predictor.family,
                )
                for name, value in judge(again, start, end).items():
                    simulated[name][number] = value
            made = number + 1
            above += bool(simulated["all"][number] >= least_above(observed["all"]))
            if above >= enough:
                break
    drawn = {name: values[:made] for name, values in simulated.items()}
    return Reference(observed, drawn, made, unfinished, without_maximum)


def least_above(observed: float) -> float:
    """The least value of a simulated set that counts as large as the observed one."""
    return observed - TIE * max(1.0, observed)
