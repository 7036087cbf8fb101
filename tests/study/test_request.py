from pathlib import Path

import pytest

from rekka.core.errors import BadOption, RunFolderError
from rekka.data.transitions import ReadingOptions
from rekka.scaling.registry import BEYOND, METHODS
from rekka.study.compare import Request, begin_study, continue_study, move_plan
from rekka.study.plan import SHRINKING, make_plan, read_plan
from rekka.study.runner import RunOptions

TABLE = "bridge_id,case,state_1,state_2,interval_years,age,part\n" + "".join(
    f"B{i % 9},deck,{1 + i % 2},{1 + i % 2 + (i % 3 == 0)},{3 + i % 4},{20 + i * 7 % 31},{('train', 'golden')[i % 4 == 3]}\n"
    for i in range(80)
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rows.csv").write_text(TABLE)
    return tmp_path


def request(project, **study):
    return Request([project / "rows.csv"], options={"study": study, "guard": {"resamples": 0}})


def test_groups_are_spelled_out(project):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_study(
            request(project, methods=("all", "zscore"), presets=("both",)),
            project / "run",
            RunOptions(on_trial=stop),
        )
    plan = read_plan(project / "run" / "study.toml")
    assert plan.study.methods == (*METHODS, *BEYOND, *SHRINKING)
    assert plan.study.presets == ("paper", "exact")


def test_paths_count_from_the_run_folder(project):
    begin_study(request(project, methods=("zscore",)), project / "deep" / "run")
    assert read_plan(project / "deep" / "run" / "study.toml").data.source == ("../../rows.csv",)


def test_a_study_file_is_run_with_changes_on_top(project):
    begin_study(request(project, methods=("zscore",), seed=5), project / "one")
    again = Request([project / "one" / "study.toml"], options={"study": {"methods": ("minmax",)}})
    study = begin_study(again, project / "two" / "run")
    assert study.plan.study.methods == ("minmax",)
    assert study.plan.study.seed == 5
    assert study.plan.data.source == ("../../rows.csv",)


def test_a_run_goes_on_only_with_what_it_does(project):
    begin_study(request(project, methods=("zscore",)), project / "run")
    same = continue_study(request(project, methods=("zscore",)), project / "run")
    assert len(same.trials) == 1
    assert len(continue_study(Request(), project / "run").trials) == 1
    with pytest.raises(RunFolderError, match=r"study\.methods was zscore, is minmax"):
        continue_study(request(project, methods=("minmax",)), project / "run")
    (project / "other.csv").write_text(TABLE)
    with pytest.raises(RunFolderError, match=r"data\.source was \.\./rows\.csv, is \.\./other\.csv"):
        continue_study(Request([project / "other.csv"]), project / "run")


def test_moving_a_plan_moves_its_joins():
    plan = make_plan(data={"source": ("rows.csv",), "mapping": {"join": [{"file": "sub/widths.csv"}]}})
    moved = move_plan(plan, Path("project"), Path("project/run"))
    assert moved.data.source == ("../rows.csv",)
    assert moved.data.mapping["join"] == [{"file": "../sub/widths.csv"}]
    inventory = make_plan(data={"kind": "inventory"})
    assert move_plan(inventory, Path("a"), Path("b")) == inventory


def test_a_mapping_is_not_a_study(project):
    (project / "mapping.toml").write_text('[columns]\nbridge = "ID"\n')
    with pytest.raises(BadOption, match=r"mapping\.toml is not a study.*A mapping goes with --mapping\."):
        begin_study(Request([project / "mapping.toml"]), project / "run")


def test_a_study_file_reads_its_tables_its_own_way(project):
    begin_study(request(project, methods=("zscore",)), project / "one")
    again = Request([project / "one" / "study.toml"], ReadingOptions(changes={"state": {"bands": [1, 2]}}))
    with pytest.raises(BadOption, match=r"^study\.toml says itself how its tables are read"):
        begin_study(again, project / "two")
