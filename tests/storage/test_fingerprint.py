"""Same code, same key: what a fingerprint sees, and that dvc.yaml names the same code."""

import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline_lib.storage import fingerprint
from pipeline_lib.storage.fingerprint import (
    EXEMPT,
    code_fingerprint,
    deciding,
    imports,
    library_versions,
    path_of,
    producing_modules,
)

PROJECT = Path(__file__).parents[2]
STAGES = YAML(typ="safe", pure=True).load((PROJECT / "dvc.yaml").read_text())["stages"]
OWN = {"plan": {"pipeline_lib.distillation.plans"}}
"""What a stage is about, although it is exempt elsewhere."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the fingerprint to a copy of the library, to be edited; forget what was read."""
    copy = tmp_path / "pipeline_lib"
    shutil.copytree(fingerprint.ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "ROOT", copy)
    return copy


def digest(module: str) -> str:
    """Return the fingerprint as a new process would."""
    imports.cache_clear()
    return code_fingerprint.__wrapped__(f"pipeline_lib.{module}")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_stage_depends_on_the_code_that_it_imports(stage: str) -> None:
    file = PROJECT / f"stages/{stage}.py"
    modules = producing_modules(file) | OWN.get(stage, set())
    wanted = {path_of(module).relative_to(PROJECT).as_posix() for module in modules}
    named = {dep for dep in STAGES[stage]["deps"] if dep.endswith(".py")}
    assert named == wanted | {f"stages/{stage}.py"}


def test_what_is_exempt_is_there_and_says_why() -> None:
    for name, reason in EXEMPT.items():
        assert path_of(f"pipeline_lib.{name}").exists()
        assert reason


def test_lazy_and_relative_imports_count_and_those_for_type_checkers_do_not(library: Path) -> None:
    file = library / "made_up.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "import pipeline_lib.base.hashing\n"
        "from pipeline_lib.text import words, nothing\n"
        "if TYPE_CHECKING:\n    from pipeline_lib.cpu.dropout import Dropout\n"
        "def late():\n    from pipeline_lib.text.ragged import Sentences\n"
    )
    found = {"base.hashing", "text.words", "text", "text.ragged"}
    assert imports(file) == {f"pipeline_lib.{name}" for name in found}


@pytest.mark.parametrize(
    ("file", "old", "new", "moved", "kept"),
    [
        (
            "training/objectives.py",
            "(student - teacher).pow(2).sum(-1).mean()",
            "(student - teacher).pow(2).mean()",
            ["distillation.students", "distillation.encoders", "teachers.finetuning"],
            ["teachers.outputs", "augmentation.rules", "wikipedia.splitting", "tasks.tagging"],
        ),
        (
            "tasks/tagging.py",
            "yield [token.tag_ for token in doc]",
            'yield ["NN" for token in doc]',
            ["tasks.tagging"],
            ["distillation.students", "teachers.outputs", "augmentation.rules"],
        ),
        (
            "networks/student.py",
            "import torch\n",
            "import torch\n\nADDED = 1\n",
            ["distillation.students", "distillation.encoders"],
            ["teachers.outputs", "teachers.finetuning"],
        ),
        (
            "text/masking.py",
            "import ",
            "import json\nimport ",
            ["teachers.outputs", "teachers.vectors", "distillation.students"],
            ["wikipedia.splitting", "augmentation.rules"],
        ),
        (
            "base/hashing.py",
            "import numpy as np\n",
            "import numpy as np\n\nADDED = 1\n",
            ["augmentation.rules", "wikipedia.splitting"],
            ["teachers.outputs"],
        ),
    ],
)
def test_an_edit_moves_the_keys_of_what_the_code_makes_and_no_others(
    library: Path, file: str, old: str, new: str, moved: list[str], kept: list[str]
) -> None:
    before = {module: digest(module) for module in moved + kept}
    text = (library / file).read_text()
    assert old in text
    (library / file).write_text(text.replace(old, new, 1))
    after = {module: digest(module) for module in moved + kept}
    assert {module for module in before if before[module] != after[module]} == set(moved)


def test_comments_docstrings_and_layout_move_no_key(library: Path) -> None:
    modules = [
        "distillation.students",
        "teachers.outputs",
        "augmentation.rules",
        "wikipedia.splitting",
        "distillation.encoders",
    ]
    before = {module: digest(module) for module in modules}
    for file in library.rglob("*.py"):
        file.write_text(_reworded(file.read_text()))
    assert {module: digest(module) for module in modules} == before
    edit(library / "training/objectives.py", ".mean() / 2", ".mean() / 3")
    assert digest("distillation.students") != before["distillation.students"]


def _reworded(text: str) -> str:
    """Begin every docstring with another word, and put a comment on top."""
    lines = [
        line.replace('"""', '"""Reworded. ', 1)
        if line.lstrip().startswith('"""') and len(line.strip()) > 3
        else line
        for line in text.split("\n")
    ]
    return "# A comment.\n" + "\n".join(lines)


def test_of_versions_major_and_minor_count() -> None:
    assert deciding({"torch": "2.13.0+cpu", "spacy": "3.8.18"}) == {"torch": "2.13", "spacy": "3.8"}
    assert library_versions("torch")["torch"].startswith("2.")


def test_no_version_is_bumped_by_hand() -> None:
    for file in fingerprint.ROOT.rglob("*.py"):
        assert "CODE_VERSION" not in file.read_text(), file
