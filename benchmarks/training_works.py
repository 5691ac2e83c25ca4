"""What training_rates.py trains: a student and a teacher, on pairs of texts."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import source_texts
from training_peers import Peer, student_peer, teacher_peer

from pipeline_lib.base.devices import resolve_training_precision
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.networks.attention import use_training_attention
from pipeline_lib.models.networks.layers import model_inputs, replace_dropout
from pipeline_lib.models.teacher import load_classifier
from pipeline_lib.params import Params
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.initialisation import start_of
from pipeline_lib.training.loop import Batch, Settings
from pipeline_lib.training.objectives import objective_loss

LABELS = ["no", "yes"]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Work:
    """One model and what it learns from; every contestant starts from a copy.

    :ivar loss: as :func:`~pipeline_lib.training.loop.fit` takes it.
    :ivar peer: the same for the Trainer.
    :ivar row_modules: whose matrices read a row once, not every token; see :func:`matrices`.
    :ivar steps: how many are timed in a turn.
    """

    name: str
    model: torch.nn.Module
    sentences: Sentences
    loss: Callable[[Any, Batch], torch.Tensor]
    peer: Peer
    settings: Settings
    row_modules: tuple[str, ...]
    steps: int


def some_pairs(task: str, path: Path | None, count: int) -> tuple[str, list[Pair]]:
    """Return a description of the pairs, and the first ``count`` of them."""
    source, texts = source_texts(task, "train", path)
    if len(texts) < 2:
        raise PotstillError(f"{source}: too few to make pairs of. Give another --task or --texts.")
    if not isinstance(texts[0], str):
        return f"{min(count, len(texts)):,} pairs: {source}", texts[:count]
    pairs = list(pairwise(texts))[:count]
    return f"{len(pairs):,} pairs, each of two that follow each other in {source}", pairs


def student_work(
    params: Params, folder: Path, pairs: Sequence[Pair], steps: int, seed: int, device: torch.device
) -> Work:
    """Return the bi-attentive student, as the first joint training that has one starts it."""
    row = next(
        (joint for joint in params.joint.values() if params.students[joint.student].architecture == "biattentive"), None
    )
    if row is None:
        raise PotstillError(
            "no row of `joint` has a student of architecture biattentive. Take another "
            "--params-file, such as benchmarks/mtl.yaml."
        )
    student, optimiser = params.students[row.student], params.optimisers[row.optimiser]
    start = start_of(folder, student, row.start)
    torch.manual_seed(seed)
    model = start.build(student, pair=True, labels=LABELS).to(device)
    targets = np.random.default_rng(seed).normal(size=(len(pairs), len(LABELS)))
    first, second = (start.tokenizer.number(s, student.max_words) for s in zip(*pairs, strict=True))
    sentences = replace(first, second=second, targets={"logits": targets.astype(np.float32)})

    def loss(model: Any, batch: Batch) -> torch.Tensor:
        return objective_loss({"logits": 1.0}, model.outputs(batch), batch)

    precision = resolve_training_precision("auto", device, student.recurrent)
    settings = replace(Settings.of(optimiser, optimiser.learning_rates[0], precision, seed), **_one_epoch())
    return Work(
        name="student",
        model=model,
        sentences=sentences,
        loss=loss,
        peer=student_peer(model, sentences, loss),
        settings=settings,
        row_modules=("encoder.shared.", "hidden.", "logits."),
        steps=steps,
    )


def teacher_work(
    params: Params, folder: Path, pairs: Sequence[Pair], steps: int, seed: int, device: torch.device
) -> Work:
    """Return the model with a new head, as `TeacherTraining` prepares it, its embeddings free."""
    teacher = next(iter(params.teachers.values()))
    torch.manual_seed(seed)
    usual, tokenizer = load_classifier(folder, LABELS)
    model = copy.deepcopy(usual.to(device))
    use_training_attention(model)
    replace_dropout(model)
    heads = [f"{name}." for name, m in model.named_children() if m is not model.base_model]
    labels = np.random.default_rng(seed).integers(0, len(LABELS), len(pairs))
    encoded = Pieces.of(tokenizer, usual.config).number(pairs, teacher.max_length)
    sentences = replace(encoded, targets={"labels": labels})

    def loss(model: Any, batch: Batch) -> torch.Tensor:
        outputs = {"logits": model(**model_inputs(batch)).logits.float()}
        return objective_loss({"labels": 1.0}, outputs, batch)

    settings = Settings(
        optimiser="adam",
        learning_rate=teacher.tuning.learning_rates[0],
        batch_size=teacher.tuning.batch_size,
        precision=resolve_training_precision("auto", device),
        seed=seed,
        weight_decay=0.0,
        **_one_epoch(),
    )
    return Work(
        name="teacher",
        model=model,
        sentences=sentences,
        loss=loss,
        peer=teacher_peer(usual, tokenizer, pairs, labels, teacher.max_length),
        settings=settings,
        row_modules=(f"{model.base_model_prefix}.pooler.", *heads),
        steps=steps,
    )


def _one_epoch() -> dict[str, Any]:
    """Return the settings of all training here, which are also the Trainer's defaults."""
    settings = {"schedule": "linear", "warmup": 0.0, "clip_norm": 1.0}
    return settings | {"epochs": 1, "max_steps": None, "evaluate_every": None}


def matrices(work: Work) -> int:
    """Count the parameters in matrices that multiply every token."""
    tables = {id(module.weight) for module in work.model.modules() if isinstance(module, torch.nn.Embedding)}
    return sum(
        parameter.numel()
        for name, parameter in work.model.named_parameters()
        if parameter.dim() == 2 and id(parameter) not in tables and not name.startswith(work.row_modules)
    )
