"""``distill export``: a trained student in a form that others load without this library."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: distill export data/encoders/sra exported/sra --to sentence-transformers"


class Target(StrEnum):
    """What is written: sentence-transformers, a folder for its ``SentenceTransformer``."""

    sentence_transformers = "sentence-transformers"


def export(
    model: Annotated[Path, typer.Argument(help="The folder of an encoder or of a student.")],
    out: Annotated[Path, typer.Argument(help="The new folder to write.")],
    to: Annotated[Target, typer.Option("--to", help="The form to write it in.")],
) -> None:
    """Write a sentence encoder, or a siamese student's, in a form that others load.

    sentence-transformers: SentenceTransformer(OUT, trust_remote_code=True).encode(texts) gives the
    vectors of `distill encode`, and needs nothing of this library. The code to be trusted is one
    file in OUT; a static student's folder has none.
    """
    from pipeline_lib.evaluation.evaluate import require_model
    from pipeline_lib.exports.sentence_transformers import export_sentence_transformers

    require_model(model)
    writers = {Target.sentence_transformers: export_sentence_transformers}
    width = writers[to](model, out)
    typer.echo(f"{out}: {to.value}, vectors of {width} values")
