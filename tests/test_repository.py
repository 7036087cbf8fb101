"""The repository keeps its own promises: imports, names, README."""

import ast
import doctest
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rekka
from rekka.scaling.registry import REGISTRY

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rekka"
# Packages and single modules from the ground up: each imports only from itself and from those before it.
LAYERS = (
    "core",
    "data",
    "scaling",
    "model",
    "streaming",
    "simulation",
    "evaluation",
    "checks",
    "forecast",
    "fleet",
    "estimator",
    "study",
    "report",
    "workflows",
    "verification",
    "app",
    "commands",
    "cli",
)


def modules() -> dict[str, Path]:
    files = [f for f in SOURCE.rglob("*.py") if f.name != "__init__.py"]
    return {".".join(f.relative_to(SOURCE).with_suffix("").parts): f for f in files}


@cache
def parse(file: Path) -> ast.Module:
    """The syntax tree of a file, which several tests look at."""
    return ast.parse(file.read_text())


@cache
def walk(tree: ast.Module) -> list[ast.AST]:
    """Its nodes."""
    return list(ast.walk(tree))


def imports(file: Path) -> list[tuple[str, bool]]:
    """Layers of rekka that a file imports from, and whether at its top."""
    tree = parse(file)
    found = []
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "rekka":
            found += [(alias.name, node in tree.body) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rekka."):
            found.append(((node.module or "").split(".")[1], node in tree.body))
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("rekka.")]
            found += [(name.split(".")[1], node in tree.body) for name in names]
    return found


def test_every_package_is_a_layer():
    top = {f.stem for f in SOURCE.iterdir() if (f.is_dir() and f.name != "__pycache__") or f.suffix == ".py"}
    assert top - {"__init__"} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer):
    for module, file in modules().items():
        if module.split(".")[0] != layer:
            continue
        for name, at_top in imports(file):
            assert name in LAYERS, f"{module} imports {name}"
            assert LAYERS.index(name) <= LAYERS.index(layer), f"{module} imports from {name}, which is above it"
            # what is heavy waits behind the command line, so that --help answers at once
            assert at_top or layer == "commands", f"{module} hides an import from {name} in a function"


def test_contributing_describes_every_layer_in_order():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, flags=re.MULTILINE)
    assert tuple(listed) == LAYERS


def test_public_names_are_one_sorted_list_and_all_exist():
    names = [n for n in rekka.__all__ if n != "__version__"]
    assert names == sorted(names)
    assert set(names) == set(rekka._HOMES)
    for name in rekka.__all__:
        assert getattr(rekka, name) is not None
    assert dir(rekka) == sorted(rekka.__all__)
    with pytest.raises(AttributeError, match="module 'rekka' has no attribute 'nonsense'"):
        _ = rekka.nonsense


def test_importing_rekka_loads_nothing_heavy():
    code = "import sys, rekka; print([m for m in ('numba', 'polars', 'numpy', 'sklearn', 'scipy', 'altair', 'pydantic', 'dask') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_versions_agree():
    assert f'version = "{rekka.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {rekka.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_has_its_reason_in_the_readme():
    project = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)^\]", project, flags=re.MULTILINE | re.DOTALL)
    assert block
    readme = (ROOT / "README.md").read_text()
    for name in re.findall(r'"([\w-]+)>=', block[1]):
        assert re.search(rf"^\| {name} \|", readme, flags=re.MULTILINE), name


DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))

EXAMPLES = [
    (page, number, code)
    for page in ("README.md", *(file.relative_to(ROOT).as_posix() for file in DOCS))
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL))
]
EXAMPLES += [(file.relative_to(ROOT).as_posix(), 0, file.read_text()) for file in SCRIPTS]

SLOW = {("docs/quickstart.md", 0), ("docs/report.md", 0)}  # whole studies with their reports


def run_example(page, number, code, capsys):
    """A line ``# prints: text`` after a print must be in what was printed."""
    before = set(REGISTRY)
    exec(compile(code, f"{page}[{number}]", "exec"), {})
    for name in set(REGISTRY) - before:  # scaling operators that the example registered
        REGISTRY.pop(name)
    printed = capsys.readouterr().out
    for expected in re.findall(r"# prints: (.*)", code):
        assert expected.strip() in printed


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("page", "number", "code"),
    [
        pytest.param(*one, id=f"{one[0]}-{one[1]}", marks=pytest.mark.slow if one[:2] in SLOW else ())
        for one in EXAMPLES
    ],
)
def test_examples_run_and_print_what_they_say(page, number, code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REKKA_EXAMPLES", "small")  # scripts of examples/ take fewer bridges and components
    monkeypatch.setattr("rekka.evaluation.calibration.TEST_SETS", 99)  # as outside of tests
    run_example(page, number, code, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_scripts_run_in_full(script, capsys, tmp_path, monkeypatch):
    """As a reader runs them, Ontario's on the real table where it is there."""
    ontario = ROOT.parent / "shared" / "data" / "ontario"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONTARIO", str(ontario))
    run_example(script.name, 0, script.read_text(), capsys)


def test_files_that_the_pages_name_are_there():
    for page in PAGES:
        for name in re.findall(r"\b(?:tests|src|benchmarks|examples)/[\w/]+\.py", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


def anchors(page):
    """Anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    if page.name.startswith("example-"):  # its headings are those of the script
        script = re.search(r"<!-- script (\S+) -->", text)
        text += re.sub(r"^# ", "", (page.parent / script[1]).read_text(), flags=re.MULTILINE)
    found = []
    for heading in re.findall(r"^#{1,4} (.+)", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def test_relative_links_in_the_pages_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target, anchor in re.findall(r"\]\((?!http)([^)#\s]*)(?:#([^)]*))?\)", text):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name}: {target}"
            if anchor and other.suffix == ".md":
                assert anchor in anchors(other), f"{page.name}: {target}#{anchor}"


WRITERS = frozenset({
    "write_text", "write_bytes", "write_csv", "write_parquet", "write_excel", "write_ipc", "write_json",
    "write_ndjson", "sink_csv", "sink_parquet", "sink_ipc", "sink_ndjson", "savetxt", "savez", "tofile", "to_csv",
    "to_excel", "copyfile", "copy2", "copytree", "move", "Workbook", "ZipFile", "NamedTemporaryFile", "mkstemp",
})  # fmt: skip
# Where a library fills an unfinished or temporary file of rekka.core.files, or a buffer. All others write through it.
FILLERS = {
    "app.jobs": {"open"},  # the log that a worker writes
    "app.uploads": {"open"},
    "core.sheets": {"write_csv", "write_excel", "write_parquet", "Workbook"},
    "data.transitions": {"write_parquet", "write_bytes", "sink_parquet", "sink_csv"},
    "simulation.inventory": {"write_csv", "write_parquet", "write_text", "sink_parquet", "open"},
    "data.tables": {"ZipFile"},  # opens a workbook to read it
    "report.workbook": {"ZipFile"},
    "study.digests": {"write_parquet"},
    "study.rows": {"sink_parquet"},
    "fleet.store": {"write_parquet", "sink_csv", "sink_parquet"},
}


@cache
def called(file: Path) -> list[tuple[str, ast.Call]]:
    """What a module calls, with the calls: 'print', 'os.replace' or, of a value, 'write_csv'."""
    found = []
    for call in (node for node in walk(parse(file)) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name):
            found.append((f"builtin {call.func.id}", call))
        elif isinstance(call.func, ast.Attribute):
            base = call.func.value
            known = isinstance(base, ast.Name) and base.id in ("os", "typer", "sys")
            found.append((f"{base.id}.{call.func.attr}" if known else call.func.attr, call))
    return found


def opens_to_write(call: ast.Call) -> bool:
    given = [one.value for one in [*call.args, *(k.value for k in call.keywords)] if isinstance(one, ast.Constant)]
    modes = [one for one in given if isinstance(one, str) and re.fullmatch(r"[rwaxbt+]{1,3}", one)]
    return any(set(mode) & set("wax+") for mode in modes)


def test_files_are_written_through_one_module():
    for module, file in modules().items():
        found = {name for name, _ in called(file) if name in WRITERS or name in ("os.replace", "os.rename")}
        found |= {
            "open" for name, call in called(file) if name in ("open", "builtin open") and opens_to_write(call)
        }
        if module != "core.files":
            assert found == FILLERS.get(module, set()), f"{module} writes a file by itself. Use rekka.core.files."


def test_everything_is_printed_through_one_module():
    past = {
        "builtin Console",
        "builtin print",
        "typer.echo",
        "typer.secho",
        "sys.stdout.write",
        "sys.stderr.write",
    }
    for module, file in modules().items():
        found = {name for name, _ in called(file)} & past
        assert not found or module == "core.terminal", (
            f"{module} prints by itself: {found}. Use rekka.core.terminal."
        )


# Exponentials outside model/ that are not hazards of a predictor, or not those of a fitted model.
EXPONENTIALS = {
    "evaluation.resampling": "Poisson probabilities of how often a bridge is drawn",
    "evaluation.violations": "factors by which hazards change, made on a logarithmic scale",
    "fleet.network": "weights of a normal distribution",
    "fleet.shocks": "factors of the hazards of all members, which are log-normal",
    "fleet.repairs": "the chance of a repair within part of a year, and its rate, estimated as a logarithm",
    "forecast.history_propagation": "frailties, which are placed on a logarithmic scale; chances within part of a year",
    "forecast.uncertainty": "the ends of an interval that was made on a logarithmic scale",
    "fleet.elements": "the change in percent of hazards with a trend",
    "scaling.operators": "the inverse of an operator, and the likelihood of Box-Cox exponents",
    "simulation.rows": "lengths, areas and traffic, which are log-normal",
    "simulation.stock": "the same, and known hazards: the truth is drawn without the model that it helps to test",
    "verification.formulas": "the formulas of textbooks, which the model is compared with",
    "verification.histories": "closed forms, which the model is compared with; probabilities of log probabilities",
    "verification.maxima": "a skewed covariate that is drawn; closed forms; the hazard of an intercept",
    "verification.probabilities": "closed forms, which the model is compared with",
    "verification.published": "a probability of the paper's floored likelihood, which is a logarithm",
}
DIVISIONS = {
    "simulation.stock": "waiting times at known hazards: drawn without the model",
    "verification.formulas": "the same",
}


def uses_exponential(tree: ast.Module) -> bool:
    named = [node.attr for node in walk(tree) if isinstance(node, ast.Attribute)]
    named += [node.id for node in walk(tree) if isinstance(node, ast.Name)]
    named += [a.name for node in walk(tree) if isinstance(node, ast.ImportFrom) for a in node.names]
    return bool({"exp", "expm1", "exp2", "reciprocal"} & set(named))


def divides_by_hazards(tree: ast.Module) -> bool:
    """Whether something is divided by, or raised to a power of, what is called a hazard or theta."""
    for node in walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div | ast.Pow):
            below = node.value if isinstance(node, ast.AugAssign) else node.right
            base = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else below
            if re.search(r"hazard|theta", ast.unparse(base)):
                return True
    return False


def model_kernels(tree: ast.Module) -> set[str]:
    """Compiled modules of model/ that are imported."""
    found = set()
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rekka.model"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("rekka.model")}
    return {name for name in found if re.match(r"rekka\.model\.(\w+_)?kernel\b", name)}


def test_only_the_model_knows_its_hazards():
    """Outside model/ nobody exponentiates a predictor, inverts a hazard or calls a kernel: the family does.

    A module that needs an exponential for something else is named above with the reason.
    """
    found = {m: parse(f) for m, f in modules().items() if not m.startswith("model.")}
    assert {m: model_kernels(tree) for m, tree in found.items() if model_kernels(tree)} == {}
    assert {m for m, tree in found.items() if uses_exponential(tree)} == set(EXPONENTIALS)
    assert {m for m, tree in found.items() if divides_by_hazards(tree)} == set(DIVISIONS)


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ("from rekka.model import kernel", model_kernels),
        ("from rekka.model.step_kernel import step_rows", model_kernels),
        ("import rekka.model.paper_kernel as k", model_kernels),
        ("theta = np.exp(X @ beta.T)", uses_exponential),
        ("from math import exp", uses_exponential),
        ("years = 1.0 / fit.hazards(x)", divides_by_hazards),
        ("years = theta[..., :state] ** -1", divides_by_hazards),
        ("wait /= theta", divides_by_hazards),
    ],
)
def test_what_goes_past_the_family_is_caught(code, caught):
    assert caught(ast.parse(code))


def test_no_two_public_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for module, file in modules().items():
        for node in parse(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_docstrings_name_the_thing():
    """A docstring begins with a verb or a noun, not with a riddle that only its neighbour explains."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    riddles = [
        f"{module}: {text.splitlines()[0]}"
        for module, file in modules().items()
        for node in walk(parse(file))
        if isinstance(node, documented)
        and (text := ast.get_docstring(node) or "").startswith(("What ", "The same"))
    ]
    assert riddles == []


PUBLIC = [name for name in rekka.__all__ if name != "__version__"]


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """The run folder that examples call "run": two methods, not confirmed."""
    folder = tmp_path_factory.mktemp("examples") / "run"
    rows = rekka.simulate_transitions(400, n_states=3, seed=1)
    rekka.compare(rows, methods=["zscore", "minmax"], guard={"resamples": 5}, confirm=False, out=folder)
    return folder


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", PUBLIC)
def test_examples_of_public_names_are_true(name, tmp_path, monkeypatch, request):
    """Every public name shows how it is used, and what stands behind >>> runs and prints what it says."""
    monkeypatch.chdir(tmp_path)
    public = getattr(rekka, name)
    text = public.__doc__ or ""
    assert ">>> " in text, f"rekka.{name} has no example"
    assert "doctest: +SKIP" not in text, f"the example of rekka.{name} is not run"
    if '"run"' in text:
        shutil.copytree(request.getfixturevalue("small_run"), tmp_path / "run")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for found in doctest.DocTestFinder().find(public, name, globs={"rekka": rekka}):
        assert runner.run(found).failed == 0, found.name


def test_the_reference_has_every_public_name_once():
    page = (ROOT / "docs" / "reference.md").read_text()
    assert sorted(re.findall(r"^\.\. auto\w+:: rekka\.(\w+)$", page, flags=re.MULTILINE)) == PUBLIC
