"""The profile of a user's own task: only what differs from the default."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.model_config import position_count, read_config
from pipeline_lib.onboarding.language import Language
from pipeline_lib.onboarding.questions import Request
from pipeline_lib.onboarding.students import (
    ENCODED,
    FITTED,
    FITTED_PAIRS,
    RECIPE,
    encoder_sections,
    iterations,
    method_rows,
    optimisers,
    piece_limit,
    student_rows,
    word_limit,
)
from pipeline_lib.onboarding.teachers import Chosen, tuning_of
from pipeline_lib.onboarding.understanding import FEW_ROWS, TaskGuess
from pipeline_lib.params import UNLABELLED

_PLAIN = re.compile(r"[\w./ -]+")
"""Strings that ruamel quotes where it must; of others, such as ``:)``, it leaves some unquoted."""
_UNBROKEN = 1_000_000
"""A width in characters that no line reaches."""
_NULL = ("tag:yaml.org,2002:null", "null")


@dataclass(frozen=True)
class Amounts:
    """How much there is of a task's texts.

    :ivar rows: of the training set; :ivar further: texts besides the splits.
    :ivar words: of a sentence that few are longer than.
    """

    rows: int
    further: int
    words: int


@dataclass(frozen=True)
class NewTask:
    """What a profile is made from.

    :ivar source: the source of its files; :ivar teacher_path: the teacher's folder or file.
    """

    request: Request
    understood: TaskGuess
    amounts: Amounts
    source: Mapping[str, Any]
    teacher: Chosen
    teacher_path: str | None
    language: Language


def overlay(new: NewTask, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that differ from the default's.

    :param base: the values of the default profile.
    """
    train, words = new.amounts.rows, new.amounts.words
    teacher, language = new.teacher, new.language
    texts = train + new.amounts.further
    recipes = _recipes(new, texts > train)
    n_iter = iterations(texts) if teacher.runs else 0
    pieces = _readable(teacher, piece_limit(words * len(new.understood.text)))
    models = {**base["models"]}
    of_words = teacher.name if _is_folder(teacher) and not language.is_english else None
    if _is_folder(teacher) and (teacher.kind in ("single", "scored") or of_words):
        # Of another language, the default's model is of no use.
        others = {} if of_words else models
        models = {**others, teacher.name: {"kind": "path", "path": new.teacher_path}}
    # What compares two sentences gains most from an encoder that has learnt to (docs/students.md).
    is_encoded = "bilstm" in new.request.students and len(new.understood.text) == 2
    is_encoded &= language.is_english
    students = new.request.students + ((ENCODED,) if is_encoded else ())
    if len(new.understood.text) == 2:
        students = tuple(FITTED_PAIRS if name == FITTED else name for name in students)
    has_probabilities = KINDS[new.understood.kind].has_probabilities
    # A cosine is a score, or tells two classes apart.
    is_told = new.understood.is_labelled and (not has_probabilities or len(new.understood.labels) == 2)
    compared = of_words or base["sentence_vectors"]["model"] if is_told else ""
    methods = method_rows(students, [*recipes], new.understood.is_labelled, has_probabilities)
    threshold = _threshold(new)
    if threshold is not None:
        methods = {name: method | {"threshold": threshold} for name, method in methods.items()}
    name = f"{teacher.name}_teacher" if teacher.name in methods else teacher.name
    tuning = next(t["tuning"] for t in base["teachers"].values() if t["model"] is not None)
    classes = len(new.understood.labels) if KINDS[new.understood.kind].one_of else 1
    row = {
        "model": teacher.model,
        "max_length": pieces if teacher.runs else None,
        "tuning": tuning_of(teacher, new.teacher_path, train, classes, _is_few(new), tuning),
    }
    encoder = teacher.model if teacher.kind == "single" else next(iter(models))
    sections = {
        "tasks": {new.request.name: new.understood.task(new.source, n_iter)},
        "tagger": language.tagger(base),
        "transfer": recipes,
        "models": models,
        "teachers": {name: row},
        "sentence_vectors": base["sentence_vectors"] | ({"model": of_words} if of_words else {}),
        "vocabulary": language.vocabulary(base, of_words),
        "students": student_rows(students, word_limit(words), pieces, encoder, base["students"][ENCODED]["width"]),
        "optimisers": optimisers(students, train, texts * (1 + n_iter), _is_few(new)),
        "methods": methods,
        **{name: {} for name in ("joint", "retrieval")},
        **encoder_sections(students, new.request.name, compared, base),
    }
    sections["optimisers"] |= {
        row["optimiser"]: base["optimisers"][row["optimiser"]] for row in sections["encoders"].values()
    }
    return {key: value for key, value in sections.items() if value != base[key]}


def overlay_text(values: Mapping[str, Any], base: str, header: str) -> str:
    """Return a profile as text.

    :param base: the profile that it extends; :param header: comment lines at the top.
    """
    yaml = YAML(typ="rt", pure=True)
    yaml.representer.add_representer(type(None), lambda dumper, _: dumper.represent_scalar(*_NULL))
    lines = "".join(f"# {line}\n" for line in header.splitlines())
    sections = [f"{lines}extends: {base}\n"]
    for key, value in values.items():
        sink = io.StringIO()
        # ruamel would break a line within a key, which no reader of YAML accepts.
        yaml.width = _UNBROKEN if _has_spaced_key(value) else 120
        yaml.dump(CommentedMap({key: _section(key, value)}), sink)
        sections.append(sink.getvalue())
    return "\n".join(sections)


def _has_spaced_key(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(" " in str(key) or _has_spaced_key(item) for key, item in value.items())


def _readable(teacher: Chosen, pieces: int) -> int:
    if not _is_folder(teacher):
        return pieces
    positions = position_count(read_config(teacher.path))
    return pieces if positions is None else min(pieces, positions)


def _is_folder(teacher: Chosen) -> bool:
    return teacher.path is not None and teacher.path.is_dir()


def _threshold(new: NewTask) -> str | None:
    """Return where students decide, if not where an answer becomes the likelier one."""
    if not new.understood.scores_dev:
        return None
    # A teacher's logits are learned by squared error: students come out less sure than it is.
    return "dev" if KINDS[new.understood.kind].has_several else None


def _is_few(new: NewTask) -> bool:
    """Whether a task has few rows; what follows from it was measured on single English texts."""
    is_single = len(new.understood.text) == 1
    few = new.amounts.rows <= FEW_ROWS
    return few and is_single and new.language.is_english and new.teacher.runs


def _recipes(new: NewTask, has_more: bool) -> dict[str, Any]:
    """Return ``transfer``: the texts as they are, and more of them.

    A file of answers has none for texts that the rules make, so only unlabelled texts can be added.

    :param has_more: whether there are unlabelled texts.
    """
    more = {UNLABELLED: True} if has_more else {}
    if new.teacher.runs:
        return {"original": {}, "full": new.language.recipe(RECIPE) | more}
    return {"original": {}} | ({"extended": more} if more else {})


def _section(key: str, value: Any) -> Any:
    """Return a section with one line per row, and for a task one line per key."""
    if not isinstance(value, dict) or not value:
        return _flow(value)
    if key == "tasks":
        return CommentedMap({name: CommentedMap({k: _flow(v) for k, v in row.items()}) for name, row in value.items()})
    return CommentedMap({name: _flow(row) for name, row in value.items()})


def _flow(value: Any) -> Any:
    if isinstance(value, dict):
        node: Any = CommentedMap({_flow(name): _flow(item) for name, item in value.items()})
    elif isinstance(value, list):
        node = CommentedSeq(map(_flow, value))
    elif isinstance(value, str) and not _PLAIN.fullmatch(value):
        return DoubleQuotedScalarString(value)
    else:
        return value
    node.fa.set_flow_style()
    return node
