"""Where the rows of a study come from, as its plan says it: tables by their paths, the inventory, or a program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rekka.core.errors import BadOption
from rekka.core.folders import relate
from rekka.data.mapping import load_mapping
from rekka.data.options import ReadingOptions, list_tables, read_options
from rekka.data.partition import PAPER_SEED, Partition
from rekka.data.transitions import Transitions


def describe_tables(source: Sequence[str | Path], how: ReadingOptions, out: Path | None) -> dict[str, Any]:
    """The [data] of a plan for tables; paths count from the run folder, so that both can be moved together."""
    read = load_mapping(how.mapping, how.changes).model_dump(mode="json", exclude_unset=True, exclude_none=True)
    name = str if out is None else partial(relate, base=out)
    if "join" in read:
        read["join"] = [join | {"file": name(join["file"])} for join in read["join"]]
    plan = {"kind": "tables", "source": tuple(name(one) for one in source), "nbi": how.nbi, "mapping": read}
    return plan | {"allow": tuple(how.allow)}


def describe_data(data: Any, mapping: Any, out: Path | None) -> tuple[dict[str, Any], Any]:
    """The [data] of a plan, and the data where they do not come from files."""
    if data is None:
        return {"kind": "inventory", "seed": PAPER_SEED}, None
    given = {"kind": "given"}
    if isinstance(data, Transitions | Partition):
        if mapping is not None:
            raise BadOption("mapping says how a table is read; Transitions and a Partition need none.")
        return given, data
    how = read_options(mapping)
    joins = load_mapping(how.mapping, how.changes).join
    if not list_tables(data) or not all(isinstance(join.file, str | Path) for join in joins):
        return given, how.scan(data) or how.transitions(data)
    return describe_tables(list_tables(data), how, out), None
