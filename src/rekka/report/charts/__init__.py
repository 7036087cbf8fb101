"""Figures as Vega-Lite charts, and their pictures."""
