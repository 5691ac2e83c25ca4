"""``distill shards diff``: compares two shard sets, or two revisions of one."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_lib.base.terminal import say_json
from pipeline_lib.commands.shards.options import PARAMS, AsJson, ParamsFile

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline_lib.inspection.differences import Difference, Distances, Moves, Side
    from pipeline_lib.inspection.joined import JoinedRows
    from pipeline_lib.inspection.rows import InspectedRow

BAR = 30
"""Length of the longest bar, in characters."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EXAMPLE = "Example: distill shards diff data/transfer/movies/full@HEAD~1 data/transfer/movies/full"


def diff(
    before: Annotated[str, typer.Argument(help="A set, or SET@REVISION from DVC's cache.")],
    after: Annotated[str, typer.Argument(help="Another set, or revision of the same.")],
    rows: Annotated[int, typer.Option("--rows", min=0, help="Rows to show of each kind.")] = 3,
    as_json: AsJson = False,
    params: ParamsFile = PARAMS,
) -> None:
    """Show which rows were removed and added, and how far the answers to the others moved.

    Rows are the same if their words are. Name either inputs or outputs; they are joined; to compare
    two teachers, name the outputs of each.
    """
    from pathlib import Path

    from pipeline_lib.base.console import SafeConsole
    from pipeline_lib.commands.shards.options import class_names
    from pipeline_lib.inspection.differences import difference
    from pipeline_lib.inspection.joined import JoinedRows
    from pipeline_lib.inspection.revisions import set_at

    with set_at(before) as first, set_at(after) as second:
        pair = (JoinedRows.open(first, name=before), JoinedRows.open(second, name=after))
        names = class_names(pair[0], Path(before.partition("@")[0]), params)
        changes = difference(*pair, rows)
        if as_json:
            say_json(_as_json(changes, pair, names), indent=2)
        else:
            _print(SafeConsole(), changes, pair, names)


def _as_json(changes: "Difference", pair: "tuple[JoinedRows, JoinedRows]", names: list[str] | None) -> dict[str, Any]:
    before, after = pair
    return {
        "before": {"set": before.name, "rows": len(before)},
        "after": {"set": after.name, "rows": len(after)},
        "gone": _side_json(changes.gone, before, names),
        "added": _side_json(changes.added, after, names),
        "common": changes.common,
        "untouched": changes.untouched,
        "relabelled": changes.relabelled,
        "answers": changes.answers
        and _moves_json(changes.answers, pair, names)
        | {"other": changes.other, "answers_lost": changes.answers_lost, "answers_gained": changes.answers_gained},
        "vectors": {side or "first": _moves_json(moves, pair, names) for side, moves in changes.vectors.items()},
    }


def _side_json(side: "Side", rows: "JoinedRows", names: list[str] | None) -> dict[str, Any]:
    from dataclasses import asdict

    first = [asdict(_row(rows, number, names)) for number in side.first]
    return {"originals": side.originals, "synthetic": side.synthetic, "first": first}


def _moves_json(moves: "Moves", pair: "tuple[JoinedRows, JoinedRows]", names: list[str] | None) -> dict[str, Any]:
    from dataclasses import asdict

    most = [
        {
            "distance": distance,
            "before": asdict(_row(pair[0], here, names)),
            "after": asdict(_row(pair[1], there, names)),
        }
        for distance, here, there in moves.most
    ]
    return {"changed": moves.changed, "distance": _distances_json(moves.apart), "most": most}


def _row(rows: "JoinedRows", number: int, names: list[str] | None) -> "InspectedRow":
    from pipeline_lib.inspection.rows import read_row

    return read_row(rows, *rows.locate(number), names)


def _print(
    console: "Console", changes: "Difference", pair: "tuple[JoinedRows, JoinedRows]", names: list[str] | None
) -> None:
    before, after = pair
    _print_line(console, f"{before.name}: {len(before):,} rows", "bold")
    _print_line(console, f"{after.name}: {len(after):,} rows", "bold")
    _print_side(console, "gone", changes.gone, before, names)
    _print_side(console, "added", changes.added, after, names)
    _print_line(console, f"\ncommon: {changes.common:,} rows", "bold")
    if changes.untouched:
        _print_line(console, f"  {changes.untouched:,} of them in byte-identical shards")
    if changes.relabelled:
        _print_line(console, f"  {changes.relabelled:,} with another label")
    if changes.answers is not None:
        counts = {
            "with another class": changes.other,
            "no longer answered": changes.answers_lost,
            "newly answered": changes.answers_gained,
        }
        more = "".join(f", {count:,} {what}" for what, count in counts.items() if count)
        _print_moves(console, "answers", changes.answers, pair, names, more)
    for side, moves in changes.vectors.items():
        _print_moves(console, f"vectors{side}", moves, pair, names)


def _print_side(console: "Console", name: str, side: "Side", rows: "JoinedRows", names: list[str] | None) -> None:
    from pipeline_lib.commands.shards.row_text import print_row

    made = f", {side.synthetic:,} of them synthetic" if side.synthetic else ""
    _print_line(console, f"\n{name}: {side.rows:,} rows{made}", "bold")
    for number in side.first:
        print_row(console, _row(rows, number, names))


def _print_moves(
    console: "Console",
    name: str,
    moves: "Moves",
    pair: "tuple[JoinedRows, JoinedRows]",
    names: list[str] | None,
    more: str = "",
) -> None:
    from pipeline_lib.commands.shards.row_text import print_answer, print_row

    _print_distances(console, f"{name}: {moves.changed:,} moved{more}; how far", moves.apart)
    console.print()
    for distance, here, there in moves.most:
        print_row(console, _row(pair[1], there, names), gap=False)
        print_answer(console, "before", _row(pair[0], here, names).teacher)
        _print_line(console, f"  moved by {distance:.4f} ({moves.apart.unit})\n", "dim")


def _distances_json(distances: "Distances") -> dict[str, Any]:
    extremes = {}
    if distances.count:
        values = distances.values
        extremes = {"least": float(values.min()), "mean": float(values.mean()), "greatest": float(values.max())}
    return {
        "unit": distances.unit,
        "rows": distances.count,
        "missing": distances.missing,
        **extremes,
        "quantiles": {str(share): distances.quantile(share) for share in QUANTILES},
        "bins": [{"from": low, "to": high, "rows": rows} for low, high, rows in distances.bars()],
    }


def _print_distances(console: "Console", name: str, distances: "Distances") -> None:
    """Print a distribution: its figures, and a bar per bin."""
    _print_line(console, f"\n{name}, {distances.unit}", "bold")
    missing = f", none {distances.missing:,}" if distances.missing else ""
    if not distances.count:
        _print_line(console, f"  no values{missing}")
        return
    values, median, tail = distances.values, distances.quantile(0.5), distances.quantile(0.95)
    _print_line(
        console,
        f"  {values.min():.3f} to {values.max():.3f}, mean {values.mean():.3g}, median {median:.3f}, 95th percentile "
        f"{tail:.3f}{missing}",
    )
    bars = distances.bars()
    ends, most = max(len(f"{high:.3f}") for _, high, _ in bars), max(rows for *_, rows in bars)
    wide = len(f"{most:,}")
    for low, high, rows in bars:
        bar = "█" * round(BAR * rows / most) or ("▏" if rows else "")
        line = f"  {low:>{ends}.3f} – {high:>{ends}.3f}  {rows:>{wide},} {rows / distances.count:>6.1%}  {bar}"
        _print_line(console, line.rstrip())


def _print_line(console: "Console", text: str, style: str = "") -> None:
    """Print a line without wrapping it."""
    from rich.text import Text

    console.print(Text(text, style), highlight=False, soft_wrap=True)
