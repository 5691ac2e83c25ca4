"""Running ``distill`` as a user does."""

import sys
from collections.abc import Callable

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline_lib import cli
from tests.tour import TOUR

PARAMS = TOUR


def distill(*arguments: str, given: str | None = None) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def failing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command as a user does; it must exit with status 1; return its error."""
    monkeypatch.setattr(sys, "argv", ["distill", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    return capsys.readouterr().err


Fails = Callable[..., str]
"""What the fixture ``fails`` gives: :func:`failing` within its test."""


def write_params(**changes: object) -> None:
    yaml = YAML(typ="safe")
    given = yaml.load(PARAMS.read_text())
    for recipe in given["transfer"].values():
        recipe["tasks"] = None
    given["methods"]["bilstm"]["tasks"] = None
    with open("params.yaml", "w") as handle:
        yaml.dump(given | changes, handle)
