"""The benchmark of histories: what it draws is the model's, its forecast is right, and its figures follow from its fits."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.reproduction_words import find_marks

from benchmarks import histories_coverage as coverage
from benchmarks import simulated_histories as drawn
from rekka.model.probabilities import transition_probabilities
from rekka.simulation.elements import error_matrix

SETTINGS = {setting.name: setting for setting in drawn.list_settings()}
PLAIN = drawn.Setting("plain", 2.0, 3)


def test_settings_have_names_and_digests_of_their_own():
    assert len(SETTINGS) == 15
    assert len({setting.digest for setting in SETTINGS.values()}) == 15


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=str)
def test_rows_chain_and_a_number_draws_the_same_rows(setting):
    rows, last = drawn.draw_inventory(setting, 3, 20)
    assert drawn.draw_inventory(setting, 3, 20).rows.equals(rows)
    assert not drawn.draw_inventory(setting, 4, 20).rows.equals(rows)
    assert rows.height == 20 * (setting.visits - 1)
    follows = rows["bridge"].to_numpy()[1:] == rows["bridge"].to_numpy()[:-1]
    end, start = (rows[name].to_numpy() for name in ("state_2", "state_1"))
    np.testing.assert_array_equal(end[:-1][follows], start[1:][follows])
    for name in ("age", "date_1"):
        end = (rows[name] + rows["interval_years"]).to_numpy()
        np.testing.assert_allclose(end[:-1][follows], rows[name].to_numpy()[1:][follows])
    assert last == pytest.approx((rows["date_1"] + rows["interval_years"]).max())


def test_states_and_ratings_follow_the_model():
    """Ratings two years after state 1, over matrices; improvements and errors included."""
    setting = drawn.Setting("both", 2.0, 2, error=0.2, improvements=0.1, start=drawn.NEW)
    n = 20_000
    rng = np.random.default_rng(0)
    zero, ones = np.zeros(n), np.ones(n)
    state = drawn._advance(setting, np.zeros(n, np.int64), zero, zero, 2.0 * ones, ones, rng)
    rated = drawn._rate(setting, state, rng)
    lift = np.diag([1.0, *[0.9] * 4]) + np.diag([0.1] * 4, -1)
    exact = np.linalg.matrix_power(transition_probabilities(drawn.RATES, 1.0) @ lift, 2)[0] @ error_matrix(5, 0.2)
    assert stats.chisquare(np.bincount(rated, minlength=5), exact * n).pvalue > 1e-3


def test_hazards_grow_with_age_and_calendar_time():
    n, rng = 40_000, np.random.default_rng(1)
    setting = replace(PLAIN, ageing=0.1, trend=-0.05)
    age, date = np.full(n, drawn.AGE), np.full(n, drawn.END - 4.0)
    state = drawn._advance(setting, np.zeros(n, np.int64), age, date, np.full(n, 2.0), np.ones(n), rng)
    steps = [np.exp(0.1 * middle - 0.05 * (middle - 4.0)) for middle in (0.5, 1.5)]
    stays = np.exp(-drawn.RATES[0] * sum(steps))
    assert stats.binomtest(int((state == 0).sum()), n, stays).pvalue > 1e-3


@pytest.mark.parametrize(
    "setting",
    [
        SETTINGS["errors 5 %, frailty 0.5, from new"],
        drawn.Setting("all", 4.0, 2, error=0.3, frailty=1.0, improvements=0.1, ageing=0.02, trend=-0.02),
    ],
    ids=lambda setting: setting.name,
)
def test_the_forecast_is_that_of_drawn_bridges(setting):
    """Bridges are drawn for 50 years, and those rated 1 at all visits up to year 20 are kept."""
    n, rng = 60_000, np.random.default_rng(2)
    factor = rng.gamma(1 / setting.frailty, setting.frailty, n)
    state, still = np.zeros(n, np.int64), np.ones(n, dtype=bool)
    for year in range(drawn.ORIGIN + drawn.AHEAD):
        date = np.full(n, min(drawn.END - drawn.ORIGIN + year, drawn.END - 0.5))  # the trend ends at END
        state = drawn._advance(setting, state, np.full(n, float(year)), date, np.ones(n), factor, rng)
        if year < drawn.ORIGIN and (year + 1) % setting.gap == 0:
            still &= drawn._rate(setting, state, rng) == 0
    poor = int((state[still] >= drawn.POOR - 1).sum())
    forecast = drawn.forecast_poor(setting.world(drawn.END), setting.gap)
    assert still.sum() > 1000
    assert stats.binomtest(poor, int(still.sum()), forecast).pvalue > 1e-3


def test_a_forecast_without_elements_is_the_chains():
    expected = transition_probabilities(drawn.RATES, 30.0)[0, 3:].sum()
    assert drawn.forecast_poor(PLAIN.world(drawn.END), 2.0) == pytest.approx(expected, rel=1e-12)


def test_a_run_continues_where_the_last_one_ended(tmp_path, monkeypatch):
    setting, file = SETTINGS["improvements 3 %, gap 2"], tmp_path / "stored.jsonl"
    plain, calls = coverage.measure_inventory, []

    def measure(setting, number):
        calls.append(number)
        return plain(setting, number, 60)

    monkeypatch.setattr(coverage, "measure_inventory", measure)
    console = Console(quiet=True)
    coverage.run([setting], 2, console, file)
    with file.open("a") as stream:
        stream.write('{"setting": "improv')  # stopped here
    coverage.run([setting], 3, console, file)
    assert calls == [0, 1, 2]
    lines = file.read_text().splitlines()
    other = json.loads(lines[0]) | {"digest": 0, "number": 7}
    with file.open("a") as stream:
        stream.write(json.dumps(other) + "\n")
    stored = coverage.read_stored(file)
    assert sorted(stored[setting.name]) == [0, 1, 2]  # not 7, of a setting that has changed since
    (own, pairs), *more = coverage.collect(stored)
    assert not more
    assert own.names == [*pairs.names, "improvements"]
    assert len(own.certified) == 3
    assert set(own.cells) == set(own.names)
    text = coverage.describe([(own, pairs)])
    assert "improvements 3 %, gap 2 | 3 | 100%" in text
    page = tmp_path / "page.md"
    begin, end = find_marks(coverage.SECTION)
    page.write_text(f"before\n{begin}\nOUTDATED\n{end}\nafter\n")
    coverage.write_page([(own, pairs)], page)
    assert page.read_text().startswith(f"before\n{begin}\n\nSimulated")
    assert page.read_text().endswith(f"{end}\nafter\n")
    assert "OUTDATED" not in page.read_text()


def record(setting, number, shift, *, low=-0.2, certified=True, missing=None):
    """A fit whose estimates are off by ``shift``, with intervals from ``low`` to .2 around the truth."""
    truth = list(setting.truth(drawn.END).values())
    fit = {
        "certified": certified,
        "reasons": [],
        "forecast": 0.4 + shift,
        "estimate": [value + shift for value in truth],
        "ci_low": [None if place == missing else value + low for place, value in enumerate(truth)],
        "ci_high": [None if place == missing else value + 0.2 for place, value in enumerate(truth)],
    }
    return {"number": number, "last": drawn.END, "forecast": 0.4, coverage.HISTORIES: fit}


def test_figures_are_of_the_certified_fits():
    records = [record(PLAIN, n, 0.01 * (-1) ** n, low=-0.2 if n else 0.1) for n in range(20)]
    records += [record(PLAIN, 20, 5.0, certified=False), record(PLAIN, 21, 0.0, missing=2)]
    found = coverage.Coverage(PLAIN, coverage.HISTORIES, records)
    assert len(found.certified) == 21
    assert found.missing == 1
    assert found.share == pytest.approx((20 * 8 - 1) / (21 * 8 - 1))
    assert found.cells["intercept of state 1"] == (20, 21, True)
    assert found.cells["intercept of state 2"] == (19, 20, True)
    np.testing.assert_allclose(found.ratios, (10 * (np.exp(0.01) + np.exp(-0.01)) + 1) / 21)
    assert found.forecast[:2] == pytest.approx((0.4, 0.4))
    assert list(found.fails()) == []


def test_what_fails_is_said():
    records = [record(PLAIN, n, 0.1 + 0.001 * (-1) ** n, low=-0.2 if n < 15 else 0.1) for n in range(20)]
    fails = list(coverage.Coverage(PLAIN, coverage.HISTORIES, records).fails())
    assert fails[0] == "hazards 1.11 of the truth"
    assert fails[1] == "intervals cover 75.0%"
    assert fails[2] == "intercept of state 1 covered 15 of 20 times"
    assert fails[-1] == "forecast 0.500, truth 0.400"


def test_a_variance_of_0_has_no_interval_to_be_judged():
    assert np.isnan(SETTINGS["frailty 0, from new"].truth(drawn.END)["frailty: variance"])
    assert SETTINGS["frailty 0.5, from new"].truth(drawn.END)["frailty: variance"] == 0.5
