"""The model card: what a student is, its scores, and where it comes from."""
