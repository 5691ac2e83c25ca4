"""Reading teachers' files into a table by content key."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path
from pipeline_lib.outputs.files.keyed_table import ANSWERS, KeyedTable, MappedValues, Origins
from pipeline_lib.outputs.files.teacher_files import GivenRows, check_rows
from pipeline_lib.outputs.health import MAX_ROWS, check_outputs
from pipeline_lib.shards.columns import list_column

if TYPE_CHECKING:
    from pipeline_lib.outputs.files.answers import Answers

CHUNK = 8192
REASONS = 10
"""How many of the most frequent reasons for no value to show: each row may have its own."""
EMPTY = np.zeros((0, 1), np.float32)


def gather(files: Sequence[Path], kind: "Answers", folder: Path, partial: bool = False) -> KeyedTable:
    """Read files into ``folder``, by content key; a text that is repeated with the same answer counts once.

    :param partial: whether there may be few values or none, as long as more are requested.
    """
    with atomic_path(folder / ANSWERS) as temporary:
        batches, origins, provenance = _write(files, kind, temporary)
        table = _table(kind, MappedValues(temporary), batches, origins, provenance)
        if not partial:
            _check_health(table, kind)
    table.write(folder)
    return table


@contextmanager
def gathered(files: Sequence[Path], kind: "Answers", partial: bool = False) -> Iterator[KeyedTable]:
    """Yield the values of files, kept in a temporary folder until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        yield gather(files, kind, Path(folder), partial)


def _write(files: Sequence[Path], kind: "Answers", path: Path) -> tuple[list[GivenRows], Origins, dict[str, str]]:
    """Write the values of files in sequence; return their rows without them, and the provenance."""
    batches, starts, count = [], [], 0
    provenance = dict(kind.settings.provenance)
    writer = None
    with pa.OSFile(str(path), "wb") as sink:
        for file in files:
            described, read = kind.read(file)
            provenance = {**described.provenance, **provenance}
            starts.append((count, file))
            for batch_rows in read:
                batches.append(replace(batch_rows, values=EMPTY))
                if not len(batch_rows.keys):
                    continue
                broken = ~np.isfinite(batch_rows.values).all(axis=1)
                check_rows(file, batch_rows.numbers, broken, "a value is not a finite number")
                count += len(batch_rows.keys)
                batch = _batch(batch_rows.values)
                writer = writer or pa.ipc.new_file(sink, batch.schema)
                writer.write(batch)
        (writer or pa.ipc.new_file(sink, _batch(EMPTY).schema)).close()
    numbers = np.concatenate([np.zeros(0, np.int64), *(batch_rows.numbers for batch_rows in batches)])
    return batches, Origins(starts, numbers), provenance


def _batch(values: np.ndarray) -> pa.RecordBatch:
    return pa.record_batch({"vector": list_column(values)})


def _table(
    kind: "Answers", values: MappedValues, batches: Sequence[GivenRows], origins: Origins, provenance: dict[str, str]
) -> KeyedTable:
    keys = np.concatenate([np.zeros(0, np.uint64), *(batch.keys for batch in batches)])
    weights = np.concatenate([np.zeros(0), *(batch.weights for batch in batches)])
    are_equal, weights = np.isnan(weights).all(), np.nan_to_num(weights, nan=1.0)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again = np.concatenate([[False], ordered[1:] == ordered[:-1]])[: len(keys)]
    first = order[~again][np.cumsum(~again) - 1]
    _check_repeated(values, weights, order[again], first[again], origins)
    first_rows = order[~again]
    errors: Counter[str] = Counter()
    for batch in batches:
        errors.update(batch.errors)
    counts = {"rows": sum(batch.rows for batch in batches), "answered": len(first_rows)}
    counts |= {"repeated": len(keys) - len(first_rows), "errors": errors.total()}
    weighted = None if are_equal else weights[first_rows].astype(np.float32)
    index = keys[first_rows], first_rows, values, weighted
    return KeyedTable(*index, kind.settings.mask, provenance, counts, dict(errors), origins)


def _check_repeated(
    values: MappedValues, weights: np.ndarray, rows: np.ndarray, earlier: np.ndarray, origins: Origins
) -> None:
    order = np.argsort(rows)
    for start in range(0, len(rows), CHUNK):
        later, first = (numbers[order[start : start + CHUNK]] for numbers in (rows, earlier))
        same = (values[later] == values[first]).all(axis=1) & (weights[later] == weights[first])
        if not same.all():
            row, other = (origins.row(numbers[same.argmin()]) for numbers in (later, first))
            raise PotstillError(f"{row}: the same text as {other}, with another answer. Keep one of the two rows.")


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
    reasons, rows = frequent(table.errors), table.counts["rows"]
    if not rows:
        return "there are no rows. Put some into the file, or"
    if len(reasons) > 1:
        listed = "; ".join(f"{reason} ({count:,})" for reason, count in reasons)
        return f"of {rows:,} rows, {listed}. Nothing was stored:"
    [(reason, _)] = reasons
    return f"all {rows:,} rows have none ({reason}). Nothing was stored:"


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
