"""Tests of the three rules."""
