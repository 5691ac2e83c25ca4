"""Files of reviews and of pairs, made up."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lib.corpora.tasks import findings
from pipeline_lib.onboarding.understanding import TaskGuess
from pipeline_lib.tables.contents import Content

WORDS = ["plot", "cast", "sound", "light", "story", "music", "end", "joke", "scene", "score"]


def review(number: int) -> str:
    one, two, three = (WORDS[number // 10**place % 10] for place in range(3))
    return f"The {one} of number {number}, its {two} and the {three}."


def content_of(name: str, values: Mapping[str, Sequence[object]], **further: Any) -> Content:
    arrays = {n: pa.array(map(str, v), pa.large_string()) for n, v in values.items()}
    table = pa.table(arrays)
    numbers, files = np.arange(table.num_rows) + 2, np.zeros(table.num_rows, np.int64)
    return Content([Path(name)], table, numbers, files, "csv", **further)


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_reviews(path: Path, rows: int = 60, odd: bool = False) -> Path:
    """Write reviews with a sentiment; ``odd``: with faults in rows 4, 6 and 9 of the file."""
    values = [[review(n), ("bad", "good")[n % 2]] for n in range(rows)]
    if odd:
        values[2][1] = values[4][0] = ""
        values[7][1] = "godo"
    return write_csv(path, ["review", "sentiment"], values)


def write_pairs(folder: Path) -> Path:
    """Write pairs with a score: train, dev and test, of which one text of dev is in train too."""
    for split, start, rows in (("train", 0, 40), ("dev", 39, 10), ("test", 100, 10)):
        values = [[review(n), review(n + 500), (n % 11) / 2] for n in range(start, start + rows)]
        write_csv(folder / f"{split}.csv", ["first", "second", "score"], values)
    return folder


def write_answers(path: Path, rows: int = 60) -> Path:
    lines = []
    for number in range(rows):
        good = 0.6 + 0.3 * (number % 7) / 7 if number % 2 else 0.1 + 0.3 * (number % 5) / 5
        probs = {"bad": round(1 - good, 4), "good": round(good, 4)}
        lines.append(json.dumps({"text": review(number), "probs": probs}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def find(guess: TaskGuess, unlabelled: Content | None = None) -> findings.Findings:
    return findings.find(guess.checked(), guess.contents, guess.examples, unlabelled)
