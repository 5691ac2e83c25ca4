"""Runs what ``distill export --to onnx`` wrote, from raw texts to logits."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.threads import usable_cores
from pipeline_lib.exports.folders import CONFIG, exported_tokenizer
from pipeline_lib.exports.graphs import FIRST, SECOND, require_onnx
from pipeline_lib.exports.reading import Reader
from pipeline_lib.params import student_settings
from pipeline_lib.storage.columns import Text
from pipeline_lib.text.pieces import SEGMENTS
from pipeline_lib.text.ragged import Sentences

if TYPE_CHECKING:
    import onnxruntime

BATCH = 32
"""Rows per batch.  Larger batches do not fit the cache: on one core of a Xeon with VNNI, an int8
BiLSTM was 1.3 times as fast with 32 as with 256."""
CHUNK = 512
"""Texts per chunk, which one core reads, shortest first."""
FILES = {"onnx": "onnx/model.onnx", "onnx-int8": "onnx/model_quantized.onnx"}
"""Format to the model's path in its folder, where transformers.js looks for it."""


@dataclass(frozen=True)
class OnnxStudent:
    """A student, or a sentence encoder, in ONNX, and its tokenizer.

    :ivar label_names: empty for a sentence encoder.
    :ivar width: how many numbers it gives for a text or a pair.
    """

    session: "onnxruntime.InferenceSession"
    reader: Reader
    label_names: list[str]
    width: int

    @property
    def is_pair(self) -> bool:
        """Whether it compares two sentences."""
        return self.reader.pair

    def predict(self, texts: Sequence[Text]) -> np.ndarray:
        """Return logits, scores or sentence vectors, float32 (texts, width), in the texts' order.

        Logits are already divided by the student's temperature.
        """
        parts = (texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK))
        with ThreadPoolExecutor(usable_cores()) as pool:
            # Parts are tokenized here one after the other, while workers run earlier ones.
            numbered = (self.reader.encode(part) for part in parts)
            found = [pool.submit(run, self.session, own, self.width) for own in numbered]
            outputs = [own.result() for own in found]
        return np.concatenate([np.empty((0, self.width), np.float32), *outputs])


def load_onnx_student(folder: Path) -> OnnxStudent:
    """Load an exported student.

    :raises DistilleryError: if the folder is damaged, or onnxruntime is not installed.
    """
    require_onnx()
    try:
        config = read_json(folder / CONFIG)
        settings = student_settings(config["architecture"])
        reader = Reader(exported_tokenizer(folder, settings), settings, config.get("pair", False))
        names = config.get("id2label", {})
        labels = [names[str(number)] for number in range(len(names))]
        session = open_session((folder / FILES[config["form"]]).read_bytes())
        width = session.get_outputs()[0].shape[1]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DistilleryError(
            f"{folder}: the ONNX student cannot be opened ({str(error).splitlines()[0]}). Export "
            "it again."
        ) from error
    return OnnxStudent(session, reader, labels, width)


def open_session(model: bytes) -> "onnxruntime.InferenceSession":
    """Return a session that runs a model, each call in one thread.

    :raises ValueError: if it is damaged.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise ValueError(str(error)) from error


def run(session: "onnxruntime.InferenceSession", sentences: Sentences, width: int) -> np.ndarray:
    """Return the model's output for each sentence, float32 (sentences, width)."""
    outputs = np.empty((len(sentences), width), np.float32)
    name = session.get_outputs()[0].name
    order = np.argsort(sentences.lengths, kind="stable")
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        (outputs[rows],) = session.run([name], inputs(sentences, rows))
    return outputs


def inputs(sentences: Sentences, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return a batch as the model's inputs, int64 (rows, longest) each."""
    given = {}
    for suffix, side in ((FIRST, sentences), (SECOND, sentences.second)):
        if side is None:
            continue
        starts = side.offsets[rows]
        lengths = side.offsets[rows + 1] - starts
        columns = np.arange(lengths.max())
        mask = columns < lengths[:, None]
        places = np.where(mask, starts[:, None] + columns, 0)
        given[f"input_ids{suffix}"] = np.where(mask, side.ids[places], side.pad_id).astype(np.int64)
        given[f"attention_mask{suffix}"] = mask.astype(np.int64)
        if side.segments is not None:
            given[SEGMENTS] = np.where(mask, side.segments[places], 0).astype(np.int64)
    return given
