"""Plans: checked, kept as TOML, compared."""

import datetime

import pytest

from rekka.core.errors import BadOption, InputError
from rekka.core.folders import seal
from rekka.study.compare import BOTH, Request, _change
from rekka.study.plan import LATER, PRESETS, StudyPlan, make_plan, read_plan
from rekka.study.run_folder import mark_run


def full_plan() -> StudyPlan:
    return make_plan(
        data={
            "source": "../träffic 二.csv",
            "mapping": {"columns": {"bridge": "no"}, "join": [{"file": "b.csv"}]},
        },
        partition={"scheme": "date", "until": "2014-03-31", "seed": 3},
        study={
            "methods": ["zscore", "boxcox+zscore"],
            "presets": ["paper", "exact"],
            "cases": ["Pier", 'a "b" \\ \n 🌉'],
            "covariates": [],
            "cost": "seconds",
            "repeats": 3,
        },
    )


@pytest.mark.parametrize("plan", [make_plan(), full_plan()], ids=["default", "full"])
def test_a_plan_comes_back_from_its_file(tmp_path, plan):
    file = tmp_path / "study.toml"
    file.write_text(plan.to_toml(), encoding="utf-8")
    assert read_plan(file) == plan
    assert plan.differences(read_plan(file)) == []


def test_a_plan_comes_back_from_json():
    assert make_plan("provenance", **full_plan().model_dump(mode="json")) == full_plan()


def test_nothing_said_is_the_built_in_inventory():
    plan = make_plan()
    assert plan.data.kind == "inventory"
    assert plan.study.presets == ("exact",)
    assert plan.study.costs() == {"exact": "evaluations"}
    assert full_plan().study.costs() == {"paper": "seconds", "exact": "seconds"}
    assert full_plan().partition.until == datetime.date(2014, 3, 31)


def test_tables_need_no_kind_and_one_needs_no_list():
    assert full_plan().data.kind == "tables"
    assert full_plan().data.source == ("../träffic 二.csv",)


def test_differences_are_named():
    other = make_plan(study={"seed": 5, "methods": ["zscore"], "cases": ["Pier"]})
    assert make_plan().differences(other) == [
        "study.methods was max, minmax, zscore, boxcox, is zscore",
        "study.cases was not given, is Pier",
        "study.seed was 20260924, is 5",
    ]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"study": {"methods": ["zscor"]}}, "zscor.*Did you mean zscore"),
        ({"study": {"methods": []}}, "methods is empty"),
        ({"study": {"cases": []}}, "cases is empty"),
        ({"study": {"methods": ["max", "max"]}}, "max is named twice"),
        (
            {"study": {"presets": ["papers"]}},
            "preset is 'papers'; it can be exact, paper, both. Did you mean paper",
        ),
        ({"study": {"cost": "money"}}, "cost is 'money'; it can be auto, seconds, evaluations"),
        ({"study": {"repeats": 0}}, "study.repeats is 0; a number of at least 1 is needed"),
        ({"study": {"seed": -1}}, "study.seed"),
        ({"study": {"colour": 1}}, "study.colour is not known. study can hold methods, presets"),
        ({"study": {"methode": ["max"]}}, "Did you mean methods"),
        ({"stody": {}}, "stody is not known. A study can hold format, version, data, partition, study, guard"),
        (
            {"partition": {"scheme": "dates", "until": "2014-01-01"}},
            "auto, paper, bridge, date, given. Did you mean",
        ),
        (
            {"partition": {"scheme": "date"}},
            "scheme = 'date' and until, the last day of training, belong together",
        ),
        ({"partition": {"until": "2014-01-01"}}, "belong together"),
        ({"partition": {"scheme": "date", "until": "yesterday"}}, "partition.until"),
        ({"data": {"kind": "tables"}}, "kind = 'tables' does not go with 0 tables"),
        ({"data": {"kind": "given", "source": "a.csv"}}, "kind = 'given' does not go with 1 table as source"),
        ({"data": {"source": ["a.csv", "b.csv"]}}, "only nbi = true reads"),
        ({"data": {"source": "a", "nbi": True, "mapping": {"columns": {}}}}, "its rules are all it takes"),
        ({"data": 3}, "data"),
        ({"version": 4}, "version is 4; it can be 3"),
    ],
)
def test_a_wrong_plan_is_refused_with_what_it_can_be(sections, message):
    with pytest.raises(BadOption, match=message):
        make_plan("study.toml", **sections)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its format is None, not 'rekka-study'"),
        (b"[columns]\nbridge = 'no'\n", "A mapping goes with --mapping"),
        (b"format = ", "s.toml is not TOML"),
        (b"\xff\xfe", "s.toml is not TOML"),
        (b"format = 'rekka-study'\nmethods = 1\n", "s.toml: methods is not known"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path, content, message):
    file = tmp_path / "s.toml"
    file.write_bytes(content)
    with pytest.raises(BadOption, match=message):
        read_plan(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"There is no study file none\.toml"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match=r"folder\.toml cannot be read"):
        read_plan(tmp_path / "folder.toml")


def test_a_byte_order_mark_is_no_matter(tmp_path):
    (tmp_path / "s.toml").write_bytes(b"\xef\xbb\xbf" + make_plan().to_toml().encode())
    assert read_plan(tmp_path / "s.toml") == make_plan()


def test_presets_are_the_papers_conditions_and_ours():
    assert PRESETS["paper"].options == {
        "solver": "lbfgs", "gradient": "numeric", "likelihood": "paper", "max_iter": 500,
    }  # fmt: skip
    assert PRESETS["exact"].eligible == "certified"


def test_the_clock_is_that_of_the_presets_and_can_be_named():
    clocks = {
        presets: make_plan(study={"presets": presets}).study.clock for presets in (("exact",), ("paper",), BOTH)
    }
    assert clocks == {("exact",): "middle", ("paper",): "start", BOTH: "start"}
    assert make_plan().study.clock == "middle"
    assert make_plan(study={"presets": BOTH, "clock": "middle"}).study.clock == "middle"
    with pytest.raises(BadOption, match=r"clock is 'end'; it can be middle, start\."):
        make_plan(study={"clock": "end"})


def test_a_plan_from_before_there_was_a_clock_has_the_start_and_its_run_the_same_mark(tmp_path):
    today = make_plan(study={"clock": "start"}).to_toml().replace('clock = "start"\n', "")
    text = today.replace("version = 3\n", "version = 2\n")
    assert "clock" not in text
    assert text != today
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    plan = read_plan(file)
    assert plan.study.clock == "start"
    before = {name: value for name, value in plan.study.model_dump(mode="json").items() if name not in LATER}
    guard = plan.guard.model_dump(mode="json", exclude={"ladder"})
    assert mark_run(plan, "0" * 64) == seal(["0" * 64, before, guard])
    assert mark_run(make_plan(), "0" * 64) != mark_run(plan, "0" * 64)
    assert plan == make_plan(study={"clock": "start"})
    file.write_text(text.replace("version = 2\n", "version = 1\n"), encoding="utf-8")
    assert read_plan(file).study.clock == "start"
    for line in ("", "version = 3\n"):  # by hand, today: a version line makes no difference
        file.write_text(text.replace("version = 2\n", line), encoding="utf-8")
        assert read_plan(file) == make_plan()
        assert read_plan(file).study.clock == "middle"


def test_other_presets_on_top_of_a_plan_bring_their_clock(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(make_plan().to_toml(), encoding="utf-8")
    plan = read_plan(file)
    assert _change(plan, Request(options={"study": {"presets": ("both",)}})).study.clock == "start"
    assert _change(plan, Request(options={"study": {"presets": ("exact",)}})).study.clock == "middle"
    asked = {"presets": ("both",), "clock": "middle"}
    assert _change(plan, Request(options={"study": asked})).study.clock == "middle"
