"""Fetch the teacher's base encoder and, where ``teacher.checkpoint`` is set, finished teachers.

    python stages/fetch_teacher.py

Reads ``inputs``, ``teacher.source``, ``teacher.checkpoint`` and the tasks' labels of params.yaml;
writes ``data/raw/teacher``: ``base`` and ``checkpoints/<task>``.
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.sources.models import fetch_teacher
from pipeline_lib.sources.preflight import require_formats


def main() -> None:
    """Fetch the teacher's base encoder and finished teachers."""
    params = load_params()
    require_formats(params)
    fetch_teacher(params.teacher, params.tasks, Path(params.inputs), Layout().raw_teacher)


if __name__ == "__main__":
    run_stage(main)
