"""A task's tables: scores, speed, what each step adds, calibration, routing; their captions are in captions.txt.

Terminal, Markdown, page and model card show the same columns.  Scores are in percent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pipeline_lib.base.promises import LEVEL
from pipeline_lib.params import Params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.schema import Changed, MethodScores, SeedScores, TaskScores, TeacherScores
from pipeline_lib.results.significance import CONFIDENCE
from pipeline_lib.results.speed import Form, Kind, Place
from pipeline_lib.results.splits import shared_line
from pipeline_lib.results.table import NONE, Column, Table, gain_cell, megabytes, multiple, percent, signed, significant

CAPTIONS = "captions.txt"
MAX_RECALLS = 4
"""With more classes than this, only the lowest recall is shown."""
HEADS: dict[str, str] = {
    "nll": "NLL",
    "ece": "ECE",
    "accuracy_at_50": "Top 50 %",
    "accuracy_at_80": "Top 80 %",
    "mean_absolute_error": "Mean error",
}
CHANGED: dict[Changed, str] = {
    "start": "where it starts",
    "answers": "what it learns",
    "sentences": "its sentences",
    "decision": "its decision",
    "optimiser": "its optimiser",
}
IN_PERCENT: tuple[str, ...] = ("ece", "accuracy_at_50", "accuracy_at_80")


@dataclass(frozen=True)
class System:
    """What a line of the tables is about: the floor, a teacher or a method.

    :ivar scores: by split and metric; :ivar scored: None for the floor.
    :ivar rate: on one core, in its fastest form; :ivar slower: its teacher's.
    """

    name: str
    scores: Mapping[str, Mapping[str, SeedScores | float] | None]
    scored: TeacherScores | MethodScores | None = field(default=None)
    rate: float | None = None
    slower: float | None = None


def task_tables(result: TaskResult, timed: bool, split: str | None = None) -> dict[str, Table]:
    """Return a task's tables by name, without those that have nothing to show.

    :param timed: whether timings may be shown, which differ from run to run.
    :param split: a further split; by default dev and test, with gains on the decisive one.
    """
    tables = {
        "scores": scores_table(result, timed, split),
        "speed": speeds(result) if timed and split is None else None,
        "steps": steps(result, split),
        "calibration": calibration(result, split),
        "routing": routing(result, timed, split),
    }
    return {name: table for name, table in tables.items() if table is not None}


def all_tables(result: TaskResult, params: Params, timed: bool) -> list[Table]:
    """Return a task's tables, and those of its further labelled splits, such as MNLI's mismatched ones."""
    splits = (None, *result.scores.further_splits)
    scores, *others = [table for split in splits for table in task_tables(result, timed, split).values()]
    return [replace(scores, caption=scores.caption + not_run(result, params)), *others]


def systems_of(result: TaskResult) -> list[System]:
    """Return the floor, the teachers and the methods."""
    scores = result.scores
    systems = []
    if (answer := scores.floor.answer) is not None:
        name = f"always {answer:.2f}" if isinstance(answer, float) else f"always {answer}"
        systems.append(System(name, scores.floor.scores))
    for name, teacher in scores.teachers.items():
        speed = rate(result, "teachers", name)
        systems.append(System(f"teacher {name}", teacher.scores, teacher, speed, speed))
    for name, method in scores.methods.items():
        speeds_of_both = rate(result, "students", method.student), rate(result, "teachers", method.teacher)
        systems.append(System(name, method.scores, method, *speeds_of_both))
    return systems


def rate(result: TaskResult, kind: Kind, name: str) -> float | None:
    """Return the rate on one core of a teacher or a student architecture in its fastest form."""
    fastest = result.speed and result.speed.fastest(kind, name)
    return fastest[1].rates["one_core"].median if fastest else None


def scores_table(result: TaskResult, timed: bool, split: str | None = None) -> Table:
    """Return the table of the metrics; see :func:`task_tables`."""
    scores, on = result.scores, split or result.scores.decisive_split
    systems, main = systems_of(result), split is None
    columns = [
        *(Column(name.capitalize(), _score(scores, name), when=main) for name in ("dev", "test")),
        Column(on, _score(scores, on), when=not main),
        Column(f"Gain ({on})", _of_method(lambda m: gain_cell(m.gain[on]))),
        Column("To\nteacher", _of_method(lambda m: m.against_teacher[on], signed)),
        Column("Agree", _of_method(lambda m: m.agreement[on], percent)),
        Column("Params, M\nw/o / with", _parameters, main, breaks=True),
        Column("Smaller\nw/o / with", _of_method(lambda m: m.ratio, _ratio), main),
        Column("Sent./s", lambda system: system.rate and significant(system.rate), main and timed),
        Column("Faster", _faster, main and timed),
        Column("Rate", _of_method(lambda m: f"{m.training.learning_rate:g}"), main, breaks=True),
        Column("Steps × batch", _of_method(lambda m: f"{m.training.steps:,} × {m.training.batch_size}"), main),
        Column("Rows", _of_method(lambda m: f"{m.training.rows:,}"), main),
    ]
    title = f"{result.task}: {scores.metric}" + (f", gain on {on}" if main else f" on {on}")
    caption = scores_caption(result, timed) if main else captioned("further", scores, on)
    return Table.of(title, [system.name for system in systems], systems, columns, caption)


def scores_caption(result: TaskResult, timed: bool) -> list[str]:
    """Return what the scores are of, how they were selected, and what is missing."""
    scores = result.scores
    tried = {value for method in scores.methods.values() for value in method.training.best_dev_by_rate}
    first = next(iter(scores.methods.values()), None)
    facts = {
        "seeds": NONE if first is None else ", ".join(first.training.best_step),
        "rates": ", ".join(sorted(tried, key=float)) or NONE,
        "shared": shared_line(scores.shared_texts),
        "split": scores.decisive_split,
    }
    lines = captioned("scores", scores, **facts)
    if timed and result.speed is None:
        lines.append("Sentences/s: not measured yet (stage measure_speed).")
    return lines


def not_run(result: TaskResult, params: Params) -> list[str]:
    """Say which rows of params.yaml have no scores, and which scores no row."""
    methods = result.scores.methods
    absent = [name for name in params.scored_methods_of(result.task) if name not in methods]
    stale = [name for name in methods if name not in params.methods]
    lines = [f"Not run yet: {', '.join(absent)} (`distill run`)."] if absent else []
    return lines + ([f"No longer in params.yaml: {', '.join(stale)}."] if stale else [])


def captioned(macro: str, *facts: Any, **more: Any) -> list[str]:
    """Return the sentences of a macro of captions.txt."""
    text = getattr(_captions(), macro)(*facts, **more)
    return [line.strip() for line in text.splitlines() if line.strip()]


@cache
def _captions() -> Any:
    from jinja2 import Environment, FileSystemLoader

    def in_line(value: Any) -> Any:
        # A name from data may have line ends.
        return " ".join(value.splitlines()) if isinstance(value, str) else value

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, finalize=in_line)
    return environment.get_template(CAPTIONS, globals={"confidence": CONFIDENCE}).module


def speeds(result: TaskResult) -> Table | None:
    """Return the timings of every form of every system that was timed."""
    speed = result.speed
    if speed is None:
        return None
    systems = {f"teacher {name}": timed for name, timed in speed.teachers.items()}
    systems |= {timed.method: timed for timed in speed.students.values()}
    forms = {f"{name}, {kind}": form for name, timed in systems.items() for kind, form in timed.forms.items()}
    heads: dict[Place, str] = {"one_core": "One\ncore", "all_cores": f"{speed.cores}\ncores"}
    heads["accelerator"] = speed.accelerator or ""
    columns = [Column(head, _rate_on(hardware)) for hardware, head in heads.items()]
    columns += [
        Column("One text\n(ms)", lambda form: form.latency_ms and significant(form.latency_ms), breaks=True),
        Column("Size\n(MB)", lambda form: megabytes(form.bytes)),
    ]
    title = f"{result.task}: {'pairs' if speed.pair else 'sentences'} per second"
    return Table.of(title, [*forms], [*forms.values()], columns, captioned("speed", speed))


def calibration(result: TaskResult, split: str | None = None) -> Table | None:
    """Return the measures besides the metrics; None if nothing is scored, because no split has labels."""
    scores, on = result.scores, split or result.scores.decisive_split
    systems = [system for system in systems_of(result) if system.scored is not None]
    scored = next((details for system in systems if (details := system.scored.details.scores[on])), None)
    if scored is None:
        return None
    details = [detail for detail in HEADS if detail in scored]
    gains = [_detail_gain(detail, on) for detail in details]
    columns = [
        Column("Learned from", _of_method(lambda m: m.learned_from)),
        *(Column(HEADS[detail], _detail(detail, on)) for detail in details),
        *(Column(f"{HEADS[d]} gain", gain, breaks=d == details[0]) for d, gain in zip(details, gains, strict=True)),
        Column("Recall", lambda system: _recall(system, on, scores.labels), scores.of_kind.has_probabilities),
    ]
    lowest = f"the lowest of all {scores.of_kind.calls}"
    recalled = " / ".join(scores.labels) if len(scores.labels) <= MAX_RECALLS else lowest
    caption = captioned("calibration", scores, recalled) if split is None else []
    title = f"{result.task}: {scores.of_kind.details_are} on {on}"
    return Table.of(title, [system.name for system in systems], systems, columns, caption)


def routing(result: TaskResult, timed: bool, split: str | None = None) -> Table | None:
    """Return what each method may answer alone, how often it then agrees with its teacher, and the resulting accuracy.

    The thresholds are dev's in any case.  Cost is in time if that may be shown and was measured.
    """
    on = split or result.scores.decisive_split
    routed = [
        system for system in systems_of(result) if isinstance(system.scored, MethodScores) and system.scored.routing
    ]
    if not routed:
        return None
    timed = timed and all(system.rate and system.slower for system in routed)
    other, is_scored = on != "dev", on in routed[0].scored.routing.teacher_accuracy

    def best(show: Callable[[Any], str]) -> Callable[[System], str]:
        return lambda system: show(system.scored.routing.best)

    def in_time(system: System) -> str:
        return f"{system.slower / system.rate + system.scored.routing.best.routed[on]:.2f}"

    columns = [
        Column("Alone\n(dev)", best(lambda point: percent(1 - point.routed["dev"]))),
        Column(f"Alone\n({on})", best(lambda point: percent(1 - point.routed[on])), when=other),
        Column(f"As teacher\n({on})", lambda system: percent(system.scored.routing.agreement[on])),
        Column(on.capitalize(), best(lambda point: spread(point.accuracy[on])), when=is_scored),
        Column("Teacher", lambda system: percent(system.scored.routing.teacher_accuracy[on]), when=is_scored),
        Column("Cost\n(time)", in_time, when=timed),
        Column("Cost\n(parameters)", best(lambda point: f"{point.cost[on]:.2f}"), when=not timed),
    ]
    title = f"{result.task}: routing" + f" on {on}" * (split is not None)
    figure = routed[0].scored.routing.figure
    caption = captioned("routing", figure, LEVEL, "seconds" if timed else "parameters") if split is None else []
    return Table.of(title, [system.name for system in routed], routed, columns, caption)


def steps(result: TaskResult, split: str | None = None) -> Table | None:
    """Return what each step adds to the first metric; None if no row is one step from another."""
    scores, on = result.scores, split or result.scores.decisive_split
    gained = [step for step in scores.steps if step.gain[on] is not None]
    if not gained:
        return None
    columns = [
        Column("Over", lambda step: step.previous),
        Column("What differs", lambda step: CHANGED[step.changed]),
        Column("Gain", lambda step: gain_cell(step.gain[on])),
    ]
    title = f"{result.task}: what each step adds on {on}"
    return Table.of(title, [step.method for step in gained], gained, columns)


def spread(value: SeedScores, show: Callable[[float], str] = percent) -> str:
    """Return a mean and, over several seeds, its standard deviation."""
    return show(value.mean) + (f" ± {show(value.std)}" if len(value.by_seed) > 1 else "")


def _of_method(get: Callable[[MethodScores], Any], show: Callable[[Any], str] = str) -> Callable[[System], str | None]:
    def cell(system: System) -> str | None:
        value = get(system.scored) if isinstance(system.scored, MethodScores) else None
        return None if value is None else show(value)

    return cell


def _score(scores: TaskScores, split: str) -> Callable[[System], str]:
    """Show every metric, the first with its spread, or say that the split is hidden or absent."""

    def cell(system: System) -> str:
        by_metric = system.scores.get(split)
        if by_metric is None:
            return _unscored(split, scores)
        values = [by_metric[metric] for metric in scores.metrics]
        means = [percent(value.mean if isinstance(value, SeedScores) else value) for value in values]
        return " / ".join([spread(values[0]) if isinstance(values[0], SeedScores) else means[0], *means[1:]])

    return cell


def _unscored(split: str, scores: TaskScores) -> str:
    if split in scores.scored_splits:
        return "no answers"
    if split in scores.rows and not scores.scored_splits:
        return "no labels"
    return "hidden" if split in scores.rows else "absent"


def _parameters(system: System) -> str | None:
    counts = system.scored and system.scored.parameters
    return counts and f"{counts.without_embeddings / 1e6:.2f} / {counts.with_embeddings / 1e6:.2f}"


def _ratio(ratio: Any) -> str:
    # A regression consists of tables.
    without = NONE if ratio.without_embeddings >= 10_000 else multiple(ratio.without_embeddings)
    return f"{without} / {multiple(ratio.with_embeddings)}"


def _faster(system: System) -> str | None:
    if isinstance(system.scored, TeacherScores):
        return system.rate and "1×"
    return multiple(system.rate / system.slower) if system.rate and system.slower else None


def _rate_on(hardware: Place) -> Callable[[Form], str | None]:
    return lambda form: significant(form.rates[hardware].median) if hardware in form.rates else None


def _detail(detail: str, split: str) -> Callable[[System], str | None]:
    def show(value: float) -> str:
        return percent(value) if detail in IN_PERCENT else f"{value:.3f}"

    def cell(system: System) -> str | None:
        by_detail = system.scored.details.scores[split]
        if by_detail is None:
            return None
        value = by_detail[detail]
        if not isinstance(value, SeedScores):
            return show(value)
        return show(value.mean) if detail.startswith("accuracy_at") else spread(value, show)

    return cell


def _detail_gain(detail: str, split: str) -> Callable[[System], str | None]:
    unit = (100, 1) if detail in IN_PERCENT else (1, 3)
    return _of_method(lambda method: gain_cell((method.details.gain[split] or {}).get(detail), *unit))


def _recall(system: System, split: str, labels: list[str]) -> str | None:
    recalled = system.scored.details.recall[split]
    if recalled is None:
        return None
    recalls = [recalled[label] for label in labels if label in recalled]
    shares = [share.mean if isinstance(share, SeedScores) else share for share in recalls]
    return " / ".join(map(percent, shares if len(shares) <= MAX_RECALLS else [min(shares)]))
