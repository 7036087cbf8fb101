"""The page that sets the paper beside a run: it is what the stored run gives, and the paper's columns are the paper's."""

import copy
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rekka.report.text import MISSING
from rekka.study.hypotheses import Support

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import reproduction, reproduction_figures, reproduction_page, reproduction_words

ROOT = Path(__file__).parents[2]
PAPER = json.loads((ROOT / "src" / "rekka" / "verification" / "paper_trials.json").read_text())
STORED = json.loads(reproduction.RESULT.read_text())
PAGE = reproduction.PAGE.read_text()
METHODS = PAPER["trials"]["methods"]
NAMES = {"max": "max", "minmax": "min-max", "zscore": "z-score", "boxcox": "Box-Cox"}


@pytest.fixture(scope="module")
def pictures():
    return reproduction_figures.list_pictures(STORED)


def section(heading: str) -> str:
    """The text under the heading that begins so."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(heading))


def table(heading: str) -> list[dict[str, str]]:
    """The first table under a heading, a dict for each row; a header that is empty is called 'of'."""
    lines = next(part for part in section(heading).split("\n\n") if part.startswith("|")).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header = [name or "of" for name in rows[0]]
    return [dict(zip(header, row, strict=True)) for row in rows[2:]]


def printed(heading: str) -> list[dict[str, str]]:
    return [row for row in table(heading) if row["of"] == "paper"]


class TestThePageIsWhatTheStoredRunGives:
    def test_text(self, pictures):
        assert reproduction_page.write_page(STORED, pictures) == PAGE

    def test_pictures_show_the_same(self, pictures):
        """By their words and numbers: another version of the drawing library may place them otherwise."""
        assert sorted(pictures) == sorted(file.name for file in reproduction.PICTURES.glob("reproduction-*.svg"))
        for name, figure in pictures.items():
            drawn = reproduction.draw_svg_file(reproduction.combine(figure))
            assert words_of(drawn) == words_of((reproduction.PICTURES / name).read_text()), name

    def test_every_picture_is_on_the_page_with_its_message(self, pictures):
        for name, figure in pictures.items():
            (message,) = re.findall(rf"!\[([^]]*)\]\(figures/{re.escape(name)}\)", PAGE)
            assert " ".join(message.split()) == " ".join(panel.alt for panel in figure.panels)

    def test_lines_outside_tables_are_short(self):
        assert max(len(line) for line in PAGE.splitlines() if not line.startswith("|")) <= 120

    def test_nothing_of_the_machine_is_told(self):
        for text in (PAGE, reproduction.RESULT.read_text()):
            assert not re.search(r"/(home|tmp|work|root|usr)/", text)
        assert set(STORED["configuration"]["versions"]) >= {"python", "rekka", "numpy", "scipy"}


def words_of(svg: str) -> list[str]:
    return [
        element.text for element in ElementTree.fromstring(svg).iter() if element.text and element.text.strip()
    ]


class TestThePapersColumns:
    def test_cases(self):
        rows = table("Table 1")
        for row, (case, sizes) in zip(rows, PAPER["cases"]["rows"].items(), strict=True):
            assert row["case"] == case
            for who in ("paper", "rekka"):
                assert [int(row[f"{who}: {part}"].replace(",", "")) for part in PAPER["cases"]["columns"]] == sizes

    def test_methods(self):
        for row, method in zip(printed("Table 2"), METHODS, strict=True):
            converged, selected, accuracy, seconds = PAPER["methods"]["rows"][method]
            assert row["method"] == NAMES[method]
            assert (row["converged"], row["selected"], row["certified"]) == (
                f"{converged} / 10",
                str(selected),
                MISSING,
            )
            assert (float(row["mean accuracy"]), float(row["median s (low)"])) == (accuracy, seconds)
        usual = [float(row["median s (usual)"]) for row in printed("Table 2")]
        assert usual == [0.928, 0.988, 0.3805, 0.2515]  # docs/errata.md

    def test_selection(self):
        found = {row["case"]: row["paper"] for row in table("Table 3")}
        assert found == {
            case: ", ".join(map(NAMES.get, kept)) for case, kept in PAPER["selection"]["rows"].items()
        }

    def test_boxcox(self):
        rows = printed("Table 4")
        assert [row["case"] for row in rows] == list(PAPER["log_loss"]["rows"])
        for row in rows:
            accuracy, loss, low, high = PAPER["log_loss"]["rows"][row["case"]]
            assert (float(row["accuracy"]), float(row["log loss"])) == (accuracy, loss)
            ends = [float(end) for end in row["alternatives' log loss"].split(" to ")]
            assert (ends[0], ends[-1]) == (low, high)
            assert float(row["(1 - accuracy) x 27.63"]) == pytest.approx((1 - accuracy) * 27.6310, abs=1e-3)
            assert row["rows at the floor"] == MISSING

    def test_trials(self):
        rows = printed("Table 5")
        assert [row["case"] for row in rows] == list(PAPER["trials"]["rows"])
        for row in rows:
            kept = PAPER["selection"]["rows"][row["case"]]
            for method, pair in zip(METHODS, PAPER["trials"]["rows"][row["case"]], strict=True):
                cell = row[NAMES[method]]
                if pair is None:
                    assert cell == MISSING
                else:
                    assert [float(figure) for figure in cell.strip("*").split(" / ")] == pair
                    assert cell.startswith("**") == (method in kept)

    def test_hypotheses(self):
        """As docs/errata.md has them."""
        rows = table("The hypotheses")
        assert [row["the paper says"] for row in rows] == [Support.SUPPORTED] * 5
        partly = {row["of"] for row in rows if row["its own figures"] == Support.PARTLY}
        assert partly == {"H2", "H3", "H5"}

    def test_the_redrawn_heat_map(self, pictures):
        """Every accuracy that the paper prints stands in its cell."""
        shown = pictures["reproduction-heatmaps-printed.svg"].panels[0].spec["data"]["values"]
        told = {(row["case"], row["method"]): row["text"] for row in shown}
        for case, trials in PAPER["trials"]["rows"].items():
            for method, pair in zip(METHODS, trials, strict=True):
                assert told[case, NAMES[method]] == (MISSING if pair is None else f"{pair[0]:.3f}")


class TestOurColumns:
    def test_trials_are_the_stored_ones(self):
        rows = {(row["case"], row["of"]): row for row in table("Table 5")}
        titles = {"paper": "rekka, paper's conditions", "exact": "rekka, exact"}
        for trial in STORED["trials"]:
            cell = rows[trial["case"], titles[trial["preset"]]][NAMES[trial["method"]]]
            if not trial["eligible"]:
                assert cell == MISSING
                continue
            accuracy, seconds = map(float, cell.strip("*").split(" / "))
            assert accuracy == pytest.approx(trial["accuracy"], abs=5.1e-5)
            assert seconds == pytest.approx(trial["seconds"], abs=5.1e-4 if trial["seconds"] >= 0.1 else 5.1e-5)
            assert cell.startswith("**") == trial["selected"]

    def test_the_run_was_the_papers_study(self):
        plan = STORED["plan"]
        assert (plan["rule"], plan["select_on"]) == ("pareto", "golden")
        assert plan["costs"] == {"paper": "seconds", "exact": "evaluations"}
        keys = {(trial["case"], trial["preset"], trial["method"]) for trial in STORED["trials"]}
        assert len(keys) == len(STORED["trials"]) == 2 * len(PAPER["cases"]["rows"]) * len(METHODS)
        assert len(STORED["starts"]) == reproduction.STARTS
        assert STORED["configuration"]["repeats"]["timings"] == reproduction.REPEATS


class TestSentencesThatNoLongerHold:
    def test_stop_the_page(self, pictures):
        """Z-score failing somewhere would make the first of 'What agrees' untrue."""
        changed = copy.deepcopy(STORED)
        for trial in changed["trials"]:
            if (trial["case"], trial["preset"], trial["method"]) == ("Pier", "paper", "zscore"):
                trial |= {"converged": False, "eligible": False, "selected": False}
        with pytest.raises(reproduction_words.NoLongerSo, match="Z-score converges in all 10 cases"):
            reproduction_page.write_page(changed, pictures)

    def test_sizes_that_are_not_the_papers(self, pictures):
        changed = copy.deepcopy(STORED)
        changed["cases"][0]["golden"] += 1
        with pytest.raises(reproduction_words.NoLongerSo, match="same by design"):
            reproduction_page.write_page(changed, pictures)


def test_the_page_alone_can_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduction, "ROOT", tmp_path)
    monkeypatch.setattr(reproduction, "PAGE", tmp_path / "reproduction.md")
    monkeypatch.setattr(reproduction, "PICTURES", tmp_path / "figures")
    monkeypatch.setattr(reproduction, "draw_svg_file", lambda spec: "<svg/>")  # drawn above
    monkeypatch.setattr(reproduction, "run", lambda **_: pytest.fail("a run was asked for"))
    reproduction.main(["--page"])
    assert (tmp_path / "reproduction.md").read_text() == PAGE
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 6
    assert "Written: reproduction.md" in capsys.readouterr().out
