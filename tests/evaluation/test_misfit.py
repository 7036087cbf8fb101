from dataclasses import replace

import numpy as np
import pytest

from rekka.evaluation.goodness import Bands, Cells, Reference
from rekka.evaluation.misfit import Evidence, Outside, find_contrasts, name_causes
from rekka.model.certificate import Certificate, Verdict

BANDS = Bands(np.zeros(0, np.int64), np.array([2.0, 4.1]), np.array([4.0, 8.0]))
NAMES = ("all", "moves", "bands", "jumps", "training", "outside", "outside aside", "start 1", "start 2", "start 3")


def reference(*rejected):
    """Every measure has p = 0.6, those named p = 0.05."""
    simulated = np.repeat([0.0, 20.0], [8, 11])
    return Reference(
        {name: 100.0 if name in rejected else 10.0 for name in NAMES}, dict.fromkeys(NAMES, simulated), 19, 0, 0
    )


def cells(first=(30, 30.0), second=(20, 20.0)):
    """100 rows from state 1 and 60 from state 2, halved over two bands: those that leave, and the expected number."""
    observed, expected = np.zeros((2, 3, 2, 3))
    for state, rows, (moved, hoped) in ((0, 100, first), (1, 60, second)):
        for table, moves in ((observed, moved), (expected, hoped)):
            table[state, :, state] = (rows - moves) / 2
            table[state, :, state + 1] = moves / 2
    observed[2, 0, 2] = expected[2, 0, 2] = 7
    return Cells(observed, expected)


def evidence(*rejected, held_out=False, **changes):
    plain = Evidence(
        cells=cells(),
        bands=BANDS,
        level=0.05,
        at_floor=0,
        training_at_floor=0 if held_out else None,
        reference=reference(*rejected),
        certificate=None,
        outside=None,
        covariates=("age",),
    )
    return replace(plain, **changes)


def certificate(verdict, *reasons):
    return Certificate(verdict, reasons, (), True, 0.7, 0.7, 3, True, 10.0, "x", 0.0)


SHORT = certificate(Verdict.SHORT_OF_MAXIMUM, "about 0.7 log-likelihood units remain")
SPREAD = "lies in no one start state or interval"


def only(causes):
    assert len(causes) == 1, causes
    return causes[0]


@pytest.mark.parametrize("held_out", [False, True])
def test_where_the_test_does_not_reject_and_no_row_is_at_the_floor_there_is_no_cause(held_out):
    everything_else = [name for name in NAMES if name != "all"]
    assert name_causes(evidence(*everything_else, held_out=held_out, certificate=SHORT)) == ()
    assert name_causes(evidence(reference=None, certificate=SHORT)) == ()


def test_rows_at_the_floor_are_a_cause_whatever_the_test_says():
    for given in (
        evidence(at_floor=12),
        evidence("all", "bands", at_floor=12),
        evidence(at_floor=12, reference=None),
    ):
        words = only(name_causes(given))
        assert words.startswith("12 of 167 judged rows (7.2%) had a probability of 1e-12 or less")
        assert "the solver stopped on a plateau. Fit with solver='newton'" in words
        assert "training row" not in words


def test_held_out_rows_at_the_floor_are_a_plateau_only_if_training_rows_are_there_too():
    words = only(name_causes(evidence("all", "bands", held_out=True, at_floor=12, training_at_floor=1)))
    assert "and so had 1 training row. A maximum" in words
    assert "plateau" in words
    words = only(name_causes(evidence("all", "bands", held_out=True, training_at_floor=2)))
    assert words.startswith(
        "0 of 167 judged rows (0.0%) had a probability of 1e-12 or less for what happened, and so"
    )
    assert "plateau" in words
    assert name_causes(evidence(held_out=True, training_at_floor=2)) == ()
    first, second = name_causes(evidence("all", "bands", held_out=True, at_floor=12))
    assert "none of the training rows: the fit is surer than its rows can make it" in first
    assert "Its coefficients grew without limit (separation), or these rows lie far" in first
    assert "plateau" not in first
    certified = replace(SHORT, verdict=Verdict.CERTIFIED)
    words = only(name_causes(evidence(held_out=True, at_floor=12, certificate=certified)))
    assert "The maximum is certified, so that it is an extreme covariate, taken to the exponential" in words
    assert "ran away" not in words
    assert "do not grow with the interval" in second
    assert len(name_causes(evidence(held_out=True, at_floor=12))) == 1


def test_a_fit_without_a_certificate_is_the_cause_and_no_other_is_looked_for():
    words = only(name_causes(evidence("all", "bands", certificate=SHORT)))
    assert words.startswith("The fit is not certified: the solver stopped short of the maximum (about 0.7 log-")
    certified = replace(SHORT, verdict=Verdict.CERTIFIED)
    assert SPREAD in only(name_causes(evidence("all", certificate=certified)))
    assert len(name_causes(evidence("all", at_floor=3, certificate=SHORT))) == 2


def test_rows_outside_the_training_range_are_the_cause_where_the_others_fit():
    outside = Outside(
        np.repeat([True, False], [9, 158]), "age 20 to 70 against 20 to 50", cells((30, 12.0), (0, 0.0))
    )
    given = {"held_out": True, "outside": outside}
    words = only(name_causes(evidence("all", "outside", "bands", "moves", "training", **given)))
    assert words.startswith(
        "The misfit lies in 9 judged rows outside the training range (age 20 to 70 against 20 to"
    )
    assert "30 left their state, 12.0 expected. The other rows fit (p = 0.6)" in words
    every = evidence("all", "outside", held_out=True, outside=replace(outside, rows=np.ones(167, bool)))
    assert "12.0 expected. Predictions there are extrapolations" in only(name_causes(every))
    assert SPREAD in only(name_causes(evidence("all", **given)))
    assert SPREAD in only(name_causes(evidence("all", "outside", "outside aside", **given)))
    assert SPREAD in only(name_causes(evidence("all", "outside", held_out=True)))


def test_training_rows_that_do_not_fit_either_are_no_drift():
    many = cells((45, 30.0), (32, 20.0))
    words = only(name_causes(evidence("all", "moves", "training", held_out=True, cells=many)))
    assert words.startswith("The training rows do not fit either (p = 0.05)")
    assert SPREAD in only(name_causes(evidence("all", "training")))  # in-sample there are no others


@pytest.mark.parametrize(
    ("first", "second", "words", "faster"),
    [((45, 30.0), (32, 20.0), "too many", "faster"), ((20, 30.0), (8, 20.0), "too few", "slower")],
)
def test_a_drift_is_of_all_start_states_in_one_direction(first, second, words, faster):
    given = evidence("all", "moves", "start 1", held_out=True, cells=cells(first, second))
    sentence = only(name_causes(given))
    moved = first[0] + second[0]
    assert sentence.startswith(
        f"Of 167 judged rows {moved} left their state, 50.0 expected: {words} in every start"
    )
    assert f"(state 1: {first[0]} against 30.0, state 2: {second[0]} against 20.0)" in sentence
    assert f"the training rows fit (p = 0.6). Deterioration, or how it is rated, went {faster} than" in sentence


@pytest.mark.parametrize(
    "given",
    [
        evidence("all", "moves", held_out=True, cells=cells((45, 30.0), (18, 20.0))),  # both directions
        evidence("all", held_out=True, cells=cells((45, 30.0), (32, 20.0))),  # as simulated sets have it
        evidence("all", "moves", cells=cells((45, 30.0), (32, 20.0))),  # in-sample
        evidence("all", "moves", held_out=True, cells=cells((1, 0.5), (0, 0.5))),  # next to nothing expected
        evidence("all", "moves", held_out=True),  # none too many
    ],
)
def test_what_is_no_drift(given):
    assert SPREAD in only(name_causes(given))


def test_a_start_state_where_next_to_nothing_is_expected_has_no_say_in_a_drift():
    given = evidence("all", "moves", held_out=True, cells=cells((45, 30.0), (0, 0.5)))
    assert "too many in every start state (state 1: 45 against 30.0)" in only(name_causes(given))


def test_a_misfit_by_interval_is_time():
    words = only(name_causes(evidence("all", "bands", cells=cells((40, 50.0)))))
    assert words.startswith("Rows that left their state do not grow with the interval as they should (p = 0.05;")
    assert "2 to 4 years: 30 against 35.0, 4.1 to 8 years: 30 against 35.0" in words
    assert "Hazards change within an interval, as age advances" in words
    one = Bands(np.zeros(0, np.int64), np.array([5.0]), np.array([5.0]))
    whole = cells()
    joined = Cells(*(table.sum(axis=1, keepdims=True) for table in (whole.observed, whole.expected)))
    assert SPREAD in only(name_causes(evidence("all", "bands", bands=one, cells=joined)))
    assert "in 5 years," in only(name_causes(evidence("all", bands=one, cells=joined)))


def test_a_misfit_in_one_start_state_is_named_with_its_share():
    off = cells(second=(36, 20.0))
    words = only(name_causes(evidence("all", "start 2", cells=off)))
    assert words.startswith(
        "The misfit lies in start state 2, 100% of what is beyond chance: 36 of 60 rows left it,"
    )
    assert (
        "20.0 expected; farthest off, from state 2 to state 3 in 2 to 4 years, 18 rows against 10.0. Look at"
        in words
    )
    assert SPREAD in only(name_causes(evidence("all", cells=off)))


@pytest.mark.parametrize(("part", "named"), [(73.0, True), (72.0, False)])
def test_a_start_state_is_named_from_two_thirds_of_the_misfit_on(part, named):
    given = reference("all", "start 1", "start 2")  # 100, with a simulated median of 20: 80 beyond chance
    observed = dict(given.observed) | {"start 1": part + 0.4, "start 2": 40.0}
    words = only(name_causes(evidence(reference=replace(given, observed=observed))))
    assert ("The misfit lies in start state 1, 67% of what is beyond chance" in words) is named
    assert (SPREAD in words) is not named


def test_a_start_state_whose_own_part_is_as_simulated_is_not_named():
    given = reference("all")
    observed, wide = dict(given.observed) | {"start 1": 90.0}, np.repeat([20.0, 95.0], [15, 4])
    assert SPREAD in only(
        name_causes(
            evidence(
                reference=replace(given, observed=observed, simulated=dict(given.simulated) | {"start 1": wide})
            )
        )
    )


def test_where_there_is_only_one_start_state_it_is_not_named():
    observed, expected = np.zeros((2, 3, 2, 3))
    observed[0, :, :2], expected[0, :, :2] = 5, [[7, 3]] * 2
    assert SPREAD in only(name_causes(evidence("all", "start 1", cells=Cells(observed, expected))))


def test_a_misfit_nowhere_in_particular_is_the_form_or_a_covariate():
    words = only(name_causes(evidence("all", cells=cells((60, 30.0)))))
    assert words.startswith(
        "The misfit (p = 0.05) lies in no one start state or interval; farthest off, from state 1 to state 2"
    )
    assert (
        "30 rows against 15.0. A covariate acts in another form than the model has it, or one is missing" in words
    )


def jumping():
    """100 rows from state 1, of which 12 went to 3, 1.5 expected; all 60 rows from state 2 stayed, 41 expected."""
    off = cells(first=(42, 40.0), second=(0, 19.0))
    for table, jumped in ((off.observed, 12.0), (off.expected, 1.5)):
        table[0, :, 1] -= jumped / 2
        table[0, :, 2] += jumped / 2
    return off


def test_jumps_over_states_are_named_with_the_state_that_they_contradict():
    words = only(name_causes(evidence("all", "jumps", "start 1", cells=jumping())))
    assert words.startswith("Jumps over states: 12 of 100 went from state 1 to 3 over 2 to 8 years where 1.5 were")
    assert "too high (60 of 60 stayed in state 2 over 2 to 8 years where 41.0 were expected)" in words
    assert "errors of inspection or of typing, visits that were not recorded" in words
    assert "Jumps" not in only(name_causes(evidence("all", "start 1", cells=jumping())))
    drift = {"held_out": True, "cells": cells((45, 30.0), (30, 20.0))}
    assert "too many in every start state" in only(name_causes(evidence("all", "moves", "jumps", **drift)))


def test_the_largest_differences_are_those_that_a_matrix_shows():
    assert [(one.start, one.end) for one in find_contrasts(jumping(), BANDS)] == [(2, 2), (1, 3)]
    off = cells()
    off.observed[0, 0, :2] += (1.0, -1.0)
    (one,) = find_contrasts(off, BANDS)  # nothing is far off: the farthest start, end and band
    assert (one.start, one.end, one.years_low, one.years_high) == (1, 2, 2.0, 4.0)


def test_advice_fits_the_model():
    given = evidence("all")
    assert "try another scaling" in only(name_causes(given))
    words = only(name_causes(replace(given, covariates=())))
    assert "scaling" not in words
    assert "The model has no covariates" in words
    at_floor = evidence(held_out=True, at_floor=3, certificate=certificate(Verdict.CERTIFIED))
    assert "try a scaling" in only(name_causes(at_floor))
    assert "scaling" not in only(name_causes(replace(at_floor, covariates=())))
