"""What a report says of the future, as plain data: parts of a document.

States count from 1, the best. ``low`` and ``high`` bound what is not known of the parameters; ``predicted_low``
and ``predicted_high`` what will be: the same, and the chance that a course has although the parameters are known.
Years may be infinite: a state that may never be reached. A missing number is None, as are all ends where a fit is
no certified maximum.

What a report says, as plain data: versioned, checked when it is made and when it is read back.

    Study -> summarize -> Document -> page, Markdown, tables, figures

Every number of the page stands here, not rounded. Sentences about a study are in English; headings, captions and
names of columns belong to the page and its language. States count from 1, the best. A missing number is None.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from rekka.core.errors import DamagedFile
from rekka.model.survey import FitTest
from rekka.study.trial import Value

Number = float | None
Count = int | None
Text = str | None


class PassagePart(Value):
    """Years until the threshold or worse, for a typical member that is in ``start`` now."""

    start: int
    mean: Number
    mean_low: Number
    mean_high: Number
    median: Number
    median_low: Number
    median_high: Number
    predicted_low: Number
    predicted_high: Number


class MatrixPart(Value):
    """Probabilities after ``years``: a row for each state now, a column for each state then."""

    years: float
    probability: tuple[tuple[float, ...], ...]
    low: tuple[tuple[Number, ...], ...]
    high: tuple[tuple[Number, ...], ...]


class EffectPart(Value):
    """What a change of one covariate does to the median years from state 1 until the threshold or worse.

    ``amount`` is added, or multiplied by where ``times``; ``before`` and ``after`` are values of the covariate.
    """

    covariate: str
    amount: float
    times: bool
    before: float
    after: float
    years_before: Number
    years_before_low: Number
    years_before_high: Number
    years_after: Number
    years_after_low: Number
    years_after_high: Number
    difference: Number
    difference_low: Number
    difference_high: Number


class ProfilePart(Value):
    """Hazards a year, by value of one covariate and by state, the others typical.

    ``outside`` marks values beyond the training rows; ``rug`` has their least value, those of each twentieth of
    the rows, and the largest.
    """

    covariate: str
    values: tuple[float, ...]
    outside: tuple[bool, ...]
    rug: tuple[float, ...]
    typical: float
    hazard: tuple[tuple[Number, ...], ...]
    hazard_low: tuple[tuple[Number, ...], ...]
    hazard_high: tuple[tuple[Number, ...], ...]


class CaseForecast(Value):
    """A typical member of a case from state 1 on, at ``years`` from now.

    ``probability[t][k]`` is that of state k+1, ``expected`` the mean state, ``reached`` the probability of
    ``threshold`` or worse; one member will be between the states ``predicted_low`` and ``predicted_high``.
    ``advancing`` are the covariates that grow with the years; ``outside`` says when one of them is beyond the
    training rows, whose largest is in ``seen``: there the model extrapolates, and intervals do not know it.
    """

    threshold: int
    level: float
    advancing: tuple[str, ...]
    seen: dict[str, float]
    years: tuple[float, ...]
    probability: tuple[tuple[float, ...], ...]
    expected: tuple[float, ...]
    expected_low: tuple[Number, ...]
    expected_high: tuple[Number, ...]
    reached: tuple[float, ...]
    reached_low: tuple[Number, ...]
    reached_high: tuple[Number, ...]
    predicted_low: tuple[Count, ...]
    predicted_high: tuple[Count, ...]
    outside: tuple[bool, ...]
    passages: tuple[PassagePart, ...]
    matrices: tuple[MatrixPart, ...]
    effects: tuple[EffectPart, ...]
    profiles: tuple[ProfilePart, ...]
    clock: Text = None  # where in an interval the fit took what advances: middle or start
    lag: Number = None  # years that it is behind; None where the mean interval is not known

    @property
    def extrapolated_from(self) -> float | None:
        """The first year that is beyond the training rows."""
        return next((year for year, beyond in zip(self.years, self.outside, strict=True) if beyond), None)

    @property
    def has_band(self) -> bool:
        """Whether the mean state has an interval."""
        return any(low is not None for low in self.expected_low)


class NetworkYear(Value):
    """Members of a case, or of all where ``case`` is None, so many years after the base date.

    ``expected`` are numbers in each state, ``reached`` those in the threshold or worse. ``low`` and ``high`` are
    of the expected number there, ``predicted_low`` and ``predicted_high`` of the number itself.
    """

    case: Text
    year: int
    members: int
    expected: tuple[float, ...]
    threshold: Count  # None where cases have several
    reached: float
    low: Number
    high: Number
    predicted_low: Number
    predicted_high: Number
    certified: bool


class RiskPart(Value):
    """One of the members that are not in the threshold yet and soonest will be, by the mean years."""

    rank: int
    bridge: str
    case: str
    member: Text
    seen: Text  # the day of its last inspection
    state: int
    threshold: int
    reached: float  # probability after ``NetworkPart.soon`` years
    mean: Number  # years from the base date
    mean_low: Number
    mean_high: Number
    median: Number
    calendar: Count  # the year that is
    remark: Text


class AsidePart(Value):
    """Members, or records of none, that are not forecast; or members that are, with a remark."""

    kind: str  # "set aside" or "remark"
    case: Text
    reason: str
    count: int
    what: str


class NetworkPart(Value):
    """A whole inventory over the years, if nothing is repaired.

    ``kind`` is "inventory" where one was given to rekka forecast, "study" where the members are those of the
    study, each as its last transition ended. ``unchosen`` are cases that are forecast though no model was chosen,
    because that was asked for; ``left_out`` those that have no model, and are in no total.
    """

    kind: Literal["inventory", "study"]
    name: str
    base: Text  # the day of year 0; None where it is when each was seen
    horizon: int
    soon: int  # years after which the risk of each member is told
    level: float
    certified: bool
    intervals: bool
    age: str  # advances, held or fixed
    advancing: tuple[str, ...]
    members: int
    there: int  # in the threshold or worse when last seen
    outside: int  # members that leave the training rows
    unchosen: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    years: tuple[NetworkYear, ...]
    risks: tuple[RiskPart, ...]
    aside: tuple[AsidePart, ...]
    notes: tuple[str, ...]

    def of(self, case: str | None) -> tuple[NetworkYear, ...]:
        """The years of a case, or of all."""
        return tuple(one for one in self.years if one.case == case)


VERSION: Literal[2] = 2


NOT_YET = "not chosen yet"  # the reason of an answer: the run was stopped before


class PresetPart(Value):
    """Conditions of fits; ``cost`` is what the selection weighs against accuracy."""

    name: str
    words: str
    cost: str
    eligible: str  # who can be selected: converged or certified


class Covariate(Value):
    """``unit`` is a key of the page's words, None where the table knows it alone; ``step`` is that of ratios."""

    name: str
    unit: Text
    step: float


class StudyPart(Value):
    """What was run."""

    kind: Literal["tables", "inventory", "given"]
    sources: tuple[str, ...]  # names of files, without their folders
    scheme: str
    rule: str
    default: str
    select_on: str
    methods: tuple[str, ...]
    presets: tuple[PresetPart, ...]
    preset: str  # the one whose choices are the answer
    covariates: tuple[Covariate, ...]
    planned: int  # trials
    done: int
    choices_planned: int
    choices_done: int
    confidence: float
    seed: int
    clock: Text = None  # where in an interval ages are taken: middle or start; None where there are none


class CasePart(Value):
    """A case: rows in each part, size, baselines on the judged rows; ``exploratory`` says why it is too small."""

    case: str
    train: int
    validation: int
    golden: int
    bridges: int
    moves: int
    n_states: int
    events_per_parameter: Number
    judged_on: str
    covariates: tuple[str, ...]
    constant: tuple[str, ...]
    exploratory: Text
    persistence_accuracy: Number
    no_covariates_accuracy: Number
    no_covariates_log_loss: Number


class Answer(Value):
    """What to use in a case, and how it did.

    ``scored_on`` is golden for a choice that was confirmed; else the rows that chose, and there are no intervals.
    Differences are paired by row: accuracy less that of saying that nothing changes, log loss less that of the
    model without covariates. ``beats_*`` is "better", "worse" or "not shown", by the interval; None without one.
    """

    case: str
    method: Text
    same_model: tuple[str, ...]  # other methods that are one model with it
    reason: Literal[
        "stays", "stands in", "lower log loss", "accuracy and cost", "pareto",
        "unstable", "not certified", "not scored", "not chosen yet",
    ]  # fmt: skip
    why: str  # the same with its figures
    said: dict[str, Any] | None = None  # ``why`` as a key with values, for other languages
    confirmed: bool
    scored_on: Text
    rows: Count
    bridges: Count
    accuracy: Number
    accuracy_low: Number
    accuracy_high: Number
    log_loss: Number
    log_loss_low: Number
    log_loss_high: Number
    persistence_accuracy: Number
    persistence_difference: Number
    persistence_low: Number
    persistence_high: Number
    no_covariates_log_loss: Number
    no_covariates_difference: Number
    no_covariates_low: Number
    no_covariates_high: Number
    beats_persistence: Text
    beats_no_covariates: Text
    seen: Text  # where its golden rows were looked at before
    remark: Text  # why it is not confirmed


class Told(Value):
    """A finding as the language files tell it: names of its sentences, and what their places ask for.

    The page tells it in its own language; the English beside it is for readers of the document.
    """

    code: str
    title: str
    remedy: str
    say: tuple[str, ...] = ()  # empty in documents of earlier versions
    do: str = ""
    told: dict[str, Any] = Field(default_factory=dict)


class FindingPart(Told):
    """A check's outcome; ``values`` has the figures of all cases concerned."""

    verdict: str
    explanation: str
    cases: tuple[str, ...]
    methods: tuple[str, ...]
    values: dict[str, Any]


class TrialPart(Value):
    """A trial: what became of it, costs, certificate, scores on the judged rows."""

    case: str
    preset: str
    method: str
    status: str
    reason: Text
    converged: bool
    certified: bool
    eligible: bool
    success: bool | None
    message: Text
    iterations: Count
    evaluations: Count
    seconds: Number
    seconds_low: Number
    seconds_high: Number
    timings: Count
    log_likelihood: Number
    verdict: Text
    maximum_exists: bool | None
    decrement: Number
    shortfall: Number
    starts: Count
    positive_definite: bool | None
    condition_number: Number
    weakest_direction: Text
    plateau_train: Number
    plateau_golden: Number
    accuracy: Number
    log_loss: Number
    log_loss_exact: Number
    macro_recall: Number
    brier: Number
    rps: Number
    at_floor: Count
    persistence_accuracy: Number
    no_covariates_accuracy: Number
    no_covariates_log_loss: Number
    judged_on: str
    n_states: int
    train: int
    golden: int
    scored: Count
    unsupported: Count
    pareto: bool
    cost: str
    selected: bool


class MethodPart(Value):
    """A method over all cases; means and medians are of the trials that can be selected."""

    preset: str
    method: str
    trials: int
    converged: int
    certified: Count
    selected: int
    pareto: int
    mean_accuracy: Number
    median_seconds_low: Number
    median_seconds: Number
    median_iterations: Number
    at_floor_share: Number


class SelectionPart(Value):
    """A case's choice under a preset, the Pareto set beside it, and their log losses."""

    preset: str
    case: str
    chosen: Text
    selected: tuple[str, ...]
    pareto: tuple[str, ...]
    eligible: int
    trials: int
    judged_on: Text
    why: str
    said: dict[str, Any] | None = None
    log_loss: Number  # of what was chosen
    lowest_log_loss: Number
    lowest_method: Text


class VerdictPart(Value):
    """What the rule says of a method in a case."""

    preset: str
    case: str
    method: str
    kept: bool
    step: Text
    accuracy: Number
    log_loss: Number
    difference: Number
    low: Number
    high: Number
    bridges: Count
    certified: Count
    drawn: Count
    rival: Text
    why: str
    said: dict[str, Any] | None = None


class FloorPart(Value):
    """A method of the Pareto set with a far worse log loss than the alternatives (paper, Table boxcox-logloss)."""

    preset: str
    case: str
    method: str
    accuracy: Number
    log_loss: Number
    alternatives_low: Number
    alternatives_high: Number
    ratio_low: Number
    ratio_high: Number
    at_floor_share: Number


class BothPart(Value):
    """A trial under the paper's conditions beside the exact ones, and the cause of the difference."""

    case: str
    method: str
    paper_status: str
    exact_status: str
    paper_log_likelihood: Number
    exact_log_likelihood: Number
    short_by: Number
    paper_iterations: Count
    exact_iterations: Count
    paper_log_loss: Number
    exact_log_loss: Number
    cause: str


class HypothesisPart(Value):
    """One of the paper's hypotheses on the trials of a preset."""

    preset: str
    code: str
    claim: str
    verdict: str
    evidence: str
    figures: dict[str, Any]


class CountPart(Value):
    """Rows that left a start state, or ended in one: observed, expected, (O - E) / sqrt(max(E, 1))."""

    state: int
    rows: Count
    observed: int
    expected: float
    residual: float


class BinPart(Value):
    """A bin of the reliability curve; ``end`` is None for leaving the start state."""

    end: Count
    bin: int
    forecast: float
    observed: float
    low: Number
    high: Number
    rows: int
    bridges: int


class CalibrationPart(Value):
    """Whether a chosen model's forecasts come true on its training rows."""

    preset: str
    case: str
    method: str
    rows: int
    by_start: tuple[CountPart, ...]
    by_end: tuple[CountPart, ...]
    reliability: tuple[BinPart, ...]
    statistic: Number
    critical: Number
    p_value: Number
    replicates: int
    kind: str
    at_floor: int
    at_floor_share: Number
    causes: tuple[str, ...]


class SharePart(Value):
    """How often a method is chosen, kept and certified over the draws of a kind."""

    preset: str
    case: str
    kind: str
    method: str
    chosen: Number
    kept: Number
    none: Number
    draws: int
    in_study: bool
    certified: Number
    certified_low: Number
    certified_high: Number
    accuracy_mean: Number
    accuracy_low: Number
    accuracy_high: Number
    log_loss_mean: Number
    log_loss_low: Number
    log_loss_high: Number


class StabilityPart(Value):
    """Refits to other bridges, other splits and from other starts."""

    kinds: tuple[str, ...]
    resamples: int
    seed: int
    shares: tuple[SharePart, ...]
    remarks: tuple[str, ...]


class CoefficientPart(Value):
    """A coefficient of the log hazard of leaving a state; native units, or as transformed."""

    state: int
    term: str
    estimate: Number
    se: Number
    low: Number
    high: Number
    p: Number


class RatioPart(Value):
    """How the hazard of leaving a state changes with one step more of a covariate, at typical values."""

    state: int
    covariate: str
    step: float
    ratio: Number
    low: Number
    high: Number


class YearsPart(Value):
    """Hazard a year and mean years in a state, for typical covariates."""

    state: int
    hazard: Number
    hazard_low: Number
    hazard_high: Number
    years: Number
    years_low: Number
    years_high: Number


class ModelPart(Value):
    """The fitted hazards of a case; ``chosen`` is False for the default's fit where nothing was chosen.

    ``reason`` says why there are no figures, where there are none. Those of a fit that is not ``certified`` are
    where the optimizer stopped: they have no standard errors and no intervals, which hold at a maximum only.
    """

    case: str
    preset: str
    method: str
    chosen: bool
    certified: bool
    reason: Text
    rows: Count
    n_states: Count
    log_likelihood: Number
    aic: Number
    bic: Number
    errors: Text  # what kind of standard errors
    scale: Text  # "native", or the operator whose units the coefficients have
    typical: dict[str, float]
    coefficients: tuple[CoefficientPart, ...]
    ratios: tuple[RatioPart, ...]
    years: tuple[YearsPart, ...]
    forecast: CaseForecast | None
    fit_test: FitTest | None = None  # on the training rows; None where it was not made


class OutcomePart(Value):
    """What became of records of the input."""

    outcome: str
    reason: str
    count: int


class DoctorPart(Told):
    """A finding of the data doctor on the study's rows."""

    severity: str
    message: str
    case: Text


class AuditPart(Value):
    """What came in, what became of it, how it was read."""

    records: Count
    outcomes: tuple[OutcomePart, ...]
    notes: tuple[str, ...]
    findings: tuple[DoctorPart, ...]


class ProvenancePart(Value):
    """What the study was run on and with; ``again`` is the command that repeats it. None of it of a study in
    memory but the plan.
    """  # noqa: D205

    begun: Text
    command: Text
    again: Text
    plan: str  # the study file
    files: dict[str, Text]
    rows_sha256: Text
    seeds: dict[str, int | None]
    versions: dict[str, str]
    machine: dict[str, str | int | None]


class Document(Value):
    """A report."""

    format: Literal["rekka-report"] = "rekka-report"
    version: Literal[2] = VERSION
    rekka: str
    title: Text  # what the study is of, where somebody said so or a table has a name
    study: StudyPart
    cases: tuple[CasePart, ...]
    answers: tuple[Answer, ...]
    findings: tuple[FindingPart, ...]  # worst first
    trials: tuple[TrialPart, ...]
    methods: tuple[MethodPart, ...]
    selection: tuple[SelectionPart, ...]
    verdicts: tuple[VerdictPart, ...]
    floor: tuple[FloorPart, ...]
    presets: tuple[BothPart, ...]  # empty unless both were run
    hypotheses: tuple[HypothesisPart, ...]
    calibration: tuple[CalibrationPart, ...]
    stability: StabilityPart | None
    models: tuple[ModelPart, ...]
    network: NetworkPart | None
    no_network: Text = None  # what stood against it
    audit: AuditPart
    provenance: ProvenancePart

    def to_json(self) -> str:
        """The document as text: the same for the same study."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "the report") -> Document:
        """Read it back; what is no report of this version is refused."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the text itself"
            raise DamagedFile(
                f"{name} is no rekka report of version {VERSION}: {where}: {first['msg']}. "
                "Write it again with rekka report RUN.",
                file=name,
            ) from None
