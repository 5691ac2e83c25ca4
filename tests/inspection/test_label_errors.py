"""How many labels are likely wrong: the same with cleanlab and without it."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.kinds.probabilities import answered, softmax
from pipeline_lib.inspection.distances import self_confidence
from pipeline_lib.inspection.joined import RowBatch
from pipeline_lib.inspection.label_errors import LabelErrors
from pipeline_lib.shards.columns import list_column


def batches(classes: int, labelled: int, seed: int) -> Iterator[RowBatch]:
    """Yield 600 rows in uneven batches: some without a label or an answer, some labels wrong.

    :param labelled: the classes that labels name; the others stand in answers alone.
    """
    draw = np.random.default_rng(seed)
    truth = draw.integers(labelled, size=600)
    logits = draw.normal(size=(600, classes)).astype(np.float32)
    logits[np.arange(600), truth] += draw.uniform(0, 4, size=600)
    wrong = draw.random(600) < 0.2
    labels = np.where(wrong, draw.integers(labelled, size=600), truth).tolist()
    logits[draw.random(600) < 0.1] = np.nan
    # Answers of few digits are often equal, and as sure as the mean of their class.
    logits = np.round(logits)
    known = draw.random(600) < 0.9
    column = pa.array(labels, pa.int32(), mask=~known)
    for start, stop in ((0, 7), (7, 8), (8, 300), (300, 600)):
        table = pa.table({"label": column[start:stop]})
        answers = {"logits": pa.table({"logits": list_column(logits[start:stop])})}
        yield RowBatch(0, start, start, table, answers)


def counted(errors: LabelErrors, classes: int, labelled: int, seed: int) -> str:
    for batch in batches(classes, labelled, seed):
        errors.learn(batch)
    for batch in batches(classes, labelled, seed):
        errors.count(batch)
    return errors.summary()


@pytest.mark.parametrize(("classes", "labelled"), [(2, 2), (5, 5), (9, 6)])
def test_cleanlab_counts_the_same(classes: int, labelled: int) -> None:
    pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    for seed in range(4):
        own = counted(LabelErrors(classes), classes, labelled, seed)
        other = counted(LabelErrors(classes, cleanlab=True), classes, labelled, seed)
        assert own.startswith("Ranked by self-confidence; confident learning estimates that about ")
        assert other.startswith("Ranked by cleanlab 2.")
        told = "estimates that about "
        assert own.partition(told)[2] == other.partition(told)[2]
        assert 20 < int(own.partition(told)[2].split()[0]) < 200


def test_cleanlab_ranks_the_same() -> None:
    rank = pytest.importorskip("cleanlab.rank", reason="cleanlab is not installed")
    batch = [*batches(5, 5, 0)][-1]
    known = ~np.isnan(batch.labels) & answered(batch.logits)
    labels, shares = batch.labels[known].astype(int), softmax(batch.logits[known])
    wanted = rank.get_label_quality_scores(labels, shares)
    np.testing.assert_allclose(self_confidence(softmax(batch.logits), batch.labels)[known], wanted)
