"""What the augmentation is compared with: plain Python, nlpaug and textattack.

The peers are optional; one that cannot be imported is reported as not run, with the reason.
"""

import importlib.machinery
import random
import sys
import types
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from harness import optional

from pipeline_lib.base.text import MASK
from pipeline_lib.corpora.augmentation.lexicon import Lexicon
from pipeline_lib.params import Recipe


@dataclass
class Data:
    """Prepared sentences: as the blocks that ours reads, as lists of rows, and as plain text."""

    blocks: list[pa.Table]
    lexicon: Lexicon
    recipe: Recipe
    n_iter: int
    description: str

    def __post_init__(self) -> None:
        rows = pa.concat_tables(self.blocks)
        self.texts = rows["text"].to_pylist()
        columns = (rows[name].to_pylist() for name in ("words", "tags"))
        self.examples = list(zip(*columns, strict=True))

    def sample(self, count: int) -> "Data":
        """Return the first ``count`` rows, which a hash has ordered, as one block."""
        rows = pa.concat_tables(self.blocks).slice(0, count).combine_chunks()
        return Data([rows], self.lexicon, self.recipe, self.n_iter, self.description)


Make = Callable[[Data], tuple[int, int]]
"""Generates synthetic sentences from data; returns how many were generated and how many kept."""


def by_hand(data: Data) -> tuple[int, int]:
    """Apply the paper's rules word by word; a draw within a tag uses bisection, not a scan."""
    recipe, tags = data.recipe, _tag_distributions(data.lexicon)
    generated, seen, results = 0, set(data.texts), []
    for words, tagged in data.examples:
        for _ in range(data.n_iter):
            new = list(words)
            for i, word in enumerate(words):
                x = random.random()
                if x < recipe.p_mask:
                    new[i] = MASK
                elif x < recipe.p_mask + recipe.p_pos:
                    new[i] = _other_word(tags.get(tagged[i]), word)
            start, stop = 0, len(words)
            if random.random() < recipe.p_ngram:
                length = min(random.randint(1, recipe.ngram_max), len(words))
                start = random.randint(0, len(words) - length)
                stop = start + length
            text = " ".join(new[start:stop])
            generated += 1
            if text not in seen:
                seen.add(text)
                results.append(text)
    return generated, len(results)


def _tag_distributions(lexicon: Lexicon) -> dict[str, tuple[list[str], list[int]]]:
    """Return (words, cumulative counts) of each tag."""
    distributions = {}
    for tag, number in lexicon.tag_numbers.items():
        low, high = int(lexicon.starts[number]), int(lexicon.starts[number + 1])
        counts = lexicon.cumulative[low + 1 : high + 1] - lexicon.cumulative[low]
        distributions[tag] = (lexicon.words[low:high], counts.tolist())
    return distributions


def _other_word(distribution: tuple[list[str], list[int]] | None, word: str) -> str:
    if distribution is None or len(distribution[0]) < 2:
        return word
    words, cumulative = distribution
    while True:
        drawn = words[bisect_right(cumulative, random.random() * cumulative[-1])]
        if drawn != word:
            return drawn


def load_peers(data: Data) -> tuple[dict[str, Make], dict[str, str]]:
    """Return the peers that can be imported, and why the others cannot."""
    peers: dict[str, Make] = {}
    not_run: dict[str, str] = {}
    for name, load in (("nlpaug", _nlpaug), ("textattack", _textattack)):
        with optional(name, not_run):
            peers.update(load(data))
    return peers, not_run


def _nlpaug(data: Data) -> Iterator[tuple[str, Make]]:
    import nlpaug.augmenter.word as naw
    import nlpaug.flow as naf
    from nlpaug.util.text.tokenizer import Tokenizer

    def masks() -> Any:
        return naw.RandomWordAug(action="substitute", target_words=[MASK], aug_p=0.1)

    # It treats a word that its tokenizer would split as a phrase, with one regex for each.
    lists = [
        [word for word in words if len(Tokenizer.tokenizer(word)) == 1]
        for words, _ in _tag_distributions(data.lexicon).values()
    ]
    by_tag = naw.ReservedAug([words for words in lists if len(words) > 1], aug_p=0.1)
    mask, flow = masks(), naf.Sequential([masks(), by_tag])
    delete = naw.RandomWordAug(action="delete", aug_p=0.1)

    def all_three(text: str, n: int) -> list[str]:
        # nlpaug's own Sometimes cannot be nested in another flow.
        made = flow.augment(text, n=n)
        return [delete.augment(t)[0] if random.random() < 0.25 else t for t in made]

    yield "nlpaug: mask", _augmenter(lambda text, n: mask.augment(text, n=n))
    yield "nlpaug: mask, swap by tag, delete", _augmenter(all_three)


def _textattack(data: Data) -> Iterator[tuple[str, Make]]:
    _stand_in_for_what_textattack_imports()
    from textattack.augmentation import Augmenter
    from textattack.constraints.pre_transformation import RepeatModification
    from textattack.transformations import CompositeTransformation, WordDeletion, WordInnerSwapRandom, WordSwap

    tags = _tag_distributions(data.lexicon)
    tag_of = {word: tag for tag, (words, _) in tags.items() for word in words}

    class WordSwapMask(WordSwap):
        def _get_replacement_words(self, word: str) -> list[str]:
            return [MASK]

    class WordSwapTag(WordSwap):
        def _get_replacement_words(self, word: str) -> list[str]:
            return [_other_word(tags.get(tag_of.get(word, "")), word)]

    def augmenter(*transformations: Any) -> Make:
        made = Augmenter(
            transformation=CompositeTransformation(list(transformations)),
            constraints=[RepeatModification()],
            pct_words_to_swap=0.1,
            transformations_per_example=data.n_iter,
            fast_augment=True,
        )
        return _augmenter(lambda text, n: made.augment(text))

    yield "textattack: delete, swap", augmenter(WordDeletion(), WordInnerSwapRandom())
    yield ("textattack: mask, swap by tag, delete", augmenter(WordSwapMask(), WordSwapTag(), WordDeletion()))


def _stand_in_for_what_textattack_imports() -> None:
    """Install empty stubs if flair or NLTK's stop words are missing.

    textattack imports both for taggers and constraints that are not used here; flair cannot be
    imported with transformers 5, and the stop words are a download.
    """
    import nltk

    try:
        import flair  # noqa: F401
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == "flair"]:
            del sys.modules[name]
        flair_module = _empty_module("flair")
        modules = {"data": ("Sentence", "Tokenizer"), "models": ("SequenceTagger",)}
        for submodule, classes in modules.items():
            module = _empty_module(f"flair.{submodule}")
            vars(module).update(dict.fromkeys(classes, object))
            setattr(flair_module, submodule, module)
    try:
        nltk.corpus.stopwords.words("english")
    except LookupError:
        nltk.corpus.stopwords = types.SimpleNamespace(words=lambda language: [])


def _empty_module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = module
    return module


def _augmenter(augment: Callable[[str, int], list[str]]) -> Make:
    def make(data: Data) -> tuple[int, int]:
        made = [text for source in data.texts for text in augment(source, data.n_iter)]
        return len(made), len(set(made) - set(data.texts))

    return make
