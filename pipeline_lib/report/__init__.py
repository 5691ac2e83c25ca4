"""The page: what a run came to, in one HTML file and as JSON."""
