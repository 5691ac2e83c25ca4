"""The library's rooms: each imports from those below it only, and none twice around."""

import re
from pathlib import Path

import pipeline_lib
from pipeline_lib.shards.fingerprint import ROOT, imports

ROOMS = [*re.findall(r"``(\w+)``: ", pipeline_lib.__doc__), "cli"]
"""From the lowest to the highest."""
MOST_ARROWS = 95
"""Pairs of rooms, stages and benchmarks among them, of which one imports from the other.  More of
them come with a new room only."""


def room_of(module: str) -> str:
    return module.split(".")[1]


def rooms_of(file: Path) -> set[str]:
    return {room_of(module) for module in imports(file) if "." in module}


def files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


def test_a_module_imports_from_lower_rooms_only() -> None:
    wrong = []
    for file in files():
        own = file.relative_to(ROOT).parts[0]
        lower = {*ROOMS[: ROOMS.index(own) + 1]}
        # A command runs no stage's code, nor a stage a command's.
        lower -= {"commands", "stages"} - {own} if own != "cli" else set()
        wrong += [f"{file.relative_to(ROOT)}: {room}" for room in rooms_of(file) - lower]
    assert not wrong


def test_every_room_is_named_and_no_module_stands_beside_them() -> None:
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ROOMS) - {"cli"}
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "cli.py"}


def test_few_arrows_run_between_rooms() -> None:
    arrows = {(p.relative_to(ROOT).parts[0], room) for p in files() for room in rooms_of(p)}
    for folder in ("stages", "benchmarks"):
        scripts = (ROOT.parent / folder).glob("*.py")
        arrows |= {(folder, room) for path in scripts for room in rooms_of(path)}
    arrows |= {("cli", room) for room in rooms_of(ROOT / "cli.py")}
    assert len([1 for own, other in arrows if own != other]) <= MOST_ARROWS


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {*files()}
    graph = {file: _files_of(file) & known for file in known}
    while leaves := [file for file, others in graph.items() if not others]:
        for leaf in leaves:
            del graph[leaf]
        graph = {file: others - {*leaves} for file, others in graph.items()}
    assert not graph, f"a circle among {sorted(path.stem for path in graph)}"


def _files_of(file: Path) -> set[Path]:
    paths = {ROOT.parent.joinpath(*module.split(".")) for module in imports(file)}
    found = {path.with_suffix(".py") for path in paths} | {path / "__init__.py" for path in paths}
    return found - {file}
