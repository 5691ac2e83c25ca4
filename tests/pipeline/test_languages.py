"""From a file in another language to students that know its words, with a model of it."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import MASK
from pipeline_lib.models.students.tokenise import numbering
from pipeline_lib.models.students.vocabulary import load_vocabulary
from pipeline_lib.params import load_params
from pipeline_lib.results.collect import metrics, read_results
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.stages import (
    augment,
    evaluate,
    fetch_data,
    fetch_models,
    finetune_teacher,
    precompute,
    prepare,
    train,
)
from pipeline_lib.stages.train import make_vocabulary
from tests.commands.running import distill
from tests.pipeline.languages import LANGUAGES, write_model, write_reviews, write_teacher


@pytest.fixture
def begun(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a workspace of a language's reviews, and return the language."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    write_reviews(tmp_path, request.param)
    write_model(tmp_path / "tiny")
    files = "train.csv", "--test", "test.csv", "--name", "task", "--teacher", "tiny"
    printed = distill("init", *files, "--no-scm")
    assert "the texts are not English" in printed and "hardly knows" not in printed
    return request.param


@pytest.mark.parametrize("begun", LANGUAGES, indirect=True)
def test_words_of_the_test_set_are_known(begun: str, store_home: Path) -> None:
    params, layout = load_params(), Layout()
    is_unspaced = LANGUAGES[begun][0] == ""
    assert params.tagger.engine == "none" and [*params.models] == ["tiny"]
    assert params.recipe("full").ngram_max == (10 if is_unspaced else 5)
    for stage in (fetch_data, prepare, augment):
        stage.main(task="task")
    fetch_models.main()
    make_vocabulary(params, "task", layout)
    tokenizer, vectors = load_vocabulary(layout.vocabulary("task"))
    unknown = tokenizer.token_to_id(MASK)
    texts = ShardSet.open(layout.split("task", "test")).to_table()["text"].to_pylist()
    ids = numbering(tokenizer).number(texts, 64).ids
    assert np.mean(ids != unknown) > 0.95 and vectors.shape[1] == 32
    # The transfer set has masked words, and no replaced ones.
    rows = ShardSet.open(layout.transfer("task", "full")).to_table()
    assert any(MASK in text for text in rows["text"].to_pylist())
    assert {*rows["rules"].combine_chunks().flatten().to_pylist()} == {0, 1}
    if is_unspaced:
        assert all(len(word) <= 3 or word == MASK for word in _words(rows))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_students_learn_more_from_the_teacher_than_from_labels(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_home: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    write_reviews(tmp_path, language)
    write_teacher(tmp_path / "teacher", language)
    files = "train.csv", "--test", "test.csv", "--unlabelled", "texts.csv", "--name", "task"
    distill("init", *files, "--teacher", "teacher", "--no-scm")
    fetch_models.main()
    for stage in (fetch_data, prepare, augment, finetune_teacher, precompute, train, evaluate):
        stage.main(task="task")
    [results] = metrics(read_results(Layout(), ["task"])).values()
    scores = {name: row["test"]["accuracy"]["mean"] for name, row in results["methods"].items()}
    assert results["teachers"]["teacher"]["test"]["accuracy"] > 0.95
    assert scores["bilstm_kd_ts"] > max(scores["bilstm"], 0.9)


def _words(rows: object) -> set[str]:
    return {*rows["words"].combine_chunks().flatten().to_pylist()}
