"""rekka: deterioration models you can trust, from infrastructure inspection records."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekka.checks.doctor import Diagnosis as Diagnosis
    from rekka.checks.doctor import check_transitions as check_transitions
    from rekka.core.errors import InputError as InputError
    from rekka.core.errors import RekkaError as RekkaError
    from rekka.data.audit import Audit as Audit
    from rekka.data.nbi import read_nbi as read_nbi
    from rekka.data.panel import Panel as Panel
    from rekka.data.panel import read_panel as read_panel
    from rekka.data.partition import Partition as Partition
    from rekka.data.partition import fold_bridges as fold_bridges
    from rekka.data.partition import partition_auto as partition_auto
    from rekka.data.partition import partition_by_bridge as partition_by_bridge
    from rekka.data.partition import partition_by_date as partition_by_date
    from rekka.data.partition import partition_paper as partition_paper
    from rekka.data.transitions import ReadingOptions as ReadingOptions
    from rekka.data.transitions import Transitions as Transitions
    from rekka.data.transitions import pair_visits as pair_visits
    from rekka.data.transitions import read_transitions as read_transitions
    from rekka.data.transitions import write_transitions as write_transitions
    from rekka.estimator import ExponentialHazardMarkovModel as ExponentialHazardMarkovModel
    from rekka.estimator import likelihood_ratio_test as likelihood_ratio_test
    from rekka.estimator import log_loss_scorer as log_loss_scorer
    from rekka.estimator import nested_models as nested_models
    from rekka.fleet.backtest import Backtest as Backtest
    from rekka.fleet.backtest import backtest as backtest
    from rekka.fleet.members import Members as Members
    from rekka.fleet.members import read_members as read_members
    from rekka.fleet.shocks import Shocks as Shocks
    from rekka.fleet.shocks import estimate_shocks as estimate_shocks
    from rekka.forecast.forecast import Forecast as Forecast
    from rekka.model.certificate import affine_agreement as affine_agreement
    from rekka.model.probabilities import transition_probabilities as transition_probabilities
    from rekka.report.charts.plots import Plots as Plots
    from rekka.report.report import Report as Report
    from rekka.report.report import make_report as make_report
    from rekka.report.report import write_report as write_report
    from rekka.scaling.transformer import CovariateScaler as CovariateScaler
    from rekka.simulation.inventory import Inventory as Inventory
    from rekka.simulation.inventory import simulate_inventory as simulate_inventory
    from rekka.simulation.inventory import write_inventory as write_inventory
    from rekka.simulation.rows import simulate_transitions as simulate_transitions
    from rekka.study.checks.registry import check_study as check_study
    from rekka.study.compare import compare as compare
    from rekka.study.compare import confirm as confirm
    from rekka.study.compare import load_study as load_study
    from rekka.study.compare import resume_study as resume_study
    from rekka.study.stability import Stability as Stability
    from rekka.study.stability import stability as stability
    from rekka.study.study import Study as Study
    from rekka.verification.verify import Verification as Verification
    from rekka.verification.verify import verify as verify
    from rekka.workflows.bridges import rank_bridges as rank_bridges
    from rekka.workflows.effects import measure_effects as measure_effects
    from rekka.workflows.fit import fit_components as fit_components
    from rekka.workflows.forecast import forecast_inventory as forecast_inventory
    from rekka.workflows.matrices import tabulate_matrices as tabulate_matrices
    from rekka.workflows.repairs import find_repairs as find_repairs

# Where each public name lives; loaded on first use, so that `import rekka` is instant.
_HOMES = {
    "Audit": "rekka.data.audit",
    "Backtest": "rekka.fleet.backtest",
    "CovariateScaler": "rekka.scaling.transformer",
    "Diagnosis": "rekka.checks.doctor",
    "ExponentialHazardMarkovModel": "rekka.estimator",
    "Forecast": "rekka.forecast.forecast",
    "InputError": "rekka.core.errors",
    "Inventory": "rekka.simulation.inventory",
    "Members": "rekka.fleet.members",
    "Panel": "rekka.data.panel",
    "Partition": "rekka.data.partition",
    "Plots": "rekka.report.charts.plots",
    "ReadingOptions": "rekka.data.transitions",
    "RekkaError": "rekka.core.errors",
    "Report": "rekka.report.report",
    "Shocks": "rekka.fleet.shocks",
    "Stability": "rekka.study.stability",
    "Study": "rekka.study.study",
    "Transitions": "rekka.data.transitions",
    "Verification": "rekka.verification.verify",
    "affine_agreement": "rekka.model.certificate",
    "backtest": "rekka.fleet.backtest",
    "check_study": "rekka.study.checks.registry",
    "check_transitions": "rekka.checks.doctor",
    "compare": "rekka.study.compare",
    "confirm": "rekka.study.compare",
    "estimate_shocks": "rekka.fleet.shocks",
    "find_repairs": "rekka.workflows.repairs",
    "fit_components": "rekka.workflows.fit",
    "fold_bridges": "rekka.data.partition",
    "forecast_inventory": "rekka.workflows.forecast",
    "likelihood_ratio_test": "rekka.estimator",
    "load_study": "rekka.study.compare",
    "log_loss_scorer": "rekka.estimator",
    "make_report": "rekka.report.report",
    "measure_effects": "rekka.workflows.effects",
    "nested_models": "rekka.estimator",
    "pair_visits": "rekka.data.transitions",
    "partition_auto": "rekka.data.partition",
    "partition_by_bridge": "rekka.data.partition",
    "partition_by_date": "rekka.data.partition",
    "partition_paper": "rekka.data.partition",
    "rank_bridges": "rekka.workflows.bridges",
    "read_members": "rekka.fleet.members",
    "read_nbi": "rekka.data.nbi",
    "read_panel": "rekka.data.panel",
    "read_transitions": "rekka.data.transitions",
    "resume_study": "rekka.study.compare",
    "simulate_inventory": "rekka.simulation.inventory",
    "simulate_transitions": "rekka.simulation.rows",
    "stability": "rekka.study.stability",
    "tabulate_matrices": "rekka.workflows.matrices",
    "transition_probabilities": "rekka.model.probabilities",
    "verify": "rekka.verification.verify",
    "write_inventory": "rekka.simulation.inventory",
    "write_report": "rekka.report.report",
    "write_transitions": "rekka.data.transitions",
}

# Names that go (docs/policy.md): old name -> (name to use instead, version that announced it, version without it).
_DEPRECATED: dict[str, tuple[str, str, str]] = {}

__version__ = "1.0.0"
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _DEPRECATED:
        new, since, until = _DEPRECATED[name]
        message = f"rekka.{name} is deprecated since {since} and goes in {until}. Use rekka.{new} instead."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module("rekka"), new)
    if name not in _HOMES:
        raise AttributeError(f"module 'rekka' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
