"""Members marked as repaired: a file of the run that ``rekka forecast --repaired`` takes as it stands.

Its columns are bridge, component, member (where members are named), rating, age and frailty, all as text; what is
blank stays as it is, but for the rating, which is then the best.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from rekka.core.errors import BadOption
from rekka.core.sheets import unguard_table, write_csv
from rekka.fleet.selection import EDITS, WORDS

REPAIRS = "repairs.csv"  # in the folder of a run, beside its job
NAMES = tuple(WORDS.values())  # bridge, component, member


class Mark(NamedTuple):
    """A member that is marked as repaired, and how it is afterwards; blank where that is not said."""

    bridge: str
    component: str
    member: str = ""
    rating: str = ""
    age: str = ""
    frailty: str = ""

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the member."""
        return self.bridge, self.component, self.member

    @property
    def key(self) -> str:
        """Names as the value of a check box."""
        return json.dumps(self.names, ensure_ascii=False)


def name_member(row: Mapping[str, object]) -> Mark:
    """The mark of a row of a forecast, or of a table of repairs."""
    names = ((row.get(name, row.get(word)) or "") for name, word in WORDS.items())
    return Mark(*map(str, names))


def read_key(key: str) -> Mark:
    """The mark of a check box."""
    try:
        names = json.loads(key)
    except ValueError:
        names = None
    if not isinstance(names, list) or len(names) != len(NAMES) or not all(isinstance(one, str) for one in names):
        raise BadOption("The form names no member. Load the page again.")
    return Mark(*names)


def read_marks(folder: Path) -> list[Mark]:
    """Marks of a run, in the order in which they were made."""
    file = folder / REPAIRS
    if not file.is_file():
        return []
    table = unguard_table(pl.read_csv(file, infer_schema=False).lazy()).collect()
    return [Mark(**{name: value or "" for name, value in row.items()}) for row in table.to_dicts()]


def write_marks(folder: Path, marks: Sequence[Mark]) -> None:
    """Keep the marks of a run; without any the file goes."""
    file = folder / REPAIRS
    if not marks:
        file.unlink(missing_ok=True)
        return
    table = pl.DataFrame(marks, schema=dict.fromkeys(Mark._fields, pl.String), orient="row")
    blank = pl.all().replace("", None)
    named = table.with_columns(blank)
    left = [name for name in ("member", *EDITS) if named[name].null_count() == len(named)]
    write_csv(file, named.drop(left))


def add_marks(marks: Sequence[Mark], more: Iterable[Mark]) -> list[Mark]:
    """Marks and those of further members; one that is there keeps its edits."""
    known = {mark.names for mark in marks}
    return [*marks, *{one.names: one for one in more if one.names not in known}.values()]


def edit_marks(marks: Sequence[Mark], form: Mapping[str, str], dropped: Iterable[str]) -> list[Mark]:
    """Marks as a form has them: ``rating-3`` is a field of the third; those that are dropped go.

    Marks on other pages of the table, which the form does not have, stay.
    """
    gone = {read_key(key).names for key in dropped}
    found = []
    for place, mark in enumerate(marks):
        fields = {edit: form[f"{edit}-{place}"].strip() for edit in EDITS if f"{edit}-{place}" in form}
        ours = form.get(f"names-{place}", mark.key) == mark.key
        if mark.names not in gone:
            found.append(mark._replace(**fields) if ours else mark)
    return found
