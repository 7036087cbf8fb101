"""What all verbs share: every option of a command is a parameter of the function that it calls."""

import doctest
import inspect

import pytest

import rekka
from rekka.commands import backtest, effects, fit, forecast, matrix, report, stability
from rekka.fleet.eligibility import InventoryOptions
from rekka.report.report import make_report
from rekka.workflows import effects as measuring
from rekka.workflows import fit as fitting
from rekka.workflows import forecast as forecasting
from rekka.workflows import matrices

FLAGS = {
    "fit": (fit.FLAGS, rekka.fit_components),
    "forecast": (forecast.FLAGS, rekka.forecast_inventory, InventoryOptions),
    "matrix": (matrix.FLAGS, rekka.tabulate_matrices),
    "effects": (effects.FLAGS, rekka.measure_effects),
    "backtest": (backtest.FLAGS, rekka.backtest),
    "stability": (stability.FLAGS, rekka.stability),
    "report": (report.FLAGS, rekka.write_report, make_report),
}


@pytest.mark.parametrize("name", FLAGS)
def test_every_option_is_a_parameter_with_the_same_default(name):
    flags, *functions = FLAGS[name]
    known = {one.name: one for function in functions for one in inspect.signature(function).parameters.values()}
    for flag in flags:
        assert flag.place in known, flag.name
        if flag.default is not None and flag.read is None:
            assert known[flag.place].default == flag.default, flag.name


@pytest.mark.parametrize("module", [fitting, forecasting, matrices, measuring])
def test_examples_in_docstrings_hold(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed
