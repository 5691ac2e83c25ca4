"""Several tasks' students in one network: a shared encoder, and a head for each task."""

from collections.abc import Iterable

from torch import nn

from .student import StudentNetwork

HEAD = ("hidden", "logits")
"""The parts of a student that are specific to its task."""


class JointNetwork(nn.Module):
    """Students of several tasks that share everything but their heads.

    Liu 2020, section 4.1.2: "shared" layers, and above them a ReLU layer and the outputs of each task.  The head of
    a pair task takes the comparison of both sentences, so its first layer may be wider.

    :ivar students: the networks, in the order of the tasks.  Each is an ordinary student that
        shares its weights with this network: training one updates all.
    """

    def __init__(self, students: Iterable[StudentNetwork]) -> None:
        """Join students; each shared part is taken from the first student that has it.

        :param students: untrained, of the same architecture and vocabulary.
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
        # torch does not look for modules in a tuple, so the weights, registered above, count once.
        self.students = tuple(joined)

    def train(self, mode: bool = True) -> "JointNetwork":
        """Set training or evaluation mode, for the students too."""
        for student in self.students:
            student.train(mode)
        return super().train(mode)
