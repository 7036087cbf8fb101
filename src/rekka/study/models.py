"""The models of a run: the chosen ones, and why a component has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rekka.core.errors import RunFolderError, name_some
from rekka.core.folders import PLAN, digest
from rekka.data.reading import TableReading
from rekka.evaluation.bounds import Bound, describe_bound
from rekka.fleet.models import CaseModel, Models, load_file, load_folder
from rekka.model.serial import load_saved
from rekka.study.compare import load_study
from rekka.study.explanations import explain_case, in_english
from rekka.study.study import Study
from rekka.study.tables import EXACT
from rekka.study.trial import Key, Trial

FEW = 10  # components named in a note


def load_models(path: str | Path, *, include_unchosen: bool = False) -> Models:
    """The models under a path: the chosen ones of a run folder, a file of ``rekka fit``, or a folder of these.

    With ``include_unchosen``, a component of a run for which nothing was chosen has the certified fit of the
    default method, marked by ``chosen``.
    """
    place = Path(path)
    if place.is_dir():
        if (place / PLAN).exists():
            return choose_models(load_study(place), place, include_unchosen=include_unchosen)
        return load_folder(place)
    if not place.exists():
        raise RunFolderError(
            f"There is no run folder or model file {place.name}. Make one with rekka compare or rekka fit.",
            folder=str(place),
        )
    return Models(place.name, (load_file(place),))


def list_model_files(path: Path) -> list[Path]:
    """List the files that ``load_models`` may read: a model file, those of a folder, or all of a run."""
    if not path.is_dir():
        return [path]
    return [file for file in path.rglob("*" if (path / PLAN).exists() else "*.json") if file.is_file()]


def choose_models(study: Study, folder: Path | None = None, *, include_unchosen: bool = False) -> Models:
    """Choose the model of each case of a study; on request the default's where nothing was chosen.

    Under the exact preset if it was run; the paper's conditions rarely end at a maximum. The default's fit, marked
    by ``chosen``, is there only if it is certified.
    """
    preset, default = study.main_preset, study.plan.guard.default
    offers = [offer_model(study, case.name, preset) for case in study.described]
    unchosen = [offer.key.case for offer in offers if offer.text is not None and not offer.chosen]
    left_out = {} if include_unchosen else {case: _explain_unchosen(study, case, preset) for case in unchosen}
    models = [
        _open(offer, study.reading)
        for offer in offers
        if offer.text is not None and offer.key.case not in left_out
    ]
    missing = left_out | {offer.key.case: offer.reason for offer in offers if offer.text is None}
    name = "the study" if folder is None else folder.name
    if not models:
        reasons = "; ".join(f"{case}: {reason}" for case, reason in missing.items())
        hint = f" --include-unchosen takes the certified fit of {default}, marked." if left_out else ""
        raise RunFolderError(
            f"{name} has no model to forecast with ({reasons or 'no component is done yet'}).{hint}"
        )
    notes = ["the models of a study are fitted to its training rows; rekka fit TABLE fits them to all rows"]
    if unchosen:
        names = name_some(unchosen, FEW)
        notes.append(
            f"no model was chosen for {names}; left out, also of the totals (--include-unchosen takes the "
            f"certified fit of {default}, marked)"
            if left_out
            else f"no model was chosen for {names}; the certified fit of {default} forecasts, marked as not chosen"
        )
    notes += [
        f"{choice.case}: {describe_bound(Bound(**bound.model_dump()))}"
        for choice in study.choices
        for bound in choice.bounds
        if choice.preset == preset and bound.state is not None
    ]
    if preset != EXACT:
        notes.append(f"the study has models of the preset {preset} alone")
    elements = {one.case: one.model for one in study.elements if one.used}
    return Models(name, tuple(models), missing, folder, tuple(notes), elements)


def _explain_unchosen(study: Study, case: str, preset: str) -> str:
    """Explain why nothing was chosen for a case, without the advice."""
    choice = study.choice(case, preset)
    if choice is None:
        return "no model was chosen"
    said = study.ratings.reword_all(explain_case(choice, study.plan.guard, study.trials_of(choice)))
    why = in_english(said).removeprefix("none: ")
    return f"no model was chosen: {why.partition('. ')[0]}"


@dataclass(frozen=True)
class Offer:
    """The model of a case that a study has to offer, as JSON; ``reason`` says why there is none."""

    key: Key
    trial: Trial | None
    chosen: bool  # False for the default's fit, where nothing was chosen
    text: str | None = None
    reason: str = ""


def offer_model(study: Study, case: str, preset: str) -> Offer:
    """Offer what was chosen for a case, or the default's fit where nothing was and it is certified."""
    choice = study.choice(case, preset)
    chosen = None if choice is None else choice.chosen
    key = Key(case=case, preset=preset, method=chosen or study.plan.guard.default)
    trial = next((one for one in study.every_trial if one.key == key), None)
    offer = Offer(key, trial, chosen is not None)
    if trial is None:
        return replace(offer, reason=f"the trial of {key.method} has not been run yet")
    why = f": {study.ratings.reword(trial.reason)}" if trial.reason else ""
    if chosen is None and not trial.certified:
        return replace(offer, reason=f"nothing was chosen, and {key.method} is not certified{why}")
    if trial.certificate is not None and trial.certificate.maximum_exists is False:
        return replace(offer, reason=f"{key.method} has no finite maximum{why}")
    text = study.read_fitted(key).model
    return replace(offer, text=text, reason="" if text is not None else f"{key.method} has no model{why}")


def _open(offer: Offer, reading: TableReading | None) -> CaseModel:
    text, key = offer.text or "", offer.key
    saved = load_saved(text)
    name = f"{key.case}, {key.method}, {key.preset}"
    names = reading.labels if reading and reading.labels and len(reading.labels) >= saved.fit.n_states else None
    return CaseModel(
        key.case, saved.fit, name, digest(text.encode()), saved.labels or names, offer.chosen, reading
    )
