"""Opens a shard set for inspection: its rows, the teacher's logits, and what was changed.

Everything is computed over whole, memory-mapped columns, so that a set of millions of rows can be
filtered and totalled in seconds; only the rows that are shown become Python objects.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.layout import pair_of
from pipeline_lib.base.probabilities import answered, entropy_bits, softmax
from pipeline_lib.shards.columns import (
    FIRST,
    MASKED,
    REPLACED,
    SECOND,
    column_suffixes,
    holds_scores,
    matrix,
)
from pipeline_lib.shards.shard_sets import Shard, ShardSet, check_answers
from pipeline_lib.shards.vectors import StoredVectors, unit

RuleName = Literal["mask", "replace", "ngram", "original"]


@dataclass(frozen=True)
class View:
    """One shard set, joined with the teacher's answers to it.

    ``logits`` are float32, shape (rows, classes), or None; ``vectors`` are sentence vectors by
    column suffix, or None.  ``names`` are the task's label names, or None if params.yaml does not
    give them.  ``alignment`` holds the figures of the check that the logits belong to these rows,
    if it was run.
    """

    folder: Path
    table: pa.Table
    shards: list[Shard]
    logits: np.ndarray | None
    names: list[str] | None
    alignment: dict[str, Any] | None = None
    vectors: dict[str, StoredVectors] | None = None

    @cached_property
    def common(self) -> np.ndarray:
        """The mean of the unit vectors of the first 10,000 rows, float64 (width,).

        The longer it is, the more similar all vectors are.
        """
        first = self.vectors[FIRST]
        vectors = first[np.arange(min(len(first), 10_000))].astype(np.float64)
        vectors = vectors[answered(vectors)]
        return unit(vectors).sum(0) / max(len(vectors), 1)

    @cached_property
    def probabilities(self) -> np.ndarray | None:
        """The teacher's probabilities, float64, shape (rows, classes); None for a regression."""
        return None if self.logits is None or self.is_regression else softmax(self.logits)

    @cached_property
    def entropy(self) -> np.ndarray | None:
        """The entropy of the teacher's answers in bits, shape (rows,)."""
        return None if self.probabilities is None else entropy_bits(self.probabilities)

    @cached_property
    def masked(self) -> np.ndarray:
        """The number of masked words in each row, shape (rows,)."""
        return self._words_under(MASKED)

    @cached_property
    def replaced(self) -> np.ndarray:
        """The number of replaced words in each row, shape (rows,)."""
        return self._words_under(REPLACED)

    @cached_property
    def cut(self) -> np.ndarray:
        """Whether an n-gram was cut from a sentence of each row, shape (rows,)."""
        lengths = [self.column(f"ngram_length{side}") for side in column_suffixes(self.table)]
        return np.any([length > 0 for length in lengths], axis=0)

    @property
    def is_regression(self) -> bool:
        """Whether the teacher returns a score."""
        return self.logits is not None and self.logits.shape[1] == 1

    @property
    def is_transfer(self) -> bool:
        """Whether rows record the rules that made them."""
        return "rules" in self.table.column_names

    def label_name(self, number: float | None) -> str:
        """Return the name of a class, or its number if names are unknown; or a score as text."""
        if number is None:
            return "–"
        if isinstance(number, float):
            return f"{number:.3f}"
        known = self.names and 0 <= number < len(self.names)
        return self.names[number] if known else str(number)

    def place(self, row: int) -> str:
        """Return ``shard:row`` for a row number within the whole set."""
        for shard in self.shards:
            if row < shard.rows:
                return f"{shard.name.removesuffix('.arrow')}:{row}"
            row -= shard.rows
        raise IndexError(row)

    def column(self, name: str) -> np.ndarray:
        """Return a numeric column that has no nulls."""
        return self.table[name].to_numpy()

    def _words_under(self, rule: int) -> np.ndarray:
        counts = np.zeros(self.table.num_rows, np.int64)
        for side in column_suffixes(self.table):
            rules = self.table[f"rules{side}"].combine_chunks()
            parents = pc.list_parent_indices(rules).to_numpy()
            under = pc.list_flatten(rules).to_numpy() == rule
            counts += np.bincount(parents[under], minlength=self.table.num_rows)
        return counts


def open_view(folder: Path, names: dict[str, list[str]]) -> View:
    """Open a shard set and its counterpart.

    :param folder: inputs or teacher outputs; the layout of ``data`` gives the other half.
    :param names: label names by task.
    :raises DistilleryError: if the set is incomplete or damaged, or its outputs belong to other
        inputs.
    """
    pair = pair_of(folder)
    if pair is None or not (pair.inputs / "manifest.json").exists():
        alone = ShardSet.open(folder)
        table = alone.table()
        logits, vectors = _answers(table)
        return View(
            *(folder, table, alone.manifest.shards, logits, _names(folder, names)), None, vectors
        )
    inputs = ShardSet.open(pair.inputs)
    logits = alignment = vectors = None
    # Missing outputs are an error only if they were asked for; inputs can be shown without them.
    if folder == pair.outputs or (pair.outputs / "manifest.json").exists():
        logits, vectors = _answers(_answering(inputs, ShardSet.open(pair.outputs)))
        proof = pair.outputs / "alignment.json"
        alignment = read_json(proof) if proof.exists() else None
    return View(
        *(folder, inputs.table(), inputs.manifest.shards, logits, _names(folder, names)),
        *(alignment, vectors),
    )


def _names(folder: Path, names: dict[str, list[str]]) -> list[str] | None:
    """Return the label names of the task in the path, if there is one."""
    task = next((part for part in reversed(folder.absolute().parts) if part in names), None)
    return names[task] if task else None


def _answers(table: pa.Table) -> tuple[np.ndarray | None, dict[str, StoredVectors] | None]:
    """Return a table's logits and its vectors by column suffix, each None if it has none."""
    names = table.column_names
    logits = matrix(table["logits"]) if "logits" in names else None
    stored = {
        side: StoredVectors([(table, side)]) for side in (FIRST, SECOND) if f"vector{side}" in names
    }
    return logits, stored or None


def _answering(inputs: ShardSet, outputs: ShardSet) -> pa.Table:
    try:
        check_answers(inputs.manifest, outputs.manifest)
    except DistilleryError as error:
        raise DistilleryError(f"{outputs.folder}: {error}") from error
    return outputs.table()


def select(view: View, *, shard: str | None, rule: RuleName | None, uncertain: bool) -> np.ndarray:
    """Return the selected row numbers; with ``uncertain``, the most uncertain rows first.

    :raises DistilleryError: if the set has no such shard, no rules, or no teacher outputs.
    """
    wanted = np.arange(view.table.num_rows)
    if shard is not None:
        wanted = _rows_of(view, shard)
    if rule is not None:
        wanted = wanted[_under(view, rule)[wanted]]
    if uncertain:
        if view.entropy is None:
            if view.is_regression:
                raise DistilleryError(
                    f"{view.folder}: --uncertain sorts by the entropy over classes; this is a "
                    "regression. Leave it out."
                )
            raise DistilleryError(
                f"{view.folder}: --uncertain needs the teacher's outputs for this set; there are "
                "none. Run `dvc repro`, or name a transfer set that has them (`distill shards ls`)."
            )
        # Stable: equally uncertain rows keep their order.
        wanted = wanted[np.argsort(-view.entropy[wanted], kind="stable")]
    return wanted


def _rows_of(view: View, name: str) -> np.ndarray:
    start = 0
    for shard in view.shards:
        if name in (shard.name, shard.name.removesuffix(".arrow")):
            return np.arange(start, start + shard.rows)
        start += shard.rows
    ends = [shard.name for shard in (*view.shards[:1], *view.shards[-1:])]
    there = f"the shards are {' to '.join(ends)}" if ends else "the set is empty"
    raise DistilleryError(f"{view.folder}: no shard {name!r}; {there}.")


def _under(view: View, rule: RuleName) -> np.ndarray:
    if not view.is_transfer:
        raise DistilleryError(
            f"{view.folder}: --rule needs a transfer set, whose rows record how they were made. "
            "Name one, such as data/transfer/<task>/<recipe>."
        )
    if rule == "mask":
        return view.masked > 0
    if rule == "replace":
        return view.replaced > 0
    return view.cut if rule == "ngram" else view.column("iteration") == 0


def totals(view: View, chosen: np.ndarray) -> dict[str, Any]:
    """Summarise the chosen rows: counts per rule, mean entropy, labels."""
    summary: dict[str, Any] = {"rows": len(chosen)}
    if view.is_transfer:
        summary |= {
            "originals": int((view.column("iteration")[chosen] == 0).sum()),
            "words masked": int(view.masked[chosen].sum()),
            "words replaced": int(view.replaced[chosen].sum()),
            "rows with an n-gram": int(view.cut[chosen].sum()),
        }
    if "label" in view.table.column_names:
        labels = view.table["label"].take(chosen)
        summarise = _spread if holds_scores(labels) else _distribution
        summary["labels"] = summarise(view, labels.drop_null().to_numpy(), labels.null_count)
    if view.entropy is not None and answered(view.logits[chosen]).any():
        summary["mean entropy, bits"] = round(float(np.nanmean(view.entropy[chosen])), 4)
    if view.logits is not None and len(chosen):
        summary |= _teachers_answers(view, chosen)
    if view.vectors and len(view.table):
        summary["values per vector"] = view.vectors[FIRST].shape[1]
        summary["mean cosine of two sentences"] = round(float(view.common @ view.common), 4)
    for name, value in (view.alignment or {}).items():
        summary[f"alignment proof: {name}"] = value
    return summary


def _teachers_answers(view: View, chosen: np.ndarray) -> dict[str, str]:
    # Synthetic rows can change the class balance: a question with a word replaced is no duplicate.
    kinds = {"teacher's answers": chosen}
    if view.is_transfer:
        kinds["teacher's answers, synthetic rows"] = chosen[view.column("iteration")[chosen] > 0]
    kinds = {name: rows[answered(view.logits[rows])] for name, rows in kinds.items()}
    return {
        name: _spread(view, view.logits[rows, 0], 0)
        if view.is_regression
        else _distribution(view, view.logits[rows].argmax(axis=1), 0)
        for name, rows in kinds.items()
        if len(rows)
    }


def _spread(_: View, scores: np.ndarray, missing: int) -> str:
    known = f"{len(scores):,} scores" if len(scores) else "no scores"
    if len(scores):
        known += f", mean {scores.mean():.3f}, {scores.min():.3f} to {scores.max():.3f}"
    return known + (f", none {missing:,}" if missing else "")


def _distribution(view: View, classes: np.ndarray, missing: int) -> str:
    counts = np.bincount(classes.astype(np.int64), minlength=len(view.names or []))
    parts = [f"{view.label_name(i)} {count:,}" for i, count in enumerate(counts)]
    return ", ".join(parts + ([f"none {missing:,}"] if missing else []))
