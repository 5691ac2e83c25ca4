"""What a task of another language than English gets: no tagger, and its own model's word pieces.

The bundled tagger, sentence encoder and texts are English.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    def vocabulary(self, base: Mapping[str, Any], model: str | None) -> dict[str, Any]:
        """Return ``vocabulary``, of the user's own model (a row of ``models``, or None) if it is for this language."""
        words = {**base["vocabulary"]}
        return words if self.is_english or model is None else words | {"vectors": {"kind": "model", "model": model}}
