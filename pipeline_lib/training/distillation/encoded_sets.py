"""Encoded sets: transfer and dev sets as token ids with targets, computed once, in Arrow files that all workers map."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file, sha256_json
from pipeline_lib.base.kinds import KINDS, kind_of_labels, label_array
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.params import Reads
from pipeline_lib.shards.columns import FIRST, SECOND, list_column, matrix, whole
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import Piece, ShardPass, run_pieces
from pipeline_lib.shards.engine.protocol import Engine
from pipeline_lib.shards.shard_sets import SetReference, ShardSet, check_answers
from pipeline_lib.shards.vectors import ChosenVectors, StoredVectors, vector_tables
from pipeline_lib.text.pieces import digest_tokenizer, load_pieces, load_tokenizer
from pipeline_lib.text.ragged import PAD_ID, Sentences
from pipeline_lib.training.dev_scores import LabelScale
from pipeline_lib.training.distillation.token_lists import list_ends, piece_lists, sequence_lists, word_lists
from pipeline_lib.training.runs import TrainingSpec
from pipeline_lib.training.search import TrainingRow


@dataclass(frozen=True)
class EncodedInput:
    """The source of one encoded set: a transfer set with its outputs, or a prepared split.

    :ivar outputs: the teacher's logits, if they are targets, or replace a split's labels.
    :ivar states: its layers' states.
    :ivar prepared: whether ``inputs`` is a prepared split, every row of which is used.
    """

    inputs: SetReference
    outputs: SetReference | None = None
    prepared: bool = False
    states: SetReference | None = None

    @property
    def piece(self) -> Piece:
        """The input as a piece of an :class:`EncodingPass`."""
        outputs = self.outputs.digest if self.outputs else None
        digests = [self.inputs.digest, outputs, self.prepared]
        digests += [self.states.digest] if self.states else []
        return Piece(sha256_json(digests), self)


@dataclass(frozen=True)
class EncodingPass(ShardPass):
    """The pass that tokenizes a whole set, in words or word pieces, and collects its targets.

    Targets: ``labels`` int64, or float32 for a regression, or uint8 for several labels (the teacher's answer if a
    row has none) and, with outputs, ``logits`` float32.  Rows that the teacher did not answer are left out; if its
    answers are weighted, ``weights`` are float32. Layer states stay in their own shards, and the targets have the
    number of each one's row, ``rows``.  A synthetic row that also occurs in another block is dropped here;
    duplicates within a block were dropped when it was made.

    :ivar vocabulary: the tokenizer's folder, a model's for word pieces; :ivar tokenizer: its digest.
    :ivar max_words: the words or pieces kept of a sentence, or of a whole sequence.
    :ivar reads: see :data:`~pipeline_lib.params.students.Reads`.
    """

    kind: ClassVar[str] = "encoded"
    row_for_row: ClassVar[bool] = False
    vocabulary: Path
    tokenizer: str
    max_words: int
    reads: Reads = "words"

    @classmethod
    def of(cls, vocabulary: Path, max_words: int, **fields: Any) -> "EncodingPass":
        """Return the pass for the tokenizer in a folder, with its other fields."""
        words = fields.get("reads", "words") == "words"
        file = vocabulary / "tokenizer.json"
        digest = sha256_file(file) if words else digest_tokenizer(vocabulary)
        return cls(vocabulary, digest, max_words, **fields)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines an encoded set besides its input, the code and the libraries."""
        return {"tokenizer": self.tokenizer, "max_words": self.max_words, "reads": self.reads}

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that tokenize; transformers loads a model's tokenizer."""
        return ("tokenizers",) if self.reads == "words" else ("tokenizers", "transformers")

    def compute(self, content: EncodedInput) -> pa.Table:
        """Return columns ids (list of int32), for pairs ids_2, labels and, with outputs, logits.

        With states, also rows; with weighted answers, weights.  If one sequence holds a pair, it
        has segments instead of ids_2.
        """
        outputs = content.outputs.open() if content.outputs else None
        pairs = list(_rows(content.inputs.open(), outputs))
        tables = [rows for rows, _ in pairs]
        everything = np.ones(sum(rows.num_rows for rows in tables), bool)
        chosen = everything if content.prepared else _without_duplicates(tables)
        logits = None
        if outputs is not None:
            logits = np.concatenate([logits for _, logits in pairs])
            chosen &= answered(logits)
            if len(chosen) and not chosen.any():
                raise PotstillError(
                    f"{outputs.folder}: none of {len(chosen):,} rows has an answer, so there is nothing to train on. "
                    "`distill teacher requests` writes the rows that need one."
                )
        targets = {"labels": np.concatenate([_labels(*pair) for pair in pairs])[chosen]}
        if outputs is not None and not content.prepared:
            targets["logits"] = logits[chosen]
            weights = _weights(outputs)
            if weights is not None:
                targets["weights"] = weights[chosen]
        if content.states is not None:
            targets["rows"] = np.flatnonzero(chosen)
        return self._table(tables, targets, chosen)

    def _words(self) -> Tokenizer:
        try:
            return load_tokenizer(self.vocabulary)
        except ValueError as error:
            raise PotstillError(f"{self.vocabulary}: {error}. Delete the folder and run `distill run`.") from error

    def _table(self, tables: list[pa.Table], targets: dict[str, np.ndarray], chosen: np.ndarray) -> pa.Table:
        if self.reads == "words":
            tokenizer = self._words()
            numbered = [word_lists(rows, tokenizer, self.max_words) for rows in tables]
        else:
            pieces = load_pieces(self.vocabulary, self.reads)
            to_lists = sequence_lists if self.reads == "sequence" else piece_lists
            numbered = [to_lists(rows, pieces, self.max_words) for rows in tables]
        columns = {}
        for name in numbered[0]:
            lengths = np.concatenate([lists[name][1] for lists in numbered])
            words = np.concatenate([lists[name][0] for lists in numbered])[np.repeat(chosen, lengths)]
            columns[name] = pa.LargeListArray.from_arrays(list_ends(lengths[chosen]), words)
        return pa.table(columns | {name: _column(values) for name, values in targets.items()})

    def read(self, content: EncodedInput) -> Sentences:
        """Return an encoded set, memory-mapped; it is computed if the store lacks it."""
        references = content.inputs, content.outputs, content.states
        inputs, _, states = (None if reference is None else reference.open() for reference in references)
        (answer,), _ = run_pieces(self, [content.piece], LocalEngine(1))
        (table,) = answer.tables(self)
        sentences = None
        suffixes = [suffix for suffix in (FIRST, SECOND) if f"ids{suffix}" in table.column_names]
        targets = {name: _values(table[name]) for name in ("labels", "logits", "weights") if name in table.column_names}
        if states is not None:
            targets["states"] = _states(inputs, states, _values(table["rows"]))
        segments = _flat(table["segments"])[0] if "segments" in table.column_names else None
        pad_id = PAD_ID
        if self.reads != "words":
            pad_id = load_pieces(self.vocabulary, self.reads).pad_id
        for suffix in reversed(suffixes):
            ids, offsets = _flat(table[f"ids{suffix}"])
            sentences = Sentences(ids, offsets, targets, pad_id, segments, second=sentences)
        return sentences


def _flat(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return a column of lists as one array, and the offsets of the lists in it."""
    lists = whole(column)
    return lists.values.to_numpy(), lists.offsets.to_numpy()


Encoded = tuple[EncodingPass, EncodedInput]
"""How a set is encoded, and from what."""


class EncodedTraining(TrainingSpec):
    """A training run that reads encoded sets; ``words`` is the folder of their tokenizer."""

    words: Path

    @property
    def encoding(self) -> EncodingPass:
        """How its sets are encoded."""
        return EncodingPass.of(self.words, self.student.max_words, reads=self.student.reads)

    @property
    @abstractmethod
    def sets(self) -> list[Encoded]:
        """The sets that it reads."""


def encode_sets(rows: Sequence[TrainingRow[EncodedTraining]], engine: Engine) -> None:
    """Encode the sets that the rows' missing runs read, once each, using all workers."""
    specs = [row.spec(*run) for row in rows for run in row.search()]
    missing = [spec for spec in specs if not spec.result.is_whole()]
    sets: dict[EncodingPass, set[EncodedInput]] = {}
    for encoding, content in (encoded for spec in missing for encoded in spec.sets):
        sets.setdefault(encoding, set()).add(content)
    for encoding, contents in sets.items():
        pieces = sorted((content.piece for content in contents), key=lambda piece: piece.digest)
        run_pieces(encoding, pieces, engine)


def standardised(sentences: Sentences, scale: LabelScale | None) -> Sentences:
    """Return the sentences with standardised scores; classes and their logits are unchanged."""
    if scale is None:
        return sentences
    scores = {name: sentences.targets.get(name) for name in ("labels", "logits")}
    targets = {name: scale.standardise(v) for name, v in scores.items() if v is not None}
    return replace(sentences, targets={**sentences.targets, **targets})


def _column(values: np.ndarray) -> pa.Array:
    return pa.array(values) if values.ndim == 1 else list_column(values)


def _values(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_fixed_size_list(column.type):
        return matrix(column)
    return whole(column).to_numpy()


def _rows(inputs: ShardSet, outputs: ShardSet | None) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
    """Yield (input rows, logits) per shard, memory-mapped, after checking that they match."""
    if outputs is None:
        yield from ((rows, None) for rows in inputs.tables())
        return
    check_answers(inputs.manifest, outputs.manifest)
    for rows, answers in zip(inputs.tables(), outputs.tables(), strict=True):
        yield rows, matrix(answers["logits"])


def _weights(outputs: ShardSet) -> np.ndarray | None:
    """Return each row's weight, float32 (rows,); None: all rows count equally."""
    table = outputs.to_table()
    return table["weight"].to_numpy() if "weight" in table.column_names else None


def _states(inputs: ShardSet, states: ShardSet, rows: np.ndarray) -> ChosenVectors:
    """Return the teacher's states for these rows of a transfer set, read as batches need them."""
    tables = [(stored, FIRST) for _, stored in vector_tables(inputs, states)]
    return ChosenVectors(StoredVectors(tables, "states"), rows)


def _labels(rows: pa.Table, logits: np.ndarray | None) -> np.ndarray:
    """Return the rows' labels; missing ones are replaced by the teacher's answer."""
    column = rows["label"]
    missing = column.is_null().to_numpy()
    present = label_array(column.drop_null())
    labels = np.zeros((len(missing), *present.shape[1:]), present.dtype)
    labels[~missing] = present
    if missing.any():
        if logits is None:
            raise PotstillError(
                f"{missing.sum():,} training rows have no label, and this row reads no teacher's "
                "outputs to replace them. Run `distill run` again."
            )
        labels[missing] = KINDS[kind_of_labels(column)].decide(logits[missing])
    return labels


def _without_duplicates(tables: Sequence[pa.Table]) -> np.ndarray:
    """Return a mask of the rows to use: all originals, and one synthetic row per other key."""
    synthetic = np.concatenate([rows["iteration"].to_numpy() > 0 for rows in tables])
    keys = np.concatenate([rows["key"].to_numpy() for rows in tables])
    order = np.argsort(synthetic, kind="stable")
    first = np.zeros(len(keys), bool)
    first[order[np.unique(keys[order], return_index=True)[1]]] = True
    return first | ~synthetic
