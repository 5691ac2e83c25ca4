"""How many labels are likely wrong."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.kinds.probabilities import answered, softmax
from pipeline_lib.inspection.distances import LabelErrors
from pipeline_lib.inspection.joined import RowBatch
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
def test_labels_are_counted_as_by_hand(classes: int, labelled: int) -> None:
    for seed in range(4):
        rows = [(b.labels, softmax(b.logits), answered(b.logits)) for b in batches(classes, labelled, seed)]
        labels, shares, answers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        both = ~np.isnan(labels) & answers
        labels, shares = labels[both].astype(int), shares[both]
        means = [shares[labels == c, c].mean() if (labels == c).any() else 0.0 for c in range(classes)]
        best = shares.argmax(axis=1)
        wrong = int(((best != labels) & (shares.max(axis=1) >= np.array(means)[best] - 1e-6)).sum())
        assert 20 < wrong < 200
        said = f"confident learning estimates that about {wrong} of {both.sum()} labels are wrong."
        assert counted(LabelErrors(classes), classes, labelled, seed) == f"Ranked by self-confidence; {said}"
