"""Repairs without a record: probabilities by enumeration of all paths, estimates, and known repairs found again."""

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from benchmarks.simulated_repairs import draw_repairs, match

import rekka
from rekka.fleet import repairs
from rekka.fleet.repairs import (
    RepairModel,
    Steps,
    cut_large,
    explain_visits,
    find_better_years,
    fit_repairs,
    order_rows,
    take_steps,
)
from rekka.model import inputs
from rekka.model.elements import read_elements
from rekka.model.history_inputs import read_past_rows
from rekka.model.records import Records
from rekka.workflows.repairs import ERROR, REPAIR

K = 3
RATE, AFTER = 0.3, np.array([0.6, 0.4, 0.0])


def make_records(better: float = 0.1, worse: float = 0.07, improving: float = 0.2) -> Records:
    """Errors by one rating, the same for all states, and small improvements."""
    elements = read_elements(K, errors="adjacent-common", improvements="common")
    rest = 1.0 - better - worse
    logits = [np.log(better / rest), np.log(worse / rest), np.log(improving / (1.0 - improving)), 0.0, 0.0]
    return Records(elements, np.array(logits), np.zeros((5, 5)), 1, (0.0, 1.0), 0.0, None)


def make_steps(ratings: list[list[int]], counts: list[list[int]], seed: int = 4) -> Steps:
    """Histories with these ratings and numbers of steps between them, and matrices of decay drawn at random."""
    rng, rating, h, begins, ends, starts = np.random.default_rng(seed), [], [], [], [], []
    for own, count in zip(ratings, counts, strict=True):
        starts.append(len(rating))
        rating.append(own[0])
        h.append(0.0)
        for seen, steps in zip(own[1:], count, strict=True):
            begins.append(len(rating) - 1)
            rating += [-1] * (steps - 1) + [seen]
            h += rng.uniform(0.4, 1.0, steps).tolist()
            ends.append(len(rating) - 1)
    n = len(rating)
    decay = np.triu(rng.uniform(0.1, 1.0, (n, K, K))) + 2.0 * np.eye(K)
    decay /= decay.sum(axis=2, keepdims=True)
    decay[starts] = np.eye(K)
    first = rng.dirichlet(np.ones(K), len(starts))
    length = np.diff(starts, append=n)
    places = (np.array(one) for one in (starts, length))
    return Steps(decay, np.array(h), np.array(rating), *places, first, np.array(begins), np.array(ends),
                 np.arange(len(ends)))  # fmt: skip


def enumerate_paths(steps: Steps, records: Records, history: int) -> tuple[float, np.ndarray]:
    """Probability of a history's ratings, and of repair, improvement and error in each interval, path by path."""
    rho = records.improvements
    low, high = steps.starts[history], steps.starts[history] + steps.length[history]
    mine = [m for m in range(steps.ends.size) if low <= steps.begins[m] < high]
    total, found = 0.0, np.zeros((len(mine), 3))
    leap = np.array([[0, 0, 0], [1, 0, 0], [0.6, 0.4, 0]])
    ways = []  # of each step: probability by the state before, the one after and whether there was a repair
    for place in range(low + 1, high):
        table, h = {}, steps.h[place]
        for s, decayed, improves in product(range(K), range(K), (False, True)):
            chance = 1 - (1 - rho[decayed]) ** h
            p = steps.decay[place, s, decayed] * (chance if improves else 1 - chance)
            state = decayed - improves
            if state < 0:
                continue
            hit = 1 - np.exp(-RATE * h) if state > 0 else 0.0
            table[s, state, False] = table.get((s, state, False), 0.0) + p * (1 - hit)
            for to in range(state):
                table[s, to, True] = table.get((s, to, True), 0.0) + p * hit * leap[state, to]
        ways.append([(key, p) for key, p in table.items() if p > 0])
    for first, path in product(range(K), product(*ways)):
        p, state, places, repaired = steps.first[history, first], first, [first], [False]
        p *= records.errors[first, steps.rating[low]]
        for j, ((s, to, repair), chance) in enumerate(path, start=low + 1):
            if s != state:
                break
            p, state = p * chance, to
            p *= records.errors[to, steps.rating[j]] if steps.rating[j] >= 0 else 1.0
            places.append(to)
            repaired.append(repair)
        else:
            total += p
            for row, m in enumerate(mine):
                begin, end = steps.begins[m] - low, steps.ends[m] - low
                kind = 0 if any(repaired[begin + 1 : end + 1]) else 1 if places[end] < places[begin] else 2
                found[row, kind] += p
    return total, found / total


def test_probabilities_are_those_of_all_paths_enumerated():
    steps, records = make_steps([[2, 0, 0], [1, 2, 1]], [[2, 1], [1, 2]]), make_records()
    explained = np.stack(explain_visits(steps, RepairModel(records, RATE, AFTER, 0.0)), axis=1)
    slow = np.concatenate([enumerate_paths(steps, records, history)[1] for history in range(2)])
    assert explained == pytest.approx(slow, abs=1e-12)
    assert explained.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert explained[0, 0] > 0.5  # from the worst rating to the best, which then stays
    assert explained[1, 0] < 0.2


@pytest.fixture(scope="module")
def known():
    return draw_repairs()


@pytest.fixture(scope="module")
def found(known):
    return rekka.find_repairs(known.table)


@pytest.fixture(scope="module")
def fitted(known):
    """A model of histories of the cut rows, and the steps of the cut and of all rows."""
    rows = order_rows(rekka.read_transitions(known.table, rules={"upward": "keep_all"}).frame)
    cut = cut_large(rows)
    fits = rekka.fit_components(
        replace(rekka.read_transitions(known.table), frame=cut), errors="adjacent", improvements="common"
    )
    fit = fits.to_models().models[0].fit
    columns = inputs.Columns("state_1", "interval_years", ())

    def chain(some):
        names = some.select("bridge_id", "history")
        return take_steps(fit, read_past_rows(fit, inputs.as_frame(some), some["state_2"], columns, names, None))

    return fit, chain(cut), chain(rows)


def test_without_repairs_the_likelihood_is_that_of_the_model_of_histories(fitted):
    fit, cut, _ = fitted
    model = fit_repairs(fit, cut)
    assert model.rate < 0.01  # improvements by two ratings or more are not in these rows
    assert model.log_likelihood == pytest.approx(fit.inference.log_likelihood, abs=0.01)


def test_the_estimate_is_a_maximum(fitted, monkeypatch):
    fit, _, steps = fitted
    model = fit_repairs(fit, steps)
    assert model.rate == pytest.approx(0.05, abs=0.015)
    assert model.after[0] == pytest.approx(0.7, abs=0.12)
    assert model.after.sum() == pytest.approx(1.0)
    assert model.after[-1] == 0.0
    monkeypatch.setattr(repairs, "FIRST_RATE", 0.1)  # from another start to the same maximum
    again = fit_repairs(replace(fit, records=model.records), steps)
    assert again.log_likelihood == pytest.approx(model.log_likelihood, abs=0.01)
    assert again.rate == pytest.approx(model.rate, rel=1e-3)


def test_the_gradient_is_that_of_differences(fitted):
    fit, _, steps = fitted
    work = repairs._Likelihood(steps, fit.records, np.arange(fit.records.elements.parts["trend"].start))
    start = np.clip(work.start, -4.0, 4.0) + np.random.default_rng(1).normal(0.0, 0.2, work.start.size)
    _, gradient = work.evaluate(start)
    for place, unit in enumerate(1e-5 * np.eye(start.size)):
        difference = (work.evaluate(start + unit)[0] - work.evaluate(start - unit)[0]) / 2e-5
        assert gradient[place] == pytest.approx(difference, rel=1e-5, abs=1e-4)


def test_known_repairs_are_found_again(known, found):
    rows = match(found.table, known.truth)
    probable, errors = (rows.filter(verdict=verdict) for verdict in (REPAIR, ERROR))
    large = rows.filter(pl.col("improved_by") >= 2)
    assert len(rows) == len(found.table)
    assert probable["repaired"].mean() > 0.8
    assert (large.filter("repaired")["verdict"] == REPAIR).mean() > 0.95
    assert (rows.filter("repaired")["verdict"] == REPAIR).mean() > 0.6
    wrong = ~errors["repaired"] & ~errors["improved"]
    assert wrong.mean() > 0.5
    truth = rows["repaired"].sum(), (~rows["repaired"] & ~rows["improved"]).sum()
    assert rows["repair"].sum() == pytest.approx(truth[0], rel=0.2)
    assert rows["error"].sum() == pytest.approx(truth[1], rel=0.3)


def test_a_year_in_which_all_rate_better_is_found(known):
    assert find_better_years(rekka.read_transitions(known.table, rules={"upward": "keep_all"}).frame) == []
    letters = {"e": "d", "d": "c", "c": "b", "b": "a"}  # from 2010 on, everything but the best is rated one better
    later = pl.when(pl.col("date") >= "2010").then(pl.col("state").replace(letters)).otherwise("state")
    rows = rekka.read_transitions(known.table.with_columns(state=later), rules={"upward": "keep_all"}).frame
    (year,) = find_better_years(rows)
    own = rows.filter(pl.col("date_2").dt.year() == 2010)
    better = own.filter(pl.col("state_2") < pl.col("state_1"))
    assert (year.year, year.improved, year.pairs) == (2010, len(better), len(own))
    assert find_better_years(rows.drop("date_1", "date_2")) == []
    assert find_better_years(own) == []  # there is no other year


def test_counts_are_those_of_the_table(known, found):
    one = found.components[0]
    raw = rekka.read_transitions(known.table, rules={"upward": "keep_all"}).frame
    assert one.improvements == raw.filter(pl.col("state_2") < pl.col("state_1")).height
    assert sum(one.verdicts.values()) == one.improvements
    assert one.improvements == len(found.table)
    assert found.counts.row(0)[:2] == (one.case, one.improvements)
    table = found.table
    assert table["repair"].is_sorted(descending=True)
    assert table.select(pl.sum_horizontal("repair", "small_improvement", "error")).to_series().to_numpy() == (
        pytest.approx(1.0, abs=1e-12)
    )
    first = table.row(0, named=True)
    cells = [known.table.row(first[f"row_{end}"], named=True)["state"] for end in (1, 2)]
    assert cells == [first["rating_1"], first["rating_2"]]
