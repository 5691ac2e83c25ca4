"""The usual ways to run a teacher: sentence-transformers, transformers' pipeline, OpenVINO."""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import optional, rate, say

FORMATS = ("float32", "bfloat16", "float16")
BATCHES, ACCELERATOR_BATCHES = (32, 128, 256), (32, 256, 1024, 4096)
Run = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Setup:
    """What peers run, and where.

    :ivar teacher: the model's folder; :ivar cores: of the CPU.
    :ivar pools: sentence-transformers' models with their pools of processes, to be stopped.
    """

    teacher: Path
    max_length: int
    device: str
    precisions: Sequence[str]
    cores: int
    pools: list[tuple[Any, Any]] = field(default_factory=list)

    def require_cpu(self) -> None:
        """Raise an error on an accelerator, where a peer is not run."""
        if self.device != "cpu":
            raise RuntimeError("compared on CPUs only")


@contextmanager
def all_peers(setup: Setup) -> Iterator[tuple[dict[str, Run], dict[str, str]]]:
    """Yield every peer at every setting of the grid, and why others are missing."""
    peers: dict[str, Run] = {}
    not_run: dict[str, str] = {}
    loaders = {"sentence-transformers": _encoders, "pipeline": _pipelines, "openvino": _openvino}
    for name, load in loaders.items():
        with optional(name, not_run):
            peers.update(load(setup))
    try:
        yield peers, not_run
    finally:
        for model, pool in setup.pools:
            model.stop_multi_process_pool(pool)


def _encoders(setup: Setup) -> Iterator[tuple[str, Run]]:
    from sentence_transformers import SentenceTransformer

    for precision in setup.precisions:
        # Without modules.json, a folder is an encoder with mean pooling, as documented.
        model = SentenceTransformer(
            str(setup.teacher), device=setup.device, model_kwargs={"dtype": getattr(torch, precision)}
        )
        model.max_seq_length = setup.max_length
        encode = functools.partial(model.encode, show_progress_bar=False)
        for batch in BATCHES if setup.device == "cpu" else ACCELERATOR_BATCHES:
            name = f"encode, {precision}, batch {batch}"
            yield name, lambda texts, e=encode, b=batch: e(list(texts), batch_size=b)
        if setup.cores == 1 or setup.device != "cpu":
            continue
        with _one_thread():
            pool = model.start_multi_process_pool(["cpu"] * setup.cores)
        setup.pools.append((model, pool))
        for batch in BATCHES:
            name = f"encode, {precision}, batch {batch}, a pool of {setup.cores} one-thread processes"
            yield (name, lambda texts, e=encode, b=batch, p=pool: e(list(texts), batch_size=b, pool=p))


def _pipelines(setup: Setup) -> Iterator[tuple[str, Run]]:
    from transformers import pipeline

    # Its answers are Python dictionaries, made one by one.
    setup.require_cpu()
    for precision in setup.precisions:
        run = pipeline("text-classification", str(setup.teacher), dtype=getattr(torch, precision), device=setup.device)
        run = functools.partial(run, truncation=True, max_length=setup.max_length, top_k=None)
        for batch in (1, *BATCHES):
            name = f"pipeline, {precision}, batch {batch}"
            yield name, lambda texts, r=run, b=batch: r(list(texts), batch_size=b)


def _openvino(setup: Setup) -> Iterator[tuple[str, Run]]:
    """OpenVINO with our tokens and our batches, as many at a time as there are cores."""
    import openvino

    from pipeline_lib.models.opening import load_teacher

    setup.require_cpu()
    ours = load_teacher(setup.teacher, setup.device, "float32")
    ours.model.set_attn_implementation("eager")
    example = {name: torch.ones(2, 7, dtype=torch.long) for name in ("input_ids", "attention_mask")}
    graph = openvino.convert_model(_Logits(ours.model), example_input=example)
    graph.reshape({number: [-1, -1] for number in (0, 1)})
    for precision in setup.precisions:
        settings = {
            "NUM_STREAMS": str(setup.cores),
            "INFERENCE_NUM_THREADS": str(setup.cores),
            "INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[precision],
        }
        queue = openvino.AsyncInferQueue(openvino.Core().compile_model(graph, "CPU", settings), setup.cores)
        for tokens in (1024, 4096):
            name = f"OpenVINO, {precision}, batches of {tokens:,} tokens"
            yield name, functools.partial(_infer, queue, ours, setup.max_length, tokens)


class _Logits(torch.nn.Module):
    """A classifier as a function of its ids and mask."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the logits, (rows, classes)."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def _infer(queue: Any, ours: Any, max_length: int, tokens: int, texts: Sequence[str]) -> np.ndarray:
    from pipeline_lib.models.teacher import length_sorted_batches

    sentences = ours.encode(texts, max_length)
    outputs = np.empty((len(sentences), ours.width), np.float32)

    def keep(request: Any, rows: np.ndarray) -> None:
        outputs[rows] = request.get_output_tensor(0).data

    queue.set_callback(keep)
    for rows in length_sorted_batches(sentences.lengths, tokens):
        padded = sentences.padded(rows)
        mask = np.arange(padded["ids"].shape[1]) < padded["lengths"][:, None]
        queue.start_async({0: padded["ids"], 1: mask.astype(np.int64)}, rows)
    queue.wait_all()
    return outputs


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit processes that are started inside the block to one thread each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def rates_of(peers: dict[str, Run], texts: Sequence[str]) -> dict[str, float]:
    """Return the rows per second of every setting, the better of two runs."""
    rates = {}
    for name, run in peers.items():
        run(texts[:64])
        rates[name] = max(rate(run, texts) for _ in range(2))
        say(f"grid  {name}: {rates[name]:,.0f}")
    return rates


def defaults_and_best(grid: dict[str, float]) -> dict[str, str]:
    """Return the settings that take turns with ours, and their names."""
    roles: dict[str, list[str]] = {}
    peers = {"encode": "float32, batch 32", "pipeline": "float32, batch 1", "OpenVINO": None}
    for peer, default in peers.items():
        names = [name for name in grid if name.startswith(peer)]
        if f"{peer}, {default}" in names:
            roles.setdefault(f"{peer}, {default}", []).append("defaults")
        for precision in FORMATS:
            same = [name for name in names if format_of(name) == precision]
            if same:
                best = max(same, key=grid.__getitem__)
                roles.setdefault(best, []).append(f"best of the grid in {precision}")
    return {name: "; ".join(words) for name, words in roles.items()}


def format_of(name: str) -> str:
    """Return the number format that a setting names."""
    return next(precision for precision in FORMATS if precision in name)
