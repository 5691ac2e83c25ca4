"""The model card of a student: what it is, its scores, its limits, and how to reproduce it.

Whatever is unknown is stated as unknown.  Everything that may come from data, including the names
of classes and files, is escaped.
"""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from pipeline_lib import __version__
from pipeline_lib.base.files import read_record, sha256_file
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.exports.card.card_data import Facts, read_facts
from pipeline_lib.exports.card.front_matter import front_matter
from pipeline_lib.exports.card.origins import Origin, origins
from pipeline_lib.exports.card.scores import (
    calibration_section,
    differences_section,
    routing_section,
    scores_section,
    size_section,
)
from pipeline_lib.exports.card.settings import settings_of
from pipeline_lib.models.students.student import Student
from pipeline_lib.params import STARTS
from pipeline_lib.results.markdown import bullets, code, escape, fenced, table
from pipeline_lib.results.splits import shared_line

LIBRARIES = ("torch", "transformers", "tokenizers")


def model_card(folder: Path, student: Student) -> str:
    """Return the README.md of a student's folder: front matter for the hub, and Markdown."""
    facts = read_facts(folder, student)
    parts = origins(facts)
    sections = {
        "Use": _use(facts),
        "Scores": scores_section(facts),
        "Calibration": calibration_section(facts),
        "Differences from the teacher": differences_section(facts),
        "Routing to the teacher": routing_section(facts),
        "Speed and size": size_section(facts),
        "Data, teacher, licences": _origins(facts, parts),
        "Limits": _limits(facts),
        "How to reproduce": _reproduce(facts),
    }
    lines = ["---", front_matter(facts, parts), "---", "", f"# {_title(facts)}", "", *_what(facts)]
    for head, section in sections.items():
        lines += ["", f"## {head}", "", *section] if section else []
    return "\n".join(lines) + "\n"


def _title(facts: Facts) -> str:
    location = facts.place
    name = facts.student.model.config.settings.name()
    if location is None:
        return f"A distilled {escape(name)} student"
    return f"{escape(location.task)}: {escape(location.method)}, seed {location.seed}"


def _what(facts: Facts) -> list[str]:
    student = facts.student
    reads = "pairs of sentences" if student.is_pair else "sentences"
    names = ", ".join(map(escape, student.label_names))
    gives = KINDS[student.kind].describes.format(reads=reads, names=names)
    every, small = (student.parameters(embeddings=embeddings) for embeddings in (True, False))
    return [
        f"A small model ({code(student.model.config.settings.name())}) that {gives}. It has "
        f"{every:,} parameters, {small:,} without embedding tables. {_learned(facts)}"
    ]


def _learned(facts: Facts) -> str:
    if facts.own is None:
        return "What it learned from, and what it scores, is unknown here."
    teacher = f"the answers of a larger model, the teacher {code(facts.own.teacher)}"
    learned = {"gold": "labels alone", "teacher": teacher, "both": f"labels and {teacher}"}
    start = None if facts.row is None else facts.row.method.start
    before = "" if start in (None, *STARTS) else f", starting from {code(start)}"
    return f"It learned from {learned[facts.own.learned_from]}{before}."


def _use(facts: Facts) -> list[str]:
    example = '{"text": "One sentence.", "text_pair": "Another one."}'
    example = example if facts.student.is_pair else '"A sentence."'
    kind = KINDS[facts.student.kind]
    probabilities = ", top_k=None" if kind.has_probabilities else ""
    program = (
        "from transformers import pipeline\n\n"
        'model = pipeline("text-classification", "this/folder", trust_remote_code=True)\n'
        f"print(model({example}{probabilities}))"
    )
    return [
        *fenced(program, "python"),
        "",
        f"This gives {kind.answer_is}. The code to trust is that of the two Python files in this folder, "
        "which need torch and transformers. `distill predict this/folder` reads the folder too.",
    ]


def _origins(facts: Facts, parts: list[Origin]) -> list[str]:
    choose = (
        "No licence was chosen for this student (`license: unknown` above): choose one that its "
        "parts allow before you publish it."
    )
    if not parts:
        return [f"The data, the teacher and their licences are unknown here. {choose}"]
    cells = [[escape(one.part), escape(one.source), escape("; ".join(one.licences)) or "unknown"] for one in parts]
    return [
        *table(["Part", "From", "Licence, as declared"], cells, numbers=False),
        "",
        "Unknown: the source declares none. A package's own licence need not be that of the model "
        f"or the texts inside it. {choose}",
    ]


def _limits(facts: Facts) -> list[str]:
    student, settings = facts.student, facts.student.model.config.settings
    words = settings.reads == "words"
    unit = "words" if words else "word pieces"
    whole = student.is_pair and settings.reads == "sequence"
    lines = [f"It reads {settings.max_words} {unit} of a {'pair' if whole else 'sentence'}; longer ones are truncated."]
    if words:
        lines.append(
            f"It knows {student.model.config.vocab_size:,} words; all others, including those of "
            "other languages, are the same unknown word to it."
        )
        lines.append(
            "`tokenizer.json` lists the words of its training texts, including rare names: check "
            "it before you publish a student that was trained on private texts."
        )
    lines += [
        "How it does on texts unlike those of its task is unknown. Its language is not recorded.",
        "If it learned from a teacher, it learned the teacher's errors too, and it adds its own: "
        "see the differences above.",
    ]
    shared = "" if facts.result is None else shared_line(facts.result.scores.shared_texts)
    return bullets([*lines, *([f"{shared[0].upper()}{shared[1:]}."] if shared else [])])


def _reproduce(facts: Facts) -> list[str]:
    lines = []
    if facts.row is not None:
        location = facts.place
        commands = (
            f"dvc repro\ndistill export data/students/{location.task}/{location.method}/{location.seed} FOLDER --to hub"
        )
        lines += ["With these rows of params.yaml:", "", *fenced(settings_of(facts), "yaml"), ""]
        lines += [*fenced(commands, "sh"), ""]
    elif facts.place is not None:
        lines += ["Its row is not in params.yaml, or there is no such file.", ""]
    details = []
    if (training := facts.training) is not None:
        settings = sorted(asdict(training.settings).items())
        values = ", ".join(f"{key} {value}" for key, value in settings)
        details.append(
            f"Trained with {escape(values)}, for {training.steps:,} steps on {training.rows:,} rows; the weights are "
            f"those of step {training.best_step:,}. Computed on {escape(training.computed_on)}."
        )
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    details.append(f"Exported by potstill {__version__}, Python {platform.python_version()}, {libraries}.")
    details += [f"SHA-256 of {name}: `{digest}`" for name, digest in _digests(facts)]
    return [*lines, *bullets(details)]


def _digests(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield digests by which a reproduced student, and what it was made from, can be compared."""
    for name in ("model.safetensors", "tokenizer.json"):
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
