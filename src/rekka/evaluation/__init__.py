"""Scores, intervals, resampling, selection, calibration, shrinkage."""
