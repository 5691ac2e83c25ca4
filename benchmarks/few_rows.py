"""What few labelled rows give: yardsticks, teachers and students on every kind of text.

    python benchmarks/few_rows.py peers WORK --sets trec,tweets --rows 100,300 --few DIR --sdist FILE --model DIR
    python benchmarks/few_rows.py run WORK --sets trec --rows 300 --few DIR --variant init --variant 'texts=texts:3000'
    python benchmarks/few_rows.py table WORK
    python benchmarks/few_rows.py refit WORK      # the yardsticks of finished runs, beside what is stored

``peers`` scores what people use today on drawn rows: regressions on TF-IDF, on the mean of a model's word pieces, on
its sentence vectors, and on model2vec's.  ``run`` has ``distill init`` write the parameters for the same rows,
changes them as the variant says, and runs the stages up to ``evaluate``.  Each adds lines to WORK/scores.jsonl; what
is there already is not run again.  A variant is ``init``, or ``name=key:value;key:value``, with keys of params.yaml by
their path; ``-key`` leaves one out; ``texts`` adds so many of the set's other rows, without their labels.

The sets: ``products``, ``editorials`` and ``tweets`` are bundled with vaderSentiment (positive and negative sentences);
``trec`` (what a question asks for), ``agnews`` (topics) and ``banking77`` (intents) are read below --few.
"""

import csv
import importlib
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from few_row_peers import PEERS, Row
from harness import Out, facts, write_results
from harness import table as markdown
from ruamel.yaml import YAML

INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
BUNDLED = {
    "products": "amazonReviewSnippets", "editorials": "nytEditorialSnippets", "tweets": "tweets",
    "movies": "movieReviewSnippets",
}  # fmt: skip
BAND = 0.5
"""Sentences whose mean score is within this of 0 are neither positive nor negative."""
TEST_ROWS, TEXTS = 1000, 4000
TEACHER = "minilm"
app = typer.Typer(add_completion=False)
Sets = Annotated[str, typer.Option(help="Sets, separated by commas.")]
Rows = Annotated[str, typer.Option(help="Numbers of labelled rows, separated by commas.")]
Seeds = Annotated[str, typer.Option(help="Draws of rows, separated by commas.")]
Few = Annotated[Path | None, typer.Option(help="The folder of the sets that are not bundled.")]
Sdist = Annotated[Path | None, typer.Option(help="vaderSentiment's source distribution.")]


@app.command()
def run(
    work: Path,
    sets: Sets,
    rows: Rows = "300",
    seeds: Seeds = "1,2,3",
    variant: Annotated[list[str] | None, typer.Option(help="init, or name=key:value;…")] = None,
    sdist: Sdist = None,
    few: Few = None,
) -> None:
    """Run the pipeline on drawn rows, once per variant."""
    for name, count, seed in _grid(sets, rows, seeds):
        for spec in variant or ["init"]:
            label, _, changes = spec.partition("=")
            done = {"set": name, "rows": count, "seed": seed, "variant": label}
            if done in _done(work):
                continue
            drawn = draw(load(name, sdist, few), count, seed)
            edits = [change.partition(":")[::2] for change in changes.split(";") if change]
            texts = drawn[2][: int(dict(edits).pop("texts", 0))]
            folder, start = work / f"{name}-{count}-{seed}" / label, time.perf_counter()
            scores = run_pipeline(folder, (*drawn[:2], texts), [edit for edit in edits if edit[0] != "texts"])
            _add(work, done | {"scores": scores, "seconds": round(time.perf_counter() - start, 1)})


@app.command()
def peers(
    work: Path,
    sets: Sets,
    rows: Rows = "300",
    seeds: Seeds = "1,2,3",
    systems: Annotated[str, typer.Option(help="Of the peers, separated by commas.")] = "tf-idf,pieces,vectors",
    model: Annotated[Path | None, typer.Option(help="A sentence encoder's folder.")] = None,
    sdist: Sdist = None,
    few: Few = None,
) -> None:
    """Score what people use today: tf-idf; pieces, vectors, model2vec and setfit, of a model."""
    for name, count, seed in _grid(sets, rows, seeds):
        for system in systems.split(","):
            done = {"set": name, "rows": count, "seed": seed, "variant": system}
            if done not in _done(work):
                train, test, _ = draw(load(name, sdist, few), count, seed)
                start = time.perf_counter()
                accuracy = PEERS[system](model, train, test)
                seconds = round(time.perf_counter() - start, 1)
                _add(work, done | {"scores": {system: accuracy}, "seconds": seconds})


@app.command()
def refit(work: Path, name: str = "few_rows_penalties", out: Out = Path("benchmarks/results")) -> None:
    """Fit the yardsticks of finished runs with today's code: score on test and penalty, stored and refitted."""
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.models.students.student import load_student
    from pipeline_lib.params import load_params
    from pipeline_lib.shards.columns import texts
    from pipeline_lib.shards.engine.local import LocalEngine
    from pipeline_lib.shards.shard_sets import ShardSet
    from pipeline_lib.shards.training_records import StudentRecord
    from pipeline_lib.training.distillation.plans import make_plan
    from pipeline_lib.training.distillation.regressions import student_row
    from pipeline_lib.training.search import train_rows

    layout, fitted, origin = Layout(), {}, Path.cwd()
    for students in sorted(work.resolve().glob("*/init/data/students/task")):
        os.chdir(students.parents[2])
        params, test = load_params(), ShardSet.open(layout.split("task", "test")).to_table()
        labels = test["label"].to_numpy()
        for method in ("regression", "tfidf"):
            stored = layout.student("task", method, 1)
            plan = make_plan(params, "task", method, layout)
            row = student_row(plan, layout.vocabulary("task"), layout.split("task", "dev"), [1], "cpu")
            searched = train_rows([row], LocalEngine(1))[method]
            folders = stored, searched.trainings[1][0].result.folder
            rates = StudentRecord.read(stored / "training.json").settings.learning_rate, searched.rate
            scores = [
                float((load_student(folder).logits(texts(test)).argmax(1) == labels).mean()) for folder in folders
            ]
            fitted.setdefault(students.parents[2].parent.name, {})[method] = {"scores": scores, "penalties": rates}
    os.chdir(origin)
    lines = [f"{draw}: {values}" for draw, values in fitted.items()]
    write_results(name, {"stored, refitted": fitted, "facts": facts(["torch"], 1, 1)}, lines, out)


@app.command()
def table(work: Path, name: str = "few_rows", out: Out = Path("benchmarks/results")) -> None:
    """Write the mean of every system by rows and variant, and what the best student gains; then every draw."""
    entries = [json.loads(line) for line in _scores(work).read_text("utf-8").splitlines()]
    lines = ["Accuracy on test in percent, mean over sets and draws.", ""]
    lines += markdown(["rows", "variant", "draws", "systems"], [*_means(entries)])
    lines += [
        "",
        "The first over the second on the same rows: mean gain with its 95 % interval over draws; lowest set.",
        "",
    ]
    lines += markdown(["rows", "variant", "student", "over", "gain", "lowest set"], [*_gains(entries)])
    lines += ["", *markdown(["set", "rows", "variant", "draws", "systems"], [*_means(entries, by_set=True)])]
    facts_of = facts(["torch", "transformers", "scikit-learn"], 2, 2)
    write_results(name, {"entries": entries, "facts": facts_of}, lines, out)


YARDSTICKS = ("tf-idf", "pieces")
"""What a student has to be better than: regressions that are fitted in a second."""
Draw = tuple[str, int, int]
"""Set, rows, seed."""


def _draws(entries: list[dict[str, Any]]) -> dict[str, dict[Draw, dict[str, float]]]:
    """Return the scores by variant and draw; each has the yardsticks' of the same draw."""
    peers: dict[Draw, dict[str, float]] = {}
    variants: dict[str, dict[Draw, dict[str, float]]] = {}
    for entry in entries:
        draw = entry["set"], entry["rows"], entry["seed"]
        if entry["variant"] in PEERS:
            peers.setdefault(draw, {}).update(entry["scores"])
        else:
            variants.setdefault(entry["variant"], {})[draw] = entry["scores"]
    return {
        name: {draw: peers.get(draw, {}) | scores for draw, scores in each.items()} for name, each in variants.items()
    }


def _means(entries: list[dict[str, Any]], by_set: bool = False) -> Iterator[list[str]]:
    for variant, draws in _draws(entries).items():
        groups: dict[tuple[str, int], list[dict[str, float]]] = {}
        for (name, count, _), scores in sorted(draws.items()):
            groups.setdefault((name if by_set else "", count), []).append(scores)
        for (name, count), each in sorted(groups.items()):
            names = [system for system in each[0] if all(system in scores for scores in each)]
            means = {system: 100 * statistics.fmean(scores[system] for scores in each) for system in names}
            shown = ", ".join(f"{system} {mean:.1f}" for system, mean in means.items())
            yield [*([name] if by_set else []), str(count), variant, str(len(each)), shown]


def _gains(entries: list[dict[str, Any]]) -> Iterator[list[str]]:
    for variant, draws in _draws(entries).items():
        for count in sorted({count for _, count, _ in draws}):
            rows = {draw: scores for draw, scores in draws.items() if draw[1] == count}
            students = set.intersection(*(set(scores) for scores in rows.values())) - {*PEERS}
            for student in sorted(students):
                for other, of in {"the better yardstick": _yardstick, "the teacher": _teacher}.items():
                    gains: dict[str, list[float]] = {}
                    for (name, _, _), scores in rows.items():
                        if (reference := of(scores)) is not None:
                            gains.setdefault(name, []).append(100 * (scores[student] - reference))
                    if gains:
                        lowest = min(gains, key=lambda name: statistics.fmean(gains[name]))
                        least = f"{lowest} {statistics.fmean(gains[lowest]):+.1f}"
                        yield [str(count), variant, student, other, _gain([*chain(*gains.values())]), least]


def _yardstick(scores: dict[str, float]) -> float | None:
    return max((scores[name] for name in YARDSTICKS if name in scores), default=None)


def _teacher(scores: dict[str, float]) -> float | None:
    return scores.get(TEACHER)


def _gain(gains: list[float]) -> str:
    """Return the mean of paired differences with its interval, by Student's t."""
    from scipy.stats import t

    if len(gains) < 2:
        return f"{gains[0]:+.1f}"
    half = t.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    mean = statistics.fmean(gains)
    return f"{mean:+.1f} [{mean - half:.1f}, {mean + half:.1f}], {len(gains)} draws"


def load(name: str, sdist: Path | None, few: Path | None) -> tuple[list[Row], list[Row]]:
    """Return a set's rows to train on and its test rows, always the same ones."""
    if name in BUNDLED:
        rows = [*_bundled(sdist, BUNDLED[name])]
        random.Random(0).shuffle(rows)
        return rows[TEST_ROWS:], rows[:TEST_ROWS]
    train, test = ([*_read(few / name / f"{split}.csv")] for split in ("train", "test"))
    random.Random(0).shuffle(train)
    random.Random(0).shuffle(test)
    return train, test[:TEST_ROWS]


def draw(both: tuple[list[Row], list[Row]], count: int, seed: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Return so many rows to train on, each class among them, the test rows, and others, whose labels are not used."""
    rows, test = both
    rows = [row for row in rows if row[:-1] not in {other[:-1] for other in test}]
    random.Random(seed).shuffle(rows)
    firsts = {row[-1]: number for number, row in reversed([*enumerate(rows)])}
    rows = [rows[number] for number in sorted(firsts.values())] + [
        row for number, row in enumerate(rows) if firsts[row[-1]] != number
    ]
    return rows[:count], test, rows[count : count + TEXTS]


def run_pipeline(
    folder: Path, drawn: tuple[list[Row], list[Row], list[Row]], edits: list[tuple[str, str]]
) -> dict[str, float]:
    """Return each system's score on test, by the task's first metric; the mean over its seeds."""
    (folder / "in").mkdir(parents=True)
    # Variants of the same rows share the teacher and its answers.
    (folder.parent / "store").mkdir(exist_ok=True)
    (folder / ".potstill").symlink_to(Path("..", "store"))
    for name, rows in zip(("train", "test", "texts"), drawn, strict=True):
        if rows:
            _write(folder / "in" / f"{name}.csv", rows, with_label=name != "texts")
    origin = os.getcwd()
    # Relative names below are the new folder's.
    os.chdir(folder)
    try:
        command = ["init", "in/train.csv", "--test", "in/test.csv", "--name", "task", "--no-scm"]
        if drawn[2]:
            command += ["--unlabelled", "in/texts.csv"]
        subprocess.run([sys.executable, "-m", "pipeline_lib.cli", *command], check=True)
        _edit(Path("params.yaml"), edits)
        run_stages()
        return test_scores()
    finally:
        os.chdir(origin)


def run_stages() -> None:
    """Run the stages up to ``evaluate`` in this process."""
    from pipeline_lib.params import load_params

    params = load_params()
    stages = ["fingerprint", "fetch_models"] + ["split_wikipedia"] * (params.wikipedia is not None)
    for name in stages:
        _stage(name)
    for name in ("fetch_data", "prepare", "augment", "finetune_teacher", "precompute"):
        _stage(name, task="task")
    if params.encoders:
        _stage("precompute_vectors")
    for encoder in params.encoders:
        _stage("pretrain", encoder=encoder)
    for name in ("train", "evaluate"):
        _stage(name, task="task")


def test_scores() -> dict[str, float]:
    """Return each system's score on test in this folder, by the task's first metric."""
    from pipeline_lib.base.layout import Layout
    from pipeline_lib.params import load_params
    from pipeline_lib.results.collect import metrics, read_results

    metric = load_params().task("task").metrics[0]
    by_system = metrics(read_results(Layout(), ["task"]))["task"]
    teachers = {name: row["test"][metric] for name, row in by_system["teachers"].items()}
    return teachers | {n: row["test"][metric]["mean"] for n, row in by_system["methods"].items()}


def _bundled(sdist: Path, kind: str) -> Iterator[Row]:
    with tarfile.open(sdist) as outer:
        content = outer.extractfile(INNER).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as inner:
        lines = inner.extractfile(f"hutto_ICWSM_2014/{kind}_GroundTruth.txt").read()
    seen: set[str] = set()
    for line in lines.decode("utf-8").splitlines():
        _, mean, text = line.split("\t", 2)
        if abs(float(mean)) >= BAND and text.strip() not in seen:
            seen.add(text.strip())
            yield text.strip(), "positive" if float(mean) > 0 else "negative"


def _read(path: Path) -> Iterator[Row]:
    with open(path, encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            yield row["text"].strip(), row["label"]


def _write(path: Path, rows: list[Row], with_label: bool) -> None:
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label"] if with_label else ["text"])
        writer.writerows(rows if with_label else [row[:-1] for row in rows])


def _stage(name: str, **options: str) -> None:
    importlib.import_module(f"pipeline_lib.stages.{name}").main(**options)


def _edit(path: Path, edits: list[tuple[str, str]]) -> None:
    yaml = YAML()
    values = yaml.load(path)
    for key, value in edits:
        *parents, last = key.removeprefix("-").split(".")
        section = values
        for parent in parents:
            section = section[parent]
        if key.startswith("-"):
            del section[last]
        else:
            section[last] = yaml.load(value)
    yaml.dump(values, path)


def _grid(sets: str, rows: str, seeds: str) -> Iterator[tuple[str, int, int]]:
    for name in sets.split(","):
        for count in rows.split(","):
            for seed in seeds.split(","):
                yield name, int(count), int(seed)


def _scores(work: Path) -> Path:
    return work / "scores.jsonl"


def _done(work: Path) -> list[dict[str, Any]]:
    path = _scores(work)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [{k: v for k, v in json.loads(line).items() if k not in ("scores", "seconds")} for line in lines]


def _add(work: Path, entry: dict[str, Any]) -> None:
    print(json.dumps(entry), flush=True)
    with open(_scores(work), "a", encoding="utf-8") as handle:
        handle.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    app()
