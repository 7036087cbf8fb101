"""How a table was read, described without the web: columns, ratings, dates, joins, and what stops the work."""

import re
import tomllib
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter

import rekka
from rekka.app import changes
from rekka.app.description import NOT_RATED, describe_reading
from rekka.app.problems import KINDS, check_reading, find_remedy
from rekka.checks.engine import Subject, list_codes, load_checks
from rekka.core.language import load_words
from rekka.core.ratings import ROMAN
from rekka.data.mapping import format_mapping, load_mapping
from rekka.data.transitions import ReadingOptions

WORSE = dict(zip("abcde", "edcba", strict=True))
HOSTILE = ("<img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0", "\u202egnitar", '"><script>')


@pytest.fixture(scope="module")
def drawn():
    return rekka.simulate_inventory(60, preset="plain", seed=3)


@pytest.fixture(scope="module")
def piers(drawn):
    return drawn.inspections.filter(pl.col("case").is_in(["Pier", "Bearing"]))


@pytest.fixture
def read(tmp_path):
    """A function that writes a table, describes and checks it; remedies are taken one after the other."""

    def read(table, *remedies, mapping=None, name="table.csv"):
        file = tmp_path / name
        if isinstance(table, bytes):
            file.write_bytes(table)
        elif table is not None:
            table.write_csv(file)
        mapping, allow = mapping or {}, ()
        for remedy in (*remedies, None):
            options = ReadingOptions(mapping or None, {}, False, allow)
            found = describe_reading(file, options)
            checked = check_reading(file, options, found, mapping)
            if remedy is not None:
                taken = find_remedy(checked.problems, remedy)
                assert taken is not None, [one.name for problem in checked.problems for one in problem.remedies]
                if taken.allow:
                    allow = (taken.allow,)
                elif taken.role:
                    mapping = changes.set_roles(mapping, found, {taken.place: taken.role})
                else:
                    mapping = taken.mapping
        read.mapping = mapping
        return found, checked

    return read


def kinds(checked):
    return [one.kind or one.code for one in checked.problems if one.stops]


def roles(found):
    return {one.name: one.role for one in found.columns if one.role}


class TestDescription:
    def test_a_long_table(self, read, piers):
        found, checked = read(piers)
        assert list(roles(found).values()) == ["bridge", "case", "member", "visit", "date", "state"]
        assert found.columns[0].samples[0] == "B-00001"
        assert [one.kind for one in found.columns] == ["text", "text", "text", "number", "date", "text"]
        assert not any(one.given for one in found.columns)
        assert [one.place for one in found.scale.ratings] == [1, 2, 3, 4, 5]
        assert sum(one.count for one in found.scale.ratings) == len(piers) == found.counts["records"]
        assert found.counts["components"] == 2
        assert found.counts["bridges"] == piers["bridge_id"].n_unique()
        assert found.preview.rows[0][-1] == piers["state"][0]
        assert (found.dates.first, found.dates.last) == (piers["date"].min(), piers["date"].max())
        assert not checked.stops
        assert checked.counts["transitions"] == len(rekka.read_transitions(piers).frame)
        assert checked.counts["transitions"] + checked.counts["last_visits"] + checked.counts["excluded"] == len(
            piers
        )

    def test_a_wide_table(self, read, piers):
        first = piers.filter(pl.col("visit") <= 3, pl.col("case") == "Pier")
        wide = first.pivot("visit", index=["bridge_id", "member"], values=["state", "date"])
        found, checked = read(wide)
        assert [name for name, role in roles(found).items() if role == "by_visit"] == [
            "state_1",
            "state_2",
            "state_3",
        ]
        assert found.scale.names == ("a", "b", "c", "d", "e")
        assert not checked.stops

    def test_a_column_for_each_component(self, read, piers):
        index = ["bridge_id", "date"]
        some = piers.unique([*index, "case"], maintain_order=True).pivot("case", index=index, values="state")
        found, _ = read(some.rename({"Pier": "Pier rating", "Bearing": "Bearing rating"}))
        assert {one.name: one.component for one in found.find("component")} == {
            "Pier rating": "Pier", "Bearing rating": "Bearing",
        }  # fmt: skip
        assert found.counts["components"] == 2

    def test_a_folder_joins_its_tables(self, drawn, tmp_path):
        drawn.inspections.head(2000).write_csv(tmp_path / "inspections.csv")
        drawn.inventory.write_csv(tmp_path / "inventory.csv")
        found = describe_reading(tmp_path)
        assert [(one.name, one.key) for one in found.joins] == [("inventory.csv", "bridge_id")]
        assert {one.role for one in found.joins[0].columns} >= {"bridge", "completed", "length", "width"}
        assert found.refusal is None
        assert "bridge_area" in found.preview.columns

    def test_transitions_as_they_are(self, read):
        rows = rekka.simulate_transitions(300).with_columns(case=pl.lit("Deck"))
        found, checked = read(rows)
        assert found.kind == "transitions"
        assert found.counts["transitions"] == 300
        assert set(roles(found).values()) == {"covariate"}
        mapping = changes.ignore_columns({}, found, ["traffic_mean"])
        assert "traffic_mean" not in roles(read(rows, mapping=mapping)[0])
        assert not checked.stops

    def test_japanese_headings_and_roman_ratings(self, read, piers):
        numerals = dict(zip("abcde", ("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ", "Ⅳ"), strict=True))
        names = {"bridge_id": "橋梁番号", "case": "部材種別", "member": "部材番号", "visit": "点検回",
                 "date": "点検年月日", "state": "判定区分"}  # fmt: skip
        table = piers.with_columns(state=pl.col("state").replace_strict(numerals)).rename(names)
        found, checked = read(table, name="点検.csv")
        assert list(roles(found)) == list(names.values())
        assert found.scale.names == ("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ")
        assert tuple(one.text for one in found.scale.ratings) == found.scale.names
        assert not checked.stops
        assert len(ROMAN) > len(found.scale.names)
        said = [one.title(load_words("ja")) for one in checked.problems]
        assert all(not text.isascii() for text in said)

    def test_ratings_of_one_label_are_one_line(self, read, piers):
        mixed = piers.with_columns(
            state=pl.when(pl.int_range(pl.len()) % 5 == 0)
            .then(pl.col("state").str.to_uppercase())
            .otherwise("state")
        )
        found, _ = read(mixed)
        assert [one.text for one in found.scale.ratings] == list("abcde")
        assert sum(one.count for one in found.scale.ratings) == len(piers)

    def test_long_scales_show_ratings_that_nobody_has(self, read, piers):
        numbers = piers.with_columns(
            state=pl.col("state").replace_strict(dict(zip("abcde", (9, 8, 7, 5, 4), strict=True)))
        )
        found, _ = read(numbers, mapping={"state": {"best": 9, "worst": 0, "merge": False}})
        assert [one.text for one in found.scale.ratings] == list("9876543210")
        assert {one.text: one.count for one in found.scale.ratings}["6"] == 0

    def test_hostile_names_are_names(self, read, piers):
        names = dict(zip(("bridge_id", "date", "state", "member"), HOSTILE, strict=True))
        table = piers.filter(pl.col("case") == "Pier").drop("case", "visit").rename(names)
        found, checked = read(table)
        assert {one.name for one in found.columns} == set(HOSTILE)
        assert kinds(checked) == ["no_role"]
        places = {one.name: place for place, one in enumerate(found.columns)}
        wanted = dict(zip((places[name] for name in HOSTILE), ("bridge", "date", "state", "member"), strict=True))
        mapping = changes.set_roles({}, found, wanted)
        found, checked = read(table, mapping=mapping)
        assert not checked.stops
        assert load_mapping(tomllib.loads(format_mapping(mapping))) == load_mapping(mapping)


class TestRefusals:
    """Each refusal of the reader is a problem with words in both languages and, where there can be one, a remedy."""

    def test_upside_down_is_turned(self, read, piers):
        table = piers.with_columns(state=pl.col("state").replace_strict(WORSE))
        found, checked = read(table)
        assert kinds(checked) == ["R109"]
        assert checked.upward > checked.downward
        found, checked = read(table, "turn")
        assert not checked.stops
        assert found.scale.names == tuple("edcba")

    def test_upside_down_is_allowed(self, read, piers):
        table = piers.with_columns(state=pl.col("state").replace_strict(WORSE))
        _, checked = read(table, "allow-R109")
        assert "R109" in [one.code for one in checked.problems]
        assert "R109" not in kinds(checked)

    def test_improvements_that_are_repairs(self, read):
        index = {"2010": [60.0] * 38 + [0, 0, 90, 90], "2015": [80.0] * 40 + [70, 70]}
        table = pl.DataFrame({"bridge": range(42), "rehab kind": ["?"] * 42, **index, "Rehab": ["2012"] * 42})
        bands = {"state": {"bands": [85, 75, 65]}}
        _, checked = read(table, mapping=bands)
        assert kinds(checked) == ["R109"]
        said = " ".join(checked.problems[0].advice(load_words("en")))
        assert "give their column the role 'date of a repair'; it may be rehab kind or Rehab." in said
        assert "exactly 0 in 2 records" in said
        assert "--" not in said
        said = "".join(checked.problems[0].advice(load_words("ja")))
        assert "rehab kindまたはRehab" in said
        assert "--" not in said
        found, checked = read(table.drop("rehab kind"), "take-repairs", mapping=bands)
        assert [one.name for one in found.find("repairs")] == ["Rehab"]
        assert "R109" not in [one.code for one in checked.problems]

    def test_ambiguous_dates(self, read, piers):
        day = pl.format(
            "{}/{}/{}", (pl.col("date").dt.day() - 1) % 12 + 1, pl.col("date").dt.month(), pl.col("date").dt.year()
        )
        table = piers.with_columns(date=day)
        found, checked = read(table)
        assert kinds(checked) == ["dates_either"]
        assert roles(found)["date"] == "date"
        first, checked = read(table, "dates-dmy")
        assert not checked.stops
        second, _ = read(table, "dates-mdy")
        assert dict(first.dates.samples) != dict(second.dates.samples)

    def test_dates_in_two_orders(self, read, piers):
        both = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("31/01/2010")).otherwise(pl.lit("01/31/2015"))
        _, checked = read(piers.with_columns(date=both))
        assert kinds(checked) == ["dates_both"]
        found, _ = read(piers.with_columns(date=both), "dates-dmy_first")
        assert found.plan.dates.inspection == ["dmy", "mdy"]
        assert found.dates.first.year == 2010

    def test_dates_of_an_odd_format(self, read, piers):
        odd = pl.format("{}{}", pl.col("date").dt.month(), pl.col("date").dt.strftime("%y"))
        found, checked = read(piers.with_columns(date=odd), "dates-mmyy")
        assert kinds(checked) == []
        assert found.dates.first.year == piers["date"].min().year

    def test_an_index_is_cut(self, read, piers):
        drop = dict(zip("abcde", (95.5, 82.5, 71.0, 63.0, 40.0), strict=True))
        table = piers.with_columns(state=pl.col("state").replace_strict(drop) + pl.int_range(pl.len()) % 7)
        found, checked = read(table)
        assert kinds(checked) == ["states_index"]
        assert found.scale.index
        assert len(found.scale.suggested) == 4
        assert [one.name for one in checked.problems[0].remedies] == ["bands-higher", "bands-lower", "take-state"]
        found, checked = read(table, "bands-higher")
        assert found.plan.state.bands == sorted(found.plan.state.bands, reverse=True)
        assert len(found.scale.names) == 5
        assert read(table, "bands-lower")[0].plan.state.bands == found.plan.state.bands[::-1]

    def test_a_scale_from_zero(self, read, piers):
        table = piers.with_columns(state=pl.col("state").replace_strict(dict(zip("abcde", range(5), strict=True))))
        assert kinds(read(table)[1]) == ["states_from_zero"]
        assert read(table, "best-low")[0].scale.names == ("0", "1", "2", "3", "4")
        found, _ = read(table, "missing-low")
        assert found.scale.names == ("1", "2", "3", "4")
        assert [one.text for one in found.scale.ratings if one.place == NOT_RATED] == ["0"]

    def test_words_are_put_in_order(self, read, piers):
        table = piers.with_columns(
            state=pl.col("state").replace_strict(
                dict(zip("abcde", ("Very good", "Good", "Fair", "Poor", "Bad"), strict=True))
            )
        )
        found, checked = read(table)
        assert kinds(checked) == ["states_unknown"]
        order = ["Very good", "Good", "Fair", "Poor", "Bad"]
        form = Form(
            {f"place-{place}": str(order.index(one.text) + 1) for place, one in enumerate(found.scale.ratings)}
        )
        mapping = changes.change_scale(form, {}, found)
        found, checked = read(table, mapping=mapping)
        assert found.scale.names == tuple(order)
        assert not checked.stops

    def test_a_scale_that_nothing_is_on(self, read, piers):
        mapping = {"state": {"labels": ["x", "y"]}}
        assert kinds(read(piers, mapping=mapping)[1]) == ["states_off_scale"]
        assert not read(piers, "recognise", mapping=mapping)[1].stops

    def test_text_for_traffic(self, read, piers):
        table = piers.with_columns(traffic=pl.lit("many"))
        assert kinds(read(table)[1]) == ["not_numbers"]
        found, checked = read(table, "leave-out-6")
        assert "traffic" not in roles(found)
        assert not checked.stops

    def test_a_column_that_the_mapping_names_in_vain(self, read, piers):
        mapping = {"columns": {"traffic": "ADT"}}
        assert kinds(read(piers, mapping=mapping)[1]) == ["missing"]
        assert not read(piers, "forget", mapping=mapping)[1].stops
        assert read.mapping == {}

    def test_two_columns_for_a_role(self, read, piers):
        table = piers.with_columns(pl.col("state").alias("STATE "))
        assert kinds(read(table)[1]) == ["rivals"]
        found, checked = read(table, "take-state-5")
        assert not checked.stops
        assert roles(found)["state"] == "state"

    def test_two_columns_for_a_component(self, read, piers):
        deck = piers.unique(["bridge_id", "date"], maintain_order=True).select(
            "bridge_id", "date", pl.col("state").alias("Deck rating")
        )
        table = deck.with_columns(pl.col("Deck rating").alias("Deck condition"))
        assert kinds(read(table)[1]) == ["rival_ratings"]
        found, _ = read(table, "component-3")
        assert roles(found)["Deck condition"] == "component"

    def test_a_role_without_a_column(self, read, piers):
        table = piers.rename({"date": "when"})
        assert kinds(read(table)[1]) == ["no_role"]
        found, checked = read(table, "take-date")  # the column of dates is proposed
        assert roles(found)["when"] == "date"
        assert not checked.stops

    def test_a_join_of_other_bridges(self, read, piers, tmp_path):
        pl.DataFrame({"bridge_id": ["X1"], "traffic": [5]}).write_csv(tmp_path / "traffic.csv")
        mapping = {"join": [{"file": str(tmp_path / "traffic.csv")}]}
        found, checked = read(piers, mapping=mapping)
        assert kinds(checked) == ["join_none"]
        assert found.joins[0].key == "bridge_id"
        assert not read(piers, "unjoin-0", mapping=mapping)[1].stops
        assert read.mapping == {}

    def test_a_rule_that_stops(self, read, piers):
        table = piers.with_columns(state=pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("a")).otherwise("state"))
        mapping = {"rules": {"outside": "error"}, "state": {"labels": ["a", "b", "c", "d"]}}
        assert kinds(read(table, mapping=mapping)[1]) == ["rule"]
        assert not read(table, "relax", mapping=mapping)[1].stops
        assert "rules" not in read.mapping

    def test_one_visit_each(self, read, piers):
        _, checked = read(piers.filter(pl.col("visit") == 1))
        assert kinds(checked) == ["no_transitions"]
        assert checked.counts["last_visits"] == checked.counts["records"] > 0

    def test_a_mapping_that_contradicts_itself(self, read, piers):
        _, checked = read(piers, mapping={"state": {"best": 1, "worst": 5, "bands": [3]}})
        assert kinds(checked) == ["option"]
        assert not read(piers, "reset", mapping={"state": {"best": 1, "worst": 5, "bands": [3]}})[1].stops

    @pytest.mark.parametrize(
        ("content", "name", "kind"),
        [
            (b"", "a.csv", "empty"),
            (b"bridge_id,date,state\n", "a.csv", "empty"),
            (b"PK\x03\x04 nothing", "a.xlsx", "unreadable"),
            (b"PAR1 nothing", "a.parquet", "unreadable"),
            (b"a,b\n\x00\x01\x02\x03" * 20, "a.csv", "unreadable"),
            (b"%PDF-1.4", "a.csv", "unreadable"),
            (b"bridge_id,date,state\n1,2010\n1,2012,3,4,5\n", "a.csv", "unreadable"),
            (b"bridge_id,date,state\n1,2010,\n2,2011,\n", "a.csv", "states_blank"),
        ],
    )  # fmt: skip
    def test_a_broken_file(self, content, name, kind, read):
        found, checked = read(content, name=name)
        assert kinds(checked) == [kind]
        assert checked.problems[0].message == str(found.refusal)

    def test_another_sheet(self, read, piers, tmp_path):
        with xlsxwriter.Workbook(tmp_path / "two.xlsx") as book:
            pl.DataFrame({"About": ["a note"]}).write_excel(book, worksheet="Notes")
            piers.write_excel(book, worksheet="点検")
        found, checked = read(None, name="two.xlsx")
        assert (found.sheets, found.sheet) == (("Notes", "点検"), "Notes")
        assert kinds(checked) == ["no_role"]
        found, checked = read(None, "sheet-1", name="two.xlsx")
        assert found.sheet == "点検"
        assert not checked.stops

    def test_nothing_but_zeros(self, read, piers):
        _, checked = read(piers.with_columns(state=pl.lit(0)))
        assert kinds(checked) == ["states_from_zero"]
        assert [one.name for one in checked.problems[0].remedies] == ["missing-low"]

    def test_every_refusal_that_the_reader_names_is_known(self):
        sources = Path(rekka.__file__).parent.glob("*/*.py")
        named = {kind for file in sources for kind in re.findall(r'problem="(\w+)"', file.read_text("utf-8"))}
        assert {"dates_either", "join_none", "no_transitions", "few_places"} <= named <= set(KINDS)

    @pytest.mark.parametrize("lang", ["en", "ja"])
    def test_every_kind_has_its_words(self, lang):
        words = load_words(lang)
        for kind in KINDS:
            assert {
                f"app.reading.problem.{kind}.{part}" for part in ("title", "found", "do")
            } <= words.texts.keys()

    @pytest.mark.parametrize("lang", ["en", "ja"])
    def test_advice_on_the_page_names_no_option_of_a_command(self, lang):
        load_checks("rekka.checks")
        words, shown = load_words(lang), (Subject.TABLE, Subject.RECORDED, Subject.TRAINING)
        for code, used in list_codes().items():
            own = [text for key, text in words.texts.items() if key.startswith(f"check.{code}.")]
            if any(one.subject in shown for one in used) and any("--" in text for text in own):
                assert "--" not in words(f"app.reading.do.{code}")


class Form(dict):
    """Fields of a form."""

    def getlist(self, name):
        found = self.get(name, [])
        return found if isinstance(found, list) else [found]


class TestChanges:
    def test_a_form_as_it_was_shown_changes_nothing(self, read, piers, drawn):
        found, _ = read(piers)
        form = Form({f"role-{place}": one.role for place, one in enumerate(found.columns)})
        form |= {f"place-{place}": str(one.place) for place, one in enumerate(found.scale.ratings)}
        form |= {
            "dates-inspection": "auto",
            "header_row": "",
            "encoding": "",
            "decimal": ".",
            "rule-upward": "set_aside",
        }
        for change in changes.SECTIONS.values():
            assert change(form, {}, found) == {}

    def test_a_recognised_column_is_taken_off(self, read, piers):
        found, _ = read(piers)
        mapping = changes.set_roles({}, found, {3: ""})
        assert mapping == {"columns": {"ignore": ["visit"]}}
        found, _ = read(piers, mapping=mapping)
        assert "visit" not in roles(found)
        assert changes.set_roles(mapping, found, {3: "visit"}) == {"columns": {"visit": "visit"}}

    def test_covariates_and_repairs_are_lists(self, read, piers):
        table = piers.with_columns(salt=pl.lit(1.5), steel=pl.lit("S"), mended=pl.lit(2001), again=pl.lit(2011))
        found, _ = read(table)
        places = {one.name: place for place, one in enumerate(found.columns)}
        wanted = {places["salt"]: "covariate", places["steel"]: "category", places["mended"]: "repairs"}
        mapping = changes.set_roles({}, found, wanted | {places["again"]: "repairs"})
        assert mapping["columns"] == {
            "covariates": ["salt"],
            "categories": ["steel"],
            "repairs": ["mended", "again"],
        }
        found, _ = read(table, mapping=mapping)
        assert changes.set_roles(mapping, found, {places["again"]: ""})["columns"]["repairs"] == ["mended"]
        assert changes.set_roles(mapping, found, {places["salt"]: ""})["columns"].keys() == {
            "categories",
            "repairs",
        }

    def test_components_take_the_place_of_a_rating_and_back(self, read, piers):
        table = piers.with_columns(pl.col("state").alias("X"), pl.col("state").alias("Y"))
        found, _ = read(table)
        mapping = changes.set_roles({}, found, {6: "component", 7: "component"}, {6: "Arch"})
        assert mapping["columns"]["components"] == {"Arch": "X", "Y": "Y"}
        found, _ = read(table, mapping=mapping)
        assert {one.component for one in found.find("component")} == {"Arch", "Y"}
        assert found.refusal is None
        renamed = changes.set_roles(mapping, found, {}, {7: "Cable"})
        assert renamed["columns"]["components"] == {"Arch": "X", "Cable": "Y"}
        back = changes.set_roles(mapping, found, {5: "state"})
        assert "components" not in back["columns"]
        assert roles(read(table, mapping=back)[0])["state"] == "state"

    def test_places_make_labels_and_missing_ones(self, read, piers):
        found, _ = read(piers)
        form = Form({"place-0": "1", "place-1": "1", "place-2": "3", "place-3": "4", "place-4": str(NOT_RATED)})
        mapping = changes.change_scale(form, {}, found)
        assert mapping == {"state": {"labels": [["a", "b"], "c", "d"], "missing": ["e"]}}
        found, _ = read(piers, mapping=mapping)
        assert [one.place for one in found.scale.ratings] == [1, 1, 2, 3, NOT_RATED]
        with pytest.raises(rekka.InputError, match="At least two ratings"):
            changes.change_scale(Form({f"place-{place}": "0" for place in range(5)}), mapping, found)

    def test_rules_file_and_dates(self, read, piers):
        found, _ = read(piers)
        form = Form({"rule-upward": "restart", "rule-max_gap": "8,5", "separator": "tab", "header_row": "2"})
        form |= {"dates-inspection": "auto", "pattern-inspection": "%d.%m.%Y", "wide-state": "BCI {year}"}
        mapping: dict = {}
        for section in ("rules", "file", "dates"):
            mapping = changes.SECTIONS[section](form, mapping, found)
        assert mapping == {
            "rules": {"upward": "restart", "max_gap": 8.5},
            "table": {"separator": "\t", "header_row": 2},
            "dates": {"inspection": "%d.%m.%Y"},
            "wide": {"state": "BCI {year}"},
        }
        undone = Form({"rule-upward": "set_aside", "rule-max_gap": "", "separator": "", "header_row": ""})
        undone |= {"dates-inspection": "auto", "wide-state": ""}
        for section in ("rules", "file", "dates"):
            mapping = changes.SECTIONS[section](undone, mapping, found)
        assert mapping == {}

    @pytest.mark.parametrize(
        ("section", "field", "text"),
        [("rules", "rule-max_gap", "long"), ("file", "header_row", "two"), ("scale", "bands", "high, low")],
    )
    def test_what_is_no_number_is_refused(self, section, field, text, read, piers):
        index = piers.with_columns(state=pl.int_range(pl.len()) % 90 + 0.5)
        found, _ = read(index)
        with pytest.raises(rekka.InputError) as caught:
            changes.SECTIONS[section](Form({field: text}), {}, found)
        assert caught.value.problem in KINDS

    def test_merging_and_leaving_out_are_remedies(self, read, piers):
        table = piers.with_columns(same=pl.lit(3.0), state=pl.col("state").replace({"d": "e"}))
        _, checked = read(table, mapping={"columns": {"covariates": ["same"]}})
        found = {one.code: [remedy.name for remedy in one.remedies] for one in checked.problems}
        assert found["R302"] == ["leave-out-6"]
        assert found["R105"] == ["merge-4"]
        assert not checked.stops
        described, _ = read(table, "merge-4", "leave-out-6", mapping={"columns": {"covariates": ["same"]}})
        assert described.scale.names == ("a", "b", "c", "d/e")
        assert "same" not in roles(described)


def test_ontario_by_its_buttons(ontario):
    file = ontario / "bridge_data.csv"
    found = describe_reading(file)
    assert len(found.find("by_visit")) == 14
    checked = check_reading(file, ReadingOptions(), found, {})
    assert kinds(checked) == ["states_index"]
    proposed = "--bands 78,74,72,68 where higher is better, --bands 68,72,74,78 where it is worse."
    assert proposed in checked.problems[0].message  # the command line's own words
    assert [one.name for one in checked.problems[0].remedies] == ["bands-higher", "bands-lower"]
    mapping = find_remedy(checked.problems, "bands-higher").mapping
    assert mapping["state"]["bands"] == [78, 74, 72, 68]
    options = ReadingOptions(mapping)
    found = describe_reading(file, options)
    checked = check_reading(file, options, found, mapping)
    assert find_remedy(checked.problems, "missing-0").mapping["state"]["missing"] == ["0"]
    assert not checked.stops
    assert checked.counts["records"] == found.counts["records"] == 2781 * 14


def test_a_yearly_file_of_the_national_inventory(ontario):
    file = ontario.parent / "nbi" / "MD18_head.txt"
    found = describe_reading(file)
    assert found.nbi
    checked = check_reading(file, ReadingOptions(), found, {})
    assert find_remedy(checked.problems, "nbi").nbi
    options = ReadingOptions(nbi=True)
    found = describe_reading(file, options)
    assert found.kind == "nbi"
    assert found.counts["records"] == 12
    assert kinds(check_reading(file, options, found, {})) == ["no_transitions"]


def test_covariates_with_gaps_are_left_out(read):
    rows = rekka.simulate_transitions(200).with_columns(gaps=pl.Series([None, 1.5] * 100))
    _, checked = read(rows)
    assert kinds(checked) == ["R301"]
    found, checked = read(rows, "leave-out-" + str(rows.columns.index("gaps")))
    assert "gaps" not in roles(found)
    assert not checked.stops
