"""Trials in a run folder: written whole, read back as they were, and nothing else taken for one."""

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest
from study_cases import draw_rows, read_json, write_json

from rekka.core.folders import last_line, read_sealed, write_sealed
from rekka.study.plan import PartitionPlan, StudyPlan, TrialPlan
from rekka.study.rows import split_rows
from rekka.study.run_folder import CHOICES, FOLDERS, KINDS, Files, RunRecords, add_line
from rekka.study.runner import carry_out, choose, list_keys, open_cases
from rekka.study.trial import Key, Status

PLAN = TrialPlan(methods=("max", "zscore"))
RUN = "the mark of this run"
NAMES = (
    "Pier", "pier", "PIER", "a/b\\c", "../../etc", ".hidden", "con", "nul.txt", "", " ", "主桁", "🌉", "x" * 300,
    "x" * 299 + "y", "a:b*c?", "ends with dot.",
)  # fmt: skip


@pytest.fixture(scope="module")
def made() -> RunRecords:
    """A study of two cases in memory, one of which fails."""
    rows = draw_rows().with_columns(
        state_2=pl.when(pl.col("case") == "Pier").then(1).otherwise("state_2"),
        state_1=pl.when(pl.col("case") == "Pier").then(1).otherwise("state_1"),
    )
    memory = RunRecords()
    found = split_rows(rows, PartitionPlan(), PLAN)
    plan, case, keys = StudyPlan(study=PLAN), open_cases(PLAN, found), list_keys(PLAN, found.cases)
    carry_out(PLAN, case, keys, memory)
    choose(plan, case, keys, memory)
    return memory


def open_files(path: Path, keys: list[Key], run: str = RUN) -> Files:
    for folder in FOLDERS:
        (path / folder).mkdir(exist_ok=True)
    files = Files(path, keys, run)
    files.load()
    return files


@pytest.fixture
def kept(tmp_path, made) -> Path:
    """The same in a folder."""
    files = open_files(tmp_path, list(made.trials))
    for case in made.cases.values():
        files.add_case(case)
    for key in made.trials:
        files.add_trial(made.fitted(key))
    for choice in made.choices.values():
        files.add_choice(choice)
    return tmp_path


def trial_files(path: Path) -> list[Path]:
    return sorted((path / "trials").iterdir())


def test_all_comes_back(kept, made):
    files = open_files(kept, list(made.trials))
    assert files.trials == made.trials
    assert {name: str(case) for name, case in files.cases.items()} == {n: str(c) for n, c in made.cases.items()}
    assert {pair: str(one) for pair, one in files.choices.items()} == {p: str(c) for p, c in made.choices.items()}
    assert files.damaged == []
    for key in made.trials:
        assert files.fitted(key) == made.fitted(key)


def test_names_say_which_trial(kept):
    assert [file.name for file in trial_files(kept)] == [
        "0001-deck-slab-exact-max.json", "0002-deck-slab-exact-zscore.json",
        "0003-pier-exact-max.json", "0004-pier-exact-zscore.json",
    ]  # fmt: skip
    assert sorted(os.listdir(kept / "models")) == [
        "0001-deck-slab-exact-max.json",
        "0002-deck-slab-exact-zscore.json",
    ]


def test_a_trial_that_failed_has_no_model(kept, made):
    files = open_files(kept, list(made.trials))
    key = next(key for key in made.trials if key.case == "Pier")
    assert files.trials[key].status is Status.NOT_FITTED
    assert files.fitted(key).model is None
    assert files.fitted(key).scaling is None


SPOILS = {
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(b"\0" * file.stat().st_size),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "one byte short": lambda file: file.write_bytes(file.read_bytes()[:-2]),
    "other text": lambda file: file.write_text("a shopping list"),
    "other JSON": lambda file: file.write_text('{"format": "rekka-trial", "version": 1}'),
    "edited": lambda file: file.write_text(re.sub(r"\d", lambda d: str(9 - int(d[0])), file.read_text(), count=1)),
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("spoil", SPOILS)
def test_what_is_not_whole_is_not_taken(kept, made, folder, spoil):
    victim = sorted((kept / folder).iterdir())[0]
    SPOILS[spoil](victim)
    files = open_files(kept, list(made.trials))
    first = next(iter(made.trials))
    if folder == "cases":
        assert list(files.cases) == ["Pier"]
        assert files.trials == made.trials
        assert files.damaged == ([] if spoil == "gone" else ["cases/001-deck-slab.json"])
    elif folder == "choices":
        assert list(files.choices) == [("exact", "Pier")]
        assert files.trials == made.trials
        assert files.damaged == ([] if spoil == "gone" else ["choices/001-deck-slab-exact.json"])
    else:
        assert first not in files.trials
        assert len(files.trials) == 3
        whole = folder == "trials" and spoil == "gone"
        assert files.damaged == ([] if whole else ["trials/0001-deck-slab-exact-max.json"])


def test_the_record_of_another_trial_is_not_taken(kept, made):
    first, second, *_ = trial_files(kept)
    first.write_bytes(second.read_bytes())
    assert open_files(kept, list(made.trials)).damaged == [f"trials/{first.name}"]


def test_the_record_of_another_trial_with_its_model_is_not_taken(kept, made):
    for folder in ("trials", "models", "scalings"):
        first, second, *_ = sorted((kept / folder).iterdir())
        first.write_bytes(second.read_bytes())
    assert len(open_files(kept, list(made.trials)).trials) == 3


def test_the_record_of_another_case_is_not_taken(kept, made):
    first, second = sorted((kept / "cases").iterdir())
    first.write_bytes(second.read_bytes())
    assert list(open_files(kept, list(made.trials)).cases) == ["Pier"]


def test_records_of_another_run_are_not_taken(kept, made):
    files = open_files(kept, list(made.trials), "the mark of another run")
    assert files.trials == {}
    assert files.cases == {}
    assert files.choices == {}
    assert len(files.damaged) == 8


@pytest.mark.parametrize("body", [None, [], {}, {"run": RUN}, {"run": RUN, "trial": {}, "files": []}])
def test_a_sealed_record_without_a_trial_is_not_taken(kept, made, body):
    from rekka.core.folders import write_sealed

    write_sealed(trial_files(kept)[0], "rekka-trial", body)
    assert len(open_files(kept, list(made.trials)).trials) == 3


def test_a_record_of_a_later_version_is_not_taken(kept, made):
    file = trial_files(kept)[0]
    write_json(file, read_json(file) | {"version": 2})
    assert len(open_files(kept, list(made.trials)).trials) == 3


def test_what_is_made_again_takes_its_place(kept, made):
    for file in trial_files(kept)[:2]:
        file.write_text("")
    files = open_files(kept, list(made.trials))
    for key in made.trials:
        if key not in files.trials:
            files.add_trial(made.fitted(key))
    assert open_files(kept, list(made.trials)).trials == made.trials


def test_foreign_files_are_left_alone(kept, made):
    foreign = [kept / "trials" / "notes.json", kept / "models" / "9999-x.json", kept / "trials" / "0001.json"]
    for file in foreign:
        file.write_text("mine")
    (kept / "trials" / "folder").mkdir()
    files = open_files(kept, list(made.trials))
    assert files.trials == made.trials
    assert files.damaged == []
    assert all(file.read_text() == "mine" for file in foreign)


def test_seconds_taken_later_change_the_model_and_the_record(kept, made):
    files = open_files(kept, list(made.trials))
    key = next(iter(made.trials))
    scaling = kept / "scalings" / trial_files(kept)[0].name
    before = scaling.stat().st_mtime_ns
    files.add_trial(files.fitted(key).with_seconds((1.5, 2.5)))
    again = open_files(kept, list(made.trials))
    assert again.trials[key].seconds == (1.5, 2.5)
    assert json.loads(again.fitted(key).model)["outcome"]["seconds"] == 1.5
    assert scaling.stat().st_mtime_ns == before


def test_every_name_is_a_file_on_every_disk(tmp_path, made):
    """Case-insensitive disks, reserved names, 255 bytes for a name."""
    template = next(iter(made.trials.values()))
    keys = [Key(case=name, preset="exact", method="boxcox+zscore") for name in NAMES]
    files = open_files(tmp_path, keys)
    for key in keys:
        files.add_trial(type(made.fitted(template.key))(template.model_copy(update={"key": key})))
        files.add_case(made.cases["Pier"].model_copy(update={"name": key.case}))
    written = [f.name for folder in ("cases", "trials") for f in (tmp_path / folder).iterdir()]
    assert len({name.lower() for name in written}) == 2 * len(NAMES)
    assert all(re.fullmatch(r"\d{3,4}-[a-z0-9-]+\.json", name) and len(name) < 110 for name in written)
    again = open_files(tmp_path, keys)
    assert set(again.trials) == set(keys)
    assert set(again.cases) == set(NAMES)


class TestLog:
    def test_lines_have_their_moment_and_process(self, tmp_path):
        log = tmp_path / "log.txt"
        assert last_line(log) is None
        add_line(log, "one")
        add_line(log, "two\nlines 🌉")
        assert re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[\d+\] .*\n){2}", log.read_text(encoding="utf-8"))
        assert last_line(log).endswith("two lines 🌉")

    def test_a_line_cut_short_stays_by_itself(self, tmp_path):
        log = tmp_path / "log.txt"
        log.write_bytes("one\nhalf a 🌉".encode()[:-2])
        assert "half a" in last_line(log)
        add_line(log, "next")
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        assert len(lines) == 3
        assert lines[2].endswith("next")

    def test_bytes_of_a_command_that_are_no_text(self, tmp_path):
        add_line(tmp_path / "log.txt", "rekka compare b\udcff.csv")
        assert r"b\udcff.csv" in last_line(tmp_path / "log.txt")

    def test_memory_has_none(self):
        assert RunRecords().note("x") is None


def test_the_choice_under_another_preset_is_not_taken(kept, made):
    file = sorted((kept / "choices").iterdir())[0]
    body = read_sealed(file, KINDS[CHOICES].format)
    body["choice"]["preset"] = "paper"
    write_sealed(file, KINDS[CHOICES].format, body)
    files = open_files(kept, list(made.trials))
    assert list(files.choices) == [("exact", "Pier")]
    assert files.damaged == ["choices/001-deck-slab-exact.json"]
