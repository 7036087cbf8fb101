"""``forecast_inventory``: forecast of the members of an inventory and of the network they make up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.core.files import refuse_inputs
from rekka.core.folders import digest_file, locate
from rekka.core.terminal import OnProgress, say_nothing
from rekka.core.validation import read_day
from rekka.data.reading import reuse
from rekka.data.transitions import ReadingOptions, list_tables, name_table, read_options, take_one
from rekka.fleet.backtest_rows import Cut, PairedRecords, prepare, read_records
from rekka.fleet.backtest_scores import Settings
from rekka.fleet.document import FORECAST, TOP, ForecastFile, describe_fleet, load_forecast
from rekka.fleet.eligibility import Eligible, InventoryOptions, find_eligible
from rekka.fleet.histories import HistoryOptions
from rekka.fleet.inventory import Fleet, forecast_fleet
from rekka.fleet.members import Members, read_members
from rekka.fleet.models import CaseModel, ElementsFit, Matched, Models, match_models
from rekka.fleet.rolling import elements_of
from rekka.fleet.selection import plan_worst, read_repairs, select_members
from rekka.fleet.shock_origins import find_shocks, refuse_undated
from rekka.fleet.shocks import Shocks, read_shocks
from rekka.fleet.store import OWN, PARQUET, choose_format, list_files, open_folder, refuse_place
from rekka.fleet.what_if import WhatIf, repair_members
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.uncertainty import NONE, NORMAL
from rekka.model.clock import MIDDLE
from rekka.model.elements import GIVEN
from rekka.model.fit import Options
from rekka.model.history_inputs import ELEMENTS
from rekka.model.serial import load_saved
from rekka.report.networks import FOLDER, find_study_members, is_forecast_of
from rekka.study.compare import load_study
from rekka.study.models import choose_models
from rekka.study.study import Study
from rekka.workflows.fit import ComponentFits, fit_components
from rekka.workflows.models import list_files as list_model_files
from rekka.workflows.models import open_models


@dataclass(frozen=True, eq=False)
class ForecastBasis:
    """Members of a forecast, their models, and what its document says of them and of the inventory."""

    eligible: Eligible
    matched: Matched
    source: str
    notes: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    top: int = TOP
    sources: Mapping[str, str] = field(default_factory=dict)

    def describe(self, fleet: Fleet, files: Sequence[str] = ()) -> ForecastFile:
        """The document of a forecast with these models."""
        own = {name: getattr(self, name) for name in ("notes", "only", "top", "sources")}
        return describe_fleet(fleet, self.source, files=files, **own)

    def forecast(self, *, years: int | None = None, threshold: int | str | None = None) -> InventoryForecast:
        """Forecast the members as they were asked for, or for other years, or until another rating."""
        was = self.eligible
        options = was.options
        options = options if years is None else replace(options, years=years)
        options = options if threshold is None else replace(options, threshold=threshold)
        basis = self if options is was.options else replace(self, eligible=self._ask(options))
        fleet = forecast_fleet(basis.eligible)
        return InventoryForecast(fleet, basis.describe(fleet), basis=basis)

    def _ask(self, options: InventoryOptions) -> Eligible:
        """The members with other options, and the shared errors that they have."""
        shocks = {group.case: group.shocks for group in self.eligible.groups}
        return _give(find_eligible(self.eligible.members, self.matched, options), shocks)


@dataclass(frozen=True, eq=False)
class InventoryForecast:
    """Forecast of an inventory. ``document`` has all of it but the single members as plain data.

    Members that cannot be forecast, and components without a model, are counted in ``document.aside`` and
    ``document.left_out`` with their reasons.
    """

    fleet: Fleet
    document: ForecastFile
    files: tuple[Path, ...] = ()
    what_if: WhatIf | None = None  # where members are repaired
    basis: ForecastBasis | None = None

    def change(self, *, years: int | None = None, threshold: int | str | None = None) -> InventoryForecast:
        """Forecast the same members with the same models for other years, or until another rating.

        Nothing is read or fitted again, and no file is written.

        Examples
        --------
        >>> import rekka
        >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
        >>> members = rows.unique("bridge_id", maintain_order=True)
        >>> found = rekka.forecast_inventory(rekka.fit_components(rows), members, years=10)
        >>> found.change(years=5, threshold=2).network["year"].max()
        5

        """
        if self.basis is None:
            raise InputError("This forecast does not know its models. Make it by forecast_inventory.")
        return self.basis.forecast(years=years, threshold=threshold)

    def repair(self, repaired: Any) -> WhatIf:
        """Say what changes if some members are repaired in year 0; the forecast itself stays as it is.

        Only the repaired members are propagated, and those that share a frailty with one, so that a page can ask
        again and again.

        Parameters
        ----------
        repaired : path, dataframe, list of dicts or int
            A row for each bridge, component of a bridge or member: columns ``bridge`` and, if need be,
            ``component`` and ``member``. ``rating`` is that after the repair (default: the best), ``age`` that in
            year 0 (default: as it is; 0 if replaced), ``frailty`` the factor of its hazards, where the model has
            one (default: that of its bridge). A number: so many of the worst members, as ``select`` finds them.

        Examples
        --------
        >>> import rekka
        >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
        >>> members = rows.unique("bridge_id", maintain_order=True)
        >>> found = rekka.forecast_inventory(rekka.fit_components(rows), members, years=10)
        >>> bridge = found.members["bridge_id"][0]
        >>> found.repair([{"bridge": bridge, "age": 0}]).members["repaired_state"].to_list()
        [1]

        """
        if isinstance(repaired, int) and not isinstance(repaired, bool):
            return repair_members(self.fleet, plan_worst(self.fleet.members, self.fleet.eligible, repaired))
        if isinstance(repaired, Path | str):
            repaired = Path(repaired)
        return repair_members(self.fleet, read_repairs(self.fleet.eligible, repaired))

    def select(
        self, *, worst: int | None = None, component: str | None = None, rating: int | str | None = None
    ) -> pl.DataFrame:
        """Select members by component, by rating (that or worse, when last seen) and the worst of these.

        The worst are those at the threshold or worse, the worst ratings first, then those with the fewest mean
        years until the threshold. The table can be given to ``repair``, or written and edited.

        Examples
        --------
        >>> import rekka
        >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
        >>> members = rows.unique("bridge_id", maintain_order=True)
        >>> found = rekka.forecast_inventory(rekka.fit_components(rows), members, years=10)
        >>> found.select(worst=10, rating=2).columns
        ['bridge', 'component']

        """
        groups = self.fleet.eligible.groups
        return select_members(self.fleet.members, groups, worst=worst, component=component, rating=rating)

    @property
    def members(self) -> pl.DataFrame:
        """Table of the members, the soonest to reach the threshold first: probabilities and years."""
        return self.fleet.members

    @property
    def network(self) -> pl.DataFrame:
        """Table of totals by component, year and state: expected members, and both intervals."""
        return self.fleet.network


def forecast_inventory(
    models: Any,
    inventory: Any,
    mapping: Any = None,
    *,
    only: Sequence[str] | None = None,
    include_unchosen: bool = False,
    since: date | str | None = None,
    advance: Sequence[str] | None = None,
    out: str | Path | None = None,
    format: str | None = None,  # noqa: A002 (as in ``write_inventory``)
    top: int = TOP,
    errors: Any = None,
    frailty: str | None = None,
    frailty_by: str | None = None,
    improvements: str | None = None,
    trend: str | None = None,
    clock: str = MIDDLE,
    first: Any = GIVEN,
    half_life: float | None = None,
    shocks: Any = False,
    repaired: Any = None,
    on_progress: OnProgress = say_nothing,
    **asked: Any,
) -> InventoryForecast:
    """Forecast every member of an inventory from its last inspection on, and the network they make up.

    Parameters
    ----------
    models : path, Study or ComponentFits
        A run folder, a model file of ``rekka fit``, a folder of them; or what ``fit_components`` returned.
    inventory : path or dataframe
        Inspections, transitions or a list of members; see ``read_members``.
    mapping : path, dict or ReadingOptions, optional
        How to read the inventory, if not as the table that the models were fitted to.
    only : list of str, optional
        Only these components.
    include_unchosen : bool
        Whether components of a study for which no model was chosen are forecast with the certified fit of the
        default method; every row of them is marked.
    since : date or str, optional
        The day of year 0, or a year; the latest inspection by default.
    advance : list of str, optional
        Covariates that go on by the year; by default those that are called age.
    out : path, optional
        A folder for members, years, network and set_aside as tables, and forecast.json. Nothing is there until
        all is.
    format : "csv", "parquet" or "xlsx", optional
        Of the tables; CSV by default, or Parquet where a sheet has no room for all years.
    top : int
        How many members ``document.risks`` lists.
    errors, frailty, frailty_by, improvements, trend, clock, first
        Elements of a model of histories, as for ``fit_components``. With any of them each component is fitted
        again to all visits of the inventory, with the scaling and the covariates of its model.
    half_life : float, optional
        Years after which a visit has half the weight, as for ``fit_components``: the models are fitted again too.
    shocks : bool, float or Shocks
        Whether totals have a second, wider prediction interval, for errors that all members share. True estimates
        these for each component: up to six models fitted to the inspections up to earlier years forecast the
        later ones. That takes as many fits, and inspections with dates. A number is their standard deviation on
        the scale of log hazards, for all components.
    repaired : path, dataframe, list of dicts or int, optional
        Members that are repaired in year 0, as for ``InventoryForecast.repair``: ``what_if`` of the result, and
        the files whatif.csv and whatif_members.csv, say what changes. All else is the forecast without repairs.
    on_progress : callable, optional
        Called with a stage, a name, how many members are done, and of how many.
    **asked
        years (30; 1 to 200), threshold (the rating to be reached: a number from 1, the best, or a label as text;
        by default 4, Poor, of 9 to 0, III of I to IV, else the fourth, or the worst of fewer), age ("advances",
        "held" or "fixed"), intervals ("delta", "normal", "bootstrap" or "none"), level (0.95), draws (1000), seed
        (0), member_intervals (by default for up to 2,000 members).

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    >>> members = rows.unique("bridge_id", maintain_order=True)
    >>> found = rekka.forecast_inventory(rekka.fit_components(rows), members, years=10)
    >>> found.members.height == members.height, found.network["year"].max()
    (True, 10)

    """
    histories = HistoryOptions(errors, frailty, frailty_by, improvements, trend, clock, first, half_life)
    histories.refuse({})
    if clock != MIDDLE and not histories.refits:
        raise BadOption(
            f"clock is {clock!r}, which belongs to rekka fit: the models are not fitted again here. Leave it out.",
            option="clock",
            value=clock,
        )
    struck = read_shocks(shocks)
    first = None if since is None else read_day("--from", since, "-01-01")
    options = InventoryOptions(since=first, advance=tuple(advance) if advance else None, **asked)
    if struck is not False and options.intervals == NONE:
        raise BadOption(
            "shocks widens prediction intervals, and intervals is 'none'. Use 'delta' or 'normal', or leave "
            "shocks out.",
            option="shocks",
        )
    reader, place = read_options(mapping), None if out is None else Path(out)
    on_progress("Reading", name_table(models), 0, None)
    found = open_models(models, include_unchosen=include_unchosen)
    if place is not None:
        _refuse(place, models, inventory, reader, repaired)
    found = _fit_elements(found, inventory, reader, histories, options.since, only, on_progress)
    on_progress("Reading", name_table(inventory), 0, None)
    basis = _find_basis(found, inventory, reader, options, only, top)
    eligible = basis.eligible
    if struck is not False:
        earlier = _Earlier(found, inventory, reader, on_progress)
        given = dict.fromkeys(basis.matched.found, struck) if isinstance(struck, Shocks) else None
        eligible = earlier.add_to(eligible) if given is None else _give(eligible, given)
        basis = replace(basis, eligible=eligible)
    by_number = isinstance(repaired, int) and not isinstance(repaired, bool)
    repairs = None if repaired is None or by_number else read_repairs(eligible, repaired)
    form = choose_format(format, eligible.size * (options.years + 1))
    with nullcontext() if place is None else open_folder(place, form) as writer:
        fleet = forecast_fleet(
            eligible,
            on_years=None if writer is None else writer.add_years,
            on_progress=_count(on_progress, eligible.size),
        )
        if repaired is not None:
            on_progress("Repairs", "", 0, None)
        if by_number:
            repairs = plan_worst(fleet.members, eligible, repaired)
        what_if = None if repairs is None else repair_members(fleet, repairs)
        more = {"details": fleet.details is not None, "what_if": what_if is not None}
        document = basis.describe(fleet, () if writer is None else list_files(form, **more))
        on_progress("Writing", "" if place is None else place.name, 0, None)
        files = () if writer is None else tuple(writer.finish(fleet, document, what_if))
        return InventoryForecast(fleet, document, files, what_if, basis)


def forecast_own_tables(
    study: Study, run: Path, on_progress: OnProgress = say_nothing, **asked: Any
) -> str | None:
    """Forecast the inventory that a study was made of into its run folder; the reason where that cannot be.

    ``asked`` are options of ``forecast_inventory``, such as years and threshold. Nothing is done for rows that
    came from a program, nor for the built-in inventory: the report forecasts the members of these studies itself.
    """
    inventory = find_own_tables(study, run)
    if inventory is None:
        return None
    try:
        forecast_inventory(
            run, inventory, _allow(study), out=run / FOLDER, format=PARQUET, on_progress=on_progress, **asked
        )
    except InputError as error:
        return str(error)
    return None


def _allow(study: Study) -> ReadingOptions:
    """How the tables of a study are read once more: with the checks passed over that its plan names."""
    return ReadingOptions(allow=study.plan.data.allow)


def find_own_tables(study: Study, run: Path) -> Any:
    """The tables that a study was made of; None where its rows came from a program or are the built-in ones."""
    if study.plan.data.kind != "tables":
        return None
    sources = [locate(run, source) for source in study.plan.data.source]
    return sources[0] if len(sources) == 1 else sources


def reopen_basis(run: str | Path) -> ForecastBasis:
    """Members and models of a run folder's forecast: as ``forecast_own_tables`` wrote it, or as reports show it.

    Nothing is fitted where the folder has a forecast: its models are taken, and its options.

    Examples
    --------
    >>> found = reopen_basis("run").forecast(threshold="d")  # doctest: +SKIP
    >>> found.repair(10).headline()  # doctest: +SKIP

    """
    folder = Path(run)
    study = load_study(folder)
    inventory, file = find_own_tables(study, folder), folder / FOLDER / FORECAST
    if inventory is None:
        models = choose_models(study, folder)
        members, matched, options = find_study_members(study, models)
        return ForecastBasis(find_eligible(members, matched, options), matched, models.name)
    stored, reader = load_forecast(file) if file.is_file() else None, _allow(study)
    unchosen = stored is not None and not all(one.chosen for one in stored.models)
    models = choose_models(study, folder, include_unchosen=unchosen)
    if stored is None or not is_forecast_of(stored, models):
        models = _fit_elements(models, inventory, reader, HistoryOptions(), None, None, say_nothing)
        return _find_basis(models, inventory, reader, InventoryOptions(member_intervals=False))
    if stored.sources != _digest(inventory):
        raise InputError(
            f"The forecast in {folder.name} is of {Path(stored.inventory).name}, which is not there any more or "
            "is not the table of the study. Make it again with rekka forecast."
        )
    return _take_stored(stored, models, inventory, reader)


def _take_stored(stored: ForecastFile, models: Models, inventory: Any, reader: ReadingOptions) -> ForecastBasis:
    """Members of an inventory with the models, the options and the shared errors of a stored forecast."""
    asked = stored.asked.model_dump(exclude={"member_intervals", "only"})
    options = InventoryOptions(**asked, member_intervals=False)
    basis = _find_basis(_take_refits(models, stored), inventory, reader, options, stored.asked.only)
    eligible = _give(basis.eligible, {one.case: one.shocks for one in stored.shocks})
    compared = sum(one.propagator.errs or one.improves for one in eligible.groups)
    notes = stored.notes[: len(stored.notes) - compared]  # what compares numbers is of their threshold and years
    own = tuple(one for one in notes if one not in eligible.notes)
    return replace(basis, eligible=eligible, notes=own)


def _find_basis(
    found: Models,
    inventory: Any,
    reader: ReadingOptions,
    options: InventoryOptions,
    only: Sequence[str] | None = None,
    top: int = TOP,
) -> ForecastBasis:
    """Members of an inventory, with the models found."""
    members = _read_members(inventory, reader, found, options.since)
    matched = match_models(found, members.frame["case"].unique().sort().to_list(), only)
    eligible, names = find_eligible(members, matched, options), tuple(only) if only else None
    return ForecastBasis(eligible, matched, found.name, found.notes, names, top, _digest(inventory))


def _take_refits(models: Models, stored: ForecastFile) -> Models:
    """Models with those of histories that a stored forecast has in their place."""
    refits = {one.case: one for one in stored.models if one.refit is not None}

    def take(model: CaseModel) -> CaseModel:
        used = refits.get(model.name)
        if used is None or used.refit is None:
            return model
        text, refit = used.refit.model, used.refit
        return replace(model, fit=load_saved(text).fit, file=used.file, sha256=used.sha256, text=text, refit=refit)

    return replace(models, models=tuple(map(take, models.models)), elements={})


def _fit_elements(
    found: Models,
    inventory: Any,
    reader: ReadingOptions,
    histories: HistoryOptions,
    since: date | None,
    only: Sequence[str] | None,
    on_progress: OnProgress,
) -> Models:
    """Models of histories with the elements asked for, or those that a study chose, if any."""
    asked = {model.name: histories for model in found.models}
    if not histories.refits:
        asked = {case: elements_of(name) for case, name in found.elements.items()}
    if not asked:
        return found
    found = _fit_again(found, inventory, reader, asked, only, on_progress, chosen=not histories.refits)
    late = () if since is None else (f"the fit has visits after {since}, too, if any",)
    return replace(found, notes=(*found.notes, *late))


def _fit_again(
    found: Models,
    inventory: Any,
    reader: ReadingOptions,
    asked: Mapping[str, HistoryOptions],
    only: Sequence[str] | None,
    on_progress: OnProgress,
    *,
    chosen: bool,
) -> Models:
    """Models of histories in place of those found: of their components, with their scaling and covariates.

    ``asked`` are the elements of each. Those that a study has ``chosen`` are left out, with a note, where the
    inventory has no visits to fit.
    """
    wanted = [model for model in found.models if model.name in asked and (only is None or model.name in only)]
    for model in wanted:
        if model.fit.records is not None and not asked[model.name].on:
            raise BadOption(
                f"half_life is {asked[model.name].half_life!r}, and the model of {model.name} is one of "
                "histories, whose elements are not taken over when it is fitted again. Give them, too, such as "
                "--errors adjacent.",
                option="half_life",
            )
    mapping = _read_alike(found, inventory, reader)
    models: list[CaseModel] = [model for model in found.models if chosen and model.name not in asked]
    missing, notes, again = dict(found.missing), list[str](), list[str | None]()
    for place, model in enumerate(wanted):
        on_progress("Fitting", model.name, place, len(wanted))
        histories = asked[model.name]
        try:
            fits = _fit_one(
                model.case,
                inventory,
                mapping,
                scaling=model.fit.scaling.method,
                covariates=list(model.fit.columns),
                test_fit=False,
                **{name: getattr(histories, name) for name in ELEMENTS},
                frailty_by=histories.frailty_by,
                clock=histories.clock,
                half_life=histories.half_life,
            )
        except InputError as error:
            if not chosen:
                raise
            fits, why = ComponentFits(), str(error)
        else:
            bare = "" if fits.components else "no two visits of a member make a pair"
            why = "; ".join(fits.reasons.values()) or bare
        certified = any(one.model is not None and one.model.certificate_.certified for one in fits.components)
        if chosen and not certified:
            models.append(model)
            why = (why or "the fit is not certified").partition(". ")[0].rstrip(".")
            notes.append(
                f"{model.name}: the study chose {histories.words}, which cannot be fitted to "
                f"{name_table(inventory)} ({why}); the plain model forecasts"
            )
            continue
        again.append(model.case)
        refit = ElementsFit(found.elements[model.name], model.sha256, "") if chosen else None
        models += [_mark(one, refit) for one in fits.to_models().models]
        missing |= fits.reasons
        for one in fits.components:
            if one.model is not None and not one.model.certificate_.certified:
                reasons = one.ratings.reword_all(one.model.certificate_.reasons)
                notes.append(f"{one.case} is {one.model.certificate_.headline}: {'; '.join(reasons)}")
    words = {one.case: asked[one.name].words for one in wanted if one.case in again}
    note = f"fitted again to all visits of {name_table(inventory)}: {'; '.join(dict.fromkeys(words.values()))}"
    if chosen:
        told = "; ".join(f"{case}: {some}" for case, some in words.items())
        note = f"fitted to all visits of {name_table(inventory)} with the elements that the study chose: {told}"
    if any(model.fit.records is not None for model in wanted):
        note += ", in place of the elements that they had"
    notes = [note, *notes] if words else notes
    return Models(found.name, tuple(models), missing, found.run, (*found.notes, *notes))


def _mark(model: CaseModel, refit: ElementsFit | None) -> CaseModel:
    """Say what a model stands in for, with its file: the run folder has none of it."""
    return model if refit is None else replace(model, refit=replace(refit, model=model.text or ""))


def _read_alike(found: Models, inventory: Any, reader: ReadingOptions) -> ReadingOptions:
    """Options that read the inspections as the table was that the models were fitted to."""
    reading = found.reading
    if reading is None or reading.kind == "transitions" or reader.nbi or len(list_tables(inventory)) > 1:
        return reader
    plan = reuse(reading, take_one(inventory), reader.mapping, reader.changes, found.name)
    return replace(reader, mapping=plan.model_dump(exclude_unset=True), changes={})


def _give(eligible: Eligible, shocks: Mapping[str, Shocks | None]) -> Eligible:
    """Members with the shared errors of their case."""
    groups = tuple(replace(group, shocks=shocks.get(group.case)) for group in eligible.groups)
    return replace(eligible, groups=groups)


@dataclass(frozen=True, eq=False)
class _Earlier:
    """Forecasts from earlier years of the inspections of an inventory, with models like those found."""

    found: Models
    inventory: Any
    reader: ReadingOptions
    on_progress: OnProgress

    def add_to(self, eligible: Eligible) -> Eligible:
        """Members with the shared errors of their case."""
        elements = [HistoryOptions.of(group.fit) for group in eligible.groups]
        reading = next((one for one in elements if one.on), HistoryOptions())
        nbi = self.found.reading is not None and self.found.reading.kind == "nbi"
        records = self._read(replace(self.reader, nbi=self.reader.nbi or nbi), reading)
        refuse_undated(records.found.frame.columns)
        latest = records.found.frame["date_2"].cast(pl.Date).max()
        assert isinstance(latest, date)  # there are transitions, each with dates
        last = min(latest, eligible.base or latest)
        frame, _ = prepare(records, Cut(last), None)
        groups = []
        for place, group in enumerate(eligible.groups):
            self.on_progress("Earlier forecasts", group.case, place, len(eligible.groups))
            options, fit = eligible.options, group.fit
            settings = Settings(
                cut=Cut(last),
                covariates=fit.columns,
                options=Options(scaling=fit.scaling.method, clock=fit.clock.kind, seed=options.seed),
                forecast=ForecastOptions(NORMAL, options.level, age=options.age, advance=options.advance),
                histories=elements[place],
                far=reading.on,
            )
            shocks = find_shocks(group.case, frame.filter(case=group.case), last, settings)
            groups.append(replace(group, shocks=shocks))
        return replace(eligible, groups=tuple(groups))

    def _read(self, reader: ReadingOptions, histories: HistoryOptions) -> PairedRecords:
        """Pairs of visits of the inventory, read as the table was that the models were fitted to."""
        try:
            alike = _read_alike(self.found, self.inventory, reader)
            return read_records(self.inventory, alike, histories)
        except MissingColumns as error:
            raise MissingColumns(
                f"{error} With shocks, models are fitted to the inspections up to earlier years: give inspections "
                "with dates, or leave shocks out.",
                **error.values,
            ) from None


def _fit_one(case: str | None, inventory: Any, mapping: ReadingOptions, **options: Any) -> ComponentFits:
    """Fit a component again; none if the inventory lacks it. Say what is needed where there are no visits."""
    try:
        return fit_components(inventory, mapping, only=None if case is None else [case], **options)
    except BadOption as error:
        if case is None or error.values.get("case") != case:
            raise
        return ComponentFits()
    except MissingColumns as error:
        raise MissingColumns(
            f"{error} With --errors and the like the models are fitted again, to all visits of each member: give "
            "inspections, or leave these options out.",
            **error.values,
        ) from None


def _count(on_progress: OnProgress, total: int) -> Callable[[float], None]:
    """Callback that adds up members, or fractions of them, from several threads."""
    done, lock = 0.0, Lock()

    def add(members: float) -> None:
        nonlocal done
        with lock:
            done += members
            on_progress("Members", "", done, total)

    return add


def _refuse(folder: Path, models: Any, inventory: Any, reader: ReadingOptions, repaired: Any) -> None:
    """Refuse, before the work, to write over what is read, or over what is no forecast."""
    refuse_place(folder)
    tables, here = list_tables(inventory), folder.resolve()
    if here in {path.resolve() for path in (*list_tables(models), *tables)}:
        raise BadOption(
            f"{folder.name} is where the models or the tables are. Write to another folder.", option="out"
        )
    own = [file for file in list_model_files(models) if here not in file.resolve().parents]
    inputs = [*own, *reader.inputs(inventory), *list_tables(repaired)]
    refuse_inputs([folder / name for name in (*OWN, FORECAST)], inputs)


def _read_members(inventory: Any, reader: ReadingOptions, found: Models, until: date | None) -> Members:
    nbi = reader.nbi or (found.reading is not None and found.reading.kind == "nbi")
    several = reader.nbi or (nbi and len(list_tables(inventory)) > 1)
    return read_members(
        inventory if several else take_one(inventory),
        reader.mapping,
        nbi=reader.nbi,
        labels=found.labels,
        reading=found.reading,
        needed=found.covariates,
        who=found.name,
        until=until,
        allow=reader.allow,
        visits=any(model.fit.records is not None for model in found.models),
        past=True,
        **reader.changes,
    )


def _digest(inventory: Any) -> dict[str, str]:
    """SHA-256 of the inventory's files, by name."""
    tables = list_tables(inventory)
    files = [file for table in tables for file in (sorted(table.iterdir()) if table.is_dir() else [table])]
    return {file.name: digest_file(file) for file in files if file.is_file()}
