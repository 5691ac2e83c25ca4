"""The rows of params.yaml that define a student, as YAML."""

import io
from typing import Any

from ruamel.yaml import YAML

from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.params import Encoder, ModelVectors, Params, SentenceVectors


def settings_of(facts: Facts) -> str:
    """Return the rows that define a student whose row is known, as in its params.yaml."""
    params, task, method = facts.row.params, facts.place.task, facts.place.method
    names = [method, *params.rows_before(method)]
    names += [base for name in names if (base := params.methods[name].baseline) in params.methods]
    methods = {name: params.methods[name] for name in names}
    starts = {row.start for row in methods.values()}
    rows: dict[str, dict[str, Any]] = {"methods": methods}
    for group in ("encoders", "joint"):
        available = getattr(params, group)
        rows[group] = {name: row for name, row in available.items() if name in starts}
    trained = [row for by_name in rows.values() for row in by_name.values()]
    tasks = dict.fromkeys([task, *(name for row in rows["joint"].values() for name in row.tasks)])
    recipes = {row.data for row in methods.values()}
    recipes |= {recipe for row in rows["joint"].values() for recipe in row.tasks.values()}
    taught = [row for row in trained if not hasattr(row, "wikipedia")]
    wanted = {
        "tasks": tasks,
        "transfer": recipes,
        "teachers": {params.teacher_of(name, row) for row in taught for name in tasks},
        "students": {row.student for row in trained},
        "optimisers": {row.optimiser for row in trained},
    }
    for group, kept in wanted.items():
        available = getattr(params, group)
        rows[group] = {name: row for name, row in available.items() if name in kept}
    rows["models"] = {name: params.models[name] for name in _models(params, rows)}
    shown: dict[str, Any] = {
        group: {name: row.model_dump(mode="json", exclude_unset=True) for name, row in chosen.items()}
        for group in (*wanted, "models", "encoders", "joint", "methods")
        if (chosen := rows[group])
    }
    sections = ["vocabulary", "tagger", "precompute"]
    if _learn_vectors(rows):
        sections.insert(1, "sentence_vectors")
    for group in sections:
        shown[group] = getattr(params, group).model_dump(mode="json", exclude_unset=True)
    return _yaml(shown | {"seeds": params.seeds})


def _models(params: Params, rows: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of the models that some of the rows start from."""
    named = {row.model for row in rows["teachers"].values()}
    named |= {row.source_model for row in rows["students"].values()}
    if _learn_vectors(rows) and isinstance(params.sentence_vectors, SentenceVectors):
        named.add(params.sentence_vectors.model)
    if isinstance(params.vocabulary.vectors, ModelVectors):
        named.add(params.vocabulary.vectors.model)
    return [name for name in params.models if name in named]


def _learn_vectors(rows: dict[str, dict[str, Any]]) -> bool:
    """Whether some student starts from an encoder that was trained on sentence vectors."""
    return any(isinstance(row, Encoder) for row in rows["encoders"].values())


def _yaml(values: dict[str, Any]) -> str:
    yaml, text = YAML(typ="safe", pure=True), io.StringIO()
    yaml.sort_base_mapping_type_on_output = False
    yaml.default_flow_style, yaml.width = None, 1000
    yaml.dump(values, text)
    return text.getvalue()
