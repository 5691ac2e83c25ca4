"""A task: its labelled rows, its splits, how its answers are scored."""
