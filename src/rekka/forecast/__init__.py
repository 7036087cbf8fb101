"""Forecasts of single members from their states now and a fitted model."""
