"""``distill shards show``: rows, and the teacher's answers to them."""

from typing import Annotated

import typer

from pipeline_lib.commands.shards.options import PARAMS, OneRule, ParamsFile, SetFolder, open_set, wanted_rows

EXAMPLE = "Example: distill shards show data/transfer/movies/full --rule mask --uncertain"


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
    wanted = wanted_rows(joined, names, rule, None)
    if shard is not None:
        wanted = replace(wanted, shard=joined.shard_number(shard))
    page = leading(joined, offset + rows, wanted, uncertain)[offset:]
    console = SafeConsole()
    for location in page:
        print_stored_row(console, joined, joined.row(*location), names)
    of = sum(int(wanted.wants(batch).sum()) for batch in joined.batches())
    print_text(console, Text(f"{len(page):,} of {of:,} rows shown", "bold"))
