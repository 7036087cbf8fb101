"""What a study was run on and with."""

import os
import sys

import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core import machine
from rekka.core.folders import digest_file
from rekka.core.machine import describe_command
from rekka.study.plan import PartitionPlan, TrialPlan, make_plan
from rekka.study.provenance import describe_run, differ_from, digest_sources, read_reading
from rekka.study.rows import split_rows


@pytest.fixture
def rows():
    return split_rows(draw_rows(), PartitionPlan(), TrialPlan())


def test_it_says_what_when_and_with_what(tmp_path, rows):
    plan = make_plan(data={"kind": "inventory", "seed": 5}, partition={"seed": 6}, study={"seed": 7})
    found = describe_run(plan, rows, tmp_path)
    assert found["seeds"] == {"partition": 6, "start": 7, "inventory": 5}
    assert found["versions"]["rekka"] == rekka.__version__
    assert found["versions"]["polars"] == pl.__version__
    assert found["machine"]["cores"] == os.cpu_count()
    assert found["machine"]["processor"]
    assert found["data"]["rows_sha256"] == rows.digest()
    assert ["Pier", "golden", 36] in found["data"]["rows"]
    assert make_plan(**found["plan"]) == plan


def test_every_file_that_is_read_has_its_digest(tmp_path):
    run = tmp_path / "run"
    (tmp_path / "tables").mkdir()
    for name in ("a.csv", "tables/1.parquet", "tables/2.parquet"):
        (tmp_path / name).write_text(name)
    plan = make_plan(
        data={"source": "../tables", "mapping": {"join": [{"file": "../a.csv"}, {"file": "../gone.csv"}]}}
    )
    assert digest_sources(plan, run) == {
        "../tables/1.parquet": digest_file(tmp_path / "tables" / "1.parquet"),
        "../tables/2.parquet": digest_file(tmp_path / "tables" / "2.parquet"),
        "../a.csv": digest_file(tmp_path / "a.csv"),
        "../gone.csv": None,
    }


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["/usr/bin/rekka", "compare", "my data.csv"], "rekka compare 'my data.csv'"),
        (["C:\\rekka.exe" if os.name == "nt" else "/x/rekka.exe", "compare"], "rekka compare"),
        (["/usr/bin/pytest", "-q"], "rekka.compare(...)"),
        ([], "rekka.compare(...)"),
    ],
)
def test_the_command(monkeypatch, argv, words):
    monkeypatch.setattr(sys, "argv", argv)
    assert describe_command() == words


def test_another_version_and_machine_are_named(tmp_path, rows):
    begun = describe_run(make_plan(), rows, tmp_path)
    assert differ_from(begun) == []
    begun["versions"]["numpy"] = "1.0"
    begun["machine"]["cores"] = 1024
    assert differ_from(begun) == [
        f"numpy was 1.0 when the run began and is {machine.describe_versions()['numpy']}",
        f"cores was 1024 when the run began and is {os.cpu_count()}",
    ]


def test_a_processor_without_a_name(monkeypatch):
    monkeypatch.setattr(machine.Path, "exists", lambda _: False)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv64")
    assert machine.describe_machine()["processor"] == "riscv64"


@pytest.mark.parametrize(
    ("mapping", "nbi", "kind"),
    [({}, False, None), ({}, True, "nbi"), ({"state": {"bands": [80, 70]}}, False, "inspections")],
)
def test_a_run_that_kept_no_reading_has_what_its_plan_says(mapping, nbi, kind, tmp_path):
    data = {"kind": "tables", "mapping": mapping, "nbi": nbi}
    found = read_reading({"data": {}, "plan": {"data": data}}, tmp_path)
    assert (None if found is None else found.kind) == kind
