"""Whether params.yaml's models can be loaded and answer a text, and whether its students fit them.

``distill init`` and ``distill check`` load models in local folders, ``fetch_models`` all of them.  ``train``,
``pretrain`` and ``train_joint`` refuse a student that does not fit its model or teacher, ``train`` and ``train_joint``
only after the teacher's passes; ``distill check`` refuses it at once if the models are at hand.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError, faults_of
from pipeline_lib.base.files import read_record
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.model_config import head_count, layer_count, layer_width, position_count, read_config
from pipeline_lib.models.teacher import CAUSAL, load_classifier, load_pretrained
from pipeline_lib.models.vector_model import load_vector_model
from pipeline_lib.params import BERT, Finished, GeneralEncoder, Method, Params, StudentSettings
from pipeline_lib.shards.shard_sets import ShardSet


def student_faults(params: Params, layout: Layout) -> list[str]:
    """Return one line per student, or row, that asks more of a model, local or fetched before, than it has."""
    folders = _models_at_hand(params, layout)
    faults: list[str] = []
    for name, student in params.students.items():
        if student.source_model in folders:
            folder = folders[student.source_model]
            faults += faults_of(check_fits, f"students.{name}", student, folder)
    for key, row, teacher in _rows_beside(params):
        student = params.students[row.student]
        if student.source_model in folders and teacher in folders:
            folder = folders[student.source_model]
            faults += faults_of(check_beside, key, row, student, folder, folders[teacher])
    return list(dict.fromkeys(faults))


def _rows_beside(params: Params) -> Iterator[tuple[str, Method | GeneralEncoder, str | None]]:
    """Yield each row that a teacher runs beside: its key, itself, the teacher's model if named."""
    for name, encoder in params.encoders.items():
        if isinstance(encoder, GeneralEncoder):
            yield f"encoders.{name}", encoder, params.students[encoder.student].source_model
    for task in params.tasks:
        for name, row in params.methods_of(task).items():
            if row.teacher_runs:
                teacher = params.teachers[params.teacher_of(task, row)]
                yield f"methods.{name}", row, teacher.model


def _models_at_hand(params: Params, layout: Layout) -> dict[str, Path]:
    """Return the folders of those models that need no fetching, by name."""
    record = layout.models / "source.json"
    fetched = read_record(record, "source")["source"] if record.exists() else {}
    rows = {name: source.model_dump(mode="json") for name, source in params.models.items()}
    known = {name: layout.model(name) for name, row in rows.items() if row == fetched.get(name)}
    return known | params.local_models()


def check_fits(key: str, student: StudentSettings, folder: Path) -> None:
    """Check that a model has the layers and positions that a student needs; ``key`` is the student's in params.yaml."""
    if student.reads in ("sentences", "sequence"):
        check_positions(key, student, folder)
    count = layer_count(read_config(folder))
    if not student.pretrained or count is None:
        return
    if student.layers is None:
        if student.last > count:
            raise PotstillError(
                f"{key}.last: {student.last}, but {folder} has {count} layers. Set it to at most {count} in "
                "params.yaml."
            )
    elif max(student.layers) >= count:
        raise PotstillError(
            f"{key}.layers: {max(student.layers)}, but {folder} has {count} layers, 0 to "
            f"{count - 1}. Name some of them in params.yaml."
        )


def check_positions(key: str, student: StudentSettings, folder: Path) -> None:
    """Check that a model can read all word pieces that a student reads; ``key`` is the student's in params.yaml."""
    positions = position_count(read_config(folder))
    if positions is not None and student.max_words > positions:
        raise PotstillError(
            f"{key}.max_words: {student.max_words}, but {folder} has {positions} positions. Set it "
            f"to at most {positions} in params.yaml."
        )


def check_width(key: str, student: StudentSettings, model: Path, states: Path) -> None:
    """Check that the states of a row's student, of a ``model``, can be compared with its teacher's set ``states``."""
    student_width, width = layer_width(_configuration(student, model)), state_width(states)
    if width not in (student_width, None):
        raise PotstillError(
            f"{key}.objective: the states of {_name(student, model)} have {student_width} values, those of its teacher "
            f"{width}. Use a student of a model with {width}, or another teacher."
        )


def check_beside(key: str, row: Method | GeneralEncoder, student: StudentSettings, model: Path, teacher: Path) -> None:
    """Check that a teacher has the layers that a row names, and as many heads as its student, of a ``model``."""
    config, other = _configuration(student, model), read_config(teacher)
    count, highest = layer_count(other), max(row.teacher_runs.layers)
    if count is not None and highest > count:
        raise PotstillError(
            f"{key}.teacher_runs.layers: {highest}, but {teacher} has {count} layers, 1 to {count}. "
            "Name some of them in params.yaml."
        )
    heads = head_count(config), head_count(other)
    if "attentions" in row.objective.weights and heads[0] != heads[1]:
        raise PotstillError(
            f"{key}.objective.attentions: {_name(student, model)} has {heads[0]} attention heads, its teacher "
            f"{heads[1]}, and they are compared one by one. Leave the term out, or use another student."
        )


def _configuration(student: StudentSettings, model: Path) -> Mapping[str, Any]:
    """Return the configuration of a student's layers: its own sizes, or its model's."""
    if isinstance(student, BERT):
        return {"hidden_size": student.width, "num_attention_heads": student.heads}
    return read_config(model)


def _name(student: StudentSettings, model: Path) -> str:
    return "the student" if isinstance(student, BERT) else str(model)


def state_width(folder: Path) -> int | None:
    """Return the width of the layer states in a set; None if the set is empty."""
    shards = ShardSet.open(folder)
    for table in shards.tables():
        return table.schema.field("states").type.value_type.list_size
    return None


CLASSES = ["no", "yes"]
"""Stand for the labels of a task that is not known yet."""


def loading_faults(params: Params, layout: Layout | None = None) -> list[str]:
    """Return one line per model that cannot be loaded as params.yaml uses it.

    :param layout: where all models and finished teachers were fetched to; None: just those in local
        folders are loaded, from there.
    """
    inputs, faults = Path(params.inputs), []
    fetched = None if layout is None else {name: layout.model(name) for name in params.models}
    for name, folder in (fetched or params.local_models()).items():
        faults += _faults(f"params.yaml: models.{name}", params, name, folder)
    folders: dict[Path, str] = {}
    for name, teacher in params.teachers.items():
        for task in (task for task in params.tasks if teacher.knows(task)):
            if isinstance(teacher.tuning, Finished):
                local = inputs / teacher.tuning.path(task)
                folder = local if layout is None else layout.checkpoint(name, task)
                folders.setdefault(folder, f"params.yaml: teachers.{name}.tuning.checkpoint")
    for folder, key in folders.items():
        faults += [f"{key}: {fault}" for fault in finished_faults(folder)]
    return faults


def finished_faults(folder: Path) -> list[str]:
    """Return why a fine-tuned teacher cannot be run, if it cannot: one line, or none."""
    return faults_of(load_classifier, folder)


def base_faults(folder: Path, pooled: bool = False) -> list[str]:
    """Return why a model cannot be tuned as a teacher, if it cannot: one line, or none.

    :param pooled: see :func:`~pipeline_lib.models.teacher.load_classifier`.
    """
    return faults_of(load_classifier, folder, CLASSES, None, pooled)


def language_model_faults(folder: Path) -> list[str]:
    """Return why a causal language model cannot be asked, if it cannot: one line, or none."""
    return faults_of(load_pretrained, folder, CAUSAL, {})


def _faults(key: str, params: Params, name: str, folder: Path) -> list[str]:
    """Load a row of ``models`` in each way in which it is used."""
    vectors, faults = params.sentence_vectors, []
    if "scored" in {teacher.tuning.kind for teacher in params.teachers.values() if teacher.model == name}:
        faults += language_model_faults(folder)
    elif pooled := {teacher.tuning.head == "probe" for teacher in params.teachers.values() if teacher.model == name}:
        faults += chain.from_iterable(base_faults(folder, each) for each in pooled)
    elif vectors.model == name:
        faults += faults_of(load_vector_model, folder, "cpu", "float32", vectors.pooling)
    else:
        faults += faults_of(load_pretrained, folder, "AutoModel", {})
    return [f"{key}: {fault}" for fault in faults]
