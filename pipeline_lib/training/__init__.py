"""The training loop, with its settings, data and objectives."""
