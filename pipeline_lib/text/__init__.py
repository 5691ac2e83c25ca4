"""Sentences, words, their part-of-speech tags, and how often each word occurs under each tag."""
