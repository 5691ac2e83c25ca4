"""Indexes: built, built again after a kill or a change; another's, a damaged and an old one refused."""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.retrieval import embedders
from pipeline_lib.retrieval.embedders import EncoderReference, IndexPass
from pipeline_lib.retrieval.index import Index, build, faults_of_index
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.engine.passes import PassStats
from tests.kit.pretrained import write_model
from tests.pipeline.workspace import flip_byte

from .made_up import ENGINE, TEXTS, made, write_encoder


def all_vectors(index: Index) -> np.ndarray:
    return np.concatenate([vectors for _, vectors in index.blocks(5)])


def all_texts(index: Index) -> list[str]:
    return [index.text(row) for row in range(len(index))]


def built(folder: str, encoder: Path, texts: list[str] = TEXTS, **options: object) -> PassStats:
    index_pass = IndexPass.of(EncoderReference.to(encoder))
    return build(Path(folder), index_pass, [Rows(texts)], **{"engine": ENGINE, "block_rows": 8} | options)[1]


# The greatest error of a value, as a share of its row's greatest value.
@pytest.mark.parametrize(("storage", "error"), [("float32", 1e-6), (None, 2**-11)])
def test_vectors_are_the_encoders_within_the_formats_error(encoder: Path, storage: str | None, error: float) -> None:
    wanted = load_encoder(encoder).encode(TEXTS)
    index = made(Path("index"), encoder, storage=storage)
    found = all_vectors(index)
    shards = index.shards.manifest.shards
    assert len(index) == len(TEXTS) and len(shards) > 3 and index.shards.verify() == index.faults() == []
    assert (np.abs(found - wanted) <= 1.001 * error * np.abs(wanted).max(1, keepdims=True)).all()
    rows = np.array([49, 0, 17, 17])
    np.testing.assert_array_equal(index.vectors[rows], found[rows])
    assert all_texts(index) == TEXTS and index.id(16) == 16
    ends = np.cumsum([0, *(shard.rows for shard in shards)])
    starts = [start for first, end in pairwise(ends) for start in range(first, end, 5)]
    assert [start for start, _ in index.blocks(5)] == starts


def test_vectors_are_mapped_and_not_read(encoder: Path) -> None:
    index = made(Path("index"), encoder, storage="float32")
    _, block = next(index.blocks())
    assert not block.flags.owndata and not block.flags.writeable
    before = pa.total_allocated_bytes()
    assert len(list(index.blocks())) == len(index.shards.manifest.shards) and index.text(40) == TEXTS[40]
    assert pa.total_allocated_bytes() == before


def test_empty_and_repeated_rows_are_left_out(encoder: Path) -> None:
    index = made(Path("a"), encoder, ["one word1", "", "word2", "one word1", "  ", "word2", "zzz"])
    assert all_texts(index) == ["one word1", "word2", "zzz"]
    assert index.shards.manifest.counts == {"empty": 2, "repeated": 2, "unknown": 1}
    named = made(Path("b"), encoder, ["word1", "word1", "word2"], ["x", "y", "z"])
    assert [named.id(row) for row in range(3)] == ["x", "y", "z"]
    with pytest.raises(PotstillError, match="no sentences to embed"):
        made(Path("d"), encoder, [""])


class KilledError(Exception):
    pass


def killed_after(count: int) -> Callable[[PassStats], None]:
    def on_block(stats: PassStats) -> None:
        if stats.computed == count:
            raise KilledError

    return on_block


def test_what_was_embedded_is_not_embedded_again(encoder: Path) -> None:
    with pytest.raises(KilledError):
        built("killed", encoder, on_block=killed_after(2))
    with pytest.raises(PotstillError, match=r"no index \(there is no manifest.json\)"):
        Index.open(Path("killed"))
    stats = built("killed", encoder)
    assert stats.reused == 2 and stats.computed > 1
    assert built("whole", encoder).computed == 0
    assert sha256_folder(Path("killed")) == sha256_folder(Path("whole"))
    # What has been damaged since, in the folder and in the store alike, is.
    shard = max(Path("whole").glob("*.arrow"), key=lambda path: path.stat().st_size)
    flip_byte(shard)
    assert Index.open(Path("whole")).shards.verify() == [f"{shard}: altered (its SHA-256 is not the manifest's)"]
    assert built("whole", encoder).computed == 1
    assert Index.open(Path("whole")).shards.verify() == []


def test_a_changed_file_embeds_its_changed_blocks_alone(encoder: Path) -> None:
    shards = len(made(Path("index"), encoder).shards.manifest.shards)
    for changed in ([*TEXTS[:20], "another word5", *TEXTS[20:]], [*TEXTS, "word9"], TEXTS[1:]):
        assert 1 <= built("index", encoder, changed).computed <= 2
        index = Index.open(Path("index"))
        assert all_texts(index) == changed and index.shards.verify() == []
        assert abs(len(list(Path("index").glob("*.arrow"))) - shards) <= 2


def test_an_index_stays_in_use_until_the_next_is_complete(encoder: Path) -> None:
    made(Path("index"), encoder, TEXTS[:20])

    def while_another_builds() -> Iterator[Rows]:
        yield Rows(TEXTS)
        assert len(Index.open(Path("index"))) == 20
        with pytest.raises(PotstillError, match=r"index: another process is .*\. Wait"):
            made(Path("index"), encoder)

    index_pass = IndexPass.of(EncoderReference.to(encoder))
    assert len(build(Path("index"), index_pass, while_another_builds(), ENGINE)[0]) == 50


def test_a_models_vectors_are_in_one_number_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = EncoderReference.to(write_model(tmp_path / "bert", "bert"), "mean", 16)
    indexes = []
    for precision in ("float32", "bfloat16"):
        monkeypatch.setattr(embedders, "resolve_precision", lambda name, _, p=precision: p if name == "auto" else name)
        indexes.append(build(Path(precision), IndexPass.of(reference), [Rows(TEXTS)], ENGINE)[0])
    exact, rough = indexes
    assert not np.array_equal(all_vectors(exact), all_vectors(rough))
    np.testing.assert_allclose(all_vectors(exact), reference.load().encode(TEXTS), atol=1e-2)
    # Queries are embedded as the sentences were, on whatever machine.
    assert Index.open(Path("float32")).encoder.precision == "float32"


def test_an_encoder_is_told_by_its_content(encoder: Path, tmp_path: Path) -> None:
    index = made(Path("index"), encoder)
    moved = write_encoder(tmp_path / "moved")
    assert index.encoder.located(moved).folder == str(moved)
    other = write_encoder(tmp_path / "other", seed=9)
    with pytest.raises(PotstillError, match="not the encoder of these vectors"):
        index.encoder.located(other)
    with pytest.raises(PotstillError, match="no longer there"):
        index.encoder.located(tmp_path)
    with pytest.raises(PotstillError, match="holds an index of another encoder"):
        made(Path("index"), other)
    assert len(made(Path("index"), moved)) == 50


def test_damaged_and_foreign_folders_are_refused(encoder: Path) -> None:
    folder = Path("index")
    index = made(folder, encoder)
    shard = index.shards.path(index.shards.manifest.shards[1])
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(PotstillError, match=rf"{shard.name}: missing, .* `distill index` again"):
        Index.open(folder)
    shard.write_bytes(content[:-100])
    with pytest.raises(PotstillError, match=rf"{shard.name}: \d+ bytes, but the manifest says"):
        Index.open(folder)
    # Building again makes what is missing.
    assert built("index", encoder).computed == 0
    manifest = folder / "manifest.json"
    raw = json.loads(manifest.read_text())
    cases = {
        "holds logits, not an index": raw | {"kind": "logits"},
        "manifest.json: altered .'encoder'.. Delete the folder": raw | {"made_from": {}},
        "format 9, this version reads 1. Delete the folder": raw | {"format": 9},
    }
    for message, text in cases.items():
        manifest.write_text(json.dumps(text))
        with pytest.raises(PotstillError, match=message):
            made(folder, encoder)
    assert "Delete the folder" in faults_of_index(folder)[0]
    Path("notes.txt").write_text("mine")
    with pytest.raises(PotstillError, match="holds other files"):
        made(Path(), encoder)
    assert shard.exists()
