"""``rekka demo``: the way from raw tables to fitted models, on a simulated inventory of the paper's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import rekka

DEMO_FOLDER = Path("rekka-demo")


def demo(
    folder: Annotated[Path, typer.Option(help="Where the simulated tables go.")] = DEMO_FOLDER,
    seed: Annotated[int, typer.Option(help="The same seed draws the same inventory.")] = 20260924,
) -> None:
    """Draw an inventory, pair its visits, split them by bridge and fit the ten cases.

    Example: rekka demo --folder demo
    """
    console = Console()
    rekka.write_inventory(folder, seed=seed, force=folder == DEMO_FOLDER)
    found = rekka.read_transitions(folder)
    partition = rekka.partition_paper(found.frame)
    console.print(
        f"{len(found.frame):,} transitions from the raw tables in {folder}; {partition.scheme}.", highlight=False
    )
    title = "Ten cases: z-score scaling, Newton on the exact likelihood"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1))
    table.add_column("case", no_wrap=True)
    for column in ("train", "valid.", "golden", "accuracy", "same", "log loss"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("certified", no_wrap=True)
    doubts = []
    with Console(stderr=True).status("Fitting ..."):
        for case, *counts in partition.counts().rows():
            train, golden = (part.filter(case=case) for part in (partition.train, partition.golden))
            model = rekka.ExponentialHazardMarkovModel(scaling="zscore", covariates=found.covariates)
            model.fit(train, train["state_2"])
            known = golden.filter(golden["state_2"] <= model.n_states_)
            table.add_row(
                case,
                *map(str, counts),
                f"{model.score(known, known['state_2']):.3f}",
                f"{(known['state_1'] == known['state_2']).sum() / len(known):.3f}",
                f"{model.log_loss(known, known['state_2']):.3g}",
                "yes" if model.certificate_.certified else "no",
            )
            if not model.certificate_.certified:
                doubts.append(f"{case} is {model.certificate_.verdict}.")
    console.print(table)
    console.print(
        "Accuracy and log loss on golden rows, which no fit has seen; 'same' is the accuracy of predicting no "
        "change at all. Log loss is exact: one row that a small case calls impossible makes it large.",
        highlight=False,
    )
    for doubt in doubts:
        console.print(doubt, highlight=False)
    console.print(f"next: rekka check {folder}", highlight=False)
