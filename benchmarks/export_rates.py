"""A student in torch, ONNX, ONNX int8 and numpy: sentences per second, size, and agreement.

All are timed from raw text to logits, tokenisation included, taking turns in one run: on one core,
and on all that the process may use.  torch always uses one thread, since the steps of an LSTM are
too small to parallelise; the ONNX forms distribute the texts over the cores.

    pip install 'potstill[onnx]' python benchmarks/export_rates.py data/students/movies/bilstm_kd_ts/1

Run it in a workspace where `dvc repro` has finished the student.  It writes results/export_rates.json.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import typer
from harness import (
    RESULTS,
    Out,
    Repeats,
    facts,
    folder_bytes,
    rate,
    ratio,
    spread,
    summary,
    table,
    take_turns,
    write_results,
)

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import StudentPlace, student_place
from pipeline_lib.base.text import Text
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.onnx.exporter import export_onnx, export_onnx_int8
from pipeline_lib.exports.opening import load_student
from pipeline_lib.shards.columns import texts
from pipeline_lib.shards.shard_sets import ShardSet

FORMS = {"onnx": export_onnx, "onnx-int8": export_onnx_int8, "numpy": export_numpy}
Predict = Callable[[Sequence[Text]], np.ndarray]


def main(
    student: Annotated[Path, typer.Argument(help="A student's folder below data/students.")],
    sentences: Annotated[int, typer.Option(help="How many sentences to time.")] = 8000,
    repeats: Repeats = 5,
    out: Out = RESULTS,
) -> None:
    """Measure every form that the student has."""
    location = student_place(student)
    if location is None:
        raise typer.BadParameter("not below data/students")
    cores = sorted(os.sched_getaffinity(0))
    start = facts(("torch", "onnxruntime", "numpy", "tokenizers"), len(cores), "1 a core")
    task_texts = _texts(location)
    sample = (task_texts * (1 + sentences // len(task_texts)))[:sentences]
    with TemporaryDirectory() as folder:
        forms = _forms(student, Path(folder))
        systems = {name: load_student(path).logits for name, path in forms.items()}
        sizes = {name: folder_bytes(path) for name, path in forms.items()}
        for predict in systems.values():
            predict(sample[:300])
        rates = {
            count: take_turns({n: _timed(p, sample, used) for n, p in systems.items()}, repeats)
            for count, used in {1: cores[:1], len(cores): cores}.items()
        }
    answers = {name: predict(task_texts) for name, predict in systems.items()}
    measured = {
        name: {"bytes": sizes[name]}
        | _apart(answers["torch"], answers[name])
        | {
            f"cores {count}": {"rates": summary(turns[name]), "ratio to torch": ratio(turns[name], turns["torch"])}
            for count, turns in rates.items()
        }
        for name in systems
    }
    results = {"facts": start, "student": "/".join(student.parts[-3:]), "sentences": sentences}
    results |= {"rows compared": len(task_texts), "words": _words(sample), "forms": measured}
    write_results("export_rates", results, _lines(results, list(rates)), out)


def _texts(location: StudentPlace) -> list[Text]:
    folders = [location.layout.split(location.task, split) for split in ("dev", "test", "train")]
    return [t for folder in folders if folder.exists() for t in texts(ShardSet.open(folder).to_table())]


def _words(sample: list[Text]) -> float:
    whole = (text if isinstance(text, str) else " ".join(text) for text in sample)
    return round(float(np.mean([len(text.split()) for text in whole])), 1)


def _forms(student: Path, folder: Path) -> dict[str, Path]:
    """Return the folder of each form that the student has."""
    forms = {"torch": student}
    for name, write in FORMS.items():
        try:
            write(student, folder / name)
            forms[name] = folder / name
        except PotstillError as error:
            typer.echo(str(error), err=True)
    return forms


def _timed(predict: Predict, sample: list[Text], cores: list[int]) -> Callable[[], float]:
    def measure() -> float:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        measured = rate(predict, sample)
        os.sched_setaffinity(0, before)
        return measured

    return measure


def _apart(wanted: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    largest = {"largest difference": float(np.abs(wanted - logits).max())}
    if wanted.shape[1] == 1:
        return largest
    return largest | {"same class": float((wanted.argmax(1) == logits.argmax(1)).mean())}


def _lines(results: dict[str, Any], counts: list[int]) -> list[str]:
    cells = []
    for name, form in results["forms"].items():
        rates = [
            cell
            for count in counts
            for cell in (
                spread(form[f"cores {count}"]["rates"]),
                f"{form[f'cores {count}']['ratio to torch']['median']:.2f}",
            )
        ]
        same = f"{form['same class']:.2%}" if "same class" in form else "–"
        size = f"{form['bytes'] / 1e6:.1f} MB"
        cells.append((name, size, *rates, same, f"{form['largest difference']:.2g}"))
    heads = [
        head for count in counts for head in (f"sentences/s, {count} {'core' if count == 1 else 'cores'}", "ratio")
    ]
    return [
        f"# A student's forms: {results['student']}",
        "",
        f"From raw text to logits, tokenising included, {results['words']} words a sentence; median (lowest–highest) "
        "of the turns, ratios to torch turn by turn. Same class and largest difference of logits: against torch, on "
        f"{results['rows compared']:,} rows of the task.",
        "",
        *table(["form", "folder", *heads, "same class", "difference"], cells),
    ]


if __name__ == "__main__":
    typer.run(main)
