"""Tables of a report: how a column is written, and which tables there are."""
