"""Levels: which columns are categories, the reference, the merging of rare levels, words for yes and no."""

import polars as pl
import pytest

from rekka.core.errors import BadCovariates, BadValues
from rekka.data.categories import Coding, fit_category, fit_coding, is_text, refuse_names


def counts(**levels: tuple[int, int]) -> pl.DataFrame:
    rows = [(name, *both) for name, both in levels.items()]
    return pl.DataFrame(rows, schema=["level", "rows", "departures"], orient="row")


def test_reference_is_the_most_frequent_level_and_has_no_term():
    found = fit_category("material", counts(steel=(90, 20), concrete=(200, 30), timber=(40, 10)))
    assert found.reference == "concrete"
    assert found.terms == ("material: steel", "material: timber")
    assert found.merged == ()
    assert found.notes() == []


def test_rare_levels_become_one_or_part_of_the_reference():
    some = fit_category("m", counts(a=(200, 50), b=(100, 20), c=(30, 4), d=(20, 3)))
    assert some.kept == ("b", "other")
    assert some.notes() == [
        "m: levels with fewer than 5 departures are taken as one level, other: c (4 of 30), d (3 of 20)"
    ]
    few = fit_category("m", counts(a=(200, 50), b=(100, 20), c=(30, 4)))
    assert few.kept == ("b",)
    assert few.levels[-1].into == "a"
    join = fit_category("m", counts(a=(200, 50), Other=(100, 20), c=(30, 4)))
    assert join.kept == ("Other",)
    assert join.levels[-1].into == "Other"
    none = fit_category("m", counts(a=(200, 50), b=(30, 4)))
    assert none.kept == ()
    assert none.notes()[-1] == "m is left out: no level but a has 5 departures"
    with pytest.raises(BadCovariates, match=r"fewer than 5 departures: c \(4 departures\)"):
        fit_category("m", counts(a=(200, 50), c=(30, 4)), rare="refuse")


@pytest.mark.parametrize(("no", "yes"), [("no", "Yes"), ("N", "Y"), ("0", "1"), ("無", "有"), ("いいえ", "はい")])
def test_yes_is_relative_to_no_even_where_yes_is_more_frequent(no, yes):
    found = fit_category("interstate", counts(**{no: (50, 10), yes: (300, 40)}))
    assert found.yes_no
    assert found.reference == "no"
    assert found.terms == ("interstate: yes",)
    assert found.typical == "yes"
    frame = pl.DataFrame({"interstate": [no, yes, None, "true"]}).lazy()
    assert Coding((found,)).code(frame).collect()["interstate: yes"].to_list() == [0.0, 1.0, None, 1.0]


def test_levels_are_texts_whatever_the_column_holds():
    frame = pl.DataFrame({"a": [1.0, 2.0, 2.0], "b": ["x ", " y", "y"], "c": [True, False, True]}).lazy()
    found = fit_coding(frame, ["a", "b", "c"], pl.lit(True).repeat_by(1).list.first())
    assert [[level.name for level in one.levels] for one in found.categories] == [
        ["2", "1"], ["y", "x"], ["yes", "no"],
    ]  # fmt: skip
    assert is_text(pl.Boolean())
    assert is_text(pl.Enum(["a"]))
    assert not is_text(pl.Int64())


def test_unseen_levels_are_named_and_become_the_reference_or_nothing():
    found = fit_category("m", counts(a=(200, 50), b=(100, 20)))
    rows = pl.DataFrame({"m": ["a", "b", "z", "z", None]}).lazy()
    coding = Coding((found,))
    assert [str(one) for one in coding.find_unseen(rows)] == ["m: no training row has z (2 rows)"]
    assert coding.code(rows).collect()["m: b"].to_list() == [0, 1, 0, 0, None]
    refused = Coding((found,), "refuse").code(rows).collect()["m: b"]
    assert refused.to_list() == [0, 1, None, None, None]


def test_missing_values_can_be_a_level():
    table = pl.DataFrame({"level": ["a", "b", None], "rows": [200, 100, 40], "departures": [50, 20, 9]})
    found = fit_category("m", table, missing=True)
    assert found.terms == ("m: b", "m: missing")
    rows = pl.DataFrame({"m": ["a", None, " "]}).lazy()
    assert Coding((found,)).code(rows).collect()["m: missing"].to_list() == [0, 1, 1]


def test_a_column_of_names_is_no_category():
    many = pl.DataFrame({"level": [f"bridge {i}" for i in range(60)], "rows": 9, "departures": 6})
    with pytest.raises(BadValues, match="60 different texts in 540 rows"):
        refuse_names("name", many, "b.csv")


def test_options_by_category_hold_for_its_terms():
    coding = Coding((fit_category("m", counts(a=(200, 50), b=(100, 20), c=(90, 20))),))
    assert coding.expand(["age", "m", "x"]) == ("age", "m: b", "m: c", "x")
    assert coding.columns(["age", "m: b", "m: c"]) == ("age", "m")
    assert coding.expand_keys({"m": [1], "m: c": [2], "x": [3]}) == {"m: b": [1], "m: c": [2], "x": [3]}
