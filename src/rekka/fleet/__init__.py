"""Inventories of members forecast with fitted models, and backtests."""
