"""The pages' links lead somewhere, and generated pages are those that their scripts write."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_links_lead_somewhere() -> None:
    dead = []
    for page in PAGES:
        for path, anchor in LINK.findall(page.read_text("utf-8")):
            target = page.parent / path if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
                dead.append(f"{page.relative_to(ROOT)}: {path}{anchor}")
    assert not dead


def test_the_index_of_results_is_that_of_its_script(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "index_results.py"
    code = f"import runpy; print(runpy.run_path({str(script)!r})['index'](), end='')"
    written = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert written == (ROOT / "benchmarks" / "results" / "README.md").read_text("utf-8")


def test_one_range_of_speed_stands_everywhere() -> None:
    runs = json.loads((ROOT / "benchmarks/results/default_rates.json").read_text("utf-8"))["runs"]
    measured = {round(run["student"] / run["teacher"], -1) for run in runs.values()}
    for path in (ROOT / "benchmarks/results").glob("frontier*.json"):
        for task in json.loads(path.read_text("utf-8")).get("tasks", {}).values():
            if student := task.get("systems", {}).get("bilstm_kd_ts, onnx int8"):
                ratio = student["rates_1"]["median"] / task["systems"]["teacher, torch"]["rates_1"]["median"]
                measured.add(round(ratio, -1))
    phrase = f"{min(measured):.0f} to {max(measured):.0f} times faster"
    pages = ("README.md", "docs/results.md", "pyproject.toml", "CITATION.cff", "pipeline_lib/cli.py")
    for text in ((ROOT / page).read_text("utf-8") for page in pages):
        assert phrase in text and not re.sub(phrase, "", text).count("times faster")
