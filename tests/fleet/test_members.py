"""The members of an inventory as last seen, against a plain Python account of the same rules."""

import csv
from collections import Counter
from datetime import date
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues, MissingColumns, UnreadableTable
from rekka.fleet.members import REPAIRED, UNUSABLE, read_members

SHARED = Path(__file__).parents[3] / "shared"
BLANK = UNUSABLE.format("not inspected: the state is blank")
DIFFERENT = UNUSABLE.format("another record of one day, with another state")
FRAME = {"bridge": pl.String, "case": pl.String, "date": pl.Date, "state": pl.Int64, "completed": pl.Date,
         "length": pl.Float64, "traffic": pl.Float64, "repair_date": pl.Date}  # fmt: skip
DAYS = [date(2000 + year, month, 1) for year in range(0, 9, 3) for month in (1, 6)]
SCALE = {"best": 1, "worst": 4}
MODEL = ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")


def table(rows):
    return pl.DataFrame(rows, schema=FRAME, orient="row")


def history(**columns):
    """Three visits to one member, in 2005, 2010 and 2015."""
    visits = {"bridge": ["A"] * 3, "date": ["2005-06-01", "2010-06-01", "2015-06-01"], "state": [1, 2, 2]}
    return pl.DataFrame(visits | columns)


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# Inspections


def plain(rows, same_day, repairs):
    """What is known of each member, by (bridge, case), and the reasons of the others, one record after the other."""
    members = {}
    for number, row in enumerate(rows):
        members.setdefault(row[:2], []).append(number)
    now, aside = {}, Counter()
    for member, numbers in members.items():
        if member[0] is None:
            aside["the bridge is blank"] += len(numbers)
            continue
        usable = [n for n in numbers if rows[n][3] is not None]
        if same_day == "set_aside":
            states = {}
            for n in usable:
                states.setdefault(rows[n][2], set()).add(rows[n][3])
            usable = [n for n in usable if len(states[rows[n][2]]) == 1]
        if not usable:
            aside[BLANK if rows[numbers[-1]][3] is None else DIFFERENT] += 1
            continue
        rank = {"worst": lambda n: (rows[n][3], -n), "last": lambda n: n}.get(same_day, lambda n: -n)
        usable.sort(key=lambda n: (rows[n][2], rank(n)))
        last = usable[-1]
        known = [rows[n][7] for n in numbers if rows[n][7]]
        if repairs != "ignore" and known and max(known) > rows[last][2]:
            aside[REPAIRED] += 1
            continue
        built, length, traffic = (
            next((rows[n][place] for n in reversed(usable) if rows[n][place] is not None), None)
            for place in (4, 5, 6)
        )
        age = None if built is None or built > rows[last][2] else count_years(built, rows[last][2])
        now[member] = (rows[last][2], rows[last][3], age, length, traffic, last)
    return now, aside


def count_years(first, second):
    months = 12 * (second.year - first.year) + second.month - first.month
    return pytest.approx(months / 12, rel=1e-14)


records = st.tuples(
    st.sampled_from(["A", "B", None]),
    st.sampled_from(["Pier", "Deck"]),
    st.sampled_from(DAYS),
    st.sampled_from([1, 2, 3, 4, None]),
    st.sampled_from([date(1980, 1, 1), date(2004, 1, 1), None]),
    st.sampled_from([12.5, 14.0, None]),
    st.sampled_from([100.0, 300.0, None]),
    st.sampled_from([date(2003, 3, 1), date(2007, 1, 1), None, None, None]),
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(records, min_size=1, max_size=25),
    st.sampled_from(["worst", "first", "last", "set_aside"]),
    st.sampled_from(["set_aside", "restart", "ignore"]),
)
def test_ours_is_the_plain_account(rows, same_day, repairs):
    now, aside = plain(rows, same_day, repairs)
    options = {"state": SCALE, "rules": {"same_day": same_day, "repairs": repairs}}
    if not now:
        with pytest.raises(BadValues, match="no member has a state that a forecast could start from"):
            read_members(table(rows), **options)
        return
    found = read_members(table(rows), **options)
    assert found.frame.columns == [
        "bridge_id", "case", "date", "state", "age_at_inspection_1", "bridge_length", "traffic_mean", "row"
    ]  # fmt: skip
    assert {row[:2]: row[2:] for row in found.frame.rows()} == now
    assert found.frame["row"].is_sorted()
    assert dict(found.aside.select("reason", "count").rows()) == aside
    assert found.covariates == ("age_at_inspection_1", "bridge_length", "traffic_mean")
    assert found.dated


def test_ages_go_by_the_calendar():
    found = read_members(history(completed=["1990-09-16"] * 3))
    months = 12 * (2015 - 1990) + 6 - 9 - 15 / 30
    assert found.frame["age_at_inspection_1"].to_list() == [pytest.approx(months / 12, rel=1e-14)]


def test_a_covariate_is_of_the_last_visit_that_has_it():
    data = history(
        traffic=[100, 200, None], length=[10.0, None, None], spans=[1, 2, 3], owner=["city", "city", None]
    )
    found = read_members(data, columns={"covariates": ["spans"], "keep": ["owner"]})
    assert found.covariates == ("bridge_length", "traffic_mean", "spans")
    assert found.frame.columns[-2:] == ["row", "owner"]
    # a kept column is that of the row itself
    assert found.frame.rows() == [("A", "all", date(2015, 6, 1), 2, 10.0, 200.0, 3.0, 2, None)]


def test_a_covariate_that_nobody_knows_stays_missing():
    found = read_members(history(traffic=[None] * 3, completed=[None, None, "2020-01-01"]))
    assert found.frame.select("traffic_mean", "age_at_inspection_1").rows() == [(None, None)]
    assert found.aside.is_empty()
    assert found.notes[-1] == "the dataframe: 1 member completed after the last visit, and without an age"


def test_visits_go_by_their_numbers_where_they_have_some():
    data = history(visit=[1, 3, 2], state=[1, 3, 2])
    found = read_members(data)
    assert found.frame.select("date", "state", "row").rows() == [(date(2010, 6, 1), 3, 1)]
    assert found.notes[-1] == (
        "the dataframe: 1 member with a later date at a smaller visit number; the number counts"
    )


def test_a_visit_that_cannot_be_used_does_not_count():
    found = read_members(history(state=["a", "b", "?"]))
    assert found.frame.select("date", "state").rows() == [(date(2010, 6, 1), 2)]
    assert found.notes[-2:] == (
        "the dataframe: inspections; each member is as its last usable visit found it",
        "the dataframe: 1 of 3 records not usable (the state is not understood: 1)",
    )


def test_a_repair_told_by_a_record_without_a_state_counts_too():
    data = history(state=[1, 2, None], repair_date=[None, None, "2012-01-01"])
    with pytest.raises(BadValues) as caught:
        read_members(data)
    assert str(caught.value) == (
        "the dataframe: no member has a state that a forecast could start from (repaired after the last visit: the "
        "state is not known any more: 1 member). Correct the table, or the mapping that says what its values mean."
    )
    found = read_members(data, rules={"repairs": "ignore"})
    assert found.frame.select("date", "state").rows() == [(date(2010, 6, 1), 2)]


def test_a_repair_on_the_day_of_the_last_visit_was_seen_by_it():
    assert len(read_members(history(repair_date=["2015-06-01"] * 3)).frame) == 1


SAME = {"bridge": ["A"] * 3, "date": ["2005-06-01", "2015-06-01", "2015-06-01"], "state": [1, 2, 4]}


@pytest.mark.parametrize(
    ("rule", "row"),
    [({}, 2), ({"same_day": "first"}, 1), ({"same_day": "last"}, 2), ({"same_day": "set_aside"}, 0)],
)
def test_several_records_of_the_last_day(rule, row):
    found = read_members(pl.DataFrame(SAME), rules=rule)
    assert found.frame["row"].to_list() == [row]
    words = f"1 member with different states on the last day; the {rule.get('same_day', 'worst')} counts"
    if row:
        assert found.notes[-1] == f"the dataframe: {words}"
    else:
        assert found.notes[-1] == (
            "the dataframe: 2 of 3 records not usable (another record of one day, with another state: 2)"
        )


def test_several_records_of_the_last_day_can_be_an_error():
    with pytest.raises(BadValues) as caught:
        read_members(pl.DataFrame(SAME), rules={"same_day": "error"})
    assert str(caught.value) == (
        "the dataframe: rows 1, 2: records of a member's last day with different states. Keep the worst, the first "
        "or the last of them with same_day, or exclude them."
    )
    assert caught.value.rows == [1, 2]
    earlier = pl.DataFrame(SAME | {"date": ["2015-06-01", "2005-06-01", "2005-06-01"]})
    assert len(read_members(earlier, rules={"same_day": "error"}).frame) == 1


def test_states_outside_the_scale():
    data = history(state=[1, 2, 7])
    assert read_members(data, state=SCALE).frame["state"].to_list() == [2]
    with pytest.raises(BadStates) as caught:
        read_members(data, state=SCALE, rules={"outside": "error"})
    with pytest.raises(BadStates) as theirs:
        rekka.read_transitions(data, state=SCALE, rules={"outside": "error"})
    assert str(caught.value) == str(theirs.value)
    assert caught.value.rows == [2]


def test_what_belongs_to_nobody_is_counted_by_records():
    rows = [("A", "Deck", "2001", "1"), (None, "Deck", "2001", "1"), (None, "Deck", "2002", "1"),
            ("B", None, "2001", "1"), ("C", "Deck", "soon", "1")]  # fmt: skip
    data = pl.DataFrame(rows, schema=["bridge", "case", "date", "state"], orient="row")
    found = read_members(data)
    assert found.frame["bridge_id"].to_list() == ["A"]
    assert found.aside.rows() == [
        ("the bridge is blank", 2, [1, 2], "records"),
        ("the case is blank", 1, [3], "records"),
        ("no usable visit; last record: the date is not understood", 1, [4], "members"),
    ]


def test_members_of_a_case_are_told_apart():
    data = pl.DataFrame(
        {
            "bridge": ["A", "A"],
            "case": ["Pier"] * 2,
            "element": ["P1", "P2"],
            "date": ["2001"] * 2,
            "state": [1, 3],
        }
    )
    found = read_members(data)
    assert found.frame.select("case", "member", "state").rows() == [("Pier", "P1", 1), ("Pier", "P2", 3)]


def test_columns_of_the_user_may_be_called_like_anything():
    named = {"place": [1, 2, 3], "key": [4, 5, 6], "moment": ["x", "y", "z"]}
    found = read_members(history(**named), columns={"covariates": ["place", "key"], "keep": ["moment"]})
    assert found.frame.select("place", "key", "moment").rows() == [(3.0, 6.0, "z")]


JAPANESE = """橋梁番号,部材種別,点検年度,健全度,架設年,橋長,幅員,交通量
B1,主桁,2005,Ⅰ,1970,12.5,8,1200
B1,主桁,2010,Ⅱ,1970,12.5,8,1400
B2,主桁,2005,Ⅲ,1980,"1,030",10,
B2,主桁,2010,未点検,1980,"1,030",10,900
"""


@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
def test_a_japanese_table_needs_no_mapping(tmp_path, encoding):
    found = read_members(write(tmp_path / "点検.csv", JAPANESE, encoding))
    assert found.frame.select("bridge_id", "case", "date", "state", *MODEL, "row").rows() == [
        ("B1", "主桁", date(2010, 4, 1), 2, 40.25, 12.5, 100.0, 1400.0, 3),
        ("B2", "主桁", date(2005, 4, 1), 3, 25.25, 1030.0, 10300.0, None, 4),
    ]
    assert found.name == "点検.csv"


ONTARIO = {
    "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
    "state": {"bands": [85, 75, 70, 60], "missing": [0]},
}
REHABS = ("LAST MAJOR REHAB ", "LAST MINOR REHAB")


@pytest.mark.parametrize("with_repairs", [False, True])
def test_ontario(ontario, with_repairs):
    """Each bridge in the band of its last index, as the csv module tells it."""
    with (ontario / "bridge_data.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(list(file)[1:]))
    last, repaired = {}, set()
    for row in rows:
        known = [
            (year, float(row[str(year)])) for year in range(2000, 2014) if row[str(year)].strip() not in ("", "0")
        ]
        if known:
            year, index = max(known)
            last[row["ID"].strip()] = max(
                last.get(row["ID"].strip(), (0, 0)), (year, 1 + sum(index < limit for limit in (85, 75, 70, 60)))
            )
    for row in rows:
        years = [int(row[name]) for name in REHABS if row[name].strip() not in ("", "0")]
        if row["ID"].strip() in last and years and max(years) > last[row["ID"].strip()][0]:
            repaired.add(row["ID"].strip())
    columns = {"repairs": [name.strip() for name in REHABS]} if with_repairs else {}
    found = read_members(ontario / "bridge_data.csv", ONTARIO, columns=columns)
    ours = {row["bridge_id"]: (row["date"].year, row["state"]) for row in found.frame.iter_rows(named=True)}
    assert ours == {name: value for name, value in last.items() if not with_repairs or name not in repaired}
    assert (len(last), len(repaired)) == (2_779, 117)
    counts = {BLANK: 1} | ({REPAIRED: 117} if with_repairs else {})
    assert dict(found.aside.select("reason", "count").rows()) == counts
    row = found.frame.filter(bridge_id="49 -  73/").row(0, named=True)  # built 1964, 6.7 m, last seen in 2012
    assert (row["state"], row["age_at_inspection_1"], row["bridge_length"]) == (5, 48.0, 6.7)
    assert (row["row"], row["column"]) == (2783, "2012")
    assert found.scale.names[0] == "85 and above"


def test_the_demo_inventory():
    """A clean inventory: each member as its last visit, its last transition, and a list of it tell."""
    drawn = rekka.simulate_inventory()
    joins = [{"file": drawn.inventory}, {"file": drawn.traffic}]
    found = read_members(drawn.inspections, join=joins)
    letters = dict(zip("abcde", range(1, 6), strict=True))
    last = {}
    for row in drawn.inspections.sort("visit").iter_rows(named=True):
        last[row["bridge_id"], row["case"], row["member"]] = (row["date"], letters[row["state"]])
    ours = found.frame.select("bridge_id", "case", "member", "date", "state").rows()
    assert {row[:3]: row[3:] for row in ours} == last
    assert len(found.frame) == len(last)
    assert found.covariates == MODEL
    assert found.aside.is_empty()
    assert not any(found.frame.null_count().row(0))
    ended = read_members(rekka.read_transitions(drawn.inspections, join=joins).frame)
    assert_frame_equal(
        ended.frame.drop("row", "traffic_mean"), found.frame.drop("row", "traffic_mean"), check_row_order=False
    )
    again = read_members(found.frame)
    assert_frame_equal(
        again.frame.drop("row"), found.frame.drop("row"), check_column_order=False, check_row_order=True
    )


def test_a_soiled_inventory_adds_up(tmp_path):
    rekka.write_inventory(tmp_path, 60, preset="plain", dirt=0.1)
    found = read_members(tmp_path)
    visits = pl.read_csv(tmp_path / "inspections.csv")
    members = visits.select("bridge_id", "case", "member").n_unique()
    assert len(found.frame) + found.aside["count"].sum() == members
    assert set(found.aside["reason"]) == {REPAIRED}
    assert found.frame.select("bridge_id", "case", "member").is_unique().all()
    assert found.scale.names == tuple("abcde")


# The National Bridge Inventory


@pytest.fixture
def maryland() -> Path:
    file = SHARED / "data" / "nbi" / "MD18_head.txt"
    if not file.exists():
        pytest.skip("the head of Maryland's file of 2018 is not beside the repository")
    return file


def test_the_national_bridge_inventory(maryland):
    found = read_members(maryland, nbi=True)
    assert found.frame.group_by("bridge_id", maintain_order=True).agg("state").rows() == [
        ("24-1MD0071", [4, 4, 4]),
        ("24-000051640-00010", [2, 3, 4]),
        ("24-100000010004010", [3, 3, 3]),
    ]
    assert found.frame.select("date", *MODEL).rows()[0] == (
        date(2017, 6, 1),
        pytest.approx(37 + 5 / 12),
        202.8,
        pytest.approx(1845.48),
        200.0,
    )
    assert found.aside.rows() == [("no usable visit; last record: not applicable (N)", 3, [3], "members")]
    assert found.frame["column"][0] == "MD18_head.txt DECK_COND_058"


def test_the_last_of_several_years(maryland, tmp_path):
    """In an earlier file the first bridge is in a better state and has other traffic; the third is rebuilt later."""
    text = maryland.read_text()
    names = text.splitlines()[0].split(",")
    for year, changes in {
        2016: {0: {"DATE_OF_INSPECT_090": "615", "DECK_COND_058": "8", "ADT_029": "150"}},
        2018: {0: {"ADT_029": "0"}, 2: {"YEAR_RECONSTRUCTED_106": "2019"}},
    }.items():
        lines = [line.split(",") for line in text.splitlines()]
        for place, values in changes.items():
            for name, value in values.items():
                lines[place + 1][names.index(name)] = value
        write(tmp_path / f"MD{year}.txt", "\n".join(",".join(line) for line in lines) + "\n")
    found = read_members([tmp_path / "MD2018.txt", tmp_path / "MD2016.txt"], nbi=True)
    deck = found.frame.filter(bridge_id="24-1MD0071", case="Deck")
    assert deck.select("date", "state", "traffic_mean").rows() == [(date(2017, 6, 1), 4, 150.0)]
    assert found.aside.filter(reason=REPAIRED)["count"].to_list() == [3]
    kept = read_members([tmp_path / "MD2016.txt", tmp_path / "MD2018.txt"], nbi=True, rules={"repairs": "ignore"})
    assert len(kept.frame) == len(found.frame) + 3


def test_the_inventory_takes_rules_alone(maryland):
    with pytest.raises(BadOption) as caught:
        read_members(maryland, nbi=True, state={"best": 9, "worst": 0})
    assert str(caught.value) == (
        "Files of the National Bridge Inventory need no mapping; the rules are all they take."
    )


# Transitions


PAIRS = {
    "bridge_id": ["A", "A", "B"], "case": ["Deck"] * 3, "state_1": [1, 2, 1], "state_2": [2, 3, 1],
    "interval_years": [5.0, 4.5, 2.0], "age_at_inspection_1": [10.0, 15.0, 3.0], "traffic_mean": [100.0, None, 7.0],
}  # fmt: skip


def test_the_last_transition_ends_now():
    data = pl.DataFrame(PAIRS | {"date_2": ["2015-06-01", "2019-12-01", "2010-01-01"]})
    found = read_members(data)
    assert found.frame.rows() == [
        ("A", "Deck", date(2019, 12, 1), 3, 19.5, None, 1),
        ("B", "Deck", date(2010, 1, 1), 1, 5.0, 7.0, 2),
    ]
    assert found.covariates == ("age_at_inspection_1", "traffic_mean")
    assert found.dated
    assert found.scale is None
    assert found.notes == (
        "the dataframe: transitions, already paired",
        "the dataframe: each member is as its last transition ended; visits that are in no transition are not known",
    )


def test_dates_of_transitions_may_be_years_in_a_file(tmp_path):
    frame = pl.DataFrame(PAIRS | {"date_2": [2015, 2019, 2010], "owner": ["city", "state", "city"]})
    frame.write_csv(tmp_path / "pairs.csv")
    found = read_members(tmp_path / "pairs.csv", columns={"keep": ["owner"]})
    assert found.frame.select("date", "state", "row", "owner").rows() == [
        (date(2019, 1, 1), 3, 3, "state"),
        (date(2010, 1, 1), 1, 4, "city"),
    ]


@pytest.mark.parametrize(("more", "state"), [({"visit_2": [2, 3, 2]}, 3), ({"visit_2": [4, 3, 2]}, 2),
                                             ({"visit_2": [4, 2, 2], "history": [1, 2, 1]}, 3)])  # fmt: skip
def test_without_dates_transitions_go_by_visits(more, state):
    found = read_members(pl.DataFrame(PAIRS | more))
    assert found.frame.select("bridge_id", "state", "date").rows() == [("A", state, None), ("B", 1, None)]
    assert not found.dated


def test_transitions_that_nothing_orders_are_refused():
    with pytest.raises(BadValues) as caught:
        read_members(pl.DataFrame(PAIRS))
    assert str(caught.value) == (
        "the dataframe: bridge 'A', case 'Deck' stands in rows 0, 1. Neither date_2 nor visit_2 says which transition "
        "is the last. Give one of them, or the last transition of each member alone."
    )
    assert caught.value.rows == [0, 1]
    assert read_members(pl.DataFrame(PAIRS)[1:]).frame["state"].to_list() == [3, 1]


def test_transitions_of_one_day_go_by_the_rule():
    data = pl.DataFrame(PAIRS | {"date_2": [date(2015, 6, 1)] * 3})
    assert read_members(data).frame["row"].to_list() == [1, 2]
    assert read_members(data, rules={"same_day": "first"}).frame["row"].to_list() == [0, 2]


def test_ends_that_cannot_be_used():
    ends = {"state_2": ["2", "x", None], "date_2": ["2015-06-01", "2019-12-01", "2010-01-01"]}
    found = read_members(pl.DataFrame(PAIRS | ends))
    assert found.frame.select("bridge_id", "state").rows() == [("A", 2)]
    assert found.aside.rows() == [("no usable visit; last record: state_2 is missing", 1, [2], "members")]
    assert found.notes[-1] == (
        "the dataframe: 2 of 3 records not usable (state_2 is missing: 1; state_2 is not a whole number from 1: 1)"
    )
    undated = pl.DataFrame(PAIRS | {"date_2": ["2015-06-01", None, "2010-01-01"]})
    assert read_members(undated).frame["state"].to_list() == [2, 1]
    unnumbered = pl.DataFrame(PAIRS | {"visit_2": [2, None, 2]})
    assert read_members(unnumbered).frame["state"].to_list() == [2, 1]


def test_letters_in_transitions_are_refused():
    with pytest.raises(BadStates) as caught:
        read_members(pl.DataFrame(PAIRS | {"state_1": ["a"] * 3, "state_2": ["b"] * 3}))
    assert str(caught.value) == (
        "the dataframe: state_2 is 'b' in row 0; whole numbers from 1, the best state, are needed in a table of "
        "transitions. Write them so, or give the inspections that they come from."
    )


def test_the_bridge_of_transitions_is_found_by_its_name():
    """Otherwise each row would be a bridge of its own, and counted as often."""
    data = pl.DataFrame(PAIRS | {"date_2": [2015, 2019, 2010], "visit": [1, 2, 1]}).rename({"bridge_id": "id"})
    data = data.with_columns(id=pl.Series([1, 1, 2]))
    found = read_members(data)
    assert found.frame["bridge_id"].to_list() == ["1", "2"]
    assert found.covariates == ("age_at_inspection_1", "traffic_mean")
    alone = read_members(data.drop("id"))
    assert len(alone.frame) == 3
    assert "the dataframe: no column for the bridge, so that each row is a member of its own" in alone.notes


# Lists


LIST = {"bridge": ["A", "A", "B"], "member_type": ["Deck", "Pier", "Deck"], "rank": ["a", "c", "b"]}


def test_a_list_without_dates():
    more = {"age_at_inspection_1": [10.0, 12.5, None], "traffic_mean": [100, 200, 300], "spans": [1, 2, 3],
            "owner": ["city", "state", "city"], "length": [5.0, 6.0, 7.0], "width": [2.0, 2.0, 2.0]}  # fmt: skip
    found = read_members(pl.DataFrame(LIST | more))
    assert found.covariates == ("bridge_length", "bridge_area", "age_at_inspection_1", "traffic_mean", "spans")
    assert found.frame.rows() == [
        ("A", "Deck", None, 1, 5.0, 10.0, 10.0, 100.0, 1.0, 0),
        ("A", "Pier", None, 3, 6.0, 12.0, 12.5, 200.0, 2.0, 1),
        ("B", "Deck", None, 2, 7.0, 14.0, None, 300.0, 3.0, 2),
    ]
    assert found.frame.schema["date"] == pl.Date
    assert found.scale.names == ("a", "b", "c")
    assert not found.dated
    assert found.notes[-1] == "the dataframe: a list of members without dates; each is as its row says"


def test_a_japanese_list(tmp_path):
    text = "橋梁番号;部材種別;健全度;橋長;径間数;備考\nB1;主桁;Ⅰ;12,5;3;\nB2;主桁;Ⅲ;1.030;;良\n"
    found = read_members(
        write(tmp_path / "一覧.csv", text, "cp932"), table={"decimal": ","}, columns={"keep": ["備考"]}
    )
    assert found.frame.rows() == [
        ("B1", "主桁", None, 1, 12.5, 3.0, 2, None),
        ("B2", "主桁", None, 3, 1030.0, None, 3, "良"),
    ]
    assert found.covariates == ("bridge_length", "径間数")


def test_covariates_that_are_named_are_those_meant():
    more = {"spans": ["1", "x", "3"], "lanes": [2, 2, 4], "traffic_mean": ["1,000", "", "300"]}
    found = read_members(pl.DataFrame(LIST | more), columns={"covariates": ["spans", "traffic_mean"]})
    assert found.covariates == ("traffic_mean", "spans")
    assert found.frame.select("traffic_mean", "spans").rows() == [(1000.0, 1.0), (None, None), (300.0, 3.0)]
    assert "the dataframe: 1 value of spans taken as missing: no numbers, such as 'x' in row 1" in found.notes
    assert read_members(pl.DataFrame(LIST | more)).covariates == ("traffic_mean", "lanes")
    with pytest.raises(BadOption, match="state cannot be among covariates or keep"):
        read_members(pl.DataFrame(LIST | {"state": [1, 2, 3]}), columns={"state": "rank", "covariates": ["state"]})


def test_a_list_joins_other_tables_and_has_no_age():
    ledger = pd.DataFrame({"id": ["A", "B"], "completion_year": [1970, 1980], "length": [10.0, 20.0], "adt": [5, 6],
                           "repair_year": [2100, 2100]})  # fmt: skip
    found = read_members(pd.DataFrame(LIST), join=[{"file": ledger}])
    assert found.covariates == ("bridge_length", "traffic_mean")
    assert found.frame.select("bridge_length", "traffic_mean").rows() == [(10.0, 5.0), (10.0, 5.0), (20.0, 6.0)]
    assert "the dataframe: without a date a completion gives no age, and a repair is not looked at" in found.notes
    assert found.aside.is_empty()


def test_two_rows_of_one_member_are_refused_with_their_rows(tmp_path):
    text = "bridge,component,rank\nA,Deck,a\nB,Deck,b\nA,Deck,\nA,Deck,c\n"
    with pytest.raises(BadValues) as caught:
        read_members(write(tmp_path / "list.csv", text))
    assert str(caught.value) == (
        "list.csv: bridge 'A', case 'Deck' stands in rows 2, 5. A list without dates has one row for each member. Name "
        "the column that identifies members of one kind (--member COLUMN), leave out what is older, or say which column is the date "
        "of the inspection (--date COLUMN)."
    )
    assert (caught.value.rows, caught.value.bridge) == ([2, 5], "A")
    with pytest.raises(BadValues, match=r"in rows 2, 5 \(1 other member has several rows, too\)\. A list"):
        read_members(write(tmp_path / "list.csv", text + "B,Deck,c\n"))
    assert len(read_members(write(tmp_path / "list.csv", text[:-9])).frame) == 2  # a blank one beside is none


def test_a_list_without_a_case_takes_the_member_for_it():
    data = pl.DataFrame({"bridge": ["A", "A"], "member": ["Deck", "Pier"], "state": [1, 2]})
    assert read_members(data).frame["case"].to_list() == ["Deck", "Pier"]
    told = read_members(data, columns={"member": "member"})
    assert told.frame.select("case", "member").rows() == [("all", "Deck"), ("all", "Pier")]
    assert "the dataframe: no column for the case, so that all members are of one component, 'all'" in told.notes


def test_a_list_with_visit_numbers_has_an_order():
    found = read_members(pl.DataFrame({"bridge": ["A", "A", "A"], "visit": ["2", "1", "x"], "state": [3, 1, 4]}))
    assert found.frame.select("state", "row", "date").rows() == [(3, 0, None)]
    assert found.notes[-2] == "the dataframe: a list of members by date or visit; each is as its last row says"


@pytest.mark.parametrize("dates", [["2015", "2019", "soon"], [date(2015, 1, 1), date(2019, 1, 1), None]])
def test_a_list_with_dates_and_a_models_covariates(dates):
    """An age is that of its own row, and an earlier row fills nothing in."""
    data = pl.DataFrame({"bridge": ["A", "A", "B"], "date": dates, "state": [1, 2, 3], "adt": [5, 6, 7],
                         "age_at_inspection_1": [30.0, None, 50.0], "completed": [1960] * 3})  # fmt: skip
    found = read_members(data)
    assert found.frame.rows() == [("A", "all", date(2019, 1, 1), 2, 6.0, None, 1)]
    assert found.covariates == ("traffic_mean", "age_at_inspection_1")
    assert found.dated
    assert found.aside["count"].to_list() == [1]
    assert (
        not read_members(data.drop("age_at_inspection_1", "adt").with_columns(traffic_mean=1.0))
        .frame["age_at_inspection_1"]
        .is_null()
        .any()
    )


def test_repairs_count_in_a_list_with_dates():
    data = pl.DataFrame({"bridge": ["A", "B"], "date": [2015, 2015], "state": [1, 2], "traffic_mean": [5, 6],
                         "repair_year": [2016, 2014]})  # fmt: skip
    found = read_members(data)
    assert found.frame["bridge_id"].to_list() == ["B"]
    assert found.aside.rows() == [(REPAIRED, 1, [0], "members")]


# The states of a model


LETTERS = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("dates", [{"date": ["2001", "2002", "2003"]}, {}])
def test_the_labels_of_a_model_name_the_states(dates):
    data = pl.DataFrame({"bridge": ["A", "B", "C"], "state": ["a", "Ｂ", "-"]} | dates)
    found = read_members(data, labels=LETTERS)
    assert found.scale.names == tuple(LETTERS)
    assert found.frame["state"].to_list() == [1, 2]
    told = read_members(data, labels=LETTERS, state={"labels": ["b", "a", "x"]})
    assert told.scale.names == ("b", "a", "x")


def test_labels_of_a_model_that_others_cannot_know():
    data = pl.DataFrame({"bridge": ["A", "B"], "state": ["fair", "good"]})
    assert read_members(data, labels=["good", "fair", "poor"]).frame["state"].to_list() == [2, 1]
    with pytest.raises(BadStates, match="The states are not understood: fair, good"):
        read_members(data)


@pytest.mark.parametrize(
    ("states", "options"),
    [
        (["1", "2", "3"], {}),
        (["a", "b", "f"], {}),
        (["a", "b", "f"], {"rules": {"outside": "error"}}),
        (["a", "b", "c"], {"state": {"missing": ["e"]}}),
    ],
)
def test_labels_of_another_scale_are_not_used(states, options):
    data = pl.DataFrame({"bridge": ["A", "B", "C"], "state": states})
    found = read_members(data, labels=LETTERS, **options)
    assert_frame_equal(found.frame, read_members(data, **options).frame)
    assert found.notes[-1] == (
        "the dataframe: some states are not among the model's (a, b, c, d, e), so that its scale is not used"
    )


def test_what_means_not_inspected_may_stand_beside_the_labels():
    data = pl.DataFrame({"bridge": ["A", "B", "C"], "state": ["a", "b", "x"]})
    found = read_members(data, labels=LETTERS, state={"missing": ["x"]})
    assert found.scale.names == tuple(LETTERS)
    assert found.aside["reason"].to_list() == [BLANK]


# Empty and broken


def test_an_empty_list():
    with pytest.raises(UnreadableTable) as caught:
        read_members(pl.DataFrame({"bridge": [], "state": []}))
    assert str(caught.value) == "the dataframe has no rows."


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UnreadableTable, match=r"There is no file bridges\.csv\."):
        read_members(tmp_path / "bridges.csv")


def test_a_table_without_a_bridge():
    with pytest.raises(MissingColumns) as caught:
        read_members(pl.DataFrame({"state": ["a"], "spans": [1]}))
    assert str(caught.value).startswith(
        "the dataframe has no column that is known as the bridge. Columns there: state, spans. Say which it is "
    )


def test_a_table_without_a_state():
    with pytest.raises(MissingColumns, match="the dataframe has no column that is known as the state"):
        read_members(pl.DataFrame({"bridge": ["A"], "spans": [1]}))


def test_nobody_was_inspected():
    data = pl.DataFrame({"bridge": ["A", "B", None], "state": ["-", "未点検", "a"]})
    with pytest.raises(BadValues) as caught:
        read_members(data, labels=LETTERS)
    assert str(caught.value) == (
        "the dataframe: no member has a state that a forecast could start from (the bridge is blank: 1 record; no "
        "usable visit; last record: not inspected: the state is blank: 2 members). Correct the table, or the mapping "
        "that says what its values mean."
    )
    with pytest.raises(BadStates) as theirs:
        read_members(data[:2])
    assert str(theirs.value) == "Every state is blank: there is no condition to model."


def test_a_slip_among_states_that_the_model_knows_is_set_aside():
    data = pl.DataFrame({"bridge": ["A", "B", "C"], "state": ["good", "fair", "fiar"]})
    found = read_members(data, labels=["good", "fair", "poor"])
    assert found.frame["state"].to_list() == [1, 2]
    assert found.aside["count"].to_list() == [1]
    assert any(note.endswith("and such records are not usable") for note in found.notes)


def test_an_age_is_known_by_its_name():
    data = pl.DataFrame({"bridge": ["A"], "state": ["b"], "橋齢": [41.0]})
    assert read_members(data, labels=LETTERS).frame["age_at_inspection_1"].to_list() == [41.0]


def test_members_as_they_were_known_on_a_day():
    data = pl.DataFrame(
        {
            "bridge": ["A", "A", "B"],
            "date": ["2010-05-01", "2020-05-01", "2015-05-01"],
            "state": ["a", "c", "b"],
            "repair": [None, None, "2018-01-01"],
        }
    )
    columns = {"repairs": ["repair"]}
    now = read_members(data, labels=LETTERS, columns=columns)
    then = read_members(data, labels=LETTERS, columns=columns, until=date(2016, 1, 1))
    assert dict(now.frame.select("bridge_id", "state").rows()) == {"A": 3}
    assert dict(then.frame.select("bridge_id", "state").rows()) == {"A": 1, "B": 2}
    assert "the dataframe: what was found after 2016-01-01 is left out" in then.notes
