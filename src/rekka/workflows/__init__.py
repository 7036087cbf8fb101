"""The verbs of rekka: from tables and models to results and files, one call each."""
