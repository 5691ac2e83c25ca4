"""The service of docs/tickets.md answers, as the page has it."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

from tests.kit.readable import write_workspace

PAGE = Path(__file__).parents[1] / "docs/tickets.md"


def test_the_service_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    monkeypatch.chdir(write_workspace(tmp_path))
    shutil.move("exported", Path("data/exports/tickets"))
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    Path("service.py").write_text(code)
    client = TestClient(runpy.run_path("service.py")["app"])
    answers = client.post("/queues", json={"texts": ["a quiet triumph", "dull"]}).json()
    assert [answer["queue"] for answer in answers] == ["positive", "negative"]
    assert all(0.5 < answer["probability"] <= 1 for answer in answers)
