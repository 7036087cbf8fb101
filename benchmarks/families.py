"""Does what the paper found of scalings hold for other hazards? ``python -m benchmarks.families``.

The paper's 40 trials (ten cases by four scalings) of the built-in inventory, again for each ``Setting``: ageing
within the interval, errors of inspection, frailty. Each trial is fitted twice: by rekka as it comes, and by the
paper's optimizer (SciPy's L-BFGS-B, two-point differences, at most 500 iterations, start N(0, 0.1^2)) on the same
exact likelihood in the coordinates of the scaling. The distance between the two is in units of log-likelihood.

A trial is appended to ``results/families.jsonl`` as soon as it is done, and a run does what is not there yet; a
setting that has changed begins anew. ``--page`` writes the tables of docs/families.md from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from scipy import optimize

import rekka
from benchmarks.problems import SEED
from benchmarks.reproduction_sides import METHODS
from benchmarks.stored_lines import append_line, read_lines
from rekka.core.errors import InputError
from rekka.core.files import write_text
from rekka.core.numerics import quiet
from rekka.data.partition import Partition
from rekka.evaluation.scores import Scores, score_rows
from rekka.model.certificate import Verdict
from rekka.model.clock import AGE_NAMES
from rekka.model.coordinates import scaled_coordinates
from rekka.model.elements import LEAST_PHI, Elements, count_nodes
from rekka.model.fit import Fit
from rekka.model.histories import Chain, HistoryLikelihood, chain_rows
from rekka.model.history_inputs import read_history_rows
from rekka.model.history_starts import STARTS
from rekka.model.inputs import Columns, as_frame
from rekka.model.likelihood import Rows
from rekka.model.solvers import random_start
from rekka.scaling.operators import ColumnScaling
from rekka.scaling.registry import REGISTRY, TrainingRows, register

Array = NDArray[np.float64]
Record = dict[str, Any]
Model = rekka.ExponentialHazardMarkovModel

STORED = Path(__file__).resolve().parent / "results" / "families.jsonl"
HISTORY = ["bridge_id", "member", "history"]
MOST_ITERATIONS = 500  # paper, Definition 3
LAST_TRAINING_VISIT = 4
MOST_FRAIL = (
    330  # training rows up to which the paper's optimizer fits a frailty: a value costs 50 of the pair model
)
LOG_AGE = "logage"
DIGITS = 10  # of stored figures


@dataclass(frozen=True, eq=False)
class LogAgeScaling(ColumnScaling):
    """z = log(x) of ages, and x of other covariates: an exponential hazard of it is a power of age, Weibull's."""

    kind = LOG_AGE

    @property
    def ages(self) -> list[int]:
        """Columns of ages."""
        return [column for column, name in enumerate(self.names) if name in AGE_NAMES]

    def forward(self, x: Array) -> Array:
        """Evaluate the formula; an age of 0 or below has no logarithm, and is refused."""
        z = np.array(x)
        z[:, self.ages] = np.log(z[:, self.ages])
        return z

    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x."""
        x = np.array(z)
        x[:, self.ages] = np.exp(x[:, self.ages])
        return x


def fit_log_age(rows: TrainingRows) -> LogAgeScaling:
    """Fit: nothing but the range is kept of the rows."""
    return LogAgeScaling(LOG_AGE, rows.names, rows.low, rows.high)


def register_log_age() -> None:
    """Register the operator, so that chains can begin with it."""
    if LOG_AGE not in REGISTRY:
        register(LOG_AGE, fit_log_age, LogAgeScaling)


@dataclass(frozen=True)
class Setting:
    """A family of hazards, what the inventory is drawn with, and which visits train.

    ``options`` are those of the model, ``drawn`` those of the inventory; ``first`` comes before each scaling.
    ``visits`` says that histories of all visits up to the fourth train, not the third and fourth alone, and
    ``single`` that one row of each bridge does. The paper's optimizer, with its thousands of evaluations, is run
    on cases of at most ``most`` rows.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    drawn: Mapping[str, float] = field(default_factory=dict)
    visits: bool = False
    first: str = ""
    most: int = 10**6
    single: bool = False

    @property
    def digest(self) -> int:
        """A number that changes where the setting does."""
        parts = (self.name, dict(self.options), dict(self.drawn), self.visits, self.first, SEED, MOST_ITERATIONS)
        return zlib.crc32(repr((parts, STARTS[0])).encode())

    def scaling(self, method: str) -> str:
        """The scaling of a method under this setting."""
        return f"{self.first}+{method}" if self.first else method


ERRORS, FRAILTY = {"errors": "adjacent-common"}, {"frailty": "gamma"}
WITH_ERRORS, WITH_FRAILTY = {"error": 0.1}, {"frailty": 0.5}
SETTINGS = (
    Setting("exponential"),
    Setting("Gompertz", {"clock": "running"}),
    Setting("Weibull", {"clock": "running"}, first=LOG_AGE),
    Setting("errors", ERRORS),
    Setting("frailty", FRAILTY, most=MOST_FRAIL),
    Setting("errors, drawn with errors", ERRORS, WITH_ERRORS),
    Setting("errors, drawn with errors, visits 1 to 4", ERRORS, WITH_ERRORS, visits=True),
    Setting("frailty, drawn with frailty", FRAILTY, WITH_FRAILTY, most=MOST_FRAIL),
    Setting("frailty, drawn with frailty, a row a bridge", FRAILTY, WITH_FRAILTY, most=0, single=True),
    Setting("frailty, drawn with frailty, visits 1 to 4", FRAILTY, WITH_FRAILTY, visits=True, most=MOST_FRAIL),
)


@dataclass(frozen=True)
class Data:
    """Transitions of the inventory, as the paper splits them and as histories up to the fourth visit."""

    parts: Partition
    visits: pl.DataFrame
    covariates: tuple[str, ...]

    def train(self, setting: Setting, case: str) -> pl.DataFrame:
        """Training rows of a case."""
        rows = (self.visits if setting.visits else self.parts.train).filter(case=case)
        return rows.unique("bridge_id", keep="first", maintain_order=True) if setting.single else rows


@lru_cache
def _draw(drawn: tuple[tuple[str, float], ...]) -> Data:
    inventory = rekka.simulate_inventory(seed=SEED, **dict(drawn))
    join = [{"file": inventory.inventory}, {"file": inventory.traffic}]
    # improvements by two ratings or more, rare, are excluded; without errors there are none at all
    found = rekka.read_transitions(inventory.inspections, join=join, rules={"upward": "keep"})
    parts = rekka.partition_paper(found.frame)
    return Data(parts, found.frame.filter(pl.col("visit_2") <= LAST_TRAINING_VISIT), found.covariates)


def draw(setting: Setting) -> Data:
    """The inventory of a setting, paired and split."""
    return _draw(tuple(sorted(setting.drawn.items())))


def list_cases(data: Data) -> list[str]:
    """Cases, the smallest first."""
    return data.parts.train.group_by("case").len().sort("len", "case")["case"].to_list()


@dataclass(frozen=True, eq=False)
class Objective:
    """Log-likelihood of training rows in the coordinates of a scaling: coefficients of [1, z], then extra ones."""

    fit: Fit
    rows: Chain
    value: Callable[[Array], float]

    @classmethod
    def of(cls, model: Model, train: pl.DataFrame, histories: Any) -> Objective:
        """The objective of rows that a model was fitted to, with its scaling, K and clock."""
        fit = model._fit
        columns = Columns(model.start, model.dt, fit.covariates)
        rows = read_history_rows(
            as_frame(train), train["state_2"], columns, histories=histories, groups=train["bridge_id"],
            improvements=fit.records is not None,
        )._replace(date=None)  # fmt: skip
        return cls(fit, rows, _value_pairs(fit, rows) if fit.records is None else _value_histories(fit, rows))

    @property
    def elements(self) -> Elements:
        """Elements of the model; those of pairs have no parameters."""
        return Elements(self.fit.n_states) if self.fit.records is None else self.fit.records.elements

    @property
    def maximum(self) -> Array:
        """Parameters of rekka's own fit."""
        extra = np.zeros(0) if self.fit.records is None else self.fit.records.extra
        return np.concatenate([self.fit.beta.ravel(), extra])

    @property
    def start(self) -> Array:
        """The paper's start, N(0, 0.1^2), and rekka's first one of the elements."""
        errors, _, phi, _ = STARTS[0]
        parts, extra = self.elements.parts, np.zeros(self.elements.size)
        extra[parts["errors"]], extra[parts["frailty"]] = np.log(errors), phi
        if self.elements.free_first:
            _, begins = np.unique(self.rows.history, return_index=True)
            seen = np.log(np.bincount(self.rows.start[begins], minlength=self.fit.n_states) + 0.5)
            place = parts["first"].start
            extra[place : place + seen.size - 1] = seen[1:] - seen[0]
        return np.concatenate([random_start(self.fit.beta.size, SEED), extra])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """None but that of a variance, which the likelihood continues linearly below LEAST_PHI."""
        found = [(-np.inf, np.inf)] * (self.fit.beta.size + self.elements.size)
        if self.elements.frailty:
            found[self.fit.beta.size + self.elements.parts["frailty"].start] = (LEAST_PHI, np.inf)
        return found

    def predictor(self, psi: Array) -> Fit:
        """The model with other parameters."""
        beta = psi[: self.fit.beta.size].reshape(self.fit.beta.shape)
        records, extra = self.fit.records, psi[self.fit.beta.size :]
        if records is not None:
            nodes = count_nodes(float(extra[self.elements.parts["frailty"]][0])) if self.elements.frailty else 1
            records = replace(records, extra=extra, nodes=nodes)
        return replace(self.fit, beta=beta, records=records)


def _value_pairs(fit: Fit, rows: Chain) -> Callable[[Array], float]:
    seen = Rows(rows.start, rows.end, rows.dt, np.ones(rows.dt.size), fit.n_states)
    order = seen.grouping
    z = fit.scale(rows.x, rows.dt)[order]
    scaled = scaled_coordinates(seen.take(order), z, fit.layout, 0.0, 1, family=fit.family)
    return lambda psi: -scaled.objective(psi, 0).value


def _value_histories(fit: Fit, rows: Chain) -> Callable[[Array], float]:
    assert fit.records is not None
    elements = fit.records.elements
    seen = chain_rows(rows, elements, fit.clock)
    W = np.column_stack([np.ones(seen.h.size), fit.scaling.transform(seen.x)])
    likelihood = HistoryLikelihood.build(seen, elements, W, fit.family, 1, 1, age_units=fit.records.age_units)
    if not elements.frailty:
        return lambda psi: likelihood.evaluate(psi, False).value
    phi, least = fit.beta.size + elements.parts["frailty"].start, fit.records.nodes

    def value(psi: Array) -> float:
        if not np.isfinite(psi[phi]):
            return -np.inf
        nodes = max(count_nodes(float(psi[phi])), least)  # as many as suffice at the maximum
        return likelihood.with_nodes(nodes).evaluate(psi, False).value

    return value


def fit_ours(setting: Setting, method: str, covariates: Sequence[str], train: pl.DataFrame) -> Model:
    """Fit by rekka as it comes; the seconds of its optimizer are the processor's."""
    model = Model(setting.scaling(method), covariates=list(covariates), threads=1, **setting.options)
    with patch("rekka.model.solvers.perf_counter", process_time):
        return model.fit(
            train, train["state_2"], groups=train["bridge_id"], histories=name_histories(setting, train)
        )


def name_histories(setting: Setting, train: pl.DataFrame) -> pl.DataFrame | None:
    """Histories of rows; None where each is one of its own."""
    return train.select(HISTORY) if setting.visits else None


def climb_as_paper(objective: Objective) -> tuple[Array, Record]:
    """Run the paper's optimizer: where it stopped, and its report."""

    def descend(psi: Array) -> float:
        return -objective.value(psi)

    descend(objective.start)  # compiled, or loaded, before the clock starts
    clock = process_time()
    found = optimize.minimize(
        descend,
        objective.start,
        jac="2-point",
        method="L-BFGS-B",
        bounds=objective.bounds,
        options={"maxiter": MOST_ITERATIONS, "maxfun": 10**9},
    )
    seconds = process_time() - clock
    psi = np.asarray(found.x)
    converged = bool(found.success and np.isfinite(psi).all() and np.isfinite(found.fun))
    return psi, {
        "success": bool(found.success),
        "converged": converged,
        "message": str(found.message),
        "iterations": int(found.nit),
        "evaluations": int(found.nfev),
        "seconds": seconds,
        "log_likelihood": -float(found.fun),
    }


def score(fit: Fit, golden: pl.DataFrame) -> Scores:
    """Scores of golden rows by their rating at the fourth visit alone; states beyond K are left out."""
    known = golden.filter((pl.col("state_1") <= fit.n_states) & (pl.col("state_2") <= fit.n_states))
    start, end = (known[name].to_numpy() - 1 for name in ("state_1", "state_2"))
    x = known.select(fit.covariates).to_numpy().astype(np.float64)
    p = fit.probabilities(start, known["interval_years"].to_numpy(), x)
    with np.errstate(divide="ignore"):
        log_p = np.log(p[np.arange(end.size), end])
    return score_rows(p, log_p, start, end).mean(len(golden) - len(known))


def measure_trial(setting: Setting, case: str, method: str) -> Record:
    """Fit one trial both ways; a plain record of what was found."""
    data = draw(setting)
    train, golden = data.train(setting, case), data.parts.golden.filter(case=case)
    record: Record = {
        "setting": setting.name,
        "digest": setting.digest,
        "version": rekka.__version__,
        "case": case,
        "method": method,
        "rows": len(train),
        "improved": int((train["state_2"] < train["state_1"]).sum()),
    }
    with quiet():
        try:
            model = fit_ours(setting, method, data.covariates, train)
        except InputError as error:  # of the data or the scaling: neither way can begin
            return record | {"failure": str(error), "ours": None, "paper": None}
        objective = Objective.of(model, train, name_histories(setting, train))
        ours = _describe_ours(model, objective, golden)
        paper = _describe_paper(objective, ours["log_likelihood"], golden) if len(train) <= setting.most else None
    known = record | {"parameters": objective.start.size, "failure": None, "ours": ours, "paper": paper}
    return dict(_plain(known))


def _describe_paper(objective: Objective, highest: float, golden: pl.DataFrame) -> Record:
    psi, found = climb_as_paper(objective)
    found["shortfall"] = highest - found["log_likelihood"]
    found["extra"] = psi[objective.fit.beta.size :].tolist()
    _add_scores(found, objective.predictor(psi) if found["converged"] else None, golden)
    return found


def _describe_ours(model: Model, objective: Objective, golden: pl.DataFrame) -> Record:
    certificate, outcome = model.certificate_, model.outcome_
    found: Record = {
        "success": outcome.success,
        "certified": certificate.certified,
        "verdict": certificate.verdict.name,
        "finite": certificate.verdict is not Verdict.NO_FINITE_MAXIMUM,
        "reasons": list(certificate.reasons),
        "boundaries": [] if model.records_ is None else list(model.records_.boundaries),
        "estimates": {}
        if model.records_ is None
        else {
            name: [value, error]
            for name, value, error, _, _ in model.records_.estimates(0.95)
            if not name.startswith("first visit")
        },
        "condition": certificate.condition_number,
        "iterations": outcome.iterations,
        "evaluations": outcome.evaluations,
        "seconds": outcome.seconds,
        "log_likelihood": model.log_likelihood_,
    }
    _add_scores(found, objective.fit if certificate.certified else None, golden)
    return found


def _add_scores(found: Record, fit: Fit | None, golden: pl.DataFrame) -> None:
    """Add scores of golden rows; a scaling that cannot take one of them fails the trial, as in a study."""
    found |= {"log_loss": None, "accuracy": None, "at_floor": None, "refused": None}
    if fit is None:
        return
    try:
        scores = score(fit, golden)
    except InputError as error:
        found |= {"refused": str(error)}
        if "converged" in found:
            found["converged"] = False
        return
    found |= {"log_loss": scores.log_loss, "accuracy": scores.accuracy, "at_floor": scores.at_floor}


def _plain(value: Any) -> Any:
    """Plain data: numbers to DIGITS, None for what is no finite number."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


def read_stored(file: Path = STORED) -> dict[str, dict[tuple[str, str], Record]]:
    """Records of each setting by case and method, without those of changed settings and half-written lines."""
    digests = {setting.name: setting.digest for setting in SETTINGS}
    found: dict[str, dict[tuple[str, str], Record]] = {name: {} for name in digests}
    for one in read_lines(file):
        if digests.get(one["setting"]) == one["digest"]:
            found[one["setting"]][one["case"], one["method"]] = one
    return found


def run(settings: Sequence[Setting], console: Console, file: Path = STORED, cases: Sequence[str] = ()) -> None:
    """Do the trials that are not stored yet, of each setting the smallest cases first."""
    stored = read_stored(file)
    for setting in settings:
        for case in cases or list_cases(draw(setting)):
            for method in METHODS:
                if (case, method) in stored[setting.name]:
                    continue
                append_line(file, measure_trial(setting, case, method))
            console.print(f"{setting.name}: {case}")


def refit(record: Record, setting: Setting) -> Record:
    """The trial with rekka's side fitted again, and the paper's optimizer where it was."""
    if record["failure"]:
        return record
    data = draw(setting)
    train, golden = data.train(setting, record["case"]), data.parts.golden.filter(case=record["case"])
    with quiet():
        model = fit_ours(setting, record["method"], data.covariates, train)
        ours = _describe_ours(model, Objective.of(model, train, name_histories(setting, train)), golden)
    paper = record["paper"]
    if paper is not None and paper["log_likelihood"] is not None:
        paper = paper | {"shortfall": ours["log_likelihood"] - paper["log_likelihood"]}
    return dict(_plain(record | {"version": rekka.__version__, "ours": ours, "paper": paper}))


def run_again(settings: Sequence[Setting], file: Path = STORED) -> None:
    """Fit rekka's side of the stored trials of some settings again."""
    wanted = {setting.name: setting for setting in settings}
    stored = read_stored(file)
    records = [
        refit(one, wanted[name]) if name in wanted else one for name in stored for one in stored[name].values()
    ]
    lines = (json.dumps(one, separators=(",", ":"), allow_nan=False) + "\n" for one in records)
    write_text(file, "".join(lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is missing; write the page if asked to."""
    from benchmarks.families_page import print_tables, write_page

    register_log_age()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.families",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=None, metavar="NAME", help="one setting, by its name")
    parser.add_argument("--stored", action="store_true", help="fit nothing: what is stored already")
    parser.add_argument("--again", action="store_true", help="fit rekka's side of stored trials again")
    parser.add_argument("--page", action="store_true", help="write the tables of docs/families.md")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    wanted = [setting for setting in SETTINGS if options.only in (None, setting.name)]
    if not wanted:
        sys.exit(f"--only is {options.only!r}; the settings are: {'; '.join(one.name for one in SETTINGS)}.")
    if options.again:
        run_again(wanted)
    if not options.stored:
        run(wanted, console)
    found = read_stored()
    print_tables(found, console)
    if options.page:
        write_page(found)


if __name__ == "__main__":
    main()
