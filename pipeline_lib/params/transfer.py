"""Tagger and recipes of params.yaml: how a transfer set is made."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import Name, Positive, Probability, Ref, Section, Seed, TaskNames


class Tagger(Section):
    """The part-of-speech tagger: a spaCy pipeline by package name, NLTK's perceptron, or none.

    Without one, all words have one tag, and recipes cannot replace words by part of speech.
    """

    engine: Literal["spacy", "nltk", "none"]
    model: str | None

    @model_validator(mode="after")
    def _named(self) -> "Tagger":
        if (self.engine == "none") != (self.model is None):
            raise ValueError("`model` is null where `engine` is none, and there alone")
        return self


class Substitution(Section):
    """Replacement of words by what fits in their place (Jiao et al. 2020, algorithm 1).

    A word is replaced with probability ``p`` by one of its candidates, of which there are at most ``candidates``:
    the words that ``model``, a masked language model, expects in its place, if it is a single word piece; else the
    words with the nearest of the vectors that ``vocabulary`` names.  ``model`` null: all words have the nearest
    ones.  ``max_length`` is how many word pieces the model reads of a sentence, and null without one.
    """

    p: Annotated[float, Field(gt=0.0, le=1.0)]
    candidates: Annotated[int, Field(ge=1, le=1000)]
    model: Annotated[Name | None, Ref("models")]
    max_length: Annotated[int, Field(ge=4)] | None

    @model_validator(mode="after")
    def _consistent(self) -> "Substitution":
        if (self.model is None) != (self.max_length is None):
            raise ValueError("`max_length` is how much `model` reads: give both, or set both null")
        return self


class Recipe(Section):
    """Which augmentation rules make a transfer set (Tang et al. 2019, section 3.3).

    ``tasks`` restricts it to those tasks; methods that train on it are rows of these tasks only.
    ``substitution`` can be left out: a further rule, see :class:`Substitution`.
    ``unlabelled`` can be left out: true adds a task's unlabelled texts to its training set, and
    what the rules make of them.  It does not affect how a block is augmented, and is in no key.
    """

    p_mask: Probability
    p_pos: Probability
    p_ngram: Probability
    ngram_min: Positive
    ngram_max: Positive
    seed: Seed
    tasks: TaskNames
    # Left out of what is stored too: recipes without it keep their keys.
    substitution: Annotated[Substitution | None, Field(exclude_if=lambda rule: rule is None)] = None
    unlabelled: Annotated[bool, Field(exclude=True)] = False

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        p_substitution = self.substitution.p if self.substitution else 0.0
        if self.p_mask + self.p_pos + p_substitution > 1.0:
            raise ValueError("p_mask + p_pos + substitution.p must be at most 1: a word falls under one rule")
        if self.ngram_min > self.ngram_max:
            raise ValueError("ngram_min must be at most ngram_max")
        return self

    def covers(self, task: str) -> bool:
        """Whether this transfer set is made for ``task``."""
        return self.tasks is None or task in self.tasks

    @property
    def changes_nothing(self) -> bool:
        """Whether the recipe keeps the original examples only."""
        no_rule = self.p_mask == self.p_pos == self.p_ngram == 0.0 and self.substitution is None
        return no_rule and not self.unlabelled
