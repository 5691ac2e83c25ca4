"""Synthetic sentences per second on one core, compared with nlpaug, textattack and plain Python.

Claim: the three rules of Tang et al. 2019 (section 3.3), applied to blocks as flat arrays, generate
finished sentences a given number of times as fast as word-by-word augmenters.

    pip install nlpaug textattack        # besides the project itself; both are optional
    python benchmarks/augmentation.py
    python benchmarks/augmentation.py --sentences FILE     # any text file, one sentence per line

Writes benchmarks/results/augmentation.{json,md}.  Every contestant runs on one thread and turns the same sentences
into strings; only finished strings are counted, inside the clock.  Splitting and tagging are done before the clock
starts for ours and for plain Python, which both need tags; the pipeline does that once per data set and keeps the
result.  Its cost is measured too and has its own row in the table.  A peer that cannot be imported is reported as
not run, with the reason. textattack has many dependencies: `pip install --no-deps textattack` and the modules that
its import then asks for are enough; flair and NLTK's stop words, unused here, get empty stubs if missing.
"""

import cProfile
import os
import pstats
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

# One thread: set before any library reads it.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
os.environ["HF_HUB_OFFLINE"] = "1"

import pyarrow as pa
import typer
from augmentation_peers import Data, Make, by_hand, load_peers
from harness import (
    RESULTS,
    Out,
    Repeats,
    facts,
    lines_of,
    ratio,
    say,
    seconds,
    spread,
    summary,
    table,
    take_turns,
    write_results,
)

from pipeline_lib.base.processor import usable_cores
from pipeline_lib.base.words import split_words
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, count_words, read_lexicon
from pipeline_lib.corpora.augmentation.rules import SEED, augment_block
from pipeline_lib.corpora.tasks.labelled import Example
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.corpora.tasks.tagging import load_tagger
from pipeline_lib.params import Params, load_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import ShardSet, write_shard

OURS = "ours: augment_block"
OURS_SMALL = f"{OURS}, the peers' sentences only"
HAND = "plain Python, word by word"
PACKAGES = ("numpy", "pyarrow", "spacy", "nlpaug", "textattack")
STEPS = {
    "reading a block's words": ("rules.py", "__init__"),
    "drawing the three rules": ("rules.py", "_draw"),
    "content keys of the sentences": ("hashing.py", "sequence_keys"),
    "finding duplicates": ("rules.py", "_first_occurrences"),
    "writing text and words": ("rules.py", "_render"),
    "counting": ("rules.py", "_count"),
}
"""Steps of the profile: the file and the function that does each."""

_TEXTATTACK = (
    "10 % of the words, at least one, fast_augment; builds every candidate of a step and picks one; unique per sentence"
)
NOTES = {
    OURS: "all three rules; unique sentences only; also yields words, rules and content keys",
    HAND: "the same three rules and distributions, one word at a time; a blank between all words "
    "instead of the text's own; unique sentences only",
    "nlpaug: mask": "one rule of three: RandomWordAug puts [MASK] for 10 % of the words, rounded "
    "up, so at least one in every sentence; splits the text itself; keeps duplicates",
    "nlpaug: mask, swap by tag, delete": "Sequential of [MASK] (10 %) and ReservedAug with one "
    "list of words per tag (10 %, uniform instead of by frequency, one tag per word), then in 25 % "
    "deletion of 10 % instead of an n-gram; splits the text itself; keeps duplicates",
    "textattack: delete, swap": "CompositeTransformation of WordDeletion and WordInnerSwapRandom, "
    f"which need no download but are none of the three rules; {_TEXTATTACK}",
    "textattack: mask, swap by tag, delete": "CompositeTransformation of two WordSwap subclasses "
    "written for this benchmark ([MASK]; one word drawn from the tag's distribution) and "
    f"WordDeletion, no n-gram; {_TEXTATTACK}",
}
"""What a contestant does differently from ours."""


def main(
    task: Annotated[str, typer.Option(help="Prepared task to take the sentences from.")] = "movies",
    sentences: Annotated[Path | None, typer.Option(help="Or a text file.")] = None,
    recipe: Annotated[str, typer.Option(help="A key of `transfer` in params.yaml.")] = "full",
    n_iter: Annotated[int, typer.Option(help="Synthetic sentences per sentence.")] = 20,
    limit: Annotated[int | None, typer.Option(help="The most sentences to use.")] = None,
    peer_sentences: Annotated[int, typer.Option(help="Sentences for the slow peers.")] = 500,
    tag_sentences: Annotated[int, typer.Option(help="Sentences to time tagging on.")] = 1000,
    repeats: Repeats = 5,
    seed: Annotated[int, typer.Option(help="Seed of the peers and of plain Python.")] = 1,
    params_file: Path = Path("params.yaml"),
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    pa.set_cpu_count(1)
    params = load_params(params_file)
    fact = facts(PACKAGES, cores=usable_cores(), threads=1)
    with tempfile.TemporaryDirectory() as scratch:
        data = _load(params, task, sentences, recipe, n_iter, limit, Path(scratch))
    peers, not_run = load_peers(data)
    contestants = {OURS: _ours, HAND: by_hand, **peers}
    small = data.sample(peer_sentences)
    shares: dict[str, float] = {}
    random.seed(seed)
    turns = {
        name: _timed(name, make, data if make in (_ours, by_hand) else small, shares)
        for name, make in contestants.items()
    }
    turns[OURS_SMALL] = _timed(OURS_SMALL, _ours, small, shares)
    for make in contestants.values():
        make(data.sample(20))
    rates = take_turns(turns, repeats)
    preparing = _seconds_per_sentence(params, data.texts[:tag_sentences])
    results = {
        "facts": fact | {"seeds": {"ours": SEED, "others": seed}, "repeats": repeats},
        "data": data.description,
        "sentences": {"ours and plain Python": len(data.texts), "peers": len(small.texts)},
        "n_iter": n_iter,
        "recipe": data.recipe.model_dump(),
        "generated_per_second": {name: summary(values) for name, values in rates.items()},
        "ours_divided_by": {name: ratio(rates[OURS], values) for name, values in rates.items() if name != OURS},
        "kept_of_generated": {name: round(value, 4) for name, value in shares.items()},
        "preparing_seconds_per_sentence": preparing,
        "profile_of_ours": _profile(data),
        "not_run": not_run,
        "differences": {name: NOTES[name] for name in contestants},
    }
    results["ours_with_preparation"] = _with_preparation(results, n_iter)
    write_results("augmentation", results, _markdown(results), out)


def _load(
    params: Params, task: str, sentences: Path | None, recipe: str, n_iter: int, limit: int | None, scratch: Path
) -> Data:
    """Open the prepared task, or prepare the lines of a text file."""
    if sentences is None:
        blocks = list(ShardSet.open(Path("data/tasks") / task / "train").tables())
        lexicon = read_lexicon(Path("data/lexicons") / task / "lexicon.arrow")
        name = f"training sentences of the task {task}, prepared"
    else:
        blocks, lexicon = _prepare(params, task, sentences, limit, scratch)
        name = f"lines of {sentences.name}, prepared in {len(blocks)} blocks"
    if limit is not None:
        blocks = [block.slice(0, -(-limit // len(blocks))) for block in blocks]
    rows = sum(block.num_rows for block in blocks)
    words = sum(len(block["words"].combine_chunks().flatten()) for block in blocks)
    description = f"{rows:,} {name}, {words / rows:.1f} words on average"
    return Data(blocks, lexicon, params.recipe(recipe), n_iter, description)


def _prepare(
    params: Params, task: str, sentences: Path, limit: int | None, scratch: Path
) -> tuple[list[pa.Table], Lexicon]:
    lines = [line.strip() for line in lines_of(sentences)]
    lines = [line for line in lines if split_words(line)[0]][:limit]
    say(f"splitting and tagging {len(lines):,} sentences")
    os.environ["POTSTILL_HOME"] = str(scratch / "home")
    examples = {"train": [Example((line,), 0) for line in lines]}
    settings = params.task(task).model_copy(update={"split": None, "train_fraction": 1.0})
    prepare_task(examples, {}, settings, params.tagger, scratch / "task", LocalEngine(1))
    # Read into memory, since the folder is deleted.
    tables = ShardSet.open(scratch / "task" / "train").tables()
    blocks = [pa.table(rows.to_pydict(), rows.schema) for rows in tables if rows.num_rows]
    rows = pa.concat_tables(blocks)
    write_shard(scratch / "lexicon.arrow", count_words(rows["words"], rows["tags"]))
    return blocks, read_lexicon(scratch / "lexicon.arrow")


def _timed(name: str, make: Make, data: Data, shares: dict[str, float]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        generated, unique = make(data)
        rate = generated / (time.perf_counter() - start)
        shares[name] = unique / generated
        return rate

    return measure


# Ours, and a plain implementation of the paper's rules.


def _ours(data: Data) -> tuple[int, int]:
    generated = unique = 0
    for block in data.blocks:
        for iteration, rows, counts in augment_block(block, data.lexicon, data.recipe, data.n_iter, None):
            if iteration:
                generated += counts.rows + counts.duplicates
                unique += len(rows["text"].to_pylist())
    return generated, unique


# Further figures besides the rates.


def _seconds_per_sentence(params: Params, texts: list[str]) -> dict[str, float]:
    """Time what the pipeline does once per data set, without loading the tagger."""
    splitting = seconds(lambda: [split_words(text) for text in texts])
    words, spaces = zip(*map(split_words, texts), strict=True)
    tag = load_tagger(params.tagger)
    list(tag(words[:20], spaces[:20]))
    tagging = seconds(lambda: list(tag(words, spaces)))
    return {"splitting": splitting / len(texts), "tagging": tagging / len(texts)}


def _with_preparation(results: dict[str, Any], n_iter: int) -> dict[str, float]:
    """Return our sentences per second if splitting and tagging are part of the same run."""
    once = sum(results["preparing_seconds_per_sentence"].values())
    rate = results["generated_per_second"][OURS]["median"]
    return {"generated_per_second": round(1 / (1 / rate + once / n_iter), 1)}


def _profile(data: Data) -> dict[str, float]:
    """Return each step's share of the time of :func:`_ours`, from cProfile."""
    profile = cProfile.Profile()
    profile.runcall(_ours, data)
    stats: Any = pstats.Stats(profile)
    entries = {(Path(key[0]).name, key[2]): value[3] for key, value in stats.stats.items()}
    total = entries["augmentation.py", "_ours"]
    shares = {step: round(entries[key] / total, 3) for step, key in STEPS.items()}
    shares["the rest: Python strings, iterating"] = round(1 - sum(shares.values()), 3)
    return shares


def _markdown(results: dict[str, Any]) -> list[str]:
    rows = []
    for name, rate in results["generated_per_second"].items():
        against = results["ours_divided_by"].get(name)
        share = results["kept_of_generated"][name]
        rows.append(
            [name, spread(rate), f"{rate['median'] * share:,.0f}", spread(against, "{:.1f}") if against else "1"]
        )
    prepared = results["ours_with_preparation"]["generated_per_second"]
    rows.append([f"{OURS}, splitting and tagging included", f"{prepared:,.0f}", "", ""])
    rows += [[name, "not run", "", reason] for name, reason in results["not_run"].items()]
    once = results["preparing_seconds_per_sentence"]
    steps = ", ".join(f"{step} {share:.0%}" for step, share in results["profile_of_ours"].items())
    return [
        "# Synthetic sentences per second and core",
        "",
        f"{results['data']}; {results['n_iter']} synthetic sentences each; the peers on "
        f"{results['sentences']['peers']:,} of them. One thread. Median of "
        f"{results['facts']['repeats']} turns (lowest–highest); ratios turn by turn.",
        "",
        *table(["contestant", "generated/s", "kept/s", "ours ÷ this"], rows),
        "",
        "Kept: not equal to an input sentence or an earlier result. What each one does:",
        "",
        *(f"- {name}: {note}." for name, note in results["differences"].items()),
        "",
        f"Once per data set, not in the first row: splitting {once['splitting'] * 1e6:,.0f} µs and "
        f"tagging {once['tagging'] * 1e6:,.0f} µs a sentence (ours and plain Python need tags, the "
        f"peers' rows do not pay for theirs either). Ours by step: {steps}.",
    ]


if __name__ == "__main__":
    typer.run(main)
