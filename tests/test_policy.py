"""What docs/policy.md promises of names and of the versions of files."""

import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import rekka
from rekka.data import mapping
from rekka.fleet.document import ForecastFile
from rekka.model.serial import PLAIN_VERSION, ModelFile
from rekka.model.serial import VERSION as MODEL
from rekka.report.document import VERSION as REPORT
from rekka.scaling.serial import VERSION as SCALING
from rekka.study.plan import BEFORE_CLOCK
from rekka.study.plan import VERSION as PLAN

ROOT = Path(__file__).parent.parent
POLICY = (ROOT / "docs" / "policy.md").read_text()
TOY = ("partition_by_bridge", "9.1.0", "9.3.0")  # far ahead of any version


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def faults(old: str, new: str, since: str, until: str, changelog: str) -> list[str]:
    """What is wrong with an entry of the table of deprecated names."""
    minor = number(until)[0] > number(since)[0] or number(until)[1] >= number(since)[1] + 2
    found = {
        "it is still public": old in rekka.__all__,
        "its successor is not public": new not in rekka.__all__,
        "it goes before two minor versions are over": not minor,
        "it should be gone": number(rekka.__version__) >= number(until),
        "the changelog does not name it": f"`{old}`" not in changelog,
    }
    return [fault for fault, there in found.items() if there]


class TestDeprecation:
    @pytest.fixture(autouse=True)
    def deprecated(self, monkeypatch):
        monkeypatch.setitem(rekka._DEPRECATED, "split_by_bridge", TOY)

    def test_the_old_name_works_and_says_what_to_use(self):
        with pytest.warns(DeprecationWarning, match="split_by_bridge") as caught:
            found = rekka.split_by_bridge
        assert found is rekka.partition_by_bridge
        assert str(caught[0].message) == (
            "rekka.split_by_bridge is deprecated since 9.1.0 and goes in 9.3.0. "
            "Use rekka.partition_by_bridge instead."
        )
        assert caught[0].filename == __file__  # the caller's line, not ours

    def test_it_can_be_imported_by_name(self):
        with pytest.warns(DeprecationWarning, match=r"Use rekka\.partition_by_bridge instead"):
            from rekka import split_by_bridge
        assert split_by_bridge is rekka.partition_by_bridge

    def test_it_is_not_listed(self):
        assert "split_by_bridge" not in dir(rekka)

    def test_other_names_do_not_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rekka.partition_by_bridge.__name__ == "partition_by_bridge"

    @pytest.mark.parametrize(
        ("entry", "fault"),
        [
            (("split", *TOY), []),
            (("compare", *TOY), ["it is still public", "the changelog does not name it"]),
            (("split", "nowhere", *TOY[1:]), ["its successor is not public"]),
            (("split", TOY[0], "9.1.0", "9.2.0"), ["it goes before two minor versions are over"]),
            (("split", TOY[0], "8.9.0", "9.0.0"), []),
            (("split", TOY[0], "0.1.0", "0.3.0"), ["it should be gone"]),
        ],
    )
    def test_faulty_entries_are_found(self, entry, fault):
        assert faults(*entry, changelog="- `split` is deprecated") == fault


def test_entries_are_without_fault():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert {
        old: found for old, entry in rekka._DEPRECATED.items() if (found := faults(old, *entry, changelog))
    } == {}


def test_paths_that_pages_name_lead_somewhere():
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    paths = set(re.findall(r"`(rekka(?:\.[a-z_]+){2,}(?:\.[A-Z]\w+(?:\.\w+)?)?)`", pages))
    assert "rekka.report.document.Document.from_json" in paths
    for path in paths:
        module, _, names = re.fullmatch(r"((?:\w+\.)*?[a-z_]+)(\.([A-Z]\w+.*))?", path).groups()
        found = import_module(module)
        for name in (names or "").split("."):
            found = getattr(found, name) if name else found


@pytest.mark.parametrize(
    ("file", "written", "read"),
    [
        ("model file", f"{PLAIN_VERSION}, with categories {MODEL}", "2 to 5"),
        ("run folder", f"plan {PLAN}, files 1", f"plan {BEFORE_CLOCK} and {PLAN}"),
        ("study file", str(PLAN), f"1 to {PLAN}"),
        ("`forecast.json`", str(ForecastFile.model_fields["version"].default), "1"),
        ("`report.json`", str(REPORT), f"2 to {REPORT}"),
        ("scaling", str(SCALING), "1"),
    ],
)
def test_the_page_names_the_versions_of_the_code(file, written, read):
    row = next(line for line in POLICY.splitlines() if line.startswith(f"| {file} |"))
    *_, version, reads, _ = row.split("|")
    assert version.strip() == written
    assert reads.strip().startswith(f"{read}: from ")


def test_model_files_are_read_from_version_2_on():
    assert ModelFile.model_fields["version"].annotation.__args__ == (2, 3, 4, MODEL)


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("TableMapping", "columns dates join rules state table wide"),
        (
            "ColumnRoles",
            "area bridge case categories completed covariates date keep length member repairs state traffic visit width",
        ),
        ("FileOptions", "decimal encoding header_row names separator sheet"),
        ("Wide", "date state traffic"),
        ("State", "bands best labels missing worst worst_first"),
        ("Dates", "completed inspection repair"),
        ("Join", "agree columns decimal encoding file header_row names separator sheet"),
        ("Rules", "interval max_gap missing outside repairs same_day upward"),
    ],
)
def test_mapping_files_keep_the_keys_of_0_4_0(section, keys):
    assert set(keys.split()) <= set(getattr(mapping, section).model_fields)
