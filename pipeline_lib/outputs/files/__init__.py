"""A teacher's answers that come in files."""
