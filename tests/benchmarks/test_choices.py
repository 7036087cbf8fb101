"""The benchmark of choices: what it stores is the library's choice, and its page counts what is stored."""

import json
from dataclasses import replace

import polars as pl
import pytest
from benchmarks.reproduction_words import find_marks
from benchmarks.simulated_histories import Setting
from rich.console import Console

from benchmarks import choices
from rekka.evaluation.scores import find_wilson
from rekka.fleet import rolling

SITUATIONS = {one.name: one for one in choices.list_situations()}
TINY = choices.Situation(Setting("trend -0.1 a year", 2.0, 8, trend=-0.1), bridges=200)


def test_situations_have_names_and_digests_of_their_own(monkeypatch):
    digests = {one.digest for one in SITUATIONS.values()}
    assert len(digests) == len(SITUATIONS) == len(choices.list_situations())
    assert replace(TINY, bridges=201).digest != TINY.digest
    monkeypatch.setattr(rolling, "LEAST_GAIN", 0.02)
    assert not digests & {one.digest for one in SITUATIONS.values()}  # another rule begins anew


def test_what_is_right_follows_from_the_draw():
    right = {one.setting.name: (one.right, one.aim) for one in SITUATIONS.values()}
    assert right["plain"] == (("plain",), choices.PLAIN_AIM)
    assert right["errors 5 %"] == (("errors",), choices.AIM)
    assert right["errors 0.5 %"] == (("errors",), None)  # too weak to matter
    assert right["errors 5 %, improvements 3 %"] == (("errors+improvements",), None)
    assert right["ageing 0.03 a year, visits every 5 years"] == (("plain", "running"), choices.PLAIN_AIM)


def test_tables_with_age_are_the_same_tables():
    names = [f"frailty 0.5, from age 0-30, visits every 5 years{age}, 1,000 bridges" for age in ("", ", with age")]
    without, dated = (SITUATIONS[name] for name in names)
    assert (without.covariates, dated.covariates) == (("x",), ("x", "age"))
    assert without.digest != dated.digest
    drawn = [choices.draw_transitions(replace(one, bridges=10), 3) for one in (without, dated)]
    assert drawn[0].equals(drawn[1])


def test_transitions_are_as_a_choice_takes_them():
    rows = choices.draw_transitions(TINY, 0)
    assert rows.schema["date_1"] == rows.schema["date_2"] == pl.Date
    years = (rows["date_2"] - rows["date_1"]).dt.total_days() / choices.DAYS
    assert float((years - rows["interval_years"]).abs().max()) < 1.01 / choices.DAYS
    rows = rows.sort("bridge_id", "date_1")
    before = rows.select(pl.col("date_2", "state_2").shift().over("bridge_id"))
    later = rows.with_columns(day=before["date_2"], state=before["state_2"]).drop_nulls("day")
    assert len(later) == 200 * 6
    assert (later["date_1"] == later["day"]).all()
    assert (later["state_1"] == later["state"]).all()
    assert rows["date_1"].dt.year().min() == 2000


def test_a_table_gives_the_librarys_choice():
    record = choices.measure_table(TINY, 1)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["chosen"] == "trend"
    assert (record["setting"], record["number"], record["digest"]) == (TINY.name, 1, TINY.digest)
    first = [one for one in record["tried"] if one[0] == 1]
    assert [one[1] for one in first] == ["trend", "frailty"]  # no rating improves, no covariate advances
    _, _, difference, low, high, reason = first[0]
    assert low < difference < high < 0
    assert reason is None


def test_a_run_continues_where_the_last_one_ended(tmp_path, monkeypatch):
    calls, file = [], tmp_path / "stored.jsonl"

    def measure(situation, number):
        calls.append((situation.setting.name, number))
        return {
            "setting": situation.name,
            "number": number,
            "digest": situation.digest,
            "chosen": "plain",
            "seconds": 1.0,
        }

    monkeypatch.setattr(choices, "measure_table", measure)
    some = list(choices.list_situations())[1:3]
    choices.run(some, 1, Console(quiet=True), file)
    with file.open("a") as stream:
        stream.write('{"setting": "err')  # stopped here
    choices.run(some, 2, Console(quiet=True), file)
    names = [one.setting.name for one in some]
    turns = [(name, number) for low in (0, 2) for name in names for number in (low, low + 1)]
    assert calls == turns
    other = json.loads(file.read_text().splitlines()[0]) | {"digest": 0, "number": 9}
    with file.open("a") as stream:
        stream.write(json.dumps(other) + "\n")
    stored = choices.read_stored(file)
    assert sorted(stored[some[0].name]) == [0, 1, 2, 3]  # not 9, of another rule


def records(*chosen):
    return dict(enumerate({"chosen": name} for name in chosen))


def test_the_page_counts_what_is_stored(tmp_path, monkeypatch):
    names = [f"{name}, 500 bridges" for name in ("plain", "errors 5 %", "errors 5 %, trend -0.05")]
    stored = {name: {} for name in SITUATIONS} | {
        names[0]: records(*["plain"] * 9, "trend"),
        names[1]: records(*["errors"] * 7, "plain", "improvements", "errors+frailty"),
        names[2]: records("errors+trend", "errors", "trend", "improvements+trend"),
    }
    plain, errors, both = choices.judge(stored)
    assert (plain.right, plain.less, plain.wrong) == (9, 0, 1)
    assert (errors.right, errors.less, errors.wrong) == (7, 1, 2)
    assert (both.right, both.less, both.wrong) == (1, 2, 1)
    low, high = find_wilson(0.7, 10)
    assert errors.row[3:8] == ("errors", "70%", f"{low:.0%} to {high:.0%}", "10%", "20%")
    assert errors.row[8] == "plain 1, improvements 1, errors+frailty 1"
    assert [one.failure for one in (plain, errors, both)] == [
        "plain, 500 bridges: 90%, aim 95%",
        "errors 5 %, 500 bridges: 70%, aim 80%",
        None,
    ]
    page = tmp_path / "page.md"
    begin, end = find_marks(choices.SECTION)
    page.write_text(f"before\n{begin}\nOUTDATED\n{end}\nafter\n")
    monkeypatch.setattr(choices, "PAGE", page)
    monkeypatch.setattr(choices, "read_stored", lambda *_: stored)
    assert choices.main(["--rounds", "0", "--page"]) == 1
    text = page.read_text()
    assert "| errors 5 % | 500 | 10 | errors | 70% |" in text
    assert "Not met: plain, 500 bridges: 90%, aim 95%; errors 5 %, 500" in text.replace("\n", " ")
    assert "OUTDATED" not in text
    assert text.endswith(f"{end}\nafter\n")


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=lambda one: one.name)
def test_each_situation_can_be_drawn(situation):
    rows = choices.draw_transitions(replace(situation, bridges=10), 0)
    assert len(rows) == 10 * (situation.setting.visits - 1)
