"""Faster CPU versions of operations in torch and tokenizers."""
