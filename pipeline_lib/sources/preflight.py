"""What can be refused before anything is computed: number formats, and the user's own models.

``distill check`` says all of it; ``stages/fetch_teacher.py`` refuses the same before the first
expensive stage.
"""

from pathlib import Path

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Params


def require_formats(params: Params) -> None:
    """Check that this machine can train every student in the number format asked for.

    :raises DistilleryError: naming each optimiser whose ``precision`` cannot be had.
    """
    faults = format_faults(params)
    if faults:
        raise DistilleryError("\n".join(faults))


def format_faults(params: Params) -> list[str]:
    """Return one line per optimiser in whose number format one of its students cannot train."""
    rows = [row for row in params.methods.values() if row.optimiser is not None]
    rows += [*params.encoders.values(), *params.joint.values()]
    pairs = [(row.optimiser, row.student) for row in rows]
    asked = sorted(p for p in set(pairs) if params.optimisers[p[0]].precision == "bfloat16")
    if not asked:
        return []
    # Imported only where there is something to try: `distill check` is to answer at once.
    from pipeline_lib.base.devices import resolve_device, resolve_student_precision

    device, found = resolve_device(params.device), []
    for optimiser, student in asked:
        recurrent = params.students[student].recurrent
        try:
            resolve_student_precision("bfloat16", device, recurrent)
        except DistilleryError as error:
            found.append(f"params.yaml: optimisers.{optimiser}.{error}")
    return found


def model_faults(params: Params) -> list[str]:
    """Return one line per local model that does not fit what params.yaml says of it.

    Models that are fetched over the network are checked once they are there.
    """
    from pipeline_lib.sources.models import check_classifier, check_length

    teacher, inputs, found = params.teacher, Path(params.inputs), []
    try:
        if teacher.source.kind == "path" and (teacher.checkpoint is None or params.encoders):
            base = inputs / teacher.source.path
            check_length(base, base, teacher.max_length)
    except DistilleryError as error:
        found.append(str(error))
    for name, task in params.tasks.items() if teacher.checkpoint else ():
        folder = inputs / teacher.checkpoint.replace("{task}", name)
        try:
            check_classifier(folder, folder, name, task.label_names)
            check_length(folder, folder, teacher.max_length)
        except DistilleryError as error:
            found.append(str(error))
    return found
