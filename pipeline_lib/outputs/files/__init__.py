"""A teacher's answers and sentence vectors that come in files."""
