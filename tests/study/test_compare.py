"""compare, run_plan and load_study: the same study from every kind of data, in memory or in a folder."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from study_cases import draw_rows, file_names, log_of, model_texts, untimed, write_rows

import rekka
from rekka.core.errors import BadOption, BadValues, InputError, RunFolderError, UnreadableTable
from rekka.study import runner
from rekka.study.compare import run_plan
from rekka.study.plan import make_plan, read_plan

METHODS = ["zscore", "boxcox"]
EXACT: dict[str, Any] = {"cost": "evaluations", "select_on": "validation", "guard": {"resamples": 2}}


@pytest.fixture(scope="module")
def inventory() -> rekka.Inventory:
    return rekka.simulate_inventory(80, preset="plain")


class TestWhatComesOut:
    def test_memory_and_folder_are_the_same(self, tmp_path):
        rows, options = (
            draw_rows(n=60),
            EXACT | {"methods": METHODS, "preset": "both", "covariates": ["traffic_mean"]},
        )
        plain = rekka.compare(rows, **options)
        kept = rekka.compare(rows, **options, out=tmp_path / "run")
        assert untimed(kept).equals(untimed(plain))
        loaded = rekka.load_study(tmp_path / "run")
        assert loaded.trials.equals(kept.trials)
        for name, table in kept.tables().items():
            assert loaded.tables()[name].equals(table), name
        assert loaded.hypotheses == kept.hypotheses
        assert (loaded.plan, loaded.scheme, loaded.planned) == (kept.plan, kept.scheme, kept.planned)
        for study in (kept, loaded):
            model, theirs = study.model("Pier", "zscore", "exact"), plain.model("Pier", "zscore", "exact")
            assert (model.coef_ == theirs.coef_).all()

    def test_the_folder_has_what_it_should(self, tmp_path):
        run = tmp_path / "run"
        study = rekka.compare(draw_rows(("Pier",)), methods=["zscore"], **EXACT, out=run)
        tables = ("trials", "ladder", "cases", "baselines", "selection", "verdicts", "optimism", "confirmation",
                  "methods", "agreement", "presets", "floor")  # fmt: skip
        assert file_names(run) == sorted([
            ".lock", "study.toml", "provenance.json", "partition.parquet", "log.txt", "trials.parquet", "trials.json",
            "hypotheses.json", *(f"{name}.csv" for name in tables), "cases/001-pier.json",
            "choices/001-pier-exact.json", "confirmation.json",
            *(f"{folder}/0001-pier-exact-zscore.json" for folder in ("trials", "models", "scalings")),
        ])  # fmt: skip
        assert pl.read_parquet(run / "trials.parquet").equals(study.trials)
        assert pl.read_csv(run / "trials.csv")["accuracy"].to_list() == study.trials["accuracy"].to_list()
        assert (
            json.loads((run / "trials.json").read_text())["trials"][0]["log_loss"] == study.trials["log_loss"][0]
        )
        parts = pl.read_parquet(run / "partition.parquet")
        assert parts.group_by("part").len().sort("part").rows() == [
            ("golden", 36),
            ("train", 72),
            ("validation", 12),
        ]
        assert parts.filter(row_1=17)["part"].to_list() == ["golden"]
        log = log_of(run)
        assert "begun: rekka.compare(...); 120 rows: as the column part says" in log
        assert "1 of 1: Pier, zscore (exact): certified" in log
        assert log.endswith("done: 1 trial; tables written\n")

    def test_the_plan_in_the_folder_runs_it_again(self, tmp_path):
        file = write_rows(tmp_path)
        first = rekka.compare(file, methods=METHODS, **EXACT, out=tmp_path / "one")
        plan = read_plan(tmp_path / "one" / "study.toml")
        assert plan.data.source == ("../rows.csv",)
        again = run_plan(plan, out=tmp_path / "two")
        in_memory = run_plan(plan, base=tmp_path / "one")
        assert untimed(again).equals(untimed(first))
        assert untimed(in_memory).equals(untimed(first))
        assert model_texts(tmp_path / "one") == model_texts(tmp_path / "two")

    def test_every_trial_is_told(self):
        told = []
        rekka.compare(
            draw_rows(),
            methods=METHODS,
            **EXACT,
            on_trial=lambda trial, done, planned: told.append((trial.key.case, done, planned)),
        )
        assert told == [("Deck slab", 1, 4), ("Deck slab", 2, 4), ("Pier", 3, 4), ("Pier", 4, 4)]

    def test_names_of_every_kind(self, tmp_path):
        names = ("Pier", "pier", "a/b", "..", "主桁 🌉", "x" * 300)
        study = rekka.compare(draw_rows(names, n=60), methods=["max"], **EXACT, out=tmp_path / "run")
        assert set(study.trials["case"]) == set(names)
        assert rekka.load_study(tmp_path / "run").trials.equals(study.trials)
        assert sorted(os.listdir(tmp_path)) == ["run"]

    def test_the_built_in_inventory(self):
        study = rekka.compare(cases=["Slope protection", "Abutment"], methods=["zscore"], **EXACT)
        assert study.cases.select("case", "train", "golden").rows() == [
            ("Slope protection", 27, 38),
            ("Abutment", 271, 438),
        ]
        assert study.trials["status"].to_list() == ["no finite maximum", "certified"]


class TestWhatGoesIn:
    def test_frames_transitions_and_files_are_the_same(self, tmp_path):
        rows = draw_rows()
        plain = rekka.compare(rows, methods=["boxcox"], **EXACT)
        kinds = [rows.to_pandas(), rows.to_arrow(), rekka.read_transitions(rows), write_rows(tmp_path)]
        for data in kinds:
            study = rekka.compare(data, methods=["boxcox"], **EXACT)
            assert untimed(study).equals(untimed(plain)), type(data)

    def test_a_partition(self):
        parts = rekka.partition_by_bridge(draw_rows().drop("part"), seed=11)
        study = rekka.compare(parts, methods=["zscore"], **EXACT)
        assert study.scheme == parts.scheme
        assert study.plan.partition.scheme == "given"
        assert study.cases["train"].sum() == len(parts.train)

    def test_inspections_with_joins(self, inventory, tmp_path):
        for name in ("inspections", "inventory", "traffic"):
            getattr(inventory, name).write_csv(tmp_path / f"{name}.csv")
        (tmp_path / "map.toml").write_text('[[join]]\nfile = "inventory.csv"\n[[join]]\nfile = "traffic.csv"\n')
        options = EXACT | {"methods": ["zscore"], "cases": ["Pier"], "partition": "paper"}
        by_toml = rekka.compare(
            tmp_path / "inspections.csv", tmp_path / "map.toml", out=tmp_path / "run", **options
        )
        joins = [{"file": tmp_path / "inventory.csv"}, {"file": str(tmp_path / "traffic.csv")}]
        by_dict = rekka.compare(str(tmp_path / "inspections.csv"), {"join": joins}, **options)
        frames = {"join": [{"file": inventory.inventory}, {"file": inventory.traffic}]}
        by_frames = rekka.compare(inventory.inspections, frames, **options)
        mixed = rekka.compare(tmp_path / "inspections.csv", frames, out=tmp_path / "mixed", **options)
        assert all(untimed(one).equals(untimed(by_toml)) for one in (by_dict, by_frames, mixed))
        assert read_plan(tmp_path / "run" / "study.toml").data.mapping["join"] == [
            {"file": "../inventory.csv"}, {"file": "../traffic.csv"},
        ]  # fmt: skip
        assert read_plan(tmp_path / "mixed" / "study.toml").data.kind == "given"

    def test_relative_paths(self, tmp_path, monkeypatch):
        write_rows(tmp_path)
        (tmp_path / "deep").mkdir()
        monkeypatch.chdir(tmp_path / "deep")
        rekka.compare("../rows.csv", methods=["max"], **EXACT, out="runs/one")
        assert read_plan(tmp_path / "deep/runs/one/study.toml").data.source == ("../../../rows.csv",)
        monkeypatch.chdir("/")
        assert len(rekka.resume_study(tmp_path / "deep/runs/one").trials) == 2

    def test_by_date(self):
        rows = (
            draw_rows(("Pier",))
            .drop("part")
            .with_columns(date_2=pl.date(2010, 1, 1) + pl.duration(days=pl.int_range(pl.len()) % 100))
        )
        study = rekka.compare(
            rows, methods=["zscore"], partition="date", until="2010-03-01", guard={"resamples": 2}
        )
        assert study.scheme.startswith("second visits up to 2010-03-01 train")

    def test_chosen_cases_covariates_and_chains(self):
        study = rekka.compare(
            draw_rows(),
            methods=["boxcox+zscore"],
            cases=["Pier"],
            covariates=["traffic_mean", "bridge_length"],
            **EXACT,
        )
        assert study.trials.select("case", "method").rows() == [("Pier", "boxcox+zscore")]
        assert study.cases["covariates"].to_list() == [["traffic_mean", "bridge_length"]]
        bare = rekka.compare(draw_rows(), methods=["max", "boxcox"], covariates=[], **EXACT)
        assert bare.trials["accuracy"].to_list() == bare.trials["no_covariates_accuracy"].to_list()


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"methods": "zscore"},
                r"methods is the text 'zscore'; a list of names is needed, such as \['zscore'\]",
            ),
            ({"cases": "Pier"}, "cases is the text 'Pier'"),
            ({"covariates": "age"}, "covariates is the text 'age'"),
            ({"methods": ["zskore"]}, "Did you mean zscore"),
            ({"preset": "exakt"}, "preset is 'exakt'; it can be exact, paper"),
            ({"cost": "time"}, "cost is 'time'; it can be auto, seconds, evaluations"),
            ({"partition": "random"}, "partition.scheme is 'random'; it can be auto, paper, bridge, date"),
            ({"partition": "date"}, "scheme = 'date' and until, the last day of training, belong together"),
            ({"repeats": 0}, "repeats"),
            ({"workers": 0}, "workers is 0; a whole number of at least 1 is needed"),
            ({"workers": True}, "workers is True"),
            ({"workers": 1.5}, r"workers is 1\.5"),
            ({"cases": ["Peer"]}, "There is no component 'Peer'"),
            ({"covariates": ["trafic_mean"]}, "Did you mean traffic_mean"),
        ],
    )
    def test_options(self, options, message, tmp_path):
        with pytest.raises(InputError, match=message):
            rekka.compare(draw_rows(), out=tmp_path / "run", **options)
        assert os.listdir(tmp_path) == []

    def test_a_mapping_where_nothing_is_read(self):
        with pytest.raises(BadOption, match="mapping says how a table is read"):
            rekka.compare(rekka.read_transitions(draw_rows()), {"columns": {}})

    def test_no_such_file(self, tmp_path):
        with pytest.raises(UnreadableTable, match=r"There is no file rows\.csv"):
            rekka.compare(tmp_path / "rows.csv", out=tmp_path / "run")
        assert os.listdir(tmp_path) == []

    def test_missing_values_leave_no_folder(self, tmp_path):
        rows = draw_rows().with_columns(traffic_mean=pl.when(pl.int_range(pl.len()) != 17).then("traffic_mean"))
        with pytest.raises(BadValues, match=r"traffic_mean is missing in 1 of 240 rows \(row 17\)"):
            rekka.compare(rows, out=tmp_path / "run")
        assert os.listdir(tmp_path) == []
        (tmp_path / "there").mkdir()
        with pytest.raises(BadValues):
            rekka.compare(rows, out=tmp_path / "there")
        assert not (tmp_path / "there" / "study.toml").exists()

    def test_a_folder_that_is_a_file_or_holds_something(self, tmp_path):
        file = write_rows(tmp_path)
        with pytest.raises(RunFolderError, match=r"rows\.csv is a file; a folder is needed"):
            rekka.compare(file, out=file)
        with pytest.raises(RunFolderError, match=r"holds other files \(rows\.csv\) and no study"):
            rekka.compare(file, out=tmp_path)
        with pytest.raises(RunFolderError, match="cannot be used as a run folder"):
            rekka.compare(file, out=file / "run")

    def test_a_folder_with_a_study(self, tmp_path):
        rekka.compare(draw_rows(), methods=["max"], **EXACT, out=tmp_path / "run")
        with pytest.raises(RunFolderError, match=r"holds a study already, with 2 trials done.*--resume run"):
            rekka.compare(draw_rows(), methods=["max"], out=tmp_path / "run")

    def test_loading_what_is_none(self, tmp_path):
        with pytest.raises(RunFolderError, match="There is no run folder run"):
            rekka.load_study(tmp_path / "run")
        (tmp_path / "study.toml").write_text(make_plan().to_toml())
        with pytest.raises(
            RunFolderError, match=r"stopped before its first trial. Continue with rekka compare --resume"
        ):
            rekka.load_study(tmp_path)


class TestFailedTrialsStay:
    def test_each_with_its_reason(self):
        cases = (
            "fine",
            "no training",
            "one state",
            "collinear",
            "golden out of range",
            "no golden",
            "unsupported",
        )
        case, golden = pl.col("case"), pl.col("part") == "golden"
        rows = draw_rows(cases).filter(
            ~((case == "no training") & (pl.col("part") == "train")) & ~((case == "no golden") & golden)
            & ~((case == "unsupported") & (pl.col("state_2") == 4) & ~golden)
        ).with_columns(
            state_1=pl.when(case == "one state").then(1).otherwise("state_1"),
            state_2=pl.when(case == "one state").then(1).otherwise("state_2"),
            traffic_mean=pl.when(case == "collinear").then(3 * pl.col("bridge_length")).otherwise("traffic_mean"),
            bridge_length=pl.when((case == "golden out of range") & golden).then(-50.0).otherwise("bridge_length"),
            flat=pl.lit(2.0),
        )  # fmt: skip
        study = rekka.compare(
            rows, methods=["zscore", "boxcox"], preset="both", select_on="golden", guard={"resamples": 1}
        )
        assert len(study.trials) == 4 * len(cases)
        found = {
            row["case"]: row for row in study.trials.filter(preset="exact", method="boxcox").iter_rows(named=True)
        }
        assert {name: row["status"] for name, row in found.items()} == {
            "fine": "certified", "no training": "not fitted", "one state": "not fitted", "collinear": "not fitted",
            "golden out of range": "transform failed", "no golden": "certified", "unsupported": "certified",
        }  # fmt: skip
        assert all(row["reason"] for row in study.trials.iter_rows(named=True) if row["status"] != "certified")
        assert "boxcox cannot transform bridge_length = -50.0 (bridge B-" in found["golden out of range"]["reason"]
        assert found["unsupported"]["unsupported"] > 0
        assert found["no golden"]["scored"] == 0
        assert study.cases.filter(pl.col("train") > 0)["constant"].to_list() == [["flat"]] * 6


class TestWorkers:
    @pytest.fixture
    def two(self, tmp_path, monkeypatch):
        """Two workers and three timings, with a look at each reading of a clock."""
        alive, read = [], runner.time_trial

        def spy(*given):
            alive.append(len(worker_processes()))
            return read(*given)

        monkeypatch.setattr(runner, "time_trial", spy)
        told = []
        study = rekka.compare(
            draw_rows(), methods=METHODS, **EXACT, workers=2, repeats=3, out=tmp_path / "run",
            on_trial=lambda trial, done, planned: told.append((done, planned, trial.timed)),
        )  # fmt: skip
        return study, alive, told, tmp_path / "run"

    def test_side_by_side_is_the_same_and_timed_afterwards(self, two, tmp_path):
        study, alive, told, run = two
        alone = tmp_path / "alone"
        plain = rekka.compare(draw_rows(), methods=METHODS, **EXACT, out=alone)
        assert untimed(study).drop("timings").equals(untimed(plain).drop("timings"))
        assert alive == [0] * 4
        assert told == [(done, 4, True) for done in range(1, 5)]
        assert study.trials["timings"].to_list() == [3] * 4
        assert (study.trials["seconds_low"] <= study.trials["seconds"]).all()
        assert (study.trials["seconds"] <= study.trials["seconds_high"]).all()
        for trial in study.results:
            model = study.model(trial.key.case, trial.key.method, trial.key.preset)
            assert model.outcome_.seconds == trial.seconds[0] == trial.outcome.seconds
        assert model_texts(run) == model_texts(alone)

    def test_repeats_of_one_worker(self):
        study = rekka.compare(draw_rows(("Pier",)), methods=["zscore"], **EXACT, repeats=3)
        (trial,) = study.results
        assert len(trial.seconds) == 3
        assert trial.outcome.seconds == trial.seconds[0]
        assert study.trials["timings"].to_list() == [3]

    @pytest.mark.slow  # starts processes; two workers of a comparison are tested each time
    def test_a_full_disk_ends_the_workers(self, tmp_path, monkeypatch):
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("rekka.study.run_folder.Files.add_trial", full)
        with pytest.raises(OSError, match="No space left"):
            rekka.compare(draw_rows(), methods=METHODS, **EXACT, workers=2, out=tmp_path / "run")
        assert not worker_processes()
        monkeypatch.undo()
        assert len(rekka.resume_study(tmp_path / "run").trials) == 4


def worker_processes() -> list[str]:
    """Processes of loky that are children of this one."""
    if not Path("/proc").exists():
        return []
    command = ["ps", "--ppid", str(os.getpid()), "-o", "command="]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if "popen_loky" in line and "<defunct>" not in line]
