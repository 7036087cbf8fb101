import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rekka
from rekka.core.errors import BadOption
from rekka.data.partition import PAPER_SEED, partition_paper
from rekka.simulation import inventory as module
from rekka.simulation.inventory import PAPER_COUNTS, TABLES, simulate_inventory, write_inventory
from rekka.simulation.stock import CASES, FIRST_STATES, LETTERS, TERMS, advance, draw_bridges, true_coefficients

MEMBER = ("bridge_id", "case", "member")
COVARIATES = TERMS[1:]
FULL_WIDTH = {chr(0xFF21 + k) for k in range(5)}


def pair(tables):
    """Consecutive visits of a member as transitions, by the conventions that truth['formula'] states."""

    def months(date):
        return 12 * date.dt.year() + (date.dt.month() - 1) + (date.dt.day() - 1) / date.dt.days_in_month()

    seen = ["visit", "date", "state", "traffic"]
    numbers = dict(zip(LETTERS, range(1, 6), strict=True))
    return (
        tables.inspections.join(tables.traffic, on=["bridge_id", "visit"])
        .join(tables.inventory, on="bridge_id")
        .with_columns(pl.col("state").replace_strict(numbers, return_dtype=pl.Int64))
        .sort(*MEMBER, "visit")
        .with_columns(pl.col(seen).shift(-1).over(MEMBER).name.suffix("_2"))
        .drop_nulls("visit_2")
        .rename({name: f"{name}_1" for name in seen})
        .with_columns(
            interval_years=(months(pl.col("date_2")) - months(pl.col("date_1"))) / 12,
            age_at_inspection_1=(months(pl.col("date_1")) - 12 * pl.col("completion_year")) / 12,
            bridge_area=pl.col("bridge_length") * pl.col("bridge_width"),
            traffic_mean=(pl.col("traffic_1") + pl.col("traffic_2")) / 2,
        )
        .with_columns(pl.col("bridge_length", "bridge_area", "traffic_mean").log().name.map("log({})".format))
    )


@pytest.fixture(scope="module")
def paper():
    return simulate_inventory()


@pytest.fixture(scope="module")
def plain():
    return simulate_inventory(3000, preset="plain", seed=5)


@pytest.fixture(scope="module")
def dirty():
    return simulate_inventory(2000, preset="plain", seed=3, dirt=0.03)


@pytest.mark.parametrize("seed", [PAPER_SEED, 0, 7, 123])
def test_paper_has_the_papers_counts_for_any_seed(seed):
    parts = partition_paper(pair(simulate_inventory(seed=seed)))
    assert {case: counts for case, *counts in parts.counts().rows()} == {
        case: list(counts) for case, counts in PAPER_COUNTS.items()
    }


def test_paper_splits_over_all_bridges_and_every_state_occurs(paper):
    parts = partition_paper(pair(paper))
    held_out = [part["bridge_id"].n_unique() for part in (parts.validation, parts.golden)]
    assert held_out == [120, 480]
    for case in PAPER_COUNTS:
        train = parts.train.filter(case=case)
        assert train["state_1"].n_unique() == train["state_2"].n_unique() == 5
        assert (train["state_2"] == 5).sum() < 0.45 * len(train)
    gone = paper.inspections.group_by(MEMBER).agg(pl.col("visit").max()).filter(visit=4)
    assert len(gone) == sum(round(0.06 * train) for train, _, _ in PAPER_COUNTS.values())
    apart = partition_paper(pair(paper), keep_training_bridges_out=True)
    assert len(apart.golden) > 500


def test_the_tables_are_an_agencys(paper):
    assert paper.inventory.schema == {
        "bridge_id": pl.String,
        "completion_year": pl.Int64,
        "bridge_length": pl.Float64,
        "bridge_width": pl.Float64,
    }
    assert paper.inspections.schema == {
        "bridge_id": pl.String,
        "case": pl.String,
        "member": pl.String,
        "visit": pl.Int64,
        "date": pl.Date,
        "state": pl.String,
    }
    assert paper.traffic.schema == {"bridge_id": pl.String, "visit": pl.Int64, "traffic": pl.Int64}
    assert paper.inventory["bridge_id"].to_list() == [f"B-{b:05d}" for b in range(1, 601)]
    assert not paper.inspections.select(*MEMBER, "visit").is_duplicated().any()
    assert tuple(PAPER_COUNTS) == CASES
    assert set(paper.inspections["state"]) == set(LETTERS)


def test_the_same_seed_draws_the_same_tables(paper):
    again, other = simulate_inventory(), simulate_inventory(seed=1)
    for name in TABLES:
        assert getattr(again, name).equals(getattr(paper, name))
        assert not getattr(other, name).equals(getattr(paper, name))
    assert again.truth == paper.truth


@pytest.mark.parametrize("preset", ["paper", "plain"])
def test_without_dirt_no_state_improves_and_no_bridge_is_seen_before_completion(preset, request):
    rows = pair(request.getfixturevalue(preset))
    assert (rows["state_2"] >= rows["state_1"]).all()
    assert (rows["visit_2"] == rows["visit_1"] + 1).all()
    assert rows["age_at_inspection_1"].min() > 0
    assert rows["interval_years"].is_between(4.2, 5.8).all()
    days = (
        request.getfixturevalue(preset).inspections.group_by("bridge_id", "visit").agg(pl.col("date").n_unique())
    )
    assert (days["date"] == 1).all()


def test_plain_has_every_round_since_completion(plain):
    rounds = plain.inspections.group_by(MEMBER).agg(pl.col("visit").min().alias("first"), pl.len())
    assert (rounds["first"] + rounds["len"] == 6).all()
    young = plain.inventory.filter(pl.col("completion_year") > 2005)["bridge_id"]
    assert len(young) > 0
    assert rounds.filter(pl.col("bridge_id").is_in(young.implode()))["first"].min() > 1
    assert set(plain.inspections["bridge_id"]) == set(plain.inventory["bridge_id"])
    counted = (
        plain.inspections.select("bridge_id", "visit").unique().join(plain.traffic, on=["bridge_id", "visit"])
    )
    assert len(counted) == len(plain.traffic)


def test_age_is_skewed_to_the_left_and_box_cox_inflates_it(paper):
    train = partition_paper(pair(paper)).train
    for case in PAPER_COUNTS:
        age = train.filter(case=case)["age_at_inspection_1"].to_numpy()
        transformed, exponent = stats.boxcox(age)
        assert stats.skew(age) < -0.5
        assert exponent > 2
        assert transformed.max() > 2e3


def test_covariates_are_heavy_tailed_correlated_and_orders_of_magnitude_apart(plain):
    rows = pair(plain).filter(visit_1=3).unique("bridge_id")
    length, area, traffic = (rows[name] for name in ("bridge_length", "bridge_area", "traffic_mean"))
    assert 5 * length.median() < area.median() < traffic.median() / 5
    assert min(column.skew() for column in (length, area, traffic)) > 2
    logs = np.corrcoef(rows.select(COVARIATES[1:]).to_numpy().T)
    assert logs[0, 1] > 0.8
    assert logs[0, 2] > 0.2
    assert logs[1, 2] > 0.2
    change = (rows["traffic_2"] / rows["traffic_1"]).log()
    assert 0 < change.std() < 0.15


def test_first_states_follow_the_stated_distribution(plain):
    first = plain.inspections.sort("visit").unique(MEMBER, keep="first", maintain_order=True)
    observed = [(first["state"] == letter).sum() for letter in LETTERS]
    assert stats.chisquare(observed, np.array(FIRST_STATES) * len(first)).pvalue > 1e-3


def test_states_follow_the_exact_probabilities(plain):
    """Ends of every case and start state against expected counts from the hazards that truth states."""
    rows = pair(plain)
    for case in CASES:
        for start in range(1, 5):
            some = rows.filter(case=case, state_1=start)
            beta = np.array([[plain.truth["hazards"][case][str(k)][t] for t in TERMS] for k in range(1, 5)])
            theta = np.exp(beta[:, 0] + some.select(COVARIATES).to_numpy() @ beta[:, 1:].T)
            exact = rekka.transition_probabilities(theta, some["interval_years"].to_numpy())
            expected = exact[:, start - 1, start - 1 :].sum(axis=0)
            observed = np.bincount(some["state_2"].to_numpy() - start, minlength=6 - start)
            keep = expected >= 5
            statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
            assert stats.chi2.sf(statistic, max(1, keep.sum() - 1)) > 1e-4, (case, start)


def test_advance_draws_from_the_kernels_probabilities():
    theta, n = np.array([0.3, 0.1, 0.5]), 40_000
    end = advance(np.zeros(n, np.int64), np.tile(theta, (n, 1)), np.full(n, 4.0), np.random.default_rng(0))
    expected = rekka.transition_probabilities(theta, 4.0)[0] * n
    assert stats.chisquare(np.bincount(end, minlength=4), expected).pvalue > 1e-3


def test_a_fit_recovers_the_truth(plain):
    rows = pair(plain).filter(case="Main girder")
    model = rekka.ExponentialHazardMarkovModel(scaling="zscore", covariates=list(COVARIATES), clock="start")
    model.fit(rows, rows["state_2"])
    table = model.summary()
    truth = true_coefficients()[CASES.index("Main girder")].ravel()
    assert len(rows) > 20_000
    assert np.abs((table["estimate"].to_numpy() - truth) / table["se"].to_numpy()).max() < 4


def test_truth_is_plain_and_complete(plain):
    truth = json.loads(json.dumps(plain.truth))
    assert truth == plain.truth
    assert list(truth["hazards"]) == list(CASES)
    table = [[list(state.values()) for state in case.values()] for case in truth["hazards"].values()]
    assert np.array_equal(table, true_coefficients())
    assert list(truth["hazards"]["Pier"]["4"]) == list(TERMS)
    assert (truth["preset"], truth["bridges"], truth["seed"], truth["dirt"]) == ("plain", 3000, 5, {})


@pytest.mark.parametrize("dirt", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_written_blocks_equal_the_tables_in_memory(tmp_path, monkeypatch, kind, dirt):
    monkeypatch.setattr(module, "BLOCK_BRIDGES", 150)
    options = {"preset": "plain", "seed": 11, "dirt": dirt}
    ours, steps = simulate_inventory(400, **options), []
    files = write_inventory(
        tmp_path / "new" / "here", 400, format=kind, on_progress=lambda *s: steps.append(s), **options
    )
    assert [file.name for file in files] == [*(f"{name}.{kind}" for name in TABLES), "truth.json"]
    assert sorted(files) == sorted((tmp_path / "new" / "here").iterdir())
    assert steps == [(150, 400), (300, 400), (400, 400)]
    for name, file in zip(TABLES, files, strict=False):
        table = getattr(ours, name)
        theirs = pl.read_csv(file, schema=table.schema) if kind == "csv" else pl.read_parquet(file)
        assert theirs.equals(table), name
    assert json.loads(files[-1].read_text(encoding="utf-8")) == ours.truth
    again = write_inventory(tmp_path / "again", 400, format=kind, **options)
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in files]


def test_a_block_has_its_own_generator(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BRIDGES", 100)
    few, more = (simulate_inventory(n, preset="plain") for n in (100, 200))
    assert more.inventory.head(100).equals(few.inventory)
    assert not more.inventory.tail(100).drop("bridge_id").equals(few.inventory.drop("bridge_id"))


def test_many_bridges_have_longer_names():
    bridges = draw_bridges(0, 2, 1_000_000, np.random.default_rng(0))
    assert bridges.names.to_list() == ["B-0000001", "B-0000002"]


def test_the_counts_of_dirt_agree_with_the_tables(dirty):
    counts = dict(dirty.truth["dirt"])
    state, date = dirty.inspections["state"].to_list(), dirty.inspections["date"].to_list()
    blank = {
        name: dirty.inventory[name].null_count() for name in ("completion_year", "bridge_length", "bridge_width")
    }
    visits = dirty.inspections.unique().group_by(*MEMBER, "visit").len()
    found = {
        **{f"blank_{name}": number for name, number in blank.items()},
        "blank_traffic": dirty.traffic["traffic"].null_count(),
        "blank_state": state.count(None),
        "stray_text": sum(s in ("-", "未点検") for s in state),
        "upper_case": sum(s in set("ABCDE") for s in state),
        "full_width": sum(s in FULL_WIDTH for s in state),
        "slashed_dates": sum("/" in d for d in date),
        "compact_dates": sum(d.isdigit() for d in date),
        "exact_copies": len(dirty.inspections) - len(dirty.inspections.unique()),
        "contradicting_rows": (visits["len"] - 1).sum(),
        "recorded_repairs": len(dirty.inventory) - dirty.inventory["repair_year"].null_count(),
    }
    assert found == {kind: counts[kind] for kind in found}
    assert set(counts) - set(found) == {"repaired_bridges", "upward_moves", "upward_moves_recorded"}
    shares = {
        kind: number / len(date) for kind, number in found.items() if kind in ("blank_state", "exact_copies")
    }
    assert all(0.025 < share < 0.035 for share in shares.values())
    assert set(state) - set(LETTERS) - set("ABCDE") - FULL_WIDTH == {None, "-", "未点検"}


def test_dates_are_the_same_days_in_every_format(dirty):
    clean = simulate_inventory(2000, preset="plain", seed=3)
    text = pl.col("date").str
    days = dirty.inspections.with_columns(
        pl.coalesce([text.to_date(f, strict=False) for f in ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d")])
    )
    key = [*MEMBER, "visit", "date"]
    assert days.select(key).unique(maintain_order=True).equals(clean.inspections.select(key))


def test_repairs_are_upward_moves_between_two_visits(monkeypatch):
    """The blanks, letters and copies held back, so that every move can be seen."""
    monkeypatch.setattr(module.soiling, "soil_inspections", lambda frame, *_: (frame, {}))
    monkeypatch.setattr(module.soiling, "soil_blanks", lambda frame, *_: (frame, {}))
    tables = simulate_inventory(2000, preset="plain", seed=3, dirt=0.1)
    rows = pair(tables)
    up = rows.filter(pl.col("state_2") < pl.col("state_1"))
    recorded = up.drop_nulls("repair_year")
    assert tables.truth["dirt"] == {
        "repaired_bridges": up["bridge_id"].n_unique(),
        "recorded_repairs": recorded["bridge_id"].n_unique(),
        "upward_moves": len(up),
        "upward_moves_recorded": len(recorded),
    }
    assert 0 < len(recorded) < len(up)
    assert len(recorded.select("bridge_id").unique()) == tables.inventory["repair_year"].count()
    assert set(up["state_2"]) == {1, 2}
    assert up["state_1"].min() == 3
    assert (recorded["repair_year"] > recorded["date_1"].dt.year()).all()
    assert (recorded["repair_year"] < recorded["date_2"].dt.year()).all()
    clean = pair(simulate_inventory(2000, preset="plain", seed=3))
    untouched = clean.join(up, on="bridge_id", how="anti")
    assert untouched.equals(rows.join(up, on="bridge_id", how="anti").drop("repair_year").select(clean.columns))


def test_everything_can_be_soiled():
    tables = simulate_inventory(50, preset="plain", dirt=1.0)
    assert tables.inspections["state"].null_count() == len(tables.inspections)
    assert tables.inventory["bridge_length"].null_count() == 50
    assert tables.truth["dirt"]["contradicting_rows"] == 0


def test_the_paper_can_be_soiled():
    tables = simulate_inventory(dirt=0.02)
    assert min(tables.truth["dirt"].values()) > 0
    assert "repair_year" in tables.inventory.columns


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "plian"}, "preset is 'plian'; it can be paper, plain. Did you mean plain?"),
        (
            {"bridges": 50},
            "bridges is 50, but preset 'paper' has its own 600. Leave bridges out, or choose preset 'plain'.",
        ),
        ({"preset": "plain"}, "bridges is None; preset 'plain' needs a whole number, 1 or more."),
        ({"preset": "plain", "bridges": 0}, "bridges is 0; preset 'plain' needs a whole number, 1 or more."),
        ({"preset": "plain", "bridges": 2.5}, "bridges is 2.5; preset 'plain' needs a whole number, 1 or more."),
        ({"seed": -1}, "seed is -1; a whole number, 0 or more, is needed."),
        ({"seed": True}, "seed is True; a whole number, 0 or more, is needed."),
        ({"dirt": 1.5}, "dirt is 1.5; a share from 0 to 1 is needed, e.g. 0.02."),
        ({"dirt": True}, "dirt is True; a share from 0 to 1 is needed, e.g. 0.02."),
        ({"dirt": float("nan")}, "dirt is nan; a share from 0 to 1 is needed, e.g. 0.02."),
    ],
)
def test_wrong_options_are_refused(options, message, tmp_path):
    for call in (simulate_inventory, lambda **o: write_inventory(tmp_path / "out", **o)):
        with pytest.raises(BadOption) as caught:
            call(**options)
        assert str(caught.value) == message
    assert not (tmp_path / "out").exists()


def test_wrong_places_to_write_are_refused(tmp_path):
    with pytest.raises(BadOption, match=r"^format is 'xlsx'; it can be csv, parquet\.$"):
        write_inventory(tmp_path, format="xlsx")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BadOption, match=r"which is a file; a folder, there or not yet, is needed\.$"):
        write_inventory(file)


def test_one_bridge_can_be_drawn():
    tables = simulate_inventory(1, preset="plain", dirt=0.5)
    assert tables.inventory["bridge_id"].to_list() == ["B-00001"]
