"""Evaluation: scores, calibration, significance, rankings, and timings."""
