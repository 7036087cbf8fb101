"""Quantiles of counts: beside exact distributions, and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rekka.fleet.network import CountMoments, find_quantile, mix_normal, share_up_to, sum_bridges, sum_members

ONE = np.ones(1)


def sums_of(p) -> CountMoments:
    return sum_members(np.asarray(p, dtype=float)[None, :, None])


def exact(p) -> np.ndarray:
    """The probability of each count or fewer, by convolution."""
    found = np.ones(1)
    for one in p:
        found = np.convolve(found, [1.0 - one, one])
    return np.cumsum(found)


def quantile(share: float, p) -> int:
    return int(find_quantile(share, sums_of(p), ONE, len(p)).item())


@given(
    p=st.floats(1e-4, 0.9999),
    n=st.integers(1, 60),
    surely=st.integers(0, 20),
    never=st.integers(0, 20),
)
def test_exact_where_all_are_equal_or_certain(p, n, surely, never):
    members = [p] * n + [1.0] * surely + [0.0] * never
    count = np.arange(len(members) + 1.0)
    found = [share_up_to(np.array([[one]]), sums_of(members)).item() for one in count]
    assert np.allclose(found, stats.binom.cdf(count - surely, n, p), atol=1e-7)


def test_beside_the_convolution_of_unequal_members():
    rng = np.random.default_rng(5)
    wrong, furthest = 0, 0
    for _ in range(300):
        n = int(rng.integers(2, 60))
        p = rng.choice(
            [rng.beta(0.5, 10, n), rng.uniform(size=n), np.where(rng.random(n) < 0.3, 1.0, rng.beta(1, 9, n))]
        )
        below = exact(p)
        for share in (0.025, 0.1, 0.9, 0.975):
            off = abs(quantile(share, p) - int(np.argmax(below >= share - 1e-12)))
            wrong += off > 0
            furthest = max(furthest, off)
    assert furthest <= 1
    assert wrong <= 12  # of 1,200


def test_certain_counts_are_themselves():
    assert quantile(0.025, [1.0, 1.0, 0.0]) == quantile(0.975, [1.0, 1.0, 0.0]) == 2
    assert quantile(0.975, [0.0] * 4) == 0
    assert quantile(0.999, [1.0] * 4) == 4


def search(share: float, sums: CountMoments, weight: np.ndarray, most: int) -> np.ndarray:
    """The smallest number up to which a share lies, by looking at each from 0 on."""
    found = np.full(sums.mean.shape[1:], float(most))
    for number in range(most - 1, -1, -1):
        below = np.tensordot(weight, share_up_to(np.full(found.shape, float(number)), sums), axes=1)
        found[below >= share] = number
    return found


SHARES = (0.0, 1e-12, 1e-6, 0.005, 0.025, 0.3, 0.5, 0.975, 0.995, 1.0 - 1e-6, 1.0 - 1e-12)


def draw_mixture(rng: np.random.Generator, most: int) -> tuple[CountMoments, np.ndarray]:
    """Moments (B, T, Q) of counts of all kinds of members, at draws of a logit that they share, and weights."""
    nodes, times, quantities = rng.integers(1, 12), rng.integers(1, 4), rng.integers(1, 4)
    own = rng.normal(rng.uniform(-6, 4), rng.choice([0.0, 0.5, 3.0]), (times, most, quantities))
    moved = rng.normal(0.0, rng.choice([0.0, 0.1, 2.0]), (nodes, times, 1, quantities))
    q = 1.0 / (1.0 + np.exp(-own - moved))
    q[rng.random(q.shape) < rng.choice([0.0, 0.2, 1.0])] = 0.0
    q[rng.random(q.shape) < rng.choice([0.0, 0.2, 1.0], p=[0.5, 0.4, 0.1])] = 1.0
    sums = [sum_members(q[:, time]) for time in range(times)]
    names = ("mean", "variance", "third")
    stacked = CountMoments(*(np.stack([getattr(one, name) for one in sums], axis=1) for name in names))
    return stacked, rng.dirichlet(np.ones(nodes))


@pytest.mark.parametrize("most", [0, 1, 2, 7, 60, 400])
def test_a_quantile_is_the_number_that_a_search_from_0_on_finds(most):
    rng = np.random.default_rng(most)
    for _ in range(25):
        sums, weight = draw_mixture(rng, most)
        for share in (*SHARES, 1.0) if weight.size == 1 else SHARES:  # else rounding of their sum decides about 1
            found = find_quantile(share, sums, weight, most)
            np.testing.assert_array_equal(found, search(share, sums, weight, most))


def test_a_quantile_of_two_clusters_far_apart():
    """A normal distribution is no guide here."""
    sums = CountMoments(*(np.array([[one], [two]]) for one, two in ((3.0, 900.0), (2.0, 50.0), (1.0, -20.0))))
    for weight in (np.array([0.5, 0.5]), np.array([0.98, 0.02]), np.array([0.02, 0.98])):
        for share in SHARES:
            found = find_quantile(share, sums, weight, 1_000)
            np.testing.assert_array_equal(found, search(share, sums, weight, 1_000))


def test_a_quantile_of_a_certain_count_whose_variance_is_rounded_below_0():
    sums = CountMoments(*(np.array([[value]]) for value in (3.0, -1e-15, 0.0)))
    assert find_quantile(0.025, sums, ONE, 9).tolist() == find_quantile(0.975, sums, ONE, 9).tolist() == [3.0]


def test_a_quantile_of_what_is_not_known_is_the_most():
    sums = CountMoments(*(np.array([[np.nan, known]]) for known in (2.0, 1.0, 0.0)))
    assert find_quantile(0.5, sums, ONE, 9).tolist() == [9.0, search(0.5, sums, ONE, 9)[1]]


def test_a_mixture_beside_simulation():
    rng = np.random.default_rng(8)
    p = np.append(rng.beta(2, 20, 400), [1.0] * 30)
    sums = sums_of(p).each(lambda values: values[0])
    mixed, weight = mix_normal(sums, np.array([8.0]), np.array([30.0]), np.array([430.0]))
    ends = [find_quantile(share, mixed, weight, 430).item() for share in (0.025, 0.975)]
    room = (sums.mean - 30.0) * (430.0 - sums.mean) / 400.0
    logit = np.log((sums.mean - 30.0) / (430.0 - sums.mean)) + rng.standard_normal(20_000) * 8.0 / room
    share = 1.0 / (1.0 + np.exp(-logit))
    p_mean = (sums.mean.item() - 30.0) / 400.0
    moved = p[:400, None] / (p[:400, None] + (1 - p[:400, None]) * (p_mean / (1 - p_mean)) / (share / (1 - share)))
    drawn = 30 + (rng.random(moved.shape) < moved).sum(axis=0)
    theirs = np.quantile(drawn, [0.025, 0.975])
    assert ends == pytest.approx(theirs, abs=2)


def test_nothing_moves_a_mean_at_its_limit():
    sums = CountMoments(np.array([5.0, 0.0]), np.zeros(2), np.zeros(2))
    mixed, weight = mix_normal(sums, np.array([1.0, 1.0]), np.zeros(2), np.array([5.0, 3.0]))
    assert find_quantile(0.025, mixed, weight, 5).tolist() == [5.0, 0.0]
    assert find_quantile(0.975, mixed, weight, 5).tolist() == [5.0, 0.0]
    assert weight.sum() == pytest.approx(1.0)


def test_members_that_share_a_frailty_are_counted_together():
    rng = np.random.default_rng(4)
    bridge, nodes = np.array([1, 0, 1, 1]), 3
    weight = rng.dirichlet(np.ones(nodes), 2)[bridge]  # the same for members of one bridge
    own = rng.random((4, nodes))  # probability of each member given the node
    found = sum_bridges((weight * own)[None, :, :, None], weight[None], bridge)
    chance = np.ones(1)
    for b in (0, 1):
        members = own[bridge == b]
        here = np.zeros(len(members) + 1)
        for w, p in zip(weight[bridge == b][0], members.T, strict=True):
            one = np.ones(1)
            for q in p:
                one = np.convolve(one, [1 - q, q])
            here += w * one
        chance = np.convolve(chance, here)
    count = np.arange(chance.size)
    mean = chance @ count
    moments = [mean, chance @ (count - mean) ** 2, chance @ (count - mean) ** 3]
    np.testing.assert_allclose([found.mean[0, 0], found.variance[0, 0], found.third[0, 0]], moments, rtol=1e-12)
