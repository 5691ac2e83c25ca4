"""Speed of the teacher pass, compared with sentence-transformers and the transformers pipeline.

Claim: the pass that labels a transfer set (tokenise, length-sorted batches in a token budget, one
single-threaded process per core, Arrow shards written through the store) handles a given number of
times as many rows per second as the usual ways to run the same weights, at their defaults and at
the best of a grid, and reaches a given share of the machine's peak in matrix products.

    pip install sentence-transformers==6.2.0 openvino==2026.4.1  # besides the project; optional
    python benchmarks/teacher_pass.py python benchmarks/teacher_pass.py --sentences FILE     # any text file, one
    sentence per line python benchmarks/teacher_pass.py --device cuda --texts 100000 --shard-rows 20000

Writes benchmarks/results/teacher_pass.{json,md}.  All run the encoder of the same folder.  Ours and the pipeline add
a classification head (random, from a seed: only its cost matters); ``encode`` returns mean-pooled vectors and needs
neither head nor pooler.  Loading and the first call are not timed for anyone: for ours the clock starts when all
workers have a warm teacher, and the rate that includes starting them is reported as well.

Share of the peak: FLOPs of a text of L tokens = L · (2 · P + 4 · layers · L · hidden), with P the
encoder's parameters without embeddings, pooler and head.  Only real tokens count, so padding lowers
the share.  The peak is the best square matrix product of several sizes on all cores, or on the
accelerator, in the same number format, measured in the same run.
"""

import functools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pyarrow as pa
import typer
from harness import (
    RESULTS,
    Out,
    Repeats,
    alone,
    facts,
    product_rate,
    rate,
    ratio,
    source_texts,
    spread,
    summary,
    table,
    take_turns,
    write_classifier,
    write_results,
)
from teacher_peers import Setup, all_peers, defaults_and_best, format_of, rates_of

from pipeline_lib.base.hashing import string_keys
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.models.teacher import Teacher
from pipeline_lib.outputs.teacher_pass import LogitPass
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.engine.protocol import Report
from pipeline_lib.shards.shard_sets import Shard, read_shard, write_shard
from pipeline_lib.shards.store import Store

PEAK_SIZES, ACCELERATOR_PEAK_SIZES = (1024, 2048, 4096), (4096, 8192)
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "pyarrow", "numpy")


def main(
    task: Annotated[str, typer.Option(help="Prepared task to take the texts from.")] = "movies",
    split: str = "train",
    sentences: Annotated[Path | None, typer.Option(help="Or a text file.")] = None,
    texts: Annotated[int, typer.Option(help="How many texts.")] = 6000,
    model: Annotated[Path, typer.Option(help="The encoder.")] = Path("data/raw/models/minilm"),
    grid_texts: Annotated[int, typer.Option(help="Texts used to find the best settings.")] = 1500,
    shard_rows: Annotated[int, typer.Option(help="Rows per shard, at most.")] = 1000,
    device: Annotated[str, typer.Option(help="cpu or cuda, for ours and the peers.")] = "cpu",
    repeats: Repeats = 5,
    seed: Annotated[int, typer.Option(help="Seed of the texts' order and the random head.")] = 1,
    params_file: Path = Path("params.yaml"),
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    import torch

    params = load_params(params_file)
    cores = usable_cores()
    on_cpu = device == "cpu"
    fact = facts(PACKAGES, cores, f"peers {torch.get_num_threads()}, ours 1 in each process")
    if on_cpu:
        torch.set_num_threads(1)  # only here: peers have processes of their own
    source, all_texts = source_texts(task, split, sentences)
    order = np.random.default_rng(seed).permutation(len(all_texts))[:texts]
    # Of a pair, the first sentence.
    chosen = [text if isinstance(text, str) else text[0] for text in (all_texts[i] for i in order)]
    with tempfile.TemporaryDirectory() as scratch:
        teacher = write_classifier(model, Path(scratch) / "teacher", seed)
        length = next(iter(params.teachers.values())).max_length
        base = LogitPass.of(params.model_copy(update={"device": device}), teacher, length)
        # Where `auto` is float32, a product of bfloat16 takes minutes.
        precisions = tuple(dict.fromkeys(("float32", base.precision)))
        passes = {p: replace(base, precision=p) for p in precisions}
        workers = (params.workers or cores) if on_cpu else 1
        jobs = _shards(chosen, -(-len(chosen) // shard_rows), workers, Path(scratch) / "in")
        setup = Setup(teacher, base.max_length, device, precisions, cores)
        with all_peers(setup) as (peers, not_run):
            grid = rates_of(peers, chosen[:grid_texts])
            roles = defaults_and_best(grid)
            details: dict[str, list[dict[str, float]]] = {p: [] for p in precisions}
            peaks: dict[str, list[float]] = {p: [] for p in precisions}
            turns: dict[str, Callable[[], float]] = {}
            for p in precisions:
                turns[f"peak {p} (GFLOP/s)"] = functools.partial(_peak, p, device, peaks[p])
                run = functools.partial(_ours, shards=jobs, workers=workers, scratch=Path(scratch))
                turns[f"ours, {p}"] = functools.partial(run, passes[p], details=details[p])
                padded = Padded(**{f.name: getattr(passes[p], f.name) for f in fields(passes[p])})
                turns[f"padded, {p}"] = functools.partial(run, padded, details=[])
            for setting in roles:
                turns[setting] = functools.partial(rate, peers[setting], chosen)
            rates = take_turns(turns, repeats)
        rates = {name: values for name, values in rates.items() if not name.startswith("peak")}
        tokens, flops = _work(passes["float32"], chosen)
        agreement = _agreement(passes["float32"], chosen[:64])
        packs = passes["float32"].teacher().packs
    best_peak = {p: max(peaks[p]) for p in precisions}
    results = {
        "facts": fact | {"seeds": {"texts and head": seed}, "repeats": repeats},
        "data": f"{len(chosen):,} of {source}; {tokens / len(chosen):.1f} tokens on average",
        "model": _describe(passes["float32"]),
        "ours": {
            "workers": workers,
            "device": base.device,
            "in_flight": base.in_flight,
            "packs": packs,
            "shards": len(jobs),
            "batch_tokens": base.batch_tokens,
            "max_length": base.max_length,
            "precision_auto": base.precision,
            "rows_per_second_with_workers_started": {
                p: summary([d["with_start"] for d in details[p]]) for p in precisions
            },
            "seconds_to_start_workers": {p: summary([d["start"] for d in details[p]]) for p in precisions},
            "rows_per_second_no_worker_idle": {p: summary([d["busy"] for d in details[p]]) for p in precisions},
        },
        "rows_per_second": {name: summary(values) for name, values in rates.items()},
        "ours_divided_by": {
            name: {p: ratio(rates[f"ours, {p}"], values) for p in precisions}
            for name, values in rates.items()
            if not name.startswith("ours")
        },
        "roles": roles,
        "grid_rows_per_second": {name: round(value, 1) for name, value in grid.items()},
        "grid_texts": min(grid_texts, len(chosen)),
        "peak_gflops": {p: round(best_peak[p], 1) for p in precisions},
        "flops_per_text": round(flops / len(chosen)),
        "share_of_peak": {
            name: round(float(np.median(values)) * flops / len(chosen) / 1e9 / best_peak[format_of(name)], 3)
            for name, values in rates.items()
        },
        "greatest_difference_to_pipeline_in_probability": agreement,
        "not_run": not_run,
    }
    write_results("teacher_pass", results, _markdown(results), out)


def _shards(texts: Sequence[str], count: int, workers: int, folder: Path) -> list[tuple[Path, Shard]]:
    """Write the texts as equal shards, in a number that divides evenly among the workers."""
    count = -(-count // workers) * workers
    shards = []
    for number, chunk in enumerate(np.array_split(np.array(texts, object), count)):
        rows = pa.table({"key": string_keys(list(chunk)), "text": pa.array(list(chunk))})
        path = folder / f"{number:03d}.arrow"
        shards.append((path, write_shard(path, rows)))
    return shards


# Ours.


class Padded(LogitPass):
    """The pass with padding, whatever the model allows."""

    def teacher(self) -> Teacher:
        """Load the teacher, so that it pads."""
        return replace(super().teacher(), packs=False)


WarmUp = tuple[LogitPass, Path, int]
Compute = tuple[LogitPass, Path, Shard]


def _job(job: tuple[str, WarmUp | Compute], _: Report) -> tuple[str, float, float, int]:
    """Do one job in a worker; return its kind, start, end (the system's clock) and rows."""
    kind, what = job
    if kind == "warm":
        return _warm_up(what)
    logit_pass, path, shard = what
    start = time.monotonic()
    # The same as the stage precompute does with a shard.
    outputs = logit_pass.compute(read_shard(path))
    Store("logits").add(logit_pass.key(shard.sha256), outputs, shard.sha256)
    return kind, start, time.monotonic(), shard.rows


def _warm_up(what: WarmUp) -> tuple[str, float, float, int]:
    """Load the teacher, run it once, and wait until every worker has done so."""
    logit_pass, folder, workers = what
    start = time.monotonic()
    words = ["a", "warm", "teacher", "answers", "faster", "than", "a", "cold", "one", "does"]
    logit_pass.teacher().predict([" ".join(words[: 1 + i % len(words)]) for i in range(64)], logit_pass.max_length, 512)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < workers:
        time.sleep(0.005)
    return "warm", start, time.monotonic(), 0


def _ours(
    logit_pass: LogitPass,
    shards: Sequence[tuple[Path, Shard]],
    workers: int,
    details: list[dict[str, float]],
    scratch: Path,
) -> float:
    """Run the pass with an empty store; return rows per second once the workers are warm."""
    on_cpu = logit_pass.device == "cpu"
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        os.environ["POTSTILL_HOME"] = home
        ready = Path(home) / "ready"
        ready.mkdir()
        warm = [("warm", (logit_pass, ready, workers))] * workers
        jobs = [("compute", (logit_pass, *shard)) for shard in shards]
        began = time.monotonic()
        if on_cpu:
            done = [result for _, result in LocalEngine(workers).run(_job, warm + jobs)]
        else:
            _warm_up(warm[0][1])
            engine, in_flight = LocalEngine.on((None,)), logit_pass.in_flight
            done = [result for _, result in engine.run(_job, jobs, in_flight=in_flight)]
        whole = time.monotonic() - began
    computed = [result for result in done if result[0] == "compute"]
    start = min(result[1] for result in computed)
    seconds = max(result[2] for result in computed) - start
    rows = sum(result[3] for result in computed)
    details.append(
        {
            "with_start": rows / whole,
            "start": start - began,
            # What many shards would reach, with no worker idle at the end.
            "busy": rows / (sum(r[2] - r[1] for r in computed) / min(workers, len(computed))),
        }
    )
    return rows / seconds


# The machine's peak, and the work in the texts.


def _peak(precision: str, device: str, peaks: list[float]) -> float:
    """Return the best GFLOP/s of square products, and note it in ``peaks``."""
    if device == "cpu":
        # Each in a new process: the one that forks our workers must not have used threads.
        rates = [alone(product_rate, n, precision, max(3, 4096 // n)) for n in PEAK_SIZES]
    else:
        rates = [product_rate(n, precision, 10, device) for n in ACCELERATOR_PEAK_SIZES]
    peaks.append(max(rates))
    return peaks[-1]


def _work(logit_pass: LogitPass, texts: Sequence[str]) -> tuple[int, int]:
    """Return the real tokens of all texts and the FLOPs of an encoder over them."""
    teacher = logit_pass.teacher()
    lengths = teacher.encode(texts, logit_pass.max_length).lengths
    config = teacher.model.config
    attention = 4 * config.num_hidden_layers * lengths * config.hidden_size
    flops = lengths * (2 * _encoder_parameters(teacher.model) + attention)
    return int(lengths.sum()), int(flops.sum())


def _encoder_parameters(model: Any) -> int:
    """Count the parameters that every token passes through."""
    return sum(
        parameter.numel()
        for name, parameter in model.base_model.named_parameters()
        if not name.startswith(("embeddings.", "pooler."))
    )


def _agreement(logit_pass: LogitPass, texts: Sequence[str]) -> float:
    """Return the largest difference of a class probability between ours and the pipeline's."""
    import torch
    from transformers import pipeline

    teacher = logit_pass.teacher()
    logits = teacher.predict(texts, logit_pass.max_length, logit_pass.batch_tokens)
    ours = torch.from_numpy(logits).softmax(1).numpy()
    run = pipeline("text-classification", str(logit_pass.folder), device=logit_pass.device)
    answers = run(list(texts), top_k=None, truncation=True, max_length=logit_pass.max_length)
    scores = [{answer["label"]: answer["score"] for answer in row} for row in answers]
    theirs = np.array([[row[name] for name in teacher.label_names] for row in scores])
    return float(f"{np.abs(ours - theirs).max():.2g}")


def _describe(logit_pass: LogitPass) -> dict[str, Any]:
    model = logit_pass.teacher().model
    return {
        "type": model.config.model_type,
        "layers": model.config.num_hidden_layers,
        "hidden": model.config.hidden_size,
        "parameters": sum(p.numel() for p in model.parameters()),
        "P": _encoder_parameters(model),
    }


def _who(ours: dict[str, Any]) -> str:
    batches = "packed" if ours["packs"] else "padded"
    if ours["device"] == "cpu":
        return f"{ours['workers']} processes with one thread, {batches}"
    return f"one process, {ours['in_flight']} shards in flight, {batches}"


def _markdown(results: dict[str, Any]) -> list[str]:
    ours, model, precisions = results["ours"], results["model"], results["peak_gflops"]
    rows = []
    for name, measured in results["rows_per_second"].items():
        against = results["ours_divided_by"].get(name)
        role = results["roles"].get(name)
        if name == f"ours, {ours['precision_auto']}":
            role = "what `precision: auto` picks here"
        ratios = [spread(against[p], "{:.2f}") if against else "" for p in precisions]
        label = f"{name} ({role})" if role else name
        rows.append([label, spread(measured), f"{results['share_of_peak'][name]:.0%}", *ratios])
    rows += [[name, "not run", "", reason, ""] for name, reason in results["not_run"].items()]
    peaks = ", ".join(f"{p} {results['peak_gflops'][p]:,.0f}" for p in precisions)
    started = ", ".join(
        f"{p} {ours['rows_per_second_with_workers_started'][p]['median']:,.0f} rows/s "
        f"({ours['seconds_to_start_workers'][p]['median']:.1f} s to start)"
        for p in precisions
    )
    header = ["contestant", "rows/s", "share of peak", *(f"ours {p} ÷ this" for p in precisions)]
    return [
        "# Teacher pass: rows per second",
        "",
        f"{results['data']}; {model['type']}, {model['layers']} layers, {model['hidden']} wide, "
        f"{model['parameters']:,} parameters. Median of {results['facts']['repeats']} turns "
        "(lowest–highest); ratios turn by turn.",
        "",
        *table(header, rows),
        "",
        f"Ours: {_who(ours)} (`padded`: the same with padding), {ours['shards']} shards, at most "
        f"{ours['batch_tokens']:,} tokens a batch; tokenising and writing Arrow shards included. "
        f"Where starting the processes counts too: {started}; that is paid once a pass.",
        "`encode` returns mean-pooled vectors, the pipeline class probabilities as Python "
        "dictionaries, OpenVINO logits; none writes anything. The peers' best settings were "
        f"found on {results['grid_texts']:,} of the texts (the whole grid is in the JSON).",
        f"Peak, GFLOP/s: {peaks} (the best of several square products, {ours['device']}). FLOPs of a text of L tokens: "
        f"L · (2 · P + 4 · layers · L · hidden), P = {model['P']:,}; real tokens only.",
        "Largest difference of a class probability between ours and the pipeline in float32: "
        f"{results['greatest_difference_to_pipeline_in_probability']}.",
    ]


if __name__ == "__main__":
    typer.run(main)
