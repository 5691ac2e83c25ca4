"""Several tasks' students in one network: what reads is shared, and every task has its own head."""

from collections.abc import Iterable

from torch import nn

from pipeline_lib.networks.student import StudentNetwork

HEAD = ("hidden", "logits")
"""The parts of a student that are its task's own."""


class JointNetwork(nn.Module):
    """Students of several tasks that share all of their parts but the heads.

    Liu 2020, section 4.1.2: "shared" layers, and above them a ReLU layer and the outputs of each
    task.  A pair's head sees both sentences compared, so that its first layer may be wider.

    :ivar students: the networks by the tasks' order.  Each is a student like any other, whose
        weights are those of this network: what one learns, all have.
    """

    def __init__(self, students: Iterable[StudentNetwork]) -> None:
        """Join students: the shared parts are those of the first that has them.

        :param students: untrained, of one architecture and vocabulary.
        """
        super().__init__()
        self.shared, self.heads = nn.ModuleDict(), nn.ModuleList()
        joined = []
        for student in students:
            parts = dict(student.named_children())
            self.heads.append(nn.ModuleDict({name: parts.pop(name) for name in HEAD}))
            for name, part in parts.items():
                if name not in self.shared:
                    self.shared[name] = part
                setattr(student, name, self.shared[name])
            joined.append(student)
        # In a tuple torch sees no modules: the weights, which it knows already, count once.
        self.students = tuple(joined)

    def train(self, mode: bool = True) -> "JointNetwork":
        """Set training or evaluation, of the students too."""
        for student in self.students:
            student.train(mode)
        return super().train(mode)
