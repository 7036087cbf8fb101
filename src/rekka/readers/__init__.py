"""The formats of the world: files in, tables of text out."""
