"""A GLUE submission keeps the benchmark's rules, or is not written."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline_lib import cli
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.exports.submission import FILES, answers, faults, params_faults, write_submission
from pipeline_lib.params import Classification, Regression, check_params, load_params
from pipeline_lib.params.profiles import read_values
from pipeline_lib.shards.columns import list_column
from pipeline_lib.shards.shard_sets import write_shard
from tests.kit.made_up import made_up_method, made_up_scores

ROOT = Path(__file__).parents[2]
COMMON: dict[str, Any] = {
    "source": {"kind": "glue", "folder": "X", "files": {"train": "a", "dev": "b"}, "columns": None},
    "text": ["a", "b"],
    "label": "label",
    "split": None,
    "blocks": 1,
    "lexicon": None,
    "train_fraction": 1.0,
    "augment": {"n_iter": 0, "cap": None},
    "submission": None,
    "positive": None,
}
INFERENCE = Classification.model_validate(
    COMMON
    | {"kind": "classification", "labels": {"no": ["not_entailment"], "yes": ["entailment"]}, "metrics": ["accuracy"]}
)
SIMILARITY = Regression.model_validate(
    COMMON | {"kind": "regression", "labels": {"min": 0.0, "max": 5.0}, "metrics": ["pearson"]}
)


def test_classes_are_written_as_in_the_data() -> None:
    logits = np.array([[0.1, 0.3], [2.0, -1.0]])
    assert answers(INFERENCE, "RTE.tsv", logits) == ["entailment", "not_entailment"]


def test_scores_are_clipped_to_the_range() -> None:
    given = np.array([[-0.2], [2.34567], [5.1]])
    assert answers(SIMILARITY, "STS-B.tsv", given) == ["0.000", "2.346", "5.000"]


SHIPPED = [path.relative_to(ROOT) for path in sorted(ROOT.glob("*/*.yaml"))]


def test_the_shipped_files_are_looked_at() -> None:
    names = {f"profiles/{name}.yaml" for name in ("tang", "thesis", "sra", "dse")}
    assert names | {"benchmarks/glue.yaml"} <= {path.as_posix() for path in SHIPPED}


@pytest.mark.parametrize("file", SHIPPED, ids=str)
def test_every_class_of_the_shipped_tasks_has_an_official_answer(file: str) -> None:
    params = load_params(ROOT / file)
    assert params_faults(params) == []
    for task in params.tasks.values():
        for name in (task.submission or {}).values():
            if not task.is_regression:
                classes = len(task.label_names)
                assert sorted(answers(task, name, np.eye(classes))) == sorted(FILES[name].answers)


def test_the_hubs_numbers_become_the_benchmarks_names() -> None:
    tasks = load_params(ROOT / "profiles/thesis.yaml").tasks
    # The hub's order: 0, 1, 2.
    inference = ["entailment", "neutral", "contradiction"]
    assert answers(tasks["mnli"], "MNLI-m.tsv", np.eye(3)) == inference
    for task, name in (("rte", "RTE.tsv"), ("qnli", "QNLI.tsv")):
        assert answers(tasks[task], name, np.eye(2)) == ["entailment", "not_entailment"]


def test_a_whole_zip_from_the_hubs_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile = ROOT / "profiles/thesis.yaml"
    rng = np.random.default_rng(0)
    params, rows_named = load_params(profile), ["bilstm_kd_mask_pos", "bilstm_kd_mask_pos_256"]
    for task, settings in params.tasks.items():
        folder, parts = Path("data/results") / task, []
        # A task has one of the two rows.
        row = next(name for name in rows_named if name in params.methods_of(task))
        for split, name in settings.submission.items():
            rows = FILES[name].rows
            logits = list_column(rng.normal(size=(rows, len(settings.label_names))))
            columns = dict.fromkeys(("bert_large", f"{row}-1", f"{row}-2"), logits)
            parts.append(pa.table({"split": [split] * rows, **columns}))
        write_shard(folder / "predictions.arrow", pa.concat_tables(parts))
        made_up_scores({row: made_up_method(0.8)}).write(folder / "scores.json")
    arguments = ["submit", *rows_named, "--fill", "--params", str(profile)]
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0 and "AX.tsv: constant answer" in result.output
    assert "QQP.tsv: 390,965 answers of bilstm_kd_mask_pos_256-2 on qqp test" in result.output
    assert "RTE.tsv: 3,000 answers of bilstm_kd_mask_pos-2 on rte test" in result.output
    with zipfile.ZipFile("submission.zip") as archive:
        for name, official in FILES.items():
            lines = archive.read(name).decode().split("\n")[1:-1]
            assert faults(name, [line.split("\t")[1] for line in lines]) == []
            if official.scores is None and f"{name}: constant" not in result.output:
                assert {line.split("\t")[1] for line in lines} == set(official.answers)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"submission": {"test": "RTE.tsv"}}, "RTE.tsv takes entailment, not_entailment, but"),
        ({"submission": {"test": "STS-B.tsv"}}, "STS-B.tsv takes scores from 0 to 5"),
        ({"submission": {"test": "SST2.tsv"}}, "SST2.tsv: no file of the benchmark"),
        ({"submission": {"test_b": "SST-2.tsv"}}, "test_b: no such split; the source names"),
        ({"labels": {"0": ["a"], "b": ["0"]}}, "two labels are written as the same answer"),
        ({"labels": {"a": {"min": 0, "max": 1}, "1": {"min": 2, "max": 3}}}, "the label 'a' nor"),
    ],
)
def test_tasks_that_the_benchmark_would_refuse_are_named_up_front(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    raw = read_values(ROOT / "profiles/tang.yaml")
    raw["tasks"]["sst2"] |= changes
    [fault] = params_faults(check_params(raw))
    assert fault.startswith("tasks.sst2.submission.test") and message in fault
    YAML(typ="safe").dump(raw, tmp_path / "params.yaml")
    result = CliRunner().invoke(cli.app, ["check", "--params", str(tmp_path / "params.yaml")])
    assert isinstance(result.exception, PotstillError) and message in str(result.exception)


def test_a_task_without_the_row_is_named() -> None:
    arguments = ["submit", "bilstm_kd_mask_pos", "--params", str(ROOT / "profiles/thesis.yaml")]
    error = CliRunner().invoke(cli.app, arguments).exception
    assert "tasks.qqp: no row bilstm_kd_mask_pos; there are bert_large, bilstm_256" in str(error)
    error = CliRunner().invoke(cli.app, [*arguments[:1], "none", *arguments[2:]]).exception
    assert "no 'none' in params.yaml; there are bilstm" in str(error)


def test_two_tasks_cannot_share_an_official_file() -> None:
    raw = read_values(ROOT / "profiles/thesis.yaml")
    raw["tasks"]["rte"]["submission"] = {"test": "QNLI.tsv"}
    assert params_faults(check_params(raw)) == [
        "tasks.rte.submission.test: QNLI.tsv is the file of task qnli too. Keep one."
    ]


def test_a_submission_is_the_eleven_official_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = {
        "RTE.tsv": answers(INFERENCE, "RTE.tsv", rng.normal(size=(3000, 2))),
        "STS-B.tsv": answers(SIMILARITY, "STS-B.tsv", rng.normal(2.5, 3.0, size=(1379, 1))),
    }
    filled = write_submission(tmp_path / "s.zip", files, fill=True)
    assert len(filled) == 9 and not set(filled) & set(files)
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == sorted(FILES) and len(FILES) == 11
        for name, official in FILES.items():
            text = io.TextIOWrapper(archive.open(name), "utf-8", newline="")
            header, *rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
            assert header == ["index", "prediction"]
            assert [row[0] for row in rows] == [str(i) for i in range(official.rows)]
            if name in files:
                assert [row[1] for row in rows] == list(files[name])
            if official.scores:
                assert all(0.0 <= float(row[1]) <= 5.0 for row in rows)
            else:
                assert {row[1] for row in rows} <= set(official.answers)


def test_equal_answers_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        write_submission(tmp_path / name, {"WNLI.tsv": ["1"] * 146}, fill=True)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("SST2.tsv", ["0"], "no file of the benchmark"),
        ("WNLI.tsv", ["0"] * 145, "145 answers, the official test set has 146"),
        ("WNLI.tsv", ["0"] * 145 + ["yes"], "row 145: answer 'yes'; it takes 0, 1"),
        ("STS-B.tsv", ["5.001"] * 1379, "row 0: score '5.001' is not a number from 0 to 5"),
        ("STS-B.tsv", ["nan"] * 1379, "row 0: score 'nan'"),
    ],
)
def test_broken_rules_are_named_and_nothing_is_written(
    tmp_path: Path, name: str, given: list[str], message: str
) -> None:
    assert len(faults(name, given)) == 1
    with pytest.raises(PotstillError, match=message):
        write_submission(tmp_path / "s.zip", {name: given}, fill=True)
    assert not list(tmp_path.iterdir())


def test_an_incomplete_submission_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match=r"missing: AX\.tsv.*--fill"):
        write_submission(tmp_path / "s.zip", {"WNLI.tsv": ["1"] * 146}, fill=False)
