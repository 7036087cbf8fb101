"""The command line: parse, call one function, print."""

from __future__ import annotations

from typing import Annotated

import typer

import rekka

app = typer.Typer(
    name="rekka",
    help="Deterioration models you can trust, from infrastructure inspection records.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rekka {rekka.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Deterioration models you can trust, from infrastructure inspection records."""


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=50, help="Transitions to draw.")] = 1600,
    states: Annotated[int, typer.Option(min=2, help="Condition states.")] = 5,
    seed: Annotated[int, typer.Option(help="The same seed draws the same rows.")] = 20260924,
) -> None:
    """Draw a sample with known hazards, fit it, print summary and certificate.

    Example: rekka demo --rows 5000 --states 4
    """
    data = rekka.simulate_transitions(rows, n_states=states, seed=seed)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    units = {"age_at_inspection_1": 10, "bridge_length": 10, "bridge_area": 100, "traffic_mean": 1000}
    typer.echo(f"{rows} simulated transitions of {data['bridge_id'].n_unique()} bridges, {states} states\n")
    model = rekka.ExponentialHazardMarkovModel(scaling="zscore", units=units)
    model.fit(X, y, groups=data["bridge_id"].to_numpy())
    typer.echo(model.summary())
    typer.echo(f"\n{model.certificate_}\n")
    outcome = model.outcome_
    typer.echo(
        f"solver: {outcome.message}; {outcome.iterations} iterations, {outcome.evaluations} evaluations, "
        f"{outcome.seconds:.4f} s"
    )
    unchanged = (data["state_1"] == data["state_2"]).sum() / rows
    typer.echo(
        f"accuracy on these rows {model.score(X, y):.4f} (nothing changes: {unchanged:.4f}), "
        f"log loss {model.log_loss(X, y):.4f}"
    )


def main() -> None:
    """Entry point of the ``rekka`` command."""
    app()
