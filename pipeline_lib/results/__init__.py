"""Scores as data and as tables."""
