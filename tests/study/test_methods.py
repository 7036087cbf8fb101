"""ridge and pooled as methods of a study: what they estimate is estimated from the rows they are fitted on."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption
from rekka.evaluation.resampling import folds
from rekka.evaluation.ridge import choose_ridge
from rekka.model.fit import Options
from rekka.scaling.registry import METHODS
from rekka.study.plan import (
    POOLED,
    RIDGE,
    SHRINKING,
    PartitionPlan,
    TrialPlan,
    check_method,
    choose_options,
    is_affine,
    leave_out,
    model_of,
)
from rekka.study.rows import split_rows
from rekka.study.runner import open_cases
from rekka.study.trial import Key, refitting

CASES = ("Pier", "Deck slab", "Bearing")
QUICK = {"guard": {"resamples": 2}, "select_on": "validation"}


@pytest.fixture(scope="module")
def study() -> rekka.Study:
    return rekka.compare(draw_rows(CASES, n=80), methods=["zscore", *SHRINKING], **QUICK)


def case_rows(name: str = "Pier"):
    plan = TrialPlan(methods=("zscore", POOLED))
    rows = split_rows(draw_rows(CASES, n=80), PartitionPlan(), plan)
    return open_cases(plan, rows)(name)


def test_names():
    for method in (*METHODS, *SHRINKING):
        check_method(method)
    with pytest.raises(BadOption):
        check_method("rigde")
    assert [model_of(method) for method in ("max", "ridge", "pooled")] == ["affine", "ridge", "pooled"]
    assert is_affine("zscore")
    assert not is_affine("ridge")


def test_they_are_certified_and_shrink(study):
    trials = study.trials.filter(pl.col("method").is_in(SHRINKING))
    assert trials["certified"].all()
    for case in CASES:
        plain, ridge, pooled = (study.model(case, method) for method in ("zscore", *SHRINKING))
        assert ridge.ridge > 0 or ridge.prior is not None
        assert pooled.prior is not None
        assert np.abs(ridge.scaled_coef_).sum() < np.abs(plain.scaled_coef_).sum()
        assert pooled.log_likelihood_ <= plain.log_likelihood_ + 1e-9


def test_a_model_file_refits_to_itself(study):
    rows = draw_rows(("Pier",), n=80).filter(part="train")
    for method in SHRINKING:
        model = study.model("Pier", method)
        again = rekka.ExponentialHazardMarkovModel(**model.get_params()).fit(rows, rows["state_2"])
        assert again.coef_ == pytest.approx(model.coef_, rel=1e-6, abs=1e-9)


def test_the_ridge_is_that_of_the_training_rows(study):
    rows = case_rows()
    chosen = choose_ridge(rows.training, Options(scaling="zscore"), seed=study.plan.study.seed)
    assert study.model("Pier", "ridge").ridge == chosen.options.ridge


def test_pooled_leaves_out_the_bridges_that_are_held_out():
    """Rows of a held-out bridge in other cases change nothing."""
    rows = case_rows()
    key = Key(case="Pier", preset="exact", method=POOLED)
    sample = rows.sample("folds")[0]
    outside, inside = next(iter(folds(sample.bridge, 5, 1)))
    held_out = np.unique(sample.bridge[inside])
    spoiled = {name: one.take(np.arange(len(one))) for name, one in rows.others.items()}
    for one in spoiled.values():
        one.x[np.isin(one.bridge, held_out)] *= 7.0
    assert sum(np.isin(one.bridge, held_out).sum() for one in rows.others.values()) > 0
    other = dataclasses.replace(rows, others=spoiled)
    vars(other)["pooling"] = rows.pooling  # the same place to start from
    ours, theirs = (refitting(one, key, 1)(sample.take(outside)).beta for one in (rows, other))
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_leaving_out():
    rows = case_rows()
    name, one = next(iter(rows.others.items()))
    left = leave_out(rows.others, one.bridge[:1])[name]
    assert len(left) == (one.bridge != one.bridge[0]).sum()


def test_pooled_alone_is_refused_with_a_reason():
    study = rekka.compare(draw_rows(("Pier",), n=80), methods=["zscore", "pooled"], **QUICK)
    row = study.trials.filter(method="pooled").row(0, named=True)
    assert row["status"] == "not fitted"
    assert "borrows from the other components" in row["reason"]


def test_a_ridge_that_was_chosen_is_kept():
    sample = case_rows().training
    assert choose_options(RIDGE, sample, {}, 1, {"solver": "newton"}, ridge=3.0).ridge == 3.0


def test_small_is_a_group():
    from rekka.study.compare import GROUPS

    assert GROUPS["small"] == SHRINKING
