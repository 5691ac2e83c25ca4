"""Students exported for the hub give the logits of the originals, without this library."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast
from transformers.dynamic_module_utils import get_imports, get_relative_imports

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.kinds.probabilities import sigmoid, softmax
from pipeline_lib.exports.hub import export_hub
from pipeline_lib.exports.sentence_transformers import export_sentence_transformers
from pipeline_lib.models import networks
from pipeline_lib.models.folders import temperature_of
from pipeline_lib.models.networks.encoders import RegressionEncoder
from pipeline_lib.models.students.student import load_student
from tests.commands.running import distill
from tests.kit.made_up import made_up_method, made_up_scores

from .students import CASES, sample, write_student

pytestmark = pytest.mark.usefixtures("own_modules")
NETWORKS = Path(networks.__file__).parent
NAMES = {True: ["no", "yes"], False: ["score"]}


def texts_of(pair: bool, texts: Iterable[str] = ()) -> list[Any]:
    return sample(pair, ["  \t", "film " * 30, *texts])


def loaded(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    found = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
    return tokenizer, found.eval()


def outputs(tokenizer: Any, model: Any, given: list[Any], size: int) -> np.ndarray:
    found = []
    for start in range(0, len(given), size):
        rows = given[start : start + size]
        apart = map(list, zip(*rows, strict=True)) if isinstance(rows[0], tuple) else [rows]
        batch = tokenizer(*apart, padding=True, return_tensors="pt")
        with torch.inference_mode():
            found.append(model(**batch).logits.numpy())
    return np.concatenate(found)


@pytest.mark.parametrize(("kind", "pair", "family"), CASES)
def test_logits_are_those_of_the_student(kind: str, pair: bool, family: str, texts: list[str], tmp_path: Path) -> None:
    # A regression of sentences, classes of pairs: what differs is the same for all students.
    folder = write_student(tmp_path / "student", kind, pair, NAMES[pair], family)
    given = texts_of(pair, texts)
    wanted = load_student(folder).logits(given)
    outs = "2 outputs" if pair else "1 output"
    assert export_hub(folder, tmp_path / "out") == f"{outs}; read its README.md"
    own = loaded(tmp_path / "out")
    for size, count in ((1, 12), (7, len(given)), (len(given), len(given))):
        found = outputs(*own, given[:count], size)
        np.testing.assert_allclose(found, wanted[:count], atol=2e-5)
    # The comparison can fail.
    assert np.abs(wanted - wanted[0]).max() > 2e-4
    np.testing.assert_array_equal(load_student(tmp_path / "out").logits(given), wanted)


@pytest.mark.parametrize(("kind", "pair"), [("cnn", False), ("dse", True), ("transformer", True)])
def test_what_transformers_saves_it_loads_again(kind: str, pair: bool, tmp_path: Path) -> None:
    export_hub(write_student(tmp_path / "s", kind, pair, NAMES[pair]), tmp_path / "out")
    own, given = loaded(tmp_path / "out"), texts_of(pair)
    for part in own:
        part.save_pretrained(tmp_path / "again")
    again = loaded(tmp_path / "again")
    assert again[1].config.id2label == dict(enumerate(NAMES[pair]))
    assert isinstance(again[0], PreTrainedTokenizerFast)
    np.testing.assert_array_equal(outputs(*again, given, 9), outputs(*own, given, 9))


@pytest.mark.slow
def test_nothing_of_this_library_is_needed(tmp_path: Path) -> None:
    pair = write_student(tmp_path / "pair", "biattentive", True, ["no", "yes"])
    score = write_student(tmp_path / "score", "static", False, ["stars"])
    many = write_student(tmp_path / "many", "bilstm", False, ["toxic", "threat", "spam"], kind="multilabel")
    for folder in (pair, score, many):
        export_hub(folder, folder.with_name(f"{folder.name}_out"))
    code = """
import json, sys
sys.modules["pipeline_lib"] = None
from transformers import pipeline
ask = lambda name: pipeline("text-classification", name, trust_remote_code=True, device="cpu")
pairs = [{"text": "a good film", "text_pair": "dull ."}, {"text": "", "text_pair": "film"}]
print(json.dumps([ask("pair_out")(pairs, top_k=None, batch_size=2), ask("score_out")("good")]))
print(json.dumps(ask("many_out")("good", top_k=None)))
"""
    own = {"HF_HOME": str(tmp_path / "hf"), "PATH": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (classes, (found,)), labels = map(json.loads, run.stdout.splitlines()[-2:])
    [shares] = sigmoid(load_student(many).logits(["good"]))
    of_labels = dict(zip(["toxic", "threat", "spam"], shares.tolist(), strict=True))
    assert {one["label"]: one["score"] for one in labels} == pytest.approx(of_labels, abs=1e-5)
    logits = load_student(pair).logits([("a good film", "dull ."), ("", "film")])
    for row, shares in zip(classes, softmax(logits), strict=True):
        by_label = {one["label"]: one["score"] for one in row}
        assert [by_label["no"], by_label["yes"]] == pytest.approx(shares.tolist(), abs=1e-5)
    expected = float(load_student(score).logits(["good"])[0, 0])
    assert found == {"label": "stars", "score": pytest.approx(expected, abs=1e-5)}


def test_the_temperature_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_student(Path("data/students/films/kd/2"), "bilstm", False, ["negative", "positive"])
    own = made_up_method(0.8, None)
    own["details"]["temperature"] = {"1": 1.0, "2": 2.5}
    made_up_scores({"kd": own}).write(Path("data/results/films/scores.json"))
    told = distill("export", str(folder), "out", "--to", "hub")
    assert told == "out: hub, 2 outputs; read its README.md\n"
    raw, texts = load_student(folder).logits(["a good film", "dull"]), ["a good film", "dull"]
    np.testing.assert_allclose(outputs(*loaded(Path("out").absolute()), texts, 2), raw / 2.5, atol=1e-5)
    # So it does where this library reads the folder.
    answers = [distill("predict", name, *texts, "--format", "jsonl") for name in (str(folder), "out")]
    assert answers[0] == answers[1] and temperature_of(Path("out")) == 2.5
    card = Path("out/README.md").read_text()
    assert "Logits are divided by 2.5 (`calibration_temperature` in config.json)" in card


def test_the_loss_comes_along_with_labels(tmp_path: Path) -> None:
    export_hub(write_student(tmp_path / "s", "regression", False, ["stars"]), tmp_path / "out")
    tokenizer, model = loaded(tmp_path / "out")
    batch = tokenizer(["a good film", "dull"], padding=True, return_tensors="pt")
    found = model(**batch, labels=torch.tensor([1.0, 2.0]))
    wanted = (found.logits[:, 0] - torch.tensor([1.0, 2.0])).square().mean()
    assert torch.allclose(found.loss, wanted)


def test_what_a_pair_lacks_or_has_too_much_of_is_told(tmp_path: Path) -> None:
    export_hub(write_student(tmp_path / "s", "bert", True, ["no", "yes"]), tmp_path / "out")
    tokenizer, model = loaded(tmp_path / "out")
    with pytest.raises(ValueError, match=r"compares two sentences: call tokenizer\(first, second"):
        tokenizer(["a film", "dull"])
    long = tokenizer("film " * 9, "a " * 9, truncation=False, return_tensors="pt")
    with pytest.raises(ValueError, match="21 tokens, but only 9 are read"):
        model(**long)
    export_hub(write_student(tmp_path / "cnn", "cnn", True, ["no", "yes"]), tmp_path / "other")
    _, model = loaded(tmp_path / "other")
    with pytest.raises(ValueError, match="without token_type_ids"):
        model(torch.tensor([[2, 3]]))


@pytest.mark.parametrize("kind", ["biattentive", "transformer"])
def test_it_can_be_converted_to_bfloat16(kind: str, tmp_path: Path) -> None:
    export_hub(write_student(tmp_path / "s", kind, True, ["no", "yes"]), tmp_path / "out")
    tokenizer, model = loaded(tmp_path / "out")
    pairs = texts_of(True)
    exact = outputs(tokenizer, model, pairs, len(pairs))
    batch = tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model.bfloat16()(**batch).logits
    assert logits.dtype == torch.bfloat16
    np.testing.assert_allclose(logits.float().numpy(), exact, atol=0.05 * np.abs(exact).max())


def test_the_code_is_the_librarys_own(tmp_path: Path) -> None:
    export_hub(write_student(tmp_path / "s", "regression", False, ["stars"]), tmp_path / "out")
    files = {path.name: path for path in (tmp_path / "out").glob("*.py")}
    assert {"distilled_student.py", "student.py", "encoders.py", "layers.py"} <= {*files}
    for name, path in files.items():
        assert path.read_bytes() == (NETWORKS / name).read_bytes()
    # transformers 5.2 copies only the files that the first one names.
    first = files.pop("distilled_student.py")
    assert {*get_relative_imports(first)} == {path.stem for path in files.values()}
    # Before transformers runs code from the hub, it looks for all packages that a file names.
    packages = {name for path in (first, *files.values()) for name in get_imports(path)}
    assert packages - {*sys.stdlib_module_names} == {"torch", "transformers"}


def test_code_from_outside_the_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_student(tmp_path / "s", "regression", False, ["stars"])
    monkeypatch.setattr(RegressionEncoder, "__module__", "extension")
    for export in (export_hub, export_sentence_transformers):
        with pytest.raises(PotstillError, match="RegressionEncoder is from outside the library"):
            export(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_student_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "encoder" / "config.json", {"model_type": "distillery_encoder"})
    with pytest.raises(PotstillError, match=r"no classes\. Export it with --to sentence-trans"):
        export_hub(tmp_path / "encoder", tmp_path / "out")
    folder = write_student(tmp_path / "student", "static", False, ["stars"])
    with pytest.raises(PotstillError, match=r"student: not empty\. Name"):
        export_hub(folder, folder)
    assert "auto_map" not in read_json(folder / "config.json")
