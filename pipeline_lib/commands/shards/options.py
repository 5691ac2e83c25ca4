"""Options shared by the ``distill shards`` commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lib.base.terminal import say
from pipeline_lib.inspection.captions import RuleName

if TYPE_CHECKING:
    from pipeline_lib.inspection.joined import JoinedRows


SetName = Annotated[
    str, typer.Argument(metavar="SET", help="Folder of a transfer set, split or outputs; @REVISION: as it was then.")
]
OneRule = Annotated[RuleName | None, typer.Option("--rule", help="Only rows changed by this rule.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def class_names(rows: "JoinedRows", params: Path) -> list[str] | None:
    """Return the names of a set's classes, those of the task in its inputs' path; None for a regression, or if unknown.

    :param params: a file that need not exist, or be valid: what is stored can be read without it.
    """
    from pipeline_lib.base.errors import PotstillError
    from pipeline_lib.params import load_params

    try:
        tasks = load_params(params).tasks if params.exists() else {}
    except PotstillError as error:
        say(f"classes are shown by number, since {error}")
        tasks = {}
    task = next((name for name in reversed(rows.inputs.folder.absolute().parts) if name in tasks), None)
    return None if task is None or rows.is_scored else tasks[task].label_names
