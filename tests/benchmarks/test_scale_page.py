"""The page on performance is what the stored run gives, and says nothing that the figures do not."""

import copy
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.reproduction_words import NoLongerSo

from benchmarks import scale, scale_page

STORED = json.loads(scale.RESULT.read_text())
PAGE = scale_page.PAGE.read_text()


def test_the_page_is_what_the_stored_run_gives():
    assert scale_page.write_page(STORED) == PAGE


def test_lines_outside_tables_are_short():
    assert max(len(line) for line in PAGE.splitlines() if not line.startswith("|")) <= 120


def test_nothing_of_the_machine_is_told():
    for text in (PAGE, scale.RESULT.read_text()):
        assert not re.search(r"/(home|tmp|work|root|usr)/", text)


def test_every_part_has_its_configuration():
    assert set(STORED["configurations"]) == set(STORED["load"]) == set(scale.PARTS)
    for setting in STORED["configurations"].values():
        assert {"python", "rekka", "numpy", "numba", "polars"} <= set(setting["versions"])


def test_aims_are_judged_on_the_stored_figures():
    assert [(aim.aim, aim.figure, aim.met) for aim in scale.judge(STORED)] == [
        (one["aim"], one["figure"], one["met"]) for one in STORED["aims"]
    ]


@pytest.mark.parametrize("way", [one["way"] for one in STORED["agreement"]])
def test_a_result_that_differs_gives_no_page(way):
    changed = copy.deepcopy(STORED)
    next(one for one in changed["agreement"] if one["way"] == way)["largest"] = 1e-6
    with pytest.raises(NoLongerSo, match=re.escape(way)):
        scale_page.write_page(changed)


def test_a_fit_that_was_not_made_is_said_so():
    changed = copy.deepcopy(STORED)
    changed["fits"][-1] |= {"seconds": None, "note": "not made: no workers"}
    assert "not made: no workers." in scale_page.write_page(changed)


def test_without_rivals_the_page_says_so():
    changed = copy.deepcopy(STORED) | {"rivals": {}}
    assert "R's msm has no figures in this run." in scale_page.write_page(changed)
