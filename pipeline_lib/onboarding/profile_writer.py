"""The profile of a user's own task: only what differs from the default."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from pipeline_lib.base.max_positions import position_count
from pipeline_lib.base.model_config import read_config
from pipeline_lib.onboarding.findings import Findings
from pipeline_lib.onboarding.students import (
    ORIGINAL,
    RECIPE,
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

_PLAIN = re.compile(r"[\w./ -]+")
"""Strings that ruamel quotes where it must; of others, such as ``:)``, it leaves some unquoted."""
_NULL = ("tag:yaml.org,2002:null", "null")


@dataclass(frozen=True)
class Wanted:
    """What a profile is made from.

    :ivar name: the task's name; :ivar source: the source of its files; :ivar place: the teacher's
        folder or file.
    """

    name: str
    understood: TaskGuess
    findings: Findings
    source: Mapping[str, Any]
    teacher: Chosen
    place: str | None
    students: tuple[str, ...]


def overlay(wanted: Wanted, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that differ from the default's.

    :param base: the values of the default profile.
    """
    train, (_, words, _) = wanted.findings.rows["train"], wanted.findings.words
    teacher, recipes = wanted.teacher, _recipes(wanted)
    texts = train + wanted.findings.further.texts
    n_iter = iterations(texts) if teacher.runs else 0
    pieces = _readable(teacher, piece_limit(words * len(wanted.understood.text)))
    models = {**base["models"]}
    if teacher.path is not None and teacher.kind == "single":
        models[teacher.model] = {"kind": "path", "path": wanted.place}
    methods = method_rows(wanted.students, [*recipes], wanted.understood.is_labelled)
    if wanted.understood.kind == "multilabel" and wanted.understood.scores_dev:
        # A teacher's logits are learned by squared error: students come out less sure than it is.
        methods = {name: method | {"threshold": "dev"} for name, method in methods.items()}
    name = f"{teacher.name}_teacher" if teacher.name in methods else teacher.name
    tuning = next(t["tuning"] for t in base["teachers"].values() if t["model"] is not None)
    row = {
        "model": teacher.model,
        "max_length": pieces if teacher.runs else None,
        "tasks": None,
        "data": None,
        "tuning": tuning_of(teacher, wanted.place, train, tuning),
    }
    sections = {
        "tasks": {wanted.name: wanted.understood.task(wanted.source, n_iter)},
        "transfer": recipes,
        "models": models,
        "teachers": {name: row},
        "students": student_rows(
            wanted.students, word_limit(words), pieces, teacher.model or next(iter(models))
        ),
        "optimisers": optimisers(wanted.students, train, texts * (1 + n_iter)),
        "methods": methods,
        **{name: {} for name in ("encoders", "catalogues", "joint", "retrieval", "similarity")},
        "wikipedia": None,
    }
    return {key: value for key, value in sections.items() if value != base[key]}


def overlay_text(values: Mapping[str, Any], base: str, header: str) -> str:
    """Return a profile as text.

    :param base: the profile that it extends; :param header: comment lines at the top.
    """
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 120
    yaml.representer.add_representer(type(None), lambda dumper, _: dumper.represent_scalar(*_NULL))
    lines = "".join(f"# {line}\n" for line in header.splitlines())
    parts = [f"{lines}extends: {base}\n"]
    for key, value in values.items():
        sink = io.StringIO()
        yaml.dump(CommentedMap({key: _section(key, value)}), sink)
        parts.append(sink.getvalue())
    return "\n".join(parts)


def _readable(teacher: Chosen, pieces: int) -> int:
    """Return a limit of word pieces that is not above what the teacher's own model can read."""
    if teacher.path is None or not teacher.path.is_dir():
        return pieces
    positions = position_count(read_config(teacher.path))
    return pieces if positions is None else min(pieces, positions)


def _recipes(wanted: Wanted) -> dict[str, Any]:
    """Return ``transfer``: the texts as they are, and more of them.

    A file of answers has none for texts that the rules make, so only unlabelled texts can be added.
    """
    more = {UNLABELLED: True} if wanted.findings.further.texts else {}
    if wanted.teacher.runs:
        return {"original": ORIGINAL, "full": RECIPE | more}
    return {"original": ORIGINAL} | ({"extended": ORIGINAL | more} if more else {})


def _section(key: str, value: Any) -> Any:
    """Return a section with one line per row, and for a task one line per key."""
    if not isinstance(value, dict) or not value:
        return _flow(value)
    if key == "tasks":
        return CommentedMap(
            {
                name: CommentedMap({k: _flow(v) for k, v in row.items()})
                for name, row in value.items()
            }
        )
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
