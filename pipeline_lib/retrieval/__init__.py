"""Retrieval: catalogues of sentence vectors, their indexes, scoring and search."""
