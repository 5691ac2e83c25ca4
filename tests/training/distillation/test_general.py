"""General distillation: a new Transformer learns a model's layers, and students start from it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.student import Student, load_student, save_student
from pipeline_lib.params import check_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.training.distillation.general import GeneralTraining, encoder_row
from pipeline_lib.training.distillation.initialisation import start_from_encoder, start_of
from pipeline_lib.training.search import Searched, TrainingRow, train_rows
from tests.kit.kills import killed_and_resumed
from tests.kit.shard_files import write_set
from tests.params.variants import changed
from tests.pipeline.corpus import sentences, write_encoder
from tests.pipeline.workspace import small_params

MakeRow = Callable[..., TrainingRow[GeneralTraining]]
pytestmark = pytest.mark.usefixtures("store_home")
TINY = {
    **{"architecture": "bert", "model": "minilm", "depth": 1, "width": 12, "heads": 2},
    **{"feedforward": 20, "pool": "last", "classifier": None, "dropout": 0.1, "max_words": 16},
}
GENERAL = {
    **{"student": "tiny", "wikipedia": None, "teacher_runs": {"layers": [2]}},
    **{"objective": {"embeddings": 1.0, "hidden": 1.0, "attentions": 1.0}, "optimiser": "general"},
}


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Write the model and Wikipedia's sentences; return where all lies."""
    layout = Layout(tmp_path_factory.mktemp("data"))
    write_encoder(layout.model("minilm"))
    texts = [text for _, text in sentences()["train"]]
    for split, own in (("train", texts[:96]), ("validation", texts[-16:])):
        table = pa.table({"key": pa.array(string_keys(own)), "text": pa.array(own)})
        write_set(layout.wikipedia(split), "sentences", {"s0.arrow": table})
    return layout


@pytest.fixture
def make(layout: Layout) -> MakeRow:
    """Return a maker of rows; named arguments change the row of ``encoders``."""

    def make_row(student: dict[str, Any] | None = None, **changes: Any) -> TrainingRow[GeneralTraining]:
        values = small_params()
        values["students"]["tiny"] = TINY | (student or {})
        values["optimisers"]["general"] = values["optimisers"]["short"] | {
            **{"batch_size": 16, "epochs": 4, "evaluate_every": None, "learning_rates": [5.0e-3]}
        }
        values["encoders"] = {"general": GENERAL | changes}
        values["wikipedia"] = changed({})["wikipedia"]
        return encoder_row(check_params(values), "general", layout, "cpu")

    return make_row


def train(row: TrainingRow[GeneralTraining], on_step: Callable[..., None] | None = None) -> Searched:
    def on_progress(_: GeneralTraining, message: Any) -> None:
        if on_step:
            on_step(*message)

    return train_rows([row], LocalEngine(1), on_progress)[row.name]


def first_of(row: TrainingRow[GeneralTraining]) -> GeneralTraining:
    return row.spec(row.seeds[0], row.rates[0])


def test_it_learns_the_layers_and_is_a_model_to_transformers(make: MakeRow, layout: Layout, tmp_path: Path) -> None:
    found = train(make())
    [(own, record)] = found.trainings.values()
    losses = [entry.dev for entry in record.history]
    assert losses[-1] == record.loss < 0.8 * losses[0]
    assert (record.sentences, record.held_back_sentences) == (96, 16)
    folder = own.result.folder
    model = AutoModel.from_pretrained(folder).eval()
    sizes = model.config.hidden_size, model.config.num_hidden_layers, model.config.intermediate_size
    assert sizes == (12, 1, 20) and model.config.max_position_embeddings == 16
    whole = AutoTokenizer.from_pretrained(layout.model("minilm"))
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == whole.get_vocab()
    # A student that starts there reads as the model does, one that starts at random does not.
    start = start_from_encoder(folder, own.student)
    torch.manual_seed(1)
    student = start.build(own.student, False, ["no", "yes"]).eval()
    other = start_of(layout.model("minilm"), own.student, "random")
    random = other.build(own.student, False, ["no", "yes"]).eval()
    texts = Student(student, start.tokenizer, torch.device("cpu")).encode(["a dull film"])
    batch = texts.batch(np.arange(1))
    with torch.inference_mode():
        expected = model(batch["ids"]).last_hidden_state[:, 0]
        read = [own.outputs(batch)["vector"] for own in (student, random)]
    assert torch.allclose(read[0], expected, atol=1e-5)
    assert not torch.allclose(read[1], expected, atol=1e-2)
    save_student(tmp_path / "student", random, other.tokenizer)
    loaded = load_student(tmp_path / "student")
    with torch.inference_mode():
        assert torch.allclose(loaded.model.outputs(batch)["vector"], read[1], atol=1e-5)


def test_a_kill_loses_nothing(make: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = make()
    train(row)
    whole = sha256_folder(first_of(row).result.folder)
    killed_and_resumed(partial(train, row), 9, tmp_path / "another", monkeypatch)
    assert sha256_folder(first_of(make()).result.folder) == whole


def test_what_decides_counts_and_what_the_model_has_not_is_refused(make: MakeRow) -> None:
    key = first_of(make()).result.key
    weights = {"embeddings": 1.0, "hidden": 2.0, "attentions": 1.0}
    changes = ({"wikipedia": 48}, {"objective": weights}, {"student": {"depth": 2}})
    changes[2]["teacher_runs"] = {"layers": [1, 2]}
    others = {first_of(make(**own)).result.key for own in changes}
    assert len(others | {key}) == 4
    assert first_of(make(wikipedia=96)).result.key == key
    own = first_of(make())
    renamed = own.params.model_copy(update={"encoders": {"another": own.row}})
    assert replace(own, params=renamed, name="another").result.key == key
    # What the model has not is refused.
    with pytest.raises(PotstillError, match=r"encoders\.general\.teacher_runs\.layers: 3, but"):
        make(teacher_runs={"layers": [3]})
    message = r"encoders\.general\.objective\.attentions: the student has 3 attention heads, its"
    with pytest.raises(PotstillError, match=message):
        make(student={"heads": 3})
    with pytest.raises(PotstillError, match=r"encoders\.general: there are no sentences to train on"):
        first_of(make(wikipedia=0)).prepare()
