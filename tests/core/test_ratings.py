"""Ratings: names of states in the user's own labels, and states by their names."""

import pytest

from rekka.core.errors import BadOption
from rekka.core.language import load_words
from rekka.core.ratings import Ratings, name_groups, plain_labels

NBI = Ratings(tuple("9876543"))
GROUPED = Ratings(("8 or above", "7", "6", "5", "4 or below"))
OLD = Ratings(("9/8", "7", "6", "5", "4/3/2/1/0"))  # as model files of earlier versions name them
CLASSES = Ratings(("7 or above", "5 to 6", "4 or below"))
BANDS = Ratings(("85 and above", "75 to 85", "70 to 75", "60 to 70", "below 60"))
DAMAGE = Ratings(("below 5", "5 to 10", "10 to 20", "20 and above"))
ROMAN = Ratings(("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ"))
LETTERS = Ratings(tuple("abcde"))
RANKS = Ratings.of(None, 5)
FIVE_TO_ONE = Ratings(tuple("54321"))
WORDS = Ratings(("alpha", "beta", "gamma", "delta"))


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ([["9", "8"], ["7"], ["6", "5"], ["4", "3", "2", "1", "0"]], ("8 or above", "7", "5 to 6", "4 or below")),
        ([["1", "2"], ["3"], ["4", "5"]], ("2 or below", "3", "4 or above")),
        ([["9", "7"], ["6"], ["4", "3"]], ("9/7", "6", "4 or below")),
        ([["a", "b"], ["c"]], ("a/b", "c")),
        ([["1"], ["3", "2"]], ("1", "3/2")),  # neither rising nor falling
        ([["9"], ["8"]], ("9", "8")),
    ],
)
def test_groups_of_numbers_are_named_by_their_ends(groups, names):
    assert name_groups(groups) == names


def test_labels_of_earlier_versions_are_the_same_labels():
    assert plain_labels(OLD.labels) == plain_labels(GROUPED.labels)
    assert plain_labels(("Ⅰ", " II ", "03")) == ("i", "ii", "3")
    assert plain_labels(NBI.labels) != plain_labels(GROUPED.labels)


@pytest.mark.parametrize(
    ("ratings", "state", "name", "worse"),
    [
        (NBI, 6, "4", "Poor (4 or below)"),
        (NBI, 4, "6", "Fair or Poor (6 or below)"),
        (NBI, 5, "5", "5 or below"),
        (GROUPED, 5, "Poor (4 or below)", "Poor (4 or below)"),
        (OLD, 5, "Poor (4 or below)", "Poor (4 or below)"),
        (CLASSES, 2, "Fair (5 to 6)", "Fair or Poor (6 or below)"),
        (CLASSES, 1, "Good (7 or above)", "Good (7 or above)"),
        (BANDS, 4, "60 to 70", "below 70"),
        (BANDS, 5, "below 60", "below 60"),
        (DAMAGE, 2, "5 to 10", "5 and above"),
        (DAMAGE, 4, "20 and above", "20 and above"),
        (ROMAN, 3, "Ⅲ", "Ⅲ or worse"),
        (LETTERS, 4, "d", "d or worse"),
        (RANKS, 4, "4", "4 or worse"),
        (FIVE_TO_ONE, 4, "2", "2 or below"),  # no classes: the scale is not 9 to 0
        (WORDS, 2, "beta", "beta or worse"),
        (RANKS, 9, "9", "9 or worse"),  # beyond the labels
    ],
)
def test_a_state_in_words(ratings, state, name, worse):
    assert (ratings.name(state), ratings.or_worse(state)) == (name, worse)
    assert ratings.phrase(state) == f"rating {name}"


@pytest.mark.parametrize(
    ("ratings", "asked", "state"),
    [
        (NBI, "4", 6), (NBI, "Poor", 6), (NBI, "poor", 6), (NBI, "Fair", 4), (NBI, "4 or below", 6), (NBI, 4, 4),
        (GROUPED, "4", 5), (GROUPED, "Poor", 5), (GROUPED, "Poor (4 or below)", 5), (GROUPED, "8", None),
        (OLD, "4/3/2/1/0", 5), (OLD, "Poor", 5), (OLD, "4", 5),
        (BANDS, "below 70", 4), (BANDS, "60 to 70", 4), (BANDS, "70", 4), (BANDS, "4", 4), (DAMAGE, "5 and above", 2),
        (ROMAN, "Ⅲ", 3), (ROMAN, "III", 3), (ROMAN, "iii", 3), (ROMAN, "3", 3),
        (LETTERS, "D", 4), (LETTERS, "d or worse", 4), (LETTERS, "rating d", 4), (LETTERS, "4", 4), (LETTERS, 4, 4),
        (RANKS, "4", 4), (RANKS, "04", 4), (WORDS, "GAMMA", 3),
    ],
)  # fmt: skip
def test_a_state_is_found_by_its_label(ratings, asked, state):
    if state is None:  # of "8 or above" 8 is the lowest: 8 or worse would be a part of it
        with pytest.raises(BadOption, match="8 is within '8 or above', which is one rating here"):
            ratings.find(asked)
    else:
        assert ratings.find(asked) == state


def test_a_member_starts_in_the_group_of_its_number():
    assert [GROUPED.find(asked, "start") for asked in ("9", "8", "7", "4", "2")] == [1, 1, 2, 5, 5]


@pytest.mark.parametrize(
    ("ratings", "asked", "sentence"),
    [
        (
            NBI,
            "2",
            r"threshold is '2'. The ratings are 9, 8, 7, 6, 5, 4, 3, best first; Good, Fair, Poor are known",
        ),
        (GROUPED, "3", r"3 is within '4 or below', which is one rating here"),
        (LETTERS, "f", r"threshold is 'f'. The ratings are a, b, c, d, e, best first"),
        (WORDS, "gama", r"Did you mean gamma\?"),
        (Ratings(("9", "5 to 8", "4 or below")), "Fair", r"threshold is 'Fair'"),  # 5 to 8 is partly Good
        (LETTERS, 6, r"threshold is 6; a state from 1 to 5, or its label, is needed"),
        (LETTERS, True, r"threshold is True; a state from 1 to 5"),
        (LETTERS, "a", r"threshold is 'a', the best rating, which every member has reached"),
    ],
)
def test_what_is_no_rating_is_refused(ratings, asked, sentence):
    with pytest.raises(BadOption, match=sentence):
        ratings.choose_threshold(asked)


@pytest.mark.parametrize(
    ("ratings", "state", "told"),
    [
        (NBI, 6, "threshold: rating Poor (4 or below), the 6th of 7 ratings; the default where ratings run from 9 to 0"),
        (Ratings(tuple("98765")), 5, "threshold: rating 5 or below, the 5th of 5 ratings; the default, the worst rating"),
        (ROMAN, 3, "threshold: rating Ⅲ or worse, the 3rd of 4 ratings; the default of Ⅰ to Ⅳ"),
        (Ratings(("I", "II", "III", "IV", "V")), 4, "threshold: rating IV or worse, the 4th of 5 ratings; the default, "
         "the 4th rating"),
        (LETTERS, 4, "threshold: rating d or worse, the 4th of 5 ratings; the default, the 4th rating"),
        (Ratings(("good", "fair")), 2, "threshold: rating fair or worse, the 2nd of 2 ratings; the default, the worst "
         "rating"),
        (BANDS, 4, "threshold: rating below 70, the 4th of 5 ratings; the default, the 4th rating"),
        (RANKS, 4, ""),
        (Ratings.of(None, 3), 3, ""),
    ],
)  # fmt: skip
def test_the_default_threshold_is_that_of_the_scale(ratings, state, told):
    assert ratings.choose_threshold(None) == ratings.default_threshold == state
    assert ratings.explain_threshold(state) == told
    assert ratings.explain_threshold(state, given=True) == told.partition(";")[0]


def test_sentences_of_a_fit_are_reworded():
    told = "states 1, 2: no row leaves; start state 3 went from state 1 to 3 over 2 years; a state; estate 4; state 1.5"
    assert WORDS.reword(told) == (
        "ratings alpha, beta: no row leaves; start rating gamma went from rating alpha to gamma over 2 years; a state; "
        "estate 4; state 1.5"
    )
    said = {"say": "state 1", "facts": ["State 2 is rare", {"n": 3}]}
    assert WORDS.reword_all(said) == {"say": "state 1", "facts": ["Rating beta is rare", {"n": 3}]}


def test_japanese_has_its_own_words():
    words = load_words("ja")
    told = [ROMAN.phrase_or_worse(state, words) for state in (2, 3, 4)]
    assert told == ["判定区分Ⅱ～Ⅳ", "判定区分Ⅲ・Ⅳ", "判定区分Ⅳ"]  # not 以上, which may be the better side
    assert LETTERS.rated(2, words) == f"健全度b～{LETTERS.labels[-1]}"
    assert GROUPED.phrase_or_worse(1, words).endswith("以上")
    assert LETTERS.phrase(3, words) == "健全度c"
    assert GROUPED.or_worse(5, words) == "Poor（4以下）"
    assert BANDS.name(1, words) == "85以上"
    assert BANDS.or_worse(4, words) == "70未満"
    assert words.format(ROMAN.said([2, 3])) == "判定区分Ⅱ、Ⅲ"
    assert load_words("en").format(GROUPED.said([5], first=True)) == "Rating Poor (4 or below)"


@pytest.mark.parametrize(
    ("ratings", "mean"), [(NBI, 7.5), (FIVE_TO_ONE, 3.5), (RANKS, 2.5), (LETTERS, 2.5), (GROUPED, 2.5)]
)
def test_a_mean_is_in_the_numbers_of_the_ratings(ratings, mean):
    assert ratings.mean(2.5) == mean
