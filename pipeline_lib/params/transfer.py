"""Tagger and recipes of params.yaml: how a transfer set is made."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lib.params.base import Positive, Probability, Section, Seed, TaskNames


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


class Recipe(Section):
    """Which augmentation rules make a transfer set (Tang et al. 2019, section 3.3).

    ``tasks`` restricts it to those tasks; methods that train on it are rows of these tasks only.
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
    unlabelled: Annotated[bool, Field(exclude=True)] = False

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        if self.p_mask + self.p_pos > 1.0:
            raise ValueError("p_mask + p_pos must be at most 1: a word falls under one rule")
        if self.ngram_min > self.ngram_max:
            raise ValueError("ngram_min must be at most ngram_max")
        return self

    def covers(self, task: str) -> bool:
        """Whether this transfer set is made for ``task``."""
        return self.tasks is None or task in self.tasks

    @property
    def changes_nothing(self) -> bool:
        """Whether the recipe keeps the original examples only."""
        return self.p_mask == self.p_pos == self.p_ngram == 0.0 and not self.unlabelled
