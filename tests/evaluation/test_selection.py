import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekka.core.errors import BadValues
from rekka.evaluation.selection import (
    ACCURACY_TOLERANCE,
    COUNT_TOLERANCE,
    SECONDS_TOLERANCE,
    Point,
    dominates,
    pareto_set,
    ties,
)

# On the grid all differences are far beyond the tolerances or none at all; near the tolerances they are of their size.
GRID = st.builds(Point, st.sampled_from([0.25, 0.5, 0.75]), st.sampled_from([0.1, 0.2, 0.4]))
STEPS = st.integers(-6, 6)
NEAR = st.builds(
    lambda a, c: Point(0.5 + 0.7 * a * ACCURACY_TOLERANCE, 1.0 + 0.7 * c * SECONDS_TOLERANCE), STEPS, STEPS
)
COUNTED = st.builds(lambda a, c: Point(0.5 + 0.7 * a * ACCURACY_TOLERANCE, float(c)), STEPS, st.integers(1, 4))
NAMES = [f"m{i}" for i in range(8)]


def tables(points):
    return st.lists(points, min_size=1, max_size=8).map(lambda some: dict(zip(NAMES, some, strict=False)))


def test_the_tolerances_are_the_papers():
    assert (ACCURACY_TOLERANCE, SECONDS_TOLERANCE, COUNT_TOLERANCE) == (1e-12, 1e-9, 0)


@pytest.mark.parametrize(
    ("b", "is_dominated"),
    [
        (Point(0.5, 2.0), True),  # slower
        (Point(0.4, 1.0), True),  # less accurate
        (Point(0.4, 2.0), True),
        (Point(0.5, 1.0), False),  # the same
        (Point(0.6, 2.0), False),  # a trade
        (Point(0.4, 0.5), False),
        (Point(0.6, 0.5), False),  # better
        (Point(0.5 + 5e-13, 2.0), True),  # more accurate by less than counts
        (Point(0.5 - 5e-13, 1.0), False),  # less accurate by less than counts
        (Point(0.4, 1.0 - 5e-10), True),  # faster by less than counts
        (Point(0.5, 1.0 + 5e-10), False),
    ],
)
def test_dominance(b, is_dominated):
    assert dominates(Point(0.5, 1.0), b) is is_dominated


def test_counts_have_no_tolerance():
    a, b = Point(0.5, 6), Point(0.5, 6 + 5e-10)
    assert not dominates(a, b)
    assert dominates(a, b, COUNT_TOLERANCE)
    assert ties(a, b)
    assert not ties(a, b, COUNT_TOLERANCE)


def test_all_that_tie_are_kept():
    same = dict.fromkeys(("max", "minmax", "zscore"), Point(0.6665, 6))
    assert pareto_set(same, COUNT_TOLERANCE) == ("max", "minmax", "zscore")
    assert pareto_set(same | {"boxcox": Point(0.6665, 7)}, COUNT_TOLERANCE) == ("max", "minmax", "zscore")


def test_a_trade_keeps_both():
    points = {"max": Point(0.3927, 0.257), "zscore": Point(0.3927, 0.105), "boxcox": Point(0.3964, 0.110)}
    assert pareto_set(points) == ("zscore", "boxcox")


def test_nothing_eligible_nothing_kept_and_one_alone_is_kept():
    assert pareto_set({}) == ()
    assert pareto_set({"zscore": Point(0.0, 1e9)}) == ("zscore",)


@pytest.mark.parametrize("point", [Point(math.nan, 1.0), Point(0.5, math.nan), Point(0.5, math.inf)])
def test_a_trial_without_figures_is_refused(point):
    with pytest.raises(
        BadValues, match=r"boxcox has accuracy .* cost .*; a trial without finite figures .* Leave it out"
    ):
        pareto_set({"zscore": Point(0.5, 1.0), "boxcox": point})


def test_the_order_given_is_kept_and_does_not_matter():
    points = {"a": Point(0.5, 1.0), "b": Point(0.6, 2.0), "c": Point(0.4, 3.0), "d": Point(0.5, 1.0)}
    for order in permutations(points):
        assert pareto_set({m: points[m] for m in order}) == tuple(m for m in order if m != "c")


@given(tables(GRID))
def test_who_is_not_kept_is_dominated_by_one_who_is(points):
    kept = pareto_set(points)
    for method, point in points.items():
        beaten = [m for m in kept if dominates(points[m], point)]
        assert bool(beaten) != (method in kept)


@given(
    st.one_of(
        tables(NEAR).map(lambda t: (t, SECONDS_TOLERANCE)), tables(COUNTED).map(lambda t: (t, COUNT_TOLERANCE))
    )
)
def test_dominance_runs_in_no_circle_so_something_is_kept(drawn):
    """Near the tolerances too: from whoever is not kept, a chain of dominations leads to one who is."""
    points, tolerance = drawn
    kept = pareto_set(points, tolerance)
    assert kept
    reached = set(kept)
    for _ in points:
        reached |= {m for m, p in points.items() if any(dominates(points[q], p, tolerance) for q in reached)}
    assert reached == set(points)


def test_within_the_tolerances_dominance_is_not_transitive():
    a, b, c = (Point(0.5 - 0.8e-12 * step, 3.0 - step) for step in range(3))
    assert dominates(b, a)
    assert dominates(c, b)
    assert not dominates(c, a)
    assert pareto_set({"a": a, "b": b, "c": c}) == ("c",)


@given(NEAR, NEAR)
def test_no_two_dominate_each_other(a, b):
    assert not (dominates(a, b) and dominates(b, a))
    assert not (ties(a, b) and (dominates(a, b) or dominates(b, a)))
