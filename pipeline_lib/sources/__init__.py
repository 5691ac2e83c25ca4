"""Pinned bytes from somewhere: packages, archives, files, the hub."""
