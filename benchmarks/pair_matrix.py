"""DSE's tables 2 and 3 on this machine: all pairs of 1,000 sentences, and a query against 100,000.

Claim (Barkan et al. 2019, section 4.4): encoding each sentence once and comparing vectors is hundreds of times as
fast as a cross-encoder of the same size over a matrix of pairs, and thousands of times as fast online.

    pip install sentence-transformers==6.2.0       # besides the project itself; optional
    python benchmarks/pair_matrix.py --sentences FILE     # a text file, one sentence per line
    python benchmarks/pair_matrix.py --sentences FILE --model data/raw/models/mpnet --name NAME
    python benchmarks/pair_matrix.py --sentences FILE --random 24 1024 --name NAME   # BERT-large

Writes benchmarks/results/NAME.{json,md}.  Systems take turns, each in a process of its own,
so that its peak memory can be measured, and with all cores.  All weights above the encoders, those
of the small students, and the pairs are drawn at random, since only their cost matters.

The cross-encoder is timed on some pairs and extrapolated to all.  Encoding, which includes tokenisation, and
comparison are timed separately.  Online, the catalogue's vectors exist already: they are those of the sentences,
drawn repeatedly with a little noise, since only their number and width matter; the comparison includes finding the
ten best.  Reading vectors from disk is not included.  Loading and each system's first call are not timed.

The cross-encoder, DSE and the peer have the encoder in `--model`, a folder of any model that
transformers loads, or with `--random` a BERT of that many layers and values, with the model's word
pieces and random weights.  DSE takes the means of its last four layers; f has 512 units.  The small
students compare their vectors with 200 units and with as many as DSE.
"""

import os
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import torch
import typer
from harness import (
    RESULTS,
    Name,
    Out,
    Repeats,
    absent,
    facts,
    lines_of,
    optional,
    peak_mib,
    say,
    seconds,
    spread,
    summary,
    table,
    write_results,
)
from pair_systems import BEST, CPU, CROSS, MAKERS, PEER, STUDENTS, Work
from transformers import AutoConfig, BertConfig, BertModel

from pipeline_lib.base.devices import resolve_precision
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.retrieval.scoring import CANDIDATE_ROWS
from pipeline_lib.text.pieces import load_fast_tokenizer

PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")
QUERIES = 20
"""Single queries encoded per turn; their mean is reported."""


def main(
    sentences: Annotated[Path, typer.Option(help="A text file, one sentence per line.")],
    model: Annotated[Path, typer.Option(help="The encoder: a folder of a transformers model.")] = Path(
        "data/raw/models/minilm"
    ),
    random: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="LAYERS WIDTH",
            help="Instead, a BERT of this size (the width a multiple of 64) with random weights "
            "and the model's word pieces.",
        ),
    ] = None,
    matrix: Annotated[int, typer.Option(help="Sentences of the matrix.")] = 1000,
    pairs: Annotated[int, typer.Option(help="Pairs the cross-encoder is timed on.")] = 1000,
    catalogue: Annotated[int, typer.Option(help="Candidates per query.")] = 100_000,
    greater: Annotated[
        int, typer.Option(help="Candidates in the small students' larger catalogue; 0: none.")
    ] = 1_000_000,
    max_length: Annotated[int, typer.Option(help="Word pieces per input.")] = 128,
    repeats: Repeats = 3,
    seed: Annotated[int, typer.Option(help="Seed of the texts' order and of all weights.")] = 1,
    name: Name = "pair_matrix",
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    fact = facts(PACKAGES, usable_cores(), torch.get_num_threads())
    lines = lines_of(sentences)
    if len(lines) < matrix:
        raise typer.BadParameter(f"{sentences.name} has {len(lines):,} lines, not {matrix:,}")
    order = np.random.default_rng(seed).permutation(len(lines))[:matrix]
    texts = [lines[i] for i in order]
    with tempfile.TemporaryDirectory() as folder:
        if random:
            model = _write_bert(Path(folder), model, *random, seed)
        work = Work(model, texts, pairs, catalogue, greater, max_length, seed)
        results = {
            "facts": fact | {"seed": seed, "repeats": repeats},
            "data": f"{matrix:,} lines of {sentences.name}",
            "encoder": {"name": "random weights" if random else model.name} | _size(model),
            "sizes": {"matrix": matrix, "pairs": pairs, "catalogue": catalogue, "greater": greater},
            "precision_auto": resolve_precision("auto", CPU),
            **_measure(work, repeats),
        }
    write_results(name, results, _markdown(results), out)


def _write_bert(folder: Path, model: Path, layers: int, width: int, seed: int) -> Path:
    """Write a BERT with random weights and a model's tokenizer; return its folder."""
    tokenizer = load_fast_tokenizer(model)
    config = BertConfig(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        num_hidden_layers=layers,
        hidden_size=width,
        # As in BERT-base and BERT-large.
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    torch.manual_seed(seed)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _size(model: Path) -> dict[str, int]:
    config = AutoConfig.from_pretrained(model)
    return {"layers": config.num_hidden_layers, "width": config.hidden_size}


def _measure(work: Work, repeats: int) -> dict[str, Any]:
    """Return the seconds, deviations and memory of all systems."""
    pools = {name: ProcessPoolExecutor(1, get_context("spawn")) for name in MAKERS}
    not_run, timings = {}, {name: [] for name in MAKERS}
    for name, pool in pools.items():
        with optional(name, not_run) if name == PEER else nullcontext():
            pool.submit(_start, name, work).result()
    running = {name: pool for name, pool in pools.items() if name not in not_run}
    for repeat in range(repeats):
        for name, pool in running.items():
            timings[name].append(pool.submit(_turn).result())
            say(f"repeat {repeat + 1}/{repeats}  {name}: {timings[name][-1]}")
    peaks = {name: pool.submit(peak_mib, resource.RUSAGE_SELF) for name, pool in running.items()}
    extra = {
        name: [running[name].submit(_greater).result() for _ in range(repeats)] for name in STUDENTS if work.greater
    }
    measured = {
        "seconds": _scaled(timings, work),
        "seconds_greater": {name: _summaries(turns) for name, turns in extra.items()},
        "bfloat16": {n: running[n].submit(_deviation).result() for n in ("DSE", *STUDENTS)},
        "peak_mib": {name: peak.result() for name, peak in peaks.items()},
        "not_run": not_run,
    }
    for pool in pools.values():
        pool.shutdown()
    return measured


# In a system's own process.

_here: dict[str, Any] = {}


def _start(name: str, work: Work) -> None:
    """Build the system, and call all of it once."""
    torch.manual_seed(work.seed)
    _here.update(work=work, name=name, system=MAKERS[name](work))
    if name != CROSS:
        _here["vectors"] = _here["system"].encode(work.texts)
        _here["catalogue"] = _drawn(_here["vectors"], work.catalogue, work.seed)
        for matrix, search in _here["system"].compare.values():
            matrix(_here["vectors"][:64], _here["vectors"])
            search(_here["vectors"][:1], _here["vectors"])
    else:
        _here["system"](list(zip(work.texts[:64], work.texts[:64], strict=True)))


def _turn() -> dict[str, float]:
    """Return the seconds of each part of the work, once."""
    work, system = _here["work"], _here["system"]
    if _here["name"] == CROSS:
        draw = np.random.default_rng(work.seed).integers(0, len(work.texts), (work.pairs, 2))
        pairs = [(work.texts[first], work.texts[second]) for first, second in draw]
        return {"pairs": seconds(partial(system, pairs))}
    vectors = _here["vectors"]
    taken = {
        "encode": seconds(partial(system.encode, work.texts)),
        "query": sum(
            seconds(partial(system.encode, [text])) for text in work.texts[:QUERIES]
        ) / QUERIES,
    }  # fmt: skip
    for name, (matrix, search) in system.compare.items():
        taken[f"matrix, {name}"] = seconds(partial(matrix, vectors, vectors))
        taken[f"search, {name}"] = seconds(partial(search, vectors[:1], _here["catalogue"]))
    return taken


def _greater() -> dict[str, float]:
    """Return the seconds of a query against the larger catalogue."""
    work = _here["work"]
    if len(_here["catalogue"]) != work.greater:
        _here["catalogue"] = _drawn(_here["vectors"], work.greater, work.seed)
    return {
        name: seconds(partial(search, _here["vectors"][:1], _here["catalogue"]))
        for name, (_, search) in _here["system"].compare.items()
    }


def _deviation() -> dict[str, float]:
    """Return how far f in bfloat16 is from f in float32, in standard deviations of the scores."""
    vectors, compare = _here["vectors"], _here["system"].compare
    exact, rounded = (compare[name][0](vectors, vectors) for name in ("float32", "bfloat16"))
    deviation = (rounded - exact) / exact.std()
    top = [np.argsort(-matrix, 1, kind="stable")[:, :BEST] for matrix in (exact, rounded)]
    shared = [len({*a} & {*b}) / BEST for a, b in zip(*top, strict=True)]
    return {
        "greatest": round(float(np.abs(deviation).max()), 5),
        "root_mean_square": round(float(np.sqrt((deviation**2).mean())), 5),
        f"shared_of_{BEST}_best": round(float(np.mean(shared)), 4),
    }


def _drawn(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return ``count`` of the vectors, drawn with a little noise, float32."""
    draw = np.random.default_rng(seed)
    noisy = np.empty((count, vectors.shape[1]), np.float32)
    for start in range(0, count, CANDIDATE_ROWS):
        chunk = noisy[start : start + CANDIDATE_ROWS]
        draw.standard_normal(out=chunk, dtype=np.float32)
        chunk *= 0.01
        chunk += vectors[draw.integers(0, len(vectors), len(chunk))]
    return noisy


# What is written.


def _scaled(timings: dict[str, list[dict[str, float]]], work: Work) -> dict[str, Any]:
    """Return the summaries of all seconds; those of the cross-encoder scaled to all pairs."""
    rates = [turn["pairs"] / work.pairs for turn in timings[CROSS]]
    cross = [{"matrix": len(work.texts) ** 2 * rate, "search": work.catalogue * rate} for rate in rates]
    return {name: _summaries(cross if name == CROSS else turns) for name, turns in timings.items() if turns}


def _summaries(turns: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {part: summary([turn[part] for turn in turns], 6) for part in turns[0]}


def _markdown(results: dict[str, Any]) -> list[str]:
    sizes, systems, encoder = results["sizes"], results["seconds"], results["encoder"]
    cross = systems[CROSS]
    offline = [[CROSS, "", "", f"{cross['matrix']['median']:,.0f}", "1"]]
    online = [[CROSS, "", "", f"{1000 * cross['search']['median']:,.0f}", "1", ""]]
    for name, timings in systems.items():
        for timing, values in timings.items():
            kind, _, way = timing.partition(", ")
            if not way:
                continue
            before = timings["encode" if kind == "matrix" else "query"]["median"]
            total = before + values["median"]
            times = f"{cross[kind]['median'] / total:,.0f}"
            label = f"{name}, {'cosine' if 'cos' in way else f'f in {way}'}"
            if kind == "matrix":
                comparison = spread(values, "{:,.3f}")
                offline.append([label, f"{before:,.3f}", comparison, f"{total:,.3f}", times])
            else:
                comparison = spread({n: 1000 * v for n, v in values.items()}, "{:,.1f}")
                more = results["seconds_greater"].get(name, {}).get(way)
                more = f"{1000 * more['median']:,.0f}" if more else ""
                together = f"{1000 * total:,.1f}"
                online.append([label, f"{1000 * before:,.1f}", comparison, together, times, more])
    header = ["system", "encoder", "comparison", "together", "times as fast"]
    rounded = [
        [name, *(f"{value:.4f}" for value in deviations.values())] for name, deviations in results["bfloat16"].items()
    ]
    return [
        "# All pairs of a matrix, and a query against a catalogue",
        "",
        f"{results['data']}; an encoder of {encoder['layers']} layers of {encoder['width']:,} values "
        f"({encoder['name']}). The cross-encoder is timed on {sizes['pairs']:,} pairs and scaled. Its layers, and "
        f"those of DSE and of the peer, are computed in {results['precision_auto']}, the LSTM in float32. Medians of "
        f"{results['facts']['repeats']} turns (lowest–highest), all cores.",
        "",
        f"Offline: {sizes['matrix']:,} × {sizes['matrix']:,} pairs, seconds.",
        "",
        *table(header, offline),
        "",
        f"Online: one query against {sizes['catalogue']:,} candidates with precomputed vectors, "
        f"and its {BEST} best, milliseconds"
        + (f"; last, the comparison with {sizes['greater']:,}." if sizes["greater"] else "."),
        "",
        *table([*header, f"{sizes['greater']:,}"], online),
        "",
        "f in bfloat16 against float32, over the matrix, in standard deviations of its scores; and "
        f"the share of the {BEST} best of each row that are the same:",
        "",
        *table(["system", "greatest", "root mean square", "same"], rounded),
        "",
        "Peak memory of each process, with its catalogue, MiB: "
        + ", ".join(f"{name} {value:,.0f}" for name, value in results["peak_mib"].items())
        + ".",
        *absent(results["not_run"]),
    ]


if __name__ == "__main__":
    typer.run(main)
