"""What a report says of the future, as plain data: parts of a document.

States count from 1, the best. ``low`` and ``high`` bound what is not known of the parameters; ``predicted_low``
and ``predicted_high`` what will be: the same, and the chance that a course has although the parameters are known.
Years may be infinite: a state that may never be reached. A missing number is None, as are all ends where a fit is
no certified maximum.
"""

from __future__ import annotations

from typing import Literal

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
