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
        differ = [t for t, path in self.copies.items() if t.exists() and sha256_file(t) != sha256_file(path)]
        differ += [target for target, table in self.tables.items() if target.exists() and not _holds(target, table)]
        if differ and not force:
            raise PotstillError(
                f"{differ[0]}: a different file is there already. Choose another --name, or overwrite it with --force."
            )
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
        copies = {path: Path(folder) / str(n) for n, path in enumerate(paths) if path.exists()}
        for path, copy in copies.items():
            shutil.copyfile(path, copy)
        try:
            yield
        except BaseException:
            for path in paths:
                if path in copies:
                    shutil.copyfile(copies[path], path)
                else:
                    path.unlink(missing_ok=True)
            for made in sorted(folders, reverse=True):
                with suppress(OSError):
                    made.rmdir()
            raise


def place(
    contents: Mapping[str, Content], columns: Sequence[str], rows: Mapping[str, Sequence[int]], name: str, inputs: Path
) -> Placement:
    """Decide where a task's files go.

    :param contents: by split; :param columns: the task's columns; :param rows: rows to keep of each
        split; :param name: name of the task and of its folder; :param inputs: folder of all inputs.
    """
    first, *others = contents.values()
    whole = all(len(rows[split]) == content.table.num_rows for split, content in contents.items())
    alike = all((other.format, other.columns) == (first.format, first.columns) for other in others)
    is_rewritten = not whole or not alike or first.format is None
    source = {"kind": "files", "files": {}, "format": first.format, "columns": first.columns}
    placement = Placement(source | ({"format": "parquet", "columns": None} if is_rewritten else {}))
    for split, content in contents.items():
        path, target = content.paths[0], inputs / name / f"{split}{suffix_of(content.paths[0])}"
        if is_rewritten:
            target = target.with_name(f"{split}.parquet")
            placement.tables[target] = _kept(content, columns, rows[split])
        elif path.resolve().is_relative_to(inputs.resolve()):
            target = inputs / path.resolve().relative_to(inputs.resolve())
        else:
            placement.copies[target] = path
        placement.source["files"][split] = target.relative_to(inputs).as_posix()
    return placement


def _kept(content: Content, columns: Sequence[str], rows: Sequence[int]) -> pa.Table:
    names = [name for name in columns if name in content.names]
    table = content.table.select(names).take(pa.array(rows, pa.int64()))
    return table.replace_schema_metadata(None).combine_chunks()


def _holds(path: Path, table: pa.Table) -> bool:
    try:
        return pq.read_table(path).equals(table)
    except (pa.ArrowException, OSError):
        return False
