"""Reading teachers' files into a table by content key."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.keyed_table import KeyedTable, Origins
from pipeline_lib.outputs.files.teacher_files import GivenRows
from pipeline_lib.outputs.health import MAX_ROWS, check_outputs

if TYPE_CHECKING:
    from pipeline_lib.outputs.files.answers import Answers

REASONS = 10
"""How many of the most frequent reasons for no value to show: each row may have its own."""
EMPTY = np.zeros((0, 1), np.float32)


def gather(files: Sequence[Path], kind: "Answers", partial: bool = False) -> KeyedTable:
    """Read files into a table by content key; a text that is repeated with the same answer counts once.

    :param partial: whether there may be few values or none, as long as more are requested.
    """
    batches: list[GivenRows] = []
    starts, provenance = [], dict(kind.settings.provenance)
    for file in files:
        described, read = kind.read(file)
        provenance = described.provenance | provenance
        starts.append((sum(len(batch.keys) for batch in batches), file))
        batches += read
    table = _table(batches, starts, kind.settings.mask, provenance)
    if not partial:
        _check_health(table, kind)
    return table


def _table(
    batches: Sequence[GivenRows], starts: Sequence[tuple[int, Path]], mask: str, provenance: dict[str, str]
) -> KeyedTable:
    keys = np.concatenate([np.zeros(0, np.uint64), *(batch.keys for batch in batches)])
    values = np.concatenate([batch.values for batch in batches if len(batch.keys)] or [EMPTY])
    as_given = np.concatenate([np.zeros(0), *(batch.weights for batch in batches)])
    origins = Origins(starts, np.concatenate([np.zeros(0, np.int64), *(batch.numbers for batch in batches)]))
    weights = np.nan_to_num(as_given, nan=1.0).astype(np.float32)
    unique, first, texts = np.unique(keys, return_index=True, return_inverse=True)
    earlier = first[texts]
    differ = (values != values[earlier]).any(axis=1) | (weights != weights[earlier])
    if differ.any():
        again = differ.argmax()
        row, other = origins.row(again), origins.row(earlier[again])
        raise PotstillError(f"{row}: the same text as {other}, with another answer. Keep one of the two rows.")
    errors: Counter[str] = Counter()
    for batch in batches:
        errors.update(batch.errors)
    counts = {"rows": sum(batch.rows for batch in batches), "answered": len(unique)}
    counts |= {"repeated": len(keys) - len(unique), "errors": errors.total()}
    weighted = None if np.isnan(as_given).all() else weights[first]
    return KeyedTable(unique, values[first], weighted, mask, provenance, counts, dict(errors), first, origins)


def _check_health(table: KeyedTable, kind: "Answers") -> None:
    where = table.origins.names
    if not len(table):
        raise PotstillError(f"{where}: no answers: {_why_none(table)} {kind.again}")
    check_weights(table, np.arange(len(table)))
    chosen, remedy = table.sample(MAX_ROWS), f"Nothing was stored: {kind.again}"
    check_outputs(table[chosen], table.keys[chosen], where, remedy, few=True)


def check_weights(answers: KeyedTable, indices: np.ndarray) -> None:
    """Check that of the answers at some indices, int (rows,), one counts."""
    if answers.weights is None or not len(indices) or answers.weights[indices].any():
        return
    row = answers.origins.row(answers.places[indices].min())
    raise PotstillError(
        f"{row}: `weight` is 0, as for all {len(indices):,} answers to learn from, so there would "
        "be nothing to learn. Give weights above 0, or leave `weight` out."
    )


def _why_none(table: KeyedTable) -> str:
    """Return why a table is empty, and the beginning of the remedy."""
    if not table.counts["rows"]:
        return "there are no rows. Put some into the file, or"
    listed = "; ".join(f"{reason} ({count:,})" for reason, count in frequent(table.errors))
    return f"of {table.counts['rows']:,} rows, {listed}. Nothing was stored:"


def frequent(errors: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent reasons for no value with their counts, alike but for what they quote, and the rest."""
    alike: dict[str, list[tuple[str, int]]] = {}
    for reason, count in errors.items():
        alike.setdefault(reason.partition(": ")[0], []).append((reason, count))
    merged = [(some[0][0] + " and the like" * (len(some) > 1), sum(n for _, n in some)) for some in alike.values()]
    often = sorted(merged, key=lambda item: -item[1])
    rest = often[REASONS:]
    others = [(f"{len(rest):,} other reasons", sum(count for _, count in rest))]
    return often[:REASONS] + others * bool(rest)
