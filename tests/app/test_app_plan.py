"""The choice of what is to be done, the command line it amounts to, progress, and the list of runs."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import rekka

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from rekka.app import worker
from rekka.app.command_line import spell_commands, write_commands
from rekka.app.plan import Choices, find_ratings, list_thresholds
from rekka.app.progress import Progress, now, write_progress
from rekka.app.workspace import Ask, Job
from rekka.cli import app
from rekka.core.errors import BadOption
from rekka.core.folders import locate
from rekka.core.language import LANGUAGES, load_words
from rekka.core.ratings import Ratings

NBI = Ratings(("9", "8", "7", "6", "5", "4 or below"))


@pytest.fixture(scope="module")
def rows():
    return rekka.simulate_inventory(20, preset="plain").inspections.filter(case="Main girder")


@pytest.fixture
def table(upload, workspace, rows):
    """An uploaded table."""
    assert upload("inspections.csv", rows.write_csv().encode()).status_code == 303
    return workspace.tables()[0]


# Choices


def test_choices_have_defaults(workspace, table):
    asked = Choices.read({}, "ja", NBI)
    assert (asked.how, asked.threshold, asked.years, asked.lang) == ("quick", "", 30, "ja")
    job = asked.ask(workspace, table)
    assert (job.models, job.stability, job.threshold, job.years, job.lang) == (None, False, None, None, "ja")
    assert job.table == f"tables/{table.id}/table.csv"


def test_thorough_is_models_and_stability(workspace, table):
    given = {"how": "thorough", "threshold": "5", "years": "50", "lang": "en"}
    job = Choices.read(given, "ja", NBI).ask(workspace, table)
    assert (job.models, job.stability, job.threshold, job.years, job.lang) == ("auto", True, "5", 50, "en")


@pytest.mark.parametrize("years", ["0", "201", "-5", "2.5", "x", "1e1", "９", "9" * 5000])
def test_years_that_cannot_be_are_refused(years):
    with pytest.raises(BadOption, match="years is"):
        Choices.read({"years": years}, "en", NBI)


@pytest.mark.parametrize("threshold", ["9", "no such", "4 or above"])
def test_a_rating_that_is_no_threshold_is_refused(threshold):
    with pytest.raises(BadOption, match="threshold is"):
        Choices.read({"threshold": threshold}, "en", NBI)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_threshold_that_is_offered_can_be_taken(lang):
    for labels in (
        NBI.labels,
        ("a", "b", "c"),
        ("I", "II", "III", "IV"),
        ("1", "2"),
        ("85 and above", "70 to 85", "below 70"),
    ):
        ratings = Ratings(labels)
        offered = list_thresholds(ratings, load_words(lang))
        assert [ratings.choose_threshold(label) for label, _ in offered[1:]] == list(range(2, len(labels) + 1))
        assert offered[0][0] == ""
        assert ratings.or_worse(ratings.default_threshold, load_words(lang)) in offered[0][1]


def test_ratings_are_those_of_the_table_as_it_is_read(table):
    assert find_ratings(table).labels == ("a", "b", "c", "d", "e")
    state = {"labels": ["a", "b", ["c", "d", "e"]]}
    changed = table.save(table.draft.model_copy(update={"mapping": {"state": state}}))
    assert find_ratings(changed).labels == ("a", "b", "c/d/e")


def test_ratings_of_a_folder_follow_its_files(workspace, rows):
    folder = workspace.folder / "ours"
    folder.mkdir()
    file = folder / "inspections.csv"
    file.write_text(rows.write_csv())
    table = workspace.open_table("ours")
    assert find_ratings(table).labels == ("a", "b", "c", "d", "e")
    file.write_text(rows.filter(rows["state"] < "e").write_csv())
    assert find_ratings(table).labels == ("a", "b", "c", "d")


# The page


def test_the_page_offers_the_tables_own_ratings_and_starts_a_run(browser, send, table, workspace):
    page = browser.get(f"/tables/{table.id}/plan").text
    assert '<option value="c">c or worse</option>' in page
    sent = send(f"/tables/{table.id}/plan", how="thorough", threshold="c", years="12", lang="ja")
    [run] = workspace.runs()
    assert (sent.status_code, sent.headers["location"]) == (303, f"/runs/{run.id}")
    assert (run.job.ask.stability, run.job.ask.threshold, run.job.ask.years, run.job.ask.lang) == (
        True,
        "c",
        12,
        "ja",
    )
    assert (run.job.name, run.job.table, run.state) == ("inspections.csv", table.id, "waiting")


def test_htmx_gets_the_command_line_alone(browser, table):
    address = f"/tables/{table.id}/plan?how=thorough&threshold=c&years=7&lang=en"
    part = browser.get(address, headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert "--threshold c" in part
    assert "--years 7" in part


def test_without_a_script_a_button_shows_the_command_line(send, table, workspace):
    shown = send(f"/tables/{table.id}/plan", how="quick", threshold="d", years="9", lang="ja", show="command")
    assert shown.status_code == 200
    assert "--threshold d" in shown.text
    assert '<option value="d" selected>' in shown.text
    assert workspace.runs() == []


def test_a_wrong_choice_is_a_message(send, table, workspace):
    found = send(f"/tables/{table.id}/plan", years="0")
    assert found.status_code == 400
    assert "a whole number from 1 to 200 is needed" in found.text
    assert workspace.runs() == []


def test_a_table_that_cannot_be_read_leads_back(browser, upload, workspace):
    upload("a.csv", b"x,y\n1,2\n")
    [table] = workspace.tables()
    found = browser.get(f"/tables/{table.id}/plan")
    assert found.status_code == 400
    assert f'href="/tables/{table.id}"' in found.text


def test_a_table_of_a_run_is_not_deleted(send, table, workspace):
    send(f"/tables/{table.id}/plan")
    send(f"/tables/{table.id}/delete")
    assert [one.id for one in workspace.tables()] == [table.id]
    [run] = workspace.runs()
    send(f"/runs/{run.id}/delete")
    send(f"/tables/{table.id}/delete")
    assert (workspace.tables(), workspace.runs()) == ([], [])


def test_only_what_is_deleted_for_good_is_asked_about(browser, table, workspace, rows):
    (workspace.folder / "mine.csv").write_text(rows.write_csv())
    workspace.open_table("mine.csv")
    buttons = re.findall(r"<button[^>]*aria-label[^>]*>", browser.get("/").text)
    found = {re.search('aria-label="([^"]*)"', one)[1]: "Delete this table" in one for one in buttons}
    assert found == {"Delete inspections.csv": True, "Take mine.csv off the list": False}


def test_the_demo_is_one_button(browser, send, workspace):
    assert 'action="/demo"' in browser.get("/").text
    sent = send("/demo")
    [run] = workspace.runs()
    assert sent.headers["location"] == f"/runs/{run.id}"
    assert run.job.ask == Ask(lang="en")
    assert "rekka demo --folder rekka-demo" in browser.get(f"/runs/{run.id}").text


# The command line

ASKS = [
    {},
    {"lang": "ja"},
    {"models": "auto", "stability": True, "threshold": "d", "years": 55, "lang": "ja"},
    {"threshold": "-1", "allow": ("R109",)},
    {
        "mapping": {
            "columns": {"state": "健全度 \"x\" 'y' $HOME `ls` \\"},
            "state": {"labels": ["a", ["b", "c"], "d"]},
        }
    },
    {"nbi": True, "years": 1},
]
NAMES = ["inspections.csv", "a b.csv", "-rf.csv", 'it\'s "q" $(ls).csv', "点検.csv"]


class _Enough(Exception):
    """Raised where the work would begin."""


@pytest.fixture
def recorder(monkeypatch):
    """Whatever commands and worker ask the library for, without its being done."""
    seen = SimpleNamespace(plans=[], stability=[], forecasts=[], reports=[])

    def run_plan(plan, data=None, how=None, *, base=None, out=None, every=None):
        seen.plans.append((plan, Path(out).absolute()))
        Path(out).mkdir(exist_ok=True)
        (Path(out) / "study.toml").write_text("")
        raise _Enough

    def forecast(models, inventory, mapping=None, *, on_progress=None, **asked):
        seen.forecasts.append((models, inventory, mapping, asked))
        raise _Enough

    def write_report(study, out=None, *, on_progress=None, **asked):
        seen.reports.append((out, asked))
        raise _Enough

    def stability(study, on_unit=None, **asked):
        seen.stability.append(asked)
        raise _Enough

    monkeypatch.setattr("rekka.study.compare.run_plan", run_plan)
    monkeypatch.setattr("rekka.forecast_inventory", forecast, raising=False)
    monkeypatch.setattr("rekka.workflows.forecast.forecast_inventory", forecast)
    monkeypatch.setattr("rekka.write_report", write_report, raising=False)
    monkeypatch.setattr("rekka.workflows.reports.write_report", write_report)
    monkeypatch.setattr("rekka.stability", stability, raising=False)
    return seen


def settle(plan, run):
    """A plan whose paths do not depend on where its run folder is."""
    found = plan.model_dump()
    found["data"]["source"] = [str(locate(run, one)) for one in plan.data.source]
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("asked", ASKS)
def test_the_command_line_gives_the_run_of_the_job(workspace, rows, recorder, monkeypatch, asked, name):
    (workspace.folder / name).write_bytes(rows.write_csv().encode())
    monkeypatch.chdir(workspace.folder if name.startswith("-") else workspace.folder.parent)
    ask = Ask(table=name, **asked)
    run = workspace.new_run(Job(name=name, ask=ask))
    text = write_commands(spell_commands(ask, workspace.folder / name, run.mapping_file))
    lines = [shlex.split(line) for line in text.replace("\\\n", "").split("&&")]
    for words in lines:
        assert words[0] == "rekka"
        done = CliRunner().invoke(app, words[1:])
        assert isinstance(done.exception, _Enough), done.output

    with pytest.raises(_Enough):
        worker._study(workspace, run, ask, run.folder, worker.RunOptions())
    (ours, here), (theirs, there) = recorder.plans
    assert settle(ours, here) == settle(theirs, there)
    assert ours.study.models == ask.models
    assert [words[1] for words in lines].count("stability") == ask.stability
    assert recorder.stability == [{"resamples": 200}] * ask.stability
    shown = [words for words in lines if words[1] == "forecast"]
    if not shown:
        assert (ask.years, ask.threshold, ask.lang) == (None, None, "en")
        return
    [(_, inventory, reader, options)] = recorder.forecasts
    assert [one.absolute() for one in inventory] == [workspace.folder / name]
    assert options.pop("out") == Path("rekka-run/forecast")
    assert options.pop("format") == "parquet"
    assert tuple(reader.allow) == ask.allow
    assert {key: value for key, value in options.items() if key in ("years", "threshold")} == {
        "years": ask.years or 30
    } | ({"threshold": ask.threshold} if ask.threshold else {})
    [(_, reported)] = recorder.reports
    assert reported["lang"] == ask.lang


def test_the_worker_forecasts_and_reports_what_the_job_asks_for(recorder, monkeypatch):
    from rekka.workflows.reports import report_study

    plan = SimpleNamespace(data=SimpleNamespace(kind="tables", source=("../t.csv",), allow=("R109",)))
    with pytest.raises(_Enough):
        report_study(SimpleNamespace(plan=plan), Path("run"), lang="ja", years=12, threshold="c")
    [(_, _, mapping, options)] = recorder.forecasts
    assert (options["years"], options["threshold"], options["format"], mapping.allow) == (
        12,
        "c",
        "parquet",
        ("R109",),
    )
    monkeypatch.setattr("rekka.workflows.reports.forecast_own_tables", lambda *_, **__: None)
    with pytest.raises(_Enough):
        report_study(SimpleNamespace(plan=plan), Path("run"), lang="ja")
    assert recorder.reports[0][1]["lang"] == "ja"


# Progress


@pytest.fixture
def working(workspace):
    """A run at work."""
    return workspace.new_run(Job(name="x", ask=Ask(table="t.csv"), state="working"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_progress_says_what_is_done_and_how_long_it_takes(browser, working, lang):
    browser.headers["Accept-Language"] = lang
    start = now()
    later = start.__class__.fromtimestamp(start.timestamp() + 60, start.tzinfo)
    write_progress(working.folder, Progress(
        steps=("study", "forecast", "report"), step="study", stage="Trials", item=("<b>", "zscore"), done=10, total=40,
        since=start, at=later,
    ))  # fmt: skip
    page = browser.get(f"/runs/{working.id}").text
    words = load_words(lang)
    assert words("app.progress.of", stage=words("app.stage.trials"), done="10", total="40") in page
    assert words("app.progress.left_minutes", n=3) in page
    assert 'value="0.250"' in page
    assert "<bdi>&lt;b&gt;</bdi>" in page
    assert f"<bdi>{words('method.zscore')}</bdi>" in page


def test_a_page_that_has_seen_it_all_is_left_alone(browser, working):
    import re

    page = browser.get(f"/runs/{working.id}", headers={"HX-Request": "true"})
    assert "<html" not in page.text
    again = re.search(r'hx-get="([^"]+)"', page.text)[1]
    assert browser.get(again, headers={"HX-Request": "true"}).status_code == 204
    write_progress(working.folder, Progress(since=now(), at=now()))
    assert browser.get(again, headers={"HX-Request": "true"}).status_code == 200


def test_without_a_script_the_page_loads_itself_again(browser, working, workspace):
    assert '<noscript><meta http-equiv="refresh"' in browser.get(f"/runs/{working.id}").text
    working.save(working.job.model_copy(update={"state": "failed"}))
    assert "http-equiv" not in browser.get(f"/runs/{working.id}").text


def test_a_run_that_is_done_leads_to_its_results(browser, working):
    working.save(working.job.model_copy(update={"state": "done"}))
    assert browser.get(f"/runs/{working.id}").headers["location"] == f"/runs/{working.id}/results"
    part = browser.get(f"/runs/{working.id}", headers={"HX-Request": "true"})
    assert part.headers["HX-Redirect"] == f"/runs/{working.id}/results"


@pytest.mark.parametrize("state", ["cancelled", "stopped", "failed"])
def test_what_ended_early_can_be_resumed_by_a_button(browser, send, working, workspace, state):
    working.save(working.job.model_copy(update={"state": state}))
    assert f'action="/runs/{working.id}/resume"' in browser.get(f"/runs/{working.id}").text
    assert send(f"/runs/{working.id}/resume").status_code == 303
    assert workspace.run(working.id).state == "waiting"
    assert send(f"/runs/{working.id}/cancel").status_code == 303
    assert workspace.run(working.id).state == "cancelled"


def test_every_stage_of_the_library_has_words_in_every_language():
    """Stages are named where progress is reported; the page knows those of a job."""
    stages = {
        *worker.FORECAST_STAGES,
        "Bridges",
        "Trials",
        "Choices",
        "Models",
        "Draws",
        "Calibration",
        "Drawing the report",
    }
    for lang in LANGUAGES:
        texts = load_words(lang).texts
        assert {f"app.stage.{one.replace(' ', '_').lower()}" for one in stages} <= texts.keys()
        assert {f"app.step.{one}" for one in ("draw", "study", "stability", "forecast", "report")} <= texts.keys()


# Runs


def test_runs_of_one_table_are_told_apart(browser, workspace):
    asks = [Ask(table="t.csv"), Ask(table="t.csv", models="auto", threshold="d", years=45)]
    for ask in asks:
        workspace.new_run(Job(name="t.csv", ask=ask, state="done"))
    for path in ("/", "/runs", "/comparison"):
        text = browser.get(path).text
        assert "Quick · 20" in text
        assert "Thorough · threshold d · 45 years · 20" in text


def test_a_list_of_runs_that_was_seen_is_left_alone(browser, workspace):
    run = workspace.new_run(Job(name="t.csv", ask=Ask(table="t.csv")))
    seen = re.search(r'hx-get="(/runs\?seen=\w+)"', browser.get("/runs").text)[1]
    assert browser.get(seen, headers={"HX-Request": "true"}).status_code == 204
    assert browser.get(seen).status_code == 200
    run.save(run.job.model_copy(update={"state": "working"}))
    assert "working" in browser.get(seen, headers={"HX-Request": "true"}).text


def test_steps_lead_back_to_the_table_while_it_is_listed(browser, send, table, workspace):
    plan = f"/tables/{table.id}/plan"
    run = workspace.new_run(Job(name="t.csv", ask=Ask(table="t.csv"), table=table.id))
    assert f'<a href="/tables/{table.id}">1. Table</a>' in browser.get(plan).text
    assert f'<a href="{plan}">2. What to compute</a>' in browser.get(f"/runs/{run.id}").text
    (table.folder / "table.json").unlink()
    assert plan not in browser.get(f"/runs/{run.id}").text
    assert workspace.run(run.id).save(run.job.model_copy(update={"table": "../x"})).source is None


def test_two_runs_that_are_done_can_be_compared(browser, workspace):
    runs = [workspace.new_run(Job(name=f"run {n}", ask=Ask(table="t.csv"), state="done")) for n in range(2)]
    assert "/comparison" not in browser.get("/").text
    page = browser.get("/runs").text
    assert 'action="/comparison"' in page
    for run in runs:
        assert page.count(f'<option value="{run.id}"') == 2


def test_runs_and_tables_of_the_user_are_opened_and_only_taken_off_the_list(browser, send, workspace, rows):
    folder = workspace.folder / "mine"
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "study.toml").write_text("")
    (folder / "table.csv").write_bytes(rows.write_csv().encode())
    page = browser.get("/").text
    assert 'value="mine/run"' in page
    assert 'value="mine/table.csv"' in page
    opened = send("/open", place="mine/run", kind="run").headers["location"]
    table = send("/open", place="mine/table.csv", kind="table").headers["location"]
    assert send("/open", place="mine/run", kind="run").headers["location"] == opened
    assert send("/open", place="mine/table.csv", kind="table").headers["location"] == table
    assert 'value="mine/run"' not in browser.get("/").text
    assert workspace.runs()[0].study == folder / "run"
    assert workspace.tables()[0].file == folder / "table.csv"
    for address in (opened, table):
        gone = send(f"{address}/delete")
        assert gone.status_code == 303
        assert "was taken off the list; its files stay" in browser.get(gone.headers["location"]).text
    assert (workspace.runs(), workspace.tables()) == ([], [])
    assert (folder / "run" / "study.toml").exists()
    assert (folder / "table.csv").exists()
