"""Word vectors: of GloVe and word2vec files, read once, line by line, or averaged from a teacher's word pieces."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from tokenizers.decoders import ByteLevel

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.seals import check_sealed

CONTINUES = "##"
"""What a piece begins with that continues a word, as in BERT's vocabulary."""
TABLES = ("word_embeddings.weight", "tok_embeddings.weight")
"""Name endings of word-piece embedding tables: in BERT-like models, and in ModernBERT."""
_SPACE = "▁"
"""SentencePiece's sign for the space before a word."""
_CHUNK = 1 << 20
_LONGEST_WORD = 1 << 16


def read_vectors(
    path: Path, format: str, words: Iterable[str], extra: int = 0, usable: Callable[[str], bool] = lambda word: True
) -> tuple[list[str], np.ndarray]:
    """Return the vectors of the wanted words, and of the file's first ``extra`` usable other ones.

    Both are in the file's order, which is by descending frequency in the usual files.

    :param path: the file.
    :param format: ``glove`` (text), ``word2vec`` (text with a header line) or ``word2vec_binary``.
    :param words: the wanted words; those that the file lacks are not returned.
    :param usable: whether the tokenizer can produce a word; others would never be looked up.
    :return: the words found, and their vectors, float32, shape (words, width).
    """
    missing = {word.encode("utf-8", "surrogatepass") for word in words}
    count, left, seen = len(missing), extra, set()
    words_read: list[str] = []
    rows: list[np.ndarray] = []
    for word, numbers, where in _entries(path, format):
        if word in missing:
            missing.discard(word)
        elif left > 0 and word not in seen and _is_text(word) and usable(word.decode()):
            left -= 1
        else:
            continue
        seen.add(word)
        words_read.append(word.decode("utf-8", "surrogatepass"))
        rows.append(_vector(numbers, where))
        if not missing and not left:
            break
    if count and len(missing) == count:
        raise PotstillError(
            f"{path}: contains none of the {count} wanted words. Check `format` and `lowercase` "
            "of `vocabulary` in params.yaml, and the file's language."
        )
    return words_read, np.stack(rows) if rows else np.zeros((0, 0), np.float32)


Numbers = list[bytes] | bytes
"""The numbers of one word, in text or as float32, parsed only if it is wanted."""
Entry = tuple[bytes, Numbers, str]
"""A word, its numbers, and where they are, for messages."""


def _vector(numbers: Numbers, where: str) -> np.ndarray:
    """Return the numbers of one word, float32 (width,)."""
    try:
        binary = isinstance(numbers, bytes)
        values = np.frombuffer(numbers, "<f4") if binary else np.array([*map(float, numbers)])
    except ValueError as error:
        raise _bad(where, "a value is not a number") from error
    with np.errstate(over="ignore"):
        vector = values.astype(np.float32)
    if not np.isfinite(vector).all():
        raise _bad(where, "a value is not finite")
    return vector


def _entries(path: Path, format: str) -> Iterator[Entry]:
    try:
        with open(path, "rb") as handle:
            if format == "glove":
                yield from _text_entries(path, handle, None, 1)
            else:
                count, width = _header(path, handle)
                if format == "word2vec":
                    yield from _counted(path, _text_entries(path, handle, width, 2), count)
                else:
                    yield from _binary_entries(path, handle, count, width)
    except FileNotFoundError as error:
        raise PotstillError(f"{path}: not found. Run `distill run` to fetch it.") from error


def _header(path: Path, handle: IO[bytes]) -> tuple[int, int]:
    fields = handle.readline(256).split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields) or int(fields[1]) < 1:
        raise _bad(f"{path}: line 1", "no word2vec header (words and width)")
    return int(fields[0]), int(fields[1])


def _text_entries(path: Path, handle: IO[bytes], width: int | None, first: int) -> Iterator[Entry]:
    # Split at bytes 0x20 and 0x0A only: words may contain other characters that Unicode counts as spaces.
    for number, raw in enumerate(handle, first):
        line = raw.rstrip(b" \r\n")
        where = f"{path}: line {number}"
        if width is None:
            width = line.count(b" ")
            if not width:
                raise _bad(where, "no word and numbers, separated by spaces")
        # From the right: some GloVe words contain spaces.
        word, *numbers = line.rsplit(b" ", width)
        if len(numbers) != width or not word:
            raise _bad(where, f"{line.count(b' ')} numbers, not {width}")
        if b" " in word and _is_number(word.rpartition(b" ")[2]):
            raise _bad(where, f"more numbers than {width}")
        yield word, numbers, where


def _counted(path: Path, entries: Iterator[Entry], count: int) -> Iterator[Entry]:
    number = 0
    for number, entry in enumerate(entries, 1):  # noqa: B007 (used after the loop)
        yield entry
    if number != count:
        raise _bad(f"{path}: line {number + 1}", f"the file ends, its header says {count} words")


def _binary_entries(path: Path, handle: IO[bytes], count: int, width: int) -> Iterator[Entry]:
    buffer, start, size = b"", 0, 4 * width
    for number in range(1, count + 1):
        space = buffer.find(b" ", start)
        while space < 0 or len(buffer) < space + 1 + size:
            chunk = handle.read(_CHUNK)
            where = f"{path}: word {number}"
            if not chunk:
                raise _bad(where, f"the file ends, its header says {count} words of {width} numbers")
            if space < 0 and len(buffer) - start > _LONGEST_WORD:
                raise _bad(where, "no space after the word")
            buffer, start = buffer[start:] + chunk, 0
            space = buffer.find(b" ")
        # The original tool ends each vector with a line feed, others do not.
        word = buffer[start:space].lstrip(b"\n")
        start = space + 1 + size
        yield word, buffer[space + 1 : start], f"{path}: word {number}"


def _is_text(word: bytes) -> bool:
    try:
        return bool(word.decode("utf-8").strip())
    except UnicodeDecodeError:
        return False


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bad(where: str, what: str) -> PotstillError:
    return PotstillError(f"{where}: {what}. Correct `vocabulary.vectors.format` in params.yaml, or get the file again.")


def model_vectors(model_folder: Path, words: Sequence[str]) -> np.ndarray:
    """Return the mean of each word's piece embeddings, float32 (words, width); zeros where all are unknown."""
    table = word_embeddings(model_folder)
    tokenizer = _tokenizer(model_folder)
    settings = json.loads(tokenizer.to_str())
    unknown = settings["model"].get("unk_token")
    unknown_id = tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
    # Byte-level pieces include the space before the word; without it they continue a word.
    prefix = " " if "ByteLevel" in json.dumps(settings.get("pre_tokenizer")) else ""
    encoded = tokenizer.encode_batch([prefix + word for word in words], add_special_tokens=False)
    vectors = np.zeros((len(words), table.shape[1]), np.float32)
    for row, encoding in enumerate(encoded):
        ids = [piece for piece in encoding.ids if piece != unknown_id and piece < len(table)]
        if ids:
            vectors[row] = table[ids].mean(axis=0)
    return vectors


def model_words(model_folder: Path) -> list[str]:
    """Return the whole words of a model's vocabulary: alphabetic pieces of 2 or more letters."""
    return [piece for piece in model_pieces(model_folder) if len(piece) > 1 and piece.isalpha()]


def model_pieces(model_folder: Path) -> dict[str, int]:
    """Return a model's word pieces and their ids, in the order of its vocabulary.

    That is by descending frequency in BERT's, after single characters, and nearly so in those of
    byte-pair encoding and SentencePiece.  However the model marks them, pieces that continue a word
    begin with ``##`` here.  Pieces of bytes that are no text are left out.
    """
    tokenizer = _tokenizer(model_folder)
    settings = json.loads(tokenizer.to_str())
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    spelled = _spelling(settings, vocabulary)
    pieces: dict[str, int] = {}
    for piece in sorted(vocabulary, key=vocabulary.__getitem__):
        for name in spelled(piece):
            pieces.setdefault(name, vocabulary[piece])
    return pieces


def _spelling(settings: dict[str, Any], vocabulary: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return the function that spells a piece of a tokenizer as BERT's vocabulary does."""
    model = settings["model"]
    if suffix := model.get("end_of_word_suffix"):
        # Such pieces tell where a word ends, not where it begins: each may do either.
        return lambda piece: (piece.removesuffix(suffix), CONTINUES + piece.removesuffix(suffix))
    if "ByteLevel" in json.dumps([settings.get("pre_tokenizer"), settings.get("decoder")]):
        decode = ByteLevel().decode
        return lambda piece: _marked(decode([piece]), " ") if "\ufffd" not in decode([piece]) else ()
    if sum(piece.startswith(_SPACE) for piece in vocabulary) > 1:
        return lambda piece: _marked(piece, _SPACE)
    prefix = model.get("continuing_subword_prefix") or CONTINUES
    return lambda piece: (re.sub(f"^{re.escape(prefix)}", CONTINUES, piece),)


def _marked(piece: str, mark: str) -> tuple[str]:
    """Spell a piece that has a mark if it begins a word."""
    return (piece.removeprefix(mark) if piece.startswith(mark) else CONTINUES + piece,)


def word_embeddings(model_folder: Path) -> np.ndarray:
    """Return a pretrained model's word-piece embeddings, float32 (pieces, width)."""
    from safetensors import SafetensorError

    for path in sorted(Path(model_folder).glob("*.safetensors")):
        check_sealed(path)
        try:
            table = _embeddings_of(path)
        except (SafetensorError, OSError) as error:
            raise PotstillError(
                f"{path}: truncated or not a safetensors file ({error}). Get the model again."
            ) from error
        if table is not None:
            return table
    raise PotstillError(
        f"{model_folder}: no tensor {' or '.join(f'*{name}' for name in TABLES)} in its "
        "safetensors files. Use a BERT-like model, or `vocabulary.vectors` of kind file."
    )


def _embeddings_of(path: Path) -> np.ndarray | None:
    from safetensors import safe_open

    # By torch: numpy has no bfloat16.
    with safe_open(path, "pt") as tensors:
        names = [n for n in tensors.keys() if n.endswith(TABLES)]  # noqa: SIM118
        return tensors.get_tensor(min(names, key=len)).float().numpy() if names else None


def _tokenizer(model_folder: Path) -> Any:
    from pipeline_lib.text.pieces import load_fast_tokenizer, load_tokenizer

    whole = (Path(model_folder) / "tokenizer.json").exists()
    try:
        tokenizer = load_tokenizer(model_folder) if whole else load_fast_tokenizer(model_folder).backend_tokenizer
    except ValueError as error:
        raise PotstillError(
            f"{model_folder}: no readable tokenizer ({error}). Save it with the model's tokenizer."
        ) from error
    # A stored tokenizer may truncate or pad its input.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
