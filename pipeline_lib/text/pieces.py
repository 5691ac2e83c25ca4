"""Word pieces: a pretrained model's tokenizer, as the teacher and students that share it use it."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import atomic_path, read_record, sha256_file, sha256_json, write_json
from pipeline_lib.base.model_config import read_config
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
    def of(cls, tokenizer: Any, config: Any) -> "Pieces":
        """Wrap a fast tokenizer of transformers; whether there are segments, the model's ``config`` says."""
        named = tokenizer.init_kwargs.get("model_input_names") or [SEGMENTS]
        has_segments = (getattr(config, "type_vocab_size", None) or 0) > 1
        return cls(
            tokenizer.backend_tokenizer,
            _padding(tokenizer, getattr(config, "pad_token_id", None)),
            tokenizer.unk_token,
            tokenizer.mask_token,
            has_segments and SEGMENTS in named,
        )

    @classmethod
    def read(cls, folder: Path) -> "Pieces":
        """Read what :meth:`save` wrote, without transformers; a ValueError if tokenizer.json is missing or damaged."""
        config = read_record(folder / "tokenizer_config.json", "model_input_names")
        signs = (config.get(f"{name}_token") for name in ("pad", "unk", "mask"))
        return cls(load_tokenizer(folder), *signs, SEGMENTS in config["model_input_names"])

    def save(self, folder: Path) -> None:
        """Write the files from which transformers loads a ``PreTrainedTokenizerFast``."""
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        signs = {"pad": self.padding, "unk": self.unknown, "mask": self.mask}
        save_tokenizer(folder, self.tokenizer, signs, self.segments)

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
        """
        sign = self.mask or self.unknown
        if sign is None:
            raise PotstillError(
                "the teacher's tokenizer has neither a mask nor an unknown token, and the transfer set has masked "
                "words. Set p_mask to 0 in its `transfer` recipe, or give the tokenizer a mask_token."
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
        ids, segments, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [0]
        # A few at a time: an encoding takes some thirty times the bytes of its ids.
        for start in range(0, len(texts), ENCODED_TEXTS):
            encodings = self.tokenizer.encode_batch_fast(texts[start : start + ENCODED_TEXTS])
            rows = [encoding.ids or unknown for encoding in encodings]
            lengths += map(len, rows)
            ids.append(np.fromiter(chain.from_iterable(rows), np.int32))
            if with_segments:
                sides = (encoding.type_ids or [0] for encoding in encodings)
                segments.append(np.fromiter(chain.from_iterable(sides), np.int32))
        return Sentences(
            np.concatenate(ids),
            np.cumsum(lengths, dtype=np.int64),
            {},
            self.pad_id,
            np.concatenate(segments) if with_segments else None,
        )

    def _number(self, sign: str | None) -> int | None:
        return None if sign is None else self.tokenizer.token_to_id(sign)


def save_tokenizer(folder: Path, tokenizer: Tokenizer, signs: Mapping[str, str | None], segments: bool = False) -> None:
    """Write the files from which transformers loads a ``PreTrainedTokenizerFast``, with the pad, unk and mask signs."""
    with atomic_path(folder / "tokenizer.json") as temporary:
        temporary.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    inputs = ["input_ids", "attention_mask", *([SEGMENTS] if segments else [])]
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs}
    config |= {f"{name}_token": sign for name, sign in signs.items() if sign is not None}
    write_json(folder / "tokenizer_config.json", config)


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read what :func:`save_tokenizer` wrote; a ValueError if it is missing or damaged."""
    check_sealed(folder / "tokenizer.json")
    try:
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises bare Exceptions
        raise ValueError(f"tokenizer.json: {error}") from error


def _padding(tokenizer: Any, number: int | None) -> str | None:
    """Return the token that pads: the tokenizer's, or config.json's, or what ends a document.

    A model such as GPT-2 has no padding.  It looks for the last token that is none, so padding must
    be a token that no text has.
    """
    if tokenizer.pad_token is not None:
        return tokenizer.pad_token
    if number is not None and 0 <= number < len(tokenizer):
        return tokenizer.convert_ids_to_tokens(number)
    backend, end = tokenizer.backend_tokenizer, tokenizer.eos_token
    ends_texts = end is not None and end in backend.encode("").tokens
    return None if ends_texts else end


def load_config(folder: Path) -> Any:
    """Load a model folder's configuration with transformers; no code in the folder is run."""
    from transformers import CONFIG_MAPPING, AutoConfig, __version__

    settings = read_config(folder)
    kind = settings.get("model_type")
    if kind not in CONFIG_MAPPING:
        if settings.get("auto_map"):
            raise PotstillError(
                f"{folder}: config.json has the model_type {kind}, which needs the code that "
                "auto_map names. Such code is never run: use a model that transformers has."
            )
        raise PotstillError(
            f"{folder}: the model_type in config.json is {json.dumps(kind)}, which transformers "
            f'{__version__} does not know. Correct it (a BERT has "bert"), or use another model.'
        )
    if getattr(CONFIG_MAPPING[kind], "is_encoder_decoder", False):
        raise PotstillError(
            f"{folder}: config.json is of an encoder with a decoder ({kind}), which is not "
            "supported. Use an encoder, such as BERT, or a decoder, such as GPT-2."
        )
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each configuration checks its keys in its own way
        raise PotstillError(
            f"{folder}: transformers cannot read config.json ({reason_of(error)}). Correct it, or save the model again."
        ) from error


def load_fast_tokenizer(folder: Path) -> Any:
    """Load the fast tokenizer of a model folder with transformers; nothing is downloaded."""
    from transformers import AutoTokenizer

    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except MemoryError:
        raise
    except Exception as error:  # tokenizers raises bare Exceptions, transformers many kinds
        raise PotstillError(f"{folder}: {_tokenizer_fault(folder, error)}") from error
    name = type(tokenizer).__name__
    files = [file for file in tokenizer.vocab_files_names.values() if (folder / file).exists()]
    if not tokenizer.is_fast:
        raise PotstillError(
            f"{folder}: its {name} ({', '.join(files) or 'no file'}) is a tokenizer in Python alone. Convert it to a "
            "tokenizer.json with the tokenizers library, or use a model that has one."
        )
    # Otherwise each word of each text would be the unknown word.
    if tokenizer.backend_tokenizer.get_vocab_size() <= len(tokenizer.added_tokens_decoder):
        word_files = " or ".join(dict.fromkeys(tokenizer.vocab_files_names.values()))
        there = ", ".join(path.name for path in tokenizer_files(folder)) or "no tokenizer file"
        raise PotstillError(
            f"{folder}: its {name} has no word: there is {there}, and words would be in {word_files}. "
            "Add the tokenizer with tokenizer.save_pretrained(folder)."
        )
    return tokenizer


def _tokenizer_fault(folder: Path, error: Exception) -> str:
    """Return which file keeps a tokenizer from being loaded, and the remedy."""
    again = "Save it again, with tokenizer.save_pretrained(folder)."
    for path in tokenizer_files(folder):
        if path.suffix == ".json":
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as fault:
                return f"{path.name} is not valid JSON ({reason_of(fault)}). {again}"
            if not isinstance(content, dict):
                return f"{path.name} holds a {type(content).__name__}, not an object. {again}"
    file = folder / "tokenizer.json"
    if file.exists():
        try:
            Tokenizer.from_file(str(file))
        except Exception as fault:  # the library raises bare Exceptions
            return f"tokenizer.json is not one of a tokenizer ({reason_of(fault)}). {again}"
    models = [path.name for path in folder.glob("*.model")]
    if models and not file.exists():
        return (
            f"{models[0]} cannot be read without a tokenizer.json ({reason_of(error)}). Run `pip "
            "install sentencepiece protobuf`, or save the tokenizer where both are installed, with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
    there = ", ".join(path.name for path in tokenizer_files(folder)) or "no file of one"
    return f"no tokenizer that transformers can load from {there} ({reason_of(error)}). {again}"


def load_pieces(folder: Path, reads: str) -> Pieces:
    """Load the pieces of a model folder, as a student ``reads`` them (:data:`~pipeline_lib.params.students.Reads`)."""
    return _loaded(folder, digest_tokenizer(folder), reads)


@lru_cache(maxsize=2)
def _loaded(folder: Path, digest: str, reads: str) -> Pieces:
    for path in tokenizer_files(folder):
        check_sealed(path)
    # A student's configuration is its own, and its tokenizer is what :meth:`Pieces.save` wrote.
    pieces = (
        Pieces.read(folder)
        if "architecture" in read_config(folder)
        else Pieces.of(load_fast_tokenizer(folder), load_config(folder))
    )
    return pieces.without_special_tokens() if reads == "pieces" else pieces


def digest_tokenizer(folder: Path) -> str:
    """Return one SHA-256 over all that determines tokens in a model folder."""
    digests = {path.name: sha256_file(path) for path in tokenizer_files(folder)}
    config = read_config(folder)
    names = "model_type", "type_vocab_size", "pad_token_id"
    return sha256_json([digests, [config.get(name) for name in names]])


def tokenizer_files(folder: Path) -> list[Path]:
    """Return a model folder's files that determine its tokens."""
    return sorted({path for pattern in TOKENIZER for path in Path(folder).glob(pattern)})
