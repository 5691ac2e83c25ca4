"""A finished study as a Markdown table and a plot."""

import statistics
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

from pipeline_lib.base.layout import Layout
from pipeline_lib.commands.studies.sweeps import Point, Study
from pipeline_lib.shards.training_records import EncoderRecord, TrainingRecord


@dataclass(frozen=True)
class Figure:
    """One point with its score: mean and standard deviation over seeds.

    ``loss`` is the loss of the point's encoder on held-out sentences, if the study shows it.
    """

    point: Point
    mean: float
    std: float
    loss: float | None = None


def read_figures(study: Study, metrics: dict[str, Any], layout: Layout) -> list[Figure]:
    """Look the points up in metrics.json: on test if its labels are known, else on dev.

    :param layout: the study's artifacts, for the training records of encoders and students.
    """
    if study.scale == "epochs":
        return [figure for point in study.points for figure in _curve(point, study, layout)]
    return [_figure(point, study, metrics, layout) for point in study.points]


def split_and_metric(study: Study, metrics: dict[str, Any]) -> tuple[str, str]:
    """Return the split and the metric of the figures."""
    task = study.points[0].task
    tested = "test" in _teacher_of(study.points[0], study, metrics) and study.scale != "epochs"
    split = "test" if tested else "dev"
    return split, study.params["tasks"][task]["metrics"][0]


def table(study: Study, figures: list[Figure], metrics: dict[str, Any]) -> str:
    """Return the Markdown table: a row per place, a column per series, and the teacher's scores."""
    split, metric = split_and_metric(study, metrics)
    series = list(dict.fromkeys(f.point.series for f in figures))
    seeds = ", ".join(str(seed) for seed in study.params["seeds"])
    losses = {f.point.place: f.loss for f in figures if f.loss is not None}
    teachers = _teachers(study, figures, metrics)
    head = [study.axis, *series, *teachers, *(["held-out loss"] if losses else [])]
    lines = [f"# {study.title} ({study.source})", ""]
    lines += [f"{metric} on {split}, in percent; mean ± standard deviation, seeds {seeds}.", ""]
    lines += [" | ".join(head), " | ".join("---" for _ in head)]
    positions = list(dict.fromkeys(f.point.place for f in figures))
    # Rows that end at different epochs, or within one, are not in order.
    for position in sorted(positions) if study.scale == "epochs" else positions:
        here = {f.point.series: f for f in figures if f.point.place == position}
        cells = [_cell(here.get(s)) for s in series]
        cells += [_percent(scores.get(position)) for scores in teachers.values()]
        name = position if isinstance(position, str) else f"{position:g}"
        loss = [f"{losses[position]:.4f}"] if losses else []
        lines.append(" | ".join([name, *cells, *loss]))
    return "\n".join(lines) + "\n"


def _teachers(study: Study, figures: list[Figure], metrics: dict[str, Any]) -> dict[str, dict[float | str, float]]:
    """Return the teachers' scores by name and place; curves have one teacher per task."""
    split, metric = split_and_metric(study, metrics)
    teachers: dict[str, dict[float | str, float]] = {}
    for figure in figures:
        task = figure.point.task
        name = f"teacher, {task}" if study.scale == "epochs" else "teacher"
        scores = _teacher_of(figure.point, study, metrics)
        teachers.setdefault(name, {})[figure.point.place] = scores[split][metric]
    return teachers


def _teacher_of(point: Point, study: Study, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of a point's teacher by split: the row's own, or the task's first."""
    teachers = metrics[point.task]["teachers"]
    named = study.params["methods"][point.method].get("teacher")
    return teachers[named] if named else next(iter(teachers.values()))


def _cell(figure: Figure | None) -> str:
    return f"{100 * figure.mean:.1f} ± {100 * figure.std:.1f}" if figure else ""


def _percent(score: float | None) -> str:
    return "" if score is None else f"{100 * score:.1f}"


def write_study(study: Study, figures: list[Figure], metrics: dict[str, Any], folder: Path) -> list[str]:
    """Write the table, and plots of it if matplotlib is installed; return the files' names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(table(study, figures, metrics), encoding="utf-8")
    plots = ["plot.svg", "plot.png"] if find_spec("matplotlib") else []
    for name in plots:
        plot(study, figures, metrics, folder / name)
    return ["table.md", *plots]


def plot(study: Study, figures: list[Figure], metrics: dict[str, Any], path: Path) -> None:
    """Plot the series with their spread, and a line for the teacher, into ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    split, metric = split_and_metric(study, metrics)
    drawing, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for series in dict.fromkeys(f.point.series for f in figures):
        group = [f for f in figures if f.point.series == series]
        positions = [f.point.place for f in group]
        means, spreads = [100 * f.mean for f in group], [100 * f.std for f in group]
        axes.errorbar(positions, means, spreads, marker="o", capsize=3, label=series)
    teachers = _teachers(study, figures, metrics)
    for (name, scores), line in zip(teachers.items(), cycle(("k--", "k:", "k-.")), strict=False):
        axes.plot(list(scores), [100 * score for score in scores.values()], line, label=name)
    if study.scale == "log":
        positions = list(dict.fromkeys(f.point.place for f in figures))
        axes.set_xscale("log")
        axes.set_xticks(positions, [f"{position:g}" for position in positions])
        axes.minorticks_off()
    axes.set_xlabel(study.axis)
    axes.set_ylabel(f"{metric} on {split} (%)")
    axes.set_title(f"{study.title} ({study.source})")
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    losses = {f.point.place: f.loss for f in figures if f.loss is not None}
    if losses:
        second = axes.twinx()
        handles += second.plot(*zip(*losses.items(), strict=True), "s:", color="tab:gray")
        labels.append("the encoder's loss (right)")
        second.set_ylabel("held-out loss")
        second.set_ylim(bottom=0)
    axes.legend(handles, labels)
    drawing.savefig(path, dpi=150)
    pyplot.close(drawing)


def _curve(point: Point, study: Study, layout: Layout) -> list[Figure]:
    """Return one figure per evaluation on dev, over all seeds."""
    folder = layout.students(point.task) / point.method
    seeds = [TrainingRecord.read(folder / str(seed) / "training.json") for seed in study.params["seeds"]]
    evaluations = zip(*(seed.history for seed in seeds), strict=True)
    return [
        Figure(
            replace(point, place=round(evaluation[0].epoch, 2)),
            statistics.mean(one.dev for one in evaluation),
            statistics.stdev(one.dev for one in evaluation) if len(evaluation) > 1 else 0.0,
        )
        for evaluation in evaluations
    ]


def _figure(point: Point, study: Study, metrics: dict[str, Any], layout: Layout) -> Figure:
    split, metric = split_and_metric(study, metrics)
    score = metrics[point.task]["methods"][point.method][split][metric]
    loss = None
    if point.encoder is not None:
        loss = EncoderRecord.read(layout.encoder(point.encoder) / "training.json").loss
    return Figure(point, score["mean"], score["std"], loss)
