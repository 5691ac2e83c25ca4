"""``distill shards show`` and ``export``: rows of a set in turn, and as a flat file."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.terminal import say
from pipeline_lib.commands.options import PARAMS, ParamsFile, RawCells
from pipeline_lib.commands.shards.options import OneRule, SetName, class_names

SHOW_EXAMPLE = "Example: distill shards show data/transfer/movies/full --rule mask --uncertain"


def show(
    name: SetName,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to show.")] = 10,
    offset: Annotated[int, typer.Option("--offset", min=0, help="How many rows to skip.")] = 0,
    shard: Annotated[str | None, typer.Option("--shard", help="One shard only, e.g. b000-i001.")] = None,
    rule: OneRule = None,
    uncertain: Annotated[
        bool, typer.Option("--uncertain", help="Show first what the teacher is least sure of.")
    ] = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show rows: text, what was changed, and the teacher's logits, probabilities and entropy.

    Masked words are red, replaced ones cyan. Name either inputs or outputs; they are joined.
    """
    from dataclasses import replace

    from rich.text import Text

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.shards.row_text import print_stored_row, print_text
    from pipeline_lib.inspection.filters import Filter
    from pipeline_lib.inspection.joined import JoinedRows
    from pipeline_lib.inspection.revisions import set_at
    from pipeline_lib.inspection.sampling import leading

    with set_at(name) as folder:
        joined = JoinedRows.open(folder)
        names = class_names(joined, params)
        chosen = Filter.of(joined, names, rule, None)
        if shard is not None:
            chosen = replace(chosen, shard=joined.shard_number(shard))
        page = leading(joined, offset + rows, chosen, uncertain)[offset:]
        console = SafeConsole()
        for location in page:
            print_stored_row(console, joined, joined.row(*location), names)
        of = sum(int(chosen.wants(batch).sum()) for batch in joined.batches())
        print_text(console, Text(f"{len(page):,} of {of:,} rows shown", "bold"))


EXPORT_EXAMPLE = "Example: distill shards export data/transfer/movies/full --to movies.parquet"


def export(
    name: SetName,
    to: Annotated[Path, typer.Option("--to", help="The file: .parquet, .arrow, .jsonl or .csv.")],
    student: Annotated[
        Path | None, typer.Option("--student", help="Folder of a student, to answer the rows as well.")
    ] = None,
    rule: OneRule = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Only rows with this label; none: unlabelled rows.")
    ] = None,
    raw_cells: RawCells = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Write a set and the models' answers to it as one flat file, row by row.

    Columns: id, key, text (and text_pair), label, how the row was made, the teacher's answer with confidence,
    entropy, probabilities and logits, with --student also the student's, vectors. DuckDB, datasets, pandas,
    embedding-atlas and sentence-transformers can read the file (docs/inspection.md).
    """
    from pipeline_lib.inspection.filters import Filter
    from pipeline_lib.inspection.flat import FlatRows
    from pipeline_lib.inspection.joined import JoinedRows
    from pipeline_lib.inspection.revisions import set_at
    from pipeline_lib.tables.writer import write_tables

    with set_at(name) as folder:
        rows, answering = JoinedRows.open(folder), None
        names = class_names(rows, params)
        if student is not None:
            # It imports torch, which takes seconds.
            from pipeline_lib.commands.shards.running import running_student

            answering = running_student(student, rows, names)
        flat = FlatRows(rows, names, Filter.of(rows, names, rule, label), answering)
        written = write_tables(to, flat.tables(), names, raw_cells)
        say(f"{to}: {written:,} of {len(rows):,} rows")
