"""Write benchmarks/results/README.md: by which command each result was measured, where and when.

    python benchmarks/index_results.py

The tables are in the JSON files, and each benchmark prints its own when it runs.
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
MACHINE = ("accelerator", "cpu")
HEAD = """# Results

Made by `python benchmarks/index_results.py`. Each JSON file has the figures; `facts`, in most of them, the versions.

| result | command | processor | date | commit |
|---|---|---|---|---|
"""


def index() -> str:
    """Return the page: a line for each JSON file."""
    return HEAD + "".join(line_of(path) for path in sorted(RESULTS.glob("*.json")))


def line_of(path: Path) -> str:
    """Return the table's line for one result."""
    results = json.loads(path.read_text("utf-8"))
    facts: dict[str, Any] = results.get("facts", results)
    command = facts.get("command", "").removeprefix("python benchmarks/")
    processor = re.sub(r"\(R\)|AMD |Intel| Processor", "", " and ".join(filter(None, map(facts.get, MACHINE))))
    cells = [
        f"[{path.stem}]({path.name})",
        f"`{command}`" if command else "",
        processor.strip(),
        str(facts.get("date", ""))[:10],
        str(facts.get("commit", ""))[:12],
    ]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    (RESULTS / "README.md").write_text(index(), "utf-8")
