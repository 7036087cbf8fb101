from datetime import date

import polars as pl
import pytest

from rekka.core.errors import BadOption, BadStates, BadValues
from rekka.data.mapping import State
from rekka.data.values import read_dates, read_numbers, read_states, take_dates

JUNE = date(2014, 6, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2014-06-01", JUNE), ("2014/6/1", JUNE), ("2014.6.1", JUNE), ("20140601", JUNE), ("2014年6月1日", JUNE),
        ("2014-06-01 00:00:00", JUNE), ("2014-06-01T09:30:00", JUNE), (" ２０１４/６/１ ", JUNE),
        ("2014-06", JUNE), ("2014年6月", JUNE), ("平成26年6月1日", JUNE), ("H26.6.1", JUNE), ("平成26年6月", JUNE),
        ("2014", date(2014, 1, 1)), ("2014.0", date(2014, 1, 1)), ("2014年", date(2014, 1, 1)),
        ("FY2014", date(2014, 4, 1)), ("2014年度", date(2014, 4, 1)), ("平成26年度", date(2014, 4, 1)),
        ("令和元年", date(2019, 1, 1)), ("R5", date(2023, 1, 1)), ("S50.3", date(1975, 3, 1)),
        ("2014-02-30", None), ("2014-13-01", None), ("9999", None), ("0", None), ("June", None), ("-", None), ("", None),
    ],
)  # fmt: skip
def test_dates_that_need_no_format(text, expected):
    assert read_dates(pl.Series([text]), "auto").to_list() == [expected]


@pytest.mark.parametrize(
    ("texts", "formats", "expected"),
    [
        (["617", "1216", "0617", "199", "1399"], "mmyy",
         [date(2017, 6, 1), date(2016, 12, 1), date(2017, 6, 1), date(1999, 1, 1), None]),
        (["2014", "FY 2014", "2014年度"], "fiscal_year", [date(2014, 4, 1)] * 3),
        (["1.6.2014"], "dmy", [JUNE]), (["6/1/2014"], "mdy", [JUNE]), (["01.06.2014"], "%d.%m.%Y", [JUNE]),
        (["2014-06-01", "6/1/2014"], ["iso", "mdy"], [JUNE, JUNE]),
        (["13/6/2014", "1/6/2014"], "auto", [date(2014, 6, 13), JUNE]),
        (["6/13/2014", "6/1/2014"], "auto", [date(2014, 6, 13), JUNE]),
    ],
)  # fmt: skip
def test_dates_of_a_format(texts, formats, expected):
    assert read_dates(pl.Series(texts), formats).to_list() == expected


def test_a_fiscal_column_makes_plain_years_fiscal():
    assert read_dates(pl.Series(["2014"]), "auto", fiscal=True).to_list() == [date(2014, 4, 1)]


def test_an_era_in_a_fiscal_column_begins_in_april():
    assert read_dates(pl.Series(["H26", "2014"]), "auto", fiscal=True).to_list() == [date(2014, 4, 1)] * 2


def test_excels_own_dates_need_no_format():
    assert read_dates(pl.Series(["2014-06-01 00:00:00", "1/6/2014"]), "dmy").to_list() == [JUNE, JUNE]


def test_a_worst_state_that_may_be_a_slip_is_told():
    texts, counts = pl.Series(["i", "iv", "v"]), pl.Series([50, 30, 1])
    assert read_states(texts, counts, State())[1].words.endswith(
        "recognised as Roman numerals; v stands there only once"
    )


def test_a_label_that_is_not_on_the_given_scale_is_outside_it():
    found, _ = read_states(pl.Series(["a", "d"]), pl.Series([1, 1]), State(labels=["a", "b"]))
    assert found["outside"].to_list() == [False, True]


def test_day_or_month_first_is_asked_for():
    with pytest.raises(BadValues, match="Dates such as 4/5/2012 can be day or month first"):
        read_dates(pl.Series(["4/5/2012", "6/7/2012"]), "auto")


def states(texts, **spec):
    found, scale = read_states(pl.Series(texts), pl.Series([1] * len(texts)), State(**spec))
    return found["state"].to_list(), scale.names


@pytest.mark.parametrize(
    ("texts", "spec", "expected", "names"),
    [
        (["a", "C", "Ｂ", "-"], {}, [1, 3, 2, None], ("a", "b", "c")),
        (["a", "e"], {"worst_first": True}, [5, 1], ("e", "d", "c", "b", "a")),
        (["Ⅰ", "Ⅳ", "ii", "III"], {}, [1, 4, 2, 3], ("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ")),
        (["I", "IV", "II"], {}, [1, 4, 2], ("I", "II", "III", "IV")),
        (["A", "C", "D", "d"], {}, [1, 3, 4, 4], ("A", "B", "C", "D")),
        (["9", "4", "2", "N"], {"bands": [9, 8, 7, 6, 5], "missing": ["N"]}, [1, 6, 6, None],
         ("9", "8", "7", "6", "5", "4 or below")),
        (["9", "6", "5", "0"], {"labels": [[9, 8, 7], [6, 5], [4, 3, 2, 1, 0]]}, [1, 2, 2, 3],
         ("7 or above", "5 to 6", "4 or below")),
        (["1", "2/3"], {"labels": [["1"], ["2", "3"]]}, [1, 2], ("1", "2 or above")),
        (["1", "2.0", "05", "N"], {}, [1, 2, 5, None], ("1", "2", "3", "4", "5")),
        (["9", "0", "N", "10", "8.5"], {"best": 9, "worst": 0}, [1, 10, None, None, None], tuple("9876543210")),
        (["1", "3"], {"best": 1, "worst": 4}, [1, 3], ("1", "2", "3", "4")),
        (["85", "84.9", "0", "59"], {"bands": [85, 75, 70, 60], "missing": [0]}, [1, 2, None, 5],
         ("85 and above", "75 to 85", "70 to 75", "60 to 70", "below 60")),
        (["4.9", "5", "20"], {"bands": [5, 10, 20]}, [1, 2, 4], ("below 5", "5 to 10", "10 to 20", "20 and above")),
        (["A1", "a2", "B"], {"labels": [["A1", "A2"], "B"]}, [1, 1, 2], ("A1/A2", "B")),
        (["good", "poor", "N/A"], {"labels": ["good", "fair", "poor"]}, [1, 3, None], ("good", "fair", "poor")),
    ],
)  # fmt: skip
def test_states(texts, spec, expected, names):
    assert states(texts, **spec) == (expected, names)


def test_outside_and_blank_are_told_apart():
    found, _ = read_states(pl.Series(["9", "12", "", "x"]), pl.Series([1] * 4), State(best=9, worst=0))
    assert found.rows() == [(1, False, False), (None, True, False), (None, False, True), (None, False, False)]


@pytest.mark.parametrize(
    ("texts", "spec", "kind", "message"),
    [
        (["good", "bad"], {}, BadStates, "The states are not understood: good, bad. Numbers from 1"),
        (["0", "7"], {}, BadStates, "The states run from 0 to 7. Say which end is best"),
        (
            ["72.5", "68"],
            {},
            BadStates,
            "The states run from 68 to 72.5: an index, not a scale of states. Give bands",
        ),
        ([None, "-"], {}, BadStates, "Every state is blank"),
        (["Ⅰ", "Ⅱ"], {"best": 1, "worst": 4}, BadStates, "None of the states is on the scale 1, 2, 3, 4: Ⅰ, Ⅱ"),
        (["1"], {"best": 0, "worst": 100}, BadOption, "From 0 to 100 there are 101 states; at most 20"),
        (["1"], {"labels": ["a", ["b", "A"]]}, BadOption, "hold a label twice"),
    ],
)
def test_states_that_are_refused(texts, spec, kind, message):
    with pytest.raises(kind, match=message):
        states(texts, **spec)


def test_numbers():
    texts = ["1,234.5", "12", "abc", "１２", "1e3", "inf", "", "=A1", "1,2", "-3"]
    read = pl.DataFrame({"x": texts}).select(read_numbers(pl.col("x"), pl.String())).to_series().to_list()
    assert read == [1234.5, 12, None, 12, 1000, None, None, None, None, -3]
    comma = pl.DataFrame({"x": ["1.234,5", "12,5", "7"]}).select(read_numbers(pl.col("x"), pl.String(), ","))
    assert comma.to_series().to_list() == [1234.5, 12.5, 7]
    typed = pl.DataFrame({"x": [1.0, float("nan")]}).select(read_numbers(pl.col("x"), pl.Float64()))
    assert typed.to_series().to_list() == [1.0, None]


def test_years_of_two_digits_turn_at_70():
    assert read_dates(pl.Series(["0670", "0669"]), "mmyy").to_list() == [date(1970, 6, 1), date(2069, 6, 1)]


def test_dates_end_with_the_last_year_that_is_one():
    days = [date(1699, 12, 31), date(1700, 1, 1), date(2200, 12, 31), date(2201, 1, 1)]
    kept = [None, date(1700, 1, 1), date(2200, 12, 31), None]
    assert pl.DataFrame({"x": days}).select(take_dates(pl.col("x"))).to_series().to_list() == kept
    assert read_dates(pl.Series([str(day) for day in days]), "iso").to_list() == kept


def test_a_slip_does_not_say_which_comes_first():
    """25/25/2014 is no date in either order."""
    assert read_dates(pl.Series(["25/25/2014", "6/13/2014"]), "auto").to_list() == [None, date(2014, 6, 13)]
    assert read_dates(pl.Series(["25/25/2014", "13/6/2014"]), "auto").to_list() == [None, date(2014, 6, 13)]


def test_twenty_states_are_the_most():
    assert len(states(["1"], best=1, worst=20)[1]) == len(states(["1", "20"])[1]) == 20
    for texts, spec, kind in ((["1"], {"best": 1, "worst": 21}, BadOption), (["1", "21"], {}, BadStates)):
        with pytest.raises(kind, match="21"):
            states(texts, **spec)


def test_half_of_the_records_are_not_most():
    with pytest.raises(BadStates, match="The states are not understood: a, good"):
        states(["a", "good"])
    with pytest.raises(BadStates, match="The states are not understood: 1, good"):
        states(["1", "good"])
    assert states(["a", "b", "good"])[0] == [1, 2, None]


@pytest.mark.parametrize(
    ("count", "words"), [(1, "; v stands there only once"), (2, "; v stands there only twice"), (3, "")]
)
def test_a_rare_worst_state_is_told(count, words):
    scale = read_states(pl.Series(["i", "iv", "v"]), pl.Series([50, 30, count]), State())[1]
    assert scale.words.endswith(f"recognised as Roman numerals{words}")
