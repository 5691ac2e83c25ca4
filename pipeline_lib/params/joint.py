"""Joint training in params.yaml: one student that learns several tasks at once."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.params.base import Positive, Probability, Ref, Section
from pipeline_lib.params.methods import Objective


class Joint(Section):
    """A student shared by several tasks, trained on all of them (Liu 2020, algorithm 1).

    ``tasks`` names the group's tasks, each with the transfer set that it contributes. ``min_count`` is how often a
    word must occur in the tasks' training sets together to be known. ``sampling: all`` uses every batch of every
    task once per epoch; a number a uses as many batches, but draws the task of each with a probability proportional
    to (rows of the task) ** a. ``teacher`` can be left out if no task of the group has more than one.
    """

    student: Annotated[str, Ref("students")]
    start: Literal["vectors", "random", "model"]
    tasks: Annotated[dict[str, str], Field(min_length=1), Ref("tasks")]
    objective: Objective
    optimiser: Annotated[str, Ref("optimisers")]
    min_count: Positive
    sampling: Literal["all"] | Probability
    teacher: Annotated[str | None, Ref("teachers")] = None
