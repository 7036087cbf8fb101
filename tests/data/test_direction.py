"""R109: a scale read from its wrong end stops every command that reads a table, unless it is allowed."""

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.core.errors import BadOption, StoppedByCheck
from rekka.core.language import load_words
from rekka.data.direction import Moves, read_allowed, refuse_upside_down
from rekka.streaming import blocks
from rekka.workflows.tables import look_over

SAID = "condition seems to improve by itself"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Inspections with numbers from 9, the best, to 5, of which 1 is taken as the best unless something is said."""
    drawn = rekka.simulate_inventory(80, preset="plain", seed=3)
    frame = drawn.inspections.filter(case="Pier")
    number = pl.col("state").replace_strict({"a": 9, "b": 8, "c": 7, "d": 6, "e": 5}, return_dtype=pl.Int64)
    path = tmp_path_factory.mktemp("upside") / "ratings.csv"
    frame.with_columns(state=number).write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "pier.json"
    done = call("fit", table, "--no-test-fit", "--best", 9, "--worst", 5, "--out", out)
    assert done.exit_code == 0, done.stderr
    return out


def commands(table, model, out):
    return {
        "check": ("check", table),
        "transitions": ("transitions", table, "--out", out / "t.csv"),
        "fit": ("fit", table),
        "backtest": ("backtest", table, "--until-visit", 3, "--draws", 100),
        "forecast": ("forecast", model, table, "--out", out / "forecast", "--years", 2, "--intervals", "none"),
        "compare": (
            "compare",
            table,
            "--out",
            out / "run",
            "--methods",
            "zscore",
            "--resamples",
            0,
            "--no-report",
        ),
    }


@pytest.mark.parametrize("name", ["check", "transitions", "fit", "backtest", "forecast", "compare"])
def test_every_command_that_reads_a_table_stops(name, table, model, tmp_path):
    wrong = ("--best", 5, "--worst", 9)
    if name == "forecast":  # a model file knows its scale: one that knows none is read as the options say
        model = tmp_path / "bare.json"
        text = rekka.read_transitions(table, state={"best": 9, "worst": 5})
        fitted = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(text.frame, text.frame["state_2"])
        model.write_text(fitted.to_json(case="Pier"), encoding="utf-8")
    command = commands(table, model, tmp_path)[name]
    done = call(*command, *wrong)
    assert done.exit_code == 1, done.output
    said = " ".join(done.output.split())
    assert "R109" in said
    assert SAID in said
    assert "--best 9 --worst 5" in said
    assert not (tmp_path / "t.csv").exists()
    assert not (tmp_path / "run").exists()
    if name != "check":
        assert "--allow R109" in said
        allowed = call(*command, *wrong, "--allow", "R109")
        assert f"{SAID}. Probably" in " ".join(allowed.output.split())
        assert "StoppedByCheck" not in allowed.output


def test_check_says_an_allowed_finding_and_goes_on(table):
    stopped, allowed = call("check", table), call("check", table, "--allow", "r109,R109")
    assert "R109 stop" in stopped.stdout
    assert "R109 stop" in allowed.stdout
    assert "--worst-first" in stopped.stdout


def test_a_code_that_stops_no_command_is_refused(table):
    done = call("fit", table, "--allow", "R103")
    assert done.exit_code == 2
    assert "allow is 'R103'; it can be R109." in done.stderr
    with pytest.raises(BadOption, match="it can be R109"):
        rekka.compare(table, allow=["R999"])


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ({}, "say --worst-first"),
        ({"best": 5, "worst": 9}, "Exchange the two ends: --best 9 --worst 5."),
        ({"labels": [5, 6, 7, 8, 9]}, "--labels 9,8,7,6,5"),
        ({"bands": [6, 7, 8, 9]}, "write the limits the other way round (--bands 9,8,7,6)"),
        ({"bands": [0.5]}, None),
    ],
)
def test_the_remedy_fits_the_way_the_scale_was_given(table, state, remedy):
    moves = rekka.read_transitions(table, state=state).moves
    if remedy is None:
        assert "--bands" not in moves.turn
        assert "--worst-first" not in moves.turn
        return
    assert moves.upside_down
    assert remedy in moves.turn
    assert ("--worst-first" in moves.turn) == (state == {})


def test_turned_round_already_is_to_be_left_out(table):
    right = rekka.read_transitions(table, state={"worst_first": True})
    assert not right.moves.upside_down
    assert "Leave out --worst-first" in right.moves.turn


def test_moves_are_counted_whatever_became_of_the_pairs():
    """Pairs without a covariate are set aside, and have moved all the same: they once made a sound table stop."""
    bridges = [f"B{place}" for place in range(40)]
    frame = pl.DataFrame({
        "bridge": [name for name in bridges for _ in range(2)],
        "date": [2010, 2015] * 40,
        "state": [1, 2] * 30 + [2, 1] * 10,
        "traffic": [None, None] * 35 + [100, 100] * 5,
    })  # fmt: skip
    found = rekka.read_transitions(frame)
    assert found.frame.is_empty()
    assert (found.moves.upward, found.moves.downward) == (10, 30)
    assert not found.moves.upside_down


def test_a_few_repairs_among_a_few_bridges_stop_nothing():
    refuse_upside_down(Moves(3, 1))
    with pytest.raises(StoppedByCheck, match="R109"):
        refuse_upside_down(Moves(8, 0))


def upside_down_pairs(n=200):
    rows = rekka.simulate_transitions(n, n_states=4, seed=2)
    bridge = pl.int_range(pl.len()).cast(pl.String)
    return rows.with_columns(state_1="state_2", state_2="state_1", bridge_id=bridge)


def test_transitions_in_parquet_are_counted_by_a_query(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    upside_down_pairs().write_parquet(path)
    monkeypatch.setattr(blocks, "WHOLE", 50)
    for run in (lambda: rekka.compare(path), lambda: rekka.compare(pl.scan_parquet(path))):
        with pytest.raises(StoppedByCheck, match="number the states the other way round"):
            run()
    done = call("fit", path)
    assert done.exit_code == 1
    assert "R109" in done.stderr


def test_the_library_says_what_was_allowed(caplog):
    with pytest.raises(StoppedByCheck):
        rekka.read_members(upside_down_pairs())
    rekka.read_members(upside_down_pairs(), allow=["R109"])
    assert "R109, allowed: " in caplog.text


def test_a_run_keeps_what_was_allowed(table, tmp_path):
    out = tmp_path / "run"
    options = ("--methods", "zscore", "--resamples", 0, "--no-report", "--no-confirm")
    call("compare", table, "--best", 5, "--worst", 9, "--allow", "R109", "--out", out, *options)
    assert 'allow = [\n    "R109",\n]' in (out / "study.toml").read_text(encoding="utf-8")
    table.touch()
    done = call("compare", "--resume", out, "--no-report")
    assert "StoppedByCheck" not in done.output


@pytest.mark.parametrize(
    ("upward", "downward", "mostly", "upside_down"),
    [(3, 3, False, False), (4, 3, True, False), (4, 0, True, False), (5, 0, True, True), (3, 4, False, False)],
)
def test_two_standard_deviations_are_still_chance(upward, downward, mostly, upside_down):
    moves = Moves(upward, downward)
    assert (moves.mostly_up, moves.upside_down) == (mostly, upside_down)


def test_codes_may_be_written_small():
    assert read_allowed("r109") == read_allowed(["R109, r109"]) == ("R109",)


@pytest.fixture
def rising():
    """An index that rises, for all members but two, between two visits; two columns that may be of repairs."""
    index = {"2010": [60.0] * 38 + [0, 0, 90, 90], "2015": [80.0] * 40 + [70, 70]}
    rehab = {"LAST MAJOR REHAB": ["2012"] * 42, "Repair": [None] * 42, "補修費": [1] * 42}
    return pl.DataFrame({"bridge": [f"B{place}" for place in range(42)], **index, **rehab})


def find_direction(table, **mapping):
    found = rekka.read_transitions(table, state={"bands": [85, 75, 65]}, **mapping)
    return next(one for one in look_over(found, None).findings if one.code == "R109")


def test_repairs_and_zeros_may_be_the_cause_too(rising):
    finding = find_direction(rising)
    assert "column with --repair; it may be LAST MAJOR REHAB or Repair or 補修費." in finding.remedy
    assert "exactly 0 in 2 records, which may mean not inspected (R111)" in finding.remedy
    assert "write the limits the other way round" in finding.remedy
    remedy = finding.describe(load_words("ja")).remedy
    assert "--repair で指定する（列名からは" in remedy
    assert "未点検を表すおそれがある（R111）" in remedy


def test_a_table_without_such_columns_is_asked_for_one(rising):
    bare = rising.select("bridge", "2010", "2015").with_columns(pl.col("2010").replace(0, 60))
    remedy = find_direction(bare).remedy
    assert remedy.endswith("if the table has a column of repairs, name it with --repair.")
    assert "R111" not in remedy


def test_repairs_that_are_named_are_no_improvements_and_are_not_asked_for_again(rising):
    some = rising.with_columns(pl.when(pl.int_range(pl.len()) < 5).then("LAST MAJOR REHAB").alias("done"))
    finding = find_direction(some, columns={"repairs": ["done"]})
    assert finding.values["upward"] == 35
    assert "--repair" not in finding.remedy
