"""The profile `tour` as a plain parameter file: it has every kind of task and row."""

import atexit
import shutil
import tempfile
from pathlib import Path

from pipeline_lib.params.profiles import plain_text

_FOLDER = Path(tempfile.mkdtemp(prefix="tour-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
TOUR = _FOLDER / "params.yaml"
TOUR.write_text(plain_text(Path(__file__).parents[1] / "profiles" / "tour.yaml"), encoding="utf-8")
