"""Documents that the tests of tables and exports share: a plain study, a hostile one, one where all fails."""

from functools import lru_cache
from typing import Any

import polars as pl
from page_cases import share_document
from study_cases import draw_rows

import rekka
from rekka.report.document import Document
from rekka.report.networks import find_network
from rekka.report.summarize import summarize
from rekka.report.tables.catalog import list_tables
from rekka.report.text import load_words
from rekka.report.views import TableView

WORDS = load_words("en")
HOSTILE = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x.example")',
    "long " * 59 + "long",
    "\u202eעברית שלום",
    "two\nlines | and a pipe",
    "-1+1 * `code` [link](http://x.example) $x$ \\textbf{&%#_~^}",
)


@lru_cache
def plain_document() -> Document:
    """Two cases under both presets, chosen by the guarded rule, with calibration and stability."""
    return share_document("plain", _summarize_plain)


def _summarize_plain() -> Document:
    rows = draw_rows(n=300).with_columns(member=pl.format("M-{}", pl.int_range(pl.len())))
    study = rekka.compare(rows, preset="both", guard={"resamples": 0}, select_on="validation")
    calibrations = {
        ("exact", case): study.calibration(case, "exact", replicates=19) for case in study.cases["case"]
    }
    alone = rekka.compare(
        rows, guard={"resamples": 0}, select_on="validation"
    )  # the paper's conditions take seconds to draw again
    stability = rekka.stability(alone, resamples=2, kinds=["bootstrap"], cases=["Pier"], workers=1)
    return summarize(
        study,
        calibrations=calibrations,
        stability=stability,
        network=find_network(study).network,
        title="Bridges of a district",
    )


@lru_cache
def hostile_document() -> Document:
    """Cases with names that would do harm, chosen by the paper's rule."""
    return share_document("hostile", _summarize_hostile)


def _summarize_hostile() -> Document:
    study = rekka.compare(draw_rows(HOSTILE, n=60), methods=("zscore", "boxcox+zscore"), rule="pareto")
    return summarize(study, title=HOSTILE[0])


@lru_cache
def failed_document() -> Document:
    """One case, one method, and no row that moves: nothing can be fitted."""
    rows = draw_rows(("Pier",), n=60).with_columns(state_2=pl.col("state_1"))
    return summarize(rekka.compare(rows, methods=("zscore",)))


def without_cases(document: Document) -> Document:
    """The same with nothing in it: a run that was stopped before its first trial."""
    names = "cases answers findings trials methods selection verdicts floor presets hypotheses calibration models"
    empty: dict[str, Any] = dict.fromkeys(names.split(), ())
    return document.model_copy(update=empty | {"stability": None, "network": None})


def tables_of(document: Document) -> dict[str, TableView]:
    return {table.name: table for table in list_tables(document, WORDS)}


def column(table: TableView, key: str) -> list[Any]:
    """The values of a column."""
    place = [one.key for one in table.columns].index(key)
    return [row.cells[place].value for row in table.rows]


def texts(table: TableView, key: str) -> list[str]:
    place = [one.key for one in table.columns].index(key)
    return [row.cells[place].text for row in table.rows]
