"""What several checks find wrong, reported together rather than one error at a time."""

from collections.abc import Callable

from pipeline_lib.base.errors import PotstillError


def faults_of(check: Callable[..., object], *arguments: object) -> list[str]:
    """Return the message of the error that a check raises, as a list; empty if it raises none."""
    try:
        check(*arguments)
    except PotstillError as error:
        return [str(error)]
    return []
