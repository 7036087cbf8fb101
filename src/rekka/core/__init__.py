"""Foundations of every other package: errors, files, compiled code, the terminal, words."""
