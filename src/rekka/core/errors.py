"""Errors of rekka, each with a message that a person can act on.

RekkaError
├── WriteError                 also an OSError: a file that cannot be written, with the cause
└── InputError                 also a ValueError
    ├── UnreadableTable        a file that is not a table, or whose rows do not fit its header
    ├── MissingColumns         a named column is not in the table
    ├── BadValues              text, missing, infinite or impossible values, with row numbers
    ├── BadStates              a state below 1, not whole, above K, or an end below its start
    ├── BadCovariates          constant, duplicated or collinear covariates
    ├── BadWeights             negative, missing or all-zero weights
    ├── BadOption              an option with a value it does not have
    ├── StoppedByCheck         a table that a numbered check stops; its code can be allowed
    ├── ScalingError           an operator that cannot be fitted to a column
    │   └── OutsideTrainingRange   a value that a fitted operator cannot take
    ├── ClusterError           a cluster that is not there, not fit for it, or gone (``streaming.cluster``)
    ├── ModelFileError         a model file that is damaged, foreign or of another version
    └── RunFolderError         a run folder that is foreign, in use, or of another study
        └── DamagedFile            a file in it that is not as it was written

A message says what was found, where, what was needed and what to do, in that order. The values it names
are attributes of the exception too. A fit that does not reach a maximum is not an error: it is a value
with a certificate that says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RekkaError(Exception):
    """Base of all errors of rekka; ``values`` holds what the message names, also as attributes.

    Examples
    --------
    >>> import rekka
    >>> try:
    ...     rekka.simulate_inventory(preset="large")
    ... except rekka.RekkaError as error:
    ...     error.option, error.choices
    ('preset', ['paper', 'plain'])

    """

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message)
        self.values = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class InputError(RekkaError, ValueError):
    """Wrong input; nothing was computed from it. Also a ``ValueError``.

    Examples
    --------
    >>> import rekka
    >>> try:
    ...     rekka.read_panel("no such file.csv")
    ... except rekka.InputError as error:
    ...     print(error)
    There is no file no such file.csv.

    """


class WriteError(RekkaError, OSError):
    """A file that cannot be written: ``file``, ``cause`` and ``remedy``. An older file stays unchanged."""


class UnreadableTable(InputError):
    """A file that cannot be read as a table."""


class MissingColumns(InputError):
    """A named column is not in the table."""


class BadValues(InputError):
    """Values that cannot be used, with their rows."""


class BadStates(InputError):
    """States outside the scale, or an end state better than its start."""


class BadCovariates(InputError):
    """Constant, duplicated or collinear covariates."""


class BadWeights(InputError):
    """Weights that are not weights."""


class BadOption(InputError):
    """An option with a value it does not have."""


class StoppedByCheck(InputError):
    """A table that a numbered check stops, unless its code is allowed."""


class ScalingError(InputError):
    """A scaling operator that cannot be fitted to a column."""


class OutsideTrainingRange(ScalingError):
    """A value that a fitted scaling operator cannot transform."""


class ModelFileError(InputError):
    """A model file that cannot be read back."""


class RunFolderError(InputError):
    """A run folder that cannot be used, or not by this study."""


class DamagedFile(RunFolderError):
    """A file of a run folder that is not as it was written."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """' Did you mean traffic_avg?' where something close exists, otherwise nothing."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def name_rows(rows: Sequence[int] | NDArray[np.intp], most: int = 5) -> str:
    """'row 3' or 'rows 3, 8, 12, ...'; rows are counted from 0."""
    shown = ", ".join(str(int(row)) for row in rows[:most])
    more = ", ..." if len(rows) > most else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def renumber_rows(error: InputError, numbers: Sequence[int] | NDArray[np.intp]) -> InputError:
    """Error with the rows of the table in place of those of a part; ``numbers`` has the number of each row."""
    found = error.values.get("rows")
    if not found:
        return error
    rows = [int(numbers[row]) for row in found]
    words = str(error).replace(name_rows(found), name_rows(rows), 1)
    return type(error)(words, **error.values | {"rows": rows})


def count_of(number: int, what: str) -> str:
    """'1 row', '2 rows', '1,234 rows'."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def name_some(names: Collection[str], most: int = 40) -> str:
    """Names, or the first of very many and how many more there are."""
    some = list(names)[:most]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(some) + more if some else "none"


def missing_columns(missing: Sequence[str], present: Collection[str], where: str = "the table") -> MissingColumns:
    """Error for columns that are not there, with what is and what may have been meant."""
    names = ", ".join(name or "''" for name in missing)
    verb = "is" if len(missing) == 1 else "are"
    hint = did_you_mean(missing[0], present) if len(missing) == 1 else ""
    return MissingColumns(
        f"{names} {verb} not in {where}. Columns there: {name_some(present)}.{hint}",
        missing=list(missing),
        present=list(present),
    )


def no_such_case(name: str, there: Collection[str]) -> BadOption:
    """Error for a case that is not in the table, with those that are."""
    return BadOption(
        f"There is no component {name!r}. Components there: {name_some(there)}.{did_you_mean(name, there)}",
        case=name,
        cases=list(there),
    )


def bad_option(option: str, value: object, choices: Sequence[str]) -> BadOption:
    """Error for an unknown option value, with the choices."""
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return BadOption(
        f"{option} is {value!r}; it can be {', '.join(choices)}.{hint}",
        option=option,
        value=value,
        choices=list(choices),
    )
