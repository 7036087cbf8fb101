from datetime import date

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.core.errors import BadOption, MissingColumns
from rekka.data.partition import (
    fold_bridges,
    mark_parts,
    order_bridges,
    partition_auto,
    partition_by_bridge,
    partition_by_date,
    partition_paper,
    split_bridges,
)

STORED_ORDER = [
    "B-010",
    "B-001",
    "B-011",
    "B-005",
    "B-009",
    "B-002",
    "B-000",
    "B-008",
    "B-004",
    "B-006",
    "B-007",
    "B-003",
]
STORED_COUNTS = [("Bearing", 81, 13, 68), ("Pier", 67, 11, 56)]


def transitions(n_bridges=50):
    """Up to three members of two cases on each bridge, with visits 1 to 5."""
    rows = [
        {
            "bridge_id": f"B-{b:03d}",
            "case": case,
            "visit_1": v,
            "visit_2": v + 1,
            "date_2": date(2000 + 5 * v, 4, 1),
        }
        for b in range(n_bridges)
        for c, case in enumerate(("Pier", "Bearing"))
        for _ in range((b * 7 + c * 5 + b // 3) % 4)
        for v in range(1, 5)
    ]
    return pl.DataFrame(rows)


def test_the_order_is_the_same_on_every_machine():
    """Stored result: SHA-256 of 'seed:name' decides, no library has a say."""
    names = [f"B-{b:03d}" for b in range(12)]
    assert order_bridges(names, 20260924) == STORED_ORDER
    assert order_bridges(reversed(names), 20260924) == STORED_ORDER
    assert order_bridges(names, 1) != STORED_ORDER


def test_the_papers_protocol():
    data = transitions()
    parts = partition_paper(data)
    assert set(parts.train["visit_1"]) == {3}
    assert set(parts.golden["visit_1"]) == set(parts.validation["visit_1"]) == {4}
    later = data.filter(pl.col("visit_1") == 4)
    assert len(parts.validation) + len(parts.golden) == len(later)
    bridges = later["bridge_id"].n_unique()
    assert parts.validation["bridge_id"].n_unique() == round(0.2 * bridges)
    assert "20% validation, 80% golden, seed 20260924" in parts.scheme
    assert parts.counts().sort("case").rows() == STORED_COUNTS


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 60), st.floats(0, 1))
def test_no_bridge_stands_in_two_held_out_parts(seed, n_bridges, share):
    data = transitions(n_bridges)
    paper = partition_paper(data, seed=seed)
    dated = partition_by_date(data, until=date(2015, 12, 31), validation=share, seed=seed)
    shares = partition_by_bridge(data, train=0.5, validation=0.25, golden=0.25, seed=seed)
    for parts in (paper, dated, shares):
        assert not set(parts.validation["bridge_id"]) & set(parts.golden["bridge_id"])
    assert not set(shares.train["bridge_id"]) & (
        set(shares.golden["bridge_id"]) | set(shares.validation["bridge_id"])
    )
    assert len(shares.train) + len(shares.validation) + len(shares.golden) == len(data)


def test_training_bridges_can_be_kept_out():
    everything = transitions()
    early = everything.filter(pl.col("bridge_id") < "B-020", pl.col("visit_1") == 3)
    data = pl.concat([early, everything.filter(pl.col("visit_1") == 4)])
    for parts in (
        partition_by_date(data, until=date(2016, 1, 1), keep_training_bridges_out=True),
        partition_paper(data, keep_training_bridges_out=True),
    ):
        held_out = set(parts.golden["bridge_id"]) | set(parts.validation["bridge_id"])
        assert held_out == set(data["bridge_id"]) - set(early["bridge_id"])
        assert "no bridge that trained" in parts.scheme


def test_the_row_cap_keeps_whole_bridges_of_each_case():
    data = transitions()
    capped = partition_paper(data, row_cap=60)
    kept = pl.concat([capped.train, capped.validation, capped.golden])
    whole = partition_paper(data, row_cap=None)
    everything = pl.concat([whole.train, whole.validation, whole.golden])
    for case in ("Pier", "Bearing"):
        mine = kept.filter(pl.col("case") == case)
        assert 54 <= len(mine) <= 60  # a bridge has at most six of the rows that count
        for bridge in mine["bridge_id"].unique():
            one = (pl.col("case") == case) & (pl.col("bridge_id") == bridge)
            assert len(mine.filter(one)) == len(everything.filter(one))


def test_a_capped_case_keeps_its_golden_rows():
    data = transitions(400)
    capped = partition_paper(data, row_cap=200)
    for case, _, validation, golden in capped.counts().rows():
        assert 0.1 < validation / (validation + golden) < 0.35, case


def test_a_column_of_parts_is_taken_as_it_is():
    marked = mark_parts(transitions(), partition_by_bridge)
    assert partition_auto(marked).counts().equals(partition_by_bridge(transitions()).counts())
    assert partition_auto(marked).scheme == "as the column part says"
    assert "visits 3 to 4 train" in partition_auto(transitions()).scheme
    assert partition_auto(transitions().drop("visit_1")).scheme.startswith("by bridge")


def test_auto_does_not_leave_most_rows_out():
    """Visits that were only counted are numbered 1 to 5 too."""
    early = transitions().with_columns(visit_1=pl.col("visit_1") - 2, visit_2=pl.col("visit_2") - 2)
    counted = pl.concat([transitions(), early, early])
    assert partition_auto(counted).scheme.startswith("by bridge")


def test_folds_are_whole_bridges_of_equal_number():
    data = transitions()
    fold = fold_bridges(data, 5)
    by_bridge = (
        data.with_columns(fold=fold)
        .group_by("bridge_id")
        .agg(pl.col("fold").n_unique(), first=pl.col("fold").first())
    )
    assert (by_bridge["fold"] == 1).all()
    counts = by_bridge["first"].value_counts()["count"]
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda d: partition_by_bridge(d, train=0.9),
            BadOption,
            "numbers between 0 and 1 that add up to 1 are needed",
        ),
        (lambda d: split_bridges(["a"], {}, 1), BadOption, "shares are {}"),
        (lambda d: fold_bridges(d, 1), BadOption, "k is 1; a whole number from 2 to the number of bridges"),
        (lambda d: partition_paper(d.drop("visit_1")), MissingColumns, "visit_1 is not in the table"),
        (
            lambda d: partition_paper(d.with_columns(bridge_id=pl.lit(None))),
            rekka.InputError,
            "bridge_id is missing in",
        ),
    ],
)
def test_wrong_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call(transitions())


def test_pandas_frames_are_taken_too():
    data = transitions()
    assert partition_paper(data.to_pandas()).golden.equals(partition_paper(data).golden)


def test_a_capped_case_keeps_its_golden_rows_beside_a_small_one():
    """The small case is on every bridge: a cap in the order of the split would leave the large one no golden row."""
    small = transitions(400).filter(case="Pier").unique(["bridge_id", "visit_1"], maintain_order=True)
    large = pl.concat([small.with_columns(case=pl.lit("Bearing"))] * 8)
    capped = partition_paper(pl.concat([small, large]), row_cap=700)
    counts = {case: numbers for case, *numbers in capped.counts().rows()}
    assert sum(counts["Pier"]) == 2 * small["bridge_id"].n_unique()
    assert 600 < sum(counts["Bearing"]) <= 700
    for _, validation, golden in counts.values():
        assert 0.1 < validation / (validation + golden) < 0.35


@pytest.mark.parametrize(("copies", "scheme"), [(1, "visits 3 to 4 train"), (2, "by bridge")])
def test_visits_that_were_only_counted_are_no_rounds(copies, scheme):
    """Numbered 1 to 4 all the same; late visits are half of the rows, or a third."""
    early = transitions().filter(pl.col("visit_1") < 3)
    late = transitions().filter(pl.col("visit_1") > 2)
    counted = pl.concat([late[2:], *[early] * copies])
    assert set(counted["visit_1"]) == {1, 2, 3, 4}
    assert partition_auto(counted).scheme.startswith(scheme)


def test_a_cap_can_be_filled_to_its_last_row():
    """With two rows a bridge 60 rows are 30 bridges, and 61 rows no more."""
    data = transitions(90).filter(case="Pier").unique(["bridge_id", "visit_1"], maintain_order=True)
    for cap in (60, 61):
        parts = partition_paper(data, row_cap=cap)
        assert sum(map(len, (parts.train, parts.validation, parts.golden))) == 60


def test_a_fold_can_be_one_bridge():
    data = transitions(10)
    bridges = data["bridge_id"].n_unique()
    assert fold_bridges(data, bridges).n_unique() == bridges
    with pytest.raises(BadOption, match=f"k is {bridges + 1}"):
        fold_bridges(data, bridges + 1)


@pytest.mark.parametrize("train", [0.59, 0.61, -0.4])
def test_shares_add_up_to_one(train):
    with pytest.raises(BadOption, match="numbers between 0 and 1 that add up to 1 are needed"):
        partition_by_bridge(transitions(), train=train)
