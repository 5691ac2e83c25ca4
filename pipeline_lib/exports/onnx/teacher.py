"""A teacher in ONNX, in float32 or int8: to compare a student with its teacher's fastest form."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.text import Text
from pipeline_lib.exports.onnx.exporter import LOGITS, quantise
from pipeline_lib.exports.onnx.student import BATCH, FILES, inputs, open_session
from pipeline_lib.exports.onnx.tracing import trace_classifier
from pipeline_lib.models.folders import Predict
from pipeline_lib.models.serving import open_teacher
from pipeline_lib.text.pieces import Pieces


def export_teacher(folder: Path, names: list[str], max_length: int, pair: bool, out: Path) -> dict[str, Path]:
    """Write the teacher in ``folder`` as ONNX; return the folder of each form below ``out``.

    Whatever torch's exporter or onnxruntime's quantisation raises for an unusual model is raised.
    """
    teacher, _ = open_teacher(folder, names, max_length, "cpu", "float32")
    model = trace_classifier(teacher.model, LOGITS, pair and teacher.pieces.segments)
    folders = {}
    for form, graph in {"onnx": model, "onnx-int8": quantise(model)}.items():
        folders[form] = out / form
        with atomic_path(folders[form] / FILES[form]) as temporary:
            temporary.write_bytes(graph.SerializeToString())
        teacher.pieces.save(folders[form])
    return folders


def load_onnx_teacher(folder: Path, form: str, max_length: int) -> Predict:
    """Return the prediction function of what :func:`export_teacher` wrote: logits, or scores, in the texts' order."""
    session, pieces = open_session((folder / FILES[form]).read_bytes()), Pieces.read(folder)
    width = session.get_outputs()[0].shape[1]

    def predict(texts: Sequence[Text]) -> np.ndarray:
        sentences = pieces.number(texts, max_length)
        outputs = np.empty((len(sentences), width), np.float32)
        order = np.argsort(sentences.lengths, kind="stable")

        def run(rows: np.ndarray) -> None:
            (outputs[rows],) = session.run([LOGITS], inputs(sentences, rows))

        with ThreadPoolExecutor(usable_cores()) as pool:
            # Each core computes batches of its own; the results are consumed to raise errors.
            list(pool.map(run, [order[start : start + BATCH] for start in range(0, len(order), BATCH)]))
        return outputs

    return predict
