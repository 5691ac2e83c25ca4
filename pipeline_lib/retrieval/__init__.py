"""Vectors against vectors: catalogues, their indexes, search, and how well it finds."""
