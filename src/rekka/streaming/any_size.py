"""One door for fits, however many rows there are and wherever they lie: in memory, in files, on a cluster.

Up to 262,144 rows are held whole and sorted once. More are gone through in blocks, with the same bits from memory,
from files, and on the workers of a cluster.
"""

from __future__ import annotations

import logging
from typing import Any

from rekka.core.errors import count_of
from rekka.data.text import collect
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.likelihood import count_threads
from rekka.streaming.blocks import WHOLE, ArraySource, Reading, read_memory
from rekka.streaming.cluster.clients import connect
from rekka.streaming.cluster.source import spread_rows
from rekka.streaming.clustered_errors import leave_for_scores
from rekka.streaming.fit import fit_source, takes_blocks
from rekka.streaming.passes import OnPass
from rekka.streaming.tables import LazyTable, open_source

LOG = logging.getLogger("rekka")


def fit_training(
    training: inputs.Training, covariates: tuple[str, ...], options: Options, on_pass: OnPass | None = None
) -> Fit:
    """Fit checked rows in memory: whole if they are few or the options need that, else in blocks."""
    if training.rows.dt.size <= WHOLE or not takes_blocks(options):
        return fit_rows(training.rows, training.x, covariates, options, training.groups, training.classes)
    source = ArraySource(training.without_classes(), covariates, count_threads(options.threads))
    return fit_source(
        source,
        options,
        n_states=training.rows.n_states,
        class_weight=training.class_weight,
        clustered=training.groups is not None,
        on_pass=on_pass,
    )


def fit_table(
    table: LazyTable,
    reading: Reading,
    options: Options,
    *,
    memory: Any = None,
    n_states: int | None = None,
    class_weight: str | None = None,
    cluster: Any = None,
    on_pass: OnPass | None = None,
) -> Fit:
    """Fit rows in files or of a query; more than fit into memory, or spread over the workers of a cluster."""
    limit = read_memory(memory)
    if table.rows <= WHOLE:
        if cluster is not None:
            LOG.info("%s: few enough to be fitted here, without the cluster", count_of(table.rows, "row"))
        training = _read_whole(table, reading, options, n_states, class_weight)
        return fit_rows(training.rows, training.x, reading.covariates, options, training.groups, training.classes)
    how: dict[str, Any] = {
        "n_states": n_states,
        "class_weight": class_weight,
        "clustered": reading.group is not None,
        "score_bytes": leave_for_scores(limit),
        "on_pass": on_pass,
    }
    if cluster is None:
        return fit_source(open_source(table, reading, memory, options.threads), options, **how)
    with connect(cluster) as session:
        return fit_source(spread_rows(session, table.query, reading, name=table.name), options, **how)


def _read_whole(
    table: LazyTable, reading: Reading, options: Options, n_states: int | None, class_weight: str | None
) -> inputs.Training:
    frame = collect(table.query.select(reading.columns), table.name)
    return inputs.read_training(
        inputs.as_frame(frame),
        frame[reading.end],
        inputs.Columns(reading.start, reading.dt, reading.covariates),
        sample_weight=None if reading.weight is None else frame[reading.weight].to_numpy(),
        groups=None if reading.group is None else frame[reading.group].to_numpy(),
        n_states=n_states,
        class_weight=class_weight,
        clock=make_clock(reading.covariates, options.clock, options.advance),
    )
