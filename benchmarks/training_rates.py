"""Training speed of students and teachers, compared with transformers' Trainer on equal weights.

Claim: the project's loop (batches of similar length, mixed precision where the processor is fast at
it) trains the bi-attentive student, and fine-tunes a teacher on pairs, at a given number of times
as many tokens per second as the Trainer with batches drawn at random (the student's in float32, its
default, a teacher's in the same number format as ours) and at its best settings.

    pip install accelerate==1.15.0       # besides the project itself: the Trainer needs it
    python benchmarks/training_rates.py
    python benchmarks/training_rates.py --texts FILE     # any text file, one sentence per line

Run it where the task is prepared.  It takes up to ten minutes on two cores and writes
benchmarks/results/training_rates.{json,md}.  Sizes, batch sizes and learning rates are those of
benchmarks/mtl.yaml.  Pairs are made from consecutive texts (a task of pairs has its own); classes
and the logits that the student learns are drawn at random, since only their cost matters.  The
teacher's embeddings are trained too, by ours and by the Trainer.

Both get the same weights, loss, AdamW, linear decay and clipping at 1.0.  It is checked first that this is the same
work: without dropout, on one repeated batch, the losses of a few steps must agree, the later ones also proving that
the updates do; in float32 and in the format that `auto` selects. The differences are the loop, the batches, the
collation, and for the teacher the attention and the dropout of pipeline_lib/cpu.

The training set is as large as an actual one, since both sort within it.  A turn trains on a few batches, taken
evenly from those of one epoch in order of their tokens, so that short and long ones are represented proportionally;
the Trainer's epochs are shuffled as its random sampler does, or grouped by its own function for `group_by_length`,
here by the tokens of both sentences.  The first steps, evaluation and saving are not timed for anyone, nor is
tokenisation, which is done once per run.  Only real tokens are counted; padding just takes time.

Share of the peak: 6 · P · tokens FLOPs, with P the parameters in matrices that multiply every token: no embeddings,
biases or norms, and nothing that reads a row only once (pooler, head; the student's shared layer and what follows).
Products between tokens (attention) are left out too. The peak is the best product of two square matrices in the same
number format and with as many threads, measured in the same run.
"""

import copy
import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
import torch
import typer
from harness import (
    RESULTS,
    Out,
    Repeats,
    evenly,
    facts,
    optional,
    product_rate,
    ratio,
    say,
    spread,
    summary,
    table,
    take_turns,
    tokens_per_row,
    write_results,
)
from training_contestants import WARM_UP, Contestant, Given
from training_peers import grouped_batches, now, random_batches
from training_works import Work, matrices, some_pairs, student_work, teacher_work

from pipeline_lib.base.devices import resolve_device
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.params import load_params
from pipeline_lib.text.batches import LengthSorted
from pipeline_lib.training.loop import Batch, fit

PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy")
PRECISIONS = ("float32", "bfloat16")
PEAK_SIZE, PEAK_TRIES = 2048, 5
CHECKED_STEPS = 3
TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}
"""The relative tolerance between the losses of two loops on equal batches."""


def main(
    task: Annotated[str, typer.Option(help="Prepared task to take the texts from.")] = "movies",
    texts: Annotated[Path | None, typer.Option(help="Or a text file.")] = None,
    pairs: Annotated[int, typer.Option(help="Rows of the training sets, at most.")] = 12800,
    model: Annotated[Path, typer.Option(help="The encoder.")] = Path("data/raw/models/minilm"),
    steps: Annotated[int, typer.Option(min=WARM_UP, help="Steps of the student per turn.")] = 24,
    teacher_steps: Annotated[int, typer.Option(min=WARM_UP, help="Steps of the teacher per turn.")] = 8,
    repeats: Repeats = 3,
    threads: Annotated[
        list[int] | None, typer.Option(min=1, help="Numbers of threads; by default one, and all cores.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda, for ours and the Trainer.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of weights, targets and the order of rows.")] = 1,
    params_file: Annotated[Path, typer.Option(help="Sizes.")] = Path("benchmarks/mtl.yaml"),
    out: Out = RESULTS,
) -> None:
    """Measure and write the results."""
    cores = usable_cores()
    counts = sorted(set(threads or [1, cores] if device == "cpu" else [cores]))
    fact = facts(PACKAGES, cores, " and ".join(map(str, counts)))
    params = load_params(params_file)
    source, samples = some_pairs(task, texts, pairs)
    works = [
        student_work(params, model, samples, steps, seed, resolve_device(device)),
        teacher_work(params, model, samples, teacher_steps, seed, resolve_device(device)),
    ]
    checks, not_run = _checks(works)
    contestants = [contestant for work in works for contestant in _contestants(work, counts, work.name not in not_run)]
    # A product of bfloat16 takes a minute on a processor without units for it.
    precisions = [name for name in PRECISIONS if any(contestant.precision == name for contestant in contestants)]
    peaks = {
        f"peak: {precision}, threads: {threads} (GFLOP/s)": (precision, threads)
        for precision in precisions
        for threads in counts
    }
    turns = {name: functools.partial(_product, *setting, device) for name, setting in peaks.items()}
    rates = take_turns(turns | {contestant.name: contestant.rate for contestant in contestants}, repeats)
    best = {peaks[name]: max(rates[name]) for name in peaks}
    results = {
        "facts": fact | {"seeds": {"weights, targets, order": seed}, "repeats": repeats},
        "data": source,
        "works": {work.name: _described(work) for work in works},
        "first_losses": checks,
        "not_run": not_run,
        "contestants": {
            contestant.name: _measured(contestant, rates[contestant.name], best) for contestant in contestants
        },
        "ours_divided_by": _ratios(contestants, rates),
        "peak_gflops": {
            precision: {str(count): round(best[precision, count], 1) for count in counts} for precision in precisions
        },
    }
    write_results("training_rates", results, _markdown(results), out)


# The contestants.


def _contestants(work: Work, counts: Sequence[int], with_peer: bool) -> list[Contestant]:
    """Return ours and the Trainer's ways to train, each with each number of threads."""
    size, precision = work.settings.batch_size, work.settings.precision
    tokens, seed = tokens_per_row(work.sentences), work.settings.seed
    ours = LengthSorted(work.sentences, size, seed).epoch(0)
    ways = [("ours", ours, precision, functools.partial(_fit, work, work.model))]
    if with_peer:
        train = functools.partial(work.peer.train, settings=work.settings)
        shuffled, grouped = (random_batches(tokens, size, seed), grouped_batches(tokens, size, seed))
        # A student's Trainer at its defaults; a teacher is compared in one number format.
        plain = "float32" if work.name == "student" else precision
        ways += [("Trainer, random batches", shuffled, plain, train)]
        ways += [("Trainer, group_by_length", grouped, precision, train)]
    return [
        Contestant(work, loop, evenly(batches, tokens, size, work.steps), number, threads, train)
        for loop, batches, number, train in ways
        for threads in counts
    ]


def _fit(work: Work, model: torch.nn.Module, batches: Sequence[np.ndarray], precision: str) -> list[float]:
    """Train a copy by the project's loop; return the time at the end of each step."""
    ends: list[float] = []
    settings = replace(work.settings, precision=precision)
    device = next(model.parameters()).device
    with tempfile.TemporaryDirectory() as folder:
        fit(
            copy.deepcopy(model),
            Given(work.sentences, batches),
            work.loss,
            lambda _: 0.0,
            settings,
            Path(folder) / "checkpoint.safetensors",
            lambda *_: ends.append(now(device)),
        )
    # The loop's determinism switch must not slow down the others.
    torch.use_deterministic_algorithms(False)
    return ends


def _product(precision: str, threads: int, device: str) -> float:
    """Return the best GFLOP/s of square products."""
    torch.set_num_threads(threads)
    return product_rate(PEAK_SIZE, precision, PEAK_TRIES, device)


# Check that it is the same work.


def _checks(works: Sequence[Work]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the first losses of both loops, by work and precision, and why a peer did not run."""
    torch.set_num_threads(1)  # contestants set their own
    checks: dict[str, Any] = {}
    not_run = {}
    for work in works:
        with optional(work.name, not_run):
            work.peer.probe()
        if work.name in not_run:
            continue
        for precision in sorted({"float32", work.settings.precision}):
            checks[f"{work.name}, {precision}"] = _compared(work, precision)
    return checks, not_run


def _compared(work: Work, precision: str) -> dict[str, Any]:
    """Train both on one batch again and again, without dropout; return their losses."""
    rows = LengthSorted(work.sentences, work.settings.batch_size, work.settings.seed).epoch(0)[0]
    batches = [rows] * CHECKED_STEPS
    losses: dict[str, list[float]] = {"ours": [], "Trainer": []}

    def loss(model: Any, batch: Batch) -> torch.Tensor:
        value = work.loss(model, batch)
        losses["ours"].append(float(value.detach()))
        return value

    _fit(replace(work, loss=loss), _without_dropout(work.model), batches, precision)
    peer = replace(work.peer, model=_without_dropout(work.peer.model))
    peer.train(batches, precision, settings=work.settings, on_loss=losses["Trainer"].append)
    differences = [abs(a - b) / abs(a) for a, b in zip(losses["ours"], losses["Trainer"], strict=True)]
    say(f"check  {work.name}, {precision}: losses {losses}")
    if max(differences) > TOLERANCES[precision]:
        raise PotstillError(
            f"{work.name}, {precision}: the losses on equal batches are {losses['ours']} by ours and "
            f"{losses['Trainer']} by the Trainer. They do not do the same work, so their rates cannot be compared."
        )
    return losses | {"greatest_relative_difference": float(f"{max(differences):.2g}")}


def _without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy without dropout."""
    copied = copy.deepcopy(model)
    for module in copied.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return copied


# The results.


def _described(work: Work) -> dict[str, Any]:
    return {
        "parameters": sum(parameter.numel() for parameter in work.model.parameters()),
        "P": matrices(work),
        "batch_size": work.settings.batch_size,
        "learning_rate": work.settings.learning_rate,
        "precision_auto": work.settings.precision,
        "steps_per_turn": work.steps,
        "tokens_per_pair": round(float(tokens_per_row(work.sentences).mean()), 1),
    }


def _measured(contestant: Contestant, rates: Sequence[float], peaks: Mapping[tuple[str, int], float]) -> dict[str, Any]:
    tokens_per_step = contestant.tokens / len(contestant.batches)
    flops = 6 * matrices(contestant.work) * float(np.median(rates))
    return {
        "tokens_per_second": summary(rates),
        "steps_per_second": summary([rate / tokens_per_step for rate in rates], 3),
        "tokens_per_step": round(tokens_per_step, 1),
        "padding": round(contestant.padding, 3),
        "share_of_peak": round(flops / 1e9 / peaks[contestant.precision, contestant.threads], 4),
    }


def _ratios(contestants: Sequence[Contestant], rates: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return ours ÷ each of the others, with the same number of threads, in tokens per second."""
    ours = {
        (contestant.work.name, contestant.threads): contestant.name
        for contestant in contestants
        if contestant.loop == "ours"
    }
    return {
        contestant.name: ratio(rates[ours[contestant.work.name, contestant.threads]], rates[contestant.name])
        for contestant in contestants
        if contestant.loop != "ours"
    }


def _markdown(results: dict[str, Any]) -> list[str]:
    rows = []
    for name, contestant in results["contestants"].items():
        against = results["ours_divided_by"].get(name)
        tokens, steps = (spread(contestant["tokens_per_second"]), spread(contestant["steps_per_second"], "{:,.2f}"))
        shares = f"{contestant['padding']:.0%}", f"{contestant['share_of_peak']:.1%}"
        rows.append([name, tokens, steps, *shares, spread(against, "{:.2f}") if against else ""])
    rows += [[f"{name}: Trainer", "not run", "", "", "", why] for name, why in results["not_run"].items()]
    header = ["contestant", "tokens/s", "steps/s", "padding", "share of peak", "ours ÷ this"]
    peaks = "; ".join(
        f"{precision} " + ", ".join(f"{rate:,.0f} (threads: {count})" for count, rate in rates.items())
        for precision, rates in results["peak_gflops"].items()
    )
    return [
        "# Training rates: tokens per second",
        "",
        f"{results['data']}. Median of {results['facts']['repeats']} turns (lowest–highest); ratios of tokens per "
        "second, turn by turn, with the same number of threads. Padding is not counted.",
        "",
        *table(header, rows),
        "",
        *[_sentence(name, work) for name, work in results["works"].items()],
        *[
            f"Same work, {name}: on equal batches, without dropout, the losses of the first {len(losses['ours'])} "
            f"steps differ by {losses['greatest_relative_difference']:g} of their value at most (first: ours "
            f"{losses['ours'][0]:.6f}, Trainer {losses['Trainer'][0]:.6f})."
            for name, losses in results["first_losses"].items()
        ],
        f"Peak, GFLOP/s: {peaks} (best product of {PEAK_SIZE} squared). FLOPs of a token: 6 · P, "
        "the matrices that every token is multiplied with; attention's products are not counted.",
        "The pipeline trains students with one thread each, one process per core, and fine-tunes a "
        "teacher with all cores.",
    ]


def _sentence(name: str, work: dict[str, Any]) -> str:
    return (
        f"The {name}: {work['parameters']:,} parameters, P = {work['P']:,}; batches of {work['batch_size']}, "
        f"{work['tokens_per_pair']} tokens a pair, learning rate {work['learning_rate']:g}, {work['steps_per_turn']} "
        f"steps a turn; `precision: auto` is {work['precision_auto']} here."
    )


if __name__ == "__main__":
    typer.run(main)
