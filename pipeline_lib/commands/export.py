"""``distill export``: a trained student in a form that others load without this library."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: distill export data/students/movies/bilstm_kd_ts/1 exported --to onnx-int8"


class Target(StrEnum):
    """In which form: see docs/export.md."""

    onnx = "onnx"
    onnx_int8 = "onnx-int8"
    numpy = "numpy"
    sentence_transformers = "sentence-transformers"
    hub = "hub"


def export(
    model: Annotated[Path, typer.Argument(help="The folder of a student or of an encoder.")],
    out: Annotated[Path, typer.Argument(help="The new folder to write.")],
    to: Annotated[Target, typer.Option("--to", help="The form to write it in.")],
) -> None:
    """Write a student, or a sentence encoder, in a form that others load.

    onnx: a file for onnxruntime, transformers.js and others, with its tokenizer. onnx-int8: the
    same with weights in int8, about a quarter of the size; how far its answers are from torch's is
    measured. numpy: weights, tokenizer and one module that needs numpy and tokenizers alone.
    `distill predict OUT` reads all of these.

    sentence-transformers: SentenceTransformer(OUT, trust_remote_code=True).encode(texts) gives the
    vectors of `distill encode`, of an encoder or of a student that has a vector of a sentence. The
    code to be trusted is one file in OUT; a static student's folder has none.

    hub: pipeline("text-classification", OUT, trust_remote_code=True) of transformers gives what
    `distill predict` does, and needs nothing of this library. README.md in OUT is its model card:
    scores, calibration, data, licences, limits. Push it with `hf upload NAME OUT`.
    """
    from pipeline_lib.evaluation.evaluate import require_model

    require_model(model)
    typer.echo(f"{out}: {to.value}, {_writer(to)(model, out)}")


def _writer(to: Target) -> Callable[[Path, Path], str]:
    """Return what writes the form, and says in a line what it wrote."""
    from pipeline_lib.exports import hub, numpy_export, onnx_export

    writers = {
        Target.onnx: onnx_export.export_onnx,
        Target.onnx_int8: onnx_export.export_onnx_int8,
        Target.numpy: numpy_export.export_numpy,
        Target.sentence_transformers: _write_sentence_transformers,
        Target.hub: hub.export_hub,
    }
    return writers[to]


def _write_sentence_transformers(model: Path, out: Path) -> str:
    from pipeline_lib.exports.sentence_transformers import export_sentence_transformers

    return f"vectors of {export_sentence_transformers(model, out)} values"
