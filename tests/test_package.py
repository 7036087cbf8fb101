"""What is published: metadata, licences, the files around the package. Building and installing it: make dist."""

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import vl_convert
from typer.testing import CliRunner

import rekka
from distribution import (
    COMMANDS,
    PYTHONS,
    find_commands,
    find_faults,
    find_machine,
    find_python,
    find_tracked,
    find_unlisted,
    is_page,
)
from rekka.cli import COMMANDS as OWN_COMMANDS
from rekka.cli import app
from rekka.report.charts.drawing import bundle_script

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = "/".join(["", "home", ""])  # not as one text: this file is looked into, too
LISTED = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
NOTICES = (ROOT / "src/rekka/report/templates/third_party.txt").read_text(encoding="utf-8")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_pythons_that_are_tried_are_those_of_the_metadata():
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert named == set(PYTHONS)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_metadata_names_the_languages_of_the_texts():
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if one.startswith("Natural Language")}
    folders = {one.name for one in (ROOT / "src/rekka/core/languages").iterdir() if one.is_dir()}
    assert dict(zip(sorted(named), sorted(folders), strict=True)) == {"English": "en", "Japanese": "ja"}


def test_licences_and_the_readme_are_there():
    assert all((ROOT / name).is_file() for name in [*PROJECT["license-files"], PROJECT["readme"]])
    assert {"LICENSE", "THIRD_PARTY.md"} == set(PROJECT["license-files"])


def test_versions_outside_the_package_agree():
    assert re.search(rf"^version: {re.escape(rekka.__version__)}$", read("CITATION.cff"), flags=re.MULTILINE)
    assert f'{{% set version = "{rekka.__version__}" %}}' in read("recipe/meta.yaml")


def test_the_recipe_asks_for_what_the_package_asks_for():
    run = re.search(r"^  run:\n((?:    - .*\n)+)", read("recipe/meta.yaml"), flags=re.MULTILINE)[1]
    found = {line.strip("- \n").replace(" ", "") for line in run.splitlines()}
    assert found - {"python>={{python_min}}"} == set(PROJECT["dependencies"])
    assert f'{{% set python_min = "{PYTHONS[0]}" %}}' in read("recipe/meta.yaml")
    name, target = next(iter(PROJECT["scripts"].items()))
    assert f"- {name} = {target}" in read("recipe/meta.yaml")


def test_the_paper_is_cited():
    cited = " ".join(read("CITATION.cff").split())
    for part in (
        "name: The rekka developers",
        "Convergence-Aware Pareto Selection of Covariate Scaling Transformations for Markov Deterioration Hazard Models: "
        "Evidence from Bridge Inspection Data",
        *(f"family-names: {name}" for name in ("Yasuno", "Kobayashi", "Sakaguchi")),
    ):
        assert part in cited


def test_weaknesses_are_reported_where_the_reader_has_rekka_from():
    assert not re.search(r"\S+@\S+\.\w+|https?://", read("SECURITY.md"))
    assert "tracker of the repository" in read("SECURITY.md")


class TestScriptsOfOthers:
    def test_every_package_of_the_bundle_has_its_notice(self):
        """vl-convert has its packages under their addresses at a network from which they were taken."""
        binary = next(one for one in Path(vl_convert.__file__).parent.iterdir() if one.suffix in (".so", ".pyd"))
        found = re.findall(rb"/npm/((?:@[\w-]+/)?[a-z][\w.-]*)@v?\d[\d.]*/\+esm", binary.read_bytes())
        names = {name.decode() for name in found}
        assert {"vega", "vega-lite", "vega-embed", "d3-array"} <= names
        listed = re.findall(r"^(?:  )?((?:[\w.-]+, )*[\w.-]+)[,:]", NOTICES, flags=re.MULTILINE)
        assert names - {name for line in listed for name in line.split(", ")} == set()

    def test_the_notices_are_in_the_script_of_a_page(self):
        assert bundle_script().startswith(f"(()=>{{/*!\n{NOTICES}*/\n")
        assert "*/" not in NOTICES

    def test_every_licence_has_its_text(self):
        for name, words in (
            ("BSD-3-Clause", "Redistributions in binary form must reproduce the above copyright notice"),
            ("ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"),
            ("MIT", "Permission is hereby granted, free of charge"),
            ("Apache-2.0", "Licensed under the Apache License, Version 2.0"),
            ("Unlicense", "in the public domain"),
        ):
            _, _, text = NOTICES.partition(f"\n== {name}\n")
            assert words in " ".join(text.partition("\n== ")[0].split()), name
            assert name in LISTED

    def test_every_script_in_the_package_is_listed(self):
        scripts = {one.as_posix() for kind in ("*.js", "*.mjs") for one in (ROOT / "src").rglob(kind)}
        assert scripts
        assert find_unlisted(scripts, LISTED) == []


class TestLookingIntoAWheel:
    """What ``make dist`` finds, in wheels that are made here."""

    GOOD = {  # noqa: RUF012 (nothing changes it)
        "rekka/__init__.py": b"",
        "rekka/templates/page.js": b"",
        "rekka-1.dist-info/METADATA": b"Name: rekka",
        "rekka-1.dist-info/licenses/LICENSE": b"",
        "rekka-1.dist-info/licenses/THIRD_PARTY.md": b"",
    }
    TRACKED = {"rekka/__init__.py", "rekka/templates/page.js"}  # noqa: RUF012

    def test_a_good_one(self):
        assert find_faults(self.GOOD, self.TRACKED, "`page.js`") == []

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            ({"rekka/templates/page.js": None}, "rekka/templates/page.js is missing"),
            ({"tests/test_it.py": b""}, "tests/test_it.py is not of the package"),
            ({"rekka/draft.py": b""}, "rekka/draft.py is not of the package"),
            ({"rekka-1.dist-info/licenses/THIRD_PARTY.md": None}, "the licence THIRD_PARTY.md is missing"),
            ({"rekka/__init__.py": HOME.encode()}, f"rekka/__init__.py names {HOME}"),
        ],
    )
    def test_a_fault(self, change, fault):
        wheel = {name: content for name, content in (self.GOOD | change).items() if content is not None}
        assert find_faults(wheel, self.TRACKED, "`page.js`") == [fault]

    def test_a_script_of_others_that_is_not_listed(self):
        wheel = self.GOOD | {"rekka/templates/library.mjs": b""}
        told = "rekka/templates/library.mjs is a script that THIRD_PARTY.md does not list"
        assert find_faults(wheel, self.TRACKED | {"rekka/templates/library.mjs"}, "`page.js`") == [told]

    @pytest.mark.parametrize(
        ("content", "whole"),
        [(b"<!doctype html><p></html>\n", True), (b"<!doctype html><p>", False), (b"", False)],
    )
    def test_a_page_that_was_cut_short(self, content, whole):
        assert is_page(content) is whole


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pyenv of this kind")
def test_a_python_that_pyenv_has_switched_off_is_found(tmp_path, monkeypatch):
    version = "{}.{}".format(*sys.version_info[:2])
    place = tmp_path / "versions" / f"{version}.0" / "bin"
    place.mkdir(parents=True)
    (place / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", "none")
    assert find_python(version) == str(place / "python")
    assert find_python("3.99") is None


def test_the_package_names_no_machine():
    if not (ROOT / ".git").exists():
        pytest.skip("not in a git checkout")
    files = {name: (ROOT / "src" / name).read_bytes() for name in find_tracked()}
    assert "rekka/core/languages/ja/page.toml" in files
    files |= {one.name: one.read_bytes() for one in ROOT.iterdir() if one.is_file() and one.name != ".git"}
    assert find_machine(files) == []


def test_what_is_tried_are_commands_which_the_help_lists():
    printed = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, ["--help"]).output
    assert find_commands(printed) == list(OWN_COMMANDS)
    assert {command for command, *_ in COMMANDS} <= {*OWN_COMMANDS, "verify", "app"}


class TestContainer:
    """The Dockerfile, read: no docker is needed."""

    STEPS = re.findall(r"^([A-Z]+) (.*)$", read("Dockerfile").replace("\\\n", " "), flags=re.MULTILINE)

    def test_it_runs_rekka_without_rights(self):
        steps = [step for step, _ in self.STEPS]
        found = dict(self.STEPS)
        assert found["FROM"] == "python:3.12-slim"
        assert int(found["USER"]) > 0
        assert found["ENTRYPOINT"] == '["rekka"]'
        assert steps.index("USER") < steps.index("ENTRYPOINT")
        # the demo, by which the build shows that the image works, is run by that user
        assert next(what for step, what in self.STEPS[steps.index("USER") :] if step == "RUN").startswith(
            "rekka demo"
        )

    def test_any_user_finds_the_kernels_compiled(self):
        """Numba passes by a folder that cannot be written, and each start would compile again."""
        demo = next(what for step, what in self.STEPS if step == "RUN" and what.startswith("rekka demo"))
        assert dict(self.STEPS)["ENV"] == "NUMBA_CACHE_DIR=/kernels"
        assert demo.endswith("chmod -R a+rwX /kernels/*")

    def test_it_publishes_no_port(self):
        assert "EXPOSE" not in dict(self.STEPS)
        assert not re.search(r"docker run.* (-p|--publish)\b|0\.0\.0\.0", read("Dockerfile"))

    def test_it_takes_what_the_build_needs_and_nothing_else(self):
        copied = [part for step, what in self.STEPS if step == "COPY" for part in what.split()[:-1]]
        assert set(copied) == {"pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]}
        allowed = {line.removeprefix("!") for line in read(".dockerignore").split() if line.startswith("!")}
        assert set(copied) == allowed
