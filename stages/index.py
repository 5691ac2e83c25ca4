"""Embed Wikipedia's training sentences into one catalogue of params.yaml, to be searched.

    python -m pipeline_lib.stages.index --catalogue wikipedia

Reads data/wikipedia/train and data/encoders; writes data/catalogues/<name>.  If killed, it resumes
after the last whole segment.
"""

from typing import Annotated

import typer

from pipeline_lib.base.devices import resolve_device
from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, link_or_copy, sha256_json
from pipeline_lib.base.layout import Layout, check_state_folder, state_folder
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.retrieval.building import Form, build
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.sentence_rows import read_rows
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.shard_sets import ShardSet


def main(catalogue: Annotated[str, typer.Option(help="A row of `catalogues`.")]) -> None:
    """Embed Wikipedia's training sentences into one catalogue of params.yaml."""
    params, layout = load_params(), Layout()
    row, sentences = params.catalogue(catalogue), layout.wikipedia("train")
    folder = fresh_folder(layout.catalogue(catalogue))
    check_state_folder()
    device = str(resolve_device(params.device))
    encoder = EncoderReference.to(layout.encoder(row.encoder))
    # DVC deletes a stage's outputs before it runs again: what was embedded is kept outside.
    content = [encoder.digest, row.model_dump(), ShardSet.open(sentences).manifest.digest]
    built = state_folder() / "catalogues" / sha256_json(content)
    form, engine = Form(row.storage, approximate=row.approximate), make_engine(params, device)
    embedded, report = build(built, encoder, read_rows(sentences), form, engine, device)
    for path in sorted(built.iterdir()):
        link_or_copy(path, folder / path.name)
    say(f"{catalogue}: {len(embedded):,} sentences; {report}")


if __name__ == "__main__":
    run_stage(main)
