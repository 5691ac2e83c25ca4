"""Running the systems of one row of ``retrieval`` on its collection, and scoring their rankings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline_lib.base.layout import Layout
from pipeline_lib.models.folders import require_model
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.params import EncoderSystem, Params, RankingSystem, StudentSystem, TeacherOrder
from pipeline_lib.retrieval.embedders import Encode, computing, model_encoder
from pipeline_lib.retrieval.evaluation.collection import Collection, read_collection
from pipeline_lib.retrieval.evaluation.measures import against_judgements, against_order
from pipeline_lib.retrieval.scoring import CosineScorer, PairScorer, Scorer, best

QUERIES, DOCUMENTS = 256, 8192
"""Queries, and documents, whose scores are held in memory at a time."""
NONE = -1
"""Fills a ranking that has more ranks than documents."""
Orders = list[dict[int, float]]
"""For each query, a teacher's scores of the documents it read with it."""
Seeds = dict[str, np.ndarray]
"""A system's rankings, int64 (queries, depth), by seed; under ``""`` if it has no seeds."""


def retrieval_scores(params: Params, name: str, layout: Layout) -> dict[str, Any]:
    """Score the rankings of one row's systems: the fields of ``RetrievalScores``, with measures by seed and name.

    Students and encoders run on the CPU in float32, so that scores are the same everywhere; models
    and the teacher as ``precompute`` says.
    """
    row, collection = params.retrieval_row(name), read_collection(params, name, layout)
    tops = {n: settings for n, settings in row.systems.items() if settings.kind == "reranked"}
    ranked = {
        system: _rankings(params, settings, collection, row.depth, layout)
        for system, settings in row.systems.items()
        if system not in tops
    }
    orders: Orders | None = None
    if row.teacher is not None:
        pool = [(rankings, row.teacher.pool) for rankings in ranked.values()]
        pool += [(ranked[settings.first], settings.top) for settings in tops.values()]
        firsts = np.hstack([rankings[:, :count] for seeds, count in pool for rankings in seeds.values()])
        pooled = [sorted({*numbers} - {NONE}) for numbers in firsts.tolist()]
        orders = teacher_scores(params, row.teacher, collection, pooled, layout)
    ranked |= {
        system: {seed: reranked(r, orders, settings.top) for seed, r in ranked[settings.first].items()}
        for system, settings in tops.items()
    }
    return {
        "queries": len(collection.queries),
        "left_out": collection.left_out,
        "documents": len(collection.documents),
        "relevant": sum(map(len, collection.relevant)),
        "at": row.at,
        "teacher": row.teacher and row.teacher.teacher,
        "teacher_pairs": None if orders is None else float(np.mean([len(scores) for scores in orders])),
        "systems": {n: _scored(ranked[n], collection, orders, row.at) for n in row.systems},
    }


def _rankings(params: Params, system: RankingSystem, collection: Collection, depth: int, layout: Layout) -> Seeds:
    """Return the rankings of a system that does not rerank another's."""

    def ranked(encode: Encode, scorer: Scorer) -> np.ndarray:
        return ranking(encode(collection.queries), encode(collection.documents), scorer, collection, depth)

    if isinstance(system, StudentSystem):
        rankings, output = {}, _class_number(params, system.task, system.label)
        for seed in params.seeds:
            folder = layout.student(system.task, system.method, seed)
            require_model(folder)
            is_cosine = system.score == "cosine"
            scorer = CosineScorer() if is_cosine else PairScorer.of(load_student(folder), output, "cpu", "float32")
            rankings[str(seed)] = ranked(load_encoder(folder).encode, scorer)
        return rankings
    if isinstance(system, EncoderSystem):
        require_model(layout.encoder(system.encoder))
        encode = load_encoder(layout.encoder(system.encoder)).encode
    else:
        encode = model_encoder(params, layout, system.model, system.pooling, system.max_length)
    return {"": ranked(encode, CosineScorer())}


def ranking(
    queries: np.ndarray, documents: np.ndarray, scorer: Scorer, collection: Collection, depth: int
) -> np.ndarray:
    """Return each query's best documents, int64 (queries, depth); ties go to the earlier one.

    An unjudged document with the query's own text is left out.  Vectors are float32 (rows, width).
    """
    blocks = [(start, documents[start : start + DOCUMENTS]) for start in range(0, len(documents), DOCUMENTS)]
    candidates = [
        # One more than needed, to replace the query's own text.
        best(scorer, queries[start : start + QUERIES], blocks, depth + 1)[1]
        for start in range(0, len(queries), QUERIES)
    ]
    rankings = np.full((len(queries), depth), NONE)
    for row, query_number, numbers in zip(rankings, collection.own, np.concatenate(candidates), strict=True):
        others = numbers[:depth] if query_number is None else numbers[numbers != query_number][:depth]
        row[: len(others)] = others
    return rankings


def teacher_scores(
    params: Params, row: TeacherOrder, collection: Collection, pool: Sequence[Sequence[int]], layout: Layout
) -> Orders:
    """Score each query with each document of its pool by a cross-encoder: scores, or :func:`log_odds`."""
    folder = layout.teacher(row.task, row.teacher)
    require_model(folder)
    device, precision, batch_tokens = computing(params)
    pairs = [
        (query, collection.documents[number])
        for query, numbers in zip(collection.queries, pool, strict=True)
        for number in numbers
    ]
    length = params.teachers[row.teacher].max_length
    logits = load_teacher(folder, device, precision).predict(pairs, length, batch_tokens)
    values = iter(log_odds(logits, _class_number(params, row.task, row.label)).tolist())
    return [{number: next(values) for number in numbers} for numbers in pool]


def log_odds(logits: np.ndarray, number: int | None) -> np.ndarray:
    """Return log(p / (1 − p)) of one class, float64 (rows,); None: the score of a regression.

    It has the same order as p, but does not round two values of p near 1 to the same number.

    :param logits: float (rows, classes).
    """
    exact = logits.astype(np.float64)
    if number is None:
        return exact[:, 0]
    return exact[:, number] - np.logaddexp.reduce(np.delete(exact, number, axis=1), axis=1)


def reranked(rankings: np.ndarray, orders: Orders, top: int) -> np.ndarray:
    """Return rankings with the first ``top`` in the teacher's order, followed by the others."""
    reordered = rankings.copy()
    for row, scores in zip(reordered, orders, strict=True):
        read = [number for number in row[:top].tolist() if number != NONE]
        row[: len(read)] = in_order({number: scores[number] for number in read})
    return reordered


def in_order(scores: Mapping[int, float]) -> list[int]:
    """Return documents, best first; ties go to the earlier one."""
    return sorted(scores, key=lambda number: (-scores[number], number))


def _scored(rankings: Seeds, collection: Collection, orders: Orders | None, at: list[int]) -> dict[str, Any]:
    judged = {seed: against_judgements(r, collection.relevant, collection.gains, at) for seed, r in rankings.items()}
    order = None if orders is None else [in_order(scores) for scores in orders]
    return {"judged": judged, "teacher": order and {seed: against_order(r, order, at) for seed, r in rankings.items()}}


def _class_number(params: Params, task: str, label: str | None) -> int | None:
    return None if label is None else params.task(task).label_names.index(label)
