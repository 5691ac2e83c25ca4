"""Where a task's files go below ``inputs``: used in place, copied, or rewritten.

Files that the pipeline can read are used as they are.  It reads one file per split, in one format
per task, and every row: otherwise, all splits are written as Parquet.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.file_formats import suffix_of
from pipeline_lib.base.files import atomic_path, copy_file, sha256_file
from pipeline_lib.tables.contents import Content


@dataclass
class Placement:
    """The files to write, and the task's ``source`` in params.yaml.

    :ivar copies: target to the file to copy; :ivar tables: target to the table, for Parquet.
    """

    source: dict[str, Any]
    copies: dict[Path, Path] = field(default_factory=dict)
    tables: dict[Path, pa.Table] = field(default_factory=dict)

    def write(self, force: bool) -> None:
        """Write the files.

        :param force: whether to overwrite different files that exist.
        """
        for target, path in self.copies.items():
            if target.exists() and not force and sha256_file(target) != sha256_file(path):
                raise _other(target)
        for target, table in self.tables.items():
            if target.exists() and not force and not _holds(target, table):
                raise _other(target)
        for target, path in self.copies.items():
            copy_file(path, target)
        for target, table in self.tables.items():
            with atomic_path(target) as temporary:
                pq.write_table(table, temporary)


@contextmanager
def taken_back(paths: Sequence[Path]) -> Iterator[None]:
    """Leave files as they were if the block fails: what it wrote would be in the way later.

    Folders that were made for them are removed again.
    """
    folders = {above for path in paths for above in path.parents if not above.exists()}
    with TemporaryDirectory() as folder:
        kept = {path: Path(folder) / str(n) for n, path in enumerate(paths) if path.exists()}
        for path, copy in kept.items():
            shutil.copyfile(path, copy)
        try:
            yield
        except BaseException:
            for path in paths:
                if path in kept:
                    shutil.copyfile(kept[path], path)
                else:
                    path.unlink(missing_ok=True)
            for made in sorted(folders, reverse=True):
                with suppress(OSError):
                    made.rmdir()
            raise


def place(
    contents: Mapping[str, Content], columns: Sequence[str], kept: Mapping[str, Sequence[int]], name: str, inputs: Path
) -> Placement:
    """Decide where a task's files go.

    :param contents: by split; :param columns: the task's columns; :param kept: rows to keep of each
        split; :param name: name of the task and of its folder; :param inputs: folder of all inputs.
    """
    parts = [*contents.values()]
    whole = all(len(kept[s]) == content.table.num_rows for s, content in contents.items())
    formats = {(part.format, tuple(part.columns or ())) for part in parts}
    if not whole or len(formats) > 1 or parts[0].format is None:
        tables = {
            inputs / name / f"{split}.parquet": _kept(content, columns, kept[split])
            for split, content in contents.items()
        }
        files = {split: f"{name}/{split}.parquet" for split in contents}
        return Placement(_source(files, "parquet", None), tables=tables)
    files, copies = {}, {}
    for split, content in contents.items():
        [path] = content.paths
        if path.resolve().is_relative_to(inputs.resolve()):
            files[split] = path.resolve().relative_to(inputs.resolve()).as_posix()
            continue
        target = inputs / name / f"{split}{suffix_of(path)}"
        files[split], copies[target] = target.relative_to(inputs).as_posix(), path
    return Placement(_source(files, parts[0].format, parts[0].columns), copies)


def _source(files: dict[str, str], format: str, columns: list[str] | None) -> dict[str, Any]:
    return {"kind": "files", "files": files, "format": format, "columns": columns}


def _kept(content: Content, columns: Sequence[str], rows: Sequence[int]) -> pa.Table:
    names = [name for name in columns if name in content.names]
    table = content.table.select(names).take(pa.array(rows, pa.int64()))
    return table.replace_schema_metadata(None).combine_chunks()


def _holds(path: Path, table: pa.Table) -> bool:
    try:
        return pq.read_table(path).equals(table)
    except (pa.ArrowException, OSError):
        return False


def _other(path: Path) -> PotstillError:
    return PotstillError(
        f"{path}: a different file is there already. Choose another --name, or overwrite it with --force."
    )
