"""Selects rows by their shard, the rule that made them, and their label."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.inspection.changes import WORD_RULES, RuleName
from pipeline_lib.inspection.joined import JoinedRows, RowBatch
from pipeline_lib.inspection.rows import Names
from pipeline_lib.shards.columns import column_suffixes

UNLABELLED = "none"


@dataclass(frozen=True)
class Filter:
    """Rows of a shard (None: of any), made by a rule (None: by any or none), with a class, or NaN: without a label."""

    rule: RuleName | None = None
    label: float | None = None
    shard: int | None = None

    @classmethod
    def of(cls, rows: JoinedRows, names: Names, rule: RuleName | None, label: str | None) -> Self:
        """Return a filter for a set; a label is a class's name or number, or ``none`` for rows without one."""
        if rule is not None and not rows.is_transfer:
            raise PotstillError(
                f"{rows.name}: --rule needs a transfer set, whose rows record how they were made. "
                "Name one, such as data/transfer/<task>/<recipe>."
            )
        if label is None or label == UNLABELLED:
            return cls(rule, None if label is None else np.nan)
        if "label" not in rows.schema or rows.is_scored:
            raise PotstillError(
                f"{rows.name}: --label: its rows have no classes. Leave it out, or give "
                f"{UNLABELLED!r} for rows without a label."
            )
        if names and label in names:
            return cls(rule, float(names.index(label)))
        if not names and label.isdecimal():
            return cls(rule, float(label))
        labels = ", ".join([*(names or ["the classes' numbers"]), UNLABELLED])
        raise PotstillError(f"{rows.name}: no label {label!r}; there are {labels}.")

    def wants(self, batch: RowBatch) -> np.ndarray:
        """Return which rows of a batch are selected, bool (rows,)."""
        selected = np.full(len(batch), self.shard in (None, batch.shard))
        if self.rule is not None:
            selected &= _made_by(batch, self.rule)
        if self.label is not None and np.isnan(self.label):
            selected &= np.isnan(batch.labels)
        elif self.label is not None:
            several = KINDS[batch.kind].has_several
            selected &= batch.marks[:, int(self.label)] == 1 if several else batch.labels == self.label
        return selected


def _made_by(batch: RowBatch, rule: RuleName) -> np.ndarray:
    """Return which rows of a batch from a transfer set a rule changed, bool (rows,); ``original``: no rule."""
    if rule == "original":
        return ~batch.is_synthetic
    sides = column_suffixes(batch.table)
    if rule == "ngram":
        return np.any([batch.table[f"ngram_length{side}"].to_numpy() > 0 for side in sides], axis=0)
    number = next(number for number, name in WORD_RULES.items() if name == rule)
    return np.any([_words_under(batch, side, number) > 0 for side in sides], axis=0)


def _words_under(batch: RowBatch, side: str, rule: int) -> np.ndarray:
    rules = batch.table[f"rules{side}"].combine_chunks()
    parents = pc.list_parent_indices(rules).to_numpy()
    under = pc.list_flatten(rules).to_numpy() == rule
    return np.bincount(parents[under], minlength=len(batch))
