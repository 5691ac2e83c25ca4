"""What column names suggest: common names of texts, of the two columns of a pair, of labels."""

import re
from collections.abc import Sequence

TEXTS = (
    "text",
    "sentence",
    "review",
    "content",
    "body",
    "comment",
    "message",
    "tweet",
    "snippet",
    "document",
    "utterance",
    "review_text",
    "reviewtext",
    "input",
    "post",
    "description",
    "query",
    "question",
    "phrase",
)
"""Common names of a text column."""
PAIRS = (
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("query", "passage"),
    ("query", "document"),
    ("first", "second"),
    ("source", "target"),
    ("anchor", "positive"),
    ("text", "text_pair"),
    ("question", "answer"),
    ("sentence", "sentence_pair"),
)
"""Common names of a pair's columns."""
CLASSES = (
    "label",
    "labels",
    "class",
    "category",
    "target",
    "sentiment",
    "polarity",
    "intent",
    "topic",
    "gold_label",
    "y",
    "is_duplicate",
    "judgement",
    "spam",
    "output",
    "tag",
    "emotion",
    "stance",
    "toxic",
    "toxicity",
)
"""Common names of a label column whose numbers are classes."""
SCORES = (
    "score",
    "rating",
    "stars",
    "similarity",
    "similarity_score",
    "grade",
    "points",
    "value",
    "quality",
    "relevance",
    "overall",
)
"""Common names of a label column whose numbers may be either."""
_HEADS = (
    "label",
    "labels",
    "class",
    "category",
    "sentiment",
    "polarity",
    "intent",
    "emotion",
    "stance",
    "judgement",
    "judgment",
    "score",
    "rating",
    "stars",
    "similarity",
)
"""Last words of longer names of label columns: ``star_rating``, ``airlineSentiment``."""
_NUMBERS = ("id", "idx", "index", "code", "num", "number", "no", "nr")
"""Last words of names of numbers that stand for something: ``intent_id``."""
_ENDS = (("a", "b"), ("one", "two"), ("left", "right"))
_PART = re.compile(r"[-_ ]?(\d|a|b|one|two|left|right)$")
"""The part that distinguishes the names of a pair's columns."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def bare(name: str) -> str:
    """Return a name in lower case, and only its last part, as in ``data.text``."""
    return name.strip().lower().rpartition(".")[2]


def says_text(name: str) -> bool:
    """Whether a name is common for a text, or one of a pair: ``text``, ``sentence2``, ``text_a``.

    Other names of pairs, such as ``first``, only count together, see :func:`pair_of`.
    """
    stem = bare(name)
    return stem in TEXTS or _PART.sub("", stem) in TEXTS


def says_label(name: str) -> bool:
    """Whether a name is common for a label."""
    return bare(name) in (*CLASSES, *SCORES)


def says_classes(name: str) -> bool:
    """Whether a name is common for numbers of classes: ``label``, ``intent_id``, ``ClassIdx``."""
    words = [word.lower() for word in _WORD.findall(name.rpartition(".")[2])]
    while words and words[-1] in _NUMBERS:
        words.pop()
    return bare(name) in CLASSES or (bool(words) and words[-1] in CLASSES)


def says_scores(name: str) -> bool:
    """Whether the last word of a name is common for scores."""
    words = _WORD.findall(name.rpartition(".")[2])
    return bare(name) in SCORES or (bool(words) and words[-1].lower() in SCORES)


def ends_as_label(name: str) -> bool:
    """Whether the last word of a longer name is common for a label."""
    words = _WORD.findall(name.rpartition(".")[2])
    return bool(words) and words[-1].lower() in _HEADS


def pair_of(names: Sequence[str], texts: Sequence[str]) -> list[str] | None:
    """Return two columns whose names belong together, or None.

    :param names: columns that may form a pair; :param texts: at least one of these must be in it.
    """
    lower = {name.strip().lower(): name for name in names}
    pairs = [*PAIRS]
    for name in lower:
        pairs.append((name, name.replace("1", "2", 1)))
        pairs += [(name, name[: -len(a)] + b) for a, b in _ENDS if name.endswith(a)]
    for one, two in pairs:
        if one != two and {one, two} <= lower.keys() and {lower[one], lower[two]} & set(texts):
            return [lower[one], lower[two]]
    return None
