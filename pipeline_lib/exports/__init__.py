"""Trained students in other people's formats, which need nothing of this library."""
