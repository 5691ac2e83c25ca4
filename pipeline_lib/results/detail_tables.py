"""The tables besides the scores: speed, calibration, routing, and the gain of each step.

Cost is in time if speeds were measured and may be shown, else in parameters.
"""

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.schema import Changed, Gain, MethodScores, SeedScores, TaskScores, TeacherScores
from pipeline_lib.results.speed import Form, Place
from pipeline_lib.results.table import Table
from pipeline_lib.results.table_rows import (
    NONE,
    interval,
    megabytes,
    or_dash,
    p_value,
    percent,
    rate,
    signed,
    significant,
)

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


def speeds(result: TaskResult) -> Table | None:
    """Return the timings of every form of every system that was timed.

    :returns: None if none was.
    """
    speed = result.speed
    if speed is None:
        return None
    systems = {f"teacher {name}": timed for name, timed in speed.teachers.items()}
    systems |= {timed.method: timed for timed in speed.students.values()}
    forms = {f"{name}, {kind}": form for name, timed in systems.items() for kind, form in timed.forms.items()}
    heads = {"one_core": "One\ncore", "all_cores": f"{speed.cores}\ncores"}
    heads["accelerator"] = speed.accelerator or ""
    rates: dict[str, list[str]] = {
        head: [_rate(form, hardware) for form in forms.values()]
        for hardware, head in heads.items()
        if any(hardware in form.rates for form in forms.values())
    }
    more = {
        "One text\n(ms)": [or_dash(significant, form.latency_ms) for form in forms.values()],
        "Cold start\n(s)": [or_dash(significant, form.cold_start and form.cold_start.wall) for form in forms.values()],
        "Size\n(MB)": [megabytes(form.bytes) for form in forms.values()],
        "As in torch\n(%)": [or_dash(percent, form.agreement) for form in forms.values()],
    }
    unit = "pairs" if speed.pair else "sentences"
    title = f"{result.task}: {unit} per second"
    return Table.of_columns(title, [*forms], rates, more)


def _rate(form: Form, hardware: Place) -> str:
    return significant(form.rates[hardware].median) if hardware in form.rates else NONE


def calibration(result: TaskResult, split: str | None = None) -> Table | None:
    """Return the measures besides the metrics, for teachers and methods.

    :param split: by default the decisive one.
    :returns: None if nothing is scored, because no split has labels.
    """
    scores, split = result.scores, split or result.scores.decisive_split
    systems: list[TeacherScores | MethodScores] = [*scores.teachers.values(), *scores.methods.values()]
    scored = next((details for system in systems if (details := system.details.scores[split])), None)
    if scored is None:
        return None
    known = [detail for detail in HEADS if detail in scored]
    columns = {"Learned from": [_source(system) for system in systems]}
    for detail in known:
        columns[HEADS[detail]] = [_cell(system, detail, split) for system in systems]
    more = {
        f"{HEADS[detail]} gain": [_gain(system, detail, split) for system in systems]
        for detail in known
        if any(_gain(system, detail, split) != NONE for system in systems)
    }
    if KINDS[scores.kind].has_probabilities:
        more["Recall"] = [_recall(system, split, scores.labels) for system in systems]
    names = [f"teacher {name}" for name in scores.teachers] + [*scores.methods]
    title = f"{result.task}: {KINDS[scores.kind].details_are} on {split}"
    return Table.of_columns(title, names, columns, more)


def routing(result: TaskResult, timed: bool, split: str | None = None) -> Table | None:
    """Return the smallest share that each method routes to its teacher, and the resulting accuracy.

    :param timed: whether cost may be given in time.
    :param split: by default the decisive one; the share is that of dev in any case.
    :returns: None if nothing is routed: for a regression, or without methods.
    """
    scores, split = result.scores, split or result.scores.decisive_split
    routed = {name: method for name, method in scores.methods.items() if method.routing}
    if not routed:
        return None
    best = [method.routing.best for method in routed.values()]
    columns = {"Routed\n(dev)": [percent(point.routed["dev"]) for point in best]}
    columns["Dev"] = [percent(point.accuracy["dev"].mean) for point in best]
    if split != "dev":
        columns[f"Routed\n({split})"] = [percent(point.routed[split]) for point in best]
        columns[split.capitalize()] = [_accuracy(point.accuracy[split]) for point in best]
    columns["Teacher"] = [percent(method.routing.teacher_accuracy[split]) for method in routed.values()]
    timed = timed and all(_timed_cost(result, method, split) for method in routed.values())
    columns["Cost\n(time)" if timed else "Cost\n(parameters)"] = [
        f"{_timed_cost(result, method, split) if timed else method.routing.best.cost[split]:.2f}"
        for method in routed.values()
    ]
    title = f"{result.task}: routing" + f" on {split}" * (split in scores.further_splits)
    return Table.of_columns(title, [*routed], columns)


def steps(result: TaskResult, split: str | None = None) -> Table | None:
    """Return what each step adds to the first metric.

    :param split: by default the decisive one.
    :returns: None if no row is one step from another, or nothing is scored.
    """
    scores, split = result.scores, split or result.scores.decisive_split
    gains = [(step, gain) for step in scores.steps if (gain := step.gain[split]) is not None]
    if not gains:
        return None
    columns = {
        "Over": [step.previous for step, _ in gains],
        "What differs": [CHANGED[step.changed] for step, _ in gains],
        "Gain": [signed(gain.difference) for _, gain in gains],
        "Interval": [interval(gain) for _, gain in gains],
        "p (Holm)": [NONE if gain.p_holm is None else p_value(gain.p_holm) for _, gain in gains],
    }
    title = f"{result.task}: what each step adds on {split}"
    return Table.of_columns(title, [step.method for step, _ in gains], columns)


def notes(result: TaskResult, timed: bool) -> list[str]:
    """Return the captions of the tables of calibration and routing."""
    scores = result.scores
    if calibration(result) is None:
        return []
    kind = KINDS[scores.kind]
    if not kind.has_probabilities:
        return [kind.detail_notes]
    lines = [
        "Learned from: gold (labels), a teacher's answers, or both. NLL: negative log-likelihood in nats; ECE: "
        "expected calibration error in percent, over 15 bins of equal mass (Guo et al. 2017, Nguyen and O'Connor "
        f"2015); {kind.detail_notes}. Gains over the baseline as above, below zero is better.",
        f"Recall: {_recalled(scores)}.",
    ]
    scaled = [
        f"{name} {', '.join(f'{value:.2f}' for value in method.details.temperature.values())}"
        for name, method in scores.methods.items()
        if method.details.temperature
    ]
    if scaled:
        lines.append(f"Temperatures by seed, chosen on dev by NLL: {'; '.join(scaled)}.")
    if table := routing(result, timed):
        first = next(method.routing for method in scores.methods.values() if method.routing)
        cost = "seconds" if any("time" in head for head in table.header) else "parameters"
        within = f"{100 * first.max_loss:.1f} points"
        lines.append(
            "Routing: the smallest share of rows, those that the student is least sure of, that the teacher must "
            f"answer to keep its accuracy within {within}, on dev and with a margin of one standard error; accuracy of "
            f"the two together; cost: {cost} per row, relative to the teacher's."
        )
    return lines


def _recalled(scores: TaskScores) -> str:
    if len(scores.labels) > MAX_RECALLS:
        return f"the lowest of all {KINDS[scores.kind].calls}"
    return " / ".join(scores.labels)


def _source(system: TeacherScores | MethodScores) -> str:
    return system.learned_from if isinstance(system, MethodScores) else NONE


def _cell(system: TeacherScores | MethodScores, detail: str, split: str) -> str:
    scored = system.details.scores[split]
    if scored is None:
        return NONE
    value = scored[detail]
    if not isinstance(value, SeedScores):
        return _number(detail, value)
    cell = _number(detail, value.mean)
    spread = len(value.by_seed) > 1 and detail not in ("accuracy_at_50", "accuracy_at_80")
    return f"{cell} ± {_number(detail, value.std)}" if spread else cell


def _number(detail: str, value: float) -> str:
    return percent(value) if detail in IN_PERCENT else f"{value:.3f}"


def _gain(system: TeacherScores | MethodScores, detail: str, split: str) -> str:
    gains = system.details.gain[split] if isinstance(system, MethodScores) else None
    if gains is None or detail not in gains:
        return NONE
    return _difference(gains[detail], detail)


def _difference(gain: Gain, detail: str) -> str:
    def shown(value: float) -> str:
        return signed(value) if detail in IN_PERCENT else f"{round(value, 3) + 0.0:+.3f}"

    if gain.low is None or gain.high is None or gain.p_holm is None:
        return shown(gain.difference)
    interval = f"[{shown(gain.low)}, {shown(gain.high)}]"
    return f"{shown(gain.difference)} p {p_value(gain.p_holm)}\n{interval}"


def _recall(system: TeacherScores | MethodScores, split: str, labels: list[str]) -> str:
    recalled = system.details.recall[split]
    if recalled is None:
        return NONE
    recalls = [recalled.get(label) for label in labels]
    shares = [share.mean if isinstance(share, SeedScores) else share for share in recalls]
    shares = [share for share in shares if share is not None]
    return " / ".join(map(percent, shares if len(shares) <= MAX_RECALLS else [min(shares)]))


def _accuracy(value: SeedScores) -> str:
    spread = f" ± {percent(value.std)}" if len(value.by_seed) > 1 else ""
    return percent(value.mean) + spread


def _timed_cost(result: TaskResult, method: MethodScores, split: str) -> float | None:
    """Return seconds per row relative to the teacher's, or None if they were not measured."""
    student = rate(result, "students", method.student)
    teacher = rate(result, "teachers", method.teacher)
    if not student or not teacher:
        return None
    return teacher / student + method.routing.best.routed[split]
