"""Untuned sentence similarity on pair tasks: teacher, KD and encoders (Wu et al. 2020, table 5).

The cosine of two sentence vectors answers, and no label is used but for the threshold of a class,
which is chosen on the training set.  Scores are on test where it is labelled, else on dev.  KD is a
BiLSTM trained to the teacher's own cosine of the pairs of the training set, as in section 4.5; of
these a tenth chooses its learning rate and epoch.

    python benchmarks/similarity.py --task qqp --task stsb --encoder data/encoders/sra

Run it where `dvc repro` has finished with the tasks and encoders.  It writes
results/NAME.json and .md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import typer
from harness import RESULTS, facts, say, table, write_results

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.layout import Layout
from pipeline_lib.evaluation.similarity import cosines, similarity_scores
from pipeline_lib.params import Params, load_params, student_settings
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.students.sentence_encoder import SentenceEncoder, load_encoder, start_encoder
from pipeline_lib.students.vocabulary import load_vocabulary
from pipeline_lib.tasks.metrics import label_array, score
from pipeline_lib.teachers.vectors import load_vector_model
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.batches import LengthSorted
from pipeline_lib.training.loop import Settings, fit

Encode = Callable[[list[str]], np.ndarray]
DATA = Path("data")
VALUES = {"architecture": "bilstm", "hidden": 150, "classifier": 200, "embeddings": "trained"}
STUDENT = student_settings(VALUES | {"dropout": 0.2, "max_words": 64})
RATES = (1.0e-3, 3.0e-3)
"""Learning rates of KD; the first seed chooses."""


def main(
    task: Annotated[list[str], typer.Option(help="Pair tasks of params.yaml.")],
    encoder: Annotated[list[Path], typer.Option(help="Folders of encoders.")],
    seed: Annotated[list[int] | None, typer.Option(help="Seeds of KD; else 1 and 2.")] = None,
    epochs: Annotated[int, typer.Option(help="Epochs of KD.")] = 5,
    name: Annotated[str, typer.Option(help="Name of the results.")] = "similarity",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
) -> None:
    """Measure how far each system's cosine tells what the tasks ask."""
    params, start = load_params(), facts(("torch", "transformers"), 1, 1)
    with single_thread():
        found = {one: _task(params, one, encoder, seed or [1, 2], epochs) for one in task}
    results = {"facts": start, "seeds": seed or [1, 2], "epochs": epochs, "tasks": found}
    write_results(name, results, _lines(results), out)


def _task(
    params: Params, name: str, encoders: list[Path], seeds: list[int], epochs: int
) -> dict[str, Any]:
    metrics, positive = params.task(name).metrics, params.task(name).positive_class
    test = _Pairs.labelled(name, "test")
    scored = "dev" if test is None else "test"
    splits = {"train": _Pairs.labelled(name, "train"), scored: test or _Pairs.labelled(name, "dev")}
    systems: dict[str, Encode] = {
        f"teacher, {pooling}": _teacher(params, pooling) for pooling in ("cls", "mean")
    }
    systems |= {path.name: load_encoder(path).encode for path in encoders}
    found = {}
    for system, encode in systems.items():
        values = {split: pairs.cosines(encode) for split, pairs in splits.items()}
        found[system] = _scores(metrics, splits, values, positive)
        if system == "teacher, cls":
            wanted = values["train"]
        say(f"{name} {system}: {found[system]}")
    rate = None
    for seed in seeds:
        tried = [
            _distilled(name, splits["train"], wanted, seed, one, epochs)
            for one in ([rate] if rate else RATES)
        ]
        _, rate, encode = max(tried, key=lambda one: one[0])
        values = {split: pairs.cosines(encode) for split, pairs in splits.items()}
        found[f"KD, seed {seed}"] = _scores(metrics, splits, values, positive)
        say(f"{name} KD, seed {seed}: {found[f'KD, seed {seed}']}")
    rows = {split: len(pairs.labels) for split, pairs in splits.items()}
    return {"metrics": metrics, "split": scored, "rows": rows, "rate": rate, "systems": found}


class _Pairs:
    """The pairs of one split and their labels."""

    def __init__(self, rows: Any) -> None:
        self.first, self.second = (rows[name].to_pylist() for name in ("text", "text_2"))
        self.labels = label_array(rows["label"])

    @classmethod
    def labelled(cls, task: str, split: str) -> "_Pairs | None":
        """Return the pairs of a split; None if there is no such split, or its labels are hidden."""
        folder = DATA / "tasks" / task / split
        rows = ShardSet.open(folder).table() if folder.exists() else None
        return None if rows is None or rows["label"].null_count else cls(rows)

    def cosines(self, encode: Encode) -> np.ndarray:
        return cosines(encode(self.first), encode(self.second))


def _scores(
    metrics: list[Any], splits: dict[str, _Pairs], values: dict[str, np.ndarray], positive: int
) -> dict[str, float]:
    given = [(values[split], pairs.labels) for split, pairs in splits.items()]
    return {m: round(s, 6) for m, s in similarity_scores(metrics, *given, positive).items()}


def _teacher(params: Params, pooling: str) -> Encode:
    own = params.sentence_vectors
    model = load_vector_model(Layout(DATA).model(own.model), "cpu", "float32", pooling)
    return lambda texts: model.predict(texts, own.max_length, 1024)


class _Scaled(torch.nn.Module):
    """An encoder whose cosines are mapped to standard units, which moves none past another."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.scale, self.shift = (torch.nn.Parameter(torch.tensor(v)) for v in (1.0, 0.0))

    def forward(self, batch: Any) -> torch.Tensor:
        one = self.encoder(batch["ids"], batch["lengths"])
        other = self.encoder(batch["ids_2"], batch["lengths_2"])
        return self.scale * F.cosine_similarity(one, other, dim=-1) + self.shift


def _distilled(
    task: str, pairs: _Pairs, wanted: np.ndarray, seed: int, rate: float, epochs: int
) -> tuple[float, float, Encode]:
    """Train a BiLSTM to the teacher's cosines; return its best score held back, rate, encoder."""
    tokenizer, vectors = load_vocabulary(DATA / "vocabularies" / task)
    words = WordNumbers(tokenizer)
    sides = [words.number(texts, STUDENT.max_words) for texts in (pairs.first, pairs.second)]
    held_back = np.arange(len(wanted)) % 10 == 0
    standard = (wanted - wanted.mean()) / wanted.std()
    train, dev = (_select(sides, standard, rows) for rows in (~held_back, held_back))

    def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        return F.mse_loss(model(batch).float(), batch["wanted"])

    def evaluate(model: torch.nn.Module) -> float:
        batches = LengthSorted(dev, 256, 0).epoch(0)
        found = [(model(dev.batch(rows)).numpy(), dev.targets["wanted"][rows]) for rows in batches]
        given, target = (np.concatenate(part) for part in zip(*found, strict=True))
        return score("pearson", target, given[:, None])

    settings = Settings(
        optimiser="adam", learning_rate=rate, schedule="linear", warmup=0.0, batch_size=64,
        epochs=epochs, max_steps=None, evaluate_every=None, clip_norm=1.0, weight_decay=0.0,
        precision="float32", seed=seed,
    )  # fmt: skip
    checkpoint = Path(".distillery/checkpoints") / f"similarity-{task}-{seed}-{rate}.safetensors"
    torch.manual_seed(seed)
    model = _Scaled(start_encoder(vectors, STUDENT))
    best = fit(model, LengthSorted(train, 64, seed), loss, evaluate, settings, checkpoint)
    checkpoint.unlink()
    encoder = SentenceEncoder(model.encoder, tokenizer, STUDENT.max_words, torch.device("cpu"))
    return best.best_score, rate, encoder.encode


def _select(sides: list[Sentences], wanted: np.ndarray, rows: np.ndarray) -> Sentences:
    second = None
    for side in reversed(sides):
        kept = np.repeat(rows, np.diff(side.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(side.offsets)[rows])])
        targets = {"wanted": wanted[rows].astype(np.float32)}
        second = Sentences(side.ids[kept], offsets, targets, side.pad_id, second=second)
    return second


def _lines(results: dict[str, Any]) -> list[str]:
    tasks = results["tasks"]
    columns = [(name, metric) for name, task in tasks.items() for metric in task["metrics"]]
    systems = next(iter(tasks.values()))["systems"]
    rows = [
        [system, *(f"{100 * tasks[n]['systems'][system][m]:.1f}" for n, m in columns)]
        for system in systems
    ]
    counts = "; ".join(
        f"{name}: {', '.join(f'{rows:,} {split}' for split, rows in task['rows'].items())}; "
        f"KD's rate {task['rate']:g}"
        for name, task in tasks.items()
    )
    return [
        "# Untuned sentence similarity (Wu et al. 2020, table 5)",
        "",
        "The cosine of the two sentences' vectors, in percent on held-out pairs; a class is "
        "decided by a threshold that is chosen on train. KD: a BiLSTM trained to the teacher's "
        f"[CLS] cosines. {counts}.",
        "",
        *table(["system", *(f"{name}, {metric}" for name, metric in columns)], rows),
    ]


if __name__ == "__main__":
    typer.run(main)
