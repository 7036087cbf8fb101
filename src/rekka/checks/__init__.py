"""Numbered findings about a table of transitions: the data doctor."""
