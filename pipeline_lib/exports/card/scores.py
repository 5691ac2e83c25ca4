"""The sections of a model card about a student's scores: tables and their captions."""

from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.models.students.folders import TEMPERATURE
from pipeline_lib.results.captions import speed_notes
from pipeline_lib.results.detail_tables import calibration, notes, routing
from pipeline_lib.results.markdown import bullets, code, escape, table
from pipeline_lib.results.schema import SeedScores
from pipeline_lib.results.significance import CONFIDENCE
from pipeline_lib.results.table_rows import NONE, TableLine, percent, rate, rows, signed, significant

MAX_CLASSES = 30
"""With more classes, only those in which student and teacher differ most are shown."""
OUTSIDE = "Unknown: it was exported outside the workspace that trained it, or its row was not evaluated there."


def scores_section(facts: Facts) -> list[str]:
    """Return the table of scores: teacher, baseline, the student's row, and this file."""
    if facts.result is None:
        return [OUTSIDE]
    scores, method = facts.result.scores, facts.own
    if not scores.scored_splits:
        return [
            "No split has labels, so nothing is scored. On dev it agrees with its teacher on "
            f"{_share(method.agreement.get('dev'))} % (agreement with a teacher is not a score)."
        ]
    split, cells = scores.decisive_split, []
    sources = {name: one.learned_from for name, one in scores.methods.items()}
    further = [rows(facts.result, one) for one in scores.further_splits]
    for row, *others in zip(rows(facts.result), *further, strict=True):
        source = sources.get(row.system, NONE)
        values = (row.dev, row.test, _gain(row), row.to_teacher, row.agreement)
        more = (cell for other in others for cell in (other.score, _gain(other)))
        cells.append([escape(row.system), source, *values, *more])
    seed = str(facts.place.seed)
    dev, test, *others = (
        " / ".join(percent(split_scores[metric].by_seed[seed]) for metric in scores.metrics)
        if (split_scores := method.scores.get(name))
        else NONE
        for name in ("dev", "test", *scores.further_splits)
    )
    one = [dev, test, NONE, NONE, NONE, *(cell for score in others for cell in (score, NONE))]
    cells.append([f"this file (seed {seed})", method.learned_from, *one])
    head = ["System", "Learned from", "Dev", "Test", f"Gain ({split})", "To teacher", "Agreement"]
    head += [cell for name in scores.further_splits for cell in (name, f"Gain ({name})")]
    return [*table(head, cells), "", *bullets(_caption(facts))]


def _gain(row: TableLine) -> str:
    return row.gain if row.interval == NONE else f"{row.gain} {row.interval}, p {row.p}"


def _caption(facts: Facts) -> list[str]:
    """Return the sentences of the caption of the scores."""
    scores, method = facts.result.scores, facts.own
    sizes = ", ".join(f"{count:,} {name}" for name, count in scores.rows.items())
    f1 = f" (f1 of class {escape(scores.f1_label)})" if scores.f1_label else ""
    lines = [
        f"{' / '.join(map(escape, scores.metrics))} in percent{f1}; rows: {sizes}. Methods: mean over seeds "
        f"{', '.join(method.training.best_step)}, ± standard deviation of {escape(scores.metric)}.",
        scores.selection,
        "To teacher: mean score minus the teacher's. Agreement: how often, or how closely, its "
        "answers match the teacher's, which is not accuracy.",
    ]
    if method.baseline is not None:
        lines.append(
            f"Gain: over its undistilled baseline, {code(method.baseline)}, with its "
            f"{100 * CONFIDENCE:.0f} % interval over seeds and examples (Obuchowski and Rockette "
            "1995); p corrected for all rows of the task's table (Holm 1979). With one seed there is neither."
        )
    for name, teacher in scores.teachers.items():
        missing = [f"{count:,} {part}" for part, count in teacher.unanswered.items()]
        if missing:
            lines.append(
                f"Teacher {escape(name)} did not answer {', '.join(missing)} rows, and is scored on the others."
            )
    return lines


def calibration_section(facts: Facts) -> list[str]:
    """Return how far probabilities can be trusted; nothing for a regression."""
    if facts.is_regression:
        return []
    scaled = (
        "Its temperature is 1, since no other is known here: probabilities are as trained."
        if facts.temperature == 1.0
        else f"Logits are divided by {facts.temperature:.4g} (`{TEMPERATURE}` in config.json), "
        "chosen on dev by negative log-likelihood; this changes no answer (Guo et al. 2017)."
    )
    text_table = None if facts.result is None else calibration(facts.result)
    if text_table is None:
        return [f"{scaled} How far its probabilities can be trusted is unknown here."]
    lines = [line for line in notes(facts.result, timed=False) if not line.startswith("Routing")]
    return [*text_table.markdown(), "", *bullets([scaled, *map(escape, lines)])]


def differences_section(facts: Facts) -> list[str]:
    """Return how the student differs from its teacher: in recall by class, or in mean error."""
    if facts.result is None:
        return [OUTSIDE]
    scores, method, teacher = facts.result.scores, facts.own, facts.teacher
    split = scores.decisive_split
    mine, theirs = method.details.recall.get(split), teacher.details.recall.get(split)
    if facts.is_regression:
        return _errors(facts)
    if not mine or theirs is None:
        return ["Unknown: there is no split with labels that the teacher answered."]
    seed = str(facts.place.seed)
    differences = {name: mine[name].mean - theirs[name] for name in mine if name in theirs}
    shown = sorted(sorted(differences, key=lambda name: -abs(differences[name]))[:MAX_CLASSES], key=differences.get)
    cells = [
        [
            escape(name),
            percent(theirs[name]),
            _spread(mine[name]),
            signed(differences[name]),
            percent(mine[name].by_seed[seed]),
        ]
        for name in shown
    ]
    head = ["Class", f"Teacher {code(method.teacher)}", "Student", "Difference", f"Seed {seed}"]
    left = len(differences) - len(shown)
    more = f" {left:,} more classes differ less." if left else ""
    return [
        f"Recall by class on {split}, in percent: the student's mean over seeds minus the "
        f"teacher's, the largest losses first.{more}",
        "",
        *table(head, cells),
    ]


def _errors(facts: Facts) -> list[str]:
    split, key = facts.result.scores.decisive_split, "mean_absolute_error"
    mine, theirs = facts.own.details.scores.get(split), facts.teacher.details.scores.get(split)
    if mine is None or theirs is None:
        return ["Unknown: there is no split with labels that the teacher answered."]
    error, seed = mine[key], str(facts.place.seed)
    return [
        f"Mean absolute error on {split}, in the labels' unit: teacher {theirs[key]:.3f}, student {error.mean:.3f} ± "
        f"{error.std:.3f}, this file {error.by_seed[seed]:.3f}; difference {error.mean - theirs[key]:+.3f}."
    ]


def routing_section(facts: Facts) -> list[str]:
    """Return how student and teacher do together; nothing if that was not scored."""
    text_table = None if facts.result is None else routing(facts.result, timed=False)
    if text_table is None:
        return []
    lines = [line for line in notes(facts.result, timed=False) if line.startswith("Routing")]
    return [*text_table.markdown(), "", *bullets(map(escape, lines))]


def size_section(facts: Facts) -> list[str]:
    """Return bytes, parameters, and the speed if it was measured."""
    names = ("model.safetensors", "tokenizer.json")
    sizes = [f"{name} {(facts.folder / name).stat().st_size / 1e6:.2f} MB" for name in names]
    lines = [f"On disk: {', '.join(sizes)}."]
    if facts.own is not None and facts.own.ratio is not None:
        ratio = facts.own.ratio
        lines.append(
            f"Parameters: {ratio.with_embeddings:.3g} times fewer than the teacher's, "
            f"{ratio.without_embeddings:.3g} times without embeddings."
        )
    student = teacher = None
    if facts.own is not None:
        student = rate(facts.result, "students", facts.own.student)
        teacher = rate(facts.result, "teachers", facts.own.teacher)
    if student is None:
        return bullets([*lines, "Its speed was not measured."])
    unit = "pairs" if facts.student.is_pair else "sentences"
    timed = f"{significant(student)} {unit} per second on one core"
    if teacher is not None:
        timed += f", {student / teacher:.1f} times the teacher's {significant(teacher)}"
    how = speed_notes(facts.result)[0]
    return bullets([*lines, f"{timed}, as potstill runs both. {escape(how)}"])


def _spread(value: SeedScores) -> str:
    spread = f" ± {percent(value.std)}" if len(value.by_seed) > 1 else ""
    return percent(value.mean) + spread


def _share(value: float | None) -> str:
    return NONE if value is None else percent(value)
