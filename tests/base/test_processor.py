"""Which processor computed a result: named, stored with it, and no part of what identifies it."""

from pathlib import Path

import torch

from pipeline_lib.base.processor import computed_on, cpu_name


def test_cpu_name_is_read_where_the_system_tells(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Fast CPU: 2 GHz\n")
    assert cpu_name(info) == "Fast CPU: 2 GHz"
    assert cpu_name(tmp_path / "absent")


def test_what_a_result_was_computed_on() -> None:
    assert computed_on("cpu") == f"{cpu_name()}, torch {torch.__version__}"
