"""Pinned bytes from somewhere, packages, archives, files, the hub, and their licences."""
