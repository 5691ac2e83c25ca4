"""Statistics of a set's rows: lengths, labels, rules, and how sure the teacher is."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.probabilities import answered
from pipeline_lib.inspection.changes import RuleName
from pipeline_lib.inspection.distances import entropies
from pipeline_lib.inspection.filters import Filter, made_by
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Names, label_name
from pipeline_lib.shards.columns import FIRST, SECOND

NO_ANSWER, NO_LABEL = "no answer", "no label"
Values = dict[str, tuple[str, np.ndarray]]
"""Numbers of a batch's rows: by name, their unit and values, (rows,)."""


@dataclass
class Numbers:
    """The distribution of a number, perhaps a ``whole`` one, over rows, of which some are ``missing``."""

    unit: str
    whole: bool
    missing: int = 0
    _batches: list[np.ndarray] = field(default_factory=list)

    def add(self, values: np.ndarray) -> None:
        """Take in some rows' values (NaN if missing)."""
        self._batches.append(values[~np.isnan(values)])
        self.missing += len(values) - len(self._batches[-1])

    @cached_property
    def values(self) -> np.ndarray:
        """All values, once they have been added, float64 (rows,)."""
        return np.concatenate([np.empty(0), *self._batches])

    @property
    def count(self) -> int:
        """The rows that have a value."""
        return len(self.values)

    def quantile(self, share: float) -> float | None:
        """Return the value below which this share of rows falls; None without a value."""
        method = "inverted_cdf" if self.whole else "linear"
        return float(np.quantile(self.values, share, method=method)) if self.count else None

    def bars(self, most: int = 10) -> list[tuple[float, float, int]]:
        """Return (from, to, rows) of at most ``most`` bins of equal width."""
        if not self.count:
            return []
        low, high = self.values.min(), self.values.max()
        edges = np.linspace(low, high if high > low else low + 1, most + 1)
        if self.whole:
            width = -(-int(high - low + 1) // most)
            edges = np.arange(low, high + width + 1, width)
        rows, _ = np.histogram(self.values, edges)
        # For whole numbers, a bin ends at its own last value, not at the next one's first.
        ends = edges[1:] - 1 if self.whole else edges[1:]
        return list(zip(edges[:-1].tolist(), ends.tolist(), rows.tolist(), strict=True))


@dataclass
class Figures:
    """All figures of a set: distributions by name, and rows by class and by the teacher's answer, if there are any.

    :ivar agreeing: how many labelled and answered rows have the teacher's answer as their label, of how many.
    """

    rows: int = 0
    numbers: dict[str, Numbers] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    rules: Counter[RuleName] = field(default_factory=Counter)
    iterations: Counter[int] = field(default_factory=Counter)
    agreeing: tuple[int, int] = (0, 0)


def figures(rows: JoinedRows, names: Names, rows_wanted: Filter) -> Figures:
    """Return the figures of the selected rows of a set."""
    result = Figures()
    for batch in rows.batches():
        selected = rows_wanted.wants(batch)
        result.rows += int(selected.sum())
        for name, (unit, values) in _values(batch, rows.is_scored).items():
            numbers = result.numbers.setdefault(name, Numbers(unit, values.dtype.kind == "i"))
            numbers.add(values[selected].astype(np.float64))
        _categories(result, batch, selected, names)
    return result


def _values(batch: RowBatch, regression: bool) -> Values:
    values = {}
    for side, name in ((FIRST, "length"), (SECOND, "length of the second sentence")):
        if f"text{side}" in batch.table.column_names:
            values[name] = ("words", _lengths(batch, side))
    if regression and "label" in batch.table.column_names:
        values["label"] = ("score", batch.labels)
    if batch.logits is not None and regression:
        values["teacher's answer"] = ("score", batch.logits[:, 0].astype(np.float64))
    elif batch.logits is not None:
        values["teacher's entropy"] = ("bits", entropies(batch.logits, batch.kind))
    for side, name in ((FIRST, "vector"), (SECOND, "vector of the second sentence")):
        if side in batch.vectors:
            lengths = np.linalg.norm(batch.vectors[side].astype(np.float64), axis=1)
            values[name] = ("length", lengths)
    return values


def _lengths(batch: RowBatch, side: str) -> np.ndarray:
    if f"words{side}" in batch.table.column_names:
        return pc.list_value_length(batch.table[f"words{side}"]).to_numpy().astype(np.int64)
    split = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(batch.table[f"text{side}"]))
    return pc.list_value_length(split).to_numpy().astype(np.int64)


def _categories(result: Figures, batch: RowBatch, selected: np.ndarray, names: Names) -> None:
    kind, columns = KINDS[batch.kind], batch.table.column_names
    labels = batch.marks if kind.has_several else batch.labels
    if kind.has_probabilities and "label" in columns:
        result.labels.update(_counted(labels[selected], names, NO_LABEL))
    if kind.has_probabilities and batch.logits is not None:
        decided = kind.decide(batch.logits).astype(np.float64)
        decided[~answered(batch.logits)] = np.nan
        result.answers.update(_counted(decided[selected], names, NO_ANSWER))
        both = selected & ~_is_hidden(decided) & ~_is_hidden(labels)
        same = decided == labels if decided.ndim == 1 else (decided == labels).all(axis=1)
        right, total = result.agreeing
        result.agreeing = (right + int(same[both].sum()), total + int(both.sum()))
    if "iteration" in columns:
        result.iterations.update(batch.table["iteration"].to_numpy()[selected].tolist())
    for rule, changes in made_by(batch).items():
        result.rules[rule] += int((selected & changes).sum())


def _is_hidden(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.ndim == 1 else np.isnan(values).any(axis=1)


def _counted(values: np.ndarray, names: Names, missing: str) -> dict[str, int]:
    """Return how many rows have each class, (rows,), or each label, 0 or 1, (rows, labels); NaN: it is not known."""
    hidden = _is_hidden(values)
    if values.ndim == 1:
        counts = np.bincount(values[~hidden].astype(np.int64), minlength=len(names or ()))
    else:
        counts = np.nansum(values, axis=0).astype(np.int64)
    named = {str(label_name(number, names)): count for number, count in enumerate(counts.tolist())}
    return named | ({missing: int(hidden.sum())} if hidden.any() else {})
