"""Plans: a method's row with everything it refers to filled in.

DVC cannot make a stage depend on "the transfer set that this row names".  So a light stage resolves
each row into one small file: architecture, optimiser, objective, and the digests of the shard sets
to train on.  Training depends on that file alone, and runs again exactly when it changes.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline_lib.errors import DistilleryError
from pipeline_lib.files import read_json, write_json
from pipeline_lib.params import Objective, Optimiser, Params, Student
from pipeline_lib.shards import ShardSet, check_answers, read_manifest


class SetReference(BaseModel):
    """A shard set by place and content: ``digest`` is its manifest's."""

    model_config = ConfigDict(extra="forbid")

    folder: str
    digest: str

    @classmethod
    def to(cls, folder: Path) -> "SetReference":
        """Refer to the finished set in ``folder``."""
        return cls(folder=folder.as_posix(), digest=read_manifest(folder).digest)

    def open(self) -> ShardSet:
        """Open the set after checking manifest and shards.

        :raises DistilleryError: if it is another set than planned, or damaged.
        """
        shards = ShardSet.open(Path(self.folder))
        if shards.manifest.digest != self.digest:
            raise DistilleryError(f"{self.folder}: not the set that was planned. Run `dvc repro`.")
        faults = shards.verify()
        if faults:
            raise DistilleryError(
                f"{faults[0]} ({len(faults)} of {len(shards.manifest.shards)} shards damaged). "
                f"Delete {self.folder} and run `dvc repro`: only what is damaged is computed again."
            )
        return shards


class Plan(BaseModel):
    """All that determines a student besides its seed, the vocabulary and the dev set."""

    model_config = ConfigDict(extra="forbid")

    task: str
    method: str
    student: Student
    start: str
    objective: Objective
    optimiser: Optimiser
    metric: str
    pair: bool
    labels: list[str]
    inputs: SetReference
    outputs: SetReference | None


def make_plan(params: Params, task: str, method: str, data: Path) -> Plan:
    """Resolve one row for one task.

    :param data: the folder of all artifacts.
    :raises DistilleryError: if the outputs do not answer to the transfer set.
    """
    row = params.method(method)
    inputs = data / "transfer" / task / row.data
    outputs = data / "outputs" / task / row.data
    # Synthetic rows have no label of their own; there the teacher's argmax stands in.
    needs_outputs = row.objective.needs_teacher or not params.recipe(row.data).changes_nothing
    if needs_outputs:
        check_answers(read_manifest(inputs), read_manifest(outputs))
    return Plan(
        task=task,
        method=method,
        student=params.students[row.student],
        start=row.start,
        objective=row.objective,
        optimiser=params.optimisers[row.optimiser],
        metric=params.task(task).metrics[0],
        pair=params.task(task).is_pair,
        labels=params.task(task).label_names,
        inputs=SetReference.to(inputs),
        outputs=SetReference.to(outputs) if needs_outputs else None,
    )


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan as JSON."""
    write_json(path, plan.model_dump())


def read_plan(path: Path) -> Plan:
    """Read a plan.

    :raises DistilleryError: if it is missing or not a plan.
    """
    raw: Any = read_json(path)
    try:
        return Plan.model_validate(raw)
    except ValidationError as error:
        raise DistilleryError(f"{path}: not a plan. Run `dvc repro plan`.") from error
