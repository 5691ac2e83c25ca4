"""Untuned sentence similarity on pair tasks: teacher, encoders and KD (Wu et al. 2020, table 5).

The pipeline scores what was not tuned on labels: the rows of `similarity`.  This adds KD, a BiLSTM
trained on the teacher's own [CLS] cosine of the training pairs, as in section 4.5; a tenth of the
pairs is held out to select its learning rate and epoch.

    python benchmarks/similarity.py --row qqp --row stsb

Run it in a workspace where `dvc repro` has finished the rows.  It writes results/NAME.json.
"""

from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import typer
from harness import RESULTS, Name, Out, facts, say, table, write_results

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.kinds import score
from pipeline_lib.base.layout import Layout, state_folder
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder
from pipeline_lib.models.students.vocabulary import load_vocabulary
from pipeline_lib.params import Params, load_params, student_settings
from pipeline_lib.results.schema import SimilarityScores
from pipeline_lib.retrieval.embedders import Encode, model_encoder
from pipeline_lib.retrieval.evaluation.similarity import TRAIN, LabelledPairs, labelled_splits, scores_of
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.text.fast_tokenizer import WordNumbers
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.initialisation import Start
from pipeline_lib.training.loop import Settings, fit

VALUES = {"architecture": "bilstm", "hidden": 150, "classifier": 200, "embeddings": "trained"}
STUDENT = student_settings(VALUES | {"dropout": 0.2, "max_words": 64})
RATES = (1.0e-3, 3.0e-3)
"""Learning rates of KD; the first seed chooses."""


def main(
    row: Annotated[list[str], typer.Option(help="Rows of `similarity` in params.yaml.")],
    seed: Annotated[list[int] | None, typer.Option(help="Seeds of KD; by default 1 and 2.")] = None,
    epochs: Annotated[int, typer.Option(help="Epochs of KD.")] = 5,
    name: Name = "similarity",
    out: Out = RESULTS,
) -> None:
    """Add KD to what the pipeline has scored."""
    params, start = load_params(), facts(("torch", "transformers"), 1, 1)
    with single_thread():
        rows = {one: _row(params, one, seed or [1, 2], epochs) for one in row}
    results = {"facts": start, "seeds": seed or [1, 2], "epochs": epochs, "rows": rows}
    write_results(name, results, _lines(results), out)


def _row(params: Params, name: str, seeds: list[int], epochs: int) -> dict[str, Any]:
    row, layout = params.similarity_row(name), Layout()
    scores = SimilarityScores.read(layout.similarity(name))
    task, splits = params.task(row.task), labelled_splits(layout, row.task)
    length = params.sentence_vectors.max_length
    cosines = splits[TRAIN].cosines(model_encoder(params, layout, row.model, "cls", length))
    rate, systems = None, {}
    for seed in seeds:
        tried = [
            _distilled(layout, row.task, splits[TRAIN], cosines, seed, tried_rate, epochs)
            for tried_rate in ([rate] if rate else RATES)
        ]
        _, rate, encode = max(tried, key=lambda trial: trial[0])
        values = scores_of(encode, task, splits)
        systems[f"KD, seed {seed}"] = {metric: round(value, 6) for metric, value in values.items()}
        say(f"{name} KD, seed {seed}: {systems[f'KD, seed {seed}']}")
    return scores.model_dump() | {"systems": scores.systems | systems, "rate": rate}


class _Scaled(torch.nn.Module):
    """An encoder whose cosines are mapped to standard units, which keeps their order."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.scale, self.shift = (torch.nn.Parameter(torch.tensor(v)) for v in (1.0, 0.0))

    def forward(self, batch: Any) -> torch.Tensor:
        one = self.encoder(batch["ids"], batch["lengths"])
        other = self.encoder(batch["ids_2"], batch["lengths_2"])
        return self.scale * F.cosine_similarity(one, other, dim=-1) + self.shift


def _distilled(
    layout: Layout, task: str, pairs: LabelledPairs, cosines: np.ndarray, seed: int, rate: float, epochs: int
) -> tuple[float, float, Encode]:
    """Train a BiLSTM on the teacher's cosines; return its best held-out score, rate and encoder."""
    tokenizer, vectors = load_vocabulary(layout.vocabulary(task))
    words = WordNumbers(tokenizer)
    sides = [words.number(texts, STUDENT.max_words) for texts in (pairs.first, pairs.second)]
    held_back = np.arange(len(cosines)) % 10 == 0
    standard = (cosines - cosines.mean()) / cosines.std()
    train, dev = (_select(sides, standard, rows) for rows in (~held_back, held_back))

    def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        return F.mse_loss(model(batch).float(), batch["wanted"])

    def evaluate(model: torch.nn.Module) -> float:
        batches = LengthSorted(dev, 256, 0).epoch(0)
        outputs = [(model(dev.batch(rows)).numpy(), dev.targets["wanted"][rows]) for rows in batches]
        predicted, target = (np.concatenate(values) for values in zip(*outputs, strict=True))
        return score("pearson", target, predicted[:, None])

    settings = Settings(
        optimiser="adam", learning_rate=rate, schedule="linear", warmup=0.0, batch_size=64,
        epochs=epochs, max_steps=None, evaluate_every=None, clip_norm=1.0, weight_decay=0.0,
        precision="float32", seed=seed,
    )  # fmt: skip
    checkpoint = state_folder() / "checkpoints" / f"similarity-{task}-{seed}-{rate}.safetensors"
    torch.manual_seed(seed)
    model = _Scaled(Start(tokenizer, *vectors.shape, vectors).encoder(STUDENT))
    best = fit(model, LengthSorted(train, 64, seed), loss, evaluate, settings, checkpoint)
    checkpoint.unlink()
    encoder = SentenceEncoder(model.encoder, tokenizer, STUDENT.max_words, torch.device("cpu"))
    return best.best_merit, rate, encoder.encode


def _select(sides: list[Sentences], cosines: np.ndarray, rows: np.ndarray) -> Sentences:
    second = None
    for side in reversed(sides):
        tokens = np.repeat(rows, np.diff(side.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(side.offsets)[rows])])
        targets = {"wanted": cosines[rows].astype(np.float32)}
        second = Sentences(side.ids[tokens], offsets, targets, side.pad_id, second=second)
    return second


def _lines(results: dict[str, Any]) -> list[str]:
    measured = results["rows"]
    columns = [(name, metric) for name, row in measured.items() for metric in row["metrics"]]
    systems = dict.fromkeys(system for row in measured.values() for system in row["systems"])
    rows = [[system, *(_cell(measured[n]["systems"], system, m) for n, m in columns)] for system in systems]
    counts = "; ".join(
        f"{name}: {', '.join(f'{rows:,} {split}' for split, rows in row['rows'].items())}; KD's rate {row['rate']:g}"
        for name, row in measured.items()
    )
    return [
        "# Untuned sentence similarity (Wu et al. 2020, table 5)",
        "",
        "The cosine of the two sentences' vectors, in percent on held-out pairs; a class is decided by a threshold "
        f"that is chosen on train. KD: a BiLSTM trained to the teacher's [CLS] cosines. {counts}.",
        "",
        *table(["system", *(f"{name}, {metric}" for name, metric in columns)], rows),
    ]


def _cell(systems: dict[str, dict[str, float]], system: str, metric: str) -> str:
    # Rows may name other encoders.
    return f"{100 * systems[system][metric]:.1f}" if system in systems else "–"


if __name__ == "__main__":
    typer.run(main)
