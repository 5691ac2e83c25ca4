"""``distill search``: finds the sentences of an index that are nearest to a query."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import Format
from pipeline_lib.base.terminal import say, say_json
from pipeline_lib.base.text import as_utf8
from pipeline_lib.commands.options import Device, Encoding, Index, Quoted, input_path, read_options

if TYPE_CHECKING:
    from pipeline_lib.models.students.tokenise import KnownWords
    from pipeline_lib.retrieval.index import Index as OpenIndex
    from pipeline_lib.retrieval.search import Hit
    from pipeline_lib.retrieval.sentence_rows import Rows
    from pipeline_lib.tables.reader import ReadOptions

EXAMPLE = 'Example: distill search data/mine "A city in the north of Italy."'
BATCH = 256


def search(
    index: Index,
    query: Annotated[list[str] | None, Argument(metavar="QUERY", help="What to look for.")] = None,
    queries: Annotated[Path | None, Option(help="File of queries: lines, or a table in any format.")] = None,
    text: Annotated[str, Option(help="Column or JSON key of the queries in that file.")] = "text",
    ids: Annotated[str | None, Option("--id", help="Column or JSON key of their ids, to print as well.")] = None,
    reads: Annotated[
        Format | None, Option("--format", help="Format of that file or of a pipe; by default from its name.")
    ] = None,
    encoding: Encoding = None,
    quoted: Quoted = None,
    k: Annotated[int, Option(min=1, help="Results per query.")] = 10,
    as_json: Annotated[bool, Option("--json", help="JSON lines: query, its id if any, rank, id, text, score.")] = False,
    encoder: Annotated[Path | None, Option(help="The index's encoder, if it was moved.")] = None,
    by: Annotated[
        Literal["cosine", "student"], Option(help="Rank by cosine, or by the comparison of the index's student.")
    ] = "cosine",
    precision: Annotated[
        Literal["float32", "bfloat16", "auto"], Option(help="Number format of --by student.")
    ] = "float32",
    first: Annotated[
        str | None, Option(help="approximate:N: take N candidates from the approximate index first.")
    ] = None,
    teacher: Annotated[Path | None, Option(help="Teacher of pairs that reranks the best.")] = None,
    rescore: Annotated[int, Option(min=1, help="Results per query that it reranks.")] = 20,
    label: Annotated[
        str | None, Option(help="Class that --by student and --teacher rank by; of two, the second.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Print the sentences of an index that best match each query.

    Without QUERY and --queries, queries are read from standard input, one per line.

    Scores are cosines. Those of --by student are the difference of two classes' logits, the log probability of one
    of several classes, or a regression's score; those of --teacher are probabilities, or a regression's scores.
    """
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.retrieval.index import Index as OpenIndex
    from pipeline_lib.retrieval.scoring import CosineScorer
    from pipeline_lib.retrieval.search import Search, cross_encoder, pair_scorer

    options = read_options(reads, encoding, quoted)
    rows = _queries(query or [], input_path(queries), text, ids, options)
    opened, where = OpenIndex.open(index), str(resolve_device(device))
    scorer = CosineScorer(where) if by == "cosine" else pair_scorer(opened, encoder, label, where, precision)
    way = Search(
        opened,
        opened.encoder.located(encoder).load(where),
        scorer,
        _candidates(first),
        cross_encoder(teacher, label, where) if teacher else None,
        rescore if teacher else 0,
    )
    unknown = UnknownQueries(way.encoder.words)
    for batch in filter(len, map(unknown.leave_out, _batches(rows))):
        names = batch.ids or [None] * len(batch)
        for asked, name, hits in zip(batch.texts, names, way.find(batch.texts, k), strict=True):
            if as_json:
                _print_lines(opened, asked, name, hits)
            else:
                _print_table(opened, asked, name, hits)
    for line in unknown.lines():
        say(line, err=True)


class UnknownQueries:
    """Leaves out queries of which the encoder knows no word, and remembers others with such words.

    All unknown words have one vector: a query of nothing else would find any other such text, with a cosine of 1.
    """

    def __init__(self, words: "KnownWords") -> None:
        self._words = words
        self._lost: list[str] = []
        self._partly: list[str] = []

    def leave_out(self, rows: "Rows") -> "Rows":
        """Return the queries that have a known word."""
        import numpy as np

        missing = self._words.missing(rows.texts)
        for text, unknown in zip(rows.texts, missing, strict=True):
            if unknown.is_all:
                self._lost.append(f"{text!r:.80}")
            elif unknown.words:
                self._partly.append(f"{text!r:.80} ({', '.join(unknown.words):.80})")
        return rows.chosen(np.array([not unknown.is_all for unknown in missing], bool))

    def lines(self) -> Iterator[str]:
        """Yield what there is to say of unknown words, a line per kind."""
        if self._lost:
            yield (
                f"queries without a word that the encoder knows, which find nothing: {len(self._lost):,}, the first is "
                f"{self._lost[0]}. Use other words, or build the index with an encoder that knows them"
            )
        if self._partly:
            yield (
                f"queries with words that the encoder does not know: {len(self._partly):,}, the "
                f"first is {self._partly[0]}"
            )


def _candidates(first: str | None) -> int | None:
    if first is None:
        return None
    way, _, count = first.partition(":")
    if way != "approximate" or not count.isdigit() or int(count) < 1:
        raise PotstillError(f"first: {first!r}. Write `--first approximate:100`, for instance.")
    return int(count)


def _queries(
    queries: list[str], file: Path | None, text: str, ids: str | None, options: "ReadOptions"
) -> "Iterable[Rows]":
    from pipeline_lib.commands.sentences import read_rows
    from pipeline_lib.retrieval.sentence_rows import Rows

    if queries and file:
        raise PotstillError("queries on the command line and --queries: give one of them.")
    if queries and not all(query.strip() for query in queries):
        raise PotstillError("a query is empty: give words to look for.")
    if queries:
        return [Rows([as_utf8(query, f"query {number}") for number, query in enumerate(queries, 1)])]
    if file is None and sys.stdin.isatty():
        raise PotstillError("no queries: give them as arguments, by --queries or by a pipe.")
    if file is not None and not file.exists():
        raise PotstillError(f"{file}: not found. Give a file of queries.")
    return read_rows(file, text, ids, options)


def _batches(queries: "Iterable[Rows]") -> "Iterator[Rows]":
    there_are = False
    for rows in queries:
        filled = rows.filled()
        for start in range(0, len(filled), BATCH):
            there_are = True
            yield filled[start : start + BATCH]
    if not there_are:
        raise PotstillError("all queries are empty: give words to look for.")


def _print_lines(index: "OpenIndex", query: str, name: str | None, hits: "list[Hit]") -> None:
    asked = {"query": query} if name is None else {"query": query, "query_id": name}
    for rank, hit in enumerate(hits, 1):
        sentence = {"id": index.id(hit.row), "text": index.text(hit.row)}
        line = {**asked, "rank": rank, **sentence, "score": round(hit.score, 6)}
        say_json(line)


def _print_table(index: "OpenIndex", query: str, name: str | None, hits: "list[Hit]") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.base.text import printable

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=Text(printable(query if name is None else f"{name}: {query}")),
        title_justify="left",
    )
    for head in ("Rank", "Score", "Id"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("Text", overflow="fold")
    for rank, hit in enumerate(hits, 1):
        cells = str(rank), f"{hit.score:.4f}", str(index.id(hit.row)), index.text(hit.row)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    SafeConsole().print(table)
