"""Known numbers beside this installation: green here, and red wherever a number is another."""

import copy
import json
import math
import re
from dataclasses import replace

import pytest
from verify_cases import BLOCKS, EXPECTED_OF_PAPER, INPUTS, SLOW

import rekka
from rekka.core.errors import BadOption, InputError
from rekka.core.language import LANGUAGES, load_words, say
from rekka.verification import engine, formulas, maxima, simulations
from rekka.verification.engine import KINDS, Comparison, compare, list_checks, load_numbers
from rekka.verification.results import CheckResult, run_check
from rekka.verification.verify import Verification, choose_checks

CHECKS = {check.name: check for check in list_checks()}
QUICK = [name for name in CHECKS if name not in SLOW]
ITEM = say("verify.item.rows")


@pytest.fixture(scope="module")
def quick():
    """Every check that takes less than a second or so, once."""
    numbers = load_numbers()
    return {name: run_check(CHECKS[name], numbers) for name in QUICK}


def wrap(results):
    return Verification(tuple(results), {"rekka": rekka.__version__}, {"cores": 2}, "2026-01-01T00:00:00+00:00")


# Green


@pytest.mark.parametrize("name", QUICK)
def test_this_installation_agrees(name, quick):
    result = quick[name]
    assert result.error is None
    assert [one for one in result.comparisons if not one.ok] == []
    assert result.comparisons


@pytest.mark.slow
def test_all_checks_agree():
    told = []
    found = rekka.verify(on_progress=lambda *now: told.append(now))
    assert found.ok, [one.check.name for one in found.failed]
    assert [one.check.name for one in found.results] == list(CHECKS)
    assert found.n_numbers == len(found.frame) > 350
    assert told[0] == ("One hazard", 0, len(CHECKS))
    assert len(told) == len(CHECKS)
    for one in found.frame.iter_rows(named=True):
        assert one["ok"]
    assert [one for result in found.results for one in result.comparisons if not turns_red(one)] == []


# Red


def turns_red(one: Comparison) -> bool:
    """Whether a comparison fails if any other number, or word, had been expected or computed."""
    if isinstance(one.expected, str):
        return not replace(one, expected="other").ok and not replace(one, got="other").ok
    scale = abs(one.expected) if one.relative and one.expected else 1.0
    shift = 3 * one.tolerance * scale or 1.0
    for part in (shift, -shift):
        if replace(one, expected=one.expected + part).ok or replace(one, got=one.got + part).ok:
            return False
    return not any(replace(one, got=value).ok for value in (math.nan, math.inf, -math.inf))


@pytest.mark.parametrize("name", QUICK)
def test_every_number_can_fail(name, quick):
    assert [one for one in quick[name].comparisons if not turns_red(one)] == []


@pytest.mark.parametrize("name", QUICK)
def test_tolerances_are_small_beside_the_numbers(name, quick):
    """A number that could be a tenth of itself off would show nothing; a word has no tolerance."""
    wide = {"misses", "bias"}  # two golden rows; means of 200 estimates beside the truth
    for one in quick[name].comparisons:
        if isinstance(one.expected, str):
            assert one.tolerance == 0.0
        elif one.expected and one.item["say"].rpartition(".")[2] not in wide:
            share = one.tolerance if one.relative else one.tolerance / abs(one.expected)
            assert share < 0.1, one


def list_leaves(block, path=()):
    """Paths of the numbers and words of a block that are expected of something."""
    if isinstance(block, dict):
        pairs = [(key, value) for key, value in block.items() if key not in INPUTS]
    elif isinstance(block, list):
        pairs = list(enumerate(block))
    else:
        return [path]
    return [leaf for key, value in pairs for leaf in list_leaves(value, (*path, key))]


def disturb(block, path):
    """The block with one leaf changed: a number by a fiftieth, a count by one, a word to another."""
    *way, last = path
    here = block
    for key in path:
        here = here[key]
    target = copy.deepcopy(block)
    place = target
    for key in way:
        place = place[key]
    if isinstance(here, int):
        place[last] = here + 1
    elif isinstance(here, float):
        place[last] = here * 1.02
    elif re.fullmatch(r"-?\d\.?\d*(e-?\d+)?|-?\d+\.\d+(e-?\d+)?", here):
        place[last] = str(float(here) * 1.02)
    else:
        place[last] = "other"
    return target


STORED = [name for name in QUICK if name in load_numbers() or name in BLOCKS]


@pytest.mark.parametrize("name", STORED)
def test_every_stored_number_is_compared(name):
    numbers = load_numbers()
    for key in BLOCKS.get(name, [name]):
        if name == "paper_hypotheses":
            leaves = [("hypotheses", code) for code in numbers[key]["hypotheses"]]
        elif name == "paper_slips":
            leaves = [leaf for leaf in list_leaves(numbers[key]) if leaf[0] != "hypotheses"]
        elif name == "psor_printed":
            leaves = [(part, k) for part in ("hazards", "months", "ten_months") for k in range(3)]
        else:
            leaves = list_leaves(numbers[key])
        assert leaves
        for leaf in leaves:
            changed = {**numbers, key: disturb(numbers[key], leaf)}
            assert not run_check(CHECKS[name], changed).ok, (key, leaf)


@pytest.mark.parametrize(("name", "blocks"), EXPECTED_OF_PAPER.items())
def test_every_printed_number_is_compared(name, blocks):
    """Totals, counts, means, medians and selected sets of the paper; parts and trials are what they come from."""
    numbers = load_numbers()
    for block in blocks:
        rows = numbers["paper"][block]["rows"]
        for row in rows:
            for place in range(1 if block != "methods" else len(rows[row])):
                changed = copy.deepcopy(dict(numbers))
                cell = changed["paper"][block]["rows"][row]
                was = cell[place]
                cell[place] = "max" if isinstance(was, str) else was + 1 if isinstance(was, int) else was * 1.02
                assert not run_check(CHECKS[name], changed).ok, (block, row, place)


def test_counts_and_moves_of_the_example_are_compared():
    numbers = load_numbers()
    for key in ("visits", "patients", "departures"):
        changed = {**numbers, "psor": {**numbers["psor"], key: numbers["psor"][key] + 1}}
        assert not run_check(CHECKS["psor_table"], changed).ok
    moved = copy.deepcopy(numbers["psor"])
    moved["moves"][0][1] -= 1
    moved["moves"][0][2] += 1
    assert not run_check(CHECKS["psor_table"], {**numbers, "psor": moved}).ok


def test_stored_counts_of_the_slow_checks_are_compared(monkeypatch):
    """As in the other test, with what is slow computed once: here from the stored numbers themselves."""
    stored = load_numbers()["coverage"]
    made = simulations.Covered(
        *(simulations.np.array(stored[key]) for key in ("held", "means")), stored["certified"], 1.0
    )
    monkeypatch.setattr(simulations, "count_covered", lambda: made)
    assert run_check(CHECKS["coverage"], load_numbers()).ok
    for leaf in list_leaves(stored):
        assert not run_check(CHECKS["coverage"], {"coverage": disturb(stored, leaf)}).ok, leaf
    fits = {name: maxima.fit(maxima.draw_oracle(name)) for name in maxima.ORACLES}
    monkeypatch.setattr(
        maxima, "fit", lambda rows: fits[{3: "three", 4: "four", 5: "five"}[rows.n_states] + "_states"]
    )
    values = {fit.n_states_: fit.log_likelihood_ for fit in fits.values()}
    beta = {fit.n_states_: simulations.np.column_stack([fit.intercept_, fit.coef_]) for fit in fits.values()}
    monkeypatch.setattr(maxima, "climb", lambda rows, start: (values[rows.n_states], beta[rows.n_states]))
    oracle = load_numbers()["oracle"]
    assert run_check(CHECKS["oracle"], load_numbers()).ok
    for leaf in list_leaves(oracle):
        assert not run_check(CHECKS["oracle"], {"oracle": disturb(oracle, leaf)}).ok, leaf


def test_the_second_optimizer_is_on_its_own(monkeypatch):
    """It ends at the same point without the model's code, which fails here as soon as it is called."""
    rows = maxima.draw_oracle("three_states")
    stored = load_numbers()["oracle"]["three_states"]["log_likelihood"]

    def refuse(*_, **__):
        raise AssertionError("the model's likelihood was called")

    monkeypatch.setattr("rekka.model.likelihood.Likelihood.evaluate", refuse)
    value, _ = formulas.climb(rows, formulas.first_rates(rows))
    assert value == pytest.approx(stored, abs=1e-8)


def test_a_check_that_cannot_be_computed_is_red():
    def broken(numbers):
        yield compare(ITEM, 1, 1)
        raise ValueError("hazards are not numbers")

    result = run_check(engine.RegisteredCheck("two_states", "probabilities", "formula", broken), {})
    assert not result.ok
    assert (len(result.comparisons), result.wrong) == (1, 1)
    assert result.error == "ValueError: hazards are not numbers"
    found = wrap([result])
    assert found.n_wrong == 1
    for lang in LANGUAGES:
        assert "ValueError: hazards are not numbers" in found.to_html(lang)
    assert found.to_dict()["checks"][0]["error"] == result.error


# Comparisons


@pytest.mark.parametrize(
    ("expected", "got", "options", "ok"),
    [
        (1.0, 1.0, {}, True),
        (1.0, 1.0 + 1e-15, {}, False),
        (100.0, 101.0, {"relative": 0.011}, True),
        (100.0, 101.0, {"relative": 0.009}, False),
        (0.0, 0.5, {"within": 0.6}, True),
        (1.0, math.nan, {"within": 10.0}, False),
        (1.0, math.inf, {"within": 10.0}, False),
        ("certified", "certified", {}, True),
        ("certified", "local_maximum", {"within": 10.0}, False),
        ("1", 1.0, {"within": 10.0}, False),
    ],
)
def test_numbers_are_compared(expected, got, options, ok):
    one = compare(ITEM, expected, got, **options)
    assert one.ok is ok
    assert (one.severity <= 1.0) is ok


def test_the_furthest_number_is_shown():
    some = (compare(ITEM, 1.0, 1.5, within=1.0), compare(ITEM, 2.0, 2.2, within=0.1), compare(ITEM, 3.0, 3.0))
    result = CheckResult(CHECKS["two_states"], some, 0.1)
    assert result.furthest is some[1]
    assert result.wrong == 1
    nan = compare(ITEM, 1.0, math.nan, within=1.0)
    assert CheckResult(CHECKS["two_states"], (*some, nan), 0.1).furthest is nan


# Registry and words


def test_every_check_has_a_source_and_its_words():
    assert {check.kind for check in CHECKS.values()} == set(KINDS)
    for lang in LANGUAGES:
        texts = load_words(lang).texts
        for check in CHECKS.values():
            for key in (f"check.{check.name}", f"source.{check.source}", f"reference.{check.source}"):
                assert texts[f"verify.{key}"], (lang, key)
        known = {key.split(".")[2] for key in texts if key.startswith("verify.check.")}
        assert known == set(CHECKS)
        sources = {check.source for check in CHECKS.values()}
        for part in ("source", "reference"):
            assert {key.split(".")[2] for key in texts if key.startswith(f"verify.{part}.")} == sources


def test_every_number_has_words(quick):
    asked = {one.item["say"] for result in quick.values() for one in result.comparisons}
    for lang in LANGUAGES:
        words = load_words(lang)
        for result in quick.values():
            for one in result.comparisons:
                assert words.format(one.item)
                for value in (one.expected, one.got):
                    assert not isinstance(value, str) or f"verify.value.{value}" in words.texts or "," in value or (
                        value in ("max", "minmax", "zscore", "boxcox")
                    )  # fmt: skip
    never = {key for key in load_words("en").texts if key.startswith("verify.item.")} - asked
    slow = ("intervals", "mean_estimate", "bias", "nominal", "sets_certified")
    slow += ("stored_maximum", "second_optimizer", "coefficients_apart")
    assert {key.rpartition(".")[2] for key in never} == set(slow)


def test_the_order_is_that_of_the_modules():
    """Checks of a kind are in one module, so that what is imported first does not change their order."""
    for kind in KINDS:
        homes = {check.run.__module__ for check in CHECKS.values() if check.kind == kind}
        assert len(homes) == 1, (kind, homes)
    assert [KINDS.index(check.kind) for check in CHECKS.values()] == sorted(
        KINDS.index(check.kind) for check in CHECKS.values()
    )


def test_a_name_is_registered_once():
    with pytest.raises(AssertionError, match="there is a check binomial already"):
        engine.verifies("binomial", "maxima", source="formula")
    with pytest.raises(AssertionError, match="guesses is no kind"):
        engine.verifies("new", "guesses", source="formula")


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("binomial", ["binomial"]),
        ("PAPER", [name for name in CHECKS if CHECKS[name].kind == "paper"]),
        ("near hazards", ["near_hazards"]),
        (["equal hazards", "gompertz"], ["equal_hazards", "running_clock"]),
        ("ゴンペルツ", ["running_clock"]),
    ],
)
def test_checks_are_chosen_by_words(only, found):
    assert [check.name for check in choose_checks(only)] == found


@pytest.mark.parametrize("only", ["no such check", "", []])
def test_words_that_name_no_check_are_refused(only):
    with pytest.raises(BadOption, match=r"no check and no kind has this in its name\. Kinds: probabilities,"):
        rekka.verify(only=only)


# What is stored


def test_numbers_are_small_and_say_how_they_were_made():
    numbers = load_numbers()
    assert len(json.dumps(dict(numbers))) < 100_000
    assert "msm 1.7" in numbers["psor"]["made"]
    for name in ("fifty_digits", "near_hazards", "extreme_hazards"):
        for case in numbers[name]:
            for p in case["p"].values():
                assert len(re.sub(r"e.*|\D", "", p).lstrip("0")) >= 49, p  # digits of the number itself


def test_rows_of_fifty_digits_sum_to_1():
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        for name in ("fifty_digits", "near_hazards", "extreme_hazards"):
            for case in load_numbers()[name]:
                assert abs(sum(map(Decimal, case["p"].values())) - 1) < Decimal("1e-48")


def test_rows_that_are_drawn_stay_the_same():
    """Python's generator: the same in every version, so that numbers of msm stay those of these rows."""
    rows = maxima.draw_oracle("four_states")
    assert rows.frame().head(2).rows() == [(1, 2, 1.0, 1.4, 1.75), (1, 1, 1.0, 5.5, 1.53)]
    assert len(rows.years) == 300


# Results


def test_the_frame_has_a_row_for_each_number(quick):
    found = wrap(quick.values())
    assert len(found.frame) == found.n_numbers == sum(len(one.comparisons) for one in quick.values())
    words = found.frame.filter(found.frame["check"] == "separation")
    assert words["expected"].null_count() == len(words) == 6
    assert words["expected_words"].to_list() == words["got_words"].to_list()
    numbers = found.frame.filter(found.frame["check"] == "binomial")
    assert numbers["expected"].null_count() == 0
    assert found.ok
    assert found.failed == ()


def test_plain_data(quick):
    found = wrap(quick.values())
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(data) == {"format", "version", "ok", "date", "seconds", "counts", "versions", "machine", "checks"}
    assert (data["format"], data["version"], data["ok"]) == ("rekka-verification", 1, True)
    assert data["counts"] == {"checks": len(quick), "numbers": found.n_numbers, "wrong": 0}
    for check in data["checks"]:
        assert set(check) == {"name", "kind", "title", "source", "ok", "seconds", "error", "numbers"}
        assert check["source"]
        assert check["seconds"] >= 0
        for one in check["numbers"]:
            assert set(one) == {"item", "expected", "got", "ok", "difference", "tolerance", "relative"}
            assert one["item"]
            assert type(one["expected"]) is type(one["got"])


def test_the_page_needs_nothing_else(quick):
    found = wrap(quick.values())
    for lang in LANGUAGES:
        page = found.to_html(lang)
        assert f'<html lang="{lang}"' in page
        assert "<script" not in page
        assert "http" not in re.sub(r'http-equiv="', "", page)
        assert page.count('class="verdict issue"') == 0
        assert page.count('class="verdict passed"') == len(quick) + found.n_numbers
        for check in (CHECKS[name] for name in QUICK):
            assert load_words(lang)(f"verify.check.{check.name}") in page
    assert "All " in found.to_html()
    assert "すべて一致" in found.to_html("ja")


def test_the_page_shows_what_differs(quick):
    results = list(quick.values())
    one = results[0].comparisons[3]
    results[0] = replace(results[0], comparisons=(replace(one, got=one.got + 1), *results[0].comparisons[1:]))
    found = wrap(results)
    assert not found.ok
    page = found.to_html()
    assert f"1 number of {found.n_numbers:,} DIFFER" in page
    assert page.count('class="verdict issue"') == 2  # the check and its number
    assert page.count('<details class="fold" open>') == 1


def test_files(tmp_path, quick):
    found = wrap(quick.values())
    page, numbers = found.write(tmp_path / "v.html"), found.write(tmp_path / "new" / "v.json")
    assert page.read_text("utf-8") == found.to_html()
    assert json.loads(numbers.read_text("utf-8")) == json.loads(json.dumps(found.to_dict()))
    found.write(page, "ja")  # an earlier one is written over
    assert 'lang="ja"' in page.read_text("utf-8")
    found.write(numbers)
    other = tmp_path / "other.html"
    other.write_text("<html>mine</html>", encoding="utf-8")
    with pytest.raises(InputError):
        found.write(other)
    with pytest.raises(BadOption, match=r"v\.txt is neither \.html nor \.json"):
        found.write(tmp_path / "v.txt")
    assert other.read_text("utf-8") == "<html>mine</html>"
