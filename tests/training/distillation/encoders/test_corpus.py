"""What an encoder is trained on: Wikipedia, tasks, masked words, and sentences without a vector."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.vocabulary import build_tokenizer, build_vocabulary, vector_source
from pipeline_lib.outputs.files.gathering import gather
from pipeline_lib.outputs.files.lookup_pass import VectorLookup
from pipeline_lib.outputs.files.vector_files import Vectors
from pipeline_lib.outputs.vectors import VectorPass
from pipeline_lib.params import SentenceVectorFiles
from pipeline_lib.shards.columns import MASKED
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_shard
from pipeline_lib.shards.training_texts import unlabelled_folder
from pipeline_lib.text.pieces import load_pieces
from pipeline_lib.training.distillation.corpus import Corpus
from pipeline_lib.training.distillation.encoders import EncoderTraining, check_vectors
from pipeline_lib.training.distillation.general import encoder_row
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import write_encoder

from .rows import HELD_BACK, TASK, TRAIN, MakeRow, first_of, ignore, key_of, train_one, write_texts

pytestmark = pytest.mark.usefixtures("store_home")


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
    inputs = write_set(tmp_path / "rows", "sentences", {"s.arrow": rows})
    vectors = pa.table({"vector": pa.array([[1.0]], pa.list_(pa.float32(), 1))})
    answers = write_set(tmp_path / "vectors", "vectors", {"s.arrow": vectors}, [inputs.manifest.shards[0].sha256])
    corpus = Corpus([(inputs, answers, None)])
    words = build_tokenizer(["a", "plot"], True)
    for tokenizer, sign in ((pieces, "<mask>"), (words, "[MASK]")):
        found = corpus.read(tokenizer, 9).ids
        number = (tokenizer.tokenizer if tokenizer is pieces else tokenizer).token_to_id(sign)
        assert found.tolist().count(number) == 1 and number is not None


def test_corpus_and_vocabulary(run: MakeRow, data: Path, tmp_path: Path) -> None:
    few, all_ = run(wikipedia=100, min_count=3), run(min_count=3, tasks={TASK: None})
    joined = run(min_count=3, tasks={TASK: "original"})
    lengths = [
        sum(s.manifest.rows if n is None else n for s, _, n in first_of(r).train.sets) for r in (few, all_, joined)
    ]
    assert lengths == [100, len(TRAIN), len(TRAIN) + 2]
    assert "zebra" not in first_of(few).words() and {"zebra", "words", "alone", "."} <= set(first_of(all_).words())
    counted = sum("clever" in text for text in TRAIN[:100])
    assert ("clever" in first_of(few).words()) == (counted >= 3)
    assert len({key_of(few), key_of(all_), key_of(joined)}) == 3
    # Unlabelled texts bring their words.
    layout = Layout(shutil.copytree(data, tmp_path / "data"))
    row = encoder_row(first_of(run(tasks={TASK: None})).params, "sra", layout, "cpu")
    words, key = set(first_of(row).words()), key_of(row)
    further = unlabelled_folder(layout.split(TASK, "train"))
    write_texts(further, ["Okapis alone.", "Words alone."], words=True)
    row = encoder_row(first_of(row).params, "sra", layout, "cpu")
    assert set(first_of(row).words()) - words == {"okapis"}
    assert key_of(row) != key


def gather_vectors(folder: Path, texts: list[str], vectors: list[Any]) -> None:
    write_shard(folder / "vectors.arrow", pa.table({"text": texts, "embedding": vectors}))
    settings = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {}}
    files = Vectors(SentenceVectorFiles.model_validate(settings))
    gather([folder / "vectors.arrow"], files, folder / "given")


def test_sentences_without_a_vector_are_left_out(run: MakeRow, data: Path, tmp_path: Path) -> None:
    own = run({"epochs": 1}, centre=True, wikipedia=90, tasks={TASK: "original"})
    # What the model made is given in a file, of all but a few: of these, one is beyond the limit.
    texts, known = [*TRAIN, *HELD_BACK, "More of it."], first_of(own)
    whole = VectorPass.of(known.params, data / "raw/models/minilm").teacher().predict(texts, 32, 512)
    rows = [n for n, text in enumerate(texts) if text not in (*TRAIN[:5], TRAIN[95], HELD_BACK[7])]
    gather_vectors(tmp_path, [texts[n] for n in rows], [whole[n] for n in rows])
    layout = Layout(tmp_path / "data")
    for name in ("raw/vectors", "raw/models", "wikipedia", "tasks", "transfer"):
        (layout.data / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.data / name).symlink_to(data / name)
    for name in ("wikipedia/train", "wikipedia/validation", f"tasks/{TASK}/original"):
        inputs = ShardSet.open(layout.data / name.replace("tasks/", "transfer/"))
        found = VectorLookup.of(tmp_path / "given")
        run_pass(found, inputs, layout.vectors / name, LocalEngine(1))
    told = encoder_row(known.params, "sra", layout, "cpu")
    left = sum(text in TRAIN[:5] for text in TRAIN[:90])
    training = first_of(told)
    # Of the task's two sentences one has a vector.
    assert training.rows == len(training.train.read(_tokenizer(training), 16)) == 90 - left + 1
    assert not np.isnan(training.train.vectors()[np.arange(training.rows)]).any()
    record = train_one(told, tmp_path / "sra", ignore)
    held_back = sum(text == HELD_BACK[7] for text in HELD_BACK)
    assert (record.sentences, record.unanswered) == (90 - left + 1, left + 1)
    assert record.held_back_unanswered == held_back
    assert record.held_back_sentences == len(HELD_BACK) - held_back
    assert 0.0 < record.loss < 1.0 and np.isfinite(record.constant_loss)
    targets = read_json(tmp_path / "sra/targets.json")
    assert (targets["model"], targets["pooling"], targets["max_length"]) == (found.digest, None, None)


def _tokenizer(training: EncoderTraining) -> Tokenizer:
    source = vector_source(training.params.vocabulary, training.layout)
    return build_vocabulary(training.words(), training.params.vocabulary, source)[0]


def test_an_encoder_without_any_vector_is_refused(run: MakeRow, data: Path, tmp_path: Path) -> None:
    own = run()
    gather_vectors(tmp_path, [f"another {n}" for n in range(9)], [[1.0, 2.0]] * 9)
    found = VectorLookup.of(tmp_path / "given")
    inputs = ShardSet.open(data / "wikipedia/train")
    run_pass(found, inputs, data / "vectors/wikipedia/train", LocalEngine(1))
    with pytest.raises(PotstillError, match=r"none of the .* to train on has a vector"):
        check_vectors(first_of(own))
