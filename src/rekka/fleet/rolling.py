"""Rolling origins: models fitted up to several days inside the records, compared on the visits that came after.

Which elements of a model of histories do the records support? The plain model of pairs, then elements one at a
time, as long as they forecast better:

    1 ORIGINS   days inside the records; each leaves visits to train on before it and visits to score after it
    2 FORECAST  every later visit up to the end, improvements included, but for those after a recorded repair;
                each model forecasts the same visits from the last visit of each member
    3 SCORE     ranked probability score of what inspectors recorded, lower is better; the visits of all origins
                together, differences visit by visit, intervals clustered by bridge
    4 ADD       of the elements that are not in the model yet, each is added to it by itself, if the records can
                show it at all: errors and improvements where a rating improves, a running clock where a covariate
                advances. The best is kept if it is certified at the latest origin and at half of all, lowers the
                score at half of them and by 1 % in all, and is shown to lower it: the interval of the difference,
                allowing for the number of elements, lies below 0. Where it is not certified, the model before it
                stands in. One that cannot lower the score by 1 % at the latest origin, as its interval there
                says, is not fitted at the others
    5 RIVALS    where one is shown to be better, all that were tried at all origins are rivals, but for those that
                are shown to forecast worse than the best, by 1 % or more: over a few years models of different
                kinds can forecast alike. Of rivals fitted to the same rows, the one with the highest
                log-likelihood less parameters, at a certified maximum of all rows up to the end, is kept. When no
                element is kept, the choice is made
    6 WINDOW    where that is asked for, half-lives of the weights or recent years alone are compared alike

Log loss cannot judge: the plain model gives improvements the probability 0. If the plain model is right, an
element is added in at most one of twenty components (Bonferroni over the elements that the records can show).
Nothing after the end is looked at.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import rekka
from rekka.core.errors import BadOption, InputError, count_of, did_you_mean
from rekka.core.files import make_folder, name_apart, write_whole
from rekka.core.folders import digest
from rekka.core.numerics import quiet
from rekka.core.ratings import Ratings
from rekka.core.sheets import to_parquet
from rekka.evaluation.scores import CONFIDENCE, Interval, mean_interval, score_rows
from rekka.evaluation.selection import Guard
from rekka.fleet.backtest_rows import Cut, link_chains
from rekka.fleet.backtest_scores import Settings, Visits, fit_training, fold_states, forecast_visits
from rekka.fleet.histories import NO_HISTORIES, HistoryOptions
from rekka.forecast.ageing import plan_ageing
from rekka.model.fit import Fit

Array = NDArray[np.float64]

PLAIN, AUTO, JOIN, AT = "plain", "auto", "+", "@"
HALF_LIFE, SINCE = "half_life", "since"
GRIDS = {HALF_LIFE: (8.0, 4.0, 2.0), SINCE: (10.0, 5.0, 3.0)}  # years, fixed before any records were looked at
ELEMENTS: Mapping[str, Mapping[str, str]] = {  # tried in this order; of equals the first is taken
    "errors": {"errors": "adjacent-common"},
    "improvements": {"improvements": "common"},
    "trend": {"trend": "common"},
    "running": {"clock": "running"},
    "frailty": {"frailty": "gamma"},
}
NAMES = {PLAIN: "the plain model", "running": "running clock"}  # what people read, where it differs
MOST_ORIGINS = 5
LEAST_SPAN = 0.5  # of the years up to the end; earlier origins leave too little to train on
FEW_ORIGINS = 2  # may be earlier than that
LEAST_GAIN = 0.01  # of the score before: less is not worth an element

MODELS_SCHEMA: dict[str, Any] = {
    "case": pl.String, "step": pl.Int64, "model": pl.String, "than": pl.String, "certified_at": pl.Int64,
    "rps": pl.Float64, "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "level": pl.Float64,
    "brier": pl.Float64, "brier_difference": pl.Float64, "brier_low": pl.Float64, "brier_high": pl.Float64,
    "log_loss": pl.Float64, "origins": pl.Int64, "lower_at": pl.Int64, "visits": pl.Int64,
    "bridges": pl.Int64, "kept": pl.Boolean, "reason": pl.String,
}  # fmt: skip
ORIGINS_SCHEMA: dict[str, Any] = {
    "case": pl.String, "model": pl.String, "origin": pl.Date, "certified": pl.Boolean, "rows": pl.Int64,
    "visits": pl.Int64, "rps": pl.Float64, "log_loss": pl.Float64, "brier": pl.Float64, "observed": pl.Int64,
    "expected": pl.Float64, "horizon": pl.Float64, "reason": pl.String,
}  # fmt: skip


def name_model(parts: Sequence[str]) -> str:
    """Name of a model by its elements: "errors+trend"; "plain" has none."""
    return JOIN.join(name for name in ELEMENTS if name in parts) or PLAIN


def describe_model(name: str) -> str:
    """Name of a model for people: "errors, running clock"."""
    elements, _, window = name.partition(AT)
    words = [NAMES.get(part, part) for part in elements.split(JOIN)]
    return ", ".join([*words, Window.read(window).words] if window else words)


class Window(NamedTuple):
    """Recent records: a half-life of weights, or the years before the last day of which rows train."""

    kind: str
    years: float

    @classmethod
    def read(cls, text: str) -> Window:
        """Window of its text."""
        kind, _, years = text.partition("=")
        return cls(kind, float(years))

    def __str__(self) -> str:
        return f"{self.kind}={self.years:g}"

    @property
    def words(self) -> str:
        """The window for people."""
        return f"half-life {self.years:g} years" if self.kind == HALF_LIFE else f"last {self.years:g} years only"

    def begin(self, end: dt.date) -> dt.date:
        """First day of the rows that train up to ``end``."""
        return years_before(end, int(self.years))


def read_windows(half_life: Any, since: Any, models: Any) -> tuple[Window, ...]:
    """Windows to compare: the grids of those that are ``auto``."""
    found = [Window(kind, years) for kind, value in ((HALF_LIFE, half_life), (SINCE, since)) if value == AUTO
             for years in GRIDS[kind]]  # fmt: skip
    if found and models is None:
        raise BadOption(
            f"{found[0].kind} is 'auto', which is chosen by forecasts from days inside the records. Give models "
            "(--models), too: auto, or plain.",
            option=found[0].kind,
        )
    return tuple(found)


def read_models(asked: str | Sequence[str]) -> tuple[str, ...] | None:
    """Names of the models to compare; None for ``auto``, which builds them up."""
    names = [one.strip() for one in asked.split(",")] if isinstance(asked, str) else list(asked)
    if names == [AUTO]:
        return None
    found = []
    for name in names:
        parts = [part.strip() for part in str(name).split(JOIN)]
        if AUTO in parts:
            raise BadOption(
                f"models has {AUTO!r} beside others, and {AUTO} builds the model up by itself. Give {AUTO} alone, "
                f"or the models to compare, of {PLAIN} and {', '.join(ELEMENTS)}, such as errors,errors+trend.",
                option="models",
                value=name,
            )
        for part in parts:
            if part not in ELEMENTS and not (part == PLAIN and len(parts) == 1):
                known = (AUTO, PLAIN, *ELEMENTS)
                raise BadOption(
                    f"models has {part!r}; known are {AUTO} by itself, {PLAIN}, {', '.join(ELEMENTS)}, and "
                    f"several of these joined by a plus sign, such as errors+trend.{did_you_mean(part, known)}",
                    option="models",
                    value=part,
                )
        found.append(name_model(parts))
    return tuple(dict.fromkeys(found))


def elements_of(name: str) -> HistoryOptions:
    """Options of the model of this name."""
    given: dict[str, Any] = {}
    for part in name.partition(AT)[0].split(JOIN):
        given |= ELEMENTS.get(part, {})
    return replace(NO_HISTORIES, **given)


def drop_auto(value: Any) -> Any:
    """The value, or None where it is to be chosen."""
    return None if isinstance(value, str) and value == AUTO else value


def list_origins(frame: pl.DataFrame, end: dt.date) -> tuple[Cut, ...]:
    """Origins up to ``end``, the latest first.

    The first lies the usual interval before the end, so that most members have a visit after it, and the others
    half of that apart. There are up to five, where the records allow: the earlier ones reach farther horizons, at
    which models differ most.
    """
    known = frame.filter(pl.col("date_2") <= end)
    if known.is_empty():
        return ()
    begin, gap = known.select(pl.col("date_1").min(), pl.col("interval_years").cast(pl.Float64).median()).row(0)
    apart, found = max(1, round(gap / 2)), list[Cut]()
    span = (end - begin).days / 365.25
    for place in range(MOST_ORIGINS):
        back = max(1, round(gap)) + apart * place
        early = span - back < (LEAST_SPAN * span if len(found) >= FEW_ORIGINS else gap)
        if early:
            break
        found.append(Cut(years_before(end, back)))
    return tuple(found)


def years_before(day: dt.date, years: int) -> dt.date:
    """Day so many years earlier; of 29 February the 28th."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return day.replace(year=day.year - years, day=28)


class OriginScores(NamedTuple):
    """Scores of one model's forecasts of the visits after one origin: a row each with rps, brier, log_loss, below.

    ``reason`` says why the fit is not certified, or there are no scores. The fit is None where there is none, or
    where the forecasts were read from a folder.
    """

    scores: pl.DataFrame | None
    reason: str | None = None
    fit: Fit | None = None

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum."""
        return self.scores is not None and self.reason is None


@dataclass(frozen=True)
class Store:
    """A folder that keeps the forecasts of every model and origin, so that a run that was stopped continues.

    The name of a file ends in a digest of what its forecasts follow from: rows, options, version.
    """

    folder: Path

    def read(self, key: str) -> OriginScores | None:
        """Forecasts of earlier; None where there are none."""
        file = self.folder / f"{key}.parquet"
        try:
            found = pl.read_parquet(file)
            reason = found["reason"][0]
        except (FileNotFoundError, pl.exceptions.PolarsError):  # a damaged one is made again
            return None
        return OriginScores(found.drop("reason"), reason)

    def write(self, key: str, found: OriginScores) -> None:
        """Keep forecasts; those that could not be made are made again."""
        if found.scores is not None:
            make_folder(self.folder)
            marked = found.scores.with_columns(reason=pl.lit(found.reason, pl.String))
            write_whole(self.folder / f"{key}.parquet", to_parquet(marked))


@dataclass(frozen=True, eq=False)
class Origin:
    """One origin: training rows, and the later visits that every model forecasts."""

    cut: Cut
    train: pl.DataFrame
    frame: pl.DataFrame
    visits: Visits
    plain: Fit

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates that vary in the training rows."""
        return self.plain.covariates

    @property
    def n_states(self) -> int:
        """Ratings that the plain model knows."""
        return self.plain.n_states

    def take_training(self, name: str) -> pl.DataFrame:
        """Training rows of a model: all, or those of its window."""
        window = name.partition(AT)[2]
        if not window or Window.read(window).kind == HALF_LIFE:
            return self.train
        assert isinstance(self.cut.moment, dt.date)
        return self.train.filter(pl.col("date_1") >= Window.read(window).begin(self.cut.moment))

    def mark(self, name: str, settings: Settings) -> str:
        """Digest of what a model's forecasts follow from: rows, options, version."""
        forecast = settings.forecast.age, settings.forecast.advance, settings.threshold, settings.labels
        options = settings.options, forecast, self.covariates, name, self.cut
        return digest(repr((rekka.__version__, self._rows, options)).encode())

    @cached_property
    def _rows(self) -> str:
        """Digest of the transitions and of which visits are forecast."""
        return digest(to_parquet(self.frame) + self.visits.chains.place.tobytes())

    @property
    def bridges(self) -> NDArray[Any]:
        """Bridge of each visit, by name: the same at every origin."""
        return self.frame["bridge_id"].to_numpy()[self.visits.chains.place]


@dataclass(eq=False)
class Rolling:
    """Models of one component at its origins; each is fitted once."""

    case: str
    origins: tuple[Origin, ...]
    settings: Settings
    on_fit: Callable[[str, str], None]
    store: Store | None = None
    lacks: str | None = None  # why there is no origin
    train: pl.DataFrame = field(default_factory=pl.DataFrame)  # rows up to the end
    done: dict[tuple[str, int], OriginScores] = field(default_factory=dict)
    supports: dict[str, float] = field(default_factory=dict)  # of models that forecast alike
    before: dict[str, str] = field(default_factory=dict)  # the model that each one adds an element to

    def forecast(self, name: str, place: int, warm: Sequence[str] = ()) -> OriginScores:
        """Scores of a model's forecasts at an origin; ``warm`` names models whose fits there are starts."""
        key = (name, place)
        if key not in self.done:
            origin = self.origins[place]
            self.on_fit(name, str(origin.cut.moment))
            mark = origin.mark(name, self.settings)
            file = f"{name_apart([self.case])[0]} {name} {origin.cut.moment} {mark[:16]}"
            kept = None if self.store is None else self.store.read(file)
            if kept is None:
                others = [(other, place) for other in warm] + [(name, place - 1)]
                starts = [self.done[other].fit for other in others if other in self.done]
                kept = self._forecast(name, origin, [one for one in starts if one is not None])
                if self.store is not None:
                    self.store.write(file, kept)
            self.done[key] = kept
        return self.done[key]

    def _forecast(self, name: str, origin: Origin, warm: Sequence[Fit]) -> OriginScores:
        try:
            with quiet():
                fit = origin.plain
                if name != PLAIN:
                    fit = _fit(origin.take_training(name), origin.covariates, self.settings, name, warm)
                if int(origin.visits.start.max()) >= fit.n_states:
                    return OriginScores(None, f"its rows know no rating worse than state {fit.n_states}")
                p = fold_states(self._propagate(fit, origin), origin.n_states)
        except InputError as error:
            return OriginScores(None, str(error))
        except (ArithmeticError, ValueError) as error:
            return OriginScores(None, f"the fit could not be computed: {error}")
        end = origin.visits.end
        with np.errstate(divide="ignore"):
            rows = score_rows(p, np.log(p[np.arange(len(end)), end]), origin.visits.start, end)
        below = p[:, self.threshold(origin) - 1 :].sum(axis=1)
        scores = pl.DataFrame({"rps": rows.rps, "brier": rows.brier, "log_loss": -rows.log_p, "below": below})
        why = None if fit.certificate.certified else "; ".join(fit.certificate.reasons)
        return OriginScores(scores, why, fit)

    def support(self, name: str) -> float:
        """Log-likelihood less the number of parameters, at the maximum of all rows up to the end; -inf without."""
        if name not in self.supports:
            self.on_fit(name, "the end of the records")
            known = [one.fit for (other, _), one in self.done.items() if other == name and one.fit is not None]
            try:
                with quiet():
                    fit = _fit(self.train, self.origins[0].covariates, self.settings, name, known[:1])
                support = fit.inference.log_likelihood - fit.inference.degrees_of_freedom
                self.supports[name] = support if fit.certificate.certified else -math.inf
            except (InputError, ArithmeticError, ValueError):  # its forecasts stay as good as they are
                self.supports[name] = -math.inf
        return self.supports[name]

    def count_excluded(self, name: str) -> int:
        """Rows up to the end that a model leaves out, because they improve as it cannot explain."""
        return elements_of(name).cut(self.train).excluded

    def _propagate(self, fit: Fit, origin: Origin) -> Array:
        visits = origin.visits
        past = visits.find_past(origin.frame, origin.train, fit)
        ageing = plan_ageing(fit, self.settings.forecast.age)
        return forecast_visits(fit, ageing, visits.x, visits.start, visits.chains.horizon, past)

    def threshold(self, origin: Origin) -> int:
        """State from which visits are counted at an origin."""
        ratings = Ratings.of(self.settings.labels, origin.n_states)
        return min(self.settings.threshold or ratings.default_threshold, origin.n_states)

    def stand_in(self, name: str, place: int) -> pl.DataFrame:
        """Scores of a model at an origin; where it is not certified, of the model before it."""
        while not self.done[name, place].certified and name in self.before:
            name = self.before[name]
        found = self.done[name, place]
        if found.scores is None:
            day = self.origins[place].cut.moment
            raise InputError(f"{describe_model(name)} has no forecasts from {day}: {found.reason}")
        return found.scores

    def join(self, name: str, score: str) -> Array:
        """Scores (v,) of a model at all visits of all origins."""
        found = [self.stand_in(name, place)[score] for place in range(len(self.origins))]
        return pl.concat(found).to_numpy()

    @cached_property
    def bridges(self) -> NDArray[Any]:
        """Bridge of each visit of all origins, by number."""
        names = np.concatenate([one.bridges for one in self.origins])
        return np.asarray(np.unique(names, return_inverse=True)[1])

    def compare(self, name: str, other: str, level: float, score: str = "rps") -> Interval:
        """Interval of a mean score of one model less that of another, visit by visit."""
        return mean_interval(self.join(name, score) - self.join(other, score), self.bridges, level)

    def is_hopeless(self, name: str, other: str, level: float) -> bool:
        """Whether the interval at the latest origin leaves no gain over another model that is worth an element."""
        ours, theirs = self.stand_in(name, 0)["rps"], self.stand_in(other, 0)["rps"].to_numpy()
        found = mean_interval(ours.to_numpy() - theirs, self.origins[0].bridges, level)
        return -found.low < LEAST_GAIN * float(theirs.mean())

    def lower_at(self, name: str, other: str) -> int:
        """Number of origins at which a model's mean score is lower than another's."""
        count = 0
        for place in range(len(self.origins)):
            ours, theirs = self.stand_in(name, place)["rps"], self.stand_in(other, place)["rps"]
            count += bool((ours - theirs).sum() < 0)
        return count

    def tabulate(self) -> pl.DataFrame:
        """Table of each model at each origin."""
        rows = []
        for (name, place), one in self.done.items():
            origin = self.origins[place]
            scores, end = one.scores, origin.visits.end
            row: dict[str, Any] = {
                "case": self.case, "model": name, "origin": origin.cut.moment, "certified": one.certified,
                "rows": len(origin.train), "visits": len(end), "reason": one.reason,
            }  # fmt: skip
            if scores is not None:
                row |= {
                    **{name: scores[name].mean() for name in ("rps", "log_loss", "brier")},
                    "observed": int((end >= self.threshold(origin) - 1).sum()), "expected": scores["below"].sum(),
                    "horizon": origin.visits.chains.horizon.max(),
                }  # fmt: skip
            rows.append(row)
        return pl.DataFrame(rows, schema=ORIGINS_SCHEMA)


def _fit(
    train: pl.DataFrame, covariates: Sequence[str], settings: Settings, name: str, warm: Sequence[Fit] = ()
) -> Fit:
    histories, advance = elements_of(name), settings.forecast.advance
    advance = advance and tuple(one for one in advance if one in covariates)
    options = replace(settings.options, clock=histories.clock, advance=advance)
    window = name.partition(AT)[2]
    if window and Window.read(window).kind == HALF_LIFE:
        options = replace(options, half_life=Window.read(window).years)
    return fit_training(train, covariates, options, histories, warm, far=True)


def open_origins(
    case: str,
    frame: pl.DataFrame,
    cuts: Sequence[Cut],
    end: dt.date,
    covariates: Sequence[str],
    settings: Settings,
    on_fit: Callable[[str, str], None],
    store: Store | None = None,
) -> Rolling:
    """Origins of a component with visits to score, and the plain model's fit at each.

    ``frame`` has its transitions, improvements of any size kept. Origins at which the plain model cannot be
    fitted, or no visit follows, are left out.
    """
    frame, found, lacks = frame.filter(pl.col("date_2") <= end), list[Origin](), None
    for cut in cuts:
        cut = replace(cut, since=settings.cut.since)
        train = replace(settings, cut=cut, far=True).take_training(frame)
        used = tuple(name for name in covariates if not train.is_empty() and train[name].n_unique() > 1)
        chains = link_chains(frame, cut)
        if train.is_empty() or not len(chains):
            continue
        try:
            with quiet():
                plain = _fit(train, used, settings, PLAIN)
                visits = Visits.read(frame, chains, plain, cut, improvements=True)
        except (InputError, ArithmeticError, ValueError) as error:
            lacks = lacks or f"the plain model cannot be fitted up to {cut.moment}: {str(error).rstrip('.')}"
            continue
        if len(visits.chains) and np.isfinite(plain.coefficients).all():
            found.append(Origin(cut, train, frame, visits, plain))
    whole = replace(settings, far=True).take_training(frame)
    return Rolling(case, tuple(found), settings, on_fit, store, lacks, whole)


@dataclass(frozen=True, eq=False)
class ModelChoice:
    """Model chosen for a component, with a row of ``tried`` for each model that was compared.

    ``name`` is "plain" or the elements joined by plus signs; ``reason`` says why nothing could be compared.
    """

    case: str
    name: str
    tried: pl.DataFrame
    origins: pl.DataFrame
    difference: Interval | None = None  # of its score less the plain model's
    plain_rps: float = math.nan
    years: float = math.nan  # the farthest horizon
    reason: str | None = None

    @property
    def histories(self) -> HistoryOptions:
        """Options of the chosen model."""
        return elements_of(self.name)

    @property
    def window(self) -> Window | None:
        """Recent records that it is to be fitted to, if any."""
        window = self.name.partition(AT)[2]
        return Window.read(window) if window else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the model, the sentence on it, and all that were tried."""
        return {"model": self.name, "summary": self.summary, "tried": self.tried.to_dicts()}

    @property
    def summary(self) -> str:
        """Say what was chosen, and what it gains."""
        if self.reason is not None:
            return f"{self.case}: the plain model, because no others could be compared: {self.reason}."
        visits, origins = self.tried["visits"].max(), self.tried["origins"].max()
        assert isinstance(visits, int)
        where = (
            f"{visits:,} forecasts of later visits from {count_of(int(str(origins)), 'day')} inside the records"
        )
        if self.name == PLAIN or self.difference is None:
            others = self.tried.filter(pl.col("model") != PLAIN)["model"].unique(maintain_order=True).to_list()
            tried = ", ".join(map(describe_model, others))
            if not others:
                return f"{self.case}: the plain model, the only one that was asked for ({where})."
            none = f"none of {tried} is" if len(others) > 1 else f"{tried} is not"
            return f"{self.case}: the plain model; {none} shown to forecast better ({where})."
        ends = self.difference.mean, self.difference.high, self.difference.low
        gain, low, high = (-100 * value / self.plain_rps for value in ends)
        return (
            f"{self.case}: {describe_model(self.name)}; lowers the error (ranked probability score) of forecasts "
            f"up to {self.years:.0f} years ahead by {gain:.0f} % (95 %: {low:.0f} to {high:.0f}) against the "
            f"plain model ({where})."
        )


def choose_model(
    rolling: Rolling, models: Sequence[str] | None = None, windows: Sequence[Window] = ()
) -> ModelChoice:
    """Build up the model of a component, or choose among ``models``, by the steps at the head of this file."""
    if not rolling.origins:
        why = rolling.lacks or (
            "no day inside the records leaves visits to train on before it and visits to score after it"
        )
        return ModelChoice(rolling.case, PLAIN, pl.DataFrame(schema=MODELS_SCHEMA), rolling.tabulate(), reason=why)
    _evaluate(rolling, PLAIN)
    rows, current = [_describe(rolling, 0, PLAIN, None, CONFIDENCE, kept=True)], PLAIN
    for step in range(1, len(ELEMENTS) + 1):
        names = _extend(rolling, current) if models is None else [name for name in models if name != PLAIN]
        found, best = _compare(rolling, step, names, current, sift=models is None)
        rows, before = [*rows, *found], current
        current = best or current
        if before == current or models is not None:
            break
    found, best = _compare(rolling, step + 1, [f"{current}{AT}{one}" for one in windows], current)
    rows, current = [*rows, *found], best or current
    return ModelChoice(
        rolling.case,
        current,
        pl.DataFrame(rows, schema=MODELS_SCHEMA),
        rolling.tabulate(),
        None if current == PLAIN else rolling.compare(current, PLAIN, CONFIDENCE),
        float(rolling.join(PLAIN, "rps").mean()),
        max(float(one.visits.chains.horizon.max()) for one in rolling.origins),
    )


def _compare(
    rolling: Rolling, step: int, names: Sequence[str], than: str, *, sift: bool = False
) -> tuple[list[dict[str, Any]], str | None]:
    """Rows of models that are compared with one, and the name of the best that is shown to be better, if any.

    With ``sift`` those that are hopeless at the latest origin are not fitted at the others.
    """
    level = Guard().level(len(names))
    for name in names:
        _evaluate(rolling, name, than, level if sift else None)
    rows = [_describe(rolling, step, name, than, level, kept=False) for name in names]
    best = _choose_best(rolling, rows)
    if best is not None:
        best |= {"kept": True, "reason": None}
        for row in rows:
            if row is not best and row["reason"] is None and row["rps"] < best["rps"]:
                row["reason"] = "another forecasts alike and fits all records better"
    return rows, None if best is None else best["model"]


def _choose_best(rolling: Rolling, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Model with the lowest score of those that may be kept or, of its rivals, the one that fits best.

    A rival need not be shown to be better than the model before: that one is refuted once any is. How well models
    fit is compared on all rows up to the end, and only between models of the same rows.
    """
    best = min((row for row in rows if row["reason"] is None), key=lambda row: row["rps"], default=None)
    if best is None or best["model"].partition(AT)[2]:
        return best
    rivals = [
        row
        for row in rows
        if row.get("rps") is not None
        and rolling.count_excluded(row["model"]) == rolling.count_excluded(best["model"])
        and not _is_worse(rolling, row["model"], best["model"])
    ]
    if len(rivals) < 2:
        return best
    return max(rivals, key=lambda row: (rolling.support(row["model"]), -row["rps"]))


def _is_worse(rolling: Rolling, name: str, best: str) -> bool:
    """Whether a model is shown to forecast worse than the best, by as much as is worth an element."""
    found, score = rolling.compare(name, best, CONFIDENCE), float(rolling.join(name, "rps").mean())
    return found.low > 0 and found.mean >= LEAST_GAIN * score


def _extend(rolling: Rolling, current: str) -> list[str]:
    """Models with one element more than the current one, of those that the records can show."""
    latest, parts = rolling.origins[0], current.split(JOIN)
    improves = (latest.train["state_2"] < latest.train["state_1"]).any()
    shown = {"errors": improves, "improvements": improves, "running": bool(latest.plain.clock.names)}
    return [name_model([*parts, name]) for name in ELEMENTS if name not in parts and shown.get(name, True)]


def _evaluate(rolling: Rolling, name: str, than: str | None = None, level: float | None = None) -> None:
    """Fit a model at every origin; only at the latest if it is not certified there.

    With ``level`` also if it is hopeless there: the interval of this level leaves no gain worth an element.
    """
    if than is not None:
        rolling.before[name] = than
    for place in range(len(rolling.origins)):
        found = rolling.forecast(name, place, [] if than is None else [than])
        if place == 0 and than is not None and not found.certified:
            return
        if place == 0 and than is not None and level is not None and rolling.is_hopeless(name, than, level):
            return


def _describe(
    rolling: Rolling, step: int, name: str, than: str | None, level: float, *, kept: bool
) -> dict[str, Any]:
    """Row of a model: scores over all origins, and why it cannot be kept."""
    own = [rolling.done[name, place] for place in range(len(rolling.origins)) if (name, place) in rolling.done]
    certified = sum(one.certified for one in own)
    row: dict[str, Any] = {
        "case": rolling.case, "step": step, "model": name, "than": than, "certified_at": certified, "kept": kept,
        "origins": len(rolling.origins), "level": level, "reason": None,
        "visits": len(rolling.bridges), "bridges": len(np.unique(rolling.bridges)),
    }  # fmt: skip
    many = len(rolling.origins)
    failed = next((place for place, one in enumerate(own) if not one.certified), None)
    if than is not None and failed is not None and (failed == 0 or 2 * certified < many):
        return row | {"reason": f"not certified at {rolling.origins[failed].cut.moment}: {own[failed].reason}"}
    if len(own) < many:
        return row | {"reason": f"cannot gain {100 * LEAST_GAIN:g} % at {rolling.origins[0].cut.moment}"}
    row |= {score: float(rolling.join(name, score).mean()) for score in ("rps", "brier", "log_loss")}
    if than is None:
        return row
    difference, lower = rolling.compare(name, than, level), rolling.lower_at(name, than)
    row |= {"difference": difference.mean, "low": difference.low, "high": difference.high, "lower_at": lower}
    brier = rolling.compare(name, than, level, "brier")
    row |= {"brier_difference": brier.mean, "brier_low": brier.low, "brier_high": brier.high}
    if not difference.high < 0:
        row["reason"] = "not shown to forecast better"
    elif -difference.mean < LEAST_GAIN * (row["rps"] - difference.mean):
        row["reason"] = f"lowers the score by less than {100 * LEAST_GAIN:g} %"
    elif 2 * lower < many:
        row["reason"] = f"better at {lower} of {many} origins only"
    return row
