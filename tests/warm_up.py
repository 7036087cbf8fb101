"""Compile before the tests run: ``python tests/warm_up.py``.

Each worker of a test run would compile all kernels, all tests and all modules that they import; here each of three
processes compiles a part.
"""

import contextlib
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def warm_fits() -> None:
    """Use what reading and fitting compile: on rows in memory, in blocks, and by a family's own chain rule."""
    import numpy as np

    import rekka
    from rekka.model import kernel
    from rekka.model.fit import Options
    from rekka.model.likelihood import compile_kernels
    from rekka.streaming.blocks import FrameSource, Reading
    from rekka.streaming.fit import fit_source

    rekka.pair_visits(rekka.read_panel(rekka.simulate_inventory(20, preset="plain").inspections))
    compile_kernels()
    rows = rekka.simulate_transitions(400)
    names = ["age_at_inspection_1"]
    rekka.ExponentialHazardMarkovModel(
        solver="lbfgs", gradient="numeric", likelihood="paper", covariates=names, max_iter=2
    ).fit(rows, rows["state_2"])
    model = rekka.ExponentialHazardMarkovModel(covariates=names).fit(rows, rows["state_2"])
    model.predict_proba(rows)
    rekka.ExponentialHazardMarkovModel(covariates=names, errors="adjacent", threads=1).fit(rows, rows["state_2"])
    reading = Reading("state_1", "state_2", "interval_years", ("age_at_inspection_1",), group="bridge_id")
    fit_source(FrameSource(rows, reading), Options(), clustered=True)
    states = np.zeros(1, np.int64)
    kernel.log_probability_rows(
        np.zeros((1, 1)), np.ones(1), states, states, 2, np.ones((1, 1)), np.ones((1, 1, 1))
    )


def warm_steps() -> None:
    """Use what forecasts compile: each of the steps."""
    import numpy as np

    from rekka.model.family import EXPONENTIAL

    p, theta, h = np.array([[1.0, 0.0]]), np.ones((1, 1)), np.ones(1)
    EXPONENTIAL.step(p, theta, h)
    EXPONENTIAL.step_integrated(p, theta, h, np.zeros((1, 2)))
    EXPONENTIAL.step_sloped(p, np.zeros((1, 1, 1, 2)), theta, h, np.ones((1, 1)))
    EXPONENTIAL.cross(np.array([[1.0, 0.0]]), theta, h, 1, 0.5)


def warm_tests() -> None:
    """Collect all tests: Python then has what they and their imports compile to."""
    import pytest

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["--collect-only", "-q"])


if __name__ == "__main__":
    with ProcessPoolExecutor(3) as pool:
        for part in [pool.submit(warm) for warm in (warm_fits, warm_tests, warm_steps)]:
            part.result()
