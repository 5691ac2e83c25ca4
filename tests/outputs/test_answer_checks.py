"""Whether answers belong to their texts, by labels and by words."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.checks import check_order, check_related, describe_answers
from pipeline_lib.outputs.files.keyed_table import KeyedTable, Origins
from pipeline_lib.params import Task
from pipeline_lib.shards.training_records import AnswersRecord

from .answer_files import TASK, TEXTS, Lines, gather_answers, lines, score_task, settings, write_rows


def test_answers_of_other_texts_are_refused_where_labels_are_known(tmp_path: Path) -> None:
    labels = [number % 3 // 2 for number in range(60)]
    rows = [
        {"text": text, "probs": {"yes": 0.8 if label else 0.1 + number / 1000}}
        for number, (text, label) in enumerate(zip(TEXTS, labels, strict=True))
    ]
    splits = {
        "train": write_rows(tmp_path / "train", TEXTS[:50], labels[:50]),
        "dev": write_rows(tmp_path / "dev", TEXTS[50:], labels[50:]),
    }

    def described(rows: Lines) -> AnswersRecord:
        path = lines(tmp_path / "a.jsonl", rows)
        return describe_answers(gather_answers([path], settings(), TASK), TASK, splits)

    record = described(rows)
    assert (record.training_agreement, record.best_dev, record.dev_rows) == (1.0, 1.0, 10)
    assert described(rows[:50]).best_dev is None
    shifted = [row | {"text": text} for row, text in zip(rows, TEXTS[1:] + TEXTS[:1], strict=True)]
    with pytest.raises(PotstillError, match=r"answers to 60 labelled texts .* shifted"):
        described(shifted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("task", [TASK, score_task()])
@pytest.mark.parametrize("answered", [(0, 1), (1, 0), (1, 1), (2, 2), (3, 0)])
def test_few_answers_are_described_without_a_warning(tmp_path: Path, task: Task, answered: tuple[int, int]) -> None:
    splits = {
        "train": write_rows(tmp_path / "train", TEXTS[:50], [0, 1] * 25),
        "dev": write_rows(tmp_path / "dev", TEXTS[50:], [0, 1] * 5),
    }
    texts = TEXTS[: answered[0]] + TEXTS[50 : 50 + answered[1]]
    value = 1.0 if (task.kind == "regression") else "yes"
    path = lines(tmp_path / "a.jsonl", [{"text": text, "label": value} for text in texts])
    record = describe_answers(gather_answers([path], settings(), task), task, splits)
    assert (record.training_rows, record.dev_rows) == answered


def test_answers_to_other_texts_and_without_weight_are_refused(tmp_path: Path) -> None:
    splits = {
        "train": write_rows(tmp_path / "train", TEXTS[:50], [0, 1] * 25),
        "dev": write_rows(tmp_path / "dev", TEXTS[50:], [0, 1] * 5),
    }

    def refusal(rows: Lines) -> str:
        answers = gather_answers([lines(tmp_path / "a.jsonl", rows)], settings(), TASK)
        with pytest.raises(PotstillError) as caught:
            describe_answers(answers, TASK, splits)
        return str(caught.value)

    others = [{"text": f"other {n}", "label": ("no", "yes")[n % 2]} for n in range(40)]
    assert refusal(others).startswith("a.jsonl: none of the task's 60 texts is answered")
    weights = [{"text": text, "label": "yes", "weight": 0} for text in TEXTS[:2]]
    weights.append({"text": TEXTS[55], "label": "no", "weight": 1})
    assert "as for all 2 answers to learn from" in refusal(weights)


def ordered(labels: np.ndarray, given: np.ndarray, task: Task = TASK, files: int = 1) -> None:
    """Check answers that were read in the order of their rows, all of which have a label."""
    rows = len(labels)
    logits = given[:, None] if (task.kind == "regression") else np.eye(int(labels.max()) + 1)[given]
    # By content keys, their order is another.
    places, starts = np.random.default_rng(0).permutation(rows), [0, -(-rows // 2)][:files]
    origins = Origins([*zip(starts, [Path("a"), Path("b")], strict=False)], np.arange(rows) + 1)
    answers = KeyedTable(np.arange(rows), logits[places], None, "", {}, {}, {}, places, origins)
    check_order(answers, labels[places], np.arange(rows), task)


def noisy(draw: np.random.Generator, labels: np.ndarray, right: np.ndarray | float) -> np.ndarray:
    """Return answers that are the label in a share of the rows, and else any class."""
    classes = int(labels.max()) + 1
    other = draw.integers(classes, size=len(labels))
    return np.where(draw.random(len(labels)) < right, labels, other)


@pytest.mark.parametrize("classes", [2, 3, 20])
@pytest.mark.parametrize("step", [1, -1])
def test_answers_shifted_from_some_row_on_are_refused(classes: int, step: int) -> None:
    draw = np.random.default_rng(2)
    labels = draw.integers(classes, size=3000)
    given = noisy(draw, labels, 0.7)
    ordered(labels, given)
    shifted = np.concatenate([given[:1800], np.roll(given[1800:], step)])
    # Over all rows they agree well enough.
    check_related(labels, np.eye(classes)[shifted], TASK, "a")
    place = "up" if step == 1 else "down"
    with pytest.raises(PotstillError, match=rf"b: row 200\d to b: row 250\d: .* row {place}"):
        ordered(labels, shifted, files=2)


def test_shifted_scores_are_refused() -> None:
    draw = np.random.default_rng(3)
    labels = draw.uniform(0, 5, size=2000)
    task = score_task()
    given = labels + draw.normal(size=2000)
    ordered(labels, given, task)
    with pytest.raises(PotstillError, match=r"one row down .* shifted"):
        ordered(labels, np.concatenate([given[:1000], np.roll(given[1000:], -1)]), task)


def test_noisy_sorted_and_one_sided_answers_are_not_called_shifted() -> None:
    draw = np.random.default_rng(4)
    for classes in (2, 3, 5):
        labels = draw.integers(classes, size=5000)
        # Hardly better than chance; sorted; always the next class; wrong where it is hard.
        ordered(labels, noisy(draw, labels, 0.02))
        ordered(np.sort(labels), noisy(draw, np.sort(labels), 0.3))
        ordered(np.sort(labels), (np.sort(labels) + 1) % classes)
        ordered(labels, noisy(draw, labels, np.linspace(0.9, 0.0, 5000)))
        # One class is hardly ever named; the classes of a part are in another order.
        ordered(labels, np.where(draw.random(5000) < 0.9, classes - 1, labels))
        ordered(labels, np.where(np.arange(5000) < 2500, labels, (labels + 1) % classes))
    scores = np.sort(draw.exponential(size=5000))
    ordered(scores, scores + 3.0 + draw.normal(size=5000), score_task())
