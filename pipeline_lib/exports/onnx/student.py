"""Runs what ``distill export --to onnx`` wrote, from raw texts to logits."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError, install_extra, reason_of
from pipeline_lib.base.files import read_record
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.text import Text
from pipeline_lib.exports.folders import CONFIG, exported_reader
from pipeline_lib.models.students.tokenise import Reader
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
FIRST, SECOND = "", "_2"
"""Suffixes of the inputs' names for a sentence, and for the second one of a pair."""


@dataclass(frozen=True)
class OnnxStudent:
    """A student, or a sentence encoder, in ONNX, and its tokenizer.

    :ivar label_names: empty for a sentence encoder.
    """

    session: "onnxruntime.InferenceSession"
    reader: Reader
    label_names: list[str]
    width: int
    config: Mapping[str, Any]

    @property
    def is_pair(self) -> bool:
        """Whether it compares two sentences."""
        return self.reader.pair

    def outputs(self, texts: Sequence[Text]) -> np.ndarray:
        """Return logits, scores or sentence vectors, float32 (texts, width), in the texts' order.

        Logits are already divided by the student's temperature.
        """
        with ThreadPoolExecutor(usable_cores()) as pool:
            # Chunks are tokenized here one after the other, while workers run earlier ones.
            chunks = (self.reader.encode(texts[start : start + CHUNK]) for start in range(0, len(texts), CHUNK))
            running = [pool.submit(run, self.session, sentences, self.width) for sentences in chunks]
            outputs = [job.result() for job in running]
        return np.concatenate([np.empty((0, self.width), np.float32), *outputs])


def load_onnx_student(folder: Path) -> OnnxStudent:
    """Load an exported student."""
    require_packages("onnxruntime")
    try:
        config = read_record(folder / CONFIG)
        reader = exported_reader(folder, config)
        names = config.get("id2label", {})
        labels = [names[str(number)] for number in range(len(names))]
        session = open_session((folder / FILES[config["form"]]).read_bytes())
        width = session.get_outputs()[0].shape[1]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PotstillError(
            f"{folder}: the ONNX student cannot be opened ({reason_of(error)}). Export it again."
        ) from error
    return OnnxStudent(session, reader, labels, width, config)


def require_packages(*names: str) -> None:
    """Check that the packages that write or run ONNX files are installed."""
    try:
        for name in names:
            import_module(name)
    except ImportError as error:
        raise PotstillError(
            f"ONNX files need {' and '.join(names)} ({error}). Run `{install_extra('onnx')}`."
        ) from error


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
    batch, named = sentences.padded(rows), {}
    for suffix in (FIRST, SECOND) if sentences.second is not None else (FIRST,):
        ids, lengths = batch[f"ids{suffix}"], batch[f"lengths{suffix}"]
        named[f"input_ids{suffix}"] = ids
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        named[f"attention_mask{suffix}"] = mask.astype(np.int64)
    return named | ({SEGMENTS: batch["segments"]} if "segments" in batch else {})
