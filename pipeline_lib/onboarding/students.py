"""Which students a task gets, and how long each of them is trained: sections of params.yaml.

Sizes and rates are those of profiles/tour.yaml and of benchmarks/sst2_rows.yaml; training lengths
follow from the number of rows.  Nothing here depends on a score.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pipeline_lib.params.yardsticks import FIT, STUDENTS

Size = Literal["small", "speed", "accuracy"]
ARCHITECTURES: dict[Size, tuple[str, ...]] = {
    "small": ("regression", "bilstm"),
    "speed": ("regression",),
    "accuracy": ("regression", "transformer"),
}
"""Architectures by choice: the fastest is a linear model, the most accurate three of the model's layers."""
FITTED, FITTED_PAIRS = "regression", "regression_of_pairs"
"""The students that are fitted; their rows on labels are yardsticks."""
ENCODED, ENCODER = "bilstm_sra", "sra"
"""The student of pairs that starts from an encoder, and the encoder's row."""
_WIKIPEDIA = 6000
"""Sentences that the encoder is trained on beside the task's own: a few minutes on two cores."""
RECIPE = {"p_mask": 0.1, "p_pos": 0.1, "p_ngram": 0.25, "ngram_max": 5}
_RANK = 64
"""Values that a word's vector has in the end: the movies' distilled students lost nothing by it."""
_BATCH = 64
_SHORT_STEPS = 378
"""Six epochs of 4,028 rows, after which training on labels alone no longer improves."""
_LONG_STEPS, _PASSES = 800, 2.25
"""Steps on the transfer set in profiles/tour.yaml, and passes over it."""
_MAX_STEPS = 6000
_WANTED_ROWS = 24_000
"""Rows of a transfer set that two cores answer in a few minutes."""
_MAX_ITERATIONS = 20
"""``n_iter`` of Tang et al. 2019, section 4.2, for SST-2."""
_GROUPS = {"": ([2.0e-3, 5.0e-3], ("bilstm", ENCODED)), "tuning_": ([1.0e-4, 3.0e-4], ("transformer",))}
"""Learning rates, and the architectures that try them, by prefix of the optimisers' names."""
_FEW = {"": {"learning_rates": [5.0e-3], "select": "last"}, "tuning_": {"select": "last"}}
"""On few rows: dev's 60 chose a rate and a step that cost one to four points on test (benchmarks/few_rows.md)."""
_STARTS = {"transformer": "model", ENCODED: ENCODER}


def iterations(texts: int) -> int:
    """Return how many synthetic rows per text make a transfer set of usual size; at least one."""
    return min(_MAX_ITERATIONS, max(1, round(_WANTED_ROWS / max(texts, 1)) - 1))


def word_limit(words: int) -> int:
    """Return where students truncate texts, given a length that few of them exceed."""
    return min(256, max(64, -(-words // 32) * 32))


def piece_limit(words: int) -> int:
    """Return where a teacher truncates such texts, at about one and a half word pieces per word."""
    return min(512, max(128, -(-words * 3 // 2 // 64) * 64))


def student_rows(names: tuple[str, ...], words: int, pieces: int, model: str, width: int) -> dict[str, Any]:
    """Return ``students``.

    :param words: where they truncate; :param pieces: where those that read word pieces do.
    :param model: the model whose word pieces and layers they use; :param width: of the sentence
        vectors that encoders are trained on.
    """
    of_words = {"classifier": 200, "embeddings": "static", "dropout": 0.2, "max_words": words}
    of_pieces = {"model": model, "classifier": 200, "dropout": None, "max_words": pieces}
    sizes: dict[str, dict[str, Any]] = {
        **{name: STUDENTS[name] | {"max_words": words} for name in (FITTED, FITTED_PAIRS)},
        "bilstm": {"architecture": "bilstm", "hidden": 100, "rank": _RANK, **of_words},
        ENCODED: {"architecture": ENCODED, "hidden": 128, "width": width, **of_words, "embeddings": "trained"},
        "transformer": {"architecture": "transformer", "layers": [0, 1, 2], "pool": "mean", **of_pieces},
    }
    return {name: sizes[name] for name in names}


def optimisers(names: tuple[str, ...], labelled: int, transfer: int, is_few: bool) -> dict[str, Any]:
    """Return ``optimisers``: a short and a long one for architectures that try the same rates.

    :param labelled: rows of the training set; :param transfer: rows of the largest transfer set.
    :param is_few: whether dev is too small to choose on.
    """
    epochs = min(40, max(3, -(-_SHORT_STEPS * _BATCH // max(labelled, 1))))
    steps = max(_LONG_STEPS, round(_PASSES * transfer / _BATCH))
    # Ten evaluations on dev.
    steps = min(_MAX_STEPS, -(-steps // 10) * 10)
    rows = {"fit": FIT} if {FITTED, FITTED_PAIRS} & {*names} else {}
    for group, (rates, members) in _GROUPS.items():
        if not set(members) & set(names):
            continue
        base = {"name": "adam", "learning_rates": rates, "schedule": "linear", "batch_size": _BATCH, "clip_norm": 1.0}
        base |= _FEW[group] if is_few else {}
        long = {"epochs": 100, "max_steps": steps, "evaluate_every": steps // 10}
        rows |= {f"{group}short": base | {"epochs": epochs}, f"{group}long": base | long}
    return rows


def encoder_sections(names: tuple[str, ...], task: str, model: str, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``encoders``, ``wikipedia`` and ``similarity``: empty where no student starts from an encoder.

    :param model: whose vectors an encoder learns; empty if the task's labels cannot tell how good their cosine is.
    :param base: the values of the default profile.
    """
    if ENCODED not in names:
        return {"encoders": {}, "wikipedia": None, "similarity": {}}
    row = base["encoders"][ENCODER] | {"student": ENCODED, "tasks": {task: "original"}}
    cosine = {"task": task, "encoders": [ENCODER], "model": model, "poolings": ["mean"]}
    sections = {"encoders": {ENCODER: row}, "wikipedia": base["wikipedia"] | {"sentences": _WIKIPEDIA}}
    return sections | {"similarity": {task: cosine} if model else {}}


def method_rows(
    names: tuple[str, ...], recipes: list[str], from_labels: bool, has_probabilities: bool
) -> dict[str, dict[str, Any]]:
    """Return ``methods``: on labels, on the teacher's answers, and on its answers to more texts.

    BiLSTMs have all three, the others the first and the last; the baseline is the first.  One that starts from an
    encoder learns scores from labels alone.

    :param recipes: ``original``, then one with more texts if there is one.
    :param from_labels: whether there are labels to learn from.
    :param has_probabilities: whether the outputs are logits: a linear model comes closer to the teacher's
        probabilities than to its logits, which are far apart where it is sure.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        baseline = name if from_labels else None
        fitted = name in (FITTED, FITTED_PAIRS)
        soft = fitted and has_probabilities
        taught = {"soft_labels": 1.0, "temperature": 1.0} if soft else {"logits": 1.0}
        if from_labels and not fitted:
            rows[name] = _row(name, "original", {"labels": 1.0}, "short", None)
        if name == ENCODED and from_labels and not has_probabilities:
            # Of scored pairs, a teacher's answers cost it 0.9 points of Pearson's r, and the transfer set 1.8.
            continue
        if name in ("bilstm", ENCODED) or len(recipes) == 1:
            rows[f"{name}_kd"] = _row(name, "original", taught, "short", baseline)
        if len(recipes) > 1:
            rows[f"{name}_kd_ts"] = _row(name, recipes[-1], taught, "long", baseline)
    return rows


def _row(student: str, data: str, objective: dict[str, float], length: str, baseline: str | None) -> dict[str, Any]:
    groups = [group for group, (_, members) in _GROUPS.items() if student in members]
    return {
        "student": student,
        "start": _STARTS.get(student, "vectors"),
        "data": data,
        "objective": objective,
        "optimiser": f"{groups[0]}{length}" if groups else "fit",
        **({"baseline": baseline} if baseline else {}),
    }
