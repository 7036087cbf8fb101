"""The Exponential Hazard Markov model: kernel, likelihood, solvers, certificate, inference, estimator."""
