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

    from pipeline_lib.evaluation.companions import Router
    from pipeline_lib.storage.columns import Text
    from pipeline_lib.students.student import Student

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
    route: Annotated[
        float | None,
        typer.Option("--route", min=0, max=1, help="The teacher answers this share of sentences."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", min=0, max=1, help="It answers where the student is less sure."
        ),
    ] = None,
    teacher: Annotated[
        Path | None, typer.Option("--teacher", help="Its folder; else that of the student's row.")
    ] = None,
    params: Annotated[Path, typer.Option("--params", help="The parameter file.")] = Path(
        "params.yaml"
    ),
) -> None:
    """Classify or score sentences with a student, one line per sentence.

    A line has label and probability, or the score of a regression. Without TEXT and --file,
    sentences are read from standard input, one per line. A student of pairs wants both sentences
    with a tab between them. With --route the sentences that the student is least sure of go on to
    its teacher, about so many of them: the confidence that this takes is that of the task's dev.
    Or --threshold says the confidence itself. Each line then says who answered it.
    """
    from pipeline_lib.base.probabilities import softmax
    from pipeline_lib.evaluation.evaluate import require_model

    require_model(model)
    sentences = _sentences(texts or [], file)
    from pipeline_lib.students.student import load_student

    student = load_student(model)
    router = _router(model, student, route, threshold, teacher, params)
    for batch in _batches(sentences):
        outputs, routed = router.predict(list(as_examples(batch, student.is_pair)))
        if outputs.shape[1] == 1:
            for text, score in zip(batch, outputs[:, 0].tolist(), strict=True):
                typer.echo(_score(form, text, student.label_names[0], score))
            continue
        rows = zip(batch, outputs, softmax(outputs), routed.tolist(), strict=True)
        for text, logits, shares, by_teacher in rows:
            by = None if router.teacher is None else ("teacher" if by_teacher else "student")
            typer.echo(_line(form, text, student.label_names, logits, shares, by))


def _router(
    model: Path,
    student: "Student",
    route: float | None,
    threshold: float | None,
    teacher: Path | None,
    params: Path,
) -> "Router":
    """Return what answers: the student, and its teacher where rows are routed."""
    from pipeline_lib.base.errors import DistilleryError
    from pipeline_lib.evaluation import companions

    own = companions.scaled(student.predict, companions.temperature_of(model))
    if route is None and threshold is None:
        if teacher is not None:
            raise DistilleryError("--teacher: nothing goes on to it. Give --route or --threshold.")
        return companions.Router(own)
    if route is not None and threshold is not None:
        raise DistilleryError("--route and --threshold both say what goes on: give one of them.")
    if len(student.label_names) == 1:
        raise DistilleryError(
            f"{model}: a regression, which has no confidence to route by. Leave out --route and "
            "--threshold."
        )
    if threshold is None:
        threshold = companions.threshold_of(model, route)
    length = None
    if teacher is None:
        from pipeline_lib.params import load_params

        teacher, length = companions.teacher_of(model, load_params(params))
    _, behind = companions.open_teacher(teacher, student.label_names, length)
    return companions.Router(own, behind, threshold)


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


def as_examples(lines: Iterable[str], is_pair: bool) -> Iterator["Text"]:
    """Yield lines as a student reads them: as they are, or as pairs with a tab between.

    :raises DistilleryError: if a line is no pair and should be one.
    """
    return map(_pair, lines) if is_pair else iter(lines)


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
    form: Format,
    text: str,
    names: list[str],
    logits: "np.ndarray",
    shares: "np.ndarray",
    by: str | None,
) -> str:
    best = int(shares.argmax())
    if form is Format.text:
        who = "" if by is None else f"{by}\t"
        return f"{names[best]}\t{shares[best]:.4f}\t{who}{text}"
    answer = {
        "text": text,
        **({} if by is None else {"answered_by": by}),
        "label": names[best],
        "probability": round(float(shares[best]), 6),
        "probabilities": {n: round(float(s), 6) for n, s in zip(names, shares, strict=True)},
        "logits": [round(float(value), 6) for value in logits],
    }
    return json.dumps(answer, ensure_ascii=False)
