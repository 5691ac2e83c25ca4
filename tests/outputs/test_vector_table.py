"""Sentence vectors out of files: every format, how they are joined, and what is refused."""

import base64
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.checks import check_words, unrelated_warning
from pipeline_lib.outputs.files.describe import coverage
from pipeline_lib.outputs.files.gathering import gather as gather_files
from pipeline_lib.outputs.files.keyed_table import KeyedTable, content_keys
from pipeline_lib.outputs.files.lookup_pass import VectorLookup
from pipeline_lib.outputs.files.requests import embedding_request, requests_of
from pipeline_lib.outputs.files.vector_files import Vectors, holds_vectors
from pipeline_lib.outputs.precompute import list_unanswered
from pipeline_lib.outputs.sentence_sets import SentenceSet, read_sides
from pipeline_lib.params import SentenceVectorFiles
from pipeline_lib.shards.columns import MASKED, list_column
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import run_pass
from pipeline_lib.shards.shard_sets import ShardSet, write_shard
from pipeline_lib.shards.vectors import StoredVectors
from tests.kit.shard_files import write_set as write_tables

TEXTS = [f"text number {n}" for n in range(40)]
VECTORS = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
pytestmark = pytest.mark.usefixtures("store_home")


def settings(**changes: Any) -> SentenceVectorFiles:
    own = {"files": ["-"], "format": None, "mask": "[MASK]", "provenance": {"terms": "t"}}
    return SentenceVectorFiles.model_validate(own | changes)


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return path


def rows_of(texts: list[str] = TEXTS, vectors: np.ndarray = VECTORS) -> list[dict[str, Any]]:
    pairs = zip(texts, vectors.tolist(), strict=True)
    return [{"text": text, "embedding": vector} for text, vector in pairs]


def gather_vectors(paths: list[Path], own: SentenceVectorFiles, folder: Path) -> KeyedTable:
    return gather_files(paths, Vectors(own), folder)


def of_texts(vectors: KeyedTable, texts: list[str]) -> np.ndarray:
    """Return the vectors of texts, NaN where there is none."""
    indices = vectors.find(content_keys([texts]))
    return np.where(indices[:, None] >= 0, vectors[np.maximum(indices, 0)], np.nan)


def gather(path: Path, **changes: Any) -> KeyedTable:
    return gather_vectors([path], settings(**changes), path.parent / f"{path.name}-taken")


def batch_line(text: str, embedding: Any) -> dict[str, Any]:
    body = {"data": [{"index": 0, "embedding": embedding}]}
    key = f"{content_keys([[text]])[0]:016x}"
    return {"custom_id": key, "response": {"status_code": 200, "body": body}, "error": None}


def refusal(path: Path, rows: list[dict[str, Any]]) -> str:
    with pytest.raises(PotstillError) as caught:
        gather(lines(path, rows))
    return str(caught.value)


def test_the_same_vectors_in_every_format(tmp_path: Path) -> None:
    order = np.random.default_rng(2).permutation(40)
    texts, vectors = [f" {TEXTS[row]}\n" for row in order], VECTORS[order]
    failed = [*texts, "one that failed"]
    lists = pa.array([*vectors.tolist(), None], pa.list_(pa.float64()))
    table = pa.table({"text": failed, "embedding": lists, "error": [None] * 40 + ["too long"]})
    said = {"provenance": json.dumps({"model": "m"})}
    pq.write_table(table.replace_schema_metadata(said), tmp_path / "a.parquet", row_group_size=7)
    fixed = pa.table({"text": texts, "embedding": list_column(vectors.astype(np.float32))})
    write_shard(tmp_path / "b.arrow", fixed)
    with (tmp_path / "c.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "embedding", "error"])
        writer.writerows([t, json.dumps(v), ""] for t, v in zip(texts, vectors.tolist(), strict=True))
        writer.writerow(["one that failed", "", "too long"])
    first = {"metadata": {"provenance": {"model": "m"}}}
    lines(tmp_path / "d.jsonl", [first, *rows_of(texts, vectors)])
    coded = [base64.b64encode(vector.tobytes()).decode() for vector in vectors]
    batch = [batch_line(text, own) for text, own in zip(texts, coded, strict=True)]
    batch[0] = batch_line(texts[0], vectors[0].tolist())
    error = {"custom_id": "f" * 16, "response": {"status_code": 429, "body": {}}, "error": None}
    lines(tmp_path / "e.jsonl", [error, *batch])
    for name, failures in (
        ("a.parquet", {"too long": 1}),
        ("b.arrow", {}),
        ("c.csv", {"too long": 1}),
        ("d.jsonl", {}),
        ("e.jsonl", {"no vector: status 429": 1}),
    ):
        assert holds_vectors(tmp_path / name, None)
        given = gather(tmp_path / name)
        assert (len(given.keys), given.width, given.errors) == (40, 6, failures), name
        np.testing.assert_allclose(of_texts(given, TEXTS), VECTORS, rtol=1e-6)
        assert np.isnan(of_texts(given, ["one that failed", "never heard of"])).all()
    assert gather(tmp_path / "a.parquet").provenance == {"model": "m", "terms": "t"}
    lines(tmp_path / "answers.jsonl", [{"text": "a", "label": "yes"}])
    assert not holds_vectors(tmp_path / "answers.jsonl", None)


def test_tables_are_read_without_their_numbers_in_python(tmp_path: Path) -> None:
    columns = {"text": [f"t {n}" for n in range(10_000)]}
    vectors = np.arange(10_000 * 2, dtype=np.float16).reshape(-1, 2) + np.float16(1)
    table = pa.table(columns | {"embedding": list_column(vectors)})
    write_shard(tmp_path / "a.arrow", table)
    found = list(Vectors(settings()).read(tmp_path / "a.arrow")[1])
    assert [len(part.keys) for part in found] == [4096, 4096, 1808]
    assert [part.numbers[0] for part in found] == [1, 4097, 8193]
    np.testing.assert_array_equal(found[2].values, vectors[8192:].astype(np.float32))


def test_a_text_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rounded = rows_of(TEXTS[:2], VECTORS[:2] + np.float32(1e-4))
    given = gather(lines(path, [*rows_of(), *rounded]))
    assert given.counts == {"rows": 42, "answered": 40, "repeated": 2, "errors": 0}
    np.testing.assert_array_equal(of_texts(given, TEXTS), VECTORS)
    error = refusal(path, [*rows_of(), {"text": TEXTS[3], "embedding": VECTORS[4].tolist()}])
    assert "a.jsonl: row 41: the same text as" in error and "a.jsonl: row 4, with anoth" in error


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": " ", "embedding": [1.0] * 6}, "row 2: `text` is missing"),
        ({"text": "a"}, "row 2: no `embedding`"),
        ({"text": "a", "embedding": [1.0, 2.0]}, "row 2: `embedding` has 2 values, but"),
        ({"text": "a", "embedding": [0.0] * 6}, "row 2: `embedding`: all values are 0"),
        ({"text": "a", "embedding": [1e300] + [1.0] * 5}, "row 2: a value is not"),
        ({"text": "a", "embedding": [None] + [1.0] * 5}, "row 2: a value is not"),
        ({"text": "a", "embedding": {"0": 1.0}}, "row 2: {'0': 1.0} is not a list of numbers"),
        ({"text": "a", "embedding": "[1.0, "}, "row 2: '[1.0, ' is not a list of numbers"),
    ],
)
def test_what_is_no_vector_names_its_row(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    assert message in refusal(tmp_path / "a.jsonl", [rows_of()[0], row])


def test_what_cannot_be_right_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert "constant" in refusal(path, rows_of(vectors=np.ones((40, 6))))
    assert "hardly unique" in refusal(path, rows_of(vectors=VECTORS[np.arange(40) % 3]))
    assert "no vectors: all 2 rows have none (refused)" in refusal(path, [{"text": "a", "error": "refused"}] * 2)
    assert list((tmp_path / "a.jsonl-taken").iterdir()) == []
    two = [lines(tmp_path / f"{n}.jsonl", rows_of(TEXTS, VECTORS[:, :n])) for n in (6, 5)]
    with pytest.raises(PotstillError, match=r"5\.jsonl: row 1: `embedding` has 5 values, but those b"):
        gather_vectors(two, settings(), tmp_path / "two")
    table = pa.table({"text": ["a", "b"], "embedding": pa.array([[1.0, 2.0], [1.0, None]])})
    pq.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(PotstillError, match=r"b\.parquet: row 2: a value is not"):
        gather(tmp_path / "b.parquet")
    pq.write_table(pa.table({"text": ["a"], "vector": [[1.0]]}), tmp_path / "c.parquet")
    with pytest.raises(PotstillError, match=r"c\.parquet: no column 'embedding'"):
        gather(tmp_path / "c.parquet")
    with pytest.raises(PotstillError, match="an answer, not a vector"):
        gather(lines(tmp_path / "v.jsonl", [{"text": "a", "outputs": [{"text": "b"}]}]))


def write_set(folder: Path, pair: bool = False) -> ShardSet:
    """Write the texts as two shards; a word of the first is masked."""
    words = [text.split() for text in TEXTS]
    rules = np.zeros((40, 3), np.int8)
    rules[0, 1] = MASKED
    columns = {"key": np.arange(40, dtype=np.uint64), "text": ["text [MASK] 0", *TEXTS[1:]]}
    columns |= {"words": [["text", "[MASK]", "0"], *words[1:]], "rules": rules.tolist()}
    table = pa.table(columns)
    table = table.set_column(3, "rules", table["rules"].cast(pa.list_(pa.int8())))
    if pair:
        table = pa.table({"key": columns["key"], "text": TEXTS, "text_2": TEXTS[::-1]})
    return write_tables(folder, "sentences", {"s0.arrow": table.slice(0, 33), "s1.arrow": table.slice(33)})


def test_rows_find_their_vectors(tmp_path: Path) -> None:
    # One sentence has no vector, and a masked word is written with the file's own sign.
    given = gather(lines(tmp_path / "a.jsonl", rows_of(["text <mask> 0", *TEXTS[1:39]], VECTORS[:39])), mask="<mask>")
    inputs = write_set(tmp_path / "in")
    own = VectorLookup.of(tmp_path / "a.jsonl-taken")
    manifest, report = run_pass(own, inputs, tmp_path / "out", LocalEngine(1))
    assert manifest.counts == {"answered": 39, "unanswered": 1} and report.computed == 2
    assert manifest.made_from["provenance"] == {"terms": "t"}
    outputs = ShardSet.open(tmp_path / "out")
    found = StoredVectors([(table, "") for table in outputs.tables()])[np.arange(40)]
    np.testing.assert_allclose(found[:39], VECTORS[:39], atol=2e-3)
    assert np.isnan(found[39]).all() and given.width == 6
    assert list_unanswered(inputs, outputs, "<mask>") == 1
    [line] = (tmp_path / "out/unanswered.jsonl").read_text().splitlines()
    assert json.loads(line)["text"] == TEXTS[39] and json.loads(line)["row"] == 6
    _, report = run_pass(own, inputs, tmp_path / "again", LocalEngine(1))
    assert (report.computed, report.reused) == (0, 2)


def test_sentences_of_pairs_count_by_themselves(tmp_path: Path) -> None:
    given = gather(lines(tmp_path / "a.jsonl", rows_of()[:36]))
    inputs = write_set(tmp_path / "in", pair=True)
    own = VectorLookup.of(tmp_path / "a.jsonl-taken")
    manifest, _ = run_pass(own, inputs, tmp_path / "out", LocalEngine(1))
    assert list(manifest.schema) == ["key", "vector", "vector_2"]
    assert manifest.counts == {"answered": 72, "unanswered": 8}
    here = SentenceSet(tmp_path / "in", tmp_path / "out")
    for limit, wanted in ((None, (72, 80)), (10, (16, 20))):
        limited = read_sides(SentenceSet(tmp_path / "in", tmp_path / "out", limit), "[MASK]")
        assert coverage(given, ([side] for side in limited)) == wanted
    outputs = ShardSet.open(tmp_path / "out")
    assert list_unanswered(inputs, outputs, "[MASK]") == 8
    sentences = [[side] for side in read_sides(here, "[MASK]")]
    rows = list(requests_of(sentences * 2, given))
    assert sorted(row["text"] for row in rows) == TEXTS[36:]
    line = embedding_request(rows[0], "m-1")
    assert line["body"] == {"model": "m-1", "input": TEXTS[39], "encoding_format": "float"}
    assert int(line["custom_id"], 16) == content_keys([[TEXTS[39]]])[0]
    assert len(list(requests_of(sentences, None))) == 40


def test_what_does_not_fit_the_number_format_is_refused(tmp_path: Path) -> None:
    gather(lines(tmp_path / "a.jsonl", rows_of(vectors=VECTORS * 1e6)))
    own = VectorLookup.of(tmp_path / "a.jsonl-taken")
    inputs = write_set(tmp_path / "in", pair=True)
    with pytest.raises(PotstillError, match=r"not a finite number.*float16"):
        run_pass(own, inputs, tmp_path / "out", LocalEngine(1))


def test_shifted_vectors_are_refused(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    nouns = [f"noun{n}" for n in range(12)]
    topics = np.repeat(generator.integers(12, size=100), 3)
    extra = generator.integers(12, size=300)
    texts = [f"{nouns[a]} {nouns[b]} {n}" for n, (a, b) in enumerate(zip(topics, extra, strict=True))]
    known = generator.normal(size=(12, 6))
    vectors = 2 * known[topics] + known[extra] + generator.normal(size=(300, 6)) / 10
    corpus = [pa.table({"text": texts[:120]}), pa.table({"text": texts[120:]})]

    def related(own: np.ndarray) -> str | None:
        given = gather(lines(tmp_path / "a.jsonl", rows_of(texts, own)))
        correlation = check_words(given, "vectors", corpus, "a.jsonl")
        return unrelated_warning("a.jsonl", "vectors", correlation)

    assert related(vectors) is None
    with pytest.raises(PotstillError, match=r"one row down .* the vectors are shifted"):
        related(np.roll(vectors, 1, axis=0))
    assert "do not predict its vectors" in related(generator.permutation(vectors))
