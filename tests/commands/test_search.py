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

from pipeline_lib.base.layout import state_folder
from pipeline_lib.models.teacher import load_classifier
from pipeline_lib.retrieval.index import Index, build
from tests.kit.pretrained import WORDS, write_model
from tests.retrieval.made_up import TEXTS, stand_in, write_encoder, write_student

from .running import Fails, distill


@pytest.fixture
def index(world: Path) -> str:
    write_encoder(Path("encoder"))
    lines = [json.dumps({"key": f"k{n}", "text": text}) for n, text in enumerate(TEXTS[:20])]
    Path("a.jsonl").write_text("\n".join(lines))
    named = ("--encoder", "encoder", "--id", "key", "--workers", "1")
    output = distill("index", "index", "a.jsonl", *named)
    assert "index: 20 sentences; computed 1 shards, reused 0; left out: 0 empty, 0 repeated\n" in output
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


def test_unknown_words_of_a_query_are_named(index: str) -> None:
    for query in ("zzz qqq", "🎉", "zzz, qqq!"):
        assert distill("search", index, query) == (
            f"queries without a word that the encoder knows, which find nothing: 1, the first is "
            f"{query!r}. Use other words, or build the index with an encoder that knows them\n"
        )
    output = distill("search", index, f"{TEXTS[3]} zzz", "qqq", TEXTS[5], "--k", "1", "--json")
    *hits, lost, partly = output.splitlines()
    assert [json.loads(hit)["id"] for hit in hits] == ["k3", "k5"]
    assert "1, the first is 'qqq'" in lost
    assert partly == (f"queries with words that the encoder does not know: 1, the first is '{TEXTS[3]} zzz' (zzz)")
    Path("c.txt").write_text(f"zzz\n🎉 qqq.\n{TEXTS[30]} zzz\n")
    output = distill("index", "other", "c.txt", "--encoder", "encoder", "--workers", "1")
    assert "sentences without a word that the encoder knows: 2 of 3" in output


def test_rows_are_added_to_the_file(index: str) -> None:
    assert distill("verify", index) == f"ok    {index}\n"
    assert "20       1" in distill("shards", "ls", index)
    with open("a.jsonl", "a") as file:
        file.write("\n" + json.dumps({"key": "z", "text": "word9"}))
    named = ("--encoder", "encoder", "--id", "key", "--workers", "1")
    assert "21 sentences; computed 1 shards" in distill("index", index, "a.jsonl", *named)
    assert found(distill("search", index, "word9", "--k", "1", "--json"))[0]["id"] == "z"


REFUSED = [
    (["search", "encoder", "a"], "encoder: no index (there is no manifest.json)"),
    (["search", "index", "word9", "--first", "100"], "Write `--first approximate:100`"),
    (["search", "index", "word9", "--first", "approximate:50"], "has no approximate index"),
    (["search", "index", "a", "--queries", "a.jsonl"], "give one of them"),
    (["search", "index", "a", "--encoder", "student"], "not the encoder of these vectors"),
    (["search", "index", "a", "--by", "student"], "encoder: not a trained student"),
    (["index", "b", "a.jsonl"], "give either `--encoder` or `--model`"),
    (["search", "index", "--queries", "none.txt"], "none.txt: not found"),
    (["search", "index", "--queries", "a.jsonl", "--text", "q"], "no column 'q'"),
    (["index", "b", "c.txt", "--encoder", "encoder"], "c.txt: not found"),
    (["index", "b", "a.jsonl", "--encoder", "data"], "data: no encoder here"),
    (["search", "index", " "], "a query is empty"),
    (["search", "index", TEXTS[3], ""], "a query is empty"),
    (["search", "index", "--queries", "blank.txt"], "all queries are empty"),
]


def test_what_cannot_be_done_is_one_error(index: str, fails: Fails) -> None:
    write_student(Path("student"), ["no", "yes"])
    Path("blank.txt").write_text("\n \n")
    for arguments, message in REFUSED:
        assert message in fails(*arguments), arguments


def test_a_students_own_comparison_scores(world: Path) -> None:
    write_student(Path("student"), ["no", "yes"])
    Path("a.txt").write_text("\n".join(TEXTS[:20]))
    distill("index", "index", "a.txt", "--encoder", "student", "--workers", "1")
    hits = found(distill("search", "index", "word1", "--by", "student", "--k", "20", "--json"))
    assert len(hits) == 20 and hits[0]["score"] > hits[-1]["score"]
    assert isinstance(hits[0]["id"], int)


def test_candidates_come_from_the_approximate_index(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    named = ("--encoder", "encoder", "--id", "key", "--workers", "1")
    distill("index", index, "a.jsonl", *named, "--approximate", "usearch")
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
    distill("index", "index", "a.txt", "--encoder", "encoder", "--workers", "1")
    command = ("search", "index", "word1", "--json", "--k", "25", "--teacher", "teacher")
    hits, others = (found(distill(*command, "--rescore", "25", *label)) for label in ((), ("--label", "no")))
    scores = [hit["score"] for hit in hits]
    assert len({*scores}) > 20 and scores == sorted(scores, reverse=True)
    # The probabilities of the two classes.
    of_no = {hit["id"]: hit["score"] for hit in others}
    assert all(of_no[hit["id"]] + hit["score"] == pytest.approx(1, abs=1e-5) for hit in hits)


SMALL_BLOCKS = """
from pipeline_lib.retrieval import index
index.build.__defaults__ = (*index.build.__defaults__[:-1], 256)
"""


@pytest.mark.slow
def test_a_killed_build_goes_on(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_encoder(Path("encoder"))
    rows = 12_000
    lines = "".join(f"word{n % 60} word{n // 60} word{n}\n" for n in range(rows))
    Path("a.txt").write_text(lines)
    named = ("--encoder", "encoder", "--workers", "1")
    code = f"{SMALL_BLOCKS}\nfrom pipeline_lib.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "index", "index", "-", *named],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
    )
    records = state_folder() / "store/index"
    try:
        # Its input stays open, so that it cannot end.
        process.stdin.write(lines)
        process.stdin.flush()
        end = time.monotonic() + 60
        while len(list(records.glob("??/*.json"))) < 2:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (Path("index") / "manifest.json").exists()
    monkeypatch.setattr(build, "__defaults__", (*build.__defaults__[:-1], 256))
    output = distill("index", "index", "a.txt", *named)
    computed, reused = (int(part.split()[1]) for part in output.split("; ")[1].split(", "))
    assert reused >= 2 and computed >= 1
    whole = Index.open(Path("index"))
    assert len(whole) == rows and whole.shards.verify() == whole.faults() == []
