"""Fits of tables that need not fit into memory: every sum is made block by block, and added in order."""
