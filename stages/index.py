"""Embed Wikipedia's training sentences into one index of `catalogues` in params.yaml, to be searched.

    python -m pipeline_lib.stages.index --catalogue wikipedia

Reads data/wikipedia/train and data/encoders; writes data/catalogues/<name>.  If killed, it embeds only what the store
does not have.
"""

from typing import Annotated

import typer

from pipeline_lib.base.devices import resolve_device
from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
from pipeline_lib.retrieval.index import build
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.shard_sets import ShardSet

BATCH_ROWS = 8192


def main(catalogue: Annotated[str, typer.Option(help="A row of `catalogues`.")]) -> None:
    """Embed Wikipedia's training sentences into one index of params.yaml."""
    params, layout = load_params(), Layout()
    row, device = params.catalogue(catalogue), str(resolve_device(params.device))
    index_pass = IndexPass.of(EncoderReference.to(layout.encoder(row.encoder)), device)
    tables, folder = ShardSet.open(layout.wikipedia("train")).tables(), fresh_folder(layout.catalogue(catalogue))
    sentences = (Rows(rows["text"].to_pylist()) for table in tables for rows in table.to_batches(BATCH_ROWS))
    index, stats = build(folder, index_pass, sentences, make_engine(params, device), bool(row.approximate))
    say(f"{catalogue}: {len(index):,} sentences; {stats}")


if __name__ == "__main__":
    run_stage(main)
