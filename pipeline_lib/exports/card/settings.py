"""The rows of params.yaml that define a student, as YAML."""

import io
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML

from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.params import Encoder, ModelVectors, SentenceVectors


def settings_of(facts: Facts) -> str:
    """Return the rows that define a student whose row is known, as in its params.yaml."""
    params, task, method = facts.row.params, facts.place.task, facts.place.method
    names = [method, *params.rows_before(method)]
    names += [base for name in names if (base := params.methods[name].baseline) in params.methods]
    methods = {name: params.methods[name] for name in names}
    starts = {row.start for row in methods.values()}
    encoders = {name: row for name, row in params.encoders.items() if name in starts}
    joint = {name: row for name, row in params.joint.items() if name in starts}
    trained = [*methods.values(), *encoders.values(), *joint.values()]
    tasks = dict.fromkeys([task, *(name for row in joint.values() for name in row.tasks)])
    taught = [row for row in trained if not hasattr(row, "wikipedia")]
    students, teachers = {row.student for row in trained}, {params.teacher_of(t, row) for row in taught for t in tasks}
    # Whether some student starts from an encoder that was trained on sentence vectors.
    has_vectors = any(isinstance(row, Encoder) for row in encoders.values())
    models = {params.teachers[name].model for name in teachers}
    models |= {params.students[name].source_model for name in students}
    vectors = [params.vocabulary.vectors, *([params.sentence_vectors] if has_vectors else [])]
    models |= {source.model for source in vectors if isinstance(source, ModelVectors | SentenceVectors)}
    named = {
        "tasks": tasks,
        "transfer": {row.data for row in methods.values()}.union(*(row.tasks.values() for row in joint.values())),
        "teachers": teachers,
        "students": students,
        "optimisers": {row.optimiser for row in trained},
        "models": models,
    }
    groups = {
        group: {name: row for name, row in getattr(params, group).items() if name in chosen}
        for group, chosen in named.items()
    } | {"encoders": encoders, "joint": joint, "methods": methods}
    shown: dict[str, Any] = {
        group: {name: _settings(row) for name, row in rows.items()} for group, rows in groups.items() if rows
    }
    for section in ("vocabulary", *(["sentence_vectors"] if has_vectors else []), "tagger", "precompute"):
        shown[section] = _settings(getattr(params, section))
    return _yaml(shown | {"seeds": params.seeds})


def _settings(row: BaseModel) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude_unset=True)


def _yaml(values: dict[str, Any]) -> str:
    yaml, text = YAML(typ="safe", pure=True), io.StringIO()
    yaml.sort_base_mapping_type_on_output = False
    yaml.default_flow_style, yaml.width = None, 1000
    yaml.dump(values, text)
    return text.getvalue()
