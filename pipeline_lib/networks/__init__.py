"""Students' networks in plain torch."""
