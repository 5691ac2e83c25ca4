"""Bytes that are never computed twice: shard sets, passes that make them, engines, the store."""
