"""What can be rejected before anything is computed: number formats, and the user's own models.

``distill check`` reports all of it; the stages ``fingerprint`` and ``fetch_models`` reject the same.
"""

from pathlib import Path

from pipeline_lib.base.errors import PotstillError, faults_of, reason_of
from pipeline_lib.base.model_config import (
    check_is_model,
    check_problem_type,
    is_classifier,
    layer_count,
    output_names,
    position_count,
    read_config,
)
from pipeline_lib.params.models import Finished, Teacher
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task


def require_formats(params: Params) -> None:
    """Check that this machine can train every student in the number format asked for."""
    faults = format_faults(params)
    if faults:
        raise PotstillError("\n".join(faults))


def format_faults(params: Params) -> list[str]:
    """Return one line per optimiser in whose number format one of its students cannot train."""
    rows = [row for row in params.methods.values() if row.optimiser is not None]
    rows += [*params.encoders.values(), *params.joint.values()]
    pairs = [(row.optimiser, row.student) for row in rows]
    asked = sorted(p for p in set(pairs) if params.optimisers[p[0]].precision == "bfloat16")
    if not asked:
        return []
    # Imported only if there is something to try: `distill check` should answer at once.
    from pipeline_lib.base.devices import resolve_device, resolve_training_precision

    device, faults = resolve_device(params.device), []
    for optimiser, student in asked:
        recurrent = params.students[student].recurrent
        try:
            resolve_training_precision("bfloat16", device, recurrent)
        except PotstillError as error:
            faults.append(f"params.yaml: optimisers.{optimiser}.{error}")
    return faults


def model_faults(params: Params) -> list[str]:
    """Return one line per local model that does not match what params.yaml says about it.

    Models that are fetched over the network are checked after the download.
    """
    inputs, local, faults = Path(params.inputs), params.local_models(), []
    for file in (file for file in params.input_files() if file.is_model):
        faults += faults_of(require_folder, file.path, f"params.yaml: {file.key}") or faults_of(check_model, file.path)
    for key, length, name in params.lengths():
        if name in local:
            faults += faults_of(check_length, local[name], local[name], length, key)
    for name, teacher in params.teachers.items():
        if (base := local.get(teacher.model)) is not None:
            faults += faults_of(check_layers, base, base, teacher, f"teachers.{name}")
        if isinstance(teacher.tuning, Finished):
            for task in (task for task in params.tasks if teacher.knows(task)):
                folder, settings = inputs / teacher.tuning.path(task), params.tasks[task]
                faults += faults_of(check_classifier, folder, folder, task, settings)
                key = f"teachers.{name}.max_length"
                faults += faults_of(check_length, folder, folder, teacher.max_length, key)
                faults += faults_of(check_layers, folder, folder, teacher, f"teachers.{name}")
    return list(dict.fromkeys(faults))


def require_folder(folder: Path, where: str) -> None:
    """Check that a model's folder is there.

    :param where: the key of params.yaml that names it.
    """
    if not folder.is_dir():
        raise PotstillError(f"{where}: {folder} is not a folder. Put the model there, or correct the path.")


def check_model(folder: Path, origin: Path | str | None = None) -> None:
    """Check that a folder holds a valid configuration, a tokenizer and whole safetensors weights.

    :param origin: where the model came from, for messages; None: the folder.
    """
    from safetensors import SafetensorError, safe_open

    origin = origin or folder
    check_is_model(folder, origin)
    weights = sorted(folder.glob("*.safetensors"))
    names = {path.name for path in folder.iterdir()}
    tokenizer = names & {"tokenizer.json", "vocab.txt", "vocab.json"} or list(folder.glob("*.model"))
    if not tokenizer:
        raise PotstillError(
            f"{origin}: no tokenizer (tokenizer.json, vocab.txt, vocab.json or *.model). Add it "
            "with tokenizer.save_pretrained(folder)."
        )
    for path in weights:
        try:
            with safe_open(path, "numpy") as tensors:
                tensors.keys()
        except (SafetensorError, OSError) as error:
            raise PotstillError(
                f"{origin}: {path.name} is a truncated or invalid safetensors file ({reason_of(error)}). Download "
                "it again."
            ) from error


def check_classifier(folder: Path, origin: Path | str, task: str, settings: Task) -> None:
    """Check that a finished teacher fits the task: its head, its kind, number and order of labels.

    Case and surrounding spaces are ignored.  Missing or default names (``LABEL_0``) are matched by
    number, as is the one output of a regression, whatever its name.

    :param task: the task's name; :param settings: its parameters.
    """
    config, labels = read_config(folder, origin), settings.label_names
    if not is_classifier(config):
        heads = config.get("architectures") or []
        raise PotstillError(
            f"{origin}: architectures in config.json is {heads}, not a ...ForSequenceClassification, so its head would "
            "be random. Give a fine-tuned model, or have it tuned here (`kind: single`)."
        )
    check_problem_type(config, origin, settings.kind)
    names = output_names(config, origin)
    if len(names) != len(labels):
        raise PotstillError(
            f"{origin}: the model has {len(names)} label{'s' * (len(names) != 1)} ({', '.join(names)}), tasks.{task}."
            f"labels has {len(labels)} ({', '.join(labels)}). Use the model of this task, or correct the labels."
        )
    plain, expected = ([name.strip().casefold() for name in each] for each in (names, labels))
    if len(labels) == 1 or plain in (expected, [f"label_{number}" for number in range(len(labels))]):
        return
    remedy = (
        f"Put tasks.{task}.labels into the model's order."
        if sorted(plain) == sorted(expected)
        else "Use the model of this task; or, where they mean the same in this order, name "
        f"tasks.{task}.labels as the model does."
    )
    raise PotstillError(
        f"{origin}: the model's labels are, in this order, {', '.join(names)}; "
        f"tasks.{task}.labels are {', '.join(labels)}. {remedy}"
    )


def check_length(folder: Path, origin: Path | str, max_length: int, key: str) -> None:
    """Check that a model has as many positions as ``max_length`` requires.

    :param key: of that length in params.yaml.
    """
    positions = position_count(read_config(folder, origin))
    if positions is not None and max_length > positions:
        raise PotstillError(
            f"{origin}: {key} is {max_length}, the model has {positions} positions. "
            f"Set it to at most {positions} in params.yaml."
        )


def check_layers(folder: Path, origin: Path | str, teacher: Teacher, key: str) -> None:
    """Check that a model has the layers whose states the teacher made from it must provide.

    :param key: the teacher's in params.yaml.
    """
    count = layer_count(read_config(folder, origin))
    last = max(teacher.states.layers) if teacher.states else 0
    if count is not None and last > count:
        raise PotstillError(
            f"{origin}: {key}.states.layers has {last}, the model has {count} layers, 1 to "
            f"{count}. Name some of them in params.yaml."
        )
