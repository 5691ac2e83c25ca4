"""Every pass over a teacher, answers and vectors in files, and the proof that rows align."""
