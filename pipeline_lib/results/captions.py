"""The captions of the score tables: data, seeds, selection, and what is missing."""

from pipeline_lib.params import Params
from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.significance import CONFIDENCE
from pipeline_lib.results.speed import MIN_AGREEMENT
from pipeline_lib.results.splits import shared_line
from pipeline_lib.results.table_rows import NONE


def caption(result: TaskResult, params: Params) -> list[str]:
    """Return the sentences of the caption of one task's table."""
    scores = result.scores
    split = scores.decisive_split
    sizes = ", ".join(f"{count:,} {name}" for name, count in scores.rows.items())
    lines = [
        f"{' / '.join(scores.metrics)} in percent{_f1(scores)}; mean over seeds "
        f"{_seeds(result)}, ± standard deviation of {scores.metric}.",
        f"Data: {sizes} rows. {_test(scores)}",
        scores.selection,
        _gain(scores),
        "Rate: the learning rate of all seeds, the best on dev with the first among "
        f"{_rates(scores)}; steps and rows are those of one run.",
        f"To teacher and agreement (share of equal answers, or correlation) on {split}; parameters "
        "in millions, without / with embeddings; ratio: times smaller than the teacher.",
    ]
    if scores.kind == "multilabel":
        lines.append(
            "F1: of decisions at a probability of 0.5, which rows with `threshold: dev` have moved "
            "to where each label's F1 is best on dev, and a teacher has not; average precision "
            "needs no decision. Agreement: in all labels of a row."
        )
    if shared := shared_line(scores.shared_texts):
        lines.append(f"{shared[0].upper()}{shared[1:]}.")
    lines += _unanswered(scores)
    return [line.strip() for line in lines] + _missing(result, params)


def _f1(scores: TaskScores) -> str:
    return f" (f1 of class {scores.f1_label})" if scores.f1_label else ""


def _gain(scores: TaskScores) -> str:
    split, confidence = scores.decisive_split, CONFIDENCE
    chosen = ", where the best evaluations were also chosen," if split == "dev" else ""
    return (
        f"Gain over the method's undistilled baseline on {split}{chosen} with its "
        f"{100 * confidence:.0f} % interval and p over seeds and examples (Obuchowski and Rockette "
        "1995); p corrected for the table's rows (Holm 1979). With one seed there is neither."
    )


def _rates(scores: TaskScores) -> str:
    tried = {rate for method in scores.methods.values() for rate in method.training.best_dev_by_rate}
    return ", ".join(sorted(tried, key=float)) or NONE


def _unanswered(scores: TaskScores) -> list[str]:
    """Say if nothing is labelled, and which rows a teacher did not answer."""
    lines = []
    if not scores.scored_splits:
        lines.append(
            "Nothing is labelled: the best evaluations were chosen by the teacher's answers on "
            "dev, and agreement with the teacher is not a score."
        )
    for name, teacher in scores.teachers.items():
        missing = [f"{count:,} of {scores.rows[s]:,} {s}" for s, count in teacher.unanswered.items()]
        if missing:
            lines.append(
                f"Teacher {name} did not answer {', '.join(missing)} rows: it is scored and "
                "compared only on the others."
            )
    return lines


def speed_notes(result: TaskResult) -> list[str]:
    """Return how the timings were measured, and which forms have none and why."""
    speed = result.speed
    if speed is None:
        return ["Sentences/s: not measured yet (stage measure_speed)."]
    unit = "Pairs" if speed.pair else "Sentences"
    cores = "1 core" if speed.cores == 1 else f"{speed.cores} cores"
    versions = f"torch {speed.torch}"
    versions += f", onnxruntime {speed.onnxruntime}" if speed.onnxruntime else ""
    lines = [
        f"{unit}/s: on one core, from raw text to logits, in each system's fastest form of those that answer as in "
        f"torch by {100 * MIN_AGREEMENT:.0f} %; {speed.sentences:,} of {speed.split}, median of {speed.repeats} turns "
        f"of at least {speed.seconds:g} s; {speed.cpu}, {cores}, {versions}."
    ]
    if speed.exported is not None:
        lines.append(
            f"Only {speed.exported}, the best student on dev, was exported; the student of one "
            "method stands for all of its architecture."
        )
    for name, timed in [*speed.teachers.items(), *speed.students.items()]:
        lines += [f"Not timed: {name}, {form}: {why}" for form, why in timed.not_timed.items()]
    return lines


def _test(scores: TaskScores) -> str:
    if "test" not in scores.rows:
        return "There is no test split."
    if not scores.scored_splits:
        return ""
    return "" if "test" in scores.scored_splits else "Test labels are hidden: not scored."


def _seeds(result: TaskResult) -> str:
    first = next(iter(result.scores.methods.values()), None)
    if first is None:
        return NONE
    return ", ".join(first.training.best_step)


def _missing(result: TaskResult, params: Params) -> list[str]:
    lines = []
    methods = result.scores.methods
    absent = [name for name in params.scored_methods_of(result.task) if name not in methods]
    if absent:
        lines.append(f"Not run yet: {', '.join(absent)} (`dvc repro`).")
    stale = [name for name in methods if name not in params.methods]
    if stale:
        lines.append(f"No longer in params.yaml: {', '.join(stale)}.")
    return lines
