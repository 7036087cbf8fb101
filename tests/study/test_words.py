from rekka.core.errors import name_rows, name_some
from rekka.study.explanations import list_names, name_trials


def test_names_are_listed_and_many_are_counted():
    assert list_names([]) == ""
    assert list_names("ab") == "a, b"
    assert list_names("abcdefgh") == "a, b, c, d, e, f and 2 more"


def test_trials_are_named_by_methods_that_share_their_cases():
    trials = [("Pier", "max"), ("Pier", "minmax"), ("Deck", "max"), ("Deck", "minmax"), ("Pier", "boxcox")]
    assert name_trials(trials) == "max, minmax in Pier, Deck; boxcox in Pier"


def test_as_many_as_are_shown_are_all_there():
    assert (name_some("abc", 3), name_some("abcd", 3)) == ("a, b, c", "a, b, c and 1 more")
    assert (name_rows([1, 2], 2), name_rows([1, 2, 3], 2)) == ("rows 1, 2", "rows 1, 2, ...")
