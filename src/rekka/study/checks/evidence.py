"""Evidence for the checks of a study, and how findings are made of it.

Every check has one finding in every study. A stop, which a study calls an issue, makes a result in use wrong or
unusable; a warning, its tip, is something to know. Failures of a method that was not selected are tips.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rekka.checks.engine import Finding, Severity
from rekka.core.language import Said, say
from rekka.data.panel import ALL_CASES
from rekka.evaluation.calibration import Calibration
from rekka.study.case_rows import FOLDS, CaseRows
from rekka.study.choice import Choice, MethodVerdict
from rekka.study.confirmation import Confirmed
from rekka.study.study import Study
from rekka.study.trial import Case, Key, Status, Trial

NOTHING_DONE = "check.absent.nothing_done"
NOTHING_SELECTED = "check.absent.nothing_selected"
NO_COVARIATES = "check.absent.no_covariates"

Name = str | Said  # of a component: its own, or ours where it has none


Calibrations = Mapping[tuple[str, str], Calibration]  # by preset and case


@dataclass(frozen=True, eq=False)
class Pick:
    """A method that was selected for a case; ``confirmed`` where it was chosen and golden rows were scored."""

    choice: Choice
    verdict: MethodVerdict
    trial: Trial
    case: Case
    label: Name  # the case, and its preset where there are several
    confirmed: Confirmed | None

    @property
    def key(self) -> Key:
        """Key of its trial."""
        return self.trial.key

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.verdict.method

    @property
    def chosen(self) -> bool:
        """Whether the method is the chosen one."""
        return self.method == self.choice.chosen


@dataclass(frozen=True, eq=False)
class StudyEvidence:
    """A study, and what its checks ask of it."""

    study: Study
    calibrations: Calibrations | None = None

    @cached_property
    def cases(self) -> dict[str, Case]:
        """Described cases, by name."""
        return {case.name: case for case in self.study.described}

    @cached_property
    def trials(self) -> dict[Key, Trial]:
        """Trials, by key."""
        return {trial.key: trial for trial in self.study.every_trial}

    @cached_property
    def presets(self) -> tuple[str, ...]:
        """Presets of which a trial is done."""
        return tuple(dict.fromkeys(trial.key.preset for trial in self.study.results))

    def label(self, case: str, preset: str) -> Name:
        """A case by name; with its preset where there are several."""
        name = name_case(case)
        several = len(self.study.plan.study.presets) > 1
        return say("component.preset", case=name, preset=say(f"preset.{preset}")) if several else name

    def prefix(self, preset: str) -> str | Said:
        """'paper: ' where there are several presets."""
        several = len(self.study.plan.study.presets) > 1
        return say("number.of_preset", preset=say(f"preset.{preset}")) if several else ""

    @cached_property
    def selected(self) -> tuple[Pick, ...]:
        """Every method that the rule keeps, the chosen ones among them."""
        return tuple(self._list_picks())

    def _list_picks(self) -> Iterator[Pick]:
        for choice in self.study.choices:
            for verdict in choice.verdicts:
                trial = self.trials.get(Key(case=choice.case, preset=choice.preset, method=verdict.method))
                if verdict.kept and trial is not None:
                    label = self.label(choice.case, choice.preset)
                    confirmed = self.confirmed.get((choice.preset, choice.case))
                    mine = confirmed if verdict.method == choice.chosen else None
                    yield Pick(choice, verdict, trial, self.cases[choice.case], label, mine)

    @cached_property
    def chosen(self) -> tuple[Pick, ...]:
        """The one to use of each case, where there is one."""
        return tuple(pick for pick in self.selected if pick.chosen)

    @cached_property
    def confirmed(self) -> dict[tuple[str, str], Confirmed]:
        """The last look at the golden rows, by preset and case."""
        return {(one.preset, one.case): one for look in self.study.looks for one in look.results}

    def is_selected(self, trial: Trial) -> bool:
        """Whether the rule keeps a trial."""
        return trial.key in self._selected_keys

    @cached_property
    def _selected_keys(self) -> set[Key]:
        return {pick.trial.key for pick in self.selected}

    def name_trials(self, trials: Iterable[Trial]) -> list[Said]:
        """Methods and cases, with the preset too where there are several."""
        return name_trials((self.label(one.key.case, one.key.preset), one.key.method) for one in trials)

    def with_status(self, *statuses: Status) -> list[Trial]:
        """The trials of which this became."""
        return [trial for trial in self.study.results if trial.status in statuses]

    @cached_property
    def without_choice(self) -> dict[str, list[Trial]]:
        """The certified trials that could be scored, of each case for which no preset has a choice."""
        chosen = {pick.case.name for pick in self.chosen}
        groups: dict[str, list[Trial]] = {}
        for trial in self.study.results:
            scored = trial.scores is not None and math.isfinite(trial.scores.accuracy)
            if trial.certified and scored and trial.key.case not in chosen:
                groups.setdefault(trial.key.case, []).append(trial)
        return groups

    @cached_property
    def rows(self) -> dict[str, CaseRows]:
        """The rows of each case."""
        table = self.study.read_rows()
        return {name: table.case(name) for name in self.cases}


def name_case(case: str) -> Name:
    """A case as a sentence names it; a table without cases is one, which has no name of its own."""
    return say("component.all") if case == ALL_CASES else case


def name_rows(part: str) -> Said:
    """'golden rows'."""
    return say(f"rows_of.{part}", folds=FOLDS)


def name_trials(trials: Iterable[tuple[Name, str]]) -> list[Said]:
    """'max, minmax in Pier, Abutment', 'zscore in Pier': methods that share their cases together."""
    by_method: dict[str, list[Name]] = {}
    for case, method in trials:
        by_method.setdefault(method, []).append(case)
    by_cases: dict[str, tuple[list[Name], list[str]]] = {}
    for method, cases in by_method.items():
        by_cases.setdefault(str(cases), (cases, []))[1].append(method)
    return [say("check.trials", methods=methods, cases=cases) for cases, methods in by_cases.values()]


def name_within(trials: Iterable[Trial]) -> list[Said]:
    """Methods and cases, all of one preset."""
    return name_trials((name_case(one.key.case), one.key.method) for one in trials)


def name_methods(trials: Iterable[Trial]) -> list[str]:
    """Their methods, each once."""
    return list(dict.fromkeys(trial.key.method for trial in trials))


def group_methods(facts: Iterable[tuple[Name, str, Said]]) -> list[Said]:
    """(case, method, fact), those that differ by the method alone as one: 'max, zscore in Pier: fact'."""
    groups: dict[str, tuple[Name, Said, list[str]]] = {}
    for case, method, fact in facts:
        groups.setdefault(str((case, fact)), (case, fact, []))[2].append(method)
    return [say("check.group", methods=methods, case=case, fact=fact) for case, fact, methods in groups.values()]


def absent(why: str, **figures: Any) -> Finding:
    """A finding that there is nothing to look at."""
    return Finding(severity=Severity.NOT_APPLICABLE, say=(why,), do="", places=figures)


def passed(*names: str, values: dict[str, Any] | None = None, **figures: Any) -> Finding:
    """A finding that all is well."""
    return Finding(severity=Severity.PASSED, say=names or ("passed",), do="", values=values or {}, places=figures)


def found(
    issue: bool,
    *names: str,
    of: Iterable[Key] = (),
    cases: Iterable[str] = (),
    values: dict[str, Any],
    **figures: Any,
) -> Finding:
    """An issue, or else a tip, with the cases and methods of the trials concerned, each once."""
    keys = list(of)
    return Finding(
        severity=Severity.STOP if issue else Severity.WARNING,
        say=names or ("found",),
        cases=tuple(dict.fromkeys([*cases, *(key.case for key in keys)])),
        methods=tuple(dict.fromkeys(key.method for key in keys)),
        values=values,
        places=figures,
    )
