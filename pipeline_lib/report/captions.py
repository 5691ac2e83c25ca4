"""What must be said beside every table of scores: data, seeds, selection, and what is missing."""

from typing import Any

from pipeline_lib.params import Params
from pipeline_lib.report.collect import TaskResult
from pipeline_lib.report.rows import NONE, decisive_split
from pipeline_lib.report.splits import shared_line


def caption(result: TaskResult, params: Params) -> list[str]:
    """Return the sentences that go with one task's table."""
    scores = result.scores
    split = decisive_split(scores)
    sizes = ", ".join(f"{count:,} {name}" for name, count in scores["rows"].items())
    lines = [
        f"{' / '.join(scores['metrics'])} in percent{_f1(scores)}; mean over seeds "
        f"{_seeds(result)}, ± standard deviation of {scores['metric']}.",
        f"Data: {sizes} rows. {_test(scores['test'])}",
        scores["selection"],
        _gain(scores),
        "Rate: the learning rate taken for all seeds, best on dev with the first, among "
        f"{_rates(scores)}; steps and rows of one training.",
        f"To teacher and agreement (share of equal answers, or correlation) on {split}; parameters "
        "in millions, without / with embeddings; ratio: times smaller than the teacher.",
    ]
    if shared := shared_line(scores.get("shared_texts", {})):
        lines.append(f"{shared[0].upper()}{shared[1:]}.")
    lines += _further(scores)
    return [line.strip() for line in lines] + _missing(result, params)


def _f1(scores: dict[str, Any]) -> str:
    label = scores.get("f1_label")
    return f" (f1 of class {label})" if label else ""


def _gain(scores: dict[str, Any]) -> str:
    split, confidence = decisive_split(scores), scores["evaluate"]["confidence"]
    chosen = ", where the best evaluations were also chosen," if split == "dev" else ""
    return (
        f"Gain over the method's undistilled baseline on {split}{chosen} with its "
        f"{100 * confidence:.0f} % interval and p over seeds and examples (Obuchowski and Rockette "
        "1995); p corrected for the table's rows (Holm 1979). One seed: neither."
    )


def _rates(scores: dict[str, Any]) -> str:
    tried = {
        rate for own in scores["methods"].values() for rate in own["training"]["best_dev_by_rate"]
    }
    return ", ".join(sorted(tried, key=float)) or NONE


def _further(scores: dict[str, Any]) -> list[str]:
    """Say how everyone did on scored splits that have no column of their own."""
    metric = scores["metric"]
    lines = []
    for split, found in scores["teacher"].items():
        if split in ("dev", "test") or not isinstance(found, dict) or metric not in found:
            continue
        each = [f"teacher {100 * found[metric]:.1f}"] + [
            f"{name} {100 * own[split][metric]['mean']:.1f}"
            for name, own in scores["methods"].items()
        ]
        lines.append(f"{split}, {metric}: {', '.join(each)}.")
    return lines


def speed_line(result: TaskResult) -> str:
    """Say what the timings were taken on, or that there are none."""
    speed = result.speed
    if speed is None:
        return "Sentences/s: not measured yet (stage measure_speed)."
    device = speed["accelerator"] or speed["cpu"]
    return (
        f"Sentences/s: raw text to logits, {speed['sentences']:,} sentences, median of "
        f"{speed['repeats']}, {device}, {speed['threads']} threads, torch {speed['torch']}."
    )


def _test(state: str) -> str:
    if state == "labelled":
        return ""
    return "Test labels are hidden: not scored." if state == "hidden" else "There is no test split."


def _seeds(result: TaskResult) -> str:
    first = next(iter(result.scores["methods"].values()), None)
    if first is None:
        return "–"
    return ", ".join(first["dev"][result.scores["metric"]]["by_seed"])


def _missing(result: TaskResult, params: Params) -> list[str]:
    lines = []
    absent = [
        name for name in params.methods_of(result.task) if name not in result.scores["methods"]
    ]
    if absent:
        lines.append(f"Not run yet: {', '.join(absent)} (`dvc repro`).")
    stale = [name for name in result.scores["methods"] if name not in params.methods]
    if stale:
        lines.append(f"No longer in params.yaml: {', '.join(stale)}.")
    return lines
