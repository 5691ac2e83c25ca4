"""A set and the answers to it as flat rows, for other tools: docs/inspection.md."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.changes import in_words, rules_of, sentences_of
from pipeline_lib.inspection.distances import moved
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Answering, Names, label_name
from pipeline_lib.shards.columns import FIRST, SECOND, column_suffixes

ENDINGS = {FIRST: "", SECOND: "_pair"}
"""Suffixes of the shards' columns to those of flat ones, as ``transformers`` names a pair's."""
_OWN_FORM = {"key", "example", "label", "text", "ngram_start", "ngram_length", "scale"}
"""Columns of shards that are written in another form, or not at all."""
Columns = dict[str, pa.Array | pa.ChunkedArray]


@dataclass(frozen=True)
class FlatRows:
    """The rows of a set to write, with a student's answers."""

    rows: JoinedRows
    names: Names
    wanted: Filter
    student: Answering | None = None

    def tables(self) -> Iterator[pa.Table]:
        """Yield the selected rows batch by batch, all with the same columns."""
        metadata = self._metadata()
        for batch in self.rows.batches():
            selected = self.wanted.wants(batch)
            if selected.any():
                yield pa.table(self._columns(batch), metadata=metadata).filter(pa.array(selected))

    def _metadata(self) -> dict[str, str]:
        """Return what the file was made from, under the same keys as in teachers' files."""
        sets = (self.rows.inputs, *self.rows.answers)
        digests = {shard_set.folder.as_posix(): shard_set.manifest.digest for shard_set in sets}
        classes = {"classes": json.dumps(list(self.names))} if self.names else {}
        return {"provenance": json.dumps({"digests": digests})} | classes

    def _columns(self, batch: RowBatch) -> Columns:
        table, names = batch.table, batch.table.column_names
        ids = [self.rows.place(batch.shard, batch.start + row) for row in range(len(batch))]
        columns: Columns = {"id": pa.array(ids)}
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
                columns["divergence"] = _or_null(moved(batch.logits, logits, batch.kind))
        for side, vectors in batch.vectors.items():
            columns[f"vector{ENDINGS[side]}"] = fixed_lists(vectors, answered(vectors))
        return columns

    def _labels(self, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        if self.rows.is_scored:
            return column
        return self._named(column.to_pylist())

    def _named(self, labels: list[Any], mask: np.ndarray | None = None) -> pa.Array:
        """Return classes, or sets of labels, by name; null where they are hidden, or by a mask, bool (rows,)."""
        if KINDS[self.rows.kind].has_several:
            named = [m and [str(label_name(n, self.names)) for n, mark in enumerate(m) if mark] for m in labels]
            return pa.array(named, pa.list_(pa.string()), mask=mask)
        return pa.array([label_name(label, self.names) for label in labels], pa.string(), mask=mask)

    def _answers(self, who: str, logits: np.ndarray, start: str = "") -> Columns:
        is_answered, kind = answered(logits), KINDS[self.rows.kind]
        if not kind.has_probabilities:
            return {who: pa.array(logits[:, 0], pa.float32(), mask=~is_answered)}
        shares = kind.probabilities(logits)
        return {
            who: self._named(kind.decide(logits).tolist(), ~is_answered),
            f"{start}confidence": _or_null(np.where(is_answered, kind.confidence(logits), np.nan)),
            f"{start}entropy": _or_null(kind.entropy_bits(shares)),
            f"{start}probabilities": fixed_lists(shares.astype(np.float32), is_answered),
            f"{start}logits": fixed_lists(logits.astype(np.float32), is_answered),
        }


def fixed_lists(values: np.ndarray, is_valid: np.ndarray) -> pa.FixedSizeListArray:
    """Return an array, shape (rows, width), as a column of lists; null where it is not valid."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=pa.array(~is_valid))


def _or_null(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(np.float32), mask=np.isnan(values))


def _hex(keys: pa.ChunkedArray) -> pa.Array:
    # As text, because JavaScript readers have no 64-bit integers.
    return pa.array([f"{key:016x}" for key in keys.to_numpy().tolist()])


def _is_plain(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    special = name.removesuffix(SECOND) in _OWN_FORM
    # An index's texts and ids are large strings.
    is_text = kinds.is_string(kind) or kinds.is_large_string(kind)
    return not special and (is_text or kinds.is_primitive(kind))


def _changes(table: pa.Table) -> Columns:
    rules, changes = [], []
    for record in table.to_pylist():
        sentences = sentences_of(record)
        rules.append("+".join(rules_of(record, sentences)))
        changes.append(" | ".join(in_words(sentence) for sentence in sentences))
    return {"original": _hex(table["example"]), "rule": pa.array(rules), "changes": pa.array(changes)}
