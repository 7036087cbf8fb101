"""A short run of benchmarks/fuzz.py, and that it sees what it is there to see."""

import time
from contextlib import suppress

import pytest
import typer
from benchmarks.fuzz_tables import make_sample

from benchmarks import fuzz


def test_damaged_tables_end_in_words_and_half_of_them_reach_a_fit():
    tally = fuzz.run(range(8), 7, compared=8)
    assert [(one.number, one.command, one.what) for one in tally.failures] == []
    assert tally.share >= fuzz.REACHED
    assert {command: sum(codes.values()) for command, codes in tally.codes.items()} == {
        "check": 8, "transitions": 8, "fit": 8, "forecast": 8, "compare": 1,
    }  # fmt: skip


def test_seed_and_number_give_the_same_file_again(tmp_path):
    for number in range(30):
        one, other = (
            make_sample(3, number, tmp_path / name)
            for name in "ab"
            if (tmp_path / name).mkdir(exist_ok=True) is None
        )
        assert one.path.read_bytes() == other.path.read_bytes()
        assert (one.options, one.made) == (other.options, other.made)


app = typer.Typer()


@app.command()
def raising():
    raise ZeroDivisionError("by nothing")


@app.command()
def leaving():
    raise typer.Exit(3)


@app.command()
def showing():
    typer.echo("Traceback (most recent call last):")


@app.command()
def escaping():
    typer.echo("\x1b[31mred", err=True, color=True)


@app.command()
def sleeping():
    with suppress(Exception):  # which must not hide that it does not end
        time.sleep(30)


@app.command()
def inventing(json: bool = False):
    typer.echo("[NaN]")


@app.command()
def good(json: bool = False):
    typer.echo("[1]")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["raising"], "ZeroDivisionError: by nothing"),
        (["leaving"], "exit code 3"),
        (["showing"], "a traceback is shown"),
        (["escaping"], "an escape sequence of the table is shown"),
        (["inventing", "--json"], "the JSON cannot be read"),
        (["sleeping"], "no end within 1 s"),
        (["good", "--json"], ""),
    ],
)
def test_every_kind_of_failure_is_seen(arguments, what, monkeypatch):
    monkeypatch.setattr(fuzz, "app", app)
    monkeypatch.setattr(fuzz, "SECONDS", 1)
    assert fuzz.call(arguments, fuzz.Tally()).what == what
