"""Opens students, teachers and sentence encoders for use, whatever format their folder has.

What was exported to ONNX or numpy is opened without torch and transformers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.kinds import KINDS, kind_of_model
from pipeline_lib.base.seals import check_sealed
from pipeline_lib.base.text import Text, as_utf8
from pipeline_lib.exports.contents import ENCODERS, STUDENTS, Content, require_content
from pipeline_lib.exports.folders import form_of
from pipeline_lib.exports.numpy_student import Predictions, Student
from pipeline_lib.models.folders import Predict, served, temperature_of
from pipeline_lib.models.students.tokenise import KnownWords
from pipeline_lib.models.weights import check_finite

if TYPE_CHECKING:
    from pipeline_lib.exports.onnx.student import OnnxStudent
    from pipeline_lib.shards.shard_sets import ShardSet


@dataclass(frozen=True)
class Predictor:
    """A student or a teacher, ready for use.

    :ivar labels: class names, in the order of the columns of probabilities and logits; for a
        regression, the name of its score.
    :ivar is_pair: whether it compares two sentences; None for a teacher, whose folder doesn't say.
    :ivar logits: maps texts or pairs, unchecked, to logits divided by the temperature, or to
        scores, float32 (texts, classes).
    :ivar words: those that it knows; None for a teacher.
    """

    folder: Path
    labels: list[str]
    kind: str
    is_pair: bool | None
    logits: Predict = field(repr=False)
    words: KnownWords | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as its folder, from which another process opens it."""
        return load_teacher if self.is_pair is None else load_student, (self.folder.absolute(),)

    def predict(self, texts: Sequence[str] | Sequence[tuple[str, str]], batch_size: int | None = None) -> Predictions:
        """Return the answers to texts, or to pairs of them, in their order.

        A text without a word is answered too: it is read as one unknown word.

        :param batch_size: the most texts computed at once, in the given order; None: as many as are
            fastest, by length. With 1 no answer depends on another text, not even by rounding.
        """
        rows = _checked(texts, self.is_pair, self.folder)
        logits = _in_batches(self.logits, rows, batch_size, len(self.labels))
        return Predictions(*KINDS[self.kind].predicted(logits, self.labels), logits)


@dataclass(frozen=True)
class Encoder:
    """A sentence encoder, ready for use.

    :ivar vectors: maps sentences, unchecked, to vectors, float32 (texts, width).
    """

    folder: Path
    width: int
    vectors: Predict = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as its folder, from which another process opens it."""
        return load_encoder, (self.folder.absolute(),)

    def encode(self, texts: Sequence[str], batch_size: int | None = None) -> np.ndarray:
        """Return each sentence's vector, float32 (texts, width), in their order."""
        rows = _checked(texts, False, self.folder)
        return _in_batches(self.vectors, rows, batch_size, self.width)


def load_student(folder: Path | str) -> Predictor:
    """Open a student: its folder below data/students, or what ``distill export`` wrote."""
    folder = Path(folder)
    if require_content(folder, *STUDENTS) is Content.exported_student:
        return _load_exported(folder)
    from pipeline_lib.models.students.student import load_student as load_trained

    student = load_trained(folder)
    logits = served(folder, student.logits, temperature_of(folder))
    return Predictor(folder, student.label_names, student.kind, student.is_pair, logits, student.reader.words)


def load_teacher(folder: Path | str) -> Predictor:
    """Open a fine-tuned teacher, on the fastest device here.

    :param folder: below data/teachers, or of any classifier of transformers.
    """
    folder = Path(folder)
    require_content(folder, Content.teacher)
    from pipeline_lib.models.serving import open_teacher

    teacher, logits = open_teacher(folder, None, None)
    return Predictor(folder, teacher.label_names, teacher.kind, None, logits)


def load_encoder(folder: Path | str) -> Encoder:
    """Open a sentence encoder, an exported one, or the encoder of a student.

    :param folder: below data/encoders or data/students, or what ``distill export`` wrote.
    """
    folder = Path(folder)
    if require_content(folder, *ENCODERS, Content.student) is Content.exported_encoder:
        vectors = _load_exported(folder).logits
        return Encoder(folder, vectors(["one"]).shape[1], vectors)
    from pipeline_lib.models.students.sentence_encoder import load_encoder as load_trained

    encoder = load_trained(folder)
    return Encoder(folder, encoder.width, served(folder, encoder.encode))


def open_shards(folder: Path | str) -> "ShardSet":
    """Open a finished shard set."""
    require_content(Path(folder), Content.shards)
    from pipeline_lib.shards.shard_sets import ShardSet

    return ShardSet.open(folder)


def _load_exported(folder: Path) -> Predictor:
    """Open an exported student, or an encoder, which has no labels, and vectors for logits."""
    check_sealed(folder)
    if form_of(folder) == "numpy":
        return _load_numpy(folder)
    from pipeline_lib.exports.onnx.student import load_onnx_student

    student = load_onnx_student(folder)
    return _exported(folder, student, student.outputs, student.reader.words)


def _load_numpy(folder: Path) -> Predictor:
    # The library's own copy: code from a folder must not be run without being asked to.
    try:
        student = Student(folder)
    except Exception as error:  # tokenizers raises bare Exceptions
        reason = reason_of(error)
        raise PotstillError(f"{folder}: the numpy student cannot be opened ({reason}). Export it again.") from error
    check_finite(folder, student.weights)
    words = KnownWords(student.tokenizer, student.config["unknown"], student.own["max_words"])
    return _exported(folder, student, student.logits if student.label_names else student.encode, words)


def _exported(folder: Path, student: "Student | OnnxStudent", outputs: Predict, words: KnownWords) -> Predictor:
    kind = kind_of_model(student.label_names, student.config)
    return Predictor(folder, student.label_names, kind, student.is_pair, served(folder, outputs), words)


def _in_batches(predict: Predict, rows: list[Text], batch_size: int | None, width: int) -> np.ndarray:
    if batch_size is not None and batch_size < 1:
        raise PotstillError(f"batch_size: {batch_size}. Give at least 1, or None.")
    if not rows:
        return np.empty((0, width), np.float32)
    size = batch_size or len(rows)
    return np.concatenate([predict(rows[start : start + size]) for start in range(0, len(rows), size)])


def _checked(texts: Sequence[Text], is_pair: bool | None, folder: Path) -> list[Text]:
    """Return the texts or pairs as a model reads them.

    :param is_pair: what the model reads; None: either, but not both at once.
    """
    of_other_type = isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable)
    if of_other_type or getattr(texts, "ndim", 1) != 1:
        raise PotstillError(
            f"texts: of type {type(texts).__name__}. Give a list of texts, or of pairs; of a table one column, as in "
            "predict(table['text'])."
        )
    rows = [tuple(text) if isinstance(text, list) else text for text in texts]
    if is_pair is None and rows:
        is_pair = isinstance(rows[0], tuple) and len(rows[0]) == 2
    for number, text in enumerate(rows):
        _check(text, bool(is_pair), f"texts[{number}]", folder)
    return rows


def _check(text: object, is_pair: bool, where: str, folder: Path) -> None:
    paired = isinstance(text, tuple) and len(text) == 2
    for side in text if paired else (text,):
        if isinstance(side, str):
            as_utf8(side, where)
        elif paired or not isinstance(side, tuple):
            kind = type(side).__name__
            raise PotstillError(f"{where}: {side!r:.80} is not a text, but of type {kind}. Give strings.")
    if isinstance(text, tuple) and not paired:
        raise PotstillError(f"{where}: {text!r:.80} is neither a text nor a pair. Give strings, or tuples of two.")
    if is_pair and not paired:
        raise PotstillError(
            f"{where}: {text!r:.80} is not a pair, but {folder} compares two sentences. Give tuples: (first, second)."
        )
    if not is_pair and isinstance(text, tuple):
        raise PotstillError(f"{where}: {text!r:.80} is not one text, but {folder} reads one. Give strings.")
