"""How covariates change while a forecast runs: age advances with the years, or stays as the model strictly has it.

    advances   x + t in every step of a year, however old that makes a member
    held       the same, but not beyond the oldest of the training rows (a member older than that stays)
    fixed      x, as over an interval of the paper's model

In a step hazards are constant, with the age at its beginning, as those of an interval are with the age at its
first inspection. All other covariates stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.errors import BadOption, bad_option, did_you_mean
from rekka.model.survey import Survey

Array = NDArray[np.float64]

ADVANCES, HELD, FIXED = "advances", "held", "fixed"
AGES = (ADVANCES, HELD, FIXED)
AGE_NAMES = ("age_at_inspection_1", "age", "age_years")  # covariates that are taken for ages without being told


@dataclass(frozen=True, eq=False)
class Course:
    """Which columns of x advance, and the value (p,) that none of them passes."""

    age: str
    names: tuple[str, ...]  # of the covariates that advance
    columns: NDArray[np.intp]
    ceiling: Array

    @property
    def moves(self) -> bool:
        """Whether anything changes with the years."""
        return self.columns.size > 0

    @property
    def words(self) -> str:
        """The same as a reader is told."""
        if not self.moves:
            return "covariates stay as they are"
        limit = ", up to the largest of the training rows" if self.age == HELD else ""
        return f"{' and '.join(self.names)} advancing by the year{limit}"

    def at(self, x: Array, elapsed: Array | float) -> Array:
        """Covariates (n, p) after so many years."""
        if not self.moves:
            return x
        later = x.copy()
        for column in self.columns:
            old = x[:, column]
            later[:, column] = np.minimum(old + elapsed, np.maximum(old, self.ceiling[column]))
        return later


def plan_course(
    covariates: Sequence[str], survey: Survey | None, age: str = ADVANCES, advance: Sequence[str] | None = None
) -> Course:
    """What advances: the covariates named by ``advance``, or those that are called an age."""
    if age not in AGES:
        raise bad_option("age", age, AGES)
    for name in advance or ():
        if name not in covariates:
            raise BadOption(
                f"advance names {name}, which is not a covariate of this model; {', '.join(covariates) or 'none'} "
                f"are.{did_you_mean(name, covariates)}",
                option="advance",
                value=name,
            )
    wanted = AGE_NAMES if advance is None else tuple(advance)
    names = () if age == FIXED else tuple(name for name in covariates if name in wanted)
    columns = np.array([list(covariates).index(name) for name in names], dtype=np.intp)
    ceiling = np.full(len(covariates), np.inf)
    if age == HELD and names:
        if survey is None:
            raise BadOption(
                "age='held' needs the oldest age of the training rows, which this model file, of an earlier "
                "version, does not have. Fit the model again, or use age='advances' or 'fixed'."
            )
        ceiling[columns] = survey.high[columns]
    return Course(age, names, columns, ceiling)
