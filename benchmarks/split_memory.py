"""How much memory splitting Wikipedia takes as the input grows.

Claim: the stage `split_wikipedia` streams, so its peak memory hardly grows with the dump: only by
the 8 to 20 bytes that identify a sentence, and by the first 50,000 words, which spaCy keeps.

    python benchmarks/split_memory.py                      # the dump that params.yaml names
    python benchmarks/split_memory.py --dump FILE          # another one, packed or not

The dump is repeated 1, 4 and 16 times in one bzip2 file; every copy has ids and titles of its own,
and nearly every sentence a word of its own, so that few are duplicates.  Each size is split
completely, in a process of its own, with an empty store and no limit on sentences; peaks are the
kernel's (ru_maxrss: the stage's process, and its largest worker).

Writes benchmarks/results/split_memory.{json,md}.
"""

import bz2
import itertools
import os
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from xml.sax.saxutils import escape

os.environ["OMP_NUM_THREADS"] = "1"

import typer
from harness import RESULTS, Out, alone, facts, peak_mib, say, table, write_results

from pipeline_lib.base.processor import usable_cores
from pipeline_lib.corpora.wikipedia.articles import Article
from pipeline_lib.corpora.wikipedia.chunks import read_chunks
from pipeline_lib.params import CorpusFiles, Wikipedia, load_params

SIZES = (1, 4, 16)
PACKAGES = ("spacy", "mwparserfromhell", "pyarrow", "numpy")
_END = re.compile(r"(?<=[a-z)\]])\.(?=[\s<{\"']|\Z)")


def main(
    dump: Annotated[Path | None, typer.Option(help="A MediaWiki dump.")] = None,
    workers: int = 1,
    params_file: Path = Path("params.yaml"),
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    params = _all_of_it(load_params(params_file).wikipedia)
    fact = facts(PACKAGES, cores=usable_cores(), threads=f"1 in each of {workers} workers")
    runs = {}
    with tempfile.TemporaryDirectory() as scratch:
        for size in SIZES:
            folder = Path(scratch) / str(size)
            folder.mkdir()
            written = _write_copies(_articles(params, dump), size, folder / "wiki.xml.bz2")
            runs[size] = alone(_split, params, folder, workers) | {"characters": written}
            say(f"{size}x: {runs[size]}")
    source = dump.name if dump else "the bundled dump"
    results = {"facts": fact, "data": source, "workers": workers, "runs": runs}
    results["splitter"] = params.splitter.engine
    write_results("split_memory", results, _markdown(results), out)


def _all_of_it(params: Wikipedia | None) -> Wikipedia:
    if params is None:
        raise typer.BadParameter("`wikipedia` is null in this params.yaml")
    validation = params.validation.model_copy(update={"sentences": 10**9})
    return params.model_copy(update={"validation": validation, "sentences": 10**9})


def _articles(params: Wikipedia, dump: Path | None) -> list[Article]:
    source, inputs = params.source, Path("data/input")
    if dump is not None:
        source, inputs = CorpusFiles(kind="files", files=[dump.name], form="dump"), dump.parent
    return [article for chunk in read_chunks(source, inputs) for article in chunk.articles]


def _write_copies(articles: list[Article], copies: int, path: Path) -> int:
    """Write a dump with this many copies of the articles; return its number of characters."""
    characters = 0
    with bz2.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.write("<mediawiki>\n")
        words = itertools.count()
        for copy in range(copies):
            for page in _pages(articles, copy, words):
                characters += file.write(page)
        file.write("</mediawiki>\n")
    return characters


def _pages(articles: list[Article], copy: int, words: Iterator[int]) -> Iterator[str]:
    for article in articles:
        # A new word before each full stop: sentences differ, and the vocabulary grows as well.
        text = _END.sub(lambda _: f" of word{next(words)}.", article.text)
        yield (
            f"<page><title>{escape(article.title)} {copy}</title><ns>0</ns>"
            f"<id>{article.id}{copy:03d}</id><revision><text>{escape(text)}</text></revision></page>\n"
        )


def _split(params: Wikipedia, folder: Path, workers: int) -> dict[str, Any]:
    os.environ["POTSTILL_HOME"] = str(folder / "home")
    from pipeline_lib.corpora.wikipedia.sentence_sets import split_wikipedia
    from pipeline_lib.corpora.wikipedia.splitting import SentencePass
    from pipeline_lib.shards.engine.local import LocalEngine

    SentencePass.of(params)
    before = peak_mib(resource.RUSAGE_SELF)
    source = CorpusFiles(kind="files", files=["wiki.xml.bz2"], form="dump")
    start = time.monotonic()
    manifests, _ = split_wikipedia(
        params.model_copy(update={"source": source}), folder, folder / "sets", LocalEngine(workers)
    )
    seconds = time.monotonic() - start
    return {
        "megabytes_packed": round((folder / "wiki.xml.bz2").stat().st_size / 1e6, 1),
        "sentences": sum(manifest.rows for manifest in manifests.values()),
        "dropped": dict(Counter(manifests["train"].counts["dropped"])),
        "seconds": round(seconds, 1),
        "mib_when_loaded": before,
        "mib_peak": peak_mib(resource.RUSAGE_SELF),
        "mib_peak_of_largest_worker": peak_mib(resource.RUSAGE_CHILDREN) if workers > 1 else None,
    }


def _markdown(results: dict[str, Any]) -> list[str]:
    rows = [
        [
            f"{size} ×",
            f"{run['characters'] / 1e6:,.1f}",
            f"{run['sentences']:,}",
            f"{run['mib_when_loaded']:,.0f}",
            f"{run['mib_peak']:,.0f}",
            f"{run['mib_peak_of_largest_worker'] or 0:,.0f}" if results["workers"] > 1 else "–",
            f"{run['sentences'] / run['seconds']:,.0f}",
        ]
        for size, run in results["runs"].items()
    ]
    head = ["input", "million characters", "sentences kept", "MiB when loaded", "MiB at peak"]
    return [
        "# Memory of splitting Wikipedia",
        "",
        f"`split_wikipedia` on {results['data']} and copies of it that share few sentences; "
        f"{results['splitter']}, {results['workers']} worker(s).",
        "",
        *table([*head, "of a worker", "kept sentences/s"], rows),
    ]


if __name__ == "__main__":
    typer.run(main)
