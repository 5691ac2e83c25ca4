"""Measure whether texts that `label-next` picks teach a student more than random ones.

Of the bundled movie snippets, 200 are labelled, 200 are dev, 2,000 test, and 2,000 have no label. Students are
trained on labels alone; then a hundred texts get their labels, once those that `distill shards worklist --kind
label-next` picks, once random ones, and students are trained anew. All of it is drawn again for each repeat.  The
teacher is the labels themselves, in a file: no student of these learns from it, so that none has to be tuned.

    python benchmarks/label_next.py --repeats 3

The students are means of word vectors, three seeds; the one that is best on dev picks.  A repeat
takes about three minutes on two idle cores.
"""

import csv
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from harness import RESULTS, Name, Out, Repeats, facts, table, write_results
from ruamel.yaml import YAML

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import shipped
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.params import load_params
from pipeline_lib.results.schema import TaskScores

TASK, STUDENTS = "snippets", ("static",)
SIZES = {"train": 200, "dev": 200, "test": 2000, "pool": 2000}
ARMS = ("start", "random", "label-next")
Rows = list[tuple[str, str]]
"""A text and its label."""


def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows that are labelled.")] = 100,
    repeats: Repeats = 3,
    out: Out = RESULTS,
    name: Name = "label_next",
) -> None:
    """Train before and after labels are added; write both scores."""
    described = facts(("torch", "numpy"), cores=1, threads=1)
    snippets, scores = read_snippets(), []
    for repeat in range(1, repeats + 1):
        with tempfile.TemporaryDirectory() as folder:
            scores.append(measure(Path(folder), snippets, rows, repeat))
        results = {"facts": described, "rows": rows, "scores": scores}
        write_results(name, results, page(scores, rows), out)


def read_snippets() -> Rows:
    """Return the bundled task's snippets, each once, without the neutral ones."""
    task = load_params(shipped("profiles") / "default.yaml").task("movies")
    with tempfile.TemporaryDirectory() as folder:
        fetch_data("movies", task.source, Path(folder), Path(folder) / "raw")
        examples, _ = read_examples(Path(folder) / "raw", task)
    return [*{example.texts[0]: task.label_names[example.label] for example in examples["all"]}.items()]


def measure(folder: Path, snippets: Rows, rows: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the accuracy on test of each student in each arm, in percent.

    :param seed: of the draw of all splits, and of the random rows.
    """
    start = folder / "start"
    pool = describe(start, snippets, seed)
    run(start)
    scores = {"start": accuracy(start)}
    for arm in ARMS[1:]:
        workspace = folder / arm
        shutil.copytree(start, workspace, symlinks=True)
        picked = random.Random(seed).sample(pool, rows) if arm == "random" else asked(workspace, pool, rows)
        write(workspace / "labelled.csv", picked)
        distill(workspace, "init", "--add-labels", "labelled.csv")
        run(workspace)
        scores[arm] = accuracy(workspace)
    return scores


def describe(folder: Path, snippets: Rows, seed: int) -> Rows:
    """Make a workspace of a draw of the snippets; return the rows without a label."""
    folder.mkdir()
    drawn = random.Random(seed).sample(snippets, sum(SIZES.values()))
    parts: dict[str, Rows] = {}
    for split, size in SIZES.items():
        parts[split], drawn = drawn[:size], drawn[size:]
        write(folder / f"{split}.csv", parts[split])
    write(folder / "answers.csv", [row for part in parts.values() for row in part])
    write(folder / "pool.csv", [(text, "") for text, _ in parts["pool"]])
    files = ("train.csv", "--dev", "dev.csv", "--test", "test.csv", "--unlabelled", "pool.csv")
    distill(folder, "init", *files, "--name", TASK, "--teacher", "answers.csv", "--no-scm")
    edit(folder / "params.yaml")
    return parts["pool"]


def edit(path: Path) -> None:
    """Leave the rows that are trained on labels alone, on the labelled texts alone."""
    yaml = YAML()
    params = yaml.load(path.read_text("utf-8"))
    params["methods"] = {name: params["methods"][name] for name in STUDENTS}
    params["transfer"] = {"original": params["transfer"]["original"]}
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(params, file)


def asked(folder: Path, pool: Rows, rows: int) -> Rows:
    """Return the rows that the student picks."""
    options = ("--kind", "label-next", "--rows", str(rows), "--to", "next.csv")
    distill(folder, "shards", "worklist", TASK, *options)
    labels = dict(pool)
    with (folder / "next.csv").open(newline="", encoding="utf-8") as file:
        # Of a text that a spreadsheet would compute, the mark is in the file.
        texts = [row["text"] for row in csv.DictReader(file)]
    return [(text, labels.get(text) or labels[text.removeprefix("'")]) for text in texts]


def accuracy(folder: Path) -> dict[str, float]:
    """Return each student's accuracy on test, the mean over seeds, in percent."""
    methods = TaskScores.read(Layout(folder / "data").scores(TASK)).methods
    return {name: 100 * methods[name].scores["test"]["accuracy"].mean for name in STUDENTS}


def write(path: Path, rows: Rows) -> None:
    """Write texts and labels as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


def distill(folder: Path, *arguments: str) -> None:
    """Run the command in a workspace."""
    call(folder, "pipeline_lib.cli", *arguments)


def run(folder: Path) -> None:
    """Run the pipeline up to the scores."""
    call(folder, "dvc", "repro", "--quiet", f"evaluate@{TASK}")


def call(folder: Path, module: str, *arguments: str) -> None:
    """Run a module in a workspace; what it prints is shown if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stdout)


def page(scores: Sequence[dict[str, Any]], rows: int) -> list[str]:
    """Return the results as Markdown."""

    def cell(arm: str, student: str) -> str:
        values = np.array([one[arm][student] for one in scores])
        return f"{values.mean():.1f} ({values.min():.1f}–{values.max():.1f})"

    def gain(student: str) -> str:
        differences = np.array([s["label-next"][student] - s["random"][student] for s in scores])
        return f"{differences.mean():+.1f} ({differences.min():+.1f} to {differences.max():+.1f})"

    header = ["student, on labels", *ARMS, "label-next − random"]
    lines = [[s, *(cell(arm, s) for arm in ARMS), gain(s)] for s in STUDENTS]
    return [
        f"# {rows} more labels: picked, or drawn at random",
        "",
        f"Accuracy on {SIZES['test']:,} movie snippets: the mean of {len(scores)} draws of all "
        f"splits with three seeds each (lowest to highest draw). `start`: {SIZES['train']} labels; "
        f"the others: {rows} more, of {SIZES['pool']:,} texts.",
        "",
        *table(header, lines),
    ]


if __name__ == "__main__":
    typer.run(main)
