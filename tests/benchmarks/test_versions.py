"""The benchmark of two versions on few rows: that it does its tasks, takes turns and forms the right ratios."""

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.version_tasks import FIT, STREAMED, STUDY, TASKS, Measured

from benchmarks import version_tasks, versions

SIZES = versions.Sizes(1_000, 40, 3_000, 1_000, turns=2, calls=dict.fromkeys(TASKS, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    versions.draw_tables(path, SIZES)
    return path


def test_fits_find_a_maximum_and_are_timed(folder):
    for task in (FIT, STREAMED):
        found = version_tasks.measure(task, folder, 2)
        assert found.log_likelihood < 0
        assert found.log_likelihood == version_tasks.measure(task, folder, 1).log_likelihood
        assert found.seconds > 0
        assert found.processor_seconds > 0


def test_the_study_adds_the_log_likelihoods_up(folder):
    assert version_tasks.run_study(folder, warm=True) < 0


@pytest.mark.slow
def test_a_version_is_measured_in_a_process_of_its_own(folder):
    found = versions.call(versions.ROOT / "src", FIT, folder, 1)
    assert found.log_likelihood == pytest.approx(version_tasks.fit_rows(folder, warm=False), rel=1e-12)


def test_a_version_that_fails_ends_the_run_with_its_message(tmp_path):
    with pytest.raises(SystemExit, match=r"fit ended with 1:\n(.|\n)*fit\.parquet"):
        versions.call(versions.ROOT / "src", FIT, tmp_path, 1)


def test_versions_take_turns_and_the_first_changes(monkeypatch, tmp_path):
    order = []

    def note(source, task, folder, calls):
        order.append((task, source.name))
        return Measured(1.0, 2.0 if source.name == "old" else 3.0, -10.0)

    monkeypatch.setattr(versions, "call", note)
    sources = {versions.BEFORE: Path("old"), versions.AFTER: Path("new")}
    found = versions.take_turns(sources, tmp_path, SIZES, lambda _: None)
    assert order == [(task, name) for task in (FIT, STUDY, STREAMED) for name in ("old", "new", "new", "old")]
    assert [turn.ratio for turn in found[FIT]] == [1.5, 1.5]


def test_the_figure_is_the_median_of_the_turns_ratios():
    before = Measured(10.0, 2.0, -100.0)
    turns = [versions.Turn(before, Measured(5.0, used, -100.0 - used * 1e-9)) for used in (1.0, 2.0, 8.0)]
    found = versions.summarize(turns)
    assert (found["ratio"], found["least"], found["most"], found["wall_ratio"]) == (1.0, 0.5, 4.0, 0.5)
    assert (found["before"], found["after"]) == (2.0, 2.0)
    assert found["largest_difference"] == pytest.approx(8e-11, rel=1e-3)
    assert json.loads(json.dumps(found))["turns"][2]["after"]["processor_seconds"] == 8.0


def test_the_table_names_task_and_revision():
    found = versions.summarize([versions.Turn(Measured(1.0, 2.0, -1.0), Measured(1.0, 3.0, -1.0))])
    console = Console(width=150, record=True, quiet=False)
    versions.print_tasks({FIT: found}, "v1", console)
    text = console.export_text()
    assert "this version over v1" in text
    assert "1.500 to 1.500" in text
