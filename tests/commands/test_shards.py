"""``distill shards ls`` and ``show`` of small sets."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.base.console import SafeConsole
from pipeline_lib.commands.shards.row_text import print_stored_row
from pipeline_lib.inspection.joined import JoinedRows
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard

from .conftest import OUTPUTS, TRANSFER
from .running import Fails, distill

JOINED = ["good film", "label positive", "positive 0.998 (+3.00)", "teacher: positive, 0.025 bits"]
ALONE = "1 of 1 rows shown"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (f"{TRANSFER}", ["b000-i001:0", "masked 1", "replaced 1 (plot)", "n-gram: words 3–4 of the source"]),
        (f"{TRANSFER} --rows 1", JOINED),
        (f"{OUTPUTS} --rows 1", JOINED),
        (f"{TRANSFER} --rule mask", ["[MASK] film", ALONE]),
        (f"{TRANSFER} --rule replace", ["bad plot", ALONE]),
        (f"{TRANSFER} --rule ngram", ["a joy", ALONE]),
        (f"{TRANSFER} --rule original", ["good film", ALONE]),
        (f"{TRANSFER} --shard b000-i001 --offset 1 --rows 1", ["bad plot", "1 of 3 rows shown"]),
        (f"{TRANSFER} --offset 99", ["0 of 4 rows"]),
        # Class numbers where no parameters say the names.
        (f"{TRANSFER} --params absent.yaml", ["label 1"]),
        ("data/tasks/movies/train", ["label negative", "dull"]),
        ("none", ["0 of 0 rows shown"]),
    ],
)
def test_what_is_shown_of_a_set(options: str, shown: list[str]) -> None:
    table = pa.table({"key": pa.array([7], pa.uint64()), "label": pa.array([0], pa.int32()), "text": ["dull"]})
    folder = Path("data/tasks/movies/train")
    shard = write_shard(folder / "b000.arrow", table)
    write_manifest(folder, Manifest("tasks", schema_of(table), [shard]))
    write_manifest(Path("none"), Manifest("sentences", {}, []))
    found = distill("shards", "show", *options.split())
    assert [part for part in shown if part not in found] == []


def test_words_are_coloured_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    # CI services and users switch colours off by this variable.
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = SafeConsole(force_terminal=True, color_system="standard", width=100)
    rows = JoinedRows.open(TRANSFER)
    with console.capture() as captured:
        for number in (0, 1):
            print_stored_row(console, rows, rows.row(1, number), None)
    assert "\x1b[1;31m[MASK]\x1b[0m" in captured.get()
    assert "\x1b[4;36mplot\x1b[0m" in captured.get()


def test_most_uncertain_first() -> None:
    found = distill("shards", "show", str(TRANSFER), "--uncertain")
    order = [found.index(text) for text in ("[MASK]", "a joy", "bad plot", "good film")]
    assert order == sorted(order)


def test_what_cannot_be_shown_is_an_error(world: Path, fails: Fails) -> None:
    (OUTPUTS / "manifest.json").unlink()
    (world / "empty").mkdir()
    write_manifest(Path("none"), Manifest("sentences", {}, []))
    for options, message in (
        (f"show {TRANSFER} --shard b9", "no shard 'b9'"),
        (f"show {TRANSFER} --uncertain", "needs the teacher's outputs"),
        ("show none --shard b000", "none: no shard 'b000'; the set is empty"),
        ("ls empty", "no shard sets"),
    ):
        assert message in fails("shards", *options.split())


def test_every_set_is_listed_and_a_folders_name_is_not_markup() -> None:
    found = distill("shards", "ls")
    assert str(TRANSFER) in found and "outputs" in found
    write_manifest(Path("[/bold]x"), Manifest("sentences", {}, []))
    write_manifest(Path("[/red]y"), Manifest("sentences", {}, []))
    (Path("[/red]y") / "manifest.json").write_text("{")
    found = distill("shards", "ls", ".")
    assert "[/bold]x" in found and "[/red]y" in found and "unreadable" in found
