"""The benchmark of intervals under errors that all members share: its draws, records, table and log."""

import json

import polars as pl
import pytest
from benchmarks.shocks import SETTINGS, Setting, describe, draw_rows, log_test, measure, read_stored, summarize
from rich.console import Console

from benchmarks import shocks
from rekka.fleet import backtest_scores, shock_origins


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtest_scores, "NETWORKS", 100)
        patch.setattr(shock_origins, "NETWORKS", 100)
        patch.setattr(shock_origins, "ORIGINS", 3)
        patch.setattr(shocks, "BRIDGES", 150)
        yield measure(SETTINGS[2], 0)


def test_draws_are_seeded_and_struck_together():
    still, again = (draw_rows(SETTINGS[0], 1) for _ in range(2))
    assert still.equals(again)
    assert still["date_2"].dt.year().max() < shocks.END
    assert (still["state_2"] >= still["state_1"]).all()

    def rates(setting: Setting) -> list[float]:
        rows = pl.concat([draw_rows(setting, number) for number in range(2)])
        moved = (pl.col("state_2") - pl.col("state_1")).mean()
        return rows.group_by(pl.col("date_2").dt.year()).agg(moved)["state_2"].to_list()

    assert pl.Series(rates(Setting("wild", 1.5))).std() > 2 * pl.Series(rates(SETTINGS[0])).std()


def test_a_record_is_stored_and_shown(record, tmp_path):
    assert record["sigma"] >= 0.0
    file = tmp_path / "shocks.jsonl"
    old = record | {"digest": 1}
    file.write_text("\n".join([json.dumps(record), json.dumps(old), '{"setting": "hal']), encoding="utf-8")
    stored = read_stored(file)
    assert stored[SETTINGS[2].name] == {0: json.loads(json.dumps(record))}
    text = describe(stored)
    assert text.count("\n| ") == 3  # header, rule and one setting
    assert f"| {SETTINGS[2].name} | 1 |" in text


def test_looks_at_the_test_years_are_logged(record, tmp_path, monkeypatch):
    one = record | {"model": "pairs", "until": 2008, "last": 2013}
    monkeypatch.setattr(shocks, "compare_ontario", lambda *_: [summarize(one)])
    for _ in range(2):
        log_test(["pairs"], Console(quiet=True), tmp_path / "test.json")
    looks = json.loads((tmp_path / "test.json").read_text())
    assert [look["number"] for look in looks] == [1, 2]
    found = looks[0]["found"][0]
    assert found["or_worse"]["inside"] <= found["or_worse"]["inside_shock"]
    assert found["or_worse"]["width"] <= found["or_worse"]["width_shock"]
