"""R's msm run on the same rows, where it is installed."""

import subprocess

import numpy as np
import pytest

import rekka

SCRIPT = """
library(msm)
d <- read.csv(commandArgs(TRUE)[1])
q <- rbind(c(0, .1, 0, 0), c(0, 0, .1, 0), c(0, 0, 0, .1), c(0, 0, 0, 0))
m <- msm(state ~ time, subject = id, data = d, qmatrix = q, covariates = ~ age + traffic, center = FALSE,
         control = list(fnscale = 500, reltol = 1e-14, maxit = 5000))
cat(sprintf("%.12g", c(m$minus2loglik, m$estimates, sqrt(diag(m$covmat)))), sep = " ")
"""


def test_msm_agrees_in_likelihood_coefficients_and_standard_errors(msm, tmp_path):
    data = rekka.simulate_transitions(200, n_states=4, seed=11)
    age = (data["age_at_inspection_1"] - 45) / 10
    traffic = data["traffic_mean"].log() - 8
    lines = ["id,time,state,age,traffic"]
    for row, (i, j, dt) in enumerate(data.select("state_1", "state_2", "interval_years").rows()):
        lines += [f"{row},0,{i},{age[row]!r},{traffic[row]!r}", f"{row},{dt!r},{j},{age[row]!r},{traffic[row]!r}"]
    file, script = tmp_path / "pairs.csv", tmp_path / "fit.R"
    file.write_text("\n".join(lines))
    script.write_text(SCRIPT)
    done = subprocess.run([msm, str(script), str(file)], capture_output=True, text=True, check=True)
    theirs = np.array([float(x) for x in done.stdout.split()])

    frame = data.select("state_1", "interval_years").with_columns(age=age, traffic=traffic)
    model = rekka.ExponentialHazardMarkovModel("minmax", clock="start").fit(frame, data["state_2"])
    ours = np.concatenate([model.intercept_, model.coef_[:, 0], model.coef_[:, 1]])
    se = np.sqrt(np.diag(model.covariance_)).reshape(3, 3).T.ravel()
    assert model.certificate_.certified
    assert -2 * model.log_likelihood_ == pytest.approx(theirs[0], rel=1e-8)
    assert -2 * model.log_likelihood_ <= theirs[0] + 1e-9
    np.testing.assert_allclose(ours, theirs[1:10], atol=1e-4)
    np.testing.assert_allclose(se, theirs[10:19], rtol=1e-3)
