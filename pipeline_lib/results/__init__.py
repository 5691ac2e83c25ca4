"""Scores, their measures and comparisons, as data and as tables."""
