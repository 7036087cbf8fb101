"""An operator of one's own, as docs/study.md shows it: one class and one registration."""

from dataclasses import dataclass

import numpy as np
import pytest
from scaling_cases import NAMES, X

import rekka
from rekka.core.errors import BadOption, OutsideTrainingRange
from rekka.model.fit import Options
from rekka.scaling.operators import ColumnScaling
from rekka.scaling.registry import REGISTRY, fit_scaling, fits_in_blocks, is_affine, register
from rekka.scaling.serial import read_scaling, scaling_to_json
from rekka.simulation.rows import COVARIATES, simulate_transitions
from rekka.streaming.blocks import FrameSource, Reading
from rekka.streaming.fit import fit_source


@dataclass(frozen=True, eq=False)
class RootScaling(ColumnScaling):
    """z = sqrt(x - low)."""

    kind = "root"

    def forward(self, x):
        return np.sqrt(x - self.low)

    def backward(self, z):
        return z**2 + self.low


def fit_root(rows):
    return RootScaling("root", rows.names, rows.low, rows.high)


@pytest.fixture(autouse=True)
def root():
    register("root", fit_root, RootScaling)
    yield
    REGISTRY.pop("root")


def test_it_is_fitted_chained_and_undone():
    fitted = fit_scaling("root+zscore", X, NAMES)
    root = np.sqrt(X - X.min(axis=0))
    np.testing.assert_allclose(fitted.transform(X), (root - root.mean(axis=0)) / root.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(fitted.inverse(fitted.transform(X)), X, rtol=1e-9)
    assert not is_affine("root")


def test_it_is_written_and_read():
    for method in ("root", "root+zscore"):
        fitted = fit_scaling(method, X, NAMES)
        assert read_scaling(scaling_to_json(fitted)).scaling == fitted
    assert rekka.CovariateScaler.from_json(rekka.CovariateScaler("root").fit(X).to_json()).method == "root"


def test_a_value_that_it_cannot_take_is_refused():
    with pytest.raises(OutsideTrainingRange, match="root cannot transform age"):
        fit_scaling("root", X, NAMES).transform(X - 1e6)


def test_a_model_is_fitted_saved_and_loaded():
    rows = simulate_transitions(800, seed=4)
    model = rekka.ExponentialHazardMarkovModel(scaling="root+zscore")
    x = rows.select("state_1", "interval_years", *COVARIATES)
    model.fit(x, rows["state_2"])
    again = rekka.ExponentialHazardMarkovModel.from_json(model.to_json())
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_it_is_fitted_in_blocks_unless_it_needs_the_rows():
    rows = simulate_transitions(800, seed=4)
    names = ("state_1", "state_2", "interval_years", COVARIATES)
    source = FrameSource(rows, Reading(*names), 1, 300)
    fitted = fit_source(source, Options(scaling="root+zscore")).scaling
    assert fitted.method == "root+zscore"
    expected = fit_scaling("root+zscore", rows.select(COVARIATES).to_numpy(), COVARIATES)
    pairs = fitted.links[1].offset[1:], expected.links[1].offset[1:]  # ages are those of the middle of intervals
    np.testing.assert_allclose(*pairs, rtol=1e-12)
    assert fits_in_blocks("root+zscore")
    register("whole", fit_root, RootScaling, rows_in_memory=True)
    try:
        assert not fits_in_blocks("zscore+whole")
        with pytest.raises(BadOption, match="'zscore\\+whole', which needs all rows in memory at once"):
            fit_source(source, Options(scaling="zscore+whole"))
    finally:
        REGISTRY.pop("whole")


@pytest.mark.parametrize("name", ["zscore", "none", "a+b"])
def test_a_name_is_registered_once(name):
    with pytest.raises(ValueError, match="registered already, or is no name"):
        register(name, fit_root, RootScaling)
