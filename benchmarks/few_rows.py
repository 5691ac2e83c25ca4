"""How much of its teacher a student keeps that is made from 100 to 3,000 labelled rows.

    python benchmarks/few_rows.py run WORK --sets products,tweets --rows 300 --seeds 1,2,3 \
        --variant init --variant 'pieces=vocabulary.pieces:8000'
    python benchmarks/few_rows.py peers WORK --sets products --systems tf-idf,vectors --model DIR
    python benchmarks/few_rows.py table WORK --name few_rows

``run`` draws rows of a set, has ``distill init`` write the parameters, changes them as the variant says, and runs
the stages up to ``evaluate``; ``peers`` scores what people use today on the same rows.  Each adds lines to
WORK/scores.jsonl; what is there already is not run again.  A variant is ``init``, or ``name=key:value;key:value``,
with keys of params.yaml by their path; ``-key`` leaves one out; ``texts`` adds so many of the set's other rows,
``others`` so many of the other bundled sets, both without their labels.

The sets: ``products``, ``editorials`` and ``tweets`` are bundled with vaderSentiment (positive and
negative sentences); ``sst2``, ``qnli`` and ``mrpc`` are read below --glue, if it is given.
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
GLUE = {
    "sst2": ("SST-2-sentence", ["sentence"], "label"),
    "qnli": ("QNLI", ["question", "sentence"], "label"),
    "mrpc": ("MRPC", ["#1 String", "#2 String"], "Quality"),
}
BAND = 0.5
"""Sentences whose mean score is within this of 0 are neither positive nor negative."""
TEST_ROWS, TEXTS = 1000, 4000
app = typer.Typer(add_completion=False)
Sets = Annotated[str, typer.Option(help="Sets, separated by commas.")]
Rows = Annotated[str, typer.Option(help="Numbers of labelled rows, separated by commas.")]
Seeds = Annotated[str, typer.Option(help="Draws of rows, separated by commas.")]
Glue = Annotated[Path | None, typer.Option(help="The folder of GLUE's tasks.")]
Sdist = Annotated[Path | None, typer.Option(help="vaderSentiment's source distribution.")]


@app.command()
def run(
    work: Path,
    sets: Sets,
    rows: Rows = "300",
    seeds: Seeds = "1,2,3",
    variant: Annotated[list[str] | None, typer.Option(help="init, or name=key:value;…")] = None,
    sdist: Sdist = None,
    glue: Glue = None,
) -> None:
    """Run the pipeline on drawn rows, once per variant."""
    for name, count, seed in _grid(sets, rows, seeds):
        for spec in variant or ["init"]:
            label, _, changes = spec.partition("=")
            done = {"set": name, "rows": count, "seed": seed, "variant": label}
            if done in _done(work):
                continue
            drawn = draw(load(name, sdist, glue), count, seed)
            edits = [change.partition(":")[::2] for change in changes.split(";") if change]
            counts = {key: int(value) for key, value in edits if key in ("texts", "others")}
            texts = drawn[2][: counts.get("texts", 0)]
            if "others" in counts:
                texts += other_texts(name, sdist, drawn[:2])[: counts["others"]]
            folder = work / f"{name}-{count}-{seed}-{label}"
            changed = [edit for edit in edits if edit[0] not in counts]
            scores = run_pipeline(folder, (*drawn[:2], texts), changed)
            _add(work, done | {"scores": scores})


@app.command()
def peers(
    work: Path,
    sets: Sets,
    rows: Rows = "300",
    seeds: Seeds = "1,2,3",
    systems: Annotated[str, typer.Option(help="Of the peers, separated by commas.")] = "tf-idf",
    model: Annotated[Path | None, typer.Option(help="A sentence encoder's folder.")] = None,
    sdist: Sdist = None,
    glue: Glue = None,
) -> None:
    """Score what people use today: tf-idf; vectors, model2vec and setfit, of a model."""
    for name, count, seed in _grid(sets, rows, seeds):
        for system in systems.split(","):
            done = {"set": name, "rows": count, "seed": seed, "variant": system}
            if done not in _done(work):
                train, test, _ = draw(load(name, sdist, glue), count, seed)
                start = time.perf_counter()
                accuracy = PEERS[system](model, train, test)
                seconds = round(time.perf_counter() - start, 1)
                _add(work, done | {"scores": {system: accuracy}, "seconds": seconds})


@app.command()
def table(
    work: Path,
    name: str = "few_rows",
    before: Annotated[str, typer.Option(help="The variant that the others are compared with.")] = ("base"),
    out: Out = Path("benchmarks/results"),
) -> None:
    """Write each variant's mean scores, and what it gains; then the scores of every draw."""
    entries = [json.loads(line) for line in _scores(work).read_text("utf-8").splitlines()]
    lines = ["Means over sets and draws; gains over the same draws, with 95 % intervals.", ""]
    heads = ["rows", "variant", "draws", "teacher", *STUDENTS, "both distilled, below teacher", "their gain"]
    lines += markdown(heads, [*_summaries(entries, before)])
    lines += ["", "The peers, on the same rows.", ""]
    lines += markdown(["rows", "peer", "draws", "on test"], [*_peers(entries)])
    details = [
        [e["set"], str(e["rows"]), str(e["seed"]), e["variant"], system, f"{100 * score:.1f}"]
        for e in sorted(entries, key=lambda e: (e["set"], e["rows"], e["seed"], e["variant"]))
        for system, score in e["scores"].items()
    ]
    lines += ["", *markdown(["set", "rows", "draw", "variant", "system", "on test"], details)]
    results = {"entries": entries, "facts": facts(["torch", "transformers", "scikit-learn"], 2, 2)}
    write_results(name, results, lines, out)


STUDENTS = ("bilstm", "bilstm_kd_ts", "static", "static_kd_ts")
"""The systems of the summary; the mean of the two that are distilled is compared."""
Scores = dict[str, float]


def _summaries(entries: list[dict[str, Any]], before: str) -> Iterator[list[str]]:
    by_variant: dict[tuple[int, str], dict[tuple[str, int], Scores]] = {}
    for entry in entries:
        if set(STUDENTS) <= entry["scores"].keys():
            draws = by_variant.setdefault((entry["rows"], entry["variant"]), {})
            draws[entry["set"], entry["seed"]] = entry["scores"]
    for (count, variant), draws in sorted(by_variant.items()):
        teacher = [100 * next(iter(scores.values())) for scores in draws.values()]
        means = [statistics.fmean(100 * s[name] for s in draws.values()) for name in STUDENTS]
        distilled = {draw: _distilled(scores) for draw, scores in draws.items()}
        below = statistics.fmean(teacher) - statistics.fmean(distilled.values())
        others = by_variant.get((count, before), {})
        common = [draw for draw in draws if draw in others and variant != before]
        gains = [distilled[draw] - _distilled(others[draw]) for draw in common]
        figures = [statistics.fmean(teacher), *means, below]
        yield [str(count), variant, str(len(draws)), *(f"{x:.1f}" for x in figures), _gain(gains)]


def _peers(entries: list[dict[str, Any]]) -> Iterator[list[str]]:
    by_peer: dict[tuple[int, str], list[float]] = {}
    for entry in entries:
        if entry["variant"] in PEERS:
            score = 100 * entry["scores"][entry["variant"]]
            by_peer.setdefault((entry["rows"], entry["variant"]), []).append(score)
    for (count, peer), scores in sorted(by_peer.items()):
        yield [str(count), peer, str(len(scores)), f"{statistics.fmean(scores):.1f}"]


def _distilled(scores: Scores) -> float:
    return 100 * statistics.fmean(scores[name] for name in STUDENTS if name.endswith("_kd_ts"))


def _gain(gains: list[float]) -> str:
    """Return the mean of paired differences with its interval, by Student's t."""
    from scipy.stats import t

    if len(gains) < 2:
        return f"{gains[0]:+.1f}" if gains else "–"
    half = t.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / len(gains) ** 0.5
    mean = statistics.fmean(gains)
    return f"{mean:+.1f} [{mean - half:.1f}, {mean + half:.1f}], {len(gains)} draws"


def load(name: str, sdist: Path | None, glue: Path | None) -> tuple[list[Row], list[Row]]:
    """Return a set's rows to train on and its test rows, always the same ones."""
    if name in BUNDLED:
        by_system = [*_bundled(sdist, BUNDLED[name])]
        random.Random(0).shuffle(by_system)
        return by_system[TEST_ROWS:], by_system[:TEST_ROWS]
    folder, texts, label = GLUE[name]
    train, test = ([*_glue(glue / folder / f"{split}.tsv", texts, label)] for split in ("train", "dev"))
    random.Random(0).shuffle(train)
    random.Random(0).shuffle(test)
    return train, test[:TEST_ROWS]


def draw(both: tuple[list[Row], list[Row]], count: int, seed: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Return so many rows to train on, the test rows, and other rows, whose labels are not used."""
    rows, test = both
    rows = [row for row in rows if row[:-1] not in {other[:-1] for other in test}]
    random.Random(seed).shuffle(rows)
    return rows[:count], test, rows[count : count + TEXTS]


def other_texts(name: str, sdist: Path | None, drawn: tuple[list[Row], list[Row]]) -> list[Row]:
    """Return the rows of the other bundled sets, but for texts that this one draws."""
    # SST-2's sentences are movie snippets.
    same = {name, "movies"} if name == "sst2" else {name}
    drawn_texts = {row[:-1] for rows in drawn for row in rows}
    others = [row for kind in BUNDLED if kind not in same for row in _bundled(sdist, BUNDLED[kind])]
    random.Random(0).shuffle(others)
    return [row for row in others if row[:-1] not in drawn_texts]


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


def _glue(path: Path, texts: list[str], label: str) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig", newline="") as handle:
        for row in csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE):
            if all(row.get(name) for name in (*texts, label)):
                yield (*(row[name].strip() for name in texts), f"class {row[label]}")


def _write(path: Path, rows: list[Row], with_label: bool) -> None:
    names = ["text"] if len(rows[0]) == 2 else ["sentence1", "sentence2"]
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow([*names, "label"] if with_label else names)
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
    return [{k: v for k, v in json.loads(line).items() if k != "scores"} for line in lines]


def _add(work: Path, entry: dict[str, Any]) -> None:
    print(json.dumps(entry), flush=True)
    with open(_scores(work), "a", encoding="utf-8") as handle:
        handle.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    app()
