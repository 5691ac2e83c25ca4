"""A distilled student that needs only numpy and tokenizers.

    python student.py "A joy from start to end."

    from student import Student Student("folder").predict(["A joy from start to end."]).labels

This file is copied into the folder of an exported student and is self-contained.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

BATCH = 64
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier that hashes the ids of an n-gram's words."""
Text = str | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Predictions:
    """The answers to texts or pairs, in their order.

    :ivar labels: class names; of several labels, a list of those that apply to each text; for a
        regression, the scores, float32 (texts,).
    :ivar probabilities: float32 (texts, classes), which add up to 1 unless any number of labels can
        apply; None for a regression.
    :ivar logits: float32 (texts, classes), already divided by the temperature; for a regression,
        the scores (texts, 1).
    """

    labels: list[str] | list[list[str]] | np.ndarray
    probabilities: np.ndarray | None
    logits: np.ndarray

    @classmethod
    def of(cls, logits: np.ndarray, names: Sequence[str], multilabel: bool = False) -> "Predictions":
        """Return the answers that logits stand for.

        :param logits: float (texts, classes), or (texts, 1) for a regression.
        :param names: the classes, or the one name of a regression's score.
        :param multilabel: whether any number of them can apply: those above a probability of 0.5.
        """
        if multilabel:
            chosen = [[names[n] for n in np.flatnonzero(row > 0)] for row in logits]
            return cls(chosen, sigmoid(logits), logits)
        if len(names) == 1:
            return cls(logits[:, 0], None, logits)
        probabilities = softmax(logits.astype(np.float64)).astype(np.float32)
        return cls([names[best] for best in logits.argmax(axis=1)], probabilities, logits)


class Student:
    """A student, or a sentence encoder, and its tokenizer.

    :param folder: where config.json, model.safetensors and tokenizer.json are.
    """

    def __init__(self, folder: str | Path) -> None:
        self.config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        self.weights = read_safetensors(Path(folder) / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self.tokenizer.no_padding()
        names = self.config.get("id2label", {})
        self.label_names = [names[str(number)] for number in range(len(names))]
        self.multilabel = self.config.get("problem_type") == "multi_label_classification"
        self.is_pair = self.config.get("pair", False)
        self.own = self.config["architecture"]
        self._read = getattr(self, "_read_" + self.own["architecture"])

    def predict(self, texts: Sequence[Text]) -> Predictions:
        """Return each text's class, or its labels, and probabilities, or a regression's scores."""
        return Predictions.of(self.logits(texts), self.label_names, self.multilabel)

    def logits(self, texts: Sequence[Text]) -> np.ndarray:
        """Return logits (texts, classes), divided by the temperature, or scores (texts, 1)."""

        def judge(sides: list[np.ndarray]) -> np.ndarray:
            features = sides[0]
            if self.own["architecture"] != "biattentive" and self.is_pair:
                first, second = sides
                features = np.hstack([first, second, first * second, np.abs(first - second)])
            if "hidden.0.weight" in self.weights:
                features = np.maximum(self._linear("hidden.0", features), 0)
            return self._linear("logits", features) / np.float32(self.config["temperature"])

        return self._in_batches(texts, judge)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return each sentence's vector (texts, width)."""
        return self._in_batches(texts, lambda sides: sides[0])

    def _in_batches(self, texts: Sequence[Text], finish: Callable[[list[np.ndarray]], np.ndarray]) -> np.ndarray:
        """Read texts of similar length together; return the results in the texts' order."""
        sides = list(zip(*texts, strict=True)) if self.is_pair else [texts]
        unknown = [self.config["unknown"]]
        rows = [[row.ids or unknown for row in self.tokenizer.encode_batch_fast(list(side))] for side in sides]
        order = sorted(range(len(texts)), key=lambda row: sum(len(side[row]) for side in rows))
        batches: list[tuple[list[int], np.ndarray]] = []
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            padded = [pad([side[row] for row in chosen]) for side in rows]
            if self.own["architecture"] == "biattentive":
                batches.append((chosen, finish([self._read(*padded)])))
            else:
                batches.append((chosen, finish([self._read(*side) for side in padded])))
        if not batches:
            return np.zeros((0, max(1, len(self.label_names))), np.float32)
        results = np.empty((len(texts), batches[0][1].shape[1]), np.float32)
        for chosen, values in batches:
            results[chosen] = values
        return results

    def _linear(self, name: str, values: np.ndarray) -> np.ndarray:
        product = values @ self.weights[f"{name}.weight"].T
        return product + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else product

    def _embed(self, ids: np.ndarray) -> np.ndarray:
        tables = (self.weights.get(f"encoder.embeddings.{channel}.weight") for channel in ("trained", "static"))
        return np.concatenate([table[ids] for table in tables if table is not None], axis=-1)

    def _lstm(self, name: str, vectors: np.ndarray) -> np.ndarray:
        """Return the states (rows, words, hidden) of a forward LSTM."""
        inner = self.weights[f"{name}.weight_hh_l0"].T
        bias = self.weights[f"{name}.bias_ih_l0"] + self.weights[f"{name}.bias_hh_l0"]
        inputs = vectors @ self.weights[f"{name}.weight_ih_l0"].T + bias
        states = np.empty((*inputs.shape[:2], len(inner)), np.float32)
        state = cell = np.zeros((len(inputs), len(inner)), np.float32)
        for word in range(inputs.shape[1]):
            gates = inputs[:, word] + state @ inner
            enter, forget, new, out = np.split(gates, 4, axis=1)
            cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
            states[:, word] = state = sigmoid(out) * np.tanh(cell)
        return states

    def _both_ways(self, name: str, vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return both directions' states; those after a row's words are meaningless."""
        back = self._lstm(f"{name}back", reverse(vectors, lengths))
        return np.concatenate([self._lstm(f"{name}ahead", vectors), reverse(back, lengths)], axis=2)

    def _read_bilstm(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        vectors, rows, last = self._embed(ids), np.arange(len(ids)), lengths - 1
        ahead = self._lstm("encoder.ahead", vectors)[rows, last]
        back = self._lstm("encoder.back", reverse(vectors, lengths))[rows, last]
        return np.hstack([ahead, back])

    def _read_bilstm_sra(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return np.tanh(self._linear("encoder.projection", self._read_bilstm(ids, lengths)))

    def _read_cnn(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        vectors = self._embed(ids) * inside(ids, lengths)[:, :, None]
        vectors = np.pad(vectors, [(0, 0), (0, max(self.own["widths"]) - 1), (0, 0)])
        pooled = []
        for number, size in enumerate(self.own["widths"]):
            name = f"encoder.filters.{number}"
            windows = np.lib.stride_tricks.sliding_window_view(vectors, size, axis=1)
            windows = windows[:, : ids.shape[1]]
            flat = self.weights[f"{name}.weight"].reshape(self.own["filters"], -1)
            answers = windows.reshape(*windows.shape[:2], -1) @ flat.T
            answers = np.maximum(answers + self.weights[f"{name}.bias"], 0)
            counted = inside(ids, np.maximum(lengths - size + 1, 1))
            pooled.append((answers * counted[:, :, None]).max(axis=1))
        return np.hstack(pooled)

    def _read_static(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return mean(self._embed(ids), inside(ids, lengths))

    def _read_regression(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        vectors = self._read_static(ids, lengths) if self.own["mean"] else np.float32(0)
        if not self.own["ngrams"]:
            return vectors
        table, squares = (self.weights[f"encoder.{name}.weight"] for name in ("table", "squares"))
        keys, rows, counted = ids.astype(np.uint64), [], []
        for size in range(1, min(self.own["ngrams"], ids.shape[1]) + 1):
            if size > 1:
                following = ids[:, size - 1 :].astype(np.uint64)
                keys = keys[:, :-1] * MULTIPLIER + following + np.uint64(size)
            signed = keys.view(np.int64)
            rows.append((signed ^ (signed >> 29)) % len(table))
            counted.append(inside(keys, lengths - size + 1))
        chosen, mask = np.hstack(rows), np.hstack(counted)[:, :, None]
        total, norms = ((values[chosen] * mask).sum(axis=1) for values in (table, squares))
        return vectors + total / np.sqrt(np.maximum(norms, 1))

    def _read_biattentive(self, first: tuple, second: tuple | None = None) -> np.ndarray:
        sides = [self._once(*side) for side in (first, second or first)]
        masks = [inside(*side) for side in (first, second or first)]
        pooled = []
        for side, (states, other) in enumerate((sides, sides[::-1])):
            scores = other @ states.transpose(0, 2, 1)
            weights = softmax(np.where(masks[1 - side][:, :, None], scores, -np.inf), axis=1)
            context = weights.transpose(0, 2, 1) @ other
            features = np.concatenate([states, states - context, states * context], axis=2)
            lengths = (first, second or first)[side][1]
            pooled += self._pools(self._both_ways("encoder.second.", features, lengths), masks[side], side)
        return np.maximum(self._linear("encoder.shared", np.hstack(pooled)), 0)

    def _once(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        vectors = np.maximum(self._linear("encoder.feedforward", self._embed(ids)), 0)
        return self._both_ways("encoder.first.", vectors, lengths)

    def _pools(self, states: np.ndarray, mask: np.ndarray, side: int) -> list[np.ndarray]:
        words, pooled = mask[:, :, None], []
        for pool in self.own["pools"]:
            if pool == "mean":
                pooled.append(mean(states, mask))
            elif pool == "self":
                scores = np.where(words, self._linear(f"encoder.scores.{side}", states), -np.inf)
                pooled.append((states * softmax(scores, axis=1)).sum(axis=1))
            else:
                sign = 1 if pool == "max" else -1
                pooled.append(sign * np.where(words, sign * states, -np.inf).max(axis=1))
        return pooled


ARCHITECTURES = ("bilstm", "bilstm_sra", "cnn", "static", "regression", "biattentive")


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return a file's float32 tensors by name, memory-mapped."""
    content = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    header.pop("__metadata__", None)
    return {
        name: content[slice(*(start + offset for offset in about["data_offsets"]))].view("<f4").reshape(about["shape"])
        for name, about in header.items()
    }


def pad(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return ids, int64 (rows, longest), padded with zeros, and their lengths."""
    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), lengths.max()), np.int64)
    ids[inside(ids, lengths)] = [number for row in rows for number in row]
    return ids, lengths


def inside(ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return which columns are within their row's length, bool (rows, columns)."""
    return np.arange(ids.shape[1]) < lengths[:, None]


def reverse(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return each row's words in reverse order, with the padding still after them."""
    columns = np.arange(vectors.shape[1])
    places = lengths[:, None] - 1 - columns
    places = np.where(places >= 0, places, columns)
    return np.take_along_axis(vectors, places[:, :, None], axis=1)


def mean(vectors: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return each row's mean of the vectors that the mask keeps."""
    total = (vectors * counted[:, :, None]).sum(axis=1)
    return total / counted.sum(axis=1, keepdims=True).astype(np.float32)


def softmax(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the softmax along an axis."""
    exponents = np.exp(values - values.max(axis=axis, keepdims=True))
    return exponents / exponents.sum(axis=axis, keepdims=True)


def sigmoid(values: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-values)), computed with tanh to avoid overflow."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * values) + np.float32(0.5)


def main(texts: Iterable[str]) -> None:
    """Print each text's answer, or its vector; a tab separates the sentences of a pair."""
    student = Student(Path(__file__).parent)
    for text in texts:
        # No text gives the terminal orders.
        shown = "".join(char if char.isprintable() or char == "\t" else repr(char)[1:-1] for char in text)
        if not student.label_names:
            print(json.dumps(student.encode([text])[0].tolist()))
            continue
        if student.is_pair and "\t" not in text:
            sys.exit(f"{text!r:.80}: not a pair. Separate the two sentences by a tab.")
        answer = student.predict([tuple(text.split("\t", 1)) if student.is_pair else text])
        if answer.probabilities is None:
            print(f"{student.label_names[0]}\t{answer.labels[0]:.4f}\t{shown}")
        elif student.multilabel:
            shares = answer.probabilities[answer.logits > 0]
            print(f"{', '.join(answer.labels[0])}\t{', '.join(f'{p:.4f}' for p in shares)}\t{shown}")
        else:
            print(f"{answer.labels[0]}\t{answer.probabilities.max():.4f}\t{shown}")


if __name__ == "__main__":
    main(sys.argv[1:] or (line.rstrip("\n") for line in sys.stdin))
