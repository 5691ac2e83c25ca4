"""What can be rejected before anything is computed: number formats, and the user's own models.

``distill check`` reports all of it; the stages ``fingerprint`` and ``fetch_models`` reject the same
before the first expensive stage.
"""

from pathlib import Path

from pipeline_lib.base.errors import PotstillError, faults_of
from pipeline_lib.params import Finished, Params


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
    from pipeline_lib.sources.models import check_classifier, check_layers, check_length, check_local_model

    inputs, local, faults = Path(params.inputs), params.local_models(), []
    for file in (file for file in params.input_files() if file.is_model):
        faults += faults_of(check_local_model, file.path, f"params.yaml: {file.key}")
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
