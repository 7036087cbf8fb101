"""Benchmarks of rekka: problems, one adapter per rival, and results with the configuration beside them."""
