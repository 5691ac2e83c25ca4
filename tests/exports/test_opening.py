"""Opening students, teachers and encoders: one answer for every format, one clear error."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest

from pipeline_lib import PotstillError, load_encoder, load_student, load_teacher, open_shards
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.kinds.probabilities import sigmoid, softmax
from pipeline_lib.base.text import Text
from pipeline_lib.exports.hub import export_hub
from pipeline_lib.exports.numpy_export import export_numpy
from pipeline_lib.exports.onnx.exporter import export_onnx, export_onnx_int8
from pipeline_lib.models.students.student import load_student as load_trained

from .students import sample, write_student

EXPORTS = {
    "onnx": export_onnx, "onnx-int8": export_onnx_int8, "numpy": export_numpy, "hub": export_hub,
}  # fmt: skip
HEAVY = ("torch", "transformers", "pandas", "datasets", "sklearn", "scipy", "spacy", "onnx")
"""Packages that no exported student needs; pyarrow is needed for tables alone."""
NAMES = ["no", "yes", "neither"]
FORMS = {"text": (*EXPORTS,), "pair": ("onnx", "numpy"), "many": ("onnx", "numpy", "hub")}
KIND = {"text": "classification", "pair": "classification", "many": "multilabel"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    for name, kind in KIND.items():
        student = write_student(folder / name / "own", "bilstm", name == "pair", NAMES, kind=kind)
        for form in FORMS[name]:
            EXPORTS[form](student, folder / name / form)
    export_onnx(write_student(folder / "pieces/own", "bert", True, NAMES), folder / "pieces/onnx")
    return folder


@pytest.mark.parametrize(("name", "form"), [(name, form) for name in KIND for form in ("own", *FORMS[name])])
def test_every_format_answers_alike(exported: Path, name: str, form: str) -> None:
    given, student = sample(name == "pair"), load_student(str(exported / name / form))
    assert (student.labels, student.kind, student.is_pair) == (NAMES, KIND[name], name == "pair")
    wanted = load_trained(exported / name / "own").logits(given)
    found, tolerance = student.predict(given), 0.1 if form == "onnx-int8" else 4e-6
    np.testing.assert_allclose(found.logits, wanted, atol=tolerance)
    shares, labels = softmax(found.logits), [NAMES[best] for best in found.logits.argmax(1)]
    if name == "many":
        shares, labels = sigmoid(found.logits), [[NAMES[n] for n in np.flatnonzero(row > 0)] for row in found.logits]
        config = read_json(exported / name / form / "config.json")
        assert config["problem_type"] == "multi_label_classification"
    np.testing.assert_allclose(found.probabilities, shares, atol=1e-6)
    assert found.labels == labels and found.logits.dtype == found.probabilities.dtype == np.float32
    none = student.predict([])
    assert (none.labels, none.probabilities.shape, none.logits.shape) == ([], (0, 3), (0, 3))


def test_the_metadata_of_an_onnx_file_says_sigmoid(exported: Path) -> None:
    model = onnx.load(exported / "many/onnx/onnx/model.onnx")
    told = {prop.key: prop.value for prop in model.metadata_props}
    assert (told["kind"], told["activation"]) == ("multilabel", "sigmoid") and "same_class" in told["deviation"]


@pytest.mark.parametrize("form", ["own", *EXPORTS])
def test_batches_of_one_do_not_depend_on_other_texts(exported: Path, form: str) -> None:
    student, given = load_student(exported / "text" / form), sample(False)
    alone = np.concatenate([student.predict([text]).logits for text in given])
    np.testing.assert_array_equal(student.predict(given, batch_size=1).logits, alone)
    together = student.predict(given, batch_size=4).logits
    np.testing.assert_allclose(together, alone, atol=0.1 if form == "onnx-int8" else 4e-6)
    with pytest.raises(PotstillError, match=r"batch_size: 0\. Give at least 1"):
        student.predict(given, batch_size=0)


def test_a_regression_has_scores_for_labels(tmp_path: Path) -> None:
    folder = write_student(tmp_path / "own", "cnn", False, ["stars"])
    export_numpy(folder, tmp_path / "numpy")
    for form in ("own", "numpy"):
        student = load_student(tmp_path / form)
        found = student.predict(sample(False))
        assert (student.kind, student.labels, found.probabilities) == ("regression", ["stars"], None)
        np.testing.assert_array_equal(found.labels, found.logits[:, 0])
        none = student.predict([])
        assert (none.labels.shape, none.probabilities, none.logits.shape) == ((0,), None, (0, 1))


def test_a_temperature_divides_the_logits(workspace: Path) -> None:
    folder = workspace / "data/students/movies/bilstm_kd_ts/1"
    scores = {"methods": {"bilstm_kd_ts": {"details": {"temperature": {"1": 2.0}}}}}
    raw = load_student(folder).predict(["a quiet triumph"]).logits
    write_json(workspace / "data/results/movies/scores.json", scores)
    found = load_student(folder).predict(["a quiet triumph"]).logits
    (workspace / "data/results/movies/scores.json").unlink()
    np.testing.assert_array_equal(found, raw / 2)


def test_a_teacher_reads_what_it_was_tuned_to_read(workspace: Path) -> None:
    folder = workspace / "data/teachers/movies/minilm"
    teacher, long = load_teacher(folder), "a film is good . " * 10
    assert (teacher.labels, teacher.is_pair) == (["negative", "positive"], None)
    found = teacher.predict(["a film", long, long + "dull"]).logits
    # The last ones differ only behind the 16 word pieces of its record.
    np.testing.assert_allclose(found[1], found[2], atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-4
    assert teacher.predict([("a film", "good")]).logits.shape == (1, 2)
    assert teacher.predict([]).probabilities.shape == (0, 2)
    with pytest.raises(PotstillError, match=r"texts\[1\]: .* is not one text"):
        teacher.predict(["a film", ("a film", "good")])


@pytest.mark.parametrize("form", ["own", "onnx", "numpy"])
def test_an_encoder_gives_a_row_per_text(workspace: Path, tmp_path: Path, form: str) -> None:
    folder = own = workspace / "data/encoders/sra"
    if form != "own":
        folder = tmp_path / form
        EXPORTS[form](own, folder)
    encoder = load_encoder(folder)
    found = encoder.encode(["a quiet triumph", "", "dull"], batch_size=2)
    assert (encoder.width, found.shape, found.dtype) == (384, (3, 384), np.float32)
    wanted = load_encoder(own).encode(["a quiet triumph", "", "dull"])
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert encoder.encode([]).shape == (0, 384)
    assert load_encoder(workspace / "data/students/movies/bilstm_kd_ts/1").width == 1
    with pytest.raises(PotstillError, match=r"texts\[0\]: \('a', 'b'\) is not one text"):
        encoder.encode([("a", "b")])


def test_any_row_of_texts_is_read_in_its_order(exported: Path) -> None:
    student, texts = load_student(exported / "text/own"), ["a quiet triumph", "dull", "", "a film"]
    wanted = student.predict(texts).logits
    series = pa.table({"text": texts}).to_pandas()["text"].iloc[[3, 1, 0, 2]]
    for given in (np.array(texts), tuple(texts), iter(texts), series.sort_index(), series.to_numpy()[[2, 1, 3, 0]]):
        np.testing.assert_allclose(student.predict(given).logits, wanted, atol=1e-6)


def test_what_was_opened_can_be_pickled(exported: Path) -> None:
    """So it goes to the workers of joblib and Spark, and to spawned processes."""
    for form in ("own", "numpy"):
        student = load_student(exported / "text" / form)
        again = pickle.loads(pickle.dumps(student))
        np.testing.assert_array_equal(again.predict(["a film"]).logits, student.predict(["a film"]).logits)


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("text", ["a film", 3], r"texts\[1\]: 3 is not a text, but of type int. Give strings."),
        ("text", [float("nan")], r"texts\[0\]: nan is not a text, but of type float"),
        ("text", "a film", r"texts: of type str\. Give a list of texts"),
        ("text", None, "texts: of type NoneType"),
        ("text", {"text": ["a film"]}, "texts: of type dict"),
        ("text", pa.table({"text": ["a film"]}).to_pandas(), r"of type DataFrame\. .* predict\(table\['text'\]\)"),
        ("text", np.array([["a", "film"]]), "texts: of type ndarray"),
        ("text", [["a", "film", "so"]], r"\('a', 'film', 'so'\) is neither a text nor a pair"),
        ("text", [("a", "film")], r"texts\[0\]: \('a', 'film'\) is not one text, but .* reads one"),
        ("text", ["a", "\ud83d"], r"texts\[1\]: not UTF-8"),
        ("pair", ["a film"], r"texts\[0\]: 'a film' is not a pair, but .* compares two sentences"),
        ("pair", [("a", "b"), ("a", "b", "c")], r"texts\[1\]: \('a', 'b', 'c'\) is neither a text nor a pair"),
        ("pair", [("a", None)], r"texts\[0\]: None is not a text, but of type NoneType"),
    ],
)
def test_what_is_not_a_text_or_a_pair_is_named(exported: Path, name: str, texts: Any, message: str) -> None:
    for form in ("own", "numpy"):
        with pytest.raises(PotstillError, match=message):
            load_student(exported / name / form).predict(texts)
    assert len(load_student(exported / "pair/numpy").predict([["a", "b"]]).labels) == 1


@pytest.mark.parametrize(
    ("open_", "name", "message"),
    [
        (load_student, "absent", "no such folder. Run `distill run`, or give a folder below data/stu"),
        (load_student, "data/encoders/sra", "a sentence encoder, not a student.*`load_encoder`"),
        (load_student, "data/teachers/movies/minilm", "a teacher, not a student.*`load_teacher`"),
        (load_student, "data/transfer/movies/full", "a shard set, not a student.*`open_shards`"),
        (load_student, "data/students/movies/bilstm_kd_ts", "contains 1. Give one of these"),
        (load_teacher, "exported", "an exported student, not a teacher.*`load_student`"),
        (load_teacher, "data", "not a teacher. Run `distill run`"),
        (load_encoder, "exported", "an exported student, not a sentence encoder"),
        (load_encoder, "data/encoders", "not a sentence encoder.*contains sra"),
        (open_shards, "data/transfer/movies", "not a shard set, but it contains full"),
        (open_shards, "data/encoders/sra", "a sentence encoder, not a shard set"),
    ],
)
def test_a_folder_with_something_else_is_named(workspace: Path, open_: object, name: str, message: str) -> None:
    with pytest.raises(PotstillError, match=f"{name}: .*{message}"):
        open_(workspace / name)


def test_other_models_of_other_libraries_are_named(tmp_path: Path) -> None:
    write_json(tmp_path / "model/config.json", {"model_type": "bert", "architectures": ["B"]})
    write_json(tmp_path / "st/modules.json", [])
    write_json(tmp_path / "list/config.json", [])
    for open_, name, message in (
        (load_student, "model", "a transformers model without classes, not a student"),
        (load_encoder, "st", "a sentence-transformers model, not a sentence enc"),
        (load_student, "list", "list: not a student"),
    ):
        with pytest.raises(PotstillError, match=message):
            open_(tmp_path / name)


COMMAND = """
import sys
from pipeline_lib.cli import app
app(standalone_mode=False)
"""
LOADED = "print({name.split('.')[0] for name in sys.modules}, file=sys.stderr)"


def modules_of(code: str, folder: Path, *arguments: str) -> tuple[str, set[str]]:
    """Run code in a new process; return what it prints, and the packages that it imported."""
    command = [sys.executable, "-c", code + LOADED, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, {name for name in (*HEAVY, "pyarrow") if f"'{name}'" in done.stderr}


@pytest.mark.parametrize(
    ("name", "form"), [("pieces", "onnx"), ("pair", "onnx"), ("text", "onnx-int8"), ("text", "numpy")]
)
def test_an_exported_student_needs_no_torch(exported: Path, name: str, form: str) -> None:
    given: list[Text] = ["a good film"] if name == "text" else [("a good film", "dull")]
    (wanted,) = load_student(exported / name / form).predict(given).labels
    line = given[0] if name == "text" else "\t".join(given[0])
    told, modules = modules_of(COMMAND, exported, "predict", f"{name}/{form}", line)
    assert (told.split("\t")[0], modules) == (wanted, set())


def test_a_table_is_answered_without_torch(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text,text_pair\n1,a good film,dull\n")
    told, modules = modules_of(COMMAND, tmp_path, "predict", str(exported / "pair/numpy"), "--file", "in.csv")
    assert told.endswith("\ta good film\tdull\n") and modules <= {"pyarrow"}


def test_an_exported_encoder_needs_no_torch(workspace: Path, tmp_path: Path) -> None:
    export_onnx(workspace / "data/encoders/sra", tmp_path / "out")
    (tmp_path / "in.txt").write_text("a quiet triumph\n")
    _, modules = modules_of(COMMAND, tmp_path, "predict", "out", "--file", "in.txt", "--out", "out.npy")
    assert np.load(tmp_path / "out.npy").shape == (1, 384) and modules <= {"pyarrow"}
