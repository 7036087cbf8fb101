"""Ratings read as one where few records leave them: the groups, the reading, what keeps them apart."""

import polars as pl
import pytest

import rekka
from component_tables import ENGLISH, state_export
from rekka.core.errors import StoppedByCheck
from rekka.data.merging import ENOUGH_DEPARTURES, choose_groups
from rekka.data.transitions import ReadingOptions, merge_ratings

NAMES = tuple("9876543210")


@pytest.fixture(scope="module")
def export():
    return state_export(400, 4, seed=4)


@pytest.fixture(scope="module")
def found(export):
    return rekka.read_transitions(export)


def moves(*counts, cases=("Deck",), visits=6):
    """Moves of each case by one rating: ``counts`` from the best, from the next, ..., in every visit alike."""
    rows = [
        (case, k, k + 1, visit, visit + 1, number)
        for case in cases
        for visit in range(1, visits)
        for k, number in enumerate(counts, start=1)
    ]
    names = ["case", "state_1", "state_2", "visit_1", "visit_2", "transitions"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_a_boundary_needs_enough_departures_in_the_rows_that_train():
    enough, few = 4, 3  # of 5 visits, 60 % of the bridges: 12 and 9
    assert 0.6 * 5 * few < ENOUGH_DEPARTURES <= 0.6 * 5 * enough
    groups = choose_groups(moves(few, enough, enough, enough, enough, few), NAMES)
    assert groups.states == ((1, 2), (3,), (4,), (5,), (6, 7, 8, 9, 10))
    assert groups.departures == (9, 12, 12, 12, 12, 9, 0, 0, 0)
    five = moves(10, 10, 10, 10, 10, 10, visits=5)  # the paper's rounds: visits 3 to 4 train
    assert choose_groups(five, NAMES).departures[:7] == (10,) * 6 + (0,)


def test_every_component_counts_and_all_share_the_scale():
    one, two = moves(0, 4, 4), moves(0, 4, 4, cases=("Deck", "Pier"))
    alone = two.with_columns(transitions=pl.when(case="Deck").then("transitions").otherwise(1))
    assert choose_groups(one, NAMES).states == choose_groups(two, NAMES).states
    assert [choose_groups(some, NAMES).enough for some in (one, two, alone)] == [10, 10, 5]  # 15 of 20 there


def test_a_small_table_has_to_do_with_fewer_or_stays_as_it_is():
    groups = choose_groups(moves(1, 1, 1, 1), NAMES)  # 3 departures each
    assert (groups.enough, groups.states[-1]) == (2, (5, 6, 7, 8, 9, 10))
    tiny = choose_groups(moves(1, 0, 0, visits=3), NAMES)
    assert tiny.states == tuple((k,) for k in range(1, 11))


def test_a_scale_read_from_its_wrong_end_is_refused_and_not_merged(export):
    with pytest.raises(StoppedByCheck, match="R109"):
        ReadingOptions(changes={"state": {"best": 0, "worst": 9}}).sound(export)


def test_poor_is_kept_with_half_as_many():
    few = moves(9, 9, 9, 9, 2)  # 6 departures from 5 to 4
    assert ENOUGH_DEPARTURES / 2 <= 6 < ENOUGH_DEPARTURES
    assert choose_groups(few, NAMES).states[-2:] == ((5,), (6, 7, 8, 9, 10))
    assert choose_groups(few, tuple("abcdefghij")).states[-1] == (5, 6, 7, 8, 9, 10)


def test_moves_over_several_ratings_cross_every_boundary():
    far = pl.DataFrame({"case": ["Deck"], "state_1": [1], "state_2": [4], "visit_1": [1], "visit_2": [2]})
    groups = choose_groups(far.with_columns(transitions=pl.lit(100)), NAMES)
    assert groups.states == ((1,), (2,), (3,), (4, 5, 6, 7, 8, 9, 10))


def test_a_table_is_read_as_if_the_groups_had_been_given(export, found):
    labels = found.reading.mapping["state"]["labels"]
    assert labels == [["9", "8"], "7", "6", "5", ["4", "3", "2", "1", "0"]]
    given = rekka.read_transitions(export, state={"labels": labels})
    assert found.frame.equals(given.frame)
    assert (found.scale.names, found.reading.labels) == (given.scale.names, given.scale.names)
    assert found.audit.table.equals(given.audit.table)
    again = rekka.read_transitions(export, found.reading.mapping)
    assert again.frame.equals(found.frame)


def test_the_notes_say_what_was_merged_and_what_keeps_it(export, found):
    notes = [note for note in found.notes if "read as one" in note]
    assert len(notes) == 2
    assert "ratings 9 and 8 are read as one: the rows that a study trains on have only" in notes[0]
    assert "ratings 4, 3, 2, 1 and 0 are read as one" in notes[1]
    assert all(note.endswith("--keep-ratings keeps them apart") for note in notes)
    kept = rekka.read_transitions(export, state={"merge": False})
    assert kept.scale.names == NAMES
    assert kept.audit.count("upward move: the condition improved") > found.audit.count(
        "upward move: the condition improved"
    )  # 3 to 4 is no move on the merged scale


@pytest.mark.parametrize("state", [{"labels": list(NAMES)}, {"bands": [8.5, 7.5, 6.5, 5.5, 4.5, 3.5, 2.5]}])
def test_scales_that_are_given_are_never_merged(export, state):
    found = rekka.read_transitions(export, state=state)
    assert len(found.scale.names) == len(state.get("labels", [*state.get("bands", ()), 0]))
    assert not any("read as one" in note for note in found.notes)


def test_ends_say_only_the_direction(export, found):
    given = rekka.read_transitions(export, state={"best": 9, "worst": 0})
    assert given.frame.equals(found.frame)
    assert given.reading.given == {"best": 9, "worst": 0}


def test_short_scales_and_small_tables_stay(export):
    inventory = rekka.simulate_inventory(60, preset="plain").inspections
    panel = rekka.read_panel(inventory)
    assert merge_ratings(panel) is panel
    small = rekka.read_panel(export.head(40))
    assert merge_ratings(small) is small


def test_rules_that_call_upward_moves_errors_see_the_merged_scale(export, found):
    errors = merge_ratings(rekka.read_panel(export, rules={"upward": "error", "same_day": "error"}))
    assert errors.scale.names == found.scale.names


def test_a_component_in_a_column_is_merged_too(export, found):
    others = [name for name in export.columns if name not in ENGLISH]
    long = export.unpivot(ENGLISH, index=others, variable_name="component", value_name="rating")
    assert rekka.read_transitions(long).scale.names == found.scale.names
