"""Direction of the moves: R109 stops every command that reads a scale from its wrong end, unless allowed.

Of the findings that stop, R109 alone is about the table as a whole and could be gone on with. Rows that no fit can
take (R003, R101, R103, R201, R301) are refused where they are read, and what is wrong with one component (R104,
R105, R108, R302, R303, R402) is that component's own reason, while the others go on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from rekka.core.errors import BadOption, StoppedByCheck, name_some
from rekka.core.language import ENGLISH, current, load_words, say
from rekka.data.text import collect

CODE = "R109"
ALLOWABLE = (CODE,)
CHANCE = 2.0  # standard deviations of the difference, were both directions as likely
NO_SCALE = (
    "1 is the best state in a table of transitions, and state_1 is the earlier one: number the states the other "
    "way round, or exchange the two columns."
)

_log = logging.getLogger("rekka")


@dataclass(frozen=True)
class Moves:
    """Pairs of visits whose condition improved, and worsened; ``turn``: what to do if the scale is upside down."""

    upward: int
    downward: int
    turn: str = NO_SCALE

    @property
    def any(self) -> bool:
        """Whether there is a move to judge by."""
        return self.upward + self.downward > 0

    @property
    def mostly_up(self) -> bool:
        """Whether more of them go up than down."""
        return self.upward > self.downward

    @property
    def upside_down(self) -> bool:
        """Whether so many more go up that it is no chance: a few repairs among a few bridges prove nothing."""
        return self.upward - self.downward > CHANCE * math.sqrt(self.upward + self.downward)

    @property
    def message(self) -> str:
        """Sentence on what was found."""
        found = say(f"check.{CODE}.found", upward=self.upward, downward=self.downward)
        return load_words(ENGLISH).format(found)


def count_moves(query: pl.LazyFrame, name: str) -> Moves:
    """Moves of a table of transitions, by one aggregated query; none where its states are not numbers."""
    schema = query.collect_schema()
    if not all(schema[state].is_numeric() for state in ("state_1", "state_2")):
        return Moves(0, 0)
    start, end = pl.col("state_1"), pl.col("state_2")
    found = collect(query.select(upward=(end < start).sum(), downward=(end > start).sum()), name)
    return Moves(int(found["upward"][0] or 0), int(found["downward"][0] or 0))


def read_allowed(codes: str | Iterable[str]) -> tuple[str, ...]:
    """Codes of findings that are allowed, given as a list or with commas; any that stops no command is refused."""
    texts = [codes] if isinstance(codes, str) else list(codes)
    found = tuple(dict.fromkeys(part.strip().upper() for text in texts for part in text.split(",")))
    for code in found:
        if code not in ALLOWABLE:
            now = "" if current(code) == code else f", which is now {current(code)}"
            raise BadOption(
                f"allow is {code!r}{now}; it can be {name_some(ALLOWABLE)}. Other findings cannot be allowed: "
                "rows that no fit can take are refused, and a component that cannot be fitted leaves the others "
                "alone.",
                option="allow",
                value=code,
                choices=list(ALLOWABLE),
            )
    return found


def refuse_upside_down(moves: Moves, allow: Sequence[str] = ()) -> None:
    """Refuse a table in which more moves go up than down; one that is allowed is said in a line all the same."""
    allowed = read_allowed(allow)
    if not moves.upside_down:
        return
    if CODE in allowed:
        _log.warning("%s, allowed: %s", CODE, moves.message)
        return
    raise StoppedByCheck(
        f"{CODE}: {moves.message} {moves.turn} To continue anyway: --allow {CODE}, in Python allow=[{CODE!r}].",
        code=CODE,
        upward=moves.upward,
        downward=moves.downward,
    )
