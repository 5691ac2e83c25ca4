"""Lines of the results table as text: one for the floor, one per teacher, one per method.

Markdown, terminal and page show the same cells, but different columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.schema import Gain, ParameterCounts, Ratio, Scores, SeedScores, TaskScores
from pipeline_lib.results.speed import Kind
from pipeline_lib.results.table import Table

NONE = "–"
QUALITY = {
    "dev": "Dev",
    "test": "Test",
    "gain": "Gain",
    "interval": "Interval",
    "p": "p (Holm)",
    "to_teacher": "To teacher",
    "agreement": "Agreement",
}
TRAINING = {"rate": "Rate", "steps": "Steps × batch", "rows": "Rows"}
"""Fields of :class:`TableLine`, and their heads."""


@dataclass(frozen=True)
class TableLine:
    """One system's cells, ready to print; scores are in percent.

    :ivar score: on the split of the gain.
    """

    system: str
    dev: str
    test: str
    score: str
    gain: str = NONE
    interval: str = NONE
    p: str = NONE
    to_teacher: str = NONE
    agreement: str = NONE
    parameters: str = NONE
    ratio: str = NONE
    rate: str = NONE
    steps: str = NONE
    rows: str = NONE
    speed: str = NONE
    speed_up: str = NONE

    @property
    def gain_with_interval(self) -> str:
        """The gain, its p and its interval, in two lines."""
        return self.gain if self.interval == NONE else f"{self.gain} p {self.p}\n{self.interval}"


def rows(result: TaskResult, split: str | None = None) -> list[TableLine]:
    """Return the table of one task, in the order floor, teachers, methods.

    :param split: of gains, distances and agreement; by default the decisive one.
    """
    scores, split = result.scores, split or result.scores.decisive_split
    teachers = [_teacher(result, name, split) for name in scores.teachers]
    methods = [_method(result, name, split) for name in scores.methods]
    floor = [] if scores.floor.answer is None else [_floor(scores, split)]
    return [*floor, *teachers, *methods]


def scores_table(result: TaskResult, title: str, *groups: Mapping[str, str], split: str | None = None) -> Table:
    """Return some columns of the table of one task, without lines that are empty in all of them.

    :param groups: fields of :class:`TableLine` to their heads; see :meth:`Table.of_columns`.
    :param split: see :func:`rows`.
    """
    fields = [name for group in groups for name in group]
    lines = [one for one in rows(result, split) if {getattr(one, name) for name in fields} != {NONE}]
    columns = [{head: [getattr(line, name) for line in lines] for name, head in group.items()} for group in groups]
    return Table.of_columns(title, [one.system for one in lines], *columns)


def _floor(scores: TaskScores, split: str) -> TableLine:
    answer = scores.floor.answer
    name = f"always {answer:.2f}" if isinstance(answer, float) else f"always {answer}"
    splits = ("dev", "test", split)
    return TableLine(name, *(_scores(scores.floor.scores, one, scores) for one in splits))


def _teacher(result: TaskResult, name: str, split: str) -> TableLine:
    scores, teacher = result.scores, result.scores.teachers[name]
    speed = rate(result, "teachers", name)
    return TableLine(
        f"teacher {name}",
        *(_scores(teacher.scores, one, scores) for one in ("dev", "test", split)),
        parameters=or_dash(_millions, teacher.parameters),
        speed=or_dash(significant, speed),
        speed_up="1×" if speed else NONE,
    )


def _method(result: TaskResult, name: str, split: str) -> TableLine:
    scores, method = result.scores, result.scores.methods[name]
    gain, training = method.gain[split], method.training
    speed = rate(result, "students", method.student)
    teacher_speed = rate(result, "teachers", method.teacher)
    return TableLine(
        name,
        *(_seed_scores(method.scores, one, scores) for one in ("dev", "test", split)),
        gain=signed(gain.difference) if gain else NONE,
        interval=interval(gain),
        p=p_value(gain.p_holm) if gain and gain.p_holm is not None else NONE,
        to_teacher=or_dash(signed, method.against_teacher[split]),
        agreement=or_dash(percent, method.agreement[split]),
        parameters=_millions(method.parameters),
        ratio=or_dash(_times, method.ratio),
        rate=f"{training.learning_rate:g}",
        steps=f"{training.steps:,} × {training.batch_size}",
        rows=f"{training.rows:,}",
        speed=or_dash(significant, speed),
        speed_up=_multiple(speed / teacher_speed) if speed and teacher_speed else NONE,
    )


def rate(result: TaskResult, kind: Kind, name: str) -> float | None:
    """Return the rate on one core of a teacher or a student architecture in its fastest form."""
    fastest = result.speed and result.speed.fastest(kind, name)
    return fastest[1].rates["one_core"].median if fastest else None


def _scores(by_split: dict[str, Scores | None], split: str, scores: TaskScores) -> str:
    """Return the value of every metric, or say that the split is hidden or absent."""
    value = by_split.get(split)
    if value is None:
        return _unscored(split, scores)
    return " / ".join(percent(value[metric]) for metric in scores.metrics)


def _seed_scores(by_split: dict[str, dict[str, SeedScores] | None], split: str, scores: TaskScores) -> str:
    """Return the mean of every metric, and the first one's standard deviation over seeds."""
    value = by_split.get(split)
    if value is None:
        return _unscored(split, scores)
    means = [percent(value[metric].mean) for metric in scores.metrics]
    first = value[scores.metric]
    if len(first.by_seed) > 1:
        means[0] += f" ± {100 * first.std:.1f}"
    return " / ".join(means)


def _unscored(split: str, scores: TaskScores) -> str:
    if split in scores.scored_splits:
        return "no answers"
    if split in scores.rows and not scores.scored_splits:
        return "no labels"
    return "hidden" if split in scores.rows else "absent"


def or_dash(show: Callable[[Any], str], value: Any) -> str:
    """Return a value as text, or a dash if there is none."""
    return NONE if value is None else show(value)


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    """Return a difference of shares in points."""
    # Rounded first, so that a difference of -0.0001 reads +0.0 and not -0.0.
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def interval(gain: Gain | None) -> str:
    """Return a gain's interval; a single seed has none, as its training noise is unknown."""
    if gain is None or gain.low is None or gain.high is None:
        return NONE
    return f"[{signed(gain.low)}, {signed(gain.high)}]"


def p_value(p: float) -> str:
    """Return a p-value as text; the smallest ones are shown as a bound."""
    return "≤0.001" if p <= 0.001 else f"{p:.3f}"


def _millions(parameters: ParameterCounts) -> str:
    small, whole = parameters.without_embeddings, parameters.with_embeddings
    return f"{small / 1e6:.2f} / {whole / 1e6:.2f}"


def _times(ratio: Ratio) -> str:
    return f"{_multiple(ratio.without_embeddings)} / {_multiple(ratio.with_embeddings)}"


def _multiple(value: float) -> str:
    return f"{value:.0f}×" if value >= 10 else f"{value:.1f}×"


def significant(value: float) -> str:
    """Return a timing with three significant digits: it has no more."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def megabytes(size: int) -> str:
    """Return a number of bytes in MB, with two significant digits below 10."""
    return f"{size / 1e6:.2g}" if size < 9.95e6 else f"{size / 1e6:,.0f}"
