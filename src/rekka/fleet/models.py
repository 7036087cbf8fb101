"""Models by case: read from model files, and matched to the cases of an inventory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rekka.core.errors import (
    BadOption,
    InputError,
    ModelFileError,
    RunFolderError,
    count_of,
    name_some,
    no_such_case,
)
from rekka.core.folders import PLAN, digest, locate
from rekka.core.ratings import Ratings
from rekka.data.panel import ALL_CASES
from rekka.data.reading import TableReading
from rekka.forecast.forecast import NOT_CERTIFIED
from rekka.model.fit import Fit
from rekka.model.serial import load_saved
from rekka.model.survey import FitTest

MARK = b'"rekka-model"'  # in the first lines of every model file
HEAD = 200  # bytes in which it stands
FEW = 10  # components named in a note


@dataclass(frozen=True)
class ElementsFit:
    """A model fitted with the elements of histories that a study chose, in place of its model of pairs.

    ``instead_of`` is the digest of that model, ``model`` the text of a file of this one.
    """

    elements: str
    instead_of: str
    model: str


@dataclass(frozen=True, eq=False)
class CaseModel:
    """Fitted model with its case, and the file that it comes from."""

    case: str | None
    fit: Fit
    file: str
    sha256: str
    labels: tuple[str, ...] | None = None
    chosen: bool = True  # False for a default's fit in a study that chose nothing
    reading: TableReading | None = None  # how the table was read that it was fitted to
    text: str | None = None  # of its file, where it was just fitted
    refit: ElementsFit | None = None

    @property
    def certified(self) -> bool:
        """Whether the fit is a certified maximum."""
        return self.fit.certificate.certified

    @property
    def name(self) -> str:
        """Name of the case, or of the file where a model does not name its case."""
        return self.case or self.file

    @property
    def misfit(self) -> str | None:
        """Sentence that the model does not describe its data, where its test of fit rejects."""
        return describe_misfit(self.name, self.fit.fit_test, self.labels)

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.fit.n_states)

    @property
    def unchosen(self) -> str | None:
        """Sentence that the study did not choose this model, where it did not."""
        told = f"NOT CHOSEN: the study chose no model for {self.name}; this is the fit of its default method."
        return None if self.chosen else told

    def to_dict(self) -> dict[str, Any]:
        """Plain data: case, file, certificate and test of fit."""
        test = self.fit.fit_test
        return {
            "case": self.name,
            "file": self.file,
            "certified": self.certified,
            "chosen": self.chosen,
            "reasons": [*map(self.ratings.reword, self.fit.certificate.reasons)],
            "fit_test": None if test is None else test.to_dict(self.labels),
        }


def split_notes(notes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split notes into warnings, which come first, and the rest."""
    head: list[str] = []
    rest: list[str] = []
    for note in notes:
        (head if note.startswith(NOT_CERTIFIED) else rest).append(note)
    return head, rest


def describe_misfit(case: str, test: FitTest | None, labels: Sequence[str] | None = None) -> str | None:
    """Sentence 'Deck: the model does not describe its data (...): ...'; None where no test rejects."""
    return f"{case}: {test.describe(labels)}." if test is not None and test.rejected else None


@dataclass(frozen=True, eq=False)
class Models:
    """Models found under ``name``; ``missing`` says why cases of a run have none."""

    name: str
    models: tuple[CaseModel, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    run: Path | None = None  # the run folder, where they come from one
    notes: tuple[str, ...] = ()
    elements: Mapping[str, str] = field(default_factory=dict)  # of histories, that a study chose: model by case

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the states, best first, if all models that know them agree."""
        known = {model.labels for model in self.models if model.labels is not None}
        return known.pop() if len(known) == 1 else None

    @property
    def reading(self) -> TableReading | None:
        """Reading of the tables of all models, where known; models that differ in it are refused."""
        known = [(model.file, model.reading) for model in self.models if model.reading is not None]
        for file, reading in known[1:]:
            if not reading.is_like(known[0][1]):
                raise BadOption(
                    f"{known[0][0]} and {file} in {self.name} were fitted to tables that were read in different "
                    f"ways: {known[0][1].explain()}, and {reading.explain()}. Forecast with one at a time.",
                    files=[known[0][0], file],
                )
        return max((reading for _, reading in known), key=lambda one: len(one.labels or ()), default=None)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates that some model needs."""
        return tuple(dict.fromkeys(name for model in self.models for name in model.fit.columns))


def load_folder(folder: Path) -> Models:
    """Read the model files of a folder; other JSON files in it are left alone."""
    files = [file for file in sorted(folder.glob("*.json")) if is_model(file)]
    if not files:
        raise RunFolderError(
            f"{folder.name} is neither a run folder (there is no {PLAN} in it) nor a folder of model files (none "
            "of its .json files is one). Make one with rekka compare TABLE --out RUN or rekka fit TABLE --out "
            "MODELS.",
            folder=str(folder),
        )
    models = tuple(load_file(file) for file in files)
    by_case: dict[str | None, CaseModel] = {}
    for model in models:
        twin = by_case.setdefault(model.case, model)
        if twin is not model:
            what = "do not say what they are models of" if model.case is None else f"are models of {model.case}"
            raise BadOption(
                f"{twin.file} and {model.file} in {folder.name} both {what}. Give the one file that is meant, or "
                "take the other out of the folder.",
                path=str(folder),
            )
    return Models(folder.name, models)


def is_model(file: Path) -> bool:
    """Whether a file is a model, by its first lines."""
    with file.open("rb") as content:
        return MARK in content.read(HEAD)


def load_file(file: Path) -> CaseModel:
    """Read the model of one file of ``rekka fit``."""
    content = file.read_bytes()
    try:
        saved = load_saved(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ModelFileError(
            f"{file.name} is not a model file: it is not text. Write one with rekka fit.", file=str(file)
        ) from None
    except ModelFileError as error:
        raise ModelFileError(f"{file.name}: {error}", file=str(file)) from None
    reading = saved.reading and saved.reading.relocate(lambda name: str(locate(file.parent, name)))
    return CaseModel(saved.case, saved.fit, file.name, digest(content), saved.labels, reading=reading)


@dataclass(frozen=True, eq=False)
class Matched:
    """Model of each case of an inventory, and why other cases have none."""

    found: Mapping[str, CaseModel]
    missing: Mapping[str, str]


def match_models(models: Models, cases: Sequence[str], only: Sequence[str] | None = None) -> Matched:
    """Find the model of each case of an inventory; ``only`` some of them.

    A table without cases takes the one model there is, or the one that ``only`` names. A model that names no case
    takes the one case there is.
    """
    known = {model.case: model for model in models.models}
    if list(cases) == [ALL_CASES] and ALL_CASES not in known:
        return Matched({ALL_CASES: _find_single(models, only)}, {})
    wanted = choose_names(cases, only)
    loose = known.get(None) or (known.get(ALL_CASES) if ALL_CASES not in cases else None)
    if loose is not None and len(known) == 1:
        return Matched({_find_case(loose, wanted): loose}, {})
    found = {case: known[case] for case in wanted if case in known}
    named = [case for case in known if case is not None]
    none = f"no model in {models.name}"
    missing = {case: models.missing.get(case, none) for case in wanted if case not in known}
    if not found:
        raise InputError(
            f"{models.name} has models of {name_some(named)}, and the inventory has {name_some(wanted)}: no "
            "component is in both. Say which column is the component (--case COLUMN), or give models of these.",
            cases=wanted,
        )
    return Matched(found, missing)


def choose_names(cases: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Choose components by name, all by default; refuse one that is not there."""
    for name in only or ():
        if name not in cases:
            raise no_such_case(name, cases)
    return list(dict.fromkeys(only or cases))


def _find_single(models: Models, only: Sequence[str] | None) -> CaseModel:
    """Find the one model for a table without cases."""
    named = [model.case or model.file for model in models.models]
    for name in only or ():
        if name not in (*named, ALL_CASES):
            raise no_such_case(name, named)
    some = [model for model in models.models if not only or {model.case, model.file, ALL_CASES} & set(only)]
    if len(some) != 1:
        raise BadOption(
            f"The inventory has no column for the component, and {models.name} has "
            f"{count_of(len(some), 'model')}: {name_some(named)}. Say which column it is (--case COLUMN), "
            "or which model is meant (--only CASE).",
            cases=named,
        )
    return some[0]


def _find_case(model: CaseModel, wanted: Collection[str]) -> str:
    """Find the one case for a model that names none."""
    if len(wanted) != 1:
        raise BadOption(
            f"{model.file} does not say which component it is a model of, and the inventory has "
            f"{name_some(wanted)}. Say which it is (--only CASE), or fit the components again with "
            "rekka fit TABLE --out MODELS.",
            cases=list(wanted),
        )
    return next(iter(wanted))
