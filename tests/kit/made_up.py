"""Tasks and their scores, made up, for the tests of what reads them."""

from typing import Any

from pipeline_lib.params import Task
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import TaskSpeed

SPLITS = ("dev", "test")


def made_up_task(**changes: Any) -> Task:
    files = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
    values = {
        "source": {"kind": "files", "files": files, "format": "tsv", "columns": None},
        "text": ["sentence"],
        "label": "label",
        "kind": "classification",
        "labels": {"no": ["0"], "yes": ["1"]},
        "metrics": ["accuracy"],
        "positive": None,
        "split": None,
        "blocks": 1,
        "train_fraction": 1.0,
        "augment": {"n_iter": 1},
    }
    return Task.model_validate(values | changes)


def task_of_labels(**changes: Any) -> Task:
    values = made_up_task().model_dump() | {"kind": "multilabel", "metrics": ["f1_micro"]}
    values |= {"label": ["toxic", "threat", "spam"]}
    values |= {"labels": {"toxic": ["1"], "threat": ["1"], "spam": ["1"]}}
    return Task.model_validate(values | changes)


def made_up_training(**changes: Any) -> dict[str, Any]:
    """Return the fields of a training's record; keyword arguments replace or add some."""
    settings = {"optimiser": "adam", "learning_rate": 0.002, "schedule": "linear", "warmup": 0.1}
    settings |= {"batch_size": 4, "epochs": 1, "max_steps": None, "evaluate_every": None}
    settings |= {"clip_norm": 1.0, "weight_decay": 0.0, "precision": "float32", "seed": 1}
    settings |= {"select": "metric"}
    look = {"step": 20, "epoch": 1.0, "loss": 0.5, "dev": 0.9}
    values = {"best_dev": 0.9, "best_step": 20, "steps": 20, "selection": "evaluation that is best"}
    values |= {"settings": settings, "history": [look], "computed_on": "Fast CPU"}
    return values | changes


def made_up_teacher(**changes: Any) -> dict[str, Any]:
    counts = {"without_embeddings": 100, "with_embeddings": 300}
    values = {"metric": "accuracy", "best_dev": 0.9, "selection": "fine-tuned elsewhere"}
    values |= {"computed_on": "Fast CPU", "training_agreement": 0.95, "max_length": 16}
    return values | {"parameters": counts} | changes


def _seeds(mean: float, std: float, step: float) -> dict[str, Any]:
    return {"mean": mean, "std": std, "by_seed": {"1": mean, "2": mean + step}}


def _route(share: float, accuracy: float) -> dict[str, Any]:
    return {
        "share": share,
        "thresholds": {"1": 0.7, "2": 0.72},
        "routed": {"dev": share, "test": share + 0.01},
        "accuracy": dict.fromkeys(SPLITS, _seeds(accuracy, 0.003, 0.001)),
        "cost": {"dev": share + 0.07, "test": share + 0.08},
    }


def _details(gain: Any) -> dict[str, Any]:
    values = {"nll": 0.41, "ece": 0.048, "accuracy_at_50": 0.945, "accuracy_at_80": 0.878}
    scores = {name: _seeds(value, 0.002, 0.001) for name, value in values.items()}
    recalls = {"negative": _seeds(0.84, 0.01, 0.02), "positive": _seeds(0.8, 0.01, 0.02)}
    less = gain and {
        detail: {"difference": -0.2, "low": -0.3, "high": -0.1, "p": 0.01, "p_holm": 0.02} for detail in ("nll", "ece")
    }
    return {
        "temperature": None,
        "scores": dict.fromkeys(SPLITS, scores),
        "recall": dict.fromkeys(SPLITS, recalls),
        "gain": dict.fromkeys(SPLITS, less),
    }


def made_up_method(mean: float, gain: Any = None) -> dict[str, Any]:
    """Return the scores of a method whose two seeds have ``mean`` and a little more."""
    value = {"accuracy": _seeds(mean, 0.004, 0.001)}
    return {
        "student": "bilstm",
        "data": "full",
        "learned_from": "teacher" if gain else "gold",
        "teacher": "minilm",
        "baseline": "bilstm",
        "scores": dict.fromkeys(SPLITS, value),
        "agreement": dict.fromkeys(SPLITS, 0.92),
        "against_teacher": {"dev": -0.02, "test": -0.0004},
        "gain": dict.fromkeys(SPLITS, gain),
        "details": _details(gain),
        "routing": {
            "teacher_accuracy": dict.fromkeys(SPLITS, 0.91),
            "figure": 0.95,
            "stretches": {seed: [{"threshold": 0.7, "rows": 90, "right": 88}] for seed in ("1", "2")},
            "agreement": dict.fromkeys(SPLITS, 0.96),
            "best": _route(0.25, 0.906),
            "curve": [_route(0.0, mean), _route(1.0, 0.91)],
        },
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
            "floor": {"answer": "positive", "scores": floor},
            "teachers": {
                "minilm": {
                    "scores": {split: {"accuracy": 0.91} for split in SPLITS},
                    "details": {
                        "scores": dict.fromkeys(
                            SPLITS, {"nll": 0.352, "ece": 0.046} | {"accuracy_at_50": 0.97, "accuracy_at_80": 0.912}
                        ),
                        "recall": {s: {"negative": 0.857, "positive": 0.845} for s in SPLITS},
                    },
                    "precision": dict.fromkeys(SPLITS, "float32"),
                    "parameters": sizes,
                }
            },
            "methods": methods,
            "steps": [
                {"method": name, "previous": "bilstm", "changed": "answers", "gain": own["gain"]}
                for name, own in methods.items()
                if name != "bilstm"
            ],
            "shared_texts": {},
        }
    )


def with_split(scores: TaskScores, split: str, like: str = "test") -> TaskScores:
    """Return scores in which everything is known on one more split, as it is on another."""

    def extended(value: Any) -> Any:
        if isinstance(value, list):
            return [extended(item) for item in value]
        if not isinstance(value, dict):
            return value
        content = {key: extended(item) for key, item in value.items()}
        return content | ({split: content[like]} if like in content else {})

    return TaskScores.model_validate(extended(scores.model_dump()))


def made_up_form(rate: float, size: int, **changes: Any) -> dict[str, Any]:
    """Return a form's timings, twice as fast on two cores; keyword arguments replace keys."""
    rates = {
        place: {"median": factor * rate, "min": 0.9 * factor * rate, "max": 1.1 * factor * rate}
        for place, factor in (("one_core", 1), ("all_cores", 2))
    }
    values = {"bytes": size, "rates": rates, "latency_ms": 2000 / rate}
    return values | changes


def made_up_speed(**changes: Any) -> TaskSpeed:
    """Return the timings of a student and its teacher; keyword arguments replace keys."""
    student = {"torch float32": made_up_form(5000.0, 12_000_000), "onnx-int8": made_up_form(12500.0, 3_000_000)}
    teacher = {"torch float32": made_up_form(200.0, 92_000_000), "onnx": made_up_form(250.0, 92_100_000)}
    values = {
        "cpu": "Fast CPU",
        "cores": 2,
        "accelerator": None,
        "torch": "2.0",
        "onnxruntime": "1.3",
        "split": "test",
        "pair": False,
        "sentences": 2000,
        "seconds": 1.0,
        "repeats": 3,
        "seed": 1,
        "exported": "bilstm_kd_ts",
        "teachers": {"minilm": {"method": None, "forms": teacher, "not_timed": {}}},
        "students": {"bilstm": {"method": "bilstm_kd_ts", "forms": student, "not_timed": {}}},
    }
    return TaskSpeed.model_validate(values | changes)
