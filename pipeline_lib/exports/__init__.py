"""Exports of trained students in common formats, which load without this library."""
