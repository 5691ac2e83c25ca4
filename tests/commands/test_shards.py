"""``distill shards``: listing, showing and verifying small sets."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard

from .conftest import OUTPUTS, TRANSFER
from .running import Fails, distill


class TestShardsLs:
    def test_lists_every_set(self) -> None:
        found = distill("shards", "ls")
        assert str(TRANSFER) in found
        assert "outputs" in found

    def test_an_empty_folder_is_an_error(self, world: Path, fails: Fails) -> None:
        (world / "empty").mkdir()
        assert "no shard sets" in fails("shards", "ls", "empty")


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

        from pipeline_lib.commands.shards.row_text import print_stored_row
        from pipeline_lib.inspection.joined import JoinedRows

        # CI services and users switch colours off by this variable.
        monkeypatch.delenv("NO_COLOR", raising=False)
        console = Console(force_terminal=True, color_system="standard", width=100)
        rows = JoinedRows.open(TRANSFER)
        with console.capture() as captured:
            for number in (0, 1):
                print_stored_row(console, rows, rows.row(1, number), None)
        assert "\x1b[1;31m[MASK]\x1b[0m" in captured.get()
        assert "\x1b[4;36mplot\x1b[0m" in captured.get()

    @pytest.mark.parametrize("folder", [TRANSFER, OUTPUTS])
    def test_inputs_and_outputs_are_joined_whichever_is_named(self, folder: Path) -> None:
        found = distill("shards", "show", str(folder), "--rows", "1")
        assert "good film" in found
        assert "label positive" in found
        assert "positive 0.998 (+3.00)" in found
        assert "teacher: positive, 0.025 bits" in found

    @pytest.mark.parametrize(
        ("rule", "text"),
        [("mask", "[MASK] film"), ("replace", "bad plot"), ("ngram", "a joy"), ("original", "good film")],
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

    def test_an_offset_past_the_end_shows_nothing(self) -> None:
        assert "0 of 4 rows" in distill("shards", "show", str(TRANSFER), "--offset", "99")

    def test_class_numbers_where_no_params_say_the_names(self) -> None:
        found = distill("shards", "show", str(TRANSFER), "--params", "absent.yaml")
        assert "label 1" in found

    @pytest.mark.parametrize(
        ("options", "message"), [(["--shard", "b9"], "no shard 'b9'"), (["--uncertain"], "needs the teacher's outputs")]
    )
    def test_what_cannot_be_shown_is_an_error(self, fails: Fails, options: list[str], message: str) -> None:
        (OUTPUTS / "manifest.json").unlink()
        assert message in fails("shards", "show", str(TRANSFER), *options)

    def test_a_task_split_shows_label_and_text(self) -> None:
        table = pa.table({"key": pa.array([7], pa.uint64()), "label": pa.array([0], pa.int32()), "text": ["dull"]})
        folder = Path("data/tasks/movies/train")
        shard = write_shard(folder / "b000.arrow", table)
        write_manifest(folder, Manifest("tasks", schema_of(table), [shard]))
        found = distill("shards", "show", str(folder))
        assert "label negative" in found
        assert "dull" in found

    def test_an_empty_set_has_no_rows(self, fails: Fails) -> None:
        write_manifest(Path("none"), Manifest("sentences", {}, []))
        assert "0 of 0 rows shown" in distill("shards", "show", "none")
        found = fails("shards", "show", "none", "--shard", "b000")
        assert "none: no shard 'b000'; the set is empty" in found

    def test_a_folders_name_is_not_markup(self) -> None:
        write_manifest(Path("[/bold]x"), Manifest("sentences", {}, []))
        write_manifest(Path("[/red]y"), Manifest("sentences", {}, []))
        (Path("[/red]y") / "manifest.json").write_text("{")
        found = distill("shards", "ls", ".")
        assert "[/bold]x" in found and "[/red]y" in found and "unreadable" in found
