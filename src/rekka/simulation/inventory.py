"""An agency's raw tables, simulated: bridges, inspections and traffic, with the hazards they were drawn from."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekka.core.errors import BadOption, bad_option
from rekka.core.files import Batch, has_mark, make_folder, naming, remove_file, scratch_beside, writing_together
from rekka.data.partition import PAPER_SEED, PAPER_VALIDATION, split_bridges
from rekka.simulation import soiling as soiling
from rekka.simulation import stock
from rekka.simulation.elements import DrawnElements

Counts = dict[str, int]
Progress = Callable[[int, int], None]

# Transitions of each case that train, validate and are golden: paper, Dataset Description.
PAPER_COUNTS = {
    "Main girder": (624, 217, 1568),
    "Pier": (1158, 285, 1644),
    "Bearing": (1634, 640, 1995),
    "Deck slab": (1491, 325, 1662),
    "Cross girder": (216, 113, 275),
    "Longitudinal girder": (86, 41, 145),
    "Abutment": (271, 91, 438),
    "Expansion joint": (323, 105, 351),
    "Slope protection": (27, 14, 38),
    "Pavement": (742, 208, 974),
}
PAPER_BRIDGES = 600
PRESETS = ("paper", "plain")
FORMATS = ("csv", "parquet")
TABLES = ("inventory", "inspections", "traffic")
TRUTH = "truth.json"  # written last, beside the tables
TRUTH_MARK = b'"formula": "The hazard of leaving state k'  # in every one of these files
BLOCK_BRIDGES = 20_000  # drawn at a time: about a million inspections
ROW_GROUP = 500_000  # rows
_BLANKED = ("completion_year", "bridge_length", "bridge_width")
FORMULA = (
    "The hazard of leaving state k, per year, is exp(intercept + sum of coefficient times covariate), constant "
    "between two visits: age in years at the first visit (completion_year means its 1 January); natural "
    "logarithms of bridge_length (m), of bridge_area = bridge_length x bridge_width (m2), and of traffic_mean, "
    "the mean of the two visits' traffic (vehicles a day). States 1..5 are a..e; state 5 is never left. Months "
    "are 12 year + (month - 1) + (day - 1) / days in the month; years are months / 12."
)


@dataclass(frozen=True)
class Inventory:
    """Raw tables as an agency exports them, and the hazards they were drawn from.

    ``inventory``    a row for each bridge: completion_year, bridge_length (m), bridge_width (m)
    ``inspections``  a row for each visit of a member: case, member, visit, date, state (a to e)
    ``traffic``      a row for each bridge and visit: vehicles a day
    ``truth``        hazards, elements, options and counts of dirt, as plain data

    Examples
    --------
    >>> import rekka
    >>> drawn = rekka.simulate_inventory(20, preset="plain")
    >>> drawn.inspections.columns
    ['bridge_id', 'case', 'member', 'visit', 'date', 'state']

    """

    inventory: pl.DataFrame
    inspections: pl.DataFrame
    traffic: pl.DataFrame
    truth: dict[str, Any]


def simulate_inventory(
    bridges: int | None = None,
    *,
    preset: str = "paper",
    seed: int = 20260924,
    dirt: float = 0.0,
    error: float = 0.0,
    frailty: float = 0.0,
    improvements: float = 0.0,
    trend: float = 0.0,
) -> Inventory:
    """Draw a bridge inventory with up to five rounds of inspections from known hazards.

    Parameters
    ----------
    bridges : int or None
        Number of bridges, for preset "plain".
    preset : "paper" or "plain"
        "paper" has 600 bridges, and ten cases of exactly ``PAPER_COUNTS`` transitions under ``partition_paper``;
        "plain" has every member in every round since completion.
    seed : int
        The same seed draws the same tables.
    dirt : float
        Share, from 0 to 1, of each kind of dirt: repairs (of bridges), blanks, stray text, upper-case and
        full-width letters, copied and contradicting rows, mixed date formats. Counted in ``truth["dirt"]``.
    error : float
        Probability that the inspector rates one better or one worse than the true state at a visit, half each; at
        the ends of the scale in the one possible direction.
    frailty : float
        Variance of a factor, gamma with mean 1, of all hazards of a bridge's members of one case.
    improvements : float
        Probability a year that the true state becomes one better, without a record.
    trend : float
        Slope of all log hazards per calendar year, from 1 January 2004 on.

    Values of the last four other than 0 are in ``truth["elements"]``; ``truth["formula"]`` says what they do.

    Examples
    --------
    >>> import rekka
    >>> len(rekka.simulate_inventory().inventory)
    600

    """
    elements = DrawnElements.check(error=error, frailty=frailty, improvements=improvements, trend=trend)
    plan = _check_options(bridges, preset, seed, dirt, elements)
    blocks = list(plan.draw())
    tables = {name: pl.concat([block.tables[name] for block in blocks]) for name in TABLES}
    return Inventory(**tables, truth=plan.truth([block.dirt for block in blocks]))


def write_inventory(
    folder: str | os.PathLike[str],
    bridges: int | None = None,
    *,
    preset: str = "paper",
    seed: int = 20260924,
    dirt: float = 0.0,
    error: float = 0.0,
    frailty: float = 0.0,
    improvements: float = 0.0,
    trend: float = 0.0,
    format: str = "csv",  # noqa: A002
    force: bool = False,
    on_progress: Progress | None = None,
) -> list[Path]:
    """Write the tables of ``simulate_inventory`` and truth.json to a folder, block by block, in bounded memory.

    ``format`` is "csv" or "parquet". ``on_progress`` is called after each block with the bridges written so far
    and the number of all. Returns the files. Tables that are there already are written over only with ``force``,
    when all new ones are whole; the same options write the same bytes.

    Examples
    --------
    >>> import rekka
    >>> [file.name for file in rekka.write_inventory("simulated", 20, preset="plain")]
    ['inventory.csv', 'inspections.csv', 'traffic.csv', 'truth.json']

    """
    elements = DrawnElements.check(error=error, frailty=frailty, improvements=improvements, trend=trend)
    plan = _check_options(bridges, preset, seed, dirt, elements)
    if format not in FORMATS:
        raise bad_option("format", format, FORMATS)
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise BadOption(f"folder is {str(home)!r}, which is a file; a folder, there or not yet, is needed.")
    there = sorted(file.name for name in (*TABLES, "truth") for file in home.glob(f"{name}.*"))
    if there and not force:
        raise BadOption(f"{home.name} has {there[0]} already. Give another folder, or force to write over it.")
    make_folder(home)
    files = {name: home / f"{name}.{format}" for name in TABLES}
    truth = home / TRUTH
    with writing_together() as batch:
        counts = _write_tables(batch, files, plan, format, on_progress or (lambda done, total: None))
        with batch.fill(truth) as file:
            file.write_text(json.dumps(plan.truth(counts), indent=1) + "\n", encoding="utf-8")
    for name in TABLES:  # not in two formats side by side
        for other in FORMATS:
            if other != format:
                remove_file(home / f"{name}.{other}")
    return [*files.values(), truth]


def is_simulated(place: Path) -> bool:
    """Whether a folder, or one of the tables in it, is a simulated inventory: its truth is beside the tables.

    Examples
    --------
    >>> import rekka
    >>> _ = rekka.write_inventory("simulated", 20, preset="plain")
    >>> is_simulated(Path("simulated")), is_simulated(Path("simulated/bridges.csv"))
    (True, False)

    """
    folder = place if place.is_dir() else place.parent
    truth = folder / TRUTH
    return (folder == place or place.stem in TABLES) and truth.is_file() and has_mark(TRUTH_MARK)(truth)


@dataclass(frozen=True)
class _Block:
    """Tables of one block of bridges and the counts of their dirt."""

    tables: dict[str, pl.DataFrame]
    dirt: Counts


@dataclass(frozen=True)
class _Plan:
    """Checked options: what to draw."""

    bridges: int
    preset: str
    seed: int
    dirt: float
    elements: DrawnElements

    def draw(self) -> Iterator[_Block]:
        """Blocks in order, each with generators of its own."""
        for block, first in enumerate(range(0, self.bridges, BLOCK_BRIDGES)):
            yield self._draw_block(block, first, min(BLOCK_BRIDGES, self.bridges - first))

    def truth(self, dirt: Sequence[Counts]) -> dict[str, Any]:
        """Hazards, options and counts of dirt, as plain values; dirt is added up over the blocks."""
        hazards = {
            case: {str(k): dict(zip(stock.TERMS, beta, strict=True)) for k, beta in enumerate(betas, start=1)}
            for case, betas in zip(stock.CASES, stock.true_coefficients().tolist(), strict=True)
        }
        return {
            "preset": self.preset,
            "bridges": self.bridges,
            "seed": self.seed,
            "formula": FORMULA + self.elements.formula,
            "hazards": hazards,
            **({"elements": self.elements.on} if self.elements.on else {}),
            "first_visit": dict(zip(stock.LETTERS, stock.FIRST_STATES, strict=True)),
            "dirt": {kind: sum(block[kind] for block in dirt) for kind in dirt[0]},
        }

    def _draw_block(self, block: int, first: int, n: int) -> _Block:
        # Dirt and elements have generators of their own: they change no draw but those they concern.
        rng, soil, *streams = (
            np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
            for key in ((block,), *((block, stream) for stream in range(1, 5)))
        )
        bridges = stock.draw_bridges(first, n, self.bridges, rng)
        members = _allot_paper(bridges, rng) if self.preset == "paper" else stock.draw_members(bridges, rng)
        repairs = soiling.draw_repairs(n, stock.ROUNDS, self.dirt, soil)
        states, lifted = stock.draw_states(bridges, members, repairs, rng, soil, self.elements, streams)
        inventory, traffic = bridges.inventory(), bridges.traffic_table()
        inspections = stock.tabulate_inspections(bridges, members, states)
        dirt: Counts = {}
        if self.dirt:
            years = bridges.month // 12
            inventory, repaired = soiling.record_repairs(inventory, repairs, years, members.bridge, lifted, soil)
            inventory, unknown = soiling.soil_blanks(inventory, _BLANKED, self.dirt, soil)
            traffic, uncounted = soiling.soil_blanks(traffic, ["traffic"], self.dirt, soil)
            inspections, soiled = soiling.soil_inspections(inspections, stock.LETTERS, self.dirt, soil)
            dirt = repaired | unknown | uncounted | soiled
        return _Block(dict(zip(TABLES, (inventory, inspections, traffic), strict=True)), dirt)


def _check_options(bridges: int | None, preset: str, seed: int, dirt: float, elements: DrawnElements) -> _Plan:
    """Plan, or what is wrong with an option."""
    if preset not in PRESETS:
        raise bad_option("preset", preset, PRESETS)
    if preset == "paper" and bridges is not None:
        raise BadOption(
            f"bridges is {bridges!r}, but preset 'paper' has its own {PAPER_BRIDGES}. "
            "Leave bridges out, or choose preset 'plain'."
        )
    if preset == "plain" and not _is_whole(bridges, 1):
        raise BadOption(f"bridges is {bridges!r}; preset 'plain' needs a whole number, 1 or more.")
    if not _is_whole(seed, 0):
        raise BadOption(f"seed is {seed!r}; a whole number, 0 or more, is needed.")
    if isinstance(dirt, bool) or not isinstance(dirt, int | float) or not 0 <= dirt <= 1:
        raise BadOption(f"dirt is {dirt!r}; a share from 0 to 1 is needed, e.g. 0.02.")
    return _Plan(PAPER_BRIDGES if bridges is None else bridges, preset, seed, float(dirt), elements)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _allot_paper(bridges: stock.Bridges, rng: np.random.Generator) -> stock.DrawnMembers:
    """Members in the paper's numbers for any seed: the held-out split depends on the bridges' names alone."""
    names = bridges.names.to_list()
    shares = {"validation": PAPER_VALIDATION, "golden": 1 - PAPER_VALIDATION}
    part = split_bridges(names, shares, PAPER_SEED)
    validates = np.array([part[name] == "validation" for name in names])
    return stock.allot_members(bridges, [PAPER_COUNTS[case] for case in stock.CASES], validates, rng)


def _write_tables(
    batch: Batch,
    files: Mapping[str, Path],
    plan: _Plan,
    kind: str,
    on_progress: Progress,
) -> list[Counts]:
    """Write the tables block by block; return the counts of dirt of each block.

    CSV files grow by the blocks. Parquet files are joined at the end from parts on the same disk.
    """
    counts: list[Counts] = []
    blocks = -(-plan.bridges // BLOCK_BRIDGES)
    with contextlib.ExitStack() as stack:
        if kind == "csv":
            grown = {name: batch.add(file) for name, file in files.items()}
        else:
            parts = {name: stack.enter_context(scratch_beside(file, blocks)) for name, file in files.items()}
        for block in plan.draw():
            for name, table in block.tables.items():
                with naming(files[name]):
                    if kind == "csv":
                        with grown[name].open("ab") as file:
                            table.write_csv(file, include_header=not counts)
                    else:
                        table.write_parquet(parts[name][len(counts)])
            counts.append(block.dirt)
            on_progress(min(len(counts) * BLOCK_BRIDGES, plan.bridges), plan.bridges)
        for name in TABLES if kind == "parquet" else ():
            with batch.fill(files[name]) as place:
                pl.scan_parquet(parts[name], glob=False).sink_parquet(place, row_group_size=ROW_GROUP)
    return counts
