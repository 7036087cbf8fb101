"""``rekka stability`` as a person meets it."""

import json
import os
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from test_cli import call

import rekka
from rekka.commands.stability import _watch
from rekka.report.terminal.study import print_stability
from rekka.study import stability as module
from rekka.study.draws import Unit, refit_draws

OPTIONS = ("--resamples", 4, "--workers", 1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of two cases; one has fewer than 100 training rows, and a name that is markup."""
    parts = ["train"] * 6 + ["validation"] * 2 + ["golden"] * 2
    rows = [
        rekka.simulate_transitions(n, n_states=3, seed=3).with_columns(
            case=pl.lit(case), part=pl.Series([parts[row % 10] for row in range(n)])
        )
        for case, n in (("Pier", 300), ("Deck [/] slab", 120))
    ]
    out = tmp_path_factory.mktemp("runs") / "run"
    options: dict[str, Any] = {"guard": {"resamples": 0}, "select_on": "validation", "confirm": False}
    rekka.compare(pl.concat(rows), methods=["zscore", "boxcox"], out=out, **options)
    return out


@pytest.fixture
def study(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "my run"))


def words(text: str) -> str:
    return " ".join(text.split())


def test_what_a_person_is_told(study):
    done = call("stability", study, *OPTIONS)
    assert done.exit_code == 0, done.stderr
    said = words(done.stdout)
    assert (
        "2 components by 2 methods, 4 resamples of each kind: 48 refits, seed 20260924. No confirmation row was used."
        in said
    )
    for kind in ("bootstrap", "splits", "seeds"):
        assert f"{kind}, preset exact: chosen / maximum reached, %" in said
    assert "Deck [/] slab † " in said
    assert "Pier † " not in said
    assert "What to look at" in said
    assert "- exploratory, too small to conclude from: Deck [/] slab (72 training rows, fewer than 100" in said
    assert f"The resamples are in {study / 'stability'}: selection.csv" in said
    names = {file.name for file in (study / "stability").iterdir()}
    assert names == {
        "draws-20260924", "cases.csv", "methods.csv", "refits.csv", "selection.csv", "statuses.csv"
    }  # fmt: skip


def test_json_for_machines(study):
    done = call("stability", study, *OPTIONS, "--kinds", "seeds, bootstrap", "--only", "Pier", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(text))
    assert (found["kinds"], found["resamples"], found["seed"]) == (["bootstrap", "seeds"], 4, 20260924)
    assert [case["case"] for case in found["cases"]] == ["Pier"]
    assert len(found["selection"]) == len(found["methods"]) == 4
    assert {line["draws"] for line in found["selection"]} == {4}
    assert isinstance(found["remarks"], list)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--kinds", "boot"], 2, "kinds is 'boot'; it can be bootstrap, splits, seeds. Did you mean bootstrap?"),
        (["--resamples", "0"], 2, "--resamples"),
        (["--workers", "0"], 2, "--workers"),
        (["--seed", "-1"], 2, "--seed"),
        (
            ["--only", "Peer"],
            2,
            "There is no component 'Peer'. Components there: Deck [/] slab, Pier. Did you mean Pier?",
        ),
    ],
)
def test_wrong_options(study, options, code, message):
    done = call("stability", study, *options)
    assert done.exit_code == code
    assert message in words(done.stderr)
    assert "Traceback" not in done.stderr
    assert not (study / "stability").exists()


def test_wrong_folders(study, tmp_path):
    done = call("stability", tmp_path / "nowhere")
    assert (done.exit_code, done.stderr) == (1, "RunFolderError: There is no run folder nowhere.\n")
    (tmp_path / "empty").mkdir()
    assert "empty is not a run folder" in call("stability", tmp_path / "empty").stderr
    next((study / "trials").iterdir()).unlink()
    done = call("stability", study)
    assert done.exit_code == 1
    assert "my run is not finished: it has 3 of 4 trials" in done.stderr
    assert "Continue with rekka compare --resume my run first." in done.stderr


def test_ctrl_c_leaves_draws_that_are_gone_on_with(study, monkeypatch):
    seen = []

    def interrupted(rows: Any, plan: Any, unit: Unit, seed: int) -> pl.DataFrame:
        seen.append(unit)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return refit_draws(rows, plan, unit, seed)

    monkeypatch.setattr(module, "refit_draws", interrupted)
    done = call(
        "stability", study, *OPTIONS, "--kinds", "splits,seeds", "--only", "Pier", "--only", "Deck [/] slab"
    )
    assert done.exit_code == 130
    again = f"rekka stability '{study}' --resamples 4 --kinds splits,seeds --only Pier --only 'Deck [/] slab'"
    assert done.stderr == f"Stopped after 8 of 16 draws. What is done is kept. Continue with: {again}\n"
    done = call("stability", study, *OPTIONS, "--kinds", "splits,seeds")
    assert done.exit_code == 0, done.stderr
    assert len(seen) == 5  # two units were kept


def test_a_disk_that_is_full(study, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = call("stability", study, *OPTIONS, "--seed", 5)
    monkeypatch.undo()
    assert done.exit_code == 1
    assert f"What is done is kept. Continue with: rekka stability '{study}' --resamples 4 --seed 5" in done.stderr
    assert re.search(r"WriteError: .*00000\.json cannot be written: No space left on device\.", done.stderr)


def test_the_bar_of_draws_takes_any_name():
    text = StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    with _watch(console, "rekka stability run") as on_unit:
        on_unit(Unit("exact", "Deck [/] slab", "bootstrap", (0, 1)), 2, 8)
    assert "2/8" in text.getvalue()
    assert "Deck [/] slab, bootstrap (exact)" in text.getvalue()


@pytest.fixture(scope="module")
def drawn() -> module.Stability:
    """Eight methods, more than a narrow terminal holds side by side."""
    rows = rekka.simulate_transitions(100, n_states=3, seed=1).with_columns(
        case=pl.lit("Bridge deck, cast in place, northern district"), part=pl.lit("train")
    )
    methods = ["max", "minmax", "zscore", "boxcox", "boxcox+zscore", "yeojohnson+zscore", "log+zscore", "robust"]
    options: dict[str, Any] = {"guard": {"resamples": 0}, "select_on": "validation", "confirm": False}
    study = rekka.compare(rows, methods=methods, **options)
    return module.stability(study, kinds=["splits", "seeds"], resamples=2, workers=1)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_tables_fit_the_terminal(drawn, width):
    text = StringIO()
    print_stability(Console(file=text, width=width), drawn, Path("run"))
    said = text.getvalue()
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    assert all(said.count(f" {method} ") >= 2 for method in ("max", "yeojohnson+zscore", "robust"))
    assert said.count("splits, preset exact") == {140: 1, 80: 3, 60: 4}[width]
    assert "- / 100" in said  # no validation row: nothing is chosen by seeds


def test_help_has_an_example_and_is_instant():
    done = call("stability", "--help")
    assert done.exit_code == 0, done.stderr
    assert "rekka stability run --kinds bootstrap --resamples 1000 --only Pier" in done.stdout
    heavy = "[m for m in ('numba', 'polars', 'numpy', 'sklearn') if m in sys.modules]"
    code = f"import sys, rekka.commands.stability; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
