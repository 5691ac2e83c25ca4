"""Where files are: artifacts, which outputs belong to which inputs, and the state folder."""

import os
import re
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError

HELDOUT, STATES = "heldout", "states"
"""The folders of outputs for held-out splits, and of layers' states, beside those of the teachers; reserved names."""
HOME = "POTSTILL_HOME"
_NAME = re.compile(r"\{(\w+)\}")


class Located:
    """A path below the folder of all artifacts; the same template reads the names in a path.

    :param template: the path.  If it has names in braces, the attribute is called with these, in their order.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        self.names = _NAME.findall(template)

    def __get__(self, layout: "Layout | None", _: type) -> Any:
        if layout is None:
            return self
        return partial(self.path, layout) if self.names else layout.data / self.template

    def path(self, layout: "Layout", *names: str | int) -> Path:
        """Return the path with these names in it."""
        return layout.data / self.template.format(**dict(zip(self.names, names, strict=True)))

    def match(self, folder: Path) -> "tuple[Layout, dict[str, str]] | None":
        """Return the layout that a path is in, and the names in the path; None if it is another's.

        Names must be whole folders.
        """
        template, parts = Path(self.template).parts, Path(os.path.abspath(folder)).parts
        above, below = parts[: -len(template)], parts[-len(template) :]
        names = {t.strip("{}"): part for t, part in zip(template, below, strict=False) if "{" in t}
        if not above or Path(*below) != Path(self.template.format(**names)):
            return None
        return Layout(Path(os.path.relpath(Path(*above)))), names


@dataclass(frozen=True)
class Layout:
    """The folder of all artifacts."""

    data: Path = Path("data")

    # What the stages' code is, and what they read of params.yaml.
    fingerprints = Located("fingerprints")
    fingerprint = Located("fingerprints/{stage}.json")
    settings = Located("settings")

    # What was fetched. A checkpoint is a teacher that was fine-tuned elsewhere.
    raw_task = Located("raw/tasks/{task}")
    models = Located("raw/models")
    model = Located("raw/models/{name}")
    checkpoints = Located("raw/checkpoints")
    checkpoint = Located("raw/checkpoints/{teacher}/{task}")
    raw_vectors = Located("raw/vectors")

    # What is computed row for row. Wikipedia's splits are of different articles.
    task = Located("tasks/{task}")
    split = Located("tasks/{task}/{split}")
    lexicon = Located("lexicons/{task}/lexicon.arrow")
    transfer_sets = Located("transfer/{task}")
    transfer = Located("transfer/{task}/{recipe}")
    all_outputs = Located("outputs/{task}")
    outputs = Located("outputs/{task}/{teacher}/{recipe}")
    heldout_outputs = Located(f"outputs/{{task}}/{HELDOUT}/{{teacher}}/{{split}}")
    states = Located(f"outputs/{{task}}/{STATES}/{{teacher}}/{{recipe}}")
    read_by_encoders = Located("digests/encoders/{task}.json")
    read_by_joint = Located("digests/joint/{task}.json")
    all_read_by_fetching = Located("digests/wikipedia")
    read_by_fetching = Located("digests/wikipedia/{task}.json")
    started_from = Located("digests/starts")
    read_by_training = Located("digests/starts/{task}.json")
    wikipedia = Located("wikipedia/{split}")
    vectors = Located("vectors")
    wikipedia_vectors = Located("vectors/wikipedia/{split}")
    task_vectors = Located("vectors/tasks/{task}/{recipe}")

    # What is trained. Refined teachers were tuned on several tasks at once.
    refined = Located("refined")
    refined_teachers = Located("refined/{name}")
    refined_teacher = Located("refined/{name}/{task}")
    teachers = Located("teachers/{task}")
    teacher = Located("teachers/{task}/{name}")
    vocabulary = Located("vocabularies/{task}")
    encoders = Located("encoders")
    encoder = Located("encoders/{name}")
    all_joint = Located("joint")
    joint = Located("joint/{name}")
    joint_vocabulary = Located("joint/{name}/vocabulary")
    joint_students = Located("joint/{name}/{seed}")
    joint_student = Located("joint/{name}/{seed}/{task}")
    students = Located("students/{task}")
    student = Located("students/{task}/{method}/{seed}")

    # What is scored. The report depends on one folder, and no task's name has a hyphen.
    results = Located("results/{task}")
    scores = Located("results/{task}/scores.json")
    predictions = Located("results/{task}/predictions.arrow")
    importance = Located("results/{task}/importance.json")
    retrieval = Located("results/retrieval-{name}/scores.json")
    similarity = Located("results/similarity-{name}/scores.json")
    speed = Located("speed/{task}.json")
    exported = Located("exports/{task}")
    report = Located("report/results.md")
    page = Located("report/index.html")
    page_content = Located("report/report.json")
    curves = Located("report/curves")
    accuracy_speed = Located("report/accuracy_speed.csv")
    stage_record = Located("stages/{stage}.json")
    """The record of a stage's last run here; ``train@movies`` is one of a matrix."""

    def stage_settings(self, stage: str, item: str | None) -> Path:
        """Return the file of what a stage reads of params.yaml; ``item``: one of its matrix."""
        return self.settings / (f"{stage}/{item}.json" if item else f"{stage}.json")

    def row_names(self, folder: Path) -> Path:
        """Return the file of the rows that a folder has outputs for: it exists if there are none.

        :param folder: of all refined teachers, encoders or joint trainings.
        """
        return folder / "rows.json"

    def heldout_splits(self, task: str) -> list[str]:
        """Return the names of a prepared task's held-out splits: dev, test, then further ones."""
        names = [path.name for path in self.task(task).iterdir() if path.is_dir()]
        return sorted({*names} - {"train"}, key=lambda name: ("_" in name, name))


@dataclass(frozen=True)
class StudentPlace:
    """Which student a folder holds."""

    layout: Layout
    task: str
    method: str
    seed: int


def student_place(folder: Path) -> StudentPlace | None:
    """Return which student's folder this is, by its path; None if it is not one."""
    layout, names = Layout.student.match(folder) or (None, {"seed": ""})
    if not names["seed"].isdecimal():
        return None
    return StudentPlace(layout, names["task"], names["method"], int(names["seed"]))


@dataclass(frozen=True)
class Pair:
    """Inputs and the teacher's outputs for them; either folder may not exist (yet)."""

    inputs: Path
    outputs: Path


_PAIRS: tuple[tuple[Located, Located], ...] = (
    (Layout.split, Layout.heldout_outputs),
    (Layout.transfer, Layout.states),
    (Layout.transfer, Layout.task_vectors),
    (Layout.transfer, Layout.outputs),
    (Layout.wikipedia, Layout.wikipedia_vectors),
)
"""Inputs, and outputs that belong to them; of outputs whose paths are alike, the deepest first."""


def pair_of(folder: Path) -> Pair | None:
    """Return the pair that ``folder`` is one half of, or None if it belongs to none.

    Inputs are paired with the first teacher, by name, whose outputs exist.
    """
    for inputs, outputs in _PAIRS:
        if match := outputs.match(folder):
            layout, names = match
            return Pair(inputs.path(layout, *(names[name] for name in inputs.names)), folder)
    if match := Layout.transfer.match(folder):
        layout, names = match
        return Pair(folder, _answering(layout, names["task"], f"*/{names['recipe']}"))
    match = Layout.split.match(folder)
    if match and match[1]["split"].startswith(("dev", "test")):
        layout, names = match
        return Pair(folder, _answering(layout, names["task"], f"{HELDOUT}/*/{names['split']}"))
    if match := Layout.wikipedia.match(folder):
        layout, names = match
        return Pair(folder, layout.wikipedia_vectors(names["split"]))
    return None


def _answering(layout: Layout, task: str, pattern: str) -> Path:
    """Return the first outputs by teacher's name; ``pattern`` has a star for that name."""
    manifests = sorted(layout.all_outputs(task).glob(f"{pattern}/manifest.json"))
    return manifests[0].parent if manifests else layout.all_outputs(task) / pattern


def state_folder() -> Path:
    """Return the folder for what must outlive a killed stage: the store and training checkpoints.

    ``POTSTILL_HOME`` if set (two machines can share it), else ``.potstill`` in the main workspace:
    DVC sets ``DVC_ROOT`` for every stage, also for experiments in temporary folders.  If the
    workspace has none, the nearest one in a folder above is used, which workspaces can share.
    """
    if home := os.environ.get(HOME):
        return Path(home)
    root = Path(os.environ.get("DVC_ROOT", "."))
    folder = root / ".potstill"
    above = () if folder.exists() else (parent / ".potstill" for parent in root.resolve().parents)
    return next((shared for shared in above if shared.is_dir()), folder)


def check_state_folder() -> None:
    """Create the state folder, and check that it is writable; what a group's folder gets, the group may write."""
    folder, variable = state_folder(), HOME if os.environ.get(HOME) else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            if folder.stat().st_mode & stat.S_IWGRP:
                os.umask(os.umask(0) & ~stat.S_IRWXG)
            return
        reason = "not writable"
    except OSError as error:
        reason = str(error.strerror or error)
    raise PotstillError(
        f"{f'{variable}: ' if variable else ''}{folder} cannot be used as a folder ({reason}). "
        + ("Set it to a folder that you may write to, or unset it" if variable else "Move it away")
        + ", then run again."
    )
