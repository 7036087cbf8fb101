"""What if some members are repaired: the same numbers as an inventory edited by hand, and as brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from fleet_cases import draw_members, eligible_of, fit_model, forecast, make_model
from scipy.linalg import expm

import rekka
from rekka.core.language import LANGUAGES, load_words
from rekka.fleet import what_if
from rekka.fleet.eligibility import Eligible, InventoryOptions
from rekka.fleet.inventory import Fleet
from rekka.fleet.selection import list_ties, plan_worst, read_repairs, select_members
from rekka.fleet.what_if import WhatIf, WhatIfTotal, repair_members
from rekka.forecast.propagation import propagate
from rekka.forecast.uncertainty import draw_interval

AGE = "age_at_inspection_1"
YEARS = 8
BOTH = ("Deck", "Pier")  # of four and of three ratings
REACHED = "in this state or worse"


def draw_both(n: int = 30) -> pl.DataFrame:
    return pl.concat([draw_members(n, 1, 4, "Deck"), draw_members(n, 2, 3, "Pier")])


def find_both(frame: pl.DataFrame, intervals: str = "delta", **ask: Any) -> Eligible:
    models = [make_model("Deck"), make_model("Pier", fit_model(3))]
    options = InventoryOptions(years=YEARS, intervals=intervals, draws=120, **ask)
    return eligible_of(frame, *models, ask=options)


def repair(fleet: Fleet, rows: Any) -> WhatIf:
    return repair_members(fleet, read_repairs(fleet.eligible, rows))


def edit(eligible: Eligible, rows: list[dict[str, Any]], frame: pl.DataFrame) -> pl.DataFrame:
    """The inventory as a person would edit it: seen in year 0, in the rating after the repair."""
    base = eligible.base
    gaps = pl.concat([group.rows.select("bridge_id", "case", "gap_years") for group in eligible.groups])
    frame = frame.join(gaps, on=["bridge_id", "case"], maintain_order="left")
    for row in rows:
        own = pl.col("bridge_id") == row["bridge"]
        if "component" in row:
            own &= pl.col("case") == row["component"]
        age = row.get("age", pl.col(AGE) + pl.col("gap_years"))
        edited = {"state": row.get("state", 1), "date": base, AGE: age}
        frame = frame.with_columns(
            pl.when(own)
            .then(value if isinstance(value, pl.Expr) else pl.lit(value))
            .otherwise(pl.col(name))
            .alias(name)
            for name, value in edited.items()
        )
    return frame.drop("gap_years").cast({"state": pl.Int64})


def list_repairs(frame: pl.DataFrame, n: int = 7) -> list[dict[str, Any]]:
    """Some bridges whole, some components, some with edits."""
    bridges = frame["bridge_id"].unique().sort().to_list()[:n]
    rows: list[dict[str, Any]] = [{"bridge": name} for name in bridges]
    rows[1] |= {"component": "Deck", "age": 0}
    rows[2] |= {"component": "Pier"}
    state = frame.filter(bridge_id=bridges[3], case="Deck")["state"][0]
    rows[3] |= {"component": "Deck", "rating": str(min(state, 2)), "state": min(state, 2)}
    return rows


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "state"} for row in rows]


@pytest.mark.parametrize("intervals", ["delta", "normal", "none"])
@pytest.mark.parametrize("age", ["advances", "held"])
def test_totals_are_those_of_an_edited_inventory(intervals: str, age: str) -> None:
    frame = draw_both()
    eligible = find_both(frame, intervals, age=age)
    fleet, _ = forecast(eligible)
    rows = list_repairs(frame)
    found = repair(fleet, told(rows))
    again, _ = forecast(find_both(edit(eligible, rows, frame), intervals, age=age))
    shown = [name for name in WhatIfTotal.model_fields if name in fleet.network.columns]
    assert found.network.select(shown).equals(fleet.network.select(shown))
    new = again.network
    np.testing.assert_allclose(found.network["repaired"], new["expected"], rtol=1e-10, atol=1e-10)
    difference = (new["expected"] - fleet.network["expected"]).to_numpy()
    np.testing.assert_allclose(found.network["difference"], difference, atol=1e-9)
    for name in ("low", "high", "predicted_low", "predicted_high"):
        ours = found.network[f"repaired_{name}"].cast(pl.Float64).to_numpy()
        np.testing.assert_allclose(ours, new[name].cast(pl.Float64).to_numpy(), rtol=2e-6, atol=1e-8)
    keys = ["bridge_id", "case"]
    both = found.members.join(again.members, on=keys, suffix="_edited")
    assert both.height == found.members.height == 2 * 7 - 3
    for name in ("mean_years", "median_years", f"reached_{YEARS}", "years_90", "median_calendar_year"):
        np.testing.assert_allclose(both[f"repaired_{name}"], both[f"{name}_edited"], rtol=1e-9)
    before = found.members.join(fleet.members, on=keys, suffix="_forecast")
    for name in ("mean_years", "years_10", f"reached_{YEARS}"):
        np.testing.assert_allclose(before[name], before[f"{name}_forecast"], rtol=1e-9)
    assert ("mean_years_low" in found.members.columns) == (intervals != "none")
    if intervals != "none":
        for name in ("mean_years_low", "mean_years_high"):
            np.testing.assert_allclose(before[name], before[f"{name}_forecast"], rtol=1e-6)
            np.testing.assert_allclose(both[f"repaired_{name}"], both[f"{name}_edited"], rtol=1e-6)


def convolve(probabilities: np.ndarray) -> np.ndarray:
    """Distribution of a sum of independent members."""
    found = np.ones(1)
    for p in probabilities:
        found = np.convolve(found, [1.0 - p, p])
    return found


def test_the_difference_is_that_of_the_same_draws() -> None:
    frame = draw_members(30)
    eligible = eligible_of(frame, ask=InventoryOptions(years=YEARS, intervals="normal", draws=150))
    fleet, _ = forecast(eligible)
    (group,) = eligible.groups
    bridges = frame.filter(pl.col("state") > 2)["bridge_id"].sort().to_list()[:6]
    found = repair(fleet, pl.DataFrame({"bridge": bridges}))
    places = [group.rows["bridge_id"].to_list().index(name) for name in bridges]
    every = group.every_set
    x = group.ageing.at(group.x, group.gap)[places]
    *_, before = propagate(every, group.start, range(YEARS + 1), group.gap)
    new = type(every)(group.fit, x, every.coefficients, group.ageing)
    *_, after = propagate(new, np.zeros(6, dtype=np.int64), range(YEARS + 1))
    goal = group.threshold - 1
    p, q = before[:, places, goal:].sum(axis=2), after[:, :, goal:].sum(axis=2)
    row = found.total.row(YEARS, named=True)
    np.testing.assert_allclose(row["difference"], (q[0] - p[0]).sum(), atol=1e-12)
    ends = draw_interval((q - p)[1:].sum(axis=1), 0.95)
    np.testing.assert_allclose([row["difference_low"], row["difference_high"]], ends, atol=1e-12)
    counts = np.mean(
        [np.convolve(convolve(new), convolve(1.0 - old)) for old, new in zip(p[1:], q[1:], strict=True)], axis=0
    )
    below = counts.cumsum()
    exact = [int((below < share).sum()) - 6 for share in (0.025, 0.975)]
    assert [row["difference_predicted_low"], row["difference_predicted_high"]] == exact
    avoided = found.avoided(YEARS)
    assert avoided["avoided"] == -row["difference"]
    assert avoided["avoided_low"] == -row["difference_high"]
    assert avoided["avoided_predicted_high"] == -row["difference_predicted_low"]
    delta, _ = forecast(eligible_of(frame, ask=InventoryOptions(years=YEARS)))
    other = repair(delta, pl.DataFrame({"bridge": bridges})).total.row(YEARS, named=True)
    width = row["difference_high"] - row["difference_low"]
    assert abs((other["difference_high"] - other["difference_low"]) / width - 1.0) < 0.25


@pytest.mark.parametrize("intervals", ["delta", "normal"])
def test_nobody_and_everybody(intervals: str) -> None:
    frame = draw_both(15)
    fleet, _ = forecast(find_both(frame, intervals))
    nobody = repair(fleet, [])
    assert nobody.members.is_empty()
    for end in ("", "_low", "_high", "_predicted_low", "_predicted_high"):
        assert (nobody.network[f"difference{end}"] == 0.0).all()
        own = end.removeprefix("_") or "expected"
        np.testing.assert_allclose(nobody.network[f"repaired{end}"], fleet.network[own], rtol=1e-9, atol=1e-12)
    everybody = repair(fleet, frame.select(pl.col("bridge_id").unique()))
    begin = everybody.total.row(0, named=True)
    assert everybody.members.height == begin["members"] == 30
    for name in ("repaired", "repaired_low", "repaired_predicted_high"):
        assert begin[name] == pytest.approx(0.0, abs=1e-9), name
    assert begin["difference"] == pytest.approx(-begin["expected"])
    one = everybody.network.filter(year=YEARS, scope="network")
    parts = everybody.network.filter(year=YEARS, scope="case", what=one["what"][0])
    for state in (1, 4):
        sums = parts.filter(state=state)["difference"].sum()
        assert one.filter(state=state, what=one["what"][0])["difference"][0] == pytest.approx(sums)
    assert one.filter(state=4)["difference_high"][0] <= 0.0
    for lang in LANGUAGES:
        assert f"{everybody.total['date'][YEARS].year}" in everybody.headline(lang)


def test_bands_of_cases_with_fewer_ratings_are_not_moved() -> None:
    """A component without the fourth rating adds nothing to the change of that rating, nor to its interval."""
    frame = draw_both(15)
    fleet, _ = forecast(find_both(frame, "normal"))
    bridge = frame["bridge_id"].unique().sort()[0]
    alone = repair(fleet, [{"bridge": bridge, "component": "Deck"}]).network
    both = repair(fleet, [{"bridge": bridge}]).network
    names = [name for name in both.columns if name.startswith("difference")]
    where = {"scope": "network", "state": 4, "what": "in this state"}
    for name in names:
        np.testing.assert_allclose(both.filter(**where)[name], alone.filter(**where)[name], atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"bridge": "B-00900"}], "row 0: there is no bridge 'B-00900'"),
        ([{"bridge": "B-0001"}], "Did you mean B-000"),
        ([{"bridge": "B-00001", "component": "Decks"}], "has no component 'Decks'.* Did you mean Deck"),
        ([{"bridge": "B-00001", "member": "07"}], "has no member '07'"),
        ([{"bridge": "B-00001"}, {"bridge": "B-00001"}], "rows 0 and 1 both name B-00001, Deck, the same twice"),
        (
            [{"bridge": "B-00001"}, {"bridge": "B-00001", "component": "Deck", "age": 0}],
            "both name B-00001, Deck, and do not agree",
        ),
        ([{"bridge": "B-00001", "rating": "good"}], "row 0: rating is 'good'.*The ratings are 1, 2"),
        ([{"bridge": "B-00001", "age": -3}], "age is '-3' in row 0; a number 0 or more"),
        ([{"bridge": "B-00001", "age": "new"}], "age is 'new' in row 0"),
        ([{"bridge": "B-00001", "frailty": 0}], "frailty is '0' in row 0; a number above 0"),
        ([{"bridge": "B-00001", "frailty": 2}], "row 0 gives a frailty, and the model of Deck has none"),
        ([{"bridge": "B-00001"}, {"bridge": None, "age": 2}], "the bridge is blank in row 1"),
        ([{"bridge": "B-00001", "ratng": "1"}], "column ratng.* Did you mean rating"),
        ([{"bridge": "B-00001", "year": 2030}], "column year"),
        ([{"girder": "B-00001"}], "bridge is not in"),
    ],
)
def test_what_a_table_of_repairs_may_not_say(rows: list[dict[str, Any]], words: str) -> None:
    eligible = eligible_of(draw_members(12))
    with pytest.raises(rekka.InputError, match=words):
        read_repairs(eligible, rows)


def test_a_repair_makes_nothing_worse_and_members_must_be_known() -> None:
    frame = draw_members(12).with_columns(
        state=pl.when(pl.col("bridge_id") == "B-00003").then(2).otherwise("state"),
        bridge_length=pl.when(pl.col("bridge_id") == "B-00004").then(None).otherwise("bridge_length"),
    )
    eligible = eligible_of(frame)
    with pytest.raises(
        rekka.InputError, match="row 0: B-00003 is rated 3 after the repair, which is worse than 2"
    ):
        read_repairs(eligible, [{"bridge": "B-00003", "rating": 3}])
    with pytest.raises(rekka.InputError, match=r"row 0: B-00004 cannot be forecast .bridge_length is missing"):
        read_repairs(eligible, [{"bridge": "B-00004"}])
    both = pl.concat([frame, draw_members(12, 3, 4, "Pier")])
    found = read_repairs(find_both(both), [{"bridge": "B-00004"}])
    assert found.by_case.keys() == {"Pier"}
    assert "1 member of bridges named there cannot be forecast" in found.notes[0]


def test_an_operator_may_not_take_an_age() -> None:
    fit = fit_model(3, "boxcox")
    frame = draw_members(12, states=3).with_columns(pl.col(AGE) + 30.0)
    eligible = eligible_of(frame, make_model("Deck", fit), ask=InventoryOptions(years=YEARS, age="fixed"))
    with pytest.raises(rekka.InputError, match=r"row 0: B-0.* cannot be forecast after the repair .boxcox cannot"):
        read_repairs(eligible, [{"bridge": eligible.groups[0].rows["bridge_id"][0], "age": 0}])


def test_the_worst_are_those_there_and_then_the_soonest() -> None:
    frame = draw_both()
    fleet, _ = forecast(find_both(frame))
    members, groups = fleet.members, fleet.eligible.groups
    worst = select_members(members, groups, worst=40)
    found = worst.rename({"bridge": "bridge_id", "component": "case"}).join(
        members, on=["bridge_id", "case"], maintain_order="left"
    )
    there = int(members["there"].sum())
    assert found["there"].to_list() == [True] * there + [False] * (40 - there)
    assert found.head(there)["state"].is_sorted(descending=True)
    assert found.tail(40 - there)["mean_years"].is_sorted()
    assert found.tail(40 - there)["rank"].to_list() == list(range(1, 41 - there))
    poor = select_members(members, groups, component="Deck", rating="3")
    assert poor.height == members.filter(pl.col("case") == "Deck", pl.col("state") >= 3).height
    assert select_members(members, groups, worst=0).is_empty()
    assert repair(fleet, worst).members["bridge_id"].to_list() == worst["bridge"].to_list()
    with pytest.raises(rekka.InputError, match="Did you mean Deck"):
        select_members(members, groups, component="Decks")
    with pytest.raises(rekka.InputError, match="worst is -1"):
        select_members(members, groups, worst=-1)


def test_equals_are_taken_by_name_and_a_note_says_so() -> None:
    fleet, _ = forecast(find_both(draw_both()))
    members = fleet.members
    worst = int(members.filter("there", pl.col("case") == "Deck", pl.col("state") == 4).height)
    assert worst > 2
    assert select_members(members, fleet.eligible.groups, worst=2)["bridge"].is_sorted()
    note = f"Taken by name: 2 of the {worst} equally urgent members rated 4"
    assert list_ties(members, 2) == (note,)
    assert plan_worst(members, fleet.eligible, 2).notes == (note,)
    assert list_ties(members.drop("label", strict=False), 2) == (note,)  # of models without labels
    words = load_words("ja")
    assert words.reword(note) == f"緊急度の等しい{worst}部材（健全度4）のうち2部材を名称の順に選んだ"
    for number in (0, worst, len(members), len(members) + 1):
        assert list_ties(members, number) == ()


def test_rows_of_the_members_table_will_do() -> None:
    fleet, _ = forecast(find_both(draw_both()))
    rows = fleet.members.filter(pl.col("there")).head(5)
    found = repair(fleet, rows)
    assert found.members["bridge_id"].to_list() == rows["bridge_id"].to_list()
    assert (found.members["repaired_state"] == 1).all()


@pytest.fixture(scope="module")
def inspections() -> pl.DataFrame:
    drawn = rekka.simulate_inventory(40, preset="plain", seed=3, frailty=0.6, error=0.1)
    visits = drawn.inspections.filter(pl.col("case") == "Bearing")
    names = {"bridge_id": "bridge", "case": "component", "state_text": "rating"}
    panel = rekka.read_panel(visits, join=[{"file": drawn.inventory}])
    columns = ["bridge_id", "case", "member", "date", "state_text", "completed"]
    return panel.visits.select(name for name in columns if name in panel.columns).collect().rename(names)


@pytest.fixture(scope="module")
def histories(inspections: pl.DataFrame) -> Any:
    options = {"errors": "adjacent-common", "frailty": "gamma", "covariates": [AGE]}
    return rekka.fit_components(inspections, **options)


def step_by_hand(fit: Any, x: np.ndarray, eps: float, state: int, years: int) -> np.ndarray:
    """Probabilities of one member with a known state and frailty, by the matrix exponential."""
    p = np.eye(fit.n_states)[state]
    for year in range(years):
        aged = x + np.array([year + 0.5])
        theta = eps * np.exp(fit.design(aged[None])[0] @ fit.coefficients.T)
        p = p @ expm(np.diag(-np.append(theta, 0.0)) + np.diag(theta, 1))
    return p


def test_histories_keep_the_frailty_of_the_bridge(histories: Any, inspections: pl.DataFrame) -> None:
    """Every number again, by the matrix exponential and by convolution for each bridge and node."""
    found = rekka.forecast_inventory(histories, inspections, years=6, member_intervals=False)
    (group,) = found.fleet.eligible.groups
    fit, goal = group.fit, group.threshold - 1
    assert fit.records.frailty_variance > 0.05
    names = group.rows["bridge_id"].to_list()
    by_bridge = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    plan = [
        {"bridge": by_bridge[0], "member": group.rows.filter(bridge_id=by_bridge[0])["member"][0]},
        {"bridge": by_bridge[1], "age": 3},
        {"bridge": by_bridge[2], "frailty": 1.5, "rating": group.ratings.labels[0]},
    ]
    changed = found.repair(plan)
    edits = {(row["bridge"], row.get("member")): row for row in plan}
    start = group.propagator.start_in(group.start)[0].reshape(len(names), -1, fit.n_states)
    eps = group.propagator._eps[0]
    lanes = list(propagate(group.propagator, group.start, range(7), group.gap, by_lane=True))[-1]
    before = lanes[0].reshape(len(names), -1, fit.n_states)[:, :, goal:].sum(axis=2)
    weight = start.sum(axis=2)
    old = before / weight
    new, repaired = old.copy(), np.zeros(len(names), dtype=bool)
    x = group.ageing.at(group.x, group.gap)
    for place, (bridge, member) in enumerate(group.rows.select("bridge_id", "member").rows()):
        row = edits.get((bridge, member), edits.get((bridge, None)))
        if row is None:
            continue
        repaired[place] = True
        own = np.array([row["age"]]) if "age" in row else x[place]
        new[place] = [step_by_hand(fit, own, row.get("frailty", e), 0, 6)[goal:].sum() for e in eps]
    assert repaired.sum() == changed.members.height >= 4
    last = changed.total.row(6, named=True)
    np.testing.assert_allclose(last["repaired"], (weight * new).sum(), rtol=1e-9)
    np.testing.assert_allclose(last["difference"], (weight * (new - old)).sum(), atol=1e-9)
    reached = (weight * new).sum(axis=1)[repaired]
    by_name = {
        row[:2]: row[2] for row in changed.members.select("bridge_id", "member", "repaired_reached_6").rows()
    }
    ours = [by_name[name] for name in group.rows.filter(pl.Series(repaired)).select("bridge_id", "member").rows()]
    np.testing.assert_allclose(ours, reached, rtol=1e-9)
    total, change = np.ones(1), np.ones(1)
    for bridge in dict.fromkeys(names):
        own = np.array([name == bridge for name in names])
        share = weight[own][0]
        np.testing.assert_allclose(weight[own], np.broadcast_to(share, weight[own].shape), rtol=1e-9)
        total = np.convolve(total, sum(w * convolve(each) for w, each in zip(share, new[own].T, strict=True)))
        some = own & repaired
        both = np.concatenate([new[some], 1.0 - old[some]])
        change = np.convolve(change, sum(w * convolve(each) for w, each in zip(share, both.T, strict=True)))
    begin = what_if._start_members(group, read_repairs(found.fleet.eligible, plan).by_case[group.case])
    swap = what_if.swap_members(
        begin.propagator.take_sets(slice(0, 1)), begin.start, 6, begin.gap, group.threshold, begin.old, at_once=1
    )
    whole = found.fleet.sums[group.case].sums - swap.before + swap.after
    for sums, counts in ((whole, total), (swap.change, change)):
        number = np.arange(counts.size)
        mean = counts @ number
        np.testing.assert_allclose(sums.mean[0, 6, -1], mean, rtol=1e-9)
        np.testing.assert_allclose(sums.variance[0, 6, -1], counts @ (number - mean) ** 2, rtol=1e-7)
        np.testing.assert_allclose(sums.third[0, 6, -1], counts @ (number - mean) ** 3, rtol=1e-6)
    assert last["difference_low"] <= last["difference"] <= last["difference_high"] < 0.0
    assert last["difference_predicted_low"] <= last["difference"] <= last["difference_predicted_high"]
    assert last["repaired_low"] < last["repaired"] < last["repaired_high"]
    nobody = found.repair([]).network
    for end in ("low", "high", "predicted_low", "predicted_high"):
        np.testing.assert_allclose(nobody[f"repaired_{end}"], found.network[end], rtol=1e-9, atol=1e-9)
