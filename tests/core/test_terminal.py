"""Names with control characters in them: a terminal is shown them, and does not obey."""

import io
import json
import logging
import re

import polars as pl
import pytest
from rich.table import Table
from rich.text import Text
from test_cli import call

from rekka import cli
from rekka.commands.bars import new_bar
from rekka.core import terminal
from rekka.core.terminal import new_console, show_text

ESCAPES = ("\x1b[2J", "\x9b31m", "\x07", "\x7f", "\r", "\x00", "\u202e", "\u2066")
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("text", ESCAPES)
def test_control_characters_are_shown(text):
    assert not RAW.search(show_text(f"a{text}b"))
    assert show_text("\x1b\u202e 橋\tä\n") == "\\x1b\\u202e 橋\tä\n"


@pytest.mark.parametrize("text", ESCAPES)
def test_a_console_shows_them_whatever_they_come_in(text):
    console = new_console()
    console.file = io.StringIO()
    table = Table(f"h{text}", title=f"t{text}")
    table.add_row(f"c{text}", Text(f"x{text}"))
    for renderable in (f"a{text}", Text(f"a{text}"), table):
        console.print(renderable)
    assert not RAW.search(console.file.getvalue())
    assert console.file.getvalue().count(show_text(text)) >= 4  # what came as Text is cut to its own width


def test_a_console_keeps_its_own_codes_and_names_as_they_are(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = new_console()
    console.file = io.StringIO()
    console.print("[bold]:car:[/]", highlight=False)
    assert console.file.getvalue() == "\x1b[1m:car:\x1b[0m\n"


def test_columns_of_a_table_stay_in_line():
    console = new_console()
    console.file = io.StringIO()
    table = Table("name", "n", box=None)
    table.add_row("a\x1b[31mb", "1")
    table.add_row("plain", "2")
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert lines[1].index("1", 13) == lines[2].index("2")


def test_a_bar_shows_them(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = new_console(stderr=True)
    console.file, console._force_terminal, console.is_interactive = io.StringIO(), True, True
    with new_bar(console) as progress:
        progress.add_task("Pier\x1b]0;title\x07", total=2, what="Trials")
        progress.refresh()
    assert "Pier\\x1b]0;" in console.file.getvalue()
    assert "\x1b]0;" not in console.file.getvalue()


def test_json_has_them_escaped_and_unchanged(capsys):
    terminal.echo_json({"name": "".join(ESCAPES)})
    printed = capsys.readouterr().out
    assert not RAW.search(printed)
    assert json.loads(printed) == {"name": "".join(ESCAPES)}


@pytest.fixture
def hostile(tmp_path):
    """Bridges, a case, states and a covariate with control characters in their names."""
    rows = [
        (
            f"B{bridge}\x1b[2J\u202e",
            "Deck\x1b[31m\x9b",
            f"{2000 + 5 * visit}-05-01",
            1 + min(visit, 2),
            float(bridge),
        )
        for bridge in range(20)
        for visit in range(4)
    ]
    path = tmp_path / "i\x1b[5m.parquet"
    columns = ["bridge", "case", "date", "state", "age\x1b[7m"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)
    return path


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_command_prints_them(hostile, tmp_path, form):
    out = tmp_path / "m\x1b.json"
    for command in (
        ("check", hostile, "--covariate", "age\x1b[7m", "--all"),
        ("transitions", hostile, "--covariate", "age\x1b[7m", "--out", tmp_path / "t.csv"),
        ("check", tmp_path / "t.csv"),
        ("fit", tmp_path / "t.csv", "--ridge", 1, "--out", out),
        ("matrix", out),
        ("effects", out, "--draws", 100),
        ("forecast", out, tmp_path / "t.csv", "--years", 1, "--out", tmp_path / "f"),
        ("backtest", tmp_path / "t.csv", "--until-visit", 2, "--ridge", 1, "--draws", 100),
    ):
        done = call(*command, *form)
        assert done.exit_code in (0, 1), done.output
        assert not isinstance(done.exception, Exception), done.exception
        assert done.stdout
        assert not RAW.search(done.stdout + done.stderr), command


def test_no_error_prints_them(hostile, tmp_path):
    for command in (
        ("check", tmp_path / "none\x1b[2J.csv"),
        ("check", hostile, "--date", "x\x1b[2J"),
        ("check", hostile, "--no\x1b[2J"),
        ("check", hostile, "--partition", "\x1b[2J"),
        ("check\x1b[2J",),
        ("--no\x1b[2J",),
        ("matrix", hostile),
        ("fit", hostile, "--only", "\x1b[2J"),
    ):
        done = call(*command)
        assert done.exit_code in (1, 2), done.output
        assert done.stderr
        assert not RAW.search(done.output), command


def test_no_line_of_the_log_prints_them(capsys):
    cli._Printer().emit(logging.LogRecord("rekka", logging.INFO, "", 0, "Pier\x1b[2J", (), None))
    assert capsys.readouterr().err == "Pier\\x1b[2J\n"
