"""What pair_matrix.py compares: each system encodes sentences, and compares their vectors."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import mean_encoder, write_classifier

from pipeline_lib.base.devices import DTYPES, resolve_batch_tokens, resolve_precision
from pipeline_lib.base.words import split_words
from pipeline_lib.models.networks.layers import inside, model_inputs
from pipeline_lib.models.opening import load_teacher
from pipeline_lib.models.students.sentence_encoder import SentenceEncoder
from pipeline_lib.models.students.student import Student
from pipeline_lib.models.students.vocabulary import build_tokenizer
from pipeline_lib.models.vector_model import VectorModel, load_vector_model
from pipeline_lib.params import student_settings
from pipeline_lib.retrieval.scoring import CANDIDATE_ROWS, QUERY_ROWS, CosineScorer, PairScorer, Scorer, best
from pipeline_lib.training.distillation.initialisation import Start

CPU = torch.device("cpu")
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


@dataclass(frozen=True)
class Work:
    """What is measured; see ``main`` of pair_matrix.py."""

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


def _cross_encoder(work: Work) -> Callable[[Sequence[tuple[str, str]]], np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        written = write_classifier(work.model, Path(folder), work.seed)
        teacher = load_teacher(written, CPU, resolve_precision("auto", CPU))
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
        return torch.cat([(state.float() * share[:, :, None]).sum(1) for state in states[-LAYERS:]], dim=1)


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
    encoder = SentenceEncoder(student.model.encoder, student.tokenizer, STUDENTS[name].max_words, CPU)
    return System(encoder.encode, _ways(lambda p: PairScorer.of(student, precision=p)))


def _ways(scorer: Callable[[str], Scorer]) -> dict[str, tuple[Any, Any]]:
    """Return f in both number formats, and the cosine."""
    scorers = {name: scorer(name) for name in ("float32", "bfloat16")}
    scorers |= {"cosine": CosineScorer()}
    return {name: (partial(_scores, one), partial(_search, one)) for name, one in scorers.items()}


def _scores(scorer: Scorer, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the scores of all pairs, float32 (first, second), computed in blocks."""
    matrix = np.empty((len(first), len(second)), np.float32)
    for top in range(0, len(first), QUERY_ROWS):
        prepared = scorer.prepare(first[top : top + QUERY_ROWS])
        for left, block in _blocks(second):
            scored = scorer.block(prepared, block).cpu().numpy()
            matrix[top : top + QUERY_ROWS, left : left + CANDIDATE_ROWS] = scored
    return matrix


def _search(scorer: Scorer, query: np.ndarray, catalogue: np.ndarray) -> Any:
    return best(scorer, query, _blocks(catalogue), BEST)


def _blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(vectors), CANDIDATE_ROWS):
        yield start, vectors[start : start + CANDIDATE_ROWS]


def _sentence_transformers(work: Work) -> System:
    from sentence_transformers import util

    kind = {"dtype": DTYPES[resolve_precision("auto", CPU)]}
    model = mean_encoder(work.model, model_kwargs=kind)
    model.max_seq_length = work.max_length
    encode = partial(model.encode, show_progress_bar=False, batch_size=128)
    search = partial(util.semantic_search, top_k=BEST)
    return System(lambda texts: encode(list(texts)), {"cos_sim": (util.cos_sim, search)})


MAKERS: dict[str, Callable[[Work], Any]] = {
    CROSS: _cross_encoder,
    "DSE": _dse,
    **{name: partial(_student, name) for name in STUDENTS},
    PEER: _sentence_transformers,
}
