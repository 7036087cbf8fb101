"""Members of an inventory as they are now, where a forecast starts from: ``read_members``.

Every source becomes a panel: inspections, the ends of transitions, or a plain list. The last usable visit of each
member is found in one pass that holds members in memory and not visits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, BadStates, BadValues, count_of, name_rows
from rekka.core.ratings import plain_labels
from rekka.data.audit import FIRST_ROWS
from rekka.data.direction import Moves, refuse_upside_down
from rekka.data.mapping import ColumnRoles, State, TableMapping, load_mapping, split_names
from rekka.data.merging import apply_scale
from rekka.data.nbi import is_nbi, read_nbi
from rekka.data.pairing import MONTHS, SAME_DAY, SOURCES, count_months, plan_pairing
from rekka.data.panel import PAIRED, Panel, RecordProblem, find_tables, read_panel
from rekka.data.reading import TableReading, choose_options, find_named, fit_to, loosen, reuse
from rekka.data.tables import ROW, SourceTable, is_folder, open_table
from rekka.data.text import collect
from rekka.data.transitions import count_panel_moves, merge_ratings, pair_visits, read_transitions
from rekka.data.values import Scale
from rekka.fleet.found import COORDINATES, MOST_VISITS, find_coordinate, list_found, visits_of_pairs
from rekka.fleet.lists import MEMBER, read_ends, read_list, recognise_list

# Columns beside a user's own, under names that nobody gives theirs.
PLACE, MOMENT, KEY, DIFFER = "place of the record", "moment of the record", "key of the record", "states differ"
REPAIR, LATEST = "latest repair", "latest date"
EARLIEST, DAYS = "earliest date", "number of dates"
LAST_ROW, LAST_PROBLEM = "row of the last record", "problem of the last record"
BEST, WORST = "best state of the last moment", "worst state of the last moment"
STATES, PLACES = 2**16, 2**40  # more than there can be of them; with a moment of 64 bits, a key has 128


@dataclass(frozen=True, eq=False)
class LastVisits:
    """Last usable visits: ``frame`` has a row for each member, null where no record is usable, and counts.

    A record without a bridge or a case is of a member without one. ``problems`` says why a record cannot be used.
    """

    panel: Panel
    covariates: tuple[str, ...]
    problems: Mapping[int, str]
    frame: pl.DataFrame

    def count(self, problem: int) -> int:
        """Number of records that have the problem."""
        return int(self.frame[_count_name(problem)].sum())

    def source(self, covariate: str) -> str:
        """Column of the visits that a covariate comes from."""
        return covariate if covariate in self.panel.columns else SOURCES[covariate]

    @property
    def moment(self) -> str:
        """Unit that visits are ordered by, in words."""
        return "visit number" if "visit" in self.panel.columns else "day"


def find_last(panel: Panel, *, carry: bool) -> LastVisits:
    """Find each member's last usable visit: state, date, row, kept columns and what its covariates come from.

    With ``carry``, what that visit lacks of the latter is that of the latest usable visit that has it.
    """
    asked = plan_pairing(panel, panel.rules)
    further = panel.covariates
    known = [name for name in asked.covariates if name not in further and SOURCES.get(name) not in further]
    problems = {**panel.problems, SAME_DAY: asked.reasons[SAME_DAY][1]}
    unread = LastVisits(panel, (*known, *further), problems, pl.DataFrame())
    visits = _order_visits(panel)
    columns = _pick_columns(unread, carry) | _count_records(unread)
    members = collect(visits.group_by(*MEMBER).agg(**columns), panel.name)
    last = replace(unread, frame=members.sort(PLACE, LAST_ROW, *MEMBER))
    _refuse_outside(last, visits)
    _refuse_differing(last, visits)
    return last


def _order_visits(panel: Panel) -> pl.LazyFrame:
    """Add a key to the visits: of a member's usable visits the last has the greatest.

    It goes by the moment, a day or a visit's number. Of several at one moment the worst, the first or the last of
    them has the greatest key; with set_aside, where their states differ, none has one.
    """
    rule = panel.rules.same_day
    moment = pl.col("visit" if "visit" in panel.columns else "date").cast(pl.Int64)
    visits = panel.visits.with_row_index(PLACE).with_columns(moment.fill_null(0).alias(MOMENT))  # a list has none
    if rule == "set_aside":
        visits = _mark_differing(visits)
    rank = pl.col("state") if rule == "worst" else pl.lit(0)
    place = pl.col(PLACE).cast(pl.Int128)
    order = place if rule == "last" else PLACES - 1 - place
    key = (pl.col(MOMENT).cast(pl.Int128) * STATES + rank) * PLACES + order
    return visits.with_columns(pl.when(_usable()).then(key).alias(KEY))


def _usable() -> pl.Expr:
    return pl.col("problem") == RecordProblem.NONE


def _mark_differing(visits: pl.LazyFrame) -> pl.LazyFrame:
    """Give usable visits of one member and moment that differ in their states a problem."""
    state = pl.col("state")
    moments = visits.filter(_usable()).group_by(*MEMBER, MOMENT)
    differing = moments.agg((state.min() < state.max()).alias(DIFFER)).filter(DIFFER)
    marked = visits.join(differing, on=[*MEMBER, MOMENT], how="left")
    problem = pl.when(_usable() & pl.col(DIFFER).fill_null(value=False)).then(SAME_DAY).otherwise("problem")
    return marked.with_columns(problem=problem.cast(pl.UInt8))


def _pick_columns(last: LastVisits, carry: bool) -> dict[str, pl.Expr]:
    """Columns taken from the last usable visit."""
    panel, key = last.panel, pl.col(KEY)
    names = [name for name in ("date", "state", ROW, "column", *panel.keep) if name in panel.columns]
    columns = {name: pl.col(name).max_by(key) for name in (PLACE, *names)}
    for name in map(last.source, last.covariates):
        by = pl.when(pl.col(name).is_not_null()).then(key) if carry else key
        columns[name] = pl.col(name).max_by(by)
    return columns


def _count_records(last: LastVisits) -> dict[str, pl.Expr]:
    """Columns computed over all records of a member: repairs, problems, and whether states differ."""
    state = pl.col("state")
    moment = pl.when(_usable()).then(pl.col(MOMENT).cast(pl.Int128) * STATES)
    columns = {
        BEST: state.max_by(moment - state),
        WORST: state.max_by(moment + state),
        LATEST: pl.when(_usable()).then("date").max(),
        EARLIEST: pl.when(_usable()).then("date").min(),
        DAYS: pl.when(_usable()).then("date").drop_nulls().n_unique(),
        REPAIR: pl.max_horizontal(pl.lit(None, pl.Date), *last.panel.repairs).max(),
        LAST_ROW: pl.col(ROW).max_by(PLACE),
        LAST_PROBLEM: pl.col("problem").max_by(PLACE),
    }
    return columns | {_count_name(code): (pl.col("problem") == code).sum() for code in last.problems}


def _count_name(problem: int) -> str:
    return f"records of problem {int(problem)}"


def _refuse_outside(last: LastVisits, visits: pl.LazyFrame) -> None:
    """Refuse states outside the scale, where the rules call them errors."""
    panel = last.panel
    if panel.rules.outside != "error" or not last.count(RecordProblem.OUTSIDE_STATE):
        return
    outside = visits.filter(pl.col("problem") == RecordProblem.OUTSIDE_STATE)
    found = collect(outside.select(ROW, "state_text"), panel.name).sort(ROW)
    rows = found[ROW].to_list()
    raise BadStates(
        f"The state is {found['state_text'][0]!r} in {name_rows(rows)} ({len(rows)} of {panel.records}), outside "
        f"the scale {', '.join(panel.scale.names)}. Exclude such records, or give a wider scale.",
        rows=rows,
    )


def _refuse_differing(last: LastVisits, visits: pl.LazyFrame) -> None:
    """Refuse states that differ on a member's last day, where the rules call that an error."""
    panel = last.panel
    differing = last.frame.filter(pl.col(BEST) < pl.col(WORST))
    if panel.rules.same_day != "error" or differing.is_empty():
        return
    usable = visits.filter(_usable()).select(ROW, MOMENT, *MEMBER)
    there = collect(usable.join(differing.lazy(), on=MEMBER, how="semi"), panel.name)
    rows = there.filter(pl.col(MOMENT) == pl.col(MOMENT).max().over(MEMBER))[ROW].sort().to_list()
    raise BadValues(
        f"{panel.name}: {name_rows(rows)}: records of a member's last {last.moment} with different states. Keep "
        "the worst, the first or the last of them with same_day, or exclude them.",
        rows=rows,
    )


Changes = Mapping[str, Any]  # sections of a mapping
Line = tuple[str, int, list[int], str]  # of ``aside``

REPAIRED = "repaired after the last visit: the state is not known any more"
UNUSABLE = "no usable visit; last record: {}"
MEMBERS, RECORDS = "members", "records"  # what a line of ``aside`` counts
INSPECTED = "inspections; each member is as its last usable visit found it"
ENDED = "each member is as its last transition ended; visits that are in no transition are not known"
LISTED = "a list of members without dates; each is as its row says"
ORDERED = "a list of members by date or visit; each is as its last row says"
AGE, COMPLETED = "age_at_inspection_1", "completed"
SEVERAL = 0.2  # share of the members that must have several visits for their intervals to be the usual ones
SCALES = ("labels", "best", "worst", "bands")
MOST_OFF = 0.5  # share of the states that may be off the scale of a reading: more is another scale


@dataclass(frozen=True, eq=False)
class Members:
    """Members of an inventory as last seen, and the excluded ones by reason.

    ``frame``: bridge_id, case, member (where the table tells members of a case apart), date (null where the table
    knows none), state (from 1, the best), the covariates under the names that models use (null where missing), row
    (and column, where a row has several visits) of that visit in the table, kept columns; in the order of the
    table. ``aside``: reason, count, rows (the first of them), and what is counted: members, or records of none.
    ``intervals``: of each case whose members have several visits, the median over these of the mean years between
    two visits of a member.

    Examples
    --------
    >>> import rekka
    >>> import polars as pl
    >>> table = pl.DataFrame({"bridge": ["B1", "B2"], "state": [1, 3], "age": [12, 40]})
    >>> members = rekka.read_members(table, state={"best": 1, "worst": 4})
    >>> members.frame["state"].to_list(), members.covariates
    ([1, 3], ('age_at_inspection_1',))

    """

    name: str
    frame: pl.DataFrame
    covariates: tuple[str, ...]
    aside: pl.DataFrame
    scale: Scale | None  # None for transitions: their states have no names
    notes: tuple[str, ...]
    dated: bool
    intervals: Mapping[str, float] = field(default_factory=dict)  # usual years between visits, by case
    pairs: pl.DataFrame | None = None  # of all visits up to now, improvements included, where asked for
    found: pl.DataFrame | None = None  # days and states of each member's visits (``list_found``), where asked for


def read_members(
    source: Any,
    mapping: Any = None,
    *,
    nbi: bool = False,
    labels: Sequence[str] | None = None,
    reading: TableReading | None = None,
    needed: Sequence[str] | None = None,
    who: str = "the model",
    until: date | None = None,
    allow: Sequence[str] = (),
    visits: bool = False,
    past: bool = False,
    **changes: Any,
) -> Members:
    """Read the members of an inventory as they are now, from inspections, transitions or a list of members.

    1. Inspections, as ``read_panel`` and ``read_nbi`` read them: each member as its last usable visit found it.
       Age goes by the calendar, from completion to that visit. Traffic, length, area and further covariates are
       those of that visit or, where it lacks them, of the latest usable visit before it that has them. A model is
       fitted on the mean traffic of two inspections, of which the second is yet to come: ``traffic_mean`` is the
       latest traffic that is known.
    2. Transitions (state_1, state_2, interval_years): each member as its last one ended, the age so many years on,
       other covariates as they are.
    3. A list: a table with a bridge and a state and without a date has one row for each member. Its numbers are
       covariates under their own names. With a date it is taken for inspections, unless it has a covariate that
       only models know, ``age_at_inspection_1`` or ``traffic_mean``; then the last row of each member counts.

    Parameters
    ----------
    source : path or dataframe, or a list of paths with ``nbi``
        As for ``read_panel`` and ``read_nbi``.
    mapping : path or dict, optional
        What the columns and values mean. Only its rules same_day, repairs and outside are used. After a repair
        that is later than the last visit the state is not known, unless repairs is ignore.
    nbi : bool
        The files are those of the National Bridge Inventory; of a mapping they take the rules alone.
    labels : list of str, optional
        The states of a model, best first. Used where the mapping has no scale and the states of the table are all
        among these, or cannot be read otherwise. A ``reading`` has its own scale, which is used instead.
    reading : TableReading, optional
        How the table was read that the models were fitted to: ``Transitions.reading``, or a study's or a model's.
        This one is read in the same way. What is said besides must mean the same, and a column that is not there
        is named.
    needed : list of str, optional
        Covariates that the models need; all by default. Columns of others may be absent.
    who : str
        What the reading is called in messages: the run or the model.
    until : date, optional
        What was found and repaired after that day is left out: the members as they were known then.
    allow : list of str
        Codes of checks that do not stop the work: "R109", more moves go up than down.
    visits : bool
        Whether to keep the pairs of all visits, improvements by one rating included, in ``pairs``: models of
        histories start from them. A list of members has none.
    past : bool
        Whether to keep the days and states of all visits, in ``found``, unless there are millions of them.
    **changes
        Sections of the mapping that overrule it.

    Returns
    -------
    Members
        A row for each member in ``frame``; members and records that cannot be used in ``aside``.

    Examples
    --------
    >>> import rekka
    >>> inspections = rekka.simulate_inventory(20, preset="plain", seed=1).inspections
    >>> members = rekka.read_members(inspections)
    >>> members.dated, members.frame.height <= inspections.height
    (True, True)

    """
    plan = load_mapping(mapping, changes)
    if reading is not None and reading.kind == "transitions" and reading.mapping:
        mapping = plan = _add_categories(plan, reading, open_table(find_tables(source)[0], plan.table))
    if reading is None or reading.kind == "transitions":
        kind = _look_back(_recognise(source, mapping, plan, nbi), until)
        if reading is not None and kind.carry:  # the transitions, too, may be of ratings that were merged
            own, kind = kind, replace(kind, read=lambda changes: merge_ratings(own.read(changes)))
        last, told = _settle_states(kind, plan.state, labels, changes)
    else:
        kind, told = _recognise_again(source, mapping, changes, nbi, reading, needed, who, located=past)
        kind = _look_back(kind, until)
        last, more = _settle_again(kind, reading, who)
        told += more
    moves = kind.moves or _count_moves(last.panel)
    if reading is not None and reading.kind == "transitions":
        known = _is_given(plan.state) or plain_labels(last.panel.scale.names) == plain_labels(labels or ())
        if kind.labelled and not known and not moves.any:
            _refuse_numbers(last.panel, who)
        told += [_compare_numbers(last.panel, who)]
    refuse_upside_down(moves, allow)
    members = _conclude(last, [f"{last.panel.name}: {kind.words}", *told])
    members = replace(members, pairs=_pair(kind, last.panel)) if visits else members
    return replace(members, found=_list_found(kind, last.panel)) if past else members


def _list_found(kind: _Kind, panel: Panel) -> pl.DataFrame | None:
    """Days and states of each member's visits; None where they have no dates, or there are too many."""
    if panel.records > MOST_VISITS:
        return None
    if kind.pairs is not None:
        ends = visits_of_pairs(kind.pairs)
        return None if ends is None else list_found(ends)
    return list_found(panel.visits.filter(_usable())) if "date" in panel.columns else None


def _pair(kind: _Kind, panel: Panel) -> pl.DataFrame | None:
    """Pairs of all visits of a source, improvements by one rating included; None of a list."""
    if kind.pairs is not None:
        return kind.pairs
    lenient: dict[str, Any] = dict.fromkeys(("interval", "missing", "outside"), "set_aside")
    return pair_visits(panel, upward="keep", **lenient).frame if kind.carry else None


@dataclass(frozen=True)
class _Kind:
    """Kind of source: its description, and how it becomes a panel under some changes of the mapping."""

    words: str
    read: Callable[[Changes], Panel]
    carry: bool = False  # whether an earlier visit fills in what the last one lacks
    labelled: bool = True  # whether its states are texts whose meaning is asked for
    moves: Moves | None = None  # of transitions; those of visits are counted when they are read
    pairs: pl.DataFrame | None = None  # the transitions themselves

    def find_last(self, changes: Changes) -> LastVisits:
        """Find the last visits of the source under some changes of the mapping."""
        return find_last(self.read(changes), carry=self.carry)


def _recognise(source: Any, mapping: Any, plan: TableMapping, nbi: bool) -> _Kind:
    """Recognise inspections, transitions or a list by the columns."""
    if nbi:
        if plan.model_fields_set - {"rules"}:
            raise BadOption("Files of the National Bridge Inventory need no mapping; the rules are all they take.")
        read = replace(read_nbi(source), rules=plan.rules)
        return _Kind(INSPECTED, lambda changes: read, carry=True, labelled=False)
    if not is_folder(source):
        table = open_table(source, plan.table)
        if set(PAIRED) <= set(table.columns):
            plan = split_names(plan, table)
            found = read_transitions(source, plan)
            ends = read_ends(table, plan, found)
            return _Kind(ENDED, lambda changes: ends, labelled=False, moves=found.moves, pairs=found.frame)
        if listed := recognise_list(table, plan):
            words = ORDERED if {"date", "visit"} & set(listed) else LISTED
            return _Kind(words, lambda changes: read_list(table, load_mapping(mapping, changes)))
    return _Kind(INSPECTED, lambda changes: read_panel(source, mapping, **changes), carry=True)


def _add_categories(plan: TableMapping, reading: TableReading, table: SourceTable) -> TableMapping:
    """A mapping that asks for the categories of an earlier reading, unless it asks for covariates itself."""
    asked = ColumnRoles.model_validate(reading.mapping.get("columns", {}))
    named = [] if plan.columns.asked else find_named(asked, table, plan.table.decimal)
    if not named:
        return plan
    return plan.model_copy(update={"columns": plan.columns.model_copy(update={"categories": named})})


def _recognise_again(
    source: Any,
    mapping: Any,
    changes: Changes,
    nbi: bool,
    reading: TableReading,
    needed: Sequence[str] | None,
    who: str,
    *,
    located: bool,
) -> tuple[_Kind, list[str]]:
    """Recognise a source by the columns and the scale of an earlier reading; refuse what does not fit it.

    Columns of coordinates are kept where members are to be ``located``.
    """
    own = load_mapping(mapping, changes)
    if nbi or (reading.kind == "nbi" and is_nbi(source)):
        rules = load_mapping({"rules": reading.mapping.get("rules", {})}, own.model_dump(exclude_unset=True))
        kind = _recognise(source, None, rules, nbi=True)
        if reading.merged:
            merged = apply_scale(kind.read({}), reading.state)
            kind = replace(kind, read=lambda changes: merged)
        scale = kind.read({}).scale
        if reading.labels is not None and plain_labels(scale.names) != plain_labels(reading.labels):
            raise BadOption(
                f"{who} read {reading.explain()}; files of the National Bridge Inventory have ratings from 9 to "
                "0. Give a table that is like the model's."
            )
        return kind, []
    if reading.kind == "nbi" and isinstance(source, list | tuple) and source:
        _refuse_several(source, who)
    main = find_tables(source)[0]
    table = open_table(main, choose_options(reading, main, own))
    if set(PAIRED) <= set(table.columns):
        note = f"{table.name}: its states are numbers from 1, taken for {', '.join(reading.labels or ())}"
        own = _add_categories(own, reading, table)
        return _recognise(source, own, own, nbi=False), [note] if reading.labels else []
    plan = split_names(reuse(reading, main, mapping, changes, who), table)
    loose = loosen(plan, table, own)
    if not is_folder(source) and (found := recognise_list(table, loose)):
        words = ORDERED if {"date", "visit"} & set(found) else LISTED
        return _Kind(words, lambda changed: read_list(table, load_mapping(loose, changed))), []
    fitted, notes = fit_to(plan, table, own, needed, who)
    fitted = _keep_coordinates(fitted, table) if located else fitted
    told = [f"{table.name}: read as {who} was, {reading.explain()}"] if reading.knows_states else []
    return _Kind(INSPECTED, lambda changed: read_panel(source, fitted, **changed), carry=True), [*told, *notes]


def _keep_coordinates(plan: TableMapping, table: SourceTable) -> TableMapping:
    """Mapping that keeps the columns called latitude and longitude, where the table has both."""
    found = [find_coordinate(table.columns, known) for known in COORDINATES.values()]
    names = [name for name in found if name is not None]
    if len(names) < len(COORDINATES) or set(names) & set(plan.columns.asked):
        return plan
    kept = list(dict.fromkeys([*plan.columns.keep, *names]))
    return plan.model_copy(update={"columns": plan.columns.model_copy(update={"keep": kept})})


def _refuse_several(sources: Sequence[Any], who: str) -> None:
    """Refuse several tables, some of which are not files of the National Bridge Inventory, as the model's were."""
    other = next(one for one in sources if not is_nbi(one))
    raise BadOption(
        f"{who} was fitted to files of the National Bridge Inventory, and {open_table(other).name} is not one. "
        "Several tables are read together only where all are such files. Give these, or one table.",
        file=str(other),
    )


def _settle_again(kind: _Kind, reading: TableReading, who: str) -> tuple[LastVisits, list[str]]:
    """Find the last visits on the reading's scale, or on a longer one that begins with the same states."""
    try:
        last = kind.find_last({})
    except BadStates as error:
        raise BadStates(
            f"{error} The scale is that by which {who} read {reading.explain()}.", **error.values
        ) from None
    if not kind.labelled or not reading.labels:
        return last, []
    off = last.count(RecordProblem.OUTSIDE_STATE) + last.count(RecordProblem.UNKNOWN_STATE)
    if not off:
        return last, []
    filled = last.panel.records - last.count(RecordProblem.BLANK_STATE)
    if not _is_given(State.model_validate(reading.given)):
        try:  # a recognised scale may have states worse than those that the model saw
            wider = kind.find_last({"state": {**dict.fromkeys(SCALES), **reading.given}})
        except BadStates:
            wider = last
        names, known = plain_labels(wider.panel.scale.names), plain_labels(reading.labels)
        if len(names) > len(known) and names[: len(known)] == known:
            return wider, [f"{last.panel.name}: states beyond {reading.labels[-1]}, the worst that {who} had"]
    if off > MOST_OFF * filled:
        raise BadStates(
            f"{last.panel.name}: {off:,} of {filled:,} states are not on the scale by which {who} read "
            f"{reading.explain()}. Give a table with the states {', '.join(reading.labels)}, or say by --labels, "
            "best first, what they are called here."
        )
    return last, []


def _is_given(state: State) -> bool:
    """Whether the scale is given by options or a mapping, and not only recognised."""
    return state.model_copy(update={"missing": [], "merge": True}) != State()


def _refuse_numbers(panel: Panel, who: str) -> None:
    """Refuse numbers as states where no move shows their direction: both ends can be the best."""
    names = panel.scale.names
    if not names or not all(name.isdecimal() for name in names):
        return
    first, last = names[0], names[-1]
    raise BadStates(
        f"{panel.name} has the states {first} to {last}, and does not show whether {first} or {last} is the best: "
        f"no member has two visits that differ. {who} does not say it either: it was fitted to transitions, whose "
        f"states are numbers from 1, the best, whatever they were called before. Say it by --best {first} --worst "
        f"{last} or --best {last} --worst {first}, with the ends of the whole scale where no member is at one, or "
        "by --labels, --bands or --worst-first.",
        states=list(names),
    )


def _compare_numbers(panel: Panel, who: str) -> str:
    """Say which state is taken as the best, where the model was fitted to transitions with numbers as states."""
    names = panel.scale.names
    if not names:
        return f"{panel.name}: states from 1, 1 taken as the best, as in the transitions that {who} was fitted to"
    if names == tuple(str(number) for number in range(1, len(names) + 1)):
        return (
            f"{panel.name}: states 1 to {len(names)}, 1 taken as the best, as in the transitions that {who} was "
            "fitted to"
        )
    return (
        f"{panel.name}: {who} was fitted to transitions, whose states are numbers from 1, the best; "
        f"{', '.join(names)} are taken for these, in this order ({names[0]} taken as the best)"
    )


def _count_moves(panel: Panel) -> Moves:
    """Count the moves between the visits of each member; a list without dates has none."""
    dated = panel.visits.filter(pl.col("date").is_not_null()).head(1)
    return Moves(0, 0) if collect(dated, panel.name).is_empty() else count_panel_moves(panel)


def _look_back(kind: _Kind, until: date | None) -> _Kind:
    """Restrict a source to what was known on some day."""
    if until is None:
        return kind
    known = pl.col("date").is_null() | (pl.col("date") <= until)

    def read(changes: Changes) -> Panel:
        panel = kind.read(changes)
        repairs = [pl.when(pl.col(name) <= until).then(pl.col(name)) for name in panel.repairs]
        note = f"{panel.name}: what was found after {until} is left out"
        visits = panel.visits.filter(known).with_columns(repairs)
        number = int(visits.select(pl.len()).collect().item())
        return replace(panel, visits=visits, records=number, notes=(*panel.notes, note))

    pairs = kind.pairs
    if pairs is not None and "date_2" in pairs.columns and pairs["date_2"].dtype.is_temporal():
        pairs = pairs.filter(pl.col("date_2") <= until)
    return replace(kind, read=read, pairs=pairs)


def _settle_states(
    kind: _Kind, state: State, labels: Sequence[str] | None, changes: Changes
) -> tuple[LastVisits, list[str]]:
    """Find the last visits under the labels of a model where these fit, else as the table and its mapping say."""
    if labels is None or _is_given(state) or not kind.labelled:
        return kind.find_last(changes), []
    groups = [label.split("/") if "/" in label else label for label in labels]
    section = {**changes.get("state", {}), "labels": groups}
    named: LastVisits | None = None
    try:
        named = kind.find_last({**changes, "state": section})
        if not named.count(RecordProblem.OUTSIDE_STATE):
            return named, []
    except (BadStates, BadOption):  # no state is among the labels, or a label means that nobody looked
        pass
    some = f"some states are not among the model's ({', '.join(labels)})"
    try:
        last = kind.find_last(changes)
    except BadStates:  # a slip among states that the model knows is set aside by itself
        if named is None:
            raise
        return named, [f"{named.panel.name}: {some}, and such records are not usable"]
    return last, [f"{last.panel.name}: {some}, so that its scale is not used"]


def _conclude(last: LastVisits, told: Sequence[str]) -> Members:
    """Split members into those that a forecast can start from, and the excluded ones."""
    panel = last.panel
    named = last.frame.filter(pl.col("bridge_id").is_not_null() & pl.col("case").is_not_null())
    lines = _list_nameless(panel) if len(named) < len(last.frame) else []
    lines += _list_unusable(last, named.filter(pl.col(PLACE).is_null()))
    now = seen = named.filter(pl.col(PLACE).is_not_null())
    if panel.rules.repairs != "ignore":
        repaired = (pl.col(REPAIR) > pl.col("date")).fill_null(value=False)
        now, late = seen.filter(~repaired), seen.filter(repaired)
        lines += [_count_lines(REPAIRED, late[ROW], MEMBERS)] if len(late) else []
    if now.is_empty():
        raise _nobody(panel.name, lines)
    schema: dict[str, Any] = {"reason": pl.String, "count": pl.Int64, "rows": pl.List(pl.Int64), "what": pl.String}
    return Members(
        name=panel.name,
        frame=_lay_out(now, last),
        covariates=last.covariates,
        aside=pl.DataFrame(lines, schema=schema, orient="row"),
        scale=panel.scale if panel.scale.names else None,
        notes=(*panel.notes, *told, *_remark(last, now)),
        dated=now["date"].null_count() < len(now),
        intervals=_find_intervals(named),
    )


def _find_intervals(members: pl.DataFrame) -> dict[str, float]:
    """Usual years between two visits, by case: the median of the members that have several.

    Of a case in which few members have several it is not known: a second look after a month is nobody's rule.
    """
    years = (count_months(LATEST) - count_months(EARLIEST)) / MONTHS / (pl.col(DAYS) - 1)
    several = (pl.col(DAYS) > 1) & (pl.col(LATEST) > pl.col(EARLIEST))
    found = members.group_by("case").agg(years=years.filter(several).median(), share=several.mean())
    return dict(found.filter(pl.col("share") >= SEVERAL).sort("case").select("case", "years").rows())


def _count_lines(reason: str, rows: pl.Series, what: str) -> Line:
    return reason, len(rows), rows.unique().sort().head(FIRST_ROWS).to_list(), what


def _list_nameless(panel: Panel) -> list[Line]:
    """Lines on records that belong to no member, by reason."""
    nameless = panel.visits.filter(pl.col("bridge_id").is_null() | pl.col("case").is_null())
    found = collect(nameless.select("problem", ROW), panel.name).sort("problem")
    groups = found.group_by("problem", maintain_order=True)
    return [_count_lines(panel.problems[code], group[ROW], RECORDS) for (code,), group in groups]


def _list_unusable(last: LastVisits, members: pl.DataFrame) -> list[Line]:
    """Lines on members without a usable visit, by the problem of their last record."""
    groups = members.sort(LAST_PROBLEM).group_by(LAST_PROBLEM, maintain_order=True)
    words = {code: UNUSABLE.format(sentence) for code, sentence in last.problems.items()}
    return [_count_lines(words[code], group[LAST_ROW], MEMBERS) for (code,), group in groups]


def _nobody(name: str, lines: Sequence[Line]) -> BadValues:
    """Error for a table that leaves no member to forecast."""
    told = "; ".join(f"{reason}: {count_of(count, what[:-1])}" for reason, count, _, what in lines)
    reasons = told or "nothing was found up to that day"
    return BadValues(
        f"{name}: no member has a state that a forecast could start from ({reasons}). Correct the table, or the "
        "mapping that says what its values mean."
    )


def _lay_out(now: pl.DataFrame, last: LastVisits) -> pl.DataFrame:
    """Members under the names that models use."""
    panel = last.panel
    columns = {name: pl.col(name) for name in (MEMBER if panel.members else MEMBER[:2])}
    columns |= {"date": pl.col("date"), "state": pl.col("state").cast(pl.Int64)}
    for name in last.covariates:
        columns[name] = _count_years() if name == AGE and _is_counted(last) else pl.col(last.source(name))
    columns[ROW] = pl.col(ROW).cast(pl.Int64)
    columns |= {name: pl.col(name) for name in ("column", *panel.keep) if name in now.columns}
    return now.select(**columns)


def _is_counted(last: LastVisits) -> bool:
    """Whether the age is counted from the completion, and not in the table itself."""
    return AGE in last.covariates and last.source(AGE) == COMPLETED


def _count_years() -> pl.Expr:
    """Years from completion to the visit; null where the visit was before."""
    years = (count_months("date") - count_months(COMPLETED)) / MONTHS
    return pl.when(pl.col(COMPLETED) <= pl.col("date")).then(years)


def _remark(last: LastVisits, now: pl.DataFrame) -> list[str]:
    """Notes on how the last visits were found."""
    counts = {sentence: last.count(code) for code, sentence in last.problems.items()}
    reasons = "; ".join(f"{sentence}: {count:,}" for sentence, count in counts.items() if count)
    unusable, records = sum(counts.values()), count_of(last.panel.records, "record")
    differing = len(now.filter(pl.col(BEST) < pl.col(WORST)))
    disordered = len(now.filter(pl.col("date") < pl.col(LATEST)))
    unbuilt = len(now.filter(pl.col(COMPLETED) > pl.col("date"))) if _is_counted(last) else 0
    rule = last.panel.rules.same_day
    remarks = (
        (unusable, f"{unusable:,} of {records} not usable ({reasons})"),
        (differing, f"{_members(differing)} with different states on the last {last.moment}; the {rule} counts"),
        (disordered, f"{_members(disordered)} with a later date at a smaller visit number; the number counts"),
        (unbuilt, f"{_members(unbuilt)} completed after the last visit, and without an age"),
    )
    return [f"{last.panel.name}: {words}" for count, words in remarks if count]


def _members(number: int) -> str:
    return count_of(number, "member")
