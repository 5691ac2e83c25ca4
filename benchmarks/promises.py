"""How often a promise is kept: students of finished runs answer alone what dev allows, and test says how often well.

    python benchmarks/promises.py RUNS/*/init

Each folder is a workspace whose students were evaluated.  First as they are: the promise of dev, test's agreement.
Then with dev drawn anew from all held-out rows, ``--dev`` of them, which no student was chosen on.  Writes
benchmarks/results/promises.json.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import typer
from harness import RESULTS, facts, table, write_results

from pipeline_lib.base.files import read_record
from pipeline_lib.base.kinds import Classes
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.promises import LEVEL, answers_alone, chance, stretches
from pipeline_lib.params import load_params
from pipeline_lib.shards.columns import matrix
from pipeline_lib.shards.shard_sets import read_shard

FIGURES = (0.8, 0.9, 0.95)


def main(workspaces: list[Path], dev: int = 200, draws: int = 5) -> None:
    """Measure every student of every workspace."""
    promised = []
    for workspace in workspaces:
        for confidences, agrees, is_dev in students(workspace):
            splits = [("as it is", is_dev)]
            for draw in range(draws):
                chosen = np.random.default_rng(draw).permutation(len(is_dev))[:dev]
                splits.append(("drawn anew", np.isin(np.arange(len(is_dev)), chosen)))
            promised += [{"dev": how} | each for how, mask in splits for each in promises(confidences, agrees, mask)]
    rows = []
    for how in ("as it is", "drawn anew"):
        for figure in FIGURES:
            ours = [each for each in promised if (each["dev"], each["figure"]) == (how, figure)]
            alone = [each for each in ours if each["share"]]
            below = sum(each["agreement"] < figure for each in alone) / max(1, len(ours))
            surely = sum(each["surely_below"] for each in alone) / max(1, len(ours))
            share = float(np.mean([each["share"] for each in ours]))
            rows.append([how, figure, len(ours), len(alone), round(share, 3), round(below, 3), round(surely, 3)])
    names = ["dev", "promised", "students", "given", "mean_share", "below", "surely_below"]
    results = {"facts": facts(("numpy",), usable_cores(), 1), "level": LEVEL, "workspaces": len(workspaces)}
    results |= {"drawn_rows": dev, "draws": draws, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
    lines = table([name.replace("_", " ") for name in names], [[*map(str, row)] for row in rows])
    write_results("promises", results, lines, RESULTS)


def students(workspace: Path) -> Any:
    """Yield each student's confidences, whether it agrees with its teacher, and which held-out rows are dev's."""
    params, layout = load_params(workspace / "params.yaml"), Layout(workspace / "data")
    for task in params.tasks:
        methods = read_record(layout.scores(task), "methods")["methods"]
        answers = read_shard(layout.predictions(task))
        is_dev = pc.equal(answers["split"], "dev").to_numpy(zero_copy_only=False)
        for name, method in methods.items():
            teacher, temperatures = matrix(answers[method["teacher"]]).argmax(1), method["details"]["temperature"] or {}
            for seed in method["training"]["best_step"]:
                logits = matrix(answers[f"{name}-{seed}"]) / temperatures.get(seed, 1.0)
                yield Classes().confidence(logits), logits.argmax(1) == teacher, is_dev


def promises(confidences: np.ndarray, agrees: np.ndarray, is_dev: np.ndarray) -> list[dict[str, Any]]:
    """Return what is promised on dev, and how the other rows keep it."""
    measured, outcomes = stretches(confidences[is_dev], agrees[is_dev]), []
    for figure in FIGURES:
        alone = answers_alone(measured, figure)
        others = agrees[~is_dev & (confidences > (1.0 if alone is None else alone.threshold))]
        wrong = int((~others).sum())
        outcomes.append(
            {
                "figure": figure,
                "share": len(others) / int((~is_dev).sum()),
                "agreement": float(others.mean()) if len(others) else None,
                "surely_below": bool(len(others)) and chance(len(others), wrong, 1 - figure) < 1 - LEVEL,
            }
        )
    return outcomes


if __name__ == "__main__":
    typer.run(main)
