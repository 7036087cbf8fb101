"""Problems of a table: findings of the checks and refusals of the reader, each with remedies that a button takes.

A remedy is the mapping as it is afterwards, or a check that is allowed. It is looked up by its name among those of
the table as it is read now, so that nothing but what the page offered can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rekka.app import changes
from rekka.app.changes import Plain
from rekka.app.description import BY_VISIT, LISTS, NO_ROLE, TableDescription
from rekka.app.views import KEYS
from rekka.app.workspace import SUFFIXES
from rekka.checks.doctor import Diagnosis
from rekka.checks.engine import Finding, Severity
from rekka.core.errors import InputError, MissingColumns, UnreadableTable
from rekka.core.language import Said, Words, say
from rekka.core.ratings import Ratings
from rekka.data.audit import LAST, PAIR, TRANSITION, VISIT, Audit
from rekka.data.direction import CODE
from rekka.data.mapping import State
from rekka.data.partition import PAPER_SEED
from rekka.data.transitions import ReadingOptions, pair_visits
from rekka.data.values import merge_with_next
from rekka.workflows.tables import choose_partition, look_over

LEFT_TO_COMPONENTS = ("R108", "R504")  # stop a component; the work, where all components have one
NOT_SHOWN = ("R001", "R002")  # notes and counts, which the page shows by themselves
MOST_COMPONENTS, MOST_ROWS, MOST_MERGES = 5, 10, 3
SOURCES = {  # columns by their roles that a covariate of ours comes from, the first that the table has
    "age_at_inspection_1": ("completed",),
    "bridge_length": ("length",),
    "bridge_area": ("area", "width", "length"),
    "traffic_mean": ("traffic",),
}


@dataclass(frozen=True)
class Remedy:
    """Outcome of a button: the mapping afterwards, or a check that is allowed after a confirmation.

    ``role`` asks for a column, which then has this role; ``place`` is the one that is proposed. ``link`` leads to
    the section where it is done instead.
    """

    name: str
    label: Said
    mapping: Plain | None = None
    allow: str = ""
    role: str = ""
    place: int = 0
    link: str = ""
    nbi: bool = False


@dataclass(frozen=True)
class TableProblem:
    """Findings of one code, or a refusal: ``kind`` names its texts, ``message`` is the library's own sentence."""

    severity: Severity
    stops: bool
    findings: tuple[Finding, ...] = ()
    kind: str = ""
    places: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    rows: tuple[int, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def code(self) -> str:
        """Code of the findings; a refusal has none."""
        return self.findings[0].code if self.findings else ""

    @property
    def more(self) -> int:
        """Number of components besides those that are named."""
        return max(0, len(self.findings) - MOST_COMPONENTS)

    def title(self, words: Words) -> str:
        """Heading."""
        if self.findings:
            return self.findings[0].describe(words).title
        return self._say(words, "title")

    def found(self, words: Words) -> list[tuple[str, str]]:
        """Sentences, each with the component that it is about."""
        if self.findings:
            some = self.findings[:MOST_COMPONENTS]
            return [(one.case or "", one.describe(words).message) for one in some]
        return [("", self._say(words, "found"))]

    def advice(self, words: Words) -> list[str]:
        """Sentences on what to do."""
        if not self.findings:
            return [self._say(words, "do")]
        own = f"{KEYS}do.{self.code}"
        if own not in words.texts:
            told = [one.describe(words).remedy for one in self.findings]
        else:
            also = [said for one in self.findings for said in one.places.get("advice", ())]
            told = [words(own), *(words.format(_say_here(said, words)) for said in also)]
        return [one for one in dict.fromkeys(told) if one]

    def _say(self, words: Words, part: str) -> str:
        return words.format(say(f"{KEYS}problem.{self.kind}.{part}", **self.places))


def _say_here(said: Said, words: Words) -> Said:
    """A sentence of a check in the app's own words, where it has some: without options of the command line."""
    own = f"{KEYS}do.{said['say'].removeprefix('check.').replace('.', '_')}"
    return {**said, "say": own} if own in words.texts else said


@dataclass(frozen=True)
class Checked:
    """Outcome of all records of a table, and the problems of its transitions; the worst first."""

    problems: tuple[TableProblem, ...]
    counts: dict[str, int] = field(default_factory=dict)
    excluded: tuple[tuple[str, int, tuple[int, ...]], ...] = ()  # reason, records, first rows
    upward: int = 0
    downward: int = 0

    @property
    def stops(self) -> bool:
        """Whether something has to be put right before a run."""
        return any(one.stops for one in self.problems)

    def count(self, severity: str) -> int:
        """Number of problems of one severity."""
        return sum(one.severity == severity for one in self.problems)


def check_reading(file: Any, options: ReadingOptions, table: TableDescription, mapping: Plain) -> Checked:
    """Pair and check what was read; a refusal is a problem."""
    if table.refusal is not None:
        return Checked((_name_file(explain_refusal(table.refusal, table, mapping), file, table),))
    try:
        if table.kind == "transitions":
            found = options.transitions(file)
        else:
            found = pair_visits(options.panel(file), **options.rules)
        diagnosis = look_over(found, choose_partition("auto", None, PAPER_SEED))
    except InputError as error:
        audit = error.values.get("audit")
        problem = _name_file(explain_refusal(error, table, mapping), file, table)
        return Checked((problem,), *_account(audit)) if audit is not None else Checked((problem,))
    problems = tuple(_group(diagnosis, table, mapping, options))
    counts, excluded = _account(found.audit) if found.audit is not None else ({}, ())
    return Checked(problems, counts, excluded, found.moves.upward, found.moves.downward)


def _name_file(problem: TableProblem, file: Any, table: TableDescription) -> TableProblem:
    """A problem whose message has the name that the file is shown under, also where it says to rename the file."""
    if not isinstance(file, str | Path) or any(Path(join.file).name == Path(file).name for join in table.joins):
        return problem  # two files of one name: it may be about the other
    place, shown = Path(file), Path(table.name)
    endings = "|".join(map(re.escape, (*SUFFIXES, place.suffix)))
    message = re.sub(
        rf"(?<!\w){re.escape(place.stem)}({endings})(?!\w)",
        lambda found: table.name if found[1] == place.suffix else shown.stem + found[1],
        problem.message,
    )
    return replace(problem, message=message)


def find_remedy(problems: Iterable[TableProblem], name: str) -> Remedy | None:
    """The remedy of a name that the page offers."""
    return next((one for problem in problems for one in problem.remedies if one.name == name), None)


def _account(audit: Audit) -> tuple[dict[str, int], tuple[tuple[str, int, tuple[int, ...]], ...]]:
    """Records, transitions and last visits, and the reasons for which records are excluded, the largest first."""
    lines = audit.table.rows(named=True)
    counts = {"records": audit.records, "transitions": audit.transitions}
    counts["last_visits"] = sum(line["count"] for line in lines if line["outcome"] == LAST)
    aside = [line for line in lines if line["outcome"] in (PAIR, VISIT)]
    counts["excluded"] = sum(line["count"] for line in aside)
    assert {line["outcome"] for line in lines} <= {TRANSITION, LAST, PAIR, VISIT}
    told = [(str(line["reason"]), int(line["count"]), tuple(line["rows"] or ())) for line in aside]
    return counts, tuple(sorted(told, key=lambda one: -one[1]))


# Findings


def _group(
    diagnosis: Diagnosis, table: TableDescription, mapping: Plain, options: ReadingOptions
) -> Iterator[TableProblem]:
    """Findings of one code and severity together, those that stop the work first."""
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.code not in NOT_SHOWN or (finding.code == "R002" and finding.severity is Severity.WARNING):
            groups.setdefault((finding.code, finding.severity), []).append(finding)
    still = {one.case for one in diagnosis.findings if one.code in LEFT_TO_COMPONENTS and one.severity == "stop"}
    upside_down = any(one.code == CODE and one.severity is Severity.STOP for one in diagnosis.findings)
    nothing = not upside_down and bool(diagnosis.facts["cases"]) and still >= set(diagnosis.facts["cases"])
    made = []
    for (code, severity), findings in groups.items():
        whole = findings[0].case is None
        stops = severity is Severity.STOP and (whole or (nothing and code in LEFT_TO_COMPONENTS))
        if code in options.allow:
            severity, stops = Severity.WARNING, False
        rows = tuple(dict.fromkeys(row for one in findings for row in one.rows))[:MOST_ROWS]
        remedies = tuple(_remedy_finding(code, findings, table, mapping))
        if code in options.allow:
            remedies = tuple(one for one in remedies if not one.allow)
        made.append(TableProblem(severity, stops, tuple(findings), rows=rows, remedies=remedies))
    yield from sorted(made, key=lambda one: (not one.stops, one.severity.rank))


def _remedy_finding(
    code: str, findings: list[Finding], table: TableDescription, mapping: Plain
) -> Iterator[Remedy]:
    """Remedies of a finding that are changes of the mapping."""
    if code == CODE:
        yield from turn_scale(table, mapping)
        if findings[0].severity is Severity.STOP:
            yield from _name_repairs(findings[0], table)
            yield Remedy(f"allow-{code}", say(f"{KEYS}remedy.allow", code=code), allow=code)
    elif code in ("R104", "R105", "R106", "R402"):
        yield from _merge(findings, table, mapping)
    elif code in ("R301", "R302", "R303", "R304"):
        yield from _leave_out(findings, table, mapping)
    elif code == "R111":
        for text in dict.fromkeys(text for one in findings for text in one.values.get("counts", {})):
            changed = changes.add_missing(mapping, [text])
            yield Remedy(f"missing-{text}", say(f"{KEYS}remedy.missing", labels=[text]), changed)


def _name_repairs(finding: Finding, table: TableDescription) -> Iterator[Remedy]:
    """A column that may be of repairs by its name, or another that is chosen, read as such."""
    likely = {name for said in finding.places["advice"] for name in said.get("columns", ())}
    places = [place for place, one in table.shown if one.name in likely]
    if places:
        yield replace(_take("repairs", table), place=places[0])


def turn_scale(table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """The scale turned round, where it can be."""
    if table.scale is not None and table.scale.turned is not None:
        best = table.scale.told[-1]
        changed = changes.put_scale(mapping, table.scale.turned)
        yield Remedy("turn", say(f"{KEYS}remedy.turn", best=best), changed)


def _merge(findings: list[Finding], table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """Ratings that few rows leave read as one with the next, the rarest first."""
    scale = table.scale
    if scale is None or not scale.names:
        return
    named = Ratings(scale.names)
    for state in list(dict.fromkeys(state for one in findings for state in _list_states(one)))[:MOST_MERGES]:
        state = min(state, len(scale.names) - 1)
        merged = merge_with_next(scale.settled, scale.names, state)
        if merged is not None:
            pair = [named.name(state), named.name(state + 1)]
            changed = changes.put_scale(mapping, merged)
            yield Remedy(f"merge-{state}", say(f"{KEYS}remedy.merge", labels=pair), changed)


def _list_states(finding: Finding) -> list[int]:
    departures = finding.values.get("departures")
    if isinstance(departures, dict):
        return [int(state) for state, _ in sorted(departures.items(), key=lambda one: one[1])]
    return [int(state) for state in finding.values.get("states", [])]


def _leave_out(findings: list[Finding], table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """Covariates that cannot be used left out, by the column that they come from."""
    names: list[str] = []
    for one in findings:
        found = list(one.values.get("covariates", one.values.get("variance_inflation", ())))
        some = found[:1] if one.code in ("R302", "R303") else found  # the one that has to go comes first
        names += [str(name).split(": ")[0] for name in some]
    for name in list(dict.fromkeys(names))[:MOST_MERGES]:
        column = _find_source(name, table)
        if column is not None:
            changed = changes.ignore_columns(mapping, table, [column])
            place = [one.name for one in table.columns].index(column)
            yield Remedy(f"leave-out-{place}", say(f"{KEYS}remedy.leave_out", column=column), changed)


def _find_source(covariate: str, table: TableDescription) -> str | None:
    """Column of the table that a covariate comes from."""
    if any(one.name == covariate and one.role in LISTS for one in table.columns):
        return covariate
    for role in SOURCES.get(covariate, ()):
        found = table.find(role)
        if found:
            return found[0].name
    return None


# Refusals


def explain_refusal(error: InputError, table: TableDescription, mapping: Plain) -> TableProblem:
    """A refusal as a problem that stops the work, with what to do about it."""
    values = error.values
    kind = str(values.get("problem", "")) or (
        "missing" if isinstance(error, MissingColumns)
        else "unreadable" if isinstance(error, UnreadableTable)
        else "option" if values.get("key") or values.get("option") or values.get("choices")
        else "other"
    )  # fmt: skip
    told: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, str | int | float)}
    if kind == "no_role":
        told["role"] = say(f"{KEYS}role.{values['missing'][0]}")
    elif kind == "rivals":
        told["role"] = say(f"{KEYS}role.{values['role']}")
    elif kind == "rule":
        told["rule"] = say(f"{KEYS}rule.{values['rule']}")
    for view in table.joins:
        if kind.startswith("join_") and Path(view.file).name == values["file"]:
            told["file"] = view.name
    for name in ("columns", "labels", "missing"):
        if isinstance(values.get(name), list):
            told[name] = values[name]
    remedies = [*_REFUSED.get(kind, _nothing)(values, table, mapping)]
    if kind in ("unreadable", "empty", "no_role"):
        remedies = [*_other_sheets(table, mapping), *remedies]
    if any(not view.columns for view in table.joins) and not kind.startswith("join_"):
        remedies += _drop_joins({}, table, mapping)
    if table.nbi and kind in ("no_role", "missing", "no_transitions") and not mapping and table.kind != "nbi":
        remedies.insert(0, Remedy("nbi", say(f"{KEYS}remedy.nbi"), mapping={}, nbi=True))
    if mapping and kind in ("missing", "option", "other", "states_off_scale"):
        remedies.append(Remedy("reset", say(f"{KEYS}remedy.reset"), mapping={}))
    rows = tuple(values.get("rows") or ())[:MOST_ROWS]
    return TableProblem(Severity.STOP, True, (), kind, told, str(error), rows, tuple(remedies))


Values = dict[str, Any]


def _nothing(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    yield from ()


def _other_sheets(table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    for place, name in enumerate(table.sheets):
        if name != table.sheet:
            changed = changes.put(mapping, "table", "sheet", name)
            yield Remedy(f"sheet-{place}", say(f"{KEYS}remedy.sheet", sheet=name), changed)


def _ask_role(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    yield _take(values["missing"][0], table)


def _take(role: str, table: TableDescription) -> Remedy:
    """A column to be chosen for a role; one that holds the like and has no role yet is proposed."""
    free = [(place, one) for place, one in table.shown if one.role == NO_ROLE]
    alike = [place for place, one in free if (one.kind == "date") == (role == "date")]
    label = say(f"{KEYS}remedy.take", role=say(f"{KEYS}role.{role}"))
    return Remedy(f"take-{role}", label, role=role, place=next(iter([*alike, *(place for place, _ in free)]), 0))


def _choose_rival(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """One of the columns that could have a role."""
    names, role = [one.name for one in table.columns], values["role"]
    for name in values["columns"]:
        if name in names:
            place = names.index(name)
            changed = changes.put(changes.set_roles(mapping, table, {place: role}), "columns", role, name)
            yield Remedy(f"take-{role}-{place}", say(f"{KEYS}remedy.this_column", column=name), changed)


def _choose_component(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """One of the columns that could have the ratings of a component; the others have no role."""
    names = [one.name for one in table.columns]
    for name in values["columns"]:
        others = [other for other in values["columns"] if other != name]
        ignored = [*mapping.get("columns", {}).get("ignore", []), *others]
        changed = changes.put(mapping, "columns", "ignore", ignored)
        label = say(f"{KEYS}remedy.this_column", column=name)
        yield Remedy(f"component-{names.index(name)}", label, changed)


def _choose_dates(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    for name, formats in (("dmy", "dmy"), ("mdy", "mdy")):
        yield Remedy(
            f"dates-{name}", say(f"{KEYS}remedy.{name}"), changes.put(mapping, "dates", "inspection", formats)
        )


def _choose_mixed(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    for name, formats in (("dmy_first", ["dmy", "mdy"]), ("mdy_first", ["mdy", "dmy"])):
        yield Remedy(
            f"dates-{name}", say(f"{KEYS}remedy.{name}"), changes.put(mapping, "dates", "inspection", formats)
        )


def _choose_formats(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    for name in ("mmyy", "year", "fiscal_year"):
        label = say(f"{KEYS}remedy.format", format=say(f"{KEYS}format.{name}"))
        yield Remedy(f"dates-{name}", label, changes.put(mapping, "dates", "inspection", name))
    yield _take("date", table)


def _cut(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """An index in bands, read either way."""
    limits = list(table.scale.suggested) if table.scale is not None else []
    if limits:
        for name, bands in (("higher", limits), ("lower", limits[::-1])):
            label = say(f"{KEYS}remedy.bands_{name}", labels=[f"{one:g}" for one in bands])
            changed = changes.put(changes.put_scale(mapping, State()), "state", "bands", bands)
            yield Remedy(f"bands-{name}", label, changed)
    if not table.find(BY_VISIT):  # columns of years that hold the index are known as the ratings
        yield _take("state", table)


def _choose_ends(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """Which end of a scale with 0 is the best, or that 0 means that nobody looked."""
    low, high = int(values["low"]), int(values["high"])
    for name, best, worst in (("high", high, low), ("low", low, high)) if low < high else ():
        changed = changes.put_scale(mapping, State(best=best, worst=worst))
        yield Remedy(f"best-{name}", say(f"{KEYS}remedy.ends", best=f"{best}", worst=f"{worst}"), changed)
    changed = changes.add_missing(mapping, [str(low)])
    yield Remedy("missing-low", say(f"{KEYS}remedy.missing", labels=[str(low)]), changed)


def _order(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """Places on the scale to be given below, or another column."""
    yield Remedy("places", say(f"{KEYS}remedy.places"), link="#part-scale")
    yield from _recognise(values, table, mapping)


def _recognise(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    if mapping.get("state"):
        rest = {name: part for name, part in mapping.items() if name != "state"}
        yield Remedy("recognise", say(f"{KEYS}remedy.recognise"), rest)
    yield _take("state", table)


def _drop_column(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    name = str(values["column"])
    known = [one.name for one in table.columns]
    if name in known:
        changed = changes.ignore_columns(mapping, table, [name])
        if changed == mapping:  # it has no role that the table knows of
            changed = changes.forget_columns(mapping, [name])
        label = say(f"{KEYS}remedy.leave_out", column=name)
        yield Remedy(f"leave-out-{known.index(name)}", label, changed)


def _forget(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    names = [str(one) for one in values.get("missing", [])]
    changed = changes.forget_columns(mapping, names)
    if changed != mapping:
        yield Remedy("forget", say(f"{KEYS}remedy.forget", columns=names), changed)


def _drop_joins(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    """Without the joined table that the refusal is about, or one that cannot be read."""
    first = len(table.joins) - len(mapping.get("join", []))
    for place, view in enumerate(table.joins[first:]):
        if not view.columns or Path(view.file).name == values.get("file"):
            label = say(f"{KEYS}remedy.unjoin", file=view.name)
            yield Remedy(f"unjoin-{place}", label, changes.drop_join(mapping, place))


def _relax(values: Values, table: TableDescription, mapping: Plain) -> Iterator[Remedy]:
    changed = changes.put(mapping, "rules", str(values["rule"]), None)
    yield Remedy("relax", say(f"{KEYS}remedy.relax"), changed)


_REFUSED: dict[str, Callable[[Values, TableDescription, Plain], Iterator[Remedy]]] = {
    "no_role": _ask_role,
    "missing": _forget,
    "rivals": _choose_rival,
    "rival_ratings": _choose_component,
    "dates_either": _choose_dates,
    "dates_both": _choose_mixed,
    "dates_unknown": _choose_formats,
    "states_index": _cut,
    "states_many": _cut,
    "states_from_zero": _choose_ends,
    "states_off_scale": _order,
    "states_unknown": _order,
    "states_blank": _recognise,
    "not_numbers": _drop_column,
    "own_name": _drop_column,
    "repeated": _drop_column,
    "join_bridge": _drop_joins,
    "join_rows": _drop_joins,
    "join_none": _drop_joins,
    "rule": _relax,
}
KINDS = (
    *_REFUSED, "empty", "unreadable", "option", "other", "no_transitions", "few_places", "bands", "max_gap",
    "header_row",
)  # fmt: skip
