"""Teachers: loading, fine-tuning, and the pass that computes their outputs into shards."""
