from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.core.numerics import generator
from rekka.data.partition import fold_bridges
from rekka.evaluation.resampling import Sample, draw_bootstrap, draw_split, fold_rows, folds

unhurried = settings(max_examples=50, deadline=None)

# Stored results of this code with numpy 2.x: where they change, every resample of every study changes.
STORED_DRAWS = {
    (): (133, 764, 810, 97, 644, 617),
    ("Pier", "bootstrap", 0): (399, 410, 975, 893, 612, 469),
    ("Pier", "guard", 7): (58, 129, 910, 339, 464, 714),
}
STORED_FOLDS = [4, 0, 3, 4, 2, 3, 2, 1, 0, 0, 1, 1]
NOBODY, ALONE = np.array([], dtype=np.str_), np.array(["a", "a", "a"])


@st.composite
def bridges(draw, least=2):
    sizes = draw(st.lists(st.integers(1, 5), min_size=least, max_size=25))
    names = np.repeat([f"B-{number:02d}" for number in range(len(sizes))], sizes)
    return names[np.random.default_rng(draw(st.integers(0, 2**32 - 1))).permutation(names.size)]


def transitions(n=200, seed=1):
    return rekka.simulate_transitions(n, seed=seed).with_columns(case=pl.lit("Pier"))


def sample(n=200):
    return Sample.of(transitions(n), ("age_at_inspection_1", "traffic_mean"), 5)


@unhurried
@given(bridges(), st.integers(2, 7), st.integers(0, 99))
def test_folds_hold_whole_bridges_in_equal_number(bridge, k, seed):
    fold = fold_rows(bridge, k, seed)
    of = {name: set(fold[bridge == name].tolist()) for name in set(bridge)}
    assert all(len(found) == 1 for found in of.values())
    counts = Counter(min(found) for found in of.values())
    assert len(counts) == min(k, len(of))
    assert max(counts.values()) - min(counts.values()) <= (1 if len(of) >= k else 0)


@unhurried
@given(bridges(), st.integers(2, 7), st.integers(0, 99))
def test_a_fold_does_not_see_the_order_of_rows(bridge, k, seed):
    order = np.random.default_rng(seed).permutation(bridge.size)
    np.testing.assert_array_equal(fold_rows(bridge[order], k, seed), fold_rows(bridge, k, seed)[order])


@unhurried
@given(bridges(least=3), st.integers(2, 3), st.integers(0, 99))
def test_folds_are_those_of_the_partition(bridge, k, seed):
    theirs = fold_bridges(pl.DataFrame({"bridge_id": bridge}), k, seed=seed)
    np.testing.assert_array_equal(fold_rows(bridge, k, seed), theirs.to_numpy())


@unhurried
@given(bridges(), st.integers(2, 7))
def test_every_row_is_inside_one_fold_and_outside_the_others(bridge, k):
    found = list(folds(bridge, k, 1))
    np.testing.assert_array_equal(np.sort(np.concatenate([inside for _, inside in found])), np.arange(bridge.size))
    for outside, inside in found:
        assert outside.size + inside.size == bridge.size
        assert not set(bridge[outside]) & set(bridge[inside])
        assert outside.size > 0
        assert inside.size > 0


def test_another_seed_makes_other_folds():
    bridge = np.array([f"B-{number}" for number in range(40)])
    assert (fold_rows(bridge, 5, 1) != fold_rows(bridge, 5, 2)).any()
    assert (fold_rows(bridge, 5, 1) != fold_rows(bridge, 5, "nested 1")).any()


def test_the_folds_are_the_same_on_every_machine():
    assert fold_rows(np.array([f"B-{number:02d}" for number in range(12)]), 5, 20260924).tolist() == STORED_FOLDS


@unhurried
@given(bridges(), st.integers(0, 2**32 - 1))
def test_a_bootstrap_draws_as_many_bridges_as_there_are_and_whole(bridge, seed):
    drawn, left = draw_bootstrap(bridge, np.random.default_rng(seed))
    size, times = Counter(bridge.tolist()), Counter(drawn.tolist())
    by_bridge = {name: {times[row] for row in np.flatnonzero(bridge == name).tolist()} for name in size}
    assert all(len(found) == 1 for found in by_bridge.values())  # each row of a bridge equally often
    assert sum(max(found) for found in by_bridge.values()) == len(size)
    assert not set(bridge[drawn]) & set(bridge[left])
    assert set(bridge[drawn]) | set(bridge[left]) == set(size)
    assert len(set(left.tolist())) == left.size
    assert left.size == sum(size[name] for name in set(bridge[left]))


def test_every_bridge_has_the_same_chance_to_be_drawn():
    """1 - (1 - 1/20)^20 = 64.15 %; over 4000 draws its error is 0.76 %."""
    bridge = np.repeat([f"B-{number}" for number in range(20)], np.arange(1, 21))
    rng = generator(1, "chance")
    seen = Counter(name for _ in range(4000) for name in set(bridge[draw_bootstrap(bridge, rng)[0]].tolist()))
    shares = np.array([seen[name] / 4000 for name in set(bridge.tolist())])
    np.testing.assert_allclose(shares, 1 - 0.95**20, atol=4 * 0.0076)


@unhurried
@given(bridges(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_a_split_takes_a_share_of_the_bridges_and_leaves_the_others(bridge, share, seed):
    inside, others = draw_split(bridge, share, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.r_[inside, others]), np.arange(bridge.size))
    assert not set(bridge[inside]) & set(bridge[others])
    count = len(set(bridge))
    assert len(set(bridge[inside])) == min(max(round(share * count), 1), count - 1)
    assert others.size > 0


def test_every_bridge_has_the_same_chance_to_be_inside():
    bridge = np.array([f"B-{number}" for number in range(10)])
    rng = generator(1, "split")
    seen = Counter(name for _ in range(4000) for name in bridge[draw_split(bridge, 0.3, rng)[0]].tolist())
    np.testing.assert_allclose([seen[name] / 4000 for name in bridge.tolist()], 0.3, atol=4 * 0.0073)


@pytest.mark.parametrize("draw", [draw_bootstrap, lambda bridge, rng: draw_split(bridge, 0.5, rng)])
def test_the_same_generator_draws_the_same_rows(draw):
    bridge = sample().bridge
    one, again, other = (draw(bridge, generator(seed, "Pier", "bootstrap", 3)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[0], again[0])
    np.testing.assert_array_equal(one[1], again[1])
    assert one[0].tolist() != other[0].tolist()


LABELS = st.lists(st.one_of(st.text(":ab1 ", max_size=4), st.integers(0, 20).map(str)), max_size=3).map(tuple)


@unhurried
@given(LABELS, LABELS)
def test_same_labels_same_draws_other_labels_other_draws(one, other):
    first, second = generator(1, *one).integers(2**62), generator(1, *other).integers(2**62)
    assert (first == second) == (one == other)
    assert generator(1, *one).integers(2**62) == first
    assert generator(2, *one).integers(2**62) != first


def test_a_number_may_be_of_any_kind():
    assert (
        generator(1, "a", np.int64(3)).random() == generator(1, "a", 3).random() == generator(1, "a", "3").random()
    )


@pytest.mark.parametrize("labels", STORED_DRAWS)
def test_first_draws_are_frozen(labels):
    assert tuple(generator(20260924, *labels).integers(0, 1000, 6).tolist()) == STORED_DRAWS[labels]


def test_a_sample_holds_what_the_frame_says():
    frame = transitions()
    ours = sample()
    assert len(ours) == 200
    np.testing.assert_array_equal(ours.rows.start, frame["state_1"].to_numpy() - 1)
    np.testing.assert_array_equal(ours.rows.end, frame["state_2"].to_numpy() - 1)
    np.testing.assert_array_equal(ours.rows.dt, frame["interval_years"].to_numpy())
    np.testing.assert_array_equal(ours.rows.weight, 1)
    np.testing.assert_array_equal(ours.x, frame.select("age_at_inspection_1", "traffic_mean").to_numpy())
    assert ours.bridge.tolist() == frame["bridge_id"].to_list()
    assert ours.rows.n_states == 5
    assert Sample.of(frame, (), 7).x.shape == (200, 0)
    assert Sample.of(frame, (), 7).rows.n_states == 7


def test_bridges_named_by_numbers_become_words():
    frame = transitions(6).with_columns(bridge_id=pl.Series([3, 3, 10, 2, 2, 10]))
    assert Sample.of(frame, (), 5).bridge.tolist() == ["3", "3", "10", "2", "2", "10"]


@pytest.mark.parametrize("index", [np.array([5, 0, 5, 199]), np.arange(200) % 7 == 3, np.array([], dtype=np.intp)])
def test_some_rows_or_some_of_them_several_times(index):
    ours = sample()
    some, plain = ours.take(index), np.arange(200)[index]
    assert len(some) == plain.size
    for name in ("start", "end", "dt", "weight"):
        np.testing.assert_array_equal(getattr(some.rows, name), getattr(ours.rows, name)[plain])
    np.testing.assert_array_equal(some.x, ours.x[plain])
    np.testing.assert_array_equal(some.bridge, ours.bridge[plain])
    assert (some.covariates, some.rows.n_states) == (ours.covariates, 5)  # K stays, whatever states are left


def test_one_bridge_cannot_be_told_from_itself():
    drawn, left = draw_bootstrap(ALONE, generator(1))
    assert (drawn.tolist(), left.tolist()) == ([0, 1, 2], [])
    inside, others = draw_split(ALONE, 0.9, generator(1))
    assert (inside.tolist(), others.tolist()) == ([], [0, 1, 2])
    ((outside, all_rows),) = folds(ALONE, 5, 1)
    assert (outside.tolist(), all_rows.tolist()) == ([], [0, 1, 2])


def test_no_rows_make_no_draws():
    assert [part.size for part in draw_bootstrap(NOBODY, generator(1))] == [0, 0]
    assert [part.size for part in draw_split(NOBODY, 0.5, generator(1))] == [0, 0]
    assert list(folds(NOBODY, 5, 1)) == []
    assert fold_rows(NOBODY, 5, 1).size == 0
    assert len(Sample.of(transitions().head(0), ("traffic_mean",), 5)) == 0


@pytest.mark.parametrize("number", range(5))
def test_what_was_drawn_can_be_taken(number):
    ours = sample()
    drawn, left = draw_bootstrap(ours.bridge, generator(1, number))
    assert len(ours.take(drawn)) == drawn.size
    assert set(ours.take(left).bridge) == set(ours.bridge) - set(ours.take(drawn).bridge)
