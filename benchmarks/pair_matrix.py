"""DSE's tables 2 and 3 on this machine: all pairs of 1,000 sentences, and a query against 100,000.

Claim (Barkan et al. 2019, section 4.4): encoding each sentence once and comparing vectors is
hundreds of times as fast as a cross-encoder of the same size over a matrix of pairs, and thousands
of times as fast online.

    pip install sentence-transformers==6.2.0       # besides the project itself; optional
    python benchmarks/pair_matrix.py --sentences FILE     # a text file, one sentence per line
    python benchmarks/pair_matrix.py --sentences FILE --model data/raw/models/mpnet --name NAME
    python benchmarks/pair_matrix.py --sentences FILE --random 24 1024 --name NAME   # BERT-large

Writes benchmarks/results/NAME.{json,md}.  Systems take turns, each in a process of its own,
so that its peak memory can be measured, and with all cores.  All weights above the encoders, those
of the small students, and the pairs are drawn at random, since only their cost matters.

The cross-encoder is timed on some pairs and extrapolated to all.  Encoding, which includes
tokenisation, and comparison are timed separately.  Online, the catalogue's vectors exist already:
they are those of the sentences, drawn repeatedly with a little noise, since only their number and
width matter; the comparison includes finding the ten best.  Reading vectors from disk is not
included.  Loading and each system's first call are not timed.

The cross-encoder, DSE and the peer have the encoder in `--model`, a folder of any model that
transformers loads, or with `--random` a BERT of that many layers and values, with the model's word
pieces and random weights.  DSE takes the means of its last four layers; f has 512 units.  The small
students compare their vectors with 200 units and with as many as DSE.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
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
    facts,
    peak_mib,
    reason,
    say,
    spread,
    summary,
    table,
    write_results,
)
from transformers import AutoConfig, BertConfig, BertModel

from pipeline_lib.base.devices import DTYPES, resolve_batch_tokens, resolve_precision
from pipeline_lib.base.threads import usable_cores
from pipeline_lib.models.networks.inputs import inside, model_inputs
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder
from pipeline_lib.models.students.student import Student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.models.teacher import load_classifier, load_teacher
from pipeline_lib.models.vector_model import VectorModel, load_vector_model
from pipeline_lib.params import student_settings
from pipeline_lib.retrieval.scoring import (
    CANDIDATE_ROWS,
    CosineScorer,
    PairScorer,
    Scorer,
    scores,
)
from pipeline_lib.retrieval.top_k import best
from pipeline_lib.text.pieces import load_fast_tokenizer
from pipeline_lib.text.words import split_words
from pipeline_lib.training.distillation.initialisation import Start

CPU = torch.device("cpu")
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")
LAYERS, UNITS = 4, 512
"""DSE: the number of last layers whose means it uses, and the units of f."""
COMMON = {"embeddings": "trained", "dropout": 0.2, "max_words": 64}
SMALL = {"BiLSTM": {"architecture": "bilstm", "hidden": 100}, "static": {"architecture": "static"}}
STUDENTS = {
    f"{name}, {units} units": student_settings(COMMON | sizes | {"classifier": units})
    for name, sizes in SMALL.items()
    for units in (200, UNITS)
}
WORD_VALUES = 128
"""Values per word vector of the students."""
CROSS, PEER = "cross-encoder", "sentence-transformers"
BEST = 10
QUERIES = 20
"""Single queries encoded per turn; their mean is reported."""


@dataclass(frozen=True)
class Work:
    """What is measured; see :func:`main`."""

    model: Path
    texts: list[str]
    pairs: int
    catalogue: int
    greater: int
    max_length: int
    seed: int


@dataclass(frozen=True)
class System:
    """A sentence encoder, and ways to compare its vectors.

    :ivar compare: name to (all scores of two sets of vectors, the best of a catalogue for a query).
    """

    encode: Callable[[Sequence[str]], np.ndarray]
    compare: dict[str, tuple[Callable[..., Any], Callable[..., Any]]]


def main(
    sentences: Annotated[Path, typer.Option(help="A text file, one sentence per line.")],
    model: Annotated[
        Path, typer.Option(help="The encoder: a folder of a transformers model.")
    ] = Path("data/raw/models/minilm"),
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
    repeats: int = 3,
    seed: Annotated[int, typer.Option(help="Seed of the texts' order and of all weights.")] = 1,
    name: Annotated[str, typer.Option(help="Name of the results.")] = "pair_matrix",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RESULTS,
) -> None:
    """Measure and write the results."""
    fact = facts(PACKAGES, usable_cores(), torch.get_num_threads())
    lines = [line for line in sentences.read_text("utf-8").splitlines() if line.strip()]
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
    pools = {name: ProcessPoolExecutor(1, get_context("spawn")) for name in _MAKERS}
    not_run, timings = {}, {name: [] for name in _MAKERS}
    for name, pool in pools.items():
        try:
            pool.submit(_start, name, work).result()
        except Exception as error:
            # A peer that cannot be imported is reported, and does not end the run.
            if name != PEER:
                raise
            not_run[name] = reason(error)
            say(f"{name} not run: {not_run[name]}")
    running = {name: pool for name, pool in pools.items() if name not in not_run}
    for repeat in range(repeats):
        for name, pool in running.items():
            timings[name].append(pool.submit(_turn).result())
            say(f"repeat {repeat + 1}/{repeats}  {name}: {timings[name][-1]}")
    peaks = {name: pool.submit(peak_mib, resource.RUSAGE_SELF) for name, pool in running.items()}
    extra = {
        name: [running[name].submit(_greater).result() for _ in range(repeats)]
        for name in STUDENTS
        if work.greater
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

_own: dict[str, Any] = {}


def _start(name: str, work: Work) -> None:
    """Build the system, and call all of it once."""
    torch.manual_seed(work.seed)
    _own.update(work=work, name=name, system=_MAKERS[name](work))
    if name != CROSS:
        _own["vectors"] = _own["system"].encode(work.texts)
        _own["catalogue"] = _drawn(_own["vectors"], work.catalogue, work.seed)
        for matrix, search in _own["system"].compare.values():
            matrix(_own["vectors"][:64], _own["vectors"])
            search(_own["vectors"][:1], _own["vectors"])
    else:
        _own["system"](list(zip(work.texts[:64], work.texts[:64], strict=True)))


def _turn() -> dict[str, float]:
    """Return the seconds of each part of the work, once."""
    work, system = _own["work"], _own["system"]
    if _own["name"] == CROSS:
        draw = np.random.default_rng(work.seed).integers(0, len(work.texts), (work.pairs, 2))
        pairs = [(work.texts[first], work.texts[second]) for first, second in draw]
        return {"pairs": _seconds(partial(system, pairs))}
    vectors = _own["vectors"]
    seconds = {
        "encode": _seconds(partial(system.encode, work.texts)),
        "query": sum(
            _seconds(partial(system.encode, [text])) for text in work.texts[:QUERIES]
        ) / QUERIES,
    }  # fmt: skip
    for name, (matrix, search) in system.compare.items():
        seconds[f"matrix, {name}"] = _seconds(partial(matrix, vectors, vectors))
        seconds[f"search, {name}"] = _seconds(partial(search, vectors[:1], _own["catalogue"]))
    return seconds


def _greater() -> dict[str, float]:
    """Return the seconds of a query against the larger catalogue."""
    work = _own["work"]
    if len(_own["catalogue"]) != work.greater:
        _own["catalogue"] = _drawn(_own["vectors"], work.greater, work.seed)
    return {
        name: _seconds(partial(search, _own["vectors"][:1], _own["catalogue"]))
        for name, (_, search) in _own["system"].compare.items()
    }


def _deviation() -> dict[str, float]:
    """Return how far f in bfloat16 is from f in float32, in standard deviations of the scores."""
    vectors, compare = _own["vectors"], _own["system"].compare
    exact, rounded = (compare[name][0](vectors, vectors) for name in ("float32", "bfloat16"))
    deviation = (rounded - exact) / exact.std()
    top = [np.argsort(-matrix, 1, kind="stable")[:, :BEST] for matrix in (exact, rounded)]
    shared = [len({*a} & {*b}) / BEST for a, b in zip(*top, strict=True)]
    return {
        "greatest": round(float(np.abs(deviation).max()), 5),
        "root_mean_square": round(float(np.sqrt((deviation**2).mean())), 5),
        f"shared_of_{BEST}_best": round(float(np.mean(shared)), 4),
    }


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _drawn(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return ``count`` of the vectors, drawn with a little noise, float32."""
    draw = np.random.default_rng(seed)
    noisy = np.empty((count, vectors.shape[1]), np.float32)
    for start in range(0, count, CANDIDATE_ROWS):
        part = noisy[start : start + CANDIDATE_ROWS]
        draw.standard_normal(out=part, dtype=np.float32)
        part *= 0.01
        part += vectors[draw.integers(0, len(vectors), len(part))]
    return noisy


# The systems.


def _cross_encoder(work: Work) -> Callable[[Sequence[tuple[str, str]]], np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        # With a head of two classes, as fine-tuning would leave it.
        classifier, tokenizer = load_classifier(work.model, ["no", "yes"])
        classifier.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        teacher = load_teacher(Path(folder), CPU, resolve_precision("auto", CPU))
    tokens = resolve_batch_tokens(None, CPU)
    return lambda pairs: teacher.predict(pairs, work.max_length, tokens)


@dataclass
class LastLayers(VectorModel):
    """What DSE's encoder computes: the means of the last layers, without the first token."""

    @property
    def width(self) -> int:
        """Values per vector."""
        return LAYERS * int(self.model.config.hidden_size)

    def forward(self, batch: Any) -> torch.Tensor:
        """Return the vectors of a batch of sentences, shape (rows, width)."""
        states = self.model(**model_inputs(batch), output_hidden_states=True).hidden_states
        counted = inside(batch["ids"], batch["lengths"])
        counted[:, 0] = False
        share = counted / counted.sum(1, keepdim=True).clamp(min=1)
        return torch.cat(
            [(state.float() * share[:, :, None]).sum(1) for state in states[-LAYERS:]], dim=1
        )


def _dse(work: Work) -> System:
    precision = resolve_precision("auto", CPU)
    model = LastLayers(**vars(load_vector_model(work.model, "cpu", precision, "mean")))
    tokens = resolve_batch_tokens(None, CPU)
    encode = partial(model.predict, max_length=work.max_length, batch_tokens=tokens)
    first, last = torch.nn.Linear(4 * model.width, UNITS), torch.nn.Linear(UNITS, 1)
    layers = [(layer.weight.detach(), layer.bias.detach()) for layer in (first, last)]
    return System(encode, _ways(partial(PairScorer, *layers, None, CPU)))


def _student(name: str, work: Work) -> System:
    words = sorted({word for text in work.texts for word in split_words(text.lower())[0]})
    start = Start(build_tokenizer(words, True), len(words) + 2, WORD_VALUES)
    network = start.build(STUDENTS[name], pair=True, labels=["no", "yes"])
    student = Student(network.eval(), start.tokenizer, CPU)
    encoder = SentenceEncoder(
        student.model.encoder, student.tokenizer, STUDENTS[name].max_words, CPU
    )
    return System(encoder.encode, _ways(lambda p: PairScorer.of(student, precision=p)))


def _ways(scorer: Callable[[str], Scorer]) -> dict[str, tuple[Any, Any]]:
    """Return f in both number formats, and the cosine."""
    scorers = {name: scorer(name) for name in ("float32", "bfloat16")}
    scorers |= {"cosine": CosineScorer()}
    return {name: (partial(scores, one), partial(_search, one)) for name, one in scorers.items()}


def _search(scorer: Scorer, query: np.ndarray, catalogue: np.ndarray) -> Any:
    return best(scorer, query, _blocks(catalogue), BEST)


def _blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(vectors), CANDIDATE_ROWS):
        yield start, vectors[start : start + CANDIDATE_ROWS]


def _sentence_transformers(work: Work) -> System:
    from sentence_transformers import SentenceTransformer, util
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    # The modules that the model was published with: the package lacks the second one's settings.
    kind = {"dtype": DTYPES[resolve_precision("auto", CPU)]}
    words = Transformer(str(work.model), model_kwargs=kind)
    pooling = Pooling(words.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[words, pooling], device="cpu")
    model.max_seq_length = work.max_length
    encode = partial(model.encode, show_progress_bar=False, batch_size=128)
    search = partial(util.semantic_search, top_k=BEST)
    return System(lambda texts: encode(list(texts)), {"cos_sim": (util.cos_sim, search)})


_MAKERS: dict[str, Callable[[Work], Any]] = {
    CROSS: _cross_encoder,
    "DSE": _dse,
    **{name: partial(_student, name) for name in STUDENTS},
    PEER: _sentence_transformers,
}


# What is written.


def _scaled(timings: dict[str, list[dict[str, float]]], work: Work) -> dict[str, Any]:
    """Return the summaries of all seconds; those of the cross-encoder scaled to all pairs."""
    rates = [turn["pairs"] / work.pairs for turn in timings[CROSS]]
    cross = [
        {"matrix": len(work.texts) ** 2 * rate, "search": work.catalogue * rate} for rate in rates
    ]
    return {
        name: _summaries(cross if name == CROSS else turns)
        for name, turns in timings.items()
        if turns
    }


def _summaries(turns: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {part: summary([turn[part] for turn in turns], 6) for part in turns[0]}


def _markdown(results: dict[str, Any]) -> list[str]:
    sizes, seconds, encoder = results["sizes"], results["seconds"], results["encoder"]
    cross = seconds[CROSS]
    offline = [[CROSS, "", "", f"{cross['matrix']['median']:,.0f}", "1"]]
    online = [[CROSS, "", "", f"{1000 * cross['search']['median']:,.0f}", "1", ""]]
    for name, parts in seconds.items():
        for part, values in parts.items():
            kind, _, way = part.partition(", ")
            if not way:
                continue
            before = parts["encode" if kind == "matrix" else "query"]["median"]
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
                online.append(
                    [
                        label,
                        f"{1000 * before:,.1f}",
                        comparison,
                        f"{1000 * total:,.1f}",
                        times,
                        more,
                    ]
                )
    header = ["system", "encoder", "comparison", "together", "times as fast"]
    rounded = [
        [name, *(f"{value:.4f}" for value in deviations.values())]
        for name, deviations in results["bfloat16"].items()
    ]
    return [
        "# All pairs of a matrix, and a query against a catalogue",
        "",
        f"{results['data']}; an encoder of {encoder['layers']} layers of {encoder['width']:,} "
        f"values ({encoder['name']}). The cross-encoder is timed on {sizes['pairs']:,} pairs and "
        "scaled. Its layers, and those of DSE and of the peer, are computed in "
        f"{results['precision_auto']}, the LSTM in float32. Medians of "
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
        *[f"\n{name} did not run: {why}" for name, why in results["not_run"].items()],
    ]


if __name__ == "__main__":
    typer.run(main)
