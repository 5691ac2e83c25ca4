"""The model card of a student: what it is, its scores, its limits, and how to reproduce it.

The text is in card.md.  What is unknown is stated as unknown, and what may come from data is escaped.
"""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline_lib import __version__
from pipeline_lib.base.files import read_record, sha256_file
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.exports.card.card_data import Facts, read_facts, settings_of
from pipeline_lib.exports.card.origins import Origin, origins
from pipeline_lib.models.folders import TEMPERATURE
from pipeline_lib.models.students.student import Student
from pipeline_lib.params import STARTS
from pipeline_lib.results.markdown import code, escape, fenced
from pipeline_lib.results.table import NONE, Column, Table, percent, signed, significant
from pipeline_lib.results.tables import captioned, rate, scores_table, spread, task_tables

TEMPLATE = "card.md"
FILES = ("model.safetensors", "tokenizer.json")
METRICS = {"pearson": "pearsonr", "spearman": "spearmanr", "f1_micro": "f1", "f1_macro": "f1"}
"""The hub's names of metrics, where they differ."""
HUB_TASK = "text-classification"
"""For regressions too, as the hub has no separate task for them."""
LIBRARIES = ("torch", "transformers", "tokenizers")
MAX_CLASSES = 30
"""With more classes, only those in which student and teacher differ most are shown."""
OUTSIDE = "Unknown: it was exported outside the workspace that trained it, or its row was not evaluated there."
FILTERS = {
    "code": code,
    "escape_text": escape,
    "fenced": lambda text, language: "\n".join(fenced(text, language)),
    "percent": percent,
    "share": lambda value: NONE if value is None else percent(value),
    "significant": significant,
    "table": lambda table: "\n".join(table.markdown()),
}


def model_card(folder: Path, student: Student) -> str:
    """Return the README.md of a student's folder: front matter for the hub, and Markdown."""
    facts = read_facts(folder, student)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= FILTERS
    shown = _of_student(facts) | _of_scores(facts) | _of_run(facts)
    return environment.get_template(TEMPLATE).render(shown).rstrip("\n") + "\n"


def _of_student(facts: Facts) -> dict[str, Any]:
    """Return what is known of any student, wherever it is."""
    student, location = facts.student, facts.place
    settings = student.model.config.settings
    start = None if facts.row is None else facts.row.method.start
    title = f"A distilled {escape(settings.name())} student"
    if location is not None:
        title = f"{escape(location.task)}: {escape(location.method)}, seed {location.seed}"
    return {
        "title": title,
        "name": settings.name(),
        "settings": settings,
        "kind": KINDS[student.kind],
        "pair": student.is_pair,
        "reads": "pairs of sentences" if student.is_pair else "sentences",
        "labels": ", ".join(map(escape, student.label_names)),
        "parameters": student.parameters(embeddings=True),
        "without_embeddings": student.parameters(embeddings=False),
        "vocabulary": student.model.config.vocab_size,
        "start": None if start in STARTS else start,
        "temperature": facts.temperature,
        "temperature_key": TEMPERATURE,
        "sizes": ", ".join(f"{name} {(facts.folder / name).stat().st_size / 1e6:.2f} MB" for name in FILES),
    }


def _of_scores(facts: Facts) -> dict[str, Any]:
    """Return what its row scored, and how it differs from its teacher."""
    shown = {"own": facts.own, "outside": OUTSIDE, "tables": {}, "further": [], "rate": None, "differences": None}
    if (result := facts.result) is None:
        return shown
    scores, method = result.scores, facts.own
    classes, differences = _recalls(facts)
    by_kind = differences if scores.of_kind.has_probabilities else _errors(facts)
    return shown | {
        "scores": scores,
        "split": scores.decisive_split,
        "seed": str(facts.place.seed),
        "tables": task_tables(result, timed=False),
        "further": [scores_table(result, False, name) for name in scores.further_splits],
        "differences": by_kind,
        "left": max(classes - MAX_CLASSES, 0),
        "rate": rate(result, "students", method.student),
        "slower": rate(result, "teachers", method.teacher),
        "timed": captioned("speed", result.speed)[0] if result.speed else "",
    }


def _recalls(facts: Facts) -> tuple[int, Table | None]:
    """Return the number of classes, and their recalls by teacher and student, the largest losses first."""
    split, seed = facts.result.scores.decisive_split, str(facts.place.seed)
    mine, theirs = facts.own.details.recall.get(split), facts.teacher.details.recall.get(split)
    if not mine or theirs is None:
        return 0, None
    differences = {name: mine[name].mean - theirs[name] for name in mine if name in theirs}
    largest = sorted(differences, key=lambda name: -abs(differences[name]))[:MAX_CLASSES]
    names = sorted(largest, key=differences.__getitem__)
    columns = [
        Column(f"Teacher {facts.own.teacher}", lambda name: percent(theirs[name])),
        Column("Student", lambda name: spread(mine[name])),
        Column("Difference", lambda name: signed(differences[name])),
        Column(f"Seed {seed}", lambda name: percent(mine[name].by_seed[seed])),
    ]
    return len(differences), Table.of("", names, names, columns)


def _errors(facts: Facts) -> str | None:
    """Return the mean absolute errors of both, or None if they are unknown."""
    split, key = facts.result.scores.decisive_split, "mean_absolute_error"
    mine, theirs = facts.own.details.scores.get(split), facts.teacher.details.scores.get(split)
    if mine is None or theirs is None:
        return None
    error = mine[key]
    return (
        f"teacher {theirs[key]:.3f}, student {error.mean:.3f} ± {error.std:.3f}, this file "
        f"{error.by_seed[str(facts.place.seed)]:.3f}; difference {error.mean - theirs[key]:+.3f}"
    )


def _of_run(facts: Facts) -> dict[str, Any]:
    """Return where its parts come from, and how to make it again."""
    location, training, sources = facts.place, facts.training, origins(facts)
    settings = sorted(asdict(training.settings).items()) if training else []
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    path = location and f"data/students/{location.task}/{location.method}/{location.seed}"
    return {
        "rows": facts.row and settings_of(facts),
        "commands": f"dvc repro\ndistill export {path} FOLDER --to hub",
        "front": _front_matter(facts, sources),
        "origins": sources,
        "is_placed": location is not None,
        "training": training,
        "trained_with": ", ".join(f"{key} {value}" for key, value in settings),
        "versions": f"potstill {__version__}, Python {platform.python_version()}, {libraries}",
        "digests": list(_digests(facts)),
    }


def _digests(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield digests by which a reproduced student, and what it was made from, can be compared."""
    for name in FILES:
        yield code(name), sha256_file(facts.folder / name)
    if facts.row is None:
        return
    layout, task = facts.place.layout, facts.place.task
    weights = layout.teacher(task, facts.row.teacher) / "model.safetensors"
    if weights.exists():
        yield f"the weights of teacher {code(facts.row.teacher)}", sha256_file(weights)
    fetched = layout.raw_task(task) / "source.json"
    if fetched.exists():
        for name, digest in read_record(fetched, "sha256")["sha256"].items():
            yield f"the data's {code(name)}", digest


def _front_matter(facts: Facts, sources: list[Origin]) -> str:
    """Return the YAML between the rules; unknown values have no key, the licence is ``unknown``."""
    results = list(_eval_results(facts, sources))
    architecture = facts.student.model.config.settings.name()
    metrics = [] if facts.result is None else facts.result.scores.metrics
    data = ModelCardData(
        library_name="transformers",
        license="unknown",
        pipeline_tag=HUB_TASK,
        tags=["knowledge-distillation", "potstill", architecture],
        base_model=_hub_names(sources, is_data=False),
        datasets=_hub_names(sources, is_data=True),
        metrics=[METRICS.get(name, name) for name in metrics] or None,
        model_name=f"{facts.place.task}-{facts.place.method}" if results else None,
        eval_results=results or None,
    )
    return data.to_yaml()


def _hub_names(sources: list[Origin], is_data: bool) -> list[str] | None:
    names = [source.hub for source in sources if source.hub is not None and source.is_data == is_data]
    return list(dict.fromkeys(names)) or None


def _eval_results(facts: Facts, sources: list[Origin]) -> Iterator[EvalResult]:
    """Yield the scores of this file, by split and metric, as fractions."""
    if facts.result is None:
        return
    task, seed = facts.place.task, str(facts.place.seed)
    # The task's data come first; if they are not from the hub, they have no name there.
    hub = next((source.hub for source in sources if source.is_data), None)
    for split, scores in facts.own.scores.items():
        for metric, value in (scores or {}).items():
            yield EvalResult(
                task_type=HUB_TASK,
                dataset_type=hub or task,
                dataset_name=task,
                dataset_split=split,
                metric_type=METRICS.get(metric, metric),
                metric_name=f"{metric}, seed {seed}",
                metric_value=value.by_seed[seed],
            )
