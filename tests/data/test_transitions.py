"""Pairing against a plain Python account of the same rules, record by record."""

from collections import Counter
from datetime import date
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues
from rekka.data.pairing import BEFORE_COMPLETION, FAR_UPWARD, INTERVAL, REPAIR, UPWARD
from rekka.data.partition import partition_by_bridge, partition_paper

KEPT, LAST, ONLY = "kept", "the member's last visit", "the member's only visit"
AGAIN, OTHER = "a second record of one day, with the same state", "another record of one day, with another state"
FRAME = {"bridge": pl.String, "case": pl.String, "date": pl.Date, "state": pl.Int64, "completed": pl.Date,
         "length": pl.Float64, "traffic": pl.Float64, "repair_date": pl.Date}  # fmt: skip
DAYS = [date(2000 + year, month, 1) for year in range(0, 12, 3) for month in (1, 6)]


def frame(rows):
    return pl.DataFrame(rows, schema=FRAME, orient="row")


def months(day):
    return 12 * day.year + day.month - 1


def plain(rows, *, same_day="worst", max_gap=None, repairs="set_aside"):
    """The reasons of all records, and the kept pairs, one record after the other."""
    reasons = {}
    members = {}
    for number, row in enumerate(rows):
        members.setdefault((row[0], row[1]), {}).setdefault(row[2], []).append(number)
    pairs = []
    for days in members.values():
        visits = []
        for day in sorted(days):
            here = days[day]
            states = [rows[n][3] for n in here]
            if same_day == "set_aside" and len(set(states)) > 1:
                reasons |= dict.fromkeys(here, OTHER)
                continue
            winner = {"worst": here[states.index(max(states))], "last": here[-1]}.get(same_day, here[0])
            for n in here:
                if n != winner:
                    reasons[n] = AGAIN if rows[n][3] == rows[winner][3] else OTHER
            visits.append(winner)
        for n, following in pairwise(visits):
            reasons[n] = judge(rows[n], rows[following], max_gap, repairs)
            if reasons[n] == KEPT:
                pairs.append((n, following))
        if visits:
            reasons[visits[-1]] = LAST if len(visits) > 1 else ONLY
    return reasons, sorted(pairs)


def judge(first, second, max_gap, repairs):
    known = [row[7] for row in (first, second) if row[7]]
    if repairs != "ignore" and any(first[2] < day <= second[2] for day in known):
        return REPAIR
    if second[3] < first[3]:
        return UPWARD
    if max_gap and months(second[2]) - months(first[2]) > 12 * max_gap:
        return f"more than {max_gap:g} years apart"
    if first[4] and first[4] > first[2]:
        return BEFORE_COMPLETION
    if not first[4]:
        return "age_at_inspection_1 is missing"
    if first[5] is None:
        return "bridge_length is missing"
    if first[6] is None or second[6] is None:
        return "traffic_mean is missing"
    return KEPT


records = st.tuples(
    st.sampled_from("AB"),
    st.sampled_from(["Pier", "Deck"]),
    st.sampled_from(DAYS),
    st.integers(1, 4),
    st.sampled_from([date(1980, 1, 1), date(2004, 1, 1), None]),
    st.sampled_from([12.5, None]),
    st.sampled_from([100.0, 300.0, None]),
    st.sampled_from([date(2003, 3, 1), date(2006, 1, 1), None, None]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(records, min_size=1, max_size=40),
    st.sampled_from(["worst", "first", "last", "set_aside"]),
    st.sampled_from([None, 3.0]),
    st.sampled_from(["set_aside", "ignore"]),
)
def test_ours_is_the_plain_account(rows, same_day, max_gap, repairs):
    rules = {"same_day": same_day, "max_gap": max_gap, "repairs": repairs}
    panel = rekka.read_panel(frame(rows), state={"best": 1, "worst": 4})
    ours = rekka.pair_visits(panel, **rules)
    reasons, pairs = plain(rows, **rules)
    assert dict(ours.audit.table.select("reason", "count").rows()) == Counter(reasons.values())
    assert ours.audit.records == len(rows) == ours.audit.table["count"].sum()
    assert ours.frame.select("row_1", "row_2").rows() == pairs
    aside = {n: reason for n, reason in reasons.items() if reason not in (KEPT, LAST, ONLY)}
    assert dict(ours.audit.set_aside.select("row", "reason").rows()) == aside
    for row in ours.frame.iter_rows(named=True):
        first, second = rows[row["row_1"]], rows[row["row_2"]]
        assert (row["state_1"], row["state_2"]) == (first[3], second[3])
        assert row["interval_years"] == pytest.approx((months(second[2]) - months(first[2])) / 12)
        assert row["age_at_inspection_1"] == pytest.approx((months(first[2]) - months(first[4])) / 12)
        assert row["traffic_mean"] == (first[6] + second[6]) / 2
        assert row["bridge_length"] == first[5]


@settings(max_examples=20, deadline=None)
@given(st.lists(records, min_size=1, max_size=40), st.integers(1, 7))
def test_blocks_change_nothing(rows, rows_at_once):
    panel = rekka.read_panel(frame(rows), state={"best": 1, "worst": 4})
    whole, blocks = rekka.pair_visits(panel), rekka.pair_visits(panel, rows_at_once=rows_at_once)
    assert blocks.frame.equals(whole.frame)
    assert blocks.audit.table.equals(whole.audit.table)
    assert blocks.audit.set_aside.equals(whole.audit.set_aside)


def test_members_whose_hashes_meet_are_told_apart(monkeypatch):
    """With 60 bits for the moment only 4 are left for the member: nearly all meet, and the whole hash decides."""
    rows = [
        (f"B{b}", "Pier", day, 1 + (b + k) % 4, None, None, None, None)
        for b in range(50)
        for k, day in enumerate(DAYS)
    ]
    panel = rekka.read_panel(frame(rows[::-1]).select("bridge", "case", "date", "state"))
    usual = rekka.pair_visits(panel)
    monkeypatch.setattr("rekka.data.pairing.MOMENT_BITS", 60)
    assert rekka.pair_visits(panel).frame.equals(usual.frame)
    assert len(usual.frame) + usual.audit.count(UPWARD) == 50 * (len(DAYS) - 1)


def history(states, **columns):
    n = len(states)
    days = [date(2000 + 5 * visit, 6, 1) for visit in range(n)]
    return pl.DataFrame({"bridge": ["A"] * n, "date": days, "state": states} | columns)


def test_five_years_are_five_years():
    found = rekka.pair_visits(rekka.read_panel(history([1, 1, 2, 3])))
    assert found.frame["interval_years"].to_list() == [5.0, 5.0, 5.0]
    assert found.frame["visit_1"].to_list() == [1, 2, 3]


def test_a_restart_begins_a_new_history():
    panel = rekka.read_panel(history([2, 3, 1, 2, 2]), columns={"bridge": "bridge"})
    found = rekka.pair_visits(panel, upward="restart")
    got = found.frame.select("history", "visit_1", "visit_2", "state_1", "state_2").rows()
    assert got == [(1, 1, 2, 2, 3), (2, 1, 2, 1, 2), (2, 2, 3, 2, 2)]
    assert found.audit.count(UPWARD) == 1
    aside = rekka.pair_visits(panel)
    assert aside.frame["visit_1"].to_list() == [1, 3, 4]
    assert "history" not in aside.frame.columns


def test_improvements_by_one_are_kept_within_histories_that_chain():
    data = history([2, 1, 2, 4, 2, 3, 3, 2], repair_year=[None] * 5 + [2029, 2029, None])
    found = rekka.pair_visits(rekka.read_panel(data), upward="keep")
    got = found.frame.select("history", "state_1", "state_2").rows()
    # from 4 to 2 is no small improvement, and a repair lies before the visit of 2030
    assert got == [(1, 2, 1), (1, 1, 2), (1, 2, 4), (2, 2, 3), (3, 3, 2)]
    assert found.audit.count(FAR_UPWARD) == 1
    assert found.audit.count(REPAIR) == 1
    assert (found.audit.upward, found.audit.downward) == (3, 3)
    assert found.audit.table["count"].sum() == found.audit.records == 8
    short = rekka.pair_visits(rekka.read_panel(data), upward="keep", max_gap=4)
    assert short.frame.is_empty()


def test_improvements_of_any_size_are_joined_within_histories():
    data = history([2, 1, 2, 4, 1, 3, 3, 2], repair_year=[None] * 5 + [2029, 2029, None])
    found = rekka.pair_visits(rekka.read_panel(data), upward="keep_all")
    got = found.frame.select("history", "state_1", "state_2").rows()
    assert got == [(1, 2, 1), (1, 1, 2), (1, 2, 4), (1, 4, 1), (1, 1, 3), (2, 3, 2)]  # a repair in 2029
    assert found.audit.count(REPAIR) == 1
    assert (found.audit.upward, found.audit.downward) == (3, 3)


def test_a_restart_keeps_the_tables_numbers_before_it():
    data = history([2, 3, 1, 2], visit=[2, 3, 4, 5])
    found = rekka.pair_visits(rekka.read_panel(data), upward="restart")
    assert found.frame.select("history", "visit_1", "visit_2").rows() == [(1, 2, 3), (2, 1, 2)]


def test_a_known_repair_restarts_the_history_too():
    data = history([2, 3, 3, 4], repair_year=[None, None, 2009, 2009])
    found = rekka.pair_visits(rekka.read_panel(data), repairs="restart")
    assert found.frame.select("history", "visit_1").rows() == [(1, 1), (2, 1)]
    assert found.audit.count(REPAIR) == 1


def test_visit_numbers_of_the_table_decide_the_order():
    data = history([1, 2, 3], visit=[3, 4, 5]).with_columns(
        date=pl.Series([date(2000, 1, 1), date(2005, 1, 1), date(2005, 1, 1)])
    )
    found = rekka.pair_visits(rekka.read_panel(data))
    assert found.frame.select("visit_1", "visit_2").rows() == [(3, 4)]
    assert found.audit.count(INTERVAL) == 1


@pytest.mark.parametrize(
    ("data", "rules", "kind", "message"),
    [
        (history([2, 1]), {"upward": "error"}, BadStates,
         "all: row 0 (1 pair): upward move: the condition improved (bridge A, 2000-06-01 -> 2005-06-01, state 2 -> 1). "
         "Exclude such pairs, or correct the table."),
        (history([1, 2], length=[None, 3.0]), {"missing": "error"}, BadValues,
         "all: row 0 (1 pair): bridge_length is missing (bridge A, 2000-06-01 -> 2005-06-01, state 1 -> 2). "
         "Exclude such pairs, or correct the table."),
        (history([1, 2]), {"upwards": "error"}, BadOption,
         "upwards is not a rule; upward, repairs, same_day, interval, max_gap, missing, outside are. Did you mean upward?"),
        (history([1, 2]), {"max_gap": -1}, BadOption,
         "rules: max_gap is -1; a number above 0 is needed."),
    ],
)  # fmt: skip
def test_rules_that_are_errors(data, rules, kind, message):
    panel = rekka.read_panel(data)
    with pytest.raises(kind) as caught:
        rekka.pair_visits(panel, **rules)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.xlsx"])
def test_written_with_its_audit_beside_it(tmp_path, name):
    panel = rekka.read_panel(history([1, 2, 1, 3, 3]))
    seen = []
    audit = rekka.write_transitions(panel, tmp_path / name, on_progress=seen.append)
    read = rekka.read_transitions(tmp_path / name)
    assert read.audit is None
    assert read.frame.select("state_1", "state_2").cast(pl.Int64).rows() == [(1, 2), (1, 3), (3, 3)]
    assert sum(seen) == audit.records == 5
    counts = pl.read_csv(tmp_path / "out.audit.csv")
    assert counts["count"].sum() == 5
    aside = pl.read_csv(tmp_path / "out.set_aside.csv")
    assert aside.select("row", "state_text", "reason").rows() == [(1, 2, UPWARD)]


def test_blocks_on_the_way_to_a_file_change_only_the_order(tmp_path):
    inventory = rekka.simulate_inventory(60, preset="plain", dirt=0.05)
    joins = [{"file": inventory.inventory}, {"file": inventory.traffic}]
    panel = rekka.read_panel(inventory.inspections, join=joins)
    whole = rekka.pair_visits(panel)
    audit = rekka.write_transitions(panel, tmp_path / "out.parquet", rows_at_once=500)
    assert audit.table.equals(whole.audit.table)
    assert audit.set_aside is None
    written = pl.read_parquet(tmp_path / "out.parquet").sort("row_1")
    assert written.equals(whole.frame.sort("row_1"))
    listed = pl.read_csv(tmp_path / "out.set_aside.csv").sort("row")
    assert listed["reason"].to_list() == whole.audit.set_aside["reason"].to_list()


def test_written_with_parts(tmp_path):
    panel = rekka.read_panel(history([1, 1, 2, 2, 3, 3]))
    rekka.write_transitions(panel, tmp_path / "out.parquet", split=partition_paper)
    parts = pl.read_parquet(tmp_path / "out.parquet").select("visit_1", "part").rows()
    assert parts == [(1, None), (2, None), (3, "train"), (4, "golden"), (5, None)]
    rekka.write_transitions(panel, tmp_path / "all.parquet", split=partition_by_bridge)
    assert pl.read_parquet(tmp_path / "all.parquet")["part"].null_count() == 0


def test_transitions_that_are_there_already():
    data = rekka.simulate_transitions(50)
    read = rekka.read_transitions(data)
    assert read.covariates == ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")
    assert read.frame["case"].unique().to_list() == ["all"]
    bare = rekka.read_transitions(data.select("state_1", "state_2", "interval_years"))
    assert bare.frame["bridge_id"].n_unique() == 50


ONTARIO = {
    "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
    "state": {"bands": [85, 75, 70, 60], "missing": [0]},
}


def test_ontario(ontario):
    """The two raw files become transitions; each cell of the 14 years of 2,781 rows is accounted for."""
    widths = {
        "file": ontario / "bridge_condition_open_data_2017_update_final.csv",
        "names": ["id", "name", "latitude", "longitude", "built", "length", "width"],
        "columns": {"bridge": "id", "width": "width"},
        "agree": {"column": "length", "relative": 0.1, "absolute": 2},
    }
    found = rekka.read_transitions(ontario / "bridge_data.csv", ONTARIO | {"join": [widths]})
    assert dict(found.audit.table.select("reason", "count").rows()) == {
        "kept": 11_709,
        "the member's last visit": 2_697,
        "the member's only visit": 82,
        UPWARD: 1_657,
        BEFORE_COMPLETION: 469,
        "age_at_inspection_1 is missing": 1,
        "bridge_area is missing": 607,
        "not inspected: the state is blank": 21_706,
        AGAIN: 6,
    }
    assert found.audit.records == 2_781 * 14
    assert "bridge_data.csv: the header is row 2; 1 above it left out" in found.notes
    assert found.covariates == ("age_at_inspection_1", "bridge_length", "bridge_area")
    row = found.frame.row(0, named=True)  # 1 -  32/: built 1965, 65 m, 72.9 in 2001 and 70.7 in 2002
    assert (row["bridge_id"], row["row_1"], row["column_1"], row["state_1"]) == ("1 -  32/", 3, "2001", 3)
    assert (row["interval_years"], row["age_at_inspection_1"], row["bridge_length"]) == (1.0, 36.0, 65.0)


def test_ontario_with_its_rehabilitations(ontario):
    known = ONTARIO["columns"] | {"repairs": ["LAST MAJOR REHAB", "LAST MINOR REHAB"]}
    found = rekka.read_transitions(ontario / "bridge_data.csv", ONTARIO | {"columns": known})
    assert (found.audit.count(REPAIR), found.audit.count(UPWARD)) == (812, 1_398)


def many_visits(numbers=range(1, 7)):
    """Twenty members; none improves."""
    rows = [
        (f"B{b}", n, date(2000 + 3 * k, 6, 1), 1 + k * b % 2) for b in range(20) for k, n in enumerate(numbers)
    ]
    columns = {"bridge": pl.String, "visit": pl.Int64, "date": pl.Date, "state": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        state=pl.col("state").cum_max().over("bridge")
    )


def test_visit_numbers_that_are_far_apart():
    """More than the 21 bits that the moment has beside the hash of a member."""
    near, far = (
        rekka.pair_visits(rekka.read_panel(many_visits(numbers), state={"best": 1, "worst": 3})).frame
        for numbers in ((1, 2, 3), (1, 2**21 + 1, 2**21 + 2))
    )
    assert len(near) == 40
    assert far.drop("visit_1", "visit_2").equals(near.drop("visit_1", "visit_2"))


@pytest.mark.parametrize("cores", [2, 7, 50, 200])
def test_threads_change_nothing(monkeypatch, cores):
    """Parts are cut between members, whose visits are numbered through; some parts are empty."""
    panel = rekka.read_panel(many_visits().drop("visit"), state={"best": 1, "worst": 3})
    one = rekka.pair_visits(panel)
    monkeypatch.setattr("rekka.data.pairing.ROWS_A_THREAD", 1)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    several = rekka.pair_visits(panel)
    assert len(one.frame) == 100
    assert several.frame.equals(one.frame)
    assert several.audit.table.equals(one.audit.table)


def test_records_that_repeat_a_state_are_no_error():
    panel = rekka.read_panel(pl.concat([history([1, 2, 3]), history([1])]))
    found = rekka.pair_visits(panel, same_day="error")
    assert len(found.frame) == 2
    assert found.audit.count(AGAIN) == 1
    with pytest.raises(BadValues, match="another record of the same member and day has another state"):
        rekka.pair_visits(rekka.read_panel(pl.concat([history([1, 2, 3]), history([2])])), same_day="error")
