"""What an encoder is trained on: Wikipedia, tasks and masked words."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.layout import Layout
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.shards.columns import MASKED
from pipeline_lib.shards.training_texts import unlabelled_folder
from pipeline_lib.text.pieces import load_pieces
from pipeline_lib.training.distillation.corpus import Corpus
from pipeline_lib.training.distillation.general import encoder_row
from tests.kit.shard_files import write_set
from tests.pipeline.corpus import write_encoder

from .rows import TASK, TRAIN, MakeRow, first_of, key_of, write_texts

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
