"""Model check: counts, reliability curves and a test of fit, with the causes where forecasts do not come true.

    expected rows of a cell   sum of pi over rows
    reliability               mean forecast of a bin beside the observed share, with intervals clustered by bridge;
                              bins of about as many rows each

``calibrate`` judges rows by a fitted model: the rows it was fitted to, or held-out ones. ``check_fit`` makes the
test alone, on the rows of the fit, as a small value that the model keeps. Counts and test are those
of ``goodness``, causes those of ``misfit``. A recalibration is not offered: it would hide the cause. States are
1-based in tables, 0-based inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from rekka.core.errors import BadOption, BadStates, BadValues
from rekka.data.partition import PAPER_SEED
from rekka.evaluation.goodness import (
    Array,
    Bands,
    Cells,
    LinkedRows,
    Measures,
    Reference,
    Refitter,
    States,
    count_cells,
    cut_bands,
    measure,
    residual,
    simulate,
)
from rekka.evaluation.misfit import Evidence, Outside, find_contrasts, name_causes
from rekka.evaluation.resampling import Sample
from rekka.evaluation.scores import CONFIDENCE, LOG_FLOOR, Interval, mean_interval, split_supported
from rekka.model.certificate import Certificate
from rekka.model.fit import Fit, Options, Predictor
from rekka.model.survey import FitTest

MOST_BINS = 10
BIN_ROWS = 20  # fewer, and an interval of a share says next to nothing
MOVES = "leaves its start state"
SCHEMA = {
    "event": pl.String,
    "end": pl.Int64,
    "bin": pl.Int64,
    "forecast": pl.Float64,
    "observed": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "rows": pl.Int64,
    "bridges": pl.Int64,
}


class Event(NamedTuple):
    """Something that may happen to the rows ``among``: its probability, and whether it did, (n,) each."""

    name: str
    end: int | None  # 1-based
    among: NDArray[np.bool_]
    forecast: Array
    happened: NDArray[np.bool_]


def tabulate_reliability(
    p: Array, start: States, end: States, bridge: NDArray[np.str_], confidence: float
) -> pl.DataFrame:
    """One row a bin of each event: mean forecast, observed share with its interval, rows, bridges."""
    found = []
    for event in _list_events(p, start, end):
        forecast, names = event.forecast[event.among], bridge[event.among]
        happened = event.happened[event.among].astype(np.float64)
        bins = cut_bins(forecast)
        for number in range(int(bins.max(initial=-1)) + 1):
            here = bins == number
            share = share_interval(happened[here], names[here], confidence)
            found.append((event.name, event.end, number + 1, float(forecast[here].mean()), *share))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def _list_events(p: Array, start: States, end: States) -> Iterator[Event]:
    """Leaving the start state, then each end state, among rows for which it is neither certain nor impossible.

    Rows that start in the worst state stay there, and no row ends in a better state than it starts in.
    """
    free = start < p.shape[1] - 1
    yield Event(MOVES, None, free, 1.0 - p[np.arange(start.size), start], end != start)
    for j in range(p.shape[1]):
        yield Event(f"ends in state {j + 1}", j + 1, free & (start <= j), p[:, j], end == j)


def cut_bins(forecast: Array) -> NDArray[np.int64]:
    """The bin of each forecast (n,), from the lowest: at most 10, of 20 rows or more, equal forecasts together."""
    n = forecast.size
    order = np.argsort(forecast, kind="stable")
    ordered = forecast[order]
    size = max(BIN_ROWS, math.ceil(n / MOST_BINS))
    edges = [0]
    for edge in (np.flatnonzero(ordered[1:] > ordered[:-1]) + 1).tolist():  # where a bin may end
        if edge - edges[-1] >= size and n - edge >= BIN_ROWS:
            edges.append(edge)
    bins = np.empty(n, np.int64)
    bins[order] = np.searchsorted(edges, np.arange(n), side="right") - 1
    return bins


def share_interval(happened: Array, bridge: NDArray[np.str_], confidence: float) -> Interval:
    """A share with its interval, within 0 and 1.

    Where all rows are alike there is no spread to judge by; the interval is then the exact one (Clopper and
    Pearson 1934) of as many draws as there are bridges.
    """
    found = mean_interval(happened, bridge, confidence)
    if found.mean not in (0.0, 1.0):
        return found._replace(low=max(found.low, 0.0), high=min(found.high, 1.0))
    reach = float(special.betaincinv(1.0, found.bridges, 0.5 + confidence / 2))
    return found._replace(low=max(found.mean - reach, 0.0), high=min(found.mean + reach, 1.0))


MOST_TESTED = 50  # components whose models are tested without being asked for: a second or so each
TEST_SETS, FEW_SETS = 99, 39  # simulated sets of a model's own test: 5 % is a multiple of 1/100 and of 1/40
MANY_ROWS = 20_000  # from here on FEW_SETS: so many rows show a misfit to the weaker test too
REPLICATES = 199  # p-values of 0.005 and its multiples: 5 % is one of them
TEST = "Pearson statistic by start state, end state and band of intervals; parametric bootstrap, in each set"
DRAWN_AGAIN = "the rows drawn and fitted anew"
DRAWN_BOTH = "the training rows drawn and fitted anew, the held-out rows drawn and predicted"


def explain_untested(components: int) -> str:
    """Reason why no test of fit was made of very many components."""
    return (
        f"The test of fit was not made: there are {components:,} components, and it takes a second or so for "
        "each. Ask for it with --test-fit."
    )


@dataclass(frozen=True)
class Goodness:
    """The test of ``goodness``: T, the value that simulated sets exceed at the level, and the p-value.

    ``kind`` says in words what was done, or why there is no test; then T may stand, and the rest is no number.
    Of ``replicates`` simulated sets, ``without_maximum`` had no finite maximum and were used where Newton stopped;
    ``unfinished`` could not be fitted and count as larger than T. There are no degrees of freedom: T is not
    chi-square.
    """

    statistic: float
    critical: float
    p_value: float
    replicates: int
    without_maximum: int
    unfinished: int
    kind: str


@dataclass(frozen=True, eq=False)
class Calibration:
    """Expected and observed counts of rows, reliability, and the test of fit.

    ``counts``       start, end, band (1 = shortest intervals), years_low, years_high, rows (of that start and
                     band), observed, expected, residual = (O - E) / sqrt(max(E, 1))
    ``by_start``     rows that left each start state, observed and expected
    ``by_band``      the same by band of intervals
    ``by_end``       rows that ended in each state
    ``reliability``  event, end (None for leaving), bin, forecast (mean), observed (share) with low and high,
                     clustered by bridge, rows, bridges
    ``at_floor``     rows with probability 1e-12 or less, or no number, for what happened
    ``causes``       sentences; empty where the test does not reject and no row is at the floor
    """

    rows: int
    counts: pl.DataFrame
    by_start: pl.DataFrame
    by_band: pl.DataFrame
    by_end: pl.DataFrame
    reliability: pl.DataFrame
    goodness: Goodness
    at_floor: int
    at_floor_share: float
    causes: tuple[str, ...]

    def with_test(self, test: FitTest) -> Calibration:
        """The calibration with a test that was made before, on the rows of the fit."""
        made = (test.statistic, math.nan, test.p_value, test.replicates, test.without_maximum, test.unfinished)
        goodness = Goodness(*made, f"{TEST} {DRAWN_AGAIN}")
        return replace(self, goodness=goodness, causes=test.causes or self.causes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None stands for what is no number."""
        out: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, pl.DataFrame):
                out[field.name] = [_plain(row) for row in value.to_dicts()]
            elif isinstance(value, Goodness):
                out[field.name] = _plain(vars(value))
            else:
                out[field.name] = list(value) if isinstance(value, tuple) else value
        return _plain(out)


def calibrate(
    predictor: Predictor,
    sample: Sample,
    *,
    options: Options,
    training: Sample | None = None,
    follows: NDArray[np.int64] | None = None,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    certificate: Certificate | None = None,
    confidence: float = CONFIDENCE,
) -> Calibration:
    """Judge rows by a fitted model.

    Parameters
    ----------
    predictor : Predictor
        The fitted model.
    sample : Sample
        The rows that are judged, with the K and the covariates of the model.
    options : Options
        How it was fitted: ridge, prior, effects and shared coefficients are those of the refits. The operator is
        the predictor's, and the solver is Newton's whatever it was: the reference is the maximum.
    training : Sample, optional
        The rows the model was fitted to, where they are not the judged ones.
    follows : array of int, optional
        For each row the row whose end state is its start state, the member's interval before, or -1. Rows are
        counted through the training rows first and then the judged ones: a judged row may follow a training row.
        ``goodness.link_rows`` finds them. None takes every start state as given.
    replicates : int
        Simulated sets; 0 for no test.
    seed : int
        Of the simulated sets.
    certificate : Certificate, optional
        The fit's, to name it as a cause.
    confidence : float
        Of the reliability intervals; the test's level is 1 - confidence.

    """
    parts = (sample,) if training is None or training is sample else (training, sample)
    level = _check(predictor, parts, replicates, confidence)
    p = predictor.probabilities(sample.rows.start, sample.rows.dt, sample.x)
    evidence, words = _gather(predictor, parts, p, options, follows, replicates, seed, level, certificate)
    cells, bands = evidence.cells, evidence.bands
    return Calibration(
        rows=len(sample),
        counts=_table_counts(cells, bands),
        **_table_margins(cells, bands),
        reliability=tabulate_reliability(p, sample.rows.start, sample.rows.end, sample.bridge, confidence),
        goodness=_conclude(cells, evidence.reference, level, words),
        at_floor=evidence.at_floor,
        at_floor_share=evidence.at_floor / len(sample) if len(sample) else math.nan,
        causes=name_causes(evidence),
    )


def check_fit(
    fit: Fit,
    sample: Sample,
    *,
    options: Options,
    follows: NDArray[np.int64] | None = None,
    replicates: int | None = None,
    seed: int = PAPER_SEED,
) -> FitTest | None:
    """Test a fit on its own rows, at 5 %; None where its hazards are not finite or no row can change its state.

    Parameters are those of ``calibrate``; by default 99 sets are simulated, 39 for more than 20,000 rows. It stops
    as soon as it cannot reject any more, with the decision that all of them would have.
    """
    if replicates is None:
        replicates = TEST_SETS if len(sample) <= MANY_ROWS else FEW_SETS
    level = _check(fit, (sample,), replicates, CONFIDENCE)
    p = fit.probabilities(sample.rows.start, sample.rows.dt, sample.x)
    evidence, _ = _gather(fit, (sample,), p, options, follows, replicates, seed, level, fit.certificate, stop=True)
    cells, reference, rejected = evidence.cells, evidence.reference, evidence.rejects()
    if reference is None:
        return None
    return FitTest(
        p_value=reference.p_value(),
        statistic=cells.statistic,
        level=level,
        replicates=reference.replicates,
        without_maximum=reference.without_maximum,
        unfinished=reference.unfinished,
        seed=seed,
        rows=len(sample),
        contrasts=find_contrasts(cells, evidence.bands) if rejected else (),
        causes=name_causes(evidence) if rejected else (),
    )


def _gather(
    predictor: Predictor,
    parts: tuple[Sample, ...],
    p: Array,
    options: Options,
    follows: NDArray[np.int64] | None,
    replicates: int,
    seed: int,
    level: float,
    certificate: Certificate | None,
    *,
    stop: bool = False,
) -> tuple[Evidence, str]:
    """All that the verdict on the last part is made of, and the test in words; ``stop`` when it cannot reject."""
    sample, held_out = parts[-1], len(parts) > 1
    rows, bands = LinkedRows.join(parts, follows), cut_bands(sample.rows.dt)
    outside = _find_outside(parts[0], sample, p, bands) if held_out else None
    words, refitter = _prepare(predictor, parts, rows, options, replicates)
    reference = None
    if refitter is not None:
        judge = _make_judge(parts, rows, bands, outside)
        least = level if stop else 0.0
        reference = simulate(predictor, rows, refitter, judge, replicates=replicates, seed=seed, level=least)
    at_floor = [_count_floor(predictor, part) for part in parts]
    return Evidence(
        cells=count_cells(sample.rows.start, sample.rows.end, p, bands),
        bands=bands,
        level=level,
        at_floor=at_floor[-1],
        training_at_floor=at_floor[0] if held_out else None,
        reference=reference,
        certificate=certificate,
        outside=outside,
        covariates=predictor.covariates,
    ), words


def _check(predictor: Predictor, parts: tuple[Sample, ...], replicates: int, confidence: float) -> float:
    """The level of the test; refuses what does not belong together."""
    if not 0.0 < confidence < 1.0:
        raise BadOption(f"confidence is {confidence!r}; a number between 0 and 1 is needed, such as 0.95.")
    level = round(1.0 - confidence, 12)
    if replicates and (replicates < 0 or level * (replicates + 1) < 1):
        fewest = math.ceil(1 / level) - 1
        raise BadOption(
            f"replicates is {replicates}; a test at {level:g} needs {fewest} or more, and 0 is no test."
        )
    for part in parts:
        if part.rows.n_states != predictor.n_states or part.covariates != predictor.covariates:
            theirs, ours = (", ".join(names) or "none" for names in (part.covariates, predictor.covariates))
            raise BadValues(
                f"The rows have K = {part.rows.n_states} and covariates {theirs}, the model has K = "
                f"{predictor.n_states} and {ours}. Give the rows with the model's own."
            )
        if not split_supported(part.rows.start, part.rows.end, predictor.n_states).all():
            raise BadStates(f"States beyond K = {predictor.n_states}. Judge only the rows of split_supported.")
    return level


def _prepare(
    predictor: Predictor, parts: tuple[Sample, ...], rows: LinkedRows, options: Options, replicates: int
) -> tuple[str, Refitter | None]:
    """The test in words, or why there is none; and the refitter of simulated sets."""
    if not (parts[-1].rows.start < predictor.n_states - 1).any():
        return "no test: no judged row can change its state", None
    if not np.isfinite(predictor.log_hazards(predictor.clock.take(rows.x, rows.dt))).all():
        return "no test: a hazard is no finite number", None
    if not replicates:
        return "no test was asked for", None
    refitter = Refitter.build(predictor, parts[0], options)
    if refitter is None:
        return "no test: the covariates of the rows do not vary, so that nothing can be fitted to them", None
    return f"{TEST} {DRAWN_BOTH if len(parts) > 1 else DRAWN_AGAIN}", refitter


def _make_judge(
    parts: tuple[Sample, ...], rows: LinkedRows, bands: Bands, outside: Outside | None
) -> Callable[[Predictor, States, States], Measures]:
    """The measures of the judged rows, and of the training rows where these are others."""
    n, held_out = len(parts[0]), len(parts) > 1
    judged = slice(n if held_out else 0, None)
    marked = np.zeros(len(parts[-1]), bool) if outside is None else outside.rows
    first = cut_bands(parts[0].rows.dt)

    def judge(model: Predictor, start: States, end: States) -> Measures:
        p = model.probabilities(start, rows.dt, rows.x)
        found = measure(start[judged], end[judged], p[judged], bands, marked)
        if held_out:
            found["training"] = count_cells(start[:n], end[:n], p[:n], first).statistic
        return found

    return judge


def _conclude(cells: Cells, reference: Reference | None, level: float, words: str) -> Goodness:
    statistic = cells.statistic if cells.observed.any() else math.nan
    if reference is None:
        return Goodness(statistic, math.nan, math.nan, 0, 0, 0, words)
    return Goodness(
        statistic,
        reference.quantile(1.0 - level),
        reference.p_value(),
        reference.replicates,
        reference.without_maximum,
        reference.unfinished,
        words,
    )


def _find_outside(training: Sample, sample: Sample, p: Array, bands: Bands) -> Outside | None:
    """Judged rows with a covariate below or above all training rows."""
    if not len(training) or not len(sample):
        return None
    low, high = training.x.min(axis=0, initial=np.inf), training.x.max(axis=0, initial=-np.inf)
    beyond = (sample.x < low) | (sample.x > high)
    rows = beyond.any(axis=1)
    if not rows.any():
        return None
    each = [
        f"{name} {sample.x[:, c].min():g} to {sample.x[:, c].max():g} against {low[c]:g} to {high[c]:g}"
        for c, name in enumerate(sample.covariates)
        if beyond[:, c].any()
    ]
    return Outside(rows, "; ".join(each), count_cells(sample.rows.start, sample.rows.end, p, bands, rows))


def _count_floor(predictor: Predictor, sample: Sample) -> int:
    """Rows at the probability floor; a forecast that is no number is there too, as in ``scores``."""
    if not len(sample):
        return 0
    return int(np.sum(~(predictor.log_probabilities(sample.rows, sample.x) > LOG_FLOOR)))


def _table_counts(cells: Cells, bands: Bands) -> pl.DataFrame:
    rows = cells.observed.sum(axis=2)
    start, band, end = np.nonzero(
        (rows > 0)[:, :, None] & np.triu(np.ones((len(rows), len(rows)), bool))[:, None, :]
    )
    here = (start, band, end)
    frame = pl.DataFrame(
        {
            "start": start + 1,
            "end": end + 1,
            "band": band + 1,
            "years_low": bands.low[band],
            "years_high": bands.high[band],
            "rows": rows[start, band].astype(np.int64),
            **_columns(cells.observed[here], cells.expected[here]),
        }
    )
    return frame.sort("start", "end", "band")


def _table_margins(cells: Cells, bands: Bands) -> dict[str, pl.DataFrame]:
    rows, (moved, expected) = cells.observed.sum(axis=2).astype(np.int64), cells.moves
    number = np.arange(1, len(rows) + 1)
    by_start = {"start": number, "rows": rows.sum(axis=1), **_columns(moved.sum(axis=1), expected.sum(axis=1))}
    by_end = {"end": number, **_columns(cells.observed.sum(axis=(0, 1)), cells.expected.sum(axis=(0, 1)))}
    years = {"years_low": bands.low, "years_high": bands.high, "rows": rows.sum(axis=0)}
    by_band = {"band": number[: len(bands)], **years, **_columns(moved.sum(axis=0), expected.sum(axis=0))}
    return {
        "by_start": pl.DataFrame(by_start).filter(pl.col("rows") > 0),
        "by_band": pl.DataFrame(by_band),
        "by_end": pl.DataFrame(by_end).filter((pl.col("observed") > 0) | (pl.col("expected") > 0)),
    }


def _columns(observed: Array, expected: Array) -> dict[str, NDArray[Any]]:
    return {
        "observed": observed.astype(np.int64),
        "expected": expected,
        "residual": residual(observed, expected),
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """None for every number that is none, for JSON has no word for it."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
