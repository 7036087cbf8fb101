"""How much memory there is to work in, and in words."""

from __future__ import annotations

import os
import re
from typing import Any

from rekka.core.errors import BadOption

UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
LEAST = 500_000_000  # Python, its libraries, compiled kernels and what polars reads ahead take about so much
SHARE = 0.5  # of what is free, where no limit is given
UNKNOWN = 2_000_000_000  # where the machine does not say what is free


def read_memory(limit: Any) -> int:
    """Bytes of a limit such as "1GB", "512 MiB" or a number; None takes half of what is free."""
    if limit is None:
        return int(SHARE * free_memory())
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", str(limit), flags=re.IGNORECASE)
    if isinstance(limit, bool) or found is None:
        raise BadOption(f"memory is {limit!r}; a size such as 1GB or 500MB is needed.", option="memory")
    size = int(float(found[1]) * UNITS[(found[2] or "").lower()])
    if size < LEAST:
        raise BadOption(
            f"memory is {limit!r}; at least {say_bytes(LEAST)} are needed, for rekka itself.", option="memory"
        )
    return size


def free_memory() -> int:
    """Bytes that no program uses, or that are there only to speed files up."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read(), flags=re.MULTILINE)
        if found:
            return int(found[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):  # another system
        return UNKNOWN


def say_bytes(size: int) -> str:
    """'1.2 GB' for a message."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"
