"""How much of a stage's work is stored, and how much is to be computed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands.planning import rows, trainings
from pipeline_lib.commands.planning.stages import PlannedStage
from pipeline_lib.params import Params


@dataclass(frozen=True)
class Work:
    """Work of one kind.

    :ivar kind: ``rows``, or ``trainings``.
    :ivar stored: how much is there already; :ivar new: how much is to be computed.
    :ivar is_estimate: whether ``new`` is about right only: its input is not made yet.
    """

    kind: str
    stored: int
    new: int
    is_estimate: bool

    def __str__(self) -> str:
        about = "about " if self.is_estimate and self.new else ""
        return f"{self.kind}: {self.stored:,} stored, {about}{self.new:,} new"


@dataclass(frozen=True)
class _Counted:
    """How a stage's work is counted.

    :ivar undecided_by: the stages before it, whose outputs have to be there.
    """

    kind: str
    count: Callable[[Params, PlannedStage], Iterator[rows.Count]]
    undecided_by: tuple[str, ...]


_OF_TASK, _MODELS = ("fetch_data", "prepare"), ("fetch_models", "pretrain", "train_joint")
_COUNTED = {
    "augment": _Counted("rows", rows.augmented, _OF_TASK),
    "precompute": _Counted("rows", rows.answered, _OF_TASK),
    "finetune_teacher": _Counted("trainings", trainings.teachers, (*_OF_TASK, "fetch_models", "refine_teacher")),
    "refine_teacher": _Counted("trainings", trainings.refined, (*_OF_TASK, "fetch_models")),
    "pretrain": _Counted(
        "trainings", trainings.encoders, (*_OF_TASK, "fetch_models", "split_wikipedia", "augment", "precompute_vectors")
    ),
    "train": _Counted(
        "trainings", trainings.students, (*_OF_TASK, *_MODELS, "augment", "finetune_teacher", "precompute")
    ),
}


def work_of(stage: PlannedStage, params: Params) -> Work | None:
    """Return the work of a stage; None if it is not known before the run, or not counted."""
    counted = _COUNTED.get(stage.kind)
    before = {name.partition("@")[0] for name in stage.after}
    if counted is None or before & {*counted.undecided_by}:
        return None
    try:
        counts = [*counted.count(params, stage)]
    except (PotstillError, OSError):
        # What it reads is not here yet.
        return None
    return Work(
        counted.kind,
        sum(count.stored for count in counts),
        sum(count.new for count in counts),
        any(count.is_estimate for count in counts),
    )
