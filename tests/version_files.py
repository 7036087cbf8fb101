"""Write the files of one version of rekka that every later version must read.

    PYTHONPATH=OTHER_CHECKOUT/src python tests/version_files.py

Writes tests/reference/files/VERSION: a model file; a run folder without what is rebuilt from the rest, with a forecast
where the version has that command; the report's numbers; and ``expected.json`` with what this version found. Run it
once for each release. It calls only what is public since 0.4.0, so that it runs with any version since.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import rekka
from rekka.cli import main as rekka_main

FILES = Path(__file__).parent / "reference" / "files"
TABLE = "../inspections.csv"
CASE = "Main girder"
TRIAL = ("case", "method", "status", "certified", "log_likelihood", "accuracy", "log_loss")
CONFIRMED = ("case", "method", "rows", "accuracy", "log_loss")
COLUMNS = ("state_1", "interval_years", "age_at_inspection_1", "bridge_length")
ROWS_COMPARED = 12
KEPT = (
    "model.json", "expected.json", "report.json.gz", "run/study.toml", "run/partition.parquet",
    "run/provenance.json", "run/confirmation.json", "run/forecast/forecast.json",
)  # fmt: skip
KEPT_FOLDERS = ("run/cases/", "run/trials/", "run/models/", "run/scalings/", "run/choices/")
COMPARE = ("--methods", "zscore,boxcox", "--partition", "bridge", "--resamples", "2", "--out", "run")


def main() -> None:
    """Write the folder of the version that is imported."""
    folder = FILES / rekka.__version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    platform.platform = lambda *_, **__: "Linux"  # the files say nothing of the machine they were made on
    call("fit", TABLE, "--only", CASE, "--out", "model.json")
    call("compare", TABLE, *COMPARE, *(["--no-report"] if hasattr(rekka, "Report") else []))
    if hasattr(rekka, "Forecast"):
        call("forecast", "run", TABLE, "--years", "3", "--only", CASE, "--no-member-intervals")
        call("report", "run", "--quick")
        Path("report.json.gz").write_bytes(gzip.compress(Path("run/report.json").read_bytes(), mtime=0))
    expected = describe_model() | describe_run()
    Path("expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    for file in [found for found in Path().rglob("*") if found.is_file() and not is_kept(found.as_posix())]:
        file.unlink()


def is_kept(name: str) -> bool:
    """Whether a file is stored: what cannot be rebuilt from other files of the run folder."""
    return name in KEPT or name.startswith(KEPT_FOLDERS)


def call(*arguments: str) -> None:
    """Call the command in this process, under the name that the run folder keeps."""
    sys.argv = ["rekka", *arguments]
    with contextlib.suppress(SystemExit):
        rekka_main()


def describe_model() -> dict[str, Any]:
    """The log-likelihood of the model file, and its probabilities of some transitions of the table."""
    model = rekka.ExponentialHazardMarkovModel.from_json(Path("model.json").read_text(encoding="utf-8"))
    transitions = rekka.pair_visits(rekka.read_panel(TABLE)).frame
    rows = transitions.select(COLUMNS).head(ROWS_COMPARED)
    return {
        "log_likelihood": model.log_likelihood_,
        "coefficients": model.coef_.tolist(),
        "rows": rows.rows(),
        "probabilities": model.predict_proba(rows).tolist(),
    }


def describe_run() -> dict[str, Any]:
    """The trials of the run folder, what was chosen, and how that was confirmed."""
    study = rekka.load_study("run")
    return {
        "trials": study.trials.select(TRIAL).to_dicts(),
        "chosen": dict(study.selection.select("case", "chosen").rows()),
        "confirmation": study.confirmation.select(CONFIRMED).to_dicts(),
    }


if __name__ == "__main__":
    main()
