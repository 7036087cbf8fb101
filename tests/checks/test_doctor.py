"""Every code of the data doctor has a table that produces it, and a clean table has none that matters."""

import json
from functools import cache

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.checks.doctor import check_transitions
from rekka.checks.engine import MOST_ROWS, Severity, Subject, list_codes, load_checks
from rekka.core.errors import BadOption, BadValues, InputError, MissingColumns
from rekka.core.language import LANGUAGES, load_words
from rekka.data.partition import Partition, partition_by_bridge
from rekka.data.values import IndexEnd, Scale

load_checks("rekka.checks")
CODES = [
    code
    for code, own in list_codes().items()
    if any(one.subject not in (Subject.STUDY, Subject.FIT) for one in own)
]

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]


@cache
def clean(n=2000, seed=20260924):
    return rekka.simulate_transitions(n, seed=seed).with_columns(case=pl.lit("Pier"))


def plain(n=2000):
    """The same rows without covariates, for the checks that do not look at them."""
    return clean(n).drop(NAMES)


def put(frame, row, **values):
    """The same frame with other values in one row, or in some rows."""
    rows = [row] if isinstance(row, int) else list(row)
    here = pl.int_range(pl.len()).is_in(rows)
    return frame.with_columns(
        pl.when(here).then(pl.lit(value, dtype=frame.schema[name])).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


def by_hand(start, end, x=None, dt=None):
    """A small case with one covariate, x."""
    n = len(start)
    years = [3.0 + i % 3 for i in range(n)] if dt is None else dt
    columns = {
        "state_1": start,
        "state_2": end,
        "interval_years": years,
        "x": x or [float(i % 7) for i in range(n)],
    }
    return pl.DataFrame({"bridge_id": [f"B-{i}" for i in range(n)], "case": ["Pier"] * n} | columns)


def audit(transitions=900, upward=20, blank=10, not_inspected=0):
    lines = [
        ("transition", None, transitions, []),
        ("last visit", None, 300, []),
        ("pair set aside", "upward move: the condition improved", upward, [7, 3]),
        ("visit set aside", "the state is blank", blank, [12]),
        ("visit set aside", "not inspected", not_inspected, [99]),
    ]
    schema = {"outcome": pl.String, "reason": pl.String, "count": pl.Int64, "rows": pl.List(pl.Int64)}
    return pl.DataFrame([line for line in lines if line[2]], schema=schema, orient="row")


def parts(train, validation, golden):
    return Partition(train, validation, golden, "by hand")


def check_parts(train, validation, golden):
    return check_transitions(pl.concat([train, validation, golden]), partition=parts(train, validation, golden))


@cache
def thirds():
    """A clean table in three parts by bridge."""
    split = partition_by_bridge(clean())
    return split.train, split.validation, split.golden


def separated():
    return by_hand([1] * 120, [1] * 60 + [2] * 60, [float(i) for i in range(120)])


def perhaps_separated():
    """State 1: rows above 60 left it, but some of them ended between, so only a fit can tell."""
    x = [float(i) for i in range(120)]
    return by_hand([1] * 120, [1] * 60 + [2, 3] * 30, x)


def golden_below_boxcox():
    train, validation, golden = thirds()
    return check_parts(train, validation, put(golden, 4, bridge_length=-50.0))


def golden_outside():
    train, validation, golden = thirds()
    return check_parts(train, validation, put(golden, [4, 8], age_at_inspection_1=90.0))


def golden_beyond():
    train, validation, golden = thirds()
    train = train.filter(pl.col("state_2") < 5)
    return check_parts(train, validation, golden)


def case_not_trained():
    train, validation, golden = thirds()
    return check_parts(train, validation, golden.with_columns(case=pl.lit("Bearing")))


def validation_empty():
    train, _, golden = thirds()
    return check_parts(train, golden.clear(), golden)


def bridges_in_two_parts():
    train, _, golden = thirds()
    return check_parts(train, golden, golden)


def with_x(values):
    frame = clean(len(values))
    return check_transitions(frame.with_columns(x=pl.Series(values, dtype=pl.Float64)))


RNG = np.random.default_rng(1)
CASES = {
    "R001": lambda: check_transitions(plain(), notes=["Ranks a to e were read as 1 to 5."]),
    "R002": lambda: check_transitions(plain(), audit=audit()),
    "R003": lambda: check_transitions(put(plain(), 3, bridge_id=None)),
    "R101": lambda: check_transitions(put(plain(), 3, state_1=0)),
    "R102": lambda: check_transitions(plain(), audit=audit()),
    "R103": lambda: check_transitions(put(plain(), 3, state_1=3, state_2=2)),
    "R104": lambda: check_transitions(by_hand([1, 2, 3] * 40, [1, 2, 4] * 40)),
    "R105": lambda: check_transitions(by_hand([1, 1] * 60, [1, 3] * 60)),
    "R106": lambda: check_transitions(by_hand([1] * 120, [1] * 115 + [2] * 5)),
    "R107": lambda: check_transitions(put(plain(), [3, 5], state_1=5, state_2=5)),
    "R108": lambda: check_transitions(by_hand([1, 2] * 60, [1, 2] * 60)),
    "R109": lambda: check_transitions(by_hand([1, 2] * 60, [1, 2] * 60), audit=audit(upward=200)),
    "R110": lambda: check_transitions(by_hand([1] * 240 + [2] * 60, [1] * 210 + [2] * 20 + [3] * 10 + [2] * 60)),
    "R111": lambda: check_transitions(plain(), scale=Scale(("a", "b"), "bands", ends=(IndexEnd(0.0, 3, ("0",), (4, 9)),))),
    "R201": lambda: check_transitions(put(plain(), 3, interval_years=0.0)),
    "R202": lambda: check_transitions(put(plain(), 3, interval_years=0.1)),
    "R203": lambda: check_transitions(put(plain(), range(40), interval_years=30.0)),
    "R204": lambda: check_transitions(plain().with_columns(interval_years=pl.lit(5.0))),
    "R205": lambda: check_transitions(put(plain(), range(500), interval_years=1.0)),
    "R301": lambda: check_transitions(put(clean(), 3, traffic_mean=None)),
    "R302": lambda: check_transitions(clean().with_columns(lanes=2)),
    "R303": lambda: check_transitions(clean().with_columns(length_in_feet=pl.col("bridge_length") / 0.3048)),
    "R304": lambda: check_transitions(clean().with_columns(x=pl.col("bridge_length") + pl.Series(RNG.normal(size=2000)))),
    "R305": lambda: check_transitions(put(clean(), 3, traffic_mean=-99.0)),
    "R306": lambda: check_transitions(put(clean(), 3, bridge_length=1e7)),
    "R307": lambda: check_transitions(clean()),
    "R308": lambda: check_transitions(clean()),
    "R309": lambda: with_x(1e9 + RNG.normal(size=2000) * 1e-3),
    "R401": lambda: check_transitions(clean(200)),
    "R402": lambda: check_transitions(separated()),
    "R403": lambda: check_transitions(perhaps_separated()),
    "R404": lambda: check_transitions(clean(80)),
    "R501": golden_outside,
    "R502": golden_below_boxcox,
    "R503": golden_beyond,
    "R504": case_not_trained,
    "R505": validation_empty,
    "R506": bridges_in_two_parts,
}  # fmt: skip


@cache
def produce(code):
    return CASES[code]()


def only(diagnosis, code):
    (finding,) = [f for f in diagnosis.findings if f.code == code]
    return finding


def codes(diagnosis):
    return {f.code for f in diagnosis.findings}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_table_that_produces_it(code):
    diagnosis = produce(code)
    found = [f for f in diagnosis.findings if f.code == code]
    assert found
    for finding in found:
        for title, message, remedy in (finding.describe(load_words(lang)) for lang in LANGUAGES):
            assert title
            assert message.endswith((".", "。"))
            assert remedy.endswith((".", "。"))
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")
        assert len(finding.rows) <= min(MOST_ROWS, finding.count)
        assert finding.count > 0
    text = json.dumps(diagnosis.to_dict(), allow_nan=False)
    assert json.loads(text) == diagnosis.to_dict()


def test_codes_are_in_order():
    assert list(CODES) == sorted(CODES)
    assert set(CASES) == set(CODES)


def test_a_clean_table_gets_a_friendly_answer():
    diagnosis = produce("R307")
    assert {f.severity for f in diagnosis.findings} == {Severity.NOTE}
    assert not diagnosis.stops
    words = "Fine: 2,000 transitions of 635 bridges in 1 component, no warnings."
    assert diagnosis.headline() == words


def test_a_table_without_anything_to_say():
    diagnosis = check_transitions(clean(), covariates=["bridge_length"])
    assert codes(diagnosis) <= {"R307"}
    diagnosis = check_transitions(clean(), covariates=[])
    assert diagnosis.findings == ()
    assert diagnosis.table().is_empty()
    assert diagnosis.table().columns == ["code", "severity", "case", "title", "message", "remedy", "count", "rows"]


def test_headline_counts_by_severity():
    frame = put(put(clean(), 3, interval_years=0.0), 4, bridge_length=1e7)
    diagnosis = check_transitions(frame.with_columns(lanes=2))
    assert diagnosis.stops
    assert diagnosis.headline() == "2 findings stop the work, 1 warning, 2 notes."
    assert [str(f.severity) for f in diagnosis.findings] == ["stop", "stop", "warning", "note", "note"]
    assert produce("R201").headline() == "1 finding stops the work."


def test_worst_first_then_by_case():
    pier, bearing = clean(80), clean(90).with_columns(case=pl.lit("Bearing"))
    found = check_transitions(pl.concat([pier, bearing])).findings
    rank = [list(Severity).index(f.severity) for f in found]
    assert rank == sorted(rank)
    assert [f.case for f in found if f.code == "R404"] == ["Bearing", "Pier"]


def test_table_has_a_line_for_each_finding():
    table = produce("R201").table()
    assert table.row(0, named=True) == {
        "code": "R201",
        "severity": "stop",
        "case": None,
        "title": "Intervals that are not above 0",
        "message": "1 row of 2,000 (0.1%) with an interval that is missing, 0 or negative.",
        "remedy": "Correct the dates, or exclude such pairs: the model needs the years between two inspections.",
        "count": 1,
        "rows": [3],
    }


def test_rows_are_counted_as_the_user_counts_them():
    frame = put(plain().with_columns(row_1=pl.int_range(pl.len()) + 1002), [3, 9], interval_years=None)
    assert only(check_transitions(frame), "R201").rows == (1005, 1011)
    assert only(check_transitions(frame.drop("row_1")), "R201").rows == (3, 9)
    text = frame.with_columns(row_1=pl.lit("sheet 1"))
    assert only(check_transitions(text), "R201").rows == (3, 9)
    assert only(check_transitions(put(frame, 3, row_1=None)), "R201").rows == (1011,)


def test_at_most_twenty_rows_are_named():
    finding = only(check_transitions(put(plain(), range(100), interval_years=-1.0)), "R201")
    assert finding.rows == tuple(range(20))
    assert finding.count == 100


def test_the_other_checks_go_on_with_the_usable_rows():
    frame = put(clean(), 3, state_1=3, state_2=2, interval_years=None, bridge_length=float("nan"))
    diagnosis = check_transitions(frame)
    assert {"R103", "R201", "R301"} <= codes(diagnosis)
    assert diagnosis.facts["rows"] == 2000
    assert diagnosis.facts["usable_rows"] == diagnosis.facts["cases"]["Pier"]["rows"] == 1999
    message = "1 row of 2,000 (0.1%) with a missing or infinite covariate (bridge_length: 1)."
    assert only(diagnosis, "R301").message == message


@pytest.mark.parametrize("value", [None, float("nan"), float("-inf"), 1e300])
def test_what_is_missing_or_infinite_is_a_gap(value):
    finding = only(check_transitions(put(clean(), [3, 5], traffic_mean=value)), "R301")
    assert (finding.rows, finding.values["covariates"]) == ((3, 5), {"traffic_mean": 2})


def test_no_usable_row_at_all():
    diagnosis = check_transitions(clean(5).with_columns(interval_years=pl.lit(None)))
    assert codes(diagnosis) == {"R201"}
    assert diagnosis.facts["cases"] == {}


@pytest.mark.parametrize("code", [0, 99, 2.5, float("nan"), None])
def test_a_code_is_not_a_state(code):
    frame = plain().with_columns(pl.col("state_1").cast(pl.Float64))
    diagnosis = check_transitions(put(frame, 3, state_1=code))
    assert only(diagnosis, "R101").rows == (3,)
    assert "R103" not in codes(diagnosis)


def test_audit_says_what_became_of_the_records():
    finding = only(check_transitions(plain(), audit=audit(not_inspected=5000)), "R002")
    assert finding.severity is Severity.NOTE
    assert finding.message == (
        "6,230 records: 900 transitions, 300 last visits, 5,030 excluded (not inspected: 5,000; upward move: the "
        "condition improved: 20; the state is blank: 10). Of the records that could have been transitions 3.2% are "
        "lost."
    )
    assert finding.rows == (3, 7, 12)
    assert only(check_transitions(plain(), audit=audit(blank=300)), "R002").severity is Severity.WARNING
    nothing = only(check_transitions(plain(), audit=audit(upward=0, blank=0)), "R002")
    assert nothing.message == "1,200 records: 900 transitions, 300 last visits, 0 excluded."
    assert codes(check_transitions(plain(), audit=audit().clear())) == set()


def test_upward_moves_set_aside_bias_the_hazards():
    few = only(produce("R102"), "R102")
    assert few.severity is Severity.NOTE
    assert few.message == "20 upward moves excluded: 2.2% of the pairs that could have been transitions."
    assert "the hazards come out too high" in few.remedy
    assert only(check_transitions(plain(), audit=audit(upward=100)), "R102").severity is Severity.WARNING


def test_states_never_left_and_never_seen():
    stuck = produce("R104")
    assert only(stuck, "R104").message == (
        "No row leaves ratings 1, 2, so the best hazard there is 0 and the likelihood has no finite maximum."
    )
    assert "R402" in codes(stuck)  # and state 3 is never stayed in
    passed = only(check_transitions(by_hand([1, 1] * 60, [1, 3] * 60)), "R105")
    assert passed.severity is Severity.WARNING
    assert passed.message == "No row starts or ends in rating 2, although the worst is rating 3."
    shifted = only(check_transitions(by_hand([2, 2] * 60, [2, 3] * 60)), "R105")
    assert shifted.severity is Severity.STOP
    assert shifted.message.endswith("Its hazard cannot be estimated: no row passes through.")


def test_separation_names_state_and_covariate():
    finding = only(produce("R402"), "R402")
    assert finding.severity is Severity.STOP
    assert finding.message == (
        "Rating 1: the rows that left it and those that ended in it are separated by x. "
        "The likelihood has no finite maximum (separation): the coefficients grow without limit."
    )
    assert finding.remedy == "Add a ridge penalty (methods ridge, pooled), use fewer covariates, or merge ratings."
    assert finding.values == {"states": [1], "terms": ["intercept", "x"], "certain": True}
    assert only(produce("R403"), "R403").severity is Severity.WARNING


def test_a_state_that_no_row_ends_in_is_not_helped_by_a_ridge():
    finding = only(check_transitions(by_hand([1] * 120, [2] * 120)), "R402")
    assert finding.message.startswith("Rating 1: no row ends in it.")
    assert finding.remedy.startswith("Merge rating 1 with a neighbour. A ridge penalty does not help")


def test_events_per_parameter_count_rows_that_pass_through():
    """12 rows leave state 1, 6 of them state 2 as well; two coefficients a state."""
    frame = by_hand([1] * 120, [1] * 108 + [2, 3] * 6, [float(i * 7 % 12) for i in range(120)])
    finding = only(check_transitions(frame), "R401")
    assert finding.values["events"] == {"2": 6}
    assert finding.message == (
        "Events per parameter under 5: 3.0 in rating 2 (6 events), with 2 coefficients a rating. "
        "A fit there is exploratory."
    )
    assert only(check_transitions(frame), "R106").message == "Fewer than 10 departures: 6 from rating 2."


def test_constant_and_collinear_covariates_are_all_named():
    frame = clean().with_columns(lanes=2, spans=3, feet=pl.col("bridge_length") / 0.3048)
    found = check_transitions(frame).findings
    assert [f.values["covariates"] for f in found if f.code == "R302"] == [["lanes"], ["spans"]]
    (same,) = (f for f in found if f.code == "R303")
    assert same.message == "feet duplicates bridge_length: their effects cannot be separated."
    first = next(f for f in found if f.code == "R302")
    assert first.message == "lanes is 2 in all 2,000 rows: its effect cannot be separated from the intercept."


def test_nearly_collinear_covariates_are_named_with_their_nearest():
    values = only(produce("R304"), "R304").values
    assert values["nearest"] == {"bridge_length": "x", "x": "bridge_length"}
    assert min(values["variance_inflation"].values()) > 30


def test_impossible_values():
    assert only(produce("R305"), "R305").message == "traffic_mean is below 0 in 1 row, at lowest -99."
    assert only(check_transitions(put(clean(), [3, 5], bridge_area=0.0)), "R305").rows == (3, 5)
    assert "R305" not in codes(check_transitions(put(clean(), 3, traffic_mean=0.0)))


def test_the_farthest_row_is_named_first():
    frame = put(put(clean(), 3, bridge_length=1e7), 9, bridge_length=1e9)
    finding = only(check_transitions(frame), "R306")
    assert finding.rows == (9, 3)
    assert finding.message.startswith("bridge_length is far from the rest in 2 rows: the farthest is 1e+09")


def test_a_yes_or_no_covariate_has_no_outliers():
    """Half of the values are equal, so there is no robust unit to measure in."""
    assert "R306" not in codes(with_x([1.0] * 5 + [0.0] * 1995))


def test_left_skewed_age_and_its_exponent():
    """Ages 62 - Gamma(2.2, 7) have a Box-Cox exponent near 2.5."""
    values = only(check_transitions(clean(20_000)), "R308").values
    assert values["covariate"] == "age_at_inspection_1"
    assert values["exponent"] == pytest.approx(2.5, abs=0.15)


def test_intervals():
    short = only(produce("R202"), "R202")
    assert short.severity is Severity.NOTE
    assert short.message.startswith("Shorter than 0.998 years: 1 of 2,000 intervals (0.1%), the shortest 0.1;")
    long = only(produce("R203"), "R203")
    assert long.severity is Severity.WARNING
    assert long.message.startswith("Longer than 15 years: 40 of 2,000 intervals (2.0%), the longest 30;")
    assert only(produce("R204"), "R204").message == "All 2,000 intervals are 5 years."
    assert codes(check_transitions(clean(1))) >= {"R404"}


def test_golden_rows_outside_the_training_range():
    train, validation, golden = thirds()
    finding = next(f for f in produce("R501").findings if f.values.get("part") == "golden")
    figures = finding.values["covariates"]["age_at_inspection_1"]
    low, high = train["age_at_inspection_1"].min(), train["age_at_inspection_1"].max()
    assert finding.severity is Severity.WARNING
    assert finding.rows[:2] == (4, 8)
    assert figures["share_of_range"] == pytest.approx((90 - high) / (high - low))
    slight = check_parts(train, validation, put(golden, 4, bridge_length=train["bridge_length"].max() + 0.1))
    assert {f.severity for f in slight.findings if f.code == "R501"} == {Severity.NOTE}


def test_partition_messages():
    beyond = [f for f in produce("R503").findings if f.code == "R503"]
    assert len(beyond) == 2  # validation and golden
    assert beyond[0].message.startswith("Worse than rating 4, the worst of the training rows: ")
    missing = only(produce("R504"), "R504")
    assert (missing.case, missing.severity) == ("Bearing", Severity.STOP)
    assert (
        missing.message
        == f"No usable row of this component is in the training part: {missing.count} confirmation."
    )
    empty = only(produce("R505"), "R505")
    assert empty.severity is Severity.WARNING
    assert empty.message.startswith("No usable row of this component is in the validation part; ")
    assert [f.severity for f in produce("R506").findings if f.code == "R506"] == [Severity.WARNING]


def test_a_bridge_that_trained_and_is_held_out_is_a_note():
    train, validation, golden = thirds()
    finding = only(check_parts(train, validation, pl.concat([golden, train.head(1)])), "R506")
    assert finding.severity is Severity.NOTE
    assert finding.count == 1


def test_held_out_rows_within_the_range_are_not_mentioned():
    train, _, _ = thirds()
    found = codes(check_parts(train, train.head(50), train.head(50)))
    assert not found & {"R501", "R502", "R503"}


def test_where_boxcox_cannot_be_fitted_its_range_is_not_asked_for():
    train, validation, golden = (part.with_columns(x=1e9 + pl.int_range(pl.len()) * 1e-6) for part in thirds())
    diagnosis = check_parts(train, validation, put(golden, 3, x=-5.0))
    assert "R309" in codes(diagnosis)
    assert "R502" not in codes(diagnosis)


def test_a_constant_training_column_has_no_range_to_measure_in():
    train, validation, golden = (
        part.with_columns(lanes=pl.lit(n)) for part, n in zip(thirds(), (2, 2, 3), strict=True)
    )
    finding = next(f for f in check_parts(train, validation, golden).findings if f.values.get("part") == "golden")
    assert finding.values["covariates"]["lanes"]["share_of_range"] is None


def test_the_model_is_checked_on_the_training_rows():
    train, validation, golden = thirds()
    diagnosis = check_parts(train.head(60), validation, golden)
    assert only(diagnosis, "R404").count == 60
    counts = diagnosis.facts["partition"]["rows"]
    assert counts == [{"case": "Pier", "train": 60, "validation": validation.height, "golden": golden.height}]


def test_facts_describe_each_case():
    frame = by_hand([1, 1, 2, 1], [1, 2, 3, 2], [1.0, 2, 3, 4], [2.0, 4, 6, 8])
    assert check_transitions(frame).facts["cases"]["Pier"] == {
        "rows": 4,
        "bridges": 4,
        "states": 3,
        "transitions": [
            {"start": 1, "end": 1, "rows": 1},
            {"start": 1, "end": 2, "rows": 2},
            {"start": 2, "end": 3, "rows": 1},
        ],
        "interval_years": {"min": 2, "q25": 3.5, "median": 5, "q75": 6.5, "max": 8, "mean": 5},
        "covariates": {"x": {"min": 1, "q25": 1.75, "median": 2.5, "q75": 3.25, "max": 4, "mean": 2.5}},
    }


def test_covariates_are_the_numeric_columns_without_a_role():
    frame = clean().with_columns(
        owner=pl.lit("city"), visit_1=1, member=7, lanes=pl.Series(RNG.integers(1, 5, 2000))
    )
    assert list(check_transitions(frame).facts["cases"]["Pier"]["covariates"]) == [*NAMES, "lanes"]


def test_other_dataframes_are_read_too():
    assert check_transitions(clean(500).to_arrow()) == check_transitions(clean(500))


def test_notes_are_kept():
    diagnosis = check_transitions(plain(), notes=["Ranks a to e were read as 1 to 5.", "Dates are in years."])
    assert diagnosis.notes == ("Ranks a to e were read as 1 to 5.", "Dates are in years.")
    assert only(diagnosis, "R001").message == "Ranks a to e were read as 1 to 5. Dates are in years."


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: check_transitions(f.drop("case")), MissingColumns, "case is not in the table"),
        (lambda f: check_transitions(f.clear()), InputError, "The table has no rows"),
        (
            lambda f: check_transitions(f.with_columns(state_1=pl.lit("b"))),
            BadValues,
            "state_1 holds 'b' in row 0",
        ),
        (lambda f: check_transitions(f, covariates=["lengh"]), MissingColumns, "lengh is not in the table"),
        (lambda f: check_transitions(f, covariates=["bridge_id"]), BadOption, "bridge_id, which has another role"),
        (lambda f: check_transitions(f, covariates="x"), BadOption, "a list of column names is needed"),
        (lambda f: check_transitions([1, 2]), InputError, "a dataframe with named columns is needed"),
        (
            lambda f: check_transitions(f, audit=f),
            MissingColumns,
            "outcome, reason, count, rows are not in the table",
        ),
        (
            lambda f: check_transitions(f, partition=parts(f, f, f.drop("bridge_area"))),
            MissingColumns,
            "bridge_area",
        ),
    ],
)
def test_a_wrong_table_is_an_exception(call, error, words):
    with pytest.raises(error, match=words):
        call(clean(20))


def test_jumps_over_states_are_counted_beside_those_that_rates_explain(decks):
    finding = only(check_transitions(decks), "R110")
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith(
        "36 of 80 rows that moved (45.0%) went over several ratings in one interval, far more often than the rates of "
        "leaving each rating explain: 36 from rating 1 to 5, 0.2 expected. For example row 400."
    )
    assert (finding.case, finding.count, finding.rows) == ("Deck", 36, tuple(range(400, 420)))
    assert finding.values["jumps"][0] | {"expected": 0} == {"start": 1, "end": 5, "rows": 36, "expected": 0}
    for cure in ("errors of inspection", "visits that are missing", "merge ratings", "shorter intervals"):
        assert cure in finding.remedy
    step_by_step, jumps = decks.filter(pl.col("state_2") < 5), decks.filter(state_2=5)
    few = check_transitions(pl.concat([step_by_step] * 20 + [jumps[:10]]))
    assert only(few, "R110").severity is Severity.NOTE
    assert only(few, "R110").count == 10


@pytest.mark.parametrize("years", [1.0, 8.0])
def test_what_rates_alone_explain_is_no_jump_too_many(years):
    """Moves over several states in long intervals, drawn from the chain itself."""
    rows = plain().with_columns(interval_years=pl.lit(years))
    start = np.array([1] * 600 + [2] * 400 + [3] * 200)
    p = rekka.transition_probabilities([0.12, 0.1, 0.15, 0.2], years)[start - 1].cumsum(axis=1)
    end = 1 + (np.random.default_rng(0).random(start.size)[:, None] > p).sum(axis=1)
    drawn = rows[: start.size].with_columns(state_1=pl.Series(start), state_2=pl.Series(end))
    assert (end - start >= 2).sum() > 1
    assert "R110" not in codes(check_transitions(drawn))


def test_jumps_are_counted_where_a_rate_is_not_finite():
    """Nobody stays in state 2: only the rows that jump over it keep its rate finite, or nothing does."""
    found = codes(check_transitions(by_hand([1] * 60 + [2] * 30, [1] * 40 + [4] * 20 + [3] * 30)))
    assert {"R110", "R403"} <= found


def codes_of(rows, moves):
    """Codes of findings on so many rows without covariates, of which some leave the best state."""
    frame = pl.DataFrame({"bridge_id": map(str, range(rows)), "case": "Pier", "state_1": 1, "interval_years": 2.0})
    frame = frame.with_columns(state_2=1 + (pl.int_range(pl.len()) < moves).cast(pl.Int64))
    return {finding.code for finding in check_transitions(frame).findings}


def test_a_hundred_rows_are_no_small_case():
    assert "R404" in codes_of(99, 50)
    assert "R404" not in codes_of(100, 50)


def test_five_events_per_parameter_are_enough():
    assert "R401" in codes_of(100, 4)
    assert "R401" not in codes_of(100, 5)


def test_a_state_that_nobody_leaves_is_told_once():
    """Not as a separation, too, which it is."""
    frame = by_hand([1] * 60 + [2] * 30 + [3] * 30, [1] * 30 + [2] * 30 + [2] * 30 + [3] * 30).drop("x")
    codes = {finding.code for finding in check_transitions(frame).findings}
    assert "R104" in codes
    assert not codes & {"R402", "R403"}
