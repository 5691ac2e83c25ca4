"""How much each word matters to a prediction: what changes as the word is masked.

For a classification it is the change in the prediction's entropy (Liu 2020, section 3.5.4 and
figure 3.4): without the decisive word, a model that understood the sentence is unsure, and its
entropy rises; a model that did not stays sure.  Of several labels, one is explained: whether it
applies.  A regression has no entropy; there the score itself is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.probabilities import entropy_bits, of_two, softmax
from pipeline_lib.base.text import Text
from pipeline_lib.base.words import join_words, split_words
from pipeline_lib.models.folders import Predict


@dataclass(frozen=True)
class Importance:
    """A model's answer to a text, and to the text with each of its words masked.

    :ivar words: of the sentence, or of each sentence of a pair.
    :ivar answer: to the text as it is, float64: probabilities (classes,), or the score (1,).
    :ivar masked: to the text with each word masked, float64 (words, classes or 1): the words of the
        first sentence, then those of the second.
    :ivar is_score: whether the answer is a score.
    """

    words: tuple[list[str], ...]
    answer: np.ndarray
    masked: np.ndarray
    is_score: bool

    @property
    def entropy(self) -> float:
        """The entropy of a classification's prediction, in bits."""
        return float(entropy_bits(self.answer[None])[0])

    @property
    def changes(self) -> np.ndarray:
        """What masking each word changes, float64 (words,): the entropy in bits, or the score."""
        if self.is_score:
            return self.masked[:, 0] - self.answer[0]
        return entropy_bits(self.masked) - self.entropy


def of_label(predict: Predict, number: int) -> Predict:
    """Return the function that answers for one of several labels: the classes "no" and "yes"."""
    return lambda texts: of_two(predict(texts)[:, number])


def label_choice(name: str) -> list[str]:
    """Return what the two classes of :func:`of_label` are called."""
    return [f"not {name}", name]


def word_counts(text: Text) -> list[int]:
    """Return how many words can be masked in a sentence, or in each sentence of a pair."""
    return [len(split_words(sentence)[0]) for sentence in ((text,) if isinstance(text, str) else text)]


def word_importance(text: Text, predict: Predict, mask: str, is_score: bool) -> Importance:
    """Mask each word of a text in turn.

    :param text: a sentence, or a pair of which the words of both are masked.
    :param predict: texts to logits, float (texts, classes), for a regression to scores (texts, 1).
    :param mask: what the model reads for a masked word.
    """
    sentences = (text,) if isinstance(text, str) else text
    words = tuple(split_words(sentence)[0] for sentence in sentences)
    if not any(words):
        raise PotstillError(f"{text!r:.80}: no word to mask.")
    masked = [
        variant if isinstance(text, str) else (*text[:side], variant, *text[side + 1 :])
        for side, sentence in enumerate(sentences)
        for variant in masked_variants(sentence, mask)
    ]
    outputs = predict([text, *masked])
    answers = outputs.astype(np.float64) if is_score else softmax(outputs)
    return Importance(words, answers[0], answers[1:], is_score)


def masked_variants(sentence: str, mask: str) -> list[str]:
    """Return the sentence with each of its words masked, spaces made single."""
    words, spaces = split_words(sentence)
    return [join_words([*words[:i], mask, *words[i + 1 :]], spaces) for i in range(len(words))]


def as_json(text: Text, importances: Mapping[str, Importance], names: Sequence[str]) -> dict[str, Any]:
    """Return the importances of one text, by model, as plain values; entropies are in bits.

    :param names: of the classes; for a regression that of the score.
    """
    sentences = [text] if isinstance(text, str) else [*text]
    return {
        "text": sentences,
        "words": list(next(iter(importances.values())).words),
        "models": {model: _model_json(importance, names) for model, importance in importances.items()},
    }


def _model_json(importance: Importance, names: Sequence[str]) -> dict[str, Any]:
    changes = [round(change, 6) for change in importance.changes.tolist()]
    if importance.is_score:
        return {"score": round(float(importance.answer[0]), 6), "changes": changes}
    shares = zip(names, importance.answer.tolist(), strict=True)
    return {
        "label": names[int(importance.answer.argmax())],
        "probabilities": {name: round(share, 6) for name, share in shares},
        "entropy": round(importance.entropy, 6),
        "changes": changes,
        "masked_labels": [names[number] for number in importance.masked.argmax(axis=1).tolist()],
    }
