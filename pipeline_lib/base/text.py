"""What a student or a teacher reads."""

Text = str | tuple[str, str]
"""One example's sentence, or its pair of sentences."""
MASK = "[MASK]"
"""The masked word: BERT's mask token, and unknown to a student."""
