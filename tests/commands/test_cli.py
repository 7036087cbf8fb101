import json
import logging
import re
import subprocess
import sys

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import rekka
from cli_page import PAGE, describe
from rekka import cli
from rekka.cli import COMMANDS, app, read_summary
from rekka.commands import bars
from rekka.report.document import Document
from rekka.report.overview import make_overview
from rekka.report.terminal.tables import WORDS


def run(*args):
    """In a process of its own, as a person would."""
    code = "from rekka.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True)


def call(*args):
    """In this process, because it is faster; wide enough that no message is wrapped."""
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(arg) for arg in args])


@pytest.fixture
def inspections(tmp_path):
    rows = "A,2001-05-01,a\nA,2006-05-01,b\nA,2011-05-01,a\nB,2001-05-01,c\nB,2006-05-01,e\n"
    path = tmp_path / "inspections.csv"
    path.write_text("bridge,date,state\n" + rows)
    return path


@pytest.mark.usefixtures("no_pictures")
def test_demo_of_two_components(tmp_path, monkeypatch):
    """From tables to the page, as ``rekka demo`` goes it, with fewer members and covariates."""
    write = rekka.write_inventory

    def write_some(folder, **options):
        write(folder, **options)
        inspections, inventory = folder / "inspections.csv", folder / "inventory.csv"
        some = pl.read_csv(inspections, infer_schema=False).filter(
            pl.col("case").is_in(["Longitudinal girder", "Slope protection"])
        )
        some.write_csv(inspections)
        pl.read_csv(inventory, infer_schema=False).drop("bridge_length", "bridge_width").write_csv(inventory)
        (folder / "traffic.csv").unlink()

    monkeypatch.setattr(rekka, "write_inventory", write_some)
    done = call("demo", "--folder", tmp_path / "demo")
    assert done.exit_code == 0, done.stderr
    words = " ".join(done.stdout.split())
    study = tmp_path / "demo" / "study"
    document = Document.from_json((study / "report.json").read_bytes())
    made = make_overview(document, WORDS)
    assert words.startswith(f"{made.headline} {made.trust}")
    assert f"The page: {study / 'report.html'}" in words
    assert len(done.stdout.splitlines()) <= 30
    assert f"More: rekka show {study} (" in words
    told = " ".join(call("show", study).stdout.split())
    assert "2 components by 4 methods under 2 presets: 16 trials." in told
    trials = pl.read_parquet(tmp_path / "demo" / "study" / "trials.parquet")
    assert set(trials["preset"]) == {"paper", "exact"}
    assert (tmp_path / "demo" / "study" / "report.html").stat().st_size > 100_000
    assert document.title == "a simulated inventory"
    for lang, title in (("en", document.title), ("ja", "模擬台帳")):  # written again, it is still called so
        assert call("report", study, "--quick", "--lang", lang).exit_code == 0
        assert Document.from_json((study / "report.json").read_bytes()).title == title


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_demo_goes_the_whole_way(tmp_path):
    done = call("demo", "--folder", tmp_path / "demo")
    assert done.exit_code == 0, done.stderr
    assert f"The page: {tmp_path / 'demo' / 'study' / 'report.html'}" in " ".join(done.stdout.split())
    words = " ".join(call("show", tmp_path / "demo" / "study").stdout.split())
    assert "10 components by 4 methods under 2 presets: 80 trials." in words
    assert "exact (Newton on the exact likelihood): 36 certified, 4 no finite maximum" in words
    assert "Main girder 624 217 1,568 5 " in words
    assert "R602 tip Success without a certificate" in words
    assert re.search(
        r'boxcox is dropped at "a certified maximum".*its log loss is 9\.\d+, zscore\'s 1\.\d+; 43 rows on the',
        words,
    )
    for file in (
        "truth.json",
        "study/study.toml",
        "study/trials.csv",
        "study/trials.parquet",
        "study/trials.json",
        "study/report.html",
        "study/report.json",
    ):
        assert (tmp_path / "demo" / file).exists()
    trials = pl.read_parquet(tmp_path / "demo" / "study" / "trials.parquet")
    assert len(trials) == 80
    exact = trials.filter(preset="exact")
    assert set(exact["status"]) == {"certified", "no finite maximum"}
    assert (
        exact.filter(status="no finite maximum")["reason"]
        .str.contains("there is no finite maximum (separation)", literal=True)
        .all()
    )
    affine = exact.filter(pl.col("certified") & (pl.col("method") != "boxcox"))
    spread = affine.group_by("case").agg(pl.col("log_likelihood").max() - pl.col("log_likelihood").min())
    assert spread["log_likelihood"].max() < 1e-8
    paper = trials.filter(preset="paper")
    iterations = dict(paper.filter("converged").group_by("method").agg(pl.col("iterations").median()).rows())
    assert 3 * iterations["zscore"] < min(iterations["max"], iterations["minmax"])
    boxcox = paper.filter(method="boxcox")
    assert boxcox["converged"].sum() < 10
    assert not boxcox["certified"].any()
    stuck = boxcox.filter(pl.col("converged") & (pl.col("iterations") <= 1))
    assert len(stuck)
    assert (stuck["at_floor"] / stuck["scored"]).min() > 0.2
    assert stuck["log_loss"].min() > 5


def test_transitions(inspections, tmp_path):
    out = tmp_path / "out.csv"
    done = call("transitions", inspections, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "2 transitions in" in done.stdout
    assert "What became of 5 records" in done.stdout
    assert pl.read_csv(out)["interval_years"].to_list() == [5.0, 5.0]
    assert {f.name for f in tmp_path.iterdir()} >= {"out.csv", "out.audit.csv", "out.set_aside.csv"}


def test_transitions_for_machines(inspections, tmp_path):
    done = call("transitions", inspections, "--out", tmp_path / "out.parquet", "--json", "--partition", "bridge")
    found = json.loads(done.stdout)
    assert (found["transitions"], found["records"]) == (2, 5)
    assert sum(line["count"] for line in found["audit"]) == 5
    assert sum(line["transitions"] for line in found["moves"]) == 2
    assert set(pl.read_parquet(tmp_path / "out.parquet")["part"]) <= {"train", "validation", "golden"}


def test_transitions_prints_the_moves_between_ratings(tmp_path):
    rows = ["A,2001-01-01,c", "A,2005-01-01,d", "A,2009-01-01,d", "B,2001-01-01,a", "B,2006-01-01,d"]
    (tmp_path / "t.csv").write_text("bridge_id,date,state\n" + "\n".join(rows))
    done = call("transitions", tmp_path / "t.csv", "--out", tmp_path / "out.csv")
    printed = done.stdout[done.stdout.index("Moves from rating to rating: all") :]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]
    assert cells == [["a", "", "", "", "1"], ["b", "", "", "", ""], ["c", "", "", "", "1"], ["d", "", "", "", "1"]]
    more = "\n".join(
        f"{bridge}{n},{date}-01-01,{n % 2 + 1},C{n}" for n in range(4) for bridge in "AB" for date in (2001, 2005)
    )
    (tmp_path / "many.csv").write_text("bridge_id,date,state,case\n" + more)
    done = call("transitions", tmp_path / "many.csv", "--out", tmp_path / "out.csv")
    assert "Moves from rating to rating: all 4 components" in done.stdout


def test_options_reach_the_mapping(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "ID;When;Mark;Built;Fixed;Load;Owner\nA;01.05.2001;9;1990;;1,5;x\nA;01.05.2006;7;1990;2004;1,5;x\n"
    )
    options = ["--bridge", "ID", "--date", "When", "--state", "Mark", "--best", 9, "--worst", 0, "--dates", "%d.%m.%Y",
               "--completed", "Built", "--repair", "Fixed", "--repairs", "ignore", "--covariate", "Load", "--keep",
               "Owner", "--decimal", ",", "--separator", ";"]  # fmt: skip
    done = call("transitions", path, "--out", tmp_path / "out.parquet", *options)
    assert done.exit_code == 0, done.stderr
    row = pl.read_parquet(tmp_path / "out.parquet").row(0, named=True)
    assert (row["state_1"], row["state_2"], row["Load"], row["Owner"]) == (1, 3, 1.5, "x")
    assert row["age_at_inspection_1"] == pytest.approx(11 + 4 / 12)


def test_no_transition_is_exit_code_1(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("bridge,date,state\nA,2001,1\nB,2002,2\n")
    done = call("transitions", path, "--out", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert "No two visits make a transition; the audit says why." in done.stderr


def test_check_tells_findings_and_stops(inspections, tmp_path):
    done = call("check", inspections, "--partition", "none", "--out", tmp_path / "findings.json")
    assert done.exit_code == 1
    assert "stop the work" in done.stdout
    assert "--all shows every finding in full." in done.stdout
    stored = json.loads((tmp_path / "findings.json").read_text())
    assert stored["stops"] is True
    full = call("check", inspections, "--partition", "none", "--all")
    assert "--all shows" not in full.stdout
    machine = json.loads(call("check", inspections, "--partition", "none", "--json").stdout)
    assert machine == stored


def test_a_clean_table_gets_a_friendly_answer(tmp_path):
    path = tmp_path / "transitions.parquet"
    rekka.simulate_transitions(3000).write_parquet(path)
    done = call("check", path, "--partition", "none")
    assert done.exit_code == 0
    assert "Fine: 3,000 transitions of" in done.stdout


def test_simulate_then_check_then_transitions(tmp_path):
    folder = tmp_path / "inventory"
    assert call("simulate", folder, "--bridges", 300, "--dirt", 0.02, "--format", "parquet").exit_code == 0
    again = call("simulate", folder)
    assert again.exit_code == 2
    assert "inventory has inspections.parquet already." in again.stderr
    assert json.loads(call("simulate", folder, "--force", "--json").stdout)["files"]
    assert not list(folder.glob("*.parquet"))
    done = call("transitions", folder / "inspections.csv", "--join", folder / "inventory.csv", "--join",
                folder / "traffic.csv", "--out", tmp_path / "out.csv", "--partition", "paper")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    parts = pl.read_csv(tmp_path / "out.csv").filter(case="Pier")["part"].value_counts()
    assert dict(parts.drop_nulls().rows()) == {"train": 1158, "validation": 285, "golden": 1644}


def list_findings(path):
    found = json.loads(call("check", path, "--json").stdout)
    return found, [(one["code"], one["case"], one["rows"]) for one in found["findings"] if one["code"] > "R100"]


@pytest.fixture(scope="module")
def looked_over(tmp_path_factory):
    """Tables of three components, and what is found in them."""
    folder = tmp_path_factory.mktemp("looked over")
    rekka.write_inventory(folder, 40, preset="plain")
    rows = pl.read_csv(folder / "inspections.csv", infer_schema=False)
    rows.filter(pl.col("case").is_in(["Bearing", "Deck slab", "Pier"])).write_csv(folder / "inspections.csv")
    return folder, list_findings(folder)[1]


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet"])
def test_transitions_that_we_wrote_are_looked_over_alike(looked_over, tmp_path, name):
    folder, raw = looked_over
    made = call("transitions", folder, "--out", tmp_path / name)
    assert made.exit_code == 0, made.stderr
    by_part, findings = list_findings(tmp_path / name)
    assert by_part["facts"]["partition"]["scheme"].startswith("visits 3 to 4 train")
    assert len(raw) > 20
    assert findings == raw
    until = call("check", tmp_path / name, "--partition", "date", "--until", "2010-01-01", "--json")
    assert "second visits up to 2010-01-01" in json.loads(until.stdout)["facts"]["partition"]["scheme"]


def test_the_partition_is_told(tmp_path):
    rekka.write_inventory(tmp_path / "inventory")
    done = call("transitions", tmp_path / "inventory", "--out", tmp_path / "t.parquet", "--partition", "paper")
    assert "Main girder" in done.stdout
    assert "1,568" in done.stdout
    none = tmp_path / "two.csv"
    none.write_text("bridge,date,state\nA,2001,1\nA,2006,2\n")
    empty = call("transitions", none, "--out", tmp_path / "o.csv", "--partition", "paper")
    assert empty.exit_code == 1
    assert "No row trains" in empty.stderr


def test_no_table_that_was_read_is_written_over(tmp_path):
    rekka.write_inventory(tmp_path / "inventory", 20, preset="plain")
    before = (tmp_path / "inventory" / "inventory.csv").read_bytes()
    done = call("transitions", tmp_path / "inventory", "--out", tmp_path / "inventory" / "inventory.csv")
    assert (done.exit_code, "inventory.csv is one of the files that are read" in done.stderr) == (2, True)
    assert (tmp_path / "inventory" / "inventory.csv").read_bytes() == before


def test_check_says_why_no_pair_is_left(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("bridge,date,state\nA,2001,1\nB,2002,2\n")
    done = call("check", path)
    assert done.exit_code == 1
    assert "No two visits make a transition" in done.stderr
    assert "the member's only visit" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["check", "nothing.csv"], 1, "UnreadableTable: There is no file nothing.csv."),
        (["check", "T", "--partition", "thirds"], 2, "'thirds' is none of auto, paper, bridge, date, none"),
        (["check", "T", "--partition", "date"], 2, "--partition date and --until belong together"),
        (
            ["check", "T", "--partition", "date", "--until", "May"],
            2,
            "--until is 'May'; a date such as 2008-12-31 or a year such as 2008 is needed",
        ),
        (["check", "T", "--bands", "high,low"], 2, "'high,low' is not a list such as 85,75,70,60"),
        (["check", "T", "T"], 2, "one table is read at a time; join others with --join"),
        (["check", "T", "--nbi", "--bridge", "ID"], 2, "such files need no mapping; the rules are all they take"),
        (
            ["transitions", "T", "--upward", "ignore"],
            2,
            "BadOption: mapping: rules.upward is 'ignore'; it can be set_aside",
        ),
        (["transitions", "T", "--out", "x.doc"], 2, "BadOption: the output's ending is '.doc'; it can be .csv"),
        (["transitions", "T", "--bridge", "brigde"], 1, "Did you mean bridge?"),
        (["simulate", "T"], 2, "which is a file; a folder, there or not yet, is needed."),
        (["check", "--nonsense"], 2, "No such option"),
    ],
)
def test_wrong_use_ends_in_a_sentence(arguments, code, words, inspections, monkeypatch):
    monkeypatch.chdir(inspections.parent)
    done = call(*(inspections.name if argument == "T" else argument for argument in arguments))
    assert (done.exit_code, words in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.output


def test_version():
    assert run("--version").stdout == f"rekka {rekka.__version__}\n"


def test_wrong_usage_shows_no_traceback():
    done = run("simulate", "x", "--bridges", "few")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_page_of_commands_is_true():
    assert PAGE.read_text(encoding="utf-8") == describe(), "run python tests/cli_page.py"


HEAVY = (
    "altair", "dask", "distributed", "jinja2", "joblib", "numba", "numpy", "polars", "pydantic", "scipy", "sklearn",
    "vl_convert", "xlsxwriter",
)  # fmt: skip


def loaded_by(*calls):
    """The modules that are loaded, in a process of its own, once these commands were called."""
    code = (
        "import sys; from typer.testing import CliRunner; from rekka.cli import app\n"
        f"for call in {calls!r}: assert CliRunner().invoke(app, call).exit_code == 0, call\n"
        "print(*sys.modules)"
    )
    return set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_list_of_commands_is_there_before_any_of_them():
    loaded = loaded_by(["--help"], ["--version"])
    assert "rekka.cli" in loaded
    assert not {name for name in loaded if name.startswith("rekka.commands.")}
    assert not loaded & set(HEAVY)


def test_help_does_not_wait_for_the_heavy_parts():
    loaded = loaded_by(*([name, "--help"] for name in COMMANDS))
    assert {"rekka.commands.demo", "rekka.commands.matrix"} <= loaded
    assert not loaded & set(HEAVY)


def test_the_list_says_of_each_command_what_its_own_help_says_first():
    commands = typer.main.get_command(app).commands
    assert list(commands) == list(COMMANDS)
    assert {name: command.help.split("\n\n")[0] for name, command in commands.items()} == {
        name: read_summary(name) for name in COMMANDS
    }
    told = call("--help").stdout
    for name in COMMANDS:
        assert re.search(rf"{name} +{re.escape(read_summary(name))}", told), name


def test_a_command_that_is_not_there_is_told_with_the_nearest():
    done = call("ftt")
    assert done.exit_code == 2
    assert "No such command 'ftt'. Did you mean 'fit'?" in done.stderr


def test_what_the_library_has_to_say_is_told_on_standard_error(monkeypatch):
    logger = logging.getLogger("rekka")
    before = (logger.level, list(logger.handlers))

    def simulate():
        logger.info("This takes a while.")
        logger.debug("Nobody wants to know.")
        typer.echo("done")

    monkeypatch.setattr("rekka.commands.data.simulate", simulate)
    done = call("simulate")
    assert (done.stdout, done.stderr) == ("done\n", "This takes a while.\n")
    assert (logger.level, list(logger.handlers)) == before


def test_ctrl_c_ends_with_the_code_that_shells_know(monkeypatch):
    def simulate():
        raise KeyboardInterrupt

    monkeypatch.setattr("rekka.commands.data.simulate", simulate)
    done = call("simulate")
    assert (done.exit_code, done.stderr) == (cli.STOPPED, "Stopped.\n")
    assert cli.STOPPED == bars.STOPPED
