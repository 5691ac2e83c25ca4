"""Faster versions, for a CPU, of what torch and tokenizers do too."""
