"""The one training loop, and all that it is told."""
