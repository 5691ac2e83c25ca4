"""From articles to sentences worth keeping."""
