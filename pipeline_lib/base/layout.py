"""Where files are: artifacts, which outputs belong to which inputs, and the state folder."""

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline_lib.base.errors import DistilleryError

HELDOUT, STATES = "heldout", "states"
"""The folders of outputs for held-out splits, and of layers' states, beside those of the teachers;
reserved names."""
HOME, FORMER_HOME = "POTSTILL_HOME", "DISTILLERY_HOME"
"""The environment variable that names the state folder, and what it was called before."""


@dataclass(frozen=True)
class Layout:
    """The folder of all artifacts.

    :ivar data: the folder; relative to the project's root by default.
    """

    data: Path = Path("data")

    # What the stages' code is.

    @property
    def fingerprints(self) -> Path:
        """The folder of the digests of all stages' code."""
        return self.data / "fingerprints"

    def fingerprint(self, stage: str) -> Path:
        """Return the file of the digests of a stage's code."""
        return self.fingerprints / f"{stage}.json"

    @property
    def settings(self) -> Path:
        """The folder of what all stages read of params.yaml."""
        return self.data / "settings"

    def stage_settings(self, stage: str, item: str | None) -> Path:
        """Return the file of what a stage reads of params.yaml; ``item``: one of its matrix."""
        return self.settings / (f"{stage}/{item}.json" if item else f"{stage}.json")

    def row_names(self, folder: Path) -> Path:
        """Return the file of the rows that a folder has outputs for: it exists if there are none.

        :param folder: of all refined teachers, encoders or joint trainings.
        """
        return folder / "rows.json"

    # What was fetched.

    def raw_task(self, task: str) -> Path:
        """Return the folder of a task's raw files."""
        return self.data / "raw" / "tasks" / task

    @property
    def models(self) -> Path:
        """The folder of all pretrained models."""
        return self.data / "raw" / "models"

    def model(self, name: str) -> Path:
        """Return a pretrained model."""
        return self.models / name

    @property
    def checkpoints(self) -> Path:
        """The folder of all teachers that were fine-tuned elsewhere."""
        return self.data / "raw" / "checkpoints"

    def checkpoint(self, teacher: str, task: str) -> Path:
        """Return a task's teacher that was fine-tuned elsewhere."""
        return self.checkpoints / teacher / task

    @property
    def raw_vectors(self) -> Path:
        """The folder of the file of word vectors."""
        return self.data / "raw" / "vectors"

    @property
    def given_vectors(self) -> Path:
        """The folder of sentence vectors supplied as files, by content key."""
        return self.data / "raw" / "sentence_vectors"

    # What is computed row for row.

    def task(self, task: str) -> Path:
        """Return the folder of a prepared task."""
        return self.data / "tasks" / task

    def split(self, task: str, split: str) -> Path:
        """Return the shard set of a prepared task's split."""
        return self.task(task) / split

    def heldout_splits(self, task: str) -> list[str]:
        """Return the names of a prepared task's held-out splits: dev, test, then further ones."""
        names = [path.name for path in self.task(task).iterdir() if path.is_dir()]
        return sorted({*names} - {"train"}, key=lambda name: ("_" in name, name))

    def lexicon(self, task: str) -> Path:
        """Return the file of a task's lexicon."""
        return self.data / "lexicons" / task / "lexicon.arrow"

    def transfer_sets(self, task: str) -> Path:
        """Return the folder of a task's transfer sets."""
        return self.data / "transfer" / task

    def transfer(self, task: str, recipe: str) -> Path:
        """Return a transfer set."""
        return self.transfer_sets(task) / recipe

    def all_outputs(self, task: str) -> Path:
        """Return the folder of all outputs of a task's teachers."""
        return self.data / "outputs" / task

    def read_by_encoders(self, task: str) -> Path:
        """Return the file of the digests of a task's sets that encoders read."""
        return self.data / "digests" / "encoders" / f"{task}.json"

    def read_by_joint(self, task: str) -> Path:
        """Return the file of the digests of a task's sets that joint trainings read."""
        return self.data / "digests" / "joint" / f"{task}.json"

    def outputs(self, task: str, teacher: str, recipe: str) -> Path:
        """Return a teacher's outputs for a transfer set."""
        return self.all_outputs(task) / teacher / recipe

    def heldout_outputs(self, task: str, teacher: str, split: str) -> Path:
        """Return a teacher's outputs for a held-out split."""
        return self.all_outputs(task) / HELDOUT / teacher / split

    def states(self, task: str, teacher: str, recipe: str) -> Path:
        """Return the states of a teacher's layers for a transfer set."""
        return self.all_outputs(task) / STATES / teacher / recipe

    def wikipedia(self, split: str) -> Path:
        """Return Wikipedia's sentences: ``train``, or ``validation``, from other articles."""
        return self.data / "wikipedia" / split

    @property
    def vectors(self) -> Path:
        """The folder of all sentence vectors."""
        return self.data / "vectors"

    def wikipedia_vectors(self, split: str) -> Path:
        """Return the vectors of Wikipedia's sentences."""
        return self.vectors / "wikipedia" / split

    def task_vectors(self, task: str, recipe: str) -> Path:
        """Return the vectors of a transfer set's sentences."""
        return self.vectors / "tasks" / task / recipe

    # What is trained and scored.

    @property
    def refined(self) -> Path:
        """The folder of all teachers that were tuned on several tasks at once."""
        return self.data / "refined"

    def refined_teachers(self, name: str) -> Path:
        """Return the folder of one refined teacher, by task."""
        return self.refined / name

    def refined_teacher(self, task: str, name: str) -> Path:
        """Return one task's teacher, taken from a refined one."""
        return self.refined_teachers(name) / task

    def teachers(self, task: str) -> Path:
        """Return the folder of a task's tuned teachers."""
        return self.data / "teachers" / task

    def teacher(self, task: str, name: str) -> Path:
        """Return one of a task's tuned teachers."""
        return self.teachers(task) / name

    def vocabulary(self, task: str) -> Path:
        """Return the vocabulary of a task's students."""
        return self.data / "vocabularies" / task

    @property
    def encoders(self) -> Path:
        """The folder of all encoders."""
        return self.data / "encoders"

    def encoder(self, name: str) -> Path:
        """Return an encoder."""
        return self.encoders / name

    def catalogue(self, name: str) -> Path:
        """Return a catalogue of embedded sentences."""
        return self.data / "catalogues" / name

    @property
    def all_joint(self) -> Path:
        """The folder of all joint trainings."""
        return self.data / "joint"

    def joint(self, name: str) -> Path:
        """Return the folder of a joint training: its vocabulary, and its students by seed."""
        return self.all_joint / name

    def joint_vocabulary(self, name: str) -> Path:
        """Return the vocabulary of a joint training's students."""
        return self.joint(name) / "vocabulary"

    def joint_students(self, name: str, seed: int) -> Path:
        """Return the folder of the students of one joint training, by task."""
        return self.joint(name) / str(seed)

    def joint_student(self, name: str, seed: int, task: str) -> Path:
        """Return one task's student of a joint training."""
        return self.joint_students(name, seed) / task

    def students(self, task: str) -> Path:
        """Return the folder of a task's students, ``<method>/<seed>``."""
        return self.data / "students" / task

    def student(self, task: str, method: str, seed: int) -> Path:
        """Return one student."""
        return self.students(task) / method / str(seed)

    def results(self, task: str) -> Path:
        """Return the folder of a task's scores and predictions."""
        return self.data / "results" / task

    def scores(self, task: str) -> Path:
        """Return the file of a task's scores."""
        return self.results(task) / "scores.json"

    def predictions(self, task: str) -> Path:
        """Return the file of all systems' predictions on a task's held-out splits."""
        return self.results(task) / "predictions.arrow"

    def importance(self, task: str) -> Path:
        """Return the file of word importances for the predictions on a few of a task's rows."""
        return self.results(task) / "importance.json"

    # Beside the tasks' results, whose names have no hyphen: the report depends on one folder.

    def retrieval(self, name: str) -> Path:
        """Return the file of the scores of one row of `retrieval`."""
        return self.data / "results" / f"retrieval-{name}" / "scores.json"

    def similarity(self, name: str) -> Path:
        """Return the file of the scores of one row of `similarity`."""
        return self.data / "results" / f"similarity-{name}" / "scores.json"

    def speed(self, task: str) -> Path:
        """Return the file of a task's timings."""
        return self.data / "speed" / f"{task}.json"

    def exported(self, task: str) -> Path:
        """Return the folder of the export of a task's best student."""
        return self.data / "exports" / task

    @property
    def report(self) -> Path:
        """The report of all tasks."""
        return self.data / "report" / "results.md"

    @property
    def page(self) -> Path:
        """The same as a web page, with everything else known about the run."""
        return self.data / "report" / "index.html"

    @property
    def page_content(self) -> Path:
        """The page's content, as JSON."""
        return self.data / "report" / "report.json"

    @property
    def curves(self) -> Path:
        """The folder of the learning curves, a CSV file each."""
        return self.data / "report" / "curves"

    @property
    def accuracy_speed(self) -> Path:
        """The file of score and speed of each system."""
        return self.data / "report" / "accuracy_speed.csv"

    def stage_record(self, stage: str) -> Path:
        """Return the record of a stage's last run here; ``train@movies`` is one of a matrix."""
        return self.data / "stages" / f"{stage}.json"


@dataclass(frozen=True)
class StudentPlace:
    """Which student a folder holds."""

    layout: Layout
    task: str
    method: str
    seed: int


def student_place(folder: Path) -> StudentPlace | None:
    """Return which student's folder this is, by its path; None if it is not one.

    The inverse of :meth:`Layout.student`.
    """
    parts = Path(os.path.abspath(folder)).parts
    if len(parts) < 5 or parts[-4] != "students" or not parts[-1].isdecimal():
        return None
    data = Path(os.path.relpath(Path(*parts[:-4])))
    return StudentPlace(Layout(data), parts[-3], parts[-2], int(parts[-1]))


@dataclass(frozen=True)
class Pair:
    """Inputs and the teacher's outputs for them; either folder may not exist (yet)."""

    inputs: Path
    outputs: Path


def pair_of(folder: Path) -> Pair | None:
    """Return the pair that ``folder`` is one half of, or None if it belongs to none.

    The inverse of :class:`Layout`: ``outputs/T/N/R`` of teacher N belongs to ``transfer/T/R``,
    ``outputs/T/heldout/N/dev`` to ``tasks/T/dev``, ``vectors/wikipedia/S`` to ``wikipedia/S``,
    ``vectors/tasks/T/R`` and ``outputs/T/states/N/R`` to ``transfer/T/R``.  Inputs are paired with
    the first teacher, by name, whose outputs exist.
    """
    parts = Path(os.path.abspath(folder)).parts
    for depth, find in ((5, _deepest_pair), (4, _deep_pair), (3, _pair), (2, _shallow_pair)):
        if len(parts) > depth:
            data = Path(os.path.relpath(Path(*parts[:-depth])))
            pair = find(Layout(data), *parts[-depth:])
            if pair is not None:
                # The path that was passed in keeps its spelling.
                inputs, outputs = pair
                same = os.path.abspath(inputs) == os.path.abspath(folder)
                return Pair(folder, outputs) if same else Pair(inputs, folder)
    return None


def _deepest_pair(layout: Layout, kind: str, *rest: str) -> tuple[Path, Path] | None:
    task, folder, teacher, name = rest
    if kind == "outputs" and folder == HELDOUT:
        return layout.split(task, name), layout.heldout_outputs(task, teacher, name)
    if kind == "outputs" and folder == STATES:
        return layout.transfer(task, name), layout.states(task, teacher, name)
    return None


def _deep_pair(layout: Layout, kind: str, *rest: str) -> tuple[Path, Path] | None:
    if kind == "vectors" and rest[0] == "tasks":
        return layout.transfer(*rest[1:]), layout.task_vectors(*rest[1:])
    if kind == "outputs":
        return layout.transfer(rest[0], rest[2]), layout.outputs(*rest)
    return None


def _pair(layout: Layout, kind: str, first: str, second: str) -> tuple[Path, Path] | None:
    if kind == "vectors" and first == "wikipedia":
        return layout.wikipedia(second), layout.wikipedia_vectors(second)
    if kind == "transfer":
        return layout.transfer(first, second), _answering(layout, first, f"*/{second}")
    if kind == "tasks" and second.startswith(("dev", "test")):
        return layout.split(first, second), _answering(layout, first, f"{HELDOUT}/*/{second}")
    return None


def _answering(layout: Layout, task: str, pattern: str) -> Path:
    """Return the first outputs by teacher's name; ``pattern`` has a star for that name."""
    manifests = sorted(layout.all_outputs(task).glob(f"{pattern}/manifest.json"))
    return manifests[0].parent if manifests else layout.all_outputs(task) / pattern


def _shallow_pair(layout: Layout, kind: str, split: str) -> tuple[Path, Path] | None:
    if kind == "wikipedia":
        return layout.wikipedia(split), layout.wikipedia_vectors(split)
    return None


def state_folder() -> Path:
    """Return the folder for what must outlive a killed stage: the store and training checkpoints.

    ``POTSTILL_HOME`` if set (two machines can share it), else ``.potstill`` in the main workspace:
    DVC sets ``DVC_ROOT`` for every stage, also for experiments in temporary folders.  If the
    workspace has none, the nearest one in a folder above is used, which workspaces can share.
    Both had other names before; what still has them is used, with a notice.
    """
    if variable := _home_variable():
        return Path(os.environ[variable])
    root = Path(os.environ.get("DVC_ROOT", "."))
    folder, former = root / ".potstill", root / ".distillery"
    if folder.exists():
        return folder
    if not former.exists():
        above = (parent / ".potstill" for parent in root.resolve().parents)
        return next((shared for shared in above if shared.is_dir()), folder)
    _notice(
        f"{former} is used as the state folder. It is now called {folder}: mv {former} {folder}"
    )
    return former


def _home_variable() -> str | None:
    """Return the name of the environment variable that names the state folder, if one is set."""
    if os.environ.get(HOME):
        return HOME
    if os.environ.get(FORMER_HOME):
        _notice(f"{FORMER_HOME} is set. It is now called {HOME}: set that instead.")
        return FORMER_HOME
    return None


@cache
def _notice(line: str) -> None:
    """Print a line to stderr, once per process."""
    print(line, file=sys.stderr)


def check_state_folder() -> None:
    """Create the state folder, and check that it is writable.

    :raises DistilleryError: if it cannot be created or written to.
    """
    folder, variable = state_folder(), _home_variable()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
        reason = "not writable"
    except OSError as error:
        reason = str(error.strerror or error)
    raise DistilleryError(
        f"{f'{variable}: ' if variable else ''}{folder} cannot be used as a folder ({reason}). "
        + ("Set it to a folder that you may write to, or unset it" if variable else "Move it away")
        + ", then run again."
    )
