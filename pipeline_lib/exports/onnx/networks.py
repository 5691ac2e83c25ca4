"""The students' networks as graphs of ONNX operators, with any number of rows and words.

Each function computes what the module of the same name in :mod:`pipeline_lib.models.networks` does.  The padding
after a row's words has no effect, whatever it is, and a row without words is one unknown word, as in the students.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from pipeline_lib.exports.onnx.graphs import COLUMNS, Graph
from pipeline_lib.exports.onnx.student import FIRST, SECOND
from pipeline_lib.models.networks.biattentive import BiAttentiveReader
from pipeline_lib.models.networks.encoders import (
    MULTIPLIER,
    BiLSTMEncoder,
    CNNEncoder,
    RegressionEncoder,
    SentenceBiLSTMEncoder,
    StaticEncoder,
)
from pipeline_lib.models.networks.layers import WordEmbeddings
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.text.ragged import PAD_ID

SHIFT = 29
"""Bits by which :class:`~pipeline_lib.models.networks.encoders.RegressionEncoder` mixes its keys."""


@dataclass(frozen=True)
class Words:
    """Sentences in a graph.

    :ivar ids: int64 (rows, columns), padded after the words.
    :ivar lengths: int64 (rows, 1), at least 1.
    :ivar inside: bool (rows, columns): which of the ids are words.
    """

    ids: str
    lengths: str
    inside: str


def read_words(graph: Graph, unknown: int, suffix: str = FIRST) -> Words:
    """Add the inputs of one sentence, and return the words to read."""
    ids = graph.input(f"input_ids{suffix}", COLUMNS + suffix)
    mask = graph.input(f"attention_mask{suffix}", COLUMNS + suffix)
    counts = graph.add("ReduceSum", mask, [1])
    # A batch of empty texts may have no columns at all.
    missing = graph.add("Relu", graph.add("Sub", [1], _columns(graph, ids)))
    ids = graph.add("Pad", ids, graph.add("Concat", [0, 0, 0], missing, axis=0), np.array(PAD_ID))
    numbers = _numbers(graph, ids)
    first = graph.add("Where", graph.add("Equal", numbers, [0]), [unknown], [PAD_ID])
    ids = graph.add("Where", graph.add("Less", numbers, counts), ids, first)
    lengths = graph.add("Max", counts, [1])
    return Words(ids, lengths, graph.add("Less", numbers, lengths))


def network(graph: Graph, student: StudentNetwork, unknown: int, temperature: float) -> str:
    """Add a student, and return its logits, divided by the temperature."""
    words = read_words(graph, unknown)
    second = read_words(graph, unknown, SECOND) if student.config.pair else None
    if student.config.settings.joint:
        features = biattentive(graph, student.encoder, words, second)
    elif second is None:
        features = encoder(graph, student.encoder, words)
    else:
        vectors = encoder(graph, student.encoder, _stack(graph, words, second))
        features = _compare(graph, *_halves(graph, vectors))
    if student.config.settings.classifier_units:
        layer = student.hidden[0]
        features = graph.add("Relu", graph.linear(features, layer.weight, layer.bias))
    return graph.linear(features, student.logits.weight / temperature, student.logits.bias / temperature)


def encoder(graph: Graph, module: nn.Module, words: Words) -> str:
    """Add an encoder, and return its sentence vectors (rows, width)."""
    return ENCODERS[type(module)](graph, module, words)


def bilstm(graph: Graph, module: Any, words: Words) -> str:
    """Add the last states of both directions."""
    vectors = _embed(graph, module.embeddings, graph.add("Transpose", words.ids, perm=[1, 0]))
    _, last = _lstm(graph, module, vectors, words.lengths)
    width = 2 * module.ahead.hidden_size
    return graph.add("Reshape", graph.add("Transpose", last, perm=[1, 0, 2]), [-1, width])


def sentence_bilstm(graph: Graph, module: Any, words: Words) -> str:
    """Add a BiLSTM and its projection."""
    return graph.add("Tanh", graph.linear(bilstm(graph, module, words), module.projection.weight, None))


def cnn(graph: Graph, module: Any, words: Words) -> str:
    """Add convolutions with max pooling over words."""
    vectors = _masked(graph, _embed(graph, module.embeddings, words.ids), words.inside)
    vectors = graph.add("Transpose", vectors, perm=[0, 2, 1])
    numbers, pooled = _numbers(graph, words.ids), []
    for layer in module.filters:
        (size,) = layer.kernel_size
        # Zeros after the last word, so that every filter has a value at every word.
        inputs = vectors, layer.weight, layer.bias
        answers = graph.add("Relu", graph.add("Conv", *inputs, pads=[0, size - 1]))
        windows = graph.add("Max", graph.add("Sub", words.lengths, [size - 1]), [1])
        counted = graph.cast(graph.add("Less", numbers, windows), "FLOAT")
        answers = graph.add("Mul", answers, graph.add("Unsqueeze", counted, [1]))
        pooled.append(graph.add("ReduceMax", answers, [2], keepdims=0))
    return graph.add("Concat", *pooled, axis=1)


def static(graph: Graph, module: Any, words: Words) -> str:
    """Add the mean of the word vectors."""
    return _mean(graph, _embed(graph, module.embeddings, words.ids), words.inside)


def regression(graph: Graph, module: Any, words: Words) -> str:
    """Add the words' mean and the n-grams' sum."""
    mean = None if module.embeddings is None else static(graph, module, words)
    if not module.longest:
        return mean
    buckets, counted = _ngrams(graph, module, words)
    total, squares = (
        graph.add("ReduceSum", _masked(graph, graph.add("Gather", table.weight, buckets), counted), [1], keepdims=0)
        for table in (module.table, module.squares)
    )
    norm = graph.add("Sqrt", graph.add("Max", squares, np.array(1, np.float32)))
    added = graph.add("Div", total, norm)
    return added if mean is None else graph.add("Add", mean, added)


def _ngrams(graph: Graph, module: Any, words: Words) -> tuple[str, str]:
    """Add the n-grams' buckets (rows, n-grams), and which of them are within the row."""
    longest, buckets = module.longest, module.table.num_embeddings
    padded = graph.add("Pad", words.ids, [0, 0, 0, longest - 1], np.array(PAD_ID))
    columns, positions = _columns(graph, words.ids), _numbers(graph, words.ids)
    keys, rows, counted = words.ids, [], []
    for size in range(1, longest + 1):
        if size > 1:
            end = graph.add("Add", columns, [size - 1])
            next_ids = graph.add("Slice", padded, [size - 1], end, [1])
            keys = graph.add("Add", graph.add("Mul", keys, np.array(MULTIPLIER)), next_ids)
            keys = graph.add("Add", keys, np.array(size))
        # An arithmetic right shift, as a division that rounds down.
        unit = np.array(1 << SHIFT)
        whole = graph.add("Sub", keys, graph.add("Mod", keys, unit))
        mixed = graph.add("BitwiseXor", keys, graph.add("Div", whole, unit))
        rows.append(graph.add("Mod", mixed, np.array(buckets)))
        counted.append(graph.add("Less", positions, graph.add("Sub", words.lengths, [size - 1])))
    return graph.add("Concat", *rows, axis=1), graph.add("Concat", *counted, axis=1)


ENCODERS: dict[type[nn.Module], Callable[[Graph, Any, Words], str]] = {
    BiLSTMEncoder: bilstm,
    SentenceBiLSTMEncoder: sentence_bilstm,
    CNNEncoder: cnn,
    StaticEncoder: static,
    RegressionEncoder: regression,
}
"""Encoder class to the function that adds it, for encoders of one sentence."""
BUILT = {*ENCODERS, BiAttentiveReader}
"""The encoders that have a graph here; a subclass of one computes something else."""


def biattentive(graph: Graph, module: Any, words: Words, second: Words | None) -> str:
    """Add the bi-attentive reader of a pair, or of a sentence that stands for both."""
    both = words if second is None else _stack(graph, words, second)
    vectors = _embed(graph, module.embeddings, both.ids)
    layer = module.feedforward
    vectors = graph.add("Relu", graph.linear(vectors, layer.weight, layer.bias))
    states = _states(graph, module.first, vectors, both.lengths)
    other, counted = states, both.inside
    if second is not None:
        other, counted = _swap(graph, states), _swap(graph, both.inside)
    context = _attend(graph, states, other, counted)
    apart, product = graph.add("Sub", states, context), graph.add("Mul", states, context)
    features = graph.add("Concat", states, apart, product, axis=2)
    states = _states(graph, module.second, features, both.lengths)
    sides = [(states, both.inside)] * 2
    if second is not None:
        sides = list(zip(_halves(graph, states), _halves(graph, both.inside), strict=True))
    pooled = [pool for side, inputs in enumerate(sides) for pool in _pools(graph, module, side, *inputs)]
    shared = graph.linear(graph.add("Concat", *pooled, axis=1), module.shared.weight, module.shared.bias)
    return graph.add("Relu", shared)


def _pools(graph: Graph, module: Any, side: int, states: str, inside: str) -> list[str]:
    column, pooled = graph.add("Unsqueeze", inside, [2]), []
    for pool in module.pools:
        if pool in ("max", "min"):
            worst = np.array(-np.inf if pool == "max" else np.inf, np.float32)
            inside_words = graph.add("Where", column, states, worst)
            pooled.append(graph.add(f"Reduce{pool.title()}", inside_words, [1], keepdims=0))
        elif pool == "mean":
            pooled.append(_mean(graph, states, inside))
        else:
            scores = graph.linear(states, module.scores[side].weight, None)
            weights = _softmax(graph, scores, column)
            weighted = graph.add("Mul", states, weights)
            pooled.append(graph.add("ReduceSum", weighted, [1], keepdims=0))
    return pooled


def _attend(graph: Graph, states: str, other: str, counted: str) -> str:
    """Add each word's context in the other sentence (rows, words, width)."""
    scores = graph.add("MatMul", other, graph.add("Transpose", states, perm=[0, 2, 1]))
    weights = _softmax(graph, scores, graph.add("Unsqueeze", counted, [2]))
    return graph.add("MatMul", graph.add("Transpose", weights, perm=[0, 2, 1]), other)


def _softmax(graph: Graph, scores: str, counted: str) -> str:
    """Add a softmax over axis 1, without the padding."""
    kept = graph.add("Where", counted, scores, np.array(-np.inf, np.float32))
    return graph.add("Softmax", kept, axis=1)


def _lstm(graph: Graph, module: Any, vectors: str, lengths: str) -> tuple[str, str]:
    """Add both directions of an LSTM over (words, rows, width).

    :returns: all states (words, 2, rows, hidden), zeros after a row's words, and the last ones of
        each direction (2, rows, hidden).
    """
    nets = module.ahead, module.back
    weights = [torch.stack([_gates(getattr(net, f"weight_{of}_l0")) for net in nets]) for of in ("ih", "hh")]
    biases = [torch.cat([_gates(getattr(net, f"bias_{of}_l0")) for of in ("ih", "hh")]) for net in nets]
    rows = graph.cast(graph.add("Squeeze", lengths, [1]), "INT32")
    inputs = vectors, *weights, torch.stack(biases), rows
    size = {"hidden_size": nets[0].hidden_size, "direction": "bidirectional"}
    return tuple(graph.add("LSTM", *inputs, outputs=2, **size))


def _gates(weight: torch.Tensor) -> torch.Tensor:
    """Return an LSTM's weights in ONNX's order of gates; torch has input, forget, cell, output."""
    in_, forget, cell, out = weight.chunk(4)
    return torch.cat([in_, out, forget, cell])


def _states(graph: Graph, module: Any, vectors: str, lengths: str) -> str:
    """Add a BiLSTM, and return its states (rows, words, 2 · hidden)."""
    turned = graph.add("Transpose", vectors, perm=[1, 0, 2])
    states, _ = _lstm(graph, module, turned, lengths)
    return graph.add("Reshape", graph.add("Transpose", states, perm=[2, 0, 1, 3]), [0, 0, module.width])


def _embed(graph: Graph, module: WordEmbeddings, ids: str) -> str:
    channels = [c.weight for c in (module.trained, module.static) if c is not None]
    return graph.add("Gather", torch.cat(channels, dim=1), ids)


def _mean(graph: Graph, vectors: str, inside: str) -> str:
    counted = graph.cast(inside, "FLOAT")
    total = graph.add("ReduceSum", _masked(graph, vectors, inside), [1], keepdims=0)
    return graph.add("Div", total, graph.add("ReduceSum", counted, [1]))


def _masked(graph: Graph, vectors: str, inside: str) -> str:
    column = graph.add("Unsqueeze", graph.cast(inside, "FLOAT"), [2])
    return graph.add("Mul", vectors, column)


def _compare(graph: Graph, first: str, second: str) -> str:
    product = graph.add("Mul", first, second)
    apart = graph.add("Abs", graph.add("Sub", first, second))
    return graph.add("Concat", first, second, product, apart, axis=1)


def _stack(graph: Graph, first: Words, second: Words) -> Words:
    """Return the first sentences above the second ones, the narrower ones padded."""
    columns = graph.add("Max", *(_columns(graph, side.ids) for side in (first, second)))
    sides = []
    for side in (first, second):
        missing = graph.add("Sub", columns, _columns(graph, side.ids))
        wider = graph.add("Concat", [0, 0, 0], missing, axis=0)
        sides.append(graph.add("Pad", side.ids, wider, np.array(PAD_ID)))
    ids = graph.add("Concat", *sides, axis=0)
    lengths = graph.add("Concat", first.lengths, second.lengths, axis=0)
    return Words(ids, lengths, graph.add("Less", _numbers(graph, ids), lengths))


def _halves(graph: Graph, both: str) -> list[str]:
    """Return the upper and the lower half of the rows."""
    return graph.add("Split", both, outputs=2, axis=0, num_outputs=2)


def _swap(graph: Graph, both: str) -> str:
    return graph.add("Concat", *reversed(_halves(graph, both)), axis=0)


def _columns(graph: Graph, ids: str) -> str:
    """Return how many columns there are, int64 (1,)."""
    return graph.add("Shape", ids, start=1, end=2)


def _numbers(graph: Graph, ids: str) -> str:
    """Return the numbers of the columns, int64 (columns,)."""
    end = graph.add("Squeeze", _columns(graph, ids), [0])
    return graph.add("Range", np.array(0), end, np.array(1))
