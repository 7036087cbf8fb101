"""``rekka verify``: this installation beside numbers that its models are known to give."""
