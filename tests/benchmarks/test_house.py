"""The counting of the house, on a small one that can be counted by hand."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import house

FILES = {
    "src/rekka/__init__.py": '"""Root."""\n',
    "src/rekka/errors.py": '"""Errors."""\n\n\nclass Wrong(Exception):\n    """It is wrong.\n\n    More of it.\n    """\n',
    "src/rekka/low/__init__.py": "",
    "src/rekka/low/one.py": "import rekka\nfrom rekka.errors import Wrong\n\n\ndef f():\n    return Wrong\n",
    "src/rekka/left/a.py": "from rekka.right.b import g\n\n\ndef f():\n    def inner():\n        return 1\n    return g, inner\n",
    "src/rekka/right/b.py": "def g():\n    from rekka import left\n    return left\n",
    "src/rekka/commands/c.py": "import rekka.low.one\n",
    "tests/test_it.py": "assert True\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_small_house(tree):
    found = house.count(tree, trace=False)
    assert found.lines == 1 + 8 + 0 + 6 + 7 + 3 + 1
    assert sorted(found.modules) == [0, 1, 1, 3, 6, 7, 8]
    assert sorted(found.functions) == [2, 2, 3, 4]
    assert found.docstring_lines == 1 + 1 + 4
    assert (found.nodes, found.cycles) == (5, (("left", "right"),))
    assert (found.command_lines, found.test_lines) == (1, 1)


def test_imports_are_between_packages_and_single_modules():
    texts = {name.removeprefix("src/rekka/"): text for name, text in FILES.items() if name.startswith("src")}
    found = house.list_imports({name: ast.parse(text) for name, text in texts.items()})
    assert found == {
        "errors": set(),
        "low": {"errors"},
        "left": {"right"},
        "right": {"left"},
        "commands": {"low"},
    }


def test_two_cycles_are_two_and_a_chain_is_none():
    chain = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert house.find_cycles(chain) == ()
    both = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}}
    assert house.find_cycles(both) == (("a", "b", "c"), ("d", "e"))


def test_the_table_has_a_column_for_each_house(tree):
    found = house.count(tree, trace=False)
    head, _, first, *_ = house.tabulate({"before": found, "after": found}).splitlines()
    assert head == "| | before | after |"
    assert first == "| lines of Python in the package | 26 | 26 |"
    assert "changes of module" not in house.tabulate({"now": found})


def test_changes_of_module_pass_over_what_is_not_ours():
    low, high = (ModuleType(f"rekka.{name}") for name in ("toy_low", "toy_high"))
    exec("def f():\n    return g()\n\n\ndef g():\n    return 1\n", vars(low))
    exec("def h():\n    return f() + sum(map(lambda _: f(), pair([1, 2])))\n", vars(high))
    vars(high).update(f=low.f, pair=lambda values: [low.g(), *values])  # pair is of this file, not of rekka
    tracer = house.Tracer()
    sys.setprofile(tracer)
    try:
        high.h()
    finally:
        sys.setprofile(None)
    found = tracer.sum_up()
    assert tracer.calls == {("rekka.toy_high", "rekka.toy_low"): 1 + 1 + 3}
    assert found == house.Crossings(modules=2, pairs=1, calls=5)


def test_a_revision_is_checked_out():
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=house.ROOT, capture_output=True, check=False)
    if asked.returncode:
        pytest.skip("not in a git checkout")
    with house.check_out("HEAD") as tree:
        assert (tree / "src" / "rekka" / "__init__.py").exists()
    with pytest.raises(SystemExit, match="There is no revision nowhere"), house.check_out("nowhere"):
        pass
