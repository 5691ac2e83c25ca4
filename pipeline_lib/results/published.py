"""The papers' figures, from ``published.yaml``, and the scores here beside those they reproduce.

Published scores are in percent, as they are printed; what is computed from them is in points.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import BaseModel, Field, computed_field, model_validator
from ruamel.yaml import YAML

from pipeline_lib.base.record_files import Record
from pipeline_lib.base.workspace import shipped
from pipeline_lib.params import CORRELATIONS, Metric, Params, load_params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.schema import MethodScores, TaskScores
from pipeline_lib.results.table import Table
from pipeline_lib.results.table_rows import NONE, signed

FILE = Path(__file__).with_name("published.yaml")
TASKS = ("sst2", "cola", "mrpc", "qqp", "stsb", "mnli", "mnli_mismatched", "qnli", "rte", "wnli")
OTHERS = ("all", "wikipedia")
"""What figures are of that are of no single task, or of none."""
Shift = Literal["accuracy_gain", "f1_gain", "average", "degradation", "improvement"]
Size = Literal[
    "parameters",
    "times_larger",
    "seconds",
    "times_slower",
    "speed_up",
    "hours",
    "minutes",
    "batch_size",
    "seconds_per_batch",
    "loss",
]
"""Measures that have no split."""
Measure = Metric | Shift | Size
Split = Literal["dev", "test", "unstated"]
SIGNED = (*CORRELATIONS, "matthews_correlation", *get_args(Shift))
TEACHER = "teacher "
"""What the names of teachers begin with in tables, and in ``ours``."""
SETTINGS = ("tasks", "transfer", "models", "teachers", "vocabulary", "students", "optimisers")
SETTINGS += ("sentence_vectors", "encoders", "joint", "methods", "wikipedia")
"""Sections of params.yaml that decide a score."""


class Paper(Record):
    """A paper whose tables are in the file."""

    authors: str
    year: int
    title: str


class Figure(Record):
    """One figure of a paper's table.

    :ivar split: None if it is no score.
    :ivar baseline: the row of the same table that the row's gain is over.
    :ivar ours: the rows of params.yaml that reproduce the row, teachers as ``teacher NAME``.
    :ivar profiles: the profiles that have them.
    """

    paper: str
    table: str
    row: str
    task: str
    measure: Measure
    split: Split | None
    value: float
    baseline: str | None
    ours: tuple[str, ...]
    profiles: tuple[str, ...]

    @property
    def key(self) -> tuple[str | None, ...]:
        """What no other figure has."""
        return (self.paper, self.table, self.row, self.task, self.measure, self.split)


class _Table(Record):
    """A table as the file has it: figures by row, in the order of the columns."""

    paper: str
    table: str
    profiles: tuple[str, ...] = ()
    columns: list[str]
    rows: dict[str, list[float | None]]
    baselines: dict[str, str] = Field(default_factory=dict)
    ours: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        named = {*self.baselines, *self.baselines.values(), *self.ours}
        if unknown := named - {*self.rows}:
            raise ValueError(f"table {self.table} of {self.paper} has no row {min(unknown)!r}")
        if self.ours and not self.profiles:
            raise ValueError(f"table {self.table} of {self.paper}: `ours` goes with `profiles`")
        return self

    def figures(self) -> Iterator[Figure]:
        for row, values in self.rows.items():
            for column, value in zip(self.columns, values, strict=True):
                if value is None:
                    continue
                task, measure, *split = column.split(" ")
                yield Figure(
                    paper=self.paper,
                    table=self.table,
                    row=row,
                    task=task,
                    measure=measure,
                    split=split[0] if split else None,
                    value=value,
                    baseline=self.baselines.get(row),
                    ours=self.ours.get(row, ()),
                    profiles=self.profiles,
                )


class _File(Record):
    papers: dict[str, Paper]
    tables: list[_Table]


class Published:
    """All figures, in the order of the file, and their papers by key."""

    def __init__(self, file: _File) -> None:
        self.papers = file.papers
        self.figures = [figure for table in file.tables for figure in table.figures()]
        self._by_key = {figure.key: figure for figure in self.figures}

    def baseline(self, figure: Figure) -> Figure | None:
        """Return the same figure of the row's baseline, or None if the table has none."""
        if figure.baseline is None:
            return None
        paper, table, _, *rest = figure.key
        return self._by_key.get((paper, table, figure.baseline, *rest))

    def source(self, figure: Figure) -> str:
        """Return where a figure stands, in words."""
        paper = self.papers[figure.paper]
        return f"{paper.authors} {paper.year}, table {figure.table}"


@cache
def read_published() -> Published:
    """Read the papers' figures that travel with the library."""
    values = YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8"))
    return Published(_File.model_validate(values))


class Comparison(Record):
    """A published score and its gain beside ours, all in percent or points.

    :ivar task: ours, which has the published one's mismatched part as a split.
    :ivar split: the one that ours is on.
    :ivar seeds: none for a teacher.
    :ivar gain: over the row that reproduces the paper's baseline, whatever the row's own is.
    :ivar low: of the interval of the gain, if the results have that of the same gain.
    """

    task: str
    system: str
    source: str
    published: Figure
    published_gain: float | None
    split: str
    score: float
    std: float | None
    seeds: list[str]
    gain: float | None
    low: float | None
    high: float | None

    @computed_field
    @property
    def difference(self) -> float | None:
        """Our gain minus the paper's, in points; None if one of them is unknown."""
        known = self.gain is not None and self.published_gain is not None
        return self.gain - self.published_gain if known else None


def compare(results: Sequence[TaskResult], params: Params | None = None) -> list[Comparison]:
    """Return the published scores that have a counterpart among the results.

    A row's counterpart has its name and task, and in a profile of the paper the same start,
    objective, synthetic sentences and architecture.

    :param params: of the results; by default, names alone are compared.
    """
    compared = []
    # Other tasks are in no table: then the file is not read at all.
    for result in (one for one in results if one.task in TASKS):
        systems = [f"{TEACHER}{name}" for name in result.scores.teachers]
        for system in [*systems, *result.scores.methods]:
            for figure in read_published().figures:
                same_task = figure.task.partition("_")[0] == result.task
                if same_task and _reproduces(system, figure, params):
                    one = _compared(result, system, figure, params)
                    compared += [] if one is None else [one]
    return compared


def published_table(compared: Sequence[Comparison], params: Params) -> Table | None:
    """Return the published scores and gains beside ours, or None if there are none."""
    if not compared:
        return None
    scores = {
        "Metric": [one.published.measure for one in compared],
        "Published in": [f"{one.source}\n{one.published.row}" for one in compared],
        "Paper": [f"{one.published.value}\n{one.published.split}" for one in compared],
        "Ours": [f"{_score(one)}\n{one.split}" for one in compared],
    }
    gains = {
        "Paper's gain": [_signed(one.published_gain) for one in compared],
        "Our gain": [_gain(one) for one in compared],
        "Difference": [_signed(one.difference) for one in compared],
    }
    systems = [f"{one.published.task}: {one.system}" for one in compared]
    caption = [
        "In percent; below each score, its split. Ours is the mean ± standard deviation over the seeds. A gain is over "
        "the undistilled row of the paper's table, and ours over the row that reproduces it, with its interval if that "
        "is the row's baseline. The difference is that of the gains.",
        *_deviations(compared, params),
    ]
    table = Table.of_columns("Published figures beside ours", systems, scores, gains)
    return replace(table, caption=caption)


def without_counterpart() -> str:
    """Say that the papers' tables have nothing to compare the results with."""
    named = sorted({name for figure in read_published().figures for name in figure.profiles})
    return (
        "The papers' tables have no counterpart of these tasks and rows: this is a run of none of "
        f"the papers' profiles ({', '.join(named)})."
    )


def _compared(result: TaskResult, system: str, figure: Figure, params: Params | None) -> Comparison | None:
    """Return a figure beside ours, or None if the results have no such score."""
    published, scores, metric = read_published(), result.scores, figure.measure
    split = _split(figure, scores)
    ours = split and _mean(scores, system, split, metric)
    if ours is None:
        return None
    baseline, method = published.baseline(figure), scores.methods.get(system)
    over = method and baseline and _over(method, baseline, scores, params)
    base = _mean(scores, over, split, metric) if over else None
    # The interval that the results have is of the first metric, over the row's own baseline.
    is_tested = base is not None and method.baseline == over and metric == scores.metric
    tested = method.gain.get(split) if is_tested else None
    seeds = method.scores[split][metric] if method else None
    return Comparison(
        task=result.task,
        system=system,
        source=published.source(figure),
        published=figure,
        published_gain=round(figure.value - baseline.value, 2) if baseline else None,
        split=split,
        score=100 * ours,
        std=100 * seeds.std if seeds and len(seeds.by_seed) > 1 else None,
        seeds=list(seeds.by_seed) if seeds else [],
        gain=None if base is None else 100 * (ours - base),
        low=100 * tested.low if tested and tested.low is not None else None,
        high=100 * tested.high if tested and tested.high is not None else None,
    )


def _over(method: MethodScores, baseline: Figure, scores: TaskScores, params: Params | None) -> str | None:
    """Return the row that reproduces a baseline: the method's baseline, if several do."""
    names = [name for name in scores.methods if _reproduces(name, baseline, params)]
    return method.baseline if method.baseline in names else next(iter(names), None)


def _split(figure: Figure, scores: TaskScores) -> str | None:
    """Return the published split if its labels are known here, or else another of its rows."""
    suffix = figure.task.removeprefix(figure.task.partition("_")[0])
    wanted = (figure.split, scores.decisive_split, "test", "dev")
    known = (f"{split}{suffix}" for split in wanted if f"{split}{suffix}" in scores.scored_splits)
    return next(known, None)


def _mean(scores: TaskScores, system: str, split: str, metric: str) -> float | None:
    """Return a system's score, or None if there is none."""
    if system.startswith(TEACHER):
        by_metric = scores.teachers[system.removeprefix(TEACHER)].scores.get(split)
        return by_metric and by_metric.get(metric)
    by_seed = scores.methods[system].scores.get(split)
    return by_seed[metric].mean if by_seed and metric in by_seed else None


def _reproduces(system: str, figure: Figure, params: Params | None) -> bool:
    """Whether a row is a figure's, and means what it does in a profile; see :func:`compare`."""
    if system not in figure.ours:
        return False
    if params is None or system.startswith(TEACHER):
        return True
    meaning = _meaning(system, params)
    return meaning is not None and any(meaning == _meaning(system, _profile(name)) for name in figure.profiles)


def _meaning(name: str, params: Params) -> tuple[object, ...] | None:
    """Return what a row of this name learns from, or None if there is none."""
    method = params.methods.get(name)
    if method is None:
        return None
    recipe = params.transfer[method.data]
    rules = (recipe.p_mask, recipe.p_pos, recipe.p_ngram, recipe.unlabelled)
    architecture = params.students[method.student].architecture
    return method.start, method.objective, rules, architecture


@cache
def _profile(name: str) -> Params:
    return load_params(shipped("profiles") / f"{name}.yaml")


def _deviations(compared: Sequence[Comparison], params: Params) -> list[str]:
    """Say for each paper's profile, the closest of several, which sections have other settings."""
    sentences = []
    for names in dict.fromkeys(one.published.profiles for one in compared):
        others = {name: _other_settings(compared, params, _profile(name)) for name in names}
        closest = min(others, key=lambda name: len(others[name]))
        if others[closest]:
            sentences.append(
                f"This is not a run of profile {closest}: its settings are others in "
                f"{', '.join(others[closest])}. Compare the gains, not the scores."
            )
    return [*dict.fromkeys(sentences)]


def _other_settings(compared: Sequence[Comparison], params: Params, profile: Params) -> list[str]:
    """Return the sections in which what was compared is not as in a profile."""
    compared_rows = {"tasks": {one.task for one in compared}, "methods": {one.system for one in compared}}
    sections = []
    for section in SETTINGS:
        here, there = getattr(params, section), getattr(profile, section)
        if isinstance(there, dict):
            # What the profile does besides may be left out here.
            rows = compared_rows.get(section, {*there}) & {*there}
            same = all(_settings(here.get(row)) == _settings(there[row]) for row in rows)
        else:
            same = there is None or here == there
        sections += [] if same else [section]
    return sections


def _settings(row: BaseModel | None) -> dict[str, object] | None:
    """Return what affects a row's scores."""
    return row and row.model_dump(exclude={"blocks", "submission"})


def _score(one: Comparison) -> str:
    return f"{one.score:.1f}" + ("" if one.std is None else f" ± {one.std:.1f}")


def _gain(one: Comparison) -> str:
    interval = "" if one.low is None else f"\n[{_signed(one.low)}, {_signed(one.high)}]"
    return _signed(one.gain) + interval


def _signed(points: float | None) -> str:
    return NONE if points is None else signed(points / 100)
