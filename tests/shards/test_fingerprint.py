"""Same code, same key: what a fingerprint sees, and what the stages depend on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.files import read_json
from pipeline_lib.shards import fingerprint
from pipeline_lib.shards.fingerprint import (
    ARCHITECTURES,
    DECIDED_BY,
    EXEMPT,
    code_fingerprint,
    deciding,
    imports,
    library_versions,
    module_code,
    path_of,
)

PROJECT = Path(__file__).parents[2]
STAGES = YAML(typ="safe", pure=True).load((PROJECT / "dvc.yaml").read_text())["stages"]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the fingerprint to a copy of the library, to be edited; forget what was read."""
    copy = tmp_path / "pipeline_lib"
    shutil.copytree(fingerprint.ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "ROOT", copy)
    return copy


def digests(modules: list[str], without: str | None = None) -> dict[str, str]:
    """Return the fingerprints as a new process would."""
    for cached in (imports, module_code):
        cached.cache_clear()
    return {name: code_fingerprint.__wrapped__(f"pipeline_lib.{name}", without=without) for name in modules}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def stage_digests(project: Path) -> dict[str, dict[str, str]]:
    environment = os.environ | {"PYTHONPATH": str(project)}
    command = [sys.executable, "-m", "pipeline_lib.stages.fingerprint"]
    subprocess.run(command, cwd=project, env=environment, check=True)
    written = (project / "data/fingerprints").glob("*.json")
    return {path.stem: read_json(path) for path in written}


def test_stages_depend_on_digests() -> None:
    files = {path.stem for path in (PROJECT / "stages").glob("*.py")} - {"__init__"}
    assert files == {*STAGES}
    for stage in files - {"fingerprint"}:
        deps = STAGES[stage]["deps"]
        assert f"data/fingerprints/{stage}.json" in deps
        assert not [dep for dep in deps if dep.startswith(("stages", "pipeline_lib"))]
    # What is exempt is there and says why.
    for name, reason in EXEMPT.items():
        assert path_of(f"pipeline_lib.{name}").exists()
        assert reason
    assert {*DECIDED_BY} <= {*STAGES} and {*DECIDED_BY.values()} <= {*EXEMPT}
    # Of versions major and minor count.
    assert deciding({"torch": "2.13.0+cpu", "spacy": "3.8.18"}) == {"torch": "2.13", "spacy": "3.8"}
    assert library_versions("torch")["torch"].startswith("2.")


def test_an_edit_moves_the_digests_of_the_stages_that_it_can_change(library: Path) -> None:
    project = library.parent
    shutil.copyfile(PROJECT / "params.yaml", project / "params.yaml")
    before = stage_digests(project)
    appended = {
        "pipeline_lib/stages/augment.py": "ADDED = 1",
        "pipeline_lib/training/objectives.py": "ADDED = 1",
        "pipeline_lib/corpora/tasks/tagging.py": "ADDED = 1",
        "pipeline_lib/models/networks/student.py": "ADDED = 1",
        "pipeline_lib/training/distillation/plans.py": "ADDED = 1",
        "pipeline_lib/report/page.css": "p { color: red }",
        # Neither comments nor what is exempt counts.
        "pipeline_lib/base/words.py": "# A comment.",
        "pipeline_lib/base/progress.py": "ADDED = 1",
    }
    for name, line in appended.items():
        with (project / name).open("a") as file:
            file.write(f"\n{line}\n")
    after = stage_digests(project)
    assert {*before} == {*after} == {*STAGES} - {"fingerprint"}
    moved = {
        name: {stage for stage in after if after[stage].get(name) != before[stage].get(name)}
        for name in {name for digests in after.values() for name in digests}
    }
    # Teachers learn labels, by the loss of their kind.
    trainings = {"pretrain", "train_joint", "train"}
    assert {name: stages for name, stages in moved.items() if stages} == {
        "pipeline_lib/stages/augment.py": {"augment"},
        "pipeline_lib/training/objectives.py": trainings,
        "pipeline_lib/corpora/tasks/tagging.py": {"prepare"},
        "pipeline_lib/models/networks/student.py": trainings
        | {"evaluate", "measure_speed", "refine_teacher", "retrieve", "similarity"},
        "pipeline_lib/training/distillation/plans.py": {"train"},
        "pipeline_lib/report/page.css": {"report"},
    }


def test_lazy_and_relative_imports_count_and_those_for_type_checkers_do_not(library: Path) -> None:
    file = library / "made_up.py"
    file.write_text(
        "from typing import TYPE_CHECKING\nimport pipeline_lib.base.hashing\nfrom pipeline_lib.text import batches, "
        "nothing\nfrom .shards.columns import list_column\nif TYPE_CHECKING:\n    from "
        "pipeline_lib.models.networks.layers import Dropout\ndef late():\n    from pipeline_lib.text.ragged import "
        "Sentences\n"
    )
    found = {"base.hashing", "text.batches", "text", "text.ragged", "shards.columns"}
    assert imports(file) == {f"pipeline_lib.{name}" for name in found}


STUDENTS, ENCODERS = "training.distillation.students", "training.distillation.encoders"
TEACHER, RULES = "outputs.teacher_pass", "corpora.augmentation.rules"
SPLITTING, TAGGING = "corpora.wikipedia.splitting", "corpora.tasks.tagging"


@pytest.mark.parametrize(
    ("file", "moved", "kept"),
    [
        ("training/objectives.py", [STUDENTS, ENCODERS], [TEACHER, RULES, SPLITTING, TAGGING]),
        ("corpora/tasks/tagging.py", [TAGGING], [STUDENTS, TEACHER, RULES]),
        ("models/networks/student.py", [STUDENTS, ENCODERS], [TEACHER, "training.teachers.finetuning"]),
        ("shards/masking.py", [TEACHER, "outputs.vectors", STUDENTS], [SPLITTING, RULES]),
        ("base/hashing.py", [RULES, SPLITTING], [TEACHER]),
    ],
)
def test_an_edit_moves_the_keys_of_what_the_code_makes_and_no_others(
    library: Path, file: str, moved: list[str], kept: list[str]
) -> None:
    before = digests(moved + kept)
    with (library / file).open("a") as stream:
        stream.write("\nADDED = 1\n")
    after = digests(moved + kept)
    assert {module for module in before if before[module] != after[module]} == set(moved)


def test_comments_docstrings_and_layout_move_no_key(library: Path) -> None:
    modules = [STUDENTS, TEACHER, RULES, SPLITTING, ENCODERS]
    before = digests(modules)
    for file in library.rglob("*.py"):
        file.write_text(_reworded(file.read_text()))
    assert digests(modules) == before
    edit(library / "training/objectives.py", ".mean() / 2", ".mean() / 3")
    assert digests([STUDENTS])[STUDENTS] != before[STUDENTS]


def _reworded(text: str) -> str:
    """Begin every docstring with another word, and put a comment on top."""
    lines = [
        line.replace('"""', '"""Reworded. ', 1) if line.lstrip().startswith('"""') and len(line.strip()) > 3 else line
        for line in text.split("\n")
    ]
    return "# A comment.\n" + "\n".join(lines)


def test_another_architecture_retrains_no_student_of_the_library(library: Path) -> None:
    trainings = [STUDENTS, ENCODERS, *(f"training.distillation.{name}" for name in ("general", "joint", "regressions"))]
    before = digests(trainings, ARCHITECTURES)
    (library / "models/networks/gru.py").write_text("class GRUEncoder:\n    width = 1\n")
    edit(library / "models/networks/architectures.py", "from torch", "from .gru import GRUEncoder\nfrom torch")
    assert digests(trainings, ARCHITECTURES) == before
    edit(library / "models/networks/layers.py", "class Dropout", "ADDED = 1\nclass Dropout")
    assert not digests(trainings, ARCHITECTURES).items() & before.items()
