"""Users' files in, users' files out."""
