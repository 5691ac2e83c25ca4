"""A summary of selected rows: counts per rule, labels, the teacher's answers, vectors, proofs."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline_lib.base.files import read_record
from pipeline_lib.base.probabilities import answered
from pipeline_lib.inspection.filters import Filter
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.inspection.rows import Names
from pipeline_lib.inspection.statistics import NO_ANSWER, NO_LABEL, Figures, Numbers, learn, scores
from pipeline_lib.shards.vectors import unit


def totals(rows: JoinedRows, names: Names, wanted: Filter, common: np.ndarray | None) -> dict[str, Any]:
    """Summarise the selected rows, in one pass over the set, or two over a transfer set.

    :param common: see :func:`common_vector`.
    """
    every = learn(rows, names, wanted, scores)
    summary: dict[str, Any] = {"rows": every.rows}
    answers = {"teacher's answers": every}
    if rows.is_transfer:
        rules = every.rules
        summary |= {
            "originals": rules["original"].rows,
            "words masked": rules["mask"].changes,
            "words replaced": rules["replace"].changes,
            "rows with an n-gram": rules["ngram"].rows,
        }
        # Synthetic rows can change the class balance: a question with a word replaced is no duplicate.
        synthetic = learn(rows, names, replace(wanted, synthetic=True), scores)
        answers["teacher's answers, synthetic rows"] = synthetic
    if "label" in rows.schema:
        summary["labels"] = _shares(every.numbers.get("label"), every.labels, NO_LABEL)
    entropy = every.numbers.get("teacher's entropy")
    if entropy is not None and entropy.count:
        summary["mean entropy, bits"] = round(entropy.mean, 4)
    summary |= {name: text for name, figures in answers.items() if (text := _answers(figures))}
    if common is not None:
        summary["values per vector"] = len(common)
        summary["mean cosine of two sentences"] = round(float(common @ common), 4)
    for shard_set in rows.answers:
        proof = shard_set.folder / "alignment.json"
        if proof.exists():
            summary |= {f"alignment proof: {name}": v for name, v in read_record(proof).items()}
    return summary


def common_vector(rows: JoinedRows) -> np.ndarray | None:
    """Return the mean of the unit vectors of the first 10,000 rows, float64 (width,).

    The longer it is, the more similar all vectors are.  None without vectors.
    """
    stored = rows.stored("vector")
    if not stored:
        return None
    vectors = stored[np.arange(min(len(stored), 10_000))].astype(np.float64)
    vectors = vectors[answered(vectors)]
    return unit(vectors).sum(0) / max(len(vectors), 1)


def _answers(figures: Figures) -> str | None:
    """Describe the teacher's answers; None if no row has one."""
    numbers = figures.numbers.get("teacher's answer")
    if numbers is not None:
        return _shares(replace(numbers, missing=0), Counter()) if numbers.count else None
    counts = Counter({name: n for name, n in figures.answers.items() if name != NO_ANSWER})
    return _shares(None, counts) if counts.total() else None


def _shares(numbers: Numbers | None, counts: Counter[str], missing: str = "") -> str:
    """Describe scores, or rows per class.

    :param missing: the entry of ``counts`` for rows without a class.
    """
    if numbers is None:
        parts = [f"{name} {rows:,}" for name, rows in counts.items() if name != missing]
        none = counts[missing]
    else:
        none = numbers.missing
        parts = ["no scores"]
        if numbers.count:
            spread = f"mean {numbers.mean:.3f}, {numbers.low:.3f} to {numbers.high:.3f}"
            parts = [f"{numbers.count:,} scores", spread]
    return ", ".join([*parts, *([f"none {none:,}"] if none else [])])
