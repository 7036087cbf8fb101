"""Trials and cases as they are made: kept in memory, or in a run folder, each written whole before the next.

cases/             what is known of each case, its baselines among it
choices/           what was chosen for each case under each preset, and why
confirmation.json  every look at the golden rows
trials/            a file for each trial, sealed with its own SHA-256 and written last
models/ scalings/  the fitted models and operators as JSON; the trial's file holds their SHA-256
log.txt            what happened when

A trial is done when its file in trials/ is whole and of this run, and its model and operator are as it says.
Everything else is made again. Files that rekka did not write are left alone.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from rekka.core.errors import DamagedFile
from rekka.core.files import append_line, write_text
from rekka.core.folders import LOG
from rekka.core.seals import digest, read_sealed, write_sealed
from rekka.study.choosing import Choice
from rekka.study.confirming import Look
from rekka.study.trial import Case, Fitted, Key, Trial

CASES, TRIALS, MODELS, SCALINGS, CHOICES = "cases", "trials", "models", "scalings", "choices"
CONFIRMATION = "confirmation.json"
FOLDERS = (CASES, TRIALS, MODELS, SCALINGS, CHOICES)
LONGEST_SLUG = 40
_TRIAL, _CASE, _CHOICE, _LOOKS = "rekka-trial", "rekka-case", "rekka-choice", "rekka-confirmation"

Pair = tuple[str, str]  # preset and case


class Records(Protocol):
    """What a study needs of the place its trials are kept in."""

    trials: dict[Key, Trial]
    cases: dict[str, Case]
    choices: dict[Pair, Choice]
    looks: list[Look]

    def add_case(self, case: Case) -> None:
        """Keep what is known of a case."""

    def add_trial(self, fitted: Fitted) -> None:
        """Keep a trial with its model and operator."""

    def fitted(self, key: Key) -> Fitted:
        """A trial with its model and operator."""

    def add_choice(self, choice: Choice) -> None:
        """Keep what was chosen for a case under a preset."""

    def add_look(self, look: Look) -> None:
        """Keep a look at the golden rows."""

    def earlier_looks(self) -> dict[str, list[Look]]:
        """Looks at golden rows that were taken before, by the name of their run."""

    def note(self, line: str) -> None:
        """Keep a line of the log."""


class Memory:
    """Trials in memory only."""

    def __init__(self) -> None:
        self.trials: dict[Key, Trial] = {}
        self.cases: dict[str, Case] = {}
        self.choices: dict[Pair, Choice] = {}
        self.looks: list[Look] = []
        self._fitted: dict[Key, Fitted] = {}

    def add_case(self, case: Case) -> None:
        """Keep what is known of a case."""
        self.cases[case.name] = case

    def add_trial(self, fitted: Fitted) -> None:
        """Keep a trial with its model and operator."""
        self.trials[fitted.trial.key] = fitted.trial
        self._fitted[fitted.trial.key] = fitted

    def fitted(self, key: Key) -> Fitted:
        """A trial with its model and operator."""
        return self._fitted[key]

    def add_choice(self, choice: Choice) -> None:
        """Keep what was chosen for a case under a preset."""
        self.choices[choice.preset, choice.case] = choice

    def add_look(self, look: Look) -> None:
        """Keep a look at the golden rows, in the place of one that was refused altogether."""
        self.looks = [*(one for one in self.looks if one.counts), look]

    def earlier_looks(self) -> dict[str, list[Look]]:
        """Its own, if any: memory does not know of other runs."""
        return {"this study": self.looks}

    def note(self, line: str) -> None:
        """Nothing to write to."""


class Files:
    """Trials in a run folder. ``run`` is its mark, which every file bears: those of another run are not taken."""

    def __init__(self, path: Path, keys: Sequence[Key], run: str) -> None:
        self.path, self.run = path, run
        self.trials: dict[Key, Trial] = {}
        self.cases: dict[str, Case] = {}
        self.choices: dict[Pair, Choice] = {}
        self.looks: list[Look] = []
        self.damaged: list[str] = []
        self._names = {key: _name_trial(number, key) for number, key in enumerate(keys, start=1)}
        cases = dict.fromkeys(key.case for key in keys)
        self._case_names = {case: f"{number:03d}-{_slug(case)}.json" for number, case in enumerate(cases, start=1)}
        pairs = dict.fromkeys((key.preset, key.case) for key in keys)
        self._choice_names = {
            pair: f"{number:03d}-{_slug(pair[1])}-{pair[0]}.json" for number, pair in enumerate(pairs, start=1)
        }
        self._digests: dict[Key, dict[str, str | None]] = {}

    def load(self) -> None:
        """Take up what is whole; what is not will be made again."""
        for case, name in self._case_names.items():
            if (self.path / CASES / name).exists():
                self._load_case(case, self.path / CASES / name)
        for key, name in self._names.items():
            if (self.path / TRIALS / name).exists():
                self._load_trial(key, self.path / TRIALS / name)
        for pair, name in self._choice_names.items():
            if (self.path / CHOICES / name).exists():
                self._load_choice(pair, self.path / CHOICES / name)
        try:
            self.looks = read_looks(self.path)
        except DamagedFile:
            self.damaged.append(CONFIRMATION)
            self.looks = [Look(made="at a time not known", forced=False, results=(), refused={}, unreadable=True)]

    def _load_choice(self, pair: Pair, file: Path) -> None:
        try:
            found = Choice.model_validate(self._open(file, _CHOICE)["choice"])
            if (found.preset, found.case) != pair:
                raise DamagedFile(f"{file.name} is of another case.")
        except (DamagedFile, ValidationError, KeyError):
            self.damaged.append(f"{CHOICES}/{file.name}")
        else:
            self.choices[pair] = found

    def _load_case(self, case: str, file: Path) -> None:
        try:
            found = Case.model_validate(self._open(file, _CASE)["case"])
            if found.name != case:
                raise DamagedFile(f"{file.name} is of another case.")
        except (DamagedFile, ValidationError, KeyError):
            self.damaged.append(f"{CASES}/{file.name}")
        else:
            self.cases[case] = found

    def _load_trial(self, key: Key, file: Path) -> None:
        try:
            body = self._open(file, _TRIAL)
            trial = Trial.model_validate(body["trial"])
            if trial.key != key:
                raise DamagedFile(f"{file.name} is of another trial.")
            for folder in (MODELS, SCALINGS):
                if body["files"][folder] not in (None, self._digest(folder, key)):
                    raise DamagedFile(f"{file.name} has another file in {folder}, or none.")
        except (DamagedFile, ValidationError, KeyError, TypeError):
            self.damaged.append(f"{TRIALS}/{file.name}")
        else:
            self.trials[key], self._digests[key] = trial, body["files"]

    def _open(self, file: Path, kind: str) -> dict[str, Any]:
        body = read_sealed(file, kind)
        if not isinstance(body, dict) or body.get("run") != self.run:
            raise DamagedFile(f"{file.name} is of another run.")
        return body

    def _digest(self, folder: str, key: Key) -> str | None:
        file = self.path / folder / self._names[key]
        return digest(file.read_bytes()) if file.exists() else None

    def add_case(self, case: Case) -> None:
        """Write what is known of a case."""
        file = self.path / CASES / self._case_names[case.name]
        write_sealed(file, _CASE, {"run": self.run, "case": json.loads(case.model_dump_json())})
        self.cases[case.name] = case

    def add_trial(self, fitted: Fitted) -> None:
        """Write a trial: its model and operator first, its own file last."""
        trial, name = fitted.trial, self._names[fitted.trial.key]
        texts = {MODELS: fitted.model, SCALINGS: fitted.scaling}
        digests = {folder: None if text is None else digest(text.encode()) for folder, text in texts.items()}
        was = self._digests.pop(trial.key, {})
        for folder, text in texts.items():
            if text is not None and digests[folder] != was.get(folder):
                write_text(self.path / folder / name, text, flush=False)  # known by its digest
        body = {"run": self.run, "trial": json.loads(trial.model_dump_json()), "files": digests}
        write_sealed(self.path / TRIALS / name, _TRIAL, body)
        self.trials[trial.key], self._digests[trial.key] = trial, digests

    def fitted(self, key: Key) -> Fitted:
        """A trial with its model and operator, read from their files."""
        texts = (
            None
            if self._digests[key][folder] is None
            else (self.path / folder / self._names[key]).read_bytes().decode()
            for folder in (MODELS, SCALINGS)
        )
        return Fitted(self.trials[key], *texts)

    def add_choice(self, choice: Choice) -> None:
        """Write what was chosen for a case under a preset."""
        pair = (choice.preset, choice.case)
        file = self.path / CHOICES / self._choice_names[pair]
        write_sealed(file, _CHOICE, {"run": self.run, "choice": json.loads(choice.model_dump_json())})
        self.choices[pair] = choice

    def add_look(self, look: Look) -> None:
        """Write a look at the golden rows; those before it stay, unless they were refused altogether."""
        self.looks = [*(one for one in self.looks if one.counts), look]
        if CONFIRMATION in self.damaged:
            (self.path / CONFIRMATION).replace(self.path / f"{CONFIRMATION}.damaged")
            self.damaged.remove(CONFIRMATION)
        body = [json.loads(one.model_dump_json()) for one in self.looks]
        write_sealed(self.path / CONFIRMATION, _LOOKS, body)

    def earlier_looks(self) -> dict[str, list[Look]]:
        """Of this run, and of the runs in folders beside it."""
        found = {self.path.name: self.looks}
        for other in sorted(self.path.parent.glob(f"*/{CONFIRMATION}")):
            if other.parent.name != self.path.name:
                try:
                    found[other.parent.name] = read_looks(other.parent)
                except (DamagedFile, OSError) as error:
                    self.note(f"not taken into account: {other.parent.name}: {error}")
        return found

    def note(self, line: str) -> None:
        """Add a line to the log."""
        add_line(self.path / LOG, line)


def read_looks(run: Path) -> list[Look]:
    """The looks at the golden rows that a run has taken."""
    file = run / CONFIRMATION
    if not file.exists():
        return []
    try:
        return [Look.model_validate(one) for one in read_sealed(file, _LOOKS)]
    except (ValidationError, TypeError):
        raise DamagedFile(f"{CONFIRMATION} is of another version of rekka.", file=str(file)) from None


def add_line(log: Path, line: str) -> None:
    """Add a line to the log, with its moment and process."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    text = f"{moment} [{os.getpid()}] {' '.join(line.splitlines())}\n"
    append_line(log, text.encode(errors="backslashreplace"))  # a command may hold bytes that are no text


def _name_trial(number: int, key: Key) -> str:
    return f"{number:04d}-{_slug(key.case)}-{key.preset}-{_slug(key.method)}.json"


def _slug(name: str) -> str:
    """A name as part of a file's name, on any disk; the number before it tells equal ones apart."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "x"
