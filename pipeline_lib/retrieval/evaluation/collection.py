"""Test collections for retrieval: a task's first sentences as queries, its second ones as documents."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.hashing import string_key
from pipeline_lib.base.kinds import label_array
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.retrieval.evaluation.measures import Gains, Relevant
from pipeline_lib.shards.shard_sets import ShardSet

Judgement = tuple[str, str, float]
"""A query, a document, and the document's relevance score."""


@dataclass(frozen=True)
class Collection:
    """Queries with their relevant documents, by number, and each judged document's gain; each text once.

    :ivar own: each query's document with the same text, unless it was judged: rankings leave it out.
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
        """Build a collection; a document is relevant from a score on; of several of a pair, the highest counts.

        :param graded: whether the score itself is the gain, instead of 0 and 1.
        """
        numbers = {text: number for number, text in enumerate(dict.fromkeys(documents))}
        worth: dict[str, dict[int, float]] = {text: {} for text in queries}
        for query, document, value in judged:
            of_query, number = worth[query], numbers[document]
            of_query[number] = max(value, of_query.get(number, value))
        answers = {q: {n for n, w in values.items() if w >= relevant} for q, values in worth.items()}
        asked = [query for query, matches in answers.items() if matches]
        query_numbers = (numbers.get(query) for query in asked)
        return cls(
            asked,
            list(numbers),
            [answers[query] for query in asked],
            [worth[q] if graded else dict.fromkeys(answers[q], 1.0) for q in asked],
            [None if n in worth[q] else n for q, n in zip(asked, query_numbers, strict=True)],
            len(worth) - len(asked),
        )

    def limited(self, queries: int | None) -> Self:
        """Return the collection with ``queries`` queries: those whose text has the lowest keys."""
        if queries is None or queries >= len(self.queries):
            return self
        order = sorted(range(len(self.queries)), key=lambda n: int(string_key(self.queries[n])))
        names, chosen = ("queries", "relevant", "gains", "own"), sorted(order[:queries])
        fields = {name: [getattr(self, name)[number] for number in chosen] for name in names}
        return replace(self, **fields, left_out=self.left_out + len(self.queries) - queries)


def read_collection(params: Params, name: str, layout: Layout) -> Collection:
    """Return the collection of one row of ``retrieval``."""
    row = params.retrieval_row(name)
    source, where = row.source, f"retrieval.{name}.source"
    task, folder = params.task(source.task), layout.split(source.task, source.split)
    if not folder.exists():
        raise PotstillError(f"{where}.split: {source.task} has no split {source.split}. Name one that its source has.")
    table = ShardSet.open(folder).to_table()
    if table["label"].null_count:
        raise PotstillError(
            f"{where}.split: labels of {source.split} of {source.task} are hidden. Name a labelled split."
        )
    labels = label_array(table["label"])
    if task.score_range:
        # The minimum possible score counts as zero relevance.
        worth, relevant = labels - task.score_range.min, source.relevant - task.score_range.min
    else:
        worth, relevant = labels == task.label_names.index(source.relevant), 1.0
    first, second = (table[column].to_pylist() for column in ("text", "text_2"))
    judged = zip(first, second, worth.astype(float).tolist(), strict=True)
    collection = Collection.of(first, second, judged, relevant, source.graded)
    if not collection.queries:
        raise PotstillError(f"{where}: no query has an answer. Lower or correct `relevant` in params.yaml.")
    return collection.limited(row.queries)
