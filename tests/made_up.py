"""Tasks and their scores, made up, for the tests of what reads them."""

from typing import Any

from pipeline_lib.evaluation.results import TaskScores
from pipeline_lib.params import Classification

SPLITS = ("dev", "test")


def made_up_task(**changes: Any) -> Classification:
    """Return a task of sentences with two classes; keyword arguments replace keys."""
    files = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
    values = {
        "source": {"kind": "files", "files": files, "format": "tsv", "columns": None},
        "text": ["sentence"],
        "label": "label",
        "kind": "classification",
        "labels": {"no": ["0"], "yes": ["1"]},
        "metrics": ["accuracy"],
        "positive": None,
        "submission": None,
        "split": None,
        "blocks": 1,
        "lexicon": None,
        "train_fraction": 1.0,
        "augment": {"n_iter": 1, "cap": None},
    }
    return Classification.model_validate(values | changes)


def made_up_method(mean: float, gain: Any = None) -> dict[str, Any]:
    """Return the scores of a method whose two seeds have ``mean`` and a little more."""
    value = {"accuracy": {"mean": mean, "std": 0.004, "by_seed": {"1": mean, "2": mean + 0.001}}}
    return {
        "student": "bilstm",
        "data": "full",
        "teacher": "minilm",
        "baseline": "bilstm",
        "scores": dict.fromkeys(SPLITS, value),
        "agreement": dict.fromkeys(SPLITS, 0.92),
        "against_teacher": {"dev": -0.02, "test": -0.0004},
        "gain": dict.fromkeys(SPLITS, gain),
        "parameters": {"without_embeddings": 700_000, "with_embeddings": 6_000_000},
        "ratio": {"without_embeddings": 15.3, "with_embeddings": 3.77},
        "training": {
            "learning_rate": 0.003,
            "best_dev_by_rate": {"0.001": mean - 0.01, "0.003": mean},
            "rows": 16000,
            "steps": 1500,
            "batch_size": 64,
            "best_step": {"1": 1200, "2": 900},
        },
    }


def made_up_scores(methods: dict[str, Any]) -> TaskScores:
    """Return the scores of a task with these methods; a teacher and a floor are made up too."""
    sizes = {"without_embeddings": 10_700_000, "with_embeddings": 22_600_000}
    floor = {"dev": {"accuracy": 0.5}, "test": {"accuracy": 0.52}}
    return TaskScores.model_validate(
        {
            "metrics": ["accuracy"],
            "f1_label": None,
            "labels": ["negative", "positive"],
            "rows": {"train": 8000} | dict.fromkeys(SPLITS, 1000),
            "selection": "The best was chosen on dev.",
            "evaluate": {"resamples": 1000, "confidence": 0.95, "seed": 1},
            "floor": {"answer": "positive", "scores": floor},
            "teachers": {
                "minilm": {
                    "scores": {split: {"accuracy": 0.91} for split in SPLITS},
                    "precision": dict.fromkeys(SPLITS, "float32"),
                    "parameters": sizes,
                },
            },
            "methods": methods,
            "shared_texts": {},
        }
    )
