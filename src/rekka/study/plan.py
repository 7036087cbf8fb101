"""The plan of a study, checked and kept as TOML, and the methods and presets that it can name.

[data]       source: the tables, beside this file or as a path; none is the built-in inventory. nbi, mapping: how
             they are read. allow: checks that do not stop the work
[partition]  scheme, until, seed: which rows train and which are golden
[study]      methods, presets, clock, cases, covariates, models, rule, select_on, confirm, cost, seed, repeats
[guard]      default, margins and resamples of the guarded rule

A method is a scaling operator, z-score with something that holds the coefficients, or a model without covariates:

    max, minmax, zscore, boxcox, ...   maximum likelihood in the covariates as the operator gives them
    ridge                              z-score with a ridge penalty chosen by cross-validation, by bridge
    pooled                             z-score with a prior that all cases of the study share: partial pooling
    no_covariates                      one hazard for each state, whatever the covariates
    bound                              the same; a hazard that no row has left is set at its upper bound

A penalty or a prior is estimated from the rows a method is fitted on: a fold that is held out is held out of that
too.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rekka.core.errors import BadOption, InputError, bad_option, count_of
from rekka.core.validation import NEWER, explain_invalid, read_day
from rekka.data.direction import read_allowed
from rekka.data.mapping import load_mapping
from rekka.data.partition import PAPER_SEED
from rekka.evaluation.bounds import hold_at_bounds
from rekka.evaluation.pooling import Pooling, pool_cases
from rekka.evaluation.resampling import Sample
from rekka.evaluation.ridge import choose_ridge
from rekka.evaluation.selection import Guard
from rekka.fleet.rolling import read_models
from rekka.model.clock import CLOCKS, MIDDLE, START
from rekka.model.coordinates import Prior
from rekka.model.family import find_family
from rekka.model.fit import Options
from rekka.scaling import registry as fitting
from rekka.scaling.registry import METHODS

RIDGE, POOLED = "ridge", "pooled"
SHRINKING = (RIDGE, POOLED)
PLAIN, BOUND = "no_covariates", "bound"
BARE = (PLAIN, BOUND)  # without covariates
BASE = "zscore"  # the operator under both
OWN = ""  # the case itself, among the others


def check_method(method: str) -> None:
    """Refuse a name that is neither a scaling nor one of the other methods."""
    if is_scaling(method):
        fitting.check_method(method)


def is_scaling(method: str) -> bool:
    """Whether a method is a scaling operator and nothing else."""
    return method not in (*SHRINKING, *BARE)


def model_of(method: str) -> str:
    """Name the model a method leads to; those that are no scaling lead each to its own."""
    return fitting.model_of(method) if is_scaling(method) else method


def is_affine(method: str) -> bool:
    """Whether a method is an affine operator and nothing else."""
    return is_scaling(method) and fitting.is_affine(method)


def choose_options(
    method: str,
    sample: Sample,
    others: Mapping[str, Sample],
    seed: int,
    given: Mapping[str, Any],
    start: Pooling | None = None,
    ridge: float | None = None,
) -> Options:
    """Choose how to fit these rows of a case; ``others`` are the rows of the other cases, for pooling.

    ``given`` are the preset's options and the study's clock, ``start`` an earlier pooling of nearly the same rows
    to start from, ``ridge`` a penalty that was chosen already.
    """
    options = Options(scaling=method if is_scaling(method) else BASE, seed=seed, **given)
    if method == BOUND:
        return hold_at_bounds(sample.rows, options)
    if method == RIDGE:
        grid = None if ridge is None else (ridge,)
        plain = Options(scaling=BASE, threads=options.threads, clock=options.clock, family=options.family)
        chosen = choose_ridge(sample, plain, seed=seed, grid=grid).options
        return replace(options, ridge=chosen.ridge, prior=_plain(chosen.prior))
    if method == POOLED and not others:
        raise BadOption("pooled borrows from the other components of a study, and here there is none with rows.")
    if method == POOLED:
        family = find_family(options.family)
        pooling = pool_cases(
            {OWN: sample, **others}, start=start, threads=options.threads, clock=options.clock, family=family
        )
        return replace(options, prior=_plain(pooling.prior(OWN)))
    return options


def _plain(prior: Any) -> Any:
    """A prior as plain data, which a model file keeps."""
    return prior.to_dict() if isinstance(prior, Prior) else prior


def leave_out(others: Mapping[str, Sample], bridges: Any) -> dict[str, Sample]:
    """The other cases without the rows of some bridges: those that a fit is judged on."""
    return {name: one.take(~np.isin(one.bridge, bridges)) for name, one in others.items()}


VERSION = 3  # 2: a rule, the rows it looks at, and its margins. 3: a clock
BEFORE_CLOCK = 2  # the version that may have no clock; its runs are read as those of version 3
LATER = {"clock": START, "models": None}  # options that runs of earlier versions did not have, and what these did


class Preset(BaseModel):
    """Conditions of a fit: the estimator's options, who can be selected, and on which cost."""

    model_config = ConfigDict(frozen=True)

    words: str
    options: dict[str, Any]
    eligible: Literal["converged", "certified"]
    cost: Literal["seconds", "evaluations"]


PRESETS = {
    "exact": Preset(
        words="Newton on the exact likelihood",
        options={"solver": "newton"},
        eligible="certified",
        # The affine methods take the same steps, so that a difference in their seconds is noise.
        cost="evaluations",
    ),
    "paper": Preset(  # paper, Definition 3 and Experimental Conditions
        words="L-BFGS-B, numeric gradient, floored likelihood, as in the paper",
        options={"solver": "lbfgs", "gradient": "numeric", "likelihood": "paper", "max_iter": 500},
        eligible="converged",
        cost="seconds",
    ),
}


def list_options(preset: str, clock: str) -> dict[str, Any]:
    """The estimator's options of a preset in a study with this clock."""
    return PRESETS[preset].options | {"clock": clock}


def default_clock(presets: Any) -> str:
    """The middle of intervals; their start, as in the paper, where its conditions are among the presets."""
    return START if isinstance(presets, list | tuple) and "paper" in presets else MIDDLE


COSTS = ("auto", "seconds", "evaluations")
GUARDED, PARETO = "guarded", "pareto"
RULES = (GUARDED, PARETO)
SELECT_ON = ("auto", "validation", "folds", "golden")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataPlan(_Strict):
    """Source of the rows. ``kind`` given: from a program's memory; the run folder has its own copy."""

    kind: Literal["tables", "inventory", "given"] = "inventory"
    source: tuple[str, ...] = ()
    nbi: bool = False
    seed: int | None = Field(default=None, ge=0)  # of the built-in inventory
    mapping: dict[str, Any] = {}
    allow: tuple[str, ...] = ()  # codes of checks that do not stop the work

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """One table needs no list, and tables need no kind."""
        if not isinstance(given, Mapping) or not given.get("source"):
            return given
        source = given["source"]
        return {"kind": "tables", **given, "source": [source] if isinstance(source, str) else source}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.kind == "tables") != bool(self.source):
            tables = count_of(len(self.source), "table")
            raise ValueError(f"kind = {self.kind!r} does not go with {tables} as source")
        if len(self.source) > 1 and not self.nbi:
            raise ValueError("source is several tables, which only nbi = true reads; join others in the mapping")
        if self.nbi and set(self.mapping) - {"rules"}:
            raise ValueError("nbi = true needs no mapping; its rules are all it takes")
        try:
            read_allowed(self.allow)
            joins = load_mapping(self.mapping).join
        except InputError as error:
            raise ValueError(str(error).rstrip(".")) from None
        if not all(isinstance(join.file, str) for join in joins):
            raise ValueError("a [[join]] needs a file: its path")
        return self


class PartitionPlan(_Strict):
    """Split of the rows; ``given`` as the caller split them."""

    scheme: Literal["auto", "paper", "bridge", "date", "given"] = "auto"
    until: datetime.date | None = None
    seed: int = Field(default=PAPER_SEED, ge=0)

    @field_validator("until", mode="before")
    @classmethod
    def _read_until(cls, value: Any) -> Any:
        try:
            return None if value is None else read_day("it", value, "-12-31")
        except BadOption as error:
            raise ValueError(str(error).rstrip(".")) from None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.scheme == "date") != (self.until is not None):
            raise ValueError("scheme = 'date' and until, the last day of training, belong together")
        return self


class TrialPlan(_Strict):
    """The trials: every case by every method under every preset; None stands for all there are."""

    methods: tuple[str, ...] = METHODS
    presets: tuple[str, ...] = ("exact",)
    clock: str = MIDDLE  # for all presets alike; by default that of the presets
    cases: tuple[str, ...] | None = None
    covariates: tuple[str, ...] | None = None
    models: str | tuple[str, ...] | None = None  # elements of histories to choose among: auto, or names
    rule: str = GUARDED
    select_on: str = "auto"
    confirm: bool = True  # the choice on the golden rows, once
    cost: str = "auto"
    seed: int = Field(default=PAPER_SEED, ge=0)  # of the start of L-BFGS-B, the same in every fit
    repeats: int = Field(default=1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _choose_clock(cls, given: Any) -> Any:
        """Presets have a clock of their own, where none is named."""
        if not isinstance(given, Mapping) or given.get("clock") is not None:
            return given
        return {**given, "clock": default_clock(given.get("presets"))}

    @field_validator("methods")
    @classmethod
    def _spell(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        """One spelling for each: 'boxcox + zscore' is boxcox+zscore. Unknown names are refused elsewhere."""
        return tuple("+".join(link.strip() for link in method.split("+")) for method in methods)

    @field_validator("methods", "presets", "cases", "covariates")
    @classmethod
    def _once(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{twice} is named twice")
        return names

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("methods", "presets", "cases"):
            if getattr(self, name) == ():
                raise ValueError(f"{name} is empty; name at least one, or leave it out")
        return self

    @property
    def judges_on(self) -> str:
        """Rows that methods are judged on; under the paper's rule golden rows, unless others are named."""
        return "golden" if self.select_on == "auto" and self.rule == PARETO else self.select_on

    def identify(self) -> dict[str, Any]:
        """Plain data by which a run is known, without newer options at their old value: old runs still match."""
        return {n: value for n, value in self.model_dump(mode="json").items() if (n, value) not in LATER.items()}

    def costs(self) -> dict[str, str]:
        """Cost that the selection runs on, for each preset."""
        return {name: PRESETS[name].cost if self.cost == "auto" else self.cost for name in self.presets}


class StudyPlan(_Strict):
    """Plan of a study: the TOML file that runs it."""

    format: Literal["rekka-study"] = "rekka-study"
    version: Literal[3] = 3
    data: DataPlan = DataPlan()
    partition: PartitionPlan = PartitionPlan()
    study: TrialPlan = TrialPlan()
    guard: Guard = Guard()

    @model_validator(mode="before")
    @classmethod
    def _keep_clock(cls, given: Any) -> Any:
        """A plan of version 2 is one of version 3; without a clock it is from before there was a choice."""
        if not isinstance(given, Mapping) or given.get("version") != BEFORE_CLOCK:
            return given
        now, study = {**given, "version": VERSION}, given.get("study", {})
        if not isinstance(study, Mapping) or study.get("clock") is not None:
            return now
        return {**now, "study": {**study, "clock": START}}

    def to_toml(self) -> str:
        """The file's text; every value stands in it, chosen or not."""
        return tomli_w.dumps(_without_none(self.model_dump()))

    def differences(self, other: StudyPlan) -> list[str]:
        """Differences of another plan in words: 'study.methods was [...], is [...]'."""
        mine, theirs = (_flatten(plan.model_dump(mode="json")) for plan in (self, other))
        return [
            f"{name} was {_show(mine.get(name))}, is {_show(theirs.get(name))}"
            for name in dict.fromkeys([*mine, *theirs])
            if mine.get(name) != theirs.get(name)
        ]


def make_plan(where: str = "study", /, **sections: Mapping[str, Any]) -> StudyPlan:
    """A checked plan from its sections; ``where`` names it in messages."""
    try:
        plan = StudyPlan.model_validate(sections)
    except ValidationError as error:
        raise explain_invalid(error, where, StudyPlan, "A study") from None
    for method in plan.study.methods:
        check_method(method)
    check_method(plan.guard.default)
    if plan.guard.default not in (Guard().default, *plan.study.methods):
        methods = ", ".join(plan.study.methods)
        raise BadOption(f"The default {plan.guard.default} is not among the methods: {methods}. Add it to them.")
    if plan.study.models is not None:
        read_models(plan.study.models)
    for preset in plan.study.presets:
        if preset not in PRESETS:
            raise bad_option("preset", preset, [*PRESETS, "both"])
    options = (("cost", COSTS), ("rule", RULES), ("select_on", SELECT_ON), ("clock", CLOCKS))
    for option, choices in options:
        if getattr(plan.study, option) not in choices:
            raise bad_option(option, getattr(plan.study, option), choices)
    return plan


def fit_once(plan: StudyPlan, covariates: Sequence[str]) -> StudyPlan:
    """The plan with one method where there are no covariates: scalings of nothing are all the same model."""
    if covariates or not any(map(is_scaling, plan.study.methods)):
        return plan
    study = plan.study.model_copy(update={"methods": (PLAIN,)})
    return plan.model_copy(update={"study": study, "guard": plan.guard.model_copy(update={"default": PLAIN})})


def read_plan(path: Path) -> StudyPlan:
    """A plan from its TOML file."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"There is no study file {path.name}.", file=str(path)) from None
    except OSError as error:
        raise InputError(f"The study file {path.name} cannot be read: {error.strerror}.", file=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOption(f"{path.name} is not TOML: {error}.", file=str(path)) from None
    if given.get("format") != "rekka-study":
        raise BadOption(
            f"{path.name} is not a study: its format is {given.get('format')!r}, not 'rekka-study'. "
            "A mapping goes with --mapping.",
            file=str(path),
        )
    version = given.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError(f"{path.name} has version {version}. {NEWER}", file=str(path))
    return make_plan(path.name, **_update(given))


def _update(given: dict[str, Any]) -> dict[str, Any]:
    """A plan of version 1 said nothing of rules: it selected by the paper's, on golden rows."""
    if given.get("version") != 1:
        return given
    before = {"rule": PARETO, "select_on": "golden", "confirm": False}
    return given | {"version": BEFORE_CLOCK, "study": before | given.get("study", {})}


def _without_none(value: Any) -> Any:
    """TOML has no null: what is not given is left out."""
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value


def _flatten(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        parts = [_flatten(item, f"{name}.{key}" if name else str(key)) for key, item in value.items()]
        return {key: item for part in parts for key, item in part.items()}
    return {name: value}


def _show(value: Any) -> str:
    return "not given" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
