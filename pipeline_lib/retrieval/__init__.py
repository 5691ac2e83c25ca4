"""Vectors against vectors: indexes of sentences, search, and how well it finds."""
