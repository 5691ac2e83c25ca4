"""Usual names of columns of texts and of labels."""

import re

_TEXTS = frozenset([
    "text", "sentence", "review", "review_text", "reviewtext", "content", "body", "comment", "message", "tweet",
    "snippet", "document", "utterance", "input", "post", "description", "query", "question", "phrase",
])  # fmt: skip
CLASSES = frozenset([
    "label", "labels", "gold_label", "class", "category", "target", "sentiment", "polarity", "intent", "topic", "y",
    "is_duplicate", "judgement", "spam", "output", "tag", "emotion", "stance", "toxic", "toxicity",
])  # fmt: skip
"""Usual names of a label column whose numbers are classes."""
_SCORES = frozenset([
    "score", "rating", "stars", "similarity", "similarity_score", "grade", "points", "value", "quality", "relevance",
    "overall",
])  # fmt: skip
SIDE = re.compile(r"\d|(?<=[-_ ])[ab]$")
"""What distinguishes the names of a pair's columns: ``sentence1``, ``text_a``, ``#1 String``."""


def bare(name: str) -> str:
    """Return a name in lower case, and only its last part, as in ``data.text``."""
    return name.strip().lower().rpartition(".")[2]


def says_text(name: str) -> bool:
    """Whether a name is usual for a text, or one of a pair: ``text``, ``sentence2``, ``text_a``."""
    return SIDE.sub("", bare(name)).strip("-_ ") in _TEXTS


def says_label(name: str) -> bool:
    """Whether a name is usual for a label."""
    return bare(name) in CLASSES | _SCORES
