"""What the papers' profiles name, tiny: data sets and models of the hub, and word vectors.

They are folders in the hub's layout below ``data/input``, with the names, columns, label numbers,
hidden test labels and names of weights that they have on the hub.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.corpora.wikipedia.wikis import article_text
from tests.kit.hub_folders import write_card
from tests.pipeline.corpus import sentences

PAPERS = ("tang", "thesis", "thesis_mkd", "sra", "dse")
GLUE = {
    "cola": (["sentence"], ["unacceptable", "acceptable"]),
    "sst2": (["sentence"], ["negative", "positive"]),
    "mrpc": (["sentence1", "sentence2"], ["not_equivalent", "equivalent"]),
    "qqp": (["question1", "question2"], ["not_duplicate", "duplicate"]),
    "stsb": (["sentence1", "sentence2"], None),
    "mnli": (["premise", "hypothesis"], ["entailment", "neutral", "contradiction"]),
    "qnli": (["question", "sentence"], ["entailment", "not_entailment"]),
    "rte": (["sentence1", "sentence2"], ["entailment", "not_entailment"]),
    "wnli": (["sentence1", "sentence2"], ["not_entailment", "entailment"]),
}
"""The text columns and the classes of each configuration of nyu-mll/glue; None: scores."""
ROWS = {"train": 64, "validation": 24, "test": 12}
BERTS = {"google-bert/bert-base-uncased": (12, 12), "google-bert/bert-large-uncased": (24, 16)}
"""Layers and heads of the models, which rows of the profiles count on."""


def write_inputs(folder: Path) -> None:
    write_glue(folder / "nyu-mll/glue")
    write_wikipedia(folder / "wikimedia/wikipedia")
    for name, (layers, heads) in BERTS.items():
        write_bert(folder / name, layers, heads)
    write_vectors(folder)


def write_glue(folder: Path) -> None:
    """Write GLUE as nyu-mll/glue has it: a folder per configuration, a Parquet file per split."""
    infos, files = [], {}
    for config, (columns, classes) in GLUE.items():
        names = {str(number): name for number, name in enumerate(classes or [])}
        kinds = dict.fromkeys(columns, "string") | {"label": {"class_label": {"names": names}} if names else "float32"}
        features = [{"name": name, "dtype": kind} for name, kind in (kinds | {"idx": "int32"}).items()]
        infos.append({"config_name": config, "features": features})
        (folder / config).mkdir(parents=True)
        tables = dict(_splits(config, columns, classes))
        for split, table in tables.items():
            pq.write_table(table, folder / config / f"{split}-00000-of-00001.parquet")
        files[config] = {split: f"{config}/{split}-*" for split in tables}
    write_card(folder, files, dataset_info=infos)


def _splits(config: str, columns: list[str], classes: list[str] | None) -> list[tuple[str, pa.Table]]:
    """Return the rows of each split; the labels of a test split are -1, as on the hub."""
    texts = iter([text for rows in sentences().values() for _, text in rows])
    pairs = itertools.permutations([text for text in texts], len(columns))
    kinds = ("matched", "mismatched") if config == "mnli" else ("",)
    names = ["train"] + [f"{s}_{k}".strip("_") for s in ("validation", "test") for k in kinds]
    tables = []
    for name in names:
        rows = ROWS[name.partition("_")[0]]
        texts_of_split = list(itertools.islice(pairs, rows))
        labels: Any = np.arange(rows) % 6 if classes is None else np.arange(rows) % len(classes)
        labels = np.full(rows, -1) if name.startswith("test") else labels
        label = pa.array(labels, pa.float32() if classes is None else pa.int64())
        data = dict(zip(columns, map(list, zip(*texts_of_split, strict=True)), strict=True))
        data |= {"label": label, "idx": pa.array(range(rows), pa.int32())}
        tables.append((name, pa.table(data)))
    return tables


def write_wikipedia(folder: Path, articles: int = 12) -> None:
    numbers = range(articles)
    columns = {
        "id": [str(10 + number) for number in numbers],
        "url": [f"https://en.wikipedia.org/wiki/Place%20{number}" for number in numbers],
        "title": [f"Place {number}" for number in numbers],
        "text": [article_text(number) for number in numbers],
    }
    (folder / "20231101.en").mkdir(parents=True)
    write_card(folder, {"20231101.en": {"train": "20231101.en/*"}})
    pq.write_table(pa.table(columns), folder / "20231101.en/train-00000-of-00001.parquet")


def write_bert(folder: Path, layers: int, heads: int) -> None:
    """Write a random BERT as pretrained, under the names that the hub's file has for its weights.

    These are older than today's: a layer norm has ``gamma`` and ``beta``.
    """
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import BertConfig, BertForPreTraining, BertTokenizer

    words = {word for rows in sentences().values() for _, text in rows for word in text.split()}
    letters = "abcdefghijklmnopqrstuvwxyz0123456789."
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    pieces += sorted({word.strip(".").lower() for word in words} - {*letters})
    tokenizer = BertTokenizer(vocab={piece: n for n, piece in enumerate(pieces)}, model_max_length=512)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=2 * heads, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * heads, max_position_embeddings=512,
        initializer_range=0.2,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    old = {".weight": ".gamma", ".bias": ".beta"}
    for name in [name for name in tensors if "LayerNorm" in name]:
        end = name[name.rindex(".") :]
        tensors[name.removesuffix(end) + old[end]] = tensors.pop(name)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_vectors(folder: Path) -> None:
    words = sorted({word for rows in sentences().values() for _, t in rows for word in t.split()})
    table = np.random.default_rng(1).normal(size=(len(words), 300)).astype(np.float32)
    rows = list(zip(words, table, strict=True))
    binary = b"".join(f"{word} ".encode() + vector.tobytes() for word, vector in rows)
    head = f"{len(words)} 300\n".encode()
    (folder / "GoogleNews-vectors-negative300.bin").write_bytes(head + binary)
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows]
    (folder / "glove.840B.300d.txt").write_text("".join(lines))
