"""A stage of a test's own, in a process that can be interrupted as one in a terminal is."""

import os
import signal
import subprocess
import sys
from pathlib import Path


def start_stage(folder: Path, script: str) -> subprocess.Popen:
    """Run a script in ``folder``, in a process group that signals can be sent to."""
    (folder / "stage.py").write_text(script)
    path = [str(Path(__file__).parents[1]), *sys.path]
    return subprocess.Popen(
        [sys.executable, "stage.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
