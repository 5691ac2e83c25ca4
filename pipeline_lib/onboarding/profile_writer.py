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
from pipeline_lib.onboarding.findings import Findings
from pipeline_lib.onboarding.language import Language
from pipeline_lib.onboarding.students import (
    ENCODED,
    ORIGINAL,
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
from pipeline_lib.onboarding.understanding import TaskGuess
from pipeline_lib.params import UNLABELLED

FEW_ROWS = 1000
"""Up to so many labelled rows, a student gains from texts of any kind: benchmarks/results/few_rows.md."""
_POOL_ROWS = 4000
_POOL_KINDS = ("movieReviewSnippets", "amazonReviewSnippets", "nytEditorialSnippets", "tweets")
_PLAIN = re.compile(r"[\w./ -]+")
"""Strings that ruamel quotes where it must; of others, such as ``:)``, it leaves some unquoted."""
_UNBROKEN = 1_000_000
"""A width in characters that no line reaches."""
_NULL = ("tag:yaml.org,2002:null", "null")


@dataclass(frozen=True)
class Wanted:
    """What a profile is made from.

    :ivar name: the task's name; :ivar source: the source of its files; :ivar place: the teacher's folder or file.
    """

    name: str
    understood: TaskGuess
    findings: Findings
    source: Mapping[str, Any]
    teacher: Chosen
    place: str | None
    students: tuple[str, ...]
    language: Language


def overlay(wanted: Wanted, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that differ from the default's.

    :param base: the values of the default profile.
    """
    train, (_, words, _) = wanted.findings.rows["train"], wanted.findings.words
    teacher, language = wanted.teacher, wanted.language
    pool = _pool(wanted, base)
    texts = train + wanted.findings.further.texts + (pool["rows"] if pool else 0)
    recipes = _recipes(wanted, texts > train)
    n_iter = iterations(texts) if teacher.runs else 0
    pieces = _readable(teacher, piece_limit(words * len(wanted.understood.text)))
    models = {**base["models"]}
    of_words = teacher.name if _is_folder(teacher) and not language.is_english else None
    if _is_folder(teacher) and (teacher.kind == "single" or of_words):
        # Of another language, the default's model is of no use.
        kept = {} if of_words else models
        models = {**kept, teacher.name: {"kind": "path", "path": wanted.place}}
    # What compares two sentences gains most from an encoder that has learnt to (docs/students.md).
    is_encoded = "bilstm" in wanted.students and len(wanted.understood.text) == 2
    is_encoded &= language.is_english
    students = wanted.students + ((ENCODED,) if is_encoded else ())
    methods = method_rows(students, [*recipes], wanted.understood.is_labelled)
    threshold = _threshold(wanted)
    if threshold is not None:
        methods = {name: method | {"threshold": threshold} for name, method in methods.items()}
    name = f"{teacher.name}_teacher" if teacher.name in methods else teacher.name
    tuning = next(t["tuning"] for t in base["teachers"].values() if t["model"] is not None)
    row = {
        "model": teacher.model,
        "max_length": pieces if teacher.runs else None,
        "tasks": None,
        "data": None,
        "tuning": tuning_of(teacher, wanted.place, train, tuning),
    }
    task = wanted.understood.task(wanted.source, n_iter) | ({"pool": pool} if pool else {})
    sections = {
        "tasks": {wanted.name: task},
        "tagger": language.tagger(base),
        "transfer": recipes,
        "models": models,
        "teachers": {name: row},
        "sentence_vectors": base["sentence_vectors"] | ({"model": of_words} if of_words else {}),
        "vocabulary": language.vocabulary(
            base, of_words, read_config(teacher.path) if of_words else {}, _is_few(wanted)
        ),
        "students": student_rows(
            students, word_limit(words), pieces, teacher.model or next(iter(models)), base["students"][ENCODED]["width"]
        ),
        "optimisers": optimisers(students, train, texts * (1 + n_iter)),
        "methods": methods,
        **{name: {} for name in ("catalogues", "joint", "retrieval", "similarity")},
        **encoder_sections(students, wanted.name, base),
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
    parts = [f"{lines}extends: {base}\n"]
    for key, value in values.items():
        sink = io.StringIO()
        # ruamel would break a line within a key, which no reader of YAML accepts.
        yaml.width = _UNBROKEN if _has_spaced_key(value) else 120
        yaml.dump(CommentedMap({key: _section(key, value)}), sink)
        parts.append(sink.getvalue())
    return "\n".join(parts)


def _has_spaced_key(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(" " in str(key) or _has_spaced_key(item) for key, item in value.items())


def _readable(teacher: Chosen, pieces: int) -> int:
    """Return a limit of word pieces that is not above what the teacher's own model can read."""
    if not _is_folder(teacher):
        return pieces
    positions = position_count(read_config(teacher.path))
    return pieces if positions is None else min(pieces, positions)


def _is_folder(teacher: Chosen) -> bool:
    """Whether a teacher is the user's own model."""
    return teacher.path is not None and teacher.path.is_dir()


def _threshold(wanted: Wanted) -> str | None:
    """Return where students decide, if not where an answer becomes the likelier one."""
    if not wanted.understood.scores_dev:
        return None
    kind = KINDS[wanted.understood.kind]
    if kind.has_several:
        # A teacher's logits are learned by squared error: students come out less sure than it is.
        return "dev"
    # Measured on two classes: of many, the few rows of dev say little about each.
    is_of_two = kind.one_of and len(wanted.understood.labels) == 2
    return "likelihood" if _is_few(wanted) and is_of_two else None


def _is_few(wanted: Wanted) -> bool:
    """Whether a task has so few rows that its students meet many words for the first time.

    Measured on single English sentences.
    """
    is_single = len(wanted.understood.text) == 1
    few = wanted.findings.rows["train"] <= FEW_ROWS
    return few and is_single and wanted.language.is_english and wanted.teacher.runs


def _pool(wanted: Wanted, base: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``pool``, for a task of few rows and no further texts: those of the default's package, without labels."""
    if not _is_few(wanted) or wanted.findings.further.texts:
        return None
    [task] = base["tasks"].values()
    source = task["source"]
    folder = source["files"]["all"].rpartition("/")[0]
    texts = {"files": [f"{folder}/{kind}_GroundTruth.txt" for kind in _POOL_KINDS], "text": "text"}
    pinned = {name: source[name] for name in ("requirement", "artifact", "sha256")}
    read = {name: source[name] for name in ("format", "columns")}
    return {"rows": _POOL_ROWS, "sources": [{"kind": "package", **pinned, **texts, **read}]}


def _recipes(wanted: Wanted, has_more: bool) -> dict[str, Any]:
    """Return ``transfer``: the texts as they are, and more of them.

    A file of answers has none for texts that the rules make, so only unlabelled texts can be added.

    :param has_more: whether there are unlabelled texts.
    """
    more = {UNLABELLED: True} if has_more else {}
    if wanted.teacher.runs:
        return {"original": ORIGINAL, "full": wanted.language.recipe(RECIPE) | more}
    return {"original": ORIGINAL} | ({"extended": ORIGINAL | more} if more else {})


def _section(key: str, value: Any) -> Any:
    """Return a section with one line per row, and for a task one line per key."""
    if not isinstance(value, dict) or not value:
        return _flow(value)
    if key == "tasks":
        return CommentedMap({name: CommentedMap({k: _flow(v) for k, v in row.items()}) for name, row in value.items()})
    return CommentedMap({name: _flow(row) for name, row in value.items()})


def _flow(value: Any) -> Any:
    """Return a value that is dumped on one line."""
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
