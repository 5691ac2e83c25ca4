"""Gates before shards of answers out of files are stored."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.lookup_pass import AnswerPass
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import ShardPass, run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_shard
from tests.kit.shard_files import write_set

from .answer_files import TASK, gather_answers, lines, settings

ROWS = 40
TEXTS = [f"sentence {number}" for number in range(3 * ROWS)]


@pytest.fixture
def inputs(tmp_path: Path, store_home: Path) -> ShardSet:
    table = pa.table({"key": np.arange(len(TEXTS), dtype=np.uint64), "text": TEXTS})
    tables = {f"b{number:03}-i000.arrow": table.slice(number * ROWS, ROWS) for number in range(3)}
    return write_set(tmp_path / "in", "transfer", tables)


def stored(found: ShardPass, inputs: ShardSet, folder: Path) -> np.ndarray:
    run_pass(found, inputs, folder, LocalEngine(1))
    return matrix(ShardSet.open(folder).to_table()["logits"])


def answers(folder: Path, given: dict[str, dict[str, object]]) -> AnswerPass:
    rows = [{"text": text} | answer for text, answer in given.items()]
    gather_answers([lines(folder / "a.jsonl", rows)], settings(), TASK, folder / "llm")
    return AnswerPass.of(folder / "llm")


def sure(number: int) -> dict[str, object]:
    return {"probs": {"yes": 0.1 + number / 200}}


def test_a_stretch_of_answers_that_are_alike_is_refused(tmp_path: Path, inputs: ShardSet) -> None:
    given = {text: sure(number) for number, text in enumerate(TEXTS)}
    assert stored(answers(tmp_path, given), inputs, tmp_path / "out").shape == (120, 2)
    stuck = given | {text: {"probs": {"yes": 0.5}} for text in TEXTS[ROWS : 2 * ROWS]}
    with pytest.raises(PotstillError, match=r"logits of b001-i000\.arrow: constant: .* 40 different inputs.* Remove"):
        stored(answers(tmp_path, stuck), inputs, tmp_path / "out")
    # A third of the shard is answered: too few to say so.
    for text in TEXTS[ROWS + 12 : 2 * ROWS]:
        del stuck[text]
    found = stored(answers(tmp_path, stuck), inputs, tmp_path / "out")
    assert np.isnan(found).all(axis=1).sum() == 28


def test_bare_labels_may_be_sorted(tmp_path: Path, inputs: ShardSet) -> None:
    given = {text: {"label": "yes" if n < ROWS else "no"} for n, text in enumerate(TEXTS)}
    found = stored(answers(tmp_path, given), inputs, tmp_path / "out")
    assert found.argmax(axis=1).tolist() == [1] * ROWS + [0] * (2 * ROWS)


def test_answers_that_are_no_numbers_are_refused(tmp_path: Path, inputs: ShardSet) -> None:
    found = answers(tmp_path, {text: {"label": ["no", "yes"][len(text) % 2]} for text in TEXTS})
    path = tmp_path / "llm/answers.arrow"
    table = pa.ipc.open_file(path).read_all()
    logits = matrix(table["logits"]).copy()
    logits[5, 0] = np.inf
    write_shard(path, pa.table({"key": table["key"], "logits": list_column(logits)}))
    with pytest.raises(PotstillError, match=r"logits of b00\d-i000\.arrow: not a finite number"):
        stored(AnswerPass.of(found.folder), inputs, tmp_path / "out")
