"""What the benchmarks share: options, texts, clocks, taking turns, tables, results files.

Contestants take turns within one run, so that other load on the machine affects all of them alike.
The median over the turns is reported, and ratios are computed turn by turn.
"""

import datetime
import importlib.metadata
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.processor import cpu_name
from pipeline_lib.base.text import Text
from pipeline_lib.shards.columns import texts as texts_of
from pipeline_lib.shards.shard_sets import ShardSet

if TYPE_CHECKING:
    from pipeline_lib.text.ragged import Sentences

RESULTS = Path(__file__).parent / "results"
Out = Annotated[Path, typer.Option(help="Folder of the results.")]
Name = Annotated[str, typer.Option(help="Name of the results.")]
Repeats = Annotated[int, typer.Option(min=1, help="Turns of each.")]


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file, blank ones apart."""
    return [line for line in path.read_text("utf-8").split("\n") if line.strip()]


def source_texts(task: str, split: str, file: Path | None) -> tuple[str, list[Text]]:
    """Return a description, and the texts of a prepared task or the lines of ``file``, if given."""
    if file is not None:
        return f"the lines of {file.name}", lines_of(file)
    texts = texts_of(ShardSet.open(Layout().split(task, split)).to_table())
    return f"the {split} texts of the task {task}", texts


def seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rate(run: Callable[[Any], Any], rows: Sequence[Any]) -> float:
    """Return the rows per second of one run over all of them."""
    return len(rows) / seconds(lambda: run(rows))


def product_rate(size: int, precision: str, tries: int, device: str = "cpu") -> float:
    """Return the best GFLOP/s of products of two square matrices in torch."""
    import torch

    a, b = (torch.randn(size, size).to(device, getattr(torch, precision)) for _ in range(2))

    def multiply() -> None:
        a @ b
        if device != "cpu":
            torch.cuda.synchronize()

    multiply()
    return 2 * size**3 / min(seconds(multiply) for _ in range(tries)) / 1e9


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a module's function in a new process, and return what it returns."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


@contextmanager
def optional(name: str, not_run: dict[str, str]) -> Iterator[None]:
    """Note in ``not_run`` why a peer fails, such as one that is not installed, and go on."""
    try:
        yield
    except Exception as error:
        not_run[name] = reason(error)
        say(f"{name} not run: {not_run[name]}")


def write_classifier(encoder: Path, folder: Path, seed: int) -> Path:
    """Save an encoder with a random head of two classes, as fine-tuning would."""
    import torch

    from pipeline_lib.models.teacher import load_classifier

    torch.manual_seed(seed)
    for saved in load_classifier(encoder, ["no", "yes"]):
        saved.save_pretrained(folder)
    return folder


def mean_encoder(folder: Path, **options: Any) -> Any:
    """Return a model as sentence-transformers' encoder of means.

    Its packages lack the settings of the pooling that it was published with.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    words = Transformer(str(folder), **options)
    pooling = Pooling(words.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[words, pooling], device="cpu")


def take_turns(contestants: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Call every contestant once per repeat, in turn; return what each returned (a rate)."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for repeat in range(repeats):
        for name, measure in contestants.items():
            rates[name].append(measure())
            say(f"repeat {repeat + 1}/{repeats}  {name}: {rates[name][-1]:,.1f}")
    return rates


def tokens_per_row(sentences: "Sentences") -> np.ndarray:
    """Return the words or tokens of each row, those of both sentences of a pair, int64."""
    sides = [sentences, *([sentences.second] if sentences.second else [])]
    return np.sum([np.diff(side.offsets) for side in sides], axis=0)


def evenly(batches: Sequence[np.ndarray], tokens: np.ndarray, size: int, count: int) -> list[np.ndarray]:
    """Return ``count`` of the full batches, in their order, evenly from fewest to most tokens.

    :param batches: row numbers; :param tokens: of each row; :param size: a full batch's.
    """
    full = [rows for rows in batches if len(rows) == size]
    if len(full) < count:
        raise PotstillError(
            f"{len(tokens):,} texts make {len(full)} batches of {size}, and {count} are to be "
            "timed. Give more texts, or time fewer."
        )
    by_tokens = np.argsort([tokens[rows].sum() for rows in full], kind="stable")
    chosen = by_tokens[((np.arange(count) + 0.5) * len(full) / count).astype(int)]
    return [full[i] for i in sorted(chosen)]


def summary(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Return median, lowest and highest of ``values``."""
    numbers = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, digits) for name, value in numbers.items()}


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the summary of ours ÷ theirs, taken turn by turn."""
    return summary([a / b for a, b in zip(ours, theirs, strict=True)], 3)


def facts(packages: Iterable[str], cores: int, threads: int | str) -> dict[str, Any]:
    """Describe the software and the machine that were measured."""
    # Results are read on other machines, where only the end of an absolute path is meaningful.
    arguments = [Path(a).name if a.startswith("/") else a for a in sys.argv]
    arguments[0] = Path(arguments[0]).name
    return {
        "command": " ".join(["python", f"benchmarks/{arguments[0]}", *arguments[1:]]),
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_name(),
        "accelerator": _accelerator(),
        "cores": cores,
        "threads": threads,
        "load_at_start": round(os.getloadavg()[0], 2),
        "versions": {"python": platform.python_version()} | _versions(packages),
    }


def peak_mib(who: int) -> float:
    """Return the peak resident memory so far, in MiB, of ``who`` (resource.RUSAGE_...)."""
    unit = 1024 if sys.platform == "linux" else 1024**2
    return round(resource.getrusage(who).ru_maxrss / unit, 1)


def folder_bytes(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_results(name: str, results: dict[str, Any], lines: Sequence[str], folder: Path) -> None:
    """Write ``<name>.json`` to ``folder``, and print its tables.

    :param results: with the key ``facts``, see :func:`facts`.
    :param lines: the tables, in Markdown.
    """
    write_json(folder / f"{name}.json", results)
    sys.stdout.write("\n".join([*lines, "", *_footer(results["facts"]), ""]))
    say(f"wrote {name}.json")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table: the first column left, the others right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)]


def spread(values: dict[str, float], pattern: str = "{:,.0f}") -> str:
    """Return ``median (min–max)`` of a summary."""
    low, high = pattern.format(values["min"]), pattern.format(values["max"])
    return f"{pattern.format(values['median'])} ({low}–{high})"


def absent(not_run: dict[str, str]) -> list[str]:
    """Return a paragraph for each contestant that did not run."""
    return [f"\n{name} did not run: {why}" for name, why in not_run.items()]


def reason(error: Exception) -> str:
    """Return why a contestant did not run, in one line and without this machine's paths."""
    first = (str(error).strip() or "no message").splitlines()[0]
    return re.sub(r" ?\(?/\S+", "", f"{type(error).__name__}: {first}")


def say(line: str) -> None:
    """Print progress."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _footer(fact: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in fact["versions"].items())
    return [
        f"`{fact['command']}`",
        "",
        f"{_machine(fact)}, {fact['cores']} cores, threads: {fact['threads']}; load at start "
        f"{fact['load_at_start']}; {fact['date']}; commit {fact['commit']}; {versions}.",
    ]


def _machine(fact: dict[str, Any]) -> str:
    return " and ".join(filter(None, (fact.get("accelerator"), fact["cpu"])))


def _accelerator() -> str | None:
    """Return the name of the GPU that ``device: auto`` would use, or None."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=False, cwd=RESULTS.parent
        ).stdout.strip()

    changed = git("status", "--porcelain", "--", "../pipeline_lib", ".", ":!results")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" + changes" if changed else "")


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions
