"""No text, label or name out of data gives the terminal orders, whichever command prints it."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stages
from pipeline_lib import cli
from pipeline_lib.shards.fingerprint import ROOT
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from tests.kit.readable import save, write_workspace

from .conftest import transfer_table
from .running import Fails

EVIL = "a\x1b]0;title\x07triumph\x1b[2J\x9b31m\x7f\r\x08"
"""A title, a cleared screen, a colour, DEL and the like, in words that the student knows."""
LABELS = ["no\x1b[31m", "yes|<b>`\x9b"]
ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PRINTS = {"echo", "print", "secho", "Console"}
"""Names of functions that print whatever they are given."""
MAY = {"base/terminal.py", "base/console.py", "exports/numpy_student.py"}


def calls(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            whole = ast.unparse(node.func)
            if whole in PRINTS or whole.startswith(("typer.echo", "typer.secho", "click.")):
                yield f"{file.name}:{node.lineno}: {whole}"


def test_everything_is_printed_in_one_place() -> None:
    files = [*ROOT.rglob("*.py"), *Path(stages.__file__).parent.glob("*.py")]
    others = [path for path in files if not any(path.as_posix().endswith(one) for one in MAY)]
    # Records for `distill run`, and notices before anything is loaded.
    ours = {"progress.py", "layout.py", "cli.py"}
    assert [call for path in others if path.name not in ours for call in calls(path)] == []


@pytest.fixture
def evil(world: Path) -> str:
    """Write students with such labels, and shards of such texts; return a student's folder."""
    write_workspace(world)
    folder = Path("student")
    save(folder, False, LABELS, [[-1.0], [1.0]], [[1.0, -1.0], [-1.0, 1.0]])
    table = transfer_table(0, 4)
    at = table.column_names.index("text")
    table = table.set_column(at, "text", [[EVIL] * 4])
    at = table.column_names.index("words")
    table = table.set_column(at, "words", [[EVIL.split()] * 4])
    for name, rows in (("evil", table), ("other", table.slice(0, 2))):
        shard = write_shard(Path(name) / "b000-i000.arrow", rows)
        write_manifest(Path(name), Manifest("transfer", schema_of(rows), [shard]))
    Path("texts.txt").write_text(f"{EVIL}\n", "utf-8", newline="\n")
    Path(f"odd{EVIL[1:8]}.csv").write_text("text\n")
    return str(folder)


COMMANDS = (
    "predict {student} {text}",
    "predict {student} --file texts.txt --format jsonl",
    "explain {student} {text}",
    "explain {student} {text} --json",
    "shards show evil",
    "shards ls .",
    "shards export evil --to evil.csv",
    "index made texts.txt --encoder data/encoders/sra --workers 1",
    "search made {text}",
    "search made {text} --json",
)


@pytest.mark.parametrize("form", ["plain", "terminal"])
def test_no_command_lets_a_text_give_orders(evil: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "terminal":
        monkeypatch.setenv("FORCE_COLOR", "1")
    for command in COMMANDS:
        words = [word.format(student=evil, text=EVIL) for word in command.split()]
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code == 0, (command, result.output)
        # The library's own colours stay.
        shown = re.sub(r"\x1b\[[\d;]*m", "", result.output) if form == "terminal" else result.output
        assert not ORDERS.search(shown), command
        if "json" in command:
            assert values(result.stdout)


def values(text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def test_no_error_gives_orders(evil: str, fails: Fails) -> None:
    for command in (
        ["predict", evil, "--file", f"odd{EVIL[1:8]}.csv", "--text", EVIL],
        ["predict", f"none{EVIL}", "a"],
        ["shards", "show", f"none{EVIL}"],
        ["init", f"odd{EVIL[1:8]}.csv"],
        ["init", f"none{EVIL}.csv"],
    ):
        assert not ORDERS.search(fails(*command)), command


def test_a_long_value_is_shortened_in_an_error_and_the_remedy_stays(fails: Fails) -> None:
    long = "x" * 1_000_000
    Path("in.csv").write_text(f"{long}\ngood\n")
    error = fails("index", "i", "in.csv", "--encoder", long[:200])
    assert len(error) < 2000
    error = fails("teacher", "check", "in.csv", "--task", long)
    assert len(error) < 2000 and error.startswith("error: ") and "xxx … " in error
