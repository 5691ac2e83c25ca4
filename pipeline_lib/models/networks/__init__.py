"""Student networks in plain torch."""
