"""What a task of another language than English gets: no tagger, and its own model's word pieces.

The bundled tagger, sentence encoder and texts are English.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.model_config import embedding_width

PIECES = 8000
"""Word pieces by which words are read that no training text has."""
_CHARACTERS = 10
"""The longest n-gram where words are characters: about as much as five words."""


@dataclass(frozen=True)
class Language:
    """The language of a task's texts.

    :ivar is_english: whether it is English; :ivar is_unspaced: whether its script has no spaces
        between words, so that each character is one.
    """

    is_english: bool = True
    is_unspaced: bool = False

    def recipe(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a recipe's values for texts of this language."""
        if self.is_english:
            return {**values}
        longest = {"ngram_max": _CHARACTERS} if self.is_unspaced else {}
        return {**values, "p_pos": 0.0, **longest}

    def tagger(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``tagger``: the default's is for English."""
        return {**base["tagger"]} if self.is_english else {"engine": "none", "model": None}

    def vocabulary(
        self, base: Mapping[str, Any], model: str | None, config: Mapping[str, Any], is_few: bool
    ) -> dict[str, Any]:
        """Return ``vocabulary``, of the user's own model if it is for this language.

        :param model: its row of ``models``, or None: there is none; :param config: its config.json.
        :param is_few: whether the task has few rows, and so few words.
        """
        words = {**base["vocabulary"]}
        if self.is_english or model is None:
            return words | ({"pieces": PIECES} if is_few else {})
        width = embedding_width(config)
        words |= {"vectors": {"kind": "model", "model": model}, "pieces": PIECES}
        return words | {"dimensions": min(words["dimensions"], width) if width else None}
