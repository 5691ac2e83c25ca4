"""The report, metrics.json and the terminal's table, from scores made up here."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.results.checks import task_checks
from pipeline_lib.results.collect import TaskResult, metrics, read_finished, read_results
from pipeline_lib.results.report_markdown import write_report
from pipeline_lib.results.schema import TaskScores
from pipeline_lib.results.tables import scores_table, task_tables
from pipeline_lib.results.terminal import print_result
from tests.kit.made_up import made_up_form, made_up_method, made_up_scores, made_up_speed, with_split
from tests.tour import TOUR

SPEED = made_up_speed()


@pytest.fixture
def scores() -> TaskScores:
    gain = {"difference": 0.019, "low": 0.004, "high": 0.033, "p": 0.006, "p_holm": 0.012}
    return made_up_scores({"bilstm": made_up_method(0.88), "bilstm_kd_mask_pos": made_up_method(0.9, gain)})


DETAILS = ("details/scores", "details/recall", "details/gain")


def changed(scores: TaskScores, path: str, value: Any) -> TaskScores:
    content = scores.model_dump()
    *parents, last = path.split("/")
    part = content
    for key in parents:
        part = part[key]
    part[last] = value
    return TaskScores.model_validate(content)


def hide_test(scores: TaskScores) -> TaskScores:
    teacher = "teachers/minilm"
    for part in ("floor/scores", *(f"{teacher}/{p}" for p in ("scores", *DETAILS[:2]))):
        scores = changed(scores, f"{part}/test", None)
    for name in scores.methods:
        for part in ("scores", "against_teacher", "gain", *DETAILS, "routing/best/accuracy"):
            scores = changed(scores, f"methods/{name}/{part}/test", None)
    hidden = [own.model_copy(update={"gain": own.gain | {"test": None}}) for own in scores.steps]
    scores = changed(scores, "steps", [own.model_dump() for own in hidden])
    return scores


@pytest.fixture
def params() -> Params:
    return load_params(TOUR)


def printed(result: TaskResult, params: Params, width: int) -> str:
    out = StringIO()
    print_result(Console(file=out, width=width), result, params)
    return out.getvalue()


def test_cells_are_rounded_and_signed(scores: TaskScores) -> None:
    table = scores_table(TaskResult("movies", scores, SPEED), timed=True)
    floor, teacher, _, best = table.lines
    assert floor[:3] == ["always positive", "50.0", "52.0"] and {*floor[3:]} == {"–"}
    dashes = ["–"] * 3
    assert teacher == ["teacher minilm", "91.0", "91.0", *dashes, "10.70 / 22.60", "–", "250", "1×", *dashes]
    # -0.04 points read +0.0 once rounded, never -0.0.
    gains = ["+1.9 p 0.012\n[+0.4, +3.3]", "+0.0", "92.0"]
    sizes = ["0.70 / 6.00", "15× / 3.8×", "12,500", "50×"]
    assert best == ["bilstm_kd_mask_pos", *["90.0 ± 0.4"] * 2, *gains, *sizes, "0.003", "1,500 × 64", "16,000"]


def test_one_seed_has_a_gain_without_interval(scores: TaskScores, params: Params) -> None:
    gain = {"difference": 0.019, "low": None, "high": None, "p": None, "p_holm": None}
    scores = changed(changed(scores, "methods/bilstm_kd_mask_pos/gain/test", gain), "steps", [])
    assert scores_table(TaskResult("movies", scores), timed=False).lines[-1][3] == "+1.9"
    assert "+1.9 p" not in printed(TaskResult("movies", scores), params, 120)
    found = metrics([TaskResult("movies", scores)])["movies"]["methods"]["bilstm_kd_mask_pos"]
    assert found["test"]["gain"] == {"difference": 0.019}


@pytest.mark.parametrize(
    ("low", "p_holm", "holds"),
    [(0.004, 0.012, True), (0.004, 0.06, False), (-0.001, 0.012, False), (None, None, False)],
)
def test_a_gain_is_checked_by_its_interval_and_the_corrected_p(
    scores: TaskScores, tmp_path: Path, low: float | None, p_holm: float | None, holds: bool
) -> None:
    gain = {"difference": 0.019, "low": low, "high": low and 0.033, "p": p_holm, "p_holm": p_holm}
    scores = changed(scores, "methods/bilstm_kd_mask_pos/gain/test", gain)
    checks = {own["check"]: own for own in task_checks("movies", scores, Layout(tmp_path))}
    own = checks["bilstm_kd_mask_pos is better than bilstm on test"]
    assert own["holds"] is holds
    assert f"p {p_holm}" in own["found"] if low is not None else "one seed" in own["found"]


@pytest.fixture
def further(scores: TaskScores) -> TaskScores:
    scores = with_split(scores, "test_b")
    row = "methods/bilstm_kd_mask_pos"
    gain = {"difference": -0.051, "low": -0.083, "high": -0.019, "p": 0.001, "p_holm": 0.003}
    by_seed = {"1": 0.61, "2": 0.65}
    for path, value in (
        ("rows/test_b", 1234),
        ("teachers/minilm/scores/test_b", {"accuracy": 0.685}),
        (f"{row}/scores/test_b", {"accuracy": {"mean": 0.63, "std": 0.028, "by_seed": by_seed}}),
        (f"{row}/gain/test_b", gain),
        (f"{row}/against_teacher/test_b", -0.055),
        (f"{row}/agreement/test_b", 0.777),
    ):
        scores = changed(scores, path, value)
    assert scores.further_splits == ["test_b"] and scores.decisive_split == "test"
    return scores


def test_further_splits_have_tables(scores: TaskScores, further: TaskScores, params: Params, tmp_path: Path) -> None:
    result = TaskResult("movies", further, SPEED)
    quality, *others = task_tables(result, False, "test_b").values()
    assert quality.title == "movies: accuracy on test_b"
    assert quality.header == ["System", "test_b", "Gain (test_b)", "To\nteacher", "Agree"]
    assert quality.lines[1:] == [
        ["teacher minilm", "68.5", "–", "–", "–"],
        ["bilstm", "88.0 ± 0.4", "–", "+0.0", "92.0"],
        ["bilstm_kd_mask_pos", "63.0 ± 2.8", "-5.1 p 0.003\n[-8.3, -1.9]", "-5.5", "77.7"],
    ]
    assert "on the 1,234 rows of test_b, with which nothing was chosen" in quality.caption[0]
    names = ["what each step adds on test_b", "calibration on test_b", "routing on test_b"]
    assert [table.title for table in others] == [f"movies: {name}" for name in names]
    assert "Alone\n(test_b)" in others[-1].header
    # The tables of dev and test are as they were, wherever they are shown.
    for width in (80, 200):
        text, before = (printed(TaskResult("movies", one, SPEED), params, width) for one in (further, scores))
        assert "accuracy on test_b" in text and "test_b" not in before
        assert text.startswith(before.split("Data:")[0])
    write_report(tmp_path / "a.md", [result], params)
    write_report(tmp_path / "b.md", [TaskResult("movies", scores)], params)
    report, before = ((tmp_path / name).read_text() for name in ("a.md", "b.md"))
    assert "### movies: accuracy on test_b\n" in report and "test_b" not in before
    named = [line for line in before.splitlines() if line.startswith(("|", "#"))]
    assert [line for line in report.splitlines() if line in named][: len(named)] == named


def test_further_splits_are_in_checks_and_metrics(scores: TaskScores, further: TaskScores, tmp_path: Path) -> None:
    checks = {one["check"]: one for one in task_checks("movies", further, Layout(tmp_path))}
    worse = checks["bilstm_kd_mask_pos is better than bilstm on test_b"]
    assert worse["found"] == "-5.1 points [-8.3, -1.9], p 0.003" and not worse["holds"]
    assert checks["bilstm_kd_mask_pos is better than bilstm on test"]["holds"]
    routed = [check for check in checks if "may answer alone" in check]
    assert routed == [
        f"{further.best_on_dev()}, where it may answer alone, answers as its teacher on {split}"
        for split in ("test", "test_b")
    ]
    written, before = (metrics([TaskResult("movies", one)])["movies"] for one in (further, scores))
    own = written["methods"]["bilstm_kd_mask_pos"].pop("test_b")
    assert own["accuracy"] == {"mean": 0.63, "std": 0.028}
    assert own["gain"] == {"difference": -0.051, "p": 0.001, "p_holm": 0.003}
    assert written["teachers"]["minilm"].pop("test_b")["accuracy"] == 0.685
    written["methods"]["bilstm"].pop("test_b")
    assert written == before


def test_hidden_test_falls_back_to_dev_and_says_so(scores: TaskScores, params: Params) -> None:
    result = TaskResult("movies", hide_test(scores))
    best = scores_table(result, timed=False).lines[-1]
    assert (best[2], best[4]) == ("hidden", "-2.0")
    text = printed(result, params, 120)
    assert "gain on dev" in text
    assert "Test labels are hidden" in text
    assert "on dev, where the best evaluations were also chosen" in " ".join(text.split())
    assert "test" not in metrics([result])["movies"]["teachers"]["minilm"]


def test_steps_are_shown_with_what_differs(scores: TaskScores, params: Params, tmp_path: Path) -> None:
    result = TaskResult("movies", scores)
    text = printed(result, params, 120)
    assert "movies: what each step adds on test" in text and "what it learns" in text
    write_report(tmp_path / "results.md", [result], params)
    wanted = "| bilstm_kd_mask_pos | bilstm | what it learns | +1.9 p 0.012 [+0.4, +3.3] |"
    assert wanted in (tmp_path / "results.md").read_text()
    none = TaskResult("movies", changed(scores, "steps", []))
    assert "what each step adds" not in printed(none, params, 120)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_table_fits_and_no_number_is_broken(scores: TaskScores, params: Params, width: int) -> None:
    text = printed(TaskResult("movies", scores, SPEED), params, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for whole in ("90.0 ± 0.4", "+1.9 p 0.012", "[+0.4, +3.3]", "15× / 3.8×", "12,500", "Fast CPU"):
        assert whole in text
    assert "bilstm_kd_mask_pos" in text


def test_the_caption_says_what_was_timed_and_how(scores: TaskScores, params: Params) -> None:
    text = printed(TaskResult("movies", scores, SPEED), params, 400)
    assert "in each system's fastest form of those that answer as in torch; " in text
    assert "2,000 of test, median of 3 turns of at least 1 s; Fast CPU, 2 cores, torch 2.0" in text
    assert "Only bilstm_kd_ts, the best student on dev, was exported" in text
    missing = {"onnx": "ONNX files need onnx and onnxruntime"}
    teacher = SPEED.teachers["minilm"].model_copy(update={"not_timed": missing})
    alone = {"cores": 1, "exported": None, "onnxruntime": None, "teachers": {"minilm": teacher}}
    text = printed(TaskResult("movies", scores, SPEED.model_copy(update=alone)), params, 400)
    assert "Fast CPU, 1 core, torch 2.0." in text and "was exported" not in text
    assert "Not timed: minilm, onnx: ONNX files need onnx and onnxruntime" in text


@pytest.mark.parametrize("width", [100, 140])
def test_every_form_is_shown_with_its_timings(scores: TaskScores, params: Params, width: int) -> None:
    text = printed(TaskResult("movies", scores, SPEED), params, width)
    lines = [" ".join(row.split()) for row in text.splitlines()]
    assert "teacher minilm, onnx 250 500 8 92" in lines
    assert "bilstm_kd_ts, onnx-int8 12,500 25,000 0.16 3" in lines


def test_a_form_on_the_accelerator_alone_has_no_latency(scores: TaskScores, params: Params) -> None:
    rates = {"accelerator": {"median": 9000.0, "min": 1.0, "max": 9999.0}}
    teacher = SPEED.model_dump()["teachers"]["minilm"]
    teacher["forms"]["torch bfloat16"] = made_up_form(1.0, 92_000_000, rates=rates) | {"latency_ms": None}
    speed = made_up_speed(accelerator="Fast GPU", teachers={"minilm": teacher})
    text = printed(TaskResult("movies", scores, speed), params, 140)
    assert "Fast GPU" in text
    (line,) = [" ".join(row.split()) for row in text.splitlines() if "torch bfloat16" in row]
    assert line == "teacher minilm, torch bfloat16 – – 9,000 – 92"


def test_metrics_are_plain_numbers_for_dvc(scores: TaskScores) -> None:
    found = metrics([TaskResult("movies", scores)])
    assert found["movies"]["methods"]["bilstm"]["test"]["accuracy"]["mean"] == 0.88
    teacher = found["movies"]["teachers"]["minilm"]["test"]
    assert (teacher["accuracy"], teacher["nll"], teacher["ece"]) == (0.91, 0.352, 0.046)
    assert found["movies"]["methods"]["bilstm"]["test"]["nll"] == {"mean": 0.41, "std": 0.002}
    assert "gain" not in found["movies"]["methods"]["bilstm"]["test"]


def test_markdown_holds_no_timings_and_is_stable(scores: TaskScores, params: Params, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        write_report(tmp_path / name, [TaskResult("movies", scores, SPEED)], params)
    text = (tmp_path / "a.md").read_text()
    assert text == (tmp_path / "b.md").read_text()
    assert text.startswith("# Results\n\nmovies: the best student on dev, bilstm_kd_mask_pos, has ")
    assert "per second" not in text and "MB" not in text
    assert "| bilstm_kd_mask_pos | 90.0 ± 0.4 | 90.0 ± 0.4 | +1.9 p 0.012 [+0.4, +3.3] |" in text
    assert "12,500" not in text


@pytest.mark.parametrize("width", [80, 120, 160])
def test_three_lines_say_what_distillation_gives(scores: TaskScores, params: Params, width: int) -> None:
    text = printed(TaskResult("movies", scores, SPEED), params, width)
    assert max(len(line) for line in text.splitlines()) <= width
    _, beside = text.split("movies: calibration on test")
    table, routes = beside.split("movies: routing")
    lines = [line.split() for line in table.splitlines()]
    teacher, gold, distilled = (
        next(line for line in lines if name in line) for name in ("minilm", "bilstm", "bilstm_kd_mask_pos")
    )
    assert teacher[:4] == ["teacher", "minilm", "–", "0.352"]
    assert gold[1:7] == ["gold", "0.410", "±", "0.002", "4.8", "±"]
    assert distilled[1] == "teacher"
    for whole in ("-0.200 p 0.020", "[-0.300, -0.100]", "-20.0 p 0.020", "84.0 / 80.0", "94.5"):
        assert whole in table
    (route,) = (line.split() for line in routes.splitlines() if "mask_pos" in line)
    # A student takes 250/12,500 of the teacher's time, and 26 % of the rows take both.
    assert " ".join(route[1:]) == "75.0 74.0 96.0 90.6 ± 0.3 91.0 0.28"


def test_the_report_counts_cost_in_parameters(scores: TaskScores, params: Params, tmp_path: Path) -> None:
    scores = changed(scores, "methods/bilstm/details/temperature", {"1": 1.25, "2": 0.8})
    write_report(tmp_path / "a.md", [TaskResult("movies", scores, SPEED)], params)
    text = (tmp_path / "a.md").read_text()
    assert "### movies: calibration on test" in text
    assert "| bilstm | 75.0 | 74.0 | 96.0 | 90.6 ± 0.3 | 91.0 | 0.33 |" in text
    assert "Cost (parameters) |" in text and "Cost (time)" not in text
    assert "Temperature of bilstm by seed, chosen on dev by NLL: 1.25, 0.80." in text


def test_many_classes_show_their_lowest_recall(scores: TaskScores, params: Params) -> None:
    names = [f"class{number}" for number in range(6)]
    shares = {name: 0.9 - number / 10 for number, name in enumerate(names)}
    scores = changed(scores, "labels", names)
    scores = changed(scores, "teachers/minilm/details/recall/test", shares)
    text = printed(TaskResult("movies", scores), params, 200)
    assert "the lowest of all classes" in text
    line = next(line for line in text.splitlines() if "teacher minilm" in line and "0.352" in line)
    assert line.split()[-1] == "40.0"


def test_reading_results(scores: TaskScores, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with pytest.raises(PotstillError, match="no results yet"):
        read_finished(layout, ["movies"])
    scores.write(layout.scores("movies"))
    assert [one.task for one in read_finished(layout, ["movies", "other"])] == ["movies"]
    with pytest.raises(PotstillError, match="other"):
        read_results(layout, ["movies", "other"])
    assert read_results(layout, ["movies"])[0].scores == scores


@pytest.mark.parametrize("label", ["[/bold]x", "[red]", "[link=x]", "\\\\["])
def test_labels_are_not_markup(scores: TaskScores, params: Params, label: str) -> None:
    scores = changed(scores, "floor/answer", label)
    stream = StringIO()
    console = Console(file=stream, width=200, no_color=True)
    print_result(console, TaskResult("movies", scores), params)
    assert f"always {label}" in stream.getvalue()


def test_a_class_with_a_bar_keeps_markdown_in_its_columns(scores: TaskScores, params: Params, tmp_path: Path) -> None:
    barred = changed(scores, "floor/answer", "a|b *c*")
    write_report(tmp_path / "results.md", [TaskResult("movies", barred)], params)
    text = (tmp_path / "results.md").read_text()
    assert r"| always a\|b \*c\* |" in text
    lines = [line for line in text.split("\n") if line.startswith("| ")]
    widths = {re.sub(r"\\\|", "", line).count("|") for line in lines[:5]}
    assert len(widths) == 1
