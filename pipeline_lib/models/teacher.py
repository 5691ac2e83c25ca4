"""A teacher: a transformers encoder, classifier or regressor; a pair is one sequence with token types."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch

from pipeline_lib.base.devices import DTYPES
from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import sha256_file, sha256_json
from pipeline_lib.base.kinds import KINDS, kind_of_model, stated_kind
from pipeline_lib.base.model_config import check_is_model, position_count
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import Text
from pipeline_lib.models.networks.layers import model_inputs
from pipeline_lib.models.networks.packing import packed
from pipeline_lib.models.weights import count_parameters
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.masking import signed_sentences
from pipeline_lib.text.pieces import Pieces, load_config, load_fast_tokenizer, tokenizer_files
from pipeline_lib.text.ragged import Sentences, to_device

TOKENISING, _COMPUTING = threading.Lock(), threading.Lock()
"""Of a process's threads one tokenises and one computes at a time; a tokenizer has its own."""
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
CAUSAL, PROMPT = "AutoModelForCausalLM", "prompt.json"
"""How transformers loads a causal language model, and what it is asked: the file that makes its folder a teacher."""


@dataclass
class Transformer(ABC):
    """A transformers encoder and its tokenizer on one device, in one dtype.

    :ivar model: in evaluation mode; :ivar tokenizer: its fast tokenizer.
    :ivar digest: SHA-256 over weights, configuration and tokenizer, used in store keys.
    :ivar packs: whether it computes batches without padding, see :func:`~pipeline_lib.models.trial.can_pack`.
    """

    model: Any
    tokenizer: Any
    device: torch.device
    precision: str
    digest: str
    packs: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, folder: Path, model: Any, tokenizer: Any, device: torch.device | str, precision: str, **fields: Any
    ) -> Self:
        """Prepare what was loaded from a folder to predict, as it is fastest."""
        from pipeline_lib.models.networks.attention import use_short_attention
        from pipeline_lib.models.trial import can_pack

        use_short_attention(model)
        packs = can_pack(model.eval(), Pieces.of(tokenizer, model.config))
        model = keep_head_exact(model.to(device, DTYPES[precision]))
        return cls(model, tokenizer, torch.device(device), precision, digest_model(folder), packs=packs, **fields)

    def parameters(self, embeddings: bool) -> int:
        """Count parameters, with or without the embedding tables (the papers leave them out)."""
        return count_parameters(self.model, embeddings)

    @property
    def pieces(self) -> Pieces:
        """Its tokenizer, as students use it."""
        return Pieces.of(self.tokenizer, self.model.config)

    def sentences(self, rows: pa.Table, side: str) -> list[str]:
        """Return each row's sentence of one side as the teacher reads it: masked words become its mask token."""
        return signed_sentences(rows, side, lambda: self.pieces.mask_sign)

    def texts(self, rows: pa.Table) -> list[Text]:
        """Return each row's sentence, or pair of sentences, as the teacher reads it."""
        columns = [self.sentences(rows, side) for side in column_suffixes(rows)]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def encode(self, texts: Sequence[Text], max_length: int) -> Sentences:
        """Return the token ids of each text or pair, special tokens included; see :class:`Pieces`."""
        positions = position_count(self.model.config.to_dict())
        if positions is not None and max_length > positions:
            raise PotstillError(
                f"max_length: {max_length}, but the model has {positions} positions. Set it to at "
                f"most {positions} in params.yaml."
            )
        with TOKENISING:
            return self.pieces.number(texts, max_length)

    def predict(self, texts: Sequence[Text], max_length: int, batch_tokens: int) -> np.ndarray:
        """Return the outputs for each text or pair, float32, (texts, outputs), in their order."""
        return self.answer(self.encode(texts, max_length), batch_tokens)

    def answer(self, sentences: Sentences, batch_tokens: int) -> np.ndarray:
        """Return the outputs for each of a call's sentences, float32, (sentences, outputs).

        A row's batch depends only on the sentences of this call: the same call gives the same bytes
        on the same machine, however often it is interrupted.  Several threads may call: one
        computes while another's outputs are on their way from the device.
        """
        batches = [*self.batches(sentences.lengths, batch_tokens)]
        if not batches:
            return np.empty((0, self.width), np.float32)
        with _COMPUTING, torch.inference_mode():
            # Nothing waits for an accelerator before its work on all batches is queued.
            arrived = _fetch(torch.cat([self._outputs(sentences, rows) for rows in batches]))
        outputs = np.empty((len(sentences), self.width), np.float32)
        outputs[np.concatenate(batches)] = arrived()
        return outputs

    def batches(self, lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
        """Yield the row numbers of each batch of :meth:`answer`; rows may repeat."""
        return length_sorted_batches(lengths, batch_tokens, padded=not self.packs)

    def _outputs(self, sentences: Sentences, rows: np.ndarray) -> torch.Tensor:
        batch = to_device(sentences.batch(rows), self.device)
        with packed(batch) if self.packs else nullcontext():
            return self.forward(batch).float()

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of values that :meth:`forward` returns per row."""

    @abstractmethod
    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the outputs for a batch of :class:`Sentences`, shape (rows, width)."""

    def run(self, batch: Mapping[str, torch.Tensor]) -> Any:
        """Call the model on a batch of :class:`Sentences` and return what it returns."""
        return self.model(**model_inputs(batch))


def _fetch(outputs: torch.Tensor) -> Callable[[], np.ndarray]:
    """Start to copy a device's tensor; return what waits for the copy and returns it."""
    if outputs.device.type != "cuda":
        return outputs.cpu().numpy
    host = torch.empty(outputs.shape, dtype=outputs.dtype, pin_memory=True)
    host.copy_(outputs, non_blocking=True)
    event = torch.cuda.Event()
    event.record()

    def arrived() -> np.ndarray:
        event.synchronize()
        return host.numpy()

    return arrived


@dataclass
class Teacher(Transformer):
    """A sequence classifier: its outputs are a logit per class or label, or a score."""

    @cached_property
    def label_names(self) -> list[str]:
        """Class names, by class index."""
        names = self.model.config.id2label
        return [names[number] for number in range(len(names))]

    @property
    def kind(self) -> str:
        """The kind of its task."""
        return kind_of_model(self.label_names, self.model.config.to_dict())

    @property
    def width(self) -> int:
        """The number of classes; 1 for a regression."""
        return len(self.label_names)

    def forward(self, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the logits for a batch of :class:`Sentences`, shape (rows, classes)."""
        return self.run(batch).logits


def keep_head_exact(model: Any) -> Any:
    """Make everything above the model's encoder compute in float32, and return the model.

    bfloat16 has eight bits of precision: 420 tweets got only 279 distinct scores from a head in it.
    The head's cost is negligible next to the encoder's.
    """
    if model.base_model is not model:
        for module in model.children():
            if module is not model.base_model:
                module.float().register_forward_pre_hook(_to_float32, with_kwargs=True)
    return model


def _to_float32(_: torch.nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
    def exact(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.float() if floating else value

    return tuple(map(exact, args)), {name: exact(value) for name, value in kwargs.items()}


def load_classifier(
    folder: Path, label_names: Sequence[str] | None = None, kind: str | None = None, pooled: bool = False
) -> tuple[Any, Any]:
    """Load (model, tokenizer) as a classifier; ``label_names`` are what a model is to be tuned to.

    An encoder gets a new head, and so does a classifier of another number of labels; one of as many
    keeps its head.  A single label name means a regression with one output.

    :param kind: what the outputs are to be; None: a score, or alternatives.
    :param pooled: whether the new head is a linear layer over the mean of the states, not the architecture's.
    """
    from pipeline_lib.models.pooled import PooledClassifier, is_pooled, load_head

    head: dict[str, Any] = {}
    if label_names is not None:
        kind, names = kind or kind_of_model(label_names, {}), dict(enumerate(label_names))
        head = {"id2label": names, "label2id": {name: i for i, name in names.items()}}
        head["problem_type"] = KINDS[kind].problem_type
    pooled = pooled if head else is_pooled(folder)
    auto_class = "AutoModel" if pooled else "AutoModelForSequenceClassification"
    model, tokenizer = load_pretrained(folder, auto_class, head)
    model = PooledClassifier(model) if pooled else model
    if label_names is not None:
        model.config.update(stated_kind(kind, label_names))
    elif pooled:
        load_head(folder, model)
    return model, tokenizer


def load_pretrained(folder: Path, auto_class: str, head: Mapping[str, Any]) -> tuple[Any, Any]:
    """Load (model, fast tokenizer) in float32 with one of transformers' Auto classes.

    :param head: the settings of a new head; empty: everything is to come from the folder.
    """
    import transformers

    from pipeline_lib.models.trial import check_answers
    from pipeline_lib.models.weights import check_loaded

    check_sealed(folder)
    check_is_model(folder)
    load_config(folder)
    tokenizer = load_fast_tokenizer(folder)
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    # Nothing here may access the hub: the fetch stages did that, at pinned revisions.
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        model, info = getattr(transformers, auto_class).from_pretrained(
            folder,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            # Those that must not differ are refused below, by name.
            ignore_mismatched_sizes=True,
            **local,
            **head,
        )
    except MemoryError:
        raise
    except Exception as error:  # each architecture fails in its own way
        if "out of memory" in str(error):
            raise
        raise _not_a_model(folder, reason_of(error)) from error
    check_loaded(folder, model, info, bool(head))
    pieces = Pieces.of(tokenizer, model.config)
    if getattr(model.config, "pad_token_id", None) is None and pieces.padding is not None:
        model.config.pad_token_id = pieces.pad_id
    check_answers(folder, model, pieces)
    return model, tokenizer


def _not_a_model(folder: Path, reason: str) -> PotstillError:
    return PotstillError(
        f"{folder}: not a model that transformers can load ({reason}). It needs config.json, "
        "*.safetensors and tokenizer files, as save_pretrained writes them."
    )


def digest_model(folder: Path) -> str:
    """Return one SHA-256 over what affects a model folder's outputs: weights, configuration and tokenizer."""
    weights = {path for pattern in WEIGHTS for path in Path(folder).glob(pattern)}
    paths = {*tokenizer_files(folder), *Path(folder).glob("config.json"), *Path(folder).glob(PROMPT), *weights}
    return sha256_json({path.name: sha256_file(path) for path in sorted(paths)})


def length_sorted_batches(lengths: np.ndarray, batch_tokens: int, padded: bool = True) -> Iterator[np.ndarray]:
    """Yield row numbers in batches of at most ``batch_tokens`` tokens.

    Rows are sorted by length, which leaves little padding; longest first, so that a batch that does
    not fit into memory fails at once.  A row longer than the budget gets a batch of its own.

    :param padded: whether padding counts, or the batches are packed.
    """
    order = np.argsort(-lengths, kind="stable")
    ends, start = np.cumsum(lengths[order]), 0
    while start < len(order):
        longest = int(lengths[order[start]])
        if padded:
            stop = start + max(1, batch_tokens // longest)
        else:
            before = ends[start] - longest
            stop = max(start + 1, int(np.searchsorted(ends, before + batch_tokens, side="right")))
        yield order[start:stop]
        start = stop
