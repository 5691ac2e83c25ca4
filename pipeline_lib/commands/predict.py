"""``distill predict``: classify, score or embed texts from the command line, a file or a pipe."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import Format
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.terminal import say
from pipeline_lib.base.text import as_utf8
from pipeline_lib.commands.options import PARAMS, Encoding, ParamsFile, Quoted, RawCells, input_path, read_options
from pipeline_lib.commands.vectors import ENDINGS, write_vectors
from pipeline_lib.tables.input_texts import (
    SECOND_COLUMN,
    Columns,
    TextBatch,
    column_types,
    is_lines,
    of_lines,
    read_texts,
)
from pipeline_lib.tables.reader import LINES_COLUMN, ReadOptions, input_format

if TYPE_CHECKING:
    from pipeline_lib.exports.opening import Predictor
    from pipeline_lib.models.serving import Router
    from pipeline_lib.retrieval.sentence_rows import Rows
    from pipeline_lib.tables.answer_writer import AnsweredBatch

EXAMPLE = 'Example: distill predict data/students/movies/bilstm_kd_ts/1 "A joy from start to end."'


def predict(
    model: Annotated[Path, Argument(help="Folder of a student or an encoder, trained or exported.")],
    texts: Annotated[list[str] | None, Argument(metavar="TEXT", help="Sentences to answer.")] = None,
    file: Annotated[Path | None, Option(help="Read from here: lines, or a table in any format.")] = None,
    text: Annotated[str | None, Option(help=f"A table's text column; by default {LINES_COLUMN}.")] = None,
    text2: Annotated[str | None, Option(help=f"For pairs, the second one; by default {SECOND_COLUMN}.")] = None,
    keep: Annotated[list[str] | None, Option(help="Another column to copy to the output; repeatable.")] = None,
    reads: Annotated[
        Format | None, Option("--input-format", help="Format of a pipe, or of a file with another suffix.")
    ] = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    out: Annotated[
        Path | None, Option(help="Write here: .csv, .jsonl, .parquet or .arrow; vectors: .npy, too.")
    ] = None,
    prefix: Annotated[str, Option(help="Prepended to the names of answers in JSON and --out.")] = "",
    raw_cells: RawCells = False,
    form: Annotated[
        Literal["text", "jsonl"], Option("--format", help="text: label, probability, sentence. jsonl: everything.")
    ] = "text",
    route: Annotated[
        float | None, Option(min=0.01, max=0.999, help="Pass on to the teacher what would be like it less often.")
    ] = None,
    threshold: Annotated[
        float | None, Option(min=0, max=1, help="Pass on sentences at or below this confidence.")
    ] = None,
    teacher: Annotated[Path | None, Option(help="Folder of the teacher; by default the student's own.")] = None,
    params: ParamsFile = PARAMS,
    vectors: Annotated[bool, Option("--vectors", help="Write a student's sentence vectors, not its answers.")] = False,
    normalise: Annotated[
        bool, Option("--normalise", help="Scale vectors to length 1: dot products are cosines.")
    ] = False,
) -> None:
    """Classify or score texts with a student, or embed them with an encoder, in the order given.

    MODEL is a student's folder, or one that `distill export` wrote. Without TEXT and --file, sentences are read from
    standard input, one per line. For a student of sentence pairs, separate the two by a tab. From a table, the
    columns --text and --text2 are read. A blank line, or a row without a sentence, stays without an answer.

    Each line has the label and its probability, or every label that applies with its own, or a regression's score;
    --format jsonl and --out give the probability of every class. Only a few thousand rows are in memory at a time.

    With --route 0.95, the student answers alone where at least 95 % of its answers are its teacher's, with 95 %
    confidence by the task's dev split; the teacher answers the sentences that it is less sure of. --threshold sets the
    confidence directly. Each line then says which of the two answered.

    With an encoder, or --vectors, the sentence vector of each row is written to --out: as a table with the columns
    text and vector, or, to .npy, only the vectors, in float32. An empty line gets the vector of an unknown word, and
    a row that cannot be read has none (NaN in .npy), so that rows keep their order and number.
    """
    from pipeline_lib.exports.contents import ENCODERS, content_of
    from pipeline_lib.exports.opening import load_student
    from pipeline_lib.tables import answer_writer
    from pipeline_lib.tables.writer import require_ending

    options, source = read_options(reads, encoding, quoted), input_path(file)
    of_vectors = vectors or content_of(model) in ENCODERS
    if of_vectors and out is None:
        raise PotstillError("--out: name the file to write the vectors to, such as vectors.arrow or vectors.npy.")
    if normalise and not of_vectors:
        raise PotstillError("--normalise: answers are not vectors. Give --vectors, too.")
    if out is not None:
        require_ending(out, ENDINGS if of_vectors else None)
    columns = _columns(bool(texts) or is_lines(source, options), text, text2, keep)
    _check_input(texts or [], source, out)
    if of_vectors:
        if text2 or keep or prefix or raw_cells or form != "text" or teacher or (route, threshold) != (None, None):
            raise PotstillError(
                f"{model}: vectors are written, not answers. Leave out --text2, --keep, --prefix, --raw-cells, "
                "--format, --route, --threshold and --teacher."
            )
        write_vectors(model, _sentences(texts or [], source, columns.text, options), out, normalise)
        return
    student = load_student(model)
    columns = _for_student(columns, student)
    router = _router(model, student, route, threshold, teacher, params)
    batches = _of_arguments(texts, columns) if texts else read_texts(source, columns, options)
    types = {} if texts else column_types(source, columns, options)
    as_json = partial(answer_writer.json_lines, prefix=prefix)
    printed = answer_writer.text_lines if form == "text" else as_json

    def show(answers: "AnsweredBatch") -> None:
        for line in printed(answers):
            say(line)

    written = prefix, types, raw_cells
    # Rows of these formats can be malformed.
    may_fail = not texts and input_format(source, options) in ("csv", "tsv", "jsonl")
    writing: AbstractContextManager[Callable[[AnsweredBatch], None]]
    writing = nullcontext(show) if out is None else answer_writer.answer_writer(out, *written)
    with writing as write:
        notes = _answer_all(batches, student, router, write, out is not None, may_fail)
    for note in notes:
        say(note, err=True)


UNREADABLE = "rows that cannot be read, which get no answer"
NO_SENTENCE = "rows without a sentence, which get no answer"
NO_WORD = "rows without a word that the student knows, whose answers do not depend on what they say"


def _answer_all(
    batches: Iterable[TextBatch],
    student: "Predictor",
    router: "Router | None",
    write: Callable[["AnsweredBatch"], None],
    even_none: bool,
    tells_faults: bool,
) -> list[str]:
    """Answer every batch; return what to say of rows that have something missing.

    :param even_none: whether to write an empty batch if there are no rows.
    :param tells_faults: see :class:`~pipeline_lib.tables.answer_writer.AnsweredBatch`.
    """
    counts: dict[str, list[int]] = {UNREADABLE: [], NO_SENTENCE: [], NO_WORD: []}
    written, reason, any_read = False, "", False
    for batch in batches:
        answers = replace(_answer(batch, student, router), tells_faults=tells_faults)
        write(answers)
        counts[UNREADABLE] += [batch.numbers[row] for row in sorted(batch.faults)]
        reason = reason or next(iter(batch.faults.values()), "")
        any_read |= len(batch.faults) < len(batch.texts)
        rows = list(zip(batch.numbers, batch.texts, strict=True))
        counts[NO_SENTENCE] += [
            number for row, (number, text) in enumerate(rows) if text is None and row not in batch.faults
        ]
        if student.words is not None:
            unknown = student.words.none_in([text or "" for _, text in rows])
            if answers.routed is not None:
                unknown &= ~answers.routed
            counts[NO_WORD] += [rows[row][0] for row in unknown.nonzero()[0]]
        written = True
    if reason and not any_read:
        raise PotstillError(reason)
    if even_none and not written:
        nothing = _answer(TextBatch({}, [], []), student, router)
        write(replace(nothing, tells_faults=tells_faults))
    lines = [f"{what}: {len(numbers):,}, the first is row {numbers[0]}" for what, numbers in counts.items() if numbers]
    # It says which row it is.
    return [f"{UNREADABLE}: {len(counts[UNREADABLE]):,}. {reason}", *lines[1:]] if reason else lines


def _answer(batch: TextBatch, student: "Predictor", router: "Router | None") -> "AnsweredBatch":
    import numpy as np

    from pipeline_lib.tables.answer_writer import AnsweredBatch

    rows = [row for row, text in enumerate(batch.texts) if text is not None]
    texts = [batch.texts[row] for row in rows]
    outputs = np.full((len(batch.texts), len(student.labels)), np.nan)
    routed = None if router is None else np.zeros(len(batch.texts), bool)
    if routed is None:
        outputs[rows] = student.predict(texts).logits
    elif rows:
        outputs[rows], routed[rows] = router.predict(texts)
    return AnsweredBatch(batch.columns, student.labels, student.kind, outputs, routed, batch.faults)


def _columns(of_lines: bool, text: str | None, second: str | None, keep: list[str] | None) -> Columns:
    if of_lines and (text or second or keep):
        raise PotstillError(
            "--text, --text2 and --keep name columns of a table: give one with --file, or set --input-format."
        )
    return Columns(text or LINES_COLUMN, second, tuple(keep or ()))


def _for_student(columns: Columns, student: "Predictor") -> Columns:
    if student.is_pair:
        return Columns(columns.text, columns.second or SECOND_COLUMN, columns.keep)
    if columns.second is not None:
        raise PotstillError("--text2: this student reads one sentence. Leave it out.")
    return columns


def _router(
    model: Path, student: "Predictor", route: float | None, threshold: float | None, teacher: Path | None, params: Path
) -> "Router | None":
    if route is None and threshold is None:
        if teacher is not None:
            raise PotstillError("--teacher: no rows are passed on to it. Give --route or --threshold.")
        return None
    if route is not None and threshold is not None:
        raise PotstillError("--route and --threshold both set what is passed on to the teacher: give one of them.")
    kind = KINDS[student.kind]
    if not kind.one_of:
        what = "several labels a text" if kind.has_several else "a score"
        raise PotstillError(f"{model}: {what}, which has no confidence to route by. Leave out --route and --threshold.")
    from pipeline_lib.models import serving

    if threshold is None:
        alone = serving.alone_of(model, route)
        threshold = 1.0 if alone is None else alone.threshold
        shown = "nothing, dev is too small or agrees too seldom" if alone is None else f"{alone.rows} rows of dev"
        say(f"answered alone at {route:.1%}: {shown}", err=True)
    length = None
    if teacher is None:
        from pipeline_lib.params import load_params

        answering = serving.teacher_of(model, load_params(params))
        if answering is None:
            raise PotstillError(
                f"{model}: its teacher is answers in files, and cannot answer new texts. "
                "Name a model's folder with --teacher."
            )
        teacher, length = answering
    _, behind = serving.open_teacher(teacher, student.labels, length)
    return serving.Router(student.logits, behind, threshold, student.kind)


def _check_input(texts: list[str], file: Path | None, out: Path | None) -> None:
    from pipeline_lib.tables.writer import require_other

    if texts and file:
        raise PotstillError("sentences on the command line and --file: give one of them.")
    if not texts and file is None and sys.stdin.isatty():
        raise PotstillError("no sentences: give them as arguments, by --file or by a pipe.")
    require_other(out, file)


def _sentences(texts: list[str], source: Path | None, column: str, options: ReadOptions) -> "Iterable[Rows]":
    from pipeline_lib.commands.sentences import read_rows
    from pipeline_lib.retrieval.sentence_rows import Rows

    if texts:
        return [Rows([as_utf8(text, f"sentence {number}") for number, text in enumerate(texts, 1)])]
    return read_rows(source, column, options=replace(options, keep_faulty=True))


def _of_arguments(texts: list[str], columns: Columns) -> Iterator[TextBatch]:
    numbers = range(1, len(texts) + 1)
    checked = [as_utf8(t, f"sentence {n}") for n, t in zip(numbers, texts, strict=True)]
    yield of_lines(checked, numbers, columns)
