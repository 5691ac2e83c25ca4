"""The shipped parameters with changes: every kind of section, for the tests to start from."""

import copy
import functools
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import check_params
from tests.tour import TOUR

RAW = YAML(typ="safe", pure=True).load(TOUR.read_text())
HEX40 = "a" * 40
HUB = {"kind": "hub", "dataset": "d", "config": None, "revision": HEX40}
JOINT = {
    **{"student": "bilstm", "start": "vectors", "optimiser": "short"},
    **{"tasks": {"movies": "original", "tweets": "full"}},
}
PAIRS = {**{"kind": "task", "task": "neighbours", "split": "dev", "relevant": "neighbours"}, "graded": False}
BILSTM = {"kind": "student", "task": "neighbours", "method": "bilstm", "score": "f"}
RETRIEVAL = {
    "source": PAIRS,
    "queries": None,
    "systems": {
        "f": BILSTM | {"label": "neighbours"},
        "cosine": BILSTM | {"score": "cosine", "label": None},
        "sra": {"kind": "encoder", "encoder": "sra"},
        "mini": {"kind": "model", "model": "minilm", "pooling": "cls", "max_length": 64},
        "read": {"kind": "reranked", "first": "sra", "top": 20},
    },
    "teacher": {"task": "neighbours", "teacher": "minilm", "label": "neighbours", "pool": 10},
    "at": [1, 10],
}
SIMILARITY = {**{"task": "neighbours", "encoders": ["sra"], "model": "minilm", "poolings": ["cls", "mean"]}}
TUNING = "teachers.minilm.tuning"
FILES = {"kind": "files", "files": {"all": "a.tsv"}, "format": "tsv", "columns": None}
TINY = {
    **{"architecture": "bert", "model": "minilm", "depth": 2, "width": 24, "heads": 12},
    **{"feedforward": 40, "pool": "last", "classifier": None, "dropout": 0.1, "max_words": 64},
}
GENERAL = {
    **{"student": "tiny", "wikipedia": None, "teacher_runs": {"layers": [3, 6]}},
    **{"objective": {"hidden": 1.0, "attentions": 1.0}, "optimiser": "short"},
}
VARIANTS = {
    "shipped": {},
    "general": {"students.tiny": TINY, "encoders.general": GENERAL},
    "own files": {
        "tasks.movies.source": FILES,
        "models.minilm": {"kind": "path", "path": "model"},
        "vocabulary.vectors": {"kind": "file", "path": "v.txt", "format": "glove"},
        "wikipedia.source": {"kind": "files", "files": ["AA/*"], "form": "extracted"},
    },
    "hub": {
        "tasks.movies.source": HUB | {"splits": {"all": "train"}},
        "models.minilm": {"kind": "hub", "model": "m", "revision": HEX40},
        "wikipedia.source": HUB | {"split": "train"},
    },
    "neighbours": {
        "tasks.movies.source": {"kind": "neighbours", "pairs": 100, "same_article": 0.5, "dev": 0.1, "test": 0.1},
        "tasks.movies.split": None,
    },
    "joint": {"joint": {"mtl": JOINT}},
    "retrieval": {"retrieval": {"mine": RETRIEVAL}},
    "similarity": {"similarity": {"mine": SIMILARITY}},
    "glue": {
        "tasks.movies.source": {"kind": "glue", "folder": "SST-2", "files": {"all": "train.tsv"}, "columns": None}
    },
}
"""Changes that bring the other members of the unions, so that every section is met."""


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    raw = copy.deepcopy(RAW)
    for dotted, value in changes.items():
        *path, last = dotted.split(".")
        functools.reduce(dict.__getitem__, path, raw)[last] = copy.deepcopy(value)
    return raw


def error_of(raw: Any) -> str:
    with pytest.raises(PotstillError) as caught:
        check_params(raw)
    return str(caught.value)


LAYERS = {
    **{"architecture": "transformer", "model": "minilm", "layers": [0, 1, 2], "pool": "mean"},
    **{"classifier": None, "dropout": None, "max_words": 64},
}
