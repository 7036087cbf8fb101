"""``rekka verify``: this installation beside every number that its models are known to give."""
