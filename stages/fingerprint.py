"""Digest the code of every stage: what the others depend on, in place of lists of modules.

    python stages/fingerprint.py

Reads stages and pipeline_lib; writes data/fingerprints/<stage>.json: the modules that determine the
stage's results, each with the SHA-256 of its parsed code.  Comments, docstrings and formatting do
not count, nor do modules that only print, check or move.
"""

from pathlib import Path

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.storage.fingerprint import stage_code


def main() -> None:
    """Digest the code of every stage but this one."""
    layout = Layout()
    clear_folder(layout.fingerprints)
    for stage in sorted({*Path("stages").glob("*.py")} - {Path("stages/fingerprint.py")}):
        write_json(layout.fingerprint(stage.stem), stage_code(stage))


if __name__ == "__main__":
    run_stage(main)
