"""How far stored outputs are from what this code, with these libraries, computes of some rows.

What rounding for storage explains does not count: int8 moves a vector by more than other code may.
"""

import numpy as np

from pipeline_lib.outputs.alignment import different_samples, equal_keys, mean_distance, run_again
from pipeline_lib.outputs.teacher_pass import TeacherPass
from pipeline_lib.shards.shard_sets import ShardSet


def difference(inputs: ShardSet, outputs: ShardSet, teacher_pass: TeacherPass) -> float:
    """Return by how much rows computed again differ, at most; some of every shard are.

    :returns: a share of the mean distance between the rows of a shard, averaged over the shards;
        infinite if no shard has different rows; NaN if outputs are.
    """
    equal_keys(inputs, outputs)
    samples = [*different_samples(inputs, outputs, teacher_pass)]
    storage, errors = getattr(teacher_pass, "storage", "float32"), [0.0]
    for sample, again in zip(samples, run_again(samples, teacher_pass), strict=True):
        apart = np.abs(again - sample.stored) - _half_steps(sample.stored, storage)
        errors.append(float(np.linalg.norm(np.maximum(apart, 0.0), axis=1).max()))
    # Of all shards: the rows of a single one may be alike, or be just one.
    distances = [mean_distance(sample.stored) for sample in samples if len(sample.stored) > 1]
    error, distance = float(np.max(errors)), float(np.mean(distances or [0.0]))
    return error / distance if distance else (float("inf") if error else 0.0)


def _half_steps(stored: np.ndarray, storage: str) -> np.ndarray | float:
    """Return by how much storing can have moved each value, for float32 (rows, width)."""
    if storage == "int8":
        return np.abs(stored).max(1, keepdims=True) / 127 / 2
    if storage == "float16":
        return np.spacing(np.abs(stored).astype(np.float16)).astype(np.float32) / 2
    return 0.0
