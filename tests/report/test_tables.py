"""The report, metrics.json and the terminal's table, from scores made up here."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.report.collect import TaskResult, metrics, read_finished, read_results
from pipeline_lib.report.markdown import write_report
from pipeline_lib.report.rows import rows
from pipeline_lib.report.terminal import print_result

PARAMETERS = {"without_embeddings": 10_700_000, "with_embeddings": 22_600_000}
SPEED = {
    "device": "cpu",
    "accelerator": None,
    "cpu": "Fast CPU",
    "threads": 2,
    "torch": "2.0",
    "sentences": 2000,
    "repeats": 3,
    "sentences_per_second": {
        "teacher": {"median": 250.0, "min": 240.0, "max": 260.0},
        "students": {"bilstm": {"median": 12500.0, "min": 12000.0, "max": 13000.0}},
    },
}


def method(mean: float, gain: Any) -> dict[str, Any]:
    value = {"accuracy": {"mean": mean, "std": 0.004, "by_seed": {"1": mean, "2": mean}}}
    return {
        "student": "bilstm",
        "data": "full",
        "baseline": "bilstm",
        "dev": value,
        "test": value,
        "agreement": {"dev": 0.93, "test": 0.921},
        "against_teacher": {"dev": -0.02, "test": -0.0004},
        "gain": {"dev": gain, "test": gain},
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


@pytest.fixture
def scores() -> dict[str, Any]:
    gain = {"difference": 0.019, "low": 0.004, "high": 0.033, "p": 0.006, "p_holm": 0.012}
    accuracy = {"accuracy": 0.91}
    return {
        "metric": "accuracy",
        "metrics": ["accuracy"],
        "labels": ["negative", "positive"],
        "rows": {"train": 8000, "dev": 1000, "test": 1000},
        "test": "labelled",
        "selection": "The best was chosen on dev.",
        "evaluate": {"resamples": 1000, "confidence": 0.95, "seed": 1},
        "floor": {"answer": "positive", "dev": {"accuracy": 0.5}, "test": {"accuracy": 0.52}},
        "teacher": {"dev": accuracy, "test": accuracy, "parameters": PARAMETERS},
        "methods": {"bilstm": method(0.88, None), "bilstm_kd_mask_pos": method(0.9, gain)},
    }


def hide_test(scores: dict[str, Any]) -> dict[str, Any]:
    """Make the scores those of a task whose test labels are hidden."""
    for part in (scores["floor"], scores["teacher"]):
        part["test"] = "hidden"
    for own in scores["methods"].values():
        own["test"] = own["against_teacher"]["test"] = "hidden"
        own["gain"]["test"] = own["gain"]["test"] and "hidden"
    return scores | {"test": "hidden"}


@pytest.fixture
def params() -> Params:
    return load_params(Path(__file__).parents[2] / "params.yaml")


def printed(result: TaskResult, params: Params, width: int) -> str:
    out = StringIO()
    print_result(Console(file=out, width=width), result, params)
    return out.getvalue()


def test_cells_are_rounded_and_signed(scores: dict[str, Any]) -> None:
    floor, teacher, _, best = rows(TaskResult("movies", scores, SPEED))
    assert (floor.system, floor.test) == ("always positive", "52.0")
    assert (teacher.test, teacher.parameters, teacher.speed) == ("91.0", "10.70 / 22.60", "250")
    assert (best.test, best.gain, best.interval) == ("90.0 ± 0.4", "+1.9", "[+0.4, +3.3]")
    # -0.04 points read +0.0 once rounded, never -0.0.
    assert (best.p, best.to_teacher) == ("0.012", "+0.0")
    assert (best.ratio, best.speed, best.speed_up) == ("15× / 3.8×", "12,500", "50×")
    assert (best.rate, best.steps, best.rows) == ("0.003", "1,500 × 64", "16,000")


def test_the_least_p_is_printed_as_a_bound(scores: dict[str, Any]) -> None:
    scores["methods"]["bilstm_kd_mask_pos"]["gain"]["test"]["p_holm"] = 1e-9
    assert rows(TaskResult("movies", scores))[-1].p == "≤0.001"


def test_one_seed_has_a_gain_without_interval(scores: dict[str, Any], params: Params) -> None:
    gain = {"difference": 0.019, "low": None, "high": None, "p": None, "p_holm": None}
    scores["methods"]["bilstm_kd_mask_pos"]["gain"]["test"] = gain
    best = rows(TaskResult("movies", scores))[-1]
    assert (best.gain, best.interval, best.p) == ("+1.9", "–", "–")
    assert "+1.9 p" not in printed(TaskResult("movies", scores), params, 120)
    found = metrics([TaskResult("movies", scores)])["movies"]["methods"]["bilstm_kd_mask_pos"]
    assert found["test"]["gain"] == {"difference": 0.019}


def test_hidden_test_falls_back_to_dev_and_says_so(scores: dict[str, Any], params: Params) -> None:
    result = TaskResult("movies", hide_test(scores))
    best = rows(result)[-1]
    assert (best.test, best.to_teacher) == ("hidden", "-2.0")
    text = printed(result, params, 120)
    assert "gain on dev" in text
    assert "Test labels are hidden" in text
    assert "on dev, where the best evaluations were also chosen" in " ".join(text.split())
    assert "test" not in metrics([result])["movies"]["teacher"]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_table_fits_and_no_number_is_broken(
    scores: dict[str, Any], params: Params, width: int
) -> None:
    text = printed(TaskResult("movies", scores, SPEED), params, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for whole in ("90.0 ± 0.4", "+1.9 p 0.012", "[+0.4, +3.3]", "15× / 3.8×", "12,500", "Fast CPU"):
        assert whole in text
    assert "bilstm_kd_mask_pos" in text


def test_the_caption_names_what_was_not_run(scores: dict[str, Any], params: Params) -> None:
    text = " ".join(printed(TaskResult("movies", scores), params, 400).split())
    assert "Not run yet: bilstm_kd, bilstm_kd_ts (" in text
    assert "over seeds 1, 2" in text
    assert "not measured" in text


def test_the_caption_tells_of_texts_in_two_splits(scores: dict[str, Any], params: Params) -> None:
    shared = {"test": {"train": {"rows": 12, "other_label": 3}, "dev": {"rows": 0}}}
    text = printed(TaskResult("movies", scores | {"shared_texts": shared}), params, 400)
    assert "Texts: 12 of test stand in train too (3 under another label)." in text
    assert "Texts:" not in printed(TaskResult("movies", scores), params, 400)


def test_the_caption_names_the_class_of_f1(scores: dict[str, Any], params: Params) -> None:
    text = printed(TaskResult("movies", scores | {"f1_label": "negative"}), params, 400)
    assert "in percent (f1 of class negative); mean" in text


def test_metrics_are_plain_numbers_for_dvc(scores: dict[str, Any]) -> None:
    found = metrics([TaskResult("movies", scores)])
    assert found["movies"]["methods"]["bilstm"]["test"]["accuracy"]["mean"] == 0.88
    assert found["movies"]["teacher"]["test"] == {"accuracy": 0.91}
    assert "gain" not in found["movies"]["methods"]["bilstm"]["test"]


def test_markdown_holds_no_timings_and_is_stable(
    scores: dict[str, Any], params: Params, tmp_path: Path
) -> None:
    for name in ("a.md", "b.md"):
        write_report(tmp_path / name, [TaskResult("movies", scores, SPEED)], params)
    text = (tmp_path / "a.md").read_text()
    assert text == (tmp_path / "b.md").read_text()
    assert "| bilstm_kd_mask_pos | 90.0 ± 0.4 | 90.0 ± 0.4 | +1.9 | [+0.4, +3.3] |" in text
    assert "12,500" not in text


def test_reading_results(scores: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DistilleryError, match="no results yet"):
        read_finished(Layout(tmp_path), ["movies"])
    write_json(tmp_path / "results/movies/scores.json", scores)
    assert [one.task for one in read_finished(Layout(tmp_path), ["movies", "other"])] == ["movies"]
    with pytest.raises(DistilleryError, match="other"):
        read_results(Layout(tmp_path), ["movies", "other"])
    assert json.dumps(read_results(Layout(tmp_path), ["movies"])[0].scores)


@pytest.mark.parametrize("label", ["[/bold]x", "[red]", "[link=x]", "\\\\["])
def test_labels_are_not_markup(scores: dict[str, Any], params: Params, label: str) -> None:
    scores["floor"]["answer"] = label
    stream = StringIO()
    console = Console(file=stream, width=200, no_color=True)
    print_result(console, TaskResult("movies", scores), params)
    assert f"always {label}" in stream.getvalue()
