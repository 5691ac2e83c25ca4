"""What storing sentence vectors in fewer bytes costs: direction lost, the encoder's loss, a task.

    python benchmarks/storage.py --encoder sra --task sst2 --row bilstm_sra

Run it where `dvc repro` has finished `pretrain`, and `plan` of the task.  The vectors of the
encoder's corpus are computed in each format and the encoder is trained on each; all are judged by
the float32 vectors of the held-back sentences, and by dev of the row that starts from the encoder.
It writes results/storage.json and .md.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from harness import RESULTS, facts, say, table, usable_cores, write_results

from pipeline_lib.base.devices import single_thread, worker_count
from pipeline_lib.distillation.encoders import (
    HELD_BACK,
    Pretraining,
    held_back_loss,
    mean_of,
    pretrain_or_find,
)
from pipeline_lib.distillation.plans import make_plan
from pipeline_lib.distillation.students import Row, train_rows
from pipeline_lib.params import load_params
from pipeline_lib.storage.shards import ShardSet
from pipeline_lib.storage.vectors import StoredVectors, unit
from pipeline_lib.students.sentence_encoder import load_encoder
from pipeline_lib.teachers.outputs import compute_outputs
from pipeline_lib.teachers.vectors import VectorPass

DATA = Path("data")
FORMATS = ("float32", "float16", "int8")


def main(
    encoder: Annotated[str, typer.Option(help="A key of `encoders` in params.yaml.")] = "sra",
    task: Annotated[str | None, typer.Option(help="A task to train on from the encoder.")] = None,
    row: Annotated[str, typer.Option(help="The task's row.")] = "bilstm_sra",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
) -> None:
    """Train one encoder on vectors of each format."""
    params, start = load_params(), facts(("torch", "transformers"), usable_cores(), 1)
    plain = VectorPass.of(params, DATA / "raw/teacher/base")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for storage in FORMATS:
            data = _data(Path(folder) / storage)
            run = Pretraining(params, encoder, data)
            _compute(run, replace(plain, storage=storage), worker_count(plain.device))
            with single_thread():
                record = pretrain_or_find(run, lambda message: None)
            found[storage] = _judge(run, Path(folder) / "float32", record)
            if task is not None:
                found[storage]["dev"] = _tune(run, task, row)
            say(f"{storage}: {found[storage]}")
    results = {"facts": start, "encoder": encoder, "formats": found}
    results |= {"task": task, "row": row, "seeds": params.seeds} if task else {}
    write_results("storage", results, _lines(results, params.sentence_vectors.pooling), out)


def _data(folder: Path) -> Path:
    """Return a folder of artifacts with everything but the vectors."""
    folder.mkdir()
    for path in DATA.iterdir():
        if path.name not in ("vectors", "encoders"):
            (folder / path.name).symlink_to(path.resolve())
    return folder


def _compute(run: Pretraining, vector_pass: VectorPass, workers: int) -> None:
    names = {HELD_BACK: HELD_BACK, "wikipedia/train": "wikipedia/train"}
    names |= {f"tasks/{t}/{r}": f"transfer/{t}/{r}" for t, r in run.row.tasks.items() if r}
    for name, inputs in names.items():
        compute_outputs(
            ShardSet.open(run.data / inputs), vector_pass, run.data / "vectors" / name, workers
        )


def _vectors(data: Path) -> StoredVectors:
    return StoredVectors([(t, "") for t in ShardSet.open(data / "vectors" / HELD_BACK).tables()])


def _judge(run: Pretraining, exact: Path, record: dict[str, Any]) -> dict[str, Any]:
    wanted, stored = _vectors(exact), _vectors(run.data)
    rows = np.arange(len(wanted))
    cosines = (unit(wanted[rows]) * unit(stored[rows])).sum(1)
    texts = ShardSet.open(run.data / HELD_BACK).table()["text"].to_pylist()
    answers = load_encoder(run.trained.folder).encode(texts)
    exact_train = Pretraining(run.params, run.name, exact).train
    mean = mean_of(exact_train.vectors(), lambda part: part) if run.row.centre else 0.0
    manifests = [outputs.manifest for _, outputs, _ in run.train.sets]
    size = sum(shard.bytes for manifest in manifests for shard in manifest.shards)
    return {
        "bytes_per_sentence": round(size / sum(m.rows for m in manifests), 1),
        "least_cosine": round(float(cosines.min()), 6),
        "loss": round(held_back_loss(answers, wanted, mean), 6),
        "sentences": record["sentences"],
    }


def _tune(run: Pretraining, task: str, row: str) -> list[float]:
    """Return dev of the row trained from this encoder, a value per seed."""
    run.trained.place(run.data / "encoders" / run.name)
    plan = make_plan(run.params, task, row, run.data)
    device = str(run.device)
    found = Row(
        plan, DATA / "vocabularies" / task, DATA / "tasks" / task / "dev", run.params.seeds, device
    )
    students = run.data.with_name(f"{run.data.name}-students")
    records = train_rows([found], students, worker_count(device), lambda *_: None, lambda _: None)
    return [round(record["best_dev"], 6) for record in records[row]]


def _lines(results: dict[str, Any], pooling: str) -> list[str]:
    found = results["formats"]
    headings = ["storage", "bytes a sentence", "least cosine with float32", "loss"]
    rows = [
        [name, f"{f['bytes_per_sentence']:,.0f}", f"{f['least_cosine']:.6f}", f"{f['loss']:.4f}"]
        for name, f in found.items()
    ]
    note = []
    if "task" in results:
        note = [f"\nDev: mean ± standard deviation over seeds {results['seeds']}."]
        headings.append(f"{results['task']} {results['row']}, dev")
        for line, f in zip(rows, found.values(), strict=True):
            line.append(f"{100 * np.mean(f['dev']):.1f} ± {100 * np.std(f['dev'], ddof=1):.1f}")
    return [
        "# Sentence vectors in fewer bytes",
        "",
        f"Encoder `{results['encoder']}`, {found['float32']['sentences']:,} sentences, {pooling}; "
        "loss ½(1 − cos) on held-back sentences, against their float32 vectors.",
        "",
        *table(headings, rows),
        *note,
    ]


if __name__ == "__main__":
    typer.run(main)
