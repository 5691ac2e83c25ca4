"""Test collections for retrieval: queries, documents, and relevance judgements.

Made from a task's pairs, with first sentences as queries and second ones as documents, or read from
files in BEIR's layout (Thakur et al. 2021).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_key
from pipeline_lib.base.kinds import label_array
from pipeline_lib.base.kinds.kind import finite_number
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import JudgedFiles, Params, Retrieval, TaskPairs
from pipeline_lib.retrieval.evaluation.measures import Gains, Relevant
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.tables.reader import ReadOptions, read_batches

Judgement = tuple[str, str, float]
"""A query, a document, and the document's relevance score."""


@dataclass(frozen=True)
class Collection:
    """Queries with their relevant documents, each text once.

    :ivar relevant: the numbers of each query's relevant documents; :ivar gains: the judged
        documents' gains, for nDCG.
    :ivar own: each query's document with the same text, unless it was judged: it would come first
        in any ranking and answers nothing, so rankings leave it out.
    :ivar left_out: queries without a relevant document, or beyond the requested number.
    """

    queries: list[str]
    documents: list[str]
    relevant: Relevant
    gains: Gains
    own: list[int | None]
    left_out: int

    @classmethod
    def of(
        cls,
        queries: Iterable[str],
        documents: Iterable[str],
        judged: Iterable[Judgement],
        relevant: float,
        graded: bool,
    ) -> Self:
        """Build a collection; of several judgements of a pair, the highest counts.

        :param relevant: the minimum score of a relevant document.
        :param graded: whether the score itself is the gain, instead of 0 and 1.
        """
        numbers = {text: number for number, text in enumerate(dict.fromkeys(documents))}
        worth: dict[str, dict[int, float]] = {text: {} for text in queries}
        for query, document, value in judged:
            known, number = worth[query], numbers[document]
            known[number] = max(value, known.get(number, value))
        answers = {q: {n for n, w in values.items() if w >= relevant} for q, values in worth.items()}
        asked = [query for query, matches in answers.items() if matches]
        query_numbers = (numbers.get(query) for query in asked)
        return cls(
            asked,
            list(numbers),
            [answers[query] for query in asked],
            [_gains(worth[q]) if graded else dict.fromkeys(answers[q], 1.0) for q in asked],
            [None if n in worth[q] else n for q, n in zip(asked, query_numbers, strict=True)],
            len(worth) - len(asked),
        )

    def limited(self, queries: int | None) -> Self:
        """Return the collection with ``queries`` queries: those whose text has the lowest keys."""
        if queries is None or queries >= len(self.queries):
            return self
        order = sorted(range(len(self.queries)), key=lambda n: int(string_key(self.queries[n])))
        chosen = sorted(order[:queries])
        parts = {
            name: [getattr(self, name)[number] for number in chosen] for name in ("queries", "relevant", "gains", "own")
        }
        return replace(self, **parts, left_out=self.left_out + len(self.queries) - queries)


def _gains(worth: Mapping[int, float]) -> dict[int, float]:
    """Return judgements as gains: one below zero, as TREC marks junk, gains nothing."""
    return {number: max(0.0, value) for number, value in worth.items()}


def read_collection(params: Params, name: str, layout: Layout) -> Collection:
    """Return the collection of one row of ``retrieval``."""
    row: Retrieval = params.retrieval_row(name)
    if isinstance(row.source, TaskPairs):
        collection = _from_pairs(params, name, row.source, layout)
    else:
        collection = _from_files(Path(params.inputs) / row.source.folder, row.source)
    if not collection.queries:
        raise PotstillError(
            f"retrieval.{name}.source: no query has an answer. Lower or correct `relevant` in params.yaml."
        )
    return collection.limited(row.queries)


def _from_pairs(params: Params, name: str, source: TaskPairs, layout: Layout) -> Collection:
    task, folder = params.task(source.task), layout.split(source.task, source.split)
    if not folder.exists():
        raise PotstillError(
            f"retrieval.{name}.source.split: {source.task} has no split {source.split}. Name one that its source has."
        )
    table = ShardSet.open(folder).table()
    if table["label"].null_count:
        raise PotstillError(
            f"retrieval.{name}.source.split: labels of {source.split} of {source.task} are hidden. "
            "Name a labelled split."
        )
    labels = label_array(table["label"])
    if task.score_range:
        # The minimum possible score counts as zero relevance.
        worth, relevant = labels - task.score_range.min, source.relevant - task.score_range.min
    else:
        worth, relevant = labels == task.label_names.index(source.relevant), 1.0
    first, second = (table[column].to_pylist() for column in ("text", "text_2"))
    judged = zip(first, second, worth.astype(float).tolist(), strict=True)
    return Collection.of(first, second, judged, relevant, source.graded)


def _from_files(folder: Path, source: JudgedFiles) -> Collection:
    documents = _texts(folder / "corpus.jsonl", ["title", "text"])
    queries = _texts(folder / "queries.jsonl", ["text"])
    path = folder / source.qrels
    columns = ["query-id", "corpus-id", "score"]
    judged = []
    options = ReadOptions("tsv", columns=columns)
    for batch in read_batches(path, columns, options=options):
        rows = zip(*(batch.texts(name) for name in columns), strict=True)
        for number, (query, document, score) in enumerate(rows):
            where = batch.where(number)
            # An unknown id is a fault in the files, not an irrelevant document.
            for index, (known, key) in enumerate(((queries, query), (documents, document))):
                if key not in known:
                    raise PotstillError(
                        f"{where}, column {columns[index]!r}: no {key!r} among the ids. Correct it, or remove the row."
                    )
            judged.append((queries[query], documents[document], _number(where, score)))
    # The same file has the queries of other splits.
    asked = (query for query, _, _ in judged)
    return Collection.of(asked, documents.values(), judged, source.relevant, source.graded)


def _texts(path: Path, columns: list[str]) -> dict[str, str]:
    """Return texts by id, each preceded by its title."""
    texts: dict[str, str] = {}
    for batch in read_batches(path, ["_id", *columns], ["title"]):
        parts = zip(*(batch.texts(name) for name in columns), strict=True)
        joined = (" ".join(filter(None, row)) for row in parts)
        texts |= zip(batch.texts("_id"), joined, strict=True)
    return texts


def _number(where: str, value: str) -> float:
    if (parsed := finite_number(value)) is not None:
        return parsed
    raise PotstillError(f"{where}, column 'score': {value!r} is not a number. Correct it.")
