"""The names of the package itself: what docs/python.md and docs/tickets.md do with them, and what they import."""

import doctest
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline_lib
from pipeline_lib.shards.fingerprint import ROOT, imports
from tests.kit.readable import write_workspace

PAGE = Path(__file__).parents[1] / "docs/python.md"


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_workspace(tmp_path))
    blocks = re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    page = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    results = doctest.DocTestRunner().run(page, out=report.append)
    assert results.failed == 0, "".join(report)
    assert results.attempted == PAGE.read_text(encoding="utf-8").count(">>> ")


def test_the_service_of_the_tickets_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testing = pytest.importorskip("fastapi.testclient", exc_type=ImportError)
    monkeypatch.chdir(write_workspace(tmp_path))
    shutil.move("exported", Path("data/exports/tickets"))
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE.with_name("tickets.md").read_text("utf-8"), re.M | re.S)
    Path("service.py").write_text(code)
    client = testing.TestClient(runpy.run_path("service.py")["app"])
    answers = client.post("/queues", json={"texts": ["a quiet triumph", "dull"]}).json()
    assert [answer["queue"] for answer in answers] == ["positive", "negative"]
    assert all(0.5 < answer["probability"] <= 1 for answer in answers)


def test_importing_the_package_imports_nothing_else() -> None:
    assert not imports(ROOT / "__init__.py")
    code = "import sys, pipeline_lib; print(*{name.split('.')[0] for name in sys.modules})"
    # Without site, whose .pth files import what they like.
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} - sys.stdlib_module_names == {"__main__", "pipeline_lib"}


def test_every_public_name_is_there() -> None:
    for name in pipeline_lib.__all__:
        assert getattr(pipeline_lib, name).__name__ == name
        assert name in dir(pipeline_lib)
    with pytest.raises(AttributeError, match="no attribute 'load_everything'"):
        pipeline_lib.load_everything  # noqa: B018
