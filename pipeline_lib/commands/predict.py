"""``distill predict``: a student's answers to sentences from the command line, a file or a pipe."""

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np

EXAMPLE = 'Example: distill predict data/students/movies/bilstm_kd_ts/1 "A joy from start to end."'
BATCH = 1024


class Format(StrEnum):
    """How answers are printed: tab-separated label, probability and text; or one JSON per line."""

    text = "text"
    jsonl = "jsonl"


def predict(
    model: Annotated[Path, typer.Argument(help="A student's folder.")],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Sentences to classify.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read sentences from here, one per line.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="text: label, probability, sentence. jsonl: all.")
    ] = Format.text,
) -> None:
    """Classify or score sentences with a student, one line per sentence.

    A line has label and probability, or the score of a regression. Without TEXT and --file,
    sentences are read from standard input, one per line. A student of pairs wants both sentences
    with a tab between them.
    """
    from pipeline_lib.base.probabilities import softmax
    from pipeline_lib.evaluation.evaluate import require_model

    require_model(model)
    sentences = _sentences(texts or [], file)
    from pipeline_lib.students.student import load_student

    student = load_student(model)
    for batch in _batches(sentences):
        examples = [_pair(line) for line in batch] if student.is_pair else batch
        outputs = student.predict(examples)
        if outputs.shape[1] == 1:
            for text, score in zip(batch, outputs[:, 0].tolist(), strict=True):
                typer.echo(_score(form, text, student.label_names[0], score))
            continue
        for text, logits, shares in zip(batch, outputs, softmax(outputs), strict=True):
            typer.echo(_line(form, text, student.label_names, logits, shares))


def _sentences(texts: list[str], file: Path | None) -> Iterable[str]:
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.base.lines import as_utf8, read_lines

    if texts and file:
        raise DistilleryError("sentences on the command line and --file: give one of them.")
    if texts:
        return [as_utf8(text, f"sentence {number}") for number, text in enumerate(texts, 1)]
    if file is None and sys.stdin.isatty():
        raise DistilleryError("no sentences: give them as arguments, by --file or by a pipe.")
    return read_lines(file)


def _batches(sentences: Iterable[str]) -> Iterator[list[str]]:
    """Yield sentences in batches, empty ones left out: a pipe can be longer than the memory."""
    rest = (sentence for sentence in sentences if sentence.strip())
    while batch := list(islice(rest, BATCH)):
        yield batch


def _pair(line: str) -> tuple[str, str]:
    from pipeline_lib.base.errors import DistilleryError

    first, tab, second = line.partition("\t")
    if not tab or not first.strip() or not second.strip():
        raise DistilleryError(
            f"{line!r:.80}: no pair. This student compares two sentences: write both in one line, "
            "with a tab between them."
        )
    return first, second


def _score(form: Format, text: str, name: str, score: float) -> str:
    if form is Format.text:
        return f"{score:.4f}\t{text}"
    return json.dumps({"text": text, name: round(score, 6)}, ensure_ascii=False)


def _line(
    form: Format, text: str, names: list[str], logits: "np.ndarray", shares: "np.ndarray"
) -> str:
    best = int(shares.argmax())
    if form is Format.text:
        return f"{names[best]}\t{shares[best]:.4f}\t{text}"
    answer = {
        "text": text,
        "label": names[best],
        "probability": round(float(shares[best]), 6),
        "probabilities": {n: round(float(s), 6) for n, s in zip(names, shares, strict=True)},
        "logits": [round(float(value), 6) for value in logits],
    }
    return json.dumps(answer, ensure_ascii=False)
