"""Code from outside the library that params.yaml names: ``extensions: [ticketlab]``, packages or files beside it."""

import importlib
import sys
from collections.abc import Sequence

from pipeline_lib.base.errors import PotstillError, reason_of


def import_extensions(names: Sequence[str], where: str) -> None:
    """Import modules that are installed, or lie in the current folder; what they register can be named then.

    :param where: what names them, for messages.
    """
    if names and "" not in sys.path:
        sys.path.insert(0, "")
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a module's code raises anything
            raise PotstillError(
                f"{where}: {name} cannot be imported ({reason_of(error)}). Put {name.partition('.')[0]}.py, or the "
                "package, beside params.yaml, install it, or remove its name."
            ) from error
