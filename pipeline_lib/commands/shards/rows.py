"""``distill shards show``, ``sample`` and ``export``: rows of a set in turn, drawn at random, and as a flat file."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.base.terminal import say, say_json
from pipeline_lib.commands.options import RawCells
from pipeline_lib.commands.shards.options import (
    PARAMS,
    OneLabel,
    OneRule,
    ParamsFile,
    SetFolder,
    StudentFolder,
    answers_of,
    open_set,
    wanted_rows,
)

SHOW_EXAMPLE = "Example: distill shards show data/transfer/movies/full --rule mask --uncertain"


def show(
    folder: SetFolder,
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

    Masked words are red, replaced ones cyan. Name either inputs or outputs; they are joined. `distill shards stats`
    sums all rows up.
    """
    from dataclasses import replace

    from rich.text import Text

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.shards.row_text import print_stored_row, print_text
    from pipeline_lib.inspection.sampling import leading

    joined, names = open_set(folder, params)
    chosen = wanted_rows(joined, names, rule, None)
    if shard is not None:
        chosen = replace(chosen, shard=joined.shard_number(shard))
    page = leading(joined, offset + rows, chosen, uncertain)[offset:]
    console = SafeConsole()
    for location in page:
        print_stored_row(console, joined, joined.row(*location), names)
    of = sum(int(chosen.wants(batch).sum()) for batch in joined.batches())
    print_text(console, Text(f"{len(page):,} of {of:,} rows shown", "bold"))


SAMPLE_EXAMPLE = "Example: distill shards sample data/transfer/movies/full --rule replace --rows 5"


def sample(
    folder: SetFolder,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to draw.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 1,
    rule: OneRule = None,
    label: OneLabel = None,
    student: StudentFolder = None,
    as_lines: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show rows drawn at random, the same ones for the same seed, in the set's order.

    Rows are drawn by content: if the set grows, the same rows are drawn again, except those that new rows displace.
    """
    from dataclasses import asdict

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.shards.row_text import print_row
    from pipeline_lib.inspection.rows import read_row
    from pipeline_lib.inspection.sampling import sample as draw

    joined, names = open_set(folder, params)
    chosen = wanted_rows(joined, names, rule, label)
    answers = answers_of(student, joined, names)
    drawn, of = draw(joined, rows, seed, chosen)
    console = SafeConsole()
    for shard, number in drawn:
        row = read_row(joined, shard, number, names, answers)
        if as_lines:
            say_json(asdict(row))
        else:
            print_row(console, row)
    if not as_lines:
        console.print(f"{len(drawn):,} of {of:,} rows drawn", style="bold", highlight=False)


EXPORT_EXAMPLE = "Example: distill shards export data/transfer/movies/full --to movies.parquet"


def export(
    folder: SetFolder,
    to: Annotated[Path, typer.Option("--to", help="The file: .parquet, .arrow, .jsonl or .csv.")],
    student: StudentFolder = None,
    encoder: Annotated[
        Path | None, typer.Option("--encoder", help="Encoder to add vectors with, if the set has none.")
    ] = None,
    rule: OneRule = None,
    label: OneLabel = None,
    raw_cells: RawCells = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Write a set and the models' answers to it as one flat file, row by row.

    Columns: id, key, text (and text_pair), label, how the row was made, the teacher's answer with confidence,
    entropy, probabilities and logits, with --student also the student's, vectors. DuckDB, datasets, pandas,
    embedding-atlas and sentence-transformers can read the file (docs/inspection.md).
    """
    from pipeline_lib.inspection.flat import FlatRows
    from pipeline_lib.tables.writer import write_tables

    rows, names = open_set(folder, params)
    chosen = wanted_rows(rows, names, rule, label)
    answers, vectors = answers_of(student, rows, names), None
    if encoder is not None:
        from pipeline_lib.commands.shards.running import running_encoder

        vectors = running_encoder(encoder)
    flat = FlatRows(rows, names, chosen, answers, vectors)
    written = write_tables(to, flat.tables(), names, raw_cells)
    say(f"{to}: {written:,} of {len(rows):,} rows")
