"""Students in ONNX answer as they do in torch, whatever the lengths, the batch and the padding."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tokenizers import Tokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.text import Text
from pipeline_lib.exports.deviation import Deviation
from pipeline_lib.exports.onnx.exporter import export_onnx, export_onnx_int8, quantise
from pipeline_lib.exports.onnx.student import FILES, OnnxStudent, inputs, load_onnx_student, open_session, run
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.student import load_student
from pipeline_lib.params import ARCHITECTURES
from pipeline_lib.text.ragged import Sentences

from .students import CASES, MAX_WORDS, VALUES, sample, write_encoder, write_student


def by_file(session: object, folder: Path, texts: list[Text]) -> np.ndarray:
    """Return what a stranger computes: by the file of the tokenizer and the graph's own inputs."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    names = [given.name for given in session.get_inputs()]

    def encode(part: list[Text], suffix: str) -> dict[str, np.ndarray]:
        rows = tokenizer.encode_batch(part)
        kinds = {"input_ids": "ids", "attention_mask": "attention_mask"}
        kinds |= {"token_type_ids": "type_ids"} if "token_type_ids" in names else {}
        return {
            f"{name}{suffix}": np.array([getattr(r, kind) for r in rows], np.int64).reshape(len(rows), -1)
            for name, kind in kinds.items()
        }

    if "input_ids_2" in names:
        first, second = zip(*texts, strict=True)
        return session.run(None, encode(list(first), "") | encode(list(second), "_2"))[0]
    return session.run(None, encode(texts, ""))[0]


@pytest.mark.parametrize(("name", "pair", "family"), [case for case in CASES if case[0] != "transformer-last"])
def test_answers_are_those_of_torch(name: str, pair: bool, family: str, tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", name, pair, ["no", "yes", "neither"], family)
    export_onnx(folder, tmp_path / "out")
    given, student = sample(pair), load_student(folder)
    wanted, exported = student.logits(given), load_onnx_student(tmp_path / "out")
    assert exported.label_names == ["no", "yes", "neither"] and exported.is_pair is pair
    np.testing.assert_allclose(exported.outputs(given), wanted, atol=2e-6)
    for size in (1, 3, len(given)):
        found = [
            by_file(exported.session, tmp_path / "out", given[start : start + size])
            for start in range(0, len(given), size)
        ]
        np.testing.assert_allclose(np.concatenate(found), wanted, atol=2e-6)
    # The comparison can fail.
    assert np.ptp(wanted, axis=0).max() > 1e-4
    check_padding(exported, given, 2 * (name != "bert"))
    check_int8(folder, tmp_path / "out", student.encode(given), wanted)


def check_padding(exported: OnnxStudent, given: list[Text], added: int) -> None:
    """Other numbers in the padding, and ``added`` columns of it, change no answer."""
    rows = exported.reader.encode(given)
    batch = inputs(rows, np.arange(len(given))[2:5])
    more = [(0, 0), (0, added)]
    wider = {name: np.pad(values, more) for name, values in batch.items()}
    for name in [name for name in wider if name.startswith("input_ids")]:
        words = wider[name.replace("input_ids", "attention_mask")]
        wider[name] = np.where(words, wider[name], 3)
    found = [exported.session.run(None, own)[0] for own in (wider, batch)]
    np.testing.assert_allclose(*found, atol=2e-6)


def check_int8(folder: Path, out: Path, rows: Sentences, wanted: np.ndarray) -> None:
    model = quantise(onnx.load(out / FILES["onnx"]))
    stored = {tensor.data_type for tensor in model.graph.initializer if len(tensor.dims) > 1}
    assert onnx.TensorProto.INT8 in stored
    check_no_overflow(model)
    found = run(open_session(model.SerializeToString()), rows, wanted.shape[1])
    apart = Deviation.between(wanted, found, kind="classification")
    assert 0 < apart.largest < 0.1 * max(1.0, np.abs(wanted).max())


def check_no_overflow(model: onnx.ModelProto) -> None:
    """Two products of an activation, up to 255, and a weight fit 16 bits, as AVX2 adds them."""
    constants = {own.name: numpy_helper.to_array(own) for own in model.graph.initializer}
    kinds = {"MatMulInteger", "DynamicQuantizeLSTM"}
    products = [node for node in model.graph.node if node.op_type in kinds]
    weights = [constants[name] for node in products for name in node.input if name in constants]
    weights = [own.astype(int) for own in weights if own.dtype == np.int8 and own.ndim > 1]
    assert len(weights) >= len(products) > 0
    assert all(255 * 2 * np.abs(own).max() < 2**15 for own in weights)


def test_every_architecture_has_a_form() -> None:
    assert {VALUES[name]["architecture"] for name, *_ in CASES} == set(ARCHITECTURES)


def test_the_folder_says_what_the_model_is(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "bilstm", False, ["no", "yes"])
    told = export_onnx_int8(folder, tmp_path / "out")
    assert told.startswith("outputs at most 0.") and "(256 rows of random words)" in told
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert found == {"config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model_quantized.onnx"}
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "yes"} and config["form"] == "onnx-int8"
    session = load_onnx_student(tmp_path / "out").session
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["labels"]) == ["no", "yes"]
    assert (about["kind"], about["activation"]) == ("classification", "softmax")
    assert (about["temperature"], about["max_length"]) == ("1.0", str(MAX_WORDS))
    deviation = json.loads(about["deviation"])["made up"]
    assert deviation == config["deviation"]["made up"] and 0 < deviation["largest"] < 0.5
    assert session.get_inputs()[0].shape == ["rows", "columns"]


def test_a_temperature_is_in_the_logits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.exports.export_source.temperature_of", lambda _: 2.0)
    for name in ("cnn", "bert"):
        folder = write_student(tmp_path / name, name, False, ["no", "yes"])
        export_onnx(folder, tmp_path / f"{name}-out")
        exported, given = load_onnx_student(tmp_path / f"{name}-out"), sample(False)
        found = 2.0 * exported.outputs(given)
        np.testing.assert_allclose(found, load_student(folder).logits(given), atol=4e-6)
        assert exported.session.get_modelmeta().custom_metadata_map["temperature"] == "2.0"


def test_a_regression_and_a_sentence_encoder(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "static", True, ["stars"])
    assert "class" not in export_onnx(folder, tmp_path / "score")
    about = load_onnx_student(tmp_path / "score").session.get_modelmeta().custom_metadata_map
    assert (about["kind"], about["activation"]) == ("regression", "none")
    write_encoder(tmp_path / "encoder")
    export_onnx(tmp_path / "encoder", tmp_path / "vectors")
    exported, given = load_onnx_student(tmp_path / "vectors"), sample(False)
    assert exported.label_names == []
    assert exported.session.get_outputs()[0].name == "sentence_embedding"
    wanted = load_encoder(tmp_path / "encoder").encode(given)
    np.testing.assert_allclose(exported.outputs(given), wanted, atol=2e-6)


def test_other_answers_than_the_students_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_student(tmp_path / "student", "bilstm", False, ["no", "yes"])
    # As by an exporter that confuses the gates.
    monkeypatch.setattr("pipeline_lib.exports.onnx.networks._gates", lambda weight: weight)
    with pytest.raises(PotstillError, match="the ONNX model's answers differ"):
        export_onnx(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_onnx_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for use in (lambda: export_onnx(tmp_path, tmp_path), lambda: load_onnx_student(tmp_path)):
        with pytest.raises(PotstillError, match=r"pip install 'potstill\[onnx\]'"):
            use()


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "student", "static", False, ["no", "yes"])
    export_onnx(folder, tmp_path / "out")
    (tmp_path / "out/onnx/model.onnx").write_bytes(b"truncated")
    with pytest.raises(PotstillError, match="out: the ONNX student cannot be opened"):
        load_onnx_student(tmp_path / "out")
