"""``distill store push`` and ``pull``: every entry arrives whole or not at all."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations
from typer.testing import CliRunner

from pipeline_lib import cli
from pipeline_lib.base.files import read_json, sha256_file
from pipeline_lib.base.seals import SEAL
from pipeline_lib.commands.store.addresses import Address
from pipeline_lib.shards.entries import entries
from pipeline_lib.shards.shard_sets import read_manifest
from pipeline_lib.shards.store import Store
from pipeline_lib.shards.trained import Trained

from .bad_lines import Failing, Unreachable
from .conftest import OUTPUTS
from .running import Fails, distill

KEYS = [f"{number:02x}" + "e" * 62 for number in range(3)]
STUDENT = "5" * 64
LOGITS = [f"store/logits/{key[:2]}/{key}" for key in KEYS]
FILES = {path + suffix for path in LOGITS for suffix in (".arrow", ".json")} | {
    f"store/tags/{KEYS[0][:2]}/{KEYS[0]}{suffix}" for suffix in (".arrow", ".json")
}
FILES |= {f"students/{STUDENT}/{name}" for name in ("config.json", "0/model.safetensors", SEAL)}


@pytest.fixture(autouse=True)
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the failing file system, and forget what is in memory."""
    fsspec.register_implementation("failing", Failing, clobber=True)
    for system in (MemoryFileSystem, Failing):
        system.store.clear()
    monkeypatch.setattr(Failing, "left", 1000)
    yield
    MemoryFileSystem.store.clear()


@pytest.fixture
def home(store_home: Path) -> Path:
    """Return a state folder with three answers, tags, and a student."""
    for number, key in enumerate(KEYS):
        Store("logits").add(key, pa.table({"x": [number] * 50}))
    Store("tags").add(KEYS[0], pa.table({"tag": ["NN"]}))
    with Trained("students", STUDENT).writing() as folder:
        (folder / "config.json").write_text("{}")
        (folder / "0").mkdir()
        (folder / "0/model.safetensors").write_bytes(b"weights" * 9)
    return store_home


Go = Callable[[str], Path]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    """Return what goes to another machine: its state folder is empty."""

    def go(name: str = "elsewhere") -> Path:
        monkeypatch.setenv("POTSTILL_HOME", str(tmp_path / name))
        return tmp_path / name

    return go


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a state folder, without those of a quarantine."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths}


def lines(text: str) -> list[str]:
    """Return what is printed of each kind and fault, without progress."""
    return [line for line in text.splitlines() if not line.startswith(("push: ", "pull: "))]


def faulty(*arguments: str) -> list[str]:
    """Run the command, which must go on to its end and exit with 1; return its lines."""
    result = CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 1, result.output
    return lines(result.output)


@pytest.mark.parametrize("address", ["directory", "file://{}/of/it", "memory://of/it"])
def test_all_entries_travel(address: str, home: Path, tmp_path: Path, elsewhere: Go) -> None:
    address = address.format(tmp_path)
    sizes = [sum(entry.bytes for entry in entries() if entry.kind == "logits")]
    expected = [f"logits: 3 copied ({sizes[0] / 1024:.1f} KiB), 0 known"]
    pushed = lines(distill("store", "push", address))
    assert pushed[0] == expected[0] and pushed[2].startswith("students: 1 copied (")
    assert [line.partition(":")[0] for line in pushed] == ["logits", "tags", "students"]
    again = lines(distill("store", "push", address))
    assert again[0] == "logits: 0 copied (0 B), 3 known"
    assert again[2] == "students: 0 copied (0 B), 1 known"
    other = elsewhere("other")
    assert sorted(lines(distill("store", "pull", address))) == sorted(pushed)
    assert digests(other) == digests(home) and digests(home).keys() == FILES
    assert Trained("students", STUDENT).is_whole()
    assert Store("logits").read(KEYS[1])["x"].to_pylist() == [1] * 50
    assert all(" 0 copied (0 B)" in line for line in lines(distill("store", "pull", address)))


def test_many_files_at_once(home: Path, elsewhere: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "async_impl", True)
    assert Address.open("failing://a").at_once == 16
    distill("store", "push", "failing://a")
    other = elsewhere("other")
    distill("store", "pull", "failing://a")
    assert digests(other) == digests(home)


def test_a_copied_state_folder_is_an_address(home: Path, elsewhere: Go) -> None:
    # With what a state folder has besides.
    (home / "checkpoints").mkdir()
    (home / "checkpoints/students-1.safetensors").write_text("half")
    (home / "students" / f".{STUDENT}.1234.tmp").mkdir()
    (home / "students" / f".{STUDENT}.1234.tmp" / SEAL).write_text("{}")
    shutil.copytree(home, "copy")
    other = elsewhere("other")
    distill("store", "pull", "copy")
    assert digests(other).keys() == FILES


def test_just_some_kinds(home: Path, elsewhere: Go) -> None:
    pushed = lines(distill("store", "push", "there", "--kind", "tags", "--kind", "students"))
    assert [line.partition(":")[0] for line in pushed] == ["tags", "students"]
    other = elsewhere("other")
    assert lines(distill("store", "pull", "there", "--kind", "students")) == [pushed[1]]
    assert digests(other).keys() == {path for path in FILES if path.startswith("students/")}


def test_just_what_the_data_refer_to(home: Path) -> None:
    shard = read_manifest(OUTPUTS).shards[1]
    key = "f" * 64
    Store("logits").take(key, OUTPUTS / shard.name, shard)
    assert lines(distill("store", "push", "there", "--used"))[0].startswith("logits: 1 copied (")
    base = f"store/logits/ff/{key}"
    assert digests(Path("there")).keys() == {f"{base}.arrow", f"{base}.json"}


@pytest.mark.parametrize("after", range(11))
def test_a_push_that_was_cut_goes_on(after: int, home: Path, elsewhere: Go, fails: Fails) -> None:
    Failing.left = after
    error = fails("store", "push", "failing://a")
    assert "failing://a/" in error and "could not be reached (the line was cut)" in error
    Failing.left = 1000
    other = elsewhere("other")
    # What arrived before is whole, and nothing of the others is to be seen.
    records = [path for path in Failing.store if re.search(r"/[0-9a-f]+\.json$|/sealed", path)]
    pulled = CliRunner().invoke(cli.app, ["store", "pull", "failing://a"]).output
    assert "not taken" not in pulled
    here = [*entries()]
    assert all(entry.is_whole() for entry in here)
    assert len(here) == len(records) < 5
    elsewhere(home.name)
    distill("store", "push", "failing://a")
    elsewhere(other.name)
    distill("store", "pull", "failing://a")
    assert digests(other) == digests(home)


@pytest.mark.parametrize("after", range(1, 11))
def test_a_pull_that_was_cut_goes_on(after: int, home: Path, elsewhere: Go, fails: Fails) -> None:
    distill("store", "push", "failing://a")
    other, Failing.left = elsewhere("other"), after
    assert "could not be reached (the line was cut)" in fails("store", "pull", "failing://a")
    partly = digests(other)
    assert partly.items() <= digests(home).items()
    here = [*entries()]
    assert len(here) < 5 and all(entry.is_whole() for entry in here)
    Failing.left = 1000
    text = distill("store", "pull", "failing://a")
    assert sum(int(line.split()[1]) for line in lines(text)) == 5 - len(here)
    assert digests(other) == digests(home)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (f"{LOGITS[1]}.arrow", "altered (its SHA-256 is not its record's); not taken"),
        (f"students/{STUDENT}/config.json", "altered (its SHA-256 is not its record's); not taken"),
    ],
)
def test_an_altered_file_is_not_taken(name: str, line: str, home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    flip(Path("there", name))
    other = elsewhere("other")
    pulled = faulty("store", "pull", "there")
    assert pulled[0] == f"there/{name}: {line}"
    # The others are, and of this entry there is nothing.
    kind = "logits" if "logits" in name else "students"
    lost = (
        {path for path in FILES if Path(path).stem == KEYS[1]}
        if kind == "logits"
        else {path for path in FILES if path.startswith("students/")}
    )
    assert digests(other).keys() == FILES - lost
    assert f"{kind}: {2 if kind == 'logits' else 0} copied" in "\n".join(pulled)


def test_a_torn_or_missing_file_is_named(home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    torn, gone = (Path("there", f"{LOGITS[number]}.arrow") for number in (0, 1))
    size = torn.stat().st_size
    torn.write_bytes(torn.read_bytes()[:-4])
    gone.unlink()
    elsewhere("other")
    pulled = faulty("store", "pull", "there", "--kind", "logits")
    assert pulled[0] == f"{torn}: {size - 4} bytes, its record says {size} (torn); not taken"
    assert pulled[1] == f"{gone}: missing, though its record is there; not taken"
    # The machine that has them whole sends them again.
    elsewhere("home")
    assert "logits: 2 copied" in distill("store", "push", "there")
    elsewhere("other")
    assert "logits: 2 copied" in distill("store", "pull", "there")


@pytest.mark.parametrize("record", ["{", "[]", '{"sha256": "0"}', '{"name": "a", "rows": 1, "bytes": 1, "sha256": 1}'])
def test_what_is_no_record_is_named(record: str, home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    Path("there", f"{LOGITS[0]}.json").write_text(record)
    elsewhere("other")
    assert faulty("store", "pull", "there")[0].startswith(f"there/{LOGITS[0]}.json: no record (")
    assert {entry.key for entry in entries()} == {*KEYS, STUDENT}
    assert Store("logits").find(KEYS[0]) is None


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "a/../../b", "", ".", SEAL, "a\0"])
def test_names_that_lead_elsewhere_are_refused(name: str, home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    seal = Path("there/students", STUDENT, SEAL)
    files = read_json(seal)["sha256"]
    seal.write_text(json.dumps({"sha256": files | {name: files["config.json"]}}))
    other = elsewhere("other")
    assert faulty("store", "pull", "there")[0].startswith(f"{seal}: no record (")
    assert not (other / "students").exists() and not list(other.parent.rglob("*escaped*"))


def test_folders_that_are_no_entries_are_passed_over(home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    shutil.copytree(f"there/students/{STUDENT}", "there/students/mine")
    shutil.copytree(f"there/students/{STUDENT}", f"there/keys/{STUDENT}")
    source = Path("there", f"{LOGITS[0]}.json")
    for path in ("store/logits/zz/x.json", f"store/logits/ff/{KEYS[0]}.json", f"store/A/{KEYS[0]}"):
        target = Path("there", path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    other = elsewhere("other")
    distill("store", "pull", "there")
    assert digests(other).keys() == FILES


def test_damaged_entries_are_not_sent(home: Path) -> None:
    flip(home / f"{LOGITS[0]}.arrow")
    pushed = faulty("store", "push", "there")
    assert pushed[0] == f"{home / LOGITS[0]}.arrow: damaged, not sent; it will be computed again"
    assert "logits: 2 copied" in pushed[1]
    assert digests(Path("there")).keys() == FILES - {f"{LOGITS[0]}{s}" for s in (".arrow", ".json")}


def test_a_damaged_entry_is_replaced(home: Path) -> None:
    distill("store", "push", "there")
    before = digests(home)
    flip(home / f"{LOGITS[0]}.arrow")
    flip(home / f"students/{STUDENT}/config.json")
    pulled = distill("store", "pull", "there")
    assert "logits: 1 copied" in pulled and "students: 1 copied" in pulled
    after = digests(home)
    assert before.items() <= after.items()
    # A training that was damaged is set aside, as when it is trained again.
    assert {path.split("/")[0] for path in after.keys() - before} == {"quarantine"}


def test_another_machines_last_digits_stay(home: Path, elsewhere: Go) -> None:
    distill("store", "push", "there")
    before = digests(Path("there"))
    elsewhere("other")
    Store("logits").add(KEYS[0], pa.table({"x": [7.0] * 20}), computed_on="another processor")
    with Trained("students", STUDENT).writing() as folder:
        (folder / "config.json").write_text("{} ")
    pushed = lines(distill("store", "push", "there"))
    assert pushed == ["logits: 0 copied (0 B), 1 known", "students: 0 copied (0 B), 1 known"]
    assert digests(Path("there")) == before


def test_what_arrives_with_another_size_does_not_count(
    home: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(self: Failing, _: str, path: str) -> None:
        self.pipe_file(path, b"1234")

    monkeypatch.setattr(Failing, "put_file", lossy)
    size = (home / f"{LOGITS[0]}.arrow").stat().st_size
    error = fails("store", "push", "failing://a")
    assert f"failing://a/{LOGITS[0]}.arrow: 4 of {size} bytes arrived. Push again." in error
    assert not Failing.store


@pytest.mark.parametrize("command", ["push", "pull"])
def test_addresses_that_cannot_be_used(command: str, home: Path, fails: Fails) -> None:
    fsspec.register_implementation("unreachable", Unreachable, clobber=True)
    error = fails("store", command, "unreachable://a")
    assert "unreachable://a" in error and "could not be reached (no route to host)" in error
    error = fails("store", command, "nosuch://a")
    assert "nosuch://a: Protocol not known: nosuch. Name a directory, or an address" in error
    Path("file").write_text("")
    assert "file/below" in fails("store", command, "file/below")


def test_a_bucket_that_is_not_there_is_an_error(home: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: Failing, path: str, **_: Any) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Failing, "find", find)
    error = fails("store", "push", "failing://a", "--kind", "tags", "--kind", "tags")
    assert "failing://a/store/tags: not found. Create it or get access, then push again." in error


def test_a_missing_driver_says_what_to_install(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = {"class": "no_such_driver.Files", "err": "Install a driver to access it"}
    monkeypatch.setitem(known_implementations, "undriven", driver)
    error = fails("store", "pull", "undriven://a")
    assert "undriven://a: Install a driver to access it. Run `pip install no_such_driver`." in error


def test_what_is_not_there_is_an_error(home: Path, fails: Fails) -> None:
    error = fails("store", "push", "there", "--kind", "logitz")
    assert f"{home}: no entries of the kind 'logitz'. There are: logits, tags, students." in error
    assert not Path("there").exists()
    assert "there: not found. Name a folder that" in fails("store", "pull", "there")
    Path("there").mkdir()
    assert "there: no entries. Name a folder that" in fails("store", "pull", "there")
    distill("store", "push", "there", "--kind", "logits")
    assert "there: no entries of the kind 'tags'." in fails("store", "pull", "there", "--kind", "tags")


def test_nothing_to_push(store_home: Path) -> None:
    assert distill("store", "push", "there") == f"{store_home}: nothing to push.\n"
