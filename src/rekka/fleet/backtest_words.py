"""What a backtest says of each case, in sentences: better or not, as many as expected or not, what is lost.

A difference is called one only where its interval leaves 0 out.
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from rekka.core.errors import count_of
from rekka.fleet.backtest_case import CaseResult
from rekka.fleet.backtest_rows import Cut
from rekka.fleet.backtest_scores import ALL, MODEL, PLAIN, SAME
from rekka.forecast.forecast import NOT_CERTIFIED
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS

TRAFFIC = "traffic_mean"
FEW_BRIDGES = 10  # fewer make no interval to rely on: ``intervals``
SAYING_SAME, WITHOUT = "saying that nothing changes", "the model without covariates"
WORDS = {"rps": "ranked probability score", "log_loss_exact": "log loss"}


def tell_traffic(covariates: tuple[str, ...], cut: Cut) -> tuple[str, ...]:
    """That a mean of two counts knows the later one."""
    if TRAFFIC not in covariates:
        return ()
    return (
        f"{TRAFFIC} of the interval that leads over {cut.words} is the mean of two counts, and the second was "
        "made later: a forecast made then could not have used it. Name the other covariates (--use) to see what "
        "that is worth.",
    )


def tell_case(
    result: CaseResult, lost: pl.DataFrame, cut: Cut, level: float, asked: int | None, whole: bool
) -> str:
    """The case in sentences; ``whole`` says whether all lost visits are known."""
    if result.scores is None or result.totals is None or result.forecasts is None:
        return " ".join(
            [f"{result.name}: not forecast: {str(result.reason).rstrip('.')}.", *_tell_lost(lost, whole)]
        )
    horizon = result.forecasts["horizon_years"].to_numpy()
    far = f"{horizon.min():.3g} to {horizon.max():.3g} years ahead"
    trained = f"{count_of(result.rows, 'transition')} of {count_of(result.bridges, 'bridge')} {cut.span}"
    forecast = f"{count_of(result.visits, 'later visit')} of {count_of(result.members, 'member')} forecast, {far}"
    sentences = [f"{result.name}: fitted to {trained}; {forecast}, {result.course}."]
    if not result.certified:
        sentences.insert(0, f"{NOT_CERTIFIED} ({'; '.join(result.flaws)}).")
    if result.fit_test is not None and result.fit_test.rejected:
        sentences.append(" ".join(result.fit_test.causes))
    sentences += _tell_scores(result.scores)
    sentences += _tell_totals(result, result.totals, level, asked)
    sentences += [*_tell_limits(result), *_tell_lost(lost, whole)]
    return " ".join(sentences)


def _tell_scores(scores: pl.DataFrame) -> list[str]:
    """Beside each of the two forecasters to beat."""
    everything = scores.filter(by=ALL)
    told = [_compare(everything, SAME, SAYING_SAME, "rps")]
    exact = everything.filter(pl.col("less").is_null(), score="log_loss_exact")
    losses = dict(exact.select("forecaster", "mean").rows())
    if PLAIN in losses:
        finite = math.isfinite(losses[MODEL]) and math.isfinite(losses[PLAIN])
        told.append(_compare(everything, PLAIN, WITHOUT, "log_loss_exact" if finite else "rps"))
    if not math.isfinite(losses[MODEL]):
        told.append("Its log loss is infinite: something was found that it held to be impossible.")
    return told


def _compare(scores: pl.DataFrame, other: str, name: str, score: str) -> str:
    """Better, worse, or neither that these visits could tell; less is better."""
    here = scores.filter(score=score)
    ours, theirs = (here.filter(pl.col("less").is_null(), forecaster=one)["mean"].item() for one in (MODEL, other))
    less = here.filter(forecaster=MODEL, less=other).row(0, named=True)
    verdict = "forecasts neither better nor worse, as far as these visits can tell, than"
    if less["high"] is not None and less["high"] < 0:
        verdict = "forecasts better than"
    elif less["low"] is not None and less["low"] > 0:
        verdict = "forecasts worse than"
    return f"The model {verdict} {name}: {WORDS[score]} {ours:.4f} against {theirs:.4f}, {_tell_difference(less)}."


def _tell_difference(less: dict[str, Any]) -> str:
    if less["low"] is None:
        return f"difference {less['mean']:+.4f} (no interval: {count_of(less['bridges'], 'bridge')})"
    return f"difference {less['mean']:+.4f} ({less['low']:+.4f} to {less['high']:+.4f})"


def _tell_totals(result: CaseResult, totals: pl.DataFrame, level: float, asked: int | None) -> list[str]:
    """What was found at the threshold, beside what was expected; and in how many years that fitted."""
    if result.threshold is None:
        return [f"State {asked} is beyond {result.n_states}, the worst of the training rows, and not forecast."]
    worse = totals.filter(pl.col("or_worse"))
    line = worse.filter(by=ALL).row(0, named=True)
    where = f"state {result.threshold}" + (" or worse" if result.threshold != result.n_states else "")
    found = f"Of {count_of(line['visits'], 'visit')}, {line['observed']:,} found {where}; expected were"
    if line["inside"] is None:
        return [f"{found} {line['expected']:,.0f}, without a prediction interval: {result.why}."]
    ends = f"{line['expected']:,.0f} ({line['predicted_low']:,} to {line['predicted_high']:,})"
    more = "more" if line["observed"] > line["expected"] else "fewer"
    verdict = "inside" if line["inside"] else f"{more} than"
    told = [
        f"{found} {ends}: {verdict} the {100 * level:g} % prediction interval{'' if line['inside'] else ' has'}."
    ]
    return told + _tell_periods(worse)


def _tell_periods(worse: pl.DataFrame) -> list[str]:
    """In how many years, or rounds, the number lies in its interval."""
    for period in ("year", "visit"):
        here = worse.filter(by=period)
        if len(here) > 1:
            plural = {"year": "years", "visit": "rounds"}[period]
            return [f"It is inside in {here['inside'].sum()} of {len(here)} {plural}."]
    return []


def _tell_limits(result: CaseResult) -> list[str]:
    """What makes these figures less than they look."""
    told = []
    if small := _find_small(result):
        told.append(f"Exploratory, too small to conclude from: {'; '.join(small)}.")
    if result.outside:
        told.append(
            f"In {result.outside:,} of {count_of(result.visits, 'visit')} a covariate is outside the range of the "
            "training rows, where the model extrapolates."
        )
    if result.beyond:
        told.append(
            f"{count_of(result.beyond, 'later visit')} with a state beyond {result.n_states}, the worst that any "
            "training row ends in, left out."
        )
    if result.torn:
        told.append(
            f"{count_of(result.torn, 'chain')} ended early, because several transitions start at one visit: a "
            "column that tells members apart (member) would say how they go on."
        )
    return told


def _find_small(result: CaseResult) -> list[str]:
    """Why a case is small, if it is."""
    found = []
    if result.rows < FEW_ROWS:
        found.append(f"{count_of(result.rows, 'training row')}, fewer than {FEW_ROWS}")
    if result.events_per_parameter < FEW_EVENTS:
        found.append(f"{result.events_per_parameter:.1f} events per parameter, fewer than {FEW_EVENTS}")
    assert result.scores is not None
    bridges = result.scores.filter(by=ALL)["bridges"].max()
    if isinstance(bridges, int) and bridges < FEW_BRIDGES:
        found.append(f"intervals from {count_of(bridges, 'bridge')}, fewer than {FEW_BRIDGES}")
    return found


def _tell_lost(lost: pl.DataFrame, whole: bool) -> list[str]:
    """Whom the scores leave out."""
    limit = "What is scored are members that were not repaired and whose rating did not improve."
    unknown = "Pairs that were set aside before are not in a table of transitions and are not counted."
    if lost.is_empty():
        return [] if whole else [limit, unknown]
    reasons = "; ".join(f"{reason}: {visits:,}" for reason, visits in lost.select("reason", "visits").rows())
    members, visits = int(lost["members"].sum()), int(lost["visits"].sum())
    count = f"{'' if whole else 'At least '}{count_of(visits, 'later visit')} of {count_of(members, 'member')}"
    return [f"{count} not scored, because a pair was set aside on the way ({reasons}). {limit}"]
