"""``distill index`` and ``distill search``, with an encoder made up here."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pipeline_lib.models.students.sentence_encoder import load_encoder
from pipeline_lib.models.students.vector_targets import Targets
from pipeline_lib.models.teacher import load_classifier
from pipeline_lib.retrieval import approximate
from pipeline_lib.retrieval.catalogue import UNFINISHED, Catalogue
from tests.kit.pretrained import WORDS, write_model
from tests.retrieval.made_up import TEXTS, BruteForce, write_encoder, write_student

from .running import distill, failing


@pytest.fixture
def index(world: Path) -> str:
    """Make an encoder, a file of sentences and an index of them; the folder is the current one."""
    write_encoder(Path("encoder"))
    lines = [json.dumps({"key": f"k{n}", "text": text}) for n, text in enumerate(TEXTS[:20])]
    Path("a.jsonl").write_text("\n".join(lines))
    named = ("--encoder", "encoder", "--id", "key", "--workers", "1")
    output = distill("index", "build", "index", "a.jsonl", *named)
    assert output == "index: 20 sentences; computed 1 segments, reused 0; left out: 0 empty, 0 known\n"
    return "index"


def found(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_queries_come_as_arguments_from_a_file_or_a_pipe(index: str) -> None:
    hits = found(distill("search", index, TEXTS[3], TEXTS[5], "--k", "2", "--json"))
    assert [(hit["query"], hit["rank"]) for hit in hits] == [
        (text, rank) for text in (TEXTS[3], TEXTS[5]) for rank in (1, 2)
    ]
    assert (hits[0]["id"], hits[0]["text"]) == ("k3", TEXTS[3])
    assert hits[0]["score"] == pytest.approx(1.0, abs=1e-3)
    assert list(hits[0]) == ["query", "rank", "id", "text", "score"]
    Path("queries.txt").write_text(f"{TEXTS[3]}\n\n{TEXTS[5]}\n")
    options = ("--k", "2", "--json")
    assert found(distill("search", index, "--queries", "queries.txt", *options)) == hits
    assert found(distill("search", index, *options, given=f"{TEXTS[3]}\n{TEXTS[5]}")) == hits
    table = distill("search", index, TEXTS[3], "--k", "1")
    assert TEXTS[3] in table and "1.0000" in table and "k3" in table


def test_queries_have_ids_where_the_file_has(index: str) -> None:
    rows = [{"q": TEXTS[3], "n": "a"}, {"q": " ", "n": "b"}, {"q": TEXTS[5], "n": "c"}]
    Path("queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = ("--queries", "queries.jsonl", "--text", "q", "--id", "n", "--k", "2")
    hits = found(distill("search", index, *named, "--json"))
    assert [hit["query_id"] for hit in hits] == ["a", "a", "c", "c"]
    assert (hits[2]["query"], hits[2]["id"]) == (TEXTS[5], "k5")
    assert f"c: {TEXTS[5]}" in distill("search", index, *named)


@pytest.mark.parametrize("query", ["zzz qqq", "🎉", "zzz, qqq!"])
def test_a_query_of_unknown_words_finds_nothing_and_says_so(index: str, query: str) -> None:
    assert distill("search", index, query) == (
        f"queries without a word that the encoder knows, which find nothing: 1, the first is "
        f"{query!r}. Use other words, or build the index with an encoder that knows them\n"
    )


def test_unknown_words_of_a_query_are_named(index: str) -> None:
    output = distill("search", index, f"{TEXTS[3]} zzz", "qqq", TEXTS[5], "--k", "1", "--json")
    *hits, lost, partly = output.splitlines()
    assert [json.loads(hit)["id"] for hit in hits] == ["k3", "k5"]
    assert "1, the first is 'qqq'" in lost
    assert partly == (f"queries with words that the encoder does not know: 1, the first is '{TEXTS[3]} zzz' (zzz)")


def test_an_index_counts_sentences_of_unknown_words(index: str) -> None:
    Path("c.txt").write_text(f"zzz\n🎉 qqq.\n{TEXTS[30]} zzz\n")
    output = distill("index", "build", "other", "c.txt", "--encoder", "encoder", "--workers", "1")
    assert "sentences without a word that the encoder knows: 2 of 3" in output


def test_info_and_additions(index: str) -> None:
    output = distill("index", "info", index)
    for part in ("rows         20 in 1 segments", "float16", "it is there"):
        assert part in output
    assert distill("verify", index) == f"ok    {index}\n"
    rows = [{"key": "k0", "text": TEXTS[0]}, {"key": "z", "text": "word9"}]
    Path("b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    more = ("--id", "key", "--workers", "1")
    assert "21 sentences (20 before); computed 1" in distill("index", "add", index, "b.jsonl", *more)
    assert found(distill("search", index, "word9", "--k", "1", "--json"))[0]["id"] == "z"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "encoder", "a"], "encoder: no index (there is no manifest.json)"),
        (["search", "index", "word9", "--first", "100"], "Write `--first approximate:100`"),
        (["search", "index", "word9", "--first", "approximate:50"], "has no approximate index"),
        (["search", "index", "a", "--queries", "a.jsonl"], "give one of them"),
        (["search", "index", "a", "--encoder", "student"], "not the encoder of these vectors"),
        (["search", "index", "a", "--by", "student"], "encoder: not a trained student"),
        (["index", "build", "b", "a.jsonl", "--model", "m", "--vectors", "v"], "not `--model`"),
        (["index", "build", "b", "a.jsonl", "--encoder", "encoder", "--vectors", "v"], "targets.json"),
        (["index", "build", "b", "a.jsonl"], "give either `--encoder` or `--model`"),
        (["search", "index", "--queries", "none.txt"], "none.txt: not found"),
        (["search", "index", "--queries", "a.jsonl", "--text", "q"], "no column 'q'"),
        (["index", "build", "b", "c.txt", "--encoder", "encoder"], "c.txt: not found"),
        (["index", "build", "b", "a.jsonl", "--encoder", "data"], "data: no encoder here"),
        (["index", "add", "index", "a.jsonl", "--workers", "1"], "have ids, but these have none"),
        (["search", "index", " "], "a query is empty"),
        (["search", "index", TEXTS[3], ""], "a query is empty"),
        (["search", "index", "--queries", "blank.txt"], "all queries are empty"),
    ],
)
def test_what_cannot_be_done_is_one_error(
    index: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    write_student(Path("student"), ["no", "yes"])
    Path("blank.txt").write_text("\n \n")
    assert message in failing(monkeypatch, capsys, *arguments)


def test_documents_have_their_vectors_out_of_a_file(world: Path) -> None:
    write_encoder(Path("encoder"))
    Targets("0" * 64, None, None, None).save(Path("encoder"))
    rows = [{"text": text, "n": n} for n, text in enumerate(TEXTS)]
    for row, vector in zip(rows, load_encoder(Path("encoder")).encode(TEXTS), strict=True):
        row["embedding"] = vector.tolist()
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = ("--vectors", "docs.jsonl", "--id", "n", "--workers", "1")
    output = distill("index", "build", "index", "docs.jsonl", "--encoder", "encoder", *named)
    assert output.startswith("index: 50 sentences; computed 1 segments")
    assert "documents    vectors from files" in distill("index", "info", "index")
    assert found(distill("search", "index", TEXTS[5], "--k", "1", "--json"))[0]["id"] == "5"
    assert "0 empty, 50 known" in distill("index", "add", "index", "docs.jsonl", *named)
    assert not list(Path().glob(".index*"))


def test_a_students_own_comparison_scores(world: Path) -> None:
    write_student(Path("student"), ["no", "yes"])
    Path("a.txt").write_text("\n".join(TEXTS[:20]))
    distill("index", "build", "index", "a.txt", "--encoder", "student", "--workers", "1")
    hits = found(distill("search", "index", "word1", "--by", "student", "--k", "20", "--json"))
    assert len(hits) == 20 and hits[0]["score"] > hits[-1]["score"]
    assert isinstance(hits[0]["id"], int)


def test_candidates_come_from_the_approximate_index(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(approximate.KINDS, "usearch", BruteForce)
    monkeypatch.setitem(sys.modules, "usearch", sys)
    named = ("--encoder", "encoder", "--id", "key", "--workers", "1")
    distill("index", "build", index, "a.jsonl", *named, "--approximate", "usearch")
    options = ("--k", "5", "--json")
    hits = found(distill("search", index, TEXTS[3], *options, "--first", "approximate:8"))
    assert hits == found(distill("search", index, TEXTS[3], *options))


def test_a_teacher_reranks(world: Path) -> None:
    folder = write_model(Path("teacher"), "bert")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model, _ = load_classifier(folder, ["no", "yes"])
    model.save_pretrained(folder)
    write_encoder(Path("encoder"))
    texts = [f"{first} {second}" for first in WORDS[:5] for second in WORDS[:5]]
    Path("a.txt").write_text("\n".join(texts))
    distill("index", "build", "index", "a.txt", "--encoder", "encoder", "--workers", "1")
    command = ("search", "index", "word1", "--json", "--k", "25", "--teacher", "teacher")
    hits, others = (found(distill(*command, "--rescore", "25", *label)) for label in ((), ("--label", "no")))
    scores = [hit["score"] for hit in hits]
    assert len({*scores}) > 20 and scores == sorted(scores, reverse=True)
    # The probabilities of the two classes.
    of_no = {hit["id"]: hit["score"] for hit in others}
    assert all(of_no[hit["id"]] + hit["score"] == pytest.approx(1, abs=1e-5) for hit in hits)


def test_a_killed_build_goes_on(world: Path) -> None:
    write_encoder(Path("encoder"))
    lines = "".join(f"word{n % 60} word{n // 60} word{n}\n" for n in range(6000))
    Path("a.txt").write_text(lines)
    named = ("--encoder", "encoder", "--workers", "1", "--segment-rows", "500")
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline_lib.cli", "index", "build", "index", "-", *named],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
    )
    try:
        # Its input stays open, so that it cannot end.
        process.stdin.write(lines)
        process.stdin.flush()
        notes, end = Path("index") / UNFINISHED, time.monotonic() + 60
        while not (notes.exists() and notes.read_text().count("{") >= 2):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (Path("index") / "manifest.json").exists()
    output = distill("index", "build", "index", "a.txt", *named)
    computed, reused = (int(part.split()[1]) for part in output.split("; ")[1].split(", "))
    assert 2 <= reused <= 8 and computed + reused == 12
    distill("index", "build", "undisturbed", "a.txt", *named)
    whole, again = (Catalogue.open(Path(name)) for name in ("undisturbed", "index"))
    assert len(again) == 6000 and again.faults() == []
    assert again.shards.manifest == whole.shards.manifest
