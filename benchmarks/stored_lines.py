"""Records of long runs, one line each, appended as they are made: a run that was stopped continues from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read_lines(file: Path) -> list[Record]:
    """Records of a file, without a line in which a run was stopped."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue  # the run was stopped within this line
    return found


def read_numbered(file: Path, digests: Mapping[str, int], name: str = "setting") -> dict[str, dict[int, Record]]:
    """Records of each setting by number, without those of settings that have changed since, by their digests."""
    found: dict[str, dict[int, Record]] = {setting: {} for setting in digests}
    for one in read_lines(file):
        if digests.get(one[name]) == one["digest"]:
            found[one[name]][one["number"]] = one
    return found


def append_line(file: Path, record: Record) -> None:
    """Add a record, on a line of its own even after one in which a run was stopped."""
    line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
    with file.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            line = line if stream.read() == b"\n" else f"\n{line}"
        stream.write(line.encode())
