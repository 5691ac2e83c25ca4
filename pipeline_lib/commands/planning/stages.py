"""Which stages would run, and why: what DVC will compare once the first stage has run.

DVC alone sees neither changed code nor changed rows before the stage ``fingerprint`` has written
their digests, and it does not say what a changed stage changes in those after it.  So the digests
are computed here, and compared with those of each stage's last run.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import json_text, read_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import PIPELINE
from pipeline_lib.corpora.stage_inputs import stage_inputs
from pipeline_lib.params import load_params
from pipeline_lib.params.profiles import read_values, value_changes

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc.stage import PipelineStage

FIRST = "fingerprint"
"""The stage that always runs."""
PARAMS = "params.yaml"


@dataclass(frozen=True)
class PlannedStage:
    """A stage that runs, or may.

    :ivar reasons: why it runs; none: it runs if the outputs of the stages before it change.
    :ivar after: the stages that may run before it, and whose outputs it reads.
    :ivar is_kept: whether DVC has its outputs for these inputs, from an earlier run.
    """

    name: str
    reasons: list[str]
    after: list[str] = field(default_factory=list)
    is_kept: bool = False

    @property
    def kind(self) -> str:
        """The stage's name without its item."""
        return self.name.partition("@")[0]

    @property
    def item(self) -> str:
        """Its task or row; empty if it has none."""
        return self.name.partition("@")[2]


def planned_stages() -> list[PlannedStage]:
    """Return the stages of this workspace that would run now, in order."""
    from networkx import topological_sort

    files = stage_inputs(load_params(), Layout())
    with _pipeline() as repo:
        graph = repo.index.graph
        compared = _Comparison(repo, {path.as_posix(): values for path, values in files.items()})
        planned: dict[str, PlannedStage] = {}
        # Stages of which DVC only brings back what is lost.
        same: set[str] = set()
        # DVC's arrows lead from a stage to those whose outputs it reads.
        for stage in reversed([*topological_sort(graph)]):
            if stage.addressing == FIRST:
                continue
            before = {other.addressing for other in graph.successors(stage)} & planned.keys()
            after = [name for name in planned if name in before - same]
            reasons = [*compared.changed_inputs(stage)]
            reasons += [] if before else compared.newer_data(stage)
            lost = [*compared.lost_outputs(stage)]
            if not (reasons or after or lost):
                continue
            name = stage.addressing
            if not (reasons or after) and stage.outs_cached():
                same.add(name)
            is_kept = name in same or (not after and compared.is_kept(stage))
            planned[name] = PlannedStage(name, reasons + lost, after, is_kept)
    return [*planned.values()]


@contextmanager
def _pipeline() -> Iterator["Repo"]:
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    if not PIPELINE.exists():
        raise PotstillError(
            f"{PIPELINE}: not found. Run this in a workspace: `distill init FILE` makes one of "
            "your data, `distill init` one of the bundled data."
        )
    try:
        with Repo() as repo:
            yield repo
    except sqlite3.Error as error:
        raise PotstillError(
            f"DVC's table of file states cannot be used ({error}): another user's DVC made it. Set DVC_SITE_CACHE_DIR "
            "to a folder of your own."
        ) from error
    except DvcException as error:
        raise PotstillError(
            f"{PIPELINE}: DVC cannot read it: {error}. If a killed `dvc` left a file half-written, "
            f"`distill run` mends it; `distill init --force` writes {PIPELINE} anew."
        ) from error


class _Comparison:
    """What stages read now, beside what they read when they last ran."""

    def __init__(self, repo: "Repo", inputs: Mapping[str, Any]) -> None:
        self._repo = repo
        self._inputs = inputs
        self._values = read_values(Path(PARAMS))
        self._texts = {path: json_text(values) for path, values in inputs.items()}
        [first] = (stage for stage in repo.index.stages if stage.addressing == FIRST)
        self._names = {out.def_path: out.hash_info.value for out in first.outs if out.def_path in inputs}

    def changed_inputs(self, stage: "PipelineStage") -> Iterator[str]:
        """Yield what a stage reads that changed, whatever the stages before it do."""
        if not _has_run(stage):
            yield "it never ran here"
            return
        if stage.changed_stage():
            yield f"its command changed in {PIPELINE}"
        for dep in stage.deps:
            if hasattr(dep, "params"):
                yield from self._changed_params(dep.hash_info.value or {}, dep.params)
            elif dep.def_path in self._inputs:
                yield from self._changed_input(dep.def_path, dep.hash_info.value)
            else:
                yield from self._changed_names(dep.def_path)

    def newer_data(self, stage: "PipelineStage") -> Iterator[str]:
        """Yield the data that differ from what a stage read when it last ran."""
        for dep in stage.deps:
            if not hasattr(dep, "params") and dep.hash_info and dep.def_path not in self._inputs:
                yield from (f"{path}: {state}" for path, state in dep.workspace_status().items())

    def lost_outputs(self, stage: "PipelineStage") -> Iterator[str]:
        """Yield a stage's outputs that are not there, or not as it made them."""
        for out in stage.outs if _has_run(stage) else ():
            for path, state in out.status().items():
                yield f"{path}: {'not here' if state in ('deleted', 'not in cache') else state}"

    def is_kept(self, stage: "PipelineStage") -> bool:
        """Whether DVC has the outputs of a stage for the inputs that it will find."""
        from dvc.stage.serialize import to_single_stage_lockfile
        from dvc.utils import dict_sha256
        from dvc_data.hashfile.hash_info import HashInfo
        from dvc_data.hashfile.meta import Meta

        for dep in stage.deps:
            if dep.def_path in self._inputs:
                dep.meta = Meta()
                dep.hash_info = HashInfo("md5", _md5(self._texts[dep.def_path]))
            elif not dep.exists:
                return False
            else:
                dep.save()
        entry = to_single_stage_lockfile(stage)
        entry["outs"] = [out["path"] for out in entry["outs"]]
        key = dict_sha256(entry, exclude=["size", "nfiles"])
        return (Path(self._repo.stage_cache.cache_dir) / key[:2] / key).is_dir()

    def _changed_params(self, old: Mapping[str, Any], keys: list[str]) -> Iterator[str]:
        now = {key: _value_at(self._values, key) for key in keys}
        known = {key: old.get(key) for key in keys}
        yield from (f"{PARAMS}: {_readable(line)}" for line in value_changes(known, now))

    def _changed_input(self, path: str, digest: str | None) -> Iterator[str]:
        if _md5(self._texts[path]) == digest:
            return
        old, now = self._old(path, digest), self._inputs[path]
        if old is None:
            yield f"{path} changed"
        elif Path(path).is_relative_to(Layout().fingerprints):
            modules = [name for name in {**old, **now} if old.get(name) != now.get(name)]
            yield f"code: {_listed(sorted(modules))}"
        else:
            yield from map(_readable, value_changes(_named(old), _named(now)))

    def _changed_names(self, folder: str) -> Iterator[str]:
        """Yield the rows that came to, or left, a folder of outputs."""
        for path, digest in self._names.items():
            if not Path(path).is_relative_to(folder) or _md5(self._texts[path]) == digest:
                continue
            old, now = self._old(path, digest) or [], self._inputs[path]
            for sign, names in (("+", {*now} - {*old}), ("-", {*old} - {*now})):
                for name in sorted(names):
                    yield f"{PARAMS}: {sign} {Path(path).parent.name}.{name}"

    def _old(self, path: str, digest: str | None) -> Any:
        """Return the content of a file at a stage's last run; None if it is nowhere."""
        if digest is None:
            return None
        cached = Path(self._repo.cache.local.path) / digest[:2] / digest[2:]
        for file in (Path(path), cached):
            if file.is_file() and _md5(file.read_text(encoding="utf-8")) == digest:
                return read_json(file)
        return None


def _has_run(stage: "PipelineStage") -> bool:
    return any(dep.hash_info for dep in stage.deps)


def _md5(text: str) -> str:
    # DVC's digest of a file.
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _value_at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _named(value: Any) -> Any:
    """Return JSON in which lists of rows are rows by name."""
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(row, dict) and "name" in row for row in value):
        return {row["name"]: _named(row) for row in value}
    return value


def _readable(line: str) -> str:
    """Return a changed setting; of a new row, and of a file's digests, just its name."""
    line = line.strip()
    if line.startswith("+ "):
        line = line.partition(": {")[0]
    if "files." not in line:
        return line
    return f"{line.partition('files.')[2].rpartition(': ')[0].removeprefix('+ ')}: edited"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
