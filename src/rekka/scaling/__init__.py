"""Covariate scaling: operators fitted on training rows only, then applied unchanged to every other row."""
