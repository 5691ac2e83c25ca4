"""Pretraining: an encoder learns the teacher's vectors, beats a constant, and survives a kill."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from ruamel.yaml import YAML
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import read_json, sha256_folder, write_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.cli import app
from pipeline_lib.distillation.corpus import Corpus
from pipeline_lib.distillation.encoders import EncoderTraining, check_vectors, encoder_row
from pipeline_lib.distillation.starts import start_from_encoder
from pipeline_lib.engine.local import LocalEngine
from pipeline_lib.engine.passes import run_pass
from pipeline_lib.networks.student import StudentNetwork
from pipeline_lib.params import SentenceVectorFiles, check_params
from pipeline_lib.retrieval.embedders import EncoderReference, targets_in_space
from pipeline_lib.storage.columns import MASKED, matrix
from pipeline_lib.storage.shards import Manifest, ShardSet, schema_of, write_manifest, write_shard
from pipeline_lib.students.sentence_encoder import SentenceEncoder, load_encoder
from pipeline_lib.students.student import Student
from pipeline_lib.students.targets import Targets
from pipeline_lib.students.vocabulary import build_tokenizer, build_vocabulary, vector_source
from pipeline_lib.teachers.given_vectors import GivenVectorPass, gather_vectors
from pipeline_lib.teachers.vectors import VectorPass
from pipeline_lib.text.pieces import load_pieces
from pipeline_lib.text.words import split_words
from pipeline_lib.training import loop as training
from pipeline_lib.training.objectives import representation_loss
from pipeline_lib.training.search import Row, train_rows
from tests.pipeline.corpus import sentences, write_encoder
from tests.pipeline.workspace import write_params

MakeRow = Callable[..., Row[EncoderTraining]]
pytestmark = pytest.mark.usefixtures("store_home")
TASK = "reviews"
SHIPPED = Path(__file__).parents[2] / "params.yaml"
LAYER = {
    **{"architecture": "dse", "model": "minilm", "layers": [0], "last": 1, "width": 32},
    **{"classifier": 8, "dropout": 0.0, "frozen": False, "max_words": 16},
}
"""One layer of the teacher's two, with a linear map behind it."""
TRAIN, HELD_BACK = ([text for _, text in sentences()[split]] for split in ("train", "dev"))


def ignore(*_: Any) -> None:
    """Show no progress."""


def train_one(
    row: Row[EncoderTraining], target: Path, on_progress: Callable[..., None]
) -> dict[str, Any]:
    """Train one encoder into ``target`` and return its record; ``on_progress`` gets messages."""
    found = train_rows([row], LocalEngine(1), lambda _, message: on_progress(*message))[row.name]
    [(training, record)] = found.trainings.values()
    training.result.link_into(target)
    found.write(target)
    return record


def first_of(row: Row[EncoderTraining]) -> EncoderTraining:
    return row.spec(row.seeds[0], row.rates[0])


def key_of(row: Row[EncoderTraining]) -> str:
    return first_of(row).result.key


def write_texts(folder: Path, texts: list[str], words: bool = False) -> None:
    columns = {"key": pa.array(string_keys(texts)), "text": pa.array(texts)}
    if words:
        columns["words"] = pa.array([split_words(text)[0] for text in texts])
    table = pa.table(columns)
    half = len(texts) // 2
    shards = [
        write_shard(folder / f"s{n}.arrow", part)
        for n, part in enumerate((table.slice(0, half), table.slice(half)))
    ]
    write_manifest(folder, Manifest("sentences", schema_of(table), shards))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write teacher, sentences and a task; return the folder of artifacts."""
    folder = tmp_path_factory.mktemp("data")
    write_encoder(folder / "raw/models/minilm")
    (folder / "raw/vectors").mkdir(parents=True)
    write_texts(folder / "wikipedia/train", TRAIN)
    write_texts(folder / "wikipedia/validation", HELD_BACK)
    write_texts(folder / "tasks" / TASK / "train", ["Zebra words alone."], words=True)
    write_texts(folder / "transfer" / TASK / "original", ["Zebra words alone.", "More of it."])
    return folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> MakeRow:
    """Return a maker of runs over computed vectors; named arguments change the encoder's row.

    ``optimiser`` changes the optimiser, ``student`` stands in the place of the BiLSTM.
    """

    def make(
        optimiser: dict[str, Any] | None = None,
        student: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Row[EncoderTraining]:
        params = make_params(tmp_path, optimiser or {}, changes, student)
        own = VectorPass.of(params, data / "raw/models/minilm")
        for name in ("wikipedia/train", "wikipedia/validation", f"tasks/{TASK}/original"):
            inputs = ShardSet.open(data / name.replace("tasks/", "transfer/"))
            run_pass(own, inputs, data / "vectors" / name, LocalEngine(1))
        return encoder_row(params, "sra", Layout(data), "cpu")

    return make


def make_params(
    folder: Path,
    optimiser: dict[str, Any],
    changes: dict[str, Any],
    student: dict[str, Any] | None,
) -> Any:
    write_params(folder / "params.yaml")
    values = YAML(typ="safe", pure=True).load((folder / "params.yaml").read_text())
    bilstm = {"architecture": "bilstm_sra", "hidden": 16, "width": 32, "classifier": 8}
    bilstm |= {"embeddings": "trained", "dropout": 0.1, "max_words": 16}
    values["students"]["bilstm_sra"] = student or bilstm
    values["optimisers"]["sra"] = values["optimisers"]["short"] | {
        **{"batch_size": 32, "epochs": 8, "evaluate_every": None, "learning_rates": [1.0e-2]},
        **optimiser,
    }
    row = {"student": "bilstm_sra", "wikipedia": None, "min_count": 1, "tasks": {}}
    row |= {"centre": False, "optimiser": "sra", "seed": 1}
    values["encoders"] = {"sra": row | changes}
    values["wikipedia"] = YAML(typ="safe", pure=True).load(SHIPPED.read_text())["wikipedia"]
    return check_params(values)


def test_the_loss_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    teacher = torch.tensor([[5.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    assert representation_loss(student, teacher).item() == pytest.approx((0 + 1 + 0.5) / 3)


def test_it_learns_more_than_a_constant(run: MakeRow, tmp_path: Path) -> None:
    record = train_one(run(centre=True), tmp_path / "sra", ignore)
    assert record["loss"] < 0.6 * record["constant_loss"]
    assert record["sentences"] == len(TRAIN) and record["held_back_sentences"] == len(HELD_BACK)
    assert len(record["history"]) == 8
    assert record["history"][0]["dev"] > record["loss"] == record["history"][-1]["dev"]


def test_a_common_direction_makes_the_loss_low(run: MakeRow, tmp_path: Path) -> None:
    short = {"epochs": 1}
    plain = train_one(run(short), tmp_path / "plain", ignore)
    assert Targets.read(tmp_path / "plain").mean is None
    centred = train_one(run(short, centre=True), tmp_path / "centred", ignore)
    assert plain["constant_loss"] < 0.05 < plain["history"][0]["loss"]
    # Without the common direction a constant says nothing.
    assert centred["constant_loss"] > 0.4


@pytest.mark.parametrize("student", [None, LAYER])
def test_the_losses_are_those_of_the_encoder_that_was_kept(
    run: MakeRow, tmp_path: Path, student: dict[str, Any] | None
) -> None:
    own = run(centre=True, student=student)
    record = train_one(own, tmp_path / "sra", ignore)
    targets = first_of(own).train.vectors()
    mean = targets[np.arange(len(TRAIN))].mean(0)
    training = first_of(own)
    teacher = VectorPass.of(training.params, training.layout.model("minilm")).teacher()
    wanted = teacher.predict(HELD_BACK, 32, 512) - mean
    trained_to = Targets.read(tmp_path / "sra")
    assert (trained_to.model, trained_to.pooling, trained_to.max_length) == (
        teacher.digest,
        teacher.pooling,
        32,
    )
    np.testing.assert_allclose(trained_to.mean, mean, atol=1e-4)
    found = load_encoder(tmp_path / "sra").encode(HELD_BACK)
    cosines = (
        (wanted * found).sum(1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found, axis=1)
    )
    assert record["loss"] == pytest.approx((1 - cosines).mean() / 2, abs=1e-3)


def test_a_layer_of_the_teacher_learns_its_vectors(run: MakeRow, tmp_path: Path) -> None:
    own = run({"learning_rates": [3.0e-3]}, LAYER, centre=True)
    record = train_one(own, tmp_path / "leaf", ignore)
    assert record["loss"] < 0.6 * record["constant_loss"]
    # It is built again without the model that it was cut out of, and so is a student above it.
    encoder, settings = load_encoder(tmp_path / "leaf"), first_of(own).student
    student = start_from_encoder(tmp_path / "leaf", settings).build(settings, False, ["no", "yes"])
    sentences = student_of(student, encoder).encode(HELD_BACK[:9]).batch(np.arange(9))
    with torch.inference_mode():
        found = student.eval().outputs(sentences)["vector"].numpy()
    np.testing.assert_allclose(found, encoder.encode(HELD_BACK[:9]), atol=1e-5)


def student_of(network: StudentNetwork, encoder: SentenceEncoder) -> Student:
    return Student(network, encoder.tokenizer, encoder.device)


def test_a_models_name_does_not_count_but_its_weights_do(
    run: MakeRow, data: Path, tmp_path: Path
) -> None:
    first = run(student=LAYER)
    layout = Layout(tmp_path / "data")
    for name in ("raw/vectors", "wikipedia", "tasks", "vectors"):
        (layout.data / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.data / name).symlink_to(data / name)
    shutil.copytree(data / "raw/models/minilm", layout.data / "raw/models/other")
    params = first_of(first).params.model_copy(deep=True)
    params.students["bilstm_sra"] = first_of(first).student.model_copy(update={"model": "other"})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) == key_of(first)
    config = layout.data / "raw/models/other/config.json"
    write_json(config, read_json(config) | {"another": 1})
    assert key_of(encoder_row(params, "sra", layout, "cpu")) != key_of(first)
    assert key_of(run(student=LAYER | {"layers": [1]})) != key_of(first)


def test_what_a_model_lacks_is_refused(run: MakeRow) -> None:
    with pytest.raises(DistilleryError, match=r"bilstm_sra\.layers: 2, but .* has 2 layers"):
        run(student=LAYER | {"layers": [0, 2]})
    with pytest.raises(DistilleryError, match=r"bilstm_sra\.max_words: 65, but"):
        run(student=LAYER | {"max_words": 65})
    with pytest.raises(DistilleryError, match=r"no sentence vector of .* or a dse with a `width`"):
        run(student=LAYER | {"width": None})
    with pytest.raises(DistilleryError, match=r"students\.bilstm_sra\.model: no 'none'"):
        run(student=LAYER | {"model": "none"})
    with pytest.raises(DistilleryError, match="`width`: nothing in a frozen model is trained"):
        run(student=LAYER | {"frozen": True})


def test_masked_words_are_read_in_each_tokenizers_way(tmp_path: Path) -> None:
    write_encoder(tmp_path / "model", mask="<mask>")
    pieces = load_pieces(tmp_path / "model", "sentences")
    rows = pa.table(
        {
            "key": pa.array(string_keys(["a [MASK] plot"])),
            "text": ["a [MASK] plot"],
            "words": [["a", "[MASK]", "plot"]],
            "rules": pa.array([[0, MASKED, 0]], pa.list_(pa.uint8())),
        }
    )
    given = write_shard(tmp_path / "rows" / "s.arrow", rows)
    write_manifest(tmp_path / "rows", Manifest("sentences", schema_of(rows), [given]))
    vectors = pa.table({"vector": pa.array([[1.0]], pa.list_(pa.float32(), 1))})
    answer = replace(write_shard(tmp_path / "vectors" / "s.arrow", vectors), source=given.sha256)
    write_manifest(tmp_path / "vectors", Manifest("vectors", schema_of(vectors), [answer]))
    corpus = Corpus([(*map(ShardSet.open, (tmp_path / "rows", tmp_path / "vectors")), None)])
    words = build_tokenizer(["a", "plot"], True)
    for tokenizer, sign in ((pieces, "<mask>"), (words, "[MASK]")):
        found = corpus.read(tokenizer, 9).ids
        number = (tokenizer.tokenizer if tokenizer is pieces else tokenizer).token_to_id(sign)
        assert found.tolist().count(number) == 1 and number is not None


def test_the_best_learning_rate_is_kept(run: MakeRow, tmp_path: Path) -> None:
    rates = {"learning_rates": [1.0e-5, 1.0e-2], "epochs": 3}
    steps: list[tuple[int, int]] = []
    record = train_one(run(rates), tmp_path / "a", lambda s, t, *_: steps.append((s, t)))
    assert record["settings"]["learning_rate"] == 1.0e-2
    search = json.loads((tmp_path / "a/search.json").read_text())
    assert search["best_dev_by_rate"]["1e-05"] < search["best_dev_by_rate"]["0.01"]
    assert record["loss"] == -search["best_dev_by_rate"]["0.01"]
    assert sorted(steps) == sorted([(n, 24) for n in range(1, 25)] * 2)


def test_wikipedia_and_tasks_make_corpus_and_vocabulary(
    run: MakeRow,
) -> None:
    few, all_ = run(wikipedia=100, min_count=3), run(min_count=3, tasks={TASK: None})
    joined = run(min_count=3, tasks={TASK: "original"})
    lengths = [
        sum(s.manifest.rows if n is None else n for s, _, n in first_of(r).train.sets)
        for r in (few, all_, joined)
    ]
    assert lengths == [100, len(TRAIN), len(TRAIN) + 2]
    assert "zebra" not in first_of(few).words() and {"zebra", "words", "alone", "."} <= set(
        first_of(all_).words()
    )
    counted = sum("clever" in text for text in TRAIN[:100])
    assert ("clever" in first_of(few).words()) == (counted >= 3)
    assert len({key_of(few), key_of(all_), key_of(joined)}) == 3


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_sentences_without_a_vector_are_left_out(
    run: MakeRow, data: Path, tmp_path: Path, storage: str
) -> None:
    own = run({"epochs": 1}, centre=True, wikipedia=90, tasks={TASK: "original"})
    # What the model made is given in a file, of all but a few: of these, one is beyond the limit.
    texts, known = [*TRAIN, *HELD_BACK, "More of it."], first_of(own)
    whole = (
        VectorPass.of(known.params, data / "raw/models/minilm").teacher().predict(texts, 32, 512)
    )
    rows = [n for n, text in enumerate(texts) if text not in (*TRAIN[:5], TRAIN[95], HELD_BACK[7])]
    given = pa.table({"text": [texts[n] for n in rows], "embedding": [whole[n] for n in rows]})
    write_shard(tmp_path / "vectors.arrow", given)
    said = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {}, "storage": storage}
    gather_vectors(
        [tmp_path / "vectors.arrow"], SentenceVectorFiles.model_validate(said), tmp_path / "given"
    )
    layout = Layout(tmp_path / "data")
    for name in ("raw/vectors", "raw/models", "wikipedia", "tasks", "transfer"):
        (layout.data / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.data / name).symlink_to(data / name)
    for name in ("wikipedia/train", "wikipedia/validation", f"tasks/{TASK}/original"):
        inputs = ShardSet.open(layout.data / name.replace("tasks/", "transfer/"))
        found = GivenVectorPass.of(tmp_path / "given", storage)
        run_pass(found, inputs, layout.vectors / name, LocalEngine(1))
    told = encoder_row(known.params, "sra", layout, "cpu")
    left = sum(text in TRAIN[:5] for text in TRAIN[:90])
    training = first_of(told)
    # Of the task's two sentences one has a vector.
    assert training.rows == len(training.train.read(_tokenizer(training), 16)) == 90 - left + 1
    assert not np.isnan(training.train.vectors()[np.arange(training.rows)]).any()
    record = train_one(told, tmp_path / "sra", ignore)
    held_back = sum(text == HELD_BACK[7] for text in HELD_BACK)
    assert (record["sentences"], record["unanswered"]) == (90 - left + 1, left + 1)
    assert record["held_back_unanswered"] == held_back
    assert record["held_back_sentences"] == len(HELD_BACK) - held_back
    assert 0.0 < record["loss"] < 1.0 and np.isfinite(record["constant_loss"])
    targets = Targets.read(tmp_path / "sra")
    assert (targets.model, targets.pooling, targets.max_length) == (found.digest, None, None)
    with pytest.raises(DistilleryError, match="trained on vectors from files"):
        targets_in_space(tmp_path / "sra", EncoderReference.to(layout.model("minilm"), "mean"))


def _tokenizer(training: EncoderTraining) -> Tokenizer:
    source = vector_source(training.params.vocabulary, training.layout)
    return build_vocabulary(training.words(), training.params.vocabulary, source)[0]


def test_an_encoder_without_any_vector_is_refused(run: MakeRow, data: Path, tmp_path: Path) -> None:
    own = run()
    given = pa.table({"text": [f"another {n}" for n in range(9)], "embedding": [[1.0, 2.0]] * 9})
    write_shard(tmp_path / "vectors.arrow", given)
    said = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {}}
    settings = SentenceVectorFiles.model_validate(said | {"storage": "float32"})
    gather_vectors([tmp_path / "vectors.arrow"], settings, tmp_path / "given")
    found = GivenVectorPass.of(tmp_path / "given", "float32")
    inputs = ShardSet.open(data / "wikipedia/train")
    run_pass(found, inputs, data / "vectors/wikipedia/train", LocalEngine(1))
    with pytest.raises(DistilleryError, match=r"none of the .* to train on has a vector"):
        check_vectors(first_of(own))


def test_a_finished_encoder_is_found(
    run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train_one(run({"epochs": 2}), tmp_path / "a", ignore)
    monkeypatch.setattr(EncoderTraining, "prepare", None)
    assert train_one(run({"epochs": 2}), tmp_path / "b", ignore) == first
    assert sha256_folder(tmp_path / "a") == sha256_folder(tmp_path / "b")


def test_names_do_not_count(run: MakeRow, data: Path) -> None:
    first = run(tasks={TASK: None})
    params = first_of(first).params.model_copy(deep=True)
    params.optimisers["other"] = params.optimisers["sra"]
    params.encoders["another"] = params.encoders["sra"].model_copy(update={"optimiser": "other"})
    assert key_of(encoder_row(params, "another", Layout(data), "cpu")) == key_of(first)
    assert key_of(run(tasks={TASK: None}, seed=2)) != key_of(first)


def test_a_kill_loses_nothing(
    run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_one(run({"epochs": 4}), tmp_path / "whole", ignore)
    monkeypatch.setenv("DISTILLERY_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)

    def stop(step: int, *_: Any) -> None:
        if step == 19:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_one(run({"epochs": 4}), tmp_path / "killed", stop)
    steps: list[int] = []
    train_one(run({"epochs": 4}), tmp_path / "killed", lambda s, *_: steps.append(s))
    assert steps[0] in (19, 20)
    assert sha256_folder(tmp_path / "whole") == sha256_folder(tmp_path / "killed")


def test_another_width_is_refused(run: MakeRow, tmp_path: Path) -> None:
    own = run()
    students = first_of(own).params.students
    students["bilstm_sra"] = students["bilstm_sra"].model_copy(update={"width": 24})
    with pytest.raises(DistilleryError, match=r"students\.bilstm_sra\.width: 24.*Set it to 32"):
        train_one(own, tmp_path / "a", ignore)


def test_no_sentences_are_refused(run: MakeRow, data: Path, tmp_path: Path) -> None:
    own = run(wikipedia=0)
    with pytest.raises(DistilleryError, match="no sentences to train on"):
        train_one(own, tmp_path / "a", ignore)


def test_an_encoder_is_saved_whole(run: MakeRow, tmp_path: Path) -> None:
    train_one(run({"epochs": 1}), tmp_path / "sra", ignore)
    config = json.loads((tmp_path / "sra/config.json").read_text())
    assert config["model_type"] == "distillery_encoder"
    encoder = load_encoder(tmp_path / "sra")
    vectors = encoder.encode([*HELD_BACK[:5], "", "unknownword"])
    assert vectors.shape == (7, 32) and np.abs(vectors).max() <= 1.0
    np.testing.assert_allclose(vectors[5], vectors[6], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(HELD_BACK[2:3])[0], vectors[2], atol=1e-5)
    with pytest.raises(DistilleryError, match="no sentence encoder"):
        load_encoder(tmp_path)


def test_encode_writes_what_the_encoder_gives(
    run: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline_lib.commands.encode.BATCH", 7)
    train_one(run({"epochs": 1}), tmp_path / "sra", ignore)
    # U+2028, a carriage return and a form feed end no line.
    lines = [*HELD_BACK[:20], "", "naïve café", "one\u2028line", "one\rline", "one\x0cline"]
    (tmp_path / "in.txt").write_bytes(("\r\n".join(lines) + "\n").encode())

    def call(out: str, *options: str, file: str = "in.txt") -> Any:
        arguments = [str(tmp_path / "sra"), str(tmp_path / file), str(tmp_path / out), *options]
        return CliRunner().invoke(app, ["encode", *arguments])

    wanted = load_encoder(tmp_path / "sra").encode(lines)
    assert call("out.npy").exit_code == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wanted, atol=1e-5)
    assert call("out.arrow", "--normalise").exit_code == 0
    table = pa.ipc.open_file(tmp_path / "out.arrow").read_all()
    assert table["text"].to_pylist() == lines
    np.testing.assert_allclose(np.linalg.norm(matrix(table["vector"]), axis=1), 1.0, atol=1e-5)
    assert "ends in .arrow or .npy" in str(call("out.csv").exception)
    assert "cannot be read" in str(call("out.npy", file="none.txt").exception)
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe caf\xe9")
    assert "not UTF-8" in str(call("bad.npy", file="bad.txt").exception)
    assert not (tmp_path / "bad.npy").exists()


@pytest.mark.parametrize("student", [None, LAYER])
def test_to_transformers_an_encoder_is_a_model(
    run: MakeRow, tmp_path: Path, student: dict[str, Any] | None
) -> None:
    import pipeline_lib.students.huggingface  # noqa: F401  registers it

    train_one(run({"epochs": 1}, student), tmp_path / "sra", ignore)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "sra")
    model = AutoModel.from_pretrained(tmp_path / "sra").eval()
    with torch.inference_mode():
        inputs = tokenizer(HELD_BACK[:9], padding=True, return_tensors="pt")
        found = model(**inputs).pooler_output.numpy()
    wanted = load_encoder(tmp_path / "sra").encode(HELD_BACK[:9])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
