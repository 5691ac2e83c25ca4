"""A method's runs, and those of regressions: students that are fitted to all rows at once, not trained in steps."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.models.networks.encoders import RegressionEncoder
from pipeline_lib.models.networks.student import StudentConfig, StudentNetwork, compare
from pipeline_lib.models.students.student import save_student
from pipeline_lib.shards.shard_sets import SetReference
from pipeline_lib.shards.training_records import Settings
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.checkpoint import Progress
from pipeline_lib.training.dev_scores import scale_of
from pipeline_lib.training.distillation.encoded_sets import standardised
from pipeline_lib.training.distillation.initialisation import start_of
from pipeline_lib.training.distillation.plans import Plan
from pipeline_lib.training.distillation.students import StudentTraining, finish_student, score_on_dev
from pipeline_lib.training.linear import draw_folds, fit_linear, held_out_outputs
from pipeline_lib.training.loop import Report
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Fields, Finish
from pipeline_lib.training.search import TrainingRow

BATCH = 1024


@dataclass
class Means:
    """The mean of each text's word vectors, or the comparison of a pair's two, centred and at the scale of 1.

    :ivar vectors: float32 (words, width).
    """

    vectors: np.ndarray
    centre: np.ndarray
    scale: float

    @classmethod
    def of(cls, vectors: np.ndarray, train: Sentences) -> "Means":
        """Learn the centre and the scale of a training set."""
        values = cls(vectors, np.zeros(1, np.float32), 1.0)(train)
        centre = values.mean(0)
        spread = float(np.sqrt(((values - centre) ** 2).sum(1).mean()))
        return cls(vectors, centre, spread or 1.0)

    def __call__(self, sentences: Sentences) -> np.ndarray:
        """Return float32 (rows, features)."""
        sides = [sentences] if sentences.second is None else [sentences, sentences.second]
        means = [torch.from_numpy(self._means(side)) for side in sides]
        values = means[0] if len(means) == 1 else compare(*means)
        return (values.numpy() - self.centre) / np.float32(self.scale)

    def _means(self, side: Sentences) -> np.ndarray:
        counts = np.diff(side.offsets)
        shares = np.repeat(1.0 / np.maximum(counts, 1), counts).astype(np.float32)
        return csr_matrix((shares, side.ids, side.offsets), (len(side), len(self.vectors))) @ self.vectors


@dataclass
class Ngrams:
    """The TF-IDF weights of each text's hashed n-grams; those that train does not have count for nothing.

    :ivar buckets: those that train has, int64 (features,); :ivar idf: of each, float32 (features,).
    """

    encoder: RegressionEncoder
    buckets: np.ndarray
    idf: np.ndarray

    @classmethod
    def of(cls, encoder: RegressionEncoder, train: Sentences) -> "Ngrams":
        """Learn the n-grams of a training set, and their inverse document frequencies."""
        buckets, frequencies = np.unique(_counts(encoder, train).indices, return_counts=True)
        return cls(encoder, buckets, (np.log((1 + len(train)) / (1 + frequencies)) + 1).astype(np.float32))

    def __call__(self, sentences: Sentences) -> csr_matrix:
        """Return float32 (rows, features)."""
        counts = _counts(self.encoder, sentences)[:, self.buckets]
        norms = np.sqrt(np.maximum(counts @ self.idf**2, 1.0))
        return csr_matrix(diags(1 / norms) @ counts @ diags(self.idf))

    def spread(self, values: np.ndarray) -> torch.Tensor:
        """Return a table of all buckets with these rows (features, columns), and zeros for others, float32."""
        table = torch.zeros(self.encoder.table.num_embeddings, values.shape[1])
        table[torch.from_numpy(self.buckets)] = torch.from_numpy(values).float()
        return table


def _counts(encoder: RegressionEncoder, sentences: Sentences) -> csr_matrix:
    """Return how often each row has an n-gram of each bucket, float32 (rows, buckets)."""
    rows, columns = [], []
    for batch in LengthSorted(sentences, BATCH, seed=0).epoch(0):
        padded = sentences.batch(batch)
        buckets, counted = encoder.buckets(padded["ids"], padded["lengths"])
        rows.append(np.repeat(batch, counted.sum(1)))
        columns.append(buckets[counted].numpy())
    ends = np.concatenate(rows), np.concatenate(columns)
    shape = len(sentences), encoder.table.num_embeddings
    return csr_matrix((np.ones(len(ends[0]), np.float32), ends), shape)


@dataclass(frozen=True)
class RegressionTraining(StudentTraining):
    """The fit of one regression: ``rate`` is the penalty.  It draws nothing at random."""

    @property
    def settings(self) -> Settings:
        """Those of one step over all rows, whatever the seed."""
        return replace(super().settings, batch_size=self.rows, seed=0)

    def run(self, report: Report) -> tuple[Progress, Finish]:
        """Fit the student to its training set, and score it on dev."""
        plan = self.plan
        train, dev = (encoding.read(content) for encoding, content in self.sets)
        scale, start = scale_of(train.targets["labels"]), start_of(self.words, plan.student, plan.start)
        outputs = len(plan.labels)
        width = start.width if plan.pair else outputs
        config = StudentConfig(start.words, width, plan.student, plan.pair, plan.labels, kind=plan.kind)
        model = StudentNetwork(config).eval()
        means = Means.of(start.vectors, train) if plan.student.mean else None
        ngrams = Ngrams.of(model.encoder, train) if plan.student.ngrams else None
        readers = [reader for reader in (means, ngrams) if reader is not None]
        targets = {name: torch.from_numpy(np.array(t)) for name, t in standardised(train, scale).targets.items()}

        def loss(rows: np.ndarray, answers: torch.Tensor) -> torch.Tensor:
            objective = plan.objective
            options = objective.temperature, plan.kind, objective.parameters
            chosen = {name: values[rows] for name, values in targets.items()}
            return objective_loss(objective.weights, {"logits": answers}, chosen, *options)

        features, everything = [read(train) for read in readers], np.arange(len(train))
        weights, bias = fit_linear(features, partial(loss, everything), outputs, self.rate)
        answers = sum((read(dev) @ w for read, w in zip(readers, weights, strict=True)), bias).astype(np.float32)
        score = score_on_dev(plan, dev.targets["labels"], answers, scale)
        chosen_by = {}
        has_synthetic = SetReference.to(Path(plan.inputs.folder), 0).rows < plan.inputs.rows
        # A synthetic row is too like its source for one to be held out from the other, and pairs may share a text.
        if len(plan.optimiser.penalties) > 1 and not (has_synthetic or plan.pair):
            folds = draw_folds(train.targets["labels"], KINDS[plan.kind].one_of, self.settings.seed)
            held_out, rows = held_out_outputs(features, loss, outputs, self.rate, folds), folds >= 0
            labels = train.targets["labels"][rows]
            score = replace(score, loss=score_on_dev(plan, labels, held_out[rows], scale).loss)
            chosen_by = {"selection": "penalty whose loss is lowest in cross-validation on train"}
        report(1, 1, 0.0, score.merit)
        _write(model, weights, bias, means, ngrams)
        entry = {"step": 1, "epoch": 1.0, "loss": 0.0} | score.fields
        progress = Progress(step=1, best_step=1, best_merit=score.merit, history=[entry])

        def finish(folder: Path, _: Progress) -> Fields:
            fields = finish_student(model, scale, dev, plan, torch.device("cpu"))
            save_student(folder, model, start.tokenizer)
            return fields | chosen_by | {"rows": len(train), "unanswered": self.unanswered}

        return progress, finish


def student_row(plan: Plan, vocabulary: Path, dev: Path, seeds: list[int], device: str) -> TrainingRow[StudentTraining]:
    """Return the runs of one method of a task, with its vocabulary and prepared dev set, by seed and rate."""
    spec = RegressionTraining if plan.student.fitted else StudentTraining
    same, rates = (plan, vocabulary, SetReference.to(dev)), plan.optimiser.learning_rates
    return TrainingRow(plan.method, rates, seeds, lambda seed, rate: spec(*same, seed, rate, device))


def _write(
    model: StudentNetwork, weights: list[np.ndarray], bias: np.ndarray, means: Means | None, ngrams: Ngrams | None
) -> None:
    """Put a fit into the student's tables: what each word and each n-gram adds to the outputs."""
    weights, encoder = [*weights], model.encoder
    tensor = partial(torch.tensor, dtype=torch.float32)
    with torch.no_grad():
        layer = torch.eye(len(bias))
        if means is not None:
            slope = weights.pop(0) / means.scale
            bias = bias - means.centre @ slope
            if model.config.pair:
                layer = tensor(slope.T)
                encoder.embeddings.load(torch.from_numpy(means.vectors))
            else:
                encoder.embeddings.load(tensor(means.vectors @ slope))
        if ngrams is not None:
            encoder.table.weight.copy_(ngrams.spread(ngrams.idf[:, None] * weights.pop()))
            encoder.squares.weight.copy_(ngrams.spread(ngrams.idf[:, None] ** 2))
        model.logits.weight.copy_(layer)
        model.logits.bias.copy_(tensor(bias))
