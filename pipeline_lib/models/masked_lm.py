"""A masked language model: the words that it expects in the place of a word (Devlin et al. 2019).

Jiao et al. 2020, algorithm 1, replace words of a single word piece by them.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.model_config import read_config
from pipeline_lib.models.students.vocabulary import is_one_word
from pipeline_lib.models.students.word_vectors import model_pieces
from pipeline_lib.models.teacher import TOKENISING, Transformer, digest_model, keep_head_exact, load_pretrained
from pipeline_lib.text.pieces import ENCODED_TEXTS, Pieces
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.text.words import join_words

HEADS = ("ForMaskedLM", "ForPreTraining")
"""What the names of architectures with a masked language model's head end in."""
MASKED_TOKENS = 1 << 23
"""Tokens of masked sentences that are held at a time: each sentence as often as it has words."""
SplitSentence = tuple[Sequence[str], Sequence[bool]]
"""A sentence's words, and which of them are followed by a space."""


@dataclass
class MaskedLanguageModel(Transformer):
    """A model whose outputs are the words that it finds most likely in place of a masked one.

    :ivar words: the whole words among its pieces, without special tokens and punctuation.
    :ivar ids: their ids, int64 (words,), on the device.
    :ivar count: how many words it predicts, if there are as many.
    """

    words: list[str]
    ids: torch.Tensor
    count: int

    @property
    def width(self) -> int:
        """How many words it predicts."""
        return min(self.count, len(self.words))

    def predict_words(
        self, sentences: Sequence[SplitSentence], max_length: int, batch_tokens: int
    ) -> tuple[np.ndarray, int]:
        """Return which words the model expects in place of each word of some sentences.

        Each sentence is read once for each of its words that is a single word piece, with that word
        masked.  The word itself may be among those predicted; the paper does not exclude it.

        :param max_length: word pieces read of a sentence.
        :returns: indices into ``words``, the most likely first, int32 (words of all sentences, width), -1 for a word
            of several pieces, or none that is read, and for punctuation; and how many tokens were read.
        """
        read = [*self._read(sentences, max_length)]
        starts = np.cumsum([0, *(len(places) for _, places in read)])
        tokens = np.cumsum([len(ids) * int((places >= 0).sum()) for ids, places in read])
        predicted = np.full((starts[-1], self.width), -1, np.int32)
        borders = np.flatnonzero(np.diff(tokens // MASKED_TOKENS)) + 1
        for part in np.split(np.arange(len(read)), borders):
            places = [starts[n] + np.flatnonzero(read[n][1] >= 0) for n in part]
            masked = self._masked([read[n] for n in part])
            if len(masked):
                predicted[np.concatenate(places)] = self._finite(self.answer(masked, batch_tokens))
        return predicted, int(tokens[-1]) if read else 0

    def _finite(self, outputs: np.ndarray) -> np.ndarray:
        if not np.isfinite(outputs).all():
            raise PotstillError(
                f"{self.model.name_or_path}: what the model predicts in {self.precision} is not "
                "finite. Set `precompute.precision` in params.yaml to float32."
            )
        return outputs

    def _read(self, sentences: Sequence[SplitSentence], max_length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield each sentence's piece ids, int32, and each word's piece, see :func:`_pieces_of`."""
        tokenizer, unknown = self.pieces.tokenizer, self.pieces.unknown_id
        for start in range(0, len(sentences), ENCODED_TEXTS):
            part = sentences[start : start + ENCODED_TEXTS]
            with TOKENISING:
                tokenizer.no_padding()
                tokenizer.enable_truncation(max_length)
                encodings = tokenizer.encode_batch([join_words(*sentence) for sentence in part])
            for sentence, encoding in zip(part, encodings, strict=True):
                places = _pieces_of(sentence, encoding, unknown)
                yield np.array(encoding.ids, np.int32), np.array(places, np.int64)

    def _masked(self, read: Sequence[tuple[np.ndarray, np.ndarray]]) -> Sentences:
        """Return each sentence once for each of its words of one piece, which is masked there."""
        ids, places, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [0]
        for pieces, of_words in read:
            masked = of_words[of_words >= 0]
            rows = np.tile(pieces, (len(masked), 1))
            rows[np.arange(len(masked)), masked] = self.tokenizer.mask_token_id
            ids.append(rows.ravel())
            places.append(masked)
            lengths += [len(pieces)] * len(masked)
        targets = {"masked": np.concatenate(places)}
        return Sentences(np.concatenate(ids), np.cumsum(lengths), targets, self.pieces.pad_id)

    def batches(self, lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
        """Yield batches of equal length, and of as many rows for each length: the last row repeats.

        Matrix products of the same shape round each row alike, whichever rows are beside it.  So
        what is predicted for a sentence does not depend on the others.
        """
        for length in np.unique(lengths):
            rows, size = np.flatnonzero(lengths == length), max(1, batch_tokens // int(length))
            for start in range(0, len(rows), size):
                yield rows.take(np.arange(start, start + size), mode="clip")

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return indices into ``words`` for each row's masked token, (rows, width); NaN for NaN."""
        base = self.model.base_model
        # The head, which is as wide as the vocabulary, computes that token alone.
        hook = base.register_forward_hook(partial(_keep_token, batch["masked"]))
        try:
            logits = self.run(batch).logits[:, 0]
        finally:
            hook.remove()
        best = logits[:, self.ids].topk(self.width).indices
        return best + 0.0 * logits.sum(1, keepdim=True)


def load_masked_lm(folder: Path, device: str, precision: str, count: int) -> MaskedLanguageModel:
    """Load a masked language model from a transformers model folder; safetensors only."""
    from pipeline_lib.models.networks.attention import use_short_attention
    from pipeline_lib.models.trial import can_pack

    _check_head(folder)
    model, tokenizer = load_pretrained(folder, "AutoModelForMaskedLM", {})
    if tokenizer.mask_token_id is None:
        raise PotstillError(f"{folder}: its tokenizer has no mask token. {_remedy()}")
    use_short_attention(model)
    packs = can_pack(model.base_model.eval(), Pieces.of(tokenizer, model.config))
    for name, module in model.named_children():
        if module is not model.base_model:
            # It shares its weights with the embeddings, which are not to become float32.
            setattr(model, name, copy.deepcopy(module))
    words = {
        piece: number
        for piece, number in model_pieces(folder).items()
        if piece.isalnum() and is_one_word(piece, lowercase=False)
    }
    return MaskedLanguageModel(
        keep_head_exact(model.to(device, DTYPES[precision])),
        tokenizer,
        torch.device(device),
        precision,
        digest_model(folder),
        [*words],
        torch.tensor([*words.values()], device=device),
        count,
        packs=packs,
    )


def _check_head(folder: Path) -> None:
    heads = read_config(folder).get("architectures") or []
    if not any(head.endswith(HEADS) for head in heads):
        raise PotstillError(
            f"{folder}: architectures in config.json is {heads}: a model without the head that "
            f"predicts masked words. {_remedy()}"
        )


def _remedy() -> str:
    return (
        "Let `substitution.model` name a ...ForMaskedLM, such as bert-base-uncased; or set it and "
        "`max_length` to null: all words are then substituted by those with the nearest vectors."
    )


def _keep_token(places: torch.Tensor, _: Any, __: Any, output: Any) -> None:
    """Leave one token of each row in an encoder's output."""
    states = output.last_hidden_state
    rows = torch.arange(len(states), device=states.device)
    output["last_hidden_state"] = states[rows, places][:, None]


def _pieces_of(sentence: SplitSentence, encoding: Any, unknown: int | None) -> list[int]:
    """Return for each word the number of the piece that is the word, or -1."""
    text, words = join_words(*sentence), []
    pieces: dict[tuple[int, int], int] = {}
    for number, (piece, (start, end)) in enumerate(zip(encoding.ids, encoding.offsets, strict=True)):
        # Some tokenizers count the space before a word to its piece.
        span = (start + text[start:end].startswith(" "), end)
        pieces[span] = -1 if span in pieces or piece == unknown else number
    end = 0
    for word, space in zip(*sentence, strict=True):
        start, end = end, end + len(word)
        words.append(pieces.get((start, end), -1) if word.isalnum() else -1)
        end += space
    return words
