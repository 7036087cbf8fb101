"""The document of a report: every number that a page, table or figure shows, as versioned plain data.

    Study -> summarize -> Document -> page, terminal, Markdown, tables, figures

Numbers are not rounded. Sentences about a study are in English, with a key for other languages or in a form that
``core/sentences.py`` finds again; headings and captions belong to the renderers, formats to the annotations of the
fields (``rekka.core.columns``). States count from 1, the best. A missing number is None, as are the ends of all
intervals where a fit is no certified maximum; years are infinite where a state may never be reached. ``low`` and
``high`` bound what is not known of the parameters, ``predicted_low`` and ``predicted_high`` what will be: chance
adds to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from rekka.core.columns import (
    Accuracy,
    Decimal,
    FineShare,
    LogLikelihood,
    LogLoss,
    Method,
    Methods,
    Part,
    Preset,
    Probability,
    Rows,
    Seconds,
    Sentence,
    Share,
    Shown,
    State,
    Tiny,
    Years,
)
from rekka.core.errors import DamagedFile
from rekka.core.ratings import Ratings
from rekka.core.validation import choose_remedy, find_invalid
from rekka.model.survey import FitTest
from rekka.study.hypotheses import Hypothesis
from rekka.study.tables import TrialRow
from rekka.study.trial import Value

VERSION: Literal[3] = 3
NOT_YET = "not chosen yet"  # the reason of an answer: the run was stopped before

Number = float | None
Count = int | None
Text = str | None
Members = Annotated[Number, Shown("members")]
TrialPart = TrialRow  # parts of a document that a study has as they are
HypothesisPart = Hypothesis


class PassagePart(Value):
    """Years until the threshold or worse, for a typical member that is in ``start`` now."""

    start: int
    mean: Years
    mean_low: Years
    mean_high: Years
    median: Years
    median_low: Years
    median_high: Years
    predicted_low: Years
    predicted_high: Years


class MatrixPart(Value):
    """Probabilities after ``years``: a row for each state now, a column for each state then."""

    years: Annotated[float, Shown("count", "years")]
    probability: tuple[tuple[float, ...], ...]
    low: tuple[tuple[Number, ...], ...]
    high: tuple[tuple[Number, ...], ...]


class EffectPart(Value):
    """Effect of a change of one covariate on the median years from state 1 until the threshold or worse.

    ``amount`` is added, or multiplied by where ``times``; ``before`` and ``after`` are values of the covariate. Of
    a category ``level`` takes the place of the level ``instead``.
    """

    covariate: str
    amount: float
    times: bool
    before: float
    after: float
    years_before: Years
    years_before_low: Years
    years_before_high: Years
    years_after: Years
    years_after_low: Years
    years_after_high: Years
    difference: Annotated[Number, Shown("years_difference", "years")]
    difference_low: Annotated[Number, Shown("years_difference", "years")]
    difference_high: Annotated[Number, Shown("years_difference", "years")]
    level: Text = None
    instead: Text = None


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


class NewPart(Value):
    """A new member of a case, in state 1 at age 0 and otherwise typical, by its age in ``years``.

    The columns are those of ``CaseForecast``; ``passage`` has its age when it is at the threshold or worse.
    ``outside`` also marks ages below those of the training rows.
    """

    years: tuple[float, ...]
    expected: tuple[float, ...]
    expected_low: tuple[Number, ...]
    expected_high: tuple[Number, ...]
    predicted_low: tuple[Count, ...]
    predicted_high: tuple[Count, ...]
    outside: tuple[bool, ...]
    passage: PassagePart


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
    new: NewPart | None = None  # None without an age, where each member in state 1 is as a new one

    @property
    def passage_of_new(self) -> PassagePart | None:
        """Years of a new member until the threshold; None where they are not known."""
        if self.new is not None:
            return self.new.passage
        return None if self.advancing else next((one for one in self.passages if one.start == 1), None)

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
    year: Annotated[int, Shown(unit="years")]
    members: int
    expected: tuple[float, ...]
    threshold: Count  # None where cases have several
    reached: Annotated[float, Shown("members")]
    low: Members
    high: Members
    predicted_low: Annotated[Number, Shown("count")]
    predicted_high: Annotated[Number, Shown("count")]
    certified: bool
    predicted_shock_low: Annotated[Number, Shown("count")] = None  # the wider band, where it was asked for
    predicted_shock_high: Annotated[Number, Shown("count")] = None
    unimproved: Annotated[Number, Shown("members")] = None  # expected there without small repairs


class HistoryYear(Value):
    """Members of a case, or of all where ``case`` is None, as inspectors had last found them by the end of a year.

    ``members`` are those that had been inspected by then, ``reached`` those of them in the threshold or worse.
    """

    case: Text
    year: Annotated[int, Shown("year")]
    members: int
    reached: int


class MembersPart(Value):
    """All members of the network, by columns: one entry for each member, the soonest at the threshold first.

    ``case`` counts in ``cases``. ``tab`` is 0 for a member that will be at the threshold next, 1 for one that is
    there already, 2 for one outside the range of the training rows or last inspected long ago. ``soon`` is the
    probability of the threshold or worse after ``NetworkPart.soon`` years, ``calendar`` the year of ``median``.
    ``past`` has the ratings found: "2001.5:2,2003.4:3", years and states. ``fan`` has three states for each of
    ``fan_years``, those of the 10, 50 and 90 % quantiles, as digits to the base 36. ``values`` and ``ratios`` have
    a column for each of ``covariates``: the member's value, and its hazard relative to that of a typical member.
    ``frailty`` is the factor of the bridge where the model has one.
    """

    cases: tuple[str, ...]
    case: tuple[int, ...]
    bridge: tuple[str, ...]
    member: tuple[Text, ...] = ()  # empty where no component has several members of a bridge
    tab: tuple[int, ...]
    state: tuple[int, ...]
    threshold: tuple[int, ...]  # by case
    seen: tuple[Text, ...]
    soon: tuple[Number, ...]
    median: tuple[Number, ...]  # years from the base date; None where never
    calendar: tuple[Count, ...]
    past: tuple[str, ...]
    fan_years: tuple[int, ...]
    fan: tuple[str, ...]
    remarks: tuple[dict[str, Any], ...] = ()  # each with its key and values
    remark: tuple[tuple[int, ...], ...] = ()  # of each member: places in ``remarks``
    covariates: tuple[str, ...] = ()
    values: tuple[tuple[float | str | None, ...], ...] = ()
    ratios: tuple[tuple[Number, ...], ...] = ()
    frailty: tuple[Number, ...] = ()
    latitude: tuple[Number, ...] = ()
    longitude: tuple[Number, ...] = ()
    left_out: int = 0  # members after the first so many: a page has room for these


class RiskPart(Value):
    """One of the members that are not in the threshold yet and soonest will be, by the mean years.

    Or one that was last inspected long ago, which has no rank.
    """

    rank: Count
    bridge: str
    case: str
    member: Text
    seen: Text  # the day of its last inspection
    state: int
    threshold: int
    reached: Annotated[float, Shown("fine_share")]  # probability after ``NetworkPart.soon`` years
    mean: Years  # years from the base date
    mean_low: Years
    mean_high: Years
    median: Years
    calendar: Annotated[Count, Shown("year")]  # the year that is
    remark: Sentence


class AsidePart(Value):
    """Members, or records of none, that are not forecast; or members that are, with a remark."""

    kind: Annotated[str, Shown(terms="aside")]  # "set aside" or "remark"
    case: Text
    reason: Annotated[str, Shown(kind="sentence")]
    count: int
    what: Annotated[str, Shown(terms="aside")]


class NetworkPart(Value):
    """A whole inventory over the years, if nothing is repaired, or only small repairs go on as before.

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
    unseen: int = 0  # members last inspected long ago; in the totals, but not among the risks
    long_unseen: tuple[RiskPart, ...] = ()  # the first of them
    aside: tuple[AsidePart, ...]
    notes: tuple[str, ...]
    labels: tuple[str, ...] | None = None  # of the states, as the inventory or its models call them
    history: tuple[HistoryYear, ...] = ()  # empty where visits have no dates
    first_seen: Text = None  # the days of the first and the last inspection
    last_seen: Text = None
    every: MembersPart | None = None
    there_by_case: dict[str, int] = Field(default_factory=dict)
    bridges: Count = None  # with a member that is forecast; in the next two, with one in the threshold or worse
    bridges_there: Count = None
    bridges_later: Number = None  # expected after ten years; members of a bridge are taken as independent

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, max((len(one.expected) for one in self.years), default=0))

    @property
    def repairs(self) -> Literal["nothing", "small"]:
        """Repairs that the forecast assumes: a key of the words of ``repairs``."""
        return "small" if any(one.unimproved is not None for one in self.years) else "nothing"

    def of(self, case: str | None) -> tuple[NetworkYear, ...]:
        """The years of a case, or of all."""
        return tuple(one for one in self.years if one.case == case)

    def of_each(self, year: int) -> tuple[NetworkYear, ...]:
        """One year of each case."""
        return tuple(one for one in self.years if one.case is not None and one.year == year)


class TrustPart(Value):
    """How far forecasts of a case can be trusted, or those of all cases (``case`` None): ``report/trust.py``.

    ``reason`` decided; ``others`` speak for the same level or for the next better one. Each has a key and values.
    """

    case: Text
    level: Literal["good", "caution", "do_not_use"]
    reason: dict[str, Any]
    others: tuple[dict[str, Any], ...] = ()


class BacktestYear(Value):
    """Visits of a year after the last one that the model knew: in the threshold or worse, found and expected."""

    year: Annotated[int, Shown("year")]
    visits: int
    observed: int
    expected: Annotated[float, Shown("one_decimal")]
    predicted_low: Count
    predicted_high: Count


class BacktestPart(Value):
    """A model fitted to what was known ``until`` some day, and its forecasts of later visits.

    Scores are ranked probability scores, lower is better: of the model, of "no change", and their difference with
    its interval, clustered by bridge. ``reason`` says why there are none. Where another model forecasts here, the
    plain one, its score on the same visits is ``used_score``, and the interval of its difference from "no change"
    ``used_low`` to ``used_high``.
    """

    case: str
    until: str
    model: Text  # elements of histories, where any were chosen
    of_this: bool = True  # whether the model that forecasts here has the same elements
    certified: bool
    visits: int
    bridges: int
    horizon: Years  # the farthest forecast
    score: LogLoss
    no_change_score: LogLoss
    difference: Annotated[Number, Shown("loss_difference")]
    low: Annotated[Number, Shown("loss_difference")]
    high: Annotated[Number, Shown("loss_difference")]
    threshold: int
    years: tuple[BacktestYear, ...]
    reason: Text = None
    used_score: LogLoss = None
    used_low: Annotated[Number, Shown("loss_difference")] = None
    used_high: Annotated[Number, Shown("loss_difference")] = None


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
    """The study: its data, plan and progress."""

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
    train: Rows
    validation: Rows
    golden: Rows
    bridges: int
    moves: int
    n_states: int
    events_per_parameter: Decimal
    judged_on: Part
    covariates: tuple[str, ...]
    constant: tuple[str, ...]
    exploratory: Sentence
    persistence_accuracy: Accuracy
    no_covariates_accuracy: Accuracy
    no_covariates_log_loss: LogLoss

    @property
    def total(self) -> Rows:
        """Rows of all parts."""
        return self.train + self.validation + self.golden


class Answer(Value):
    """The method to use in a case, and its scores.

    ``scored_on`` is golden for a choice that was confirmed; else the rows that chose, and there are no intervals.
    Differences are paired by row: accuracy less that of saying that nothing changes, log loss less that of the
    model without covariates. ``beats_*`` is "better", "worse" or "not shown", by the interval; None without one.
    """

    case: str
    method: Annotated[Text, Shown(kind="method")]
    same_model: tuple[str, ...]  # other methods that are one model with it
    reason: Literal[
        "stays", "stands in", "lower log loss", "accuracy and cost", "pareto",
        "unstable", "not certified", "not scored", "rung", "no departure", "not chosen yet",
    ]  # fmt: skip
    why: str  # the same with its figures
    said: dict[str, Any] | None = None  # ``why`` as a key with values, for other languages
    confirmed: bool
    scored_on: Annotated[Text, Shown(terms="rows")]
    rows: Count
    bridges: Count
    accuracy: Accuracy
    accuracy_low: Accuracy
    accuracy_high: Accuracy
    log_loss: LogLoss
    log_loss_low: LogLoss
    log_loss_high: LogLoss
    persistence_accuracy: Accuracy
    persistence_difference: Annotated[Number, Shown("accuracy_difference")]
    persistence_low: Annotated[Number, Shown("accuracy_difference")]
    persistence_high: Annotated[Number, Shown("accuracy_difference")]
    no_covariates_log_loss: LogLoss
    no_covariates_difference: Annotated[Number, Shown("loss_difference")]
    no_covariates_low: Annotated[Number, Shown("loss_difference")]
    no_covariates_high: Annotated[Number, Shown("loss_difference")]
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

    verdict: Annotated[str, Shown(terms="verdict")]
    explanation: str
    cases: tuple[str, ...]
    methods: tuple[str, ...]
    values: dict[str, Any]


class MethodPart(Value):
    """A method over all cases; means and medians are of the trials that can be selected.

    Under the exact preset affine scalings are one model: tables for people show them in one row.
    """

    preset: Preset
    method: Method
    trials: int
    converged: int
    certified: Count
    selected: int
    pareto: int
    mean_accuracy: Accuracy
    median_seconds_low: Seconds
    median_seconds: Seconds
    median_iterations: Annotated[Number, Shown("median")]
    at_floor_share: FineShare
    same_as: Text = None  # the method in whose row it is shown: one model, with the same log-likelihoods
    also: tuple[str, ...] = ()  # the methods that are shown in its row
    spread: Number = None  # of their log-likelihoods, the largest of all components
    kept: Count = None  # by the guarded rule, where the paper's decides what is selected


class SelectionPart(Value):
    """A case's choice under a preset, the Pareto set beside it, and their log losses."""

    preset: Preset
    case: str
    chosen: Annotated[Text, Shown(kind="method")]
    selected: Methods
    pareto: Methods
    eligible: int
    trials: int
    judged_on: Annotated[Text, Shown(terms="rows")]
    why: str
    said: dict[str, Any] | None = None
    log_loss: LogLoss  # of what was chosen
    lowest_log_loss: LogLoss
    lowest_method: Annotated[Text, Shown(kind="method")]


class VerdictPart(Value):
    """Verdict of the rule on a method in a case."""

    preset: Preset
    case: str
    method: Method
    kept: bool
    step: Annotated[Text, Shown(terms="step")]
    accuracy: Accuracy
    log_loss: LogLoss
    difference: Annotated[Number, Shown("loss_difference")]
    low: Annotated[Number, Shown("loss_difference")]
    high: Annotated[Number, Shown("loss_difference")]
    bridges: Count
    certified: Count
    drawn: Count
    rival: Annotated[Text, Shown(kind="method")]
    why: str
    said: dict[str, Any] | None = None


class FloorPart(Value):
    """A method of the Pareto set with a far worse log loss than the alternatives (paper, Table boxcox-logloss)."""

    preset: Preset
    case: str
    method: Method
    accuracy: Accuracy
    log_loss: LogLoss
    alternatives_low: LogLoss
    alternatives_high: LogLoss
    ratio_low: Decimal
    ratio_high: Decimal
    at_floor_share: FineShare


class BothPart(Value):
    """A trial under the paper's conditions beside the exact ones, and the cause of the difference."""

    case: str
    method: Method
    paper_status: State
    exact_status: State
    paper_log_likelihood: LogLikelihood
    exact_log_likelihood: LogLikelihood
    short_by: Tiny
    paper_iterations: Count
    exact_iterations: Count
    paper_log_loss: LogLoss
    exact_log_loss: LogLoss
    cause: Annotated[str, Shown(terms="cause")]


class CountPart(Value):
    """Rows that left a start state, or ended in one: observed, expected, (O - E) / sqrt(max(E, 1))."""

    state: int
    rows: Count
    observed: int
    expected: Annotated[float, Shown("one_decimal")]
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

    preset: Preset
    case: str
    method: Method
    rows: int
    by_start: tuple[CountPart, ...]
    by_end: tuple[CountPart, ...]
    reliability: tuple[BinPart, ...]
    statistic: Number
    critical: Number
    p_value: Probability
    replicates: int
    kind: str
    at_floor: int
    at_floor_share: FineShare
    causes: tuple[str, ...]

    @property
    def moves_observed(self) -> int:
        """Rows that left their state."""
        return sum(part.observed for part in self.by_start)

    @property
    def moves_expected(self) -> Decimal:
        """Rows that were expected to leave their state."""
        return sum(part.expected for part in self.by_start)


class SharePart(Value):
    """Shares of the draws of a kind in which a method is chosen, kept and certified."""

    preset: Preset
    case: str
    kind: Annotated[str, Shown(terms="kind")]
    method: Method
    chosen: Share
    kept: Share
    none: Share
    draws: int
    in_study: bool
    certified: Share
    certified_low: Share
    certified_high: Share
    accuracy_mean: Accuracy
    accuracy_low: Accuracy
    accuracy_high: Accuracy
    log_loss_mean: LogLoss
    log_loss_low: LogLoss
    log_loss_high: LogLoss


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
    p: Probability


class RatioPart(Value):
    """Hazard of leaving a state with one step more of a covariate, relative to that at typical values."""

    state: int
    covariate: str
    step: float
    ratio: Number
    low: Number
    high: Number


class YearsPart(Value):
    """Hazard a year and mean years in a state, for typical covariates."""

    state: int
    hazard: Annotated[Number, Shown("figure", "per_year")]
    hazard_low: Annotated[Number, Shown("figure", "per_year")]
    hazard_high: Annotated[Number, Shown("figure", "per_year")]
    years: Annotated[Number, Shown("figure", "years")]
    years_low: Annotated[Number, Shown("figure", "years")]
    years_high: Annotated[Number, Shown("figure", "years")]


class TrendPart(Value):
    """Change of all hazards a year until the last training visit, as a share; forecasts keep those of then."""

    change: Number
    low: Number
    high: Number
    until: Annotated[int, Shown("year")]


class ModelPart(Value):
    """The fitted hazards of a case; ``chosen`` is False for the default's fit where nothing was chosen.

    ``reason`` says why there are no figures, where there are none. Those of a fit that is not ``certified`` are
    where the optimizer stopped: they have no standard errors and no intervals, which hold at a maximum only.
    """

    case: str
    preset: Preset
    method: Method
    chosen: bool
    certified: bool
    reason: Sentence
    rows: Count
    n_states: Count
    log_likelihood: LogLikelihood
    aic: Decimal
    bic: Decimal
    errors: Sentence  # what kind of standard errors
    scale: Text  # "native", or the operator whose units the coefficients have
    typical: dict[str, float]
    levels: dict[str, str] = Field(default_factory=dict)  # the typical level of each category
    references: dict[str, str] = Field(default_factory=dict)  # of each term: what it is relative to
    coefficients: tuple[CoefficientPart, ...]
    ratios: tuple[RatioPart, ...]
    years: tuple[YearsPart, ...]
    forecast: CaseForecast | None
    fit_test: FitTest | None = None  # on the training rows; None where it was not made
    elements: Text = None  # of histories, where the study chose any: the model is then fitted to all visits
    trend: TrendPart | None = None  # one of these elements


class OutcomePart(Value):
    """Outcome of records of the input."""

    outcome: Annotated[str, Shown(terms="outcome")]
    reason: str
    count: int


class DoctorPart(Told):
    """A finding of the data doctor on the study's rows."""

    severity: Annotated[str, Shown(terms="severity")]
    message: str
    case: Text


class AuditPart(Value):
    """Records of the input, their outcomes, notes on how they were read, findings of the data doctor."""

    records: Count
    outcomes: tuple[OutcomePart, ...]
    notes: tuple[str, ...]
    findings: tuple[DoctorPart, ...]


class ProvenancePart(Value):
    """Files, versions, machine and seeds of a study; ``again`` is the command that repeats it.

    Of a study in memory only the plan is known.
    """

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
    version: Literal[2, 3] = VERSION
    rekka: str
    title: Text  # what the study is of, where somebody said so or a table has a name
    labels: tuple[str, ...] | None = None  # of states 1 to K; None where they are numbers
    study: StudyPart
    cases: tuple[CasePart, ...]
    answers: tuple[Answer, ...]
    findings: tuple[FindingPart, ...]  # worst first
    trials: tuple[TrialRow, ...]
    methods: tuple[MethodPart, ...]
    selection: tuple[SelectionPart, ...]
    verdicts: tuple[VerdictPart, ...]
    floor: tuple[FloorPart, ...]
    presets: tuple[BothPart, ...]  # empty unless both were run
    hypotheses: tuple[Hypothesis, ...]
    calibration: tuple[CalibrationPart, ...]
    stability: StabilityPart | None
    models: tuple[ModelPart, ...]
    network: NetworkPart | None
    no_network: Text = None  # what stood against it
    trust: tuple[TrustPart, ...] = ()  # all cases together first
    backtests: tuple[BacktestPart, ...] = ()
    audit: AuditPart
    provenance: ProvenancePart

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        worst = max((case.n_states for case in self.cases), default=0)
        return Ratings.of(self.labels, max(worst, len(self.labels or ())))

    def to_json(self) -> str:
        """The document as text: the same for the same study."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "the report") -> Document:
        """Read it back; what is no report of this version is refused."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            where, message = find_invalid(error)
            raise DamagedFile(
                f"{name} is no rekka report of version {VERSION}: {where}: {message}. "
                f"{choose_remedy(error, VERSION, 'Write it again with rekka report RUN.')}",
                file=name,
            ) from None
