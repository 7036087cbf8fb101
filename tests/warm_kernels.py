"""Compile the kernels before the tests run, in one process: ``python tests/warm_kernels.py``.

Two workers of a test run would each compile them; here it can be done while the types are checked.
"""

import rekka
from rekka.model.fit import Options
from rekka.model.likelihood import compile_kernels
from rekka.streaming.blocks import FrameSource, Reading
from rekka.streaming.fit import fit_source


def warm() -> None:
    """Use what is compiled: reading, fitting both ways, forecasting with intervals."""
    rekka.pair_visits(rekka.read_panel(rekka.simulate_inventory(20, preset="plain").inspections))
    compile_kernels()
    rows = rekka.simulate_transitions(400)
    names = ["age_at_inspection_1"]
    rekka.ExponentialHazardMarkovModel(
        solver="lbfgs", gradient="numeric", likelihood="paper", covariates=names, max_iter=2
    ).fit(rows, rows["state_2"])
    model = rekka.ExponentialHazardMarkovModel(covariates=names).fit(rows, rows["state_2"])
    model.predict_proba(rows)
    model.forecast({names[0]: 20.0}, years=[1, 2], intervals="delta")
    model.years_to_reach(3, {names[0]: 20.0})
    reading = Reading("state_1", "state_2", "interval_years", ("age_at_inspection_1",), group="bridge_id")
    fit_source(FrameSource(rows, reading), Options(), clustered=True)


if __name__ == "__main__":
    warm()
