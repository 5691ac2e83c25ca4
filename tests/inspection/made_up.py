"""Small sets with a teacher's answers, made on the spot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import Layout
from pipeline_lib.corpora.augmentation.rules import transfer_schema
from pipeline_lib.params import Params, load_params
from pipeline_lib.shards.columns import list_column
from tests.kit.shard_files import write_set as write_tables
from tests.tour import TOUR

ROOT = Path(__file__).parents[2]
TASK, TEACHER = "movies", "minilm"
Record = dict[str, Any]


def sentence(text: str, rules: Sequence[int] = (), ngram: tuple[int, int] = (0, 0)) -> Record:
    """Return the columns of one sentence of a transfer set; its words have blanks between."""
    words = text.split()
    own = list(rules) or [0] * len(words)
    keys = ("text", "words", "rules", "ngram_start", "ngram_length")
    return dict(zip(keys, (text, words, own, *ngram), strict=True))


def transfer_table(rows: Sequence[Record], regression: bool = False) -> pa.Table:
    """Return rows of a transfer set; keys that a row leaves out are made up."""
    pair = any("text_2" in row for row in rows)
    schema = transfer_schema(pair, KINDS["regression" if regression else "classification"].label_type(2))
    return pa.Table.from_pylist(
        [{"iteration": 0, "example": row.get("key"), "label": None} | row for row in rows], schema
    )


def write_set(
    folder: Path,
    tables: Mapping[str, pa.Table],
    outputs: Path | None = None,
    logits: Sequence[Any] = (),
    column: str = "logits",
) -> None:
    """Write a shard set and, where its folder is given, what answers to it row for row."""
    inputs = write_tables(
        folder, "transfer", {f"{name}.arrow": table for name, table in tables.items()}
    ).manifest.shards
    if outputs is None:
        return
    values, answers = np.array(logits, np.float32), {}
    for shard, table in zip(inputs, tables.values(), strict=True):
        answers[shard.name] = pa.table({"key": table["key"], column: list_column(values[: shard.rows])})
        values = values[shard.rows :]
    write_tables(outputs, column, answers, [shard.sha256 for shard in inputs])


def params() -> Params:
    return load_params(TOUR)


def odds(share: float) -> list[float]:
    """Return the logits of two classes of which the second has this probability."""
    return [0.0, float(np.log(share / (1 - share)))]


def made_up_transfer(layout: Layout) -> None:
    """Write a transfer set of two blocks: 4 originals, of which 5 synthetic rows were made."""
    originals = [
        {"key": 11, "example": 11, "label": 1, **sentence("a good film")},
        {"key": 12, "example": 12, "label": 0, **sentence("a joy to watch")},
    ]
    made = [
        {"key": 21, "example": 11, **sentence("a bad film", [0, 2, 0])},
        {"key": 22, "example": 12, **sentence("[MASK] watch", [1, 0], (2, 2))},
        {"key": 23, "example": 12, **sentence("a [MASK] to watch", [0, 1, 0, 0])},
    ]
    others = [
        {"key": 13, "example": 13, "label": 0, **sentence("so dull")},
        {"key": 14, "example": 14, "label": 0, **sentence("so so")},
    ]
    more = [
        {"key": 24, "example": 13, **sentence("dull", (), (1, 1))},
        {"key": 25, "example": 14, **sentence("so [MASK]", [0, 1])},
    ]
    # In the order of the manifest: block by block, iteration by iteration.
    tables = {
        "b000-i000": transfer_table(originals),
        "b000-i001": transfer_table([row | {"iteration": 1} for row in made]),
        "b001-i000": transfer_table(others),
        "b001-i001": transfer_table([row | {"iteration": 1} for row in more]),
    }
    shares = [0.9, 0.8, 0.1, 0.6, 0.7, 0.1, 0.55, 0.2, 0.55]
    write_set(
        layout.transfer(TASK, "full"), tables, layout.outputs(TASK, TEACHER, "full"), [odds(share) for share in shares]
    )
