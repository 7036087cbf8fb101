"""``fit_components``: the model fitted to all rows of each component of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from rekka.checks.assumptions import list_contradicted
from rekka.checks.engine import Finding
from rekka.core.errors import BadOption, InputError, MissingColumns, count_of, missing_columns
from rekka.core.files import (
    has_columns,
    has_mark,
    make_folder,
    name_apart,
    refuse_foreign,
    refuse_inputs,
    write_text,
)
from rekka.core.folders import check_folder, digest, relate
from rekka.core.ratings import Ratings
from rekka.core.sheets import write_csv
from rekka.core.terminal import OnProgress, say_nothing
from rekka.core.validation import read_day
from rekka.data.reading import TableReading
from rekka.data.text import collect
from rekka.data.transitions import (
    PAIRED_ALREADY,
    LazyTransitions,
    ReadingOptions,
    Transitions,
    name_table,
    pair_with_improvements,
    read_options,
)
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.evaluation.calibration import MOST_TESTED
from rekka.evaluation.goodness import find_links
from rekka.evaluation.violations import Violation
from rekka.fleet.backtest import choose_case, refuse_dateless, refuse_elements
from rekka.fleet.backtest_rows import Cut
from rekka.fleet.backtest_scores import Settings
from rekka.fleet.elements import describe_elements
from rekka.fleet.histories import ANY_ELEMENT, IDENTITY, NO_TEST, CutRows, HistoryOptions, leave_out_far
from rekka.fleet.models import MARK, CaseModel, Models, choose_names
from rekka.fleet.rolling import HALF_LIFE, ModelChoice, Window, drop_auto, read_models, read_windows
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.uncertainty import NONE
from rekka.model.clock import MIDDLE
from rekka.model.elements import ADJACENT, GIVEN
from rekka.model.fit import Options
from rekka.model.serial import load_saved
from rekka.streaming import blocks
from rekka.streaming.cluster.clients import ClusterError

OF_A_MAXIMUM = ("se", "z", "p", "ci_low", "ci_high", "hr_low", "hr_high")  # what a fit elsewhere does not have
FOR_EVERY_CASE = (MissingColumns, BadOption, ClusterError)  # what is wrong with the call, not with a component


@dataclass(frozen=True, eq=False)
class ComponentFit:
    """Model of one component, or the reason why there is none."""

    case: str
    rows: int
    labels: tuple[str, ...] | None = None  # of the states, best first
    model: ExponentialHazardMarkovModel | None = None
    reason: str | None = None  # why there is no model
    no_bootstrap: str | None = None  # why the model has no refits although they were asked for
    no_test: str | None = None  # why the model has no test of fit although it was asked for
    repaired: int = 0  # improvements that a fit of histories left out as repairs
    choice: ModelChoice | None = None  # what was tried, where the model was chosen
    undated: int = 0  # pairs without dates, which a choice left out
    violations: tuple[Violation, ...] = ()  # tests of the assumptions of a model of pairs
    file: Path | None = None

    @property
    def failed(self) -> bool:
        """Whether the model or its bootstrap could not be made."""
        return self.reason is not None or self.no_bootstrap is not None

    @property
    def coefficients(self) -> list[dict[str, Any]]:
        """Rows of ``summary``, without errors and intervals where the fit is no maximum."""
        if self.model is None:
            return []
        blank = {} if self.model.certificate_.certified else dict.fromkeys(OF_A_MAXIMUM)
        rows = (row | blank for row in self.model.summary().to_dicts())
        ratings = self.ratings
        return [
            {"state": row["state"], "label": row["state"] and ratings.labels[row["state"] - 1]}
            | row
            | {"term": ratings.reword(row["term"]) if row["state"] is None else row["term"]}
            for row in rows
        ]

    @property
    def elements(self) -> list[str]:
        """Sentences on errors of inspection, frailty, small repairs and trend; none of a model of pairs."""
        if self.model is None or self.model.records_ is None:
            return []
        certified = self.model.certificate_.certified
        return describe_elements(self.model.records_, self.ratings, certified=certified)

    @property
    def findings(self) -> list[Finding]:
        """Findings on the assumptions that the rows contradict, with what to try, the smallest p-value first."""
        return list_contradicted(self.case, self.violations)

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, len(self.labels or ()) if self.model is None else self.model.n_states_)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        model = self.model
        if model is None:
            return {"case": self.case, "reason": self.reason}
        clock, drawn, test = model.clock_, model.resampled_, model.fit_test_
        return {
            "case": self.case,
            "states": model.n_states_,
            "log_likelihood": model.log_likelihood_,
            "clock": {
                "kind": clock.kind,
                "advance": clock.names,
                "mean_years": clock.mean_years,
                "words": clock.words,
            },
            "certificate": model.certificate_.headline,
            "reasons": self.ratings.reword_all(model.certificate_.reasons),
            "remarks": self.ratings.reword_all(model.certificate_.remarks),
            "coefficients": self.coefficients,
            "elements": self.elements,
            "choice": None if self.choice is None else self.choice.to_dict(),
            "bootstrap": drawn
            and {"asked": drawn.asked, "certified": len(drawn.beta), "bridges": drawn.groups, "seed": drawn.seed},
            "fit_test": None if test is None else test.to_dict(self.labels),
            "violations": [one.to_dict() for one in self.violations],
            "findings": [one.to_dict() for one in self.findings],
            "file": None if self.file is None else str(self.file),
        }


@dataclass(frozen=True, eq=False)
class ComponentFits:
    """Models of all components of a table, in the order of their names; none where no two visits make a pair.

    ``tested`` says whether tests of fit were made, ``table`` is the file of the coefficients.
    """

    components: tuple[ComponentFit, ...] = ()
    reading: TableReading | None = None  # how the table was read
    tested: bool = False
    table: Path | None = None
    notes: tuple[str, ...] = ()  # on what a fit of histories leaves out

    @property
    def models(self) -> dict[str, ExponentialHazardMarkovModel]:
        """Fitted models by component."""
        return {one.case: one.model for one in self.components if one.model is not None}

    @property
    def reasons(self) -> dict[str, str]:
        """Reasons why components have no model."""
        return {one.case: one.reason for one in self.components if one.reason is not None}

    @cached_property
    def coefficients(self) -> pl.DataFrame:
        """Table of coefficients by component, state and term: native units, hazard ratios, intervals."""
        rows = [{"case": one.case} | row for one in self.components for row in one.coefficients]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_models(self) -> Models:
        """Models as their files would give them, for forecasts, matrices and effects."""
        found = []
        for one in self.components:
            if one.model is not None:
                text = one.model.to_json(case=one.case, labels=one.labels, reading=self.reading)
                saved, name = load_saved(text), one.case if one.file is None else one.file.name
                found.append(
                    CaseModel(
                        one.case,
                        saved.fit,
                        name,
                        digest(text.encode()),
                        one.labels,
                        reading=self.reading,
                        text=text,
                    )
                )
        return Models("the fit", tuple(found), self.reasons)


def fit_components(
    data: Any,
    mapping: Any = None,
    *,
    scaling: Any = "zscore",
    only: Sequence[str] | None = None,
    covariates: Sequence[str] | None = None,
    ridge: float = 0.0,
    advance: Sequence[str] | None = None,
    clock: str = MIDDLE,
    errors: Any = None,
    frailty: str | None = None,
    frailty_by: str | None = None,
    improvements: str | None = None,
    trend: str | None = None,
    first: Any = GIVEN,
    models: str | Sequence[str] | None = None,
    half_life: float | str | None = None,
    since: Any = None,
    units: Mapping[str, float] | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    test_fit: bool | None = None,
    memory: Any = None,
    threads: int | None = None,
    cluster: Any = None,
    out: str | Path | None = None,
    on_progress: OnProgress = say_nothing,
) -> ComponentFits:
    """Fit the model to all rows of each component of a table, and write the models where ``out`` says.

    Parameters
    ----------
    data : path, dataframe or Transitions
        Inspections or transitions. Transitions in Parquet, a file or a folder, may be larger than memory.
    mapping : path, dict or ReadingOptions, optional
        How to read a table that needs it; see ``read_panel``.
    scaling, ridge, advance, clock, units, memory, threads
        As for ``ExponentialHazardMarkovModel``; a covariate that has one value in a component is left out there.
    errors, frailty, improvements, trend, first
        As for ``ExponentialHazardMarkovModel``. With any of them, or clock="running", histories are fitted:
        inspections are paired with upward="keep", transitions need the column ``history``. Without errors and
        improvements a rating cannot become better, and pairs in which it does are left out, as repairs.
    models : "auto" or list of str, optional
        Choose the elements of each component by forecasts from days inside the records, as ``backtest`` does; the
        chosen model is then fitted to all rows. ``choice`` of each component says what was tried.
    half_life : float, optional
        Years after which a visit has half the weight; pairs have that of their second visit. The rows need dates.
    since : date, str or int, optional
        Only transitions that begin on this day (or in this year) or later train: where rates have changed, old
        ones mislead.
    frailty_by : str, optional
        What a frailty belongs to: "bridge" (the default), "member" (each member of a bridge by itself), or a
        column of the table that is constant within a history, such as a district.
    only, covariates : list of str, optional
        Only these components and covariates; all by default.
    bootstrap, seed : int
        Refits to bridges drawn with replacement, for intervals of forecasts; 200 is usual.
    test_fit : bool, optional
        Whether to test each model on the rows it was fitted to, and what it assumes (``violations`` of each
        component). Default: for up to 50 components.
    cluster : str or distributed.Client, optional
        A Dask cluster whose workers read the rows of a Parquet table.
    out : path, optional
        A .json file for one component, or a folder for several; the coefficients stand beside the models as CSV.
    on_progress : callable, optional
        Called with a stage, the component, how much of it is done, and of how much (None if that is not known).

    Returns
    -------
    ComponentFits
        A component that cannot be fitted has a reason in place of a model, and the others go on.

    Examples
    --------
    >>> import rekka
    >>> fits = rekka.fit_components(rekka.simulate_transitions(300, n_states=3, seed=1))
    >>> [model.certificate_.certified for model in fits.models.values()]
    [True]

    """
    reader, name, place = read_options(mapping), name_table(data), None if out is None else Path(out)
    windows = read_windows(half_life, since, models)
    years, since = drop_auto(half_life), drop_auto(since)
    elements = HistoryOptions(errors, frailty, frailty_by, improvements, trend, clock, first, years)
    elements.refuse({"bootstrap": bootstrap, "ridge": ridge, "cluster": cluster})
    asked = None if models is None else read_models(models)
    if models is not None:
        refuse_elements(elements, ridge)
        replace(elements, errors=ADJACENT).refuse({"bootstrap": bootstrap, "cluster": cluster})
        reader = elements.reader(reader, "keep_all")
    reader = elements.reader(reader) if elements.on else reader
    on_progress("Reading", name, 0, None)
    found = _read(reader.sound(data), cluster)
    if found is None:
        return ComponentFits()
    day = None if since is None else read_day("since", since, "-01-01")
    columns = found.query.collect_schema().names()
    (elements if models is None else ANY_ELEMENT).check_columns(columns)
    total = sum(found.cases.values())
    found = found if day is None else found.begin(day)
    left = total - sum(found.cases.values())
    notes = (f"{count_of(left, 'transition')} that begin before {day} left out.",) if left else ()
    names = list(found.covariates if covariates is None else covariates)
    if elements.on:
        names = [name for name in names if covariates is not None or name != elements.column]
    cases = choose_names(sorted(found.cases), only)
    tests = not elements.refits and (len(cases) <= MOST_TESTED if test_fit is None else test_fit)
    files = _place_models([case for case in cases if found.cases[case]], place)
    table = _place_coefficients(files, place, [] if place is None else reader.inputs(data))
    work = _Work(
        found,
        names,
        {"scaling": scaling, "ridge": ridge, "units": units or None, "memory": memory, "threads": threads}
        | {"advance": advance or None, **elements.estimator},
        cluster,
        bootstrap,
        seed,
        tests,
        on_progress,
        elements,
        None if models is None else Chooser(asked, found.labels, windows),
        _keep_improvements(reader, data, found, day) if tests and models is None else None,
    )
    done = []
    for case, rows in found.split(cases):
        if not found.cases[case]:
            none = f"no transition begins on {day} or later; give an earlier day"
            done.append(ComponentFit(case, 0, found.labels, reason=f"{found.unusable.get(case, none)}."))
            continue
        one = work.fit(case, rows)
        if case in files and one.model is not None:
            _write_model(files[case], one.model, case, found)
            one = replace(one, file=files[case])
        done.append(one)
    fits = ComponentFits(tuple(done), found.reading, work.tests, notes=(*notes, *_list_notes(done, elements)))
    if table is None or not fits.models:
        return fits
    write_csv(table, fits.coefficients)
    return replace(fits, table=table)


@dataclass(frozen=True)
class _Found:
    """Transitions, in memory or not: the number of rows of each case, and a query for them."""

    query: pl.LazyFrame
    cases: dict[str, int]
    covariates: Sequence[str]
    labels: tuple[str, ...] | None
    reading: TableReading | None  # how the table was read
    unusable: Mapping[str, str] = field(default_factory=dict)  # cases without any rows, and why

    def split(self, cases: Sequence[str]) -> Iterator[tuple[str, pl.LazyFrame]]:
        """Yield each case with its rows, as a query.

        The table is scanned once for all cases that can be held together, not once for each: of many small cases
        that takes a time which grows with their number, not with its square.
        """
        for together in self._hold_together(cases):
            rows = self.query if len(self.cases) == 1 else self.query.filter(_is_one_of(together))
            if len(together) == 1:
                yield together[0], rows
                continue
            parts = collect(rows, "The table").partition_by("case", as_dict=True)
            none = rows.clear()
            yield from ((case, parts[case,].lazy() if (case,) in parts else none) for case in together)

    def _hold_together(self, cases: Sequence[str]) -> Iterator[list[str]]:
        """Yield cases in their order, as many at a time as have few enough rows to be held."""
        together: list[str] = []
        held = 0
        for case in cases:
            if together and held + self.cases[case] > blocks.WHOLE:
                yield together
                together, held = [], 0
            together.append(case)
            held += self.cases[case]
        yield together

    def begin(self, day: dt.date) -> _Found:
        """The transitions that begin on a day or later; a case that has none keeps its name."""
        columns = self.query.collect_schema().names()
        if "date_1" not in columns:
            raise missing_columns(["date_1"], columns, "the table, and since needs the date of each first visit")
        query = self.query.filter(pl.col("date_1").cast(pl.Date) >= day)
        return replace(self, query=query, cases=dict.fromkeys(self.cases, 0) | _count_cases(query))

    def hold(self, case: str, rows: pl.LazyFrame) -> pl.DataFrame | None:
        """Rows of a case in memory; None where they are too many to be refitted many times."""
        return rows.collect() if self.cases[case] <= blocks.WHOLE else None


def _is_one_of(cases: Sequence[str]) -> pl.Expr:
    return pl.col("case").is_in(list(cases))


def _read(found: Transitions | LazyTransitions, cluster: Any) -> _Found | None:
    """Read the transitions, lazily if there are many; None where there are none."""
    if isinstance(found, LazyTransitions):
        counts = _count_cases(found.query)
        if cluster is not None or sum(counts.values()) > blocks.WHOLE:
            return _Found(found.query, counts, found.covariates, None, found.reading)
        found = found.collect()
    query = found.frame.lazy()
    labels = None if found.scale is None else found.scale.names
    if found.frame.is_empty():
        return None
    counts = _count_cases(query)
    unusable = {} if found.audit is None else found.audit.explain_unusable(counts)
    cases = dict.fromkeys(unusable, 0) | counts
    return _Found(query, cases, found.covariates, labels, found.reading, unusable)


def _count_cases(query: pl.LazyFrame) -> dict[str, int]:
    return dict(query.group_by("case").agg(pl.len()).collect(engine="streaming").iter_rows())


class Chooser(NamedTuple):
    """Models to choose among, None for auto, and the names of the states."""

    models: tuple[str, ...] | None
    labels: tuple[str, ...] | None
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class _Work:
    """Work on every component: fit, bootstrap, test."""

    found: _Found
    covariates: Sequence[str]
    options: dict[str, Any]  # of the estimator
    cluster: Any
    bootstrap: int
    seed: int
    tests: bool
    on_progress: OnProgress
    elements: HistoryOptions
    chooser: Chooser | None = None
    kept: pl.DataFrame | None = None  # pairs with improvements by one rating, for the tests of assumptions

    def fit(self, case: str, rows: pl.LazyFrame) -> ComponentFit:
        """Fit a component, with its refits and its test, or give the reason why there is no model."""
        one = ComponentFit(case, self.found.cases[case], self.found.labels)
        if self.chooser is not None:
            return self._choose(case, rows.collect())
        try:
            if self.elements.on:
                cut = self.elements.cut(rows.collect())
                one = replace(one, rows=len(cut.rows), repaired=cut.excluded)
            model = self._fit_histories(case, cut) if self.elements.on else self._fit(case, rows)
        except FOR_EVERY_CASE:
            raise
        except InputError as error:
            return replace(one, reason=one.ratings.reword(str(error)))
        held = self.found.hold(case, rows) if self.bootstrap or self.tests else None
        many = f"more than {count_of(blocks.WHOLE, 'row')} are not refitted." if held is None else None
        if self.bootstrap:
            model, why = (model, many) if held is None else self._draw(case, model, held)
            one = replace(one, no_bootstrap=why)
        if self.tests:
            one = replace(one, no_test=many)
            if held is not None:
                model = self._test(case, model, held)
                one = replace(one, violations=self._find_violations(case, model, held))
        return replace(one, model=model)

    def _choose(self, case: str, rows: pl.DataFrame) -> ComponentFit:
        """Choose the elements of a component, and fit it with them."""
        assert self.chooser is not None  # models were asked for
        texts = [name for name in IDENTITY if name in rows.columns and name != "history"]
        rows = rows.with_columns(pl.col(texts).cast(pl.String).fill_null(""))
        dated = rows.drop_nulls(["date_1", "date_2"])
        if dated.is_empty():
            why = "no two visits have dates, by which models are compared."
            return ComponentFit(case, len(rows), self.found.labels, reason=why)
        undated, rows = len(rows) - len(dated), refuse_dateless(dated)
        names, advance = self._choose_covariates(rows.lazy())
        last = rows["date_2"].max()
        assert isinstance(last, dt.date)
        choice = choose_case(
            case,
            rows,
            Settings(
                Cut(last),
                tuple(names),
                Options(scaling=self.options["scaling"], seed=self.seed, half_life=self.options["half_life"]),
                ForecastOptions(NONE, advance=None if advance is None else tuple(advance)),
                labels=self.chooser.labels,
                far=True,
            ),
            self.chooser.models,
            None,
            lambda what, done, _: self.on_progress("Choosing the model", what, done, None),
            self.chooser.windows,
        )
        near, chosen, window = leave_out_far(rows), choice.histories, choice.window
        options = self.options | chosen.estimator | {"half_life": self.options["half_life"]}
        if window is not None and window.kind == HALF_LIFE:
            options["half_life"] = window.years
        elif window is not None:
            near = near.filter(pl.col("date_1") >= window.begin(last))
        kept = near
        if not chosen.on:
            near = near.filter(pl.col("state_2") >= pl.col("state_1"))
        work = replace(
            self,
            kept=kept,
            found=replace(self.found, cases=self.found.cases | {case: len(near)}),
            options=options,
            elements=chosen,
            tests=self.tests and not chosen.on and options["half_life"] is None,
            chooser=None,
        )
        one = work.fit(case, near.lazy())
        repaired = len(rows) - len(near) + one.repaired
        return replace(one, choice=choice, repaired=repaired, undated=undated)

    def _fit(self, case: str, rows: pl.LazyFrame) -> ExponentialHazardMarkovModel:
        varying, advance = self._choose_covariates(rows)
        on_pass = self._watch(case)
        model = ExponentialHazardMarkovModel(covariates=varying, **self.options | {"advance": advance})
        return model.fit(rows, groups="bridge_id", cluster=self.cluster, on_pass=on_pass)

    def _watch(self, case: str) -> Callable[[str], None]:
        """Announce the fit of a component; the function to be called before each pass over many rows."""
        passes = count(1)
        self.on_progress("Fitting", case, 0, None)

        def announce(stage: str) -> None:
            number = next(passes)
            self.on_progress("Fitting", f"{case}: {stage} (pass {number} over the rows)", number, None)

        return announce

    def _fit_histories(self, case: str, cut: CutRows) -> ExponentialHazardMarkovModel:
        on_pass = self._watch(case)
        if cut.rows.is_empty():
            raise InputError("every pair of visits is an improvement, which is taken for a repair.")
        varying, advance = self._choose_covariates(cut.rows.lazy())
        model = ExponentialHazardMarkovModel(covariates=varying, **self.options | {"advance": advance})
        end = cut.rows["state_2"]
        return model.fit(cut.rows, end, groups=cut.groups, histories=cut.histories, on_pass=on_pass)

    def _choose_covariates(self, rows: pl.LazyFrame) -> tuple[list[str], list[str] | None]:
        """Covariates that vary in these rows, and those of them that were named as advancing."""
        varying = _find_varying(rows, self.covariates)
        dropped = set(self.covariates) - set(varying)
        return varying, self.options["advance"] and [n for n in self.options["advance"] if n not in dropped]

    def _draw(
        self, case: str, model: ExponentialHazardMarkovModel, rows: pl.DataFrame
    ) -> tuple[ExponentialHazardMarkovModel, str | None]:
        """Model with its bootstrap; as it is, with the reason, where it can have none."""
        try:
            return model.bootstrap(
                rows,
                rows["state_2"],
                groups=rows["bridge_id"].to_numpy(),
                draws=self.bootstrap,
                seed=self.seed,
                on_progress=lambda done, total: self.on_progress("Refits", case, done, total),
            ), None
        except InputError as error:
            return model, str(error)

    def _test(
        self, case: str, model: ExponentialHazardMarkovModel, rows: pl.DataFrame
    ) -> ExponentialHazardMarkovModel:
        self.on_progress("Testing the fit", case, 0, None)
        return model.check_fit(rows, rows["state_2"], follows=find_links(rows))

    def _find_violations(
        self, case: str, model: ExponentialHazardMarkovModel, rows: pl.DataFrame
    ) -> tuple[Violation, ...]:
        every = rows if self.kept is None else self.kept.filter(case=case)
        return model.find_violations(every)


def _keep_improvements(
    reader: ReadingOptions, data: Any, found: _Found, since: dt.date | None
) -> pl.DataFrame | None:
    """Pair the visits once more, improvements by one rating kept; None of a table that has transitions already."""
    if isinstance(data, Transitions) or found.reading is None or found.reading.kind == PAIRED_ALREADY.kind:
        return None
    if min((count for count in found.cases.values() if count), default=0) > blocks.WHOLE:  # no component is tested
        return None
    kept = pair_with_improvements(reader.panel(data), **reader.rules)
    return kept if since is None else kept.filter(pl.col("date_1") >= since)


def _list_notes(done: Sequence[ComponentFit], elements: HistoryOptions) -> tuple[str, ...]:
    """Notes on fits of histories: pairs that are taken for repairs, and that there is no test of fit."""
    chosen = [one.choice.histories.explains_improvements for one in done if one.choice is not None]
    excluded = sum(one.repaired for one in done)
    if chosen:
        plain = "" if all(chosen) else ", and all where the model has neither errors nor small repairs"
        undated = sum(one.undated for one in done)
        repaired = f"{count_of(excluded, 'pair')} left out as repairs: improvements by two ratings or more{plain}."
        lacking = f"{count_of(undated, 'pair')} without dates left out."
        told = " ".join([repaired] * bool(excluded) + [lacking] * bool(undated))
        tested = not any(one.choice.histories.on for one in done if one.choice is not None)
        return (*([told] if told else []), *([] if tested else [NO_TEST]))
    return (*((elements.explain_excluded(excluded),) if excluded else ()), *elements.notes)


def _find_varying(rows: pl.LazyFrame, names: Sequence[str]) -> list[str]:
    """Covariates without those that have one value in all rows of the case; absent ones stay."""
    schema = rows.collect_schema()
    there = [name for name in names if name in schema and (schema[name].is_numeric() or schema[name] == pl.String)]
    same = rows.select((pl.col(name).min() == pl.col(name).max()) for name in there).collect(engine="streaming")
    constant = [name for name in there if same[name].item()]
    return [name for name in names if name not in constant]


def _place_models(cases: list[str], out: Path | None) -> dict[str, Path]:
    """File of each case's model."""
    if out is None or not cases:
        return {}
    if out.suffix.lower() == ".json":
        if len(cases) > 1:
            raise BadOption(
                f"{out.name} is one file, and there are {count_of(len(cases), 'component')}. Give a folder, or "
                "--only."
            )
        return {cases[0]: out}
    return {case: out / f"{name}.json" for case, name in zip(cases, name_apart(cases), strict=True)}


def _place_coefficients(models: dict[str, Path], out: Path | None, inputs: Sequence[Path]) -> Path | None:
    """File of the coefficients, if any; refuse to write over files of others."""
    if out is None:
        return None
    is_table = has_columns("case", "state", "term", "estimate", "hazard_ratio")
    if out.suffix.lower() == ".json":
        table = out.with_suffix(".coefficients.csv")
        refuse_inputs([out, table], inputs)
        refuse_foreign([table], is_table)
        return table
    table, is_model = out / "coefficients.csv", has_mark(MARK)
    files = [*models.values(), table]
    check_folder(out, files, inputs, lambda file: is_table(file) if file == table else is_model(file))
    return table


def _write_model(file: Path, model: ExponentialHazardMarkovModel, case: str, found: _Found) -> None:
    """Write a model with its case and its reading; joined files are named from where the model is."""
    make_folder(file.parent)
    reading = found.reading and found.reading.relocate(lambda name: relate(name, file.parent))
    write_text(file, model.to_json(case=case, labels=found.labels, reading=reading) + "\n")
