import tomllib
from pathlib import Path

from pipeline_lib.base.errors import DISTRIBUTION, install_extra

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_the_name_is_that_of_the_project() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    [own] = [name for name in PROJECT["optional-dependencies"]["dev"] if DISTRIBUTION in name]
    assert own == f"{DISTRIBUTION}[faiss,onnx,usearch]"


def test_the_command_is_quoted() -> None:
    # zsh takes bare brackets for a pattern.
    assert install_extra("ray") == "pip install 'potstill[ray]'"
