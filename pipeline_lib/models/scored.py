"""A causal language model as a teacher: the log-probabilities of what it would answer, without any training.

A class's logit is the mean log-probability of its name's tokens after the prompt, minus that after the prompt with an
empty text (contextual calibration, Zhao et al. 2021, section 5).  A label of several is one by ``yes`` minus ``no``.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_record
from pipeline_lib.base.model_config import position_count
from pipeline_lib.base.text import Text
from pipeline_lib.models.teacher import CAUSAL, PROMPT, TOKENISING, Teacher, digest_model, load_pretrained
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences

if TYPE_CHECKING:
    from transformers import DynamicCache

MASK = "[MASK]"
"""What a model without a mask token reads for a masked word."""
FIRST, SECOND, LABEL = "{text}", "{text_pair}", "{label}"
YES, NO = "yes", "no"


class Option(NamedTuple):
    """A continuation of a prompt: its tokens, of which the last ``scored`` are the answer."""

    ids: tuple[int, ...]
    scored: int


@dataclass(frozen=True)
class Prompt:
    """What the model reads around a text.

    :ivar begin: before the paragraph of the text, examples included; :ivar row: that paragraph, with its placeholders.
    :ivar answers: what stands for each label, by its name; :ivar several: whether any number of labels can apply.
    :ivar chat: whether all of it was laid out by the model's chat template, special tokens included.
    """

    begin: str
    row: str
    answers: Mapping[str, str]
    several: bool
    chat: bool

    def filled(self, text: Text, label: str | None = None) -> str:
        """Return the prompt of a text or pair, up to the answer; without a label, up to where labels differ."""
        texts = dict(zip((FIRST, SECOND), (text,) if isinstance(text, str) else text, strict=False))
        row = self.row if label is not None or not self.several else self.row.partition(LABEL)[0]
        values = texts if label is None else texts | {LABEL: self.answers[label]}
        return self.begin + re.sub(r"\{\w+\}", lambda sign: values.get(sign[0], sign[0]), row)

    def continued(self, text: Text) -> list[tuple[str, str]]:
        """Return each answer that is scored, as the prompt before it and the prompt with it."""
        if self.several:
            prompts = [(self.filled(text, label), answer) for label in self.answers for answer in (YES, NO)]
        else:
            prompts = [(self.filled(text), answer) for answer in self.answers.values()]
        return [(before, before + " " * (not before[-1:].isspace()) + answer) for before, answer in prompts]


@dataclass
class ScoredTeacher(Teacher):
    """A causal language model that answers by a prompt; what all prompts begin with is computed once."""

    prompt: Prompt

    @classmethod
    def read(cls, folder: Path, device: torch.device | str, precision: str) -> "ScoredTeacher":
        """Load the model of a folder, and the prompt beside it."""
        fields = read_record(folder / PROMPT, "begin", "row", "answers", "several", "chat")
        model, tokenizer = load_pretrained(folder, CAUSAL, {})
        model = model.eval().to(device, DTYPES[precision])
        # JSON sorts its keys.
        fields["answers"] = {name: fields["answers"][name] for _, name in sorted(model.config.id2label.items())}
        return cls(model, tokenizer, torch.device(device), precision, digest_model(folder), Prompt(**fields))

    @property
    def pieces(self) -> Pieces:
        """Its tokenizer, with a sign for masked words."""
        pieces = Pieces.of(self.tokenizer, self.model.config)
        return replace(pieces, mask=pieces.mask or MASK, segments=False)

    def encode(self, texts: Sequence[Text], max_length: int) -> Sentences:
        """Return the tokens of each text's prompt; a text, or both of a pair together, has ``max_length`` at most."""
        with TOKENISING:
            prompts = [self.prompt.filled(text) for text in self._truncated(texts, max_length)]
            ids = [row[: len(row) - self.options[1]] for row in self._ids(prompts)]
        positions = position_count(self.model.config.to_dict())
        longest = max(map(len, ids), default=0) + max(len(option.ids) for option in self.options[0])
        if positions is not None and longest > positions:
            raise PotstillError(
                f"a prompt has {longest:,} tokens, and the model {positions:,} positions. Lower the teacher's "
                "`max_length`, or its `examples`."
            )
        return Sentences.from_lists(ids, {}, self.pieces.pad_id)

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the calibrated logits of a batch of prompts, shape (rows, labels)."""
        return self._logits(batch["ids"], batch["lengths"]) - self._empty

    @cached_property
    def options(self) -> tuple[list[Option], int]:
        """The answers in the order of the labels, and how many tokens at a prompt's end are theirs."""
        nothing = self._nothing
        [context] = self._ids([self.prompt.filled(nothing)])
        pairs = [self._ids(prompts) for prompts in self.prompt.continued(nothing)]
        start = min(_shared(context, whole) for _, whole in pairs)
        options = [Option(tuple(whole[start:]), len(whole) - _shared(before, whole)) for before, whole in pairs]
        return options, len(context) - start

    @property
    def _nothing(self) -> Text:
        return ("", "") if SECOND in self.prompt.row else ""

    @cached_property
    def _context(self) -> list[int]:
        [context] = self._ids([self.prompt.filled(self._nothing)])
        return context[: len(context) - self.options[1]]

    @cached_property
    def _empty(self) -> torch.Tensor:
        ids = torch.tensor([self._context], device=self.device)
        return self._logits(ids, torch.tensor([ids.shape[1]]))

    @cached_property
    def _begun(self) -> "DynamicCache":
        """The keys and values of what the prompt of the empty text begins with."""
        from transformers import DynamicCache

        cache = DynamicCache()
        ids = torch.tensor([self._context[:-1]], device=self.device)
        if ids.shape[1]:
            self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return cache

    def _logits(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return a logit for each label, not calibrated, float32 (rows, labels).

        :param ids: int64 (rows, longest), padded at the end.
        """
        lengths, rows = lengths.to(ids.device), len(ids)
        context = torch.tensor(self._context[:-1], device=ids.device)[: int(lengths.min()) - 1]
        same = (ids[:, : len(context)] == context).all(0)
        shared = int(same.long().cumprod(0).sum())
        cache = copy.deepcopy(self._begun) if shared else type(self._begun)()
        if shared:
            cache.crop(shared - cache.get_seq_length())
            cache.batch_repeat_interleave(rows)
        # Padded at the start: all rows end in the last column.
        width = int(lengths.max()) - shared
        columns = torch.arange(width, device=ids.device) - (width - (lengths[:, None] - shared))
        numbers = (columns + shared).clamp(min=0)
        mask = torch.cat([torch.ones(rows, shared, device=ids.device), columns >= 0], 1).long()
        keep = {"past_key_values": cache, "use_cache": True}
        inputs = {"input_ids": ids.gather(1, numbers), "attention_mask": mask, "position_ids": numbers}
        first = self.model(**inputs, **keep, logits_to_keep=1).logits[:, -1:].float().log_softmax(-1)
        scores = []
        for option in self.options[0]:
            tokens, logs = torch.tensor(option.ids, device=ids.device), first
            if len(tokens) > 1:
                steps = torch.arange(len(tokens) - 1, device=ids.device)
                more = {"attention_mask": torch.cat([mask, mask.new_ones(rows, len(steps))], 1)}
                more |= {"input_ids": tokens[:-1].expand(rows, -1), "position_ids": lengths[:, None] + steps}
                logs = torch.cat([first, self.model(**more, **keep).logits.float().log_softmax(-1)], 1)
                cache.crop(-len(steps))
            chosen = logs.gather(2, tokens.expand(rows, -1)[:, :, None])[:, -option.scored :, 0]
            scores.append(chosen.mean(1))
        stacked = torch.stack(scores, 1)
        return stacked[:, 0::2] - stacked[:, 1::2] if self.prompt.several else stacked

    @cached_property
    def _first(self) -> list[int]:
        """What the tokenizer puts before every text, unless the chat template has written it."""
        begins = not self.prompt.chat and self.pieces.begins_specially
        return self.tokenizer.backend_tokenizer.encode("").ids[:1] if begins else []

    def _ids(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return each prompt's tokens: with what the tokenizer puts first, without what it puts last."""
        first, tokenizer = self._first, self.tokenizer.backend_tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        encodings = tokenizer.encode_batch_fast([*prompts], add_special_tokens=False)
        return [first + encoding.ids for encoding in encodings]

    def _truncated(self, texts: Sequence[Text], max_length: int) -> list[Text]:
        """Return texts that have at most so many tokens, and pairs whose sentences have half of them each."""
        tokenizer = self.tokenizer.backend_tokenizer
        tokenizer.no_padding()

        def cut(sentences: Sequence[str], limit: int) -> list[str]:
            tokenizer.enable_truncation(limit)
            encodings = tokenizer.encode_batch(list(sentences), add_special_tokens=False)
            ends = [encoding.offsets[-1][1] if encoding.offsets else 0 for encoding in encodings]
            cuts = zip(sentences, ends, encodings, strict=True)
            return [text[:end] if encoding.overflowing else text for text, end, encoding in cuts]

        if texts and not isinstance(texts[0], str):
            return list(zip(*(cut(side, max_length // 2) for side in zip(*texts, strict=True)), strict=True))
        return cut(texts, max_length)


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts begin with alike."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    return int(np.argmin([*same, False]))
