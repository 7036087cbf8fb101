"""The likelihood of histories against slow independent ones: matrices, quadrature, complex steps, 50 digits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from history_cases import REFERENCE, as_chain, needs_reference
from numpy.typing import NDArray
from scipy import integrate, stats

from rekka.core.errors import InputError
from rekka.model import elements as element_module
from rekka.model import histories as engine
from rekka.model.clock import RUNNING, Clock
from rekka.model.elements import Elements, count_nodes, place_nodes, read_elements
from rekka.model.family import EXPONENTIAL
from rekka.model.histories import Chain, HistoryLikelihood, chain_rows, find_impossible, measure_ages
from rekka.model.inputs import weigh_dates
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.records import Records, filter_visits

Array = NDArray[np.float64]


def build(rows: Chain, elements: Elements, clock: Clock, nodes: int = 1, threads: int = 1) -> HistoryLikelihood:
    """The likelihood with covariates as they are."""
    found = chain_rows(rows, elements, clock)
    W = np.column_stack([np.ones(found.h.size), found.x])
    return HistoryLikelihood.build(found, elements, W, EXPONENTIAL, nodes, threads)


def draw_visits(rng: np.random.Generator, K: int, bridges: int = 6) -> tuple[Any, ...]:
    """A few histories of visits with ratings that go up and down: history, bridge, year, rating, age."""
    history, bridge, years, state, age = [], [], [], [], []
    number = 0
    for b in range(bridges):
        for _ in range(1 + b % 2):
            at, old, rating = 2000.0 + rng.uniform(0, 3), rng.uniform(1, 20), int(rng.integers(1, K))
            for _ in range(int(rng.integers(1, 5))):
                history.append(number)
                bridge.append(b)
                years.append(at)
                state.append(rating)
                age.append(old)
                gap = rng.uniform(0.4, 3.6)
                at, old = at + gap, old + gap
                rating = int(np.clip(rating + rng.integers(-1, 2), 1, K))
            number += 1
    return history, bridge, years, state, np.array(age)[:, None]


def slow_exponential(Q: Any) -> Any:
    """exp(Q) of matrices (n, K, K), real or complex: Taylor's series of Q / 2^8, squared."""
    Q = Q / 2.0**8
    term = total = np.broadcast_to(np.eye(Q.shape[-1]), Q.shape)
    for m in range(1, 16):
        term = term @ Q / m
        total = total + term
    for _ in range(8):
        total = total @ total
    return total


def slow_bridge(visits: list[Any], eps: Any, p: dict[str, Any], last: float) -> Any:
    """Probabilities (n,) of a bridge's visits given its frailty (n,), by matrices, in real or complex numbers."""
    eps = np.atleast_1d(eps)
    K, total = len(p["E"]), 1.0
    for history in visits:
        alpha = None
        for v, (year, rating, age) in enumerate(history):
            moves = []
            if v == 0 and p["first"] == "new":
                alpha = np.eye(K)[:1]
                moves = [(year, -age, age, age)]
            elif v == 0:
                logit = p["c"] + p["g"] * np.arange(K) * (age - p["age"][0]) / p["age"][1]
                alpha = (np.exp(logit) / np.exp(logit).sum())[None]
            else:
                before = history[v - 1]
                moves = [(before[0], 0.0, year - before[0], before[2])]
            for origin, shift, length, old in moves:
                steps = max(1, math.ceil(length - 1e-6)) if p["fine"] else 1
                for j in range(steps):
                    h = length / steps
                    later = {"running": (j + 0.5) * h, "middle": length / 2, "start": 0.0}[p["clock"]] + shift
                    time = min(max(origin + later, p["earliest"]), last) - last
                    one = np.exp(p["b"][:, 0] + p["b"][:, 1] * (old + later) + p["trend"] * time / 10)
                    theta = eps[:, None] * one
                    Q = np.zeros((eps.size, K, K), dtype=theta.dtype)
                    Q[:, np.arange(K - 1), np.arange(K - 1)] = -theta
                    Q[:, np.arange(K - 1), np.arange(1, K)] = theta
                    alpha = (alpha[:, None, :] @ slow_exponential(Q * h))[:, 0]
                    if p["rho"] is not None:
                        r = 1 - (1 - p["rho"]) ** h
                        M = np.diag(1 - r).astype(r.dtype)
                        M[np.arange(1, K), np.arange(K - 1)] = r[1:]
                        alpha = alpha @ M
            alpha = alpha * p["E"][:, rating - 1]
        total = total * alpha.sum(axis=-1)
    return total


def unpack(parameters: Any, elements: Elements, clock: str, earliest: float, age: Any) -> dict[str, Any]:
    """The same parameters as the engine's, read independently."""
    K = elements.n_states
    free, rest = K - 1, list(parameters[2 * (K - 1) :])
    E = np.eye(K, dtype=parameters.dtype)
    for s in range(K):
        own = [o for o in (s - 1, s + 1) if 0 <= o < K]
        w = [np.exp(rest.pop(0)) for _ in own]
        for o, one in zip(own, w, strict=True):
            E[s, o] = one / (1 + sum(w))
        E[s, s] = 1 / (1 + sum(w))
    phi = rest.pop(0) if elements.frailty else 0.0
    rho = None
    if elements.improvements:
        logit = np.array([rest.pop(0) for _ in range(free)])
        rho = np.concatenate([[0.0], 1 / (1 + np.exp(-logit))])
    trend = np.array([rest.pop(0) for _ in range(free)]) if elements.trend else np.zeros(free)
    given = elements.free_first
    c = np.concatenate([[0.0], [rest.pop(0) for _ in range(free)]]) if given else None
    g = rest.pop(0) if given else None
    assert not rest
    return {
        "b": parameters[: 2 * free].reshape(free, 2), "E": E, "phi": phi, "rho": rho, "trend": trend, "c": c, "g": g,
        "first": elements.first, "clock": clock, "fine": clock == RUNNING or rho is not None, "earliest": earliest,
        "age": age,
    }  # fmt: skip


def arrange(visits: tuple[Any, ...]) -> list[list[Any]]:
    """Visits by bridge and history."""
    history, bridge, years, state, age = visits
    found: dict[int, dict[int, list[Any]]] = {}
    for h, b, *one in zip(history, bridge, years, state, age[:, 0], strict=True):
        found.setdefault(b, {}).setdefault(h, []).append(tuple(one))
    return [list(part.values()) for part in found.values()]


def slow_value(
    parameters: Array, visits: tuple[Any, ...], elements: Elements, clock: str, half_life: float | None = None
) -> Any:
    """The log-likelihood by quadrature with 400 nodes, written independently; complex parameters are allowed.

    With a half-life it is the weighted sum of the differences that each visit makes to its bridge's.
    """
    by_bridge = arrange(visits)
    first_age = [h[0][2] for part in by_bridge for h in part]
    p = unpack(parameters, elements, clock, min(visits[2]), (np.mean(first_age), np.std(first_age)))
    last, total = max(visits[2]), 0.0
    u, w = np.polynomial.legendre.leggauss(400)

    def find(part: list[Any]) -> Any:
        if not elements.frailty:
            return np.log(slow_bridge(part, 1.0, p, last)[0])
        a, at = 1 / p["phi"], -14 + 17.5 * (u + 1) / 2
        density = np.exp(a * at - a * np.exp(at))  # normalised below
        f = slow_bridge(part, np.exp(at), p, last)
        return np.log((w * density * f).sum() / (w * density).sum())

    for part in by_bridge:
        if half_life is None:
            total = total + find(part)
            continue
        before = 0.0
        for h, history in enumerate(part):
            for v in range(1, len(history) + 1):
                now = find([*part[:h], history[:v]])
                total = total + 2 ** ((history[v - 1][0] - last) / half_life) * (now - before)
                before = now
    return total


CASES = [
    ("middle", {}),
    (RUNNING, {"improvements": "each", "trend": "each"}),
    ("start", {"trend": "each", "first": "new"}),
    (RUNNING, {"improvements": "each", "first": "new"}),
]


def make_case(clock: str, options: dict[str, Any], K: int = 4) -> tuple[Any, ...]:
    rng = np.random.default_rng(4)
    visits = draw_visits(rng, K, bridges=3)
    if options.get("first") == "new":
        visits = (visits[0], visits[0], *visits[2:])  # each history is a bridge of its own
    elements = read_elements(K, errors="adjacent", aged=True, **options)
    rows = as_chain(visits[0], visits[2], visits[3], visits[4], visits[1], dated=True)
    clocked = Clock(clock, ("age",), (0,))
    coefficients = np.column_stack([rng.normal(-2, 0.4, K - 1), rng.normal(0.02, 0.01, K - 1)])
    extra = rng.normal(-1.5, 0.5, elements.size)
    if elements.frailty:
        extra[elements.parts["frailty"]] = 0.6
    return visits, elements, build(rows, elements, clocked, 128), np.concatenate([coefficients.ravel(), extra])


@pytest.mark.parametrize(("clock", "options"), CASES)
def test_value_and_gradient_are_those_of_matrices_and_complex_steps(clock: str, options: dict[str, Any]) -> None:
    visits, elements, likelihood, parameters = make_case(clock, options)
    found = likelihood.evaluate(parameters)
    assert found.value == pytest.approx(slow_value(parameters, visits, elements, clock), rel=1e-12)
    assert likelihood.evaluate(parameters, False).value == found.value
    gradient = found.scores.sum(axis=0)
    for q in range(parameters.size):
        moved = parameters.astype(complex)
        moved[q] += 1e-30j
        slope = slow_value(moved, visits, elements, clock).imag / 1e-30
        assert gradient[q] == pytest.approx(slope, rel=1e-9, abs=1e-10), elements.names


@pytest.mark.parametrize(("clock", "options"), [*CASES, ("middle", {"frailty": "gamma"})])
def test_weighted_visits_are_those_of_prefixes_of_histories(clock: str, options: dict[str, Any]) -> None:
    visits, elements, plain, parameters = make_case(clock, options, K=3 if "frailty" in options else 4)
    weighted = replace(plain, share=weigh_dates(plain.histories.when, 2.5))
    assert weighted.share is not None
    assert weighted.share.max() == 1.0 > weighted.share.min()
    found = weighted.evaluate(parameters)
    assert found.value == pytest.approx(slow_value(parameters, visits, elements, clock, 2.5), abs=1e-9)
    assert weighted.evaluate(parameters, False).value == found.value
    for q in range(parameters.size):
        moved = parameters.astype(complex)
        moved[q] += 1e-30j
        slope = slow_value(moved, visits, elements, clock, 2.5).imag / 1e-30
        assert found.scores.sum(axis=0)[q] == pytest.approx(slope, rel=1e-8, abs=1e-8)
    even, none = replace(plain, share=np.ones(plain.histories.when.size)), plain.evaluate(parameters)
    np.testing.assert_array_equal(even.evaluate(parameters).scores, none.scores)


def test_frailty_is_integrated_and_differentiated() -> None:
    visits, elements, likelihood, parameters = make_case("middle", {"frailty": "gamma"}, K=3)
    found = likelihood.evaluate(parameters)
    place = likelihood.n_coefficients + elements.parts["frailty"].start
    assert found.value == pytest.approx(slow_value(parameters, visits, elements, "middle"), abs=1e-9)
    for q in (0, 1, place - 1, place, place + 1):
        moved = parameters.astype(complex)
        moved[q] += 1e-30j
        slope = slow_value(moved, visits, elements, "middle").imag / 1e-30
        assert found.scores.sum(axis=0)[q] == pytest.approx(slope, rel=1e-8, abs=1e-8)
    # one bridge by adaptive quadrature over the gamma density itself
    by_bridge = arrange(visits)
    ages = [h[0][2] for part in by_bridge for h in part]
    p = unpack(parameters, elements, "middle", min(visits[2]), (np.mean(ages), np.std(ages)))
    total = 0.0
    for part in by_bridge:

        def weighted(eps: float, part: Any = part) -> float:
            density = stats.gamma.pdf(eps, 1 / p["phi"], scale=p["phi"])
            return float(density * slow_bridge(part, eps, p, max(visits[2]))[0])

        pieces = [integrate.quad(weighted, a, b, epsabs=1e-14, epsrel=1e-11)[0] for a, b in ((0, 1), (1, 30))]
        total += math.log(sum(pieces))
    assert found.value == pytest.approx(total, abs=1e-7)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("clock", "options"),
    [
        *CASES,
        ("middle", {"frailty": "gamma"}),
        (RUNNING, {"frailty": "gamma", "improvements": "each", "first": "new"}),
    ],
)
def test_ratings_followed_by_steps_have_the_kernels_probabilities(clock: str, options: dict[str, Any]) -> None:
    _, elements, likelihood, parameters = make_case(clock, options)
    found = likelihood.evaluate(parameters)
    seen, extra = likelihood.histories, parameters[likelihood.n_coefficients :]
    nodes = likelihood.nodes if elements.frailty else 1
    records = Records(
        elements, extra, np.zeros((extra.size, extra.size)), nodes, measure_ages(seen.age), seen.last, None
    )
    beta = parameters[: likelihood.n_coefficients].reshape(elements.n_states - 1, -1)
    slope = 0.0 if records.trend is None else seen.time[:, None] * records.trend
    p = filter_visits(seen, records, np.exp(likelihood.W @ beta.T + slope), EXPONENTIAL).ratings
    np.testing.assert_allclose(np.log(p[np.arange(len(p)), seen.observed]), found.by_visit, atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_a_variance_near_0_is_continued_in_a_straight_line() -> None:
    _, elements, likelihood, parameters = make_case("middle", {"frailty": "gamma"}, K=3)
    place = likelihood.n_coefficients + elements.parts["frailty"].start
    values = []
    for phi in (0.0, 5e-7, 1e-6, 2e-6):
        parameters[place] = phi
        values.append(likelihood.evaluate(parameters))
    without = likelihood.with_nodes(1).evaluate(parameters)
    assert values[0].value == pytest.approx(without.value, abs=1e-9)
    slope = values[0].scores[:, place].sum()
    assert values[1].value - values[0].value == pytest.approx(5e-7 * slope, abs=1e-12)
    assert values[3].value - values[0].value == pytest.approx(2e-6 * slope, abs=1e-10)


def test_all_elements_off_is_the_pair_model_however_fast_the_hazards() -> None:
    rng = np.random.default_rng(1)
    K, n = 5, 300
    start = rng.integers(0, K, n)
    end = np.minimum(start + rng.integers(0, 3, n), K - 1)
    dt, x = rng.uniform(0.5, 6, n), rng.normal(size=(n, 1))
    for level in (np.full(4, -2.0), np.array([1.0, -6.0, 2.0, 0.5]), np.log([3e3, 0.01, 5.0, 2e3])):
        beta = np.column_stack([level, rng.normal(0, 0.3, 4)])
        design = np.column_stack([np.ones(n), x])
        all_rows = Likelihood.build(Rows(start, end, dt, np.ones(n), K), design, 1)
        some = np.flatnonzero(all_rows.by_row(beta)[0] > -600)  # no history has a probability below e^-745
        each = np.arange(some.size)
        assert some.size > 200
        wanted = Likelihood.build(all_rows.rows.take(some), design[some], 1).evaluate(beta, 1)
        rows = Chain(start[some], end[some], dt[some], x[some], each, each)
        found = build(rows, read_elements(K), Clock("start")).evaluate(beta.ravel())
        scale = 1.0 + np.abs(wanted.gradient).max()
        assert found.value == pytest.approx(wanted.value, rel=1e-11, abs=1e-10)
        np.testing.assert_allclose(found.scores.sum(axis=0), wanted.gradient, atol=1e-10 * scale)


def test_a_stiff_step_has_all_its_digits() -> None:
    mpmath.mp.dps = 50
    theta, h, K = [2.0, 1e4, 3e-3, 40.0], 1.0, 5
    nodes = [mpmath.mpf(one) for one in theta] + [mpmath.mpf(0)]
    for j in range(K):
        rows = Chain(*(np.array([v]) for v in (0, j, h)), np.zeros((1, 0)), *(np.zeros(1, np.int64),) * 2)
        found = build(rows, read_elements(K), Clock()).evaluate(np.log(theta))
        product = mpmath.mpf(1)
        for k in range(j):
            product *= nodes[k]
        total = sum(mpmath.exp(-nodes[k] * h) / _differences(nodes, k, j) for k in range(j + 1))
        assert found.value == pytest.approx(float(mpmath.log(product * total)), rel=1e-12, abs=1e-13)


def _differences(nodes: list[Any], k: int, j: int) -> Any:
    found = mpmath.mpf(1)
    for m in range(j + 1):
        if m != k:
            found *= nodes[m] - nodes[k]
    return found


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BLOCK_VISITS", 5)
    visits = draw_visits(np.random.default_rng(2), 4, bridges=20)
    elements = read_elements(4, errors="adjacent", frailty="gamma", improvements="common")
    rows = as_chain(visits[0], visits[2], visits[3], visits[4], visits[1])
    parameters = np.full(2 * 3 + elements.size, -1.0)
    parameters[6 + elements.parts["frailty"].start] = 0.3
    one, three = (build(rows, elements, Clock(), 32, t).evaluate(parameters) for t in (1, 3))
    assert one.value == three.value
    assert np.array_equal(one.scores, three.scores)


def test_nodes_have_the_moments_of_the_gamma_and_their_derivatives() -> None:
    for phi in (1e-6, 0.05, 0.5, 2.0):
        count = count_nodes(phi)
        nodes = place_nodes(phi, count)
        eps, weight = np.exp(nodes.log_eps), np.exp(nodes.log_weight)
        assert count >= 32
        assert weight @ eps == pytest.approx(1.0, abs=2e-7)
        assert weight @ (eps - 1) ** 2 == pytest.approx(phi, rel=1e-5)
        step = 1e-5 * phi
        more, less = place_nodes(phi + step, count), place_nodes(phi - step, count)
        assert np.array_equal(nodes.log_eps, more.log_eps)
        slope = (more.log_weight - less.log_weight) / (2 * step)
        np.testing.assert_allclose(nodes.d_log_weight, slope, rtol=1e-5, atol=1e-6 * np.abs(slope).max())
        np.testing.assert_allclose(eps[nodes.stride :], 2 * eps[: -nodes.stride], rtol=1e-14)


def test_the_least_node_stands_for_all_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, elements, likelihood, parameters = make_case("middle", {"frailty": "gamma"}, K=3)
    place = likelihood.n_coefficients + elements.parts["frailty"].start
    parameters[place] = 2.5
    found = likelihood.with_nodes(count_nodes(2.5)).evaluate(parameters)
    monkeypatch.setattr(element_module, "LOWEST", -1e3)
    wanted = likelihood.with_nodes(800).evaluate(parameters)
    assert count_nodes(2.5) > 200
    assert found.posterior.shape[1] < 100
    assert found.value == pytest.approx(wanted.value, abs=1e-8)
    np.testing.assert_allclose(found.scores.sum(axis=0), wanted.scores.sum(axis=0), atol=1e-6)


@needs_reference
@pytest.mark.parametrize(
    ("first", "wanted"), [((1, 0, 0, 0), 7364.25555066), ((0.4, 0.3, 0.2, 0.1), 8934.64847688)]
)
def test_fixed_values_of_msm(first: tuple[float, ...], wanted: float) -> None:
    data = np.genfromtxt(REFERENCE / "misclassified.csv", delimiter=",", names=True)
    pattern = np.eye(4)
    pattern[0, 1] = pattern[1, 0] = pattern[1, 2] = pattern[2, 1] = 1
    elements = read_elements(4, errors=pattern, first=first)
    names = [name.strip('"') for name in data.dtype.names]
    columns = {name: data[own] for name, own in zip(names, data.dtype.names, strict=True)}
    rows = as_chain(columns["id"], columns["time"], columns["state"].astype(int))
    likelihood = build(rows, elements, Clock())
    edge, middle = math.log(0.1 / 0.9), math.log(0.1 / 0.8)
    parameters = np.array([math.log(0.3)] * 3 + [edge, middle, middle, edge])
    assert -2 * likelihood.evaluate(parameters).value == pytest.approx(wanted, abs=1e-7)


@needs_reference
def test_fixed_value_of_ontario() -> None:
    subject, year, state = np.loadtxt(REFERENCE / "ontario_cut.csv", delimiter=",", skiprows=1, dtype=int).T
    elements = read_elements(5, errors="adjacent", first=[0.2] * 5)
    likelihood = build(as_chain(subject, year, state), elements, Clock())
    assert likelihood.histories.observed.size == 16969
    logit = [math.log(0.05 / (0.95 if s in (0, 4) else 0.9)) for s, _ in elements.errors_at]
    value = likelihood.evaluate(np.array([math.log(0.1)] * 4 + logit), False).value
    assert -2 * value == pytest.approx(41050.725299332, abs=1e-8)


def broken(**changes: Any) -> Chain:
    rows = Chain(
        np.array([0, 1, 0]), np.array([1, 1, 0]), np.array([2.0, 2.0, 1.0]), np.array([[5.0], [7.0], [3.0]]),
        np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([2000.0, 2002.0, 2001.0]),
    )  # fmt: skip
    return rows._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"start": np.array([0, 2, 0])}, "row 1: the history's row before ends in state 2"),
        ({"end": np.array([1, -1, 0])}, "y is missing in row 1, whose history has other rows"),
        ({"bridge": np.array([0, 1, 1])}, "row 1: the group differs"),
        ({"date": np.array([2000.0, 2004.0, 2001.0])}, "row 1: the date of the first visit is 2 years after"),
        ({"x": np.array([[5.0], [4.0], [3.0]])}, "row 1: the age is below"),
        ({"dt": np.array([2.0, 0.0, 1.0])}, "not above 0 in row 1"),
    ],
)
def test_broken_chains_are_refused_with_their_row(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        chain_rows(broken(**changes), read_elements(3), Clock("middle", ("age",), (0,)))


def test_new_needs_an_age_and_one_history() -> None:
    new = read_elements(3, errors="adjacent", first="new")
    with pytest.raises(InputError, match="no covariate here is an age"):
        chain_rows(broken(), new, Clock())
    one, aged = np.zeros(3, np.int64), Clock("middle", ("age",), (0,))
    later = np.array([[5.0], [7.0], [20.0]])
    with pytest.raises(InputError, match="row 2: a second history of the same bridge"):
        chain_rows(broken(bridge=one, x=later), new, aged)
    meanwhile = np.array([[5.0], [7.0], [6.0]])  # another member of the bridge, seen at the same time
    assert chain_rows(broken(bridge=one, x=meanwhile), new, aged).n_bridges == 1


def test_what_a_pattern_forbids_is_found() -> None:
    pattern = np.eye(3)
    pattern[0, 1] = 1
    rows = broken(start=np.array([2, 1, 0]))
    found = chain_rows(rows, read_elements(3), Clock())
    assert found.row[find_impossible(found, read_elements(3))].tolist() == [0]
    assert found.row[find_impossible(found, read_elements(3, errors=pattern))].tolist() == [0]
    assert not find_impossible(found, read_elements(3, errors="adjacent")).size
    assert not find_impossible(found, read_elements(3, improvements="common")).size
