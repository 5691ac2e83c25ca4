"""Catalogues: built, added to, resumed after a kill; another's, a stale and a torn one refused."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.retrieval import embedders
from pipeline_lib.retrieval.building import Form, add, build
from pipeline_lib.retrieval.catalogue import UNFINISHED, Catalogue
from pipeline_lib.retrieval.embedders import EncoderReference
from pipeline_lib.retrieval.segments import BuildReport
from pipeline_lib.retrieval.sentence_rows import Rows
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.vectors import unit
from tests.kit.pretrained import write_model
from tests.pipeline.workspace import flip_byte

from .made_up import ENGINE, TEXTS, WIDTH, made, write_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoders") / "one")


@pytest.fixture(scope="module")
def wanted(encoder: Path) -> np.ndarray:
    return load_encoder(encoder).encode(TEXTS)


def all_vectors(catalogue: Catalogue) -> np.ndarray:
    return np.concatenate([vectors for _, vectors in catalogue.blocks(5)])


def all_texts(catalogue: Catalogue) -> list[str]:
    return [text for texts, _ in catalogue.rows() for text in texts]


# The greatest error of a value, as a share of its row's greatest value: half a step.
@pytest.mark.parametrize(("storage", "error"), [("float32", 1e-6), ("float16", 2**-11), ("int8", 0.5 / 127)])
def test_vectors_are_the_encoders_within_the_formats_error(
    tmp_path: Path, encoder: Path, wanted: np.ndarray, storage: str, error: float
) -> None:
    catalogue = made(tmp_path / "index", encoder, storage=storage)
    found = all_vectors(catalogue)
    assert len(catalogue) == len(TEXTS) and len(catalogue.shards.manifest.shards) == 4
    assert (np.abs(found - wanted) <= 1.001 * error * np.abs(wanted).max(1, keepdims=True)).all()
    rows = np.array([49, 0, 17, 17])
    np.testing.assert_array_equal(catalogue.vectors[rows], found[rows])
    assert [catalogue.text(row) for row in (0, 16, 49)] == [TEXTS[row] for row in (0, 16, 49)]
    assert catalogue.id(16) == 16 and catalogue.faults() == []
    starts = [start for start, _ in catalogue.blocks(5)]
    assert starts == [*range(0, 16, 5), *range(16, 32, 5), *range(32, 48, 5), 48]


def test_vectors_are_mapped_and_not_read(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder, storage="float32")
    _, block = next(catalogue.blocks())
    assert not block.flags.owndata and not block.flags.writeable
    before = pa.total_allocated_bytes()
    assert len(list(catalogue.blocks())) == 4 and catalogue.text(40) == TEXTS[40]
    assert pa.total_allocated_bytes() == before


def test_vectors_are_cut_centred_and_normalised_in_this_order(
    tmp_path: Path, encoder: Path, wanted: np.ndarray
) -> None:
    mean = wanted.mean(0)
    own = {"normalised": True, "dimensions": 6, "mean": mean}
    catalogue = made(tmp_path / "index", encoder, storage="float32", **own)
    np.testing.assert_allclose(all_vectors(catalogue), unit((wanted - mean)[:, :6]), atol=1e-5)
    np.testing.assert_array_equal(Catalogue.open(tmp_path / "index").mean, mean)
    contents = catalogue.contents
    assert (contents.width, contents.encoder_width, contents.normalised) == (6, WIDTH, True)
    with pytest.raises(PotstillError, match=f"dimensions: 17.*{WIDTH} values"):
        made(tmp_path / "other", encoder, dimensions=17)


def test_empty_and_repeated_rows_are_left_out(tmp_path: Path, encoder: Path) -> None:
    texts = ["one word1", "", "word2", "one word1", "  ", "word2"]
    own = EncoderReference.to(encoder)
    catalogue, report = build(tmp_path / "a", own, [Rows(texts)], Form(), ENGINE)
    assert all_texts(catalogue) == ["one word1", "word2"]
    assert report.left_out == {"empty": 2, "known": 2} == catalogue.shards.manifest.counts
    named = made(tmp_path / "b", encoder, ["word1", "word1", "word2"], ["x", "y", "z"])
    assert [named.id(row) for row in range(3)] == ["x", "y", "z"]
    with pytest.raises(PotstillError, match="id 'x': has another text already"):
        made(tmp_path / "c", encoder, ["word1", "word2"], ["x", "x"])
    with pytest.raises(PotstillError, match="no sentences to embed"):
        made(tmp_path / "d", encoder, [""])


class KilledError(Exception):
    pass


def killed_after(count: int) -> Callable[[BuildReport], None]:
    def on_segment(report: BuildReport) -> None:
        if report.computed == count:
            raise KilledError

    return on_segment


def test_killed_it_resumes_behind_the_last_whole_segment(tmp_path: Path, encoder: Path) -> None:
    own = EncoderReference.to(encoder), [Rows(TEXTS)], Form("int8"), ENGINE
    with pytest.raises(KilledError):
        build(tmp_path / "killed", *own, segment_rows=16, on_segment=killed_after(2))
    with pytest.raises(PotstillError, match="its build did not finish"):
        Catalogue.open(tmp_path / "killed")
    # A segment that was torn meanwhile is embedded again.
    notes = tmp_path / "killed" / UNFINISHED
    flip_byte(tmp_path / "killed" / json.loads(notes.read_text().split("\n")[1])["name"])
    notes.write_text(notes.read_text() + '{"name": "abc.arr')
    _, report = build(tmp_path / "killed", *own, segment_rows=16)
    assert (report.computed, report.reused) == (3, 1)
    build(tmp_path / "whole", *own, segment_rows=16)
    assert sha256_folder(tmp_path / "killed") == sha256_folder(tmp_path / "whole")


def test_a_full_disk_is_one_error_and_loses_nothing(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = EncoderReference.to(encoder), [Rows(TEXTS)], Form(), ENGINE
    written: list[int] = []

    def full(handle: int) -> None:
        written.append(handle)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PotstillError, match=r"could not be written \(No space left on device"):
        build(tmp_path / "index", *own, segment_rows=16)
    assert len(list((tmp_path / "index").iterdir())) == 2 + len([UNFINISHED])
    assert build(tmp_path / "index", *own, segment_rows=16)[1].reused == 2


def test_processes_make_the_same_bytes(tmp_path: Path, encoder: Path) -> None:
    own = EncoderReference.to(encoder), [Rows(TEXTS)], Form("float16")
    for workers in (1, 2):
        build(tmp_path / str(workers), *own, LocalEngine(workers), segment_rows=16)
    assert sha256_folder(tmp_path / "1") == sha256_folder(tmp_path / "2")


def test_a_changed_file_embeds_its_changed_segments_alone(tmp_path: Path, encoder: Path) -> None:
    own = EncoderReference.to(encoder)
    made(tmp_path / "index", encoder)
    changed = [*TEXTS[:20], "another word5", *TEXTS[21:]]
    catalogue, report = build(tmp_path / "index", own, [Rows(changed)], Form(), ENGINE, segment_rows=16)
    assert (report.computed, report.reused) == (1, 3)
    assert all_texts(catalogue) == changed
    assert len(list((tmp_path / "index").glob("*.arrow"))) == 4
    assert not (tmp_path / "index" / UNFINISHED).exists()


def test_adding_embeds_the_new_rows_alone(tmp_path: Path, encoder: Path, wanted: np.ndarray) -> None:
    catalogue = made(tmp_path / "index", encoder, TEXTS[:20], storage="float32")
    added, report = add(catalogue, [Rows(TEXTS[10:])], ENGINE, segment_rows=16)
    assert report.rows_computed == 30 and report.left_out["known"] == 10
    assert all_texts(added) == TEXTS
    np.testing.assert_allclose(all_vectors(added), wanted, atol=1e-6)
    same, report = add(added, [Rows(TEXTS)], ENGINE)
    assert len(same) == 50 and report.computed == 0
    with pytest.raises(PotstillError, match=r"have no ids\. Omit `--id`"):
        add(added, [Rows(["word1"], ["a"])], ENGINE)


def test_adding_goes_by_the_ids_where_there_are_any(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder, ["word1", "word2"], ["a", "b"])
    added, _ = add(catalogue, [Rows(["word2", "word2"], ["b", "c"])], ENGINE)
    assert [added.id(row) for row in range(3)] == ["a", "b", "c"]
    with pytest.raises(PotstillError, match="id 'a': has another text already"):
        add(added, [Rows(["word3"], ["a"])], ENGINE)
    assert len(Catalogue.open(tmp_path / "index")) == 3


def test_a_killed_addition_leaves_the_index_and_resumes(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder, TEXTS[:5])
    with pytest.raises(KilledError):
        add(catalogue, [Rows(TEXTS)], ENGINE, segment_rows=16, on_segment=killed_after(1))
    again = Catalogue.open(tmp_path / "index")
    assert len(again) == 5
    added, report = add(again, [Rows(TEXTS)], ENGINE, segment_rows=16)
    assert len(added) == 50 and (report.computed, report.reused) == (2, 1)


def test_two_writers_do_not_lose_each_others_rows(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder, TEXTS[:20])

    def while_another_adds() -> Iterator[Rows]:
        yield Rows(TEXTS[20:30])
        with pytest.raises(PotstillError, match=r"index: another process is .*\. Wait"):
            add(catalogue, [Rows(TEXTS[40:])], ENGINE)
        with pytest.raises(PotstillError, match="another process is writing to it"):
            made(tmp_path / "index", encoder)

    add(catalogue, while_another_adds(), ENGINE)
    # One that was opened before the other's addition adds to what is there by now.
    added, report = add(catalogue, [Rows(TEXTS[40:])], ENGINE)
    assert all_texts(added) == [*TEXTS[:30], *TEXTS[40:]]
    assert report.before == 30
    # Building again from fewer sentences is allowed, and says how many there were.
    own = EncoderReference.to(encoder), [Rows(TEXTS[:20])], Form(), ENGINE
    assert build(tmp_path / "index", *own)[1].before == 40


def test_a_models_vectors_are_all_in_one_number_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = write_model(tmp_path / "bert", "bert")
    own = EncoderReference.to(model, "mean", 16)

    def on_a_machine_of(precision: str, folder: str) -> Catalogue:
        resolved = {"auto": precision}
        monkeypatch.setattr(embedders, "resolve_precision", lambda name, _: resolved.get(name, name))
        return build(tmp_path / folder, own, [Rows(TEXTS[:20])], Form(), ENGINE)[0]

    exact, rough = (on_a_machine_of(p, p) for p in ("float32", "bfloat16"))
    assert not np.array_equal(all_vectors(exact), all_vectors(rough))
    keys = [found.shards.manifest.shards[0].source for found in (exact, rough)]
    assert keys[0] != keys[1]
    # Elsewhere, both building again and adding keep the format that the index has.
    again = on_a_machine_of("bfloat16", "float32")
    assert np.array_equal(all_vectors(again), all_vectors(exact))
    added, _ = add(again, [Rows(TEXTS[20:])], ENGINE)
    assert added.contents.encoder.precision == "float32"
    wanted = exact.contents.encoder.load().encode(TEXTS[20:])
    np.testing.assert_allclose(all_vectors(added)[20:], wanted, rtol=1e-3, atol=1e-4)


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder")
    catalogue = made(tmp_path / "index", encoder)
    other = write_encoder(tmp_path / "other", seed=5)
    with pytest.raises(PotstillError, match="other: not the encoder of these vectors"):
        add(catalogue, [Rows(["word1"])], ENGINE, encoder=other)
    with pytest.raises(PotstillError, match="holds an index of another encoder"):
        made(tmp_path / "index", other)
    with pytest.raises(PotstillError, match=r"another storage \(float32, not int8\)"):
        made(tmp_path / "index", encoder, storage="int8")
    # The same encoder elsewhere is the same; trained again in its place, it is another.
    encoder.rename(tmp_path / "moved")
    with pytest.raises(PotstillError, match=r"no longer there\. Give .* `--encoder`"):
        add(catalogue, [Rows(["word1"])], ENGINE)
    assert len(add(catalogue, [Rows(["word1"])], ENGINE, encoder=tmp_path / "moved")[0]) == 51
    write_encoder(encoder, seed=5)
    with pytest.raises(PotstillError, match="or build the index again"):
        add(catalogue, [Rows(["word1"])], ENGINE, encoder=encoder)


def test_torn_and_foreign_folders_are_refused(tmp_path: Path, encoder: Path) -> None:
    catalogue = made(tmp_path / "index", encoder)
    segment = catalogue.shards.path(catalogue.shards.manifest.shards[1])
    content = segment.read_bytes()
    flip_byte(segment)
    assert [fault.split(": ")[1][:7] for fault in catalogue.faults()] == ["altered"]
    segment.write_bytes(content[:-100])
    with pytest.raises(PotstillError, match=rf"{segment.name}: \d+ bytes, but the manifest says"):
        Catalogue.open(tmp_path / "index")
    segment.unlink()
    with pytest.raises(PotstillError, match=f"{segment.name}: missing"):
        Catalogue.open(tmp_path / "index")
    # Building again makes what is missing.
    own = EncoderReference.to(encoder), [Rows(TEXTS)], Form("float32"), ENGINE
    assert build(tmp_path / "index", *own, segment_rows=16)[1].reused == 3
    manifest = tmp_path / "index/manifest.json"
    raw = json.loads(manifest.read_text())
    raw["made_from"]["catalogue"]["version"] = 0
    manifest.write_text(json.dumps(raw))
    with pytest.raises(PotstillError, match="an index of version 0, but this program reads 1"):
        Catalogue.open(tmp_path / "index")
    manifest.write_text(json.dumps(raw | {"kind": "logits"}))
    with pytest.raises(PotstillError, match="holds logits, not an index"):
        made(tmp_path / "index", encoder)
    with pytest.raises(PotstillError, match=r"no index \(there is no manifest.json\)"):
        Catalogue.open(tmp_path)
    with pytest.raises(PotstillError, match="holds other files"):
        made(tmp_path, encoder)
    assert segment.exists()
