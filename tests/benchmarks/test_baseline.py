"""The frozen baseline: its numbers are still rekka's, and its comparison sees a number that has changed."""

import copy
import json
import sys
from pathlib import Path

import pytest
from test_cli import call

import rekka

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import baseline

STORED = json.loads(baseline.FILE.read_text(encoding="utf-8"))
OTHER_MACHINES = 1e-8  # other processors add in another order; a change of the method is far larger


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """The demo's ten components, fitted to all rows by the command."""
    place = tmp_path_factory.mktemp("baseline")
    rekka.write_inventory(place / "demo")
    fitted, matrices = (
        json.loads(call(*words, "--json").stdout)
        for words in (
            ("fit", place / "demo", "--no-test-fit", "--out", place / "models"),
            ("matrix", place / "models", "--years", "1,5"),
        )
    )
    return {
        "fits": {one["case"]: baseline.keep_fit(one) for one in fitted},
        "matrices": {one["case"]: [m["probability"] for m in one["matrices"]] for one in matrices["cases"]},
    }


def test_fits_and_matrices_are_those_of_the_baseline(fits, monkeypatch):
    monkeypatch.setattr(baseline, "TOLERANCE", OTHER_MACHINES)
    assert len(fits["fits"]) == 10
    assert list(baseline.compare({name: STORED["demo"][name] for name in fits}, fits)) == []


def test_a_changed_number_is_found_and_named():
    changed = copy.deepcopy(STORED["demo"]["fits"])
    changed["Pier"]["coefficients"]["2, intercept"]["estimate"] *= 1 + 1e-11
    del changed["Bearing"]["log_likelihood"]
    found = [place for place, _, _ in baseline.compare(STORED["demo"]["fits"], changed)]
    assert sorted(found) == ["Bearing / log_likelihood", "Pier / coefficients / 2, intercept / estimate"]


def test_rounding_is_no_difference():
    assert list(baseline.compare({"a": [1.0, 0.0]}, {"a": [1.0 + 1e-13, 1e-13]})) == []
    assert list(baseline.compare([1.0], [1.0, 2.0])) != []
