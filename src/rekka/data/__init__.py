"""From tables to visits, transitions and partitions."""
