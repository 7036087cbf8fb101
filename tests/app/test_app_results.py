"""Results of a run as pages: the numbers and words of the report, other thresholds, what if, files."""

import csv
import io
import shutil
import threading
from html.parser import HTMLParser
from urllib.parse import urlencode

import polars as pl
import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from results_cases import CASES, OPTIONS, PLAN, TABLE, forecast_file, put_run, share_run, write_table
from typer.testing import CliRunner

import rekka
from rekka.app import repairs
from rekka.app.downloads import FILES, OF_RUN, write_forecast_command
from rekka.app.forecasts import find_view, open_forecast, search_members
from rekka.app.memory import Memory
from rekka.app.repairs import REPAIRS, Mark, add_marks, edit_marks, read_key, read_marks, write_marks
from rekka.app.workspace import Ask, Run
from rekka.cli import app as command_line
from rekka.core.errors import BadOption
from rekka.core.language import LANGUAGES, load_words, say
from rekka.data.transitions import ReadingOptions
from rekka.fleet.document import load_forecast
from rekka.report.document import Document, TrustPart
from rekka.report.overview import make_overview
from rekka.study.compare import Request, begin_study
from rekka.study.runner import RunOptions
from rekka.workflows import forecast as workflow
from rekka.workflows.forecast import forecast_own_tables, reopen_basis

EN = load_words("en")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'


class Tags(HTMLParser):
    """Elements of a page that run something, or that none of our templates has."""

    def __init__(self, text):
        super().__init__()
        self.bad = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        plain = tag != "script" or "src" in given or given.get("type") in ("application/json", "text/plain")
        runs = [name for name in given if name.startswith("on") or name == "style"]
        if runs or not plain or given.get("src") == "x" or "javascript:" in given.get("href", ""):
            self.bad.append((tag, attrs))


def put_hostile_run(workspace):
    """A run of a table with hostile names of everything."""
    ratings = {one: f"{one}{HOSTILE}" for one in "abcde"}
    drawn = rekka.simulate_inventory(40, preset="plain", seed=3).inspections.filter(case="Pier")
    names = ("bridge_id", "case", "member")
    table = workspace.folder / "hostile.csv"
    drawn.with_columns(
        *(pl.concat_str(name, pl.lit(HOSTILE + "long " * 30)) for name in names),
        state=pl.col("state").replace_strict(ratings),
    ).write_csv(table)
    reading = ReadingOptions({"state": {"labels": list(ratings.values())}})
    study = begin_study(
        Request([table], reading, {"study": {"methods": ("zscore",)}, "guard": PLAN["guard"]}),
        workspace.folder / "run",
        RunOptions(),
    )
    assert forecast_own_tables(study, workspace.folder / "run") is None
    return workspace.open_run("run")


@pytest.fixture
def run(workspace):
    return put_run(workspace)


@pytest.fixture
def get(browser, run):
    def ask(address, status=200, /, headers=None, **query):
        found = browser.get(f"/runs/{run.id}/{address}", params=query, headers=headers)
        assert found.status_code == status, found.text[-2000:]
        return found

    return ask


@pytest.fixture
def mark(browser, access, run):
    """Post a form of the page of repairs, and follow to the page."""

    def post(action, **fields):
        found = browser.post(
            f"/runs/{run.id}/what-if", data={"form_token": access.form, "action": action} | fields
        )
        assert found.status_code == 303, found.text[-2000:]
        return browser.get(found.headers["location"])

    return post


def call(*args):
    done = CliRunner(env={"COLUMNS": "250"}).invoke(command_line, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    return done


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


class TestForecasts:
    def test_own_view_is_that_of_the_report(self, run):
        view = find_view(run.study, memory=Memory(6))
        stored = Document.from_json((run.study / "report.json").read_bytes())
        assert view.document == stored
        assert view.details.height == stored.network.members
        assert view.forecast is None, "the files are enough"

    def test_reopened_forecast_is_the_stored_one(self, run):
        found = reopen_basis(run.study).forecast()
        network = pl.read_csv(forecast_file(run, "network.csv"), infer_schema_length=None)
        assert found.network["expected"].to_list() == pytest.approx(network["expected"].to_list(), rel=1e-12)
        assert set(found.document.notes) == set(load_forecast(run.study / "forecast").notes)
        own = pl.read_parquet(forecast_file(run, "members.parquet"))
        assert found.members["median_years"].equals(own["median_years"])

    @pytest.mark.parametrize("asked", [{"threshold": 2}, {"years": 12}, {"threshold": 5, "years": 7}])
    def test_other_view_is_that_of_another_forecast(self, run, asked):
        view = find_view(run.study, **asked, memory=Memory(6))
        plain = rekka.forecast_inventory(run.study, run.study.parent / TABLE, member_intervals=False, **asked)
        assert view.forecast.network.equals(plain.network)
        assert view.document.network.horizon == asked.get("years", 30)
        goals = {one.forecast.threshold for one in view.document.models}
        assert goals == {asked.get("threshold", 4)}

    def test_members_are_read_once_and_forecast_for_what_is_asked_only(self, run, monkeypatch):
        read, made = [], []
        own = workflow.forecast_fleet, workflow.read_members
        monkeypatch.setattr(workflow, "forecast_fleet", lambda one: made.append(one.options) or own[0](one))
        monkeypatch.setattr(workflow, "read_members", lambda *a, **b: read.append(a) or own[1](*a, **b))
        store = Memory(6)
        for threshold, years in ((2, 12), (5, 7)):
            find_view(run.study, threshold, years, memory=store)
        assert [(one.threshold, one.years) for one in made] == [(2, 12), (5, 7)]
        assert len(read) == 1
        open_forecast(run.study, find_view(run.study, memory=store), store)
        assert len(made) == 3
        assert len(read) == 1

    def test_years_of_a_new_member_follow_the_threshold(self, run):
        soon, late = (find_view(run.study, threshold, memory=Memory(6)).document for threshold in (2, 5))
        for one, other in zip(soon.models, late.models, strict=True):
            assert one.forecast.passages[0].median < other.forecast.passages[0].median

    def test_wrong_choices_are_refused(self, run):
        with pytest.raises(BadOption, match="threshold is 9"):
            find_view(run.study, threshold=9, memory=Memory(6))
        with pytest.raises(BadOption, match="years is 51"):
            find_view(run.study, years=51, memory=Memory(6))

    def test_another_forecast_in_the_folder_is_another_view(self, run):
        store = Memory(6)
        before = find_view(run.study, memory=store)
        call("forecast", run.study, run.study.parent / TABLE, "--years", 9, "--no-member-intervals")
        after = find_view(run.study, memory=store)
        assert (before.years, after.years) == (30, 9)

    def test_search_finds_every_word_anywhere(self, run):
        details = find_view(run.study, memory=Memory(6)).details
        name = details["bridge_id"][0]
        found = search_members(details, f"pier {name.lower()}")
        assert found["case"].unique().to_list() == ["Pier"]
        assert found["bridge_id"].unique().to_list() == [name]
        assert search_members(details, "", CASES[0])["case"].unique().to_list() == [CASES[0]]
        wide = "".join(
            chr(ord(letter) + 0xFEE0) for letter in name
        )  # full-width letters, as a Japanese keyboard has
        assert search_members(details, wide).height == search_members(details, name).height > 0


class TestMemory:
    def test_what_nobody_asks_for_goes(self):
        now = [0.0]
        store, made = Memory(6, kept=10, clock=lambda: now[0]), []

        def make():
            made.append(1)
            return len(made)

        assert [store.find("a", make), store.find("a", make)] == [1, 1]
        now[0] = 9
        assert store.find("a", make) == 1
        now[0] = 18  # nine seconds after it was asked for last
        assert store.find("a", make) == 1
        now[0] = 29
        assert store.find("a", make) == 2

    def test_the_one_asked_for_longest_ago_goes_first(self):
        store = Memory(2)
        assert store.get("a") is None
        for key in "abac":
            store.find(key, lambda key=key: f"first {key}")
        assert (store.get("b"), store.get("c")) == (None, "first c")
        assert [store.find(key, lambda: "made again") for key in "ac"] == ["first a", "first c"]
        assert store.find("b", lambda: "made again") == "made again"

    def test_several_who_ask_at_once_wait_for_one(self):
        store, made, begin = Memory(6), [], threading.Barrier(4)

        def make():
            made.append(1)
            return "made"

        def ask():
            begin.wait()
            store.find("a", make)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert made == [1]

    def test_what_fails_is_not_kept(self):
        store = Memory(6)
        with pytest.raises(ZeroDivisionError):
            store.find("a", lambda: 1 / 0)
        assert store.find("a", lambda: "made") == "made"


class TestResults:
    def test_page_has_the_words_of_the_report(self, get, run):
        text = get("results").text
        document = find_view(run.study).document
        overview = make_overview(document, EN)
        assert overview.headline in text
        for card in overview.cards:
            assert card.value in text
        for case in CASES:
            assert case in text
        assert "<svg" in text
        assert "<script>" not in text
        assert " style=" not in text

    def test_threshold_and_component_change_what_is_said(self, get, run):
        text = get("results", threshold=5, years=12, component="Pier").text
        view = find_view(run.study, 5, 12)
        assert make_overview(view.document, EN, "Pier").headline in text
        assert "rated e" in text

    @pytest.mark.parametrize(
        "key", ["worse_backtest", "misfit", "other_model", "better_model", "missed_high", "missed_low"]
    )
    def test_advice_to_choose_another_model_says_what_to_click(self, get, run, monkeypatch, key):
        reason = say(
            f"trust.reason.{key}",
            until="2015",
            p="0.01",
            first=2011,
            last=2015,
            missed=4,
            years=5,
            ours="",
            theirs="",
        )
        trust = TrustPart(case=None, level="caution", reason=reason)
        monkeypatch.setattr("rekka.report.overview.find_trust", lambda *_: trust)
        assert "TABLE --models auto" in get("results").text  # its table is not listed: there is nothing to click
        monkeypatch.setattr(Run, "source", "0" * 12)
        run.save(run.job.model_copy(update={"ask": Ask(table="table.csv")}))
        for lang, said in (("en", "run it again as Thorough (step 2)"), ("ja", "手順2で")):
            text = get("results", headers={"Accept-Language": lang}).text
            assert said in text
            assert "TABLE --models auto" not in text
        run.save(run.job.model_copy(update={"ask": Ask(table="table.csv", models="auto")}))
        assert "TABLE --models auto" in get("results").text

    def test_lists_have_every_member_once(self, get, run):
        details = find_view(run.study).details
        found = []
        for tab in ("there", "next", "outside"):
            page, links = 1, None
            while links is None or links:
                text = get("results", tab=tab, page=page).text
                found += [
                    part.split('"')[0]
                    for part in text.split('<a href="/runs/')[1:]
                    if "/member?" in part.split('"')[0]
                ]
                links = "&amp;page=" in text and f"page={page + 1}" in text
                page += 1
        assert len(found) == len(set(found)) == details.height

    def test_htmx_gets_the_part_that_it_asks_for(self, get):
        part = get("results", headers={"HX-Request": "true", "HX-Target": "members"}, query="B-").text
        assert "<html" not in part
        assert "headline" not in part
        assert "<table" in part
        whole = get("results", headers={"HX-Request": "true", "HX-Target": "page"}, threshold=5).text
        assert 'id="page"' in whole
        assert "/what-if?threshold=5" in whole, "other pages keep the threshold"

    def test_nobody_found(self, get):
        assert EN("page.script.no_member") in get("results", query="no such bridge").text

    def test_card_says_what_the_list_says(self, get, run):
        details = find_view(run.study).details.filter(tab=0)
        row = details.row(0, named=True)
        text = get("member", bridge=row["bridge_id"], component=row["case"], member=row["member"]).text
        assert str(row["median_calendar_year"]) in text
        assert EN("page.script.card_drivers") in text
        assert "<svg" in text
        get("member", 404, bridge="no such bridge")

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_every_page_in_every_language(self, browser, get, run, lang):
        browser.cookies.set("rekka-language", lang)
        bridge = find_view(run.study).details["bridge_id"][0]
        for page, query in (("results", {}), ("member", {"bridge": bridge}), ("what-if", {"query": bridge})):
            assert f'<html lang="{lang}"' in get(page, **query).text

    def test_report_is_sent_with_files_of_the_server(self, get, browser, monkeypatch):
        monkeypatch.setattr("rekka.report.page.draw_svg", lambda spec, prefix: "<svg></svg>")
        found = get("report")
        assert '<link rel="stylesheet" href="/assets/report/rekka.css">' in found.text
        assert "script-src 'self'" in found.headers["content-security-policy"]
        assert "unsafe" not in found.headers["content-security-policy"]
        for name in ("rekka.css", "rekka.js", "vega.js"):
            assert f"/assets/report/{name}" in found.text
            assert browser.get(f"/assets/report/{name}").status_code == 200

    def test_choices_that_are_none_are_left_out(self, get):
        usual = get("results").text
        assert get("results", threshold="x", years="-3", page="999999", tab="no").status_code == 200
        assert get("results", threshold="", years="").text.partition("<main")[2] == usual.partition("<main")[2]
        assert "every component has the ratings" in get("results", 400, threshold=77).text


class TestMarks:
    def test_names_like_formulas_come_back(self, tmp_path):
        marks = [
            Mark("=1+1", "Deck, main", "'02", "b", "3.5"),
            Mark('橋"1"', "Pier", ""),
            Mark("-x", "", "", "", "", "2"),
        ]
        write_marks(tmp_path, marks)
        assert read_marks(tmp_path) == marks
        assert read_key(marks[1].key) == Mark(*marks[1].names)

    def test_a_member_is_marked_once(self):
        first = [Mark("A", "Pier", "1", "b")]
        assert add_marks(first, [Mark("A", "Pier", "1"), Mark("B", "Pier"), Mark("B", "Pier")]) == [
            *first,
            Mark("B", "Pier"),
        ]

    def test_marks_that_a_form_does_not_have_stay(self):
        marks = [Mark("A", "Pier", "", "b"), Mark("B", "Pier"), Mark("C", "Pier", age="3")]
        form = {"rating-1": "c", "age-1": " 4 ", "names-1": marks[1].key}
        assert edit_marks(marks, form, [marks[0].key]) == [Mark("B", "Pier", "", "c", "4"), marks[2]]

    def test_a_form_of_other_marks_changes_none(self):
        """Another tab has taken the first mark off since."""
        marks = [Mark("B", "Pier"), Mark("C", "Pier")]
        form = {"rating-0": "c", "names-0": Mark("A", "Pier").key}
        assert edit_marks(marks, form, []) == marks

    @pytest.mark.parametrize("key", ["", "{}", "[1, 2, 3]", '["A"]', "nonsense"])
    def test_keys_that_name_no_member_are_refused(self, key):
        with pytest.raises(BadOption, match="names no member"):
            read_key(key)

    def test_no_marks_leave_no_file(self, tmp_path):
        write_marks(tmp_path, [Mark("A", "Pier")])
        write_marks(tmp_path, [])
        assert not (tmp_path / REPAIRS).exists()
        assert read_marks(tmp_path) == []

    def test_columns_are_those_that_the_command_takes(self):
        assert Mark._fields == (*repairs.NAMES, *repairs.EDITS)


class TestWhatIf:
    def test_worst_members_and_what_they_change(self, run, mark):
        text = mark("worst", number="5").text
        expected = open_forecast(run.study, find_view(run.study)).repair(5)
        assert expected.headline() in text
        (note,) = expected.notes
        assert note.startswith("Taken by name: 5 of the ")
        assert EN.reword(note) in text
        assert "5 marked members" in text
        names = {mark.names for mark in read_marks(run.folder)}
        assert names == set(expected.members.select("bridge_id", "case", "member").rows())

    def test_all_of_a_rating_in_a_component(self, run, mark):
        assert "aken by name" not in mark("rated", rating="5", of="Pier").text
        found = find_view(run.study).details.filter((pl.col("case") == "Pier") & (pl.col("state") >= 5))
        assert len(read_marks(run.folder)) == found.height > 0

    def test_single_members_edited_and_taken_off(self, run, mark):
        details = find_view(run.study).details.filter(pl.col("state") > 2)
        some = [Mark(*row) for row in details.select("bridge_id", "case", "member").head(3).rows()]
        mark("add", mark=[one.key for one in some])
        fields = {"rating-0": "b", "age-0": "0", "names-0": some[0].key, "drop": [some[2].key]}
        text = mark("edit", **fields).text
        assert "2 marked members" in text
        rows = [{"bridge": one.bridge, "component": one.component, "member": one.member} for one in some[:2]]
        rows[0] |= {"rating": "b", "age": 0}
        assert open_forecast(run.study, find_view(run.study)).repair(rows).headline() in text
        assert EN("app.results.what_if.nothing") in mark("clear").text

    def test_a_wrong_edit_is_explained_and_can_be_corrected(self, run, mark):
        mark("worst", number="2")
        key = read_marks(run.folder)[0].key
        wrong = mark("edit", **{"age-0": "old", "names-0": key}).text
        assert "a number 0 or more is needed" in wrong
        assert 'name="age-0" value="old"' in wrong
        assert "lowers the number" in mark("edit", **{"age-0": "3", "names-0": key}).text

    def test_search_with_check_boxes(self, run, get, mark):
        mark("worst", number="1")
        known = read_marks(run.folder)[0]
        text = get("what-if", query=known.bridge).text
        assert "checked disabled" in text
        assert text.count('type="checkbox" id="mark-') > 1

    def test_marks_are_seen_at_other_thresholds(self, run, mark):
        text = mark("worst", number="4", threshold="5", years="8").text
        expected = find_view(run.study, 5, 8).forecast.repair(run.folder / REPAIRS)
        assert expected.headline() in text

    def test_files_are_those_of_the_command(self, run, get, mark, tmp_path):
        """The table that is downloaded, given to rekka forecast --repaired, makes the same files."""
        mark("worst", number="6", of="Pier")
        mark("edit", **{"rating-0": "b", "age-0": "1", "names-0": read_marks(run.folder)[0].key})
        content = {
            name: get(f"files/{name}", years=10).content for name in (REPAIRS, "whatif.csv", "whatif_members.csv")
        }
        (tmp_path / REPAIRS).write_bytes(content[REPAIRS])
        table, out = run.study.parent / TABLE, tmp_path / "out"
        more = ("--years", 10, "--no-member-intervals", "--format", "csv", "--out", out)
        call("forecast", run.study, table, "--repaired", tmp_path / REPAIRS, *more)
        assert (out / "whatif.csv").read_bytes() == content["whatif.csv"]
        ours, theirs = rows_of(content["whatif_members.csv"]), rows_of((out / "whatif_members.csv").read_bytes())
        assert [{name: row[name] for name in row if name in ours[0]} for row in theirs] == ours

    def test_command_line_of_the_page(self, run, get, mark):
        mark("worst", number="1")
        told = write_forecast_command(run.study, find_view(run.study, 5, 9), REPAIRS)
        assert told.split()[:2] == ["rekka", "forecast"]
        assert "--threshold e --years 9 --repaired repairs.csv" in told
        assert told.replace("'", "&#39;") in get("what-if", threshold=5, years=9).text


class TestFiles:
    @pytest.mark.parametrize(
        "name", ["report.xlsx", "report.json", "members.csv", "network.csv", "mapping.toml", "commands.txt"]
    )
    def test_files_to_take_away(self, get, name):
        found = get(f"files/{name}")
        assert len(found.content) > (0 if name != "mapping.toml" else -1)
        assert found.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert found.headers["x-content-type-options"] == "nosniff"

    def test_report_page_is_one_file(self, get, monkeypatch):
        monkeypatch.setattr("rekka.report.page.draw_svg", lambda spec, prefix: "<svg></svg>")
        text = get("files/report.html").text
        assert "<style>" in text
        assert "/assets/" not in text

    def test_no_browser_no_pdf(self, get, monkeypatch):
        monkeypatch.setattr("rekka.report.printing.BROWSERS", ())
        monkeypatch.delenv("REKKA_BROWSER", raising=False)
        assert EN("app.results.no_browser") in get("results").text
        assert "No browser was found" in get("files/report.pdf", 400).text

    @pytest.mark.parametrize(
        "name", ["../job.json", "study.toml", "provenance.json", "%2e%2e/job.json", "whatif.csv", REPAIRS]
    )
    def test_nothing_else(self, get, name):
        get(f"files/{name}", 404)

    def test_every_name_has_words(self):
        for name in FILES:
            if name not in OF_RUN:
                assert f"app.results.file.{name.replace('.', '_')}" in EN.texts

    def test_tables_are_those_of_the_command(self, workspace, get, tmp_path):
        """The run that the page's worker makes has the tables that rekka compare and rekka forecast write."""
        table, run = write_table(tmp_path / "line"), tmp_path / "line" / "run"
        call("compare", table, *OPTIONS, "--no-report", "--out", run)
        call("forecast", run, table, "--format", "csv")
        assert get("files/network.csv").content == (run / "forecast" / "network.csv").read_bytes()
        assert get("files/members.csv").content == (run / "forecast" / "members.csv").read_bytes()
        for name in OF_RUN:
            ours, theirs = rows_of(get(f"files/{name}").content), rows_of((run / name).read_bytes())
            assert [_without_times(row) for row in ours] == [_without_times(row) for row in theirs], name
        assert rows_of(get("files/trials.csv").content)

    def test_other_thresholds_are_in_the_tables_too(self, get, run, tmp_path):
        call("forecast", run.study, run.study.parent / TABLE, "--threshold", "e", "--years", 6,
             "--no-member-intervals", "--format", "csv", "--out", tmp_path / "out")  # fmt: skip
        for name in ("members.csv", "network.csv"):
            assert get(f"files/{name}", threshold=5, years=6).content == (tmp_path / "out" / name).read_bytes()


def _without_times(row):
    return {name: value for name, value in row.items() if "seconds" not in name and name not in ("made", "look")}


class TestRuns:
    def test_a_run_that_works_has_no_results_yet(self, get, run):
        run.save(run.job.model_copy(update={"state": "working"}))
        assert get("results", 303).headers["location"] == f"/runs/{run.id}"

    def test_a_run_without_its_table_still_has_its_results(self, get, run):
        (run.study.parent / TABLE).unlink()
        text = get("results").text
        assert make_overview(find_view(run.study).document, EN).headline in text
        assert TABLE in get("results", 400, threshold=5).text

    @pytest.mark.parametrize("how", ["elsewhere", "a link"])
    def test_no_table_outside_of_the_workspace_is_read(self, get, mark, run, tmp_path, how):
        table, outside = run.study.parent / TABLE, tmp_path / "outside.csv"
        table.rename(outside)
        if how == "a link":
            table.symlink_to(outside)
        else:
            plan = run.study / "study.toml"
            plan.write_text(plan.read_text().replace(f"../{TABLE}", str(outside)))
        assert make_overview(find_view(run.study).document, EN).headline in get("results").text
        mark("add", mark=[Mark(*find_view(run.study).details.select("bridge_id", "case", "member").row(0)).key])
        told = "lies outside of the workspace"
        assert told in get("results", 400, threshold=5).text
        assert told in get("what-if").text
        assert told in get("files/whatif.csv", 400).text

    def test_a_run_without_a_report(self, get, run):
        (run.study / "report.json").unlink()
        expected = rekka.make_report(run.study, calibrate=False).document
        assert make_overview(expected, EN).headline in get("results").text

    def test_names_are_shown_and_do_nothing(self, workspace, browser):
        name = "<script>alert(1)</script>"
        shutil.copytree(share_run(), workspace.folder / name)
        run = workspace.open_run(f"{name}/run")
        run.save(run.job.model_copy(update={"name": name}))
        bridge = find_view(run.study).details["bridge_id"][0]
        for page in ("results", f"member?{urlencode({'bridge': bridge})}", "what-if?query=<script>"):
            text = browser.get(f"/runs/{run.id}/{page}").text
            assert "<script>alert" not in text
            assert 'value="<script>' not in text

    def test_names_of_a_table_are_shown_and_do_nothing(self, workspace, browser, access):
        """Bridges, components, members and ratings; the report has them as data of its script, too."""
        run = put_hostile_run(workspace)
        address = f"/runs/{run.id}"
        form = {"form_token": access.form, "action": "worst", "number": "3"}
        marked = browser.post(f"{address}/what-if", data=form)
        assert marked.status_code == 303, marked.text[-1500:]
        bridge = find_view(run.study).details["bridge_id"][0]
        assert HOSTILE in bridge
        pages = [f"{address}/{name}" for name in ("results", "what-if", f"what-if?{urlencode({'query': 'img'})}")]
        pages += [
            f"{address}/member?{urlencode({'bridge': bridge})}",
            f"/comparison?first={run.id}&second={run.id}",
        ]
        for page in (*pages, f"{address}/report"):
            answer = browser.get(page)
            assert answer.status_code == 200, answer.text[-2000:]
            found = Tags(answer.text)
            assert found.bad == [], page
            assert page.endswith("report") or "\u202e" not in answer.text, page
            assert "script-src 'self';" in answer.headers["Content-Security-Policy"]

    def test_unknown_runs(self, browser):
        for page in ("results", "what-if", "report", "member", "files/report.json"):
            assert browser.get(f"/runs/{'0' * 16}/{page}").status_code == 404
