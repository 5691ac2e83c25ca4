"""Printing lines of text, none of which can give the terminal orders."""

import json
from typing import Any

import typer

from pipeline_lib.base.text import escaped_json, printable


def say(text: object = "", err: bool = False) -> None:
    """Print a text and a line end; control characters are escaped."""
    typer.echo(printable(str(text)), err=err)


def say_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON, in which control characters are escaped as JSON has it."""
    typer.echo(escaped_json(json.dumps(value, ensure_ascii=False, indent=indent)))
