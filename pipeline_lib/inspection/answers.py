"""The students' answers to held-out splits, as ``evaluate`` stored them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.inspection.joined import RowBatch
from pipeline_lib.params import Params
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import read_shard


@dataclass(frozen=True)
class ChosenStudent:
    """A row of ``methods``, the seed that represents it, and the temperature of each seed."""

    task: str
    method: str
    seed: int
    temperatures: dict[int, float]

    @property
    def name(self) -> str:
        """Its column of ``predictions.arrow``."""
        return f"{self.method}-{self.seed}"


def chosen_student(layout: Layout, params: Params, task: str, method: str | None = None) -> ChosenStudent | None:
    """Return the student, of a row if one is named, that is best on dev by the first metric; None without scores.

    If dev has no labels, it is the one that agrees best with its teacher.
    """
    path = layout.scores(task)
    if not path.exists():
        return None
    scores = TaskScores.read(path)
    rows = scores.methods if method is None else {method: scores.methods.get(method)}
    if None in rows.values():
        raise PotstillError(f"{path}: no row {method!r}; there are {', '.join(scores.methods)}. Name one of them.")
    if not rows:
        return None
    best = scores.best_on_dev(rows)
    dev_scores = rows[best].scores["dev"]
    seeds = {int(s): v for s, v in dev_scores[scores.metric].by_seed.items()} if dev_scores else None
    seed = max(seeds, key=seeds.get) if seeds else params.seeds[0]
    temperatures = rows[best].details.temperature or {}
    return ChosenStudent(task, best, seed, {int(s): value for s, value in temperatures.items()})


class StoredAnswers:
    """The answers of a student, and of the other seeds of its row, to one held-out split."""

    def __init__(self, path: Path, split: str, rows: int, student: ChosenStudent) -> None:
        """Open ``predictions.arrow``, for a split of so many rows."""
        table = read_shard(path)
        # The rows of a split are contiguous and in its order.
        start = pc.index(table["split"], pa.scalar(split)).as_py()
        answers = table.slice(max(start, 0), rows)
        if len(answers) != rows or pc.any(pc.not_equal(answers["split"], split)).as_py():
            raise PotstillError(f"{path}: its rows of {split} are not the {rows} of the split. Run `distill run`.")
        if student.name not in answers.column_names:
            raise PotstillError(f"{path}: no answers of {student.name}. Run `distill run`.")
        self._table, self._student = answers, student
        names = [name.rpartition("-") for name in answers.column_names]
        self._seeds = [int(seed) for method, _, seed in names if method == student.method and seed.isdecimal()]

    def logits(self, batch: RowBatch) -> np.ndarray:
        """Return the student's logits for a batch, float (rows, classes), temperature-scaled."""
        return self._of(self._student.seed, batch)

    def spread(self, batch: RowBatch) -> np.ndarray:
        """Return the standard deviation of the scores over seeds, float64 (rows,), NaN for one seed."""
        if len(self._seeds) < 2:
            return np.full(len(batch), np.nan)
        each = [self._of(seed, batch)[:, 0].astype(np.float64) for seed in self._seeds]
        return np.std(each, axis=0, ddof=1)

    def _of(self, seed: int, batch: RowBatch) -> np.ndarray:
        column = self._table[f"{self._student.method}-{seed}"].slice(batch.first, len(batch))
        return matrix(column) / self._student.temperatures.get(seed, 1.0)
