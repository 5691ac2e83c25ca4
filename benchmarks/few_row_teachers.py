"""Teachers of few rows: what each setting of their tuning is worth.

Each seed draws its own rows, a fifth of which are dev, as ``distill init`` splits few rows; the
test rows are the same for all.  The settings are changed one by one.  Each training is scored
twice: with the epoch that is best on dev, and with the last.

    distill profile use benchmarks/few_row_teachers.yaml distill run fetch_models fetch_data python
    benchmarks/few_row_teachers.py

A training is kept in ``data/few_row_teachers`` and is not run again.  It writes results/few_row_teachers.json.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from harness import RESULTS, Name, Out, facts, say, table, write_results
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split

from pipeline_lib.base.devices import single_thread
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.kinds import score
from pipeline_lib.base.layout import Layout
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.corpora.tasks.preparation import split_tables
from pipeline_lib.models.networks.attention import use_training_attention
from pipeline_lib.models.networks.layers import inside, model_inputs, replace_dropout
from pipeline_lib.models.teacher import Teacher, load_classifier
from pipeline_lib.params import Task, load_params
from pipeline_lib.shards.training_records import Settings
from pipeline_lib.training.dev_scores import scale_of
from pipeline_lib.training.loop import Batch, fit
from pipeline_lib.training.teachers.finetuning import Data, TaskTeacher, output_layer

TEST_ROWS = 400
DEV_SHARE = 0.2
MAX_LENGTH, TOKENS = 128, 4096
SEEDS = (1, 2, 3)
SIX = ("products", "editorials", "movies")
"""The sets of which ``six`` is made: a class is a set and a label, such as `movies positive`."""


class Tuning(NamedTuple):
    """How a teacher is tuned; the defaults are what ``distill init`` wrote for up to 800 rows.

    :ivar head: how the output layer starts: random, or regression (fitted on the vectors that it
        reads).  :ivar pool: cls (with the model's own pooler) or mean (over the tokens).
    :ivar rows: train, or all: dev's rows too.  :ivar tuned: whether the encoder is.
    """

    batch_size: int = 64
    epochs: int = 10
    rate: float = 2e-4
    head: str = "random"
    pool: str = "cls"
    rows: str = "train"
    tuned: bool = True

    def __str__(self) -> str:
        if not self.tuned:
            return f"head only, on {self.pool}"
        marks = [f"{self.batch_size} × {self.epochs}"]
        marks += [f"{self.rate:g}"] * (self.rate != 2e-4)
        marks += [f"{self.head} start"] * (self.head != "random")
        marks += [f"{self.pool} of the tokens"] * (self.pool != "cls")
        return ", ".join(marks + ["train and dev"] * (self.rows == "all"))


WRITTEN, SMALL, HEAD = Tuning(), Tuning(16), Tuning(tuned=False)
REGRESSION = SMALL._replace(head="regression")
FEW = (WRITTEN, SMALL, SMALL._replace(rows="all"), SMALL._replace(pool="mean"))
LEVERS = (REGRESSION, HEAD, HEAD._replace(pool="mean"))
LEVERS += (Tuning(16, 20), Tuning(8), Tuning(16, 10, 1e-4), Tuning(32))
SOME = (WRITTEN, Tuning(16, 7))
PLAN: dict[str, list[tuple[int, Sequence[int], Sequence[Tuning]]]] = {
    "products": [(100, SEEDS, FEW), (100, (1,), LEVERS), (300, SEEDS, SOME)],
    "six": [(100, SEEDS, FEW), (100, (1,), LEVERS), (300, SEEDS, SOME)],
}
"""By set: rows, seeds and tunings, the most telling first."""


@dataclass(frozen=True)
class Pool:
    """A task's rows: those that each seed draws from, and the test rows of all seeds."""

    task: Task
    names: list[str]
    rows: Data
    test: Data

    @classmethod
    def of(cls, name: str) -> "Pool":
        """Read a task, or make ``six`` of its three."""
        if name == "six":
            return _six()
        task = load_params().task(name)
        examples, _ = read_examples(Layout().raw_task(name), task)
        tables = split_tables(examples, task)
        splits = [Data.of(tables[split]) for split in ("train", "dev", "test")]
        return cls(task, task.label_names, _joined(splits[:2]), _part(splits[2], TEST_ROWS, 0)[0])

    def draw(self, rows: int, seed: int) -> tuple[Data, Data]:
        """Return train and dev of ``rows`` rows, drawn by label."""
        drawn, _ = _part(self.rows, rows, seed)
        dev, train = _part(drawn, round(DEV_SHARE * rows), seed)
        return train, dev


def _six() -> Pool:
    pools = {name: Pool.of(name) for name in SIX}
    names = [f"{name} {label}" for name, pool in pools.items() for label in pool.names]

    def joined(sets: list[Data]) -> Data:
        moved = [Data(data.texts, data.labels + 2 * n) for n, data in enumerate(sets)]
        return _joined(moved)

    rows = joined([pool.rows for pool in pools.values()])
    test, _ = _part(joined([pool.test for pool in pools.values()]), TEST_ROWS, 0)
    return Pool(pools[SIX[0]].task, names, rows, test)


def _joined(parts: list[Data]) -> Data:
    texts = [text for part in parts for text in part.texts]
    return Data(texts, np.concatenate([part.labels for part in parts]))


def _part(data: Data, rows: int, seed: int) -> tuple[Data, Data]:
    """Return that many rows, drawn by label, and the others."""
    numbers = np.arange(len(data.texts))
    labels = None if data.labels.dtype.kind == "f" else data.labels
    if rows >= len(numbers):
        return data, Data([], data.labels[:0])
    parts = train_test_split(numbers, train_size=rows, random_state=seed, stratify=labels)
    return tuple(Data([data.texts[n] for n in part], data.labels[part]) for part in parts)


class MeanTeacher(Teacher):
    """A teacher whose output layer reads the mean of the tokens' states."""

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the outputs of a batch."""
        states = self.model.base_model(**model_inputs(batch)).last_hidden_state
        counted = inside(batch["ids"], batch["lengths"])[..., None]
        mean = (states * counted).sum(1) / counted.sum(1)
        return self.model.classifier(self.model.dropout(mean))


def vectors(teacher: Teacher, data: Data) -> np.ndarray:
    """Return what the output layer reads of each text, float32, (texts, width)."""
    read: list[torch.Tensor] = []
    layer = output_layer(teacher.model)
    hook = layer.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    teacher.model.eval()
    for text in data.texts:
        teacher.predict([text], MAX_LENGTH, TOKENS)
    hook.remove()
    return torch.cat(read).numpy()


def start_head(teacher: Teacher, data: Data, targets: np.ndarray) -> None:
    """Set the output layer to a regression of the labels on the vectors that it reads."""
    read = vectors(teacher, data)
    mean, deviation = read.mean(0), read.std(0) + 1e-6
    model = Ridge(len(read) / 10) if targets.dtype.kind == "f" else LogisticRegression(C=0.1, max_iter=500)
    model.fit((read - mean) / deviation, targets)
    weights = np.atleast_2d(model.coef_) / deviation
    bias = np.atleast_1d(model.intercept_) - weights @ mean
    if len(weights) == 1 and targets.dtype.kind != "f":
        weights, bias = np.vstack([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    layer = output_layer(teacher.model)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights))
        layer.bias.copy_(torch.from_numpy(bias))


def train(pool: Pool, tuning: Tuning, rows: int, seed: int) -> dict[str, float]:
    """Return dev's and test's score of the epoch that is best on dev, and of the last."""
    train_rows, dev = pool.draw(rows, seed)
    if tuning.rows == "all":
        train_rows = _joined([train_rows, dev])
    torch.manual_seed(seed)
    model, tokenizer = load_classifier(Layout().model("minilm"), pool.names)
    model.get_input_embeddings().requires_grad_(False)
    replace_dropout(model)
    use_training_attention(model)
    kind = MeanTeacher if tuning.pool == "mean" else Teacher
    teacher = kind(model, tokenizer, torch.device("cpu"), "float32", digest="")
    scale = scale_of(train_rows.labels)
    task_teacher = TaskTeacher(pool.task, train_rows, dev, scale, teacher, MAX_LENGTH)

    def scored(data: Data) -> float:
        outputs = teacher.predict(data.texts, MAX_LENGTH, TOKENS)
        return score(pool.task.metrics[0], data.labels, outputs)

    if tuning.head == "regression" or not tuning.tuned:
        start_head(teacher, train_rows, task_teacher.sentences().targets["labels"])
    if not tuning.tuned:
        return {"dev": scored(dev), "test": scored(pool.test)}
    return _fitted(task_teacher, tuning, seed, scored, pool.test)


def _fitted(task_teacher: TaskTeacher, tuning: Tuning, seed: int, scored: Any, test: Data) -> dict[str, float]:
    model, last = task_teacher.teacher.model, {}
    dev_scores: list[float] = []

    def evaluate(_: torch.nn.Module) -> float:
        dev_scores.append(task_teacher.dev_score("metric").score)
        last.update({name: value.clone() for name, value in model.state_dict().items()})
        return dev_scores[-1]

    with tempfile.TemporaryDirectory() as folder:
        progress = fit(
            model,
            task_teacher.batches(tuning.batch_size, seed),
            lambda _, batch: task_teacher.loss(batch),
            evaluate,
            _settings(tuning, seed),
            Path(folder, "checkpoint.safetensors"),
        )
    best = at_last = scored(test)
    if progress.best_step < progress.step:
        model.load_state_dict(last)
        at_last = scored(test)
    scores = {"dev": progress.best_merit, "test": best, "dev_last": dev_scores[-1]}
    return scores | {"test_last": at_last, "best_step": progress.best_step}


def _settings(tuning: Tuning, seed: int) -> Settings:
    base = next(iter(load_params().teachers.values())).tuning
    own = base.model_copy(update={"batch_size": tuning.batch_size, "epochs": tuning.epochs})
    return Settings.of(own, tuning.rate, "float32", seed)


def main(
    sets: Annotated[list[str] | None, typer.Option("--set", help="By default all.")] = None,
    work: Annotated[Path, typer.Option(help="Where the trainings' scores are kept.")] = Path("data/few_row_teachers"),
    train_missing: Annotated[bool, typer.Option(help="Or write what there is.")] = True,
    name: Name = "few_row_teachers",
    out: Out = RESULTS,
) -> None:
    """Train the teachers that are missing, and write the table of all."""
    start = facts(("torch", "transformers", "scikit-learn", "numpy"), 1, 1)
    pool, runs = cache(Pool.of), []
    planned = [(task, *block) for task in sets or PLAN for block in PLAN[task]]
    with single_thread():
        for task, size, seeds, tunings in planned:
            for seed, tuning in product(seeds, tunings):
                path = work / task / f"{size}-{seed}-{'-'.join(map(str, tuning))}.json"
                if not path.exists() and not train_missing:
                    continue
                if not path.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_json(path, train(pool(task), tuning, size, seed))
                    say(f"{task} {size} {seed} {tuning}: {read_json(path)}")
                key = {"set": task, "rows": size, "seed": seed, "tuning": str(tuning)}
                runs.append(key | read_json(path))
    write_results(name, {"facts": start, "runs": runs}, _lines(runs), out)


def _lines(runs: list[dict[str, Any]]) -> list[str]:
    groups: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for run in runs:
        group = groups.setdefault((run["set"], run["rows"]), {})
        group.setdefault(run["tuning"], []).append(run)
    tuned = [run for run in runs if "test_last" in run and "and dev" not in run["tuning"]]
    gains = [run["test_last"] - run["test"] for run in tuned]
    header = ["tuning", "seeds", "test, best on dev", "test, last epoch", f"{SMALL}, same seeds"]
    lines = [
        "# Teachers of few rows",
        "",
        "Batch size × epochs, and what else differs from what `distill init` wrote before, which is 64 × 10 at a rate "
        f"of 2e-4. Mean test score in percent and its standard deviation over the seeds; {TEST_ROWS} test rows; a "
        "fifth of the rows is dev. The choice on dev is of the epoch; rows that are trained on dev too have none. The "
        f"last column has the scores of {SMALL} with these seeds, best on dev and last.",
    ]
    for (name, rows), tunings in groups.items():
        cells = []
        for tuning, some in tunings.items():
            seeds = {run["seed"] for run in some}
            same = [run for run in tunings.get(str(SMALL), []) if run["seed"] in seeds]
            scores = [_mean(some, "test"), _mean(some, "test_last")]
            both = f"{_mean(same, 'test')}; {_mean(same, 'test_last')}" if same else "–"
            cells.append([tuning, str(len(some)), *scores, both])
        lines += ["", f"## {name}, {rows:,} rows", "", *table(header, cells)]
    return [
        *lines,
        "",
        f"The last epoch against the one that is best on dev, over all {len(gains)} trainings: "
        f"{100 * np.mean(gains):+.1f} ± {100 * np.std(gains, ddof=1) / len(gains) ** 0.5:.1f} points (mean and its "
        f"standard error), higher in {sum(gain > 0 for gain in gains)} and lower in {sum(gain < 0 for gain in gains)}.",
    ]


def _mean(runs: list[dict[str, Any]], key: str) -> str:
    chosen_on_dev = key == "test" and any("train and dev" in run["tuning"] for run in runs)
    if chosen_on_dev or any(key not in run for run in runs):
        return "–"
    scores = [100 * run[key] for run in runs]
    return f"{np.mean(scores):.1f}" + (f" ± {np.std(scores, ddof=1):.1f}" if scores[1:] else "")


if __name__ == "__main__":
    typer.run(main)
