"""Words, word pieces, and batches of sentences of different lengths."""
