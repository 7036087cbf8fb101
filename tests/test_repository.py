"""The repository keeps its own promises: imports, names, source map, README."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rekka

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rekka"
# Rooms from the ground up: a module imports only from rooms below its own, in this order.
ORDER = [
    "errors",
    "cells",
    "files",
    "sheets",
    "readers.queries",
    "readers.text",
    "readers.files",
    "readers.mapping",
    "readers.names",
    "readers.values",
    "readers.reading",
    "readers.attributes",
    "readers.joins",
    "panel",
    "readers.nbi",
    "audit",
    "direction",
    "partition",
    "compiling",
    "pairing_kernel",
    "pairing",
    "transitions",
    "scaling.operators",
    "scaling.chain",
    "scaling.foreign",
    "scaling.registry",
    "scaling.fitting",
    "scaling.serial",
    "scaling.transformer",
    "model.kernel",
    "model.likelihood",
    "model.probabilities",
    "model.paper_kernel",
    "model.paper",
    "model.clock",
    "model.predictor",
    "model.layout",
    "model.inputs",
    "model.prior",
    "model.coordinates",
    "model.solvers",
    "model.separation",
    "model.restarts",
    "model.certificate",
    "model.inference",
    "model.survey",
    "model.fit",
    "resampling",
    "model.bootstrap",
    "intervals",
    "scores",
    "goodness",
    "misfit",
    "reliability",
    "calibration",
    "model.tables",
    "model.serial",
    "forecast.course",
    "forecast.spread",
    "forecast.step_kernel",
    "forecast.walking",
    "forecast.passage",
    "forecast.forecast",
    "forecast.matrices",
    "forecast.changes",
    "forecast.effects",
    "forecast.methods",
    "cluster.failures",
    "cluster.clients",
    "cluster.tasks",
    "streaming.block_kernel",
    "streaming.blocks",
    "cluster.source",
    "streaming.passes",
    "streaming.likelihood",
    "streaming.clusters",
    "streaming.quantiles",
    "streaming.sample",
    "streaming.scaling",
    "streaming.separation",
    "streaming.fit",
    "streaming.memory",
    "streaming.sources",
    "streaming.tables",
    "large",
    "model.estimator",
    "simulation.dirt",
    "simulation.stock",
    "simulation.inventory",
    "simulation.rows",
    "checks.findings",
    "checks.covariates",
    "checks.cases",
    "checks.held_out",
    "checks.doctor",
    "shrinkage.ridge",
    "shrinkage.hierarchy",
    "shrinkage.pooling",
    "selection",
    "study.words",
    "study.methods",
    "study.plan",
    "study.cases",
    "study.tallies",
    "study.large_cases",
    "study.trial",
    "study.files",
    "study.rows",
    "study.reasons",
    "study.choosing",
    "study.rulings",
    "study.calibrating",
    "study.large_digests",
    "study.confirming",
    "study.large",
    "study.provenance",
    "study.records",
    "study.store",
    "study.changes",
    "study.runner",
    "study.tables",
    "study.hypotheses",
    "study.study",
    "study.describing",
    "study.compare",
    "study.checks.evidence",
    "study.checks.findings",
    "study.checks.fits",
    "study.checks.failures",
    "study.checks.cases",
    "study.checks.baselines",
    "study.checks.choices",
    "study.checks.golden",
    "study.checks.registry",
    "study.request",
    "study.stability_draws",
    "study.stability_store",
    "study.stability_tables",
    "study.stability_remarks",
    "study.stability",
    "forecast.layouts",
    "forecast.profiles",
    "forecast.lists",
    "forecast.ends",
    "forecast.last_visits",
    "forecast.members",
    "forecast.models",
    "forecast.lots",
    "forecast.fleet_remarks",
    "forecast.arrivals",
    "forecast.counts",
    "forecast.network",
    "forecast.fleet_tables",
    "forecast.fleet",
    "forecast.document",
    "forecast.workbook",
    "forecast.store",
    "forecast.backtest_rows",
    "forecast.backtest_losses",
    "forecast.backtest_scores",
    "forecast.backtest_totals",
    "forecast.backtest_case",
    "forecast.backtest_words",
    "forecast.backtest",
    "report.forecast_parts",
    "report.document",
    "report.hazards",
    "report.expectations",
    "report.parts",
    "report.summary",
    "report.words",
    "report.views",
    "report.numbers",
    "report.table_cells",
    "report.table_data",
    "report.table_models",
    "report.table_trials",
    "report.table_forecast",
    "report.table_network",
    "report.tables",
    "report.latex",
    "report.markdown_text",
    "report.palette",
    "report.drawing",
    "report.chart_parts",
    "report.chart_answers",
    "report.chart_trials",
    "report.chart_heatmaps",
    "report.chart_presets",
    "report.chart_calibration",
    "report.chart_stability",
    "report.chart_years",
    "report.chart_curves",
    "report.chart_ratios",
    "report.charts",
    "report.teller",
    "report.telling_answer",
    "report.telling_cases",
    "report.sentences",
    "report.outline",
    "report.telling_forecast",
    "report.telling_network",
    "report.markdown",
    "report.exports",
    "report.chart_profiles",
    "report.chart_covariates",
    "report.chart_network",
    "report.chart_reach",
    "report.figures",
    "report.page",
    "report.networks",
    "report.plots",
    "report.report",
    "terminal",
    "commands.bars",
    "commands.outputs",
    "commands.reading",
    "commands.data",
    "commands.telling",
    "commands.checks",
    "commands.report",
    "commands.study",
    "commands.stability",
    "commands.asking",
    "commands.fit",
    "commands.demo",
    "commands.backtest",
    "commands.effects",
    "commands.telling_forecast",
    "commands.forecast",
    "commands.matrix",
    "cli",
]


def modules() -> dict[str, Path]:
    files = [f for f in SOURCE.rglob("*.py") if f.name != "__init__.py"]
    return {".".join(f.relative_to(SOURCE).with_suffix("").parts): f for f in files}


def imports(file: Path) -> list[tuple[str, bool]]:
    """Modules of rekka that a file imports, and whether at its top."""
    tree = ast.parse(file.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rekka"):
            inside = (node.module or "").removeprefix("rekka").lstrip(".")
            names = [inside] if inside in ORDER else [f"{inside}.{a.name}".lstrip(".") for a in node.names]
            found += [(name, node in tree.body) for name in names]
    return found


def test_every_module_has_its_place_in_the_order():
    assert sorted(modules()) == sorted(ORDER)


@pytest.mark.parametrize("module", ORDER)
def test_imports_point_one_way(module):
    for name, at_top in imports(modules()[module]):
        assert name in ORDER, f"{module} imports {name}"
        assert ORDER.index(name) < ORDER.index(module), f"{module} imports {name}, which is above it"
        # what is heavy waits behind the command line, so that --help answers at once
        assert at_top or module.startswith("commands."), f"{module} hides an import of {name} in a function"


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


def test_source_map_in_contributing_lists_every_module():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = set(re.findall(r"^\| `(src/rekka/[\w/]+\.py)` \|", text, flags=re.MULTILINE))
    assert listed == {str(f.relative_to(ROOT)) for f in SOURCE.rglob("*.py")}


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


EXAMPLES = [
    (page, number, code)
    for page in ("README.md", *(f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md"))))
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL))
]


@pytest.mark.parametrize(("page", "number", "code"), EXAMPLES, ids=[f"{p}-{n}" for p, n, _ in EXAMPLES])
def test_examples_run_and_print_what_they_say(page, number, code, capsys, tmp_path, monkeypatch):
    """A line ``# prints: text`` after a print must be in what was printed."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page}[{number}]", "exec"), {})
    printed = capsys.readouterr().out
    for expected in re.findall(r"# prints: (.*)", code):
        assert expected.strip() in printed


def test_relative_links_in_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


WRITERS = frozenset({
    "write_text", "write_bytes", "write_csv", "write_parquet", "write_excel", "write_ipc", "write_json",
    "write_ndjson", "sink_csv", "sink_parquet", "sink_ipc", "sink_ndjson", "savetxt", "savez", "tofile", "to_csv",
    "to_excel", "copyfile", "copy2", "copytree", "move", "Workbook", "ZipFile", "NamedTemporaryFile", "mkstemp",
})  # fmt: skip
# Where a library fills an unfinished or temporary file of rekka.files, or a buffer. All others write through it.
FILLERS = {
    "sheets": {"write_csv", "write_excel", "Workbook"},
    "transitions": {"write_parquet", "write_bytes", "sink_parquet", "sink_csv"},
    "simulation.inventory": {"write_csv", "write_parquet", "write_text", "sink_parquet", "open"},
    "readers.files": {"ZipFile"},  # opens a workbook to read it
    "simulation.rows": {"write_parquet"},
    "study.large": {"sink_parquet"},
    "study.large_digests": {"write_parquet"},
    "study.store": {"write_parquet"},
    "forecast.store": {"write_csv", "write_parquet", "sink_parquet", "open", "os.replace"},
}


def called(file: Path) -> list[tuple[str, ast.Call]]:
    """What a module calls, with the calls: 'print', 'os.replace' or, of a value, 'write_csv'."""
    found = []
    for call in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
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
        if module != "files":
            assert found == FILLERS.get(module, set()), f"{module} writes a file by itself. Use rekka.files."


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
        assert not found or module == "terminal", f"{module} prints by itself: {found}. Use rekka.terminal."
