"""A set and the answers to it as flat rows, for other tools: docs/inspection.md."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.changes import in_words, rules_of, sentences_of
from pipeline_lib.inspection.distances import moved
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Answering, Embed, Names, label_name
from pipeline_lib.shards.columns import FIRST, SECOND, column_suffixes

ENDINGS = {FIRST: "", SECOND: "_pair"}
"""Suffixes of the shards' columns to those of flat ones, as ``transformers`` names a pair's."""
_OWN_FORM = {"key", "example", "label", "text", "ngram_start", "ngram_length", "scale"}
"""Columns of shards that are written in another form, or not at all."""
Columns = dict[str, pa.Array | pa.ChunkedArray]


@dataclass(frozen=True)
class FlatRows:
    """The rows of a set to write.

    :ivar names: the task's class names, if known.
    :ivar student: a student whose answers are written besides the teacher's.
    :ivar encoder: an encoder whose vectors are written, if the set has none of its own.
    """

    rows: JoinedRows
    names: Names
    wanted: Filter
    student: Answering | None = None
    encoder: Embed | None = None

    def tables(self) -> Iterator[pa.Table]:
        """Yield the selected rows batch by batch, all with the same columns."""
        metadata = self._metadata()
        for batch in self.rows.batches():
            kept = self.wanted.wants(batch)
            if kept.any():
                table = pa.table(self._columns(batch), metadata=metadata)
                yield table if kept.all() else table.filter(pa.array(kept))

    def _metadata(self) -> dict[str, str]:
        """Return what the file was made from, under the same keys as in teachers' files."""
        sets = (self.rows.inputs, *self.rows.answers)
        digests = {shard_set.folder.as_posix(): shard_set.manifest.digest for shard_set in sets}
        classes = {"classes": json.dumps(list(self.names))} if self.names else {}
        return {"provenance": json.dumps({"digests": digests})} | classes

    def _columns(self, batch: RowBatch) -> Columns:
        table, names = batch.table, batch.table.column_names
        places = [self.rows.place(batch.shard, batch.start + row) for row in range(len(batch))]
        columns: Columns = {"id": pa.array(places)}
        if "key" in names:
            columns["key"] = _hex(table["key"])
        for side in column_suffixes(table) if "text" in names else ():
            columns[f"text{ENDINGS[side]}"] = table[f"text{side}"]
        # Other fields of a row: a sentence's title and article, its own id.
        columns |= {name: table[name] for name in names if _is_plain(table, name)}
        if "label" in names:
            columns["label"] = self._labels(table["label"])
        if "rules" in names:
            columns |= _changes(table)
        if batch.logits is not None:
            columns |= self._answers("teacher", batch.logits)
        if self.student is not None:
            logits = self.student(batch)
            columns |= self._answers("student", logits, "student_")
            if batch.logits is not None:
                columns["divergence"] = _known(moved(batch.logits, logits, batch.kind))
        for side, vectors in self._vectors(batch).items():
            columns[f"vector{ENDINGS[side]}"] = fixed_lists(vectors, answered(vectors))
        return columns

    def _labels(self, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if self.rows.is_scored:
            return column
        if KINDS[self.rows.kind].has_several:
            return pa.array([_applying(one, self.names) for one in column.to_pylist()], _NAMES)
        return pa.array([label_name(label, self.names) for label in column.to_pylist()], pa.string())

    def _answers(self, who: str, logits: np.ndarray, start: str = "") -> Columns:
        """Return the columns of a model's answers; rows without an answer are null."""
        known = answered(logits)
        kind = KINDS[self.rows.kind]
        if not kind.has_probabilities:
            return {who: pa.array(logits[:, 0], pa.float32(), mask=~known)}
        shares, decided = kind.probabilities(logits), kind.decide(logits).tolist()
        if kind.has_several:
            best = pa.array([_applying(one, self.names) for one in decided], _NAMES, mask=~known)
        else:
            named = [label_name(number, self.names) for number in decided]
            best = pa.array(named, pa.string(), mask=~known)
        return {
            who: best,
            f"{start}confidence": _known(np.where(known, kind.confidence(logits), np.nan)),
            f"{start}entropy": _known(kind.entropy_bits(shares)),
            f"{start}probabilities": fixed_lists(shares.astype(np.float32), known),
            f"{start}logits": fixed_lists(logits.astype(np.float32), known),
        }

    def _vectors(self, batch: RowBatch) -> dict[str, np.ndarray]:
        if batch.vectors or self.encoder is None:
            return batch.vectors
        return {side: self.encoder(batch, side) for side in column_suffixes(batch.table)}


_NAMES = pa.list_(pa.string())


def _applying(marks: Sequence[int] | None, names: Names) -> list[str] | None:
    """Return the names of the labels that apply to a row; None if they are hidden."""
    if marks is None:
        return None
    return [str(label_name(number, names)) for number, mark in enumerate(marks) if mark]


def fixed_lists(values: np.ndarray, known: np.ndarray | None = None) -> pa.FixedSizeListArray:
    """Return an array, shape (rows, width), as a column of lists; null where not ``known``."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    mask = None if known is None else pa.array(~known)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=mask)


def _known(values: np.ndarray) -> pa.Array:
    """Return numbers as a column of float32; NaN becomes null."""
    return pa.array(values.astype(np.float32), mask=np.isnan(values))


def _hex(keys: pa.ChunkedArray) -> pa.Array:
    # As text, because JavaScript readers have no 64-bit integers.
    return pa.array([f"{key:016x}" for key in keys.to_numpy().tolist()])


def _is_plain(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    special = name.removesuffix(SECOND) in _OWN_FORM
    # A catalogue's texts and ids are large strings.
    is_text = kinds.is_string(kind) or kinds.is_large_string(kind)
    return not special and (is_text or kinds.is_primitive(kind))


def _changes(table: pa.Table) -> Columns:
    """Return the original, the rules and the changes of each row."""
    rules, changes = [], []
    for record in table.to_pylist():
        sentences = sentences_of(record)
        rules.append("+".join(rules_of(record, sentences)))
        changes.append(" | ".join(in_words(sentence) for sentence in sentences))
    return {"original": _hex(table["example"]), "rule": pa.array(rules), "changes": pa.array(changes)}
