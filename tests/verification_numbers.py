"""Make the numbers that `rekka verify` expects: ``python tests/verification_numbers.py [PART ...]``.

Writes src/rekka/verification/numbers.json. Needs mpmath and R with msm; a part is one key of that file.

    fifty_digits, near_hazards, extreme_hazards, derivatives   mpmath, 450 digits kept as 50
    psor                                                       typed from what R's msm 1.7 and its help print
    psor_table, psor_like, inspection_errors                   R's msm, on rows made of counts or drawn
    oracle, two_maxima                                         certified maxima, each also found by L-BFGS-B
    coverage                                                   counts with fixed seeds
    proposition, paper_slips                                   docs/errata.md
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from rekka.model import restarts
from rekka.model.family import EXPONENTIAL
from rekka.verification import histories, maxima, published, simulations
from rekka.verification.engine import load_numbers
from rekka.verification.formulas import climb, first_rates

FILE = Path(__file__).parent.parent / "src" / "rekka" / "verification" / "numbers.json"
DIGITS = 50

# 50 digits


def probability(theta: list[Any], years: Any, start: int, end: int) -> Any:
    """One entry of exp(Q years), as matrices of 450 digits have it: no formula of rekka's."""
    size = len(theta) + 1
    Q = mpmath.matrix(size, size)
    for k, one in enumerate(theta):
        Q[k, k], Q[k, k + 1] = -one, one
    # Scaled by hand: mpmath's own series takes too many terms at 1e4 a year.
    power = max(0, int(mpmath.ceil(mpmath.log(max(theta) * years + 1, 2))) + 4)
    step = mpmath.expm(Q * years / 2**power, method="taylor")
    for _ in range(power):
        step = step * step
    return step[start - 1, end - 1]


def digits(value: Any) -> str:
    return mpmath.nstr(value, DIGITS, strip_zeros=False)


def make_rows(cases: list[tuple[list[float], float, int]]) -> list[dict[str, Any]]:
    found = []
    for theta, years, start in cases:
        exact = [mpmath.mpf(one) for one in theta]
        ends = range(start, len(theta) + 2)
        p = {str(end): digits(probability(exact, mpmath.mpf(years), start, end)) for end in ends}
        found.append({"theta": theta, "years": years, "start": start, "p": p})
    return found


def make_fifty_digits() -> Any:
    theta = [1.0, 2.0, 3.0, 4.0]
    paper = [0.374, 0.2527, 0.1629, 0.1079]
    return make_rows(
        [*((theta, 1.0, start) for start in (1, 2, 3, 4)), (paper, 3.0, 1), ([0.05, 0.08, 0.12], 30.0, 1)]
    )


def make_near_hazards() -> Any:
    close = [0.3 * (1.0 + part) for part in (0.0, 1e-3, 1e-6, 1e-9)]
    return make_rows(
        [(close, 5.0, 1), (close, 0.1, 1), ([0.2, 0.2, 0.2, 0.2], 5.0, 1), ([0.01, 0.01, 0.01], 1.0, 1)]
    )


def make_extreme_hazards() -> Any:
    return make_rows([
        ([2.0, 1e4, 3e-3, 40.0], 1.0, 1), ([1e-6, 1e-5, 1e-4, 1e-3], 1.0, 1), ([0.02, 0.3, 7e-4, 0.05], 200.0, 1),
        ([690.0, 0.1, 0.2], 1.0, 1), ([1e-70, 1e-70, 1e-70], 1.0, 1),
    ])  # fmt: skip


def make_derivatives() -> Any:
    found = []
    for theta, years, end in (
        ([0.3, 0.3003, 0.3000003], 5.0, 4), ([0.2, 0.05, 0.6, 0.1], 3.0, 4), ([2.0, 50.0, 0.01], 1.0, 3),
    ):  # fmt: skip
        eta = [mpmath.log(mpmath.mpf(one)) for one in theta]

        def value(*at: Any, years: float = years, end: int = end) -> Any:
            return mpmath.log(probability([mpmath.exp(one) for one in at], mpmath.mpf(years), 1, end))

        free = range(len(theta))

        def slope(k: int, value: Any = value, eta: Any = eta) -> Any:
            return mpmath.diff(value, tuple(eta), tuple(int(m == k) for m in range(len(eta))))

        def curve(k: int, m: int, value: Any = value, eta: Any = eta) -> Any:
            return mpmath.diff(value, tuple(eta), tuple((j == k) + (j == m) for j in range(len(eta))))

        case = {"theta": theta, "years": years, "end": end, "value": digits(value(*eta))}
        case["slope"] = [digits(slope(k)) for k in free]
        case["curve"] = [[digits(curve(k, m)) for m in free] for k in free]
        found.append(case)
    return found


# Typed


def make_psor() -> Any:
    return {
        "made": "R's msm 1.7: help(psor), statetable.msm(state, ptnum, data = psor), and msm without covariates on psor",
        "visits": 806,
        "patients": 305,
        "moves": [[183, 56, 16, 8], [0, 100, 35, 18], [0, 0, 48, 37], [0, 0, 0, 0]],
        "departures": 170,
        "hazards": [0.0912459, 0.1571597, 0.2598214],
        "months": [10.9594, 6.36295, 3.84880],
        "ten_months": [0.401535, 0.268313, 0.139683, 0.190469],
    }


def make_proposition() -> Any:
    return {
        "theta": [0.374, 0.2527, 0.1629, 0.1079], "years": 3.0,
        "printed": [0.3256, 0.7663, 0.9610, 0.9967], "row": [0.3256, 0.4407, 0.1947, 0.0357, 0.0033],
    }  # fmt: skip


def make_paper_slips() -> Any:
    return {
        "medians": {"max": 0.928, "minmax": 0.988, "zscore": 0.3805, "boxcox": 0.2515},
        "means_on_common": {"max": 0.5174, "minmax": 0.5174, "zscore": 0.5164},
        "medians_on_common": {"zscore": 0.2315, "boxcox": 0.2515},
        "zscore_share": 0.410,
        "lowest_ratio": 4.8,
        "highest_ratio": 10.8,
        "hypotheses": {
            "H1": "supported", "H2": "partly_supported", "H3": "partly_supported", "H4": "supported",
            "H5": "partly_supported",
        },
    }  # fmt: skip


# R's msm

FIT = """
library(msm)
d <- read.csv(commandArgs(TRUE)[1])
q <- rbind(c(0, .1, 0, 0), c(0, 0, .1, 0), c(0, 0, 0, .1), c(0, 0, 0, 0))
m <- msm(state ~ time, subject = id, data = d, qmatrix = q, %s center = FALSE,
         control = list(fnscale = 500, reltol = 1e-16, maxit = 5000))
cat(sprintf("%%.12g", c(m$minus2loglik, m$estimates, sqrt(diag(m$covmat)))), sep = " ")
"""
RATED = """
library(msm)
d <- read.csv(commandArgs(TRUE)[1])
q <- rbind(c(0, .3, 0, 0), c(0, 0, .3, 0), c(0, 0, 0, .3), c(0, 0, 0, 0))
e <- rbind(c(0, .1, 0, 0), c(.1, 0, .1, 0), c(0, .1, 0, 0), c(0, 0, 0, 0))
f <- msm(state ~ time, subject = id, data = d, qmatrix = q, ematrix = e, initprobs = c(1, 0, 0, 0), fixedpars = TRUE)
m <- msm(state ~ time, subject = id, data = d, qmatrix = q, ematrix = e, initprobs = c(1, 0, 0, 0),
         control = list(reltol = 1e-14, maxit = 20000))
h <- qmatrix.msm(m)$estimates; r <- ematrix.msm(m)$estimates
cat(sprintf("%.12g", c(f$minus2loglik, m$minus2loglik, h[1,2], h[2,3], h[3,4], r[1,2], r[2,1], r[2,3], r[3,2])), sep = " ")
"""


def run_msm(script: str, columns: dict[str, Any]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        table, code = Path(folder) / "table.csv", Path(folder) / "fit.R"
        lines = [",".join(columns), *(",".join(map(repr, row)) for row in zip(*columns.values(), strict=True))]
        table.write_text("\n".join(lines) + "\n")
        code.write_text(script)
        done = subprocess.run(["Rscript", str(code), str(table)], capture_output=True, text=True, check=True)
    return [float(one) for one in done.stdout.split()]


def make_psor_table() -> Any:
    rows = published.list_counted({"psor": make_psor()})
    n = len(rows.years)
    ids, times = np.repeat(np.arange(n), 2).tolist(), np.tile([0.0, 10.0], n).tolist()
    states = (np.column_stack([rows.start, rows.end]).ravel() + 1).tolist()
    value, *rest = run_msm(FIT % "", {"id": ids, "time": times, "state": states})
    return {"made": "R's msm 1.7", "minus_2_log_l": value, "estimates": rest[:3], "errors": rest[3:]}


def make_psor_like() -> Any:
    visits = published.draw_patients()
    columns = {
        "id": visits.member,
        "time": visits.time,
        "state": visits.state,
        "a": visits.x[:, 0],
        "b": visits.x[:, 1],
    }
    value, *rest = run_msm(FIT % "covariates = ~ a + b,", {name: one.tolist() for name, one in columns.items()})
    rows = visits.pair(4)
    return {
        "made": "R's msm 1.7", "pairs": len(rows.years), "sum_of_states": int((rows.end + 1).sum()),
        "minus_2_log_l": value, "estimates": rest[:9], "errors": rest[9:],
    }  # fmt: skip


def make_inspection_errors() -> Any:
    visits = histories.draw_rated()
    columns = {"id": visits.member.tolist(), "time": visits.time.tolist(), "state": visits.state.tolist()}
    fixed, value, *rest = run_msm(RATED, columns)
    return {
        "made": "R's msm 1.7", "visits": len(visits.state), "sum_of_ratings": int(visits.state.sum()), "fixed": fixed,
        "maximum": value, "hazards": rest[:3], "errors": rest[3:],
    }  # fmt: skip


# Maxima and counts


def make_oracle() -> Any:
    found = {}
    for name in maxima.ORACLES:
        rows = maxima.draw_oracle(name)
        model = maxima.fit(rows)
        other, _ = climb(rows, first_rates(rows))
        assert model.certificate_.certified, name
        print(name, model.log_likelihood_, other - model.log_likelihood_)
        found[name] = {"log_likelihood": round(model.log_likelihood_, 10)}
    return found


def make_two_maxima() -> Any:
    """Rows with hazards linear in log x and x heavy-tailed: from crude rates a fit ends at the lower maximum."""
    rng, K, n = np.random.default_rng(361), 5, 80
    x, start = np.exp(2 * rng.normal(size=n)), rng.integers(0, K - 1, n)
    years = rng.choice([5.0, 10.0, 20.0, 30.0], n)
    theta = np.exp(rng.normal(-2, 0.7, K - 1) + np.log(x)[:, None] * rng.normal(0.3, 0.3, K - 1))
    end = EXPONENTIAL.draw_ends(theta, years, start, rng.random(n))
    table = [
        [int(i) + 1, int(j) + 1, float(t), round(float(v), 3)]
        for i, j, t, v in zip(start, end, years, x, strict=True)
    ]
    rows = maxima.read_heavy({"rows": table})
    best = maxima.fit(rows)
    whole, restarts.shifted_starts = restarts.shifted_starts, lambda coordinates: []
    lower = maxima.fit(rows)
    restarts.shifted_starts = whole
    print(lower.log_likelihood_, best.log_likelihood_)
    assert best.log_likelihood_ - lower.log_likelihood_ > 0.1
    at = np.column_stack([lower.intercept_, lower.coef_]).tolist()
    return {"rows": table, "higher": round(best.log_likelihood_, 10), "lower_at": at}


def make_coverage() -> Any:
    held, means, certified, closest = simulations.count_covered()
    assert closest > 1e-6
    return {
        "certified": certified,
        "held": held.tolist(),
        "means": [[round(one, 9) for one in row] for row in means.tolist()],
    }


PARTS = {
    name.removeprefix("make_"): one
    for name, one in list(globals().items())
    if name.startswith("make_") and name != "make_rows"
}


def main(wanted: list[str]) -> None:
    mpmath.mp.dps = 450
    found = dict(json.loads(FILE.read_text())) if FILE.exists() else {}
    for name in wanted or PARTS:
        found[name] = PARTS[name]()
        print(name, "made", flush=True)
    FILE.write_text(
        json.dumps({name: found[name] for name in PARTS if name in found}, indent=1) + "\n", encoding="utf-8"
    )
    load_numbers.cache_clear()


if __name__ == "__main__":
    main(sys.argv[1:])
