"""Methods and columns that the tests of scaling share."""

import numpy as np

from rekka.scaling.registry import BEYOND, METHODS, REGISTRY

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.gamma(2, 10, 80), RNG.normal(5, 30, 80), np.exp(RNG.normal(9, 1, 80))])
NAMES = ("age", "offset", "traffic")
# Whatever is registered is here, so a new operator is tested by existing.
EVERY = tuple(dict.fromkeys([*REGISTRY, *METHODS, *BEYOND, "minmax+zscore", "robust+log+minmax"]))

FLAT_PEAK = [15013173, 15524598.84, 16145110.08, 16282314.86, 15850144.66, 15798809.06, 15893406.71, 16642285.24,
             16673532.39, 15305571.37, 14797627.54, 15167733.04, 16111390.71, 15345859.54, 15099945.71, 15214866.11,
             15859518.1, 17425665.02]  # fmt: skip
YEARS = [2003.0, 1950.0, 1997.0, 2000.0, 2009.0, 2009.0, 1980.0, 1999.0, 2007.0, 1991.0]
HARD = {
    "1e15 +- 1": [1e15, 1e15 + 1, 1e15 - 1] * 10,
    "1e300": [1e300, 1.2e300, 1.9e300, 1.4e300, 1.5e300],
    "both ends": [-1e308, 1e308, 0.0, 1e307],
    "mostly at one end": [1.7e308, 1.7e308, 1.7e308, -1.7e308],
    "1e-300": [1e-300, 1.2e-300, 1.9e-300, 1.4e-300],
    "subnormal": [0.0, 5e-324, 1e-323],
    "one unit in the last place": [1.0, 1.0 + 2**-52, 1.0],
    "all but one equal": [5.0] * 50 + [6.0],
    "all but one zero": [0.0] * 50 + [1e6],
    "two values": [1.0, 2.0] * 10,
    "two rows": [1.0, 2.0],
    "three rows": [1.0, 2.0, 9.0],
    "huge skew": np.exp(np.random.default_rng(0).normal(0, 20, 50)),
    "negative": -np.exp(np.random.default_rng(0).normal(0, 3, 50)),
    "far below zero": -(1e6 + np.random.default_rng(0).gamma(1.2, 6, 100)),
    "below what 1 can be added to": [-1e20, 3.0, 1e5],
    "skewed to the left": 58 - np.random.default_rng(0).gamma(1.2, 6, 100),
    "scipy issue 16674": FLAT_PEAK,
    "scipy issue 18389": YEARS,
}
