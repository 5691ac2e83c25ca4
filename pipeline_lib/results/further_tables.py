"""The tables of labelled splits besides dev and test, such as MNLI's mismatched ones."""

from dataclasses import replace

from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.detail_tables import calibration, routing, steps
from pipeline_lib.results.table import Table
from pipeline_lib.results.table_rows import QUALITY, scores_table


def further_tables(result: TaskResult, timed: bool) -> list[Table]:
    """Return the tables of scores, steps, calibration and routing on each of these splits.

    :param timed: whether the cost of routing may be given in time.
    """
    return [
        table
        for split in result.scores.further_splits
        for table in (
            _scores(result, split),
            steps(result, split),
            calibration(result, split),
            routing(result, timed, split),
        )
        if table is not None
    ]


def _scores(result: TaskResult, split: str) -> Table:
    scores = result.scores
    heads = {"score": split} | {k: v for k, v in QUALITY.items() if k not in ("dev", "test")}
    table = scores_table(result, f"{result.task}: {scores.metric} on {split}", heads, split=split)
    caption = (
        f"{' / '.join(scores.metrics)} in percent, gain, distance and agreement on the {scores.rows[split]:,} rows of "
        f"{split}, with which nothing was chosen; p is corrected for the rows of this table."
    )
    return replace(table, caption=[caption])
