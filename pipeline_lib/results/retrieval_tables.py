"""Tables of what is measured besides the tasks' own scores: retrieval, and untuned similarity."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.results.schema import RetrievalScores, SeedScores, SimilarityScores
from pipeline_lib.results.table import Column, Table, percent
from pipeline_lib.results.tables import spread


def read_measured(params: Params, layout: Layout, finished: bool = False) -> list[Table]:
    """Return the tables of every row of ``retrieval`` and of ``similarity``."""
    rows = [(_retrieval, name, layout.retrieval(name)) for name in params.retrieval]
    rows += [(_similarity, name, layout.similarity(name)) for name in params.similarity]
    return [table for read, name, path in rows if path.exists() or not finished for table in read(name, path)]


def _retrieval(name: str, path: Path) -> Iterator[Table]:
    scores = RetrievalScores.read(path)
    size = (
        f"In percent. {scores.queries:,} queries with {scores.relevant:,} answers among {scores.documents:,} "
        f"documents; {scores.left_out:,} queries left out. Mean over queries and seeds, ± standard "
        "deviation over seeds."
    )
    judged = {system: result.judged for system, result in scores.systems.items()}
    yield _table(f"Retrieval: {name}", scores.measures, judged, size)
    if scores.teacher is not None:
        order = (
            f"The same measures, in percent, with the top candidates of teacher {scores.teacher} as answers. It scored "
            f"{scores.teacher_pairs:.1f} documents per query: the top ones of every system."
        )
        by_teacher = {system: result.teacher or {} for system, result in scores.systems.items()}
        title = f"Retrieval: {name}, against the order of teacher {scores.teacher}"
        yield _table(title, scores.measures, by_teacher, order)


def _similarity(name: str, path: Path) -> Iterator[Table]:
    scores = SimilarityScores.read(path)
    counts = ", ".join(f"{rows:,} {split}" for split, rows in scores.rows.items())
    caption = (
        f"The cosine of the vectors of each pair of {scores.task}, not tuned on labels; in percent on {scores.split}. "
        f"Classes are decided by a threshold chosen on train (Wu et al. 2020, table 5). {counts} rows."
    )
    yield _table(f"Untuned similarity: {name}", scores.metrics, scores.systems, caption)


def _table(
    title: str, measures: Sequence[str], systems: Mapping[str, Mapping[str, SeedScores | float]], caption: str
) -> Table:
    columns = [Column(measure, partial(_value, measure)) for measure in measures]
    return Table.of(title, [*systems], [*systems.values()], columns, [caption])


def _value(measure: str, by_measure: Mapping[str, SeedScores | float]) -> str:
    value = by_measure[measure]
    return spread(value) if isinstance(value, SeedScores) else percent(value)
