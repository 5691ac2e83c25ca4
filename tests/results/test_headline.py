"""The sentences that people come for, over the cases in which a part of them is not known."""

from typing import Any

import pytest

from pipeline_lib.results.collect import TaskResult
from pipeline_lib.results.expectations import SEEN, expected
from pipeline_lib.results.headline import headline
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.speed import TaskSpeed
from tests.kit.made_up import made_up_form, made_up_method, made_up_scores, made_up_speed, with_split

GAIN = {"difference": 0.019, "low": 0.004, "high": 0.033, "p": 0.006, "p_holm": 0.012}
QUALITY = (
    "movies: the best student on dev, bilstm_kd_ts, has an accuracy of 90.0 % on test (mean of 2 "
    "seeds); teacher minilm has 91.0 %."
)
AGREEMENT = "The two agree on 92.0 % of test."
UNKNOWN_SPEED = "Its speed was not measured (stage measure_speed)."


def made(**methods: Any) -> TaskScores:
    two = {"bilstm": made_up_method(0.88), "bilstm_kd_ts": made_up_method(0.9, GAIN)}
    return made_up_scores(methods or two)


def changed(scores: TaskScores, *changes: tuple[str, Any]) -> TaskScores:
    content = scores.model_dump()
    for path, value in changes:
        first, *keys, last = path.split("/")
        parts = content["methods"].values() if first == "*" else [content[first]]
        for part in parts:
            for key in keys:
                part = part[key]
            part[last] = value
    return TaskScores.model_validate(content)


def told(scores: TaskScores, speed: TaskSpeed | None = None, timed: bool = True) -> str:
    return headline(TaskResult("movies", scores, speed), timed)


def regression() -> TaskScores:
    value, splits = {"mean": 0.83, "std": 0.0, "by_seed": {"1": 0.83}}, ("dev", "test")
    return changed(
        made().model_copy(update={"metrics": ["pearson"]}),
        ("*/scores", {split: {"pearson": value} for split in splits}),
        ("teachers/minilm/scores", {split: {"pearson": 0.898} for split in splits}),
        ("floor/scores", {split: {"pearson": 0.0} for split in splits}),
    )


SLOW = {"method": "bilstm_kd_ts", "forms": {"torch float32": made_up_form(99.44, 100_000_000)}, "not_timed": {}}
HALF = made_up_method(0.5)["scores"]["dev"]
HIDDEN = [(path, None) for path in ("floor/scores/test", "teachers/minilm/scores/test", "*/scores/test")]
NOTHING = [(path, {"dev": None, "test": None}) for path in ("floor/scores", "teachers/minilm/scores", "*/scores")]


@pytest.mark.parametrize(
    ("scores", "speed", "text"),
    [
        (
            made(),
            made_up_speed(),
            f"{QUALITY} On one core it answers 12,500 sentences per second (onnx-int8), the teacher 250 (onnx): 50 "
            f"times as fast. It takes 3 MB on disk, the teacher 92 MB: 31 times as much. {AGREEMENT}",
        ),
        (made(), None, f"{QUALITY} {UNKNOWN_SPEED} {AGREEMENT}"),
        # Timings of another student than the best.
        (made(), made_up_speed(students={}), f"{QUALITY} {UNKNOWN_SPEED} {AGREEMENT}"),
        (made(), made_up_speed(pair=True), "12,500 pairs per second (onnx-int8), the"),
        (
            made(),
            made_up_speed(teachers={}),
            "12,500 sentences per second (onnx-int8). It takes 3 MB on disk. The teacher was not timed. " + AGREEMENT,
        ),
        (
            changed(made(), ("teachers/minilm/parameters", None)),
            made_up_speed(teachers={}),
            f"It takes 3 MB on disk. The teacher is no model that runs here. {AGREEMENT}",
        ),
        (
            made(),
            made_up_speed(students={"bilstm": SLOW}),
            "99.4 sentences per second (torch float32), the teacher 250 (onnx): 0.4 times as fast. It takes 100 MB on "
            "disk, the teacher 92 MB. ",
        ),
    ],
)
def test_quality_speed_size_and_agreement_come_in_order(scores: TaskScores, speed: TaskSpeed | None, text: str) -> None:
    assert text in told(scores, speed)


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (made(), f"{QUALITY} {AGREEMENT}"),
        (made(bilstm=made_up_method(0.88)), "movies: student bilstm has an accuracy of 88.0 % on test (mean"),
        # The student is chosen on dev, whatever test says.
        (changed(made(), ("methods/bilstm/scores/test", HALF)), "bilstm_kd_ts, has an accuracy of 90.0 %"),
        (changed(made(), ("methods/bilstm_kd_ts/scores/test", HALF)), "bilstm_kd_ts, has an accuracy of 50.0 %"),
        (
            changed(made(), *HIDDEN),
            "has an accuracy of 90.0 % on dev, where it was chosen too (mean of 2 seeds); teacher minilm has 91.0 %. "
            "The two agree on 92.0 % of dev.",
        ),
        (
            changed(made(), *NOTHING, ("methods/bilstm/agreement", {"dev": 0.95, "test": 0.9})),
            "movies: the student that agrees best with its teacher on dev, bilstm, was compared with teacher minilm "
            "only: nothing is labelled. The two agree on 95.0 % of dev.",
        ),
        (
            regression(),
            "movies: the best student on dev, bilstm, has a Pearson correlation of 83.0 % on test; teacher minilm has "
            "89.8 %. The scores of the two on test have a correlation of 92.0 %.",
        ),
        (
            changed(made(), ("teachers/minilm/scores/test", None), ("*/agreement/test", None)),
            "teacher minilm did not answer test.",
        ),
        (made().model_copy(update={"methods": {}, "steps": []}), "movies: no student has been evaluated."),
    ],
)
def test_what_there_is_not_is_left_out_or_said(scores: TaskScores, text: str) -> None:
    assert text in told(scores, made_up_speed(), timed=False)


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (0.85, "The best regression on labels, tfidf, has 85.0 %: the student is 5.0 points better. The two agree"),
        # On dev it is no better than the student, on test it is.
        (0.9, "The best regression on labels, tfidf, has 90.0 %: the student is not better. The two agree"),
        (0.92, "It is a regression, fitted to the labels in seconds: no distilled student is better on dev."),
    ],
)
def test_a_student_is_held_against_regressions_on_labels(mean: float, text: str) -> None:
    yardsticks = {name: made_up_method(m) | {"yardstick": True} for name, m in (("tfidf", mean), ("pieces", 0.7))}
    scores = made(bilstm_kd_ts=made_up_method(0.9, GAIN), **yardsticks)
    assert text in told(scores, timed=False)
    none = (("methods/tfidf/yardstick", False), ("methods/pieces/yardstick", False))
    assert "regression" not in told(changed(scores, *none), timed=False)


FEW = {"dev": 60, "test": 1000}


@pytest.mark.parametrize(
    ("mean", "train", "end"),
    [
        (0.895, 240, "it gained as much here."),
        (0.5, 240, "it gained more here."),
        (0.93, 40, "it gained less here."),
        (0.895, 3000, None),
    ],
)
def test_what_few_rows_gained_elsewhere_is_said_after_the_run(mean: float, train: int, end: str | None) -> None:
    methods = {"bilstm_kd_ts": made_up_method(0.9, GAIN), "tfidf": made_up_method(0.5) | {"yardstick": True}}
    few = made(**methods).model_copy(update={"rows": FEW | {"train": train}})
    # What is best is chosen on dev, and compared on test.
    text = told(changed(few, ("methods/tfidf/scores/test", made_up_method(mean)["scores"]["test"])), timed=False)
    seen = expected(train + 60)
    assert (f"Elsewhere, {seen}: {end}" in text) if end else ("Elsewhere" not in text and seen is None)


def test_what_is_expected_is_that_of_the_nearest_number_of_rows() -> None:
    assert [one and one.rows for one in map(expected, (49, 50, 170, 180, 540, 560, 2000, 2001))] == [
        None, 100, 100, 300, 300, 1000, 1000, None
    ]  # fmt: skip
    assert all(low < high for seen in SEEN for low, high in (seen.above, seen.below))


@pytest.mark.parametrize(
    ("correlation", "taught", "rows", "best"),
    [
        # Few rows of dev cannot tell two students apart; how their probabilities follow the teacher's can.
        ((0.9, 0.8), 0.91, FEW, "the student that follows its teacher best on dev, whose 60 rows are few, bilstm,"),
        ((0.8, 0.9), 0.91, FEW, "whose 60 rows are few, bilstm_kd_ts,"),
        # Of many rows, or where not all are known, the labels decide; and where the teacher fails on dev.
        ((0.9, 0.8), 0.91, {"dev": 500, "test": 1000}, "the best student on dev, bilstm_kd_ts,"),
        ((0.9, None), 0.91, FEW, "the best student on dev, bilstm_kd_ts,"),
        ((0.9, 0.8), 0.5, FEW, "the best student on dev, bilstm_kd_ts,"),
    ],
)
def test_on_few_rows_of_dev_the_teacher_is_followed(
    correlation: tuple[float, float | None], taught: float, rows: dict[str, int], best: str
) -> None:
    follows = dict(zip(("bilstm", "bilstm_kd_ts"), correlation, strict=True))
    scores = changed(
        made().model_copy(update={"rows": rows}),
        ("teachers/minilm/scores/dev", {"accuracy": taught}),
        *((f"methods/{name}/correlation", {"dev": value, "test": value}) for name, value in follows.items()),
    )
    assert best in told(scores, timed=False)


ONE_SIDED = {split: {"positive": HALF["accuracy"]} for split in ("dev", "test")}


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            ("teachers/minilm/faults", ["mine: it says bad for good."]),
            "movies: WARNING: mine: it says bad for good. The",
        ),
        (("rows/test", 99), "WARNING: test has only 99 rows, so its scores say little."),
        (("*/details/recall", ONE_SIDED), "WARNING: test has no row of negative."),
        (("floor/scores/test", {"accuracy": 0.95}), "WARNING: the constant answer positive is better, 95.0 % on test."),
    ],
)
def test_what_makes_scores_worth_little_comes_first(change: tuple[str, Any], warning: str) -> None:
    assert "WARNING" not in told(made(), timed=False)
    assert warning in told(changed(made(), change), timed=False)


def test_further_splits_come_last() -> None:
    scores = with_split(made(), "test_b")
    scores = changed(
        scores,
        ("*/scores/test_b", {"accuracy": {"mean": 0.704, "std": 0.0, "by_seed": {"1": 0.704}}}),
        ("teachers/minilm/scores/test_b", {"accuracy": 0.75}),
    )
    last = "On test_b it has 70.4 %; teacher minilm has 75.0 %."
    assert told(scores, timed=False) == f"{QUALITY} {AGREEMENT} {last}"
    scores = changed(scores, ("teachers/minilm/scores/test_b", None))
    assert told(scores).endswith("On test_b it has 70.4 %; teacher minilm did not answer test_b.")


def test_of_equally_good_students_the_smallest_is_named() -> None:
    small = made_up_method(0.9) | {"parameters": {"without_embeddings": 1, "with_embeddings": 5_999_999}}
    scores = made(large=made_up_method(0.9), small=small, third=made_up_method(0.9))
    assert scores.best_on_dev() == "small"
    assert scores.best_on_dev(["large", "third"]) == "large"
    assert scores.best_on_dev([]) is None


def test_a_method_is_compared_with_its_own_teacher() -> None:
    scores = made().model_dump()
    scores["teachers"]["large"] = scores["teachers"]["minilm"] | {
        "scores": {"dev": {"accuracy": 0.95}, "test": {"accuracy": 0.94}}
    }
    scores["methods"]["bilstm_kd_ts"]["teacher"] = "large"
    timed = made_up_speed().model_dump()["teachers"]["minilm"]
    slow = timed | {"forms": {"torch float32": made_up_form(4.0, 1_340_000_000)}}
    speed = made_up_speed(teachers={"minilm": timed, "large": slow})
    text = told(TaskScores.model_validate(scores), speed)
    assert "teacher large has 94.0 %. On one core" in text
    assert "the teacher 4 (torch float32): 3,125 times as fast. It takes 3 MB on disk, the " in text
    assert "teacher 1,340 MB: 447 times as much." in text


def test_an_accelerator_is_named_beside_one_core() -> None:
    speed = made_up_speed(accelerator="Fast GPU").model_dump()
    for kind, name, rate in (("teachers", "minilm", 9000.0), ("students", "bilstm", 90000.0)):
        rates = speed[kind][name]["forms"]["torch float32"]["rates"]
        rates["accelerator"] = {"median": rate, "min": rate, "max": rate}
    text = told(made(), TaskSpeed.model_validate(speed))
    assert (
        "50 times as fast. On the Fast GPU it answers 90,000 sentences per second (torch float32), "
        "the teacher 9,000 (torch float32): 10 times as fast. It takes 3 MB"
    ) in text
