"""Training students from plans: a task's rows made into training runs, one per row and seed.

The learning rate of a row is searched for with the first seed; the other seeds take the one that
was best on dev.  So a row and its baseline can both be given a list of rates at little cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from pipeline_lib.base.devices import resolve_student_precision
from pipeline_lib.base.files import clear_folder, read_json, sha256_folder, sha256_json, write_json
from pipeline_lib.base.processor import computed_on
from pipeline_lib.distillation.data import dev_sentences, training_sentences
from pipeline_lib.distillation.plans import Plan
from pipeline_lib.engine.local import Tell
from pipeline_lib.networks.student import Form, StudentNetwork
from pipeline_lib.storage.fingerprint import training_code
from pipeline_lib.storage.shards import ShardSet, read_manifest
from pipeline_lib.students.sentence_encoder import encoder_weights, encoder_words
from pipeline_lib.students.student import build_student, predict_sentences, save_student
from pipeline_lib.students.vocabulary import load_vocabulary
from pipeline_lib.tasks.metrics import best_threshold, score
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.label_scale import LabelScale, scale_of
from pipeline_lib.training.loop import Batch, Report, fit
from pipeline_lib.training.objectives import objective_loss
from pipeline_lib.training.runs import Trained, train_distinct
from pipeline_lib.training.search import settings_of

Name = tuple[str, int, float]
"""A training's method, seed and learning rate."""
Record = dict[str, Any]


@dataclass(frozen=True)
class TrainingJob:
    """One student to train at one learning rate: everything that determines it."""

    plan: Plan
    vocabulary: Path
    dev: Path
    seed: int
    rate: float
    device: str

    @property
    def name(self) -> Name:
        """What tells it from the task's other trainings."""
        return self.plan.method, self.seed, self.rate

    @property
    def key(self) -> str:
        """SHA-256 over the plan, the vocabulary, the dev set, rate and seed, and the code.

        Names of task and row, folders, and the other rates tried do not count.
        """
        plan, place = self.plan, {"folder", "iterations"}
        names = {"task": True, "method": True, "inputs": place, "outputs": place}
        names |= {"encoder": {"folder"}, "optimiser": {"learning_rates"}}
        settings = plan.model_dump(exclude=names)
        if plan.encoder is not None:
            settings["start"] = "encoder"
        dev = ShardSet.open(self.dev).manifest.digest
        words = None if plan.encoder else sha256_folder(self.vocabulary)
        own = self.seed, self.rate, self.device.split(":")[0], self.precision
        return sha256_json([settings, words, dev, own, training_code(__name__)])

    @property
    def trained(self) -> Trained:
        """Where the finished student is kept."""
        return Trained("students", self.key)

    @property
    def planned_rows(self) -> int:
        """About how many rows the training reads."""
        return self.planned_steps * self.plan.optimiser.batch_size

    @property
    def planned_steps(self) -> int:
        """About how many steps it takes; duplicates in its transfer set make it fewer."""
        inputs = self.plan.inputs
        rows = read_manifest(Path(inputs.folder)).upto(inputs.iterations).rows
        return self.plan.optimiser.steps(rows)

    @property
    def precision(self) -> str:
        """The number format of the matrix products in training."""
        return resolve_student_precision(
            self.plan.optimiser.precision,
            torch.device(self.device),
            self.plan.student.architecture,
        )


Hear = Callable[[TrainingJob, tuple[int, int, float, float]], None]
"""Called with a training and (step, steps, loss, best dev score)."""


@dataclass(frozen=True)
class Row:
    """One method of a task: a training per rate with the first seed, and one per further seed."""

    plan: Plan
    vocabulary: Path
    dev: Path
    seeds: Sequence[int]
    device: str

    @property
    def planned_steps(self) -> int:
        """About how many steps all its trainings take."""
        rates = self.plan.optimiser.learning_rates
        return self._job(self.seeds[0], rates[0]).planned_steps * (len(rates) + len(self.seeds) - 1)

    def search(self) -> list[TrainingJob]:
        """Return the trainings that need no other's result; of one rate, those are all."""
        rates = self.plan.optimiser.learning_rates
        if len(rates) == 1:
            return self.students(rates[0])
        return [self._job(self.seeds[0], rate) for rate in rates]

    def students(self, rate: float) -> list[TrainingJob]:
        """Return the trainings of every seed at one rate."""
        return [self._job(seed, rate) for seed in self.seeds]

    def _job(self, seed: int, rate: float) -> TrainingJob:
        return TrainingJob(self.plan, self.vocabulary, self.dev, seed, rate, self.device)


def train_rows(
    rows: Sequence[Row],
    target: Path,
    workers: int,
    hear: Hear,
    done: Callable[[TrainingJob], None],
) -> dict[str, list[Record]]:
    """Train the rows' students into ``target/<method>/<seed>``; return their records by method.

    Beside a method's students stands ``search.json``: the rate that was taken, and every rate's
    score on dev.

    :param workers: processes; their number changes no byte.
    :param done: is told a training once its student is there, trained or found.
    """
    clear_folder(target)
    records = _train([job for row in rows for job in row.search()], workers, hear, done)
    students: dict[str, list[TrainingJob]] = {}
    for row in rows:
        search = _search(row, records)
        students[row.plan.method] = row.students(search["learning_rate"])
        write_json(target / row.plan.method / "search.json", search)
    rest = [job for jobs in students.values() for job in jobs if job.name not in records]
    records |= _train(rest, workers, hear, done)
    for method, jobs in students.items():
        for job in jobs:
            job.trained.place(target / method / str(job.seed))
    return {method: [records[job.name] for job in jobs] for method, jobs in students.items()}


def _train(
    jobs: Sequence[TrainingJob], workers: int, hear: Hear, done: Callable[[TrainingJob], None]
) -> dict[Name, Record]:
    on_cpu = all(job.device == "cpu" for job in jobs)

    def pass_on(number: int, message: tuple[int, int, float, float]) -> None:
        hear(jobs[number], message)

    records = {}
    for number, record in train_distinct(train_or_find, jobs, workers, on_cpu, pass_on):
        records[jobs[number].name] = record
        done(jobs[number])
    return records


def _search(row: Row, records: dict[Name, Record]) -> dict[str, Any]:
    """Choose the row's learning rate: the best on dev with the first seed, of equals the first."""
    tried = {rate: row.students(rate)[0].name for rate in row.plan.optimiser.learning_rates}
    scores = {rate: records[name]["best_dev"] for rate, name in tried.items()}
    return {
        "seed": row.seeds[0],
        "learning_rate": max(scores, key=scores.__getitem__),
        "best_dev_by_rate": {f"{rate:g}": score for rate, score in scores.items()},
    }


def train_or_find(job: TrainingJob, tell: Tell) -> dict[str, Any]:
    """Return a finished student's record; train it if it is missing or damaged."""
    trained = job.trained
    if not trained.is_whole():
        tokenizer, vectors = load_words(job)
        outputs = job.plan.outputs.open() if job.plan.outputs else None
        limit = job.plan.student.max_words
        train = training_sentences(
            *(job.plan.inputs.open(), outputs, tokenizer, limit),
            *(job.plan.repeat_originals, job.plan.min_confidence),
        )
        dev = dev_sentences(ShardSet.open(job.dev), tokenizer, limit)

        def report(step: int, total: int, loss: float, best: float) -> None:
            tell((step, total, loss, best))

        model, record = train_student(job, train, dev, vectors, trained.checkpoint, report)
        with trained.writing() as folder:
            save_student(folder, model, tokenizer)
            write_json(folder / "training.json", record | {"computed_on": computed_on(job.device)})
        trained.checkpoint.unlink(missing_ok=True)
    return read_json(trained.folder / "training.json")


def load_words(job: TrainingJob) -> tuple[Tokenizer, np.ndarray]:
    """Return the tokenizer and the word vectors that the student starts with."""
    if job.plan.encoder is not None:
        return encoder_words(job.plan.encoder.open())
    return load_vocabulary(job.vocabulary)


def train_student(
    job: TrainingJob,
    train: Sentences,
    dev: Sentences,
    vectors: np.ndarray,
    checkpoint: Path,
    report: Report,
) -> tuple[StudentNetwork, dict[str, Any]]:
    """Train one student and return it with the record of its training.

    :param vectors: the vocabulary's embedding table, float32 (words, width).
    :param checkpoint: where to go on from after a kill.
    """
    plan, device = job.plan, torch.device(job.device)
    scale = scale_of(train.targets["labels"])
    batches = LengthSorted(_standardised(train, scale), plan.optimiser.batch_size, job.seed)
    torch.manual_seed(job.seed)
    model = _untrained(plan, vectors).to(device)

    def loss(model: StudentNetwork, batch: Batch) -> torch.Tensor:
        logits = model.outputs(batch)
        return objective_loss(plan.objective, logits, batch.get("logits"), batch.get("labels"))

    def evaluate(model: StudentNetwork) -> float:
        outputs = predict_sentences(model, dev, device)
        return score(plan.metric, dev.targets["labels"], outputs, plan.positive)

    settings = settings_of(plan.optimiser, job.rate, job.precision, job.seed)
    found = fit(model, batches, loss, evaluate, settings, checkpoint, report)
    if scale is not None:
        scale.rescale(model.logits)
    shift = 0.0
    if plan.threshold == "dev":
        shift = best_shift(predict_sentences(model, dev, device), dev, plan)
        with torch.no_grad():
            model.logits.bias[1] -= shift
    return model, {
        "rows": len(train),
        "threshold_shift": shift,
        "label_scale": None if scale is None else asdict(scale),
        "best_dev": found.best_score,
        "best_step": found.best_step,
        "steps": found.step,
        "selection": "evaluation that is best on dev",
        "settings": asdict(settings) | {"batch_size": plan.optimiser.batch_size},
        "history": found.history,
    }


def best_shift(outputs: np.ndarray, dev: Sentences, plan: Plan) -> float:
    """Return what to take off the second class' logit for the plan's metric to be best on dev.

    :param outputs: a student's logits on dev, float32 (rows, 2).
    """
    margins = (outputs[:, 1] - outputs[:, 0]).astype(np.float64)
    return best_threshold(margins, dev.targets["labels"], plan.metric, plan.positive)


def _untrained(plan: Plan, vectors: np.ndarray) -> StudentNetwork:
    form = Form(*vectors.shape, plan.student.model_dump(), plan.pair, plan.labels)
    model = build_student(form, vectors if plan.start == "vectors" else None)
    if plan.encoder is not None:
        model.encoder.load_state_dict(encoder_weights(plan.encoder.open()))
    return model


def _standardised(sentences: Sentences, scale: LabelScale | None) -> Sentences:
    """Return the sentences with targets in standard units; classes and their logits as they are."""
    if scale is None:
        return sentences
    targets = {name: scale.standardise(values) for name, values in sentences.targets.items()}
    return replace(sentences, targets=targets)
