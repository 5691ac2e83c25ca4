"""``distill verify``: everything that has digests, and the remedy for what is wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.seals import write_seal
from pipeline_lib.shards.shard_sets import Manifest, schema_of, write_manifest, write_shard
from tests.retrieval.made_up import TEXTS, write_encoder

from .conftest import OUTPUTS, TRANSFER, transfer_table
from .running import Fails, distill

REMADE = "Delete the folders named and run `distill run`"
REBUILT = "the same `distill index`"


def test_sound_sets() -> None:
    assert distill("verify") == f"ok    {OUTPUTS}\nok    {TRANSFER}\n"


def test_an_altered_or_torn_shard_is_found(fails: Fails) -> None:
    path = TRANSFER / "b000-i001.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    error = fails("verify", str(TRANSFER))
    assert "b000-i001.arrow: altered" in error and REMADE in error
    path = OUTPUTS / "b000-i000.arrow"
    path.write_bytes(path.read_bytes()[:-20])
    assert "(truncated)" in fails("verify")
    Path("elsewhere").mkdir()
    assert "elsewhere: nothing here has digests. Name a folder" in fails("verify", "elsewhere")


def test_outputs_of_other_inputs_are_found(fails: Fails) -> None:
    shard = write_shard(TRANSFER / "b000-i000.arrow", transfer_table(3, 4))
    other = write_shard(TRANSFER / "b000-i001.arrow", transfer_table(0, 3))
    schema = schema_of(transfer_table(0, 1))
    write_manifest(TRANSFER, Manifest("transfer", schema, [shard, other]))
    assert f"{OUTPUTS}: b000-i000.arrow: does not belong" in fails("verify")


@pytest.mark.parametrize(("key", "value"), [("rows", 4), ("sha256", "0")])
def test_an_altered_manifest_is_found(fails: Fails, key: str, value: Any) -> None:
    path = TRANSFER / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][1][key] = value
    path.write_text(json.dumps(manifest))
    assert "manifest" in fails("verify", str(TRANSFER))


def test_a_sealed_folder_is_checked(fails: Fails) -> None:
    folder = Path("data/students/movies/bilstm/1")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    write_seal(folder)
    assert distill("verify", "data/students") == f"ok    {folder}\n"
    (folder / "config.json").write_text("[]")
    error = fails("verify", "data/students")
    assert f"{folder}/config.json: altered" in error and REMADE in error


@pytest.fixture
def index() -> Path:
    write_encoder(Path("encoder"))
    Path("a.txt").write_text("\n".join(TEXTS[:5]))
    distill("index", "index", "a.txt", "--encoder", "encoder", "--workers", "1")
    return Path("index")


def test_an_index_is_checked(index: Path, fails: Fails) -> None:
    assert distill("verify", "index") == "ok    index\n"
    [segment] = index.glob("*.arrow")
    segment.write_bytes(segment.read_bytes()[:-20])
    error = fails("verify", "index")
    assert f"{segment}: " in error and REBUILT in error


@pytest.mark.parametrize(
    ("command", "damage"), [("search", "encoder"), ("search", "truncated"), ("verify", "encoder"), ("verify", "rows")]
)
def test_an_index_with_another_manifest_is_one_error(index: Path, fails: Fails, command: str, damage: str) -> None:
    path = index / "manifest.json"
    manifest = json.loads(path.read_text())
    if damage == "encoder":
        del manifest["made_from"]["encoder"]
    else:
        manifest["shards"][0]["rows"] += 1
    text = json.dumps(manifest)
    path.write_text(text[:-9] if damage == "truncated" else text)
    error = fails(command, "index", *(["word"] if command == "search" else []))
    assert "Delete the folder" in error and "index" in error
