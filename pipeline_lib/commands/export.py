"""``distill export``: a trained student in a form that others load without this library."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: distill export data/encoders/sra exported/sra --to sentence-transformers"


class Target(StrEnum):
    """What is written: a folder for ``SentenceTransformer``, or one for transformers' hub."""

    sentence_transformers = "sentence-transformers"
    hub = "hub"


def export(
    model: Annotated[Path, typer.Argument(help="The folder of an encoder or of a student.")],
    out: Annotated[Path, typer.Argument(help="The new folder to write.")],
    to: Annotated[Target, typer.Option("--to", help="The form to write it in.")],
) -> None:
    """Write a student, or a sentence encoder, in a form that others load.

    sentence-transformers: SentenceTransformer(OUT, trust_remote_code=True).encode(texts) gives the
    vectors of `distill encode`, and needs nothing of this library. The code to be trusted is one
    file in OUT; a static student's folder has none.

    hub: pipeline("text-classification", OUT, trust_remote_code=True) of transformers gives what
    `distill predict` does, and needs nothing of this library. README.md in OUT is its model card:
    scores, calibration, data, licences, limits. Push it with `hf upload NAME OUT`.
    """
    from pipeline_lib.evaluation.evaluate import require_model
    from pipeline_lib.exports.hub import export_hub
    from pipeline_lib.exports.sentence_transformers import export_sentence_transformers

    require_model(model)
    if to is Target.hub:
        typer.echo(f"{out}: {to.value}, {export_hub(model, out)}")
        return
    writers = {Target.sentence_transformers: export_sentence_transformers}
    width = writers[to](model, out)
    typer.echo(f"{out}: {to.value}, vectors of {width} values")
