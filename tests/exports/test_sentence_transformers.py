"""Exported encoders give the vectors of the originals, without this library."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers.dynamic_module_utils import get_class_from_dynamic_module, get_imports, get_relative_imports

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.exports.sentence_transformers import export_sentence_transformers
from pipeline_lib.models.networks import distilled_encoder
from pipeline_lib.models.students.sentence_encoder import load_encoder, save_encoder
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.params import ARCHITECTURES, student_settings
from pipeline_lib.shards.columns import list_column
from pipeline_lib.training.distillation.initialisation import start_from_layers
from tests.commands.running import distill
from tests.inspection.made_up import write_set
from tests.kit.pretrained import write_model

from .students import MAX_WORDS, VALUES, WORDS, sample, write_encoder, write_student

NAMES = ("bilstm", "bilstm_sra", "cnn", "static", "static-open", "regression", "dse", "dse-cls")
CHANNELS = {name: ["multichannel"] for name in NAMES} | {"static": ["trained", "multichannel"]}
CHANNELS |= {"cnn": ["static"], "regression": ["trained"], "dse": ["bert", "mpnet", "distilbert"], "dse-cls": ["bert"]}
ENCODERS = [(name, channels) for name in NAMES for channels in CHANNELS[name]]
pytestmark = pytest.mark.usefixtures("own_modules")


def write_siamese(folder: Path, name: str, channels: str) -> Path:
    """Write a siamese student with random weights; of a transformer, ``channels`` is a family."""
    if name.startswith("dse"):
        return write_student(folder, name, True, ["no", "yes"], channels)
    changes = {} if name == "regression" else {"embeddings": channels}
    return write_student(folder, name, True, ["no", "yes"], **changes)


def texts_of(texts: list[str]) -> list[str]:
    return ["", "  \t", *texts, *sample(False)]


def load_module(out: Path) -> Any:
    name = json.loads((out / "modules.json").read_text())[0]["type"]
    return get_class_from_dynamic_module(name, str(out)).load(str(out)).eval()


def load_alone(out: Path) -> Callable[[list[str]], np.ndarray]:
    """Return what encodes, by the files of the folder: as sentence-transformers does."""
    modules = json.loads((out / "modules.json").read_text())
    if "." not in modules[0]["type"].partition(".")[2]:
        module = load_module(out)
        assert module.get_sentence_embedding_dimension() > 0
        return lambda texts: module(module.tokenize(texts))["sentence_embedding"].numpy()
    # What its StaticEmbedding and Dense compute.
    assert [m["type"].rsplit(".", 1)[1] for m in modules] == ["StaticEmbedding", "Dense"]
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    table = load_file(out / "model.safetensors")["embedding.weight"]
    linear = load_file(out / "1_Dense/model.safetensors")

    def encode(texts: list[str]) -> np.ndarray:
        rows = [row.ids for row in tokenizer.encode_batch(texts, add_special_tokens=False)]
        offsets = torch.tensor(np.cumsum([0, *map(len, rows[:-1])]))
        ids = torch.tensor([number for row in rows for number in row], dtype=torch.long)
        mean = torch.nn.functional.embedding_bag(ids, table, offsets)
        return torch.nn.functional.linear(mean, linear["linear.weight"], linear["linear.bias"]).numpy()

    return encode


@pytest.mark.parametrize(("name", "channels"), ENCODERS)
@torch.inference_mode()
def test_vectors_are_those_of_the_student(name: str, channels: str, texts: list[str], tmp_path: Path) -> None:
    folder = write_siamese(tmp_path / "student", name, channels)
    given, encoder = texts_of(texts), load_encoder(folder)
    wanted = encoder.encode(given)
    assert export_sentence_transformers(folder, tmp_path / "out") == encoder.width
    encode = load_alone(tmp_path / "out")
    for size in (1, 3, len(given)):
        found = [encode(given[start : start + size]) for start in range(0, len(given), size)]
        np.testing.assert_allclose(np.concatenate(found), wanted, atol=1e-5)
    # The comparison can fail: words count, but not what lies behind the cut.
    assert np.abs(wanted[0] - wanted[-1]).max() > 1e-3
    long = ["film " * MAX_WORDS + "dull", "film " * MAX_WORDS]
    np.testing.assert_allclose(*encode(long), atol=1e-6)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_sentence_transformers_loads_the_folder(name: str, texts: list[str], tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from sentence_transformers import SentenceTransformer

    folder = write_siamese(tmp_path / "student", name, CHANNELS[name][0])
    export_sentence_transformers(folder, tmp_path / "out")
    trusted = {"trust_remote_code": not name.startswith("static"), "device": "cpu"}
    model = SentenceTransformer(str(tmp_path / "out"), **trusted)
    given, encoder = texts_of(texts), load_encoder(folder)
    for size in (1, 32):
        found = model.encode(given, batch_size=size)
        np.testing.assert_allclose(found, encoder.encode(given), atol=1e-5)
    prompted = model.encode(["good film"], prompt="the plot is ")
    np.testing.assert_allclose(prompted, encoder.encode(["the plot is good film"]), atol=1e-5)
    if not name.startswith("static"):
        model.max_seq_length = 4
        assert model[0].tokenize(given)["input_ids"].shape[1] == 4
    model.save_pretrained(str(tmp_path / "again"), create_model_card=False)
    again = SentenceTransformer(str(tmp_path / "again"), **trusted)
    np.testing.assert_array_equal(again.encode(given), model.encode(given))


def test_a_sentence_encoder_is_exported_too(tmp_path: Path) -> None:
    write_encoder(tmp_path / "encoder")
    export_sentence_transformers(tmp_path / "encoder", tmp_path / "out")
    encode, given = load_alone(tmp_path / "out"), ["A good film.", "dull"]
    with torch.inference_mode():
        found = encode(given)
    np.testing.assert_allclose(found, load_encoder(tmp_path / "encoder").encode(given), atol=1e-6)


def test_an_encoder_of_a_models_layers_is_exported_with_its_map(tmp_path: Path) -> None:
    settings = student_settings(VALUES["dse"] | {"width": 5})
    start = start_from_layers(write_model(tmp_path / "model", "mpnet"), settings)
    encoder = start.encoder(settings)
    save_encoder(tmp_path / "encoder", encoder, start.tokenizer, settings, start.pretrained)
    assert export_sentence_transformers(tmp_path / "encoder", tmp_path / "out") == 5
    encode, given = load_alone(tmp_path / "out"), texts_of(["A good film."])
    with torch.inference_mode():
        found = encode(given)
    np.testing.assert_allclose(found, load_encoder(tmp_path / "encoder").encode(given), atol=1e-5)
    assert np.ptp(found, axis=0).max() > 1e-3
    rough = load_module(tmp_path / "out").bfloat16()
    with torch.inference_mode():
        near = rough(rough.tokenize(given))["sentence_embedding"]
    assert near.dtype == torch.bfloat16
    np.testing.assert_allclose(near.float().numpy(), found, atol=0.05 * np.abs(found).max())


def test_texts_can_be_cut_earlier(tmp_path: Path) -> None:
    export_sentence_transformers(write_siamese(tmp_path / "student", "cnn", "trained"), tmp_path / "out")
    module = load_module(tmp_path / "out")
    assert module.max_seq_length == MAX_WORDS
    module.max_seq_length = 2
    module.save(str(tmp_path / "out"))
    for own in (module, load_module(tmp_path / "out")):
        assert own.max_seq_length == 2
        assert own.tokenize(["film good dull"])["input_ids"].shape == (1, 2)


def test_nothing_of_this_library_is_needed_nor_transformers(tmp_path: Path) -> None:
    folder = write_siamese(tmp_path / "student", "cnn", "trained")
    export_sentence_transformers(folder, tmp_path / "out")
    code = """
import json, sys
sys.modules["pipeline_lib"] = sys.modules["transformers"] = None
from out.distilled_encoder import DistilledEncoder
module = DistilledEncoder.load("out").eval()
print(json.dumps(module(module.tokenize(["a good film", ""]))["sentence_embedding"].tolist()))
"""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    wanted = load_encoder(folder).encode(["a good film", ""])
    np.testing.assert_allclose(json.loads(run.stdout), wanted, atol=1e-5)


def test_the_code_is_the_librarys_own(tmp_path: Path) -> None:
    folder = write_siamese(tmp_path / "student", "cnn", "trained")
    told = distill("export", str(folder), str(tmp_path / "out"), "--to", "sentence-transformers")
    assert told == f"{tmp_path / 'out'}: sentence-transformers, vectors of 9 values\n"
    files = sorted((tmp_path / "out").glob("*.py"))
    own = Path(distilled_encoder.__file__).parent
    assert [path.read_bytes() for path in files] == [(own / p.name).read_bytes() for p in files]
    # transformers 5.2 copies only the files that the first one names.
    first = tmp_path / "out" / "distilled_encoder.py"
    assert {*get_relative_imports(first), first.stem} == {path.stem for path in files}
    packages = {name for path in files for name in get_imports(path)} - {*sys.stdlib_module_names}
    assert packages == {"torch", "tokenizers", "safetensors", "transformers"}


def test_every_architecture_with_a_sentence_vector_has_a_form() -> None:
    named = {VALUES[name]["architecture"] for name in NAMES}
    assert {name for name, settings in ARCHITECTURES.items() if not settings.joint} == named


def test_what_lies_there_is_not_overwritten(tmp_path: Path) -> None:
    folder = write_siamese(tmp_path / "student", "static", "trained")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(PotstillError, match=r"out: not empty\. Name a new"):
        export_sentence_transformers(folder, tmp_path / "out")
    with pytest.raises(PotstillError, match="no sentence encoder"):
        export_sentence_transformers(tmp_path / "out", tmp_path / "other")


def test_its_distillation_loss_reads_exported_shards(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from datasets import load_dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
    from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    vectors = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    texts = {"text": ["a good film", "dull", "a plot", "the film is"], "text_2": ["good", "a"] * 2}
    table = pa.table({**texts, "vector": list_column(vectors[0]), "vector_2": list_column(vectors[1])})
    write_set(tmp_path / "set", {"s00000": table})
    exported = str(tmp_path / "flat.parquet")
    distill("shards", "export", str(tmp_path / "set"), "--to", exported)

    train = load_dataset("parquet", data_files=exported, split="train", cache_dir=str(tmp_path))
    one = train.select_columns(["text", "vector"]).rename_column("vector", "label")
    both = train.select_columns(["text", "text_pair", "vector", "vector_pair"]).map(
        lambda row: {"label": [row["vector"], row["vector_pair"]]}, remove_columns=["vector", "vector_pair"]
    )
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=3)], device="cpu")
    loss = EmbedDistillLoss(model, distance_metric="mse")
    collate = SentenceTransformerDataCollator(model.preprocess)
    for rows, columns in ((one, ["text"]), (both, ["text", "text_pair"])):
        batch = collate(list(rows))
        own = [texts["text"], texts["text_2"]][: len(columns)]
        wanted = np.stack([model.encode(side) for side in own]) - vectors[: len(columns)]
        features = [{key: batch[f"{column}_{key}"] for key in ("input_ids", "offsets")} for column in columns]
        found = loss(features, batch["label"]).item()
        assert found == pytest.approx((wanted**2).mean(), rel=1e-5)
