"""Small archives, tasks and models that the tests of this folder share."""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lib.params import Classification


def tar_bytes(files: dict[str, bytes]) -> bytes:
    """Return a tar.gz of the given members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zip_bytes(files: dict[str, bytes]) -> bytes:
    """Return a zip of the given members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def make_task() -> Callable[..., Classification]:
    """Return a maker of tasks: keyword arguments replace keys."""

    def make(**changes: Any) -> Classification:
        files = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
        values = {
            "source": {"kind": "files", "files": files, "format": "tsv", "columns": None},
            "text": ["sentence"],
            "label": "label",
            "kind": "classification",
            "labels": {"no": ["0"], "yes": ["1"]},
            "metrics": ["accuracy"],
            "positive": None,
            "submission": None,
            "split": None,
            "blocks": 1,
            "lexicon": None,
            "train_fraction": 1.0,
            "augment": {"n_iter": 1, "cap": None},
        }
        return Classification.model_validate(values | changes)

    return make


@pytest.fixture
def model_files() -> dict[str, bytes]:
    """Return the files of a tiny BERT-like classifier: 8 word pieces, 3 numbers each."""
    from safetensors.numpy import save
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = ["[PAD]", "[UNK]", "a", "film", "##s", "[unused0]", "dull", "good"]
    tokenizer = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=4)
    table = np.arange(24, dtype=np.float32).reshape(8, 3)
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert"}
    return {
        "config.json": json.dumps(config).encode(),
        "tokenizer.json": tokenizer.to_str().encode(),
        "model.safetensors": save({"bert.embeddings.word_embeddings.weight": table}),
    }


@pytest.fixture
def model_folder(tmp_path: Path, model_files: dict[str, bytes]) -> Path:
    """Return a folder with the tiny model."""
    return write_files(tmp_path / "inputs" / "model", model_files)


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Write ``files`` into ``folder`` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
