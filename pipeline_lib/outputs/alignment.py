"""Proof that stored outputs are aligned with their input rows, row for row.

The content keys match in every row; the stored outputs agree with the labels of the original examples about as well as
the teacher itself; and for every shard, rerunning some of its rows through the teacher reproduces the stored outputs.

The rows are chosen so that their outputs differ, and a row's own output must be far nearer than another row's.  If they
are too similar for rounding to tell apart, the whole shard is recomputed and must match byte for byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS, kind_of_labels, label_array
from pipeline_lib.base.layout import state_folder
from pipeline_lib.base.text import Text
from pipeline_lib.outputs.teacher_pass import LogitPass, TeacherPass
from pipeline_lib.shards.columns import FIRST, matrix
from pipeline_lib.shards.fingerprint import code_fingerprint
from pipeline_lib.shards.shard_sets import ShardSet, check_answers, read_shard
from pipeline_lib.shards.vectors import StoredVectors

SAMPLE, MIN_PER_SHARD = 64, 8
"""Rows to rerun: over the whole set, and at least this many in every shard."""
CANDIDATES = 256
"""Rows of a shard from which those with the most different vectors are chosen."""
TOLERANCE = {"float32": 0.01, "bfloat16": 0.1, "float16": 0.02}
"""Maximum distance between a row's stored and rerun logits, by dtype, as a fraction of the mean
distance between the chosen rows' logits."""
VECTOR_TOLERANCE = 0.1
"""The same for sentence vectors and layer states, which are also rounded for storage.  In so many
dimensions, any two sentences are about equally far apart."""
AGREEMENT_TOLERANCE = 0.03


def proof_key(inputs: ShardSet, outputs: ShardSet, teacher_pass: TeacherPass) -> list[Any]:
    """Return what determines the proof that outputs, whose digests have been checked, belong to inputs."""
    digests = [inputs.manifest.digest, outputs.manifest.digest]
    return [*digests, teacher_pass.made_from(), code_fingerprint(__name__)]


def prove_alignment(
    inputs: ShardSet, outputs: ShardSet, logit_pass: LogitPass, teacher_agreement: float | None = None
) -> dict[str, Any]:
    """Measure the alignment of stored logits and return the figures.

    :param teacher_agreement: with its training rows' labels; None: these are other rows, or their labels are hidden.
    """
    share = rows_per_shard(outputs)
    samples, labels, answers = [], [], []
    figures: dict[str, Any] = {"rows": inputs.manifest.rows, "rows_with_equal_key": equal_keys(inputs, outputs)}
    for shard, rows, stored in pairs(inputs, outputs):
        logits = matrix(stored["logits"])
        chosen = telling_rows(logits, share)
        texts = logit_pass.texts(rows.take(chosen), FIRST)
        samples.append(Sample(shard, texts, logits[chosen]))
        if teacher_agreement is not None:
            is_labelled = rows["label"].is_valid()
            labels.append(rows.select(["label"]).filter(is_labelled))
            answers.append(logits[is_labelled.to_numpy()])
    if teacher_agreement is not None:
        figures |= _agreement(pa.concat_tables(labels)["label"], answers, teacher_agreement, outputs)
    again = run_again(samples, logit_pass)
    judge = Judge(inputs, outputs, logit_pass, TOLERANCE[logit_pass.precision])
    return figures | judge.figures(samples, again) | _logit_figures(samples, again)


def prove_vectors(inputs: ShardSet, outputs: ShardSet, teacher_pass: TeacherPass) -> dict[str, Any]:
    """Measure the alignment of the vectors, or states, that a pass stored, and return the figures."""
    figures = {"rows": inputs.manifest.rows, "rows_with_equal_key": equal_keys(inputs, outputs)}
    samples = [*different_samples(inputs, outputs, teacher_pass)]
    again = run_again(samples, teacher_pass)
    judge = Judge(inputs, outputs, teacher_pass, VECTOR_TOLERANCE)
    nearest = round(_share_nearest(samples, again), 6)
    return figures | judge.figures(samples, again) | {"nearest_to_their_own": nearest}


@dataclass(frozen=True)
class Sample:
    """Rows to rerun of the shard with this index: ``texts``, and ``stored`` float32 (rows, width)."""

    shard: int
    texts: Sequence[Text]
    stored: np.ndarray


def different_samples(inputs: ShardSet, outputs: ShardSet, teacher_pass: TeacherPass) -> Iterator[Sample]:
    """Yield the rows to rerun: of every shard some whose outputs differ most."""
    count, generator = rows_per_shard(outputs), np.random.default_rng(0)
    for shard, rows, stored in pairs(inputs, outputs):
        size = min(CANDIDATES, rows.num_rows)
        candidates = np.sort(generator.choice(rows.num_rows, size, replace=False))
        for side in teacher_pass.sides(rows):
            values = StoredVectors([(stored, side)], teacher_pass.column)[candidates]
            values = values.reshape(size, -1)
            chosen = different_rows(values, count)
            texts = teacher_pass.texts(rows.take(candidates[chosen]), side)
            yield Sample(shard, texts, values[chosen])


def rows_per_shard(outputs: ShardSet) -> int:
    """Return how many rows of each shard to rerun."""
    return max(MIN_PER_SHARD, -(-SAMPLE // max(1, len(outputs.manifest.shards))))


def pairs(inputs: ShardSet, outputs: ShardSet) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """Yield (index, input rows, outputs) of each shard that has rows, memory-mapped."""
    check_answers(inputs.manifest, outputs.manifest)
    for number, shard in enumerate(inputs.manifest.shards):
        if shard.rows:
            stored = outputs.read(outputs.manifest.shards[number])
            yield number, inputs.read(shard), stored


def equal_keys(inputs: ShardSet, outputs: ShardSet) -> int:
    """Return how many rows have the same content key as their outputs: all."""
    matches = sum(
        int((rows["key"].to_numpy() == stored["key"].to_numpy()).sum()) for _, rows, stored in pairs(inputs, outputs)
    )
    if matches != inputs.manifest.rows:
        raise PotstillError(f"{outputs.folder}: rows and outputs have different keys. {_remedy(outputs)}")
    return matches


def different_rows(values: np.ndarray, count: int) -> np.ndarray:
    """Return up to ``count`` row numbers, each as far as possible from those before it.

    :param values: float, shape (rows, width); the first choice is the row farthest from the mean.
    """
    nearest = np.linalg.norm(values - values.mean(0), axis=1)
    chosen: list[int] = []
    for number in range(min(count, len(values))):
        chosen.append(int(nearest.argmax()))
        distances = np.linalg.norm(values - values[chosen[-1]], axis=1)
        nearest = distances if number == 0 else np.minimum(nearest, distances)
        nearest[chosen] = -1.0
    return np.array(chosen, np.int64)


def telling_rows(logits: np.ndarray, count: int) -> np.ndarray:
    """Return up to ``count`` row numbers whose logits would reveal rows that changed places.

    Half of them differ from each other, which reveals any reordering.  The others differ most from
    the row after or before, which reveals an off-by-one even where neighbours are usually alike.
    """
    steps = np.linalg.norm(np.diff(logits, axis=0), axis=1)
    largest = np.argsort(-steps, kind="stable")[: count // 4]
    return np.unique(np.concatenate([different_rows(logits, count // 2), largest, largest + 1]))


def run_again(samples: list[Sample], teacher_pass: TeacherPass) -> list[np.ndarray]:
    """Return each sample's recomputed outputs, float32, in the shape of those stored."""
    texts = [text for sample in samples for text in sample.texts]
    if not texts:
        return []
    settings = teacher_pass.max_length, teacher_pass.batch_tokens
    again = teacher_pass.teacher().predict(texts, *settings)
    return np.split(again, np.cumsum([len(sample.texts) for sample in samples])[:-1])


@dataclass(frozen=True)
class Judge:
    """Compares samples with the teacher's outputs; its tolerance is a share of the mean distance between rows."""

    inputs: ShardSet
    outputs: ShardSet
    teacher_pass: TeacherPass
    tolerance: float

    def figures(self, samples: list[Sample], again: list[np.ndarray]) -> dict[str, Any]:
        """Return how many rows were rerun, and how close their outputs came."""
        shares, whole = [0.0], set()
        for sample, recomputed in zip(samples, again, strict=True):
            error = float(np.linalg.norm(recomputed - sample.stored, axis=1).max())
            apart = mean_distance(sample.stored)
            # Written so that NaN fails.
            if error <= self.tolerance * apart:
                shares.append(error / max(apart, 1e-30))
            elif sample.shard not in whole:
                self._require_same(sample.shard, error, apart)
                whole.add(sample.shard)
        return {
            "recomputed_rows": sum(len(sample.texts) for sample in samples),
            "max_share_of_distance": round(max(shares), 6),
            "shards_recomputed_whole": len(whole),
        }

    def _require_same(self, number: int, error: float, apart: float) -> None:
        """Check that recomputing a whole shard in the same way gives the same outputs."""
        shard = self.inputs.manifest.shards[number]
        path = self.outputs.path(self.outputs.manifest.shards[number])
        if self.teacher_pass.compute(read_shard(self.inputs.path(shard))).equals(read_shard(path)):
            return
        raise PotstillError(
            f"{path}: its outputs do not belong to its rows: rerun outputs differ by up to "
            f"{error:.3g} from those stored, while different rows are {apart:.3g} apart (rounding "
            f"explains at most {self.tolerance:.0%} of that). {_remedy(self.outputs)}"
        )


def mean_distance(values: np.ndarray) -> float:
    """Return the mean distance between two different rows; 0 if there is only one."""
    pairs_of_rows = len(values) * (len(values) - 1)
    return float(_distances(values, values).sum() / pairs_of_rows) if pairs_of_rows else 0.0


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.linalg.norm(first[:, None] - second[None], axis=2)


def _logit_figures(samples: list[Sample], again: list[np.ndarray]) -> dict[str, Any]:
    both = [(recomputed, sample.stored) for sample, recomputed in zip(samples, again, strict=True)]
    greatest = max((float(np.abs(recomputed - stored).max()) for recomputed, stored in both), default=0.0)
    flipped = sum(int((recomputed.argmax(1) != stored.argmax(1)).sum()) for recomputed, stored in both)
    return {"max_abs_logit_difference": round(greatest, 6), "flipped_argmax": flipped}


def _share_nearest(samples: list[Sample], again: list[np.ndarray]) -> float:
    hits = rows = 0
    for sample, recomputed in zip(samples, again, strict=True):
        distances = _distances(recomputed, sample.stored)
        hits += int((distances.argmin(1) == np.arange(len(recomputed))).sum())
        rows += len(recomputed)
    return hits / rows if rows else 1.0


def _agreement(
    labels: pa.ChunkedArray, logits: list[np.ndarray], teacher_agreement: float, outputs: ShardSet
) -> dict[str, Any]:
    stored_agreement = KINDS[kind_of_labels(labels)].agreement(label_array(labels), np.concatenate(logits))
    if stored_agreement < teacher_agreement - AGREEMENT_TOLERANCE:
        raise PotstillError(
            f"{outputs.folder}: the stored outputs' agreement with the labels is {stored_agreement:.1%}, the teacher's "
            f"own is {teacher_agreement:.1%}. {_remedy(outputs)}"
        )
    figures = {"labelled_rows": len(labels), "agreement_with_labels": round(stored_agreement, 6)}
    return figures | {"teachers_own_agreement": round(teacher_agreement, 6)}


def _remedy(outputs: ShardSet) -> str:
    kind = outputs.manifest.kind
    return f"Delete this folder and {state_folder()}/store/{kind}, then run `distill run`."
