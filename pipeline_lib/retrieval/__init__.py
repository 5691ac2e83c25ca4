"""Comparing sentence vectors with many others: the scores of all pairs, and the best of them."""
