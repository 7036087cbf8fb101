from datetime import date

import pandas as pd
import polars as pl
import pytest

import rekka
from rekka.core.errors import BadValues, MissingColumns, UnreadableTable

LONG = """橋梁番号,部材種別,点検年度,健全度,架設年,橋長,幅員,交通量
B1,主桁,2005,Ⅰ,1970,12.5,8,1200
B1,主桁,2010,Ⅱ,1970,12.5,8,1400
B2,主桁,2005,Ⅲ,1980,"1,030",10,
B2,主桁,2010,Ⅲ,1980,"1,030",10,900
"""


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
def test_a_japanese_table_needs_no_mapping(tmp_path, encoding):
    found = rekka.read_transitions(write(tmp_path / "点検.csv", LONG, encoding))
    assert found.frame.select("bridge_id", "case", "state_1", "state_2", "date_1").rows() == [
        ("B1", "主桁", 1, 2, date(2005, 4, 1))
    ]
    assert found.frame.select("interval_years", "age_at_inspection_1", "bridge_area", "traffic_mean").rows() == [
        (5.0, 35.25, 100.0, 1300.0)
    ]
    assert found.audit.count("traffic_mean is missing") == 1
    assert "点検.csv: dates are fiscal years, from April" in found.notes
    assert any("columns known by their names: bridge is 橋梁番号" in note for note in found.notes)


def test_latin_1_is_not_taken_for_japanese(tmp_path):
    text = "bridge;date;state;length\nPont de l'Été;2010;1;12,5\nPont de l'Été;2015;2;12,5\n"
    path = write(tmp_path / "ponts.csv", text, "latin-1")
    found = rekka.read_transitions(path, table={"decimal": ","})
    assert found.frame.select("bridge_id", "bridge_length").rows() == [("Pont de l'Été", 12.5)]
    assert "ponts.csv: text in latin-1, separated by semicolons" in found.notes


def test_wide_by_year_is_recognised(tmp_path):
    text = "Report of 2020,,,\nid,year built,2010,2015\nA,1990,1,2\nB,1995,,3\n"
    found = rekka.read_transitions(write(tmp_path / "wide.csv", text))
    assert found.frame.select("bridge_id", "state_1", "state_2", "interval_years", "column_1", "row_1").rows() == [
        ("A", 1, 2, 5.0, "2010", 3)
    ]
    assert found.audit.records == 4


def test_wide_by_visit_is_recognised():
    data = pd.DataFrame({"bridge": ["A"], "state_1": ["b"], "date_1": ["2001-05-01"], "state_2": ["c"],
                         "date_2": ["2006-05-01"], "traffic_1": [10], "traffic_2": [30]})  # fmt: skip
    found = rekka.pair_visits(rekka.read_panel(data))
    assert found.frame.select("state_1", "state_2", "interval_years", "traffic_mean", "visit_2").rows() == [
        (2, 3, 5.0, 20.0, 2)
    ]


def test_wide_by_pattern():
    data = pl.DataFrame(
        {"bridge": ["A"], "BCI 2010": [90.0], "BCI 2012": [72.0], "ADT 2010": [5], "ADT 2012": [7]}
    )
    wide = {"state": "BCI {year}", "traffic": "ADT {year}"}
    found = rekka.pair_visits(rekka.read_panel(data, wide=wide, state={"bands": [85, 70]}))
    assert found.frame.select("state_1", "state_2", "traffic_mean").rows() == [(1, 2, 6.0)]


INSPECTIONS = {
    "bridge_id": ["1", "1", "2", "2"],
    "visit": [1, 2, 1, 2],
    "date": ["2001-01-01", "2006-01-01"] * 2,
    "state": [1, 2, 1, 1],
}


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, lambda d: pl.DataFrame(d).to_arrow(), pl.LazyFrame])
def test_tables_are_joined_by_bridge_and_visit(kind):
    inventory = kind(
        {"id": [1.0, 2.0], "completion_year": [1990, 1995], "length": [10.0, 20.0], "width": [8.0, 9.0]}
    )
    traffic = kind({"bridge": [1, 1, 2, 2], "round": [1, 2, 1, 2], "adt": [100, 200, 10, 30]})
    panel = rekka.read_panel(kind(INSPECTIONS), join=[{"file": inventory}, {"file": traffic}])
    found = rekka.pair_visits(panel)
    assert found.frame.select("age_at_inspection_1", "bridge_area", "traffic_mean").rows() == [
        (11.0, 80.0, 150.0),
        (6.0, 180.0, 20.0),
    ]
    assert "the dataframe: joined by bridge and visit; 2 of 2 bridges found there" in found.notes


def test_traffic_by_date_and_a_repeated_row():
    traffic = pl.DataFrame(
        {"bridge": ["1"] * 4, "date": ["2001/1/1", "2006/1/1", "2006/1/1", "2006/5/1"], "adt": [1, 3, 9, 7]}
    )
    found = rekka.pair_visits(rekka.read_panel(pl.DataFrame(INSPECTIONS), join=[{"file": traffic}]))
    assert found.frame["traffic_mean"].to_list() == [2.0]
    assert found.audit.count("traffic_mean is missing") == 1
    assert "the dataframe: 1 of 4 rows repeat a bridge and date; the first of each is used" in found.notes


def test_a_join_that_knows_no_bridge_is_refused():
    ledger = pl.DataFrame({"id": ["001", "002"], "length": [10.0, 20.0]})
    with pytest.raises(BadValues) as caught:
        rekka.read_panel(pl.DataFrame(INSPECTIONS), join=[{"file": ledger}])
    assert str(caught.value) == (
        "None of the 2 bridges is in the dataframe: ours are like '1', its like '001'. Write them alike, or name "
        "another column."
    )


def test_repairs_of_several_tables_and_rows_all_count():
    """A repair column in the inspections, and a log with a row for each repair."""
    days = [f"{year}-06-01" for year in (2000, 2005, 2010, 2015)]
    visits = pl.DataFrame({"bridge": ["A"] * 4, "date": days, "state": [1, 1, 2, 2], "repair_year": [2003] * 4})
    log = pl.DataFrame({"bridge": ["A", "A", "A"], "rehab": [2001, 2012, 2012], "date": ["2007-01-01"] * 3})
    panel = rekka.read_panel(visits, join=[{"file": log, "columns": {"repairs": ["rehab"]}}])
    found = rekka.pair_visits(panel)
    assert found.frame.select("date_1").rows() == [(date(2005, 6, 1),)]
    assert found.audit.count("a repair lies between the two visits") == 2


def test_our_value_counts_where_both_tables_have_one():
    ours = pl.DataFrame(INSPECTIONS | {"length": [10.0, 10.0, None, None]})
    theirs = pl.DataFrame({"id": ["1", "2"], "L": [11.0, 22.0]})
    panel = rekka.read_panel(ours, join=[{"file": theirs, "columns": {"length": "L"}}])
    assert rekka.pair_visits(panel).frame["bridge_length"].to_list() == [10.0, 22.0]


def test_without_a_case_the_member_is_the_case():
    data = pl.DataFrame(INSPECTIONS | {"Member": ["deck", "deck", "pier", "pier"]})
    found = rekka.pair_visits(rekka.read_panel(data))
    assert found.frame["case"].to_list() == ["deck", "pier"]
    assert any("case is Member; name it as member if" in note for note in found.notes)
    told = rekka.pair_visits(rekka.read_panel(data, columns={"member": "Member"}))
    assert told.frame.select("case", "member").rows() == [("all", "deck"), ("all", "pier")]


def test_traffic_by_year_is_joined_by_the_year_of_the_visit():
    visits = pl.DataFrame(INSPECTIONS).drop("visit").with_columns(date=pl.Series(["2001-06-01", "2006-09-15"] * 2))
    traffic = pl.DataFrame({"bridge": ["1", "1", "2"], "year": [2001, 2006, 2001], "adt": [100, 300, 7]})
    found = rekka.pair_visits(rekka.read_panel(visits, join=[{"file": traffic}]))
    assert found.frame.select("bridge_id", "traffic_mean").rows() == [("1", 200.0)]
    assert "the dataframe: joined by bridge and year of inspection; 2 of 2 bridges found there" in found.notes


def test_a_table_whose_dates_are_no_inspections_is_refused():
    ledger = pl.DataFrame({"id": ["1", "1", "2"], "date": ["2020-05-05"] * 3, "length": [1.0, 1.0, 2.0]})
    with pytest.raises(BadValues, match="several rows for a bridge, so it is joined by bridge and date; but none"):
        rekka.read_panel(pl.DataFrame(INSPECTIONS), join=[{"file": ledger}])


def test_a_join_counts_only_where_the_tables_agree():
    ours = pl.DataFrame(INSPECTIONS | {"length": [10.0, 10.0, 20.0, 20.0]})
    theirs = pl.DataFrame({"id": ["1", "2"], "length": [10.5, 40.0], "width": [8.0, 9.0]})
    agree = {"column": "length", "relative": 0.1}
    found = rekka.pair_visits(rekka.read_panel(ours, join=[{"file": theirs, "agree": agree}]))
    assert found.frame.select("bridge_id", "bridge_length", "bridge_area").rows() == [("1", 10.0, 80.0)]
    assert found.audit.count("bridge_area is missing") == 1


def test_further_covariates_and_kept_columns():
    data = pl.DataFrame(INSPECTIONS | {"spans": ["3", "3", "x", "1"], "owner": ["city", "city", "state", "state"]})
    panel = rekka.read_panel(data, columns={"covariates": ["spans"], "keep": ["owner"]})
    found = rekka.pair_visits(panel)
    assert found.covariates == ("spans",)
    assert found.frame.select("spans", "owner").rows() == [(3.0, "city")]
    assert found.audit.count("spans is missing") == 1
    assert "the dataframe: 1 value of spans taken as missing: no numbers, such as 'x' in row 2" in found.notes


def test_each_problem_of_a_record_has_its_name():
    rows = [
        ("A", "Pier", "1", "2001", "1"), (None, "Pier", "1", "2001", "1"), ("A", None, "1", "2001", "1"),
        ("A", "Pier", "1", "2001", None), ("A", "Pier", "1", "2001", "?"), ("A", "Pier", "1", "2001", "7"),
        ("A", "Pier", "1", None, "1"), ("A", "Pier", "1", "soon", "1"), ("A", "Pier", "x", "2001", "1"),
    ]  # fmt: skip
    data = pl.DataFrame(rows, schema=["bridge", "case", "visit", "date", "state"], orient="row")
    found = rekka.pair_visits(rekka.read_panel(data, state={"best": 1, "worst": 5}))
    assert found.audit.set_aside["reason"].to_list() == [
        "the bridge is blank",
        "the case is blank",
        "not inspected: the state is blank",
        "the state is not understood",
        "the state is outside the scale",
        "the date is blank",
        "the date is not understood",
        "the visit's number is blank or not a number",
    ]


def test_excel_with_dates_and_a_title(tmp_path):
    sheet = pl.DataFrame(
        {"a": ["Inspections 2020", "bridge", "A", "A"], "b": [None, "date", "2001-05-01", "2006-05-01"],
         "c": [None, "rank", "1", "2"]}
    )  # fmt: skip
    sheet.write_excel(tmp_path / "book.xlsx", include_header=False, worksheet="data")
    found = rekka.read_transitions(tmp_path / "book.xlsx")
    assert found.frame.select("interval_years", "row_1", "row_2").rows() == [(5.0, 3, 4)]
    assert "book.xlsx: sheet data" in found.notes
    typed = pl.DataFrame({"bridge": ["A", "A"], "date": [date(2001, 5, 1), date(2006, 5, 1)], "rank": [1, 2]})
    typed.write_excel(tmp_path / "typed.xlsx")
    assert rekka.read_transitions(tmp_path / "typed.xlsx").frame["interval_years"].to_list() == [5.0]


def test_a_folder_of_parquet_files(tmp_path):
    data = pl.DataFrame(INSPECTIONS)
    for place in (0, 2):
        data.slice(place, 2).write_parquet(tmp_path / f"{place}.parquet")
    assert len(rekka.read_transitions(tmp_path).frame) == 2


def test_a_folder_of_raw_tables(tmp_path):
    rekka.write_inventory(tmp_path, 50, preset="plain")
    found = rekka.read_transitions(tmp_path)
    assert found.covariates == ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")
    assert found.audit.set_aside.is_empty()
    write(tmp_path / "inspections.txt", "x")
    with pytest.raises(
        UnreadableTable, match=r"has inspections\.csv, inspections\.txt\. Give the file that is meant"
    ):
        rekka.read_panel(tmp_path)


def test_toml_and_keywords_say_the_same(tmp_path):
    write(tmp_path / "data.csv", "Bauwerk;Jahr;Note\nA;2001;1\nA;2004;3\n")
    write(tmp_path / "map.toml", '[columns]\nbridge = "Bauwerk"\ndate = "Jahr"\nstate = "Note"\n')
    columns = {"bridge": "Bauwerk", "date": "Jahr", "state": "Note"}
    from_toml = rekka.read_transitions(tmp_path / "data.csv", tmp_path / "map.toml")
    assert from_toml.frame.equals(rekka.read_transitions(tmp_path / "data.csv", columns=columns).frame)


def test_a_column_is_found_but_for_case_and_blanks():
    data = pl.DataFrame({"Bridge No": ["A"], " Date": ["2001"], "Rating ": [1]})
    assert rekka.read_panel(data, columns={"bridge": "bridge_no"}).records == 1
    with pytest.raises(MissingColumns, match=r"bridgeno1 is not in the dataframe.*Did you mean Bridge No\?"):
        rekka.read_panel(data, columns={"bridge": "bridgeno1"})


def test_names_that_differ_only_in_capitals_are_told():
    frame = pl.DataFrame(
        {
            "bridge": ["B-1", "b-1", "B-2"],
            "case": ["Deck", "Deck", "deck"],
            "date": ["2001-01-01"] * 3,
            "state": [1, 2, 3],
        }
    )
    notes = "\n".join(rekka.read_panel(frame).notes)
    assert "2 names of bridge differ from another only in capitals, such as B-1 and b-1" in notes
    assert "2 names of case differ from another only in capitals, such as Deck and deck" in notes


INDEX = """bridge,date,BCI
B1,2005,0
B1,2010,72.5
B2,2005,100.0
B2,2010,100
B3,2005,80
B3,2010,74
"""


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        ({"bands": [85, 75]}, [(0.0, 1, (2,)), (100.0, 2, (4, 5))]),
        ({"bands": [75, 85]}, [(100.0, 2, (4, 5))]),  # higher is worse: 0 is no damage
        ({"bands": [85, 75], "missing": [0, 100]}, []),
    ],
)
def test_an_index_of_exactly_0_or_100_is_known_with_its_rows(tmp_path, state, ends):
    panel = rekka.read_panel(write(tmp_path / "index.csv", INDEX), columns={"state": "BCI"}, state=state)
    assert [(end.value, end.count, end.rows) for end in panel.scale.ends] == ends


@pytest.mark.parametrize(("agree", "areas"), [
    ({"absolute": 2.0}, [80.0, None]), ({"absolute": 1.9}, [None, None]), ({"relative": 0.2}, [80.0, 180.0]),
])  # fmt: skip
def test_tables_agree_up_to_the_difference_that_is_allowed(agree, areas):
    """Lengths of 10 and 12, and of 20 and 24: a fifth of ours."""
    ours = pl.DataFrame(INSPECTIONS | {"length": [10.0, 10.0, 20.0, 20.0]})
    theirs = pl.DataFrame({"id": ["1", "2"], "length": [12.0, 24.0], "width": [8.0, 9.0]})
    panel = rekka.read_panel(ours, join=[{"file": theirs, "agree": {"column": "length", "relative": 0.0} | agree}])
    found = panel.visits.group_by("bridge_id", maintain_order=True).agg(pl.col("bridge_area").first()).collect()
    assert found["bridge_area"].to_list() == areas


def test_a_table_without_one_bridge_can_be_joined():
    nameless = pl.DataFrame(INSPECTIONS).with_columns(bridge_id=pl.lit(None, pl.String))
    panel = rekka.read_panel(nameless, join=[{"file": pl.DataFrame({"id": ["1"], "width": [8.0]})}])
    assert rekka.pair_visits(panel).audit.count("the bridge is blank") == len(nameless)


def test_one_visit_makes_no_wide_table():
    one = pl.DataFrame({"bridge": ["A", "B"], "state_1": [1, 2], "date_1": ["2001-01-01", "2002-01-01"]})
    with pytest.raises(MissingColumns, match="no column that is known as the state"):
        rekka.read_panel(one)
    two = one.with_columns(state_2=pl.lit(2), date_2=pl.lit("2006-01-01"))
    assert len(rekka.pair_visits(rekka.read_panel(two)).frame) == 2


def test_text_where_numbers_are_needed_is_refused():
    table = pl.DataFrame({"bridge_id": ["1", "1"], "date": ["2015-01-01", "2020-01-01"], "state": [1, 2]})
    table = table.with_columns(adt=pl.Series(["few", "many"]))
    needed = r"adt holds text, such as 'few' in row 0; numbers are needed\. Name another column"
    with pytest.raises(rekka.InputError, match=needed):
        rekka.read_panel(table, columns={"traffic": "adt"})
