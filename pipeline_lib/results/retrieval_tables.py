"""Tables of what is measured besides the tasks' own scores: retrieval, and untuned similarity."""

from collections.abc import Mapping
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.results.schema import RetrievalScores, SeedScores, SimilarityScores
from pipeline_lib.results.table import Table


def read_measured(params: Params, layout: Layout, finished: bool = False) -> list[Table]:
    """Return the tables of every row of ``retrieval`` and of ``similarity``.

    :param finished: leave out those that have not been measured yet.
    """
    tables = []
    for name in params.retrieval:
        path = layout.retrieval(name)
        tables += [] if finished and not path.exists() else _retrieval(name, path)
    for name in params.similarity:
        path = layout.similarity(name)
        tables += [] if finished and not path.exists() else [_similarity(name, path)]
    return tables


def _retrieval(name: str, path: Path) -> list[Table]:
    scores = RetrievalScores.read(path)
    size = (
        f"{scores.queries:,} queries with {scores.relevant:,} answers among {scores.documents:,} documents; "
        f"{scores.left_out:,} queries left out. Mean over queries and seeds, ± standard deviation over seeds."
    )
    judged = {system: result.judged for system, result in scores.systems.items()}
    tables = [_table(f"Retrieval: {name}", scores.measures, judged, [f"In percent. {size}"])]
    if scores.teacher is not None:
        order = (
            f"The same measures, in percent, with the top candidates of teacher {scores.teacher} as answers. It scored "
            f"{scores.teacher_pairs:.1f} documents per query: the top ones of every system."
        )
        by_teacher = {system: result.teacher or {} for system, result in scores.systems.items()}
        title = f"Retrieval: {name}, against the order of teacher {scores.teacher}"
        tables.append(_table(title, scores.measures, by_teacher, [order]))
    return tables


def _table(
    title: str, measures: list[str], systems: Mapping[str, Mapping[str, SeedScores]], caption: list[str]
) -> Table:
    rows = [[name, *(_spread(values[measure]) for measure in measures)] for name, values in systems.items()]
    return Table(title, ["System", *measures], rows, caption)


def _similarity(name: str, path: Path) -> Table:
    scores = SimilarityScores.read(path)
    rows = [
        [system, *(f"{100 * values[metric]:.1f}" for metric in scores.metrics)]
        for system, values in scores.systems.items()
    ]
    counts = ", ".join(f"{rows:,} {split}" for split, rows in scores.rows.items())
    caption = (
        f"The cosine of the vectors of each pair of {scores.task}, not tuned on labels; in percent on {scores.split}. "
        f"Classes are decided by a threshold chosen on train (Wu et al. 2020, table 5). {counts} rows."
    )
    header = ["System", *scores.metrics]
    return Table(f"Untuned similarity: {name}", header, rows, [caption])


def _spread(value: SeedScores) -> str:
    mean = f"{100 * value.mean:.1f}"
    return f"{mean} ± {100 * value.std:.1f}" if len(value.by_seed) > 1 else mean
