"""Joint training in params.yaml: one student that learns several tasks at once."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import Ref, Section

JOINT_OBJECTIVE = {"logits": 1.0}
"""What a joint training learns (Liu 2020, section 4.1.3): the teachers' logits, by squared error."""


class Joint(Section):
    """A student shared by several tasks, trained on all of them (Liu 2020, algorithm 1).

    ``tasks`` names the group's tasks, each with the transfer set that it contributes. ``teacher`` can be left out if
    no task of the group has more than one.
    """

    student: Annotated[str, Ref("students")]
    start: Literal["vectors", "random", "model"]
    tasks: Annotated[dict[str, str], Field(min_length=1), Ref("tasks")]
    optimiser: Annotated[str, Ref("optimisers")]
    teacher: Annotated[str | None, Ref("teachers")] = None
