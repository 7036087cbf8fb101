"""Workflows: from tables and models to results and files, one call each."""
