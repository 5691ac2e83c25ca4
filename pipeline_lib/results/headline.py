"""The sentences that people come for: student against teacher in quality, speed and size."""

from collections.abc import Iterator

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.expectations import expected
from pipeline_lib.results.schema import FEW_DEV_ROWS, MethodScores, TaskScores
from pipeline_lib.results.speed import Form, Place, TaskSpeed
from pipeline_lib.results.table import megabytes, percent, significant


def headline(result: TaskResult, timed: bool = True) -> str:
    """Return what the task's best student on dev is worth beside its teacher, in a few sentences."""
    scores = result.scores
    best = scores.best_on_dev()
    if best is None:
        return f"{result.task}: no student has been evaluated."
    student = scores.methods[best]
    sentences = [*_agreement(scores, student), *_further(scores, student)]
    speed = _speed(result.speed, scores, student) if timed else ()
    quality, warnings = _quality(scores, best), [*_warnings(scores, student)]
    quality = quality[0].upper() + quality[1:] if warnings else quality
    sentences = [*warnings, quality, *_yardsticks(scores, student), *speed, *sentences]
    return f"{result.task}: {' '.join(sentences)}"


FEW_ROWS = 100
"""Of test: on fewer, a score has a standard error of up to five points."""


def _warnings(scores: TaskScores, student: MethodScores) -> Iterator[str]:
    """Say what makes the scores worth little: a teacher that does not fit, few rows, a constant that is better."""
    yield from (f"WARNING: {fault}" for teacher in scores.teachers.values() for fault in teacher.faults)
    split, metric = scores.decisive_split, scores.metric
    if (scored := student.scores[split]) is None:
        return
    if scores.rows[split] < FEW_ROWS:
        yield f"WARNING: {split} has only {scores.rows[split]} rows, so its scores say little."
    missing = [*{*scores.labels} - {*student.details.recall[split]}] if scores.of_kind.one_of else []
    if missing:
        yield f"WARNING: {split} has no row of {', '.join(sorted(missing))}."
    constant = (scores.floor.scores[split] or {}).get(metric)
    if constant is not None and scored[metric].mean < constant:
        yield f"WARNING: the constant answer {scores.floor.answer} is better, {percent(constant)} % on {split}."


def _quality(scores: TaskScores, best: str) -> str:
    split, metric, student = scores.decisive_split, scores.metric, scores.methods[best]
    which = f"the best student on dev, {best}," if len(scores.methods) > 1 else f"student {best}"
    if len(scores.methods) > 1 and scores.follows_teacher:
        which = f"the student that follows its teacher best on dev, whose {scores.rows['dev']} rows are few, {best},"
    scored = student.scores[split]
    if scored is None:
        if len(scores.methods) > 1:
            which = f"the student that agrees best with its teacher on dev, {best},"
        return f"{which} was compared with teacher {student.teacher} only: nothing is labelled."
    chosen = ", where it was chosen too" if split == "dev" else ""
    seeds = len(scored[metric].by_seed)
    mean = f" (mean of {seeds} seeds)" if seeds > 1 else ""
    value = f"{KINDS[scores.kind].metrics[metric]} of {percent(scored[metric].mean)} % on {split}{chosen}{mean}"
    return f"{which} has {value}; {_teacher_quality(scores, student, split)}."


def _yardsticks(scores: TaskScores, student: MethodScores) -> Iterator[str]:
    """Say what the best regression on labels has, which is fitted in seconds."""
    split, metric = scores.decisive_split, scores.metric
    means = {
        name: by_metric[metric].mean
        for name, method in scores.methods.items()
        if method.yardstick and (by_metric := method.scores[split])
    }
    if student.yardstick:
        how = "follows the teacher better" if scores.follows_teacher else "is better"
        yield f"It is a regression, fitted to the labels in seconds: no distilled student {how} on dev."
    elif means:
        name = max(means, key=means.__getitem__)
        gain = student.scores[split][metric].mean - means[name]
        worth = f"the student is {percent(gain)} points better" if gain > 0 else "the student is not better"
        yield f"The best regression on labels, {name}, has {percent(means[name])} %: {worth}."
        few = scores.metric == "accuracy" and scores.rows["dev"] < FEW_DEV_ROWS
        if few and (seen := expected(scores.rows["train"] + scores.rows["dev"])):
            low, high = seen.above
            came = "less" if 100 * gain < low else "more" if 100 * gain > high else "as much"
            yield f"Elsewhere, {seen}: it gained {came} here."


def _teacher_quality(scores: TaskScores, student: MethodScores, split: str) -> str:
    taught = scores.teachers[student.teacher].scores[split]
    if taught is None:
        return f"teacher {student.teacher} did not answer {split}"
    return f"teacher {student.teacher} has {percent(taught[scores.metric])} %"


def _agreement(scores: TaskScores, student: MethodScores) -> Iterator[str]:
    split = scores.decisive_split
    if (agreement := student.agreement[split]) is None:
        return
    yield KINDS[scores.kind].agrees.format(share=percent(agreement), split=split)


def _further(scores: TaskScores, student: MethodScores) -> Iterator[str]:
    for split in scores.further_splits:
        value = percent(student.scores[split][scores.metric].mean)
        yield f"On {split} it has {value} %; {_teacher_quality(scores, student, split)}."


def _speed(speed: TaskSpeed | None, scores: TaskScores, student: MethodScores) -> Iterator[str]:
    """Tell speed and size of both in the form in which each is fastest on one core."""
    fastest = speed and speed.fastest("students", student.student)
    if not fastest:
        yield "Its speed was not measured (stage measure_speed)."
        return
    yield _rates(speed, student, "one_core", "On one core")
    if speed.fastest("students", student.student, "accelerator"):
        yield _rates(speed, student, "accelerator", f"On the {speed.accelerator}")
    taught = speed.fastest("teachers", student.teacher)
    if taught is not None:
        yield _sizes(fastest[1], taught[1])
        return
    yield f"It takes {megabytes(fastest[1].bytes)} MB on disk."
    not_run = scores.teachers[student.teacher].parameters is None
    yield "The teacher is no model that runs here." if not_run else "The teacher was not timed."


def _rates(speed: TaskSpeed, student: MethodScores, hardware: Place, where: str) -> str:
    unit = "pairs" if speed.pair else "sentences"
    name, form = speed.fastest("students", student.student, hardware)
    rate = form.rates[hardware].median
    line = f"{where} it answers {significant(rate)} {unit} per second ({name})"
    if (taught := speed.fastest("teachers", student.teacher, hardware)) is None:
        return f"{line}."
    name, form = taught
    slower = form.rates[hardware].median
    return f"{line}, the teacher {significant(slower)} ({name}): {_times(rate / slower)} as fast."


def _sizes(student: Form, teacher: Form) -> str:
    line = f"It takes {megabytes(student.bytes)} MB on disk, the teacher {megabytes(teacher.bytes)} MB"
    ratio = teacher.bytes / student.bytes
    return f"{line}: {_times(ratio)} as much." if ratio >= 1.05 else f"{line}."


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 9.95 else f"{ratio:.2g} times"
