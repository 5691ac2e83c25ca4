"""What runs again when a value is swapped, and how long it takes.

    distill run && python benchmarks/swaps.py

Run it in a clone in which the default has just been run.  Each swap is made in params.yaml (the last one in the
library), `distill run` is timed, and the swap is taken back, which is timed too. The stages are those that left a
new record, `fingerprint` aside.  The store keeps what a swap computed: run it once per clone.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from harness import RESULTS, Out, facts, say, table, write_results

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.stage_records import read_stage_record

PARAMS = Path("params.yaml")
EDITED = Path("pipeline_lib/training/objectives.py")
"""The module whose docstring is edited: trainings depend on it."""
Edit = Callable[[], None]


def assign(path: str, value: Any) -> None:
    """Set a key of params.yaml, the names in ``path`` separated by dots."""
    params = yaml.safe_load(PARAMS.read_text("utf-8"))
    *outer, last = path.split(".")
    section = params
    for name in outer:
        section = section[name]
    section[last] = value
    PARAMS.write_text(yaml.safe_dump(params, sort_keys=False, allow_unicode=True), "utf-8")


def add_method() -> None:
    """Add a row: logits and labels together, on the originals."""
    methods = yaml.safe_load(PARAMS.read_text("utf-8"))["methods"]
    mixed = {"objective": {"logits": 0.5, "labels": 0.5}}
    assign("methods.bilstm_mixed", methods["bilstm_kd"] | mixed)


def edit_docstring() -> None:
    """Add a line to the docstring of a module that trainings depend on."""
    text = EDITED.read_text("utf-8")
    EDITED.write_text(text.replace('"""', '"""(Edited.) ', 1), "utf-8")


SWAPS: dict[str, Edit] = {
    "n_iter 8 → 9": partial(assign, "tasks.movies.augment.n_iter", 9),
    "the rates of `long`": partial(assign, "optimisers.long.learning_rates", [3.0e-3]),
    "the student's size, 100 → 60": partial(assign, "students.bilstm.hidden", 60),
    "seeds 1, 2, 3 → 1, 2, 4": partial(assign, "seeds", [1, 2, 4]),
    "the teacher's epochs, 3 → 2": partial(assign, "teachers.minilm.tuning.epochs", 2),
    "a new method": add_method,
    "Wikipedia, 1,500 → 2,000 sentences": partial(assign, "wikipedia.sentences", 2000),
    "a transfer rule, p_mask 0.1 → 0.2": partial(assign, "transfer.full.p_mask", 0.2),
    "metrics, f1 besides accuracy": partial(assign, "tasks.movies.metrics", ["accuracy", "f1"]),
    "an edited docstring": edit_docstring,
}


@dataclass(frozen=True)
class Swap:
    """What a swap ran: stages, shards and trainings computed, seconds to and fro."""

    stages: list[str]
    shards: int
    trainings: int
    seconds: float
    back: list[str]
    seconds_back: float


def timed_run() -> tuple[list[str], dict[str, int], float]:
    """Run the pipeline; return the stages that ran, the pieces they computed, and the seconds."""
    start = time.time()
    subprocess.run([sys.executable, "-m", "pipeline_lib.cli", "run"], check=True)
    seconds = time.time() - start
    stages, computed = [], {"shards": 0, "trainings": 0}
    for path in Layout().stage_record("any").parent.glob("*.json"):
        record = read_stage_record(path)
        # Records have whole seconds.
        if record is None or datetime.fromisoformat(record["started"]).timestamp() < int(start):
            continue
        stages.append(path.stem)
        for kind in computed:
            computed[kind] += record["counts"].get(kind, {"computed": 0})["computed"]
    return sorted(set(stages) - {"fingerprint"}), computed, round(seconds, 1)


def make(edit: Edit) -> Swap:
    """Make a swap, run, take it back, run again."""
    before = {path: path.read_bytes() for path in (PARAMS, EDITED)}
    try:
        edit()
        stages, computed, seconds = timed_run()
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    back, _, seconds_back = timed_run()
    return Swap(stages, computed["shards"], computed["trainings"], seconds, back, seconds_back)


def main(
    only: Annotated[list[int] | None, typer.Option(help="Numbers of swaps, from 1; by default all.")] = None,
    out: Out = RESULTS,
) -> None:
    """Make all swaps, one after the other, and write the table."""
    ran, _, nothing = timed_run()
    if ran:
        raise typer.BadParameter(f"the default is not finished here: {', '.join(ran)} ran. Start again.")
    swaps = {}
    for number in only or range(1, len(SWAPS) + 1):
        name, edit = list(SWAPS.items())[number - 1]
        say(f"--- {name}")
        swaps[name] = make(edit)
    lines = ["# Swapped values", "", f"Nothing to do: {nothing:.1f} s.", "", *_table(swaps)]
    results = {
        "facts": facts(["torch", "dvc"], usable_cores(), "as set by each stage"),
        "nothing_to_do": nothing,
        "swaps": {name: asdict(swap) for name, swap in swaps.items()},
    }
    write_results("swaps", results, lines, out)


def _table(swaps: dict[str, Swap]) -> list[str]:
    header = ["swap", "shards computed", "trainings", "seconds", "back", "stages that ran"]
    rows = (
        [
            name,
            f"{swap.shards}",
            f"{swap.trainings}",
            f"{swap.seconds:.0f}",
            f"{swap.seconds_back:.0f}",
            ", ".join(stage.split("@")[0] for stage in swap.stages) or "none",
        ]
        for name, swap in swaps.items()
    )
    return table(header, rows)


if __name__ == "__main__":
    typer.run(main)
