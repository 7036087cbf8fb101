"""Models for a workflow: of a path, a study, or a fit that was just made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rekka.core.errors import BadOption, did_you_mean, name_some
from rekka.fleet.models import CaseModel, Models, choose_names
from rekka.study.models import choose_models, list_model_files, load_models
from rekka.study.study import Study
from rekka.workflows.fit import ComponentFits


def open_models(models: Any, *, include_unchosen: bool = True) -> Models:
    """Read the models of a run folder, a model file or a folder of them; take those of a study or of fits."""
    if isinstance(models, Models):
        return models
    if isinstance(models, ComponentFits):
        return models.to_models()
    if isinstance(models, Study):
        return choose_models(models, models.folder, include_unchosen=include_unchosen)
    return load_models(models, include_unchosen=include_unchosen)


def list_files(models: Any) -> list[Path]:
    """List the files that ``open_models`` reads."""
    return list_model_files(Path(models)) if isinstance(models, str | Path) else []


def choose_cases(found: Models, only: Sequence[str] | None) -> tuple[CaseModel, ...]:
    """Choose the models of these components; all by default."""
    names = choose_names([model.name for model in found.models], only)
    return tuple(model for model in found.models if model.name in names)


def choose_own(option: str, given: Mapping[str, Any] | None, models: Sequence[CaseModel]) -> list[dict[str, Any]]:
    """Split what is given by covariate among the models; refuse a name that no model knows."""
    known = list(dict.fromkeys(name for model in models for name in model.fit.columns))
    for name in given or ():
        if name not in known:
            raise BadOption(
                f"{option} names {name}, which is not a covariate here; {name_some(known)} are."
                f"{did_you_mean(name, known)}",
                option=option,
                value=name,
            )
    some = dict(given or {})
    return [{name: some[name] for name in some if name in model.fit.columns} for model in models]


def list_notes(found: Models) -> list[str]:
    """Notes on the models, and the reasons why components have none."""
    return [*found.notes, *(f"{case}: {why}." for case, why in found.missing.items())]
