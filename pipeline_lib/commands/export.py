"""``distill export``: writes a trained student in a format that loads without this library."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pipeline_lib.base.terminal import say

EXAMPLE = "Example: distill export data/students/movies/bilstm_kd_ts/1 exported --to onnx-int8"


Target = Literal["onnx", "onnx-int8", "numpy", "sentence-transformers", "hub"]


def export(
    model: Annotated[Path, Argument(help="Folder of a student or an encoder.")],
    out: Annotated[Path, Argument(help="The new folder to write.")],
    to: Annotated[Target, Option("--to", help="The format to write.")],
) -> None:
    """Export a student or a sentence encoder in a format that other tools can load.

    onnx: a model for onnxruntime, transformers.js and others, with its tokenizer. onnx-int8: the same with int8
    weights, about a quarter of the size; how far its answers deviate from torch's is measured. numpy: weights,
    tokenizer and one module that needs only numpy and tokenizers. `distill predict OUT` reads these, and hub.

    sentence-transformers: SentenceTransformer(OUT, trust_remote_code=True).encode(texts) gives the
    vectors of `distill predict --vectors`, for an encoder or a student that computes sentence vectors. The
    code to trust is in OUT; a static student needs none.

    hub: pipeline("text-classification", OUT, trust_remote_code=True) of transformers gives the
    answers of `distill predict`, without this library. README.md in OUT is the model card: scores,
    calibration, data, licences, limits. Upload the folder with `hf upload NAME OUT`.
    """
    from pipeline_lib.exports import hub, numpy_export
    from pipeline_lib.exports.onnx import exporter
    from pipeline_lib.exports.sentence_transformers import export_sentence_transformers
    from pipeline_lib.models.folders import require_model

    require_model(model)
    writers: dict[Target, Callable[[Path, Path], object]] = {
        "onnx": exporter.export_onnx,
        "onnx-int8": exporter.export_onnx_int8,
        "numpy": numpy_export.export_numpy,
        "sentence-transformers": export_sentence_transformers,
        "hub": hub.export_hub,
    }
    summary = writers[to](model, out)
    say(f"{out}: {to}, {f'vectors of {summary} values' if isinstance(summary, int) else summary}")
