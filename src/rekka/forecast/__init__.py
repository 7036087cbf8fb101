"""What becomes of the members of an inventory: from their states now and a fitted model."""
