"""benchmarks/glue_table.py: the sets of each task's rows."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from tests.kit.made_up import made_up_method, made_up_scores, with_split

SCRIPT = Path(__file__).parents[2] / "benchmarks/glue_table.py"
GAIN = {"difference": 0.03, "low": 0.01, "high": 0.05, "p": 0.001, "p_holm": 0.002}


def test_further_splits_have_columns_and_do_not_count_in_the_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = {"bilstm": made_up_method(0.70), "bilstm_kd_ts": made_up_method(0.73, GAIN)}
    made_up_scores(methods).write(tmp_path / "data/results/sst2/scores.json")
    mnli = with_split(made_up_scores(methods), "test_mismatched").model_dump()
    distilled = mnli["methods"]["bilstm_kd_ts"]
    distilled["scores"]["test_mismatched"]["accuracy"]["mean"] = 0.69
    distilled["gain"]["test_mismatched"] = GAIN | {"difference": -0.01, "low": -0.04, "high": 0.02}
    mnli["teachers"]["minilm"]["scores"]["test_mismatched"] = {"accuracy": 0.8}
    mnli["rows"]["test_mismatched"] = 321
    made_up_scores(methods).model_validate(mnli).write(tmp_path / "data/results/mnli/scores.json")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    folders = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *folders])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert not end.value.code
    results = json.loads((tmp_path / "out/glue.json").read_text())
    assert {*results["tasks"]} == {"mnli", "sst2"}
    assert results["mean_gain"] == {"bilstm_kd_ts": 0.03}
    further = results["further"]["mnli test_mismatched"]
    assert further["scored_rows"] == 321 and further["teachers"] == {"minilm": 0.8}
    assert further["methods"]["bilstm_kd_ts"]["mean"] == 0.69
    lines = capsys.readouterr().out.splitlines()
    names = ("mnli (subset)", "sst2", "mnli test_mismatched (subset)")
    assert f"| system | {', accuracy | '.join(names)}, accuracy |" in lines
    assert "| teacher minilm | 91.0 | 91.0 | 80.0 |" in lines
    [row] = [line for line in lines if line.startswith("| bilstm_kd_ts | 73.0")]
    assert row.endswith("| 69.0 ± 0.4 (-1.0 [-4.0, +2.0]*) |")
