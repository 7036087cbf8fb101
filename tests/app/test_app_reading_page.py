"""The page of a table: every change through its forms, every refusal as a problem, the mapping as a file."""

import re
import tomllib
from html import unescape

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.data.mapping import load_mapping

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")
from rekka.app import reading

WORSE = dict(zip("abcde", "edcba", strict=True))
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def piers():
    drawn = rekka.simulate_inventory(60, preset="plain", seed=3).inspections
    return drawn.filter(pl.col("case").is_in(["Pier", "Bearing"]))


class Page:
    """A browser without JavaScript, at the page of a table; ``htmx`` asks as with it."""

    def __init__(self, workspace, client, access):
        self.workspace, self.client, self.sent = workspace, client, {"X-Form-Token": access.form}
        self.table = self.text = ""

    def add(self, table, name="table.csv"):
        """Open a table, and show its page."""
        _, file = self.workspace.new_table(name)
        if isinstance(table, bytes):
            file.write_bytes(table)
        else:
            table.write_csv(file)
        self.table = self.workspace.add_table(file, name).id
        return self.show()

    @property
    def address(self):
        return f"/tables/{self.table}"

    @property
    def draft(self):
        return self.workspace.table(self.table).draft

    def show(self, query="?check=1", **headers):
        answer = self.client.get(self.address + query, headers=headers)
        assert answer.status_code == 200, answer.text
        self.text = answer.text
        return self

    def post(self, *, htmx=False, seen=None, **fields):
        """Send a form as it was shown last, and follow."""
        shown = re.search(r'name="seen" value="(\w+)"', self.text)
        data = {"seen": shown[1] if seen is None else seen} | {
            one.replace("__", "-"): v for one, v in fields.items()
        }
        headers = self.sent | ({"HX-Request": "true"} if htmx else {})
        answer = self.client.post(self.address, data=data, headers=headers)
        assert answer.status_code == (200 if htmx else 303), answer.text
        if htmx:
            self.text = answer.text
            return self
        return self.show(answer.headers["location"].removeprefix(self.address))

    @property
    def verdict(self):
        return re.sub(r"<[^>]+>", "", re.search(r'<p class="readiness.*?</p>', self.text, re.DOTALL)[0]).split()

    @property
    def stopped(self):
        return 'class="readiness bad"' in self.text

    @property
    def next(self):
        return f'href="{self.address}/plan"' in self.text


@pytest.fixture
def page(workspace, browser, access):
    return Page(workspace, browser, access)


def test_a_table_that_is_fine_leads_on(page, piers):
    page.add(piers, "橋 梁.csv")
    assert not page.stopped
    assert page.next
    assert "橋 梁.csv" in page.text
    assert re.search(r'<option value="bridge" selected>', page.text)
    for name in ("columns", "scale", "dates", "joins", "counts"):
        assert f'id="part-{name}"' in page.text
    assert page.draft.mapping == {}


def test_the_checks_follow_the_page(page, piers):
    page.add(piers)
    fresh = piers.with_columns(pl.lit(7).alias("more"))
    page.add(fresh).show("?check=1")
    reading._checked._known.clear()
    page.show("")
    assert f'hx-get="{page.address}/checks" hx-trigger="load"' in page.text
    assert f'<noscript><p><a class="button primary" href="{page.address}?check=1"' in page.text
    assert 'class="readiness' not in page.text
    answer = page.client.get(f"{page.address}/checks", headers={"HX-Request": "true"})
    assert answer.text.strip().startswith('<p class="readiness good">')
    assert "<html" not in answer.text
    page.show("")  # known now
    assert 'class="readiness good"' in page.text
    assert page.client.get(f"{page.address}/checks").headers["location"] == f"{page.address}?check=1"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("fake.xlsx", b"bridge_id,date,state\n", "fake.xlsx is not an Excel workbook. If it is text, rename it to fake.csv."),
        ("点検 1.CSV", b"PAR1", "点検 1.CSV is a Parquet file, not a text table. Rename it to 点検 1.parquet."),
        ("table.csv.xlsx", b"x", "table.csv.xlsx is not an Excel workbook. If it is text, rename it to table.csv.csv."),
        ("a table.csv", b"\x89PNG", "a table.csv is a picture, not a text table. A table is needed."),
    ],
)  # fmt: skip
def test_a_refused_file_has_the_users_name(page, name, content, said):
    assert said in page.add(content, name).text


def test_limits_that_are_proposed_say_where_they_come_from(page, piers):
    said = "Proposed from your data: fifths of the records. Enter your agency&#39;s limits if it has any."
    page.add(piers.with_columns(state=pl.int_range(pl.len()) % 70 + 20.5))
    assert said in page.text
    page.post(remedy="bands-higher")
    assert said not in page.text


def test_upside_down_is_corrected_by_the_button(page, piers):
    page.add(piers.with_columns(state=pl.col("state").replace_strict(WORSE)))
    assert page.stopped
    assert not page.next
    page.post(remedy="turn")
    assert not page.stopped
    assert page.next
    assert page.draft.mapping == {"state": {"worst_first": True}}


def test_a_stop_is_allowed_after_a_confirmation(page, piers):
    page.add(piers.with_columns(state=pl.col("state").replace_strict(WORSE)))
    page.post(remedy="allow-R109")
    assert page.draft.allow == ()
    assert "Confirm with the tick first" in page.text
    page.post(remedy="allow-R109", confirmed="1")
    assert page.draft.allow == ("R109",)
    assert "R109 is allowed" in page.text
    page.post(remedy="forbid")
    assert page.draft.allow == ()
    assert page.stopped


def test_only_what_the_page_offers_is_taken(page, piers):
    page.add(piers)
    for name in ("allow-R109", "allow-R003", "nbi", "sheet-1", "merge-9", "../x"):
        page.post(remedy=name, confirmed="1")
        assert "no longer on offer" in page.text, name
    assert (page.draft.mapping, page.draft.allow, page.draft.nbi) == ({}, (), False)


def test_a_form_of_an_earlier_reading_changes_nothing(page, piers):
    page.add(piers).post(section="columns", role__3="")
    page.post(seen="0" * 64, section="columns", role__3="visit")
    assert page.draft.mapping == {"columns": {"ignore": ["visit"]}}
    assert "changed in another window" in page.text


@pytest.mark.parametrize("htmx", [True, False])
def test_sections_change_the_mapping(page, piers, htmx):
    page.add(piers)
    page.post(section="columns", role__3="", htmx=htmx).post(section="rules", rule__max_gap="8", htmx=htmx)
    page.post(section="scale", place__3="4", place__4="4", htmx=htmx)
    page.post(section="dates", dates__inspection="iso", htmx=htmx)
    assert page.draft.mapping == {
        "columns": {"ignore": ["visit"]},
        "rules": {"max_gap": 8.0},
        "state": {"labels": ["a", "b", "c", ["d", "e"]]},
        "dates": {"inspection": "iso"},
    }
    page.post(remedy="reset", htmx=htmx)
    assert page.draft.mapping == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"section": "rules", "rule__max_gap": "<long>"},
        {"section": "rules", "rule__upward": "sideways"},
        {"section": "rules", "rule__max_gap": "-3"},
        {"section": "file", "header_row": "x"},
        {"section": "file", "decimal": "x"},
        {"section": "dates", "dates__inspection": "auto", "pattern__inspection": "nonsense"},
        {"section": "dates", "wide__state": "no place"},
        {"section": "scale", "place__0": "0", "place__1": "0", "place__2": "0", "place__3": "0"},
    ],
)
def test_settings_that_do_not_fit_are_refused_in_a_sentence(page, piers, fields):
    page.add(piers)
    page.post(**fields)
    assert 'class="notice bad"' in page.text
    assert page.draft.mapping == {}
    page.post(htmx=True, **fields)
    assert 'class="notice bad" role="alert"' in page.text
    assert page.draft.mapping == {}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"section": "columns", "role__99": "bridge"}, {}),
        ({"section": "columns", "role__0": "nonsense"}, {}),
        ({"section": "columns", "role__x": "bridge"}, {}),
        ({"section": "nonsense"}, {}),
        ({"section": "file", "sheet": "../../etc"}, {}),
        ({"section": "unjoin", "place": "7"}, {}),
        ({"section": "unjoin", "place": "x"}, {}),
        ({"section": "scale", "place__0": "-99"}, {"state": {"labels": ["b", "c", "d", "e"], "missing": ["a"]}}),
    ],
)
def test_forms_that_nobody_was_shown_do_no_harm(page, piers, fields, expected):
    page.add(piers)
    page.post(**fields)
    assert page.draft.mapping == expected


@pytest.mark.parametrize("place", ["../../../etc/passwd", "/etc/passwd", "0" * 16, ""])
def test_only_tables_of_the_workspace_are_joined(page, piers, place):
    page.add(piers)
    data = {"seen": re.search(r'name="seen" value="(\w+)"', page.text)[1], "section": "join", "join": place}
    answer = page.client.post(page.address, data=data, headers=page.sent)
    assert answer.status_code in (303, 404)
    assert page.draft.mapping == {}


def test_another_table_is_joined_and_taken_off(page, piers):
    bridges = piers["bridge_id"].unique(maintain_order=True)
    side = pl.DataFrame({"Nr": bridges, "traffic": range(len(bridges)), "salt": [1.5] * len(bridges)})
    page.add(side, "traffic.csv")
    other = page.table
    page.add(piers, "inspections.csv").post(section="join", join=other)
    assert page.draft.mapping == {"join": [{"file": f"../{other}/table.csv"}]}
    assert page.stopped
    assert "No bridge in the joined table" in page.text
    page.post(section="joins", key__0="Nr", shown__0="1", covariates__0=["salt", "nothing"])
    assert page.draft.mapping["join"][0]["columns"] == {"bridge": "Nr", "covariates": ["salt"]}
    assert not page.stopped
    assert "<bdi>traffic.csv</bdi>" in page.text
    notes = re.findall(r"<li>([^<]*joined by[^<]*|[^<]*ratings are[^<]*)</li>", page.text)
    assert [unescape(note).partition(":")[0] for note in notes] == ["inspections.csv", "traffic.csv"]
    mapping = tomllib.loads(page.client.get(f"{page.address}/mapping.toml").text)
    assert mapping["join"][0]["file"] == "traffic.csv"
    page.post(section="unjoin", place="0")
    assert page.draft.mapping == {}


def test_a_joined_table_that_was_deleted_is_taken_off(page, piers):
    page.add(pl.DataFrame({"bridge_id": piers["bridge_id"].unique(), "traffic": 5}), "traffic.csv")
    other = page.table
    page.add(piers, "inspections.csv").post(section="join", join=other)
    page.workspace.remove("tables", other)
    page.show()
    assert page.stopped
    page.post(remedy="unjoin-0")
    assert page.draft.mapping == {}
    assert page.next


def test_the_mapping_reads_the_table_alike_on_the_command_line(page, piers, tmp_path):
    table = piers.with_columns(state=pl.col("state").replace_strict(WORSE)).rename(
        {"bridge_id": HOSTILE, "date": "=1+1"}
    )
    page.add(table)
    page.post(remedy="take-bridge", column="0")
    page.post(remedy="take-date", column="4").post(remedy="turn")
    assert not page.stopped
    answer = page.client.get(f"{page.address}/mapping.toml")
    assert answer.headers["content-disposition"] == 'attachment; filename="mapping.toml"'
    (tmp_path / "mapping.toml").write_text(answer.text, encoding="utf-8")
    table.write_csv(tmp_path / "mine.csv")
    done = call("check", tmp_path / "mine.csv", "--mapping", tmp_path / "mapping.toml")
    assert done.exit_code == 0, done.output
    options = page.workspace.table(page.table).options
    assert load_mapping(tmp_path / "mapping.toml") == load_mapping(options.mapping)
    same = rekka.read_transitions(tmp_path / "mine.csv", tmp_path / "mapping.toml").frame
    assert same.equals(options.transitions(page.workspace.table(page.table).file).frame)


def test_hostile_names_are_text(page, piers):
    names = {"bridge_id": HOSTILE, "state": "\u202egnitar<b>", "member": "=cmd|' /C calc'!A0"}
    page.add(piers.rename(names).with_columns(date=pl.lit("<i>x</i>")), f"{HOSTILE}.csv")
    assert "<script>alert" not in page.text
    assert "<b>" not in unescape(page.text).replace("gnitar<b>", "") or "gnitar<b>" not in page.text
    assert "\u202e" not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    page.post(remedy="take-bridge", column="0")
    page.post(section="columns", role__5="state")
    assert "<i>x</i>" not in page.text
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "a.csv"),
        (b"\n\n\n", "a.csv"),
        (b"a,b\n", "a.csv"),
        (b"\x00" * 50, "a.csv"),
        (b"PK\x03\x04", "a.xlsx"),
        (b"PAR1", "a.parquet"),
        (b"\xff\xfe\x00", "a.txt"),
        (b"bridge_id\n1\n", "a.csv"),
        (b'"bridge_id,date\n1,2', "a.csv"),
        (b"bridge_id,date,state\n1,2010,a\n1,2012,b\n", "a.csv"),
        (b"bridge_id,date,state,state_1,state_2,interval_years\n1,2,a,b,c,d\n", "a.csv"),
        (b"state_1,state_2,interval_years\n1,2,5\n", "a.csv"),
        (b"state_1,state_2,interval_years\nx,y,z\n", "a.csv"),
        (b"bridge_id,2010,2012\n1,a,b\n2,b,c\n", "a.csv"),
        (b"bridge_id,date,state\n1,99/99/9999,a\n", "a.csv"),
        (b"bridge_id,date,state\n1,2010,1e999\n1,2011,nan\n", "a.csv"),
        (b"bridge_id,date,state\n1,2010,-5\n1,2011,900\n", "a.csv"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "ja"])
def test_any_file_gives_a_page(page, content, name, lang):
    page.client.cookies.set("rekka-language", lang)
    page.add(content, name)
    assert 'class="readiness' in page.text
    page.show("")
    assert page.client.get(f"{page.address}/mapping.toml").status_code == 200


def test_a_file_that_is_gone_is_said(page, piers):
    page.add(piers)
    page.workspace.table(page.table).file.unlink()
    assert page.client.get(page.address).status_code == 404


def test_japanese_pages_have_no_english_sentences(page, piers):
    page.client.cookies.set("rekka-language", "ja")
    page.add(piers.with_columns(state=pl.col("state").replace_strict(WORSE)))
    text = re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script|option)\b.*?</\1>", "", page.text, flags=re.DOTALL))
    assert not re.findall(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", unescape(text))


def test_a_reading_is_kept_until_something_changes(page, piers, monkeypatch):
    page.add(piers)
    asked = []
    real = reading.describe_reading
    monkeypatch.setattr(reading, "describe_reading", lambda *given: asked.append(given) or real(*given))
    page.show().show("")
    assert asked == []
    page.post(section="dates", dates__inspection="iso")
    assert len(asked) == 1
    file = page.workspace.table(page.table).file
    piers.head(40).write_csv(file)
    page.show()
    assert len(asked) == 2


def test_a_table_of_many_columns_is_cut(page, piers):
    wide = piers.with_columns(pl.lit(place).alias(f"extra {place}") for place in range(310)).with_columns(
        last=pl.lit(1)
    )
    page.add(wide)
    assert "more columns are not shown" in page.text
    assert page.text.count('<select name="role-') == 300
    page.post(section="columns", role__316="keep")
    assert page.text.count('<select name="role-') == 301
