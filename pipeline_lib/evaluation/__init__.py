"""Labels and logits become scores: students are run over the held-out splits and compared."""
