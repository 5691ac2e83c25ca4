"""The wheel alone gives ``distill predict``: nothing of the repository is needed beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.networks.student import StudentConfig
from pipeline_lib.params import student_settings
from pipeline_lib.students.student import build_student, save_student
from pipeline_lib.students.vocabulary import build_tokenizer

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WORDS = ["a", "quiet", "triumph", "dull"]
SETTINGS = {"architecture": "bilstm", "hidden": 4, "classifier": 4, "embeddings": "trained"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, and install it into an empty folder."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pipeline_lib", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run([*pip, *build], check=True)
    [wheel] = folder.glob("potstill-*.whl")
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def test_a_student_predicts_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    settings = student_settings(SETTINGS | {"dropout": 0.0, "max_words": 8})
    config = StudentConfig(len(WORDS) + 2, 3, settings, False, ["bad", "good"])
    save_student(tmp_path / "student", build_student(config, None), build_tokenizer(WORDS, True))
    done = subprocess.run(
        [installed / "bin/distill", "predict", "student", "a quiet triumph", "dull"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[-1] for line in lines] == ["a quiet triumph", "dull"]
    assert all(line[0] in ("bad", "good") and 0.5 <= float(line[1]) <= 1.0 for line in lines)
    where = "import pipeline_lib; print(pipeline_lib.__file__)"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert Path(found.stdout.strip()).is_relative_to(installed)
    report = installed / "pipeline_lib/report"
    assert all((report / name).exists() for name in ("page.css", "page.html", "page.js"))
