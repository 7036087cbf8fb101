"""``rekka compare`` on a table that is gone through block by block, as a person meets it."""

from pathlib import Path

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.streaming import blocks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two Parquet files, whose 3,000 rows count as very many."""
    monkeypatch.setattr(blocks, "WHOLE", 2000)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 500)
    rows = rekka.simulate_transitions(3000, n_states=3, seed=2)
    nation = tmp_path / "nation"
    nation.mkdir()
    rows[:1800].write_parquet(nation / "part-0.parquet")
    rows[1800:].write_parquet(nation / "part-1.parquet")
    return nation


def test_compare(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--methods", "zscore,minmax", "--resamples", 1, "--out", out)
    done = call("compare", folder, "--memory", "1GB", *options)
    assert done.exit_code == 0, done.stderr
    told, said = (" ".join(text.split()) for text in (done.stderr, done.stdout))
    assert "3,000 rows, memory limit 1 GB: 1 case with its training rows held in memory" in told
    assert (
        "No report yet, and no forecast: they read all rows into memory. Where there is room: rekka report" in said
    )
    assert not (out / "report.html").exists()
    assert "zscore" in done.stdout
    assert "memory limit 1 GB" in (out / "log.txt").read_text(encoding="utf-8")
    assert pl.read_csv(out / "trials.csv")["certified"].all()
    shown = call("show", out)
    assert shown.exit_code == 0, shown.stderr
    again = call("compare", "--resume", out, "--memory", "2GB")
    assert again.exit_code == 0, again.stderr
    assert "memory limit 2 GB" in " ".join(again.stderr.split())


def test_a_limit_that_is_none(folder: Path, tmp_path: Path) -> None:
    done = call("compare", folder, "--memory", "plenty", "--out", tmp_path / "run")
    assert done.exit_code != 0
    assert "memory is 'plenty'; a size such as 1GB or 500MB is needed." in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()
