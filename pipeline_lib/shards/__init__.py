"""Arrow shards, and the store that keeps what was computed."""
