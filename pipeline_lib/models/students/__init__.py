"""Students: a single-sentence encoder and a head, with their tokenizer, saved in transformers' files."""
