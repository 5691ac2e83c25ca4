"""Shard passes: pure functions from an input to output shards, run by any engine and stored.

An output is keyed by everything that determines it: the pass's settings, its code, the versions of the libraries that
determine its bytes, and the input's digest.  So a restart computes only what was in flight, a changed input
recomputes only its own outputs, and old settings find theirs again.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from pipeline_lib.base import stage_records
from pipeline_lib.base.files import fresh_folder, sha256_json
from pipeline_lib.base.progress import show_progress
from pipeline_lib.shards.engine.protocol import Engine, Report
from pipeline_lib.shards.fingerprint import code_fingerprint, deciding, library_versions
from pipeline_lib.shards.shard_sets import (
    Manifest,
    Shard,
    ShardSet,
    check_answers,
    read_checked,
    read_shard,
    schema_of,
    write_manifest,
)
from pipeline_lib.shards.store import Store

Output = tuple[pa.Table, dict[str, Any] | None]
"""An output shard's rows, and what was counted while they were made.

A count named ``tokens`` is of those that a model computed; the stage's record adds them up.
"""


class ShardPass(ABC):
    """One kind of pass with its settings; a subclass says what it computes.

    :cvar kind: kind of outputs; also the name of their part of the store.
    :cvar row_for_row: whether output k belongs to input k, row for row.
    :cvar libraries: the distributions that determine the outputs' bytes.
    """

    kind: ClassVar[str]
    row_for_row: ClassVar[bool] = True
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What determines the outputs besides the input, the code and the libraries."""

    def compute(self, content: Any) -> pa.Table:
        """Return the output for one input, usually a shard's table; a pass defines this, or :meth:`outputs`."""
        raise NotImplementedError

    def outputs(self, content: Any) -> Iterator[Output]:
        """Yield the outputs for one input, in order; usually there is one."""
        yield self.compute(content), None

    def is_complete(self, shards: Sequence[Shard]) -> bool:
        """Whether the outputs found for an input, from the first on, are all there are."""
        return len(shards) == 1

    def check(self, content: Any, output: pa.Table, name: str) -> None:  # noqa: B027  most trust it
        """Reject outputs that cannot be right, before they are stored; the message names the input."""

    def load(self) -> None:  # noqa: B027  most passes have nothing to load
        """Load the models that :meth:`compute` uses, so that forked workers share them."""

    @property
    def in_flight(self) -> int:
        """How many inputs one process works on at a time, in threads."""
        return 1

    @property
    def computed_on(self) -> str | None:
        """The processor, if it affects the outputs' last digits."""
        return None

    def opened(self, content: Any, digest: str) -> Any:
        """Return what :meth:`outputs` gets for the input of a digest: a shard's rows, or the content itself."""
        # Or a damaged input's outputs would be found for the sound one, too.
        return read_checked(content, digest) if isinstance(content, Path) else content

    def output_name(self, name: str, part: int) -> str:
        """Return the file name of an input's output number ``part``."""
        return name

    def made_from(self) -> dict[str, Any]:
        """Return all that determines the outputs besides the input, for manifests."""
        return {
            "kind": self.kind,
            **self.settings,
            "code": code_fingerprint(type(self).__module__),
            "libraries": library_versions(*self.libraries),
        }

    def key(self, digest: str, part: int = 0) -> str:
        """Return the store key of an output for the input with this digest."""
        made_from = self.made_from()
        libraries = deciding(made_from["libraries"])
        return sha256_json({**made_from, "libraries": libraries, "input": digest, "part": part})


@dataclass(frozen=True)
class Piece:
    """One input of a pass: its content, or its shard's path, the content's digest, and what is returned with it."""

    digest: str
    content: Any
    note: Any = None


@dataclass(frozen=True)
class PieceResult:
    """The outputs for one piece, all of them in the store.

    :ivar reused: whether they were in the store before.
    """

    piece: Piece
    shards: list[Shard]
    reused: bool

    @property
    def rows(self) -> int:
        """Total number of rows of all outputs."""
        return sum(shard.rows for shard in self.shards)

    def tables(self, shard_pass: ShardPass) -> Iterator[pa.Table]:
        """Yield the outputs, memory-mapped."""
        store = Store(shard_pass.kind)
        for part in range(len(self.shards)):
            yield store.read(shard_pass.key(self.piece.digest, part))


@dataclass
class PassStats:
    """How much of a pass was computed and how much reused from the store, in inputs and rows."""

    computed: int = 0
    reused: int = 0
    rows_computed: int = 0
    rows_reused: int = 0

    def __str__(self) -> str:
        return f"computed {self.computed} shards, reused {self.reused}"

    def add(self, answer: PieceResult) -> None:
        """Count one input's outputs, in the stage's record too."""
        stage_records.count("shards", answer.reused)
        stage_records.count("rows", answer.reused, amount=answer.rows)
        if tokens := sum((shard.counts or {}).get("tokens", 0) for shard in answer.shards):
            stage_records.count("tokens", answer.reused, amount=tokens)
        if answer.reused:
            self.reused, self.rows_reused = self.reused + 1, self.rows_reused + answer.rows
        else:
            self.computed, self.rows_computed = self.computed + 1, self.rows_computed + answer.rows


def run_pass(
    shard_pass: ShardPass, inputs: ShardSet, folder: Path, engine: Engine, title: str | None = None
) -> tuple[Manifest, PassStats]:
    """Write the outputs for a shard set into ``folder``, with a manifest.

    :param title: of the progress display; None shows none.
    """
    shards = inputs.manifest.shards
    fresh_folder(folder)
    pieces = [Piece(shard.sha256, inputs.path(shard), shard.name) for shard in shards]
    if title is None:
        answers, report = run_pieces(shard_pass, pieces, engine)
    else:
        with show_progress(title, "rows") as advance:

            def on_done(report: PassStats) -> None:
                note = f"({report.reused} shards reused)"
                done = report.rows_computed + report.rows_reused
                advance(done, inputs.manifest.rows, note, counted=report.rows_computed)

            answers, report = run_pieces(shard_pass, pieces, engine, on_done)
    outputs = [shard for answer in answers for shard in _link(shard_pass, answer, folder)]
    schema = schema_of(read_shard(folder / outputs[0].name)) if outputs else {}
    made_from = {**shard_pass.made_from(), "inputs": inputs.manifest.digest}
    manifest = Manifest(shard_pass.kind, schema, outputs, made_from, _total(outputs))
    if shard_pass.row_for_row:
        check_answers(inputs.manifest, manifest)
    write_manifest(folder, manifest)
    return manifest, report


def _total(shards: Sequence[Shard]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for shard in shards:
        total.update(shard.counts or {})
    return dict(total)


def run_pieces(
    shard_pass: ShardPass, pieces: Sequence[Piece], engine: Engine, on_done: Callable[[PassStats], None] | None = None
) -> tuple[list[PieceResult], PassStats]:
    """Compute the outputs of pieces that the store does not have, with a call after each; return all in order."""
    store, report = Store(shard_pass.kind), PassStats()
    store.sweep()
    answers = [_find(shard_pass, piece, store) for piece in pieces]
    for answer in filter(None, answers):
        report.add(answer)
    missing = [number for number, answer in enumerate(answers) if answer is None]
    jobs = [(shard_pass, pieces[number]) for number in missing]
    for job, answer in engine.run(_compute, jobs, preload=shard_pass.load, in_flight=shard_pass.in_flight):
        answers[missing[job]] = answer
        report.add(answer)
        if on_done:
            on_done(report)
    return answers, report


def stream_pieces(shard_pass: ShardPass, pieces: Iterable[Piece], engine: Engine) -> Iterator[PieceResult]:
    """Yield the answers to any number of pieces, in their order, as they are requested.

    The answers' pieces come without their content, which a worker need not send back.
    """
    Store(shard_pass.kind).sweep()
    jobs = ((shard_pass, piece) for piece in pieces)
    return engine.stream(_find_or_compute, jobs)


def stored_outputs(shard_pass: ShardPass, digest: str, store: Store) -> list[Shard]:
    """Return the outputs for an input of this digest that the store has, from the first on."""
    shards: list[Shard] = []
    while not shard_pass.is_complete(shards):
        shard = store.find(shard_pass.key(digest, len(shards)))
        if shard is None:
            break
        shards.append(shard)
    return shards


def _find(shard_pass: ShardPass, piece: Piece, store: Store) -> PieceResult | None:
    shards = stored_outputs(shard_pass, piece.digest, store)
    if not shard_pass.is_complete(shards):
        return None
    return PieceResult(replace(piece, content=None), shards, reused=True)


def _compute(job: tuple[ShardPass, Piece], _: Report) -> PieceResult:
    shard_pass, piece = job
    content = shard_pass.opened(piece.content, piece.digest)
    store, source = Store(shard_pass.kind), piece.digest if shard_pass.row_for_row else None
    shards = []
    for number, (table, counts) in enumerate(shard_pass.outputs(content)):
        shard_pass.check(content, table, str(piece.note))
        key = shard_pass.key(piece.digest, number)
        shards.append(store.add(key, table, source, shard_pass.computed_on, counts))
    return PieceResult(replace(piece, content=None), shards, reused=False)


def _find_or_compute(job: tuple[ShardPass, Piece]) -> PieceResult:
    shard_pass, piece = job
    answer = _find(shard_pass, piece, Store(shard_pass.kind))
    return answer or _compute(job, lambda message: None)


def _link(shard_pass: ShardPass, answer: PieceResult, folder: Path) -> Iterator[Shard]:
    store, source = Store(shard_pass.kind), answer.piece.digest if shard_pass.row_for_row else None
    for part, shard in enumerate(answer.shards):
        name = shard_pass.output_name(answer.piece.note, part)
        store.link_into(shard_pass.key(answer.piece.digest, part), folder / name)
        yield replace(shard, name=name, source=source)
