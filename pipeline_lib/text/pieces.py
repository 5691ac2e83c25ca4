"""Word pieces: a pretrained model's tokenizer, as the teacher and students that share it use it."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path, read_json, sha256_file, sha256_json, write_json
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import Text
from pipeline_lib.text.ragged import Sentences

TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
)
"""The files of a model folder that determine its tokens."""
SEGMENTS = "token_type_ids"
ENCODED_TEXTS = 4096
"""Texts to encode at a time."""


@dataclass(frozen=True)
class Pieces:
    """A tokenizer of word pieces, and what the model reads besides their ids.

    :ivar tokenizer: adds the model's special tokens, if any.
    :ivar padding, unknown, mask: the model's special tokens, where it has them.
    :ivar segments: whether the model is told which sentence of a pair a token belongs to.
    """

    tokenizer: Tokenizer
    padding: str | None
    unknown: str | None
    mask: str | None
    segments: bool

    @classmethod
    def of(cls, tokenizer: Any) -> "Pieces":
        """Wrap a fast tokenizer of transformers."""
        return cls(
            tokenizer.backend_tokenizer,
            tokenizer.pad_token,
            tokenizer.unk_token,
            tokenizer.mask_token,
            SEGMENTS in tokenizer.model_input_names,
        )

    @classmethod
    def read(cls, folder: Path) -> "Pieces":
        """Read what :meth:`save` wrote; needs no transformers.

        :raises ValueError: if there is no such file, or it is damaged.
        """
        config = read_json(folder / "tokenizer_config.json")
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises bare Exceptions
            raise ValueError(f"tokenizer.json: {error}") from error
        signs = (config.get(f"{name}_token") for name in ("pad", "unk", "mask"))
        return cls(tokenizer, *signs, SEGMENTS in config["model_input_names"])

    def save(self, folder: Path) -> None:
        """Write the files from which transformers loads a ``PreTrainedTokenizerFast``."""
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        with atomic_path(folder / "tokenizer.json") as temporary:
            temporary.write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
        signs = {"pad_token": self.padding, "unk_token": self.unknown, "mask_token": self.mask}
        inputs = ["input_ids", "attention_mask", *([SEGMENTS] if self.segments else [])]
        write_json(
            folder / "tokenizer_config.json",
            {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs}
            | {name: sign for name, sign in signs.items() if sign is not None},
        )

    def without_special_tokens(self) -> "Pieces":
        """Return this tokenizer without the special tokens around a sentence."""
        tokenizer = Tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.post_processor = None
        return replace(self, tokenizer=tokenizer, segments=False)

    @property
    def size(self) -> int:
        """How many pieces there are, including special tokens."""
        return self.tokenizer.get_vocab_size()

    @property
    def begins_specially(self) -> bool:
        """Whether the first token of every sentence is one that the model adds, such as [CLS]."""
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        return self.tokenizer.encode("").special_tokens_mask[:1] == [1]

    @property
    def pad_id(self) -> int:
        """The id of the padding token, or 0 if the model has none."""
        return self._number(self.padding) or 0

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown piece, if there is one."""
        return self._number(self.unknown)

    @property
    def mask_sign(self) -> str:
        """What the model reads for a masked word: its mask token, or else its unknown word.

        For a model that was trained without a mask, an unknown word comes closest to one; students
        that read words see a masked word as unknown too.

        :raises DistilleryError: if the tokenizer has neither.
        """
        sign = self.mask or self.unknown
        if sign is None:
            raise DistilleryError(
                "the teacher's tokenizer has neither a mask nor an unknown token, and the transfer "
                "set has masked words. Set p_mask to 0 in its `transfer` recipe, or give the "
                "tokenizer a mask_token."
            )
        return sign

    def number(self, texts: Iterable[Text], limit: int) -> Sentences:
        """Return the piece ids of each text or pair, special tokens included.

        Inputs longer than ``limit`` are truncated, pairs in their longer sentence.  Segment ids are
        included for pairs if the model uses segments.
        """
        texts = list(texts)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit, strategy="longest_first")
        with_segments = self.segments and any(isinstance(text, tuple) for text in texts)
        # A text without a piece is one unknown piece: every row needs a length of at least 1.
        unknown = [self.unknown_id or self.pad_id]
        ids: list[np.ndarray] = []
        segments: list[np.ndarray] = []
        # A few at a time: an encoding takes some thirty times the bytes of its ids.
        for start in range(0, len(texts), ENCODED_TEXTS):
            for encoding in self.tokenizer.encode_batch_fast(texts[start : start + ENCODED_TEXTS]):
                ids.append(np.array(encoding.ids or unknown, np.int32))
                if with_segments:
                    segments.append(np.array(encoding.type_ids or [0], np.uint8))
        return Sentences.from_lists(ids, {}, self.pad_id, segments if with_segments else None)

    def characters_read(self, text: Text, limit: int) -> tuple[int, ...]:
        """Return where each sentence of a text is truncated: after how many characters."""
        sentences = (text,) if isinstance(text, str) else text
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit, strategy="longest_first")
        encoding = self.tokenizer.encode(*sentences)
        ends = [0] * len(sentences)
        for side, (_, end) in zip(encoding.sequence_ids, encoding.offsets, strict=True):
            if side is not None:
                ends[side] = max(ends[side], end)
        return tuple(ends)

    def _number(self, sign: str | None) -> int | None:
        return None if sign is None else self.tokenizer.token_to_id(sign)


def load_fast_tokenizer(folder: Path) -> Any:
    """Load the fast tokenizer of a model folder with transformers; nothing is downloaded.

    :raises DistilleryError: if there is none.
    """
    from transformers import AutoTokenizer

    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise DistilleryError(
            f"{folder}: no tokenizer that transformers can load ({str(error).splitlines()[0]}). "
            "Save it with the model, as save_pretrained does."
        ) from error
    if not tokenizer.is_fast:
        raise DistilleryError(
            f"{folder}: the tokenizer has no fast version. Save it with tokenizer.json."
        )
    return tokenizer


def load_pieces(folder: Path, reads: str) -> Pieces:
    """Load the word pieces of a model folder, without special tokens if ``reads`` is ``pieces``.

    A process caches the last ones.

    :param reads: ``pieces``, ``sentences`` or ``sequence``: see
        :data:`~pipeline_lib.params.students.Reads`.
    """
    return _loaded(folder, digest_tokenizer(folder), reads)


@lru_cache(maxsize=2)
def _loaded(folder: Path, digest: str, reads: str) -> Pieces:
    for path in tokenizer_files(folder):
        check_sealed(path)
    pieces = Pieces.of(load_fast_tokenizer(folder))
    return pieces.without_special_tokens() if reads == "pieces" else pieces


def digest_tokenizer(folder: Path) -> str:
    """Return one SHA-256 over all that determines tokens in a model folder."""
    digests = {path.name: sha256_file(path) for path in tokenizer_files(folder)}
    model = read_json(folder / "config.json").get("model_type")
    return sha256_json([digests, model])


def tokenizer_files(folder: Path) -> list[Path]:
    """Return a model folder's files that determine its tokens."""
    return sorted({path for pattern in TOKENIZER for path in Path(folder).glob(pattern)})
