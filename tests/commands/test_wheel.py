"""The wheel alone, in a folder of one's own: from a CSV to an int8 student."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML

from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.student import build_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import student_settings
from tests.pipeline.corpus import sentences, write_encoder

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WORDS = ["a", "quiet", "triumph", "dull"]
SETTINGS = {"architecture": "bilstm", "hidden": 4, "classifier": 4, "embeddings": "trained"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    found = subprocess.run([sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert Path(found.stdout.strip()).is_relative_to(installed)
    report = installed / "pipeline_lib/report"
    assert all((report / name).exists() for name in ("page.css", "page.html", "page.js"))
    assert all(
        (installed / "pipeline_lib" / name).exists() for name in ("results/captions.txt", "exports/card/card.md")
    )


def _write_reviews(path: Path) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        for label, text in sentences()["train"]:
            writer.writerow([text, ("bad", "good")[label]])


def _make_small(values: Any) -> None:
    values |= {"seeds": [1], "device": "cpu", "workers": 1}
    values["vocabulary"]["dimensions"] = 16
    values["methods"] = {name: values["methods"][name] for name in ("bilstm", "bilstm_kd_ts")}
    values["tasks"]["reviews"]["augment"]["n_iter"] = 1
    for row in (row for row in values["optimisers"].values() if row["name"] == "adam"):
        row |= {"learning_rates": [1.0e-2], "max_steps": 20, "evaluate_every": 10}
    for row in values["teachers"].values():
        row["tuning"] |= {"learning_rates": [5.0e-3], "epochs": 2, "precision": "float32"}
        row["tuning"] |= {"freeze_embeddings": False, "batch_size": 16}


def test_from_a_csv_to_an_int8_student(installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    _write_reviews(folder / "reviews.csv")
    write_encoder(tmp_path / "encoder")
    kept = {name: value for name, value in os.environ.items() if name not in ("DVC_ROOT",)}
    environment = kept | {"PYTHONPATH": str(installed), "HF_HUB_OFFLINE": "1"}

    def distill(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline_lib.cli", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    printed = distill("init", "reviews.csv", "--teacher", str(tmp_path / "encoder"))
    assert "written   dvc.yaml" in printed and "params.yaml is valid." in printed
    assert not (folder / "pipeline_lib").exists() and not (folder / "stages").exists()
    yaml, path = YAML(), folder / "params.yaml"
    values = yaml.load(path.read_text())
    _make_small(values)
    with path.open("w") as file:
        yaml.dump(values, file)
    printed = distill("run")
    assert "WARNING: test has only 49 rows" in printed and "It takes" in printed.partition("\nreviews: ")[2]
    assert "Updating lock file" not in printed and "is empty" not in printed
    answer = distill("predict", "data/exports/reviews", "The film is very good.")
    assert answer.split("\t")[0] in ("bad", "good")
    assert "up to date" in distill("run")
    assert "reviews" in distill("results") and "is valid" in distill("check")
    distill("export", "data/students/reviews/bilstm/1", "out", "--to", "onnx-int8")
    assert "default" in distill("profile", "list")
    distill("profile", "use", "default", "--force")
