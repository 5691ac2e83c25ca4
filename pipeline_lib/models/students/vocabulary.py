"""A student's vocabulary: its words, their ids and initial vectors, and its tokenizer.

Unknown words and masked words share one token, ``[MASK]``: "[MASK] corresponds to an unknown token
in our models" (Tang et al. 2019, section 3.3).
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from threadpoolctl import threadpool_limits
from tokenizers import AddedToken, Tokenizer, models, normalizers

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, sha256_folder, sha256_json
from pipeline_lib.base.hashing import salt, splitmix64, string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import MASK
from pipeline_lib.base.words import split_words, word_splitter
from pipeline_lib.models.students.tokenise import PAD, write_tokenizer
from pipeline_lib.models.students.word_vectors import (
    CONTINUES,
    model_pieces,
    model_vectors,
    model_words,
    read_vectors,
    word_embeddings,
)
from pipeline_lib.params import Vocabulary
from pipeline_lib.shards.columns import column_suffixes
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.shards.trained import Trained
from pipeline_lib.text.pieces import load_tokenizer


def vector_source(params: Vocabulary, layout: Layout) -> Path:
    """Return the folder that word vectors come from: a model's, or that of a fetched file."""
    vectors = params.vectors
    return layout.model(vectors.model) if vectors.kind == "model" else layout.raw_vectors


def write_vocabulary(sets: Sequence[ShardSet], params: Vocabulary, source: Path, target: Path) -> tuple[int, int]:
    """Write the words of prepared sets with their vectors into ``target``; the store may have them.

    :param source: from :func:`vector_source`.
    :returns: how many words there are, special tokens included, and how many values each has.
    """
    texts = [[shard.sha256 for shard in prepared.manifest.shards] for prepared in sets]
    settings = [texts, params.model_dump(), sha256_folder(source)]
    stored = Trained("vocabularies", sha256_json([*settings, code_fingerprint(__name__)]))
    if not stored.is_whole():
        counted = count_normalised(count_words(prepared.to_table() for prepared in sets), params.lowercase)
        selected = select_words(counted, 1)
        with stored.writing() as folder:
            save_vocabulary(folder, *build_vocabulary(selected, params, source))
    stored.link_into(target, counted_as="vocabularies")
    _, vectors = load_vocabulary(target)
    return vectors.shape


def build_vocabulary(selected: list[str], params: Vocabulary, source: Path) -> tuple[Tokenizer, np.ndarray]:
    """Return the students' tokenizer and embedding table, of :func:`select_words` and :func:`vector_source`."""
    usable = partial(is_one_word, lowercase=params.lowercase)
    if params.vectors.kind == "model":
        seen = set(selected)
        whole = (word for word in model_words(source) if word not in seen and usable(word))
        selected += islice(whole, params.extra_words)
        pieces = select_pieces(source, selected, params.pieces, usable)
        table = np.concatenate([model_vectors(source, selected), word_embeddings(source)[[*pieces.values()]]])
        selected += pieces
    else:
        path = next(path for path in sorted(source.iterdir()) if path.stem == "vectors")
        check_sealed(path)
        words, rows = read_vectors(path, params.vectors.format, selected, params.extra_words, usable)
        selected = [*dict.fromkeys([*selected, *words])]
        numbers = {word: number for number, word in enumerate(selected)}
        table = np.zeros((len(selected), rows.shape[1]), np.float32)
        table[np.array([numbers[word] for word in words], np.int64)] = rows
    if params.dimensions is not None:
        table = reduce_vectors(table, params.dimensions)
    return build_tokenizer(selected, params.lowercase), complete_vectors(selected, table)


def select_pieces(
    source: Path, words: Sequence[str], count: int | None, usable: Callable[[str], bool]
) -> dict[str, int]:
    """Return a model's first ``count`` usable pieces that are no words, in the words' scripts, and their ids."""
    if count == 0:
        return {}
    scripts, whole = {_script(sign) for word in words for sign in word}, set(words)
    others = (
        (piece, number)
        for piece, number in model_pieces(source).items()
        if piece not in whole
        and usable(stem := piece.removeprefix(CONTINUES))
        and scripts.issuperset(map(_script, stem))
    )
    return dict(islice(others, count))


def _script(sign: str) -> str:
    """Return what Unicode's name of a character begins with: LATIN, DEVANAGARI, CJK, DIGIT."""
    return unicodedata.name(sign, "").partition(" ")[0]


def is_one_word(word: str, lowercase: bool) -> bool:
    """Whether the tokenizer can produce a word: it is not split, and keeps its case."""
    return word == normaliser(lowercase)(word) and split_words(word)[0] == [word]


def reduce_vectors(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Project the words with a vector onto their first principal components; zeros stay zeros."""
    if dimensions > vectors.shape[1]:
        raise PotstillError(
            f"vocabulary.dimensions: {dimensions}, but the vectors have {vectors.shape[1]}. Use at most that, or null."
        )
    present = vectors.any(axis=1)
    centred = (vectors - vectors[present].mean(0)).astype(np.float64)
    # Several threads would add in another order: one gives the same bytes on any number of cores.
    with threadpool_limits(1, "blas"):
        _, axes = np.linalg.eigh(centred[present].T @ centred[present])
        return np.where(present[:, None], centred @ axes[:, ::-1][:, :dimensions], 0.0)


def build_tokenizer(words: Sequence[str], lowercase: bool) -> Tokenizer:
    """Return the tokenizer over ``words``: the project's word pattern, one id per word.

    With pieces among them that continue a word (``##``), a word that is not there is read by the
    longest pieces from its start (Devlin et al. 2019, section 3; Wu et al. 2016, section 4.1).
    """
    vocabulary = {word: number for number, word in enumerate([PAD, MASK, *words])}
    is_open = any(word.startswith(CONTINUES) for word in words)
    model = models.WordPiece if is_open else models.WordLevel
    tokenizer = Tokenizer(model(vocabulary, unk_token=MASK))
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = word_splitter()
    # As special tokens they are matched verbatim, whatever the normalizer does.
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in (PAD, MASK)])
    return tokenizer


def select_words(counted: Counter[str], min_count: int) -> list[str]:
    """Return words that occur ``min_count`` times or more, most frequent first, then sorted."""
    kept = [(-count, word) for word, count in counted.items() if count >= min_count]
    return [word for _, word in sorted(kept)]


def count_words(tables: Iterable[pa.Table]) -> Counter[str]:
    """Count the ``words`` of prepared shards; Arrow does, since a large corpus's would not fit in memory as objects."""
    counted: Counter[str] = Counter()
    for table in tables:
        for side in column_suffixes(table):
            counts = pc.list_flatten(table[f"words{side}"]).value_counts().to_pylist()
            counted.update({entry["values"]: entry["counts"] for entry in counts})
    return counted


def count_normalised(words: Iterable[str], lowercase: bool) -> Counter[str]:
    """Count words as the tokenizer will see them, given the words or how often each occurs."""
    normalise = normaliser(lowercase)
    counted: Counter[str] = Counter()
    for word, count in Counter(words).items():
        counted[normalise(word)] += count
    return counted


def normaliser(lowercase: bool) -> Callable[[str], str]:
    """Return what the tokenizer does to a word's case."""
    return normalizers.Lowercase().normalize_str if lowercase else str


def complete_vectors(words: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    """Return the embedding table, float32, shape (words + 2, width), pad and mask first.

    Rows of zeros in ``vectors`` (words without one) become random, with the same variance as the others (Kim 2014,
    section 3.1.2) and seeded by the word itself, so that they do not depend on which other words are present.  All
    are scaled to a mean square of 9 / width: the scale at which an LSTM's gates respond.
    """
    present = vectors.any(axis=1)
    table = scale_vectors(vectors)
    table[~present] = random_vectors([w for w, p in zip(words, present, strict=True) if not p], vectors.shape[1])
    return np.concatenate([np.zeros((2, vectors.shape[1])), table]).astype(np.float32)


def scale_vectors(vectors: np.ndarray) -> np.ndarray:
    """Scale the vectors so that the non-zero ones have a root-mean-square norm of 3."""
    present = vectors.any(axis=1)
    norm = float(np.sqrt((vectors[present] ** 2).sum(1).mean())) if present.any() else 1.0
    return vectors * (3.0 / norm)


def piece_vectors(model_folder: Path, pieces: int, dimensions: int) -> np.ndarray:
    """Return the first principal components of a pretrained model's word-piece embeddings.

    :param pieces: rows in the table; pieces without an embedding get zeros.
    :returns: float32 (pieces, dimensions), scaled as :func:`complete_vectors` scales words.
    """
    embeddings = word_embeddings(model_folder)[:pieces]
    if dimensions > embeddings.shape[1]:
        raise PotstillError(
            f"embedding_size: {dimensions}, but the word pieces of {model_folder} have "
            f"{embeddings.shape[1]} values. Use at most that, or `start: random`."
        )
    table = np.zeros((pieces, embeddings.shape[1]), np.float32)
    table[: len(embeddings)] = embeddings
    return scale_vectors(reduce_vectors(table, dimensions)).astype(np.float32)


def random_vectors(words: Sequence[str], width: int) -> np.ndarray:
    """Return uniform random vectors seeded by each word, with a root-mean-square norm of 3."""
    counters = string_keys(words)[:, None] + np.arange(width, dtype=np.uint64)
    bits = splitmix64(counters ^ salt("word vector")) >> np.uint64(11)
    return (bits.astype(np.float64) * 2.0**-52 - 1.0) * 3.0 * np.sqrt(3.0 / width)


def save_vocabulary(folder: Path, tokenizer: Tokenizer, vectors: np.ndarray) -> None:
    """Write tokenizer files and ``vectors.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, tokenizer)
    with atomic_path(folder / "vectors.safetensors") as temporary:
        save_file({"vectors": vectors}, temporary)


def load_vocabulary(folder: Path) -> tuple[Tokenizer, np.ndarray]:
    """Return the (tokenizer, embedding table) that :func:`save_vocabulary` wrote."""
    check_sealed(folder)
    try:
        return load_tokenizer(folder), load_file(folder / "vectors.safetensors")["vectors"]
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise PotstillError(f"{folder}: not a vocabulary ({error}). Delete it and run `distill run`.") from error
