"""Embed Wikipedia's training sentences into the catalogues of params.yaml, to be searched.

    python stages/index.py

Reads data/wikipedia/train and data/encoders; writes data/catalogues/<name>.  If killed, it resumes
behind the last whole segment.
"""

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, link_or_copy, sha256_json
from pipeline_lib.base.layout import Layout, check_state_folder, state_folder
from pipeline_lib.params import load_params
from pipeline_lib.storage.shards import ShardSet


def main() -> None:
    """Embed Wikipedia's training sentences into the catalogues of params.yaml."""
    params, layout = load_params(), Layout()
    clear_folder(layout.catalogues)
    if not params.catalogues:
        typer.echo("no catalogues in params.yaml")
        return
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.engine import make_engine
    from pipeline_lib.retrieval.building import Form, build
    from pipeline_lib.retrieval.embedders import EncoderReference
    from pipeline_lib.retrieval.rows import read_rows

    check_state_folder()
    device = str(resolve_device(params.device))
    engine, sentences = make_engine(params, device), layout.wikipedia("train")
    for name, row in params.catalogues.items():
        encoder = EncoderReference.to(layout.encoder(row.encoder))
        content = [encoder.digest, row.model_dump(), ShardSet.open(sentences).manifest.digest]
        # DVC deletes a stage's outputs before it runs again: what was embedded lies outside.
        built = state_folder() / "catalogues" / sha256_json(content)
        form = Form(row.storage, approximate=row.approximate)
        found, report = build(built, encoder, read_rows(sentences), form, engine, device)
        for path in sorted(built.iterdir()):
            link_or_copy(path, layout.catalogue(name) / path.name)
        typer.echo(f"{name}: {len(found):,} sentences; {report}")


if __name__ == "__main__":
    run_stage(main)
